"""The order of numbers by sorting one integer for each: its place on a fine grid above, its row below.

NumPy sorts integers several times faster than it sorts indirectly. What the grid cannot tell apart is put in
order afterwards, by insertion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def pack_places(x: NDArray[np.float64], low: float, scale: float, bits: int, keys: NDArray[np.int64]) -> None:
    """``floor((x - low) * scale)``, at most ``2^(62 - bits) - 1``, and the row in the `bits` bits below."""
    most = (np.int64(1) << (62 - bits)) - 1
    for i in range(x.size):
        place = (x[i] - low) * scale
        keys[i] = ((np.int64(place) if place < most else most) << bits) | i


@jit
def settle(x: NDArray[np.float64], rows: NDArray[np.int64], allowed: int) -> bool:
    """Sort `x` and `rows` with it, stably; False if that takes more than `allowed` moves."""
    for i in range(1, x.size):
        if x[i] < x[i - 1]:
            value, row, j = x[i], rows[i], i
            while j > 0 and x[j - 1] > value:
                x[j], rows[j] = x[j - 1], rows[j - 1]
                j -= 1
                allowed -= 1
            x[j], rows[j] = value, row
            if allowed < 0:
                return False
    return True
