"""BinCounts: the values of rational arithmetic, whatever the batches, and refusals that change nothing."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import binned_error, place_in

from calcore import BinCounts

NORMS = ("l1", "l2", "max", "avg")
SCORE = st.one_of(
    st.floats(0.0, 1.0), st.integers(0, 30).map(lambda k: k / 30), st.sampled_from([0.0, 5e-324, 2e-318, 1.0])
)
WEIGHT = st.one_of(
    st.integers(0, 5).map(float),
    st.floats(0.0, 1e300),
    st.sampled_from([0.0, 5e-324, 1e-200, 1e17, 1.7976931348623157e308]),
)
ROWS = st.lists(st.tuples(st.integers(0, 1), SCORE, WEIGHT), min_size=1, max_size=25)
EDGES = st.lists(st.floats(0.001, 0.999), max_size=6, unique=True).map(
    lambda inner: [0.0, *sorted(inner), 1.0]
)


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def uniform(n_bins):
    return [float(Fraction(j, n_bins)) for j in range(n_bins + 1)]


@settings(max_examples=150)
@given(ROWS, st.integers(1, 40))
def test_values_of_plain_rows(rows, n_bins):
    labels, scores, _ = columns(rows)
    bins = BinCounts(n_bins).update(labels, scores)
    edges = uniform(n_bins)
    expected = [sum(place_in(edges, s) == b for s in scores) for b in range(n_bins)]
    assert bins.counts.tolist() == expected
    for norm in NORMS:
        true = binned_error(labels, scores, [1.0] * len(rows), edges, norm)
        # l1 and max are rounded once, as the oracle is; l2 and avg term by term, each within 2^-53
        tolerance = 0.0 if norm in ("l1", "max") else 2.0**-50 * true
        assert abs(bins.value(norm) - true) <= tolerance


@settings(max_examples=150)
@given(ROWS, EDGES)
def test_values_of_weighted_rows_in_any_bins(rows, edges):
    labels, scores, weights = columns(rows)
    bins = BinCounts(edges=edges).update(labels, scores, weights)
    assert bins.counts.sum() == len(rows)
    if not any(weights):
        with pytest.raises(ValueError, match="sample_weight must not be all zero"):
            bins.value()
        return
    for norm in NORMS:
        true = binned_error(labels, scores, weights, edges, norm)
        tolerance = 0.0 if norm in ("l1", "max") else 2.0**-50 * true
        if norm == "l2" and true < 1e-150:
            tolerance = 1e-150  # squares below the smallest normal double
        assert abs(bins.value(norm) - true) <= tolerance


@settings(max_examples=100)
@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_batches_order_and_merging_give_the_same_bits(rows, random, n_parts):
    whole = BinCounts(7).update(*columns(rows))
    if not any(w for _, _, w in rows):
        return
    parts = [[] for _ in range(n_parts)]
    for row in random.sample(rows, len(rows)):
        random.choice(parts).append(row)
    filled = [BinCounts(7).update(*columns(part)) if part else BinCounts(7) for part in parts]
    merged = BinCounts(7)
    batched = BinCounts(7)
    for part, rows_ in zip(filled, parts, strict=True):
        merged.merge(part)
        if rows_:
            batched.update(*columns(rows_))
    for norm in NORMS:
        assert merged.value(norm) == batched.value(norm) == whole.value(norm)
    assert merged.counts.tolist() == whole.counts.tolist()


def test_a_whole_weight_is_a_repeated_row_to_the_last_bit():
    rng = np.random.default_rng(60)
    labels, scores, weights = rng.integers(0, 2, 500), rng.random(500), rng.integers(0, 4, 500)
    weighted = BinCounts(20).update(labels, scores, weights)
    repeated = BinCounts(20).update(np.repeat(labels, weights), np.repeat(scores, weights))
    assert [weighted.value(norm) for norm in NORMS] == [repeated.value(norm) for norm in NORMS]


def test_large_and_small_weights_in_one_bin():
    """1e17 + 3 - 1e17 is 0 or 16 in doubles; here nothing is lost."""
    bins = BinCounts(1).update([1, 0, 1], [0.5, 0.5, 0.5], [1e17, 1e17, 3.0])
    assert bins.value() == float(Fraction(3, 2) / (Fraction(1e17) * 2 + 3))


def test_rows_may_be_counted_when_weights_overflow_a_double():
    largest = 1.7976931348623157e308
    bins = BinCounts(1).update([1, 1, 0, 0], [0.25] * 4, [largest] * 4)
    assert bins.value() == 0.25


def test_several_blocks_and_many_rows():
    rng = np.random.default_rng(61)
    scores = rng.random(300_000)
    labels = rng.random(300_000) < scores
    bins = BinCounts(15).update(labels, scores)
    index = np.minimum(np.searchsorted(uniform(15), scores, side="right") - 1, 14)
    gaps = [math.fsum(scores[index == b]) - labels[index == b].sum() for b in range(15)]
    assert bins.value() == pytest.approx(math.fsum(map(abs, gaps)) / 300_000, rel=2.0**-50)
    assert bins.value() == BinCounts(15).update(labels, scores, np.ones(300_000)).value()


def test_carrying_over_changes_nothing(monkeypatch):
    rng = np.random.default_rng(62)
    scores, labels, weights = rng.random(200_000), rng.integers(0, 2, 200_000), rng.random(200_000)
    expected = BinCounts(3).update(labels, scores, weights)
    monkeypatch.setattr("calcore.table.bin_counts._UNCARRIED_ROWS", 100_000)
    carried = BinCounts(3).update(labels, scores, weights)
    assert [carried.value(norm) for norm in NORMS] == [expected.value(norm) for norm in NORMS]


def test_a_bin_belongs_to_its_lower_edge():
    bins = BinCounts(edges=[0.0, 0.25, 0.5, 1.0])
    assert (bins.n_bins, bins.edges.tolist()) == (3, [0.0, 0.25, 0.5, 1.0])
    bins.update([0] * 5, [0.0, 0.25, math.nextafter(0.25, 0.0), 0.5, 1.0])
    assert bins.counts.tolist() == [2, 1, 2]
    assert BinCounts().n_bins == 15
    assert BinCounts(3).edges.tolist() == uniform(3)


def test_equal_edges_merge_however_they_were_given():
    given_edges = BinCounts(edges=[0.0, 0.5, 1.0]).update([1], [0.5])
    assert BinCounts(2).update([0], [0.5]).merge(given_edges).value() == 0.0


def test_merging_leaves_the_other_alone():
    first, second = BinCounts(2).update([1], [0.2]), BinCounts(2).update([0], [0.9])
    assert first.merge(second) is first
    assert (second.value(), second.counts.tolist()) == (0.9, [0, 1])
    first.merge(first)
    assert first.counts.tolist() == [2, 2]


def test_what_is_handed_out_is_a_copy():
    bins = BinCounts(2).update([1], [0.2])
    bins.counts[:] = 7
    bins.edges[:] = 0
    assert (bins.counts.tolist(), bins.edges.tolist()) == ([1, 0], [0.0, 0.5, 1.0])


@pytest.mark.parametrize("renew", [copy.deepcopy, lambda bins: pickle.loads(pickle.dumps(bins))])
def test_copies_are_equal_and_apart(renew):
    bins = BinCounts(2).update([1, 0], [0.2, 0.9], [2.0, 3.0])
    twin = renew(bins)
    assert twin.value() == bins.value()
    twin.update([1], [0.5])
    assert (twin.counts.sum(), bins.counts.sum()) == (3, 2)


def test_a_refused_batch_adds_nothing():
    bins = BinCounts(3).update([1], [0.2])
    before = bins.value()
    scores = np.full(200_000, 0.5)
    scores[-1] = 1.5
    for bad in (
        lambda: bins.update(np.zeros(200_000), scores),
        lambda: bins.update([1, 0], [0.5, 0.5], [1.0, -1.0]),
        lambda: bins.update([1, 0], [0.5, 0.5], [1.0, np.inf]),
        lambda: bins.update([1, 0], [0.5, 0.5], [1.0]),
    ):
        with pytest.raises(ValueError, match=r"^(y_prob|sample_weight)"):
            bad()
        assert (bins.value(), bins.counts.sum()) == (before, 1)


def test_text_labels():
    bins = BinCounts(2).update(["late", "on time"], [0.75, 0.25], pos_label="late")
    assert bins.value() == 0.25


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BinCounts(0), "n_bins must be a whole number >= 1; got 0"),
        (lambda: BinCounts(2.5), "n_bins must be a whole number >= 1; got 2.5"),
        (lambda: BinCounts(5, edges=[0, 1]), "n_bins must not be given beside edges; got 5"),
        (lambda: BinCounts(edges=[]), "edges must be numbers that ascend strictly from 0 to 1"),
        (lambda: BinCounts(edges="quantile"), "edges must be numbers that ascend strictly from 0 to 1"),
        (lambda: BinCounts(edges=[0.0]), "edges must be numbers that ascend strictly from 0 to 1"),
        (lambda: BinCounts(edges=[[0.0, 1.0]]), "edges must be numbers that ascend strictly from 0 to 1"),
        (lambda: BinCounts(edges=[0.0, 0.5]), "edges must be numbers that ascend strictly from 0 to 1"),
        (lambda: BinCounts(edges=[0.1, 1.0]), "edges must be numbers that ascend strictly from 0 to 1"),
        (
            lambda: BinCounts(edges=[0.0, 0.5, 0.5, 1.0]),
            "edges must be numbers that ascend strictly from 0 to 1",
        ),
        (
            lambda: BinCounts(edges=[0.0, math.nan, 1.0]),
            "edges must be numbers that ascend strictly from 0 to 1",
        ),
        (lambda: BinCounts().value(), "value needs rows"),
        (lambda: BinCounts().update([1], [0.5]).value("l3"), "norm must be one of 'l1', 'l2', 'max', 'avg'"),
        (lambda: BinCounts(3).merge(BinCounts(4)), "other must have the same edges; got 4 bins for 3"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_other_objects_are_not_merged():
    with pytest.raises(TypeError, match="other must be a BinCounts; got list"):
        BinCounts().merge([])


def test_words_for_people():
    assert repr(BinCounts(3).update([1], [0.5])) == "<BinCounts: 1 rows in 3 bins>"
