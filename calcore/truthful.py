"""Truthful calibration errors: no report has a smaller expected error than the truth.

A binned error looks at sums of errors in bins. Their squares add up to bias plus variance, and the variance
is the same whatever is reported; so the truth is best (THEORY 11). Absolute values do not add
up: the usual expected calibration error of a true model falls if its scores are made equal. What holds:

======================================  ========  ========  =====  =========  ==================
error                                   truthful  complete  sound  dominance  bins are needed
======================================  ========  ========  =====  =========  ==================
`binary_lin_ce`, `classwise_lin_ce`,
`multiclass_lin_ce`, `lin_ce`           yes       yes       yes    yes        for soundness
`conf_ce`                               yes       yes       yes    yes        for soundness
`uncorrected_conf_ce`                   no        yes       yes    no         for soundness
`lin_ece`, `classwise_lin_ece`          no        yes       yes    no         for completeness
`conf_ece`                              no        yes       yes    no         for completeness
`classwise_brier`, `confidence_loss`    yes       no        yes    yes        no
======================================  ========  ========  =====  =========  ==================

*Truthful*: the true probabilities have the least expected error. *Complete*: the error of a calibrated model
tends to 0. *Sound*: that of a miscalibrated one does not, as far as bins can see. *Dominance*: of two
calibrated models, the one that knows more has no larger expected error.

All values are unitless. Squared errors are those of sums over n rows divided by n, so they are small: 1/n
times a proper loss if the model is calibrated. Compare models on the same rows.

References
----------
Lu, Wu, Hartline & Hu (2025), arXiv 2510.06388. Hartline, Hu & Wu (2025), arXiv 2508.13100, for two classes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calcore import _validate
from calcore._classes import ClassRows, class_rows, row_blocks
from calcore.kernels import binning
from calcore.kernels import truthful as kernels

__all__ = [
    "RankingVerdict",
    "binary_lin_ce",
    "binary_lin_ece",
    "classwise_brier",
    "classwise_lin_ce",
    "classwise_lin_ece",
    "conf_ce",
    "conf_ece",
    "confidence_loss",
    "lin_ce",
    "lin_ece",
    "multiclass_lin_ce",
    "rank_bins",
    "ranking_verdict",
    "recalibrated",
    "uncorrected_conf_ce",
]

Rng = int | np.random.Generator | np.random.SeedSequence | None
Strategy = Literal["quantile", "uniform"]

_STRATEGIES = ("quantile", "uniform")
_FEW = 5
"""Rows per bin below which bins count as nearly empty."""

_WIDTH = 8
"""Columns copied at once: in rows of float64 they share a cache line."""


# ------------------------------------------------------------------------------------------------------- bins


class _Binner:
    """Puts scores into bins; the order of tied rows is drawn once, when the first tie has to be split."""

    def __init__(self, n: int, n_bins: object, strategy: object, rng: Rng) -> None:
        self.n_bins = _validate.bin_count(n_bins)
        self.strategy = _validate.choice(strategy, "strategy", _STRATEGIES)
        self._generator = _validate.generator(rng)
        self._order: NDArray[np.int64] | None = None
        if self.strategy == "quantile":
            self.n_bins = min(self.n_bins, n)
            self._starts = np.arange(self.n_bins + 1) * n // self.n_bins

    def __call__(self, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
        """Bins of scores that are contiguous and read-only, and how many bins there may be."""
        if self.strategy == "uniform":
            return _compact(binning.uniform_bins(scores, self.n_bins), self.n_bins)
        starts = self._starts
        ordered = np.sort(scores)
        lasts, firsts = ordered[starts[1:-1] - 1], ordered[starts[1:-1]]
        index = kernels.bins_below(scores, firsts)
        tied = np.unique(firsts[lasts == firsts])
        if len(tied):
            if self._order is None:
                self._order = self._generator.permutation(len(scores))
            kernels.split_ties(scores, self._order, tied, np.searchsorted(ordered, tied), starts, index)
        return index, self.n_bins


def _compact(index: NDArray[np.int64], n_bins: int) -> tuple[NDArray[np.int64], int]:
    """The same bins, numbered anew where their numbers would need more memory than the rows."""
    if n_bins <= 4 * len(index):
        return index, n_bins
    used, inverse = np.unique(index, return_inverse=True)
    return inverse.astype(np.int64, copy=False), len(used)


def rank_bins(y_prob: ArrayLike, n_bins: int = 15, *, rng: Rng = 0) -> NDArray[np.int64]:
    """Bins of equal counts: the rows of rank floor(j n / n_bins) to floor((j + 1) n / n_bins) - 1, by score.

    Use them where counts must not depend on the scores; `calcore.quantile_bins` keeps ties together instead.

    Parameters
    ----------
    y_prob : array_like of shape (n,)
        Scores in [0, 1].
    n_bins : int, default 15
        At least 1. If there are fewer rows, each row has a bin of its own.
    rng : int, Generator, SeedSequence or None, default 0
        Decides who goes first among rows with equal scores, if a cut falls between them.

    Returns
    -------
    ndarray of int64, shape (n,)
        Bins are numbered by ascending score. There are min(n, n_bins), and their counts differ by 1 at most.

    Raises
    ------
    ValueError
        If scores break their rule, or `n_bins` is no whole number >= 1.

    Notes
    -----
    *Why equal counts.* The squared error (1/n^2) sum_B |sum_{i in B} (u_i - y_i)|^2 is truthful for all bins
    that do not depend on labels. The usual one, (1/n) sum_B (1/n_B) |sum_{i in B} (u_i - y_i)|^2, is not: who
    moves rows from bin to bin moves the divisors n_B. If counts are equal, it is the first one times the
    number of bins, and truthful with it. They also keep every bin full where scores crowd together.

    *Why the rule must not see labels.* If tied rows with label 0 were to come first, one bin would hold the
    zeros and the next the ones, and a constant score would look miscalibrated however true it is. Here
    tied rows come in the order of one random permutation of the row numbers, drawn from `rng`; so who of them
    is in which bin depends on where the rows stand, and on nothing else.

    O(n log n).

    Examples
    --------
    >>> rank_bins([0.9, 0.1, 0.3, 0.2], 2)
    array([1, 0, 1, 0])
    >>> np.bincount(rank_bins([0.5] * 7, 3))
    array([2, 2, 3])
    """
    scores = _validate.scores(y_prob)
    return _Binner(len(scores), n_bins, "quantile", rng)(scores)[0]


def _bin_numbers(bins: Any, n: int) -> tuple[NDArray[np.int64], int]:
    column = _validate.number_column(bins, "bins")
    if len(column) != n:
        raise ValueError(f"bins must have one number per row; got {len(column)} for {n} rows")
    if column.dtype.kind == "f":
        whole = np.isfinite(column) & (np.abs(column) < 2.0**53)
        whole[whole] = column[whole] == np.floor(column[whole])
        if not whole.all():
            first = int(np.argmin(whole))
            raise ValueError(f"bins must be whole numbers; got {column[first]} at index {first}")
    low, high = column.min(), column.max()
    if low < 0 or high >= 4 * n:
        used, inverse = np.unique(column, return_inverse=True)
        return inverse.astype(np.int64), len(used)
    return np.array(column, np.int64), int(high) + 1  # a copy: of one type, whatever the input


# ------------------------------------------------------------------------------------ given linear properties


def lin_ce(outcomes: ArrayLike, reports: ArrayLike, bins: ArrayLike) -> float:
    """Truthful calibration error of reported means phi(y), for bins that are given.

    LinCE = (1/n^2) sum_B | sum_{i in B} (u_i - phi(y_i)) |^2, with the Euclidean norm.

    Use it for any numbers of which a model reports the expectation: labels, one-hot labels, counts, moments.
    `binary_lin_ce`, `classwise_lin_ce` and `multiclass_lin_ce` are the cases of probabilities.

    Parameters
    ----------
    outcomes : array_like of shape (n,) or (n, d)
        phi(y_i), finite numbers.
    reports : array_like of the same shape
        u_i, the reported expectation of phi(y_i).
    bins : array_like of int, shape (n,)
        The bin of each row, any integers: `rank_bins`, `calcore.uniform_bins` or others. They may depend on
        reports but not on outcomes; the error is not truthful otherwise.

    Returns
    -------
    float
        At least 0; the unit is that of `outcomes`, squared.

    Raises
    ------
    ValueError
        If shapes differ, there are no rows, a number is not finite or too large to square, or a bin is no
        whole number.
    TypeError
        If an argument does not hold numbers.

    Notes
    -----
    Its expectation for independent rows is (1/n^2) (sum_B |sum_B (u_i - E phi(y_i))|^2 + sum_i tr Var
    phi(y_i)), and nothing but the first sum depends on the reports. A report whose errors cancel in every bin
    is as good as the truth: truthfulness is not strict.

    Sums are compensated; O(n d) if bins are numbered 0 to 4 n, else O(n log n).

    References
    ----------
    arXiv 2510.06388.

    Examples
    --------
    >>> lin_ce([1, 0, 1], [0.5, 0.25, 0.75], [0, 0, 1])  # ((-1/4)^2 + (-1/4)^2) / 9
    0.013888888888888888
    """
    return math.fsum(float(np.sum(sums * sums)) for sums in _given(outcomes, reports, bins))


def lin_ece(outcomes: ArrayLike, reports: ArrayLike, bins: ArrayLike) -> float:
    """Return (1/n) sum_B | sum_{i in B} (u_i - phi(y_i)) |: for comparison, *not* truthful.

    Bins are given. For one-dimensional reports it is the expected calibration error as usual.

    Parameters
    ----------
    outcomes, reports, bins
        As in `lin_ce`.

    Returns
    -------
    float
        In the unit of `outcomes`. The norm is Euclidean for d > 1: what `lin_ce` squares.

    Raises
    ------
    ValueError, TypeError
        As in `lin_ce`.

    Notes
    -----
    If rows are truly 1 with probability .4, two of them in a bin have expected error .288; reporting .5
    instead lowers it to .26.

    Examples
    --------
    >>> lin_ece([1, 0, 1], [0.5, 0.25, 0.75], [0, 0, 1])  # (1/4 + 1/4) / 3
    0.16666666666666666
    """
    squares: Any = 0.0
    for sums in _given(outcomes, reports, bins):
        squares = squares + sums * sums
    return math.fsum(np.sqrt(squares))


def _given(outcomes: Any, reports: Any, bins: Any) -> Iterator[NDArray[np.float64]]:
    """Sums of errors in bins over n, one dimension after the other."""
    phi, u = _numbers(outcomes, "outcomes"), _numbers(reports, "reports")
    if phi.shape != u.shape:
        raise ValueError(f"outcomes and reports must have the same shape; got {phi.shape} and {u.shape}")
    n = len(phi)
    index, n_bins = _bin_numbers(bins, n)
    pairs = zip(_number_columns(phi, "outcomes"), _number_columns(u, "reports"), strict=True)
    for outcome, report in pairs:
        sums = kernels.number_errors(report, outcome, index, n_bins) / n
        if not np.all(np.abs(sums) < 1e150):
            raise ValueError(
                f"reports and outcomes must differ by less than 1e150 in a bin; got {_largest(sums)}"
            )
        yield sums


def _largest(sums: NDArray[np.float64]) -> str:
    return f"{np.abs(sums).max():.3g}" if np.isfinite(sums).all() else "numbers that overflow"


def _numbers(values: Any, name: str) -> NDArray[Any]:
    shape = getattr(values, "shape", None)
    if shape is None or len(shape) != 2:
        try:
            values = values if shape is not None else np.asarray(values)
        except ValueError as error:
            raise ValueError(f"{name} must be a column or a matrix of numbers; {error}") from error
        if getattr(values, "ndim", 1) != 2:
            return _validate.number_column(values, name)
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} must not have missing values; fill or drop them")
    matrix: NDArray[Any] = np.asarray(values)
    if matrix.size == 0:
        raise ValueError(f"{name} must have at least one row and one column; got shape {matrix.shape}")
    if matrix.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold numbers; got dtype {matrix.dtype}")
    return matrix


def _number_columns(matrix: NDArray[Any], name: str) -> Iterator[NDArray[np.float64]]:
    if matrix.ndim == 1:
        yield _validate.read_only(_validate.finite(matrix, name))
        return
    for start in range(0, matrix.shape[1], _WIDTH):
        for j, column in enumerate(np.ascontiguousarray(matrix[:, start : start + _WIDTH].T), start):
            yield _validate.read_only(_validate.finite(column, f"{name}[:, {j}]"))


def recalibrated(outcomes: ArrayLike, reports: ArrayLike, bins: ArrayLike) -> NDArray[np.float64]:
    """Move the reports of every bin by the bin's mean error, so that its errors add up to 0.

    Parameters
    ----------
    outcomes, reports, bins
        As in `lin_ce`. For probabilities of classes, `outcomes` are one-hot labels.

    Returns
    -------
    ndarray of float64, of the shape of `reports`
        u_i - (1/n_B) sum_{j in B} (u_j - phi(y_j)). Of all shifts of bins this one has the least squared
        error. Probabilities keep their sum, but may leave [0, 1].

    Raises
    ------
    ValueError, TypeError
        As in `lin_ce`.

    Notes
    -----
    O(n d). A shift is estimated from the rows that it is applied to, so the loss of the result is too low;
    `ranking_verdict` corrects for that.

    Examples
    --------
    >>> recalibrated([1, 0, 1], [0.5, 0.25, 0.75], [0, 0, 1])
    array([0.625, 0.375, 1.   ])
    """
    phi, u = _numbers(outcomes, "outcomes"), _numbers(reports, "reports")
    sums = list(_given(phi, u, bins))
    index, n_bins = _bin_numbers(bins, len(phi))
    share = np.bincount(index, minlength=n_bins) / len(phi)
    share[share == 0.0] = 1.0
    moved = np.array(u, np.float64, order="C")
    for j, mean in enumerate(sums):
        column = moved if moved.ndim == 1 else moved[:, j]
        column -= (mean / share)[index]
    return moved


# ------------------------------------------------------------------------------------------------ two classes


def binary_lin_ce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    rng: Rng = 0,
    pos_label: Any = None,
) -> float:
    """Truthful calibration error of a score: (1/n^2) sum_B (sum_{i in B} (s_i - y_i))^2.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    n_bins, strategy, rng
        As in `classwise_lin_ce`.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        If labels, scores or an option break their rules.

    Notes
    -----
    Half of `multiclass_lin_ce` for the same bins, since both classes have the same error; equal to
    `classwise_lin_ce` of [1 - s, s] if `n_bins` divides n and no tie is split. One class in `y_true` is no
    special case. O(n log n).

    References
    ----------
    Hartline, Hu & Wu (2025), arXiv 2508.13100.

    Examples
    --------
    >>> binary_lin_ce([0, 1, 1, 1], [0.25, 0.25, 0.5, 0.75], n_bins=2)  # ((-1/2)^2 + (-3/4)^2) / 16
    0.05078125
    """
    errors, n = _binary_errors(y_true, y_prob, n_bins, strategy, rng, pos_label)
    return _squared(errors, n)


def binary_lin_ece(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    rng: Rng = 0,
    pos_label: Any = None,
) -> float:
    """Return (1/n) sum_B |sum_{i in B} (s_i - y_i)|: for comparison with `binary_lin_ce`, *not* truthful.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, rng, pos_label
        As in `binary_lin_ce`.

    Returns
    -------
    float
        In [0, 1]: the expected calibration error, with bins of equal counts if `strategy` is "quantile".

    Raises
    ------
    ValueError, TypeError
        As in `binary_lin_ce`.

    Examples
    --------
    >>> binary_lin_ece([0, 1, 1, 1], [0.25, 0.25, 0.5, 0.75], n_bins=2)  # (1/2 + 3/4) / 4
    0.3125
    """
    errors, n = _binary_errors(y_true, y_prob, n_bins, strategy, rng, pos_label)
    return _absolute(errors, n)


def _binary_errors(
    y_true: Any, y_prob: Any, n_bins: object, strategy: object, rng: Rng, pos_label: Any
) -> tuple[NDArray[np.float64], int]:
    rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
    binner = _Binner(len(rows), n_bins, strategy, rng)
    labels, scores, _ = rows.block(0, len(rows))
    return kernels.label_errors(scores, labels, *binner(scores))[0], len(rows)


def _squared(errors: NDArray[np.float64], n: int) -> float:
    means = errors / n
    return float(math.fsum(means * means))


def _absolute(errors: NDArray[np.float64], n: int) -> float:
    return math.fsum(np.abs(errors)) / n


# -------------------------------------------------------------------------------------------- several classes


def classwise_lin_ce(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    labels: ArrayLike | None = None,
    rng: Rng = 0,
) -> float:
    """Truthful calibration error of the probabilities of every class by itself.

    (1/k) sum_r (1/n^2) sum_B (sum_{i in B} (p_ir - 1[y_i = r]))^2, with bins made anew for every class r.

    Use it to compare models on the same rows; it cannot be lowered, in expectation, by reporting anything
    else than the true probabilities. It does not see errors that cancel within a bin.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Columns of P, 0 to k - 1; or, with `labels`, any of these.
    P : array_like of shape (n, k)
        Probabilities of all classes; every row sums to 1. Any float dtype and memory order.
    n_bins : int, default 15
        At least 1.
    strategy : {"quantile", "uniform"}, default "quantile"
        "quantile": equal counts, as in `rank_bins`; with fewer rows than bins, each row has its own.
        "uniform": bin j is [j / n_bins, (j + 1) / n_bins), the last one closed, edges being the nearest
        doubles.
    labels : array_like of shape (k,), optional
        The label of each column.
    rng : int, Generator, SeedSequence or None, default 0
        For "quantile": decides, without looking at labels, who of equally scored rows goes into which bin, if
        a cut falls between them (`rank_bins` says why). One order of the rows serves all classes.

    Returns
    -------
    float
        In [0, 1]. About Brier/(k n) for a calibrated model (`classwise_brier`).

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Notes
    -----
    Classes are the columns of P, whether they occur in `y_true` or not. P is not copied: 8 columns are, at
    a time. O(k n log n). Scores are added in two words, labels are counted.

    References
    ----------
    arXiv 2510.06388.

    Examples
    --------
    >>> P = [[0.5, 0.5], [0.25, 0.75]]
    >>> classwise_lin_ce([0, 1], P, n_bins=1)  # both classes: sum of errors -1/4, and 1/4
    0.015625
    >>> classwise_lin_ce([0, 1], P, n_bins=2)  # the Brier score over k n: (1/4 + 1/16) / 4
    0.078125
    """
    errors, n = _class_errors(y_true, P, n_bins, strategy, labels, rng)
    return _mean([_squared(sums, n) for sums in errors])


def classwise_lin_ece(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    labels: ArrayLike | None = None,
    rng: Rng = 0,
) -> float:
    """Return (1/k) sum_r (1/n) sum_B |sum_{i in B} (p_ir - 1[y_i = r])|: for comparison, *not* truthful.

    Parameters
    ----------
    y_true, P, n_bins, strategy, labels, rng
        As in `classwise_lin_ce`.

    Returns
    -------
    float
        In [0, 1]; the mean over classes, not their sum.

    Raises
    ------
    ValueError, TypeError
        As in `classwise_lin_ce`.

    Examples
    --------
    >>> classwise_lin_ece([0, 1], [[0.5, 0.5], [0.25, 0.75]], n_bins=1)  # 1/4 over 2 rows, twice
    0.125
    """
    errors, n = _class_errors(y_true, P, n_bins, strategy, labels, rng)
    return _mean([_absolute(sums, n) for sums in errors])


def _class_errors(
    y_true: Any, P: Any, n_bins: object, strategy: object, labels: Any, rng: Rng
) -> tuple[Iterator[NDArray[np.float64]], int]:
    rows = class_rows(y_true, P, labels)
    binner = _Binner(len(rows.codes), n_bins, strategy, rng)
    columns = (kernels.label_errors(s, y, *binner(s))[0] for y, s in _class_columns(rows))
    return columns, len(rows.codes)


def _class_columns(rows: ClassRows) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float64]]]:
    """Whether each row has the class, and the probability of that, class after class."""
    for j, column in enumerate(rows.columns()):
        yield _block(rows.codes == j, column)


def _block(hits: NDArray[np.bool_], column: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Labels 0/1 and scores in [0, 1] as compiled loops take them; `column` is checked already."""
    labels, scores, _ = _validate.Rows(hits, column, True, False).block(0, len(hits))
    return labels, scores


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def multiclass_lin_ce(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    bins: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    labels: ArrayLike | None = None,
    rng: Rng = 0,
) -> float:
    """Truthful calibration error of whole probability vectors: `lin_ce` of P and one-hot labels.

    (1/n^2) sum_B sum_r (sum_{i in B} (p_ir - 1[y_i = r]))^2.

    Use it if vectors matter, not only classes one by one; it sees what the bins can tell apart.

    Parameters
    ----------
    y_true, P, labels
        As in `classwise_lin_ce`.
    bins : array_like of int, shape (n,), optional
        The bin of each row. They may depend on P, but not on `y_true`. By default a bin holds the rows with
        one most probable class (first column on ties) and with largest probabilities in one of `n_bins`
        bins, which are made of all rows as `strategy` says: up to k n_bins bins, of which many may be empty.
    n_bins, strategy, rng
        For the default bins; as in `classwise_lin_ce`.

    Returns
    -------
    float
        In [0, 2]. About Brier/n for a calibrated model, with the Brier score summed over classes.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Warns
    -----
    UserWarning
        If bins that are not empty hold less than 5 rows on average. The error is then little else than
        Brier/n, and says nothing about calibration.

    Notes
    -----
    O(n k + n log n) time and O(n + bins) memory beside P, which is not copied.

    References
    ----------
    arXiv 2510.06388; the default bins are a choice of ours.

    Examples
    --------
    >>> multiclass_lin_ce([0, 1] * 5, [[0.5, 0.5], [0.25, 0.75]] * 5, bins=[0] * 10)  # 2 (5/4 / 10)^2
    0.03125
    """
    rows = class_rows(y_true, P, labels)
    n, k = rows.matrix.shape
    if bins is None:
        binner = _Binner(n, n_bins, strategy, rng)
        confidence, _ = rows.top()
        index, used = binner(_block(np.zeros(n, np.bool_), confidence)[1])
        index += rows.best * used
        index, used = _compact(index, k * used)
    else:
        index, used = _bin_numbers(bins, n)
    filled = np.count_nonzero(np.bincount(index, minlength=used))
    if n < _FEW * filled:
        warnings.warn(
            f"bins are nearly empty: {n} rows in {filled} bins. The error then is little else than the Brier "
            "score over n; use fewer bins or more rows",
            UserWarning,
            stacklevel=_validate.callers_level(),
        )
    return math.fsum(_squared(kernels.label_errors(s, y, index, used)[0], n) for y, s in _class_columns(rows))


# ------------------------------------------------------------------------------------------- the chosen class


def conf_ce(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    labels: ArrayLike | None = None,
    rng: Rng = 0,
) -> float:
    """Truthful calibration error of the confidence in the most probable class.

    (1/n^2) sum_B (sum_{i in B} (c_i - z_i))^2 + (1/n) (1 - (1/n) sum_i z_i), where c_i is the largest
    probability of row i and z_i is 1 if its class is the label. The second term, the rate of errors over n,
    is what makes it truthful: without it, a model gains by choosing a class whose label varies less
    (`uncorrected_conf_ce`).

    Parameters
    ----------
    y_true, P, labels
        As in `classwise_lin_ce`. Of equal probabilities the first column is the choice.
    n_bins, strategy, rng
        Bins of c; as in `classwise_lin_ce`.

    Returns
    -------
    float
        In [0, 2]. About 1/n times `confidence_loss` for a calibrated model.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Notes
    -----
    In a row whose choice is right with probability a, variance and correction add up to (1 - a^2)/n^2, which
    is least for the most probable class. It sees nothing but the confidence. O(n k + n log n).

    References
    ----------
    arXiv 2510.06388.

    Examples
    --------
    >>> conf_ce([0, 1], [[0.5, 0.5], [0.25, 0.75]], n_bins=1)  # c = 1/2, 3/4; z = 1, 1
    0.140625
    >>> conf_ce([0, 2], [[0.5, 0.5, 0], [0.25, 0.75, 0]], n_bins=1)  # z = 1, 0: (1/8)^2 + 1/4
    0.265625
    """
    errors, n, right = _top_errors(y_true, P, n_bins, strategy, labels, rng)
    return _squared(errors, n) + (n - right) / n / n


def uncorrected_conf_ce(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    labels: ArrayLike | None = None,
    rng: Rng = 0,
) -> float:
    """Return (1/n^2) sum_B (sum_{i in B} (c_i - z_i))^2, `conf_ce` without its correction: *not* truthful.

    Parameters
    ----------
    y_true, P, n_bins, strategy, labels, rng
        As in `conf_ce`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        As in `conf_ce`.

    Notes
    -----
    If the truth is (1/2, 1/3, 1/6), a single row reported truly has expected error 1/4; choosing the second
    class with confidence 1/3 lowers that to 2/9. With the correction: 3/4 against 8/9 (published example).

    Examples
    --------
    >>> uncorrected_conf_ce([0, 1], [[0.5, 0.5], [0.25, 0.75]], n_bins=1)  # (3/4 / 2)^2
    0.140625
    """
    errors, n, _ = _top_errors(y_true, P, n_bins, strategy, labels, rng)
    return _squared(errors, n)


def conf_ece(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    labels: ArrayLike | None = None,
    rng: Rng = 0,
) -> float:
    """Return (1/n) sum_B |sum_{i in B} (c_i - z_i)|: for comparison with `conf_ce`, *not* truthful.

    Parameters
    ----------
    y_true, P, n_bins, strategy, labels, rng
        As in `conf_ce`.

    Returns
    -------
    float
        In [0, 1]: the expected calibration error of the top label, as usual.

    Raises
    ------
    ValueError, TypeError
        As in `conf_ce`.

    Examples
    --------
    >>> conf_ece([0, 1], [[0.5, 0.5], [0.25, 0.75]], n_bins=1)  # 3/4 over 2 rows
    0.375
    """
    errors, n, _ = _top_errors(y_true, P, n_bins, strategy, labels, rng)
    return _absolute(errors, n)


def _top_errors(
    y_true: Any, P: Any, n_bins: object, strategy: object, labels: Any, rng: Rng
) -> tuple[NDArray[np.float64], int, int]:
    """Sums of errors in bins, rows, and rows whose most probable class is the label."""
    rows = class_rows(y_true, P, labels)
    binner = _Binner(len(rows.codes), n_bins, strategy, rng)
    confidence, correct = rows.top()
    hits, scores = _block(correct, confidence)
    errors, _ = kernels.label_errors(scores, hits, *binner(scores))
    return errors, len(hits), int(np.count_nonzero(hits))


# ---------------------------------------------------------------------------------------------- proper losses


def classwise_brier(y_true: ArrayLike, P: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Brier score over the number of classes, (1/(n k)) sum_i sum_r (p_ir - 1[y_i = r])^2.

    The proper loss of `classwise_lin_ce`: n times that error is this loss, if every row has a bin of its own,
    or in expectation, if the model is calibrated.

    Parameters
    ----------
    y_true, P, labels
        As in `classwise_lin_ce`.

    Returns
    -------
    float
        In [0, 2/k].

    Raises
    ------
    ValueError, TypeError
        As in `classwise_lin_ce`.

    Notes
    -----
    O(n k), P is read in blocks.

    Examples
    --------
    >>> classwise_brier([0, 1], [[0.5, 0.5], [0.25, 0.75]])  # (1/4 + 1/4 + 1/16 + 1/16) / 4
    0.15625
    """
    rows = class_rows(y_true, P, labels)
    n, k = rows.matrix.shape
    parts = []
    for start, block in row_blocks(rows.matrix):
        off = np.clip(block.astype(np.float64), 0.0, 1.0)
        off[np.arange(len(block)), rows.codes[start : start + len(block)]] -= 1.0
        parts.append(float(np.sum(off * off)))
    return float(math.fsum(parts) / (n * k))


def confidence_loss(y_true: ArrayLike, P: ArrayLike, *, labels: ArrayLike | None = None) -> float:
    """Return the mean of 1 - z_i + (c_i - z_i)^2: the rate of errors, plus the Brier score of the confidence.

    The proper loss of `conf_ce`: n times that error is this loss, if every row has a bin of its own, or in
    expectation, if the confidence is calibrated.

    Parameters
    ----------
    y_true, P, labels
        As in `conf_ce`.

    Returns
    -------
    float
        In [0, 2]. Least, in expectation, for the most probable class and its true probability a: 1 - a^2.

    Raises
    ------
    ValueError, TypeError
        As in `conf_ce`.

    References
    ----------
    arXiv 2510.06388.

    Examples
    --------
    >>> confidence_loss([0, 1], [[0.5, 0.5], [0.75, 0.25]])  # (1/4 + 1 + 9/16) / 2
    0.90625
    """
    rows = class_rows(y_true, P, labels)
    confidence, correct = rows.top()
    hits, scores = _block(correct, confidence)
    off = scores - hits
    return float(np.mean(off * off)) + (len(hits) - int(np.count_nonzero(hits))) / len(hits)


# --------------------------------------------------------------------------------------------------- rankings


@dataclass(frozen=True, slots=True, eq=False)
class RankingVerdict:
    """Whether a calibration error ranks two models as their proper loss does; from `ranking_verdict`.

    For each model, n times the error is ``loss + rho``.

    Attributes
    ----------
    better : {"a", "b", None}
        The model with the smaller calibration error on these rows; None if the errors are equal.
    certain : bool
        Whether that ranking follows from the proper loss: the model has the smaller loss after recalibration
        too, by more than its own rho and the sampling noise. If False, bins, noise or miscalibration may have
        decided it.
    reason : str
        The verdict in words.
    error_a, error_b : float
        Calibration errors: `classwise_lin_ce` or `conf_ce`.
    loss_a, loss_b : float
        Estimated proper loss of each model after its bins are recalibrated.
    rho_a, rho_b : float
        What miscalibration adds, n error - loss: estimates of numbers >= 0, which may be negative.
    gap : float
        Difference of the two losses, >= 0.
    rho : float
        rho of the model with the smaller loss, or 0 if that is negative: what the gap must exceed.
    margin : float
        Allowance for sampling noise in gap - rho; the gap must exceed rho by more than this.
    measure : {"classwise", "confidence"}
    n, n_classes : int
        Rows and columns of each matrix.
    n_bins : int
        As given.
    strategy : {"quantile", "uniform"}
    delta : float
        One-sided level of `margin`.
    """

    better: str | None
    certain: bool
    reason: str
    error_a: float
    error_b: float
    loss_a: float
    loss_b: float
    rho_a: float
    rho_b: float
    gap: float
    rho: float
    margin: float
    measure: str
    n: int
    n_classes: int
    n_bins: int
    strategy: str
    delta: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"<RankingVerdict: {self.reason}>"


def ranking_verdict(
    y_true: ArrayLike,
    P_a: ArrayLike,
    P_b: ArrayLike,
    *,
    measure: Literal["classwise", "confidence"] = "classwise",
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    labels: ArrayLike | None = None,
    delta: float = 0.05,
    rng: Rng = 0,
) -> RankingVerdict:
    """Tell whether the ranking of two models by their truthful calibration error is certain.

    In expectation, n times the error is the proper loss that is left after recalibration, plus rho >= 0 from
    miscalibration. If the losses differ by more than rho of the model with the smaller loss, that model has
    the smaller error, whatever the other's rho is. Otherwise the ranking depends on how much the bins see of
    either miscalibration, and may turn with the number of bins.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels of the rows that both models predict.
    P_a, P_b : array_like of shape (n, k)
        Probabilities by each model; as P in `classwise_lin_ce`.
    measure : {"classwise", "confidence"}, default "classwise"
        `classwise_lin_ce` with Brier/k, or `conf_ce` with the loss of `confidence_loss`.
    n_bins, strategy, labels, rng
        As in `classwise_lin_ce`. One order of the rows serves both models.
    delta : float, default 0.05
        In (0, 1): `margin` is the 1 - delta quantile of the noise.

    Returns
    -------
    RankingVerdict

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Notes
    -----
    With d = report - outcome, n_B rows and the sample variance v_B of d in bin B (divisor n_B - 1), the loss
    is estimated by (1/n) sum_B n_B v_B, plus the rate of errors for "confidence": without bias, for
    independent draws from one population (THEORY 11). A bin of one row counts for rho: nothing
    tells its bias from its noise.

    `margin` is the 1 - delta quantile of the normal law times the standard errors of the better model's n
    error and of the other's loss, added up, and averaged over classes, as if all were perfectly correlated.
    Into each enter, beside what was seen, as many rows of a rare label as may have gone unseen: the square of
    that quantile, as in Wilson's interval. It is an approximation for many bins. Its relative size is of
    order sqrt(2 / n_bins), so that a certain ranking of similar models needs many bins.

    References
    ----------
    arXiv 2510.06388 for the decomposition; estimates and margin are ours.

    Examples
    --------
    >>> sure, vague = [[0.9, 0.1], [0.1, 0.9]] * 500, [[0.5, 0.5]] * 1000
    >>> verdict = ranking_verdict([0, 1] * 450 + [1, 0] * 50, sure, vague, n_bins=50)
    >>> verdict.better, verdict.certain
    ('a', True)
    >>> ranking_verdict([0, 1] * 500, vague, vague)
    <RankingVerdict: uncertain: the calibration errors are equal>
    """
    measure_ = _validate.choice(measure, "measure", ("classwise", "confidence"))
    level = _validate.probability(delta, "delta")
    rows_a, rows_b = _model_rows(y_true, P_a, labels, "P_a"), _model_rows(y_true, P_b, labels, "P_b")
    n, k = rows_a.matrix.shape
    if rows_b.matrix.shape[1] != k:
        raise ValueError(
            f"P_a and P_b must have the same number of columns; got {k} and {rows_b.matrix.shape[1]}"
        )
    binner = _Binner(n, n_bins, strategy, rng)
    quantile = float(ndtri(1.0 - level))
    a, b = (_loss_and_rho(rows, measure_, binner, quantile**2) for rows in (rows_a, rows_b))
    better = None if a.total == b.total else "a" if a.total < b.total else "b"
    best, other = (a, b) if a.loss <= b.loss else (b, a)
    gap, rho = other.loss - best.loss, max(best.total - best.loss, 0.0)
    margin = max(quantile * (best.total_error + other.loss_error), 0.0)
    reason, certain = f"certain: model {better} is better, by its proper loss", False
    if better is None:
        reason = "uncertain: the calibration errors are equal"
    elif best is not (a if better == "a" else b) or gap == 0.0:
        reason = (
            f"uncertain: model {better} has the smaller error, but not the smaller loss once recalibrated"
        )
    elif gap <= rho:
        reason = f"uncertain: losses differ by {gap:.3g}, but miscalibration adds {rho:.3g}"
    elif gap <= rho + margin:
        reason = f"uncertain: losses differ by {gap:.3g}; miscalibration adds {rho:.3g}, noise {margin:.3g}"
    else:
        certain = True
    return RankingVerdict(
        better=better,
        certain=certain,
        reason=reason,
        error_a=a.total / n,
        error_b=b.total / n,
        loss_a=a.loss,
        loss_b=b.loss,
        rho_a=a.total - a.loss,
        rho_b=b.total - b.loss,
        gap=gap,
        rho=rho,
        margin=margin,
        measure=measure_,
        n=n,
        n_classes=k,
        n_bins=_validate.bin_count(n_bins),
        strategy=str(strategy),
        delta=level,
    )


def _model_rows(y_true: Any, P: Any, labels: Any, name: str) -> ClassRows:
    """`class_rows`, with P called by the name that the user knows."""
    with _validate.renamed("P must", f"{name} must"), _validate.renamed("and P ", f"and {name} "):
        return class_rows(y_true, P, labels)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """n times an error, the loss of the recalibrated, and standard errors of both that err upwards."""

    total: float
    loss: float
    total_error: float
    loss_error: float


def _loss_and_rho(rows: ClassRows, measure: str, binner: _Binner, unseen: float) -> _Parts:
    if measure == "classwise":
        every = [_binned_parts(y, s, binner, unseen) for y, s in _class_columns(rows)]
        return _Parts(
            _mean([p.total for p in every]),
            _mean([p.loss for p in every]),
            _mean([p.total_error for p in every]),
            _mean([p.loss_error for p in every]),
        )
    confidence, correct = rows.top()
    hits, scores = _block(correct, confidence)
    parts = _binned_parts(hits, scores, binner, unseen)
    n = len(hits)
    wrong = (n - int(np.count_nonzero(hits))) / n
    noise = math.sqrt(wrong * (1.0 - wrong) * n + unseen) / n
    return _Parts(
        parts.total + wrong, parts.loss + wrong, parts.total_error + noise, parts.loss_error + noise
    )


def _binned_parts(
    labels: NDArray[np.uint8], scores: NDArray[np.float64], binner: _Binner, unseen: float
) -> _Parts:
    """`unseen` rows of a label that may not have been seen count besides, where they weigh most."""
    n = len(scores)
    index, n_bins = binner(scores)
    errors, rows = kernels.label_errors(scores, labels, index, n_bins)
    several = rows > 1
    means = errors / np.maximum(rows, 1)
    seconds, fourths = kernels.scatter(scores, labels, index, means)
    squares = errors * errors
    variances = np.where(several, seconds / np.maximum(rows - 1, 1), 0.0)
    own = rows * variances
    # Var D^2 = 2 (n_B v)^2 + 4 n_B v (n_B bias)^2 for a normal sum D; one row: at most d^4
    spread = np.where(several, 2.0 * own**2 + 4.0 * own * np.maximum(squares - own, 0.0), squares**2)
    return _Parts(
        math.fsum(squares) / n,
        math.fsum(own) / n,
        math.sqrt(math.fsum(spread) + unseen * (1.0 + 2.0 * float(np.abs(errors).max())) ** 2) / n,
        math.sqrt(math.fsum(fourths) + unseen) / n,
    )
