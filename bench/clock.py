"""Times of several things, measured in turns so that a machine that drifts drifts under all of them.

Rounds in which other processes took more than 5 % of a core are run again, and the quietest are kept; at most
four times as many are run as asked for. What is kept depends on the others' processor time, not on the times.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

QUIET = 0.05
PATIENCE = 4
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """`run` is timed; `prepare`, if there is one, makes its argument outside the timing."""

    run: Callable[..., Any]
    prepare: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Wall and processor seconds per round of each task; cores that others used, per round."""

    wall: dict[str, np.ndarray]
    cpu: dict[str, np.ndarray]
    others: np.ndarray

    def ratio(self, task: str, other: str) -> float:
        """Median over rounds of the ratio in the same round."""
        return float(np.median(self.wall[task] / self.wall[other]))

    def row(self, task: str, baselines: tuple[str, ...] = ()) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        wall, cpu = self.wall[task], self.cpu[task]
        low, middle, high = np.percentile(wall, (25, 50, 75))
        return {
            "task": task,
            "rounds": len(wall),
            "seconds": float(middle),
            "quartiles": [float(low), float(high)],
            "least": float(wall.min()),
            "cpu_seconds": float(np.median(cpu)),
            "cores_used": round(float(np.median(cpu / wall)), 2),
            "others_used": round(float(np.median(self.others)), 3),
            "ratio": {other: round(self.ratio(task, other), 4) for other in baselines},
        }


def in_turns(tasks: dict[str, Task], rounds: int) -> Times:
    """Run every task once to warm up, then `rounds` times each, in a new random order every round."""
    for task in tasks.values():
        _once(task)
    order = list(tasks)
    rng = np.random.default_rng(0)

    def round_() -> dict[str, tuple[float, float]]:
        rng.shuffle(order)
        return {name: _once(tasks[name]) for name in order}

    gc.collect()
    gc.disable()
    try:
        kept = quietest(round_, rounds)
    finally:
        gc.enable()
    wall, cpu = (
        {name: np.array([measured[name][i] for _, measured in kept]) for name in tasks} for i in range(2)
    )
    return Times(wall, cpu, np.array([others for others, _ in kept]))


def quietest(run: Callable[[], T], rounds: int) -> list[tuple[float, T]]:
    """Results of `rounds` quiet runs, or of the quietest of four times as many, and the cores others used."""
    results: list[tuple[float, T]] = []
    while len(results) < PATIENCE * rounds and sum(others <= QUIET for others, _ in results) < rounds:
        with Others() as others:
            result = run()
        results.append((others.cores, result))
    return sorted(results, key=lambda result: result[0])[:rounds]


@dataclass(slots=True)
class Others:
    """Cores that other processes used while this context was open; 0 where the system does not say."""

    cores: float = 0.0
    _began: tuple[float, float] = field(default=(0.0, 0.0))

    def __enter__(self) -> Others:
        self._began = time.perf_counter(), _others_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        wall, seconds = self._began
        self.cores = max(0.0, _others_seconds() - seconds) / (time.perf_counter() - wall)


def _others_seconds() -> float:
    """Processor seconds of the whole machine less those of this process and its finished children."""
    try:
        fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def _once(task: Task) -> tuple[float, float]:
    arguments = () if task.prepare is None else (task.prepare(),)
    cpu, wall = time.process_time(), time.perf_counter()
    result = task.run(*arguments)
    elapsed = time.perf_counter() - wall, time.process_time() - cpu
    del result
    return elapsed
