"""Bins of equal counts, and sums of errors in bins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

_CELLS = 4096
"""At least so many cells in the table of `bins_below`; 16 per cut if that is more."""


@jit
def bins_below(scores: NDArray[np.float64], firsts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count for each score the entries of `firsts`, which ascend, that are at most as large.

    Scores in [0, 1] are ordered like their bit patterns. A table over the leading bits of these tells between
    which entries to search: mostly there is none or one left. Cells are narrow where scores are small, so the
    table works for skewed scores too. A binary search among all entries takes 6 times as long.
    """
    index = np.zeros(scores.size, np.int64)
    if firsts.size == 0:
        return index
    patterns, cuts = scores.view(np.int64), firsts.view(np.int64)
    low, high = cuts[0], cuts[cuts.size - 1]
    shift = 0
    while (high - low) >> shift > max(16 * cuts.size, _CELLS):
        shift += 1
    begins = np.zeros(((high - low) >> shift) + 2, np.int64)  # entries in the cells before
    for cut in cuts:
        begins[((cut - low) >> shift) + 1] += 1
    for c in range(1, begins.size):
        begins[c] += begins[c - 1]
    for i in range(patterns.size):
        x = patterns[i]
        if x >= high:
            index[i] = cuts.size
        elif x >= low:
            c = (x - low) >> shift
            below, above = begins[c], begins[c + 1]
            while below < above:
                middle = (below + above) // 2
                if cuts[middle] <= x:
                    below = middle + 1
                else:
                    above = middle
            index[i] = below
    return index


@jit
def split_ties(
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    tied: NDArray[np.float64],
    ranks: NDArray[np.int64],
    starts: NDArray[np.int64],
    index: NDArray[np.int64],
) -> None:
    """Spread the rows of ties over bins, first come first, with rows coming in the given order.

    Rows of value ``tied[t]`` have the ranks from ``ranks[t]`` on, and bin b has those in
    ``starts[b]:starts[b+1]``. `tied` ascends; `ranks` is used up.
    """
    current = np.empty(tied.size, np.int64)
    for t in range(tied.size):
        current[t] = np.searchsorted(starts, ranks[t], side="right") - 1
    for r in range(order.size):
        i = order[r]
        t = np.searchsorted(tied, values[i])
        if t < tied.size and tied[t] == values[i]:
            while starts[current[t] + 1] <= ranks[t]:
                current[t] += 1
            index[i] = current[t]
            ranks[t] += 1


@jit
def label_errors(
    scores: NDArray[np.float64], labels: NDArray[np.uint8], index: NDArray[np.int64], n_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum of score less label in every bin, and rows in it. Labels are counted, scores added in two words."""
    sums, rests = np.zeros(n_bins), np.zeros(n_bins)
    hits, rows = np.zeros(n_bins, np.int64), np.zeros(n_bins, np.int64)
    for i in range(scores.size):
        b, x = index[i], scores[i]
        total = sums[b] + x
        back = total - sums[b]
        rests[b] += (sums[b] - (total - back)) + (x - back)
        sums[b] = total
        hits[b] += labels[i]
        rows[b] += 1
    for b in range(n_bins):
        sums[b] = (sums[b] - hits[b]) + rests[b]
    return sums, rows


@jit
def number_errors(
    reports: NDArray[np.float64], outcomes: NDArray[np.float64], index: NDArray[np.int64], n_bins: int
) -> NDArray[np.float64]:
    """Sum of report less outcome in every bin, each added by itself in two words."""
    sums, rests = np.zeros(n_bins), np.zeros(n_bins)
    for i in range(reports.size):
        b = index[i]
        for x in (reports[i], -outcomes[i]):
            total = sums[b] + x
            back = total - sums[b]
            rests[b] += (sums[b] - (total - back)) + (x - back)
            sums[b] = total
    return sums + rests


@jit
def scatter(
    scores: NDArray[np.float64],
    labels: NDArray[np.uint8],
    index: NDArray[np.int64],
    means: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Second and fourth powers of score less label less the bin's mean of these, summed in every bin."""
    seconds, fourths = np.zeros(means.size), np.zeros(means.size)
    rests = np.zeros(means.size)
    for i in range(scores.size):
        b = index[i]
        off = (scores[i] - labels[i]) - means[b]
        square = off * off
        term = square - rests[b]
        total = seconds[b] + term
        rests[b] = (total - seconds[b]) - term
        seconds[b] = total
        fourths[b] += square * square
    return seconds, fourths
