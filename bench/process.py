"""Whole processes, as a user starts them: start-up, the shipped file, compilation, memory of big files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from bench import machine, record
from bench.clock import quietest

_UNUSUAL = ("PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME", "NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK")
"""Settings of a developer's shell that a user does not have, and that cost start-up time."""

VERSION, FLIGHTS = "calcore --version", "calcore certify of the shipped flights"
LIMIT_VERSION, LIMIT_FLIGHTS = 0.3, 2.0
LIMIT_GIB = 1.0
LIMIT_GROWTH_MIB = 64.0
BIG = (2_000_000, 20_000_000, 100_000_000)

# Starts one command from a small process and reports seconds and peak resident MiB: a child's peak counts the
# memory of the process that forked it, so that it must not be started from one that holds arrays.
_START = """
import json, os, sys, time
began = time.perf_counter()
child = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - began
sys.stderr.write(json.dumps([seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, status]))
"""


def measure(quick: bool) -> dict[str, Any]:
    """Start-up, the flights file warm and cold, then files of growing size."""
    load = machine.load()
    rounds = 5 if quick else 11
    with as_file(files("calcore.datasets") / "flights_random.parquet") as flights:
        certify = ["certify", str(flights)]
        rows = [
            entry("python -c pass", quietest(lambda: run(["-c", "pass"]), rounds)),
            entry("import numpy", quietest(lambda: run(["-c", "import numpy"]), rounds)),
            entry(VERSION, quietest(lambda: calcore(["--version"]), rounds)),
        ]
        calcore(certify)
        rows += [
            entry(FLIGHTS, quietest(lambda: calcore(certify), rounds)),
            entry(f"{FLIGHTS}, first time (compiles)", quietest(lambda: _cold(certify), 1 if quick else 3)),
        ]
    big = _big(BIG[:1] if quick else BIG)
    content = {"rows": rows, "big": big, "checks": _checks(rows, big)}
    record.save("process", content, quick, load)
    return content


def calcore(arguments: list[str], **environment: str) -> list[float]:
    """`run` of the command line."""
    return run(["-m", "calcore", *arguments], **environment)


def run(arguments: list[str], **environment: str) -> list[float]:
    """Seconds, peak resident MiB and processor seconds of a Python process."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _START, sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if name not in _UNUSUAL} | environment,
    )
    said, _, measured = done.stderr.rpartition("[")
    *numbers, status = json.loads("[" + measured)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} failed: {said}")
    return numbers


def _cold(arguments: list[str]) -> list[float]:
    with tempfile.TemporaryDirectory() as cache:
        return calcore(arguments, NUMBA_CACHE_DIR=cache)


def entry(name: str, runs: list[tuple[float, list[float]]]) -> dict[str, Any]:
    """Medians and peaks of several `run` of one thing, as `quietest` gives them, for a file of results."""
    seconds, mib, cpu = np.array([numbers for _, numbers in runs]).T
    low, middle, high = np.percentile(seconds, (25, 50, 75))
    found = {
        "task": name,
        "rounds": len(runs),
        "seconds": float(middle),
        "quartiles": [float(low), float(high)],
        "least": float(seconds.min()),
        "cpu_seconds": float(np.median(cpu)),
        "peak_mib": float(mib.max()),
        "others_used": round(float(np.median([others for others, _ in runs])), 3),
    }
    print(f"{name:56} {middle:7.3f} s  {mib.max():7.1f} MiB", flush=True)
    return found


def _big(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Time and peak memory of ``calcore certify`` for Parquet files made by ``calcore simulate``."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / "job.parquet"
            calcore(["simulate", "--rows", str(n), "-o", str(path)])
            size = path.stat().st_size
            calcore(["certify", str(path)])
            runs = quietest(partial(calcore, ["certify", str(path)]), 3)
            found.append(entry(f"calcore certify, {n:,} rows", runs) | {"n": n, "file_mib": size / 2**20})
            path.unlink()
    return found


def _checks(rows: list[dict[str, Any]], big: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seconds = {row["task"]: row["seconds"] for row in rows}
    checks = [
        record.check(VERSION, seconds[VERSION], LIMIT_VERSION, unit="s"),
        record.check(FLIGHTS, seconds[FLIGHTS], LIMIT_FLIGHTS, unit="s"),
    ]
    if len(big) > 1:
        name = f"peak memory of certify, {big[1]['n']:,} rows less {big[0]['n']:,} rows"
        checks.append(
            record.check(name, big[1]["peak_mib"] - big[0]["peak_mib"], LIMIT_GROWTH_MIB, unit="MiB")
        )
    last = big[-1]
    checks.append(
        record.check(
            f"peak memory of certify, {last['n']:,} rows", last["peak_mib"] / 1024, LIMIT_GIB, unit="GiB"
        )
    )
    return checks
