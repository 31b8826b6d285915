"""Questions from a file into the samples that are scored: classes and grades, without the texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from calcore.semantic.agreement import JudgeAgreement, judge_agreement
from calcore.semantic.records import CLASSES_MISSING, Misfit, Question
from calcore.semantic.samples import SemanticSamples

__all__ = ["GatheredSamples", "agreement_of", "gather_samples"]

_LEAST = 2


@dataclass(frozen=True, slots=True, eq=False)
class GatheredSamples:
    """Samples to be scored, and what did not fit; from `gather_samples`.

    Attributes
    ----------
    samples : SemanticSamples
    answers : tuple of (bytes or None)
        A hash of the texts of each question's answers, None where there are none: whether two files are about
        the same answers.
    misfits : tuple of Misfit
    """

    samples: SemanticSamples
    answers: tuple[bytes | None, ...]
    misfits: tuple[Misfit, ...]

    def __repr__(self) -> str:
        return f"<GatheredSamples: {self.samples!r}, {len(self.misfits)} misfits>"


def gather_samples(questions: Iterable[Question | Misfit]) -> GatheredSamples:
    """Gather what is scored from questions; texts are not held.

    Parameters
    ----------
    questions : iterable of Question or Misfit
        Those without assignments, or with fewer than two answers, are misfits.

    Raises
    ------
    ValueError
        No question fits.

    Notes
    -----
    Where one question has a single stated confidence, their mean, it counts as that of each of its answers,
    unless all do. Where no question has any, there are none: an empty column is no confidence.

    `SemanticSamples` takes the lowest number of equally frequent classes for the mode. Where a file names
    another one (``modal_cluster``), the numbers of these two classes are exchanged.

    Examples
    --------
    >>> gather_samples([Question("a", assignments=(0, 0, 1), grade=1), Question("b", assignments=(0,))])
    <GatheredSamples: <SemanticSamples: 1 question, 3 answers, 1 graded>, 1 misfits>
    """
    kept: list[Question] = []
    answers: list[bytes | None] = []
    misfits: list[Misfit] = []
    for each in questions:
        checked = _scorable(each)
        if isinstance(checked, Misfit):
            misfits.append(checked)
            continue
        answers.append(_hashed(checked.answers))
        kept.append(checked)
    if not kept:
        first = f"; the first: {misfits[0]}" if misfits else ""
        raise ValueError(f"there is no question to score{first}")
    samples = SemanticSamples.of(
        [each.id for each in kept],
        [each.assignments for each in kept],
        grades=[each.grade for each in kept],
        modes=[each.modes[0] for each in kept],
        class_grades=_class_grades(kept),
        verbalized=_verbalized(kept),
        logit=[each.logit for each in kept] if any(each.logit is not None for each in kept) else None,
    )
    return GatheredSamples(samples, tuple(answers), tuple(misfits))


def agreement_of(a: GatheredSamples, b: GatheredSamples) -> JudgeAgreement | None:
    """How two judges agree on the questions that both sorted the same answers of; None if there are none."""
    place = {identity: i for i, identity in enumerate(b.samples.ids)}
    pairs = []
    for i, identity in enumerate(a.samples.ids):
        j = place.get(identity)
        if j is not None and a.answers[i] is not None and a.answers[i] == b.answers[j]:
            pairs.append((_codes(a.samples, i), _codes(b.samples, j)))
    return judge_agreement(pairs) if pairs else None


def _codes(samples: SemanticSamples, question: int) -> list[int]:
    start, stop = samples.offsets[question : question + 2].tolist()
    codes: list[int] = samples.codes[start:stop].tolist()
    return codes


def _scorable(each: Question | Misfit) -> Question | Misfit:
    if isinstance(each, Misfit):
        return each
    if each.assignments is None:
        return Misfit(each.id, 0, CLASSES_MISSING)
    if len(each.assignments) < _LEAST:
        return Misfit(each.id, 0, f"{len(each.assignments)} answer; a confidence takes at least {_LEAST}")
    return each


def _hashed(answers: tuple[str, ...] | None) -> bytes | None:
    if answers is None:
        return None
    whole = blake2b(digest_size=16)
    for text in answers:
        encoded = text.encode()
        whole.update(len(encoded).to_bytes(8) + encoded)
    return whole.digest()


def _class_grades(kept: list[Question]) -> list[dict[int, int | None] | None] | None:
    """Grades of classes, if there are any beside those of the modes."""
    if not any(set(each.class_grades) - set(each.modes[:1]) for each in kept):
        return None
    found: list[dict[int, int | None] | None] = []
    for each in kept:
        grades = dict(each.class_grades)
        if each.grade is not None:
            grades[each.modes[0]] = each.grade
        found.append(grades or None)
    return found


def _verbalized(kept: list[Question]) -> list[float | None] | list[list[float | None]] | None:
    """Means if there is nothing else, else the confidence of each answer."""
    given = [each.verbalized for each in kept if each.verbalized is not None]
    if all(isinstance(each, tuple) and not any(c is not None for c in each) for each in given):
        return None
    if not any(isinstance(each, tuple) for each in given):
        return [each.verbalized if isinstance(each.verbalized, float) else None for each in kept]
    return [
        list(each.verbalized)
        if isinstance(each.verbalized, tuple)
        else [each.verbalized] * len(each.assignments or ())
        for each in kept
    ]
