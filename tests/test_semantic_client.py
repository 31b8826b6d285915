"""Calls of an endpoint that misbehaves, by the real client: retries, waiting, the cache, and no secrets."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from endpoint import Answer, Endpoint, Script, error, serving

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
from calcore.semantic.cache import key_of
from calcore.semantic.pool import in_order

SECRET = "sk-proj-T0pSecretKeyOfNobody"
ASK = [{"role": "user", "content": "2 + 2?"}]


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
            assert chat.counts == {"calls": 1, "cut_off": 0, "prompt_tokens": 7, "completion_tokens": 3}
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
    "no choices": Answer(body=b"{}"),
    "empty choices": Answer(body=b'{"choices": []}'),
    "no message": Answer(body=b'{"choices": [{"index": 0}]}'),
    "no text": Answer(body=b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": null}}]}'),
    "text of a wrong type": Answer(body=b'{"choices": [{"index": 0, "message": {"content": 4}}]}'),
    "a list": Answer(body=b"[]"),
    "status 500": error(500, "internal"),
    "status 502 of a proxy": Answer(status=502, body=b"<html>", headers={"content-type": "text/html"}),
    "status 408": error(408),
    "status 429": error(429, "slow down"),
}


class TestRetries:
    @pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
    def test_what_fails_by_chance_is_tried_again(self, bad: Answer) -> None:
        with serving(in_turn(bad, bad, "four")) as endpoint, called(endpoint) as chat:
            assert chat.complete(ASK, subject="a").text == "four"
            assert (chat.counts["calls"], chat.counts["retries"]) == (1, 2)
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
            (error(403), "no access"),
            (error(404, "no such model"), "no such model or address"),
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

    def test_refused_requests_do_not_mean_that_it_is_down(self) -> None:
        with serving(in_turn(error(400, "filtered"))) as endpoint, called(endpoint) as chat:
            for _ in range(12):
                with pytest.raises(CallError):
                    chat.complete(ASK, subject="a")


class TestSecrets:
    @pytest.mark.parametrize(
        "message",
        [
            f"Bad key {SECRET}.",
            f"got 'Bearer {SECRET}'",
            "Incorrect: sk-pr**********body",
            "key=abcdefgh12345",
        ],
    )
    def test_no_key_in_messages(self, message: str) -> None:
        with serving(in_turn(error(400, message))) as endpoint, called(endpoint) as chat:
            with pytest.raises(CallError) as caught:
                chat.complete(ASK, subject="a")
            text = repr(caught.value) + str(caught.value) + repr(caught.value.__cause__)
        for part in (SECRET, "sk-pr", "abcdefgh12345"):
            assert part not in text
        assert "***" in text

    def test_no_key_of_another_form_in_messages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "correct.horse.battery")
        with (
            serving(in_turn(error(400, "who is correct.horse.battery?"))) as endpoint,
            called(endpoint) as chat,
            pytest.raises(CallError, match=r"status 400: who is \*\*\*\?$"),
        ):
            chat.complete(ASK, subject="a")

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
                assert chat.counts == {"cached": 6, "cut_off": 0}
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
