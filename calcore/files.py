"""Columns of files, read front to back in batches of bounded size.

Parquet, Arrow IPC (file and stream; Feather version 2 is the file), CSV, NPY and NPZ become the same two
things: a list of `Column` with their first values, and an iterator of NumPy arrays. Nothing here knows what
a label or a score has to look like; that is for `calcore._validate`. All it decides is which bytes are a
number, a truth value, a text, or missing.

Memory is that of one batch and of the reader's window into the file, not of the file: Parquet column chunks
are read through a buffer instead of whole, NPZ members are inflated piece by piece, and the pages of a
mapped file (NPY, Arrow) are given back after every batch. The exceptions are the writer's choice: one
compressed Arrow record batch is one unit.

Needs pyarrow (the extra ``cli``).
"""

from __future__ import annotations

import csv
import difflib
import glob
import gzip
import mmap
import os
import secrets
import shlex
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import ipc, parquet

__all__ = [
    "Batch",
    "Column",
    "InputError",
    "Source",
    "choose_columns",
    "expand",
    "find_column",
    "first_values",
    "open_source",
    "read_columns",
    "shown",
    "write_columns",
]

BATCH_ROWS = 1 << 19
_PEEK_ROWS = 10_000
_PARQUET_BUFFER = 1 << 20
_CSV_BLOCK = 1 << 22


class InputError(ValueError):
    """A fault in what the user gave; the message names the file, the column and the data row."""


@dataclass(frozen=True, slots=True)
class Column:
    """Name, type as the file states it, and what it can serve as: "number", "bool", "text" or "other"."""

    name: str
    type: str
    kind: str


def shown(text: str) -> str:
    """`text` as it may go to a terminal: quoted and escaped if it holds control characters.

    >>> shown("p_delay"), shown("bad\\x1b[31m")
    ('p_delay', "'bad\\\\x1b[31m'")
    """
    return text if text.isprintable() else repr(text)


# --- which files


def expand(patterns: Sequence[str]) -> list[str]:
    """Paths of the files that names, globs and directories stand for.

    A name of an existing file is itself; a directory is all files below it except hidden ones and those
    whose name, or whose folder's, starts with ``_`` (as Spark and Hive mark their own); anything else is a
    glob, ``**`` included. Names are sorted within each pattern, patterns keep their order.

    Raises
    ------
    InputError
        Nothing found, or the same file found twice (its rows would count twice).
    """
    paths: list[str] = []
    for pattern in patterns:
        if os.path.isdir(pattern):
            found = _walk(pattern)
            if not found:
                raise InputError(f"{shown(pattern)}: no files in this directory")
        elif os.path.lexists(pattern):
            found = [pattern]
        else:
            found = []
            for hit in sorted(glob.glob(pattern, recursive=True)):
                found += _walk(hit) if os.path.isdir(hit) else [hit]
            if not found:
                reason = "no file matches" if glob.has_magic(pattern) else "no such file"
                raise InputError(f"{shown(pattern)}: {reason}")
        paths += found
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            raise InputError(f"{shown(path)}: {_reason(error)}") from error
        first = seen.setdefault((status.st_dev, status.st_ino), path)
        if first is not path:
            other = "" if first == path else f" (also as {shown(first)})"
            raise InputError(f"{shown(path)}: given twice{other}; its rows would count twice")
    return paths


def _walk(directory: str) -> list[str]:
    """Files below a directory, sorted; hidden and underscore names skipped at every level."""
    found: list[str] = []

    def refuse(error: OSError) -> None:
        raise InputError(f"{shown(str(error.filename))}: {_reason(error)}") from error

    for folder, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
    return sorted(found)


def _reason(error: BaseException) -> str:
    """One line of an error's message, without the errno and the path that the operating system repeats."""
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return os.strerror(error.errno).lower()
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn whatever a reader raises about a bad file into an `InputError` that names the file."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{shown(path)}: {_reason(error)}") from error


# --- one class per format


class Source:
    """A file of columns.

    Attributes
    ----------
    path : str
    columns : tuple of Column
    n_rows : int or None
        None where the format does not say before the end.
    progress : float
        Fraction of the file that `batches` has handed out so far.
    population : str
        What the rows are a sample of, if the file's metadata says so under the key ``population``; else
        empty.
    """

    columns: tuple[Column, ...] = ()
    n_rows: int | None = None
    population = ""

    def __init__(self, path: str) -> None:
        self.path = path
        self.progress = 0.0

    def batches(self, names: Sequence[str], *, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The named columns, at most `rows` rows at a time."""
        raise NotImplementedError

    def _take_schema(self, schema: pa.Schema) -> None:
        self.columns = tuple(Column(field.name, str(field.type), _kind(field.type)) for field in schema)
        self.population = (schema.metadata or {}).get(b"population", b"").decode("utf-8", "replace")


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    return "other"


class _Parquet(Source):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        with self._open() as file:
            self._take_schema(file.schema_arrow)
            self.n_rows = file.metadata.num_rows

    def _open(self) -> parquet.ParquetFile:
        # A buffer makes a column chunk stream; without one, a row group of 10^7 rows is read whole.
        return parquet.ParquetFile(self.path, buffer_size=_PARQUET_BUFFER, pre_buffer=False)

    def batches(self, names: Sequence[str], *, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with self._open() as file:
            done = 0
            for batch in file.iter_batches(rows, columns=list(names)):
                done += batch.num_rows
                self.progress = done / max(1, file.metadata.num_rows)
                yield batch


class _Arrow(Source):
    """Arrow IPC: the file format through a memory map, the stream format through a plain read."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with open(path, "rb") as file:
            self._is_file = file.read(6) == b"ARROW1"
        with ExitStack() as stack:
            reader, _ = self._open(stack, None)
            self._take_schema(reader.schema)

    def _open(self, stack: ExitStack, names: Sequence[str] | None) -> tuple[Any, Any]:
        fields = None if names is None else [[c.name for c in self.columns].index(name) for name in names]
        options = ipc.IpcReadOptions(included_fields=fields)
        if self._is_file:
            mapping = _map(self.path)
            return ipc.open_file(pa.py_buffer(mapping), options=options), mapping
        file = stack.enter_context(pa.OSFile(self.path))
        return stack.enter_context(ipc.open_stream(file, options=options)), file

    def batches(self, names: Sequence[str], *, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            reader, bytes_ = self._open(stack, names)
            size = os.path.getsize(self.path)
            count = reader.num_record_batches if self._is_file else 0
            whole = (reader.get_batch(i) for i in range(count)) if self._is_file else iter(reader)
            for number, batch in enumerate(whole, 1):
                self.progress = number / count if self._is_file else bytes_.tell() / size
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)
                    if self._is_file:
                        _forget(bytes_)


class _Csv(Source):
    """CSV with a header line, plain or compressed; ``.tsv`` has tabs."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with _open_text(path) as text:
            header = text.readline()
        self._delimiter = next((mark for mark in ",\t;" if mark in header), ",")
        if ".tsv" in Path(path).suffixes[-2:]:
            self._delimiter = "\t"
        names = next(csv.reader([header], delimiter=self._delimiter), [])
        if names and all(_is_number(name) for name in names):
            raise InputError(
                f"{shown(path)}: the first line must name the columns; got {shown(header.strip())}"
            )
        with ExitStack() as stack:
            self._take_schema(self._open(stack, None)[0].schema)
        if len(names) == len(self.columns) and all(column.type == "null" for column in self.columns):
            self.n_rows = 0

    def _open(self, stack: ExitStack, names: Sequence[str] | None) -> tuple[Any, pa.NativeFile]:
        raw = stack.enter_context(pa.OSFile(self.path))
        compression = pa.Codec.detect(self.path).name if _is_compressed(self.path) else None
        stream = (
            raw if compression is None else stack.enter_context(pa.CompressedInputStream(raw, compression))
        )
        # Types are inferred from the first block only: 0, 1, 0 there must not make a later 0.5 an error.
        types = {
            column.name: pa.float64()
            for column in self.columns
            if names is not None and column.name in names and column.kind == "number"
        }
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(block_size=_CSV_BLOCK),
            parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=names, column_types=types, null_values=[""], strings_can_be_null=True
            ),
        )
        return stack.enter_context(reader), raw

    def batches(self, names: Sequence[str], *, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            try:
                reader, raw = self._open(stack, names)
                size = max(1, os.path.getsize(self.path))
                for batch in reader:
                    self.progress = min(1.0, raw.tell() / size)
                    for start in range(0, batch.num_rows, rows):
                        yield batch.slice(start, rows)
            except pa.ArrowInvalid as error:
                raise InputError(f"{shown(self.path)}: {self._explain(names) or _reason(error)}") from error

    def _explain(self, names: Sequence[str]) -> str:
        """Look, slowly, for the row that the reader stumbled over: its message has no data row."""
        kinds = {column.name: column.kind for column in self.columns}
        with _open_text(self.path) as text:
            lines = csv.reader(text, delimiter=self._delimiter)
            header = next(lines, [])
            for row, cells in enumerate(filter(None, lines), 1):
                if len(cells) != len(header):
                    return f"data row {row} has {len(cells)} values where the header has {len(header)}"
                for name in names:
                    cell = cells[header.index(name)]
                    if kinds[name] == "number" and cell and not _is_number(cell):
                        return f"column {shown(name)} must hold numbers; got {cell!r} at data row {row}"
                    if kinds[name] == "bool" and cell and cell.lower() not in ("true", "false", "0", "1"):
                        return f"column {shown(name)} must hold true or false; got {cell!r} at data row {row}"
        return ""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_compressed(path: str) -> bool:
    return Path(path).suffix.lower() == ".gz"


def _open_text(path: str) -> IO[str]:
    opened = gzip.open if _is_compressed(path) else open
    return cast(IO[str], opened(path, "rt", encoding="utf-8-sig", errors="replace", newline=""))


class _Npy(Source):
    """One array: two-dimensional (its columns are called 0, 1, ...) or structured (its fields)."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        array = self._map()
        self.n_rows = len(array)
        if array.dtype.names:
            types = {name: array.dtype[name] for name in array.dtype.names}
        else:
            types = {str(j): array.dtype for j in range(array.shape[1])}
        self.columns = tuple(_numpy_column(name, dtype) for name, dtype in types.items())

    def _map(self) -> NDArray[Any]:
        array: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if array.ndim != (1 if array.dtype.names else 2):
            raise InputError(
                f"{shown(self.path)}: needs a 2-D array with a column for the label and one for the score, "
                f"or a structured array; got shape {array.shape}"
            )
        return array

    def batches(self, names: Sequence[str], *, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        array = self._map()
        for start in range(0, len(array), rows):
            part = array[start : start + rows]
            columns = [part[name] if array.dtype.names else part[:, int(name)] for name in names]
            self.progress = min(1.0, (start + rows) / len(array))
            yield pa.record_batch([_to_arrow(column) for column in columns], names=list(names))
            _forget(array.base)


class _Npz(Source):
    """One array per column, each of shape (n,); members are inflated piece by piece."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._rows: dict[str, int] = {}
        columns = []
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.endswith(".npy"):
                    name = member.removesuffix(".npy")
                    with archive.open(member) as stream:
                        shape, dtype = _npy_header(stream)
                    column = _numpy_column(name, dtype)
                    if len(shape) == 1:
                        self._rows[name] = shape[0]
                    else:
                        column = Column(name, f"{dtype} of shape {shape}", "other")
                    columns.append(column)
        self.columns = tuple(columns)
        self.n_rows = next(iter(self._rows.values()), None) if len(set(self._rows.values())) == 1 else None

    def batches(self, names: Sequence[str], *, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        lengths = [self._rows[name] for name in names]
        if len(set(lengths)) > 1:
            sizes = ", ".join(f"{shown(name)} has {n}" for name, n in zip(names, lengths, strict=True))
            raise InputError(f"{shown(self.path)}: columns must have equal lengths; {sizes} rows")
        n = lengths[0]
        with zipfile.ZipFile(self.path) as archive, ExitStack() as stack:
            streams = [stack.enter_context(archive.open(f"{name}.npy")) for name in names]
            dtypes = [_npy_header(stream)[1] for stream in streams]
            for start in range(0, n, rows):
                count = min(rows, n - start)
                parts = []
                for stream, dtype in zip(streams, dtypes, strict=True):
                    data = stream.read(count * dtype.itemsize)
                    if len(data) < count * dtype.itemsize:
                        raise EOFError("the file ends too early")
                    parts.append(_to_arrow(np.frombuffer(data, dtype)))
                self.progress = (start + count) / n
                yield pa.record_batch(parts, names=list(names))


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _numpy_column(name: str, dtype: np.dtype[Any]) -> Column:
    kinds = {"b": "bool", "i": "number", "u": "number", "f": "number", "U": "text"}
    usable = dtype.itemsize <= 8 or dtype.kind == "U"
    return Column(name, str(dtype), kinds.get(dtype.kind, "other") if usable else "other")


def _to_arrow(values: NDArray[Any]) -> pa.Array:
    return pa.array(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")))


def _map(path: str) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _forget(mapping: object) -> None:
    """Give back the pages of a mapped file: whatever was touched counts as resident until then."""
    if isinstance(mapping, mmap.mmap) and hasattr(mapping, "madvise"):
        mapping.madvise(mmap.MADV_DONTNEED)


_FORMATS: dict[str, type[Source]] = {
    ".parquet": _Parquet,
    ".pq": _Parquet,
    ".arrow": _Arrow,
    ".arrows": _Arrow,
    ".feather": _Arrow,
    ".ipc": _Arrow,
    ".csv": _Csv,
    ".csv.gz": _Csv,
    ".tsv": _Csv,
    ".tsv.gz": _Csv,
    ".npy": _Npy,
    ".npz": _Npz,
}


def open_source(path: str) -> Source:
    """The file as a `Source`; what it is follows from its suffix.

    Raises
    ------
    InputError
        Unknown suffix, missing, unreadable or damaged file.
    """
    suffix = _suffix(path, _FORMATS)
    with _reading(path):
        if suffix is None:
            raise InputError(f"{shown(path)}: unknown kind of file; readable are {', '.join(_FORMATS)}")
        return _FORMATS[suffix](path)


def _suffix(path: str, known: Iterable[str]) -> str | None:
    """The longest known suffix of a file name."""
    name = os.path.basename(path).lower()
    return next((suffix for suffix in sorted(known, key=len, reverse=True) if name.endswith(suffix)), None)


# --- which columns


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
    if label is not None and score is not None:
        return label, score
    first = _peek(source)
    usable = [column.name for column in source.columns if column.kind != "other"]
    if len(usable) == 2 and len(set(usable)) == 2:
        pairs = [(a, b) for a, b in (usable, usable[::-1]) if label in (None, a) and score in (None, b)]
        named = label is not None or score is not None
        fit = [pair for pair in pairs if named or (_is_pair(first[pair[0]]) and _is_score(first[pair[1]]))]
        if len(fit) == 2:
            fit = [pair for pair in fit if _is_01(first[pair[0]]) and not _is_01(first[pair[1]])]
        if len(fit) == 1:
            return fit[0]
    rows = [(shown(c.name), c.type, _first_values(first[c.name])) for c in source.columns]
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)] if rows else [0, 0]
    listing = "".join(f"\n  {name:{widths[0]}}  {kind:{widths[1]}}  {values}" for name, kind, values in rows)
    label = label or next(
        (c.name for c in source.columns if c.name != score and _is_pair(first[c.name])), "LABEL"
    )
    score = score or next(
        (c.name for c in source.columns if c.name != label and _is_score(first[c.name])), "SCORE"
    )
    raise InputError(
        f"{shown(source.path)}: which column is the label and which the score? The columns are{listing}\n"
        f"Name them, for example\n  {command} --label {shlex.quote(label)} --score {shlex.quote(score)}"
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
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    hint = f"did you mean {shown(folded[close[0]])}?" if close else f"it has {_names(source)}"
    raise InputError(f"{where}: no column {shown(name)} ({option}); {hint}")


def _names(source: Source) -> str:
    names = [shown(column.name) for column in source.columns]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return (", ".join(names[:20]) or "no columns") + more


def _peek(source: Source) -> dict[str, pa.Array]:
    """First rows of every column."""
    names = list(dict.fromkeys(column.name for column in source.columns))
    if len(names) < len(source.columns):
        raise InputError(f"{shown(source.path)}: several columns have the same name: {_names(source)}")
    first: dict[str, pa.Array] = {}
    with _reading(source.path):
        for name in names:  # one by one: the columns that nobody asks for need not have equal lengths
            parts = (
                iter(())
                if isinstance(source, _Npz) and name not in source._rows
                else source.batches([name], rows=_PEEK_ROWS)
            )
            first[name] = next((batch.column(0) for batch in islice(parts, 1)), pa.nulls(0))
    return first


def _first_values(values: pa.Array) -> str:
    texts = [str(value) for value in values.slice(0, 3).to_pylist()]
    return ", ".join(shown(text if len(text) <= 24 else text[:21] + "...") for text in texts)


def _is_pair(values: pa.Array) -> bool:
    return _kind(values.type) != "other" and len(values.drop_null().unique()) <= 2


def _is_01(values: pa.Array) -> bool:
    return _kind(values.type) == "bool" or set(values.drop_null().unique().to_pylist()) <= {0, 1}


def _is_score(values: pa.Array) -> bool:
    if _kind(values.type) != "number":
        return False
    numbers = _numbers(values.drop_null())
    return bool(np.all((numbers >= -0.01) & (numbers <= 1.01)))


# --- their rows


class Batch(NamedTuple):
    """Rows of a file: how many came before, labels, scores and, if asked for, what group they belong to."""

    start: int
    labels: NDArray[Any]
    scores: NDArray[Any]
    groups: pa.Array | None


def read_columns(source: Source, label: str, score: str, groups: str | None = None) -> Iterator[Batch]:
    """Labels and scores of a file, batch by batch, and groups as an Arrow array.

    Numbers keep their type (decimals become float64), truth values become bool, text becomes object
    arrays of str. Numeric columns are not copied.

    Raises
    ------
    InputError
        A missing value, with its 1-based data row; a column that is none of these; a damaged file.
    """
    start = 0
    names = [label, score] if groups is None else [label, score, groups]
    with _reading(source.path):
        for batch in source.batches(list(dict.fromkeys(names))):
            for name in names:
                _refuse_missing(source, name, batch.column(name), start)
            labels, scores = (_to_numpy(source, name, batch.column(name)) for name in (label, score))
            yield Batch(start, labels, scores, None if groups is None else batch.column(groups))
            start += batch.num_rows


def first_values(source: Source, name: str) -> list[str]:
    """Distinct values among the first rows of a column, as text."""
    with _reading(source.path):
        batch = next(source.batches([name], rows=_PEEK_ROWS), None)
    return [] if batch is None else [str(value) for value in batch.column(0).drop_null().unique().to_pylist()]


def _refuse_missing(source: Source, name: str, values: pa.Array, start: int) -> None:
    if values.null_count:
        row = start + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) + 1
        raise InputError(f"{shown(source.path)}: column {shown(name)} has a missing value at data row {row}")


def _to_numpy(source: Source, name: str, values: pa.Array) -> NDArray[Any]:
    kind = _kind(values.type)
    if kind == "number":
        return _numbers(values)
    if kind == "bool":
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        truth: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return truth
    if kind == "text":
        coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        words: NDArray[Any] = np.array(coded.dictionary.to_pylist(), dtype=object)
        labels: NDArray[Any] = words[coded.indices.to_numpy()]
        return labels
    raise InputError(
        f"{shown(source.path)}: column {shown(name)} holds {values.type}, not numbers, truth values or text"
    )


def _numbers(values: pa.Array) -> NDArray[Any]:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=True)
    return numbers


# --- writing

Blocks = Callable[[], Iterator[Sequence[NDArray[Any]]]]


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Name of a file beside `path` to write; it takes its place if all goes well, and is removed if not."""
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


def write_columns(
    path: str,
    names: Sequence[str],
    blocks: Blocks,
    n_rows: int,
    *,
    progress: Callable[[float, int], None] | None = None,
) -> None:
    """Write columns in a format that follows from the suffix, completely or not at all, block by block.

    Parameters
    ----------
    path : str
        ``.parquet``, ``.pq``, ``.arrow``, ``.feather``, ``.ipc``, ``.csv``, ``.csv.gz`` or ``.npz``.
    names : sequence of str
    blocks : callable
        Returns an iterator over blocks of the columns; called once more per column for NPZ, whose members
        lie one behind the other.
    n_rows : int
        Rows in all blocks together.
    progress : callable, optional
        Called with the fraction and the number of rows written.

    Raises
    ------
    InputError
        Unknown suffix, or the file cannot be written.
    """
    suffix = _suffix(path, [*_WRITERS, ".npz"])
    if suffix is None:
        raise InputError(f"{shown(path)}: unknown kind of file; writable are {', '.join(_WRITERS)}, .npz")
    passes = len(names) if suffix == ".npz" else 1
    done = 0

    def counted() -> Iterator[Sequence[NDArray[Any]]]:
        nonlocal done
        for block in blocks():
            yield block
            done += len(block[0])
            if progress is not None:
                progress(done / (n_rows * passes), done // passes)

    try:
        with replacing(path) as part:
            if suffix == ".npz":
                _write_npz(part, names, counted, n_rows)
            else:
                _write_batches(part, names, counted, _WRITERS[suffix])
    except OSError as error:
        raise InputError(f"{shown(path)}: {_reason(error)}") from error


def _write_batches(part: str, names: Sequence[str], blocks: Blocks, open_writer: Callable[..., Any]) -> None:
    batches = (pa.record_batch(list(columns), names=list(names)) for columns in _joined(blocks(), BATCH_ROWS))
    first = next(batches)
    with pa.OSFile(part, "wb") as sink, open_writer(sink, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _joined(blocks: Iterator[Sequence[NDArray[Any]]], rows: int) -> Iterator[Sequence[NDArray[Any]]]:
    """Blocks put together to at least `rows` rows, a row group or record batch of useful size."""
    held: list[Sequence[NDArray[Any]]] = []
    for block in blocks:
        held.append(block)
        if sum(len(part[0]) for part in held) >= rows:
            yield [np.concatenate(column) for column in zip(*held, strict=True)]
            held = []
    if held:
        yield [np.concatenate(column) for column in zip(*held, strict=True)]


@contextmanager
def _csv_gz(sink: pa.NativeFile, schema: pa.Schema) -> Iterator[arrow_csv.CSVWriter]:
    with pa.CompressedOutputStream(sink, "gzip") as packed, arrow_csv.CSVWriter(packed, schema) as writer:
        yield writer


_WRITERS: dict[str, Callable[..., Any]] = {
    ".parquet": parquet.ParquetWriter,
    ".pq": parquet.ParquetWriter,
    ".arrow": ipc.new_file,
    ".feather": ipc.new_file,
    ".ipc": ipc.new_file,
    ".csv": arrow_csv.CSVWriter,
    ".csv.gz": _csv_gz,
}


def _write_npz(part: str, names: Sequence[str], blocks: Blocks, n_rows: int) -> None:
    with zipfile.ZipFile(part, "w") as archive:
        for j, name in enumerate(names):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                for number, block in enumerate(blocks()):
                    column = np.ascontiguousarray(block[j])
                    if number == 0:
                        header = {"descr": column.dtype.str, "fortran_order": False, "shape": (n_rows,)}
                        np.lib.format.write_array_header_1_0(stream, header)
                    stream.write(column.tobytes())
