"""`calcore drift`: whether two tables hold rows of one population."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from calcore.cli.commands.options import Json, Seed
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import describe_files, sum_of_tables, text_width, write_json, write_text
from calcore.cli.process import DONE, FAILED, exit_codes


@app.command()
@exit_codes
def drift(
    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            help="Table of the first period, made by 'calcore table build'; a glob or a directory is a sum.",
            show_default=False,
        ),
    ],
    after: Annotated[
        str, typer.Argument(metavar="AFTER", help="Table of the second period.", show_default=False)
    ],
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            help="Gate: exit code 1 if the p-value is at most this, the probability of a false alarm.",
            show_default=False,
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", help="Random divisions of all rows to compare with.", min=1)
    ] = 9_999,
    as_json: Json = False,
    seed: Seed = 0,
) -> int:
    """Test whether two tables hold rows of one population.

    Prints a p-value, exact at every number of independent rows: small ones say that scores, or the rates of
    positives by score, have changed. Tables must have the same grid.
    """
    from calcore import drift_test
    from calcore.files.paths import InputError, expand, shown

    if alpha is not None:
        if not 0.0 < alpha < 1.0:
            raise InputError(f"--alpha must lie strictly between 0 and 1; got {alpha}")
        if alpha * (draws + 1) < 2.0:
            raise InputError(
                f"--alpha {alpha:g} is never reached with {draws:,} draws: needed are --draws "
                f"{math.ceil(2.0 / alpha) - 1}"
            )
    expand([before, after])  # a file on both sides is a mistake
    files = [expand([pattern]) for pattern in (before, after)]
    first, second = sum_of_tables([before]), sum_of_tables([after])
    if (first.grid, first.n_cells) != (second.grid, second.n_cells):
        raise InputError(
            f"{shown(after)}: must have the same grid; got {second.describe()} for {first.describe()} in "
            f"{shown(before)}"
        )
    for pattern, table in ((before, first), (after, second)):
        if table.n == 0:
            raise InputError(f"{shown(pattern)}: no rows")
    try:
        found = drift_test(first, second, n_draws=draws, rng=seed)
    except ValueError as error:
        raise InputError(str(error)) from error
    gate = (
        None if alpha is None else {"alpha": alpha, "p_value": found.p_value, "passed": found.p_value > alpha}
    )
    if as_json:
        write_json(found.to_dict() | {"files_before": files[0], "files_after": files[1], "gate": gate})
    else:
        from calcore.report.changes import drift_gate_text, drift_text

        paragraphs = [
            drift_text(
                found, before=describe_files(files[0]), after=describe_files(files[1]), width=text_width()
            )
        ]
        if alpha is not None:
            paragraphs.append(drift_gate_text(alpha, found.p_value, width=text_width()))
        write_text("\n\n".join(paragraphs))
    return FAILED if gate is not None and not gate["passed"] else DONE
