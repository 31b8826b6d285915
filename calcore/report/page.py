"""An evaluation as one HTML page that opens anywhere: no script, no request, pictures inside.

Needs jinja2 and matplotlib: the extra ``report``. Numbers are those of `Evaluation.to_dict`; ends of
certified intervals are rounded outwards.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any, NamedTuple

from calcore import figures
from calcore.evaluation import EVENTS, N_BINS, Evaluation
from calcore.report.text import _digits, _percent, _rounded
from calcore.results import Certificate, Interval

__all__ = ["html"]


def html(evaluation: Evaluation) -> str:
    """Make the page of an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        From `calcore.evaluate`.

    Returns
    -------
    str
        A whole document in UTF-8: write it to a file and open that in a browser, or print it. The same
        evaluation gives the same text, for the same versions of matplotlib and jinja2.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is missing.
    TypeError
        If `evaluation` is none.

    Notes
    -----
    Names of models, segments and columns are escaped. A policy in the page forbids scripts and requests.

    Examples
    --------
    >>> from calcore import evaluate
    >>> page = html(evaluate([0, 1] * 50, [0.5] * 100, n_resamples=99))
    >>> page.startswith("<!DOCTYPE html>"), "Too few rows" in page
    (True, False)
    """
    if not isinstance(evaluation, Evaluation):
        raise TypeError(f"evaluation must be an Evaluation; got {type(evaluation).__name__}")
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError(
            "a report needs jinja2, which is not installed: pip install 'calcore-calibration[report]'"
        ) from None
    environment = Environment(
        loader=PackageLoader("calcore.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.jinja").render(
        e=evaluation,
        event=EVENTS[evaluation.event],
        level=_percent(evaluation.delta),
        certified=_certified(evaluation.certificate),
        facts=list(_facts(evaluation)),
        scores=list(_scores(evaluation)),
        parts=list(_parts(evaluation)),
        curve=list(_curve(evaluation)),
        clinical=list(_clinical(evaluation)),
        bins=list(_bins(evaluation)),
        sensitivity=[(f"{v:g}", _certified(c), c.winner) for v, c in evaluation.sensitivity.items()],
        segments=list(_segments(evaluation)),
        pictures=list(_pictures(evaluation)),
    )
    return page + "\n"


class Picture(NamedTuple):
    """An image as a data address, what it shows for those who do not see it, and its caption."""

    source: str
    alternative: str
    caption: str


class Line(NamedTuple):
    """One number of a table: what it is called, its value, its interval, and what it means."""

    name: str
    value: str
    interval: str
    note: str


def _pictures(e: Evaluation) -> Iterator[Picture]:
    level = _percent(e.delta)
    off = int(e.residuals.too_high.sum()), int(e.residuals.too_low.sum())
    cancels = " Errors of both signs cancel, so a small ECE hides structure." if e.diagram.cancels else ""
    yield Picture(
        _address(e.diagram.plot, 5.6, 5.6),
        f"Reliability diagram of {e.name}: ECE {e.diagram.ece:.3g} over quantile bins",
        f"Share of rows for which {EVENTS[e.event]}, against the mean score, over 15 quantile bins. The area "
        f"of a point grows with its rows. Thick bars: {level} for each bin; thin: for all bins together."
        f"{cancels}",
    )
    yield Picture(
        _address(e.residuals.plot, 5.8, 4.0),
        f"Residual map of {e.name}: {off[0]} bins certified too high, {off[1]} too low",
        f"Where scores are off. Certified at the simultaneous level of {level}: too high in {off[0]}, too "
        f"low in {off[1]} of {int((e.residuals.bins.counts > 0).sum())} bins.",
    )
    yield Picture(
        _address(lambda ax: e.curve.plot(ax, label=e.name), 5.8, 4.0),
        f"Expected calibration error of {e.name} over 5 to 50 bins",
        "ECE over the number of equally wide bins, with one standard deviation; dotted, what a calibrated "
        "model would get from noise alone.",
    )
    yield Picture(
        _address(e.corp.plot, 5.6, 5.6),
        f"Isotonic regression of the label on the score of {e.name}",
        "Without bins: isotonic regression, and what it makes of the Brier score.",
    )


def _address(draw: Callable[[Any], Any], width: float, height: float) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(figures.picture(draw, width, height)).decode(
        "ascii"
    )


def _facts(e: Evaluation) -> Iterator[tuple[str, str]]:
    d = e.data
    yield "Rows", f"{d.n:,}, of which {d.n_positive:,} positive"
    yield "Base rate", f"{_short(d.base_rate)}; mean score {_short(d.mean_score)}"
    yield "Scores", f"from {d.lowest:.6g} to {d.highest:.6g}; {d.n_distinct:,} different"
    ties = f"the most frequent score is that of {d.largest_tie:,} rows"
    yield "Ties", ties if d.largest_tie > 1 else "no two scores are equal"
    yield "Certain scores", f"{d.n_zero:,} of exactly 0, {d.n_one:,} of exactly 1"
    yield "Clipped", f"{d.n_clipped:,} scores, which were a rounding error outside [0, 1]"
    yield "Classes", "only one in these rows" if d.one_class else "both"


_NAMES = {"brier": "Brier score", "log_loss": "Log loss (nats)"}
_NOTES = {
    "brier": "proper: decides between models",
    "log_loss": "proper: decides between models",
    "lin_ce": "truthful: no distortion of the truth lowers it",
    "ece": "diagnosis only: depends on the bins",
}


def _scores(e: Evaluation) -> Iterator[Line]:
    for found in e.comparison.estimates:
        kind, _, bins = found.metric.partition("@")
        name = _NAMES.get(kind) or {"ece": "ECE, {} bins", "lin_ce": "LinCE, {} rank bins"}[kind].format(bins)
        note = _NOTES[kind] + ("; biased, interval misses too often" if found.is_biased else "")
        yield Line(name, _short(found.estimate), _within(found.interval), note)
    used = int((e.diagram.bins.counts > 0).sum())
    noise = "diagnosis only; bins of the diagram"
    yield Line(f"ECE, {used} quantile bins", _short(e.diagram.ece), "", noise)
    if e.auroc is not None:
        yield Line("AUROC", _short(e.auroc), "", "ranking only: says nothing about calibration")


def _parts(e: Evaluation) -> Iterator[Line]:
    b, c = e.brier_parts, e.corp
    yield Line("Reliability", _short(b.reliability), "", "15 equally wide bins; smaller is better")
    yield Line("Resolution", _short(b.resolution), "", "larger is better")
    yield Line("Uncertainty", _short(b.uncertainty), "", "of the labels alone")
    inside = b.within_bin_variance - b.within_bin_covariance
    yield Line("Inside bins", _short(inside), "", "variance less covariance, what bins leave out")
    yield Line("Miscalibration", _short(c.miscalibration), "", "isotonic: what recalibration would gain")
    yield Line("Discrimination", _short(c.discrimination), "", "isotonic: what scores tell about labels")


def _curve(e: Evaluation) -> Iterator[tuple[str, ...]]:
    wanted = sorted({5, *N_BINS, 30, 50, e.curve.suggested})
    for place, k in enumerate(e.curve.n_bins.tolist()):
        if k in wanted:
            yield (
                f"{k}" + (" (suggested)" if k == e.curve.suggested else ""),
                _short(float(e.curve.ece[place])),
                _short(float(e.curve.std[place])),
                _short(float(e.curve.noise[place])),
                f"{k - int(e.curve.n_used[place]):,}",
            )


def _clinical(e: Evaluation) -> Iterator[Line]:
    c = e.clinical
    if c is None:
        return
    yield Line(
        "Intercept (logits)", _short(c.intercept), _within(c.intercept_interval), "0 is right on average"
    )
    yield Line("Slope", _short(c.slope), _within(c.slope_interval), "below 1: scores too extreme")
    yield Line(
        "Observed / expected",
        _short(c.observed_expected),
        _within(c.observed_expected_interval),
        "1 is right",
    )
    yield Line("ICI", _short(c.ici), "", f"mean distance from a smoothed rate ({c.smoother})")
    yield Line("E50, E90", f"{_short(c.e50)}, {_short(c.e90)}", "", "median and 90th percentile of it")


def _bins(e: Evaluation) -> Iterator[tuple[str, ...]]:
    bins = e.diagram.bins
    for i in range(len(bins.counts)):
        if bins.counts[i] == 0:
            continue
        verdict = "too high" if e.residuals.too_high[i] else "too low" if e.residuals.too_low[i] else ""
        low, high = e.diagram.simultaneous[i].tolist()
        yield (
            f"{bins.edges[i]:.4g} – {bins.edges[i + 1]:.4g}",
            f"{bins.counts[i]:,}",
            _short(float(bins.mean_score[i])),
            _short(float(bins.positive_rate[i])),
            f"[{_rounded(low, 4, ROUND_FLOOR)}, {_rounded(high, 4, ROUND_CEILING)}]",
            verdict,
        )


def _segments(e: Evaluation) -> Iterator[tuple[str, ...]]:
    if e.segments is None:
        return
    named = [] if e.segments.pooled is None else [("all rows", e.segments.pooled)]
    for name, c in [*named, *((str(name), c) for name, c in e.segments.items())]:
        shown = "miscalibrated" if c.lower > 0.0 else "not shown to be"
        yield name, f"{c.n:,}", _short(c.base_rate), _short(c.mean_score), _certified(c), shown


def _certified(c: Certificate) -> str:
    digits = _digits(c.upper)
    return f"[{_rounded(c.lower, digits, ROUND_FLOOR)}, {_rounded(c.upper, digits, ROUND_CEILING)}]"


def _within(interval: Interval) -> str:
    if interval.upper - interval.lower == math.inf:
        return "unbounded"
    return f"[{_short(interval.lower)}, {_short(interval.upper)}]"


def _short(value: float) -> str:
    """Four digits; what is not finite in words.

    >>> _short(0.123456), _short(float("inf")), _short(-0.0)
    ('0.1235', 'infinite', '0')
    """
    if math.isnan(value):
        return "not defined"
    if math.isinf(value):
        return "infinite" if value > 0.0 else "−infinite"
    return f"{value + 0.0:.4g}"
