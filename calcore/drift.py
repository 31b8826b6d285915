"""Have two tables of cells the same population behind them? (THEORY 8.4)"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.kernels.binning import equal_mass_cuts
from calcore.results import DriftTest
from calcore.table import CellTable

__all__ = ["drift_test"]

_MOST_BINS = 64
_MOST_ROWS = 10**9
_MOST_DRAWS = 10**7
"""Beyond, NumPy draws no hypergeometric numbers."""

_AT_ONCE = 2**22
"""Drawn numbers that are held at once: 32 MiB."""


def drift_test(before: CellTable, after: CellTable, *, n_draws: int = 9_999, rng: Any = None) -> DriftTest:
    """Test whether scores and labels of two tables come from one population.

    Use it for two periods of a model in use, tables that were kept day by day. It says that something
    changed, not by how much, and not that either period is calibrated: certify both for that.

    Parameters
    ----------
    before, after : CellTable
        On the same grid, each with at least one row, and at most 10^9 rows together.
    n_draws : int, default 9_999
        Random divisions to compare with; the smallest possible p-value is 2 / (n_draws + 1). At most
        10^7.
    rng : None, int or numpy.random.Generator
        Draws them. None means 0.

    Returns
    -------
    DriftTest
        `p_value`, and what it is made of: `p_labels` for the rates of positives by score, `p_scores` for
        the scores.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain.

    Notes
    -----
    Exact at every sample size: under its hypothesis each p-value is at most a with probability at most a.
    (A small `p_labels` beside scores that changed may come from another mix of scores inside bins.)

    Bins are of about equal mass in both tables together, n^(1/3) of them for n rows of the smaller table, at
    most 64. Statistics: the sum over bins of squared differences of rates, each divided by its variance; and
    the squared differences of the shares of rows likewise. A change inside a bin that leaves its rate alone
    is not seen. O(cells + n_draws bins).

    References
    ----------
    Phipson, Smyth, Permutation p-values should never be zero, Stat. Appl. Genet. Mol. Biol. 9 (2010).

    Examples
    --------
    >>> before = CellTable().update([0, 1] * 500, [0.25, 0.75] * 500)
    >>> drift_test(before, before).p_value
    1.0
    >>> after = CellTable().update([1, 1] * 500, [0.25, 0.75] * 500)
    >>> drift_test(before, after).p_labels
    0.0001
    """
    for name, table in (("before", before), ("after", after)):
        if not isinstance(table, CellTable):
            raise TypeError(f"{name} must be a CellTable; got {type(table).__name__}")
        if table.n == 0:
            raise ValueError(f"{name} must hold at least one row; got an empty table")
    draws = _validate.whole_number(n_draws, "n_draws", low=1)
    if draws > _MOST_DRAWS:
        raise ValueError(f"n_draws must be at most 10^7; got {draws}")
    if (before.n_cells, before.grid) != (after.n_cells, after.grid):
        raise ValueError(
            f"after must have the same grid as before; got {after.describe()} for {before.describe()}"
        )
    generator = _validate.generator(0 if rng is None else rng)
    pooled = CellTable(before.n_cells, before.grid).merge(before).merge(after)
    if pooled.n >= _MOST_ROWS:
        raise ValueError(f"before and after must hold less than 10^9 rows together; got {pooled.n}")
    total = pooled.cells()
    n_bins = min(_MOST_BINS, max(1, round(min(before.n, after.n) ** (1 / 3))))
    running = np.concatenate([[0], np.cumsum(total.n)])
    starts = equal_mass_cuts(running, n_bins, 0, 1)[:-1]
    rows, positives = np.add.reduceat(total.n, starts), np.add.reduceat(total.k, starts)
    here = before.cells()
    bins = np.searchsorted(total.lo[starts], here.lo, side="right") - 1
    mine = np.bincount(bins, here.n, rows.size).astype(np.int64)
    hits = np.bincount(bins, here.k, rows.size).astype(np.int64)
    p_labels = _tail(
        _distance(hits, mine, rows, positives),
        lambda m: _distance(
            generator.hypergeometric(positives, rows - positives, mine, (m, rows.size)), mine, rows, positives
        ),
        draws,
        rows.size,
    )
    size, all_rows = np.array(before.n), np.array(pooled.n)
    p_scores = _tail(
        _distance(mine, size, all_rows, rows),
        lambda m: _distance(
            generator.multivariate_hypergeometric(rows, before.n, m, method="marginals"), size, all_rows, rows
        ),
        draws,
        rows.size,
    )
    return DriftTest(
        p_value=min(1.0, 2.0 * min(p_labels, p_scores)),
        p_labels=p_labels,
        p_scores=p_scores,
        n_before=before.n,
        n_after=after.n,
        n_bins=rows.size,
        n_draws=draws,
    )


def _distance(
    found: NDArray[np.int64], drawn: NDArray[np.int64], rows: NDArray[np.int64], marked: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum over bins of (found - expected)^2 / variance: `found` of the `marked` rows are among `drawn`."""
    n, m, k = (part.astype(np.float64) for part in (rows, drawn, marked))
    variance = m * (n - m) * k * (n - k) / (n * n * np.maximum(n - 1.0, 1.0))
    excess = found - m * k / n
    weight = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0.0)
    total: NDArray[np.float64] = (excess * excess * weight).sum(axis=-1)
    return total


def _tail(observed: NDArray[np.float64], draw: Any, n_draws: int, width: int) -> float:
    """Share of draws, the observed one among them, that are at least as large as it, but for rounding."""
    least = float(observed) * (1.0 - 1e-9)
    step = max(1, _AT_ONCE // width)
    reached = 1
    for start in range(0, n_draws, step):
        reached += int(np.count_nonzero(draw(min(step, n_draws - start)) >= least))
    return reached / (n_draws + 1)
