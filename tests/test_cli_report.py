"""The commands report, curve and compare: files, what is printed, and what to do about faults."""

from __future__ import annotations

import bisect
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import calcore
from calcore import cli, simulate
from calcore.cli.commands import report as report_command
from calcore.cli.process import DONE, USAGE

SEED = 20240614
B = "99"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process."""

    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["calcore", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Ended(code or 0, *capsys.readouterr())

    return call


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALCORE_DEBUG", raising=False)


def columns(n: int = 1500) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    labels, scores = simulate.rows(n, shape="square", seed=SEED)
    return np.asarray(labels), np.asarray(scores)


@pytest.fixture
def job() -> Path:
    """A file of labels, the scores of two models, segments, and probabilities of three classes."""
    labels, old = columns()
    n = len(labels)
    rng = np.random.default_rng(SEED)
    P = rng.dirichlet([2.0, 1.0, 1.0], n)
    classes = np.array(["cat", "dog", "eel"])[(rng.random(n)[:, None] > P.cumsum(axis=1)).sum(axis=1)]
    rows = {"late": labels, "old": old, "new": old**2, "region": ["north", "south", "<i>"] * (n // 3)}
    rows |= {"kind": classes} | {name: P[:, j] for j, name in enumerate(("cat", "dog", "eel"))}
    parquet.write_table(pa.table(rows), "a.parquet")
    return Path("a.parquet")


class TestReport:
    WORDS = ("report", "a.parquet", "--label", "late", "--score", "old", "--resamples", B)

    def test_writes_beside_the_input_and_says_the_verdict(self, job: Path, run: Run) -> None:
        ended = run(*self.WORDS, "--json", "out.json", "--seed", "7")
        assert (ended.code, ended.err) == (DONE, "")
        labels, old = columns()
        expected = calcore.evaluate(labels, old, name="old", n_resamples=int(B), rng=7)
        assert " ".join(ended.out.split("\n\n")[0].split()) == expected.verdict
        assert ended.out.endswith("\n\nReport: a.report.html\nNumbers: out.json\n")
        page = Path("a.report.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        given = json.loads(Path("out.json").read_text())
        want = json.loads(json.dumps(expected.to_dict()))
        for key in want.keys() - {"command"}:
            assert given[key] == want[key], key

    def test_two_columns_need_no_options(self, run: Run) -> None:
        Path("p.csv").write_text("late,p\n" + "0,0.25\n1,0.75\n" * 40)
        assert run("report", "p.csv", "--resamples", B).code == DONE
        assert Path("p.report.html").exists()

    def test_command_in_the_report_reproduces_it(self, job: Path, run: Run) -> None:
        words = (
            "--by",
            "region",
            "--name",
            "it's p",
            "--delta",
            "0.1",
            "--variation",
            "2",
            "--json",
            "1.json",
        )
        assert run(*self.WORDS, *words).code == DONE
        first = json.loads(Path("1.json").read_text())
        again = shlex.split(first["command"])
        assert again[0] == "calcore"
        assert run(*again[1:], "-o", "2.html", "--json", "2.json").code == DONE
        assert json.loads(Path("2.json").read_text()) == first
        assert Path("2.html").read_text() == Path("a.report.html").read_text()

    def test_segments(self, job: Path, run: Run) -> None:
        assert run(*self.WORDS, "--by", "region", "--json", "out.json").code == DONE
        given = json.loads(Path("out.json").read_text())
        assert given["segments_by"] == "region"
        assert "&lt;i&gt;" in Path("a.report.html").read_text()
        assert "<i>" not in Path("a.report.html").read_text()

    @pytest.mark.parametrize("by", [[], ["--by", "region"]])
    def test_first_choice_of_several_classes(self, job: Path, run: Run, by: list[str]) -> None:
        words = ("report", "a.parquet", "--label", "kind", "--classes", "cat,dog,eel", "--resamples", B)
        assert run(*words, *by, "--json", "out.json").code == DONE
        given = json.loads(Path("out.json").read_text())
        rows = parquet.read_table("a.parquet")
        P = np.column_stack([rows[name].to_numpy() for name in ("cat", "dog", "eel")])
        expected = calcore.certify_top_label(rows["kind"].to_pylist(), P, labels=["cat", "dog", "eel"], rng=0)
        assert given["event"] == "top label"
        assert (given["certificate"]["lower"], given["certificate"]["upper"]) == (
            expected.lower,
            expected.upper,
        )
        assert "the first choice is right" in Path("a.report.html").read_text()

    def test_never_writes_over_a_file(self, job: Path, run: Run) -> None:
        Path("a.report.html").write_text("mine")
        ended = run(*self.WORDS)
        assert (ended.code, ended.out) == (USAGE, "")
        assert "a.report.html: there is such a file already; --force writes over it" in ended.err
        assert Path("a.report.html").read_text() == "mine"
        assert run(*self.WORDS, "--force").code == DONE
        assert Path("a.report.html").read_text() != "mine"
        assert "is also an input" in run(*self.WORDS, "-o", "a.parquet", "--force").err
        assert "both name x.html" in run(*self.WORDS, "-o", "x.html", "--json", "x.html").err

    @pytest.mark.parametrize(
        ("text", "words", "says"),
        [
            ("late,p\n0,.2\n", ["--score", "q"], "no column q"),
            ("late,p\n0,20\n1,75\n", [], "percent"),
            ("late,p\n0,-1.5\n1,2.5\n", [], "logits"),
            ("late,p\nyes,.2\nno,.7\n", ["--label", "late", "--score", "p"], "--pos-label"),
            ("late,p\n", [], "no rows"),
            ("", [], "p.csv"),
            ("late,p\n0,.2\n1,\n", [], "p.csv"),
        ],
    )
    def test_faults_of_files_say_what_to_do(self, run: Run, text: str, words: list[str], says: str) -> None:
        Path("p.csv").write_text(text)
        ended = run("report", "p.csv", *words)
        assert (ended.code, ended.out) == (USAGE, "")
        assert says in ended.err
        assert len(ended.err) < 600
        assert sorted(os.listdir()) == ["p.csv"]

    def test_yes_and_no_with_the_option(self, run: Run) -> None:
        Path("p.csv").write_text("late,p\n" + "yes,.7\nno,.2\nno,.3\n" * 20)
        assert run("report", "p.csv", "--pos-label", "yes", "--resamples", B).code == DONE

    @pytest.mark.parametrize("rows", ["0,.2\n1,.7\n1,.6\n", "0,.2\n0,.3\n" * 30])
    def test_too_few_rows(self, run: Run, rows: str) -> None:
        Path("p.csv").write_text("late,p\n" + rows)
        ended = run("report", "p.csv", "--label", "late", "--score", "p", "--resamples", B)
        assert (ended.code, ended.err) == (DONE, "")
        assert ended.out.startswith("Too few rows: ")

    def test_classes_by_name_pattern_and_list(self, run: Run) -> None:
        """Four ways to say the same columns give the same numbers."""
        rng = np.random.default_rng(SEED)
        P = rng.dirichlet([2.0, 1.0, 1.0], 300)
        codes = (rng.random(300)[:, None] > P.cumsum(axis=1)).sum(axis=1)
        names = np.array(["cat", "dog", "eel"])
        lists = pa.FixedSizeListArray.from_arrays(pa.array(P.ravel()), 3)
        rows = {"y": names[codes], "code": codes, "p_cat": P[:, 0], "p_dog": P[:, 1], "p_eel": P[:, 2]}
        rows |= {"P": lists, "L": pa.array(P.tolist()), "q1": P[:, 1], "q0": P[:, 0], "q2": P[:, 2]}
        parquet.write_table(pa.table(rows), "a.parquet")
        np.savez("a.npz", code=codes, P=P)
        found = []
        for words in (
            ("a.parquet", "--label", "y", "--classes", "p_cat,p_dog,p_eel", "--class-labels", "cat,dog,eel"),
            ("a.parquet", "--label", "y", "--classes", "p_*"),
            ("a.parquet", "--label", "code", "--classes", "P"),
            ("a.parquet", "--label", "code", "--classes", "L"),
            ("a.parquet", "--label", "y", "--classes", "L", "--class-labels", "cat,dog,eel"),
            ("a.npz", "--label", "code", "--classes", "P"),
            ("a.parquet", "--label", "code", "--classes", "q?", "--class-labels", "1,0,2"),
            ("a.parquet", "--label", "code", "--classes", "q*"),
        ):
            ended = run("report", *words, "--resamples", B, "--json", "o.json", "-o", "o.html", "--force")
            assert (ended.code, ended.err) == (DONE, ""), words
            found.append(json.loads(Path("o.json").read_text()))
            assert shlex.split(found[-1]["command"])[2:6] == [
                "a.npz" if "npz" in words[0] else "a.parquet",
                *words[1:4],
            ]
        text = [each["classes"]["names"] for each in found]
        assert text[0] == text[1] == text[4] == ["cat", "dog", "eel"]
        assert text[2] == ["P[0]", "P[1]", "P[2]"]
        assert text[6] == text[7] == [1, 0, 2]
        for each in found[1:]:
            for name in ("brier", "accuracy", "classwise_ece", "conf_ce"):
                assert each["classes"][name] == pytest.approx(found[0]["classes"][name], rel=1e-12), name
        assert found[7]["classes"]["ece"] == found[6]["classes"]["ece"]
        assert found[7]["classes"]["ece"][:2] == found[0]["classes"]["ece"][1::-1]
        page = Path("o.html").read_text()
        assert 'id="classes"' in page

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            ("--label y --classes r_*", "a.parquet: no column matches r_* (--classes); it has y, "),
            (
                "--label y --classes P",
                "column y holds text: say which label each of the 2 numbers of P",
            ),
            ("--label code --classes P,p", "column P (--classes) holds lists, not numbers"),
            (
                "--label code --classes R",
                "column R (--classes) must have 2 numbers in every row; got 3",
            ),
            ("--label code --classes N", "column N (--classes) has a missing value at data row 2"),
            (
                "--label code --classes P --class-labels 0",
                "--class-labels must name every column of --classes",
            ),
            ("--label P --classes p,q", "column P holds fixed_size_list<"),
            (
                "--label code --score P",
                "[2], not numbers, truth values or text",
            ),
        ],
    )
    def test_faults_of_classes(self, run: Run, words: str, says: str) -> None:
        fixed = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 4), 2)
        rows = {"y": ["a", "b"], "code": [0, 1], "P": fixed, "p": [0.5, 0.5], "q": [0.5, 0.5]}
        rows |= {"R": [[0.5, 0.5], [0.5, 0.25, 0.25]], "N": [[0.5, 0.5], [0.5, None]]}
        parquet.write_table(pa.table(rows), "a.parquet")
        ended = run("report", "a.parquet", *words.split(), "--resamples", B)
        assert (ended.code, ended.out) == (USAGE, "")
        assert says in ended.err

    def test_groups(self, job: Path, run: Run) -> None:
        assert run(*self.WORDS, "--groups", "kind", "--json", "o.json", "--seed", "3").code == DONE
        given = json.loads(Path("o.json").read_text())
        n = parquet.read_metadata("a.parquet").num_rows
        assert (given["data"]["n"], given["n_dropped"]) == (3, n - 3)
        assert "--groups kind" in given["command"]
        certified = run("certify", *self.WORDS[1:6], "--groups", "kind", "--seed", "3", "--json").out
        assert json.loads(certified)["upper"] == given["certificate"]["upper"]
        assert "One random row of each group was kept, 3 of " in Path("a.report.html").read_text()

    def test_several_models(self, job: Path, run: Run) -> None:
        words = ("--score", "new", "--by", "region", "--json", "o.json")
        ended = run(*self.WORDS, *words)
        assert (ended.code, ended.err) == (DONE, "")
        assert ended.out.startswith("By the Brier score new is better than old: distinguishable")
        labels, old = columns()
        by = parquet.read_table("a.parquet")["region"].to_pylist()
        expected = calcore.evaluate_models(
            labels, {"old": old, "new": old**2}, by=by, n_resamples=int(B), rng=0
        )
        given, want = json.loads(Path("o.json").read_text()), json.loads(json.dumps(expected.to_dict()))
        assert given.keys() == want.keys()
        for key in ("comparison", "certified", "verdict", "delta"):
            assert given[key] == want[key], key
        for one, other in zip(given["models"], want["models"], strict=True):
            for key in one.keys() - {"command", "segments_by"}:
                assert one[key] == other[key], key
        again = shlex.split(given["models"][1]["command"])
        assert run(*again[1:], "-o", "2.html", "--json", "2.json").code == DONE
        assert json.loads(Path("2.json").read_text()) == given
        page = Path("a.report.html").read_text()
        assert page.index('id="models"') < page.index('id="m1-verdict"') < page.index('id="m2-verdict"')

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            ("--score old", "--score names twice the column old"),
            ("--score new --name x", "--name is for one model"),
            ("--score none", "no column none (--score)"),
        ],
    )
    def test_faults_of_several_models(self, job: Path, run: Run, words: str, says: str) -> None:
        ended = run(*self.WORDS, *words.split())
        assert (ended.code, ended.out) == (USAGE, "")
        assert says in ended.err

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            ("--delta 2", "--delta must lie strictly between 0 and 1"),
            ("--resamples 5", "--resamples must be at least 39 for --delta 0.05; got 5"),
            ("--variation -1", "--variation"),
            ("--class-labels a,b", "name the columns with --classes too"),
            ("--classes old,new", "leave out --score and --pos-label"),
            ("--by nothing", "no column nothing"),
            ("-o missing/x.html", "no such directory"),
        ],
    )
    def test_faults_of_options(self, job: Path, run: Run, words: str, says: str) -> None:
        typed = self.WORDS[:-2] if "--resamples" in words else self.WORDS
        ended = run(*typed, *words.split())
        assert (ended.code, ended.out) == (USAGE, "")
        assert says in ended.err
        assert sorted(os.listdir()) == ["a.parquet"]

    def test_several_files_need_an_output(self, job: Path, run: Run) -> None:
        Path("b.parquet").write_bytes(job.read_bytes())
        words = ("report", "*.parquet", "--label", "late", "--score", "old", "--resamples", B)
        assert "--output is missing: these are 2 files" in run(*words).err
        assert run(*words, "-o", "both.html").code == DONE

    def test_tables_have_no_rows(self, job: Path, run: Run) -> None:
        assert (
            run("table", "build", "a.parquet", "--label", "late", "--score", "old", "-o", "a.table").code == 0
        )
        assert "a saved table has no single rows" in run("report", "a.table").err

    @pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
    def test_says_what_is_missing(
        self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch, package: str
    ) -> None:
        monkeypatch.setattr(report_command, "find_spec", lambda name: None if name == package else name)
        assert f"needs {package}: pip install 'calcore-calibration[report]'" in run(*self.WORDS).err


class TestCurve:
    WORDS = ("curve", "a.parquet", "--label", "late", "--score", "old")

    @pytest.mark.parametrize("strategy", ["uniform", "quantile"])
    def test_gives_the_numbers_of_python(self, job: Path, run: Run, strategy: Any) -> None:
        given = json.loads(run(*self.WORDS, "--json", "--strategy", strategy).out)
        expected = calcore.ece_curve(*columns(), strategy=strategy).to_dict()
        assert {key: given[key] for key in expected} == expected
        assert given["columns"] == {"label": "late", "score": "old"}

    def test_text(self, job: Path, run: Run) -> None:
        ended = run(*self.WORDS)
        found = calcore.ece_curve(*columns())
        assert ended.err == ""
        rows = {
            line.split()[0]: line.split()[1] for line in ended.out.splitlines() if line.startswith("    ")
        }
        for k in (5, 10, 15, 20, 50, found.suggested):
            assert rows[str(k)] == f"{found.ece[k - 5]:.4f}"
        assert "compare says what can be told apart" in " ".join(ended.out.split())

    @pytest.mark.parametrize(
        ("name", "start"), [("c.svg", b"<?xml"), ("c.png", b"\x89PNG"), ("c.pdf", b"%PDF-")]
    )
    def test_picture(self, job: Path, run: Run, name: str, start: bytes) -> None:
        assert run(*self.WORDS, "--plot", name).code == DONE
        first = Path(name).read_bytes()
        assert first.startswith(start)
        assert "already" in run(*self.WORDS, "--plot", name).err
        assert run(*self.WORDS, "--plot", name, "--force").code == DONE
        assert Path(name).read_bytes() == first

    def test_unknown_kind_of_picture(self, job: Path, run: Run) -> None:
        assert "--plot writes .svg, .png, .pdf" in run(*self.WORDS, "--plot", "c.gif").err

    def test_tables_too(self, job: Path, run: Run) -> None:
        assert run("table", "build", *self.WORDS[1:], "-o", "a.table").code == DONE
        given = json.loads(run("curve", "a.table", "--json").out)
        labels, scores = columns()
        for k, value in zip(given["n_bins"], given["ece"], strict=True):
            assert abs(value - calcore.ece(labels, scores, n_bins=k)) <= 1e-9  # sums of 2^-30 of a cell


class TestCompare:
    WORDS = ("compare", "a.parquet", "--score", "new", "--versus", "old", "--label", "late", "--resamples", B)

    def test_resampled_differences_are_those_of_python(self, job: Path, run: Run) -> None:
        given = json.loads(run(*self.WORDS, "--json", "--seed", "3").out)["resampled"]
        labels, old = columns()
        expected = calcore.compare(labels, {"new": old**2, "old": old}, n_resamples=int(B), rng=3)
        assert given == json.loads(json.dumps(expected.to_dict()))

    def test_text_says_what_can_be_told_apart(self, job: Path, run: Run) -> None:
        labels, old = columns()
        found = calcore.compare(labels, {"new": old**2, "old": old}, n_resamples=int(B), rng=0)
        out = run(*self.WORDS).out
        for each in found.differences:
            row = next(line for line in out.splitlines() if line.startswith(f"  {each.metric} "))
            assert f"{each.difference:.3g}" in row.split()
            assert each.verdict in row
            assert ("(biased)" in row) == each.is_biased

    def test_can_be_left_out(self, job: Path, run: Run) -> None:
        assert "resampling" not in run(*self.WORDS[:-1], "0").out
        assert json.loads(run(*self.WORDS[:-1], "0", "--json").out)["resampled"] is None
        assert "--resamples must be at least 39" in run(*self.WORDS[:-1], "5").err

    def test_infinite_log_loss_is_not_compared(self, run: Run) -> None:
        rows = {"y": [0, 1] * 50, "a": [0.25, 0.75] * 50, "b": [0.25, 0.0] * 50}
        parquet.write_table(pa.table(rows), "a.parquet")
        out = run("compare", "a.parquet", "--score", "a", "--versus", "b", "--resamples", B).out
        assert next(line for line in out.splitlines() if "log_loss" in line).endswith("not compared")


class TestCompareFiles:
    @pytest.fixture
    def two(self) -> None:
        labels, old = columns(300)
        order = np.random.default_rng(SEED).permutation(300)
        names = np.array([f"row {i}" for i in range(300)])
        parquet.write_table(pa.table({"id": names, "late": labels, "p": old**2}), "a.parquet")
        rows = {"id": names[order], "late": labels[order], "p": old[order]}
        parquet.write_table(pa.table(rows), "b.parquet")

    WORDS = ("compare", "a.parquet", "b.parquet", "--label", "late", "--score", "p", "--resamples", B)

    def test_rows_are_matched(self, two: None, run: Run) -> None:
        ended = run(*self.WORDS, "--on", "id", "--json")
        assert (ended.code, ended.err) == (DONE, "")
        given = json.loads(ended.out)
        labels, old = columns(300)
        expected = calcore.certify_difference(labels, old**2, old, rng=0).to_dict()
        assert {key: given[key] for key in expected} == json.loads(json.dumps(expected))
        assert given["columns"] == {"label": "late", "score": "p", "versus": "p", "groups": None, "on": "id"}
        assert given["resampled"]["models"] == ["a.parquet: p", "b.parquet: p"]

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda t: t.slice(1), "b.parquet: has no row with id row "),
            (lambda t: pa.concat_tables([t, t.slice(0, 2)]), "several times (and 1 more)"),
            (lambda t: t.set_column(1, "late", pa.array([0, 1] * 150)), "labels must agree in both files"),
            (lambda t: t.set_column(0, "id", pa.array(range(300))), "one type in both files"),
            (lambda t: t.rename_columns(["key", "late", "p"]), "no column id"),
        ],
    )
    def test_rows_that_do_not_match(
        self, two: None, run: Run, change: Callable[[pa.Table], pa.Table], says: str
    ) -> None:
        parquet.write_table(change(parquet.read_table("b.parquet")), "b.parquet")
        ended = run(*self.WORDS, "--on", "id")
        assert (ended.code, ended.out) == (USAGE, "")
        assert says in ended.err

    def test_options_that_do_not_fit(self, two: None, run: Run) -> None:
        assert "--versus is missing" in run(*self.WORDS).err
        assert "joins two files; got 1" in run(*self.WORDS[:2], *self.WORDS[3:], "--on", "id").err

    def test_groups_are_those_of_the_first_file(self, two: None, run: Run) -> None:
        words = (*self.WORDS, "--on", "id", "--groups", "id", "--json")
        given = json.loads(run(*words).out)
        alone = json.loads(run(*self.WORDS, "--on", "id", "--json").out)
        assert given["columns"]["groups"] == "id"
        assert given["resampled"]["n_groups"] == given["n"]  # every row is a group of its own
        assert given["mean_brier_difference"] == alone["mean_brier_difference"]

    def test_what_takes_one_value_is_given_once(self, two: None, run: Run) -> None:
        for words in (("--score", "q"), ("--delta", "0.1", "--delta", "0.2"), ("--label", "late")):
            ended = run(*self.WORDS, "--on", "id", *words)
            assert (ended.code, ended.out) == (USAGE, "")
            assert ended.err == f"calcore: {words[0]} is given twice; it takes one value\n"


class TestBinSweep:
    """The shipped rows of two models, whose true calibration errors are .03 and .06.

    What is compared and resampled are the shipped rows with the default seed, so verdicts are fixed.
    """

    FILE = str(Path(calcore.__file__).parent / "datasets" / "bin_sweep.parquet")
    COMPARE = ("compare", FILE, "--score", "steady", "--versus", "wavy", "--variation", "3")

    @staticmethod
    def brier(name: str) -> float:
        rows = parquet.read_table(TestBinSweep.FILE).to_pydict()
        each = zip(rows["happened"], rows[name], strict=True)
        return sum((y - p) ** 2 for y, p in each) / len(rows[name])

    @staticmethod
    def ece(name: str, k: int) -> float:
        """By definition, row by row: how far from 0 the sums of y - p over the bins are."""
        rows = parquet.read_table(TestBinSweep.FILE).to_pydict()
        sums = [0.0] * k
        for y, p in zip(rows["happened"], rows[name], strict=True):
            sums[min(bisect.bisect_right([i / k for i in range(k + 1)], p) - 1, k - 1)] += y - p
        return sum(map(abs, sums)) / len(rows[name])

    def test_curves_cross(self, run: Run) -> None:
        """As the construction says: over 10 and 15 bins the more wrong model is ahead, over 20 behind."""
        ece: dict[tuple[str, int], float] = {}
        for name in ("steady", "wavy"):
            words = ("curve", self.FILE, "--label", "happened", "--score", name, "--json")
            given = json.loads(run(*words).out)
            ece |= {(name, k): e for k, e in zip(given["n_bins"], given["ece"], strict=True)}
            for k in (10, 15, 20):
                assert ece[name, k] == pytest.approx(self.ece(name, k), abs=1e-12)
        assert ece["wavy", 10] < ece["wavy", 15] < ece["steady", 15]
        assert ece["steady", 20] < ece["wavy", 20]

    def test_each_number_of_bins_says_something_else(self, run: Run) -> None:
        given = json.loads(run(*self.COMPARE, "--json").out)
        found = {each["metric"]: each for each in given["resampled"]["differences"]}
        for k in (10, 15, 20):
            expected = self.ece("steady", k) - self.ece("wavy", k)
            assert found[f"ece@{k}"]["difference"] == pytest.approx(expected, abs=1e-12)
        signs = {name: np.sign(each["difference"]) for name, each in found.items()}
        assert (signs["ece@10"], signs["ece@15"], signs["ece@20"]) == (1, 1, -1)
        verdicts = {name: each["verdict"] for name, each in found.items()}
        assert verdicts["ece@15"] == "not distinguishable"
        assert verdicts["ece@10"] == verdicts["ece@20"] == "distinguishable"
        assert all(found[f"ece@{k}"]["is_biased"] for k in (10, 15, 20))

    def test_proper_scores_decide(self, run: Run) -> None:
        ended = run(*self.COMPARE)
        assert (ended.code, ended.err) == (DONE, "")
        said = " ".join(ended.out.split())
        assert "Brier and log_loss decide which model is better; the others say what differs." in said
        given = json.loads(run(*self.COMPARE, "--json").out)
        found = {each["metric"]: each for each in given["resampled"]["differences"]}
        expected = self.brier("steady") - self.brier("wavy")
        assert found["brier"]["difference"] == pytest.approx(expected, abs=1e-12)
        for name in ("brier", "log_loss"):
            assert found[name]["difference"] < 0.0
            assert found[name]["verdict"] == "distinguishable"

    def test_certificates_hold_the_true_errors(self, run: Run) -> None:
        """And the certified differences the true ones: .03 - .06, and .0009 - .0036 for the Brier score."""
        given = json.loads(run(*self.COMPARE, "--resamples", "0", "--json").out)
        for name, true in (("a", 0.03), ("b", 0.06), ("ce_difference", -0.03), ("brier_difference", -0.0027)):
            assert given[name]["lower"] <= true <= given[name]["upper"], name


ROWS = [(0, 0.2, 0.1), (1, 0.7, 0.9), (1, 0.6, 0.4), (0, 0.3, 0.5)] * 20
COMMANDS = {
    "report": ("--score", "p", "--resamples", B, "-o", "out.html", "--force"),
    "curve": ("--score", "p"),
    "compare": ("--score", "p", "--versus", "q", "--resamples", B),
}


def text_of(rows: Iterable[tuple[Any, ...]], header: str = "late,p,q", mark: str = ",") -> str:
    return "\n".join([header.replace(",", mark), *(mark.join(map(str, row)) for row in rows)]) + "\n"


@pytest.mark.parametrize("command", COMMANDS)
class TestNewcomer:
    """What people bring at first, to each of the three commands."""

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            pytest.param(text_of(ROWS, "late,prob,q"), "no column p (--score)", id="missing column"),
            pytest.param(text_of(ROWS, "Late,p,q"), "did you mean Late?", id="upper case"),
            pytest.param(text_of(ROWS, "is late,p,q"), "did you mean is late?", id="spaces in names"),
            pytest.param(text_of(ROWS, "late,p,p"), "2 columns are called p", id="same name twice"),
            pytest.param(
                text_of((y, 100 * p, 100 * q) for y, p, q in ROWS),
                "look like percent; divide the column by 100",
                id="percent",
            ),
            pytest.param(text_of((y, 9 * p - 4, q) for y, p, q in ROWS), "look like logits", id="logits"),
            pytest.param(
                text_of((["no", "yes"][y], p, q) for y, p, q in ROWS), "--pos-label yes", id="yes and no"
            ),
            pytest.param(text_of((y + 1, p, q) for y, p, q in ROWS), "pass --pos-label 2", id="1 and 2"),
            pytest.param(
                text_of((p, y, q) for y, p, q in ROWS), "are --label and --score swapped?", id="swapped"
            ),
            pytest.param(
                text_of((y, f"{p:.0%}", q) for y, p, q in ROWS),
                "column p must hold numbers; got '20%' at data row 1",
                id="percent signs",
            ),
            pytest.param(
                text_of(((y, str(p).replace(".", ","), q) for y, p, q in ROWS), mark=";"),
                "column p must hold numbers; got '0,2' at data row 1",
                id="decimal commas",
            ),
            pytest.param(text_of([*ROWS, (0, "", 0.5)]), "missing value at data row 81", id="missing value"),
            pytest.param("late,p,q\n", "no rows", id="header only"),
            pytest.param("", "mpty", id="empty"),
        ],
    )
    def test_is_told_what_is_wrong(self, run: Run, command: str, text: str, says: str) -> None:
        Path("p.csv").write_text(text)
        ended = run(command, "p.csv", "--label", "late", *COMMANDS[command])
        assert (ended.code, ended.out) == (USAGE, "")
        assert ended.err.startswith("calcore: p.csv: ")
        assert says in ended.err
        assert len(ended.err) < 300
        assert sorted(os.listdir()) == ["p.csv"]

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ("no.csv", "no.csv: no such file"),
            ("folder", "folder: no files in this directory"),
            ("folder/*.csv", "folder/*.csv: no file matches"),
            ("p.xlsx", "p.xlsx: unknown kind of file; readable are .parquet"),
        ],
    )
    def test_no_file_to_read(self, run: Run, command: str, given: str, says: str) -> None:
        Path("folder").mkdir()
        Path("p.xlsx").write_bytes(b"PK\x03\x04")
        ended = run(command, given, "--label", "late", *COMMANDS[command])
        assert (ended.code, ended.out) == (USAGE, "")
        assert ended.err.startswith(f"calcore: {says}")


@pytest.mark.parametrize("command", ["curve", "compare"])
@pytest.mark.parametrize(
    ("name", "mark", "encoding"),
    [
        ("p.csv", ",", "utf-8-sig"),
        ("p.csv", ";", "utf-8"),
        ("p.csv", "\t", "utf-8"),
        ("p.tsv", "\t", "utf-8"),
    ],
)
def test_other_marks_are_read(run: Run, command: str, name: str, mark: str, encoding: str) -> None:
    words = ("--label", "late", *COMMANDS[command])
    Path("plain.csv").write_text(text_of(ROWS))
    Path(name).write_text(text_of(ROWS, mark=mark), encoding=encoding)
    expected, ended = run(command, "plain.csv", *words), run(command, name, *words)
    assert (ended.code, ended.err) == (DONE, "")
    assert " ".join(ended.out.split()) == " ".join(expected.out.replace("plain.csv", name).split())


@pytest.mark.parametrize("command", ["curve", "compare"])
@pytest.mark.parametrize("rows", [ROWS[:3], [(0, p, q) for _, p, q in ROWS]], ids=["three", "one class"])
def test_few_rows_are_no_fault(run: Run, command: str, rows: list[tuple[float, ...]]) -> None:
    Path("p.csv").write_text(text_of(rows))
    ended = run(command, "p.csv", "--label", "late", *COMMANDS[command])
    assert (ended.code, ended.err) == (DONE, "")
    assert re.search(rf"\b{len(rows)} rows|Rows +{len(rows)}\b", ended.out)


OUTPUTS = {
    "report": ("report", "p.csv", "--label", "late", "--score", "p", "--resamples", B, "-o"),
    "report, json": ("report", "p.csv", "--label", "late", "--score", "p", "--resamples", B, "--json"),
    "curve": ("curve", "p.csv", "--label", "late", "--score", "p", "--plot"),
}


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS)
class TestOutput:
    @pytest.fixture(autouse=True)
    def _rows(self) -> None:
        Path("p.csv").write_text(text_of(ROWS))

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("missing/x.svg", "missing/x.svg: no such directory"),
            ("folder.svg", "folder.svg: is a directory; name a file to write"),
            ("old.svg", "old.svg: there is such a file already; --force writes over it"),
        ],
    )
    def test_is_refused_before_any_work(
        self, run: Run, words: tuple[str, ...], name: str, says: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def read(*_: object, **__: object) -> None:
            raise AssertionError("rows were read first")

        monkeypatch.setattr("calcore.files.intake.take_in", read)
        monkeypatch.setattr("calcore.files.rows.take_in_rows", read)
        Path("folder.svg").mkdir()
        Path("old.svg").write_text("mine")
        ended = run(*words, name)
        assert (ended.code, ended.out, ended.err) == (USAGE, "", f"calcore: {says}\n")
        assert Path("old.svg").read_text() == "mine"

    def test_cannot_be_written(
        self, run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in a directory that is read-only; the tests may run as root, who may write there."""

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied", "x.svg")

        monkeypatch.setattr("calcore.files.paths.storage.replacing", refuse)
        ended = run(*words, "x.svg")
        assert (ended.code, ended.out) == (USAGE, "")
        assert ended.err.endswith(": permission denied\n")
        assert sorted(os.listdir()) == ["p.csv"]
