"""certify and its parts: reference numbers, coverage where the bounds are tight, hostile input."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from calcore import CellTable, Certificate, ScoreTable, certificates, certify
from calcore.bounds import excess, kl_upper
from calcore.certificates import bins as bins_of
from calcore.certificates import deviation, lower, plugin
from calcore.certificates.bins import Partitions, Running, Smoothness
from calcore.certificates.plan import Planner
from calcore.certificates.plugin import Shares
from calcore.kernels import deviations, oscillation
from calcore.kernels.averaging import bare_cells
from calcore.kernels.binning import equal_mass

GOLDEN_RATIO = 0.6180339887498949
V1 = Smoothness(variation=1.0)


def golden_data(n: int = 1000) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Scores (i + .5) / n, labels frac(i golden ratio) < s^2: equidistributed, not random."""
    i = np.arange(n)
    s = (i + 0.5) / n
    return (np.mod(i * GOLDEN_RATIO, 1.0) < s * s).astype(np.int64), s


# --- numbers from an independent implementation


def test_form_one_on_the_golden_data() -> None:
    y, s = golden_data()
    assert y.sum() == 334
    table = ScoreTable(y, s)
    running = Running.of(table.cells())
    cuts = equal_mass(table.cells().n, 24)
    plug, bias = bins_of.form_one(table, running, whole(running, cuts), V1)
    assert plug == pytest.approx(0.166594731707, abs=1e-12)
    assert bias == pytest.approx(0.021, abs=1e-15)
    _, bias = bins_of.form_one(table, running, whole(running, cuts), Smoothness(variation=2.5))
    assert bias == pytest.approx(0.0525, abs=1e-15)
    bins = bins_of.bin_cells(table.cells(), cuts)
    assert np.abs(bins.s - bins.k).sum() == pytest.approx(166.319, abs=1e-9)
    assert table.sum_squared_error / 1000 == pytest.approx(0.16769925, abs=1e-12)


def test_form_two_on_the_golden_data() -> None:
    y, s = golden_data()
    table = ScoreTable(y, s)
    bins = bins_of.bin_cells(table.cells(), equal_mass(table.cells().n, 24))
    spread = table.abs_deviation(bins.cuts, bins.mean_score)
    assert spread.sum() == pytest.approx(10.416, abs=1e-9)
    total = sum(bins_of.form_two(bins, bins.k / bins.n, spread, V1))
    assert total == pytest.approx(0.189950994109, abs=2e-9)
    assert total >= 0.189950994109 - 1e-12


def test_upper_bound_on_the_golden_data() -> None:
    """The reference has one partition and a plainer deviation: ours is below it, and its parts add up."""
    y, s = golden_data()
    table = ScoreTable(y, s)
    brier = kl_upper(0.16769925, math.log(1 / 0.0025) / 1000)
    assert brier == pytest.approx(0.211160640879, abs=1e-11)
    running = Running.of(table.cells())
    planner = Planner(table.cells(), running, 0.05)
    shares = Shares(0.7 / 0.9, 0.1 / 0.9, 0.1 / 0.9)
    delta = 0.95 * 0.05
    plans = planner.equal_mass(24, V1), planner.equal_mass(96, V1)
    bound = plugin.plug_in_upper(table, running, *plans, V1, delta, brier, shares)
    assert bound.form == "1"
    assert 90 < bound.n_bins <= 97  # both ends of the scores are not averaged
    assert bound.value < 0.222742279912
    base, cost, t = (
        bound.plug_in + bound.bias,
        math.log(1 / (shares.fine * delta)) / 1000,
        np.geomspace(1e-3, 4, 20_001),
    )
    phi = np.exp(t) - 1 - t
    growth = phi * brier * (np.exp(phi / 4) - 1) / (phi / 4)
    assert bound.value == pytest.approx(((1 + growth - np.exp(-t * base - cost)) / t).min(), abs=1e-9)


@pytest.mark.parametrize(
    ("base", "n", "delta", "published"),
    [
        (0.05, 1000, 0.05, 0.0954976590062),
        (0.02, 10000, 0.05, 0.0330219663548),
        (0.3, 10000, 0.005, 0.32301807413),
    ],
)
def test_deviation_a_improves_on_the_quadratic(base: float, n: int, delta: float, published: float) -> None:
    """The quadratic form bounds the same moment generating functions more coarsely."""
    ours = base + deviation.sub_gaussian(base, n, math.log(1 / delta)).total
    assert published - 0.15 * (published - base) < ours <= published


@pytest.mark.parametrize(
    ("n", "delta", "brier", "published"),
    [
        (1000, 0.05, 1 / 6, 0.0326831417261),
        (10000, 0.05, 1 / 6, 0.0100955499468),
        (10000, 0.05, 0.01, 0.00255822973387),
        (100000, 0.0375, 0.001, 0.000268415979577),
    ],
)
def test_deviation_b_improves_on_the_plain_form(n: int, delta: float, brier: float, published: float) -> None:
    ours = deviation.bernstein(0.0, n, math.log(1 / delta), brier).total
    assert 0.99 * published < ours <= published


@pytest.mark.parametrize(
    ("p", "c", "o", "value"),
    [
        (0.1, 0.12, 0.05, 0.029),
        (0.1, 0.12, 0.15, 0.0763333333333),
        (0.02, 0.01, 0.5, 0.0292),
        (0.9, 0.95, 0.3, 0.116666666667),
        (0.5, 0.5, 1.0, 0.5),
    ],
)
def test_capped_error(p: float, c: float, o: float, value: float) -> None:
    assert oscillation.capped_error(p, c, o) == pytest.approx(value, abs=1e-12)


# --- parts against slow and obvious versions


def worst_two_point_error(p: float, c: float, o: float) -> float:
    """Largest mean |c - eta| over eta with two values in [0, 1], mean p, range at most o."""
    best = abs(c - p)
    for low in np.linspace(max(0.0, p - o), p, 161):
        for high in np.linspace(p, min(1.0, low + o), 161):
            if high > low:
                weight = (p - low) / (high - low)
                best = max(best, weight * abs(c - high) + (1 - weight) * abs(c - low))
    return float(best)


@pytest.mark.kernels
def test_capped_error_is_the_worst_case() -> None:
    rng = np.random.default_rng(101)
    for p, c, o in rng.random((40, 3)):
        worst, formula = worst_two_point_error(p, c, o), oscillation.capped_error(p, c, o)
        assert worst <= formula + 1e-12
        assert formula - worst < 0.01


@pytest.mark.kernels
def test_budget_of_oscillation() -> None:
    """The dual is never below a feasible choice, and close to the best one found on a grid."""
    rng = np.random.default_rng(102)
    steps = np.linspace(0.0, 1.0, 21)
    for _ in range(12):
        rate, center, weight = rng.random(3), rng.random(3), rng.integers(1, 50, 3).astype(float)
        budget = rng.uniform(0.2, 2.0)
        cap = rng.uniform(0.3, 1.0, 3)
        best = 0.0
        for o in itertools.product(steps, repeat=3):
            if sum(o) <= budget and all(a <= b for a, b in zip(o, cap, strict=True)):
                value = sum(
                    w * oscillation.capped_error(p, c, x)
                    for w, p, c, x in zip(weight, rate, center, o, strict=True)
                )
                best = max(best, value)
        dual = oscillation.budgeted_error(rate, center, weight, cap, budget, 1e-9)
        assert dual >= best - 1e-9
        loose = oscillation.priced_sum(rate, center, weight, cap, 0.0)[0]
        assert dual <= loose + 1e-9
        for multiplier in np.linspace(0.0, weight.max(), 50):
            priced = multiplier * budget + oscillation.priced_sum(rate, center, weight, cap, multiplier)[0]
            assert priced >= best - 1e-9
            assert dual <= priced * (1 + 1e-9) + 1e-9


def test_hidden_error_is_the_linear_programme() -> None:
    rng = np.random.default_rng(103)
    for _ in range(30):
        m = int(rng.integers(1, 8))
        rows = rng.integers(1, 30, m).astype(float)
        width = np.where(rng.random(m) < 0.3, 0.0, rng.random(m))
        difference, slope, budget = width / 3, rng.uniform(0.1, 5.0), rng.uniform(0.0, 3.0)
        cap = np.minimum(1.0, 2 * slope * difference) * (width > 0)
        answer = optimize.linprog(
            -rows / 2, A_ub=np.ones((1, m)), b_ub=[budget], bounds=np.c_[np.zeros(m), cap]
        )
        mixed = width > 0
        ours = bins_of.hidden_mean_deviation(rows[mixed], difference[mixed], Smoothness(budget, slope))
        assert ours == pytest.approx(-answer.fun, abs=1e-9)


def test_bias_covers_the_worst_eta() -> None:
    """A step of height 1 in the middle of the largest bin: mean |eta - bin mean| is half of the bin."""
    n, m = 1200, 7
    s = (np.arange(n) + 0.5) / n
    table = ScoreTable(np.zeros(n), s)
    bins = bins_of.bin_cells(table.cells(), equal_mass(table.cells().n, m))
    largest = int(np.argmax(bins.n))
    middle = int(bins.cuts[largest] + bins.n[largest] // 2)
    eta = (np.arange(n) >= middle).astype(float)
    means = np.repeat(np.add.reduceat(eta, bins.cuts[:-1]) / bins.n, bins.n.astype(int))
    hidden = float(np.abs(eta - means).sum())
    assert hidden <= bins_of.hidden_mean_deviation(bins.n, None, V1) + 1e-9
    assert bins_of.hidden_mean_deviation(bins.n, None, V1) < hidden + 1.0


def averaging_matrix(edges: NDArray[np.int64], parts: Partitions) -> NDArray[np.float64]:
    """Mean over partitions of the sum over bins of u u' / sum u, u the bin's part of each cell."""
    n = int(edges[-1])
    total = np.zeros((n, n))
    for marks in parts.marks:
        total += np.diag(((np.arange(n) < marks[0]) | (np.arange(n) >= marks[-1])).astype(float))
        for first, last in itertools.pairwise(marks):
            covered = np.minimum(edges[1:], last) - np.maximum(edges[:-1], first)
            u = np.repeat(np.maximum(covered, 0) / np.diff(edges), np.diff(edges))
            total += np.outer(u, u) / (last - first)
    total /= len(parts.marks)
    for cell in parts.bare:
        rows = slice(edges[cell], edges[cell + 1])
        assert np.allclose(np.delete(total[rows], np.r_[rows], axis=1), 0.0)  # a bin of its own
        total[rows, rows] = np.eye(rows.stop - rows.start)
    return total


def whole(running: Running, *cuts: NDArray[np.int64]) -> Partitions:
    return Partitions(tuple(running.rows[cut] for cut in cuts), bins_of.NOTHING)


@pytest.mark.parametrize("n_cells", [None, 30, 90])
@pytest.mark.parametrize(("n", "m"), [(60, 5), (61, 7), (97, 3), (40, 40), (13, 1), (9, 8)])
def test_averaged_partitions_are_a_doubly_stochastic_matrix(n: int, m: int, n_cells: int | None) -> None:
    rng = np.random.default_rng(115)
    s = np.sort(np.where(rng.random(n) < 0.3, rng.beta(2.0, 30.0, n), rng.random(n)))
    y = (rng.random(n) < 0.5).astype(float)
    table = ScoreTable(y, s) if n_cells is None else CellTable(n_cells).update(y, s)
    cells = table.cells()
    running = Running.of(cells)
    for smooth in (V1, Smoothness(variation=3.0), Smoothness(variation=0.3), Smoothness(lipschitz=1.0)):
        parts = bins_of.shifted(cells, running, m, smooth)
        assert len({(marks[0], marks[-1]) for marks in parts.marks}) == 1
        assert all(np.all(np.diff(marks) > 0) for marks in parts.marks)
        if smooth.lipschitz < math.inf:
            assert all(np.isin(marks, running.rows).all() for marks in parts.marks)
        a = averaging_matrix(running.rows, parts)
        assert a.min() >= 0.0
        assert np.allclose(a, a.T)
        assert np.allclose(a.sum(axis=0), 1.0)
        assert np.linalg.norm(a, 2) <= 1 + 1e-12
        plug, bias = bins_of.form_one(table, running, parts, smooth)
        exact = np.abs(s - a @ y).sum()
        assert plug * n >= exact - 1e-7
        if n_cells is None:
            assert plug * n == pytest.approx(exact, abs=1e-9)
        steps = (np.arange(n) >= np.arange(n + 1)[:, None]).astype(float)
        places = np.flatnonzero(np.r_[True, s[1:] > s[:-1], True])
        jumps = [np.abs(step - a @ step).sum() for step in steps[places]]
        average = bins_of.Average.of(parts, running, cells)
        ends = running.rows[average.cuts]
        averaged = np.ones(n, np.bool_)
        for cell in parts.bare:  # of which a rate means nothing
            averaged[running.rows[cell] : running.rows[cell + 1]] = False
        inner = slice(ends[0], ends[-1])
        rates = np.repeat(average.rates, np.diff(ends))
        assert np.allclose(rates[averaged[inner]], (a @ y)[inner][averaged[inner]], atol=1e-12)
        worst = average.worst_jump
        assert max(jumps) - 1e-9 <= worst <= max(jumps) + 0.5
        if smooth.lipschitz == math.inf:
            assert bias * n <= smooth.variation * worst + 1e-9


def test_bias_of_averages_covers_every_eta_of_bounded_variation() -> None:
    """Monotone, hat and staircase functions of total variation V, on scores with ties, atoms, large cells."""
    rng = np.random.default_rng(116)
    tightest = math.inf
    for trial in range(60):
        s = np.sort(np.where(rng.random(150) < 0.4, rng.integers(0, 4, 150) / 4, rng.random(150)))
        if trial % 3 == 1:
            s = np.sort(s**3)
        labels = np.zeros(150)
        table = ScoreTable(labels, s) if trial % 2 else CellTable(int(rng.integers(8, 200))).update(labels, s)
        running = Running.of(table.cells())
        smooth = Smoothness(variation=float(rng.choice([1.0, 0.4, 3.0])))
        parts = bins_of.shifted(table.cells(), running, int(rng.integers(2, 12)), smooth)
        a = averaging_matrix(running.rows, parts)
        _, bias = bins_of.form_one(table, running, parts, smooth)
        for _ in range(30):
            knots = np.sort(rng.choice(np.unique(s), int(rng.integers(1, 4))))
            weights = rng.dirichlet(np.ones(knots.size)) * rng.choice([-1, 1], knots.size) * smooth.variation
            eta = (s[:, None] >= knots).astype(float) @ weights
            eta = np.clip(eta - eta.min(), 0.0, 1.0)
            assert np.abs(eta - a @ eta).sum() <= 150 * bias + 1e-9
            tightest = min(tightest, 150 * bias - np.abs(eta - a @ eta).sum())
    assert tightest < 1e-6


def test_bins_are_smaller_where_cells_are_large() -> None:
    """The worst jump is hardly larger through cells of up to .4 bins than through sorted scores."""
    rng = np.random.default_rng(140)
    s = np.sort(rng.random(20_000))
    y = (rng.random(20_000) < s).astype(int)
    running = Running.of(ScoreTable(y, s).cells())
    m = 25
    sharp = bins_of.shifted(ScoreTable(y, s).cells(), running, m, V1)
    best = bins_of.Average.of(sharp, running, ScoreTable(y, s).cells()).worst_jump
    for n_cells, most in ((2000, 1.005), (400, 1.01), (130, 1.03), (65, 1.05)):  # cells of .0125 .. .385 bins
        cells = CellTable(n_cells).update(y, s).cells()
        running = Running.of(cells)
        parts = bins_of.shifted(cells, running, m, V1)
        assert bins_of.Average.of(parts, running, cells).worst_jump <= most * best


def bare_cost(
    bare: tuple[int, ...],
    several: NDArray[np.int64],
    mean: NDArray[np.float64],
    least: float,
    variation: float,
) -> float:
    left = [several[j] for j in range(several.size) if j not in bare and several[j] > least]
    single = sum(2.0 * several[j] * mean[j] * (1.0 - mean[j]) for j in bare)
    return float(single + variation * max(0.5 * max(left, default=0), 2.0 / 3.0 * least))


def test_large_cells_stand_for_themselves_where_that_is_cheaper() -> None:
    """Against all sets of the largest cells, written out."""
    rng = np.random.default_rng(141)
    for _ in range(200):
        several = rng.integers(1, 400, 7)
        several[rng.random(7) < 0.2] = 0
        mean, least = rng.beta(0.3, 3.0, 7), float(rng.integers(1, 200))
        variation = float(rng.choice([0.3, 1.0, 4.0]))

        large = [j for j in range(7) if several[j] > least]
        prefixes = [
            tuple(sorted(large, key=lambda j: -several[j])[:count]) for count in range(len(large) + 1)
        ]
        found = tuple(bare_cells(several, mean, least, variation))
        costs = [bare_cost(prefix, several, mean, least, variation) for prefix in prefixes]
        assert bare_cost(found, several, mean, least, variation) == pytest.approx(min(costs), abs=1e-9)


def test_bias_under_a_slope() -> None:
    """eta(s) = L s is the worst 1-bin case up to a factor 2: |eta - mean| averages L times |s - mean|."""
    rng = np.random.default_rng(104)
    s = np.sort(rng.random(500)) * 0.4
    slope = 2.0
    table = ScoreTable(np.zeros(500), s)
    bins = bins_of.bin_cells(table.cells(), equal_mass(table.cells().n, 5))
    difference = table.abs_differences(bins.cuts) / bins.n**2
    eta = slope * s
    means = np.repeat(np.add.reduceat(eta, bins.cuts[:-1]) / bins.n, bins.n.astype(int))
    hidden = float(np.abs(eta - means).sum())
    ours = bins_of.hidden_mean_deviation(bins.n, difference, Smoothness(lipschitz=slope))
    assert hidden <= ours <= 2.0 * hidden


def test_deviation_c_holds_for_signed_sums() -> None:
    """n = 60 rows with eta = 1/2 and random signs: the sum is a binomial, its exact tail is below delta."""
    n = 60
    for delta in (0.2, 0.05, 0.001):
        sample = deviation.signs(0.0, n, math.log(1 / delta)).sample
        tail = stats.binom.sf(math.ceil(n / 2 + sample * n - 1e-9) - 1, n, 0.5)
        assert tail <= delta
        assert (
            stats.binom.sf(n / 2 + 0.55 * sample * n, n, 0.5) > delta
        )  # a deviation of about half would not do


def test_deviation_c_at_every_lattice_point() -> None:
    """For delta just below P(K >= n/2 + y) the deviation must reach y; the Gaussian tail alone does not."""
    n = 60
    for y in range(6, 17):
        delta = float(stats.binom.sf(n / 2 + y - 1, n, 0.5)) * (1 - 1e-9)
        assert n * deviation.signs(0.0, n, -math.log(delta)).sample >= y
        assert stats.norm.isf(delta) * math.sqrt(n) / 2 < y


def test_deviation_c_is_kept_from_bins() -> None:
    """Which deviation may be used is fixed by the kind of average, not by what the scores look like."""
    base, n, delta, brier = 0.1, 1000, 0.05, 0.25
    free = deviation.signs(base, n, -math.log(delta)).total
    assert deviation.smallest_deviation(base, n, delta, brier).total > 1.05 * free
    assert deviation.smallest_deviation(base, n, delta, brier, sign_weights=True).total == free


@pytest.mark.parametrize("kind", ["a", "b", "c"])
def test_deviations_hold_where_they_are_tight(kind: str) -> None:
    """Exact failure probability of CE <= |mean(s - y)| + deviation when one score value s has eta = p.

    K ~ Bin(n, p) rows are positive and CE = |s - p|; the bound fails on a set of K that is summed up exactly.
    """
    for n, p, s in ((40, 0.5, 0.9), (40, 0.5, 1.0), (200, 0.05, 0.3), (200, 0.02, 0.02), (500, 0.3, 0.35)):
        for delta in (0.2, 0.01):
            nats = math.log(1 / delta)
            brier = p * (1 - p) + (s - p) ** 2
            fails = 0.0
            for k in range(n + 1):
                base = abs(s - k / n)
                if kind == "b":
                    part = deviation.bernstein(base, n, nats, brier)
                else:
                    part = {"a": deviation.sub_gaussian, "c": deviation.signs}[kind](base, n, nats)
                if abs(s - p) > base + part.total:
                    fails += stats.binom.pmf(k, n, p)
            assert fails <= delta


def test_lower_bound_holds_where_it_is_tight() -> None:
    """Calibrated atoms: every positive lower bound is a miss. Exact for one atom."""
    for n, p in ((40, 0.5), (200, 0.1), (1000, 0.5)):
        for delta in (0.3, 0.01):
            brier = p * (1 - p)
            missed = 0.0
            for k in range(n + 1):
                table = ScoreTable(np.r_[np.ones(k), np.zeros(n - k)], np.full(n, p))
                missed += (
                    lower.binned_lower(Running.of(table.cells()), delta, brier) > 1e-12
                ) * stats.binom.pmf(k, n, p)
            assert missed <= delta


# --- who pays for what, and who may see labels


@pytest.mark.parametrize("side", ["upper", "lower", "both"])
@pytest.mark.parametrize("variation", [None, 1.0, math.inf])
def test_every_part_of_delta_is_paid_for_once(monkeypatch, side: str, variation: float | None) -> None:
    """Error probabilities handed to the bounds sum to delta; both ends get the bounded Brier score."""
    paid: list[float] = []
    briers: list[float] = []

    def spy(module, name: str, delta_at: int, brier_at: int) -> None:
        original = getattr(module, name)

        def wrapped(*args, **kwargs):
            paid.append(args[delta_at])
            briers.append(args[brier_at])
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, wrapped)

    spy(plugin, "smallest_deviation", 2, 3)
    spy(certificates, "binned_lower", 1, 2)
    upper = certificates.kl_upper

    def spy_kl(q: float, nats: float) -> float:
        paid.append(math.exp(-nats * 3000))
        return upper(q, nats)

    monkeypatch.setattr(certificates, "kl_upper", spy_kl)
    rng = np.random.default_rng(117)
    s = rng.random(3000)
    table = ScoreTable(rng.random(3000) < s, s)
    certify(table, delta=0.1, side=side, variation=variation)
    assert sum(paid) == pytest.approx(0.1, rel=1e-9)
    assert set(briers) == {upper(table.sum_squared_error / 3000, -math.log(0.05 * 0.1) / 3000)}


def test_nothing_that_must_depend_on_scores_alone_sees_labels(monkeypatch) -> None:
    rng = np.random.default_rng(118)
    for scores in (rng.random(900), rng.beta(0.2, 20, 900), rng.integers(0, 30, 900) / 30):
        seen = set()
        for rate in (scores, scores**3, 1.0 - scores, np.zeros(900), np.ones(900)):
            used: list[tuple] = []
            original = plugin._binned

            def spy(table, running, plan, delta, brier, smooth, used=used, original=original):
                bound = original(table, running, plan, delta, brier, smooth)
                parts = plan.parts(table.cells(), running, smooth)
                cuts = tuple(map(tuple, (*parts.marks, parts.bare)))
                used.append((plan.form, bound.form, bound.n_bins, plan.expected, delta, smooth, cuts))
                return bound

            monkeypatch.setattr(plugin, "_binned", spy)
            words = certify(rng.random(900) < rate, scores, side="upper").assumption
            monkeypatch.setattr(plugin, "_binned", original)
            seen.add((words, tuple(used)))
        assert len(seen) == 1


@pytest.mark.parametrize("variation", [None, 0.5, 1.0, 1.5])
def test_the_printed_assumption_is_the_one_that_is_used(monkeypatch, variation: float | None) -> None:
    used = []
    original = plugin._binned

    def spy(*args):
        used.append(args[5])
        return original(*args)

    monkeypatch.setattr(plugin, "_binned", spy)
    rng = np.random.default_rng(119)
    for s in (rng.random(2000), rng.integers(0, 6, 2000) / 5):
        used.clear()
        words = certify(rng.random(2000) < s, s, side="upper", variation=variation).assumption
        assert len(set(used)) == 1
        smooth = used[0]
        if words == "none":
            assert smooth == Smoothness()
        else:
            assert f"total variation <= {smooth.variation:g}" in words
            assert smooth.lipschitz == math.inf
    assert "0.9999999" in certify([0, 1], [0.2, 0.7], variation=0.9999999).assumption


@pytest.mark.parametrize("table", [CellTable(7), CellTable(1), CellTable(23, "sqrt"), CellTable(64, "logit")])
def test_rows_and_jumps_inside_cells_with_a_range_of_scores(table: CellTable) -> None:
    rng = np.random.default_rng(120)
    for _ in range(20):
        s = np.sort(np.where(rng.random(80) < 0.3, 0.25, rng.random(80)))
        y = (rng.random(80) < s).astype(int)
        filled = CellTable(table.n_cells, table.grid).update(y, s)
        cells = filled.cells()
        running = Running.of(cells)
        edges = running.rows
        for j, bound in enumerate(bins_of.distinct_errors(cells)):
            rows = slice(edges[j], edges[j + 1])
            one = cells.lo[j] == cells.hi[j]
            exact = abs((s[rows] - y[rows]).sum()) if one else np.abs(s[rows] - y[rows]).sum()
            assert bound >= exact - 1e-7
        parts = whole(running, equal_mass(cells.n, 3), equal_mass(cells.n, 4))
        a = averaging_matrix(edges, parts)
        places = [k for k in range(1, 80) if s[k] > s[k - 1]]
        jumps = [np.abs(e - a @ e).sum() for e in ((np.arange(80) >= k).astype(float) for k in places)]
        assert bins_of.Average.of(parts, running, cells).worst_jump >= max(jumps) - 1e-9


@pytest.mark.parametrize(("n_cells", "b"), [(20, 30.0), (50, 100.0), (200, 300.0)])
def test_scores_near_one_are_worth_as_much_as_scores_near_zero(n_cells: int, b: float) -> None:
    rng = np.random.default_rng(142)
    s = rng.beta(1.0, b, 20_000)
    y = rng.random(20_000) < s
    near_zero = certify(CellTable(n_cells).update(y, s), side="upper").upper
    near_one = certify(CellTable(n_cells).update(~y, 1.0 - s), side="upper").upper
    assert near_one == pytest.approx(near_zero, rel=0.01)


@pytest.mark.parametrize(("slope", "variation"), [(1.0, math.inf), (4.0, math.inf), (4.0, 0.7), (30.0, 1.0)])
@pytest.mark.parametrize("cells", [None, 5, 40])
def test_forms_cover_every_lipschitz_eta(slope: float, variation: float, cells: int | None) -> None:
    """Zigzags of the largest slope and of the largest variation, labels replaced by their rates."""
    rng = np.random.default_rng(121)
    smooth = Smoothness(variation, slope)
    tightest = math.inf
    for _ in range(15):
        n = 120
        s = np.sort(rng.random(n))
        zeros = np.zeros(n)
        table = ScoreTable(zeros, s) if cells is None else CellTable(cells).update(zeros, s)
        running = Running.of(table.cells())
        cuts = equal_mass(table.cells().n, 3)
        parts = whole(running, cuts, equal_mass(table.cells().n, 4))
        a = averaging_matrix(running.rows, parts)
        _, bias = bins_of.form_one(table, running, parts, smooth)
        bins = bins_of.bin_cells(table.cells(), cuts)
        spread = table.abs_deviation(bins.cuts, bins.mean_score)
        p = averaging_matrix(running.rows, whole(running, cuts))
        for _ in range(20):
            moves = np.diff(s) * slope * rng.choice([-1.0, 1.0], n - 1)
            keep = np.cumsum(np.abs(moves)) <= variation
            eta = np.clip(np.r_[0.0, np.cumsum(moves * keep)] + rng.random(), 0.0, 1.0)
            hidden = np.abs(eta - a @ eta).sum()
            assert hidden <= n * bias + 1e-6
            tightest = min(tightest, n * bias - hidden)
            rate = np.clip((p @ eta)[running.rows[cuts][:-1]], 0.0, 1.0)
            two = sum(bins_of.form_two(bins, rate, spread, smooth))
            assert np.abs(s - eta).mean() <= two + 1e-6
    assert tightest < n * bias  # eta that hide something were tried


def test_gmd_is_charged_in_full() -> None:
    """Two scores a gap g apart, half of the rows each, eta of slope L between them: the bias is exact."""
    s = np.repeat([0.4, 0.5], 50)
    table = ScoreTable(np.zeros(100), s)
    running = Running.of(table.cells())
    _, bias = bins_of.form_one(table, running, whole(running, np.array([0, 2])), Smoothness(lipschitz=3.0))
    assert bias == pytest.approx(0.15, abs=1e-12)
    bins = bins_of.bin_cells(table.cells(), np.array([0, 2]))
    spread = table.abs_deviation(bins.cuts, bins.mean_score)
    two = sum(bins_of.form_two(bins, np.array([0.45]), spread, Smoothness(lipschitz=3.0)))
    assert two == pytest.approx(0.05 + 0.15, abs=1e-9)


def test_signs_are_paid_for_in_the_number_of_bins_there_are(monkeypatch) -> None:
    """Heavy cells stand alone, so more bins than asked for may come out; the price is for at most `count`."""
    sizes = np.array([1, 10, 1, 10, 1, 10, 1] * 3)
    s = np.repeat(np.linspace(0.1, 0.9, sizes.size), sizes)
    running = Running.of(ScoreTable(np.zeros(s.size), s).cells())
    asked = []
    original = lower.equal_mass_cuts

    def spy(passed, count, shift, shifts):
        cuts = original(passed, count, shift, shifts)
        asked.append((count, cuts.size - 1))
        return cuts

    monkeypatch.setattr(lower, "equal_mass_cuts", spy)
    lower.binned_lower(running, 0.05, 0.5)
    counts = iter([2**j for j in range(20)])
    planned = next(counts)
    assert any(bins > count for count, bins in asked)
    for k, (count, bins) in enumerate(asked):
        if count == planned and bins <= planned:
            planned = next(counts)
        elif count == planned:  # too many: the next call must be the coarser cut, and fit
            assert asked[k + 1][0] == max(1, planned // 2)
            assert asked[k + 1][1] <= planned
        else:
            planned = next(counts)


@pytest.mark.parametrize("t", [1e-9, 1e-5, 5e-4, 9.99e-4, 1.001e-3, 0.5, 3.0])
def test_excess(t: float) -> None:
    exact = sum(Fraction(t) ** k / math.factorial(k) for k in range(2, 40))
    assert excess(t) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.kernels
def test_binomial_noise() -> None:
    for n in (1, 2, 7, 40, 1000):
        for p in (0.0, 1e-9, 0.01, 0.3, 0.5, 0.97, 1.0):
            k = np.arange(n + 1)
            exact = float((stats.binom.pmf(k, n, p) * np.abs(k - n * p)).sum())
            bound = deviations.binomial_noise(np.array([float(n)]), np.array([p]))
            assert exact * (1 - 1e-12) <= bound <= exact * (1 + 2e-6)
    assert deviations.binomial_noise(np.array([1e12]), np.array([0.5])) == 5e5


# --- coverage


def allowed_misses(runs: int, delta: float) -> int:
    """More misses than this happen with probability below 1e-6 if each has probability at most delta."""
    return int(stats.binom.isf(1e-6, runs, delta))


def jump_in_the_largest_bin(rng: np.random.Generator) -> tuple[NDArray, NDArray, float]:
    s = rng.random(200)
    eta = (s > 0.5).astype(float)
    return rng.random(200) < eta, s, 0.25


def calibrated(rng: np.random.Generator) -> tuple[NDArray, NDArray, float]:
    s = rng.random(100)
    return rng.random(100) < s, s, 0.0


def two_atoms(rng: np.random.Generator) -> tuple[NDArray, NDArray, float]:
    s = rng.choice([0.4, 0.6], 50)
    return rng.random(50) < np.where(s == 0.4, 0.6, 0.4), s, 0.2


def one_bad_region(rng: np.random.Generator) -> tuple[NDArray, NDArray, float]:
    s = rng.random(300)
    eta = np.where(s > 0.9, 0.0, s)
    return rng.random(300) < eta, s, (1 - 0.81) / 2


def rare(rng: np.random.Generator) -> tuple[NDArray, NDArray, float]:
    s = rng.beta(0.5, 49.5, 500)
    return rng.random(500) < np.minimum(1, 2 * s), s, 0.01  # E min(s, 1 - s), s > 1/2 has no mass to speak of


def never_happens(rng: np.random.Generator) -> tuple[NDArray, NDArray, float]:
    s = 0.3 * rng.random(60)
    return np.zeros(60), s, 0.15


WORLDS = [jump_in_the_largest_bin, calibrated, two_atoms, one_bad_region, rare, never_happens]


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("side", ["upper", "lower", "both"])
def test_coverage(world, side: str) -> None:
    rng = np.random.default_rng(105)
    runs, delta, misses = 200, 0.3, 0
    for _ in range(runs):
        y, s, error = world(rng)
        c = certify(y, s, delta=delta, side=side)
        misses += not c.lower <= error + 1e-12 <= c.upper + 2e-12
    assert misses <= allowed_misses(runs, delta)


def test_coverage_with_every_bin_at_the_detection_limit() -> None:
    """Residuals of random sign and about the noise of a bin are what hides best from binned errors."""
    rng = np.random.default_rng(106)
    runs, delta, misses = 200, 0.3, 0
    levels = (np.arange(20) + 0.5) / 20
    for _ in range(runs):
        n = 400
        sign = rng.choice([-1.0, 1.0], 20)
        eta = levels + sign * 0.8 * np.sqrt(levels * (1 - levels) / (n / 20))
        which = rng.integers(0, 20, n)
        c = certify(rng.random(n) < eta[which], levels[which], delta=delta, side="upper", variation=math.inf)
        misses += np.abs(eta - levels).mean() > c.upper
    assert misses <= allowed_misses(runs, delta)


def test_an_assumption_that_is_wrong_is_not_covered() -> None:
    """The guarantee is conditional: labels that alternate along the scores break variation=0.01."""
    n = 4000
    s = np.linspace(0.45, 0.55, n)
    y = (np.arange(n) // 100) % 2
    weak = certify(y, s, side="upper", variation=0.01)
    assert weak.upper < 0.45  # the truth is about .5
    honest = certify(y, s, side="upper", variation=40)
    assert honest.upper >= 0.49


# --- tightness: ratios to what a calibrated model must pay


@pytest.mark.parametrize(
    ("n", "limit"),
    [(1_000, 0.112), (10_000, 0.0455), (100_000, 0.0195)],
)
def test_tightness_calibrated(n: int, limit: float) -> None:
    bounds = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        s = rng.random(n)
        bounds.append(certify(rng.random(n) < s, s, side="upper", variation=1).upper)
    assert np.median(bounds) <= limit


@pytest.mark.parametrize(
    ("a", "b", "limit"), [(0.5, 49.5, 0.0060), (0.2, 199.8, 0.0022)], ids=["base rate .01", "base rate .001"]
)
def test_tightness_rare_events(a: float, b: float, limit: float) -> None:
    bounds = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        s = rng.beta(a, b, 100_000)
        bounds.append(certify(rng.random(100_000) < s, s, side="upper", variation=1).upper)
    assert np.median(bounds) <= limit


def test_tightness_miscalibrated_both_ends() -> None:
    uppers, lowers = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        s = rng.random(100_000)
        table = ScoreTable(rng.random(100_000) < s * s, s)
        uppers.append(certify(table, side="upper", variation=1).upper)
        lowers.append(certify(table, side="lower").lower)
    assert np.median(uppers) <= 0.173
    assert np.median(lowers) >= 0.160


@pytest.mark.parametrize(
    ("grid", "a", "b"),
    [("linear", 1.0, 1.0), ("linear", 9.0, 1.0), ("sqrt", 0.2, 199.8), ("sqrt", 0.5, 49.5)],
)
def test_cells_cost_at_most_two_percent(grid, a: float, b: float) -> None:
    ratios = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        s = rng.beta(a, b, 100_000)
        y = rng.random(100_000) < s
        rows = certify(ScoreTable(y, s), side="upper", variation=1).upper
        ratios.append(certify(CellTable(grid=grid).update(y, s), side="upper", variation=1).upper / rows)
    assert np.median(ratios) <= 1.02


# --- the record that comes back


@pytest.fixture(scope="module")
def sample() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(108)
    s = rng.random(2000)
    return (rng.random(2000) < s**2).astype(int), s


def test_terms_sum_to_the_upper_end(sample) -> None:
    for options in (
        {},
        {"side": "upper"},
        {"lipschitz": 3.0},
        {"perturbed": 0.1},
        {"variation": 0.0},
        {"delta": 1e-9},
    ):
        c = certify(*sample, **options)
        assert min(1.0, math.fsum(c.terms.values())) == pytest.approx(c.upper, abs=1e-12)
        assert all(value >= 0.0 for value in c.terms.values())
        assert list(c.terms)[:4] == ["plug_in", "bias", "deviation", "transfer"]


def test_sides(sample) -> None:
    both, up, low = (certify(*sample, side=side) for side in ("both", "upper", "lower"))
    assert (up.lower, low.upper) == (0.0, 1.0)
    assert up.upper < both.upper
    assert low.lower > both.lower > 0.0
    assert low.assumption == "none"
    assert not low.terms
    assert "two-sided" in repr(both)
    assert "one-sided" in repr(up)
    assert "\n" not in repr(both)


def test_smaller_delta_is_wider(sample) -> None:
    widths = [(c.upper, -c.lower) for c in (certify(*sample, delta=d) for d in (0.5, 0.1, 0.01, 1e-4, 1e-8))]
    assert widths == sorted(widths)


def test_more_smoothness_is_tighter(sample) -> None:
    uppers = [certify(*sample, side="upper", variation=v).upper for v in (0.5, 1, 2, 5, 50, math.inf)]
    assert uppers == sorted(uppers)
    alone = certify(*sample, side="upper", lipschitz=2.0)
    joint = certify(*sample, side="upper", lipschitz=2.0, variation=1.0)
    assert joint.upper <= 1.02 * alone.upper  # other bins may be planned, so not exactly below
    assert "Lipschitz" in joint.assumption
    assert "variation" in joint.assumption
    assert "variation" not in alone.assumption
    assert certify(*sample, perturbed=0.25, side="upper", method="plugin").upper == alone.upper
    assert "perturbed" in certify(*sample, perturbed=0.25).assumption


def test_order_of_rows_and_kind_of_labels_do_not_matter(sample) -> None:
    y, s = sample
    base = certify(y, s).to_dict()
    order = np.random.default_rng(109).permutation(len(y))
    assert certify(y[order], s[order]).to_dict() == base
    assert certify(y == 1, s).to_dict() == base
    assert certify(2 * y - 1, s).to_dict() == base
    assert certify(np.where(y == 1, "late", "on time"), s, pos_label="late").to_dict() == base
    assert certify(ScoreTable(y, s)).to_dict() == base


def test_mirror_image(sample) -> None:
    """1 - s for 1 - y: the same error, the same bounds up to which of two equal cuts is taken."""
    y, s = sample
    a, b = certify(y, s), certify(1 - y, 1 - s)
    assert b.upper == pytest.approx(a.upper, rel=0.01)
    assert b.lower == pytest.approx(a.lower, rel=0.02)


def test_ties_do_not_leak_labels() -> None:
    """1,000 rows with one score, labels sorted: bins that split the tie would see perfect separation."""
    y = np.r_[np.zeros(500), np.ones(500)]
    c = certify(y, np.full(1000, 0.5))
    assert c.n_bins == 1
    assert c.terms["plug_in"] == 0.0
    assert c.lower == 0.0
    assert c.upper < 0.06
    mixed = np.r_[np.full(1000, 0.5), np.linspace(0, 1, 1000)]
    labels = np.r_[y, np.random.default_rng(110).random(1000) < np.linspace(0, 1, 1000)]
    assert certify(labels, mixed, variation=1).lower == 0.0


def test_ties_stay_together_among_many_scores() -> None:
    """More distinct scores than groups: cells of consecutive scores, cut between scores only."""
    rng = np.random.default_rng(114)
    s = np.repeat(rng.random(90_000), 3)
    table = ScoreTable(np.tile([0, 1, 1], 90_000), s)
    cells = table.cells()
    assert 32_768 < cells.n.size < 90_000
    assert np.all(cells.hi[:-1] < cells.lo[1:])
    assert np.array_equal(cells.n, 3 * cells.k // 2)
    # Five heavy scores, each with a single label 0, which a mark is likely to miss.
    labels, values = np.tile(np.r_[0, np.ones(11_999)], 5), np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 12_000)
    cells = ScoreTable(np.r_[np.tile([0, 1, 1], 90_000), labels], np.r_[s, values]).cells()
    assert np.all(cells.hi[:-1] < cells.lo[1:])
    assert cells.n[np.isin(cells.lo, values)].tolist() == [12_000] * 5


def test_few_values_need_no_assumption() -> None:
    rng = np.random.default_rng(111)
    s = rng.integers(0, 11, 5000) / 10
    y = rng.random(5000) < s
    c = certify(y, s)
    assert c.assumption == "none"
    assert c.terms["bias"] == 0.0
    assert "variation" in certify(y, s, variation=1).assumption
    assert certify(y, s, variation=math.inf).assumption == "none"
    assert certify(y, s, variation=math.inf, side="upper").upper < certify(y, s, side="upper").upper
    assert certify(CellTable().update(y, s)).assumption == "none"
    t = rng.random(5000)
    assert "variation" in certify(rng.random(5000) < t, t).assumption


def test_no_assumption_on_continuous_scores_is_honest() -> None:
    """Without structure nothing below mean |s - y| can be promised."""
    rng = np.random.default_rng(112)
    s = rng.random(2000)
    y = rng.random(2000) < s
    c = certify(y, s, side="upper", variation=math.inf)
    assert c.assumption == "none"
    assert c.upper > np.abs(s - y).mean()


@pytest.mark.parametrize(
    "rows", [([0], [0.0]), ([1], [0.3]), ([0, 1, 1], [0.2, 0.2, 0.9]), ([1, 1, 1], [1.0, 1.0, 1.0])]
)
def test_tiny_samples_are_valid_and_honest(rows) -> None:
    c = certify(*rows)
    assert 0.0 <= c.lower <= c.upper <= 1.0
    assert c.upper > 0.6
    assert c.n == len(rows[0])


@pytest.mark.parametrize("scale", [0.0, 5e-324, 2e-318, 1e-300, 1.0])
def test_degenerate_scores(scale: float) -> None:
    for s in (np.full(100, scale), np.linspace(0, scale, 100), 1.0 - np.linspace(0, scale, 100)):
        for y in (np.zeros(100), np.ones(100), np.arange(100) % 2):
            c = certify(y, np.clip(s, 0, 1))
            assert 0.0 <= c.lower <= c.upper <= 1.0


def test_perfectly_wrong() -> None:
    c = certify(np.zeros(10_000), np.ones(10_000))
    assert c.upper == 1.0
    assert c.lower > 0.99


def test_a_contradicted_assumption_is_said() -> None:
    """Scores all but equal, labels split between low and high ones: variation 0 cannot be true."""
    s = np.linspace(0.4999, 0.5001, 20_000)
    y = np.where(s < 0.5, np.arange(20_000) % 10 == 0, np.arange(20_000) % 10 != 0)
    c = certify(y, s, variation=0.0)
    assert 0.3 < c.lower < 0.4
    assert c.upper == 1.0 == pytest.approx(sum(c.terms.values()), abs=1e-12)
    assert any("the assumption is false" in note for note in c.warnings)
    assert not certify(y, s, variation=1.0).warnings


def test_groups_keep_one_row_each() -> None:
    rng = np.random.default_rng(113)
    s = np.repeat(rng.random(500), 20)
    y = np.repeat(rng.random(500) < 0.5, 20)
    groups = np.repeat(np.arange(500), 20)
    c = certify(y, s, groups=groups)
    assert (c.n, c.n_dropped) == (500, 9500)
    assert any("500 of 10000" in note for note in c.warnings)
    assert certify(y, s, groups=groups).to_dict() == c.to_dict()
    assert certify(y, s, groups=groups, rng=1).upper == pytest.approx(c.upper, abs=0.02)


def test_the_record_is_frozen_and_plain(sample) -> None:
    c = certify(*sample)
    with pytest.raises(AttributeError):
        c.lower = 0.0
    with pytest.raises(TypeError):
        c.terms["bias"] = 0.0
    assert json.loads(json.dumps(c.to_dict()))["upper"] == c.upper
    again = pickle.loads(pickle.dumps(c))
    assert isinstance(again, Certificate)
    assert again.to_dict() == c.to_dict()
    assert c.confidence == 0.95
    assert c.base_rate == c.n_positive / c.n


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta must"),
        ({"delta": 5}, "delta must.*0.05"),
        ({"side": "upward"}, "side must be one of"),
        ({"method": "magic"}, "method must be one of 'auto', 'plugin'"),
        ({"variation": -1}, "variation must"),
        ({"lipschitz": math.nan}, "lipschitz must"),
        ({"perturbed": 0}, "perturbed must"),
        ({"n_folds": 1}, "n_folds must"),
        ({"groups": [1, 2]}, "groups"),
    ],
)
def test_options_outside_their_domain(sample, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        certify(*sample, **options)


def test_misuse() -> None:
    table = ScoreTable([0, 1], [0.1, 0.9])
    with pytest.raises(TypeError, match="y_prob is missing"):
        certify([0, 1])
    with pytest.raises(TypeError, match="groups must not be given beside a table"):
        certify(table, groups=[0, 1])
    with pytest.raises(TypeError, match="y_prob must not be given"):
        certify(table, [0.1, 0.9])
    with pytest.raises(TypeError, match="sample_weight"):
        certify([0, 1], [0.1, 0.9], sample_weight=[1, 1])
    with pytest.raises(ValueError, match="empty table"):
        certify(CellTable())
