"""`calcore report`: one HTML file that says everything about the calibration of one model."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcore.cli.commands.options import Force, Label, PosLabel, Rows, Score, Seed, Threads, Variation
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import progress_bar, text_width, write_text
from calcore.cli.process import DONE, exit_codes

if TYPE_CHECKING:
    from calcore.evaluation import Evaluation

_NEEDED = ("jinja2", "matplotlib")


@app.command()
@exit_codes
def report(
    files: Rows,
    label: Label = None,
    score: Score = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="HTML file to write. Default: beside the input, as predictions.report.html.",
            show_default=False,
        ),
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write all numbers as JSON too.", show_default=False),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", help="Column of segments (country, model version): certify each too.", show_default=False
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            help="Columns of the probabilities of all classes, with commas between, in place of --score: "
            "report whether the largest of each row is the probability of being right.",
            show_default=False,
        ),
    ] = None,
    class_labels: Annotated[
        str | None,
        typer.Option(
            "--class-labels",
            help="The label of each of --classes, if it is neither its number nor its name.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Of the model; default: its column.", show_default=False)
    ] = None,
    delta: Annotated[
        float, typer.Option("--delta", help="Probability that an interval misses, each for itself.")
    ] = 0.05,
    variation: Variation = None,
    pos_label: PosLabel = None,
    resamples: Annotated[
        int, typer.Option("--resamples", help="Bootstrap resamples of scores and errors.")
    ] = 1000,
    force: Force = False,
    threads: Threads = None,
    seed: Seed = 0,
) -> int:
    """Write one HTML file about the calibration of a model, and say its verdict.

    The file has everything inside and opens without a network: certificate, proper scores, errors over bins,
    pictures, clinical numbers, segments, and sentences for a paper. Holds all rows in memory; of more than a
    million rows a random million is resampled. For a release gate use 'calcore certify --max-ce'.
    """
    from calcore.files.intake import Classes, take_in_rows
    from calcore.files.paths import InputError, expand, shown, spare

    missing = [package for package in _NEEDED if find_spec(package) is None]
    if missing:
        raise InputError(
            f"calcore report needs {' and '.join(missing)}: pip install 'calcore-calibration[report]'"
        )
    chosen = None
    if classes is not None:
        if score is not None or pos_label is not None:
            raise InputError("--classes names all scores: leave out --score and --pos-label")
        chosen = Classes.of(classes, class_labels)
    elif class_labels is not None:
        raise InputError("--class-labels is for --classes: name the columns with --classes too")
    _evaluate([0, 1], [0.25, 0.75], delta=delta, variation=variation, n_resamples=resamples, rng=seed)
    paths = expand(files)
    if output is None:
        if len(paths) > 1:
            raise InputError(f"--output is missing: these are {len(paths)} files; name the file to write")
        output = _beside(paths[0])
    for path in (output, json_file):
        if path is not None:
            spare(path, inputs=paths, force=force)
    if json_file is not None and os.path.realpath(json_file) == os.path.realpath(output):
        raise InputError(f"--json and --output both name {shown(output)}")

    with progress_bar() as progress:
        given = take_in_rows(
            files,
            by=by,
            label=label,
            score=score,
            pos_label=pos_label,
            classes=chosen,
            progress=progress,
        )
    model = name or (given.score if chosen is None else "first choice")
    scores = {"score": given.score} if chosen is None else {"classes": classes, "class-labels": class_labels}
    values = {"label": given.label, **scores, "pos-label": pos_label, "by": by, "name": name}
    numbers = {"delta": delta, "variation": variation, "resamples": resamples, "seed": seed}
    found = _evaluate(
        given.labels,
        given.scores,
        by=given.segments,
        name=model,
        delta=delta,
        variation=variation,
        n_resamples=resamples,
        event="positive" if chosen is None else "top label",
        population=given.population,
        command=_command(files, values | numbers),
        rng=seed,
        n_threads=threads,
    )
    found = replace(found, segments_by=by)
    from calcore.report.page import html

    _write(output, html(found))
    written = f"Report: {shown(output)}"
    if json_file is not None:
        _write(json_file, json.dumps(found.to_dict(), allow_nan=False, indent=1) + "\n")
        written += f"\nNumbers: {shown(json_file)}"
    write_text(f"{textwrap.fill(found.verdict, text_width())}\n\n{written}")
    return DONE


def _evaluate(labels: Any, scores: Any, **options: Any) -> Evaluation:
    from calcore.evaluation import evaluate
    from calcore.files.intake import in_words_of_the_command
    from calcore.files.paths import InputError

    try:
        return evaluate(labels, scores, **options)
    except ValueError as error:
        message = in_words_of_the_command(str(error)).replace("n_resamples", "--resamples")
        raise InputError(message.replace("delta=", "--delta ")) from error


def _beside(path: str) -> str:
    """Where the report of a file goes.

    >>> _beside("jobs/p.parquet"), _beside("p.csv.gz"), _beside("p")
    ('jobs/p.report.html', 'p.report.html', 'p.report.html')
    """
    folder, name = os.path.split(path)
    stem = name.removesuffix(".gz")
    return os.path.join(folder, (os.path.splitext(stem)[0] or stem) + ".report.html")


def _command(files: Sequence[str], options: dict[str, Any]) -> str:
    """The command line that gives the same numbers.

    >>> _command(["a b.csv"], {"label": "y", "by": None, "delta": 0.05})
    "calcore report 'a b.csv' --label y --delta 0.05"
    """
    words = ["calcore", "report", *files]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _write(path: str, text: str) -> None:
    from calcore.files.paths import open_native, replacing

    with replacing(path) as part, open_native(part, "wb") as file:
        file.write(text.encode())
