"""From files to a table: one pass, in memory that does not depend on the number of rows.

The first million rows are held. If there are no more, they become a `ScoreTable`, so that the command line
gives exactly the number that `certify` gives in Python. If there are, or if cells were asked for,
everything is poured into a `CellTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from calcore.files.paths import InputError, shown
from calcore.files.plan import Classes, Progress, batches, located, plan_of
from calcore.files.rows import Held
from calcore.table import CellTable, ScoreTable

__all__ = ["HELD_ROWS", "Intake", "Passed", "add_tables", "pass_on", "take_in"]

HELD_ROWS = 1_000_000
"""Up to this many rows are sorted, as `calcore.table.tabulate` does; more go through cells."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What was read, and from where; `label` and `score` are None if only tables were read."""

    table: ScoreTable | CellTable
    files: tuple[str, ...]
    label: str | None
    columns: tuple[str, ...]
    """Of scores: one, or those of all classes."""
    population: str

    @property
    def score(self) -> str | None:
        """The columns in words."""
        return ", ".join(self.columns) or None


@dataclass(frozen=True, slots=True)
class Passed:
    """What was handed on, and from where."""

    n: int
    files: tuple[str, ...]
    label: str
    score: str
    population: str


def take_in(
    patterns: Sequence[str],
    *,
    label: str | None = None,
    score: str | None = None,
    pos_label: str | None = None,
    grid: str | None = None,
    n_cells: int | None = None,
    sort: bool = True,
    every_row: bool = False,
    n_threads: int | None = None,
    classes: Classes | None = None,
    command: str = "calcore certify",
    progress: Progress | None = None,
) -> Intake:
    """Read files of rows, and saved tables, into one table.

    Parameters
    ----------
    patterns : sequence of str
        Files, globs, directories; see `calcore.files.expand`. Saved tables may be among them: they are
        added up, and rows join their cells.
    label, score : str, optional
        Columns; see `calcore.files.choose_columns`.
    pos_label : str, optional
        As typed; becomes a number or a truth value if the column holds these.
    grid, n_cells : optional
        Cells to use whatever the number of rows. Default: up to `HELD_ROWS` rows are sorted, and beyond
        that the grid is the one that suits the first `HELD_ROWS` scores.
    sort : bool
        False: never sort; the grid is linear unless given.
    every_row : bool
        True: sort any number of rows, in memory; saved tables are refused.
    n_threads : int, optional
        See `CellTable.update`.
    classes : Classes, optional
        Columns of class probabilities, in place of `score`: the scores are the largest of each row, and the
        labels whether its class is the right one, as in `certify_top_label`.
    command : str
        Start of the command that a message may propose.
    progress : callable, optional
        See `Progress`.

    Raises
    ------
    InputError
        Anything wrong with files, columns, rows or tables.
    """
    plan = plan_of(patterns, label, _named(score), pos_label, command, classes=classes)
    if every_row and plan.tables:
        raise InputError(f"{shown(plan.tables[0])}: a saved table has no single rows, which --method needs")
    table = _saved(plan.tables, grid, n_cells)
    if table is None and not (sort and grid is None and n_cells is None):
        table = _cells(n_cells, grid or "linear")
    held = Held()
    for source, batch, rows in batches(plan, progress):
        with located(source, batch.start, plan):
            if table is not None:
                table.update(rows.labels, rows.scores, pos_label=plan.pos_label, n_threads=n_threads)
            else:
                held.add(rows)
                if held.n_rows > HELD_ROWS and not every_row:
                    table = held.poured(n_threads)
    if table is None and held.n_rows:
        return Intake(held.sorted(), plan.files, plan.label, plan.scores, plan.population)
    if table is None or table.n == 0:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    return Intake(table, plan.files, plan.label, plan.scores, plan.population)


def pass_on(
    patterns: Sequence[str],
    add: Callable[..., Any],
    *,
    label: str | None = None,
    score: str | None = None,
    pos_label: str | None = None,
    command: str = "calcore monitor",
    progress: Progress | None = None,
) -> Passed:
    """Hand all rows to `add`, in order, batch by batch; parameters as for `take_in`.

    `add` is called with labels, scores and ``pos_label=``, as `CalibrationMonitor.update` is. What it says
    of a row is said with file, column and data row.
    """
    plan = plan_of(patterns, label, _named(score), pos_label, command)
    if plan.tables or plan.label is None or plan.score is None:
        raise InputError(f"{shown(plan.tables[0])}: a saved table has no single rows, and no order of them")
    n_rows = 0
    for source, batch, rows in batches(plan, progress):
        with located(source, batch.start, plan):
            add(rows.labels, rows.scores, pos_label=plan.pos_label)
        n_rows += len(rows)
    if n_rows == 0:
        raise InputError(f"{', '.join(map(shown, plan.files))}: no rows")
    return Passed(n_rows, plan.files, plan.label, plan.score, plan.population)


def _cells(n_cells: int | None, grid: Any) -> CellTable:
    return CellTable(grid=grid) if n_cells is None else CellTable(n_cells, grid)


def add_tables(paths: Sequence[str]) -> CellTable:
    """The sum of at least one saved table.

    Raises
    ------
    InputError
        A damaged file, or tables of different grids.
    """
    total: CellTable | None = None
    for path in paths:
        try:
            table = CellTable.load(path)
            total = table if total is None else total.merge(table)
        except ValueError as error:
            message = str(error).removeprefix(f"{path} ").replace("other must", "it must")
            raise InputError(f"{shown(path)}: {message}") from error
    if total is None:
        raise ValueError("paths must name at least one table")
    return total


def _saved(paths: Sequence[str], grid: str | None, n_cells: int | None) -> CellTable | None:
    if not paths:
        return None
    table = add_tables(paths)
    if grid not in (None, table.grid) or n_cells not in (None, table.n_cells):
        raise InputError(f"{shown(paths[0])} has {table.describe()} already: leave out --grid and --cells")
    return table


def _named(score: str | None) -> list[tuple[str, str]]:
    return [] if score is None else [("--score", score)]
