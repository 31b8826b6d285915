"""Which columns of which files are labels, scores, classes; and their rows, checked, batch by batch.

Every batch passes through `calcore._validate`; what is added here is where a fault is: file, column and
data row.
"""

from __future__ import annotations

import csv
import fnmatch
import itertools
import math
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Self

import numpy as np

from calcore._classes import ClassRows, class_rows
from calcore._validate import Rows, binary
from calcore.files.columns import (
    Batch,
    choose_columns,
    choose_label,
    find_column,
    first_values,
    list_length,
    read_columns,
)
from calcore.files.formats import Column, Source, open_source
from calcore.files.paths import InputError, expand, shown
from calcore.files.words import in_words_of_classes, in_words_of_the_command

__all__ = ["Classes", "Plan", "Progress", "batches", "class_batches", "is_table", "located", "plan_of"]

Progress = Callable[[float, int], None]
"""Called with the fraction of the bytes and the number of rows read so far."""


@dataclass(frozen=True, slots=True)
class Classes:
    """What ``--classes`` and ``--class-labels`` were given: columns by name or pattern, or one of lists.

    Labels are as typed; None: see `_class_labels`.
    """

    columns: tuple[str, ...]
    labels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, columns: str, labels: str | None = None) -> Self:
        """From what was typed: names with commas between.

        >>> Classes.of('p_cat,"p,dog"', "cat,dog")
        Classes(columns=('p_cat', 'p,dog'), labels=('cat', 'dog'))
        """
        names = _split(columns, "--classes", "column")
        return cls(names, None if labels is None else _split(labels, "--class-labels", "label"))


class _ClassColumns(NamedTuple):
    """Columns of probabilities in a file: their names; the column whose lists they are; their labels."""

    names: tuple[str, ...]
    lists: str | None = None
    matched: tuple[str, ...] | None = None
    """If a pattern found them: what its one ``*`` stands for; else what is not the same in all names."""

    @classmethod
    def found(cls, source: Source, classes: Classes, label: str | None) -> Self:
        """The columns that were meant, as they were typed; those of a pattern in the order of the file."""
        there = [column.name for column in source.columns]
        if len(classes.columns) == 1:
            only = classes.columns[0]
            kind = next((column.kind for column in source.columns if column.name == only), None)
            if kind == "list":
                names: tuple[str, ...] = tuple(f"{only}[{j}]" for j in range(list_length(source, only)))
                return cls(cls._counted(names, classes), lists=only)
            if kind == "other":
                held = next(column.type for column in source.columns if column.name == only)
                where = f"{shown(source.path)}: column {shown(only)} (--classes)"
                raise InputError(f"{where} holds {held}, not lists of numbers")
        names = ()
        for typed in classes.columns:
            if typed in there or not _is_pattern(typed):
                names += (typed,)
            else:
                names += tuple(name for name in _matching(source, typed) if name != label)
        names = tuple(dict.fromkeys(names))
        if all(typed in there or not _is_pattern(typed) for typed in classes.columns):
            return cls(cls._counted(names, classes))
        before, star, after = classes.columns[0].partition("*")
        if len(classes.columns) == 1 and star and not _is_pattern(before + after):
            parts = tuple(name[len(before) : len(name) - len(after)] for name in names)
        else:
            parts = _varying(names)
        return cls(cls._counted(names, classes), matched=parts)

    @staticmethod
    def _counted(names: tuple[str, ...], classes: Classes) -> tuple[str, ...]:
        if len(names) < 2:
            raise InputError(
                "--classes must name at least two columns, with commas between, or one of lists; got "
                f"{shown(','.join(classes.columns))}"
            )
        if classes.labels is not None and len(classes.labels) != len(names):
            raise InputError(
                f"--class-labels must name every column of --classes; got {len(classes.labels)} labels for "
                f"{len(names)} columns"
            )
        return names


def _varying(names: tuple[str, ...]) -> tuple[str, ...]:
    """What names do not have in common at their beginning and end; numbers are not divided.

    >>> _varying(("p_10", "p_12")), _varying(("cat_prob", "dog_prob")), _varying(("p_1.0", "p_2.0"))
    (('10', '12'), ('cat', 'dog'), ('1.0', '2.0'))
    """
    before = _shared_start(names)
    ends = [name[len(before) :][::-1] for name in names]
    after = _shared_start(ends)
    return tuple(end[len(after) :][::-1] for end in ends)


def _shared_start(names: Sequence[str]) -> str:
    columns = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in columns).rstrip("0123456789.")


def _is_pattern(typed: str) -> bool:
    return any(letter in typed for letter in "*?[")


def _matching(source: Source, pattern: str) -> list[str]:
    names = [column.name for column in source.columns if fnmatch.fnmatchcase(column.name, pattern)]
    if not names:
        listed = ", ".join(shown(column.name) for column in source.columns[:20])
        raise InputError(
            f"{shown(source.path)}: no column matches {shown(pattern)} (--classes); it has {listed}"
        )
    return names


def _split(typed: str, option: str, what: str) -> tuple[str, ...]:
    try:
        names = next(csv.reader([typed], skipinitialspace=True), [])
    except csv.Error as error:
        raise InputError(f"{option} {shown(typed)}: {error}") from error
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"{option} names {what} {shown(twice)} twice")
    return tuple(names)


@dataclass(slots=True)
class Plan:
    """Which columns to read from which files, and which label value turned out to be the negative one."""

    tables: list[str]
    sources: list[Source]
    label: str | None
    scores: tuple[str, ...]
    """Columns of scores: of each model, or of each class."""
    pos_label: Any
    class_labels: tuple[Any, ...] | None = None
    has_classes: bool = False
    lists: str | None = None
    """The column whose lists hold the probabilities of all classes."""
    negative: Any = None
    negative_from: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.tables, *(source.path for source in self.sources))

    @property
    def score(self) -> str | None:
        """The first column, or all columns of classes in words; None if there are only tables."""
        return ", ".join(self.scores if self.has_classes else self.scores[:1]) or None

    @property
    def others(self) -> tuple[str, ...]:
        """All columns of scores after the first."""
        return self.scores[1:]

    @property
    def population(self) -> str:
        """What the files say, if all say the same."""
        said = {source.population for source in self.sources}
        return said.pop() if len(said) == 1 and not self.tables else ""


def is_table(path: str) -> bool:
    """Whether a file was written by `CellTable.save`, by its first bytes; the name does not matter."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_TABLE_MARK)) == _TABLE_MARK
    except OSError as error:
        raise InputError(f"{shown(path)}: {error.strerror}") from error


_TABLE_MARK = b'{"format": "calcore cell table"'


def plan_of(
    patterns: Sequence[str],
    label: str | None,
    scores: Sequence[tuple[str, str]],
    pos_label: str | None,
    command: str,
    classes: Classes | None = None,
) -> Plan:
    """Open the files and find the columns; `scores` are those of models, with the options that named them."""
    tables, sources = [], []
    for path in expand(patterns):
        if is_table(path):
            tables.append(path)
        else:
            sources.append(open_source(path))
    if tables and (len(scores) > 1 or classes):
        raise InputError(f"{shown(tables[0])}: a saved table has no single rows: name files with all columns")
    if not sources:
        for option, given in (("--label", label), *scores, ("--pos-label", pos_label)):
            if given is not None:
                raise InputError(
                    f"{shown(tables[0])}: a saved table has its columns already: leave out {option}"
                )
        return Plan(tables, [], None, (), None)
    command = f"{command} {' '.join(shlex.quote(pattern) for pattern in patterns)}"
    if classes is not None:
        return _plan_of_classes(tables, sources, label, classes, command)
    if len(scores) > 1:
        twice = next((name for i, (_, name) in enumerate(scores) if name in [n for _, n in scores[:i]]), None)
        if twice is not None:
            options = " and ".join(dict.fromkeys(option for option, name in scores if name == twice))
            both = "both name" if " and " in options else "names twice the"
            raise InputError(f"{options} {both} column {shown(twice)}")
        command += "".join(f" {option} {shlex.quote(name)}" for option, name in scores)
        label = _label_beside(sources[0], label, scores, command)
    else:
        label, score = choose_columns(sources[0], label, scores[0][1] if scores else None, command=command)
        scores = [("--score", score)]
    labels = []
    for source in sources:
        labels.append(find_column(source, label, "--label"))
        for option, name in scores:
            find_column(source, name, option)
    return Plan(
        tables, sources, label, tuple(name for _, name in scores), _positive(sources, labels, pos_label)
    )


def _plan_of_classes(
    tables: list[str], sources: list[Source], label: str | None, classes: Classes, command: str
) -> Plan:
    found = _ClassColumns.found(sources[0], classes, label)
    columns = found.names if found.lists is None else (found.lists,)
    wanted = "number" if found.lists is None else "list"
    for source in sources[1:]:
        other = _ClassColumns.found(source, classes, label)
        if sorted(other.names) != sorted(found.names):
            differs = sorted(set(other.names) ^ set(found.names))
            raise InputError(
                f"{shown(source.path)}: has not the same columns of --classes as {shown(sources[0].path)}: "
                f"{', '.join(map(shown, differs[:4]))}"
            )
    command += f" --classes {shlex.quote(','.join(classes.columns))}"
    label = _label_beside(sources[0], label, [("--classes", name) for name in columns], command)
    labels = []
    for source in sources:
        labels.append(find_column(source, label, "--label"))
        for name in columns:
            column = find_column(source, name, "--classes")
            if column.kind != wanted:
                where = f"{shown(source.path)}: column {shown(name)} (--classes)"
                raise InputError(f"{where} holds {_KINDS[column.kind]}, not {_KINDS[wanted]}")
    names = _class_labels(sources, labels, classes, found)
    return Plan(tables, sources, label, found.names, None, names, has_classes=True, lists=found.lists)


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
    sources: Sequence[Source], columns: Sequence[Column], classes: Classes, found: _ClassColumns
) -> tuple[Any, ...] | None:
    """The label of each column of probabilities as a value of the label column; None: its number.

    If not typed: text is a column's name, or, of columns that a pattern found, the part of the name that is
    not the same in all, if one of these parts is among the first labels. Numbers and truth values are such
    parts too, or else the numbers of columns, in the order of typing.
    """
    for source, column in zip(sources, columns, strict=True):
        _refuse_kind(source, column, sources[0], columns[0])
    if classes.labels is not None:
        return tuple(_typed(typed, "--class-labels", columns[0]) for typed in classes.labels)
    matched, column = found.matched, columns[0]
    where = (
        f"{shown(sources[0].path)}: column {shown(column.name)} holds {_KINDS[column.kind]}: say which label"
    )
    if column.kind == "text":
        if found.lists is not None:
            raise InputError(
                f"{where} each of the {len(found.names)} numbers of {shown(found.lists)} is of, with "
                "--class-labels"
            )
        if matched is not None and set(first_values(sources[0], column.name)) & set(matched):
            return matched
        return found.names
    if matched is None:
        return None
    try:
        labels = tuple(_typed(part, "--classes", column) for part in matched)
    except InputError:
        # columns that a pattern found have no order that anybody chose
        listed = ", ".join(map(shown, found.names[:4])) + (", ..." if len(found.names) > 4 else "")
        raise InputError(f"{where} each column ({listed}) is of, with --class-labels") from None
    return labels


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
            several = "; of several classes name the probabilities of all with --classes"
            raise InputError(
                f"{where} holds text ({', '.join(map(shown, values[:4]))}): say which label is positive, "
                f"{' or '.join(f'--pos-label {shlex.quote(value)}' for value in values[:4] or ['yes'])}"
                + (several if len(values) > 2 else "")
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


_KINDS = {
    "number": "numbers",
    "bool": "true and false",
    "text": "text",
    "list": "lists",
    "other": "neither numbers nor text",
}


def _read(
    plan: Plan, progress: Progress | None, members: Sequence[str] = ()
) -> Iterator[tuple[Source, Batch]]:
    """Batches as read, with their file."""
    if plan.label is None:
        return
    n_rows = 0
    sizes = [max(1, os.path.getsize(source.path)) for source in plan.sources]
    for i, source in enumerate(plan.sources):
        for batch in read_columns(source, plan.label, plan.scores, members, lists=plan.lists):
            n_rows += len(batch.labels)
            if progress is not None:
                progress((sum(sizes[:i]) + source.progress * sizes[i]) / sum(sizes), n_rows)
            yield source, batch


def batches(
    plan: Plan, progress: Progress | None, members: Sequence[str] = ()
) -> Iterator[tuple[Source, Batch, Rows]]:
    """Batches with their file, as read and as rows of two labels whose values are not yet checked."""
    for source, batch in _read(plan, progress, members):
        with located(source, batch.start, plan):
            labels, scores = batch.labels, batch.scores
            if plan.has_classes:
                scores, labels = _class_rows(plan, batch).top()
            rows = binary(labels, scores, pos_label=plan.pos_label)
        _same_pair(plan, source, batch.start, rows)
        yield source, batch, rows


def class_batches(
    plan: Plan, progress: Progress | None, members: Sequence[str] = ()
) -> Iterator[tuple[Batch, ClassRows]]:
    """Batches as read, and as checked rows of several classes."""
    for source, batch in _read(plan, progress, members):
        with located(source, batch.start, plan):
            rows = _class_rows(plan, batch)
        yield batch, rows


def _class_rows(plan: Plan, batch: Batch) -> ClassRows:
    return class_rows(batch.labels, np.column_stack([batch.scores, *batch.others]), plan.class_labels)


def _same_pair(plan: Plan, source: Source, start: int, rows: Rows) -> None:
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
def located(source: Source, start: int, plan: Plan, score: str | None = None) -> Iterator[None]:
    """Say in which file, column and data row the fault is that the wrapped check finds."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        message = str(error)
        if plan.has_classes:
            message = in_words_of_classes(message, plan.scores, start)
        message = in_words_of_the_command(message, plan.label, score or plan.score, start)
        raise InputError(f"{shown(source.path)}: {message}") from error
