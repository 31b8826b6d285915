"""Which columns of a file are the label and the score, and their rows as NumPy arrays."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calcore.files.arrays import as_arrow, as_numpy
from calcore.files.formats import BATCH_ROWS, Column, Source, kind_of
from calcore.files.paths import InputError, reading, shown

__all__ = [
    "Batch",
    "choose_columns",
    "choose_label",
    "find_column",
    "first_values",
    "list_length",
    "read_columns",
]

_PEEK_ROWS = 10_000
_LISTED = 20
_PLAIN = ("number", "bool", "text")
"""Kinds of columns with one value a row."""


def choose_columns(source: Source, label: str | None, score: str | None, *, command: str) -> tuple[str, str]:
    """Names of the label and the score column of a file.

    What is given must be there. What is not given is found if the file has exactly two columns of numbers,
    truth values or text, and only one way to see them: one holds at most two values, the other numbers; 0/1
    wins over any other pair of values.

    Raises
    ------
    InputError
        No such column (with the closest name), or more than one way: the message lists the columns
        with their types and first values and completes `command`.
    """
    for option, name in (("--label", label), ("--score", score)):
        if name is not None:
            find_column(source, name, option)
    if label is not None and label == score:
        raise InputError(f"{shown(source.path)}: --label and --score both name column {shown(label)}")
    if label is not None and score is not None:
        return label, score
    usable = [column.name for column in source.columns if column.kind in _PLAIN]
    if len(set(usable)) < len(usable):
        raise InputError(f"{shown(source.path)}: several columns have the same name: {_names(source)}")
    first = _first_rows(source, usable if len(usable) == 2 else usable[:_LISTED])
    if first and not any(len(values) for values in first.values()):
        raise InputError(f"{shown(source.path)}: no rows")
    if len(usable) == 2:
        pairs = [(a, b) for a, b in (usable, usable[::-1]) if label in (None, a) and score in (None, b)]
        if label is None and score is None:
            pairs = [pair for pair in pairs if _is_pair(first[pair[0]])]
            if len(pairs) == 2:
                pairs = [(a, b) for a, b in pairs if _is_01(first[a]) and not _is_01(first[b])]
        if len(pairs) == 1:
            return pairs[0]
    if len(usable) < 2:
        raise InputError(
            f"{shown(source.path)}: needs a column of labels and one of scores. {_listing(source, first)}"
        )
    label = label or next((name for name in first if name != score and _is_pair(first[name])), "LABEL")
    score = score or next((name for name in first if name != label and _is_score(first[name])), "SCORE")
    raise InputError(
        f"{shown(source.path)}: which column is the label and which the score? {_listing(source, first)}\n"
        f"Name them, for example\n  {command} --label {shlex.quote(label)} --score {shlex.quote(score)}"
    )


def choose_label(source: Source, label: str | None, scores: Sequence[str], *, command: str) -> str:
    """Name of the label column of a file whose columns of scores are known.

    What is not given is found if the file has one column more of numbers, truth values or text.

    Raises
    ------
    InputError
        No such column, or more than one that could be meant: the message lists the columns.
    """
    if label is not None:
        find_column(source, label, "--label")
        return label
    left = [c.name for c in source.columns if c.kind in _PLAIN and c.name not in scores]
    if len(left) == 1:
        return left[0]
    first = _first_rows(source, [c.name for c in source.columns if c.kind in _PLAIN][:_LISTED])
    label = next((name for name in left if name in first and _is_pair(first[name])), "LABEL")
    raise InputError(
        f"{shown(source.path)}: which column is the label? {_listing(source, first)}\n"
        f"Name it, for example\n  {command} --label {shlex.quote(label)}"
    )


def find_column(source: Source, name: str, option: str) -> Column:
    """The column of that name, which `option` asked for."""
    found = [column for column in source.columns if column.name == name]
    if len(found) == 1:
        return found[0]
    where = shown(source.path)
    if found:
        raise InputError(f"{where}: {len(found)} columns are called {shown(name)} ({option})")
    folded = {column.name.casefold(): column.name for column in source.columns}
    close = difflib.get_close_matches(name.casefold(), folded, n=2)
    guess = " or ".join(shown(folded[match]) for match in close)
    hint = f"did you mean {guess}?" if close else f"it has {_names(source)}"
    raise InputError(f"{where}: no column {shown(name)} ({option}); {hint}")


def _names(source: Source) -> str:
    names = [shown(column.name) for column in source.columns]
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return (", ".join(names[:_LISTED]) or "no columns") + more


def _first_rows(source: Source, names: Sequence[str]) -> dict[str, pa.Array]:
    """First rows of each column, read one by one: those that nobody asks for need not have equal lengths."""
    first: dict[str, pa.Array] = {}
    with reading(source.path):
        for name in names:
            batch = next(source.batches([name], rows=_PEEK_ROWS), None)
            first[name] = pa.nulls(0) if batch is None else batch.column(name)
    return first


def _listing(source: Source, first: dict[str, pa.Array]) -> str:
    """The columns with their types and first values, one a line."""
    rows = [(shown(c.name), c.type, _first_values(first.get(c.name))) for c in source.columns[:_LISTED]]
    if not rows:
        return "The file has no columns."
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    lines = [f"  {name:{widths[0]}}  {kind:{widths[1]}}  {values}".rstrip() for name, kind, values in rows]
    more = len(source.columns) - len(rows)
    return "\n".join(["The columns are", *lines, *([f"  and {more:,} more"] if more else [])])


def _first_values(values: pa.Array | None) -> str:
    if values is None:
        return ""
    texts = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values.slice(0, 3).to_pylist()]
    return ", ".join(shown(text if len(text) <= 24 else text[:21] + "...") for text in texts)


def codable(values: pa.Array) -> pa.Array:
    """The same values in a type that every Arrow can find the distinct ones of: half floats as floats."""
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def _distinct(values: pa.Array) -> pa.Array:
    return codable(values).drop_null().unique()


def _is_pair(values: pa.Array) -> bool:
    return kind_of(values.type) in _PLAIN and 1 <= len(_distinct(values)) <= 2


def _is_01(values: pa.Array) -> bool:
    return kind_of(values.type) == "bool" or set(_distinct(values).to_pylist()) <= {0, 1}


def _is_score(values: pa.Array) -> bool:
    if kind_of(values.type) != "number":
        return False
    numbers = _numbers(values.drop_null(), whole=pa.float64())  # however large: this is no fault yet
    return len(numbers) > 0 and bool(np.all((numbers >= -0.01) & (numbers <= 1.01)))


class Batch(NamedTuple):
    """Rows of a file: how many came before, labels, scores, more scores, and what rows belong to."""

    start: int
    labels: NDArray[Any]
    scores: NDArray[Any]
    others: tuple[NDArray[Any], ...]
    members: tuple[pa.Array, ...]


def read_columns(
    source: Source,
    label: str,
    scores: Sequence[str],
    members: Sequence[str] = (),
    *,
    lists: str | None = None,
) -> Iterator[Batch]:
    """Labels and scores of a file, batch by batch, and `members` (groups, segments) as Arrow arrays.

    Numbers keep their type (decimals become float64), truth values become bool, text becomes object
    arrays of str. Numeric columns are not copied. With `lists`, `scores` are what the entries of the lists in
    that column are called.

    Raises
    ------
    InputError
        A missing value, with its 1-based data row; a column that is none of these; a damaged file.
    """
    start = 0
    numeric = list(scores) if lists is None else [lists]
    names = [label, *numeric, *members]
    rows = max(1, 2 * BATCH_ROWS // (1 + len(scores)))
    with reading(source.path):
        for batch in source.batches(
            list(dict.fromkeys(names)), numeric=() if lists is not None else numeric, rows=rows
        ):
            if batch.num_rows == 0:
                continue
            for name in names:
                _refuse_missing(source, name, batch.column(name), start)
            belong = tuple(_member(source, name, batch.column(name), start) for name in members)
            labels = _to_numpy(source, label, batch.column(label))
            if lists is None:
                first, *more = (_to_numpy(source, name, batch.column(name)) for name in scores)
            else:
                first, *more = _entries(source, lists, batch.column(lists), len(scores), start)
            yield Batch(start, labels, first, tuple(more), belong)
            start += batch.num_rows


def _member(source: Source, name: str, values: pa.Array, start: int) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    _refuse_nan(source, name, values, start)
    return as_arrow(as_numpy(values) + 0.0)  # -0.0, which Arrow tells from 0.0, is 0.0


def list_length(source: Source, name: str) -> int:
    """How many numbers the first list of a column has.

    Raises
    ------
    InputError
        There is none.
    """
    values = _first_rows(source, [name])[name]
    if len(values) == 0:
        raise InputError(f"{shown(source.path)}: no rows")
    _refuse_missing(source, name, values, 0)
    return len(values[0].as_py())


def _entries(source: Source, name: str, values: pa.Array, k: int, start: int) -> NDArray[Any]:
    """Lists of k numbers each, as k columns."""
    where = f"{shown(source.path)}: column {shown(name)} (--classes)"
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind_of(values.type) != "list":
        raise InputError(f"{where} holds {values.type}, not lists of numbers")
    if not pa.types.is_fixed_size_list(values.type):
        lengths = as_numpy(pc.call_function("list_value_length", [values]))
        off = np.flatnonzero(lengths != k)
        if len(off):
            raise InputError(
                f"{where} must have {k} numbers in every row; got {lengths[off[0]]} at data row "
                f"{start + int(off[0]) + 1}"
            )
    elif values.type.list_size != k:
        raise InputError(f"{where} must have {k} numbers in every row; got {values.type.list_size}")
    flat = values.flatten()
    if flat.null_count:
        row = start + int(np.argmax(as_numpy(flat.is_null()))) // k + 1
        raise InputError(f"{where} has a missing value at data row {row}")
    return _numbers(flat).reshape(-1, k).T


def first_values(source: Source, name: str) -> list[str]:
    """Distinct values among the first rows of a column, as text."""
    values = _first_rows(source, [name])[name]
    return [str(value) for value in _distinct(values).to_pylist()]


def _refuse_missing(source: Source, name: str, values: pa.Array, start: int) -> None:
    if pa.types.is_dictionary(values.type) and values.dictionary.null_count:
        values = values.dictionary_decode()
    if values.null_count:
        row = start + int(np.argmax(as_numpy(values.is_null()))) + 1
        raise InputError(f"{shown(source.path)}: column {shown(name)} has a missing value at data row {row}")


def _refuse_nan(source: Source, name: str, values: pa.Array, start: int) -> None:
    missing = np.isnan(as_numpy(values))
    if missing.any():
        row = start + int(np.argmax(missing)) + 1
        raise InputError(f"{shown(source.path)}: column {shown(name)} has a missing value at data row {row}")


def _to_numpy(source: Source, name: str, values: pa.Array) -> NDArray[Any]:
    kind = kind_of(values.type)
    if kind == "number":
        return _numbers(values)
    if kind == "bool":
        return as_numpy(values.dictionary_decode() if pa.types.is_dictionary(values.type) else values)
    if kind == "text":
        coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        words: NDArray[Any] = np.array(coded.dictionary.to_pylist(), dtype=object)
        labels: NDArray[Any] = words[as_numpy(coded.indices)]
        return labels
    raise InputError(
        f"{shown(source.path)}: column {shown(name)} holds {values.type}, not numbers, truth values or text"
    )


def _numbers(values: pa.Array, whole: pa.DataType = pa.int64()) -> NDArray[Any]:  # noqa: B008
    """Numbers as NumPy has them; decimals without a fraction as `whole`, in which no two become one."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_decimal(values.type):
        values = values.cast(whole if values.type.scale <= 0 else pa.float64())
    if pa.types.is_null(values.type):
        values = values.cast(pa.float64())
    return as_numpy(values)
