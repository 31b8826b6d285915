"""Jobs in two processes, with a progress bar on a terminal and plain lines elsewhere."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PROCESSES = 2

Job = TypeVar("Job")


def in_parallel(
    title: str, run: Callable[[Job], Any], jobs: Sequence[Job], cost: Callable[[Job], float]
) -> list[Any]:
    """``[run(job) for job in jobs]``, the costly ones first; `cost` also moves the bar."""
    results: list[Any] = [None] * len(jobs)
    order = sorted(range(len(jobs)), key=lambda i: -cost(jobs[i]))
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(PROCESSES, mp_context=context) as pool,
        progress(title, sum(map(cost, jobs))) as advance,
    ):
        waiting = {pool.submit(run, jobs[i]): i for i in order}
        try:
            for done in as_completed(waiting):
                i = waiting[done]
                results[i] = done.result()
                advance(cost(jobs[i]))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


@contextmanager
def progress(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """What is given counts the work done: it moves a bar, or prints a line for every tenth."""
    console = Console()
    if console.is_terminal:
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(title, total=total)
            yield lambda step: bar.advance(task, step)
        return
    done, said = 0.0, 0

    def advance(step: float) -> None:
        nonlocal done, said
        done += step
        tenths = int(10.0 * done / total + 1e-9)
        if tenths > said:
            said = tenths
            print(f"{title}: {10 * tenths} %", flush=True)

    yield advance
