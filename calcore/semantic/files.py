"""Files of questions, one a row: JSON lines or Parquet, read and written row by row in bounded memory."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from calcore.semantic.records import Misfit, Question, brief, question_of
from calcore.table.storage import replacing

__all__ = ["SUFFIXES", "is_parquet", "read_questions", "writing_questions"]

SUFFIXES = (".jsonl", ".ndjson", ".parquet", ".pq")

_ROWS = 256
"""Questions in one batch of a Parquet file: with fifty long answers each that is tens of megabytes."""

_OTHERS = "other_fields"
"""Column of a Parquet file that holds fields without a column of their own, as JSON."""

_MEAN = "verbalized_mean"
"""Column of a Parquet file for ``verbalized`` where that is one number: a column has one type."""

_DIGITS = 4300
"""Longest whole number that is read, as Python has it by default."""

PathLike = str | os.PathLike[str]
Progress = Callable[[float, int], None]


def read_questions(
    path: PathLike | Sequence[PathLike], *, progress: Progress | None = None
) -> Iterator[Question | Misfit]:
    """Read questions one by one; rows that do not fit come as a `Misfit` in their place.

    Parameters
    ----------
    path : path-like, or sequence of path-like
        ``.jsonl`` or ``.ndjson``: one JSON object a line, in UTF-8; ``.parquet`` or ``.pq``: needs pyarrow.
        For the fields see `question_of`. Several files are read one after the other.
    progress : callable, optional
        Called with the fraction of the files and the number of rows read.

    Yields
    ------
    Question or Misfit
        In the order of rows; empty lines are passed over. Of several rows of a file with one id the first
        counts.

    Raises
    ------
    ValueError
        The suffix is unknown; the file is no Parquet, or a JSON array in place of lines; or an id is in two
        files: they hold answers of two models, or the same ones twice.
    OSError
        The file cannot be read.

    Notes
    -----
    Memory is that of the ids and of one row, of Parquet 256 rows.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "q.jsonl")
    ...     with open(name, "w") as file:
    ...         _ = file.write('{"id": "a", "answers": ["4", "four"]}\\n{"answers": []}\\n')
    ...     [type(each).__name__ for each in read_questions(name)]
    ['Question', 'Misfit']
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    names = [os.fsdecode(each) for each in paths]
    readers = [_parquet_rows if is_parquet(name) else _json_rows for name in names]
    before: dict[str, str] = {}
    n_rows = 0
    for i, (name, rows) in enumerate(zip(names, readers, strict=True)):
        seen: dict[str, int] = {}
        for number, (fraction, row) in enumerate(rows(name), 1):
            made = _checked(row, number, seen)
            if isinstance(made, Misfit) and len(names) > 1:
                made = replace(made, file=name)
            elif made.id in before:
                raise ValueError(
                    f"{brief(name, 200)}: id {brief(made.id)} is also in {brief(before[made.id], 200)}; "
                    "files that are read together must hold different questions"
                )
            yield made
            n_rows += 1
            if progress is not None:
                progress((i + fraction) / len(names), n_rows)
        if i + 1 < len(names):
            before |= dict.fromkeys(seen, name)


def _checked(row: Any, number: int, seen: dict[str, int]) -> Question | Misfit:
    if isinstance(row, Misfit):
        return Misfit(row.id, number, row.reason)
    try:
        made = question_of(row)
    except ValueError as error:
        given = row.get("id") if isinstance(row, dict) else None
        known = isinstance(given, str | int) and not isinstance(given, bool) and given != ""
        return Misfit(str(given) if known else None, number, str(error))
    if made.id in seen:
        return Misfit(made.id, number, f"the id is also that of row {seen[made.id]:,}")
    seen[made.id] = number
    return made


def is_parquet(name: str) -> bool:
    """Whether a file of that name is Parquet; ValueError if it is neither that nor JSON lines.

    >>> is_parquet("a.pq"), is_parquet("a.jsonl")
    (True, False)
    """
    suffix = os.path.splitext(name)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{brief(name, 200)} must end in one of {', '.join(SUFFIXES)}")
    return suffix in (".parquet", ".pq")


def _json_rows(name: str) -> Iterator[tuple[float, Any]]:
    with Path(name).open("rb") as file:
        size, done, is_first = max(1, os.fstat(file.fileno()).st_size), 0, True
        for line in file:
            text = line.removeprefix(b"\xef\xbb\xbf") if done == 0 else line
            done += len(line)
            if not text.strip():
                continue
            if is_first and (text.lstrip()[:1] == b"[" or text.strip() == b"{"):
                raise ValueError(
                    f"{brief(name, 200)} holds JSON over several lines; write one object a line: jq -c '.[]'"
                )
            is_first = False
            yield done / size, _json_of(text)


def _json_of(line: bytes) -> Any:
    """The object of a line, or why there is none."""
    try:
        return json.loads(line.decode(), object_pairs_hook=_unique, parse_int=_whole)
    except UnicodeDecodeError as error:
        return Misfit(None, 0, f"the line is not UTF-8, at byte {error.start}")
    except RecursionError:
        return Misfit(None, 0, "the line is nested too deeply")
    except json.JSONDecodeError as error:
        return Misfit(None, 0, f"the line is not JSON: {error.msg} at character {error.pos}")
    except ValueError as error:
        return Misfit(None, 0, str(error))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise ValueError(f"the name {brief(twice)} is there twice in an object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"the line holds a number of {len(digits):,} digits")
    return int(digits)


def _parquet_rows(name: str) -> Iterator[tuple[float, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    with Path(name).open("rb") as file:
        try:
            source = parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
            columns = source.schema_arrow.names
            twice = next((column for column in columns if columns.count(column) > 1), None)
            if twice is not None:
                raise pa.ArrowInvalid(f"there are two columns {brief(twice)}")
            done = 0
            for batch in source.iter_batches(_ROWS):
                for values in zip(*map(_values, batch.columns), strict=True):
                    done += 1
                    row = dict(zip(columns, values, strict=True))
                    yield done / source.metadata.num_rows, _with_others(row)
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise ValueError(f"{brief(name, 200)} cannot be read as Parquet: {said}") from error


def _values(column: Any) -> list[Any]:
    """A column as Python has it; what it has not (times after the year 9999, nanoseconds) as text."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_value(each) for each in column]
    return values


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        try:
            return scalar.cast(pa.string()).as_py()
        except pa.ArrowException:
            return f"<{scalar.type}>"


def _with_others(row: dict[str, Any]) -> dict[str, Any] | Misfit:
    """A row with the fields that have no column; what has one stays."""
    others, mean = row.pop(_OTHERS, None), row.pop(_MEAN, None)
    row = {name: value for name, value in row.items() if value is not None}
    if mean is not None:
        row.setdefault("verbalized", mean)
    if others is None:
        return row
    found = _json_of(others.encode("utf-8", "surrogatepass")) if isinstance(others, str) else None
    if not isinstance(found, dict):
        given = row.get("id")
        known = isinstance(given, str | int)
        reason = f"{_OTHERS} must hold a JSON object as text; got {brief(others)}"
        return Misfit(str(given) if known else None, 0, reason)
    return found | row


@contextmanager
def writing_questions(path: str | os.PathLike[str]) -> Iterator[Callable[[Question], None]]:
    """A function that writes a question to a file, which is there when all are written, or not at all.

    Parameters
    ----------
    path : path-like
        As for `read_questions`. Parquet gets one column a field, and what else a row held as JSON.

    Raises
    ------
    ValueError
        The suffix is unknown.
    OSError
        The file cannot be written.
    """
    name = os.fsdecode(path)
    if is_parquet(name):
        with replacing(name) as part, _writing_parquet(part) as write:
            yield write
        return
    # Half of a surrogate pair, in a field of others, goes back as the escape that it came as.
    with (
        replacing(name) as part,
        open(part, "x", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):

        def write_line(question: Question) -> None:
            file.write(_json(question.to_dict(), ensure_ascii=False) + "\n")

        yield write_line


def _json(row: Any, *, ensure_ascii: bool = True) -> str:
    return json.dumps(_plain(row), ensure_ascii=ensure_ascii, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value of other fields as JSON has it: NaN and infinities are null, bytes and times are text.

    >>> _plain({"a": [float("nan"), b"x\\xff"], 1: (True, None)})
    {'a': [None, 'x\\\\xff'], '1': [True, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else str(value)


@contextmanager
def _writing_parquet(part: str) -> Iterator[Callable[[Question], None]]:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {
        "id": pa.string(),
        "question": pa.string(),
        "gold_answer": pa.string(),
        "answers": pa.list_(pa.string()),
        "assignments": pa.list_(pa.int32()),
        "modal_cluster": pa.int32(),
        "verbalized": pa.list_(pa.float64()),
        _MEAN: pa.float64(),
        "logit": pa.float64(),
        "class_grades": pa.map_(pa.int32(), pa.int8()),
        "Y": pa.int8(),
        _OTHERS: pa.string(),
    }
    schema = pa.schema(list(kinds.items()))
    held: list[dict[str, Any]] = []
    with open(part, "xb") as file, parquet.ParquetWriter(file, schema) as writer:

        def write(question: Question) -> None:
            row = question.to_dict()
            if isinstance(question.verbalized, float):
                row[_MEAN] = row.pop("verbalized")
            row["class_grades"] = list(question.class_grades.items()) or None
            others = {key: row.pop(key) for key in question.others if key in row}
            row[_OTHERS] = _json(others) if others else None
            held.append(row)
            if len(held) == _ROWS:
                writer.write_table(pa.Table.from_pylist(held, schema))
                held.clear()

        yield write
        writer.write_table(pa.Table.from_pylist(held, schema))
