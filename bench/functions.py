"""Run the pytest-benchmark files of this folder and keep medians per function and number of rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import machine, record

FILES = sorted(str(path) for path in Path(__file__).parent.glob("bench_*.py"))
QUICK_SIZES = "1000,100000"


def measure(quick: bool) -> dict[str, Any]:
    """Medians and quartiles of every ``bench_`` function."""
    load = machine.load()
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", *FILES, f"--benchmark-json={raw}"),
                *(
                    "-o",
                    "python_files=bench_*.py",
                    "-o",
                    "python_functions=bench_*",
                    "-p",
                    "no:cacheprovider",
                ),
                *("--benchmark-warmup=on", "--benchmark-warmup-iterations=1", "--benchmark-sort=fullname"),
                *("--benchmark-min-rounds=5", "--benchmark-max-time=" + ("0.2" if quick else "1.0")),
                "--benchmark-columns=median,iqr,rounds",
            ],
            check=True,
            cwd=Path(__file__).parents[1],
            env=os.environ | ({"BENCH_SIZES": QUICK_SIZES} if quick else {}),
        )
        found = json.loads(raw.read_text())["benchmarks"]
    rows = [
        {
            "task": bench["name"].partition("[")[0].removeprefix("bench_"),
            "n": bench["params"]["n"],
            "seconds": bench["stats"]["median"],
            "quartiles": [bench["stats"]["q1"], bench["stats"]["q3"]],
            "rounds": bench["stats"]["rounds"],
        }
        for bench in found
    ]
    content = {"rows": rows, "checks": []}
    record.save("functions", content, quick, load)
    return content
