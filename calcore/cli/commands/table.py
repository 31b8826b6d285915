"""`calcore table`: build tables of scores, add them up, say what is in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from calcore.cli.commands.options import (
    Bins,
    Cells,
    Files,
    Force,
    Grid,
    Json,
    Label,
    Output,
    PosLabel,
    Score,
    Tables,
    Threads,
    grid_name,
)
from calcore.cli.commands.root import Commands, app
from calcore.cli.commands.shared import progress_bar, sum_of_tables, text_width, write_json, write_text
from calcore.cli.process import DONE, exit_codes, write

if TYPE_CHECKING:
    from calcore.table import CellTable

table_app = Commands(
    rich_markup_mode=None,
    help="Tables of scores: build day by day, add up, certify.",
    no_args_is_help=True,
)
app.add_typer(table_app, name="table")


@table_app.command()
@exit_codes
def build(
    files: Files,
    output: Output,
    label: Label = None,
    score: Score = None,
    pos_label: PosLabel = None,
    grid: Annotated[
        Grid,
        typer.Option(
            "--grid",
            help="Cells of scores: sqrt for rare events, logit for scores near 0 and 1; auto is linear, or "
            "that of a table among the files.",
        ),
    ] = Grid.AUTO,
    cells: Cells = None,
    threads: Threads = None,
    force: Force = False,
) -> int:
    """Read predictions into a table of score cells.

    It is all that a certificate needs, about 100,000 cells for any number of rows. Tables of one grid add up.
    """
    from calcore.files.intake import take_in
    from calcore.files.paths import expand, spare
    from calcore.table import CellTable

    spare(output, inputs=expand(files), force=force)
    with progress_bar() as progress:
        given = take_in(
            files,
            label=label,
            score=score,
            pos_label=pos_label,
            grid=grid_name(grid),
            n_cells=cells,
            sort=False,
            n_threads=threads,
            command="calcore table build",
            progress=progress,
        )
    assert isinstance(given.table, CellTable)
    given.table.save(output)
    _say_written(output, given.table)
    return DONE


@table_app.command()
@exit_codes
def merge(tables: Tables, output: Output, force: Force = False) -> int:
    """Add up tables of one grid, exactly and in any order."""
    from calcore.files.paths import expand, spare

    spare(output, inputs=expand(tables), force=force)
    total = sum_of_tables(tables)
    total.save(output)
    _say_written(output, total)
    return DONE


@table_app.command()
@exit_codes
def show(tables: Tables, bins: Bins = 10, as_json: Json = False) -> int:
    """Say what is in a table, or in the sum of several."""
    from calcore.report.text import score_bins, summary_text, table_text

    table = sum_of_tables(tables)
    listed = score_bins(table, bins) if bins and table.n else []
    if as_json:
        write_json(
            {
                "grid": table.grid,
                "n_cells": table.n_cells,
                "n_occupied": len(table.cells().n),
                "n": table.n,
                "n_positive": table.n_positive,
                "n_clipped": table.n_clipped,
                "mean_score": table.sum_scores / table.n if table.n else None,
                "is_coarse": table.n > 0 and table.is_coarse,
                "bins": [part._asdict() for part in listed],
            }
        )
    else:
        paragraphs = [summary_text(table, width=text_width()), *([table_text(listed)] if listed else [])]
        write_text("\n\n".join(paragraphs))
    return DONE


def _say_written(output: str, table: CellTable) -> None:
    from calcore.files.paths import shown

    write(f"{shown(output)}: {table.n:,} rows in {len(table.cells().n):,} of {table.describe()}\n")
