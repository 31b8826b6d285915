"""The bench that sets certificates against known errors: its constants, its slopes, and a tiny run of it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from bench import record
from bench import reproduce_certificates as reproduce
from bench.parallel import progress
from bench.perturbations import Law, laws, steepest
from bench.report import first_below, report
from bench.synthetic import PERTURBED, POPULATIONS, Perturbed, Population
from calcore import BinCounts, ScoreTable, certify

by_name = pytest.mark.parametrize("population", POPULATIONS, ids=lambda population: population.name)


def zeros(population: Population) -> list[float]:
    """Where s - eta(s) changes its sign, to the last digit."""
    s = np.linspace(population.low, population.high, 20_001)[1:-1]
    sign = np.sign(s - population.eta(s))
    return [
        optimize.brentq(lambda x: x - float(population.eta(np.array(x))), s[i], s[i + 1], xtol=1e-15)
        for i in np.flatnonzero(sign[1:] * sign[:-1] < 0)
    ] + s[sign == 0].tolist()


@by_name
def test_error_by_quadrature(population: Population) -> None:
    p = population
    edges = [p.low, *sorted(zeros(p)), p.high]
    parts = [
        integrate.quad(lambda s: abs(s - float(p.eta(np.array(s)))), a, b, epsabs=1e-14)[0]
        for a, b in itertools.pairwise(edges)
    ]
    assert math.fsum(parts) / (p.high - p.low) == pytest.approx(p.error, abs=1e-12)


@by_name
def test_variation_slope_and_curvature_on_a_fine_grid(population: Population) -> None:
    """Differences never exceed the constants, and come within their own error of them."""
    p = population
    s, step = np.linspace(p.low, p.high, 200_001, retstep=True)
    eta = p.eta(s)
    assert eta.min() >= 0.0
    assert eta.max() <= 1.0
    rounding = 4.0 * np.finfo(float).eps
    variation, slope = np.abs(np.diff(eta)).sum(), np.abs(np.diff(eta)).max() / step
    assert p.variation * (1.0 - 1e-6) <= variation <= p.variation + 2e5 * rounding
    assert p.lipschitz * (1.0 - 1e-5) <= slope <= p.lipschitz + rounding / step
    s, step = np.linspace(p.low, p.high, 8_001, retstep=True)
    curvature = np.abs(np.diff(p.eta(s), 2)).max() / step**2
    assert p.curvature * (1.0 - 1e-3) <= curvature <= p.curvature + rounding / step**2


@pytest.mark.parametrize("classifier", PERTURBED, ids=lambda classifier: classifier.name)
def test_errors_of_perturbed_classifiers_by_quadrature(classifier: Perturbed) -> None:
    h = classifier.width
    x, weight = np.polynomial.legendre.leggauss(10)
    t = ((np.arange(256)[:, None] + 0.5 + x / 2) / 256).ravel()  # panels of h / 4
    mass = integrate.quad_vec(lambda s: 1 / np.cosh((t - s) / h), 0, 1, epsabs=1e-12)[0]
    weight = np.tile(weight / 512, 256) / mass
    total, points = 0.0, 8_000
    for s in np.array_split((np.arange(points) + 0.5) / points, 16):
        k = weight / np.cosh((t - s[:, None]) / h)
        total += float(np.abs(s * k.sum(axis=1) - k @ classifier.eta_0(t)).sum())
    assert total / points == pytest.approx(classifier.error, rel=1e-5)


@pytest.mark.parametrize("classifier", PERTURBED, ids=lambda classifier: classifier.name)
def test_perturbed_rows_are_drawn_as_said(classifier: Perturbed) -> None:
    n = 150_000
    labels, scores = classifier.rows(n, np.random.default_rng(11))
    again = classifier.rows(n, np.random.default_rng(11))
    assert np.array_equal(scores, again[1])
    assert np.array_equal(labels, again[0])
    bound = certify(labels, scores, side="upper", perturbed=classifier.width).upper
    assert classifier.error < bound < classifier.error + 0.03


def test_first_rows_below_a_level() -> None:
    entries = [{"n": n, "tv": {"mean": mean}} for n, mean in ((100, 0.9), (1_000, 0.02), (10_000, 0.01))]
    assert first_below(entries, "tv", 0.02) == 1_000
    assert first_below(entries, "tv", 0.001) is None


def test_fifteen_bins_do_not_see_the_hidden_error() -> None:
    hidden = POPULATIONS[3]
    for j in range(5):  # one period in each bin
        a, b = hidden.low + j / 15, hidden.low + (j + 1) / 15
        residual = integrate.quad(lambda s: s - float(hidden.eta(np.array(s))), a, b, epsabs=1e-14)[0]
        assert residual == pytest.approx(0.0, abs=1e-13)
    n = 200_000
    labels, scores = hidden.rows(n, np.random.default_rng(3))
    # At most 6 standard deviations of sum_B |A_B| / n, whose square has the mean 5 / (4 n) at most.
    assert BinCounts(15).update(labels, scores).value() < 6.0 * math.sqrt(5.0 / (4.0 * n))
    table = ScoreTable(labels, scores)
    bound = certify(table, side="upper", method="plugin", variation=hidden.variation).upper
    assert hidden.error <= bound < 0.25


@by_name
def test_rows_are_drawn_as_said(population: Population) -> None:
    n = 150_000  # more than one block
    labels, scores = population.rows(n, np.random.default_rng(4))
    assert population.low <= scores.min() < scores.max() <= population.high
    place = (scores - population.low) / (population.high - population.low)
    assert stats.kstest(place, "uniform").pvalue > 1e-6
    sixty = np.minimum((60 * place).astype(int), 59)
    eta = population.eta(scores)
    excess, variance = np.bincount(sixty, labels - eta), np.bincount(sixty, eta * (1 - eta))
    nats = math.log(2 * 60 / 1e-6)  # Bernstein's inequality in 60 parts at once
    assert np.all(np.abs(excess) < np.sqrt(2.0 * nats * variance) + 2.0 * nats / 3.0)


def test_slope_of_a_line_is_exact() -> None:
    n = [10_000, 100_000, 1_000_000, 10_000_000]
    fit = reproduce.slope(n, [3.0 * m**-0.375 for m in n])
    assert fit["slope"] == pytest.approx(-0.375, abs=1e-12)
    assert fit["high"] - fit["low"] < 1e-6
    assert fit["points"] == 4


def test_slope_interval_is_that_of_t() -> None:
    """95 % of the intervals hold the slope of a line with normal errors in ln."""
    rng = np.random.default_rng(5)
    n = np.array([1e4, 3e4, 1e5, 3e5, 1e6])
    runs = 2_000
    held = 0
    for _ in range(runs):
        fit = reproduce.slope(n, np.exp(-0.4 * np.log(n) + 0.1 * rng.standard_normal(n.size)))
        held += fit["low"] <= -0.4 <= fit["high"]
    assert abs(held - 0.95 * runs) < 6.0 * math.sqrt(runs * 0.95 * 0.05)


def test_two_points_have_no_slope() -> None:
    assert reproduce.slope([10_000, 100_000], [0.1, 0.05])["slope"] is None


def test_slopes_leave_out_small_samples_and_trivial_bounds() -> None:
    p = POPULATIONS[0]
    table = [
        {"population": name, "n": n, "tv": {"mean": p.error + 0.1, "most": most}}
        for name, n, most in (
            (p.name, 1_000, 0.9),
            (p.name, 10_000, 1.0),
            (p.name, 100_000, 0.9),
            ("x", 10_000, 0.9),
        )
    ]
    n, excess = reproduce._line(table, p, "tv")
    assert n == [100_000]
    assert excess == pytest.approx([0.1])


@pytest.mark.parametrize(("seed", "method"), [(None, "nw"), (7, "nw-folds")])
def test_nw_is_that_of_certify(seed: int | None, method: str) -> None:
    """With the constants of a perturbation the two agree to the last digit."""
    h = 0.25
    labels, scores = POPULATIONS[0].rows(3_000, np.random.default_rng(6))
    table = ScoreTable(labels, scores)
    ours = reproduce.nw(table, 0.5 / h, 0.5 / h**2, seed)
    assert ours == certify(table, side="upper", method=method, perturbed=h, rng=seed).upper


@pytest.mark.slow
def test_a_tiny_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    sizes = reproduce.Sizes({1_000: 2, 10_000: 3, 20_000: 2, 40_000: 2}, 1_000, 2, 2, {1_000: 2, 9_000: 2})
    content = reproduce.gather(sizes)
    assert "samples: 100 %" in capsys.readouterr().out
    assert len(content["table"]) == 4 * len(POPULATIONS)
    entry = content["table"][1]
    again = [reproduce.Sample(0, 10_000, repetition).bounds() for repetition in range(3)]
    assert entry["nw"]["mean"] == pytest.approx(np.mean([bounds["nw"] for bounds in again]), abs=1e-15)
    assert entry["repetitions"] == 3
    assert all(fit["slope"] < 0.0 for fit in content["slopes"] if fit["slope"] is not None)
    assert content["checks"][0]["passed"]
    monkeypatch.setattr(record, "QUICK", tmp_path)
    record.save("reproduce", content, True, None)
    text = report(["reproduce"], True)
    for word in ("published | ours | why different", "steep logistic", "nw, L", "2^-6", "not by 9,000"):
        assert word in text


# --- the sech law beside a Gaussian


@pytest.mark.parametrize("law", [Law("sech", 0.1), Law("Gaussian", 0.12)], ids=lambda law: law.kind)
def test_derivatives_are_those_of_the_mean(law: Law) -> None:
    """The worst eta_0 by its definition, and eta by finite differences of the mean that it is."""
    t = np.random.default_rng(8).random(40)

    def weights(s: float) -> np.ndarray:
        density = (lambda u: 1 / np.cosh(u)) if law.kind == "sech" else (lambda u: np.exp(-u * u / 2))
        mass = [integrate.quad(lambda x, c=c: density((c - x) / law.scale), 0, 1, epsabs=1e-13)[0] for c in t]
        w = density((t - s) / law.scale) / mass
        return w / w.sum()

    d = 1e-3
    for s in (0.03, 0.4, 0.9):
        before, here, after = weights(s - d), weights(s), weights(s + d)
        first, second = (after - before) / (2 * d), (after - 2 * here + before) / d**2
        # of sums c_i eta_0(t_i), 0 <= eta_0 <= 1, where the c_i add up to 0, the largest is sum |c_i| / 2
        worst = 0.5 * np.abs(first).sum(), 0.5 * np.abs(second).sum()
        assert law.derivatives(s, t) == pytest.approx(worst, rel=2e-3)


@pytest.mark.parametrize("law", laws(2.0**-4).values(), ids=laws(2.0**-4))
def test_bounds_for_any_classifier_hold_and_are_reached(law: Law) -> None:
    rng = np.random.default_rng(9)
    slope, curvature = law.for_any
    for t in (rng.random(50), rng.beta(0.2, 0.2, 50), np.array([0.0, 1.0]), np.array([0.3, 0.5])):
        found = steepest(law, t)
        assert found[0] <= slope * (1.0 + 1e-9)
        assert found[1] <= curvature * (1.0 + 1e-9)
    if law.kind == "Gaussian":  # scores of 0 and 1, in the proportions that are worst at s = 1/2
        far = round(1_000 * (1.0 - 1.0 / math.sqrt(3.0)) / 2.0)
        assert law.derivatives(0.5, np.array([0.0, 1.0]))[0] == pytest.approx(slope)
        assert law.derivatives(0.5, np.repeat([0.0, 1.0], [far, 1_000 - far]))[1] > 0.999 * curvature
    else:
        assert law.derivatives(0.5, np.array([0.0, 1.0]))[0] > 0.99 * slope


def test_worst_curvature_of_the_gaussian_by_linear_programs() -> None:
    """E|(x - m)^2 - v| / 2 over all laws on a grid of [0, 1] with E x = m, E (x - m)^2 = v."""
    x = np.linspace(0.0, 1.0, 101)
    best = 0.0
    for m in np.linspace(0.02, 0.5, 25):
        for v in np.linspace(0.02, 1.0, 25) * m * (1.0 - m):
            w = (x - m) ** 2
            found = optimize.linprog(
                -0.5 * np.abs(w - v), A_eq=np.array([np.ones_like(x), x, w]), b_eq=np.array([1.0, m, v])
            )
            if found.success:
                best = max(best, -found.fun)
    assert 0.998 / (6.0 * math.sqrt(3.0)) < best <= 1.0 / (6.0 * math.sqrt(3.0)) + 1e-9


@pytest.mark.parametrize("law", [Law("sech", 0.1), Law("Gaussian", 0.12)], ids=lambda law: law.kind)
def test_draws_follow_the_law(law: Law) -> None:
    t = 0.2
    s = law.draw(np.full(50_000, t), np.random.default_rng(10))
    density = (lambda u: 1 / np.cosh(u)) if law.kind == "sech" else (lambda u: np.exp(-u * u / 2))
    grid = np.linspace(0.0, 1.0, 20_001)
    total = np.concatenate([[0.0], integrate.cumulative_simpson(density((t - grid) / law.scale), x=grid)])
    assert stats.kstest(s, lambda at: np.interp(at, grid, total / total[-1])).pvalue > 1e-6


def test_progress_needs_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("work", 3.0) as advance:
        advance(1.0)
        advance(2.0)
    assert capsys.readouterr().out.splitlines() == ["work: 30 %", "work: 100 %"]
