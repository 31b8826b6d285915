"""From files to a table: one pass, in memory that does not depend on the number of rows.

The first million rows are held. If there are no more, they become a `ScoreTable`, so that the command line
gives exactly the number that `certify` gives in Python. If there are, or if cells were asked for,
everything is poured into a `CellTable`. Every batch passes through `calcore._validate`; what is added here
is where a fault is: file, column and data row.
"""

from __future__ import annotations

import csv
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calcore._classes import ClassRows, class_rows
from calcore._validate import Rows, binary
from calcore.files.arrays import as_numpy
from calcore.files.columns import (
    Batch,
    choose_columns,
    choose_label,
    codable,
    find_column,
    first_values,
    read_columns,
)
from calcore.files.formats import Column, Source, open_source
from calcore.files.paths import InputError, expand, shown
from calcore.table import CellTable, ScoreTable, grid_for

__all__ = [
    "HELD_ROWS",
    "AllRows",
    "Classes",
    "GroupedRows",
    "Intake",
    "PairedRows",
    "Passed",
    "ProbabilityRows",
    "add_tables",
    "in_words_of_the_command",
    "is_table",
    "pass_on",
    "take_in",
    "take_in_classes",
    "take_in_groups",
    "take_in_joined",
    "take_in_pair",
    "take_in_rows",
    "take_in_scores",
]

HELD_ROWS = 1_000_000
"""Up to this many rows are sorted, as `calcore.table.tabulate` does; more go through cells."""

_CHECK_ROWS = 1 << 16
_SAMPLE = 1 << 16

Progress = Callable[[float, int], None]
"""Called with the fraction of the bytes and the number of rows read so far."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What was read, and from where; `label` and `score` are None if only tables were read."""

    table: ScoreTable | CellTable
    files: tuple[str, ...]
    label: str | None
    score: str | None
    population: str


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """All rows, for what needs single rows: labels 0/1, scores, and a number for each row's group."""

    labels: NDArray[np.uint8]
    scores: NDArray[Any]
    groups: NDArray[np.int64]
    names: pa.Array
    """The value that each number stands for."""
    files: tuple[str, ...]
    label: str
    score: str
    population: str


@dataclass(frozen=True, slots=True)
class AllRows:
    """All rows: labels 0/1 and scores as they came, and the segment of each row if asked for."""

    labels: NDArray[np.uint8]
    scores: NDArray[Any]
    segments: NDArray[np.object_] | None
    files: tuple[str, ...]
    label: str
    score: str
    population: str


@dataclass(frozen=True, slots=True)
class Classes:
    """Columns of class probabilities, and their labels as typed; None: numbers from 0, or the columns."""

    columns: tuple[str, ...]
    labels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, columns: str, labels: str | None = None) -> Self:
        """From what ``--classes`` and ``--class-labels`` were given: names with commas between.

        >>> Classes.of('p_cat,"p,dog"', "cat,dog")
        Classes(columns=('p_cat', 'p,dog'), labels=('cat', 'dog'))
        """
        names = _split(columns, "--classes", "column")
        if len(names) < 2:
            raise InputError(
                f"--classes must name at least two columns, with commas between; got {shown(columns)}"
            )
        given = None if labels is None else _split(labels, "--class-labels", "label")
        if given is not None and len(given) != len(names):
            raise InputError(
                f"--class-labels must name every column of --classes; got {len(given)} labels for "
                f"{len(names)} columns"
            )
        return cls(names, given)


def _split(typed: str, option: str, what: str) -> tuple[str, ...]:
    names = next(csv.reader([typed], skipinitialspace=True), [])
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"{option} names {what} {shown(twice)} twice")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class ProbabilityRows:
    """All rows of several classes: the number of each row's class, and the probabilities of all classes."""

    codes: NDArray[np.int64]
    matrix: NDArray[Any]
    names: tuple[Any, ...]
    """The label of each class; the column where labels are numbers of columns."""
    groups: NDArray[np.int64] | None
    files: tuple[str, ...]
    label: str
    score: str
    population: str


@dataclass(frozen=True, slots=True)
class PairedRows:
    """All rows of two models: labels 0/1, the scores of both, and numbers of groups if asked for."""

    labels: NDArray[np.uint8]
    scores: NDArray[Any]
    others: NDArray[Any]
    groups: NDArray[np.int64] | None
    files: tuple[str, ...]
    label: str
    score: str
    versus: str
    population: str


@dataclass(frozen=True, slots=True)
class Passed:
    """What was handed on, and from where."""

    n: int
    files: tuple[str, ...]
    label: str
    score: str
    population: str


@dataclass(slots=True)
class _Plan:
    """Which columns to read from which files, and which label value turned out to be the negative one."""

    tables: list[str]
    sources: list[Source]
    label: str | None
    score: str | None
    pos_label: Any
    others: tuple[str, ...] = ()
    classes: Classes | None = None
    class_labels: tuple[Any, ...] | None = None
    negative: Any = None
    negative_from: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.tables, *(source.path for source in self.sources))

    @property
    def scores(self) -> str | None:
        """The column, or columns, of scores in words."""
        return self.score if self.classes is None else ", ".join(self.classes.columns)

    @property
    def population(self) -> str:
        """What the files say, if all say the same."""
        said = {source.population for source in self.sources}
        return said.pop() if len(said) == 1 and not self.tables else ""


def take_in(
    patterns: Sequence[str],
    *,
    label: str | None = None,
    score: str | None = None,
    pos_label: str | None = None,
    grid: str | None = None,
    n_cells: int | None = None,
    sort: bool = True,
    every_row: bool = False,
    n_threads: int | None = None,
    classes: Classes | None = None,
    command: str = "calcore certify",
    progress: Progress | None = None,
) -> Intake:
    """Read files of rows, and saved tables, into one table.

    Parameters
    ----------
    patterns : sequence of str
        Files, globs, directories; see `calcore.files.expand`. Saved tables may be among them: they are
        added up, and rows join their cells.
    label, score : str, optional
        Columns; see `calcore.files.choose_columns`.
    pos_label : str, optional
        As typed; becomes a number or a truth value if the column holds these.
    grid, n_cells : optional
        Cells to use whatever the number of rows. Default: up to `HELD_ROWS` rows are sorted, and beyond
        that the grid is the one that suits the first `HELD_ROWS` scores.
    sort : bool
        False: never sort; the grid is linear unless given.
    every_row : bool
        True: sort any number of rows, in memory; saved tables are refused.
    n_threads : int, optional
        See `CellTable.update`.
    classes : Classes, optional
        Columns of class probabilities, in place of `score`: the scores are the largest of each row, and the
        labels whether its class is the right one, as in `certify_top_label`.
    command : str
        Start of the command that a message may propose.
    progress : callable, optional
        See `Progress`.

    Raises
    ------
    InputError
        Anything wrong with files, columns, rows or tables.
    """
    plan = _plan(patterns, label, score, pos_label, command, classes=classes)
    if every_row and plan.tables:
        raise InputError(f"{shown(plan.tables[0])}: a saved table has no single rows, which --method needs")
    table = _saved(plan.tables, grid, n_cells)
    if table is None and not (sort and grid is None and n_cells is None):
        table = _cells(n_cells, grid or "linear")
    held = _Held()
    for source, batch, rows in _batches(plan, progress):
        with _located(source, batch.start, plan):
            if table is not None:
                table.update(rows.labels, rows.scores, pos_label=plan.pos_label, n_threads=n_threads)
            else:
                held.add(rows)
                if held.n_rows > HELD_ROWS and not every_row:
                    table = held.poured(n_threads)
    if table is None and held.n_rows:
        return Intake(held.sorted(), plan.files, plan.label, plan.scores, plan.population)
    if table is None or table.n == 0:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    return Intake(table, plan.files, plan.label, plan.scores, plan.population)


def take_in_groups(
    patterns: Sequence[str],
    groups: str,
    *,
    option: str = "--groups",
    label: str | None = None,
    score: str | None = None,
    pos_label: str | None = None,
    classes: Classes | None = None,
    command: str = "calcore certify",
    progress: Progress | None = None,
) -> GroupedRows:
    """Read all rows with their groups, or segments; parameters as for `take_in`, `option` asked for it.

    Memory is that of three columns. Groups are numbered over all files: equal values are one group.
    """
    plan = _plan(patterns, label, score, pos_label, command, classes=classes)
    if plan.tables or plan.label is None or plan.scores is None:
        raise InputError(f"{shown(plan.tables[0])}: a saved table has no rows to draw from ({option})")
    _find_groups(plan, groups, option)
    held, members = _hold(plan, progress, groups)
    numbers, names = _coded(members, groups)
    labels, scores = held.columns()
    return GroupedRows(labels, scores, numbers, names, plan.files, plan.label, plan.scores, plan.population)


def take_in_rows(
    patterns: Sequence[str],
    *,
    by: str | None = None,
    label: str | None = None,
    score: str | None = None,
    pos_label: str | None = None,
    classes: Classes | None = None,
    command: str = "calcore report",
    progress: Progress | None = None,
) -> AllRows:
    """Read all rows, with the segments in column `by` if asked for; other parameters as for `take_in`.

    Memory is that of the columns.
    """
    if by is not None:
        given = take_in_groups(
            patterns,
            by,
            option="--by",
            label=label,
            score=score,
            pos_label=pos_label,
            classes=classes,
            command=command,
            progress=progress,
        )
        names = np.empty(len(given.names), object)
        names[:] = given.names.to_pylist()
        segments = names[given.groups]
        return AllRows(
            given.labels, given.scores, segments, given.files, given.label, given.score, given.population
        )
    plan = _plan(patterns, label, score, pos_label, command, classes=classes)
    if plan.tables or plan.label is None or plan.scores is None:
        raise InputError(f"{shown(plan.tables[0])}: a saved table has no single rows, which {command} needs")
    held, _ = _hold(plan, progress)
    return AllRows(*held.columns(), None, plan.files, plan.label, plan.scores, plan.population)


def _hold(plan: _Plan, progress: Progress | None, groups: str | None = None) -> tuple[_Held, list[pa.Array]]:
    """All rows, and their groups if a column of them is named."""
    held = _Held()
    members: list[pa.Array] = []
    for source, batch, rows in _batches(plan, progress, groups):
        if groups is not None:
            members.append(batch.groups)
        with _located(source, batch.start, plan):
            held.add(rows)
    if held.n_rows == 0:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    return held, members


def _find_groups(plan: _Plan, groups: str, option: str) -> None:
    taken = [("label", plan.label), *(("score", name) for name in (plan.score, *plan.others))]
    for what, name in taken:
        if groups == name:
            raise InputError(f"{option} {shown(groups)}: is the {what} column; name what rows belong to")
    for source in plan.sources:
        find_column(source, groups, option)


def _coded(members: Sequence[pa.Array], groups: str) -> tuple[NDArray[np.int64], pa.Array]:
    """A number for each value of column `groups`, and the values that the numbers stand for."""
    kinds = {str(part.type) for part in members}
    if len(kinds) > 1:
        raise InputError(
            f"column {shown(groups)} must have one type in all files; it has {', '.join(sorted(kinds))}"
        )
    codes = pa.chunked_array(list(map(codable, members))).dictionary_encode().combine_chunks()
    coded = codes if isinstance(codes, pa.DictionaryArray) else codes.chunk(0)
    return as_numpy(coded.indices), coded.dictionary


def take_in_classes(
    patterns: Sequence[str],
    classes: Classes,
    *,
    label: str | None = None,
    groups: str | None = None,
    command: str = "calcore certify",
    progress: Progress | None = None,
) -> ProbabilityRows:
    """Read all rows of several classes, and groups if asked for; parameters as for `take_in`.

    Memory is that of the columns, and of one column more.
    """
    plan = _plan(patterns, label, None, None, command, classes=classes)
    assert plan.label is not None
    assert plan.scores is not None
    if groups is not None:
        _find_groups(plan, groups, "--groups")
    columns: list[list[NDArray[Any]]] = [[] for _ in classes.columns]
    codes: list[NDArray[np.int64]] = []
    members: list[pa.Array] = []
    for source, batch in _read(plan, progress, groups):
        with _located(source, batch.start, plan):
            rows = _class_rows(plan, batch)
        codes.append(rows.codes)
        for parts, column in zip(columns, (batch.scores, *batch.others), strict=True):
            parts.append(column)
        if groups is not None:
            members.append(batch.groups)
    if not codes:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    n, kinds = sum(map(len, codes)), {part.dtype for parts in columns for part in parts}
    matrix = np.empty((n, len(columns)), np.result_type(*kinds), order="F")
    for j, parts in enumerate(columns):
        np.concatenate(parts, out=matrix[:, j])
        parts.clear()
    return ProbabilityRows(
        np.concatenate(codes),
        matrix,
        plan.class_labels or classes.columns,
        None if groups is None else _coded(members, groups)[0],
        plan.files,
        plan.label,
        plan.scores,
        plan.population,
    )


def _class_rows(plan: _Plan, batch: Batch) -> ClassRows:
    return class_rows(batch.labels, np.column_stack([batch.scores, *batch.others]), plan.class_labels)


def take_in_pair(
    patterns: Sequence[str],
    score: str,
    versus: str,
    *,
    label: str | None = None,
    groups: str | None = None,
    pos_label: str | None = None,
    command: str = "calcore compare",
    progress: Progress | None = None,
) -> PairedRows:
    """Read all rows with the scores of two models, and groups if asked for; parameters as for `take_in`.

    Memory is that of the columns.
    """
    if score == versus:
        raise InputError(f"--score and --versus both name column {shown(score)}")
    plan = _plan(patterns, label, score, pos_label, command, [("--versus", versus)])
    assert plan.label is not None
    if groups is not None:
        _find_groups(plan, groups, "--groups")
    first, second = _Held(), _Held()
    members: list[pa.Array] = []
    for source, batch, rows in _batches(plan, progress, groups):
        with _located(source, batch.start, plan):
            first.add(rows)
        with _located(source, batch.start, plan, versus):
            second.add(binary(batch.labels, batch.others[0], pos_label=plan.pos_label))
        second.labels.clear()  # those of the first
        if groups is not None:
            members.append(batch.groups)
    if first.n_rows == 0:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    numbers = None if groups is None else _coded(members, groups)[0]
    labels, scores = first.columns()
    return PairedRows(
        labels,
        scores,
        second.all_scores(),
        numbers,
        plan.files,
        plan.label,
        score,
        versus,
        plan.population,
    )


def take_in_joined(
    patterns: Sequence[str],
    score: str,
    versus: str,
    on: str,
    *,
    label: str | None = None,
    groups: str | None = None,
    pos_label: str | None = None,
    command: str = "calcore compare",
    progress: Progress | None = None,
) -> PairedRows:
    """Read the scores of two models from two files, rows matched by column `on`; others as `take_in_pair`.

    Every value of `on` must be once in each file, with the same label: a row that only one model has scored
    would make the comparison one of different rows. Rows are in the order of the first file.
    """
    paths = expand(patterns)
    if len(paths) != 2:
        raise InputError(f"--on {shown(on)} joins two files; got {len(paths)}")
    if groups is not None:
        raise InputError("--groups is for models in one file: leave it out beside --on")

    def read(path: str, name: str) -> GroupedRows:
        return take_in_groups(
            [path],
            on,
            option="--on",
            label=label,
            score=name,
            pos_label=pos_label,
            command=command,
            progress=progress,
        )

    first, second = read(paths[0], score), read(paths[1], versus)
    for given in (first, second):
        repeated = np.flatnonzero(np.bincount(given.groups) > 1)
        if len(repeated):
            value = shown(str(given.names[int(repeated[0])]))
            raise InputError(
                f"{shown(given.files[0])}: column {shown(on)} (--on) must name each row once; it has {value} "
                f"several times{_and_more(repeated)}"
            )
    if first.names.type != second.names.type:
        raise InputError(
            f"column {shown(on)} must have one type in both files; it has {first.names.type} and "
            f"{second.names.type}"
        )
    for here, there in ((first, second), (second, first)):
        missing = np.flatnonzero(as_numpy(_looked_up("is_in", here.names, there.names)) == 0)
        if len(missing):
            value = shown(str(here.names[int(missing[0])]))
            raise InputError(
                f"{shown(there.files[0])}: has no row with {shown(on)} {value}{_and_more(missing)}, "
                f"which {shown(here.files[0])} has; keep the rows that both files have"
            )
    place = as_numpy(_looked_up("index_in", first.names, second.names)).astype(np.int64)
    row = np.empty(len(second.groups), np.int64)
    row[second.groups] = np.arange(len(row))
    matched = row[place[first.groups]]
    differs = np.flatnonzero(first.labels != second.labels[matched])
    if len(differs):
        value = shown(str(first.names[int(first.groups[differs[0]])]))
        raise InputError(
            f"labels must agree in both files; those of {shown(on)} {value} differ{_and_more(differs)}"
        )
    same = first.population if first.population == second.population else ""
    return PairedRows(
        first.labels,
        first.scores,
        second.scores[matched],
        None,
        (*first.files, *second.files),
        first.label,
        score,
        versus,
        same,
    )


def _looked_up(function: str, values: pa.Array, among: pa.Array) -> pa.Array:
    return pc.call_function(function, [values], options=pc.SetLookupOptions(among))


def _and_more(found: NDArray[np.int64]) -> str:
    """How many beside the first.

    >>> _and_more(np.arange(1)), _and_more(np.arange(3))
    ('', ' (and 2 more)')
    """
    return f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""


def pass_on(
    patterns: Sequence[str],
    add: Callable[..., Any],
    *,
    label: str | None = None,
    score: str | None = None,
    pos_label: str | None = None,
    command: str = "calcore monitor",
    progress: Progress | None = None,
) -> Passed:
    """Hand all rows to `add`, in order, batch by batch; parameters as for `take_in`.

    `add` is called with labels, scores and ``pos_label=``, as `CalibrationMonitor.update` is. What it says
    of a row is said with file, column and data row.
    """
    plan = _plan(patterns, label, score, pos_label, command)
    if plan.tables or plan.label is None or plan.score is None:
        raise InputError(f"{shown(plan.tables[0])}: a saved table has no single rows, and no order of them")
    n_rows = 0
    for source, batch, rows in _batches(plan, progress):
        with _located(source, batch.start, plan):
            add(rows.labels, rows.scores, pos_label=plan.pos_label)
        n_rows += len(rows)
    if n_rows == 0:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    return Passed(n_rows, plan.files, plan.label, plan.score, plan.population)


def take_in_scores(patterns: Sequence[str], score: str, *, progress: Progress | None = None) -> NDArray[Any]:
    """Read one column of scores, not yet checked; all of it is held in memory.

    Raises
    ------
    InputError
        Anything wrong with files or columns.
    """
    parts = []
    for path in expand(patterns):
        if is_table(path):
            raise InputError(f"{shown(path)}: a saved table has no single scores")
        source = open_source(path)
        find_column(source, score, "--score")
        for batch in read_columns(source, score, score):
            parts.append(batch.scores.astype(np.float64))
            if progress is not None:
                progress(source.progress, batch.start + len(batch.scores))
    if not parts:
        raise InputError(f"{', '.join(map(shown, patterns))}: no rows")
    return np.concatenate(parts)


class _Held:
    """Checked rows: labels as 0/1, scores as they came, so that what needs clipping is still counted."""

    def __init__(self) -> None:
        self.labels: list[NDArray[np.uint8]] = []
        self.scores: list[NDArray[Any]] = []
        self.n_rows = 0

    def add(self, rows: Rows) -> None:
        for start in range(0, len(rows), _CHECK_ROWS):
            self.labels.append(rows.block(start, start + _CHECK_ROWS)[0])
        self.scores.append(rows.scores)
        self.n_rows += len(rows)

    def columns(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        return np.concatenate(self.labels), self.all_scores()

    def all_scores(self) -> NDArray[Any]:
        scores = self.scores
        if len({part.dtype for part in scores}) > 1:
            # What is a rounding error in float32 would be a fault once it is float64: make it one of float64.
            low, high = np.nextafter([0.0, 1.0], [-1.0, 2.0])
            scores = [np.clip(part.astype(np.float64), low, high) for part in scores]
        return np.concatenate(scores)

    def sorted(self) -> ScoreTable:
        return ScoreTable(*self.columns())

    def poured(self, n_threads: int | None) -> CellTable:
        """The rows in cells of the grid that suits their scores; nothing is held any longer."""
        step = max(1, self.n_rows // _SAMPLE)
        sample = np.concatenate([part[::step] for part in self.scores]).astype(np.float64)
        table = CellTable(grid=grid_for(np.clip(sample, 0.0, 1.0)))
        labels, start = np.concatenate(self.labels), 0
        for scores in self.scores:
            stop = start + len(scores)
            table.update(labels[start:stop], scores, n_threads=n_threads)
            start = stop
        self.labels, self.scores = [], []
        return table


def _cells(n_cells: int | None, grid: Any) -> CellTable:
    return CellTable(grid=grid) if n_cells is None else CellTable(n_cells, grid)


def is_table(path: str) -> bool:
    """Whether a file was written by `CellTable.save`, by its first bytes; the name does not matter."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_TABLE_MARK)) == _TABLE_MARK
    except OSError as error:
        raise InputError(f"{shown(path)}: {error.strerror}") from error


_TABLE_MARK = b'{"format": "calcore cell table"'


def add_tables(paths: Sequence[str]) -> CellTable:
    """The sum of at least one saved table.

    Raises
    ------
    InputError
        A damaged file, or tables of different grids.
    """
    total: CellTable | None = None
    for path in paths:
        try:
            table = CellTable.load(path)
            total = table if total is None else total.merge(table)
        except ValueError as error:
            message = str(error).removeprefix(f"{path} ").replace("other must", "it must")
            raise InputError(f"{shown(path)}: {message}") from error
    if total is None:
        raise ValueError("paths must name at least one table")
    return total


def _saved(paths: Sequence[str], grid: str | None, n_cells: int | None) -> CellTable | None:
    if not paths:
        return None
    table = add_tables(paths)
    if grid not in (None, table.grid) or n_cells not in (None, table.n_cells):
        raise InputError(f"{shown(paths[0])} has {table.describe()} already: leave out --grid and --cells")
    return table


def _plan(
    patterns: Sequence[str],
    label: str | None,
    score: str | None,
    pos_label: str | None,
    command: str,
    others: Sequence[tuple[str, str]] = (),
    classes: Classes | None = None,
) -> _Plan:
    """Open the files and find the columns; `others` are more columns of scores, with their options."""
    tables, sources = [], []
    for path in expand(patterns):
        if is_table(path):
            tables.append(path)
        else:
            sources.append(open_source(path))
    if tables and (others or classes):
        raise InputError(f"{shown(tables[0])}: a saved table has no single rows: name files with all columns")
    if not sources:
        for option, given in (("--label", label), ("--score", score), ("--pos-label", pos_label)):
            if given is not None:
                raise InputError(
                    f"{shown(tables[0])}: a saved table has its columns already: leave out {option}"
                )
        return _Plan(tables, [], None, None, None)
    command = f"{command} {' '.join(shlex.quote(pattern) for pattern in patterns)}"
    if classes is not None:
        named = [("--classes", name) for name in classes.columns]
        command += f" --classes {shlex.quote(','.join(classes.columns))}"
        label = _label_beside(sources[0], label, named, command)
    elif others and score is not None:
        named = [("--score", score), *others]
        command += "".join(f" {option} {shlex.quote(name)}" for option, name in named)
        label = _label_beside(sources[0], label, named, command)
    else:
        label, score = choose_columns(sources[0], label, score, command=command)
        named = [("--score", score)]
    columns = []
    for source in sources:
        columns.append(find_column(source, label, "--label"))
        for option, name in named:
            column = find_column(source, name, option)
            if classes is not None and column.kind != "number":
                raise InputError(
                    f"{shown(source.path)}: column {shown(name)} ({option}) holds {_KINDS[column.kind]}, not "
                    "numbers"
                )
    names = [name for _, name in named]
    if classes is None:
        positive = _positive(sources, columns, pos_label)
        return _Plan(tables, sources, label, names[0], positive, tuple(names[1:]))
    labels = _class_labels(sources, columns, classes)
    return _Plan(tables, sources, label, names[0], None, tuple(names[1:]), classes, labels)


def _label_beside(source: Source, label: str | None, named: Sequence[tuple[str, str]], command: str) -> str:
    """The label column of a file whose columns of scores are named, and are there."""
    for option, name in named:
        find_column(source, name, option)
    label = choose_label(source, label, [name for _, name in named], command=command)
    for option, name in named:
        if name == label:
            raise InputError(f"{shown(source.path)}: --label and {option} both name column {shown(label)}")
    return label


def _class_labels(
    sources: Sequence[Source], columns: Sequence[Column], classes: Classes
) -> tuple[Any, ...] | None:
    """The label of each column of probabilities as a value of the label column; None: its number."""
    for source, column in zip(sources, columns, strict=True):
        _refuse_kind(source, column, sources[0], columns[0])
    if classes.labels is None:
        return classes.columns if columns[0].kind == "text" else None
    return tuple(_typed(typed, "--class-labels", columns[0]) for typed in classes.labels)


def _refuse_kind(source: Source, column: Column, first: Source, expected: Column) -> None:
    if column.kind != expected.kind:
        raise InputError(
            f"{shown(source.path)}: column {shown(column.name)} holds {_KINDS[column.kind]}, but "
            f"{_KINDS[expected.kind]} in {shown(first.path)}"
        )


def _positive(sources: Sequence[Source], columns: Sequence[Column], typed: str | None) -> Any:
    """The positive label as a value of the label column."""
    for source, column in zip(sources, columns, strict=True):
        where = f"{shown(source.path)}: column {shown(column.name)}"
        first = columns[0].kind
        if typed is not None or "text" in (first, column.kind):
            _refuse_kind(source, column, sources[0], columns[0])
        if column.kind == "text" and typed is None:
            values = first_values(source, column.name)
            raise InputError(
                f"{where} holds text ({', '.join(map(shown, values[:4]))}): say which label is positive, "
                f"{' or '.join(f'--pos-label {shlex.quote(value)}' for value in values[:4] or ['yes'])}"
            )
    return None if typed is None else _typed(typed, "--pos-label", columns[0])


def _typed(typed: str, option: str, column: Column) -> Any:
    """What was typed as a value of a column."""
    if column.kind in ("text", "other"):
        return typed
    try:
        if column.kind == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[typed.lower()]
        return _number(typed)
    except (KeyError, ValueError):
        raise InputError(
            f"{option} {shlex.quote(typed)}: column {shown(column.name)} holds {_KINDS[column.kind]}"
        ) from None


def _number(typed: str) -> int | float:
    """A number as typed, exactly if it is whole.

    >>> _number("2"), _number("0.5"), _number("9007199254740993"), _number("9007199254740993.0")
    (2, 0.5, 9007199254740993, 9007199254740993)
    """
    number = float(typed)
    if "_" in typed or math.isnan(number):
        raise ValueError
    return int(Decimal(typed)) if number.is_integer() else number


_KINDS = {"number": "numbers", "bool": "true and false", "text": "text", "other": "neither numbers nor text"}


def _read(
    plan: _Plan, progress: Progress | None, groups: str | None = None
) -> Iterator[tuple[Source, Batch]]:
    """Batches as read, with their file."""
    if plan.label is None or plan.score is None:
        return
    n_rows = 0
    sizes = [max(1, os.path.getsize(source.path)) for source in plan.sources]
    for i, source in enumerate(plan.sources):
        for batch in read_columns(source, plan.label, plan.score, groups, plan.others):
            n_rows += len(batch.labels)
            if progress is not None:
                progress((sum(sizes[:i]) + source.progress * sizes[i]) / sum(sizes), n_rows)
            yield source, batch


def _batches(
    plan: _Plan, progress: Progress | None, groups: str | None = None
) -> Iterator[tuple[Source, Batch, Rows]]:
    """Batches with their file, as read and as rows of two labels whose values are not yet checked."""
    for source, batch in _read(plan, progress, groups):
        with _located(source, batch.start, plan):
            labels, scores = batch.labels, batch.scores
            if plan.classes is not None:
                scores, labels = _class_rows(plan, batch).top()
            rows = binary(labels, scores, pos_label=plan.pos_label)
        _same_pair(plan, source, batch.start, rows)
        yield source, batch, rows


def _same_pair(plan: _Plan, source: Source, start: int, rows: Rows) -> None:
    """Refuse a batch whose negative label is not that of the batches before: 0 and -1, or a third value."""
    if rows.negative is None:
        return
    if plan.negative is None:
        plan.negative, plan.negative_from = rows.negative, source.path
    elif rows.negative != plan.negative:
        row = start + int(np.argmax(rows.labels != rows.positive)) + 1
        raise InputError(
            f"{shown(source.path)}: column {shown(str(plan.label))} must hold two labels; got "
            f"{rows.negative!r} at data row {row} "
            f"beside {rows.positive!r} and {plan.negative!r} (from {shown(plan.negative_from)})"
        )


@contextmanager
def _located(source: Source, start: int, plan: _Plan, score: str | None = None) -> Iterator[None]:
    """Say in which file, column and data row the fault is that the wrapped check finds."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        message = str(error)
        if plan.classes is not None:
            message = _in_words_of_classes(message, plan.classes, start)
        message = in_words_of_the_command(message, plan.label, score or plan.score, start)
        raise InputError(f"{shown(source.path)}: {message}") from error


def _in_words_of_classes(message: str, classes: Classes, start: int) -> str:
    """A message about a matrix with columns and data rows for its indices.

    >>> _in_words_of_classes("P must lie in [0, 1]; got 1.2 at row 6, column 1", Classes.of("a,b"), 100)
    'probabilities must lie in [0, 1]; got 1.2 at data row 107 of column b'
    """

    def place(match: re.Match[str]) -> str:
        return f"data row {int(match[1]) + start + 1} of column {shown(classes.columns[int(match[2])])}"

    message = re.sub(r"\brow (\d+), column (\d+)", place, message)
    message = re.sub(r"; row (\d+) sums", lambda m: f"; data row {int(m[1]) + start + 1} sums", message)
    message = message.replace("pass P / 100", "divide the columns by 100")
    message = message.replace("pass np.exp(P)", "take their exponentials")
    message = message.replace(
        "these look like logits; pass their softmax", "these look like logits, not their softmax"
    )
    message = message.replace("pass probabilities of all classes", "name the columns of all classes")
    message = re.sub(r"pass labels=range\(1, \d+\)", _numbers_from_1(len(classes.columns)), message)
    message = message.replace("the columns of P", "numbers of the columns of --classes")
    message = message.replace("labels of columns of P", "labels of columns of --classes")
    return re.sub(r"^P\b", "probabilities", message)


def _numbers_from_1(k: int) -> str:
    numbers = [str(j) for j in range(1, k + 1)]
    return "give --class-labels " + ",".join(numbers if k <= 4 else [*numbers[:3], "...", numbers[-1]])


def in_words_of_the_command(
    message: str, label: str | None = None, score: str | None = None, start: int = 0
) -> str:
    """A message of the Python interface with columns, options and data rows for arguments and indices.

    >>> in_words_of_the_command(
    ...     "y_prob must lie in [0, 1]; got 1.2 at index 6 (and 3 more)", "late", "p", 100
    ... )
    'column p must lie in [0, 1]; got 1.2 at data row 107 (and at least 3 more)'
    >>> in_words_of_the_command("delta must lie strictly between 0 and 1; got 95", "late", "p")
    '--delta must lie strictly between 0 and 1; got 95'
    """
    message = message.replace(
        "are the arguments swapped? The order is (y_true, y_prob)", "are --label and --score swapped?"
    )
    message = message.replace("percent; pass y_prob / 100", "percent; divide the column by 100")
    message = re.sub(r"[;:] convert it, e\.g\. with \.astype\(float\)", "", message)
    message = re.sub(r"\bindex (\d+)", lambda match: f"data row {int(match[1]) + start + 1}", message)
    message = re.sub(r"\(and (\d+ more)\)", r"(and at least \1)", message)
    message = re.sub(r"\bpass pos_label=", "pass --pos-label ", message)
    message = re.sub(r"\bgrid='(\w+)'", r"--grid \1", message)
    message = re.sub(r"\bmethod='([\w-]+)'", r"--method \1", message)
    message = re.sub(r"\b(beside|or|uses) (variation|lipschitz|perturbed)\b", r"\1 --\2", message)
    message = re.sub(r"\bn_cells=(\d+)", r"--cells \1", message)
    message = re.sub(rf"^({'|'.join(_OPTIONS)})\b", lambda match: "--" + match[1].replace("_", "-"), message)
    message = re.sub(r"^y_true\b", f"column {shown(label or 'y_true')}", message)
    message = re.sub(r"^y_prob\b", f"column {shown(score or 'y_prob')}", message)
    message = re.sub(r"\by_true\b", shown(label or "y_true"), message)
    return re.sub(r"\by_prob\b", shown(score or "y_prob"), message)


_OPTIONS = (
    "delta",
    "side",
    "method",
    "variation",
    "lipschitz",
    "perturbed",
    "groups",
    "pos_label",
    "n_folds",
    "target",
    "ce",
    "base_rate",
    "max_ce",
)
