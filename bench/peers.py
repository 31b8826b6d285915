"""A certificate beside what people compute today: scikit-learn's calibration_curve, on the same rows.

Nobody else certifies, so the question is what it costs compared with looking at a reliability curve. What can
agree must agree before anything is timed: rows, positive rate and mean score of every bin of equal width.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve

from bench import machine, record
from bench.clock import Task, in_turns
from calcore import CellTable, certify
from calcore.simulate import rows

BINS = (10, 15)
CURVE = "scikit-learn calibration_curve, {} bins"


def curve_of(table: CellTable, n_bins: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, positive rate and mean score of bins of equal width, which are unions of cells."""
    cells = table.cells()
    starts = np.searchsorted(cells.lo, np.arange(n_bins) / n_bins)
    n, k, s = (np.add.reduceat(part, starts) for part in (cells.n, cells.k, cells.s))
    return n, k / n, s / n


def agree(y: NDArray[Any], s: NDArray[Any]) -> None:
    """Raise unless the table's bins are scikit-learn's."""
    table = CellTable().update(y, s)
    for n_bins in BINS:
        observed, predicted = calibration_curve(y, s, n_bins=n_bins)
        n, rate, mean = curve_of(table, n_bins)
        np.testing.assert_array_equal(n, np.histogram(s, n_bins, (0.0, 1.0))[0])
        np.testing.assert_array_equal(rate, observed)  # ratios of the same whole numbers
        np.testing.assert_allclose(mean, predicted, rtol=1e-9)


def measure(quick: bool) -> dict[str, Any]:
    """Times at 10^7 rows (quick: 10^6)."""
    n = 1_000_000 if quick else 10_000_000
    load = machine.load()
    y, s = rows(n, seed=0)
    agree(y, s)
    print(f"{n:,} rows: rows, positive rates and mean scores of {BINS} bins agree", flush=True)
    tasks = {CURVE.format(n_bins): Task(partial(calibration_curve, y, s, n_bins=n_bins)) for n_bins in BINS}
    for threads in (1, 2):
        tasks[f"certify through cells, {threads} thread{'s'[: threads - 1]}"] = Task(
            lambda threads=threads: certify(CellTable().update(y, s, n_threads=threads))
        )
    tasks["np.sort of the scores"] = Task(partial(np.sort, s))
    times = in_turns(tasks, 3 if quick else 7)
    found = [times.row(task, (CURVE.format(10),)) for task in tasks]
    for row in found:
        print(
            f"{row['task']:44} {row['seconds'] * 1e3:9.1f} ms  {row['ratio'][CURVE.format(10)]:6.3f} x",
            flush=True,
        )
    content = {
        "n": n,
        "rows": found,
        "agreed": f"rows, positive rates, mean scores of {BINS} bins",
        "checks": [],
    }
    record.save("peers", content, quick, load)
    return content
