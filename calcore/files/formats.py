"""One class per format: what columns a file has, and its rows in batches of bounded size.

Memory is that of one batch and of the reader's window into the file, not of the file: Parquet column chunks
are read through a buffer instead of whole, NPZ members are inflated piece by piece, and the pages of a
mapped file (NPY, Arrow) are given back after every batch. The exception is the writer's choice: a
compressed Arrow record batch is one unit.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import mmap
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import ipc, parquet

from calcore.files.arrays import as_arrow
from calcore.files.paths import InputError, open_native, reading, reason, shown, suffix_of

__all__ = ["BATCH_ROWS", "Column", "Source", "kind_of", "open_source"]

BATCH_ROWS = 1 << 19
_PARQUET_BUFFER = 1 << 20
_CSV_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """Name, type as the file states it, and what it can serve as.

    That is "number", "bool", "text", "list" (of numbers) or "other".
    """

    name: str
    type: str
    kind: str


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

    def batches(
        self, names: Sequence[str], *, numeric: Sequence[str] = (), rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, at most `rows` rows at a time; `numeric` are read as numbers from text files."""
        raise NotImplementedError

    def _take_schema(self, schema: pa.Schema) -> None:
        self.columns = tuple(Column(field.name, str(field.type), kind_of(field.type)) for field in schema)
        self.population = (schema.metadata or {}).get(b"population", b"").decode("utf-8", "replace")


def kind_of(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):  # every value is missing: reading one will say so
        return "number"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list" if kind_of(kind.value_type) == "number" else "other"
    return "other"


class _Parquet(Source):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        with self._open() as file:
            self._take_schema(file.schema_arrow)
            self.n_rows = file.metadata.num_rows

    def _open(self) -> parquet.ParquetFile:
        # A buffer makes a column chunk stream; without one, a row group of 10^7 rows is read whole.
        return parquet.ParquetFile(
            open_native(self.path),
            buffer_size=_PARQUET_BUFFER,
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def batches(
        self, names: Sequence[str], *, numeric: Sequence[str] = (), rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
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
        if self._is_file:
            mapping = _map(self.path)
            return self._selective(pa.py_buffer(mapping), names), mapping
        file = stack.enter_context(open_native(self.path))
        return stack.enter_context(ipc.open_stream(file, options=self._only(names))), file

    def _only(self, names: Sequence[str] | None) -> ipc.IpcReadOptions:
        known = [column.name for column in self.columns]
        return ipc.IpcReadOptions(included_fields=None if names is None else [known.index(n) for n in names])

    def _selective(self, content: pa.Buffer, names: Sequence[str] | None) -> ipc.RecordBatchFileReader:
        """A reader that does no more than it must for the named columns.

        Without compression a batch is a view of the mapping, and columns that nobody looks at cost nothing:
        asking for some columns only would copy them. With compression it saves inflating the others.
        """
        reader = ipc.open_file(content)
        if names is None or reader.num_record_batches == 0:
            return reader
        buffers = [b for name in names for b in reader.get_batch(0).column(name).buffers() if b is not None]
        is_view = all(content.address <= b.address < content.address + content.size for b in buffers)
        return reader if is_view else ipc.open_file(content, options=self._only(names))

    def batches(
        self, names: Sequence[str], *, numeric: Sequence[str] = (), rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            reader, bytes_ = self._open(stack, names)
            size = os.path.getsize(self.path)
            count = reader.num_record_batches if self._is_file else 0
            whole = map(reader.get_batch, range(count)) if self._is_file else iter(reader)
            for number, batch in enumerate(whole, 1):
                self.progress = number / count if self._is_file else bytes_.tell() / size
                chosen = batch.select(list(names))
                for start in range(0, batch.num_rows, rows):
                    yield chosen.slice(start, rows)
                    if self._is_file:
                        _forget(bytes_)


class _Csv(Source):
    """CSV with a header line, plain or compressed; ``.tsv`` has tabs."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with _open_bytes(path) as content:
            if content.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise InputError(f"{shown(path)}: is UTF-16 text; save it as UTF-8")
        with _open_text(path) as text:
            header = text.readline()
        bare = re.sub('"[^"]*"', "", header)  # a mark in a quoted name separates nothing
        self._delimiter = next((mark for mark in ",\t;" if mark in bare), ",")
        if ".tsv" in Path(path).suffixes[-2:]:
            self._delimiter = "\t"
        names = next(csv.reader([header], delimiter=self._delimiter), [])
        if names and all(_is_number(name) for name in names):
            raise InputError(
                f"{shown(path)}: the first line must name the columns; got {shown(header.strip())}"
            )
        try:
            with ExitStack() as stack:
                self._take_schema(self._open(stack, None, ())[0].schema)
        except pa.ArrowInvalid as error:
            raise InputError(f"{shown(path)}: {self._explain((), ()) or _csv_reason(error)}") from error

    def _open(
        self, stack: ExitStack, names: Sequence[str] | None, numeric: Sequence[str]
    ) -> tuple[Any, pa.NativeFile]:
        raw = stack.enter_context(open_native(self.path))
        stream = stack.enter_context(pa.CompressedInputStream(raw, "gzip")) if _is_gzip(self.path) else raw
        stream = stack.enter_context(pa.TransformInputStream(stream, _BlankEnd()))
        known = {column.name: column.type for column in self.columns}
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(block_size=_CSV_BLOCK),
            parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=names,
                # Types come from the first block: its zeros and ones must not make a later 0.5 an error.
                column_types={name: pa.float64() for name in numeric if known[name] != "double"},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        return stack.enter_context(reader), raw

    def batches(
        self, names: Sequence[str], *, numeric: Sequence[str] = (), rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            try:
                reader, raw = self._open(stack, names, numeric)
                size = max(1, os.path.getsize(self.path))
                for batch in reader:
                    self.progress = min(1.0, raw.tell() / size)
                    for start in range(0, batch.num_rows, rows):
                        yield batch.slice(start, rows)
            except pa.ArrowInvalid as error:
                message = self._explain(names, numeric) or _csv_reason(error)
                raise InputError(f"{shown(self.path)}: {message}") from error

    def _explain(self, names: Sequence[str], numeric: Sequence[str]) -> str:
        """Look, slowly, for the row that the reader stumbled over: its message has no data row."""
        kinds = {column.name: column.type for column in self.columns} | dict.fromkeys(numeric, "double")
        rules: dict[str, tuple[str, Callable[[str], bool]]] = {
            "double": ("must hold numbers", _is_number),
            "int64": ("holds whole numbers before", _is_whole),
            "bool": ("holds true or false before", lambda cell: cell.lower() in ("true", "false", "0", "1")),
        }
        row = 0
        ended: list[str] = []

        def to_the_end(text: IO[str]) -> Iterator[str]:
            yield from text
            ended.append("")  # nobody asks for a line more while a row is complete

        with _open_text(self.path) as text:
            lines = csv.reader(to_the_end(text), delimiter=self._delimiter)
            header = next(lines, [])
            if ended:
                return "the header opens a quote that nothing closes" if header else ""
            try:
                for row, cells in enumerate(filter(None, lines), 1):
                    if ended:
                        return f"data row {row} opens a quote that nothing closes"
                    if len(cells) != len(header):
                        values = "1 value" if len(cells) == 1 else f"{len(cells)} values"
                        return f"data row {row} has {values} where the header has {len(header)}"
                    for name in names:
                        cell = cells[header.index(name)]
                        rule, holds = rules.get(kinds[name], ("", bool))
                        if rule and cell and not holds(cell):
                            return (
                                f"column {shown(name)} {rule}; got {cell!r} at data row {row}{_remedy(cell)}"
                            )
            except csv.Error:
                most = f"more than {csv.field_size_limit():,} characters"
                return f"data row {row + 1} has a value of {most}: does it open a quote that nothing closes?"
        return ""


class _BlankEnd:
    """Blank lines after a CSV file with quotes, so that the reader's last two blocks hold nothing else.

    The reader refuses a quote that is still open at the end of a block, except at the end of the file: it
    takes a file that was cut short, or all rows behind a stray quote, as one value.
    """

    def __init__(self) -> None:
        self._size = 0
        self._pad = False

    def __call__(self, part: pa.Buffer) -> pa.Buffer | bytes:
        if len(part):
            self._size += len(part)
            self._pad = self._pad or b'"' in part.to_pybytes()
            return part
        if not self._pad:  # called at the end, and again whenever it is read beyond that
            return part
        self._pad = False
        return b"\n" * (-self._size % _CSV_BLOCK + _CSV_BLOCK + 1)


def _csv_reason(error: pa.ArrowInvalid) -> str:
    if "out of sync with chunker" in str(error):
        return "a quoted value goes over several lines; write it without line breaks"
    if "Empty CSV file" in str(error):
        return "the file is empty: the first line must name the columns"
    return reason(error)


def _remedy(cell: str) -> str:
    """What to do about a number that is written in another way.

    >>> _remedy("0,51"), _remedy("51 %"), _remedy("x")
    (': write decimals with a point', ': write shares, 0.51 for 51 %', '')
    """
    if _is_number(cell.replace(",", ".")):
        return ": write decimals with a point"
    return ": write shares, 0.51 for 51 %" if _is_number(cell.removesuffix("%")) else ""


def _is_whole(cell: str) -> bool:
    return cell.strip().lstrip("+-").isdecimal()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # as Python writes numbers, but no file does


def _is_gzip(path: str) -> bool:
    return Path(path).suffix.lower() == ".gz"


def _open_bytes(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb") if _is_gzip(path) else open(path, "rb"))


def _open_text(path: str) -> IO[str]:
    opened = gzip.open if _is_gzip(path) else open
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
        with open(self.path, "rb") as file:
            _, dtype, _ = _npy_header(file)
        if dtype.hasobject:
            raise InputError(
                f"{shown(self.path)}: holds {_OBJECTS}; or save every column by its name with np.savez"
            )
        array: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if array.ndim != (1 if array.dtype.names else 2):
            raise InputError(
                f"{shown(self.path)}: needs a 2-D array with a column for the label and one for the score, "
                f"or a structured array; got shape {array.shape}"
            )
        return array

    def batches(
        self, names: Sequence[str], *, numeric: Sequence[str] = (), rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        array = self._map()
        for start in range(0, len(array), rows):
            part = array[start : start + rows]
            columns = [part[name] if array.dtype.names else part[:, int(name)] for name in names]
            self.progress = min(1.0, (start + rows) / len(array))
            yield pa.record_batch([as_arrow(column) for column in columns], names=list(names))
            _forget(array.base)


class _Npz(Source):
    """One array per column, each of shape (n,); members are inflated piece by piece."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._rows: dict[str, int] = {}
        self._widths: dict[str, int] = {}
        columns = []
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.endswith(".npy"):
                    name = member.removesuffix(".npy")
                    with archive.open(member) as stream:
                        shape, dtype, by_column = _npy_header(stream)
                    column = _numpy_column(name, dtype)
                    if len(shape) == 1 and not dtype.hasobject:
                        self._rows[name] = shape[0]
                    elif not dtype.hasobject:
                        width = shape[1] if len(shape) == 2 else 0
                        kind = "list" if width and column.kind == "number" else "other"
                        if kind == "list" and not by_column:
                            self._rows[name], self._widths[name] = shape[0], width
                        column = Column(name, f"{dtype} of shape {shape}", kind)
                    columns.append(column)
        self.columns = tuple(columns)
        self.n_rows = next(iter(self._rows.values()), None) if len(set(self._rows.values())) == 1 else None

    def batches(
        self, names: Sequence[str], *, numeric: Sequence[str] = (), rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        for name in names:
            if name not in self._rows:
                kind = next(column.type for column in self.columns if column.name == name)
                fault = kind if kind == _OBJECTS else f"{kind}, not one value per row"
                if any(column.kind == "list" for column in self.columns if column.name == name):
                    fault = f"{kind}, column after column: save it with np.ascontiguousarray"
                raise InputError(f"{shown(self.path)}: column {shown(name)} holds {fault}")
        lengths = [self._rows[name] for name in names]
        if len(set(lengths)) > 1:
            sizes = ", ".join(f"{shown(name)} has {n}" for name, n in zip(names, lengths, strict=True))
            raise InputError(f"{shown(self.path)}: columns must have equal lengths; {sizes} rows")
        n = lengths[0]
        with zipfile.ZipFile(self.path) as archive, ExitStack() as stack:
            streams = [stack.enter_context(archive.open(f"{name}.npy")) for name in names]
            dtypes = [_npy_header(stream)[1] for stream in streams]
            widths = [self._widths.get(name) for name in names]
            for start in range(0, n, rows):
                count = min(rows, n - start)
                parts = []
                for stream, dtype, width in zip(streams, dtypes, widths, strict=True):
                    size = count * dtype.itemsize * (width or 1)
                    data = stream.read(size)
                    if len(data) < size:
                        raise EOFError("the file ends too early")
                    values = as_arrow(np.frombuffer(data, dtype))
                    parts.append(
                        values if width is None else pa.FixedSizeListArray.from_arrays(values, width)
                    )
                self.progress = (start + count) / n
                yield pa.record_batch(parts, names=list(names))


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape, type, and whether columns lie one after the other."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_column, dtype = read(stream)
    return shape, dtype, by_column


def _numpy_column(name: str, dtype: np.dtype[Any]) -> Column:
    kinds = {"b": "bool", "i": "number", "u": "number", "f": "number", "U": "text"}
    usable = dtype.itemsize <= 8 or dtype.kind == "U"
    kind = kinds.get(dtype.kind, "other") if usable else "other"
    return Column(name, _OBJECTS if dtype.hasobject else str(dtype), kind)


_OBJECTS = (
    "pickled Python objects, which are not read: save text with .astype(str), numbers with .astype(float)"
)


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
    suffix = suffix_of(path, _FORMATS)
    with reading(path):
        if suffix is None:
            raise InputError(
                f"{shown(path)}: unknown kind of file; readable are {', '.join(_FORMATS)} and saved tables"
            )
        return _FORMATS[suffix](path)
