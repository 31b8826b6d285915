"""What an evaluation of several classes has beside the first choice: every class, and all together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calcore._classes import ClassRows, row_blocks
from calcore.binned import curve_of, full_ece
from calcore.certificates.multiclass import certify_classwise
from calcore.comparison.results import plain
from calcore.diagrams import ClasswiseReliability, reliability_classwise
from calcore.perturbation import auroc
from calcore.results import CertificateSet, Interval, freeze, rebuilt
from calcore.table import ScoreTable
from calcore.truthful import binary_lin_ce, classwise_lin_ce, conf_ce, uncorrected_conf_ce

__all__ = ["ClassesEvaluation", "evaluate_classes"]

_BINS = 15

_REPEATED = 10
"""Rows that a probability vector must have on average for the error of whole vectors to mean something."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassesEvaluation:
    """Every class of an evaluation, and all of them together; from `evaluate` with a matrix.

    Attributes
    ----------
    names : tuple
        Labels of the classes, in the order of columns.
    n : int
        Rows.
    accuracy : float
        Share of rows whose first choice is right.
    brier : float
        Sum over classes, in [0, 2].
    brier_interval : Interval
        Of its mean over the population, by the normal law; in [0, 2].
    log_loss : float
    log_loss_interval : Interval
        By the normal law; in [0, inf]. All of that if the loss is infinite.
    conf_ce, uncorrected_conf_ce : float
        Errors of the confidence, as the functions of these names with 15 bins: the first cannot be lowered by
        distorting predictions.
    classwise_ece, classwise_lin_ce : float
        Means over classes, 15 bins.
    full_ece : float or None
        Of whole probability vectors; None with fewer than 10 rows for each different vector, where it would
        be the loss of single rows.
    n_vectors : int
        Different probability vectors.
    rates, mean_probs : float64 arrays of shape (k,)
        Share of each class, and its mean probability.
    ece, lin_ce : float64 arrays of shape (k,)
        Of each class against the rest: 15 equally wide bins, and 15 bins of equal counts.
    auroc : float64 array of shape (k,)
        Of each class against the rest; NaN for a class without rows.
    certificates : CertificateSet
        One for each class, all holding together, and the interval of their mean.
    diagrams : ClasswiseReliability
    """

    names: tuple[Any, ...]
    n: int
    accuracy: float
    brier: float
    brier_interval: Interval
    log_loss: float
    log_loss_interval: Interval
    conf_ce: float
    uncorrected_conf_ce: float
    classwise_ece: float
    classwise_lin_ce: float
    full_ece: float | None
    n_vectors: int
    rates: Floats
    mean_probs: Floats
    ece: Floats
    lin_ce: Floats
    auroc: Floats
    certificates: CertificateSet
    diagrams: ClasswiseReliability

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @property
    def verdict(self) -> str:
        """How many classes are certified to be miscalibrated, in words."""
        off = sum(c.lower > 0.0 for c in self.certificates.values())
        return (
            f"That is about the first choice. Of {len(self.names)} classes, each against the rest, "
            f"{off or 'none'} {'is' if off < 2 else 'are'} certified to be miscalibrated, all at once."
        )

    @property
    def methods(self) -> str:
        """Sentences for the methods section of a paper."""
        level = f"{100.0 * (1.0 - self.certificates.delta):.6g} %"
        return (
            f"All of the above is about first choices. Each of {len(self.names)} classes was certified "
            f"against the rest, all of them together at {level}; classwise ECE and LinCE are means over "
            "classes, with 15 bins of equal width and of equal counts. ConfCE is the confidence error with "
            "the correction that makes it truthful, 15 bins of equal counts. Intervals of the Brier score "
            "and the log loss of all classes are by the normal law."
        )

    @property
    def worst_first(self) -> NDArray[np.int64]:
        """Numbers of the columns by descending lower end of their certificates, then by `ece`."""
        lower = np.array([c.lower for c in self.certificates.values()])
        return np.lexsort((-self.ece, -lower))

    def renamed(self, names: tuple[Any, ...]) -> ClassesEvaluation:
        """Return the same with other labels of the classes, in the order of columns."""
        each = zip(names, self.certificates.values(), strict=True)
        diagrams = (
            replace(diagram, name=name) for name, diagram in zip(names, self.diagrams.diagrams, strict=True)
        )
        return replace(
            self,
            names=tuple(names),
            certificates=replace(self.certificates, certificates=dict(each)),
            diagrams=replace(self.diagrams, diagrams=tuple(diagrams)),
        )

    def with_dropped(self, n_dropped: int) -> ClassesEvaluation:
        """Return the same with the number of rows that were left out."""
        each = {name: replace(c, n_dropped=n_dropped) for name, c in self.certificates.items()}
        return replace(self, certificates=replace(self.certificates, certificates=each))

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for JSON; NaN and inf are None."""
        found = plain(self)
        found["names"] = [
            v if isinstance(v, bool | int | str) or (isinstance(v, float) and math.isfinite(v)) else str(v)
            for v in self.names
        ]
        for name in ("rates", "mean_probs", "ece", "lin_ce", "auroc"):
            found[name] = [None if math.isnan(v) else v for v in getattr(self, name).tolist()]
        return found

    def __repr__(self) -> str:
        mean = self.certificates.mean
        return (
            f"<ClassesEvaluation of {len(self.names)} classes: accuracy {self.accuracy:.4g}, classwise ECE "
            f"{self.classwise_ece:.4g}, mean calibration error in {mean}, n={self.n}>"
        )


def evaluate_classes(
    rows: ClassRows, *, delta: float, variation: float | None, seed: Any
) -> ClassesEvaluation:
    """All classes of rows that are checked; other parameters as for `evaluate`.

    O(k n log n); the matrix is not copied.
    """
    codes, matrix = rows.codes, rows.matrix
    n, k = matrix.shape
    hits = np.bincount(codes, minlength=k)
    squares, logs = _losses(codes, matrix)
    certificates = certify_classwise(codes, matrix, delta=delta, rng=seed, variation=variation)
    _, first = rows.equal_rows()
    own: list[tuple[float, float, float, float]] = []
    for j, column in enumerate(rows.columns()):
        table = ScoreTable(codes == j, column)
        own.append(
            (
                table.sum_scores / n,
                float(curve_of(table, np.array([_BINS]), "uniform", 1.0)[0].ece[0]),
                binary_lin_ce(codes == j, column, n_bins=_BINS),
                auroc(table) if 0 < hits[j] < n else math.nan,
            )
        )
    mean_probs, errors, truthful, ranking = map(np.array, zip(*own, strict=True))
    found = ClassesEvaluation(
        names=tuple(range(k)),
        n=n,
        accuracy=float(np.mean(rows.best == codes)),
        brier=float(squares.mean()),
        brier_interval=_normal(squares, delta, 2.0),
        log_loss=float(logs.mean()),
        log_loss_interval=_normal(logs, delta, math.inf),
        conf_ce=conf_ce(codes, matrix, n_bins=_BINS),
        uncorrected_conf_ce=uncorrected_conf_ce(codes, matrix, n_bins=_BINS),
        classwise_ece=math.fsum(errors) / k,
        classwise_lin_ce=classwise_lin_ce(codes, matrix, n_bins=_BINS),
        full_ece=full_ece(codes, matrix) if n >= _REPEATED * len(first) else None,
        n_vectors=len(first),
        rates=hits / n,
        mean_probs=mean_probs,
        ece=errors,
        lin_ce=truthful,
        auroc=ranking,
        certificates=certificates,
        diagrams=reliability_classwise(codes, matrix, delta=delta, certificates=None),
    )
    return found.renamed(rows.names)


def _losses(codes: NDArray[np.int64], matrix: NDArray[Any]) -> tuple[Floats, Floats]:
    """Squared and logarithmic loss of each row."""
    squares, given = np.empty(len(codes)), np.empty(len(codes))
    for start, block in row_blocks(matrix):
        part = slice(start, start + len(block))
        numbers = block.astype(np.float64).clip(0.0, 1.0)
        given[part] = numbers[np.arange(len(numbers)), codes[part]]
        squares[part] = np.einsum("ij,ij->i", numbers, numbers) - 2.0 * given[part] + 1.0
    with np.errstate(divide="ignore"):
        return squares.clip(0.0, 2.0), 0.0 - np.log(given)


def _normal(losses: Floats, delta: float, most: float) -> Interval:
    """Interval of a mean by the normal law, in [0, most]."""
    mean = float(losses.mean())
    if math.isinf(mean) or len(losses) == 1:
        return Interval(0.0, most)
    half = float(ndtri(1.0 - delta / 2.0)) * float(losses.std(ddof=1)) / math.sqrt(len(losses))
    return Interval(max(mean - half, 0.0), min(mean + half, most))
