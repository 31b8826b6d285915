"""Tables of scores: the waist of the library, between checked rows and every statistic.

`ScoreTable` keeps all distinct scores, sorted. `CellTable` keeps sums over a fixed grid of cells: one pass,
bounded memory, and tables add, exactly and in any order. Both answer the same questions, so a certificate
never asks which of the two it has. `BinCounts` is the small weighted accumulator behind equal-width metrics.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import secrets
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import binning, cells, deviations, exact_sums, sorting

__all__ = ["BinCounts", "CellTable", "Cells", "ScoreTable", "grid_for", "tabulate"]

Grid = Literal["linear", "sqrt", "logit"]
Norm = Literal["l1", "l2", "max", "avg"]
T = TypeVar("T", bound=np.generic)

_BLOCK = 65_536
"""Rows checked and counted at once: what fits in the L2 cache beside the work arrays."""

_GROUPS = 65_536
"""Cells of a ScoreTable, about."""

_MAX_THREADS = 4
"""Each has a private table (6.2 MiB at the default size); memory bandwidth is used up by then."""

_SORTED_ROWS = 1_000_000
"""Up to here `tabulate` sorts."""

_CELL_ROWS = 2**31 - 1
"""Rows that one cell can hold: 2^31 offsets of 30 bits fill an int64."""

_NONE = np.empty(0, np.int64)

_GRIDS: dict[Grid, int] = {"linear": cells.LINEAR, "sqrt": cells.SQRT, "logit": cells.LOGIT}


class Cells(NamedTuple):
    """Consecutive non-empty cells, by ascending score. Equal scores are never in two cells."""

    n: NDArray[np.int64]
    """Rows."""
    k: NDArray[np.int64]
    """Positives."""
    s: NDArray[np.float64]
    """Sum of the scores."""
    lo: NDArray[np.float64]
    """Smallest score, exactly."""
    hi: NDArray[np.float64]
    """Largest score, exactly."""


class _Summary(NamedTuple):
    """What both tables know of their cells."""

    cells: Cells
    hits: NDArray[np.float64]
    """Sum of the scores of positives, per cell."""
    squares: NDArray[np.float64]
    """Sum of squared scores."""
    within: NDArray[np.float64]
    """Sum of abs(s_i - s_j) over ordered pairs in the cell, or an upper bound of it."""


class _Table(ABC):
    """The questions that both tables answer, from sums per cell."""

    __slots__ = ("_cached",)

    _cached: _Summary | None

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_clipped(self) -> int:
        """Number of scores that lay outside [0, 1] by a rounding error and were moved to 0 or 1."""

    @abstractmethod
    def describe(self) -> str:
        """Name the kind of table in two or three words."""

    @abstractmethod
    def _summarise(self) -> _Summary: ...

    def _rows_of_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First rows of the cells, and sorted keys; both empty where rows are not kept."""
        return _NONE, _NONE

    @property
    def _summary(self) -> _Summary:
        if self._cached is None:
            self._cached = self._summarise()
        return self._cached

    @property
    def n_positive(self) -> int:
        """Number of rows with a positive label."""
        return int(self._summary.cells.k.sum())

    @property
    def sum_scores(self) -> float:
        """Sum of the scores."""
        return float(self._summary.cells.s.sum())

    @property
    def sum_squared_error(self) -> float:
        """Sum of (s - y)^2."""
        summary = self._summary
        return float((summary.squares - 2.0 * summary.hits + summary.cells.k).sum())

    @property
    def sum_abs_error(self) -> float:
        """Sum of abs(s - y)."""
        summary = self._summary
        return float((summary.cells.s - 2.0 * summary.hits + summary.cells.k).sum())

    def cells(self) -> Cells:
        """Return the non-empty cells, by ascending score (computed once; read-only arrays)."""
        return self._summary.cells

    def abs_deviation(self, cuts: NDArray[np.int64], centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of abs(s - centers[b]) over the rows of each bin.

        Parameters
        ----------
        cuts : int64 array (b + 1,)
            Bin i is the cells ``cuts[i]:cuts[i+1]`` of `cells`.
        centers : float64 array (b,)

        Returns
        -------
        float64 array (b,)
            The sum, up to rounding; of a CellTable, an upper bound for the cell that has the centre
            inside its range (the chord of THEORY section 6), which is the sum itself if all its rows lie at
            its two ends.

        Notes
        -----
        O(cells + bins), plus the rows of one cell per bin in a ScoreTable.
        """
        n, _, s, lo, hi = self._summary.cells
        starts, keys = self._rows_of_cells()
        return deviations.absolute_deviations(
            n,
            s,
            lo,
            hi,
            starts,
            keys,
            np.ascontiguousarray(cuts, np.int64),
            np.ascontiguousarray(centers, np.float64),
        )

    def abs_differences(self, cuts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sum of abs(s_i - s_j) over all ordered pairs of rows of each bin.

        Up to rounding in a ScoreTable; in a CellTable an upper bound, exact between cells and at most
        2 n^2 (hi - mean)(mean - lo) / (hi - lo) inside a cell (THEORY section 1).
        """
        summary = self._summary
        n, _, s, lo, _ = summary.cells
        return deviations.absolute_differences(n, s, lo, summary.within, np.ascontiguousarray(cuts, np.int64))


class ScoreTable(_Table):
    """All distinct scores, sorted, with the number of rows and of positives of each.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; anything else with `pos_label`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    pos_label : bool, int, float or str, optional
        The label that counts as positive.

    Attributes
    ----------
    scores, counts, positives : read-only arrays of shape (number of distinct scores,)
        float64, int64, int64: ties pooled, ascending. Made when first asked for.

    Raises
    ------
    ValueError
        If labels or scores break their rules; see the message.

    Notes
    -----
    The label is packed into the sort key below the score's bit pattern: one vectorised integer sort,
    O(n log n), 8 bytes per row. Equal scores are never told apart: the order of tied labels must not matter.

    Examples
    --------
    >>> table = ScoreTable([0, 1, 1], [0.5, 0.25, 0.5])
    >>> table.scores, table.counts, table.positives
    (array([0.25, 0.5 ]), array([1, 2]), array([1, 1]))
    """

    __slots__ = ("_keys", "_n_clipped", "_pooled", "_starts")

    _keys: NDArray[np.int64]
    _pooled: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]] | None

    def __init__(self, y_true: ArrayLike, y_prob: ArrayLike, *, pos_label: Any = None) -> None:
        self._read(_validate.binary(y_true, y_prob, pos_label=pos_label))

    @classmethod
    def _from_rows(cls, rows: _validate.Rows) -> Self:
        table = cls.__new__(cls)
        table._read(rows)
        return table

    def _read(self, rows: _validate.Rows) -> None:
        self._keys = np.empty(len(rows), np.int64)
        self._n_clipped = 0
        for start in range(0, len(rows), _BLOCK):
            labels, scores, clipped = rows.block(start, start + _BLOCK)
            sorting.pack(labels, scores, self._keys[start : start + _BLOCK])
            self._n_clipped += clipped
        self._keys.sort()
        self._starts = _NONE
        self._pooled = None
        self._cached = None

    @property
    def n(self) -> int:
        return len(self._keys)

    @property
    def n_clipped(self) -> int:
        return self._n_clipped

    @property
    def scores(self) -> NDArray[np.float64]:
        """Distinct scores, ascending."""
        return self._pool()[0]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each distinct score."""
        return self._pool()[1]

    @property
    def positives(self) -> NDArray[np.int64]:
        """Positives of each distinct score."""
        return self._pool()[2]

    def _pool(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        if self._pooled is None:
            m = int(sorting.count_distinct(self._keys))
            scores, counts, positives = np.empty(m), np.empty(m, np.int64), np.empty(m, np.int64)
            sorting.pool(self._keys, scores, counts, positives)
            self._pooled = _frozen(scores), _frozen(counts), _frozen(positives)
        return self._pooled

    def describe(self) -> str:
        return "sorted scores"

    def __repr__(self) -> str:
        return f"<ScoreTable: {self.n} rows>"

    def _summarise(self) -> _Summary:
        starts = sorting.distinct_starts(self._keys, _GROUPS)
        if not len(starts):
            starts = sorting.equal_mass_starts(self._keys, _GROUPS)
        m = len(starts) - 1
        positives, sums = np.empty(m, np.int64), np.empty((6, m))
        sorting.summarise(self._keys, starts, positives, sums)
        self._starts = starts
        return _summary(np.diff(starts), positives, sums)

    def _rows_of_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._starts, self._keys


class CellTable(_Table):
    """Sums over a fixed grid of score cells: filled in one pass, in batches, by threads, or on other
    machines.

    Parameters
    ----------
    n_cells : int, default 100_800
        Number of cells. The default is a multiple of 10, 15, 20, 25, 30, 40, 45 and 50, so bins of
        those equal widths are unions of cells.
    grid : {"linear", "sqrt", "logit"}, default "linear"
        Where the cells end. Cell j of N is [e(j), e(j+1)), the last one closed:

        * linear: e(j) = j/N, the nearest double.
        * sqrt: e(j) = (j/N)^2; finer near 0, for rare events.
        * logit: finer near 0 and 1, for scores that crowd there. Each of the 64 octaves 2^-(i+1) .. 2^-i
          of s (below one half) and of 1 - s (above), i = 1..32, has N/64 equally wide cells; the first and
          the last cell reach to 0 and 1.

    Notes
    -----
    Per cell: rows, positives, sums of s, of s^2, of s over positives, smallest and largest score. Counts and
    extremes are exact. Scores are summed as integers, in units of 2^-30 of their cell's width w: the result
    does not depend on order, batches, threads or merging, and the mean score of a cell is off by at most
    2^-31 w, plus rounding of the result. A cell holds up to 2^31 - 1 rows.

    Examples
    --------
    >>> day1 = CellTable().update([0, 1], [0.25, 0.75])
    >>> day2 = CellTable().update([1], [0.5])
    >>> total = day1.merge(day2)
    >>> total.n, total.n_positive, total.sum_scores
    (3, 2, 1.5)
    """

    __slots__ = ("_edges", "_n", "_n_clipped", "_words", "grid", "n_cells")

    n_cells: int
    grid: Grid

    def __init__(self, n_cells: int = 100_800, grid: Grid = "linear") -> None:
        self.n_cells = _validate.whole_number(n_cells, "n_cells", low=1)
        self.grid = cast(Grid, _validate.choice(grid, "grid", tuple(_GRIDS)))
        self._edges = _edges(self.grid, self.n_cells) if self.grid == "logit" else np.empty(0)
        self._words = _empty_cells(self.n_cells)
        self._n = 0
        self._n_clipped = 0
        self._cached = None

    @property
    def n(self) -> int:
        return self._n

    @property
    def n_clipped(self) -> int:
        return self._n_clipped

    def describe(self) -> str:
        return f"{self.n_cells} {self.grid} cells"

    def __repr__(self) -> str:
        return f"<CellTable: {self.n} rows in {self.describe()}>"

    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        pos_label: Any = None,
        n_threads: int | None = None,
    ) -> Self:
        """Add rows. Nothing is added if any row is refused.

        Parameters
        ----------
        y_true, y_prob, pos_label
            As in `ScoreTable`.
        n_threads : int, optional
            Default: one per core, at most 4. The result does not depend on it.

        Returns
        -------
        CellTable
            This table.

        Raises
        ------
        ValueError
            If labels or scores break their rules; see the message.
        OverflowError
            If a cell would hold more than 2^31 - 1 rows.
        """
        return self._add_rows(_validate.binary(y_true, y_prob, pos_label=pos_label), n_threads)

    def _add_rows(self, rows: _validate.Rows, n_threads: int | None = None) -> Self:
        blocks = -(-len(rows) // _BLOCK)
        if n_threads is None:
            n_threads = min(_MAX_THREADS, _cores())
        else:
            n_threads = min(_MAX_THREADS, _validate.whole_number(n_threads, "n_threads", low=1))
        if (
            blocks == 1 and self._n + len(rows) <= _CELL_ROWS
        ):  # checked as a whole, so it may be added in place
            clipped = self._fill(rows, self._words, iter(range(blocks)))
            return self._changed(len(rows), clipped)
        n_threads = min(n_threads, blocks)
        parts = [_empty_cells(self.n_cells) for _ in range(n_threads)]
        tickets = itertools.count()
        if n_threads == 1:
            clipped = self._fill(rows, parts[0], iter(range(blocks)))
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                jobs = [
                    pool.submit(self._fill, rows, part, itertools.takewhile(blocks.__gt__, tickets))
                    for part in parts
                ]
            clipped = sum(job.result() for job in jobs)
        for part in parts[1:]:
            cells.add(parts[0], part)
        self._add_words(parts[0], len(rows))
        return self._changed(len(rows), clipped)

    def _fill(self, rows: _validate.Rows, words: NDArray[np.int64], blocks: Any) -> int:
        clipped, grid = 0, _GRIDS[self.grid]
        for block in blocks:
            labels, scores, moved = rows.block(block * _BLOCK, (block + 1) * _BLOCK)
            cells.fill(labels, scores, grid, self._edges, words)
            clipped += moved
        return clipped

    def _add_words(self, words: NDArray[np.int64], n: int) -> None:
        if self._n + n > _CELL_ROWS:
            counts = (self._words[:, cells.COUNTS] & 0xFFFFFFFF) + (words[:, cells.COUNTS] & 0xFFFFFFFF)
            if counts.max() > _CELL_ROWS:
                raise OverflowError(
                    f"a cell would hold {counts.max()} rows; at most 2^31 - 1 can be added up exactly"
                )
        if self._n:
            cells.add(self._words, words)
        else:
            self._words = words.copy()

    def _changed(self, n: int, clipped: int) -> Self:
        self._n += n
        self._n_clipped += clipped
        self._cached = None
        return self

    def merge(self, other: CellTable) -> Self:
        """Add the rows of another table on the same grid.

        Returns
        -------
        CellTable
            This table; `other` is not changed.

        Raises
        ------
        ValueError
            If the grids differ.
        TypeError
            If `other` is no CellTable.
        OverflowError
            If a cell would hold more than 2^31 - 1 rows; this table is then unchanged.
        """
        if not isinstance(other, CellTable):
            raise TypeError(f"other must be a CellTable; got {type(other).__name__}")
        if (self.n_cells, self.grid) != (other.n_cells, other.grid):
            raise ValueError(f"other must have the same grid; got {other.describe()} for {self.describe()}")
        self._add_words(other._words, other._n)
        return self._changed(other._n, other._n_clipped)

    @property
    def is_coarse(self) -> bool:
        """Whether single cells carry more than the bins of a certificate should.

        Cells are weighed by the sum of s (1 - s) of their rows, which is what the certificates' noise comes
        from, and cells of one distinct score do not count. Coarse: the heaviest holds more than 1/(8 n^(1/3))
        of the total.
        """
        n, _, s, lo, hi = self._summary.cells
        spread = s * (1.0 - s / n)
        heaviest = spread.max(initial=0.0, where=lo < hi)
        return bool(heaviest * 8.0 * np.cbrt(self._n) > spread.sum())

    def _summarise(self) -> _Summary:
        counts, sums = np.empty((2, self.n_cells), np.int64), np.empty((6, self.n_cells))
        m = cells.decode(self._words, _edges(self.grid, self.n_cells), counts, sums)
        n, k = counts[:, :m].copy()
        return _summary(n, k, sums[:, :m].copy())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to one file, completely or not at all.

        One line of JSON (format, version, grid, sizes, SHA-256), then the zlib-compressed non-empty cells as
        little-endian int64. Equal tables give equal files.
        """
        used = np.flatnonzero(self._words[:, cells.COUNTS])
        body = np.column_stack((used, self._words[used])).astype("<i8").tobytes()
        header: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "grid": self.grid,
            "n_cells": self.n_cells,
            "n": self._n,
            "n_clipped": self._n_clipped,
        }
        header["sha256"] = _checksum(header, body)
        target = Path(path)
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as file:
                file.write(json.dumps(header).encode() + b"\n" + zlib.compress(body, 1))
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a table written by `save`.

        Raises
        ------
        ValueError
            If the file is no cell table, of an unknown version, or damaged.
        """
        line, _, packed = Path(path).read_bytes().partition(b"\n")
        try:
            header = json.loads(line)
            known = header.pop("format") == _FORMAT
            version = header.pop("version")
        except (ValueError, AttributeError, TypeError, KeyError):
            known, header, version = False, {}, None
        if not known:
            raise ValueError(f"{os.fspath(path)} is not a {_FORMAT} file")
        if version != _VERSION:
            raise ValueError(
                f"{os.fspath(path)} has version {version!r} of the {_FORMAT} format; known: {_VERSION}"
            )
        try:
            body = zlib.decompress(packed)
            digest = header.pop("sha256")
            if digest != _checksum({"format": _FORMAT, "version": version, **header}, body):
                raise ValueError("checksum")
            table = cls(header["n_cells"], header["grid"])
            rows = np.frombuffer(body, "<i8").reshape(-1, 1 + cells.WORDS)
            table._words[rows[:, 0]] = rows[:, 1:]
        except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{os.fspath(path)} is damaged: {error}") from error
        return table._changed(header["n"], header["n_clipped"])


_FORMAT = "calcore cell table"
_VERSION = 1


def _checksum(header: dict[str, Any], body: bytes) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + b"\n" + body).hexdigest()


def _edges(grid: Grid, n_cells: int) -> NDArray[np.float64]:
    """The n_cells + 1 edges, by operations that IEEE 754 rounds correctly: the same on every machine."""
    place = np.arange(n_cells + 1) / n_cells
    if grid == "linear":
        return place
    if grid == "sqrt":
        return place * place
    depth = np.abs(2.0 * place - 1.0) * cells.OCTAVES
    nearer = ((1022.0 - depth) * 2.0**52).astype(np.int64).view(np.float64)
    edges = np.where(place < 0.5, nearer, 1.0 - nearer)
    edges[0], edges[-1] = 0.0, 1.0
    return edges


def _empty_cells(n_cells: int) -> NDArray[np.int64]:
    """Zeros of shape (n_cells, 8), each row one aligned cache line: across two lines a cell costs twice."""
    raw = np.zeros((n_cells + 1) * cells.WORDS, np.int64)
    skip = -raw.ctypes.data % 64 // 8
    return raw[skip : skip + n_cells * cells.WORDS].reshape(n_cells, cells.WORDS)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _frozen(array: NDArray[T]) -> NDArray[T]:
    array.flags.writeable = False
    return array


def _summary(n: NDArray[np.int64], k: NDArray[np.int64], sums: NDArray[np.float64]) -> _Summary:
    """Columns as the kernels leave them, made read-only."""
    for array in (n, k, sums):
        array.flags.writeable = False
    s, hits, squares, within, lo, hi = sums
    return _Summary(Cells(n, k, s, lo, hi), hits, squares, within)


def tabulate(rows: _validate.Rows, *, n_threads: int | None = None) -> ScoreTable | CellTable:
    """Sort up to 1,000,000 rows; count more into 100,800 cells of the grid that suits their scores."""
    n = len(rows)
    if n <= _SORTED_ROWS:
        return ScoreTable._from_rows(rows)
    sample = np.asarray(rows.scores[:: n // _SAMPLE], np.float64)
    grid = grid_for(np.clip(np.nan_to_num(sample), 0.0, 1.0))
    return CellTable(grid=grid)._add_rows(rows, n_threads)


_SAMPLE = 65_536
_FINE_ENOUGH = 4_096


def grid_for(scores: ArrayLike) -> Grid:
    """Choose a grid for scores like these, from a sample of them.

    Distinct scores are weighed by s (1 - s), as in `CellTable.is_coarse`; a grid is as good as the number of
    its cells, heaviest first, that hold half of the weight. Linear if that is 4,096 or more, or a quarter of
    the distinct scores; else the best one.

    Examples
    --------
    >>> grid_for(np.linspace(0.0, 1.0, 10_000))
    'linear'
    >>> grid_for(np.linspace(0.0, 0.05, 10_000) ** 2)
    'sqrt'
    """
    sample = np.unique(np.asarray(scores, np.float64))
    labels = np.zeros(len(sample), np.uint8)
    weight = sample * (1.0 - sample)
    best: Grid = "linear"
    most = 0
    for grid in _GRIDS:
        edges = _edges(grid, 100_800)
        cell = np.searchsorted(edges[:-1], sample, side="right") - 1
        mass = np.sort(np.bincount(cell, weight))[::-1].cumsum()
        spread = int(np.searchsorted(mass, 0.5 * mass[-1])) + 1 if len(mass) else 0
        if grid == "linear" and spread >= min(_FINE_ENOUGH, len(labels) / 4):
            return grid
        if spread > most:
            best, most = grid, spread
    return best


class BinCounts:
    """Weighted counts per bin of scores: the state behind a binned calibration error.

    Parameters
    ----------
    n_bins : int, optional
        Equal-width bins [j/N, (j+1)/N), edges as nearest doubles, the last one closed. Default: 15.
    edges : array_like, optional
        Instead of `n_bins`: ascending bin edges from 0 to 1.

    Notes
    -----
    Sums are exact (wide fixed-point integers, 2.4 kB per bin), so `value` is the correctly rounded value of
    the formula, or the rounded sum of correctly rounded terms, and batches, order and merging cannot change
    it.

    Examples
    --------
    >>> a, b = BinCounts(10).update([1], [0.9]), BinCounts(10).update([0], [0.9])
    >>> a.merge(b).value()
    0.4
    """

    __slots__ = ("_counts", "_edges", "_limbs", "_n_bins", "_pending")

    def __init__(self, n_bins: int | None = None, *, edges: ArrayLike | None = None) -> None:
        if n_bins is not None and edges is not None:
            raise ValueError("give n_bins or edges, not both")
        self._edges: NDArray[np.float64] | None = None
        if edges is not None:
            self._edges = np.array(edges, np.float64)
            given = self._edges
            if (
                given.ndim != 1
                or len(given) < 2
                or given[0] != 0.0
                or given[-1] != 1.0
                or not np.all(np.diff(given) > 0)
            ):
                raise ValueError("edges must ascend strictly from 0 to 1")
            self._n_bins = len(given) - 1
        else:
            self._n_bins = _validate.whole_number(15 if n_bins is None else n_bins, "n_bins", low=1)
        self._counts = np.zeros(self._n_bins, np.int64)
        self._limbs = np.zeros((self._n_bins, 3, exact_sums.LIMBS), np.int64)
        self._pending = 0

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows per bin, whatever their weight."""
        return self._counts.copy()

    @property
    def edges(self) -> NDArray[np.float64]:
        """The n_bins + 1 edges."""
        return _edges("linear", self._n_bins) if self._edges is None else self._edges.copy()

    def __repr__(self) -> str:
        return f"<BinCounts: {self._counts.sum()} rows in {self._n_bins} bins>"

    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        pos_label: Any = None,
    ) -> Self:
        """Add rows, with weights finite and >= 0; nothing is added if any row is refused."""
        rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
        n = len(rows)
        weights = None if sample_weight is None else _validate.weights(sample_weight, n)
        counts, limbs, pending = self._counts.copy(), self._limbs.copy(), self._pending
        for start in range(0, n, _BLOCK):
            labels, scores, _ = rows.block(start, start + _BLOCK)
            if self._edges is None:
                index = binning.uniform_bins(scores, self._n_bins)
            else:
                index = np.searchsorted(self._edges[:-1], scores, side="right") - 1
            if pending > 2**28 - _BLOCK:
                exact_sums.carry(limbs)
                pending = 0
            pending += len(scores)
            if weights is None:
                exact_sums.add_rows(labels, scores, index, counts, limbs)
            else:
                part = np.ascontiguousarray(weights[start : start + _BLOCK])
                exact_sums.add_weighted_rows(labels, scores, part, index, counts, limbs)
        self._counts, self._limbs, self._pending = counts, limbs, pending
        return self

    def merge(self, other: BinCounts) -> Self:
        """Add the rows of another object with the same edges; `other` is not changed.

        Raises
        ------
        ValueError
            If the edges differ.
        """
        if not isinstance(other, BinCounts):
            raise TypeError(f"other must be a BinCounts; got {type(other).__name__}")
        if not np.array_equal(self.edges, other.edges):
            raise ValueError(f"other must have the same edges; got {other._n_bins} bins for {self._n_bins}")
        limbs = other._limbs.copy()
        exact_sums.carry(limbs)
        exact_sums.carry(self._limbs)
        self._limbs += limbs
        self._counts += other._counts
        self._pending = 2
        return self

    def value(self, norm: Norm = "l1") -> float:
        """Return the binned calibration error.

        Parameters
        ----------
        norm : {"l1", "l2", "max", "avg"}
            With g = abs(mean label - mean score) and W the weight of a bin: "l1" sum W g / sum W; "l2" the
            root of sum W g^2 / sum W; "max" the largest g; "avg" the plain mean of g. Bins without weight do
            not count.

        Raises
        ------
        ValueError
            If there are no rows, or only rows of weight 0.
        """
        _validate.choice(norm, "norm", ("l1", "l2", "max", "avg"))
        if not self._counts.any():
            raise ValueError("value needs at least one row; update has not been called")
        bins = [sums for sums in self._sums() if sums[0]]
        if not bins:
            raise ValueError("sample_weight must not be all zero")
        total = sum(weight for weight, _, _ in bins)
        if norm == "l1":
            return sum(abs(hits - scores) for _, hits, scores in bins) / total
        if norm == "l2":
            return math.sqrt(
                math.fsum((hits - scores) ** 2 / (weight * total) for weight, hits, scores in bins)
            )
        gaps = [abs(hits - scores) / weight for weight, hits, scores in bins]
        return max(gaps) if norm == "max" else math.fsum(gaps) / len(gaps)

    def _sums(self) -> list[Sequence[int]]:
        """Weight, weight of positives and weighted sum of scores per bin, in units of 2^-2148."""
        limbs = self._limbs.copy()
        exact_sums.carry(limbs)
        digits = limbs.astype("<u4")
        return [[int.from_bytes(number.tobytes(), "little") for number in numbers] for numbers in digits]
