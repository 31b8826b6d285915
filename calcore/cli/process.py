"""How a command ends, and how it speaks to a terminal or a pipe."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

if TYPE_CHECKING:
    from typing import TextIO

    from typer import Typer

__all__ = [
    "DONE",
    "FAILED",
    "INTERNAL",
    "INTERRUPTED",
    "USAGE",
    "complain",
    "exit_codes",
    "flush",
    "open_missing_streams",
    "run",
    "write",
]

DONE, FAILED, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130

P = ParamSpec("P")


def open_missing_streams() -> None:
    """Give the process a null device for every standard stream that it was started without (``>&-``).

    Otherwise the next file to be opened takes the stream's number, and what is printed goes into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the end


def run(app: Callable[[], Typer]) -> int:
    """Run a command line and return the exit code.

    Commands end the process by themselves, with a code of `exit_codes`. What is left are help, version and
    faults of the command line itself; Typer's own main function would end some of them with code 1, which
    is for failed gates.
    """

    def parse() -> int:
        import typer
        from typer.main import get_command

        command = get_command(app())
        try:
            with command.make_context("calcore", sys.argv[1:]) as context:
                command.invoke(context)
        except typer.Exit as done:
            return done.exit_code
        except OSError as error:
            _lost(error)
        except Exception as error:
            show = getattr(error, "show", None)  # a fault of usage: Typer has its own click, or another's
            if show is None:
                raise
            with suppress(OSError):
                show()
            return USAGE
        return DONE

    return _code_of(parse)


def exit_codes(command: Callable[P, int]) -> Callable[P, None]:
    """Make a function that returns an exit code, or raises, into one that ends the process with a code.

    An `InputError` (or a missing file, or full disk) is the user's: its message and code 2. Any other
    exception is ours: code 3 and one line, with ``CALCORE_DEBUG=1`` the traceback. A reader that closes the
    pipe early (``| head``) does not change the code.
    """

    @wraps(command)
    def ending(*args: P.args, **kwargs: P.kwargs) -> None:
        sys.exit(_code_of(lambda: command(*args, **kwargs)))

    return ending


def _code_of(work: Callable[[], int]) -> int:
    try:
        code = work()
        flush()
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except MemoryError:
        complain("not enough memory")
        return INTERNAL
    except OSError as error:
        complain(_os_message(error))
        return USAGE
    except Exception as error:
        from calcore.files.paths import InputError

        if isinstance(error, InputError):
            complain(str(error))
            return USAGE
        if os.environ.get("CALCORE_DEBUG"):
            traceback.print_exc()
        first = (str(error).splitlines() or [""])[0]
        complain(
            f"internal error: {type(error).__name__}: {first}\n"
            "This is a fault of calcore. Set CALCORE_DEBUG=1 to see the traceback."
        )
        return INTERNAL
    return code


def complain(message: str) -> None:
    """Write a message to standard error, if anybody listens."""
    try:
        sys.stderr.write(f"calcore: {message}\n")
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def write(text: str) -> None:
    """Write to standard output; a reader that has gone away is not an error.

    Characters that the terminal's encoding lacks are escaped.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    except OSError as error:
        _lost(error)


def flush() -> None:
    """Write out what standard output still holds: raises if that cannot be done, as a full disk."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _lost(error)


def _lost(error: OSError) -> None:
    """Standard output cannot be written: forgive a closed pipe (EINVAL on Windows), name any other reason."""
    _silence(sys.stdout)
    if error.errno not in (errno.EPIPE, errno.EINVAL):
        raise OSError(error.errno, error.strerror, "standard output") from error


def _silence(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere: the interpreter flushes it at the end and would fail."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason
