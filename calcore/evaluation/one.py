"""The evaluation of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore._classes import ClassRows, class_rows
from calcore.binned import EceCurve, curve_of
from calcore.certificates import certify
from calcore.certificates.groups import certify_groups
from calcore.certificates.options import one_seed
from calcore.comparison import ModelComparison, checked_resamples, compare
from calcore.comparison.results import plain
from calcore.diagrams import (
    ReliabilityDiagram,
    ResidualMap,
    RiskCoverage,
    reliability,
    residual_map,
    risk_coverage,
)
from calcore.evaluation.classes import ClassesEvaluation, evaluate_classes
from calcore.evaluation.data import DataSummary
from calcore.evaluation.words import (
    EVENTS,
    N_BINS,
    Event,
    Outcome,
    call,
    methods,
    outcome_of,
    verdict_of,
    versions,
    warnings_of,
)
from calcore.perturbation import auroc, delong_interval
from calcore.planning import sensitivity
from calcore.results import Certificate, CertificateSet, Interval, Sensitivity
from calcore.scoring import (
    BrierDecomposition,
    ClinicalCalibration,
    CorpDecomposition,
    brier_decomposition,
    clinical_calibration,
    corp,
)
from calcore.scoring.losses import is_matrix, named
from calcore.table import ScoreTable, tabulate

__all__ = ["METRICS", "RESAMPLED_ROWS", "Evaluation", "Rng", "evaluate", "sampled"]

Rng = int | np.random.Generator | np.random.SeedSequence | None

METRICS = ("brier", "log_loss", *(f"ece@{k}" for k in N_BINS), "lin_ce@15")

VARIATIONS = (0.5, 1.0, 2.0)

RESAMPLED_ROWS = 1_000_000
"""Up to this many rows are resampled; of more a random sample of that size is."""


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
    n_dropped : int
        Rows left out because another row of their group was drawn; `data` is of those kept.
    n_groups : int or None
        Groups, of each of which one row was kept; None if none were named.
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
    risk : RiskCoverage
        Errors if the least confident rows are left out. Of a binary score the choice is the positive label
        from 1/2 on.
    clinical : ClinicalCalibration or None
        None if it is not defined; `clinical_note` says why.
    clinical_note : str
    auroc : float or None
        None if all labels are equal.
    auroc_interval : Interval or None
        By DeLong's variance and the normal law, in [0, 1].
    segments : CertificateSet or None
        If `by` was given: certificates that hold together.
    segments_by : str or None
        Name of the segments.
    classes : ClassesEvaluation or None
        If `y_prob` was a matrix: every class, and all together.
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
    n_dropped: int
    n_groups: int | None
    certificate: Certificate
    sensitivity: Sensitivity
    comparison: ModelComparison
    n_resampled: int
    brier_parts: BrierDecomposition
    corp: CorpDecomposition
    curve: EceCurve
    diagram: ReliabilityDiagram
    residuals: ResidualMap
    risk: RiskCoverage
    clinical: ClinicalCalibration | None
    clinical_note: str
    auroc: float | None
    auroc_interval: Interval | None
    segments: CertificateSet | None
    segments_by: str | None
    classes: ClassesEvaluation | None
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
    groups: Any = None,
    delta: float = 0.05,
    variation: float | None = None,
    n_resamples: int = 1000,
    event: Event = "positive",
    population: str = "",
    command: str = "",
    pos_label: Any = None,
    labels: ArrayLike | None = None,
    rng: Rng = 0,
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluate the calibration of one model: certificate, proper scores, binned errors, diagrams, words.

    Use it once, on rows that the model was not fitted to, for a report. To say which of two models is better
    use `calcore.evaluate_models`: two reports side by side do not say what can be told apart.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. Of several classes: columns of `y_prob`,
        0 to k - 1, or any of `labels`.
    y_prob : array_like of shape (n,) or (n, k)
        Probability of the positive class, or of every class, in [0, 1]. Of several classes the evaluation is
        that of the first choice, the largest of each row (of equal ones the first column), and `classes` has
        the others.
    name : str, default "model"
        What to call the model.
    by : array_like of shape (n,), optional
        Segment of each row, as in `calcore.certify_groups`: each is certified too. A pandas or polars column
        gives its name to the table.
    groups : array_like of shape (n,), optional
        Rows of a group (a day, a patient) depend on each other: one random row of each is kept, the same that
        `calcore.certify` draws for this `rng`. All numbers are of these rows.
    delta : float, default 0.05
        Probability that an interval misses, each by itself; all segments together.
    variation : float, optional
        Assumed largest total variation of the true rate, as in `calcore.certify`; default 1.
    n_resamples : int, default 1000
        As in `calcore.compare`.
    event : {"positive", "top label"}
        What scores are probabilities of, if they are one column: "top label" if `y_true` says whether a first
        choice was right, and `y_prob` with what probability.
    population, command : str, optional
        What the rows are a sample of, and what reproduces the numbers; both are printed only.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.
    labels : array_like of shape (k,), optional
        The label of each column of a matrix.
    rng : int, Generator, SeedSequence or None, default 0
        Of resamples, and of the rows to resample if there are more than 1,000,000.
    n_threads : int, optional
        As in `calcore.compare`.

    Returns
    -------
    Evaluation
        ``to_dict()`` for JSON, `calcore.report.html` for a page.

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
    number, seed = numbered(rng)
    several = None
    if is_matrix(y_prob):
        if pos_label is not None:
            raise ValueError("pos_label must be left out beside a matrix of y_prob: every column is a class")
        event = "top label"
        with named("y_prob"):
            several = class_rows(y_true, y_prob, labels)
        y_prob, y_true = several.top()
    elif labels is not None:
        raise ValueError("labels name the columns of a matrix of y_prob; got one column: see pos_label")
    checked = _validate.binary(y_true, y_prob, pos_label=pos_label)
    sample = drawn_rows(checked, by, groups, seed)
    columns = {"by": by, "groups": groups, "labels": labels}
    given = [each for each, value in columns.items() if value is not None]
    event_said: Event = "positive" if several is not None else event
    made = command or call(name, event_said, delta, variation, pos_label, draws, number, *given)
    found = evaluate_rows(
        sample.of(checked),
        sample,
        name=name,
        delta=delta,
        variation=variation,
        draws=draws,
        event=event,
        population=population,
        command=made,
        seed=seed,
        number=number,
        n_threads=n_threads,
    )
    if several is None:
        return found
    if sample.kept is not None:
        kept = sample.kept
        several = ClassRows(several.codes[kept], several.matrix[kept], several.names, several.best[kept])
    classes = evaluate_classes(several, delta=delta, variation=variation, seed=seed)
    if sample.n_dropped:
        classes = classes.with_dropped(sample.n_dropped)
    return replace(
        found,
        classes=classes,
        verdict=f"{found.verdict} {classes.verdict}",
        methods=f"{found.methods} {classes.methods}",
    )


def numbered(rng: Rng) -> tuple[int | None, Any]:
    """The seed as a number if it is one, and what gives the same draws whenever it is used."""
    seed = one_seed(np.random.default_rng() if rng is None else rng)
    return (int(seed), int(seed)) if isinstance(seed, (int, np.integer)) else (None, seed)


class Sample(NamedTuple):
    """Which rows are looked at: all (None), or one of each group; and their segments."""

    kept: NDArray[np.int64] | None
    n_dropped: int
    left_out: dict[Any, int]
    """Of each segment."""
    segments: NDArray[np.object_] | None
    segments_by: str | None

    def of(self, rows: _validate.Rows) -> _validate.Rows:
        return rows if self.kept is None else rows.take(self.kept)


def drawn_rows(rows: _validate.Rows, by: Any, groups: Any, seed: Any) -> Sample:
    """One row of each group, the ones that `certify` draws, and segments by name."""
    kept = None if groups is None else _validate.group_rows(groups, len(rows), _validate.generator(seed))
    segments, left_out = None, {}
    if by is not None:
        names, codes = _validate.segments(by, len(rows))
        listed = np.empty(len(names), object)
        listed[:] = list(names)
        own = codes if kept is None else codes[kept]
        lost = np.bincount(codes, minlength=len(names)) - np.bincount(own, minlength=len(names))
        segments, left_out = listed[own], dict(zip(names, lost.tolist(), strict=True))
    dropped = 0 if kept is None else len(rows) - len(kept)
    called = None if by is None else str(getattr(by, "name", None) or "segment")
    return Sample(kept, dropped, left_out, segments, called)


def evaluate_rows(
    checked: _validate.Rows,
    sample: Sample,
    *,
    name: str,
    delta: float,
    variation: float | None,
    draws: int,
    event: Event,
    population: str,
    command: str,
    seed: Any,
    number: int | None,
    n_threads: int | None,
) -> Evaluation:
    """`evaluate` after the checks; `checked` are the rows of the sample."""
    labels, scores, _ = checked.block(0, len(checked))
    held = tabulate(checked)
    certificate = certify(held, delta=delta, variation=variation, rng=seed)
    table = held if isinstance(held, ScoreTable) else ScoreTable.from_rows(checked)
    data = DataSummary.of(table)
    segments = None
    if sample.segments is not None:
        segments = certify_groups(
            labels, scores, by=sample.segments, delta=delta, rng=seed, variation=variation
        )
        if sample.kept is not None:
            segments = replace(
                segments,
                certificates={
                    each: replace(c, n_dropped=sample.left_out[each]) for each, c in segments.items()
                },
                pooled=segments.pooled and replace(segments.pooled, n_dropped=sample.n_dropped),
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
    outcome = outcome_of(certificate, table, off)
    diagram = replace(reliability(table, delta=delta, certificate=certificate), event=event)
    return Evaluation(
        name=name,
        event=event,
        outcome=outcome,
        verdict=verdict_of(outcome, certificate, data, table.sum_abs_error / table.n, off),
        population=population,
        data=data,
        n_dropped=sample.n_dropped,
        n_groups=None if sample.kept is None else len(sample.kept),
        certificate=replace(certificate, n_dropped=sample.n_dropped),
        sensitivity=sensitivity(held, variations=VARIATIONS, delta=delta, rng=seed),
        comparison=found,
        n_resampled=len(few_labels),
        brier_parts=brier_decomposition(table),
        corp=corp(few),
        curve=curve,
        diagram=diagram,
        residuals=residuals,
        risk=_risk(table, event),
        clinical=clinical,
        clinical_note=note,
        auroc=None if data.one_class else auroc(table),
        auroc_interval=None if data.one_class else delong_interval(table, delta),
        segments=segments,
        segments_by=sample.segments_by,
        classes=None,
        delta=delta,
        seed=number,
        methods=methods(
            event,
            certificate,
            curve,
            found,
            data.n,
            sample.n_dropped,
            int(np.count_nonzero(diagram.bins.counts)),
            0 if segments is None else len(segments),
            clinical,
            number,
        ),
        command=command,
        versions=versions(),
        warnings=tuple(dict.fromkeys(warnings_of(certificate, found, clinical, data))),
    )


def _risk(table: ScoreTable, event: Event) -> RiskCoverage:
    """Errors over coverage: of a binary score the choice is the likelier label, positive at 1/2."""
    if event == "top label":
        return risk_coverage(table)
    positive = table.scores >= 0.5
    # 0.41 and 0.59 are equally sure, though 1 - 0.41 is not the same double as 0.59
    confidence = np.round(np.where(positive, table.scores, 1.0 - table.scores), 15)
    right = np.where(positive, table.positives, table.counts - table.positives)
    pooled = np.concatenate([confidence, confidence]), np.concatenate([right, table.counts - right])
    hit = np.repeat([True, False], len(confidence))
    return risk_coverage(np.repeat(hit, pooled[1]), confidence=np.repeat(pooled[0], pooled[1]))


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
