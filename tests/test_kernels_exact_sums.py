"""Sums per bin in wide fixed-point integers: equal to rational arithmetic, to the last bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calcore.kernels import exact_sums

pytestmark = pytest.mark.kernels

SCORE = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 5e-324, 2.2e-308, 1.0]))
WEIGHT = st.one_of(
    st.floats(0.0, allow_infinity=False, allow_nan=False),
    st.sampled_from([0.0, 5e-324, 1.0, 3.0, 1e17, 1.7976931348623157e308]),
)
ROWS = st.lists(st.tuples(st.integers(0, 1), SCORE, WEIGHT, st.integers(0, 2)), min_size=1, max_size=30)


def added(rows, *, weighted=True):
    labels, scores = np.array([r[0] for r in rows], np.uint8), np.array([r[1] for r in rows])
    labels.flags.writeable = scores.flags.writeable = False
    index = np.array([r[3] for r in rows], np.int64)
    counts, limbs = np.zeros(3, np.int64), np.zeros((3, 3, exact_sums.LIMBS), np.int64)
    if weighted:
        weights = np.array([r[2] for r in rows])
        exact_sums.add_weighted_rows(labels, scores, weights, index, counts, limbs)
    else:
        exact_sums.add_rows(labels, scores, index, counts, limbs)
    return counts, limbs


def value(limbs, b, quantity):
    units = sum(int(word) << (32 * i) for i, word in enumerate(limbs[b, quantity]))
    return Fraction(units, 2**exact_sums.UNIT)


@settings(max_examples=150)
@given(ROWS)
def test_weighted_sums_are_exact(rows):
    counts, limbs = added(rows)
    for b in range(3):
        inside = [(y, Fraction(s), Fraction(w)) for y, s, w, i in rows if i == b]
        assert counts[b] == len(inside)
        assert value(limbs, b, exact_sums.WEIGHT) == sum(w for _, _, w in inside)
        assert value(limbs, b, exact_sums.WEIGHT_LABEL) == sum(w for y, _, w in inside if y)
        assert value(limbs, b, exact_sums.WEIGHT_SCORE) == sum(w * s for _, s, w in inside)


@settings(max_examples=100)
@given(ROWS)
def test_plain_sums_are_those_of_weight_one(rows):
    plain_counts, plain = added(rows, weighted=False)
    counts, limbs = added([(y, s, 1.0, i) for y, s, _, i in rows])
    exact_sums.carry(plain)
    exact_sums.carry(limbs)
    assert np.array_equal(plain_counts, counts)
    assert np.array_equal(plain, limbs)


@settings(max_examples=100)
@given(ROWS, st.randoms(use_true_random=False))
def test_one_form_for_one_value(rows, random):
    _, whole = added(rows)
    shuffled = random.sample(rows, len(rows))
    cut = random.randrange(len(rows) + 1)
    parts = [added(part)[1] if part else np.zeros_like(whole) for part in (shuffled[:cut], shuffled[cut:])]
    exact_sums.carry(parts[0])
    total = parts[0] + parts[1]
    for limbs in (whole, total):
        exact_sums.carry(limbs)
        assert limbs.min() >= 0
        assert limbs.max() < 2**32
    assert np.array_equal(whole, total)


def test_the_largest_sum_fits():
    """2^28 rows of the largest weight between carries, and 2^63 rows in all, stay inside the words."""
    _, limbs = added([(1, 1.0, 1.7976931348623157e308, 0)])
    assert 2**28 * int(limbs.max()) < 2**63
    exact_sums.carry(limbs)
    for _ in range(63):
        limbs *= 2
        exact_sums.carry(limbs)
    for quantity in range(3):
        assert value(limbs, 0, quantity) == 2**63 * Fraction(1.7976931348623157e308)
