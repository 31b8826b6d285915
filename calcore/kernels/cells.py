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

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._intrinsics import combine, fetch
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

_HALF = 1 << (OFFSET_BITS - 1)

_CHUNK = 256
"""Rows located before they are scattered: the work arrays (17 KiB) stay in the L1 cache."""

_AHEAD = 32
"""How many rows before its turn the cache line of a cell is asked for."""

# What the shape of `fill` rests on: 10^7 uniform scores, 100,800 cells (6.2 MiB, three times the L2 cache),
# in units of np.sort of the same scores. As it is: .48 on one thread, of which locating takes .10, laying out
# .09, and waiting for cells outside the L2 cache .15.
#
# * no prefetch: 1.2; asked for 8 or 64 rows ahead: .50; for writing, or into the L2 cache only: .50 to .55
# * cells that lie across two cache lines, as np.zeros returns them: .95
# * six narrow updates per row instead of two wide ones: .55; .65 with signed indices, which numba tests for
#   being negative at each access
# * chunks of 128, 512 or 1,024 rows: .49 to .52
#
# No gain: huge pages; both extremes from one load; locating and laying out in one loop; locating without a
# division; asking for the next block's scores while this one is counted.


@jit
def _locate_linear(
    scores: NDArray[np.float64], n_cells: int, cell: NDArray[np.uint32], offset: NDArray[np.float64]
) -> None:
    """Cell j is [j/N, (j+1)/N), edges as nearest doubles.

    The nearest integer to s*N, as rounded, is j or j+1, and comparing s with that one edge decides. Rounding
    s*N moves the place by at most 2^-53 s: the score's last bit.
    """
    size = float(n_cells)
    for i in range(scores.size):
        place = scores[i] * size
        index = np.rint(place)
        if scores[i] < index / size:
            index -= 1.0
        index = min(index, size - 1.0)
        cell[i] = np.uint32(index)
        offset[i] = np.rint((place - index) * 2.0**OFFSET_BITS)


@jit
def _locate_sqrt(
    scores: NDArray[np.float64], n_cells: int, cell: NDArray[np.uint32], offset: NDArray[np.float64]
) -> None:
    """Cell j is [(j/N)^2, ((j+1)/N)^2), of width (2j+1)/N^2."""
    size = float(n_cells)
    scale = size * size * 2.0**OFFSET_BITS
    for i in range(scores.size):
        index = np.rint(np.sqrt(scores[i]) * size)
        root = index / size
        if scores[i] < root * root:
            index -= 1.0
        index = min(index, size - 1.0)
        root = index / size
        cell[i] = np.uint32(index)
        offset[i] = np.rint((scores[i] - root * root) * (scale / (2.0 * index + 1.0)))


@jit
def _locate_logit(
    scores: NDArray[np.float64],
    edges: NDArray[np.float64],
    cell: NDArray[np.uint32],
    offset: NDArray[np.float64],
) -> None:
    """Cells equally wide in each of `OCTAVES` octaves of s below 1/2, and of 1 - s above.

    A double's bit pattern, read as an integer, is linear in each octave: it is the transform.
    """
    n_cells = edges.size - 1
    half, per_octave = 0.5 * n_cells, 0.5 * n_cells / OCTAVES
    for i in range(scores.size):
        offset[i] = min(scores[i], 1.0 - scores[i])
    patterns = offset.view(np.int64)
    for i in range(scores.size):
        score = scores[i]
        depth = min(1022.0 - patterns[i] * 2.0**-52, float(OCTAVES)) * per_octave
        index = np.int64(min(half - depth if score < 0.5 else half + depth, n_cells - 1.0))
        while score < edges[index]:
            index -= 1
        while index + 1 < n_cells and score >= edges[index + 1]:
            index += 1
        cell[i] = index
        offset[i] = np.rint((score - edges[index]) / (edges[index + 1] - edges[index]) * 2.0**OFFSET_BITS)


@jit
def fill(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    grid: int,
    edges: NDArray[np.float64],
    cells: NDArray[np.int64],
) -> None:
    """Add rows to `cells`; `edges` is read by the logit grid only.

    In three loops over a chunk of rows: where each belongs, what it adds there, and the scatter. The first
    two are vectorised; the third does two wide read-modify-writes per row, on a cache line asked for before.
    """
    n_cells = cells.shape[0]
    words = cells.reshape(-1)
    patterns = scores.view(np.int64)
    cell = np.zeros(_CHUNK + _AHEAD, np.uint32)
    offset = np.empty(_CHUNK, np.float64)
    addends = np.empty(4 * _CHUNK, np.int64)
    ends = np.empty(2 * _CHUNK, np.int64)
    for start in range(0, scores.size, _CHUNK):
        block = scores[start : start + _CHUNK]
        if grid == LINEAR:
            _locate_linear(block, n_cells, cell, offset)
        elif grid == SQRT:
            _locate_sqrt(block, n_cells, cell, offset)
        else:
            _locate_logit(block, edges, cell, offset)
        _spread(labels[start : start + _CHUNK], patterns[start : start + _CHUNK], offset, addends, ends)
        for i in range(block.size):
            row = np.uint64(i)
            fetch(words, np.uint64(cell[row + np.uint64(_AHEAD)]) * np.uint64(WORDS))
            combine(words, np.uint64(cell[row]) * np.uint64(WORDS), addends, ends, row)


@jit
def _spread(
    labels: NDArray[np.uint8],
    patterns: NDArray[np.int64],
    offset: NDArray[np.float64],
    addends: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """Lay out what each row adds to words COUNTS .. SQUARES, and proposes for TOP and BOTTOM."""
    for i in range(labels.size):
        place, label = np.int64(offset[i]), np.int64(labels[i])
        addends[4 * i + COUNTS] = (label << 32) + 1
        addends[4 * i + OFFSETS] = place
        addends[4 * i + HITS] = place & -label
        addends[4 * i + SQUARES] = (place * place + _HALF) >> OFFSET_BITS
        ends[2 * i] = patterns[i]
        ends[2 * i + 1] = ONE_BITS - patterns[i]


@jit
def add(total: NDArray[np.int64], part: NDArray[np.int64]) -> None:
    """Add the cells of `part` to `total`, exactly."""
    for j in range(total.shape[0]):
        if part[j, COUNTS]:
            for word in (COUNTS, OFFSETS, HITS, SQUARES):
                total[j, word] += part[j, word]
            for word in (TOP, BOTTOM):
                total[j, word] = max(total[j, word], part[j, word])


@jit
def decode(
    cells: NDArray[np.int64], edges: NDArray[np.float64], counts: NDArray[np.int64], sums: NDArray[np.float64]
) -> int:
    """Read the non-empty cells; return their number m.

    counts[0..1, :m]: rows, positives. sums[0..7, :m]: sum of s; sum of s over positives; sum of s^2, raised
    so that the sum of (s - y)^2 is not below the truth; upper bound of the sum of abs(s_i - s_j) over ordered
    pairs; smallest and largest s; lower and upper bound of the mean of s. A cell of one distinct score needs
    no offsets: its sums are products.

    What an offset says of a score is off by at most `blur`: half a unit, and rounding of places and edges,
    which is less than 12 * 2^-53 of the cell's upper edge in each grid; adding up to `total`, and the mean,
    take less than 7 more. The sum of (s - y)^2 is then off by less than 6 `blur` a row: 2 s <= 2 from the
    squares, half a unit of w <= 1 from rounding them, 2 from `hits`. The sum over pairs is a parabola in the
    mean, largest in the middle.
    """
    m = 0
    for j in range(cells.shape[0]):
        if cells[j, COUNTS] == 0:
            continue
        n, k = cells[j, COUNTS] & 0xFFFFFFFF, cells[j, COUNTS] >> 32
        low = np.int64(ONE_BITS - cells[j, BOTTOM]).view(np.float64)
        high = np.int64(cells[j, TOP]).view(np.float64)
        counts[0, m], counts[1, m] = n, k
        sums[4, m], sums[5, m] = low, high
        if low == high:
            sums[0, m], sums[1, m], sums[2, m], sums[3, m] = n * low, k * low, n * low * low, 0.0
            sums[6, m] = sums[7, m] = low
        else:
            base, width = edges[j], edges[j + 1] - edges[j]
            unit = width * 2.0**-OFFSET_BITS
            first = unit * cells[j, OFFSETS]
            total = min(max(n * base + first, n * low), n * high)
            sums[0, m] = total
            sums[1, m] = min(max(k * base + unit * cells[j, HITS], k * low), k * high)
            blur = 0.5 * unit + 2.0**-48 * edges[j + 1]
            sums[2, m] = (
                n * (base * base + 6.0 * blur) + 2.0 * base * first + width * unit * cells[j, SQUARES]
            )
            mean = total / n
            least, most = max(mean - blur, low), min(mean + blur, high)
            middle = 0.5 * (low + high)
            worst = min(max(middle, least), most)
            if worst == middle:  # which is `low` or `high` where no double lies between these
                sums[3, m] = 0.5 * n * n * (high - low)
            else:
                sums[3, m] = 2.0 * n * n * (high - worst) * ((worst - low) / (high - low))
            sums[6, m], sums[7, m] = least, most
        m += 1
    return m
