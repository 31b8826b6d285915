"""Residuals y - s by distinct score: running sums, moments in cells, and areas under smoothed ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.sorting import score_of
from calcore.kernels.windows import two_sum

DEGREES = 4
"""Moments of a cell: the places of its rows to the powers 0, ..., 3."""


@jit
def pool_residuals(
    keys: NDArray[np.int64], scores: NDArray[np.float64], residuals: NDArray[np.float64]
) -> None:
    """Distinct scores and their sums of y - s: positives less rows times score, rounded once or twice."""
    found, begin = 0, 0
    positives = np.int64(0)
    for i in range(keys.size):
        positives += keys[i] & 1
        if i + 1 == keys.size or keys[i + 1] >> 1 != keys[i] >> 1:
            score = score_of(keys[i])
            scores[found] = score
            residuals[found] = positives - (i + 1 - begin) * score
            found += 1
            begin = i + 1
            positives = np.int64(0)


@jit
def cumulative_extremes(keys: NDArray[np.int64]) -> Any:
    """Smallest and largest sum of y - s over the rows up to a score, 0 included; and the sum of s (1 - s).

    Sums are looked at after all rows of a score. Both are compensated: rounding does not grow with the rows.
    """
    low = high = total = rounding = variance = lost = 0.0
    positives, begin = np.int64(0), 0
    for i in range(keys.size):
        positives += keys[i] & 1
        if i + 1 == keys.size or keys[i + 1] >> 1 != keys[i] >> 1:
            score, rows = score_of(keys[i]), i + 1 - begin
            total, error = two_sum(total, positives - rows * score)
            rounding += error
            difference = total + rounding
            low, high = min(low, difference), max(high, difference)
            variance, error = two_sum(variance, rows * (score * (1.0 - score)))
            lost += error
            positives, begin = np.int64(0), i + 1
    return low, high, variance + lost


@jit
def running_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the first i + 1 values, each as if it were computed with twice the digits, then rounded."""
    sums = np.empty(values.size)
    total = rounding = 0.0
    for i in range(values.size):
        total, error = two_sum(total, values[i])
        rounding += error
        sums[i] = total + rounding
    return sums


@jit
def shortened(places: NDArray[np.float64], reach: float) -> float:
    """Length of [0, 1] when gaps are cut to `reach` at both ends, and to twice that between places."""
    length = min(places[0], reach) + min(1.0 - places[places.size - 1], reach)
    excess = max(places[0] - reach, 0.0) + max(1.0 - places[places.size - 1] - reach, 0.0)
    for i in range(1, places.size):
        gap = places[i] - places[i - 1]
        if gap > 2.0 * reach:
            excess += gap - 2.0 * reach
            length += 2.0 * reach
        else:
            length += gap
    return length if excess > 0.0 else 1.0


@jit
def moments(
    places: NDArray[np.float64],
    residuals: NDArray[np.float64],
    firsts: NDArray[np.float64],
    reach: float,
    length: float,
    out: NDArray[np.float64],
) -> None:
    """Sums of r u^p per cell, p = 0, ..., 3, u from the cell's centre in units of its width.

    Cells divide the `shortened` axis of that `length` evenly. ``firsts[i]`` is the sum of r (s - place) over
    the rows that stand at ``places[i]``; `firsts` is empty if all of these are 0.
    """
    m = out.shape[1]
    scale = m / length
    cut = max(places[0] - reach, 0.0)
    cell = -1
    s0 = e0 = s1 = s2 = s3 = 0.0
    for i in range(places.size):
        if i > 0:
            cut += max(places[i] - places[i - 1] - 2.0 * reach, 0.0)
        place = (places[i] - cut) * scale
        here = min(max(np.int64(place), 0), m - 1)
        if here != cell:
            if cell >= 0:
                out[0, cell] += s0 + e0
                out[1, cell] += s1
                out[2, cell] += s2
                out[3, cell] += s3
            cell = here
            s0 = e0 = s1 = s2 = s3 = 0.0
        u = place - here - 0.5
        r = residuals[i]
        s0, error = two_sum(s0, r)
        e0 += error
        s1 += r * u
        s2 += r * u * u
        s3 += r * u * u * u
        if firsts.size:
            d = firsts[i] * scale
            s1 += d
            s2 += 2.0 * d * u
            s3 += 3.0 * d * u * u
    out[0, cell] += s0 + e0
    out[1, cell] += s1
    out[2, cell] += s2
    out[3, cell] += s3


@jit
def absolute_areas(
    values: NDArray[np.float64], means: NDArray[np.float64], areas: NDArray[np.float64]
) -> None:
    """Integral of the absolute value of a function over each of the cells, in units of their width.

    In cell j the function is the parabola with the right values at both ends, ``values[j]`` and ``values[j +
    1]``, and the right mean ``means[j]``; it is integrated exactly, between its roots.
    """
    for j in range(means.size):
        c = values[j]
        a = 6.0 * (0.5 * (c + values[j + 1]) - means[j])
        b = values[j + 1] - c - a
        areas[j] = abs(means[j])
        discriminant = b * b - 4.0 * a * c
        if discriminant > 0.0:
            t = -0.5 * (b + math.copysign(math.sqrt(discriminant), b))
            one = t / a if a != 0.0 else -1.0
            two = c / t if t != 0.0 else -1.0
            if one > two:
                one, two = two, one
            total = last = 0.0
            for root in (one, two):
                if 0.0 < root < 1.0:
                    area = root * (c + root * (0.5 * b + root * a / 3.0))
                    total += abs(area - last)
                    last = area
            areas[j] = total + abs(means[j] - last)
