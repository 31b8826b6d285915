"""Sorted rows split into a training and a validation part; tied scores are treated alike in both."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.sorting import score_of
from calcore.kernels.windows import two_sum


@jit
def deal(uniform: NDArray[np.float64], left: NDArray[np.int64], folds: NDArray[np.uint32]) -> None:
    """Deal rows to folds one after the other: fold k with probability ``left[k]`` over all that is left.

    What is left of each fold goes down. (Shuffling a list of fold numbers gives the same law; at 10^7 rows it
    takes ten times as long, because it jumps through memory.)
    """
    remaining = left.sum()
    for i in range(uniform.size):
        mark = np.int64(uniform[i] * remaining)
        fold = 0
        while mark >= left[fold]:
            mark -= left[fold]
            fold += 1
        left[fold] -= 1
        remaining -= 1
        folds[i] = fold


@jit
def training_groups(
    keys: NDArray[np.int64],
    folds: NDArray[np.uint32],
    fold: int,
    counts: NDArray[np.int64],
    positives: NDArray[np.int64],
) -> Any:
    """Rows and positives of each distinct score outside `fold`; returns how many scores there are.

    `keys` are sorted keys of `sorting.pack`.
    """
    last = -1
    score = np.int64(-1)
    for i in range(keys.size):
        if folds[i] != fold:
            if keys[i] >> 1 != score:
                score = keys[i] >> 1
                last += 1
                counts[last] = 0
                positives[last] = 0
            counts[last] += 1
            positives[last] += keys[i] & 1
    return last + 1


@jit
def validation_error(
    keys: NDArray[np.int64], folds: NDArray[np.uint32], fold: int, fitted: NDArray[np.float64]
) -> tuple[Any, Any, Any]:
    """Rows in `fold`, and mean and sum of squared deviations of |f(s) - s| over them.

    f is the step function with the values `fitted` from one training score to the next, the first of them
    below the first one. Rows with one score get one value, whatever their labels and wherever in the tie they
    stand.
    """
    count = np.int64(0)
    total, error, squares, pilot = 0.0, 0.0, 0.0, 0.0
    group = -1
    start = 0
    while start < keys.size:
        end = start
        trained, tested = 0, 0
        while end < keys.size and keys[end] >> 1 == keys[start] >> 1:
            if folds[end] == fold:
                tested += 1
            else:
                trained += 1
            end += 1
        if trained:
            group += 1
        if tested:
            value = abs(fitted[max(group, 0)] - score_of(keys[start]))
            if count == 0:
                pilot = value
            count += tested
            total, rest = two_sum(total, tested * (value - pilot))
            error += rest
            squares += tested * (value - pilot) * (value - pilot)
        start = end
    total += error
    return count, pilot + total / count, max(squares - total * total / count, 0.0)


@jit
def variation(values: NDArray[np.float64]) -> Any:
    """Sum of |v_{i+1} - v_i|, to a rounding or two."""
    total, error = 0.0, 0.0
    for i in range(1, values.size):
        total, rest = two_sum(total, abs(values[i] - values[i - 1]))
        error += rest
    return total + error
