"""The steps of calcore/THEORY.md one by one: first the mathematics, without calcore, then calcore against it.

Inequalities are checked by exact enumeration or on grids; a tolerance of 1e-12 allows for rounding of numbers
of order 1. Numbers under PUBLISHED come from an independent implementation.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import linprog

from calcore.bounds import kl_lower, kl_upper
from calcore.certificates.bins import Running
from calcore.certificates.deviation import bernstein, signs, sub_gaussian
from calcore.certificates.lower import binned_lower
from calcore.kernels.oscillation import budgeted_error, capped_error
from calcore.table import ScoreTable

Floats = NDArray[np.float64]
ROUNDING = 1e-12

T = np.geomspace(1e-3, 4.0, 60)
UNIT = np.linspace(0.0, 1.0, 101)
probabilities = st.floats(0.0, 1.0)


def label_vectors(n: int) -> Floats:
    """All 2^n label vectors, one a row."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def law_of_labels(labels: Floats, eta: Floats) -> Floats:
    """Probability of each label vector."""
    law: Floats = np.prod(np.where(labels == 1.0, eta, 1.0 - eta), axis=1)
    return law


def random_bins(rng: np.random.Generator, n: int) -> list[NDArray[np.intp]]:
    """A random partition of range(n) into runs."""
    inside = np.flatnonzero(rng.random(n - 1) < 0.4) + 1
    return np.split(np.arange(n), inside)


# --- THEORY 0.2: the tools ----------------------------------------------------------------------------------


def test_hoeffding_and_bennett_for_one_label() -> None:
    """E exp(t w eps) for every probability, weight in [-1, 1] and t."""
    t, w, eta = np.meshgrid(T, np.linspace(-1.0, 1.0, 41), UNIT, indexing="ij")
    exact = eta * np.exp(t * w * (1.0 - eta)) + (1.0 - eta) * np.exp(-t * w * eta)
    assert np.all(exact <= np.exp(t * t * w * w / 8.0) * (1.0 + ROUNDING))
    assert np.all(exact <= np.exp((np.expm1(t) - t) * eta * (1.0 - eta)) * (1.0 + ROUNDING))


def test_variance_of_a_tilted_label_is_the_quadratic_form_of_deviation_a() -> None:
    """ln E exp(t (x - r)) <= t^2 v(x) / 2 with v = x (1 - x) up to 1/2, then 1/4."""
    t, x = np.meshgrid(T, UNIT, indexing="ij")
    exact = t * x + np.log1p(x * np.expm1(-t))
    v = np.where(x <= 0.5, x * (1.0 - x), 0.25)
    assert np.all(exact <= t * t * v / 2.0 + ROUNDING)
    assert np.all(v <= np.minimum(x, 0.25))


def test_doob_differences_give_hoeffding_and_bennett_for_the_binned_error() -> None:
    """E exp(t (T - E T)) for T = sum |A_B|, over all label vectors."""
    rng = np.random.default_rng([3, 1])
    for n in (1, 3, 6, 9):
        labels = label_vectors(n)
        for _ in range(25):
            s, eta = np.sort(rng.random(n)), rng.random(n) ** rng.choice([0.2, 1.0, 5.0])
            law = law_of_labels(labels, eta)
            total = sum(np.abs((s[b] - labels[:, b]).sum(axis=1)) for b in random_bins(rng, n))
            centred = total - law @ total
            variance = float(np.sum(eta * (1.0 - eta)))
            for t in (0.05, 0.3, 1.0, 3.0):
                exact = law @ np.exp(t * centred)
                assert exact <= math.exp(t * t * n / 8.0) * (1.0 + ROUNDING)
                assert exact <= math.exp(oracles.phi(t) * variance) * (1.0 + ROUNDING)


@pytest.mark.parametrize("n", [1, 2, 10, 75])
@pytest.mark.parametrize("nats", [0.5, 3.0, 6.0])
def test_kl_ends_against_binomial_tails(n: int, nats: float) -> None:
    """P(mu outside) <= e^-nats on either side, for labels, the worst case of variables in [0, 1]."""
    k = np.arange(n + 1)
    above = np.array([kl_upper(j / n, nats / n) for j in k])
    below = np.array([kl_lower(j / n, nats / n) for j in k])
    for mu in np.linspace(0.0, 1.0, 201):
        law = stats.binom.pmf(k, n, mu)
        assert law @ (above < mu) <= math.exp(-nats) + ROUNDING
        assert law @ (below > mu) <= math.exp(-nats) + ROUNDING


# --- THEORY 1.1: the sign lemma -----------------------------------------------------------------------------


def test_sign_lemma_for_bin_means_over_all_labels() -> None:
    """sum |s - eta| <= sum |s - ybar| + sum |eta - etabar| + <w, eps>; w in [-1, 1], +-1 at atoms."""
    rng = np.random.default_rng([3, 2])
    for n in (2, 5, 8):
        labels = label_vectors(n)
        for _ in range(40):
            s, eta = np.sort(rng.integers(0, 6, n) / 5.0), rng.random(n)
            bins = random_bins(rng, n)
            average = np.zeros((n, n))
            for b in bins:
                average[np.ix_(b, b)] = 1.0 / b.size
            sign = np.where(s >= average @ eta, 1.0, -1.0)
            weights = average.T @ sign
            right = (
                np.abs(s - labels @ average.T).sum(axis=1)
                + np.abs(eta - average @ eta).sum()
                + (labels - eta) @ weights
            )
            assert np.all(np.abs(s - eta).sum() <= right + ROUNDING)
            assert np.all(np.abs(weights) <= 1.0 + ROUNDING)
            assert weights @ weights <= n + ROUNDING
            for b in bins:
                if np.ptp(s[b]) == 0.0:
                    np.testing.assert_allclose(np.abs(weights[b]), 1.0, rtol=0, atol=ROUNDING)


# --- THEORY 1.2: the deviations -----------------------------------------------------------------------------


def test_row_step_of_deviation_b_and_its_constant() -> None:
    """exp(-t r + phi v) <= 1 - t r + c phi (v + r^2), c = (e^V - 1) / V, V = phi / 4.

    Equality at r = 0, v = 1/4.
    """
    t, r, v = np.meshgrid(T, UNIT, np.linspace(0.0, 0.25, 26), indexing="ij")
    phi = np.expm1(t) - t
    c = np.expm1(phi / 4.0) / (phi / 4.0)
    left, right = np.exp(-t * r + phi * v), 1.0 - t * r + c * phi * (v + r * r)
    assert np.all(left <= right * (1.0 + ROUNDING))
    np.testing.assert_allclose(left[:, 0, -1], right[:, 0, -1], rtol=ROUNDING)
    assert np.all(c <= np.exp(phi / 4.0) * (1.0 + phi / 8.0))


def test_row_step_of_the_lower_bound_and_its_constant() -> None:
    """exp(t r + phi v) <= 1 + t r + c phi (v + r^2), c = e^(phi/4) (1 + t/4); without (1 + t/4) it fails."""
    t, r, v = np.meshgrid(T, UNIT, np.linspace(0.0, 0.25, 26), indexing="ij")
    phi = np.expm1(t) - t
    left = np.exp(t * r + phi * v)
    flat = np.exp(phi / 4.0) * phi * (v + r * r)
    assert np.all(left <= (1.0 + t * r + (1.0 + t / 4.0) * flat) * (1.0 + ROUNDING))
    feasible = v <= np.where(r > 0.5, r * (1.0 - r), 0.25)
    assert np.any((left > 1.0 + t * r + flat) & feasible)


@given(
    mass=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
    scores=st.lists(probabilities, min_size=3, max_size=3),
    eta=st.lists(probabilities, min_size=3, max_size=3),
    sign=st.lists(st.sampled_from([-1.0, 1.0]), min_size=3, max_size=3),
    t=st.floats(0.01, 4.0),
)
def test_mgf_of_one_row_of_a_small_population(
    mass: list[float], scores: list[float], eta: list[float], sign: list[float], t: float
) -> None:
    """E exp(t (w eps + CE - |r|)) and E exp(t (w eps + |r| - CE)), exactly, against (a), (b) and 3.1."""
    m, s, e, w = np.array(mass) / np.sum(mass), np.array(scores), np.array(eta), np.array(sign)
    r, var = np.abs(s - e), e * (1.0 - e)
    x, brier = float(m @ r), float(m @ (r * r + var))
    noise = e * np.exp(t * w * (1.0 - e)) + (1.0 - e) * np.exp(-t * w * e)
    above = math.log(m @ (np.exp(t * (x - r)) * noise))
    below = math.log(m @ (np.exp(t * (r - x)) * noise))
    phi = oracles.phi(t)
    assert above <= oracles.log_mgf_a(t, x) + ROUNDING
    assert above <= oracles.log_mgf_b(t, x, brier) + ROUNDING
    assert below <= t * t / 8.0 - t * x + math.log1p(x * math.expm1(t)) + ROUNDING
    assert below <= math.log1p(t * x + phi * math.exp(phi / 4.0) * (1.0 + t / 4.0) * brier) - t * x + ROUNDING


def centred_sum_tail(eta: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Values y of sum w (Y - eta), w = +-1, and P(sum >= y)."""
    success = np.where(w > 0.0, eta, 1.0 - eta)
    law = oracles.poisson_binomial(success.tolist())
    return np.arange(law.size) - success.sum(), np.cumsum(law[::-1])[::-1]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 40, 200])
def test_gaussian_tail_of_sums_of_signed_labels(n: int) -> None:
    """Hoeffding 1956, Zubkov-Serov 2013: P(Z >= y) <= normal tail at 2 (y - 1) / sqrt(n) for y >= 1."""
    rng = np.random.default_rng([3, 3, n])
    cases = [np.full(n, p) for p in (0.001, 0.05, 0.3, 0.5, 0.77, 0.999)]
    cases += [rng.random(n) ** power for power in (0.2, 1.0, 4.0)]
    cases += [rng.choice([0.0, 0.5, 1.0], n)]
    for eta in cases:
        for w in (np.ones(n), -np.ones(n), rng.choice([-1.0, 1.0], n)):
            y, tail = centred_sum_tail(eta, w)
            use = y >= 1.0
            assert np.all(tail[use] <= stats.norm.sf(2.0 * (y[use] - 1.0) / math.sqrt(n)) + ROUNDING)


def test_gaussian_tail_needs_its_lattice_term() -> None:
    """One fair label: P(Z >= 1/2) = 1/2, above the normal tail at 1."""
    y, tail = centred_sum_tail(np.array([0.5]), np.ones(1))
    assert tail[1] == 0.5
    assert tail[1] > stats.norm.sf(2.0 * y[1])


def test_zubkov_serov_for_the_binomial() -> None:
    for n in (1, 2, 5, 30, 300):
        for p in (0.003, 0.2, 0.5, 0.9):
            for k in range(n):
                q = k / n
                root = math.copysign(math.sqrt(2.0 * n * oracles.bernoulli_kl(q, p)), q - p)
                assert stats.binom.cdf(k, n, p) >= stats.norm.cdf(root) - ROUNDING


def test_exponential_majorant_of_the_capped_gaussian_tail() -> None:
    """min(1, tail) <= C exp(-t u), C = exp(max(0, ln tail(u_t) + t u_t)), and C cannot be smaller."""
    u = np.linspace(-8.0, 12.0, 20_001)
    capped = np.where(u < 0.0, 1.0, stats.norm.sf(u))
    for x in np.linspace(-3.0, 6.0, 37):
        t = stats.norm.pdf(x) / stats.norm.sf(x)
        log_c = max(0.0, stats.norm.logsf(x) + t * x)
        excess = np.log(capped) + t * u - log_c
        assert excess.max() <= ROUNDING
        assert excess.max() >= -0.001 * t  # the step of u is 0.001


# --- THEORY 1.3 and 1.4: oscillation ------------------------------------------------------------------------


def worst_mean_gap(p: float, c: float, o: float) -> float:
    """F(p; c, o) as a linear program for each lower end of the range: mean p on 241 points, most E|c - X|."""
    best = 0.0
    for low in np.linspace(max(0.0, p - o), min(p, 1.0 - o), 61):
        x = np.linspace(low, low + o, 41)
        x = np.append(x, np.clip(p, low, low + o))
        found = linprog(-np.abs(c - x), A_eq=[np.ones_like(x), x], b_eq=[1.0, p], method="highs")
        if found.status == 0:
            best = max(best, -found.fun)
    return best


@pytest.mark.parametrize(
    ("p", "c", "o"),
    [
        (0.1, 0.12, 0.05),
        (0.1, 0.12, 0.15),
        (0.02, 0.01, 0.5),
        (0.9, 0.95, 0.3),
        (0.5, 0.5, 1.0),
        (0.3, 0.6, 0.2),
    ],
)
def test_capped_error_against_linear_programs(p: float, c: float, o: float) -> None:
    found = worst_mean_gap(p, c, o)
    # The best lower end lies within half a step of the grid, where F varies by at most o/120.
    assert found <= capped_error(p, c, o) + 1e-9
    assert found >= capped_error(p, c, o) - 1e-3


two_points = st.tuples(probabilities, probabilities, probabilities)


@given(two_points, probabilities)
@settings(max_examples=300)
def test_capped_error_is_never_below_two_point_laws(law: tuple[float, float, float], c: float) -> None:
    a, b, mass = law
    p, o = (1.0 - mass) * a + mass * b, abs(b - a)
    gap = (1.0 - mass) * abs(c - a) + mass * abs(c - b)
    assert capped_error(min(p, 1.0), c, o) >= gap - ROUNDING


def test_capped_error_is_convex_lipschitz_and_increasing() -> None:
    p = np.linspace(0.0, 1.0, 401)
    for c in (0.0, 0.003, 0.2, 0.5, 0.85, 1.0):
        previous = np.zeros_like(p)
        for o in (0.0, 0.01, 0.1, 0.4, 0.7, 1.0):
            f = np.array([capped_error(q, c, o) for q in p])
            slope = np.diff(f) / np.diff(p)
            assert np.all(np.abs(slope) <= 1.0 + 1e-9)
            assert np.all(np.diff(slope) >= -1e-9)
            assert np.all(f >= previous - ROUNDING)
            previous = f


def test_sign_lemma_for_form_two_over_all_labels() -> None:
    """n F(etabar) <= n F(ybar) - F'(etabar) sum eps in a bin, with a difference quotient of F for F'."""
    rng = np.random.default_rng([3, 4])
    labels = label_vectors(7)
    for _ in range(200):
        eta, c, o = rng.random(7) ** 3, float(rng.random() ** 2), float(rng.random())
        p = float(eta.mean())
        step = 1e-7
        slope = (capped_error(p + step, c, o) - capped_error(p - step, c, o)) / (2.0 * step)
        right = [7.0 * capped_error(float(y.mean()), c, o) - slope * float((y - eta).sum()) for y in labels]
        assert 7.0 * capped_error(p, c, o) <= min(right) + 1e-5  # F' is Lipschitz with constant 1/o at most


def test_mean_absolute_deviation_is_at_most_half_the_range() -> None:
    """The bias of form 1 in one bin, and that an even bin split in two attains it."""
    rng = np.random.default_rng([3, 6])
    for _ in range(200):
        eta = rng.random(int(rng.integers(1, 12))) ** 2
        assert np.abs(eta - eta.mean()).mean() <= 0.5 * np.ptp(eta) + ROUNDING
    assert np.abs(np.array([0, 0, 1, 1]) - 0.5).mean() == 0.5


def test_form_two_dual_is_the_concave_envelope() -> None:
    """Lagrange dual of the budget against a linear program over mixtures of oscillations on a grid."""
    rng = np.random.default_rng([3, 7])
    grid = np.linspace(0.0, 1.0, 401)
    for scale in (1.0, 0.05):
        for variation in (0.4, 1.0, 2.2):
            b = 4
            weight = rng.integers(1, 50, b).astype(np.float64)
            center, rate = scale * rng.random(b), scale * rng.random(b)
            cap = np.array([1.0, 1.0, 0.0, 0.6])
            gain = np.array(
                [
                    [w * capped_error(p, c, o) for o in grid]
                    for w, p, c in zip(weight, rate, center, strict=True)
                ]
            )
            gain[grid[None, :] > cap[:, None] + 1e-12] = -1e9
            found = linprog(
                -gain.ravel(),
                A_ub=[np.tile(grid, b)],
                b_ub=[variation],
                A_eq=np.kron(np.eye(b), np.ones(grid.size)),
                b_eq=np.ones(b),
                method="highs",
            )
            ours = budgeted_error(rate, center, weight, cap, variation, 1e-9)
            assert ours >= -found.fun - 1e-9 * weight.sum()
            assert (
                ours <= -found.fun + 1e-4 * weight.sum()
            )  # the grid's step, squared, times a curvature of order 1/scale


# --- THEORY 1.5: Lipschitz ----------------------------------------------------------------------------------


def test_lipschitz_bias_against_every_extreme_function() -> None:
    """sum |eta - mean| over all eta with slopes +-1 between neighbours: at most n GMD, but not at most d."""
    rng = np.random.default_rng([3, 8])
    exceeded = 0
    for _ in range(60):
        n = int(rng.integers(2, 9))
        s = np.sort(rng.choice([rng.random(n), np.round(rng.random(n) * 2.0) / 2.0]))
        slopes = np.array(list(itertools.product((-1.0, 1.0), repeat=n - 1)))
        eta = np.cumsum(np.column_stack((np.zeros(len(slopes)), slopes * np.diff(s))), axis=1)
        worst = np.abs(eta - eta.mean(axis=1, keepdims=True)).sum(axis=1).max()
        assert worst <= np.abs(s[:, None] - s[None, :]).sum() / n + ROUNDING
        exceeded += worst > np.abs(s - s.mean()).sum() + 1e-9
    s = np.repeat([0.0, 0.5, 1.0], [1, 8, 1])
    eta = np.abs(s - 0.5)
    assert np.abs(eta - eta.mean()).sum() > np.abs(s - s.mean()).sum()


def test_perturbed_scores_have_slope_at_most_half_the_inverse_width() -> None:
    """|eta'| <= 1 / (2 h) for the sech law, nearly attained by two far groups of opposite labels."""
    rng = np.random.default_rng([3, 9])
    s = np.linspace(0.0, 1.0, 20_001)
    steepest = 0.0
    for h in (0.02, 0.1, 0.5):
        for j in range(12):
            t, eta, mass = (np.array([0.3, 0.7]), np.array([0.0, 1.0]), np.array([0.5, 0.5]))
            if j:
                t, eta, mass = rng.random(5), rng.random(5), rng.random(5)
            normaliser = np.array([np.trapezoid(1.0 / np.cosh((a - s) / h), s) for a in t])
            kernel = mass / normaliser / np.cosh((t - s[:, None]) / h)
            mixed = kernel @ eta / kernel.sum(axis=1)
            slope = np.abs(np.diff(mixed)).max() * (s.size - 1)
            assert slope <= (1.0 + 1e-6) / (2.0 * h)
            steepest = max(steepest, 2.0 * h * slope)
    assert steepest > 0.999


# --- THEORY 3: lower bounds ---------------------------------------------------------------------------------


@given(st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=10))
@settings(max_examples=300)
def test_noise_of_a_bin_is_at_most_that_of_a_calibrated_one(rows: list[tuple[float, float]]) -> None:
    """E|A_B| - |E A_B| <= E|Bin(n, mean score) - n mean score| <= sqrt(n q) <= sqrt(n) / 2."""
    s, eta = np.array(rows).T
    n, mean = s.size, min(1.0, float(s.mean()))
    counts = np.arange(n + 1)
    noise = oracles.poisson_binomial(eta) @ np.abs(s.sum() - counts) - abs((s - eta).sum())
    calibrated = oracles.poisson_binomial([mean] * n) @ np.abs(s.sum() - counts)
    assert noise <= calibrated + 1e-11
    assert calibrated <= math.sqrt(n * mean * (1.0 - mean)) + 1e-11
    assert calibrated <= math.sqrt(n) / 2.0 + 1e-11


def test_de_moivre_mean_absolute_deviation() -> None:
    for n in (1, 2, 7, 40):
        for p in (Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(6, 7)):
            v = math.floor(n * p) + 1
            closed = 2 * v * math.comb(n, v) * p**v * (1 - p) ** (n - v + 1)
            exact = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) * abs(k - n * p) for k in range(n + 1))
            assert closed == exact


def test_mean_of_the_binned_error_over_all_labels() -> None:
    """E T <= n CE_n + K, exactly; and the signed sums have no K."""
    rng = np.random.default_rng([3, 10])
    labels = label_vectors(8)
    for _ in range(60):
        s, eta = np.sort(rng.random(8)), rng.random(8) ** rng.choice([0.3, 1.0, 6.0])
        law, bins = law_of_labels(labels, eta), random_bins(rng, 8)
        error = np.column_stack([(s[b] - labels[:, b]).sum(axis=1) for b in bins])
        noise = sum(math.sqrt(b.size * s[b].mean() * (1.0 - s[b].mean())) for b in bins)
        assert law @ np.abs(error).sum(axis=1) <= np.abs(s - eta).sum() + noise + ROUNDING
        for sign in itertools.product((-1.0, 1.0), repeat=len(bins)):
            assert law @ (error @ np.array(sign)) <= np.abs(s - eta).sum() + ROUNDING


# --- THEORY 6: cells ----------------------------------------------------------------------------------------


@given(st.lists(probabilities, min_size=1, max_size=12), probabilities)
def test_chord_bound_of_a_cell(scores: list[float], z: float) -> None:
    s = np.array(scores)
    a, b, mean = float(s.min()), float(s.max()), float(s.mean())
    truth = float(np.abs(s - z).sum())
    if a < z < b:
        chord = s.size * ((b - mean) * (z - a) + (mean - a) * (b - z)) / (b - a)
        assert truth <= chord + ROUNDING * s.size
        assert chord <= truth + s.size * (b - a) / 2.0 + ROUNDING * s.size
    else:
        assert truth == pytest.approx(abs(s.sum() - s.size * z), abs=1e-11)


@given(st.lists(probabilities, min_size=2, max_size=12))
def test_pair_sum_bound_of_a_cell(scores: list[float]) -> None:
    s = np.array(scores)
    a, b, mean = float(s.min()), float(s.max()), float(s.mean())
    pairs = float(np.abs(s[:, None] - s[None, :]).sum())
    if b > a:
        assert pairs <= 2.0 * s.size**2 * (b - mean) * (mean - a) / (b - a) + 1e-10


# --- calcore against independent numbers and oracles --------------------------------------------------------

PUBLISHED_KL_UPPER = [
    (0.0, 0.003, 0.00299550449663),
    (0.01, 0.001, 0.0151230456043),
    (0.1, 0.0005, 0.109752901157),
    (0.5, 0.01, 0.570358593457),
    (0.99, 0.001, 0.993819969113),
]
PUBLISHED_KL_LOWER = [
    (0.01, 0.001, 0.00618003088718),
    (0.1, 0.0005, 0.0907802300807),
    (0.5, 0.01, 0.429641406543),
    (0.99, 0.001, 0.984876954396),
]
# base, n, delta, x: the quadratic form of (a), which the closed form improves.
PUBLISHED_A = [
    (0.05, 1000, 0.05, 0.0954976590062),
    (0.02, 10_000, 0.05, 0.0330219663548),
    (0.3, 10_000, 0.005, 0.32301807413),
]
# n, delta, brier, min over t of (phi e^(phi/4) (1 + phi/8) brier + L/n) / t, which (1b) improves.
PUBLISHED_B = [
    (1000, 0.05, 1.0 / 6.0, 0.0326831417261),
    (10_000, 0.05, 1.0 / 6.0, 0.0100955499468),
    (10_000, 0.05, 0.01, 0.00255822973387),
    (100_000, 0.0375, 0.001, 0.000268415979577),
]


@pytest.mark.parametrize(("q", "nats", "p"), PUBLISHED_KL_UPPER)
def test_kl_upper(q: float, nats: float, p: float) -> None:
    assert kl_upper(q, nats) == pytest.approx(p, rel=1e-11)
    assert kl_upper(q, nats) == pytest.approx(oracles.kl_end(q, nats, upper=True), rel=1e-12)


@pytest.mark.parametrize(("q", "nats", "p"), PUBLISHED_KL_LOWER)
def test_kl_lower(q: float, nats: float, p: float) -> None:
    assert kl_lower(q, nats) == pytest.approx(p, rel=1e-11)
    assert kl_lower(q, nats) == pytest.approx(oracles.kl_end(q, nats, upper=False), rel=1e-12)


@given(probabilities, st.floats(1e-12, 30.0))
def test_kl_ends_are_rounded_outwards(q: float, nats: float) -> None:
    """The value returned has a divergence of at least `nats`, or is the end of [0, 1]."""
    up, down = kl_upper(q, nats), kl_lower(q, nats)
    assert up == 1.0 or oracles.bernoulli_kl(q, up) >= nats * (1.0 - 1e-9) - 1e-14
    assert down < 1e-300 or oracles.bernoulli_kl(q, down) >= nats * (1.0 - 1e-9) - 1e-14
    assert down <= q <= up


@pytest.mark.parametrize(("base", "n", "delta", "x"), PUBLISHED_A)
def test_deviation_a(base: float, n: int, delta: float, x: float) -> None:
    nats = math.log(1.0 / delta)
    quadratic = oracles.upper_end(base, lambda z: math.sqrt(2.0 * nats * (0.25 + min(z, 0.25)) / n))
    assert quadratic == pytest.approx(x, rel=1e-11)
    found = base + sub_gaussian(base, n, nats).total
    implicit = oracles.upper_end(
        base,
        lambda z: (
            oracles.least_over_t(lambda t: (oracles.log_mgf_a(t, z) + nats / n) / t) if z < 1.0 else 0.0
        ),
    )
    assert found == pytest.approx(implicit, rel=1e-9)
    assert found <= x


@pytest.mark.parametrize(("n", "delta", "brier", "deviation"), PUBLISHED_B)
@pytest.mark.parametrize("base", [0.0, 0.07])
def test_deviation_b(n: int, delta: float, brier: float, deviation: float, base: float) -> None:
    nats = math.log(1.0 / delta)
    phi = oracles.phi
    plain = oracles.least_over_t(
        lambda t: (phi(t) * math.exp(phi(t) / 4.0) * (1.0 + phi(t) / 8.0) * brier + nats / n) / t
    )
    assert plain == pytest.approx(deviation, rel=1e-10)
    found = bernstein(base, n, nats, brier).total
    implicit = oracles.upper_end(
        base,
        lambda z: oracles.least_over_t(lambda t: (oracles.log_mgf_b(t, z, brier) + nats / n) / t),
    )
    assert base + found == pytest.approx(implicit, rel=1e-9)
    assert found <= deviation * (1.0 + 1e-9)


def test_deviation_c_at_zero_is_the_gaussian_quantile() -> None:
    """Over the sample's scores (c) is 1/n + z / (2 sqrt n), for delta <= .09; above that it is larger."""
    for n in (100, 1000, 10**6):
        for delta in (1e-9, 0.001, 0.05):
            expected = 1.0 / n + stats.norm.isf(delta) / (2.0 * math.sqrt(n))
            assert signs(0.0, n, math.log(1.0 / delta)).sample == pytest.approx(expected, rel=1e-9)
        expected = 1.0 / n + stats.norm.isf(0.3) / (2.0 * math.sqrt(n))
        assert signs(0.0, n, math.log(1.0 / 0.3)).sample >= expected


@pytest.mark.parametrize("base", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("n", [100, 1000, 10**5])
def test_deviation_c_against_its_implicit_form(base: float, n: int) -> None:
    nats = math.log(40.0)
    x = np.linspace(-2.0, 6.0, 40_001)
    tail = stats.norm.logsf(x)
    t = np.exp(stats.norm.logpdf(x) - tail)
    log_c = np.maximum(0.0, tail + t * x)
    tau = 2.0 * t / math.sqrt(n)

    def deviation(z: float) -> float:
        if z >= 1.0:
            return 0.0
        rows = n * (tau * z + np.log1p(z * np.expm1(-tau)))
        return float(np.min(1.0 / n + (nats + log_c + rows) / (n * tau)))

    found, implicit = base + signs(base, n, nats).total, oracles.upper_end(base, deviation)
    assert implicit * (1.0 - 1e-5) <= found <= implicit * (1.0 + ROUNDING)  # the step of x is 0.0002


def partitions(n: int) -> list[int]:
    doubled = {m for m in (2**j for j in range(40)) if m <= min(n // 4, 2 * math.isqrt(n))}
    return sorted(doubled | {min(n // 4, 8 * math.isqrt(n))})


@pytest.mark.parametrize("tau", [0.02, 0.11, 0.6])
@pytest.mark.parametrize("n", [300, 10_000])
def test_lower_bound_of_one_score_value(tau: float, n: int) -> None:
    """T is the same in every partition, so a single bin is best: its price is ln 2."""
    brier, delta = 0.25, 0.04
    table = ScoreTable(np.arange(n) < round(n * 0.2), np.full(n, 0.2 + tau))
    nats = math.log(len(partitions(n)) / delta) + math.log(2.0)
    ours = binned_lower(Running.of(table.cells()), delta, brier)
    assert ours == pytest.approx(oracles.one_step_lower(tau, n, nats, brier), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("period", [1, 16, 64, 256, 1131])
def test_lower_bound_over_partitions(period: int) -> None:
    """Labels that alternate in `period` blocks along distinct scores: each number of bins has its case."""
    n, delta, brier = 20_000, 0.05, 0.3
    s = (np.arange(n) + 0.5) / n
    y = (np.arange(n) * period // n) % 2
    best = 0.0
    for m in partitions(n):
        cuts = np.arange(m + 1) * n // m
        nats, total = math.log(len(partitions(n)) / delta), 0.0
        for a, b in itertools.pairwise(cuts):
            mean = float(s[a:b].mean())
            total += abs(float((s[a:b] - y[a:b]).sum()))
            k = np.arange(b - a + 1)
            noise = float((stats.binom.pmf(k, b - a, mean) * np.abs(k - (b - a) * mean)).sum())
            total -= noise if m > 64 else 0.0
        nats += m * math.log(2.0) if m <= 64 else 0.0
        best = max(best, oracles.one_step_lower(total / n, n, nats, brier))
    assert binned_lower(Running.of(ScoreTable(y, s).cells()), delta, brier) == pytest.approx(best, rel=1e-5)


def classical_lower_bound(s: Floats, y: Floats) -> float:
    """McDiarmid at .9 delta, 8 partitions, noise sqrt(n_B) / 2 a bin, then kl at .1 delta; delta = .05."""
    n, best = s.size, 0.0
    slack = math.sqrt(n * math.log(8.0 / 0.045) / 2.0)
    for m in (2**j for j in range(8)):
        parts = np.array_split(s - y, m)
        total = sum(abs(float(p.sum())) for p in parts)
        best = max(best, total - slack - sum(math.sqrt(p.size) for p in parts) / 2.0)
    return oracles.kl_end(best / n, math.log(1.0 / 0.005) / n, upper=False)


def test_lower_bound_is_above_the_classical_one() -> None:
    """The published example: .0713 there."""
    i = np.arange(1000)
    s = np.array([(j + 0.5) / 1000.0 for j in range(1000)])
    y = ((i * 0.6180339887498949) % 1.0 < s * s).astype(np.float64)
    classical = classical_lower_bound(s, y)
    assert classical == pytest.approx(0.0713448586023, rel=1e-11)
    table = ScoreTable(y, s)
    brier = kl_upper(table.sum_squared_error / 1000.0, math.log(1.0 / 0.0025) / 1000.0)
    assert classical < binned_lower(Running.of(table.cells()), 0.95 * 0.05, brier) < 1.0 / 6.0
