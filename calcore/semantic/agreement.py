"""How far two judges agree on which answers mean the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, fsum
from typing import Any

__all__ = ["JudgeAgreement", "adjusted_rand", "judge_agreement", "rand", "same_mode"]


@dataclass(frozen=True, slots=True, eq=False)
class JudgeAgreement:
    """Agreement of two judges' classes, as means over questions; from `judge_agreement`.

    Attributes
    ----------
    n : int
        Questions.
    rand, adjusted_rand : float
        Means of `rand` and `adjusted_rand`; 1 if all partitions are equal.
    same_mode : float
        Share of questions in which both most frequent classes hold the same answers.
    same_size : float
        Share of questions in which both are equally large: in which Sem1 is the same.
    identical : float
        Share of questions with equal partitions.
    """

    n: int
    rand: float
    adjusted_rand: float
    same_mode: float
    same_size: float
    identical: float

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for ``json.dumps``."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return (
            f"<JudgeAgreement: Rand {self.rand:.4g}, adjusted {self.adjusted_rand:.4g}, same mode "
            f"{self.same_mode:.4g}, n={self.n}>"
        )


def judge_agreement(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> JudgeAgreement:
    """Agreement of two judges over questions.

    Parameters
    ----------
    pairs : iterable of (sequence of int, sequence of int)
        For each question the classes of its answers by one judge and by the other, in the same order.

    Raises
    ------
    ValueError
        No pair; or two of different lengths, or with fewer than two answers.

    Examples
    --------
    >>> judge_agreement([([0, 0, 1], [5, 5, 3]), ([0, 0, 1], [0, 1, 1])])
    <JudgeAgreement: Rand 0.6667, adjusted 0.25, same mode 0.5, n=2>
    """
    columns: list[tuple[float, float, bool, bool, bool]] = []
    for a, b in pairs:
        largest = [max(Counter(each).values(), default=0) for each in (a, b)]
        index = rand(a, b)
        columns.append((index, adjusted_rand(a, b), same_mode(a, b), largest[0] == largest[1], index == 1.0))
    if not columns:
        raise ValueError("pairs must hold at least one question")
    n = len(columns)
    return JudgeAgreement(n, *(fsum(column) / n for column in zip(*columns, strict=True)))


def rand(a: Sequence[int], b: Sequence[int]) -> float:
    """Share of pairs of answers that both put together or both keep apart (Rand 1971).

    >>> rand([0, 0, 1], [0, 1, 1])
    0.3333333333333333
    """
    both, of_a, of_b, pairs = _pairs(a, b)
    return (pairs - of_a - of_b + 2 * both) / pairs


def adjusted_rand(a: Sequence[int], b: Sequence[int]) -> float:
    """The Rand index less what chance gives, by the most less what chance gives (Hubert and Arabie 1985).

    Chance: all ways of sharing out the answers with the sizes of both judges' classes. 1 if both are equal,
    also where chance leaves no other way; 0 on average by chance; it can be below 0.

    >>> adjusted_rand([0, 0, 1, 1], [1, 1, 0, 0]), adjusted_rand([0, 0, 1], [0, 1, 1])
    (1.0, -0.5)
    """
    both, of_a, of_b, pairs = _pairs(a, b)
    # Chance is of_a * of_b / pairs, the most (of_a + of_b) / 2; both times 2 * pairs are whole numbers.
    most = pairs * (of_a + of_b) - 2 * of_a * of_b
    return 1.0 if most == 0 else 2 * (both * pairs - of_a * of_b) / most


def same_mode(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether both most frequent classes, of several that of the lowest number, hold the same answers."""
    _checked(a, b)
    return _modal(a) == _modal(b)


def _modal(classes: Sequence[int]) -> list[int]:
    counts = Counter(classes)
    mode = min(counts, key=lambda number: (-counts[number], number))
    return [i for i, number in enumerate(classes) if number == mode]


def _pairs(a: Sequence[int], b: Sequence[int]) -> tuple[int, int, int, int]:
    """Pairs of answers that both put together, that each does, and all."""
    _checked(a, b)
    both, of_a, of_b = (
        sum(comb(count, 2) for count in Counter(each).values()) for each in (zip(a, b, strict=True), a, b)
    )
    return both, of_a, of_b, comb(len(a), 2)


def _checked(a: Sequence[int], b: Sequence[int]) -> None:
    if len(a) != len(b):
        raise ValueError(f"both judges must have sorted the same answers; got {len(a)} and {len(b)}")
    if len(a) < 2:
        raise ValueError(f"agreement needs at least two answers; got {len(a)}")
