"""The Chernoff-inversion certificate: the binned error without the noise of its bins (THEORY 2).

The binned error T = sum |A_B| of a calibrated model is all noise. Given the scores, the Laplace transform of
each |A_B| is that of a binomial law, up to what eta can vary inside the bin. Chernoff's inequality, read
backwards, says how much of T noise explains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calcore.bounds import kl_lower, minimise
from calcore.certificates.bins import (
    NOTHING,
    Average,
    Bins,
    Cuts,
    Floats,
    Partitions,
    Running,
    Smoothness,
    Table,
    bin_cells,
    hidden_in_bins,
    hidden_mean_deviation,
    oscillation_caps,
)
from calcore.certificates.bound import Bound
from calcore.kernels import inversion as kernel
from calcore.kernels.binning import equal_mass_cuts
from calcore.table import Cells

LEVEL = 0.01
"""Part of delta that pays for the lower end of the Brier score, which only chooses among levels."""

_KAPPA: Floats = np.asarray(1.0 + 1e-4 * 1.35 ** np.arange(47), np.float64)
_ENDS: Floats = np.asarray(np.geomspace(kernel.FIRST, 1.0, 24), np.float64)
"""Oscillations at which losses are computed."""

_PRECISION = 1e-3
_MEAN_ABS = math.sqrt(2.0 / math.pi)
_CLASSES = 14


class Level(NamedTuple):
    """Brier scores that share the number a of the theorem, which n, delta and b alone may fix."""

    a: float
    brier: float
    """The largest of them."""


def levels(n: int, nats: float, low: float, high: float) -> list[Level]:
    """The levels that Brier scores between `low` and `high` belong to.

    Level j holds b from 2^j / 6 sqrt(1/2) to 2^j / 6 sqrt(2); ``a = min(1/2, sqrt(nats / (n 2^j / 6)))``.
    Where a is 1/2, it is so for all smaller b.
    """
    found: list[Level] = []
    middle = 2.0 ** math.floor(math.log2(6.0 * high) + 0.5 + 1e-12) / 6.0
    while True:
        a = min(0.5, math.sqrt(nats / (n * middle)))
        found.append(Level(a, min(high, middle * math.sqrt(2.0))))
        if a == 0.5 or middle * math.sqrt(0.5) <= low * (1.0 - 1e-12):
            return found
        middle *= 0.5


class Classes:
    """Zeta of calibrated bins by the standard deviation of their positives, interpolated: to choose with."""

    def __init__(self, largest: float, a: float) -> None:
        self.logs: Floats = math.log(max(largest, 1e-3)) + np.linspace(-4.0, 0.0, _CLASSES)
        deviation: Floats = np.exp(self.logs)
        self.values, self.places = kernel.calibrated_zetas(deviation, _KAPPA, a)

    def zeta(self, deviation: Floats) -> Floats:
        """Sum over bins, for each kappa. Below the smallest class it is in proportion, or as negative."""
        place = (np.log(np.maximum(deviation, 1e-300)) - self.logs[0]) * ((_CLASSES - 1) / 4.0)
        inside = place >= 0.0
        ratio = deviation[~inside] * math.exp(-self.logs[0])
        place = np.minimum(place[inside], _CLASSES - 1.0)
        cell = np.minimum(place.astype(np.intp), _CLASSES - 2)
        part = place - cell
        weight = np.bincount(cell, 1.0 - part, _CLASSES) + np.bincount(cell + 1, part, _CLASSES)
        least = self.values[:, 0]
        total: Floats = (self.values * weight).sum(axis=1)
        total += np.maximum(least, 0.0) * float(ratio.sum()) + np.minimum(least, 0.0) * ratio.size
        return total

    def distance(self, deviation: Floats, kappa: int) -> Floats:
        """About how far from the mean zeta is taken, in rows."""
        return self._at(deviation, self.places[kappa])

    def each(self, deviation: Floats, kappa: int) -> Floats:
        """Zeta of each bin. Its ratio to the deviation is interpolated, which bends less."""
        ratio = self._at(deviation, self.values[kappa] * np.exp(-self.logs))
        least = math.exp(self.logs[0])
        return ratio * np.where(ratio > 0.0, deviation, np.maximum(deviation, least))

    def _at(self, deviation: Floats, values: Floats) -> Floats:
        found: Floats = np.interp(np.log(np.maximum(deviation, 1e-300)), self.logs, values)
        return found


def inversion_upper(table: Table, running: Running, smooth: Smoothness, delta: float, brier: float) -> Bound:
    """Upper bound of the calibration error.

    The terms: ``denoised``, the binned error less what the noise of the labels adds to it; ``bias``, what eta
    can hide by varying inside bins; ``deviation``, the chance in the labels; ``transfer``, the step to the
    population.

    Parameters
    ----------
    smooth : Smoothness
        Without any assumption every cell is a bin of its own, and the bound is 1 unless each holds one score.
    brier : float
        Upper bound of E(S - Y)^2 that holds outside an event which `delta` does not include.

    Notes
    -----
    About ``(n m)^(1/2)`` operations for m bins, beside O(cells).
    """
    cells, n = table.cells(), table.n
    nats = _nats(delta)
    # the table's sum may exceed the truth by 2^-27 a row
    square = max(table.sum_squared_error / n - 2.0**-26, 0.0)
    low = kl_lower(square, -math.log(LEVEL * delta) / n)
    plan, _ = _plan(cells, running, smooth, nats)
    parts = [_Part.of(table, cuts, smooth) for cuts in plan]
    if smooth == Smoothness() and any(part.bins.mixed.any() for part in parts):
        return _bound(0.0, 1.0, 0.0, 0.0, parts[0].bins.n.size)
    hidden = _hidden(table, running, plan, smooth)
    seen = sum(part.binned_error for part in parts) / len(parts)
    bounds = [_at_level(level, parts, seen, hidden, smooth, n, nats) for level in levels(n, nats, low, brier)]
    return max(bounds, key=lambda bound: bound.value)


def expected_upper(
    cells: Cells, running: Running, smooth: Smoothness, delta: float, square: float, brier: float, ce: float
) -> float:
    """About the bound that `inversion_upper` gives a model, from scores alone (THEORY 7.4).

    Parameters
    ----------
    smooth : Smoothness
        It must assume something.
    square, brier : float
        Brier score of the model, and the upper bound of it that is to be expected.
    ce : float
        Calibration error of the model.
    """
    n = int(running.rows[-1])
    nats = _nats(delta)
    plan, hidden = _plan(cells, running, smooth, nats)
    part = _Part.planned(cells, plan[0], smooth)
    seen = float(_noise(part.deviation).sum()) + n * ce
    low = kl_lower(square, -math.log(LEVEL * delta) / n)
    return max(
        _at_level(level, [part], seen, hidden, smooth, n, nats, exact=False).value
        for level in levels(n, nats, low, brier)
    )


def _nats(delta: float) -> float:
    """L of the theorem: what is left of `delta` once the level is paid for."""
    return -math.log1p(-LEVEL) - math.log(delta)


def _noise(deviation: Floats) -> Floats:
    """About E|A_B| of calibrated bins, by the standard deviation of their positives."""
    return np.minimum(_MEAN_ABS * deviation, 2.0 * deviation * deviation)


class _Part(NamedTuple):
    """A partition into bins, and what the bound needs of it."""

    bins: Bins
    mean: Floats
    deviation: Floats
    spread: Floats
    caps: Floats

    @classmethod
    def of(cls, table: Table, cuts: Cuts, smooth: Smoothness) -> _Part:
        bins = bin_cells(table.cells(), cuts)
        return cls._with(bins, table.abs_deviation(cuts, bins.mean_score), smooth)

    @classmethod
    def planned(cls, cells: Cells, cuts: Cuts, smooth: Smoothness) -> _Part:
        """Scores are taken to lie evenly in their bins."""
        bins = bin_cells(cells, cuts)
        return cls._with(bins, 0.25 * bins.n * (bins.hi - bins.lo), smooth)

    @classmethod
    def _with(cls, bins: Bins, spread: Floats, smooth: Smoothness) -> _Part:
        mean = np.clip(bins.mean_score, 0.0, 1.0)
        spread = np.where(bins.mixed, spread, 0.0)
        return cls(bins, mean, np.sqrt(bins.n * mean * (1.0 - mean)), spread, oscillation_caps(bins, smooth))

    @property
    def binned_error(self) -> float:
        return float(np.abs(self.bins.s - self.bins.k).sum())

    def zeta(self, kappa: float, a: float, distance: Floats) -> Floats:
        """Zeta of every bin, rigorously; it is sought at about that `distance` from the mean, in rows."""
        bins = self.bins
        columns = bins.n, bins.s, self.spread, bins.lo, bins.hi
        found: Floats = kernel.zetas(*columns, kappa * a, kappa, a, distance / bins.n, _PRECISION)
        return found

    def about(self, a: float, calibrated: Floats) -> Floats:
        """About zeta, from that of calibrated atoms; scores inside a bin differ, which noise mostly hides."""
        differ = np.maximum(self.spread - 0.4 * self.deviation, 0.0)
        return calibrated + 0.5 * a * self.deviation * self.deviation - differ


def _at_level(
    level: Level,
    parts: list[_Part],
    seen: float,
    hidden: float,
    smooth: Smoothness,
    n: int,
    nats: float,
    *,
    exact: bool = True,
) -> Bound:
    """The bound for one a; kappa is chosen with the labels, for all of them hold at once.

    The choice knows nothing of what eta costs inside bins. Where this turns out to be much, others are tried.
    To plan, `exact` is false: zeta is then that of the classes.
    """
    classes = Classes(max(float(part.deviation.max()) for part in parts), level.a)
    expected = sum(classes.zeta(part.deviation) for part in parts) / len(parts)

    def at(choice: int) -> Bound:
        kappa = float(_KAPPA[choice])
        zetas = [
            part.zeta(kappa, level.a, classes.distance(part.deviation, choice))
            if exact
            else part.about(level.a, classes.each(part.deviation, choice))
            for part in parts
        ]
        return _at_kappa(kappa, level, parts, zetas, seen, hidden, smooth.variation, n, nats)

    first = int(np.argmin(_KAPPA * seen - expected))
    best = at(first)
    for step in (-3, 3) if best.terms["bias"] * n > 1.5 * hidden else ():
        choice = first + step
        while 0 <= choice < _KAPPA.size and (other := at(choice)).value < best.value:
            best, choice = other, choice + step
    return best


def _at_kappa(
    kappa: float,
    level: Level,
    parts: list[_Part],
    zetas: list[Floats],
    seen: float,
    hidden: float,
    variation: float,
    n: int,
    nats: float,
) -> Bound:
    a = level.a
    noise = loss = joint = 0.0
    for part, zeta in zip(parts, zetas, strict=True):
        bins, mixed = part.bins, part.bins.mixed
        noise += float(zeta.sum()) / len(parts)
        if mixed.any():
            rows = bins.n[mixed], part.mean[mixed]
            one, two, slope = kernel.losses(
                *rows, part.spread[mixed], zeta[mixed], _ENDS, kappa * a, kappa, a
            )
            shape = one, two, slope, _ENDS, part.caps[mixed]
            loss += _price(rows, shape, variation, False) / len(parts)
            joint += _price(rows, shape, variation, True) / len(parts)
    price = min(hidden + loss, joint)
    rest = (kappa * seen - noise + price + nats / a) / n
    v = 0.125 * a * a
    total = -math.expm1(-a * rest) / a + 0.5 * a * (math.expm1(v) / v) * level.brier
    return _bound((kappa * seen - noise) / n, price / n, nats / (a * n), total - rest, parts[0].bins.n.size)


def _price(
    columns: tuple[Floats, Floats],
    shape: tuple[Floats, Floats, Floats, Floats, Floats],
    variation: float,
    joint: bool,
) -> float:
    """Least over multipliers of ``multiplier variation + sum of sup H(o) - multiplier o``: each is valid."""

    def bound(multiplier: float) -> float:
        return float(kernel.priced(*columns, *shape, multiplier, joint))

    if variation == math.inf:
        return bound(0.0)
    free = bound(0.0)
    if variation == 0.0 or free <= 0.0:
        return 0.0
    most = free / variation  # beyond it the multiplier alone costs as much as all oscillations at once
    if most < 1e-300:
        return free
    top = math.log(most)
    best = minimise(lambda log: math.exp(log) * variation + bound(math.exp(log)), top - 12.0, top, steps=26)
    return min(free, best)


def _bound(denoised: float, bias: float, deviation: float, transfer: float, n_bins: int) -> Bound:
    """Terms that are not negative: what is below 0 comes off the others."""
    terms = {"denoised": denoised, "bias": bias, "deviation": deviation, "transfer": transfer}
    excess = sum(min(value, 0.0) for value in terms.values())
    for name in ("deviation", "transfer", "bias", "denoised"):
        value = max(terms[name], 0.0)
        terms[name] = max(value + excess, 0.0)
        excess = min(value + excess, 0.0)
    return Bound(terms, n_bins)


def _hidden(table: Table, running: Running, plan: list[Cuts], smooth: Smoothness) -> float:
    """Largest mean over partitions of the sum over rows of |eta - bin mean of eta| (THEORY 1.3, 1.6)."""
    hidden = sum(hidden_in_bins(table, running, cuts, smooth) for cuts in plan) / len(plan)
    if smooth.variation < math.inf:
        parts = Partitions(tuple(running.rows[cuts] for cuts in plan), NOTHING)
        hidden = min(hidden, smooth.variation * Average.of(parts, running, table.cells()).worst_jump)
    return hidden


def shifts(n: int) -> int:
    """Partitions that are averaged."""
    return 4 if n < 1_000_000 else 2


def _plan(cells: Cells, running: Running, smooth: Smoothness, nats: float) -> tuple[list[Cuts], float]:
    """Partitions that would give a calibrated model the least bound, from scores alone.

    With them, about the sum over rows of what a bin can hide.
    """
    if smooth == Smoothness():
        return [np.arange(cells.n.size + 1)], 0.0
    n = int(running.rows[-1])
    rate = np.clip(cells.s / cells.n, 0.0, 1.0)
    brier = float((cells.n * rate * (1.0 - rate)).sum()) / n
    a = min(0.5, math.sqrt(nats / (n * max(brier, 1e-300))))
    several = cells.hi > cells.lo
    largest = 0.5 * float(cells.n[several].max(initial=0))
    used = shifts(n)
    thinned = (1.0 + 0.5 / used**2) / 3.0
    best, chosen, hides, classes = math.inf, 1, 0.0, None
    for count in sorted({max(1, round(n**0.4 * 2.0 ** (j / 3.0))) for j in range(-15, 18)}):
        cuts = equal_mass_cuts(running.rows, count, 0, 1)
        rows = np.diff(running.rows[cuts]).astype(np.float64)
        mean = np.clip(np.diff(running.scores[cuts]) / rows, 0.0, 1.0)
        variance = rows * mean * (1.0 - mean)
        deviation = np.sqrt(variance)
        if classes is None:
            classes = Classes(float(deviation.max()), a)
        seen = float(_noise(deviation).sum())
        noise = float((_KAPPA * seen - classes.zeta(deviation)).min())
        if noise > best:  # it grows with the number of bins
            break
        width = cells.hi[cuts[1:] - 1] - cells.lo[cuts[:-1]]
        mixed = width > 0.0
        # scores inside a bin differ, which noise mostly hides
        noise += float(np.maximum(0.25 * rows * width - 0.4 * deviation, 0.0)[mixed].sum())
        hidden = priced = 0.0
        if smooth.lipschitz < math.inf:
            hidden = priced = hidden_mean_deviation(rows[mixed], width[mixed] / 3.0, smooth)
        elif mixed.any():
            hidden = smooth.variation * max(largest, thinned * n / count)
            priced = min(hidden, smooth.variation * float((2.0 * variance)[mixed].max()))
        if noise + 1.1 * priced < best:
            best, chosen, hides = noise + 1.1 * priced, count, hidden
    return [equal_mass_cuts(running.rows, chosen, shift, used) for shift in range(used)], hides
