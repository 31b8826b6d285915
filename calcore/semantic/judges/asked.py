"""A language model as judge: strict JSON in reply, a limited number of repairs, all of them counted."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeVar

from calcore.semantic.client import ChatClient, Messages
from calcore.semantic.judges.judge import JudgeError, numbered
from calcore.semantic.prompts import prompt
from calcore.semantic.records import GRADES, brief

__all__ = ["Asked"]

Value = TypeVar("Value")

_DIGITS = 1000
"""Longest number in a reply; no answer has a number like that."""

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n\s*```\s*\Z", re.DOTALL)


class Asked:
    """A judge that asks a language model.

    What it is sent is one JSON object, so that no answer can pass for an instruction or for another answer.
    Its reply has to be one JSON object as well: a partition has to name every answer exactly once. A reply
    that is not so is never mended by guessing. It is sent back with the reason, at most `max_repairs` times.
    If none can be used, none is kept in the cache: another run asks again.

    Parameters
    ----------
    client : ChatClient
        Best with temperature 0.
    max_repairs : int
    partition_prompt, grade_prompt : str, optional
        Instructions in place of those in ``prompts/partition.txt`` and ``prompts/grade.txt``.

    Attributes
    ----------
    counts : collections.Counter
        ``repairs``: replies that were sent back; ``unfenced``: replies taken out of a code fence;
        ``unusable``: replies that were wrong to the last.
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        max_repairs: int = 2,
        partition_prompt: str | None = None,
        grade_prompt: str | None = None,
    ) -> None:
        if max_repairs < 0:
            raise ValueError(f"max_repairs must be at least 0; got {max_repairs}")
        self.client = client
        self.max_repairs = max_repairs
        self.counts: Counter[str] = Counter()
        self._lock = Lock()
        self._partition_prompt = partition_prompt or prompt("partition")
        self._grade_prompt = grade_prompt or prompt("grade")

    def partition(self, question: str, answers: Sequence[str]) -> list[int]:
        """Classes of answers, numbered in order of first appearance; equal answers are sent once.

        Raises
        ------
        JudgeError
            No reply was a partition.
        CallError, EndpointError
            From the client.
        """
        distinct = list(dict.fromkeys(answers))
        if len(distinct) < 2:
            return [0] * len(answers)
        number = self._reply(
            self.partition_messages(question, answers), lambda found: _partition(found, len(distinct))
        )
        cluster = dict(zip(distinct, number, strict=True))
        return numbered(cluster[answer] for answer in answers)

    def grade(self, question: str, answer: str, gold: str) -> int | None:
        """1 for CORRECT, 0 for INCORRECT and NOT_ATTEMPTED; None if no reply was one of them."""
        try:
            return self._reply(self.grade_messages(question, answer, gold), _grade)
        except JudgeError:
            return None

    def partition_messages(self, question: str, answers: Sequence[str]) -> Messages:
        """What is sent for a partition."""
        listed = [{"number": i, "answer": text} for i, text in enumerate(dict.fromkeys(answers), 1)]
        return _messages(self._partition_prompt, {"question": question, "answers": listed})

    def grade_messages(self, question: str, answer: str, gold: str) -> Messages:
        """What is sent for a grade."""
        return _messages(
            self._grade_prompt, {"question": question, "reference_answer": gold, "answer": answer}
        )

    def _reply(self, messages: Messages, read: Callable[[Any], Value]) -> Value:
        asked = list(messages)
        left = self.max_repairs
        sent: list[Messages] = []
        while True:
            sent.append(list(asked))
            text = self.client.complete(asked, subject="").text
            try:
                return read(self._object(text))
            except ValueError as error:
                reason = str(error)
            if left == 0:
                self._count("unusable")
                for each in sent:
                    self.client.forget(each, subject="")
                raise JudgeError(f"no usable reply in {self.max_repairs + 1}; the last: {reason}")
            left -= 1
            self._count("repairs")
            again = prompt("repair").replace("{reason}", reason)
            asked += [{"role": "assistant", "content": text}, {"role": "user", "content": again}]

    def _object(self, text: str) -> Any:
        fenced = _FENCE.match(text)
        if fenced:
            self._count("unfenced")
            text = fenced[1]
        try:
            return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_int=_whole)
        except json.JSONDecodeError as error:
            raise ValueError(f"it is not one JSON object ({error.msg} at character {error.pos})") from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def __repr__(self) -> str:
        return f"Asked({self.client.model!r}, max_repairs={self.max_repairs})"


def _messages(instruction: str, content: dict[str, Any]) -> Messages:
    return [
        {"role": "system", "content": instruction},
        {"role": "user", "content": json.dumps(content, ensure_ascii=False)},
    ]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice in an object")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"it holds a number of {len(digits):,} digits")
    return int(digits)


def _only(found: Any, name: str) -> Any:
    if not isinstance(found, dict) or set(found) != {name}:
        raise ValueError(f'it has to be an object with the one field "{name}"')
    return found[name]


def _partition(found: Any, n: int) -> list[int]:
    """The class of each of `n` numbered answers; ValueError unless each is in exactly one."""
    classes = _only(found, "classes")
    if not isinstance(classes, list) or not all(isinstance(each, list) and each for each in classes):
        raise ValueError('"classes" has to be a list of lists of numbers, none of them empty')
    number = [-1] * n
    for j, members in enumerate(classes):
        for i in members:
            if isinstance(i, bool) or not isinstance(i, int) or not 1 <= i <= n:
                raise ValueError(f"there is no answer of number {brief(i)}; they go from 1 to {n}")
            if number[i - 1] >= 0:
                raise ValueError(f"answer {i} is in more than one place")
            number[i - 1] = j
    missing = [i for i, j in enumerate(number, 1) if j < 0]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise ValueError(f"in no class: answer {', '.join(map(str, missing[:5]))}{more}")
    return number


def _grade(found: Any) -> int | None:
    grade = _only(found, "grade")
    known = [word for word, value in GRADES.items() if value is not None]
    if grade not in known:
        raise ValueError(f'"grade" has to be one of {", ".join(known)}; it is {brief(grade)}')
    return GRADES[grade]
