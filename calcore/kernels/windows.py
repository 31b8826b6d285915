"""Weighted means over sliding windows of sorted rows, in linear time and without drift.

The window of an evaluation point t is the rows with abs(x - t) <= b, a run ``low:high``. Both ends only move
right as t ascends, so they pass over the rows once.

Sums of 0/1 labels are differences of running totals, which are exact integers. Other sums are never
subtracted from, because a large row leaves its rounding behind when it goes: the run is cut at an *anchor*,
sums grow from there to both sides, and when `low` has reached the anchor a new one is set at `high`. Each row
is added three times at most. (A queue made of two stacks.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

_BLOCK = 512
"""Evaluation points at a time: their ends stay in the L1 cache."""

_CHUNK = 128
"""Rows whose sums up to the anchor are kept one by one; of all others, those of every 128th row are."""

_FAINT = 2.0**-20
"""Mean Epanechnikov weight below which a window is summed row by row."""


@jit
def first_inside(t: Any, b: Any) -> Any:
    """Smallest double that is not below the real number t - b, which `t - b` may round down.

    The rounding error of a difference is a double, and these operations find it (Knuth). b >= 0.
    """
    end = t - b
    back = t - end
    error = (t - (end + back)) + (back - b)
    bits = np.float64(end).view(np.int64)
    away = 1 - 2 * np.int64(bits < 0)
    return np.int64(bits + away * np.int64(error > 0.0)).view(np.float64)


@jit
def first_from(x: NDArray[np.float64], value: Any) -> int:
    """Number of ascending x that are below `value`."""
    low, high = 0, x.size
    while low < high:
        middle = (low + high) // 2
        if x[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def move_ends(
    x: NDArray[np.float64],
    at: NDArray[np.float64],
    half_width: float,
    low: Any,
    high: Any,
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
) -> tuple[Any, Any]:
    """Write the windows ``lows[j]:highs[j]`` of a block of ascending points; start from `low`, `high`.

    Four rows are compared at a time and the comparisons added: how many rows a window gains is random, and a
    branch per row would be guessed wrong for half of them. Places are unsigned, because signed ones may mean
    a place from the end, and to look whether they do costs as much as the comparison.
    """
    firsts, lasts = np.empty(at.size), np.empty(at.size)
    for j in range(at.size):
        firsts[j] = first_inside(at[j], half_width)
        lasts[j] = -first_inside(-at[j], half_width)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    n, safe = np.uint64(x.size), np.uint64(max(x.size - 3, 0))
    low, high = np.uint64(low), np.uint64(high)
    for j in range(at.size):
        first, last = firsts[j], lasts[j]
        while high < safe:
            step = np.uint64(x[high] <= last) + np.uint64(x[high + one] <= last)
            step += np.uint64(x[high + two] <= last) + np.uint64(x[high + three] <= last)
            high += step
            if step < four:
                break
        while low < safe:
            step = np.uint64(x[low] < first) + np.uint64(x[low + one] < first)
            step += np.uint64(x[low + two] < first) + np.uint64(x[low + three] < first)
            low += step
            if step < four:
                break
        if high >= safe:
            while high < n and x[high] <= last:
                high += one
            while low < n and x[low] < first:
                low += one
        lows[j], highs[j] = low, high
    return low, high


@jit
def running_count(labels: NDArray[np.uint8], passed: NDArray[np.uint32]) -> None:
    """Positives among the first i rows, i = 0, ..., n, modulo 2^32."""
    total = np.uint32(0)
    for i in range(labels.size):
        passed[i] = total
        total += np.uint32(labels[i])
    passed[labels.size] = total


@jit
def box_of_labels(
    x: NDArray[np.float64],
    passed: NDArray[np.uint32],
    at: NDArray[np.float64],
    half_width: float,
    out: NDArray[np.float64],
) -> None:
    """Mean of the 0/1 labels in each window, NaN without rows; `x` and `at` ascend.

    `passed` is `running_count`; fewer than 2^32 positives in a window. Correctly rounded.
    """
    if at.size == 0:
        return
    lows, highs = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    low = high = first_from(x, first_inside(at[0], half_width))
    for begin in range(0, at.size, _BLOCK):
        block = at[begin : begin + _BLOCK]
        low, high = move_ends(x, block, half_width, low, high, lows, highs)
        for j in range(block.size):
            positives = np.uint32(passed[np.uint64(highs[j])] - passed[np.uint64(lows[j])])
            rows = highs[j] - lows[j]
            out[begin + j] = np.int64(positives) / rows if rows else np.nan


@jit
def two_sum(a: Any, b: Any) -> Any:
    """a + b rounded, and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def _add_row(sums: NDArray[np.float64], to: int, source: int, mass: Any, value: Any, distance: Any) -> None:
    """Write ``sums[source]`` and one row to ``sums[to]``.

    Columns 0, 2, 4: sums of mass * distance^k, k = 0, 1, 2; columns 1, 3, 5: of mass * value * distance^k (or
    only the first two columns). The second half of the columns collects the rounding errors of the first.
    """
    half = sums.shape[1] // 2
    moment = mass * value
    for k in range(0, half, 2):
        sums[to, k], error = two_sum(sums[source, k], mass)
        sums[to, half + k] = sums[source, half + k] + error
        sums[to, k + 1], error = two_sum(sums[source, k + 1], moment)
        sums[to, half + k + 1] = sums[source, half + k + 1] + error
        mass *= distance
        moment *= distance


@jit
def _add_chunk(
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    masses: NDArray[np.float64],
    begin: int,
    end: int,
    origin: Any,
    half_width: float,
    near: NDArray[np.float64],
) -> None:
    """Write to ``near[i - begin]`` the sum of rows i, ..., end - 1 and what ``near[end - begin]`` holds."""
    for i in range(end - 1, begin - 1, -1):
        mass = masses[i] if masses.size else 1.0
        _add_row(near, i - begin, i - begin + 1, mass, values[i], (x[i] - origin) / half_width)


@jit
def means(
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    masses: NDArray[np.float64],
    at: NDArray[np.float64],
    half_width: float,
    curved: bool,
    out: NDArray[np.float64],
) -> None:
    """Weighted mean of the values in each window; NaN where the total weight is 0. `x` and `at` ascend.

    Parameters
    ----------
    x, values, at, out : float64
        Rows, evaluation points and results.
    masses : float64, as long as `x` or empty
        Weights > 0 of the rows; empty: 1 each.
    half_width : float
        b > 0.
    curved : bool
        Whether a row at distance r b is weighted by 1 - r^2 (Epanechnikov) besides, or not (box).

    Notes
    -----
    With u = 2^-53, at most about 10^7 rows in a window and M the largest absolute value in it, the error is
    at most 5 u M for a box. For Epanechnikov weights whose mean in the window is w, it is at most 2^-45 M /
    w; where w < 2^-20 the rows are summed one by one, with an error of 20 u M.
    """
    if at.size == 0:
        return
    columns = 12 if curved else 4
    half = columns // 2
    near, far = np.zeros((_CHUNK + 1, columns)), np.empty((x.size // _CHUNK + 2, columns))
    right, total = np.empty((1, columns)), np.empty(half)
    lows, highs = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    low = high = first_from(x, first_inside(at[0], half_width))
    start = anchor = reach = chunk = 0
    origin: Any = 0.0
    for block in range(0, at.size, _BLOCK):
        size = min(_BLOCK, at.size - block)
        low, high = move_ends(x, at[block : block + size], half_width, low, high, lows, highs)
        for j in range(size):
            first, last = lows[j], highs[j]
            if first == last:
                out[block + j] = np.nan
                continue
            if first >= anchor:
                start, anchor, reach, origin = first, last, last, x[last - 1]
                right[:] = 0.0
                near[0] = 0.0
                for chunk in range((anchor - 1 - start) // _CHUNK, -1, -1):
                    begin = start + chunk * _CHUNK
                    end = min(begin + _CHUNK, anchor)
                    far[chunk] = near[0]
                    near[end - begin] = far[chunk]
                    _add_chunk(x, values, masses, begin, end, origin, half_width, near)
            if (first - start) // _CHUNK != chunk:
                chunk = (first - start) // _CHUNK
                begin = start + chunk * _CHUNK
                end = min(begin + _CHUNK, anchor)
                near[end - begin] = far[chunk]
                _add_chunk(x, values, masses, begin, end, origin, half_width, near)
            while reach < last:
                mass = masses[reach] if masses.size else 1.0
                _add_row(right, 0, 0, mass, values[reach], (x[reach] - origin) / half_width)
                reach += 1
            row = first - start - chunk * _CHUNK
            for k in range(half):
                rounded, error = two_sum(near[row, k], right[0, k])
                total[k] = rounded + (error + near[row, half + k] + right[0, half + k])
            mass, moment = total[0], total[1]
            if curved:
                z = (at[block + j] - origin) / half_width
                mass = (1.0 - z * z) * total[0] + 2.0 * z * total[2] - total[4]
                moment = (1.0 - z * z) * total[1] + 2.0 * z * total[3] - total[5]
                if mass < _FAINT * total[0]:
                    mass, moment = _faint(x, values, masses, at[block + j], half_width, first, last)
            out[block + j] = moment / mass if mass > 0.0 else np.nan


@jit
def _faint(
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    masses: NDArray[np.float64],
    t: Any,
    half_width: float,
    low: int,
    high: int,
) -> Any:
    """Sums with Epanechnikov weights (times b) of the rows ``low:high``, all near the window's edges.

    The distance to the edge, half_width - abs(x - t), is rounded once.
    """
    sums = np.zeros((1, 4))
    for i in range(low, high):
        distance, error = two_sum(x[i], -t)
        if distance < 0.0:
            distance, error = -distance, -error
        weight = ((half_width - distance) - error) * (1.0 + distance / half_width)
        mass = masses[i] if masses.size else 1.0
        _add_row(sums, 0, 0, mass * weight, values[i], 0.0)
    return sums[0, 0] + sums[0, 2], sums[0, 1] + sums[0, 3]
