"""All scores, sorted."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import sorting
from calcore.table.base import BLOCK, NONE, Summary, Table

_GROUPS = 65_536
"""Cells, about: fine enough for any bins, few enough that passing over them costs nothing."""


class ScoreTable(Table):
    """All scores, sorted, with their labels; equal scores are one.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Attributes
    ----------
    scores, counts, positives : read-only arrays of shape (number of distinct scores,)
        float64, int64 and int64: ascending scores, rows and positives of each. Made when first asked for.

    Raises
    ------
    ValueError
        If labels or scores break their rules; the message names argument, rule, value and index.

    Notes
    -----
    `cells` are the distinct scores if there are at most 65,536, else about as many runs of consecutive ones,
    of about equal mass; a score with more than that mass is alone.

    The label is packed into the sort key below the score's bit pattern: one vectorised integer sort, O(n log
    n) time, 8 bytes per row. The order of tied labels cannot matter, as ties are never split.

    Sums start from the smallest score of each cell: `sum_scores` is off by at most 2^-48 of itself,
    `sum_abs_error` and `sum_squared_error` by n 2^-46.

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
    def from_rows(cls, rows: _validate.Rows) -> Self:
        """A table of rows whose columns have been checked."""
        table = cls.__new__(cls)
        table._read(rows)
        return table

    def _read(self, rows: _validate.Rows) -> None:
        keys, total = np.empty(len(rows), np.int64), 0
        for start in range(0, len(rows), BLOCK):
            labels, scores, clipped = rows.block(start, start + BLOCK)
            sorting.pack(labels, scores, keys[start : start + BLOCK])
            total += clipped
        keys.sort()
        self.__setstate__((keys, total))

    @property
    def n(self) -> int:
        return len(self._keys)

    @property
    def n_clipped(self) -> int:
        return self._n_clipped

    @property
    def keys(self) -> NDArray[np.int64]:
        """Rows by ascending score, one read-only int64 each: see `calcore.kernels.sorting`."""
        return self._keys

    @property
    def scores(self) -> NDArray[np.float64]:
        return self._pool()[0]

    @property
    def counts(self) -> NDArray[np.int64]:
        return self._pool()[1]

    @property
    def positives(self) -> NDArray[np.int64]:
        return self._pool()[2]

    def __getstate__(self) -> tuple[NDArray[np.int64], int]:
        return self._keys, self._n_clipped

    def __setstate__(self, state: tuple[NDArray[np.int64], int]) -> None:
        self._keys, self._n_clipped = state
        self._keys.flags.writeable = False
        self._starts, self._pooled, self._cached = NONE, None, None

    def describe(self) -> str:
        return "sorted scores"

    def __repr__(self) -> str:
        return f"<ScoreTable: {self.n} rows>"

    def _pool(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        if self._pooled is None:
            m = int(sorting.count_distinct(self._keys))
            scores, counts, positives = np.empty(m), np.empty(m, np.int64), np.empty(m, np.int64)
            sorting.pool(self._keys, scores, counts, positives)
            for array in (scores, counts, positives):
                array.flags.writeable = False
            self._pooled = scores, counts, positives
        return self._pooled

    def _summarise(self) -> Summary:
        starts = sorting.distinct_starts(self._keys, _GROUPS)
        if not len(starts):
            starts = sorting.equal_mass_starts(self._keys, _GROUPS)
        m = len(starts) - 1
        positives, sums = np.empty(m, np.int64), np.empty((6, m))
        sorting.summarise(self._keys, starts, positives, sums)
        self._starts = starts
        return Summary.of(np.diff(starts), positives, sums)

    def _rows_of_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._starts, self._keys
