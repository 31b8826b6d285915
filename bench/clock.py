"""Times of several things, measured in turns so that a machine that drifts drifts under all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Task:
    """`run` is timed; `prepare`, if there is one, makes its argument outside the timing."""

    run: Callable[..., Any]
    prepare: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Wall and processor seconds per round of each task."""

    wall: dict[str, np.ndarray]
    cpu: dict[str, np.ndarray]

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
            "ratio": {other: round(self.ratio(task, other), 4) for other in baselines},
        }


def in_turns(tasks: dict[str, Task], rounds: int) -> Times:
    """Run every task once to warm up, then `rounds` times each, in a new random order every round."""
    wall = {name: np.empty(rounds) for name in tasks}
    cpu = {name: np.empty(rounds) for name in tasks}
    for task in tasks.values():
        _once(task)
    order = list(tasks)
    rng = np.random.default_rng(0)
    gc.collect()
    gc.disable()
    try:
        for i in range(rounds):
            rng.shuffle(order)
            for name in order:
                wall[name][i], cpu[name][i] = _once(tasks[name])
    finally:
        gc.enable()
    return Times(wall, cpu)


def _once(task: Task) -> tuple[float, float]:
    arguments = () if task.prepare is None else (task.prepare(),)
    cpu, wall = time.process_time(), time.perf_counter()
    result = task.run(*arguments)
    elapsed = time.perf_counter() - wall, time.process_time() - cpu
    del result
    return elapsed
