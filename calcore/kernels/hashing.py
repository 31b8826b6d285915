"""Hashes of rows of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def rows(block: NDArray[np.float64], hashes: NDArray[np.uint64]) -> None:
    """64 bits of each row of a matrix; equal numbers have equal hashes, also 0 and -0.

    Each bit pattern is mixed in by a multiplication with 2^64 divided by the golden ratio, and a shift.
    """
    odd = np.uint64(0x9E3779B97F4A7C15)
    line = np.empty(block.shape[1])
    patterns = line.view(np.uint64)
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            line[j] = block[i, j] + 0.0  # -0.0 + 0.0 is +0.0
        total = np.uint64(0)
        for j in range(block.shape[1]):
            total = (total ^ patterns[j] ^ (patterns[j] >> np.uint64(29))) * odd
            total ^= total >> np.uint64(32)
        hashes[i] = total
