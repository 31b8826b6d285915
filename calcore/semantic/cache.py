"""Replies that were paid for, kept on disk: one SQLite file, a row a call, written as each reply arrives."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from calcore.semantic.records import brief

__all__ = ["CacheError", "Reply", "ReplyCache", "key_of"]

_APPLICATION = 0x63616C63
_VERSION = 1

_BUSY = 30.0
"""Seconds to wait for another process that writes."""

_FAULTS = {
    sqlite3.SQLITE_FULL: "there is no room left on its disk",
    sqlite3.SQLITE_READONLY: "it cannot be written: the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: no such folder, or it may not be written",
    sqlite3.SQLITE_PERM: "it cannot be opened: no such folder, or it may not be written",
    sqlite3.SQLITE_BUSY: "another process holds it",
    sqlite3.SQLITE_LOCKED: "another process holds it",
    sqlite3.SQLITE_IOERR: "its disk cannot be read or written",
    sqlite3.SQLITE_CORRUPT: "it is damaged; delete it or name another, and what it kept is asked again",
    sqlite3.SQLITE_NOTADB: "it is no cache of replies, or damaged; name another",
}
"""What SQLite's codes mean to whoever named the file."""


class CacheError(ValueError):
    """The file of a cache cannot be used; the message names it, the reason and the remedy."""


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
    read_only : bool
        Open a file that is there, and leave no trace: for a look at what it holds.

    Raises
    ------
    CacheError
        A ValueError. Here: the file is something else, of a later version, or cannot be opened. From every
        method: the disk is full, the file damaged, held by another process, or read-only.

    Examples
    --------
    >>> with ReplyCache(":memory:") as cache:
    ...     cache.put(b"key", Reply("four")).text, cache.put(b"key", Reply("five")).text
    ...     cache.get(b"key").text, cache.get(b"other"), len(cache)
    ('four', 'four')
    ('four', None, 1)
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.fsdecode(path)
        self._lock = Lock()
        with self._faults():
            self._file = self._looked_at() if read_only else self._connected(self.path)
        try:
            with self._faults():
                self._set_up()
                if not read_only:  # what cannot be kept should not be paid for
                    self._file.execute("BEGIN IMMEDIATE")
                    self._file.execute("ROLLBACK")
        except BaseException:
            self._file.close()
            raise

    def _connected(self, name: str, *, uri: bool = False) -> sqlite3.Connection:
        return sqlite3.connect(name, timeout=_BUSY, check_same_thread=False, isolation_level=None, uri=uri)

    def _looked_at(self) -> sqlite3.Connection:
        """For reading alone. A file without a log beside it is read as it is: a log would be made for it."""
        address = Path(self.path).absolute().as_uri()
        if os.path.exists(f"{self.path}-wal"):
            file = self._connected(f"{address}?mode=ro", uri=True)
            try:
                file.execute("SELECT count(*) FROM sqlite_master")
                return file
            except sqlite3.OperationalError:  # the log needs an index beside it, which cannot be made here
                file.close()
        return self._connected(f"{address}?mode=ro&immutable=1", uri=True)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Faults of SQLite in words that name the file."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            words = _FAULTS.get(code, str(error))
            raise CacheError(f"cache {brief(self.path, 200)}: {words}") from error

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
            raise CacheError(f"{brief(self.path, 200)} is no cache of replies, but {known}")
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
        """The reply of that key; None if there is none that can be read."""
        with self._lock, self._faults():
            return self._found(key)

    def put(self, key: bytes, reply: Reply) -> Reply:
        """Keep a reply, and return the one that is kept: the first of a key stays, if it can be read."""
        row = (key, json.dumps(asdict(reply)))
        with self._lock, self._faults():
            self._file.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", row)
            kept = self._found(key)
            if kept is None:
                self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", row)
        return reply if kept is None else kept

    def drop(self, keys: Sequence[bytes]) -> None:
        """Forget the replies of these keys, so that they are asked for again."""
        with self._lock, self._faults():
            for key in keys:
                self._file.execute("DELETE FROM replies WHERE key = ?", (key,))

    def _found(self, key: bytes) -> Reply | None:
        row = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else _reply_of(row[0])

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        with self._lock, self._faults():
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


def _reply_of(text: Any) -> Reply | None:
    """A reply as it was kept; None if it was cut short or is something else.

    >>> _reply_of('{"text": "four"}'), _reply_of('{"text": "fo'), _reply_of('{"words": "four"}')
    (Reply(text='four', finish='stop', prompt_tokens=None, completion_tokens=None), None, None)
    """
    try:
        reply = Reply(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    counts = (reply.prompt_tokens, reply.completion_tokens)
    whole = isinstance(reply.text, str) and isinstance(reply.finish, str)
    return reply if whole and all(n is None or isinstance(n, int) for n in counts) else None
