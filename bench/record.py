"""Results as JSON: full runs in bench/results/, quoted by the README; quick ones outside version control."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from bench import machine

FULL = Path(__file__).parent / "results"
QUICK = Path(__file__).parents[1] / ".benchmarks" / "quick"


def folder(quick: bool) -> Path:
    """Where the results of a run belong."""
    return QUICK if quick else FULL


def check(name: str, value: float, limit: float, *, unit: str = "", at_least: bool = False) -> dict[str, Any]:
    """One number beside its target."""
    passed = value >= limit if at_least else value <= limit
    return {
        "name": name,
        "value": value,
        "rule": ">=" if at_least else "<=",
        "limit": limit,
        "unit": unit,
        "passed": bool(passed),
    }


def save(name: str, content: dict[str, Any], quick: bool, load_before: float | None) -> Path:
    """Write one file of results with the machine that they come from."""
    path = folder(quick) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "mode": "quick" if quick else "full",
        "machine": machine.describe(),
        "load": {"before": load_before, "after": machine.load()},
    }
    path.write_text(json.dumps(about | _short(content), indent=1, allow_nan=False) + "\n")
    return path


def read(name: str, quick: bool) -> dict[str, Any] | None:
    """A file of results, or None if there is none yet."""
    path = folder(quick) / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _short(value: Any) -> Any:
    """Six significant digits: more would be noise, and would make every rerun a change of every line."""
    if isinstance(value, dict):
        return {key: _short(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.6g}")
    return value
