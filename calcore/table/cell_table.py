"""Sums over a fixed grid of score cells."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import cells
from calcore.kernels.averaging import bare_cells
from calcore.table import grids, storage
from calcore.table.base import BLOCK, Summary, Table

_MAX_THREADS = 4
"""Each has a table of its own (6.2 MiB at the default size), and memory is what they wait for."""

_THREADED_ROWS = 500_000
"""Fewer rows are checked first and then added in place: a second table would cost more than it saves."""

_GLANCE = 0.05
"""Seconds after which the main thread, waiting for others, looks for signals: one that comes just before it
begins to wait does not wake it, and on Windows none does."""

_CELL_ROWS = 2**31 - 1
"""Rows that one cell can hold: 2^31 offsets of 30 bits, and two counts of 31 bits, fit into 64."""

_MAX_CELLS = 2**24
"""1 GiB. Offsets in cells narrower than these would mostly be rounding errors of the edges."""

_MOST_ADVISED = 2**22
"""256 MiB: beyond that, sorted scores are the better advice."""

_CROWDED = 0.37
"""Part of a certificate that large cells may cost. Measured on 20 distributions, three grids, 300,000 and
3,000,000 rows: upper bounds are up to 1.08 times those from sorted scores below it, up to 62 times above."""

_FEW = 0.15
"""Expected positives or negatives of a bin below which certificates do not average its rows."""

_SPIKE = 8
"""How many times more rows than the cells beside it a cell has that a finer grid would hardly divide."""

_COUNT = 0xFFFFFFFF

_SLACK = 16
"""Units by which rounding may push an offset out of 0 .. 2^30, at most: 1/2 + 2^-21 n_cells is below."""


class CellTable(Table):
    """Sums over a fixed grid of score cells: filled in one pass, in batches, by threads, on other machines.

    Parameters
    ----------
    n_cells : int, default 100_800
        Number of cells. The default is a multiple of 10, 15, 20, 25, 30, 40, 45 and 50, so bins of
        those equal widths are unions of cells.
    grid : {"linear", "sqrt", "logit"}, default "linear"
        Where the cells end: at j/N; at (j/N)^2, finer near 0, for rare events; or in equal steps of (nearly)
        the logit, finer near 0 and 1. See `calcore.table.grids.edges`.

    Raises
    ------
    ValueError
        If `n_cells` is no whole number from 1 to 2^24 (1 GiB), or the grid is unknown.

    Notes
    -----
    A score belongs to the cell [e(j), e(j+1)) whose edges, as doubles, it lies between; 1 to the last one.
    Per cell, 64 bytes: rows, positives, the sums of s, of s^2, and of s over positives, smallest and largest
    score.

    Counts and extremes are exact. Scores are added up as integers, in units of 2^-30 of their cell's width w:
    the result does not depend on order, batches, threads or merging. With w the width of the widest cell
    (1e-5 in the default grid), over n rows:

    * `sum_scores` is off by at most n w 2^-31 (5e-15 per row) and 2^-48 of itself,
    * `sum_abs_error` by n (w 2^-29 + 2^-46),
    * `sum_squared_error` is above the truth by at most n (w 2^-27 + 2^-44), and below by n 2^-46.

    `abs_deviation` and `abs_differences`, which upper bounds rest on, are never below the truth.

    A cell holds up to 2^31 - 1 rows. One object must not be changed by several threads at once.

    A table whose `update` or `merge` was broken off among its cells (by Ctrl-C, say) holds some of the rows:
    everything but `describe` then raises RuntimeError.

    Examples
    --------
    >>> day1 = CellTable().update([0, 1], [0.25, 0.75])
    >>> day2 = CellTable().update([1], [0.5])
    >>> total = day1.merge(day2)
    >>> total.n, total.n_positive, total.sum_scores
    (3, 2, 1.5)
    """

    __slots__ = ("_edges", "_n", "_n_clipped", "_whole", "_words", "grid", "n_cells")

    n_cells: int
    grid: grids.Grid

    def __init__(self, n_cells: int = 100_800, grid: grids.Grid = "linear") -> None:
        self.n_cells = _validate.whole_number(n_cells, "n_cells", low=1)
        if self.n_cells > _MAX_CELLS:
            raise ValueError(f"n_cells must be at most 2^24 (1 GiB); got {self.n_cells}")
        self.grid = cast(grids.Grid, _validate.choice(grid, "grid", tuple(grids.CODES)))
        self._edges = grids.edges(self.grid, self.n_cells)
        self._words = _zeros(self.n_cells)
        self._n = 0
        self._n_clipped = 0
        self._cached = None
        self._whole = True

    @property
    def n(self) -> int:
        self._check_whole()
        return self._n

    @property
    def n_clipped(self) -> int:
        self._check_whole()
        return self._n_clipped

    @property
    def is_coarse(self) -> bool:
        """Whether some cell holds more rows than a sharp certificate can afford; `advice` says what helps.

        Between two scores of a cell of n_c rows a jump of the true rate is hidden, which costs n_c / 2 rows.
        With the best number of bins a certificate costs about (n W)^(1/3) rows in all, W = sum s (1 - s)
        (THEORY section 6). Coarse: what a cell hides, or leaving such cells as single rows, costs more than
        .37 of that. Cells of one score hide nothing, and those so near to 0 or 1 that no certificate averages
        over them do not count.
        """
        several, mean, cost = self._crowded()
        bare = bare_cells(several, mean, 0.5 * cost, 1.0)
        single = 2.0 * float((several[bare] * mean[bare] * (1.0 - mean[bare])).sum())
        several[bare] = 0
        return bool(single + 0.5 * several.max(initial=0) > _CROWDED * cost)

    def advice(self) -> str:
        """Name what would give a sharper certificate of rows like these, in a few words; "" if nothing would.

        Examples
        --------
        >>> CellTable(20).update(np.arange(2000) % 2, np.linspace(0.0, 1.0, 2000)).advice()
        'cells are too wide for these scores; n_cells=40, or a ScoreTable, gives a sharper bound'
        >>> CellTable(40).update(np.arange(2000) % 2, np.linspace(0.0, 1.0, 2000)).advice()
        ''
        """
        if not self.is_coarse:
            return ""
        several, mean, cost = self._crowded()
        finer = self._finer(several.astype(np.float64) * (0.5 / cost), mean)
        remedy = f"{finer}, or a ScoreTable, gives" if finer else "a ScoreTable gives"
        return f"cells are too wide for these scores; {remedy} a sharper bound"

    def _crowded(self) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        """Rows of cells in which a jump can hide, 0 of others; mean scores; rows that a certificate costs."""
        n, _, s, lo, hi = self._summary.cells
        mean = np.minimum(s / n, 1.0)
        cost = max(float(np.cbrt(self.n * float((s * (1.0 - mean)).sum()))), 1.0)
        averaged = (lo < hi) & (np.minimum(mean, 1.0 - mean) * cost > _FEW)
        return np.where(averaged, n, 0), mean, cost

    def _finer(self, crowding: NDArray[np.float64], mean: NDArray[np.float64]) -> str:
        """Arguments of a table with cells narrow enough, if rows lie evenly in the cells of this one.

        They do not where a cell is much fuller than those beside it: no grid separates what it holds.
        """
        here = np.searchsorted(self._edges[:-1], mean, side="right") - 1
        full = int(np.argmax(crowding))
        beside = (self._words[:, cells.COUNTS] & _COUNT)[max(here[full] - 1, 0) : here[full] + 2]
        if beside.max() > _SPIKE * np.delete(beside, np.argmax(beside)).max(initial=0):
            return ""
        width = np.diff(self._edges)[here]
        there = {}
        for grid in grids.CODES:
            edges = grids.edges(grid, self.n_cells)
            wide = np.diff(edges)[np.searchsorted(edges[:-1], mean, side="right") - 1]
            there[grid] = float((crowding * wide / width).max())
        best = min(there, key=lambda grid: there[grid])
        if there[best] <= _CROWDED:
            return f"grid={best!r}"
        n_cells = self.n_cells * math.ceil(there[best] / _CROWDED)
        if n_cells > _MOST_ADVISED:
            return ""
        return f"n_cells={n_cells}" if best == self.grid else f"grid={best!r} with n_cells={n_cells}"

    def describe(self) -> str:
        return f"{self.n_cells:,} {self.grid} cells"

    def __repr__(self) -> str:
        rows = f"{self._n} rows" if self._whole else "an unknown part of the rows"
        return f"<CellTable: {rows} in {self.describe()}>"

    def update(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        pos_label: Any = None,
        n_threads: int | None = None,
    ) -> Self:
        """Add rows; nothing is added if any row is refused.

        Parameters
        ----------
        y_true, y_prob, pos_label
            As in `ScoreTable`.
        n_threads : int, optional
            Default: one per core, at most 4. Less than half a million rows are left to one thread.

        Returns
        -------
        CellTable
            This table.

        Raises
        ------
        ValueError
            If labels or scores break their rules; the message names argument, rule, value and index.
        OverflowError
            If a cell would hold more than 2^31 - 1 rows, or there are more at once.

        Notes
        -----
        O(n) time; 6.2 MiB per thread besides the table (default size), none below half a million rows.
        """
        return self.add_rows(_validate.binary(y_true, y_prob, pos_label=pos_label), n_threads)

    def add_rows(self, rows: _validate.Rows, n_threads: int | None = None) -> Self:
        """Add rows whose columns have been checked; see `update`."""
        if n_threads is None:
            n_threads = _cores()
        n_threads = min(_MAX_THREADS, _validate.whole_number(n_threads, "n_threads", low=1))
        n = len(rows)
        if n > _CELL_ROWS:
            raise OverflowError(f"{n} rows at once could overflow a cell; add at most 2^31 - 1 at a time")
        starts = range(0, n, BLOCK)
        if self.n + n <= _CELL_ROWS and n < _THREADED_ROWS:
            blocks = [rows.block(start, start + BLOCK) for start in starts]
            self._begin_change()
            clipped = self._fill(self._words, blocks)
        else:
            parts = [_zeros(self.n_cells) for _ in range(min(n_threads, len(starts)))]
            clipped = self._fill_parts(parts, rows, starts)
            for part in parts[1:]:
                cells.add(parts[0], part)
            if self._n:
                self._add(parts[0], n)
            else:
                self._begin_change()
                self._words = parts[0]
        return self._end_change(n, clipped)

    def _fill_parts(self, parts: list[NDArray[np.int64]], rows: _validate.Rows, starts: range) -> int:
        """Let one thread per part take blocks from one heap; return the number of clipped scores."""
        heap = itertools.count()
        over = Event()

        def work(part: NDArray[np.int64]) -> int:
            mine = itertools.takewhile(lambda i: i < len(starts) and not over.is_set(), heap)
            try:
                return self._fill(part, (rows.block(starts[i], starts[i] + BLOCK) for i in mine))
            except BaseException:  # not at the end of the heap: another thread may hold the last block
                over.set()
                raise

        if len(parts) == 1:
            return work(parts[0])
        try:
            with ThreadPoolExecutor(len(parts)) as pool:
                try:
                    filling = [pool.submit(work, part) for part in parts]
                    while wait(filling, _GLANCE).not_done:
                        pass
                    return sum(part.result() for part in filling)
                finally:
                    over.set()  # at an interrupt nobody goes on to another block
        except ValueError:
            for start in starts:  # raise what one thread would have met first
                rows.block(start, start + BLOCK)
            raise

    def _fill(
        self,
        words: NDArray[np.int64],
        blocks: Iterable[tuple[NDArray[np.uint8], NDArray[np.float64], int]],
    ) -> int:
        total = 0
        for labels, scores, clipped in blocks:
            cells.fill(labels, scores, grids.CODES[self.grid], self._edges, words)
            total += clipped
        return total

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
        n, clipped = other.n, other.n_clipped
        self._add(other._words, n)
        return self._end_change(n, clipped)

    def _add(self, words: NDArray[np.int64], n: int) -> None:
        """Add the cells of n rows, or raise OverflowError and leave everything as it was."""
        if self.n + n > _CELL_ROWS:
            heaviest = int(((self._words & _COUNT) + (words & _COUNT))[:, cells.COUNTS].max())
            if heaviest > _CELL_ROWS:
                raise OverflowError(f"a cell would hold {heaviest} rows; 2^31 - 1 is the most that it can")
        self._begin_change()
        cells.add(self._words, words)

    def _begin_change(self) -> None:
        """From here to `_end_change` the cells hold some of the rows; an exception between leaves it so."""
        self._cached = None
        self._whole = False

    def _end_change(self, n: int, clipped: int) -> Self:
        self._n += n
        self._n_clipped += clipped
        self._whole = True
        return self

    def _check_whole(self) -> None:
        if not self._whole:
            raise RuntimeError("an update was interrupted; the table is incomplete: build it again")

    def _summarise(self) -> Summary:
        self._check_whole()
        counts, sums = np.empty((2, self.n_cells), np.int64), np.empty((8, self.n_cells))
        m = cells.decode(self._words, self._edges, counts, sums)
        counts, sums = counts[:, :m], sums[:, :m]
        if 2 * m < self.n_cells:  # do not keep what is empty
            counts, sums = counts.copy(), sums.copy()
        return Summary.of(counts[0], counts[1], sums)

    @classmethod
    def from_cells(
        cls,
        index: ArrayLike,
        *,
        n: ArrayLike,
        n_positive: ArrayLike,
        offsets: ArrayLike,
        hits: ArrayLike,
        squares: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        n_clipped: int = 0,
        n_cells: int = 100_800,
        grid: grids.Grid = "linear",
    ) -> Self:
        """Make a table of cells that were summed elsewhere, as by the group-by of a database.

        Parameters
        ----------
        index : (m,) array_like of int
            Which cells, in any order, each once.
        n, n_positive : (m,) array_like of int
            Rows, at least one, and positive rows of each cell.
        offsets, hits, squares : (m,) array_like of int
            Sums of whole numbers over all rows, over positive rows, and over all rows: of a score s in the
            cell [a, b), the offset o = rint((s - a) / (b - a) 2^30), o again, and floor(o^2 / 2^30 + 1/2).
        low, high : (m,) array_like of float
            Smallest and largest score of each cell, exactly.
        n_clipped : int, default 0
            Number of scores that lay outside [0, 1] by a rounding error and were moved to 0 or 1.
        n_cells, grid
            As in `CellTable`.

        Raises
        ------
        ValueError
            If columns differ in length, or no rows leave such cells behind.
        TypeError
            If a column does not hold whole numbers.
        OverflowError
            If a cell has more than 2^31 - 1 rows.

        Notes
        -----
        Offsets must be right to half a unit, up to rounding: the bounds of `CellTable` rest on it, and no
        check can see it. If they are computed in doubles as below, the table is the one that `update` makes,
        bit for bit (rint takes ties to even, N = n_cells, j is the cell):

        * linear: rint((s N - j) 2^30)
        * sqrt: rint((s - (j/N) (j/N)) (N N 2^30 / (2j + 1)))
        * logit: rint((s - a) / (b - a) 2^30)

        Examples
        --------
        Scores .25, .5 and .75, of which the middle one is negative, in the halves of [0, 1]:

        >>> table = CellTable.from_cells(
        ...     [0, 1],
        ...     n=[1, 2],
        ...     n_positive=[1, 1],
        ...     offsets=[2**29, 2**29],
        ...     hits=[2**29, 2**29],
        ...     squares=[2**28, 2**28],
        ...     low=[0.25, 0.5],
        ...     high=[0.25, 0.75],
        ...     n_cells=2,
        ... )
        >>> table.n, table.n_positive, table.sum_scores
        (3, 2, 1.5)
        """
        table = cls(n_cells, grid)
        given = {"index": index, "n": n, "n_positive": n_positive}
        given |= {"offsets": offsets, "hits": hits, "squares": squares}
        whole = {name: _whole_numbers(column, name) for name, column in given.items()}
        ends = {
            name: _validate.number_column(column, name) for name, column in (("low", low), ("high", high))
        }
        m = len(whole["index"])
        for name, column in (whole | ends).items():
            if len(column) != m:
                raise ValueError(f"{name} and index must have the same length; got {len(column)} and {m}")
        rows, positives = whole["n"], whole["n_positive"]
        if rows.max() > _CELL_ROWS:
            raise OverflowError(f"a cell would hold {rows.max()} rows; 2^31 - 1 is the most that it can")
        for name, bad in (("n", rows < 1), ("n_positive", (positives < 0) | (positives > rows))):
            if bad.any():
                rule = ">= 1" if name == "n" else "a number of the cell's rows"
                first = int(np.argmax(bad))
                raise ValueError(f"{name} must be {rule}; got {whole[name][first]} at index {first}")
        matrix = np.zeros((m, 1 + cells.WORDS), np.int64)
        matrix[:, 0] = whole["index"]
        words = matrix[:, 1:]
        words[:, cells.COUNTS] = rows | positives << 32
        for word, name in ((cells.OFFSETS, "offsets"), (cells.HITS, "hits"), (cells.SQUARES, "squares")):
            words[:, word] = whole[name]
        low_bits, high_bits = (np.require(ends[end], np.float64, "C").view(np.int64) for end in ends)
        words[:, cells.TOP], words[:, cells.BOTTOM] = high_bits, cells.ONE_BITS - low_bits
        return table._take(
            matrix[np.argsort(matrix[:, 0])],
            int(rows.sum()),
            _validate.whole_number(n_clipped, "n_clipped", low=0),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to one file, completely or not at all; equal tables give equal files.

        A file that is there is replaced and keeps its permission bits; a symbolic link stays one.

        Raises
        ------
        ValueError
            If `path` names no file, or something else than a regular file.
        """
        storage.write(path, *self.__getstate__())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a table written by `save`.

        Raises
        ------
        ValueError
            If the file is no cell table, of an unknown version, or damaged.
        """
        about, body = storage.read(path)
        try:
            return cls._of(about, body)
        except ValueError as error:
            raise ValueError(f"{os.fsdecode(path)} is damaged: {error}") from error

    @classmethod
    def _of(cls, about: dict[str, Any], body: bytes) -> Self:
        if sorted(about) != ["grid", "n", "n_cells", "n_clipped"]:
            raise ValueError(f"grid, n, n_cells, n_clipped must be given; got {', '.join(sorted(about))}")
        for name in ("n", "n_cells", "n_clipped"):
            if type(about[name]) is not int:
                raise ValueError(f"{name} must be a whole number; got {about[name]!r}")
        table = cls(about["n_cells"], about["grid"])
        matrix = storage.unpack(body, 1 + cells.WORDS, table.n_cells)
        return table._take(matrix, about["n"], about["n_clipped"])

    def _take(self, matrix: NDArray[np.int64], n: int, n_clipped: int) -> Self:
        """Fill this empty table with cells that have not been checked."""
        _check_cells(matrix, self._edges)
        rows = int((matrix[:, 1 + cells.COUNTS] & _COUNT).sum())
        if n != rows:
            raise ValueError(f"n must be the number of rows in cells, {rows}; got {n}")
        if not 0 <= n_clipped <= n:
            raise ValueError(f"n_clipped must be a number of rows, at most {n}; got {n_clipped}")
        self._words[matrix[:, 0]] = matrix[:, 1:]
        self._n, self._n_clipped = n, n_clipped
        return self

    def __getstate__(self) -> tuple[dict[str, Any], NDArray[np.int64]]:
        about = {"grid": self.grid, "n_cells": self.n_cells, "n": self.n, "n_clipped": self.n_clipped}
        used = np.flatnonzero(self._words[:, cells.COUNTS])
        return about, np.column_stack((used, self._words[used]))

    def __setstate__(self, state: tuple[dict[str, Any], NDArray[np.int64]]) -> None:
        about, matrix = state
        CellTable.__init__(self, about["n_cells"], about["grid"])
        self._words[matrix[:, 0]] = matrix[:, 1:]
        self._n, self._n_clipped = about["n"], about["n_clipped"]


def _whole_numbers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """A column of whole numbers of at most 64 bits."""
    column = _validate.number_column(values, name)
    if column.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers; got dtype {column.dtype}")
    if column.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must hold whole numbers below 2^63; got {column.max()}")
    return column.astype(np.int64)


def _check_cells(matrix: NDArray[np.int64], edges: NDArray[np.float64]) -> None:
    """Raise ValueError if no rows leave such cells behind; each row of `matrix` is an index and a cell."""
    index, words = matrix[:, 0], matrix[:, 1:]
    if np.any((index < 0) | (index >= len(edges) - 1)) or np.any(np.diff(index) <= 0):
        raise ValueError(f"cells must be numbered, ascending, from 0 to at most {len(edges) - 2}")
    n, k = words[:, cells.COUNTS] & _COUNT, words[:, cells.COUNTS] >> 32
    offsets, hits, squares = words[:, cells.OFFSETS], words[:, cells.HITS], words[:, cells.SQUARES]
    low, high = cells.ONE_BITS - words[:, cells.BOTTOM], words[:, cells.TOP]
    patterns = edges.view(np.int64)  # ordered like the edges
    beyond = np.where(index == len(edges) - 2, cells.ONE_BITS + 1, patterns[index + 1])

    def sums(total: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        most = (1 << cells.OFFSET_BITS) + 2 * _SLACK
        return (-_SLACK * rows <= total) & (total <= most * rows)

    for name, good in {
        "numbers of rows and positives": (n >= 1) & (n <= _CELL_ROWS) & (k >= 0) & (k <= n),
        "smallest and largest score": (patterns[index] <= low) & (low <= high) & (high < beyond),
        "sums": sums(offsets, n) & sums(hits, k) & sums(offsets - hits, n - k) & sums(squares, n),
        "unused words": ~words[:, cells.BOTTOM + 1 :].any(axis=1),
    }.items():
        if not good.all():
            raise ValueError(f"{name} of cell {index[np.argmin(good)]} cannot be")


def _zeros(n_cells: int) -> NDArray[np.int64]:
    """Empty cells, each one aligned cache line: one that lies across two costs twice the time."""
    raw = np.zeros((n_cells + 1) * cells.WORDS, np.int64)
    skip = -raw.ctypes.data % 64 // 8
    return raw[skip : skip + n_cells * cells.WORDS].reshape(n_cells, cells.WORDS)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
