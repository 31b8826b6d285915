"""Calls of a language model behind any OpenAI-compatible endpoint: retried, counted, kept."""

from __future__ import annotations

import os
import random
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from calcore.semantic.cache import Reply, ReplyCache, key_of
from calcore.semantic.records import brief

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
"""So many calls in a row that fail in spite of retries mean that the endpoint is down; so many different
prompts that fail before the first reply mean that none will do better."""

_UNUSABLE = 2
"""Further tries after a reply that is complete, and so was paid, but holds no text."""

_LONG_WAIT = 10.0
"""Seconds to wait for an endpoint that are worth a word."""

_PART = 8
"""Characters in a row of a key that are too many to show."""

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}

_FATAL = {
    401: "the key in OPENAI_API_KEY is refused",
    402: "there is no credit left; run the command again later",
    404: "there is no such model or address",
}
_ALSO_SAID = {
    403: "no access with the key in OPENAI_API_KEY, or not for this prompt: ",
    301: "the endpoint has moved to another address: ",
    308: "the endpoint has moved to another address: ",
}
_MALFORMED = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What the client raises where a reply is incomplete."""

_RETRIED = {408, 409, 425, 429}

_SAID_ALL = ("length", "content_filter", "tool_calls", "function_call")
"""Reasons to end of a reply without a text that another try would not change."""


_COUNTS = (
    "calls",
    "cached",
    "retries",
    "failed",
    "cut_off",
    "filtered",
    "without_text",
    "prompt_tokens",
    "completion_tokens",
)


class CallError(Exception):
    """One call failed, in spite of retries; others may succeed."""


class EndpointError(Exception):
    """No call can succeed: the key, the address or the model is wrong, or the endpoint is down."""


@dataclass(slots=True)
class _Fault:
    """Why a try failed, how many more it is worth, and how long the endpoint asks to wait.

    What the prompt is to blame for would fail for its other samples too.
    """

    reason: str
    retries: int | None = None
    is_fatal: bool = False
    is_of_prompt: bool = False
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
        jitter; where ``Retry-After`` asks for more, all threads wait for it. A reply that is complete but
        has no text was paid: it is asked for again at most twice, and not at all if it was cut off, filtered
        or a call of a tool.
    say : callable, optional
        Called with a sentence before calls wait for ten seconds or more because the endpoint asks for it.

    Attributes
    ----------
    endpoint : str
        Its address.
    counts : collections.Counter
        ``calls`` that were paid, ``cached`` ones (or shared with an equal call under way), ``retries``,
        ``failed``; replies that were ``cut_off``, or ``filtered`` (a part is left out), and paid ones
        ``without_text``; and ``prompt_tokens`` and ``completion_tokens`` of paid calls as the endpoint
        counted them. All are there from the beginning.

    Raises
    ------
    ValueError
        An address with user, password or query.

    Notes
    -----
    The key is read from the environment variable ``OPENAI_API_KEY`` alone. A local endpoint that is named by
    an address needs none. A key of at least eight characters, and any eight in a row of it, is masked in
    messages and in replies, before these are kept: in either case, and with blanks or invisible characters
    between. What an endpoint encodes (base64, say) is not recognised. Text of the endpoint in messages is
    cut and escaped as well, and other keys that begin with ``sk-`` are masked.

    Equal calls under way at once are paid once where there is a cache. Where another process was first, its
    reply is the one that counts: results are always what the cache holds.

    A prompt that the endpoint refuses (status 400, say) is not sent again for its other samples. If ten
    different prompts fail before any reply, whatever the reason, the run ends.
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
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        self.seed = seed
        self.max_retries = max_retries
        decoding = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        self.decoding = {name: value for name, value in decoding.items() if value is not None}
        self.counts: Counter[str] = Counter(dict.fromkeys(_COUNTS, 0))
        self._say = say
        self._lock = Lock()
        self._not_before = 0.0
        self._said_until = 0.0
        self._failures = 0
        self._has_worked = False
        self._failed: dict[bytes, str | None] = {}
        self._under_way: dict[bytes, Future[Reply]] = {}
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
        if self.cache is None:
            reply = self._retried(messages, subject, index)
        else:
            reply = self._kept(self.cache, messages, subject, index)
        self._count(cut_off=reply.finish == "length", filtered=reply.finish == "content_filter")
        return reply

    def forget(self, messages: Messages, *, subject: str, index: int = 0) -> None:
        """Drop a reply from the cache, if there is one: it could not be used, and is to be asked again."""
        if self.cache is not None:
            self.cache.drop([self.key(messages, subject=subject, index=index)])

    def _kept(self, cache: ReplyCache, messages: Messages, subject: str, index: int) -> Reply:
        """The reply that the cache holds, if need be after a call: an equal one that is under way will do."""
        key = self.key(messages, subject=subject, index=index)
        mine = Future[Reply]()
        with self._lock:
            first = self._under_way.setdefault(key, mine)
        if first is not mine:
            reply = first.result()
            self._count(cached=1)
            return reply
        try:
            known = cache.get(key)
            if known is None:
                reply = cache.put(key, self._retried(messages, subject, index))
            else:
                reply = known
                self._count(cached=1)
                with self._lock:
                    self._has_worked = True
            mine.set_result(reply)
            return reply
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[key]

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
        prompt = key_of(endpoint="", model="", decoding={}, messages=messages, subject="", index=0)
        refused = self._failed.get(prompt)
        if refused is not None:
            raise CallError(refused)
        tries = 0
        while True:
            self._wait()
            found = self._try(messages, subject, index)
            if isinstance(found, Reply):
                with self._lock:
                    self._failures, self._has_worked = 0, True
                return found
            if found.is_fatal:
                self._count(failed=1)
                raise EndpointError(f"{self.endpoint}: {found.reason}")
            if tries == (self.max_retries if found.retries is None else min(found.retries, self.max_retries)):
                raise self._given_up(found, prompt, tries)
            pause = min(_LONGEST_PAUSE, _PAUSE * 2.0**tries) * random.uniform(0.5, 1.0)
            tries += 1
            self._count(retries=1)
            self._hold(found)
            time.sleep(max(pause, found.wait))

    def _hold(self, fault: _Fault) -> None:
        """Let all threads wait as long as a busy endpoint asks, and say so if that is long."""
        until = time.monotonic() + fault.wait
        with self._lock:
            is_news = fault.wait >= _LONG_WAIT and until > self._said_until + 1.0
            if is_news:
                self._said_until = until
            if fault.slows_all:
                self._not_before = max(self._not_before, until)
        if is_news and self._say is not None:
            who = "all calls wait" if fault.slows_all else "one call waits"
            self._say(f"{self.endpoint} asks to wait {fault.wait:,.0f} s ({fault.reason}); {who}")

    def _wait(self) -> None:
        """Until the time that the endpoint asked for, if it did."""
        while (left := self._not_before - time.monotonic()) > 0.0:
            time.sleep(left)

    def _given_up(self, fault: _Fault, prompt: bytes, tries: int) -> CallError | EndpointError:
        """Count a call that failed; if the next ones would too, that is the end of all."""
        again = "" if not tries else f" after {tries} {'retry' if tries == 1 else 'retries'}"
        said = f"the call failed{again}: {fault.reason}"
        with self._lock:
            self.counts["failed"] += 1
            self._failures += fault.retries != 0
            self._failed[prompt] = said if fault.is_of_prompt else self._failed.get(prompt)
            down = self._failures >= _FAILURES
            futile = not self._has_worked and len(self._failed) >= _FAILURES
        if down:
            return EndpointError(
                f"{self.endpoint}: {_FAILURES} calls in a row failed; the last: {fault.reason}"
            )
        if futile:
            return EndpointError(
                f"{self.endpoint}: the first {_FAILURES} prompts all failed; the last: {fault.reason}"
            )
        return CallError(said)

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
            completion = create(model=self.model, messages=list(messages), **options)
        except openai.APIStatusError as error:
            return self._fault_of(error)
        except openai.APITimeoutError:
            return _Fault("no reply in time")
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ is not None else "no connection"
            return _Fault(f"no connection ({cause})")
        except (openai.OpenAIError, *_MALFORMED) as error:
            return _Fault(f"the reply is not a complete JSON object ({type(error).__name__})")
        return self._read(completion)

    def _read(self, completion: Any) -> Reply | _Fault:
        """The text of a completion, which was paid for whether there is one or not."""
        if isinstance(completion, str):  # what the package makes of a reply that does not call itself JSON
            kind = "a web page" if completion.lstrip()[:1] == "<" else "text"
            return _Fault(
                f"the reply is {kind} and no JSON; is the address right? Most end in /v1", retries=_UNUSABLE
            )
        usage = getattr(completion, "usage", None)
        prompt, made = (_tokens(usage, name) for name in ("prompt_tokens", "completion_tokens"))
        self._count(calls=1, prompt_tokens=prompt or 0, completion_tokens=made or 0)
        text, finish, fault = _text_of(completion)
        if fault:
            self._count(without_text=1, cut_off=finish == "length", filtered=finish == "content_filter")
            ended = f" (finish reason {brief(finish)})" if finish else ""
            return _Fault(f"{fault}{ended}", retries=0 if finish in _SAID_ALL else _UNUSABLE)
        whole = _without(self._key, text.encode("utf-8", "replace").decode())
        return Reply(whole, finish or "stop", prompt, made)

    def _fault_of(self, error: Any) -> _Fault:
        status = int(error.status_code)
        said = self._said(error.body)
        detail = f": {said}" if said else ""
        if status in _FATAL:
            # What is said of a refused key is mostly the key.
            detail = "" if status == 401 else detail
            return _Fault(f"{_FATAL[status]} (status {status}{detail})", is_fatal=True)
        reason = f"{_ALSO_SAID.get(status, '')}status {status}{detail}"
        wait = _retry_after(error.response.headers)
        if status == 429 and (wait > _LONGEST_WAIT or getattr(error, "code", None) == "insufficient_quota"):
            asks = f"; it asks to wait {wait:,.0f} s" if wait else ""
            return _Fault(f"{reason}{asks}; run the command again later", is_fatal=True)
        if status not in _RETRIED and status < 500:
            return _Fault(reason, retries=0, is_of_prompt=True)
        return _Fault(reason, wait=min(wait, _LONGEST_WAIT), slows_all=status in (429, 503))

    def _said(self, body: object) -> str:
        """The endpoint's own words, fit for a terminal, and without keys."""
        found = body.get("error", body) if isinstance(body, dict) else body
        found = found.get("message", "") if isinstance(found, dict) else found
        if not isinstance(found, str):
            return ""
        words = " ".join(_without(self._key, found).split())
        words = re.sub(r"\b[sS][kK]-[\w*.+/=-]{6,}|(?<=Bearer )[\w.+/=-]{16,}", "***", words)
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


def _text_of(completion: Any) -> tuple[str, str, str]:
    """Text and reason to end of the first choice, and what is wrong with it: an empty text is an answer only
    if the model ended there by itself."""
    choices = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        return "", "", "the reply holds no choices"
    finish = getattr(choices[0], "finish_reason", None)
    finish = finish if isinstance(finish, str) else ""
    message = getattr(choices[0], "message", None)
    text = getattr(message, "content", None)
    if text is None:
        text = getattr(message, "refusal", None)
    if not isinstance(text, str) or (not text.strip() and finish in _SAID_ALL):
        return "", finish, "the reply holds no text"
    return text, finish, ""


def _tokens(usage: Any, name: str) -> int | None:
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _without(key: str, text: str) -> str:
    """`text` with ``***`` in place of a key, and of long parts of it; short keys are no secrets.

    >>> _without("sk-proj-T0pSecretKey", "for sk-proj-T0pSecretKey, t0psecre\\ntKey, sk-proj-... or Secret")
    'for ***, ***, sk-proj-... or Secret'
    """
    if len(key) < _PART:
        return text
    text = text.replace(key, "***")
    places = [i for i, c in enumerate(text) if not (c.isspace() or unicodedata.category(c) == "Cf")]
    packed = "".join(text[i] for i in places).translate(_LOWER)
    own = re.sub(r"^(?:[a-z]{1,5}[-_]){1,2}", "", key).translate(_LOWER)  # "sk-proj-" is nobody's
    parts = {own[i : i + _PART] for i in range(len(own) - _PART + 1)}
    shown, end, i = "", 0, 0
    while i <= len(packed) - _PART:
        if packed[i : i + _PART] not in parts:
            i += 1
            continue
        first = i
        while packed[i : i + _PART] in parts:
            i += 1
        i += _PART - 1
        shown += text[end : places[first]] + "***"
        end = places[i - 1] + 1
    return shown + text[end:]


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
