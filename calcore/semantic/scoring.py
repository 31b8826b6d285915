"""All of it: calibration errors of every confidence with intervals and certificates, and what differs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.bounds import kl_lower, kl_upper
from calcore.certificates import certify
from calcore.comparison import MetricDifference, MetricEstimate, ModelComparison, compare_rows
from calcore.results import Certificate, Interval
from calcore.semantic.estimators import (
    Correctness,
    Estimator,
    SemanticConfidences,
    Ties,
    checked_seed,
    semantic_confidence,
)
from calcore.semantic.margins import GapByMargin, gap_by_margin, semantic_margins
from calcore.semantic.samples import SemanticSamples

if TYPE_CHECKING:
    from calcore.figures import Axes

__all__ = [
    "EstimatorScore",
    "LowMargin",
    "SemanticComparison",
    "SemanticScores",
    "compare_semantic",
    "score_samples",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Missing = float | Literal["drop"]

_ENOUGH_LOW = 30
"""Graded questions of low margin, as published."""

_FEW = 10
"""Of either grade, as in `compare`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EstimatorScore:
    """Calibration of one confidence; from `score_samples`.

    Attributes
    ----------
    estimator : {"sem1", "sem2", "ver", "logit"}
    n : int
        Questions that are graded and have this confidence.
    ece, brier : MetricEstimate
        Binned error over equally wide bins, and mean squared error, each with a bootstrap interval.
    mean_confidence, accuracy, excess : float
        Over these questions; `excess` is the difference, above 0 for over-confidence.
    certificate : Certificate
        Of the calibration error without bins, see `calcore.certify`; alone at its `delta`.
    """

    estimator: str
    n: int
    ece: MetricEstimate
    brier: MetricEstimate
    mean_confidence: float
    accuracy: float
    certificate: Certificate

    @property
    def excess(self) -> float:
        """Mean confidence less accuracy: above 0 for over-confidence."""
        return self.mean_confidence - self.accuracy

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        return {name: _plain(getattr(self, name)) for name in (*self.__slots__, "excess")}

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"<{self.estimator}: ECE {self.ece.estimate:.4g} in {self.ece.interval}, certified in "
            f"{Interval(c.lower, c.upper)}, n={self.n}>"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LowMargin:
    """Both sampled confidences on the questions of low margin, delta < 1 / sqrt(N); from `score_samples`.

    Attributes
    ----------
    n : int
        Graded questions among them.
    sem1, sem2 : MetricEstimate
        Binned errors.
    difference : MetricDifference
        Of these, paired by question.
    sem1_excess, sem2_excess : float
        Mean confidence less accuracy.
    warnings : tuple of str
    """

    n: int
    sem1: MetricEstimate
    sem2: MetricEstimate
    difference: MetricDifference
    sem1_excess: float
    sem2_excess: float
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for ``json.dumps``."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}

    def __repr__(self) -> str:
        return (
            f"<LowMargin: ECE {self.sem1.estimate:.4g} (sem1), {self.sem2.estimate:.4g} (sem2), n={self.n}>"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SemanticScores:
    """Calibration of a model's answers by all confidences that are there; from `score_samples`.

    Attributes
    ----------
    n_questions, n_graded : int
        All, and those that errors are of.
    n_answers : (int, int)
        Fewest and most answers to a question.
    accuracy : float
        Share of graded questions whose deployed answer, the mode of all answers, is right.
    accuracy_interval : Interval
        Of the population's; holds at every n (Chernoff bounds, each at half of `delta`).
    scores : tuple of EstimatorScore
        In the order "sem1", "sem2", "ver", "logit", as far as given; see also `score`.
    differences : tuple of MetricDifference
        Of pairs of confidences, paired by question; see also `difference`. Those that every graded question
        has are compared with each other, one that some lack only with "sem1" and "sem2", where it is.
    n_of_differences : tuple of int
        Questions of each.
    margins : GapByMargin
        Sem1 - Sem2 by margin, over all questions.
    n_low_margin : int
        Questions with delta < 1 / sqrt(N), graded or not.
    low_margin : LowMargin or None
        Errors on these; None if fewer than 30 are graded.
    low_margin_note : str
        Why it is None, or empty.
    n_missing_verbalized : int
        Answers of graded questions without a stated confidence.
    missing_verbalized : float or "drop"
    n_bins, n_splits, seed, ties, correctness, n_resamples, delta
        As they were given.
    warnings : tuple of str
        What a reader should know before using the numbers.
    """

    n_questions: int
    n_graded: int
    n_answers: tuple[int, int]
    accuracy: float
    accuracy_interval: Interval
    scores: tuple[EstimatorScore, ...]
    differences: tuple[MetricDifference, ...]
    n_of_differences: tuple[int, ...]
    margins: GapByMargin
    n_low_margin: int
    low_margin: LowMargin | None
    low_margin_note: str
    n_missing_verbalized: int
    missing_verbalized: Missing
    n_bins: int
    n_splits: int
    seed: int
    ties: str
    correctness: str
    n_resamples: int
    delta: float
    warnings: tuple[str, ...]

    def score(self, estimator: str) -> EstimatorScore:
        """Return the score of one confidence; KeyError if it was not given."""
        for found in self.scores:
            if found.estimator == estimator:
                return found
        raise KeyError(estimator)

    def difference(self, a: str, b: str, metric: str) -> MetricDifference:
        """Return `a` less `b` in "ece" or "brier", whichever was named first; KeyError if there is none."""
        wanted = f"ece@{self.n_bins}" if metric == "ece" else metric
        for found in self.differences:
            if found.metric == wanted and {found.a, found.b} == {a, b}:
                return found if found.a == a else found.mirrored()
        raise KeyError((a, b, metric))

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}

    def __repr__(self) -> str:
        errors = ", ".join(f"{each.estimator} {each.ece.estimate:.4g}" for each in self.scores)
        return f"<SemanticScores: ECE {errors}; accuracy {self.accuracy:.4g}, n={self.n_graded}>"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw `margins`: the gap between both confidences over margins."""
        return self.margins.plot(ax)


class _Column(NamedTuple):
    """A confidence of some questions, with the labels that it is held against."""

    question: Integers
    labels: NDArray[np.uint8]
    scores: Floats

    def of(self, questions: NDArray[np.bool_]) -> _Column:
        kept = questions[self.question]
        return _Column(self.question[kept], self.labels[kept], self.scores[kept])


def score_samples(
    samples: SemanticSamples,
    *,
    n_bins: int = 10,
    n_splits: int = 10,
    seed: int = 0,
    ties: Ties = "first",
    correctness: Correctness = "mode",
    missing_verbalized: Missing = 1.0,
    n_resamples: int = 2000,
    delta: float = 0.05,
    n_threads: int | None = None,
) -> SemanticScores:
    """Score how well a model's confidence in its free-form answers is calibrated, by every estimate of it.

    Parameters
    ----------
    samples : SemanticSamples
        Questions without a grade count for gaps and margins only.
    n_bins : int, default 10
        Bins of equal width; the published number.
    n_splits, seed, ties, correctness
        As in `semantic_confidence`. With ``correctness="split"`` every split of "sem2" is a row with its own
        grade, and the others' rows are repeated as often; questions are graded if the mode and all classes
        that splits chose are.
    missing_verbalized : float in [0, 1] or "drop", default 1.0
        What an answer without a stated confidence counts as in the mean; the published value is 1. "drop":
        the mean of those that are there, and no confidence where none is.
    n_resamples : int, default 2000
        As in `calcore.compare`. Questions are drawn, the same for all confidences.
    delta : float, default 0.05
        Probability that an interval or a certificate misses, each by itself.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    SemanticScores
        The order of questions changes nothing.

    Raises
    ------
    ValueError
        If an argument breaks its rule, or no question is graded.
    TypeError
        If an argument is of the wrong kind.

    Notes
    -----
    *What is estimated.* The calibration error of each confidence as it is computed, from N answers, R splits:
    not that of the true shares, from which both "sem1" and "sem2" are off by O(1 / sqrt(N)), THEORY 12.3.
    "sem2" has the smaller error where the model is over-confident and answers are close, not always: an
    under-confident model looks better with inflated confidences, and for a model that is right as often as it
    gives an answer, "sem2" is right on average but noisier (THEORY 12.2, 12.4). Low margins are those that
    were observed; THEORY 12.5 says what this selects.

    *Intervals* are percentiles of a bootstrap of questions, for all confidences the same. Errors that are
    small beside their noise are missed too often, being estimated too high; a warning says where, as in
    `calcore.compare`. How often 95 % intervals held the error of the population, in simulations with ten bins
    and the populations of `QuestionPopulation.by_margin` (200 samples each, 60 of 5,000 questions):

    ==========================  ==  =========  =====  =====  =======  =====  =====  =======
    population                  N   questions  Sem1   held   warned   Sem2   held   warned
    ==========================  ==  =========  =====  =====  =======  =====  =====  =======
    right as often as given     20  200        .058   70 %   90 %     .064   58 %   93 %
    ..                          20  1,000      .058   95 %   45 %     .064   90 %   62 %
    ..                          20  5,000      .058   97 %   2 %      .064   93 %   3 %
    ..                          50  1,000      .027   74 %   87 %     .037   80 %   85 %
    ..                          50  5,000      .027   88 %   47 %     .037   90 %   28 %
    ``known=0.7``               20  200        .218   95 %   4 %      .166   92 %   40 %
    ..                          20  1,000      .218   92 %   0 %      .166   92 %   6 %
    ..                          50  1,000      .197   97 %   0 %      .168   96 %   0 %
    ``sharpness=4``, .1 to .3   10  200        .119   91 %   42 %     .216   90 %   24 %
    ..                          20  1,000      .174   96 %   0 %      .233   96 %   0 %
    ==========================  ==  =========  =====  =====  =======  =====  =====  =======

    With fewer than 10 graded questions of either grade nothing is called distinguishable.

    *Certificates* hold at every number of questions if these are independent draws from one population (no
    paraphrases, no several questions about one text). "sem1" and "sem2" are fractions by design: nothing is
    assumed. The others use the default of `calcore.certify`, and say what they assume. With "split", one row
    of each question is certified.

    *Missing confidences.* A confidence that some graded questions lack is scored on those that have it, and
    compared with "sem1" and "sem2" there.

    References
    ----------
    Wang et al. (2026), arXiv 2605.08432.

    Examples
    --------
    >>> ids = [f"q{i}" for i in range(40)]
    >>> samples = SemanticSamples.of(ids, [[0, 0, 0, 1]] * 40, grades=[1, 1, 0, 1] * 10)
    >>> found = score_samples(samples, n_resamples=99)
    >>> found.accuracy, found.score("sem1").ece.estimate  # 3/4 of all answers, right in 3/4 of all questions
    (0.75, 0.0)
    """
    if not isinstance(samples, SemanticSamples):
        raise TypeError(f"samples must be SemanticSamples; got {type(samples).__name__}")
    delta = _validate.probability(delta, "delta")
    bins = _validate.bin_count(n_bins)
    missing = _checked_missing(missing_verbalized)
    number = checked_seed(seed)
    samples = _in_order(samples)
    sem1, sem2 = (
        semantic_confidence(
            samples,
            estimator=estimator,
            n_splits=n_splits,
            seed=number,
            ties=ties,
            correctness=correctness if estimator == "sem2" else "mode",
            n_threads=n_threads,
        )
        for estimator in get_args(Estimator)
    )
    columns, n_missing = _columns(samples, sem1, sem2, missing)
    graded = columns["sem1"]
    options: dict[str, Any] = {
        "metrics": (f"ece@{bins}", "brier"),
        "n_resamples": n_resamples,
        "delta": delta,
        "rng": number,
        "n_threads": n_threads,
    }
    found = _Found.of(columns, options, correctness)
    scores = tuple(
        _score(name, column, found.estimates[name], delta, correctness, number)
        for name, column in columns.items()
    )
    margins = semantic_margins(samples, n_threads=n_threads)
    low, note = _low_margin(columns, margins.low, options, correctness)
    right = int(np.count_nonzero(_one_each(graded).labels))
    n_graded = len(np.unique(graded.question))
    sizes = samples.sizes
    return SemanticScores(
        n_questions=len(samples),
        n_graded=n_graded,
        n_answers=(int(sizes.min()), int(sizes.max())),
        accuracy=right / n_graded,
        accuracy_interval=Interval(
            kl_lower(right / n_graded, math.log(2.0 / delta) / n_graded),
            kl_upper(right / n_graded, math.log(2.0 / delta) / n_graded),
        ),
        scores=scores,
        differences=found.differences,
        n_of_differences=found.n_of_differences,
        margins=gap_by_margin(samples, sem1, sem2),
        n_low_margin=int(np.count_nonzero(margins.low)),
        low_margin=low,
        low_margin_note=note,
        n_missing_verbalized=n_missing,
        missing_verbalized=missing,
        n_bins=bins,
        n_splits=sem2.n_splits,
        seed=number,
        ties=str(ties),
        correctness=str(correctness),
        n_resamples=int(n_resamples),
        delta=delta,
        warnings=tuple(
            _warnings(samples, n_graded, right, n_missing, missing, scores, found.warnings, str(ties))
        ),
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SemanticComparison:
    """Models on the questions that all of them have graded answers to; from `compare_semantic`.

    Attributes
    ----------
    models : tuple of str
    n : int
        Common graded questions.
    n_left_out : mapping of str to int
        Questions of each model that are not among them.
    accuracy : mapping of str to float
        Of each model, on these.
    comparisons : mapping of str to ModelComparison
        By estimator: binned errors and Brier scores, their differences, and what can be told apart. Resamples
        are of questions, and the same for all. `n_positive` is that of the first model.
    warnings : tuple of str
        Of questions; each comparison has its own too.
    """

    models: tuple[str, ...]
    n: int
    n_left_out: Mapping[str, int]
    accuracy: Mapping[str, float]
    comparisons: Mapping[str, ModelComparison]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}

    def __repr__(self) -> str:
        found = sum(each.distinguishable for one in self.comparisons.values() for each in one.differences)
        total = sum(len(one.differences) for one in self.comparisons.values())
        return (
            f"<SemanticComparison of {', '.join(self.models)}: {found} of {total} differences "
            f"distinguishable, n={self.n}>"
        )


def compare_semantic(
    models: Mapping[str, SemanticSamples],
    *,
    estimators: Sequence[Estimator] = ("sem1", "sem2"),
    n_bins: int = 10,
    n_splits: int = 10,
    seed: int = 0,
    ties: Ties = "first",
    correctness: Correctness = "mode",
    n_resamples: int = 2000,
    delta: float = 0.05,
    n_threads: int | None = None,
) -> SemanticComparison:
    """Compare models that answered the same questions: which differences can the questions show?

    Parameters
    ----------
    models : mapping of str to SemanticSamples
        Two or more; questions are known by their ids. Each model's own answers are graded.
    estimators : sequence of {"sem1", "sem2"}
    n_bins, n_splits, seed, ties, correctness, n_resamples, delta, n_threads
        As in `score_samples`.

    Returns
    -------
    SemanticComparison

    Raises
    ------
    ValueError
        If an argument breaks its rule, or no question is graded in all models.
    TypeError
        If an argument is of the wrong kind.

    Notes
    -----
    The Brier score decides which confidences are better. Binned errors are biased as in `calcore.compare`.

    Examples
    --------
    >>> ids = [f"q{i}" for i in range(40)]
    >>> one = SemanticSamples.of(ids, [[0, 0, 0, 1]] * 40, grades=[1, 1, 0, 1] * 10)
    >>> two = SemanticSamples.of(ids[5:], [[0, 0, 0, 0]] * 35, grades=([1, 1, 0, 1] * 10)[5:])
    >>> found = compare_semantic({"one": one, "two": two}, estimators=["sem1"], n_resamples=99)
    >>> found.n, found.n_left_out["one"]
    (35, 5)
    >>> found.comparisons["sem1"].estimate("two", "ece@10").estimate  # always sure, wrong in 9 of 35
    0.2571428571428571
    """
    if not isinstance(models, Mapping):
        raise TypeError(f"models must be a mapping from names to samples; got {type(models).__name__}")
    if len(models) < 2:
        raise ValueError(f"models must hold at least two models; got {len(models)}")
    for name, samples in models.items():
        if not isinstance(name, str):
            raise TypeError(f"models must have names of type str as keys; got {name!r:.60}")
        if not isinstance(samples, SemanticSamples):
            raise TypeError(f"models[{name!r}] must be SemanticSamples; got {type(samples).__name__}")
    wanted = [estimators] if isinstance(estimators, str) else list(estimators)
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError("estimators must name at least one, each once")
    for estimator in wanted:
        _validate.choice(estimator, "estimators", get_args(Estimator))
    delta = _validate.probability(delta, "delta")
    number = checked_seed(seed)
    common = sorted(set.intersection(*(set(samples.ids) for samples in models.values())))
    if not common:
        raise ValueError("models must have questions in common; no id is in all of them")
    by_model: dict[str, dict[str, SemanticConfidences]] = {}
    usable = np.ones(len(common), np.bool_)
    for name, samples in models.items():
        place = {question: i for i, question in enumerate(samples.ids)}
        shared = samples.take(np.array([place[question] for question in common]))
        by_model[name] = {
            estimator: semantic_confidence(
                shared,
                estimator=estimator,
                n_splits=n_splits,
                seed=number,
                ties=ties,
                correctness=correctness if estimator == "sem2" else "mode",
                n_threads=n_threads,
            )
            for estimator in get_args(Estimator)
            if estimator in wanted or estimator == "sem1"
        }
        for confidences in by_model[name].values():
            usable &= np.isfinite(confidences.y)
    n = int(np.count_nonzero(usable))
    if not n:
        raise ValueError("models must have graded questions in common; got none")
    comparisons = {}
    for estimator in wanted:
        columns = {name: _column_of(found[estimator]).of(usable) for name, found in by_model.items()}
        comparisons[estimator] = _compared(
            columns,
            {
                "metrics": (f"ece@{_validate.bin_count(n_bins)}", "brier"),
                "n_resamples": n_resamples,
                "delta": delta,
                "rng": number,
                "n_threads": n_threads,
            },
        )
    return SemanticComparison(
        models=tuple(models),
        n=n,
        n_left_out={name: len(samples) - n for name, samples in models.items()},
        accuracy={name: float(found["sem1"].y[usable].mean()) for name, found in by_model.items()},
        comparisons=comparisons,
        warnings=tuple(_of_models(models, len(common), n)),
    )


def _of_models(models: Mapping[str, SemanticSamples], n_common: int, n: int) -> Iterator[str]:
    if n < n_common:
        yield f"{n_common - n} of {n_common} common questions are not graded in every model"
    for name, samples in models.items():
        if len(samples) > n_common:
            yield f"{len(samples) - n_common} questions of {name!r} are not among those of all models"
    answers = {name: float(samples.sizes.mean()) for name, samples in models.items()}
    if max(answers.values()) > 1.25 * min(answers.values()):
        told = ", ".join(f"{name!r} {mean:.4g}" for name, mean in answers.items())
        yield (
            f"answers to each question, on average: {told}. Confidences from fewer answers are further off, "
            "so that part of the difference is of the number of answers; `truncated` makes numbers equal"
        )


# --- parts -------------------------------------------------------------------------------------------------


def _checked_missing(missing: Any) -> Missing:
    if isinstance(missing, str):
        _validate.choice(missing, "missing_verbalized", ("drop",))
        return "drop"
    value = _validate.nonnegative_number(missing, "missing_verbalized")
    if value > 1.0:
        raise ValueError(f"missing_verbalized must lie in [0, 1], or be 'drop'; got {value:g}")
    return value


def _in_order(samples: SemanticSamples) -> SemanticSamples:
    """Questions in the order of their ids: a bootstrap sees rows by their places."""
    order = np.array(sorted(range(len(samples)), key=samples.ids.__getitem__))
    return samples if np.all(order[:-1] < order[1:]) else samples.take(order)


def _column_of(confidences: SemanticConfidences) -> _Column:
    rows = confidences.rows()
    return _Column(rows.question, rows.y_true, rows.y_prob)


def _columns(
    samples: SemanticSamples, sem1: SemanticConfidences, sem2: SemanticConfidences, missing: Missing
) -> tuple[dict[str, _Column], int]:
    """Every confidence that is there, on the graded questions; and stated confidences that are missing."""
    graded = np.isfinite(sem1.y) & np.isfinite(sem2.y)
    if not graded.any():
        split = " by every class that a split chose" if sem2.split_y is not None else ""
        raise ValueError(f"samples must hold at least one question that is graded{split}; got none")
    own = _column_of(sem2).of(graded)
    columns = {"sem2": own}
    labels = sem1.y[own.question].astype(np.uint8)

    def repeated(values: Floats) -> _Column:
        scores = values[own.question]
        kept = np.isfinite(scores)
        return _Column(own.question[kept], labels[kept], scores[kept])

    columns = {"sem1": repeated(sem1.confidence), "sem2": own}
    stated, absent = _verbalized_means(samples, missing)
    for name, values in (("ver", stated), ("logit", samples.logit)):
        if values is not None and np.isfinite(values[graded]).any():
            columns[name] = repeated(values)
    return columns, int(absent[graded].sum())


_STATED_DIGITS = 12
"""Decimals that means of stated confidences keep: those are decimals, and ten of 0.3 have the mean 0.3."""


def _verbalized_means(samples: SemanticSamples, missing: Missing) -> tuple[Floats | None, Integers]:
    """Mean stated confidence of each question, NaN where there is none, and how many are missing."""
    none = np.zeros(len(samples), np.int64)
    if samples.verbalized is None:
        if samples.verbalized_means is None:
            return None, none
        gone = np.isnan(samples.verbalized_means)
        means = samples.verbalized_means
        return (means if missing == "drop" else np.where(gone, missing, means)), gone.astype(np.int64)
    gone = np.isnan(samples.verbalized)
    absent = np.add.reduceat(gone.astype(np.int64), samples.offsets[:-1])
    filled = np.where(gone, 0.0 if missing == "drop" else missing, samples.verbalized)
    sums = np.add.reduceat(filled, samples.offsets[:-1])
    counts = samples.sizes - absent if missing == "drop" else samples.sizes
    with np.errstate(invalid="ignore"):
        return np.round(sums / counts, _STATED_DIGITS), absent


def _compared(columns: Mapping[str, _Column], options: Mapping[str, Any]) -> ModelComparison:
    """Confidences of the same questions, each with labels of its own."""
    first = next(iter(columns.values()))
    rows = {name: _validate.binary(column.labels, column.scores) for name, column in columns.items()}
    groups = first.question if len(np.unique(first.question)) < len(first.question) else None
    return compare_rows(rows, groups=groups, **options)


class _Found(NamedTuple):
    """Of all comparisons: estimates by confidence, and differences with the numbers of their questions."""

    estimates: dict[str, tuple[MetricEstimate, ...]]
    differences: tuple[MetricDifference, ...]
    n_of_differences: tuple[int, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(
        cls, columns: Mapping[str, _Column], options: Mapping[str, Any], correctness: Correctness
    ) -> _Found:
        n = len(columns["sem1"].question)
        whole = {name: column for name, column in columns.items() if len(column.question) == n}
        sets = [whole]
        for name, column in columns.items():
            if name not in whole:
                has = np.zeros(int(columns["sem1"].question.max()) + 1, np.bool_)
                has[column.question] = True
                sets.append({key: columns[key].of(has) for key in ("sem1", "sem2")} | {name: column})
        estimates: dict[str, tuple[MetricEstimate, ...]] = {}
        differences: list[MetricDifference] = []
        numbers: list[int] = []
        warnings: dict[str, None] = {}
        for some in sets:
            compared = _compared(some, options)
            new = [name for name in some if name not in estimates]
            for name in new:
                estimates[name] = tuple(each for each in compared.estimates if each.model == name)
            kept = [each for each in compared.differences if each.a in new or each.b in new]
            differences += kept
            numbers += [len(np.unique(next(iter(some.values())).question))] * len(kept)
            warnings |= dict.fromkeys(compared.warnings)
        return cls(estimates, tuple(differences), tuple(numbers), tuple(warnings))


def _one_each(column: _Column) -> _Column:
    """The first row of each question."""
    _, first = np.unique(column.question, return_index=True)
    return _Column(column.question[first], column.labels[first], column.scores[first])


def _score(
    name: str,
    column: _Column,
    estimates: tuple[MetricEstimate, ...],
    delta: float,
    correctness: Correctness,
    seed: int,
) -> EstimatorScore:
    ece, brier = estimates
    sampled = name in get_args(Estimator)
    several = correctness == "split" and name == "sem2"
    rows = column if several else _one_each(column)
    certificate = certify(
        rows.labels,
        rows.scores,
        delta=delta,
        variation=math.inf if sampled else None,
        groups=rows.question if several else None,
        rng=seed,
    )
    return EstimatorScore(
        estimator=name,
        n=len(np.unique(column.question)),
        ece=ece,
        brier=brier,
        mean_confidence=math.fsum(column.scores) / len(column.scores),
        accuracy=int(np.count_nonzero(column.labels)) / len(column.labels),
        certificate=certificate,
    )


def _low_margin(
    columns: Mapping[str, _Column],
    low: NDArray[np.bool_],
    options: Mapping[str, Any],
    correctness: Correctness,
) -> tuple[LowMargin | None, str]:
    both = {name: columns[name].of(low) for name in get_args(Estimator)}
    n = len(np.unique(both["sem1"].question))
    if n < _ENOUGH_LOW:
        return None, f"{n} graded questions have a low margin; that takes at least {_ENOUGH_LOW}"
    compared = _compared(both, options)
    name = options["metrics"][0]
    excess = [
        (math.fsum(column.scores) - int(np.count_nonzero(column.labels))) / len(column.labels)
        for column in both.values()
    ]
    found = LowMargin(
        n=n,
        sem1=compared.estimate("sem1", name),
        sem2=compared.estimate("sem2", name),
        difference=compared.difference("sem1", "sem2", name),
        sem1_excess=excess[0],
        sem2_excess=excess[1],
        warnings=compared.warnings,
    )
    return found, ""


def _warnings(
    samples: SemanticSamples,
    n_graded: int,
    right: int,
    n_missing: int,
    missing: Missing,
    scores: tuple[EstimatorScore, ...],
    of_comparisons: tuple[str, ...],
    ties: str,
) -> Iterator[str]:
    lost = samples.n_graded - n_graded
    if ties == "random" and samples.class_grades is None and lost:
        yield (
            f"{lost} tied questions are left out, since another of their modes was graded than was drawn: "
            "accuracy comes out too high; class grades mend that"
        )
    if n_graded < len(samples):
        yield f"{len(samples) - n_graded} of {len(samples)} questions are not graded; errors leave them out"
    if min(right, n_graded - right) < _FEW:
        yield (
            f"{right} of {n_graded} graded answers are right: fewer than {_FEW} of either grade decide "
            "nothing"
        )
    if len(set(samples.sizes.tolist())) > 1:
        yield (
            f"questions have {samples.sizes.min()} to {samples.sizes.max()} answers: confidences from few "
            "are further off; `truncated` makes numbers equal"
        )
    if n_missing:
        what = "left out of their means" if missing == "drop" else f"counted as {missing:g}"
        yield f"{n_missing} stated confidences are missing, {what}"
    for each in scores:
        if each.n < n_graded:
            yield f"{each.estimator}: {n_graded - each.n} graded questions have no such confidence"
    yield from of_comparisons


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
