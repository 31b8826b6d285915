"""Binned calibration errors: the numbers that papers report, each with its definition.

Scores are put into bins, and in every bin the mean score is compared with the share of positives. The result
depends on the bins, and grows with noise: a perfectly calibrated model does not get 0. `ece_curve` shows
both; `calcore.certify` says what a sample proves.

Bins are [a, b), the last one closed; edges of equally wide bins are the doubles nearest to j / n_bins. Equal
scores are never in two bins. Which bins there are:

* "uniform": n_bins of equal width;
* "quantile": bin after bin closes at the first score that has j / n_bins of the rows at or below it. A score
  held by many rows makes its bin larger and others vanish;
* "min_count": a bin closes at the first score with which it holds n / n_bins rows; what is left over joins
  the
  last one. So no bin has fewer rows than that.
* `edges`: as given.

With weights "rows" means weight, and whole weights are the same as repeated rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate, figures
from calcore._classes import ClassRows, class_rows
from calcore.kernels import bin_sums
from calcore.results import Interval, freeze, rebuilt
from calcore.table import CellTable, ScoreTable, partition
from calcore.table.bin_counts import Norm
from calcore.table.given import Given, given, weighted
from calcore.table.partition import BinSums, Scheme, Strategy

if TYPE_CHECKING:
    from calcore.figures import Axes

__all__ = [
    "BinTable",
    "EceCurve",
    "calibration_table",
    "classwise_ece",
    "confidence_ece",
    "debiased_ece",
    "debiased_squared_ece",
    "ece",
    "ece_curve",
    "full_ece",
    "mce",
]

_NORMS = ("l1", "l2", "max", "avg")

_KINDS = {"uniform": "equally wide", "quantile": "quantile", "min_count": "min-count"}

_MOST_BINS = 100
"""Drawn at once."""

_BLOCK = 65_536
"""Entries of P read at once."""


def ece(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    norm: Norm = "l1",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    n_threads: int | None = None,
) -> float:
    """Expected calibration error of binary probabilities, over bins of scores.

    ``sum_b (n_b / n) abs(positives_b / n_b - mean score_b)``. Use it to be comparable with the literature,
    and
    say which bins; look at `ece_curve` before believing it. It can be 0 for a model that is off (errors of
    different sign in a bin cancel) and is above 0 for a perfect one (noise); neither choice of bins avoids
    both. What a sample proves is another question: see `calcore.certify`.

    Parameters
    ----------
    y_true : array_like of shape (n,), ScoreTable or CellTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. A table stands for both columns.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    n_bins : int, default 15
        At least 1, at most 2^20. More bins than rows are allowed: empty bins do not count.
    strategy : {"uniform", "quantile", "min_count"}
        Which bins: see `calcore.binned`. Equal scores are never in two.
    edges : array_like of shape (m + 1,), optional
        The bins' edges instead, ascending from 0 to 1; `n_bins` and `strategy` are then not used.
    norm : {"l1", "l2", "max", "avg"}
        With g the absolute difference in a bin: sum((n_b / n) g), the root of sum((n_b / n) g^2), the largest
        g, or the plain mean of g over bins with rows. l1 <= l2 <= max.
    sample_weight : array_like of shape (n,), optional
        Finite weights >= 0. Not with a table.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names it, the rule, the value and where. Of a CellTable:
        if bins would cut through cells; the message names bin counts that do not.
    TypeError
        If `y_prob` is missing, or given beside a table.

    Warns
    -----
    UserWarning
        If all of several rows have the same score, as models do whose confidences are missing.

    Notes
    -----
    Scores count as they are, or rounded to 2^-57 if below 1/16, and are added as integers: the order of rows
    changes nothing, "l1" is correctly rounded, and scores of 1/2 with alternating labels give exactly 0.
    Weighted sums are compensated.
    "uniform" and `edges` read rows once, without sorting; the other strategies sort. A CellTable's sums are
    off by 2^-31 of a cell's width per
    row, and its quantile bins are unions of cells.

    References
    ----------
    Naeini, Cooper, Hauskrecht, AAAI 2015. Guo, Pleiss, Sun, Weinberger, ICML 2017 (arXiv 1706.04599), whose
    bins are closed on the right, and whose scores are those of the top class: `confidence_ece`.

    Examples
    --------
    >>> ece([1, 1, 1, 0], [0.2, 0.2, 0.9, 0.9], n_bins=2)  # .5 * .8 + .5 * .4
    0.6
    >>> ece([1, 1, 1, 0], [0.2, 0.2, 0.9, 0.9], n_bins=2, norm="max")
    0.8
    """
    scheme = Scheme.checked(n_bins, strategy, edges)
    _validate.choice(norm, "norm", _NORMS)
    source, weights = weighted(y_true, y_prob, sample_weight, pos_label)
    sums = partition.sums_of(source, scheme, weights, _validate.threads(n_threads))
    _warn_of_constant(source, sums, "y_prob")
    return _value(sums, norm)


def mce(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Maximum calibration error: the largest difference in any bin, as `ece` with ``norm="max"``.

    A bin of one row often has it: with few rows per bin it says more about noise than about the model.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, edges, sample_weight, pos_label
        As in `ece`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        As `ece`.

    Examples
    --------
    >>> mce([1, 1, 1, 0], [0.2, 0.2, 0.9, 0.9], n_bins=2)
    0.8
    """
    return ece(
        y_true,
        y_prob,
        n_bins=n_bins,
        strategy=strategy,
        edges=edges,
        norm="max",
        sample_weight=sample_weight,
        pos_label=pos_label,
    )


def debiased_squared_ece(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Squared l2 calibration error over bins, less what the noise of the labels adds to it.

    ``sum_b (n_b / n) ((rate_b - mean score_b)^2 - rate_b (1 - rate_b) / (n_b - 1))``. Where the true rates of
    a bin's rows are equal, for all bins of two rows or more, its expectation given the scores is that of the
    same sum with true rates and without noise: it is 0 on average for a model that is right, and so may be
    negative.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, edges, pos_label
        As in `ece`. Weighted rows are not offered: the correction needs rows of equal weight.

    Returns
    -------
    float
        In [-1/4, 1]. A bin of one row has rate 0 or 1 and no correction, which biases the sum upwards.

    Raises
    ------
    ValueError, TypeError
        As `ece`.

    Notes
    -----
    Where true rates differ inside a bin, rate (1 - rate) / (n_b - 1) estimates more than the variance of the
    rate given the scores: the result is then too small by the mean over bins of (variance of the true rates
    in the bin) / (n_b - 1), which is small for narrow bins with many rows.

    References
    ----------
    Kumar, Liang, Ma, NeurIPS 2019 (arXiv 1909.10155), section 5: the debiased estimator.

    Examples
    --------
    >>> debiased_squared_ece([1, 1, 0, 0], [0.25, 0.75, 0.25, 0.75], n_bins=1)  # 0 - (1/4) / 3
    -0.08333333333333333
    """
    scheme = Scheme.checked(n_bins, strategy, edges)
    source = given(y_true, y_prob, pos_label=pos_label)
    sums = partition.sums_of(source, scheme, None, _validate.threads(None))
    _warn_of_constant(source, sums, "y_prob")
    used = sums.rows > 0
    rows, gap, rate = sums.rows[used], sums.excess[used] / sums.rows[used], sums.hits[used] / sums.rows[used]
    return math.fsum(rows * (gap**2 - rate * (1.0 - rate) / np.maximum(rows - 1, 1))) / sums.total


def debiased_ece(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Debiased l2 calibration error: the root of `debiased_squared_ece`, and 0 where that is negative.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, edges, pos_label
        As in `ece`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        As `ece`.

    References
    ----------
    Kumar, Liang, Ma, NeurIPS 2019 (arXiv 1909.10155).

    Examples
    --------
    >>> debiased_ece(
    ...     [1, 1, 1, 1], [0.5, 0.5, 0.5, 0.75], edges=[0, 0.6, 1]
    ... )  # root of .75 * .5^2 + .25 * .25^2
    0.45069390943299864
    """
    squared = debiased_squared_ece(
        y_true, y_prob, n_bins=n_bins, strategy=strategy, edges=edges, pos_label=pos_label
    )
    return math.sqrt(max(squared, 0.0))


def confidence_ece(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    norm: Norm = "l1",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Top-label calibration error: confidence of the first choice against its being right.

    `ece` of (largest probability, label is that class). Of equal probabilities the first column is the
    choice,
    whatever the label. It says nothing about the other probabilities: see `classwise_ece` and `full_ece`.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Columns of P, 0 to k - 1; or, with `labels`, any of these. A class need not occur.
    P : array_like of shape (n, k)
        Class probabilities in [0, 1]; rows sum to 1, up to 1e-6 (float32: 1e-4, float16: 1e-2).
    n_bins, strategy, edges, norm, sample_weight
        As in `ece`.
    labels : array_like of shape (k,), optional
        The label of each column.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        If an argument breaks its rule; the message names it, the rule, the value and where.

    Warns
    -----
    UserWarning
        If all of several rows have the same confidence.

    Notes
    -----
    O(n k), P read once and not copied.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, ICML 2017 (arXiv 1706.04599): "ECE" of networks.

    Examples
    --------
    >>> confidence_ece([0, 1, 0], [[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]], n_bins=2)  # 2 of 3 right at 1.9 / 3
    0.033333333333333326
    """
    scheme = Scheme.checked(n_bins, strategy, edges)
    _validate.choice(norm, "norm", _NORMS)
    rows = class_rows(y_true, P, labels)
    weights = None if sample_weight is None else _validate.weights(sample_weight, len(rows.codes))
    confidence, correct = rows.top()
    top = _validate.binary(correct, confidence)
    sums = partition.sums_of(top, scheme, weights, _validate.threads(None))
    _warn_of_constant(top, sums, "the confidence in P")
    return _value(sums, norm)


def classwise_ece(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    norm: Norm = "l1",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Mean over classes of the `ece` of "this class or not".

    All rows count for every class, also for a class without rows of its own. With many classes most
    probabilities are near 0 and so is the mean; some authors report the sum, k times this.

    Parameters
    ----------
    y_true, P, n_bins, strategy, edges, norm, sample_weight, labels
        As in `confidence_ece`. Quantile bins are each class's own.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        As `confidence_ece`.

    Notes
    -----
    O(n k), and sorting where the strategy asks; columns are copied 8 at a time at most.

    References
    ----------
    Kull, Perello Nieto, Kängsepp, Silva Filho, Song, Flach, NeurIPS 2019 (arXiv 1910.12656).

    Examples
    --------
    >>> classwise_ece([0, 1], [[0.6, 0.4], [0.3, 0.7]], n_bins=2)  # (.5 * .4 + .5 * .3), of both classes
    0.35
    """
    scheme = Scheme.checked(n_bins, strategy, edges)
    _validate.choice(norm, "norm", _NORMS)
    rows = class_rows(y_true, P, labels)
    weights = None if sample_weight is None else _validate.weights(sample_weight, len(rows.codes))
    threads = _validate.threads(None)
    return math.fsum(
        _value(partition.sums_of(one, scheme, weights, threads), norm) for one in _one_by_one(rows)
    ) / len(rows.names)


def _one_by_one(rows: ClassRows) -> Iterator[_validate.Rows]:
    """Every class against the rest."""
    for j, column in enumerate(rows.columns()):
        yield _validate.binary(rows.codes == j, column)


def full_ece(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    norm: Literal["l1", "l2", "max"] = "l1",
    labels: ArrayLike | None = None,
) -> float:
    """Calibration error of whole probability vectors: rows with equal vectors are compared with their labels.

    With f the shares of labels among the n_g rows of vector p: ``sum_g (n_g / n) sum_c abs(f_c - p_c)`` for
    "l1", the root of ``sum_g (n_g / n) sum_c (f_c - p_c)^2`` for "l2", the largest abs(f_c - p_c) for "max".
    Right for predictors with few distinct vectors. Where every vector is met once it measures the loss of the
    single rows, not calibration.

    Parameters
    ----------
    y_true, P, labels
        As in `confidence_ece`. Vectors are equal if all their numbers are.
    norm : {"l1", "l2", "max"}

    Returns
    -------
    float
        In [0, 2] for "l1", [0, sqrt(2)] for "l2", [0, 1] for "max"; rounding of P apart.

    Raises
    ------
    ValueError, TypeError
        As `confidence_ece`.

    Notes
    -----
    O(n k), plus a sort of n hashes; equal hashes are compared number by number.

    References
    ----------
    Vaicenavicius, Widmann, Andersson, Lindsten, Roll, Schön, AISTATS 2019 (arXiv 1902.06977): calibration in
    the strongest sense, and why it cannot be estimated where vectors are not repeated.

    Examples
    --------
    >>> full_ece([0, 0, 1, 2], [[0.5, 0.25, 0.25]] * 4)
    0.0
    >>> full_ece([1, 1, 0, 0], [[0.5, 0.25, 0.25]] * 2 + [[0.25, 0.5, 0.25]] * 2)  # .5 + .75 + .25, twice
    1.5
    """
    _validate.choice(norm, "norm", ("l1", "l2", "max"))
    rows = class_rows(y_true, P, labels)
    n, k = rows.matrix.shape
    group, first = rows.equal_rows()
    size = np.bincount(group)
    cell, count = np.unique(group * k + rows.codes, return_counts=True)
    bounds = np.searchsorted(cell, np.arange(0, (len(first) + 1) * k, k))
    parts, largest = [], 0.0
    step = max(1, _BLOCK // k)
    for start in range(0, len(first), step):
        stop = min(start + step, len(first))
        here = slice(bounds[start], bounds[stop])
        weight = size[start:stop, None]
        off = rows.matrix[first[start:stop]].astype(np.float64) * -weight
        off.reshape(-1)[cell[here] - start * k] += count[here]
        largest = max(largest, float((np.abs(off) / weight).max()))
        parts.append(float(np.abs(off).sum() if norm == "l1" else (off**2 / weight).sum()))
    if norm == "max":
        return largest
    total = math.fsum(parts) / n
    return total if norm == "l1" else math.sqrt(total)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinTable:
    """What was predicted and what happened, bin by bin: the numbers of a reliability diagram.

    Attributes
    ----------
    edges : float64 array of shape (m + 1,)
        Bin j is [edges[j], edges[j + 1]), the last one closed. Where scores decide on bins, an edge is the
        smallest score of its bin (0 for the first).
    counts : int64 array of shape (m,)
        Rows; of weighted ones, those with a weight above 0.
    share : float64 array of shape (m,)
        Part of all rows, or of their weight.
    mean_score, positive_rate : float64 arrays of shape (m,)
        NaN in bins without rows.
    n : int
        Rows in all.
    strategy : str
        "uniform", "quantile", "min_count" or "edges".
    weighted : bool
        Whether rows had weights.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    share: NDArray[np.float64]
    mean_score: NDArray[np.float64]
    positive_rate: NDArray[np.float64]
    n: int
    strategy: str
    weighted: bool

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def gap(self) -> NDArray[np.float64]:
        """`positive_rate` less `mean_score`: above 0 where the model says too little."""
        return self.positive_rate - self.mean_score

    def intervals(
        self, delta: float = 0.05, method: Literal["exact", "wilson"] = "exact"
    ) -> NDArray[np.float64]:
        """Confidence intervals for the true rate of positives in each bin, each at level 1 - delta.

        Parameters
        ----------
        delta : float, default 0.05
            In (0, 1). Divide it by the number of bins for intervals that hold together.
        method : {"exact", "wilson"}
            Clopper–Pearson, which covers at least at its level; or Wilson's score interval, shorter, which
            covers so on average over rates.

        Returns
        -------
        float64 array of shape (m, 2)
            Both ends, in [0, 1]; of a bin without rows 0 and 1.

        Raises
        ------
        ValueError
            If rows had weights, or an argument breaks its rule.

        Notes
        -----
        Where the rates of a bin's rows differ, Clopper–Pearson still covers their mean, from about one row
        away of it on (Hoeffding, Ann. Math. Statist. 27, 1956: the sum is less spread than a binomial).

        Examples
        --------
        >>> calibration_table([1, 1, 1, 1], [0.8, 0.9, 0.9, 0.9], n_bins=1).intervals().round(4)  # .025^(1/4)
        array([[0.3976, 1.    ]])
        """
        from scipy.stats import binomtest

        _validate.probability(delta, "delta")
        _validate.choice(method, "method", ("exact", "wilson"))
        if self.weighted:
            raise ValueError("sample_weight must not be given for intervals: rows need to count equally")
        hits = np.rint(np.nan_to_num(self.positive_rate) * self.counts).astype(np.int64)
        ends = np.array([[0.0, 1.0]] * len(self))
        for b in np.flatnonzero(self.counts):
            tested = binomtest(int(hits[b]), int(self.counts[b]))
            ends[b] = tested.proportion_ci(1.0 - delta, method=method)
        return ends

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the reliability diagram of these bins, with 95% intervals if rows had no weights.

        The grey bars below are the density of the scores: share of rows by width of bin. Consecutive bins are
        joined where more than 100 have rows. `calcore.reliability` draws more: intervals for all bins
        together, a histogram of the scores themselves, and a certificate.

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
        error = math.fsum(np.nan_to_num(self.share * np.abs(self.gap)))
        title = figures.binned_title(error, self.counts, self.strategy)
        table = self._joined(_MOST_BINS)
        used = table.counts > 0
        ends = None if table.weighted else table.intervals()[used]
        score, rate = table.mean_score[used], table.positive_rate[used]
        view = figures.limits(score, rate, *([] if ends is None else [ends]))
        return figures.reliability(
            ax,
            figures.Points(score, rate, table.share[used], ends),
            view=view,
            title=title,
            labels=("Mean score", "Share of positives"),
            bars=figures.bars_of(table.edges, table.share, view),
        )

    def _joined(self, most: int) -> BinTable:
        """These bins, or about `most` runs of them of equal share if more have rows."""
        if np.count_nonzero(self.counts) <= most:
            return self
        before = np.concatenate([[0.0], self.share.cumsum()[:-1]])
        starts = np.unique((before * most).astype(np.int64), return_index=True)[1]
        share = np.add.reduceat(self.share, starts)
        with np.errstate(invalid="ignore"):
            mean, rate = (
                np.add.reduceat(np.nan_to_num(self.share * column), starts) / share
                for column in (self.mean_score, self.positive_rate)
            )
        edges = self.edges[np.append(starts, len(self))]
        counts = np.add.reduceat(self.counts, starts)
        return BinTable(edges, counts, share, mean, rate, self.n, self.strategy, self.weighted)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``; NaN is None."""
        plain: dict[str, Any] = {"n": self.n, "strategy": self.strategy, "weighted": self.weighted}
        columns = {
            "low": self.edges[:-1],
            "high": self.edges[1:],
            "count": self.counts,
            "share": self.share,
            "mean_score": self.mean_score,
            "positive_rate": self.positive_rate,
        }
        lists = {name: column.tolist() for name, column in columns.items()}
        plain["bins"] = [
            {name: None if lists[name][b] != lists[name][b] else lists[name][b] for name in lists}
            for b in range(len(self))
        ]
        return plain

    def __repr__(self) -> str:
        used = int(np.count_nonzero(self.counts))
        return f"<BinTable: {self.n} rows in {used} of {len(self)} bins ({self.strategy})>"


def calibration_table(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    edges: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> BinTable:
    """Rows, mean score and share of positives of every bin: what a reliability diagram shows.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, edges, sample_weight, pos_label
        As in `ece`.

    Returns
    -------
    BinTable
        Of equally wide bins also those without rows.

    Raises
    ------
    ValueError, TypeError
        As `ece`.

    Examples
    --------
    >>> table = calibration_table([0, 1, 1], [0.25, 0.75, 1.0], n_bins=2)
    >>> table.counts, table.mean_score, table.positive_rate
    (array([1, 2]), array([0.25 , 0.875]), array([0., 1.]))
    """
    scheme = Scheme.checked(n_bins, strategy, edges)
    source, weights = weighted(y_true, y_prob, sample_weight, pos_label)
    sums = partition.sums_of(source, scheme, weights, _validate.threads(None))
    _warn_of_constant(source, sums, "y_prob")
    return table_of(sums, "edges" if scheme.edges is not None else scheme.strategy, weights is not None)


def table_of(sums: BinSums, strategy: str, weighted: bool = False) -> BinTable:
    """What a reliability diagram shows of sums over bins."""
    with np.errstate(invalid="ignore"):
        mean, rate = sums.scores / sums.weight, sums.hits / sums.weight
    return BinTable(
        sums.edges.copy(),
        sums.rows,
        sums.weight / sums.total,
        np.clip(mean, sums.edges[:-1], sums.edges[1:]),
        np.clip(rate, 0.0, 1.0),
        int(sums.rows.sum()),
        strategy,
        weighted,
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EceCurve:
    """The binned calibration error over numbers of bins, and how far each of them can be trusted.

    Attributes
    ----------
    n_bins : int64 array of shape (k,)
    ece : float64 array of shape (k,)
        As `calcore.ece` with that many bins.
    n_used : int64 array of shape (k,)
        Bins that hold rows.
    noise : float64 array of shape (k,)
        What a perfectly calibrated model with these scores would get on average, about: the upward bias. It
        grows with the root of the number of bins.
    hidden : float64 array of shape (k,)
        What errors of different sign inside bins can hide, about: the downward bias if true rates have slopes
        of at most `lipschitz` and scores lie evenly in their bins. It falls as 1 / bins.
    std : float64 array of shape (k,)
        Standard deviation of `ece` over samples of labels, about. For a calibrated model it is too large: on
        average by a quarter with 5 bins or more, by a half with one.
    suggested : int
        The number of bins with the least (noise + hidden)^2 + std^2, K*: about n^(1/3) times a constant.
    n : int
        Rows.
    strategy : str
    lipschitz : float
    """

    n_bins: NDArray[np.int64]
    ece: NDArray[np.float64]
    n_used: NDArray[np.int64]
    noise: NDArray[np.float64]
    hidden: NDArray[np.float64]
    std: NDArray[np.float64]
    suggested: int
    n: int
    strategy: str
    lipschitz: float

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        label: str | None = None,
        band: ArrayLike | Sequence[Interval] | None = None,
    ) -> Axes:
        """Draw the error over the number of bins, with a band, and dotted what noise alone would give.

        Call it again with the same axes and other labels to compare models: where bands overlap, the curves
        do not say which is better.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default a new figure.
        label : str, optional
            Name in the legend.
        band : array_like of shape (k, 2) or sequence of k Interval, optional
            Both ends for each number of bins, in [0, 1], as from resampling: intervals of
            `calcore.compare` with metrics ``[f"ece@{k}" for k in curve.n_bins]`` and the same strategy.
            Default `ece` less and plus `std`.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        TypeError, ValueError
            If `ax` is no Axes, or `band` breaks its rule.
        """
        if band is None:
            ends = np.column_stack([self.ece - self.std, self.ece + self.std]).clip(0.0, 1.0)
        else:
            ends = _band(band, len(self.n_bins))
        return figures.binned_error(
            ax,
            self.n_bins,
            self.ece,
            self.noise,
            ends,
            self.suggested,
            label=label,
            title=f"ECE over {_KINDS[self.strategy]} bins, n = {self.n:,}",
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings and lists, ready for ``json.dumps``."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in plain.items()}

    def __repr__(self) -> str:
        low, high = float(self.ece.min()), float(self.ece.max())
        return (
            f"<EceCurve: {low:.4g} to {high:.4g} over {self.n_bins[0]} to {self.n_bins[-1]} bins "
            f"({self.strategy}), n={self.n}, suggested {self.suggested}>"
        )


def ece_curve(
    y_true: ArrayLike | ScoreTable | CellTable,
    y_prob: ArrayLike | None = None,
    bin_counts: ArrayLike | None = None,
    *,
    strategy: Strategy = "uniform",
    lipschitz: float = 1.0,
    pos_label: Any = None,
) -> EceCurve:
    """`ece` at many numbers of bins, for the price of one sort, with the bias and spread of each.

    One number of bins is one accident of where edges lie. Report the curve, or at least several numbers, and
    do not rank models whose curves cross.

    Parameters
    ----------
    y_true, y_prob, pos_label
        As in `ece`.
    bin_counts : array_like of int, shape (k,), optional
        Default 5, 6, ..., 50; of a CellTable with equally wide bins those of them that its cells allow.
    strategy : {"uniform", "quantile", "min_count"}
        As in `ece`.
    lipschitz : float, default 1
        Largest slope of the true rate that is reckoned with in `hidden`, > 0.

    Returns
    -------
    EceCurve

    Raises
    ------
    ValueError, TypeError
        As `ece`.

    Notes
    -----
    In a bin of n_b rows with mean score m, rate r and width w:

    * noise is the mean of abs(Z), Z normal with the variance m (1 - m) / n_b of a calibrated model's rate;
    * std comes from the variance of abs(Z), Z normal with mean r - m and variance r (1 - r) / n_b;
    * hidden is (1 + lipschitz) w / 4, w at most as far as there are scores: rate less score changes by at
      most (1 + lipschitz) w across the bin, and where it changes sign in the middle, evenly, its absolute
      value has that mean.

    Sums and means over bins are weighted by rows. Noise and hidden balance at about n^(1/3) bins, the rate at
    which Futami and Fujisawa (NeurIPS 2024, arXiv 2405.15709) bound the total bias; their constants are upper
    bounds for any model, these are guesses for a plain one. K* is a suggestion, not an estimate of anything.

    O(n log n) for the sort, O(n) for all sums, O(n_bins) per number of bins.

    Examples
    --------
    >>> curve = ece_curve([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], [1, 2])
    >>> curve.ece, curve.n_used
    (array([0.  , 0.25]), array([1, 2]))
    """
    slope = _validate.positive_number(lipschitz, "lipschitz")
    _validate.choice(strategy, "strategy", partition.STRATEGIES)
    source = given(y_true, y_prob, pos_label=pos_label)
    table = ScoreTable.from_rows(source) if isinstance(source, _validate.Rows) else source
    counts = _bin_counts(bin_counts, table, strategy)
    found, coarsest = curve_of(table, counts, strategy, slope)
    _warn_of_constant(table, coarsest, "y_prob")
    return found


def curve_of(
    table: ScoreTable | CellTable, counts: NDArray[np.int64], strategy: Strategy, slope: float
) -> tuple[EceCurve, BinSums]:
    """The curve of a table, without a warning, and the sums over the bins of its first number of bins."""
    distinct, place = np.unique(counts, return_inverse=True)
    different = list(_curve_sums(table, [Scheme(int(count), strategy, None) for count in distinct]))
    each = [different[j] for j in place]
    ends = _range(table)
    columns = np.array([[_value(sums, "l1"), *_trust(sums, slope, ends)] for sums in each]).T
    value, noise, hidden, std = np.ascontiguousarray(columns)
    best = int(np.argmin((noise + hidden) ** 2 + std**2))
    used = np.array([np.count_nonzero(sums.rows) for sums in each])
    curve = EceCurve(counts, value, used, noise, hidden, std, int(counts[best]), table.n, strategy, slope)
    return curve, each[0]


def _band(band: ArrayLike | Sequence[Interval], k: int) -> NDArray[np.float64]:
    """Both ends of each, checked."""
    pairs: Any = band
    if isinstance(band, Sequence):
        pairs = [(end.lower, end.upper) if isinstance(end, Interval) else end for end in band]
    try:
        given = np.asarray(pairs)
    except ValueError:
        raise ValueError(
            f"band must have two ends for each of {k} numbers of bins; got rows of several lengths"
        ) from None
    if given.shape != (k, 2):
        raise ValueError(f"band must have two ends for each of {k} numbers of bins; got shape {given.shape}")
    ends = np.column_stack([_validate.numbers(given[:, j], "band") for j in (0, 1)])
    outside = (ends < 0.0) | (ends > 1.0)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        value = float(ends[row, np.argmax(outside[row])])
        raise ValueError(f"band must lie in [0, 1]; got {value!r} at index {row}")
    crossed = ends[:, 0] > ends[:, 1]
    if crossed.any():
        row = int(np.argmax(crossed))
        raise ValueError(
            f"band must have its lower end first; got {float(ends[row, 0])!r} above "
            f"{float(ends[row, 1])!r} at index {row}"
        )
    return ends


def _bin_counts(
    bin_counts: ArrayLike | None, table: ScoreTable | CellTable, strategy: str
) -> NDArray[np.int64]:
    if bin_counts is None:
        counts = np.arange(5, 51)
        if isinstance(table, CellTable) and strategy == "uniform" and table.grid == "linear":
            allowed = counts[table.n_cells % counts == 0]
            counts = allowed if len(allowed) else counts
        return counts
    given = _validate.numbers(bin_counts, "bin_counts")
    with _validate.renamed("n_bins", "bin_counts"):
        checked = [Scheme.checked(int(n) if n == int(n) else n, strategy, None).n_bins for n in given]
    return np.array(checked, np.int64)


def _curve_sums(table: ScoreTable | CellTable, schemes: list[Scheme]) -> Iterator[BinSums]:
    """Sums over the bins of each scheme; of sorted rows from one pass over the union of all bins."""
    if isinstance(table, CellTable):
        with _validate.renamed("n_bins", "bin_counts"):
            yield from [partition.sums_of(table, scheme) for scheme in schemes]
        return
    starts = [partition.starts_in(table.keys, scheme) for scheme in schemes]
    every = partition.distinct(np.sort(np.concatenate(starts)))
    totals = np.zeros((4, len(every) - 1), np.int64)
    bin_sums.of_sorted(table.keys, every, totals)
    passed = np.concatenate([np.zeros((4, 1), np.int64), totals.cumsum(axis=1)], axis=1)
    for scheme, own in zip(schemes, starts, strict=True):
        fixed = scheme.fixed
        edges = partition.edges_from(table.keys, own) if fixed is None else fixed
        yield partition.finish(np.diff(passed[:, np.searchsorted(every, own)], axis=1), edges)


def _trust(sums: BinSums, slope: float, ends: tuple[float, float]) -> tuple[float, float, float]:
    """Noise, hidden and std of a binned error: see `ece_curve`."""
    from scipy.special import ndtr

    used = sums.rows > 0
    rows = sums.rows[used]
    share, mean, rate = rows / sums.total, np.clip(sums.scores[used] / rows, 0, 1), sums.hits[used] / rows
    noise = math.fsum(share * np.sqrt(2.0 / math.pi * mean * (1.0 - mean) / rows))
    hidden = 0.25 * (1.0 + slope) * math.fsum(share * np.diff(sums.edges.clip(*ends))[used])
    gap, variance = sums.excess[used] / rows, rate * (1.0 - rate) / rows
    sd = np.sqrt(variance)
    z = np.divide(gap, sd, out=np.full(len(gap), np.inf), where=sd > 0.0)
    folded = sd * math.sqrt(2.0 / math.pi) * np.exp(-0.5 * z**2) + np.abs(gap) * (
        1.0 - 2.0 * ndtr(-np.abs(z))
    )
    spread = np.maximum(gap**2 + variance - folded**2, 0.0)
    return noise, min(hidden, 1.0), math.sqrt(math.fsum(share**2 * spread))


def _value(sums: BinSums, norm: Norm) -> float:
    if norm == "l1":
        return min(sums.absolute, 1.0)
    used = sums.weight > 0.0
    off, weight = np.abs(sums.excess[used]), sums.weight[used]
    if norm == "l2":
        return min(math.sqrt(math.fsum(off * (off / weight)) / sums.total), 1.0)
    gaps = np.minimum(off / weight, 1.0)
    return float(gaps.max()) if norm == "max" else math.fsum(gaps) / len(gaps)


def _warn_of_constant(source: Given, sums: BinSums, name: str) -> None:
    """Say so if all of several rows have one score: an error of 1 - accuracy may look like a good one."""
    if np.count_nonzero(sums.rows) > 1 or int(sums.rows.sum()) < 2:
        return
    value = _only_score(source)
    if value is not None:
        warnings.warn(
            f"{name} is {value:g} in every row: the result compares this one number with the share of "
            "positives; are confidences missing?",
            UserWarning,
            stacklevel=_validate.callers_level(),
        )


def _only_score(source: Given) -> float | None:
    if isinstance(source, _validate.Rows):
        first = source.scores[0]
        return float(first) if bool(np.all(source.scores == first)) else None
    cells = source.cells()
    return float(cells.lo[0]) if cells.lo[0] == cells.hi[-1] else None


def _range(table: ScoreTable | CellTable) -> tuple[float, float]:
    """Smallest and largest score."""
    if isinstance(table, CellTable):
        cells = table.cells()
        return float(cells.lo[0]), float(cells.hi[-1])
    low, high = (table.keys[[0, -1]] >> 1).view(np.float64)
    return float(low), float(high)
