"""What the commands do: certify, compare, plan, table build/merge/show, drift, monitor, simulate.

Only the command line itself is imported at once; numpy, numba and pyarrow wait until a command runs, so that
``calcore --version`` and ``--help`` answer quickly.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcore import __version__
from calcore.cli.process import DONE, FAILED, INTERNAL, complain, exit_codes, flush, write

if TYPE_CHECKING:
    from calcore.files.intake import (
        Classes,
        GroupedRows,
        Intake,
        PairedRows,
        Passed,
        ProbabilityRows,
    )
    from calcore.monitor import CalibrationMonitor
    from calcore.reference import CrossCheck
    from calcore.results import Certificate, CertificateSet, CertifiedDifference
    from calcore.table import CellTable, ScoreTable

__all__ = ["app"]

app = typer.Typer(
    help="Certified calibration error: how far a classifier's probabilities can be trusted.",
    epilog="Exit codes: 0 done, 1 gate failed or alarm, 2 input or usage, 3 internal error, 130 interrupted.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
table_app = typer.Typer(
    rich_markup_mode=None,
    help="Tables of scores: build day by day, add up, certify.",
    no_args_is_help=True,
)
app.add_typer(table_app, name="table")


class Side(StrEnum):
    BOTH = "both"
    UPPER = "upper"
    LOWER = "lower"


class Grid(StrEnum):
    AUTO = "auto"
    LINEAR = "linear"
    SQRT = "sqrt"
    LOGIT = "logit"


class Shape(StrEnum):
    CALIBRATED = "calibrated"
    OVERCONFIDENT = "overconfident"
    SQUARE = "square"
    STEP = "step"
    CAPPED = "capped"
    SHIFTED = "shifted"


_FOLDED = ("tv", "nw-folds")

_MAX_CELLS = 1 << 24
"""A cell takes 64 bytes for each thread: more would be 1 GiB for one."""

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Parquet, Arrow/Feather, CSV (.gz), NPY, NPZ, tables of 'calcore table'; globs, directories.",
        show_default=False,
    ),
]
Rows = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Parquet, Arrow/Feather, CSV (.gz), NPY, NPZ; globs, directories.",
        show_default=False,
    ),
]
Tables = Annotated[
    list[str], typer.Argument(metavar="TABLE", help="Made by 'calcore table build'.", show_default=False)
]
Label = Annotated[str | None, typer.Option("--label", help="Column of the labels.", show_default=False)]
Score = Annotated[str | None, typer.Option("--score", help="Column of the scores.", show_default=False)]
PosLabel = Annotated[
    str | None,
    typer.Option(
        "--pos-label",
        help="Label that counts as positive, if labels are not 0/1, -1/+1 or bool.",
        show_default=False,
    ),
]
Cells = Annotated[
    int | None,
    typer.Option(
        "--cells", help="Number of cells, default 100800.", min=1, max=_MAX_CELLS, show_default=False
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads to use.", min=1, show_default=False)]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="Name of the bound: auto, plugin, inversion, polynomials, tv, nw, nw-folds or buckets. auto "
        "is the best of the first three that suit. tv, nw and nw-folds hold all rows in memory; nw, "
        "nw-folds and buckets need --lipschitz or --perturbed, polynomials --perturbed.",
    ),
]
Variation = Annotated[
    float | None,
    typer.Option(
        "--variation",
        help="Assume that the true rate, as a function of the score, has at most this total variation. "
        "1 covers every monotone one, and is assumed if nothing else is.",
        show_default=False,
    ),
]
Lipschitz = Annotated[
    float | None,
    typer.Option(
        "--lipschitz", help="Assume that the true rate has this Lipschitz constant.", show_default=False
    ),
]
Perturbed = Annotated[
    float | None,
    typer.Option(
        "--perturbed",
        help="The scores were perturbed with the sech law of this width, and will be in use too.",
        show_default=False,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="Column of what rows belong to (patient, day, user): one random row of each is kept. "
        "Holds all rows in memory.",
        show_default=False,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--n-folds", help="Folds of the methods tv and nw-folds, default 5.", min=2, show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of random splits and draws.", min=0)]
Bins = Annotated[
    int,
    typer.Option(
        "--bins", help="Say what was predicted and observed in so many bins of rows, also in JSON.", min=0
    ),
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there already.")]
Grids = Annotated[
    Grid,
    typer.Option(
        "--grid",
        help="Cells of scores: sqrt for rare events, logit for scores near 0 and 1. "
        "auto: up to a million rows are sorted; more go through the cells that suit the first million.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        write(f"calcore {__version__}\n")
        raise typer.Exit


@app.callback()
def calcore(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


# --- certify


@app.command()
@exit_codes
def certify(
    files: Files,
    label: Label = None,
    score: Score = None,
    delta: Annotated[float, typer.Option("--delta", help="Probability that the interval misses.")] = 0.05,
    side: Annotated[Side, typer.Option("--side", help="Which ends of the interval to bound.")] = Side.BOTH,
    method: Method = "auto",
    variation: Variation = None,
    lipschitz: Lipschitz = None,
    perturbed: Perturbed = None,
    groups: Groups = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="Column of segments (country, model version): certify each, and all rows together, at one "
            "--delta. Holds all rows in memory.",
            show_default=False,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            help="Columns of the probabilities of all classes, with commas between, in place of --score: "
            "certify each class, at one --delta. Labels are numbers of columns, from 0, or names of columns. "
            "Holds all rows in memory.",
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
    top_label: Annotated[
        bool,
        typer.Option(
            "--top-label",
            help="With --classes: certify only the largest probability of each row, as that of being right.",
        ),
    ] = False,
    pos_label: PosLabel = None,
    max_ce: Annotated[
        float | None,
        typer.Option(
            "--max-ce",
            help="Gate: exit code 1 if the one-sided upper bound at --delta is above this; with --by or "
            "--classes, any of them.",
            show_default=False,
        ),
    ] = None,
    n_folds: Folds = None,
    cross_check: Annotated[
        bool,
        typer.Option(
            "--cross-check",
            help="Solve the denoising problem of method tv, for all rows by score, with cvxpy too: each "
            "excess over the optimum <= 1e-10 of it, largest difference <= 1e-6 of the range, or exit code "
            "3. Needs the extra 'reference'.",
        ),
    ] = False,
    grid: Grids = Grid.AUTO,
    cells: Cells = None,
    bins: Bins = 0,
    as_json: Json = False,
    threads: Threads = None,
    seed: Seed = 0,
) -> int:
    """Certify the calibration error of the predictions in files.

    Prints an interval for the L1 calibration error, the average gap between a score and the true rate of
    rows with that score. It holds with confidence 1 - delta for every number of independent rows. The
    columns may be left out if a file has only two.
    """
    from calcore import certify as certify_rows
    from calcore.certificates import ROW_METHODS
    from calcore.files.intake import Classes, in_words_of_the_command, take_in, take_in_groups
    from calcore.files.paths import InputError
    from calcore.report.text import score_bins

    if max_ce is not None and not 0.0 <= max_ce <= 1.0:
        raise InputError(f"--max-ce must lie in [0, 1]; got {max_ce}")
    options = _options(delta, method, variation, lipschitz, perturbed, n_folds, seed)
    columns: dict[str, Any] = {"label": label, "score": score, "pos_label": pos_label}

    def bound(which: Side, *rows: Any) -> Certificate:
        try:
            return certify_rows(*rows, side=which.value, **options)
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error

    bound(side, [0, 1], [0.25, 0.75])  # a fault of the options must not wait for 10^8 rows
    every_row = method in ROW_METHODS
    if every_row and (grid is not Grid.AUTO or cells is not None):
        raise InputError(f"--method {method} needs single rows: leave out --grid and --cells")
    chosen = None
    if classes is not None:
        if score is not None or pos_label is not None or by is not None:
            raise InputError("--classes names all scores: leave out --score, --pos-label and --by")
        chosen = Classes.of(classes, class_labels)
        if not top_label:
            if grid is not Grid.AUTO or cells is not None or bins or cross_check:
                raise InputError(
                    "--classes needs single rows: leave out --grid, --cells, --bins and --cross-check, or "
                    "give --top-label"
                )
            return _certify_classes(files, chosen, label, groups, options, side, max_ce, as_json)
    elif top_label or class_labels is not None:
        raise InputError(
            "--top-label and --class-labels are for --classes: name the columns with --classes too"
        )
    if by is not None:
        if groups is not None or grid is not Grid.AUTO or cells is not None or bins or cross_check:
            raise InputError(
                "--by takes no --groups, --grid, --cells, --bins or --cross-check; for --groups use "
                "calcore.certify_groups in Python"
            )
        return _certify_by(files, by, columns, options, side, max_ce, as_json)
    second = _second_solver() if cross_check else None
    given: Intake | GroupedRows
    table: ScoreTable | CellTable | None = None
    if groups is None:
        with _progress() as progress:
            given = take_in(
                files,
                **columns,
                grid=_name(grid),
                n_cells=cells,
                every_row=every_row,
                n_threads=threads,
                classes=chosen,
                progress=progress,
            )
        table = given.table
        arguments: tuple[Any, ...] = (table,)
    else:
        if grid is not Grid.AUTO or cells is not None or bins or cross_check:
            raise InputError(
                "--groups draws single rows: leave out --grid, --cells, --bins and --cross-check"
            )
        with _progress() as progress:
            given = take_in_groups(files, groups, **columns, classes=chosen, progress=progress)
        arguments = (given.labels, given.scores)
        options["groups"] = given.groups

    certificate = bound(side, *arguments)
    gate = None
    if max_ce is not None:
        upper = certificate.upper if side is Side.UPPER else bound(Side.UPPER, *arguments).upper
        gate = {"max_ce": max_ce, "upper": upper, "passed": upper <= max_ce}
    listed = score_bins(table, bins) if bins and table is not None else []
    checked = second(table, delta) if second is not None and table is not None else None
    if as_json:
        scores = {"score": given.score} if chosen is None else {"classes": list(chosen.columns)}
        about = {"label": given.label, **scores, "groups": groups}
        _write_json(
            certificate.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "gate": gate}
            | {"cross_check": None if checked is None else checked.to_dict()}
            | {"bins": [part._asdict() for part in listed]}
        )
    else:
        from calcore.report.text import certificate_text, cross_check_text, gate_text

        paragraphs = [
            certificate_text(
                _in_words(certificate),
                population=given.population,
                data=_data(given, groups, "score" if chosen is None else "first choice of"),
                bins=listed or None,
                width=_width(),
            )
        ]
        if checked is not None:
            paragraphs.append(cross_check_text(str(checked), width=_width()))
        if gate is not None:
            paragraphs.append(gate_text(max_ce or 0.0, gate["upper"], delta, width=_width()))
        _show("\n\n".join(paragraphs))
    if checked is not None and not checked.agrees:
        complain(
            "the cross-check failed: one of two solvers is wrong, and no number of this job can be trusted"
        )
        return INTERNAL
    return FAILED if gate is not None and not gate["passed"] else DONE


def _options(
    delta: float,
    method: str,
    variation: float | None,
    lipschitz: float | None,
    perturbed: float | None,
    n_folds: int | None,
    seed: int,
) -> dict[str, Any]:
    """Arguments of `certify`, and of what hands them on to it."""
    from calcore.files.paths import InputError

    options: dict[str, Any] = {"delta": delta, "method": method, "variation": variation}
    options |= {"lipschitz": lipschitz, "perturbed": perturbed, "rng": seed}
    if n_folds is not None:
        if method not in _FOLDED:
            raise InputError(f"--n-folds is for --method {' and '.join(_FOLDED)}: leave it out")
        options["n_folds"] = n_folds
    return options


def _certify_by(
    files: list[str],
    by: str,
    columns: dict[str, Any],
    options: dict[str, Any],
    side: Side,
    max_ce: float | None,
    as_json: bool,
) -> int:
    """Certify the segments that column `by` names."""
    import numpy as np

    from calcore import certify_groups
    from calcore.files.intake import in_words_of_the_command, take_in_groups
    from calcore.files.paths import InputError

    with _progress() as progress:
        given = take_in_groups(files, by, option="--by", **columns, progress=progress)
    names = np.empty(len(given.names), object)
    names[:] = given.names.to_pylist()

    def bound(which: Side) -> CertificateSet:
        try:
            return certify_groups(
                given.labels, given.scores, by=names[given.groups], side=which.value, **options
            )
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error

    about = {"label": given.label, "score": given.score, "by": by}
    return _show_set(bound, side, max_ce, as_json, given, about, by, _data(given, None))


def _certify_classes(
    files: list[str],
    classes: Classes,
    label: str | None,
    groups: str | None,
    options: dict[str, Any],
    side: Side,
    max_ce: float | None,
    as_json: bool,
) -> int:
    """Certify every class against the rest."""
    from calcore import certify_classwise
    from calcore.files.intake import in_words_of_the_command, take_in_classes
    from calcore.files.paths import InputError

    with _progress() as progress:
        given = take_in_classes(files, classes, label=label, groups=groups, progress=progress)

    def bound(which: Side) -> CertificateSet:
        try:
            found = certify_classwise(
                given.codes, given.matrix, groups=given.groups, side=which.value, **options
            )
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error
        return replace(found, certificates=dict(zip(given.names, found.values(), strict=True)))

    about = {"label": given.label, "classes": list(classes.columns), "groups": groups}
    return _show_set(bound, side, max_ce, as_json, given, about, "class", _data(given, groups, "classes"))


def _show_set(
    bound: Callable[[Side], CertificateSet],
    side: Side,
    max_ce: float | None,
    as_json: bool,
    given: GroupedRows | ProbabilityRows,
    about: dict[str, Any],
    heading: str,
    data: str,
) -> int:
    """Print certificates that hold together, and the gate that all of them must pass."""
    found = bound(side)
    gate = None
    if max_ce is not None:
        ends = found if side is Side.UPPER else bound(Side.UPPER)
        pooled = [] if ends.pooled is None else [ends.pooled]
        upper = max(c.upper for c in (*pooled, *ends.values()))
        gate = {"max_ce": max_ce, "upper": upper, "passed": upper <= max_ce}
    if as_json:
        _write_json(
            found.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "gate": gate}
        )
    else:
        from calcore.report.sets import set_text
        from calcore.report.text import gate_text

        paragraphs = [
            set_text(found, heading=heading, population=given.population, data=data, width=_width())
        ]
        if gate is not None:
            paragraphs.append(gate_text(max_ce or 0.0, gate["upper"], found.delta, width=_width()))
        _show("\n\n".join(paragraphs))
    return FAILED if gate is not None and not gate["passed"] else DONE


def _second_solver() -> Callable[[ScoreTable | CellTable, float], CrossCheck]:
    """What solves a table's denoising problem with cvxpy too: before anything is read, if it is missing."""
    from calcore.files.paths import InputError

    try:
        from calcore.reference import cross_check
    except ImportError as error:
        raise InputError(
            f"--cross-check needs {error.name or 'cvxpy'}: pip install 'calcore-calibration[reference]'"
        ) from error
    from calcore.certificates.total_variation import penalty

    def solve(table: ScoreTable | CellTable, delta: float) -> CrossCheck:
        n_cells = len(table.cells().n)
        return cross_check(table, table.n * penalty(table.n, max(n_cells, 2), delta))

    return solve


# --- compare


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
    options = _options(delta, method, variation, lipschitz, perturbed, n_folds, seed)

    def found_in(*rows: Any, groups: Any = None) -> CertifiedDifference:
        try:
            return certify_difference(*rows, groups=groups, **options)
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error

    found_in([0, 1], [0.25, 0.75], [0.25, 0.75])
    with _progress() as progress:
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
        _write_json(
            found.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "gate": gate}
        )
    else:
        from calcore.report.pairs import comparison_gate_text, comparison_text

        plain = replace(found, a=_in_words(found.a), b=_in_words(found.b))
        paragraphs = [
            comparison_text(
                plain,
                names=(score, versus),
                population=given.population,
                data=_data(given, groups),
                width=_width(),
            )
        ]
        if gate is not None:
            paragraphs.append(comparison_gate_text(max_brier or 0.0, gate["upper"], delta, width=_width()))
        _show("\n\n".join(paragraphs))
    return FAILED if gate is not None and not gate["passed"] else DONE


def _in_words(certificate: Certificate) -> Certificate:
    """The certificate with warnings that speak of options."""
    from calcore.files.intake import in_words_of_the_command

    return replace(certificate, warnings=tuple(map(in_words_of_the_command, certificate.warnings)))


# --- plan


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
    from calcore.files.intake import in_words_of_the_command, take_in_scores
    from calcore.files.paths import InputError

    scores = None
    if files:
        if base_rate is not None or score is None:
            raise InputError("name the column of scores with --score, and leave out --base-rate")
        with _progress() as progress:
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
        _write_json(found.to_dict())
    else:
        from calcore.report.plans import plan_text

        _show(plan_text(found, width=_width()))
    return DONE


# --- tables


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
    with _progress() as progress:
        given = take_in(
            files,
            label=label,
            score=score,
            pos_label=pos_label,
            grid=_name(grid),
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
    total = _sum_of_tables(tables)
    total.save(output)
    _say_written(output, total)
    return DONE


@table_app.command()
@exit_codes
def show(tables: Tables, bins: Bins = 10, as_json: Json = False) -> int:
    """Say what is in a table, or in the sum of several."""
    from calcore.report.text import score_bins, summary_text, table_text

    table = _sum_of_tables(tables)
    listed = score_bins(table, bins) if bins and table.n else []
    if as_json:
        _write_json(
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
        paragraphs = [summary_text(table, width=_width()), *([table_text(listed)] if listed else [])]
        _show("\n\n".join(paragraphs))
    return DONE


def _sum_of_tables(patterns: list[str]) -> CellTable:
    from calcore.files.intake import add_tables, is_table
    from calcore.files.paths import InputError, expand, shown

    paths = expand(patterns)
    for path in paths:
        if not is_table(path):
            raise InputError(
                f"{shown(path)}: not a table; make one with 'calcore table build {shown(path)} -o TABLE'"
            )
    return add_tables(paths)


def _say_written(output: str, table: CellTable) -> None:
    from calcore.files.paths import shown

    write(f"{shown(output)}: {table.n:,} rows in {len(table.cells().n):,} of {table.describe()}\n")


# --- changes over time


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
    first, second = _sum_of_tables([before]), _sum_of_tables([after])
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
        _write_json(found.to_dict() | {"files_before": files[0], "files_after": files[1], "gate": gate})
    else:
        from calcore.report.changes import drift_gate_text, drift_text

        paragraphs = [drift_text(found, before=_listed(files[0]), after=_listed(files[1]), width=_width())]
        if alpha is not None:
            paragraphs.append(drift_gate_text(alpha, found.p_value, width=_width()))
        _show("\n\n".join(paragraphs))
    return FAILED if gate is not None and not gate["passed"] else DONE


@app.command()
@exit_codes
def monitor(
    state: Annotated[
        str,
        typer.Option(
            "--state",
            metavar="FILE",
            help="File of the monitor's state: made if there is none, replaced when rows were added.",
            show_default=False,
        ),
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]",
            help="New rows, each once, in the order in which they came: files as given, those of a glob or "
            "directory by name. None: say what the state is.",
            show_default=False,
        ),
    ] = None,
    label: Label = None,
    score: Score = None,
    max_ce: Annotated[
        float | None,
        typer.Option(
            "--max-ce",
            help="Calibration error that is tolerated, default 0; for a new state.",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            help="Probability of a false alarm, ever, default 0.05; for a new state.",
            show_default=False,
        ),
    ] = None,
    pos_label: PosLabel = None,
    as_json: Json = False,
) -> int:
    """Watch a model in use, and raise an alarm if it is miscalibrated.

    Adds rows to the evidence against it, which may be looked at as often as you like. Exit code 1 from the
    alarm on. If any row is refused, none is added.
    """
    from calcore.files.intake import in_words_of_the_command, pass_on
    from calcore.files.paths import InputError, expand, shown, spare

    new = not os.path.lexists(state)
    if new and not files:
        raise InputError(f"{shown(state)}: no such file; give rows to begin with")
    spare(state, inputs=expand(files or []), force=True)
    before = _identity(state)
    try:
        watch = _begun(max_ce, delta) if new else _resumed(state, max_ce, delta)
    except ValueError as error:
        raise InputError(in_words_of_the_command(str(error))) from error
    given = None
    if files:
        with _progress() as progress:
            given = pass_on(
                files, watch.update, label=label, score=score, pos_label=pos_label, progress=progress
            )
    elif label is not None or score is not None or pos_label is not None:
        raise InputError("--label, --score and --pos-label are for rows: leave them out, or name a FILE")
    if given is not None and _identity(state) != before:
        raise InputError(
            f"{shown(state)}: changed while rows were read; none of these was added: give them again, and "
            "let one monitor at a time use a state"
        )
    if as_json:
        about = None if given is None else {"label": given.label, "score": given.score}
        _write_json(
            watch.to_dict()
            | {"n_new": given.n if given else 0, "state": state, "files": list(given.files if given else ())}
            | {"columns": about, "population": given.population if given else ""}
        )
    else:
        from calcore.report.changes import monitor_text

        _show(
            monitor_text(
                watch,
                n_new=given.n if given else 0,
                state=shown(state),
                data=_data(given, None) if given else "",
                width=_width(),
            )
        )
    if given is not None:
        flush()  # saved last: whoever gets an error may feed the same rows again
        watch.save(state)
    return FAILED if watch.alarm else DONE


def _identity(path: str) -> tuple[int, ...] | None:
    """What changes if a file is replaced or written to; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _begun(max_ce: float | None, delta: float | None) -> CalibrationMonitor:
    from calcore import CalibrationMonitor

    return CalibrationMonitor(0.0 if max_ce is None else max_ce, delta=0.05 if delta is None else delta)


def _resumed(state: str, max_ce: float | None, delta: float | None) -> CalibrationMonitor:
    """The monitor of a file, if it is the one that options ask for."""
    from calcore import CalibrationMonitor
    from calcore.files.paths import InputError, shown

    try:
        watch = CalibrationMonitor.load(state)
    except ValueError as error:
        raise InputError(f"{shown(state)}: {str(error).removeprefix(f'{state} ')}") from error
    for option, wanted, has in (("--max-ce", max_ce, watch.max_ce), ("--delta", delta, watch.delta)):
        if wanted is not None and wanted != has:
            raise InputError(
                f"{shown(state)}: began with {option} {has:g}; got {wanted:g}: leave it out, or name another "
                "--state"
            )
    return watch


# --- simulate


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
    with _progress("writing") as progress:
        write_columns(
            output,
            ("label", "score"),
            lambda: blocks(n_rows, shape=shape.value, beta=beta, seed=seed),
            n_rows,
            progress=progress,
        )
    write(f"{shown(output)}: {n_rows:,} rows, columns label and score, true calibration error {error:.6g}\n")
    return DONE


# --- what the commands share


def _data(
    given: Intake | GroupedRows | PairedRows | ProbabilityRows | Passed,
    groups: str | None,
    scores: str = "score",
) -> str:
    """Which files and columns a result is about."""
    from calcore.files.paths import shown

    parts = [_listed(given.files)]
    versus = getattr(given, "versus", None)
    named = (("label", given.label), (scores, given.score), ("versus", versus), ("groups", groups))
    for what, name in named:
        if name is not None:
            parts.append(f"{what} {shown(name)}")
    return ", ".join(parts)


def _listed(files: Sequence[str]) -> str:
    from calcore.files.paths import shown

    return shown(files[0]) if len(files) == 1 else f"{len(files):,} files"


def _name(grid: Grid) -> str | None:
    return None if grid is Grid.AUTO else str(grid.value)


def _write_json(payload: dict[str, Any]) -> None:
    write(json.dumps(payload, allow_nan=False) + "\n")


def _width() -> int:
    """Columns to wrap to: those of the terminal, at most 100; 88 where there is none."""
    return min(100, shutil.get_terminal_size((88, 24)).columns) if sys.stdout.isatty() else 88


def _show(text: str) -> None:
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
def _progress(verb: str = "reading") -> Iterator[Callable[[float, int], None] | None]:
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
