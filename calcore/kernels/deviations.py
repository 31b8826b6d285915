"""Absolute deviations and differences in bins of consecutive cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.sorting import score_of


@jit
def absolute_deviations(
    n: NDArray[np.int64],
    s: NDArray[np.float64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    starts: NDArray[np.int64],
    keys: NDArray[np.int64],
    cuts: NDArray[np.int64],
    centers: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sum of abs(s_i - centers[b]) over the rows of bin b, the cells ``cuts[b]:cuts[b+1]``.

    A cell that does not hold the centre inside its range has all its rows on one side: abs(s - n c). In the
    one that does, the sorted keys ``starts[j]:starts[j+1]`` are read; without them
    (`starts` empty) the chord of s -> abs(s - c) over [lo, hi] at the cell's mean bounds the sum from above.
    """
    out = np.empty(centers.size)
    for b in range(centers.size):
        center = centers[b]
        total = 0.0
        for j in range(cuts[b], cuts[b + 1]):
            if center <= lo[j]:
                total += max(s[j] - n[j] * center, 0.0)
            elif center >= hi[j]:
                total += max(n[j] * center - s[j], 0.0)
            elif starts.size:
                for i in range(starts[j], starts[j + 1]):
                    total += abs(score_of(keys[i]) - center)
            else:
                above = min(max(s[j] - n[j] * lo[j], 0.0), n[j] * (hi[j] - lo[j]))
                below = n[j] * (hi[j] - lo[j]) - above
                total += (below * (center - lo[j]) + above * (hi[j] - center)) / (hi[j] - lo[j])
        out[b] = total
    return out


@jit
def absolute_differences(
    n: NDArray[np.int64],
    s: NDArray[np.float64],
    lo: NDArray[np.float64],
    within: NDArray[np.float64],
    cuts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Sum of abs(s_i - s_j) over ordered pairs of rows of one bin; `within` holds the pairs inside a cell."""
    out = np.empty(cuts.size - 1)
    for b in range(cuts.size - 1):
        total = 0.0
        rows = 0
        first = 0.0
        for j in range(cuts[b], cuts[b + 1]):
            distance = s[j] - n[j] * lo[cuts[b]]
            total += within[j] + 2.0 * (rows * distance - n[j] * first)
            rows += n[j]
            first += distance
        out[b] = total
    return out
