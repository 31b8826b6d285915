"""A table in one file, written completely or not at all.

One line of JSON (format, version, whatever describes the table, SHA-256 of all of it), then the rows of an
int64 matrix, little-endian, compressed by zlib. No pickle; equal tables give equal files.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FORMAT = "calcore cell table"
_VERSION = 1


def write(path: str | os.PathLike[str], about: dict[str, Any], matrix: NDArray[np.int64]) -> None:
    """Write `about` and `matrix`; a file that is there is replaced only when all is written."""
    body = zlib.compress(matrix.astype("<i8").tobytes(), level=1)
    header = {"format": _FORMAT, "version": _VERSION, **about}
    line = json.dumps({**header, "sha256": _checksum(header, body)}).encode()
    target = Path(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(line + b"\n" + body)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str], n_columns: int) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Read what `write` wrote.

    Raises
    ------
    ValueError
        If the file is no table, of an unknown version, or damaged.
    """
    name = os.fspath(path)
    line, _, body = Path(path).read_bytes().partition(b"\n")
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"{name} is not a {_FORMAT} file")
    if header.get("version") != _VERSION:
        raise ValueError(
            f"{name} has version {header.get('version')!r} of the {_FORMAT} format; known: {_VERSION}"
        )
    if header.pop("sha256", None) != _checksum(header, body):
        raise ValueError(f"{name} is damaged: the checksum does not match")
    return header, np.frombuffer(zlib.decompress(body), "<i8").astype(np.int64).reshape(-1, n_columns)


def _checksum(header: dict[str, Any], body: bytes) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + b"\n" + body).hexdigest()
