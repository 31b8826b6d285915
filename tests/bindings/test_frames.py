"""Cell tables of pandas, Polars and PyArrow frames: the core's, bit for bit; and what is refused, how."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import frame_cases as cases
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from calcore_bindings import frames
from calcore_bindings.frames import cell_table
from frame_cases import DATES, FAULTS, GRIDS, KINDS, MISSING, S, Y, same
from hypothesis import given, settings
from hypothesis import strategies as st

import calcore

ROOT = Path(__file__).parents[2]

ENGINES = {
    "pandas": lambda table: table.to_pandas(),
    "pandas on Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda table: pl.DataFrame(pl.from_arrow(table)),
    "Polars, lazy": lambda table: pl.DataFrame(pl.from_arrow(table)).lazy(),
    "PyArrow": lambda table: table,
}


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("n_cells", [1, 7, 1000, 100_800])
def test_equals_the_core(engine, grid, n_cells):
    cases.equals_the_core(engine, [(grid, n_cells)])


def test_against_fractions():
    """Which cell, its counts, its extremes: exactly. Sums: off by half a unit a row at most."""
    n_cells = 30
    labels, scores, table = cases.awkward(n_cells)
    inside = [min(max(float(s), 0.0), 1.0) for s in scores]
    edges = [k / n_cells for k in range(1, n_cells)]
    place = [sum(s >= edge for edge in edges) for s in inside]
    found = cell_table(table, score="p.1", label="it is", n_cells=n_cells).cells()
    rows = Counter(place)
    assert found.n.tolist() == [rows[j] for j in range(n_cells)]
    for j in range(n_cells):
        mine = [i for i, cell in enumerate(place) if cell == j]
        assert found.k[j] == sum(int(labels[i]) for i in mine)
        assert found.lo[j] == min(inside[i] for i in mine)
        assert found.hi[j] == max(inside[i] for i in mine)
        total = sum(Fraction(inside[i]) for i in mine)
        assert (
            abs(Fraction(float(found.s[j])) - total)
            <= len(mine) * (Fraction(1, n_cells * 2**31)) + total / 2**48
        )


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(
            st.booleans(),
            st.one_of(st.floats(0.0, 1.0), st.integers(0, 40).map(lambda k: k / 40), st.floats(0.0, 1e-9)),
        ),
        min_size=1,
        max_size=30,
    ),
    n_cells=st.one_of(st.integers(1, 200), st.sampled_from([2**20, 99_991])),
    grid=st.sampled_from(GRIDS),
    engine=st.sampled_from(["Polars, lazy", "PyArrow"]),
)
def test_any_rows(rows, n_cells, grid, engine):
    labels, scores = map(list, zip(*rows, strict=True))
    frame = ENGINES[engine](pa.table({"y": labels, "s": scores}))
    found = cell_table(frame, score="s", label="y", grid=grid, n_cells=n_cells)
    assert same(found, calcore.CellTable(n_cells, grid).update(labels, scores))


def test_squares_are_rounded_exactly():
    """Offsets whose square by 2^30 ends near one half, and the largest."""
    offsets = [
        2**15,
        2**15 + 1,
        3 * 2**14,
        2**14 * 5,
        2**29 + 2**14,
        2**30 - 1,
        2**30 - 2**14,
        1,
        2,
        0,
        23170,
        23171,
    ]
    scores = [offset / 2**30 for offset in offsets]
    found = cell_table(pa.table({"y": [1] * 12, "s": scores}), score="s", label="y", n_cells=1)
    _, matrix = found.__getstate__()
    assert matrix[0, 4] == sum((o * o + 2**29) // 2**30 for o in offsets)
    assert matrix[0, 2] == matrix[0, 3] == sum(offsets)


def test_segments_and_scores(engine):
    cases.segments_and_scores(engine)


@pytest.mark.parametrize("segment", [[3, 1] * 3, [True, False] * 3, DATES, ["b", "a"] * 3, [2.5, -1.0] * 3])
def test_kinds_of_segments(engine, segment):
    frame = engine(pa.table({"y": Y, "s": S, "g": segment}))
    tables = cell_table(frame, score="s", label="y", by="g")
    assert list(tables) == sorted(set(segment))
    assert [table.n for table in tables.values()] == [3, 3]


def test_categories_are_text():
    frame = pd.DataFrame(
        {"y": pd.Categorical(["no", "yes"] * 3), "s": S, "g": pd.Categorical(list("aabbcc"), list("abcd"))}
    )
    for native in (frame, pl.from_pandas(frame)):
        tables = cell_table(native, score="s", label="y", by="g", pos_label="yes")
        assert {key: table.n_positive for key, table in tables.items()} == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_columns(engine, name):
    frame = engine(pa.table(KINDS[name][0]))
    if engine is ENGINES["pandas"] and name.startswith("decimal"):
        with pytest.raises(TypeError, match=r"must hold numbers.*; got Object in column"):
            cell_table(frame, score="s", label="y")
        return
    cases.kind(engine, name)


def test_half_precision():
    scores = np.float16([-0.001, 1.001, -0.0, 0.5, 0.3, 0.4])
    frame = pd.DataFrame({"y": Y, "s": scores})
    if not hasattr(frames.nw, "Float16"):  # an older narwhals
        with pytest.raises(TypeError, match="score must hold numbers; got Unknown in column 's'"):
            cell_table(frame, score="s", label="y")
        return
    found = cell_table(frame, score="s", label="y")
    assert same(found, calcore.CellTable().update(Y, scores))
    assert found.n_clipped == 2


@pytest.mark.parametrize("name", FAULTS)
def test_faults(engine, name):
    columns, options, message = FAULTS[name]
    with pytest.raises(ValueError, match="^" + re.escape(message)) as error:
        cell_table(engine(cases.fault_columns(columns)), **({"score": "s", "label": "y"} | options))
    assert message.endswith("got ") or str(error.value) == message


@pytest.mark.parametrize("name", MISSING)
def test_missing_values(name):
    columns, message = MISSING[name]
    for engine in ("pandas on Arrow", "Polars", "Polars, lazy", "PyArrow"):
        with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
            cell_table(ENGINES[engine](cases.fault_columns(columns)), score="s", label="y")


def test_missing_numbers_of_pandas_are_nan():
    frame = pd.DataFrame({"y": Y, "s": [0.1, None, 0.2, None, 0.3, 0.4]})
    with pytest.raises(ValueError, match=r"got nan in column 's' \(and 1 more\): drop or fill"):
        cell_table(frame, score="s", label="y")
    with pytest.raises(ValueError, match="score must not have missing values; got 2 missing"):
        cell_table(frame.astype({"s": "Float64"}), score="s", label="y")


def test_words_of_the_core():
    """Rule and remedy are said in the core's words; only arguments and positions have other names."""
    for name, (columns, options, message) in FAULTS.items():
        if name in (
            "no column",
            "missing segment",
            "no rows",
            "text without pos_label",
            "three texts",
            "no such text",
        ):
            continue  # an own rule, or one that names what the core cannot know
        table = cases.fault_columns(columns)
        with pytest.raises(ValueError, match="must") as error:
            calcore.CellTable().update(table["y"].to_numpy(), table["s"].to_numpy(), **options)
        rule = str(error.value).split(";")[0].replace("y_prob", "score").replace("y_true", "label")
        assert message.startswith(rule), name
        remedy = str(error.value).partition(": ")[2].replace("np.", "").replace("y_prob", "score")
        assert message.endswith(remedy.replace("y_true", "label")), name


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"score": []}, TypeError, r"score must be the name of a column, or several; got \[\]"),
        ({"score": ["s", "s"]}, ValueError, "score must name each column once"),
        ({"score": "t"}, TypeError, "score must hold numbers; got String in column 't'"),
        ({"label": "d"}, TypeError, "label must hold numbers, bools or text; got Date in column 'd'"),
        ({"label": "q"}, ValueError, r"label must be a column of the frame \('y', 's', 't', 'd'\); got 'q'"),
        ({"by": "q"}, ValueError, "by must be a column of the frame"),
        (
            {"pos_label": "1"},
            ValueError,
            "pos_label must be a label that column 'y' of Int64 can hold; got '1'",
        ),
        (
            {"pos_label": 0.5},
            ValueError,
            "pos_label must be a label that column 'y' of Int64 can hold; got 0.5",
        ),
        ({"grid": "cubic"}, ValueError, "grid must be one of"),
        ({"n_cells": 0}, ValueError, "n_cells must be a whole number >= 1"),
    ],
)
def test_arguments(options, kind, message):
    table = pa.table({"y": Y, "s": S, "t": ["x"] * 6, "d": DATES})
    with pytest.raises(kind, match=message):
        cell_table(table, **({"score": "s", "label": "y"} | options))


@pytest.mark.parametrize("frame", [{"y": Y, "s": S}, np.array([Y, S]), None, pl.Series(S)])
def test_what_is_no_frame(frame):
    with pytest.raises(
        TypeError, match="frame must be a data frame of pandas, Polars, PyArrow, DuckDB, Dask or"
    ):
        cell_table(frame, score="s", label="y")


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_parts_and_order(parts, monkeypatch):
    """Chunks, some of them empty, and blocks of an eager frame, in any order."""
    labels, scores, table = cases.awkward(1000)
    expected = calcore.CellTable(1000).update(labels, scores)
    order = np.random.default_rng(parts).permutation(len(scores))
    cuts = np.linspace(0, len(scores), parts + 1).astype(int)
    pieces = [table.take(order).slice(a, b - a) for a, b in pairwise(cuts)]
    pieces = [*pieces[:1], table.slice(0, 0), *pieces[1:]]
    chunked = pa.concat_tables(pieces)
    lazy = pl.concat([pl.DataFrame(pl.from_arrow(piece)).lazy() for piece in pieces])
    monkeypatch.setattr(frames, "_BLOCK", len(scores) // parts + 1)
    for frame in (chunked, chunked.to_pandas(), lazy):
        assert same(cell_table(frame, score="p.1", label="it is", n_cells=1000), expected)
    monkeypatch.setattr(frames, "_BLOCK", 2)
    text = pa.table({"y": ["a", "a", "b", "a", "b", "b", "b"], "s": [*S, 1.0], "g": [1, 1, 1, 2, 2, 2, 2]})
    tables = cell_table(text, score=["s"], label="y", by="g", pos_label="b")["s"]
    assert {key: (t.n, t.n_positive) for key, t in tables.items()} == {1: (3, 1), 2: (4, 3)}
    other = text.set_column(0, "y", [["b", "a", "c", "a", "b", "b", "b"]])
    with pytest.raises(
        ValueError, match="label must hold two different labels; got 'c' in column 'y' beside"
    ):
        cell_table(other, score="s", label="y", pos_label="b")


def test_columns_that_have_our_names():
    table = pa.table({"label": S, "fault": Y, "score 0": S, "by": Y, "key": S, "n": Y})
    tables = cell_table(table, score=["label", "key", "score 0"], label="fault", by="n")
    expected = {name: {0: 0.6, 1: 2.1} for name in ("label", "key", "score 0")}
    assert {a: {b: pytest.approx(t.sum_scores) for b, t in c.items()} for a, c in tables.items()} == expected
    odd = pa.table({'a "b".c`d': Y, "x.y z": S, " ": list("ppqqrr")})
    for engine in ENGINES.values():
        assert list(cell_table(engine(odd), score="x.y z", label='a "b".c`d', by=" ")) == ["p", "q", "r"]


def test_a_cell_of_too_many_rows(monkeypatch):
    """The count decides, before sums of so many offsets could leave 64 bits."""
    real = frames._aggregated
    table = pa.table({"y": Y, "s": S})
    factor = 2**31

    def crowded(rows):
        found = real(rows)
        return found.with_columns(n=frames.nw.col("n") * factor)

    monkeypatch.setattr(frames, "_aggregated", crowded)
    with pytest.raises(OverflowError, match=r"a cell would hold 2147483648 rows; 2\^31 - 1 is the most"):
        cell_table(table, score="s", label="y")


def test_frames_are_not_changed(engine):
    table = pa.table({"y": Y, "s": [-0.0, 1.0 + 1e-10, *S[2:]]})
    frame = engine(table)
    cell_table(frame, score="s", label="y")
    again = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    assert pa.table({name: pa.array(again[name]) if not isinstance(again, pa.Table) else again[name]
                     for name in ("y", "s")}).equals(table)  # fmt: skip


def test_without_narwhals():
    code = "import sys; sys.modules['narwhals'] = None; import calcore_bindings.frames"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.rstrip().endswith(
        "calcore_bindings.frames needs narwhals: pip install 'calcore-calibration[frames]'"
    )


def test_readme_names_extras_and_oldest_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    lowest = [need for need in project["dependency-groups"]["lowest"] if isinstance(need, str)]
    needs = [need.replace("==", ">=").removesuffix(".*") for need in lowest]
    needs += [need for name in extras if name != "all" for need in extras[name]]
    promised = {re.split(r"[\[>=]", need)[0]: need.partition(">=")[2] for need in needs}
    rows = re.findall(r"^\| ([^|`]+) \| `([^`]+)` \| `([^`]+)` \| (\S+) ([\d.]+) \|$",
                      (ROOT / "bindings" / "README.md").read_text(), re.MULTILINE)  # fmt: skip
    assert {host for host, *_ in rows} >= {"pandas", "Polars", "PyArrow", "DuckDB", "Dask", "PySpark"}
    for _, line, extra, package, version in rows:
        assert all(name in extras for name in extra.split(",")), extra
        assert promised[package] == version
        module = re.match(r"from (calcore_bindings\.\w+) import \w+", line)
        assert module is not None
        assert (ROOT / "bindings" / (module[1].replace(".", "/") + ".py")).is_file()
