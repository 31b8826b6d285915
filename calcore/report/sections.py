"""What a page says of one evaluation, section by section: lines of tables, pictures, words.

Numbers are those of `Evaluation.to_dict`; ends of certified intervals are rounded outwards.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any, NamedTuple

from calcore import figures
from calcore.evaluation import EVENTS, N_BINS, ClassesEvaluation, Evaluation
from calcore.report.text import _digits, _percent, _rounded
from calcore.results import Certificate, Interval

__all__ = ["Line", "Picture", "address", "certified", "outwards", "sections", "short", "within"]

_LISTED = 40
"""Classes and segments that a table shows; the rest is in the JSON."""


def sections(e: Evaluation, prefix: str = "") -> dict[str, Any]:
    """What the template asks of one model; `prefix` goes before the ids of its sections."""
    return {
        "e": e,
        "prefix": prefix,
        "event": EVENTS[e.event],
        "level": _percent(e.delta),
        "certified": certified(e.certificate),
        "facts": list(_facts(e)),
        "scores": list(_scores(e)),
        "parts": list(_parts(e)),
        "curve": list(_curve(e)),
        "clinical": list(_clinical(e)),
        "bins": list(_bins(e)),
        "sensitivity": list(_sensitivity(e)),
        "segments": list(_segments(e)),
        "n_segments": 0 if e.segments is None else len(e.segments),
        "pictures": list(_pictures(e)),
        "classes": [] if e.classes is None else list(_class_numbers(e.classes)),
        "each_class": [] if e.classes is None else list(_each_class(e.classes)),
        "n_classes": 0 if e.classes is None else len(e.classes.names),
        "class_pictures": [] if e.classes is None else list(_class_pictures(e.classes)),
    }


class Picture(NamedTuple):
    """An image as a data address, what it shows for those who do not see it, and its caption."""

    source: str
    alternative: str
    caption: str


class Line(NamedTuple):
    """One number of a table: what it is called, its value, its interval, what it means, and of what event."""

    name: str
    value: str
    interval: str
    note: str
    event: str = ""
    """If another than that of the scores."""


def _pictures(e: Evaluation) -> Iterator[Picture]:
    level = _percent(e.delta)
    off = int(e.residuals.too_high.sum()), int(e.residuals.too_low.sum())
    used = int((e.diagram.bins.counts > 0).sum())
    both = " Bins are off in both directions: that cancels in the mean gap, and would in wider bins."
    cancels = both if e.diagram.cancels else ""
    yield Picture(
        address(e.diagram.plot, 5.6, 5.6),
        f"Reliability diagram of {e.name}: ECE {e.diagram.ece:.3g} over quantile bins",
        f"Share of rows for which {EVENTS[e.event]}, against the mean score, over {used} quantile bins. The "
        f"area of a point grows with its rows. Thick bars: {level} for each bin; thin: for all bins together."
        f"{cancels}",
    )
    yield Picture(
        address(e.residuals.plot, 5.8, 4.0),
        f"Residual map of {e.name}: {off[0]} bins certified too high, {off[1]} too low",
        f"Where scores are off. Certified at the simultaneous level of {level}: too high in {off[0]}, too "
        f"low in {off[1]} of {int((e.residuals.bins.counts > 0).sum())} bins.",
    )
    yield Picture(
        address(lambda ax: e.curve.plot(ax, label=e.name), 5.8, 4.0),
        f"Expected calibration error of {e.name} over 5 to 50 bins",
        "ECE over the number of equally wide bins, with one standard deviation; dotted, what a calibrated "
        "model would get from noise alone.",
    )
    yield Picture(
        address(e.corp.plot, 5.6, 5.6),
        f"Isotonic regression of the label on the score of {e.name}",
        "Without bins: isotonic regression, and what it makes of the Brier score.",
    )
    choice = "" if e.event == "top label" else " The choice is the positive label from a score of 1/2 on."
    yield Picture(
        address(e.risk.plot, 5.8, 4.0),
        f"Share of errors of {e.name} over the share of rows answered",
        f"Errors among the rows that are answered, if the least confident are not.{choice}",
    )


def address(draw: Callable[[Any], Any], width: float, height: float) -> str:
    """A drawing as a data address."""
    return _data(figures.picture(draw, width, height))


def _data(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def _facts(e: Evaluation) -> Iterator[tuple[str, str]]:
    d = e.data
    said = "positive" if e.event == "positive" else "right first choices"
    yield "Rows", f"{d.n:,}, of which {d.n_positive:,} {said}"
    if e.n_groups is not None:
        yield "Groups", f"one random row of each: {d.n:,} of {d.n + e.n_dropped:,} rows"
    yield "Base rate", f"{short(d.base_rate)}; mean score {short(d.mean_score)}"
    yield "Scores", f"from {d.lowest:.6g} to {d.highest:.6g}; {d.n_distinct:,} different"
    ties = f"the most frequent score is that of {d.largest_tie:,} rows"
    yield "Ties", ties if d.largest_tie > 1 else "no two scores are equal"
    yield "Certain scores", f"{d.n_zero:,} of exactly 0, {d.n_one:,} of exactly 1"
    yield "Clipped", f"{d.n_clipped:,} scores, which were a rounding error outside [0, 1]"
    both = "both" if e.event == "positive" else "right and wrong"
    yield "Labels", "only one in these rows" if d.one_class else both


_NAMES = {"brier": "Brier score", "log_loss": "Log loss (nats)"}
_NOTES = {
    "brier": "proper: decides between models",
    "log_loss": "proper: decides between models",
    "lin_ce": "truthful: no distortion of the truth lowers it",
    "lin_ce of first choices": "can be lowered by distortion: see ConfCE",
    "ece": "diagnosis only: depends on the bins",
}


def _scores(e: Evaluation) -> Iterator[Line]:
    for found in e.comparison.estimates:
        kind, _, bins = found.metric.partition("@")
        name = _NAMES.get(kind) or {"ece": "ECE, {} bins", "lin_ce": "LinCE, {} rank bins"}[kind].format(bins)
        told = "lin_ce of first choices" if kind == "lin_ce" and e.event == "top label" else kind
        note = _NOTES[told] + ("; biased, interval misses too often" if found.is_biased else "")
        yield Line(name, short(found.estimate), within(found.interval), note)
    used = int((e.diagram.bins.counts > 0).sum())
    noise = "diagnosis only; bins of the diagram"
    yield Line(f"ECE, {used} quantile bins", short(e.diagram.ece), "", noise)
    risk = f"ranking only: errors if the unsure are left out; {short(e.risk.error)} if none are"
    yield Line("AURC", short(e.risk.aurc), "", risk)
    if e.auroc is not None:
        ends = "" if e.auroc_interval is None else within(e.auroc_interval)
        yield Line("AUROC", short(e.auroc), ends, "ranking only: says nothing about calibration")


def _parts(e: Evaluation) -> Iterator[Line]:
    b, c = e.brier_parts, e.corp
    yield Line("Reliability", short(b.reliability), "", "15 equally wide bins; smaller is better")
    yield Line("Resolution", short(b.resolution), "", "larger is better")
    yield Line("Uncertainty", short(b.uncertainty), "", "of the labels alone")
    inside = b.within_bin_variance - b.within_bin_covariance
    yield Line("Inside bins", short(inside), "", "variance less covariance, what bins leave out")
    yield Line(
        "Miscalibration",
        short(c.miscalibration),
        "",
        "isotonic: at most what recalibration gains in these rows",
    )
    yield Line("Discrimination", short(c.discrimination), "", "isotonic: what scores tell about labels")


def _curve(e: Evaluation) -> Iterator[tuple[str, ...]]:
    wanted = sorted({5, *N_BINS, 30, 50, e.curve.suggested})
    for place, k in enumerate(e.curve.n_bins.tolist()):
        if k in wanted:
            yield (
                f"{k}" + (" (suggested)" if k == e.curve.suggested else ""),
                short(float(e.curve.ece[place])),
                short(float(e.curve.std[place])),
                short(float(e.curve.noise[place])),
                f"{k - int(e.curve.n_used[place]):,}",
            )


def _clinical(e: Evaluation) -> Iterator[Line]:
    c = e.clinical
    if c is None:
        return
    yield Line(
        "Intercept (logits)", short(c.intercept), within(c.intercept_interval), "0 is right on average"
    )
    yield Line("Slope", short(c.slope), within(c.slope_interval), "below 1: scores too extreme")
    yield Line(
        "Observed / expected",
        short(c.observed_expected),
        within(c.observed_expected_interval),
        "1 is right",
    )
    yield Line("ICI", short(c.ici), "", f"mean distance from a smoothed rate ({c.smoother})")
    yield Line("E50, E90", f"{short(c.e50)}, {short(c.e90)}", "", "median and 90th percentile of it")


def _bins(e: Evaluation) -> Iterator[tuple[str, ...]]:
    bins = e.diagram.bins
    for i in range(len(bins.counts)):
        if bins.counts[i] == 0:
            continue
        verdict = "too high" if e.residuals.too_high[i] else "too low" if e.residuals.too_low[i] else ""
        low, high = e.diagram.simultaneous[i].tolist()
        yield (
            f"{max(bins.edges[i], e.data.lowest):.4g} – {min(bins.edges[i + 1], e.data.highest):.4g}",
            f"{bins.counts[i]:,}",
            short(float(bins.mean_score[i])),
            short(float(bins.positive_rate[i])),
            f"[{_rounded(low, 4, ROUND_FLOOR)}, {_rounded(high, 4, ROUND_CEILING)}]",
            verdict,
        )


def _sensitivity(e: Evaluation) -> Iterator[tuple[str, ...]]:
    """Rates of two bins that are certified to be apart are a variation of that size, or more."""
    ends = e.diagram.simultaneous[e.diagram.bins.counts > 0]
    least = float(ends[:, 0].max() - ends[:, 1].min())
    for v, c in e.sensitivity.items():
        refuted = f"V is refuted: rates of bins vary by {_rounded(least, 3, ROUND_FLOOR)} or more"
        yield f"{v:g}", certified(c), c.winner, refuted if v < least else ""


def _segments(e: Evaluation) -> Iterator[tuple[str, ...]]:
    if e.segments is None:
        return
    named = [] if e.segments.pooled is None else [("all rows", e.segments.pooled)]
    each = sorted(e.segments.items(), key=lambda item: -item[1].lower)
    for name, c in [*named, *((str(name), c) for name, c in each[:_LISTED])]:
        shown = "miscalibrated" if c.lower > 0.0 else "not shown to be miscalibrated"
        yield name, f"{c.n:,}", short(c.base_rate), short(c.mean_score), certified(c), shown


_EACH = "a row is of the class, for each class"


def _class_numbers(c: ClassesEvaluation) -> Iterator[Line]:
    first, whole = EVENTS["top label"], "the class, by the whole vector"
    yield Line("Accuracy", short(c.accuracy), "", "of first choices", first)
    yield Line(
        "Brier score, all classes", short(c.brier), within(c.brier_interval), "proper; from 0 to 2", whole
    )
    yield Line(
        "Log loss (nats)",
        short(c.log_loss),
        within(c.log_loss_interval),
        "proper; infinite if 0 was said",
        whole,
    )
    yield Line("ConfCE, 15 bins", short(c.conf_ce), "", "truthful: distortion does not lower it", first)
    uncorrected = "diagnosis only: can be lowered by distortion"
    yield Line("ConfCE, uncorrected", short(c.uncorrected_conf_ce), "", uncorrected, first)
    if c.certificates.mean is not None:
        note = "mean over classes; holds together with the next table"
        yield Line("Certified classwise error", "", outwards(c.certificates.mean), note, _EACH)
    note = "truthful; mean over classes"
    yield Line("Classwise LinCE, 15 bins", short(c.classwise_lin_ce), "", note, _EACH)
    note = "diagnosis only: depends on the bins"
    yield Line("Classwise ECE, 15 bins", short(c.classwise_ece), "", note, _EACH)
    if c.full_ece is not None:
        note = f"{c.n_vectors:,} different vectors; from 0 to 2"
        yield Line("Full ECE", short(c.full_ece), "", note, whole)
    else:
        note = f"{c.n_vectors:,} different vectors in {c.n:,} rows: too few rows of each"
        yield Line("Full ECE", "not defined", "", note, whole)


def _each_class(c: ClassesEvaluation) -> Iterator[tuple[str, ...]]:
    each = list(c.certificates.values())
    for j in c.worst_first[:_LISTED].tolist():
        yield (
            str(c.names[j]),
            short(float(c.rates[j])),
            short(float(c.mean_probs[j])),
            short(float(c.ece[j])),
            short(float(c.lin_ce[j])),
            short(float(c.auroc[j])),
            certified(each[j]),
            "miscalibrated" if each[j].lower > 0.0 else "not shown to be miscalibrated",
        )


def _class_pictures(c: ClassesEvaluation) -> Iterator[Picture]:
    yield Picture(
        _data(figures.whole_picture(c.diagrams.plot, *figures.panels_size(min(len(c.diagrams), 12)))),
        f"Reliability diagrams of {min(len(c.diagrams), 12)} classes",
        "Each class against the rest, the largest ECE over quantile bins first; thin bars hold for all bins "
        "of all classes together.",
    )


def certified(c: Certificate) -> str:
    """Both ends, rounded outwards."""
    return outwards(Interval(c.lower, c.upper))


def outwards(interval: Interval) -> str:
    """Both ends, rounded outwards."""
    digits = _digits(max(abs(interval.lower), abs(interval.upper)))
    low, high = (
        _rounded(end, digits, rounding)
        for end, rounding in ((interval.lower, ROUND_FLOOR), (interval.upper, ROUND_CEILING))
    )
    return f"[{low}, {high}]"


def within(interval: Interval) -> str:
    """Both ends in four digits."""
    if interval.upper - interval.lower == math.inf:
        return "unbounded"
    return f"[{short(interval.lower)}, {short(interval.upper)}]"


def short(value: float) -> str:
    """Four digits; what is not finite in words.

    >>> short(0.123456), short(float("inf")), short(-0.0)
    ('0.1235', 'infinite', '0')
    """
    if math.isnan(value):
        return "not defined"
    if math.isinf(value):
        return "infinite" if value > 0.0 else "−infinite"
    return f"{value + 0.0:.4g}"
