"""Sort scores with their labels, pool ties, and summarise runs of sorted scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def pack(labels: NDArray[np.uint8], scores: NDArray[np.float64], keys: NDArray[np.int64]) -> None:
    """Write one sortable integer per row: the score's bit pattern, then the label.

    Doubles in [0, 1] are ordered like their bit patterns, whose two top bits are 0.
    """
    patterns = scores.view(np.int64)
    for i in range(scores.size):
        keys[i] = (patterns[i] << 1) | np.int64(labels[i])


@jit
def count_distinct(keys: NDArray[np.int64]) -> int:
    """Number of distinct scores among sorted keys."""
    total = np.int64(keys.size > 0)
    for i in range(1, keys.size):
        total += np.int64((keys[i] >> 1) != (keys[i - 1] >> 1))
    return total


@jit
def pool(keys: NDArray[np.int64], counts: NDArray[np.int64], positives: NDArray[np.int64]) -> None:
    """Count rows and positives per distinct score; the scores' bit patterns overwrite the front of `keys`."""
    last = -1
    previous = np.int64(-1)
    for i in range(keys.size):
        pattern = keys[i] >> 1
        label = keys[i] & 1
        if pattern != previous:
            last += 1
            previous = pattern
            keys[last] = pattern
            counts[last] = 0
            positives[last] = 0
        counts[last] += 1
        positives[last] += label


@jit
def summarise(
    scores: NDArray[np.float64],
    counts: NDArray[np.int64],
    positives: NDArray[np.int64],
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    hits: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Sums over runs ``starts[g]:starts[g+1]`` of distinct scores.

    rows, hits: counts and positives. sums[0..3]: sum of s, sum of s over positives, sum of s^2, and the
    sum of abs(s_i - s_j) over all ordered pairs. Distances from the run's smallest score are summed, so
    rounding is relative to the run's width, not to the scores.
    """
    for g in range(starts.size - 1):
        low = scores[starts[g]]
        n = k = 0
        first = first_hits = second = pairs = 0.0
        for i in range(starts[g], starts[g + 1]):
            distance = scores[i] - low
            count = float(counts[i])
            pairs += count * (distance * n - first)
            first += count * distance
            first_hits += float(positives[i]) * distance
            second += count * distance * distance
            n += counts[i]
            k += positives[i]
        rows[g] = n
        hits[g] = k
        sums[0, g] = n * low + first
        sums[1, g] = k * low + first_hits
        sums[2, g] = n * low * low + 2.0 * low * first + second
        sums[3, g] = 2.0 * pairs
