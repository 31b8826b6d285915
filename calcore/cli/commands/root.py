"""`calcore` itself, which all commands belong to: its help, and ``--version``."""

from __future__ import annotations

from typing import Annotated

import typer

from calcore import __version__
from calcore.cli.process import write

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
