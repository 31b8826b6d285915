"""The certificate of perturbed scores by polynomials on intervals of scores (THEORY 4.2)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore.certificates.bins import Floats, Running, Table
from calcore.certificates.bound import Bound
from calcore.certificates.deviation import Deviation, sub_gaussian
from calcore.kernels import polynomials as kernel
from calcore.table import Cells

MOST = 24
"""Largest degree."""

FINEST = 16
"""Intervals are halved at most so often."""

SHIFTS = 3
"""Partitions into intervals that are averaged. An odd number: shifts of all widths are then spread evenly."""

_NOISE = 0.76
"""E|Z| of a normal Z, times the mean root of leverage: less at the middle of an interval than at its ends."""

_THINNED = 0.93
"""What averaging leaves of the noise."""

_ROUNDING = 1e-10
_BETAS = 0.5 * math.pi * (1.0 - np.geomspace(1.0, 1e-3, 97)[1:])


class Intervals(NamedTuple):
    """Consecutive intervals, as boundaries in cells, and their degrees."""

    cuts: NDArray[np.int64]
    degrees: NDArray[np.int64]
    misses: Floats
    """How far eta may be from such a polynomial."""


def approximation_errors(interval: float, degrees: NDArray[np.int64], width: float) -> Floats:
    """E(w, p, h): at most so far is eta from the best polynomial of degree p on an interval of length w.

    Parameters
    ----------
    interval : float
        w, in units of the score.
    degrees : array of int
        p >= 0.
    width : float
        h, of the perturbation.

    Notes
    -----
    The least of Bernstein's bound on ellipses in the strip where eta is analytic, of 1/2, and of what bounds
    of the first two derivatives say: w / (4 h), and w^2 / (32 h^2) for p >= 1.
    """
    width = min(max(width, 1e-100), 1e100)  # beyond which the errors are 1/2, or next to nothing
    t = 2.0 * _BETAS * (width / interval)
    rho = t + np.sqrt(t * t + 1.0)
    powers = np.exp(-np.multiply.outer(degrees, np.log(rho)))
    with np.errstate(divide="ignore", over="ignore"):
        bernstein = (powers / (np.cos(_BETAS) * (rho - 1.0))).min(axis=-1)
    slope = interval / width
    plain = np.where(degrees >= 1, min(0.25 * slope, slope * slope / 32.0), 0.25 * slope)
    least: Floats = np.minimum(np.minimum(bernstein, plain), 0.5)
    return least


def polynomials_upper(table: Table, running: Running, width: float, delta: float) -> Bound:
    """Upper bound from least-squares polynomials of the positives' rate, intervals and degrees by score.

    The matrix A of the fit is the mean of some orthogonal projections: ``CE <= P + bias + deviation`` by the
    sign lemma. P is what the fit is off, cell by cell, each at the most that its rows can differ inside.

    Parameters
    ----------
    width : float
        h, of the perturbation.

    Notes
    -----
    O(m p^2) for m cells and polynomials of degree p, beside the cells themselves.
    """
    cells, n = table.cells(), table.n
    low, high = table.mean_bounds()
    x, unsure = 0.5 * (low + high), 0.5 * (high - low)
    rows = cells.n.astype(np.float64)
    away = off_center(cells.lo, cells.hi, x, unsure, width)
    plans = [intervals_for(x, running, width, shift / SHIFTS) for shift in range(SHIFTS)]
    rate = sum(kernel.fit(plan.cuts, plan.degrees, x, rows, cells.k / rows) for plan in plans) / SHIFTS
    apart = (1.0 + slope_of(width)) * (cells.hi - cells.lo)
    plug_in = (kernel.capped_errors(rows, x - rate, apart) + float((rows * unsure).sum())) / n
    bias = sum(hidden(plan, rows, away) for plan in plans) / (SHIFTS * n) + _ROUNDING
    deviation = sub_gaussian(plug_in + bias, n, -math.log(delta))
    if deviation.total < 0.0:  # of a base near 1, which is then the bound
        deviation = Deviation(0.0, 0.0)
    terms = {"plug_in": plug_in, "bias": bias}
    terms |= {"deviation": deviation.sample, "transfer": deviation.transfer}
    return Bound(terms, n_bins=plans[0].degrees.size)


def expected_upper(cells: Cells, running: Running, width: float, delta: float, ce: float) -> float:
    """About the bound that `polynomials_upper` gives a model, from scores alone (THEORY 7.4).

    Parameters
    ----------
    ce : float
        Calibration error of the model.
    """
    n = int(running.rows[-1])
    x = np.clip(cells.s / cells.n, 0.0, 1.0)
    rows = cells.n.astype(np.float64)
    variance = np.concatenate([[0.0], np.cumsum(rows * x * (1.0 - x))])
    noise = bias = 0.0
    for shift in range(SHIFTS):
        plan = intervals_for(x, running, width, shift / SHIFTS)
        free = np.minimum(plan.degrees + 1, np.diff(plan.cuts))
        noise += float(np.sqrt(np.maximum(np.diff(variance[plan.cuts]), 0.0) * free).sum())
        bias += hidden(plan, rows, np.zeros_like(x))
    noise, bias = _THINNED * _NOISE * noise / (SHIFTS * n), bias / (SHIFTS * n)
    base = min(1.0, ce + min(ce, bias) + noise + bias)
    return base + max(0.0, sub_gaussian(base, n, -math.log(delta)).total)


def off_center(lo: Floats, hi: Floats, x: Floats, unsure: Floats, width: float) -> Floats:
    """How far the mean of eta over a cell's rows can be from eta at their mean x, known up to `unsure`."""
    slope = slope_of(width)
    with np.errstate(over="ignore"):
        above, below = (np.minimum((d + unsure) / width, 1e150) for d in np.maximum([hi - x, x - lo], 0.0))
    bent = 0.25 * above * below
    rough = np.minimum(1.0, slope * (0.5 * (hi - lo) + unsure))
    away: Floats = np.where(hi > lo, np.minimum(bent + slope * unsure, rough), 0.0)
    return away


def slope_of(width: float) -> float:
    """Largest slope of eta for scores perturbed with that width."""
    return min(0.5 / width, 1e300)  # infinity times 0 is not a number


def hidden(plan: Intervals, rows: Floats, away: Floats) -> float:
    """At least the sum over rows of |eta - A eta|; eta is off the polynomials by `misses` and `away`."""
    starts = plan.cuts[:-1]
    n = np.add.reduceat(rows, starts)
    square = np.add.reduceat(rows * away * away, starts)
    full = np.diff(plan.cuts) <= plan.degrees + 1  # every cell keeps its own rate
    return float(np.where(full, 0.0, n * plan.misses + np.sqrt(n * square)).sum())


def intervals_for(x: Floats, running: Running, width: float, shift: float = 0.0) -> Intervals:
    """Dyadic intervals and degrees that would give a calibrated model the least bound, from scores alone.

    They end at ``k / 2^level - shift``. From the finest level up: an interval has the degree of least noise +
    bias, or is left to its two halves.
    """
    degrees = np.arange(MOST + 1)
    finest = min(FINEST, max(0, math.ceil(-math.log2(width)) + 3))
    edges = np.arange(2 * 2**finest + 1) / 2**finest - shift
    cuts = np.concatenate([[0], np.searchsorted(x, edges[1:-1]), [x.size]])
    variance = np.concatenate([[0.0], np.cumsum(x * (1.0 - x) * np.diff(running.rows))])
    below: Floats | None = None
    levels = []
    for level in range(finest, -2, -1):
        # the first and the last interval that meet [0, 1] may stick out
        lengths = 2.0**-level, edges[edges > 0.0][0], 1.0 - edges[edges < 1.0][-1]
        errors = np.array([approximation_errors(min(1.0, length), degrees, width) for length in lengths])
        kind = np.where(edges[:-1] < 0.0, 1, np.where(edges[1:] > 1.0, 2, 0))
        m, n = np.diff(cuts), np.diff(running.rows[cuts])
        noise = np.sqrt(np.maximum(np.diff(variance[cuts]), 0.0))
        kept = np.minimum(degrees + 1, m[:, None])
        bias = np.where(kept == m[:, None], 0.0, n[:, None] * errors[kind])
        cost = _NOISE * noise[:, None] * np.sqrt(kept) + bias
        best = cost.argmin(axis=1)
        least = np.take_along_axis(cost, best[:, None], 1)[:, 0]
        whole = np.ones(best.size, np.bool_) if below is None else least <= below[::2] + below[1::2]
        levels.append((cuts, best, whole, errors[kind, best]))
        below = least if below is None else np.where(whole, least, below[::2] + below[1::2])
        cuts, edges = cuts[::2], edges[::2]
    return _leaves(levels)


def _leaves(
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], Floats]],
) -> Intervals:
    """The intervals that are not left to their halves, from the coarsest level down; empty ones dropped."""
    ends, degrees, misses = [], [], []
    here = np.zeros(1, np.intp)
    for bounds, best, whole, errors in reversed(levels):
        taken = here[whole[here] & (bounds[here + 1] > bounds[here])]
        ends.append(bounds[taken + 1])
        degrees.append(best[taken])
        misses.append(errors[taken])
        split = here[~whole[here]]
        here = np.concatenate([2 * split, 2 * split + 1])
    end, degree, miss = (np.concatenate(part) for part in (ends, degrees, misses))
    order = np.argsort(end)
    cuts = np.concatenate([[0], end[order]])
    return Intervals(cuts, degree[order].astype(np.int64), miss[order].astype(np.float64))
