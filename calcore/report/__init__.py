"""Results for people: certificates and tables as text for a terminal, a log or a mail; evaluations as a page.

`html` is loaded on first use: it needs the extra ``report``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name != "html":
        raise AttributeError(f"module 'calcore.report' has no attribute {name!r}")
    return import_module("calcore.report.page").html
