"""Total variation denoising: exact oracle, known answers, certificates, what must not matter."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import tv_by_messages, tv_objective

from calcore.kernels import taut_string
from calcore.total_variation import tv_denoise, tv_gap

pytestmark = pytest.mark.kernels

EPS = 2.0**-53
BLOCK = taut_string.BLOCK
VALUES = st.one_of(st.integers(-4, 4), st.floats(-1.0, 1.0, width=32), st.sampled_from([0.1, 1.0 / 3.0]))
WEIGHTS = st.one_of(st.integers(1, 4), st.sampled_from([0.1, 1e-3, 7.5, 1e4]))
PENALTIES = st.one_of(
    st.sampled_from([0.0, 1e-9, 0.1, 0.25, 0.5, 1.0, 2.0, 1e9, math.inf]), st.floats(0.0, 5.0)
)
ROWS = st.lists(st.tuples(VALUES, WEIGHTS), min_size=1, max_size=25)


def exactly(y, lam, w=None):
    """The minimiser in rational arithmetic, rows without weight as documented, rounded once."""
    w = [1] * len(y) if w is None else w
    heavy = [i for i, weight in enumerate(w) if weight > 0]
    rational = [Fraction(float(y[i])) for i in heavy]
    masses = [Fraction(float(w[i])) for i in heavy]
    enough = sum(masses) * (max(rational) - min(rational))
    penalty = min(Fraction(lam), enough) if lam < math.inf else enough
    v = tv_by_messages(rational, masses, penalty)
    return np.array([float(v[max(j, 0)]) for j in np.searchsorted(heavy, np.arange(len(y)), "right") - 1])


def lent(array):
    """As tables keep their columns."""
    array.flags.writeable = False
    return array


def rounding(y):
    """How far off a value can be.

    2^-53 of the range for moving y to the middle of its range (1/2), for the sum of a piece before and after
    lam comes in (2), for its weight, the quotient and moving back (1/2 each), as much again for comparisons
    that rounding decides; and half a unit in the last place of the result.
    """
    return 8.0 * EPS * float(np.ptp(np.asarray(y, np.float64))) + math.ulp(float(np.abs(y).max())) / 2


def shapes(n):
    """Sequences on which solvers are known to be slow or wrong."""
    i = np.arange(n)
    rng = np.random.default_rng(2013)
    spike = np.zeros(n)
    spike[n // 2] = 5.0
    return {
        "alternating": i % 2,
        "constant": np.full(n, 0.1),
        "spike": spike,
        "ramp": i / n,
        "falling ramp": -i / n,
        "parabola": (i / n - 0.5) ** 2,
        "sawtooth": (i % 37) / 37.0,
        "error-diffused": np.diff(np.arange(n + 1) ** 2 // (2 * n)),
        "steps": np.repeat(rng.normal(size=n // 50 + 1), 50)[:n],
        "noise": rng.normal(size=n),
        "labels": (rng.random(n) < i / n).astype(np.int8),
        "heavy tails": rng.standard_cauchy(n),
        "walk": np.cumsum(rng.normal(size=n)),
    }


SHAPES = tuple(shapes(2))


# ------------------------------------------------------------------------------------------ known answers


def test_weights_of_tied_scores_add_up():
    """Scores .1, .5, .5 with labels 0, 1, 1: averaging the weights of the tie would give .8."""
    np.testing.assert_allclose(tv_denoise([0, 1], 0.2, sample_weight=[1, 2]), [0.2, 0.9], rtol=0, atol=EPS)


@pytest.mark.parametrize(
    ("y", "lam", "expected"),
    [
        ([0.2, -0.1, 0.5], 1.0, [0.2] * 3),
        ([0.0, 1.0], 0.3, [0.3, 0.7]),
        ([0.4], 5.0, [0.4]),
        ([3.0, 1.0, 2.0], 0.0, [3, 1, 2]),
        ([3.0, 1.0, 2.0], math.inf, [2, 2, 2]),
        ([1], 0.5, [1]),
        ([0, 0, 0], 0.5, [0, 0, 0]),
        ([1, 1, 0, 0], 1.0, [0.5] * 4),
        ([0, 1, 1, 1], 0.75, [0.75] * 4),
    ],
)
def test_right_branches(y, lam, expected):
    np.testing.assert_allclose(tv_denoise(y, lam), expected, rtol=0, atol=EPS)


@pytest.mark.parametrize(
    ("lam", "expected"), [(0.3, [0.3, 0.9]), (2.0, [0.75, 0.75]), (np.inf, [0.75, 0.75])]
)
def test_weights_in_the_data_term(lam, expected):
    found = tv_denoise([0.0, 1.0], lam, sample_weight=[1, 3])
    np.testing.assert_allclose(found, expected, rtol=0, atol=2 * EPS)


def test_float32_and_offset():
    y = np.float32([0, 1, 1, 0])
    np.testing.assert_array_equal(tv_denoise(y, 0.25), [0.25, 0.75, 0.75, 0.25])
    np.testing.assert_array_equal(tv_denoise(np.array([1.0, 0.0, 1.0]) - 1e9, 0.25) + 1e9, [0.75, 0.5, 0.75])
    assert y.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 30])
@pytest.mark.parametrize("lam", [1e-9, 0.01, 0.3, 1.0, 2.5, 100.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_against_rational_arithmetic(shape, lam, n):
    y = shapes(n)[shape]
    np.testing.assert_allclose(tv_denoise(y, lam), exactly(y, lam), rtol=0, atol=rounding(y))
    w = np.random.default_rng(n).integers(1, 5, n)
    found = tv_denoise(y, lam, sample_weight=w)
    np.testing.assert_allclose(found, exactly(y, lam, w), rtol=0, atol=rounding(y))


@settings(max_examples=400)
@given(ROWS, PENALTIES)
def test_against_rational_arithmetic(rows, lam):
    y, w = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    # A piece is at least the lightest row: sums of all rows are right to 2^-103 of them.
    slack = rounding(y) + 2.0**-100 * w.sum() / w.min() * np.ptp(y)
    found = tv_denoise(y, lam, sample_weight=w)
    np.testing.assert_allclose(found, exactly(y, lam, w), rtol=0, atol=slack)
    assert found.min() >= y.min()
    assert found.max() <= y.max()
    np.testing.assert_allclose(tv_denoise(y, lam), exactly(y, lam), rtol=0, atol=rounding(y))


@settings(max_examples=200)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=60), PENALTIES)
def test_labels_against_rational_arithmetic(labels, lam):
    exact = exactly(labels, lam)
    np.testing.assert_allclose(tv_denoise(labels, lam), exact, rtol=0, atol=2 * EPS)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.floats(0.0, 1.0)), min_size=1, max_size=25),
    st.one_of(st.sampled_from([0.25, 0.5, 1.0, 3.0]), st.floats(1e-3, 10.0)),
)
def test_groups_against_rational_arithmetic(groups, lam):
    """`of_counts` is the problem of the pooled rows: the same lam, and the same answer for each of them."""
    n = np.array([count for count, _ in groups])
    k = np.array([round(count * share) for count, share in groups])
    lam = min(lam, float(n.sum()))
    out = np.empty(len(n))
    taut_string.of_counts(lent(n), lent(k), lam, out)
    rates = [Fraction(int(a), int(b)) for a, b in zip(k, n, strict=True)]
    exact = tv_by_messages(rates, [Fraction(int(count)) for count in n], Fraction(lam))
    np.testing.assert_allclose(out, [float(v) for v in exact], rtol=0, atol=2 * EPS)


@pytest.mark.slow
def test_random_problems_against_dynamic_programming():
    rng = np.random.default_rng(37)
    for _ in range(150):
        n = int(rng.integers(1, 2001))
        w = np.where(rng.random(n) < 0.3, rng.integers(1, 100, n), rng.random(n) + 1e-3)
        y = (rng.random(n) < np.linspace(0, 1, n)) + rng.choice([0.0, 0.3, 3.0]) * rng.normal(size=n)
        lam = 10.0 ** rng.uniform(-4, 4)
        v = tv_denoise(y, lam, sample_weight=w)
        slow = np.array(tv_by_messages(y.tolist(), w.tolist(), lam))
        # The oracle in floats sums up to n terms of size w y.
        np.testing.assert_allclose(v, slow, rtol=0, atol=4 * n * EPS * w.sum() / w.min() * np.abs(y).max())
        small_excess(y, v, lam, w)


# ----------------------------------------------------------------------------- certificates of optimality


def small_excess(y, v, lam, w=None):
    """Optimal up to what rounding v to float64 does to the dual variable, and within the range of y."""
    found = tv_gap(y, v, lam, sample_weight=w)
    mass = len(y) if w is None else float(np.sum(w))
    unavoidable = EPS * mass * float(np.abs(y).max()) / lam
    spread = float(np.ptp(np.asarray(y, np.float64)))
    share = lam * spread / found.objective if found.objective else 0.0
    assert found.gap <= 1e-15 + unavoidable
    assert found.violation <= 1e-13 + 2 * unavoidable
    assert found.excess <= (1e-13 + 3 * unavoidable) * (2.0 + share)
    assert np.min(y) <= v.min()
    assert v.max() <= np.max(y)


@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_longer_than_a_block(shape, n):
    y = shapes(n)[shape]
    for lam in (1e-3, 0.7, 300.0):
        small_excess(y, tv_denoise(y, lam), lam)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_shapes_are_optimal(shape, weighted):
    """Thinning is at work from about lam = 8 times the range on, with stretches of any length."""
    n = 60_000
    y = shapes(n)[shape]
    w = np.random.default_rng(5).integers(0, 9, n) * 0.25 + 1e-3 if weighted else None
    spread = float(np.ptp(np.asarray(y, np.float64))) or 1.0
    for lam in (1e-6, 1e-2, 0.5, 3.0, 8.0, 20.0, 60.0, 200.0, 1e3, 4e3, 1e4, 1e7):
        small_excess(y, tv_denoise(y, lam * spread, sample_weight=w), lam * spread, w)


@pytest.mark.parametrize("lam", [70.0, 100.0, 200.0])
@pytest.mark.parametrize("run", [210, 500, 900])
def test_corners_far_apart_are_not_thinned(run, lam):
    """Many corners in one half, few in the other: a chunk of corners there is longer than 2 lam.

    Corners of long runs lie on one chord, and yet all of them can hold the line.
    """
    i = np.arange(BLOCK // 2)
    y = np.concatenate([i % 2, i // run % 2])
    for labels in (y, y[::-1], 1 - y):
        small_excess(labels, tv_denoise(labels, lam), lam)
        small_excess(3.0 * labels, tv_denoise(3.0 * labels, 3.0 * lam), 3.0 * lam)


@pytest.mark.parametrize("step", [1.0 / 16.0, 0.1, 0.0])
def test_tiny_penalty_on_a_long_path(step):
    """Every extreme loses 2 lam and all else stays, to the last bit or so, on a path with sums near 10^5."""
    rng = np.random.default_rng(20)
    n, lam = 3 * BLOCK + 5, 2.0**-30
    y = np.linspace(-8.0, 8.0, n) + rng.normal(size=n)
    if step:
        y = np.round(y / step) * step
    first = np.flatnonzero(np.concatenate([[1.0], np.diff(y)]))  # rows of equal values are one piece
    rows = np.diff(np.append(first, n))
    up = np.sign(np.diff(y[first]))
    bend = np.concatenate([up, [0.0]]) - np.concatenate([[0.0], up])
    v = tv_denoise(y, lam)
    np.testing.assert_allclose(v, np.repeat(y[first] + lam * bend / rows, rows), rtol=0, atol=rounding(y))
    np.testing.assert_array_equal(tv_denoise(y, lam / 4, sample_weight=np.full(n, 0.25)), v)


@pytest.mark.parametrize("n", [BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_groups_longer_than_a_block(n):
    for first in (0, 1):
        y = (np.arange(n) + first) % 2
        out = np.empty(n)
        taut_string.of_counts(lent(np.ones(n, np.int64)), lent(y), 0.3, out)
        np.testing.assert_array_equal(out, tv_denoise(y, 0.3))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["labels", "error-diffused"])
def test_ten_million_rows(order):
    n = 10_000_000
    if order == "labels":
        rng = np.random.default_rng(7)
        y = (rng.random(n) < np.sort(rng.random(n))).view(np.uint8)
    else:
        y = np.diff(np.arange(n + 1) ** 2 // (2 * n)).astype(np.uint8)
    lam = math.sqrt(math.log(4 * (n - 1) / 0.01) / (8 * n)) * n
    v = tv_denoise(y, lam)
    found = tv_gap(y, v, lam)
    assert found.gap <= 1e-13
    assert found.excess <= 1e-10


@pytest.mark.parametrize("lam", [0.01, 0.5, 3.0])
def test_gap_bounds_the_excess(lam):
    """For solutions of every quality, against the optimum in rational arithmetic."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        n = int(rng.integers(1, 12))
        y, w = rng.normal(size=n), rng.integers(1, 4, n)
        exact = [[Fraction(float(a)) for a in column] for column in (y, w)]
        best = tv_objective(*exact, tv_by_messages(*exact, Fraction(lam)), Fraction(lam))
        v = tv_denoise(y, lam, sample_weight=w) + rng.normal(size=n) * rng.choice([0.0, 1e-6, 1e-2, 1.0])
        found = tv_gap(y, v, lam, sample_weight=w)
        value = tv_objective(*exact, [Fraction(float(a)) for a in v], Fraction(lam))
        assert math.isclose(found.objective, value, rel_tol=4 * (n + 2) * EPS)
        assert float(1 - best / value) <= found.excess + 4 * (n + 2) * EPS


def test_gap_at_the_edges():
    assert tv_gap([1.0, 3.0], [1.0, 3.0], 0.0).excess == 0.0
    assert tv_gap([1.0, 3.0], [1.0, 2.0], 0.0).excess == math.inf
    assert tv_gap([2.0], [2.0], 1.0).excess == 0.0
    assert tv_gap([0.1, 0.1], [0.1, 0.1], 1.0).excess == 0.0
    assert tv_gap([0.0, 1.0], [0.0, 1.0], 1.0).gap == 1.0  # a third of the way there is no progress at all
    with pytest.raises(ValueError, match=r"^lam must be finite"):
        tv_gap([0.0, 1.0], [0.5, 0.5], math.inf)
    with pytest.raises(ValueError, match=r"^v and y must have the same length; got 1 and 2"):
        tv_gap([0.0, 1.0], [0.5], 1.0)
    with pytest.raises(ValueError, match=r"^v must be finite; got nan at index 1"):
        tv_gap([0.0, 1.0], [0.5, np.nan], 1.0)


# -------------------------------------------------------------------------------- what must not change it


@settings(max_examples=100)
@given(ROWS, st.floats(0.0, 5.0))
def test_a_weight_is_a_number_of_rows(rows, lam):
    y = np.array([value for value, _ in rows], np.float64)
    w = np.array([int(min(weight, 5)) for _, weight in rows])
    w[0] = max(w[0], 1)
    one = tv_denoise(y, lam, sample_weight=w)
    # With lam = 0 rows without weight keep their value.
    many = tv_denoise(np.repeat(y, w), lam)
    np.testing.assert_allclose(np.repeat(one, w), many, rtol=0, atol=2 * rounding(y))


@settings(max_examples=100)
@given(ROWS, st.floats(0.0, 5.0))
def test_reversal_negation_scale_and_shift(rows, lam):
    y, w = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    v = tv_denoise(y, lam, sample_weight=w)
    slack = 2 * rounding(y) + 2.0**-99 * w.sum() / w.min() * np.ptp(y)

    def solved(values, penalty, weights):
        return tv_denoise(values, penalty, sample_weight=weights)

    np.testing.assert_allclose(solved(y[::-1], lam, w[::-1])[::-1], v, rtol=0, atol=slack)
    np.testing.assert_allclose(-solved(-y, lam, w), v, rtol=0, atol=slack)
    np.testing.assert_array_equal(solved(y * 2.0**40, lam * 2.0**30, w * 2.0**-10), v * 2.0**40)
    np.testing.assert_allclose(solved(3.0 * y, 3.0 * lam, w) / 3.0, v, rtol=0, atol=4 * slack)
    for offset in (2.0**30, -(2.0**30)):
        moved = y + offset  # rounds y
        np.testing.assert_allclose(
            solved(moved, lam, w), solved(moved - offset, lam, w) + offset, rtol=0, atol=2.0**30 * 2 * EPS
        )


@pytest.mark.parametrize("offset", [1e9, -1e9])
def test_offset_costs_only_the_rounding_of_the_result(offset):
    rng = np.random.default_rng(1646)
    y = np.round(rng.normal(size=3000), 2) + offset
    for lam in (0.01, 2.0, 300.0):
        plain = tv_denoise(y - offset, lam)  # y - offset is exact
        np.testing.assert_array_less(np.abs(tv_denoise(y, lam) - (plain + offset)), 2.1 * abs(offset) * EPS)


@pytest.mark.parametrize("n", [2, 100, BLOCK + 7])
def test_one_problem_in_four_forms(n):
    """Labels, the same as floats with weights, as groups, and with a zero row beside each."""
    rng = np.random.default_rng(n)
    y = rng.integers(0, 2, n)
    zeros = np.zeros(n)
    for lam in (0.3, 4.0, 40.0, math.inf):
        v = tv_denoise(y, lam)
        np.testing.assert_allclose(tv_denoise(y, lam, sample_weight=np.ones(n)), v, rtol=0, atol=4 * EPS)
        out = np.empty(n)
        taut_string.of_counts(lent(np.ones(n, np.int64)), lent(y.copy()), min(lam, float(n)), out)
        np.testing.assert_array_equal(out, v)
        doubled = tv_denoise(
            np.column_stack([y, zeros + 1e300]).ravel(),
            lam,
            sample_weight=np.column_stack([zeros + 1, zeros]).ravel(),
        )
        np.testing.assert_allclose(doubled, np.repeat(v, 2), rtol=0, atol=4 * EPS)


def test_rows_without_weight():
    v = tv_denoise([5.0, 1.0, 0.0, 7.0, 2.0], 0.25, sample_weight=[0, 1, 0, 1, 0])
    np.testing.assert_array_equal(v, [1.25, 1.25, 1.25, 6.75, 6.75])
    np.testing.assert_array_equal(tv_denoise([5.0, 1.0, 9.0], 0.0, sample_weight=[0, 1, 0]), [5.0, 1.0, 9.0])
    np.testing.assert_array_equal(tv_denoise([5.0, 1.0, 9.0], 0.1, sample_weight=[0, 1, 0]), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(tv_denoise([5.0, 1.0, 9.0], 9.0, sample_weight=[1e-30, 1, 1]), [5.0] * 3)
    v = tv_denoise([0.0, 9.0, 1.0], 1e-40, sample_weight=[1, 1e-30, 1])  # next to nothing is nothing
    np.testing.assert_array_equal(v, [0.0, 0.0, 1.0])
    n = BLOCK + 3  # a first block without weight
    w = np.zeros(n)
    w[-2:] = 1.0
    v = tv_denoise(np.arange(n), 0.25, sample_weight=w)
    np.testing.assert_array_equal(v, np.where(np.arange(n) == n - 1, n - 1.25, n - 1.75))


def test_enough_penalty_gives_the_weighted_mean():
    rng = np.random.default_rng(53)
    for n in (2, 3, 100, 3000):
        for y in (
            rng.normal(size=n),
            rng.normal(size=n) + 1e9,
            rng.integers(0, 2, n),
            rng.integers(-9, 9, n),
        ):
            w = rng.random(n) + 0.5
            for weights in (None, w):
                masses = [Fraction(float(m)) for m in (np.ones(n) if weights is None else weights)]
                rational = [Fraction(float(value)) for value in y]
                mean = sum(map(Fraction.__mul__, masses, rational)) / sum(masses)
                total = Fraction(0)
                largest = Fraction(0)
                for mass, value in zip(masses, rational, strict=True):
                    total += mass * (value - mean)
                    largest = max(largest, abs(total))
                lowest = math.nextafter(float(largest), math.inf) * (1.0 + 1e-12)
                for lam in (lowest, 1e12, 1e300, math.inf):
                    v = tv_denoise(y, lam, sample_weight=weights)
                    assert np.ptp(v) == 0.0
                    assert abs(Fraction(float(v[0])) - mean) <= rounding(y)
                if 0 < np.abs(y).max() < 1e3:
                    less = tv_denoise(y, float(largest) * (1.0 - 1e-6), sample_weight=weights)
                    assert np.ptp(less) > 0.0


def test_far_out_numbers():
    huge = [1e308, -1e308, 1.7e308]
    np.testing.assert_allclose(tv_denoise(huge, 1e307), [9e307, -8e307, 1.6e308], rtol=4 * EPS)
    np.testing.assert_allclose(tv_denoise(huge, math.inf), [1.7e308 / 3] * 3, rtol=4 * EPS)
    np.testing.assert_array_equal(tv_denoise([5e-324, 0.0, 1e-323], 1e-323), [5e-324] * 3)
    v = tv_denoise([1.0, 0.0], 2.0**1000, sample_weight=[2.0**1002, 2.0**1002])
    np.testing.assert_array_equal(v, [0.75, 0.25])
    v = tv_denoise([1.0, 0.0], 2.0**-1066, sample_weight=[2.0**-1064, 2.0**-1064])
    np.testing.assert_array_equal(v, [0.75, 0.25])
    v = tv_denoise([2.0**-1000, 0.0], 0.25, sample_weight=[2.0**1000, 2.0**1000])
    np.testing.assert_array_equal(v, [2.0**-1000 * 0.75, 2.0**-1000 * 0.25])
    for y in shapes(50).values():
        np.testing.assert_array_equal(tv_denoise(2.0 * y, 5e-324), 2.0 * y)


# ------------------------------------------------------------------------------------ input, and one type


def test_any_column_one_specialisation():
    y = [0.0, 2.0, 2.0, 0.0]
    expected = [0.25, 1.75, 1.75, 0.25]
    frozen = np.array(y)
    frozen.flags.writeable = False
    strided = np.repeat(y, 3)[::3]
    for column in (
        y,
        [0, 2, 2, 0],
        np.float32(y),
        np.float16(y),
        np.int8(y),
        frozen,
        strided,
        strided.astype(">f8"),
    ):
        before = np.array(column)
        np.testing.assert_array_equal(tv_denoise(column, 0.25), expected)
        np.testing.assert_array_equal(tv_denoise(column, 0.25, sample_weight=np.ones(4, np.int8)), expected)
        assert tv_gap(column, expected, 0.25).excess == 0.0
        np.testing.assert_array_equal(column, before)
    y = [0, 1, 1, 0]
    frozen = np.array(y)
    frozen.flags.writeable = False
    for column in (
        y,
        np.bool_(y),
        np.uint8(y),
        np.float64(y),
        np.repeat(y, 3)[::3],
        np.bool_(np.repeat(y, 2))[::2],
        frozen,
    ):
        np.testing.assert_array_equal(tv_denoise(column, 0.25), [0.25, 0.75, 0.75, 0.25])
    for kernel in (taut_string.of_labels, taut_string.of_counts, taut_string.of_rows, taut_string.optimality):
        assert len(getattr(kernel, "signatures", [0])) <= 1


def test_the_result_is_a_new_array():
    for y in (np.array([0.0, 1.0]), np.array([False, True]), np.array([2.0, 2.0]), np.array([2.0, 5.0])):
        for lam in (0.0, 0.1):
            v = tv_denoise(y, lam)
            assert not np.shares_memory(v, y)
            assert v.flags.writeable
            assert v.dtype == np.float64


@pytest.mark.parametrize(
    ("message", "y", "lam", "weights", "error"),
    [
        (r"y must have at least one value; got 0", [], 1.0, None, ValueError),
        (r"y must be one-dimensional; got shape \(2, 2\)", np.zeros((2, 2)), 1.0, None, ValueError),
        (
            r"y must be finite; got nan at index 1 \(and 1 more\)",
            [0.0, np.nan, np.nan],
            1.0,
            None,
            ValueError,
        ),
        (r"y must be finite; got inf at index 0", [np.inf, 1.0], 1.0, None, ValueError),
        (r"y must be finite; got -inf at index 1", [0.5, -np.inf], 1.0, [1, 1], ValueError),
        (r"y must be finite; got nan at index 1", [0.5, np.nan], 0.0, [1, 0], ValueError),
        (r"y must hold numbers", ["a", "b"], 1.0, None, TypeError),
        (r"y must not have missing values", np.ma.masked_array([1.0, 2.0], [0, 1]), 1.0, None, ValueError),
        (r"lam must be a number >= 0; got -1", [0.0, 1.0], -1, None, ValueError),
        (r"lam must be a number >= 0; got nan", [0.0, 1.0], np.nan, None, ValueError),
        (r"lam must be a number; got", [0.0, 1.0], "1", None, TypeError),
        (r"sample_weight must be finite and >= 0; got -1", [0.0, 1.0], 1.0, [1, -1], ValueError),
        (r"sample_weight must be finite and >= 0; got nan", [0.0, 1.0], 1.0, [1, np.nan], ValueError),
        (r"sample_weight must not be all zero", [0.0, 1.0], 1.0, [0, 0], ValueError),
        (r"sample_weight and y must have the same length; got 1 and 2", [0.0, 1.0], 1.0, [1], ValueError),
    ],
)
def test_refusals(message, y, lam, weights, error):
    with pytest.raises(error, match=f"^{message}"):
        tv_denoise(y, lam, sample_weight=weights)


# ------------------------------------------------------------------------------------- steps of the proof


def test_thinning_keeps_every_corner_of_the_hull():
    """In every stretch of the length the corners of the convex hull are left, however often it is thinned."""
    rng = np.random.default_rng(78)
    points = np.zeros((4, BLOCK + 1))
    for _ in range(40):
        count = int(rng.integers(3, 400))
        points[taut_string.X, :count] = np.cumsum(rng.integers(1, 5, count))
        points[taut_string.Y, :count] = np.cumsum(rng.integers(-3, 4, count))
        x, y = points[taut_string.X, :count], points[taut_string.Y, :count]
        length = float(rng.integers(8, 2000))
        for sign in (1.0, -1.0):
            places = np.arange(count, dtype=np.uint32)
            kept = taut_string._thinned(points, places, count, sign, length, float(x[-1]))
            left = places[:kept].astype(int)
            assert left[0] == 0
            assert left[-1] == count - 1
            assert (np.diff(left) > 0).all()
            for gone in np.setdiff1d(np.arange(count), left):
                a, c = left[left < gone][-1], left[left > gone][0]
                assert x[c] - x[a] <= length
                chord = y[a] * (x[c] - x[gone]) + y[c] * (x[gone] - x[a])
                assert sign * y[gone] * (x[c] - x[a]) >= sign * chord


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_time_is_linear(shape):
    """Eight times the rows take at most 24 times the time, cold caches included; quadratic: 64 times."""

    def seconds(n, lam):
        y = shapes(n)[shape]
        best = math.inf
        for _ in range(3):
            start = time.thread_time()
            tv_denoise(y, lam)
            best = min(best, time.thread_time() - start)
        return best

    tv_denoise(shapes(100)[shape], 1.0)
    for lam in (1e-3, 1.0, 100.0, 1e9):
        assert seconds(320_000, lam) <= 24.0 * seconds(40_000, lam)
