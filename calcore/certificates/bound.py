"""What a method of `certify` hands back: the terms of an upper bound, and what shaped them."""

from __future__ import annotations

from typing import NamedTuple


class Bound(NamedTuple):
    """An upper bound of the calibration error: the sum of `terms`, not yet clipped at 1."""

    terms: dict[str, float]
    n_bins: int = 0
    n_folds: int = 0
    bandwidth: float | None = None
    method: str = ""
    """Where one of several was chosen."""

    @property
    def value(self) -> float:
        return sum(self.terms.values())


def mean_of(bounds: list[Bound]) -> Bound:
    """The mean of bounds of one quantity that hold together, term by term; all were shaped alike."""
    names = bounds[0].terms
    terms = {name: sum(bound.terms[name] for bound in bounds) / len(bounds) for name in names}
    return bounds[0]._replace(terms=terms, n_folds=len(bounds))
