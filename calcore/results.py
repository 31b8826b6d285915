"""What calcore returns: frozen records of numbers with everything that changes their meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

_SIDES = {"both": "two-sided", "upper": "one-sided, upper", "lower": "one-sided, lower"}


def freeze(record: Any) -> None:
    """Make the arrays of a record read-only."""
    for name in record.__slots__:
        value = getattr(record, name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


def rebuilt(record: Any) -> tuple[Any, ...]:
    """For pickle and copy: made anew, so that arrays are read-only again."""
    return type(record), tuple(getattr(record, name) for name in record.__slots__)


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
        Name of the bound, as `certify` takes it; "auto" where it is the best of several.
    assumption : str
        What is assumed of the calibration function, in words; "none" where nothing is.
    n, n_positive : int
        Rows, and rows with a positive label.
    mean_score, base_rate : float
        Mean of the scores and of the labels.
    n_bins : int
        Bins, or intervals, of the upper bound that won; 0 if none was asked for.
    terms : mapping of str to float
        What the upper bound is made of; the values sum to it before it is clipped at 1. ``plug_in`` is the
        error measured in bins, windows or folds, or against polynomials, ``denoised`` that in bins less what
        noise adds to it, ``bias`` what a bin or a polynomial can hide under the assumption, ``denoising`` how
        far a fit can be from the truth, ``deviation`` the chance in the rows, ``transfer`` the step from the
        sample's scores to the
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
    winner : str
        The method that gave the upper end: `method` itself, or which of those that "auto" chooses from; empty
        for ``side="lower"``.
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
    winner: str = ""

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


@dataclass(frozen=True, slots=True, repr=False)
class Interval:
    """Two ends, both included."""

    lower: float
    upper: float

    def to_dict(self) -> dict[str, float]:
        """Both ends, ready for ``json.dumps``."""
        return {"lower": self.lower, "upper": self.upper}

    def __repr__(self) -> str:
        return f"[{self.lower:.4g}, {self.upper:.4g}]"


_PLURAL = {"class": "classes", "segment": "segments"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CertificateSet(Mapping[Any, Certificate]):
    """Certificates that hold together: a mapping from names to `Certificate`.

    With probability at least ``1 - delta`` every interval in it contains its calibration error, `mean` and
    `pooled` included. So the best, the worst, or any that a reader picks may be quoted at that confidence.
    Each certificate's own `delta` is its share.

    Attributes
    ----------
    kind : {"class", "segment"}
        What the names stand for.
    certificates : mapping
        In the order of the columns, or of the sorted segments. The set itself gives access by name, length
        and iteration over names.
    delta : float
        Probability that any interval of the set misses.
    mean : Interval or None
        Of classes: of the mean of their calibration errors.
    pooled : Certificate or None
        Of segments: of all rows taken together.
    """

    kind: str
    certificates: Mapping[Any, Certificate]
    delta: float
    mean: Interval | None = None
    pooled: Certificate | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "certificates", MappingProxyType(dict(self.certificates)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, dict(self.certificates), self.delta, self.mean, self.pooled)

    def __getitem__(self, name: Any) -> Certificate:
        return self.certificates[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.certificates)

    def __len__(self) -> int:
        return len(self.certificates)

    @property
    def confidence(self) -> float:
        """``1 - delta``, of all intervals together."""
        return 1.0 - self.delta

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        return {
            "kind": self.kind,
            "delta": self.delta,
            "certificates": [
                {"name": name if isinstance(name, bool | int | float | str) else str(name)}
                | certificate.to_dict()
                for name, certificate in self.certificates.items()
            ],
            "mean": None if self.mean is None else self.mean.to_dict(),
            "pooled": None if self.pooled is None else self.pooled.to_dict(),
        }

    def __repr__(self) -> str:
        names = [f"{name!r}: {Interval(c.lower, c.upper)}" for name, c in self.certificates.items()]
        listed = ", ".join(names if len(names) <= 4 else [*names[:3], f"... {len(names) - 3} more"])
        both = [f"{what} CE in {end}" for what, end in (("mean", self.mean),) if end is not None]
        if self.pooled is not None:
            both.append(f"pooled CE in {Interval(self.pooled.lower, self.pooled.upper)}")
        return (
            f"CertificateSet({len(self)} {_PLURAL[self.kind]}, all at once at {self.confidence:.6g}; "
            + "; ".join([*both, f"CE in {{{listed}}}"])
            + ")"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sensitivity(Mapping[float, Certificate]):
    """Certificates of the same rows under several assumptions, by total variation.

    Each holds alone, at its own ``1 - delta``, if its assumption is true. Nothing is said of one that was
    chosen after looking.
    """

    certificates: Mapping[float, Certificate]

    def __post_init__(self) -> None:
        object.__setattr__(self, "certificates", MappingProxyType(dict(self.certificates)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.certificates),)

    def __getitem__(self, variation: float) -> Certificate:
        return self.certificates[variation]

    def __iter__(self) -> Iterator[float]:
        return iter(self.certificates)

    def __len__(self) -> int:
        return len(self.certificates)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, strings, lists and dicts; an infinite variation as text."""
        return {
            "valid": "each alone",
            "certificates": [
                {"variation": v if v < float("inf") else "inf"} | certificate.to_dict()
                for v, certificate in self.certificates.items()
            ],
        }

    def __repr__(self) -> str:
        each = next(iter(self.certificates.values())).confidence
        listed = ", ".join(f"V = {v:g}: {Interval(c.lower, c.upper)}" for v, c in self.certificates.items())
        return f"Sensitivity(CE in {{{listed}}}, each alone at {each:.6g})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowsNeeded:
    """A plan: how many rows an upper bound of `target` typically needs.

    Attributes
    ----------
    n : int
        Rows, rounded up to two digits.
    target, delta, side, ce : float or str
        As they were given to `rows_needed`.
    variation, perturbed : float or None
        What is assumed; None where it is not.
    base_rate : float
        Mean of the scores that were planned for.
    curve : tuple of (int, float)
        Numbers of rows, ascending, `n` among them, and the upper bounds to be expected from them.
    """

    n: int
    target: float
    delta: float
    side: str
    ce: float
    variation: float | None
    perturbed: float | None
    base_rate: float
    curve: tuple[tuple[int, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"curve": [{"n": n, "upper": upper} for n, upper in self.curve]}

    def __repr__(self) -> str:
        return (
            f"RowsNeeded({self.n:,} rows for an upper bound of {self.target:g} at {1.0 - self.delta:.6g}, "
            f"calibration error {self.ce:g}, base rate {self.base_rate:.4g})"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CertifiedDifference:
    """Two models on the same rows, a minus b: below 0 where a is better.

    Each of the two intervals holds with probability at least ``1 - delta``, both together at least
    ``1 - 2 delta``.

    Attributes
    ----------
    ce_difference : Interval
        Of the calibration errors, CE(a) - CE(b); it rests on the assumption of `a` and `b`.
    brier_difference : Interval
        Of the Brier scores; no assumption.
    mean_brier_difference : float
        As observed.
    delta : float
        Probability that one of the intervals misses, each by itself.
    n, n_dropped : int
        Rows, and rows left out because another row of their group was drawn.
    a, b : Certificate
        Each model's, at half of `delta`.
    """

    ce_difference: Interval
    brier_difference: Interval
    mean_brier_difference: float
    delta: float
    n: int
    n_dropped: int
    a: Certificate
    b: Certificate

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for ``json.dumps``."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {name: v.to_dict() if hasattr(v, "to_dict") else v for name, v in plain.items()}

    def __repr__(self) -> str:
        return (
            f"CertifiedDifference(a - b: CE in {self.ce_difference}, Brier score in {self.brier_difference}, "
            f"each at {1.0 - self.delta:.6g}, n={self.n})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class DriftTest:
    """A test of whether two tables hold rows of one population.

    Attributes
    ----------
    p_value : float
        Of the hypothesis that rows of both have one law: twice the smaller of the other two, at most 1.
    p_labels : float
        Of the same hypothesis, from the rates of positives in bins of scores. Where every bin is one cell of
        scores, the scores may have changed: the hypothesis is then that rates by cell did not.
    p_scores : float
        Of the hypothesis that the scores of both have one law.
    n_before, n_after : int
        Rows.
    n_bins : int
        Bins of scores that were compared.
    n_draws : int
        Random divisions of the pooled rows that the statistics were compared with.
    """

    p_value: float
    p_labels: float
    p_scores: float
    n_before: int
    n_after: int
    n_bins: int
    n_draws: int

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, ready for ``json.dumps``."""
        return {name: getattr(self, name) for name in self.__slots__}
