"""Proper scores and their parts: against exact arithmetic, closed forms and scikit-learn."""

from __future__ import annotations

import bisect
import copy
import json
import math
import pickle
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from scipy.stats import binom, norm
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from calcore import CellTable, ScoreTable, auroc, ece
from calcore.kernels import scoring as kernels
from calcore.scoring import (
    brier_decomposition,
    brier_score,
    clinical_calibration,
    corp,
    log_loss,
)

U = 2.0**-53


def approx(expected: Any, rel: float = 0.0, abs: float = 0.0) -> Any:
    """`pytest.approx` without an absolute tolerance that nobody asked for."""
    return pytest.approx(expected, rel=rel, abs=abs)


CLOSE: dict[str, Any] = {"rel": 64 * U, "abs": 64 * U}
"""Parts are sums of at most 40 terms in [0, 1], each rounded a few times, by a total that is rounded too."""

# A grid with many ties, bin edges, the neighbours of 0 and 1, and anything.
SCORES = st.one_of(
    st.integers(0, 20).map(lambda k: k / 20),
    st.sampled_from([5e-324, 1e-20, 2.0**-53, 1.0 - U, math.nextafter(0.3, 0), math.nextafter(0.6, 1)]),
    st.floats(0.0, 1.0),
)
ROWS = st.lists(st.tuples(st.integers(0, 1), SCORES), min_size=1, max_size=40)
WEIGHTED = st.lists(st.tuples(st.integers(0, 1), SCORES, st.integers(0, 3)), min_size=1, max_size=25).filter(
    lambda rows: any(w for _, _, w in rows)
)


def columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


# --------------------------------------------------------------------------------------------------- oracles


def exact_brier(y: Sequence[int], s: Sequence[float]) -> Fraction:
    return sum(((Fraction(p) - c) ** 2 for c, p in zip(y, s, strict=True)), Fraction(0)) / len(y)


def slow_log(y: Sequence[int], s: Sequence[float]) -> float:
    losses = []
    for c, p in zip(y, s, strict=True):
        if (p if c else 1.0 - p) == 0.0:
            return math.inf
        losses.append(-math.log(p) if c else -math.log1p(-p))
    return math.fsum(losses) / len(y)


def bins_of(s: Sequence[float], n_bins: int | None, strategy: str) -> list[Any]:
    if n_bins is None:
        return list(s)
    if strategy == "uniform":
        edges = [j / n_bins for j in range(n_bins)]
        return [bisect.bisect_right(edges, p) - 1 for p in s]
    ordered = sorted(s)
    ends = sorted({ordered[math.ceil(Fraction(j * len(s), n_bins)) - 1] for j in range(1, n_bins + 1)})
    return [bisect.bisect_left(ends, p) for p in s]


def exact_parts(y: Sequence[int], s: Sequence[float], bins: Sequence[Any]) -> list[Fraction]:
    """Reliability, resolution, uncertainty, variance and twice the covariance within bins."""
    n, rate = len(y), Fraction(sum(y), len(y))
    reliability = resolution = variance = covariance = Fraction(0)
    for name in set(bins):
        rows = [(c, Fraction(p)) for c, p, b in zip(y, s, bins, strict=True) if b == name]
        o, f = Fraction(sum(c for c, _ in rows), len(rows)), sum(p for _, p in rows) / len(rows)
        reliability += len(rows) * (f - o) ** 2
        resolution += len(rows) * (o - rate) ** 2
        variance += sum((p - f) ** 2 for _, p in rows)
        covariance += 2 * sum((p - f) * (c - o) for c, p in rows)
    parts = [reliability / n, resolution / n, rate * (1 - rate), variance / n, covariance / n]
    return list(map(Fraction, parts))


def exact_isotonic(y: Sequence[int], s: Sequence[float]) -> dict[float, Fraction]:
    """Recalibrated value of each score, by the max-min formula."""
    values = sorted(set(s))
    n = [s.count(v) for v in values]
    k = [sum(c for c, p in zip(y, s, strict=True) if p == v) for v in values]

    def mean(a: int, b: int) -> Fraction:
        return Fraction(sum(k[a : b + 1]), sum(n[a : b + 1]))

    m = len(values)
    return {
        values[i]: max(min(mean(a, b) for b in range(i, m)) for a in range(i + 1)) for i in range(len(values))
    }


# --------------------------------------------------------------------------------------------- Brier and log


@given(ROWS)
def test_scores_equal_their_definitions(rows: list[tuple[int, float]]) -> None:
    y, s = columns(rows)
    assert brier_score(y, s) == approx(float(exact_brier(y, s)), rel=64 * U, abs=1e-320)
    assert log_loss(y, s) == approx(slow_log(y, s), rel=64 * U, abs=1e-320)
    table = ScoreTable(y, s)
    assert brier_score(table) == approx(brier_score(y, s), rel=64 * U, abs=1e-320)
    assert log_loss(table) == approx(log_loss(y, s), rel=64 * U, abs=1e-320)


@given(WEIGHTED)
def test_whole_weights_are_repeated_rows(rows: list[tuple[int, float, int]]) -> None:
    y, s, w = columns(rows)
    many_y, many_s = np.repeat(y, w), np.repeat(s, w)
    for score in (brier_score, log_loss):
        expected = approx(score(many_y, many_s), rel=64 * U, abs=1e-320)
        assert score(y, s, sample_weight=w) == expected
        assert score(y, s, sample_weight=np.array(w) * 2.0**1000) == expected
    if math.isfinite(log_loss(many_y, many_s)):
        for kind in ("brier", "log"):
            ours, theirs = corp(y, s, score=kind, sample_weight=w), corp(many_y, many_s, score=kind)
            assert ours.score == approx(theirs.score, **CLOSE)
            # the log score of one rate has a slope of its logit, at most ln 75, in that rate
            assert ours.miscalibration == approx(theirs.miscalibration, abs=512 * U, rel=64 * U)
            assert ours.discrimination == approx(theirs.discrimination, abs=512 * U)
            assert ours.thresholds.tolist() == theirs.thresholds.tolist()
            assert_allclose(ours.recalibrated, theirs.recalibrated, rtol=8 * U)
    for options in ({"n_bins": 4}, {"n_bins": 4, "strategy": "quantile"}, {"n_bins": None}):
        weighted = brier_decomposition(y, s, sample_weight=w, **options).to_dict()  # type: ignore[arg-type]
        repeated = brier_decomposition(many_y, many_s, **options).to_dict()  # type: ignore[arg-type]
        for name in ("n", "n_bins", "strategy"):
            assert name == "n" or weighted[name] == repeated[name]
        for name in set(weighted) - {"n", "n_bins", "strategy"}:
            assert weighted[name] == approx(repeated[name], **CLOSE), name


@given(st.integers(2, 5).flatmap(lambda k: st.lists(st.lists(st.integers(0, 9), min_size=k, max_size=k))))
def test_matrices_equal_their_definitions(numerators: list[list[int]]) -> None:
    numerators = [row for row in numerators if sum(row)]
    assume(numerators)
    P = [[value / sum(row) for value in row] for row in numerators]
    y = [i % len(P[0]) for i in range(len(P))]
    squares = [
        sum((Fraction(p) - (j == c)) ** 2 for j, p in enumerate(row)) for c, row in zip(y, P, strict=True)
    ]
    assert brier_score(y, P) == approx(float(sum(squares) / len(y)), rel=64 * U)
    lost = [row[c] for c, row in zip(y, P, strict=True)]
    expected = math.inf if 0.0 in lost else -math.fsum(map(math.log, lost)) / len(y)
    assert log_loss(y, P) == approx(expected, rel=64 * U)
    w = [i % 3 for i in range(len(P))]
    if any(w):
        kept = [i for i in range(len(P)) for _ in range(w[i])]
        for score in (brier_score, log_loss):
            assert score(y, P, sample_weight=w) == approx(
                score([y[i] for i in kept], [P[i] for i in kept]), rel=64 * U
            )


def test_forms_of_two_classes() -> None:
    y, s = [0, 1, 1, 0], np.array([0.125, 0.5, 0.75, 0.625])
    P = np.column_stack([1.0 - s, s])
    assert brier_score(y, P) == 2.0 * brier_score(y, s)
    assert log_loss(y, P) == approx(log_loss(y, s), rel=8 * U)
    assert log_loss(["b", "a", "a", "b"], P, labels=["b", "a"]) == log_loss(y, P)
    assert brier_score(y, s[:, None].T[0]) == brier_score(y, s)


@pytest.mark.parametrize("report", [0.0, 0.125, 0.25, 0.4, 0.75, 1.0])
@pytest.mark.parametrize("truth", [0.125, 0.25, 0.75])
def test_the_truth_has_the_least_expected_score(truth: float, report: float) -> None:
    weights = [1.0 - truth, truth]
    for score in (brier_score, log_loss):
        honest, other = (score([0, 1], [p, p], sample_weight=weights) for p in (truth, report))
        assert honest < other or report == truth


def test_infinite_log_loss_is_never_nan() -> None:
    assert log_loss([1, 0], [0.0, 0.5]) == math.inf
    assert log_loss([0, 1], [1.0, 0.5]) == math.inf
    assert log_loss([1, 0], [1.0, 0.0]) == 0.0
    assert math.copysign(1.0, log_loss([1, 0], [1.0, 0.0])) == 1.0
    assert log_loss([1, 0], [0.0, 0.5], sample_weight=[0, 2]) == math.log(2)
    assert log_loss(ScoreTable([1, 0], [0.0, 0.5])) == math.inf
    assert log_loss([0, 1], [[0.0, 1.0], [0.0, 1.0]]) == math.inf
    assert log_loss([0, 1], [[0.0, 1.0], [0.0, 1.0]], sample_weight=[0, 1]) == 0.0
    assert log_loss([0] * 3, [1e-20] * 3) == approx(1e-20, rel=8 * U)
    assert log_loss([0, 1], np.float32([0.0, 1.0])) == 0.0
    assert log_loss([1], np.float32([[0.0, 1.0000001]])) == 0.0


def test_published_cases() -> None:
    assert [brier_score([k] * 3, [1, 1, 1]) for k in (1, 0)] == [0.0, 1.0]
    assert brier_score([-1, 1, 1, -1], [0.1, 0.9, 0.6, 0.4]) == approx(0.085, rel=8 * U)
    assert brier_score(["pos", "neg", "neg"], [0.2, 0.7, 0.9], pos_label="neg") == approx(0.14 / 3, rel=8 * U)
    assert brier_score([1], [[0.2, 0.5, 0.3]]) == approx(0.38, rel=8 * U)
    assert brier_score(np.zeros(5000, int), np.full(5000, 0.1, np.float16)) == float(np.float16(0.1)) ** 2


@pytest.mark.parametrize("n", [7, 3000, 70_000])
def test_equal_to_scikit_learn(n: int) -> None:
    rng = np.random.default_rng(31)
    s = np.where(rng.random(n) < 0.5, np.round(rng.random(n), 2), rng.random(n)).clip(0.001, 0.999)
    y = (rng.random(n) < s).astype(int)
    y[:2] = 0, 1
    w = rng.random(n)
    # 64 units: both add up n numbers pairwise, with an error of log2(n) units at most each
    assert brier_score(y, s) == approx(brier_score_loss(y, s), rel=64 * U)
    assert brier_score(y, s, sample_weight=w) == approx(brier_score_loss(y, s, sample_weight=w), rel=1e-12)
    assert log_loss(y, s) == approx(sklearn_log_loss(y, s), rel=64 * U)
    assert auroc(y, s) == approx(roc_auc_score(y, s), rel=n * U)
    P = rng.dirichlet(np.ones(5), n)
    c = rng.integers(0, 5, n)
    c[:5] = range(5)
    assert brier_score(c, P) == approx(brier_score_loss(c, P, scale_by_half=False), rel=64 * U)
    assert log_loss(c, P) == approx(sklearn_log_loss(c, P), rel=1e-12)


def test_blocks_and_order_do_not_matter() -> None:
    rng = np.random.default_rng(32)
    s = rng.random(40_000)
    y = rng.random(40_000) < s
    order = rng.permutation(40_000)
    for score in (brier_score, log_loss):
        assert score(y, s) == approx(score(y[order], s[order]), rel=64 * U)
        halves = [score(y[part], s[part]) for part in (slice(0, 13_000), slice(13_000, None))]
        assert score(y, s) == approx((13 * halves[0] + 27 * halves[1]) / 40, rel=64 * U)
        assert score(y, s) == approx(score(~y, 1.0 - s), rel=1e-12)


def test_cell_table() -> None:
    rng = np.random.default_rng(33)
    s = rng.random(5000)
    y = rng.random(5000) < s
    table = CellTable(2000).update(y, s)
    above = brier_score(table) - brier_score(y, s)
    assert -(2.0**-46) <= above <= 2.0**-27 / 2000 + 2.0**-44
    for call in (log_loss, corp, brier_decomposition, clinical_calibration):
        with pytest.raises(TypeError, match=r"^y_true must keep every score .*ScoreTable"):
            call(table)  # type: ignore[operator]


@pytest.mark.kernels
def test_likelihoods() -> None:
    rng = np.random.default_rng(34)
    s = np.concatenate([rng.random(500), rng.random(500) ** 40, 1.0 - rng.random(100) * 1e-12, [0.0, 1.0]])
    y = np.concatenate([rng.integers(0, 2, 1100), [0, 1]]).astype(np.uint8)
    s.flags.writeable = y.flags.writeable = False
    given_, rest = np.empty(len(s)), np.empty(len(s))
    kernels.likelihoods(y, s, given_, rest)
    for i in range(len(s)):
        expected = math.log(s[i]) if y[i] else math.log1p(-s[i])
        assert math.log(given_[i]) + rest[i] == approx(expected, rel=4 * U), (y[i], s[i])
    s, y = 1.0 - np.arange(2.0), np.array([0, 1], np.uint8)
    s.flags.writeable = y.flags.writeable = False
    kernels.likelihoods(y, s, given_, rest)
    assert (given_[:2].tolist(), rest[:2].tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_input_of_any_kind() -> None:
    s = np.array([0.25, 0.5, 0.75, 0.5])
    y = np.array([0, 1, 1, 0])
    frozen = s.copy()
    frozen.flags.writeable = False
    kinds = [
        list(s),
        frozen,
        s.astype(np.float32),
        s.astype(np.float16),
        s.astype(">f8"),
        np.repeat(s, 2)[::2],
        pd.Series(s),
        pl.Series(s),
    ]
    calls: list[Callable[[Any], Any]] = [
        lambda p: brier_score(y, p),
        lambda p: log_loss(y, p),
        lambda p: log_loss(y, p, sample_weight=[1, 2, 3, 4]),
        lambda p: corp(y, p).to_dict(),
        lambda p: brier_decomposition(y, p).to_dict(),
        lambda p: clinical_calibration(y, p).to_dict(),
    ]
    for call in calls:
        assert all(str(call(kind)) == str(call(s)) for kind in kinds)
    assert np.array_equal(s, frozen)
    assert len(getattr(kernels.likelihoods, "signatures", [0])) <= 1
    P = np.column_stack([1.0 - s, s])
    for Q in (P.tolist(), np.asfortranarray(P), P.astype(np.float32), P[::-1][::-1], pd.DataFrame(P)):
        assert brier_score(y, Q) == brier_score(y, P)
        assert log_loss(y, Q) == log_loss(y, P)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: brier_score([0, 1], [0.2, 1.2]),
            ValueError,
            r"^y_prob must lie in \[0, 1\]; got 1.2 at index 1",
        ),
        (lambda: log_loss([0, 1], [0.2, math.nan]), ValueError, r"^y_prob .*nan at index 1"),
        (lambda: brier_score([], []), ValueError, r"^y_true and y_prob must have at least one row; got 0$"),
        (lambda: brier_score([0, 1], [0.2]), ValueError, r"^y_true and y_prob must have the same length"),
        (lambda: brier_score([0, 1]), TypeError, r"^y_prob is missing"),
        (
            lambda: log_loss([0, 1], [[0.2, 0.9], [0.5, 0.5]]),
            ValueError,
            r"^y_prob must have rows that sum to 1; row 0 sums to 1.1",
        ),
        (lambda: log_loss(["P"], [[0.5, 0.5]]), ValueError, r"^labels must be given .* of y_prob; .*'P'$"),
        (
            lambda: log_loss([2], [[0.5, 0.5]]),
            ValueError,
            r"^y_true must hold labels from 0 to 1, the columns",
        ),
        (lambda: log_loss([1], [[0.5, 0.5]], pos_label=1), TypeError, r"^pos_label must be left out"),
        (lambda: log_loss([1], [0.5], labels=[0, 1]), TypeError, r"^labels must be left out"),
        (
            lambda: brier_score([0, 1], [0.2, 0.3], sample_weight=[0, 0]),
            ValueError,
            r"^sample_weight must not be all zero$",
        ),
        (
            lambda: corp([0, 1], [0.2, 0.3], sample_weight=[0, 0]),
            ValueError,
            r"^sample_weight must not be all zero$",
        ),
        (
            lambda: brier_score(ScoreTable([1], [0.5]), [0.5]),
            TypeError,
            r"^y_prob must not be given beside a table",
        ),
        (lambda: brier_score(CellTable()), ValueError, r"^y_true must hold at least one row"),
        (
            lambda: corp([0], [0.5], score="l2"),
            ValueError,
            r"^score must be one of 'brier', 'log'; got 'l2'$",
        ),  # type: ignore[arg-type]
        (
            lambda: brier_decomposition([0], [0.5], n_bins=0),
            ValueError,
            r"^n_bins must be a whole number >= 1",
        ),
        (
            lambda: brier_decomposition([0], [0.5], n_bins=None, strategy="x"),  # type: ignore[arg-type]
            ValueError,
            r"^strategy must be one of",
        ),
        (lambda: clinical_calibration([1, 1], [0.2, 0.3]), ValueError, r"^y_true must have rows of both"),
        (
            lambda: clinical_calibration([0, 1, 1], [0.2, 1.0, 0.0]),
            ValueError,
            r"^y_prob must lie strictly between 0 and 1, .*; got 1.0 at index 1 \(and 1 more\): clip",
        ),
        (
            lambda: clinical_calibration(ScoreTable([0, 1], [0.2, 1.0])),
            ValueError,
            r"^y_true must be a table of scores strictly between 0 and 1, .* got 1.0: clip",
        ),
        (
            lambda: clinical_calibration([0, 1], [0.2, 0.3], n_knots=6),
            ValueError,
            r"^n_knots must be 3, 4 or",
        ),
        (lambda: clinical_calibration([0, 1], [0.2, 0.3], delta=5), ValueError, r"^delta must lie strictly"),
    ],
)
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# ----------------------------------------------------------------------------------------------------- Murphy


@given(ROWS, st.sampled_from([None, 1, 2, 5, 10, 15, 300]), st.sampled_from(["uniform", "quantile"]))
def test_parts_equal_exact_arithmetic(
    rows: list[tuple[int, float]], n_bins: int | None, strategy: Any
) -> None:
    y, s = columns(rows)
    result = brier_decomposition(y, s, n_bins=n_bins, strategy=strategy)
    bins = bins_of(s, n_bins, strategy)
    parts = exact_parts(y, s, bins)
    assert parts[0] - parts[1] + parts[2] + parts[3] - parts[4] == exact_brier(y, s)
    ours = (
        result.reliability,
        result.resolution,
        result.uncertainty,
        result.within_bin_variance,
        result.within_bin_covariance,
    )
    for mine, exact in zip(ours, parts, strict=True):
        assert mine == approx(float(exact), **CLOSE)
    assert result.n_bins == len(set(bins))
    assert result.n == len(y)
    total = result.reliability - result.generalized_resolution + result.uncertainty
    assert total == approx(result.brier, **CLOSE)
    assert result.brier == approx(float(exact_brier(y, s)), **CLOSE)
    if n_bins is None:
        assert ours[3:] == (0.0, 0.0)
        assert result.strategy == "scores"
    assert (
        brier_decomposition(ScoreTable(y, s), n_bins=n_bins, strategy=strategy).to_dict() == result.to_dict()
    )
    assert json.loads(json.dumps(result.to_dict()))["n"] == len(y)


@given(ROWS, st.sampled_from(["uniform", "quantile", "min_count"]))
def test_reliability_is_the_squared_l2_error(rows: list[tuple[int, float]], strategy: Any) -> None:
    y, s = columns(rows)
    finest = brier_decomposition(y, s, n_bins=None)
    slack = 64 * U
    for n_bins in (1, 5, 10):
        result = brier_decomposition(y, s, n_bins=n_bins, strategy=strategy)
        if len(set(s)) > 1 or len(s) == 1:  # else ece warns that all scores are equal
            squared = ece(y, s, n_bins=n_bins, strategy=strategy, norm="l2") ** 2
            assert squared == approx(result.reliability, **CLOSE)
            assert squared <= finest.reliability + slack
        assert result.reliability <= finest.reliability + slack <= finest.brier + 2 * slack
    coarse, fine = (brier_decomposition(y, s, n_bins=n) for n in (5, 10))
    assert coarse.reliability <= fine.reliability + slack
    assert coarse.resolution <= fine.resolution + slack


def test_coarser_bins_hide_reliability() -> None:
    """Errors of different sign in a bin cancel: 0 over one bin, 1/16 over the scores."""
    y, s = [0, 1, 0, 1], [0.25, 0.75, 0.25, 0.75]
    assert brier_decomposition(y, s, n_bins=1).reliability == 0.0
    assert brier_decomposition(y, s, n_bins=None).reliability == 0.0625 == brier_score(y, s)
    by_edges = brier_decomposition(y, s, edges=[0, 0.3, 1])
    assert (by_edges.reliability, by_edges.strategy, by_edges.n_bins) == (0.0625, "edges", 2)


# ------------------------------------------------------------------------------------------------------- CORP


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9).map(lambda k: k / 9)), min_size=1, max_size=30)
)
def test_corp_equals_the_max_min_formula(rows: list[tuple[int, float]]) -> None:
    y, s = columns(rows)
    fitted = exact_isotonic(y, s)
    best = sum(((fitted[p] - c) ** 2 for c, p in rows), Fraction(0)) / len(y)
    rate = Fraction(sum(y), len(y))
    result = corp(y, s)
    assert result.miscalibration == approx(float(exact_brier(y, s) - best), **CLOSE)
    assert result.discrimination == approx(float(rate * (1 - rate) - best), **CLOSE)
    assert result.uncertainty == approx(float(rate * (1 - rate)), **CLOSE)
    for p, value in fitted.items():  # interpolation rounds three times
        at = np.interp(p, result.thresholds, result.recalibrated)
        assert at == approx(float(value), rel=8 * U, abs=8 * U)
    assert np.all(np.diff(result.thresholds) > 0.0)
    assert np.all(np.diff(result.recalibrated) >= 0.0)
    curve = result.recalibrated
    assert not any(a == b == c for a, b, c in zip(curve, curve[1:], curve[2:], strict=False))

    logs = corp(y, s, score="log")
    recalibrated = [float(fitted[p]) for p in s]
    assert log_loss(y, recalibrated) == approx(
        logs.uncertainty - logs.discrimination, abs=512 * U, rel=64 * U
    )
    assert logs.score == log_loss(ScoreTable(y, s))
    assert logs.thresholds.tolist() == result.thresholds.tolist()


@given(ROWS, st.sampled_from(["brier", "log"]))
def test_corp_adds_up(rows: list[tuple[int, float]], kind: Any) -> None:
    y, s = columns(rows)
    result = corp(y, s, score=kind)
    parts = (result.miscalibration, result.discrimination, result.uncertainty)
    assert min(parts) >= 0.0
    assert math.isfinite(result.discrimination + result.uncertainty)
    assert parts[0] - parts[1] + parts[2] == approx(result.score, abs=512 * U, rel=64 * U)
    assert not result.thresholds.flags.writeable
    assert not result.recalibrated.flags.writeable
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (plain["score"] is None) == (result.score == math.inf)
    recalibrated = np.interp(s, result.thresholds, result.recalibrated).clip(0.0, 1.0)
    again = corp(y, recalibrated, score=kind)
    # interpolation rounds the values; a rate of 1 - 2^-53 in place of 1 costs 2^-53
    assert again.miscalibration <= 512 * U
    if len(set(y)) == 1:
        assert parts[1:] == (0.0, 0.0)


def test_corp_of_infinite_scores() -> None:
    result = corp([1, 0, 1, 0], [0.0, 0.5, 0.75, 0.25], score="log")
    assert result.score == result.miscalibration == math.inf
    assert result.uncertainty == approx(math.log(2), rel=8 * U)
    assert repr(result).startswith("CorpDecomposition(log=inf, miscalibration=inf")


def test_corp_equals_scikit_learn() -> None:
    rng = np.random.default_rng(35)
    s = np.round(rng.random(3000), 3)
    y = rng.random(3000) < s**2
    w = rng.random(3000)
    theirs = IsotonicRegression().fit(s, y, w).predict(s)
    result = corp(y, s, sample_weight=w)
    assert_allclose(np.interp(s, result.thresholds, result.recalibrated), theirs, rtol=0, atol=1e-12)


# --------------------------------------------------------------------------------------------------- clinical


def repeated(cells: Sequence[tuple[float, int, int]]) -> tuple[list[int], list[float]]:
    """Labels and scores of (score, positives, negatives)."""
    y = [label for _, k, m in cells for label in [1] * k + [0] * m]
    return y, [p for p, k, m in cells for _ in range(k + m)]


def test_closed_forms() -> None:
    """Two scores: the slope is that between the logits of the rates. One score: so is the intercept."""
    cells = [(0.2, 7, 13), (0.7, 21, 9)]
    result = clinical_calibration(*repeated(cells), delta=0.1)
    x, rates = logit([0.2, 0.7]), logit([7 / 20, 21 / 30])
    slope = (rates[1] - rates[0]) / (x[1] - x[0])
    error = math.sqrt(1 / 7 + 1 / 13 + 1 / 21 + 1 / 9) / (x[1] - x[0])
    z = norm.ppf(0.95)
    # Newton stops when its last step is 1e-8 of a standard error; the one after that is its square
    assert result.slope == approx(slope, rel=1e-13)
    assert result.slope_interval.lower == approx(slope - z * error, rel=1e-12)
    assert result.slope_interval.upper == approx(slope + z * error, rel=1e-12)
    assert result.smoother == "logistic, linear in the logit"
    assert result.ici == approx((20 * 0.15 + 30 * 0.0) / 50, abs=1e-12)
    assert (result.e50, result.e90) == approx((0.0, 0.15), abs=1e-12)
    assert (result.n, result.n_positive, result.delta) == (50, 28, 0.1)
    expected = 20 * 0.2 + 30 * 0.7
    assert result.observed_expected == approx(28 / expected, rel=8 * U)
    ratio = result.observed_expected_interval
    # 28 positives of 50: the binomial tails are delta / 2 at the ends
    assert binom.sf(27, 50, ratio.lower * expected / 50) == approx(0.05, rel=1e-10)
    assert binom.cdf(28, 50, ratio.upper * expected / 50) == approx(0.05, rel=1e-10)

    one = clinical_calibration(*repeated([(0.2, 7, 13)]), delta=0.1)
    center, error = logit(7 / 20) - logit(0.2), math.sqrt(1 / 7 + 1 / 13)
    assert one.intercept == approx(center, rel=1e-12)
    assert one.intercept_interval.lower == approx(center - z * error, rel=1e-12)
    assert one.intercept_interval.upper == approx(center + z * error, rel=1e-12)
    assert (one.ici, one.e50, one.e90) == approx((0.15, 0.15, 0.15), rel=1e-12)
    assert one.smoother == "rate of all rows"


def test_equal_to_logistic_regression() -> None:
    rng = np.random.default_rng(36)
    s = rng.beta(2, 5, 2000)
    y = rng.random(2000) < expit(0.3 + 0.7 * logit(s))
    result = clinical_calibration(y, s)
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(logit(s)[:, None], y)
    assert result.slope == approx(model.coef_[0, 0], rel=1e-7)
    knots = logit(result.knots)
    assert_allclose(knots, np.quantile(logit(s), [0.05, 0.275, 0.5, 0.725, 0.95]), rtol=1e-12)
    design = np.array([[x, *harrell(x, knots)] for x in logit(s)])
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(design, y)
    off = np.abs(model.predict_proba(design)[:, 1] - s)
    assert result.ici == approx(off.mean(), rel=1e-6)
    assert result.e50 == approx(np.quantile(off, 0.5), rel=1e-6)
    assert result.e90 == approx(np.quantile(off, 0.9), rel=1e-6)
    assert result.smoother == "logistic, restricted cubic spline of the logit, 5 knots"


def harrell(x: float, t: Sequence[float]) -> list[float]:
    """The basis of Regression Modeling Strategies, section 2.4, divided by (t_k - t_1)^2."""

    def cube(u: float) -> float:
        return max(u, 0.0) ** 3

    k = len(t)
    return [
        (
            cube(x - t[j])
            - cube(x - t[k - 2]) * (t[k - 1] - t[j]) / (t[k - 1] - t[k - 2])
            + cube(x - t[k - 1]) * (t[k - 2] - t[j]) / (t[k - 1] - t[k - 2])
        )
        / (t[k - 1] - t[0]) ** 2
        for j in range(k - 2)
    ]


def test_saturated_spline_is_the_rates() -> None:
    """Three scores at the three knots: the curve goes through the rates."""
    cells = [(0.1, 5, 15), (0.4, 6, 14), (0.8, 19, 1)]
    result = clinical_calibration(*repeated(cells), n_knots=3)
    off = [0.15, 0.1, 0.15]
    assert result.ici == approx(sum(off) / 3, rel=1e-9)
    assert (result.e50, result.e90) == approx((0.15, 0.15), rel=1e-9)
    assert_allclose(result.knots, [0.1, 0.4, 0.8], rtol=1e-12)
    assert clinical_calibration(*repeated(cells)).to_dict() == result.to_dict()  # three scores, three knots


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.one_of(
                st.integers(1, 19).map(lambda k: k / 20),
                st.sampled_from([5e-324, 1e-300, 1e-9, 0.25, math.nextafter(0.25, 1), 1 - U]),
            ),
        ),
        min_size=2,
        max_size=30,
    )
)
def test_estimates_solve_their_equations(rows: list[tuple[int, float]]) -> None:
    y, s = columns(rows)
    assume(0 < sum(y) < len(y))
    result = clinical_calibration(y, s)
    x = logit(s)
    scale = 1.0 + float(np.abs(x).max())
    # the intercept is right to 1e-14 in absolute terms, and rounding of a + x, at most 2 units of it
    assert abs((y - expit(result.intercept + x)).sum()) <= len(y) * (1e-13 + 8 * U * scale)
    assert result.intercept_interval.lower <= result.intercept <= result.intercept_interval.upper
    positive = [a for a, c in zip(x, y, strict=True) if c]
    negative = [a for a, c in zip(x, y, strict=True) if not c]
    if max(x) == min(x):
        assert math.isnan(result.slope)
    elif min(positive) >= max(negative):
        assert result.slope == math.inf
    elif max(positive) <= min(negative):
        assert result.slope == -math.inf
    else:
        assert math.isfinite(result.slope)
        assert result.warnings == ()
    assert bool(result.warnings) == (not math.isfinite(result.slope))
    if result.warnings:
        assert (result.slope_interval.lower, result.slope_interval.upper) == (-math.inf, math.inf)
    assert 0.0 <= result.ici <= 1.0
    assert 0.0 <= result.e50 <= result.e90 <= 1.0
    json.dumps(result.to_dict(), allow_nan=False)


@given(st.lists(st.tuples(st.integers(1, 19), st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_slope_solves_both_equations(cells: list[tuple[int, int, int]]) -> None:
    y, s = repeated([(k / 20, hits, misses) for k, hits, misses in cells])
    assume(0 < sum(y) < len(y))
    result = clinical_calibration(y, s)
    assume(math.isfinite(result.slope))
    x = logit(s)

    def residual(a: float) -> float:
        return float((y - expit(a + result.slope * x)).sum())

    low, high = -1e3, 1e3  # the intercept that goes with the slope, by bisection
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if residual(middle) > 0.0 else (low, middle)
    gradient = ((y - expit(low + result.slope * x)) * x).sum()
    spread = result.slope_interval.upper - result.slope_interval.lower
    # the estimate is off by less than 1e-8 standard errors; the gradient by that times the information
    assert abs(gradient) <= 1e-7 / spread + 1e-10


def test_separation_and_its_absence() -> None:
    for y, slope in (([0, 0, 1, 1], math.inf), ([1, 1, 0, 0], -math.inf), ([0, 1, 1, 1], math.inf)):
        result = clinical_calibration(y, [0.2, 0.4, 0.6, 0.8])
        assert result.slope == slope
        assert result.warnings == ("a threshold separates the classes: no finite slope fits",)
        assert result.to_dict()["slope"] is None
        assert result.to_dict()["slope_interval"] == {"lower": None, "upper": None}
    touching = clinical_calibration([0, 0, 1, 1], [0.2, 0.4, 0.4, 0.8])
    assert touching.slope == math.inf
    crossing = clinical_calibration([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    assert math.isfinite(crossing.slope)
    assert "O/E=1 " in repr(crossing)


def test_metamorphic() -> None:
    rng = np.random.default_rng(37)
    s = np.round(rng.beta(2, 2, 500), 2).clip(0.01, 0.99)
    y = rng.random(500) < s
    result = clinical_calibration(y, s)
    order = rng.permutation(500)
    assert clinical_calibration(y[order], s[order]).to_dict() == result.to_dict()
    assert clinical_calibration(ScoreTable(y, s)).to_dict() == result.to_dict()
    mirrored = clinical_calibration(~y, 1.0 - s)
    assert mirrored.slope == approx(result.slope, rel=1e-10)
    assert mirrored.intercept == approx(-result.intercept, rel=1e-10)
    assert mirrored.ici == approx(result.ici, rel=1e-8)
    shifted = clinical_calibration(y, expit(logit(s) + 1.0))
    assert shifted.intercept == approx(result.intercept - 1.0, rel=1e-10)
    assert shifted.slope == approx(result.slope, rel=1e-10)
    doubled = clinical_calibration(y, expit(2.0 * logit(s)))
    assert doubled.slope == approx(result.slope / 2.0, rel=1e-10)
    twice = clinical_calibration(np.tile(y, 4), np.tile(s, 4))
    width = twice.slope_interval.upper - twice.slope_interval.lower
    whole = result.slope_interval.upper - result.slope_interval.lower
    assert width == approx(whole / 2.0, rel=1e-9)


@pytest.mark.slow
def test_coverage() -> None:
    """Intervals of a model that is off in a known way; a good interval fails here with probability 1e-6."""
    rng = np.random.default_rng(38)
    draws, hits = 400, np.zeros(3, int)
    for _ in range(draws):
        x = rng.normal(-1.0, 1.0, 1500)
        y = rng.random(1500) < expit(0.4 + x)  # intercept .4, slope 1
        s = expit(x)
        result = clinical_calibration(y, s)
        ratio = float(expit(0.4 + x).sum() / s.sum())
        for j, (value, interval) in enumerate(
            (
                (0.4, result.intercept_interval),
                (1.0, result.slope_interval),
                (ratio, result.observed_expected_interval),
            )
        ):
            hits[j] += interval.lower <= value <= interval.upper
    # Wald's are approximate: 1 percentage point is granted to the approximation
    assert np.all(hits >= binom.ppf(1e-6, draws, 0.94))
    assert np.all(hits[:2] <= binom.ppf(1 - 1e-6, draws, 0.96))


@pytest.mark.slow
def test_large() -> None:
    """No sum loses rows: 2^22 rows of three scores have the score of three rows."""
    y, s = np.array([0, 1, 1]), np.array([0.25, 0.5, 0.75], np.float32)
    many = [np.tile(column, 2**21) for column in (y, s)]
    for score in (brier_score, log_loss):
        assert score(*many) == approx(score(y, s), rel=64 * U)
    assert corp(*many).miscalibration == approx(corp(y, s).miscalibration, rel=64 * U)


def test_copies_of_results_stay_read_only():
    rng = np.random.default_rng(55)
    scores = rng.uniform(0.1, 0.9, 200)
    labels = rng.random(200) < scores
    for result, arrays in (
        (corp(labels, scores), ("thresholds", "recalibrated")),
        (clinical_calibration(labels, scores), ("knots",)),
    ):
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert again.to_dict() == result.to_dict()
            assert not any(getattr(again, name).flags.writeable for name in arrays)


def test_a_fit_that_begins_near_the_end_ends_there(monkeypatch):
    rng = np.random.default_rng(56)
    scores = rng.uniform(0.01, 0.99, 3000)
    labels = rng.random(3000) < scores**1.3
    plain = clinical_calibration(labels, scores).to_dict()
    monkeypatch.setattr("calcore.scoring.clinical._MANY", 100)
    found = clinical_calibration(labels, scores).to_dict()
    for name in ("slope", "ici", "e50", "e90"):
        assert found[name] == pytest.approx(plain[name], rel=1e-10)
    separable = clinical_calibration(scores > 0.5, scores)
    assert separable.slope == math.inf
