"""Windows of sorted scores around each of them: rates of positives, and distances to what is averaged.

Sums of labels and distances are of whole numbers, so nothing drifts as windows slide. Distances are counted
in units, a small power of two: a distance of d units is off by less than one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.sorting import score_of
from calcore.kernels.windows import two_sum

FITTED, TESTED = 1, 2
"""Bits of a row's role: its label is averaged; its score is where the average is looked at."""


def unit_for(half_width: float, n: int) -> float:
    """Unit of distances: at most 2^-13 of the half width for up to 2^32 rows, and 2^-17 for 2^24.

    Sums of n squares of distances up to the half width stay below 2^61. 0 where the half width is 0: windows
    then are ties.
    """
    if half_width == 0.0:
        return 0.0
    bits = (58 - n.bit_length()) // 2
    return math.ldexp(1.0, math.frexp(half_width)[1] - 1 - bits)


@jit
def window_errors(
    keys: NDArray[np.int64],
    roles: NDArray[np.uint8],
    half_width: float,
    unit: float,
    slope: float,
    curvature: float,
    sizes: NDArray[np.uint32],
) -> tuple[Any, Any, Any]:
    """Sums over tested rows of |s - rate|, of what the window can hide, and of 1 / sqrt(rows in the window).

    The window of a row holds the fitted rows with abs(s - s_i) <= half_width, as doubles are subtracted: a
    symmetric relation. ``sizes[i]`` gets their number. A window without rows counts as an error of 1.

    Hidden, at most 1 per row and 0 in a window of one score: the smaller of ``slope mean |d|`` and ``slope
    |mean d| + curvature / 2 mean d^2``, d = s_j - s_i over the window.

    Parameters
    ----------
    keys, roles : arrays of shape (n,)
        Sorted keys of `sorting.pack`; `FITTED`, `TESTED` or both.
    unit : float
        `unit_for` the half width.
    slope, curvature : float
        Bounds of the first two derivatives; infinite if not known.

    Notes
    -----
    What is hidden is never below the truth by more than 2^-50 of itself, and above by two units times the
    slope and 4 units times half_width times the curvature, per row. The other two are off by 2^-50 of
    themselves.
    """
    scale = 1.0 / unit if unit > 0.0 else 0.0
    error = hidden = noise = 0.0
    error_rest = hidden_rest = noise_rest = 0.0
    low = high = 0
    rows = left = positives = 0  # in the window; left: those before row i
    near = signed = squares = 0  # sums of |d|, d and d^2 in units
    place = 0
    for i in range(keys.size):
        score = score_of(keys[i])
        while low < high and score - score_of(keys[low]) > half_width:
            if roles[low] & FITTED:
                d = math.floor(score_of(keys[low]) * scale) - place
                rows -= 1
                positives -= int(keys[low] & 1)
                left -= 1
                near -= abs(d)
                signed -= d
                squares -= d * d
            low += 1
        here = math.floor(score * scale)
        step = here - place
        squares += step * (rows * step - 2 * signed)
        near += step * (2 * left - rows)
        signed -= rows * step
        place = here
        while high < keys.size and score_of(keys[high]) - score <= half_width:
            if roles[high] & FITTED:
                d = math.floor(score_of(keys[high]) * scale) - place
                rows += 1
                positives += int(keys[high] & 1)
                near += abs(d)
                signed += d
                squares += d * d
            high += 1
        sizes[i] = rows
        if roles[i] & TESTED:
            if rows == 0:
                error, rest = two_sum(error, 1.0)
                error_rest += rest
            else:
                error, rest = two_sum(error, abs(score - positives / rows))
                error_rest += rest
                noise, rest = two_sum(noise, 1.0 / math.sqrt(rows))
                noise_rest += rest
                if score_of(keys[low]) < score_of(keys[high - 1]):
                    distance = unit * (near / rows) + unit
                    bent = slope * (unit * (abs(signed) / rows) + unit)
                    square = unit * unit * (squares / rows) + 2.0 * unit * distance
                    most = min(1.0, slope * distance, bent + 0.5 * curvature * square)
                    hidden, rest = two_sum(hidden, most)
                    hidden_rest += rest
        if roles[i] & FITTED:
            left += 1
    return error + error_rest, hidden + hidden_rest, noise + noise_rest


@jit
def window_weights(
    keys: NDArray[np.int64],
    roles: NDArray[np.uint8],
    half_width: float,
    sizes: NDArray[np.uint32],
) -> tuple[Any, Any]:
    """Sums over fitted rows of c^2 and of (c^2 - 1)_+, c the sum of 1 / sizes[i] over tested rows i nearby.

    c is the weight of the row's label in all averages together; in each it is 1 / sizes[i]. Nearby is as in
    `window_errors`. Sliding sums carry their rounding errors along (twice the digits).
    """
    low = high = 0
    weight = weight_rest = total = total_rest = excess = excess_rest = 0.0
    for j in range(keys.size):
        score = score_of(keys[j])
        while low < high and score - score_of(keys[low]) > half_width:
            if roles[low] & TESTED and sizes[low]:
                weight, rest = two_sum(weight, -1.0 / sizes[low])
                weight_rest += rest
            low += 1
        while high < keys.size and score_of(keys[high]) - score <= half_width:
            if roles[high] & TESTED and sizes[high]:
                weight, rest = two_sum(weight, 1.0 / sizes[high])
                weight_rest += rest
            high += 1
        if roles[j] & FITTED:
            square = (weight + weight_rest) ** 2
            total, rest = two_sum(total, square)
            total_rest += rest
            if square > 1.0:
                excess, rest = two_sum(excess, square - 1.0)
                excess_rest += rest
    return total + total_rest, excess + excess_rest
