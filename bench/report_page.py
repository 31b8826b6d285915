"""`calcore report` as a whole process: time and peak memory by number of rows, everything being compiled."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from bench import machine, record
from bench.clock import quietest
from bench.process import calcore, entry

SIZES = {100_000: 5, 1_000_000: 5, 10_000_000: 1}
"""Rows, and how often they are reported."""

LIMIT_ROWS = 1_000_000
LIMIT_SECONDS, LIMIT_GIB = 15.0, 1.5


def measure(quick: bool) -> dict[str, Any]:
    """Parquet files made by ``calcore simulate``, the smallest alone if `quick`."""
    load = machine.load()
    with tempfile.TemporaryDirectory() as folder:
        calcore(["simulate", "--rows", "1000", "-o", f"{folder}/small.parquet"])
        calcore(["report", f"{folder}/small.parquet"])  # compiles what is not yet in the cache
        sizes = dict(list(SIZES.items())[:1]) if quick else SIZES
        rows = [_reported(Path(folder), n, 1 if quick else rounds) for n, rounds in sizes.items()]
    content = {"rows": rows, "checks": _checks(rows)}
    record.save("report_page", content, quick, load)
    return content


def _reported(folder: Path, n: int, rounds: int) -> dict[str, Any]:
    rows, page = folder / "rows.parquet", folder / "page.html"
    calcore(["simulate", "--rows", str(n), "-o", str(rows), "--force"])
    report = ["report", str(rows), "-o", str(page), "--force"]
    found = entry(f"calcore report, {n:,} rows", quietest(partial(calcore, report), rounds))
    return found | {"n": n, "page_kib": page.stat().st_size / 1024}


def _checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Limits of the middle size; of the largest, that there is a page at all."""
    checks = []
    for row in rows:
        if row["n"] == LIMIT_ROWS:
            checks += [
                record.check(row["task"], row["seconds"], LIMIT_SECONDS, unit="s"),
                record.check(f"peak memory of {row['task']}", row["peak_mib"] / 1024, LIMIT_GIB, unit="GiB"),
            ]
    last = rows[-1]
    page = record.check(f"page of {last['task']}", last["page_kib"], 1.0, unit="KiB", at_least=True)
    return [*checks, page]
