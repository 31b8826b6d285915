"""ScoreTable and CellTable: sums within the stated bounds, and nothing but the rows decides them."""

from __future__ import annotations

import _thread
import copy
import itertools
import json
import math
import os
import pickle
import signal
import socket
import stat
import threading
import time
import zlib
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import absolute_deviation, absolute_differences, equal_mass_cuts, exact_sum, place_in

from calcore import BinCounts, CellTable, ScoreTable, certify
from calcore._validate import binary
from calcore.certificates.bins import bin_cells
from calcore.kernels import cells as kernel
from calcore.kernels.binning import equal_mass, uniform_bins
from calcore.table import cell_table, grid_for, grids, score_table, storage, tabulate
from calcore.table.base import BLOCK

GRIDS = ("linear", "sqrt", "logit")
SIZES = (1, 2, 7, 100)

TINY = Fraction(1e-300)
"""What may be lost in numbers too small for 53 bits."""

SCORE = st.one_of(
    st.floats(0.0, 1.0),
    st.integers(0, 20).map(lambda k: k / 20),
    st.sampled_from([0.0, 5e-324, 2e-318, 1e-12, math.nextafter(0.5, 0.0), 0.5, 1.0 - 2.0**-53, 1.0]),
)
ROWS = st.lists(st.tuples(SCORE, st.integers(0, 1)), min_size=1, max_size=30)


def columns(rows):
    return [y for _, y in rows], [s for s, _ in rows]


def widest(table):
    """Width of the widest cell of a CellTable; 0 for sorted scores, which are not rounded to a grid."""
    return (
        float(np.diff(grids.edges(table.grid, table.n_cells)).max()) if isinstance(table, CellTable) else 0.0
    )


def state(table):
    """All that a cell table holds, as plain values."""
    about, words = pickle.loads(pickle.dumps(table)).__getstate__()
    return about, words.tolist()


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first.__getstate__(), second.__getstate__(), strict=True))


def every_table(labels, scores):
    yield ScoreTable(labels, scores)
    yield CellTable().update(labels, scores)
    for grid in GRIDS:
        for n_cells in SIZES:
            yield CellTable(n_cells, grid).update(labels, scores)


def simulated(n, seed, kind="uniform"):
    rng = np.random.default_rng(seed)
    scores = {
        "uniform": lambda: rng.random(n),
        "rare": lambda: rng.beta(0.5, 49.5, n),
        "rarer": lambda: rng.beta(0.2, 199.8, n),
        "confident": lambda: 1.0 - rng.beta(0.2, 199.8, n),
        "rounded": lambda: np.round(rng.random(n), 2),
        "constant": lambda: np.full(n, 0.3),
        "single": lambda: rng.random(n, dtype=np.float32),
        "heavy": lambda: np.where(rng.random(n) < 0.5, 0.25, rng.random(n)),
    }[kind]()
    return rng.random(n) < scores, scores


KINDS = ("uniform", "rare", "rarer", "confident", "rounded", "constant", "single", "heavy")


# ---------------------------------------------------------------------------------------------- the sums


@settings(max_examples=60)
@given(ROWS)
def test_cells_hold_their_rows(rows):
    labels, scores = columns(rows)
    for table in every_table(labels, scores):
        groups = defaultdict(list)
        edges = grids.edges(table.grid, table.n_cells).tolist() if isinstance(table, CellTable) else None
        for s, y in rows:
            groups[place_in(edges, s) if edges else s].append((s, y))
        cells = table.cells()
        assert len(cells.n) == len(groups)
        width = widest(table)
        for i, key in enumerate(sorted(groups)):
            inside = groups[key]
            values = [s for s, _ in inside]
            assert (cells.n[i], cells.k[i]) == (len(inside), sum(y for _, y in inside))
            assert (cells.lo[i], cells.hi[i]) == (min(values), max(values))
            true = exact_sum(values)
            slack = Fraction(width) * len(inside) / 2**31 + true / 2**48
            assert abs(Fraction(float(cells.s[i])) - true) <= slack
            assert cells.n[i] * cells.lo[i] <= cells.s[i] <= cells.n[i] * cells.hi[i]


def check_totals(table, labels, scores):
    """The bounds that the classes state, against sums rounded once."""
    n, width = len(scores), widest(table)
    exact = np.asarray(scores, np.float64).tolist()
    answers = np.asarray(labels, np.float64).tolist()
    scored = math.fsum(exact)
    absolute = math.fsum(s + y - 2.0 * s * y for s, y in zip(exact, answers, strict=True))
    squared = math.fsum((s - y) ** 2 for s, y in zip(exact, answers, strict=True))
    assert (table.n, table.n_positive, table.n_clipped) == (n, sum(answers), 0)
    assert abs(table.sum_scores - scored) <= n * width * 2.0**-31 + 2.0**-48 * scored
    assert abs(table.sum_abs_error - absolute) <= n * (width * 2.0**-29 + 2.0**-46)
    assert -n * 2.0**-46 <= table.sum_squared_error - squared <= n * (width * 2.0**-27 + 2.0**-44)


@settings(max_examples=60)
@given(ROWS)
def test_totals_of_few_rows(rows):
    labels, scores = columns(rows)
    for table in every_table(labels, scores):
        check_totals(table, labels, scores)


@pytest.mark.parametrize("kind", KINDS)
def test_totals_of_many_rows(kind):
    labels, scores = simulated(200_000, 30, kind)
    for table in every_table(labels, scores):
        check_totals(table, labels, scores)


def test_perfect_and_hopeless_scores_are_summed_exactly():
    labels = np.arange(1000) % 3 == 0
    for scores, errors in ((labels, 0.0), (1.0 - labels, 1000.0)):
        for table in every_table(labels, scores.astype(float)):
            assert table.sum_abs_error == errors
            blurred = 1000 * 2.0**-27 if len(table.cells().n) == 1 else 0.0  # 0 and 1 in one cell
            assert 0.0 <= table.sum_squared_error - errors <= blurred


@pytest.mark.slow
@pytest.mark.parametrize("millions", [20, 40])
def test_single_precision_halves_average_to_one_half(millions):
    """A float32 accumulator stops at 2^23 and says .419 or less."""
    n = millions * 10**6
    scores = np.full(n, 0.5, np.float32)
    labels = np.zeros(n, np.int8)
    labels[::2] = 1
    for table in (CellTable().update(labels, scores), ScoreTable(labels, scores)):
        assert (table.n, table.n_positive) == (n, n // 2)
        assert table.sum_scores / n == 0.5
        assert table.sum_abs_error / n == 0.5
        assert table.sum_squared_error / n == 0.25


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_unions_of_the_usual_equal_width_bins(kind):
    labels, scores = simulated(20_000, 31, kind)
    cells = CellTable().update(labels, scores).cells()
    for n_bins in (10, 15, 20, 25, 30, 40, 45, 50):
        index = uniform_bins(cells.lo, n_bins)
        assert np.array_equal(index, uniform_bins(cells.hi, n_bins))
        counts = BinCounts(n_bins).update(labels, scores).counts
        assert np.array_equal(np.bincount(index, cells.n, n_bins), counts)


# ------------------------------------------------------------------------------------------- sorted scores


@settings(max_examples=60)
@given(ROWS)
def test_ties_are_one_score(rows):
    labels, scores = columns(rows)
    table = ScoreTable(labels, scores)
    distinct = sorted(set(scores))
    assert table.scores.tolist() == distinct
    assert table.counts.tolist() == [scores.count(s) for s in distinct]
    assert table.positives.tolist() == [sum(y for t, y in rows if t == s) for s in distinct]
    assert all(
        array.dtype == kind
        for array, kind in zip(
            (table.scores, table.counts, table.positives), (np.float64, np.int64, np.int64), strict=True
        )
    )


@settings(max_examples=60)
@given(ROWS, st.integers(1, 8))
def test_many_distinct_scores_are_grouped_by_mass(rows, groups):
    labels, scores = columns(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_table, "_GROUPS", groups)
        table = ScoreTable(labels, scores)
        cells = table.cells()
    if len(table.scores) <= groups:
        cuts = list(range(len(table.scores) + 1))
    else:
        cuts = equal_mass_cuts(table.counts.tolist(), groups)
    for column, whole in ((cells.n, table.counts), (cells.k, table.positives)):
        assert column.tolist() == [whole[a:b].sum() for a, b in pairwise(cuts)]
    assert cells.lo.tolist() == table.scores[cuts[:-1]].tolist()
    assert cells.hi.tolist() == [table.scores[b - 1] for b in cuts[1:]]


def test_number_of_cells_of_sorted_scores():
    scores = np.linspace(0.0, 1.0, 300_000)
    scores[:100_000] = 0.0
    cells = ScoreTable(np.zeros(300_000), scores).cells()
    assert 65_536 * 2 // 3 <= len(cells.n) <= 65_536 + 1
    assert cells.n.max() == cells.n[0] == 100_000  # a heavy value is alone
    assert cells.n[1:].max() < 2 * 300_000 / 65_536
    assert np.all(cells.hi[:-1] < cells.lo[1:])
    rounded = scores.round(3)
    assert np.array_equal(ScoreTable(np.zeros(300_000), rounded).cells().lo, np.unique(rounded))


# -------------------------------------------------------------------------------- deviations and differences


def bins_of(table, n_bins):
    cuts = equal_mass(table.cells().n, n_bins)
    totals = np.concatenate(([0], np.cumsum(table.cells().n)))
    return cuts, totals[cuts]


@settings(max_examples=60)
@given(ROWS, st.integers(1, 4), st.data())
def test_deviations_are_exact_or_above(rows, n_bins, data):
    labels, scores = columns(rows)
    ordered = sorted(scores)
    for table in every_table(labels, scores):
        cuts, ranks = bins_of(table, n_bins)
        centers = np.array([data.draw(st.one_of(SCORE, st.sampled_from(scores))) for _ in cuts[1:]])
        got, cells = table.abs_deviation(cuts, centers), table.cells()
        for b, (first, last) in enumerate(pairwise(ranks)):
            inside = ordered[first:last]
            true = absolute_deviation(inside, centers[b])
            # means off by 2^-30 of a cell, and every term rounded at a size of at most 30
            slack = len(inside) * (Fraction(widest(table)) / 2**30 + Fraction(1, 2**44))
            assert Fraction(float(got[b])) >= true - (slack if isinstance(table, ScoreTable) else TINY)
            runs = slice(cuts[b], cuts[b + 1])
            split = (cells.lo[runs] < centers[b]) & (centers[b] < cells.hi[runs])
            if isinstance(table, ScoreTable) or not split.any():
                assert Fraction(float(got[b])) <= true + slack
            else:  # a chord is above by at most half the range of the cell's scores, per row
                most = (cells.n[runs] * (cells.hi[runs] - cells.lo[runs]))[split].sum() / 2
                assert Fraction(float(got[b])) <= true + Fraction(float(most)) + slack


@settings(max_examples=60)
@given(ROWS, st.integers(1, 4))
def test_differences_are_exact_or_above(rows, n_bins):
    labels, scores = columns(rows)
    ordered = sorted(scores)
    for table in every_table(labels, scores):
        cuts, ranks = bins_of(table, n_bins)
        got, cells = table.abs_differences(cuts), table.cells()
        for b, (first, last) in enumerate(pairwise(ranks)):
            inside = ordered[first:last]
            true = absolute_differences(inside)
            slack = 4 * len(inside) ** 2 * (Fraction(widest(table)) / 2**30 + Fraction(1, 2**44))
            assert Fraction(float(got[b])) >= true - (slack if isinstance(table, ScoreTable) else TINY)
            hidden = 0.0
            if isinstance(table, CellTable):  # 2 n^2 (b - m)(m - a)/(b - a) is at most n^2 (b - a)/2
                runs = slice(cuts[b], cuts[b + 1])
                several = cells.n[runs] > 2
                hidden = (cells.n[runs] ** 2 * (cells.hi[runs] - cells.lo[runs]) / 2)[several].sum()
            assert Fraction(float(got[b])) <= true + Fraction(float(hidden)) + slack


GAPS = st.one_of(st.just(0.0), st.integers(0, 70).map(lambda e: 2.0**-e))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([1, 2, 3, 7, 100_800]),
    st.sampled_from(GRIDS),
    st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.1, 0.4, 0.5, 1.0 / 3.0, 1.0])),
    st.lists(st.tuples(GAPS, st.integers(1, 40)), min_size=1, max_size=6),
    st.floats(0.0, 1.0),
)
def test_bounds_hold_whatever_the_gaps(n_cells, grid, first, steps, where):
    """Scores from far apart to one unit in the last place apart, in narrow and in wide cells."""
    scores, at = [], first
    for gap, count in steps:
        at = min(max(at + gap, math.nextafter(at, 1.0) if gap else at), 1.0)
        scores += [at] * count
    labels = [i % 2 for i in range(len(scores))]
    table = CellTable(n_cells, grid).update(labels, scores)
    whole = np.array([0, len(table.cells().n)])
    assert Fraction(float(table.abs_differences(whole)[0])) >= absolute_differences(scores) - TINY
    centers = {where, math.fsum(scores) / len(scores), *scores}
    for center in centers:
        got = table.abs_deviation(whole, np.array([center]))[0]
        assert Fraction(float(got)) >= absolute_deviation(scores, center) - TINY
    squares = sum((Fraction(s) - y) ** 2 for s, y in zip(scores, labels, strict=True))
    assert Fraction(table.sum_squared_error) >= squares - len(scores) * Fraction(1, 2**46)


@pytest.mark.parametrize("n_cells", [1, 2, 3, 7, 100_800])
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-10, 1e-13, 2.0**-53])
def test_a_steep_slope_between_close_scores_is_not_hidden(n_cells, gap):
    """Two scores, all labels 0 at one and 1 at the other: the calibration error is about one half."""
    n, rng = 20_000, np.random.default_rng(0)
    scores = np.where(rng.random(n) < 0.5, 0.4, 0.4 + gap)
    labels = scores > 0.4
    table = CellTable(n_cells).update(labels, scores)
    true = 0.5 * (0.4 + 0.6 - gap)
    assert certify(table, lipschitz=1.1 / gap).upper >= true


def test_deviations_of_many_rows():
    """Groups of several distinct scores: the one that holds the centre is read row by row."""
    labels, scores = simulated(200_000, 32)
    table = ScoreTable(labels, scores)
    ordered = np.sort(scores)
    for n_bins in (1, 10, 100):
        cuts, ranks = bins_of(table, n_bins)
        centers = np.array([ordered[a:b].mean() for a, b in pairwise(ranks)])
        true = [math.fsum(abs(ordered[a:b] - c)) for (a, b), c in zip(pairwise(ranks), centers, strict=True)]
        np.testing.assert_allclose(table.abs_deviation(cuts, centers), true, rtol=2.0**-35)
        pairs = [
            2.0 * math.fsum((2.0 * np.arange(b - a) - (b - a) + 1.0) * (ordered[a:b] - ordered[a]))
            for a, b in pairwise(ranks)
        ]
        np.testing.assert_allclose(table.abs_differences(cuts), pairs, rtol=2.0**-35)  # 65,536 cells, 2^-52


# ------------------------------------------------------------------ only the rows decide, not how they came


@pytest.mark.parametrize("grid", GRIDS)
def test_neither_order_nor_batches_nor_merging_matter(grid):
    labels, scores = simulated(150_000, 33, "rare")
    whole = CellTable(5000, grid).update(labels, scores)
    order = np.random.default_rng(34).permutation(len(scores))
    assert same(CellTable(5000, grid).update(labels[order], scores[order]), whole)
    batches = CellTable(5000, grid)
    for part in np.array_split(order, 7):
        batches.update(labels[part], scores[part])
    assert same(batches, whole)
    parts = np.split(order, [10, 70_000])
    for sequence in permutations(parts):
        total = CellTable(5000, grid)
        for part in sequence:
            total.merge(CellTable(5000, grid).update(labels[part], scores[part]))
        assert same(total, whole)
        assert total.sum_squared_error == whole.sum_squared_error


@pytest.mark.parametrize("grid", GRIDS)
def test_threads_do_not_matter(grid):
    labels, scores = simulated(600_000, 35)
    scores[::1000] = 1.0 + 1e-10
    one = CellTable(1000, grid).update(labels, scores, n_threads=1)
    assert one.n_clipped == 600
    for _ in range(20):
        for n_threads in (1, 2, 4, 8, None):
            assert same(CellTable(1000, grid).update(labels, scores, n_threads=n_threads), one)


def test_a_thread_that_is_late_with_the_last_block_still_counts_it(monkeypatch):
    """The others find the heap empty meanwhile, and end."""
    labels, scores = simulated(600_000, 40)
    last = -(-600_000 // BLOCK) - 1

    class Heap:
        def __init__(self):
            self.numbers = itertools.count()

        def __iter__(self):
            return self

        def __next__(self):
            number = next(self.numbers)
            if number == last:
                time.sleep(0.3)
            return number

    one = CellTable(100).update(labels, scores, n_threads=1)
    late = SimpleNamespace(count=Heap, takewhile=itertools.takewhile)
    monkeypatch.setattr(cell_table, "itertools", late)
    assert same(CellTable(100).update(labels, scores, n_threads=4), one)


def test_threads_add_to_what_is_there():
    labels, scores = simulated(600_000, 36)
    first = CellTable(100).update(labels[:10], scores[:10])
    first.update(labels[10:], scores[10:], n_threads=2)
    assert same(first, CellTable(100).update(labels, scores, n_threads=1))


def test_the_same_fault_is_named_by_any_number_of_threads():
    labels, scores = simulated(600_000, 37)
    faults = scores.copy()
    faults[500_000], bad = np.nan, labels.astype(int)
    bad[100_000] = 7
    table = CellTable(100)
    for columns_ in ((labels, faults), (bad, scores), (bad, faults)):
        messages = set()
        for n_threads in (1, 2, 4, 4, 4):
            with pytest.raises(ValueError, match=r"index [15]00000") as error:
                table.update(*columns_, n_threads=n_threads)
            messages.add(str(error.value))
        assert len(messages) == 1
    assert same(table, CellTable(100))


def test_columns_handed_out_are_read_only_and_stay_as_they_were():
    for table in every_table([0, 1, 1], [0.1, 0.2, 0.2]):
        assert table.cells() is table.cells()
        for column in table.cells():
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 0
    sorted_ = ScoreTable([0, 1, 1], [0.1, 0.2, 0.2])
    for column in (sorted_.scores, sorted_.counts, sorted_.positives):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
    table = CellTable().update([0, 1], [0.1, 0.2])
    before = table.cells()
    table.update([1], [0.3])
    assert (before.n.sum(), table.cells().n.sum()) == (2, 3)


@pytest.mark.parametrize("renew", [copy.deepcopy, copy.copy, lambda table: pickle.loads(pickle.dumps(table))])
def test_copies_are_equal_and_apart(renew):
    labels, scores = simulated(5000, 38)
    for table in every_table(labels, scores):
        table.cells()
        twin = renew(table)
        assert same(twin, table)
        assert (twin.sum_scores, repr(twin)) == (table.sum_scores, repr(table))
        if isinstance(table, CellTable):
            twin.update([1], [0.5])
            assert (twin.n, table.n, table.cells().n.sum()) == (5001, 5000, 5000)


# ----------------------------------------------------------------------------------------- merge and limits


def test_merging():
    table = CellTable(10, "sqrt").update([0, 1], [0.2, 1.0 + 1e-12])
    other = CellTable(10, "sqrt").update([1], [-1e-12])
    assert table.merge(other) is table
    assert (table.n, table.n_positive, table.n_clipped, other.n) == (3, 2, 2, 1)
    assert same(table.merge(CellTable(10, "sqrt")), CellTable(10, "sqrt").merge(table))
    with pytest.raises(
        ValueError, match="other must have the same grid; got 11 sqrt cells for 10 sqrt cells"
    ):
        table.merge(CellTable(11, "sqrt"))
    with pytest.raises(
        ValueError, match="other must have the same grid; got 10 linear cells for 10 sqrt cells"
    ):
        table.merge(CellTable(10))
    with pytest.raises(TypeError, match="other must be a CellTable; got ScoreTable"):
        table.merge(ScoreTable([0], [0.5]))


def test_a_cell_holds_two_billion_rows_and_refuses_more():
    table, total = CellTable().update([1], [0.3]), CellTable().update([1], [0.3])
    for _ in range(30):
        table.merge(table)
        total.merge(table)
    most = 2**31 - 1
    assert (total.n, total.n_positive) == (most, most)
    assert abs(total.sum_scores / most - 0.3) <= 1e-5 * 2.0**-31 + 2.0**-49
    assert total.cells().lo == total.cells().hi == 0.3
    before = state(total)
    with pytest.raises(OverflowError, match="a cell would hold 2147483648 rows"):
        total.update([0], [0.3])
    with pytest.raises(OverflowError, match="a cell would hold 3221225471 rows"):
        total.merge(table)
    assert state(total) == before
    assert total.update([0], [0.4]).n == 2**31  # another cell has room


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "n_cells must be a whole number >= 1; got 0"),
        ((2.5,), "n_cells must be a whole number >= 1; got 2.5"),
        ((2**24 + 1,), r"n_cells must be at most 2\^24 \(1 GiB\); got 16777217"),
        ((2**31,), r"n_cells must be at most 2\^24 \(1 GiB\); got 2147483648"),
        ((10, "log"), "grid must be one of 'linear', 'sqrt', 'logit'; got 'log'"),
    ],
)
def test_senseless_grids(arguments, message):
    with pytest.raises(ValueError, match=message):
        CellTable(*arguments)


def test_an_empty_cell_table():
    table = CellTable()
    assert (table.n, table.n_positive, table.n_clipped, table.sum_scores) == (0, 0, 0, 0.0)
    assert (table.sum_abs_error, table.sum_squared_error, table.is_coarse) == (0.0, 0.0, False)
    assert all(len(column) == 0 for column in table.cells())


def test_words_for_people():
    assert ScoreTable([0], [0.5]).describe() == "sorted scores"
    assert repr(ScoreTable([0], [0.5])) == "<ScoreTable: 1 rows>"
    assert CellTable().describe() == "100,800 linear cells"
    assert repr(CellTable(5, "logit").update([1], [1.0])) == "<CellTable: 1 rows in 5 logit cells>"


# --------------------------------------------------------------------------------------------- broken off


def broken_or(table, *wholes):
    """Check that a table is one of `wholes`, or that nothing can be had from it any more."""
    if table._whole:
        assert any(same(table, whole) for whole in wholes)
        assert table.n == table.cells().n.sum()
        return False
    for ask in (
        lambda: table.n,
        lambda: table.n_positive,
        lambda: table.n_clipped,
        lambda: table.sum_scores,
        lambda: table.is_coarse,
        lambda: table.cells(),
        lambda: table.abs_differences(np.array([0, 1])),
        lambda: table.save("never"),
        lambda: pickle.dumps(table),
        lambda: copy.copy(table),
        lambda: table.update([1], [0.5]),
        lambda: table.merge(CellTable(table.n_cells)),
        lambda: CellTable(table.n_cells).merge(table),
        lambda: certify(table),
    ):
        with pytest.raises(RuntimeError, match="the table is incomplete: build it again"):
            ask()
    assert repr(table) == f"<CellTable: an unknown part of the rows in {table.describe()}>"
    return True


@pytest.mark.parametrize("step", ["fill", "add"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", [400_000, 600_000])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("filled", [False, True])
def test_an_update_broken_off_leaves_the_table_as_it_was_or_spoilt(
    monkeypatch, step, after, n, n_threads, filled
):
    """Ctrl-C before and after the k-th call of each kernel, for every k."""
    labels, scores = simulated(n, 45)
    start = CellTable(50).update([0, 1], [0.3, 0.6]) if filled else CellTable(50)
    done = copy.copy(start).update(labels, scores)
    original, spoilt = getattr(kernel, step), 0
    for k in range(7):
        calls = []

        def interrupted(*arguments, stop=k, calls=calls):
            calls.append(1)
            here = len(calls) == stop + 1
            if here and not after:
                raise KeyboardInterrupt
            original(*arguments)
            if here:
                raise KeyboardInterrupt

        table = copy.copy(start)
        table.cells()
        with monkeypatch.context() as patch:
            patch.setattr(kernel, step, interrupted)
            try:
                table.update(labels, scores, n_threads=n_threads)
            except KeyboardInterrupt:
                spoilt += broken_or(table, start)
            else:
                assert len(calls) <= k
                assert not broken_or(table, done)
    in_place = step == "fill" if n < 500_000 else step == "add" and filled
    assert spoilt == (0 if not in_place else 4 if step == "fill" else 1)


@pytest.mark.parametrize("after", [False, True])
def test_a_merge_broken_off_spoils_the_table_and_leaves_the_other(monkeypatch, after):
    table, other = CellTable(9).update([0, 1], [0.1, 0.2]), CellTable(9).update([1], [0.9])
    add, before = kernel.add, copy.copy(other)

    def interrupted(*arguments):
        if after:
            add(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.merge(other)
    monkeypatch.undo()
    assert broken_or(table)
    assert same(other, before)


def test_threads_stop_at_an_interrupt(monkeypatch):
    """Ctrl-C does not wait for blocks that nobody has begun."""
    labels, scores = simulated(3_000_000, 46)
    table, calls, original = CellTable(50), [], kernel.fill

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        time.sleep(0.01)
        original(*arguments)

    monkeypatch.setattr(kernel, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.update(labels, scores, n_threads=2)
    assert len(calls) < 12
    assert not broken_or(table, CellTable(50))


def test_threads_stop_at_a_signal_that_does_not_wake_the_main_thread(monkeypatch):
    """As one does not that comes just before the main thread begins to wait."""
    labels, scores = simulated(3_000_000, 46)  # 23 blocks
    table, calls, seen = CellTable(50), iter(range(1, 99)), threading.Event()

    def raising(*_):
        seen.set()
        raise KeyboardInterrupt

    def slow(*_):
        call = next(calls)
        if call == 4:  # by now the main thread waits
            _thread.interrupt_main()
        if call >= 4:
            seen.wait(1.0)
        time.sleep(0.05)  # and now it has called off the rest

    monkeypatch.setattr(kernel, "fill", slow)
    previous = signal.signal(signal.SIGINT, raising)
    try:
        with pytest.raises(KeyboardInterrupt):
            table.update(labels, scores, n_threads=2)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert next(calls) < 12
    assert not broken_or(table, CellTable(50))


def test_a_real_interrupt_at_any_time():
    labels, scores = simulated(400_000, 47)
    start = CellTable(50).update([0, 1], [0.3, 0.6])
    done = copy.copy(start).update(labels, scores)
    delays = np.random.default_rng(48).uniform(1e-4, 8e-3, 50)

    def interrupt(*_):
        raise KeyboardInterrupt

    previous, spoilt = signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for delay in delays:
            table = copy.copy(start)
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                table.update(labels, scores)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:
                pass
            spoilt += broken_or(table, start, done)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
    assert spoilt


# ---------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("grid", GRIDS)
def test_a_saved_table_comes_back(grid, tmp_path):
    labels, scores = simulated(1000, 39, "heavy")
    scores[0] = -1e-10
    table = CellTable(500, grid).update(labels, scores)
    table.save(tmp_path / "a")
    twin = CellTable.load(str(tmp_path / "a"))
    assert same(twin, table)
    assert (twin.n_clipped, twin.sum_squared_error) == (1, table.sum_squared_error)
    twin.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert same(CellTable.load(tmp_path / "b").update(labels, scores), table.merge(twin))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_an_empty_table_is_a_file_too(tmp_path):
    CellTable(7).save(tmp_path / "empty")
    assert CellTable.load(tmp_path / "empty").update([1], [0.5]).n == 1


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "table"
    CellTable(7).update([1], [0.5]).save(path)
    before = path.read_bytes()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CellTable(7).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["table"]
    CellTable(9).save(path)
    assert CellTable.load(path).n_cells == 9


def test_every_damage_is_noticed(tmp_path):
    path = tmp_path / "table"
    CellTable(50).update([0, 1, 1], [0.1, 0.5, 0.9]).save(path)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"damaged|is not a calcore cell table"):
            CellTable.load(path)
    for position in range(len(whole)):
        for bit in (0, 5):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ (1 << bit)]) + whole[position + 1 :])
            with pytest.raises(ValueError, match=r"damaged|is not a calcore cell table|has version"):
                CellTable.load(path)


def rewritten(path, changes=(), change_words=lambda words: words, pack=zlib.compress):
    """Write a table's file anew with other content and a valid checksum."""
    table = CellTable(50).update([0, 1, 1, 0], [0.1, 0.5, 0.513, 1.0])
    about, matrix = table.__getstate__()
    about = {"format": "calcore cell table", "version": 1, **about, **dict(changes)}
    header = {name: value for name, value in about.items() if value is not None}
    body = pack(change_words(matrix.copy()).astype("<i8").tobytes())
    checksum = storage._checksum(header, body)
    path.write_bytes(json.dumps({**header, "sha256": checksum}).encode() + b"\n" + body)
    return table


def word(row, column, value):
    def change(words):
        words[row, column] = value
        return words

    return change


COUNTS, OFFSETS, HITS, SQUARES, TOP, BOTTOM = range(1, 7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"changes": {"n": 5}}, "n must be the number of rows in cells, 4; got 5"),
        ({"changes": {"n": 4.0}}, "n must be a whole number; got 4.0"),
        ({"changes": {"n": True}}, "n must be a whole number; got True"),
        ({"changes": {"n": None}}, "grid, n, n_cells, n_clipped must be given; got grid, n_cells, n_clipped"),
        ({"changes": {"more": 1}}, "n_clipped must be given; got grid, more, n"),
        ({"changes": {"n_clipped": -1}}, "n_clipped must be a number of rows, at most 4; got -1"),
        ({"changes": {"n_clipped": 5}}, "n_clipped must be a number of rows, at most 4; got 5"),
        ({"changes": {"n_cells": "50"}}, "n_cells must be a whole number; got '50'"),
        ({"changes": {"n_cells": 0}}, "n_cells must be a whole number >= 1; got 0"),
        ({"changes": {"n_cells": 2**24 + 1}}, r"n_cells must be at most 2\^24 \(1 GiB\); got 16777217"),
        ({"changes": {"n_cells": 10**400}}, "n_cells must be at most .*; got 1000"),
        ({"changes": {"n_cells": 49}}, "cells must be numbered, ascending, from 0 to at most 48"),
        ({"changes": {"n_cells": 2}}, "there are more than 2 rows"),
        ({"changes": {"n_cells": 51}}, "smallest and largest score of cell 25 cannot be"),
        ({"changes": {"grid": "log"}}, "grid must be one of"),
        ({"changes": {"grid": 7}}, "grid must be one of"),
        ({"changes": {"grid": "sqrt"}}, "smallest and largest score of cell 5 cannot be"),
        (
            {"change_words": lambda words: words[::-1]},
            "cells must be numbered, ascending, from 0 to at most 49",
        ),
        ({"change_words": lambda words: words[[0, 0, 1]]}, "cells must be numbered, ascending"),
        ({"change_words": lambda words: words[:2]}, "n must be the number of rows in cells, 3; got 4"),
        ({"change_words": word(0, 0, -1)}, "cells must be numbered, ascending"),
        ({"change_words": word(2, 0, 50)}, "cells must be numbered, ascending"),
        ({"change_words": word(2, 0, 2**62)}, "cells must be numbered, ascending"),
        ({"change_words": word(0, COUNTS, 0)}, "numbers of rows and positives of cell 5 cannot be"),
        ({"change_words": word(0, COUNTS, -1)}, "numbers of rows and positives of cell 5 cannot be"),
        ({"change_words": word(0, COUNTS, 2 * 2**32 + 1)}, "numbers of rows and positives of cell 5"),
        ({"change_words": word(0, COUNTS, 2**31)}, "numbers of rows and positives of cell 5 cannot be"),
        ({"change_words": word(0, TOP, 0)}, "smallest and largest score of cell 5 cannot be"),
        ({"change_words": word(0, TOP, kernel.ONE_BITS)}, "smallest and largest score of cell 5 cannot be"),
        ({"change_words": word(2, TOP, kernel.ONE_BITS + 1)}, "smallest and largest score of cell 49"),
        ({"change_words": word(0, BOTTOM, 0)}, "smallest and largest score of cell 5 cannot be"),
        ({"change_words": word(0, BOTTOM, -(2**63))}, "smallest and largest score of cell 5 cannot be"),
        ({"change_words": word(0, OFFSETS, 2**32)}, "sums of cell 5 cannot be"),
        ({"change_words": word(1, OFFSETS, -40)}, "sums of cell 25 cannot be"),
        ({"change_words": word(0, HITS, 2**30)}, "sums of cell 5 cannot be"),
        ({"change_words": word(1, HITS, 0)}, "sums of cell 25 cannot be"),
        ({"change_words": word(0, SQUARES, 2**62)}, "sums of cell 5 cannot be"),
        ({"change_words": word(0, 8, 1)}, "unused words of cell 5 cannot be"),
        ({"pack": lambda content: b"not zlib"}, "the rows cannot be decompressed"),
        ({"pack": lambda content: zlib.compress(content)[:-3]}, "the rows are incomplete"),
        ({"pack": lambda content: zlib.compress(content) + b"x"}, "or something follows them"),
        ({"pack": lambda content: zlib.compress(content[:-8])}, "the rows are incomplete"),
        ({"pack": lambda content: zlib.compress(bytes(10**8))}, "there are more than 50 rows"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(content, message, tmp_path):
    path = tmp_path / "table"
    rewritten(path, **content)
    with pytest.raises(ValueError, match=f"table is damaged: .*{message}") as error:
        CellTable.load(path)
    assert str(error.value).startswith(str(path))


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 2),
    st.integers(0, 8),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-100, 100), st.just(kernel.ONE_BITS)),
    st.dictionaries(
        st.sampled_from(["n", "n_cells", "n_clipped", "grid", "version", "sha256", "other"]),
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just([[]]), st.just("sqrt")
        ),
        max_size=2,
    ),
)
def test_any_content_is_a_table_or_refused(tmp_path_factory, row, column, value, changes):
    path = tmp_path_factory.getbasetemp() / "any"
    rewritten(path, changes, word(row, column, value))
    try:
        table = CellTable.load(path)
    except ValueError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
    else:
        assert table.n == table.cells().n.sum() == 4
        cells = table.cells()
        assert np.all(cells.k <= cells.n)
        assert np.all(cells.lo <= cells.hi)
        assert np.all((cells.n * cells.lo <= cells.s) & (cells.s <= cells.n * cells.hi))
        certify(table)


def test_deep_nesting_is_no_table(tmp_path):
    path = tmp_path / "table"
    for start in (b"", b'{"format": "calcore cell table", "x": '):
        path.write_bytes(start + b"[" * 200_000)
        with pytest.raises(ValueError, match="table is not a calcore cell table file"):
            CellTable.load(path)


def test_only_regular_files_are_replaced(tmp_path, monkeypatch):
    table = CellTable(3).update([1], [0.5])
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for path, kind in (
            ("pipe", "a pipe"),
            ("socket", "a socket"),
            (str(tmp_path), "a directory"),
            (".", "a directory"),
            ("/dev/null", "a device"),
        ):
            with pytest.raises(ValueError, match=f"path must name a regular file; {path} is {kind}"):
                table.save(path)
    for path in ("", "new/", "a\0b"):
        with pytest.raises(ValueError, match="path must name a file; got "):
            table.save(path)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(os.listdir()) == ["pipe", "socket"]


def test_links_and_permissions_stay(tmp_path):
    table = CellTable(3).update([1], [0.5])
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real", tmp_path / "link"
    link.symlink_to(Path("folder") / "real")
    table.save(link)  # leads to nothing yet
    for mode in (0o600, 0o664, 0o640):
        real.chmod(mode)
        table.merge(table).save(link)
        assert link.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == mode
        assert same(CellTable.load(real), table)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "link", "real"]


def test_messages_about_files_name_the_path_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    for path, kind in (("missing/table", FileNotFoundError), ("file/table", NotADirectoryError)):
        with pytest.raises(kind) as error:
            CellTable(3).save(path)
        assert error.value.filename == path
        assert ".part" not in str(error.value)
    name = "n" * 255
    CellTable(3).save(name)
    assert CellTable.load(name.encode()).n == 0
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="file"):
        CellTable(3).save("file")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a calcore cell table file"),
        (b"PAR1\x00\xff\n", "is not a calcore cell table file"),
        (b"[1, 2]\n", "is not a calcore cell table file"),
        (b'{"format": "other"}\n', "is not a calcore cell table file"),
        (
            b'{"format": "calcore cell table"}\n',
            "has version None of the calcore cell table format; known: 1",
        ),
        (b'{"format": "calcore cell table", "version": 2}\n', "has version 2 of the"),
        (
            b'{"format": "calcore cell table", "version": 1}\n' + zlib.compress(b""),
            "is damaged: the checksum does not match",
        ),
    ],
)
def test_files_that_are_no_tables(content, message, tmp_path):
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        CellTable.load(path)
    assert str(error.value).startswith(str(path))


def test_the_format_is_readable_without_calcore(tmp_path):
    CellTable(4).update([1, 0], [0.25, 0.75]).save(tmp_path / "table")
    line, _, body = (tmp_path / "table").read_bytes().partition(b"\n")
    header = json.loads(line)
    del header["sha256"]
    assert header == {
        "format": "calcore cell table",
        "version": 1,
        "grid": "linear",
        "n_cells": 4,
        "n": 2,
        "n_clipped": 0,
    }
    words = np.frombuffer(zlib.decompress(body), "<i8").reshape(-1, 9)
    assert words[:, :2].tolist() == [[1, 2**32 + 1], [3, 1]]


# ------------------------------------------------------------------------------------------- choosing a grid


@pytest.mark.parametrize(
    ("kind", "grid"),
    [
        ("uniform", "linear"),
        ("rare", "sqrt"),
        ("rarer", "logit"),
        ("confident", "logit"),
        ("rounded", "linear"),
        ("constant", "linear"),
        ("single", "linear"),
        ("heavy", "linear"),
    ],
)
def test_the_grid_follows_the_scores(kind, grid):
    _, scores = simulated(65_536, 40, kind)
    assert grid_for(scores) == grid
    assert grid_for(scores[:1000]) == grid


def test_no_scores_or_only_extremes_take_the_plain_grid():
    assert grid_for([]) == "linear"
    assert grid_for([0.0, 1.0]) == "linear"


@pytest.mark.parametrize("kind", KINDS)
def test_the_chosen_grid_is_not_coarse(kind):
    labels, scores = simulated(1_000_000, 41, kind)
    table = CellTable(grid=grid_for(scores[:65_536])).update(labels, scores)
    assert table.is_coarse == (kind == "heavy")  # half of the rows at one score, others in the same cell


def test_a_coarse_grid_says_so():
    labels, scores = simulated(1_000_000, 42, "rare")
    assert CellTable().update(labels, scores).is_coarse
    assert CellTable(20).update(*simulated(1000, 43)).is_coarse
    assert not CellTable().update(*simulated(1000, 43)).is_coarse
    assert not CellTable(1).update([0, 1, 1], [0.5, 0.5, 0.5]).is_coarse  # one atom hides nothing


def test_coarse_is_what_makes_bounds_wide():
    """Upper bounds against those from sorted scores: silent only where they are close, and advice helps."""
    n, rng = 300_000, np.random.default_rng(49)
    u = rng.random(n)
    for scores, grid, advised in (
        (u**8 * 0.01, "linear", "grid="),
        (u**8 * 0.01, "sqrt", ""),
        (u, "logit", ""),
        (rng.beta(2, 2000, n), "linear", "grid="),
        (0.3 + 1e-2 * u, "logit", "grid='linear'"),
        (0.3 + 1e-3 * u, "linear", "n_cells=201600"),
        (np.clip(rng.normal(0.5, 1e-4, n), 0, 1), "logit", "grid='linear' with n_cells="),
        (0.3 + 1e-7 * u, "linear", "a ScoreTable gives"),
        (np.where(u < 0.5, 0.3 + 1e-6 * u, 0.7 + 1e-6 * u), "sqrt", "a ScoreTable gives"),
        (np.where(u < 0.5, 0.250001, rng.random(n)), "linear", "a ScoreTable gives"),
    ):
        labels = rng.random(n) < scores
        sharp = certify(ScoreTable(labels, scores)).upper
        table = CellTable(grid=grid).update(labels, scores)
        advice = table.advice()
        assert (certify(table).upper > 1.1 * sharp) <= table.is_coarse == bool(advice)
        assert advised in advice
        if "grid=" in advice or "n_cells=" in advice:
            words = dict(part.split("=") for part in advice.replace(",", "").split() if "=" in part)
            finer = CellTable(
                int(words.get("n_cells", 100_800)), words.get("grid", repr(grid)).strip("'")
            ).update(labels, scores)
            better = certify(finer).upper - sharp
            assert better <= max(0.15 * sharp, 0.05 * (certify(table).upper - sharp))


def test_tabulate_sorts_what_fits_no_grid():
    """No cliff at a million rows: .0068 before it and .42 after, when cells were taken for all scores."""
    u, v = np.random.default_rng(50).random((2, 1_000_001))
    for scores in (0.3 + 1e-7 * u, np.where(u < 0.5, 0.250001, v)):
        assert isinstance(tabulate(binary(u < 0.3, scores)), ScoreTable)


def test_tabulate_sorts_a_million_rows_and_counts_more():
    labels, scores = simulated(1_000_001, 44, "rare")
    small = tabulate(binary(labels[:-1], scores[:-1]))
    assert isinstance(small, ScoreTable)
    assert small.n == 1_000_000
    for n_threads in (None, 1, 2):
        large = tabulate(binary(labels, scores), n_threads=n_threads)
        assert isinstance(large, CellTable)
        assert large.grid == "sqrt"
        assert same(large, CellTable(grid="sqrt").update(labels, scores))
    for column in (scores.astype(np.float32), np.sort(scores), (scores * 0).astype(int)):
        assert tabulate(binary(labels, column)).n == 1_000_001
    scores[::16] = np.nan
    with pytest.raises(ValueError, match="y_prob must"):
        tabulate(binary(labels, scores))


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.booleans(), st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 5e-324]))), min_size=1
    ),
    n_cells=st.integers(1, 40),
    grid=st.sampled_from(GRIDS),
)
def test_no_mean_leaves_its_range_by_rounding(rows, n_cells, grid):
    labels, scores = zip(*rows, strict=True)
    for table in (CellTable(n_cells, grid).update(labels, scores), ScoreTable(labels, scores)):
        for total in (table.sum_scores, table.sum_squared_error, table.sum_abs_error):
            assert 0.0 <= total <= len(rows)
        cuts = np.arange(len(table.cells().n) + 1)
        bins = bin_cells(table.cells(), cuts)
        assert np.all((bins.lo <= bins.mean_score) & (bins.mean_score <= bins.hi))


def test_wrong_at_zero_in_a_wide_cell():
    # the offset of a score above 0 rounds up, and the squared errors with it, to more than one each
    table = CellTable(977, "sqrt").update([1, 1], [0.0, 2.225073858507203e-309])
    assert table.sum_squared_error == 2.0
    assert certify(table).upper == 1.0


def cells_given(table):
    """Columns of `CellTable.from_cells`, read from a table."""
    about, matrix = table.__getstate__()
    columns = {
        "index": matrix[:, 0],
        "n": matrix[:, COUNTS] & 0xFFFFFFFF,
        "n_positive": matrix[:, COUNTS] >> 32,
        "offsets": matrix[:, OFFSETS],
        "hits": matrix[:, HITS],
        "squares": matrix[:, SQUARES],
        "low": table.cells().lo,
        "high": table.cells().hi,
    }
    return columns | {name: about[name] for name in ("n_clipped", "n_cells", "grid")}


@pytest.mark.parametrize("grid", GRIDS)
def test_cells_make_the_table_again_in_any_order(grid):
    labels, scores = simulated(5000, 3, "uniform")
    scores[0] = 1.0 + 1e-10
    table = CellTable(1000, grid).update(labels, scores)
    given = cells_given(table)
    order = np.random.default_rng(0).permutation(len(given["index"]))
    mixed = {name: np.asarray(v)[order].tolist() if np.ndim(v) else v for name, v in given.items()}
    for columns in (given, mixed):
        found = CellTable.from_cells(**columns)
        assert same(found, table)
        assert found.n_clipped == 1
        assert certify(found).to_dict() == certify(table).to_dict()
    assert same(found.merge(table), CellTable(1000, grid).update(labels, scores).update(labels, scores))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"n": [2, 1]}, ValueError, "n and index must have the same length; got 2 and 3"),
        ({"high": [0.1, 1.0]}, ValueError, "high and index must have the same length; got 2 and 3"),
        ({"n": [1.0, 2.0, 1.0]}, TypeError, "n must hold whole numbers; got dtype float64"),
        (
            {"offsets": np.array([2**63, 1, 1], np.uint64)},
            ValueError,
            r"offsets must hold whole numbers below 2\^63",
        ),
        ({"low": ["a", "b", "c"]}, TypeError, "low must hold numbers; got text"),
        ({"index": []}, ValueError, "index must have at least one value; got 0"),
        ({"n": [1, 0, 1]}, ValueError, "n must be >= 1; got 0 at index 1"),
        ({"n": [1, 2**31, 1]}, OverflowError, r"a cell would hold 2147483648 rows; 2\^31 - 1 is the most"),
        (
            {"n_positive": [0, 3, 0]},
            ValueError,
            "n_positive must be a number of the cell's rows; got 3 at index 1",
        ),
        (
            {"n_positive": [-1, 1, 0]},
            ValueError,
            "n_positive must be a number of the cell's rows; got -1 at index 0",
        ),
        ({"index": [5, 25, 25]}, ValueError, "cells must be numbered, ascending, from 0 to at most 49"),
        ({"index": [5, 25, 50]}, ValueError, "cells must be numbered, ascending, from 0 to at most 49"),
        ({"low": [0.1, 0.5, np.nan]}, ValueError, "smallest and largest score of cell 49 cannot be"),
        ({"high": [0.12, 0.51, 1.0]}, ValueError, "smallest and largest score of cell 5 cannot be"),
        ({"low": [0.1, 0.49, 1.0]}, ValueError, "smallest and largest score of cell 25 cannot be"),
        ({"low": [-0.0, 0.5, 1.0]}, ValueError, "smallest and largest score of cell 5 cannot be"),
        ({"offsets": [0, 2**32, 2**30]}, ValueError, "sums of cell 25 cannot be"),
        ({"n_clipped": 5}, ValueError, "n_clipped must be a number of rows, at most 4; got 5"),
        ({"n_clipped": -1}, ValueError, "n_clipped must be a whole number >= 0; got -1"),
        ({"grid": "cubic"}, ValueError, "grid must be one of"),
    ],
)
def test_cells_that_no_rows_leave_behind(changes, kind, message):
    table = CellTable(50).update([0, 1, 1, 0], [0.1, 0.5, 0.513, 1.0])
    with pytest.raises(kind, match=message):
        CellTable.from_cells(**(cells_given(table) | changes))
