"""Absolute deviations and differences over cells, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import absolute_deviation, absolute_differences, exact_sum

from calcore.kernels import deviations, sorting

pytestmark = pytest.mark.kernels

CELLS = st.lists(
    st.lists(st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 5e-324, 1.0])), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)
NONE = np.empty(0, np.int64)


def arrange(groups):
    """Sorted scores, dealt out to cells of the given sizes (the sums do not mind ties in two cells)."""
    scores = sorted(s for group in groups for s in group)
    starts = np.cumsum([0, *(len(group) for group in groups)])
    runs = [scores[a:b] for a, b in pairwise(starts)]
    columns = (
        np.array([len(run) for run in runs], np.int64),
        np.array([float(exact_sum(run)) for run in runs]),
        np.array([run[0] for run in runs]),
        np.array([run[-1] for run in runs]),
    )
    for column in columns:
        column.flags.writeable = False
    keys = np.empty(len(scores), np.int64)
    flat = np.array(scores)
    labels = np.zeros(len(scores), np.uint8)
    flat.flags.writeable = labels.flags.writeable = False
    sorting.pack(labels, flat, keys)
    return runs, columns, starts, keys


def means(n, s, lo, hi):
    mean = np.clip(s / n, lo, hi)
    mean.flags.writeable = False
    return mean


@settings(max_examples=100)
@given(CELLS, st.floats(0.0, 1.0), st.integers(0, 5))
def test_deviations(groups, center, middle):
    runs, (n, s, lo, hi), starts, keys = arrange(groups)
    cuts = np.unique([0, min(middle, len(runs)), len(runs)])
    centers = np.full(len(cuts) - 1, center)
    mean = means(n, s, lo, hi)
    exact = deviations.absolute_deviations(n, mean, mean, lo, hi, starts, keys, cuts, centers)
    chord = deviations.absolute_deviations(n, mean, mean, lo, hi, NONE, NONE, cuts, centers)
    for b, (first, last) in enumerate(pairwise(cuts)):
        inside = [x for run in runs[first:last] for x in run]
        true = absolute_deviation(inside, center)
        raised = 1 + (last - first + 8) * Fraction(1, 2**52)  # to be above the sum however it was rounded
        slack = (
            4 * len(inside) ** 2 * raised * Fraction(1, 2**53)
        )  # up to 36 terms of at most 6, each rounded
        assert abs(Fraction(exact[b]) - true * raised) <= slack
        assert Fraction(chord[b]) >= true - slack
        if all(len(set(run)) <= 2 or not run[0] < center < run[-1] for run in runs[first:last]):
            assert (
                abs(Fraction(chord[b]) - true * raised) <= slack
            )  # only rows at the two ends: the chord is exact
        assert chord[b] >= 0.0


@settings(max_examples=100)
@given(CELLS, st.integers(0, 5))
def test_differences(groups, middle):
    runs, (n, s, lo, hi), _, _ = arrange(groups)
    mean = means(n, s, lo, hi)
    within = np.array([float(absolute_differences(run)) for run in runs])
    within.flags.writeable = False
    cuts = np.unique([0, min(middle, len(runs)), len(runs)])
    found = deviations.absolute_differences(n, mean, mean, within, cuts)
    for b, (first, last) in enumerate(pairwise(cuts)):
        inside = [x for run in runs[first:last] for x in run]
        slack = 16 * len(inside) ** 3 * Fraction(1, 2**53)
        assert abs(Fraction(found[b]) - absolute_differences(inside)) <= slack
