"""Binned calibration errors against their definitions in rational arithmetic."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from calcore import BinCounts, CellTable, ScoreTable, _validate
from calcore.binned import (
    calibration_table,
    classwise_ece,
    confidence_ece,
    debiased_ece,
    debiased_squared_ece,
    ece,
    ece_curve,
    full_ece,
    mce,
)
from calcore.kernels import bin_sums, hashing, sorting
from calcore.table import partition

STRATEGIES = ("uniform", "quantile", "min_count")
NORMS = ("l1", "l2", "max", "avg")
TINY = 2.0**-50

# --- the oracle


def bins_by_rule(scores, weights, n_bins, strategy):
    """Lists of rows, one per bin, from the rule's own words; no bin is empty."""
    n = len(scores)
    if strategy == "uniform":
        edges = [float(Fraction(j, n_bins)) for j in range(n_bins)]
        where = [max(j for j in range(n_bins) if edges[j] <= s) for s in scores]
        return [rows for j in range(n_bins) if (rows := [i for i in range(n) if where[i] == j])]
    total = sum(map(Fraction, weights))
    bins, here, passed = [], [], Fraction(0)
    for score in sorted(set(scores)):
        tied = [i for i in range(n) if scores[i] == score and weights[i] > 0]
        if not tied:
            continue
        here += tied
        before, passed = passed, passed + sum(Fraction(weights[i]) for i in tied)
        if strategy == "quantile":  # does a mark j / n_bins lie in (before, passed]?
            closes = passed * n_bins // total > before * n_bins // total
        else:
            closes = sum(Fraction(weights[i]) for i in here) * n_bins >= total
        if closes:
            bins.append(here)
            here = []
    if here:
        if strategy == "min_count":
            bins[-1] += here
        else:
            bins.append(here)
    return bins


def ece_by_definition(labels, scores, bins, norm, weights):
    total = sum(Fraction(weights[i]) for rows in bins for i in rows)
    parts = []
    for rows in bins:
        weight = sum(Fraction(weights[i]) for i in rows)
        if weight:
            off = sum(Fraction(weights[i]) * (int(labels[i]) - Fraction(scores[i])) for i in rows)
            parts.append((weight, abs(off / weight)))
    if norm == "l1":
        return float(sum(w * g for w, g in parts) / total)
    if norm == "l2":
        return math.sqrt(sum(w * g * g for w, g in parts) / total)
    return float(max(g for _, g in parts) if norm == "max" else sum(g for _, g in parts) / len(parts))


TIED = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0, 1 / 3, 2 / 3, 1e-300])
SCORES = st.one_of(TIED, st.floats(0.0, 1.0))
ROWS = st.lists(st.tuples(st.booleans(), SCORES, st.integers(0, 3)), min_size=1, max_size=30)

# --- ece


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=150, deadline=None)
@given(ROWS, st.integers(1, 40))
def test_equals_the_definition(strategy, rows, n_bins):
    labels, scores, _ = (list(column) for column in zip(*rows, strict=True))
    assume(len(set(scores)) > 1)
    ones = [1] * len(rows)
    bins = bins_by_rule(scores, ones, n_bins, strategy)
    table = ScoreTable(labels, scores)
    for norm in NORMS:
        expected = ece_by_definition(labels, scores, bins, norm, ones)
        tolerance = 2e-8 if norm == "l2" else TINY  # the root of an error of 2^-53 squared terms
        assert ece(labels, scores, n_bins=n_bins, strategy=strategy, norm=norm) == pytest.approx(
            expected, rel=1e-13, abs=tolerance
        )
        assert ece(table, n_bins=n_bins, strategy=strategy, norm=norm) == pytest.approx(
            expected, rel=1e-13, abs=tolerance
        )
    found = calibration_table(labels, scores, n_bins=n_bins, strategy=strategy)
    assert found.counts[found.counts > 0].tolist() == [len(b) for b in bins]
    assert found.edges[0] == 0
    assert found.edges[-1] == 1
    again = calibration_table(labels, scores, edges=found.edges)
    assert again.counts.tolist() == found.counts.tolist(), "edges name the same bins"


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=150, deadline=None)
@given(ROWS, st.integers(1, 12))
def test_weights_are_repeated_rows(strategy, rows, n_bins):
    labels, scores, weights = (list(column) for column in zip(*rows, strict=True))
    repeated = [(y, s) for y, s, w in rows for _ in range(w)]
    assume(len({s for _, s in repeated}) > 1)
    bins = bins_by_rule(scores, weights, n_bins, strategy)
    for norm in NORMS:
        options = {"n_bins": n_bins, "strategy": strategy, "norm": norm}
        weighted = ece(labels, scores, sample_weight=weights, **options)
        expected = ece_by_definition(labels, scores, bins, norm, weights)
        tolerance = 2e-8 if norm == "l2" else TINY
        assert weighted == pytest.approx(expected, rel=1e-13, abs=tolerance)
        unweighted = ece(*zip(*repeated, strict=True), **options)
        if norm != "avg" or strategy != "uniform":
            assert weighted == pytest.approx(unweighted, rel=1e-13, abs=tolerance)
        thirds = ece(labels, scores, sample_weight=np.array(weights) * 0.375, **options)
        assert thirds == pytest.approx(weighted, rel=1e-13, abs=tolerance), (
            "the scale of weights says nothing"
        )


@settings(max_examples=100, deadline=None)
@given(ROWS, st.lists(st.floats(0.001, 0.999), max_size=8, unique=True))
def test_given_edges(rows, inner):
    labels, scores, weights = (list(column) for column in zip(*rows, strict=True))
    assume(len(set(scores)) > 1)
    edges = [0.0, *sorted(inner), 1.0]
    where = [max(j for j in range(len(edges) - 1) if edges[j] <= s) for s in scores]
    bins = [[i for i in range(len(rows)) if where[i] == j] for j in range(len(edges) - 1)]
    found = calibration_table(labels, scores, edges=edges)
    assert found.counts.tolist() == list(map(len, bins))
    for w in ([1] * len(rows), weights):
        if not any(w) or len({s for s, m in zip(scores, w, strict=True) if m}) < 2:
            continue
        expected = ece_by_definition(labels, scores, [b for b in bins if b], "l1", w)
        assert ece(labels, scores, edges=edges, sample_weight=w) == pytest.approx(expected, abs=TINY)


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 1 / 299, 1e-3, 7.3])
@pytest.mark.parametrize("strategy", ["quantile", "min_count"])
def test_equal_weights_make_the_bins_of_no_weights(strategy, weight):
    """Marks that a cumulative weight reaches but for rounding are reached."""
    for n in (6, 8, 12, 100, 299, 5000):
        scores = (np.arange(n) + 0.5) / n
        for n_bins in (2, 3, 5, 6, 10, 15):
            plain = calibration_table(scores > 2, scores, n_bins=n_bins, strategy=strategy)
            equal = calibration_table(
                scores > 2, scores, n_bins=n_bins, strategy=strategy, sample_weight=np.full(n, weight)
            )
            assert equal.counts.tolist() == plain.counts.tolist()


def test_weights_and_a_third_of_them():
    rng = np.random.default_rng(34)
    for _ in range(200):
        n = int(rng.integers(3, 60))
        scores, labels, weights = np.round(rng.random(n), 2), rng.random(n) < 0.5, rng.integers(1, 6, n)
        for strategy in ("quantile", "min_count"):
            one, third = (
                calibration_table(
                    labels, scores, n_bins=5, strategy=strategy, sample_weight=w
                ).counts.tolist()
                for w in (weights, weights / 3)
            )
            assert one == third


def test_running_sums_do_not_drift():
    masses = np.full(1_000_000, 0.1)
    masses.flags.writeable = False
    passed = np.empty(1_000_000)
    bin_sums.running(masses, passed)
    exact = np.arange(1, 1_000_001) * Fraction(0.1)
    assert all(abs(Fraction(passed[i]) / exact[i] - 1) < Fraction(1, 2**52) for i in range(0, 1_000_000, 997))


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-200, 1e200, 1e307])
def test_weights_of_any_size(unit):
    labels, scores, weights = [0, 1, 1, 0], [0.5, 0.25, 0.8, 0.9], np.array([1.0, 2.0, 1.0, 4.0])
    for strategy in STRATEGIES:
        expected = ece(labels, scores, n_bins=2, strategy=strategy, sample_weight=weights)
        found = ece(labels, scores, n_bins=2, strategy=strategy, sample_weight=weights * unit)
        assert found == pytest.approx(expected, rel=1e-12)


def test_rows_of_weight_0_are_absent():
    labels, scores, weights = [1, 0, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.9], [1, 0, 1, 0, 2]
    for strategy in STRATEGIES:
        found = calibration_table(labels, scores, n_bins=2, strategy=strategy, sample_weight=weights)
        there = calibration_table([1, 0, 1, 1], [0.1, 0.4, 0.9, 0.9], n_bins=2, strategy=strategy)
        assert found.edges.tolist() == there.edges.tolist()
        assert found.n == 3
        assert found.share.tolist() == there.share.tolist()


def test_every_edge_and_its_neighbours_in_given_bins():
    """The guide table starts every search at or below the right bin."""
    rng = np.random.default_rng(20)
    for m in (1, 2, 3, 17, 400):
        edges = np.concatenate([[0.0], np.sort(rng.random(m)), [1.0]])
        edges = np.unique(np.concatenate([edges, [1e-308, 5e-324, 1 - 2**-53]]))
        scores = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 1)])
        scores = np.clip(scores, 0, 1)
        expected = np.bincount(np.searchsorted(edges[:-1], scores, "right") - 1, minlength=len(edges) - 1)
        assert calibration_table(scores > 2, scores, edges=edges).counts.tolist() == expected.tolist()


def test_a_last_bin_of_ones_alone():
    labels, scores = [0, 1, 1, 0], [0.5, 0.25, 1.0, 1.0]
    found = calibration_table(labels, scores, n_bins=2, strategy="quantile")
    assert found.edges.tolist() == [0, 1, 1]
    assert found.counts.tolist() == [2, 2]
    assert ece(labels, scores, edges=found.edges) == pytest.approx(1.25 / 4)
    assert BinCounts(edges=[0, 1, 1]).update([1, 1], [0.5, 1.0]).counts.tolist() == [1, 1]


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 20), st.randoms())
def test_order_and_norms(rows, n_bins, random):
    assume(len({s for _, s, _ in rows}) > 1)
    shuffled = random.sample(rows, len(rows))
    for strategy in STRATEGIES:
        values = [
            ece([y for y, *_ in r], [s for _, s, _ in r], n_bins=n_bins, strategy=strategy)
            for r in (rows, shuffled)
        ]
        assert values[0] == values[1]
        l1, l2, most = (
            ece([y for y, *_ in rows], [s for _, s, _ in rows], n_bins=n_bins, strategy=strategy, norm=norm)
            for norm in ("l1", "l2", "max")
        )
        assert 0 <= l1 <= l2 * (1 + 1e-12) + 1e-12
        assert l2 <= most * (1 + 1e-12) + 1e-12
        assert most <= 1


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_all_negative_labels_give_the_mean_score(rows):
    """With labels 0 every bin's difference has one sign: no row may be lost."""
    scores = [s for _, s, _ in rows]
    assume(len(set(scores)) > 1)
    for strategy in STRATEGIES:
        for n_bins in (1, 2, 15, 1000):
            assert ece([0] * len(rows), scores, n_bins=n_bins, strategy=strategy) == pytest.approx(
                math.fsum(scores) / len(scores), abs=TINY
            )


def test_one_bin_counter_agrees_to_the_last_bit():
    """`BinCounts` rounds the exact value once; so does the l1 norm here, of scores of 1/16 or more."""
    rng = np.random.default_rng(21)
    for n in (1, 2, 10, 1000, 70_000):
        scores = rng.uniform(1 / 16, 1, n)
        labels = rng.random(n) < scores
        for n_bins in (1, 7, 10, 15, 100):
            assert ece(labels, scores, n_bins=n_bins) == BinCounts(n_bins).update(labels, scores).value()


@pytest.mark.slow
def test_halves_are_exact_on_many_rows():
    n = 40_000_000
    with pytest.warns(UserWarning, match=r"y_prob is 0\.5 in every row"):
        assert ece(np.tile(np.int8([0, 1]), n // 2), np.full(n, 0.5, np.float32)) == 0.0


def test_threads_change_nothing():
    rng = np.random.default_rng(22)
    scores = rng.random(600_001)
    labels = rng.random(600_001) < scores**2
    values = {ece(labels, scores, n_bins=33, n_threads=threads) for threads in (1, 2, 3, 4, 8)}
    assert len(values) == 1
    assert values == {ece(ScoreTable(labels, scores), n_bins=33)}


def test_a_constant_score_is_noticed():
    for strategy in STRATEGIES:
        with pytest.warns(UserWarning, match="y_prob is 1 in every row"):
            assert ece([1, 0, 1, 1], [1.0] * 4, n_bins=10, strategy=strategy) == 0.25
    for f in (calibration_table, ece_curve):
        with pytest.warns(UserWarning, match="y_prob is 1 in every row"):
            f([1, 0, 1, 1], [1.0] * 4)
    with pytest.warns(UserWarning, match="in every row"):
        ece(CellTable().update([1, 0], [0.3, 0.3]))
    with pytest.warns(UserWarning, match="the confidence in P is"):
        confidence_ece([0, 1], [[0.5, 0.5]] * 2)
    assert ece([1], [0.75]) == 0.25
    assert ece([1, 0], [0.75, 0.7500000001], n_bins=1) == pytest.approx(0.25)


def test_cell_tables():
    rng = np.random.default_rng(23)
    scores = rng.random(20_000)
    labels = rng.random(20_000) < scores**2
    table = CellTable().update(labels, scores)
    for n_bins in (1, 10, 15, 50, 100_800):
        for norm in NORMS:
            expected = ece(labels, scores, n_bins=n_bins, norm=norm)
            assert ece(table, n_bins=n_bins, norm=norm) == pytest.approx(expected, abs=1e-12 * n_bins)
    for strategy in ("quantile", "min_count"):  # bins are unions of cells
        assert ece(table, strategy=strategy) == pytest.approx(
            ece(labels, scores, strategy=strategy), abs=1e-3
        )
        assert calibration_table(table, strategy=strategy).counts.sum() == 20_000
    few = CellTable().update(labels, np.round(scores, 2))
    for strategy in STRATEGIES:  # a cell per score: the very same bins
        assert ece(few, strategy=strategy, n_bins=20) == pytest.approx(
            ece(labels, np.round(scores, 2), strategy=strategy, n_bins=20), abs=1e-12
        )


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (CellTable(100), {"n_bins": 15}, "n_bins must divide .* got 15; the nearest that do are 10 and 20"),
        (CellTable(100), {"n_bins": 1000}, "n_bins must divide .* the nearest that do are 50 and 100"),
        (CellTable(100, grid="sqrt"), {"n_bins": 7}, "n_bins must make bins that are unions of cells"),
        (CellTable(100), {"edges": [0, 0.123, 1]}, r"edges must be edges of .* got .*0\.123.* at index 1"),
        (CellTable(100), {"sample_weight": [1, 1, 1]}, "sample_weight must not be given beside a table"),
    ],
)
def test_bins_that_cut_cells_are_refused(table, options, message):
    table.update([0, 1, 1], [0.1, 0.2, 0.9])
    with pytest.raises((ValueError, TypeError), match=message):
        ece(table, **options)


def test_a_grid_of_squares_with_edges_of_its_own():
    table = CellTable(100, grid="sqrt").update([0, 1, 1], [0.1, 0.2, 0.9])
    for edges in ([0, 0.25, 1], [0, 1], [0, 0.0625, 0.25, 0.5625, 1]):
        assert ece(table, edges=edges) == pytest.approx(
            ece([0, 1, 1], [0.1, 0.2, 0.9], edges=edges), abs=1e-12
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ece([0, 1]), "y_prob is missing"),
        (lambda: ece([], []), "y_true"),
        (lambda: ece([0, 1], [0.2, float("nan")]), "y_prob"),
        (lambda: ece([0, 1], [0.2, 1.5]), "y_prob must lie in"),
        (lambda: ece([0, 2], [0.2, 0.5]), "y_true"),
        (lambda: ece([0, 1, 1], [0.2, 0.5]), "y_true"),
        (lambda: ece([0, 1], [0.2, 0.5], n_bins=0), "n_bins"),
        (lambda: ece([0, 1], [0.2, 0.5], n_bins=2.5), "n_bins"),
        (lambda: ece([0, 1], [0.2, 0.5], n_bins=2**21), "n_bins must be at most 1048576"),
        (lambda: ece([0, 1], [0.2, 0.5], n_bins=2**70), "n_bins must be at most 1048576"),
        (lambda: ece([0, 1], [0.2, 0.5], strategy="width"), "strategy must be one of"),
        (lambda: ece([0, 1], [0.2, 0.5], norm=1), "norm must be one of"),
        (lambda: ece([0, 1], [0.2, 0.5], edges=[0, 0.5]), "edges"),
        (lambda: ece([0, 1], [0.2, 0.5], edges=[0, 0.5, 0.5, 1]), "edges"),
        (lambda: ece([0, 1], [0.2, 0.5], sample_weight=[0, 0]), "sample_weight must not be all zero"),
        (lambda: ece([0, 1], [0.2, 0.5], sample_weight=[1, -1]), "sample_weight"),
        (lambda: ece([0, 1], [0.2, 0.5], sample_weight=[1]), "sample_weight"),
        (lambda: ece(CellTable()), "y_true must hold at least one row"),
        (lambda: ece(CellTable().update([1], [0.5]), [0.5]), "y_prob must not be given beside a table"),
        (lambda: ece_curve([0, 1], [0.2, 0.5], [1.5]), "bin_counts"),
        (lambda: ece_curve([0, 1], [0.2, 0.5], [0]), "bin_counts"),
        (
            lambda: ece_curve(CellTable(7).update([0, 1], [0.1, 0.9]), bin_counts=[5, 6]),
            "bin_counts must divide",
        ),
        (lambda: ece_curve([0, 1], [0.2, 0.5], []), "bin_counts"),
        (lambda: ece_curve([0, 1], [0.2, 0.5], lipschitz=0), "lipschitz"),
        (lambda: confidence_ece([0, 1], [0.2, 0.5]), "P must"),
        (lambda: confidence_ece([0, 2], [[0.2, 0.8], [0.5, 0.5]]), "y_true"),
        (
            lambda: confidence_ece([True, False], [[0.2, 0.3, 0.5], [0.5, 0.5, 0]]),
            "y_true must hold columns of P",
        ),
        (lambda: classwise_ece([0, 1], [[0.2, 0.7], [0.5, 0.5]]), "P must have rows that sum to 1"),
        (lambda: full_ece([0, 1], [[0.2, 0.8], [0.5, 0.5]], norm="avg"), "norm"),
        (lambda: calibration_table([0, 1], [0.2, 0.5]).intervals(0), "delta"),
        (lambda: calibration_table([0, 1], [0.2, 0.5]).intervals(method="wald"), "method"),
        (
            lambda: calibration_table([0, 1], [0.2, 0.5], sample_weight=[1, 2]).intervals(),
            "sample_weight must not be given for intervals",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()


def test_every_kind_of_column():
    labels, scores = [0, 1, 1, 0, 1], [0.25, 0.5, 0.75, 0.125, 1.0]
    expected = ece(labels, scores, n_bins=3)
    strided = np.repeat(scores, 2)[::2]
    frozen = np.array(scores)
    frozen.flags.writeable = False
    for y in (np.array(labels, bool), np.array(labels, np.int8), pd.Series(labels), pl.Series(labels)):
        for p in (
            np.float32(scores),
            strided,
            frozen,
            pd.Series(scores),
            pl.Series(scores),
            np.array(scores, ">f8"),
        ):
            for strategy in STRATEGIES:
                assert ece(y, p, n_bins=3, strategy=strategy) == ece(
                    labels, scores, n_bins=3, strategy=strategy
                )
            assert ece(y, p, n_bins=3) == expected
    assert ece(["b", "a"], [0.9, 0.1], pos_label="b", n_bins=2) == pytest.approx(0.1)
    assert frozen.tolist() == scores


# --- debiased errors


def test_debiased_is_unbiased_by_enumeration():
    """Over all label vectors, weighed by their probability; rates are equal within each bin."""
    scores = [0.2, 0.25, 0.3, 0.35, 0.8, 0.85, 0.9]
    rates = [Fraction(1, 3)] * 4 + [Fraction(3, 4)] * 3
    mean = Fraction(0)
    for labels in itertools.product([0, 1], repeat=7):
        chance = math.prod(r if y else 1 - r for y, r in zip(labels, rates, strict=True))
        mean += chance * Fraction(debiased_squared_ece(labels, scores, n_bins=2))
    truth = 4 / 7 * (1 / 3 - 0.275) ** 2 + 3 / 7 * (0.75 - 0.85) ** 2
    assert float(mean) == pytest.approx(truth, abs=1e-14)


def test_debiased_with_rates_that_differ_inside_a_bin():
    """What the docstring says: too small by the mean of (variance of rates) / (rows - 1)."""
    scores, rates = [0.2, 0.25, 0.3, 0.35], [0.1, 0.9, 0.4, 0.6]
    mean = sum(
        math.prod(r if y else 1 - r for y, r in zip(labels, rates, strict=True))
        * debiased_squared_ece(labels, scores, n_bins=1)
        for labels in itertools.product([0, 1], repeat=4)
    )
    assert mean == pytest.approx((0.5 - 0.275) ** 2 - np.var(rates) / 3, abs=1e-14)


@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 10))
def test_debiased_equals_its_formula(rows, n_bins):
    labels, scores, _ = (list(column) for column in zip(*rows, strict=True))
    assume(len(set(scores)) > 1)
    total = Fraction(0)
    for here in bins_by_rule(scores, [1] * len(rows), n_bins, "uniform"):
        m = len(here)
        rate = Fraction(sum(map(int, (labels[i] for i in here))), m)
        gap = rate - sum(Fraction(scores[i]) for i in here) / m
        total += Fraction(m, len(rows)) * (gap**2 - rate * (1 - rate) / max(m - 1, 1))
    found = debiased_squared_ece(labels, scores, n_bins=n_bins)
    assert found == pytest.approx(float(total), abs=1e-14)
    assert -0.25 <= found <= 1
    assert debiased_ece(labels, scores, n_bins=n_bins) == math.sqrt(max(found, 0.0))


# --- several classes


@st.composite
def matrices(draw):
    k = draw(st.integers(2, 4))
    vectors = draw(
        st.lists(st.lists(st.integers(0, 8), min_size=k, max_size=k).filter(any), min_size=1, max_size=4)
    )
    picks = draw(
        st.lists(st.tuples(st.integers(0, len(vectors) - 1), st.integers(0, k - 1)), min_size=1, max_size=25)
    )
    P = np.array([np.array(vectors[i]) / sum(vectors[i]) for i, _ in picks])
    return np.array([y for _, y in picks]), P


@pytest.mark.filterwarnings("ignore:the confidence in P")
@settings(max_examples=100, deadline=None)
@given(matrices(), st.integers(1, 6))
def test_several_classes_equal_their_definitions(data, n_bins):
    labels, P = data
    n, k = P.shape
    ones = [1] * n
    for strategy in STRATEGIES:
        top, right = P.max(axis=1).tolist(), (P.argmax(axis=1) == labels).tolist()
        expected = ece_by_definition(right, top, bins_by_rule(top, ones, n_bins, strategy), "l1", ones)
        assert confidence_ece(labels, P, n_bins=n_bins, strategy=strategy) == pytest.approx(
            expected, abs=1e-14
        )
        each = [
            ece_by_definition(labels == j, column, bins_by_rule(column, ones, n_bins, strategy), "l1", ones)
            for j, column in enumerate(P.T.tolist())
        ]
        assert classwise_ece(labels, P, n_bins=n_bins, strategy=strategy) == pytest.approx(
            sum(each) / k, abs=1e-14
        )
    groups = {}
    for i, row in enumerate(map(tuple, P.tolist())):
        groups.setdefault(row, []).append(i)
    off = {
        row: [sum(labels[i] == c for i in rows) / len(rows) - row[c] for c in range(k)]
        for row, rows in groups.items()
    }
    share = {row: len(rows) / n for row, rows in groups.items()}
    assert full_ece(labels, P) == pytest.approx(
        sum(share[r] * sum(map(abs, off[r])) for r in groups), abs=1e-14
    )
    assert full_ece(labels, P, norm="l2") == pytest.approx(
        math.sqrt(sum(share[r] * sum(d * d for d in off[r]) for r in groups)), abs=1e-7
    )
    assert full_ece(labels, P, norm="max") == pytest.approx(
        max(abs(d) for r in groups for d in off[r]), abs=1e-14
    )


def test_equal_rows_are_found_whatever_the_hash(monkeypatch):
    """If all hashes were equal, rows would still be told apart."""
    rng = np.random.default_rng(24)
    P = rng.dirichlet(np.ones(3), 6)[rng.integers(0, 6, 50)]
    labels = rng.integers(0, 3, 50)
    value = full_ece(labels, P)
    monkeypatch.setattr("calcore._classes._hashes", lambda block: np.zeros(len(block), np.uint64))
    assert full_ece(labels, P) == pytest.approx(value, abs=1e-15)


def test_zero_and_minus_zero_are_one_vector():
    with_signs = [[0.0, 1.0], [-0.0, 1.0]]
    assert full_ece([0, 1], with_signs) == 1.0  # half right: .5 + .5


def test_a_matrix_in_any_order_and_type():
    rng = np.random.default_rng(25)
    P = rng.dirichlet(np.ones(12), 400)
    labels = rng.integers(0, 12, 400)
    for f in (confidence_ece, classwise_ece, full_ece):
        value = f(labels, P)
        assert f(labels, np.asfortranarray(P)) == pytest.approx(value, abs=1e-14)
        assert f(labels, P.tolist()) == pytest.approx(value, abs=1e-14)
        single = np.float32(P)
        assert f(labels, single) == pytest.approx(f(labels, single.astype(np.float64)), abs=1e-6)
        for frame in (pd.DataFrame(P), pd.DataFrame(P).astype("Float64"), pl.DataFrame(P)):
            assert f(labels, frame) == pytest.approx(value, abs=1e-14)
        names = [f"c{j}" for j in range(12)]
        assert f([names[y] for y in labels], P, labels=names) == value


def test_a_class_without_rows_still_counts():
    P = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]
    assert confidence_ece([0, 0], P) == pytest.approx(0.35)
    assert classwise_ece([0, 0], P) == pytest.approx((0.35 + 0.25 + 0.1) / 3)


# --- table and curve


def test_intervals_are_those_of_the_textbook():
    rng = np.random.default_rng(26)
    scores = rng.random(500)
    found = calibration_table(rng.random(500) < scores, scores, n_bins=7)
    k, n = np.rint(found.positive_rate * found.counts), found.counts
    low, high = found.intervals(0.1).T
    assert low == pytest.approx(np.where(k > 0, beta.ppf(0.05, k, n - k + 1), 0), abs=1e-12)
    assert high == pytest.approx(np.where(k < n, beta.ppf(0.95, k + 1, n - k), 1), abs=1e-12)
    z = 1.6448536269514722
    center, half = (k + z * z / 2) / (n + z * z), z * np.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    low, high = found.intervals(0.1, method="wilson").T
    assert low == pytest.approx(center - half, abs=1e-12)
    assert high == pytest.approx(center + half, abs=1e-12)
    empty = calibration_table([0, 1], [0.1, 0.2], n_bins=2)
    assert empty.intervals()[1].tolist() == [0, 1]
    assert math.isnan(empty.mean_score[1])


def test_table_says_itself():
    found = calibration_table([0, 1, 1], [0.25, 0.75, 1.0], n_bins=3)
    assert repr(found) == "<BinTable: 3 rows in 2 of 3 bins (uniform)>"
    assert len(found) == 3
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["bins"][1] == {
        "low": 1 / 3,
        "high": 2 / 3,
        "count": 0,
        "share": 0.0,
        "mean_score": None,
        "positive_rate": None,
    }
    assert found.gap[2] == pytest.approx(0.125)
    with pytest.raises(ValueError, match="read-only"):
        found.counts[0] = 7
    curve = ece_curve([0, 1, 1], [0.25, 0.75, 1.0])
    for result in (found, curve):
        copy = pickle.loads(pickle.dumps(result))
        assert copy.to_dict() == result.to_dict()
        assert not copy.n_bins.flags.writeable if result is curve else not copy.counts.flags.writeable
    assert json.loads(json.dumps(curve.to_dict(), allow_nan=False))["n"] == 3
    assert repr(curve).startswith("<EceCurve: ")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_curve_has_the_single_values(strategy):
    rng = np.random.default_rng(27)
    scores = np.round(rng.beta(2, 3, 3000), 3)
    labels = rng.random(3000) < scores**1.5
    curve = ece_curve(labels, scores, strategy=strategy)
    assert curve.n_bins.tolist() == list(range(5, 51))
    assert curve.ece.tolist() == [ece(labels, scores, n_bins=k, strategy=strategy) for k in range(5, 51)]
    tables = [calibration_table(labels, scores, n_bins=k, strategy=strategy) for k in range(5, 51)]
    assert curve.n_used.tolist() == [np.count_nonzero(t.counts) for t in tables]
    cells = ece_curve(CellTable().update(labels, scores), strategy=strategy)
    both = np.isin(curve.n_bins, cells.n_bins)
    assert cells.ece == pytest.approx(curve.ece[both], abs=1e-12)


def test_noise_and_std_are_what_simulation_gives():
    """Calibrated models: mean and standard deviation of the error over 400 draws of labels.

    The mean of 400 draws is within 4 std / 20 of its expectation, a standard deviation of 400 draws within
    4 / sqrt(800) of its own; 3 % are for m (1 - m) in place of the mean of s (1 - s) and for the normal law.
    For a calibrated model the plugged-in differences are noise, which makes std up to a quarter too large.
    """
    rng = np.random.default_rng(28)
    scores = rng.random(5000)
    curves = [ece_curve(rng.random(5000) < scores, scores, [10, 50]) for _ in range(400)]
    for j in range(2):
        values = np.array([curve.ece[j] for curve in curves])
        mean, std = values.mean(), values.std()
        assert curves[0].noise[j] == pytest.approx(mean, rel=0.03, abs=4 * std / 20)
        claimed = np.mean([curve.std[j] for curve in curves])
        assert 1 - 0.14 - 0.03 <= claimed / std <= 1.25 + 0.14 + 0.03


def test_hidden_is_what_a_bin_hides():
    """eta - s goes evenly from d to -d through each bin, with slope -2: the binned error sees nothing."""
    n, k = 100_000, 10
    scores = (np.arange(n) + 0.5) / n
    curve = ece_curve(scores > 0.5, scores, [k])
    inside = scores * k - np.floor(scores * k) - 0.5
    hidden = np.abs(2 * inside / k).mean()  # scores end 1 / 2n from 0 and 1
    assert curve.hidden[0] == pytest.approx(hidden, rel=1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_hides_where_no_scores_are(strategy):
    scores = np.linspace(0.45, 0.55, 1000)
    curve = ece_curve(scores > 0.5, scores, [2, 5, 50], strategy=strategy)
    widest = 0.1 if strategy != "uniform" else 1.0
    assert np.all(curve.hidden <= 0.5 * np.minimum(widest / curve.n_bins, 0.1) + 1e-4)


def test_the_suggested_number_grows_as_the_cube_root():
    rng = np.random.default_rng(29)
    counts = np.unique(np.rint(np.geomspace(2, 2000, 300)))
    found = []
    for n in (1_000, 1_000_000):
        scores = rng.random(n)
        found.append(ece_curve(rng.random(n) < scores, scores, counts).suggested)
    assert found[1] / found[0] == pytest.approx(10, rel=0.25)


def test_maximum():
    assert mce([1, 1, 1, 0], [0.2, 0.2, 0.9, 0.9], n_bins=2) == 0.8


# --- kernels


@pytest.mark.kernels
def test_kernels_against_plain_sums():
    rng = np.random.default_rng(30)
    scores = rng.random(70_000)
    labels = (rng.random(70_000) < scores).astype(np.uint8)
    scores.flags.writeable = labels.flags.writeable = False
    edges = _validate.bin_edges([float(Fraction(j, 13)) for j in range(14)])
    words, totals = np.zeros(26, np.int64), np.zeros((4, 13), np.int64)
    none = np.empty(0, np.uint32)
    for part in (slice(0, 65_536), slice(65_536, 70_000)):
        bin_sums.add(labels[part], scores[part], edges, none, words, totals)
    assert not words.any()
    guided = np.zeros((4, 13), np.int64)
    guide = bin_sums.guide_to(edges, 50)
    for part in (slice(0, 65_536), slice(65_536, 70_000)):
        bin_sums.add(labels[part], scores[part], edges, guide, words, guided)
    assert np.array_equal(totals, guided)
    keys = np.empty(70_000, np.int64)
    sorting.pack(labels, scores, keys)
    keys.sort()
    keys.flags.writeable = False
    starts = partition.starts_in(keys, partition.Scheme(13, "uniform", None))
    ordered = np.zeros((4, 13), np.int64)
    bin_sums.of_sorted(keys, starts, ordered)
    excess, sums, plain = np.empty(13), np.empty(13), np.empty(13)
    high, low = bin_sums.excesses(totals, excess, sums)
    assert bin_sums.excesses(ordered, plain, sums) == (high, low)
    where = np.searchsorted(edges[:-1], scores, "right") - 1
    for b in range(13):
        exact = sum(
            Fraction(int(y)) - Fraction(s)
            for y, s in zip(labels[where == b], scores[where == b], strict=True)
        )
        assert excess[b] == plain[b]
        assert excess[b] == pytest.approx(float(exact), rel=1e-15, abs=1e-12)
    rows, weighted = np.zeros(13, np.int64), np.zeros((13, 6))
    halves = np.full(70_000, 0.5)
    bin_sums.add_weighted(labels, scores, halves, edges, none, rows, weighted)
    assert rows.tolist() == totals[bin_sums.ROWS].tolist()
    assert weighted[:, 4] + weighted[:, 5] == pytest.approx(excess / 2, rel=1e-15, abs=1e-13)


@pytest.mark.kernels
def test_a_full_block_of_ones_fits_its_words():
    n = bin_sums.MAX_ROWS
    words, totals = np.zeros(2, np.int64), np.zeros((4, 1), np.int64)
    ones, scores = np.ones(n, np.uint8), np.ones(n)
    ones.flags.writeable = scores.flags.writeable = False
    for value in (1.0, float(np.nextafter(1.0, 0))):
        scores = np.full(n, value)
        scores.flags.writeable = False
        totals[:] = 0
        bin_sums.add(ones, scores, _validate.bin_edges([0, 1]), np.empty(0, np.uint32), words, totals)
        excess, sums = np.empty(1), np.empty(1)
        assert totals[bin_sums.ROWS, 0] == totals[bin_sums.POSITIVES, 0] == n
        bin_sums.excesses(totals, excess, sums)
        assert excess[0] == n * (1.0 - value)


@pytest.mark.kernels
def test_bins_of_at_least_so_many_rows():
    for text, n_bins, expected in (
        ([1, 1, 2, 3, 4, 5, 6], 3, [0, 3, 7]),
        ([1, 1, 1, 1], 3, [0, 4]),
        ([1, 2, 3], 10, [0, 1, 2, 3]),
        ([1, 2, 2, 2, 3], 5, [0, 1, 4, 5]),
        ([1], 1, [0, 1]),
    ):
        keys = np.sort(np.array(text, np.int64) << 1)
        keys.flags.writeable = False
        assert sorting.starts_of_at_least(keys, n_bins).tolist() == expected


@pytest.mark.kernels
def test_compiled_once():
    for y, p in (
        ([0, 1], [0.25, 0.5]),
        (np.bool_([0, 1]), np.float32([0.25, 0.5])),
        ([1, 1], np.arange(4)[::2] * 0.25),
    ):
        for options in ({"n_bins": 2}, {"edges": [0, 0.5, 1]}, {"strategy": "quantile"}):
            calibration_table(y, p, **options)
            calibration_table(y, p, sample_weight=[1, 2], **options)
    full_ece([0, 1], np.float32([[0.5, 0.5], [0.25, 0.75]]))
    full_ece([0, 1], np.asfortranarray([[0.5, 0.5], [0.25, 0.75]]))
    for kernel in (bin_sums.add, bin_sums.add_weighted, bin_sums.of_sorted, bin_sums.guide_to, hashing.rows):
        signatures = getattr(kernel, "signatures", [None])
        assert len(signatures) <= 1
