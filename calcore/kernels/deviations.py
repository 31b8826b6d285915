"""Absolute deviations and differences in bins of consecutive cells."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.sorting import score_of


@jit
def absolute_deviations(
    n: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    starts: NDArray[np.int64],
    keys: NDArray[np.int64],
    cuts: NDArray[np.int64],
    centers: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sum of abs(s_i - centers[b]) over the rows of bin b, the cells ``cuts[b]:cuts[b+1]``; never below it.

    The mean of cell j lies in [low, high]. A cell that does not hold the centre inside its range has all its
    rows on one side: n abs(mean - c). In the one that does, the sorted keys ``starts[j]:starts[j+1]`` are
    read; without them (`starts` empty) the chord of s -> abs(s - c) over [lo, hi] at the mean bounds the sum
    from above; it is linear in the mean, so the larger end of [low, high] decides. No term is negative, and
    the last factor makes up for rounding.
    """
    out = np.empty(centers.size)
    for b in range(centers.size):
        center = centers[b]
        total = 0.0
        for j in range(cuts[b], cuts[b + 1]):
            if center <= lo[j]:
                total += n[j] * (high[j] - center)
            elif center >= hi[j]:
                total += n[j] * (center - low[j])
            elif starts.size:
                for i in range(starts[j], starts[j + 1]):
                    total += abs(score_of(keys[i]) - center)
            else:
                left, right, width = center - lo[j], hi[j] - center, hi[j] - lo[j]
                at_low = left * ((hi[j] - low[j]) / width) + right * ((low[j] - lo[j]) / width)
                at_high = left * ((hi[j] - high[j]) / width) + right * ((high[j] - lo[j]) / width)
                total += n[j] * max(at_low, at_high)
        out[b] = total * (1.0 + (cuts[b + 1] - cuts[b] + 8) * 2.0**-52)
    return out


@jit
def absolute_differences(
    n: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    within: NDArray[np.float64],
    cuts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Sum of abs(s_i - s_j) over ordered pairs of rows of each bin; never below it.

    `within` holds the pairs inside a cell. Two cells c < d whose means lie in [low, high] cost at most
    n_c n_d (high_d - low_c): low_d - low_c is a sum of gaps between neighbours, and high_d - low_d is added.
    No term is negative, and the last factor makes up for rounding.
    """
    out = np.empty(cuts.size - 1)
    for b in range(cuts.size - 1):
        total = 0.0
        before = 0
        after = 0
        for j in range(cuts[b], cuts[b + 1]):
            after += n[j]
        for j in range(cuts[b], cuts[b + 1]):
            if before:
                total += 2.0 * before * after * (low[j] - low[j - 1])
            total += within[j] + 2.0 * before * n[j] * (high[j] - low[j])
            before += n[j]
            after -= n[j]
        out[b] = total * (1.0 + (cuts[b + 1] - cuts[b] + 8) * 2.0**-52)
    return out


@jit
def binomial_noise(n: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Sum of upper bounds of E|K - n p| for binomial K: de Moivre's formula, at most sqrt(n p (1 - p)).

    ``E|K - n p| = 2 v C(n, v) p^v (1 - p)^(n - v + 1)`` with ``v = floor(n p) + 1``. The logarithm of the
    gamma function costs a relative error below 1e-6 up to n = 10^8, by which the result is raised; above, and
    wherever it is smaller, the square root stands.
    """
    total = 0.0
    for j in range(n.size):
        spread = math.sqrt(n[j] * p[j] * (1.0 - p[j]))
        v = math.floor(n[j] * p[j]) + 1.0
        if spread > 0.0 and v <= n[j] <= 1e8:
            log = math.lgamma(n[j] + 1.0) - math.lgamma(v) - math.lgamma(n[j] - v + 1.0)
            log += v * math.log(p[j]) + (n[j] - v + 1.0) * math.log1p(-p[j])
            spread = min(spread, 2.0 * math.exp(log) * (1.0 + 1e-6))
        total += spread
    return total
