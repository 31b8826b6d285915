"""Labels and probabilities of several classes -> checked rows; the rules of `_validate`, for a matrix.

The matrix is never copied as a whole: it is checked, and its largest entries found, in blocks of rows that
fit in the cache, and its columns are handed out a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore._validate import (
    _as_doubles,
    _column,
    _kind_of,
    _label_column,
    _missing_entries,
    _more,
    _one_kind,
    _refuse_missing,
    _scalar,
    _show,
    _slack,
    read_only,
    threads,
)
from calcore.kernels import hashing, largest

__all__ = ["ClassRows", "class_rows", "codes_by_name", "codes_by_number", "matrix_of", "row_blocks"]

_BLOCK = 65_536
"""Entries read at once: 512 KiB of float64."""

_PARTS, _THREADED_ENTRIES = 4, 1_000_000
"""Ranges of rows that threads share out, and how many entries are worth it."""

_WIDTH = 8
"""Columns handed out from one copy: in rows of float64 they share a cache line."""

_SUM = {2: 1e-2, 4: 1e-4}
"""How far from 1 the sum of a row may be, by bytes per float (others: 1e-6)."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassRows:
    """Labels and class probabilities of n rows, checked.

    Attributes
    ----------
    codes : int64 array of shape (n,)
        The column of each row's label.
    matrix : ndarray of shape (n, k)
        As the user gave it.
    names : tuple
        The label of each column.
    best : int64 array of shape (n,)
        The column of each row's largest entry, the first of equal ones.
    """

    codes: NDArray[np.int64]
    matrix: NDArray[Any]
    names: tuple[Any, ...]
    best: NDArray[np.int64]

    def columns(self) -> Iterator[NDArray[Any]]:
        """The columns, one after the other: views of a Fortran-ordered matrix, of others copied 8 at a time.

        A column of a C-ordered matrix has one entry in each cache line of its own; read one by one, they
        would fetch the whole matrix for every class.
        """
        k = self.matrix.shape[1]
        if self.matrix.strides[0] == self.matrix.itemsize:
            yield from (self.matrix[:, j] for j in range(k))
            return
        for start in range(0, k, _WIDTH):
            yield from np.ascontiguousarray(self.matrix[:, start : start + _WIDTH].T)

    def top(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Largest probability of each row, in the matrix's dtype, and whether its class is the label.

        Of equal probabilities the first column counts.
        """
        return self.matrix[np.arange(len(self.best)), self.best], self.best == self.codes

    def equal_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Group of each row, 0, 1, ..., and the first row of each group: rows of a group are equal.

        By hashes of 64 bits; rows of one hash that differ are told apart by their numbers.
        """
        hashes = np.empty(len(self.codes), np.uint64)
        for start, block in row_blocks(self.matrix):
            hashes[start : start + len(block)] = _hashes(block)
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        group = group.astype(np.int64)
        for start, block in row_blocks(self.matrix):
            same = (block == self.matrix[first[group[start : start + len(block)]]]).all(axis=1)
            if not same.all():
                _, first, group = np.unique(self.matrix, axis=0, return_index=True, return_inverse=True)
                return group.reshape(-1).astype(np.int64), first
        return group, first


def _hashes(block: NDArray[Any]) -> NDArray[np.uint64]:
    values = np.ascontiguousarray(_as_doubles(block)).view()
    values.flags.writeable = False
    found = np.empty(len(values), np.uint64)
    with np.errstate(over="ignore"):  # products wrap around, which matters to uncompiled code only
        hashing.rows(values, found)
    return found


def class_rows(y_true: ArrayLike, P: ArrayLike, labels: ArrayLike | None = None) -> ClassRows:
    """Check labels of several classes and the probabilities that predict them.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Columns of P, 0 to k - 1; or, with `labels`, any of these.
    P : array_like of shape (n, k)
        Probabilities in [0, 1], rounding apart as in `calcore._validate.binary`. Every row sums to 1, up to
        1e-6 (float32: 1e-4, float16: 1e-2); sums are taken in float64, and the values stay as they are.
    labels : array_like of shape (k,), optional
        The label of each column.

    Raises
    ------
    ValueError
        If an argument has a wrong shape, a value breaks its rule or is missing, or a label is unknown.
    TypeError
        If an argument holds something else than numbers or labels.

    Examples
    --------
    >>> rows = class_rows(["b", "a"], [[0.5, 0.5], [1, 0]], labels=["a", "b"])
    >>> rows.codes.tolist(), [column.tolist() for column in rows.columns()]
    ([1, 0], [[0.5, 1.0], [0.5, 0.0]])
    >>> rows.top()[1].tolist()
    [False, True]
    """
    matrix = matrix_of(P)
    given = _label_column(y_true)
    n, k = matrix.shape
    if len(given) != n:
        raise ValueError(f"y_true and P must have the same number of rows; got {len(given)} and {n}")
    if n == 0:
        raise ValueError("y_true and P must have at least one row; got 0")
    if labels is None:
        names, codes = tuple(range(k)), codes_by_number(given, k)
    else:
        names, codes = codes_by_name(given, _column(labels, "labels"), k)
    return ClassRows(codes, matrix, names, _largest(matrix))


def _largest(matrix: NDArray[Any]) -> NDArray[np.int64]:
    """The column of each row's largest entry, after all entries and sums have been checked."""
    n = len(matrix)
    best = np.empty(n, np.int64)
    slack, tolerance = _slack(matrix.dtype), _tolerance(matrix.dtype)
    most = int(np.float64(1.0 + slack).view(np.uint64))

    def part(number: int) -> bool:
        rows = matrix[number * n // _PARTS : (number + 1) * n // _PARTS]
        own = best[number * n // _PARTS : (number + 1) * n // _PARTS]
        if rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned:
            return bool(largest.scan(read_only(rows), most, tolerance, own))
        sound = True
        for start, block in row_blocks(rows):
            values = read_only(_as_doubles(block))
            sound &= bool(largest.scan(values, most, tolerance, own[start : start + len(block)]))
        return sound

    if matrix.size < _THREADED_ENTRIES:
        sound = min(map(part, range(_PARTS)))
    else:
        with ThreadPoolExecutor(threads(None)) as pool:
            sound = min(pool.map(part, range(_PARTS)))
    if sound:
        return best
    for start, block in row_blocks(matrix):  # slower, and knows what to say
        values = _as_doubles(block)
        sums = values.sum(axis=1)
        if not values.min() >= -slack or not values.max() <= 1.0 + slack:
            _refuse_values(matrix)
        off = np.abs(sums - 1.0)
        if off.max() > tolerance:
            row = int(np.argmax(off > tolerance))
            raise ValueError(
                f"P must have rows that sum to 1; row {start + row} sums to {sums[row]:.7g}: "
                "pass probabilities of all classes, after a softmax"
            )
        best[start : start + len(block)] = values.argmax(axis=1)
    return best


def matrix_of(P: Any) -> NDArray[Any]:
    if P is None:
        raise TypeError("P must be a matrix of probabilities; got None")
    if getattr(P, "requires_grad", False) is True:
        raise ValueError("P must be a tensor without gradient; pass P.detach()")
    missing = _missing_entries(P) if isinstance(P, np.ma.MaskedArray) else None
    if missing is not None and missing.any():
        _refuse_missing(missing.reshape(len(missing), -1).max(axis=1), "P")
    try:
        matrix: NDArray[Any] = np.asarray(P)
        to_numpy = getattr(P, "to_numpy", None)
        if matrix.dtype == object and to_numpy is not None:  # a pandas frame of nullable or Arrow columns
            matrix = to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"P must be a matrix, one row per row of y_true; {error}") from error
    if matrix.ndim != 2:
        remedy = (
            ": one column of scores is for the functions of y_true and y_prob" if matrix.ndim == 1 else ""
        )
        raise ValueError(
            f"P must have one row per row and one column per class; got shape {matrix.shape}{remedy}"
        )
    if matrix.shape[1] < 2:
        raise ValueError(f"P must have at least two columns, one per class; got {matrix.shape[1]}")
    if matrix.dtype.kind not in "buif":
        raise TypeError(f"P must hold numbers; got {_kind_of(matrix.ravel()[:1])}")
    return matrix


def row_blocks(matrix: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    rows = max(1, _BLOCK // matrix.shape[1])
    for start in range(0, len(matrix), rows):
        yield start, matrix[start : start + rows]


def _tolerance(dtype: np.dtype[Any]) -> float:
    return _SUM.get(dtype.itemsize, 1e-6) if dtype.kind == "f" else 1e-6


def codes_by_number(given: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Labels that are columns already."""
    if given.dtype.kind == "b" and k > 2:
        raise ValueError(
            f"y_true must hold columns of P, 0 to {k - 1}; got bool, which is two labels for {k} columns"
        )
    if given.dtype.kind not in "buif":
        raise ValueError(
            f"labels must be given if y_true holds text: the label of each column of P; got None and labels "
            f"such as {_show(given[0])}"
        )
    known = (given >= 0) & (given < k)
    if given.dtype.kind == "f":
        known &= given == np.floor(given)
    if not known.all():
        remedy = ""
        if given.min() == 1 and given.max() == k:
            remedy = f": for labels 1 to {k} pass labels=range(1, {k + 1})"
        _refuse_label(given, known, f"labels from 0 to {k - 1}, the columns of P", remedy)
    return given.astype(np.int64)


def codes_by_name(
    given: NDArray[Any], names: NDArray[Any], k: int
) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    if len(names) != k:
        raise ValueError(f"labels must name every column of P; got {len(names)} labels for {k} columns")
    if names.dtype.kind == "O":
        _one_kind(names, "labels")
    listed = tuple(_scalar(name) for name in names)
    index = {name: j for j, name in enumerate(listed)}
    if len(index) < k:
        twice = next(name for j, name in enumerate(listed) if index[name] != j)
        raise ValueError(f"labels must be different from each other; got {_show(twice)} more than once")
    distinct, inverse = (
        np.unique(given, return_inverse=True) if given.dtype.kind != "O" else _distinct_objects(given)
    )
    column = np.array([index.get(_scalar(value), -1) for value in distinct], np.int64)
    codes: NDArray[np.int64] = column[inverse]
    if codes.min() < 0:
        known = ", ".join(map(_show, listed[:3])) + (", ..." if k > 3 else "")
        _refuse_label(given, codes >= 0, f"labels of columns of P ({known})", "")
    return listed, codes


def _distinct_objects(given: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    number: dict[Any, int] = {}
    inverse = np.fromiter((number.setdefault(value, len(number)) for value in given), np.int64, len(given))
    return list(number), inverse


def _refuse_label(given: NDArray[Any], known: NDArray[np.bool_], rule: str, remedy: str) -> NoReturn:
    first = int(np.argmin(known))
    count = int(np.count_nonzero(~known))
    raise ValueError(
        f"y_true must hold {rule}; got {_show(given[first])} at index {first}{_more(count)}{remedy}"
    )


def _refuse_values(matrix: NDArray[Any]) -> NoReturn:
    slack = _slack(matrix.dtype)
    count, first, low, high = 0, None, np.inf, -np.inf
    for start, block in row_blocks(matrix):
        values = _as_doubles(block)
        bad = ~((values >= -slack) & (values <= 1.0 + slack))
        count += int(np.count_nonzero(bad))
        if first is None and bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            first = (start + row, column)
        low, high = (
            min(low, float(np.nanmin(values, initial=np.inf))),
            max(high, float(values.max(initial=high))),
        )
    assert first is not None
    value = matrix[first]
    remedy = ""
    if value != value:
        remedy = ": drop or fill the rows without probabilities"
    elif low < -slack and high > 1.0 + slack:
        remedy = ": these look like logits; pass their softmax"
    elif low < -slack and high <= 0.0:
        remedy = ": these look like log-probabilities; pass np.exp(P)"
    elif low >= 0.0 and 2.0 <= high <= 100.0:
        remedy = ": these look like percent; pass P / 100"
    raise ValueError(
        f"P must lie in [0, 1]; got {_show(value)} at row {first[0]}, column {first[1]}{_more(count)}{remedy}"
    )
