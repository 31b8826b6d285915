"""Scores sorted together with their labels, and sums over runs of them.

A row is one int64 *key*: the score's bit pattern, then the label in the lowest bit. Doubles in [0, 1] are
ordered like their patterns, whose two top bits are 0, so one vectorised integer sort orders the rows. In a
tie label 0 comes first; nothing depends on that, because tied rows are never separated.

What did not pay, at 10^7 rows: argsort (7 times np.sort), a radix sort from the lowest digit (3 to 5 times),
buckets (skewed scores overflow them), and pooling ties into three arrays at once (page faults and memory
traffic cost more than the sums; `pool` does it for those who ask).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def pack(labels: NDArray[np.uint8], scores: NDArray[np.float64], keys: NDArray[np.int64]) -> None:
    """Write the keys of rows."""
    patterns = scores.view(np.int64)
    for i in range(scores.size):
        keys[i] = (patterns[i] << 1) | np.int64(labels[i])


@jit
def score_of(key: Any) -> Any:
    """The score in a key."""
    return np.int64(key >> 1).view(np.float64)


@jit
def distinct_starts(keys: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """First row of each distinct score, then the number of rows; empty if there are more than `limit`."""
    starts = np.empty(min(limit, keys.size) + 1, np.int64)
    found = 0
    for i in range(keys.size):
        if i == 0 or keys[i] >> 1 != keys[i - 1] >> 1:
            if found == limit:
                return np.empty(0, np.int64)
            starts[found] = i
            found += 1
    starts[found] = keys.size
    return starts[: found + 1].copy()


@jit
def _first_from(keys: NDArray[np.int64], key: Any, low: int, high: int) -> int:
    """First place in low..high, where `keys` ascends, of a key that is `key` or more; else `high`."""
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def equal_mass_starts(keys: NDArray[np.int64], n_runs: int) -> NDArray[np.int64]:
    """`binning.equal_mass` of the distinct scores, as first rows of runs, then the number of rows.

    O(n_runs log(longest tie)): only the row before a mark is looked at, since a heavy score covers a mark.
    """
    n = keys.size
    starts = np.empty(min(n, 2 * n_runs) + 1, np.int64)
    starts[0] = 0
    used = 0
    closed = 0
    while closed < n:
        mark = ((closed + 1) * n_runs + n - 1) // n * n // n_runs
        lowest = keys[mark - 1] >> 1 << 1
        begin = _first_from(keys, lowest, closed, mark)
        step = 1
        while mark - 1 + step < n and keys[mark - 1 + step] < lowest + 2:
            step *= 2
        end = _first_from(keys, lowest + 2, mark - 1 + step // 2, min(mark - 1 + step, n))
        if (end - begin) * n_runs >= n and begin > closed:
            used += 1
            starts[used] = begin
        used += 1
        starts[used] = end
        closed = end
    return starts[: used + 1].copy()


@jit
def starts_of_at_least(keys: NDArray[np.int64], n_bins: int) -> NDArray[np.int64]:
    """First rows of bins that close as soon as they hold n / n_bins rows and all of a tie, then n.

    What is left after the last such bin joins it. O(n_bins log n).
    """
    n = keys.size
    least = (n + n_bins - 1) // n_bins
    starts = np.empty(min(n_bins, n) + 1, np.int64)
    starts[0] = 0
    used = 0
    while n - starts[used] >= least:
        row = starts[used] + least - 1
        starts[used + 1] = _first_from(keys, ((keys[row] >> 1) + 1) << 1, row, n)
        used += 1
    starts[used] = n
    return starts[: used + 1].copy()


@jit
def summarise(
    keys: NDArray[np.int64],
    starts: NDArray[np.int64],
    positives: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Sums over the runs of rows ``starts[g]:starts[g+1]``.

    sums[0..5]: sum of s, sum of s over positives, sum of s^2, sum of abs(s_i - s_j) over ordered pairs,
    smallest and largest s. Distances from the run's smallest score are added up, so rounding is relative to
    the run's width.
    """
    for g in range(starts.size - 1):
        low = score_of(keys[starts[g]])
        k = np.int64(0)
        first = first_hits = second = pairs = rank = 0.0
        for i in range(starts[g], starts[g + 1]):
            label = keys[i] & 1
            distance = score_of(keys[i]) - low
            pairs += distance * rank - first
            first += distance
            first_hits += distance * label
            second += distance * distance
            rank += 1.0
            k += label
        positives[g] = k
        sums[0, g] = rank * low + first
        sums[1, g] = k * low + first_hits
        sums[2, g] = rank * low * low + 2.0 * low * first + second
        sums[3, g] = 2.0 * pairs
        sums[4, g] = low
        sums[5, g] = score_of(keys[starts[g + 1] - 1])


@jit
def count_distinct(keys: NDArray[np.int64]) -> int:
    """Number of distinct scores."""
    total = 1 if keys.size else 0
    for i in range(1, keys.size):
        total += 1 if keys[i] >> 1 != keys[i - 1] >> 1 else 0
    return total


@jit
def pool(
    keys: NDArray[np.int64],
    scores: NDArray[np.float64],
    counts: NDArray[np.int64],
    positives: NDArray[np.int64],
) -> None:
    """Distinct scores, their rows and their positives."""
    last = -1
    for i in range(keys.size):
        if i == 0 or keys[i] >> 1 != keys[i - 1] >> 1:
            last += 1
            scores[last] = score_of(keys[i])
            counts[last] = 0
            positives[last] = 0
        counts[last] += 1
        positives[last] += keys[i] & 1
