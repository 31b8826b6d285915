"""Reliability diagrams, residual maps and risk-coverage curves: numbers first, then their pictures.

Each function returns a frozen record of what its picture shows; `plot` draws it and returns the axes. Bins
are chosen by scores alone, and given the scores the rows' labels are independent with the true rates eta(s)
as means. So an interval of a bin holds for the mean of eta over its rows, whatever eta does inside the bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate, figures
from calcore._classes import class_rows
from calcore.binned import BinTable, table_of
from calcore.results import Certificate, CertificateSet, freeze, rebuilt
from calcore.scoring import corp
from calcore.table import CellTable, ScoreTable, partition
from calcore.table.given import given
from calcore.table.partition import STRATEGIES, Scheme, Strategy

if TYPE_CHECKING:
    from calcore.figures import Axes, Figure, SubFigure

__all__ = [
    "ClasswiseReliability",
    "ReliabilityDiagram",
    "ResidualMap",
    "RiskCoverage",
    "reliability",
    "reliability_classwise",
    "reliability_top_label",
    "residual_map",
    "risk_coverage",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Choice = Literal["uniform", "quantile", "min_count", "isotonic"]

_MOST_BINS = figures.MOST_POINTS
_FINER = 4
"""Parts of a bin that are looked at for errors of both signs."""

_TINY_TAIL = 1e-300
"""Below this the inverse of the beta distribution is wrong, in either direction."""

_BARS = 40
_CURVE = 1000
"""Points of a risk-coverage curve that are kept."""

_WORDS = {
    "positive": ("Mean score", "Share of positives"),
    "top label": ("Mean confidence", "Accuracy"),
    "class": ("Mean probability of the class", "Share of the class"),
}


# --- reliability -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReliabilityDiagram:
    """What was predicted against what happened, with its uncertainty; from `reliability`.

    Attributes
    ----------
    bins : BinTable
        Edges, rows, mean score and share of positives of each bin.
    intervals, simultaneous : read-only float64 arrays of shape (m, 2)
        Both ends for the mean of the true rates in each bin: each at level 1 - delta, and all of them
        together. 0 and 1 in bins without rows.
    delta : float
        Probability that an interval misses, each alone or, of `simultaneous`, any.
    ece, fine_ece : float
        Binned calibration error over these bins, and over bins cut in four: never smaller, as errors of
        different sign inside a bin no longer cancel, but with more noise.
    mean_gap : float
        Share of positives less mean score, over all rows: what is left if all errors may cancel.
    cancels : bool
        Whether errors of both signs are there beyond noise, so that they cancel in `mean_gap`, in coarser
        bins or in these: see `reliability`.
    curve : read-only float64 array of shape (2, k) or None
        Of "isotonic": vertices of the isotonic regression, scores and rates.
    score_edges, score_counts : read-only float64 array of shape (h + 1,), int64 array of shape (h,)
        Histogram of the scores: equally wide bins over what is drawn, the first and the last also with the
        rows beyond it.
    n : int
        Rows.
    strategy : {"uniform", "quantile", "min_count", "isotonic"}
    event : {"positive", "top label", "class"}
        What the score is the probability of.
    name : object
        Of the class; None if it is no class.
    certificate : Certificate or None
        As it was given.
    """

    bins: BinTable
    intervals: Floats
    simultaneous: Floats
    delta: float
    ece: float
    fine_ece: float
    mean_gap: float
    cancels: bool
    curve: Floats | None
    score_edges: Floats
    score_counts: Integers
    n: int
    strategy: str
    event: str = "positive"
    name: Any = None
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the diagram: points that grow with their bin, intervals (thick: each bin; thin: all together).

        Points below the dashed line have scores that are too high. Both axes are zoomed to what the bins and
        intervals span if that is less than half of [0, 1], as for rare events. The grey bars are the
        histogram of the scores. The title has the certificate's interval, if one was given, and says if
        errors cancel.

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
        lines = [figures.binned_title(self.ece, self.bins.counts, self.bins.strategy)]
        if self.certificate is not None:
            lines.insert(0, _certified(self.certificate))
        if self.cancels:
            lines.append(f"Errors of both signs cancel: mean gap {self.mean_gap:+.2g}".replace("-", "−"))
        return self._draw(ax, "\n".join(lines), small=False)

    def _draw(self, ax: Any, title: str, small: bool) -> Axes:
        curve = None if self.curve is None else (self.curve[0], self.curve[1])
        used = self.bins.counts > 0
        return figures.reliability(
            ax,
            figures.Points(
                self.bins.mean_score[used],
                self.bins.positive_rate[used],
                self.bins.share[used],
                self.intervals[used],
                self.simultaneous[used],
            ),
            view=_view(self.bins, self.simultaneous),
            title=title,
            labels=_WORDS[self.event],
            level=1.0 - self.delta,
            curve=curve,
            bars=(self.score_edges, self.score_counts.astype(np.float64)),
            small=small,
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``; NaN is None."""
        return _plain(self)

    def __repr__(self) -> str:
        used = int(np.count_nonzero(self.bins.counts))
        words = ", errors of both signs cancel" if self.cancels else ""
        return (
            f"<ReliabilityDiagram of {self.event if self.name is None else f'class {self.name!r}'}: "
            f"ECE {self.ece:.4g} in {used} bins ({self.strategy}), n={self.n}{words}>"
        )


def reliability(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Choice = "quantile",
    delta: float = 0.05,
    certificate: Certificate | None = None,
    pos_label: Any = None,
) -> ReliabilityDiagram:
    """Reliability diagram of binary probabilities: rates against mean scores, with intervals that hold.

    Use it to see where and in which direction a model is off. It is no proof of calibration: an interval
    that covers the diagonal leaves open what it covers. What a sample proves about the error as a whole is
    said by `calcore.certify`, whose result can be given for the title.

    Parameters
    ----------
    y_true : array_like of shape (n,), ScoreTable or CellTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. A table stands for both columns.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    n_bins : int, default 15
        From 1 to 300.
    strategy : {"quantile", "uniform", "min_count", "isotonic"}
        Which bins, as in `calcore.ece`: [a, b), the last one closed, and equal scores are never in two.
        "isotonic" draws an isotonic regression, which needs no bins; the intervals, which labels must not
        choose, are those of quantile bins. Not of a CellTable.
    delta : float, default 0.05
        In (0, 1): each interval misses with at most this probability, and so do all simultaneous ones
        together.
    certificate : Certificate, optional
        Of the same rows: `calcore.certify(y_true, y_prob)`.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    ReliabilityDiagram
        ``.plot()`` draws it.

    Raises
    ------
    ValueError
        If an argument breaks its rule, or `certificate` has another number of rows or of positives, or
        another mean score; the message names it, the rule, the value and where.
    TypeError
        If `y_prob` is missing, or given beside a table, `certificate` is none, or "isotonic" is asked of a
        CellTable.

    Notes
    -----
    *Intervals.* Those of Clopper and Pearson, with n_b rows and k_b positives, at delta and, of m bins with
    rows, at delta / m. Rates in a bin may differ: by Hoeffding, the number of positives then has lighter
    tails than a binomial of the same mean, at all counts at least one row away from that mean. So they hold
    for the mean rate where an end is that far from k_b / n_b, which is so for all counts but 1 and n_b - 1 if
    delta is below 1/2, and is enforced else. For those two the ends of a union bound are taken instead,
    delta / (2 n_b) and 1 less that; and for all counts where delta is too small for the inverse of the beta
    distribution (1e-140), of which ends are then a little wider. Labels must be independent given the scores.

    *Cancelling.* A bin is certified to be off if its simultaneous interval leaves out its mean score.
    `cancels` is true if one bin is certified to have scores too low and another too high; or if this is so of
    two parts of one bin, with bins cut at the quantiles of 4 n_bins bins and intervals for all parts
    together. If the true errors of all bins or parts have one sign, each of the two is true with probability
    at most delta.

    O(n log n) for one sort; a ScoreTable is not sorted again.

    References
    ----------
    Clopper & Pearson, Biometrika 26 (1934). Hoeffding, Ann. Math. Statist. 27 (1956), theorem 4.
    Dimitriadis, Gneiting & Jordan, PNAS 118 (2021), arXiv 2008.03033, for isotonic regression; their
    consistency bands by resampling are not used.

    Examples
    --------
    >>> diagram = reliability([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75], n_bins=2)
    >>> diagram.ece, diagram.mean_gap, diagram.cancels  # gaps 1/4 and 1/4
    (0.25, 0.25, False)
    >>> diagram.intervals  # .05 / 4 for one of two; the root of .025 for both of two
    array([[0.0125    , 0.9875    ],
           [0.15811388, 1.        ]])
    """
    return _diagram(
        _table(y_true, y_prob, pos_label), _Settings.checked(n_bins, strategy, delta), certificate
    )


def reliability_top_label(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Choice = "quantile",
    delta: float = 0.05,
    certificate: Certificate | None = None,
    labels: ArrayLike | None = None,
) -> ReliabilityDiagram:
    """Reliability diagram of the confidence in the first choice: accuracy against the largest probability.

    Of equal probabilities the first column is the choice. It says nothing about the other probabilities: see
    `reliability_classwise`.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Columns of P, 0 to k - 1; or, with `labels`, any of these. A class need not occur.
    P : array_like of shape (n, k)
        Class probabilities in [0, 1]; rows sum to 1, up to 1e-6 (float32: 1e-4, float16: 1e-2).
    n_bins, strategy, delta
        As in `reliability`.
    certificate : Certificate, optional
        Of the same rows: `calcore.certify_top_label(y_true, P)`.
    labels : array_like of shape (k,), optional
        The label of each column.

    Returns
    -------
    ReliabilityDiagram
        Its positives are the rows whose choice was right.

    Raises
    ------
    ValueError, TypeError
        As `reliability`.

    Notes
    -----
    O(n k + n log n), P read once and not copied.

    Examples
    --------
    >>> reliability_top_label([0, 1, 0], [[0.5, 0.5], [0.5, 0.5], [1, 0]], n_bins=1).mean_gap  # 2/3 - 2/3
    0.0
    """
    settings = _Settings.checked(n_bins, strategy, delta)
    confidence, correct = class_rows(y_true, P, labels).top()
    return _diagram(ScoreTable(correct, confidence), settings, certificate, event="top label")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClasswiseReliability:
    """Reliability diagrams of all classes, each against the rest; from `reliability_classwise`.

    Attributes
    ----------
    diagrams : tuple of ReliabilityDiagram
        One per column of P, in that order; each with its class's name.
    classwise_ece : float
        Mean of their `ece`.
    delta : float
        Simultaneous intervals hold for all bins of all classes together with probability at least 1 - delta.
    n : int
        Rows.
    """

    diagrams: tuple[ReliabilityDiagram, ...]
    classwise_ece: float
    delta: float
    n: int

    def __len__(self) -> int:
        return len(self.diagrams)

    @property
    def worst_first(self) -> tuple[ReliabilityDiagram, ...]:
        """The diagrams by descending `ece`; of equal ones the first column is the first."""
        return tuple(sorted(self.diagrams, key=lambda diagram: -diagram.ece))

    def plot(self, figure: Figure | SubFigure | None = None, *, max_panels: int = 12) -> Figure | SubFigure:
        """Draw a small diagram for each class, the largest ECE first.

        Axes are zoomed class by class, as in `ReliabilityDiagram.plot`: look at their numbers.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            An empty one to draw on; default a new one.
        max_panels : int, default 12
            At least 1. The title says how many classes are left out.

        Returns
        -------
        matplotlib Figure or SubFigure

        Raises
        ------
        ImportError
            If matplotlib is missing.
        TypeError, ValueError
            If `figure` is none, or `max_panels` is no whole number >= 1.
        """
        most = _validate.whole_number(max_panels, "max_panels", low=1)
        shown = self.worst_first[:most]
        left = len(self.diagrams) - len(shown)
        bins = self.diagrams[0].strategy.replace("_", " ").replace("uniform", "equally wide")
        title = f"Classwise ECE {self.classwise_ece:.3g} ({bins} bins), n = {self.n:,}"
        if left:
            title += f"\nlargest {len(shown)} of {len(self.diagrams):,} classes, {left:,} left out"
        made, cells = figures.panels(figure, len(shown), title, _WORDS["class"])
        for cell, diagram in zip(cells, shown, strict=True):
            name = figures.shortened(diagram.name, 14)
            diagram._draw(cell, f"{name}: ECE {diagram.ece:.2g}", small=True)
        return made

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``; NaN is None."""
        return {
            "classwise_ece": self.classwise_ece,
            "delta": self.delta,
            "n": self.n,
            "diagrams": [diagram.to_dict() for diagram in self.diagrams],
        }

    def __repr__(self) -> str:
        return f"<ClasswiseReliability: mean ECE {self.classwise_ece:.4g} of {len(self)} classes, n={self.n}>"


def reliability_classwise(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Choice = "quantile",
    delta: float = 0.05,
    certificates: CertificateSet | None = None,
    labels: ArrayLike | None = None,
) -> ClasswiseReliability:
    """Reliability diagrams of "this class or not", for every class.

    Parameters
    ----------
    y_true, P, labels
        As in `reliability_top_label`.
    n_bins, strategy
        As in `reliability`; quantile bins are each class's own.
    delta : float, default 0.05
        Each class's simultaneous intervals are at delta / k, so that any picked after looking hold.
    certificates : CertificateSet, optional
        Of the same rows: `calcore.certify_classwise(y_true, P)`.

    Returns
    -------
    ClasswiseReliability
        ``.plot()`` draws the worst classes.

    Raises
    ------
    ValueError, TypeError
        As `reliability`.

    Notes
    -----
    O(k n log n), columns of P copied 8 at a time at most.

    Examples
    --------
    >>> found = reliability_classwise([0, 1], [[0.6, 0.4], [0.3, 0.7]], n_bins=2, strategy="uniform")
    >>> found.classwise_ece  # (.4 + .3) / 2 for both classes
    0.35
    """
    settings = _Settings.checked(n_bins, strategy, delta)
    rows = class_rows(y_true, P, labels)
    k = len(rows.names)
    if certificates is not None:
        if not isinstance(certificates, CertificateSet):
            raise TypeError(f"certificates must be a CertificateSet; got {type(certificates).__name__}")
        missing = [name for name in rows.names if name not in certificates]
        if missing:
            raise ValueError(f"certificates must have one for every class; got none for {missing[0]!r}")
    diagrams = tuple(
        _diagram(
            ScoreTable(rows.codes == j, column),
            settings._replace(share=settings.delta / k),
            None if certificates is None else certificates[name],
            event="class",
            name=name,
            argument="certificates",
        )
        for j, (name, column) in enumerate(zip(rows.names, rows.columns(), strict=True))
    )
    mean = math.fsum(diagram.ece for diagram in diagrams) / k
    return ClasswiseReliability(diagrams, mean, settings.delta, len(rows.codes))


# --- residuals ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResidualMap:
    """Where scores are too high and where too low; from `residual_map`.

    Attributes
    ----------
    bins : BinTable
        ``bins.gap`` is the share of positives less the mean score of each bin.
    gap_intervals : read-only float64 array of shape (m, 2)
        Both ends for the true gap, all bins together at level 1 - delta; NaN in bins without rows.
    too_high, too_low : read-only bool arrays of shape (m,)
        Where that is certified: the interval lies below 0, or above.
    delta : float
        Probability that any interval misses.
    n : int
        Rows.
    """

    bins: BinTable
    gap_intervals: Floats
    too_high: NDArray[np.bool_]
    too_low: NDArray[np.bool_]
    delta: float
    n: int

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each bin's gap and interval; markers point up where scores are certified too low.

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
        used = self.bins.counts > 0
        edges = np.column_stack([self.bins.edges[:-1], self.bins.edges[1:]])
        sign = self.too_low.astype(np.int8) - self.too_high.astype(np.int8)
        return figures.residuals(
            ax,
            edges[used],
            self.bins.mean_score[used],
            self.bins.gap[used],
            self.gap_intervals[used],
            sign[used],
            title=f"Where scores are off, n = {self.n:,}",
            labels=("Mean score", "Share of positives − mean score"),
            level=1.0 - self.delta,
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``; NaN is None."""
        return _plain(self)

    def __repr__(self) -> str:
        used = int(np.count_nonzero(self.bins.counts))
        return (
            f"<ResidualMap: of {used} bins {int(self.too_high.sum())} certified too high, "
            f"{int(self.too_low.sum())} too low at {1.0 - self.delta:.6g}, n={self.n}>"
        )


def residual_map(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    delta: float = 0.05,
    pos_label: Any = None,
) -> ResidualMap:
    """Gap of every bin of scores, and in which of them scores are certified to be too high or too low.

    Parameters
    ----------
    y_true, y_prob, n_bins, delta, pos_label
        As in `reliability`.
    strategy : {"quantile", "uniform", "min_count"}
        As in `reliability`.

    Returns
    -------
    ResidualMap
        ``.plot()`` draws it. With probability at least 1 - delta every bin in `too_high` and `too_low` is
        there with right: the mean of the true rates of its rows lies below, or above, their mean score.

    Raises
    ------
    ValueError, TypeError
        As `reliability`.

    Notes
    -----
    Intervals are the simultaneous ones of `reliability`, less the mean score.

    Examples
    --------
    >>> found = residual_map([0] * 100 + [1, 0] * 50, [0.5] * 100 + [0.75] * 100, n_bins=2)
    >>> found.too_high, found.too_low, found.bins.gap
    (array([ True,  True]), array([False, False]), array([-0.5 , -0.25]))
    """
    _validate.choice(strategy, "strategy", STRATEGIES)
    settings = _Settings.checked(n_bins, strategy, delta)
    table = _table(y_true, y_prob, pos_label)
    sums = partition.sums_of(table, Scheme(settings.n_bins, strategy, None))
    bins = table_of(sums, strategy)
    ends = _simultaneous(sums, settings.delta)
    off = _sign(bins.mean_score, ends)
    return ResidualMap(
        bins, ends - bins.mean_score[:, None], off < 0, off > 0, settings.delta, int(bins.counts.sum())
    )


# --- risk and coverage -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RiskCoverage:
    """Errors among the rows that are answered, if the least confident are not; from `risk_coverage`.

    Attributes
    ----------
    coverage, risk, threshold : read-only float64 arrays of shape (m,)
        Rows whose confidence is at least a threshold: their share, and the share of errors among them.
        Thresholds descend. Of more than 1000 distinct confidences about 1000 are kept, evenly spaced; the
        last is always all rows.
    aurc : float
        Area under the curve: the mean over rows of the risk at the row's own confidence as threshold. It is
        that of the whole curve, ``(np.diff(coverage, prepend=0) * risk).sum()`` if all confidences are kept;
        else that sum is only about the same.
    e_aurc : float
        `aurc` less that of an order in which all errors come last; >= 0.
    error : float
        Risk at full coverage.
    n : int
        Rows.
    """

    coverage: Floats
    risk: Floats
    threshold: Floats
    aurc: float
    e_aurc: float
    error: float
    n: int

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw risk over coverage as steps, and dotted the best order of these errors.

        The area of the steps is `aurc` up to 300 distinct confidences. Of more, 300 points of the curve are
        drawn, and the area of their steps is about that.

        Call it again with the same axes and other labels to compare models.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        label : str, optional
            Name in the legend.

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
        name = label if label is None else f"{label}: AURC {self.aurc:.3g}"
        title = f"AURC {self.aurc:.3g}, " if label is None else ""
        title += f"error {self.error:.3g} at full coverage, n = {self.n:,}"
        return figures.selective_risk(
            ax,
            self.coverage,
            self.risk,
            self.error,
            label=name,
            title=title if label is None else "Errors if the least confident rows are left out",
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers and lists, ready for ``json.dumps``."""
        return _plain(self)

    def __repr__(self) -> str:
        return (
            f"<RiskCoverage: AURC {self.aurc:.4g}, E-AURC {self.e_aurc:.4g}, error {self.error:.4g}, "
            f"n={self.n}>"
        )


def risk_coverage(
    y_true: ArrayLike | ScoreTable | CellTable,
    P: ArrayLike | None = None,
    *,
    confidence: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> RiskCoverage:
    """Risk-coverage curve: how the error rate falls if a model may leave out what it is least sure of.

    It measures the order of confidences, not their size: any ascending change of them leaves it as it is,
    and a calibrated model need not be good at it.

    Parameters
    ----------
    y_true : array_like of shape (n,), ScoreTable or CellTable
        Labels of the classes, as in `reliability_top_label`. With `confidence`: whether the model was right,
        bool or 0/1. A table of (right, confidence) stands for both.
    P : array_like of shape (n, k)
        Class probabilities; the confidence is the largest of a row, and of equal ones the first column is
        the choice. Of a binary score p: ``np.column_stack([1 - p, p])``.
    confidence : array_like of shape (n,), optional
        Confidences in [0, 1] instead of P.
    labels : array_like of shape (k,), optional
        The label of each column of P.

    Returns
    -------
    RiskCoverage
        ``.plot()`` draws it. Lower is better, everywhere in [0, 1].

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names it, the rule, the value and where.
    TypeError
        If not exactly one of P, `confidence` and a table is given, or `labels` without P.

    Notes
    -----
    With r(t) the share of errors among rows of confidence t or more,

        aurc = (1 / n) sum_i r(confidence_i).

    Equal confidences enter together, so the order of rows changes nothing: a constant confidence has the
    error rate as its area. Of a CellTable, rows of one cell enter together. For distinct confidences this is
    the sum of Geifman et al. e_aurc subtracts its least value for the same number of errors e, which is
    (1 / n) sum_{i=1}^{e} i / (n - e + i); they subtract an approximation of it, error + (1 - error) ln(1 -
    error).

    One sort, O(n log n).

    References
    ----------
    Geifman & El-Yaniv, NeurIPS 2017 (arXiv 1705.08500), for risk and coverage. Geifman, Uziel & El-Yaniv,
    ICLR 2019 (arXiv 1805.08206), for AURC and E-AURC.

    Examples
    --------
    >>> found = risk_coverage([1, 0, 1, 0], confidence=[0.9, 0.8, 0.7, 0.6])
    >>> found.coverage, found.risk.round(4)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([0.    , 0.5   , 0.3333, 0.5   ]))
    >>> found.aurc, found.e_aurc  # (0 + 1/2 + 1/3 + 1/2) / 4, less (1/3 + 2/4) / 4
    (0.3333333333333333, 0.125)
    """
    table = _ranked(y_true, P, confidence, labels)
    if isinstance(table, ScoreTable):
        lows, rows, right = table.scores, table.counts, table.positives
    else:
        cells = table.cells()
        lows, rows, right = cells.lo, cells.n, cells.k
    n, errors = table.n, table.n - int(right.sum())
    answered = rows[::-1].cumsum()
    risk = (answered - right[::-1].cumsum()) / answered
    aurc = float((rows[::-1] * risk).sum()) / n
    kept = np.arange(len(rows)) if len(rows) <= _CURVE else _evenly(answered, _CURVE)
    return RiskCoverage(
        answered[kept] / n,
        risk[kept],
        lows[::-1][kept],
        aurc,
        max(aurc - _least_area(errors, n), 0.0),
        errors / n,
        n,
    )


def _ranked(y_true: Any, P: Any, confidence: Any, labels: Any) -> ScoreTable | CellTable:
    """Rows of (right, confidence)."""
    if isinstance(y_true, ScoreTable | CellTable):
        for name, value in (("P", P), ("confidence", confidence), ("labels", labels)):
            if value is not None:
                raise TypeError(f"{name} must not be given beside a table, which holds confidences already")
        return _table(y_true, None, None)
    if confidence is None:
        if P is None:
            raise TypeError(
                "P is missing: pass labels and P, labels of being right and confidence=, or a table"
            )
        if _is_column(P):
            raise ValueError(
                "P must have a column for each class; got one column: pass confidence=, with y_true saying "
                "which rows were right, or of a binary score p np.column_stack([1 - p, p])"
            )
        best, correct = class_rows(y_true, P, labels).top()
        return ScoreTable(correct, best)
    for name, value in (("P", P), ("labels", labels)):
        if value is not None:
            raise TypeError(f"{name} must not be given beside confidence")
    with _validate.renamed("y_prob", "confidence"):
        return ScoreTable(y_true, confidence)


def _is_column(P: Any) -> bool:
    try:
        return np.ndim(P) == 1
    except ValueError:  # lists of several lengths: refused with the others
        return False


def _evenly(answered: Integers, most: int) -> Integers:
    """The first entry at or above each of `most` evenly spaced coverages."""
    n = int(answered[-1])
    marks = -(-np.arange(1, most + 1, dtype=np.int64) * n // most)
    return np.unique(np.searchsorted(answered, marks))


def _least_area(errors: int, n: int) -> float:
    """Area under the curve of n rows if the `errors` come last: one term per wrong row, a block at a time."""
    parts = []
    for start in range(1, errors + 1, 2**20):
        i = np.arange(start, min(start + 2**20, errors + 1), dtype=np.float64)
        parts.append(float((i / (n - errors + i)).sum()))
    return math.fsum(parts) / n


# --- bins and their intervals ------------------------------------------------------------------------------


class _Settings(NamedTuple):
    """What a user asked of a diagram, checked."""

    n_bins: int
    strategy: str
    delta: float
    share: float
    """The part of delta that all bins of one diagram have together."""

    @classmethod
    def checked(cls, n_bins: object, strategy: object, delta: object) -> _Settings:
        count = _validate.whole_number(n_bins, "n_bins", low=1)
        if count > _MOST_BINS:
            raise ValueError(f"n_bins must be at most {_MOST_BINS}, to be seen; got {count}")
        level = _validate.probability(delta, "delta")
        return cls(count, _validate.choice(strategy, "strategy", (*STRATEGIES, "isotonic")), level, level)


def _table(y_true: Any, y_prob: Any, pos_label: Any) -> ScoreTable | CellTable:
    source = given(y_true, y_prob, pos_label=pos_label)
    return ScoreTable.from_rows(source) if isinstance(source, _validate.Rows) else source


def _diagram(
    table: ScoreTable | CellTable,
    settings: _Settings,
    certificate: Certificate | None,
    event: str = "positive",
    name: Any = None,
    argument: str = "certificate",
) -> ReliabilityDiagram:
    strategy: Any = "quantile" if settings.strategy == "isotonic" else settings.strategy
    curve = None
    if settings.strategy == "isotonic":
        fit = corp(table)  # type: ignore[arg-type]  # a CellTable is refused there
        curve = np.stack([fit.thresholds, fit.recalibrated])
    sums = partition.sums_of(table, Scheme(settings.n_bins, strategy, None))
    if certificate is not None:
        _check_certificate(certificate, argument, table, sums)
    bins = table_of(sums, strategy)
    together = _simultaneous(sums, settings.share)
    off = _sign(bins.mean_score, together)
    parts, whole = _cut(table, bins.edges, settings.n_bins)
    part_off = _sign(_means(parts), _simultaneous(parts, settings.share))
    inside = np.intersect1d(whole[part_off < 0], whole[part_off > 0])
    edges, counts = _histogram(table, _view(bins, together))
    return ReliabilityDiagram(
        bins=bins,
        intervals=_intervals(sums.hits, sums.rows, settings.delta),
        simultaneous=together,
        delta=settings.delta,
        ece=min(sums.absolute, 1.0),
        fine_ece=min(parts.absolute, 1.0),
        mean_gap=math.fsum(sums.excess) / table.n,
        cancels=bool(inside.size) or {-1, 1} <= set(off.tolist()),
        curve=curve,
        score_edges=edges,
        score_counts=counts,
        n=table.n,
        strategy=settings.strategy,
        event=event,
        name=name,
        certificate=certificate,
    )


def _means(sums: partition.BinSums) -> Floats:
    with np.errstate(invalid="ignore"):
        return sums.scores / sums.weight


def _simultaneous(sums: partition.BinSums, delta: float) -> Floats:
    return _intervals(sums.hits, sums.rows, delta / np.count_nonzero(sums.rows))


def _intervals(hits: Floats, rows: Integers, delta: float) -> Floats:
    """Both ends for the mean of `rows` probabilities from the number of events: see `reliability`.

    Clopper-Pearson, at most one row less than the count at the lower end and one more at the upper (which
    binds for counts of 1 and rows - 1, and where delta is 1/2 or more). Where delta is too small for the
    inverse of the beta distribution (from about 1e-140 on, depending on counts), the ends are those of the
    union bound, comb(n, k) p^k, and so a little wider.
    """
    from scipy.special import betaincinv, betaln

    half, size = 0.5 * delta, rows.astype(np.float64)
    ends = np.empty((len(rows), 2))
    for column, count in ((0, hits), (1, size - hits)):
        n, k = np.maximum(size, 1.0), np.maximum(count, 1.0)
        # n events of probability p are k or more with probability I_p(k, n - k + 1)
        below = betaincinv(k, n - k + 1.0, half)
        if half < _TINY_TAIL or np.isnan(below).any():
            log_tail = math.log(half) if half > 0.0 else -math.inf
            wider = np.exp((log_tail + np.log(n + 1.0) + betaln(n - k + 1.0, k + 1.0)) / k)
            below = np.where((half < _TINY_TAIL) | np.isnan(below), wider, below)
        below = np.minimum(below, (k - 1.0) / n)
        below = np.where(count > 1.0, below, np.where(count == 1.0, half / n, 0.0))
        ends[:, column] = below if column == 0 else 1.0 - below
    return ends


def _sign(mean_score: Floats, ends: Floats) -> NDArray[np.int8]:
    """1 where the interval lies above the mean score, -1 where below, else 0, as for NaN."""
    low: NDArray[np.bool_] = mean_score < ends[:, 0]
    high: NDArray[np.bool_] = mean_score > ends[:, 1]
    return low.astype(np.int8) - high.astype(np.int8)


def _cut(table: ScoreTable | CellTable, edges: Floats, n_bins: int) -> tuple[partition.BinSums, Integers]:
    """Sums over bins cut at the quantiles of four times as many, and the bin that each part is in."""
    quantiles = partition.sums_of(table, Scheme(_FINER * n_bins, "quantile", None)).edges
    starts = np.union1d(edges[:-1], quantiles[:-1])  # the last may be 1, of a bin of ones only
    every = np.append(starts, 1.0)
    return _sums(table, every), partition.index_of(starts, edges)


def _sums(table: ScoreTable | CellTable, edges: Floats) -> partition.BinSums:
    """Sums over given bins; a cell goes where its smallest score is."""
    if isinstance(table, ScoreTable):
        return partition.sums_of(table, Scheme(len(edges) - 1, "uniform", edges))
    cells = table.cells()
    index, m = partition.index_of(cells.lo, edges), len(edges) - 1
    rows, hits = np.zeros(m, np.int64), np.zeros(m, np.int64)
    scores, excess = np.zeros(m), np.zeros(m)
    for into, column in ((rows, cells.n), (hits, cells.k), (scores, cells.s), (excess, cells.k - cells.s)):
        np.add.at(into, index, column)
    absolute = math.fsum(np.abs(excess)) / table.n
    weight = rows.astype(np.float64)
    return partition.BinSums(
        edges, rows, weight, hits.astype(float), scores, excess, float(table.n), absolute
    )


def _view(bins: BinTable, ends: Floats) -> tuple[float, float]:
    used = bins.counts > 0
    return figures.limits(bins.mean_score[used], bins.positive_rate[used], ends[used])


def _histogram(table: ScoreTable | CellTable, view: tuple[float, float]) -> tuple[Floats, Integers]:
    low, high = view
    inner = low + (high - low) * (np.arange(1, _BARS) / _BARS)
    edges = np.unique(np.concatenate([[0.0], inner, [1.0]]))
    return edges, _sums(table, edges).rows


def _check_certificate(
    certificate: Any, argument: str, table: ScoreTable | CellTable, sums: partition.BinSums
) -> None:
    if not isinstance(certificate, Certificate):
        raise TypeError(f"{argument} must be a Certificate; got {type(certificate).__name__}")
    n, n_positive = table.n, int(sums.hits.sum())
    rows = certificate.n + certificate.n_dropped
    if rows != n:
        raise ValueError(f"{argument} must be of the same rows; got one of {rows:,} rows for {n:,}")
    if certificate.n_dropped:
        return  # of the rows that were kept nothing is known here
    if certificate.n_positive != n_positive:
        raise ValueError(
            f"{argument} must be of the same rows; got one of {certificate.n_positive:,} positives for "
            f"{n_positive:,}"
        )
    mean = min(math.fsum(sums.scores) / n, 1.0)
    kept = isinstance(table, ScoreTable) and certificate.table == "sorted scores"
    # sums are off by 2^-57 a row and 2^-48 of themselves; those of cells by 2^-31 of a cell's width a row
    slack = 2.0**-50 + 2.0**-46 * mean if kept else 2.0**-30
    if abs(certificate.mean_score - mean) > slack:
        raise ValueError(
            f"{argument} must be of the same scores; got one of mean {certificate.mean_score!r} for {mean!r}"
        )


def _certified(certificate: Certificate) -> str:
    ends = _outwards(certificate.lower, ROUND_FLOOR), _outwards(certificate.upper, ROUND_CEILING)
    words = f"Calibration error in [{', '.join(ends)}]"
    words += f" at {100.0 * certificate.confidence:.4g}%"
    assumed = certificate.assumption.split(" (")[0]
    return words if assumed == "none" else f"{words}, if {assumed}"


def _outwards(end: float, rounding: str) -> str:
    """Three digits of an end of an interval, away from its middle: what is drawn holds too.

    >>> _outwards(0.0026641, ROUND_CEILING), _outwards(0.0026641, ROUND_FLOOR), _outwards(0.0, ROUND_FLOOR)
    ('0.00267', '0.00266', '0')
    """
    exact = Decimal(repr(end))
    if not exact:
        return "0"
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding)):.3g}"


def _plain(record: Any) -> dict[str, Any]:
    return {name: _as_json(getattr(record, name)) for name in record.__slots__}


def _as_json(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return _as_json(value.tolist())
    if isinstance(value, list):
        return [_as_json(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
