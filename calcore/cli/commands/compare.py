"""`calcore compare`: two models on the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcore.cli.commands.options import (
    Folds,
    Groups,
    Json,
    Label,
    Lipschitz,
    Method,
    Perturbed,
    PosLabel,
    Rows,
    Seed,
    Variation,
    certify_options,
)
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import (
    certificate_in_words,
    describe_data,
    progress_bar,
    text_width,
    write_json,
    write_text,
)
from calcore.cli.process import DONE, FAILED, exit_codes

if TYPE_CHECKING:
    from calcore.results import CertifiedDifference


@app.command("compare")
@exit_codes
def compare_models(
    files: Rows,
    score: Annotated[
        str, typer.Option("--score", help="Column of the scores of one model.", show_default=False)
    ],
    versus: Annotated[
        str,
        typer.Option(
            "--versus", help="Column of the scores of the model to compare with.", show_default=False
        ),
    ],
    label: Label = None,
    delta: Annotated[
        float, typer.Option("--delta", help="Probability that a difference misses, each for itself.")
    ] = 0.05,
    method: Method = "auto",
    variation: Variation = None,
    lipschitz: Lipschitz = None,
    perturbed: Perturbed = None,
    groups: Groups = None,
    pos_label: PosLabel = None,
    max_brier: Annotated[
        float | None,
        typer.Option(
            "--max-brier",
            help="Gate: exit code 1 if the upper end of the Brier score's difference is above this; with 0, "
            "unless --score is shown to be no worse.",
            show_default=False,
        ),
    ] = None,
    n_folds: Folds = None,
    as_json: Json = False,
    seed: Seed = 0,
) -> int:
    """Compare two models on the same rows.

    Prints intervals for the differences of their calibration errors and of their Brier scores, --score minus
    --versus. Holds all rows in memory. The label may be left out if a file has only one column more.
    """
    from calcore import certify_difference
    from calcore.files.intake import in_words_of_the_command, take_in_pair
    from calcore.files.paths import InputError

    if max_brier is not None and not -1.0 <= max_brier <= 1.0:
        raise InputError(f"--max-brier must lie in [-1, 1]; got {max_brier}")
    options = certify_options(delta, method, variation, lipschitz, perturbed, n_folds, seed)

    def found_in(*rows: Any, groups: Any = None) -> CertifiedDifference:
        try:
            return certify_difference(*rows, groups=groups, **options)
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error

    found_in([0, 1], [0.25, 0.75], [0.25, 0.75])
    with progress_bar() as progress:
        given = take_in_pair(
            files, score, versus, label=label, groups=groups, pos_label=pos_label, progress=progress
        )
    found = found_in(given.labels, given.scores, given.others, groups=given.groups)
    gate = None
    if max_brier is not None:
        upper = found.brier_difference.upper
        gate = {"max_brier": max_brier, "upper": upper, "passed": upper <= max_brier}
    if as_json:
        about = {"label": given.label, "score": score, "versus": versus, "groups": groups}
        write_json(
            found.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "gate": gate}
        )
    else:
        from calcore.report.pairs import comparison_gate_text, comparison_text

        plain = replace(found, a=certificate_in_words(found.a), b=certificate_in_words(found.b))
        paragraphs = [
            comparison_text(
                plain,
                names=(score, versus),
                population=given.population,
                data=describe_data(given, groups),
                width=text_width(),
            )
        ]
        if gate is not None:
            paragraphs.append(
                comparison_gate_text(max_brier or 0.0, gate["upper"], delta, width=text_width())
            )
        write_text("\n\n".join(paragraphs))
    return FAILED if gate is not None and not gate["passed"] else DONE
