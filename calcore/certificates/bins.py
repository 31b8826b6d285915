"""Bins of scores and what they can hide: the two forms of the plug-in error (THEORY 1.3 to 1.6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore.kernels.binning import equal_mass_cuts, running_totals
from calcore.kernels.oscillation import budgeted_error
from calcore.table import Cells, CellTable, ScoreTable

Floats = NDArray[np.float64]
Cuts = NDArray[np.int64]
Table = ScoreTable | CellTable

SHIFTS = 8
"""Partitions that form 1 averages; more gain less than a percent."""

FEW = 0.15
"""Expected positives (or negatives) of a bin below which form 1 does not average its rows."""

THINNED = 2.0 / 3.0 * (1.0 + 0.5 / SHIFTS**2)
"""What averaging leaves of a bin's noise variance, and of the cost of the worst jump."""


class Running(NamedTuple):
    """Rows, positives and sum of scores in the first i cells, i = 0, ..., m."""

    rows: NDArray[np.int64]
    positives: NDArray[np.int64]
    scores: Floats

    @classmethod
    def of(cls, cells: Cells) -> Running:
        return cls(*running_totals(cells.n, cells.k, cells.s))


@dataclass(frozen=True, slots=True)
class Smoothness:
    """What is assumed of the calibration function; infinity where nothing is."""

    variation: float = math.inf
    lipschitz: float = math.inf


class Bins(NamedTuple):
    """Runs of cells: boundaries in cells, rows, positives, sum of scores, smallest and largest score."""

    cuts: NDArray[np.int64]
    n: Floats
    k: Floats
    s: Floats
    lo: Floats
    hi: Floats

    @property
    def mean_score(self) -> Floats:
        return np.clip(self.s / self.n, self.lo, self.hi)  # as every mean does, its rounding apart

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Bins that hold more than one score value; the others are atoms and have no bias."""
        return self.hi > self.lo


class Average(NamedTuple):
    """Partitions of the rows into bins, and their common refinement into segments.

    The average A of their projections (means over bins) is symmetric, with entries >= 0 and rows and columns
    that sum to 1, so weights A' sign lie in [-1, 1] and ``||A' sign||^2 <= n``: deviations (a), (b) hold as
    for one partition. With shifted partitions this is Scott's averaged shifted histogram, which tends to the
    triangular kernel: the least noise for a given cost of the worst jump.
    """

    parts: tuple[Cuts, ...]
    cuts: Cuts
    bin_of: tuple[NDArray[np.intp], ...]
    """The bin of each partition that holds each segment."""

    @classmethod
    def of(cls, parts: tuple[Cuts, ...]) -> Average:
        cut = np.zeros(parts[0][-1] + 1, np.bool_)  # np.unique would take ten times as long
        for part in parts:
            cut[part] = True
        cuts = np.flatnonzero(cut)
        return cls(parts, cuts, tuple(np.searchsorted(part, cuts[:-1], "right") - 1 for part in parts))

    def rates(self, running: Running) -> Floats:
        """A applied to the labels: one number for each segment."""
        total = np.zeros(self.cuts.size - 1)
        for part, index in zip(self.parts, self.bin_of, strict=True):
            total += (np.diff(running.positives[part]) / np.diff(running.rows[part]))[index]
        return total / len(self.parts)

    def worst_jump(self, rows: NDArray[np.int64], cells: Cells) -> float:
        """Largest sum over rows of |eta - A eta| for an eta that jumps once, by 1.

        A jump with a of the N rows of its bin on its left costs ``2 a (N - a) / N`` in a partition. The mean
        over partitions is one concave quadratic on each segment, with its maximum at the vertex or an end; in
        a segment of one score value nothing can jump but at its ends.
        """
        level, slope, bend = np.zeros((3, self.cuts.size - 1))
        for part, bin_of in zip(self.parts, self.bin_of, strict=True):
            start, size = rows[part][bin_of], np.diff(rows[part])[bin_of]
            left = rows[self.cuts[:-1]] - start
            level += 2.0 * left * ((size - left) / size)
            slope += 2.0 * (size - 2.0 * left) / size
            bend += 2.0 / size
        inside = np.clip(0.5 * slope / bend, 0.0, np.diff(rows[self.cuts]))
        mixed = cells.hi[self.cuts[1:] - 1] > cells.lo[self.cuts[:-1]]
        level += np.where(mixed, inside * (slope - inside * bend), 0.0)
        return float(level.max()) / len(self.parts)


def shifted(cells: Cells, running: Running, n_bins: int) -> tuple[Cuts, ...]:
    """`SHIFTS` partitions into bins of about n/n_bins rows, each shifted by a part of a bin.

    They leave out both ends of the scores, as far as a bin there would hold less than `FEW` positives (or
    negatives) on average: averaging such rows would only hide a jump of eta, and save no noise.
    """
    rows = running.rows
    few = FEW * n_bins / rows[-1]
    mean = cells.s / cells.n
    first = int(np.searchsorted(mean, few))
    last = int(np.searchsorted(mean, 1.0 - few, "right"))
    if first >= last:
        return (np.arange(1),)
    inner = rows[first : last + 1] - rows[first]
    bins = max(1, round(n_bins * float(inner[-1] / rows[-1])))
    return tuple(first + equal_mass_cuts(inner, bins, shift, SHIFTS) for shift in range(SHIFTS))


def bin_cells(cells: Cells, cuts: NDArray[np.int64]) -> Bins:
    """Add up cells between consecutive `cuts`; each bin's sums from its own cells, not by subtraction."""
    starts = cuts[:-1]
    inside = slice(cuts[-1])
    return Bins(
        cuts,
        np.add.reduceat(cells.n[inside], starts).astype(np.float64),
        np.add.reduceat(cells.k[inside], starts).astype(np.float64),
        np.add.reduceat(cells.s[inside], starts),
        cells.lo[starts],
        cells.hi[cuts[1:] - 1],
    )


def distinct_errors(cells: Cells) -> Floats:
    """Sum over each cell's rows of |s - y|, the labels of a cell that holds one score replaced by their mean.

    An upper bound, which takes the positives of a mixed cell to have its smallest score.
    """
    one = np.abs(cells.s - cells.k)
    rows = cells.s + cells.k * (1.0 - 2.0 * cells.lo)
    return np.where(cells.hi > cells.lo, rows, one)


def hidden_mean_deviation(rows: Floats, mean_difference: Floats | None, smooth: Smoothness) -> float:
    """Largest possible sum over rows of |eta - bin mean of eta|, one partition (THEORY 1.3, 1.5, 1.6).

    A bin of oscillation o hides at most ``n min(o / 2, L GMD)``; the oscillations are at most 1 each and the
    variation together. The best choice is greedy: the largest bins first.

    Parameters
    ----------
    rows : (b,) array
        Rows of the bins that hold more than one score.
    mean_difference : (b,) array or None
        Mean absolute difference of two scores of the bin (GMD); None without a Lipschitz assumption.
    """
    cap = np.ones_like(rows)
    if mean_difference is not None:
        cap = 2.0 * np.minimum(0.5, smooth.lipschitz * mean_difference)
    if smooth.variation == math.inf:
        return 0.5 * float((rows * cap).sum())
    if mean_difference is None and rows.size > smooth.variation + 1.0:  # caps of 1: the largest bins suffice
        most = math.ceil(smooth.variation) + 1
        rows, cap = np.partition(rows, rows.size - most)[rows.size - most :], cap[:most]
    order = np.argsort(-rows, kind="stable")
    spent = np.minimum(np.cumsum(cap[order]), smooth.variation)
    return 0.5 * float((rows[order] * np.diff(spent, prepend=0.0)).sum())


def form_one(
    table: Table, running: Running, parts: tuple[Cuts, ...], smooth: Smoothness
) -> tuple[float, float]:
    """(plug-in, bias), means over rows: |s - A y| for the average A of bin means over `parts`.

    The partitions cover the same cells; rows outside stand for themselves. The bias is the smaller of
    ``variation`` times the worst jump, and the mean over partitions of what their bins can hide.
    """
    cells = table.cells()
    average = Average.of(parts)
    first, last = int(average.cuts[0]), int(average.cuts[-1])
    error = float(np.delete(distinct_errors(cells), slice(first, last)).sum())
    hidden = 0.0
    if first < last:
        error += float(table.abs_deviation(average.cuts, average.rates(running)).sum())
        for part in parts:
            rows = np.diff(running.rows[part]).astype(np.float64)
            mixed = cells.hi[part[1:] - 1] > cells.lo[part[:-1]]
            difference = None
            if smooth.lipschitz < math.inf:
                difference = (table.abs_differences(part) / rows**2)[mixed]
            hidden += hidden_mean_deviation(rows[mixed], difference, smooth) / len(parts)
        if smooth.variation < math.inf:
            hidden = min(hidden, smooth.variation * average.worst_jump(running.rows, cells))
    return error / table.n, hidden / table.n


def form_two(
    bins: Bins, rate: Floats, spread: Floats, smooth: Smoothness, *, tolerance: float = 1e-9
) -> tuple[float, float]:
    """(plug-in, bias) of the form for small probabilities (THEORY 1.4).

    The plug-in part is the binned error ``sum n |mean score - rate|``; all that is added to it (the spread of
    scores inside bins and what oscillation can buy) counts as bias. `spread` is the sum of |s - mean score| a
    bin.
    """
    n = float(bins.n.sum())
    center = bins.mean_score
    cap = np.where(bins.mixed, np.minimum(1.0, _reach(smooth.lipschitz, bins.hi - bins.lo)), 0.0)
    total = float(spread[bins.mixed].sum())
    total += budgeted_error(rate, center, bins.n, cap, smooth.variation, tolerance)
    visible = float(bins.n @ np.abs(center - rate))
    return visible / n, (total - visible) / n


def _reach(lipschitz: float, width: Floats) -> Floats:
    """Oscillation that a slope of at most `lipschitz` allows on `width`."""
    return np.full_like(width, math.inf) if lipschitz == math.inf else lipschitz * width
