"""Files of questions, one a row: JSON lines or Parquet, read and written row by row in bounded memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

Progress = Callable[[float, int], None]


def read_questions(
    path: str | os.PathLike[str], *, progress: Progress | None = None
) -> Iterator[Question | Misfit]:
    """Read questions one by one; rows that do not fit come as a `Misfit` in their place.

    Parameters
    ----------
    path : path-like
        ``.jsonl`` or ``.ndjson``: one JSON object a line, in UTF-8; ``.parquet`` or ``.pq``: needs pyarrow.
        For the fields see `question_of`.
    progress : callable, optional
        Called with the fraction of the file and the number of rows read.

    Yields
    ------
    Question or Misfit
        In the order of rows; empty lines are passed over. Of several rows with one id the first counts.

    Raises
    ------
    ValueError
        The suffix is unknown, or the file is no Parquet.
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
    name = os.fsdecode(path)
    rows = _parquet_rows if is_parquet(name) else _json_rows
    seen: dict[str, int] = {}
    for number, (fraction, row) in enumerate(rows(name), 1):
        yield _checked(row, number, seen)
        if progress is not None:
            progress(fraction, number)


def _checked(row: Any, number: int, seen: dict[str, int]) -> Question | Misfit:
    if isinstance(row, Misfit):
        return Misfit(None, number, row.reason)
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
        size, done = max(1, os.fstat(file.fileno()).st_size), 0
        for line in file:
            text = line.removeprefix(b"\xef\xbb\xbf") if done == 0 else line
            done += len(line)
            if text.strip():
                yield done / size, _json_of(text)


def _json_of(line: bytes) -> Any:
    """The object of a line, or why there is none."""
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        return Misfit(None, 0, f"the line is not UTF-8, at byte {error.start}")
    except RecursionError:
        return Misfit(None, 0, "the line is nested too deeply")
    except ValueError as error:
        said = str(error).replace("line 1 column", "column")
        return Misfit(None, 0, f"the line is not JSON: {said.splitlines()[0]}")


def _parquet_rows(name: str) -> Iterator[tuple[float, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    with Path(name).open("rb") as file:
        try:
            source = parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
            done = 0
            for batch in source.iter_batches(_ROWS):
                for row in batch.to_pylist():
                    done += 1
                    others, mean = row.pop(_OTHERS, None), row.pop(_MEAN, None)
                    row |= {} if others is None else json.loads(others)
                    row |= {} if mean is None else {"verbalized": mean}
                    yield done / source.metadata.num_rows, row
        except (pa.ArrowException, UnicodeDecodeError, json.JSONDecodeError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise ValueError(f"{brief(name, 200)} cannot be read as Parquet: {said}") from error


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
            file.write(json.dumps(question.to_dict(), ensure_ascii=False, default=str) + "\n")

        yield write_line


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
            row[_OTHERS] = json.dumps(others, default=str) if others else None
            held.append(row)
            if len(held) == _ROWS:
                writer.write_table(pa.Table.from_pylist(held, schema))
                held.clear()

        yield write
        writer.write_table(pa.Table.from_pylist(held, schema))
