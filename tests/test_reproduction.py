"""The benches that set certificates against known errors, and rankings over numbers of bins."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, optimize, stats

from bench import bin_sweep, record, trajectories
from bench import reproduce_certificates as reproduce
from bench import reproduce_rankings as rankings
from bench.parallel import progress
from bench.perturbations import Law, laws, steepest
from bench.report import first_below, report
from bench.synthetic import PERTURBED, POPULATIONS, Perturbed, Population
from calcore import BinCounts, ScoreTable, certify, ece
from calcore.truthful import classwise_lin_ce, conf_ce

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


# --- rankings by calibration error over numbers of bins


def test_spearman_is_that_of_scipy() -> None:
    """Rows of a matrix one by one, with and without ties."""
    rng = np.random.default_rng(12)
    x, y = rng.random((50, 12)), rng.integers(4, size=(50, 12)).astype(float)
    y[:10] = rng.random((10, 12))
    found = rankings.spearman(x, y)
    for a, b, rho in zip(x, y, found, strict=True):
        assert rho == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_spearman_of_a_constant_is_undefined_and_of_monotone_numbers_one() -> None:
    x = np.arange(5.0)
    assert rankings.spearman(x, np.exp(x)) == pytest.approx(1.0)
    assert rankings.spearman(x, -x) == pytest.approx(-1.0)
    assert np.isnan(rankings.spearman(x, np.ones(5)))


def test_bootstrap_resamples_models_whole_and_steps_within() -> None:
    """Two quantities that agree within every model, and disagree between models."""
    steps = np.arange(6.0)
    x = np.array([steps, 10.0 + steps, 20.0 + steps])
    y = np.array([20.0 + steps, 10.0 + steps, steps])
    draws = rankings.Draws.drawn(3, 6, 200)
    assert draws.models[0].tolist() == [0, 1, 2]
    assert draws.steps[0].tolist() == [list(range(6))] * 3
    assert len(np.unique(draws.models[1:], axis=0)) == 27  # all there are
    within, final, pooled = (draws.correlations(x, y, way) for way in rankings.WAYS)
    assert within[np.isfinite(within)] == pytest.approx(1.0)
    assert final[0] == pytest.approx(-1.0)
    assert pooled[0] == pytest.approx(stats.spearmanr(x.ravel(), y.ravel()).statistic, abs=1e-12)
    for rho, models in zip(final, draws.models, strict=True):
        assert np.isnan(rho) == (len(set(models.tolist())) == 1)
    models = draws.models[7]
    assert pooled[7] == pytest.approx(
        stats.spearmanr(x[models].ravel(), y[models].ravel()).statistic, abs=1e-12
    )
    found = rankings.interval(final)
    assert found["value"] == found["low"] == found["high"] == pytest.approx(-1.0)
    assert found["undefined"] == np.isnan(final).sum()


def test_final_is_of_the_last_step() -> None:
    x, y = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]]), np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    draws = rankings.Draws.drawn(3, 2, 1)
    assert draws.correlations(x, y, "final")[0] == pytest.approx(1.0)
    assert draws.correlations(x, -y, "final")[0] == pytest.approx(-1.0)


def test_an_interval_without_draws_is_none() -> None:
    assert rankings.interval(np.array([np.nan, 0.5]))["value"] is None
    assert rankings.interval(np.array([0.5, np.nan]))["low"] is None


def test_flips_by_hand() -> None:
    """Three resamples at three numbers of bins: signs + + -, + 0 -, - - -."""
    first = np.array([[2.0, 2.0, 1.0], [2.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    second = np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [2.0, 2.0, 2.0]])
    third = 1.0 / 3.0
    assert bin_sweep.flips(first, second) == pytest.approx(
        np.array([[0.0, 0.0, 2 * third], [0.0, 0.0, third], [2 * third, third, 0.0]])
    )


def test_the_mechanism_turns_the_ranking() -> None:
    found = {
        (name, bins): ece(labels, scores, n_bins=bins)
        for name, (labels, scores) in bin_sweep.by_hand().items()
        for bins in (10, 20)
    }
    for (name, bins), value in {("A", 10): 0.03, ("A", 20): 0.03, ("B", 10): 0.0, ("B", 20): 0.04}.items():
        assert found[name, bins] == pytest.approx(value, abs=1e-15)
    assert found["A", 10] > found["B", 10]
    assert found["A", 20] < found["B", 20]


def test_the_mechanism_in_samples() -> None:
    """Hoeffding's inequality for the labels in every bin, and for how many rows a strip gets."""
    n, spare = 20_000, math.sqrt(math.log(2 * 30 / 1e-6) / 2.0)  # at most 30 bins and strips in all
    for name, strips, expected in (
        ("A", bin_sweep.A, {10: 0.03, 20: 0.03}),
        ("B", bin_sweep.B, {10: 0.0, 20: 0.04}),
    ):
        labels, scores = bin_sweep.strip_rows(strips, n, np.random.default_rng(13))
        low, high = (0.85, 0.95) if name == "A" else (0.55, 0.75)
        assert low <= scores.min() < scores.max() < high
        for bins, value in expected.items():
            shares = np.bincount((scores * bins).astype(int)) / n
            noise = spare * np.sqrt(shares / n).sum()
            # the share of a strip is drawn too: its error is counted with that share
            drawn = spare / math.sqrt(n) * sum(abs(strip.excess) for strip in strips)
            assert abs(ece(labels, scores, n_bins=bins) - value) < noise + drawn


def test_beta_models_have_the_error_that_is_said() -> None:
    for model in bin_sweep.MODELS:
        s = stats.beta(model.a, model.b).ppf((np.arange(200_000) + 0.5) / 200_000)
        assert np.abs(s - model.eta(s)).mean() == pytest.approx(model.error, abs=1e-6)
        labels, scores = model.rows(50_000, np.random.default_rng(14))
        assert stats.kstest(scores, stats.beta(model.a, model.b).cdf).pvalue > 1e-6
        excess = float(np.sum(labels - model.eta(scores)))
        assert abs(excess) < math.sqrt(2.0 * 50_000 / 4.0 * math.log(2.0 / 1e-6))


def test_the_committed_sweep_is_that_of_the_results() -> None:
    """Parameters were fixed before the first run."""
    content = record.read("rankings", False)
    assert content is not None
    kept = content["sweep"]
    assert (kept["n"], kept["resamples"], kept["seed"]) == (5_000, 200, 251_006_388)
    assert kept["bin_counts"] == list(range(5, 51))
    parameters = [(m["a"], m["b"], m["temperature"]) for m in kept["models"]]
    assert parameters == [(8.0, 2.0, 1.15), (3.0, 2.0, 1.05), (2.0, 2.0, 1.0)]
    assert parameters == [(m.a, m.b, m.temperature) for m in bin_sweep.MODELS]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_expected_errors_by_enumeration(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All label vectors of three rows, with their probabilities."""
    rng = np.random.default_rng(15)
    p, posterior = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3), 3)
    monkeypatch.setattr(rankings, "BINS", (m,))
    found = rankings.expected_errors(posterior, p)
    classwise = confidence = 0.0
    for y in itertools.product(range(3), repeat=3):
        chance = math.prod(posterior[i, r] for i, r in enumerate(y))
        classwise += chance * classwise_lin_ce(y, p, n_bins=m)
        confidence += chance * conf_ce(y, p, n_bins=m)
    assert found["classwise LinCE, expected"] == pytest.approx([classwise], rel=1e-12)
    assert found["ConfCE, expected"] == pytest.approx([confidence], rel=1e-12)


def test_true_errors_of_the_posteriors_are_zero_and_of_a_shift_are_the_shift() -> None:
    posterior = np.tile([[0.5, 0.3, 0.2]], (500, 1))
    assert rankings.true_errors(posterior, posterior) == {"classwise": 0.0, "confidence": 0.0}
    found = rankings.true_errors(posterior, posterior + np.array([0.06, -0.04, -0.02]))
    assert found["classwise"] == pytest.approx(0.04)
    assert found["confidence"] == pytest.approx(0.06)


def test_every_class_comes_first() -> None:
    labels = np.array([2, 2, 0, 2, 1, 0])
    order = trajectories.every_class_first(labels, np.array([3, 1, 5, 0, 4, 2]))
    assert order.tolist() == [5, 4, 3, 1, 0, 2]  # the first of classes 0, 1, 2, then the others as they were


def test_flights_are_encoded_without_distance() -> None:
    x = pd.DataFrame(
        {
            "month": [1, 2],
            "weekday": [0, 6],
            "origin": pd.Categorical(["EWR", "JFK"]),
            "dest": pd.Categorical(["ATL", "BOS"]),
            "carrier": pd.Categorical(["AA", "AA"]),
            "departs": [0, 360],
            "arrives": [720, 0],
            "distance": [1, 1_000_000],
        }
    )
    first, second = trajectories.encode(x, with_destination=False)
    assert first.dtype == np.float32
    assert len(first) == 2 + 2 + 2 + 1 + 12
    assert np.abs([first, second]).max() <= 1.0
    assert second[7:13] == pytest.approx(
        [1, 0, -1, 0, -1, 0], abs=1e-6
    )  # a quarter of a day, three harmonics
    assert trajectories.encode(x, with_destination=True).shape == (2, 20)


SMALL = trajectories.Sizes(400, 200, 200, 300, (1, 2))


def test_a_task_is_disjoint_and_has_its_posteriors() -> None:
    rows = trajectories.task("synthetic", SMALL)
    assert len(np.unique(rows.train.y)) == rows.n_classes == 100
    parts = np.concatenate([rows.train.x, rows.valid.x, rows.test.x, rows.truth.x])
    assert len(np.unique(parts[:, 0])) == 1_100
    assert rows.test.posterior.sum(axis=1) == pytest.approx(np.ones(200))
    chance = np.take_along_axis(rows.test.posterior, rows.test.y[:, None], axis=1).mean()
    assert chance > 0.3  # of the class that was drawn; 1 / 100 if rows and labels were mixed up
    assert trajectories.about("synthetic", SMALL)["fewest_training_rows"] >= 1


@pytest.mark.parametrize("model", [0, 1, 7], ids=lambda i: trajectories.MODELS[i].kind)
def test_every_kind_of_model_is_followed(model: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On two classes, so that it takes no time."""
    rng = np.random.default_rng(16)
    x = rng.standard_normal((600, 3)).astype(np.float32)
    posterior = np.stack([1.0 / (1.0 + np.exp(x[:, 0])), 1.0 / (1.0 + np.exp(-x[:, 0]))], axis=1)
    y = (rng.random(600) < posterior[:, 1]).astype(np.int64)
    parts = [trajectories.Part(x[i], y[i], posterior[i]) for i in np.split(np.arange(600), [300, 400, 500])]
    rows = trajectories.Task(2, *parts)
    monkeypatch.setattr(trajectories, "task", lambda name, sizes: rows)
    found = rankings.Training("synthetic", model, SMALL).checkpoints()
    assert [entry["step"] for entry in found] == [1, 2]
    for entry in found:
        assert entry["temperature"] > 0.0
        assert 0.0 <= entry["error"] <= 1.0
        assert set(entry["metrics"]) == set(rankings.METRICS)
        # with a bin for every row, n times the truthful error is its proper loss
        truthful = [entry["metrics"][name][0] for name in ("classwise LinCE", "ConfCE")]
        assert 100.0 * np.array(truthful) == pytest.approx(list(entry["losses"].values()), rel=1e-9)
    assert found == rankings.Training("synthetic", model, SMALL).checkpoints()


def entries_of(task: str) -> list[dict[str, Any]]:
    """Two models at two steps; every metric is the classification error, but for ConfCE in 5 bins."""
    found = []
    for i, error in enumerate((0.9, 0.8, 0.7, 0.6)):
        metrics = {name: [error] * 3 for name in rankings.METRICS} | {"ConfCE": [error, error, 1.0 - error]}
        found.append(
            {
                "task": task,
                "model": rankings.MODELS[i // 2].name,
                "step": 1 + i % 2,
                "temperature": 1.0,
                "error": error,
                "metrics": metrics,
                "losses": dict.fromkeys(rankings.LOSSES, error),
            }
        )
    return found


def test_correlations_of_a_task() -> None:
    found = rankings.correlations(entries_of("carrier"), 50)
    rho = {(e["metric"], e["bins"], e["with"]): e["pooled"]["value"] for e in found["against"]}
    assert rho["confidence ECE", 5, "error"] == pytest.approx(1.0)
    assert rho["ConfCE", 20, "error"] == pytest.approx(1.0)
    assert rho["ConfCE", 5, "error"] == pytest.approx(-1.0)
    assert rho["Brier/k", None, "error"] == pytest.approx(1.0)
    between = {(e["metric"], *e["bins"]): e["within"]["value"] for e in found["between"]}
    assert between["ConfCE", 2_000, 20] == pytest.approx(1.0)
    assert between["ConfCE", 2_000, 5] == pytest.approx(-1.0)
    gains = {(e["truthful"], e["other"], *e["bins"]): e["pooled"] for e in found["gains"]}
    gain = gains["ConfCE", "ConfECE", 2_000, 5]
    assert gain["value"] == gain["low"] == gain["high"] == pytest.approx(-2.0)


def test_rankings_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """From a file of two models: signs beside what was published."""
    resampled = [bin_sweep.Resample(i, 300).errors() for i in range(2)]
    content = {
        "seed": rankings.SEED,
        "draws": 50,
        "level": rankings.LEVEL,
        "bins": list(rankings.BINS),
        "sizes": {"train": 1, "valid": 1, "test": 5_000, "truth": 1},
        "steps": [1, 2],
        "models": ["logistic", "network 8"],
        "published": rankings.PUBLISHED,
        "training_seconds": 1.0,
        "tasks": {"synthetic": trajectories.about("synthetic", SMALL)},
        "checkpoints": entries_of("synthetic"),
        "correlations": {"synthetic": rankings.correlations(entries_of("synthetic"), 50)},
        "sweep": bin_sweep.sweep(resampled),
        "mechanism": bin_sweep.mechanism(2, 400),
    }
    content["checks"] = rankings._checks(content)
    assert all(check["passed"] for check in content["checks"])
    monkeypatch.setattr(record, "QUICK", tmp_path)
    record.save("rankings", content, True, None)
    text = report(["rankings"], True)
    for word in (
        "published | ours | why different",
        "not found",
        "**other sign**",
        "ConfCE",
        "flips",
        "reached",
    ):
        assert word in text
