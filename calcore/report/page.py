"""An evaluation as one HTML page that opens anywhere: no script, no request, pictures inside.

Needs jinja2 and matplotlib: the extra ``report``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calcore.evaluation import Evaluation, ModelsEvaluation
from calcore.evaluation.models import CURVE_BINS
from calcore.report.sections import Picture, address, outwards, sections, short, within
from calcore.report.text import _percent

__all__ = ["html"]


def html(evaluation: Evaluation | ModelsEvaluation) -> str:
    """Make the page of an evaluation.

    Parameters
    ----------
    evaluation : Evaluation or ModelsEvaluation
        From `calcore.evaluate` or `calcore.evaluate_models`.

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
    if not isinstance(evaluation, Evaluation | ModelsEvaluation):
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
    template = environment.get_template("report.html.jinja")
    if isinstance(evaluation, Evaluation):
        page = template.render(title=evaluation.name, models=[sections(evaluation)], versus=None)
    else:
        page = template.render(
            title=", ".join(evaluation.names),
            models=[sections(each, f"m{i}-") for i, each in enumerate(evaluation.models, 1)],
            versus=_versus(evaluation),
        )
    return page + "\n"


def _versus(m: ModelsEvaluation) -> dict[str, Any]:
    """What the template asks of the differences."""
    return {
        "verdict": m.verdict,
        "methods": m.methods,
        "level": _percent(m.delta),
        "n": f"{m.comparison.n:,}",
        "n_resamples": f"{m.comparison.n_resamples:,}",
        "differences": list(_differences(m)),
        "certified": list(_certified(m)),
        "ranking": list(_ranking(m)),
        "names": m.names,
        "picture": _curves(m),
        "warnings": m.comparison.warnings,
        "together": [d for d in m.comparison.differences if d.distinguishable_together],
        "n_comparisons": m.comparison.n_comparisons,
    }


_NAMES = {"brier": "Brier score", "log_loss": "Log loss (nats)", "lin_ce@15": "LinCE, 15 rank bins"}


def _differences(m: ModelsEvaluation) -> Iterator[tuple[str, ...]]:
    """Proper and truthful scores, pair by pair."""
    for metric, name in _NAMES.items():
        for d in m.comparison.differences:
            if d.metric != metric:
                continue
            ratio = d.variance_ratio
            yield (
                f"{name}: {d.a} minus {d.b}",
                short(d.difference),
                within(d.interval),
                "not defined" if ratio is None else f"{ratio:.2g}",
                short(d.overlap),
                d.verdict + (" (biased)" if d.is_biased else ""),
            )


def _certified(m: ModelsEvaluation) -> Iterator[tuple[str, ...]]:
    for (a, b), d in m.certified:
        for name, interval, better in (
            ("Brier score", d.brier_difference, "better"),
            ("Calibration error", d.ce_difference, "less in error"),
        ):
            shown = "nothing shown"
            if interval.upper < 0.0 or interval.lower > 0.0:
                shown = f"{a if interval.upper < 0.0 else b} is {better}"
            yield f"{name}: {a} minus {b}", outwards(interval), shown


def _ranking(m: ModelsEvaluation) -> Iterator[tuple[str, ...]]:
    """ECE of every model by number of bins, which is smallest, and from which models that can be told."""
    for k in CURVE_BINS:
        metric = f"ece@{k}"
        least = m.smallest(metric)
        others = [m.comparison.difference(least, name, metric) for name in m.names if name != least]
        told = [d.b + (" (biased)" if d.is_biased else "") for d in others if d.distinguishable]
        values = (short(m.comparison.estimate(name, metric).estimate) for name in m.names)
        yield f"{k}", *values, least, ", ".join(told) or "none"


def _curves(m: ModelsEvaluation) -> Picture:
    def draw(ax: Any) -> None:
        for each in m.models:
            each.curve.plot(ax, label=each.name)

    return Picture(
        address(draw, 6.4, 4.4),
        f"Expected calibration error of {', '.join(m.names)} over 5 to 50 bins",
        "ECE over the number of equally wide bins, of all rows, with one standard deviation; dotted, what a "
        "calibrated model would get from noise alone. Bands are of each model alone; the tables say what can "
        "be told apart.",
    )
