"""Kullback–Leibler divergence of two Bernoulli laws, without cancellation, and where it passes a number."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

_TERMS = 18
_ROUNDING = 1.0 + 2.0**-47
"""What rounding may take from `kl_bernoulli`, and more."""


@jit
def kl_bernoulli(q: float, p: float) -> float:
    """Divergence of Bernoulli(q) from Bernoulli(p), in nats, to a few units in the last place.

    With x = (p - q) / q it is ``q (x - ln(1 + x))`` and the same of 1 - q, 1 - p: both >= 0, so that nothing
    cancels however near p is to q.
    """
    if q == p:
        return 0.0
    if (p <= 0.0 and q > 0.0) or (p >= 1.0 and q < 1.0):
        return math.inf
    return _part(q, p, p - q) + _part(1.0 - q, 1.0 - p, q - p)


@jit
def _part(q: float, p: float, difference: float) -> float:
    """``q (x - ln(1 + x))`` for x = difference / q.

    With r = x / (2 + x), ``ln(1 + x) = 2 (r + r^3 / 3 + r^5 / 5 + ...)`` and ``x - 2 r = x r``.
    """
    if q <= 0.0:
        return difference
    if not abs(difference) < 0.5 * q:
        return difference - q * math.log(p / q)
    x = difference / q
    r = x / (2.0 + x)
    square = r * r
    total = 0.0
    for k in range(_TERMS, 0, -1):
        total = total * square + 1.0 / (2.0 * k + 1.0)
    return q * (x * r - 2.0 * r * square * total)


@jit
def edge(q: float, outside: float, nats: float) -> float:
    """Where kl(q, p) passes `nats` between p = q and p = `outside`: halving, down to neighbouring doubles.

    The one outside is returned, and rounding of the divergence counts as inside.
    """
    inside = q
    allowed = nats * _ROUNDING
    if kl_bernoulli(q, outside) <= allowed:
        return outside
    while True:
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            return outside
        if kl_bernoulli(q, middle) <= allowed:
            inside = middle
        else:
            outside = middle


@jit
def edges(q: NDArray[np.float64], outside: float, nats: NDArray[np.float64]) -> NDArray[np.float64]:
    """`edge` of each pair."""
    out = np.empty(q.size)
    for i in range(q.size):
        out[i] = edge(q[i], outside, nats[i])
    return out
