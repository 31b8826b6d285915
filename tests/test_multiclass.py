"""Several classes: the top label and every class against the rest, whatever the layout of the matrix."""

from __future__ import annotations

import json
import math
import pickle
import re
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from calcore import (
    CertificateSet,
    certify,
    certify_classwise,
    certify_difference,
    certify_groups,
    certify_top_label,
)
from calcore._classes import class_rows
from calcore.kernels import largest


def drawn(n: int, k: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels drawn from the probabilities: calibrated in every sense."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, 0.7), n)
    return (P.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=k - 1), P


def top_row_by_row(y: Any, P: Any) -> tuple[list[bool], list[float]]:
    """The choice and its probability, one row after the other; the first of equal ones."""
    correct, confidence = [], []
    for label, row in zip(y, P, strict=True):
        best = 0
        for j, p in enumerate(row):
            if p > row[best]:
                best = j
        correct.append(bool(best == label))
        confidence.append(row[best])
    return correct, confidence


def test_top_label_is_certify_of_the_choice() -> None:
    y, P = drawn(3000, 5)
    P[::7] = 0.2  # ties of all
    P[1::7] = [0.1, 0.35, 0.1, 0.35, 0.1]
    correct, confidence = top_row_by_row(y, P)
    ours = certify_top_label(y, P, delta=0.1, side="upper")
    assert ours.to_dict() == certify(correct, confidence, delta=0.1, side="upper").to_dict()
    assert ours.base_rate == np.mean(correct)


def test_classwise_is_certify_of_each_class_at_its_share() -> None:
    y, P = drawn(2000, 11)
    ours = certify_classwise(y, P, delta=0.1)
    assert list(ours) == list(range(11))
    for j in range(11):
        assert ours[j].to_dict() == certify(y == j, P[:, j], delta=0.1 / 11).to_dict()
    assert ours.delta == 0.1
    assert ours.confidence == 0.9
    assert ours.mean is not None
    assert ours.mean.lower == pytest.approx(np.mean([c.lower for c in ours.values()]), abs=1e-15)
    assert ours.mean.upper == pytest.approx(np.mean([c.upper for c in ours.values()]), abs=1e-15)
    assert ours.pooled is None


def test_all_classes_are_covered_together_where_bounds_are_tight() -> None:
    """Each class says one number: an atom, the tightest case, with errors at the detection limit."""
    k, n, runs, delta = 8, 600, 200, 0.2
    rng = np.random.default_rng(20250101)
    said = np.full(k, 1 / k)
    true = said + np.where(np.arange(k) % 2 == 0, 0.045, -0.045)
    off = np.abs(true - said)
    P = np.broadcast_to(said, (n, k))
    missed = one = 0
    for _ in range(runs):
        ours = certify_classwise(rng.choice(k, n, p=true / true.sum()), P, delta=delta, variation=math.inf)
        inside = [ours[j].lower <= off[j] <= ours[j].upper for j in range(k)]
        missed += not all(inside)
        assert ours.mean is not None
        one += not ours.mean.lower <= off.mean() <= ours.mean.upper
    assert missed <= delta * runs + 4 * math.sqrt(delta * (1 - delta) * runs)
    assert one <= missed


@pytest.mark.parametrize(
    "layout", ["C", "F", "strided", "rows backwards", "read-only", "float32", "pandas", "polars"]
)
def test_layouts_give_the_same_numbers(layout: str) -> None:
    y, P = drawn(700, 19)
    P = P.astype(np.float32).astype(np.float64)
    given: Any = {
        "C": lambda: P,
        "F": lambda: np.asfortranarray(P),
        "strided": lambda: np.repeat(np.repeat(P, 2, axis=0), 3, axis=1)[::2, ::3],
        "rows backwards": lambda: np.ascontiguousarray(P[::-1])[::-1],
        "read-only": lambda: P.copy(),
        "float32": lambda: P.astype(np.float32),
        "pandas": lambda: pd.DataFrame(P),
        "polars": lambda: pl.DataFrame(P),
    }[layout]()
    if layout == "read-only":
        given.flags.writeable = False
    assert certify_classwise(y, given).to_dict() == certify_classwise(y, P).to_dict()
    assert certify_top_label(y, given).to_dict() == certify_top_label(y, P).to_dict()


def test_a_wide_matrix_is_not_copied() -> None:
    y, P = drawn(20_000, 100)
    certify_classwise(y[:100], P[:100])
    tracemalloc.start()
    try:
        certify_classwise(y, P, side="lower")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < P.nbytes / 2


def test_tied_top_classes_are_the_first() -> None:
    """[.5, .5] is the choice of column 0, right half of the time: calibrated, not 'always right'."""
    confidence, correct = (part.tolist() for part in class_rows([0, 1], [[0.5, 0.5]] * 2).top())
    assert confidence == [0.5, 0.5]
    assert correct == [True, False]


def test_a_class_that_no_row_has_is_a_class() -> None:
    ours = certify_classwise([0, 0], [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]])
    assert list(ours) == [0, 1, 2]
    assert [ours[j].n_positive for j in ours] == [2, 0, 0]
    assert "all labels are 0" in ours[2].warnings[-1]


def test_rows_that_sum_to_one_only_nearly_keep_their_values() -> None:
    P = np.float32([[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]])
    confidence, correct = class_rows([2, 0], P).top()
    assert correct.all()
    assert np.mean(1.0 - confidence.astype(float)) == pytest.approx(0.483333334, abs=1e-6)
    assert confidence.tolist() == P.max(axis=1).tolist()


@pytest.mark.parametrize(
    ("dtype", "fits", "fails"), [("f8", 9e-7, 2e-6), ("f4", 9e-5, 2e-4), ("f2", 8e-3, 1.5e-2)]
)
def test_tolerance_of_the_sum_is_the_dtypes(dtype: str, fits: float, fails: float) -> None:
    class_rows([0], np.array([[0.5, 0.5 - fits]], dtype))
    with pytest.raises(ValueError, match=r"P must have rows that sum to 1; row 1 sums to 0\.9"):
        class_rows([0, 0], np.array([[0.5, 0.5], [0.5, 0.5 - fails]], dtype))


@pytest.mark.parametrize(
    ("y", "labels", "columns"),
    [
        (["cat", "dog"], ["dog", "cat"], [1, 0]),
        (np.array(["cat", "dog"], object), np.array(["dog", "cat"], object), [1, 0]),
        (pd.Series(["cat", "dog"]), pd.Index(["dog", "cat"]), [1, 0]),
        (pd.Series(["cat", "dog"], dtype="category"), ["dog", "cat"], [1, 0]),
        ([30, -5], [-5, 30], [1, 0]),
        ([1.5, 0.5], [0.5, 1.5], [1, 0]),
        ([2, 1], range(1, 3), [1, 0]),
        ([True, False], None, [1, 0]),
        ([1.0, 0.0], None, [1, 0]),
        (np.uint8([1, 0]), None, [1, 0]),
    ],
)
def test_names_of_classes(y: Any, labels: Any, columns: list[int]) -> None:
    rows = class_rows(y, [[0.5, 0.5], [0.25, 0.75]], labels)
    assert rows.codes.tolist() == columns
    assert list(certify_classwise(y, [[0.5, 0.5], [0.25, 0.75]], labels=labels)) == list(
        range(2) if labels is None else labels
    )


@pytest.mark.parametrize(
    ("y", "P", "labels", "error", "message"),
    [
        (
            [0, 1],
            [[0.5, 0.5]],
            None,
            ValueError,
            "y_true and P must have the same number of rows; got 2 and 1",
        ),
        ([], np.empty((0, 2)), None, ValueError, "at least one row"),
        ([0], [0.5], None, ValueError, "one column of scores is for"),
        ([0], [[1.0]], None, ValueError, "P must have at least two columns"),
        ([0], None, None, TypeError, "P must be a matrix"),
        ([0], [["a", "b"]], None, TypeError, "P must hold numbers"),
        ([0], [[0.5, 0.5], [1.0]], None, ValueError, "P must be a matrix"),
        ([0], np.ma.masked_array([[0.5, 0.5]], [[True, False]]), None, ValueError, "P must not have missing"),
        ([0, 0], [[0.5, 0.5], [math.nan, 1.0]], None, ValueError, "got nan at row 1, column 0: drop or fill"),
        (
            [0, 0],
            [[0.5, 0.5], [-3.0, 4.0]],
            None,
            ValueError,
            r"got -3\.0 at row 1, column 0 \(and 1 more\): .* logits",
        ),
        ([0], [[-3.0, -0.1]], None, ValueError, "log-probabilities"),
        ([0], [[40.0, 60.0]], None, ValueError, "percent"),
        ([0], [[0.7, 0.7]], None, ValueError, "row 0 sums to 1.4: pass probabilities of all classes"),
        (
            [0, 2, 5],
            [[0.5, 0.5]] * 3,
            None,
            ValueError,
            r"labels from 0 to 1.*got 2 at index 1 \(and 1 more\)",
        ),
        ([1, 2], [[0.5, 0.5]] * 2, None, ValueError, r"pass labels=range\(1, 3\)"),
        ([0.5], [[0.5, 0.5]], None, ValueError, "got 0.5 at index 0"),
        ([-1], [[0.5, 0.5]], None, ValueError, "got -1 at index 0"),
        ([math.nan], [[0.5, 0.5]], None, ValueError, "got nan at index 0"),
        (["a"], [[0.5, 0.5]], None, ValueError, "labels must be given if y_true holds text"),
        (
            ["c"],
            [[0.5, 0.5]],
            ["a", "b"],
            ValueError,
            r"labels of columns of P \('a', 'b'\); got 'c' at index 0",
        ),
        ([0], [[0.5, 0.5]], ["a"], ValueError, "got 1 labels for 2 columns"),
        ([0], [[0.5, 0.5]], [3, 3], ValueError, "labels must be different from each other; got 3"),
        ([None], [[0.5, 0.5]], None, ValueError, "y_true must not have missing values"),
        ([[0]], [[0.5, 0.5]], None, ValueError, "y_true must be one-dimensional"),
    ],
)
def test_faults_are_named(y: Any, P: Any, labels: Any, error: type[Exception], message: str) -> None:
    for function in (certify_top_label, certify_classwise):
        with pytest.raises(error, match=message):
            function(y, P, labels=labels)


def test_a_fault_in_a_late_row_is_found() -> None:
    y, P = drawn(90_000, 3)
    P[88_000, 1] = math.inf
    with pytest.raises(ValueError, match=re.escape("got inf at row 88000, column 1")):
        certify_classwise(y, P)


def test_groups_keep_the_same_rows_for_all_classes() -> None:
    y, P = drawn(900, 3)
    patients = np.repeat(np.arange(300), 3)
    for rng in (None, 7, np.random.default_rng(7)):
        ours = certify_classwise(y, P, groups=patients, rng=rng)
        assert {c.n for c in ours.values()} == {300}
        assert {c.n_dropped for c in ours.values()} == {600}
        assert sum(c.n_positive for c in ours.values()) == 300
    assert certify_top_label(y, P, groups=patients).n == 300


def test_every_method_takes_classes() -> None:
    y, P = drawn(400, 3)
    for method, assumption in (("tv", {}), ("nw", {"lipschitz": 2.0}), ("buckets", {"lipschitz": 2.0})):
        ours = certify_classwise(y, P, method=method, **assumption)
        assert {c.method for c in ours.values()} == {method}


def test_a_set_is_a_frozen_mapping_that_states_its_level() -> None:
    y, P = drawn(500, 6)
    ours = certify_classwise(y, P, delta=0.1)
    assert isinstance(ours, CertificateSet)
    assert len(ours) == 6
    assert 3 in ours
    assert 9 not in ours
    with pytest.raises(KeyError):
        ours[9]
    with pytest.raises(AttributeError):
        ours.delta = 0.2  # type: ignore[misc]
    with pytest.raises(TypeError):
        ours.certificates[0] = ours[1]  # type: ignore[index]
    text = repr(ours)
    assert "6 classes, all at once at 0.9; mean CE in [" in text
    assert "... 3 more" in text
    plain = json.loads(json.dumps(ours.to_dict()))
    assert [c["name"] for c in plain["certificates"]] == list(range(6))
    assert plain["certificates"][0]["delta"] == 0.1 / 6
    assert pickle.loads(pickle.dumps(ours)).to_dict() == ours.to_dict()


@pytest.mark.parametrize("delta", [0, 1, math.nan])
def test_delta_is_checked_as_a_whole(delta: float) -> None:
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        certify_classwise([0], [[0.5, 0.5]], delta=delta)


@pytest.mark.parametrize("name", ["pos_label", "y_prob", "foo"])
def test_options_of_other_functions_are_refused(name: str) -> None:
    """A `pos_label` that was passed on would turn "right" and "wrong" round."""
    y, s = [0, 1] * 20, [0.5] * 40
    calls = {
        "certify_top_label": lambda **o: certify_top_label(y, [[0.5, 0.5]] * 40, **o),
        "certify_classwise": lambda **o: certify_classwise(y, [[0.5, 0.5]] * 40, **o),
        "certify_difference": lambda **o: certify_difference(y, s, s, **o),
        "certify_groups": lambda **o: certify_groups(y, s, by=y, **o),
    }
    for function, call in calls.items():
        if name == "pos_label" and function in ("certify_difference", "certify_groups"):
            continue
        if name == "y_prob" and function == "certify_groups":
            continue
        with pytest.raises(TypeError, match=rf"^{function}\(\) got an unexpected keyword argument '{name}'"):
            call(**{name: 0})


# --- rows read once


@pytest.mark.kernels
def test_largest_entries_and_soundness() -> None:
    rng = np.random.default_rng(81)
    most = int(np.float64(1.0 + 1e-9).view(np.uint64))
    for k in (2, 3, 7, 8, 9, 16, 23, 100):
        P = rng.dirichlet(np.full(k, 0.3), 200)
        P[:50] = np.round(P[:50] * 4) / 4  # ties
        P[:50, 0] += 1.0 - P[:50].sum(axis=1)
        P[:50] = np.abs(P[:50]) / np.abs(P[:50]).sum(axis=1, keepdims=True)
        P.flags.writeable = False
        best = np.empty(200, np.int64)
        assert largest.scan(P, most, 1e-6, best)
        assert best.tolist() == [row.index(max(row)) for row in P.tolist()]
        for column in (0, k // 2, k - 1):
            for value in (np.nan, -1e-12, -0.0, 1.1, np.inf, -np.inf):
                bad = P.copy()
                bad[77, column] = value
                bad.flags.writeable = False
                assert not largest.scan(bad, most, np.inf, best), "found, whatever the sum"
            off = P.copy()
            off[199, column] += 1e-5
            off.flags.writeable = False
            assert not largest.scan(off, int(np.float64(2.0).view(np.uint64)), 1e-6, best)


def test_rows_of_any_layout_have_the_same_choices() -> None:
    rng = np.random.default_rng(82)
    P = np.round(rng.dirichlet(np.full(11, 0.5), 1000) * 64) / 64
    P[:, 0] += 1.0 - P.sum(axis=1)
    P = P[P.min(axis=1) >= 0.0]
    y = rng.integers(0, 11, len(P))
    expected = P.argmax(axis=1).tolist()
    padded = np.zeros((len(P), 22))
    padded[:, ::2] = P
    swapped, turned = P.astype(">f8"), P[::-1][::-1]
    for given in (P, np.asfortranarray(P), padded[:, ::2], turned, swapped, np.float32(P), P.tolist()):
        rows = class_rows(y, given)
        assert rows.best.tolist() == expected
        confidence, correct = rows.top()
        assert confidence.tolist() == P.max(axis=1).tolist()
        assert correct.tolist() == (P.argmax(axis=1) == y).tolist()
    shifted = P.copy()
    shifted[:, 1] -= 1e-10  # a rounding error below 0, here and there: read again, with the slower loop
    shifted[:, 2] += 1e-10
    assert class_rows(y, shifted).best.tolist() == shifted.argmax(axis=1).tolist()
    many = np.tile(P, (1_000_000 // P.size + 2, 1))
    assert class_rows(np.tile(y, len(many) // len(P)), many).best.tolist() == many.argmax(axis=1).tolist()
