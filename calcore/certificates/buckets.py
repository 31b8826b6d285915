"""The certificate by equal-width bins, a union over them and a separate transfer (THEORY 5.3).

The baseline of the field, for comparison: `plugin` assumes the same and is sharper.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.bounds import kl_upper
from calcore.certificates.bins import Running, Table, bin_cells
from calcore.certificates.bound import Bound

_MEAN_ABS = math.sqrt(2.0 / math.pi)


def buckets_upper(table: Table, slope: float, delta: float) -> Bound:
    """Upper bound from the classical binned error, for a calibration function of slope at most `slope`.

    ``sum (n_B / n) |mean score - mean label|`` (``plug_in``), what a bin hides (``bias``), Hoeffding's bound
    in every bin at once at half of `delta` (``deviation``), and the step to the population by kl-Chernoff at
    the other half (``transfer``).

    Notes
    -----
    Edges at j / m, moved to the next edge of a cell of the table. m is 1, 2, 4, ..., 2^20 or between by the
    square root of 2: the least of the bound that a calibrated model would get. O(cells) for each.
    """
    slope = min(slope, 1e300)  # infinity times 0 is not a number
    cells, running = table.cells(), Running.of(table.cells())
    counts = [round(math.exp2(0.5 * k)) for k in range(41)]
    best, least = cuts_of(cells.lo, 1), math.inf
    for count in counts:
        cuts = cuts_of(cells.lo, count)
        n = np.diff(running.rows[cuts]).astype(np.float64)
        mean = np.clip(np.diff(running.scores[cuts]) / n, 0.0, 1.0)
        noise = _MEAN_ABS * np.sqrt(mean * (1.0 - mean) / n)
        expected = float((n * noise).sum()) / table.n + deviation(n, 0.5 * delta)
        if expected >= least:  # finer bins have only more noise
            break
        expected += hidden(table, cuts, slope)
        if expected < least:
            best, least = cuts, expected
    bins = bin_cells(cells, best)
    terms = {
        "plug_in": float(np.abs(bins.s - bins.k).sum()) / table.n,
        "bias": hidden(table, best, slope),
        "deviation": deviation(bins.n, 0.5 * delta),
    }
    base = sum(terms.values())
    nats = (math.log(2.0) - math.log(delta)) / table.n
    terms["transfer"] = kl_upper(base, nats) - base if base < 1.0 else 0.0
    return Bound(terms, n_bins=bins.n.size)


def cuts_of(lowest: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Boundaries, in cells with these `lowest` scores, of the occupied bins among `count` of equal width."""
    inner = np.searchsorted(lowest, np.arange(1, count) / count)
    return np.unique(np.concatenate([[0], inner, [lowest.size]])).astype(np.int64)


def hidden(table: Table, cuts: NDArray[np.int64], slope: float) -> float:
    """Mean over rows of what the mean over a bin does not show.

    ``|s - eta| <= |mean s - mean eta| + |s - mean s| + |eta - mean eta|``; the second is the spread of the
    scores, and the third averages at most `slope` times the mean difference of two scores of the bin, and at
    most 1/2.
    """
    bins = bin_cells(table.cells(), cuts)
    spread = table.abs_deviation(cuts, bins.mean_score)
    mixed = bins.mixed
    difference = np.minimum(slope * (table.abs_differences(cuts) / bins.n), 0.5 * bins.n)
    return float((spread + difference)[mixed].sum()) / table.n


def deviation(n: NDArray[np.float64], delta: float) -> float:
    """Mean over rows of ``sqrt(ln(2 m / delta) / (2 n_B))``, at most 1: all m bins, of `n` rows, hold."""
    nats = math.log(2.0 * n.size) - math.log(delta)
    return float((n * np.minimum(np.sqrt(nats / (2.0 * n)), 1.0)).sum() / n.sum())
