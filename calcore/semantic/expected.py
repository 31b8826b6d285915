"""What the two confidences are on average: exactly for n answers with known shares, and in the limit."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.semantic.estimators import Ties

__all__ = [
    "asymptotic_bias",
    "asymptotic_gap",
    "expected_sem1",
    "expected_sem2",
    "mode_law",
]

Floats = NDArray[np.float64]

_MOST = 10_000
"""Answers: the cost grows with the square."""

_TOLERANCE = 1e-9
"""Of shares that should sum to 1."""


def mode_law(pi: ArrayLike, n: int, *, ties: Ties = "first") -> Floats:
    """Joint probabilities of the most frequent class of n answers and of its count.

    Parameters
    ----------
    pi : array_like of shape (K,)
        Shares of the classes, >= 0, which sum to 1 up to 1e-9.
    n : int
        Answers, from 1 to 10,000.
    ties : {"first", "random"}
        As in `semantic_confidence`.

    Returns
    -------
    ndarray of float64, shape (K, n + 1)
        Entry (k, t) is P(class k is chosen, N_k = t).

    Raises
    ------
    ValueError
        If an argument breaks its rule.

    Notes
    -----
    With independent Poisson counts of means n pi_k, given that they sum to n, the counts are multinomial. For
    each t the law of the sum of the other classes, none above t, is a convolution of nonnegative numbers, so
    that nothing cancels: the relative error is about n K rounding errors. "random" keeps the number of ties
    along. O(K^2 n^3) at most, K^3 n^3 with random ties: meant for small n.

    Examples
    --------
    >>> mode_law([0.5, 0.5], 2)  # two heads 1/4; one each 1/2, the first class is chosen; two tails 1/4
    array([[0.  , 0.5 , 0.25],
           [0.  , 0.  , 0.25]])
    >>> mode_law([0.5, 0.5], 2, ties="random")
    array([[0.  , 0.25, 0.25],
           [0.  , 0.25, 0.25]])
    """
    shares = _shares(pi)
    n = _validate.whole_number(n, "n", low=1, high=_MOST)
    _validate.choice(ties, "ties", get_args(Ties))
    k = len(shares)
    law = np.zeros((k, n + 1))
    weights = _poisson(shares, n)
    total = _poisson(np.ones(1), n)[0, n]
    for t in range(1, n + 1):
        for chosen in range(k):
            if weights[chosen, t] == 0.0:
                continue
            others = np.delete(np.arange(k), chosen)
            if ties == "first":
                ends = [t if j < chosen else t + 1 for j in others]  # counts below these
                found = _sum_is(n - t, [weights[j, :end] for j, end in zip(others, ends, strict=True)])
            else:
                found = _shared_ties(n - t, weights[others, : t + 1])
            law[chosen, t] = weights[chosen, t] * found / total
    return law


def expected_sem1(pi: ArrayLike, n: int) -> float:
    """Mean of the largest share, E max_k N_k / n, over samples of n answers.

    Parameters
    ----------
    pi, n
        As in `mode_law`.

    Returns
    -------
    float
        At least the largest of `pi` (Jensen's inequality), whatever breaks ties.

    Raises
    ------
    ValueError
        If an argument breaks its rule.

    Examples
    --------
    >>> round(expected_sem1([0.5, 0.5], 2), 12)  # 1 in half of the samples, else 1/2
    0.75
    """
    law = mode_law(pi, n)
    return float(min(math.fsum((law * (np.arange(law.shape[1]) / n)).ravel()), 1.0))


def expected_sem2(pi: ArrayLike, n: int, s: int | None = None, *, ties: Ties = "first") -> float:
    """Mean of the held-out share, sum_k pi_k P(z_S = k): the same for any number of splits.

    Parameters
    ----------
    pi, n, ties
        As in `mode_law`; n at least 2.
    s : int, optional
        Answers that choose the class, from 1 to n - 1; default floor(n / 2), as in `semantic_confidence`.

    Returns
    -------
    float
        At most the largest of `pi`.

    Raises
    ------
    ValueError
        If an argument breaks its rule.

    Examples
    --------
    >>> round(expected_sem2([0.75, 0.25], 2), 12)  # one answer chooses: 9/16 + 1/16
    0.625
    """
    shares = _shares(pi)
    n = _validate.whole_number(n, "n", low=2, high=_MOST)
    size = n // 2 if s is None else _validate.whole_number(s, "s", low=1, high=n - 1)
    law = mode_law(shares, size, ties=ties)
    return float(min(math.fsum((law * shares[:, None]).ravel()), float(shares.max())))


def asymptotic_bias(
    m: float, n: float, *, estimator: Literal["sem1", "sem2"], s: float | None = None, p: float = 1.0
) -> float:
    """Limit of E Sem - pi_1 for two close classes, as n grows and m stays.

    Parameters
    ----------
    m : float
        Margin in standard errors, ``sqrt(n / p) (pi_1 - pi_2)``, >= 0.
    n : float
        Answers.
    estimator : {"sem1", "sem2"}
    s : float, optional
        Answers that choose the class of "sem2", at most n; default n / 2.
    p : float, default 1
        ``pi_1 + pi_2``; the other classes must be smaller.

    Returns
    -------
    float
        "sem1": ``sqrt(p / n) (phi(m) - m Phi(-m))``, > 0; "sem2": ``-sqrt(p / n) m Phi(-m sqrt(s / n))``.

    Raises
    ------
    ValueError
        If an argument breaks its rule.

    Notes
    -----
    THEORY 12.3. At s = n / 2 the two are of one size at m = .532: for larger m that of "sem2" is the larger,
    below it that of "sem1". With s = n it is m = .612.

    Examples
    --------
    >>> round(asymptotic_bias(0, 50, estimator="sem1"), 4), asymptotic_bias(0, 50, estimator="sem2")
    (0.0564, 0.0)
    """
    _validate.choice(estimator, "estimator", ("sem1", "sem2"))
    m = _validate.nonnegative_number(m, "m")
    n = _validate.positive_number(n, "n")
    p = _validate.positive_number(p, "p")
    if p > 1.0:
        raise ValueError(f"p must be at most 1; got {p:g}")
    size = 0.5 * n if s is None else _validate.positive_number(s, "s")
    if size > n:
        raise ValueError(f"s must be at most n, {n:g}; got {size:g}")
    scale = math.sqrt(p / n)
    if estimator == "sem1":
        return scale * max(_density(m) - _tail(m), 0.0)
    return 0.0 - scale * m * _upper(m * math.sqrt(size / n)) if m < math.inf else 0.0


def asymptotic_gap(m: float, n: float, s: float | None = None, *, p: float = 1.0) -> float:
    """Limit of E Sem1 - E Sem2 for two close classes: the difference of the two `asymptotic_bias`.

    Parameters
    ----------
    m, n, s, p
        As in `asymptotic_bias`.

    Returns
    -------
    float
        > 0: ``sqrt(p / n) (phi(m) - m Phi(-m) + m Phi(-m sqrt(s / n)))``.

    Raises
    ------
    ValueError
        If an argument breaks its rule.

    Examples
    --------
    >>> round(asymptotic_gap(0, 50), 4)
    0.0564
    """
    one = asymptotic_bias(m, n, estimator="sem1", p=p)
    return one - asymptotic_bias(m, n, estimator="sem2", s=s, p=p)


def _shares(pi: Any) -> Floats:
    shares = _validate.numbers(pi, "pi")
    if np.any(shares < 0.0):
        raise ValueError(f"pi must be >= 0; got {shares.min():g} at index {int(shares.argmin())}")
    if abs(math.fsum(shares) - 1.0) > _TOLERANCE:
        raise ValueError(f"pi must sum to 1; got the sum {math.fsum(shares):.10g}")
    return shares


def _poisson(shares: Floats, n: int) -> Floats:
    """Probabilities of 0, ..., n for Poisson counts of means n times the shares, (K, n + 1)."""
    from scipy.special import gammaln, xlogy

    counts = np.arange(n + 1)
    weights: Floats = np.exp(xlogy(counts, n * shares[:, None]) - n * shares[:, None] - gammaln(counts + 1.0))
    return weights


def _sum_is(total: int, weights: list[Floats]) -> float:
    """Probability that independent counts with these weights sum to `total`."""
    law = np.zeros(total + 1)
    law[0] = 1.0
    for own in weights:
        law = np.convolve(law, own[: total + 1])[: total + 1]
    return float(law[total])


def _shared_ties(total: int, weights: Floats) -> float:
    """Mean of 1 / (1 + number of counts at the last place) where counts sum to `total`."""
    k, most = weights.shape[0], weights.shape[1] - 1
    law = np.zeros((k + 1, total + 1))
    law[0, 0] = 1.0
    for j in range(k):
        after = np.zeros_like(law)
        for tied in range(j + 1):
            after[tied] += np.convolve(law[tied], weights[j, : min(most, total + 1)])[: total + 1]
            if most <= total:
                after[tied + 1, most:] += law[tied, : total + 1 - most] * weights[j, most]
        law = after
    return float(law[:, total] @ (1.0 / np.arange(1, k + 2)))


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _upper(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _tail(m: float) -> float:
    return m * _upper(m) if m < math.inf else 0.0
