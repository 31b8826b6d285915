"""What both tables answer, from sums per cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore.kernels import deviations

BLOCK = 131_072
"""Rows checked and used at once: 1 MiB of scores stays in the L2 cache between the two."""

NONE = np.empty(0, np.int64)
NO_KEYS = np.empty(0, np.int64)
NO_KEYS.flags.writeable = False  # as keys are: one compiled loop for both tables


class Cells(NamedTuple):
    """Consecutive non-empty cells, by ascending score. Equal scores are never in two cells."""

    n: NDArray[np.int64]
    """Rows."""
    k: NDArray[np.int64]
    """Positives."""
    s: NDArray[np.float64]
    """Sum of the scores."""
    lo: NDArray[np.float64]
    """Smallest score, exactly."""
    hi: NDArray[np.float64]
    """Largest score, exactly."""


class Summary(NamedTuple):
    """Cells, and the sums over them that only the table itself needs."""

    cells: Cells
    hits: NDArray[np.float64]
    """Sum of the scores of positives."""
    squares: NDArray[np.float64]
    """Sum of squared scores, or somewhat more; see `Table.sum_squared_error`."""
    within: NDArray[np.float64]
    """Sum of abs(s_i - s_j) over ordered pairs of rows of the cell, or an upper bound of it."""
    low: NDArray[np.float64]
    """Lower bound of the mean score."""
    high: NDArray[np.float64]
    """Upper bound of the mean score."""

    @classmethod
    def of(cls, n: NDArray[np.int64], k: NDArray[np.int64], sums: NDArray[np.float64]) -> Summary:
        """Columns as the kernels leave them, made read-only; if no bounds of the mean follow, it is both."""
        s, hits, squares, within, lo, hi = sums[:6]
        mean = [sums[6], sums[7]] if len(sums) > 6 else [np.clip(s / n, lo, hi)] * 2
        for array in (n, k, s, hits, squares, within, lo, hi, *mean):
            array.flags.writeable = False
        return cls(Cells(n, k, s, lo, hi), hits, squares, within, *mean)


class Table(ABC):
    """Scores and labels, summed up: what a certificate asks."""

    __slots__ = ("_cached",)

    _cached: Summary | None

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_clipped(self) -> int:
        """Number of scores that lay outside [0, 1] by a rounding error and were moved to 0 or 1."""

    @abstractmethod
    def describe(self) -> str:
        """Name the kind of table in a few words."""

    @abstractmethod
    def _summarise(self) -> Summary: ...

    def _rows_of_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First rows of the cells, and sorted keys; both empty where rows are not kept."""
        return NONE, NO_KEYS

    @property
    def _summary(self) -> Summary:
        if self._cached is None:
            self._cached = self._summarise()
        return self._cached

    @property
    def n_positive(self) -> int:
        """Number of rows with a positive label."""
        return int(self._summary.cells.k.sum())

    @property
    def sum_scores(self) -> float:
        """Sum of the scores."""
        return self._at_most_n(self._summary.cells.s)

    @property
    def sum_squared_error(self) -> float:
        """Sum of (s - y)^2; of a CellTable not below it, but for 2^-46 per row."""
        summary = self._summary
        return self._at_most_n(np.maximum(summary.squares - 2.0 * summary.hits + summary.cells.k, 0.0))

    @property
    def sum_abs_error(self) -> float:
        """Sum of abs(s - y), which is that of s + y - 2 s y."""
        summary = self._summary
        return self._at_most_n(np.maximum(summary.cells.s - 2.0 * summary.hits + summary.cells.k, 0.0))

    def _at_most_n(self, parts: NDArray[np.float64]) -> float:
        """Sum of parts whose true sum is at most n: what rounding put above, it does not mean."""
        return min(float(parts.sum()), float(self.n))

    def cells(self) -> Cells:
        """Return the non-empty cells, by ascending score: read-only arrays, computed once."""
        return self._summary.cells

    def second_moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of y s and of s^2 over each cell; of a CellTable up to some 2^-30 of its width, per row."""
        return self._summary.hits, self._summary.squares

    def mean_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of the mean score of each cell; equal, up to rounding the mean itself, in a ScoreTable."""
        return self._summary.low, self._summary.high

    def abs_deviation(self, cuts: NDArray[np.int64], centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of abs(s - centers[b]) over the rows of each bin b.

        Parameters
        ----------
        cuts : int64 array of shape (b + 1,)
            Bin i is the cells ``cuts[i]:cuts[i+1]`` of `cells`.
        centers : float64 array of shape (b,)
            One centre per bin.

        Returns
        -------
        float64 array of shape (b,)
            Of a ScoreTable the sum, up to rounding. Of a CellTable an upper bound, never below the sum: above
            it by what a cell's fixed-point sum leaves open (2^-30 of its width and 2^-47, per row), and in
            the one cell that has the centre inside its range by the chord of s -> abs(s - c) at the cell's
            mean (THEORY section 6). Numbers below 1e-300 may be lost.

        Notes
        -----
        O(cells + bins), and in a ScoreTable the rows of one cell per bin.

        Examples
        --------
        >>> from calcore.table import ScoreTable
        >>> ScoreTable([0, 1, 1], [0.25, 0.5, 1.0]).abs_deviation(np.array([0, 2, 3]), np.array([0.25, 0.5]))
        array([0.25, 0.5 ])
        """
        summary = self._summary
        n, _, _, lo, hi = summary.cells
        starts, keys = self._rows_of_cells()
        cuts, centers = np.ascontiguousarray(cuts, np.int64), np.ascontiguousarray(centers, np.float64)
        return deviations.absolute_deviations(
            n, summary.low, summary.high, lo, hi, starts, keys, cuts, centers
        )

    def abs_differences(self, cuts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sum of abs(s_i - s_j) over all ordered pairs of rows of each bin, the cells ``cuts[i]:cuts[i+1]``.

        Of a ScoreTable up to rounding. Of a CellTable an upper bound, never below the sum, whatever the gaps
        between scores: of cells whose means lie in [low, high], n n' (high' - low) for two, and the largest
        2 n^2 (hi - m)(m - lo) / (hi - lo) for m in [low, high] inside one (THEORY sections 1.5 and 6).
        Numbers below 1e-300 may be lost. O(cells).

        Examples
        --------
        >>> from calcore.table import ScoreTable
        >>> ScoreTable([0, 1, 1], [0.25, 0.5, 1.0]).abs_differences(np.array([0, 3]))
        array([3.])
        """
        summary = self._summary
        return deviations.absolute_differences(
            summary.cells.n,
            summary.low,
            summary.high,
            summary.within,
            np.ascontiguousarray(cuts, np.int64),
        )
