"""`calcore` itself, which all commands belong to: its help, and ``--version``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from calcore import __version__
from calcore.cli.process import USAGE, complain, write

__all__ = ["Commands", "app"]

F = TypeVar("F", bound=Callable[..., Any])


class _Command(TyperCommand):
    """A command that refuses an option typed twice that takes one value: one would be lost in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, typed = self.make_parser(ctx).parse_args(args=list(args))
        for place, given in enumerate(typed):
            several = getattr(given, "multiple", True) or getattr(given, "is_flag", False)
            if given in typed[:place] and not several:
                complain(f"{given.opts[0]} is given twice; it takes one value")
                raise typer.Exit(USAGE)
        return super().parse_args(ctx, args)


class Commands(typer.Typer):
    """Commands of which every one is a `_Command`."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        options.setdefault("cls", _Command)
        return super().command(name, **options)


app = Commands(
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
