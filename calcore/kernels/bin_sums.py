"""Rows, positives and sums of scores per bin: what a binned calibration error is made of.

A score is the whole number of 2^-57 units nearest to it (its own value, if it is 1/16 or more), in two parts:
`HIGH` above 2^28 units and `LOW` below. Sums are of integers, so that order, blocks and threads cannot change
them. Positives and rows ride in the upper bits of the two sums; a block of 2^16 rows fills 63 bits at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.sorting import score_of

HIGH, LOW, ROWS, POSITIVES = range(4)
WEIGHT, HITS, EXCESS = 0, 2, 4

MAX_ROWS = 1 << 16
"""Rows that one call of `add` takes."""

_UNIT_BITS = 57
_UNITS = 2.0**_UNIT_BITS
_LOW_BITS = 28
_LOW_MASK = (1 << _LOW_BITS) - 1
_HIGH_BITS = _UNIT_BITS - _LOW_BITS
_SHIFT = 46
_MASK = (1 << _SHIFT) - 1

_CHUNK = 256
"""Rows located before they are added: the work arrays stay in the L1 cache."""

# 10^7 uniform scores, 15 bins, one thread, in units of np.sort of the same scores: .28, of which checking the
# input takes .07.


@jit
def _locate(
    scores: NDArray[np.float64],
    edges: NDArray[np.float64],
    guide: NDArray[np.uint32],
    cell: NDArray[np.uint32],
) -> None:
    """The bin of each score of a chunk: see `add`."""
    last = edges.size - 2
    if guide.size == 0:
        size = float(last + 1)
        for i in range(scores.size):
            place = np.rint(scores[i] * size)
            if scores[i] < place / size:
                place -= 1.0
            cell[i] = np.uint32(min(place, size - 1.0))
        return
    for i in range(scores.size):
        b = np.int64(guide[np.int64(scores[i] * (guide.size - 1))])
        while b < last and scores[i] >= edges[b + 1]:
            b += 1
        cell[i] = np.uint32(b)


@jit
def guide_to(edges: NDArray[np.float64], n_steps: int) -> NDArray[np.uint32]:
    """A bin at or below that of every score s with ``int(s * n_steps)`` = 0, ..., n_steps."""
    guide = np.zeros(n_steps + 1, np.uint32)
    b = 0
    for step in range(n_steps + 1):
        lowest = (step - 1) / n_steps  # the product may have been rounded up
        while b < edges.size - 2 and lowest >= edges[b + 1]:
            b += 1
        guide[step] = b
    return guide


@jit
def add(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    edges: NDArray[np.float64],
    guide: NDArray[np.uint32],
    words: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> None:
    """Add rows to the bins that they are in: bin j is [edges[j], edges[j + 1]), the last one closed.

    Parameters
    ----------
    labels, scores : uint8 (n,), float64 (n,)
        At most `MAX_ROWS`; labels 0 or 1, scores in [0, 1].
    edges : float64 (N + 1,)
        From 0 to 1, ascending; N < 2^32.
    guide : uint32
        Empty if the edges are the doubles nearest to j / N: the nearest whole number to s N is then j or j +
        1,
        and comparing s with that one edge decides. Else `guide_to` them.
    words : int64 (2 N,)
        All zero before and after the call.
    totals : int64 (4, N)
        Rows `HIGH`, `LOW`, `ROWS`, `POSITIVES`.
    """
    n_bins = totals.shape[1]
    cell = np.empty(_CHUNK, np.uint32)
    high = np.empty(_CHUNK, np.int64)
    low = np.empty(_CHUNK, np.int64)
    for start in range(0, scores.size, _CHUNK):
        block = scores[start : start + _CHUNK]
        here = labels[start : start + _CHUNK]
        _locate(block, edges, guide, cell)
        for i in range(block.size):
            units = np.int64(np.rint(block[i] * _UNITS))
            high[i] = (np.int64(here[i]) << _SHIFT) + (units >> _LOW_BITS)
            low[i] = (1 << _SHIFT) + (units & _LOW_MASK)
        for i in range(block.size):
            place = np.uint64(cell[np.uint64(i)]) * np.uint64(2)
            words[place] += high[np.uint64(i)]
            words[place + np.uint64(1)] += low[np.uint64(i)]
    for b in range(n_bins):
        totals[HIGH, b] += words[2 * b] & _MASK
        totals[POSITIVES, b] += words[2 * b] >> _SHIFT
        totals[LOW, b] += words[2 * b + 1] & _MASK
        totals[ROWS, b] += words[2 * b + 1] >> _SHIFT
        words[2 * b] = words[2 * b + 1] = 0


@jit
def add_weighted(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    edges: NDArray[np.float64],
    guide: NDArray[np.uint32],
    rows: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Add weighted rows to their bins, with compensation (Neumaier 1974): errors do not grow with rows.

    Parameters
    ----------
    labels, scores, weights : uint8 (n,), float64 (n,), float64 (n,)
        Any number of rows; weights > 0, with a finite sum.
    edges, guide
        As in `add`.
    rows : int64 (N,)
        Rows.
    sums : float64 (N, 6)
        Sum and what rounding took from it, of w, w y and w (y - s).
    """
    cell = np.empty(_CHUNK, np.uint32)
    for start in range(0, scores.size, _CHUNK):
        block = scores[start : start + _CHUNK]
        _locate(block, edges, guide, cell)
        for i in range(block.size):
            b, w, y = np.int64(cell[i]), weights[start + i], float(labels[start + i])
            rows[b] += 1
            for column in (WEIGHT, HITS, EXCESS):
                amount = w if column == WEIGHT else (w * y if column == HITS else w * (y - block[i]))
                before = sums[b, column]
                after = before + amount
                if abs(before) >= abs(amount):
                    sums[b, column + 1] += (before - after) + amount
                else:
                    sums[b, column + 1] += (amount - after) + before
                sums[b, column] = after


@jit
def running(masses: NDArray[np.float64], passed: NDArray[np.float64]) -> None:
    """Sums of the first 1, 2, ... numbers >= 0, each within a few roundings, however many there are."""
    total = rest = 0.0
    for i in range(masses.size):
        after = total + masses[i]
        rest += (total - after) + masses[i] if total >= masses[i] else (masses[i] - after) + total
        total = after
        passed[i] = total + rest


@jit
def of_sorted(keys: NDArray[np.int64], starts: NDArray[np.int64], totals: NDArray[np.int64]) -> None:
    """Add the rows ``starts[b]:starts[b+1]`` of sorted keys (see `sorting`) to bin b."""
    for b in range(starts.size - 1):
        high = low = positives = np.int64(0)
        for i in range(starts[b], starts[b + 1]):
            units = np.int64(np.rint(score_of(keys[i]) * _UNITS))
            high += units >> _LOW_BITS
            low += units & _LOW_MASK
            positives += keys[i] & 1
        totals[HIGH, b] += high
        totals[LOW, b] += low
        totals[POSITIVES, b] += positives
        totals[ROWS, b] += starts[b + 1] - starts[b]


@jit
def excesses(
    totals: NDArray[np.int64], excess: NDArray[np.float64], scores: NDArray[np.float64]
) -> tuple[int, int]:
    """Positives less the sum of scores, and the sum of scores, of each bin; up to 2^33 rows.

    The low parts are carried to the high ones first, and the difference is taken between integers: each
    number
    is rounded three times at most. Returned, exactly: the sum of absolute differences, as high and low part
    of
    a whole number of units (`in_units`).
    """
    absolute_high = absolute_low = np.int64(0)
    for b in range(totals.shape[1]):
        high = totals[HIGH, b] + (totals[LOW, b] >> _LOW_BITS)
        low = totals[LOW, b] & _LOW_MASK
        scores[b] = (high + low / 2.0**_LOW_BITS) / 2.0**_HIGH_BITS
        more = (totals[POSITIVES, b] << _HIGH_BITS) - high
        excess[b] = (more - low / 2.0**_LOW_BITS) / 2.0**_HIGH_BITS
        sign = 1 if more > 0 else -1
        absolute_high += sign * more
        absolute_low -= sign * low
    return absolute_high, absolute_low  # type: ignore[return-value]


def in_units(high: int, low: int, rows: int) -> float:
    """A whole number of units, in two parts, per row: correctly rounded."""
    return ((int(high) << _LOW_BITS) + int(low)) / (rows << _UNIT_BITS)
