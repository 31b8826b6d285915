"""Arrow arrays as NumPy arrays and back, by their memory.

pyarrow's own conversions (`to_numpy`, `numpy.asarray`, `pyarrow.array`) import pandas wherever it is
installed: a third of a second, for columns that have nothing to do with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["as_arrow", "as_numpy"]


def as_numpy(values: pa.Array) -> NDArray[Any]:
    """Numbers or truth values as a read-only array: numbers as a view, truth values as bool, copied.

    Parameters
    ----------
    values : pyarrow.Array
        Integers, floats or booleans.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value is missing.
    """
    if values.null_count:
        raise pa.ArrowInvalid("a value is missing")
    memory = values.buffers()[1] or b""  # an empty array may have none
    if pa.types.is_boolean(values.type):
        first, skip = divmod(values.offset, 8)
        bits = np.frombuffer(memory, np.uint8)[first:]
        rows = np.unpackbits(bits, count=skip + len(values), bitorder="little")[skip:].view(np.bool_)
    else:
        dtype = _dtype(values.type)
        rows = np.frombuffer(memory, dtype, len(values), values.offset * dtype.itemsize)
    rows.flags.writeable = False
    return rows


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def as_arrow(values: NDArray[Any]) -> pa.Array:
    """A one-dimensional array of any kind; contiguous numbers of native byte order as a view."""
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    if values.dtype.kind not in "biuf":
        return pa.array(values)
    memory = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else values
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(memory)])
