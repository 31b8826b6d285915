"""Fill a table of score cells: one pass, integers only, so that any order and any split give the same bits.

A cell is one cache line of eight int64 words (`WORDS`)::

    COUNTS   rows + positives * 2^32
    OFFSETS  sum of offsets          an offset is the place of a score in its cell, 0 .. 2^30, rounded
    HITS     sum of offsets of positives
    SQUARES  sum of squared offsets / 2^30, each rounded
    TOP      largest score, as its bit pattern (doubles in [0, 1] are ordered like their patterns)
    BOTTOM   pattern of 1.0 minus the pattern of the smallest score
    (two unused)

so the empty cell is all zeros, four words add and two take the larger value.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numpy.typing import NDArray

from calcore.kernels._jit import jit

WORDS = 8
COUNTS, OFFSETS, HITS, SQUARES, TOP, BOTTOM = range(6)

LINEAR, SQRT, LOGIT = range(3)

ONE_BITS = 0x3FF0000000000000
"""Bit pattern of 1.0."""

OFFSET_BITS = 30
"""2^31 rows of 30-bit offsets stay below 2^63."""

OCTAVES = 32
"""The logit grid halves the distance to 0, and to 1, this many times."""

_CHUNK = 1024
_AHEAD = 32


if numba.config.DISABLE_JIT:

    def _prefetch(cells: NDArray[np.int64], cell: int) -> None:
        """Do nothing: a hint to the processor has no meaning in Python."""

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def _prefetch(typing_context: Any, cells: Any, cell: Any) -> Any:
        """Ask for the cache line of a cell, for writing, without waiting for it."""

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte_pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            word = builder.mul(arguments[1], ir.Constant(arguments[1].type, WORDS))
            address = builder.bitcast(builder.gep(data, [word]), byte_pointer)
            hint = builder.module.declare_intrinsic(
                "llvm.prefetch",
                [byte_pointer],
                ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag]),
            )
            builder.call(hint, [address, flag(1), flag(3), flag(1)])
            return context.get_dummy_value()

        return numba.types.void(cells, numba.types.int64), build


@jit
def _locate_linear(
    scores: NDArray[np.float64], n_cells: int, cell: NDArray[np.int32], offset: NDArray[np.int32]
) -> None:
    """Cell j = [j/N, (j+1)/N), edges as nearest doubles.

    s*N rounds to within a fraction of 1, so its nearest integer is j or j+1, and comparing s with that
    one edge decides. s - j/N is exact for j >= 1 (Sterbenz) and for j = 0.
    """
    size = float(n_cells)
    scale = size * 2.0**OFFSET_BITS
    for i in range(scores.size):
        score = scores[i]
        index = np.rint(score * size)
        if score < index / size:
            index -= 1.0
        index = min(index, size - 1.0)
        cell[i] = np.int32(index)
        offset[i] = np.int32(np.rint((score - index / size) * scale))


@jit
def _locate_sqrt(
    scores: NDArray[np.float64], n_cells: int, cell: NDArray[np.int32], offset: NDArray[np.int32]
) -> None:
    """Cell j = [(j/N)^2, ((j+1)/N)^2), of width (2j+1)/N^2."""
    size = float(n_cells)
    scale = size * size * 2.0**OFFSET_BITS
    for i in range(scores.size):
        score = scores[i]
        index = np.rint(np.sqrt(score) * size)
        root = index / size
        if score < root * root:
            index -= 1.0
        index = min(index, size - 1.0)
        root = index / size
        cell[i] = np.int32(index)
        offset[i] = np.int32(np.rint((score - root * root) * (scale / (2.0 * index + 1.0))))


@jit
def _locate_logit(
    scores: NDArray[np.float64],
    edges: NDArray[np.float64],
    nearer: NDArray[np.float64],
    cell: NDArray[np.int32],
    offset: NDArray[np.int32],
) -> None:
    """Cells equally wide in `OCTAVES` octaves of s below 1/2 and of 1 - s above; `nearer` is scratch.

    A double's bit pattern, read as an integer, is linear in each octave: it is the transform.
    """
    n_cells = edges.size - 1
    half, per_octave = 0.5 * n_cells, 0.5 * n_cells / OCTAVES
    patterns = nearer.view(np.int64)
    for i in range(scores.size):
        nearer[i] = min(scores[i], 1.0 - scores[i])
    for i in range(scores.size):
        score = scores[i]
        depth = min(1022.0 - patterns[i] * 2.0**-52, float(OCTAVES)) * per_octave
        index = np.int64(np.rint(half - depth if score < 0.5 else half + depth))
        while score < edges[index]:
            index -= 1
        while index + 1 < n_cells and score >= edges[index + 1]:
            index += 1
        index = min(index, n_cells - 1)
        width = edges[index + 1] - edges[index]
        cell[i] = index
        offset[i] = np.int32(np.rint((score - edges[index]) / width * 2.0**OFFSET_BITS))


@jit
def fill(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    grid: int,
    edges: NDArray[np.float64],
    cells: NDArray[np.int64],
) -> None:
    """Add rows to `cells`; `edges` is read by the logit grid only.

    Blocked: a vectorised loop finds cell and offset of `_CHUNK` rows, a second loop scatters them, asking for
    cache lines `_AHEAD` rows before they are needed.
    """
    n_cells = cells.shape[0]
    patterns = scores.view(np.int64)
    cell = np.zeros(_CHUNK + _AHEAD, np.int32)
    offset = np.empty(_CHUNK, np.int32)
    nearer = np.empty(_CHUNK, np.float64)
    for start in range(0, scores.size, _CHUNK):
        block = scores[start : start + _CHUNK]
        if grid == LINEAR:
            _locate_linear(block, n_cells, cell, offset)
        elif grid == SQRT:
            _locate_sqrt(block, n_cells, cell, offset)
        else:
            _locate_logit(block, edges, nearer, cell, offset)
        for i in range(block.size):
            _prefetch(cells, np.int64(cell[i + _AHEAD]))
            j = cell[i]
            place, label, pattern = np.int64(offset[i]), np.int64(labels[start + i]), patterns[start + i]
            cells[j, COUNTS] += (label << 32) + 1
            cells[j, OFFSETS] += place
            cells[j, HITS] += place * label
            cells[j, SQUARES] += (place * place + (1 << (OFFSET_BITS - 1))) >> OFFSET_BITS
            cells[j, TOP] = max(cells[j, TOP], pattern)
            cells[j, BOTTOM] = max(cells[j, BOTTOM], ONE_BITS - pattern)


@jit
def add(total: NDArray[np.int64], part: NDArray[np.int64]) -> None:
    """Add the cells of `part` to `total`, exactly."""
    for j in range(total.shape[0]):
        if part[j, COUNTS]:
            for word in (COUNTS, OFFSETS, HITS, SQUARES):
                total[j, word] += part[j, word]
            for word in (TOP, BOTTOM):
                total[j, word] = max(total[j, word], part[j, word])
