"""Questions whose answers and whose truth have known laws: for trying out and testing, without a network.

Examples
--------
A model whose answers are right as often as it gives them, asked ten times. "sem1" claims a tenth too much,
because it is chosen for being high; "sem2" does not.

>>> from calcore.semantic import score_samples
>>> population = QuestionPopulation.by_margin([0.0, 0.05, 0.1])
>>> scores = score_samples(population.draw(5000, 10), n_resamples=99)
>>> [round(scores.score(estimator).excess, 1) + 0.0 for estimator in ("sem1", "sem2")]
[0.1, 0.0]

Their errors approach that of the true shares, here 0, as there are more answers:

>>> population.ece("star"), [round(population.ece("sem1", n), 2) for n in (5, 20, 50)]
(0.0, [0.19, 0.09, 0.05])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import binning
from calcore.results import freeze, rebuilt
from calcore.semantic.estimators import CORRECTNESS, Correctness
from calcore.semantic.expected import mode_law
from calcore.semantic.samples import SemanticSamples

__all__ = ["QuestionPopulation"]

Floats = NDArray[np.float64]
Confidence = Literal["star", "sem1", "sem2"]

_STREAM = 0x5E3A471C
_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuestionPopulation:
    """Kinds of questions: how often each comes, what the model answers, and what is right.

    Attributes
    ----------
    weights : read-only float64 array of shape (T,)
        Share of each kind.
    shares : read-only float64 array of shape (T, K)
        Shares of the model's answers in K classes. Class 0 should be the most frequent: as ties go to the
        lowest class, they then go to it.
    right : read-only float64 array of shape (T, K)
        Probability that a class is the right one. At most one is: rows sum to 1 or less.
    """

    weights: Floats
    shares: Floats
    right: Floats

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def __repr__(self) -> str:
        kinds, classes = self.shares.shape
        return f"<QuestionPopulation: {kinds} kind{'s' if kinds > 1 else ''}, {classes} classes>"

    @classmethod
    def of(cls, weights: ArrayLike, shares: ArrayLike, right: ArrayLike) -> QuestionPopulation:
        """Check and hold a population.

        Raises
        ------
        ValueError
            If shapes differ, or numbers are no probabilities.

        Examples
        --------
        >>> QuestionPopulation.of([1.0], [[0.75, 0.25]], [[0.5, 0.25]])
        <QuestionPopulation: 1 kind, 2 classes>
        """
        found = [np.array(each, np.float64) for each in (weights, shares, right)]
        w, pi, tau = found
        if w.ndim != 1 or not w.size or pi.ndim != 2 or len(pi) != len(w) or tau.shape != pi.shape:
            raise ValueError(
                "weights, shares and right must have the shapes (T,), (T, K) and (T, K); got "
                f"{w.shape}, {pi.shape}, {tau.shape}"
            )
        for name, each in zip(("weights", "shares", "right"), found, strict=True):
            if not np.all((each >= 0.0) & (each <= 1.0)):
                raise ValueError(f"{name} must lie in [0, 1]")
        for name, sums in (("weights", w.sum()), ("shares", pi.sum(axis=1))):
            if np.any(np.abs(sums - 1.0) > 1e-9):
                raise ValueError(f"{name} must sum to 1")
        if np.any(tau.sum(axis=1) > 1.0 + 1e-9):
            raise ValueError("right must have rows that sum to at most 1")
        return cls(w, pi, tau)

    @classmethod
    def by_margin(
        cls,
        margins: ArrayLike = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8),
        *,
        top_two: float = 0.9,
        n_others: int = 2,
        known: float = 1.0,
        sharpness: float = 1.0,
    ) -> QuestionPopulation:
        """Questions of equal frequency with given margins between the two most frequent answers.

        Parameters
        ----------
        margins : array_like
            Each in [0, `top_two`].
        top_two : float, default .9
            Share of the two most frequent classes together; the others share the rest.
        n_others : int, default 2
            Other classes; if 0, `top_two` must be 1.
        known : float, default 1
            Probability that any class is right, at most 1. Below 1 the model is over-confident.
        sharpness : float, default 1
            Classes are right in proportion to their shares to this power. With 1, and `known` 1, a class is
            right as often as it is given: the true share is a perfect confidence. Above 1 the model is
            under-confident: its answers vary more than the truth does.

        Returns
        -------
        QuestionPopulation

        Examples
        --------
        >>> QuestionPopulation.by_margin([0.1, 0.5], top_two=1.0, n_others=0).shares
        array([[0.55, 0.45],
               [0.75, 0.25]])
        """
        gaps = _validate.numbers(margins, "margins")
        others = _validate.whole_number(n_others, "n_others", low=0, high=1000)
        both = _validate.positive_number(top_two, "top_two")
        any_right = _validate.nonnegative_number(known, "known")
        power = _validate.positive_number(sharpness, "sharpness")
        if any_right > 1.0:
            raise ValueError(f"known must lie in [0, 1]; got {any_right:g}")
        if both > 1.0 or (others == 0 and both != 1.0):
            raise ValueError(f"top_two must be at most 1, and 1 without other classes; got {both:g}")
        if np.any((gaps < 0.0) | (gaps > both)):
            raise ValueError(f"margins must lie in [0, {both:g}]")
        shares = np.empty((len(gaps), 2 + others))
        shares[:, 0], shares[:, 1] = 0.5 * (both + gaps), 0.5 * (both - gaps)
        shares[:, 2:] = (1.0 - both) / max(others, 1)
        right = shares**power
        right *= any_right / right.sum(axis=1, keepdims=True)
        return cls.of(np.full(len(gaps), 1.0 / len(gaps)), shares, right)

    def draw(self, n_questions: int, n_answers: int, *, seed: int = 0) -> SemanticSamples:
        """Draw questions, answers and grades of all classes.

        Parameters
        ----------
        n_questions, n_answers : int
        seed : int, default 0
            The same seed gives the same questions. With more answers, the first ones stay.

        Returns
        -------
        SemanticSamples
            Questions are called "q0", "q1", ...; classes have their numbers in `shares`.

        Examples
        --------
        >>> QuestionPopulation.by_margin([0.2]).draw(100, 10)
        <SemanticSamples: 100 questions, 10 answers, 100 graded>
        """
        n = _validate.whole_number(n_questions, "n_questions", low=1)
        each = _validate.whole_number(n_answers, "n_answers", low=2)
        number = _validate.whole_number(seed, "seed", low=0)
        assignments = np.empty((n, each), np.int64)
        grades = np.empty((n, self.shares.shape[1]))
        steps = self.shares.cumsum(axis=1)[:, :-1]
        thresholds = self.right.cumsum(axis=1)
        for start in range(0, n, _BLOCK):
            rng = np.random.default_rng(np.random.SeedSequence([number, _STREAM, start // _BLOCK]))
            rows = min(_BLOCK, n - start)
            kind = np.searchsorted(self.weights.cumsum()[:-1], rng.random(_BLOCK), side="right")[:rows]
            truth = rng.random(_BLOCK)[:rows, None]
            below = np.concatenate([np.zeros((rows, 1)), thresholds[kind][:, :-1]], axis=1)
            grades[start : start + rows] = (truth >= below) & (truth < thresholds[kind])
            for i in range(each):
                uniform = rng.random(_BLOCK)[:rows, None]
                assignments[start : start + rows, i] = (uniform >= steps[kind]).sum(axis=1)
        names = [f"q{i}" for i in range(n)]
        return SemanticSamples.of(names, assignments, class_grades=grades.tolist())

    def ece(
        self,
        confidence: Confidence,
        n: int = 0,
        *,
        correctness: Correctness = "mode",
        n_bins: int = 10,
    ) -> float:
        """Calibration error over equally wide bins of infinitely many questions, exactly.

        Parameters
        ----------
        confidence : {"star", "sem1", "sem2"}
            "star" is the true share of class 0 against its being right: what both estimate. "sem2" is of
            single splits, with ``correctness="split"``: the law of means over splits has no simple form.
        n : int
            Answers; not used for "star".
        correctness : {"mode", "split"}
            As in `semantic_confidence`; "split" for "sem2".
        n_bins : int, default 10

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If an argument breaks its rule.

        Notes
        -----
        Ties go to the lowest class. ``sum_b |E[(C - Y); C in b]|`` over the exact law of (C, Y).

        Examples
        --------
        >>> QuestionPopulation.by_margin([0.2, 0.4]).ece("star")
        0.0
        """
        _validate.choice(confidence, "confidence", get_args(Confidence))
        _validate.choice(correctness, "correctness", CORRECTNESS)
        count = _validate.bin_count(n_bins)
        if (confidence == "sem2") != (correctness == "split"):
            raise ValueError(
                "correctness must be 'split' for 'sem2', whose means over splits have no simple law, and "
                f"'mode' for others; got {correctness!r} for {confidence!r}"
            )
        excess: list[list[float]] = [[] for _ in range(count)]
        for weight, shares, right in zip(self.weights, self.shares, self.right, strict=True):
            if confidence == "star":
                law, scores = np.array([[1.0]]), shares[:1]
            elif confidence == "sem1":
                law = mode_law(shares, n)
                scores = np.arange(n + 1) / n
            else:
                law, scores = _held_out(shares, n)
            bins = binning.uniform_bins(_validate.read_only(scores), count)
            for k, probabilities in enumerate(law):
                for b, part in zip(bins, weight * probabilities * (scores - right[k]), strict=True):
                    excess[b].append(float(part))
        return math.fsum(abs(math.fsum(parts)) for parts in excess)


def _held_out(shares: Floats, n: int) -> tuple[Floats, Floats]:
    """Joint law of the class that floor(n / 2) answers choose and its share in the others; and the shares."""
    from scipy.stats import binom

    n = _validate.whole_number(n, "n", low=2)
    m = n - n // 2
    choice = mode_law(shares, n // 2).sum(axis=1)
    return choice[:, None] * binom.pmf(np.arange(m + 1), m, shares[:, None]), np.arange(m + 1) / m
