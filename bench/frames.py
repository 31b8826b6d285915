"""Rows of a Parquet file into a CellTable: by an engine's group-by, and by its Arrow batches and the kernel.

Each in a process of its own, in turns, on the same file; the tables must be equal in every bit. Seconds are
those of the task, without imports and without compilation; memory is the peak of the process.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import calcore
from bench import machine, record
from bench.clock import quietest
from calcore.simulate import rows

GROUP_BY, BATCHES = "group-by", "Arrow batches"
LIMITS = {GROUP_BY: 25.0, BATCHES: 60.0}
"""Millions of rows a second, of the fastest engine."""

LIMIT_MIB = 2048.0
PART = 10_000_000
BATCH = 1_000_000


def _through_frames(frame: Any) -> calcore.CellTable:
    from calcore_bindings.frames import cell_table

    return cell_table(frame, score="s", label="y")


def _through_batches(batches: Iterable[Any]) -> calcore.CellTable:
    table = calcore.CellTable()
    for batch in batches:
        table.update(batch["y"], batch["s"])
    return table


def _polars(path: str) -> calcore.CellTable:
    import polars

    return _through_frames(polars.scan_parquet(path))


def _polars_batches(path: str) -> calcore.CellTable:
    import polars

    return _through_batches(polars.scan_parquet(path).collect_batches(chunk_size=BATCH))


def _duckdb(path: str) -> calcore.CellTable:
    import duckdb

    return _through_frames(duckdb.read_parquet(path))


def _duckdb_batches(path: str) -> calcore.CellTable:
    import duckdb

    return _through_batches(duckdb.read_parquet(path).to_arrow_reader(BATCH))


def _pyarrow(path: str) -> calcore.CellTable:
    return _through_frames(parquet.read_table(path))


def _pyarrow_batches(path: str) -> calcore.CellTable:
    return _through_batches(parquet.ParquetFile(path).iter_batches(BATCH))


def _pandas(path: str) -> calcore.CellTable:
    import pandas

    return _through_frames(pandas.read_parquet(path))


TASKS: dict[str, tuple[str, Callable[[str], calcore.CellTable]]] = {
    "Polars": (GROUP_BY, _polars),
    "DuckDB": (GROUP_BY, _duckdb),
    "PyArrow": (GROUP_BY, _pyarrow),
    "pandas": (GROUP_BY, _pandas),
    "Polars, batches": (BATCHES, _polars_batches),
    "DuckDB, batches": (BATCHES, _duckdb_batches),
    "PyArrow, batches": (BATCHES, _pyarrow_batches),
}
WHOLE = {"PyArrow", "pandas"}
"""Engines that read the whole file first: the memory that it takes is no target."""


def measure(quick: bool) -> dict[str, Any]:
    """Rows a second, memory, and ratios to PyArrow's batches in a round; 10^8 rows (quick: 10^7)."""
    load = machine.load()
    n = 10_000_000 if quick else 100_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        _child("write", path, str(n))
        rounds = quietest(lambda: {task: _child(task, path) for task in TASKS}, 1 if quick else 3)
    digests = {measured["digest"] for _, of_round in rounds for measured in of_round.values()}
    assert len(digests) == 1, "tables differ"
    found = []
    for task, (kind, _) in TASKS.items():
        seconds = [of_round[task]["seconds"] for _, of_round in rounds]
        base = [of_round["PyArrow, batches"]["seconds"] for _, of_round in rounds]
        row = {"task": task, "kind": kind, "millions": n / float(np.median(seconds)) / 1e6}
        row |= {"mib": max(of_round[task]["mib"] for _, of_round in rounds)}
        row |= {"ratio": float(np.median(np.divide(seconds, base)))}
        found.append(row)
        print(
            f"{task:20} {row['millions']:7.1f} M rows/s {row['mib']:8.0f} MiB  {row['ratio']:6.2f} x",
            flush=True,
        )
    best = {kind: max(row["millions"] for row in found if row["kind"] == kind) for kind in LIMITS}
    memory = max(row["mib"] for row in found if row["task"] not in WHOLE)
    checks = [
        record.check(f"{kind}, fastest engine", best[kind], limit, unit="M rows/s", at_least=True)
        for kind, limit in LIMITS.items()
    ]
    checks.append(record.check("memory of engines that read in parts", memory, LIMIT_MIB, unit="MiB"))
    content = {"n": n, "rows": found, "checks": checks}
    record.save("frames", content, quick, load)
    return content


def _child(task: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.frames", task, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _write(path: str, n: int) -> None:
    schema = pa.schema({"y": pa.int8(), "s": pa.float64()})
    with parquet.ParquetWriter(path, schema) as writer:
        for seed in range(n // PART):
            labels, scores = rows(PART, seed=seed)
            part = pa.table({"y": labels.astype(np.int8), "s": scores}, schema=schema)
            writer.write_table(part, row_group_size=BATCH)


def _run(task: str, path: str) -> dict[str, Any]:
    _, work = TASKS[task]
    labels, scores = rows(1000, seed=0)
    _through_frames(pa.table({"y": labels, "s": scores}))  # imports and compiles
    calcore.CellTable().update(labels.astype(np.int8), scores)
    began = time.perf_counter()
    table = work(path)
    seconds = time.perf_counter() - began
    digest = hashlib.sha256(pickle.dumps(table.__getstate__())).hexdigest()
    return {
        "seconds": seconds,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "digest": digest,
    }


if __name__ == "__main__":
    _, what, *rest = sys.argv
    if what == "write":
        _write(rest[0], int(rest[1]))
        print("{}")
    else:
        print(json.dumps(_run(what, rest[0])))
