"""The words of an evaluation: outcome, verdict, methods, warnings, and the call that repeats it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Literal

from calcore import __version__
from calcore.binned import EceCurve
from calcore.comparison import ModelComparison
from calcore.evaluation.data import DataSummary
from calcore.report.text import _digits, _percent, _rounded
from calcore.results import Certificate
from calcore.scoring import ClinicalCalibration
from calcore.table import ScoreTable

__all__ = [
    "EVENTS",
    "N_BINS",
    "Event",
    "Outcome",
    "call",
    "methods",
    "outcome_of",
    "verdict_of",
    "versions",
    "warnings_of",
]

Event = Literal["positive", "top label"]
Outcome = Literal["too few rows", "miscalibrated", "not shown to be miscalibrated"]

EVENTS = MappingProxyType({"positive": "the label is positive", "top label": "the first choice is right"})
"""What a score is the probability of, in words."""

N_BINS = (10, 15, 20)
"""Numbers of equally wide bins: one alone says more about its edges than about the model."""

_FEW_BINS = 5
"""With fewer of 20 bins in use, as for rare events, equally wide bins are said to hide structure."""


def outcome_of(certificate: Certificate, table: ScoreTable, off: int) -> Outcome:
    if table.n_positive in (0, table.n):
        return "too few rows"
    if certificate.lower > 0.0 or off > 0:
        return "miscalibrated"
    if certificate.upper >= table.sum_abs_error / table.n:
        return "too few rows"
    return "not shown to be miscalibrated"


def verdict_of(outcome: Outcome, c: Certificate, data: DataSummary, mean_error: float, off: int) -> str:
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
        return (
            f"Too few rows: {within}, {assumed}; {why}, so this says no more than the errors of single rows."
        )
    return f"Not shown to be miscalibrated: {within}, {assumed}. That is no proof of calibration."


def methods(
    event: Event,
    c: Certificate,
    curve: EceCurve,
    found: ModelComparison,
    n: int,
    n_dropped: int,
    n_quantile: int,
    n_segments: int,
    clinical: ClinicalCalibration | None,
    seed: int | None,
) -> str:
    """Sentences for the methods section of a paper."""
    used = dict(zip(curve.n_bins.tolist(), curve.n_used.tolist(), strict=True))
    empty = [str(k - used[k]) for k in N_BINS]
    one_each = f", one drawn at random from each group of {n + n_dropped:,}" if n_dropped else ""
    rows = "the rows" if found.n == n else f"a random {found.n:,} of the rows"
    level = _percent(c.delta)
    assumed = "without an assumption on the true rate" if c.assumption == "none" else f"if {c.assumption}"
    text = (
        f"Calibration was evaluated on n = {n:,} rows{one_each}, for the event that {EVENTS[event]}. The L1 "
        f"calibration error was bounded by the finite-sample certificate of calcore {__version__} (method "
        f"{c.winner}, two-sided, {level} confidence, {assumed}). Expected calibration errors used K ∈ "
        f"{{{', '.join(map(str, N_BINS))}}} bins of equal width, [a, b) with the last one closed, of which "
        f"{', '.join(empty[:-1])} and {empty[-1]} were empty. LinCE used {min(15, n)} bins of equal counts. "
        f"Intervals of scores and errors are {level} percentile intervals from {found.n_resamples:,} "
        f"bootstrap resamples of {rows} ({'fresh random numbers' if seed is None else f'seed {seed}'}). The "
        f"reliability diagram has {n_quantile} quantile bins without divided ties, with Clopper–Pearson "
        "intervals, each and simultaneous (Bonferroni). The Brier score was decomposed over 15 bins of equal "
        "width and by isotonic regression."
    )
    if clinical is not None:
        text += (
            f" Calibration intercept and slope have Wald intervals, the ratio of observed and expected "
            f"events a Clopper–Pearson interval with the expected number as given; ICI, E50 and E90 are of a "
            f"{clinical.smoother}."
        )
    if c.n_positive not in (0, c.n):
        text += " The area under the ROC curve counts ties half and has DeLong's interval."
    if n_segments:
        text += (
            f" Certificates of {n_segments} segments and of all rows together hold at once with {level} "
            "confidence."
        )
    return text


def call(
    name: str,
    event: Event,
    delta: float,
    variation: float | None,
    pos_label: Any,
    draws: int,
    seed: int | None,
    *columns: str,
) -> str:
    """The call that gives the same numbers; `columns` are the arguments that are columns themselves."""
    options = [f"name={name!r}", *(f"{each}={each}" for each in columns)]
    options += [f"delta={delta!r}", f"n_resamples={draws}"]
    options += [] if variation is None else [f"variation={float(variation)!r}"]
    options += [] if pos_label is None else [f"pos_label={pos_label!r}"]
    options += [] if event == "positive" else [f"event={event!r}"]
    options.append(f"rng={seed}" if seed is not None else "rng=rng")
    return f"calcore.evaluate(y_true, y_prob, {', '.join(options)})"


def versions() -> dict[str, str]:
    found = {"calcore": __version__, "Python": platform.python_version()}
    return found | {package: version(package) for package in ("numpy", "scipy", "numba")}


def warnings_of(
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
            f"the scores and errors that have an interval by resampling, the isotonic decomposition and the "
            f"clinical numbers are of a random {found.n:,} of {data.n:,} rows; everything else is of all rows"
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
