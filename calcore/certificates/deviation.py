"""How far chance can move an averaged calibration error: deviations (a), (b) and (c) of THEORY 1.2.

Each is an infimum over t > 0 of closed forms, every one of which is valid if t is fixed in advance. It may be
taken after seeing the data: the bound says "CE <= x_t for all t", and at the truth the best t is a number.
Which of the three may be used must not depend on the scores, nor may the share of delta.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from calcore.bounds import excess, minimise


class Deviation(NamedTuple):
    """``CE <= base + sample + transfer``.

    Where transfer is positive, ``base + sample`` bounds the error over the sample's scores.
    """

    sample: float
    transfer: float

    @property
    def total(self) -> float:
        return self.sample + self.transfer


def sub_gaussian(base: float, n: int, nats: float, surplus: float = 0.0) -> Deviation:
    """Deviation (a): averages with ``||A' sign||^2 <= (1 + surplus) n``; projections have no surplus."""
    spread = 1.0 + surplus

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        return math.expm1(-(t * base + spread * t * t / 8.0 + nats / n)) / math.expm1(-t)

    total = minimise(bound, *_range_of_t(n, nats)) - base
    return _split(total, math.sqrt(0.5 * spread * nats / n))


def bernstein(
    base: float, n: int, nats: float, brier: float, surplus: float = 0.0, reach: float = 1.0
) -> Deviation:
    """Deviation (b): weights in [-reach, reach] whose squares exceed 1 by at most `surplus` on average.

    `brier` is an upper bound of the population's E(S - Y)^2.
    """

    def growth(t: float) -> tuple[float, float]:
        phi = excess(reach * t) / (reach * reach)
        v = min(0.25 * phi, 300.0)  # beyond that the bound is far above 1 anyway
        return phi * brier * (math.expm1(v) / v), 0.25 * phi * surplus + nats / n

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        growing, cost = growth(t)
        return (growing - math.expm1(-(t * base + cost))) / t

    def sample(log_t: float) -> float:
        t = math.exp(log_t)
        growing, cost = growth(t)
        return (math.log1p(growing) + cost) / t

    search = _range_of_t(n, nats)
    return _split(minimise(bound, *search) - base, minimise(sample, *search))


def signs(base: float, n: int, nats: float) -> Deviation:
    """Deviation (c): weights exactly +1 or -1.

    The Gaussian tail of Hoeffding (1956) and Zubkov & Serov (2013) takes the place of a moment generating
    function. The search runs over the point x at which the normal hazard equals t.
    """
    root = math.sqrt(n)

    def exponent(x: float) -> tuple[float, float]:
        tail = 0.5 * math.erfc(x / math.sqrt(2.0))
        t = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) / tail
        return 2.0 * t / root, nats + max(0.0, math.log(tail) + t * x)

    def bound(x: float) -> float:
        t, cost = exponent(x)
        return math.expm1(-(t * (base + 1.0 / n) + cost / n)) / math.expm1(-t)

    def sample(x: float) -> float:
        t, cost = exponent(x)
        return 1.0 / n + cost / (n * t)

    return _split(minimise(bound, -6.0, 30.0) - base, minimise(sample, -6.0, 30.0))


def _range_of_t(n: int, nats: float) -> tuple[float, float]:
    """Where to look for ln t: from below the optimum of variance 1 to where the bounds are 1."""
    return 0.5 * math.log(nats / n) - 1.0, math.log(5.0)


def _split(total: float, sample: float) -> Deviation:
    """What passing from the sample's scores to the population adds is 0 where it adds nothing."""
    sample = min(total, sample)
    return Deviation(sample, total - sample)


def smallest_deviation(
    base: float,
    n: int,
    delta: float,
    brier: float,
    *,
    sign_weights: bool = False,
    surplus: float = 0.0,
    reach: float = 1.0,
) -> Deviation:
    """The smallest of the deviations that hold for one average; no union, each is fixed at the truth."""
    nats = -math.log(delta)
    options = [
        sub_gaussian(base, n, nats, surplus),
        bernstein(base, n, nats, brier, surplus, reach),
    ]
    if sign_weights:
        options.append(signs(base, n, nats))
    return min(options, key=lambda option: option.total)
