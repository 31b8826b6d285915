"""The compiled loops behind ScoreTable."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import absolute_differences, equal_mass_cuts, exact_sum

from calcore.kernels import sorting

pytestmark = pytest.mark.kernels

SCORE = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 5e-324, 2e-318, 0.5, 1.0]),
    st.integers(0, 9).map(lambda k: k / 9),
)
ROWS = st.lists(st.tuples(SCORE, st.integers(0, 1)), min_size=1, max_size=40)


def sorted_keys(rows):
    scores, labels = np.array([s for s, _ in rows]), np.array([y for _, y in rows], np.uint8)
    scores.flags.writeable = labels.flags.writeable = False
    keys = np.empty(len(rows), np.int64)
    sorting.pack(labels, scores, keys)
    keys.sort()
    return keys


@settings(max_examples=60)
@given(ROWS)
def test_keys_sort_like_scores_and_keep_labels(rows):
    keys = sorted_keys(rows)
    assert [(sorting.score_of(key), key & 1) for key in keys] == sorted(rows)


@settings(max_examples=60)
@given(ROWS)
def test_ties_are_pooled(rows):
    keys = sorted_keys(rows)
    rows_of, hits_of = Counter(s for s, _ in rows), Counter(s for s, y in rows if y)
    distinct = sorted(rows_of)
    m = sorting.count_distinct(keys)
    assert m == len(distinct)
    scores, counts, positives = np.empty(m), np.empty(m, np.int64), np.empty(m, np.int64)
    sorting.pool(keys, scores, counts, positives)
    assert scores.tolist() == distinct
    assert counts.tolist() == [rows_of[s] for s in distinct]
    assert positives.tolist() == [hits_of[s] for s in distinct]

    starts = sorting.distinct_starts(keys, m)
    assert starts.tolist() == [0, *np.cumsum(counts)]
    assert sorting.distinct_starts(keys, m + 1).tolist() == starts.tolist()
    assert m == 1 or sorting.distinct_starts(keys, m - 1).size == 0


@settings(max_examples=150)
@given(ROWS, st.integers(1, 50))
def test_runs_of_equal_mass_without_looking_at_each_row(rows, n_runs):
    keys = sorted_keys(rows)
    counts = [count for _, count in sorted(Counter(s for s, _ in rows).items())]
    totals = [0, *np.cumsum(counts).tolist()]
    n_runs = min(n_runs, len(rows))
    assert sorting.equal_mass_starts(keys, n_runs).tolist() == [
        totals[i] for i in equal_mass_cuts(counts, n_runs)
    ]


@settings(max_examples=60)
@given(ROWS, st.integers(1, 5))
def test_sums_of_runs(rows, n_runs):
    keys = sorted_keys(rows)
    starts = sorting.equal_mass_starts(keys, min(n_runs, len(rows)))
    positives, sums = np.empty(len(starts) - 1, np.int64), np.empty((6, len(starts) - 1))
    sorting.summarise(keys, starts, positives, sums)
    ordered = sorted(rows)
    for g, (start, stop) in enumerate(pairwise(starts.tolist())):
        run = ordered[start:stop]
        scores, hits = [s for s, _ in run], [s for s, y in run if y]
        assert positives[g] == len(hits)
        assert (sums[4, g], sums[5, g]) == (scores[0], scores[-1])
        # Each of n additions of distances rounds at the run's width, at most 1; 2^-52 covers a product too.
        n = len(run)
        for value, true in (
            (sums[0, g], exact_sum(scores)),
            (sums[1, g], exact_sum(hits)),
            (sums[2, g], sum((Fraction(s) ** 2 for s in scores), Fraction(0))),
        ):
            assert abs(Fraction(value) - true) <= 2 * n * n * Fraction(1, 2**52)
        assert abs(Fraction(sums[3, g]) - absolute_differences(scores)) <= 2 * n**3 * Fraction(1, 2**52)
        assert len(set(scores)) > 1 or sums[3, g] == 0.0


def test_one_long_tie():
    keys = sorted_keys([(0.25, 0)] + [(0.5, i % 2) for i in range(1000)] + [(0.75, 1)])
    assert sorting.equal_mass_starts(keys, 100).tolist() == [0, 1, 1001, 1002]
    assert sorting.equal_mass_starts(keys, 1).tolist() == [0, 1002]
