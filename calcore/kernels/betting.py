"""Bets against calibration, row by row: test supermartingales for many null hypotheses at once (THEORY 8).

Only sums, products, quotients and square roots, each rounded once and in one order: the same doubles however
rows are batched, and on every machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

CAP = 1e200
"""Wealth that is not exceeded; what is above is given away, which only lowers later wealth."""


@jit
def part_of(score: float, n_parts: int) -> int:
    """Which of `n_parts` (1, or an even number) a score is in; parts are narrow near 0 and 1.

    Ends are at 2 (j/n)^2 up to one half, and mirrored above: noise is about as large in one as in another.
    """
    if n_parts == 1:
        return 0
    if score < 0.5:
        return min(int(n_parts * math.sqrt(0.5 * score)), n_parts // 2 - 1)
    return n_parts - 1 - min(int(n_parts * math.sqrt(0.5 * (1.0 - score))), n_parts // 2 - 1)


@jit
def bet(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    nulls: NDArray[np.float64],
    parts: NDArray[np.int64],
    keep: NDArray[np.float64],
    residual: NDArray[np.float64],
    variance: NDArray[np.float64],
    gains: NDArray[np.float64],
    wealth: NDArray[np.float64],
    highest: NDArray[np.float64],
    first: NDArray[np.int64],
    n_before: int,
    limit: float,
) -> None:
    """Play all rows; state arrays are changed in place.

    Parameters
    ----------
    nulls : (j,)
        Calibration errors c of the hypotheses CE <= c.
    parts, keep : (k,)
        Of each player: number of parts of the scores, and what is left of its memory after a row.
    residual, variance : (k, most parts)
        Sums of s - y, and of s (1 - s), in each part, as remembered.
    gains : (k, 3)
        Sums of x, x^2 and 1 as remembered, x = f(s)(s - y) the gain of a row.
    wealth : (k, j)
        Of every player against every hypothesis.
    highest : (j,)
        Largest mean wealth of the players so far.
    first : (1,)
        Rows after which the first mean wealth reached `limit`; -1 before.
    """
    n_players, n_nulls = wealth.shape
    for i in range(scores.size):
        s = scores[i]
        r = s - labels[i]
        for k in range(n_players):
            b = part_of(s, parts[k])
            f = residual[k, b] / math.sqrt(variance[k, b] + 1.0)
            f = min(1.0, max(-1.0, f))
            x = f * r
            total, squares, rows = gains[k, 0], gains[k, 1], gains[k, 2]
            for j in range(n_nulls):
                c = nulls[j]
                stake = (total - c * rows) / (squares - 2.0 * c * total + c * c * rows + 1.0)
                stake = min(0.5 / (1.0 + c), max(0.0, stake))
                wealth[k, j] = min(CAP, wealth[k, j] * (1.0 + stake * (x - c)))
            gains[k, 0] = keep[k] * total + x
            gains[k, 1] = keep[k] * squares + x * x
            gains[k, 2] = keep[k] * rows + 1.0
            residual[k, b] = keep[k] * residual[k, b] + r
            variance[k, b] = keep[k] * variance[k, b] + s * (1.0 - s)
        for j in range(n_nulls):
            mean = 0.0
            for k in range(n_players):
                mean += wealth[k, j]
            mean /= n_players
            highest[j] = max(highest[j], mean)
        if first[0] < 0 and highest[0] >= limit:
            first[0] = n_before + i + 1
