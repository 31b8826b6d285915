"""Slow, obvious versions of what calcore computes. Nothing here imports calcore."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import rel_entr

# --- bounds -------------------------------------------------------------------------------------------------
#
# The concentration inequalities of THEORY 1 and 3 in implicit form: a root in x, an inner minimum over t.


def bernoulli_kl(q: float, p: float) -> float:
    """kl(q, p) in nats, from `scipy.special.rel_entr`."""
    return float(rel_entr(q, p) + rel_entr(1.0 - q, 1.0 - p))


def kl_end(q: float, nats: float, *, upper: bool) -> float:
    """The end of {p : kl(q, p) <= nats} by Brent's method."""
    end = 1.0 if upper else 0.0
    if bernoulli_kl(q, end) <= nats:
        return end
    return float(brentq(lambda p: bernoulli_kl(q, p) - nats, q, end - 1e-15 if upper else 1e-300, xtol=1e-16))


def poisson_binomial(eta: Sequence[float]) -> np.ndarray:
    """Probabilities of 0, 1, ..., n successes in n independent trials, one trial after the other."""
    law = np.array([1.0])
    for p in eta:
        law = np.convolve(law, [1.0 - p, p])
    return law


def phi(t: float) -> float:
    """e^t - 1 - t."""
    return math.expm1(t) - t


def least_over_t(function: Callable[[float], float], low: float = 1e-6, high: float = 5.0) -> float:
    """Minimum over t: the best point of a coarse grid, then Brent between its neighbours."""
    grid = np.geomspace(low, high, 60)
    j = int(np.clip(np.argmin([function(t) for t in grid]), 1, grid.size - 2))
    found = minimize_scalar(
        function, bounds=(grid[j - 1], grid[j + 1]), method="bounded", options={"xatol": 1e-12}
    )
    return float(found.fun)


def log_mgf_a(t: float, x: float) -> float:
    """ln E exp(t (Z1 + Z2)) per row in THEORY 1.2 (a), C = 1."""
    return t * t / 8.0 + t * x + math.log1p(x * math.expm1(-t))


def log_mgf_b(t: float, x: float, brier: float) -> float:
    """The same in (b); a very negative number where no distribution has this x and this Brier score."""
    v = phi(t) / 4.0
    inside = 1.0 - t * x + phi(t) * (math.expm1(v) / v) * brier
    return t * x + math.log(max(inside, 1e-300))


def upper_end(base: float, deviation: Callable[[float], float]) -> float:
    """Largest x in [0, 2] with x - base <= deviation(x), from above on a grid and then by bisection."""
    grid = np.linspace(0.0, 2.0, 81)
    inside = [x - base <= deviation(x) for x in grid]
    last = max(j for j, ok in enumerate(inside) if ok)
    low, high = grid[last], grid[last] + 0.025
    for _ in range(44):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle - base <= deviation(middle) else (low, middle)
    return float(low)


def lower_end(value: float, deviation: Callable[[float], float]) -> float:
    """Smallest x in [0, 1] with value - x <= deviation(x), from below on a grid and then by bisection."""
    grid = np.linspace(0.0, 1.0, 81)
    first = min(j for j, x in enumerate(grid) if value - x <= deviation(x))
    if first == 0:
        return 0.0
    low, high = grid[first - 1], grid[first]
    for _ in range(44):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if value - middle <= deviation(middle) else (middle, high)
    return float(high)


def one_step_lower(tau: float, n: int, nats: float, brier: float) -> float:
    """The larger of the two lower bounds of THEORY 3.1, in implicit form."""

    def hoeffding(t: float, x: float) -> float:
        return t * t / 8.0 - t * x + math.log1p(x * math.expm1(t))

    def bennett(t: float, x: float) -> float:
        return math.log1p(t * x + phi(t) * math.exp(phi(t) / 4.0) * (1.0 + t / 4.0) * brier) - t * x

    def end(log_mgf: Callable[[float, float], float]) -> float:
        return lower_end(tau, lambda x: least_over_t(lambda t: (log_mgf(t, x) + nats / n) / t))

    return max(end(hoeffding), end(bennett))


# --- tables and bins ----------------------------------------------------------------------------------------
#
# Rational arithmetic: a double is a fraction, so these are exact until the last rounding.


def grid_edges(grid: str, n_cells: int) -> list[float]:
    """Edges of a grid of cells from its definition, each rounded once."""
    places = [Fraction(j, n_cells) for j in range(n_cells + 1)]
    if grid == "linear":
        return [float(place) for place in places]
    if grid == "sqrt":
        return [float(place * place) for place in places]
    octaves = [abs(2 * place - 1) * 32 for place in places]
    nearer = [Fraction(1, 2 ** (math.floor(o) + 1)) * (1 - (o - math.floor(o)) / 2) for o in octaves]
    ends = [float(q if place < Fraction(1, 2) else 1 - q) for q, place in zip(nearer, places, strict=True)]
    return [0.0, *ends[1:-1], 1.0]


def place_in(edges: Sequence[float], score: float) -> int:
    """The j with edges[j] <= score < edges[j + 1]; the last interval is closed."""
    return min(bisect.bisect_right(edges, score) - 1, len(edges) - 2)


def exact_sum(values: Iterable[float]) -> Fraction:
    """The sum of doubles, exactly."""
    return sum(map(Fraction, values), Fraction(0))


def absolute_deviation(scores: Iterable[float], center: float) -> Fraction:
    """Sum of abs(s - center), exactly."""
    return sum((abs(Fraction(s) - Fraction(center)) for s in scores), Fraction(0))


def absolute_differences(scores: Sequence[float]) -> Fraction:
    """Sum of abs(s - t) over all ordered pairs, exactly."""
    exact = sorted(map(Fraction, scores))
    return 2 * sum(((2 * i - len(exact) + 1) * s for i, s in enumerate(exact)), Fraction(0))


def equal_mass_cuts(counts: Sequence[int], n_bins: int) -> list[int]:
    """Close a bin at the first cell boundary on or behind a mark floor(j n / n_bins); heavy cells alone."""
    n = sum(counts)
    n_bins = min(n_bins, n)
    marks = [j * n // n_bins for j in range(1, n_bins + 1)]
    cuts, passed = [0], 0
    for i, count in enumerate(counts):
        heavy = Fraction(count) >= Fraction(n, n_bins)
        if heavy and cuts[-1] < i:
            cuts.append(i)
        before, passed = passed, passed + count
        if heavy or any(before < mark <= passed for mark in marks):
            cuts.append(i + 1)
    return cuts


def binned_error(
    labels: Sequence[int],
    scores: Sequence[float],
    weights: Sequence[float],
    edges: Sequence[float],
    norm: str,
) -> float:
    """Calibration error over bins [a, b), the last one closed; one rounding in all for l1 and max."""
    bins: dict[int, list[tuple[Fraction, int, Fraction]]] = {}
    for label, score, weight in zip(labels, scores, weights, strict=True):
        bins.setdefault(place_in(edges, score), []).append((Fraction(weight), label, Fraction(score)))
    masses, gaps = [], []
    for rows in bins.values():
        mass = sum((w for w, _, _ in rows), Fraction(0))
        if mass:
            masses.append(mass)
            gaps.append(abs(sum((w * (y - s) for w, y, s in rows), Fraction(0))) / mass)
    total = sum(masses, Fraction(0))
    if norm == "max":
        return float(max(gaps))
    if norm == "avg":
        return float(sum(gaps, Fraction(0)) / len(gaps))
    power = {"l1": 1, "l2": 2}[norm]
    mean = sum((m * g**power for m, g in zip(masses, gaps, strict=True)), Fraction(0)) / total
    return float(mean) if norm == "l1" else math.sqrt(float(mean))


# --- smoothing ----------------------------------------------------------------------------------------------


def tv_by_messages(y, w, lam):
    """Total variation denoising of rows with positive weights, by dynamic programming (Johnson 2013).

    With numbers of any kind; with Fractions it is exact. The derivative of the least cost of the rows so far,
    as a function of the last value, is increasing and piecewise linear: pieces (from where, slope,
    intercept). Paying lam for a step cuts it off at -lam and lam. O(n^2).
    """
    pieces = [(None, 0, 0)]  # the first starts at minus infinity
    cuts = []
    for value, weight in zip(y, w, strict=True):
        pieces = [(start, slope + weight, icept - weight * value) for start, slope, icept in pieces]
        low, high = (_where(pieces, level) for level in (-lam, lam))
        cuts.append((low, high))
        last = _where(pieces, 0)
        inside = [piece for piece in pieces if piece[0] is not None and low < piece[0] < high]
        _, slope, icept = next(p for p in reversed(pieces) if p[0] is None or p[0] <= low)
        pieces = [(None, 0, -lam), (low, slope, icept), *inside, (high, 0, lam)]
    v = [last]
    for low, high in reversed(cuts[:-1]):
        v.append(min(max(v[-1], low), high))
    return v[::-1]


def _where(pieces, level):
    """Where the increasing function of `pieces` has the value `level`."""
    for j, (_, slope, icept) in enumerate(pieces):
        at = (level - icept) / slope
        if j + 1 == len(pieces) or at <= pieces[j + 1][0]:
            return at
    raise AssertionError


def tv_objective(y, w, v, lam):
    """The sum that total variation denoising minimises, with numbers of any kind."""
    misfit = sum(c * (a - b) * (a - b) for a, b, c in zip(y, v, w, strict=True)) / 2
    return misfit + lam * sum(abs(a - b) for a, b in pairwise(v))


# --- inversion ----------------------------------------------------------------------------------------------


def psi(law: np.ndarray, c: float, lam: float) -> float:
    """-ln E exp(-lam |c - K|) / lam, P(K = k) = law[k]."""
    logs = np.log(np.maximum(law, 1e-320)) - lam * np.abs(c - np.arange(law.size))
    top = logs.max()
    return -(top + math.log(np.exp(logs - top).sum())) / lam


def binomial(n: int, p: float) -> np.ndarray:
    """Probabilities of 0, 1, ..., n successes, each rounded once."""
    if p in (0.0, 1.0):
        return np.eye(n + 1)[0 if p == 0.0 else n]
    exact, other = Fraction(p), 1 - Fraction(p)
    return np.array([float(math.comb(n, k) * exact**k * other ** (n - k)) for k in range(n + 1)])


def spread_of_scores(scores: np.ndarray, p: np.ndarray) -> np.ndarray:
    """D(p) of THEORY 2.3: a bound of the sum of |s - p| that knows the mean deviation and the range alone."""
    mean, n = scores.mean(), scores.size
    reach = np.where(p >= mean, scores.max() - mean, mean - scores.min())
    inside = np.where(reach > 0.0, 1.0 - np.abs(p - mean) / np.where(reach > 0.0, reach, 1.0), p == mean)
    return n * np.abs(mean - p) + np.abs(scores - mean).sum() * np.maximum(inside, 0.0)


def zeta(scores: np.ndarray, lam: float, kappa: float, a: float, points: np.ndarray, chord: bool) -> float:
    """Least kappa psi + (a/2) n p (1 - p) - D(p) over `points`, with the chord of p (1 - p) if asked for."""
    n, mean = scores.size, scores.mean()
    square = points * (1.0 - points)
    if chord:
        square = np.where(points < mean, points * (1.0 - mean), mean * (1.0 - points))
    k = np.arange(n + 1)
    with np.errstate(divide="ignore"):
        logs = np.array([math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) for j in k])
        logs = logs + k * np.log(points)[:, None] + (n - k) * np.log1p(-points)[:, None]
    logs -= lam * np.abs(scores.sum() - k)
    top = logs.max(axis=1)
    values = -(top + np.log(np.exp(logs - top[:, None]).sum(axis=1))) / lam
    return float((kappa * values + 0.5 * a * n * square - spread_of_scores(scores, points)).min())
