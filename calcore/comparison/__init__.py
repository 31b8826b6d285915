"""Which differences between models a sample can show: one bootstrap, the same resamples for all models.

Models that are scored on the same rows share most of the chance in these rows. So the difference of two
metrics is often far better known than either metric, and intervals of the two that overlap say nothing about
it. Here every resample is used for all models and metrics, and differences are taken inside it.

Proper scores (Brier, log loss) decide which model is better. Binned errors are biased upwards by noise, and
resampling adds noise once more: where that matters a result says so, and `calcore.certify` and
`calcore.certify_difference` are there for statements that hold at every sample size.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.comparison.models import MetricSpec, Model, checked_metrics, checked_rows, one_for_all
from calcore.comparison.resamples import Units, checked_units, resampled
from calcore.comparison.results import MetricDifference, MetricEstimate, ModelComparison, is_biased
from calcore.results import Interval
from calcore.table import partition
from calcore.table.partition import Strategy

__all__ = ["MetricDifference", "MetricEstimate", "ModelComparison", "compare", "compare_rows"]

Rng = int | np.random.Generator | np.random.SeedSequence | None
Metric = str | Callable[[NDArray[np.uint8], NDArray[np.float64]], float]
Floats = NDArray[np.float64]

DEFAULT_METRICS = ("brier", "log_loss", "ece@10", "ece@15", "ece@20", "lin_ce@15")

_MOST_RESAMPLES = 10**6

_FEW = 30
"""Rows or groups, of either label, below which a bootstrap is not to be relied on."""

_TOO_FEW = 10
"""And below which it decides nothing: with no positive at all, the lowest scores look best."""


def compare(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike],
    *,
    metrics: Sequence[Metric] = DEFAULT_METRICS,
    strategy: Strategy = "uniform",
    n_resamples: int = 2000,
    delta: float = 0.05,
    groups: ArrayLike | None = None,
    pos_label: Any = None,
    rng: Rng = 0,
    n_threads: int | None = None,
) -> ModelComparison:
    """Compare models on the same rows: metrics with intervals, and which differences the rows can show.

    Use it on rows that no model was fitted to. Intervals are approximate, from the bootstrap; for statements
    that hold at every sample size there are `calcore.certify` and `calcore.certify_difference`.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    models : mapping of str to array_like of shape (n,)
        Each model's probability of the positive class, in [0, 1]. One model gets intervals only.
    metrics : sequence of str or callable
        * "brier", "log_loss": `calcore.brier_score`, `calcore.log_loss`;
        * "ece@K": `calcore.ece` with `n_bins` = K and `strategy`;
        * "lin_ce@K": `calcore.binary_lin_ce` with `n_bins` = K; bins of equal counts, of all rows; a loop
          over bins for each resample;
        * a function ``f(y_true, y_prob) -> float`` of labels 0/1 and scores, known by its ``__name__``. It
          is called with the rows of a resample, each repeated as often as it was drawn.

        Without "@K", K is 15.
    strategy : {"uniform", "quantile", "min_count"}, default "uniform"
        Bins of "ece", for all models. Edges of "uniform" are fixed; the others are each model's own, from all
        rows. Resamples do not move them.
    n_resamples : int, default 2000
        B, at least 2 / delta - 1 and at most 10^6.
    delta : float, default 0.05
        Probability that an interval misses, each by itself.
    groups : array_like of shape (n,), optional
        Rows of a group (a day, a patient) depend on each other: whole groups are drawn then, as many as there
        are. Rows in the resample then vary, and metrics are means over these.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.
    rng : int, Generator, SeedSequence or None, default 0
        A seed gives the same draws at every call; None fresh ones; a Generator is advanced.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    ModelComparison
        A model's numbers do not depend on the other models, on names, or on the order of either.

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names it, the rule, the value and where. If `strategy` or
        `metrics` differ between models: errors over different bins cannot be compared. If a function returns
        something that is not finite.
    TypeError
        If an argument is of the wrong kind.

    Notes
    -----
    *Resamples.* n rows are drawn with replacement from n, each with probability 1/n exactly, by integers; the
    same rows for all models and metrics. Values are added as whole numbers of about 2^-62 times the rows, so
    that blocks and threads change nothing. The value of a resample is the estimate, plus the metric of its
    sums, less that of the sums of all rows: where every row is the same, it is the estimate. Losses are
    rounded to 2^-52.

    *Few rows.* A bootstrap does not know of what was not seen. Without a positive label the model with the
    lowest scores looks best in every resample. With fewer than 10 rows (or groups) of either label nothing is
    called distinguishable; below 30 a warning is given.

    *Intervals.* With B sorted values the ends are the k-th from below and the k-th from above, k = floor((B +
    1) delta / 2): percentiles, without interpolation. An interval leaves 0 out if and only if `p_value` is at
    most `delta`.

    *Bias.* Noise adds to a binned error: a calibrated model has an ECE. In a resample there is the noise of
    the rows and that of drawing them, so its ECE lies higher still, and percentile intervals miss where the
    error is small beside its noise. How often 95 % intervals covered, in simulations with uniform scores and
    10 bins, 300 to 500 samples each:

    ===========  ==========  =======  =====  ==========  =======  =====
    true error   1,000 rows                  10,000 rows
    -----------  --------------------------  --------------------------
    of the bins  percentile  warning  basic  percentile  warning  basic
    ===========  ==========  =======  =====  ==========  =======  =====
    0            0 %         100 %    56 %   0 %         100 %    58 %
    .019         0 %         100 %    89 %   92 %        87 %     86 %
    .064         93 %        84 %     86 %   95 %        0 %      96 %
    .191         95 %        0 %      95 %   95 %        0 %      96 %
    ===========  ==========  =======  =====  ==========  =======  =====

    A warning is given if the mean over resamples is more than a quarter of a standard error away from the
    estimate (the rule of Efron and Tibshirani, section 10.3). The basic interval, [2 e - upper, 2 e - lower]
    for the estimate e, misses less near 0, but does not cover there either, and misses more above: it is not
    offered. `calcore.certify` bounds such errors. The same holds for "lin_ce".

    Of two models the noise cancels in part only. Where one is calibrated and the other off by .064, the
    interval of the difference covered in 4 to 28 % of samples of 1,000 rows and in 0 to 20 % of 10,000, by
    the shape of the error: it is too near 0. And of two calibrated models, of which one has few scores, it
    leaves out 0 in nine samples of ten. So a difference also counts as biased if one of its two estimates
    does, and is then called distinguishable only if its interval leaves out 0 by more than both biases.

    *Infinite log loss.* A model that gave probability 0 to what happened has an infinite log loss, in the
    population too. Its interval is [inf, inf], and it is not compared in this metric; a warning says so.

    *Ties.* Rank bins of "lin_ce" cut through equal scores by a seeded permutation of the rows, so their order
    matters there.

    *Cost.* O(B n), with few bins: about 1 ns per resample and row for drawing, and for each
    model .3 ns for each of "brier" and "log_loss" and .6 to 2 ns for all its bins, on one thread; up to 28
    bytes per row and model. Functions are called B times per model, on one thread: the slow way.

    References
    ----------
    Efron, Tibshirani, An Introduction to the Bootstrap (1993), chapters 10 and 13. Davison, Hinkley,
    Bootstrap Methods and their Application (1997), section 5.3, for ranks (B + 1) delta / 2. Phipson, Smyth,
    Stat. Appl. Genet. Mol. Biol. 9 (2010), for p-values that are never 0.

    Examples
    --------
    >>> y = [0, 1] * 500
    >>> found = compare(y, {"sure": [0.25, 0.75] * 500, "vague": [0.375, 0.625] * 500}, metrics=["brier"])
    >>> found.difference("sure", "vague", "brier")  # 1/16 - 9/64, in every row
    <brier, 'sure' - 'vague': -0.07812 in [-0.07812, -0.07812], distinguishable>
    """
    wanted = checked_metrics(metrics)
    one_for_all(strategy, "strategy")
    _validate.choice(strategy, "strategy", partition.STRATEGIES)
    delta = _validate.probability(delta, "delta")
    draws = checked_resamples(n_resamples, delta)
    threads = _validate.threads(n_threads)
    generator = _validate.generator(rng)
    rows = checked_rows(y_true, models, pos_label)
    return _compared(rows, wanted, strategy, draws, delta, groups, generator, threads, _seed_of(rng))


def compare_rows(
    rows: Mapping[str, _validate.Rows],
    *,
    metrics: Sequence[str],
    n_resamples: int,
    delta: float,
    groups: ArrayLike | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
) -> ModelComparison:
    """`compare`, of models that answer the same questions but are right on different ones.

    Parameters
    ----------
    rows : mapping of str to Rows
        Of each model, checked: equally many, in the same order, with labels of its own.
    metrics : sequence of str
        No functions.
    n_resamples, delta, groups, rng, n_threads
        As in `compare`; equally wide bins.

    Returns
    -------
    ModelComparison
        `n_positive` is that of the first model; the rarer label is the rarest of any.
    """
    delta = _validate.probability(delta, "delta")
    draws = checked_resamples(n_resamples, delta)
    threads = _validate.threads(n_threads)
    wanted = checked_metrics(metrics)
    assert not any(metric.function for metric in wanted), "functions see the labels of the first model only"
    generator = _validate.generator(rng)
    return _compared(rows, wanted, "uniform", draws, delta, groups, generator, threads, _seed_of(rng))


def _seed_of(rng: Rng) -> int | None:
    return int(rng) if isinstance(rng, (int, np.integer)) else None


def _compared(
    rows: Mapping[str, _validate.Rows],
    wanted: list[MetricSpec],
    strategy: Strategy,
    draws: int,
    delta: float,
    groups: ArrayLike | None,
    generator: np.random.Generator,
    threads: int,
    seed: int | None,
) -> ModelComparison:
    units = checked_units(groups, len(next(iter(rows.values()))))
    each = [Model.measured(name, given, wanted, strategy, threads) for name, given in rows.items()]
    seeds = generator.integers(1, 2**64, (draws, 4), dtype=np.uint64)
    values = resampled(each, wanted, units, seeds, threads)

    rank = rank_of(draws, delta)
    estimates = tuple(
        _estimate(model, j, metric, values[:, i, j], rank)
        for i, model in enumerate(each)
        for j, metric in enumerate(wanted)
    )
    pairs = [
        (i, k, j)
        for i, k in itertools.combinations(range(len(each)), 2)
        for j in range(len(wanted))
        if math.isfinite(each[i].estimates[j]) and math.isfinite(each[k].estimates[j])
    ]
    corrected = delta / max(len(pairs), 1)
    rarer = min(_of_rarer_label(model.labels, units) for model in each)
    of = {(found.model, found.metric): found for found in estimates}
    differences = tuple(
        _difference(
            of[each[i].name, wanted[j].name],
            of[each[k].name, wanted[j].name],
            values[:, i, j],
            values[:, k, j],
            rank,
            corrected,
            rarer >= _TOO_FEW,
        )
        for i, k, j in pairs
    )
    return ModelComparison(
        models=tuple(rows),
        metrics=tuple(metric.name for metric in wanted),
        estimates=estimates,
        differences=differences,
        delta=delta,
        n_comparisons=len(differences),
        corrected_delta=corrected,
        n=len(each[0].labels),
        n_positive=int(np.count_nonzero(each[0].labels)),
        n_groups=units.n if groups is not None else None,
        n_resamples=draws,
        strategy=str(strategy),
        seed=seed,
        warnings=tuple(_warnings(each, estimates, differences, units, draws, corrected, rarer)),
    )


def checked_resamples(n_resamples: object, delta: float) -> int:
    draws = _validate.whole_number(n_resamples, "n_resamples", low=1)
    if draws > _MOST_RESAMPLES:
        raise ValueError(f"n_resamples must be at most 10^6; got {draws}")
    if rank_of(draws, delta) < 1:
        least = math.ceil(2.0 / delta - 1.0)
        raise ValueError(f"n_resamples must be at least {least:,} for delta={delta:g}; got {draws}")
    return draws


def rank_of(draws: int, delta: float) -> int:
    """Number, counted from either end, of the sorted value that is the end of an interval."""
    return math.floor((draws + 1) * delta / 2.0 * (1.0 + 1e-12))


def _ends(values: Floats, rank: int) -> Interval:
    ordered = np.sort(values)
    return Interval(float(ordered[rank - 1]), float(ordered[-rank]))


def _estimate(model: Model, place: int, metric: MetricSpec, values: Floats, rank: int) -> MetricEstimate:
    estimate = model.estimates[place]
    bins = model.cells.bins.get(metric.name)
    n_bins = None if bins is None else len(np.unique(bins))
    if not math.isfinite(estimate):
        return MetricEstimate(
            model.name, metric.name, estimate, Interval(estimate, estimate), None, None, n_bins, False
        )
    off = values - estimate
    bias, standard_error = float(off.mean()), float(off.std(ddof=1))
    return MetricEstimate(
        model=model.name,
        metric=metric.name,
        estimate=estimate,
        interval=_ends(values, rank),
        standard_error=standard_error,
        bias=bias,
        n_bins=n_bins,
        is_biased=is_biased(bias, standard_error, len(values)),
    )


def _difference(
    a: MetricEstimate,
    b: MetricEstimate,
    values_a: Floats,
    values_b: Floats,
    rank: int,
    corrected: float,
    enough: bool,
) -> MetricDifference:
    difference = a.estimate - b.estimate
    drawn = values_a - values_b
    off = drawn - difference
    interval = _ends(drawn, rank)
    assert a.standard_error is not None
    assert b.standard_error is not None
    assert a.bias is not None
    assert b.bias is not None
    correlation = None
    if a.standard_error > 0.0 and b.standard_error > 0.0:
        off_a, off_b = (
            (values_a - values_a.mean()) / a.standard_error,
            (values_b - values_b.mean()) / b.standard_error,
        )
        product = float(np.mean(off_a * off_b)) / math.sqrt(np.mean(off_a**2) * np.mean(off_b**2))
        correlation = min(max(product, -1.0), 1.0)
    least = min(int(np.count_nonzero(drawn <= 0.0)), int(np.count_nonzero(drawn >= 0.0)))
    p_value = min(2 * (1 + least) / (1 + len(drawn)), 1.0)
    bias, standard_error = float(off.mean()), float(off.std(ddof=1))
    biased = a.is_biased or b.is_biased or is_biased(bias, standard_error, len(drawn))
    allowance = abs(a.bias) + abs(b.bias) if biased else 0.0
    together = rank_of(len(drawn), corrected)
    return MetricDifference(
        a=a.model,
        b=b.model,
        metric=a.metric,
        difference=difference,
        interval=interval,
        standard_error=standard_error,
        unpaired_standard_error=math.hypot(a.standard_error, b.standard_error),
        correlation=correlation,
        overlap=_overlap(a.interval, b.interval),
        p_value=p_value,
        reversed_share=float(np.mean(drawn * np.sign(difference) < 0.0)),
        bias=bias,
        is_biased=biased,
        allowance=allowance,
        distinguishable=enough and _leaves_out_0(interval, allowance),
        distinguishable_together=enough and together > 0 and _leaves_out_0(_ends(drawn, together), allowance),
    )


def _leaves_out_0(interval: Interval, allowance: float) -> bool:
    return interval.lower > allowance or interval.upper < -allowance


def _of_rarer_label(labels: NDArray[np.uint8], units: Units) -> int:
    """Rows of the rarer label, or groups that have some."""
    if units.order is None:
        positive = int(np.count_nonzero(labels))
        return min(positive, len(labels) - positive)
    hits = np.add.reduceat(labels[units.order].astype(np.int64), units.starts[:-1])
    return min(int(np.count_nonzero(hits)), int(np.count_nonzero(hits < np.diff(units.starts))))


def _overlap(a: Interval, b: Interval) -> float:
    both = max(a.upper, b.upper) - min(a.lower, b.lower)
    shared = min(a.upper, b.upper) - max(a.lower, b.lower)
    return max(shared, 0.0) / both if both > 0.0 else 1.0


def _warnings(
    models: list[Model],
    estimates: tuple[MetricEstimate, ...],
    differences: tuple[MetricDifference, ...],
    units: Units,
    n_resamples: int,
    corrected: float,
    rarer: int,
) -> Iterator[str]:
    what = "rows" if units.order is None else "groups"
    if units.n < _FEW:
        only = what if units.n > 1 else what[:-1]
        yield f"only {units.n} {only}: intervals of so few are too narrow, and 0 wide where they agree"
    if rarer < _FEW:
        whose = f"{what} of the rarer label: {rarer}"
        yield f"{whose}; intervals of so few are too narrow" + (
            ", and nothing is called distinguishable" if rarer < _TOO_FEW else ""
        )
    for model in models:
        if len(model.scores) > 1 and bool(np.all(model.scores == model.scores[0])):
            score = f"{model.scores[0]:g}"
            yield f"the scores of {model.name!r} are {score} in every row; are confidences missing?"
    for each in estimates:
        if not math.isfinite(each.estimate):
            yield (
                f"{each.metric} of {each.model!r} is infinite: it gave probability 0 to what happened; it is "
                "not compared with other models in this metric"
            )
    for model in models:
        biased = [each.metric for each in estimates if each.model == model.name and each.is_biased]
        if biased:
            yield (
                f"{', '.join(biased)} of {model.name!r}: resampling moves the mean by more than a quarter of "
                "the standard error, as it does where errors are small beside their noise; the intervals "
                "miss too often, and the estimates are off in the same direction"
            )
    pairs = Counter(each.metric for each in differences if each.is_biased)
    if pairs:
        named = ", ".join(f"{metric} ({n} pair{'s' if n > 1 else ''})" for metric, n in pairs.items())
        yield (
            f"differences in {named}: the intervals miss too often, for the same reason; what differs may be "
            "the noise"
        )
    if differences and rank_of(n_resamples, corrected) < 1:
        yield (
            f"n_resamples={n_resamples} is too small to tell anything apart at the corrected level "
            f"{corrected:.3g}; that takes {math.ceil(2.0 / corrected - 1.0):,}"
        )
