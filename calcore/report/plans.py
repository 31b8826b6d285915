"""A plan as plain text."""

from __future__ import annotations

import textwrap

from calcore.report.text import _digits, _percent, _short
from calcore.results import RowsNeeded

__all__ = ["plan_text"]


def plan_text(plan: RowsNeeded, *, width: int = 88) -> str:
    """How many rows, and what to expect from other numbers of them.

    >>> text = plan_text(
    ...     RowsNeeded(900, 0.1, 0.05, "upper", 0.0, 1.0, None, 0.5, ((900, 0.0998), (3000, 0.0674)))
    ... )
    >>> print(text.splitlines()[0])
    About 900 rows for an upper bound of 0.1, with 95% confidence.
    """
    width = max(width, 40)
    sides = {"upper": "upper end only", "both": "both ends together"}
    lines = [f"{'rows':>15}  upper bound"]
    lines += [f"{n:>15,}  {upper:>11.{_digits(upper)}f}" for n, upper in plan.curve]
    assumed = [] if plan.variation is None else [f"total variation <= {plan.variation:g}"]
    assumed += [] if plan.perturbed is None else [f"scores perturbed with width {plan.perturbed:g}"]
    about = (
        f"Planned for a calibration error of {plan.ce:g}, a base rate of {_short(plan.base_rate)}, "
        f"{', '.join(assumed)}, {sides[plan.side]}. Typical values, no guarantee."
    )
    sure = f"with {_percent(plan.delta)} confidence"
    first = f"About {plan.n:,} rows for an upper bound of {plan.target:g}, {sure}."
    return "\n\n".join([textwrap.fill(first, width), "\n".join(lines), textwrap.fill(about, width)])
