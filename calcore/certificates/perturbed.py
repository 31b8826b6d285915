"""Whether scores can have been perturbed with the sech law at all: ties, zeros and ones (THEORY 4.1)."""

from __future__ import annotations

import math

import numpy as np

from calcore.certificates.bins import Table
from calcore.kernels.sorting import count_distinct
from calcore.table import ScoreTable

FALSE_REFUSAL = 1e-9
"""Perturbed scores are refused with at most this probability."""

_SPACING = ((29, 2.0**-23, "float32"), (0, 2.0**-48, "float64"))
"""Trailing bits of a double that the type leaves 0, how much room one of its numbers takes, and the type.

Twice the largest gap between neighbours in [0, 1]; perturbed doubles are off by 10 units of 2^-53 besides."""


def why_not_perturbed(table: Table, width: float) -> str:
    """What says that the scores were not drawn with the sech law of this width; "" if nothing does.

    Whatever the classifier, a perturbed score has a density of at most ``D = 1 / (h gd(1 / h))``. So it takes
    one given value with probability at most q = D times the spacing of its floating-point type, which is the
    coarsest that holds all scores, and 0 or 1 with at most 2 q. Three counts are compared with that, each at
    a third of `FALSE_REFUSAL`: scores that are exactly 0 or 1, rows whose score another row before them has,
    and rows of the most frequent score. Of a `CellTable` only cells of one score say that they are tied.
    Five numbers or more that are all numbers of float16 do not come by chance either.
    """
    n, cells = table.n, table.cells()
    one = cells.hi == cells.lo
    used = np.bitwise_or.reduce(np.concatenate([cells.lo, cells.hi]).view(np.int64))
    at_ends = int(cells.n[one & ((cells.lo == 0.0) | (cells.lo == 1.0))].sum())
    tied = int((cells.n - 1)[one].sum())
    if isinstance(table, ScoreTable):
        used = np.bitwise_or.reduce(table.keys) >> 1
        tied = n - int(count_distinct(table.keys))
        first, last = np.searchsorted(table.keys, np.array([0.0, 1.0]).view(np.int64) * 2 + [2, 0])
        at_ends = int(first) + n - int(last)
    spacing, kind = next((gap, name) for bits, gap, name in _SPACING if used & ((1 << bits) - 1) == 0)
    q = min(1.0, spacing / (width * (2.0 * math.atan(math.tanh(0.5 / width)))))
    most = int(cells.n[one].max(initial=0))
    nats = math.log(3.0) - math.log(FALSE_REFUSAL)
    values = math.log(2.0) - math.log(spacing)
    for count, mean, allowed, what in (
        (at_ends, 2.0 * n * q, nats, f"{at_ends} of {n} scores are exactly 0 or 1"),
        (tied, 0.5 * n * (n - 1.0) * q, nats, f"{tied} of {n} scores repeat another one"),
        (most, n * q, nats + values, f"one score is that of {most} of {n} rows"),
    ):
        if _exceeds(count, mean, allowed):
            return f"{what}, more than rounding to {kind} explains"
    if n >= 5 and used & ((1 << 42) - 1) == 0:
        return "all scores are numbers of float16, coarser than the rounding to float32 that is allowed"
    return ""


def _exceeds(count: int, mean: float, nats: float) -> bool:
    """Whether `count` events or more, each with a chance bounded in advance, have probability < e^-nats.

    Chernoff: ``P(count or more) <= exp(count - mean - count ln(count / mean))`` above the mean.
    """
    return count > mean and count * (math.log(count) - math.log(mean)) - count + mean > nats
