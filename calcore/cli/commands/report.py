"""`calcore report`: one HTML file that says everything about the calibration of models."""

from __future__ import annotations

import json
import math
import os
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcore.cli.commands.options import Force, Groups, Label, PosLabel, Rows, Seed, Threads, Variation
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import busy, progress_bar, text_width, write_text
from calcore.cli.process import DONE, exit_codes

if TYPE_CHECKING:
    from calcore.evaluation import Evaluation, ModelsEvaluation
    from calcore.files.plan import Classes

_NEEDED = ("jinja2", "matplotlib")


@app.command()
@exit_codes
def report(
    files: Rows,
    label: Label = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            help="Column of the scores; again for each model more, to report which is better.",
            show_default=False,
        ),
    ] = None,
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
    groups: Groups = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            help="Columns of the probabilities of all classes, in place of --score: names with commas "
            "between, a pattern like 'p_*', or one column of lists. Reports first choices, each class, and "
            "all together.",
            show_default=False,
        ),
    ] = None,
    class_labels: Annotated[
        str | None,
        typer.Option(
            "--class-labels",
            help="The label of each of --classes, if it is neither its number, nor its name, nor what the * "
            "of a pattern stands for.",
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
    """Write one HTML file about the calibration of models, and say the verdict.

    The file has everything inside and opens without a network: certificate, proper scores, errors over bins,
    pictures, clinical numbers, segments, classes, and sentences for a paper. With several --score it says
    first which model is better, and what can be told apart. Holds all rows in memory; of more than a million
    rows a random million is resampled. For a release gate use 'calcore certify --max-ce'.
    """
    from calcore import _validate
    from calcore.comparison import checked_resamples
    from calcore.files.paths import InputError, expand, shown, spare
    from calcore.files.plan import Classes

    missing = [package for package in _NEEDED if find_spec(package) is None]
    if missing:
        raise InputError(
            f"calcore report needs {' and '.join(missing)}: pip install 'calcore-calibration[report]'"
        )
    scores = score or []
    chosen = None
    if classes is not None:
        if scores or pos_label is not None:
            raise InputError("--classes names all scores: leave out --score and --pos-label")
        chosen = Classes.of(classes, class_labels)
    elif class_labels is not None:
        raise InputError("--class-labels is for --classes: name the columns with --classes too")
    if name is not None and len(scores) > 1:
        raise InputError("--name is for one model: with several --score each is called by its column")
    numbers = {"delta": delta, "variation": variation, "n_resamples": resamples, "rng": seed}
    with _in_words():
        checked_resamples(resamples, _validate.probability(delta, "delta"))
    _evaluated([0, 1], [0.25, 0.75], **numbers | {"n_resamples": min(resamples, math.ceil(2.0 / delta))})
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

    found = _found(
        files,
        scores,
        chosen,
        name,
        {"label": label, "groups": groups, "by": by},
        pos_label,
        {"classes": classes, "class-labels": class_labels},
        numbers,
        threads,
    )
    from calcore.report.page import html

    with busy("drawing the report"):
        page = html(found)
    _write(output, page)
    written = f"Report: {shown(output)}"
    if json_file is not None:
        _write(json_file, json.dumps(found.to_dict(), allow_nan=False, indent=1) + "\n")
        written += f"\nNumbers: {shown(json_file)}"
    write_text(f"{textwrap.fill(found.verdict, text_width())}\n\n{written}")
    return DONE


def _found(
    files: list[str],
    scores: list[str],
    chosen: Classes | None,
    name: str | None,
    columns: dict[str, Any],
    pos_label: str | None,
    typed: dict[str, str | None],
    numbers: dict[str, Any],
    threads: int | None,
) -> Evaluation | ModelsEvaluation:
    """Read the rows, and evaluate the model or models; `typed` is what --classes and its labels were."""
    from calcore.files.rows import ProbabilityRows, SingleRows, take_in_classes, take_in_rows

    given: SingleRows | ProbabilityRows
    with progress_bar() as progress:
        if chosen is not None:
            given = take_in_classes(files, chosen, **columns, command="calcore report", progress=progress)
        else:
            given = take_in_rows(
                files,
                scores=[("--score", each) for each in scores],
                pos_label=pos_label,
                **columns,
                command="calcore report",
                progress=progress,
            )
    named = {"score": given.columns} if chosen is None else typed
    again = {"label": given.label, **named, "pos-label": pos_label, "by": columns["by"]}
    again |= {"groups": columns["groups"], "name": name, "delta": numbers["delta"]}
    again |= {"variation": numbers["variation"], "resamples": numbers["n_resamples"], "seed": numbers["rng"]}
    options = numbers | {
        "by": None if given.segments is None else given.segments.values(),
        "groups": None if given.groups is None else given.groups.codes,
        "population": given.population,
        "command": _command(files, again),
        "n_threads": threads,
    }
    n = len(given.codes if isinstance(given, ProbabilityRows) else given.labels)
    with busy(f"evaluating {n:,} rows"):
        if isinstance(given, ProbabilityRows):
            one = _evaluated(given.codes, given.matrix, name=name or "first choice", **options)
            assert one.classes is not None
            one = replace(one, classes=one.classes.renamed(given.names))
        elif len(given.scores) == 1:
            one = _evaluated(given.labels, given.scores[0], name=name or given.score, **options)
        else:
            from calcore.evaluation import evaluate_models

            models = dict(zip(given.columns, given.scores, strict=True))
            with _in_words():
                found = evaluate_models(given.labels, models, **options)
            each = tuple(replace(one, segments_by=columns["by"]) for one in found.models)
            return replace(found, models=each)
    return replace(one, segments_by=columns["by"])


def _evaluated(labels: Any, scores: Any, **options: Any) -> Evaluation:
    from calcore.evaluation import evaluate

    with _in_words():
        return evaluate(labels, scores, **options)


@contextmanager
def _in_words() -> Iterator[None]:
    """Messages in words of the command."""
    from calcore.files.paths import InputError
    from calcore.files.words import in_words_of_the_command

    try:
        yield
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
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None:
                words += [f"--{name}", f"{each:g}" if isinstance(each, float) else str(each)]
    return shlex.join(words)


def _write(path: str, text: str) -> None:
    from calcore.files.paths import open_native, replacing

    with replacing(path) as part, open_native(part, "wb") as file:
        file.write(text.encode("utf-8", "backslashreplace"))
