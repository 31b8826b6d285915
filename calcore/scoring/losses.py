"""Brier score and log loss, for two classes and for several."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore._classes import ClassRows, class_rows, row_blocks
from calcore.kernels import scoring as kernels
from calcore.table import CellTable, ScoreTable
from calcore.table.given import given, weighted

Floats = NDArray[np.float64]

_BLOCK = 16_384
"""Rows scored at once: scores, losses and what lies between stay in the L1 and L2 caches."""


def brier_score(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
) -> float:
    """Mean squared error of probabilities.

    Two classes, one column: ``mean (s - y)^2``, from 0 to 1. Several classes, a matrix: ``mean of sum_j
    (p_j - 1[y = j])^2``, from 0 to 2, as Brier defined it. The forms differ by a factor: a matrix of two
    columns gives twice the value of one column. scikit-learn's ``brier_score_loss`` and others halve the sum
    by choice, which makes another score.

    Parameters
    ----------
    y_true : array_like of shape (n,), ScoreTable or CellTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. Of several classes: columns of `y_prob`,
        0 to k - 1, or any of `labels`. A table stands for labels and scores of two classes.
    y_prob : array_like of shape (n,) or (n, k)
        Probability of the positive class, or of every class, in [0, 1]. Rows of a matrix sum to 1.
    sample_weight : array_like of shape (n,), optional
        Finite weights >= 0. A weight of 0 is the same as no row. Not with a table.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive. Not with a matrix.
    labels : array_like of shape (k,), optional
        The label of each column of a matrix.

    Returns
    -------
    float
        Unitless; smaller is better. Tied scores need no rule.

    Raises
    ------
    ValueError
        If labels, probabilities or weights break their rules; the message names argument, rule, value and
        index.
    TypeError
        If `y_prob` is missing or given beside a table, or an option does not belong to its shape.

    Notes
    -----
    O(n), or O(n k), in blocks, without a copy of the columns; sums are pairwise. Of a CellTable the result is
    that of ``sum_squared_error``: not below the score but for 2^-46, and above it by less than 2^-27 of a
    cell's width and 2^-44.

    References
    ----------
    Brier, Monthly Weather Review 78 (1950), whose P is the sum over classes.

    Examples
    --------
    >>> brier_score([1, 0], [0.75, 0.5])  # (1/16 + 1/4) / 2
    0.15625
    >>> brier_score([1], [[0.25, 0.5, 0.25]])  # 1/16 + 1/4 + 1/16
    0.375
    """
    if isinstance(y_true, CellTable) and y_prob is None and sample_weight is None and pos_label is None:
        _labels_need_a_matrix(labels)
        table = given(y_true, None)
        assert isinstance(table, CellTable)
        return min(table.sum_squared_error / table.n, 1.0)
    return _mean_loss(y_true, y_prob, sample_weight, pos_label, labels, _Brier)


def log_loss(
    y_true: ArrayLike | ScoreTable,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: ArrayLike | None = None,
) -> float:
    """Mean of minus the natural logarithm of the probability that was given to what happened.

    Also called cross-entropy or negative log-likelihood, in nats. Infinite if a probability of 0 was given to
    what happened: nothing is clipped, so that a model which is certain and wrong cannot look good. Where that
    is not wanted, clip the probabilities, and say at what.

    Parameters
    ----------
    y_true : array_like of shape (n,) or ScoreTable
        As in `brier_score`. A CellTable cannot give this score.
    y_prob, sample_weight, pos_label, labels
        As in `brier_score`. A matrix of two columns gives the same value as its column of the positive class,
        up to rounding.

    Returns
    -------
    float
        In [0, inf], never NaN. Rows of weight 0 do not count, whatever their probability.

    Raises
    ------
    ValueError
        As in `brier_score`.
    TypeError
        As in `brier_score`, and if `y_true` is a CellTable.

    Notes
    -----
    For y = 0 what rounding takes from 1 - s is added again, as log1p does: small s lose no digits. O(n) in
    blocks; sums are pairwise.

    References
    ----------
    Good, Journal of the Royal Statistical Society B 14 (1952). scikit-learn's ``log_loss`` clips
    probabilities at the machine epsilon of their type instead.

    Examples
    --------
    >>> log_loss([1, 0], [0.5, 0.5])  # ln 2
    0.6931471805599453
    >>> log_loss([1, 0], [0.0, 0.5]), log_loss([1, 0], [1.0, 0.0])
    (inf, 0.0)
    """
    if isinstance(y_true, CellTable):
        raise TypeError(
            "y_true must keep every score for the log loss, which a CellTable does not: it holds sums of "
            "scores and of their squares; pass both columns, or a ScoreTable"
        )
    return _mean_loss(y_true, y_prob, sample_weight, pos_label, labels, _Log)


# ------------------------------------------------------------------------------------------------- per block


class _Brier:
    @staticmethod
    def binary(labels: NDArray[np.uint8], scores: Floats) -> Floats:
        loss = scores - labels
        loss *= loss
        return loss

    @staticmethod
    def classes(codes: NDArray[np.int64], block: Floats) -> Floats:
        block[np.arange(len(codes)), codes] -= 1.0
        loss: Floats = np.einsum("ij,ij->i", block, block)
        return loss

    @staticmethod
    def pooled(scores: Floats, hits: NDArray[Any], misses: NDArray[Any]) -> Floats:
        """Sum over the rows of each score."""
        loss: Floats = hits * (1.0 - scores) ** 2 + misses * scores**2
        return loss


class _Log:
    @staticmethod
    def binary(labels: NDArray[np.uint8], scores: Floats) -> Floats:
        loss, rest = np.empty((2, len(scores)))
        kernels.likelihoods(labels, scores, loss, rest)
        np.log(loss, out=loss)
        loss += rest
        return np.negative(loss, out=loss)

    @staticmethod
    def classes(codes: NDArray[np.int64], block: Floats) -> Floats:
        loss: Floats = -np.log(block[np.arange(len(codes)), codes])
        return loss

    @staticmethod
    def pooled(scores: Floats, hits: NDArray[Any], misses: NDArray[Any]) -> Floats:
        """Sum over the rows of each score; no rows times an infinite loss are 0."""
        loss: Floats = -hits * np.log(scores, out=np.zeros(len(scores)), where=hits > 0)
        loss -= misses * np.log1p(-scores, out=np.zeros(len(scores)), where=misses > 0)
        return loss


Loss = type[_Brier] | type[_Log]


def sum_of_losses(name: str, scores: Floats, hits: NDArray[Any], misses: NDArray[Any]) -> float:
    """Sum of "brier" or "log" losses over rows that are pooled by score."""
    loss: Loss = _Brier if name == "brier" else _Log
    return _pooled_sum(loss, scores, hits, misses)


def _pooled_sum(loss: Loss, scores: Floats, hits: NDArray[Any], misses: NDArray[Any]) -> float:
    with np.errstate(divide="ignore"):
        blocks = (slice(start, start + _BLOCK) for start in range(0, len(scores), _BLOCK))
        return _clean(math.fsum(float(loss.pooled(scores[b], hits[b], misses[b]).sum()) for b in blocks))


def _mean_loss(
    y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Any, labels: Any, loss: Loss
) -> float:
    if not isinstance(y_true, ScoreTable | CellTable) and is_matrix(y_prob):
        if pos_label is not None:
            raise TypeError("pos_label must be left out for a matrix; name its columns by labels")
        with named("y_prob"):
            classes = class_rows(y_true, y_prob, labels)
        mass = None if sample_weight is None else _validate.weights(sample_weight, len(classes.codes))
        return _mean(_class_losses(classes, loss), mass)
    _labels_need_a_matrix(labels)
    source, mass = weighted(y_true, y_prob, sample_weight, pos_label)
    if isinstance(source, ScoreTable):
        misses = source.counts - source.positives
        return _pooled_sum(loss, source.scores, source.positives, misses) / source.n
    with np.errstate(divide="ignore"):
        assert isinstance(source, _validate.Rows)
        return _mean(_binary_losses(source, loss.binary), mass)


def _labels_need_a_matrix(labels: Any) -> None:
    if labels is not None:
        raise TypeError("labels must be left out for one column of scores; the positive label is pos_label")


def _binary_losses(
    rows: _validate.Rows, loss: Callable[[NDArray[np.uint8], Floats], Floats]
) -> Iterator[tuple[int, Floats]]:
    for start in range(0, len(rows), _BLOCK):
        labels, scores, _ = rows.block(start, start + _BLOCK)
        yield start, loss(labels, scores)


def _class_losses(rows: ClassRows, loss: Loss) -> Iterator[tuple[int, Floats]]:
    for start, block in row_blocks(rows.matrix):
        values = np.clip(block.astype(np.float64), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            losses = loss.classes(rows.codes[start : start + len(block)], values)
        yield start, losses


def _mean(blocks: Iterator[tuple[int, Floats]], mass: Floats | None) -> float:
    """Mean of losses; weights are scaled by a power of two, so that no sum of them overflows."""
    sums, totals = [], []
    if mass is None:
        for _, losses in blocks:
            sums.append(float(losses.sum()))
            totals.append(float(len(losses)))
        return _clean(math.fsum(sums) / math.fsum(totals))
    exponent = exponent_of(mass)
    for start, losses in blocks:
        part = np.ldexp(mass[start : start + len(losses)], -exponent)
        np.multiply(losses, part, out=losses, where=part > 0.0)
        losses[part == 0.0] = 0.0
        sums.append(float(losses.sum()))
        totals.append(float(part.sum()))
    return _clean(math.fsum(sums) / math.fsum(totals))


def exponent_of(mass: Floats) -> int:
    """The e for which all weights times 2^-e are at most 1."""
    most = float(mass.max())
    if most == 0.0:
        raise ValueError("sample_weight must not be all zero")
    return math.frexp(most)[1]


def _clean(value: float) -> float:
    return value + 0.0  # not -0.0


# ------------------------------------------------------------------------------------------------- matrices


def is_matrix(values: Any) -> bool:
    """Whether there is more than one column; what is neither one nor several is for the checks to refuse."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple):
        return len(shape) == 2 and shape[1] != 1
    if isinstance(values, list | tuple) and len(values):
        first = values[0]
        return (isinstance(first, list | tuple) or getattr(first, "ndim", 0) == 1) and len(first) != 1
    return False


@contextmanager
def named(name: str) -> Iterator[None]:
    """Let messages about a matrix P call it by the name of the argument; quoted labels stay as they are."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(re.sub(r"(?<!['\"])\bP\b(?!['\"])", name, str(error))) from None
