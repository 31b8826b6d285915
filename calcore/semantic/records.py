"""One question with its answers, classes and grades, made from a row of a file; and what does not fit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["CLASSES_MISSING", "GRADES", "Misfit", "Question", "question_of"]

GRADES: Mapping[str, int | None] = {
    "CORRECT": 1,
    "INCORRECT": 0,
    "NOT_ATTEMPTED": 0,
    "PARSE_ERROR": None,
}
"""Grades in words, as published, and what they count as; None is a missing grade."""

CLASSES_MISSING = "assignments is missing; 'calcore semantic cluster' makes them"

_ALSO = {"assignments": "cluster_assignments", "verbalized": "confidence_verbalized", "Y": "grade"}
"""Fields that published files call otherwise."""

_TEXTS = ("question", "gold_answer")
_LARGEST_CLASS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what is known of a model's answers to it.

    Attributes
    ----------
    id : str
        Names the question; unique in a file.
    question, gold_answer : str or None
    answers : tuple of str, or None
        Independent samples of the model's answer.
    assignments : tuple of int, or None
        The semantic class of each answer, numbered from 0 in any way.
    verbalized : tuple of (float or None), float, or None
        The confidence in [0, 1] that the model stated with each answer, None where it stated none; or
        their mean.
    class_grades : mapping of int to (int or None)
        Whether a class is right: 1, 0, or None if its grade is missing; classes without a grade are left out.
    grade : int or None
        The grade of the most frequent class, of several the first of `modes`.
    logit : float or None
        Confidence in [0, 1] from the probabilities of tokens.
    modal_cluster : int or None
        Which of several most frequent classes is the mode; None for the lowest number.
    others : mapping of str to object
        Fields that are not read here; they are kept.
    """

    id: str
    question: str | None = None
    gold_answer: str | None = None
    answers: tuple[str, ...] | None = None
    assignments: tuple[int, ...] | None = None
    verbalized: tuple[float | None, ...] | float | None = None
    class_grades: Mapping[int, int | None] = field(default_factory=dict)
    grade: int | None = None
    logit: float | None = None
    others: Mapping[str, Any] = field(default_factory=dict)
    modal_cluster: int | None = None

    @property
    def modes(self) -> tuple[int, ...]:
        """The most frequent classes: the mode, then the others by number; none without assignments."""
        counts = Counter(self.assignments or ())
        most = max(counts.values(), default=0)
        tied = sorted(number for number, count in counts.items() if count == most)
        return tuple(sorted(tied, key=lambda number: number != self.modal_cluster))

    def to_dict(self) -> dict[str, Any]:
        """The row of a file, ready for ``json.dumps``: what is not known is left out."""
        row: dict[str, Any] = {"id": self.id}
        for name in (*_TEXTS, "answers", "assignments", "modal_cluster", "verbalized", "logit"):
            value = getattr(self, name)
            if value is not None:
                row[name] = list(value) if isinstance(value, tuple) else value
        if self.class_grades:
            row["class_grades"] = {str(number): grade for number, grade in sorted(self.class_grades.items())}
        if self.grade is not None:
            row["Y"] = self.grade
        return row | {name: value for name, value in self.others.items() if name not in row}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A question that was left out, and why.

    Attributes
    ----------
    id : str or None
        None if the row has no id that can be read.
    row : int
        Number of the row in its file, from 1; 0 if it comes from no file.
    reason : str
        Text of others in it is quoted and escaped.
    stage : {"file", "call", "reply"}
        Where it failed: the row itself; a call of the endpoint; or what a judge replied.
    file : str or None
        The file of the row, where several were read.
    """

    id: str | None
    row: int
    reason: str
    stage: str = "file"
    file: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for ``json.dumps``."""
        return {name: getattr(self, name) for name in ("id", "file", "row", "reason", "stage")}

    def __str__(self) -> str:
        row = f"row {self.row:,}" if self.row else "a question"
        where = row if self.id is None else f"id {brief(self.id)}"
        return (
            f"{where}: {self.reason}"
            if self.file is None
            else f"{brief(self.file, 80)}, {where}: {self.reason}"
        )


def question_of(row: Mapping[str, Any]) -> Question:
    """A question from a row of a file, with the names of this library or those of published files.

    Fields are ``id``, ``question``, ``gold_answer``, ``answers``, ``assignments`` (or
    ``cluster_assignments``), ``verbalized`` (or ``confidence_verbalized``), ``logit``, and grades: ``Y`` (or
    ``grade``) of the most frequent class, ``class_grades`` of each class. Only ``id`` must be there; null
    counts as absent. A grade is 1, 0, true, false, null, or a word of `GRADES`. Of equally frequent classes
    ``modal_cluster``, of published files, is the mode, or the lowest number where that is not given.

    Raises
    ------
    ValueError
        A field does not fit; the message names it, and the value.

    Examples
    --------
    >>> q = question_of({"id": 7, "cluster_assignments": [1, 0, 1], "modal_cluster": 1, "grade": "CORRECT"})
    >>> q.id, q.assignments, q.modes, q.grade
    ('7', (1, 0, 1), (1,), 1)
    """
    if not isinstance(row, Mapping):
        raise ValueError(f"a row must be an object with named fields; got {brief(row)}")
    left = {name: value for name, value in row.items() if value is not None}

    def taken(name: str) -> tuple[str, Any]:
        """The name a field has in this row, and its value."""
        also = _ALSO.get(name, name)
        if also != name and also in left:
            if name in left:
                raise ValueError(f"{name} and {also} are the same field; leave one out")
            return also, left.pop(also)
        return name, left.pop(name, None)

    identity = _id(taken("id")[1])
    texts = {name: _text(*taken(name)) for name in _TEXTS}
    answers = _answers(*taken("answers"))
    assignments = _classes(*taken("assignments"))
    verbalized = _confidences(*taken("verbalized"))
    logit = _confidence(*taken("logit"))
    modal = taken("modal_cluster")[1]
    modal = None if modal is None else _class("modal_cluster", modal)
    grade = _grade(*taken("Y"))
    class_grades = _class_grades(*taken("class_grades"))
    sizes = {"answers": answers, "assignments": assignments, "verbalized": verbalized}
    lengths = {name: len(value) for name, value in sizes.items() if isinstance(value, tuple)}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"{' and '.join(lengths)} must have the same length; got {', '.join(map(str, lengths.values()))}"
        )
    made = Question(
        identity,
        **texts,
        answers=answers,
        assignments=assignments,
        verbalized=verbalized,
        class_grades=class_grades,
        grade=grade,
        logit=logit,
        others=left,
        modal_cluster=modal,
    )
    _agrees(made)
    if made.grade is None and made.modes and class_grades.get(made.modes[0]) is not None:
        return replace(made, grade=class_grades[made.modes[0]])
    return made


def _agrees(made: Question) -> None:
    """Refuse grades that are of another class than the mode, or of classes that no answer has."""
    if made.assignments is None:
        return
    mode = made.modes[0]
    if made.modal_cluster not in (None, mode):
        raise ValueError(
            f"modal_cluster is {made.modal_cluster}, but the most frequent class of assignments is {mode}: "
            "the grade would be that of another class; leave modal_cluster and the grade out, and grade again"
        )
    unknown = sorted(set(made.class_grades) - set(made.assignments))
    if unknown:
        raise ValueError(f"class_grades names class {unknown[0]}, which no answer is assigned to")
    of_mode = made.class_grades.get(mode)
    if None not in (of_mode, made.grade) and of_mode != made.grade:
        raise ValueError(
            f"Y is {made.grade}, but class_grades says {of_mode} of class {mode}, the most frequent"
        )


def brief(value: Any, size: int = 40) -> str:
    """A value as it may stand in a message: quoted, escaped, and cut if it is long.

    >>> brief("a\\x1b[31m"), brief("x" * 100, 8)
    ("'a\\\\x1b[31m'", "'xxxxxxx...")
    """
    text = repr(value[: size + 1] if isinstance(value, str | bytes | list | tuple) else value)
    return text if len(text) <= size + 2 else text[:size] + "..."


def _id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError(f"id must be text or a whole number; got {brief(value)}")
    return _unicode("id", value)


def _text(name: str, value: Any) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} must be text; got {brief(value)}")
    return None if value is None else _unicode(name, value)


def _unicode(name: str, text: str) -> str:
    """Text that a file can hold: JSON can escape half of a surrogate pair, which no encoding has."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} holds half of a surrogate pair, at character {error.start}") from None
    return text


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{name} must be a list with a value for each answer; got {brief(value)}")
    return list(value)


def _answers(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    for j, text in enumerate(_list(name, value)):
        if not isinstance(text, str):
            raise ValueError(f"{name} must be text; got {brief(text)} at index {j}")
        _unicode(f"{name}[{j}]", text)
    return tuple(value)


def _classes(name: str, value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(_class(name, number, f" at index {j}") for j, number in enumerate(_list(name, value)))


def _class(name: str, value: Any, where: str = "") -> int:
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not 0 <= value <= _LARGEST_CLASS:
        raise ValueError(f"{name} must be classes, whole numbers from 0; got {brief(value)}{where}")
    return int(value)


def _confidences(name: str, value: Any) -> tuple[float | None, ...] | float | None:
    if isinstance(value, list | tuple):
        return tuple(_confidence(name, each, f" at index {j}") for j, each in enumerate(_list(name, value)))
    return _confidence(name, value)


def _confidence(name: str, value: Any, where: str = "") -> float | None:
    """A number in [0, 1]; NaN and None are missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        percent = isinstance(value, int | float) and 1 < value <= 100
        remedy = "; divide percentages by 100" if percent else ""
        raise ValueError(f"{name} must lie in [0, 1] or be null; got {brief(value)}{where}{remedy}")
    return float(value)


def _grade(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str) and value in GRADES:
        return GRADES[value]
    if isinstance(value, bool | int | float) and value in (0, 1):
        return int(value)
    raise ValueError(
        f"{name} must be 1, 0, true, false, null or one of {', '.join(GRADES)}; got {brief(value)}"
    )


def _class_grades(name: str, value: Any) -> dict[int, int | None]:
    """From an object by class number, a list in the order of numbers, or pairs (an Arrow map)."""
    if value is None:
        return {}
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, list | tuple):
        paired = value and all(isinstance(each, list | tuple) and len(each) == 2 for each in value)
        pairs = value if paired else enumerate(value)
    else:
        raise ValueError(f"{name} must be an object or list with a grade for each class; got {brief(value)}")
    found: dict[int, int | None] = {}
    for key, grade in pairs:
        digits = isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= 10
        number = _class(name, int(key) if digits else key)
        if number in found:
            raise ValueError(f"{name} grades class {number} twice")
        found[number] = _grade(name, grade)
    return found
