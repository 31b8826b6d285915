"""Answers into semantic classes, classes into grades: the steps between sampling and scoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from calcore.semantic.client import CallError
from calcore.semantic.judges.asked import Asked
from calcore.semantic.judges.judge import Judge, JudgeError
from calcore.semantic.pool import in_order
from calcore.semantic.records import CLASSES_MISSING, Misfit, Question
from calcore.semantic.sampler import PlannedCalls

__all__ = ["cluster_answers", "grade_answers", "plan_clusters", "plan_grades"]

Rows = Iterable[Question | Misfit]


def cluster_answers(questions: Rows, judge: Judge, *, n_threads: int = 1) -> Iterator[Question | Misfit]:
    """Let a judge sort the answers to each question into classes.

    Parameters
    ----------
    questions : iterable of Question or Misfit
        Misfits are handed on. Classes that are there already are replaced, and their grades dropped: these
        belong to classes.
    judge : Judge
    n_threads : int
        Questions under way at a time; for a judge that any thread may call.

    Yields
    ------
    Question or Misfit
        In the order of `questions`; a `Misfit` where the judge cannot say.
    """
    return in_order(partial(_step, _sortable, partial(_clustered, judge)), questions, n_threads=n_threads)


def grade_answers(
    questions: Rows, judge: Judge, *, classes: str = "mode", n_threads: int = 1
) -> Iterator[Question | Misfit]:
    """Let a judge grade the classes of each question by its reference answer.

    A class is graded by the text that is most frequent in it, of several the one that comes first.

    Parameters
    ----------
    questions : iterable of Question or Misfit
        Misfits are handed on. Grades that are there already are replaced.
    judge : Judge
    classes : {"mode", "all"}
        Which classes: the most frequent, or all of them.
    n_threads : int
        As for `cluster_answers`.

    Yields
    ------
    Question or Misfit
        In the order of `questions`. Where the judge could not say, the grade is missing (None).
    """
    if classes not in ("mode", "all"):
        raise ValueError(f"classes must be 'mode' or 'all'; got {classes!r}")
    return in_order(
        partial(_step, _gradable, partial(_graded, judge, classes)), questions, n_threads=n_threads
    )


def plan_clusters(questions: Rows, judge: Asked) -> PlannedCalls:
    """What `cluster_answers` would cost, without a call; repairs are not counted."""
    planned = PlannedCalls()
    for each in planned.questions_of(map(_sortable, questions)):
        if len(set(each.answers or ())) > 1:
            messages = judge.partition_messages(each.question or "", each.answers or ())
            planned.add(judge.client, messages, subject="")
    return planned


def plan_grades(questions: Rows, judge: Asked, *, classes: str = "mode") -> PlannedCalls:
    """What `grade_answers` would cost, without a call; repairs are not counted."""
    planned = PlannedCalls()
    for each in planned.questions_of(map(_gradable, questions)):
        for text in _representatives(each, classes).values():
            messages = judge.grade_messages(each.question or "", text, each.gold_answer or "")
            planned.add(judge.client, messages, subject="")
    return planned


def _step(
    check: Callable[[Question | Misfit], Question | Misfit],
    work: Callable[[Question], Question],
    each: Question | Misfit,
) -> Question | Misfit:
    checked = check(each)
    if isinstance(checked, Misfit):
        return checked
    try:
        return work(checked)
    except JudgeError as error:
        return Misfit(checked.id, 0, str(error), "reply")
    except CallError as error:
        return Misfit(checked.id, 0, str(error), "call")


def _sortable(each: Question | Misfit) -> Question | Misfit:
    if isinstance(each, Question) and each.answers is None:
        return Misfit(each.id, 0, "answers is missing: there is nothing to sort")
    return each


def _gradable(each: Question | Misfit) -> Question | Misfit:
    if isinstance(each, Question):
        for name in ("answers", "gold_answer"):
            if getattr(each, name) is None:
                return Misfit(each.id, 0, f"{name} is missing: there is nothing to grade by")
        if each.assignments is None:
            return Misfit(each.id, 0, CLASSES_MISSING)
        if not (each.gold_answer or "").strip():
            return Misfit(each.id, 0, "gold_answer is empty: there is nothing to grade by")
    return each


def _clustered(judge: Judge, each: Question) -> Question:
    answers = each.answers or ()
    classes = judge.partition(each.question or "", answers)
    if len(classes) != len(answers) or any(number < 0 for number in classes):
        raise JudgeError(f"the judge gave {len(classes)} classes for {len(answers)} answers, or one below 0")
    numbers = tuple(map(int, classes))
    return replace(each, assignments=numbers, modal_cluster=None, class_grades={}, grade=None)


def _graded(judge: Judge, classes: str, each: Question) -> Question:
    grades = {
        number: judge.grade(each.question or "", text, each.gold_answer or "")
        for number, text in _representatives(each, classes).items()
    }
    return replace(each, class_grades=grades, grade=grades[each.modes[0]])


def _representatives(each: Question, classes: str) -> dict[int, str]:
    """The most frequent text of each class that is to be graded."""
    numbers = each.assignments or ()
    texts = {
        number: Counter(a for a, k in zip(each.answers or (), numbers, strict=True) if k == number)
        for number in (each.modes if classes == "mode" else sorted(set(numbers)))
    }
    return {number: counts.most_common(1)[0][0] for number, counts in texts.items()}
