"""User input -> checked columns and scalars, or an error that names argument, rule, value and position.

This is the only place where input is judged; nothing after it checks again. Three ideas:

* A column becomes a one-dimensional NumPy array *as it is* (`_column`): no conversion of dtype, and no
  copy where the host can lend its memory. pandas, polars, pyarrow and torch are recognised by the
  methods that their columns have; none of them is ever imported.
* Values are checked when they are read, one block that fits in the processor's cache at a time
  (`Rows.block`): the check costs about one reduction per block on the way into a table, and a full copy
  of the input never exists.
* Only when a block is bad is the whole column read again, slowly, to say what is wrong and where.

Rows are matched by position, as in scikit-learn: the index of a pandas column is ignored, but two pandas
columns whose indexes differ bring a warning.

ValueError is raised for values, TypeError for things that are not a column, a number or a name at all.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from types import FrameType
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Rows",
    "any_number",
    "bin_count",
    "bin_edges",
    "binary",
    "callers_level",
    "choice",
    "finite",
    "finite_number",
    "generator",
    "group_rows",
    "labels_or_numbers",
    "nonnegative_number",
    "number_column",
    "numbers",
    "positive_number",
    "probability",
    "read_only",
    "renamed",
    "scores",
    "segments",
    "threads",
    "weights",
    "whole_number",
]

_BLOCK = 65_536
"""Rows read at once when a column is searched: 512 KiB of float64, which stays in the L2 cache."""

_ONE_BITS = np.float64(1.0).view(np.uint64)
"""Bit pattern of 1.0. Read as unsigned integers, the doubles in [+0, 1] are exactly those up to this one:
negative numbers, -0.0, NaN and everything above 1 have larger patterns. One maximum checks a whole block."""

_SLACK = {2: float(np.float16(2e-3)), 4: float(np.float32(1e-6))}
"""How far outside [0, 1] a score may lie and still be a rounding error, by bytes per float (others: 1e-9);
rounded to the type, so that the literal -0.002 is within it as a float16 too."""

_STREAM = 0xCA1C0DE
"""Mixed into every seed, so that our draws never repeat those of a user's own ``default_rng(seed)``."""

_SWAPPED = ": are the arguments swapped? The order is (y_true, y_prob)"
_CONVERT = ": convert it, e.g. with .astype(float)"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Scores and labels of n rows, checked on reading and handed out in blocks.

    Holds no state besides the user's columns: any number of threads may read blocks at once.

    Attributes
    ----------
    labels, scores : ndarray of shape (n,)
        The columns as the user gave them (dtype, strides and byte order untouched).
    positive : bool, int, float, str or bytes
        The label value that counts as 1.
    negative : bool, int, float, str, bytes or None
        The label value that counts as 0; None if every label is `positive`.
    pos_label : bool, int, float, str, bytes or None
        As the user gave it.
    """

    labels: NDArray[Any]
    scores: NDArray[Any]
    positive: Any
    negative: Any
    pos_label: Any = None

    def __len__(self) -> int:
        return len(self.scores)

    def block(self, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.float64], int]:
        """Return the checked rows ``start:stop``.

        Parameters
        ----------
        start, stop : int
            As in slicing. Blocks of 65,536 to 131,072 rows stay in the L2 cache.

        Returns
        -------
        labels : ndarray of uint8
            0 or 1.
        scores : ndarray of float64
            In [0, 1], never -0.0.
        n_clipped : int
            Scores that lay outside [0, 1] by a rounding error and were moved to 0 or 1.

        Raises
        ------
        ValueError
            If a label or score of the block breaks its rule; the message describes the whole column.

        Notes
        -----
        Both arrays are always C-contiguous, aligned, native and read-only, whatever the input was: compiled
        loops see one signature. Contiguous float64 scores in [0, 1], and contiguous bool, uint8 or int8
        labels 0/1, come as views of the input, without a copy.

        Examples
        --------
        >>> binary([False, True, True], [0.25, 0.5, 1.0000000000000002]).block(0, 3)
        (array([0, 1, 1], dtype=uint8), array([0.25, 0.5 , 1.  ]), 1)
        """
        labels = self._labels_01(self.labels[start:stop])
        scores, n_clipped = self._scores_01(self.scores[start:stop])
        labels.flags.writeable = False
        scores.flags.writeable = False
        return labels, scores, n_clipped

    def take(self, index: NDArray[np.int64]) -> Rows:
        """Return the rows at `index`, after checking *all* rows.

        A fault in a row that `index` leaves out is still a fault of the input, and positions in messages
        are those of the user's columns, not of the selection.
        """
        for start in range(0, len(self), _BLOCK):
            self.block(start, start + _BLOCK)
        return Rows(self.labels[index], self.scores[index], self.positive, self.negative, self.pos_label)

    def _labels_01(self, labels: NDArray[Any]) -> NDArray[np.uint8]:
        zero_one = self.positive == 1 and (self.negative is None or self.negative == 0)
        if zero_one and labels.dtype.kind in "bui":
            words = labels.view(f"u{labels.dtype.itemsize}")  # negative numbers and foreign byte order: large
            if words.max(initial=0) <= 1:
                return np.ascontiguousarray(words, dtype=np.uint8)
        ones = np.asarray(labels == self.positive, dtype=np.bool_)
        n_known = int(np.count_nonzero(ones))
        if self.negative is not None:
            n_known += int(np.count_nonzero(labels == self.negative))
        if n_known != len(labels):
            _refuse_labels(self.labels, self.scores, self.pos_label)
        return np.ascontiguousarray(ones).view(np.uint8)

    def _scores_01(self, scores: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
        values = _as_doubles(scores)
        if values.view(np.uint64).max(initial=0) <= _ONE_BITS:
            return values, 0
        slack = _slack(scores.dtype)
        if not np.all((values >= -slack) & (values <= 1.0 + slack)):
            _refuse_scores(self.scores)
        n_clipped = int(np.count_nonzero((values < 0.0) | (values > 1.0)))
        return np.clip(values, 0.0, 1.0) + 0.0, n_clipped  # -0.0 + 0.0 is +0.0


def binary(y_true: ArrayLike, y_prob: ArrayLike, *, pos_label: Any = None) -> Rows:
    """Check binary labels and the scores that predict them.

    Kind, shape and length of both columns are checked here, and which two label values there are; the
    values of each row are checked when they are read, by `Rows.block`.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, or numbers 0/1 or -1/+1. Any other pair, numbers or text, with `pos_label`. A
        column with only one class keeps its meaning: all 1 is all positive; all 0 or all -1 is all negative.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1]. Numbers outside by at most 1e-9 (float32: 1e-6,
        float16: 2e-3) are rounding errors: they are clipped and counted.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive. Needed for text and for numbers other than 0/1 and -1/+1.
        Compared exactly, in the labels' own type: a whole number which that type cannot hold is no label.

    Returns
    -------
    Rows

    Raises
    ------
    ValueError
        If a column is empty, not one-dimensional, has missing values or not the other's length, or
        if labels are not of two kinds or the positive one is unknown.
    TypeError
        If an argument is no column, or its values are of a kind that cannot be labels or scores.

    Warns
    -----
    UserWarning
        If both columns are pandas' and their indexes differ: rows are matched by position all the same.

    Examples
    --------
    >>> rows = binary(["late", "on time"], [0.9, 0.2], pos_label="late")
    >>> rows.positive, rows.negative
    ('late', 'on time')
    >>> binary([0, 1], [0.1, 1.2]).block(0, 2)
    Traceback (most recent call last):
        ...
    ValueError: y_prob must lie in [0, 1]; got 1.2 at index 1
    """
    labels = _label_column(y_true)
    scores = _score_column(y_prob, labels)
    if len(labels) != len(scores):
        raise ValueError(f"y_true and y_prob must have the same length; got {len(labels)} and {len(scores)}")
    if len(labels) == 0:
        raise ValueError("y_true and y_prob must have at least one row; got 0")
    _warn_of_unequal_indexes(y_true, y_prob)
    if pos_label is None:
        if labels.dtype.kind in "USO":
            known = _listed(_distinct(labels, 4))
            raise ValueError(f"pos_label must be given if y_true holds text; got None and labels {known}")
        positive, negative = 1, _first_other(labels, 1)
        if negative not in (None, 0, -1):
            _refuse_labels(labels, scores, None)
        return Rows(labels, scores, positive, negative)
    positive = _positive_label(pos_label, labels)
    return Rows(labels, scores, positive, _first_other(labels, positive), positive)


def _warn_of_unequal_indexes(y_true: Any, y_prob: Any) -> None:
    """Rows are matched by position: say so if two pandas columns are indexed as if they should not be."""
    if {type(column).__module__.split(".")[0] for column in (y_true, y_prob)} != {"pandas"}:
        return
    index, other = getattr(y_true, "index", None), getattr(y_prob, "index", None)
    if index is None or other is None or index is other or index.equals(other):
        return
    warnings.warn(
        "y_true and y_prob have different indexes; their rows are matched by position. If that is meant, "
        "pass y_true.to_numpy() and y_prob.to_numpy(); if not, align them, e.g. y_prob.loc[y_true.index]",
        UserWarning,
        stacklevel=callers_level(),
    )


def callers_level() -> int:
    """Level, for `warnings.warn` in the function that asks, of the first frame outside this package."""
    level = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    return level + 1


def group_rows(
    groups: ArrayLike, n: int, rng: int | np.random.Generator | np.random.SeedSequence | None
) -> NDArray[np.int64]:
    """Choose one row of each group, uniformly among the group's rows.

    Parameters
    ----------
    groups : array_like of shape (n,)
        Which group each row is in: numbers, text, dates; any column of hashable values of one kind.
    n : int
        Number of rows of y_true.
    rng : int, Generator, SeedSequence or None
        See `generator`.

    Returns
    -------
    ndarray of int64, shape (number of groups,)
        Row positions, ascending.

    Raises
    ------
    ValueError
        If `groups` has missing values, another length, more than one dimension or values of different kinds.

    Notes
    -----
    One bounded integer is drawn for each group, exactly uniform, groups taken in the order of their first
    rows: the choice does not depend on how the groups are named. One stable sort: O(n log n), and O(n) where
    the rows of a group stand together.

    Examples
    --------
    >>> group_rows(["ann", "bob", "eve"], 3, 0)
    array([0, 1, 2])
    >>> len(group_rows([7, 7, 7, 8], 4, 0))
    2
    """
    values = _complete(groups, "groups", n)
    if values.dtype.kind == "O":
        values = _numbered(values, "groups")
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(starts, append=n)
    by_first_row = np.argsort(order[starts])
    draws = generator(rng).integers(0, sizes[by_first_row])
    return np.sort(order[starts[by_first_row] + draws])


def segments(by: ArrayLike, n: int) -> tuple[list[Any], NDArray[np.int64]]:
    """Name and number the segments of rows.

    Parameters
    ----------
    by : array_like of shape (n,)
        Segment of each row: any column of hashable values of one kind.
    n : int
        Number of rows of y_true.

    Returns
    -------
    names : list
        The distinct values as Python objects, sorted if they can be, else by first appearance.
    codes : int64 array of shape (n,)
        Index into `names` of each row.

    Raises
    ------
    ValueError
        As in `group_rows`.

    Examples
    --------
    >>> segments(["uk", "fr", "uk"], 3)
    (['fr', 'uk'], array([1, 0, 1]))
    """
    values = _complete(by, "by", n)
    if values.dtype.kind != "O":
        distinct, codes = np.unique(values, return_inverse=True)
        return distinct.tolist() if values.dtype.kind not in "mM" else list(distinct), codes.astype(np.int64)
    first, codes = np.unique(_numbered(values, "by"), return_inverse=True)
    names = values[first].tolist()
    try:
        order = sorted(range(len(names)), key=names.__getitem__)
    except TypeError:
        return names, codes.astype(np.int64)
    return [names[i] for i in order], np.argsort(order)[codes]


def _complete(column: ArrayLike, name: str, n: int) -> NDArray[Any]:
    """A column of `n` values of one kind, none of them missing."""
    values = _column(column, name)
    if len(values) != n:
        raise ValueError(f"{name} and y_true must have the same length; got {len(values)} and {n}")
    if values.dtype.kind == "O":
        _one_kind(values, name)
    else:
        missing = values != values  # NaN and NaT
        if missing.any():
            _refuse_missing(missing, name)
    return values


def _numbered(objects: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Number Python objects so that equal ones have equal numbers: by hash, much faster than sorting."""
    number: dict[Any, int] = {}
    try:
        return np.fromiter(map(number.setdefault, objects, itertools.count()), np.int64, len(objects))
    except TypeError as error:
        raise ValueError(f"{name} must hold hashable values; {error}") from error


def weights(sample_weight: ArrayLike, n: int, rows: str = "y_true") -> NDArray[np.float64]:
    """Check row weights: n finite numbers >= 0; `rows` is the argument that has n values.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or there are not n of them.
    TypeError
        If they are not numbers.

    Examples
    --------
    >>> weights([3, 1], 2)
    array([3., 1.])
    """
    column = _column(sample_weight, "sample_weight")
    if column.dtype.kind not in "buif":
        raise TypeError(f"sample_weight must hold numbers; got {_kind_of(column)}")
    if len(column) != n:
        raise ValueError(f"sample_weight and {rows} must have the same length; got {len(column)} and {n}")
    values = _as_doubles(column)
    bad = ~((values >= 0.0) & (values < np.inf))
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and >= 0; got {_show(column[first])} at index {first}"
            f"{_more(int(np.count_nonzero(bad)))}"
        )
    return values


def scores(y_prob: ArrayLike) -> NDArray[np.float64]:
    """Check scores that come without labels, by the rules of `binary`.

    Returns
    -------
    ndarray of float64, shape (n,)
        In [0, 1], never -0.0; read-only.

    Examples
    --------
    >>> scores([0.25, 1.0000000000000002])
    array([0.25, 1.  ])
    """
    column = _score_column(y_prob, np.empty(0))
    if len(column) == 0:
        raise ValueError("y_prob must have at least one row; got 0")
    rows = Rows(np.empty(0), column, 1, 0)
    checked = np.empty(len(column))
    for start, block in _blocks(column):
        checked[start : start + len(block)] = rows._scores_01(block)[0]
    checked.flags.writeable = False
    return checked


def bin_edges(edges: ArrayLike) -> NDArray[np.float64]:
    """Check edges of bins of scores: m + 1 numbers that ascend strictly from 0 to 1; made read-only.

    The last two may both be 1: the last bin then holds scores of exactly 1.

    Examples
    --------
    >>> bin_edges([0, 0.5, 1])
    array([0. , 0.5, 1. ])
    """
    try:
        given = np.array(edges, np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    whole = given.ndim == 1 and len(given) > 1 and given[0] == 0.0 and given[-1] == 1.0
    if not (whole and np.all(given[:-2] < given[1:-1])):
        raise ValueError(f"edges must be numbers that ascend strictly from 0 to 1; got {edges!r:.80}")
    given[0] = 0.0  # not -0.0
    given.flags.writeable = False
    return given


@contextmanager
def renamed(here: str, there: str) -> Iterator[None]:
    """Let messages call an argument as the user did.

    Examples
    --------
    >>> with renamed("y_prob", "p_a"):
    ...     scores([1.5])
    Traceback (most recent call last):
        ...
    ValueError: p_a must lie in [0, 1]; got 1.5 at index 0
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(str(error).replace(_SWAPPED, "").replace(here, there)) from None


def numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Check a column of finite numbers, without copying one of float64.

    Raises
    ------
    ValueError
        If the column is empty, not one-dimensional, or a number is not finite.
    TypeError
        If it does not hold numbers.

    Examples
    --------
    >>> numbers([1, 2.5], "x")
    array([1. , 2.5])
    >>> numbers([1.0, float("inf")], "x")
    Traceback (most recent call last):
        ...
    ValueError: x must be finite; got inf at index 1
    """
    return finite(number_column(values, name), name)


def labels_or_numbers(values: ArrayLike, name: str) -> NDArray[np.uint8] | NDArray[np.float64]:
    """Check a column of finite numbers as `numbers` does; return uint8 if all of them are 0 or 1.

    Examples
    --------
    >>> labels_or_numbers([0.0, 1.0, 1.0], "y")
    array([0, 1, 1], dtype=uint8)
    """
    column = number_column(values, name)
    labels = np.empty(len(column), np.uint8)
    for start, block in _blocks(column):
        ones = block == 1
        if np.count_nonzero(ones) + np.count_nonzero(block == 0) < len(block):
            return finite(column, name)
        labels[start : start + len(block)] = ones
    return labels


def number_column(values: Any, name: str) -> NDArray[Any]:
    column = _column(values, name)
    if len(column) == 0:
        raise ValueError(f"{name} must have at least one value; got 0")
    if column.dtype.kind not in "buif":
        remedy = _CONVERT if column.dtype.kind in "USOV" else ""
        raise TypeError(f"{name} must hold numbers; got {_kind_of(column)}{remedy}")
    return column


def finite(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    values = _as_doubles(column)
    for start, block in _blocks(values):
        bad = ~np.isfinite(block)
        if bad.any():
            first = start + int(np.argmax(bad))
            n_bad = len(values) - sum(int(np.count_nonzero(np.isfinite(part))) for _, part in _blocks(values))
            raise ValueError(
                f"{name} must be finite; got {_show(column[first])} at index {first}{_more(n_bad)}"
            )
    return values


# ---------------------------------------------------------------------------------------------- scalars


def probability(value: object, name: str) -> float:
    """Check an error probability: 0 < value < 1, and not so small that shares of it underflow.

    Examples
    --------
    >>> probability(0.05, "delta")
    0.05
    >>> probability(95, "delta")
    Traceback (most recent call last):
        ...
    ValueError: delta must lie strictly between 0 and 1; got 95: it is the error probability, e.g. 0.05
    """
    number = any_number(value, name)
    if not 0.0 < number < 1.0:
        hint = ": it is the error probability, e.g. 0.05" if number >= 1.0 and name == "delta" else ""
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {_show(value)}{hint}")
    if number < 1e-300:
        raise ValueError(f"{name} must be at least 1e-300; got {_show(value)}")
    return number


def nonnegative_number(value: object, name: str) -> float:
    """Check a number >= 0; infinity is allowed."""
    number = any_number(value, name)
    if not number >= 0.0:
        raise ValueError(f"{name} must be a number >= 0; got {_show(value)}")
    return number


def finite_number(value: object, name: str) -> float:
    """Check a finite number of a size whose differences and sums are finite too."""
    number = any_number(value, name)
    if not abs(number) < 1e300:
        raise ValueError(f"{name} must be a number of magnitude below 1e300; got {_show(value)}")
    return number


def positive_number(value: object, name: str) -> float:
    """Check a finite number > 0."""
    number = any_number(value, name)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be a finite number > 0; got {_show(value)}")
    return number


def whole_number(value: object, name: str, *, low: int, high: int = 2**53 - 1) -> int:
    """Check a whole number from low to high; 5.0 is one, True is not."""
    number = any_number(value, name)
    if number > high and (number < math.inf or isinstance(value, int)):
        raise ValueError(f"{name} must be at most {high}; got {_show(value)}")
    if not (low <= number < math.inf and number == int(number)):
        raise ValueError(f"{name} must be a whole number >= {low}; got {_show(value)}")
    return int(number)


def bin_count(n_bins: object) -> int:
    """Check a number of bins: a whole number from 1 to 2^20, beyond which bins are single scores."""
    return whole_number(n_bins, "n_bins", low=1, high=2**20)


Values = TypeVar("Values", bound=np.generic)


def read_only(array: NDArray[Values]) -> NDArray[Values]:
    """What compiled loops see of any array, so that they are compiled once: contiguous and read-only."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def threads(n_threads: object, most: int = 4) -> int:
    """Number of threads to use: as asked, or one per core that this process may use, at most `most`."""
    if n_threads is not None:
        return min(most, whole_number(n_threads, "n_threads", low=1))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(most, cores or 1)


def choice(value: object, name: str, options: Sequence[str]) -> str:
    """Check that a name is one of `options`.

    Examples
    --------
    >>> choice("x", "side", ("both", "upper", "lower"))
    Traceback (most recent call last):
        ...
    ValueError: side must be one of 'both', 'upper', 'lower'; got 'x'
    """
    if isinstance(value, str) and value in options:
        return str(value)
    raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}; got {_show(value)}")


def generator(
    rng: int | np.random.Generator | np.random.SeedSequence | None, name: str = "rng"
) -> np.random.Generator:
    """Return a generator of ours that is determined by `rng`, but shares no numbers with it.

    Parameters
    ----------
    rng : int, Generator, SeedSequence or None
        A seed >= 0 or a SeedSequence: the same draws at every call. A Generator: 128 bits are drawn
        from it. None: fresh entropy.

    Notes
    -----
    If seed 0 meant ``default_rng(0)``, a user who simulated the scores with ``default_rng(0)`` would get a
    "random" half that is exactly the rows with scores below ½ (THEORY section 0). So a constant of ours
    is mixed in.
    """
    if rng is None:
        return np.random.default_rng()
    if isinstance(rng, np.random.Generator):
        entropy = [int(word) for word in rng.integers(0, 2**32, 4, dtype=np.uint32)]
    elif isinstance(rng, np.random.SeedSequence):
        entropy = [int(word) for word in rng.generate_state(4)]
    elif isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        if rng < 0:
            raise ValueError(f"{name} must be a seed >= 0; got {rng}")
        entropy = [int(rng)]
    else:
        raise TypeError(
            f"{name} must be None, an int seed, a numpy Generator or a SeedSequence; got {_article(rng)}"
        )
    return np.random.default_rng(np.random.SeedSequence([*entropy, _STREAM]))


def any_number(value: object, name: str) -> float:
    """A real number (Python, NumPy, 0-d array) as a float; NaN passes, for the caller's rule to refuse."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return math.inf if value > 0 else -math.inf  # beyond what NumPy holds, and any use here
    array = _zero_d(value)
    if array is None or array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number; got {_article(value)}")
    return float(array)


def _zero_d(value: object) -> NDArray[Any] | None:
    if isinstance(value, (bool, int, float, str, bytes, np.generic)) or getattr(value, "shape", None) == ():
        return np.asarray(value)
    return None


# ---------------------------------------------------------------------------------------------- columns


def _column(value: Any, name: str) -> NDArray[Any]:
    """Return `value` as a one-dimensional array of its own dtype without missing entries."""
    if value is None:
        raise TypeError(f"{name} must be a column of values; got None")
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1:
        _refuse_shape(value, shape, name)
    if getattr(value, "requires_grad", False) is True:
        raise ValueError(f"{name} must be a tensor without gradient; pass {name}.detach()")
    missing = _missing_entries(value)
    if missing is not None and missing.any():
        _refuse_missing(missing, name)
    try:
        array: NDArray[Any] = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must be a one-dimensional column; {error}") from error
    if array.ndim == 0:
        if array.dtype.kind == "O":
            raise TypeError(f"{name} must be a column of values, one per row; got {_article(value)}")
        raise ValueError(
            f"{name} must be one-dimensional, one value per row; got the single value {_show(array[()])}"
        )
    if array.ndim > 1:
        _refuse_shape(value, array.shape, name)
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype.kind == "O":
        if not set(map(type, array)) <= {str, int, bool}:
            missing = np.fromiter(map(_is_missing, array), np.bool_, len(array))
            if missing.any():
                _refuse_missing(missing, name)
    elif array.dtype.kind in "US" and isinstance(value, (list, tuple)):
        _one_kind(np.fromiter(value, object, len(value)), name)  # NumPy turns [1, "1"] into text
    return array


def _missing_entries(value: Any) -> NDArray[np.bool_] | None:
    """Which entries the host marks as missing (NaN in a float column is not marked, but a value)."""
    if isinstance(value, np.ma.MaskedArray):
        return np.asarray(np.ma.getmaskarray(value))
    null_count = getattr(value, "null_count", None)  # polars, narwhals: a method; pyarrow: a number
    if null_count is not None:
        count = null_count() if callable(null_count) else null_count
        if not isinstance(count, int):  # a lazy frame or an expression: no column, refused later
            return None
        return np.asarray(value.is_null(), dtype=np.bool_) if count else None
    if hasattr(value, "isna") and not isinstance(getattr(value, "dtype", None), np.dtype):  # pandas extension
        return np.asarray(value.isna(), dtype=np.bool_)
    return None


def _is_missing(entry: Any) -> bool:
    """None, pandas' NA, and whatever number or date is not equal to itself (NaN, NaT)."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(entry, Decimal):  # a signalling NaN may not even be compared
        return entry.is_nan()
    return isinstance(entry, (float, complex, np.generic)) and bool(entry != entry)


def _label_column(y_true: Any) -> NDArray[Any]:
    labels = _column(y_true, "y_true")
    if labels.dtype.kind == "O" and len(labels):
        kind = _one_kind(labels, "y_true")
        if kind == "bool":
            labels = labels.astype(np.bool_)
        elif kind == "int":
            try:
                labels = labels.astype(np.int64)
            except OverflowError as error:
                raise ValueError("y_true must hold labels; got an integer beyond 64 bits") from error
        elif kind not in ("text", "bytes"):
            raise TypeError(f"y_true must hold numbers, bools or text; got {_kind_of(labels)}{_CONVERT}")
    if labels.dtype.kind not in "buifUSO":
        raise TypeError(f"y_true must hold numbers, bools or text; got {_kind_of(labels)}")
    return labels


def _score_column(y_prob: Any, labels: NDArray[Any]) -> NDArray[Any]:
    scores = _column(y_prob, "y_prob")
    kind = scores.dtype.kind
    if kind not in "buif" and len(scores):
        if labels.dtype.kind == "f" and isinstance(scores[0], (str, bytes)):
            remedy = _SWAPPED
        else:
            remedy = _CONVERT if kind in "USOV" else ""
        raise TypeError(f"y_prob must hold numbers; got {_kind_of(scores)}{remedy}")
    return scores


def _positive_label(pos_label: Any, labels: NDArray[Any]) -> Any:
    """Return `pos_label` as a Python scalar of the same sort as the labels."""
    array = _zero_d(pos_label)
    if array is None:
        raise TypeError(f"pos_label must be one label; got {_article(pos_label)}")
    value = array.item()
    wanted: tuple[type, ...] = (bool, int, float, np.floating)
    if labels.dtype.kind in "USO":
        wanted = (str,) if isinstance(labels[0], str) else (bytes,)
    exact = _in_type_of(labels, value) if isinstance(value, wanted) else None
    if exact is None:
        known = _listed(_distinct(labels, 4))
        raise ValueError(f"pos_label must be one of the labels of y_true ({known}); got {_show(value)}")
    return exact


def _in_type_of(labels: NDArray[Any], value: Any) -> Any:
    """`value` such that comparing `labels` with it is exact; None if they cannot hold it.

    NumPy compares int64 with float64 as float64, in which 2^53 and 2^53 + 1 are one number.
    """
    kind = labels.dtype.kind
    if value != value:
        return None
    if kind in "USO":
        return value
    if not isinstance(value, int) and not value.is_integer():  # a fraction: its nearest number of their type
        return value if kind == "f" else None
    whole = value if isinstance(value, int) else int(value)
    if kind == "b":
        return whole if whole in (0, 1) else None
    if kind == "f":
        try:
            with np.errstate(over="ignore"):
                return whole if int(labels.dtype.type(whole)) == whole else None
        except OverflowError:
            return None
    return whole


def _one_kind(values: NDArray[Any], name: str) -> str:
    """Return the one kind of a column of Python objects, or refuse a mixture."""
    types = set(map(type, values))
    kinds = {_python_kind(t) for t in types}
    if len(kinds) > 1:
        kind = _python_kind(type(values[0]))
        other = next(i for i, v in enumerate(values) if _python_kind(type(v)) != kind)
        raise ValueError(
            f"{name} must hold values of one kind; got {_show(values[0])} ({kind}) at index 0 and "
            f"{_show(values[other])} ({_python_kind(type(values[other]))}) at index {other}"
        )
    return kinds.pop() if kinds else "nothing"


def _python_kind(t: type) -> str:
    if issubclass(t, str):
        return "text"
    if issubclass(t, (bool, np.bool_)):
        return "bool"
    if issubclass(t, (int, np.integer)):
        return "int"
    if issubclass(t, (float, np.floating)):
        return "float"
    return t.__name__


def _as_doubles(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Native, aligned, contiguous float64; the array itself if it is that already."""
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf
        return np.require(scores, np.float64, ["C", "A"])


def _slack(dtype: np.dtype[Any]) -> float:
    return _SLACK.get(dtype.itemsize, 1e-9)  # whole numbers are never so near to 0 or 1 without being it


def _first_other(column: NDArray[Any], *known: Any) -> Any:
    """Return the first value that is none of `known`, or None."""
    for _, block in _blocks(column):
        other = block != known[0]
        for value in known[1:]:
            other &= block != value
        if other.any():
            return _scalar(block[np.argmax(other)])
    return None


def _blocks(column: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    for start in range(0, len(column), _BLOCK):
        yield start, column[start : start + _BLOCK]


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _distinct(labels: NDArray[Any], limit: int) -> list[Any]:
    """The first `limit` distinct values in order of appearance, NaN left out."""
    found: list[Any] = []
    for _, block in _blocks(labels):
        rest = block[block == block]
        for value in found:
            rest = rest[rest != value]
        while len(rest) and len(found) < limit:
            found.append(_scalar(rest[0]))
            rest = rest[rest != rest[0]]
        if len(found) == limit:
            break
    return found


# --------------------------------------------------------------------------------- messages: the slow path


def _refuse_shape(value: Any, shape: tuple[Any, ...], name: str) -> NoReturn:
    columns = getattr(value, "column_names", None)  # pyarrow
    if columns is None:
        columns = getattr(value, "columns", None)  # pandas, polars
    if len(shape) != 2:
        remedy = "pass one value per row"
    elif columns is not None:
        remedy = "pick one column"
        if len(columns) and isinstance(columns[0], str):
            remedy += f", e.g. {name}[{columns[0]!r}]"
    elif 1 in shape:
        remedy = f"pass {name}.ravel()"
    elif shape[1] == 2 and name == "y_prob":
        remedy = "pass the column of the positive class, y_prob[:, 1]"
    else:
        remedy = f"pick one column, e.g. {name}[:, 0]"
    raise ValueError(f"{name} must be one-dimensional; got shape {tuple(shape)}: {remedy}")


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> NoReturn:
    count = int(np.count_nonzero(missing))
    raise ValueError(
        f"{name} must not have missing values; got {count} missing, the first at index "
        f"{int(np.argmax(missing))}: drop or fill these rows"
    )


def _refuse_scores(scores: NDArray[Any]) -> NoReturn:
    slack = _slack(scores.dtype)
    first, count, above, low, high = -1, 0, 0, math.inf, -math.inf
    for start, block in _blocks(scores):
        values = _as_doubles(block)
        bad = ~((values >= -slack) & (values <= 1.0 + slack))
        if first < 0 and bad.any():
            first = start + int(np.argmax(bad))
        count += int(np.count_nonzero(bad))
        above += int(np.count_nonzero(values > 1.0 + slack))
        known = values[values == values]
        if len(known):
            low, high = min(low, float(known.min())), max(high, float(known.max()))
    if scores[first] != scores[first]:
        remedy = ": drop or fill the rows without a score"
    elif low < -slack and high > 1.0 + slack:
        remedy = ": these look like logits; pass the sigmoid of them, 1 / (1 + np.exp(-y_prob))"
    elif low < -slack and high <= 0.0:
        remedy = ": these look like log-probabilities; pass np.exp(y_prob)"
    elif low >= 0.0 and 2.0 <= high <= 100.0 and 2 * above > len(scores):
        remedy = ": these look like percent; pass y_prob / 100"
    else:
        remedy = ""
    raise ValueError(
        f"y_prob must lie in [0, 1]; got {_show(scores[first])} at index {first}{_more(count)}{remedy}"
    )


def _refuse_labels(labels: NDArray[Any], scores: NDArray[Any], pos_label: Any) -> NoReturn:
    distinct = _distinct(labels, 5)
    if pos_label is None:
        positive, negative = 1, next((value for value in distinct if value in (0, -1)), 0)
    else:
        positive, negative = pos_label, next((value for value in distinct if value != pos_label), pos_label)
    first, count, n_positive = -1, 0, 0
    for start, block in _blocks(labels):
        other = block != positive
        n_positive += len(block) - int(np.count_nonzero(other))
        bad = other & (block != negative)
        if first < 0 and bad.any():
            first = start + int(np.argmax(bad))
        count += int(np.count_nonzero(bad))
    got = f"got {_show(labels[first])} at index {first}{_more(count)}"
    if labels[first] != labels[first]:
        raise ValueError(f"y_true must hold one label per row; {got}: drop or fill the rows without a label")
    remedy = _label_remedy(labels, scores, distinct, pos_label)
    if pos_label is None:
        raise ValueError(f"y_true must hold labels 0/1 or -1/+1; {got}{remedy}")
    if n_positive == 0:
        known, got = _listed(distinct), _show(pos_label)
        raise ValueError(f"pos_label must be one of the labels of y_true ({known}); got {got}{remedy}")
    pair = f"{_show(positive)} and {_show(negative)}"
    raise ValueError(f"y_true must hold two different labels; {got} beside {pair}{remedy}")


def _label_remedy(labels: NDArray[Any], scores: NDArray[Any], distinct: list[Any], pos_label: Any) -> str:
    if labels.dtype.kind == "f" and any(bool((np.floor(b) != b).any()) for _, b in _blocks(labels)):
        usual = (0, 1, -1) if pos_label is None else (pos_label,)
        looks_like_labels = _first_other(scores, *usual) is None
        return _SWAPPED if looks_like_labels else ""
    if pos_label is None and set(distinct) <= {-1, 0, 1}:
        return ": -1 and 0 cannot both mean negative"
    if pos_label is None and len(distinct) == 2:
        high = _show(max(distinct))
        return f": pass pos_label={high} if {high} is the positive class"
    if len(distinct) > 2:
        return ": with several classes, take one at a time, y_true == c with the scores of class c"
    return ""


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def _show(value: Any) -> str:
    """A value as the user would type it, shortened."""
    text = str(value) if isinstance(value, (np.number, np.bool_)) else repr(_scalar(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(values: list[Any]) -> str:
    shown = [_show(value) for value in values[:3]]
    return ", ".join([*shown, "..."] if len(values) > 3 else shown)


def _article(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _kind_of(array: NDArray[Any]) -> str:
    """What an array holds, in words, for messages."""
    if array.dtype.kind in "US" or (array.dtype.kind == "O" and len(array) and isinstance(array[0], str)):
        return f"text such as {_show(array[0])}" if len(array) else "text"
    if array.dtype.kind == "O" and len(array):
        what = "floats in an object array," if isinstance(array[0], (float, np.floating)) else "objects"
        return f"{what} such as {_show(array[0])}"
    if array.dtype.kind == "O":
        return "objects"
    return f"dtype {array.dtype}"
