"""Sampled answers as counts of their classes, and random splits of them into a selection and an evaluation.

Random words are those of splitmix64 (Steele, Lea, Flood 2014), read by number: word i of a stream is the
mixed value of ``key + (number of the stream * 2^32 + i + 1) * GAMMA``. So a split depends on the key of its
question and on its own number alone. A place among n is the upper half of a word times n, by 2^32, rejected
where that would favour some places (Lemire 2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

MAX_ANSWERS = 1 << 24
"""Of one question: every word of a stream has its own number, with ample room for rejections."""

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF_WORD = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_WORDS = np.uint64(1 << 32)
_ONE = np.uint64(1)


@jit
def _word(state: Any) -> Any:
    """The mixed value of a state."""
    z = (state ^ (state >> _S30)) * _A
    z = (z ^ (z >> _S27)) * _B
    return z ^ (z >> _S31)


@jit
def _place(n: Any, state: Any) -> Any:
    """One of n places, and the state after it."""
    size = np.uint64(n)
    state += _GAMMA
    product = (_word(state) >> _HALF_WORD) * size
    if product & _LOW < size:  # seldom: only then may the division be needed
        favoured = _WORDS % size
        while product & _LOW < favoured:
            state += _GAMMA
            product = (_word(state) >> _HALF_WORD) * size
    return np.int64(product >> _HALF_WORD), state


@jit
def _chosen(counts: NDArray[np.int32], random_ties: bool, state: Any) -> Any:
    """The most frequent class: the first of equally frequent ones, or one drawn from these."""
    best, tied = 0, 1
    for k in range(1, counts.size):
        if counts[k] > counts[best]:
            best, tied = k, 1
        elif counts[k] == counts[best]:
            tied += 1
    if random_ties and tied > 1:
        skipped, state = _place(tied, state)
        most = counts[best]
        while skipped > 0:
            best += 1
            if counts[best] == most:
                skipped -= 1
    return best


@jit
def number(
    assignments: NDArray[np.int64],
    offsets: NDArray[np.int64],
    codes: NDArray[np.int32],
    classes: NDArray[np.int64],
    n_classes: NDArray[np.int64],
) -> Any:
    """Number the classes of each question 0, 1, ... in their order.

    Parameters
    ----------
    assignments : int64 (n,)
        Question q has the answers ``offsets[q]:offsets[q + 1]``, at least one.
    offsets : int64 (Q + 1,)
    codes : int32 (n,)
        Of each answer, written.
    classes : int64 (n,)
        Of each question its distinct classes, ascending, one question after the other; written.
    n_classes : int64 (Q,)
        How many each has; written.

    Returns
    -------
    int
        How many numbers of `classes` are in use.
    """
    used = 0
    for q in range(offsets.size - 1):
        own = assignments[offsets[q] : offsets[q + 1]]
        ordered = np.sort(own)
        first = used
        for i in range(ordered.size):
            if i == 0 or ordered[i] != ordered[i - 1]:
                classes[used] = ordered[i]
                used += 1
        n_classes[q] = used - first
        for i in range(own.size):
            low, high = first, used - 1
            while low < high:
                middle = (low + high) // 2
                if classes[middle] < own[i]:
                    low = middle + 1
                else:
                    high = middle
            codes[offsets[q] + i] = np.int32(low - first)
    return used


@jit
def modes(
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    n_classes: NDArray[np.int64],
    keys: NDArray[np.uint64],
    random_ties: bool,
    mode: NDArray[np.int32],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
) -> None:
    """Of each question: the most frequent class, and the two largest counts (0 where there is no second).

    Ties are drawn from stream 0 of the question's key.
    """
    for q in range(offsets.size - 1):
        counts = np.zeros(n_classes[q], np.int32)
        for i in range(offsets[q], offsets[q + 1]):
            counts[codes[i]] += 1
        best = _chosen(counts, random_ties, keys[q])
        mode[q] = best
        first[q] = counts[best]
        runner_up = np.int32(0)
        for k in range(counts.size):
            if k != best and counts[k] > runner_up:
                runner_up = counts[k]
        second[q] = runner_up


@jit
def splits(
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    n_classes: NDArray[np.int64],
    keys: NDArray[np.uint64],
    random_ties: bool,
    chosen: NDArray[np.int32],
    hits: NDArray[np.int32],
) -> None:
    """Random splits of each question's N answers: floor(N / 2) choose a class, the others are counted.

    Split r is stream r + 1 of the question's key. The first floor(N / 2) places of a random permutation are
    drawn (Fisher and Yates), one word each; a tie takes the next word.

    Parameters
    ----------
    codes, offsets, n_classes
        As `number` writes them; at most `MAX_ANSWERS` to a question, at least 2.
    keys : uint64 (Q,)
    random_ties : bool
        Else the class with the lowest number is chosen.
    chosen, hits : int32 (Q, R)
        The most frequent class of the selection, and answers of that class among the others; written.
    """
    widest = 0
    for q in range(offsets.size - 1):
        widest = max(widest, offsets[q + 1] - offsets[q])
    drawn = np.empty(widest, np.int32)
    totals = np.zeros(widest, np.int32)
    selected = np.zeros(widest, np.int32)
    for q in range(offsets.size - 1):
        own = codes[offsets[q] : offsets[q + 1]]
        n, k = own.size, n_classes[q]
        totals[:k] = 0
        for i in range(n):
            totals[own[i]] += 1
        for r in range(chosen.shape[1]):
            state = keys[q] + ((np.uint64(r) + _ONE) << _HALF_WORD) * _GAMMA
            selected[:k] = 0
            drawn[:n] = own
            for i in range(n // 2):
                j, state = _place(n - i, state)
                code = drawn[i + j]
                drawn[i + j] = drawn[i]
                selected[code] += 1
            best = _chosen(selected[:k], random_ties, state)
            chosen[q, r] = best
            hits[q, r] = totals[best] - selected[best]
