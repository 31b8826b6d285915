"""Bins of equal mass over cells, and bins of equal width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def equal_mass(counts: NDArray[np.int64], n_bins: int) -> NDArray[np.int64]:
    """Cut consecutive cells into bins of about n/n_bins rows; a cell is never split.

    A bin closes at the first cell boundary where at least floor(j n / n_bins) rows have passed, j = 1, 2,
    ...; a cell of n/n_bins rows or more is a bin of its own. For cells of one row each, the cuts are floor(j
    n / n_bins).

    Parameters
    ----------
    counts : int64 (m,)
        Rows per cell, all >= 1.
    n_bins : int
        At least 1; n * n_bins < 2^63.

    Returns
    -------
    int64 (b + 1,)
        Bin i is the cells ``cuts[i]:cuts[i+1]``, never empty. b <= n_bins + the number of heavy cells, of
        which there are at most n_bins. Every other bin has fewer than 2 n / n_bins rows.
    """
    passed = np.empty(counts.size + 1, np.int64)
    passed[0] = 0
    for i in range(counts.size):
        passed[i + 1] = passed[i] + counts[i]
    return equal_mass_cuts(passed, n_bins, 0, 1)


@jit
def equal_mass_cuts(passed: NDArray[np.int64], n_bins: int, shift: int, shifts: int) -> NDArray[np.int64]:
    """`equal_mass` from running totals: ``passed[i]`` rows lie in the first i cells. O(bins log cells).

    The marks are ``floor((j + shift / shifts) n / n_bins)``: ``shift = 0, ..., shifts - 1`` makes that many
    partitions, shifted against each other by parts of a bin. Shift 0 of 1 is `equal_mass`.
    """
    m = passed.size - 1
    n = passed[m]
    bins = min(np.int64(n_bins), n)
    cuts = np.empty(min(m, 2 * bins + 2) + 1, np.int64)
    cuts[0] = 0
    used = 0
    for j in range(bins + 1):
        mark = min((j * shifts + shift) * n // (bins * shifts), n)
        if passed[cuts[used]] >= mark:
            continue
        low = reaching(passed, mark, cuts[used])
        high = low + 1
        heavy = (passed[high] - passed[low]) * bins >= n
        if heavy and cuts[used] < low:
            used += 1
            cuts[used] = low
        used += 1
        cuts[used] = high
    return cuts[: used + 1].copy()


@jit
def reaching(passed: NDArray[np.int64], mark: int, start: int) -> int:
    """Find the cell c >= `start` with ``passed[c] < mark <= passed[c + 1]``: steps double, then halve."""
    low, step = start, 1
    while low + step < passed.size and passed[low + step] < mark:
        low += step
        step *= 2
    high = min(low + step, passed.size - 1)
    while high - low > 1:
        middle = (low + high) // 2
        if passed[middle] < mark:
            low = middle
        else:
            high = middle
    return low


@jit
def running_totals(
    n: NDArray[np.int64], k: NDArray[np.int64], s: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Rows, positives and sum of scores in the first i cells, i = 0, ..., m."""
    rows, positives, scores = (
        np.zeros(n.size + 1, np.int64),
        np.zeros(n.size + 1, np.int64),
        np.zeros(n.size + 1),
    )
    for i in range(n.size):
        rows[i + 1] = rows[i] + n[i]
        positives[i + 1] = positives[i] + k[i]
        scores[i + 1] = scores[i] + s[i]
    return rows, positives, scores


@jit
def uniform_bins(scores: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """Index of the bin [j/N, (j+1)/N) of each score, edges as nearest doubles, 1 in the last bin.

    Plain floor(s N) is wrong at an edge for 861 of the N in 1..1000; the nearest integer to s N is j or j +
    1, and comparing s with that one edge decides.
    """
    size = float(n_bins)
    index = np.empty(scores.size, np.int64)
    for i in range(scores.size):
        j = np.rint(scores[i] * size)
        if scores[i] < j / size:
            j -= 1.0
        index[i] = np.int64(min(j, size - 1.0))
    return index
