"""Exact sums of floats per bin, in wide fixed-point integers: any order or split gives the same bits.

A sum is `LIMBS` int64 words of 32 bits each, word l in units of 2^(32 l - 2148): 2^-2148 is the square of the
smallest positive double, so that every product of two doubles is a whole number of units. (A long
accumulator: Kulisch 2013; Neal 2015, arXiv 1505.05571, for the chunks that overlap.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

LIMBS = 102
"""2^1024, times 2^63 rows, times 2^2148, in words of 32 bits."""

UNIT = 2148
"""Minus the exponent of the smallest unit."""

WEIGHT, WEIGHT_LABEL, WEIGHT_SCORE = range(3)

_LOW = 0xFFFFFFFF
_FRACTION = (1 << 52) - 1
_HALF = (1 << 27) - 1


@jit
def _deposit(limbs: NDArray[np.int64], amount: int, exponent: int) -> None:
    """Add amount * 2^exponent units; amount < 2^54. Each call adds less than 2^33 to a word."""
    word, shift = exponent >> 5, exponent & 31
    low = (amount & _LOW) << shift
    high = (amount >> 32) << shift
    limbs[word] += low & _LOW
    limbs[word + 1] += (low >> 32) + (high & _LOW)
    limbs[word + 2] += high >> 32


@jit
def _mantissa(pattern: int) -> int:
    """The m of a double m * 2^(e - 1074)."""
    return pattern & _FRACTION | (1 << 52 if pattern >> 52 else 0)


@jit
def _exponent(pattern: int) -> int:
    """The e of a double m * 2^(e - 1074)."""
    return max((pattern >> 52) - 1, 0)


@jit
def add_rows(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    index: NDArray[np.int64],
    counts: NDArray[np.int64],
    limbs: NDArray[np.int64],
) -> None:
    """Add rows of weight 1 to the bins `index`; at most 2^28 rows between two calls of `carry`."""
    scores_bits = scores.view(np.int64)
    n_bins = counts.size
    rows = np.zeros(n_bins, np.int64)
    positives = np.zeros(n_bins, np.int64)
    for i in range(scores.size):
        b = index[i]
        rows[b] += 1
        positives[b] += labels[i]
        pattern = scores_bits[i]
        _deposit(limbs[b, WEIGHT_SCORE], _mantissa(pattern), _exponent(pattern) + UNIT - 1074)
    for b in range(n_bins):
        counts[b] += rows[b]
        _deposit(limbs[b, WEIGHT], rows[b], UNIT)
        _deposit(limbs[b, WEIGHT_LABEL], positives[b], UNIT)


@jit
def add_weighted_rows(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    index: NDArray[np.int64],
    counts: NDArray[np.int64],
    limbs: NDArray[np.int64],
) -> None:
    """Add rows to the bins `index`; at most 2^28 rows between two calls of `carry`.

    The product of two 53-bit mantissas is deposited in three pieces below 2^54.
    """
    scores_bits, weights_bits = scores.view(np.int64), weights.view(np.int64)
    for i in range(scores.size):
        b = index[i]
        counts[b] += 1
        mass, mass_exponent = _mantissa(weights_bits[i]), _exponent(weights_bits[i])
        score, exponent = _mantissa(scores_bits[i]), _exponent(scores_bits[i]) + mass_exponent
        _deposit(limbs[b, WEIGHT], mass, mass_exponent + UNIT - 1074)
        if labels[i]:
            _deposit(limbs[b, WEIGHT_LABEL], mass, mass_exponent + UNIT - 1074)
        mass_high, mass_low = mass >> 27, mass & _HALF
        score_high, score_low = score >> 27, score & _HALF
        total = limbs[b, WEIGHT_SCORE]
        _deposit(total, mass_low * score_low, exponent)
        _deposit(total, mass_high * score_low + mass_low * score_high, exponent + 27)
        _deposit(total, mass_high * score_high, exponent + 54)


@jit
def carry(limbs: NDArray[np.int64]) -> None:
    """Bring every word into 0 .. 2^32 - 1: one form for one value."""
    for b in range(limbs.shape[0]):
        for quantity in range(limbs.shape[1]):
            above = np.int64(0)
            for word in range(LIMBS):
                value = limbs[b, quantity, word] + above
                limbs[b, quantity, word] = value & _LOW
                above = value >> 32
