"""Regression of labels on scores by local averages, and what it says about calibration.

The Nadaraya–Watson estimate at t is the mean of y with weights K((x - t) / bandwidth). It describes a sample;
no confidence is attached to it (`certify` has that).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import ceil, frexp, ldexp
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import gauss, ordering, sorting, windows

Window = Literal["box", "epanechnikov", "gaussian"]
WINDOWS = ("box", "epanechnikov", "gaussian")

PARTS = 4
"""Ranges of evaluation points that threads share out: a fixed number, so that roundings do not depend on
the number of threads."""

_THREADED_POINTS = 65_536
"""Fewer points are one range."""

_CELL_PAIRS = 1000
"""A cell of points costs the fast Gauss transform as much time as this many pairs of point and row."""


def nadaraya_watson(
    x: ArrayLike,
    y: ArrayLike,
    bandwidth: float,
    *,
    at: ArrayLike | None = None,
    window: Window = "box",
    sample_weight: ArrayLike | None = None,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Local weighted means of y around points of x.

    ``m(t) = sum_i w_i K((x_i - t) / b) y_i / sum_i w_i K((x_i - t) / b)`` with bandwidth b, where ``K(r)`` is

    * "box": 1 for abs(r) <= 1, else 0: the mean of the rows within b;
    * "epanechnikov": 1 - r^2 for abs(r) <= 1, else 0;
    * "gaussian": exp(-r^2 / 2).

    Parameters
    ----------
    x : array_like of shape (n,)
        Where the rows are: finite numbers, such as scores, in any order.
    y : array_like of shape (n,)
        What is averaged: finite numbers, such as 0/1 labels.
    bandwidth : float
        In units of x, finite and > 0: half the width of a window, or the standard deviation of the Gaussian.
    at : array_like of shape (m,), optional
        Evaluation points in any order; default the rows themselves.
    window : {"box", "epanechnikov", "gaussian"}, default "box"
        Shape of K.
    sample_weight : array_like of shape (n,), optional
        Finite weights w >= 0; default 1 each. A row of weight 0 is as good as absent.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (m,) or (n,)
        In the order of `at`, or of the rows. NaN where no row has weight; this cannot happen with the
        Gaussian: where all other weights vanish, the nearest row remains (rows at one distance averaged).

    Raises
    ------
    ValueError
        If a column has values that are not finite or another length, `bandwidth` is not > 0, `window`
        is unknown, or all weights are 0.
    TypeError
        If a column does not hold numbers.

    Notes
    -----
    Windows are closed: a row exactly `bandwidth` away is inside a box. This is decided for the real numbers
    that the doubles stand for, not for a rounded difference: the distance of the doubles .3 and .2 is below
    the double .1, that of .2 and .1 is equal to it, and that of .7 and .6 is above it.

    Rows are sorted (not if they ascend already), then box and Epanechnikov take O(n + m) for sorted points.
    The Gaussian takes about that too, plus a constant per cell of half a bandwidth that has points; few
    points, tiny bandwidths, and points further than some 8 bandwidths from all rows are summed row by row.

    Errors, with u = 2^-53 and M = max abs(y), as long as no product of a weight and a value underflows: a box
    over 0/1 labels without weights is correctly rounded; over other numbers at most 5 u M, with M the largest
    in the window (up to 5 10^7 rows in it). Epanechnikov: at most 2^-45 M / w, w the mean of K over the rows
    in the window (2/3 for uniform rows), and at most 2^-25 M in the worst case. Gaussian: at most 2^-36 M,
    usually 10 u M.

    See Also
    --------
    calcore.smoothing.kernel_ce_curve : how far the estimate is from the scores.

    References
    ----------
    Nadaraya, On estimating regression, Theory Probab. Appl. 9 (1964). Watson, Smooth regression analysis,
    Sankhya A 26 (1964).

    Examples
    --------
    >>> nadaraya_watson([0.0, 0.25, 1.0], [0, 1, 1], 0.25)
    array([0.5, 0.5, 1. ])
    >>> nadaraya_watson([0.0, 0.25, 1.0], [0, 1, 1], 0.25, at=[0.6])
    array([nan])
    >>> nadaraya_watson([0.0, 0.5, 1.0], [0, 1, 0], 1e-4, at=[0.3, 0.25], window="gaussian")
    array([1. , 0.5])
    """
    places, values = _validate.numbers(x, "x"), _validate.labels_or_numbers(y, "y")
    if len(places) != len(values):
        raise ValueError(f"x and y must have the same length; got {len(places)} and {len(values)}")
    b = _validate.positive_number(bandwidth, "bandwidth")
    _validate.choice(window, "window", WINDOWS)
    masses = None if sample_weight is None else _validate.weights(sample_weight, len(places), "x")
    points = None if at is None else _validate.numbers(at, "at")
    threads = _validate.threads(n_threads, PARTS)

    places, order = _ordered(places)
    if order is not None:
        values = values[order]
        masses = None if masses is None else masses[order]
    if points is None:
        points_order, ascending = order, places
    else:
        ascending, points_order = _ordered(points)
    if masses is not None and not masses.all():
        kept = masses > 0.0
        if not kept.any():
            raise ValueError("sample_weight must not be all zero")
        places, values, masses = places[kept], values[kept], masses[kept]
    if masses is not None and (scale := _scale(masses)) != 1.0:
        masses = masses * scale
    scale = _scale(values)
    if scale != 1.0:
        values = np.asarray(values * scale, np.float64)
    smooth = _smooth(places, values, masses, b, window, ascending, threads)
    if scale != 1.0:
        smooth = smooth / scale
    if points_order is None:
        return smooth
    result = np.empty_like(smooth)
    result[points_order] = smooth
    return result


def _scale(numbers: NDArray[Any]) -> float:
    """A power of two that takes numbers beyond 2^450 down to where sums of products stay finite; else 1."""
    most = float(np.abs(numbers).max(initial=0))
    return ldexp(1.0, 450 - frexp(most)[1]) if most > 2.0**450 else 1.0


def kernel_ce_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    bandwidths: ArrayLike,
    *,
    window: Window = "box",
    pos_label: Any = None,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Kernel calibration error at each of several bandwidths: how much the choice matters.

    ``(1/n) sum_i abs(m(s_i) - s_i)`` with m the Nadaraya–Watson estimate of the labels, as `nadaraya_watson`
    computes it.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    bandwidths : array_like of shape (k,)
        Finite numbers > 0.
    window : {"box", "epanechnikov", "gaussian"}, default "box"
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (k,)
        In the order of `bandwidths`, in [0, 1].

    Raises
    ------
    ValueError
        If labels, scores or bandwidths break their rules; the message names argument, rule, value and index.

    Notes
    -----
    A small bandwidth follows the noise of the labels (at bandwidth 0 and distinct scores this is the mean of
    abs(y - s)), a large one averages errors of different sign away. A plateau between them is a sign of a
    value that does not depend on the choice; there may be none. One sort, then O(n) per bandwidth.

    Examples
    --------
    >>> kernel_ce_curve([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], [0.01, 0.5])
    array([0.25, 0.25])
    """
    rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
    widths = [
        _validate.positive_number(b, f"bandwidths[{i}]")
        for i, b in enumerate(_validate.numbers(bandwidths, "bandwidths"))
    ]
    _validate.choice(window, "window", WINDOWS)
    threads = _validate.threads(n_threads, PARTS)
    s, y = sorted_rows(rows)
    return np.array([mean_error(s, y, b, window, threads) for b in widths])


def sorted_rows(rows: _validate.Rows) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Scores in ascending order, and their labels."""
    keys = np.empty(len(rows), np.int64)
    for start in range(0, len(rows), _THREADED_POINTS):
        labels, scores, _ = rows.block(start, start + _THREADED_POINTS)
        sorting.pack(labels, scores, keys[start : start + _THREADED_POINTS])
    keys.sort()
    y = (keys & 1).astype(np.uint8)
    keys >>= 1
    return keys.view(np.float64), y


def mean_error(s: NDArray[np.float64], y: NDArray[np.uint8], b: float, window: Window, threads: int) -> float:
    """Mean of abs(m(s) - s) over `sorted_rows`, m the estimate with bandwidth b."""
    error = _smooth(s, y, None, b, window, s, threads)
    error -= s
    return float(np.abs(error, out=error).mean())


def _smooth(
    x: NDArray[np.float64],
    y: NDArray[np.uint8] | NDArray[np.float64],
    masses: NDArray[np.float64] | None,
    b: float,
    window: str,
    at: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]:
    """Estimates at ascending points, from rows by ascending x with weights > 0."""
    out = np.empty(len(at))
    x, at = _validate.read_only(x), _validate.read_only(at)
    if window == "box" and masses is None and y.dtype == np.uint8:
        passed = np.empty(len(x) + 1, np.uint32)
        windows.running_count(_validate.read_only(y.view(np.uint8)), passed)
        _in_parts(lambda part, to: windows.box_of_labels(x, passed, part, b, to), at, out, threads)
        return out
    values = _validate.read_only(y.astype(np.float64, copy=False))
    if window == "gaussian":
        _in_parts(_gaussian(x, values, masses, b, at), at, out, threads)
    else:
        weights = _validate.read_only(np.empty(0) if masses is None else masses)
        curved = window == "epanechnikov"
        _in_parts(lambda part, to: windows.means(x, values, weights, part, b, curved, to), at, out, threads)
    return np.clip(out, values.min(), values.max(), out=out)


Kernel = Callable[[NDArray[np.float64], NDArray[np.float64]], None]


def _gaussian(
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    masses: NDArray[np.float64] | None,
    b: float,
    at: NDArray[np.float64],
) -> Kernel:
    """Choose between rows and cells, and prepare the cells."""
    starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    moments = np.add.reduceat(values if masses is None else values * masses, starts)
    mass = np.add.reduceat(np.ones(len(x)) if masses is None else masses, starts)
    places, mass_in_all = x[starts], float(mass.sum())
    _, exponent = frexp(b)
    width = ldexp(1.0, exponent - 2)
    largest = max(abs(x[0]), abs(x[-1]), abs(at[0]), abs(at[-1]))
    if largest < width * 2.0**52:
        sample = at[:: max(1, len(at) // 1000)]
        near = np.searchsorted(places, sample + 10.0 * b) - np.searchsorted(places, sample - 10.0 * b)
        point_cells = 1 + np.count_nonzero(np.diff(np.floor(at / width)))
        if near.mean() * len(at) > 4.0 * (len(places) + len(at)) + _CELL_PAIRS * point_cells:
            numbers = np.floor(places / width).astype(np.int64)
            begins = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
            cells, begins = numbers[begins], np.append(begins, len(places))
            sums = np.empty((len(cells), 2, gauss.DEGREES))
            gauss.collect(places, mass, moments, begins, width, b, sums)
            n_offsets = 2 * ceil(gauss.REACH * b / width) + 1
            hermite, errors = np.empty((n_offsets, gauss.DEGREES)), np.empty(n_offsets)
            gauss.tables(width / b, hermite, errors)
            return lambda part, to: gauss.means_by_cells(
                places, mass, moments, mass_in_all, cells, sums, hermite, errors, part, width, b, to
            )
    return lambda part, to: gauss.means_by_rows(places, mass, moments, mass_in_all, part, b, to)


def _in_parts(kernel: Kernel, at: NDArray[np.float64], out: NDArray[np.float64], threads: int) -> None:
    """Let threads own contiguous ranges of the points."""
    m = len(at)
    parts = PARTS if m >= _THREADED_POINTS else 1
    ranges = [slice(i * m // parts, (i + 1) * m // parts) for i in range(parts)]
    if parts == 1 or threads == 1:
        for own in ranges:
            kernel(at[own], out[own])
        return
    with ThreadPoolExecutor(min(threads, parts)) as pool:
        list(pool.map(lambda own: kernel(at[own], out[own]), ranges))


def _ordered(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Ascending x, and the rows that they come from; None if they ascend already."""
    if np.all(x[:-1] <= x[1:]):
        return x, None
    low, bits = float(x.min()), (len(x) - 1).bit_length()
    scale = 2.0 ** (62 - bits) / max(float(x.max()) - low, 1e-280)
    rows = np.empty(len(x), np.int64)
    ordering.pack_places(_validate.read_only(x), low, scale, bits, rows)
    rows.sort()
    rows &= (1 << bits) - 1
    ascending = x[rows]
    if not ordering.settle(ascending, rows, 4 * len(x)):  # most lie on few places of the grid
        rows = np.argsort(x, kind="stable")
        ascending = x[rows]
    return ascending, rows
