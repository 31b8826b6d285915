"""Bootstrap resamples as counts: how often each row was drawn, and sums of rows times their counts.

A resample of n rows is n draws with replacement, each of them any row with probability 1/n exactly. No row is
copied. Draws are first divided among blocks of rows, then made inside a block whose counts fit in the L1
cache; many resamples visit a block while its rows are in the L2 cache. What is added are integers, so that
neither the order of rows nor that of blocks can change a sum.

All random numbers are 64-bit words of xoshiro256++ (`resampling`), one generator per resample:

* rows are thought of as 2^k blocks of one size, the last of them partly or wholly without rows;
* draws are halved k times: of m draws as many go right as there are ones among m random bits;
* in a block a place is a 32-bit number times the size of the block, rejected where that favours some places
  (Lemire 2019);
* a draw that met a place without a row is made again, among all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.resampling import _next, _ones

MAX_ROWS = 1 << 31

_BLOCK = 4096
"""Most units in a block: their counts take 16 KiB."""

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ALL = np.uint64(2**64 - 1)
_HALF_WORD = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_WORDS = np.uint64(1 << 32)


@jit
def _plan(n: int) -> tuple[int, int]:
    """How many blocks, a power of two, and their size."""
    blocks = 1
    while (n + blocks - 1) // blocks > _BLOCK:
        blocks *= 2
    return blocks, (n + blocks - 1) // blocks


@jit
def _divide(shares: NDArray[np.int64], state: NDArray[np.uint64]) -> None:
    """Divide the draws ``shares[0]`` among all places, each draw by itself, every place alike."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    width = shares.size
    while width > 1:
        half = width // 2
        for left in range(0, shares.size, width):
            right = np.int64(0)
            rest = shares[left]
            while rest > 0:
                bits, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
                right += _ones(bits & (_ALL >> np.uint64(64 - min(rest, 64))))
                rest -= 64
            shares[left] -= right
            shares[left + half] = right
        width = half
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@jit
def _draw(draws: int, state: NDArray[np.uint64], counts: NDArray[np.uint32]) -> None:
    """Draw places of `counts`; each word gives two."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    size = np.uint64(counts.size)
    favoured = _WORDS % size
    left = np.int64(draws)
    while left > 0:
        bits, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
        product = (bits & _LOW) * size
        if product & _LOW >= favoured:
            counts[product >> _HALF_WORD] += np.uint32(1)
            left -= 1
        product = (bits >> _HALF_WORD) * size
        if product & _LOW >= favoured and left > 0:
            counts[product >> _HALF_WORD] += np.uint32(1)
            left -= 1
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@jit
def _one_of(n: int, state: NDArray[np.uint64]) -> Any:
    """Draw one of n."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    shift = np.uint64(0)
    while _ALL >> (shift + _ONE) >= np.uint64(n - 1) and shift < np.uint64(63):
        shift += _ONE
    place = np.uint64(n)
    while place >= np.uint64(n):
        bits, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
        place = bits >> shift
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return np.int64(place)


@jit
def _without(counts: NDArray[np.uint32], used: int) -> Any:
    """How many draws met places from `used` on."""
    missed = np.int64(0)
    for i in range(used, counts.size):
        missed += np.int64(counts[i])
    return missed


@jit
def counts_of(seed: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Count how often each unit is drawn in the resample of a seed, which is four words, not all 0."""
    n = counts.size
    blocks, size = _plan(n)
    state = seed.copy()
    shares = np.zeros(blocks, np.int64)
    shares[0] = n
    _divide(shares, state)
    here = np.zeros(size, np.uint32)
    missed = np.int64(0)
    for b in range(blocks):
        _draw(shares[b], state, here)
        used = max(0, min(size, n - b * size))
        for i in range(used):
            counts[b * size + i] = np.int64(here[i])
        missed += _without(here, used)
        here[:] = 0
    for _ in range(missed):
        counts[_one_of(n, state)] += 1


@jit
def add(
    counts: NDArray[np.uint32],
    first: int,
    plain: NDArray[np.int64],
    excess: NDArray[np.int64],
    cells: NDArray[np.uint32],
    sums: NDArray[np.int64],
    binned: NDArray[np.int64],
) -> None:
    """Add the rows ``first:first + counts.size``, times their counts.

    Parameters
    ----------
    counts : uint32 (m,)
    plain : int64 (a, n)
        Columns to be summed; into ``sums`` (a,).
    excess, cells : int64 (b, n), uint32 (b, n)
        Columns to be summed cell by cell; into ``binned`` (all cells,).
    """
    for c in range(plain.shape[0]):
        column = plain[c, first : first + counts.size]
        total = np.int64(0)
        for i in range(counts.size):
            total += np.int64(counts[i]) * column[i]
        sums[c] += total
    for c in range(excess.shape[0]):
        column = excess[c, first : first + counts.size]
        cell = cells[c, first : first + counts.size]
        for i in range(counts.size):
            binned[np.uint64(cell[i])] += np.int64(counts[i]) * column[i]


@jit
def sums_of_resamples(
    seeds: NDArray[np.uint64],
    starts: NDArray[np.int64],
    n: int,
    plain: NDArray[np.int64],
    excess: NDArray[np.int64],
    cells: NDArray[np.uint32],
    rows: NDArray[np.int64],
    sums: NDArray[np.int64],
    binned: NDArray[np.int64],
) -> None:
    """Sums over the rows of resamples: `add` with the counts of `counts_of`.

    Parameters
    ----------
    seeds : uint64 (r, 4)
        One generator per resample.
    starts : int64 (n + 1,) or empty
        Unit u is the rows ``starts[u]:starts[u + 1]``; if empty, unit u is row u.
    n : int
        Units, and units drawn.
    plain, excess, cells
        As in `add`.
    rows, sums, binned : int64 (r,), (r, a), (r, all cells)
        Added to: rows in the resample, and its sums.
    """
    blocks, size = _plan(n)
    states = seeds.copy()
    resamples = seeds.shape[0]
    shares = np.zeros((resamples, blocks), np.int64)
    missed = np.zeros(resamples, np.int64)
    here = np.zeros(size, np.uint32)
    for r in range(resamples):
        shares[r, 0] = n
        _divide(shares[r], states[r])
    for b in range(blocks):
        used = max(0, min(size, n - b * size))
        for r in range(resamples):
            _draw(shares[r, b], states[r], here)
            missed[r] += _without(here, used)
            _add_units(
                here[:used], b * size, starts, plain, excess, cells, rows[r : r + 1], sums[r], binned[r]
            )
            here[:] = 0
    one = np.ones(1, np.uint32)
    for r in range(resamples):
        for _ in range(missed[r]):
            unit = _one_of(n, states[r])
            _add_units(one, unit, starts, plain, excess, cells, rows[r : r + 1], sums[r], binned[r])


@jit
def _add_units(
    counts: NDArray[np.uint32],
    first: int,
    starts: NDArray[np.int64],
    plain: NDArray[np.int64],
    excess: NDArray[np.int64],
    cells: NDArray[np.uint32],
    rows: NDArray[np.int64],
    sums: NDArray[np.int64],
    binned: NDArray[np.int64],
) -> None:
    """Add the rows of the units from `first` on, times the counts of their units."""
    if starts.size == 0:
        add(counts, first, plain, excess, cells, sums, binned)
        for i in range(counts.size):
            rows[0] += np.int64(counts[i])
        return
    if counts.size == 0:
        return
    begin = starts[first]
    spread = np.empty(starts[first + counts.size] - begin, np.uint32)
    for u in range(counts.size):
        for i in range(starts[first + u], starts[first + u + 1]):
            spread[i - begin] = counts[u]
            rows[0] += np.int64(counts[u])
    add(spread, begin, plain, excess, cells, sums, binned)
