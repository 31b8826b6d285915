"""The small weighted accumulator behind equal-width metrics."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import binning, exact_sums
from calcore.table import grids
from calcore.table.base import BLOCK

Norm = Literal["l1", "l2", "max", "avg"]

_UNCARRIED_ROWS = 2**28
"""Rows that may be added before the words of the sums are carried over."""


class BinCounts:
    """Weighted sums per bin of scores: what a binned calibration error is made of.

    Parameters
    ----------
    n_bins : int, optional
        Number of equally wide bins; 15 if `edges` is not given either.
    edges : array_like of shape (n_bins + 1,), optional
        Bin edges instead, strictly ascending from 0 to 1.

    Attributes
    ----------
    n_bins : int
    edges : ndarray of float64, shape (n_bins + 1,)
        Equally wide bins have the doubles nearest to j / n_bins.
    counts : ndarray of int64, shape (n_bins,)
        Rows per bin, whatever their weight.

    Raises
    ------
    ValueError
        If `n_bins` is no whole number >= 1, the edges break their rule, or both are given.

    Notes
    -----
    Bin j is [edges[j], edges[j + 1]), the last one closed.

    Sums are exact: wide fixed-point integers, 2.4 kB per bin. So batches, their order and merging cannot
    change `value`, and integer weights are the same as repeated rows.

    Examples
    --------
    >>> day1, day2 = BinCounts(10).update([1], [0.9]), BinCounts(10).update([0], [0.9])
    >>> day1.merge(day2).value()
    0.4
    """

    __slots__ = ("_counts", "_edges", "_limbs", "_uncarried", "_uniform")

    def __init__(self, n_bins: int | None = None, *, edges: ArrayLike | None = None) -> None:
        self._uniform = edges is None
        if edges is None:
            self._edges = grids.edges(
                "linear", _validate.whole_number(15 if n_bins is None else n_bins, "n_bins", low=1)
            )
        else:
            if n_bins is not None:
                raise ValueError(f"n_bins must not be given beside edges; got {n_bins}")
            self._edges = _validate.bin_edges(edges)
        self._counts = np.zeros(self.n_bins, np.int64)
        self._limbs = np.zeros((self.n_bins, 3, exact_sums.LIMBS), np.int64)
        self._uncarried = 0

    @property
    def n_bins(self) -> int:
        return len(self._edges) - 1

    @property
    def edges(self) -> NDArray[np.float64]:
        return self._edges.copy()

    @property
    def counts(self) -> NDArray[np.int64]:
        return self._counts.copy()

    def __repr__(self) -> str:
        return f"<BinCounts: {self._counts.sum()} rows in {self.n_bins} bins>"

    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        pos_label: Any = None,
    ) -> Self:
        """Add rows; nothing is added if any row is refused.

        Parameters
        ----------
        y_true : array_like of shape (n,)
            Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
        y_prob : array_like of shape (n,)
            Probability of the positive class, in [0, 1].
        sample_weight : array_like of shape (n,), optional
            Finite weights >= 0; default 1 each.
        pos_label : bool, int, float, str or bytes, optional
            The label that counts as positive.

        Returns
        -------
        BinCounts
            This object.

        Raises
        ------
        ValueError
            If labels, scores or weights break their rules; the message names argument, rule, value and index.
        """
        rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
        n = len(rows)
        weights = None if sample_weight is None else _validate.weights(sample_weight, n)
        counts, limbs, uncarried = self._counts.copy(), self._limbs.copy(), self._uncarried
        for start in range(0, n, BLOCK):
            labels, scores, _ = rows.block(start, start + BLOCK)
            index = self._bins(scores)
            if uncarried + len(scores) > _UNCARRIED_ROWS:
                exact_sums.carry(limbs)
                uncarried = 0
            uncarried += len(scores)
            if weights is None:
                exact_sums.add_rows(labels, scores, index, counts, limbs)
            else:
                part = np.ascontiguousarray(weights[start : start + BLOCK])
                exact_sums.add_weighted_rows(labels, scores, part, index, counts, limbs)
        self._counts, self._limbs, self._uncarried = counts, limbs, uncarried
        return self

    def _bins(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        if self._uniform:
            return binning.uniform_bins(scores, self.n_bins)
        return np.searchsorted(self._edges[:-1], scores, side="right") - 1

    def merge(self, other: BinCounts) -> Self:
        """Add the rows of another object with the same edges.

        Returns
        -------
        BinCounts
            This object; `other` is not changed.

        Raises
        ------
        ValueError
            If the edges differ.
        TypeError
            If `other` is no BinCounts.
        """
        if not isinstance(other, BinCounts):
            raise TypeError(f"other must be a BinCounts; got {type(other).__name__}")
        if not np.array_equal(self._edges, other._edges):
            raise ValueError(f"other must have the same edges; got {other.n_bins} bins for {self.n_bins}")
        limbs, counts = self._carried() + other._carried(), self._counts + other._counts
        self._limbs, self._counts, self._uncarried = limbs, counts, 2
        return self

    def value(self, norm: Norm = "l1") -> float:
        """Return the binned calibration error of the rows so far.

        Parameters
        ----------
        norm : {"l1", "l2", "max", "avg"}
            With g = abs(mean label - mean score) and W the weight of a bin: "l1" is sum(W g) / sum(W), "l2"
            the root of sum(W g^2) / sum(W), "max" the largest g, and "avg" the plain mean of g. Bins without
            weight do not count.

        Returns
        -------
        float
            "l1" and "max" are correctly rounded; "l2" and "avg" are a few units in the last place off at
            most.

        Raises
        ------
        ValueError
            If there are no rows, or only rows of weight 0, or the norm is unknown.

        Examples
        --------
        >>> bins = BinCounts(2).update([1, 1, 1, 0], [0.2, 0.2, 0.9, 0.9])
        >>> bins.value(), bins.value("max")
        (0.6, 0.8)
        """
        _validate.choice(norm, "norm", ("l1", "l2", "max", "avg"))
        if not self._counts.any():
            raise ValueError("value needs rows; update has not been called")
        bins = [sums for sums in self._sums() if sums[0]]
        if not bins:
            raise ValueError("sample_weight must not be all zero")
        total = sum(weight for weight, _, _ in bins)
        if norm == "l1":
            return sum(abs(hits - scores) for _, hits, scores in bins) / total
        if norm == "l2":
            return math.sqrt(
                math.fsum((hits - scores) ** 2 / (weight * total) for weight, hits, scores in bins)
            )
        gaps = [abs(hits - scores) / weight for weight, hits, scores in bins]
        return max(gaps) if norm == "max" else math.fsum(gaps) / len(gaps)

    def _carried(self) -> NDArray[np.int64]:
        limbs = self._limbs.copy()
        exact_sums.carry(limbs)
        return limbs

    def _sums(self) -> list[tuple[int, int, int]]:
        """Weight, weight of positives and weighted sum of scores per bin, in units of 2^-2148."""
        digits = self._carried().astype("<u4")
        return [(_integer(weight), _integer(hits), _integer(scores)) for weight, hits, scores in digits]


def _integer(digits: NDArray[np.uint32]) -> int:
    return int.from_bytes(digits.tobytes(), "little")
