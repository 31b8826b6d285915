"""Frames that every engine must read like the core: rows, faults, and kinds of columns, as Arrow tables."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from calcore_bindings.frames import cell_table

import calcore

GRIDS = ("linear", "sqrt", "logit")

Frames = Callable[[pa.Table], Any]


def same(table: calcore.CellTable, other: calcore.CellTable) -> bool:
    """Whether two tables agree in every bit of every cell."""
    (about, cells), (about_other, cells_other) = table.__getstate__(), other.__getstate__()
    return about == about_other and np.array_equal(cells, cells_other)


def awkward_scores(n_cells: int) -> np.ndarray:
    """Edges of cells in each grid, as doubles, and their neighbours; powers of two; clipped; others."""
    rng = np.random.default_rng(n_cells)
    ends = np.arange(n_cells + 1) / n_cells
    octaves = 2.0 ** -np.arange(1.0, 80.0)
    pattern = 1022.0 - np.abs(2.0 * ends - 1.0) * 32
    near = (pattern * 2.0**52).astype(np.int64).view(np.float64)
    edges = np.concatenate([ends, ends * ends, near, 1.0 - near, octaves, 1.0 - octaves])
    some = rng.permutation(edges)[:3000]
    return np.concatenate(
        [
            some,
            np.nextafter(some, 0.0),
            np.nextafter(some, 1.0),
            rng.random(3000) ** rng.choice([0.05, 1.0, 20.0], 3000),
            [
                0.0,
                -0.0,
                1.0,
                5e-324,
                2e-318,
                -1e-9,
                1.0 + 1e-9,
                1.0000000000000002,
                math.nextafter(0.5, 0),
                0.5,
            ],
        ]
    )


def awkward(n_cells: int) -> tuple[np.ndarray, np.ndarray, pa.Table]:
    """Labels and scores in a random order, and as a table with columns "it is" and "p.1"."""
    scores = awkward_scores(n_cells)
    labels = np.random.default_rng(1).integers(0, 2, len(scores))
    return labels, scores, pa.table({"it is": labels, "p.1": scores})


def equals_the_core(frames: Frames, cases: Iterable[tuple[str, int]]) -> None:
    for grid, n_cells in cases:
        labels, scores, table = awkward(n_cells)
        found = cell_table(frames(table), score="p.1", label="it is", grid=grid, n_cells=n_cells)
        expected = calcore.CellTable(n_cells, grid).update(labels, scores)
        assert same(found, expected), (grid, n_cells)
        assert calcore.certify(found).to_dict() == calcore.certify(expected).to_dict()


def segments_and_scores(frames: Frames) -> None:
    """Two scores, of 64 and 32 bits, in three segments, against tables filled one by one."""
    rng = np.random.default_rng(2)
    n = 3000
    labels, a, b = rng.integers(0, 2, n), rng.random(n), rng.random(n).astype(np.float32)
    a[:3], b[:3] = (-1e-10, 1.0, 1.0 + 1e-10), (-5e-7, 1.0, 1.0 + 5e-7)
    segment = np.array(["north", "east", "south"])[rng.integers(0, 3, n)]
    frame = frames(pa.table({"y": labels, "a": a, "b": b, "g h": segment}))
    found = cell_table(frame, score=["a", "b"], label="y", by="g h")
    assert {name: list(tables) for name, tables in found.items()} == {
        name: ["east", "north", "south"] for name in ("a", "b")
    }
    for name, scores in {"a": a, "b": b}.items():
        for key, table in found[name].items():
            mine = segment == key
            assert same(table, calcore.CellTable().update(labels[mine], scores[mine])), (name, key)
    assert sum(table.n_clipped for table in found["b"].values()) == 2
    whole = cell_table(frame, score=("b", "a"), label="y", grid="sqrt", n_cells=50)
    assert list(whole) == ["b", "a"]
    assert same(whole["a"], calcore.CellTable(50, "sqrt").update(labels, a))
    assert same(whole["b"], calcore.CellTable(50, "sqrt").update(labels, b))


Y, S = [0, 1, 1, 0, 1, 0], [0.1, 0.5, 0.7, 0.2, 0.9, 0.3]
NAN = float("nan")


def _decimals(values: Iterable[Any], places: int) -> pa.Array:
    return pa.array([Decimal(str(v)) for v in values], pa.decimal128(places + 3, places))


KINDS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[Any, Any]]] = {
    # columns, options, and what the core is given
    "bool labels": ({"y": pa.array(map(bool, Y)), "s": S}, {}, (Y, S)),
    "False is positive": (
        {"y": pa.array(map(bool, Y)), "s": S},
        {"pos_label": False},
        ([1 - y for y in Y], S),
    ),
    "minus one": ({"y": [2 * y - 1 for y in Y], "s": S}, {}, (Y, S)),
    "all are minus one": ({"y": [-1] * 6, "s": S}, {}, ([0] * 6, S)),
    "all are positive": ({"y": [1] * 6, "s": S}, {}, ([1] * 6, S)),
    "unsigned labels": ({"y": pa.array(Y, pa.uint8()), "s": S}, {}, (Y, S)),
    "float labels": ({"y": pa.array(Y, pa.float32()), "s": S}, {}, (Y, S)),
    "decimal labels": ({"y": _decimals(Y, 0), "s": S}, {}, (Y, S)),
    "one and two": ({"y": [y + 1 for y in Y], "s": S}, {"pos_label": 2}, (Y, S)),
    "large labels": (
        {"y": [2**53 + y for y in Y], "s": S},
        {"pos_label": 2**53 + 1},
        (Y, S),
    ),
    "no positive label": ({"y": [1] * 6, "s": S}, {"pos_label": 2}, ([0] * 6, S)),
    "text": ({"y": ["ab"[y] for y in Y], "s": S}, {"pos_label": "b"}, (Y, S)),
    "only positive text": ({"y": ["b"] * 6, "s": S}, {"pos_label": "b"}, ([1] * 6, S)),
    "float32": ({"y": Y, "s": pa.array(S, pa.float32())}, {}, (Y, np.float32(S))),
    "clipped float32": (
        {"y": Y, "s": pa.array([-5e-7, 1 + 5e-7, -0.0, 0.5, 0.3, 0.4], pa.float32())},
        {},
        (Y, np.float32([-5e-7, 1 + 5e-7, -0.0, 0.5, 0.3, 0.4])),
    ),
    "whole scores": ({"y": Y, "s": pa.array([0, 1, 1, 0, 1, 1], pa.int32())}, {}, (Y, [0, 1, 1, 0, 1, 1])),
    "decimals": (
        {"y": [0, 1] * 500, "s": _decimals([k / 1000 for k in range(1000)], 9)},
        {"n_cells": 1000},
        ([0, 1] * 500, [k / 1000 for k in range(1000)]),
    ),
}

# What is wrong, and the message; pandas holds missing numbers as NaN, which is another fault.
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "above": (
        {"s": [0.1, 1.2, 0.2, 7.0, 0.3, 0.4]},
        {},
        "score must lie in [0, 1]; got 7.0 in column 's' (and 1 more)",
    ),
    "just above": (
        {"s": [0.1, 1.0 + 1.1e-9, 0, 0, 0, 0]},
        {},
        "score must lie in [0, 1]; got 1.0000000011 in column 's'",
    ),
    "below": (
        {"s": [0.1, -1e-8, 0.2, 0.3, 0.3, 0.4]},
        {},
        "score must lie in [0, 1]; got -1e-08 in column 's'",
    ),
    "infinite": (
        {"s": [0.1, math.inf, 0.2, 1.0, 0, 0]},
        {},
        "score must lie in [0, 1]; got inf in column 's'",
    ),
    "nan": (
        {"s": [0.1, NAN, 0.2, NAN, 0.3, 0.4]},
        {},
        "score must lie in [0, 1]; got nan in column 's' (and 1 more): drop or fill the rows without a score",
    ),
    "logits": (
        {"s": [0.1, -3.0, 0.2, 7.0, 0.3, NAN]},
        {},
        "score must lie in [0, 1]; got 7.0 in column 's' (and 2 more): these look like logits; "
        "pass the sigmoid of them, 1 / (1 + exp(-score))",
    ),
    "log-probabilities": (
        {"s": [-0.1, -3.0, -0.2, -7.0, -0.3, -1.0]},
        {},
        "score must lie in [0, 1]; got -7.0 in column 's' (and 5 more): these look like log-probabilities; "
        "pass exp(score)",
    ),
    "percent": (
        {"s": [10.0, 20.0, 30.0, 40.0, 50.0, 1.0]},
        {},
        "score must lie in [0, 1]; got 50.0 in column 's' (and 4 more): these look like percent; "
        "pass score / 100",
    ),
    "large": (
        {"s": pa.array([0, 1, 2**53 + 1, 0, 1, 1], pa.int64())},
        {},
        "score must lie in [0, 1]; got 9007199254740992.0 in column 's'",
    ),
    "other labels": (
        {"y": [1, 2, 2, 1, 1, 2]},
        {},
        "label must hold labels 0/1 or -1/+1; got 2 in column 'y' (and 2 more): pass pos_label=2 if 2 is the "
        "positive class",
    ),
    "classes": (
        {"y": [0, 1, 2, 1, 2, 0]},
        {},
        "label must hold labels 0/1 or -1/+1; got 2 in column 'y' (and 1 more): with several classes, "
        "take one at a time, label == c with the scores of class c",
    ),
    "0 and -1": (
        {"y": [0, 1, -1, 1, 0, 0]},
        {},
        "label must hold labels 0/1 or -1/+1; got both 0 and -1 in column 'y': "
        "-1 and 0 cannot both mean negative",
    ),
    "nan label": (
        {"y": [0, 1, NAN, 1, NAN, 0]},
        {},
        "label must hold one label per row; got nan in column 'y' (and 1 more): "
        "drop or fill the rows without a label",
    ),
    "three texts": (
        {"y": ["a", "b", "a", "b", "c", "c"]},
        {"pos_label": "b"},
        "label must hold two different labels; got ",
    ),
    "no such text": (
        {"y": ["a", "c", "a", "c", "c", "c"]},
        {"pos_label": "b"},
        "pos_label must be one of the labels in column 'y' ('a', 'c'); got 'b'",
    ),
    "text without pos_label": (
        {"y": ["a", "b", "a", "b", "a", "b"]},
        {},
        "pos_label must be given if label holds text; got None for column 'y'",
    ),
    "missing text": (
        {"y": ["a", None, "a", "b", None, "b"]},
        {"pos_label": "b"},
        "label must not have missing values; got 2 missing in column 'y': drop or fill these rows",
    ),
    "missing segment": (
        {"g": ["a", None, "a", "b", "b", "b"]},
        {"by": "g"},
        "by must not have missing values; got 1 missing in column 'g': drop or fill these rows",
    ),
    "no rows": (
        {"y": pa.array([], pa.int64()), "s": pa.array([], pa.float64())},
        {},
        "score and label must have at least one row; got 0",
    ),
    "no column": ({}, {"score": "q"}, "score must be a column of the frame ('y', 's'); got 'q'"),
}

MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "score": (
        {"s": [0.1, None, 0.2, None, 0.3, 1.2], "y": [0, 1, 2, 0, 0, 0]},
        "score must not have missing values; got 2 missing in column 's': drop or fill these rows",
    ),
    "label": (
        {"y": pa.array([0, None, 1, 2, 1, 0], pa.int64()), "s": [None, NAN, 0.2, 3.0, 0.3, 0.4]},
        "label must not have missing values; got 1 missing in column 'y': drop or fill these rows",
    ),
    "bool label": (
        {"y": pa.array([False, None, True, None, True, False])},
        "label must not have missing values; got 2 missing in column 'y': drop or fill these rows",
    ),
}


def kind(frames: Frames, name: str) -> None:
    columns, options, (labels, scores) = KINDS[name]
    found = cell_table(frames(pa.table(columns)), score="s", label="y", **options)
    assert same(found, calcore.CellTable(found.n_cells).update(labels, scores))


def fault_columns(columns: dict[str, Any]) -> pa.Table:
    return pa.table({"y": Y, "s": S} | columns)


DATES = [datetime.date(2026, 1, 1 + i % 2) for i in range(6)]
