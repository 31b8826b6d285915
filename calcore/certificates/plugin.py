"""The plug-in certificate: an upper bound for the calibration error from bins of scores (THEORY 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore.bounds import excess, minimise
from calcore.kernels.binning import equal_mass_cuts, running_totals
from calcore.kernels.oscillation import budgeted_error
from calcore.table import Cells, CellTable, ScoreTable

Floats = NDArray[np.float64]
Table = ScoreTable | CellTable

# E|Z| of a standard normal: what noise adds to an absolute error, on average.
_MEAN_ABS = math.sqrt(2.0 / math.pi)


class Running(NamedTuple):
    """Rows, positives and sum of scores in the first i cells, i = 0, ..., m."""

    rows: NDArray[np.int64]
    positives: NDArray[np.int64]
    scores: Floats

    @classmethod
    def of(cls, cells: Cells) -> Running:
        return cls(*running_totals(cells.n, cells.k, cells.s))


@dataclass(frozen=True, slots=True)
class Smoothness:
    """What is assumed of the calibration function; infinity where nothing is."""

    variation: float = math.inf
    lipschitz: float = math.inf


class Bins(NamedTuple):
    """Runs of cells: boundaries in cells, rows, positives, sum of scores, smallest and largest score."""

    cuts: NDArray[np.int64]
    n: Floats
    k: Floats
    s: Floats
    lo: Floats
    hi: Floats

    @property
    def mean_score(self) -> Floats:
        return self.s / self.n

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Bins that hold more than one score value; the others are atoms and have no bias."""
        return self.hi > self.lo


class Deviation(NamedTuple):
    """``CE <= base + sample + transfer``; `base + sample` bounds the error over the sample's scores."""

    sample: float
    transfer: float

    @property
    def total(self) -> float:
        return self.sample + self.transfer


class Upper(NamedTuple):
    """An upper bound and what it is made of."""

    plug_in: float
    bias: float
    deviation: Deviation
    n_bins: int
    form: str

    @property
    def value(self) -> float:
        return self.plug_in + self.bias + self.deviation.total


# --- deviations, THEORY 1.2 ---------------------------------------------------------------------------------
#
# Each is an infimum over t > 0 of closed forms, every one of which is valid if t is fixed in advance. It may
# be taken after seeing the data: the bound says "CE <= x_t for all t", and at the truth the best t is a fixed
# number. Which of the three may be used must not depend on the scores (nor may the share of delta).


def sub_gaussian(base: float, n: int, nats: float) -> Deviation:
    """Deviation (a): averages with ``||A' sign||^2 <= n``, such as projections."""

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        return math.expm1(-(t * base + t * t / 8.0 + nats / n)) / math.expm1(-t)

    total = minimise(bound, *_range_of_t(n, nats)) - base
    return _split(total, math.sqrt(0.5 * nats / n))


def bernstein(base: float, n: int, nats: float, brier: float) -> Deviation:
    """Deviation (b): weights in [-1, 1]; `brier` is an upper bound of the population's E(S - Y)^2."""

    def growth(t: float) -> float:
        phi = excess(t)
        return phi * brier * (math.expm1(phi / 4.0) / (phi / 4.0))

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        return (growth(t) - math.expm1(-(t * base + nats / n))) / t

    def sample(log_t: float) -> float:
        t = math.exp(log_t)
        return (math.log1p(growth(t)) + nats / n) / t

    search = _range_of_t(n, nats)
    return _split(minimise(bound, *search) - base, minimise(sample, *search))


def signs(base: float, n: int, nats: float) -> Deviation:
    """Deviation (c): weights exactly +1 or -1.

    The Gaussian tail of Hoeffding (1956) and Zubkov & Serov (2013) takes the place of a moment generating
    function. The search runs over the point x at which the normal hazard equals t.
    """
    root = math.sqrt(n)

    def exponent(x: float) -> tuple[float, float]:
        tail = 0.5 * math.erfc(x / math.sqrt(2.0))
        t = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) / tail
        return 2.0 * t / root, nats + max(0.0, math.log(tail) + t * x)

    def bound(x: float) -> float:
        t, cost = exponent(x)
        return math.expm1(-(t * (base + 1.0 / n) + cost / n)) / math.expm1(-t)

    def sample(x: float) -> float:
        t, cost = exponent(x)
        return 1.0 / n + cost / (n * t)

    return _split(minimise(bound, -6.0, 30.0) - base, minimise(sample, -6.0, 30.0))


def _range_of_t(n: int, nats: float) -> tuple[float, float]:
    """Where to look for ln t: from below the optimum of variance 1 to where the bounds are 1."""
    return 0.5 * math.log(nats / n) - 1.0, math.log(5.0)


def _split(total: float, sample: float) -> Deviation:
    """What passing from the sample's scores to the population adds is 0 where it adds nothing."""
    sample = min(total, sample)
    return Deviation(sample, total - sample)


def smallest_deviation(
    base: float, n: int, delta: float, brier: float, *, sign_weights: bool = False
) -> Deviation:
    """The smallest of the deviations that hold for one average; no union, each is fixed at the truth."""
    nats = -math.log(delta)
    options = [sub_gaussian(base, n, nats), bernstein(base, n, nats, brier)]
    if sign_weights:
        options.append(signs(base, n, nats))
    return min(options, key=lambda option: option.total)


# --- bins ---------------------------------------------------------------------------------------------------


def bin_cells(cells: Cells, cuts: NDArray[np.int64]) -> Bins:
    """Add up cells between consecutive `cuts`; each bin's sums from its own cells, not by subtraction."""
    starts = cuts[:-1]
    return Bins(
        cuts,
        np.add.reduceat(cells.n, starts).astype(np.float64),
        np.add.reduceat(cells.k, starts).astype(np.float64),
        np.add.reduceat(cells.s, starts),
        cells.lo[starts],
        cells.hi[cuts[1:] - 1],
    )


def hidden_mean_deviation(bins: Bins, mean_difference: Floats | None, smooth: Smoothness) -> float:
    """Form 1's bias: largest possible sum over rows of |eta - bin mean of eta| (THEORY 1.3, 1.5, 1.6).

    A bin of oscillation o hides at most ``n min(o / 2, L GMD)``; the oscillations are at most 1 each and the
    variation together. The best choice is greedy: the largest bins first.

    Parameters
    ----------
    mean_difference : (b,) array or None
        Mean absolute difference of two scores of the bin (GMD); None without a Lipschitz assumption.
    """
    mixed = bins.mixed
    rows = bins.n[mixed]
    cap = np.ones_like(rows)
    if mean_difference is not None:
        cap = np.minimum(1.0, 2.0 * smooth.lipschitz * mean_difference[mixed])
    if smooth.variation == math.inf:
        return 0.5 * float(rows @ cap)
    if mean_difference is None and rows.size > smooth.variation + 1.0:  # caps of 1: the largest bins suffice
        most = math.ceil(smooth.variation) + 1
        rows, cap = np.partition(rows, rows.size - most)[rows.size - most :], cap[:most]
    order = np.argsort(-rows, kind="stable")
    spent = np.minimum(np.cumsum(cap[order]), smooth.variation)
    return 0.5 * float(rows[order] @ np.diff(spent, prepend=0.0))


def form_one(
    bins: Bins, error: Floats, mean_difference: Floats | None, smooth: Smoothness
) -> tuple[float, float]:
    """(plug-in, bias) as means over rows. `error` is the sum over each bin's rows of |s - positive rate|."""
    n = float(bins.n.sum())
    return float(error.sum()) / n, hidden_mean_deviation(bins, mean_difference, smooth) / n


def form_two(
    bins: Bins, rate: Floats, spread: Floats, smooth: Smoothness, *, tolerance: float = 1e-9
) -> tuple[float, float]:
    """(plug-in, bias) of the form for small probabilities (THEORY 1.4).

    The plug-in part is the binned error ``sum n |mean score - rate|``; all that is added to it (the spread of
    scores inside bins and what oscillation can buy) counts as bias. `spread` is the sum of |s - mean score| a
    bin.
    """
    n = float(bins.n.sum())
    center = bins.mean_score
    cap = np.where(bins.mixed, np.minimum(1.0, _reach(smooth.lipschitz, bins.hi - bins.lo)), 0.0)
    total = float(spread[bins.mixed].sum())
    total += budgeted_error(rate, center, bins.n, cap, smooth.variation, tolerance)
    visible = float(bins.n @ np.abs(center - rate))
    return visible / n, (total - visible) / n


def _reach(lipschitz: float, width: Floats) -> Floats:
    """Oscillation that a slope of at most `lipschitz` allows on `width`."""
    return np.full_like(width, math.inf) if lipschitz == math.inf else lipschitz * width


# --- choice of bins from scores alone, THEORY 1.7
# ------------------------------------------------------------


class Plan(NamedTuple):
    """A binning and a form, and the bound that a calibrated model would get with them."""

    expected: float
    cuts: NDArray[np.int64]
    form: str
    n_bins: int


class Planner:
    """Expected bounds under perfect calibration, from scores only, so that choosing costs no probability."""

    def __init__(self, cells: Cells, running: Running, delta: float) -> None:
        self.cells = cells
        self.running = running
        self.rows = int(running.rows[-1])
        self._mean = np.minimum(cells.s / cells.n, 1.0)
        # Sums of products over cells are not written with @, for which BLAS would wake its threads.
        brier = float((cells.s * (1.0 - self._mean)).sum()) / self.rows
        step = -math.log(delta) / self.rows
        self._deviation = math.sqrt(2.0 * brier * step) + step / 3.0

    def price(self, cuts: NDArray[np.int64], smooth: Smoothness, limit: float = math.inf) -> Plan | None:
        """The better form for one binning; None if it cannot be below `limit`.

        Noise in the labels is stood for by its mean size: in form 1 it adds in quadrature to the spread of
        the bin's scores, in form 2 the rate lies off the mean score by that much. The deviation is the
        leading part of (b).
        """
        n = np.diff(self.running.rows[cuts]).astype(np.float64)
        s = np.diff(self.running.scores[cuts])
        bins = Bins(cuts, n, n, s, self.cells.lo[cuts[:-1]], self.cells.hi[cuts[1:] - 1])
        center = np.clip(bins.mean_score, 0.0, 1.0)
        noise = _MEAN_ABS * np.sqrt(center * (1.0 - center) / n)
        if float((n * noise).sum()) / self.rows + self._deviation >= limit:
            return None
        spread = np.where(bins.mixed, self._spread(cuts, center), 0.0)
        difference = 4.0 / 3.0 * spread / n if smooth.lipschitz < math.inf else None
        one = sum(form_one(bins, np.hypot(spread, n * noise), difference, smooth))
        rate = np.where(center < 0.5, center + noise, center - noise)
        two = sum(form_two(bins, rate, spread, smooth, tolerance=1e-3))
        return Plan(min(one, two) + self._deviation, cuts, "1" if one <= two else "2", n.size)

    def _spread(self, cuts: NDArray[np.int64], center: Floats) -> Floats:
        """Sum of |cell mean - center| over the rows of each bin, from running totals."""
        rows, scores = self.running.rows, self.running.scores
        first, last = cuts[:-1], cuts[1:]
        middle = np.clip(np.searchsorted(self._mean, center), first, last)
        below = center * (rows[middle] - rows[first]) - (scores[middle] - scores[first])
        above = (scores[last] - scores[middle]) - center * (rows[last] - rows[middle])
        spread: Floats = np.maximum(below + above, 0.0)
        return spread

    def equal_mass(self, n_bins: int, smooth: Smoothness) -> Plan:
        """The plan of `n_bins` bins of about equal mass."""
        plan = self.price(equal_mass_cuts(self.running.rows, n_bins), smooth)
        assert plan is not None
        return plan

    def atoms(self) -> Plan | None:
        """Every cell its own bin, if each holds one score value: no bias, no assumption."""
        if np.any(self.cells.hi > self.cells.lo):
            return None
        return self.price(np.arange(self.cells.n.size + 1), Smoothness())

    def best(self, smooth: Smoothness) -> Plan:
        """Least expected bound over numbers of bins: powers of 4, then ever smaller steps around the best."""
        most = min(self.cells.n.size, math.ceil(32.0 * self.rows ** (1.0 / 3.0)))
        plan, best, seen = self.equal_mass(1, smooth), 1, {1}

        def visit(counts: list[int]) -> None:
            nonlocal plan, best
            for count in counts:
                if 1 <= count <= most and count not in seen:
                    seen.add(count)
                    cuts = equal_mass_cuts(self.running.rows, count)
                    other = self.price(cuts, smooth, plan.expected)
                    if other is None:  # the noise alone is too much, and grows with the number of bins
                        break
                    if other.expected < plan.expected:
                        plan, best = other, count

        visit([4**j for j in range(1, most.bit_length() // 2 + 1)])
        for step in (2.0, 2.0**0.5, 2.0**0.25):
            visit([round(best / step), round(best * step)])
        atoms = self.atoms()
        return atoms if atoms is not None and atoms.expected <= plan.expected else plan


# --- the certificate ----------------------------------------------------------------------------------------


class Shares(NamedTuple):
    """Parts of the upper bound's delta; fixed in advance, never by scores or labels."""

    main: float
    fine: float
    distinct: float


SHARES = Shares(0.79, 0.105, 0.105)
NO_ASSUMPTION = Shares(0.0, 0.0, 1.0)


def plug_in_upper(
    table: Table,
    plan: Plan,
    fine: Plan,
    smooth: Smoothness,
    delta: float,
    brier: float,
    shares: Shares = SHARES,
) -> Upper:
    """The least of three bounds: the planned bins, finer ones, and every distinct score by itself.

    The third has no bias and weights of exactly +1 or -1 whatever the scores: cells that hold one score value
    are pooled, the rows of all others stand alone.

    Parameters
    ----------
    brier : float
        Upper bound of E(S - Y)^2 that holds outside an event which `delta` does not include.
    """
    if sum(shares) > 1.0 + 1e-12:
        raise ValueError(f"shares must sum to at most 1; got {shares}")
    members = [(plan, shares.main), (fine, shares.fine)]
    bounds = [
        _binned(table, member, share * delta, brier, smooth) for member, share in members if share > 0.0
    ]
    n_bins, base = distinct_error(table)
    deviation = smallest_deviation(base, table.n, shares.distinct * delta, brier, sign_weights=True)
    bounds.append(Upper(base, 0.0, deviation, n_bins, "distinct"))
    return min(bounds, key=lambda bound: bound.value)


def distinct_error(table: Table) -> tuple[int, float]:
    """Number of bins and binned error, cells of one score value being bins and every other row its own."""
    cells = table.cells()
    one = cells.lo == cells.hi
    n, k, s, value = cells.n[one], cells.k[one], cells.s[one], cells.lo[one]
    pooled = float(np.abs(s - k).sum())
    alone = table.sum_abs_error - float((s + k * (1.0 - 2.0 * value)).sum())
    return table.n - int(n.sum()) + n.size, max(0.0, pooled + alone) / table.n


def _binned(table: Table, plan: Plan, delta: float, brier: float, smooth: Smoothness) -> Upper:
    bins = bin_cells(table.cells(), plan.cuts)
    rate = bins.k / bins.n
    if plan.form == "1":
        difference = None
        if smooth.lipschitz < math.inf:
            difference = table.abs_differences(bins.cuts) / bins.n**2
        plug, bias = form_one(bins, table.abs_deviation(bins.cuts, rate), difference, smooth)
    else:
        plug, bias = form_two(bins, rate, table.abs_deviation(bins.cuts, bins.mean_score), smooth)
    deviation = smallest_deviation(plug + bias, table.n, delta, brier)
    return Upper(plug, bias, deviation, bins.n.size, plan.form)
