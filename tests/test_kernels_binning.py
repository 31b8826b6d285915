"""Bins of equal mass and of equal width."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import equal_mass_cuts, place_in

from calcore.kernels import binning

pytestmark = pytest.mark.kernels

COUNTS = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 200)), min_size=1, max_size=60)


def cut(counts, n_bins):
    array = np.array(counts, np.int64)
    array.flags.writeable = False
    return binning.equal_mass(array, n_bins)


@settings(max_examples=200)
@given(COUNTS, st.integers(1, 100))
def test_equal_mass_is_the_greedy_rule(counts, n_bins):
    assert cut(counts, n_bins).tolist() == equal_mass_cuts(counts, n_bins)


@settings(max_examples=200)
@given(COUNTS, st.integers(1, 100))
def test_what_equal_mass_promises(counts, n_bins):
    cuts = cut(counts, n_bins)
    n = sum(counts)
    share = Fraction(n, min(n_bins, n))
    heavy = [i for i, count in enumerate(counts) if count >= share]
    assert cuts[0] == 0
    assert cuts[-1] == len(counts)
    assert np.all(np.diff(cuts) >= 1)  # no empty bins
    assert len(cuts) - 1 <= n_bins + len(heavy) <= 2 * n_bins
    for start, stop in pairwise(cuts):
        if any(start <= i < stop for i in heavy):
            assert stop == start + 1  # alone
        else:
            assert sum(counts[start:stop]) < 2 * share


@settings(max_examples=100)
@given(st.integers(1, 300), st.integers(1, 400))
def test_single_rows_are_cut_at_equal_ranks(n, n_bins):
    bins = min(n, n_bins)
    assert cut([1] * n, n_bins).tolist() == [j * n // bins for j in range(bins + 1)]


@settings(max_examples=50)
@given(COUNTS, st.integers(1, 100))
def test_equal_mass_from_running_totals(counts, n_bins):
    totals = np.array([0, *np.cumsum(counts)], np.int64)
    assert binning.equal_mass_cuts(totals, n_bins, 0, 1).tolist() == cut(counts, n_bins).tolist()


def test_one_cell_and_more_bins_than_rows():
    assert cut([5], 3).tolist() == [0, 1]
    assert cut([1, 1], 10**9).tolist() == [0, 1, 2]


def check_uniform(n_bins):
    edges = np.arange(n_bins + 1) / n_bins
    scores = np.concatenate((edges, np.nextafter(edges, 0.0), np.nextafter(edges, 1.0)))
    scores.flags.writeable = False
    expected = np.minimum(np.searchsorted(edges, scores, side="right") - 1, n_bins - 1)
    assert np.array_equal(binning.uniform_bins(scores, n_bins), expected)


def test_uniform_bins_at_the_edges_of_few_bins():
    for n_bins in range(1, 33):
        check_uniform(n_bins)


@pytest.mark.slow
def test_uniform_bins_at_every_edge_up_to_1000_bins():
    for n_bins in (*range(1, 1001), 100_800):
        check_uniform(n_bins)


@settings(max_examples=100)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), st.integers(1, 2000))
def test_uniform_bins_anywhere(scores, n_bins):
    edges = [float(Fraction(j, n_bins)) for j in range(n_bins + 1)]
    array = np.array(scores)
    array.flags.writeable = False
    assert binning.uniform_bins(array, n_bins).tolist() == [place_in(edges, s) for s in scores]
