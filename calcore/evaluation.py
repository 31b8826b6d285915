"""The whole evaluation of one model: what is proved, what is estimated, and the words to report it with.

Three layers, in this order: proper scores decide which model is better, errors over bins and diagrams show
where it is off, resampling and certificates say what the rows can show. `evaluate` gathers them from one
pair of columns; `calcore.report.page.html` makes a page of the result, and ``calcore report`` a file.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import __version__, _validate
from calcore.binned import EceCurve, curve_of
from calcore.certificates import certify
from calcore.certificates.groups import certify_groups
from calcore.certificates.options import one_seed
from calcore.comparison import ModelComparison, checked_resamples, compare
from calcore.comparison.results import plain
from calcore.diagrams import ReliabilityDiagram, ResidualMap, reliability, residual_map
from calcore.perturbation import auroc
from calcore.planning import sensitivity
from calcore.report.text import _digits, _percent, _rounded
from calcore.results import Certificate, CertificateSet, Sensitivity
from calcore.scoring import (
    BrierDecomposition,
    ClinicalCalibration,
    CorpDecomposition,
    brier_decomposition,
    clinical_calibration,
    corp,
)
from calcore.table import ScoreTable, tabulate

__all__ = ["EVENTS", "RESAMPLED_ROWS", "DataSummary", "Evaluation", "evaluate", "sampled"]

Rng = int | np.random.Generator | np.random.SeedSequence | None
Event = Literal["positive", "top label"]
Outcome = Literal["too few rows", "miscalibrated", "not shown to be miscalibrated"]

EVENTS = MappingProxyType({"positive": "the label is positive", "top label": "the first choice is right"})
"""What a score is the probability of, in words."""

N_BINS = (10, 15, 20)
"""Numbers of equally wide bins: one alone says more about its edges than about the model."""

METRICS = ("brier", "log_loss", *(f"ece@{k}" for k in N_BINS), "lin_ce@15")

VARIATIONS = (0.5, 1.0, 2.0)

_FEW_BINS = 5
"""With fewer of 20 bins in use, as for rare events, equally wide bins are said to hide structure."""

RESAMPLED_ROWS = 1_000_000
"""Up to this many rows are resampled; of more a random sample of that size is."""


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation:
    """Everything that a report of one model says; from `evaluate`.

    Attributes
    ----------
    name : str
        Of the model.
    event : {"positive", "top label"}
        What the score is the probability of: calibration is meant in this sense, and no other.
    outcome : {"too few rows", "miscalibrated", "not shown to be miscalibrated"}
        See `evaluate`.
    verdict : str
        The same in one or two sentences, with the certified interval and its assumption.
    population : str
        What the rows are a sample of; empty if nobody said.
    data : DataSummary
    certificate : Certificate
        Of all rows.
    sensitivity : Sensitivity
        Certificates under total variations of 1/2, 1 and 2: quote one only if it was meant beforehand.
    comparison : ModelComparison
        Brier score, log loss, ECE with 10, 15 and 20 bins, and LinCE, each with a resampling interval; of
        one model, so without differences.
    n_resampled : int
        Rows that `comparison`, `corp` and `clinical` are of: all, or a random 1,000,000.
    brier_parts : BrierDecomposition
        Over 15 equally wide bins; of all rows.
    corp : CorpDecomposition
        Of the Brier score, by isotonic regression.
    curve : EceCurve
        ECE with 5 to 50 equally wide bins; of all rows.
    diagram : ReliabilityDiagram
    residuals : ResidualMap
        Both over 15 quantile bins; of all rows.
    clinical : ClinicalCalibration or None
        None if it is not defined; `clinical_note` says why.
    clinical_note : str
    auroc : float or None
        None if all labels are equal.
    segments : CertificateSet or None
        If `by` was given: certificates that hold together.
    segments_by : str or None
        Name of the segments.
    delta : float
    seed : int or None
        None if `rng` was not a number.
    methods : str
        Sentences for the methods section of a paper.
    command : str
        What reproduces the numbers.
    versions : mapping of str to str
        Of Python and of the packages that compute.
    warnings : tuple of str
        What a reader should know before using the numbers.
    """

    name: str
    event: Event
    outcome: Outcome
    verdict: str
    population: str
    data: DataSummary
    certificate: Certificate
    sensitivity: Sensitivity
    comparison: ModelComparison
    n_resampled: int
    brier_parts: BrierDecomposition
    corp: CorpDecomposition
    curve: EceCurve
    diagram: ReliabilityDiagram
    residuals: ResidualMap
    clinical: ClinicalCalibration | None
    clinical_note: str
    auroc: float | None
    segments: CertificateSet | None
    segments_by: str | None
    delta: float
    seed: int | None
    methods: str
    command: str
    versions: Mapping[str, str]
    warnings: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    def __reduce__(self) -> tuple[Any, ...]:
        values = (getattr(self, name) for name in self.__slots__)
        return type(self), tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for JSON; NaN and inf are None."""
        return plain(self) | {"versions": dict(self.versions)}

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"<Evaluation of {self.name!r}: {self.outcome}, calibration error in [{c.lower:.4g}, "
            f"{c.upper:.4g}] at {c.confidence:.6g}, n={self.data.n}>"
        )


def evaluate(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    name: str = "model",
    by: Any = None,
    delta: float = 0.05,
    variation: float | None = None,
    n_resamples: int = 1000,
    event: Event = "positive",
    population: str = "",
    command: str = "",
    pos_label: Any = None,
    rng: Rng = 0,
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluate the calibration of one model: certificate, proper scores, binned errors, diagrams, words.

    Use it once, on rows that the model was not fitted to, for a report. To say which of two models is better
    use `calcore.compare`: two reports side by side do not say what can be told apart.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    name : str, default "model"
        What to call the model.
    by : array_like of shape (n,), optional
        Segment of each row, as in `calcore.certify_groups`: each is certified too. A pandas or polars column
        gives its name to the table.
    delta : float, default 0.05
        Probability that an interval misses, each by itself; all segments together.
    variation : float, optional
        Assumed largest total variation of the true rate, as in `calcore.certify`; default 1.
    n_resamples : int, default 1000
        As in `calcore.compare`.
    event : {"positive", "top label"}
        What scores are probabilities of. For several classes pass whether the first choice was right, its
        probability, and "top label".
    population, command : str, optional
        What the rows are a sample of, and what reproduces the numbers; both are printed only.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.
    rng : int, Generator, SeedSequence or None, default 0
        Of resamples, and of the rows to resample if there are more than 1,000,000.
    n_threads : int, optional
        As in `calcore.compare`.

    Returns
    -------
    Evaluation
        ``to_dict()`` for JSON, `calcore.report.page.html` for a page.

    Raises
    ------
    ValueError, TypeError
        If an argument breaks its rule; the message names it, the rule, the value and where.

    Notes
    -----
    *Outcome.* "too few rows": all labels are equal; or the certificate's lower end is 0 and its upper end not
    below the mean of abs(s - y) in the rows. CE = E|E[S - Y | S]| <= E|S - Y| for every model, calibrated or
    not, so such an interval says nothing that the errors of single rows did not say. "miscalibrated": the
    lower end is above 0, or `residuals` has a bin that is certified off, at `delta` too; neither needs an
    assumption. Else "not shown to be miscalibrated".

    *Ties.* Equal scores are never in two bins, except in the rank bins of LinCE, see `calcore.rank_bins`.

    *Cost.* O(n log n), and O(n_resamples min(n, 10^6)). 1,000,000 rows take about 4 s on
    two cores, 10,000,000 about 9 s and 1.3 GB.

    References
    ----------
    Efron, Tibshirani, An Introduction to the Bootstrap (1993), and those of the functions named in
    `Evaluation`.

    Examples
    --------
    >>> found = evaluate([0, 1] * 500, [0.5] * 1000, n_resamples=99)
    >>> found.outcome, found.comparison.estimate("model", "brier").estimate  # 1/4 in every row
    ('not shown to be miscalibrated', 0.25)
    >>> evaluate([0, 1, 1], [0.25, 0.5, 0.75], n_resamples=99).outcome
    'too few rows'
    """
    delta = _validate.probability(delta, "delta")
    draws = checked_resamples(n_resamples, delta)
    _validate.choice(event, "event", tuple(EVENTS))
    for argument, text in (("name", name), ("population", population), ("command", command)):
        if not isinstance(text, str):
            raise TypeError(f"{argument} must be a str; got {type(text).__name__}")
    number = int(rng) if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) else None
    seed: Any = one_seed(np.random.default_rng() if rng is None else rng) if number is None else number
    checked = _validate.binary(y_true, y_prob, pos_label=pos_label)
    labels, scores, _ = checked.block(0, len(checked))
    held = tabulate(checked)
    certificate = certify(held, delta=delta, variation=variation, rng=seed)
    table = held if isinstance(held, ScoreTable) else ScoreTable.from_rows(checked)
    data = DataSummary.of(table)
    segments = None
    if by is not None:
        segments = certify_groups(
            checked.labels,
            checked.scores,
            by=by,
            delta=delta,
            pos_label=pos_label,
            rng=seed,
            variation=variation,
        )

    some = sampled(len(labels), seed)
    few_labels, few_scores = labels[some], scores[some]
    few = table if isinstance(some, slice) else ScoreTable(few_labels, few_scores)
    clinical, note = _clinical(few, delta)
    found = compare(
        few_labels,
        {name: few_scores},
        metrics=METRICS,
        n_resamples=draws,
        delta=delta,
        rng=seed,
        n_threads=n_threads,
    )
    curve, _ = curve_of(table, np.arange(5, 51), "uniform", 1.0)
    residuals = residual_map(table, delta=delta)
    off = int(np.count_nonzero(residuals.too_high | residuals.too_low))
    outcome = _outcome(certificate, table, off)
    return Evaluation(
        name=name,
        event=event,
        outcome=outcome,
        verdict=_verdict(outcome, certificate, data, table.sum_abs_error / table.n, off),
        population=population,
        data=data,
        certificate=certificate,
        sensitivity=sensitivity(held, variations=VARIATIONS, delta=delta, rng=seed),
        comparison=found,
        n_resampled=len(few_labels),
        brier_parts=brier_decomposition(table),
        corp=corp(few),
        curve=curve,
        diagram=reliability(table, delta=delta, certificate=certificate),
        residuals=residuals,
        clinical=clinical,
        clinical_note=note,
        auroc=None if data.one_class else auroc(labels, scores),
        segments=segments,
        segments_by=None if by is None else str(getattr(by, "name", None) or "segment"),
        delta=delta,
        seed=number,
        methods=_methods(event, certificate, curve, found, data.n, number),
        command=command or _call(name, event, delta, variation, draws, number, by is not None),
        versions=_versions(),
        warnings=tuple(dict.fromkeys(_warnings(certificate, found, clinical, data))),
    )


def sampled(n: int, seed: Any) -> slice | NDArray[np.int64]:
    """Which rows to resample: all up to `RESAMPLED_ROWS`, or so many without replacement, in their order."""
    if n <= RESAMPLED_ROWS:
        return slice(None)
    drawn = _validate.generator(seed).choice(n, RESAMPLED_ROWS, replace=False, shuffle=False)
    return np.sort(drawn)


def _clinical(table: ScoreTable, delta: float) -> tuple[ClinicalCalibration | None, str]:
    if table.n_positive in (0, table.n):
        return None, "all labels are equal: no finite intercept fits"
    if table.scores[0] == 0.0 or table.scores[-1] == 1.0:
        return None, "some scores are exactly 0 or 1: their logits are infinite, and a slope does not exist"
    return clinical_calibration(table, delta=delta), ""


def _outcome(certificate: Certificate, table: ScoreTable, off: int) -> Outcome:
    if table.n_positive in (0, table.n):
        return "too few rows"
    if certificate.lower > 0.0 or off > 0:
        return "miscalibrated"
    if certificate.upper >= table.sum_abs_error / table.n:
        return "too few rows"
    return "not shown to be miscalibrated"


def _verdict(outcome: Outcome, c: Certificate, data: DataSummary, mean_error: float, off: int) -> str:
    digits = _digits(c.upper)
    low, high = _rounded(c.lower, digits, ROUND_FLOOR), _rounded(c.upper, digits, ROUND_CEILING)
    within = f"the calibration error is between {low} and {high} with {_percent(c.delta)} confidence"
    assumed = "assuming nothing but independent rows"
    if c.assumption != "none":
        assumed = f"if rows are independent and {c.assumption}"
    if outcome == "miscalibrated" and c.lower == 0.0:
        which = "one bin" if off == 1 else f"{off} bins"
        return (
            f"Miscalibrated in part: in {which} scores are certified to be off, at {_percent(c.delta)} for "
            f"all bins together, without an assumption; over all scores {within}, {assumed}."
        )
    if outcome == "miscalibrated":
        return f"Miscalibrated: {within}, {assumed}. The lower end needs no assumption."
    if outcome == "too few rows":
        if data.one_class:
            kind = "negative" if data.n_positive else "positive"
            even_so = " Even so, the lower end shows that scores are off." if c.lower > 0.0 else ""
            return f"Too few rows: no row has a {kind} label; {within}, {assumed}.{even_so}"
        why = f"the upper end is not below the mean absolute error of single rows, {mean_error:.3g}"
        return f"Too few rows: {within}, {assumed}; {why}, so this says nothing about calibration."
    return f"Not shown to be miscalibrated: {within}, {assumed}. That is no proof of calibration."


def _methods(
    event: Event, c: Certificate, curve: EceCurve, found: ModelComparison, n: int, seed: int | None
) -> str:
    used = dict(zip(curve.n_bins.tolist(), curve.n_used.tolist(), strict=True))
    empty = [str(k - used[k]) for k in N_BINS]
    rows = "the rows" if found.n == n else f"a random {found.n:,} of the rows"
    level = _percent(c.delta)
    assumed = "without an assumption on the true rate" if c.assumption == "none" else f"if {c.assumption}"
    return (
        f"Calibration was evaluated on n = {n:,} rows, for the event that {EVENTS[event]}. The L1 "
        f"calibration error was bounded by the finite-sample certificate of calcore {__version__} (method "
        f"{c.winner}, two-sided, {level} confidence, {assumed}). Expected calibration errors used K ∈ "
        f"{{{', '.join(map(str, N_BINS))}}} bins of equal width, [a, b) with the last one closed, of which "
        f"{', '.join(empty[:-1])} and {empty[-1]} were empty. LinCE used 15 bins of equal counts. Intervals "
        f"of scores and errors are {level} percentile intervals from {found.n_resamples:,} bootstrap "
        f"resamples of {rows} ({'fresh random numbers' if seed is None else f'seed {seed}'}). Reliability "
        f"diagrams have 15 quantile bins without divided ties, with Clopper–Pearson intervals, "
        "each and simultaneous."
    )


def _call(
    name: str, event: Event, delta: float, variation: float | None, draws: int, seed: int | None, by: bool
) -> str:
    options = [f"name={name!r}"] + ["by=by"] * by + [f"delta={delta:g}", f"n_resamples={draws}"]
    options += [] if variation is None else [f"variation={variation:g}"]
    options += [] if event == "positive" else [f"event={event!r}"]
    options.append(f"rng={seed}" if seed is not None else "rng=rng")
    return f"calcore.evaluate(y_true, y_prob, {', '.join(options)})"


def _versions() -> dict[str, str]:
    found = {"calcore": __version__, "Python": platform.python_version()}
    return found | {package: version(package) for package in ("numpy", "scipy", "numba")}


def _warnings(
    certificate: Certificate,
    found: ModelComparison,
    clinical: ClinicalCalibration | None,
    data: DataSummary,
) -> Iterator[str]:
    if data.one_class:
        label = "positive" if data.n_positive else "negative"
        yield f"all {data.n:,} labels are {label}: no number here says how well scores tell classes apart"
    if found.n < data.n:
        yield (
            f"intervals by resampling, the isotonic decomposition and the clinical numbers are of a random "
            f"{found.n:,} of {data.n:,} rows; everything else is of all rows"
        )
    used = found.estimate(found.models[0], f"ece@{N_BINS[-1]}").n_bins or 0
    if used < _FEW_BINS <= data.n_distinct:
        yield (
            f"only {used} of {N_BINS[-1]} equally wide bins hold rows, so that errors cancel in them: look "
            "at the quantile bins of the reliability diagram"
        )
    yield from certificate.warnings
    yield from found.warnings
    if clinical is not None:
        yield from clinical.warnings
