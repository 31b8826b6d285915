"""`calcore monitor`: watch a model in use, in a file of state, and raise an alarm."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from calcore.cli.commands.options import Json, Label, PosLabel, Score
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import describe_data, progress_bar, text_width, write_json, write_text
from calcore.cli.process import DONE, FAILED, exit_codes, flush

if TYPE_CHECKING:
    from calcore.monitor import CalibrationMonitor


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
    from calcore.files.intake import pass_on
    from calcore.files.paths import InputError, expand, shown, spare
    from calcore.files.words import in_words_of_the_command

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
        with progress_bar() as progress:
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
        write_json(
            watch.to_dict()
            | {"n_new": given.n if given else 0, "state": state, "files": list(given.files if given else ())}
            | {"columns": about, "population": given.population if given else ""}
        )
    else:
        from calcore.report.changes import monitor_text

        write_text(
            monitor_text(
                watch,
                n_new=given.n if given else 0,
                state=shown(state),
                data=describe_data(given, None) if given else "",
                width=text_width(),
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
