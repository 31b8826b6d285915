"""Rows or tables -> sums per bin of scores, by any of the rules that binned metrics know."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.kernels import bin_sums, sorting
from calcore.table import grids
from calcore.table.base import BLOCK
from calcore.table.cell_table import CellTable
from calcore.table.given import Given
from calcore.table.score_table import ScoreTable

Strategy = Literal["uniform", "quantile", "min_count"]
STRATEGIES: tuple[Strategy, ...] = ("uniform", "quantile", "min_count")

_MAX_BINS = 2**24
_THREADED_ROWS = 500_000
_PARTS = 4

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Scheme(NamedTuple):
    """Where bins end: by a rule, or at given edges."""

    n_bins: int
    strategy: Strategy
    edges: Floats | None

    @classmethod
    def checked(cls, n_bins: object, strategy: object, edges: Any) -> Scheme:
        """Check what a user asked for."""
        if edges is not None:
            ends = _validate.bin_edges(edges)
            return cls(len(ends) - 1, "uniform", ends)
        count = _validate.whole_number(n_bins, "n_bins", low=1)
        if count > _MAX_BINS:
            raise ValueError(f"n_bins must be at most 2^24; got {count}")
        return cls(count, _validate.choice(strategy, "strategy", STRATEGIES), None)  # type: ignore[arg-type]

    @property
    def fixed(self) -> Floats | None:
        """The edges, if scores do not decide on them."""
        if self.edges is not None:
            return self.edges
        return grids.edges("linear", self.n_bins) if self.strategy == "uniform" else None


class BinSums(NamedTuple):
    """Sums per bin: in rows, or, of weighted rows, in parts of their weight."""

    edges: Floats
    """m + 1 of them: bin j is [edges[j], edges[j + 1]), the last one closed."""
    rows: Integers
    weight: Floats
    hits: Floats
    """Weight of positives."""
    scores: Floats
    """Weighted sum of scores."""
    excess: Floats
    """`hits` less `scores`, with the rounding error of a difference of large sums avoided."""
    total: float
    """Sum of `weight`."""
    absolute: float
    """Sum of abs(`excess`), by `total`."""


def sums_of(source: Given, scheme: Scheme, weights: Floats | None = None, threads: int = 1) -> BinSums:
    """Sums over the bins of a scheme.

    Sums of rows and of a ScoreTable are those of scores rounded to 2^-57, apart from a last rounding; the
    order of rows and the number of threads change nothing. Sums with weights are compensated. A CellTable
    adds what its cells have.
    """
    if isinstance(source, CellTable):
        return _of_cells(source, scheme)
    if weights is not None:
        assert isinstance(source, _validate.Rows)
        return _of_weighted(source, scheme, weights)
    fixed = scheme.fixed
    if fixed is not None and isinstance(source, _validate.Rows):
        return finish(_of_rows(source, scheme, threads), fixed)
    table = source if isinstance(source, ScoreTable) else ScoreTable.from_rows(source)
    starts = starts_in(table.keys, scheme)
    totals = np.zeros((4, len(starts) - 1), np.int64)
    bin_sums.of_sorted(table.keys, starts, totals)
    return finish(totals, edges_from(table.keys, starts) if fixed is None else fixed)


def _of_rows(rows: _validate.Rows, scheme: Scheme, threads: int) -> Integers:
    """Integers of `kernels.bin_sums` over bins with fixed edges, block by block, without sorting."""
    starts = range(0, len(rows), bin_sums.MAX_ROWS)
    parts = 1 if len(rows) < _THREADED_ROWS else min(threads, _PARTS)
    edges = scheme.fixed
    assert edges is not None
    guide = _guide(scheme, edges)

    def part(number: int) -> Integers:
        words, totals = np.zeros(2 * scheme.n_bins, np.int64), np.zeros((4, scheme.n_bins), np.int64)
        for start in starts[number::parts]:
            labels, scores, _ = rows.block(start, start + bin_sums.MAX_ROWS)
            bin_sums.add(labels, scores, edges, guide, words, totals)
        return totals

    if parts == 1:
        return part(0)
    with ThreadPoolExecutor(parts) as pool:
        first, *others = pool.map(part, range(parts))
    for other in others:
        first += other
    return first


def index_of(scores: Floats, edges: Floats) -> Integers:
    """The bin of each score."""
    return np.searchsorted(edges[:-1], scores, side="right") - 1


def starts_in(keys: Integers, scheme: Scheme) -> Integers:
    """First rows of the bins in sorted keys, then the number of rows; empty bins only if edges are fixed."""
    n = len(keys)
    fixed = scheme.fixed
    if fixed is not None:
        inner = np.searchsorted(keys, fixed[1:-1].view(np.int64) << 1)
        return np.concatenate([[0], inner, [n]])
    if scheme.strategy == "min_count":
        return sorting.starts_of_at_least(keys, scheme.n_bins)
    marks = -(-np.arange(1, scheme.n_bins + 1, dtype=np.int64) * n // scheme.n_bins)
    ends = np.searchsorted(keys, (keys[np.unique(marks) - 1] >> 1) + 1 << 1)
    return np.unique(np.concatenate([[0], ends]))


def edges_from(keys: Integers, starts: Integers) -> Floats:
    """0, the smallest scores of all bins but the first, and 1."""
    inner = (keys[starts[1:-1]] >> 1).view(np.float64)
    return np.concatenate([[0.0], inner, [1.0]])


def finish(totals: Integers, edges: Floats) -> BinSums:
    """Integers of `kernels.bin_sums` -> sums."""
    excess, scores = np.empty(totals.shape[1]), np.empty(totals.shape[1])
    absolute = bin_sums.excesses(totals, excess, scores)
    rows, n = totals[bin_sums.ROWS], int(totals[bin_sums.ROWS].sum())
    positives = totals[bin_sums.POSITIVES].astype(np.float64)
    weight = rows.astype(np.float64)
    return BinSums(edges, rows, weight, positives, scores, excess, float(n), bin_sums.in_units(*absolute, n))


def _of_weighted(rows: _validate.Rows, scheme: Scheme, weights: Floats) -> BinSums:
    if not weights.all():  # a row of weight 0 is as good as absent
        kept = np.flatnonzero(weights)
        if not kept.size:
            raise ValueError("sample_weight must not be all zero")
        rows, weights = rows.take(kept), weights[kept]
    weights = weights * _scale(weights)
    starts = range(0, len(rows), BLOCK)
    edges = scheme.fixed
    if edges is None:
        scores = np.concatenate([rows.block(start, start + BLOCK)[1] for start in starts])
        distinct, inverse = np.unique(scores, return_inverse=True)
        ends = _ends_of_atoms(np.bincount(inverse, weights), scheme)
        edges = _validate.bin_edges(np.concatenate([[0.0], distinct[ends[:-1]], [1.0]]))
    guide = _guide(scheme, edges)
    counts, sums = np.zeros(len(edges) - 1, np.int64), np.zeros((len(edges) - 1, 6))
    for start in starts:
        labels, scores, _ = rows.block(start, start + BLOCK)
        mass = np.ascontiguousarray(weights[start : start + BLOCK])
        bin_sums.add_weighted(labels, scores, mass, edges, guide, counts, sums)
    weight, hits, excess = (sums[:, 0::2] + sums[:, 1::2]).T
    total = math.fsum(weight)
    absolute = math.fsum(np.abs(excess)) / total
    return BinSums(edges, counts, weight, hits, hits - excess, excess, total, absolute)


def _guide(scheme: Scheme, edges: Floats) -> NDArray[np.uint32]:
    """Empty for bins of equal width: see `kernels.bin_sums.add`."""
    if scheme.edges is None and scheme.strategy == "uniform":
        return np.empty(0, np.uint32)
    return bin_sums.guide_to(edges, min(8 * len(edges), _MAX_BINS))


def _scale(weights: Floats) -> float:
    """A power of two that keeps sums of huge weights finite, and products with tiny ones; else 1.

    A power of two leaves the ratios of weights as they are, and whole weights of usual size stay whole.
    """
    most = float(weights.max())
    return 2.0**-600 if most > 2.0**900 else 2.0**600 if most < 2.0**-300 else 1.0


def _of_cells(table: CellTable, scheme: Scheme) -> BinSums:
    cells = table.cells()
    fixed = scheme.fixed
    if fixed is not None:
        _check_union(table, scheme, fixed)
        edges, bins = fixed, index_of(cells.lo, fixed)
    else:
        ends = _ends_of_atoms(cells.n, scheme)
        edges = np.concatenate([[0.0], cells.lo[ends[:-1]], [1.0]])
        bins = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    m = len(edges) - 1
    rows, hits = np.zeros(m, np.int64), np.zeros(m, np.int64)
    np.add.at(rows, bins, cells.n)
    np.add.at(hits, bins, cells.k)
    scores, excess = np.zeros(m), np.zeros(m)
    np.add.at(scores, bins, cells.s)
    np.add.at(excess, bins, cells.k - cells.s)
    absolute = math.fsum(np.abs(excess)) / table.n
    weight, positives = rows.astype(np.float64), hits.astype(np.float64)
    return BinSums(edges, rows, weight, positives, scores, excess, float(table.n), absolute)


def _check_union(table: CellTable, scheme: Scheme, edges: Floats) -> None:
    """Refuse bins that cut through cells."""
    known = grids.edges(table.grid, table.n_cells)
    cut = ~np.isin(edges, known)
    if not cut.any():
        return
    if scheme.edges is not None:
        where = int(np.argmax(cut))
        raise ValueError(
            f"edges must be edges of the table's cells; got {float(edges[where])!r} at index {where}, "
            f"and the table has {table.describe()}"
        )
    if table.grid != "linear":
        raise ValueError(
            f"n_bins must make bins that are unions of cells; got {scheme.n_bins} equally wide bins for "
            f"{table.describe()}: use strategy='quantile', or a table with grid='linear'"
        )
    n_cells = table.n_cells
    divisors = [k for k in range(1, n_cells + 1) if n_cells % k == 0]
    near = sorted(divisors, key=lambda k: abs(k - scheme.n_bins))[:2]
    raise ValueError(
        f"n_bins must divide the table's {n_cells:,} cells; got {scheme.n_bins}; "
        f"the nearest that do are {' and '.join(map(str, sorted(near)))}"
    )


def _ends_of_atoms(masses: NDArray[Any], scheme: Scheme) -> Integers:
    """Number of atoms in the first j bins, j = 1, ..., by the rule of a scheme, for atoms of these masses."""
    passed = np.cumsum(masses) * scheme.n_bins  # whole masses are compared as whole numbers
    total = passed[-1] / scheme.n_bins
    if scheme.strategy == "quantile":
        marks = np.arange(1, scheme.n_bins + 1) * total
        ends = np.unique(np.searchsorted(passed, marks)) + 1
        return np.append(ends[ends < len(masses)], len(masses))
    found: list[int] = []
    closed = 0.0
    while passed[-1] - closed >= total:
        end = int(np.searchsorted(passed, closed + total)) + 1
        if end > len(masses):
            break
        found.append(end)
        closed = passed[end - 1]
    found[-1:] = [len(masses)]
    return np.array(found, np.int64)
