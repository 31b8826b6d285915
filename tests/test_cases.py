"""Faults that people reported of other calibration libraries, kind by kind, as tests of this one.

Values stand here as exact expressions of the inputs. `ece` is the plain binned calibration error, through
`BinCounts`; `quantile_ece` goes through the tables and the bins of equal mass that certificates use.
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calcore
from calcore import BinCounts, CellTable, ScoreTable, certify
from calcore.certificates.perturbed import why_not_perturbed
from calcore.kernels.binning import equal_mass

NAN = float("nan")


def ece(p, y, bins=10, norm="l1", w=None, pos_label=None):
    """The exact value, after the fast one was found to agree."""
    value = BinCounts(bins).update(y, p, w, pos_label=pos_label).value(norm)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y_prob is .* in every row")
        fast = calcore.ece(y, p, n_bins=bins, norm=norm, sample_weight=w, pos_label=pos_label)
    assert fast == pytest.approx(value, abs=1e-15 if norm != "l2" else 1e-8)
    return value


def counts(p, y, bins=10):
    return BinCounts(bins).update(y, p).counts.tolist()


def quantile_ece(table, bins):
    """Sum over bins of abs(positives - sum of scores), per row."""
    cells = table.cells()
    cuts = equal_mass(cells.n, bins)
    assert cuts[0] == 0
    assert cuts[-1] == len(cells.n)
    gaps = np.add.reduceat(cells.k, cuts[:-1]) - np.add.reduceat(cells.s, cuts[:-1])
    value = float(np.abs(gaps).sum()) / table.n
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y_prob is .* in every row")
        assert calcore.ece(table, n_bins=bins, strategy="quantile") == pytest.approx(value, abs=1e-9)
    return value


def tables(y, p, pos_label=None):
    """The same rows in every kind of table."""
    yield ScoreTable(y, p, pos_label=pos_label)
    for grid in ("linear", "sqrt", "logit"):
        yield CellTable(grid=grid).update(y, p, pos_label=pos_label)


def numbers(certificate):
    """All that a certificate says in numbers; equal for equal data."""
    plain = certificate.to_dict()
    return {
        name: plain[name] for name in ("lower", "upper", "n", "n_positive", "n_bins", "terms", "mean_score")
    }


def refuses(name, call, *args, error=ValueError, **kwargs):
    """The call is refused in a message that begins with the argument at fault."""
    with pytest.raises(error, match=rf"^{name}\b"):
        call(*args, **kwargs)


def every_entrance(y, p, **kwargs):
    """The calls that take labels and scores from a user."""
    yield lambda: certify(y, p, **kwargs)
    yield lambda: ScoreTable(y, p, **kwargs)
    yield lambda: CellTable().update(y, p, **kwargs)
    yield lambda: BinCounts().update(y, p, **kwargs)
    yield lambda: calcore.ece(y, p, **kwargs)
    yield lambda: calcore.ece(y, p, strategy="quantile", **kwargs)
    yield lambda: calcore.calibration_table(y, p, **kwargs)
    yield lambda: calcore.ece_curve(y, p, **kwargs)
    yield lambda: calcore.debiased_squared_ece(y, p, **kwargs)


def refused_everywhere(name, y, p, error=ValueError, **kwargs):
    for call in every_entrance(y, p, **kwargs):
        refuses(name, call, error=error)


# ------------------------------------------------------------------------------------------- bin edges


def test_a_score_of_exactly_one_is_in_the_last_bin():
    assert ece([0.92, 1.0, 1.0], [1, 0, 1]) == pytest.approx(abs(2 / 3 - 2.92 / 3), abs=1e-12)
    for bins in (1, 2, 3, 10, 15, 1000):
        assert counts([1.0], [1], bins) == [0] * (bins - 1) + [1]


def test_a_score_of_exactly_zero_is_in_the_first_bin():
    assert ece([0.0, 0.0, 0.3, 1.0], [1, 0, 1, 1], bins=2) == pytest.approx(
        3 / 4 * abs(2 / 3 - 0.1), abs=1e-12
    )
    assert counts([0.0, -0.0], [1, 0], 3) == [2, 0, 0]


def test_inner_edges_are_the_nearest_doubles_and_belong_to_the_bin_above():
    assert ece([0.3, 0.35], [0, 1]) == pytest.approx(abs(0.5 - 0.325), abs=1e-12)
    assert ece([0.29, 0.295], [0, 1], bins=100) == pytest.approx(abs(0.5 - 0.2925), abs=1e-12)


@pytest.mark.parametrize("bins", [3, 7, 10, 15, 49, 100, 997])
def test_every_inner_edge_and_its_neighbours(bins):
    """Oracle in rational arithmetic: score s is in bin j if the double j/N <= s < the double (j+1)/N."""
    edges = [float(Fraction(j, bins)) for j in range(bins)]
    scores = sorted(
        {s for e in edges for s in (math.nextafter(e, 0), e, math.nextafter(e, 1)) if 0 <= s <= 1}
    )
    expected = [0] * bins
    for score in scores:
        expected[max(j for j in range(bins) if edges[j] <= score)] += 1
    assert counts(scores, [0] * len(scores), bins) == expected


@pytest.mark.parametrize("n_cells", [1, 7, 100, 100_800])
def test_cells_have_the_same_edges(n_cells):
    for j in range(1, n_cells, max(1, n_cells // 50)):
        edge = j / n_cells
        below = CellTable(n_cells).update([0, 0], [edge, math.nextafter(edge, 0)]).cells()
        assert below.hi.tolist() == [math.nextafter(edge, 0), edge]
        both = CellTable(n_cells).update([0, 0], [edge, math.nextafter(edge, 1)]).cells()
        assert (both.lo.tolist(), both.hi.tolist()) == ([edge], [math.nextafter(edge, 1)])


def test_single_precision_scores_against_double_edges():
    """float32 0.7 lies below 0.7: the bin is that of its exact value."""
    single = np.float32([0.7, 0.75])
    assert ece(single, [0, 1]) == pytest.approx(0.5 * float(single[0]) + 0.5 * 0.25, abs=1e-9)
    assert ece(single, [0, 1]) == ece(single.astype(np.float64), [0, 1])


def test_given_edges():
    state = BinCounts(edges=[0.0, 0.1, 0.9, 1.0]).update([0, 1, 1, 1], [0.1, 0.0, 0.9, 1.0])
    assert state.counts.tolist() == [1, 1, 2]
    for bad in ([0.0, 0.5], [0.1, 1.0], [0.0, 0.5, 0.5, 1.0], [0.0, NAN, 1.0], [0.0], []):
        refuses("edges", BinCounts, edges=bad)
    refuses("n_bins", BinCounts, 0)


# --------------------------------------------------------------------------- bins of equal mass, and ties


def test_equal_mass_bins_keep_every_row():
    scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9]
    for table in tables([0] * 7, scores):
        for bins in (1, 2, 3, 4, 7, 20):
            assert quantile_ece(table, bins) == pytest.approx(3 / 7, abs=1e-12)


def test_ties_never_straddle_a_bin_whatever_the_order_of_rows():
    for labels in ([1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 1, 0]):
        for table in tables(labels, [0.5] * 6):
            assert quantile_ece(table, 2) == 0.0


def test_more_bins_than_distinct_scores():
    for table in tables([1, 1, 0, 1], [0.2] * 4):
        assert quantile_ece(table, 10) == pytest.approx(0.55, abs=1e-12)


def test_fewer_rows_than_bins():
    assert ece([0.25, 0.75], [0, 0], bins=15) == 0.5
    for table in tables([0, 0], [0.25, 0.75]):
        assert quantile_ece(table, 15) == pytest.approx(0.5, abs=1e-12)


def test_sorted_shards_give_the_bins_of_the_whole():
    scores, labels = np.arange(1, 61) / 60, np.arange(1, 61) > 30
    whole = CellTable()
    for shard in range(6):
        rows = slice(10 * shard, 10 * shard + 10)
        whole.merge(CellTable().update(labels[rows], scores[rows]))
    assert quantile_ece(whole, 4) == pytest.approx((8 + 23 + 22 + 7) / 60 / 4, abs=1e-9)
    assert quantile_ece(ScoreTable(labels, scores), 4) == pytest.approx(0.25, abs=1e-12)


def test_the_order_of_tied_rows_does_not_move_a_certificate():
    """Sorting rows by label within ties would make a coin look like an oracle."""
    labels, scores = np.repeat([0, 1], 500), np.tile([0.25, 0.5, 0.75, 0.8], 250)
    expected = numbers(certify(labels, scores))
    for seed in range(5):
        order = np.random.default_rng([seed, 6]).permutation(1000)
        assert numbers(certify(labels[order], scores[order])) == expected


# ---------------------------------------------------------------------------------- empty bins, bin sizes


def test_empty_bins_do_not_count():
    for norm in ("l1", "l2", "avg", "max"):
        assert ece([0.05, 0.95], [0, 1], norm=norm) == pytest.approx(0.05, abs=1e-12)


def test_bins_are_weighted_by_size():
    assert ece([0.1, 0.1, 0.1, 0.9], [0] * 4, bins=2) == pytest.approx(0.3, abs=1e-12)


# ---------------------------------------------------------------------------------------------- weights


def test_a_whole_weight_is_a_repeated_row():
    assert ece([0.2, 0.8], [1, 1], bins=2, w=[3, 1]) == pytest.approx(0.65, abs=1e-12)
    assert ece([0.2, 0.2, 0.2, 0.8], [1] * 4, bins=2) == pytest.approx(0.65, abs=1e-12)


def test_a_weight_of_zero_moves_nothing():
    for norm in ("l1", "l2", "avg", "max"):
        assert ece([0.2, 0.8, 0.3], [1, 1, 0], w=[3, 1, 0], norm=norm) == ece(
            [0.2, 0.8], [1, 1], w=[3, 1], norm=norm
        )


@pytest.mark.parametrize(
    "w", [[0, 0], [-1, 1], [NAN, 1], [math.inf, 1], [1], [1, 1, 1], [[1, 1]], 1.0, [None, 1]]
)
def test_senseless_weights(w):
    refuses("sample_weight", ece, [0.2, 0.8], [0, 1], w=w)


def test_certificates_take_no_weights():
    with pytest.raises(TypeError, match="sample_weight"):
        certify([0, 1], [0.2, 0.8], sample_weight=[1, 1])


# ----------------------------------------------------------------------------------------------- labels


def test_one_class_only_keeps_its_meaning():
    assert ece([1.0, 1.0], [1, 1]) == 0.0
    assert ece([0.0, 0.0], [1, 1]) == 1.0
    for labels, positive in (([1, 1, 1], 3), ([0, 0, 0], 0), ([-1, -1, -1], 0), ([True] * 3, 3)):
        for table in tables(labels, [0.25, 0.5, 0.75]):
            assert table.n_positive == positive
    calibrated, wrong = certify([1] * 500, [1.0] * 500), certify([0] * 500, [1.0] * 500)
    assert calibrated.upper < 0.1 < 0.9 < wrong.lower
    for y in (0, 1):
        certificate = certify([y] * 3, [0.1, 0.5, 0.6])  # three rows are enough for an answer
        assert 0.0 <= certificate.lower <= certificate.upper <= 1.0


def test_labels_of_minus_one_and_one_are_not_numbers():
    assert ece([0.1, 0.9, 0.6, 0.4], [-1, 1, 1, -1], bins=2) == pytest.approx(0.25, abs=1e-12)
    for table in tables([-1, 1, 1, -1], [0.1, 0.9, 0.6, 0.4]):
        assert table.sum_squared_error == pytest.approx(4 * 0.085, abs=1e-9)


def test_text_labels_need_to_know_which_is_positive():
    text, scores = ["pos", "neg", "neg"], [0.2, 0.7, 0.9]
    for table in tables(text, scores, pos_label="neg"):
        assert table.sum_squared_error == pytest.approx(0.14, abs=1e-9)
    refused_everywhere("pos_label", text, scores)
    refused_everywhere("pos_label", text, scores, pos_label="neither")
    refused_everywhere("y_true", [*text, "other"], [*scores, 0.5], pos_label="neg")


def test_labels_outside_the_pair():
    labels, scores = [1, 2, 2, 1], [0.2, 0.8, 0.6, 0.4]
    refused_everywhere("y_true", labels, scores)
    assert ece(scores, labels, bins=2, pos_label=2) == pytest.approx(0.3, abs=1e-12)
    for bad in ([0, 1, 2], [-1, 0, 1], [0, 1, 0.5], [0, 1, NAN], [0, 1, math.inf], np.uint8([0, 1, 255])):
        refused_everywhere("y_true", bad, [0.2, 0.7, 0.9])


def test_every_way_to_write_the_same_labels_gives_the_same_certificate():
    rng = np.random.default_rng(19)
    scores = rng.random(400)
    bits = rng.random(400) < scores
    expected = numbers(certify(bits, scores))
    ways = [
        (bits.astype(np.uint8), None),
        (bits.astype(np.float32), None),
        (np.where(bits, 1, -1), None),
        (np.where(bits, 2, 1), 2),
        (np.where(bits, "yes", "no"), "yes"),
        (pd.Series(np.where(bits, "yes", "no"), dtype="category"), "yes"),
        (pd.Series(bits, dtype="boolean"), None),
        (bits.astype(object), None),
        (~bits, False),
        (bits.tolist(), None),
    ]
    for labels, pos_label in ways:
        assert numbers(certify(labels, scores, pos_label=pos_label)) == expected


def test_swapped_or_unequal_arguments():
    for call in every_entrance([0.2, 0.7, 0.9], [0, 1, 1]):
        with pytest.raises(ValueError, match=r"^y_true must hold labels .* arguments swapped"):
            call()
    refused_everywhere("y_true and y_prob", [0, 1, 1], [0.2, 0.7])
    refused_everywhere("y_true and y_prob", [0, 1], np.full(100_000, 0.5))


def test_the_rate_of_positives_not_the_accuracy_of_a_rounded_score():
    assert ece([0.02, 0.03, 0.01], [1, 1, 1]) == pytest.approx(0.98, abs=1e-12)
    assert certify([1] * 400, [0.02] * 400).lower > 0.5


# ---------------------------------------------------------------------------------------------- validity


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf, 1.5, 1.01, -0.01, 95.0])
def test_scores_that_are_no_probabilities(bad):
    """At any place of a column, in either precision: nothing is binned, nothing is squashed."""
    refused_everywhere("y_prob", [0, 1, 1], [0.2, bad, 0.8])
    for n, place in ((10_001, 10_000), (200_000, 0), (200_000, 131_072)):
        for dtype in (np.float64, np.float32):
            scores = np.full(n, 0.5, dtype)
            scores[place] = bad
            with pytest.raises(ValueError, match=rf"^y_prob must lie in \[0, 1\]; got .* at index {place}\b"):
                CellTable().update(np.zeros(n, np.int8), scores)


def test_a_rounding_error_outside_is_clipped_and_counted():
    scores = [1.0000000000000002, 0.2]
    assert ece(scores, [1, 0], bins=2) == pytest.approx(0.1, abs=1e-9)
    for table in tables([1, 0], scores):
        assert table.n_clipped == 1
        assert table.cells().hi[-1] == 1.0
    certificate = certify([1, 0], scores)
    assert certificate.n_clipped == 1
    assert any("clipped" in warning for warning in certificate.warnings)


def test_nothing_is_not_zero():
    refused_everywhere("y_true and y_prob", [], [])
    refuses("value", BinCounts().value)
    refuses("y_true", certify, CellTable())


def test_columns_of_two_dimensions():
    scores = np.array([0.2, 0.7, 0.9])
    refused_everywhere("y_prob", [0, 1, 1], scores[:, None])
    refused_everywhere("y_prob", [0, 1, 1], np.stack([1 - scores, scores], axis=1))
    refused_everywhere("y_true", [[0], [1], [1]], scores)
    refused_everywhere("y_prob", [0, 1, 1], pd.DataFrame({"p": scores}))


def test_missing_scores_and_labels():
    refused_everywhere("y_prob", [0, 1, 1], [0.2, None, 0.8])
    refused_everywhere("y_true", [0, None, 1], [0.2, 0.5, 0.8])
    refused_everywhere("y_prob", [0, 1, 1], pd.Series([0.2, pd.NA, 0.8], dtype="Float64"))
    refused_everywhere("y_prob", [0, 1, 1], np.ma.array([0.2, 0.5, 0.8], mask=[0, 1, 0]))


def test_scores_of_the_wrong_kind():
    for bad in (
        ["a", "b", "c"],
        np.array([0.1, 0.2, 0.3], object),
        [1j, 0, 0],
        np.zeros(3, "M8[D]"),
        {1, 2, 3},
    ):
        refused_everywhere("y_prob", [0, 1, 1], bad, error=TypeError)


def test_a_refused_batch_leaves_everything_as_it_was():
    bad = np.full(200_000, 0.5)
    bad[-1] = NAN
    table, state = CellTable().update([0, 1], [0.25, 0.5]), BinCounts(4).update([0, 1], [0.25, 0.5])
    before = state.value(), table.sum_scores
    for threads in (1, 2):
        refuses("y_prob", table.update, np.zeros(200_000, bool), bad, n_threads=threads)
    refuses("y_prob", state.update, np.zeros(200_000, bool), bad)
    assert (table.n, state.counts.sum()) == (2, 2)
    assert (state.value(), table.sum_scores) == before


def test_identical_confidences_of_a_language_model():
    assert ece([1.0, 1.0, 1.0, 1.0], [1, 0, 1, 1]) == 0.25
    certificate = certify([1, 0, 1, 1] * 100, [1.0] * 400)
    assert certificate.assumption == "none"
    assert certificate.lower < 0.25 < certificate.upper


# --------------------------------------------------------------------------------------------- precision


def test_single_precision_is_never_the_accumulator():
    """2e7 float32 halves: a float32 sum stops at 2^23 and gives a mean of 0.419."""
    scores, labels = np.full(20_000_000, 0.5, np.float32), np.arange(20_000_000) % 2 == 1
    table = CellTable().update(labels, scores)
    assert (table.n, table.n_positive, table.sum_scores) == (20_000_000, 10_000_000, 1e7)
    assert table.merge(table).sum_scores == 2e7
    assert ece(scores, labels, bins=1) == 0.0


def test_half_precision_is_never_the_accumulator():
    assert ece(np.full(5000, 0.1, np.float16), np.zeros(5000, int)) == pytest.approx(
        float(np.float16(0.1)), abs=1e-9
    )


def test_totals_are_sums_of_their_own_rows_not_differences():
    n = 10_000_000
    scores, labels = np.full(n, 0.1, np.float32), np.zeros(n, np.int8)
    assert quantile_ece(CellTable().update(labels, scores), 20) == pytest.approx(
        float(np.float32(0.1)), abs=1e-12
    )
    assert ece([0.05, 0.6, 0.7], [0, 1, 0], bins=2, norm="max", w=[1e17, 3, 1]) == pytest.approx(
        0.125, abs=1e-7
    )


def test_whole_numbers_do_not_wrap_or_truncate():
    assert ece(np.array([0, 1, 1]), [0, 1, 0], bins=2) == pytest.approx(1 / 3, abs=1e-12)
    assert ece([0.6, 0.3], np.uint8([1, 0])) == pytest.approx(0.35, abs=1e-12)
    labels = np.ones(300, np.uint8)
    for table in tables(labels, np.zeros(300, np.int8)):
        assert (table.n_positive, table.sum_squared_error) == (300, 300.0)


def test_scores_a_few_ulps_or_subnormals_apart():
    assert ece([0.0, 2e-318, 1.0], [0, 1, 1], bins=2) == pytest.approx(1 / 3, abs=1e-12)
    tight = [
        0.5,
        math.nextafter(0.5, 1),
        math.nextafter(0.5, 0),
        0.0,
        5e-324,
        2e-318,
        1.0,
        math.nextafter(1.0, 0),
    ]
    for table in tables([0, 1] * 4, tight):
        for variation in (0.0, 1.0, math.inf):
            certificate = certify(table, variation=variation)
            assert 0.0 <= certificate.lower <= certificate.upper <= 1.0


# ------------------------------------------------------------------------------------------------- norms


def test_norms_are_what_they_are_called():
    rows = [0.2, 0.2, 0.9, 0.9], [1, 1, 1, 0]
    values = [ece(*rows, bins=2, norm=norm) for norm in ("l1", "l2", "max")]
    assert values == pytest.approx([0.6, math.sqrt(0.4), 0.8], abs=1e-12)
    for bad in ("L1", "l3", 2, None, ""):
        refuses("norm", ece, *rows, norm=bad)


def test_values_stay_inside_the_unit_interval():
    assert ece([1.0, 0.0], [0, 1]) == 1.0
    assert ece([0.5], [1], norm="l2") == 0.5


@given(
    rows=st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=60),
    bins=st.integers(1, 40),
)
def test_norms_are_ordered_and_at_most_one(rows, bins):
    labels, scores = zip(*rows, strict=True)
    l1, l2, top, mean = (ece(scores, labels, bins, norm) for norm in ("l1", "l2", "max", "avg"))
    slack = 1e-12  # "l1" and "max" are correctly rounded, "l2" and "avg" to a few units of 1e-16
    assert 0.0 <= l1 <= l2 + slack
    assert l2 <= top + slack
    assert mean <= top + slack
    assert top <= 1.0


@given(
    rows=st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=40),
    bins=st.integers(1, 20),
)
def test_the_value_is_that_of_rational_arithmetic(rows, bins):
    if not any(w for _, _, w in rows):
        return
    labels, scores, weights = zip(*rows, strict=True)
    edges = [float(Fraction(j, bins)) for j in range(bins)]
    gap = [Fraction(0)] * bins
    for y, s, w in rows:
        gap[max(j for j in range(bins) if edges[j] <= s)] += w * (int(y) - Fraction(s))
    assert ece(scores, labels, bins, w=weights) == float(sum(map(abs, gap)) / sum(weights))


# ----------------------------------------------------------------------------------- streams and merging


def test_batches_are_added_not_averaged():
    assert BinCounts(10).update([1], [0.9]).merge(BinCounts(10).update([0], [0.9])).value() == 0.4
    both = CellTable().update([1], [0.9]).merge(CellTable().update([0], [0.9]))
    assert (both.n, both.n_positive) == (2, 1)


def test_merging_with_an_empty_state_changes_nothing():
    full = BinCounts(10).update([0] * 3, [0.3, 0.6, 0.7])
    assert full.merge(BinCounts(10)).counts.tolist() == [0, 0, 0, 1, 0, 0, 1, 1, 0, 0]
    assert BinCounts(10).merge(full).counts.tolist() == full.counts.tolist()
    table = CellTable().update([0, 1, 1], [0.3, 0.6, 0.7])
    assert numbers(certify(CellTable().merge(table))) == numbers(certify(table.merge(CellTable())))


def test_asking_for_the_value_has_no_side_effect():
    state = BinCounts(2).update([1], [0.2])
    assert [state.value(), state.value(), state.update([1], [0.8]).value(), state.value()] == pytest.approx(
        [0.8, 0.8, 0.5, 0.5], abs=1e-12
    )
    table = CellTable().update([1], [0.2])
    certify(table)
    assert table.update([1], [0.8]).n == len(table.cells().n) == 2


def test_the_order_of_merging_does_not_matter():
    light, heavy = ([0], [0.7], [3.0]), ([0], [0.2], [1e17])
    ways = [
        BinCounts(2).update(*a).merge(BinCounts(2).update(*b)) for a, b in ((light, heavy), (heavy, light))
    ]
    assert [way.value("max") for way in ways] == [0.7, 0.7]
    assert ways[0].value() == ways[1].value()


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    order=st.randoms(use_true_random=False),
)
def test_any_way_to_cut_and_merge_gives_the_same_bits(rows, cuts, order):
    labels, scores = zip(*rows, strict=True)
    whole, state = CellTable(977, "sqrt").update(labels, scores), BinCounts(7).update(labels, scores)
    shuffled = order.sample(rows, len(rows))
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    batches = [shuffled[a:b] for a, b in itertools.pairwise(bounds) if a < b]
    parts = [zip(*batch, strict=True) for batch in batches]
    total, sums = CellTable(977, "sqrt"), BinCounts(7)
    for part in parts:
        y, p = part
        total.merge(CellTable(977, "sqrt").update(y, p))
        sums.merge(BinCounts(7).update(y, p))
    assert all(np.array_equal(a, b) for a, b in zip(total.cells(), whole.cells(), strict=True))
    assert numbers(certify(total)) == numbers(certify(whole))
    assert [sums.value(norm) for norm in ("l1", "l2", "max", "avg")] == [
        state.value(norm) for norm in ("l1", "l2", "max", "avg")
    ]


def test_states_that_do_not_match():
    refuses("other", BinCounts(10).merge, BinCounts(15))
    refuses("other", BinCounts(2).merge, BinCounts(edges=[0.0, 0.4, 1.0]))
    refuses("other", CellTable(10).merge, CellTable(15))
    refuses("other", CellTable(10).merge, CellTable(10, "sqrt"))
    refuses("other", CellTable().merge, ScoreTable([0], [0.5]), error=TypeError)
    refuses("other", BinCounts().merge, CellTable(), error=TypeError)


# ------------------------------------------------------------------------ compiled loops, threads, cache


def test_no_count_is_lost_between_threads():
    n = 1_000_000
    scores, labels = (np.arange(n) * 7919 % 1_000_003) / 1_000_003, np.arange(n) % 2 == 1
    expected = CellTable(1000).update(labels, scores, n_threads=1)
    assert expected.n == expected.cells().n.sum() == n
    for _ in range(5):
        for threads in (1, 2, 4, 8):
            got = CellTable(1000).update(labels, scores, n_threads=threads)
            assert all(np.array_equal(a, b) for a, b in zip(got.cells(), expected.cells(), strict=True))
    for bad in (0, -1, 1.5, "2"):
        refuses("n_threads", CellTable().update, labels, scores, n_threads=bad, error=(ValueError, TypeError))


def test_a_second_update_starts_from_the_first():
    state = BinCounts(10).update([0] * 1000, [0.25] * 1000).update([1] * 1000, [0.25] * 1000)
    assert state.counts.sum() == 2000
    n = 140_000
    table = CellTable().update(np.zeros(n, bool), np.full(n, 0.25)).update(np.ones(n, bool), np.full(n, 0.25))
    assert (table.n, table.n_positive, table.sum_scores) == (2 * n, n, 0.5 * n)


def test_nan_is_seen_by_the_compiled_path():
    refused_everywhere("y_prob", np.zeros(10_001, int), np.r_[np.full(10_000, 0.5), NAN])


def test_one_distinct_score_and_one_bin():
    assert (ece([0.8], [0], bins=1), counts([0.8], [0], bins=1)) == (0.8, [1])
    for table in tables([0], [0.8]):
        assert table.cells().n.tolist() == [1]
        assert certify(table).upper == pytest.approx(1.0, abs=0.05)


def test_unusual_memory(tmp_path):
    """Read-only, memory-mapped, strided, foreign byte order, data frame: same numbers, input unchanged."""
    rng = np.random.default_rng(48)
    scores = rng.random(300)
    labels = (rng.random(300) < scores).astype(np.int64)
    expected = numbers(certify(labels, scores)), ece(scores, labels)
    np.save(tmp_path / "scores.npy", scores)
    frozen = scores.copy()
    frozen.setflags(write=False)
    frame = pd.DataFrame({"a": scores, "b": scores})
    ways = [
        frozen,
        np.load(tmp_path / "scores.npy", mmap_mode="r"),
        np.repeat(scores, 2)[::2],
        scores[::-1].copy()[::-1],
        scores.astype(">f8"),
        np.asfortranarray(np.stack([scores, scores]))[0],
        frame["b"],
        scores.astype(np.longdouble),
        scores.tolist(),
    ]
    before = [np.array(way, copy=True) for way in ways]
    for way in ways:
        assert (numbers(certify(labels, way)), ece(way, labels)) == expected
    assert all(np.array_equal(way, old) for way, old in zip(ways, before, strict=True))


LAYOUTS = """
import importlib, pkgutil, numpy as np, calcore, calcore.kernels
from calcore import BinCounts, CellTable, ScoreTable, certify
names = [m.name for m in pkgutil.iter_modules(calcore.kernels.__path__, "calcore.kernels.")]
kernels = [importlib.import_module(name) for name in names]
members = [(f"{k.__name__}.{name}", f) for k in kernels for name, f in vars(k).items() if name[0] != "_"]
loops = {name: f for name, f in members if hasattr(f, "signatures")}  # without those that only loops call
assert loops and not any(f.signatures for f in loops.values()), "compiled at import"
y, s = np.arange(40) % 2, np.linspace(0, 1, 40)
frozen = s.copy(); frozen.setflags(write=False)
strided, foreign = np.repeat(s, 2)[::2], s.astype(">f8")
ways = [s, s.tolist(), np.float32(s), np.float16(s), s[::-1], strided, foreign, frozen, y]
for p in ways:
    for labels in (y, y.tolist(), y > 0, np.float32(y), np.int8(y)[::-1], 2 * y - 1, np.uint8(y)):
        certify(labels, p)
        certify(CellTable(50).update(labels, p), lipschitz=2)
        certify(CellTable(50, "logit").update(labels, p), side="lower")
        BinCounts(3).update(labels, p)
        BinCounts(edges=[0, .5, 1]).update(labels, p, labels if min(labels) >= 0 else None)
print({n: f.signatures for n, f in loops.items() if len(f.signatures) > 1})
"""


def run(code, folder, **environment):
    """What a fresh interpreter prints, started in `folder`."""
    command = [sys.executable, "-c", code]
    result = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_compiles_nothing_and_no_layout_compiles_twice(tmp_path):
    assert run(LAYOUTS, tmp_path) == "{}"


def test_where_no_cache_can_be_written(tmp_path):
    """Neither beside the package nor at home. Files stand in place of folders, as root may write anywhere."""
    package = tmp_path / "site" / "calcore"
    shutil.copytree(Path(calcore.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    code = (
        "import calcore; from calcore import BinCounts, ScoreTable; print(calcore.__file__,"
        "BinCounts(2).update([0, 1], [.2, .7]).value(), ScoreTable([0, 1], [.2, .7]).n)"
    )
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    out = run(code, tmp_path, PYTHONPATH=str(tmp_path / "site"), PYTHONDONTWRITEBYTECODE="1", **nowhere)
    assert out.split() == [str(package / "__init__.py"), "0.25", "2"]


def test_calls_from_many_threads_at_once():
    rng = np.random.default_rng(51)
    scores = rng.random(150_000)
    labels = rng.random(150_000) < scores

    def everything(_):
        return (
            ece([0.2, 0.7], [0, 1], bins=2),
            certify(labels, scores).upper,
            certify(CellTable().update(labels, scores)).upper,
        )

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(everything, range(8)))
    assert set(results) == {results[0]}
    assert results[0][0] == 0.25


def test_one_table_may_be_read_by_many_threads():
    rng = np.random.default_rng(52)
    scores = rng.random(50_000)
    table = ScoreTable(rng.random(50_000) < scores, scores)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: certify(table).upper, range(8)))
    assert set(results) == {results[0]}


def test_precision_of_the_input_does_not_decide_the_value():
    single = np.float32([0.2, 0.7])
    expected = 0.5 * float(single[0]) + 0.5 * (1 - float(single[1]))
    assert ece(single, [0, 1], bins=2) == pytest.approx(expected, abs=1e-9)


# --------------------------------------------------------------------------------------------- intervals


def test_rows_that_all_agree_still_leave_doubt():
    """No observed variance is not no variance: the width is of order ln(1/delta)/n, never 0."""
    for y, s in ((0, 0.0), (1, 1.0), (0, 0.5), (1, 0.25)):
        for n in (1, 10, 1000):
            certificate = certify([y] * n, [s] * n)
            gap = abs(y - s)
            assert certificate.lower <= gap < certificate.upper or certificate.upper == 1.0
            assert certificate.upper - gap >= min(1 - gap, 1 / n)


def test_an_interval_stays_in_the_unit_interval():
    for labels in ([0, 1] * 10, [0] * 20, [1] * 20):
        for score in (0.0, 0.5, 1.0):
            certificate = certify(labels, [score] * 20)
            assert 0.0 <= certificate.lower <= certificate.upper <= 1.0


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("delta", 95, ValueError),
        ("delta", 1, ValueError),
        ("delta", 0, ValueError),
        ("delta", NAN, ValueError),
        ("delta", True, TypeError),
        ("delta", "0.05", TypeError),
        ("delta", None, TypeError),
        ("side", "two-sided", ValueError),
        ("side", None, ValueError),
        ("method", "plug-in", ValueError),
        ("variation", -1, ValueError),
        ("variation", NAN, ValueError),
        ("variation", "1", TypeError),
        ("lipschitz", -0.5, ValueError),
        ("lipschitz", NAN, ValueError),
        ("perturbed", 0, ValueError),
        ("perturbed", math.inf, ValueError),
        ("n_folds", 1, ValueError),
        ("n_folds", 2.5, ValueError),
        ("rng", -1, ValueError),
        ("rng", 0.5, TypeError),
        ("groups", [1, 2], ValueError),
        ("groups", [1, 2, NAN], ValueError),
        ("groups", [1, 2, None], ValueError),
        ("groups", 7, ValueError),
        ("pos_label", 2, ValueError),
        ("pos_label", "1", ValueError),
        ("pos_label", [1], TypeError),
    ],
)
def test_senseless_settings(name, value, error):
    refuses(name, certify, [0, 1, 1], [0.2, 0.7, 0.9], error=error, **{name: value})


def test_a_table_stands_for_both_columns():
    labels, scores = [0, 1, 1] * 50, [0.2, 0.7, 0.9] * 50
    table = ScoreTable(labels, scores)
    assert numbers(certify(table)) == numbers(certify(labels, scores))
    for name, value in (("y_prob", scores), ("groups", [1] * 150), ("pos_label", 1)):
        refuses(name, certify, table, error=TypeError, **{name: value})
    refuses("y_prob", certify, labels, error=TypeError)
    refuses("y_true", certify, BinCounts(), scores, error=(TypeError, ValueError))


def test_dependent_rows_count_once():
    rng = np.random.default_rng(7)
    labels, scores, groups = rng.integers(0, 2, 600), rng.random(600), np.repeat(np.arange(60), 10)
    one = certify(labels, scores, groups=groups, rng=3)
    assert (one.n, one.n_dropped) == (60, 540)
    assert any("60" in warning for warning in one.warnings)
    for same in (groups[::-1] * -1.5 - 7, [f"user {g}" for g in groups], pd.Series(groups, dtype="Int64")):
        same = same[::-1] if isinstance(same, np.ndarray) else same
        assert numbers(certify(labels, scores, groups=same, rng=3)) == numbers(one)
    scores[5] = 1.5  # in a row that is not drawn, most likely: a fault all the same
    for seed in range(10):
        with pytest.raises(ValueError, match=r"^y_prob must lie in .* at index 5$"):
            certify(labels, scores, groups=groups, rng=seed)


# ------------------------------------------------------------------------------------ anything at all, valid

SCORES = st.one_of(
    st.lists(st.floats(0, 1), min_size=1, max_size=80),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=80),
    st.lists(
        st.sampled_from([0.0, 5e-324, 1e-300, 0.1, 0.1 + 2**-56, 0.5, 1 - 2**-53, 1.0]),
        min_size=1,
        max_size=80,
    ),
    st.integers(1, 300).map(lambda n: (np.arange(n) / max(1, n - 1)).tolist()),
    st.integers(1, 300).map(lambda n: [0.3] * n),
)
LABELLINGS = st.sampled_from(
    [
        lambda s, r: [0] * len(s),
        lambda s, r: [1] * len(s),
        lambda s, r: [int(v > 0.5) for v in s],
        lambda s, r: [int(v <= 0.5) for v in s],
        lambda s, r: [int(r.random() < v) for v in s],
        lambda s, r: [i % 2 for i in range(len(s))],
    ]
)
SETTINGS = st.fixed_dictionaries(
    {
        "delta": st.sampled_from([1e-300, 1e-9, 0.05, 0.5, 1 - 2**-53]),
        "side": st.sampled_from(["both", "upper", "lower"]),
    },
    optional={
        "variation": st.one_of(st.sampled_from([0, 1e-300, 0.5, 1, 3, 1e300, math.inf])),
        "lipschitz": st.sampled_from([0, 1e-300, 1, 50.0, 1e300, math.inf]),
        "perturbed": st.sampled_from([1e-300, 1e-3, 0.1, 10, 1e300]),
    },
)


def assert_sound(certificate, n):
    plain = certificate.to_dict()
    assert all(math.isfinite(v) for v in [plain["lower"], plain["upper"], *plain["terms"].values()])
    assert 0.0 <= plain["lower"] <= plain["upper"] <= 1.0
    assert plain["n"] == n
    if plain["terms"]:
        assert min(1.0, math.fsum(plain["terms"].values())) == pytest.approx(plain["upper"], abs=1e-12)
    assert (plain["lower"] == 0.0) or plain["side"] != "upper"
    assert (plain["upper"] == 1.0) or plain["side"] != "lower"
    assert "\n" not in repr(certificate)


def not_perturbed(scores, how):
    """Whether these scores are refused because they cannot have been drawn with the sech law."""
    table = ScoreTable([0] * len(scores), scores)
    return "perturbed" in how and bool(why_not_perturbed(table, how["perturbed"]))


@settings(max_examples=200, deadline=None)
@given(scores=SCORES, label=LABELLINGS, random=st.randoms(use_true_random=False), how=SETTINGS)
def test_every_valid_input_has_a_sound_certificate(scores, label, random, how):
    labels = label(scores, random)
    if not_perturbed(scores, how):
        return
    certificate = certify(labels, scores, **how)
    assert_sound(certificate, len(scores))
    order = random.sample(range(len(scores)), len(scores))
    again = certify([labels[i] for i in order], [scores[i] for i in order], **how)
    assert again.to_dict() == certificate.to_dict()


@settings(max_examples=150, deadline=None)
@given(
    scores=SCORES,
    label=LABELLINGS,
    random=st.randoms(use_true_random=False),
    how=SETTINGS,
    grid=st.sampled_from(["linear", "sqrt", "logit"]),
    n_cells=st.sampled_from([1, 2, 3, 10, 1000, 100_800]),
)
def test_every_table_has_a_sound_certificate(scores, label, random, how, grid, n_cells):
    table = CellTable(n_cells, grid).update(label(scores, random), scores)
    if not not_perturbed(scores, how):
        assert_sound(certify(table, **how), len(scores))


@settings(max_examples=100, deadline=None)
@given(
    scores=SCORES,
    label=LABELLINGS,
    random=st.randoms(use_true_random=False),
    delta=st.floats(1e-12, 1 - 1e-6),
)
def test_more_confidence_never_raises_the_lower_end(scores, label, random, delta):
    table = ScoreTable(label(scores, random), scores)
    lower, surer = (certify(table, delta=d, side="lower").lower for d in (delta, delta / 2))
    assert surer <= lower + 1e-12  # the inversions of kl stop within that


# -------------------------------------------------------------------------- anything at all, valid or not

ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(2**62, 2**1100),
        st.floats(),
        st.complex_numbers(),
        st.text(max_size=3),
        st.binary(max_size=3),
        st.dates(),
        st.decimals(),
        st.sampled_from(
            [
                "both",
                "upper",
                "auto",
                "plugin",
                "tv",
                "nw",
                "nw-folds",
                "buckets",
                0.05,
                1,
                np.float32(0.5),
                np.nan,
                np.array(1),
                object,
            ]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner), st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=8,
)
NAMES = [
    "y_true",
    "y_prob",
    "delta",
    "side",
    "method",
    "variation",
    "lipschitz",
    "perturbed",
    "groups",
    "pos_label",
]


@settings(max_examples=500, deadline=None)
@given(arguments=st.dictionaries(st.sampled_from([*NAMES, "n_folds", "rng"]), ANYTHING, max_size=4))
def test_anything_is_answered_soundly_or_refused_by_name(arguments):
    """No other exception, no warning, no unsound certificate, whatever comes as any argument."""
    arguments = {"y_true": [0, 1, 1], "y_prob": [0.2, 0.7, 0.9]} | arguments
    try:
        certificate = certify(**arguments)
    except (ValueError, TypeError) as error:
        words = str(error)
    else:
        assert_sound(certificate, certificate.n)
        words = "y_true"
    assert words.split()[0].rstrip(":") in [*NAMES, "n_folds", "rng"]


ODD = [0.0, 1.0, -1.0, 0.5, 1.0000001, 2.0, NAN, math.inf, -math.inf, 6e4]
ARRAYS = st.builds(
    lambda values, dtype, shape: np.array(values).astype(dtype).reshape(shape),
    st.lists(st.sampled_from(ODD), min_size=6, max_size=6),
    st.sampled_from(["f2", "f4", "f8", "g", ">f8", "c16", "O", "U5", "S5"]),
    st.sampled_from([(6,), (6, 1), (1, 6), (2, 3), (3, 2, 1)]),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(y_true=ARRAYS, y_prob=ARRAYS, pos_label=st.sampled_from([None, 1, 0.5, "1.0", "nan", b"0.5", 2]))
def test_hostile_arrays_are_answered_soundly_or_refused_by_name(y_true, y_prob, pos_label):
    before = y_true.tobytes(), y_prob.tobytes()
    try:
        certificate = certify(y_true, y_prob, pos_label=pos_label)
    except (ValueError, TypeError) as error:
        words = str(error)
    else:
        assert_sound(certificate, 6)
        words = "y_true"
    assert words.startswith(("y_true", "y_prob", "pos_label"))
    assert (y_true.tobytes(), y_prob.tobytes()) == before
