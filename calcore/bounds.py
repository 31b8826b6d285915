"""Concentration bounds for means of bounded variables, inverted numerically.

Every function is one-sided and takes ``a = ln(1/delta)``, the number of nats that the error probability
allows, or ``a / n``; nothing here knows about calibration.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def kl_bernoulli(q: float, p: float) -> float:
    """Kullback–Leibler divergence of Bernoulli(`q`) from Bernoulli(`p`), in nats.

    Examples
    --------
    >>> round(kl_bernoulli(0.5, 0.25), 12) == round(0.5 * math.log(4 / 3), 12)
    True
    """
    total = 0.0
    if q > 0.0:
        total += q * math.log(q / p) if p > 0.0 else math.inf
    if q < 1.0:
        total += (1.0 - q) * (math.log1p(-q) - math.log1p(-p)) if p < 1.0 else math.inf
    return max(total, 0.0)


def kl_upper(q: float, nats: float) -> float:
    """Largest p with kl(q, p) <= `nats`.

    If q is the mean of n independent variables in [0, 1] with mean p, then
    ``p <= kl_upper(q, ln(1/delta) / n)`` with probability at least 1 - delta (Chernoff; Hoeffding 1963).

    Examples
    --------
    No event in n rows: (1 - p)^n = delta.

    >>> round(kl_upper(0.0, math.log(20) / 100), 12) == round(1 - 0.05 ** (1 / 100), 12)
    True
    """
    return _edge(q, 1.0, nats)


def kl_lower(q: float, nats: float) -> float:
    """Smallest p with kl(q, p) <= `nats`; the mirror image of `kl_upper`.

    Examples
    --------
    >>> kl_lower(0.0, 0.1)
    0.0
    >>> round(kl_lower(0.9, 0.01), 10) == round(1 - kl_upper(0.1, 0.01), 10)
    True
    """
    return _edge(q, 0.0, nats)


def _edge(q: float, outside: float, nats: float) -> float:
    """Where kl(q, p) passes `nats` between p = q and p = `outside`, by bisection; rounded outwards."""
    inside = q
    if kl_bernoulli(q, outside) <= nats:
        return outside
    while (middle := 0.5 * (inside + outside)) not in (inside, outside):
        if kl_bernoulli(q, middle) <= nats:
            inside = middle
        else:
            outside = middle
    return outside


def excess(t: float) -> float:
    """``e^t - 1 - t``, the exponent of Bennett's and Bernstein's inequalities, without cancellation.

    Examples
    --------
    >>> excess(1.0) == math.e - 2.0
    True
    """
    if abs(t) < 1e-3:
        return t * t * (0.5 + t * (1.0 / 6.0 + t * (1.0 / 24.0 + t / 120.0)))
    return math.expm1(t) - t


def minimise(function: Callable[[float], float], low: float, high: float, *, steps: int = 40) -> float:
    """Least value of `function` seen by a golden-section search on [low, high].

    Used where every argument gives a valid bound, so that an imprecise minimum is only a little loose.

    Examples
    --------
    >>> round(minimise(lambda x: (x - 2.0) ** 2 + 1.0, 0.0, 5.0), 12)
    1.0
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    best = min(at_left, at_right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
            best = min(best, at_left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
            best = min(best, at_right)
    return best
