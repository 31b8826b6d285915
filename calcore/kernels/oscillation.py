"""Worst total error that a budget of oscillation can buy, over bins (THEORY 1.4)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

Floats = NDArray[np.float64]


@jit
def capped_error(p: float, c: float, o: float) -> float:
    """F(p; c, o): largest mean |c - eta| over eta in [0, 1] with mean p and range at most o."""
    if p + c > 1.0:
        p, c = 1.0 - p, 1.0 - c
    gap = abs(c - p)
    if o <= gap:
        return gap
    if o <= p + c:
        return 0.5 * o + gap * gap / (2.0 * o)
    return c + p - 2.0 * c * p / o


@jit
def priced_sum(
    rate: Floats, center: Floats, weight: Floats, cap: Floats, multiplier: float
) -> tuple[float, float]:
    """Sum over bins of sup over 0 <= o <= cap of ``weight * F(rate; center, o) - multiplier * o``.

    F is constant, then convex, then concave in o, so the supremum is at 0, at the end of the convex part,
    at the stationary point of the concave part, or at the cap. The second number is the oscillation bought:
    minus the slope of the sum in `multiplier`.
    """
    total = 0.0
    bought = 0.0
    for j in range(weight.size):
        p, c = rate[j], center[j]
        if p + c > 1.0:
            p, c = 1.0 - p, 1.0 - c
        top = cap[j]
        if multiplier > 0.0:
            stationary = math.sqrt(2.0 * c * p * weight[j] / multiplier)
            top = min(top, max(stationary, p + c))
        best = weight[j] * abs(c - p)
        gain = weight[j] * capped_error(p, c, top) - multiplier * top
        if gain > best:
            best = gain
            bought += top
        total += best
    return total, bought


@jit
def budgeted_error(
    rate: Floats, center: Floats, weight: Floats, cap: Floats, budget: float, tolerance: float
) -> float:
    """Upper bound of max of ``sum weight * F(rate; center, o)`` over 0 <= o <= cap, sum of o <= `budget`.

    Lagrange dual: for every multiplier ``v >= 0`` the value ``v * budget + priced_sum(v)`` is an upper bound,
    convex in v with slope `budget` less the oscillation bought. The tangents at two multipliers that bracket
    the best one meet below it, and say where to look next, until the gap is `tolerance` of the value. Beyond
    ``v = max(weight)`` nothing is bought, since F(o) - F(0) <= o.
    """
    low, high = 0.0, 0.0
    for j in range(weight.size):
        high = max(high, weight[j])
    at_low, bought = priced_sum(rate, center, weight, cap, low)
    slope_low = budget - bought
    if slope_low >= 0.0 or high == 0.0:
        return at_low
    at_high, bought = priced_sum(rate, center, weight, cap, high)
    at_high += high * budget
    slope_high = budget - bought
    best = min(at_low, at_high)
    for step in range(60):
        if slope_high <= 0.0:
            break
        meet = low + (at_high - at_low - slope_high * (high - low)) / (slope_low - slope_high)
        if best - (at_low + slope_low * (meet - low)) <= tolerance * best:
            break
        if step % 3 == 2 or not low < meet < high:
            meet = 0.5 * (low + high)
        value, bought = priced_sum(rate, center, weight, cap, meet)
        value += meet * budget
        best = min(best, value)
        if bought > budget:
            low, at_low, slope_low = meet, value, budget - bought
        else:
            high, at_high, slope_high = meet, value, budget - bought
    return best
