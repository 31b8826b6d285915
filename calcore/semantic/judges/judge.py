"""What a judge has to be able to do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, runtime_checkable

__all__ = ["Judge", "JudgeError", "numbered"]


class JudgeError(Exception):
    """A judge cannot say; the message gives the reason."""


@runtime_checkable
class Judge(Protocol):
    """Says which answers to a question mean the same, and whether an answer is right.

    Judges that ship number classes by the answer of theirs that comes first. Frequent classes tend to come
    first in that order, so a tie between classes that goes to the lowest number is not broken evenly.
    """

    def partition(self, question: str, answers: Sequence[str]) -> list[int]:
        """The number of each answer's class, from 0; `JudgeError` if it cannot say."""
        ...

    def grade(self, question: str, answer: str, gold: str) -> int | None:
        """1 if the answer is right by the reference `gold`, 0 if not, None if it cannot say."""
        ...


def numbered(keys: Iterable[Hashable]) -> list[int]:
    """Keys as numbers, from 0 in order of first appearance.

    >>> numbered("abac")
    [0, 1, 0, 2]
    """
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
