"""Temperature scaling: against closed forms and a slow minimiser, at its bounds, and on input of any kind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logit, softmax

from calcore.recalibration import BOUNDS, TemperatureScaling
from calcore.scoring import log_loss

U = 2.0**-53


def approx(expected: Any, rel: float = 0.0, abs: float = 0.0) -> Any:
    """`pytest.approx` without an absolute tolerance that nobody asked for."""
    return pytest.approx(expected, rel=rel, abs=abs)


def fit(*args: Any, **options: Any) -> tuple[TemperatureScaling, list[str]]:
    """A fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaling = TemperatureScaling(**{k: options.pop(k) for k in ("input", "bounds") if k in options})
        scaling.fit(*args, **options)
    return scaling, [str(w.message) for w in caught]


def slow_nll(logits: Sequence[Sequence[float]], y: Sequence[int], temperature: float) -> float:
    losses = []
    for row, label in zip(logits, y, strict=True):
        top = max(row)
        norm = math.fsum(math.exp((z - top) / temperature) for z in row)
        losses.append(math.log(norm) - (row[label] - top) / temperature)
    return math.fsum(losses) / len(y)


def slow_temperature(logits: Sequence[Sequence[float]], y: Sequence[int]) -> float:
    """Golden section on log T: the loss has one minimum."""
    low, high = map(math.log, BOUNDS)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if slow_nll(logits, y, math.exp(a)) <= slow_nll(logits, y, math.exp(b)):
            high = b
        else:
            low = a
    return math.exp(0.5 * (low + high))


# Above 1, so that no row of them could be probabilities.
LOGITS = st.integers(2, 4).flatmap(
    lambda k: st.lists(
        st.tuples(
            st.lists(st.integers(2, 18).map(lambda z: z / 2), min_size=k, max_size=k), st.integers(0, k - 1)
        ),
        min_size=1,
        max_size=15,
    )
)


@given(LOGITS)
def test_no_temperature_does_better(rows: list[tuple[list[float], int]]) -> None:
    logits, y = [list(column) for column in zip(*rows, strict=True)]
    scaling, said = fit(logits, y)
    best = slow_temperature(logits, y)
    assert BOUNDS[0] <= scaling.temperature_ <= BOUNDS[1]
    assert bool(said) == (scaling.bound_ is not None or "no effect" in "".join(said))
    at = slow_nll(logits, y, scaling.temperature_)
    # the loss is flat at its minimum: values differ by rounding of terms of at most 8 / T + ln 4
    assert at <= slow_nll(logits, y, best) * (1.0 + 64 * U) + 64 * U
    assert scaling.nll_ == approx(at, rel=64 * U, abs=64 * U)
    assert scaling.nll_before_ == approx(slow_nll(logits, y, 1.0), rel=64 * U, abs=64 * U)
    assert scaling.nll_ <= scaling.nll_before_ * (1.0 + 64 * U) + 64 * U
    probabilities = scaling.predict_proba(logits)
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=8 * U)
    if log_loss(y, probabilities) < math.inf:
        # the loss is that of probabilities with errors of a few units, relative
        assert log_loss(y, probabilities) == approx(scaling.nll_, rel=1e-12, abs=64 * U)
    if scaling.bound_ is None and not said:
        slope = float(np.mean([row[label] - probabilities[i] @ row for i, (row, label) in enumerate(rows)]))
        assert abs(slope) <= 1e-11 * 8


@settings(max_examples=40)
@given(LOGITS, st.integers(-3, 3).map(lambda j: 2.0**j))
def test_temperature_scales_with_logits(rows: list[tuple[list[float], int]], factor: float) -> None:
    logits, y = [list(column) for column in zip(*rows, strict=True)]
    scaling, said = fit(logits, y)
    assume(not said)
    assume(BOUNDS[0] < scaling.temperature_ * factor < BOUNDS[1])
    other, _ = fit(np.multiply(logits, factor) + 3.0, y)
    assert other.temperature_ == approx(scaling.temperature_ * factor, rel=1e-9)


def test_closed_forms() -> None:
    scaling, said = fit([[1, 0]] * 4, [0, 0, 0, 1])
    assert scaling.temperature_ == approx(1.0 / math.log(3.0), rel=1e-11)
    assert not said
    assert scaling.nll_ == approx(-(3 * math.log(0.75) + math.log(0.25)) / 4, rel=8 * U)
    assert scaling.nll_before_ == approx(math.log1p(math.exp(-1)) + 0.25, rel=8 * U)
    assert scaling.bound_ is None
    scaling, _ = fit(np.log([[0.9, 0.1]] * 4), [0, 0, 0, 1])
    assert scaling.temperature_ == approx(2.0, rel=1e-11)
    scaling, _ = fit([[4, 0]] * 4, [0, 0, 0, 1])
    assert_allclose(scaling.predict_proba([[4, 0]] * 4)[:, 0], 0.75, rtol=1e-11)
    # a third class of probability 0 changes nothing
    scaling, _ = fit([[1, 0, -np.inf]] * 4, [0, 0, 0, 1])
    assert scaling.temperature_ == approx(1.0 / math.log(3.0), rel=1e-11)
    assert scaling.predict_proba([[1, 0, -np.inf]])[0, 2] == 0.0


def test_ends_on_bounds() -> None:
    scaling, said = fit([[2, 0], [0, 2]], [1, 0])
    assert scaling.temperature_ == BOUNDS[1] > 100
    assert scaling.bound_ == "upper"
    assert said[0].startswith("temperature_ is on the upper bound, 1000: ")
    assert scaling.nll_ == approx(math.log(2.0), abs=2.0 / BOUNDS[1])
    assert log_loss([1, 0], softmax(np.array([[2, 0], [0, 2]]) / 1e9, axis=1)) == approx(
        math.log(2), abs=2e-9
    )
    scaling, said = fit([[5, 0], [0, 5]], [0, 1])
    assert scaling.temperature_ == BOUNDS[0]
    assert scaling.bound_ == "lower"
    assert said[0].startswith("temperature_ is on the lower bound, 0.001: ")
    scaling, said = fit([[5000, 0], [0, 5000]], [0, 1])  # no slope that a double could hold
    assert (scaling.temperature_, len(said)) == (BOUNDS[0], 1)
    scaling, _ = fit([[1, 0]] * 4, [0, 0, 0, 1], bounds=(1.0, 8.0))
    assert (scaling.temperature_, scaling.bound_) == (1.0, "lower")
    scaling, said = fit([[1, 1], [7, 7]], [0, 1])
    assert (scaling.temperature_, scaling.bound_) == (1.0, None)
    assert said == ["temperature_ has no effect: all logits of every row are equal"]
    with pytest.warns(UserWarning, match=r"^temperature_ is on the lower bound") as record:
        TemperatureScaling().fit([[5, 0]], [0])
    assert record[0].filename == __file__


def test_probabilities() -> None:
    P = np.array([[0.9, 0.1]] * 4)
    with pytest.raises(ValueError, match=r"^logits must not be probabilities; .* np\.log of them"):
        TemperatureScaling().fit(P, [0, 0, 0, 1])
    scaling, _ = fit(P, [0, 0, 0, 1], input="probabilities")
    assert scaling.temperature_ == approx(2.0, rel=1e-11)
    assert_allclose(scaling.predict_proba(P), [[0.75, 0.25]] * 4, rtol=1e-11)
    assert_allclose(scaling.transform(P), np.log(P) / 2, rtol=1e-11)
    column, _ = fit(P[:, 1], [0, 0, 0, 1], input="probabilities")
    assert column.temperature_ == approx(2.0, rel=1e-11)
    assert_allclose(column.predict_proba(P[:, 1]), 0.25, rtol=1e-11)
    assert_allclose(column.transform([0.5, 0.9]), logit([0.5, 0.9]) / 2, rtol=1e-11, atol=1e-16)
    certain, _ = fit([0.0, 0.9, 0.9, 0.9, 0.9, 1.0], [0, 1, 1, 1, 0, 1], input="probabilities")
    assert certain.temperature_ == approx(2.0, rel=1e-11)
    assert certain.predict_proba([0.0, 1.0]).tolist() == [0.0, 1.0]
    _, said = fit([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0])
    assert said == ["logits all lie in [0, 1]; if they are probabilities, pass input='probabilities'"]
    scaling, said = fit([1, 1, 1, 1], [1, 1, 1, 0])
    assert not said


def test_one_column_is_two_columns() -> None:
    rng = np.random.default_rng(41)
    z = 3.0 * rng.normal(size=500)
    y = rng.random(500) < 1.0 / (1.0 + np.exp(-z / 1.7))
    one, _ = fit(z, y)
    two, _ = fit(np.column_stack([np.zeros(500), z]), y.astype(int))
    text, _ = fit(z[:, None], np.where(y, "yes", "no"), pos_label="yes")
    assert one.temperature_ == approx(two.temperature_, rel=1e-10)
    assert text.temperature_ == one.temperature_
    assert text.classes_ == ("no", "yes")
    assert_allclose(one.predict_proba(z), two.predict_proba(np.column_stack([0 * z, z]))[:, 1], rtol=1e-9)
    assert_allclose(one.transform(z), z / one.temperature_, rtol=8 * U)
    # the estimate is within 5 standard errors of 1.7: the information on 1/T is sum p (1 - p) z^2
    p = one.predict_proba(z)
    error = one.temperature_**2 / math.sqrt(float((p * (1.0 - p) * z**2).sum()))
    assert abs(one.temperature_ - 1.7) < 5.0 * error


def test_large_and_small_numbers() -> None:
    big, said = fit([[1e300, -1e300], [-1e300, 1e300]], [0, 0])
    assert (big.temperature_, big.bound_, len(said)) == (BOUNDS[1], "upper", 1)
    assert np.isfinite(big.nll_)
    assert big.predict_proba([[1e300, -1e300]]).tolist() == [[1.0, 0.0]]
    small = big.predict_proba(np.array([[60000, -60000]], np.float16))
    assert small[0, 1] == approx(math.exp(-120.0), rel=1e-12)
    tiny, _ = fit(np.array([[1e-2, 0]] * 4), [0, 0, 0, 1])
    assert tiny.temperature_ == approx(1e-2 / math.log(3.0), rel=1e-11)
    many, _ = fit([[1e300, 0]] * 1000 + [[1, 0]] * 4, [0] * 1003 + [1])
    assert many.temperature_ == approx(1.0 / math.log(3.0), rel=1e-9)


def test_weights_are_repeated_rows() -> None:
    logits = np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 0.5], [1.0, 1.5, 0.0], [-np.inf, 0.0, 1.0]])
    y, w = [0, 1, 0, 0], [2, 3, 1, 0]
    weighted, _ = fit(logits, y, sample_weight=w)
    kept = np.repeat(np.arange(4), w)
    repeated, _ = fit(logits[kept], np.array(y)[kept])
    assert weighted.temperature_ == approx(repeated.temperature_, rel=1e-10)
    assert weighted.nll_ == approx(repeated.nll_, rel=1e-12)
    huge, _ = fit(logits, y, sample_weight=np.array(w) * 2.0**1000)
    assert huge.temperature_ == weighted.temperature_


def test_input_of_any_kind() -> None:
    logits = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.5], [1.0, 1.5, 0.0], [3.0, 0.0, 1.0]])
    y = [0, 1, 0, 2]
    frozen = logits.copy()
    frozen.flags.writeable = False
    expected, _ = fit(logits, y)
    for kind in (
        logits.tolist(),
        frozen,
        np.asfortranarray(logits),
        logits.astype(np.float32),
        logits.astype(np.float16),
        logits.astype(">f8"),
        np.repeat(logits, 2, axis=0)[::2],
        pd.DataFrame(logits),
    ):
        assert fit(kind, y)[0].temperature_ == approx(expected.temperature_, rel=1e-12)
        assert_allclose(expected.predict_proba(kind), expected.predict_proba(logits), rtol=8 * U)
    named, _ = fit(frozen, ["a", "b", "a", "c"], labels=["a", "b", "c"])
    assert named.temperature_ == expected.temperature_
    assert named.classes_ == ("a", "b", "c")
    assert np.array_equal(frozen, logits)
    order = [2, 0, 3, 1]
    shuffled, _ = fit(logits[order], np.array(y)[order])
    assert shuffled.temperature_ == approx(expected.temperature_, rel=1e-10)
    assert repr(expected).startswith("<TemperatureScaling: temperature_=")
    assert repr(TemperatureScaling()) == "<TemperatureScaling: not fitted>"


def test_blocks() -> None:
    """More rows than a block holds: the same as those of one block."""
    logits, y = np.tile([[1.0, 0.0]], (80_000, 1)), np.tile([0, 0, 0, 1], 20_000)
    scaling, _ = fit(logits, y)
    assert scaling.temperature_ == approx(1.0 / math.log(3.0), rel=1e-11)
    assert_allclose(scaling.predict_proba(logits)[:, 0], 0.75, rtol=1e-11)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda f: f([[1, 0], [np.nan, 1]], [0, 1]),
            ValueError,
            r"^logits must be .*got nan at row 1, column 0$",
        ),
        (
            lambda f: f([[1, 0], [np.inf, 1]], [0, 1]),
            ValueError,
            r"^logits must be .*got inf at row 1, column 0$",
        ),
        (
            lambda f: f([1.0, -np.inf], [0, 1]),
            ValueError,
            r"^logits must be numbers .*; got -inf at index 1$",
        ),
        (lambda f: f([[1, 0], [2e300, 1]], [0, 1]), ValueError, r"^logits .* at most 1e300"),
        (lambda f: f([[1, 0], [-np.inf] * 2], [0, 1]), ValueError, r"^logits must leave .* at row 1$"),
        (
            lambda f: f([[1, 0], [0, -np.inf]], [0, 1]),
            ValueError,
            r"^logits must give every label .*; got -inf for label 1 at row 1$",
        ),
        (lambda f: f([[1, 0]], [0, 1]), ValueError, r"^y_true and logits must have the same number of rows"),
        (
            lambda f: f([1, 2, 3], [0, 1]),
            ValueError,
            r"^y_true and logits must have the same length; got 2 and 3",
        ),
        (
            lambda f: f([[1, 0]], [2]),
            ValueError,
            r"^y_true must hold labels from 0 to 1, the columns of logits",
        ),
        (lambda f: f([[1, 0]], [0], pos_label=0), TypeError, r"^pos_label must be left out"),
        (lambda f: f([2.0], [0], labels=[0, 1]), TypeError, r"^labels must be left out"),
        (lambda f: f([[1, 0]], [0], sample_weight=[0]), ValueError, r"^sample_weight must not be all zero"),
        (lambda f: f([], []), ValueError, r"^logits must have at least one value; got 0"),
        (lambda f: f(np.zeros((0, 2)), []), ValueError, r"^logits must have at least one row; got 0"),
        (lambda f: f([["a", "b"]], [0]), TypeError, r"^logits must hold numbers"),
        (lambda f: TemperatureScaling(bounds=(2, 1)), ValueError, r"^bounds must ascend"),
        (lambda f: TemperatureScaling(bounds=3), ValueError, r"^bounds must be two numbers"),  # type: ignore[arg-type]
        (lambda f: TemperatureScaling(input="x"), ValueError, r"^input must be one of"),  # type: ignore[arg-type]
        (lambda f: TemperatureScaling().transform([1.0]), RuntimeError, r"^transform needs a temperature"),
        (
            lambda f: TemperatureScaling(input="probabilities").fit([[0.5, 0.6]], [0]),
            ValueError,
            r"^logits must have rows that sum to 1; row 0",
        ),
        (
            lambda f: TemperatureScaling(input="probabilities").fit([[0.5, 0.5], [1.0, 0.0]], [0, 1]),
            ValueError,
            r"^logits must give every label .*; got probability 0 for label 1 at row 1$",
        ),
    ],
)
def test_refusals(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(TemperatureScaling().fit)
