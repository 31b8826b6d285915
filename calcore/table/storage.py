"""Files written completely or not at all, and a table in one of them.

A table is one line of JSON (format, version, whatever describes it, SHA-256 of all of it), then the rows of
an int64 matrix, little-endian, compressed by zlib. No pickle; equal tables give equal files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FORMAT = "calcore cell table"
_VERSION = 1

_MARK = b'{"format": "calcore cell table"'
"""How every table begins: what begins otherwise is not read any further."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Name of a file beside `path` to write: it takes its place if all goes well, and is removed if not.

    The place is that of the file a symbolic link leads to, and its permission bits are kept.

    Raises
    ------
    ValueError
        If `path` names no file, or a directory, device, pipe or socket.
    OSError
        If the file cannot be written; with the name `path`, never with that of the file beside it.

    Examples
    --------
    >>> with replacing("") as part:
    ...     pass
    Traceback (most recent call last):
        ...
    ValueError: path must name a file; got ''
    """
    name = os.fsdecode(path)
    mode = _mode_of(name)
    target = os.path.realpath(name)
    part = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.part")
    try:
        yield part
        if mode is not None:
            os.chmod(part, mode)
        os.replace(part, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.errno and error.filename in (None, part):
            raise OSError(error.errno, os.strerror(error.errno), name) from error
        raise


def _mode_of(name: str) -> int | None:
    """Permission bits of a file that may be replaced; None if there is none."""
    if not name or "\0" in name:
        raise ValueError(f"path must name a file; got {name!r}")
    try:
        status = os.stat(name)
    except FileNotFoundError:
        if not os.path.basename(name):
            raise ValueError(f"path must name a file; got {name!r}") from None
        return None
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "a device")
        raise ValueError(f"path must name a regular file; {name} is {kind}")
    if not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return stat.S_IMODE(status.st_mode)


def write(path: str | os.PathLike[str], about: dict[str, Any], matrix: NDArray[np.int64]) -> None:
    """Write `about` and `matrix`; a file that is there is replaced only when all is written."""
    body = zlib.compress(matrix.astype("<i8").tobytes(), level=1)
    header = {"format": _FORMAT, "version": _VERSION, **about}
    line = json.dumps({**header, "sha256": _checksum(header, body)}).encode()
    with replacing(path) as part, open(part, "xb") as file:
        file.write(line + b"\n" + body)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    """Read the description and the compressed matrix that `write` wrote; see `unpack`.

    Raises
    ------
    ValueError
        If the file is no table, of an unknown version, or damaged.
    """
    name = os.fsdecode(path)
    with Path(name).open("rb") as file:
        start = file.read(len(_MARK))
        line, _, body = (start + file.read()).partition(b"\n") if start == _MARK else (b"", b"", b"")
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if (
        not isinstance(header, dict)
        or header.pop("format", None) != _FORMAT
        or any(isinstance(value, dict | list) for value in header.values())
    ):
        raise ValueError(f"{name} is not a {_FORMAT} file")
    version = header.pop("version", None)
    if version != _VERSION or isinstance(version, bool):
        raise ValueError(f"{name} has version {version!r} of the {_FORMAT} format; known: {_VERSION}")
    checksum = header.pop("sha256", None)
    if checksum != _checksum({"format": _FORMAT, "version": _VERSION, **header}, body):
        raise ValueError(f"{name} is damaged: the checksum does not match")
    return header, body


def unpack(body: bytes, n_columns: int, max_rows: int) -> NDArray[np.int64]:
    """The matrix in `body`, of at most `max_rows` rows.

    Raises
    ------
    ValueError
        If there is no such matrix in it.
    """
    reader, row = zlib.decompressobj(), 8 * n_columns
    try:
        content = reader.decompress(body, max_rows * row + 1)
    except zlib.error as error:
        raise ValueError("the rows cannot be decompressed") from error
    if len(content) > max_rows * row:
        raise ValueError(f"there are more than {max_rows} rows")
    if not reader.eof or reader.unused_data or len(content) % row:
        raise ValueError("the rows are incomplete, or something follows them")
    return np.frombuffer(content, "<i8").astype(np.int64).reshape(-1, n_columns)


def _checksum(header: dict[str, Any], body: bytes) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + b"\n" + body).hexdigest()
