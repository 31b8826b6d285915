"""Calls of an endpoint that misbehaves, by the real client: retries, waiting, the cache, and no secrets."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from endpoint import Answer, Endpoint, Script, error, serving
from hypothesis import given
from hypothesis import strategies as st

from calcore.semantic import (
    CallError,
    ChatClient,
    EndpointError,
    Misfit,
    PlannedCalls,
    Question,
    Reply,
    ReplyCache,
    client,
    plan_samples,
    sample_answers,
)
from calcore.semantic.cache import CacheError, key_of
from calcore.semantic.pool import in_order

SECRET = "sk-proj-T0pSecretKeyOfNobody"
ASK = [{"role": "user", "content": "2 + 2?"}]


def ask(i: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{i} + 2?"}]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, no other endpoint, no proxies, and pauses of a thousandth."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_PAUSE", 0.001)


def called(endpoint: Endpoint, **options: Any) -> ChatClient:
    return ChatClient("m", base_url=endpoint.url, **options)


def in_turn(*answers: Answer | str) -> Script:
    """These replies, then the last of them for ever."""
    return lambda request, number: answers[min(number, len(answers) - 1)]


class TestReplies:
    def test_text_and_counts(self) -> None:
        with serving(in_turn("four")) as endpoint, called(endpoint, temperature=0.5, max_tokens=9) as chat:
            assert chat.complete(ASK, subject="a") == Reply("four", "stop", 7, 3)
            assert chat.counts == Counter(calls=1, prompt_tokens=7, completion_tokens=3)
            assert set(chat.counts) == {
                *("calls", "cached", "retries", "failed", "cut_off", "filtered", "without_text"),
                *("prompt_tokens", "completion_tokens"),
            }
        sent = {"model": "m", "messages": ASK, "temperature": 0.5, "max_tokens": 9}
        assert endpoint.requests == [sent]
        assert endpoint.keys == {f"Bearer {SECRET}"}

    def test_nothing_is_sent_that_was_not_asked_for(self) -> None:
        with serving(in_turn("four")) as endpoint, called(endpoint) as chat:
            chat.complete(ASK, subject="a")
        assert endpoint.requests == [{"model": "m", "messages": ASK}]

    def test_empty_text_is_an_answer_and_a_cut_one_is_counted(self) -> None:
        with serving(in_turn("", Answer("4", finish="length"))) as endpoint, called(endpoint) as chat:
            assert chat.complete(ASK, subject="a").text == ""
            assert chat.complete(ASK, subject="a").finish == "length"
            assert chat.counts["cut_off"] == 1

    def test_half_a_surrogate_pair_becomes_a_question_mark(self) -> None:
        with serving(in_turn("\ud800 4")) as endpoint, called(endpoint) as chat:
            assert chat.complete(ASK, subject="a").text == "? 4"

    def test_seeds_are_of_their_own_and_the_same_again(self) -> None:
        with serving(in_turn("4")) as endpoint:
            for _ in range(2):
                with called(endpoint, seed=3) as chat:
                    for subject, index in (("a", 0), ("a", 1), ("b", 0)):
                        chat.complete(ASK, subject=subject, index=index)
            with called(endpoint, seed=4) as chat:
                chat.complete(ASK, subject="a")
        seeds = [request["seed"] for request in endpoint.requests]
        assert seeds[:3] == seeds[3:6]
        assert len(set(seeds)) == 4
        assert all(0 <= seed < 2**31 for seed in seeds)


BAD = {
    "truncated JSON": Answer("four", cut=9),
    "empty body": Answer(body=b""),
    "no JSON": Answer(body=b"<html>busy</html>", headers={"content-type": "text/html"}),
    "status 500": error(500, "internal"),
    "status 502 of a proxy": Answer(status=502, body=b"<html>", headers={"content-type": "text/html"}),
    "status 408": error(408),
    "status 429": error(429, "slow down"),
}
WITHOUT_TEXT = {
    "no choices": Answer(body=b"{}"),
    "empty choices": Answer(body=b'{"choices": []}'),
    "no message": Answer(body=b'{"choices": [{"index": 0}]}'),
    "no text": Answer(body=b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": null}}]}'),
    "text of a wrong type": Answer(body=b'{"choices": [{"index": 0, "message": {"content": 4}}]}'),
    "a list": Answer(body=b"[]"),
}
"""Complete replies, which were paid."""


class TestRetries:
    @pytest.mark.parametrize("bad", (BAD | WITHOUT_TEXT).values(), ids=BAD | WITHOUT_TEXT)
    def test_what_fails_by_chance_is_tried_again(self, bad: Answer) -> None:
        with serving(in_turn(bad, bad, "four")) as endpoint, called(endpoint) as chat:
            assert chat.complete(ASK, subject="a").text == "four"
            assert chat.counts["retries"] == 2
            assert chat.counts["calls"] == 1 + 2 * (bad in WITHOUT_TEXT.values())
        assert len(endpoint.requests) == 3

    @pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
    def test_but_not_for_ever(self, bad: Answer, tmp_path: Path) -> None:
        with (
            serving(in_turn(bad)) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, max_retries=2, cache=cache) as chat,
        ):
            with pytest.raises(CallError, match="after 2 retries"):
                chat.complete(ASK, subject="a")
            assert len(cache) == 0
            assert (chat.counts["calls"], chat.counts["failed"]) == (0, 1)
        assert len(endpoint.requests) == 3

    @pytest.mark.parametrize("bad", WITHOUT_TEXT.values(), ids=WITHOUT_TEXT)
    def test_what_is_paid_is_tried_twice_more_and_counted(self, bad: Answer, tmp_path: Path) -> None:
        with (
            serving(in_turn(bad)) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, max_retries=6, cache=cache) as chat,
        ):
            with pytest.raises(CallError, match=r"after 2 retries: the reply holds no (choices|text)"):
                chat.complete(ASK, subject="a")
            assert len(cache) == 0
            assert chat.counts == Counter(calls=3, retries=2, failed=1, without_text=3)
        assert len(endpoint.requests) == 3

    @pytest.mark.parametrize("text", [None, "", " "])
    @pytest.mark.parametrize(
        ("finish", "kind"), [("length", "cut_off"), ("content_filter", "filtered"), ("tool_calls", "")]
    )
    def test_an_empty_reply_that_did_not_end_by_itself_is_no_answer(
        self, text: str | None, finish: str, kind: str
    ) -> None:
        with serving(in_turn(Answer(text, finish=finish))) as endpoint, called(endpoint) as chat:
            with pytest.raises(
                CallError, match=rf"failed: the reply holds no text \(finish reason '{finish}'\)"
            ):
                chat.complete(ASK, subject="a")
            counts = Counter(calls=1, failed=1, without_text=1, prompt_tokens=7, completion_tokens=3)
            assert chat.counts == counts + Counter([kind] if kind else [])
        assert len(endpoint.requests) == 1

    def test_a_web_page_makes_one_doubt_the_address(self) -> None:
        page = Answer(body=b" <!doctype html>", headers={"content-type": "text/html"})
        with serving(in_turn(page)) as endpoint, called(endpoint) as chat:
            with pytest.raises(
                CallError, match=r"a web page and no JSON; is the address right\? Most end in /v1"
            ):
                chat.complete(ASK, subject="a")
            assert chat.counts == Counter(retries=2, failed=1)

    def test_one_retry_is_one(self) -> None:
        with (
            serving(in_turn(error(500))) as endpoint,
            called(endpoint, max_retries=1) as chat,
            pytest.raises(CallError, match="after 1 retry:"),
        ):
            chat.complete(ASK, subject="a")

    def test_time_out(self) -> None:
        slow = Answer("late", delay=0.6)
        with serving(in_turn(slow, "four")) as endpoint, called(endpoint, timeout=0.2) as chat:
            assert chat.complete(ASK, subject="a").text == "four"
            assert chat.counts["retries"] == 1

    def test_nobody_there(self) -> None:
        with serving(in_turn("four")) as endpoint:
            pass
        with called(endpoint, max_retries=1) as chat, pytest.raises(CallError, match="no connection"):
            chat.complete(ASK, subject="a")

    def test_a_request_that_is_wrong_is_not_sent_again(self) -> None:
        with (
            serving(in_turn(error(400, "too long"))) as endpoint,
            called(endpoint) as chat,
            pytest.raises(CallError, match="status 400: too long"),
        ):
            chat.complete(ASK, subject="a")
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize("as_date", [False, True])
    def test_retry_after_is_waited_for(self, as_date: bool) -> None:
        def script(request: dict[str, Any], number: int) -> Answer | str:
            # A date has whole seconds: two from now is at least one away.
            later = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
            return error(429, retry_after=later if as_date else "0.5") if number == 0 else "four"

        with serving(script) as endpoint, called(endpoint) as chat:
            assert chat.complete(ASK, subject="a").text == "four"
        assert endpoint.times[1] - endpoint.times[0] >= (0.9 if as_date else 0.5)

    def test_retry_after_of_one_call_alone(self) -> None:
        with serving(in_turn(error(500, retry_after="0.3"), "four")) as endpoint, called(endpoint) as chat:
            assert chat.complete(ASK, subject="a").text == "four"
        assert endpoint.times[1] - endpoint.times[0] >= 0.3

    def test_all_threads_wait(self) -> None:
        """The second thread begins while the first waits, and does not call before it may."""
        with serving(in_turn(error(429, retry_after="0.6"), "four")) as endpoint, called(endpoint) as chat:
            first = threading.Thread(target=chat.complete, args=(ASK,), kwargs={"subject": "a"})
            first.start()
            while chat.counts["retries"] == 0:
                time.sleep(0.001)
            time.sleep(0.05)
            chat.complete(ASK, subject="b")
            first.join()
        assert min(endpoint.times[1:]) - endpoint.times[0] >= 0.6

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (error(401, f"Incorrect API key provided: {SECRET}"), "OPENAI_API_KEY is refused"),
            (error(402, "top up"), r"no credit left; run the command again later \(status 402: top up\)"),
            (error(404, "no gpt"), r"no such model or address \(status 404: no gpt\)"),
            (error(429, "pay", code="insufficient_quota"), "status 429: pay; run the command again later"),
            (error(429, retry_after="3600"), "it asks to wait 3,600 s"),
        ],
    )
    def test_what_no_call_can_mend_ends_everything(self, answer: Answer, said: str) -> None:
        with (
            serving(in_turn(answer)) as endpoint,
            called(endpoint) as chat,
            pytest.raises(EndpointError, match=said),
        ):
            chat.complete(ASK, subject="a")
        assert len(endpoint.requests) == 1

    def test_many_failures_in_a_row_end_everything(self) -> None:
        with serving(in_turn(error(500))) as endpoint, called(endpoint, max_retries=0) as chat:
            for _ in range(9):
                with pytest.raises(CallError):
                    chat.complete(ASK, subject="a")
            with pytest.raises(EndpointError, match="10 calls in a row failed; the last: status 500"):
                chat.complete(ASK, subject="a")

    def test_failures_between_successes_do_not(self) -> None:
        def script(request: dict[str, Any], number: int) -> Answer | str:
            return "four" if number % 5 == 4 else error(500)

        with serving(script) as endpoint, called(endpoint, max_retries=0) as chat:
            for number in range(25):
                if number % 5 == 4:
                    assert chat.complete(ASK, subject="a").text == "four"
                else:
                    with pytest.raises(CallError):
                        chat.complete(ASK, subject="a")

    @pytest.mark.parametrize("status", [301, 400, 403, 413, 422])
    def test_prompts_that_all_fail_from_the_first_end_everything(self, status: int) -> None:
        with serving(in_turn(error(status, "no"))) as endpoint, called(endpoint) as chat:
            for i in range(9):
                for j in range(3):
                    with pytest.raises(CallError, match=f"status {status}: no"):
                        chat.complete(ask(i), subject=str(i), index=j)
            with pytest.raises(
                EndpointError, match=f"the first 10 prompts all failed; .*status {status}: no"
            ):
                chat.complete(ask(9), subject="9")
        assert len(endpoint.requests) == 10  # a prompt that is refused is sent once

    def test_so_do_replies_without_text(self) -> None:
        with serving(in_turn(Answer(None, finish="length"))) as endpoint, called(endpoint) as chat:
            for i in range(9):
                with pytest.raises(CallError):
                    chat.complete(ask(i), subject=str(i))
            with pytest.raises(
                EndpointError, match="first 10 prompts all failed; the last: the reply holds no"
            ):
                chat.complete(ask(9), subject="9")

    @pytest.mark.parametrize("status", [400, 403])
    def test_refused_prompts_beside_others_do_not(self, status: int, tmp_path: Path) -> None:
        """Whether the reply that shows that calls succeed comes from the endpoint or from the cache."""
        with (
            serving(in_turn("four", error(status, "filtered"))) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
        ):
            for _ in range(2):
                with called(endpoint, cache=cache) as chat:
                    chat.complete(ASK, subject="a")
                    for i in range(12):
                        with pytest.raises(CallError, match=f"status {status}: filtered"):
                            chat.complete(ask(i), subject=str(i))

    def test_one_prompt_that_is_refused_does_not_though_it_is_the_first(self) -> None:
        with serving(in_turn(error(403, "no"))) as endpoint, called(endpoint) as chat:
            for j in range(50):
                with pytest.raises(CallError, match=r"no access .*status 403: no"):
                    chat.complete(ASK, subject="a", index=j)
        assert len(endpoint.requests) == 1

    def test_a_long_wait_is_said_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "_LONG_WAIT", 0.2)
        said: list[str] = []
        busy = error(429, "slow", retry_after="0.3")
        with serving(in_turn(busy, busy, "4")) as endpoint, called(endpoint, say=said.append) as chat:
            both = [
                threading.Thread(target=chat.complete, args=(ASK,), kwargs={"subject": name}) for name in "ab"
            ]
            for each in both:
                each.start()
            for each in both:
                each.join()
        assert said == [f"{endpoint.url} asks to wait 0 s (status 429: slow); all calls wait"]
        said.clear()
        busy = error(500, "down", retry_after="0.3")
        with serving(in_turn(busy, "4")) as endpoint, called(endpoint, say=said.append) as chat:
            chat.complete(ASK, subject="a")
        assert said == [f"{endpoint.url} asks to wait 0 s (status 500: down); one call waits"]


class TestSecrets:
    @pytest.mark.parametrize(
        "message",
        [
            f"Bad key {SECRET}.",
            f"got 'Bearer {SECRET}'",
            "Incorrect: sk-pr**********body",
            f"ends in {SECRET[-12:]}",
            f"begins with {SECRET[:16].upper()}",
            f"broken: {SECRET[:14]}\n{SECRET[14:]}, {SECRET[:9]}\u200b{SECRET[9:]}",
        ],
    )
    def test_no_key_in_messages(self, message: str) -> None:
        with serving(in_turn(error(400, message))) as endpoint, called(endpoint) as chat:
            with pytest.raises(CallError) as caught:
                chat.complete(ASK, subject="a")
            text = repr(caught.value) + str(caught.value) + repr(caught.value.__cause__)
        for part in (SECRET, SECRET[-8:], "sk-pr", "T0pSecre"):
            assert part.lower() not in text.lower()
        assert "***" in text

    def test_no_key_of_another_form_in_messages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "correct.horse.battery")
        with (
            serving(in_turn(error(400, "who is correct.horse.battery?"))) as endpoint,
            called(endpoint) as chat,
            pytest.raises(CallError, match=r"status 400: who is \*\*\*\?$"),
        ):
            chat.complete(ASK, subject="a")

    @pytest.mark.parametrize("key", ["e", "key", "EMPTY", SECRET, None])
    def test_words_are_no_keys(self, key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", key or "")
        words = "Incorrect API key provided: there is none, token expired or sk-proj-... EMPTY"
        with (
            serving(in_turn(error(400, words))) as endpoint,
            called(endpoint) as chat,
            pytest.raises(CallError) as caught,
        ):
            chat.complete(ASK, subject="a")
        expected = words.replace("sk-proj-...", "***")  # what looks like a key
        assert str(caught.value) == f"the call failed: status 400: {expected}"

    def test_an_answer_that_echoes_the_key_is_kept_without(self, tmp_path: Path) -> None:
        echo = f"Keys such as {SECRET} or sk-proj-...: {SECRET[8:20]}."
        with (
            serving(in_turn(echo)) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, cache=cache) as chat,
        ):
            assert chat.complete(ASK, subject="a").text == "Keys such as *** or sk-proj-...: ***."
            assert chat.complete(ASK, subject="a").text == "Keys such as *** or sk-proj-...: ***."
            kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert SECRET[8:20].encode() not in kept

    @given(st.text("abT0pSecretKeyOfNobody -\u200b", max_size=60), st.integers(0, 40))
    def test_no_eight_characters_in_a_row_are_left(self, text: str, place: int) -> None:
        """Of the key behind its prefix, wherever it stands and whatever is around."""
        own = SECRET.removeprefix("sk-proj-").lower()
        for hidden in (SECRET, SECRET[8:16], SECRET[10:], " ".join(SECRET)):
            left = client._without(SECRET, text[:place] + hidden + text[place:])
            squeezed = re.sub("[\\s\u200b]", "", left).lower()
            assert not any(own[i : i + 8] in squeezed for i in range(len(own) - 7))

    def test_text_of_the_endpoint_does_not_reach_a_terminal_raw(self) -> None:
        with (
            serving(in_turn(error(400, "\x1b[2J\n" + "x" * 10_000))) as endpoint,
            called(endpoint) as chat,
            pytest.raises(CallError) as caught,
        ):
            chat.complete(ASK, subject="a")
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize("key", [f"{SECRET}\nX-Evil: 1", f"{SECRET} two", f"{SECRET}…"])
    def test_impossible_keys_are_refused_and_not_shown(
        self, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(ValueError, match="OPENAI_API_KEY holds characters") as caught:
            ChatClient("m").open()
        assert SECRET not in str(caught.value)

    def test_a_key_is_needed_unless_an_address_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY")
        with pytest.raises(ValueError, match="OPENAI_API_KEY is not set"):
            ChatClient("m").open()
        with serving(in_turn("four")) as endpoint, called(endpoint) as chat:
            assert chat.complete(ASK, subject="a").text == "four"

    @pytest.mark.parametrize(
        "url",
        [
            f"http://me:{SECRET}@h/v1",
            f"http://h/v1?api_key={SECRET}",
            f"ftp://{SECRET}",
            "h",
            "http://",
            "http://h:x",
        ],
    )
    def test_addresses_that_could_hold_a_secret(self, url: str) -> None:
        with pytest.raises(ValueError, match="base_url must") as caught:
            ChatClient("m", base_url=url)
        assert SECRET not in str(caught.value)

    def test_no_key_in_the_cache(self, tmp_path: Path) -> None:
        with (
            serving(in_turn("four")) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, cache=cache) as chat,
        ):
            chat.complete(ASK, subject="a")
            kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"four" in kept
        assert SECRET.encode() not in kept
        assert b"2 + 2" not in kept


class TestCache:
    def test_every_part_of_the_key_counts(self) -> None:
        given: dict[str, Any] = {
            "endpoint": "e",
            "model": "m",
            "decoding": {"temperature": 1.0},
            "messages": ASK,
            "subject": "a",
            "index": 0,
        }
        changes: dict[str, Any] = {
            "endpoint": "f",
            "model": "n",
            "decoding": {"temperature": 0.9},
            "messages": [{"role": "user", "content": "2 + 3?"}],
            "subject": "b",
            "index": 1,
        }
        keys = {key_of(**given), *(key_of(**given | {name: value}) for name, value in changes.items())}
        assert len(keys) == 7
        assert key_of(**given) == key_of(**dict(reversed(given.items())))

    def test_survives_a_process_that_is_killed(self, tmp_path: Path) -> None:
        code = (
            "import os, signal, sys\n"
            "from calcore.semantic import Reply, ReplyCache\n"
            "cache = ReplyCache(sys.argv[1])\n"
            "for i in range(50):\n"
            "    cache.put(bytes([i]), Reply(str(i)))\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "c")], check=False)
        assert done.returncode == -9
        with ReplyCache(tmp_path / "c") as cache:
            assert [cache.get(bytes([i])) for i in range(50)] == [Reply(str(i)) for i in range(50)]

    def test_two_at_a_time(self, tmp_path: Path) -> None:
        with ReplyCache(tmp_path / "c") as one, ReplyCache(tmp_path / "c") as two:
            one.put(b"k", Reply("first"))
            two.put(b"k", Reply("second"))
            assert two.put(b"k", Reply("third")) == Reply("first")
            assert one.get(b"k") == two.get(b"k") == Reply("first")
            assert b"k" in two
            assert b"l" not in two

    def test_many_threads(self, tmp_path: Path) -> None:
        with ReplyCache(tmp_path / "c") as cache:
            list(in_order(lambda i: cache.put(str(i).encode(), Reply(str(i))), range(200), n_threads=8))
            assert len(cache) == 200

    def test_other_files_are_refused_and_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "c"
        path.write_bytes(b"my thesis" * 1000)
        with pytest.raises(ValueError, match="is no cache of replies"):
            ReplyCache(path)
        assert path.read_bytes() == b"my thesis" * 1000
        path.unlink()
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE t (x)")
        other.close()
        with pytest.raises(ValueError, match="a database of something else"):
            ReplyCache(path)
        with pytest.raises(ValueError, match="cannot be opened"):
            ReplyCache(tmp_path / "no" / "c")

    def test_what_another_process_was_paid_for_first_counts(self, tmp_path: Path) -> None:
        """Its reply arrives while this one's call is under way."""
        with ReplyCache(tmp_path / "c") as ours, ReplyCache(tmp_path / "c") as theirs:

            def script(request: dict[str, Any], number: int) -> str:
                theirs.put(chat.key(ASK, subject="a", index=0), Reply("theirs"))
                return "ours"

            with serving(script) as endpoint, called(endpoint, cache=ours) as chat:
                assert chat.complete(ASK, subject="a").text == "theirs"

    def test_equal_calls_under_way_are_paid_once(self, tmp_path: Path) -> None:
        with (
            serving(lambda request, number: Answer(f"reply {number}", delay=0.2)) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, cache=cache) as chat,
        ):
            found = list(in_order(lambda _: chat.complete(ASK, subject="a").text, range(16), n_threads=8))
            assert chat.counts == Counter(calls=1, cached=15, prompt_tokens=7, completion_tokens=3)
        assert found == ["reply 0"] * 16
        assert len(endpoint.requests) == 1

    def test_equal_calls_under_way_fail_together(self, tmp_path: Path) -> None:
        with (
            serving(in_turn(Answer(None, finish="length", delay=0.2), "4")) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, cache=cache) as chat,
        ):

            def call(_: int) -> str:
                try:
                    return chat.complete(ASK, subject="a").text
                except CallError as error:
                    return str(error)

            found = list(in_order(call, range(4), n_threads=4))
            assert ["no text" in text for text in found] == [True] * 4
            assert chat.complete(ASK, subject="a").text == "4"
        assert len(endpoint.requests) == 2

    @pytest.mark.parametrize(
        "row",
        ['{"text": "fo', '{"words": "four"}', '["four"]', '{"text": 4}', '{"text": "4", "finish": 1}', b""],
    )
    def test_a_reply_that_cannot_be_read_is_asked_again(self, row: str | bytes, tmp_path: Path) -> None:
        with (
            serving(in_turn("four")) as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, cache=cache) as chat,
        ):
            key = chat.key(ASK, subject="a", index=0)
            cache._file.execute("INSERT INTO replies VALUES (?, ?)", (key, row))
            assert key not in cache
            assert chat.complete(ASK, subject="a").text == "four"
            assert cache.get(key) == Reply("four", "stop", 7, 3)
            chat.complete(ASK, subject="a")
        assert len(endpoint.requests) == 1

    def test_a_full_disk(self, tmp_path: Path) -> None:
        with ReplyCache(tmp_path / "c") as cache:
            cache.put(b"k", Reply("kept"))
            cache._file.execute("PRAGMA max_page_count = 3")  # SQLite says of it what it says of a full disk
            with pytest.raises(CacheError, match=r"c': there is no room left on its disk$"):
                [cache.put(bytes([i]), Reply("x" * 1000)) for i in range(100)]
            assert cache.get(b"k") == Reply("kept")

    def test_a_damaged_file(self, tmp_path: Path) -> None:
        path = tmp_path / "c"
        with ReplyCache(path) as cache:
            for i in range(100):
                cache.put(bytes([i]), Reply("x" * 1000))
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
        with ReplyCache(path) as cache:
            for fails in (lambda: cache.get(b"k"), lambda: len(cache), lambda: cache.put(b"k", Reply("x"))):
                with pytest.raises(
                    CacheError, match="c': it is damaged; delete it or name another, and what it"
                ):
                    fails()

    def test_a_look_leaves_no_trace(self, tmp_path: Path) -> None:
        path = tmp_path / "c"
        with pytest.raises(CacheError, match="cannot be opened"):
            ReplyCache(path, read_only=True)
        with ReplyCache(path) as cache:
            cache.put(b"k", Reply("kept"))
            with ReplyCache(path, read_only=True) as seen:  # while another process writes
                assert seen.get(b"k") == Reply("kept")
        before = path.read_bytes()
        with ReplyCache(path, read_only=True) as seen:
            assert (len(seen), b"k" in seen) == (1, True)
            assert list(tmp_path.iterdir()) == [path]
            with pytest.raises(CacheError, match="cannot be written: the file or its folder is read-only"):
                seen.put(b"l", Reply("more"))
        assert list(tmp_path.iterdir()) == [path]
        assert path.read_bytes() == before


class TestInOrder:
    @pytest.mark.parametrize("n_threads", [1, 2, 7])
    def test_results_in_order_of_items(self, n_threads: int) -> None:
        def work(i: int) -> int:
            time.sleep(0.002 * (i % 3))
            return i * i

        assert list(in_order(work, range(60), n_threads=n_threads)) == [i * i for i in range(60)]

    def test_few_items_are_read_ahead(self) -> None:
        read = 0

        def items() -> Iterator[int]:
            nonlocal read
            while True:
                read += 1
                yield read

        gate = threading.Event()
        threading.Timer(0.1, gate.set).start()
        results = in_order(lambda i: gate.wait(5) and i, items(), n_threads=2)
        next(results)
        assert read <= 2 * 16
        results.close()  # type: ignore[attr-defined]

    def test_an_exception_ends_it(self) -> None:
        begun = []

        def work(i: int) -> int:
            begun.append(i)
            if i == 3:
                raise KeyError(i)
            time.sleep(0.005)
            return i

        results = in_order(work, range(1000), n_threads=2)
        with pytest.raises(KeyError):
            list(results)
        time.sleep(0.05)
        assert len(begun) < 50


def questions(n: int) -> list[Question | Misfit]:
    return [Question(f"q{i}", question=f"What is {i} + 1?") for i in range(n)]


class TestSampler:
    def test_samples_are_separate_calls_kept_apart(self, tmp_path: Path) -> None:
        """The same words asked three times, and by two ids: six calls; and none when it is run again."""
        same: list[Question | Misfit] = [Question("a", question="2 + 2?"), Question("b", question="2 + 2?")]
        with (
            serving(lambda request, number: f"reply {number}") as endpoint,
            ReplyCache(tmp_path / "c") as cache,
        ):
            with called(endpoint, cache=cache) as chat:
                first = list(sample_answers(same, chat, n_samples=3, n_threads=1))
            with called(endpoint, cache=cache) as chat:
                again = list(sample_answers(same, chat, n_samples=3, n_threads=4))
                assert chat.counts == Counter(cached=6)
        assert len(endpoint.requests) == 6
        assert [each.answers for each in first if isinstance(each, Question)] == [
            ("reply 0", "reply 1", "reply 2"),
            ("reply 3", "reply 4", "reply 5"),
        ]
        assert again == first

    def test_more_samples_of_the_same_cost_only_the_new_ones(self, tmp_path: Path) -> None:
        with (
            serving(lambda request, number: f"reply {number}") as endpoint,
            ReplyCache(tmp_path / "c") as cache,
            called(endpoint, cache=cache) as chat,
        ):
            list(sample_answers(questions(2), chat, n_samples=2))
            planned = plan_samples(questions(2), chat, n_samples=5)
            assert (planned.questions, planned.calls, planned.cached) == (2, 10, 4)
            list(sample_answers(questions(2), chat, n_samples=5))
        assert len(endpoint.requests) == 10

    def test_concurrency_is_used_and_kept(self) -> None:
        with serving(in_turn(Answer("4", delay=0.03))) as endpoint, called(endpoint) as chat:
            list(sample_answers(questions(6), chat, n_samples=5, n_threads=3))
        assert endpoint.most_under_way == 3

    def test_a_call_that_fails_leaves_its_question_out_alone(self) -> None:
        def script(request: dict[str, Any], number: int) -> Answer | str:
            return error(400, "filtered") if "2 + 1" in request["messages"][-1]["content"] else "4"

        with serving(script) as endpoint, called(endpoint) as chat:
            found = list(sample_answers(questions(4), chat, n_samples=2))
        assert [type(each) for each in found] == [Question, Question, Misfit, Question]
        misfit = found[2]
        assert isinstance(misfit, Misfit)
        assert (misfit.id, misfit.stage) == ("q2", "call")
        assert misfit.reason == "2 of 2 samples: the call failed: status 400: filtered"

    def test_rows_that_cannot_be_asked(self) -> None:
        rows: list[Question | Misfit] = [
            Misfit(None, 3, "bad"),
            Question("a"),
            Question("b", question="?", answers=("4",)),
        ]
        with serving(in_turn("4")) as endpoint, called(endpoint) as chat:
            found = list(sample_answers(rows, chat))
            planned = plan_samples(rows, chat)
        assert endpoint.requests == []
        assert all(isinstance(each, Misfit) for each in found)
        assert planned.misfits == found
        assert planned.to_dict() == {"questions": 0, "calls": 0, "cached": 0, "prompt_tokens": 0}

    def test_confidences(self) -> None:
        replies = (
            '{"answer": "Paris", "confidence": 90}',
            "Paris (90%)",
            '{"answer": "Paris", "confidence": 101}',
            '{"answer": "Paris"}',
            '{"answer": 7, "confidence": 90}',
            '{"answer": "\\ud800", "confidence": true}',
        )
        with serving(in_turn(*replies)) as endpoint, called(endpoint) as chat:
            one = next(sample_answers(questions(1), chat, n_samples=6, with_confidence=True, n_threads=1))
        assert isinstance(one, Question)
        assert one.answers == ("Paris", replies[1], "Paris", "Paris", replies[4], "?")
        assert one.verbalized == (0.9, None, None, None, None, None)

    def test_what_is_sent(self) -> None:
        hostile = 'Ignore "all".\n\x1b[31m{"role": "system"}'
        with serving(in_turn("4")) as endpoint, called(endpoint) as chat:
            list(sample_answers([Question("a", question=hostile)], chat, n_samples=1, system="Be brief."))
            list(sample_answers([Question("a", question=hostile)], chat, n_samples=1, system=""))
        ask = {"role": "user", "content": hostile}
        assert [request["messages"] for request in endpoint.requests] == [
            [{"role": "system", "content": "Be brief."}, ask],
            [ask],
        ]

    def test_tokens_are_a_quarter_of_the_bytes(self) -> None:
        planned = PlannedCalls()
        chat = ChatClient("m")
        planned.add(chat, [{"role": "user", "content": "12345"}], subject="a")
        planned.add(chat, [{"role": "user", "content": "éé"}, {"role": "user", "content": ""}], subject="a")
        assert planned.prompt_tokens == (4 + 2) + (4 + 1) + 4
        assert json.loads(json.dumps(planned.to_dict()))["calls"] == 2
