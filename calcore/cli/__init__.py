"""The command `calcore`.

Exit codes: 0 done; 1 a gate failed, or a monitor has raised its alarm; 2 the input or the command line is
at fault; 3 calcore is; 130 interrupted. Each command is a module of `calcore.cli.commands`, which needs
typer, rich and pyarrow: the extra ``cli``.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

from calcore.cli.process import DONE, INTERNAL, USAGE, complain, open_missing_streams, run

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["entry", "main"]

_NEEDED = ("typer", "rich", "pyarrow")


def entry() -> NoReturn:
    """Entry point of the console script: run the command line, and end the process at once.

    The interpreter is not taken apart first. Arrow's threads may still be reading ahead in a CSV file through
    a function of ours; one that asks for the interpreter while that goes away aborts the process, and its
    exit code with it. What was registered to be done at the end is done.
    """
    code: object = INTERNAL
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else DONE if code is None else USAGE)


def main() -> NoReturn:
    """Run the command line and raise SystemExit with the exit code."""
    open_missing_streams()
    gc.set_threshold(1_000_000)  # imports make that many and drop none: looking costs a fifth of a short run
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
