"""How far the most frequent answer is ahead of the next, and what that does to the two confidences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calcore import _validate, figures
from calcore.kernels import binning
from calcore.results import freeze, rebuilt
from calcore.semantic.estimators import SemanticConfidences, counted
from calcore.semantic.samples import SemanticSamples

if TYPE_CHECKING:
    from calcore.figures import Axes

__all__ = ["GapByMargin", "MarginBucket", "SemanticMargins", "gap_by_margin", "semantic_margins"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SemanticMargins:
    """Margin of each question, as it is and in standard errors; from `semantic_margins`.

    Attributes
    ----------
    first, second, trials : read-only int64 arrays of shape (Q,)
        The two largest counts of classes, the second 0 if there is one class only, and answers.
    """

    first: Integers
    second: Integers
    trials: Integers

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @property
    def delta(self) -> Floats:
        """Margin: share of the mode less that of the next class; 1 if there is no other."""
        gaps: Floats = (self.first - self.second) / self.trials
        return gaps

    @property
    def p(self) -> Floats:
        """Share of the two classes together."""
        shares: Floats = (self.first + self.second) / self.trials
        return shares

    @property
    def m(self) -> Floats:
        """Margin in standard errors, ``delta / sqrt(p / n)``; see `semantic_margins`."""
        return self.delta / np.sqrt(self.p / self.trials)

    @property
    def m_two_classes(self) -> Floats:
        """``sqrt(n) delta``: as if there were no third class, p = 1; see `semantic_margins`."""
        return np.sqrt(self.trials) * self.delta

    @property
    def lam(self) -> Floats:
        """``m / 2``."""
        return 0.5 * self.m

    @property
    def low(self) -> NDArray[np.bool_]:
        """Whether ``delta < 1 / sqrt(n)``: the two shares may well be in the other order."""
        low: NDArray[np.bool_] = (self.first - self.second) ** 2 < self.trials
        return low

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        many = f"{len(self)} question{'s' if len(self) > 1 else ''}"
        return f"<SemanticMargins: {many}, {int(self.low.sum())} with a low margin>"


def semantic_margins(samples: SemanticSamples, *, n_threads: int | None = None) -> SemanticMargins:
    """Measure how far the most frequent class of each question is ahead of the next.

    Parameters
    ----------
    samples : SemanticSamples
        Graded or not.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    SemanticMargins

    Notes
    -----
    With shares p1 >= p2 of the two largest classes of n answers, delta = p1 - p2 and p = p1 + p2, the
    variance of the difference of the two counts is n (p - delta^2). Near a tie that is n p, so that
    ``m = delta / sqrt(p / n)`` is the margin in standard errors, and the bias of "sem1" is
    ``sqrt(p / n) (phi(m) - m Phi(-m))`` (THEORY 12.3). lambda = m / 2.

    *Large margins.* As p and delta go to 1, p - delta^2 goes to 0 and p does not: m stays at most sqrt(n),
    its value where all answers agree. Figures of the published material put p = 1 for all questions; that is
    `m_two_classes`. With it "low", delta < 1 / sqrt(n), is m < 1. As p <= 1, m is never smaller.

    Examples
    --------
    >>> found = semantic_margins(SemanticSamples.of(["a", "b"], [[0, 0, 0, 1], [0, 1, 2, 3]]))
    >>> found.delta, found.p, found.low
    (array([0.5, 0. ]), array([1. , 0.5]), array([False,  True]))
    >>> found.m, found.lam
    (array([1., 0.]), array([0.5, 0. ]))
    """
    if not isinstance(samples, SemanticSamples):
        raise TypeError(f"samples must be SemanticSamples; got {type(samples).__name__}")
    threads = _validate.threads(n_threads)
    _, first, second = counted(samples, np.zeros(len(samples), np.uint64), False, threads)
    return SemanticMargins(first.astype(np.int64), second.astype(np.int64), samples.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class MarginBucket:
    """Questions of similar margin; from `gap_by_margin`.

    Attributes
    ----------
    low, high : float
        Margins, [low, high), the last bucket closed.
    n, n_graded : int
        Questions.
    gap : float or None
        Mean of Sem1 - Sem2 over questions; None if there are none.
    standard_error : float or None
        Of `gap`; None for fewer than two questions.
    sem1_excess, sem2_excess : float or None
        Mean confidence less accuracy, over graded questions: above 0 where the model is over-confident.
    """

    low: float
    high: float
    n: int
    n_graded: int
    gap: float | None
    standard_error: float | None
    sem1_excess: float | None
    sem2_excess: float | None

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for ``json.dumps``."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GapByMargin:
    """Sem1 - Sem2 by margin: where answers disagree, and by how much choosing inflates; from `gap_by_margin`.

    Attributes
    ----------
    buckets : tuple of MarginBucket
        Ascending, empty ones too.
    gap : float
        Mean of Sem1 - Sem2 over all questions.
    standard_error : float or None
        Of `gap`; None for one question.
    """

    buckets: tuple[MarginBucket, ...]
    gap: float
    standard_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for ``json.dumps``."""
        return {
            "buckets": [bucket.to_dict() for bucket in self.buckets],
            "gap": self.gap,
            "standard_error": self.standard_error,
        }

    def __repr__(self) -> str:
        n = sum(bucket.n for bucket in self.buckets)
        return f"<GapByMargin: Sem1 - Sem2 is {self.gap:.4g} on average, {n} questions>"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean gap over margins, with bars of two standard errors.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: those of a new figure.

        Returns
        -------
        matplotlib Axes
        """
        used = [bucket for bucket in self.buckets if bucket.gap is not None]
        columns = [
            [0.5 * (bucket.low + bucket.high), bucket.gap or 0.0, 2.0 * (bucket.standard_error or 0.0)]
            for bucket in used
        ]
        middle, gap, error = np.array(columns).T
        n = sum(bucket.n for bucket in used)
        return figures.gaps(ax, middle, gap, error, title=f"Mean gap {self.gap:.3g}, n = {n:,} questions")


def gap_by_margin(
    samples: SemanticSamples,
    sem1: SemanticConfidences,
    sem2: SemanticConfidences,
    *,
    n_buckets: int = 10,
) -> GapByMargin:
    """Compare both confidences by margin: a diagnostic of how hard questions are.

    The gap needs no grades. It is about 0 where answers agree, and largest where two classes are close.

    Parameters
    ----------
    samples : SemanticSamples
    sem1, sem2 : SemanticConfidences
        Of these samples.
    n_buckets : int, default 10
        Of equal width, from margin 0 to 1.

    Returns
    -------
    GapByMargin

    Raises
    ------
    ValueError
        If the confidences are not of these samples.

    Notes
    -----
    The gap of one question may be negative: splits are random.

    Buckets are of margins as they were observed in the same answers, which are larger than the true ones on
    average. Among questions that are chosen by one, "sem2" is lower than "sem1" whatever the model; which of
    them is nearer to the accuracy depends on the model (THEORY 12.5).

    Examples
    --------
    >>> from calcore.semantic import semantic_confidence
    >>> samples = SemanticSamples.of(["a", "b"], [[0, 0, 0, 0], [0, 0, 0, 0]])
    >>> both = [semantic_confidence(samples, estimator=name) for name in ("sem1", "sem2")]
    >>> gap_by_margin(samples, *both)
    <GapByMargin: Sem1 - Sem2 is 0 on average, 2 questions>
    """
    count = _validate.whole_number(n_buckets, "n_buckets", low=1, high=1000)
    for found, name in ((sem1, "sem1"), (sem2, "sem2")):
        if found.ids != samples.ids or found.estimator != name:
            raise ValueError(f"{name} must be the confidences of that estimator for these samples")
    margins = semantic_margins(samples)
    bucket = binning.uniform_bins(_validate.scores(margins.delta), count)
    gaps = sem1.confidence - sem2.confidence
    graded = np.isfinite(sem1.y) & np.isfinite(sem2.y)
    buckets = []
    for b in range(count):
        own = bucket == b
        known = own & graded
        mean, error = _mean(gaps[own])
        buckets.append(
            MarginBucket(
                low=b / count,
                high=(b + 1) / count,
                n=int(np.count_nonzero(own)),
                n_graded=int(np.count_nonzero(known)),
                gap=mean,
                standard_error=error,
                sem1_excess=_mean(sem1.confidence[known] - sem1.y[known])[0],
                sem2_excess=_mean(sem2.confidence[known] - sem2.y[known])[0],
            )
        )
    mean, error = _mean(gaps)
    assert mean is not None
    return GapByMargin(tuple(buckets), mean, error)


def _mean(values: Floats) -> tuple[float | None, float | None]:
    """Mean and standard error, None where there are too few; the order of values does not matter."""
    n = len(values)
    if not n:
        return None, None
    mean = math.fsum(values) / n
    if n < 2:
        return mean, None
    return mean, math.sqrt(math.fsum((values - mean) ** 2) / (n - 1) / n)
