"""What changed, as plain text: a test of drift between two tables, and a monitor of a model in use."""

from __future__ import annotations

import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from calcore.monitor import CalibrationMonitor
from calcore.report.text import _digits, _fact, _percent, _rounded
from calcore.results import DriftTest

__all__ = ["drift_gate_text", "drift_text", "monitor_text"]


def drift_text(found: DriftTest, *, before: str = "", after: str = "", width: int = 88) -> str:
    """A test of drift: the p-value in a sentence, then what it is made of.

    Parameters
    ----------
    found : DriftTest
    before, after : str, optional
        Where the rows are.
    width : int
        Characters per line.

    Examples
    --------
    >>> print(drift_text(DriftTest(0.0213, 0.2, 0.01065, 900, 800, 9, 9_999)).splitlines()[0])
    Had nothing changed, two tables would differ as much as these with probability at most
    """
    width = max(width, 40)
    f = found
    facts = [
        ("p-value", f"{_tail(f.p_value)}, twice the smaller of these two, at most 1"),
        ("  labels", f"{_tail(f.p_labels)} for the rates of positives by score"),
        ("  scores", f"{_tail(f.p_scores)} for the scores"),
        ("Rows", f"{f.n_before:,} before, {f.n_after:,} after, in {f.n_bins:,} bins of scores"),
        ("Compared", f"with {f.n_draws:,} random divisions of all rows"),
    ]
    facts += [(name, text) for name, text in (("Before", before), ("After", after)) if text]
    first = (
        "Had nothing changed, two tables would differ as much as these with probability at most "
        f"{_tail(f.p_value)}."
    )
    last = (
        "How to read it: a small p-value says that something changed, not by how much, and not that either "
        "table is calibrated: certify both for that. It holds if rows are independent of each other."
    )
    lines = "\n".join(_fact(name, text, width) for name, text in facts)
    return "\n\n".join([textwrap.fill(first, width), lines, textwrap.fill(last, width)])


def drift_gate_text(alpha: float, p_value: float, *, width: int = 88) -> str:
    """Verdict of a gate on drift: starts with ``Gate passed`` or ``Gate failed``.

    >>> print(drift_gate_text(0.01, 0.0002))
    Gate failed: the p-value 0.0002 is not above 0.01 (a false alarm has at most this
    probability).
    """
    verdict, relation = ("failed", "not above") if p_value <= alpha else ("passed", "above")
    return textwrap.fill(
        f"Gate {verdict}: the p-value {_tail(p_value)} is {relation} {alpha:g} (a false alarm has at most "
        "this probability).",
        width,
    )


def monitor_text(
    monitor: CalibrationMonitor, *, n_new: int = 0, state: str = "", data: str = "", width: int = 88
) -> str:
    """A monitor: whether there is an alarm, then the evidence.

    Parameters
    ----------
    monitor : CalibrationMonitor
    n_new : int
        How many of its rows were added just now.
    state, data : str, optional
        The file of its state; where the new rows are.
    width : int
        Characters per line.

    Examples
    --------
    >>> print(monitor_text(CalibrationMonitor().update([1] * 100, [0.5] * 100)).splitlines()[0])
    Alarm: after 17 rows the evidence reached what a calibrated model ever reaches with
    """
    width = max(width, 40)
    m = monitor
    tolerated = (
        f"a model with a calibration error of at most {m.max_ce:g}" if m.max_ce else "a calibrated model"
    )
    if m.alarm:
        first = (
            f"Alarm: after {m.alarm_at:,} {_rows(m.alarm_at)} the evidence reached what {tolerated} ever "
            f"reaches with probability at most {m.delta:g}."
        )
    else:
        first = f"No alarm after {m.n:,} {_rows(m.n)}."
    hypothesis = "given all rows before, the next one's score is its true rate"
    if m.max_ce:
        hypothesis = f"given all rows before, the calibration error for the next one is at most {m.max_ce:g}"
    now, most, limit = _evidence(m.e_value), _evidence(m.max_e_value), 1.0 / m.delta
    facts = [
        ("Hypothesis", hypothesis),
        ("Rows", f"{m.n:,}, of which {n_new:,} new" if n_new else f"{m.n:,}"),
        ("e-value", f"{now} now, {most} at most so far; alarm at {limit:g}"),
        ("p-value", f"{_tail(m.p_value)}, valid whenever one looks"),
        (
            "Lower bound",
            f"{_rounded(m.lower, _digits(m.lower), ROUND_FLOOR)} of the calibration error, with "
            f"{_percent(m.delta)} confidence for all times together",
        ),
    ]
    facts += [(name, text) for name, text in (("State", state), ("Data", data)) if text]
    lines = "\n".join(_fact(name, text, width) for name, text in facts)
    return "\n\n".join([textwrap.fill(first, width), lines])


def _rows(n: int | None) -> str:
    return "row" if n == 1 else "rows"


def _evidence(e: float) -> str:
    """An e-value in three digits, rounded down: none looks like an alarm that is not one.

    >>> _evidence(19.999), _evidence(200.0), _evidence(2.3456e68), _evidence(0.0)
    ('19.9', '200', '2.34e+68', '0')
    """
    return f"{float(_DOWN.create_decimal(repr(e))):.3g}"


def _tail(p: float) -> str:
    """A p-value in three digits, rounded up.

    >>> _tail(0.0002), _tail(0.43217), _tail(1.0), _tail(1.04e-9)
    ('0.0002', '0.433', '1', '1.04e-09')
    """
    return f"{float(_UP.create_decimal(repr(p))):.3g}"


_UP, _DOWN = Context(prec=3, rounding=ROUND_CEILING), Context(prec=3, rounding=ROUND_FLOOR)
