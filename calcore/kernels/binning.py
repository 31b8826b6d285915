"""Bins of equal mass over cells, bins of equal width, and exact sums per bin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def equal_mass(counts: NDArray[np.int64], n_bins: int) -> NDArray[np.int64]:
    """Cut consecutive cells into bins of about n/n_bins rows; a cell is never split.

    A bin closes at the first cell boundary where at least floor((j+1) n / n_bins) rows have passed, j the
    number of such marks passed before; a cell of n/n_bins rows or more is a bin of its own. For cells of one
    row each, the cuts are floor(j n / n_bins).

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
    m = counts.size
    n = np.int64(0)
    for i in range(m):
        n += counts[i]
    bins = min(np.int64(n_bins), n)
    cuts = np.empty(min(m, 2 * bins) + 1, np.int64)
    cuts[0] = 0
    used = 0
    passed = np.int64(0)
    mark = n // bins if bins > 0 else np.int64(0)
    for i in range(m):
        heavy = counts[i] * bins >= n
        if heavy and cuts[used] < i:
            used += 1
            cuts[used] = i
        passed += counts[i]
        if heavy or passed >= mark:
            used += 1
            cuts[used] = i + 1
            # The next mark is floor(t n / bins) for the smallest t that puts it beyond `passed`.
            t = ((passed + 1) * bins + n - 1) // n
            mark = t * n // bins
    return cuts[: used + 1].copy()


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
