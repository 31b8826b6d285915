"""Numbers of diagrams against definitions written out in plain Python, and intervals against exact laws."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calcore
from calcore import CellTable, ScoreTable
from calcore.diagrams import (
    _intervals,
    _least_area,
    reliability,
    reliability_classwise,
    reliability_top_label,
    residual_map,
    risk_coverage,
)

TINY = 1e-12
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 12).map(lambda k: k / 12)), min_size=1, max_size=40
)


# --- oracles -----------------------------------------------------------------------------------------------


def tail(n: int, k: int, p: Fraction) -> Fraction:
    """Probability of k or more of n events of probability p."""
    return sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), Fraction(0))


def law_of_count(rates: list[float]) -> list[float]:
    """Probabilities of 0, 1, ... events of these probabilities."""
    law = [1.0]
    for p in rates:
        law = [
            (law[k] if k < len(law) else 0.0) * (1 - p) + (law[k - 1] * p if k else 0.0)
            for k in range(len(law) + 1)
        ]
    return law


def quantile_groups(scores: list[float], n_bins: int) -> list[list[int]]:
    """Bin after bin closes at the first score with j / n_bins of the rows at or below it."""
    order = sorted(set(scores))
    n, ends = len(scores), set()
    for j in range(1, n_bins + 1):
        ends.add(next(s for s in order if sum(t <= s for t in scores) * n_bins >= j * n))
    groups, low = [], -1.0
    for end in sorted(ends):
        groups.append([i for i in range(n) if low < scores[i] <= end])
        low = end
    return groups


def error_of(groups: list[list[int]], labels: list[int], scores: list[float]) -> float:
    exact = [Fraction(s) for s in scores]
    return float(sum(abs(sum(labels[i] - exact[i] for i in g)) for g in groups) / len(labels))


def signs_of(groups: list[list[int]], labels: list[int], scores: list[float], delta: float) -> list[int]:
    """1 where the count of positives is too high for the mean score, -1 where too low, by exact tails."""
    found = []
    for g in groups:
        n, k = len(g), sum(labels[i] for i in g)
        p = sum(Fraction(scores[i]) for i in g) / n
        half = Fraction(delta / len(groups)) / 2
        up = k >= 1 and (p * n < half if k == 1 else p * n < k - 1 and tail(n, k, p) < half)
        q, j = 1 - p, n - k
        down = j >= 1 and (q * n < half if j == 1 else q * n < j - 1 and tail(n, j, q) < half)
        found.append(int(up) - int(down))
    return found


def area(correct: list[int], confidence: list[float]) -> Fraction:
    """Mean over rows of the share of errors among rows with at least the row's confidence."""
    total = Fraction(0)
    for c in confidence:
        kept = [1 - right for right, other in zip(correct, confidence, strict=True) if other >= c]
        total += Fraction(sum(kept), len(kept))
    return total / len(correct)


# --- intervals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3, 1e-9])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 30])
def test_ends_have_their_tails(n: int, delta: float) -> None:
    k = np.arange(n + 1)
    ends = _intervals(k.astype(float), np.full(n + 1, n), delta)
    for count in range(n + 1):
        low = ends[count, 0]
        if count > 1:
            # betaincinv is accurate to some 1e-14 relative, and a tail of power k has k times that
            assert float(tail(n, count, Fraction(low))) == pytest.approx(delta / 2, rel=1e-10)
        else:
            assert low == (delta / 2 / n if count else 0.0)
        assert ends[n - count, 1] == 1.0 - low, "both ends follow one rule"
    assert np.all((ends[:, 0] <= k / n) & (k / n <= ends[:, 1]))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0]), min_size=1, max_size=9),
    st.sampled_from([0.9, 0.6, 0.4, 0.05, 0.001]),
)
def test_intervals_hold_for_unequal_rates(rates: list[float], delta: float) -> None:
    """The defining property, exactly: each end misses the mean rate with probability delta / 2 at most."""
    n, law, mean = len(rates), law_of_count(rates), math.fsum(rates) / len(rates)
    ends = _intervals(np.arange(n + 1.0), np.full(n + 1, n), delta)
    above = math.fsum(p for p, low in zip(law, ends[:, 0], strict=True) if low > mean)
    below = math.fsum(p for p, high in zip(law, ends[:, 1], strict=True) if high < mean)
    assert max(above, below) <= delta / 2 + TINY


def test_plain_clopper_pearson_would_not_hold() -> None:
    """One row with a small rate among rows without: 1 - (1 - delta/2)^(1/n) lies above delta / (2 n)."""
    n, delta = 5, 0.5
    plain = 1 - (1 - delta / 2) ** (1 / n)
    rate = (plain * n + delta / 2) / 2
    assert rate / n < plain, "it would leave the mean rate out when one event occurs,"
    assert rate > delta / 2, "which has a probability above delta / 2"
    assert _intervals(np.array([1.0]), np.array([n]), delta)[0, 0] < rate / n


def test_intervals_of_many_rows() -> None:
    ends = _intervals(np.array([0.0, 5e8, 1e9]), np.full(3, 10**9), 0.05)
    assert ends[0, 1] == pytest.approx(-math.log(0.025) / 1e9, rel=1e-7)
    assert ends[1] == pytest.approx(
        [0.5 - 1.959964 * 0.5 / 1e9**0.5, 0.5 + 1.959964 * 0.5 / 1e9**0.5], abs=1e-9
    )
    assert ends[2, 1] == 1.0


# --- reliability -------------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(ROWS, st.integers(1, 5), st.sampled_from([0.05, 0.5]))
def test_quantile_diagram_by_definition(rows: list[tuple[int, float]], n_bins: int, delta: float) -> None:
    labels, scores = (list(column) for column in zip(*rows, strict=True))
    found = reliability(labels, scores, n_bins=n_bins, delta=delta)
    groups = quantile_groups(scores, n_bins)
    assert found.bins.counts.tolist() == list(map(len, groups))
    assert found.ece == pytest.approx(error_of(groups, labels, scores), abs=TINY)
    parts = quantile_groups(scores, 4 * n_bins)
    parts = [sorted(set(g) & set(part)) for g in groups for part in parts if set(g) & set(part)]
    assert found.fine_ece == pytest.approx(error_of(parts, labels, scores), abs=TINY)
    assert found.fine_ece >= found.ece - TINY
    gap = float(sum(y - Fraction(s) for y, s in rows) / len(rows))
    assert found.mean_gap == pytest.approx(gap, abs=TINY)
    assert abs(found.mean_gap) <= found.ece + TINY
    off, part_off = signs_of(groups, labels, scores, delta), signs_of(parts, labels, scores, delta)
    inside = any(
        {1, -1} <= {sign for part, sign in zip(parts, part_off, strict=True) if set(part) <= set(g)}
        for g in groups
    )
    assert found.cancels == (inside or {1, -1} <= set(off))
    assert found.score_counts.sum() == found.n == len(rows)
    edges = found.score_edges.tolist()
    where = [max(j for j in range(len(edges) - 1) if edges[j] <= s) for s in scores]
    assert found.score_counts.tolist() == [where.count(j) for j in range(len(edges) - 1)]
    each = _intervals(np.array([sum(labels[i] for i in g) for g in groups], float), found.bins.counts, delta)
    assert np.array_equal(found.intervals, each)
    assert np.all(found.simultaneous[:, 0] <= found.intervals[:, 0])
    json.dumps(found.to_dict(), allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 6), st.sampled_from(["uniform", "quantile", "min_count", "isotonic"]))
def test_order_and_tables_change_nothing(rows: list[tuple[int, float]], n_bins: int, strategy: Any) -> None:
    labels, scores = (list(column) for column in zip(*rows, strict=True))
    one = reliability(labels, scores, n_bins=n_bins, strategy=strategy).to_dict()
    assert one == reliability(labels[::-1], scores[::-1], n_bins=n_bins, strategy=strategy).to_dict()
    assert one == reliability(ScoreTable(labels, scores), n_bins=n_bins, strategy=strategy).to_dict()
    scheme = strategy if strategy != "isotonic" else "quantile"
    if len(set(scores)) == 1:  # `ece` warns
        return
    assert one["ece"] == calcore.ece(ScoreTable(labels, scores), n_bins=n_bins, strategy=scheme)


def test_cell_table_is_close() -> None:
    rng = np.random.default_rng(31)
    s = rng.random(20_000)
    y = rng.random(20_000) < s**2
    table = CellTable().update(y, s)
    for strategy in ("quantile", "uniform", "min_count"):
        exact, cells = (reliability(*source, strategy=strategy) for source in ((y, s), (table,)))
        assert cells.n == exact.n
        # bins that end at cells differ from those that end at scores by a cell's rows at each edge
        assert cells.ece == pytest.approx(exact.ece, abs=1e-3)
        assert cells.fine_ece == pytest.approx(exact.fine_ece, abs=4e-3)
        assert cells.mean_gap == pytest.approx(exact.mean_gap, abs=1e-8)
        assert cells.score_counts.sum() == 20_000
    with pytest.raises(TypeError, match=r"^y_true must keep every score"):
        reliability(table, strategy="isotonic")


def test_isotonic_curve_is_that_of_corp() -> None:
    rng = np.random.default_rng(32)
    s = rng.random(500)
    y = rng.random(500) < s
    found, parts = reliability(y, s, strategy="isotonic"), calcore.corp(y, s)
    assert found.curve is not None
    assert np.array_equal(found.curve, [parts.thresholds, parts.recalibrated])
    assert (found.strategy, found.bins.strategy) == ("isotonic", "quantile")
    assert reliability(y, s).curve is None
    assert np.array_equal(found.simultaneous, reliability(y, s).simultaneous), "labels choose no bins"


def test_cancels() -> None:
    n = 40_000
    s = (np.arange(n) + 0.5) / n
    u = np.random.default_rng(33).random(n)
    shapes = {
        "calibrated": s,
        "S": s + 0.12 * np.sin(2 * np.pi * s),
        "too high": 0.85 * s,
        "too low": 1.0 - 0.85 * (1.0 - s),
    }
    found = {name: reliability(u < eta, s) for name, eta in shapes.items()}
    assert {name: d.cancels for name, d in found.items()} == {
        "calibrated": False,
        "S": True,
        "too high": False,
        "too low": False,
    }
    assert abs(found["S"].mean_gap) < 0.1 * found["S"].ece
    whole = reliability(u < shapes["S"], s, n_bins=1)
    assert whole.cancels, "inside the only bin"
    assert whole.ece < 0.02 < 0.06 < whole.fine_ece


def test_simultaneous_intervals_and_flag_keep_their_level() -> None:
    """400 samples, true errors of one sign: more than 53 failures of level 1/20 have probability 1e-9."""
    rng = np.random.default_rng(34)
    missed = flagged = 0
    for _ in range(400):
        s = rng.random(600)
        eta = s**1.2
        found = reliability(rng.random(600) < eta, s, n_bins=6)
        ranks = np.searchsorted(found.bins.edges[:-1], s, side="right") - 1
        mean = np.bincount(ranks, eta) / found.bins.counts
        missed += bool(np.any((found.simultaneous[:, 0] > mean) | (mean > found.simultaneous[:, 1])))
        flagged += found.cancels
    assert missed <= 53
    assert flagged <= 53


def test_degenerate_rows() -> None:
    one = reliability([1], [0.25])
    assert (one.n, one.ece, one.mean_gap, one.cancels) == (1, 0.75, 0.75, False)
    assert one.intervals.tolist() == [[0.025, 1.0]]
    three = reliability([0, 1, 1], [0.2, 0.7, 0.9])
    assert three.bins.counts.tolist() == [1, 1, 1]
    constant = reliability([0, 1] * 50, [0.25] * 100)
    assert (len(constant.bins), constant.ece, constant.fine_ece) == (1, 0.25, 0.25)
    nothing = reliability(np.zeros(60), np.linspace(0, 1, 60), strategy="uniform")
    assert nothing.mean_gap == -0.5
    gappy = reliability([0, 1], [0.0, 1.0], strategy="uniform", n_bins=4)
    assert gappy.simultaneous[1:3].tolist() == [[0.0, 1.0]] * 2
    assert gappy.to_dict()["bins"]["bins"][1]["mean_score"] is None


def test_input_of_any_kind() -> None:
    s = np.array([0.25, 0.5, 1.0, 0.75])
    y = np.array([0, 1, 1, 0])
    expected = reliability(y, s, n_bins=2).to_dict()
    frozen = s.copy()
    frozen.flags.writeable = False
    for scores in (s.tolist(), frozen, s.astype(np.float32), np.repeat(s, 2)[::2], s.astype(">f8")):
        assert reliability(y, scores, n_bins=2).to_dict() == expected
    assert reliability(np.array(["no", "yes"])[y], s, n_bins=2, pos_label="yes").to_dict() == expected
    assert s.flags.writeable
    P = np.asfortranarray(np.column_stack([1 - s, s]))
    assert risk_coverage(y, P).aurc == risk_coverage(y, P[::1].copy("C").astype(np.float32)).aurc


# --- several classes ---------------------------------------------------------------------------------------


def classes(n: int = 300, k: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(35)
    P = rng.dirichlet(np.ones(k), n)
    return np.array([rng.choice(k, p=p) for p in P]), P


def test_top_label_is_the_binary_diagram_of_right() -> None:
    y, P = classes()
    found = reliability_top_label(y, P, n_bins=7)
    same = reliability(P.argmax(axis=1) == y, P.max(axis=1), n_bins=7)
    assert found.to_dict() | {"event": "positive"} == same.to_dict()
    assert found.event == "top label"
    assert found.ece == calcore.confidence_ece(y, P, n_bins=7, strategy="quantile")


def test_classwise_is_every_class_against_the_rest() -> None:
    y, P = classes()
    names = ["a", "b", "c", "d"]
    found = reliability_classwise(np.array(names)[y], P, labels=names, n_bins=6)
    assert [d.name for d in found.diagrams] == names
    assert found.classwise_ece == pytest.approx(
        calcore.classwise_ece(y, P, n_bins=6, strategy="quantile"), abs=1e-15
    )
    for j, diagram in enumerate(found.diagrams):
        alone = reliability(y == j, P[:, j], n_bins=6)
        assert np.array_equal(diagram.intervals, alone.intervals)
        shared = reliability(y == j, P[:, j], n_bins=6, delta=0.05 / 4)
        assert np.array_equal(diagram.simultaneous, shared.simultaneous), "delta is shared by the classes"
    eces = [d.ece for d in found.worst_first]
    assert eces == sorted(eces, reverse=True)
    json.dumps(found.to_dict(), allow_nan=False)


def test_certificates_of_the_same_rows() -> None:
    y, P = classes()
    certificates = calcore.certify_classwise(y, P)
    found = reliability_classwise(y, P, certificates=certificates)
    assert [d.certificate for d in found.diagrams] == [certificates[j] for j in range(4)]
    s, labels = P[:, 0], y == 0
    certificate = calcore.certify(labels, s)
    assert reliability(labels, s, certificate=certificate).certificate is certificate
    grouped = calcore.certify(labels, s, groups=np.arange(300) // 2, rng=0)
    assert reliability(labels, s, certificate=grouped).certificate is grouped
    for call, message in (
        (
            lambda: reliability(labels[1:], s[1:], certificate=certificate),
            r"^certificate must be of the same rows; got one of 300 rows for 299$",
        ),
        (
            lambda: reliability(~labels, s, certificate=certificate),
            r"^certificate must be of the same rows; got one of \d+ positives for \d+$",
        ),
        (lambda: reliability(labels, s, certificate=0.1), r"^certificate must be a Certificate; got float$"),
        (
            lambda: reliability_classwise(y, P, certificates=certificate),
            r"^certificates must be a CertificateSet",
        ),
        (
            lambda: reliability_classwise(y, P, certificates=certificates, labels=[0, 1, 2, 9]),
            r"^(y_true|certificates) must",
        ),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


# --- residuals ---------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 5), st.sampled_from([0.05, 0.5]))
def test_residual_map_by_definition(rows: list[tuple[int, float]], n_bins: int, delta: float) -> None:
    labels, scores = (list(column) for column in zip(*rows, strict=True))
    found = residual_map(labels, scores, n_bins=n_bins, delta=delta)
    sign = signs_of(quantile_groups(scores, n_bins), labels, scores, delta)
    assert (found.too_low.astype(int) - found.too_high).tolist() == sign
    assert np.all(
        (found.gap_intervals[:, 0] <= found.bins.gap) & (found.bins.gap <= found.gap_intervals[:, 1])
    )
    assert not np.any(found.too_high & found.too_low)
    json.dumps(found.to_dict(), allow_nan=False)


def test_residual_map_mirrors() -> None:
    rng = np.random.default_rng(36)
    s = rng.random(3000)
    y = rng.random(3000) < s**2
    found = residual_map(y, s, strategy="uniform", n_bins=8)
    mirrored = residual_map(~y, 1.0 - s, strategy="uniform", n_bins=8)
    assert found.too_high.any()
    assert np.array_equal(found.too_high, mirrored.too_low[::-1])
    assert found.bins.gap == pytest.approx(-mirrored.bins.gap[::-1], abs=1e-12)
    empty = residual_map([0, 1], [0.0, 1.0], strategy="uniform", n_bins=3)
    assert np.isnan(empty.gap_intervals[1]).all()
    assert not empty.too_high[1]
    assert not empty.too_low[1]
    json.dumps(empty.to_dict(), allow_nan=False)


# --- risk and coverage -------------------------------------------------------------------------------------


@given(ROWS)
def test_area_by_definition(rows: list[tuple[int, float]]) -> None:
    right, confidence = (list(column) for column in zip(*rows, strict=True))
    found = risk_coverage(right, confidence=confidence)
    assert found.aurc == pytest.approx(float(area(right, confidence)), abs=TINY)
    levels = sorted(set(confidence), reverse=True)
    assert found.threshold.tolist() == levels
    kept = [[y for y, c in rows if c >= level] for level in levels]
    assert found.coverage == pytest.approx([len(k) / len(rows) for k in kept], abs=TINY)
    assert found.risk == pytest.approx([k.count(0) / len(k) for k in kept], abs=TINY)
    assert found.error == found.risk[-1]
    assert found.coverage[-1] == 1.0
    # as steps, each up to its coverage, the curve has this area
    assert float((np.diff(found.coverage, prepend=0.0) * found.risk).sum()) == pytest.approx(
        found.aurc, abs=TINY
    )
    assert risk_coverage(ScoreTable(right, confidence)).to_dict() == found.to_dict()
    assert risk_coverage(right[::-1], confidence=confidence[::-1]).to_dict() == found.to_dict()


@pytest.mark.parametrize("right", [[1], [0], [1, 1, 0], [0, 1, 0, 1], [0, 0, 0, 1, 1, 1]])
def test_excess_is_over_the_best_order(right: list[int]) -> None:
    confidence = [1.0 - i / 10 for i in range(len(right))]
    best = min(area(list(order), confidence) for order in itertools.permutations(right))
    found = risk_coverage(right, confidence=confidence)
    assert found.e_aurc == pytest.approx(float(area(right, confidence) - best), abs=TINY)
    assert _least_area(right.count(0), len(right)) == pytest.approx(float(best), abs=TINY)


def test_least_area_of_many_rows() -> None:
    """Geifman et al.: error + (1 - error) ln(1 - error), for many rows."""
    assert _least_area(3_000_000, 10_000_000) == pytest.approx(0.3 + 0.7 * math.log(0.7), abs=1e-6)


def test_risk_coverage_of_classes() -> None:
    y, P = classes()
    found = risk_coverage(y, P)
    assert found.to_dict() == risk_coverage(P.argmax(axis=1) == y, confidence=P.max(axis=1)).to_dict()
    constant = risk_coverage([0, 1, 1, 1], confidence=[0.5] * 4)
    assert (constant.aurc, constant.coverage.tolist(), constant.risk.tolist()) == (0.25, [1.0], [0.25])
    assert risk_coverage([1, 1], confidence=[0.5, 0.6]).aurc == 0.0


def test_long_curves_are_thinned_and_areas_are_not() -> None:
    rng = np.random.default_rng(37)
    confidence = rng.random(20_000)
    right = rng.random(20_000) < confidence
    found = risk_coverage(right, confidence=confidence)
    assert 900 < len(found.coverage) <= 1000
    assert found.coverage[-1] == 1.0
    assert found.risk[-1] == found.error == 1.0 - right.mean()
    assert np.diff(found.coverage).max() <= 2 / 1000
    order = np.argsort(-confidence)
    risks = np.cumsum(~right[order]) / np.arange(1, 20_001)
    assert found.aurc == pytest.approx(risks.mean(), abs=TINY)
    where = np.rint(found.coverage * 20_000).astype(int) - 1
    assert found.risk == pytest.approx(risks[where], abs=TINY)
    cells = risk_coverage(CellTable().update(right, confidence))
    assert cells.aurc == pytest.approx(found.aurc, abs=1e-3)


# --- records and refusals ----------------------------------------------------------------------------------


def test_records() -> None:
    y, P = classes()
    s, labels = P[:, 0], y == 0
    results = [
        reliability(labels, s, strategy="isotonic", certificate=calcore.certify(labels, s)),
        reliability_classwise(y, P),
        residual_map(labels, s),
        risk_coverage(y, P),
    ]
    for result in results:
        assert len(repr(result)) < 120
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert again.to_dict() == result.to_dict()
        json.dumps(result.to_dict(), allow_nan=False)
        with pytest.raises(AttributeError):
            result.n = 3  # type: ignore[misc]
    for result in (results[0], copy.deepcopy(results[0])):
        for name in ("intervals", "simultaneous", "curve", "score_edges", "score_counts"):
            assert not getattr(result, name).flags.writeable, name
    assert "errors of both signs" in repr(
        reliability(([1] * 9 + [0]) * 20 + ([0] * 9 + [1]) * 20, [0.25] * 200 + [0.75] * 200)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reliability([], []), r"^y_true and y_prob must|^y_true must"),
        (lambda: reliability([0, 1], [0.2, 1.2]), r"^y_prob must lie in \[0, 1\]; got 1.2 at index 1"),
        (lambda: reliability([0, 1], [0.2, math.nan]), r"^y_prob .*nan"),
        (lambda: reliability([0, 1]), r"^y_prob is missing"),
        (lambda: reliability([0, 1], [0.1, 0.2, 0.3]), r"^y_true and y_prob must have the same"),
        (
            lambda: reliability([0, 1], [0.1, 0.2], n_bins=301),
            r"^n_bins must be at most 300, to be seen; got 301$",
        ),
        (lambda: reliability([0, 1], [0.1, 0.2], n_bins=0), r"^n_bins must be a whole number >= 1; got 0$"),
        (lambda: reliability([0, 1], [0.1, 0.2], delta=0), r"^delta must"),
        (lambda: reliability([0, 1], [0.1, 0.2], strategy="equal"), r"^strategy must be"),
        (lambda: residual_map([0, 1], [0.1, 0.2], strategy="isotonic"), r"^strategy must be"),
        (lambda: residual_map([0, 1], [0.1, 0.2], delta=1.0), r"^delta must"),
        (lambda: reliability_top_label([0, 1], [[0.5, 0.6], [0.5, 0.5]]), r"^P must have rows that sum to 1"),
        (lambda: risk_coverage([0, 1]), r"^P is missing"),
        (lambda: risk_coverage([0, 1], [0.1, 0.2]), r"^P must have a column for each class; got one column"),
        (lambda: risk_coverage([0, 1], [[0.1], [0.2, 0.8]]), r"^P must"),
        (lambda: risk_coverage([0, 1], confidence=[0.1, 1.5]), r"^confidence must lie in \[0, 1\]; got 1.5"),
        (lambda: risk_coverage([0, 1], [[0.5, 0.5]] * 2, confidence=[0.1, 0.5]), r"^P must not be given"),
        (lambda: risk_coverage([0, 1], confidence=[0.1, 0.5], labels=[0, 1]), r"^labels must not be given"),
        (
            lambda: risk_coverage(ScoreTable([0, 1], [0.1, 0.2]), confidence=[0.1, 0.2]),
            r"^confidence must not",
        ),
        (lambda: risk_coverage(CellTable()), r"^y_true must hold at least one row"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()
