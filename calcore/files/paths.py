"""Names of files: which ones a pattern stands for, how to show them, how to replace one as a whole."""

from __future__ import annotations

import csv
import glob
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from calcore.table import storage

__all__ = [
    "InputError",
    "expand",
    "open_native",
    "reading",
    "reason",
    "replacing",
    "shown",
    "spare",
    "suffix_of",
]


class InputError(ValueError):
    """A fault in what the user gave; the message names the file, the column and the data row."""


def shown(text: str) -> str:
    """`text` as it may go to a terminal: quoted and escaped if it holds control characters or outer blanks.

    >>> shown("p_delay"), shown("bad\\x1b[31m"), shown(" p")
    ('p_delay', "'bad\\\\x1b[31m'", "' p'")
    """
    return text if text and text.isprintable() and text == text.strip() else repr(text)


def expand(patterns: Sequence[str]) -> list[str]:
    """Paths of the files that names, globs and directories stand for.

    A name of an existing file is itself; a directory is all files below it; anything else is a glob, ``**``
    included. Directories and globs skip what is hidden, and names with ``_`` at their start or at that of a
    folder. Names are sorted within each pattern, patterns keep their order.

    Raises
    ------
    InputError
        Nothing found, the same file found twice (its rows would count twice), or something that is no
        file: a pipe has no end that could be read first.
    """
    paths: list[str] = []
    for pattern in patterns:
        if os.path.isdir(pattern):
            found = _walk(pattern)
            if not found:
                raise InputError(f"{shown(pattern)}: no files in this directory")
        elif os.path.lexists(pattern):
            found = [pattern]
        else:
            found = []
            for hit in sorted(glob.glob(pattern, recursive=True)):
                if not _is_private(hit) or _is_private(pattern):
                    found += _walk(hit) if os.path.isdir(hit) else [hit]
            if not found:
                fault = "no file matches" if glob.has_magic(pattern) else "no such file"
                raise InputError(f"{shown(pattern)}: {fault}")
        paths += found
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            raise InputError(f"{shown(path)}: {reason(error)}") from error
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{shown(path)}: is not a regular file; write what comes from a pipe to a file")
        key = status.st_dev, status.st_ino
        if key in seen:
            first = seen[key]
            other = "" if first == path else f" (also as {shown(first)})"
            raise InputError(f"{shown(path)}: given twice{other}; its rows would count twice")
        seen[key] = path
    return paths


def _is_private(path: str) -> bool:
    """Whether a part of a path starts with an underscore, as Spark and Hive name what is not data."""
    return any(part.startswith("_") for part in path.split(os.sep))


def _walk(directory: str) -> list[str]:
    """Files below a directory, sorted; hidden and underscore names skipped at every level."""
    found: list[str] = []

    def refuse(error: OSError) -> None:
        raise InputError(f"{shown(str(error.filename))}: {reason(error)}") from error

    for folder, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
    return sorted(found)


def reason(error: BaseException) -> str:
    """One line of an error's message, without the errno and the path that the operating system repeats."""
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return os.strerror(error.errno).lower()
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


def open_native(path: str, mode: str = "rb") -> pa.OSFile:
    """A file of pyarrow by the bytes of its name, of which it would make UTF-8: not every name is that."""
    return pa.OSFile(os.fsencode(path), mode)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn whatever a reader raises about a bad file into an `InputError` that names the file."""
    try:
        yield
    except InputError:
        raise
    except (
        pa.ArrowException,
        OSError,
        EOFError,
        ValueError,
        csv.Error,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(f"{shown(path)}: {reason(error)}") from error


def suffix_of(path: str, known: Iterable[str]) -> str | None:
    """The longest known suffix of a file name."""
    name = os.path.basename(path).lower()
    return next((suffix for suffix in sorted(known, key=len, reverse=True) if name.endswith(suffix)), None)


def spare(output: str, *, inputs: Iterable[str] = (), force: bool) -> None:
    """Refuse an output that is no file, or also an input, or there already unless `force` is given."""
    _refuse_no_file(output)
    if not os.path.lexists(output):
        return
    if any(os.path.realpath(path) == os.path.realpath(output) for path in inputs):
        raise InputError(f"{shown(output)}: is also an input; name another output")
    if not force:
        raise InputError(f"{shown(output)}: there is such a file already; --force writes over it")


def _refuse_no_file(output: str) -> None:
    """Refuse to write where no file can be, or where something else is: it would be gone."""
    if os.path.exists(output) and not os.path.isfile(output):
        kind = "a directory" if os.path.isdir(output) else "not a regular file"
        raise InputError(f"{shown(output)}: is {kind}; name a file to write")
    if not os.path.basename(output):
        raise InputError(f"the output must be the name of a file; got {output!r}")
    if not os.path.isdir(os.path.dirname(os.path.realpath(output))):
        raise InputError(f"{shown(output)}: no such directory")


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """`calcore.table.storage.replacing`, whose faults are the user's here."""
    _refuse_no_file(path)
    try:
        with storage.replacing(path) as part:
            yield part
    except OSError as error:
        raise InputError(f"{shown(path)}: {reason(error)}") from error
