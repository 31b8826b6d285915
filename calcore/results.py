"""What calcore returns: frozen records of numbers with everything that changes their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

_SIDES = {"both": "two-sided", "upper": "one-sided, upper", "lower": "one-sided, lower"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certificate:
    """A finite-sample interval for the L1 calibration error CE = E|S - P(Y=1|S)|.

    With probability at least ``1 - delta`` over the sample, ``lower <= CE <= upper``, for every sample
    size, if the rows are independent draws from the population and `assumption` holds. The lower end never
    needs the assumption.

    Attributes
    ----------
    lower, upper : float
        The interval, inside [0, 1]. A one-sided certificate has the trivial value (0 or 1) on its other side.
    delta : float
        Probability that the interval misses, both ends together.
    side : {"both", "upper", "lower"}
        Which ends carry `delta`; "both" spends a quarter of it below and three quarters above.
    method : str
        Name of the bound, as `certify` takes it; "auto" where it is the better of two, which the terms tell.
    assumption : str
        What is assumed of the calibration function, in words; "none" where nothing is.
    n, n_positive : int
        Rows, and rows with a positive label.
    mean_score, base_rate : float
        Mean of the scores and of the labels.
    n_bins : int
        Bins of the upper bound that won; 0 if none was asked for.
    terms : mapping of str to float
        What the upper bound is made of; the values sum to it before it is clipped at 1. ``plug_in`` is the
        error measured in bins, windows or folds, ``denoised`` that in bins less what noise adds to it,
        ``bias`` what a bin can hide under the assumption, ``denoising`` how far a fit can be from the truth,
        ``deviation`` the chance in the rows, ``transfer`` the step from the sample's scores to the
        population. Empty for ``side="lower"``.
    table : str
        How the scores were held: "sorted scores", or the number and grid of the cells.
    n_clipped : int
        Scores a rounding error outside [0, 1] that were moved to its edge.
    n_dropped : int
        Rows left out because another row of their group was drawn.
    warnings : tuple of str
        What a reader should know before using the numbers.
    n_folds : int
        Folds that were fitted and tested; 0 where rows are not split.
    bandwidth : float or None
        Half the width of the windows of scores; None where there are none.
    """

    lower: float
    upper: float
    delta: float
    side: str
    method: str
    assumption: str
    n: int
    n_positive: int
    mean_score: float
    base_rate: float
    n_bins: int
    terms: Mapping[str, float] = field(default_factory=dict)
    table: str = "sorted scores"
    n_clipped: int = 0
    n_dropped: int = 0
    warnings: tuple[str, ...] = ()
    n_folds: int = 0
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    def __reduce__(self) -> tuple[Any, ...]:
        values = (getattr(self, name) for name in self.__slots__)
        return type(self), tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    @property
    def confidence(self) -> float:
        """``1 - delta``."""
        return 1.0 - self.delta

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"terms": dict(self.terms), "warnings": list(self.warnings)}

    def __repr__(self) -> str:
        return (
            f"Certificate(CE in [{self.lower:.4g}, {self.upper:.4g}] at {self.confidence:.6g}, "
            f"{_SIDES[self.side]}, n={self.n}, method={self.method!r}, assumption={self.assumption!r})"
        )
