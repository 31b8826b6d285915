"""Certificates that hold together as plain text: one line each; ends are rounded outwards."""

from __future__ import annotations

import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from calcore.report.text import _DRAWN, _digits, _percent, _rounded, _short
from calcore.results import Certificate, CertificateSet

__all__ = ["set_text"]

_LONGEST = 32
"""Characters of a name that are shown."""


def set_text(
    certificates: CertificateSet, *, heading: str = "", population: str = "", data: str = "", width: int = 88
) -> str:
    """A set of certificates as a table, and what makes it hold.

    Parameters
    ----------
    certificates : CertificateSet
    heading : str, optional
        What the names are values of: a column.
    population, data : str, optional
        As in `certificate_text`.
    width : int
        Characters per line of text; the table keeps its own.
    """
    found = certificates
    width = max(width, 40)
    members = list(found.values()) + ([found.pooled] if found.pooled is not None else [])
    digits = max(_digits(max(c.upper, c.lower)) for c in members)
    names = [_name(name) for name in found]
    total = "all rows"
    size = max(map(len, (*names, heading, total)))
    ends = max(5, digits + 2)
    lines = [f"{heading:<{size}}  {'rows':>12}  {'base rate':>9}  {'lower':>{ends}}  {'upper':>{ends}}"]
    lines += [_line(name, c, size, digits) for name, c in zip(names, found.values(), strict=True)]
    if found.pooled is not None:
        lines += [_line(total, found.pooled, size, digits)]
    if found.mean is not None:
        low, high = (
            _rounded(found.mean.lower, digits, ROUND_FLOOR),
            _rounded(found.mean.upper, digits, ROUND_CEILING),
        )
        lines += [f"{'mean':<{size}}  {'':>12}  {'':>9}  {low:>{ends}}  {high:>{ends}}"]
    parts = [textwrap.fill(f"Population: {population}", width)] if population else []
    parts.append(
        textwrap.fill(
            f"The calibration error of every {found.kind}, with {_percent(found.delta)} confidence for all "
            "of these intervals together:",
            width,
        )
    )
    parts.append("\n".join(line.rstrip() for line in lines))
    assumptions = list(dict.fromkeys(c.assumption for c in members))
    parts += [textwrap.fill(f"Assumption: {text}", width, subsequent_indent="  ") for text in assumptions]
    if data:
        parts.append(textwrap.fill(f"Data: {data}", width, subsequent_indent="  "))
    drawn = {text for c in members for text in c.warnings if text.startswith(_DRAWN)}
    once = (
        drawn if len(drawn) == 1 else set()
    )  # the same rows for every class: a fact, as in `certificate_text`
    parts += [textwrap.fill(f"Groups: {text}", width, subsequent_indent="  ") for text in once]
    for name, c in zip([*names, total], members, strict=False):
        parts += [
            textwrap.fill(f"Warning ({name}): {text}", width, subsequent_indent="  ")
            for text in c.warnings
            if text not in once
        ]
    return "\n\n".join(parts)


def _name(name: Any) -> str:
    text = str(name).encode("unicode_escape").decode() if not str(name).isprintable() else str(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _line(name: str, c: Certificate, size: int, digits: int) -> str:
    low, high = _rounded(c.lower, digits, ROUND_FLOOR), _rounded(c.upper, digits, ROUND_CEILING)
    ends = max(5, digits + 2)
    return f"{name:<{size}}  {c.n:>12,}  {_short(c.base_rate):>9}  {low:>{ends}}  {high:>{ends}}"
