"""The published certificates: every step against a slow version, and coverage where they are tight."""

from __future__ import annotations

import copy
import itertools
import json
import math

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from calcore import CellTable, ScoreTable, auroc_loss, certificates, certify, perturb
from calcore.certificates import buckets, perturbed
from calcore.certificates import folds as folds_of
from calcore.certificates import total_variation as tv
from calcore.certificates import windows as nw
from calcore.certificates.deviation import bernstein, sub_gaussian
from calcore.certificates.perturbed import why_not_perturbed
from calcore.kernels import folds as split
from calcore.kernels import sliding

Floats = NDArray[np.float64]
ROUNDING = 1e-12


def label_vectors(n: int) -> Floats:
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def law_of_labels(labels: Floats, eta: Floats) -> Floats:
    return np.where(labels == 1.0, eta, 1.0 - eta).prod(axis=1)


def monotone_or_wild(rng: np.random.Generator, n: int) -> Floats:
    """Values in [0, 1] in the order of the scores."""
    kind = rng.integers(4)
    if kind == 0:
        return np.sort(rng.random(n))
    if kind == 1:
        return (np.arange(n) >= rng.integers(0, n + 1)).astype(float)
    if kind == 2:
        return rng.choice([0.2, 0.5, 0.9], n)[np.arange(n) // max(1, n // 4)]
    return np.full(n, rng.random())


def allowed_misses(runs: int, delta: float) -> int:
    """More misses than this happen with probability below 1e-6 if each has probability at most delta."""
    return int(stats.binom.isf(1e-6, runs, delta))


# --- folds


@pytest.mark.kernels
def test_folds_are_even_and_leave_none_out() -> None:
    for n, k in ((1, 2), (2, 5), (7, 3), (100, 4), (10, 10), (70_000, 3)):
        folds = folds_of.draw_folds(n, k, np.random.default_rng(3))
        sizes = np.bincount(folds)
        assert sizes.size == min(n, k)
        assert sizes.max() - sizes.min() <= 1


def test_folds_do_not_know_the_rows() -> None:
    """Every row is equally likely in every fold, and so is every pair: chi-squared at 1e-6."""
    n, k, draws = 6, 3, 6000
    generator = np.random.default_rng(4)
    seen = np.array([folds_of.draw_folds(n, k, generator) for _ in range(draws)])
    counts = np.array([(seen == fold).sum(axis=0) for fold in range(k)])
    assert stats.chisquare(counts.ravel()).pvalue > 1e-6
    together = [int((seen[:, i] == seen[:, j]).sum()) for i, j in itertools.combinations(range(n), 2)]
    assert np.all(np.abs(np.array(together) - draws / 5) < 6 * math.sqrt(draws * 0.2 * 0.8))


@pytest.mark.kernels
def test_tied_scores_get_one_value_whatever_their_labels() -> None:
    """Splitting by hand: groups of the training rows, and the step function at the rows of the fold."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = int(rng.integers(2, 40))
        s = np.sort(rng.integers(0, rng.choice([2, 6, 30]), n) / 30)
        y = rng.integers(0, 2, n)
        table = ScoreTable(y, s)
        assert not table.keys.flags.writeable
        ordered = (table.keys >> 1).view(np.float64)
        labels = table.keys & 1
        folds = folds_of.draw_folds(n, 3, rng)
        counts, positives = np.empty((2, n), np.int64)
        m = split.training_groups(table.keys, folds, 1, counts, positives)
        if not np.any(folds != 1):
            continue
        places, where = np.unique(ordered[folds != 1], return_inverse=True)
        assert m == places.size
        assert counts[:m].tolist() == np.bincount(where).tolist()
        assert positives[:m].tolist() == np.bincount(where, labels[folds != 1]).tolist()
        fitted = rng.random(m)
        tested = ordered[folds == 1]
        if tested.size == 0:
            continue
        at = np.maximum(np.searchsorted(places, tested, "right") - 1, 0)
        errors = np.abs(fitted[at] - tested)
        rows, mean, squares = split.validation_error(table.keys, folds, 1, fitted)
        assert rows == tested.size
        assert mean == pytest.approx(errors.mean(), abs=1e-15)
        assert squares == pytest.approx(((errors - errors.mean()) ** 2).sum(), abs=1e-13)


# --- tv: THEORY 5.1, term by term


def denoised(y: Floats, weights: Floats, lam: float) -> Floats:
    return np.array(oracles.tv_by_messages(y.tolist(), weights.tolist(), lam)) if lam > 0 else y


def test_fit_error_on_random_instances() -> None:
    """Where lam drowns the noise, mean (fit - eta)^2 <= 2 lam V + (mean noise)^2: no chance is left in it."""
    rng = np.random.default_rng(6)
    tightest = 0.0
    for _ in range(400):
        m = int(rng.integers(1, 30))
        weights = rng.integers(1, 5, m).astype(float)
        eta = monotone_or_wild(rng, m)
        k = rng.binomial(weights.astype(int), eta).astype(float)
        noise = k - weights * eta
        n = weights.sum()
        steps = n * np.arange(1, m) * 0 + np.cumsum(weights)[:-1]
        bridge = np.cumsum(noise)[:-1] - steps / n * noise.sum()
        lam = np.abs(bridge).max(initial=0.0) / n
        fit = denoised(k / weights, weights, n * lam + 1e-12)
        error = float((weights * (fit - eta) ** 2).sum() / n)
        variation = float(np.abs(np.diff(eta)).sum())
        bound = 2.0 * lam * variation + (noise.sum() / n) ** 2
        assert error <= bound + 1e-10
        tightest = max(tightest, error / bound if bound > 1e-6 else 0.0)
    assert tightest > 0.9


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.02])
def test_penalty_drowns_the_noise(delta: float) -> None:
    """Exact probability, over all labels, that a centred step or the mean sees more than it is given."""
    rng = np.random.default_rng(7)
    labels = label_vectors(10)
    tightest = 0.0
    for _ in range(30):
        eta = rng.choice([np.full(10, 0.5), rng.random(10)])
        sizes = rng.multinomial(6, np.full(4, 0.25)) + 1 if rng.random() < 0.5 else np.ones(10, int)
        cuts = np.cumsum(sizes)[:-1]
        noise = labels - eta
        bridge = np.cumsum(noise, axis=1)[:, cuts - 1] - cuts / 10 * noise.sum(axis=1, keepdims=True)
        lam = tv.penalty(10, sizes.size, delta)
        seen = np.abs(bridge).max(axis=1) > 10 * lam
        assert law_of_labels(labels, eta) @ seen <= delta / 2
        mean = np.abs(noise.mean(axis=1)) > math.sqrt(math.log(4 / delta) / 20)
        assert law_of_labels(labels, eta) @ mean <= delta / 2
        tightest = max(tightest, float(law_of_labels(labels, eta) @ (np.abs(bridge).max(axis=1) > 5 * lam)))
    assert tightest > delta / 2  # half the penalty would not do


@pytest.mark.parametrize(
    ("n", "delta", "variation", "lam", "error"),
    [
        (1000, 0.025, 1.0, 0.0387006598682, 0.282734693032),
        (100000, 0.01, 1.0, 0.00467765700058, 0.0968776100236),
        (10000000, 0.01, 0.5, 0.000525708570622, 0.022934867426),
    ],
)
def test_fit_error_of_an_independent_implementation(
    n: int, delta: float, variation: float, lam: float, error: float
) -> None:
    assert tv.penalty(n, n, delta) == pytest.approx(lam, rel=1e-11)
    assert tv.fit_error(n, n, variation, delta) == pytest.approx(error, rel=1e-11)


def test_variation_carries_a_mean_over() -> None:
    """|E g(S) - mean of g at n draws| <= variation of g times sup |F - F_n|; steps attain it."""
    rng = np.random.default_rng(8)
    tightest = 0.0
    for _ in range(300):
        places = int(rng.integers(2, 20))
        mass = rng.dirichlet(np.ones(places))
        drawn = rng.multinomial(int(rng.integers(1, 30)), mass)
        fit, eta = monotone_or_wild(rng, places), monotone_or_wild(rng, places)
        g = np.abs(fit - eta)
        wiggle = np.abs(np.diff(fit)).sum() + np.abs(np.diff(eta)).sum()
        distance = np.abs(np.cumsum(mass) - np.cumsum(drawn) / drawn.sum()).max()
        gap = abs(mass @ g - drawn @ g / drawn.sum())
        assert gap <= wiggle * distance + ROUNDING
        tightest = max(tightest, gap / (wiggle * distance) if wiggle * distance > 1e-9 else 0.0)
    assert tightest > 0.999


def slow_tv(y: Floats, s: Floats, folds: NDArray[np.uint32], delta: float, variation: float) -> Floats:
    """Plug-in, denoising, deviation and transfer from their definitions; rows by ascending score."""
    k = int(folds.max()) + 1
    terms = []
    for fold in range(k):
        part = delta / k
        inside = folds == fold
        places, where = np.unique(s[~inside], return_inverse=True)
        weights = np.bincount(where).astype(float)
        rates = np.bincount(where, y[~inside]) / weights
        n, m = int(weights.sum()), places.size
        lam = math.sqrt(math.log(4 * (m - 1) / (0.5 * part)) / (8 * n)) if m > 1 else 0.0
        fit = denoised(rates, weights, n * lam)
        at = np.maximum(np.searchsorted(places, s[inside], "right") - 1, 0)
        errors = np.abs(fit[at] - s[inside])
        rows = errors.size
        nats = math.log(2 / (0.125 * part))
        spread = errors.var(ddof=1) if rows > 1 else 0.0
        test = (
            1.0 if rows == 1 else min(1.0, math.sqrt(2 * spread * nats / rows) + 7 * nats / (3 * (rows - 1)))
        )
        terms.append(
            [
                errors.mean(),
                math.sqrt(2 * lam * variation + math.log(4 / (0.5 * part)) / (2 * n)),
                test,
                (variation + np.abs(np.diff(fit)).sum())
                * min(1.0, math.sqrt(math.log(2 / (0.375 * part)) / (2 * n))),
            ]
        )
    return np.mean(terms, axis=0)


@pytest.mark.parametrize(
    ("n", "n_folds", "ties"), [(60, 5, False), (61, 3, True), (9, 20, True), (400, 2, True)]
)
@pytest.mark.parametrize("variation", [0.3, 1.0, 4.0])
def test_tv_is_what_its_definition_says(
    monkeypatch, n: int, n_folds: int, ties: bool, variation: float
) -> None:
    rng = np.random.default_rng([9, n])
    s = np.sort(rng.integers(0, 9, n) / 8 if ties else rng.random(n))
    y = (rng.random(n) < s).astype(float)
    order = np.lexsort((y, s))
    folds = folds_of.draw_folds(n, n_folds, rng)
    monkeypatch.setattr(folds_of, "draw_folds", lambda *_: folds)
    c = certify(y, s, side="upper", method="tv", variation=variation, n_folds=n_folds, delta=0.1)
    assert list(c.terms) == ["plug_in", "denoising", "deviation", "transfer"]
    expected = slow_tv(y[order], s[order], folds, 0.95 * 0.1, variation)
    assert list(c.terms.values()) == pytest.approx(expected.tolist(), abs=1e-9)
    assert c.upper == min(1.0, sum(c.terms.values()))
    assert (c.method, c.n_folds, c.n_bins, c.bandwidth) == ("tv", min(n, n_folds), 0, None)
    assert f"total variation <= {variation:g}" in c.assumption


# --- nw: THEORY 5.2, term by term

BOTH = sliding.FITTED | sliding.TESTED


def clumped_scores(rng: np.random.Generator, n: int) -> Floats:
    """Ties, clusters and gaps, ascending."""
    kind = rng.integers(4)
    if kind == 0:
        s = rng.random(n)
    elif kind == 1:
        s = rng.integers(0, 8, n) / 7
    elif kind == 2:
        s = np.clip(rng.choice([0.1, 0.11, 0.7], n) + rng.normal(0, 0.01, n), 0, 1)
    else:
        s = rng.beta(0.2, 3, n)
    return np.sort(s)


def inside(s: Floats, b: float) -> NDArray[np.bool_]:
    return np.abs(s[:, None] - s[None, :]) <= b


def worst_hidden(s: Floats, near: NDArray[np.bool_], slope: float, curvature: float) -> Floats:
    """The smaller of the two bounds of |mean of eta - eta| for each window, at most 1."""
    d = s[None, :] - s[:, None]
    size = np.maximum(near.sum(axis=1), 1)
    mean, square = (near * np.abs(d)).sum(axis=1) / size, (near * d * d).sum(axis=1) / size
    bent = np.full(s.size, np.inf)
    if curvature < math.inf:
        bent = slope * np.abs((near * d).sum(axis=1)) / size + 0.5 * curvature * square
    return np.minimum(1.0, np.minimum(slope * mean, bent))


@pytest.mark.kernels
def test_windows_by_definition() -> None:
    rng = np.random.default_rng(20)
    for _ in range(120):
        n = int(rng.integers(1, 60))
        s = clumped_scores(rng, n)
        y = rng.integers(0, 2, n)
        table = ScoreTable(y, s)
        y = table.keys & 1
        roles = rng.choice([1, 2, 3], n).astype(np.uint8) if rng.random() < 0.7 else np.full(n, 3, np.uint8)
        b = float(rng.choice([0.0, 2.0**-20, 0.01, 0.125, 0.3, 1.0]))
        slope, curvature = float(rng.choice([0.5, 3.0])), float(rng.choice([4.0, math.inf]))
        unit = sliding.unit_for(b, n)
        sizes = np.empty(n, np.uint32)
        error, hidden, noise = sliding.window_errors(table.keys, roles, b, unit, slope, curvature, sizes)
        fitted, tested = (roles & 1) > 0, (roles & 2) > 0
        near = inside(s, b) & fitted
        size = near.sum(axis=1)
        assert sizes.tolist() == size.tolist()
        some = tested & (size > 0)
        rate = (near @ y)[some] / size[some]
        assert error == pytest.approx(np.abs(s[some] - rate).sum() + (tested & (size == 0)).sum(), abs=1e-12)
        assert noise == pytest.approx((1 / np.sqrt(size[some])).sum(), abs=1e-12)
        exact = worst_hidden(s, near, slope, curvature)[some].sum()
        step = 2.0 * unit * slope + (4.0 * unit * b * curvature if curvature < math.inf else 0.0)
        assert exact * (1 - 1e-12) <= hidden <= exact + n * step + 1e-12
        weight = (inside(s, b)[:, some] / size[some]).sum(axis=1)[fitted]
        squares, excess = sliding.window_weights(table.keys, roles, b, sizes)
        assert squares == pytest.approx((weight**2).sum(), rel=1e-12, abs=1e-12)
        assert excess == pytest.approx(np.maximum(weight**2 - 1, 0).sum(), abs=1e-11)


@given(
    scores=st.lists(
        st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=1, max_size=40
    ),
    b=st.sampled_from([0.0, 1e-3, 0.25, 0.5, 1.0]),
)
def test_weights_are_at_most_two(scores: list[float], b: float) -> None:
    near = inside(np.sort(scores), b)
    weight = (near / near.sum(axis=1)[:, None]).sum(axis=0)
    assert weight.sum() == pytest.approx(len(scores))
    assert weight.max() <= nw.REACH + ROUNDING
    assert np.maximum(weight**2 - 1, 0).mean() <= nw.LEVELS[-1][0] + ROUNDING


def test_weights_come_near_two() -> None:
    """One row between two crowds that do not see each other: its label is in all averages."""
    s = np.repeat([0.25, 0.5, 0.75], [500, 1, 500])
    near = inside(s, 0.25)
    assert (near / near.sum(axis=1)[:, None]).sum(axis=0).max() > 1.99


def test_levels_share_delta() -> None:
    assert sum(part for _, part in nw.LEVELS) == pytest.approx(1.0)
    assert [level for level, _ in nw.LEVELS] == sorted(level for level, _ in nw.LEVELS)


def test_moment_generating_function_of_weighted_noise() -> None:
    """E exp(t sum w eps) <= exp(phi(2t)/4 (sum sigma^2 + n surplus / 4)) and exp(t^2 (1 + surplus) n / 8)."""
    rng = np.random.default_rng(21)
    tightest = 0.0
    for _ in range(400):
        n = int(rng.integers(1, 9))
        eta, w = rng.random(n) ** rng.choice([1, 8]), rng.uniform(-2, 2, n)
        t = 10 ** rng.uniform(-2, 0.5)
        log_mgf = float(np.log(eta * np.exp(t * w * (1 - eta)) + (1 - eta) * np.exp(-t * w * eta)).sum())
        surplus = float(np.maximum(w * w - 1, 0).mean())
        variance = float((eta * (1 - eta)).sum())
        assert log_mgf <= t * t * (1 + surplus) * n / 8 + ROUNDING
        assert log_mgf <= (math.exp(2 * t) - 1 - 2 * t) / 4 * (variance + n * surplus / 4) + ROUNDING
        tightest = max(tightest, log_mgf / (t * t * (1 + surplus) * n / 8))
    assert tightest > 0.9


def deviation_by_roots(
    base: float, n: int, delta: float, brier: float, surplus: float, reach: float
) -> float:
    """The smaller of (a) and (b) in implicit form."""
    cost = math.log(1 / delta) / n

    def sub_gaussian_mgf(t: float, x: float) -> float:
        return (1 + surplus) * t * t / 8 + t * x + math.log1p(x * math.expm1(-t))

    def bennett_mgf(t: float, x: float) -> float:
        phi = oracles.phi(reach * t) / reach**2
        v = phi / 4
        inside = 1 - t * x + phi * (math.expm1(v) / v) * brier
        return phi * surplus / 4 + t * x + math.log(max(inside, 1e-300))

    def end(mgf) -> float:
        def deviation(x: float) -> float:
            return oracles.least_over_t(lambda t: (mgf(t, min(x, 1.0)) + cost) / t, high=3.0)

        return oracles.upper_end(base, deviation)

    return min(end(sub_gaussian_mgf), end(bennett_mgf))


@pytest.mark.parametrize(
    ("base", "n", "brier", "surplus", "reach"),
    [
        (0.05, 2000, 0.17, 0.1, 2.0),
        (0.02, 10000, 0.01, 0.4, 2.0),
        (0.1, 500, 0.2, 0.0, 1.0),
        (0.3, 800, 0.24, 1.5, 2.0),
    ],
)
def test_deviations_with_a_surplus(base: float, n: int, brier: float, surplus: float, reach: float) -> None:
    nats = math.log(1 / 0.03)
    ours = min(
        base + sub_gaussian(base, n, nats, surplus).total,
        base + bernstein(base, n, nats, brier, surplus, reach).total,
    )
    assert ours == pytest.approx(deviation_by_roots(base, n, 0.03, brier, surplus, reach), abs=2e-6)


def slow_nw(
    y: Floats, s: Floats, b: float, slope: float, curvature: float, delta: float, brier: float
) -> Floats:
    """Plug-in, bias, and all chance terms together, from the matrix written out."""
    n = s.size
    near = inside(s, b)
    a = near / near.sum(axis=1)[:, None]
    weight = a.sum(axis=0)
    surplus = np.maximum(weight**2 - 1, 0).mean()
    level, share = next((level, share) for level, share in nw.LEVELS if surplus <= level)
    plug = np.abs(s - a @ y).mean()
    bias = worst_hidden(s, near, slope, curvature).mean()
    end = deviation_by_roots(plug + bias, n, share * delta, brier, level, 2.0)
    return np.array([plug, bias, end - plug - bias])


NW_ASSUMPTIONS = [
    ({"lipschitz": 1.0}, 1.0, math.inf),
    ({"lipschitz": 20.0}, 20.0, math.inf),
    ({"perturbed": 0.1}, 5.0, 50.0),
    ({"perturbed": 0.1, "lipschitz": 2.0}, 2.0, 50.0),
]


@pytest.mark.parametrize(("options", "slope", "curvature"), NW_ASSUMPTIONS)
@pytest.mark.parametrize("n", [60, 700])
def test_nw_is_what_its_definition_says(options, slope: float, curvature: float, n: int) -> None:
    rng = np.random.default_rng([22, n])
    s = np.sort(rng.beta(1, 3, n))
    y = (rng.random(n) < s).astype(float)
    c = certify(y, s, method="nw", side="upper", delta=0.1, **options)
    assert c.bandwidth is not None
    brier = oracles.kl_end(float(((s - y) ** 2).mean()), math.log(1 / 0.005) / n, upper=True)
    plug, bias, chance = slow_nw(y, s, c.bandwidth, slope, curvature, 0.95 * 0.1, brier)
    assert c.terms["plug_in"] == pytest.approx(plug, abs=1e-12)
    assert bias * (1 - 1e-12) <= c.terms["bias"] <= bias * (1 + 1e-4)
    assert c.terms["deviation"] + c.terms["transfer"] == pytest.approx(chance, abs=1e-5)
    assert (c.method, c.n_folds, c.n_bins) == ("nw", 0, 0)


def slow_nw_folds(
    y: Floats, s: Floats, folds: NDArray[np.uint32], b: float, slope: float, curvature: float, delta: float
) -> Floats:
    k = int(folds.max()) + 1
    terms = []
    for fold in range(k):
        part = delta / k
        tested = folds == fold
        near = (inside(s, b) & ~tested)[tested]
        size = near.sum(axis=1)
        rows = size.size
        some = size > 0
        rate = (near @ y)[some] / size[some]
        plug = (np.abs(s[tested][some] - rate).sum() + (~some).sum()) / rows
        bias = worst_hidden(s, inside(s, b) & ~tested, slope, curvature)[tested][some].sum() / rows
        weight = (near[some] / size[some, None]).sum(axis=0) / rows
        deviation = (0.5 / np.sqrt(size[some])).sum() / rows
        deviation += math.sqrt(math.log(2 / part) * (weight**2).sum() / 2)
        base = plug + bias + deviation
        end = oracles.kl_end(base, math.log(2 / part) / rows, upper=True) if base < 1 else base
        terms.append([plug, bias, deviation, end - base])
    return np.mean(terms, axis=0)


@pytest.mark.parametrize(("options", "slope", "curvature"), NW_ASSUMPTIONS)
@pytest.mark.parametrize(("n", "n_folds"), [(30, 3), (500, 5)])
def test_nw_folds_is_what_its_definition_says(
    monkeypatch, options, slope: float, curvature: float, n: int, n_folds: int
) -> None:
    rng = np.random.default_rng([23, n])
    s = np.sort(rng.beta(1, 3, n))
    y = (rng.random(n) < s).astype(float)
    folds = folds_of.draw_folds(n, n_folds, rng)
    monkeypatch.setattr(folds_of, "draw_folds", lambda *_: folds)
    c = certify(y, s, method="nw-folds", side="upper", delta=0.1, n_folds=n_folds, **options)
    assert c.bandwidth is not None
    slow = slow_nw_folds(y, s, folds, c.bandwidth, slope, curvature, 0.95 * 0.1)
    assert list(c.terms) == ["plug_in", "bias", "deviation", "transfer"]
    assert list(c.terms.values()) == pytest.approx(slow.tolist(), abs=2e-4)
    assert c.terms["plug_in"] == pytest.approx(slow[0], abs=1e-12)
    assert c.terms["deviation"] == pytest.approx(slow[2], abs=1e-12)
    assert (c.method, c.n_folds) == ("nw-folds", n_folds)


def test_mean_noise_of_averages_over_all_labels() -> None:
    """Mean over tested rows of |sum w eps|: its mean and its upper tail, exactly."""
    rng = np.random.default_rng(24)
    labels = label_vectors(9)
    for _ in range(40):
        eta = rng.choice([np.full(9, 0.5), rng.random(9)])
        near = rng.random((6, 9)) < rng.choice([0.2, 0.6])
        size = near.sum(axis=1)
        w = near[size > 0] / size[size > 0, None]
        if not w.size:
            continue
        noise = np.abs((labels - eta) @ w.T).mean(axis=1)
        law = law_of_labels(labels, eta)
        mean = (0.5 / np.sqrt(size[size > 0])).mean()
        assert law @ noise <= mean + ROUNDING
        c = w.mean(axis=0)
        for delta in (0.5, 0.1, 0.01):
            assert law @ (noise > mean + math.sqrt(math.log(1 / delta) * (c @ c) / 2)) <= delta
    assert np.abs(np.array([0.0, 1.0]) - 0.5).mean() == 0.5  # one fair label: the mean is attained


def perturbed_eta(rng: np.random.Generator, s: Floats, h: float) -> Floats:
    """The calibration function of scores perturbed with the sech law, a few groups of scores underneath."""
    groups = int(rng.integers(2, 5))
    t, eta, mass = rng.random(groups), rng.choice([0.0, 1.0, 0.5], groups), rng.dirichlet(np.ones(groups))
    kernel = mass / np.cosh(np.clip((s[:, None] - t) / h, -300, 300))
    return (kernel @ eta) / np.maximum(kernel.sum(axis=1), 1e-300)


def test_perturbed_scores_have_a_bounded_curvature() -> None:
    """|eta''| <= 1 / (2 h^2), by differences; groups of T = 1, 0, -1 with weights 1/4, 1/2, 1/4 attain it."""
    rng = np.random.default_rng(29)
    s = np.linspace(0.0, 1.0, 100_001)
    steepest = 0.0
    for h in (0.02, 0.1):
        for j in range(15):
            t, eta, mass = np.array([0.3, 0.5, 0.7]), np.array([1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0])
            mass[1] = 2.0 / math.cosh(0.2 / h)
            if j:
                t, eta, mass = rng.random(4), rng.random(4), rng.random(4)
            kernel = mass / np.cosh((t - s[:, None]) / h)
            mixed = kernel @ eta / kernel.sum(axis=1)
            bend = np.abs(np.diff(mixed, 2)).max() * (s.size - 1) ** 2
            assert bend <= (1.0 + 1e-4) / (2.0 * h * h)
            steepest = max(steepest, 2.0 * h * h * bend)
    assert steepest > 0.999
    t, p = np.tanh(rng.normal(size=(1000, 4)) * 2), rng.dirichlet(np.ones(4), 1000)
    mean = (p * t).sum(axis=1, keepdims=True)
    x = 2 * t * t - 2 * mean * t
    spread = 1 - 4 * (p * (1 - t * t) * (t - mean) ** 2).sum(axis=1)
    assert (p * (x - 1) ** 2).sum(axis=1) == pytest.approx(spread, abs=1e-12)


def test_bias_covers_every_smooth_function() -> None:
    """Windows of random scores: eta of slope L, and of perturbed scores, near the bound for some."""
    rng = np.random.default_rng(25)
    tightest = {"slope": 0.0, "perturbed": 0.0}
    for _ in range(150):
        s = np.sort(rng.random(80)) * rng.choice([0.3, 1.0])
        b = float(rng.choice([0.02, 0.1]))
        near = inside(s, b)
        a = near / near.sum(axis=1)[:, None]
        table = ScoreTable(np.zeros(80), s)
        sizes = np.empty(80, np.uint32)
        for kind, (slope, curvature) in {"slope": (1.0, math.inf), "perturbed": (5.0, 50.0)}.items():
            if kind == "slope":
                signs = rng.choice([1.0, rng.choice([-1.0, 1.0])], 79)
                eta = np.clip(np.r_[0.0, np.cumsum(signs * np.diff(s))], 0, 1)
            else:
                eta = perturbed_eta(rng, s, 0.1)
            moved = float(np.abs(eta - a @ eta).sum())
            _, hidden, _ = sliding.window_errors(
                table.keys, np.full(80, BOTH, np.uint8), b, sliding.unit_for(b, 80), slope, curvature, sizes
            )
            assert moved <= hidden + ROUNDING
            tightest[kind] = max(tightest[kind], moved / hidden)
    assert tightest["slope"] > 0.4  # one sign inside a window hides less than both bounds together
    assert tightest["perturbed"] > 0.4


@pytest.mark.parametrize("method", ["nw", "nw-folds"])
def test_bandwidth_is_chosen_without_labels(method: str) -> None:
    rng = np.random.default_rng(26)
    for s in (rng.random(500), rng.beta(0.2, 20, 500), rng.integers(0, 9, 500) / 8):
        seen = {
            certify(y, s, method=method, lipschitz=2, side="upper").bandwidth
            for y in (np.zeros(500), np.ones(500), rng.random(500) < s, s > 0.5)
        }
        assert len(seen) == 1


def test_bandwidth_is_near_the_best() -> None:
    """Medians over samples: the planned width costs at most 5 % more than the best of its grid."""
    rng = np.random.default_rng(27)
    n = 5000
    tables = []
    for _ in range(5):
        s = rng.random(n)
        tables.append(ScoreTable(rng.random(n) < s, s))

    def median() -> float:
        return float(np.median([nw.nw_upper(table, 1.0, math.inf, 0.05, 0.18).value for table in tables]))

    planned, best = median(), math.inf
    for k in range(2, 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nw, "bandwidth_for", lambda *_, k=k, **__: 2.0 ** (-0.5 * k))
            best = min(
                best, float(np.median([nw.nw_upper(t, 1.0, math.inf, 0.05, 0.18).value for t in tables]))
            )
    assert planned <= 1.05 * best


@pytest.mark.parametrize("options", [{"lipschitz": 5.0}, {"lipschitz": 1e300}, {"perturbed": 1e-160}])
def test_steep_functions_are_averaged_over_ties_alone(options) -> None:
    rng = np.random.default_rng(28)
    s = rng.integers(0, 5, 2000) / 4
    y = rng.random(2000) < 1 - s
    if "perturbed" in options:
        s = rng.random(2000)
    c = certify(y, s, method="nw", side="upper", **options)
    if "lipschitz" in options:
        assert c.terms["bias"] == 0.0
        assert c.upper < 0.7
    else:
        assert c.bandwidth == 0.0


# --- buckets: THEORY 5.3, term by term


def slow_buckets(y: Floats, s: Floats, m: int, slope: float, delta: float) -> Floats:
    """Terms with m bins of equal width, empty ones left out."""
    n = s.size
    where = np.floor(s * m).astype(int)
    parts = [np.flatnonzero(where == j) for j in np.unique(where)]
    nats = math.log(2 * len(parts) / (delta / 2))
    terms = np.zeros(4)
    for part in parts:
        size, x = part.size, s[part]
        spread = np.abs(x - x.mean()).sum()
        difference = np.abs(x[:, None] - x[None, :]).sum() / size
        both = spread + min(slope * difference, size / 2) if np.ptp(x) > 0 else 0.0
        terms[:3] += [abs((x - y[part]).sum()), both, size * min(1.0, math.sqrt(nats / (2 * size)))]
    terms[:3] /= n
    base = terms[:3].sum()
    terms[3] = oracles.kl_end(base, math.log(2 / delta) / n, upper=True) - base if base < 1 else 0.0
    return terms


@pytest.mark.parametrize("slope", [0.5, 3.0, 200.0])
@pytest.mark.parametrize("n", [1, 40, 900])
def test_buckets_are_what_their_definition_says(n: int, slope: float) -> None:
    rng = np.random.default_rng([40, n])
    s = np.sort(rng.choice([rng.beta(1, 2, n), rng.integers(0, 6, n) / 8]))
    y = (rng.random(n) < s).astype(float)
    c = certify(y, s, method="buckets", side="upper", lipschitz=slope, delta=0.1)
    assert list(c.terms) == ["plug_in", "bias", "deviation", "transfer"]
    expected = [
        slow_buckets(y, s, m, slope, 0.95 * 0.1)
        for m in sorted({round(2 ** (k / 2)) for k in range(41)})
        if np.unique(np.floor(s * m)).size == c.n_bins
    ]
    assert any(list(c.terms.values()) == pytest.approx(terms.tolist(), abs=1e-9) for terms in expected)
    assert (c.method, c.n_folds, c.bandwidth) == ("buckets", 0, None)
    if n == 900:  # the number of bins is a good one
        free = [slow_buckets(y, s, m, slope, 0.95 * 0.1).sum() for m in range(1, 200)]
        assert c.upper <= 1.1 * min(free)


def test_buckets_hold_in_all_bins_at_once() -> None:
    """Exact probability that some bin's rate is further off than Hoeffding's bound for all of them says."""
    tightest = 0.0
    for sizes in ([1], [3, 8], [5] * 6, [20] * 3):
        for eta in (0.5, 0.05):
            for delta in (0.5, 0.05):
                fine = 1.0
                half = 1.0
                for size in sizes:
                    law = oracles.poisson_binomial([eta] * size)
                    off = np.abs(np.arange(size + 1) / size - eta)
                    bound = math.sqrt(math.log(2 * len(sizes) / delta) / (2 * size))
                    fine *= law[off <= bound].sum()
                    half *= law[off <= 0.5 * bound].sum()
                assert 1 - fine <= delta
                tightest = max(tightest, (1 - half) / delta)
    assert tightest > 1  # half of it would not do
    n = np.array([3.0, 8.0])
    each = np.sqrt(math.log(2 * 2 / 0.05) / (2 * n))
    assert buckets.deviation(n, 0.05) == pytest.approx((n * each.clip(max=1)).sum() / 11)


def test_buckets_hide_no_more_than_they_say() -> None:
    """mean |s - eta| <= binned error of the true rates + hidden, on rows and on cells, near it for some."""
    rng = np.random.default_rng(41)
    tightest = 0.0
    for _ in range(100):
        s, slope = np.sort(rng.random(60)), float(rng.choice([1.0, 4.0]))
        moves = slope * np.diff(s) * rng.choice([1.0, rng.choice([-1.0, 1.0])], 59)
        eta = np.clip(1.0 - np.r_[0.0, np.cumsum(moves)], 0, 1)
        for table in (ScoreTable(np.zeros(60), s), CellTable(9).update(np.zeros(60), s)):
            cells = table.cells()
            cuts = buckets.cuts_of(cells.lo, int(rng.integers(1, 9)))
            edges = np.concatenate([[0], np.cumsum(cells.n)])[cuts]
            binned = sum(abs((s - eta)[a:b].sum()) for a, b in itertools.pairwise(edges)) / 60
            hidden = buckets.hidden(table, cuts, slope)
            assert np.abs(s - eta).mean() <= binned + hidden + 1e-9
            tightest = max(tightest, (np.abs(s - eta).mean() - binned) / hidden)
    assert tightest > 0.3


def test_buckets_of_cells() -> None:
    rng = np.random.default_rng(42)
    s = rng.random(50_000)
    y = rng.random(50_000) < s
    rows, cells = (
        certify(table, method="buckets", lipschitz=1, side="upper").upper
        for table in (ScoreTable(y, s), CellTable().update(y, s))
    )
    assert rows == pytest.approx(cells, rel=1e-3)


def test_buckets_see_no_labels() -> None:
    rng = np.random.default_rng(43)
    s = rng.beta(1, 5, 2000)
    labellings = (np.zeros(2000), np.ones(2000), rng.random(2000) < s, s > 0.2)
    seen = [certify(y, s, method="buckets", lipschitz=1, side="upper") for y in labellings]
    assert len({(c.n_bins, c.terms["bias"], c.terms["deviation"]) for c in seen}) == 1


# --- coverage


def jump(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = rng.random(n)
    return (rng.random(n) < (s > 0.5)).astype(float), s, 0.25


def upside_down(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = rng.random(n)
    return (rng.random(n) < 1.0 - s).astype(float), s, 0.5


def two_atoms(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = rng.choice([0.4, 0.6], n)
    return (rng.random(n) < np.where(s == 0.4, 0.6, 0.4)).astype(float), s, 0.2


def never(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = 0.8 + 0.2 * rng.random(n)
    return np.zeros(n), s, 0.9


@pytest.mark.parametrize("world", [jump, upside_down, two_atoms, never], ids=lambda w: w.__name__)
def test_tv_covers(world) -> None:
    """Bounds of a few thousand rows, so that they are below 1: the deepest penalty is not on trial here."""
    rng = np.random.default_rng(10)
    runs, delta, misses = 60, 0.3, 0
    for _ in range(runs):
        y, s, error = world(rng, 600)
        misses += certify(y, s, delta=delta, side="upper", method="tv").upper < error
    assert misses <= allowed_misses(runs, delta)


def wave(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    """eta swings around the diagonal with slope 3, at about the noise of a window."""
    s = rng.random(n)
    eta = np.clip(s + 0.1 * np.sin(20 * s), 0, 1)
    grid = (np.arange(100_000) + 0.5) / 100_000
    error = np.abs(np.clip(grid + 0.1 * np.sin(20 * grid), 0, 1) - grid).mean()
    return (rng.random(n) < eta).astype(float), s, float(error)


@pytest.mark.parametrize("method", ["nw", "nw-folds", "buckets"])
@pytest.mark.parametrize("world", [upside_down, two_atoms, never, wave], ids=lambda w: w.__name__)
def test_windows_and_buckets_cover(world, method: str) -> None:
    rng = np.random.default_rng(30)
    runs, delta, misses = 150, 0.3, 0
    slope = {"two_atoms": 50.0, "wave": 3.0}.get(world.__name__, 1.0)  # two atoms: windows of one score
    for _ in range(runs):
        y, s, error = world(rng, 300)
        misses += (
            certify(y, s, delta=delta, side="upper", method=method, lipschitz=slope).upper < error - 1e-12
        )
    assert misses <= allowed_misses(runs, delta)


# --- what may be given, and what is printed


def test_what_tv_assumes() -> None:
    rng = np.random.default_rng(11)
    s = rng.random(500)
    y = rng.random(500) < s
    default = certify(y, s, method="tv")
    assert default.assumption.startswith("eta, the true rate by score, has total variation <= 1")
    assert default.to_dict() == certify(y, s, method="tv", variation=1).to_dict()
    steep = certify(y, s, method="tv", lipschitz=2)
    assert steep.assumption == "eta, the true rate by score, is 2-Lipschitz"
    assert steep.terms == certify(y, s, method="tv", variation=2).terms
    soft = certify(y, s, method="tv", perturbed=0.25)
    assert "must perturb its scores too" in soft.assumption
    assert soft.terms == steep.terms
    with pytest.raises(ValueError, match=r"^lipschitz must be left out beside variation"):
        certify(y, s, method="tv", variation=1, lipschitz=1)
    with pytest.raises(ValueError, match=r"^variation must be finite"):
        certify(y, s, method="tv", variation=math.inf)


@pytest.mark.parametrize("method", ["nw", "nw-folds", "buckets"])
def test_what_windows_and_buckets_assume(method: str) -> None:
    rng = np.random.default_rng(14)
    s = rng.random(300)
    y = rng.random(300) < s
    with pytest.raises(ValueError, match=r"^lipschitz or perturbed must be given: method='"):
        certify(y, s, method=method)
    with pytest.raises(
        ValueError, match=r"^variation must be left out: method='.*' uses lipschitz or perturbed"
    ):
        certify(y, s, method=method, variation=1)
    with pytest.raises(ValueError, match=r"^lipschitz must be finite"):
        certify(y, s, method=method, lipschitz=math.inf)
    assert (
        certify(y, s, method=method, lipschitz=3).assumption == "eta, the true rate by score, is 3-Lipschitz"
    )
    if method == "buckets":
        with pytest.raises(ValueError, match=r"^perturbed must be left out beside lipschitz"):
            certify(y, s, method=method, lipschitz=3, perturbed=0.1)
        assert "must perturb its scores too" in certify(y, s, method=method, perturbed=0.1).assumption
        return
    both = certify(y, s, method=method, lipschitz=3, perturbed=0.1).assumption
    assert "3-Lipschitz; scores are perturbed with the sech law of width 0.1" in both
    assert "must perturb its scores too" in both


@pytest.mark.parametrize("method", ["tv", "nw", "nw-folds"])
def test_a_cell_table_has_no_rows_to_split(method: str) -> None:
    table = CellTable().update([0, 1], [0.2, 0.7])
    with pytest.raises(
        ValueError, match=r"^y_true must hold single rows .*ScoreTable, or use method='auto'$"
    ):
        certify(table, method=method, lipschitz=1)


def test_more_than_a_million_rows_are_kept() -> None:
    n = 1_000_001
    s = (np.arange(n) + 0.5) / n
    assert certify(np.arange(n) % 2, s, method="tv", n_folds=2).table == "sorted scores"


@pytest.mark.parametrize("method", ["tv", "nw", "nw-folds", "buckets"])
def test_ends_share_delta(method: str) -> None:
    rng = np.random.default_rng(12)
    s = rng.random(3000)
    y = rng.random(3000) < s**3
    how = {"method": method} | ({} if method == "tv" else {"lipschitz": 3})
    both = certify(y, s, delta=0.1, **how)
    assert both.lower == certify(y, s, delta=0.1).lower > 0.0
    upper = certify(y, s, side="upper", delta=0.075, **how)
    near = (
        {"abs": 3e-4} if method == "nw" else {"rel": 1e-12}
    )  # its Brier score is bounded at a share of delta
    assert upper.terms == pytest.approx(both.terms, **near)
    assert certify(y, s, side="lower", **how).terms == {}


SEEDED = {
    "tv": {"method": "tv", "n_folds": 2},
    "nw-folds": {"method": "nw-folds", "n_folds": 2, "lipschitz": 1},
    "groups": {"groups": np.repeat(np.arange(500), 2)},
}


@pytest.mark.parametrize("options", SEEDED.values(), ids=SEEDED.keys())
def test_draws_are_not_those_of_the_user(monkeypatch, options) -> None:
    """Scores from default_rng(0) and rng=0: the fold, or the row kept, says nothing about the score.

    With equal streams rows of low scores could be in one fold. Ranks are compared at 1e-6, and streams too.
    """
    n = 1000
    users = np.random.default_rng(0).random(20)
    s = np.random.default_rng(0).random(n)
    y = np.random.default_rng(0).random(n) < s
    drawn: list[NDArray] = []
    for module, name in ((folds_of, "draw_folds"), (certificates._validate, "group_rows")):
        original = getattr(module, name)

        def spy(*given, original=original):
            assert not np.any(copy.deepcopy(given[2]).random(20) == users)
            drawn.append(original(*given))
            return drawn[-1]

        monkeypatch.setattr(module, name, spy)
    certify(y, s, rng=0, **options)
    (draw,) = drawn
    chosen = np.isin(np.arange(n), draw) if "groups" in options else draw == 0
    values = s if "groups" in options else np.sort(s)
    assert stats.mannwhitneyu(values[chosen], values[~chosen]).pvalue > 1e-6
    assert 0.45 < values[chosen].mean() < 0.55


def test_perturbing_is_not_the_users_draw() -> None:
    """Scores and draws from seed 0: the move of a score is not a function of the score."""
    s = 0.3 + 0.4 * np.random.default_rng(0).random(2000)
    moved = perturb(s, 2.0**-7, rng=0) - s
    assert abs(stats.spearmanr(s, moved).statistic) < 6 / math.sqrt(2000)
    loss = auroc_loss(np.arange(2000) % 2, s, 2.0**-7, n_draws=2, rng=0)
    assert loss.loss < 0.01


def test_the_same_call_gives_the_same_interval() -> None:
    rng = np.random.default_rng(13)
    s = rng.random(300)
    y = rng.random(300) < s
    base = certify(y, s, method="tv")
    assert certify(y, s, method="tv", rng=0).to_dict() == base.to_dict()
    assert certify(y, s, method="tv", rng=1).to_dict() != base.to_dict()
    order = rng.permutation(300)
    assert certify(y[order], s[order], method="tv").to_dict() == base.to_dict()


SCORES = st.one_of(
    st.lists(st.floats(0, 1), min_size=1, max_size=60),
    st.lists(
        st.sampled_from([0.0, 5e-324, 1e-300, 0.1, 0.1 + 2**-56, 0.5, 1 - 2**-53, 1.0]),
        min_size=1,
        max_size=60,
    ),
)


@settings(max_examples=60)
@given(
    scores=SCORES,
    labels=st.randoms(use_true_random=False),
    delta=st.sampled_from([1e-300, 0.05, 1 - 2**-53]),
    how=st.sampled_from(
        [
            {"method": "tv"},
            {"method": "tv", "variation": 0.0, "n_folds": 2},
            {"method": "tv", "variation": 1e300, "n_folds": 2**50},
            {"method": "buckets", "lipschitz": 0},
            {"method": "buckets", "lipschitz": 1e300},
            {"method": "nw", "lipschitz": 0},
            {"method": "nw", "lipschitz": 40.0},
            {"method": "nw", "lipschitz": 1e300},
            {"method": "nw-folds", "lipschitz": 1.0, "n_folds": 2},
            {"method": "nw-folds", "lipschitz": 1e-300, "n_folds": 100},
        ]
    ),
)
def test_every_input_has_a_sound_certificate(scores, labels, delta, how) -> None:
    y = [labels.randrange(2) for _ in scores]
    for side in ("both", "upper", "lower"):
        c = certify(y, scores, side=side, delta=delta, **how)
        assert 0.0 <= c.lower <= c.upper <= 1.0
        assert all(math.isfinite(value) for value in c.terms.values())
        if c.terms:
            assert min(1.0, sum(c.terms.values())) == pytest.approx(c.upper, abs=1e-12)


# --- which scores cannot have been perturbed: THEORY 4.1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("h", [2.0**-12, 2.0**-6, 0.25])
def test_perturbed_scores_are_never_refused(dtype: type, h: float) -> None:
    """A million of them, though the classifier has few scores, or one; in rows and in cells."""
    rng = np.random.default_rng(50)
    for t in (rng.integers(0, 5, 1_000_000) / 4, np.zeros(1_000_000)):
        s = perturb(t, h, rng=rng).astype(dtype)
        zeros = np.zeros(s.size, np.uint8)
        assert why_not_perturbed(ScoreTable(zeros, s), h) == ""
        assert why_not_perturbed(CellTable().update(zeros, s), h) == ""


VOTES = {
    "votes of 8": lambda s: np.round(s * 8) / 8,
    "votes of 8, never 0 or 8": lambda s: (np.floor(s * 7) + 1) / 8,
    "two decimals": lambda s: np.round(s, 2),
    "four decimals": lambda s: np.round(s, 4),
    "every row twice": lambda s: np.r_[s[::2], s[::2]],
    "clipped": lambda s: np.clip(1.2 * s - 0.1, 0.0, 1.0),
    "one atom among others": lambda s: np.where(np.arange(s.size) % 4, s, 0.5),
}


@pytest.mark.parametrize("rounded", VOTES.values(), ids=VOTES.keys())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_that_were_not_perturbed_are_refused(rounded, dtype: type) -> None:
    rng = np.random.default_rng(51)
    s = rounded(rng.random(20_000)).astype(dtype)
    y = rng.random(20_000) < s
    with pytest.raises(ValueError, match=r"^perturbed must be left out: .*rounding.*state its variation$"):
        certify(y, s, perturbed=2.0**-4)
    with pytest.raises(ValueError, match=r"^perturbed must be left out"):
        certify(y, s, perturbed=2.0**-4, method="nw")
    assert certify(y, s, lipschitz=8.0).upper <= 1.0


@pytest.mark.parametrize("h", [2.0**-12, 0.25])
def test_half_precision_is_too_coarse(h: float) -> None:
    """Where the spacing doubles, eta of rounded scores is less smooth."""
    s = perturb(np.random.default_rng(53).random(5_000), h, rng=1)
    assert certify(s < 0.5, s.astype(np.float32), perturbed=h).n == 5_000
    with pytest.raises(ValueError, match="rounding to float32"):
        certify(s < 0.5, s.astype(np.float16), perturbed=h)


def test_cells_are_judged_by_what_they_keep() -> None:
    rng = np.random.default_rng(52)
    s = rng.integers(0, 9, 20_000) / 8
    y = rng.random(20_000) < s
    with pytest.raises(
        ValueError, match=r"^perturbed must be left out: \d+ of 20000 scores are exactly 0 or 1"
    ):
        certify(CellTable().update(y, s), perturbed=0.1)
    blurred = rng.integers(1, 8, s.size) / 8 + rng.normal(0, 1e-9, s.size)
    assert certify(CellTable().update(y, blurred), perturbed=0.1).upper <= 1.0


def test_one_score_too_often_among_many_ties() -> None:
    """100,000 float32 scores repeat each other some 570 times by chance: 40 rows of one score hide there."""
    s = perturb(np.full(100_000, 0.5), 0.25, rng=54).astype(np.float32)
    s[:40] = s[0]
    found = why_not_perturbed(ScoreTable(np.zeros(100_000), s), 0.25)
    assert found.startswith("one score is that of 40 of 100000 rows")


def test_largest_density_of_perturbed_scores() -> None:
    """1 / (h Z) with Z the mass of the sech law in [0, 1], the least at t = 0 and t = 1: gd(1 / h)."""
    for h in (0.01, 0.3, 4.0):
        s = np.linspace(0, 1, 100_001)
        masses = [np.trapezoid(1 / np.cosh((t - s) / h), s) / h for t in (0.0, 0.2, 0.5, 1.0)]
        least = 2 * math.atan(math.tanh(0.5 / h))
        assert min(masses) == pytest.approx(least, rel=1e-5)
        assert masses[0] == pytest.approx(min(masses), rel=1e-12)


def test_counts_that_chance_explains_are_let_pass() -> None:
    """Exact Poisson tails: what is refused has a probability of at most e^-nats, and not far below."""
    for mean in (1e-6, 0.1, 5.0, 3000.0):
        for nats in (3.0, 21.0):
            first = next(k for k in range(1, 10_000) if perturbed._exceeds(k, mean, nats))
            assert stats.poisson.sf(first - 1, mean) <= math.exp(-nats)
            assert stats.poisson.sf(first - 1, mean) >= math.exp(-nats - 20.0)
            assert not perturbed._exceeds(int(mean), mean, nats)


@pytest.mark.parametrize("h", [5e-324, 1e-300, 1e300])
def test_any_width_is_judged(h: float) -> None:
    assert why_not_perturbed(ScoreTable([0, 1], [0.25, 0.75]), h) == ""


@pytest.mark.parametrize("method", ["tv", "nw", "nw-folds", "buckets"])
@pytest.mark.parametrize("assumed", [{"lipschitz": 1e308}, {"perturbed": 5e-324}, {"variation": 1e308}])
def test_assumptions_as_good_as_none_leave_finite_terms(method: str, assumed: dict[str, float]) -> None:
    if method != "tv" and "variation" in assumed:
        return
    found = certify([0, 1], [0.2, 0.9], method=method, side="upper", **assumed)
    assert found.upper == 1.0
    json.dumps(found.to_dict(), allow_nan=False)
