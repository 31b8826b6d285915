"""The inversion: every step of THEORY 2 by itself, then the certificate where it is tight."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest
from numpy.typing import NDArray
from scipy import stats

from calcore import CellTable, ScoreTable, certificates, certify
from calcore.certificates import inversion, plugin
from calcore.certificates.bins import NOTHING, Average, Partitions, Running, Smoothness
from calcore.kernels import inversion as kernel
from calcore.kernels.binning import equal_mass_cuts
from calcore.kernels.oscillation import capped_error

Floats = NDArray[np.float64]
V1 = Smoothness(variation=1.0)


def one(x: float) -> Floats:
    return np.array([float(x)])


def exact_zeta(
    scores: Floats, lam: float, kappa: float, a: float, precision: float = 1e-6, guess: float | None = None
) -> float:
    """`kernel.zetas` of one bin."""
    mean = min(max(scores.sum() / scores.size, scores.min()), scores.max())
    distance = 0.5 * math.sqrt(mean * (1.0 - mean) / scores.size) if guess is None else guess
    spread = np.abs(scores - mean).sum() if scores.max() > scores.min() else 0.0
    columns = (one(scores.size), one(scores.sum()), one(spread), one(scores.min()), one(scores.max()))
    return float(kernel.zetas(*columns, lam, kappa, a, one(distance), precision)[0])


# --- psi


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("n", "c", "lam", "p", "value"),
    [
        (10, 5, 0.3, 0.5, 1.09212192884),
        (10, 3.7, 1.0, 0.5, 1.16659333303),
        (40, 2.2, 0.5, 0.05, 0.977138889506),
        (200, 100, 0.1, 0.5, 4.83780588943),
        (200, 100, 0.1, 0.55, 8.71680518245),
        (1000, 13.5, 0.2, 0.01, 3.43542652657),
        (5000, 2500.5, 0.02, 0.49, 43.9439613396),
    ],
)
def test_psi_of_an_independent_implementation(n: int, c: float, lam: float, p: float, value: float) -> None:
    assert kernel.psi(float(n), float(c), lam, p)[0] == pytest.approx(value, rel=1e-11)


@pytest.mark.kernels
def test_psi_by_full_summation() -> None:
    """Any c in [0, n], whole or not, any p, weak and strong lam."""
    rng = np.random.default_rng(301)
    for _ in range(400):
        n = int(rng.integers(1, 60))
        c = float(rng.integers(0, n + 1)) if rng.random() < 0.3 else float(rng.uniform(0, n))
        lam = 10.0 ** rng.uniform(-3, 1.5)
        p = float(rng.random()) if rng.random() < 0.5 else 10.0 ** rng.uniform(-7, -1)
        if rng.random() < 0.3:
            p = 1.0 - p
        value, slope = kernel.psi(float(n), c, lam, p)
        law = oracles.binomial(n, p)
        assert value == pytest.approx(oracles.psi(law, c, lam), rel=1e-11, abs=1e-11)
        # E[h (K - n p)] / (p q) is the derivative of E h
        h = np.exp(-lam * (np.abs(c - np.arange(n + 1)) - np.abs(c - np.arange(n + 1)).min()))
        tilted = (law * h * (np.arange(n + 1) - n * p)).sum() / (law * h).sum() / (p * (1.0 - p)) / -lam
        assert slope == pytest.approx(tilted, rel=1e-7, abs=1e-7 * n)


@pytest.mark.kernels
@pytest.mark.parametrize(("n", "p", "lam"), [(10**6, 0.3, 1e-3), (10**7, 1e-6, 0.1), (10**8, 0.5, 1e-4)])
def test_psi_of_many_rows_is_that_of_the_limit_law(n: int, p: float, lam: float) -> None:
    """Normal, or Poisson where n p is 10."""
    sd = math.sqrt(n * p * (1 - p))
    k = np.arange(max(0, math.floor(n * p - 10 * sd)), math.ceil(n * p + 10 * sd) + 1)
    law = stats.binom.pmf(k, n, p) if n < 10**8 else stats.norm.pdf(k, n * p, sd)
    for c in (n * p, n * p + 0.7 * sd, n * p - 2 * sd):
        value = -math.log((law * np.exp(-lam * np.abs(c - k))).sum()) / lam
        assert kernel.psi(float(n), c, lam, p)[0] == pytest.approx(value, rel=1e-6)


@pytest.mark.kernels
def test_binomial_probabilities() -> None:
    for n, k, p in [(1, 0, 0.3), (1, 1, 0.3), (5, 2, 1e-9), (60, 31, 0.5), (400, 3, 0.01), (400, 399, 0.999)]:
        log = kernel.log_binomial(float(n), float(k), p)
        assert log == pytest.approx(math.log(oracles.binomial(n, p)[k]), rel=1e-13, abs=1e-12)


def test_psi_is_convex_in_p() -> None:
    """From exact probabilities: a p between two others has a psi below the chord, up to rounding."""
    rng = np.random.default_rng(302)
    grid = np.r_[1e-6, np.linspace(0.01, 0.99, 50), 1 - 1e-6]
    for _ in range(60):
        n = int(rng.integers(1, 40))
        c, lam = float(rng.uniform(0, n)), 10.0 ** rng.uniform(-2, 1.3)
        values = np.array([oracles.psi(oracles.binomial(n, float(p)), c, lam) for p in grid])
        slopes = np.diff(values) / np.diff(grid)
        assert np.all(np.diff(slopes) >= -1e-7 * (1 + np.abs(slopes[1:])))


def test_log_concavity_behind_it() -> None:
    """a_j = E h(K' + j): a_0 a_2 <= a_1^2, from which (E h)'^2 >= E h (E h)''."""
    rng = np.random.default_rng(303)
    for _ in range(300):
        n, p = int(rng.integers(2, 30)), float(rng.random())
        c, lam = rng.uniform(0, n), 10.0 ** rng.uniform(-2, 1)
        h = np.exp(-lam * np.abs(c - np.arange(n + 1)))
        law = oracles.binomial(n - 2, p)
        a = [float(law @ h[j : n - 1 + j]) for j in range(3)]
        assert a[0] * a[2] <= a[1] ** 2 * (1 + 1e-12)
        q = 1 - p
        mean = q * q * a[0] + 2 * p * q * a[1] + p * p * a[2]
        first = n * (q * (a[1] - a[0]) + p * (a[2] - a[1]))
        second = n * (n - 1) * (a[2] - 2 * a[1] + a[0])
        surplus = n * n * (a[1] ** 2 - a[0] * a[2]) + n * mean * (a[2] - 2 * a[1] + a[0])
        assert first**2 - mean * second == pytest.approx(surplus, rel=1e-9, abs=1e-12)
        assert first**2 - mean * second >= -1e-12


# --- zeta


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("n", "s", "lam", "kappa", "a", "value"),
    [
        (40, 0.5, 0.3, 1.5, 0.2, 1.97907095026),
        (200, 0.5, 0.1, 2.0, 0.05, 7.8344073527),
        (200, 0.1, 0.15, 2.0, 0.075, 4.56111486118),
        (1000, 0.02, 0.2, 2.5, 0.08, 6.21822884303),
        (1000, 0.7, 0.05, 1.1, 0.045, 2.69768474513),
    ],
)
def test_zeta_of_an_independent_implementation(
    n: int, s: float, lam: float, kappa: float, a: float, value: float
) -> None:
    """The published numbers have p (1 - p) itself; the chord, which is below it, explains the difference."""
    scores = np.full(n, s)
    spot = np.linspace(-4, 4, 4001) * math.sqrt(s * (1 - s) / n) + s
    points = spot[(spot > 0) & (spot < 1)]
    assert oracles.zeta(scores, lam, kappa, a, points, chord=False) == pytest.approx(value, abs=1e-5)
    ours = exact_zeta(scores, lam, kappa, a)
    assert ours <= value
    assert ours == pytest.approx(oracles.zeta(scores, lam, kappa, a, points, chord=True), abs=1e-4)


@pytest.mark.kernels
def test_zeta_is_the_infimum_and_never_above_it() -> None:
    """Atoms and ranges of scores, narrow and wide, kappa from next to 1 to 20, poor guesses."""
    rng = np.random.default_rng(304)
    for trial in range(150):
        n = int(rng.integers(1, 80))
        scores = np.clip(rng.random() + (rng.random(n) - 0.5) * rng.choice([0.0, 0.01, 0.2, 1.0]), 0, 1)
        if trial % 4 == 0:
            scores = scores**4
        kappa = 1 + 10 ** rng.uniform(-3, 1.3)
        lam = 10 ** rng.uniform(-2, 0.5)
        a = min(0.5, lam / kappa)
        lam = kappa * a
        mean = scores.mean()
        sd = math.sqrt(max(mean * (1 - mean), 1e-9) / n)
        near = mean + np.linspace(-5, 5, 801) * sd
        ends = [
            mean,
            scores.min(),
            scores.max(),
            *np.geomspace(1e-12, 0.5, 60),
            *(1 - np.geomspace(1e-12, 0.5, 60)),
        ]
        points = np.unique(np.r_[near, ends, np.linspace(0, 1, 401)])
        points = points[(points > 0) & (points < 1)]
        least = oracles.zeta(scores, lam, kappa, a, points, chord=True)
        ours = exact_zeta(scores, lam, kappa, a, 1e-3, guess=sd * 10 ** rng.uniform(-2, 1))
        assert ours <= least + 1e-9 * n
        assert ours >= least - 2e-3 * sd * n - 2e-3 * (1 + abs(least))
        assert ours <= oracles.zeta(scores, lam, kappa, a, points, chord=False) + 1e-9 * n


def test_spread_bound() -> None:
    """D(p) is at least the sum of |s - p|, with equality at the mean and at the ends of the scores."""
    rng = np.random.default_rng(305)
    for _ in range(200):
        scores = rng.beta(*rng.uniform(0.2, 3, 2), int(rng.integers(1, 20)))
        points = np.r_[rng.random(50), scores.mean(), scores.min(), scores.max()]
        exact = np.abs(scores - points[:, None]).sum(axis=1)
        bound = oracles.spread_of_scores(scores, points)
        assert np.all(exact <= bound + 1e-9)
        assert np.allclose(exact[-3:], bound[-3:])


# --- one row: step (i)


def test_row_step_and_its_constant() -> None:
    """exp(-a|r| + a^2 sigma^2 / 2) <= 1 - a|r| + c (a^2/2)(sigma^2 + r^2), c = (e^v - 1)/v, v = a^2/8."""
    r, variance = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 0.25, 101))
    for a in np.r_[np.geomspace(1e-4, 0.5, 30), 0.5]:
        v = a * a / 8
        c = math.expm1(v) / v
        left = np.expm1(-a * r + a * a * variance / 2)
        right = -a * r + c * a * a / 2 * (variance + r * r)
        assert np.all(left <= right + 1e-15)
        assert left[-1, 0] == pytest.approx(right[-1, 0], rel=1e-9)  # sigma^2 = 1/4, r = 0: no smaller c


# --- variation inside a bin


def shifted_laws(eta: Floats) -> tuple[Floats, Floats]:
    """The Poisson–binomial law of `eta` and the binomial law of the same mean."""
    return oracles.poisson_binomial(eta), oracles.binomial(eta.size, float(eta.mean()))


def etas(rng: np.random.Generator, n: int) -> Floats:
    kind = rng.integers(0, 5)
    if kind == 0:  # a jump of eta from 0 to 1
        return (np.arange(n) >= rng.integers(0, n + 1)).astype(float)
    if kind == 1:
        return rng.choice([0.0, 0.5, 1.0], n)
    if kind == 2:  # two values
        low = rng.random()
        return np.where(rng.random(n) < rng.random(), low, min(1.0, low + rng.random()))
    if kind == 3:  # rare events
        return np.minimum(1.0, rng.exponential(0.05, n))
    return rng.beta(*rng.uniform(0.1, 3, 2), n)


def test_no_atom_of_a_sum_is_larger() -> None:
    rng = np.random.default_rng(306)
    sharpest = 0.0
    for _ in range(3000):
        eta = etas(rng, int(rng.integers(1, 30)))
        variance = float((eta * (1 - eta)).sum())
        atom = oracles.poisson_binomial(eta).max()
        assert atom <= min(1.0, kernel.ATOM / math.sqrt(variance)) if variance > 0 else atom <= 1.0
        sharpest = max(sharpest, atom * math.sqrt(variance))
    poisson = stats.poisson.pmf(0, 0.3) * math.sqrt(
        0.3
    )  # the extreme laws: half of Poisson, half of its mirror
    assert max(sharpest, poisson) > 0.4


def test_atoms_on_the_way() -> None:
    for v in (0.0, 0.3, 0.72, 1.0, 5.0, 400.0):
        t = (np.arange(200_000) + 0.5) / 200_000 * v
        mass = np.minimum(1.0, kernel.ATOM / np.sqrt(np.maximum(t - 0.5, 1e-300)))
        assert kernel.atom_mass(v) == pytest.approx(mass.mean() * v, rel=1e-5, abs=1e-12)


def test_second_differences_of_the_exponential() -> None:
    """-sum of negative second differences of h is at most 2 (1 - e^-lam), wherever c is."""
    for lam in (0.01, 0.3, 2.0):
        for c in np.linspace(5, 6, 41):
            h = np.exp(-lam * np.abs(c - np.arange(12)))
            bent = h[2:] - 2 * h[1:-1] + h[:-2]
            assert -bent[bent < 0].sum() <= -2 * math.expm1(-lam) + 1e-12


def test_mean_of_h_for_sums_that_are_not_binomial() -> None:
    """E h(PB) <= E h(Bin) + (1 - e^-lam) Q, on thousands of small bins."""
    rng = np.random.default_rng(307)
    for _ in range(4000):
        n = int(rng.integers(1, 16))
        eta = etas(rng, n)
        c, lam = rng.uniform(0, n), 10 ** rng.uniform(-2, 1)
        law, binomial = shifted_laws(eta)
        h = np.exp(-lam * np.abs(c - np.arange(n + 1)))
        p = eta.mean()
        mass = kernel.atom_mass(n * p * (1 - p)) - kernel.atom_mass(float((eta * (1 - eta)).sum()))
        assert law @ h <= binomial @ h - math.expm1(-lam) * mass + 1e-12


def test_floor_of_any_law() -> None:
    rng = np.random.default_rng(308)
    for _ in range(1500):
        n = int(rng.integers(1, 14))
        eta = etas(rng, n)
        p, mean = float(eta.mean()), float(rng.random())
        kappa = 1 + 10 ** rng.uniform(-3, 1)
        lam = kappa * 10 ** rng.uniform(-2, -0.3)
        level = float(rng.exponential(0.5))
        floor, low, high = kernel.any_law(float(n), mean, lam, kappa, level)
        value = kappa * oracles.psi(oracles.poisson_binomial(eta), n * mean, lam) - n * abs(mean - p)
        assert value >= floor - 1e-9
        assert low <= mean <= high
        if p < low - 1e-9 or p > high + 1e-9:
            assert value >= level - 1e-9


def test_losses_cover_every_eta_of_a_small_bin() -> None:
    """kappa psi + (a/2) sum sigma^2 - sum |s - eta| is at least zeta less the price, in both forms."""
    rng = np.random.default_rng(309)
    tightest = math.inf
    for _ in range(3000):
        n = int(rng.integers(2, 14))
        eta = etas(rng, n)
        scores = np.clip(
            rng.choice([0.02, 0.3, 0.5, 0.9]) + rng.choice([0.02, 0.3]) * (rng.random(n) - 0.5), 0, 1
        )
        if rng.random() < 0.3:  # scores that guess right
            scores = np.clip(eta.mean() + 0.05 * (rng.random(n) - 0.5), 0, 1)
        kappa = 1 + 10 ** rng.uniform(-2, 1)
        a = 10 ** rng.uniform(-2, math.log10(0.5))
        lam = kappa * a
        mean, p = scores.mean(), eta.mean()
        spread = np.abs(scores - mean).sum()
        zeta = exact_zeta(scores, lam, kappa, a)
        o = float(eta.max() - eta.min())
        if o == 0.0:
            continue
        first, second, slope = kernel.losses(one(n), one(mean), one(spread), one(zeta), one(o), lam, kappa, a)
        value = kappa * oracles.psi(oracles.poisson_binomial(eta), scores.sum(), lam)
        value += a / 2 * float((eta * (1 - eta)).sum()) - np.abs(scores - eta).sum()
        hidden = np.abs(eta - p).sum()
        assert hidden <= n * o / 2 + 1e-9
        assert value >= zeta - first[0, 0] - hidden - 1e-9
        assert value >= zeta - slope[0] * o * o - hidden - 1e-9
        c = min(mean, 1 - mean)
        share = o / 2 if o <= 2 * c else 2 * c * (1 - c / o)
        assert value >= zeta - second[0, 0] - n * share - 1e-9
        tightest = min(tightest, value - zeta + first[0, 0] + hidden)
    assert tightest < 0.05


def test_losses_increase_with_the_oscillation() -> None:
    ends = np.linspace(0.02, 1, 50)
    for n, mean, kappa, a in [(100.0, 0.5, 2.0, 0.05), (100.0, 0.02, 1.01, 0.3), (4000.0, 0.9, 3.0, 0.002)]:
        zeta = kernel.zetas(
            one(n), one(n * mean), one(0.1), one(mean), one(mean), kappa * a, kappa, a, one(0.01), 1e-3
        )
        first, second, slope = kernel.losses(one(n), one(mean), one(0.1), zeta, ends, kappa * a, kappa, a)
        assert np.all(np.diff(first) >= -1e-12)
        assert np.all(np.diff(second) >= -1e-12)
        steep = kernel.losses(one(n), one(mean), one(0.1), zeta, ends[:1], kappa * a, kappa, a)[2]
        assert slope[0] == steep[0]
        small = np.linspace(1e-3, 0.02, 20)
        assert np.all(
            kernel.losses(one(n), one(mean), one(0.1), zeta, small, kappa * a, kappa, a)[0]
            <= slope[0] * small**2 + 1e-12
        )


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("variation", [0.3, 1.0, 1.7])
def test_price_against_choices_of_oscillations(joint: bool, variation: float) -> None:
    """No way to spend the variation on three bins costs more."""
    rng = np.random.default_rng(310)
    steps = np.linspace(0.0, 1.0, 21)
    for trial in range(8):
        n = rng.integers(20, 300, 3).astype(float)
        mean = rng.random(3) * (0.05 if trial % 2 else 1.0)
        kappa, a = 1 + 10 ** rng.uniform(-1, 0.7), 10 ** rng.uniform(-2, -0.5)
        lam, spread = kappa * a, 0.01 * n
        zeta = kernel.zetas(n, n * mean, spread * 0, mean, mean, lam, kappa, a, np.full(3, 0.01), 1e-3)
        caps = rng.choice([1.0, 0.4], 3)
        first, second, slope = kernel.losses(n, mean, spread, zeta, inversion._ENDS, lam, kappa, a)
        shape = first, second, slope, inversion._ENDS, caps
        price = inversion._price((n, mean), shape, variation, joint)
        exact = kernel.losses(n, mean, spread, zeta, np.maximum(steps, 1e-12), lam, kappa, a)
        c = np.minimum(mean, 1 - mean)[:, None]
        share = np.where(steps <= 2 * c, steps / 2, 2 * c * (1 - c / np.maximum(steps, 1e-12)))
        costs = exact[0]
        if joint:
            costs = np.minimum(n[:, None] * steps / 2 + exact[0], n[:, None] * share + exact[1])
        costs[:, 0] = 0.0
        worst = 0.0
        for choice in itertools.product(range(21), repeat=3):
            spent = steps[list(choice)]
            if spent.sum() <= variation + 1e-12 and np.all(spent <= caps + 1e-12):
                worst = max(worst, float(costs[range(3), list(choice)].sum()))
        assert price >= worst - 1e-9
        free = kernel.priced(n, mean, *shape, 0.0, joint)
        assert price <= free + 1e-9


def test_extra_error_where_probabilities_are_small() -> None:
    """F(p; c, o) - |c - p| <= g(o) for every p: 1.4's form at its worst."""
    for c in np.linspace(0, 1, 41):
        near = min(c, 1 - c)
        for o in np.linspace(0.01, 1, 100):
            share = o / 2 if o <= 2 * near else 2 * near * (1 - near / o)
            extra = max(capped_error(p, c, o) - abs(c - p) for p in np.linspace(0, 1, 201))
            assert extra <= share + 1e-12


# --- partitions, averaged


def test_average_of_partitions_by_hoelder() -> None:
    """E exp(-lam mean T_t) <= product of the E exp(-lam T_t)^(1/S): over all labels of a small sample."""
    rng = np.random.default_rng(311)
    labels = np.array(list(itertools.product([0, 1], repeat=9)), float)
    for _ in range(40):
        eta, scores = rng.random(9), np.sort(rng.random(9))
        weights = np.prod(np.where(labels == 1, eta, 1 - eta), axis=1)
        lam = 10 ** rng.uniform(-2, 1)
        starts = [0, 3, 6], [0, 1, 4, 7], [0, 2, 5]
        errors = [np.abs(np.add.reduceat(scores - labels, part, axis=1)).sum(axis=1) for part in starts]
        joint = weights @ np.exp(-lam * np.mean(errors, axis=0))
        apart = np.prod([weights @ np.exp(-lam * t) for t in errors]) ** (1 / 3)
        assert joint <= apart * (1 + 1e-12)


def test_hidden_deviation_of_shifted_bins() -> None:
    """Mean over partitions of sum |eta - bin mean of eta|, for jumps and staircases of variation V."""
    rng = np.random.default_rng(312)
    for trial in range(30):
        s = np.sort(np.where(rng.random(150) < 0.3, rng.integers(0, 4, 150) / 4, rng.random(150)))
        labels = np.zeros(150)
        table = ScoreTable(labels, s) if trial % 2 else CellTable(40).update(labels, s)
        running = Running.of(table.cells())
        plan = [equal_mass_cuts(running.rows, 7, shift, 3) for shift in range(3)]
        smooth = Smoothness(variation=float(rng.choice([1.0, 0.5, 3.0])))
        bound = inversion._hidden(table, running, plan, smooth)
        for _ in range(30):
            knots = np.sort(rng.choice(np.unique(s), int(rng.integers(1, 4))))
            weights = rng.dirichlet(np.ones(knots.size)) * rng.choice([-1, 1], knots.size) * smooth.variation
            eta = (s[:, None] >= knots).astype(float) @ weights
            total = 0.0
            for cuts in plan:
                edges = running.rows[cuts]
                means = np.add.reduceat(eta, edges[:-1]) / np.diff(edges)
                total += np.abs(eta - np.repeat(means, np.diff(edges))).sum() / 3
            assert total <= bound + 1e-9
        one_jump = Average.of(
            Partitions(tuple(running.rows[cuts] for cuts in plan), NOTHING), running, table.cells()
        )
        assert bound <= smooth.variation * one_jump.worst_jump + 1e-12


# --- the theorem, exactly: all samples of a small population


@pytest.mark.parametrize(
    ("scores", "eta"),
    [
        ((0.5, 0.5), (0.5, 0.5)),
        ((0.4, 0.6), (0.6, 0.4)),
        ((0.5, 0.5), (0.35, 0.65)),
        ((0.1, 0.9), (0.0, 1.0)),
        ((0.02, 0.3), (0.1, 0.3)),
    ],
)
@pytest.mark.parametrize("delta", [0.5, 0.1])
def test_theorem_for_every_sample_of_two_atoms(
    scores: tuple[float, float], eta: tuple[float, float], delta: float
) -> None:
    """The least bound over all kappa misses with probability at most delta. b is known here."""
    n, weight = 24, 0.4
    s, p = np.array(scores), np.array(eta)
    share = np.array([weight, 1 - weight])
    error, brier = float(share @ np.abs(s - p)), float(share @ ((s - p) ** 2 + p * (1 - p)))
    nats = -math.log(delta)
    a = min(0.5, math.sqrt(nats / (n * brier)))
    factor = math.expm1(a * a / 8) / (a * a / 8)
    kappas = 1 + np.geomspace(1e-3, 30, 16)
    missed = 0.0
    for first in range(n + 1):
        rows = np.array([first, n - first], float)
        seen = rows > 0
        columns = rows[seen], (rows * s)[seen], 0 * rows[seen], s[seen], s[seen]
        noise = [
            kernel.zetas(*columns, k * a, k, a, np.full(int(seen.sum()), 0.1), 1e-6).sum() for k in kappas
        ]
        for k0, k1 in itertools.product(range(first + 1), range(n - first + 1)):
            total = abs(first * s[0] - k0) + abs((n - first) * s[1] - k1)
            rest = (kappas * total - noise + nats / a) / n
            bound = (-np.expm1(-a * rest) / a).min() + 0.5 * a * factor * brier
            if bound < error:
                probability = stats.binom.pmf(first, n, weight)
                probability *= stats.binom.pmf(k0, first, p[0]) * stats.binom.pmf(k1, n - first, p[1])
                missed += float(probability)
    assert missed <= delta


def test_levels_hold_every_brier_score_between_the_ends() -> None:
    rng = np.random.default_rng(313)
    for _ in range(300):
        n, nats = int(10 ** rng.uniform(0, 8)), float(rng.uniform(0.1, 30))
        high = 10 ** rng.uniform(-6, 0)
        low = high * rng.choice([0.0, 0.3, 0.9, 1.0])
        found = inversion.levels(n, nats, low, high)
        assert len(found) <= 3 or low < 0.3 * high
        for b in np.r_[high, low, rng.uniform(low, high, 20)]:
            j = math.floor(math.log2(6 * max(b, 1e-300)) + 0.5)
            a = min(0.5, math.sqrt(nats / (n * 2.0**j / 6)))
            assert any(level.a == pytest.approx(a, rel=1e-12) and level.brier >= b for level in found)


def test_the_bound_is_that_of_the_theorem() -> None:
    """Atoms, written out: not below (2) at the best kappa, and hardly above it."""
    rng = np.random.default_rng(319)
    n, delta, values = 2_000, 0.05, np.arange(1, 20) / 20
    for shift in (0.0, 0.1):
        s = rng.choice(values, n)
        y = rng.random(n) < np.minimum(s + shift, 1.0)
        c = certify(y, s, delta=delta, side="upper", method="inversion", variation=math.inf)
        columns = np.array([(s == v).sum() for v in values], float)
        hits = np.array([y[s == v].sum() for v in values], float)
        seen = np.abs(columns * values - hits).sum()
        square = float(np.mean((s - y) ** 2))
        nats = -math.log(0.95 * 0.99 * delta)
        a = math.sqrt(nats / (n / 6))
        brier = oracles.kl_end(square, -math.log(0.05 * delta) / n, upper=True)
        assert math.sqrt(0.5) / 6 < square < brier < math.sqrt(2) / 6  # one level
        least = math.inf
        for kappa in 1 + np.geomspace(1e-3, 30, 60):
            bins = columns, columns * values, 0 * columns, values, values
            zeta = kernel.zetas(*bins, kappa * a, kappa, a, np.full(19, 0.02), 1e-6).sum()
            rest = (kappa * seen - zeta + nats / a) / n
            factor = math.expm1(a * a / 8) / (a * a / 8)
            least = min(least, -math.expm1(-a * rest) / a + a / 2 * factor * brier)
        assert least - 1e-5 <= c.upper <= 1.02 * least
        assert c.terms["deviation"] == pytest.approx(nats / (a * n), rel=1e-9)


@pytest.mark.parametrize("variation", [None, 1.0, math.inf])
@pytest.mark.parametrize("method", ["auto", "inversion"])
def test_every_part_of_delta_is_paid_for_once(monkeypatch, method: str, variation: float | None) -> None:
    """The deviations, both ends of the Brier score and what the inversion inverts sum to delta."""
    n, paid = 9_000, []
    smallest, at_level = plugin.smallest_deviation, inversion._at_level
    upper, lower = certificates.kl_upper, inversion.kl_lower

    def spy(base, n, delta, brier, **options):
        paid.append(delta)
        return smallest(base, n, delta, brier, **options)

    def spy_level(level, parts, seen, hidden, smooth, n, nats):
        inverted.add(math.exp(-nats))
        return at_level(level, parts, seen, hidden, smooth, n, nats)

    def spy_end(end):
        def wrapped(q, nats):
            paid.append(math.exp(-nats * n))
            return end(q, nats)

        return wrapped

    monkeypatch.setattr(plugin, "smallest_deviation", spy)
    monkeypatch.setattr(inversion, "_at_level", spy_level)
    monkeypatch.setattr(certificates, "kl_upper", spy_end(upper))
    monkeypatch.setattr(inversion, "kl_lower", spy_end(lower))
    rng = np.random.default_rng(314)
    s = rng.integers(0, 40, n) / 39
    inverted: set[float] = set()
    certify(rng.random(n) < s, s, delta=0.1, side="upper", variation=variation, method=method)
    assert len(inverted) == 1
    assert sum(paid) + sum(inverted) == pytest.approx(0.1, rel=1e-9)


def test_the_plan_sees_no_labels(monkeypatch) -> None:
    rng = np.random.default_rng(315)
    original = inversion._plan
    for s in (rng.random(900), rng.beta(0.2, 20, 900), rng.integers(0, 30, 900) / 30):
        seen = set()
        for rate in (s, s**3, 1.0 - s, np.zeros(900), np.ones(900)):

            def spy(*args, seen=seen):
                plan, _ = found = original(*args)
                seen.add(tuple(map(tuple, plan)))
                return found

            monkeypatch.setattr(inversion, "_plan", spy)
            certify(rng.random(900) < rate, s, method="inversion", side="upper", variation=1)
        assert len(seen) == 1


# --- coverage where it is tight


def allowed_misses(runs: int, delta: float) -> int:
    return int(stats.binom.isf(1e-6, runs, delta))


def calibrated(rng: np.random.Generator) -> tuple[NDArray, Floats, float]:
    s = rng.random(500)
    return rng.random(500) < s, s, 0.0


def jump_in_the_largest_bin(rng: np.random.Generator) -> tuple[NDArray, Floats, float]:
    s = rng.random(300)
    return s > 0.5, s, 0.25


def detection_limit(rng: np.random.Generator) -> tuple[NDArray, Floats, float]:
    levels = (np.arange(20) + 0.5) / 20
    eta = levels + rng.choice([-1.0, 1.0], 20) * 0.8 * np.sqrt(levels * (1 - levels) / 20)
    which = rng.integers(0, 20, 400)
    return rng.random(400) < eta[which], levels[which], float(np.abs(eta - levels).mean())


def half_known(rng: np.random.Generator) -> tuple[NDArray, Floats, float]:
    """One score, and labels that are all noise."""
    return rng.random(60) < 0.7, np.full(60, 0.5), 0.2


def rare(rng: np.random.Generator) -> tuple[NDArray, Floats, float]:
    s = rng.beta(0.5, 49.5, 600)
    return rng.random(600) < np.minimum(1, 2 * s), s, 0.01


def rare_jump(rng: np.random.Generator) -> tuple[NDArray, Floats, float]:
    """Scores of .001 to .02; the event happens always or never above .012."""
    s = rng.uniform(0.001, 0.02, 600)
    return s > 0.0199, s, 0.0105 * (0.0199 - 0.001) / 0.019 + 0.98005 * 0.0001 / 0.019


def never_happens(rng: np.random.Generator) -> tuple[NDArray, Floats, float]:
    s = 0.3 * rng.random(60)
    return np.zeros(60), s, 0.15


WORLDS = [calibrated, jump_in_the_largest_bin, detection_limit, half_known, rare, rare_jump, never_happens]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_coverage(world) -> None:
    rng = np.random.default_rng(316)
    runs, delta = 150, 0.3
    missed = 0
    for _ in range(runs):
        y, s, error = world(rng)
        missed += certify(y, s, delta=delta, side="upper", method="inversion").upper < error - 1e-12
    assert missed <= allowed_misses(runs, delta)


def test_small_deltas_are_not_beaten() -> None:
    """Half of delta to spare is not enough for a step that is left out: one atom, all of its samples."""
    n, rate = 400, 0.6
    for delta in (0.2, 1e-3):
        missed = 0.0
        for k in range(n + 1):
            probability = float(stats.binom.pmf(k, n, rate))
            if probability > 1e-9:
                labels = np.arange(n) < k
                c = certify(labels, np.full(n, 0.5), delta=delta, side="upper", method="inversion")
                missed += probability * (c.upper < 0.1)
        assert missed <= delta


# --- what it reaches


@pytest.mark.parametrize(
    ("n", "beta", "eta", "limit"),
    [
        (10_000, (1, 1), lambda s: s, 0.0350),
        (100_000, (1, 1), lambda s: s, 0.0140),
        (100_000, (9, 1), lambda s: s, 0.0112),
        (100_000, (0.5, 49.5), lambda s: s, 0.0054),
        (100_000, (1, 1), lambda s: s * s, 0.1728),
    ],
    ids=["1e4", "1e5", "confidences", "base rate .01", "square"],
)
def test_tightness(n: int, beta: tuple[float, float], eta, limit: float) -> None:
    bounds = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        s = rng.random(n) if beta == (1, 1) else rng.beta(*beta, n)
        bounds.append(certify(rng.random(n) < eta(s), s, side="upper", variation=1).upper)
    assert np.median(bounds) <= limit


@pytest.mark.slow
def test_tightness_of_a_million_rows() -> None:
    rng = np.random.default_rng(0)
    s = rng.random(1_000_000)
    table = CellTable().update(rng.random(1_000_000) < s, s)
    auto = certify(table, side="upper", variation=1)
    assert auto.upper <= 0.0055
    assert "denoised" in auto.terms


def test_atoms_lose_their_noise() -> None:
    """A thousand score values: the plug-in error of a calibrated model is noise, most of which goes."""
    rng = np.random.default_rng(317)
    s = rng.integers(0, 1000, 100_000) / 999
    y = rng.random(100_000) < s
    both = [certify(y, s, side="upper", variation=math.inf, method=m) for m in ("plugin", "inversion")]
    assert both[1].upper < 0.7 * both[0].upper
    assert both[1].terms["bias"] == 0.0
    assert both[1].n_bins == 1000


@pytest.mark.parametrize(
    ("grid", "a", "b"), [("linear", 1.0, 1.0), ("linear", 9.0, 1.0), ("sqrt", 0.5, 49.5)]
)
def test_cells_cost_at_most_two_percent(grid, a: float, b: float) -> None:
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        s = rng.beta(a, b, 50_000)
        y = rng.random(50_000) < s
        upper = [
            certify(table, side="upper", variation=1, method="inversion").upper
            for table in (ScoreTable(y, s), CellTable(grid=grid).update(y, s))
        ]
        ratios.append(upper[1] / upper[0])
    assert np.median(ratios) <= 1.02


# --- the record


@pytest.fixture(scope="module")
def sample() -> tuple[NDArray, Floats]:
    rng = np.random.default_rng(318)
    s = rng.random(9_000)
    return (rng.random(9_000) < s).astype(int), s


@pytest.mark.parametrize("method", ["inversion", "auto"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"side": "upper"},
        {"variation": 0.0},
        {"variation": 30.0},
        {"variation": 1.0, "lipschitz": 3.0},
        {"lipschitz": 2.0},
        {"perturbed": 0.2},
        {"variation": math.inf},
        {"delta": 1e-9},
        {"delta": 0.99},
    ],
    ids=str,
)
def test_terms_sum_to_the_upper_end(sample, method, options) -> None:
    c = certify(*sample, method=method, **options)
    assert min(1.0, math.fsum(c.terms.values())) == pytest.approx(c.upper, abs=1e-12)
    assert all(value >= 0.0 for value in c.terms.values())
    assert c.upper > 0.0
    slope_alone = "variation" not in options and "lipschitz" in options
    assert c.method == ("plugin" if method == "auto" and slope_alone else method)


def test_a_slope_helps(sample) -> None:
    free = certify(*sample, method="inversion", variation=1.0, side="upper").upper
    steep = certify(*sample, method="inversion", variation=1.0, lipschitz=1.0, side="upper").upper
    assert steep < free


def test_auto_is_about_the_better_of_the_two(sample) -> None:
    for y in (sample[0], (sample[1] > 0.5).astype(int)):
        uppers = [
            certify(y, sample[1], side="upper", method=m).upper for m in ("auto", "plugin", "inversion")
        ]
        assert min(uppers[1:]) <= uppers[0] <= 1.05 * min(uppers[1:])
    few = certify(sample[0][:1000], sample[1][:1000], side="upper")
    assert few.method == "plugin"
    assert few.upper == certify(sample[0][:1000], sample[1][:1000], side="upper", method="plugin").upper


def test_more_variation_and_smaller_deltas_cost_more(sample) -> None:
    options = {"method": "inversion", "side": "upper"}
    by_variation = [certify(*sample, variation=v, **options).upper for v in (0.0, 0.5, 1, 2, 5, 30, math.inf)]
    assert by_variation == sorted(by_variation)
    assert by_variation[-1] > np.abs(sample[1] - sample[0]).mean()  # every row by itself
    cells = CellTable(500).update(*sample)
    assert certify(cells, variation=math.inf, **options).upper == 1.0  # nothing is known inside a cell
    by_delta = [certify(*sample, delta=d, **options).upper for d in (0.5, 0.1, 0.01, 1e-4, 1e-8)]
    assert by_delta == sorted(by_delta)


def test_mirror_image(sample) -> None:
    y, s = sample
    a, b = (certify(*rows, method="inversion", side="upper").upper for rows in ((y, s), (1 - y, 1 - s)))
    assert b == pytest.approx(a, rel=0.02)


@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300, 1e-9, 1.0])
def test_degenerate_scores(scale: float) -> None:
    for s in (np.full(100, scale), np.linspace(0, scale, 100), 1.0 - np.linspace(0, scale, 100)):
        for y in (np.zeros(100), np.ones(100), np.arange(100) % 2):
            for variation in (0.0, 1.0, math.inf):
                c = certify(y, np.clip(s, 0, 1), method="inversion", variation=variation)
                assert 0.0 <= c.lower <= c.upper <= 1.0
                assert c.upper >= abs(float(y.mean()) - float(np.clip(s, 0, 1).mean())) - 0.35


@pytest.mark.parametrize("rows", [([0], [0.0]), ([1], [0.3]), ([0, 1, 1], [0.2, 0.2, 0.9])])
def test_tiny_samples(rows) -> None:
    c = certify(*rows, method="inversion", side="upper")
    assert 0.5 < c.upper <= 1.0


def test_scores_that_are_certain() -> None:
    """No noise at all: kappa must not be next to 1, where many positives could hide."""
    for score in (0.0, 1.0):
        c = certify(np.full(10_000, score), np.full(10_000, score), method="inversion", side="upper")
        assert c.upper < 0.0015


def test_perfectly_wrong() -> None:
    assert certify(np.zeros(10_000), np.ones(10_000), method="inversion", side="upper").upper == 1.0


def test_assumptions_of_any_size(sample) -> None:
    """A price of next to nothing for a variation of nearly infinity: no logarithm of 0."""
    for variation, lipschitz in ((1e300, 1e-300), (1e-300, 1e300), (1e300, 1e300)):
        c = certify(*sample, method="inversion", variation=variation, lipschitz=lipschitz, side="upper")
        assert 0.0 < c.upper <= 1.0
