"""Work on a stream of items by several threads, results in the order of the items, few of them held."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

__all__ = ["in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 16
"""Items that are read ahead for each thread, so that one slow call does not keep the others waiting."""

_GRACE = 3.0
"""Seconds that calls under way may take to end, so that what they paid for is kept."""


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], *, n_threads: int = 1
) -> Iterator[Result]:
    """``map(work, items)`` by several threads: results in order, a bounded number of items under way.

    An exception of `work` comes out in its place and ends everything; items that no thread has begun are
    then dropped, those under way get three seconds to end. Threads are daemons: an interrupted process does
    not wait for them any longer.

    Examples
    --------
    >>> list(in_order(abs, [-3, 1, -2], n_threads=2))
    [3, 1, 2]
    """
    if n_threads == 1:
        yield from map(work, items)
        return
    tasks: SimpleQueue[tuple[Item, Future[Result]] | None] = SimpleQueue()

    def run() -> None:
        while (task := tasks.get()) is not None:
            item, place = task
            if not place.set_running_or_notify_cancel():
                continue
            try:
                place.set_result(work(item))
            except BaseException as error:
                place.set_exception(error)

    for _ in range(n_threads):
        Thread(target=run, daemon=True).start()
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            place: Future[Result] = Future()
            tasks.put((item, place))
            waiting.append(place)
            while waiting and (waiting[0].done() or len(waiting) >= _AHEAD * n_threads):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        running = [place for place in waiting if not place.cancel()]
        for _ in range(n_threads):
            tasks.put(None)
        wait(running, timeout=_GRACE)
