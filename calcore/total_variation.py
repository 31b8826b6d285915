"""Smoothing of a sequence: total variation denoising.

Sort by score first; labels in the order of their scores are then a noisy step-by-step picture of the
calibration function, and smoothing estimates it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import taut_string

__all__ = ["Optimality", "tv_denoise", "tv_gap"]

_Number = TypeVar("_Number", bound=np.generic)

_UNIT = np.empty(0)
_UNIT.flags.writeable = False
"""No weights: every row weighs 1."""

_BLOCK = 65_536
"""Rows looked at at once: they stay in the L2 cache."""

_NEGLIGIBLE = 2.0**-60
"""Weights up to this share of their total count as zero: double-double sums can tell all others apart."""

_NOTHING = 2.0**-1000
"""Penalties below this, with values and weights up to 2, move no value by as much as a rounding error."""

# ------------------------------------------------------------------------------------------- total variation


def tv_denoise(y: ArrayLike, lam: float, *, sample_weight: ArrayLike | None = None) -> NDArray[np.float64]:
    """Total variation denoising of a sequence, exactly: the fused lasso on a line.

    Use it to estimate a function that is piecewise constant or of bounded variation from noisy values in
    order, e.g. the calibration function from labels sorted by score. Rows with equal scores must be made one
    row first: their mean, with their total weight. Not for smooth functions where a kernel will do: what is
    smooth becomes steps, and a peak loses 2 lam over its weight.

    Parameters
    ----------
    y : array_like of shape (n,)
        Values in order, finite; at least one. Computed in float64 whatever the dtype.
    lam : float
        Penalty per unit of total variation, >= 0, in units of weight times y; pooling rows with their weights
        does not change it. 0 returns y; infinity, or anything large enough, the weighted mean.
    sample_weight : array_like of shape (n,), optional
        Finite, >= 0, not all zero; without it every row weighs 1. A weight of 2 is the row twice.

    Returns
    -------
    ndarray of float64, shape (n,)
        The minimiser v, within [min y, max y].

    Raises
    ------
    ValueError
        If an argument is empty, not one-dimensional, not finite, of another length, or negative where it
        must not be, or all weights are zero.
    TypeError
        If an argument does not hold numbers.

    See Also
    --------
    tv_gap : How far from optimal a solution can be at most.

    Notes
    -----
    Minimises ``1/2 sum w_i (y_i - v_i)^2 + lam sum |v_{i+1} - v_i|``. The minimiser is unique where weights
    are positive. A row of weight zero says nothing: it takes the value of the row before it, or that of the
    first row with weight if there is none before; so does a row with less than 2^-60 of the total weight.
    (With lam = 0, y is returned as it is.)

    Taut string through a tube (Davies and Kovac 2001): O(n) operations whatever the data and lam, see
    `calcore.kernels.taut_string` for the argument. About as fast as sorting n numbers, on labels 0/1 faster.

    A piece of the solution is the weighted mean of its rows, plus or minus 0, 1 or 2 lam over their weight,
    to a few roundings *of the range of y*: values are moved by the middle of their range first, so that an
    offset costs nothing but the rounding of the result. On labels 0/1 sums are whole numbers.

    Examples
    --------
    A spike of height 1 loses lam on either side; the rows around it share what it loses.

    >>> tv_denoise([0, 0, 1, 0, 0], 0.25)
    array([0.125, 0.125, 0.5  , 0.125, 0.125])

    Scores .1, .5, .5 with labels 0, 1, 1: the two tied rows are one, of weight 2.

    >>> tv_denoise([0, 1], 0.2, sample_weight=[1, 2])
    array([0.2, 0.9])
    """
    column = _validate.number_column(y, "y")
    lam = _validate.nonnegative_number(lam, "lam")
    n = len(column)
    out = np.empty(n)
    if sample_weight is None:
        labels = _zero_one(column)
        if labels is not None and lam > 0.0:
            taut_string.of_labels(_lent(labels), min(lam, float(n)), out)
            return out
    values = _lent(_validate.finite(column, "y"))
    low, high = float(values.min()), float(values.max())
    weights, heft, total, least = _UNIT, 1.0, float(n), 0.0
    if sample_weight is not None:
        weights = _lent(_validate.weights(sample_weight, n, rows="y"))
        heft = _power_below(float(weights.max()))
        if heft == math.inf:
            raise ValueError("sample_weight must not be all zero")
        total = _total(weights, heft)
        least = _NEGLIGIBLE * total
        if weights.min() * heft <= least:
            heavy = values[weights * heft > least]
            low, high = float(heavy.min()), float(heavy.max())
    if lam == 0.0:
        out[:] = values
    elif low == high:
        out[:] = low
    else:
        scale = _power_below(max(abs(low), abs(high)))
        penalty = min(_times(lam, scale, heft), total * (high * scale - low * scale))
        if penalty < _NOTHING:
            out[:] = values
        else:
            taut_string.of_rows(values, weights, least, penalty, low, high, scale, heft, out)
    return out


@dataclass(frozen=True, slots=True)
class Optimality:
    """How good a solution of `tv_denoise`'s problem is; from `tv_gap`, as shares of the objective and lam.

    Attributes
    ----------
    objective : float
        ``1/2 sum w (y - v)^2 + lam sum |v_{i+1} - v_i|``.
    gap : float
        Duality gap, divided by the objective.
    violation : float
        How far the dual variable leaves [-lam, lam], or 0 at the end, divided by lam.
    excess : float
        ``(objective - optimum) / objective`` is at most this.
    """

    objective: float
    gap: float
    violation: float
    excess: float


def tv_gap(y: ArrayLike, v: ArrayLike, lam: float, *, sample_weight: ArrayLike | None = None) -> Optimality:
    """Certify a solution of total variation denoising, from any solver, in linear time.

    The optimum need not be known.

    Parameters
    ----------
    y, lam, sample_weight
        The problem, as in `tv_denoise`.
    v : array_like of shape (n,)
        The solution to check.

    Returns
    -------
    Optimality

    Raises
    ------
    ValueError, TypeError
        As `tv_denoise`; an infinite lam too.

    Notes
    -----
    The dual variable belongs to the solution: ``u_i = sum over j <= i of w_j (v_j - y_j)``. v is optimal if
    and only if ``|u_i| <= lam``, ``u_n = 0``, and ``u_i = lam sign(d_i)`` at every step ``d_i = v_{i+1} -
    v_i`` that is not 0. The gap is ``sum lam |d_i| - u_i d_i``.

    For the optimum v* with steps d*, convexity and summation by parts give ``objective(v) - objective(v*) <=
    gap + sum (|u_i| - lam)_+ |d*_i| + |u_n| |v*_n - v_n|``. Here ``lam sum |d*_i|`` is at most the objective
    of v, and ``|v*_n - v_n|`` at most the range R of y and v: the excess is at most ``gap + violation (1 +
    lam R / objective)``, all relative. Rounding v to float64 shifts u by up to 2^-53 times the running sum of
    w |v|: where lam is tiny beside that, no solution can look perfect.

    Examples
    --------
    >>> tv_gap([0.0, 1.0], [0.25, 0.75], 0.25)
    Optimality(objective=0.1875, gap=0.0, violation=0.0, excess=0.0)

    Without a step there is no gap, but u_1 = .5 is outside [-.25, .25].

    >>> tv_gap([0.0, 1.0], [0.5, 0.5], 0.25)
    Optimality(objective=0.25, gap=0.0, violation=1.0, excess=2.0)
    """
    values = _lent(_validate.numbers(y, "y"))
    solution = _lent(_validate.numbers(v, "v"))
    lam = _validate.nonnegative_number(lam, "lam")
    if lam == math.inf:
        raise ValueError("lam must be finite where a gap is measured; got inf")
    if len(solution) != len(values):
        raise ValueError(f"v and y must have the same length; got {len(solution)} and {len(values)}")
    weights = _UNIT
    if sample_weight is not None:
        weights = _lent(_validate.weights(sample_weight, len(values), rows="y"))
    objective, gap, outside, spread = taut_string.optimality(values, weights, solution, lam)
    gap, violation = _share(gap, objective), _share(outside, lam)
    excess = gap + violation * (1.0 + _share(lam * spread, objective)) if violation > 0.0 else gap
    return Optimality(objective, gap, violation, excess)


def _zero_one(column: NDArray[np.generic]) -> NDArray[np.uint8] | None:
    """The column as uint8 if it holds only 0 and 1, else None; a first block of anything else decides."""
    if column.dtype.kind == "b":
        return np.ascontiguousarray(column).view(np.uint8)
    labels = np.empty(len(column), np.uint8)
    for start in range(0, len(column), _BLOCK):
        block = column[start : start + _BLOCK]
        ones = block == 1
        if np.count_nonzero(ones) + np.count_nonzero(block == 0) != len(block):
            return None
        labels[start : start + _BLOCK] = ones
    return labels


def _lent(array: NDArray[_Number]) -> NDArray[_Number]:
    """A read-only view: compiled loops see one type, whether the user's array may be written or not."""
    view = array.view()
    view.flags.writeable = False
    return view


def _power_below(value: float) -> float:
    """A power of two that brings a positive number to [1/2, 2), or near it if its inverse would overflow."""
    if value == 0.0:
        return math.inf
    return math.ldexp(1.0, min(1 - math.frexp(value)[1], 1022))


def _total(weights: NDArray[np.float64], heft: float) -> float:
    """Sum of the weights times `heft`; the sum itself may be beyond float64."""
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    return total * heft if total < math.inf else float((weights * heft).sum())


def _times(lam: float, scale: float, heft: float) -> float:
    """The product in the one order of two that neither overflows nor underflows on the way."""
    with np.errstate(over="ignore", under="ignore"):
        exponent = math.frexp(scale)[1] + math.frexp(heft)[1] - 2
        return float(np.ldexp(lam, exponent))


def _share(part: float, whole: float) -> float:
    part = max(part, 0.0)
    return part / whole if whole > 0.0 else (math.inf if part > 0.0 else 0.0)
