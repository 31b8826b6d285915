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
def priced_sum(rate: Floats, center: Floats, weight: Floats, cap: Floats, multiplier: float) -> float:
    """Sum over bins of sup over 0 <= o <= cap of ``weight * F(rate; center, o) - multiplier * o``.

    F is constant, then convex, then concave in o, so the supremum is at 0, at the end of the convex part,
    at the stationary point of the concave part, or at the cap.
    """
    total = 0.0
    for j in range(weight.size):
        p, c = rate[j], center[j]
        if p + c > 1.0:
            p, c = 1.0 - p, 1.0 - c
        top = cap[j]
        if multiplier > 0.0:
            stationary = math.sqrt(2.0 * c * p * weight[j] / multiplier)
            top = min(top, max(stationary, p + c))
        best = weight[j] * abs(c - p)
        total += max(best, weight[j] * capped_error(p, c, top) - multiplier * top)
    return total


@jit
def budgeted_error(rate: Floats, center: Floats, weight: Floats, cap: Floats, budget: float) -> float:
    """Upper bound of max of ``sum weight * F(rate; center, o)`` over 0 <= o <= cap, sum of o <= `budget`.

    Lagrange dual: for every multiplier ``v >= 0`` the value ``v * budget + priced_sum(v)`` is an upper bound,
    and it is convex in v; golden section finds a v near the best one. Beyond ``v = max(weight)`` nothing is
    bought, since F(o) - F(0) <= o.
    """
    free = 0.0
    heaviest = 0.0
    for j in range(weight.size):
        free += cap[j]
        heaviest = max(heaviest, weight[j])
    if free <= budget or heaviest == 0.0:
        return priced_sum(rate, center, weight, cap, 0.0)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = 0.0, heaviest
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left = left * budget + priced_sum(rate, center, weight, cap, left)
    at_right = right * budget + priced_sum(rate, center, weight, cap, right)
    for _ in range(48):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = left * budget + priced_sum(rate, center, weight, cap, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = right * budget + priced_sum(rate, center, weight, cap, right)
    return min(at_left, at_right)
