"""The plug-in certificate: an upper bound for the calibration error from bins of scores (THEORY 1)."""

from __future__ import annotations

from typing import NamedTuple

from calcore.certificates.bins import (
    Running,
    Smoothness,
    Table,
    bin_cells,
    distinct_errors,
    form_one,
    form_two,
)
from calcore.certificates.deviation import Deviation, smallest_deviation
from calcore.certificates.plan import Plan


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


class Shares(NamedTuple):
    """Parts of the upper bound's delta; fixed in advance, never by scores or labels."""

    main: float
    fine: float
    distinct: float


SHARES = Shares(0.79, 0.105, 0.105)
NO_ASSUMPTION = Shares(0.0, 0.0, 1.0)


def plug_in_upper(
    table: Table,
    running: Running,
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
        _binned(table, running, member, share * delta, brier, smooth)
        for member, share in members
        if share > 0.0
    ]
    cells = table.cells()
    base = min(1.0, float(distinct_errors(cells).sum()) / table.n)
    n_bins = table.n - int((cells.n - 1)[cells.lo == cells.hi].sum())
    deviation = smallest_deviation(base, table.n, shares.distinct * delta, brier, sign_weights=True)
    bounds.append(_upper(base, 0.0, deviation, n_bins, "distinct"))
    return min(bounds, key=lambda bound: bound.value)


def _binned(
    table: Table, running: Running, plan: Plan, delta: float, brier: float, smooth: Smoothness
) -> Upper:
    if plan.form == "1":
        parts = plan.parts(table.cells(), running, smooth)
        n_bins = parts.marks[0].size - 1
        plug, bias = form_one(table, running, parts, smooth)
    else:
        bins = bin_cells(table.cells(), plan.cuts)
        n_bins = bins.n.size
        spread = table.abs_deviation(bins.cuts, bins.mean_score)
        plug, bias = form_two(bins, bins.k / bins.n, spread, smooth)
    deviation = smallest_deviation(plug + bias, table.n, delta, brier)
    return _upper(plug, bias, deviation, n_bins, plan.form)


def _upper(plug: float, bias: float, deviation: Deviation, n_bins: int, form: str) -> Upper:
    """Put the parts together; none is negative.

    For a base near 1 the deviation is: CE^2 is at most the Brier score, whatever bins could hide. What is
    below 0 comes off the bias, then off the plug-in error.
    """
    if deviation.total < 0.0:
        off = -deviation.total
        plug, bias, deviation = plug - max(0.0, off - bias), max(0.0, bias - off), Deviation(0.0, 0.0)
    return Upper(plug, bias, deviation, n_bins, form)
