"""What several commands do: add up tables, say what a result is about, write it out, show progress."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcore.cli.process import write

if TYPE_CHECKING:
    from calcore.files.intake import Intake, Passed
    from calcore.files.rows import ProbabilityRows, SingleRows
    from calcore.results import Certificate
    from calcore.table import CellTable


def sum_of_tables(patterns: list[str]) -> CellTable:
    """The tables of these files, globs and directories, added up."""
    from calcore.files.intake import add_tables
    from calcore.files.paths import InputError, expand, shown
    from calcore.files.plan import is_table

    paths = expand(patterns)
    for path in paths:
        if not is_table(path):
            raise InputError(
                f"{shown(path)}: not a table; make one with 'calcore table build {shown(path)} -o TABLE'"
            )
    return add_tables(paths)


def describe_data(
    given: Intake | SingleRows | ProbabilityRows | Passed,
    groups: str | None,
    scores: str = "score",
) -> str:
    """Which files and columns a result is about."""
    from calcore.files.paths import shown

    parts = [describe_files(given.files)]
    versus = getattr(given, "versus", None)
    named = (("label", given.label), (scores, given.score), ("versus", versus), ("groups", groups))
    for what, name in named:
        if name is not None:
            parts.append(f"{what} {shown(name)}")
    return ", ".join(parts)


def describe_files(files: Sequence[str]) -> str:
    """The name of one file, or how many there are."""
    from calcore.files.paths import shown

    return shown(files[0]) if len(files) == 1 else f"{len(files):,} files"


def certificate_in_words(certificate: Certificate) -> Certificate:
    """The certificate with warnings that speak of options."""
    from calcore.files.words import in_words_of_the_command

    return replace(certificate, warnings=tuple(map(in_words_of_the_command, certificate.warnings)))


def write_json(payload: dict[str, Any]) -> None:
    """Print a result as one JSON object; NaN and infinity are errors."""
    write(json.dumps(payload, allow_nan=False) + "\n")


def text_width() -> int:
    """Columns to wrap to: those of the terminal, at most 100; 88 where there is none."""
    return min(100, shutil.get_terminal_size((88, 24)).columns) if sys.stdout.isatty() else 88


def write_text(text: str) -> None:
    """Print a report: with emphasis on a terminal, unless NO_COLOR says otherwise; plain anywhere else."""
    if not sys.stdout.isatty():
        write(text + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    styles = {
        "The calibration error": "bold",
        "By the Brier score": "bold",
        "Had nothing changed": "bold",
        "No alarm": "bold green",
        "Alarm": "bold red",
        "Warning:": "yellow",
        "Gate passed": "bold green",
        "Gate failed": "bold red",
    }
    console = Console(highlight=False)
    for number, paragraph in enumerate(text.split("\n\n")):
        style = next((style for start, style in styles.items() if paragraph.startswith(start)), "")
        console.print(Text(paragraph if number == 0 else "\n" + paragraph, style), soft_wrap=True)


@contextmanager
def progress_bar(verb: str = "reading") -> Iterator[Callable[[float, int], None] | None]:
    """A bar on standard error if that is a terminal and the work takes longer than a moment; else None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn(f"{verb} {{task.fields[rows]:,}} rows"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(verb, total=1.0, rows=0)
    began = time.monotonic()

    def advance(fraction: float, rows: int) -> None:
        if not bar.live.is_started and time.monotonic() - began > 0.5:
            bar.start()
        bar.update(task, completed=fraction, rows=rows)

    try:
        yield advance
    finally:
        bar.stop()


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Say on standard error what goes on and for how long, if that is a terminal and it takes a while.

    For work of which nobody knows how far it is.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(doing, total=None)
    late = threading.Timer(0.5, bar.start)
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()
        bar.stop()
