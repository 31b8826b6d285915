"""Labels drawn from their scores, and how far they are from what the scores say.

Draws are integers: a label is positive if 64 random bits, read as a number below 2^64, are less than the
score times 2^64. The bits are those of xoshiro256++ (Blackman and Vigna 2021), one generator per resample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

KS, KUIPER, ECE = range(3)

ALWAYS = np.uint64(2**64 - 1)
"""The threshold of score 1; all others are at most 2^64 - 2^11."""

_ONE, _HALF_WORD, _TOP = np.uint64(1), np.uint64(32), np.uint64(63)
_A, _B, _C = np.uint64(23), np.uint64(17), np.uint64(45)
_WORD = np.uint64(64)
_ODD = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_S2, _S4, _S8, _S16 = np.uint64(2), np.uint64(4), np.uint64(8), np.uint64(16)
_BYTE = np.uint64(0x7F)

_TOGETHER = 12
"""From so many rows of one score on, 64 are drawn at once: that takes about 8 words."""


@jit
def _rotated(word: Any, by: Any) -> Any:
    return (word << by) | (word >> (_WORD - by))


@jit
def _next(s0: Any, s1: Any, s2: Any, s3: Any) -> Any:
    """64 random bits, and the state after them."""
    bits = _rotated(s0 + s3, _A) + s0
    shifted = s1 << _B
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = _rotated(s3, _C)
    return bits, s0, s1, s2, s3


@jit
def _ones(word: Any) -> Any:
    """How many bits are set."""
    word = word - ((word >> _ONE) & _ODD)
    word = (word & _PAIRS) + ((word >> _S2) & _PAIRS)
    word = (word + (word >> _S4)) & _NIBBLES
    word += word >> _S8
    word += word >> _S16
    word += word >> _HALF_WORD
    return np.int64(word & _BYTE)


@jit
def draw(
    thresholds: NDArray[np.uint64],
    counts: NDArray[np.int64],
    seed: NDArray[np.uint64],
    positives: NDArray[np.int64],
) -> None:
    """Positives among the rows of each distinct score; `seed` is the generator's state, not all 0.

    Many rows of one score are drawn together, one bit of a word each: bits of their numbers are compared with
    bits of the threshold, from the highest on, until all have differed from it.
    """
    s0, s1, s2, s3 = seed[0], seed[1], seed[2], seed[3]
    none = np.uint64(0)
    for j in range(counts.size):
        threshold = thresholds[j]
        found = np.int64(0)
        if threshold == ALWAYS:
            found = counts[j]
        elif counts[j] < _TOGETHER:
            for _ in range(counts[j]):
                bits, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
                found += 1 if bits < threshold else 0
        else:
            left = counts[j]
            while left > 0:
                undecided = ALWAYS >> np.uint64(64 - min(left, 64))
                below, rest = none, threshold
                while undecided != none and rest != none:
                    bits, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
                    if rest >> _TOP != none:
                        below |= undecided & ~bits
                        undecided &= bits
                    else:
                        undecided &= ~bits
                    rest = rest << _ONE
                found += _ones(below)
                left -= 64
        positives[j] = found


@jit
def distance(
    positives: NDArray[np.int64], expected: NDArray[np.float64], ends: NDArray[np.int64], kind: int
) -> Any:
    """Distance of running totals of positives from those `expected`.

    KS: the largest absolute difference. KUIPER: largest less smallest, 0 before the first score among them.
    ECE: sum of absolute differences of increments over bins; bin b ends before score ``ends[b]``.
    """
    passed = np.int64(0)
    if kind == ECE:
        total = before = 0.0
        begin = np.int64(0)
        for b in range(ends.size):
            for j in range(begin, ends[b]):
                passed += positives[j]
            if ends[b] > begin:
                after = passed - expected[ends[b] - 1]
                total += abs(after - before)
                before = after
                begin = ends[b]
        return total
    low = high = 0.0
    for j in range(positives.size):
        passed += positives[j]
        difference = passed - expected[j]
        low, high = min(low, difference), max(high, difference)
    return high - low if kind == KUIPER else max(high, -low)


@jit
def count_reached(
    thresholds: NDArray[np.uint64],
    counts: NDArray[np.int64],
    positives: NDArray[np.int64],
    expected: NDArray[np.float64],
    ends: NDArray[np.int64],
    kind: int,
    seeds: NDArray[np.uint64],
) -> Any:
    """How many resamples, one per seed, are at least as far away as `positives`; and how far these are.

    Both distances come from the same compiled loop over the same array.
    """
    labels = positives.copy()
    observed = distance(labels, expected, ends, kind)
    reached = 0
    for b in range(seeds.shape[0]):
        draw(thresholds, counts, seeds[b], labels)
        reached += 1 if distance(labels, expected, ends, kind) >= observed else 0
    return reached, observed
