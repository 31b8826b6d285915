"""What clinical papers report of a prediction model: intercept, slope, observed/expected, ICI, E50, E90."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, expit, logit, ndtri

from calcore import _validate
from calcore.results import Interval, freeze, rebuilt
from calcore.scoring.decomposition import Pool, pooled
from calcore.table import ScoreTable

Floats = NDArray[np.float64]

_KNOTS = {
    3: (0.10, 0.50, 0.90),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.50, 0.725, 0.95),
}
"""Harrell's percentiles."""

_APART = 1e-6
"""Knots nearer to each other than this part of their range count as equal."""

_MOST_STEPS = 100
_MANY, _THINNED = 100_000, 16
"""More scores than this are first fitted by every 16th of them, which saves most steps with all."""

_CONVERGED = 1e-16
"""Square of the last step of Newton's method, in standard errors."""

_ROUNDING = 1.0 + 2.0**-48
"""A sum of losses may grow by rounding without being worse."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClinicalCalibration:
    """Calibration as clinical papers report it; from `clinical_calibration`.

    Attributes
    ----------
    intercept : float
        Calibration in the large: the a of logit P(y = 1) = a + logit(s). 0 if the mean risk is right; above 0
        if the model says too little. In logits.
    intercept_interval : Interval
    slope : float
        The b of logit P(y = 1) = a + b logit(s). 1 if the spread of risks is right; below 1 if they are too
        extreme. Infinite if a threshold separates the classes, NaN if all logits are equal.
    slope_interval : Interval
        The whole line where the slope is not finite.
    observed_expected : float
        Positives, by the sum of the scores.
    observed_expected_interval : Interval
    ici, e50, e90 : float
        Mean, median and 90th percentile over rows of abs(smoothed rate at s - s).
    smoother : str
        What the rates were smoothed by.
    knots : read-only float64 array
        Scores at the spline's knots; empty if there is none.
    n, n_positive : int
        Rows, and rows with a positive label.
    delta : float
        Each interval by itself has level 1 - delta.
    warnings : tuple of str
        What a reader should know before using the numbers.
    """

    intercept: float
    intercept_interval: Interval
    slope: float
    slope_interval: Interval
    observed_expected: float
    observed_expected_interval: Interval
    ici: float
    e50: float
    e90: float
    smoother: str
    knots: Floats
    n: int
    n_positive: int
    delta: float
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON; numbers that are not finite are None."""
        plain: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, Interval):
                value = {end: _finite_or_none(number) for end, number in value.to_dict().items()}
            elif isinstance(value, np.ndarray):
                value = value.tolist()
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, float):
                value = _finite_or_none(value)
            plain[name] = value
        return plain

    def __repr__(self) -> str:
        return (
            f"ClinicalCalibration(intercept={self.intercept:.4g} {self.intercept_interval}, "
            f"slope={self.slope:.4g} {self.slope_interval}, O/E={self.observed_expected:.4g} "
            f"{self.observed_expected_interval}, ICI={self.ici:.4g}, n={self.n})"
        )


def clinical_calibration(
    y_true: ArrayLike | ScoreTable,
    y_prob: ArrayLike | None = None,
    *,
    delta: float = 0.05,
    n_knots: int = 5,
    pos_label: Any = None,
) -> ClinicalCalibration:
    """Calibration intercept and slope, observed/expected ratio, ICI, E50 and E90.

    Use it for what reporting guidelines of clinical prediction models ask. Intercept, slope and ratio see
    only errors of that shape; ICI, E50 and E90 see any smooth one, but depend on the smoother, have no
    interval, and are above 0 for a perfect model. For an error with a guarantee see `calcore.certify`.

    Parameters
    ----------
    y_true : array_like of shape (n,) or ScoreTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. A table stands for both columns.
    y_prob : array_like of shape (n,)
        Predicted risk, strictly between 0 and 1.
    delta : float, default 0.05
        Each interval misses with probability about delta.
    n_knots : {5, 4, 3}
        Knots of the smoother, fewer if these would not differ.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    ClinicalCalibration

    Raises
    ------
    ValueError
        If an argument breaks its rule. If a score is 0 or 1: its logit is infinite, and where to clip it
        decides the slope, so that is left to the caller. If one class is missing: no finite intercept fits.
    TypeError
        If `y_prob` is missing or given beside a table, or `y_true` is a CellTable.

    Notes
    -----
    *Intercept*: maximum likelihood with logit(s) as offset, so its slope is 1; it is the root of sum (y -
    expit(a + logit s)). *Slope*: maximum likelihood of both coefficients, by Newton's method with steps that
    are halved until the likelihood grows. *Their intervals* are Wald's, as logistic regression reports them:
    estimate -+ z / sqrt(information), the information observed at the estimate; for the slope that is sum w
    (x - m)^2 with w = p (1 - p) and m the w-mean of x = logit s. They are approximate, and poor with few
    positives or negatives.

    *Separation*: if a threshold of s has all positives on one side of it and all negatives on the other (rows
    at the threshold may be of both classes), the likelihood grows with the slope for ever: the slope is inf,
    or -inf if positives have the smaller scores, and its interval the whole line. If all logits are equal, no
    slope is better than others: NaN, and the whole line.

    *Observed/expected*: the Clopper–Pearson interval of the rate of positives, by the mean score, which is
    taken as given. It is exact for equal risks. A sum of 0/1 outcomes of unequal risks is less spread than a
    binomial one, so this errs on the safe side, the more the further risks are apart: the interval of the
    intercept, which knows them, may then leave out 0 where this one does not leave out 1.

    *Smoother*: logistic regression on a restricted cubic spline of logit(s), linear beyond its outer knots,
    which are at Harrell's percentiles of the logits (5 knots: 5, 27.5, 50, 72.5 and 95 %). Austin and
    Steyerberg use loess, which has a span to choose, costs O(n^2), can leave [0, 1] and is not invariant to
    transformations of the score. Fewer knots are taken if there are fewer distinct scores, or if two of them
    agree to 10^-6 of their range; below 3, the curve is that of the slope; with one logit it is the rate.
    Percentiles over rows are interpolated linearly (type 7 of Hyndman & Fan).

    Tied scores need no rule. One sort, then O(distinct scores) per step.

    References
    ----------
    Cox, Biometrika 45 (1958), for intercept and slope. Van Calster, McLernon, van Smeden, Wynants and
    Steyerberg, BMC Medicine 17 (2019). Austin & Steyerberg, Statistics in Medicine 38 (2019), for ICI, E50
    and E90. Harrell, Regression Modeling Strategies (2015), section 2.4, for the spline and its knots.
    Clopper & Pearson, Biometrika 26 (1934).

    Examples
    --------
    The odds of a positive are twice those announced: logit(1/2) - logit(1/3) = ln 2.

    >>> result = clinical_calibration([1, 0] * 300, [1 / 3] * 600)
    >>> round(result.intercept, 6), round(result.observed_expected, 6), round(result.ici, 6)
    (0.693147, 1.5, 0.166667)
    >>> result.slope
    nan

    Risks of 1/5 and 4/5 where 1/3 and 2/3 are right: the logits ln 4 should be ln 2, half of it.

    >>> result = clinical_calibration([1, 0, 0, 0, 1, 1] * 20, [0.2, 0.2, 0.2, 0.8, 0.8, 0.8] * 20)
    >>> round(result.slope, 9), round(abs(result.intercept), 9), round(result.e50, 9)  # 1/3 - 1/5
    (0.5, 0.0, 0.133333333)
    """
    delta = _validate.probability(delta, "delta")
    knots = _validate.whole_number(n_knots, "n_knots", low=3)
    if knots > 5:
        raise ValueError(f"n_knots must be 3, 4 or 5; got {knots}")
    pool, _, _ = pooled(y_true, y_prob, None, pos_label)
    if pool.scores[0] == 0.0 or pool.scores[-1] == 1.0:
        _refuse_certain(y_true, y_prob, pos_label)
    observed = float(pool.hits.sum())
    if observed == 0.0 or observed == pool.total:
        raise ValueError("y_true must have rows of both classes; got one")
    x, z = logit(pool.scores), -float(ndtri(0.5 * delta))
    intercept, intercept_error = _intercept(x, pool)
    slope, slope_error, note = _slope(x, pool)
    curve, name, places = _smoothed(x, pool, knots)
    mass = pool.hits + pool.misses
    off = np.abs(curve - pool.scores)
    order = np.argsort(off)
    expected = float((mass * pool.scores).sum())
    return ClinicalCalibration(
        intercept=intercept,
        intercept_interval=Interval(intercept - z * intercept_error, intercept + z * intercept_error),
        slope=slope,
        slope_interval=_around(slope, z * slope_error),
        observed_expected=observed / expected,
        observed_expected_interval=Interval(
            float(betaincinv(observed, pool.total - observed + 1.0, 0.5 * delta)) * pool.total / expected,
            float(betaincinv(observed + 1.0, pool.total - observed, 1.0 - 0.5 * delta))
            * pool.total
            / expected,
        ),
        ici=float((mass * off).sum()) / pool.total,
        e50=_percentile(off[order], mass[order], 0.5),
        e90=_percentile(off[order], mass[order], 0.9),
        smoother=name,
        knots=places,
        n=pool.n,
        n_positive=int(observed),
        delta=delta,
        warnings=(note,) if note else (),
    )


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _refuse_certain(y_true: Any, y_prob: Any, pos_label: Any) -> NoReturn:
    remedy = "clip them, e.g. np.clip(y_prob, 1e-6, 1 - 1e-6), and say at what"
    rule = "strictly between 0 and 1, where logits are finite"
    if isinstance(y_true, ScoreTable):
        value = 0.0 if y_true.scores[0] == 0.0 else 1.0
        raise ValueError(f"y_true must be a table of scores {rule}; got {value}: {remedy}")
    rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
    _, scores, _ = rows.block(0, len(rows))
    certain = np.flatnonzero((scores == 0.0) | (scores == 1.0))
    more = f" (and {len(certain) - 1} more)" if len(certain) > 1 else ""
    raise ValueError(
        f"y_prob must lie {rule}; got {scores[certain[0]]} at index {certain[0]}{more}: {remedy}"
    )


def _around(estimate: float, reach: float) -> Interval:
    if not math.isfinite(estimate):
        return Interval(-math.inf, math.inf)
    return Interval(estimate - reach, estimate + reach)


def _error(information: float) -> float:
    """Standard error; infinite where the information is nothing."""
    return 1.0 / math.sqrt(information) if information > 0.0 else math.inf


def _intercept(x: Floats, pool: Pool) -> tuple[float, float]:
    """Root of a descending function, which changes sign between the ends, and its standard error."""

    def excess(a: float) -> float:
        return float((pool.hits * expit(-(a + x)) - pool.misses * expit(a + x)).sum())

    rate = math.log(pool.hits.sum()) - math.log(pool.misses.sum())
    low, high = rate - x.max() - 1e-9, rate - x.min() + 1e-9
    root: Any = brentq(excess, low, high, xtol=1e-14)
    a = float(root)
    p = expit(a + x)
    return a, _error(float(((pool.hits + pool.misses) * p * expit(-(a + x))).sum()))


def _slope(x: Floats, pool: Pool) -> tuple[float, float, str]:
    """Slope, standard error, and what there is to say about it."""
    if x.max() == x.min():
        return math.nan, math.inf, "all logits are equal: there is no slope"
    positive, negative = x[pool.hits > 0.0], x[pool.misses > 0.0]
    for sign, low, high in ((1.0, negative, positive), (-1.0, positive, negative)):
        if low.max() <= high.min():
            return sign * math.inf, math.inf, "a threshold separates the classes: no finite slope fits"
    mass = pool.hits + pool.misses
    center = float((mass * x).sum()) / pool.total
    spread = math.sqrt(float((mass * (x - center) ** 2).sum()) / pool.total)
    design = np.stack([np.ones(len(x)), (x - center) / spread])
    (_, b), eta = _fit(design, pool)
    weight = mass * expit(eta) * expit(-eta)
    total = float(weight.sum())
    middle = float((weight * x).sum()) / total if total > 0.0 else 0.0
    return float(b) / spread, _error(float((weight * (x - middle) ** 2).sum())), ""


def _fit(design: Floats, pool: Pool) -> tuple[Floats, Floats]:
    """Coefficients of the rows of `design`, on top of the overall rate, and the linear predictor: likeliest.

    The likelihood is concave, and a Newton step, halved often enough, always climbs. If the optimum is at
    infinity the predictor has gone as far as the likelihood can tell.
    """
    offset = math.log(pool.hits.sum()) - math.log(pool.misses.sum())
    mass = pool.hits + pool.misses
    beta: Floats = np.zeros(len(design))
    eta: Floats = np.full(design.shape[1], offset)
    loss, p, q = _loss(eta, pool)
    thin = pool._replace(hits=pool.hits[::_THINNED], misses=pool.misses[::_THINNED])
    if len(pool.hits) > _MANY and thin.hits.any() and thin.misses.any():  # begin near the end
        start = _fit(np.ascontiguousarray(design[:, ::_THINNED]), thin)[0]
        nearer = _loss(offset + start @ design, pool)
        if nearer[0] < loss:
            beta, (loss, p, q) = start, nearer
    for _ in range(_MOST_STEPS):
        gradient = design @ (pool.hits * q - pool.misses * p)
        information = (design * (mass * p * q)) @ design.T
        step = np.linalg.lstsq(information, gradient, rcond=None)[0]
        gain = float(gradient @ step)
        while True:
            trial = beta + step
            eta = offset + trial @ design
            after, p, q = _loss(eta, pool)
            if after <= loss * _ROUNDING - 1e-4 * float(gradient @ step) or not np.any(trial != beta):
                break
            step = 0.5 * step
        beta, loss = trial, after
        if not gain > _CONVERGED:
            break
    return beta, eta


def _loss(eta: Floats, pool: Pool) -> tuple[float, Floats, Floats]:
    """Minus the log-likelihood, and the probabilities of both outcomes."""
    e = np.exp(-np.abs(eta))
    large, small = 1.0 / (1.0 + e), e / (1.0 + e)
    up = eta > 0.0
    loss = (pool.hits + pool.misses) * np.log1p(e) + np.where(up, pool.misses, pool.hits) * np.abs(eta)
    return float(loss.sum()), np.where(up, large, small), np.where(up, small, large)


def _smoothed(x: Floats, pool: Pool, n_knots: int) -> tuple[Floats, str, Floats]:
    """Smoothed rate of each score, the smoother's name, and its knots as scores."""
    none = np.empty(0)
    mass = pool.hits + pool.misses
    span = float(x.max() - x.min())
    if span == 0.0:
        return np.full(len(x), float(pool.hits.sum()) / pool.total), "rate of all rows", none
    order = np.argsort(x)
    basis, name, places = [np.ones(len(x)), (x - x.min()) / span], "logistic, linear in the logit", none
    for k in range(min(n_knots, len(np.unique(x))), 2, -1):
        knots = np.array([_percentile(x[order], mass[order], q) for q in _KNOTS[k]])
        if np.diff(knots).min() > _APART * (knots[-1] - knots[0]):
            basis += _spline(x, knots)
            name, places = f"logistic, restricted cubic spline of the logit, {k} knots", expit(knots)
            break
    root = np.sqrt(mass)
    orthonormal = np.linalg.qr(root[:, None] * np.column_stack(basis))[0]
    _, eta = _fit(np.ascontiguousarray(orthonormal.T) / root, pool)
    return expit(eta), name, places


def _spline(x: Floats, knots: Floats) -> list[Floats]:
    """The k - 2 columns of a restricted cubic spline that are not linear."""
    t = (knots - knots[0]) / (knots[-1] - knots[0])
    u = (x - knots[0]) / (knots[-1] - knots[0])
    cubes = [np.maximum(u - knot, 0.0) ** 3 for knot in t]
    last = t[-1] - t[-2]
    return [
        cubes[j] - cubes[-2] * ((t[-1] - t[j]) / last) + cubes[-1] * ((t[-2] - t[j]) / last)
        for j in range(len(t) - 2)
    ]


def _percentile(values: Floats, counts: Floats, q: float) -> float:
    """``np.quantile`` of ascending values, each repeated as often as it counts."""
    passed = np.cumsum(counts)
    place = q * (float(passed[-1]) - 1.0)
    whole = math.floor(place)
    below, above = np.searchsorted(passed, [whole, min(whole + 1, passed[-1] - 1)], side="right")
    return float(values[below] + (place - whole) * (values[above] - values[below]))
