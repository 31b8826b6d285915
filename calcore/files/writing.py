"""Columns into files, block by block, completely or not at all."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import ipc, parquet

from calcore.files.arrays import as_arrow
from calcore.files.formats import BATCH_ROWS
from calcore.files.paths import InputError, open_native, replacing, shown, suffix_of

__all__ = ["write_columns"]

Blocks = Callable[[], Iterator[Sequence[NDArray[Any]]]]


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
    suffix = suffix_of(path, [*_WRITERS, ".npz"])
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

    with replacing(path) as part:
        if suffix == ".npz":
            _write_npz(part, names, counted, n_rows)
        else:
            rows = 1 if ".csv" in suffix else BATCH_ROWS  # Ctrl-C waits for a batch; text is slow
            _write_batches(part, names, _joined(counted(), rows), _WRITERS[suffix])


def _write_batches(
    part: str,
    names: Sequence[str],
    blocks: Iterator[Sequence[NDArray[Any]]],
    open_writer: Callable[..., Any],
) -> None:
    batches = (pa.record_batch(list(map(as_arrow, columns)), names=list(names)) for columns in blocks)
    first = next(batches)
    with open_native(part, "wb") as sink, open_writer(sink, first.schema) as writer:
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
