"""The command `calcore`.

Exit codes: 0 done; 1 a gate failed, or a monitor has raised its alarm; 2 the input or the command line is
at fault; 3 calcore is; 130 interrupted. Each command is a module of `calcore.cli.commands`, which needs
typer, rich and pyarrow: the extra ``cli``.
"""

from __future__ import annotations

import atexit
import gc
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

from calcore.cli.process import USAGE, complain, open_missing_streams, run

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["main"]

_NEEDED = ("typer", "rich", "pyarrow")


def main() -> NoReturn:
    """Entry point of the console script: run the command line and leave the process."""
    open_missing_streams()
    gc.set_threshold(1_000_000)  # imports make that many and drop none: looking costs a fifth of a short run
    atexit.register(gc.freeze)  # nor is there anything to look for when all will be gone
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        complain(
            f"the command needs {', '.join(missing)}, which {verb} not installed; type\n"
            "  python -m pip install 'calcore-calibration[cli]'"
        )
        sys.exit(USAGE)
    sys.exit(run(_app))


def _app() -> Typer:
    from calcore.cli.commands import app

    return app
