"""Concentration bounds for means of n independent bounded variables; nothing here knows about calibration.

`hoeffding`, `bernstein` and `empirical_bernstein` are one-sided distances in the units of the variables: with
probability at least 1 - delta the true mean is at most that far *above* the sample mean, and with the same
probability at most that far below. For both at once pass delta / 2. `dkw` is two-sided. `kl_upper` and
`kl_lower` are one-sided ends rather than distances, and take ``ln(1/delta) / n``: the nats per row that the
error probability allows.

All take numbers or arrays, which are broadcast; numbers give a float.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore.kernels import divergence

__all__ = ["bernstein", "dkw", "empirical_bernstein", "hoeffding", "kl_lower", "kl_upper"]

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@overload
def kl_upper(q: float, nats: float) -> float: ...
@overload
def kl_upper(q: ArrayLike, nats: ArrayLike) -> float | NDArray[np.float64]: ...
def kl_upper(q: float | ArrayLike, nats: float | ArrayLike) -> float | NDArray[np.float64]:
    """Largest p with kl(q, p) <= `nats`: an upper bound of a mean in [0, 1].

    If q is the mean of n independent variables in [0, 1] whose means average p, then
    ``p <= kl_upper(q, ln(1/delta) / n)`` with probability at least 1 - delta (Chernoff; Hoeffding 1963).

    Parameters
    ----------
    q : float or array_like
        Sample means, in [0, 1].
    nats : float or array_like
        ln(1/delta) / n, >= 0.

    Returns
    -------
    float or ndarray of float64
        One-sided upper ends, in [q, 1]. Of two neighbouring doubles the one outside, or at most some units
        in the last place further: never inside.

    Raises
    ------
    ValueError
        If q lies outside [0, 1] or `nats` is negative.

    Examples
    --------
    No event in n rows: (1 - p)^n = delta.

    >>> round(kl_upper(0.0, math.log(20) / 100), 12) == round(1 - 0.05 ** (1 / 100), 12)
    True
    >>> kl_upper([0.1, 0.5, 1.0], [0.0005, 0.01, 0.1]).round(6)
    array([0.109753, 0.570359, 1.      ])
    """
    return _edges(q, 1.0, nats)


@overload
def kl_lower(q: float, nats: float) -> float: ...
@overload
def kl_lower(q: ArrayLike, nats: ArrayLike) -> float | NDArray[np.float64]: ...
def kl_lower(q: float | ArrayLike, nats: float | ArrayLike) -> float | NDArray[np.float64]:
    """Smallest p with kl(q, p) <= `nats`: a lower bound of a mean in [0, 1].

    Parameters
    ----------
    q, nats : float or array_like
        As in `kl_upper`.

    Returns
    -------
    float or ndarray of float64
        One-sided lower ends, in [0, q], rounded outwards.

    Raises
    ------
    ValueError
        If q lies outside [0, 1] or `nats` is negative.

    Examples
    --------
    >>> kl_lower(0.0, 0.1)
    0.0
    >>> round(kl_lower(0.9, 0.01), 10) == round(1 - kl_upper(0.1, 0.01), 10)
    True
    """
    return _edges(q, 0.0, nats)


def _edges(q: float | ArrayLike, outside: float, nats: float | ArrayLike) -> float | NDArray[np.float64]:
    """Where kl(q, p) passes `nats` between p = q and p = `outside`; rounded outwards."""
    mean = _values(q, "q", "lie in [0, 1]", lambda v: (v >= 0.0) & (v <= 1.0))
    limit = _values(nats, "nats", "be >= 0", lambda v: v >= 0.0)
    mean, limit = np.broadcast_arrays(mean, limit)
    if mean.ndim == 0:
        return divergence.edge(float(mean), outside, float(limit))
    found = divergence.edges(np.array(mean).ravel(), outside, np.array(limit).ravel())
    return found.reshape(mean.shape)


@overload
def hoeffding(n: float, delta: float, *, span: float = 1.0) -> float: ...
@overload
def hoeffding(n: ArrayLike, delta: ArrayLike, *, span: ArrayLike = 1.0) -> float | NDArray[np.float64]: ...
def hoeffding(n: ArrayLike, delta: ArrayLike, *, span: ArrayLike = 1.0) -> float | NDArray[np.float64]:
    """Distance from the sample mean to the mean, from the range alone: ``span sqrt(ln(1/delta) / (2 n))``.

    Parameters
    ----------
    n : float or array_like
        Number of independent variables, >= 1.
    delta : float or array_like
        Error probability of one side, strictly between 0 and 1.
    span : float or array_like, default 1
        Largest minus smallest possible value of a variable.

    Returns
    -------
    float or ndarray of float64
        In the units of `span`, and at most `span`.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Hoeffding, Probability inequalities for sums of bounded random variables, JASA 58 (1963), theorem 2.

    Examples
    --------
    >>> round(hoeffding(200, 0.05), 12) == round(math.sqrt(math.log(20) / 400), 12)
    True
    >>> hoeffding([1, 4], math.exp(-2), span=2)
    array([2., 1.])
    """
    rows, nats, width = _rows(n), _nats(delta), _span(span)
    return _result(np.minimum(width * np.sqrt(nats / (2.0 * rows)), width))


@overload
def bernstein(variance: float, n: float, delta: float, *, span: float = 1.0) -> float: ...
@overload
def bernstein(
    variance: ArrayLike, n: ArrayLike, delta: ArrayLike, *, span: ArrayLike = 1.0
) -> float | NDArray[np.float64]: ...
def bernstein(
    variance: ArrayLike, n: ArrayLike, delta: ArrayLike, *, span: ArrayLike = 1.0
) -> float | NDArray[np.float64]:
    """Distance from the sample mean to the mean, from a known variance.

    ``sqrt(2 variance ln(1/delta) / n) + span ln(1/delta) / (3 n)``

    Parameters
    ----------
    variance : float or array_like
        An upper bound of the variables' mean variance, >= 0: known, not estimated (`empirical_bernstein`).
    n, delta, span
        As in `hoeffding`; one-sided.

    Returns
    -------
    float or ndarray of float64
        In the units of `span`, and at most `span`.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Boucheron, Lugosi, Massart, Concentration Inequalities (2013), theorem 2.10 with c = span / 3.

    Examples
    --------
    >>> round(bernstein(0.02, 100, math.exp(-1)), 12)  # sqrt(0.0004) + 1/300
    0.023333333333
    """
    rows, nats, width = _rows(n), _nats(delta), _span(span)
    spread = _values(variance, "variance", "be a finite number >= 0", _nonnegative)
    return _result(np.minimum(np.sqrt(2.0 * spread * nats / rows) + width * nats / (3.0 * rows), width))


@overload
def empirical_bernstein(variance: float, n: float, delta: float, *, span: float = 1.0) -> float: ...
@overload
def empirical_bernstein(
    variance: ArrayLike, n: ArrayLike, delta: ArrayLike, *, span: ArrayLike = 1.0
) -> float | NDArray[np.float64]: ...
def empirical_bernstein(
    variance: ArrayLike, n: ArrayLike, delta: ArrayLike, *, span: ArrayLike = 1.0
) -> float | NDArray[np.float64]:
    """Distance from the sample mean to the mean, from the sample's variance.

    ``sqrt(2 variance ln(2/delta) / n) + 7 span ln(2/delta) / (3 (n - 1))``, and `span` for one row.

    Parameters
    ----------
    variance : float or array_like
        The sample's unbiased variance, ``np.var(values, ddof=1)``, >= 0. Of one row it is NaN, and not used.
    n, delta, span
        As in `hoeffding`; one-sided: ln(2/delta) because the variance is estimated too.

    Returns
    -------
    float or ndarray of float64
        In the units of `span`, and at most `span`. Never 0, even if all rows agree.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Maurer, Pontil, Empirical Bernstein bounds and sample variance penalization, COLT (2009), theorem 4.

    Examples
    --------
    Ten equal rows:

    >>> round(empirical_bernstein(0.0, 10, 0.05), 9) == round(7 * math.log(40) / 27, 9)
    True
    """
    rows, width = _rows(n), _span(span)
    nats = _nats(delta) + math.log(2.0)
    spread = np.where(rows > 1.0, np.asarray(variance, np.float64), 0.0)
    spread = _values(spread, "variance", "be a finite number >= 0", _nonnegative)
    with np.errstate(divide="ignore"):
        distance = np.sqrt(2.0 * spread * nats / rows) + 7.0 * width * nats / (3.0 * (rows - 1.0))
    return _result(np.minimum(distance, width))


@overload
def dkw(n: float, delta: float) -> float: ...
@overload
def dkw(n: ArrayLike, delta: ArrayLike) -> float | NDArray[np.float64]: ...
def dkw(n: ArrayLike, delta: ArrayLike) -> float | NDArray[np.float64]:
    """Largest distance between the empirical and the true distribution function.

    ``sqrt(ln(2/delta) / (2 n))``

    Two-sided and uniform: with probability at least 1 - delta, at all points at once. For one side only, pass
    2 delta (valid up to delta = 1/2).

    Parameters
    ----------
    n : float or array_like
        Number of independent rows, >= 1.
    delta : float or array_like
        Error probability, strictly between 0 and 1.

    Returns
    -------
    float or ndarray of float64
        A difference of probabilities, at most 1.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    References
    ----------
    Massart, The tight constant in the Dvoretzky–Kiefer–Wolfowitz inequality, Ann. Probab. 18 (1990).

    Examples
    --------
    >>> round(dkw(200, 0.05), 12) == round(math.sqrt(math.log(40) / 400), 12)
    True
    """
    return _result(np.minimum(np.sqrt((_nats(delta) + math.log(2.0)) / (2.0 * _rows(n))), 1.0))


def _rows(n: ArrayLike) -> NDArray[np.float64]:
    return _values(n, "n", "be a finite number >= 1", lambda v: (v >= 1.0) & (v < np.inf))


def _nats(delta: ArrayLike) -> NDArray[np.float64]:
    rule = "lie strictly between 0 and 1"
    return np.asarray(-np.log(_values(delta, "delta", rule, lambda v: (v > 0.0) & (v < 1.0))))


def _span(span: ArrayLike) -> NDArray[np.float64]:
    return _values(span, "span", "be a finite number > 0", lambda v: (v > 0.0) & (v < np.inf))


def _nonnegative(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (values >= 0.0) & (values < np.inf)


def _values(
    given: ArrayLike, name: str, rule: str, valid: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
) -> NDArray[np.float64]:
    """Check numbers of any shape, or raise an error that names the argument, the rule and the first fault."""
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number or an array of numbers; {error}") from error
    bad = ~valid(values)
    if bad.any():
        raise ValueError(f"{name} must {rule}; got {values[bad][0]}")
    return values


def _result(values: NDArray[np.float64]) -> float | NDArray[np.float64]:
    return values if values.ndim else float(values)


def excess(t: float) -> float:
    """``e^t - 1 - t``, the exponent of Bennett's and Bernstein's inequalities, without cancellation.

    Examples
    --------
    >>> excess(1.0) == math.e - 2.0
    True
    """
    if abs(t) < 1e-3:
        return t * t * (0.5 + t * (1.0 / 6.0 + t * (1.0 / 24.0 + t / 120.0)))
    return math.expm1(t) - t


def minimise(function: Callable[[float], float], low: float, high: float, *, steps: int = 40) -> float:
    """Least value of `function` seen by a golden-section search on [low, high].

    Used where every argument gives a valid bound, so that an imprecise minimum is only a little loose.

    Examples
    --------
    >>> round(minimise(lambda x: (x - 2.0) ** 2 + 1.0, 0.0, 5.0), 12)
    1.0
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    best = min(at_left, at_right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
            best = min(best, at_left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
            best = min(best, at_right)
    return best
