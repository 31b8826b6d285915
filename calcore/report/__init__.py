"""Results for people: a certificate or a table of scores as text for a terminal, a log or a mail."""

from __future__ import annotations

from calcore.report.text import (
    ScoreBin,
    certificate_text,
    cross_check_text,
    gate_text,
    interval_text,
    score_bins,
    summary_text,
    table_text,
)

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
