"""Calibration errors without bins against their definitions, and the level of the tests."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, norm

import calcore.table
from calcore import CellTable, ScoreTable, kernel_ce_curve, unbinned
from calcore.kernels import resampling, residuals
from calcore.unbinned import calibration_test, ecce, kernel_ce, smooth_ece

U = 2.0**-53
UNLIKELY = 1e-9
"""Probability of a false failure of one statistical check."""

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 16)), min_size=1, max_size=12)


def columns(rows: Sequence[tuple[int, int]], denominator: int = 16) -> tuple[list[int], list[float]]:
    return [y for y, _ in rows], [s / denominator for _, s in rows]


# --- by definition -----------------------------------------------------------------------------------------


def slow_norm(y: Sequence[int], s: Sequence[float], b: float, points: int = 8001) -> float:
    """Integral of the absolute smoothed residual: signs from a fine grid, areas from error functions."""
    images = math.ceil(5.0 * b) + 1
    centres = np.array([2 * k + sign * x for x in s for k in range(-images, images + 1) for sign in (1, -1)])
    masses = np.repeat([a - x for a, x in zip(y, s, strict=True)], 2 * (2 * images + 1)) / len(y)

    def density(t: float) -> float:
        return float(masses @ np.exp(-0.5 * ((t - centres) / b) ** 2))

    def area(t: float) -> float:
        return math.fsum(
            m * 0.5 * math.erf((t - c) / b / math.sqrt(2.0)) for m, c in zip(masses, centres, strict=True)
        )

    grid = np.linspace(0.0, 1.0, points)
    values = np.zeros(points)
    for m, c in zip(masses, centres, strict=True):
        values += m * np.exp(-0.5 * ((grid - c) / b) ** 2)
    turns = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    cuts = [0.0, *(brentq(density, grid[i], grid[i + 1], xtol=1e-14) for i in turns), 1.0]
    return math.fsum(abs(area(high) - area(low)) for low, high in itertools.pairwise(cuts))


def slow_smooth_ece(y: Sequence[int], s: Sequence[float]) -> float:
    low, high = 0.0, 1.0
    while high - low > 1e-10:
        middle = 0.5 * (low + high)
        if slow_norm(y, s, middle) > middle:
            low = middle
        else:
            high = middle
    return low


def slow_cumulative(y: Sequence[int], s: Sequence[float]) -> list[Fraction]:
    """C after each distinct score, 0 before the first."""
    steps = [Fraction(0)]
    for score in sorted(set(s)):
        rows = [a for a, x in zip(y, s, strict=True) if x == score]
        steps.append(steps[-1] + (sum(rows) - len(rows) * Fraction(score)) / len(y))
    return steps


def slow_statistic(y: Sequence[int], s: Sequence[float], kind: str, n_bins: int = 4) -> Fraction:
    steps = slow_cumulative(y, s)
    if kind == "ks":
        return max(map(abs, steps))
    if kind == "kuiper":
        return max(steps) - min(steps)
    bins = [Fraction(0)] * n_bins
    for a, x in zip(y, s, strict=True):
        bins[min(n_bins - 1, math.floor(Fraction(x) * n_bins))] += a - Fraction(x)
    return sum(map(abs, bins), Fraction(0)) / len(y)


# --- smooth calibration error ------------------------------------------------------------------------------


@settings(max_examples=15)
@given(ROWS)
def test_smooth_ece_is_the_fixed_point(rows: list[tuple[int, int]]) -> None:
    y, s = columns(rows)
    error = 1.3e-8 * float(np.mean(np.abs(np.array(y) - s))) + 2e-10  # as documented, and of the oracle
    assert smooth_ece(y, s) == pytest.approx(slow_smooth_ece(y, s), rel=0, abs=error)


@pytest.mark.parametrize("b", [0.004, 0.02, 0.1, 0.3, 1.0])
def test_norm_at_given_bandwidths(b: float) -> None:
    """At both ends of what one set of cells serves, and with coarse cells."""
    rng = np.random.default_rng(21)
    s = np.concatenate([[0.0, 1.0], rng.random(30), rng.random(8) * 0.01])
    y = (rng.random(40) < s).astype(int)
    gross = float(np.abs(y - s).mean())
    expected = slow_norm(y.tolist(), s.tolist(), b, 20001)
    made = unbinned._residuals(ScoreTable(y, s))
    for least, most in ((b, b), (b / 8.0, b), (b, 1.0)):
        for fineness in (unbinned._COARSE, unbinned._FINE):
            h = 1.0 / fineness
            error = gross * ((h / 2.0) ** 4 / math.sqrt(24.0) + h**3 * math.sqrt(6.0) / 96.0) + 1e-13
            found = unbinned._Smoothed(made, least, most, fineness).norm(b)
            assert found == pytest.approx(expected, rel=0, abs=error)


def test_mean_cosines() -> None:
    """Of the residuals, within Taylor's remainder after the third moment."""
    rng = np.random.default_rng(34)
    s = np.concatenate([[0.0, 1.0], rng.random(200)])
    y = rng.random(202) < s
    smoothed = unbinned._Smoothed(unbinned._residuals(ScoreTable(y, s)), 0.05, 0.3, unbinned._FINE)
    k = np.arange(len(smoothed._means))
    exact = np.cos(math.pi * np.outer(k, s)) @ (y - s) / 202
    remainder = np.abs(y - s).mean() * (math.pi * k / (2.0 * smoothed._m)) ** 4 / 24.0
    assert np.all(np.abs(smoothed._means - exact) <= remainder + 1e-14)


def test_norm_does_not_grow_with_the_bandwidth() -> None:
    rng = np.random.default_rng(22)
    s = rng.random(500)
    smoothed = unbinned._Smoothed(unbinned._residuals(ScoreTable(rng.random(500) < s, s)), 0.005, 1.0, 128)
    norms = [smoothed.norm(b) for b in np.geomspace(0.005, 1.0, 40)]
    assert np.all(np.diff(norms) <= 1e-8)


@pytest.mark.parametrize(
    ("y", "s", "expected"),
    [
        ([1], [0.25], 0.75),
        ([0, 1, 1, 1], [0.5] * 4, 0.25),
        ([1, 0, 1, 0, 0], [0.4] * 5, 0.0),
        ([0] * 4, [0.0, 0.25, 0.5, 1.0], 0.4375),  # residuals of one sign: their mean
        ([0, 1], [0.0, 1.0], 0.0),
        ([0, 1, 1], [0.0, 2e-318, 1.0], 1.0 / 3.0),
        ([1] + [0] * 3 + [0] + [1] * 3, [0.25] * 4 + [0.75] * 4, 0.0),
    ],
)
def test_smooth_ece_by_hand(y: list[int], s: list[float], expected: float) -> None:
    assert smooth_ece(y, s) == pytest.approx(expected, rel=4 * U, abs=U)


@pytest.mark.parametrize("d", [2.0**-12, 2.0**-24, 2.0**-36, U])
def test_opposite_residuals_side_by_side(d: float) -> None:
    """Two pairs of Gaussians of masses 1/16 and -1/16, d apart: the integral is erf(d / (b sqrt(8))) / 4.

    The masses differ by d/2, and the gaps between pairs are cut for the smaller d.
    """
    s = np.repeat([0.25, 0.25 + d, 0.75, 0.75 + d], 4)
    y = [1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0]
    expected = brentq(lambda b: 0.25 * math.erf(d / b / math.sqrt(8.0)) - b, 1e-12, 1.0, xtol=1e-16)
    assert smooth_ece(y, s) == pytest.approx(expected, rel=1e-5, abs=4 * d)


def test_smooth_ece_of_other_orders_and_repeats() -> None:
    rng = np.random.default_rng(23)
    s = np.round(rng.beta(0.5, 0.5, 3000), 3)
    y = (rng.random(3000) < s).astype(int)
    value = smooth_ece(y, s)
    order = rng.permutation(3000)
    assert smooth_ece(y[order], s[order]) == value
    assert smooth_ece(np.tile(y, 3), np.tile(s, 3)) == pytest.approx(value, rel=1e-12)
    assert smooth_ece(1 - y, 1.0 - s) == pytest.approx(value, rel=0, abs=2.6e-8)
    assert abs(y.mean() - s.mean()) <= value <= np.abs(y - s).mean()


@pytest.mark.parametrize("law", ["uniform", "beta", "rare", "ties"])
def test_smooth_ece_from_cells(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the bound that is documented, from the rows themselves."""
    rng = np.random.default_rng(24)
    n = 20_000
    s = {
        "uniform": rng.random(n),
        "beta": rng.beta(0.2, 3.0, n),
        "rare": rng.random(n) * 1e-2,
        "ties": np.round(rng.random(n), 2),
    }[law]
    y = rng.random(n) < s**1.1
    exact = smooth_ece(ScoreTable(y, s))
    for n_cells in (500, 5040, 100_800):
        table = CellTable(n_cells).update(y, s)
        value = smooth_ece(table)
        cells = table.cells()
        which = np.searchsorted(cells.lo, s, side="right") - 1
        moved = (s - (cells.s / cells.n)[which]) ** 2
        bound = 0.484 * float((np.abs(y - s) * moved).mean()) / min(value, exact) ** 2
        assert abs(value - exact) <= bound + 2.6e-8
    assert smooth_ece(y, s) == exact
    monkeypatch.setattr(calcore.table, "_SORTED_ROWS", 1000)
    monkeypatch.setattr(calcore.table, "_SAMPLE", 1000)
    assert abs(smooth_ece(y, s) - exact) <= 0.01 * exact
    monkeypatch.setattr(unbinned, "_GRID_ERROR", 0.0)
    if law != "ties":
        assert smooth_ece(y, s) == exact


def test_bound_from_cells_holds_for_the_rows() -> None:
    """`spread` is at least the sum of abs(y - s) (s - c)^2, but for the rounding of a cell's sums."""
    rng = np.random.default_rng(25)
    s = rng.beta(0.3, 0.3, 5000)
    y = rng.random(5000) < s
    table = CellTable(300).update(y, s)
    cells = table.cells()
    which = np.searchsorted(cells.lo, s, side="right") - 1
    moved = float((np.abs(y - s) * (s - (cells.s / cells.n)[which]) ** 2).sum())
    made = unbinned._residuals(table)
    assert (
        moved * (1.0 - 1e-9)
        <= made.spread
        <= float(((s - (cells.s / cells.n)[which]) ** 2).sum()) * (1.0 + 1e-6)
    )
    firsts = np.bincount(which, (y - s) * (s - (cells.s / cells.n)[which]))
    assert np.allclose(made.firsts, firsts, rtol=0, atol=5000 * 2.0**-28 / 300)


def test_smooth_ece_of_a_calibrated_model_falls() -> None:
    """Noise of n rows is smoothed over sigma, the noise of n sigma rows: sigma^(3/2) falls like n^(-1/2)."""
    rng = np.random.default_rng(26)
    means = []
    for n in (1000, 8000, 64_000):
        s = rng.random((20, n))
        means.append(
            np.mean([smooth_ece(row, own) for row, own in zip(rng.random((20, n)) < s, s, strict=True)])
        )
    for more, less in itertools.pairwise(means):
        assert 1.6 < more / less < 2.4
    s = rng.random(64_000)
    assert smooth_ece(rng.random(64_000) < s**2, s) == pytest.approx(1 / 6, abs=5 * 0.5 / math.sqrt(64_000))


# --- cumulative differences --------------------------------------------------------------------------------


@given(ROWS)
def test_ecce_is_exact(rows: list[tuple[int, int]]) -> None:
    y, s = columns(rows)
    result = ecce(y, s)
    variance = sum(Fraction(x) * (1 - Fraction(x)) for x in s)
    assert result.ks == float(slow_statistic(y, s, "ks"))
    assert result.kuiper == float(slow_statistic(y, s, "kuiper"))
    assert result.scale == pytest.approx(math.sqrt(variance) / len(y), rel=4 * U)
    assert result.ks <= result.kuiper <= 2 * result.ks
    from_cells = ecce(CellTable(1000).update(y, s))  # every score has a cell of its own
    assert (from_cells.ks, from_cells.kuiper) == (result.ks, result.kuiper)
    assert from_cells.scale == pytest.approx(result.scale, rel=4 * U)


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0.0, 1.0)), min_size=1, max_size=30))
def test_ecce_of_any_scores(rows: list[tuple[int, float]]) -> None:
    y, s = [row[0] for row in rows], [row[1] for row in rows]
    result = ecce(y, s)
    for kind in ("ks", "kuiper"):
        assert getattr(result, kind) == pytest.approx(float(slow_statistic(y, s, kind)), rel=0, abs=4 * U)


def test_ecce_does_not_lose_digits() -> None:
    """2,000,000 rows of .1: C must come back to a rounding error of .1 itself, not of their sum."""
    n = 200_000
    s = np.concatenate([np.full(9 * n, 0.1), 0.1 + np.arange(1, n + 1) * 2.0**-50])
    y = np.concatenate([np.arange(9 * n) % 10 == 0, np.zeros(n, bool)])
    exact = slow_step = Fraction(int(y.sum())) - 9 * n * Fraction(0.1)
    slow_step -= sum((Fraction(float(x)) for x in s[9 * n :]), Fraction(0))
    result = ecce(y, s)
    span = max(exact, Fraction(0), slow_step) - min(exact, Fraction(0), slow_step)
    assert result.kuiper == pytest.approx(float(span / len(s)), rel=0, abs=2 * U)


def staying(a: float, b: float) -> float:
    """P(-a < B < b on [0, 1]), by reflection."""
    width = a + b
    return math.fsum(
        norm.cdf(b - 2 * k * width)
        - norm.cdf(-a - 2 * k * width)
        - norm.cdf(2 * k * width - b)
        + norm.cdf(2 * k * width - a - 2 * b)
        for k in range(-12, 13)
    )


@pytest.mark.parametrize("x", [0.3, 0.7, 0.99, 1.0, 1.5, 2.5, 4.0])
def test_law_of_the_largest(x: float) -> None:
    assert unbinned._largest_exceeds(x) == pytest.approx(1.0 - staying(x, x), rel=0, abs=1e-14)


@pytest.mark.parametrize("r", [0.8, 1.3, 1.99, 2.0, 3.0, 4.5])
def test_law_of_the_range(r: float) -> None:
    """P(range < r): the maximum lies at b, and the minimum above b - r."""
    step = 1e-4
    inside, _ = quad(
        lambda b: (staying(r - b, b + step) - staying(r - b, max(b - step, 0.0))) / (step + min(b, step)),
        0.0,
        r,
        epsabs=1e-9,
        points=[step],
    )
    assert unbinned._range_exceeds(r) == pytest.approx(1.0 - inside, rel=0, abs=2e-6)


def test_moments_of_the_laws() -> None:
    """E max = sqrt(pi/2); E range = sqrt(8/pi), E range^2 = 4 ln 2 (Feller 1951)."""

    def moment(tail: Callable[[float], float], power: int) -> float:
        return sum(
            quad(lambda x: power * x ** (power - 1) * tail(x), low, high, epsabs=1e-13)[0]
            for low, high in itertools.pairwise([0.0, 0.1, 1.0, 2.0, 4.0, 12.0])
        )

    assert moment(unbinned._largest_exceeds, 1) == pytest.approx(math.sqrt(math.pi / 2.0), rel=1e-12)
    assert moment(unbinned._range_exceeds, 1) == pytest.approx(math.sqrt(8.0 / math.pi), rel=1e-12)
    assert moment(unbinned._range_exceeds, 2) == pytest.approx(4.0 * math.log(2.0), rel=1e-12)


@pytest.mark.parametrize(
    ("tail", "factor"), [(unbinned._largest_exceeds, 4.0), (unbinned._range_exceeds, 8.0)]
)
def test_tails(tail: Callable[[float], float], factor: float) -> None:
    for x in (8.0, 15.0, 37.0):  # the next terms are below 1e-20 of the first
        assert tail(x) == pytest.approx(factor * norm.sf(x), rel=1e-13)
    assert tail(0.0) == tail(1e-300) == tail(0.11) == 1.0
    assert tail(60.0) == tail(math.inf) == 0.0
    values = [tail(x) for x in np.linspace(0.05, 6.0, 400)]
    assert np.all(np.diff(values) <= 1e-15)
    for switch in (1.0, 2.0):
        assert tail(switch) == pytest.approx(tail(math.nextafter(switch, 0.0)), rel=1e-13)


def test_ecce_from_wide_cells() -> None:
    """C after whole cells: never larger, and smaller by at most what a cell can add."""
    rng = np.random.default_rng(35)
    s = rng.random(4000)
    y = rng.random(4000) < s**1.2
    exact, found = ecce(y, s), ecce(CellTable(50).update(y, s))
    most = CellTable(50).update(y, s).cells().n.max() / 4000
    for name in ("ks", "kuiper"):
        assert getattr(exact, name) - 2.0 * most <= getattr(found, name) <= getattr(exact, name) + 4 * U
    assert found.scale == pytest.approx(exact.scale, rel=1e-9)
    assert found.kuiper_p_value >= exact.kuiper_p_value * (1.0 - 1e-9)


def test_certain_scores() -> None:
    right, wrong = ecce([0, 1, 1], [0.0, 1.0, 1.0]), ecce([0, 1, 0], [0.0, 1.0, 1.0])
    assert (right.scale, right.ks_p_value, right.kuiper_p_value) == (0.0, 1.0, 1.0)
    assert (wrong.scale, wrong.ks_p_value, wrong.kuiper_p_value) == (0.0, 0.0, 0.0)


@pytest.mark.slow
def test_asymptotic_p_values_err_on_the_safe_side() -> None:
    rng = np.random.default_rng(27)
    repeats, level = 2000, 0.05
    s = np.sort(rng.random(1000))
    found = [ecce(rng.random(1000) < s, s) for _ in range(repeats)]
    for name in ("ks_p_value", "kuiper_p_value"):
        rejected = sum(getattr(result, name) <= level for result in found)
        assert rejected <= binom.isf(UNLIKELY, repeats, level)
        assert rejected >= binom.ppf(UNLIKELY, repeats, 0.5 * level)


# --- test by simulation ------------------------------------------------------------------------------------


@given(ROWS, st.sampled_from(["ks", "kuiper", "ece"]))
def test_statistics(rows: list[tuple[int, int]], kind: Any) -> None:
    y, s = columns(rows)
    result = calibration_test(y, s, statistic=kind, n_resamples=1, n_bins=4, n_threads=1)
    assert result.value == float(slow_statistic(y, s, kind))
    assert result.p_value in (0.5, 1.0)


@pytest.mark.parametrize("kind", ["ks", "kuiper", "ece"])
@pytest.mark.parametrize(
    "s", [[0.25, 0.25, 0.5, 0.75, 0.875, 1.0], [0.5] * 6, [0.0, 0.0625, 0.0625, 0.5, 0.5, 0.5]]
)
def test_p_value_against_enumeration(s: list[float], kind: Any) -> None:
    """The scores have short binary expansions, so equal statistics are equal as doubles."""
    law = []
    for y in itertools.product((0, 1), repeat=len(s)):
        chance = math.prod(
            (Fraction(x) if a else 1 - Fraction(x) for a, x in zip(y, s, strict=True)), start=Fraction(1)
        )
        law.append((slow_statistic(y, s, kind), chance, y))
    draws = 4000
    for value, _, y in [row for row in law if row[1] > 0][::7]:
        exact = float(sum(chance for other, chance, _ in law if other >= value))
        reached = (
            round(calibration_test(y, s, statistic=kind, n_bins=4, n_resamples=draws).p_value * (draws + 1))
            - 1
        )
        assert binom.ppf(UNLIKELY, draws, exact) <= reached <= binom.isf(UNLIKELY, draws, exact)


@pytest.mark.parametrize("kind", ["ks", "kuiper", "ece"])
def test_level_is_exact(kind: Any) -> None:
    """P(p <= a) = a for a (B + 1) whole and distinct scores; each run has a seed of its own."""
    rng = np.random.default_rng(28)
    repeats = 1500
    p = []
    for seed in range(repeats):
        s = rng.random(25)
        y = rng.random(25) < s
        p.append(calibration_test(y, s, statistic=kind, n_resamples=19, rng=seed, n_threads=1).p_value)
    for a in (0.05, 0.1, 0.5, 0.9):
        rejected = int(np.count_nonzero(np.array(p) <= a + U))
        assert binom.ppf(UNLIKELY, repeats, a) <= rejected <= binom.isf(UNLIKELY, repeats, a)


def test_level_with_ties_is_not_exceeded() -> None:
    rng = np.random.default_rng(29)
    repeats = 1000
    p = []
    for seed in range(repeats):
        y = rng.random(8) < 0.5
        p.append(calibration_test(y, [0.5] * 8, n_resamples=19, rng=seed, n_threads=1).p_value)
    for a in (0.05, 0.1, 0.5):
        assert np.count_nonzero(np.array(p) <= a + U) <= binom.isf(UNLIKELY, repeats, a)


def test_power() -> None:
    rng = np.random.default_rng(30)
    s = rng.random(2000)
    y = rng.random(2000) < s**2
    for kind in ("ks", "kuiper", "ece"):
        result = calibration_test(y, s, statistic=kind, n_resamples=199)
        assert result.p_value == 1 / 200


def test_certain_labels() -> None:
    assert calibration_test([0, 1, 1], [0.0, 1.0, 1.0]).p_value == 1.0
    assert calibration_test([0, 1, 0], [0.0, 1.0, 1.0], n_resamples=99).p_value == 0.01


def test_equal_statistics_count() -> None:
    """With one row and s = 1/2 the statistic is always 1/2: every resample reaches it."""
    for kind in ("ks", "kuiper", "ece"):
        assert calibration_test([1], [0.5], statistic=kind).p_value == 1.0


def test_result_does_not_depend_on_threads_or_order() -> None:
    rng = np.random.default_rng(31)
    s = np.round(rng.random(3000), 2)
    y = rng.random(3000) < s
    order = rng.permutation(3000)
    expected = calibration_test(y, s, n_threads=1).p_value
    assert 0.001 < expected < 1.0
    for threads in (2, 3, 4, None):
        assert calibration_test(y[order], s[order], n_threads=threads).p_value == expected
    assert calibration_test(ScoreTable(y, s)).p_value == expected
    assert calibration_test(y, s, rng=1).p_value != expected
    stream = np.random.default_rng(0)
    assert calibration_test(y, s, rng=stream).p_value != calibration_test(y, s, rng=stream).p_value


# --- compiled loops ----------------------------------------------------------------------------------------


def rotated(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & (2**64 - 1)


def slow_bits(state: list[int]) -> int:
    """xoshiro256++ in Python's integers; `state` is moved on."""
    bits = (rotated((state[0] + state[3]) & (2**64 - 1), 23) + state[0]) & (2**64 - 1)
    t = state[1] << 17 & (2**64 - 1)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = rotated(state[3], 45)
    return bits


def test_generator_of_the_oracle() -> None:
    """The first outputs that the generator's authors' code gives from the state 1, 2, 3, 4."""
    state = [1, 2, 3, 4]
    assert [slow_bits(state) for _ in range(4)] == [41943041, 58720359, 3588806011781223, 3591011842654386]


def drawn(scores: list[float], counts: list[int], seed: list[int]) -> list[int]:
    out = np.empty(len(scores), np.int64)
    thresholds, rows = unbinned._thresholds(np.array(scores)), np.array(counts, np.int64)
    words = np.array(seed, np.uint64)
    for array in (thresholds, rows, words):
        array.flags.writeable = False
    with np.errstate(over="ignore"):
        resampling.draw(thresholds, rows, words, out)
    return [int(k) for k in out]


@pytest.mark.kernels
def test_draws_are_those_of_the_generator() -> None:
    """Single rows compare one word each; rows of a tie compare bit by bit, from the highest on."""
    scores, counts = [0.0, 0.25, 0.3, 0.7, 0.9, 1.0], [5, 3, 150, 11, 12, 64]
    state = [2**63 + 5, 17, 2**40, 2**64 - 3]
    found = drawn(scores, counts, state)
    expected = []
    for score, count in zip(scores, counts, strict=True):
        threshold = int(Fraction(score) * 2**64)
        if score == 1.0:
            expected.append(count)
        elif count < 12:
            expected.append(sum(slow_bits(state) < threshold for _ in range(count)))
        else:
            total = 0
            for begin in range(0, count, 64):
                lanes = min(64, count - begin)
                undecided, below = (1 << lanes) - 1, 0
                bits = [int(bit) for bit in f"{threshold:064b}".rstrip("0")]
                for bit in bits:
                    if not undecided:
                        break
                    word = slow_bits(state)
                    below |= undecided & ~word if bit else 0
                    undecided &= word if bit else ~word
                total += below.bit_count()
            expected.append(total)
    assert found == expected


@pytest.mark.kernels
def test_draws_follow_their_scores() -> None:
    rng = np.random.default_rng(32)
    scores, counts, repeats = [0.0, 2.0**-70, 0.001, 0.3, 0.5, 0.999, 1.0], [40, 70, 100, 7, 65, 200, 30], 60
    total = np.sum(
        [drawn(scores, counts, rng.integers(1, 2**63, 4).tolist()) for _ in range(repeats)], axis=0
    )
    for score, count, hits in zip(scores, counts, total, strict=True):
        n = count * repeats
        assert binom.ppf(UNLIKELY, n, score) <= hits <= binom.isf(UNLIKELY, n, score)


@pytest.mark.kernels
def test_thresholds() -> None:
    scores = np.array([0.0, 5e-324, 2.0**-64, 0.5, 1.0 - U, 1.0])
    assert unbinned._thresholds(scores).tolist() == [0, 0, 1, 2**63, 2**64 - 2**11, 2**64 - 1]


@pytest.mark.kernels
@settings(max_examples=30)
@given(st.lists(st.floats(-1.0, 1.0).map(lambda x: x if abs(x) > 1e-9 else 0.0), min_size=3, max_size=3))
def test_areas_of_parabolas(coefficients: list[float]) -> None:
    """Exact for parabolas: roots by NumPy, without tiny coefficients, areas by the antiderivative."""
    a, b, c = coefficients
    areas = np.empty(1)
    residuals.absolute_areas(np.array([c, a + b + c]), np.array([a / 3.0 + b / 2.0 + c]), areas)
    roots = np.roots([a, b, c])
    cuts = [0.0, *sorted(float(r.real) for r in roots if r.imag == 0.0 and 0.0 < r.real < 1.0), 1.0]
    area = [x * (c + x * (b / 2.0 + x * a / 3.0)) for x in cuts]
    assert areas[0] == pytest.approx(sum(abs(q - p) for p, q in itertools.pairwise(area)), rel=0, abs=1e-7)


@pytest.mark.kernels
def test_moments_in_cells() -> None:
    """Rows at known places, with what stands beside them, in an axis whose gaps are cut."""
    places, sums, firsts = (
        np.array([0.25, 0.5, 0.53125]),
        np.array([1.0, -2.0, 3.0]),
        np.array([0.5, 0.0, -1.0]),
    )
    assert residuals.shortened(places, 3.0) == 1.0
    assert residuals.shortened(places, 0.0625) == 0.0625 + 0.125 + 0.03125 + 0.0625
    out = np.zeros((4, 4))
    residuals.moments(places, sums, firsts, 3.0, 1.0, out)
    assert out[0].tolist() == [0.0, 1.0, 1.0, 0.0]
    # u = -1/2 in cell 1; u = -1/2 and -3/8 in cell 2; firsts times 4 cells
    assert out[1].tolist() == [0.0, -0.5 + 2.0, 1.0 - 9 / 8 - 4.0, 0.0]
    assert out[2].tolist() == [0.0, 0.25 - 2.0, -0.5 + 27 / 64 + 3.0, 0.0]
    assert out[3].tolist() == [0.0, -0.125 + 1.5, 0.25 - 81 / 512 - 3 * 4 * 9 / 64, 0.0]
    cut = np.zeros((4, 9))
    residuals.moments(places, sums, np.empty(0), 0.0625, 0.28125, cut)  # at 2, 6 and 7 of 9 cells
    assert np.flatnonzero(cut[0]).tolist() == [2, 6, 7]


@pytest.mark.kernels
def test_running_sums_keep_their_digits() -> None:
    values = np.array([1e16, 1.0, -1e16, 1.0, 2.0**-30] * 3)
    exact = list(itertools.accumulate(map(Fraction, values.tolist())))
    assert residuals.running_sums(values).tolist() == [float(x) for x in exact]
    assert residuals.running_sums(np.empty(0)).size == 0


# --- kernel calibration error ------------------------------------------------------------------------------


def slow_kernel_ce(y: Sequence[int], s: Sequence[float], w: Sequence[float], b: float) -> float:
    total = 0.0
    for x, own in zip(s, w, strict=True):
        kernel = [v * math.exp(-0.5 * ((x - z) / b) ** 2) for z, v in zip(s, w, strict=True)]
        total += own * abs(math.fsum(k * a for k, a in zip(kernel, y, strict=True)) / math.fsum(kernel) - x)
    return total / math.fsum(w)


@given(ROWS, st.sampled_from([0.01, 0.1, 1.0]), st.data())
def test_kernel_ce_by_definition(rows: list[tuple[int, int]], b: float, data: st.DataObject) -> None:
    y, s = columns(rows)
    assert kernel_ce(y, s, bandwidth=b) == pytest.approx(
        slow_kernel_ce(y, s, [1.0] * len(y), b), rel=0, abs=1e-10
    )
    w = data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y)))
    if not any(w):
        with pytest.raises(ValueError, match=r"^sample_weight must not be all zero$"):
            kernel_ce(y, s, bandwidth=b, sample_weight=w)
        return
    expected = kernel_ce(np.repeat(y, w), np.repeat(s, w), bandwidth=b)
    assert kernel_ce(y, s, bandwidth=b, sample_weight=w) == pytest.approx(expected, rel=0, abs=1e-10)
    scaled = kernel_ce(y, s, bandwidth=b, sample_weight=np.array(w) * 1e300)
    assert scaled == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("window", ["box", "epanechnikov", "gaussian"])
def test_kernel_ce_is_a_point_of_the_curve(window: Any) -> None:
    rng = np.random.default_rng(33)
    s = rng.random(500)
    y = rng.random(500) < s
    assert kernel_ce(y, s, bandwidth=0.05, window=window) == kernel_ce_curve(y, s, [0.05], window=window)[0]


def test_default_bandwidth() -> None:
    """sd and quartiles by hand: 0, 1/4, ..., 1 has variance 1/8, quartiles 1/4 and 3/4."""
    s = [0.0, 0.25, 0.5, 0.75, 1.0]
    b = 0.9 * min(math.sqrt(0.125), 0.5 / 1.349) * 5**-0.2
    assert unbinned._rule_of_thumb(np.array(s)) == pytest.approx(b, rel=1e-15)
    y = [0, 1, 0, 1, 1]
    assert kernel_ce(y, s) == pytest.approx(kernel_ce(y, s, bandwidth=b), rel=1e-12)
    assert kernel_ce(y[::-1], s[::-1]) == kernel_ce(y, s)
    weighted = kernel_ce([*y, 1], [*s, 0.5], sample_weight=[2] * 5 + [0])  # a row of weight 0 is absent
    assert weighted == pytest.approx(kernel_ce(y, s), rel=1e-12)
    heavy = np.array([0.0] + [0.5] * 6 + [1.0])  # quartiles agree: sd alone
    assert unbinned._rule_of_thumb(heavy) == pytest.approx(0.9 * 0.25 * 8**-0.2, rel=1e-15)


@pytest.mark.parametrize(
    ("y", "s", "expected"),
    [
        ([1, 0, 1, 0, 0], [0.4] * 5, 0.0),
        ([1], [0.25], 0.75),
        ([0, 1], [0.5, math.nextafter(0.5, 1.0)], 0.0),
        ([0, 1, 1, 0], [0.0, 5e-324, 2e-318, 0.0], 0.5),
    ],
)
def test_default_bandwidth_is_never_zero(y: list[int], s: list[float], expected: float) -> None:
    assert unbinned._rule_of_thumb(np.sort(s)) >= 2.0**-30
    assert kernel_ce(y, s) == pytest.approx(expected, rel=0, abs=1e-13)
    assert kernel_ce(y, s, sample_weight=[3] * len(y)) == pytest.approx(expected, rel=0, abs=1e-13)


# --- input and results -------------------------------------------------------------------------------------

FUNCTIONS: list[Callable[..., Any]] = [kernel_ce, smooth_ece, ecce, calibration_test]


def plain(result: Any) -> Any:
    return result if isinstance(result, float) else result.to_dict()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_input_of_any_kind(function: Any) -> None:
    s = np.array([0.25, 0.5, 1.0, 0.0, 0.5])
    y = np.array([0, 1, 1, 0, 0])
    frozen, labels = s.copy(), y.copy()
    frozen.flags.writeable = labels.flags.writeable = False
    expected = plain(function(y, s))
    for scores in (
        s.tolist(),
        frozen,
        s.astype(np.float32),
        s.astype(np.float16),
        s.astype(">f8"),
        np.repeat(s, 2)[::2],
        np.asfortranarray(np.column_stack([s, s]))[:, 1],
        pd.Series(s),
        pl.Series(s),
    ):
        for given_ in (y.tolist(), labels, y.astype(bool), 2 * y - 1, y.astype(np.int8)):
            assert plain(function(given_, scores)) == expected
    assert plain(function(np.where(y, "late", "no"), s, pos_label="late")) == expected
    assert plain(function([0, 1, 1, 0, 0], [-1e-12, 0.5, 1.0 + 1e-12, 0.0, 0.5])) is not None
    assert np.array_equal(s, frozen)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("y", "s", "message"),
    [
        ([0, 1], [0.2, 1.2], r"^y_prob must lie in \[0, 1\]; got 1.2 at index 1"),
        ([0, 1], [0.2, math.nan], r"^y_prob .*nan at index 1"),
        ([0, 1, 1], [0.2, 0.3], r"^y_true and y_prob must have the same length; got 3 and 2$"),
        ([], [], r"^y_true and y_prob must have at least one row; got 0$"),
        ([0, 2], [0.2, 0.3], r"^y_true must hold labels 0/1"),
    ],
)
def test_refused_rows(function: Any, y: list[int], s: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(y, s)


def test_values_at_the_least_bandwidth_end_the_search():
    """Residuals of one sign: the value is the mean residual, where rounding decides on which side it lies."""
    assert smooth_ece([0, 0, 0, 0, 1], [0.22, 0.1, 0.62, 0.02, 0.64]) == pytest.approx(0.12, rel=1e-12)
    assert smooth_ece([1, 0], [0.2999999999999999, 0.30000000000000004]) == pytest.approx(0.2, rel=1e-12)
    rng = np.random.default_rng(77)
    for n in (2, 5, 20, 50):
        for _ in range(60):
            for scores in (np.round(rng.random(n), 2), 0.5 + rng.normal(0.0, 1e-13, n)):
                labels = rng.random(n) < scores**2
                value = smooth_ece(labels, scores)
                least = abs(float(labels.mean() - scores.mean()))
                assert least * (1 - 1e-12) <= value <= float(np.abs(labels - scores).mean()) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("labels", "scores", "value"),
    [
        ([0, 0], [0.0, 1e-300], 5e-301),
        ([0], [5e-324], 5e-324),
        ([1, 1, 0], [1.0, 1.0, 2.2e-169], 2.2e-169 / 3),
        ([0, 0], [0.0, 1e-170], 5e-171),
        ([1], [5e-324], 1.0),
        ([0, 1], [0.0, 5e-324], 0.5),
    ],
)
def test_tiny_scores_have_tiny_errors(labels, scores, value):
    assert smooth_ece(labels, scores) == pytest.approx(value, rel=1e-12)
    assert smooth_ece(CellTable().update(labels, scores)) == pytest.approx(value, rel=1e-12, abs=1e-16)


CELLS = CellTable().update([0, 1], [0.2, 0.7])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: kernel_ce([0], [0.2], bandwidth=0.0), ValueError, r"^bandwidth must be a finite number > 0"),
        (lambda: kernel_ce([0], [0.2], window="cosine"), ValueError, r"^window must be one of 'box'"),
        (
            lambda: kernel_ce([0], [0.2], sample_weight=[-1]),
            ValueError,
            r"^sample_weight must be finite and >= 0",
        ),
        (lambda: smooth_ece([0, 1]), TypeError, r"^y_prob is missing"),
        (
            lambda: smooth_ece(CellTable()),
            ValueError,
            r"^y_true must hold at least one row; got an empty table$",
        ),
        (lambda: ecce(CellTable()), ValueError, r"^y_true must hold at least one row; got an empty table$"),
        (lambda: ecce(ScoreTable([0], [0.2]), [0.2]), TypeError, r"^y_prob must not be given beside a table"),
        (lambda: smooth_ece(ScoreTable([0], [0.2]), pos_label=1), TypeError, r"^pos_label must not be given"),
        (lambda: calibration_test(CELLS), TypeError, r"^y_true must hold single rows"),  # type: ignore[arg-type]
        (lambda: calibration_test(ScoreTable([0], [0.2]), [0.2]), TypeError, r"^y_prob must not be given"),
        (
            lambda: calibration_test([0], [0.2], statistic="ace"),
            ValueError,
            r"^statistic must be one of 'kuiper'",
        ),
        (
            lambda: calibration_test([0], [0.2], n_resamples=0),
            ValueError,
            r"^n_resamples must be a whole number >= 1",
        ),
        (
            lambda: calibration_test([0], [0.2], n_resamples=10**7),
            ValueError,
            r"^n_resamples must be at most 10\^6",
        ),
        (lambda: calibration_test([0], [0.2], n_bins=0), ValueError, r"^n_bins must be a whole number >= 1"),
        (lambda: calibration_test([0], [0.2], rng=-1), ValueError, r"^rng must be a seed >= 0"),
        (
            lambda: calibration_test([0], [0.2], n_threads=0),
            ValueError,
            r"^n_threads must be a whole number >= 1",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_more_bins_than_anybody_needs() -> None:
    assert calibration_test([0, 1], [0.25, 0.75], statistic="ece", n_bins=2**20).value == 0.25


def test_bins_have_exact_edges() -> None:
    """.3 is in bin 3 of 10, .29 in bin 2: gaps .3 and -.71; in one bin they would cancel to .41."""
    result = calibration_test([0, 1], [0.3, 0.29], statistic="ece", n_bins=10)
    assert result.value == pytest.approx((0.3 + 0.71) / 2, rel=4 * U)


def test_results() -> None:
    found = ecce([0, 1], [0.5, 0.5])
    assert repr(found) == "Ecce(ks=0 (p=1), kuiper=0 (p=1), n=2)"
    tested = calibration_test([0, 1], [0.5, 0.5])
    assert repr(tested) == "CalibrationTest(p=1, kuiper=0, n=2)"
    for result in (found, tested):
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()
        with pytest.raises(AttributeError):
            result.n = 3  # type: ignore[misc]


def test_one_compiled_version_each() -> None:
    """After every kind of input that the tests above pass."""
    s, y = [0.25, 0.5, 1.0], [0, 1, 1]
    for scores in (s, np.array(s), np.array(s, np.float32), np.repeat(s, 2)[::2]):
        for function in FUNCTIONS:
            function(y, scores)
        smooth_ece(CellTable().update(y, scores))
        ecce(CellTable().update(y, scores))
        calibration_test(y, scores, statistic="ece")
    for kernel in (
        residuals.pool_residuals,
        residuals.cumulative_extremes,
        residuals.shortened,
        resampling.count_reached,
    ):
        assert len(getattr(kernel, "signatures", [0])) == 1, kernel
