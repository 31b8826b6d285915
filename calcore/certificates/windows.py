"""The certificates by local averages over windows of scores (THEORY 5.2)."""

from __future__ import annotations

import math

import numpy as np

from calcore.bounds import kl_upper
from calcore.certificates.bins import Running
from calcore.certificates.bound import Bound
from calcore.certificates.deviation import Deviation, smallest_deviation
from calcore.certificates.folds import Folds, mean_over_folds
from calcore.kernels.sliding import FITTED, TESTED, unit_for, window_errors, window_weights
from calcore.table import ScoreTable

LEVELS = ((0.02, 0.75), (0.1, 0.15), (0.4, 0.06), (1.5, 0.04))
"""By how much the squares of the weights may exceed 1 on average, and the part of delta for each level.

The scores say which level is reached, so levels and parts are fixed in advance. More than 1.5 cannot be."""

REACH = 2.0
"""No label weighs more than this in all averages together."""

_POINTS = 4096
_MEAN_ABS = math.sqrt(2.0 / math.pi)


def nw_upper(table: ScoreTable, slope: float, curvature: float, delta: float, brier: float) -> Bound:
    """Upper bound from the Nadaraya-Watson estimate at every score, with the box window; no split.

    The matrix A of window means is row-stochastic: ``CE <= mean |s - A y| + bias + deviation`` by the sign
    lemma, with weights in [0, 2] whose squares are added up.

    Parameters
    ----------
    slope, curvature : float
        Bounds of the first two derivatives of the calibration function; curvature may be infinite.
    brier : float
        Upper bound of E(S - Y)^2 that holds outside an event which `delta` does not include.
    """
    n = table.n
    b = bandwidth_for(table, slope, curvature)
    roles, sizes = np.full(n, FITTED | TESTED, np.uint8), np.empty(n, np.uint32)
    roles.flags.writeable = False
    error, hidden, _ = window_errors(table.keys, roles, b, unit_for(b, n), slope, curvature, sizes)
    _, excess = window_weights(table.keys, roles, b, sizes)
    surplus, share = next(
        ((level, part) for level, part in LEVELS if excess * (1.0 + 1e-9) <= level * n), LEVELS[-1]
    )
    base = (error + hidden) / n
    deviation = smallest_deviation(base, n, share * delta, brier, surplus=surplus, reach=REACH)
    if deviation.total < 0.0:  # of a base near 1, which is then the bound
        deviation = Deviation(0.0, 0.0)
    terms = {"plug_in": error / n, "bias": hidden / n}
    return Bound(terms | {"deviation": deviation.sample, "transfer": deviation.transfer}, bandwidth=b)


def nw_folds_upper(
    table: ScoreTable,
    slope: float,
    curvature: float,
    delta: float,
    n_folds: int,
    generator: np.random.Generator,
) -> Bound:
    """Upper bound from the estimate on some folds, at the scores of the other; mean over the folds.

    Half of a fold's delta pays for the noise of the estimate (its mean size and McDiarmid's inequality,
    together ``deviation``), half for the step from the fold's scores to the population (``transfer``).
    """
    n = table.n
    b = bandwidth_for(table, slope, curvature, noise_price=0.5)
    sizes = np.empty(n, np.uint32)

    def of_fold(folds: Folds, fold: int, delta: float) -> Bound:
        tested = folds == fold
        roles = np.where(tested, np.uint8(TESTED), np.uint8(FITTED))
        roles.flags.writeable = False
        rows = int(np.count_nonzero(tested))
        nats = math.log(2.0) - math.log(delta)
        error, hidden, noise = window_errors(table.keys, roles, b, unit_for(b, n), slope, curvature, sizes)
        squares, _ = window_weights(table.keys, roles, b, sizes)
        terms = {
            "plug_in": error / rows,
            "bias": hidden / rows,
            "deviation": 0.5 * noise / rows + math.sqrt(0.5 * nats * squares) / rows,
        }
        base = sum(terms.values())
        terms["transfer"] = kl_upper(base, nats / rows) - base if base < 1.0 else 0.0
        return Bound(terms, bandwidth=b)

    return mean_over_folds(n, n_folds, generator, delta, of_fold)


def bandwidth_for(table: ScoreTable, slope: float, curvature: float, noise_price: float = 0.0) -> float:
    """Half width of the windows: what the bound of a calibrated model would be least with.

    From scores, n and the derivatives' bounds alone: the least of ``mean(hypot(noise, shift) + hidden +
    noise_price / sqrt(rows))`` over 2^0, 2^-.5, ..., 2^-26 and 0, at up to 4,096 rows spread evenly, with
    noise sqrt(2 s (1 - s) / (pi rows)), shift the distance of the window's mean score, and hidden what the
    window can hide. Width 0 averages over tied scores alone.
    """
    cells = table.cells()
    running = Running.of(cells)
    mean = np.minimum(cells.s / cells.n, 1.0)
    squares = np.concatenate([[0.0], np.cumsum(cells.s * mean)])
    ranks = np.linspace(0, table.n - 1, min(table.n, _POINTS)).astype(np.int64)
    own = np.searchsorted(running.rows, ranks, "right") - 1
    at, width = mean[own], (cells.hi - cells.lo)[own]
    variance = at * (1.0 - at)
    slope = min(slope, 1e300)  # infinity times 0 is not a number

    def expected(b: float) -> float:
        low, middle, high = (np.searchsorted(mean, edge) for edge in (at - b, at, at + b * (1.0 + 1e-12)))
        high = np.maximum(high, own + 1)
        before, after = (np.diff(running.rows[[a, z]], axis=0)[0] for a, z in ((low, middle), (middle, high)))
        under, over = (np.diff(running.scores[[a, z]], axis=0)[0] for a, z in ((low, middle), (middle, high)))
        rows = (before + after).astype(np.float64)
        near = np.maximum((at * before - under + over - at * after) / rows, width / 3.0)
        shift = (under + over) / rows - at
        square = np.maximum((squares[high] - squares[low]) / rows - at * (2.0 * shift + at), near**2)
        shift = np.abs(shift)
        if b == 0.0:
            rows, near, shift = np.where(width > 0.0, 1.0, rows), np.zeros_like(rows), np.zeros_like(rows)
        noise = np.minimum(_MEAN_ABS * np.sqrt(variance / rows), 2.0 * variance)
        hidden = np.minimum(slope * near, 1.0)
        if curvature < math.inf and b > 0.0:
            hidden = np.minimum(hidden, slope * shift + 0.5 * curvature * square)
        return float((np.hypot(noise, shift) + hidden + noise_price / np.sqrt(rows)).mean())

    widths = [0.0] + [math.exp2(-0.5 * k) for k in range(53)]
    return min(widths, key=expected)
