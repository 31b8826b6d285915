"""What the columns of an evaluation hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calcore.comparison.results import plain
from calcore.table import ScoreTable

__all__ = ["DataSummary"]


@dataclass(frozen=True, slots=True, eq=False)
class DataSummary:
    """What the columns hold; from `evaluate`.

    Attributes
    ----------
    n, n_positive : int
        Rows, and rows with a positive label.
    base_rate, mean_score : float
    lowest, highest : float
        Smallest and largest score.
    n_distinct : int
        Different scores.
    largest_tie : int
        Rows that have the most frequent score.
    n_zero, n_one : int
        Scores of exactly 0 and 1, clipped ones included.
    n_clipped : int
        Scores a rounding error outside [0, 1] that were moved to its edge.
    one_class : bool
        Whether all labels are equal.
    """

    n: int
    n_positive: int
    base_rate: float
    mean_score: float
    lowest: float
    highest: float
    n_distinct: int
    largest_tie: int
    n_zero: int
    n_one: int
    n_clipped: int
    one_class: bool

    @classmethod
    def of(cls, table: ScoreTable) -> DataSummary:
        scores, counts = table.scores, table.counts
        return cls(
            n=table.n,
            n_positive=table.n_positive,
            base_rate=table.n_positive / table.n,
            mean_score=table.sum_scores / table.n,
            lowest=float(scores[0]),
            highest=float(scores[-1]),
            n_distinct=len(scores),
            largest_tie=int(counts.max()),
            n_zero=int(counts[0]) if scores[0] == 0.0 else 0,
            n_one=int(counts[-1]) if scores[-1] == 1.0 else 0,
            n_clipped=table.n_clipped,
            one_class=table.n_positive in (0, table.n),
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for ``json.dumps``."""
        return plain(self)
