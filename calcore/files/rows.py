"""All rows of files, for what needs single rows: labels, scores of one model or several, classes, groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calcore._validate import Rows, binary
from calcore.files.arrays import as_numpy
from calcore.files.columns import codable, find_column, read_columns
from calcore.files.formats import open_source
from calcore.files.paths import InputError, expand, shown
from calcore.files.plan import Classes, Plan, Progress, batches, class_batches, is_table, located, plan_of
from calcore.table import CellTable, ScoreTable, grid_for

__all__ = [
    "Held",
    "Members",
    "ProbabilityRows",
    "SingleRows",
    "take_in_classes",
    "take_in_joined",
    "take_in_rows",
    "take_in_scores",
]

_CHECK_ROWS = 1 << 16
_SAMPLE = 1 << 16


@dataclass(frozen=True, slots=True)
class Members:
    """What each row belongs to, a group or a segment: a number, and the values that the numbers stand for."""

    codes: NDArray[np.int64]
    names: pa.Array

    def values(self) -> NDArray[np.object_]:
        """The value of each row."""
        names = np.empty(len(self.names), object)
        names[:] = self.names.to_pylist()
        return names[self.codes]


@dataclass(frozen=True, slots=True)
class SingleRows:
    """All rows: labels 0/1, the scores of each model as they came, and groups and segments if asked for."""

    labels: NDArray[np.uint8]
    scores: tuple[NDArray[Any], ...]
    groups: Members | None
    segments: Members | None
    files: tuple[str, ...]
    label: str
    columns: tuple[str, ...]
    """Of the scores of each model, or of one model's classes."""
    population: str

    @property
    def score(self) -> str:
        """The column of the first model; its columns in words."""
        return self.columns[0] if self.versus else ", ".join(self.columns)

    @property
    def versus(self) -> str | None:
        """The column of the second model, if there is one."""
        return self.columns[1] if len(self.scores) > 1 else None


@dataclass(frozen=True, slots=True)
class ProbabilityRows:
    """All rows of several classes: the number of each row's class, and the probabilities of all classes."""

    codes: NDArray[np.int64]
    matrix: NDArray[Any]
    names: tuple[Any, ...]
    """The label of each class; the column where labels are numbers of columns."""
    groups: Members | None
    segments: Members | None
    files: tuple[str, ...]
    label: str
    columns: tuple[str, ...]
    population: str

    @property
    def score(self) -> str:
        """All columns in words."""
        return ", ".join(self.columns)


def take_in_rows(
    patterns: Sequence[str],
    *,
    label: str | None = None,
    scores: Sequence[tuple[str, str]] = (),
    pos_label: str | None = None,
    classes: Classes | None = None,
    groups: str | None = None,
    by: str | None = None,
    groups_option: str = "--groups",
    by_option: str = "--by",
    command: str = "calcore certify",
    progress: Progress | None = None,
) -> SingleRows:
    """Read all rows; memory is that of the columns.

    Parameters
    ----------
    patterns, label, pos_label, classes, command, progress
        As for `calcore.files.take_in`.
    scores : sequence of (str, str), optional
        The option that named it, and the column, of each model; default one column that is found.
    groups, by : str, optional
        Columns of what rows belong to, and of segments. Their values are numbered over all files: equal
        values are one group.
    groups_option, by_option : str
        What asked for them.

    Raises
    ------
    InputError
        Anything wrong with files, columns or rows.
    """
    plan = plan_of(patterns, label, scores, pos_label, command, classes=classes)
    if plan.tables or plan.label is None:
        why = f"rows to draw from ({groups_option})" if groups else f"single rows, which {command} needs"
        raise InputError(f"{shown(plan.tables[0])}: a saved table has no {why}")
    members = _MembersOf(plan, groups, by, (groups_option, by_option))
    held = [Held() for _ in range(1 if classes is not None else 1 + len(plan.others))]
    for source, batch, rows in batches(plan, progress, members.columns):
        with located(source, batch.start, plan):
            held[0].add(rows)
        for each, name, column in zip(held[1:], plan.others, batch.others, strict=classes is None):
            with located(source, batch.start, plan, name):
                each.add(binary(batch.labels, column, pos_label=plan.pos_label))
            each.labels.clear()  # those of the first
        members.add(batch.members)
    if held[0].n_rows == 0:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    return SingleRows(
        held[0].all_labels(),
        tuple(each.all_scores() for each in held),
        *members.coded(),
        plan.files,
        plan.label,
        plan.scores,
        plan.population,
    )


class _MembersOf:
    """Columns of groups and segments, while they are read."""

    def __init__(
        self, plan: Plan, groups: str | None, by: str | None, options: tuple[str, str] = ("--groups", "--by")
    ) -> None:
        self._names = (groups, by)
        self._parts: tuple[list[pa.Array], list[pa.Array]] = ([], [])
        for asked, name in zip(options, (groups, by), strict=True):
            if name is None:
                continue
            for what, taken in (("label", plan.label), *(("score", column) for column in plan.scores)):
                if name == taken:
                    raise InputError(f"{asked} {shown(name)}: is the {what} column; name what rows belong to")
            for source in plan.sources:
                find_column(source, name, asked)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self._names if name is not None)

    def add(self, members: Sequence[pa.Array]) -> None:
        wanted = (parts for parts, name in zip(self._parts, self._names, strict=True) if name is not None)
        for parts, values in zip(wanted, members, strict=True):
            parts.append(values)

    def coded(self) -> tuple[Members | None, Members | None]:
        """Groups and segments; None for what was not asked for."""
        groups, by = self._names
        return (
            None if groups is None else _coded(self._parts[0], groups),
            None if by is None else _coded(self._parts[1], by),
        )


def _coded(members: Sequence[pa.Array], name: str) -> Members:
    """A number for each value of a column, and the values that the numbers stand for."""
    kinds = {str(part.type) for part in members}
    if len(kinds) > 1:
        raise InputError(
            f"column {shown(name)} must have one type in all files; it has {', '.join(sorted(kinds))}"
        )
    try:
        codes = pa.chunked_array(list(map(codable, members))).dictionary_encode().combine_chunks()
    except pa.ArrowException as error:
        raise InputError(
            f"column {shown(name)} holds {kinds.pop()}, which cannot be told apart; name a column of numbers "
            "or text"
        ) from error
    coded = codes if isinstance(codes, pa.DictionaryArray) else codes.chunk(0)
    return Members(as_numpy(coded.indices), coded.dictionary)


def take_in_classes(
    patterns: Sequence[str],
    classes: Classes,
    *,
    label: str | None = None,
    groups: str | None = None,
    by: str | None = None,
    command: str = "calcore certify",
    progress: Progress | None = None,
) -> ProbabilityRows:
    """Read all rows of several classes; parameters as for `take_in_rows`.

    Memory is that of the columns, and of one column more.
    """
    plan = plan_of(patterns, label, (), None, command, classes=classes)
    assert plan.label is not None
    members = _MembersOf(plan, groups, by)
    columns: list[list[NDArray[Any]]] = [[] for _ in plan.scores]
    codes: list[NDArray[np.int64]] = []
    for batch, rows in class_batches(plan, progress, members.columns):
        codes.append(rows.codes)
        for parts, column in zip(columns, (batch.scores, *batch.others), strict=True):
            parts.append(column)
        members.add(batch.members)
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
        plan.class_labels or plan.scores,
        *members.coded(),
        plan.files,
        plan.label,
        plan.scores,
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
) -> SingleRows:
    """Read the scores of two models from two files, rows matched by column `on`; others as `take_in_rows`.

    Every value of `on` must be once in each file, with the same label: a row that only one model has scored
    would make the comparison one of different rows. Rows are in the order of the first file, which has the
    groups too.
    """
    paths = expand(patterns)
    if len(paths) != 2:
        raise InputError(f"--on {shown(on)} joins two files; got {len(paths)}")

    def read(path: str, name: str, belong: str | None) -> tuple[SingleRows, Members]:
        rows = take_in_rows(
            [path],
            label=label,
            scores=[("--score", name)],
            pos_label=pos_label,
            groups=on,
            groups_option="--on",
            by=belong,
            by_option="--groups",
            command=command,
            progress=progress,
        )
        assert rows.groups is not None
        return rows, rows.groups

    (first, here), (second, there) = read(paths[0], score, groups), read(paths[1], versus, None)
    for given, members in ((first, here), (second, there)):
        repeated = np.flatnonzero(np.bincount(members.codes) > 1)
        if len(repeated):
            value = shown(str(members.names[int(repeated[0])]))
            raise InputError(
                f"{shown(given.files[0])}: column {shown(on)} (--on) must name each row once; it has {value} "
                f"several times{_and_more(repeated)}"
            )
    if here.names.type != there.names.type:
        raise InputError(
            f"column {shown(on)} must have one type in both files; it has {here.names.type} and "
            f"{there.names.type}"
        )
    for (one, names), (other, others) in (
        ((first, here.names), (second, there.names)),
        ((second, there.names), (first, here.names)),
    ):
        missing = np.flatnonzero(as_numpy(_looked_up("is_in", names, others)) == 0)
        if len(missing):
            value = shown(str(names[int(missing[0])]))
            raise InputError(
                f"{shown(other.files[0])}: has no row with {shown(on)} {value}{_and_more(missing)}, "
                f"which {shown(one.files[0])} has; keep the rows that both files have"
            )
    place = as_numpy(_looked_up("index_in", here.names, there.names)).astype(np.int64)
    row = np.empty(len(there.codes), np.int64)
    row[there.codes] = np.arange(len(row))
    matched = row[place[here.codes]]
    differs = np.flatnonzero(first.labels != second.labels[matched])
    if len(differs):
        value = shown(str(here.names[int(here.codes[differs[0]])]))
        raise InputError(
            f"labels must agree in both files; those of {shown(on)} {value} differ{_and_more(differs)}"
        )
    same = first.population if first.population == second.population else ""
    return SingleRows(
        first.labels,
        (first.scores[0], second.scores[0][matched]),
        first.segments,
        None,
        (*first.files, *second.files),
        first.label,
        (score, versus),
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
        for batch in read_columns(source, score, [score]):
            parts.append(batch.scores.astype(np.float64))
            if progress is not None:
                progress(source.progress, batch.start + len(batch.scores))
    if not parts:
        raise InputError(f"{', '.join(map(shown, patterns))}: no rows")
    return np.concatenate(parts)


class Held:
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

    def all_labels(self) -> NDArray[np.uint8]:
        return np.concatenate(self.labels)

    def all_scores(self) -> NDArray[Any]:
        scores = self.scores
        if len({part.dtype for part in scores}) > 1:
            # What is a rounding error in float32 would be a fault once it is float64: make it one of float64.
            low, high = np.nextafter([0.0, 1.0], [-1.0, 2.0])
            scores = [np.clip(part.astype(np.float64), low, high) for part in scores]
        return np.concatenate(scores)

    def sorted(self) -> ScoreTable:
        return ScoreTable(self.all_labels(), self.all_scores())

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
