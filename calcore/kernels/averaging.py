"""The average of several partitions into bins, whose ends may lie inside cells (THEORY 1.3)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.binning import reaching

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@jit
def bin_shares(passed: Integers, lo: Floats, hi: Floats, size: float) -> Floats:
    """How many bins the first i cells are to fill, i = 0, ..., m; a step of 0 is a cell that stands alone.

    A cell of one score fills ``rho = rows / size`` bins, and stands alone from rho = 1; one of several scores
    fills ``rho / room(rho)``, and stands alone where `room` is 0.
    """
    out = np.zeros(passed.size)
    for j in range(lo.size):
        rho = (passed[j + 1] - passed[j]) / size
        if hi[j] > lo[j]:
            part = room(rho)
            share = rho / part if part > 0.0 else 0.0
        else:
            share = rho if rho < 1.0 else 0.0
        out[j + 1] = out[j] + share
    return out


@jit
def room(rho: float) -> float:
    """How large bins should be whose ends lie inside cells of rho bins: the part of the usual size.

    A jump of eta may fall into a cell. With bins of r times the usual size the worst costs about ``r / 3 +
    rho^2 / (2 r)`` bins: r solves ``r + 3/2 rho^2 / r = 1``, so that it is everywhere the same, or is 1/2
    where nothing solves it. From rho = 1/2 on the cell should stand alone, where a jump costs rho / 2; r is
    then 0.
    """
    if rho > 0.5:
        return 0.0
    return 0.5 + math.sqrt(max(0.25 - 1.5 * rho * rho, 0.0))


@jit
def bare_cells(several: Integers, mean: Floats, least: float, variation: float) -> NDArray[np.intp]:
    """Find large cells of several scores which cost less as single rows than as bins of their own.

    A jump of eta in a bin that is one cell costs n / 2 rows, and 2/3 of `least` elsewhere; the single rows
    of a cell cost ``2 n mean (1 - mean)`` on average. Best is to take the largest cells, down to some size.

    Parameters
    ----------
    several : (m,) array
        Rows of cells that hold more than one score, 0 of others.
    mean : (m,) array
        Mean scores.
    least : float
        Cells of fewer rows stay.
    variation : float
        Number of jumps.
    """
    large = np.flatnonzero(several > least)
    large = large[np.argsort(-several[large])]
    floor = 2.0 / 3.0 * least
    best, count, single = np.inf, 0, 0.0
    for i in range(large.size + 1):
        jump = max(0.5 * several[large[i]], floor) if i < large.size else floor
        if single + variation * jump < best:
            best, count = single + variation * jump, i
        if i < large.size:
            m = mean[large[i]]
            single += 2.0 * several[large[i]] * m * (1.0 - m)
    return large[:count]


@jit
def shifted_marks(passed: Integers, shares: Floats, alone: NDArray[np.intp], shift: float) -> Integers:
    """Rows before the ends of bins, each of one share, the first of `shift` shares; inside cells, or between.

    The number of shares is made whole by scaling them. `alone` are the cells of no share.
    """
    m = shares.size - 1
    bins = max(int(np.rint(shares[m])), 1)
    unit = shares[m] / bins
    marks = np.empty(bins + 2 * alone.size + 3, np.int64)
    marks[0] = passed[0]
    used = 0
    number = 0
    low = 0
    for i in range(alone.size + 1):
        stop = alone[i] if i < alone.size else m
        while number < bins and (number + shift) * unit < shares[stop]:
            place = (number + shift) * unit
            step = 1  # find the cell: steps double, then halve
            while low + step < stop and shares[low + step] <= place:
                low += step
                step *= 2
            high = min(low + step, stop)
            while high - low > 1:
                middle = (low + high) // 2
                if shares[middle] <= place:
                    low = middle
                else:
                    high = middle
            part = max(place - shares[low], 0.0) / (shares[low + 1] - shares[low])
            mark = passed[low] + np.int64((passed[low + 1] - passed[low]) * part)
            if marks[used] < mark:
                used += 1
                marks[used] = mark
            number += 1
        for end in range(stop, min(stop + 2, m + 1)):  # both ends of the cell alone, or the last row
            if marks[used] < passed[end]:
                used += 1
                marks[used] = passed[end]
        low = stop + 1
    return marks[: used + 1].copy()


@jit
def segments(passed: Integers, marks: Integers, ends: Integers) -> Integers:
    """Cells at which a partition ends a bin, and both ends of cells that hold such a mark inside.

    Parameters
    ----------
    passed : (m + 1,) array
        Rows in the first i cells.
    marks : array
        Rows before each end of a bin, partition after partition: ``marks[ends[t]:ends[t + 1]]`` ascend.
        All partitions have the same first and last mark, and these lie between cells.
    """
    cut = np.zeros(passed.size, np.bool_)
    for t in range(ends.size - 1):
        cell = 0
        for mark in marks[ends[t] : ends[t + 1]]:
            if mark == 0:
                cut[0] = True
                continue
            cell = reaching(passed, mark, cell)
            cut[cell + 1] = True
            if mark < passed[cell + 1]:
                cut[cell] = True
    return np.flatnonzero(cut)


@jit
def average(
    passed: Integers,
    positives: Integers,
    lo: Floats,
    hi: Floats,
    marks: Integers,
    ends: Integers,
    cuts: Integers,
    bare: NDArray[np.intp],
) -> tuple[Floats, float]:
    """Rates A y of the `segments`, and what one jump of eta by 1 can cost: the largest ||eta - A eta||_1.

    A row of a cell belongs to a bin by the part u_B of its cell that the bin covers; A is the mean over
    partitions of the sum over bins of u_B u_B' / N_B. A jump with a of the N_B rows of a bin on its left
    costs ``2 a (N_B - a) / N_B`` there. In a segment a is linear in the place of the jump, so the sum is one
    concave quadratic with its maximum at the vertex or at an end; in a segment of one score value, or a
    `bare` cell (where A is the identity), nothing can jump but at its ends.
    """
    n_segments, n_parts = cuts.size - 1, ends.size - 1
    rates = np.zeros(n_segments)
    level, slope, bend = np.zeros(n_segments), np.zeros(n_segments), np.zeros(n_segments)
    for t in range(n_parts):
        mark = marks[ends[t] : ends[t + 1]]
        rate = _rates(passed, positives, mark)
        first = 0
        for i in range(n_segments):
            left, right = passed[cuts[i]], passed[cuts[i + 1]]
            while mark[first + 1] <= left:
                first += 1
            b = first
            while b < mark.size - 1 and mark[b] < right:
                size = float(mark[b + 1] - mark[b])
                before = float(max(left - mark[b], 0))
                inside = float(min(right, mark[b + 1]) - max(left, mark[b]))
                rates[i] += rate[b] * (inside / (right - left))
                level[i] += 2.0 * before * ((size - before) / size)
                slope[i] += 2.0 * inside * ((size - 2.0 * before) / size)
                bend[i] += 2.0 * inside * (inside / size)
                b += 1
    worst = 0.0
    known = np.zeros(passed.size, np.bool_)
    known[bare] = True
    for i in range(n_segments):
        most = level[i]
        if hi[cuts[i + 1] - 1] > lo[cuts[i]] and not known[cuts[i]]:
            place = min(max(0.5 * slope[i] / bend[i], 0.0), 1.0)
            most += place * (slope[i] - place * bend[i])
        worst = max(worst, most)
    return rates / n_parts, worst / n_parts


@jit
def _rates(passed: Integers, positives: Integers, marks: Integers) -> Floats:
    """Rate of positives in each bin; cells count by the part that the bin covers."""
    out = np.empty(marks.size - 1)
    cell = 0
    whole, part = 0, 0.0  # positives before the mark: in whole cells, and in the part of the next one
    for b in range(marks.size):
        before, before_part = whole, part
        if marks[b] == 0:
            whole, part = 0, 0.0
        else:
            cell = reaching(passed, marks[b], cell)
            whole = positives[cell]
            inside = (marks[b] - passed[cell]) / (passed[cell + 1] - passed[cell])
            part = (positives[cell + 1] - positives[cell]) * inside
        if b:
            rate = ((whole - before) + (part - before_part)) / (marks[b] - marks[b - 1])
            out[b - 1] = min(max(rate, 0.0), 1.0)
    return out
