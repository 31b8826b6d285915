"""The gate for user input: what passes, what it becomes, and the exact words for what does not."""

from __future__ import annotations

import array
import decimal
import math
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calcore
from calcore._validate import (
    binary,
    choice,
    generator,
    group_rows,
    nonnegative_number,
    positive_number,
    probability,
    weights,
    whole_number,
)

NAN = float("nan")
Y = [0, 1, 1]
P = [0.2, 0.7, 0.9]


def refusal(call, *args, error=ValueError, **kwargs):
    """The words in which a call is refused."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def read(y_true, y_prob, *, pos_label=None, size=2):
    """All rows through blocks of `size` rows, as a caller reads them."""
    rows = binary(y_true, y_prob, pos_label=pos_label)
    blocks = [rows.block(start, start + size) for start in range(0, len(rows), size)]
    labels, scores, clipped = zip(*blocks, strict=True)
    return np.concatenate(labels).tolist(), np.concatenate(scores).tolist(), sum(clipped)


# ------------------------------------------------------------------------------------------ what passes


@pytest.mark.parametrize(
    ("labels", "pos_label", "expected"),
    [
        # 0/1 keep their meaning whatever their type, and also when one class is missing
        ([0, 1, 1], None, [0, 1, 1]),
        ([1, 1, 1], None, [1, 1, 1]),
        ([0, 0, 0], None, [0, 0, 0]),
        ([0.0, 1.0, -0.0], None, [0, 1, 0]),
        ([False, True, True], None, [0, 1, 1]),
        ([True, 1, 0.0], None, [1, 1, 0]),
        # -1/+1 as in scikit-learn
        ([-1, 1, 1], None, [0, 1, 1]),
        ([-1.0, 1.0, -1.0], None, [0, 1, 0]),
        ([-1, -1, -1], None, [0, 0, 0]),
        # any pair with pos_label
        ([1, 2, 2], 2, [0, 1, 1]),
        ([1, 2, 2], 1, [1, 0, 0]),
        ([0, 1, 1], 0, [1, 0, 0]),
        ([0, 1, 1], True, [0, 1, 1]),
        ([False, True, True], False, [1, 0, 0]),
        ([False, True, True], 1, [0, 1, 1]),
        ([-1, 1, -1], -1, [1, 0, 1]),
        ([0.5, 7.25, 0.5], 7.25, [0, 1, 0]),
        ([3, 3, 3], 3, [1, 1, 1]),
        ([3, 3, 3], 4, [0, 0, 0]),
        ([3, 4, 4], np.int8(4), [0, 1, 1]),
        ([3, 4, 4], np.array(4), [0, 1, 1]),
        ([0, 1, 1], np.bool_(True), [0, 1, 1]),
        ([0, 1, 1], np.longdouble(1), [0, 1, 1]),
        (["pos", "neg", "neg"], "neg", [0, 1, 1]),
        (["pos", "neg", "neg"], np.str_("pos"), [1, 0, 0]),
        (["a", "a", "a"], "a", [1, 1, 1]),
        (["a", "a", "a"], "b", [0, 0, 0]),
        (["", "a", ""], "", [1, 0, 1]),
        ([b"a", b"b", b"b"], b"b", [0, 1, 1]),
        # Python objects of one kind
        (np.array([True, False, True], object), None, [1, 0, 1]),
        (np.array([True, np.False_, np.True_], object), None, [1, 0, 1]),
        (np.array([1, 0, np.int8(1)], object), None, [1, 0, 1]),
        (np.array([5, 6, 6], object), 5, [1, 0, 0]),
        (np.array(["a", "bb", "bb"], object), "bb", [0, 1, 1]),
        (np.array([b"a", b"bb", b"bb"], object), b"bb", [0, 1, 1]),
        (np.array(["a", "bb", "bb"], np.dtypes.StringDType()), "bb", [0, 1, 1]),
    ],
)
def test_labels_become_0_and_1(labels, pos_label, expected):
    assert read(labels, P, pos_label=pos_label)[0] == expected


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g"]
)
@pytest.mark.parametrize("order", ["=", ">", "<"])
def test_labels_of_every_numeric_type(dtype, order):
    labels = np.array([0, 1, 1, 0, 1]).astype(np.dtype(dtype).newbyteorder(order))
    assert read(labels, [0.5] * 5)[0] == [0, 1, 1, 0, 1]
    assert read(labels, [0.5] * 5, pos_label=0)[0] == [1, 0, 0, 1, 0]
    if np.dtype(dtype).kind in "if":
        assert read(labels * 2 - 1, [0.5] * 5)[0] == [0, 1, 1, 0, 1]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g"])
@pytest.mark.parametrize("order", ["=", ">", "<"])
def test_scores_are_the_nearest_doubles_of_every_float_type(dtype, order):
    scores = np.array([0.0, 0.1, 0.7, 1.0]).astype(np.dtype(dtype).newbyteorder(order))
    assert read([0, 1, 0, 1], scores) == ([0, 1, 0, 1], scores.astype(np.float64).tolist(), 0)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "u8", ">i4"])
def test_whole_scores_are_0_and_1(dtype):
    assert read(Y, np.array([0, 1, 0], dtype))[1] == [0.0, 1.0, 0.0]


def test_minus_zero_becomes_zero_and_is_not_counted_as_clipped():
    _, scores, clipped = binary([0, 1], [-0.0, 0.5]).block(0, 2)
    assert not np.signbit(scores).any()
    assert clipped == 0


def test_subnormal_scores_are_kept():
    tiny = [0.0, 5e-324, 2e-318, 1.0]
    assert read([0, 1, 0, 1], tiny)[1] == tiny


SLACK = [  # the last number inside and the first outside, below 0 and above 1
    (np.float64, -1e-9, -1.0000000000000003e-9, 1 + 1e-9, 1 + 1e-9 + 2**-52),
    (np.longdouble, -1e-9, -1.0000000000000003e-9, 1 + 1e-9, 1 + 1e-9 + 2**-52),
    (np.float32, np.float32(-1e-6), np.float32(-1.0000001e-6), 1 + 8 * 2**-23, 1 + 9 * 2**-23),
    (np.float16, np.float16(-0.002), np.float16(-0.002002), 1 + 2 * 2**-10, 1 + 3 * 2**-10),
]


@pytest.mark.parametrize(("dtype", "low", "too_low", "high", "too_high"), SLACK)
def test_rounding_errors_are_clipped_and_counted(dtype, low, too_low, high, too_high):
    assert read([0, 1, 1, 0], np.array([low, high, 0.5, 1.0], dtype)) == (
        [0, 1, 1, 0],
        [0.0, 1.0, 0.5, 1.0],
        2,
    )
    for outside in (too_low, too_high):
        with pytest.raises(ValueError, match=r"^y_prob must lie in \[0, 1\]; got .* at index 1$"):
            read(Y, np.array([low, outside, high], dtype))


def test_the_literal_slack_passes():
    assert read(Y, [1.000000001, -1e-9, 0.5]) == (Y, [1.0, 0.0, 0.5], 2)


def test_the_neighbours_of_zero_and_one_are_clipped():
    for score, clipped in ((1 + 2**-52, 1.0), (-5e-324, 0.0)):
        assert read(Y, [score, 0.5, 1 - 2**-53]) == (Y, [clipped, 0.5, 1 - 2**-53], 1)


# ------------------------------------------------------------------------------------- memory and hosts


def same_memory(rows, labels, scores):
    got_labels, got_scores, _ = rows.block(0, len(rows))
    return np.shares_memory(got_labels, labels), np.shares_memory(got_scores, scores)


@pytest.mark.parametrize("dtype", ["?", "u1", "i1"])
def test_plain_arrays_are_lent_not_copied(dtype):
    labels, scores = np.array(Y, dtype), np.array(P)
    assert same_memory(binary(labels, scores), labels, scores) == (True, True)


def test_host_columns_are_lent_not_copied():
    scores = np.array(P)
    labels = np.array(Y, np.uint8)
    for host in (pd.Series, pl.Series, pa.array):
        lent_labels, lent_scores = host(labels), host(scores)
        rows = binary(lent_labels, lent_scores)
        assert same_memory(rows, np.asarray(lent_labels), np.asarray(lent_scores)) == (True, True), host
    nullable = pd.Series(scores, dtype="Float64")
    assert np.shares_memory(binary(labels, nullable).scores, nullable.to_numpy())


def layouts(values, dtype):
    """The same numbers in every memory layout."""
    plain = np.array(values, dtype)
    yield "plain", plain
    frozen = plain.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    yield "every third", np.repeat(plain, 3)[::3]
    yield "backwards", plain[::-1].copy()[::-1]
    yield "column of a table", np.stack([plain, plain], axis=1)[:, 1]
    yield "foreign byte order", plain.astype(plain.dtype.newbyteorder())
    record = np.zeros(len(plain), [("pad", "u1"), ("value", dtype)])
    record["value"] = plain
    yield "unaligned field", record["value"]
    shifted = np.frombuffer(b"?" + plain.tobytes(), plain.dtype, offset=1)
    yield "contiguous but unaligned", shifted
    yield "broadcast", np.broadcast_to(plain, (4, len(plain)))[2]
    yield "list", plain.tolist()
    yield "tuple", tuple(plain.tolist())
    if np.dtype(dtype).kind != "b" and np.dtype(dtype).char not in "e":
        yield "array.array", array.array(np.dtype(dtype).char, plain.tolist())
        yield "memoryview", memoryview(plain)
    yield "pandas", pd.Series(plain, index=np.arange(len(plain))[::-1])
    yield "pandas index", pd.Index(plain)
    yield "polars", pl.Series(plain)
    yield "pyarrow", pa.array(plain)
    yield "pyarrow chunks", pa.chunked_array([pa.array(plain[:2]), pa.array(plain[2:])])
    yield "masked, none missing", np.ma.array(plain, mask=np.zeros(len(plain)))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_every_layout_of_scores_gives_one_kind_of_block(dtype):
    expected = np.array(P, dtype).astype(float).tolist()
    for name, scores in layouts(P, dtype):
        if name in ("list", "tuple", "array.array", "memoryview") and dtype == "f4":
            continue
        assert_normal_block(name, binary(Y, scores), Y, expected)


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "f8"])
def test_every_layout_of_labels_gives_one_kind_of_block(dtype):
    for name, labels in layouts(Y, dtype):
        assert_normal_block(name, binary(labels, P), Y, P)


def assert_normal_block(name, rows, labels, scores):
    got_labels, got_scores, clipped = rows.block(0, len(rows))
    assert got_labels.tolist() == labels, name
    assert got_scores.tolist() == scores, name
    assert clipped == 0, name
    for block, dtype in ((got_labels, np.uint8), (got_scores, np.float64)):
        assert type(block) is np.ndarray, name
        assert block.dtype == dtype, name
        assert block.dtype.isnative, name
        assert block.flags.c_contiguous, name
        assert block.flags.aligned, name
        assert not block.flags.writeable, name


def test_input_is_not_changed_and_stays_writeable():
    labels, scores = np.array(Y, np.uint8), np.array([1 + 1e-12, -0.0, 0.5])
    before = labels.tobytes(), scores.tobytes()
    read(labels, scores)
    assert (labels.tobytes(), scores.tobytes()) == before
    assert labels.flags.writeable
    assert scores.flags.writeable


def test_memory_mapped_files(tmp_path):
    np.save(tmp_path / "scores.npy", np.array(P))
    scores = np.load(tmp_path / "scores.npy", mmap_mode="r")
    rows = binary(Y, scores)
    assert_normal_block("memmap", rows, Y, P)
    assert np.shares_memory(rows.block(0, 3)[1], scores)


HOST_LABELS = [
    pd.Series(Y, dtype="Int64"),
    pd.Series(Y, dtype="Int8"),
    pd.Series([False, True, True], dtype="boolean"),
    pd.Series(Y, dtype="int64[pyarrow]"),
    pd.Series([False, True, True], dtype="bool[pyarrow]"),
    pd.Series(Y, dtype="category"),
    pd.Series(Y, dtype=object),
    pd.Series([False, True, True], dtype=object),
    pl.Series([False, True, True]),
    pl.Series(Y, dtype=pl.Int8),
    pa.array([False, True, True]),
    pa.chunked_array([pa.array([False]), pa.array([True, True])]),
]


@pytest.mark.parametrize(
    "labels", HOST_LABELS, ids=lambda c: f"{type(c).__module__}:{getattr(c, 'dtype', '')}"
)
def test_labels_of_data_frame_columns(labels):
    assert read(labels, P)[0] == Y


HOST_TEXT = [
    pd.Series(["no", "yes", "yes"]),
    pd.Series(["no", "yes", "yes"], dtype=object),
    pd.Series(["no", "yes", "yes"], dtype="string"),
    pd.Series(["no", "yes", "yes"], dtype="string[pyarrow]"),
    pd.Series(["no", "yes", "yes"], dtype="category"),
    pl.Series(["no", "yes", "yes"]),
    pl.Series(["no", "yes", "yes"], dtype=pl.Categorical),
    pl.Series(["no", "yes", "yes"], dtype=pl.Enum(["no", "yes"])),
    pa.array(["no", "yes", "yes"]),
    pa.array(["no", "yes", "yes"], pa.large_string()),
    pa.array(["no", "yes", "yes"]).dictionary_encode(),
    pa.chunked_array([["no"], ["yes", "yes"]]),
]


@pytest.mark.parametrize("labels", HOST_TEXT, ids=lambda c: f"{type(c).__module__}:{getattr(c, 'dtype', '')}")
def test_text_of_data_frame_columns(labels):
    assert read(labels, P, pos_label="yes")[0] == Y


@pytest.mark.parametrize(
    "scores",
    [
        pd.Series(P, dtype="Float64"),
        pd.Series(P, dtype="double[pyarrow]"),
        pd.Series(P, dtype=pd.SparseDtype(float)),
        pl.Series(P),
        pl.concat([pl.Series(P[:1]), pl.Series(P[1:])], rechunk=False),
        pa.array(P),
    ],
    ids=lambda c: f"{type(c).__module__}:{getattr(c, 'dtype', '')}",
)
def test_scores_of_data_frame_columns(scores):
    assert read(Y, scores)[1] == P


MISSING = [
    (np.array([1, None, 0, None], object), 2, 1),
    ([1, None, 0, 1], 1, 1),
    (["a", "b", None, "a"], 1, 2),
    (np.array(["a", NAN, "b", "a"], object), 1, 1),
    (np.array([0.0, np.float32("nan"), 1, 1], object), 1, 1),
    (np.array([datetime(2020, 1, 1), np.datetime64("NaT", "s"), 1, 1], object), 1, 1),
    (np.array(["a", "b", NAN, "a"], np.dtypes.StringDType(na_object=NAN)), 1, 2),
    (np.ma.array([0, 1, 1, 0], mask=[0, 0, 1, 1]), 2, 2),
    (pd.Series([0, 1, pd.NA, pd.NA], dtype="Int64"), 2, 2),
    (pd.Series([0.5, pd.NA, 1, pd.NA], dtype="Float64"), 2, 1),
    (pd.Series([True, pd.NA, False, True], dtype="boolean"), 1, 1),
    (pd.Series([0, 1, None, 0], dtype="int64[pyarrow]"), 1, 2),
    (pd.Series(["a", "b", None, "a"], dtype="category"), 1, 2),
    (pd.Series(["a", "b", None, "a"]), 1, 2),
    (pd.Series([0, 1, pd.NA, 0], dtype=object), 1, 2),
    (pd.Series([0, 1, pd.NaT, 0], dtype=object), 1, 2),
    (pl.Series([0, 1, None, 0]), 1, 2),
    (pl.Series(["a", "b", None, "a"]), 1, 2),
    (pl.Series([0.5, None, None, 0.5]), 2, 1),
    (pa.array([0, 1, None, 0]), 1, 2),
    (pa.array([True, None, False, None]), 2, 1),
    (pa.array(["a", None, "b", "a"]).dictionary_encode(), 1, 1),
    (pa.chunked_array([[0.5, 0.25], [0.1, None]]), 1, 3),
]


@pytest.mark.parametrize(("column", "count", "first"), MISSING)
def test_missing_values_are_counted_and_placed(column, count, first):
    message = f"must not have missing values; got {count} missing, the first at index {first}: {DROP}"
    for name, call in (
        ("y_true", lambda: binary(column, [0.5] * 4, pos_label="a")),
        ("y_prob", lambda: binary([0, 1, 0, 1], column)),
        ("groups", lambda: group_rows(column, 4, 0)),
    ):
        assert (
            refusal(
                call,
            )
            == f"{name} {message}"
        )


class Tensor:
    """What matters here of a CPU tensor of torch, which is not a dependency of these tests."""

    def __init__(self, values, requires_grad=False):
        self.values = np.asarray(values)
        self.shape = self.values.shape
        self.requires_grad = requires_grad

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return np.asarray(self.values, dtype)


class DeviceTensor:
    shape = (3,)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")


def test_tensors():
    assert read(Tensor(Y), Tensor(np.float32(P))) == (Y, np.float32(P).astype(float).tolist(), 0)
    with pytest.raises(
        ValueError, match=r"^y_prob must be a tensor without gradient; pass y_prob\.detach\(\)$"
    ):
        binary(Y, Tensor(P, requires_grad=True))
    with pytest.raises(
        ValueError, match=r"^y_prob must be a one-dimensional column; can't convert cuda:0 .*cpu\(\)"
    ):
        binary(Y, DeviceTensor())


def test_no_host_library_is_imported():
    code = (
        "import sys; from calcore._validate import binary; binary([0, 1], [.1, .2]).block(0, 2);"
        "print(sorted({'pandas', 'polars', 'pyarrow', 'torch', 'numba', 'scipy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


# ------------------------------------------------------------------------------------------ what does not

DROP = "drop or fill these rows"
GIVE = "pos_label must be given if y_true holds text; got None and labels "
SHAPE_OF_Y = "y_true must be one-dimensional; got shape "
SHAPE_OF_P = "y_prob must be one-dimensional; got shape "
PAIR = "y_true must hold labels 0/1 or -1/+1; got "
UNIT = "y_prob must lie in [0, 1]; got "
SEVERAL = ": with several classes, take one at a time, y_true == c with the scores of class c"
SWAPPED = ": are the arguments swapped? The order is (y_true, y_prob)"
LOGITS = ": these look like logits; pass the sigmoid of them, 1 / (1 + np.exp(-y_prob))"
CONVERT = ": convert it, e.g. with .astype(float)"

REFUSED = [
    # labels outside the pair
    ([1, 2, 2], P, None, PAIR + "2 at index 1 (and 1 more): pass pos_label=2 if 2 is the positive class"),
    ([0, 1, 2], P, None, PAIR + "2 at index 2" + SEVERAL),
    ([7, 7, 7], P, None, PAIR + "7 at index 0 (and 2 more)"),
    ([-1, 0, 1], P, None, PAIR + "0 at index 1: -1 and 0 cannot both mean negative"),
    ([0, -1, -1], P, None, PAIR + "-1 at index 1 (and 1 more): -1 and 0 cannot both mean negative"),
    ([5, -1, 1], P, None, PAIR + "5 at index 0" + SEVERAL),
    (np.array([0, 1, 255], np.uint8), P, None, PAIR + "255 at index 2" + SEVERAL),
    (np.array([0, 1, -128], np.int8), P, None, PAIR + "-128 at index 2" + SEVERAL),
    (np.array([0, 1, 2**63], np.uint64), P, None, PAIR + "9223372036854775808 at index 2" + SEVERAL),
    ([0, 1, 1.0000001], P, None, PAIR + "1.0000001 at index 2"),
    (np.float32([0, 1, 0.1]), P, None, PAIR + "0.1 at index 2"),
    ([0, 1, math.inf], P, None, PAIR + "inf at index 2" + SEVERAL),
    ([0, NAN, NAN], P, None, "y_true must hold one label per row; got nan at index 1 (and 1 more)"
     ": drop or fill the rows without a label"),
    ([NAN, 0, 2], P, None, "y_true must hold one label per row; got nan at index 0 (and 1 more)"
     ": drop or fill the rows without a label"),
    ([0, 1, NAN], P, 1, "y_true must hold one label per row; got nan at index 2"
     ": drop or fill the rows without a label"),
    ([NAN, 0, 1], P, 1, "y_true must hold one label per row; got nan at index 0"
     ": drop or fill the rows without a label"),
    # which label is positive
    ([b"n", b"p", b"p"], P, None, GIVE + "b'n', b'p'"),
    ([0, 0, 0], P, NAN, "pos_label must be one of the labels of y_true (0); got nan"),
    (["neg", "pos", "pos"], P, None, GIVE + "'neg', 'pos'"),
    (["a", "b", "c"], P, None, GIVE + "'a', 'b', 'c'"),
    (["a", "b", "c"], P, "a",
     "y_true must hold two different labels; got 'c' at index 2 beside 'a' and 'b'" + SEVERAL),
    (["a", "b", "b"], P, "c", "pos_label must be one of the labels of y_true ('a', 'b'); got 'c'"),
    (["0", "1", "1"], P, 1, "pos_label must be one of the labels of y_true ('0', '1'); got 1"),
    ([0, 1, 1], P, "1", "pos_label must be one of the labels of y_true (0, 1); got '1'"),
    ([0, 1, 1], P, NAN, "pos_label must be one of the labels of y_true (0, 1); got nan"),
    ([0, 1, 1], P, 2, "pos_label must be one of the labels of y_true (0, 1); got 2"),
    ([0, 1, 2], P, 2, "y_true must hold two different labels; got 1 at index 1 beside 2 and 0" + SEVERAL),
    ([b"a", b"b", b"b"], P, "a", "pos_label must be one of the labels of y_true (b'a', b'b'); got 'a'"),
    # objects
    (np.array([1, "a", 0], object), P, None,
     "y_true must hold values of one kind; got 1 (int) at index 0 and 'a' (text) at index 1"),
    (np.array([True, True, 0], object), P, None,
     "y_true must hold values of one kind; got True (bool) at index 0 and 0 (int) at index 2"),
    (["a", 1, "b"], P, "a",
     "y_true must hold values of one kind; got 'a' (text) at index 0 and 1 (int) at index 1"),
    (["a", b"a", "b"], P, "a",
     "y_true must hold values of one kind; got 'a' (text) at index 0 and b'a' (bytes) at index 1"),
    ([2**70, 0, 1], P, None, "y_true must hold labels; got an integer beyond 64 bits"),
    # swapped
    (P, Y, None, PAIR + "0.2 at index 0 (and 2 more)" + SWAPPED),
    ([0.0, 0.5, 1.0], [-1, 1, 1], None, PAIR + "0.5 at index 1" + SWAPPED),
    ([0.1, 0.5, 0.5], [2, 2, 2], 2,
     "pos_label must be one of the labels of y_true (0.1, 0.5); got 2" + SWAPPED),
    (P, [0.5, 1, 1], None, PAIR + "0.2 at index 0 (and 2 more)"),
    # scores
    (Y, [0.2, NAN, 0.8], None, UNIT + "nan at index 1: drop or fill the rows without a score"),
    (Y, [NAN, NAN, NAN], None, UNIT + "nan at index 0 (and 2 more): drop or fill the rows without a score"),
    (Y, [0.2, math.inf, 0.8], None, UNIT + "inf at index 1"),
    (Y, [0.2, -math.inf, NAN], None, UNIT + "-inf at index 1 (and 1 more)"),
    (Y, [0.2, 1.5, 0.3], None, UNIT + "1.5 at index 1"),
    (Y, np.float32([0.2, 1.2, 1.2]), None, UNIT + "1.2 at index 1 (and 1 more)"),
    (Y, [0.2, -0.5, 0.3], None, UNIT + "-0.5 at index 1"),
    (Y, [-2.5, 3.0, 0.5], None, UNIT + "-2.5 at index 0 (and 1 more)" + LOGITS),
    (Y, [-2.5, -0.25, 0.0], None,
     UNIT + "-2.5 at index 0 (and 1 more): these look like log-probabilities; pass np.exp(y_prob)"),
    (Y, [20, 90, 0], None, UNIT + "20 at index 0 (and 1 more): these look like percent; pass y_prob / 100"),
    (Y, [0.2, 0.7, 90], None, UNIT + "90.0 at index 2"),
    (Y, [20, 90, 101], None, UNIT + "20 at index 0 (and 2 more)"),
    (Y, np.array([0, 1, 255], np.uint8), None, UNIT + "255 at index 2"),
    (Y, np.array([0, 1, -1], np.int8), None, UNIT + "-1 at index 2"),
    # shape
    ([], [], None, "y_true and y_prob must have at least one row; got 0"),
    (np.array([], object), np.array([], object), "a", "y_true and y_prob must have at least one row; got 0"),
    (Y, [0.5, 0.5], None, "y_true and y_prob must have the same length; got 3 and 2"),
    ([], P, None, "y_true and y_prob must have the same length; got 0 and 3"),
    (Y, 0.3, None, "y_prob must be one-dimensional, one value per row; got the single value 0.3"),
    (np.int64(1), P, None, "y_true must be one-dimensional, one value per row; got the single value 1"),
    ("abc", P, "a", "y_true must be one-dimensional, one value per row; got the single value 'abc'"),
    (Y, np.array(P)[:, None], None, "y_prob must be one-dimensional; got shape (3, 1): pass y_prob.ravel()"),
    (np.array(Y)[None], P, None, "y_true must be one-dimensional; got shape (1, 3): pass y_true.ravel()"),
    (Y, [[p] for p in P], None, "y_prob must be one-dimensional; got shape (3, 1): pass y_prob.ravel()"),
    (Y, np.array([P, P]).T, None,
     "y_prob must be one-dimensional; got shape (3, 2): pass the column of the positive class, y_prob[:, 1]"),
    (np.eye(3)[:, :2], P, None, SHAPE_OF_Y + "(3, 2): pick one column, e.g. y_true[:, 0]"),
    (np.eye(3), P, None, SHAPE_OF_Y + "(3, 3): pick one column, e.g. y_true[:, 0]"),
    (Y, np.zeros((3, 1, 1)), None, SHAPE_OF_P + "(3, 1, 1): pass one value per row"),
    (Y, pd.DataFrame({"p": P}), None, SHAPE_OF_P + "(3, 1): pick one column, e.g. y_prob['p']"),
    (Y, pd.DataFrame({"p": [0.2, None, 0.9]}, dtype="Float64"), None,
     SHAPE_OF_P + "(3, 1): pick one column, e.g. y_prob['p']"),
    (Y, pd.DataFrame({0: P}), None, "y_prob must be one-dimensional; got shape (3, 1): pick one column"),
    (Y, pl.DataFrame({"p": P}), None, SHAPE_OF_P + "(3, 1): pick one column, e.g. y_prob['p']"),
    (Y, pa.table({"p": P}), None, SHAPE_OF_P + "(3, 1): pick one column, e.g. y_prob['p']"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "scores", "pos_label", "message"), REFUSED)
def test_bad_values_are_refused_in_these_words(labels, scores, pos_label, message):
    assert refusal(read, labels, scores, pos_label=pos_label) == message


WRONG_KIND = [
    (None, P, None, "y_true must be a column of values; got None"),
    (Y, None, None, "y_prob must be a column of values; got None"),
    (Y, {"p": P}, None, "y_prob must be a column of values, one per row; got a dict"),
    (set(Y), P, None, "y_true must be a column of values, one per row; got a set"),
    (Y, (p for p in P), None, "y_prob must be a column of values, one per row; got a generator"),
    (Y, pl.LazyFrame({"p": P}), None, "y_prob must be a column of values, one per row; got a LazyFrame"),
    (Y, ["0.2", "0.7", "0.9"], None, "y_prob must hold numbers; got text such as '0.2'" + CONVERT),
    (Y, np.array(P, object), None,
     "y_prob must hold numbers; got floats in an object array, such as 0.2" + CONVERT),
    (Y, [decimal.Decimal("0.5")] * 3, None,
     "y_prob must hold numbers; got objects such as Decimal('0.5')" + CONVERT),
    (Y, [0.2, "high", 0.9], None, "y_prob must hold values of one kind"),
    (Y, np.array(P) + 0j, None, "y_prob must hold numbers; got dtype complex128"),
    (Y, np.array(["2020-01-01"] * 3, "M8[D]"), None, "y_prob must hold numbers; got dtype datetime64[D]"),
    (Y, np.zeros(3, "m8[s]"), None, "y_prob must hold numbers; got dtype timedelta64[s]"),
    (P, ["a", "b", "b"], "a", "y_prob must hold numbers; got text such as 'a'" + SWAPPED),
    (np.array(Y) + 0j, P, None, "y_true must hold numbers, bools or text; got dtype complex128"),
    (np.zeros(3, "M8[D]"), P, None, "y_true must hold numbers, bools or text; got dtype datetime64[D]"),
    (np.array([0.0, 1.0, 1.0], object), P, None,
     "y_true must hold numbers, bools or text; got floats in an object array, such as 0.0" + CONVERT),
    (Y, P, [1], "pos_label must be one label; got a list"),
    (Y, P, (0, 1), "pos_label must be one label; got a tuple"),
    (Y, P, np.array([1]), "pos_label must be one label; got a ndarray"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "scores", "pos_label", "message"), WRONG_KIND)
def test_wrong_kinds_are_refused_in_these_words(labels, scores, pos_label, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        read(labels, scores, pos_label=pos_label)
    assert str(caught.value).startswith(message)


def test_ragged_lists_name_the_argument():
    with pytest.raises(ValueError, match=r"^y_prob must be a one-dimensional column; .*inhomogeneous"):
        binary(Y, [[0.1], [0.2, 0.3], [0.4]])


def test_long_doubles_beyond_double():
    words = refusal(read, Y, np.array([0.2, np.longdouble("1e400"), 0.8]))
    assert words in (UNIT + "1e+400 at index 1", UNIT + "inf at index 1")  # where long double is double


def test_long_values_are_shortened():
    with pytest.raises(ValueError, match=r"got 'x{56}\.\.\. at index 2 beside") as caught:
        read(["a", "b", "x" * 1000], P, pos_label="a")
    assert len(str(caught.value)) < 250


# -------------------------------------------------------------------------------------------- in blocks


@pytest.mark.parametrize("n", [1, 65_535, 65_536, 65_537, 200_000])
def test_faults_are_placed_and_counted_in_the_whole_column(n):
    """Whichever block is read first, the message is about all rows."""
    labels, scores = np.zeros(n, np.int8), np.full(n, 0.5)
    places = sorted({n // 2, n - 1})
    more = " (and 1 more)" if len(places) > 1 else ""
    scores[places] = NAN
    words = refusal(binary(labels, scores).block, n - 1, n)
    assert words == f"{UNIT}nan at index {n // 2}{more}: drop or fill the rows without a score"
    labels[places] = 7
    words = refusal(lambda: binary(labels, np.full(n, 0.5)).block(n - 1, n))
    assert words.startswith(f"{PAIR}7 at index {n // 2}{more}")


def test_the_negative_label_is_found_in_a_late_block():
    labels = np.ones(150_000, np.int64)
    labels[-1] = -1
    rows = binary(labels, np.full(len(labels), 0.5))
    assert (rows.positive, rows.negative) == (1, -1)
    assert rows.block(149_998, 150_000)[0].tolist() == [1, 0]
    labels[70_000] = 0
    with pytest.raises(ValueError, match=r"got -1 at index 149999: -1 and 0 cannot both mean negative"):
        read(labels, rows.scores, size=65_536)


@pytest.mark.parametrize("dtype", ["i1", "i8", "f4"])
def test_a_block_of_zeros_among_labels_of_minus_one(dtype):
    words = refusal(read, np.array([-1, 1, 0, 0], dtype), [0.5] * 4)
    shown = "0.0" if dtype == "f4" else "0"
    assert words == f"{PAIR}{shown} at index 2 (and 1 more): -1 and 0 cannot both mean negative"


def test_empty_and_overlong_blocks():
    rows = binary(Y, P)
    labels, scores, clipped = rows.block(3, 3)
    assert (labels.tolist(), scores.tolist(), clipped) == ([], [], 0)
    assert rows.block(2, 1_000)[1].tolist() == [0.9]


def test_taking_rows_checks_all_of_them():
    rows = binary(Y, P).take(np.array([0, 2]))
    assert (rows.block(0, 2)[0].tolist(), rows.block(0, 2)[1].tolist(), len(rows)) == ([0, 1], [0.2, 0.9], 2)
    with pytest.raises(ValueError, match=r"got 1\.5 at index 1$"):
        binary(Y, [0.2, 1.5, 0.3]).take(np.array([0, 2]))
    labels = np.zeros(70_000)
    labels[-1] = 0.5
    with pytest.raises(ValueError, match=r"got 0\.5 at index 69999$"):
        binary(labels, np.full(70_000, 0.25)).take(np.array([0]))


def test_blocks_may_be_read_by_many_threads():
    rng = np.random.default_rng(20240501)
    n, size = 400_000, 1_000
    scores = rng.random(n, np.float32)
    labels = np.where(rng.random(n) < scores, 1, -1)
    rows = binary(labels, scores)
    with ThreadPoolExecutor(8) as pool:
        blocks = list(pool.map(lambda start: rows.block(start, start + size), range(0, n, size)))
    assert np.array_equal(np.concatenate([b[0] for b in blocks]), labels == 1)
    assert np.array_equal(np.concatenate([b[1] for b in blocks]), scores.astype(float))
    scores[-1] = NAN
    with ThreadPoolExecutor(8) as pool:
        words = set(pool.map(lambda _: refusal(rows.block, n - 1, n), range(8)))
    assert words == {f"{UNIT}nan at index {n - 1}: drop or fill the rows without a score"}


UNIT_FLOATS = st.floats(0, 1, allow_nan=False)
PAIRS = st.sampled_from([(0, 1), (False, True), (0.0, 1.0), (-1, 1), (-1.0, 1.0)])


@given(
    rows=st.lists(st.tuples(st.booleans(), UNIT_FLOATS), min_size=1, max_size=50),
    pair=PAIRS,
    size=st.integers(1, 60),
)
def test_round_trip(rows, pair, size):
    labels = [pair[positive] for positive, _ in rows]
    scores = [score for _, score in rows]
    assert read(labels, scores, size=size) == ([int(p) for p, _ in rows], scores, 0)


@given(
    bits=st.lists(st.booleans(), min_size=1, max_size=50),
    names=st.lists(
        st.text(st.characters(exclude_characters="\0"), max_size=5), min_size=2, max_size=2, unique=True
    ),
    as_objects=st.booleans(),
)
def test_round_trip_of_text(bits, names, as_objects):
    labels = np.array([names[bit] for bit in bits], object if as_objects else None)
    assert read(labels, [0.5] * len(bits), pos_label=names[1])[0] == [int(bit) for bit in bits]


BAD_SCORES = st.one_of(
    st.just(NAN),
    st.floats(min_value=1 + 2e-9),
    st.floats(max_value=-2e-9),
    st.sampled_from([math.inf, -math.inf]),
)


@given(
    scores=st.lists(st.one_of(UNIT_FLOATS, BAD_SCORES), min_size=1, max_size=30),
    size=st.integers(1, 40),
)
def test_bad_scores_are_found_as_by_hand(scores, size):
    bad = [i for i, s in enumerate(scores) if not 0 <= s <= 1]
    if not bad:
        assert read([1] * len(scores), scores, size=size)[1] == scores
        return
    words = refusal(read, [1] * len(scores), scores, size=size)
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    expected = f"y_prob must lie in [0, 1]; got {scores[bad[0]]!r} at index {bad[0]}{more}"
    assert words.split(":")[0] == expected


@given(
    labels=st.lists(st.sampled_from([-1, 0, 1, 2, 0.5, NAN]), min_size=1, max_size=12),
    size=st.integers(1, 13),
)
def test_bad_labels_are_found_as_by_hand(labels, size):
    """Oracle: the first label in {0, -1} is the negative one; everything but it and 1 is at fault."""
    negative = next((label for label in labels if label in (0, -1)), 0)
    bad = [i for i, label in enumerate(labels) if label not in (negative, 1)]
    if not bad:
        assert read(labels, [0.5] * len(labels), size=size)[0] == [int(label == 1) for label in labels]
        return
    with pytest.raises(ValueError, match=r"^y_true must hold") as caught:
        read(labels, [0.5] * len(labels), size=size)
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    shown = repr(float(labels[bad[0]]) if any(isinstance(v, float) for v in labels) else labels[bad[0]])
    assert f"; got {shown} at index {bad[0]}{more}" in str(caught.value)


@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    pos_label=st.integers(0, 4),
    size=st.integers(1, 13),
)
def test_pos_label_splits_at_most_two_labels(labels, pos_label, size):
    """Oracle: beside the positive label one other may be there; without it, only one label may."""
    if len(set(labels) | {pos_label}) <= 2:
        assert read(labels, [0.5] * len(labels), pos_label=pos_label, size=size)[0] == [
            int(label == pos_label) for label in labels
        ]
        return
    with pytest.raises(ValueError, match=r"^(y_true|pos_label) must") as caught:
        read(labels, [0.5] * len(labels), pos_label=pos_label, size=size)
    assert str(caught.value).startswith("y_true" if pos_label in labels else "pos_label")


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.complex_numbers(),
        st.text(max_size=3),
        st.binary(max_size=3),
        st.dates(),
        st.decimals(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.integers(), inner, max_size=2)),
    max_leaves=12,
)


@settings(max_examples=300)
@given(y_true=ANYTHING, y_prob=ANYTHING, pos_label=ANYTHING)
def test_anything_else_is_refused_by_name(y_true, y_prob, pos_label):
    """Whatever Python value comes: checked rows, or a refusal that begins with an argument's name."""
    try:
        labels, scores, _ = read(y_true, y_prob, pos_label=pos_label)
    except (ValueError, TypeError) as error:
        labels, scores, words = [], [], str(error)
    else:
        words = "y_true"
    assert words.startswith(("y_true", "y_prob", "pos_label"))
    assert set(labels) <= {0, 1}
    assert all(0 <= score <= 1 for score in scores)


# ---------------------------------------------------------------------------------------------- groups

DAYS = [date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 2)]
GROUPS = [
    [7, 8, 8],
    [7.5, 8.5, 8.5],
    [False, True, True],
    ["a", "b", "b"],
    [b"a", b"b", b"b"],
    [2**70, 2**71, 2**71],
    DAYS,
    np.array(DAYS, "M8[D]"),
    np.array(["a", "b", "b"], np.dtypes.StringDType()),
    np.array([(1, 2), (1, 3), (1, 3)], [("patient", int), ("day", int)]),
    pd.Series(["a", "b", "b"]),
    pd.Series(["a", "b", "b"], dtype="category"),
    pd.Series([7, 8, 8], dtype="Int64"),
    pd.Series(pd.to_datetime(DAYS)),
    pd.Series(pd.to_datetime(DAYS).tz_localize("Europe/Rome")),
    pd.MultiIndex.from_arrays([[1, 1, 1], ["a", "b", "b"]]),
    pl.Series(DAYS),
    pl.Series(["a", "b", "b"]),
    pa.array(DAYS),
    pa.array([7, 8, 8]),
    pa.array(["a", "b", "b"]).dictionary_encode(),
]


@pytest.mark.parametrize("groups", GROUPS, ids=lambda g: f"{type(g).__module__}:{getattr(g, 'dtype', '')}")
def test_one_row_of_each_group(groups):
    seen = {tuple(group_rows(groups, 3, seed).tolist()) for seed in range(40)}
    assert seen == {(0, 1), (0, 2)}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "groups and y_true must have the same length; got 2 and 3"),
        ([1, NAN, NAN],
         "groups must not have missing values; got 2 missing, the first at index 1: drop or fill these rows"),
        (np.array(["2020", "NaT", "2020"], "M8[D]"),
         "groups must not have missing values; got 1 missing, the first at index 1: drop or fill these rows"),
        (["a", 1, "b"],
         "groups must hold values of one kind; got 'a' (text) at index 0 and 1 (int) at index 1"),
        (np.array([1, "1", 2], object),
         "groups must hold values of one kind; got 1 (int) at index 0 and '1' (text) at index 1"),
        ([{"a": 1}, {"a": 2}, {"a": 3}],
         "groups must hold hashable values; unhashable type: 'dict'"),
        (pd.DataFrame({"id": [1, 2, 3], "day": [1, 2, 3]}),
         "groups must be one-dimensional; got shape (3, 2): pick one column, e.g. groups['id']"),
        ("abc", "groups must be one-dimensional, one value per row; got the single value 'abc'"),
    ],
)  # fmt: skip
def test_groups_are_refused_in_these_words(groups, message):
    assert refusal(group_rows, groups, 3, 0) == message


@given(groups=st.lists(st.integers(0, 5), min_size=1, max_size=40), seed=st.integers(0, 2**32))
def test_group_rows_are_ascending_one_per_group_and_do_not_depend_on_names(groups, seed):
    chosen = group_rows(groups, len(groups), seed)
    assert chosen.dtype == np.int64
    assert np.all(np.diff(chosen) > 0)
    assert Counter(groups[i] for i in chosen) == Counter(set(groups))
    assert np.array_equal(chosen, group_rows(groups, len(groups), seed))
    renamed = [f"g{5 - g}" for g in groups]
    assert np.array_equal(chosen, group_rows(renamed, len(groups), seed))


def test_each_row_of_a_group_is_chosen_equally_often():
    """4,000 groups of 5 rows, shuffled: chi-square with 4 degrees of freedom, 99.99 % quantile 23.5."""
    order = np.random.default_rng(77).permutation(20_000)
    groups, place = (np.arange(20_000) // 5)[order], (np.arange(20_000) % 5)[order]
    counts = np.bincount(place[group_rows(groups, 20_000, 3)], minlength=5)
    assert counts.sum() == 4_000
    assert ((counts - 800) ** 2 / 800).sum() < 23.5


# --------------------------------------------------------------------------------------------- weights


def test_weights_are_lent_or_converted():
    given_weights = np.array([3.0, 0.0])
    assert weights(given_weights, 2) is given_weights
    assert weights([True, 2], 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, -0.5], "sample_weight must be finite and >= 0; got -0.5 at index 1"),
        ([NAN, math.inf], "sample_weight must be finite and >= 0; got nan at index 0 (and 1 more)"),
        ([1.0], "sample_weight and y_true must have the same length; got 1 and 2"),
        ([1.0, None], "sample_weight must not have missing values; got 1 missing, the first at index 1"
         ": drop or fill these rows"),
        ([[1.0], [2.0]],
         "sample_weight must be one-dimensional; got shape (2, 1): pass sample_weight.ravel()"),
    ],
)  # fmt: skip
def test_weights_are_refused_in_these_words(value, message):
    assert refusal(weights, value, 2) == message


def test_weights_that_are_not_numbers():
    with pytest.raises(TypeError, match=r"^sample_weight must hold numbers; got text such as 'a'$"):
        weights(["a", "b"], 2)


# --------------------------------------------------------------------------------------------- scalars


@pytest.mark.parametrize(
    "value", [0.05, np.float32(0.05), np.float64(0.05), np.array(0.05), 1e-300, 1 - 2**-53]
)
def test_error_probabilities(value):
    got = probability(value, "delta")
    assert type(got) is float
    assert got == float(value)


HINT = ": it is the error probability, e.g. 0.05"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "got 0"),
        (1, "got 1" + HINT),
        (95, "got 95" + HINT),
        (np.float32(1.5), "got 1.5" + HINT),
        (-0.1, "got -0.1"),
        (NAN, "got nan"),
        (np.array(2.0), "got array(2.)" + HINT),
    ],
)
def test_error_probabilities_out_of_range(value, message):
    assert refusal(probability, value, "delta") == "delta must lie strictly between 0 and 1; " + message


@pytest.mark.parametrize(
    "check", [probability, nonnegative_number, positive_number, lambda v, n: whole_number(v, n, low=0)]
)
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "a bool"),
        (np.True_, "a bool"),
        (None, "None"),
        ("0.05", "a str"),
        ([0.05], "a list"),
        (np.array([0.05]), "a ndarray"),
        (1j, "a complex"),
        (decimal.Decimal("0.05"), "a Decimal"),
        (np.datetime64("2020"), "a datetime64"),
    ],
)  # fmt: skip
def test_no_numbers(check, value, kind):
    with pytest.raises(TypeError, match=f"^delta must be a number; got {kind}$"):
        check(value, "delta")


def test_ranges_of_numbers():
    assert nonnegative_number(0, "variation") == 0.0
    assert nonnegative_number(math.inf, "variation") == math.inf
    assert nonnegative_number(10**400, "variation") == math.inf
    assert positive_number(np.float16(0.5), "perturbed") == 0.5
    assert whole_number(np.int8(3), "n_folds", low=2) == 3
    assert type(whole_number(5.0, "n_folds", low=2)) is int
    for check, name, bad, words in (
        (nonnegative_number, "variation", -1e-300, "a number >= 0; got -1e-300"),
        (nonnegative_number, "lipschitz", NAN, "a number >= 0; got nan"),
        (positive_number, "perturbed", 0, "a finite number > 0; got 0"),
        (positive_number, "perturbed", math.inf, "a finite number > 0; got inf"),
        (positive_number, "perturbed", NAN, "a finite number > 0; got nan"),
    ):
        assert refusal(check, bad, name) == f"{name} must be {words}"
    for bad in (1, 2.5, -3, NAN, math.inf, -(10**30)):
        with pytest.raises(ValueError, match=rf"^n_folds must be a whole number >= 2; got {bad}$"):
            whole_number(bad, "n_folds", low=2)
    for bad in (2**53, 10**30):
        with pytest.raises(ValueError, match=rf"^n_folds must be at most {2**53 - 1}; got {bad}$"):
            whole_number(bad, "n_folds", low=2)
    with pytest.raises(ValueError, match=r"^n_bins must be at most 10; got 10\.5$"):
        whole_number(10.5, "n_bins", low=1, high=10)


def test_choices():
    assert choice(np.str_("upper"), "side", ("both", "upper")) == "upper"
    for bad, shown in (("x", "'x'"), (None, "None"), (["both"], r"\['both'\]"), (1, "1")):
        with pytest.raises(ValueError, match=f"^side must be one of 'both', 'upper'; got {shown}$"):
            choice(bad, "side", ("both", "upper"))


# ----------------------------------------------------------------------------------------------- random


def test_seeds_repeat_and_generators_go_on():
    assert generator(7).random() == generator(np.int16(7)).random()
    assert generator(7).random() != generator(8).random()
    assert generator(None).random() != generator(None).random()
    sequence = np.random.SeedSequence(7)
    assert generator(sequence).random() == generator(sequence).random()
    mine = np.random.default_rng(7)
    first, second = generator(mine).random(), generator(mine).random()
    assert first != second
    assert first == generator(np.random.default_rng(7)).random()


def test_our_draws_are_not_the_users_draws():
    """A user who simulates scores with default_rng(0) must not get rows chosen by those same numbers."""
    theirs = np.random.default_rng(0).random(1_000)
    for rng in (0, np.random.SeedSequence(0), np.random.default_rng(0)):
        ours = generator(rng).random(1_000)
        assert not np.isin(ours, theirs).any()
        assert abs(np.corrcoef(ours, theirs)[0, 1]) < 5 / math.sqrt(1_000)  # five standard errors


@pytest.mark.parametrize(
    ("rng", "error", "message"),
    [
        (-1, ValueError, "rng must be a seed >= 0; got -1"),
        (True, TypeError, "rng must be None, an int seed, a numpy Generator or a SeedSequence; got a bool"),
        (1.5, TypeError, "rng must be None, an int seed, a numpy Generator or a SeedSequence; got a float"),
        ("a", TypeError, "rng must be None, an int seed, a numpy Generator or a SeedSequence; got a str"),
        (np.random.RandomState(0), TypeError,
         "rng must be None, an int seed, a numpy Generator or a SeedSequence; got a RandomState"),
    ],
)  # fmt: skip
def test_seeds_are_refused_in_these_words(rng, error, message):
    assert refusal(generator, rng, error=error) == message


# --- labels beyond 2^53, where float64 no longer tells whole numbers apart

BIG = 2**53


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, ">i8", object])
@pytest.mark.parametrize(
    ("pos_label", "expected"),
    [
        (BIG, [1, 0, 1]),
        (BIG + 1, [0, 1, 0]),
        (float(BIG), [1, 0, 1]),
        (np.float64(BIG), [1, 0, 1]),
        (np.int64(BIG + 1), [0, 1, 0]),
    ],
)
def test_labels_are_told_apart_beyond_the_whole_numbers_of_float64(dtype, pos_label, expected):
    labels = np.array([BIG, BIG + 1, BIG]).astype(dtype)
    assert read(labels, P, pos_label=pos_label)[0] == expected


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (np.array([BIG, 0, BIG], float), BIG + 1),
        (np.array([2**24, 0, 0], np.float32), 2**24 + 1),
        (np.array([2**24, 0, 0], np.float32), 2.0**24 + 1),
        (np.array([0, 1, 1], np.float16), 70_000),
        (np.array([0, 1, 1], float), 10**400),
        (np.array([0, 1, 1]), 10**400),
        (np.array([0, 1, 1]), 0.5),
        (np.array([0, 1, 1]), np.inf),
        (np.array([False, True, True]), 10**400),
        (np.array([False, True, True]), 0.5),
        (np.array([1, 1, 1], np.int8), 1.5),
    ],
)
def test_a_positive_label_that_the_labels_cannot_hold_is_refused(labels, pos_label):
    message = refusal(read, labels, P, pos_label=pos_label)
    assert message.startswith("pos_label must be one of the labels of y_true (")


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (np.array([0.1, 0.5, 0.5], np.float32), 0.5),
        (np.array([0.5, 0.1, 0.1], np.float32), 0.1),
        (np.array([1, 2, 2]), 2.0),
        (np.array([1.0, 2.0, 2.0]), 2),
        (np.array([False, True, True]), 1.0),
    ],
)
def test_a_positive_label_may_be_of_another_type_than_the_labels(labels, pos_label):
    assert read(labels, P, pos_label=pos_label)[0] == [0, 1, 1]


def test_a_whole_positive_label_is_shown_as_one():
    assert repr(binary([1, 2, 2], P, pos_label=2.0).positive) == "2"


@pytest.mark.parametrize("missing", ["nan", "snan"])
def test_a_group_that_is_a_decimal_nan_is_missing(missing):
    groups = [decimal.Decimal(1), decimal.Decimal(missing), decimal.Decimal(missing)]
    assert refusal(group_rows, groups, 3, 0) == (
        "groups must not have missing values; got 2 missing, the first at index 1: drop or fill these rows"
    )


def test_a_group_that_is_a_complex_nan_is_missing():
    groups = np.array([1j, complex("nan")], object)
    assert "got 1 missing, the first at index 1" in refusal(group_rows, groups, 2, 0)


# --- pandas columns: matched by position, whatever their indexes


class TestIndexes:
    def test_equal_indexes_and_other_columns_bring_no_warning(self):
        labels, scores = pd.Series(Y, index=[7, 8, 9]), pd.Series(P, index=[7, 8, 9])
        for column in (scores, scores.to_numpy(), P):
            binary(labels, column)
        frame = pd.DataFrame({"y": Y, "p": P}).sample(frac=1, random_state=1)
        binary(frame["y"], frame["p"])

    @pytest.mark.parametrize("index", [[2, 1, 0], [0, 1, 3], ["a", "b", "c"]])
    def test_unequal_indexes_bring_one_warning_at_the_line_of_the_caller(self, index):
        labels, scores = pd.Series(Y), pd.Series(P, index=index)
        for call in (binary, calcore.certify, calcore.CellTable(10).update):
            with pytest.warns(UserWarning, match="different indexes; their rows are matched") as caught:
                call(labels, scores)
            assert [warning.filename for warning in caught] == [__file__]
        with pytest.warns(UserWarning, match="matched by position"):
            assert binary(labels, scores).block(0, 3)[1].tolist() == P
