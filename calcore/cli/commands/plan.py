"""`calcore plan`: how many rows an upper bound needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from calcore.cli.commands.options import Json, Score
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import progress_bar, text_width, write_json, write_text
from calcore.cli.process import DONE, exit_codes


class PlanSide(StrEnum):
    BOTH = "both"
    UPPER = "upper"


@app.command()
@exit_codes
def plan(
    target: Annotated[
        float, typer.Option("--target", help="Upper bound that is wanted.", show_default=False)
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]", help="Files with a column of scores, see --score.", show_default=False
        ),
    ] = None,
    score: Score = None,
    base_rate: Annotated[
        float | None,
        typer.Option(
            "--base-rate", help="Share of positive rows, if there are no scores yet.", show_default=False
        ),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="Probability that the bound misses.")] = 0.05,
    ce: Annotated[float, typer.Option("--ce", help="Calibration error that the model has.")] = 0.0,
    variation: Annotated[
        float | None,
        typer.Option(
            "--variation",
            help="Total variation of the true rate, as in certify: 1, or nothing with --perturbed.",
            show_default=False,
        ),
    ] = None,
    perturbed: Annotated[
        float | None,
        typer.Option(
            "--perturbed", help="Width of the perturbation of the scores, as in certify.", show_default=False
        ),
    ] = None,
    side: Annotated[PlanSide, typer.Option("--side", help="Ends that are bounded.")] = PlanSide.UPPER,
    as_json: Json = False,
) -> int:
    """Say how many rows an upper bound needs, before they are collected.

    Typical for a model of this calibration error and these scores; no guarantee.
    """
    from calcore import rows_needed
    from calcore.files.paths import InputError
    from calcore.files.rows import take_in_scores
    from calcore.files.words import in_words_of_the_command

    scores = None
    if files:
        if base_rate is not None or score is None:
            raise InputError("name the column of scores with --score, and leave out --base-rate")
        with progress_bar() as progress:
            scores = take_in_scores(files, score, progress=progress)
    elif base_rate is None:
        raise InputError("--base-rate, or FILE and --score, must be given")
    elif perturbed is not None:
        raise InputError("--perturbed needs FILE and --score: a base rate does not say how far scores spread")
    try:
        found = rows_needed(
            target,
            delta=delta,
            base_rate=base_rate,
            scores=scores,
            ce=ce,
            variation=variation,
            perturbed=perturbed,
            side=side.value,
        )
    except ValueError as error:
        raise InputError(in_words_of_the_command(str(error))) from error
    if as_json:
        write_json(found.to_dict())
    else:
        from calcore.report.plans import plan_text

        write_text(plan_text(found, width=text_width()))
    return DONE
