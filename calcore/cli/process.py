"""How a command ends, and how it speaks to a terminal or a pipe."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import ParamSpec

__all__ = [
    "DONE",
    "FAILED",
    "INTERNAL",
    "INTERRUPTED",
    "USAGE",
    "complain",
    "exit_codes",
    "exit_on_interrupt",
    "write",
]

DONE, FAILED, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130

P = ParamSpec("P")


def exit_codes(command: Callable[P, int]) -> Callable[P, None]:
    """Make a function that returns an exit code, or raises, into one that ends with that code.

    An `InputError` (or a missing file, or full disk) is the user's: its message and code 2. Any other
    exception is ours: code 3 and one line, with ``CALCORE_DEBUG=1`` the traceback. A reader that closes the
    pipe early (``| head``) does not change the code.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from calcore.files.paths import InputError

        with exit_on_interrupt():
            try:
                code = command(*args, **kwargs)
                _flush()
            except (InputError, OSError) as error:
                complain(str(error) if isinstance(error, InputError) else _os_message(error))
                code = USAGE
            except MemoryError:
                complain("not enough memory")
                code = INTERNAL
            except Exception as error:
                if os.environ.get("CALCORE_DEBUG"):
                    traceback.print_exc()
                first = (str(error).splitlines() or [""])[0]
                complain(
                    f"internal error: {type(error).__name__}: {first}\n"
                    "This is a fault of calcore. Set CALCORE_DEBUG=1 to see the traceback."
                )
                code = INTERNAL
        sys.exit(code)

    return run


def complain(message: str) -> None:
    """Write a message to standard error, if anybody listens."""
    with suppress(OSError):
        sys.stderr.write(f"calcore: {message}\n")
        sys.stderr.flush()


def write(text: str) -> None:
    """Write to standard output; a reader that has gone away is not an error.

    Characters that the terminal's encoding lacks are escaped.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    except OSError as error:
        _forgive(error)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        _forgive(error)


def _forgive(error: OSError) -> None:
    """Swallow a closed pipe (EINVAL on Windows), and keep the interpreter from flushing into it at exit."""
    if error.errno not in (errno.EPIPE, errno.EINVAL):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(INTERRUPTED)
