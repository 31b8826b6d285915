"""Counts of ordered pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def doubled_wins(keys: NDArray[np.int64]) -> tuple[Any, Any]:
    """Twice the pairs (positive, negative) in which the positive has the larger score, ties counting half.

    `keys` are sorted keys of `sorting.pack`. Also returns the number of positives. Exact for fewer than
    2^32 rows.
    """
    doubled = positives = below = i = np.int64(0)
    while i < keys.size:
        score, hits, misses = keys[i] >> 1, np.int64(0), np.int64(0)
        while i < keys.size and keys[i] >> 1 == score:
            hits += keys[i] & 1
            misses += 1 - (keys[i] & 1)
            i += 1
        doubled += hits * (2 * below + misses)
        below += misses
        positives += hits
    return doubled, positives
