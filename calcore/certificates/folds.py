"""Random folds: fit on all of them but one, test on that one (THEORY 5).

Folds are drawn for the rows in the order of their scores. That is as good as drawing them for the rows as
they came: a uniformly random partition does not know an order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calcore.certificates.bound import Bound, mean_of
from calcore.kernels.folds import deal

Folds = NDArray[np.uint32]

BLOCK = 65_536
"""Rows dealt at once."""


def draw_folds(n: int, n_folds: int, generator: np.random.Generator) -> Folds:
    """Number of the fold of each of `n` rows; sizes differ by one at most, and no fold is empty."""
    k = min(n_folds, n)
    left = np.full(k, n // k)
    left[: n % k] += 1
    folds = np.empty(n, np.uint32)
    for start in range(0, n, BLOCK):
        part = folds[start : start + BLOCK]
        deal(generator.random(part.size), left, part)
    folds.flags.writeable = False
    return folds


def mean_over_folds(
    n: int,
    n_folds: int,
    generator: np.random.Generator,
    delta: float,
    bound: Callable[[Folds, int, float], Bound],
) -> Bound:
    """Mean of ``bound(folds, k, delta / K)`` over the K folds k; each of them is one for the same error.

    All hold together with probability at least 1 - delta, so any average of them does. (The least of them
    too; the mean depends less on the draw.) One row cannot be split: the bound is then 1.
    """
    if n < 2:
        return Bound({"plug_in": 1.0})
    folds = draw_folds(n, n_folds, generator)
    used = min(n_folds, n)
    return mean_of([bound(folds, k, delta / used) for k in range(used)])
