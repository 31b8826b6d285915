"""The commands `calcore semantic`: step by step through files, resumed, bounded, and without secrets."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from endpoint import Answer, Endpoint, error, serving

from calcore import cli
from calcore.cli.process import DONE, FAILED, USAGE
from calcore.semantic import (
    Question,
    ReplyCache,
    client,
    compare_semantic,
    gather_samples,
    judge_agreement,
    read_questions,
    score_samples,
    writing_questions,
)

SECRET = "sk-proj-T0pSecretKeyOfNobody"
COMMAND = [sys.executable, "-m", "calcore"]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process."""

    def call(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["calcore", "semantic", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Ended(code or 0, *capsys.readouterr())

    return call


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory, a key, no proxies, and short pauses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    for name in ("CALCORE_DEBUG", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_PAUSE", 0.001)


def written(name: str, *rows: Any) -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


def contents() -> dict[str, bytes]:
    """All files here, by name."""
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def to_ask(n: int, name: str = "q.jsonl") -> str:
    return written(
        name, *({"id": f"q{i}", "question": f"What is {i} + 1?", "gold_answer": str(i + 1)} for i in range(n))
    )


def by_seed(request: dict[str, Any], number: int) -> Answer:
    """The right answer in two of three cases, by the seed of the call; a moment later."""
    asked = int(request["messages"][-1]["content"].split()[2])
    return Answer(str(asked + 1 + (request["seed"] % 3 == 0)), delay=0.01)


class TestAll:
    def test_questions_to_scores(self, run: Run) -> None:
        """All four steps, with a judge that makes no calls, through both kinds of file."""
        with serving(by_seed) as endpoint:
            words = ("--model", "m", "--base-url", endpoint.url, "--seed", 1, "-n", 12)
            ended = run("sample", to_ask(40), "-o", "a.parquet", *words, "--concurrency", 16)
        assert (ended.code, ended.err) == (DONE, "")
        assert ended.out.splitlines() == [
            "a.parquet: 40 questions, 480 answers",
            "480 calls and 0 replies from the cache, 0 retries, 0 failed; 3,360 tokens sent, 1,440 received",
        ]
        assert len({json.dumps(request, sort_keys=True) for request in endpoint.requests}) == 480
        ended = run("cluster", "a.parquet", "-o", "c.jsonl")
        assert (ended.code, ended.out, ended.err) == (DONE, "c.jsonl: 40 questions, 480 answers\n", "")
        ended = run("grade", "c.jsonl", "-o", "g.jsonl", "--classes", "all")
        graded = [each for each in read_questions("g.jsonl") if isinstance(each, Question)]
        correct = sum(each.grade == 1 for each in graded)
        assert (
            ended.out == f"g.jsonl: 40 questions, 480 answers; 40 modes graded, {correct} of them correct\n"
        )
        for each in graded:
            answers = np.array(list(map(int, each.answers or ())))
            share = np.mean(answers == int(each.gold_answer or 0))
            assert each.grade == (share > 0.5) or share == 0.5
        ended = run("score", "g.jsonl", "--resamples", 99, "--json", "--threads", 1)
        expected = score_samples(gather_samples(graded).samples, n_resamples=99)
        found = json.loads(ended.out)
        assert found.pop("files") == ["g.jsonl"]
        assert (found.pop("n_misfits"), found.pop("misfits")) == (0, [])
        assert found == json.loads(json.dumps(expected.to_dict()))

    def test_published_files_score_as_they_are(self, run: Run) -> None:
        rows = [
            {
                "id": f"q{i}",
                "cluster_assignments": [0, 0, 0, 1],
                "modal_cluster": 0,
                "grade": ("CORRECT", "INCORRECT", "NOT_ATTEMPTED", "PARSE_ERROR")[i % 4],
                "confidence_verbalized": [0.9, 0.9, None, 0.9],
            }
            for i in range(80)
        ]
        ended = run("score", written("p.jsonl", *rows), "--resamples", 99)
        assert (ended.code, ended.err) == (DONE, "")
        first, table = ended.out.split("\n\n")[:2]
        assert first.startswith("Sem1-ECE is 0.4167, between ")  # |3/4 - 20/60|
        assert "on 60 graded" in " ".join(first.split())
        assert [line.split()[0] for line in table.splitlines()[1:]] == ["Sem1", "Sem2", "Ver"]
        assert "Warning: 20 of 80 questions are not graded" in ended.out
        assert "60 missing ones are counted as 1" in " ".join(ended.out.split())
        dropped = run("score", "p.jsonl", "--resamples", 99, "--missing-verbalized", "drop", "--json")
        ver = json.loads(dropped.out)["scores"][2]
        assert ver["mean_confidence"] == pytest.approx(0.9)


class TestSample:
    def words(self, endpoint: Endpoint, *more: object) -> tuple[object, ...]:
        return ("sample", "q.jsonl", "-o", "a.jsonl", "--model", "m", "--base-url", endpoint.url, *more)

    def test_rows_that_do_not_fit_are_named_and_counted(self, run: Run) -> None:
        good = [{"id": f"q{i}", "question": "?"} for i in range(3)]
        bad = [{"id": "\x1b[31m0", "question": []}]
        more = [{"id": f"no{i}"} for i in range(6)]
        written("q.jsonl", *good, *bad, *more, good[0])
        with serving(lambda request, number: "4") as endpoint:
            ended = run(*self.words(endpoint, "-n", 2))
            assert (ended.code, len(endpoint.requests)) == (DONE, 6)
            assert ended.err.splitlines() == [
                "calcore: warning: 8 questions do not fit:",
                "  id '\\x1b[31m0': question must be text; got []",
                *(f"  id 'no{i}': question is missing: there is nothing to ask" for i in range(4)),
                "  and 3 more (--json names all)",
                "They are left out.",
            ]
            found = json.loads(run(*self.words(endpoint, "-n", 2, "--json", "--force")).out)
            assert (found["questions"], found["n_misfits"], len(found["misfits"])) == (3, 8, 8)
            assert found["misfits"][-1] == {
                "id": "q0",
                "file": None,
                "row": 11,
                "reason": "the id is also that of row 1",
                "stage": "file",
            }
            ended = run(*self.words(endpoint, "--strict", "--force"))
            assert (ended.code, ended.out) == (USAGE, "")
            assert "q.jsonl: 2 questions do not fit:" in ended.err
            assert len(endpoint.requests) == 6

    def test_dry_run_calls_nothing_and_needs_no_key(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        to_ask(5)
        with serving(lambda request, number: "4") as endpoint:
            run(*self.words(endpoint, "-n", 2))
            monkeypatch.delenv("OPENAI_API_KEY")
            Path("a.jsonl").unlink()
            before = sorted(os.listdir())
            ended = run(*self.words(endpoint, "-n", 3, "--dry-run", "--max-tokens", 50, "--json"))
            found = json.loads(ended.out)
            text = " ".join(run(*self.words(endpoint, "-n", 3, "--dry-run")).out.split())
            assert sorted(os.listdir()) == before
        assert len(endpoint.requests) == 10
        # --max-tokens is part of the key: with another, nothing is known.
        assert (found["questions"], found["calls"], found["cached"], found["calls_left"]) == (5, 15, 0, 15)
        assert found["completion_tokens_at_most"] == 750
        assert "5 questions: 15 calls, of which 10 are in the cache and 5 would be made" in text
        messages = endpoint.requests[0]["messages"]
        tokens = sum(4 + -(-len(message["content"].encode()) // 4) for message in messages)
        assert f"with about {5 * tokens} tokens" in text

    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    def test_resumes_without_paying_twice(self, how: signal.Signals, run: Run) -> None:
        """Interrupted or killed after thirty calls, run again: at most those under way are paid twice."""
        to_ask(20)
        with serving(by_seed) as endpoint:
            words = self.words(endpoint, "-n", 5, "--seed", 7, "--concurrency", 4)
            command = [*COMMAND, "semantic", *map(str, words)]
            first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while len(endpoint.requests) < 30:
                assert first.poll() is None
                time.sleep(0.002)
            first.send_signal(how)
            said = first.communicate()
            paid = len(endpoint.requests)
            assert 30 <= paid < 100
            assert first.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
            assert not Path("a.jsonl").exists()
            with ReplyCache("a.jsonl.cache") as cache:
                kept = len(cache)
            assert paid - 4 <= kept <= paid
            if how == signal.SIGINT:
                called, *more = said[1].splitlines()
                assert called.startswith(
                    f"calcore: {kept} calls and 0 replies from the cache, 0 retries, 0 failed"
                )
                assert more == [
                    f"calcore: {kept} replies are kept in a.jsonl.cache; the same command goes on",
                    "calcore: interrupted",
                ]
            assert f"{100 - kept} calls and {kept} replies from the cache" in run(*words).out
            assert len(endpoint.requests) == paid + 100 - kept
            resumed = Path("a.jsonl").read_bytes()
            assert run(*words, "--cache", "other", "--force").code == DONE
        assert Path("a.jsonl").read_bytes() == resumed

    def test_an_endpoint_that_goes_down_says_what_is_kept(self, run: Run) -> None:
        to_ask(30)
        with serving(lambda request, number: "4" if number < 20 else error(500)) as endpoint:
            ended = run(*self.words(endpoint, "-n", 1, "--retries", 1, "--concurrency", 1))
        assert (ended.code, ended.out) == (USAGE, "")
        assert ended.err.splitlines() == [
            f"calcore: {endpoint.url}: 10 calls in a row failed; the last: status 500",
            "20 calls and 0 replies from the cache, 10 retries, 10 failed; 140 tokens sent, 60 received",
            "20 replies are kept in a.jsonl.cache; the same command goes on",
        ]
        assert not Path("a.jsonl").exists()

    def test_calls_that_fail_make_exit_code_1(self, run: Run) -> None:
        to_ask(3)

        def script(request: dict[str, Any], number: int) -> Answer | str:
            return error(400, "filtered") if number == 1 else "4"

        with serving(script) as endpoint:
            ended = run(*self.words(endpoint, "-n", 1, "--concurrency", 1))
            assert ended.code == FAILED
            assert "id 'q1': 1 of 1 samples: the call failed: status 400: filtered" in ended.err
            assert len(list(read_questions("a.jsonl"))) == 2
            assert run(*self.words(endpoint, "-n", 1)).code == USAGE  # the file is there
            assert run(*self.words(endpoint, "-n", 1, "--force")).code == DONE
        assert len(endpoint.requests) == 4
        assert len(list(read_questions("a.jsonl"))) == 3

    def test_confidence_and_prompt(self, run: Run) -> None:
        to_ask(1)
        Path("prompt.txt").write_text("Réponds.\n", encoding="utf-8")
        with serving(lambda request, number: '{"answer": "1", "confidence": 80}') as endpoint:
            run(*self.words(endpoint, "-n", 2, "--confidence", "--prompt", "prompt.txt"))
        (found,) = read_questions("a.jsonl")
        assert isinstance(found, Question)
        assert (found.answers, found.verbalized) == (("1", "1"), (0.8, 0.8))
        assert endpoint.requests[0]["messages"][0] == {"role": "system", "content": "Réponds."}

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("sample", "none.jsonl", "-o", "x.jsonl", "--model", "m"), "none.jsonl: no such file"),
            (("sample", "q.jsonl", "-o", "x.csv", "--model", "m"), "must end in one of .jsonl"),
            (("sample", "q.jsonl", "-o", "q.jsonl", "--model", "m", "--force"), "is also an input"),
            (("sample", "q.jsonl", "-o", "x.jsonl"), "--model"),
            (("sample", "q.jsonl", "-o", "x.jsonl", "--model", "m", "--base-url", "h"), "--base-url must be"),
            (
                ("sample", "q.jsonl", "-o", "x.jsonl", "--model", "m", "--prompt", "no"),
                "--prompt no: no such file",
            ),
            (
                ("sample", "q.jsonl", "-o", "x.jsonl", "--model", "m", "--cache", "q.jsonl"),
                "--cache q.jsonl: is also an input",
            ),
            (
                ("sample", "q.jsonl", "-o", "x.jsonl", "--model", "m", "--cache", "./x.jsonl"),
                "--cache ./x.jsonl: is also the output",
            ),
            (
                ("sample", "q.jsonl", "-o", "x.jsonl", "--model", "m", "--cache", "other.txt"),
                "'other.txt': it is no cache of replies",
            ),
            (
                (
                    "sample",
                    "q.jsonl",
                    "-o",
                    "other.jsonl",
                    "--model",
                    "m",
                    "--prompt",
                    "other.jsonl",
                    "--force",
                ),
                "other.jsonl: is also an input",
            ),
            (
                ("sample", "q.jsonl", "-o", "none/x.jsonl", "--model", "m"),
                "none/x.jsonl: no such directory",
            ),
            (("cluster", "q.jsonl", "other.jsonl", "-o", "x.jsonl"), "id 'q0' is also in 'q.jsonl'; files"),
            (("cluster", "q.jsonl", "./q.jsonl", "-o", "x.jsonl"), "./q.jsonl: given twice"),
            (("cluster", "empty", "-o", "x.jsonl"), "empty: no file in this directory ends in .jsonl"),
            (("score", "graded.jsonl", "--seed", str(10**23)), "--seed must lie between"),
            (("score", "graded.jsonl", "--answers", "9"), "--answers must be at most 2"),
            (("score", "graded.jsonl", "--versus", "late.jsonl"), "the files must have questions in common"),
            (
                ("score", "classes.jsonl"),
                "classes.jsonl: no question is graded; 'calcore semantic grade' makes",
            ),
            (("cluster", "q.jsonl", "-o", "x.jsonl", "--judge", "llm"), "--model is missing"),
            (("cluster", "q.jsonl", "-o", "x.jsonl", "--judge", "embeddings"), "--model is missing"),
            (("cluster", "q.jsonl", "-o", "x.jsonl", "--model", "m"), "exact needs none"),
            (("cluster", "q.jsonl", "-o", "x.jsonl", "--threshold", "0.5"), "are for --judge embeddings"),
            (("cluster", "q.jsonl", "-o", "x.jsonl", "--dry-run"), "exact makes no calls"),
            (("score", "q.jsonl"), "q.jsonl: there is no question to score; the first: id 'q0'"),
            (
                ("score", "q.jsonl", "--missing-verbalized", "x"),
                "--missing-verbalized must be a number or drop",
            ),
        ],
    )
    def test_faults_of_usage(self, words: tuple[str, ...], said: str, run: Run) -> None:
        to_ask(2)
        to_ask(1, "other.jsonl")
        Path("other.txt").write_text("my thesis\n" * 100, encoding="utf-8")
        graded = {"assignments": [0, 0], "Y": 1}
        written("graded.jsonl", *({"id": f"q{i}"} | graded for i in range(9)))
        written("late.jsonl", *({"id": f"r{i}"} | graded for i in range(9)))
        written("classes.jsonl", {"id": "q", "assignments": [0, 0]})
        Path("empty").mkdir()
        Path("empty", "a.jsonl.cache").touch()
        before = contents()
        ended = run(*words)
        assert (ended.code, ended.out) == (USAGE, "")
        assert said in " ".join(ended.err.split())
        assert contents() == before

    def test_several_files_and_directories(self, run: Run) -> None:
        """All files are read, whatever else is in a directory."""
        Path("in").mkdir()
        written("in/a.jsonl", *({"id": f"a{i}", "question": "?"} for i in range(3)))
        with writing_questions("in/b.parquet") as write:
            write(Question("b", "?"))
        for name in ("in/a.jsonl.cache", "in/notes.txt"):
            Path(name).touch()
        with serving(lambda request, number: "4") as endpoint:
            words = ("-n", 2, "--model", "m", "--base-url", endpoint.url, "--json")
            for files in (("in",), ("in/a.jsonl", "in/b.parquet"), ("in/[ab].*l", "in/b.parquet")):
                found = json.loads(run("sample", *files, "-o", "a.jsonl", *words, "--force").out)
                assert (found["questions"], found["files"]) == (4, ["in/a.jsonl", "in/b.parquet"])
        assert len(endpoint.requests) == 8
        assert [each.id for each in read_questions("a.jsonl")] == ["a0", "a1", "a2", "b"]
        written("in/c.jsonl", {"id": "c"}, {"id": 1.5})
        ended = run("sample", "in", "-o", "b.jsonl", "--model", "m", "--base-url", endpoint.url, "--dry-run")
        assert "  'in/c.jsonl', row 2: id must be text or a whole number; got 1.5" in ended.err.splitlines()

    def test_a_prompt_that_is_refused_costs_its_question_alone(self, run: Run) -> None:
        to_ask(15)

        def script(request: dict[str, Any], number: int) -> Answer | str:
            return error(403, "moderated") if " 3 + 1" in request["messages"][-1]["content"] else "4"

        with serving(script) as endpoint:
            ended = run(*self.words(endpoint, "-n", 3, "--concurrency", 1))
        assert ended.code == FAILED
        assert ended.out.startswith("a.jsonl: 14 questions, 42 answers\n42 calls ")
        assert "id 'q3': 3 of 3 samples: the call failed: no access" in ended.err
        assert "status 403: moderated" in ended.err

    def test_a_fault_of_all_ends_it_early(self, run: Run) -> None:
        to_ask(400)
        with serving(lambda request, number: error(422, "no such field")) as endpoint:
            ended = run(*self.words(endpoint, "-n", 50, "--concurrency", 4))
        assert (ended.code, ended.out) == (USAGE, "")
        assert len(endpoint.requests) < 100
        lines = ended.err.splitlines()
        assert lines[0].endswith("the first 10 prompts all failed; the last: status 422: no such field")
        assert re.fullmatch(r"0 calls and 0 replies .* failed; 0 tokens sent, 0 received", lines[1])
        assert len(lines) == 2  # nothing is kept: the same command would not go on

    @pytest.mark.parametrize(
        ("answer", "words", "warnings"),
        [
            (
                Answer(None, finish="length"),
                ("--max-tokens", 5),
                ["replies cut off at --max-tokens 5: 2", "replies that were paid but hold no text: 2"],
            ),
            (
                Answer("", finish="content_filter"),
                (),
                [
                    "replies filtered by the endpoint, parts or all of them left out: 2",
                    "replies that were paid but hold no text: 2",
                ],
            ),
            (error(400, "no"), (), []),
        ],
    )
    def test_no_answer_is_no_file(
        self, answer: Answer, words: tuple[object, ...], warnings: list[str], run: Run
    ) -> None:
        """And needs no --force to be tried again."""
        to_ask(1)
        replies = [answer]
        with serving(lambda request, number: replies[0]) as endpoint:
            ended = run(*self.words(endpoint, "-n", 2, *words))
            assert ended.code == FAILED
            said = ended.err.splitlines()
            assert "id 'q0': 2 of 2 samples: the call failed: " in said[1]
            assert said[3:-1] == [f"calcore: warning: {each}" for each in warnings]
            assert said[-1] == "calcore: a.jsonl is not written: no question was sampled"
            assert re.search(r"^not written: .*\n\d calls and 0 replies .* [12] failed", ended.out)
            assert not Path("a.jsonl").exists()
            replies[0] = Answer("4")
            assert run(*self.words(endpoint, "-n", 2, *words)).code == DONE

    def test_replies_that_may_not_be_answers_are_named(self, run: Run) -> None:
        to_ask(2)
        replies = ["", " ", Answer("Par", finish="length"), Answer("P", finish="content_filter")]
        with serving(lambda request, number: replies[number % 4]) as endpoint:
            ended = run(*self.words(endpoint, "-n", 2, "--concurrency", 1))
            assert (ended.code, ended.err.splitlines()) == (
                DONE,
                [
                    "calcore: warning: replies cut off by the endpoint: 1",
                    "calcore: warning: replies filtered by the endpoint, parts or all of them left out: 1",
                    "calcore: warning: 2 of 4 answers are empty, the first of id q0; they make a class like "
                    "other answers",
                ],
            )
            found = json.loads(run(*self.words(endpoint, "-n", 2, "--json", "--force")).out)
        counts = {"calls": 0, "cached": 4, "retries": 0, "failed": 0, "cut_off": 1, "filtered": 1}
        counts |= {"without_text": 0, "prompt_tokens": 0, "completion_tokens": 0}
        assert found["counts"] == counts | {"repairs": 0, "unfenced": 0, "unusable": 0}
        assert found["empty_answers"] == 2
        sorted_ = json.loads(run("cluster", "a.jsonl", "-o", "c.jsonl", "--json").out)
        assert set(sorted_) == set(found)
        assert set(sorted_["counts"]) == set(found["counts"])
        assert sorted_["empty_answers"] == 2

    def test_confidences_that_cannot_be_read_are_counted(self, run: Run) -> None:
        to_ask(2)
        Path("prompt.txt").write_text("Answer.", encoding="utf-8")
        replies = ['{"answer": "4", "confidence": 90}', "4"]
        with serving(lambda request, number: replies[number % 2]) as endpoint:
            words = ("-n", 4, "--confidence", "--concurrency", 1, "--force")
            said = run(*self.words(endpoint, *words)).err
            assert said == "calcore: warning: 4 of 8 stated confidences cannot be read and are missing\n"
            replies[0] = "4"
            words += ("--prompt", "prompt.txt")
            said = run(*self.words(endpoint, *words)).err
            assert (
                "8 of 8 stated confidences cannot be read and are missing; the text of --prompt has to"
                in said
            )
            found = json.loads(run(*self.words(endpoint, *words, "--json")).out)
            assert found["unread_confidences"] == 8

    def test_a_disk_that_is_full(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        to_ask(9)
        connect = sqlite3.connect

        def small(*words: Any, **options: Any) -> sqlite3.Connection:
            made = connect(*words, **options)
            made.execute("PRAGMA max_page_count = 4")
            return made

        with serving(lambda request, number: "x" * 1000) as endpoint:
            with monkeypatch.context() as patched:
                patched.setattr(sqlite3, "connect", small)
                ended = run(*self.words(endpoint, "-n", 2, "--concurrency", 1))
            first, called, kept = ended.err.splitlines()
            assert (ended.code, ended.out) == (USAGE, "")
            assert first == "calcore: cache 'a.jsonl.cache': there is no room left on its disk"
            assert called.startswith(f"{len(endpoint.requests)} calls and 0 replies from the cache")
            n_kept = int(kept.split()[0])
            assert kept == f"{n_kept} replies are kept in a.jsonl.cache; the same command goes on"
            assert n_kept == len(endpoint.requests) - 1
            assert not Path("a.jsonl").exists()
            ended = run(*self.words(endpoint, "-n", 2))
            assert f"{18 - n_kept} calls and {n_kept} replies from the cache" in ended.out

    def test_a_cache_that_is_damaged(self, run: Run) -> None:
        to_ask(30)
        with serving(lambda request, number: "x" * 1000) as endpoint:
            assert run(*self.words(endpoint, "-n", 2)).code == DONE
            whole = Path("a.jsonl.cache").read_bytes()
            Path("a.jsonl.cache").write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
            for more in (("--force",), ("--force", "--dry-run")):
                ended = run(*self.words(endpoint, "-n", 2, *more))
                assert (ended.code, ended.out) == (USAGE, "")
                assert (
                    "cache 'a.jsonl.cache': it is damaged; delete it or name another, and what" in ended.err
                )

    def test_cache_and_output_are_not_one_file(self, run: Run) -> None:
        """By whatever name, and whether they are there or not."""
        to_ask(1)
        with ReplyCache("a.jsonl"):
            pass
        os.link("a.jsonl", "b.jsonl")
        before = contents()
        with serving(lambda request, number: "4") as endpoint:
            for cache in ("a.jsonl", "./a.jsonl", "b.jsonl", "q.jsonl"):
                ended = run(*self.words(endpoint, "--cache", cache, "--force"))
                assert (ended.code, contents()) == (USAGE, before)
                assert f"--cache {cache}: is also " in ended.err
            words = ("sample", "q.jsonl", "--model", "m", "--base-url", endpoint.url, "--cache", "new.jsonl")
            assert run(*words, "-o", "new.jsonl").code == USAGE
        assert (endpoint.requests, contents()) == ([], before)


class TestSecrets:
    @pytest.mark.parametrize(
        "answer",
        [
            error(401, f"Incorrect API key provided: {SECRET}"),
            error(400, f"bad {SECRET}"),
            error(429, f"slow {SECRET}", code="insufficient_quota"),
            error(500, f"failed with {SECRET}"),
            Answer(body=b"{" + SECRET.encode()),
            Answer("4"),
        ],
        ids=["401", "400", "429", "500", "no JSON", "good"],
    )
    @pytest.mark.parametrize("debug", ["", "1"])
    def test_key_is_nowhere(
        self, answer: Answer, debug: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("CALCORE_DEBUG", debug)
        to_ask(2)
        with serving(lambda request, number: answer) as endpoint:
            ended = run(
                "sample",
                "q.jsonl",
                "-o",
                "a.jsonl",
                "--model",
                "m",
                "--base-url",
                endpoint.url,
                "--retries",
                1,
            )
        assert endpoint.keys == {f"Bearer {SECRET}"}
        assert SECRET not in ended.out + ended.err
        for path in tmp_path.rglob("*"):
            assert SECRET.encode() not in path.read_bytes(), path


def answered(n: int = 30, name: str = "a.jsonl") -> str:
    rng = np.random.default_rng(20260513)
    return written(
        name,
        *(
            {
                "id": f"q{i}",
                "question": "Capital?",
                "gold_answer": "Paris" if rng.random() < 0.6 else "Lyon",
                "answers": rng.choice(["Paris", "paris", "Lyon", "Nice"], 6).tolist(),
            }
            for i in range(n)
        ),
    )


class TestJudges:
    def test_llm_sorts_and_grades(self, run: Run) -> None:
        def script(request: dict[str, Any], number: int) -> str:
            given = json.loads(request["messages"][1]["content"])
            if "reference_answer" in given:
                return '{"grade": "CORRECT"}' if given["answer"] == given["reference_answer"] else "hm"
            classes: dict[str, list[int]] = {}
            for each in given["answers"]:
                classes.setdefault(each["answer"].lower(), []).append(each["number"])
            found = json.dumps({"classes": list(classes.values())})
            return found if len(request["messages"]) > 2 or number % 3 else f"```\n{found}\n```"

        answered()
        with serving(script) as endpoint:
            llm = ("--judge", "llm", "--model", "m", "--base-url", endpoint.url)
            dry = run("cluster", "a.jsonl", "-o", "c.jsonl", *llm, "--dry-run", "--json")
            planned = json.loads(dry.out)
            assert (planned["questions"], planned["cached"], len(endpoint.requests)) == (30, 0, 0)
            ended = run("cluster", "a.jsonl", "-o", "c.jsonl", *llm, "--concurrency", 1)
            assert (ended.code, ended.err) == (DONE, "")
            assert len(endpoint.requests) == planned["calls"]
            said = re.search(r"judge: 0 sent back, (\d+) taken out of a code fence, 0 unusable", ended.out)
            assert said is not None
            assert int(said[1]) >= planned["calls"] // 3  # replies from the cache are read again
            run("cluster", "a.jsonl", "-o", "e.jsonl")
            assert Path("c.jsonl").read_bytes() == Path("e.jsonl").read_bytes()
            ended = run("grade", "c.jsonl", "-o", "g.jsonl", *llm, "--repairs", 1, "--json")
            found = json.loads(ended.out)
        grades = [each.grade for each in read_questions("g.jsonl") if isinstance(each, Question)]
        assert ended.code == DONE
        assert set(grades) == {1, None}
        assert found["graded"] == found["correct"] == grades.count(1)
        assert found["counts"]["unusable"] >= grades.count(None) > 0

    def test_a_judge_that_is_mended_is_asked_again(self, run: Run) -> None:
        answered(1)
        replies = ["hm"]
        with serving(lambda request, number: replies[0]) as endpoint:
            llm = ("--judge", "llm", "--model", "m", "--base-url", endpoint.url)
            assert run("cluster", "a.jsonl", "-o", "c.jsonl", *llm).code == FAILED
            assert not Path("c.jsonl").exists()
            assert (
                "1 calls, of which 0 are in"
                in run("cluster", "a.jsonl", "-o", "c.jsonl", *llm, "--dry-run").out
            )
            (row,) = map(json.loads, Path("a.jsonl").read_text(encoding="utf-8").splitlines())
            replies[0] = json.dumps({"classes": [list(range(1, len(set(row["answers"])) + 1))]})
            assert run("cluster", "a.jsonl", "-o", "c.jsonl", *llm).code == DONE
            replies[0] = "hm"
            ended = run("grade", "c.jsonl", "-o", "g.jsonl", *llm)
            assert (ended.code, Path("g.jsonl").exists()) == (FAILED, False)
            assert "g.jsonl is not written: no question was graded" in ended.err
            replies[0] = '{"grade": "CORRECT"}'
            assert run("grade", "c.jsonl", "-o", "g.jsonl", *llm).code == DONE

    def test_equal_questions_are_paid_once(self, run: Run) -> None:
        """Sixteen of the same words under way at once: as many calls as the dry run says."""
        written("a.jsonl", *({"id": f"q{i}", "question": "?", "answers": ["x", "y"]} for i in range(16)))
        reply = Answer('{"classes": [[1, 2]]}', delay=0.2)
        with serving(lambda request, number: reply) as endpoint:
            words = ("cluster", "a.jsonl", "-o", "c.jsonl", "--judge", "llm", "--model", "m")
            ended = run(*words, "--base-url", endpoint.url)
        assert "\n1 calls and 15 replies from the cache" in ended.out
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize(
        ("words", "row", "why"),
        [
            (("sample", "--model", "m"), {"question": "?", "answers": ["x"]}, "no question was sampled"),
            (("cluster",), {"question": "?"}, "no question was sorted"),
            (("grade",), {"answers": ["x"], "gold_answer": "x"}, "no question was graded"),
            (("cluster",), None, "a.jsonl holds no questions"),
        ],
    )
    def test_nothing_done_is_a_fault(
        self, words: tuple[str, ...], row: dict[str, Any] | None, why: str, run: Run
    ) -> None:
        written("a.jsonl", *([] if row is None else [{"id": "a"} | row]))
        ended = run(words[0], "a.jsonl", "-o", "x.jsonl", *words[1:], "--json")
        assert ended.code == USAGE
        assert json.loads(ended.out)["output"] is None
        assert ended.err.splitlines()[-1] == f"calcore: x.jsonl is not written: {why}"
        assert not Path("x.jsonl").exists()

    def test_what_a_judge_cannot_sort_is_named(self, run: Run) -> None:
        answered(2)
        with serving(lambda request, number: '{"classes": [[1]]}') as endpoint:
            ended = run(
                *("cluster", "a.jsonl", "-o", "c.jsonl", "--judge", "llm", "--model", "m"),
                *("--base-url", endpoint.url, "--repairs", 0, "--json"),
            )
        assert ended.code == FAILED
        found = json.loads(ended.out)
        assert (found["questions"], [each["stage"] for each in found["misfits"]]) == (0, ["reply", "reply"])
        assert "no usable reply in 1; the last: in no class: answer 2" in ended.err

    def test_hostile_answers_do_not_reach_the_terminal(self, run: Run) -> None:
        nasty = "\x1b]0;owned\x07\x1b[2J\r\u202e"
        rows = [
            {
                "id": nasty,
                "question": nasty,
                "answers": [nasty, nasty + "x"],
                "gold_answer": nasty,
                "note": nasty,
            },
            {"id": nasty + "2", "answers": nasty},
        ]
        written("a.jsonl", *rows)
        outputs = [
            run("cluster", "a.jsonl", "-o", "c.jsonl"),
            run("grade", "c.jsonl", "-o", "g.jsonl"),
            run("score", "g.jsonl", "--resamples", 99),
            run("score", "a.jsonl"),
        ]
        for ended in outputs:
            assert not set(ended.out + ended.err) & set("\x1b\x07\r\u202e")
        (found,) = read_questions("g.jsonl")
        assert isinstance(found, Question)
        assert (found.id, found.answers, found.others) == (nasty, (nasty, nasty + "x"), {"note": nasty})


class TestScore:
    def test_several_files_and_faults_that_name_them_once(self, run: Run) -> None:
        rows = [{"id": f"q{i}", "assignments": [0, 0, 1], "Y": i % 2} for i in range(40)]
        written("a.jsonl", *rows[:15])
        written("b.jsonl", *rows[15:])
        written("all.jsonl", *rows)
        words = ("--resamples", 99, "--json")
        both = json.loads(run("score", "a.jsonl", "b.jsonl", *words).out)
        one = json.loads(run("score", "all.jsonl", *words).out)
        assert (both.pop("files"), one.pop("files")) == (["a.jsonl", "b.jsonl"], ["all.jsonl"])
        assert both == one
        assert "2 files" in run("score", "[ab].jsonl", "--resamples", 99).out
        Path("bad.parquet").write_bytes(b"no")
        assert run("score", "bad.parquet").err.count("bad.parquet") == 1

    def graded(self, run: Run, name: str = "g.jsonl") -> str:
        answered(40)
        run("cluster", "a.jsonl", "-o", "c.jsonl", "--force")
        run("grade", "c.jsonl", "-o", name, "--classes", "all", "--force")
        return name

    def test_text(self, run: Run) -> None:
        ended = run("score", self.graded(run), "--resamples", 99, "--seed", 3)
        assert (ended.code, ended.err) == (DONE, "")
        assert "seed 3" in ended.out
        for heading in (
            "confidence ",
            "difference of ",
            "margin ",
            "Low margins",
            "Accuracy ",
            "How to read it",
        ):
            assert f"\n{heading}" in ended.out
        assert all(len(line) <= 100 for line in ended.out.splitlines())
        assert run("score", "g.jsonl", "--resamples", 99, "--seed", 3) == ended

    def test_every_option_reaches_the_library(self, run: Run) -> None:
        self.graded(run)
        words = ("--bins", 5, "--splits", 3, "--ties", "random", "--correctness", "split")
        words += ("--resamples", 199, "--delta", 0.1, "--seed", 5, "--missing-verbalized", 0.5)
        found = json.loads(run("score", "g.jsonl", "--json", *words).out)
        expected = score_samples(
            gather_samples(read_questions("g.jsonl")).samples,
            n_bins=5,
            n_splits=3,
            ties="random",
            correctness="split",
            n_resamples=199,
            delta=0.1,
            seed=5,
            missing_verbalized=0.5,
        )
        for name, value in json.loads(json.dumps(expected.to_dict())).items():
            assert found[name] == value, name

    def test_split_needs_grades_of_classes(self, run: Run) -> None:
        answered(40)
        run("cluster", "a.jsonl", "-o", "c.jsonl")
        with writing_questions("g.jsonl") as write:
            for each in read_questions("c.jsonl"):
                assert isinstance(each, Question)
                write(Question(each.id, assignments=each.assignments, grade=1))
        ended = run("score", "g.jsonl", "--correctness", "split")
        assert ended.code == USAGE
        assert "--correctness split needs grades of all classes, which 'calcore semantic grade" in ended.err

    def test_versus_another_judge(self, run: Run) -> None:
        self.graded(run)
        pairs = []
        with writing_questions("other.jsonl") as write:
            for each in read_questions("g.jsonl"):
                assert isinstance(each, Question)
                assert each.answers is not None
                classes = tuple(int(text == "Nice") for text in each.answers)
                pairs.append((each.assignments or (), classes))
                write(Question(each.id, answers=each.answers, assignments=classes, grade=each.grade))
        words = ("score", "g.jsonl", "--versus", "other.jsonl", "--resamples", 99)
        found = json.loads(run(*words, "--json").out)
        assert found["agreement"] == judge_agreement(pairs).to_dict()
        both = {name: gather_samples(read_questions(f"{name}.jsonl")).samples for name in ("g", "other")}
        expected = compare_semantic(both, n_resamples=99)
        assert found["comparison"] == json.loads(json.dumps(expected.to_dict()))
        assert found["versus"]["files"] == ["other.jsonl"]
        text = run(*words).out
        assert "Two judges of the same answers to 40 questions: Rand index" in " ".join(text.split())
        assert "\ng minus other " in text
        assert text.count("How to read it") == 1

    def test_versus_another_model_says_nothing_of_judges(self, run: Run) -> None:
        self.graded(run)
        with writing_questions("other.jsonl") as write:
            for each in read_questions("g.jsonl"):
                assert isinstance(each, Question)
                write(Question(each.id, answers=("x",) * 6, assignments=(0,) * 6, grade=1))
        found = json.loads(
            run("score", "g.jsonl", "--versus", "other.jsonl", "--resamples", 99, "--json").out
        )
        assert found["agreement"] is None

    def test_misfits(self, run: Run) -> None:
        name = self.graded(run)
        with Path(name).open("a") as file:
            file.write('{"id": "late"}\n{bad\n')
        ended = run("score", name, "--resamples", 99, "--json")
        assert (ended.code, json.loads(ended.out)["n_misfits"]) == (DONE, 2)
        assert "calcore: warning: g.jsonl: 2 questions do not fit:" in ended.err
        ended = run("score", name, "--strict")
        assert (ended.code, ended.out) == (USAGE, "")
