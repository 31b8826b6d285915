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
    Threads,
    Variation,
    certify_options,
)
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import (
    busy,
    certificate_in_words,
    describe_data,
    progress_bar,
    text_width,
    write_json,
    write_text,
)
from calcore.cli.process import DONE, FAILED, exit_codes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcore.comparison import ModelComparison
    from calcore.files.rows import SingleRows
    from calcore.results import CertifiedDifference


@app.command("compare")
@exit_codes
def compare_models(
    files: Rows,
    score: Annotated[
        str, typer.Option("--score", help="Column of the scores of one model.", show_default=False)
    ],
    versus: Annotated[
        str | None,
        typer.Option(
            "--versus",
            help="Column of the scores of the model to compare with; with --on by default --score.",
            show_default=False,
        ),
    ] = None,
    label: Label = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="Column that names rows (id), the same in two files: --score is in the first, --versus in "
            "the second, and labels are in both and agree.",
            show_default=False,
        ),
    ] = None,
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
    resamples: Annotated[
        int,
        typer.Option(
            "--resamples",
            help="Paired resamples for the differences of scores and binned errors; 0 for none.",
        ),
    ] = 1000,
    threads: Threads = None,
    seed: Seed = 0,
) -> int:
    """Compare two models on the same rows.

    Prints intervals for the differences of their calibration errors and of their Brier scores, --score minus
    --versus: certified ones, which hold at every sample size, and by resampling those of several metrics,
    which are approximate. Holds all rows in memory; of more than a million a random million is resampled,
    unless there are --groups. The label may be left out if a file has only one column more.
    """
    from calcore import certify_difference
    from calcore.comparison import checked_resamples
    from calcore.files.paths import InputError
    from calcore.files.rows import take_in_joined, take_in_rows
    from calcore.files.words import in_words_of_the_command

    if max_brier is not None and not -1.0 <= max_brier <= 1.0:
        raise InputError(f"--max-brier must lie in [-1, 1]; got {max_brier}")
    options = certify_options(delta, method, variation, lipschitz, perturbed, n_folds, seed)

    def found_in(*rows: Any, groups: Any = None) -> CertifiedDifference:
        try:
            return certify_difference(*rows, groups=groups, **options)
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error

    found_in([0, 1], [0.25, 0.75], [0.25, 0.75])
    if resamples:
        try:
            checked_resamples(resamples, delta)
        except ValueError as error:
            message = str(error).replace("n_resamples", "--resamples").replace("delta=", "--delta ")
            raise InputError(message) from error
    columns: dict[str, Any] = {"label": label, "groups": groups, "pos_label": pos_label}
    with progress_bar() as progress:
        if on is not None:
            given = take_in_joined(files, score, versus or score, on, **columns, progress=progress)
        elif versus is None:
            raise InputError("--versus is missing: name the other model's column, or --on and two files")
        else:
            given = take_in_rows(
                files,
                scores=[("--score", score), ("--versus", versus)],
                command="calcore compare",
                **columns,
                progress=progress,
            )
    names = _two_names(given)
    with busy(f"comparing on {len(given.labels):,} rows"):
        found = found_in(given.labels, *given.scores, groups=_codes(given))
        drawn = _resampled(given, names, resamples, delta, seed, threads) if resamples else None
    gate = None
    if max_brier is not None:
        upper = found.brier_difference.upper
        gate = {"max_brier": max_brier, "upper": upper, "passed": upper <= max_brier}
    if as_json:
        about = {"label": given.label, "score": score, "versus": given.versus, "groups": groups}
        if on is not None:
            about["on"] = on
        write_json(
            found.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "gate": gate}
            | {"resampled": None if drawn is None else drawn.to_dict()}
        )
    else:
        from calcore.report.pairs import comparison_gate_text, comparison_text, resampled_text

        plain = replace(found, a=certificate_in_words(found.a), b=certificate_in_words(found.b))
        paragraphs = [
            comparison_text(
                plain,
                names=names,
                population=given.population,
                data=describe_data(given, groups),
                width=text_width(),
            )
        ]
        if drawn is not None:
            rows = len(given.labels) if drawn.n < len(given.labels) else None
            paragraphs.append(resampled_text(drawn, rows=rows, width=text_width()))
        if gate is not None:
            paragraphs.append(
                comparison_gate_text(max_brier or 0.0, gate["upper"], delta, width=text_width())
            )
        write_text("\n\n".join(paragraphs))
    return FAILED if gate is not None and not gate["passed"] else DONE


def _two_names(given: SingleRows) -> tuple[str, str]:
    """What to call the models: their columns, and the files too where these are two."""
    first, second = given.columns
    if first != second:
        return first, second
    return f"{given.files[0]}: {first}", f"{given.files[1]}: {second}"


def _codes(given: SingleRows) -> NDArray[np.int64] | None:
    return None if given.groups is None else given.groups.codes


def _resampled(
    given: SingleRows,
    names: tuple[str, str],
    n_resamples: int,
    delta: float,
    seed: int,
    threads: int | None,
) -> ModelComparison:
    """Differences by resampling, of a random sample of rows if they are many."""
    from calcore import compare
    from calcore.evaluation import sampled

    n = len(given.labels)
    some = sampled(n, seed) if given.groups is None else slice(None)
    return compare(
        given.labels[some],
        dict(zip(names, (scores[some] for scores in given.scores), strict=True)),
        n_resamples=n_resamples,
        delta=delta,
        groups=_codes(given),
        rng=seed,
        n_threads=threads,
    )
