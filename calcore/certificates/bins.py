"""Bins of scores and what they can hide: the two forms of the plug-in error (THEORY 1.3 to 1.6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore.kernels.averaging import average, bare_cells, bin_shares, segments, shifted_marks
from calcore.kernels.binning import equal_mass_cuts, running_totals
from calcore.kernels.oscillation import budgeted_error
from calcore.table import Cells, CellTable, ScoreTable

Floats = NDArray[np.float64]
Cuts = NDArray[np.int64]
Table = ScoreTable | CellTable

NOTHING = np.empty(0, np.intp)

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


class Partitions(NamedTuple):
    """Several partitions of the same rows into bins; the other rows, and bare cells, stand for themselves."""

    marks: tuple[NDArray[np.int64], ...]
    """Of each partition, rows before the ends of its bins: ascending, the first and last ones alike."""
    bare: NDArray[np.intp]
    """Cells, each a bin of its own in all partitions, on which A is the identity."""


class Average(NamedTuple):
    """The average A of several partitions of the rows into bins: segments of cells, and what A does to them.

    A bin covers a cell wholly, not at all, or in part: its weights u_B in [0, 1] are the same for all rows
    of a cell, and those of all bins add up to 1. The mean over partitions of ``sum u_B u_B' / N_B`` is
    symmetric, with entries >= 0 and rows and columns that sum to 1, so weights A' sign lie in [-1, 1] and
    ``||A' sign||^2 <= n``: deviations (a), (b) hold as for one partition. With shifted partitions this is
    Scott's averaged shifted histogram, which tends to the triangular kernel: the least noise for a given
    cost of the worst jump.
    """

    cuts: Cuts
    """Cells between which A y is constant."""
    rates: Floats
    """A applied to the labels, one number for each segment; without meaning for bare cells."""
    worst_jump: float
    """Largest sum over rows of |eta - A eta| for an eta that jumps once, by 1."""

    @classmethod
    def of(cls, parts: Partitions, running: Running, cells: Cells) -> Average:
        marks = np.concatenate(parts.marks)
        ends = np.cumsum([0, *(part.size for part in parts.marks)])
        cuts = segments(running.rows, marks, ends)
        totals = running.rows, running.positives
        return cls(cuts, *average(*totals, cells.lo, cells.hi, marks, ends, cuts, parts.bare))


def shifted(cells: Cells, running: Running, n_bins: int, smooth: Smoothness) -> Partitions:
    """`SHIFTS` partitions into bins of about n/n_bins rows, each shifted by a part of a bin.

    They leave out both ends of the scores, as far as a bin there would hold less than `FEW` positives (or
    negatives) on average: averaging such rows would only hide a jump of eta, and save no noise. Bins end
    inside cells, and are smaller where cells are large (see `bin_shares`), if the worst jump is to bound what
    they hide; for a slope, or a variation that so many bins would exhaust, they consist of whole cells.
    """
    rows = running.rows
    size = float(rows[-1] / n_bins)
    mean = cells.s / cells.n
    first = int(np.searchsorted(mean, FEW / size))
    last = int(np.searchsorted(mean, 1.0 - FEW / size, "right"))
    if first >= last:
        return Partitions((rows[:1],), NOTHING)
    inner = rows[first : last + 1] - rows[first]
    if smooth.lipschitz < math.inf or smooth.variation > n_bins:
        bins = max(1, round(n_bins * float(inner[-1] / rows[-1])))
        whole = (equal_mass_cuts(inner, bins, shift, SHIFTS) for shift in range(SHIFTS))
        return Partitions(tuple(rows[first + cuts] for cuts in whole), NOTHING)
    n, lo, hi = cells.n[first:last], cells.lo[first:last], cells.hi[first:last]
    shares = bin_shares(inner, lo, hi, size)
    alone = np.diff(shares) == 0.0
    places = np.flatnonzero(alone)
    marks = (shifted_marks(inner, shares, places, shift / SHIFTS) for shift in range(SHIFTS))
    bare = bare_cells(np.where(alone & (hi > lo), n, 0), mean[first:last], 0.5 * size, smooth.variation)
    return Partitions(tuple(rows[first] + part for part in marks), first + bare)


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


def distinct_errors(cells: Cells, of: slice | NDArray[np.intp] = slice(None)) -> Floats:
    """Sum over each cell's rows of |s - y|, the labels of a cell that holds one score replaced by their mean.

    Of a mixed cell an upper bound: its positives, or its negatives, are taken to have the scores at which
    they err most.
    """
    n, k, s, lo, hi = (column[of] for column in cells)
    mixed = np.minimum(s + k * (1.0 - 2.0 * lo), (n - s) + (n - k) * (2.0 * hi - 1.0))
    return np.where(hi > lo, mixed, np.abs(s - k))


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


def form_one(table: Table, running: Running, parts: Partitions, smooth: Smoothness) -> tuple[float, float]:
    """(plug-in, bias), means over rows: |s - A y| for the average A of `parts`.

    The bias is ``variation`` times the worst jump; where all bins consist of whole cells, it is at most the
    mean over partitions of what their bins can hide.
    """
    cells = table.cells()
    average = Average.of(parts, running, cells)
    first, last = int(average.cuts[0]), int(average.cuts[-1])
    outside = slice(first), slice(last, None)
    error = sum(float(distinct_errors(cells, part).sum()) for part in outside)
    if first == last:
        return error / table.n, 0.0
    errors = table.abs_deviation(average.cuts, average.rates)
    errors[np.searchsorted(average.cuts, parts.bare)] = distinct_errors(cells, parts.bare)
    error += float(errors.sum())
    hidden = smooth.variation * average.worst_jump if smooth.variation < math.inf else math.inf
    cuts = [np.searchsorted(running.rows, part) for part in parts.marks]
    if all(np.array_equal(running.rows[cut], part) for cut, part in zip(cuts, parts.marks, strict=True)):
        hidden = min(hidden, sum(hidden_in_bins(table, running, cut, smooth) for cut in cuts) / len(cuts))
    return error / table.n, hidden / table.n


def hidden_in_bins(table: Table, running: Running, cuts: Cuts, smooth: Smoothness) -> float:
    """`hidden_mean_deviation` of the bins between `cuts`."""
    cells = table.cells()
    rows = np.diff(running.rows[cuts]).astype(np.float64)
    mixed = cells.hi[cuts[1:] - 1] > cells.lo[cuts[:-1]]
    difference = None
    if smooth.lipschitz < math.inf:
        difference = (table.abs_differences(cuts) / rows**2)[mixed]
    return hidden_mean_deviation(rows[mixed], difference, smooth)


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
    cap = oscillation_caps(bins, smooth)
    total = float(spread[bins.mixed].sum())
    total += budgeted_error(rate, center, bins.n, cap, smooth.variation, tolerance)
    visible = float(bins.n @ np.abs(center - rate))
    return visible / n, (total - visible) / n


def oscillation_caps(bins: Bins, smooth: Smoothness) -> Floats:
    """Largest oscillation of eta in each bin that its slope and its range allow; 0 at atoms."""
    return np.where(bins.mixed, np.minimum(1.0, _reach(smooth.lipschitz, bins.hi - bins.lo)), 0.0)


def _reach(lipschitz: float, width: Floats) -> Floats:
    """Oscillation that a slope of at most `lipschitz` allows on `width`."""
    return np.full_like(width, math.inf) if lipschitz == math.inf else lipschitz * width
