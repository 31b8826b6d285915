"""Calls of a language model behind any OpenAI-compatible endpoint: retried, counted, kept."""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from calcore.semantic.cache import Reply, ReplyCache, key_of

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["CallError", "ChatClient", "EndpointError", "Messages", "tokens_of"]

Messages = Sequence[Mapping[str, str]]

_OPENAI = "https://api.openai.com/v1"

_PAUSE = 0.5
"""Seconds before the first retry; they double with every further one."""

_LONGEST_PAUSE = 60.0
_LONGEST_WAIT = 600.0
"""Seconds that an endpoint may ask to wait; what asks for more has run out of a quota."""

_FAILURES = 10
"""So many calls in a row that fail in spite of retries mean that the endpoint is down."""

_FATAL = {
    401: "the key in OPENAI_API_KEY is refused",
    403: "the key in OPENAI_API_KEY gives no access",
    404: "there is no such model or address",
}
_MALFORMED = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the client, and reading what it returns, raise where a reply is incomplete."""

_RETRIED = {408, 409, 425, 429}


class CallError(Exception):
    """One call failed, in spite of retries; others may succeed."""


class EndpointError(Exception):
    """No call can succeed: the key, the address or the model is wrong, or the endpoint is down."""


@dataclass(slots=True)
class _Fault:
    """Why a try failed, whether it is worth another, and how long the endpoint asks to wait."""

    reason: str
    is_retried: bool = True
    is_fatal: bool = False
    wait: float = 0.0
    slows_all: bool = False


class ChatClient:
    """A model at an OpenAI-compatible endpoint, through the official ``openai`` package; any thread may call.

    Parameters
    ----------
    model : str
        Its name at the endpoint.
    base_url : str, optional
        Address of the endpoint, such as ``http://localhost:8000/v1``. Default: that of the environment
        variable ``OPENAI_BASE_URL``, or OpenAI's.
    cache : ReplyCache, optional
        Replies are taken from it, and go into it as they arrive.
    temperature, top_p : float, optional
        Left to the endpoint if not given.
    max_tokens : int, optional
        Longest reply.
    seed : int, optional
        Each call sends a number made of this seed, the question's id and the sample's number; endpoints may
        ignore it.
    timeout : float
        Seconds without a sign of the endpoint after which a try has failed.
    max_retries : int
        Further tries of a call that failed by chance: no connection, time-out, status 408, 409, 425, 429 or
        5xx, or a reply that is no complete JSON. Pauses double from half a second to a minute, with random
        jitter; where ``Retry-After`` asks for more, all threads wait for it.

    Attributes
    ----------
    endpoint : str
        Its address.
    counts : collections.Counter
        ``calls`` that were paid, ``cached`` ones, ``retries``, ``failed``, ``cut_off`` replies, and
        ``prompt_tokens`` and ``completion_tokens`` of paid calls as the endpoint counted them.

    Raises
    ------
    ValueError
        An address with user, password or query.

    Notes
    -----
    The key is read from the environment variable ``OPENAI_API_KEY`` alone. It is in no message and no file;
    text of the endpoint in messages is cut, escaped, and without what looks like a key. A local endpoint that
    is named by an address needs none.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        cache: ReplyCache | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        timeout: float = 60.0,
        max_retries: int = 6,
    ) -> None:
        self.model = model
        self.cache = cache
        self.seed = seed
        self.max_retries = max_retries
        decoding = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        self.decoding = {name: value for name, value in decoding.items() if value is not None}
        self.counts: Counter[str] = Counter()
        self._lock = Lock()
        self._not_before = 0.0
        self._failures = 0
        self._timeout = timeout
        self._openai: OpenAI | None = None
        address = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._needs_key = address is None
        self._key = ""
        self.endpoint = _checked(address or _OPENAI)

    def complete(self, messages: Messages, *, subject: str, index: int = 0) -> Reply:
        """The reply to `messages`, from the cache if it is there.

        Parameters
        ----------
        messages : sequence of mapping
            With ``role`` and ``content``.
        subject : str
            Id of what the call is about; see `key_of`.
        index : int
            Number of the sample: equal messages with another number are another call.

        Raises
        ------
        CallError
            The call failed in spite of retries.
        EndpointError
            No call can succeed.
        """
        key = self.key(messages, subject=subject, index=index)
        known = None if self.cache is None else self.cache.get(key)
        if known is not None:
            self._count(cached=1, cut_off=known.finish == "length")
            return known
        reply = self._retried(messages, subject, index)
        if self.cache is not None:
            self.cache.put(key, reply)
        self._count(
            calls=1,
            cut_off=reply.finish == "length",
            prompt_tokens=reply.prompt_tokens or 0,
            completion_tokens=reply.completion_tokens or 0,
        )
        return reply

    def key(self, messages: Messages, *, subject: str, index: int) -> bytes:
        """Key of a call in the cache."""
        return key_of(
            endpoint=self.endpoint,
            model=self.model,
            decoding=self.decoding | ({} if self.seed is None else {"seed": self.seed}),
            messages=messages,
            subject=subject,
            index=index,
        )

    def open(self) -> Self:
        """Read the key and make ready for calls, which the first call does otherwise.

        Raises
        ------
        ValueError
            No key, or the package ``openai`` is missing.
        """
        with self._lock:
            if self._openai is None:
                self._key = _key(self._needs_key)
                self._openai = _opened(self.endpoint, self._key, self._timeout)
        return self

    def close(self) -> None:
        """Close connections; the cache stays open."""
        with self._lock:
            if self._openai is not None:
                self._openai.close()
                self._openai = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _retried(self, messages: Messages, subject: str, index: int) -> Reply:
        tries = 0
        while True:
            self._wait()
            found = self._try(messages, subject, index)
            if isinstance(found, Reply):
                with self._lock:
                    self._failures = 0
                return found
            if found.is_fatal:
                raise EndpointError(f"{self.endpoint}: {found.reason}")
            if not found.is_retried or tries == self.max_retries:
                self._give_up(found)
                again = f" after {tries} retries" if tries else ""
                raise CallError(f"the call failed{again}: {found.reason}")
            pause = min(_LONGEST_PAUSE, _PAUSE * 2.0**tries) * random.uniform(0.5, 1.0)
            tries += 1
            self._count(retries=1)
            if found.slows_all:
                with self._lock:
                    self._not_before = max(self._not_before, time.monotonic() + found.wait)
            time.sleep(max(pause, found.wait))

    def _wait(self) -> None:
        """Until the time that the endpoint asked for, if it did."""
        while (left := self._not_before - time.monotonic()) > 0.0:
            time.sleep(left)

    def _give_up(self, fault: _Fault) -> None:
        """Count a call that failed; of many in a row the next would fail too, after as long a time."""
        with self._lock:
            self.counts["failed"] += 1
            self._failures += fault.is_retried
            down = self._failures >= _FAILURES
        if down:
            raise EndpointError(
                f"{self.endpoint}: {_FAILURES} calls in a row failed; the last: {fault.reason}"
            )

    def _try(self, messages: Messages, subject: str, index: int) -> Reply | _Fault:
        import openai

        opened = self._openai or self.open()._openai
        assert opened is not None
        options: dict[str, Any] = dict(self.decoding)
        if self.seed is not None:
            options["seed"] = (
                int.from_bytes(
                    key_of(
                        endpoint="",
                        model="",
                        decoding={"seed": self.seed},
                        messages=(),
                        subject=subject,
                        index=index,
                    )[:4]
                )
                >> 1
            )
        create: Callable[..., Any] = opened.chat.completions.create
        try:
            return _reply_of(create(model=self.model, messages=list(messages), **options))
        except openai.APIStatusError as error:
            return self._fault_of(error)
        except openai.APITimeoutError:
            return _Fault("no reply in time")
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ is not None else "no connection"
            return _Fault(f"no connection ({cause})")
        except (openai.OpenAIError, *_MALFORMED) as error:
            return _Fault(f"the reply is not a complete JSON object of a chat ({type(error).__name__})")

    def _fault_of(self, error: Any) -> _Fault:
        status = int(error.status_code)
        said = self._said(error.body)
        if status in _FATAL:
            return _Fault(f"{_FATAL[status]} (status {status})", is_fatal=True)
        reason = f"status {status}" + (f": {said}" if said else "")
        wait = _retry_after(error.response.headers)
        if status == 429 and (wait > _LONGEST_WAIT or getattr(error, "code", None) == "insufficient_quota"):
            asks = f"; it asks to wait {wait:,.0f} s" if wait else ""
            return _Fault(f"{reason}{asks}; run the command again later", is_fatal=True)
        retried = status in _RETRIED or status >= 500
        return _Fault(
            reason, is_retried=retried, wait=min(wait, _LONGEST_WAIT), slows_all=status in (429, 503)
        )

    def _said(self, body: object) -> str:
        """The endpoint's own words, fit for a terminal, and without what looks like a key."""
        found = body.get("error", body) if isinstance(body, dict) else body
        found = found.get("message", "") if isinstance(found, dict) else found
        if not isinstance(found, str):
            return ""
        words = " ".join(found.split()).replace(self._key, "***")
        words = re.sub(r"(?i)\b(sk|key|bearer|token)[-_ :=]+[\w*.+/=-]{6,}", "***", words)
        words = "".join(c if c.isprintable() else "?" for c in words)
        return words if len(words) <= 160 else words[:157] + "..."

    def _count(self, **more: int) -> None:
        with self._lock:
            self.counts.update(more)


def tokens_of(messages: Messages) -> int:
    """About how many tokens messages have: one for four bytes of UTF-8, and four a message.

    >>> tokens_of([{"role": "user", "content": "What is the capital of France?"}])
    12
    """
    return sum(4 + -(-len(message["content"].encode()) // 4) for message in messages)


def _key(needed: bool) -> str:
    key = (os.environ.get("OPENAI_API_KEY") or "").strip()
    if not key:
        if needed:
            raise ValueError(
                "OPENAI_API_KEY is not set; put the endpoint's key into this environment variable"
            )
        return "none"
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValueError("OPENAI_API_KEY holds characters that no key has; set it again")
    return key


def _checked(address: str) -> str:
    """The address of an endpoint; ValueError, without showing it, if it is none or could hold a secret."""
    wrong = ValueError("base_url must be an address like http://localhost:8000/v1")
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises where it is no number
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not address.isprintable():
        raise wrong
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(
            "base_url must hold no user, password or query: the key belongs into the environment variable "
            "OPENAI_API_KEY"
        )
    return address.rstrip("/")


def _opened(address: str, key: str, timeout: float) -> OpenAI:
    try:
        from openai import OpenAI
    except ImportError as error:
        raise ValueError(
            "calls need the package openai: pip install 'calcore-calibration[semantic]'"
        ) from error
    return OpenAI(api_key=key, base_url=address, timeout=timeout, max_retries=0)


def _reply_of(completion: Any) -> Reply:
    """The text of the first choice; AttributeError and the like where the endpoint left something out."""
    if isinstance(completion, str):
        raise TypeError("text in place of an object")
    choice = completion.choices[0]
    text = choice.message.content
    if text is None:
        text = getattr(choice.message, "refusal", None)
    if not isinstance(text, str):
        raise ValueError("no text")
    usage = getattr(completion, "usage", None)
    tokens = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    prompt, made = (each if isinstance(each, int) else None for each in tokens)
    whole = text.encode("utf-8", "replace").decode()
    return Reply(whole, str(choice.finish_reason or "stop"), prompt, made)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that ``Retry-After`` asks to wait, as a number or a date; 0 if it does not or makes no sense.

    >>> _retry_after({"retry-after": "2.5"}), _retry_after({"retry-after": "soon"}), _retry_after({})
    (2.5, 0.0, 0.0)
    """
    text = headers.get("retry-after") or ""
    try:
        seconds = float(text)
    except ValueError:
        try:
            then = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return 0.0
        seconds = (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return seconds if 0.0 < seconds < 1e9 else 0.0
