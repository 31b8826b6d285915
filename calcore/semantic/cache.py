"""Replies that were paid for, kept on disk: one SQLite file, a row a call, written as each reply arrives."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from threading import Lock
from types import TracebackType
from typing import Any, Self

from calcore.semantic.records import brief

__all__ = ["Reply", "ReplyCache", "key_of"]

_APPLICATION = 0x63616C63
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint replied to one call.

    Attributes
    ----------
    text : str
    finish : str
        Why it ends, in the endpoint's words: "stop"; "length" if it was cut off.
    prompt_tokens, completion_tokens : int or None
        As the endpoint counted them.
    """

    text: str
    finish: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def key_of(
    *,
    endpoint: str,
    model: str,
    decoding: Mapping[str, Any],
    messages: Sequence[Mapping[str, str]],
    subject: str,
    index: int,
) -> bytes:
    """Key of a call: a hash of all that its reply depends on, and of which of several samples it is.

    Parameters
    ----------
    endpoint, model : str
    decoding : mapping
        Temperature and whatever else is sent with the messages.
    messages : sequence of mapping
        They count by their hash.
    subject : str
        Id of the question: two questions of the same words have samples of their own.
    index : int
        Number of the sample. Without it all samples of a question would be one.
    """
    prompt = blake2b(_canonical(list(map(dict, messages))), digest_size=32).hexdigest()
    what = {
        "endpoint": endpoint,
        "model": model,
        "decoding": dict(decoding),
        "prompt": prompt,
        "subject": subject,
        "index": index,
    }
    return blake2b(_canonical(what), digest_size=32).digest()


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


class ReplyCache:
    """Replies by key, in a file that any number of threads and processes may share.

    A reply is in the file when `put` returns; a process that is killed loses none, and a machine that loses
    power at most the last ones. Keys are hashes: the file holds replies, but neither prompts nor secrets.

    Parameters
    ----------
    path : path-like
        Made if it is not there.

    Raises
    ------
    ValueError
        The file is something else, or of a later version.

    Examples
    --------
    >>> with ReplyCache(":memory:") as cache:
    ...     cache.put(b"key", Reply("four"))
    ...     cache.get(b"key").text, cache.get(b"other"), len(cache)
    ('four', None, 1)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fsdecode(path)
        self._lock = Lock()
        try:
            self._file = sqlite3.connect(
                self.path, timeout=60.0, check_same_thread=False, isolation_level=None
            )
        except sqlite3.Error as error:
            raise ValueError(f"cache {brief(self.path, 200)} cannot be opened: {error}") from error
        try:
            self._set_up()
        except BaseException as error:
            self._file.close()
            if isinstance(error, sqlite3.Error):
                raise ValueError(f"{brief(self.path, 200)} is no cache of replies: {error}") from error
            raise

    def _set_up(self) -> None:
        application, version, tables = (
            self._file.execute(query).fetchone()[0]
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if (application, version) == (_APPLICATION, _VERSION):
            return
        if tables or application or version:
            known = "of another version" if application == _APPLICATION else "a database of something else"
            raise ValueError(f"{brief(self.path, 200)} is no cache of replies, but {known}")
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=NORMAL")
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
            )
            self._file.execute(f"PRAGMA application_id={_APPLICATION}")
            self._file.execute(f"PRAGMA user_version={_VERSION}")

    def get(self, key: bytes) -> Reply | None:
        """The reply of that key, or None."""
        with self._lock:
            found = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if found is None else Reply(**json.loads(found[0]))

    def put(self, key: bytes, reply: Reply) -> None:
        """Keep a reply; the first of a key stays."""
        with self._lock:
            self._file.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, json.dumps(asdict(reply)))
            )

    def __contains__(self, key: bytes) -> bool:
        with self._lock:
            return self._file.execute("SELECT 1 FROM replies WHERE key = ?", (key,)).fetchone() is not None

    def __len__(self) -> int:
        with self._lock:
            return int(self._file.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
