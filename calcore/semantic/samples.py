"""Sampled answers, clustered and graded: what every statistic of this package is made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.kernels import semantic
from calcore.results import freeze, rebuilt

__all__ = ["SemanticSamples"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LEAST = 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SemanticSamples:
    """Questions with N sampled answers each, clustered by meaning; built by `SemanticSamples.of`.

    Attributes
    ----------
    ids : tuple of str
        Of the questions, all different.
    offsets : read-only int64 array of shape (Q + 1,)
        Question q has the answers ``offsets[q]:offsets[q + 1]``.
    codes : read-only int32 array of shape (n,)
        Class of each answer, numbered 0, 1, ... in each question, in the order of the given class numbers.
    n_classes : read-only int64 array of shape (Q,)
        Classes of each question.
    classes : read-only int64 array of shape (sum of n_classes,)
        The given numbers of these, one question after the other.
    class_grades : read-only float64 array of the shape of `classes`, or None
        1, 0, or NaN if missing; None if only the modes were graded.
    grades : read-only float64 array of shape (Q,)
        1, 0 or NaN: of the mode. After `truncated` without `class_grades`, of the mode of all answers.
    graded : read-only int32 array of shape (Q,) or None
        Which class `grades` is of, as in `codes`. None after `truncated` without `class_grades`: it need not
        be among the answers any more.
    verbalized : read-only float64 array of shape (n,) or None
        Verbalised confidence of each answer; NaN if missing.
    verbalized_means : read-only float64 array of shape (Q,) or None
        Means over answers, where only these were given.
    logit : read-only float64 array of shape (Q,) or None
        Confidence from token probabilities; NaN if missing.
    """

    ids: tuple[str, ...]
    offsets: Integers
    codes: NDArray[np.int32]
    n_classes: Integers
    classes: Integers
    class_grades: Floats | None
    grades: Floats
    graded: NDArray[np.int32] | None
    verbalized: Floats | None
    verbalized_means: Floats | None
    logit: Floats | None

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        assignments: Any,
        *,
        grades: Any = None,
        modes: Any = None,
        class_grades: Any = None,
        verbalized: Any = None,
        logit: Any = None,
    ) -> SemanticSamples:
        """Check and hold sampled answers.

        Parameters
        ----------
        ids : sequence of str, length Q
            Names of the questions, all different. Random splits depend on them.
        assignments : int array of shape (Q, N), or sequence of Q sequences of int
            Class of each answer of each question, in the order in which they were drawn: any whole numbers
            >= 0 that are the same where the meaning is. Two answers or more to a question.
        grades : sequence of length Q, optional
            1 if the mode of all answers is right, 0 if not; None, NaN or -1 if that is not known.
        modes : sequence of length Q, optional
            The class that `grades` is of, one of the most frequent; None where it is the one with the lowest
            number, as everywhere by default.
        class_grades : sequence of length Q, optional
            Of each question a mapping from classes to 1, 0 or missing, or a sequence of these by class
            number; None for a question of which nothing is known. Classes that it leaves out are missing.
        verbalized : float array of shape (Q, N) or (Q,), or sequence of Q sequences, optional
            Confidence in [0, 1] that was stated with each answer, or its mean; None or NaN if missing.
        logit : sequence of length Q, optional
            Confidence in [0, 1] from token probabilities; None or NaN if missing.

        Returns
        -------
        SemanticSamples

        Raises
        ------
        ValueError, TypeError
            If an argument breaks its rule; the message names it, the rule, the value and the question.

        Notes
        -----
        *Ties.* Of several most frequent classes the one with the lowest number is the mode. Judges that
        number classes by their frequency in a list, or by first appearance, thereby favour some: the rule is
        that of the published material, and is not neutral. ``ties="random"`` is.

        Examples
        --------
        >>> samples = SemanticSamples.of(["q1", "q2"], [[7, 7, 3, 7], [0, 1]], grades=[1, None])
        >>> samples
        <SemanticSamples: 2 questions, 2 to 4 answers, 1 graded>
        >>> samples.codes
        array([1, 1, 0, 1, 0, 1], dtype=int32)
        """
        names = _checked_ids(ids)
        flat, sizes = _answers(assignments, names)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        codes, n_classes, classes = _numbered(flat, offsets)
        starts = _starts(n_classes)
        first = _first_modes(codes, offsets, n_classes)
        modes = first if modes is None else _given_modes(modes, names, codes, offsets, classes, starts, first)
        given = _column(grades, "grades", names, _grade)
        table = None if class_grades is None else _grade_table(class_grades, names, classes, starts)
        if table is not None:
            of_modes = table[starts + modes]
            clash = np.flatnonzero(np.isfinite(of_modes) & np.isfinite(given) & (of_modes != given))
            if clash.size:
                q = int(clash[0])
                raise ValueError(
                    f"grades must agree with class_grades; got {given[q]:g} for the mode of question "
                    f"{names[q]!r}, class {classes[starts[q] + modes[q]]}, whose class grade is "
                    f"{of_modes[q]:g}{_more(clash.size)}"
                )
            given = np.where(np.isnan(given), of_modes, given)
            table[starts + modes] = given
        each, means = _verbalized(verbalized, names, sizes)
        return cls(
            ids=names,
            offsets=offsets,
            codes=codes,
            n_classes=n_classes,
            classes=classes,
            class_grades=table,
            grades=given,
            graded=modes,
            verbalized=each,
            verbalized_means=means,
            logit=None if logit is None else _column(logit, "logit", names, _confidence),
        )

    @property
    def n_questions(self) -> int:
        """Questions, graded or not."""
        return len(self.ids)

    @property
    def sizes(self) -> Integers:
        """Answers of each question."""
        return np.diff(self.offsets)

    @property
    def n_graded(self) -> int:
        """Questions whose mode has a grade."""
        return int(np.count_nonzero(np.isfinite(self.grades)))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        low, high = int(self.sizes.min()), int(self.sizes.max())
        answers = f"{low} answers" if low == high else f"{low} to {high} answers"
        many = f"{len(self)} question{'s' if len(self) > 1 else ''}"
        return f"<SemanticSamples: {many}, {answers}, {self.n_graded} graded>"

    def take(self, questions: Any) -> SemanticSamples:
        """Return some of the questions, by position, in that order; none twice.

        Examples
        --------
        >>> SemanticSamples.of(["q1", "q2"], [[7, 7, 3], [0, 1]]).take([1]).ids
        ('q2',)
        """
        index = np.asarray(questions)
        if index.ndim != 1 or not index.size or index.dtype.kind not in "iu":
            raise ValueError("questions must be positions of at least one question")
        if index.min() < 0 or index.max() >= len(self) or len(np.unique(index)) < index.size:
            raise ValueError(f"questions must be different positions from 0 to {len(self) - 1}")
        return self._cut(index.astype(np.int64), self.sizes[index])

    def truncated(self, n: int) -> SemanticSamples:
        """Return the first n answers of each question, to see what fewer answers would have given.

        Questions with fewer than n answers are left out. With `class_grades`, a question's grade is that of
        the mode of its n answers; without, it stays that of the mode of all, as in the published sweeps: the
        answer that is deployed does not change. Means of verbalised confidences without the single ones are
        left out.

        Parameters
        ----------
        n : int
            At least 2.

        Returns
        -------
        SemanticSamples

        Raises
        ------
        ValueError
            If no question has so many answers.

        Examples
        --------
        >>> SemanticSamples.of(["q1", "q2"], [[7, 3, 3], [0, 1]]).truncated(3)
        <SemanticSamples: 1 question, 3 answers, 0 graded>
        """
        n = _validate.whole_number(n, "n", low=_LEAST)
        long = np.flatnonzero(self.sizes >= n)
        if not long.size:
            raise ValueError(f"n must be at most {int(self.sizes.max())}, the most answers of any; got {n}")
        cut = self._cut(long, np.full(long.size, n))
        return replace(cut, verbalized_means=None) if np.any(self.sizes != n) else cut

    def _cut(self, index: Integers, sizes: Integers) -> SemanticSamples:
        """The first `sizes` answers of the questions `index`."""
        starts = _starts(self.n_classes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], sizes)
        flat = self.classes[self.codes[places] + np.repeat(starts[index], sizes)]
        codes, n_classes, classes = _numbered(flat, offsets)
        grades, table, graded = self.grades[index], None, None
        if self.graded is not None and np.array_equal(sizes, self.sizes[index]):
            graded = self.graded[index]
        if self.class_grades is not None:
            before = np.empty(len(classes))
            own = _starts(n_classes)
            before[codes + np.repeat(own, sizes)] = self.class_grades[
                self.codes[places] + np.repeat(starts[index], sizes)
            ]
            table = before
            graded = _first_modes(codes, offsets, n_classes)
            grades = table[own + graded]

        def chosen(column: Floats | None) -> Floats | None:
            return None if column is None else column[index]

        return SemanticSamples(
            ids=tuple(self.ids[q] for q in index.tolist()),
            offsets=offsets,
            codes=codes,
            n_classes=n_classes,
            classes=classes,
            class_grades=table,
            grades=grades,
            graded=graded,
            verbalized=None if self.verbalized is None else self.verbalized[places],
            verbalized_means=chosen(self.verbalized_means),
            logit=chosen(self.logit),
        )


def _starts(n_classes: Integers) -> Integers:
    """Where the classes of each question begin."""
    starts: Integers = np.cumsum(n_classes) - n_classes
    return starts


def _numbered(flat: Integers, offsets: Integers) -> tuple[NDArray[np.int32], Integers, Integers]:
    """Codes of answers, classes of questions, and how many each has."""
    codes, classes = np.empty(len(flat), np.int32), np.empty(len(flat), np.int64)
    n_classes = np.empty(len(offsets) - 1, np.int64)
    used = semantic.number(_validate.read_only(flat), _validate.read_only(offsets), codes, classes, n_classes)
    return codes, n_classes, classes[:used].copy()


def _given_modes(
    modes: Any,
    names: tuple[str, ...],
    codes: NDArray[np.int32],
    offsets: Integers,
    classes: Integers,
    starts: Integers,
    first: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Numbers of the classes that were graded, each checked to be a mode."""
    found = first.copy()
    for q, mode in enumerate(_check_length(modes, "modes", names)):
        if mode is None:
            continue
        if isinstance(mode, bool) or not isinstance(mode, (int, np.integer)):
            raise TypeError(
                f"modes must be class numbers or None; got {mode!r:.60} for question {names[q]!r:.60}"
            )
        counts = np.bincount(codes[offsets[q] : offsets[q + 1]])
        own = classes[starts[q] : starts[q] + len(counts)]
        place: Integers = np.flatnonzero(own == mode)
        if len(place) != 1 or counts[place[0]] < counts.max():
            likely = ", ".join(map(str, own[counts == counts.max()]))
            raise ValueError(
                f"modes must be classes that no other is more frequent than; got {mode!r:.60} for question "
                f"{names[q]!r:.60}, whose most frequent is {likely}"
            )
        found[q] = place[0]
    return found


def _first_modes(codes: NDArray[np.int32], offsets: Integers, n_classes: Integers) -> NDArray[np.int32]:
    q = len(n_classes)
    mode, first, second = (np.empty(q, np.int32) for _ in range(3))
    semantic.modes(
        _validate.read_only(codes),
        _validate.read_only(offsets),
        _validate.read_only(n_classes),
        _validate.read_only(np.zeros(q, np.uint64)),
        False,
        mode,
        first,
        second,
    )
    return mode


# --- what users give ---------------------------------------------------------------------------------------


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def _checked_ids(ids: Any) -> tuple[str, ...]:
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"ids must be a sequence of str, one per question; got {type(ids).__name__}")
    try:
        names = tuple(ids)
    except TypeError:
        raise TypeError(f"ids must be a sequence of str; got {type(ids).__name__}") from None
    if not names:
        raise ValueError("ids must name at least one question; got none")
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"ids must be of type str; got {name!r:.60} at index {i}")
    if len(set(names)) < len(names):
        seen: dict[str, int] = {}
        for i, name in enumerate(names):
            if name in seen:
                raise ValueError(f"ids must be different; got {name!r:.60} at index {seen[name]} and {i}")
            seen[name] = i
    return tuple(map(str, names))


def _check_length(values: Any, name: str, names: tuple[str, ...]) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)):
        raise TypeError(f"{name} must be a sequence, one entry per question; got {type(values).__name__}")
    try:
        entries = list(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence; got {type(values).__name__}") from None
    if len(entries) != len(names):
        raise ValueError(f"{name} must have one entry per question, {len(names)}; got {len(entries)}")
    return entries


def _answers(assignments: Any, names: tuple[str, ...]) -> tuple[Integers, Integers]:
    """Classes of all answers, one question after the other, and answers of each."""
    if isinstance(assignments, np.ndarray) and assignments.ndim == 2:
        _check_length(assignments[:, 0] if assignments.shape[1] else assignments, "assignments", names)
        each = np.full(len(names), assignments.shape[1])
        flat = assignments.reshape(-1)
    else:
        entries = _check_length(assignments, "assignments", names)
        each = np.empty(len(names), np.int64)
        for q, entry in enumerate(entries):
            if isinstance(entry, (str, bytes, Mapping)) or not hasattr(entry, "__len__"):
                raise TypeError(
                    "assignments must hold a sequence of whole numbers for each question; "
                    f"got {type(entry).__name__} for question {names[q]!r:.60}"
                )
            each[q] = len(entry)
        values = list(chain.from_iterable(entries))
        try:
            flat = np.asarray(values)
        except (ValueError, OverflowError):
            flat = np.empty(1, object)
        if {bool, np.bool_} & set(map(type, values)):  # NumPy would take them for numbers
            _refuse_classes(entries, names)
    few = np.flatnonzero(each < _LEAST)
    if few.size:
        q = int(few[0])
        raise ValueError(
            f"assignments must hold at least 2 answers for each question; got {each[q]} for question "
            f"{names[q]!r:.60}{_more(few.size)}"
        )
    if each.max() > semantic.MAX_ANSWERS:
        raise ValueError(f"assignments must hold at most 2^24 answers for each; got {each.max()}")
    if flat.dtype == np.uint64 and flat.max() < 2**63:
        flat = flat.astype(np.int64)
    if flat.ndim != 1 or flat.dtype.kind not in "iu" or flat.dtype == np.uint64:
        _refuse_classes(assignments, names)
    negative = np.flatnonzero(flat < 0)
    if negative.size:
        place = int(negative[0])
        q = int(np.searchsorted(np.cumsum(each), place, side="right"))
        raise ValueError(
            f"assignments must be whole numbers >= 0; got {flat[place]} for question {names[q]!r:.60}"
            f"{_more(negative.size)}"
        )
    return flat.astype(np.int64), each


def _refuse_classes(assignments: Any, names: tuple[str, ...]) -> None:
    for q, entry in enumerate(assignments):
        for i, value in enumerate(entry):
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or value >= 2**63:
                raise TypeError(
                    f"assignments must be whole numbers below 2^63; got {value!r:.60} for answer {i} of "
                    f"question {names[q]!r:.60}"
                )
    raise TypeError("assignments must hold whole numbers of one type")


def _number_or_nan(value: Any) -> float:
    """A number as a float, NaN for what is missing; TypeError for anything else."""
    if value is None or type(value).__name__ == "NAType":
        return math.nan
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    return _validate.any_number(value, "a number")


def _grade(value: Any) -> float:
    number = _number_or_nan(value)
    if number == -1.0 or math.isnan(number):
        return math.nan
    if number in (0.0, 1.0):
        return number
    raise ValueError("1, 0 or missing")


def _confidence(value: Any) -> float:
    number = _number_or_nan(value)
    if math.isnan(number) or 0.0 <= number <= 1.0:
        return number + 0.0  # not -0.0
    raise ValueError("a number in [0, 1] or missing")


_RULES = {_grade: "1, 0 or missing (None, NaN, -1)", _confidence: "numbers in [0, 1] or missing (None, NaN)"}


def _column(values: Any, name: str, names: tuple[str, ...], read: Any) -> Floats:
    """One number for each question; NaN where it is missing, and everywhere if nothing was given."""
    column = np.full(len(names), np.nan)
    if values is None:
        return column
    for q, value in enumerate(_check_length(values, name, names)):
        column[q] = _read(value, name, read, f"question {names[q]!r:.60}")
    return column


def _read(value: Any, name: str, read: Any, where: str) -> float:
    try:
        return float(read(value))
    except (TypeError, ValueError) as error:
        remedy = ": percent must be divided by 100" if _is_percent(value, read) else ""
        raise type(error)(f"{name} must be {_RULES[read]}; got {value!r:.60} for {where}{remedy}") from None


def _is_percent(value: Any, read: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return read is _confidence and number and 1.0 < value <= 100.0


def _grade_table(class_grades: Any, names: tuple[str, ...], classes: Integers, starts: Integers) -> Floats:
    table = np.full(len(classes), np.nan)
    ends = np.append(starts[1:], len(classes))
    for q, entry in enumerate(_check_length(class_grades, "class_grades", names)):
        if entry is None:
            continue
        if isinstance(entry, Mapping):
            known = entry
        elif hasattr(entry, "__len__") and not isinstance(entry, (str, bytes)):
            known = dict(enumerate(entry))
        else:
            raise TypeError(
                "class_grades must hold a mapping from classes to grades, or a sequence of grades, for each "
                f"question; got {type(entry).__name__} for question {names[q]!r:.60}"
            )
        for name in known:
            if not isinstance(name, (int, np.integer)) or isinstance(name, bool):
                raise TypeError(
                    f"class_grades must have whole numbers as classes; got {name!r:.60} for question "
                    f"{names[q]!r:.60}"
                )
        for place in range(int(starts[q]), int(ends[q])):
            name = int(classes[place])
            table[place] = _read(
                known.get(name), "class_grades", _grade, f"class {name} of question {names[q]!r:.60}"
            )
    return table


def _verbalized(
    verbalized: Any, names: tuple[str, ...], sizes: Integers
) -> tuple[Floats | None, Floats | None]:
    """Confidences of answers, or their means."""
    if verbalized is None:
        return None, None
    if isinstance(verbalized, np.ndarray) and verbalized.dtype.kind == "f":
        return _verbalized_array(verbalized, names, sizes)
    entries = _check_length(verbalized, "verbalized", names)
    single = [not hasattr(entry, "__len__") for entry in entries]
    if all(single):
        return None, _column(entries, "verbalized", names, _confidence)
    flat = np.empty(int(sizes.sum()))
    place = 0
    for q, entry in enumerate(entries):
        if entry is None:
            entry = [None] * int(sizes[q])
        if (single[q] and entries[q] is not None) or isinstance(entry, (str, bytes, Mapping)):
            raise TypeError(
                "verbalized must hold a sequence for each question, or a number for each; "
                f"got {entry!r:.60} for question {names[q]!r:.60}"
            )
        if len(entry) != sizes[q]:
            raise ValueError(
                f"verbalized must have one entry per answer, {sizes[q]}; got {len(entry)} for question "
                f"{names[q]!r:.60}"
            )
        for value in entry:
            flat[place] = _read(value, "verbalized", _confidence, f"question {names[q]!r:.60}")
            place += 1
    return flat, None


def _verbalized_array(
    verbalized: NDArray[Any], names: tuple[str, ...], sizes: Integers
) -> tuple[Floats | None, Floats | None]:
    _check_length(verbalized, "verbalized", names)
    values = verbalized.astype(np.float64) + 0.0
    bad = np.argwhere(~(np.isnan(values) | ((values >= 0.0) & (values <= 1.0))))
    if len(bad):
        where = f"question {names[int(bad[0][0])]!r:.60}"
        _read(float(values[tuple(bad[0])]), "verbalized", _confidence, where)
    if values.ndim == 1:
        return None, values
    if values.ndim != 2 or np.any(sizes != values.shape[1]):
        raise ValueError(f"verbalized must have the shape of assignments; got {values.shape}")
    return values.reshape(-1), None
