"""What a certificate costs beside sorting: times as ratios to ``np.sort`` of the scores in the same run.

Everything is measured in turns (see `bench.clock`). The denominator is always the sort of the uniform scores,
also where other scores are certified: sorting sorted or constant scores is much faster.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np

import calcore
from bench import machine, record
from bench.clock import Task, in_turns
from calcore import CellTable, ScoreTable
from calcore.simulate import rows

certify = partial(calcore.certify, method="plugin")
SORT, SUM = "np.sort of the scores", "sum of scores and labels"
LIMITS = {
    "cells, 1 thread": 0.8,
    "cells, 2 threads": 0.6,
    "sorted scores": 2.2,
    "auto through cells, 2 threads": 1.0,
    "perturbed scores, auto through cells, 2 threads": 4.0,
}
WIDTH = 2.0**-6
EXTRA_MIB = 48.0
GROWTH = (1_000_000, 10_000_000, 100_000_000)


def through_cells(y: Any, s: Any, n_threads: int) -> Any:
    """Certify through a fresh table of the default size."""
    return certify(CellTable().update(y, s, n_threads=n_threads))


def measure(quick: bool) -> dict[str, Any]:
    """Main ratios, kinds of input, growth, and memory."""
    n = 10_000_000
    rounds = 3 if quick else 11
    load = machine.load()
    main = _main(n, rounds)
    content: dict[str, Any] = {"n": n, "main": main, "inputs": _inputs(n, 3 if quick else 7)}
    content["growth"] = _growth(GROWTH[: 2 if quick else 3], quick)
    content["memory"] = _memory(n, 1 if quick else 3)
    content["checks"] = _checks(content)
    record.save("speed", content, quick, load)
    return content


def _main(n: int, rounds: int) -> list[dict[str, Any]]:
    y, s = rows(n, seed=0)
    y = y.astype(np.int8)
    filled = CellTable().update(y, s)
    drawn = calcore.perturb(s, WIDTH, rng=0)
    tasks = {
        SORT: Task(partial(np.sort, s)),
        SUM: Task(lambda: (s.sum(), y.sum())),
        "cells, 1 thread": Task(partial(through_cells, y, s, 1)),
        "cells, 2 threads": Task(partial(through_cells, y, s, 2)),
        "certify(y_true, y_prob)": Task(partial(certify, y, s)),
        "auto through cells, 1 thread": Task(lambda: calcore.certify(CellTable().update(y, s, n_threads=1))),
        "auto through cells, 2 threads": Task(lambda: calcore.certify(CellTable().update(y, s, n_threads=2))),
        "perturbed scores, auto through cells, 2 threads": Task(
            lambda: calcore.certify(CellTable().update(y, drawn, n_threads=2), perturbed=WIDTH)
        ),
        "sorted scores": Task(lambda: certify(ScoreTable(y, s))),
        "fill cells, 1 thread": Task(lambda: CellTable().update(y, s, n_threads=1)),
        "fill cells, 2 threads": Task(lambda: CellTable().update(y, s, n_threads=2)),
        "build ScoreTable": Task(lambda: ScoreTable(y, s)),
        "certify(CellTable), filled": Task(certify, lambda: CellTable().merge(filled)),
    }
    times = in_turns(tasks, rounds)
    found = [times.row(task, (SORT, SUM)) for task in tasks]
    for row in found:
        print(_line(row), flush=True)
    return found


def _inputs(n: int, rounds: int) -> list[dict[str, Any]]:
    """Other scores, and other types of the columns."""
    y, s = rows(n, seed=0)
    rare_y, rare_s = rows(n, beta=(0.5, 49.5), seed=0)
    half = np.full(n, 0.5)
    ascending = np.sort(s)
    columns: dict[str, tuple[Any, Any]] = {
        "int64 labels": (y.astype(np.int64), s),
        "bool labels": (y.astype(bool), s),
        "float64 labels": (y.astype(np.float64), s),
        "float32 scores": (y, s.astype(np.float32)),
        "skewed scores, Beta(.5, 49.5)": (rare_y, rare_s),
        "constant scores": (y, half),
        "sorted scores": (y, ascending),
    }
    tasks = {SORT: Task(partial(np.sort, s))}
    for name, (labels, scores) in columns.items():
        for threads in (1, 2):
            tasks[f"{name}, {threads} thread{'s'[: threads - 1]}"] = Task(
                partial(through_cells, labels, scores, threads)
            )
    times = in_turns(tasks, rounds)
    found = [times.row(task, (SORT,)) for task in tasks if task != SORT]
    for row in found:
        print(_line(row), flush=True)
    return found


def _growth(sizes: tuple[int, ...], quick: bool) -> list[dict[str, Any]]:
    """Nanoseconds per row at each size: constant if the cost is linear."""
    found = []
    for n in sizes:
        y, s = rows(n, seed=0)
        tasks = {
            SORT: Task(partial(np.sort, s)),
            "cells, 1 thread": Task(partial(through_cells, y, s, 1)),
            "cells, 2 threads": Task(partial(through_cells, y, s, 2)),
        }
        times = in_turns(tasks, 3 if quick else 5 if n > 10_000_000 else 9)
        entry: dict[str, Any] = {"n": n, "others": round(float(np.median(times.others)), 3)}
        entry |= {
            name: {
                "ns_per_row": float(np.median(times.wall[name])) / n * 1e9,
                "ratio": times.ratio(name, SORT),
            }
            for name in tasks
        }
        found.append(entry)
        print(
            f"{n:>12,} rows: "
            + ", ".join(f"{name} {entry[name]['ns_per_row']:.2f} ns/row" for name in tasks),
            flush=True,
        )
        del y, s, tasks, times
    return found


# --- memory: each case in a process of its own, after a small warm-up so that loading the code does not count

_MEMORY = """
import json, sys
import numpy as np
from pathlib import Path
import calcore
from functools import partial
from calcore import CellTable, ScoreTable
certify = partial(calcore.certify, method="plugin")

n, case = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
s, y = np.empty(n), np.zeros(n, np.int8)
for i in range(0, n, 100_000):
    part = s[i : i + 100_000]
    rng.random(out=part)
    y[i : i + 100_000] = rng.random(part.size) < part
run = {
    "cells, 1 thread": lambda y, s: certify(CellTable().update(y, s, n_threads=1)),
    "cells, 2 threads": lambda y, s: certify(CellTable().update(y, s, n_threads=2)),
    "certify(y_true, y_prob)": certify,
    "sorted scores": lambda y, s: certify(ScoreTable(y, s)),
    "np.sort of the scores": lambda y, s: np.sort(s),
}[case]

def status(field):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024

run(y[:200_000], s[:200_000])
Path("/proc/self/clear_refs").write_text("5")  # peak := now
before = status("VmRSS")
run(y, s)
print(json.dumps(status("VmHWM") - before))
"""


def _memory(n: int, repeats: int) -> list[dict[str, Any]]:
    """Peak resident memory above that of the two columns, in MiB; needs Linux."""
    cases = ("cells, 1 thread", "cells, 2 threads", "certify(y_true, y_prob)", "sorted scores", SORT)
    found = []
    for case in cases:
        runs = [
            float(
                json.loads(
                    subprocess.run(
                        [sys.executable, "-c", _MEMORY, str(n), case],
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout
                )
            )
            for _ in range(repeats)
        ]
        found.append({"task": case, "n": n, "extra_mib": max(runs)})
        print(f"{case:32} {max(runs):8.1f} MiB above the columns", flush=True)
    return found


def _checks(content: dict[str, Any]) -> list[dict[str, Any]]:
    main = {row["task"]: row["ratio"][SORT] for row in content["main"]}
    checks = [
        record.check(f"certify of {content['n']:,} rows, {task}", main[task], limit, unit="× np.sort")
        for task, limit in LIMITS.items()
    ]
    for threads in (1, 2):
        limit = LIMITS[f"cells, {threads} thread{'s'[: threads - 1]}"]
        kinds = [row for row in content["inputs"] if f", {threads} thread" in row["task"]]
        worst = max(kinds, key=lambda row: row["ratio"][SORT])
        checks.append(
            record.check(f"slowest input: {worst['task']}", worst["ratio"][SORT], limit, unit="× np.sort")
        )
    memory = {row["task"]: row["extra_mib"] for row in content["memory"]}
    checks += [
        record.check(f"extra memory, {task}", memory[task], EXTRA_MIB, unit="MiB")
        for task in ("cells, 1 thread", "cells, 2 threads", "certify(y_true, y_prob)")
    ]
    first, last = content["growth"][-2], content["growth"][-1]
    checks += [
        record.check(
            f"growth, {task}: cost per row at {last['n']:,} / at {first['n']:,}",
            last[task]["ns_per_row"] / first[task]["ns_per_row"],
            1.1,
        )
        for task in ("cells, 1 thread", "cells, 2 threads")
    ]
    return checks


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['task']:44} {row['seconds'] * 1e3:9.1f} ms  "
        + "  ".join(f"{ratio:6.3f} x {other}" for other, ratio in row["ratio"].items())
        + f"  {row['cores_used']:.2f} cores, others {row['others_used']:.2f}"
    )
