"""What fewer answers would have given: the same questions, scored at several numbers of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcore import _validate, figures
from calcore.semantic.estimators import Correctness, Ties
from calcore.semantic.samples import SemanticSamples
from calcore.semantic.scoring import SemanticScores, score_samples

if TYPE_CHECKING:
    from calcore.figures import Axes

__all__ = ["ANSWERS", "AnswerSweep", "sweep_answers"]

ANSWERS = (5, 10, 20, 30, 50, 100)
"""Numbers of answers of the published sweep."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnswerSweep:
    """Scores at several numbers of answers; from `sweep_answers`.

    Attributes
    ----------
    n_answers : tuple of int
        Ascending: the first so many answers of each question.
    scores : tuple of SemanticScores
        One for each, all of the same questions.
    n_questions : int
        Questions that have as many answers as the largest of `n_answers`.
    n_left_out : int
        Questions with fewer.
    """

    n_answers: tuple[int, ...]
    scores: tuple[SemanticScores, ...]
    n_questions: int
    n_left_out: int

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors of Sem1 and Sem2 over the number of answers, with their intervals.

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
        for name, label in (("sem1", "Sem1"), ("sem2", "Sem2")):
            found = [each.score(name).ece for each in self.scores]
            ax = figures.error_over(
                ax,
                np.array(self.n_answers, np.float64),
                np.array([each.estimate for each in found]),
                np.array([(each.interval.lower, each.interval.upper) for each in found]),
                label=label,
                title=f"Calibration error, {self.n_questions:,} questions",
                about="Answers to each question",
            )
        assert ax is not None
        return ax

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        return {
            "n_answers": list(self.n_answers),
            "n_questions": self.n_questions,
            "n_left_out": self.n_left_out,
            "scores": [each.to_dict() for each in self.scores],
        }

    def __repr__(self) -> str:
        ends = ", ".join(
            f"{n}: {each.score('sem1').ece.estimate:.4g} and {each.score('sem2').ece.estimate:.4g}"
            for n, each in zip(self.n_answers, self.scores, strict=True)
        )
        return f"<AnswerSweep of {self.n_questions} questions, ECE of Sem1 and Sem2 by answers: {ends}>"


def sweep_answers(
    samples: SemanticSamples,
    n_answers: Sequence[int] = ANSWERS,
    *,
    n_bins: int = 10,
    n_splits: int = 10,
    seed: int = 0,
    ties: Ties = "first",
    correctness: Correctness = "mode",
    n_resamples: int = 2000,
    delta: float = 0.05,
    n_threads: int | None = None,
) -> AnswerSweep:
    """Score the same questions at several numbers of answers, from one set of samples.

    Parameters
    ----------
    samples : SemanticSamples
    n_answers : sequence of int, default (5, 10, 20, 30, 50, 100)
        Each at least 2. Those that no question has are left out of the default, and are an error otherwise.
    n_bins, n_splits, seed, ties, correctness, n_resamples, delta, n_threads
        As in `score_samples`.

    Returns
    -------
    AnswerSweep

    Raises
    ------
    ValueError
        If `n_answers` is empty or has a number more than once; if no question has so many answers, or none of
        these is graded.
    TypeError
        If an argument is of the wrong kind.

    Notes
    -----
    All numbers are of the questions that have the largest number of answers, so that only the number of
    answers differs. Without class grades the grade is that of the mode of all answers throughout, as in the
    published sweeps; see `SemanticSamples.truncated`.

    Examples
    --------
    >>> samples = SemanticSamples.of([f"q{i}" for i in range(40)], [[0, 0, 1, 1]] * 40, grades=[1, 0] * 20)
    >>> sweep_answers(samples, [2, 3], n_resamples=99).scores[0].score("sem1").ece.estimate  # 1 - 1/2
    0.5
    """
    if not isinstance(samples, SemanticSamples):
        raise TypeError(f"samples must be SemanticSamples; got {type(samples).__name__}")
    most = int(samples.sizes.max())
    if n_answers is ANSWERS:
        wanted = [n for n in ANSWERS if n <= most]
        wanted += [most] if not wanted else []
    else:
        wanted = [_validate.whole_number(n, "n_answers", low=2) for n in n_answers]
    if not wanted:
        raise ValueError("n_answers must hold at least one number; got none")
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"n_answers must be different numbers; got {', '.join(map(str, wanted))}")
    wanted.sort()
    if wanted[-1] > most:
        raise ValueError(f"n_answers must be at most {most}, the most answers of any; got {wanted[-1]}")
    same = samples.take(np.flatnonzero(samples.sizes >= wanted[-1]))
    scores = tuple(
        score_samples(
            same.truncated(n),
            n_bins=n_bins,
            n_splits=n_splits,
            seed=seed,
            ties=ties,
            correctness=correctness,
            n_resamples=n_resamples,
            delta=delta,
            n_threads=n_threads,
        )
        for n in wanted
    )
    left_out = samples.n_questions - same.n_questions
    return AnswerSweep(tuple(wanted), scores, same.n_questions, left_out)
