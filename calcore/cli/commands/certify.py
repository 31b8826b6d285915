"""`calcore certify`: an interval for the calibration error of all rows, of segments or of classes; gates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcore.cli.commands.options import (
    Bins,
    Cells,
    Files,
    Folds,
    Grid,
    Grids,
    Groups,
    Json,
    Label,
    Lipschitz,
    Method,
    Perturbed,
    PosLabel,
    Score,
    Seed,
    Side,
    Threads,
    Variation,
    certify_options,
    grid_name,
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
from calcore.cli.process import DONE, FAILED, INTERNAL, complain, exit_codes

if TYPE_CHECKING:
    from calcore.files.intake import Intake
    from calcore.files.plan import Classes
    from calcore.files.rows import ProbabilityRows, SingleRows
    from calcore.reference import CrossCheck
    from calcore.results import Certificate, CertificateSet
    from calcore.table import CellTable, ScoreTable


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
    from calcore.files.intake import take_in
    from calcore.files.paths import InputError
    from calcore.files.plan import Classes
    from calcore.files.rows import take_in_rows
    from calcore.files.words import in_words_of_the_command
    from calcore.report.text import score_bins

    if max_ce is not None and not 0.0 <= max_ce <= 1.0:
        raise InputError(f"--max-ce must lie in [0, 1]; got {max_ce}")
    options = certify_options(delta, method, variation, lipschitz, perturbed, n_folds, seed)
    columns: dict[str, Any] = {"label": label, "score": score, "pos_label": pos_label}
    named: dict[str, Any] = {"label": label, "pos_label": pos_label}
    if score is not None:
        named["scores"] = [("--score", score)]

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
        return _certify_by(files, by, named, options, side, max_ce, as_json)
    second = _second_solver() if cross_check else None
    given: Intake | SingleRows
    table: ScoreTable | CellTable | None = None
    if groups is None:
        with progress_bar() as progress:
            given = take_in(
                files,
                **columns,
                grid=grid_name(grid),
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
        with progress_bar() as progress:
            given = take_in_rows(files, groups=groups, **named, classes=chosen, progress=progress)
        arguments = (given.labels, given.scores[0])
        assert given.groups is not None
        options["groups"] = given.groups.codes

    certificate = bound(side, *arguments)
    gate = None
    if max_ce is not None:
        upper = certificate.upper if side is Side.UPPER else bound(Side.UPPER, *arguments).upper
        gate = {"max_ce": max_ce, "upper": upper, "passed": upper <= max_ce}
    listed = score_bins(table, bins) if bins and table is not None else []
    checked = second(table, delta) if second is not None and table is not None else None
    if as_json:
        scores = {"score": given.score} if chosen is None else {"classes": list(given.columns)}
        about = {"label": given.label, **scores, "groups": groups}
        write_json(
            certificate.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "gate": gate}
            | {"cross_check": None if checked is None else checked.to_dict()}
            | {"bins": [part._asdict() for part in listed]}
        )
    else:
        from calcore.report.text import certificate_text, cross_check_text, gate_text

        paragraphs = [
            certificate_text(
                certificate_in_words(certificate),
                population=given.population,
                data=describe_data(given, groups, "score" if chosen is None else "first choice of"),
                bins=listed or None,
                width=text_width(),
            )
        ]
        if checked is not None:
            paragraphs.append(cross_check_text(str(checked), width=text_width()))
        if gate is not None:
            paragraphs.append(gate_text(max_ce or 0.0, gate["upper"], delta, width=text_width()))
        write_text("\n\n".join(paragraphs))
    if checked is not None and not checked.agrees:
        complain(
            "the cross-check failed: one of two solvers is wrong, and no number of this job can be trusted"
        )
        return INTERNAL
    return FAILED if gate is not None and not gate["passed"] else DONE


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
    from calcore import certify_groups
    from calcore.files.paths import InputError
    from calcore.files.rows import take_in_rows
    from calcore.files.words import in_words_of_the_command

    with progress_bar() as progress:
        given = take_in_rows(files, by=by, **columns, progress=progress)
    assert given.segments is not None
    segments = given.segments.values()

    def bound(which: Side) -> CertificateSet:
        try:
            return certify_groups(given.labels, given.scores[0], by=segments, side=which.value, **options)
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error

    about = {"label": given.label, "score": given.score, "by": by}
    return _show_set(bound, side, max_ce, as_json, given, about, by, describe_data(given, None))


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
    from calcore.files.paths import InputError
    from calcore.files.rows import take_in_classes
    from calcore.files.words import in_words_of_the_command

    with progress_bar() as progress:
        given = take_in_classes(files, classes, label=label, groups=groups, progress=progress)
    codes = None if given.groups is None else given.groups.codes

    def bound(which: Side) -> CertificateSet:
        try:
            found = certify_classwise(given.codes, given.matrix, groups=codes, side=which.value, **options)
        except ValueError as error:
            raise InputError(in_words_of_the_command(str(error))) from error
        return replace(found, certificates=dict(zip(given.names, found.values(), strict=True)))

    about = {"label": given.label, "classes": list(given.columns), "groups": groups}
    return _show_set(
        bound, side, max_ce, as_json, given, about, "class", describe_data(given, groups, "classes")
    )


def _show_set(
    bound: Callable[[Side], CertificateSet],
    side: Side,
    max_ce: float | None,
    as_json: bool,
    given: SingleRows | ProbabilityRows,
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
        write_json(
            found.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "gate": gate}
        )
    else:
        from calcore.report.sets import set_text
        from calcore.report.text import gate_text

        paragraphs = [
            set_text(found, heading=heading, population=given.population, data=data, width=text_width())
        ]
        if gate is not None:
            paragraphs.append(gate_text(max_ce or 0.0, gate["upper"], found.delta, width=text_width()))
        write_text("\n\n".join(paragraphs))
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
