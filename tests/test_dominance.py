"""Blackwell's order against rational arithmetic, chains against all subsets, rankings by hand."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from calcore.dominance import DominanceChain, blackwell_compare, dominance_chain, ranking_agreement

U = 2.0**-53

# --- by definition -----------------------------------------------------------------------------------------


def exact(scores: Sequence[float], weights: Sequence[int]) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(s), Fraction(w, sum(weights))) for s, w in zip(scores, weights, strict=True)]


def violations(
    a: list[tuple[Fraction, Fraction]], b: list[tuple[Fraction, Fraction]]
) -> tuple[Fraction, Fraction]:
    """Of "a dominates b" and of "b dominates a": convex functions (t - x)_+ and (x - t)_+ at all knots."""
    against_a = against_b = Fraction(0)
    for t in {Fraction(0), Fraction(1), *(s for s, _ in a + b)}:
        for sign in (1, -1):
            of_a, of_b = (
                sum((w * max(sign * (t - s), Fraction(0)) for s, w in law), Fraction(0)) for law in (a, b)
            )
            against_a, against_b = max(against_a, of_b - of_a), max(against_b, of_a - of_b)
    return against_a, against_b


def relation(against_a: Fraction, against_b: Fraction) -> str:
    if against_a == against_b == 0:
        return "equal"
    if against_a == 0:
        return "a"
    return "b" if against_b == 0 else "incomparable"


LAW = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), min_size=1, max_size=6)


def unzipped(law: list[tuple[int, int]]) -> tuple[list[float], list[int]]:
    return [s / 8 for s, _ in law], [w for _, w in law]


# --- two predictors ----------------------------------------------------------------------------------------


@given(LAW, LAW)
def test_compared_by_definition(law_a: list[tuple[int, int]], law_b: list[tuple[int, int]]) -> None:
    (a, weights_a), (b, weights_b) = unzipped(law_a), unzipped(law_b)
    against_a, against_b = violations(exact(a, weights_a), exact(b, weights_b))
    found = blackwell_compare(a, b, weights_a=weights_a, weights_b=weights_b)
    assert found.relation == relation(against_a, against_b)
    assert found.against_a == pytest.approx(float(against_a), rel=0, abs=8 * U)
    assert found.against_b == pytest.approx(float(against_b), rel=0, abs=8 * U)
    assert found.mean_a == pytest.approx(float(sum(s * w for s, w in exact(a, weights_a))), rel=0, abs=4 * U)
    repeated = blackwell_compare(np.repeat(a, weights_a), np.repeat(b, weights_b)[::-1])
    assert repeated.relation == found.relation
    assert repeated.against_a == pytest.approx(found.against_a, rel=0, abs=8 * U)


@given(LAW, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_a_spread_dominates(law: list[tuple[int, int]], widths: list[int]) -> None:
    """Each score is replaced by two, as far below as above: a mean-preserving spread, by definition."""
    b, weights = unzipped(law)
    moves = [min(w / 8, s, 1.0 - s) for s, w in zip(b, widths, strict=False)]
    a = [s + sign * move for s, move in zip(b, moves, strict=True) for sign in (-1, 1)]
    found = blackwell_compare(a, b, weights_a=np.repeat(weights, 2), weights_b=weights)
    moved = sorted(zip(a, np.repeat(weights, 2).tolist(), strict=True))
    same = violations(exact(*zip(*moved, strict=True)), exact(b, weights))[1] == 0  # type: ignore[arg-type]
    assert found.relation == ("equal" if same else "a")
    other = blackwell_compare(b, a, weights_a=weights, weights_b=np.repeat(weights, 2))
    assert other.relation == ("equal" if same else "b")
    assert (other.against_a, other.against_b) == pytest.approx((found.against_b, found.against_a), abs=8 * U)


def test_best_and_worst() -> None:
    """Knowing the label dominates everything of that mean, and the mean alone is dominated."""
    rng = np.random.default_rng(41)
    s = rng.integers(0, 65, 1000) / 64
    mean = float(s.mean())
    assert blackwell_compare([1.0, 0.0], s, weights_a=[mean, 1.0 - mean]).relation == "a"
    assert blackwell_compare([mean], s).relation == "b"
    assert blackwell_compare(s, s[::-1]).relation == "equal"


def test_dominance_is_better_in_every_decision() -> None:
    """Expected Brier score and log loss of calibrated predictors are concave in the score: both fall."""
    a, b = np.array([0.0, 0.25, 0.75, 1.0]), np.array([0.125, 0.125, 0.875, 0.875])
    assert blackwell_compare(a, b).relation == "a"
    assert (a * (1 - a)).mean() < (b * (1 - b)).mean()
    for cost in np.linspace(0.05, 0.95, 19):
        value_a, value_b = (np.minimum(cost * (1 - s), (1 - cost) * s).mean() for s in (a, b))
        assert value_a <= value_b


def test_unequal_means_are_no_order() -> None:
    found = blackwell_compare([0.25, 0.75], [0.5, 0.75])
    assert found.relation == "incomparable"
    assert found.against_a >= 0.125
    assert found.against_b >= 0.125 - 0.125
    assert min(found.against_a, found.against_b) > 0.0


def test_tolerance() -> None:
    a, b = [0.25, 0.75], [0.25, 0.75 + 2.0**-10]
    assert blackwell_compare(a, b).relation == "incomparable"
    assert blackwell_compare(a, b, tolerance=2.0**-11).relation == "equal"
    assert blackwell_compare([0.0, 1.0], b, tolerance=2.0**-11).relation == "a"
    assert blackwell_compare(b, [0.0, 1.0], tolerance=2.0**-11).relation == "b"


def test_rounding_does_not_grow() -> None:
    """A million scores that are not short binary fractions, and the same ones moved apart in pairs."""
    rng = np.random.default_rng(42)
    s = 0.1 + 0.8 * rng.random(500_000)
    move = 0.1 * rng.random(500_000)
    found = blackwell_compare(np.concatenate([s - move, s + move]), s)
    assert found.relation == "a"
    assert found.against_a < 1e-14
    assert blackwell_compare(np.tile(s, 3), s).against_b < 1e-14


def test_isotonic_fits() -> None:
    """The documented way for predictors that are not calibrated: a finer fit of the same labels dominates."""
    rng = np.random.default_rng(43)
    s = np.sort(rng.random(2000))
    y = (rng.random(2000) < s**2).astype(float)
    fitted = np.clip(isotonic_regression(y).x, 0.0, 1.0)
    halves = np.repeat([fitted[:1000].mean(), fitted[1000:].mean()], 1000)
    assert blackwell_compare(fitted, halves).relation == "a"


# --- chains ------------------------------------------------------------------------------------------------


@given(st.lists(LAW, min_size=1, max_size=5))
def test_longest_chain(laws: list[list[tuple[int, int]]]) -> None:
    """Of all sequences of predictors that dominate each other strictly, the longest, then the earliest."""
    predictors = {f"p{i}": np.repeat(*unzipped(law)) for i, law in enumerate(laws)}
    names = list(predictors)
    above = {
        (a, b)
        for a, b in itertools.permutations(names, 2)
        if relation(*violations(*(exact(predictors[x].tolist(), [1] * len(predictors[x])) for x in (a, b))))
        == "a"
    }
    chains = [
        order
        for size in range(1, len(names) + 1)
        for order in itertools.permutations(names, size)
        if all(pair in above for pair in itertools.combinations(order, 2))
    ]
    longest = [c for c in chains if len(c) == max(map(len, chains))]
    found = dominance_chain(predictors)
    assert found.chain == min(longest)
    assert set(found.pairs) == above
    assert found.names == tuple(names)


def test_chain_by_hand() -> None:
    """With c and d incomparable; e repeats b."""
    predictors = {
        "a": [0.5] * 4,
        "b": [0.25, 0.25, 0.75, 0.75],
        "c": [0.0, 0.5, 0.75, 0.75],
        "d": [0.25, 0.25, 0.5, 1.0],
        "f": [0.0, 0.0, 1.0, 1.0],
        "e": [0.75, 0.75, 0.25, 0.25],
    }
    found = dominance_chain(predictors)
    assert found.chain == ("f", "c", "b", "a")
    assert found.equal == (("b", "e"),)
    assert ("c", "d") not in found.pairs
    assert ("d", "c") not in found.pairs
    assert ("d", "e") in found.pairs
    assert repr(found) == "DominanceChain(f > c > b > a; 6 predictors)"
    assert json.loads(json.dumps(found.to_dict()))["chain"] == ["f", "c", "b", "a"]


def test_chain_of_weighted_rows() -> None:
    """Without the weight of the last row, the means differ."""
    predictors = {"sharp": [0.0, 1.0, 0.0], "blunt": [0.5, 0.5, 0.25]}
    assert dominance_chain(predictors).pairs == ()
    assert dominance_chain(predictors, sample_weight=[2, 2, 0]).chain == ("sharp", "blunt")


def test_no_cycles_under_any_tolerance() -> None:
    rng = np.random.default_rng(44)
    predictors = {i: rng.random(50) for i in range(8)}
    for tolerance in (0.0, 0.01, 0.03, 0.1, 1.0):
        found = dominance_chain(predictors, tolerance=tolerance)
        assert len(set(found.chain)) == len(found.chain)
        assert not {(b, a) for a, b in found.pairs} & set(found.pairs)
        assert found.tolerance == tolerance


# --- rankings ----------------------------------------------------------------------------------------------


def test_agreement_by_hand() -> None:
    values = {"x": 0.1, "y": 0.3, "z": 0.2, "w": 0.2}
    found = ranking_agreement(values, ["x", "y", "z", "w"])
    assert (found.n_pairs, found.n_correct, found.n_tied, found.n_explained) == (6, 3, 1, None)
    assert [(m.better, m.worse) for m in found.misordered] == [("y", "z"), ("y", "w")]
    assert found.misordered[0].difference == pytest.approx(0.1, rel=1e-15)
    assert found.misordered[0].standard_error is found.misordered[0].explained is None
    assert found.agreement == 3.5 / 6
    assert repr(found) == "RankingAgreement(3 of 6 pairs)"
    other = ranking_agreement(values, ["x", "y", "z", "w"], lower_is_better=False)
    assert (other.n_correct, other.n_tied, len(other.misordered)) == (2, 1, 3)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["agreement"] == 3.5 / 6


def test_pairs_of_an_order_with_branches() -> None:
    """All dominated pairs count, not only those of the chain."""
    order = dominance_chain({"a": [0.0, 1.0], "b": [0.25, 0.75], "c": [0.125, 0.875]})
    found = ranking_agreement({"a": 0.0, "b": 2.0, "c": 1.0}, order)
    assert (found.n_pairs, found.n_correct, found.misordered) == (3, 3, ())


def test_noise_explains() -> None:
    """Differences of resamples: y - z of standard deviation .1 with a difference of .15, and of .01."""
    values = {"y": 0.35, "z": 0.2}
    rng = np.random.default_rng(45)
    common = rng.standard_normal((400, 1))  # the same resample for both: it must cancel
    for spread, explained in ((0.1, True), (0.01, False)):
        own = rng.standard_normal((400, 2)) * spread / math.sqrt(2.0)
        drawn = np.array([[0.35, 0.2]]) + common + own
        found = ranking_agreement(values, ["y", "z"], resamples=drawn)
        (pair,) = found.misordered
        difference = drawn[:, 0] - drawn[:, 1]
        assert pair.standard_error == pytest.approx(float(difference.std(ddof=1)), rel=1e-12)
        assert pair.p_value == pytest.approx(math.erfc(0.15 / pair.standard_error / math.sqrt(2.0)), rel=1e-9)
        assert pair.explained is explained
        assert found.n_explained == int(explained)
    assert repr(found) == "RankingAgreement(0 of 1 pairs, 0 of the misordered within noise)"
    columns = {"z": 0.2, "y": 0.35}  # columns go by the order of values
    again = ranking_agreement(columns, ["y", "z"], resamples=drawn[:, ::-1])
    assert again.misordered[0].standard_error == pytest.approx(pair.standard_error, rel=1e-12)


def test_level() -> None:
    values, drawn = {"y": 2.0, "z": 0.0}, [[1.0, 0.0], [-1.0, 0.0]]  # standard error sqrt(2), p = .157
    for level, explained in ((0.15, True), (0.16, False)):
        found = ranking_agreement(values, ["y", "z"], resamples=drawn, level=level)
        assert found.misordered[0].p_value == pytest.approx(math.erfc(1.0), rel=1e-12)
        assert found.misordered[0].explained is explained


def test_resamples_that_agree_explain_nothing() -> None:
    found = ranking_agreement({"y": 0.3, "z": 0.1}, ["y", "z"], resamples=[[0.3, 0.1]] * 5)
    assert found.misordered[0][2:] == (pytest.approx(0.2), 0.0, 0.0, False)


# --- input -------------------------------------------------------------------------------------------------


def test_input_of_any_kind() -> None:
    a, b = np.array([0.0, 1.0, 0.25]), np.array([0.5, 0.5, 0.25])
    frozen = a.copy()
    frozen.flags.writeable = False
    expected = blackwell_compare(a, b).to_dict()
    for scores in (a.tolist(), frozen, a.astype(np.float32), a.astype(">f8"), np.repeat(a, 2)[::2]):
        assert blackwell_compare(scores, b).to_dict() == expected
    for column in (pd.Series(a), pl.Series(a), np.asfortranarray(np.column_stack([a, a]))[:, 1]):
        assert blackwell_compare(column, b).to_dict() == expected
    assert json.loads(json.dumps(expected, allow_nan=False)) == expected
    found = blackwell_compare([0.0, 1.0], [0.25, 0.75])
    assert repr(found) == "BlackwellComparison('a', against_a=0, against_b=0.125)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: blackwell_compare([1.2], [0.5]),
            ValueError,
            r"^scores_a must lie in \[0, 1\]; got 1.2 at index 0",
        ),
        (lambda: blackwell_compare([0.5], [math.nan]), ValueError, r"^scores_b must lie .*nan at index 0"),
        (lambda: blackwell_compare([], [0.5]), ValueError, r"^scores_a must have at least one row; got 0$"),
        (lambda: blackwell_compare([0.5], ["x"]), TypeError, r"^scores_b must hold numbers"),
        (
            lambda: blackwell_compare([0.5], [0.5], weights_b=[1, 2]),
            ValueError,
            r"^weights_b and scores_b must have the same length; got 2 and 1$",
        ),
        (
            lambda: blackwell_compare([0.5], [0.5], weights_a=[-1]),
            ValueError,
            r"^weights_a must be finite and >= 0",
        ),
        (
            lambda: blackwell_compare([0.5], [0.5], weights_a=[0]),
            ValueError,
            r"^weights_a must not be all zero$",
        ),
        (
            lambda: blackwell_compare([0.5], [0.5], tolerance=-1),
            ValueError,
            r"^tolerance must be a number >= 0",
        ),
        (lambda: dominance_chain({}), ValueError, r"^predictors must have at least one entry; got 0$"),
        (lambda: dominance_chain([[0.5]]), TypeError, r"^predictors must map names to scores; got list$"),  # type: ignore[arg-type]
        (
            lambda: dominance_chain({"m": [2.0]}),
            ValueError,
            r"^predictors\['m'\] must lie in \[0, 1\]; got 2.0",
        ),
        (
            lambda: dominance_chain({"m": [0.5]}, sample_weight=[1, 2]),
            ValueError,
            r"^sample_weight and predictors\['m'\] must have the same length; got 2 and 1$",
        ),
        (lambda: ranking_agreement([1], ["x"]), TypeError, r"^values must map names to numbers; got list$"),  # type: ignore[arg-type]
        (
            lambda: ranking_agreement({"x": 1.0}, ["x", "y"]),
            ValueError,
            r"^values must have a number .* for 'y'$",
        ),
        (
            lambda: ranking_agreement({"x": math.nan, "y": 1.0}, ["x", "y"]),
            ValueError,
            r"^values\['x'\] must be a number of magnitude below",
        ),
        (
            lambda: ranking_agreement({"x": 1.0}, ["x"]),
            ValueError,
            r"^order must have at least one pair; got none$",
        ),
        (
            lambda: ranking_agreement({"x": 1.0}, ["x", "x"]),
            ValueError,
            r"^order must name every predictor once; got 'x'",
        ),
        (
            lambda: ranking_agreement({"x": 1.0}, "xy"),
            TypeError,
            r"^order must be a DominanceChain or a sequence",
        ),
        (
            lambda: ranking_agreement({"x": 1.0, "y": 2.0}, ["x", "y"], resamples=[[1.0, 2.0]]),
            ValueError,
            r"^resamples must have at least two rows, .* each of the 2 values; got shape \(1, 2\)$",
        ),
        (
            lambda: ranking_agreement(
                {"x": 1.0, "y": 2.0}, ["x", "y"], resamples=[[1.0, 2.0], [1.0, math.inf]]
            ),
            ValueError,
            r"^resamples must be finite; got inf at row 1, column 1$",
        ),
        (
            lambda: ranking_agreement({"x": 1.0, "y": 2.0}, ["x", "y"], resamples=[["a", "b"], ["c", "d"]]),
            TypeError,
            r"^resamples must hold numbers; got dtype <U1$",
        ),
        (
            lambda: ranking_agreement({"x": 1.0, "y": 2.0}, ["x", "y"], level=0),
            ValueError,
            r"^level must lie strictly",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_results_are_frozen() -> None:
    found = blackwell_compare([0.5], [0.5])
    with pytest.raises(AttributeError):
        found.relation = "a"  # type: ignore[misc]
    assert isinstance(dominance_chain({"x": [0.5]}), DominanceChain)


def test_equality_within_a_tolerance_breaks_no_chain() -> None:
    """A > C, but B equals both within the tolerance: B must not bar C."""
    laws = {"A": [0.34, 0.66], "B": [0.41, 0.59], "C": [0.48, 0.52]}
    found = dominance_chain(laws, tolerance=0.04)
    assert found.chain == ("A", "C")
    assert found.pairs == (("A", "C"),)
    alone = dominance_chain({name: laws[name] for name in "AC"}, tolerance=0.04)
    assert alone.chain == found.chain


def test_names_of_any_kind_are_json() -> None:
    found = dominance_chain({np.int64(3): [0, 1], np.int64(4): [0.5, 0.5], ("x", 1): [0.25, 0.75]})
    assert json.loads(json.dumps(found.to_dict()))["chain"] == [3, "('x', 1)", 4]


def test_agreement_takes_what_it_says() -> None:
    ab = {"a": 1, "b": 2}
    assert ranking_agreement(ab, np.array(["a", "b"])).n_correct == 1
    for call, error, message in (
        (lambda: ranking_agreement(ab, ["a", "b"], lower_is_better="higher"), TypeError, "lower_is"),
        (lambda: ranking_agreement(ab, ["a", ["b"]]), TypeError, "order must hold names"),
        (lambda: ranking_agreement(ab | {"a": None}, ["a", "b"]), TypeError, r"values\['a'\] must be a"),
        (lambda: ranking_agreement(ab | {"a": 1e308}, ["a", "b"]), ValueError, r"values\['a'\] must be"),
        (lambda: blackwell_compare(["a"], [0.5]), TypeError, "scores_a must hold numbers; [^:]*$"),
    ):
        with pytest.raises(error, match=f"^{message}"):
            call()
