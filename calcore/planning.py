"""How many rows a certificate needs, and what its assumption does to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.bounds import kl_upper
from calcore.certificates import (
    _BRIER,
    _PARTS,
    _assumption,
    _shares_of_auto,
    certify,
    inversion,
    polynomials,
)
from calcore.certificates.bins import Running, Smoothness
from calcore.certificates.deviation import smallest_deviation
from calcore.certificates.options import one_seed
from calcore.certificates.plan import Planner
from calcore.certificates.plugin import SHARES
from calcore.results import Certificate, RowsNeeded, Sensitivity
from calcore.table import Cells, CellTable, ScoreTable, tabulate

__all__ = ["rows_needed", "sensitivity"]

_LEVELS = 65_536
"""Quantiles of the scores that stand for their law."""

_ROWS = sorted({digits * 10**k for digits in range(1, 100) for k in range(11)} | {10**12})
"""Plans: numbers of one or two digits and zeros, up to where nobody plans."""

_SPREAD = 0.05
"""Around a base rate, scores lie within this part of the smaller of it and its complement."""


def rows_needed(
    target: float,
    *,
    delta: float = 0.05,
    base_rate: float | None = None,
    scores: ArrayLike | None = None,
    ce: float = 0.0,
    variation: float | None = None,
    perturbed: float | None = None,
    side: Literal["upper", "both"] = "upper",
) -> RowsNeeded:
    """Say how many rows `certify` needs for an upper bound of `target`.

    Use it before data are collected or labelled. It is a plan and no guarantee: the typical bound (about the
    median over samples) that `certify` gives by default, ``method="auto"``.

    Parameters
    ----------
    target : float
        Upper bound of the calibration error that is wanted, in (0, 1).
    delta : float, default 0.05
        Error probability of the certificate.
    base_rate : float, optional
        Share of positive rows, where nothing else is known. Scores are then taken to lie close to it, which
        of all scores with this mean need the most rows.
    scores : (m,) array_like, optional
        Scores of the model; a few thousand are enough. One of the two must be given, and with `perturbed`
        these, as they are after the perturbation.
    ce : float, default 0
        Calibration error of the model, below `target`. The bound is taken to be larger by all of it,
        wherever in the scores it is: for an error spread over all scores, fewer rows do.
    variation : float, optional
        As in `certify`; finite. Without `perturbed`, the default is 1.
    perturbed : float, optional
        As in `certify`: width of the sech law that the scores were drawn with.
    side : {"upper", "both"}
        As in `certify`.

    Returns
    -------
    RowsNeeded
        `n`, a number of two digits and zeros; and the bound to be expected from other numbers of rows.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain, or more than 10^12 rows would be needed.

    Notes
    -----
    The methods are those that `certify` would choose from at each n, at their parts of `delta`, and the bins
    those that it would choose (THEORY 7.4). Scores are interpolated between the quantiles of those given; a
    value that fills a quantile and more is one score that many rows have. About 18 numbers of rows are tried,
    each O(65,536). A larger target never needs more rows.

    Examples
    --------
    >>> plan = rows_needed(0.02, base_rate=0.5)
    >>> 30_000 < plan.n < 60_000
    True
    """
    wanted = _validate.probability(target, "target")
    delta = _validate.probability(delta, "delta")
    _validate.choice(side, "side", ("upper", "both"))
    error = _validate.nonnegative_number(ce, "ce")
    if error >= wanted:
        raise ValueError(
            f"target must be above ce; got {target} and {ce}: no bound is below the error itself"
        )
    if variation is None and perturbed is None:
        variation = 1.0
    smooth, _ = _assumption(variation, None, perturbed)
    assert smooth is not None
    if variation == math.inf:
        raise ValueError("variation must be finite; got inf")
    if perturbed is not None and scores is None:
        raise TypeError("scores must be given with perturbed: a base rate does not say how far they spread")
    law = _law(base_rate, scores)
    width = None if perturbed is None else float(perturbed)

    @cache
    def bound(n: int) -> float:
        return _expected(law, n, side, delta, smooth, width, error)

    # The same steps for all targets, so that a larger one never ends at more rows.
    low, high = -1, len(_ROWS) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(_ROWS[middle]) <= wanted else (middle, high)
    needed = _ROWS[high]
    if bound(needed) > wanted:
        raise ValueError(
            f"target must be larger: {_ROWS[-1]:.0e} rows do not give a bound of {target} above ce={ce}"
        )
    decade = 10 ** max(1, round(math.log10(needed)) - 2)
    others = sorted({needed, *(factor * decade * 10**k for k in range(4) for factor in (1, 3))})
    return RowsNeeded(
        n=needed,
        target=wanted,
        delta=delta,
        side=side,
        ce=error,
        variation=None if variation is None else float(variation),
        perturbed=width,
        base_rate=float(law.mean()),
        curve=tuple((n, bound(n)) for n in others if n <= _ROWS[-1]),
    )


def _law(base_rate: float | None, scores: ArrayLike | None) -> NDArray[np.float64]:
    """Quantiles of the scores, equally likely."""
    if (base_rate is None) == (scores is None):
        raise TypeError("base_rate or scores must be given, and not both")
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    if scores is None:
        p = _validate.probability(base_rate, "base_rate")
        return p + _SPREAD * min(p, 1.0 - p) * (2.0 * levels - 1.0)
    with _validate.renamed("y_prob", "scores"):
        given = np.sort(_validate.scores(scores))
    # as np.quantile, which takes a second for each 20,000 scores
    return np.interp(levels * (given.size - 1), np.arange(given.size), given)


def _cells(law: NDArray[np.float64], n: int) -> Cells:
    """`n` rows spread over a law; a value that several quantiles have is an atom."""
    value, count = np.unique(law, return_counts=True)
    rows = np.diff(np.round(np.cumsum(count) * (n / law.size)), prepend=0.0).astype(np.int64)
    between = np.concatenate([value[:1], 0.5 * (value[1:] + value[:-1]), value[-1:]])
    low, high = (np.where(count > 1, value, ends) for ends in (between[:-1], between[1:]))
    some = rows > 0
    return Cells(rows[some], np.zeros_like(rows[some]), (rows * value)[some], low[some], high[some])


def _expected(
    law: NDArray[np.float64],
    n: int,
    side: str,
    delta: float,
    smooth: Smoothness,
    width: float | None,
    ce: float,
) -> float:
    """The upper bound to be expected from `n` rows of a model with calibration error `ce`."""
    cells = _cells(law, n)
    running = Running.of(cells)
    above = (1.0 - _BRIER) * delta * _PARTS[side][1]
    square = min(1.0, float((law * (1.0 - law)).mean()) + ce)
    brier = kl_upper(square, -math.log(_BRIER * delta) / n)
    least = 1.0
    for method, share in _shares_of_auto(n, smooth, width is not None).items():
        part = share * above
        if method == "inversion":
            bound = inversion.expected_upper(cells, running, smooth, part, square, brier, ce)
        elif method == "polynomials":
            assert width is not None
            bound = polynomials.expected_upper(cells, running, width, part, ce)
        else:
            planner = Planner(cells, running, above)
            base = min(1.0, ce + planner.best(smooth).expected - planner.deviation)
            bound = base + smallest_deviation(base, n, part * SHARES.main, brier).total
        least = min(least, bound)
    return least


def sensitivity(
    y_true: Any,
    y_prob: Any = None,
    variations: Sequence[float] = (0.5, 1.0, 2.0),
    *,
    delta: float = 0.05,
    side: Literal["both", "upper"] = "both",
    method: Any = "auto",
    groups: Any = None,
    pos_label: Any = None,
    rng: Any = None,
) -> Sensitivity:
    """Certify under several assumptions: what the total variation of eta does to the bound.

    A report for a reader who doubts the assumption. Each certificate holds alone, if *its* assumption is
    true: state yours before you look, and quote that one. (The lower ends assume nothing and are one.) A
    certificate does not keep the rows, so this is a function of these, and it reads them once.

    Parameters
    ----------
    y_true, y_prob, delta, side, method, groups, pos_label, rng
        As in `certify`; a table in place of columns, too.
    variations : sequence of float
        Values of `variation`, at least one; inf assumes nothing.

    Returns
    -------
    Sensitivity
        A mapping from variation to `Certificate`, ascending.

    Raises
    ------
    ValueError, TypeError
        As `certify`.

    Examples
    --------
    >>> table = ScoreTable([0, 1] * 500, np.linspace(0.4, 0.6, 1000))
    >>> found = sensitivity(table, variations=[2, 1])
    >>> list(found), found[1.0].upper < found[2.0].upper
    ([1.0, 2.0], True)
    """
    values = sorted({_validate.nonnegative_number(v, "variations") for v in variations})
    if not values:
        raise ValueError("variations must have at least one value; got 0")
    table, seed = y_true, one_seed(rng)
    dropped = 0
    if not isinstance(y_true, ScoreTable | CellTable):
        if y_prob is None:
            raise TypeError(
                "y_prob is missing: sensitivity(y_true, y_prob) takes labels and scores, or a table"
            )
        rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
        kept = rows
        if groups is not None:
            kept = rows.take(_validate.group_rows(groups, len(rows), _validate.generator(seed)))
        dropped = len(rows) - len(kept)
        table = ScoreTable.from_rows(kept) if method == "tv" else tabulate(kept)
        y_prob = groups = pos_label = None
    certificates: dict[float, Certificate] = {}
    for v in values:
        found = certify(
            table,
            y_prob,
            delta=delta,
            side=side,
            method=method,
            variation=v,
            groups=groups,
            pos_label=pos_label,
            rng=seed,
        )
        certificates[v] = replace(found, n_dropped=dropped)
    return Sensitivity(certificates)
