"""Certificates and tables as plain text, wrapped to a width; ASCII except for names that the user chose.

Ends of an interval are rounded outwards, so that what is printed holds whenever what was computed does.
"""

from __future__ import annotations

import math
import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import NamedTuple

from calcore.kernels.binning import equal_mass
from calcore.results import Certificate
from calcore.table import CellTable, ScoreTable

__all__ = [
    "ScoreBin",
    "certificate_text",
    "cross_check_text",
    "gate_text",
    "interval_text",
    "score_bins",
    "summary_text",
    "table_text",
]

Table = ScoreTable | CellTable

_TERMS = {
    "plug_in": "error seen in bins of scores",
    "denoised": "error seen in bins of scores, less what noise adds to it",
    "bias": "what a bin can hide, given the assumption",
    "deviation": "chance in the labels",
    "transfer": "from these scores to the population",
    "contradiction": "the lower end refutes the assumption",
}

_TERMS_OF = {
    "polynomials": {
        "plug_in": "distance of scores from polynomials fitted to the rates",
        "bias": "how far the true rate can be from such polynomials",
    },
    "tv": {
        "plug_in": "distance of scores from a fit to the other rows",
        "denoising": "how far the fit can be from the truth",
        "deviation": "chance in the rows that test the fit",
        "transfer": "from the rows of the fit to the population",
    },
    "nw": {
        "plug_in": "distance of scores from the rates in their windows",
        "bias": "what a window can hide, given the assumption",
    },
    "nw-folds": {
        "plug_in": "distance of scores from the rates in their windows",
        "bias": "what a window can hide, given the assumption",
    },
}
"""Where a method means something else by a term."""


class ScoreBin(NamedTuple):
    """Consecutive scores: their range, how many rows, their mean and the share of positive labels."""

    low: float
    high: float
    rows: int
    predicted: float
    observed: float


def score_bins(table: Table, n_bins: int = 10) -> list[ScoreBin]:
    """Bins of about equally many rows, in order of score.

    Parameters
    ----------
    table : ScoreTable or CellTable
    n_bins : int
        Aimed at. Equal scores stay together, so there are fewer bins if few scores are distinct.

    Notes
    -----
    Equal numbers of rows rather than equal widths: with a base rate of .001 the first of ten equal widths
    would hold everything. Rows, means and shares are exact; a boundary is that of a cell of the table.
    """
    cells = table.cells()
    cuts = equal_mass(cells.n, n_bins)
    return [
        ScoreBin(
            float(cells.lo[start]),
            float(cells.hi[stop - 1]),
            rows := int(cells.n[start:stop].sum()),
            float(cells.s[start:stop].sum()) / rows,
            int(cells.k[start:stop].sum()) / rows,
        )
        for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    ]


def table_text(bins: list[ScoreBin]) -> str:
    """Score bins as an aligned table; the last column is observed minus predicted.

    >>> print(table_text([ScoreBin(0.0, 0.5, 1200, 0.25, 0.26), ScoreBin(0.5, 1.0, 800, 0.75, 0.7)]))
        scores             rows  predicted  observed   difference
    0.0000 - 0.5000       1,200     0.2500    0.2600      +0.0100
    0.5000 - 1.0000         800     0.7500    0.7000      -0.0500
    """
    digits = _digits(min((b.predicted for b in bins if b.predicted > 0.0), default=1.0))
    number = f".{digits}f"
    width = digits + 2
    spread = 2 * width + 3
    lines = [
        f"{'scores':^{spread}}  {'rows':>10}  {'predicted':>{max(9, width)}}"
        f"  {'observed':>{max(8, width)}}  {'difference':>{max(11, width + 1)}}"
    ]
    lines += [
        f"{b.low:{number}} - {b.high:{number}}  {b.rows:>10,}  {b.predicted:>{max(9, width)}{number}}"
        f"  {b.observed:>{max(8, width)}{number}}  {b.observed - b.predicted:>+{max(11, width + 1)}{number}}"
        for b in bins
    ]
    return "\n".join(line.rstrip() for line in lines)


def interval_text(certificate: Certificate) -> str:
    """The interval in one sentence.

    The ends are rounded outwards, to at least three digits of the upper one.
    """
    c = certificate
    digits = _digits(c.upper if c.side != "lower" else c.lower)
    low, high = _rounded(c.lower, digits, ROUND_FLOOR), _rounded(c.upper, digits, ROUND_CEILING)
    how_sure = f"with {_percent(c.delta)} confidence"
    if c.side == "upper":
        return f"The calibration error is at most {high}, {how_sure}."
    if c.side == "lower":
        return f"The calibration error is at least {low}, {how_sure}."
    return f"The calibration error is between {low} and {high}, {how_sure}."


def certificate_text(
    certificate: Certificate,
    *,
    population: str = "",
    data: str = "",
    bins: list[ScoreBin] | None = None,
    width: int = 88,
) -> str:
    """A certificate as text: the interval first, then what it rests on and what it is made of.

    Parameters
    ----------
    certificate : Certificate
    population : str, optional
        What the rows are a sample of; named first.
    data : str, optional
        Where they are: file and columns.
    bins : list of ScoreBin, optional
        Adds the table of `table_text`.
    width : int
        Characters per line; the table of bins keeps its own.

    Returns
    -------
    str
        Paragraphs of lines, without a newline at the end. A warning starts with ``Warning:``.
    """
    c = certificate
    width = max(width, 40)
    parts = []
    if population:
        parts.append(textwrap.fill(f"Population: {population}", width))
    parts.append(textwrap.fill(interval_text(c), width))
    facts = [("Assumption", c.assumption)]
    facts.append(("Confidence", f"{_percent(c.delta)} ({_SIDES[c.side]}), for every sample size"))
    facts.append(("Rows", f"{c.n:,}, of which {c.n_positive:,} positive"))
    if c.n_dropped:
        facts.append(("Groups", f"one random row of each: {c.n:,} of {c.n + c.n_dropped:,} rows"))
    facts.append(("Base rate", f"{_short(c.base_rate)}; mean score {_short(c.mean_score)}"))
    chosen = f": {c.winner}" if c.winner not in ("", c.method) else ""
    facts.append(("Method", f"{c.method}{chosen}; {_bins_used(c)}{c.table}"))
    if data:
        facts.append(("Data", data))
    parts.append("\n".join(_fact(name, text, width) for name, text in facts))
    if c.terms:
        parts.append(_terms_text(c, width))
    if bins is not None:
        parts.append(table_text(bins))
    warnings = [text for text in c.warnings if not text.startswith(_DRAWN)]
    parts += [textwrap.fill(f"Warning: {text}", width, subsequent_indent="  ") for text in warnings]
    parts.append(textwrap.fill(_how_to_read(c), width))
    return "\n\n".join(parts)


def gate_text(limit: float, upper: float, delta: float, *, width: int = 88) -> str:
    """Verdict of a release gate: starts with ``Gate passed`` or ``Gate failed``.

    >>> print(gate_text(0.02, 0.0213, 0.05))
    Gate failed: the upper bound 0.0213 is above 0.02 (one-sided, with 95% confidence for
    this end alone).
    """
    verdict, relation = ("passed", "not above") if upper <= limit else ("failed", "above")
    bound = _rounded(upper, _digits(upper), ROUND_CEILING)
    return textwrap.fill(
        f"Gate {verdict}: the upper bound {bound} is {relation} {limit:g} "
        f"(one-sided, with {_percent(delta)} confidence for this end alone).",
        width,
    )


def cross_check_text(outcome: str, *, width: int = 88) -> str:
    """What a second solver made of the job's denoising problem.

    >>> print(cross_check_text("Clarabel agrees on 9 unknowns"))
    Cross-check: Clarabel agrees on 9 unknowns.
    """
    return textwrap.fill(f"Cross-check: {outcome}.", width, subsequent_indent="  ")


def summary_text(table: CellTable, *, width: int = 88) -> str:
    """What a table holds, in a few lines."""
    cells = table.cells()
    facts = [("Cells", f"{table.describe()}, {len(cells.n):,} of them occupied")]
    facts.append(("Rows", f"{table.n:,}, of which {table.n_positive:,} positive"))
    if table.n:
        mean = table.sum_scores / table.n
        facts.append(("Base rate", f"{_short(table.n_positive / table.n)}; mean score {_short(mean)}"))
    if table.n_clipped:
        scores = "score" if table.n_clipped == 1 else "scores"
        facts.append(("Clipped", f"{table.n_clipped:,} {scores} a rounding error outside [0, 1]"))
    if table.n and (advice := table.advice()):
        facts.append(("Warning", advice))
    return "\n".join(_fact(name, text, width) for name, text in facts)


_DRAWN = "one random row was kept of each group"
"""A warning that was asked for, by groups: a fact among the others."""

_SIDES = {
    "both": "both ends together",
    "upper": "upper end only",
    "lower": "lower end only",
}


def _bins_used(c: Certificate) -> str:
    windows = "" if c.bandwidth is None else f"windows of half width {c.bandwidth:.3g}, "
    if c.n_folds:
        return f"{c.n_folds} folds, {windows}"
    if c.n_bins == 0:
        return windows
    if c.winner == "polynomials":
        return f"{c.n_bins:,} intervals, "
    return "every row for itself, " if c.n_bins == c.n else f"{c.n_bins:,} bins, "


def _fact(name: str, text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent=f"{name:<12}", subsequent_indent=" " * 12)


def _terms_text(c: Certificate, width: int) -> str:
    total = sum(c.terms.values())
    digits = _digits(total) + 1
    names = max(len(name) for name in (*c.terms, "upper bound"))
    meanings = _TERMS | _TERMS_OF.get(c.winner, {})
    lines = ["The upper end is the sum of"]
    for name, value in c.terms.items():
        if value == 0.0 and name not in ("plug_in", "denoised"):
            continue
        line = f"  {name:<{names}}  {value:>{digits + 3}.{digits}f}"
        meaning = meanings.get(name, "")
        lines.append(f"{line}  {meaning}" if meaning and len(line) + len(meaning) + 2 <= width else line)
    said = _rounded(total, digits, ROUND_CEILING)
    first = _rounded(c.upper, digits - 1, ROUND_CEILING)
    note = ""
    if total > 1.0:
        note = "  (no calibration error exceeds 1)"
    elif Decimal(first) != Decimal(said):
        note = f"  rounded up to {first} above"
    line = f"  {'upper bound':<{names}}  {said:>{digits + 3}}"
    lines.append(line + note if len(line + note) <= width else line)
    return "\n".join(lines)


def _how_to_read(c: Certificate) -> str:
    digits = max(0, _digits(c.upper if c.side != "lower" else c.lower) - 2)
    low = _rounded(100.0 * c.lower, digits, ROUND_FLOOR)
    high = _rounded(100.0 * c.upper, digits, ROUND_CEILING)
    if c.side == "lower" and c.lower == 0.0:
        return "How to read it: these rows do not show that the scores are miscalibrated."
    size = {"both": f"between {low} and {high}", "upper": f"at most {high}", "lower": f"at least {low}"}[
        c.side
    ]
    return (
        f"How to read it: averaged over new rows from the same source, a score is off from the true rate of "
        f"rows with that score by {size} percentage points; it holds if rows are independent of each other."
    )


def _percent(delta: float) -> str:
    """One minus `delta` in percent, never rounded to certainty.

    >>> _percent(0.05), _percent(0.001), _percent(1e-20)
    ('95%', '99.9%', '1 - 1e-20')
    """
    text = f"{(1.0 - delta) * 100.0:.10g}"
    return f"1 - {delta:g}" if text == "100" else f"{text}%"


def _digits(value: float) -> int:
    """Decimals that show three significant digits of a number in [0, 1]; at least four, at most twelve."""
    if not value > 0.0:
        return 4
    return min(12, max(4, 2 - math.floor(math.log10(value))))


def _rounded(value: float, digits: int, rounding: str) -> str:
    """`value` with that many decimals, rounded towards one side.

    >>> _rounded(0.02001, 3, ROUND_CEILING), _rounded(0.02, 4, ROUND_CEILING), _rounded(0.5, 2, ROUND_FLOOR)
    ('0.021', '0.0200', '0.50')
    """
    if value == 0.0:
        return "0"
    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), rounding=rounding):f}"


def _short(value: float) -> str:
    return f"{value:.{_digits(value)}f}"
