"""`bench.tightness` for ``method="auto"``, the default: the better of the plug-in and the inversion."""

from __future__ import annotations

from typing import Any

from bench import tightness


def measure(quick: bool) -> dict[str, Any]:
    return tightness.measure(quick, "auto", "auto")
