"""The certificate of perturbed scores by polynomials: THEORY 4.2, step by step, then whole."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest
from numpy.polynomial import chebyshev, legendre
from numpy.typing import NDArray
from scipy import optimize, special

from calcore import CellTable, ScoreTable, certify, perturb
from calcore import certificates as certificates_module
from calcore.certificates import polynomials
from calcore.certificates.bins import Running, Smoothness
from calcore.certificates.polynomials import (
    Intervals,
    approximation_errors,
    hidden,
    intervals_for,
    off_center,
    polynomials_upper,
    slope_of,
)
from calcore.kernels import polynomials as kernel

Floats = NDArray[np.float64]


def gudermannian(u: Floats) -> Floats:
    return 2.0 * np.arctan(np.tanh(u / 2.0))


class Classifier:
    """Scores t with masses and rates; what perturbing makes of them, by direct summation."""

    def __init__(self, t: Floats, mass: Floats, rate: Floats, h: float) -> None:
        self.t, self.rate, self.h = t, rate, h
        self.weight = mass / (h * (gudermannian((1.0 - t) / h) - gudermannian(-t / h)))

    @classmethod
    def wave(cls, periods: float, h: float, phase: float = 0.0, n: int = 20_000) -> Classifier:
        t = (np.arange(n) + 0.5) / n
        return cls(t, np.full(n, 1.0 / n), (np.floor(2 * periods * t + phase) % 2), h)

    @classmethod
    def random(cls, rng: np.random.Generator, h: float) -> Classifier:
        """Few or many scores, anywhere or clustered, with rates 0, 1 or between."""
        n = int(rng.integers(1, 60))
        t = np.sort(rng.random(n)) ** rng.choice([0.3, 1.0, 3.0])
        if rng.random() < 0.5:
            t = np.clip(rng.random() + h * rng.normal(size=n), 0.0, 1.0)
        rate = rng.integers(0, 2, n) if rng.random() < 0.7 else rng.random(n)
        return cls(t, rng.exponential(size=n) ** 2, rate.astype(float), h)

    def kernel(self, s: NDArray) -> NDArray:
        """Of real or complex s: every classifier's score by every s."""
        z = (self.t[:, None] - np.asarray(s)[None, :]) / self.h
        # sech, scaled by the smallest exponent of each column: quotients do not change
        size = np.abs(z.real)
        z = np.where(z.real < 0, -z, z)
        return 2.0 * np.exp(-z + size.min(axis=0)) / (1.0 + np.exp(-2.0 * z)) * self.weight[:, None]

    def eta(self, s: NDArray) -> NDArray:
        k = self.kernel(s)
        return (k * self.rate[:, None]).sum(axis=0) / k.sum(axis=0)

    def density(self, s: Floats) -> Floats:
        return (self.weight[:, None] / np.cosh((self.t[:, None] - s[None, :]) / self.h)).sum(axis=0)

    def error(self, n: int = 20_000) -> float:
        s = (np.arange(n) + 0.5) / n
        density = self.density(s)
        return float((np.abs(s - self.eta(s)) * density).sum() / density.sum())


def best_error(f: Floats, x: Floats, degree: int) -> float:
    """Least largest |f - polynomial| over the points x in [-1, 1], by linear programming."""
    basis = chebyshev.chebvander(x, degree)
    one = np.ones((x.size, 1))
    found = optimize.linprog(
        np.r_[np.zeros(degree + 1), 1.0],
        A_ub=np.block([[basis, -one], [-basis, -one]]),
        b_ub=np.r_[f, -f],
        bounds=(None, None),
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


# --- how far eta is from polynomials


@pytest.mark.parametrize(
    ("interval", "degree", "width", "expected"),
    [  # an independent implementation, on a fine grid of beta
        (1 / 16, 5, 2**-6, 0.206206415137),
        (1 / 24, 12, 2**-6, 6.45551864636e-05),
        (1 / 24, 15, 2**-6, 3.87599332345e-06),
        (1 / 8, 10, 2**-4, 3.14069790348e-05),
        (1, 20, 2**-2, 1.22886775051e-05),
    ],
)
def test_bernsteins_bound_is_the_published_one(interval, degree, width, expected) -> None:
    found = approximation_errors(interval, np.array([degree]), width)[0]
    assert expected * (1.0 - 1e-9) <= found <= expected * 1.005


def test_nothing_in_the_strip_is_further_from_one_half() -> None:
    rng = np.random.default_rng(1)
    closest = 0.0
    for _ in range(400):
        h = 2.0 ** -rng.uniform(0, 8)
        classifier = Classifier.random(rng, h)
        angle = rng.uniform(0.0, 0.5 * math.pi, 50) * 0.999
        s = rng.uniform(-0.2, 1.2, 50) + 1j * h * angle
        distance = np.abs(classifier.eta(s) - 0.5) * np.cos(angle)
        assert np.all(distance <= 0.5 * (1.0 + 1e-6))
        closest = max(closest, float(distance[angle > 0.5].max()))
    assert closest > 0.4


@pytest.mark.parametrize("h", [2.0**-6, 2.0**-3])
@pytest.mark.parametrize("degree", [0, 1, 2, 4, 7])
def test_no_perturbed_wave_is_further_from_polynomials(h: float, degree: int) -> None:
    """Best approximations of the hardest eta that were found: square waves of any period, and steps."""
    x = np.cos(np.linspace(0.0, math.pi, 120))
    worst: dict[float, float] = {}
    for ratio in (0.5, 2.0, 4.0):
        w = ratio * h
        if w > 1.0:
            continue
        bound = approximation_errors(w, np.array([degree]), h)[0]
        for periods in (0.5, 0.1 / h, 0.2 / h, 0.35 / h):
            for phase in (0.0, 0.5):
                classifier = Classifier.wave(periods, h, phase, 4000)
                f = classifier.eta(0.5 + 0.5 * w * x)
                found = best_error(f, x, degree)
                assert found <= bound * (1.0 + 1e-9) + 1e-9
                worst[ratio] = max(worst.get(ratio, 0.0), found / bound)
    assert max(worst.values()) > (0.3 if degree < 2 else 0.004)


def test_errors_shrink_with_degree_and_grow_with_the_interval() -> None:
    degrees = np.arange(25)
    for width in (2.0**-8, 2.0**-5, 0.5, 40.0):
        table = np.array([approximation_errors(2.0**-k, degrees, width) for k in range(16)])
        assert np.all(np.diff(table, axis=1) <= 0.0)
        assert np.all(np.diff(table, axis=0) <= 0.0)
        assert table.max() <= 0.5
    assert np.all(approximation_errors(1.0, degrees, 1e-300) == 0.5)
    assert np.all(approximation_errors(1.0, degrees, 1e300) < 1e-99)


# --- the fit


def matrix_of(cuts: list[int], degrees: list[int], x: Floats, rows: Floats) -> Floats:
    """A on cell values, in an orthonormal basis of Legendre polynomials made by QR: the slow way."""
    out = np.zeros((x.size, x.size))
    root = np.sqrt(rows)
    for (a, b), degree in zip(itertools.pairwise(cuts), degrees, strict=True):
        place = x[a:b]
        scaled = (2.0 * place - place[0] - place[-1]) / max(np.ptp(place), 1e-300)
        basis = legendre.legvander(scaled, min(degree, b - a - 1)) * root[a:b, None]
        q = np.linalg.qr(basis)[0]
        out[a:b, a:b] = (q @ q.T) * root[a:b] / root[a:b, None]
    return out


@pytest.mark.kernels
@pytest.mark.parametrize("degree", [0, 1, 3, 8, 24])
def test_fit_is_the_projection(degree: int) -> None:
    rng = np.random.default_rng(degree)
    for sizes in ([60], [3, 40], [1, 1, 30, 9], [26, 25, 24]):
        x = np.sort(rng.random(sum(sizes)))
        rows = rng.integers(1, 50, x.size).astype(float)
        y = rng.random(x.size)
        cuts = [0, *itertools.accumulate(sizes)]
        degrees = [degree] * len(sizes)
        found = kernel.fit(np.array(cuts), np.array(degrees), x, rows, y)
        slow = matrix_of(cuts, degrees, x, rows) @ y  # which Legendre polynomials at random places spoil
        assert found == pytest.approx(slow, abs=1e-9 if degree < 9 else 1e-6)


@pytest.mark.kernels
def test_fit_keeps_polynomials_however_uneven_the_masses() -> None:
    """Also where few cells carry all mass, or cells lie on a heap: no normal equations are solved."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        m = int(rng.integers(2, 400))
        x = np.sort(rng.beta(*rng.choice([0.05, 1.0, 30.0], 2), m))
        if rng.random() < 0.3:
            x = np.sort(0.5 + 1e-9 * rng.random(m))
        rows = np.floor(10.0 ** rng.uniform(0, rng.choice([0.1, 8.0]), m))
        degree = int(rng.integers(0, 25))
        scaled = (2.0 * x - x[0] - x[-1]) / max(np.ptp(x), 1e-300)
        f = chebyshev.chebval(scaled, rng.normal(size=degree + 1) / (degree + 1))
        found = kernel.fit(np.array([0, m]), np.array([degree]), x, rows, f)
        off = math.sqrt(float((rows * (found - f) ** 2).sum() / rows.sum()))
        assert off <= 1e-11


@pytest.mark.kernels
def test_fit_of_heaps_gaps_and_empty_intervals() -> None:
    x = np.array([0.1, 0.1, 0.1, 0.1, 0.9])  # equal places, which tables do not make
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.25])
    found = kernel.fit(np.array([0, 5]), np.array([2]), x, np.ones(5), y)
    assert found == pytest.approx([0.5] * 4 + [0.25], abs=1e-12)
    found = kernel.fit(np.array([0, 0, 2, 2, 5]), np.array([3, 0, 1, 0]), x, np.ones(5), y)
    assert found == pytest.approx([0.5, 0.5, *[1.25 / 3] * 3], abs=1e-12)
    assert kernel.fit(np.array([0, 5]), np.array([9]), x, np.ones(5), y).tolist() == y.tolist()


@pytest.mark.kernels
def test_residuals_of_a_cell_at_their_most() -> None:
    """F against all two-point laws of residuals with that mean and range; and what the proof uses of it."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        o, e = rng.random() * 2.0, rng.normal()
        found = kernel.capped_errors(np.array([3.0]), np.array([e]), np.array([o])) / 3.0
        low = np.linspace(e - o, e, 2001)  # values low and low + o with mean e
        part = (e - low) / o
        best = float(((1.0 - part) * np.abs(low) + part * np.abs(low + o)).max())
        assert found == pytest.approx(best, abs=1e-6 + 1e-3 * o * (abs(e) < o))
        assert found >= best - 1e-12
    e = np.linspace(-2.0, 2.0, 801)
    for o in (0.0, 0.3, 1.0):
        f = np.array([kernel.capped_errors(np.ones(1), np.array([v]), np.array([o])) for v in e])
        assert np.abs(np.diff(f)).max() <= (e[1] - e[0]) * (1.0 + 1e-9)
        assert np.diff(f, 2).min() >= -1e-12


# --- what a fit hides


def test_mean_of_eta_over_a_cell() -> None:
    rng = np.random.default_rng(5)
    tightest = 0.0
    for _ in range(1000):
        h = 2.0 ** -rng.uniform(1, 9)
        size = h * 10.0 ** rng.uniform(-2.5, 1.0)
        lo = rng.random() * max(0.0, 1.0 - size)
        s = lo + size * rng.beta(*rng.choice([0.1, 1.0, 5.0], 2), int(rng.integers(2, 30)))
        classifier = Classifier.random(rng, h)
        if rng.random() < 0.5:  # two heaps on both sides, or a heap between
            at = np.clip(s.mean() + h * rng.uniform(0.0, 2.0) * np.array([-1.0, 0.0, 1.0]), 0.0, 1.0)
            classifier = Classifier(at, rng.random(3), np.array([1.0, 0.0, 1.0]), h)
        away = abs(float(classifier.eta(s).mean() - classifier.eta(np.array([s.mean()]))[0]))
        unsure = size * rng.choice([0.0, 1e-9])
        x = s.mean() + unsure * rng.choice([-1.0, 1.0])
        bound = off_center(*(np.array([v]) for v in (s.min(), s.max(), x, unsure)), h)[0]
        assert away <= bound + 1e-12
        tightest = max(tightest, away / max(bound, 1e-9))
    assert tightest > 0.2
    same = off_center(np.array([0.3]), np.array([0.3]), np.array([0.3]), np.array([0.0]), 1e-300)
    assert same.tolist() == [0.0]


@pytest.mark.parametrize("kind", ["rows", "cells", "coarse"])
def test_bias_covers_what_perturbed_eta_loses(kind: str) -> None:
    """Sum of |mean eta - A mean eta| over cells, for classifiers of all sorts; it comes near for some."""
    rng = np.random.default_rng(6)
    tightest = 0.0
    for trial in range(18):
        h = 2.0 ** -rng.uniform(2, 7)
        s = rng.random(2500) if trial % 3 else rng.beta(0.5, 3.0, 2500)
        order = np.sort(s)
        y = np.zeros(s.size)
        table = {
            "rows": lambda: ScoreTable(y, s),  # noqa: B023
            "cells": lambda: CellTable(n_cells=5000).update(y, s),  # noqa: B023
            "coarse": lambda: CellTable(n_cells=60).update(y, s),  # noqa: B023
        }[kind]()
        cells = table.cells()
        low, high = table.mean_bounds()
        x, rows = 0.5 * (low + high), cells.n.astype(float)
        away = off_center(cells.lo, cells.hi, x, 0.5 * (high - low), h)
        ends = np.cumsum(cells.n)
        for shift in (0.0, 1 / 3):
            plan = intervals_for(x, Running.of(cells), h, shift)
            bound = hidden(plan, rows, away)
            for classifier in (
                Classifier.random(rng, h),
                Classifier.wave(0.25 / h, h, 0.5, 500),
                Classifier.wave(0.05 / h, h, 0.5, 500),
            ):
                eta = (
                    np.diff(np.concatenate([[0.0], np.cumsum(classifier.eta(order))])[np.r_[0, ends]]) / rows
                )
                fitted = kernel.fit(plan.cuts, plan.degrees, x, rows, eta)
                lost = float((rows * np.abs(eta - fitted)).sum())
                assert lost <= bound + 1e-8 * s.size
                tightest = max(tightest, lost / max(bound, 1e-9))
    assert tightest > 0.01


@pytest.mark.kernels
def test_sign_lemma_with_cells_over_all_labels() -> None:
    """n CE_n <= sum n F(x - A y) + bias + <A' sign, noise>: for every vector of labels, rates and scores."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        counts = rng.integers(1, 4, 4)
        n, ends = int(counts.sum()), np.cumsum(counts)
        s = np.sort(rng.random(n))
        eta = rng.random(n)
        cell = np.repeat(np.arange(4), counts)
        rows = counts.astype(float)
        x = np.bincount(cell, s) / rows
        mean = np.bincount(cell, eta) / rows
        reach = np.array([np.ptp((s - eta)[cell == c]) for c in range(4)])
        a = matrix_of([0, 4], [1], x, rows)
        along = x - a @ mean
        sign = np.where(np.abs(along) >= reach, np.sign(along), along / np.maximum(reach, 1e-300))
        weights = a.T @ (rows * sign)  # of one row's noise, by cell, times its rows
        assert float((weights**2 / rows).sum()) <= n + 1e-9
        bias = float((rows * np.abs(mean - a @ mean)).sum())
        for labels in itertools.product((0.0, 1.0), repeat=n):
            y = np.bincount(cell, labels) / rows
            seen = kernel.capped_errors(rows, x - a @ y, reach)
            chance = float((weights / rows * (np.bincount(cell, labels) - rows * mean)).sum())
            assert np.abs(s - eta).sum() <= seen + bias + chance + 1e-9
        assert ends[-1] == n


# --- the choice of intervals


def tables() -> list[ScoreTable | CellTable]:
    rng = np.random.default_rng(8)
    made: list[ScoreTable | CellTable] = []
    for s in (
        rng.random(3000),
        rng.beta(0.3, 5, 3000),
        rng.integers(0, 7, 400) / 6,
        np.array([0.5]),
        np.r_[0.0, 1.0],
    ):
        made.append(ScoreTable(np.zeros(s.size), s))
        made.append(CellTable(n_cells=300).update(np.zeros(s.size), s))
    return made


@pytest.mark.parametrize("width", [1e-300, 2.0**-12, 2.0**-6, 0.3, 2.0, 1e300])
@pytest.mark.parametrize("shift", [0.0, 1 / 3, 2 / 3])
def test_intervals_cover_all_cells_and_are_as_short_as_said(width: float, shift: float) -> None:
    for table in tables():
        low, high = table.mean_bounds()
        x = 0.5 * (low + high)
        plan = intervals_for(x, Running.of(table.cells()), width, shift)
        assert plan.cuts[0] == 0
        assert plan.cuts[-1] == x.size
        assert np.all(np.diff(plan.cuts) > 0)
        assert plan.degrees.size == plan.misses.size == plan.cuts.size - 1
        assert np.all((plan.degrees >= 0) & (plan.degrees <= polynomials.MOST))
        for a, b, degree, miss in zip(plan.cuts[:-1], plan.cuts[1:], plan.degrees, plan.misses, strict=True):
            # as if the cells' own range were the interval: never more than what the plan charges
            length = max(float(x[b - 1] - x[a]), 1e-12)
            assert approximation_errors(length, np.array([degree]), width)[0] <= miss * (1.0 + 1e-9)
            if b - a > degree + 1:
                assert miss < 0.5 or width < 1e-3


def test_intervals_are_the_cheapest_of_all_dyadic_ones() -> None:
    """Against every partition into dyadic intervals down to an eighth, with every degree."""
    rng = np.random.default_rng(9)
    s = np.sort(rng.beta(0.5, 2.0, 3000))
    table = ScoreTable(np.zeros(3000), s)
    width = 0.5  # down to a quarter, then a quarter of the work
    x = 0.5 * sum(table.mean_bounds())
    plan = intervals_for(x, Running.of(table.cells()), width)

    def price(a: int, b: int, length: float) -> float:
        part = x[a:b]
        noise = math.sqrt(float((part * (1.0 - part)).sum()))
        errors = approximation_errors(length, np.arange(polynomials.MOST + 1), width)
        return min(
            polynomials._NOISE * noise * math.sqrt(min(p + 1, b - a)) + (b - a) * errors[p] * (p + 1 < b - a)
            for p in range(polynomials.MOST + 1)
        )

    def best(level: int, index: int) -> float:
        length = 2.0**-level
        a, b = np.searchsorted(x, [index * length, (index + 1) * length if index + 1 < 2**level else 2.0])
        alone = price(a, b, length) if b > a else 0.0
        if level == 4:
            return alone
        return min(alone, best(level + 1, 2 * index) + best(level + 1, 2 * index + 1))

    found = 0.0
    for a, b, degree, miss in zip(plan.cuts[:-1], plan.cuts[1:], plan.degrees, plan.misses, strict=True):
        part = x[a:b]
        noise = math.sqrt(float((part * (1.0 - part)).sum()))
        found += polynomials._NOISE * noise * math.sqrt(min(degree + 1, b - a))
        found += (b - a) * miss * (degree + 1 < b - a)
    assert found == pytest.approx(best(0, 0), rel=1e-9)


def test_intervals_are_chosen_without_labels() -> None:
    rng = np.random.default_rng(10)
    s = rng.random(5000)
    seen = {
        certify(y, s, method="polynomials", perturbed=0.05, side="upper").terms["bias"]
        for y in (np.zeros(5000), np.ones(5000), rng.random(5000) < s)
    }
    assert len(seen) == 1


# --- whole certificates


def sample(n: int, h: float, kind: str, seed: int) -> tuple[NDArray, Floats]:
    rng = np.random.default_rng([11, seed])
    t = rng.random(n)
    rate = {"calibrated": t, "wave": np.floor(16 * t) % 2, "square": t * t}[kind]
    return rng.random(n) < rate, perturb(t, h, rng=seed)


ERRORS = {  # h = 2^-6, by quadrature; tested below
    "calibrated": 0.000456,
    "wave": 0.276999,
}


def test_errors_of_the_samples() -> None:
    h = 2.0**-6
    t = (np.arange(5000) + 0.5) / 5000
    calibrated = Classifier(t, np.full(t.size, 1.0 / t.size), t, h)
    assert calibrated.error(3000) == pytest.approx(ERRORS["calibrated"], abs=2e-6)
    assert Classifier.wave(8, h, n=5000).error(3000) == pytest.approx(ERRORS["wave"], abs=2e-6)


@pytest.mark.parametrize(
    ("n", "limit"), [(100_000, 0.021), pytest.param(1_000_000, 0.0071, marks=pytest.mark.slow)]
)
def test_calibrated_models_are_certified_at_the_published_rate(n: int, limit: float) -> None:
    uppers = [
        certify(*sample(n, 2.0**-6, "calibrated", seed), perturbed=2.0**-6, side="upper").upper
        for seed in range(3)
    ]
    assert ERRORS["calibrated"] < np.median(uppers) <= limit


def test_square_waves_are_found_out() -> None:
    y, s = sample(100_000, 2.0**-6, "wave", 0)
    upper = certify(y, s, method="polynomials", perturbed=2.0**-6, side="upper").upper
    assert ERRORS["wave"] < upper < ERRORS["wave"] + 0.02


def test_cells_cost_little() -> None:
    for seed, kind in enumerate(("calibrated", "wave")):
        y, s = sample(200_000, 2.0**-6, kind, seed)
        options = {"method": "polynomials", "perturbed": 2.0**-6, "side": "upper"}
        rows = certify(y, s, **options).upper
        cells = certify(CellTable().update(y, s), **options).upper
        assert cells == pytest.approx(rows, rel=0.01)


@pytest.mark.parametrize("delta", [0.3, 1e-6])
def test_terms_are_what_their_definitions_say(delta: float) -> None:
    """From the matrix of the slow fit, and the deviation (1a) solved by root finding."""
    rng = np.random.default_rng(12)
    h, n = 0.1, 600
    t = rng.random(n)
    y, s = (rng.random(n) < t * t).astype(float), perturb(t, h, rng=3)
    order = np.argsort(s)
    y, s = y[order], s[order]
    table = ScoreTable(y, s)
    found = polynomials_upper(table, Running.of(table.cells()), h, delta)
    rate, bias = np.zeros(n), 1e-10
    for shift in (0.0, 1 / 3, 2 / 3):
        plan = intervals_for(s, Running.of(table.cells()), h, shift)
        rate += matrix_of(plan.cuts.tolist(), plan.degrees.tolist(), s, np.ones(n)) @ y / 3
        sizes = np.diff(plan.cuts)
        bias += float((sizes * plan.misses)[sizes > plan.degrees + 1].sum()) / (3 * n)
    base = np.abs(s - rate).mean() + bias
    assert found.terms["plug_in"] + found.terms["bias"] == pytest.approx(base, abs=1e-9)
    assert found.terms["bias"] == pytest.approx(bias, rel=1e-9)
    nats = -math.log(delta)

    def deviation(x: float) -> float:
        return oracles.least_over_t(lambda t: (oracles.log_mgf_a(t, min(x, 1.0)) + nats / n) / t)

    assert found.value == pytest.approx(oracles.upper_end(base, deviation), abs=1e-6)


def test_cells_pay_for_what_they_do_not_know() -> None:
    """Few wide cells: P from the rows' mean scores and ranges, the bias with the mean of eta over each."""
    rng = np.random.default_rng(16)
    h, n = 0.25, 5000
    t = rng.random(n)
    y, s = (rng.random(n) < t).astype(float), perturb(t, h, rng=4)
    table = CellTable(n_cells=40).update(y, s)
    found = polynomials_upper(table, Running.of(table.cells()), h, 0.1).terms
    cell = np.minimum((s * 40).astype(int), 39)
    rows = np.bincount(cell).astype(float)
    x, rate = np.bincount(cell, s) / rows, np.bincount(cell, y) / rows
    lo, hi = (np.array([f(s[cell == c]) for c in range(40)]) for f in (np.min, np.max))
    fitted, bias = np.zeros(40), 0.0
    for shift in (0.0, 1 / 3, 2 / 3):
        plan = intervals_for(x, Running.of(table.cells()), h, shift)
        fitted += matrix_of(plan.cuts.tolist(), plan.degrees.tolist(), x, rows) @ rate / 3
        away = (hi - x) * (x - lo) / (4 * h * h)
        for a, b, degree, miss in zip(plan.cuts[:-1], plan.cuts[1:], plan.degrees, plan.misses, strict=True):
            if b - a > degree + 1:
                size = rows[a:b].sum()
                bias += (size * miss + math.sqrt(size * (rows * away**2)[a:b].sum())) / (3 * n)
    off, o = np.abs(x - fitted), (1 + 0.5 / h) * (hi - lo)
    expected = np.where(off >= o, off, o / 2 + off**2 / (2 * o))
    assert found["plug_in"] == pytest.approx(float((rows * expected).sum()) / n, abs=1e-7)
    assert found["plug_in"] > np.abs(s - fitted[cell]).mean()
    assert found["bias"] == pytest.approx(bias, abs=1e-7)


@pytest.mark.parametrize("method", ["polynomials", "auto"])
def test_coverage_where_it_is_tight(method: str) -> None:
    """Scores that a wide perturbation makes nearly independent of the classifier's: eta is nearly constant.

    With eta = 1/2 and width 4 the fit is a constant, and CE = E|S - 1/2| = 1/4. The interval misses if labels
    and scores happen to agree better.
    """
    n, delta, runs, missed = 400, 0.5, 400, 0
    for seed in range(runs):
        rng = np.random.default_rng([13, seed])
        s = perturb(rng.random(n), 4.0, rng=seed)
        y = rng.random(n) < 0.5
        missed += certify(y, s, method=method, perturbed=4.0, side="upper", delta=delta).upper < 0.25 - 2e-3
    assert special.bdtrc(missed - 1, runs, delta) > 1e-6
    assert missed > 0


@pytest.mark.parametrize("table", ["rows", "cells", "coarse"])
def test_coverage_of_perturbed_classifiers(table: str) -> None:
    rng = np.random.default_rng(14)
    missed, runs = 0, 0
    for seed in range(60):
        h = 2.0 ** -rng.uniform(1, 6)
        periods = rng.choice([0.5, 1.0, 4.0])
        n = int(rng.choice([30, 300, 3000]))
        t = rng.random(n)
        y = rng.random(n) < np.floor(2 * periods * t) % 2
        s = perturb(t, h, rng=seed)
        data = {
            "rows": lambda: ScoreTable(y, s),  # noqa: B023
            "cells": lambda: CellTable(n_cells=1000).update(y, s),  # noqa: B023
            "coarse": lambda: CellTable(n_cells=20).update(y, s),  # noqa: B023
        }[table]()
        upper = certify(data, method="polynomials", perturbed=h, side="upper", delta=0.5).upper
        missed += upper < Classifier.wave(periods, h, 0.0, 1000).error(500) - 1e-3
        runs += 1
    assert special.bdtrc(missed - 1, runs, 0.5) > 1e-6


def test_auto_shares_delta_by_rows_and_arguments_alone() -> None:
    shares = certificates_module._shares_of_auto
    slope = Smoothness(lipschitz=5.0)
    both = Smoothness(1.0, 5.0)
    assert shares(299, slope, True) == {"plugin": 1.0}
    assert set(shares(300, slope, True)) == {"polynomials", "plugin"}
    assert set(shares(10**6, slope, True)) == {"polynomials", "plugin"}
    assert set(shares(10**6, both, True)) == {"polynomials", "inversion", "plugin"}
    assert shares(10**6, slope, False) == {"plugin": 1.0}
    assert set(shares(10**6, None, False)) == {"inversion", "plugin"}
    for n in (1, 299, 300, 7_999, 8_000, 10**9):
        for smooth, perturbed in ((None, False), (slope, False), (slope, True), (both, True), (both, False)):
            assert sum(shares(n, smooth, perturbed).values()) == pytest.approx(1.0, abs=1e-12)


def test_auto_is_about_the_best_of_its_parts() -> None:
    for n, kind in ((400, "calibrated"), (20_000, "calibrated"), (20_000, "wave")):
        y, s = sample(n, 2.0**-5, kind, n)
        for options in ({}, {"variation": 1.0 if kind == "calibrated" else 16.0}):
            parts = [
                certify(
                    y, s, method=m, perturbed=2.0**-5, side="upper", **(options if m != "polynomials" else {})
                )
                for m in ("polynomials", "plugin")
            ]
            best = min(part.upper for part in parts)
            found = certify(y, s, perturbed=2.0**-5, side="upper", **options)
            assert found.method == "auto"
            assert found.upper <= 1.1 * best
    table = ScoreTable(*sample(20_000, 2.0**-5, "calibrated", 1))
    shared = polynomials_upper(table, Running.of(table.cells()), 2.0**-5, 0.8 * 0.95 * 0.2).value
    assert certify(table, perturbed=2.0**-5, side="upper", delta=0.2).upper == pytest.approx(
        shared, rel=1e-12
    )


@pytest.mark.parametrize("option", [{"variation": 1}, {"lipschitz": 2}])
def test_other_assumptions_are_refused(option) -> None:
    y, s = sample(50, 0.25, "calibrated", 0)
    (name,) = option
    with pytest.raises(ValueError, match=f"{name} must be left out: method='polynomials' uses perturbed"):
        certify(y, s, method="polynomials", perturbed=0.25, **option)
    with pytest.raises(ValueError, match="perturbed must be given"):
        certify(y, s, method="polynomials")


@pytest.mark.parametrize("h", [5e-324, 1e-300, 1e-12, 1e-3, 1.0, 1e6, 2e154, 1.7e308])
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_extremes(h: float, n: int) -> None:
    rng = np.random.default_rng([15, n])
    s = perturb(rng.random(n), min(h, 10.0), rng=1)
    for y in (np.zeros(n), np.ones(n), rng.random(n) < s):
        for data in (ScoreTable(y, s), CellTable(n_cells=16).update(y, s)):
            bound = polynomials_upper(data, Running.of(data.cells()), h, 0.05)
            assert all(0.0 <= v < math.inf for v in bound.terms.values())
            assert bound.value >= 0.0


def test_slope_stays_finite() -> None:
    assert slope_of(0.25) == 2.0
    assert slope_of(5e-324) == 1e300


def test_hidden_adds_up_over_intervals() -> None:
    plan = Intervals(np.array([0, 3, 5]), np.array([0, 1]), np.array([0.01, 0.02]))
    rows = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    away = np.array([0.1, 0.0, 0.2, 0.3, 0.3])
    # the second interval has two cells and a line through them
    expected = 6.0 * 0.01 + math.sqrt(6.0 * (0.01 + 3.0 * 0.04))
    assert hidden(plan, rows, away) == pytest.approx(expected, rel=1e-12)
