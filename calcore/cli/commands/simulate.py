"""`calcore simulate`: synthetic predictions of known calibration error."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from calcore.cli.commands.options import Force, Output
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import progress_bar
from calcore.cli.process import DONE, exit_codes, write


class Shape(StrEnum):
    CALIBRATED = "calibrated"
    OVERCONFIDENT = "overconfident"
    SQUARE = "square"
    STEP = "step"
    CAPPED = "capped"
    SHIFTED = "shifted"


def _count(typed: str) -> int:
    """A number of rows as people write it: 10000000, 10_000_000, 1e7.

    >>> _count("1e7"), _count("10_000")
    (10000000, 10000)
    """
    try:
        number = float(typed)
    except ValueError:
        number = 0.0
    if not (number.is_integer() and 1 <= number <= 2**53):
        raise ValueError("needed is a whole number of rows, such as 1e7")
    return int(number)


def _beta(typed: str) -> tuple[float, float]:
    """``uniform`` or ``beta:A,B`` as the two parameters of a beta distribution.

    >>> _beta("uniform"), _beta("beta:0.5,49.5")
    ((1.0, 1.0), (0.5, 49.5))
    """
    if typed == "uniform":
        return 1.0, 1.0
    try:
        a, b = (float(part) for part in typed.removeprefix("beta:").split(","))
    except ValueError:
        raise ValueError("needed is 'uniform' or 'beta:A,B' with two numbers") from None
    return a, b


@app.command()
@exit_codes
def simulate(
    output: Output,
    rows: Annotated[str, typer.Option("--rows", help="Number of rows, such as 1e7.", metavar="N")] = "1e6",
    shape: Annotated[
        Shape, typer.Option("--shape", help="True rate as a function of the score; see calcore.simulate.")
    ] = Shape.CALIBRATED,
    scores: Annotated[
        str, typer.Option("--scores", help="Distribution of the scores: uniform or beta:A,B.", metavar="DIST")
    ] = "uniform",
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same rows.", min=0)] = 0,
    force: Force = False,
) -> int:
    """Write synthetic predictions of known calibration error.

    The suffix of the file decides: Parquet, Arrow, CSV (.gz) or NPZ.
    """
    from calcore.files.paths import InputError, shown, spare
    from calcore.files.writing import write_columns
    from calcore.simulate import blocks, true_error

    try:
        n_rows = _count(rows)
    except ValueError as fault:
        raise InputError(f"--rows {rows}: {fault}") from fault
    try:
        beta = _beta(scores)
        error = true_error(shape.value, beta=beta)
    except ValueError as fault:
        raise InputError(f"--scores {scores}: {fault}") from fault
    spare(output, force=force)
    with progress_bar("writing") as progress:
        write_columns(
            output,
            ("label", "score"),
            lambda: blocks(n_rows, shape=shape.value, beta=beta, seed=seed),
            n_rows,
            progress=progress,
        )
    write(f"{shown(output)}: {n_rows:,} rows, columns label and score, true calibration error {error:.6g}\n")
    return DONE
