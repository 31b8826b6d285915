"""Rows of class probabilities, read once: is every row sound, and which is its largest entry?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

# 10^5 rows of 100 classes (80 MB), in units of a sum of all entries (5 ms, the speed of memory): 1.7 on one
# thread. Comparing doubles in place of patterns, with the place of the largest kept along the way, took 3.


@jit
def scan(block: NDArray[np.float64], most: int, tolerance: float, best: NDArray[np.int64]) -> bool:
    """Write the column of each row's largest entry, the first of equal ones; say whether all rows are sound.

    Sound: the bit pattern of every entry, read as an unsigned integer, is at most `most`, and the sum is 1 up
    to `tolerance`. Patterns of numbers >= 0 are ordered like the numbers; those of negative numbers, of -0
    and of NaN are larger than any. If a row is not sound, `best` says nothing.
    """
    k = block.shape[1]
    whole = k - k % 8
    patterns = block.view(np.uint64)
    limit = np.uint64(most)
    sound = True
    for i in range(block.shape[0]):
        largest = np.uint64(0)
        for j in range(k):
            largest = max(largest, patterns[i, j])
        a = b = c = d = e = f = g = h = 0.0
        for j in range(0, whole, 8):
            a += block[i, j]
            b += block[i, j + 1]
            c += block[i, j + 2]
            d += block[i, j + 3]
            e += block[i, j + 4]
            f += block[i, j + 5]
            g += block[i, j + 6]
            h += block[i, j + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
        for j in range(whole, k):
            total += block[i, j]
        place = 0
        while patterns[i, place] != largest:
            place += 1
        best[i] = place
        if largest > limit or not abs(total - 1.0) <= tolerance:
            sound = False
    return sound
