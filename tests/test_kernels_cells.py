"""The compiled loops behind CellTable: where a score goes, what is added there, and how it is read back."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact_sum, grid_edges, place_in

from calcore.kernels import cells
from calcore.table import grids

pytestmark = pytest.mark.kernels

GRIDS = ("linear", "sqrt", "logit")
SIZES = (1, 2, 3, 7, 64, 1000)
SPECIAL = (0.0, 5e-324, 2e-318, 1e-12, 2.0**-33, 0.1, 0.5, 1.0 - 2.0**-33, 1.0 - 2.0**-53, 1.0)


def read_only(values, dtype):
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def filled(scores, labels, n_cells, grid, words=None):
    if words is None:
        words = np.zeros((n_cells, cells.WORDS), np.int64)
    cells.fill(
        read_only(labels, np.uint8),
        read_only(scores, np.float64),
        grids.CODES[grid],
        grids.edges(grid, n_cells),
        words,
    )
    return words


def rows(n_cells, grid):
    """Scores anywhere, on edges and beside them."""
    edges = st.sampled_from(list(grids.edges(grid, n_cells)))
    beside = st.tuples(edges, st.sampled_from([0.0, 1.0])).map(lambda pair: float(np.nextafter(*pair)))
    score = st.one_of(st.floats(0.0, 1.0), st.sampled_from(SPECIAL), edges.map(float), beside)
    return st.lists(st.tuples(score, st.integers(0, 1)), min_size=1, max_size=40)


@pytest.mark.parametrize("n_cells", [*SIZES, 6300])
@pytest.mark.parametrize("grid", GRIDS)
def test_edges_follow_their_definition(grid, n_cells):
    edges = grids.edges(grid, n_cells)
    # sqrt: a quotient and its square are rounded. logit: 1022 - octave is rounded to a multiple of 2^-43,
    # which moves an edge by 2^-44 of its distance to the nearer end.
    rtol = {"linear": 0.0, "sqrt": 2.0**-51, "logit": 2.0**-43}[grid]
    np.testing.assert_allclose(edges, grid_edges(grid, n_cells), rtol=rtol, atol=0.0)
    assert edges[0] == 0.0
    assert edges[-1] == 1.0
    assert np.all(np.diff(edges) > 0.0)


def test_linear_edges_are_the_nearest_doubles():
    for n_cells in range(1, 200):
        assert list(grids.edges("linear", n_cells)) == [
            float(Fraction(j, n_cells)) for j in range(n_cells + 1)
        ]


@pytest.mark.parametrize("n_cells", SIZES)
@pytest.mark.parametrize("grid", GRIDS)
def test_each_score_goes_where_its_edges_say(grid, n_cells):
    edges = list(grids.edges(grid, n_cells))

    @settings(max_examples=40)
    @given(rows(n_cells, grid))
    def check(sample):
        scores, labels = [s for s, _ in sample], [y for _, y in sample]
        words = filled(scores, labels, n_cells, grid)
        place = [place_in(edges, s) for s in scores]
        for j in range(n_cells):
            inside = [(s, y) for s, y, p in zip(scores, labels, place, strict=True) if p == j]
            n, k = words[j, cells.COUNTS] & 0xFFFFFFFF, words[j, cells.COUNTS] >> 32
            assert (n, k) == (len(inside), sum(y for _, y in inside))
            if not inside:
                assert not words[j].any()
                continue
            low = (cells.ONE_BITS - words[j : j + 1, cells.BOTTOM]).view(np.float64)[0]
            high = words[j : j + 1, cells.TOP].copy().view(np.float64)[0]
            assert (low, high) == (min(s for s, _ in inside), max(s for s, _ in inside))
            # Half a unit from rounding the offset; place and edge, within 2^-52 each, count N times in cells.
            unit = Fraction(edges[j + 1] - edges[j]) / 2**cells.OFFSET_BITS
            slack = Fraction(1, 2) + n_cells * Fraction(1, 2**21)
            for word, chosen in ((cells.OFFSETS, inside), (cells.HITS, [r for r in inside if r[1]])):
                true = exact_sum(s for s, _ in chosen) - len(chosen) * Fraction(edges[j])
                assert abs(int(words[j, word]) - true / unit) <= len(chosen) * slack
            # (p + d)^2 - p^2 <= 2 d + d^2 with p <= 1, and the rounding of the square itself
            true = sum((Fraction(s) - Fraction(edges[j])) ** 2 for s, _ in inside)
            assert abs(int(words[j, cells.SQUARES]) - true / unit**2 / 2**cells.OFFSET_BITS) <= len(
                inside
            ) * (2 * slack + 1)

    check()


def check_edges(n_cells, grid):
    edges = grids.edges(grid, n_cells)
    scores = np.concatenate((edges, np.nextafter(edges, 0.0), np.nextafter(edges, 1.0)))
    words = filled(scores, np.zeros(len(scores)), n_cells, grid)
    place = np.minimum(np.searchsorted(edges, scores, side="right") - 1, n_cells - 1)
    assert np.array_equal(words[:, cells.COUNTS], np.bincount(place, minlength=n_cells))


@pytest.mark.parametrize("grid", GRIDS)
def test_edges_of_small_grids(grid):
    for n_cells in range(1, 33):
        check_edges(n_cells, grid)


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS)
def test_every_edge_of_every_grid_up_to_1000_and_of_large_ones(grid):
    for n_cells in (*range(1, 1001), 65_536, 99_991, 100_800, 2**20):
        check_edges(n_cells, grid)


@pytest.mark.parametrize("grid", GRIDS)
def test_any_split_and_order_gives_the_same_cells(grid):
    rng = np.random.default_rng(20)
    scores, labels = rng.beta(0.3, 0.5, 700), rng.integers(0, 2, 700)  # more than two chunks of the kernel
    whole = filled(scores, labels, 50, grid)
    order = rng.permutation(700)
    assert np.array_equal(filled(scores[order], labels[order], 50, grid), whole)
    parts = [filled(scores[i::3], labels[i::3], 50, grid) for i in range(3)]
    for first, second, third in ((0, 1, 2), (2, 0, 1)):
        total = parts[first].copy()
        cells.add(total, parts[second])
        cells.add(total, parts[third])
        assert np.array_equal(total, whole)
    again = filled(scores[:300], labels[:300], 50, grid)
    assert np.array_equal(filled(scores[300:], labels[300:], 50, grid, again), whole)


def test_adding_a_table_to_itself_doubles_it():
    words = filled([0.1, 0.1, 0.9], [0, 1, 1], 5, "linear")
    once = words.copy()
    cells.add(words, words)
    assert np.array_equal(words[:, :4], 2 * once[:, :4])
    assert np.array_equal(words[:, 4:], once[:, 4:])


def test_decoded_cells():
    scores, labels = [0.0, 0.25, 0.3, 0.3, 1.0], [1, 0, 1, 1, 0]
    words = filled(scores, labels, 4, "linear")
    counts, sums = np.empty((2, 4), np.int64), np.empty((8, 4))
    m = cells.decode(words, grids.edges("linear", 4), counts, sums)
    assert m == 3
    assert counts[:, :m].tolist() == [[1, 3, 1], [1, 2, 0]]
    # scores are off by at most 2^-31 of the width 1/4 each; differences twice that, once per ordered pair
    exact = [[0.0, 0.85, 1.0], [0.0, 0.6, 0.0]]
    np.testing.assert_allclose(sums[:2, :m], exact, atol=3 * 2.0**-32, rtol=0)
    assert sums[2, [0, 2]].tolist() == [0.0, 1.0]
    assert 0.2425 <= sums[2, 1] <= 0.2425 + 3 * 2.0**-29
    # rows at both ends of the cell only: the bound is the sum itself, 2 * 1 * 2 pairs of distance 0.05
    np.testing.assert_allclose(sums[3, :m], [0.0, 0.2, 0.0], atol=12 * 2.0**-31, rtol=0)
    assert sums[4, :m].tolist() == [0.0, 0.25, 1.0]
    assert sums[5, :m].tolist() == [0.0, 0.3, 1.0]
    blur = 2.0**-33 + 2.0**-49
    np.testing.assert_allclose(sums[6, :m], [0.0, 0.85 / 3 - blur, 1.0], atol=blur, rtol=0)
    np.testing.assert_allclose(sums[7, :m], [0.0, 0.85 / 3 + blur, 1.0], atol=blur, rtol=0)


def test_full_cell_does_not_overflow():
    """2^31 - 1 rows at the upper end of a cell, by doubling; the kernel's words stay below 2^63."""
    words = filled([math.nextafter(1.0, 0.0)], [1], 1, "linear")
    total = words.copy()
    for _ in range(30):
        cells.add(words, words)
        cells.add(total, words)
    assert total[0, cells.COUNTS] == (2**31 - 1) * (2**32 + 1)
    assert total[0, cells.OFFSETS] == total[0, cells.HITS] == (2**31 - 1) * 2**30
    assert total[0, cells.SQUARES] == (2**31 - 1) * 2**30
