"""What a proper score is made of: over bins (Murphy), and by isotonic regression (CORP)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import entr, rel_entr

from calcore import _validate, figures
from calcore.results import freeze, rebuilt
from calcore.scoring.losses import exponent_of, sum_of_losses
from calcore.table import CellTable, ScoreTable, partition
from calcore.table.given import weighted
from calcore.table.partition import Scheme, Strategy

if TYPE_CHECKING:
    from calcore.figures import Axes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BrierDecomposition:
    """Parts of a Brier score over bins of scores; from `brier_decomposition`.

    ``brier = reliability - resolution + uncertainty + within_bin_variance - within_bin_covariance``, up to
    rounding.

    Attributes
    ----------
    brier : float
        Mean (s - y)^2.
    reliability : float
        sum_b (n_b / n) (mean score_b - rate_b)^2: the squared l2 calibration error over the same bins.
    resolution : float
        sum_b (n_b / n) (rate_b - rate)^2: how far the bins' rates are from each other.
    uncertainty : float
        rate (1 - rate): the score of the constant that is right on average.
    within_bin_variance : float
        (1 / n) sum over rows of (s - mean score_b)^2.
    within_bin_covariance : float
        (2 / n) sum over rows of (s - mean score_b) (y - rate_b).
    n : int
        Rows; of weighted ones, those with a weight above 0.
    n_bins : int
        Bins that have rows.
    strategy : str
        "uniform", "quantile", "min_count", "edges", or "scores" if every score was a bin.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bin_variance: float
    within_bin_covariance: float
    n: int
    n_bins: int
    strategy: str

    @property
    def generalized_resolution(self) -> float:
        """`resolution` less the variance and plus the covariance within bins.

        With it ``brier = reliability - generalized_resolution + uncertainty``; it may be negative.
        """
        return self.resolution - self.within_bin_variance + self.within_bin_covariance

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return (
            f"BrierDecomposition(brier={self.brier:.4g}, reliability={self.reliability:.4g}, "
            f"resolution={self.resolution:.4g}, uncertainty={self.uncertainty:.4g}, n={self.n}, "
            f"n_bins={self.n_bins}, strategy={self.strategy!r})"
        )


def brier_decomposition(
    y_true: ArrayLike | ScoreTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int | None = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> BrierDecomposition:
    """Decompose the Brier score into reliability, resolution, uncertainty and what bins leave out.

    Murphy's three terms add up to the score only if the scores of a bin are equal. Else the score also has
    two terms from inside the bins, which are given here, so that the parts always add up. Use it to see why
    one model has a better Brier score than another; `corp` does the same without bins.

    Parameters
    ----------
    y_true : array_like of shape (n,) or ScoreTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. A table stands for both columns.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    n_bins : int or None, default 15
        At least 1, at most 2^20. None: every distinct score is a bin, as in Murphy (1973); the terms within
        bins are then 0.
    strategy : {"uniform", "quantile", "min_count"}
        Which bins, as in `calcore.ece`: [a, b), the last one closed; equal scores are never in two bins.
    edges : array_like of shape (m + 1,), optional
        The bins' edges instead, ascending from 0 to 1; `n_bins` and `strategy` are then not used.
    sample_weight : array_like of shape (n,), optional
        Finite weights >= 0. Not with a table.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    BrierDecomposition
        All parts unitless, in [0, 1], but for the covariance, which may be negative.

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names it, the rule, the value and where.
    TypeError
        If `y_prob` is missing or given beside a table, or `y_true` is a CellTable.

    Notes
    -----
    *Reliability and the l2 calibration error.* Over the same bins, reliability is the square of ``ece(...,
    norm="l2")``: both compare a bin's mean score with its rate. Over bins that are unions of others,
    reliability is not larger (Jensen's inequality), so it is largest where every score is a bin: over any
    bins, ``ece(..., norm="l2")**2 <= brier_decomposition(..., n_bins=None).reliability <= brier``. In the
    population the same step says that a binned l2 error is at most the root of E (s - eta(s))^2. The sample's
    reliability is larger than the population's on average, by the noise of the rates.

    Sorts: O(n log n). Sums are pairwise, and taken from each bin's mean: the parts add up to a few units of
    2^-53.

    References
    ----------
    Murphy, Journal of Applied Meteorology 12 (1973), for the three terms. Stephenson, Coelho & Jolliffe,
    Weather and Forecasting 23 (2008), for the two within bins and the generalized resolution; the factor 2 of
    the covariance is in the term, as there.

    Examples
    --------
    >>> parts = brier_decomposition([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0], n_bins=2)
    >>> parts.reliability, parts.resolution, parts.uncertainty  # (1/2)(1/16 + 1/64), 1/16, 3/16
    (0.0390625, 0.0625, 0.1875)
    >>> parts.within_bin_variance, parts.within_bin_covariance  # (1/4)(2)(1/64), all labels equal
    (0.0078125, 0.0)
    >>> parts.brier  # (1/16 + 9/16 + 1/16 + 0) / 4
    0.171875
    """
    scheme = None
    if n_bins is not None or edges is not None:
        scheme = Scheme.checked(15 if n_bins is None else n_bins, strategy, edges)
    else:
        _validate.choice(strategy, "strategy", partition.STRATEGIES)
    pool, source, weights = pooled(y_true, y_prob, sample_weight, pos_label)
    total = pool.total
    if scheme is None:
        starts = np.arange(len(pool.scores))
    else:
        ends = partition.sums_of(source, scheme, weights).edges
        index = partition.index_of(pool.scores, ends)
        starts = np.flatnonzero(np.diff(index, prepend=-1))
    scores, hits, mass = pool.scores, pool.hits, pool.hits + pool.misses
    sizes = np.diff(starts, append=len(scores))
    weight, positives = np.add.reduceat(mass, starts), np.add.reduceat(hits, starts)
    rates, lows = positives / weight, scores[starts]
    means = lows + np.add.reduceat(mass * (scores - np.repeat(lows, sizes)), starts) / weight
    off = scores - np.repeat(means, sizes)
    rate = float(hits.sum()) / total
    return BrierDecomposition(
        brier=sum_of_losses("brier", scores, hits, pool.misses) / total,
        reliability=float((weight * (means - rates) ** 2).sum()) / total,
        resolution=float((weight * (rates - rate) ** 2).sum()) / total,
        uncertainty=rate * (float(pool.misses.sum()) / total),
        within_bin_variance=float((mass * off**2).sum()) / total,
        within_bin_covariance=2.0 * float(((hits - np.repeat(rates, sizes) * mass) * off).sum()) / total,
        n=pool.n,
        n_bins=len(starts),
        strategy="scores" if scheme is None else ("edges" if edges is not None else scheme.strategy),
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CorpDecomposition:
    """Parts of a proper score by isotonic regression; from `corp`.

    ``score = miscalibration - discrimination + uncertainty``, up to rounding.

    Attributes
    ----------
    score : float
        Mean Brier or log score.
    miscalibration : float
        What recalibrating would gain: `score` less that of the recalibrated scores. Never negative.
    discrimination : float
        What the recalibrated scores gain over a constant. Never negative.
    uncertainty : float
        Score of the constant that is the rate of positives.
    loss : {"brier", "log"}
        Which score.
    thresholds, recalibrated : read-only float64 arrays of shape (m,)
        The isotonic curve: the smallest and the largest score of each of its steps (one number where they
        are the same), ascending, and the rate there. ``np.interp(s, thresholds, recalibrated)`` recalibrates
        a score of the sample, and draws straight lines between steps.
    n : int
        Rows; of weighted ones, those with a weight above 0.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    loss: str
    thresholds: Floats
    recalibrated: Floats
    n: int

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the isotonic regression against the score: a reliability diagram without bins.

        Where the line lies below the dashed one, scores are too high. `calcore.reliability` with
        ``strategy="isotonic"`` adds intervals and a histogram of the scores.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        TypeError
            If `ax` is no Axes.
        """
        nothing = np.empty(0)
        name = "Brier score" if self.loss == "brier" else "Log loss"
        return figures.reliability(
            ax,
            figures.Points(nothing, nothing, nothing),
            view=figures.limits(self.thresholds, self.recalibrated),
            title=(
                f"{name} {self.score:.3g} = {self.miscalibration:.3g} miscalibration\n"
                f"− {self.discrimination:.3g} discrimination + {self.uncertainty:.3g} uncertainty"
            ),
            labels=("Score", "Share of positives"),
            curve=(self.thresholds, self.recalibrated),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON; an infinite log score and miscalibration are None."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        for name in ("thresholds", "recalibrated"):
            plain[name] = plain[name].tolist()
        for name in ("score", "miscalibration"):
            plain[name] = plain[name] if math.isfinite(plain[name]) else None
        return plain

    def __repr__(self) -> str:
        return (
            f"CorpDecomposition({self.loss}={self.score:.4g}, miscalibration={self.miscalibration:.4g}, "
            f"discrimination={self.discrimination:.4g}, uncertainty={self.uncertainty:.4g}, n={self.n})"
        )


def corp(
    y_true: ArrayLike | ScoreTable,
    y_prob: ArrayLike | None = None,
    *,
    score: Literal["brier", "log"] = "brier",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> CorpDecomposition:
    """Decompose a proper score into miscalibration, discrimination and uncertainty, without bins.

    Scores are recalibrated by isotonic regression: of all ascending functions of the score, the one with the
    best mean score on this sample, whichever proper score is used. Nothing has to be chosen, and no part is
    ever negative. It assumes that higher scores mean higher rates. A perfectly calibrated model does not get
    a miscalibration of 0: the regression also fits noise.

    Parameters
    ----------
    y_true : array_like of shape (n,) or ScoreTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. A table stands for both columns.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    score : {"brier", "log"}
        Mean squared error, or mean log loss in nats.
    sample_weight : array_like of shape (n,), optional
        Finite weights >= 0. Not with a table.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    CorpDecomposition
        With "log", score and miscalibration are infinite if a probability of 0 was given to what happened;
        discrimination and uncertainty are always finite.

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names it, the rule, the value and where.
    TypeError
        If `y_prob` is missing or given beside a table, or `y_true` is a CellTable.

    Notes
    -----
    Rows of equal scores are pooled before the regression. If all labels are equal, uncertainty and
    discrimination are 0. One sort, then O(number of distinct scores) by pooling of adjacent violators.

    References
    ----------
    Dimitriadis, Gneiting & Jordan, PNAS 118 (2021), arXiv 2008.03033, for the decomposition.

    Examples
    --------
    >>> parts = corp([0, 1, 0, 1], [0.25, 0.5, 0.75, 1.0])  # recalibrated: 0, 1/2, 1/2, 1
    >>> parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.21875, 0.09375, 0.125, 0.25)
    >>> parts.thresholds, parts.recalibrated
    (array([0.25, 0.5 , 0.75, 1.  ]), array([0. , 0.5, 0.5, 1. ]))
    """
    _validate.choice(score, "score", ("brier", "log"))
    pool, _, _ = pooled(y_true, y_prob, sample_weight, pos_label)
    total, mass = pool.total, pool.hits + pool.misses
    firsts = isotonic_regression(pool.hits / mass, weights=mass).blocks[:-1]
    hits, misses = np.add.reduceat(pool.hits, firsts), np.add.reduceat(pool.misses, firsts)
    rates = np.maximum.accumulate(hits / (hits + misses))
    steps = np.flatnonzero(np.diff(rates, prepend=-1.0))  # neighbours of one rate are one step
    hits, misses, rates = np.add.reduceat(hits, steps), np.add.reduceat(misses, steps), rates[steps]
    lows = firsts[steps]
    highs = np.append(lows[1:], len(mass)) - 1
    share, others = (hits + misses) / total, misses / (hits + misses)
    rate, rest = float(hits.sum()) / total, float(misses.sum()) / total
    if score == "brier":
        best = (share * rates * others).sum()
        gain = (share * (rates - rate) ** 2).sum()
        uncertainty = rate * rest
    else:
        best = (share * (entr(rates) + entr(others))).sum()
        gain = (share * (rel_entr(rates, rate) + rel_entr(others, rest))).sum()
        uncertainty = float(entr(rate) + entr(rest))
    value = sum_of_losses(score, pool.scores, pool.hits, pool.misses) / total
    wide = np.repeat(highs > lows, 2)
    wide[::2] = True
    return CorpDecomposition(
        score=value,
        miscalibration=max(value - float(best), 0.0),
        discrimination=max(float(gain), 0.0),
        uncertainty=uncertainty,
        loss=score,
        thresholds=pool.scores[np.column_stack([lows, highs]).ravel()[wide]],
        recalibrated=np.repeat(rates, 2)[wide],
        n=pool.n,
    )


class Pool(NamedTuple):
    """Distinct scores, ascending, and the weight of positives and negatives of each."""

    scores: Floats
    hits: Floats
    misses: Floats
    total: float
    """Sum of all weights: of rows without weights, their number."""
    n: int
    """Rows of a weight above 0."""


def pooled(
    y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Any
) -> tuple[Pool, ScoreTable | _validate.Rows, Floats | None]:
    """Columns or a table, checked and pooled by score; and what they came from, with weights, if any."""
    source, weights = weighted(y_true, y_prob, sample_weight, pos_label)
    if isinstance(source, CellTable):
        raise TypeError(
            "y_true must keep every score for this, which a CellTable does not; pass both columns, or a "
            "ScoreTable"
        )
    if weights is None:
        table = source if isinstance(source, ScoreTable) else ScoreTable.from_rows(source)
        hits = table.positives.astype(np.float64)
        return Pool(table.scores, hits, table.counts - hits, float(table.n), table.n), table, None
    assert isinstance(source, _validate.Rows)
    exponent = exponent_of(weights)
    weights = np.ldexp(weights, -exponent)
    kept = np.flatnonzero(weights)
    source, weights = source.take(kept), weights[kept]
    labels, scores, _ = source.block(0, len(source))
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1.0))
    hits = np.add.reduceat((weights * labels)[order], starts)
    misses = np.add.reduceat((weights * (1 - labels))[order], starts)
    total = float(hits.sum() + misses.sum())
    return Pool(ordered[starts], hits, misses, total, len(source)), source, weights
