"""What a comparison returns: frozen records of estimates and of differences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from calcore.results import Interval

__all__ = ["MetricDifference", "MetricEstimate", "ModelComparison"]

_BIAS = 0.25
"""Bias, in standard errors, up to which an interval is left without comment (Efron and Tibshirani 1993)."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricEstimate:
    """A metric of one model, with its percentile interval; from `compare`.

    Attributes
    ----------
    model, metric : str
    estimate : float
        On the rows as they are; what the function of that name returns.
    interval : Interval
        Of the population's value. Its ends are values of resamples: they stay in the metric's range.
    standard_error : float or None
        Standard deviation over resamples; None if the estimate is infinite.
    bias : float or None
        Mean over resamples less the estimate, which is off by about as much in the same direction.
    n_bins : int or None
        Bins that hold rows; None for metrics without bins.
    is_biased : bool
        Whether `bias` is more than a quarter of `standard_error`, and more than chance in the resamples
        explains: the interval then misses too often.
    """

    model: str
    metric: str
    estimate: float
    interval: Interval
    standard_error: float | None
    bias: float | None
    n_bins: int | None
    is_biased: bool

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for ``json.dumps``; infinite numbers are None."""
        return plain(self)

    def __repr__(self) -> str:
        return f"<{self.metric} of {self.model!r}: {self.estimate:.4g} in {self.interval}>"


@dataclass(frozen=True, slots=True, eq=False)
class MetricDifference:
    """A metric of model `a` less that of model `b`, on the same resamples; from `compare`.

    Attributes
    ----------
    a, b, metric : str
    difference : float
        Of the two estimates; below 0 if `a` has the smaller error.
    interval : Interval
        Percentiles of the differences in resamples.
    standard_error : float
        Standard deviation of these: of the paired difference.
    unpaired_standard_error : float
        What it would be if each model had rows of its own: the root of the sum of both squared errors.
    correlation : float or None
        Of the two metrics over resamples; None if one of them does not vary.
    overlap : float
        Of the two models' own intervals: length of what they share by length of what they cover together, and
        1 if both are one point. Paired differences may be distinguishable whatever the overlap.
    p_value : float
        Smallest `delta` at which the interval leaves 0 out: ``2 min(1 + #{d* <= 0}, 1 + #{d* >= 0}) / (B +
        1)``, at most 1.
    reversed_share : float
        Share of resamples in which the other model has the smaller value.
    bias : float
        Mean over resamples less the difference.
    is_biased : bool
        Whether `bias` is so, or one of the two estimates: the interval then misses too often, and what
        differs may be the noise.
    allowance : float
        If so, what noise may account for: the biases of both estimates, added up; else 0.
    distinguishable : bool
        Whether `interval`, wider by `allowance` on either side, leaves out 0, at `delta` for this difference
        alone. Never with fewer than 10 rows, or groups with rows, of either label.
    distinguishable_together : bool
        Whether it would at `corrected_delta`, which holds for all differences of the comparison together.
    """

    a: str
    b: str
    metric: str
    difference: float
    interval: Interval
    standard_error: float
    unpaired_standard_error: float
    correlation: float | None
    overlap: float
    p_value: float
    reversed_share: float
    bias: float
    is_biased: bool
    allowance: float
    distinguishable: bool
    distinguishable_together: bool

    @property
    def verdict(self) -> str:
        """`distinguishable` in words: "distinguishable" or "not distinguishable"."""
        return "distinguishable" if self.distinguishable else "not distinguishable"

    @property
    def in_standard_errors(self) -> float | None:
        """`difference` by `standard_error`, None if that is 0. About 1: another sample may reverse it."""
        return self.difference / self.standard_error if self.standard_error > 0.0 else None

    @property
    def variance_ratio(self) -> float | None:
        """Paired by unpaired variance: what pairing leaves; None if nothing varies."""
        both = self.unpaired_standard_error
        return (self.standard_error / both) ** 2 if both > 0.0 else None

    def mirrored(self) -> MetricDifference:
        """Return the same difference as `b` less `a`."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=0.0 - self.difference,
            interval=Interval(0.0 - self.interval.upper, 0.0 - self.interval.lower),
            bias=0.0 - self.bias,
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields and properties, ready for ``json.dumps``."""
        return plain(self, "verdict", "in_standard_errors", "variance_ratio")

    def __repr__(self) -> str:
        pair = f"{self.metric}, {self.a!r} - {self.b!r}"
        return f"<{pair}: {self.difference:.4g} in {self.interval}, {self.verdict}>"


@dataclass(frozen=True, slots=True, eq=False)
class ModelComparison:
    """Metrics of models on the same rows, and what can be told apart; from `compare`.

    Attributes
    ----------
    models, metrics : tuple of str
    estimates : tuple of MetricEstimate
        One per model and metric, model by model; see also `estimate`.
    differences : tuple of MetricDifference
        One per pair of models and metric, pair by pair, in the order of `models`; see also `difference`.
    delta : float
        Probability that one interval misses.
    n_comparisons : int
        Number of `differences`. If there are several, some are distinguishable by chance alone.
    corrected_delta : float
        ``delta / n_comparisons`` (Bonferroni): differences with a `p_value` of at most this are
        distinguishable even though all are looked at.
    n, n_positive : int
        Rows, and rows with a positive label.
    n_groups : int or None
        Groups that were drawn as wholes; None if rows were.
    n_resamples : int
    strategy : str
        Of the bins of "ece".
    seed : int or None
        The `rng`, if it was a number.
    warnings : tuple of str
        What a reader should know before using the numbers.
    """

    models: tuple[str, ...]
    metrics: tuple[str, ...]
    estimates: tuple[MetricEstimate, ...]
    differences: tuple[MetricDifference, ...]
    delta: float
    n_comparisons: int
    corrected_delta: float
    n: int
    n_positive: int
    n_groups: int | None
    n_resamples: int
    strategy: str
    seed: int | None
    warnings: tuple[str, ...]

    def estimate(self, model: str, metric: str) -> MetricEstimate:
        """Return the estimate of one model and metric; KeyError if there is none."""
        for found in self.estimates:
            if (found.model, found.metric) == (model, metric):
                return found
        raise KeyError((model, metric))

    def difference(self, a: str, b: str, metric: str) -> MetricDifference:
        """Return `a` less `b` in one metric, whichever was named first; KeyError if there is none."""
        for found in self.differences:
            if (found.a, found.b, found.metric) == (a, b, metric):
                return found
            if (found.a, found.b, found.metric) == (b, a, metric):
                return found.mirrored()
        raise KeyError((a, b, metric))

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for JSON; infinities are None."""
        return plain(self)

    def __repr__(self) -> str:
        found = sum(each.distinguishable for each in self.differences)
        return (
            f"<ModelComparison of {', '.join(self.models)} by {', '.join(self.metrics)}: {found} of "
            f"{self.n_comparisons} differences distinguishable, each at {1.0 - self.delta:.6g}, n={self.n}>"
        )


def is_biased(bias: float, standard_error: float, draws: int) -> bool:
    """Whether the mean of so many resamples is off by more than an interval should go without comment."""
    return abs(bias) > (_BIAS + 2.0 / math.sqrt(draws)) * standard_error


def plain(result: Any, *properties: str) -> dict[str, Any]:
    return {name: _jsonable(getattr(result, name)) for name in (*result.__slots__, *properties)}


def _jsonable(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return {name: _jsonable(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_jsonable(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
