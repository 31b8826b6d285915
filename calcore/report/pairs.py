"""Two models as plain text: the differences, then each model; ends are rounded outwards."""

from __future__ import annotations

import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR

from calcore.comparison import ModelComparison
from calcore.report.sets import _name
from calcore.report.text import _DRAWN, _digits, _fact, _percent, _rounded, _short
from calcore.results import CertifiedDifference, Interval

__all__ = ["comparison_gate_text", "comparison_text", "resampled_text"]


def comparison_text(
    comparison: CertifiedDifference,
    *,
    names: tuple[str, str] = ("a", "b"),
    population: str = "",
    data: str = "",
    width: int = 88,
) -> str:
    """A comparison as text: which model is better, the differences, and what they rest on.

    Parameters
    ----------
    comparison : CertifiedDifference
    names : (str, str)
        Of the models.
    population, data : str, optional
        As in `certificate_text`.
    width : int
        Characters per line of text; the table keeps its own.
    """
    c = comparison
    width = max(width, 40)
    a, b = map(_name, names)
    sure = f"with {_percent(c.delta)} confidence"
    brier = f"{_verdict(c.brier_difference, a, b, 'is better', 'no model is shown to be better')}, {sure}."
    error = f"{_verdict(c.ce_difference, a, b, 'has the smaller one', 'no difference is shown')}, {sure}."
    parts = [textwrap.fill(f"Population: {population}", width)] if population else []
    parts.append(
        "\n".join(
            textwrap.fill(text, width)
            for text in (f"By the Brier score, {brier}", f"By the calibration error, {error}")
        )
    )
    parts.append(_table(c, a, b))
    assumptions = dict.fromkeys(each.assumption for each in (c.a, c.b))
    facts = [("Assumption", text) for text in assumptions]
    facts.append(
        (
            "Confidence",
            f"{_percent(c.delta)} for each difference, {_percent(min(1.0, 2.0 * c.delta))} for both "
            f"together; {_percent(c.a.delta)} for each model's calibration error",
        )
    )
    facts.append(("Rows", f"{c.n:,}, of which {c.a.n_positive:,} positive"))
    if c.n_dropped:
        facts.append(("Groups", f"one random row of each: {c.n:,} of {c.n + c.n_dropped:,} rows"))
    if data:
        facts.append(("Data", data))
    parts.append("\n".join(_fact(name, text, width) for name, text in facts))
    for name, each in ((a, c.a), (b, c.b)):
        parts += [
            textwrap.fill(f"Warning: {name}: {text}", width, subsequent_indent="  ")
            for text in each.warnings
            if not text.startswith(_DRAWN)
        ]
    parts.append(
        textwrap.fill(
            f"How to read it: a difference below 0 is in favour of {a}. The Brier score counts calibration "
            "and sharpness together, and its difference needs no assumption. Both hold if rows are "
            "independent of each other.",
            width,
        )
    )
    return "\n\n".join(parts)


def resampled_text(comparison: ModelComparison, *, rows: int | None = None, width: int = 88) -> str:
    """What resampling can tell apart between two models: a table, and how to read it.

    Parameters
    ----------
    comparison : ModelComparison
        Of two models; differences are the first less the second.
    rows : int, optional
        Of how many these are a random sample, if they are one.
    width : int
        Characters per line of text; the table keeps its own.
    """
    first, second = comparison.models
    a, b = map(_name, comparison.models)
    width = max(width, 40)
    of = f"a random {comparison.n:,} of {rows:,} rows" if rows is not None else f"{comparison.n:,} rows"
    if comparison.n_groups is not None:
        of += f", {comparison.n_groups:,} groups drawn as wholes"
    level = _percent(comparison.delta)
    heading = (
        f"By resampling ({comparison.n_resamples:,} paired resamples of {of}), {a} minus {b} with {level} "
        "intervals, each for itself:"
    )
    size = max(map(len, ("metric", *comparison.metrics)))
    lines = [f"  {'metric':<{size}}  {'difference':>10}  {'lower':>9}  {'upper':>9}"]
    biased = False
    for metric in comparison.metrics:
        if not any(each.metric == metric for each in comparison.differences):
            lines.append(f"  {metric:<{size}}  {'infinite':>10}  {'':>9}  {'':>9}  not compared")
            continue
        each = comparison.difference(first, second, metric)
        biased |= each.is_biased
        lines.append(
            f"  {metric:<{size}}  {each.difference:>10.3g}  {each.interval.lower:>9.3g}  "
            f"{each.interval.upper:>9.3g}  {each.verdict}" + (" (biased)" if each.is_biased else "")
        )
    shown = [each.metric for each in comparison.differences if each.distinguishable_together]
    read = (
        f"How to read it: intervals are approximate, and of {comparison.n_comparisons} one may miss by "
        f"chance. Distinguishable even together: {', '.join(shown) or 'none'}. Brier and log_loss "
        "decide which model is better; the others say what differs. Intervals of resamples can show a "
        "difference that the certified ones, which hold at every sample size, do not show."
    )
    few = next((text for text in comparison.warnings if "nothing is called distinguishable" in text), "")
    if few:
        read += f" {few[0].upper()}{few[1:]}."
    if biased:
        read += " Biased: noise of the bins moves this difference, and its interval misses too often."
    return "\n\n".join([textwrap.fill(heading, width), "\n".join(lines), textwrap.fill(read, width)])


def comparison_gate_text(limit: float, upper: float, delta: float, *, width: int = 88) -> str:
    """Verdict of a gate on the Brier score: starts with ``Gate passed`` or ``Gate failed``.

    >>> print(comparison_gate_text(0.0, -0.0213, 0.05))
    Gate passed: the upper end -0.0213 of the Brier score's difference is not above 0 (with
    95% confidence for both ends).
    """
    verdict, relation = ("passed", "not above") if upper <= limit else ("failed", "above")
    end = _rounded(upper, _digits(abs(upper)), ROUND_CEILING)
    return textwrap.fill(
        f"Gate {verdict}: the upper end {end} of the Brier score's difference is {relation} {limit:g} "
        f"(with {_percent(delta)} confidence for both ends).",
        width,
    )


def _verdict(difference: Interval, a: str, b: str, better: str, neither: str) -> str:
    if difference.upper < 0.0:
        return f"{a} {better}"
    return f"{b} {better}" if difference.lower > 0.0 else neither


def _table(c: CertifiedDifference, a: str, b: str) -> str:
    """Both differences, and the calibration error of each model."""
    rows = [
        ("Brier score", c.brier_difference, f"{_short_signed(c.mean_brier_difference)} in these rows"),
        ("calibration error", c.ce_difference, ""),
    ]
    each = [(a, Interval(c.a.lower, c.a.upper), ""), (b, Interval(c.b.lower, c.b.upper), "")]
    headings = (f"{a} minus {b}", "calibration error of")
    digits = max(_digits(_size(interval)) for _, interval, _ in (*rows, *each))
    size = max(len(name) for name in (*headings, *(f"  {row[0]}" for row in (*rows, *each))))
    ends = digits + 3
    lines = []
    for heading, part in zip(headings, (rows, each), strict=True):
        lines.append(f"{heading:<{size}}  {'lower':>{ends}}  {'upper':>{ends}}")
        for name, interval, note in part:
            low = _rounded(interval.lower, digits, ROUND_FLOOR)
            high = _rounded(interval.upper, digits, ROUND_CEILING)
            lines.append(f"{f'  {name}':<{size}}  {low:>{ends}}  {high:>{ends}}  {note}".rstrip())
    return "\n".join(lines)


def _size(interval: Interval) -> float:
    """What must show in three digits: the end next to 0 of an interval without it, else the farther one."""
    low, high = abs(interval.lower), abs(interval.upper)
    return min(low, high) if interval.lower * interval.upper > 0.0 else max(low, high)


def _short_signed(value: float) -> str:
    return ("-" if value < 0.0 else "") + _short(abs(value))
