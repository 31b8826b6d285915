"""Tables and certificates by number of rows, beside np.sort and a plain sum of the same arrays."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calcore import BinCounts, CellTable, ScoreTable, certify
from calcore.simulate import rows

SIZES = tuple(
    int(size) for size in os.environ.get("BENCH_SIZES", "1000,10000,100000,1000000,10000000").split(",")
)
sizes = pytest.mark.parametrize("n", SIZES)


@cache
def columns(n: int) -> tuple[Any, Any]:
    """Labels and uniform scores, calibrated."""
    return rows(n, seed=0)


@cache
def filled(n: int) -> CellTable:
    return CellTable().update(*columns(n))


@sizes
def bench_np_sort(benchmark: Any, n: int) -> None:
    benchmark(np.sort, columns(n)[1])


@sizes
def bench_plain_sum(benchmark: Any, n: int) -> None:
    y, s = columns(n)
    benchmark(lambda: (s.sum(), y.sum()))


@sizes
def bench_fill_cells(benchmark: Any, n: int) -> None:
    y, s = columns(n)
    benchmark(lambda: CellTable().update(y, s, n_threads=1))


@sizes
def bench_fill_cells_two_threads(benchmark: Any, n: int) -> None:
    y, s = columns(n)
    benchmark(lambda: CellTable().update(y, s, n_threads=2))


@sizes
def bench_score_table(benchmark: Any, n: int) -> None:
    benchmark(ScoreTable, *columns(n))


@sizes
def bench_bin_counts(benchmark: Any, n: int) -> None:
    y, s = columns(n)
    benchmark(lambda: BinCounts(15).update(y, s).value())


@sizes
def bench_certify_columns(benchmark: Any, n: int) -> None:
    benchmark(certify, *columns(n))


@sizes
def bench_certify_filled_cells(benchmark: Any, n: int) -> None:
    """What is left to do when the rows are in the table: nearly the same for every n."""
    benchmark.pedantic(
        certify, setup=lambda: ((CellTable().merge(filled(n)),), {}), rounds=20, warmup_rounds=1
    )


@sizes
def bench_merge(benchmark: Any, n: int) -> None:
    """Two tables of n rows each."""
    other = filled(n)
    benchmark.pedantic(CellTable.merge, setup=lambda: ((CellTable().merge(other), other), {}), rounds=20)


@sizes
def bench_save(benchmark: Any, n: int, tmp_path: Path) -> None:
    benchmark(filled(n).save, tmp_path / "table")


@sizes
def bench_load(benchmark: Any, n: int, tmp_path: Path) -> None:
    filled(n).save(tmp_path / "table")
    benchmark(CellTable.load, tmp_path / "table")
