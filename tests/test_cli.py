"""The command: exit codes, what is printed where, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import feather, parquet

import calcore
from calcore import cli, datasets, simulate
from calcore.cli import process

SEED = 20240614
COMMAND = [sys.executable, "-m", "calcore"]


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


@pytest.fixture
def job() -> Path:
    """Two files of one calibrated job."""
    labels, scores = simulate.rows(4000, seed=SEED)
    for name, part in (("a", slice(0, 1500)), ("b", slice(1500, None))):
        parquet.write_table(pa.table({"late": labels[part], "p": scores[part]}), f"{name}.parquet")
    return Path()


def shell(*words: str, **environment: str) -> Ended:
    """Run the command in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


class TestCertify:
    def test_gives_the_numbers_of_python(self, job: Path, run: Run) -> None:
        labels, scores = simulate.rows(4000, seed=SEED)
        expected = calcore.certify(labels, scores, rng=7).to_dict()
        ended = run("certify", "*.parquet", "--json", "--seed", "7")
        assert (ended.code, ended.err) == (0, "")
        assert len(ended.out.splitlines()) == 1
        given = json.loads(ended.out)
        assert {key: given[key] for key in expected} == json.loads(json.dumps(expected))
        assert given["files"] == ["a.parquet", "b.parquet"]
        assert given["columns"] == {"label": "late", "score": "p", "groups": None}
        assert given["gate"] is None

    def test_options_reach_certify(self, job: Path, run: Run) -> None:
        labels, scores = simulate.rows(4000, seed=SEED)
        words = "--label late --score p --delta 0.1 --side upper --method plugin --variation 2 --lipschitz 3"
        given = json.loads(run("certify", "*.parquet", "--json", *words.split()).out)
        expected = calcore.certify(
            labels, scores, delta=0.1, side="upper", method="plugin", variation=2, lipschitz=3, rng=0
        )
        assert given["upper"] == expected.upper
        assert given["assumption"] == expected.assumption

    def test_perturbed(self, job: Path, run: Run) -> None:
        assert json.loads(run("certify", "*.parquet", "--json", "--perturbed", "0.25").out)["assumption"] == (
            calcore.certify(*simulate.rows(4000, seed=SEED), perturbed=0.25).assumption
        )

    @pytest.mark.parametrize(
        ("words", "options"),
        [
            ("--method tv --n-folds 3", {"method": "tv", "n_folds": 3}),
            ("--method nw --lipschitz 2", {"method": "nw", "lipschitz": 2}),
            ("--method nw-folds --perturbed 0.25", {"method": "nw-folds", "perturbed": 0.25}),
            ("--method buckets --lipschitz 1", {"method": "buckets", "lipschitz": 1}),
        ],
    )
    def test_published_methods(
        self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch, words: str, options: dict[str, object]
    ) -> None:
        expected = calcore.certify(*simulate.rows(4000, seed=SEED), rng=7, **options)
        words = f"certify *.parquet --seed 7 {words}"
        given = json.loads(run(*words.split(), "--json").out)
        assert given["terms"] == expected.terms
        assert (given["method"], given["n_folds"]) == (options["method"], expected.n_folds)
        assert f"Method      {options['method']}; " in run(*words.split()).out
        monkeypatch.setattr("calcore.files.intake.HELD_ROWS", 1000)
        many = json.loads(run(*words.split(), "--json").out)
        if options["method"] != "buckets":  # which takes cells as well
            assert many["terms"] == expected.terms

    def test_methods_that_need_single_rows(self, job: Path, run: Run) -> None:
        for extra in ("--grid sqrt", "--cells 9"):
            assert run("certify", "*.parquet", "--method", "tv", *extra.split()) == (
                2,
                "",
                "calcore: --method tv needs single rows: leave out --grid and --cells\n",
            )
        run("table", "build", "a.parquet", "-o", "a.cells")
        ended = run("certify", "a.cells", "--method", "nw", "--lipschitz", "1")
        assert ended == (2, "", "calcore: a.cells: a saved table has no single rows, which --method needs\n")
        assert run("certify", "a.cells", "--method", "buckets", "--lipschitz", "1").code == 0

    def test_cross_check(self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        words = ("certify", "*.parquet", "--cross-check", "--cells", "200")
        given = json.loads(run(*words, "--json").out)["cross_check"]
        assert (given["agrees"], given["n"], given["weight"]) == (True, 200, 4000)
        assert max(given["ours"]["excess"], given["reference"]["excess"]) <= 1e-10
        assert given["difference"] <= 1e-6
        ended = run(*words)
        assert (ended.code, ended.err) == (0, "")
        (line,) = [part for part in ended.out.split("\n\n") if part.startswith("Cross-check: cvxpy")]
        assert "agrees on 200 unknowns" in " ".join(line.split())
        assert json.loads(run("certify", "*.parquet", "--json").out)["cross_check"] is None
        monkeypatch.setattr("calcore.reference.MAX_DIFFERENCE", -1.0)
        ended = run(*words)
        assert (ended.code, ended.err) == (
            3,
            "calcore: the cross-check failed: one of two solvers is wrong, and no number of this job can be "
            "trusted\n",
        )
        assert "DOES NOT AGREE" in ended.out

    def test_cross_check_without_cvxpy(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cvxpy", None)
        monkeypatch.delitem(sys.modules, "calcore.reference", raising=False)
        assert run("certify", "none.parquet", "--cross-check") == (
            2,
            "",
            "calcore: --cross-check needs cvxpy: pip install 'calcore-calibration[reference]'\n",
        )

    def test_text_starts_with_the_interval(self, job: Path, run: Run) -> None:
        ended = run("certify", "*.parquet", "--bins", "5")
        assert (ended.code, ended.err) == (0, "")
        lines = ended.out.splitlines()
        assert lines[0].startswith("The calibration error is between 0 and 0.0")
        assert "Data        2 files, label late, score p" in lines
        assert sum(" - " in line for line in lines) == 5
        assert ended.out.isascii()
        assert "\x1b" not in ended.out

    def test_the_flights_name_their_population_first(self, run: Run) -> None:
        flights = Path(datasets.__file__).parent / "flights_random.parquet"
        out = run("certify", str(flights)).out
        assert out.startswith("Population: flights of 2013 out of New York (EWR, JFK, LGA)")
        assert "\n\nThe calibration error is between " in out

    def test_groups_keep_one_row_each(self, run: Run) -> None:
        labels, scores = simulate.rows(3000, seed=SEED)
        who = np.arange(3000) % 400
        parquet.write_table(pa.table({"y": labels, "p": scores, "who": who}), "a.parquet")
        words = ["certify", "a.parquet", "--label=y", "--score=p", "--groups=who", "--seed=5", "--json"]
        given = json.loads(run(*words).out)
        expected = calcore.certify(labels, scores, groups=who, rng=5)
        assert (given["n"], given["n_dropped"], given["upper"]) == (400, 2600, expected.upper)
        assert given["columns"]["groups"] == "who"
        text = run(*words[:-1]).out
        assert "Groups      one random row of each: 400 of 3,000 rows\n" in text
        assert "Data        a.parquet, label y, score p, groups who\n" in text
        assert "Warning" not in text
        for extra in (["--grid", "sqrt"], ["--cells", "9"], ["--bins", "3"], ["--cross-check"]):
            ended = run(*words, *extra)
            assert (ended.code, ended.out) == (2, "")
            assert ended.err == (
                "calcore: --groups draws single rows: leave out --grid, --cells, --bins and --cross-check\n"
            )

    @pytest.mark.parametrize(("groups", "what"), [("late", "label"), ("p", "score")])
    def test_groups_are_neither_labels_nor_scores(self, job: Path, run: Run, groups: str, what: str) -> None:
        for named in ([], ["--label", "late", "--score", "p"]):
            ended = run("certify", "*.parquet", "--groups", groups, *named)
            assert ended == (
                2,
                "",
                f"calcore: --groups {groups}: is the {what} column; name what rows belong to\n",
            )

    def test_bins_in_json(self, job: Path, run: Run) -> None:
        labels, scores = simulate.rows(4000, seed=SEED)
        order = np.argsort(scores)
        given = json.loads(run("certify", "*.parquet", "--bins", "5", "--json").out)["bins"]
        assert [part["rows"] for part in given] == [800] * 5
        for part, rows in zip(given, np.split(order, 5), strict=True):
            assert part["predicted"] == pytest.approx(scores[rows].mean(), abs=1e-12)
            assert part["observed"] == pytest.approx(labels[rows].mean(), abs=1e-12)
            assert (part["low"], part["high"]) == (scores[rows].min(), scores[rows].max())
        assert json.loads(run("certify", "*.parquet", "--json").out)["bins"] == []

    def test_grid_and_threads(self, job: Path, run: Run) -> None:
        words = ["certify", "*.parquet", "--json", "--grid", "sqrt", "--cells", "5000", "--threads"]
        one, two = (json.loads(run(*words, threads).out) for threads in ("1", "2"))
        assert one == two
        assert one["table"] == "5,000 sqrt cells"

    def test_warnings_speak_of_options(self, job: Path, run: Run) -> None:
        out = run("certify", "*.parquet", "--cells", "2").out
        assert "Warning: cells are too wide for these scores; --" in out

    @pytest.mark.parametrize(("limit", "code", "verdict"), [("0.5", 0, "passed"), ("0.01", 1, "failed")])
    def test_the_gate_is_one_sided(self, job: Path, run: Run, limit: str, code: int, verdict: str) -> None:
        upper = calcore.certify(*simulate.rows(4000, seed=SEED), side="upper").upper
        ended = run("certify", "*.parquet", "--max-ce", limit)
        assert (ended.code, ended.err) == (code, "")
        assert ended.out.startswith("The calibration error is between")
        assert f"Gate {verdict}: the upper bound 0.0" in ended.out
        for side in ("both", "upper", "lower"):
            ended = run("certify", "*.parquet", "--max-ce", limit, "--json", "--side", side)
            assert ended.code == code
            assert json.loads(ended.out)["gate"] == {
                "max_ce": float(limit),
                "upper": upper,
                "passed": not code,
            }

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("none.parquet", "none.parquet: no such file"),
            ("*.parquet --label lat", "a.parquet: no column lat (--label); did you mean late?"),
            ("none.parquet --delta 2", "--delta must lie strictly between 0 and 1; got 2.0"),
            ("*.parquet --delta 5", "--delta must lie strictly between 0 and 1; got 5.0"),
            ("*.parquet --variation=-1", "--variation must be a number >= 0; got -1.0"),
            ("*.parquet --max-ce nan", "--max-ce must lie in [0, 1]; got nan"),
            ("*.parquet --max-ce 2", "--max-ce must lie in [0, 1]; got 2.0"),
            ("*.parquet --method magic", "--method must be one of 'auto', 'plugin'"),
            (
                "*.parquet --method nw",
                "--lipschitz or --perturbed must be given: --method nw needs one of them",
            ),
            (
                "*.parquet --method tv --variation 1 --lipschitz 1",
                "--lipschitz must be left out beside --variation: --method tv uses one assumption",
            ),
            ("*.parquet --n-folds 7", "--n-folds is for --method tv and nw-folds: leave it out"),
            ("*.parquet --n-folds 5 --method buckets --lipschitz 1", "--n-folds is for --method tv and nw-"),
            ("*.parquet a.parquet", "a.parquet: given twice; its rows would count twice"),
            ("*.parquet --pos-label x", "--pos-label x: column late holds numbers"),
            ("*.parquet --label p --score late", "a.parquet: column p must hold labels 0/1 or -1/+1; got 0."),
        ],
    )
    @pytest.mark.parametrize("extra", [[], ["--json"]])
    def test_faults_of_the_user(
        self, job: Path, run: Run, words: str, message: str, extra: list[str]
    ) -> None:
        ended = run("certify", *words.split(), *extra)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"calcore: {message}")
        assert "Traceback" not in ended.err

    @pytest.mark.parametrize(
        "words",
        [
            "certify",
            "certify --side left a",
            "certify --cells 0 a",
            "bogus",
            "certify a --bogus",
            "table bogus",
        ],
    )
    def test_usage(self, run: Run, words: str) -> None:
        ended = run(*words.split())
        assert ended.code == 2
        assert "Usage: calcore" in ended.out + ended.err
        assert "Traceback" not in ended.err

    def test_percent(self, run: Run) -> None:
        Path("a.csv").write_text("y,p\n0,20\n1,90\n")
        assert run("certify", "a.csv", "--label", "y", "--score", "p").err == (
            "calcore: a.csv: column p must lie in [0, 1]; got 20.0 at data row 1 (and at least 1 more): "
            "these look like percent; divide the column by 100\n"
        )

    def test_unreadable_files(self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied", "a.parquet")  # the tests may run as root

        monkeypatch.setattr("calcore.files.formats.parquet.ParquetFile", refuse)
        ended = run("certify", "a.parquet")
        assert (ended.code, ended.err) == (2, "calcore: a.parquet: permission denied\n")

    def test_names_cannot_write_to_the_terminal(self, run: Run) -> None:
        Path("a\x1b[31m.txt").touch()
        assert run("certify", "a*.txt").err.startswith("calcore: 'a\\x1b[31m.txt': unknown kind of file")


class TestTables:
    def test_day_by_day_is_the_whole(self, job: Path, run: Run) -> None:
        assert run("table", "build", "a.parquet", "-o", "a.cells").out == (
            "a.cells: 1,500 rows in 1,488 of 100,800 linear cells\n"
        )
        assert run("table", "build", "b.parquet", "-o", "b.cells").code == 0
        assert run("table", "merge", "a.cells", "b.cells", "-o", "c.cells").code == 0
        assert run("table", "build", "b.parquet", "a.cells", "-o", "d.cells").code == 0
        assert run("table", "build", "*.parquet", "-o", "e.cells").code == 0
        assert Path("c.cells").read_bytes() == Path("d.cells").read_bytes() == Path("e.cells").read_bytes()
        whole = json.loads(run("certify", "*.parquet", "--grid", "linear", "--json").out)
        for words in (["c.cells"], ["a.cells", "b.cells"], ["a.cells", "b.parquet"]):
            given = json.loads(run("certify", *words, "--json").out)
            assert (given["upper"], given["lower"], given["n"]) == (whole["upper"], whole["lower"], 4000)
        assert "Data        c.cells\n" in run("certify", "c.cells").out

    def test_show(self, job: Path, run: Run) -> None:
        run("table", "build", "*.parquet", "-o", "t", "--grid", "logit", "--cells", "6400")
        labels, scores = simulate.rows(4000, seed=SEED)
        table = calcore.CellTable(6400, "logit").update(labels, scores)
        occupied = len(table.cells().n)
        out = run("table", "show", "t").out
        assert out.startswith(
            f"Cells       6,400 logit cells, {occupied:,} of them occupied\nRows        4,000, of"
        )
        assert sum(" - " in line for line in out.splitlines()) == 10
        given = json.loads(run("table", "show", "t", "--json", "--bins", "3").out)
        assert given["n"] == sum(part["rows"] for part in given["bins"]) == 4000
        assert given["n_positive"] == labels.sum()
        assert (given["grid"], given["n_cells"], given["n_occupied"]) == ("logit", 6400, occupied)
        assert " - " not in run("table", "show", "t", "--bins", "0").out

    def test_faults(self, job: Path, run: Run) -> None:
        ended = run("table", "merge", "a.parquet", "-o", "t")
        assert ended.err == (
            "calcore: a.parquet: not a table; make one with 'calcore table build a.parquet -o TABLE'\n"
        )
        run("table", "build", "a.parquet", "-o", "a.cells")
        run("table", "build", "b.parquet", "-o", "b.cells", "--grid", "sqrt")
        ended = run("table", "merge", "a.cells", "b.cells", "-o", "t")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("calcore: b.cells: it must have the same grid; got 100,800 sqrt cells")
        assert not Path("t").exists()

    def test_output_must_be_a_file(self, job: Path, run: Run) -> None:
        os.mkfifo("pipe.csv")
        Path("d.csv").mkdir()
        run("table", "build", "a.parquet", "-o", "a.cells")
        for output, message in (
            ("pipe.csv", "pipe.csv: is not a regular file; name a file to write"),
            ("d.csv", "d.csv: is a directory; name a file to write"),
            ("no/x.csv", "no/x.csv: no such directory"),
            ("", "the output must be the name of a file; got ''"),
        ):
            for words in (["table", "build", "a.parquet"], ["table", "merge", "a.cells"], ["simulate"]):
                assert run(*words, "-o", output, "--force") == (2, "", f"calcore: {message}\n")
        assert stat.S_ISFIFO(os.stat("pipe.csv").st_mode)

    @pytest.mark.parametrize("words", ["table build a.parquet", "table merge a.cells", "simulate"])
    def test_what_is_there_stays_without_force(self, job: Path, run: Run, words: str) -> None:
        run("table", "build", "a.parquet", "-o", "a.cells")
        run("table", "build", "b.parquet", "-o", "kept.npz")  # a table, whatever it is called
        before = Path("kept.npz").read_bytes()
        assert run(*words.split(), "-o", "kept.npz") == (
            2,
            "",
            "calcore: kept.npz: there is such a file already; --force writes over it\n",
        )
        assert Path("kept.npz").read_bytes() == before
        assert run(*words.split(), "-o", "kept.npz", "--force").code == 0
        assert Path("kept.npz").read_bytes() != before

    def test_an_input_is_never_the_output(self, job: Path, run: Run) -> None:
        run("table", "build", "a.parquet", "-o", "a.cells")
        before = Path("a.cells").read_bytes()
        message = "calcore: a.cells: is also an input; name another output\n"
        for words in (["merge", "a.cells"], ["build", "a.cells", "b.parquet"]):
            for force in ([], ["--force"]):
                assert run("table", *words, "-o", "a.cells", *force) == (2, "", message)
        assert Path("a.cells").read_bytes() == before

    @pytest.mark.parametrize("cells", ["16777217", "9999999999999"])
    def test_the_number_of_cells_has_a_limit(self, job: Path, run: Run, cells: str) -> None:
        for words in (["certify"], ["table", "build", "-o", "t"]):
            ended = run(*words, "a.parquet", "--cells", cells)
            assert (ended.code, ended.out) == (2, "")
            assert "16777216" in ended.err

    def test_a_pipe_is_no_input(self, run: Run) -> None:
        os.mkfifo("pipe")
        message = "pipe: is not a regular file; write what comes from a pipe to a file"
        for words in (["certify", "pipe"], ["table", "build", "pipe", "-o", "t"], ["table", "show", "pipe"]):
            assert run(*words) == (2, "", f"calcore: {message}\n")

    def test_a_table_needs_no_columns(self, job: Path, run: Run) -> None:
        run("table", "build", "a.parquet", "-o", "a.cells")
        assert run("certify", "a.cells", "--label", "late") == (
            2,
            "",
            "calcore: a.cells: a saved table has its columns already: leave out --label\n",
        )


class TestClasses:
    COLUMNS = ("p_cat", "p_dog", "p_cow")
    WORDS = ("certify", "*.parquet", "--classes", "p_cat,p_dog,p_cow", "--label", "y")

    @pytest.fixture
    def animals(self) -> tuple[Any, Any]:
        """Two files of a calibrated classifier, labels by number; and what is in them."""
        rng = np.random.default_rng(SEED)
        p = rng.dirichlet([1.0, 2.0, 3.0], 3000)
        y = (rng.random((3000, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
        rows = pa.table(
            {"y": y, "animal": np.array(["cat", "dog", "cow"])[y].tolist(), "who": np.arange(3000) // 3}
            | {name: p[:, j] for j, name in enumerate(self.COLUMNS)}
        )
        parquet.write_table(rows.slice(0, 1100), "a.parquet")
        parquet.write_table(rows.slice(1100), "b.parquet")
        return y, p

    @pytest.mark.parametrize(
        ("words", "options"),
        [
            ("", {}),
            ("--groups who --seed 7 --delta 0.1", {"groups": np.arange(3000) // 3, "rng": 7, "delta": 0.1}),
            (
                "--method plugin --lipschitz 2 --side upper",
                {"method": "plugin", "lipschitz": 2, "side": "upper"},
            ),
            ("--method tv --n-folds 3", {"method": "tv", "n_folds": 3}),
        ],
    )
    def test_gives_the_numbers_of_python(
        self, animals: tuple[Any, Any], run: Run, words: str, options: dict[str, Any]
    ) -> None:
        options = {"rng": 0} | options
        ended = run(*self.WORDS, *words.split(), "--json")
        assert (ended.code, ended.err) == (0, "")
        given = json.loads(ended.out)
        expected = calcore.certify_classwise(*animals, **options)
        assert [part["name"] for part in given["certificates"]] == list(self.COLUMNS)
        for part, certificate in zip(given["certificates"], expected.values(), strict=True):
            assert part.pop("name") in self.COLUMNS
            assert part == json.loads(json.dumps(certificate.to_dict()))
        assert expected.mean is not None
        assert given["mean"] == expected.mean.to_dict()
        groups = "who" if "groups" in options else None
        assert given["columns"] == {"label": "y", "classes": list(self.COLUMNS), "groups": groups}
        top = json.loads(run(*self.WORDS, *words.split(), "--json", "--top-label").out)
        certificate = calcore.certify_top_label(*animals, **options).to_dict()
        assert {key: top[key] for key in certificate} == json.loads(json.dumps(certificate))
        assert top["columns"] == given["columns"]

    def test_the_first_choice_streams(
        self, animals: tuple[Any, Any], run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        words = [*self.WORDS, "--top-label", "--json"]
        cells = json.loads(run(*words, "--cells", "500", "--bins", "3").out)
        confidence, right = animals[1].max(axis=1), animals[1].argmax(axis=1) == animals[0]
        expected = calcore.certify(calcore.CellTable(500).update(right, confidence), rng=0)
        assert (cells["upper"], cells["n_positive"]) == (expected.upper, right.sum())
        assert sum(part["rows"] for part in cells["bins"]) == 3000
        monkeypatch.setattr("calcore.files.intake.HELD_ROWS", 1000)
        assert json.loads(run(*words).out)["table"].endswith(" cells")

    def test_labels_by_name(self, animals: tuple[Any, Any], run: Run) -> None:
        numbers = json.loads(run(*self.WORDS, "--json").out)
        words = [*self.WORDS[:-1], "animal", "--json"]
        assert run(*words).err == (
            "calcore: a.parquet: column animal must hold labels of columns of --classes ('p_cat', 'p_dog', "
            f"'p_cow'); got {['cat', 'dog', 'cow'][animals[0][0]]!r} at data row 1 (and at least 1099 more)\n"
        )
        named = json.loads(run(*words, "--class-labels", "cat, dog, cow").out)
        assert [part["name"] for part in named["certificates"]] == ["cat", "dog", "cow"]
        for ours, theirs in zip(named["certificates"], numbers["certificates"], strict=True):
            assert ours["upper"] == theirs["upper"]
        Path("a.csv").write_text("dog,cat,y\n0.25,0.75,cat\n1,0,dog\n0.5,0.5,cat\n")
        given = json.loads(run("certify", "a.csv", "--classes", "cat,dog", "--json").out)
        assert [(part["name"], part["n_positive"]) for part in given["certificates"]] == [
            ("cat", 2),
            ("dog", 1),
        ]

    def test_labels_from_1(self, run: Run) -> None:
        Path("a.csv").write_text("y,a,b\n1,0.25,0.75\n2,1,0\n")
        ended = run("certify", "a.csv", "--classes", "a,b")
        assert ended.err.endswith("got 2 at data row 2: for labels 1 to 2 give --class-labels 1,2\n")
        given = json.loads(run("certify", "a.csv", "--classes", "a,b", "--class-labels", "1,2", "--json").out)
        assert [part["name"] for part in given["certificates"]] == [1, 2]

    def test_text(self, animals: tuple[Any, Any], run: Run) -> None:
        out = run(*self.WORDS, "--groups", "who").out
        assert out.startswith("The calibration error of every class, with 95% confidence for all of these ")
        assert out.count("one random row was kept of each group: 1000 of 3000 rows") == 1
        assert "\n\nData: 2 files, label y, classes p_cat, p_dog, p_cow, groups who\n" in out
        assert "Data        2 files, label y, first choice of p_cat, p_dog, p_cow\n" in (
            run(*self.WORDS, "--top-label").out
        )

    @pytest.mark.parametrize(("limit", "code"), [("0.5", 0), ("0.01", 1)])
    def test_gate(self, animals: tuple[Any, Any], run: Run, limit: str, code: int) -> None:
        upper = max(c.upper for c in calcore.certify_classwise(*animals, side="upper", rng=0).values())
        ended = run(*self.WORDS, "--max-ce", limit, "--json")
        assert ended.code == code
        assert json.loads(ended.out)["gate"] == {"max_ce": float(limit), "upper": upper, "passed": not code}

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                "--classes a",
                "--classes must name at least two columns, with commas between, or one of lists; got a",
            ),
            ("--classes a,a", "--classes names column a twice"),
            (
                "--classes a,b --class-labels 1",
                "--class-labels must name every column of --classes; got 1 lab",
            ),
            ("--classes a,b --class-labels 1,1", "--class-labels names label 1 twice"),
            ("--classes a,b --class-labels x,y", "--class-labels x: column y holds numbers"),
            ("--classes a,bb", "a.csv: no column bb (--classes); did you mean b?"),
            ("--classes a,b --label b", "a.csv: --label and --classes both name column b"),
            ("--classes a,t --label y", "a.csv: column t (--classes) holds text, not numbers"),
            (
                "--classes a,y --label t",
                "a.csv: column t must hold labels of columns of --classes ('a', 'y')",
            ),
            (
                "--classes a,b --score a",
                "--classes names all scores: leave out --score, --pos-label and --by",
            ),
            ("--classes a,b --by t", "--classes names all scores: leave out --score, --pos-label and --by"),
            (
                "--classes a,b --bins 3",
                "--classes needs single rows: leave out --grid, --cells, --bins and --cr",
            ),
            ("--classes a,b --groups b", "--groups b: is the score column; name what rows belong to"),
            (
                "--top-label",
                "--top-label and --class-labels are for --classes: name the columns with --classes too",
            ),
            (
                "--class-labels a,b",
                "--top-label and --class-labels are for --classes: name the columns with --classes too",
            ),
            (
                "a.cells --classes a,b",
                "a.cells: a saved table has no single rows: name files with all columns",
            ),
            (
                "off.csv --classes a,b",
                "off.csv: probabilities must have rows that sum to 1; data row 2 sums to 0.",
            ),
            (
                "out.csv --classes a,b",
                "out.csv: probabilities must lie in [0, 1]; got 1.5 at data row 2 of colu",
            ),
            (
                "out.csv --classes a,b --top-label",
                "out.csv: probabilities must lie in [0, 1]; got 1.5 at data",
            ),
            ("kind.csv --classes a,b", "kind.csv: column y holds text, but numbers in a.csv"),
        ],
    )
    def test_faults(self, run: Run, words: str, message: str) -> None:
        Path("a.csv").write_text("y,a,b,t\n0,0.25,0.75,x\n1,1,0,x\n")
        Path("off.csv").write_text("y,a,b\n0,0.25,0.75\n1,0.25,0.5\n")
        Path("out.csv").write_text("y,a,b\n0,0.25,0.75\n1,1.5,0\n")
        Path("kind.csv").write_text("y,a,b\nx,0.25,0.75\n")
        calcore.CellTable().update([1], [0.5]).save("a.cells")
        label = [] if "--label" in words else ["--label", "y"]
        ended = run("certify", "a.csv", *words.split(), *label)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"calcore: {message}")


@pytest.fixture
def pair() -> Path:
    """Two files with the scores of two models: `new` is calibrated, `old` overconfident."""
    labels, old = simulate.rows(4000, shape="square", seed=SEED)
    rows = pa.table({"late": labels, "old": old, "new": old**2, "who": np.arange(4000) // 2})
    parquet.write_table(rows.slice(0, 1500), "a.parquet")
    parquet.write_table(rows.slice(1500), "b.parquet")
    return Path()


class TestCompare:
    WORDS = ("compare", "*.parquet", "--score", "new", "--versus", "old", "--label", "late")

    @pytest.mark.parametrize(
        ("words", "options"),
        [
            ("", {}),
            ("--groups who --seed 7 --delta 0.1", {"groups": np.arange(4000) // 2, "rng": 7, "delta": 0.1}),
            ("--method tv --n-folds 3 --seed 2", {"method": "tv", "n_folds": 3, "rng": 2}),
            ("--method plugin --lipschitz 2", {"method": "plugin", "lipschitz": 2}),
            ("--variation 2 --perturbed 0.25", {"variation": 2, "perturbed": 0.25}),
        ],
    )
    def test_gives_the_numbers_of_python(
        self, pair: Path, run: Run, words: str, options: dict[str, Any]
    ) -> None:
        labels, old = simulate.rows(4000, shape="square", seed=SEED)
        expected = calcore.certify_difference(labels, old**2, old, **({"rng": 0} | options)).to_dict()
        ended = run(*self.WORDS, *words.split(), "--json")
        assert (ended.code, ended.err) == (0, "")
        given = json.loads(ended.out)
        assert {key: given[key] for key in expected} == json.loads(json.dumps(expected))
        assert given["files"] == ["a.parquet", "b.parquet"]
        groups = "who" if "groups" in options else None
        assert given["columns"] == {"label": "late", "score": "new", "versus": "old", "groups": groups}
        assert given["gate"] is None

    def test_text_says_who_is_better(self, pair: Path, run: Run) -> None:
        out = run(*self.WORDS, "--groups", "who").out
        lines = out.splitlines()
        assert lines[:2] == [
            "By the Brier score, new is better, with 95% confidence.",
            "By the calibration error, new has the smaller one, with 95% confidence.",
        ]
        assert "Groups      one random row of each: 2,000 of 4,000 rows" in lines
        assert "Data        2 files, label late, score new, versus old, groups who" in lines
        assert "Warning" not in out
        swapped = run("compare", "*.parquet", "--score=old", "--versus=new", "--label=late").out
        assert swapped.splitlines()[:2] == lines[:2]

    def test_text_where_nothing_shows(self, run: Run) -> None:
        labels, scores = simulate.rows(500, seed=SEED)
        parquet.write_table(pa.table({"y": labels, "a": scores, "b": scores}), "a.parquet")
        assert run("compare", "a.parquet", "--score", "a", "--versus", "b").out.startswith(
            "By the Brier score, no model is shown to be better, with 95% confidence.\n"
            "By the calibration error, no difference is shown, with 95% confidence.\n"
        )

    @pytest.mark.parametrize(
        ("score", "versus", "limit", "code"),
        [("new", "old", "0", 0), ("old", "new", "0", 1), ("old", "new", "0.9", 0), ("new", "old", "-0.9", 1)],
    )
    def test_gate(self, pair: Path, run: Run, score: str, versus: str, limit: str, code: int) -> None:
        words = ["compare", "*.parquet", "--label", "late", "--score", score, "--versus", versus]
        ended = run(*words, "--max-brier", limit)
        assert (ended.code, ended.err) == (code, "")
        assert f"\n\nGate {'failed' if code else 'passed'}: the upper end " in ended.out
        ended = run(*words, "--max-brier", limit, "--json")
        given = json.loads(ended.out)
        upper = given["brier_difference"]["upper"]
        assert ended.code == code
        assert given["gate"] == {"max_brier": float(limit), "upper": upper, "passed": not code}

    def test_the_label_is_the_column_that_is_left(self, run: Run) -> None:
        Path("a.csv").write_text("a,late,b\n0,yes,1\n0.5,no,0.25\n1,yes,0\n")
        words = ["compare", "a.csv", "--score", "a", "--versus", "b", "--json"]
        given = json.loads(run(*words, "--pos-label", "yes").out)
        assert (given["columns"]["label"], given["a"]["n_positive"]) == ("late", 2)
        assert given["mean_brier_difference"] == pytest.approx((1 + 0.25 + 0 - 0 - 0.0625 - 1) / 3, abs=1e-15)
        assert run(*words).err.startswith("calcore: a.csv: column late holds text (yes, no): say which label")

    def test_two_kinds_of_floats(self, run: Run) -> None:
        """What is a rounding error in float32 stays one beside another file's float64."""
        for name, kind in (("a", np.float32), ("b", np.float64)):
            np.savez(
                f"{name}.npz", y=np.array([0, 1]), p=np.array([0.25, 0.5]), q=np.array([0, 1.0000005], kind)
            )
        ended = run("compare", "a.npz", "--score", "p", "--versus", "q", "--json")
        assert json.loads(ended.out)["b"]["n_clipped"] == 1
        ended = run("compare", "*.npz", "--score", "p", "--versus", "q")
        assert ended.err == "calcore: b.npz: column q must lie in [0, 1]; got 1.0000005 at data row 2\n"

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("--score new --versus new", "--score and --versus both name column new"),
            ("--score new --versus od", "a.parquet: no column od (--versus); did you mean old?"),
            ("--score nw --versus old", "a.parquet: no column nw (--score); did you mean new?"),
            (
                "--score new --versus old --label lat",
                "a.parquet: no column lat (--label); did you mean late?",
            ),
            ("--score new --versus old --label old", "a.parquet: --label and --versus both name column old"),
            ("--score new --versus old --label new", "a.parquet: --label and --score both name column new"),
            ("--score new --versus old --label late --groups old", "--groups old: is the score column; name"),
            (
                "--score new --versus old --label late --groups wo",
                "a.parquet: no column wo (--groups); did you",
            ),
            (
                "--score new --versus who --label late",
                "a.parquet: column who must lie in [0, 1]; got 2 at data",
            ),
            ("--score new --versus old --label late --delta 2", "--delta must lie strictly between 0 and 1;"),
            ("--score new --versus old --method nw", "--lipschitz or --perturbed must be given: --method nw"),
            (
                "--score new --versus old --n-folds 3",
                "--n-folds is for --method tv and nw-folds: leave it out",
            ),
            ("--score new --versus old --max-brier nan", "--max-brier must lie in [-1, 1]; got nan"),
            ("a.cells --score new --versus old", "a.cells: a saved table has no single rows: name files"),
        ],
    )
    def test_faults(self, pair: Path, run: Run, words: str, message: str) -> None:
        calcore.CellTable().update([1], [0.5]).save("a.cells")
        ended = run("compare", "a.parquet", *words.split())
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"calcore: {message}")

    def test_the_message_completes_the_command(self, pair: Path, run: Run) -> None:
        assert run("compare", "a.parquet", "--score", "new", "--versus", "old").err.endswith(
            "Name it, for example\n  calcore compare a.parquet --score new --versus old --label late\n"
        )

    def test_a_fault_of_the_second_score_is_located(self, run: Run) -> None:
        Path("a.csv").write_text("y,a,b\n0,0.1,0.2\n1,0.3,0.4\n")
        Path("b.csv").write_text("y,a,b\n0,0.1,0.2\n1,0.3,1.4\n")
        Path("c.csv").write_text("y,a,b\n0,0.1,0.2\n1,0.3,\n")
        words = ["--score", "a", "--versus", "b"]
        assert run("compare", "a.csv", "b.csv", *words).err == (
            "calcore: b.csv: column b must lie in [0, 1]; got 1.4 at data row 2\n"
        )
        assert run("compare", "a.csv", "c.csv", *words).err == (
            "calcore: c.csv: column b has a missing value at data row 2\n"
        )
        Path("d.csv").write_text("y,a,b\n")
        assert run("compare", "d.csv", *words).err == "calcore: d.csv: no rows\n"


class TestDrift:
    @pytest.fixture
    def tables(self, job: Path, run: Run) -> None:
        for name in "ab":
            run("table", "build", f"{name}.parquet", "-o", f"{name}.cells")
        simulate_words = "simulate -o c.parquet --rows 2000 --shape square --seed 3"
        run(*simulate_words.split())
        run("table", "build", "c.parquet", "-o", "c.cells")

    def test_gives_the_numbers_of_python(self, tables: None, run: Run) -> None:
        a, b, c = (calcore.CellTable.load(f"{name}.cells") for name in "abc")
        expected = calcore.drift_test(a, b, n_draws=999, rng=7).to_dict()
        ended = run("drift", "a.cells", "b.cells", "--json", "--draws", "999", "--seed", "7")
        assert (ended.code, ended.err) == (0, "")
        assert json.loads(ended.out) == expected | {
            "files_before": ["a.cells"],
            "files_after": ["b.cells"],
            "gate": None,
        }
        given = json.loads(run("drift", "[ab].cells", "c.cells", "--json").out)
        assert given["files_before"] == ["a.cells", "b.cells"]
        assert given["p_value"] == calcore.drift_test(a.merge(b), c).p_value == 0.0002

    @pytest.mark.parametrize(
        ("tables_of", "alpha", "code"), [("a b", "0.0002", 0), ("a c", "0.0002", 1), ("a c", "0.5", 1)]
    )
    def test_gate(self, tables: None, run: Run, tables_of: str, alpha: str, code: int) -> None:
        files = [f"{name}.cells" for name in tables_of.split()]
        ended = run("drift", *files, "--alpha", alpha)
        assert (ended.code, ended.err) == (code, "")
        assert ended.out.startswith("Had nothing changed, two tables would differ as much as these with ")
        assert f"\n\nGate {'failed' if code else 'passed'}: the p-value " in ended.out
        assert "Before      a.cells\n" in ended.out
        ended = run("drift", *files, "--alpha", alpha, "--json")
        given = json.loads(ended.out)
        assert ended.code == code
        assert given["gate"] == {"alpha": float(alpha), "p_value": given["p_value"], "passed": not code}

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("a.cells a.cells", "a.cells: given twice; its rows would count twice"),
            ("*.cells b.cells", "b.cells: given twice; its rows would count twice"),
            ("a.cells none", "none: no such file"),
            ("a.cells b.parquet", "b.parquet: not a table; make one with 'calcore table build b.parquet -o"),
            ("a.cells empty", "empty: no rows"),
            ("empty a.cells", "empty: no rows"),
            (
                "a.cells grid",
                "grid: must have the same grid; got 9 sqrt cells for 100,800 linear cells in a.",
            ),
            ("a.cells b.cells --alpha 0", "--alpha must lie strictly between 0 and 1; got 0.0"),
            ("a.cells b.cells --alpha nan", "--alpha must lie strictly between 0 and 1; got nan"),
            (
                "a.cells b.cells --alpha 0.0001",
                "--alpha 0.0001 is never reached with 9,999 draws: needed are",
            ),
            (
                "a.cells b.cells --alpha 0.1 --draws 9",
                "--alpha 0.1 is never reached with 9 draws: needed are ",
            ),
        ],
    )
    def test_faults(self, tables: None, run: Run, words: str, message: str) -> None:
        calcore.CellTable().save("empty")
        calcore.CellTable(9, "sqrt").update([1], [0.5]).save("grid")
        ended = run("drift", *words.split())
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"calcore: {message}")

    def test_the_draws_that_are_named_suffice(self, tables: None, run: Run) -> None:
        words = ["drift", "a.cells", "c.cells", "--alpha", "0.1", "--draws"]
        assert run(*words, "18").err.endswith("needed are --draws 19\n")
        assert run(*words, "19").code == 1


class TestMonitor:
    def test_goes_on_where_it_stopped(self, job: Path, run: Run) -> None:
        labels, scores = simulate.rows(4000, seed=SEED)
        expected = calcore.CalibrationMonitor(0.01, delta=0.2).update(labels, scores)
        words = ["--state", "state", "--json"]
        ended = run("monitor", "a.parquet", *words, "--max-ce", "0.01", "--delta", "0.2")
        assert (ended.code, ended.err) == (0, "")
        assert (json.loads(ended.out)["n"], json.loads(ended.out)["n_new"]) == (1500, 1500)
        ended = run("monitor", "b.parquet", *words, "--delta", "0.2")  # the same again is no change
        assert json.loads(ended.out) == expected.to_dict() | {
            "n_new": 2500,
            "state": "state",
            "files": ["b.parquet"],
            "columns": {"label": "late", "score": "p"},
            "population": "",
        }
        expected.save("expected")
        assert Path("state").read_bytes() == Path("expected").read_bytes()
        run("monitor", "*.parquet", "--state", "at_once", "--max-ce", "0.01", "--delta", "0.2")
        assert Path("at_once").read_bytes() == Path("expected").read_bytes()

    def test_order_is_that_of_the_files(self, job: Path, run: Run) -> None:
        labels, scores = simulate.rows(4000, seed=SEED)
        run("monitor", "b.parquet", "a.parquet", "--state", "state")
        calcore.CalibrationMonitor().update(np.roll(labels, -1500), np.roll(scores, -1500)).save("expected")
        assert Path("state").read_bytes() == Path("expected").read_bytes()

    def test_an_alarm_has_code_1_and_stays(self, run: Run) -> None:
        Path("a.csv").write_text("y,p\n" + "1,0.5\n" * 100)
        at = calcore.CalibrationMonitor().update([1] * 100, [0.5] * 100).alarm_at
        for words in (["a.csv"], []):
            ended = run("monitor", *words, "--state", "state")
            assert (ended.code, ended.err) == (1, "")
            assert ended.out.startswith(
                f"Alarm: after {at} rows the evidence reached what a calibrated model"
            )
        before = Path("state").read_bytes()
        ended = run("monitor", "--state", "state", "--json")
        assert (ended.code, json.loads(ended.out)["alarm"]) == (1, True)
        assert Path("state").read_bytes() == before

    def test_text(self, job: Path, run: Run) -> None:
        run("monitor", "a.parquet", "--state", "state")
        lines = run("monitor", "b.parquet", "--state", "state").out.splitlines()
        assert lines[0] == "No alarm after 4,000 rows."
        assert "Rows        4,000, of which 2,500 new" in lines
        assert "Data        b.parquet, label late, score p" in lines
        assert "Rows        4,000" in run("monitor", "--state", "state").out.splitlines()

    def test_nothing_is_added_if_a_row_is_refused(self, job: Path, run: Run) -> None:
        Path("bad.csv").write_text("late,p\n1,0.5\n0,1.5\n")
        for files in (["bad.csv"], ["a.parquet", "bad.csv"]):
            ended = run("monitor", *files, "--state", "state")
            assert ended == (2, "", "calcore: bad.csv: column p must lie in [0, 1]; got 1.5 at data row 2\n")
            assert not Path("state").exists()
        run("monitor", "a.parquet", "--state", "state")
        before = Path("state").read_bytes()
        assert run("monitor", "b.parquet", "bad.csv", "--state", "state").code == 2
        assert Path("state").read_bytes() == before

    def test_nothing_is_added_if_nothing_can_be_said(
        self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> None:
            raise OSError(28, "No space left on device", "standard output")

        monkeypatch.setattr("calcore.cli.commands.monitor.flush", fail)
        ended = run("monitor", "a.parquet", "--state", "state")
        assert (ended.code, ended.err) == (2, "calcore: standard output: No space left on device\n")
        assert not Path("state").exists()
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >/dev/full', "sh", *COMMAND, "monitor", "a.parquet", "--state", "state"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (2, "calcore: standard output: No space left on device\n")
        assert not Path("state").exists()

    def test_another_monitor_meanwhile(self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two runs that began with one state: the second to end adds nothing, and says so."""
        run("monitor", "a.parquet", "--state", "state")
        load = calcore.CalibrationMonitor.load
        rows = load("state").n

        def other(path: str) -> calcore.CalibrationMonitor:
            mine = load(path)
            load(path).update([1], [0.5]).save(path)
            return mine

        monkeypatch.setattr(calcore.CalibrationMonitor, "load", other)
        ended = run("monitor", "b.parquet", "--state", "state")
        assert ended.code == 2
        assert "state: changed while rows were read; none of these was added" in ended.err
        assert load("state").n == rows + 1

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                "--delta 0.01",
                "state: began with --delta 0.05; got 0.01: leave it out, or name another --state",
            ),
            ("--max-ce 0.1", "state: began with --max-ce 0; got 0.1: leave it out, or name another --state"),
            ("--state other", "other: no such file; give rows to begin with"),
            ("--label y", "--label, --score and --pos-label are for rows: leave them out, or name a FILE"),
            ("a.parquet --state new --delta 2", "--delta must lie strictly between 0 and 1; got 2.0"),
            ("a.parquet --state new --max-ce 1", "--max-ce must be below 1; got 1.0"),
            ("a.parquet --state a.parquet", "a.parquet: is also an input; name another output"),
            ("a.parquet --state b.parquet", "b.parquet: is not a calcore monitor file"),
            ("a.parquet --state cut", "cut: is not a calcore monitor file"),
            ("a.parquet --state next", "next: has version 2 of the calcore monitor format; known: 1"),
            ("a.parquet --state other_n", "other_n: is damaged: the checksum does not match"),
            ("a.parquet --state no/state", "no/state: no such directory"),
            ("a.parquet --state .", ".: is a directory; name a file to write"),
            ("a.parquet --score q", "a.parquet: no column q (--score); it has late, p"),
            ("a.cells", "a.cells: a saved table has no single rows, and no order of them"),
            ("empty.csv", "empty.csv: no rows"),
            ("none", "none: no such file"),
        ],
    )
    def test_faults(self, job: Path, run: Run, words: str, message: str) -> None:
        calcore.CalibrationMonitor().save("state")
        text = Path("state").read_text()
        Path("cut").write_text(text[:1000])
        Path("next").write_text(text.replace('"version": 1', '"version": 2'))
        Path("other_n").write_text(text.replace('"n": 0', '"n": 5'))
        Path("empty.csv").write_text("late,p\n")
        calcore.CellTable().update([1], [0.5]).save("a.cells")
        there = {path: path.read_bytes() for path in Path().iterdir()}
        state = () if "--state" in words else ("--state", "state")
        ended = run("monitor", *state, *words.split())
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"calcore: {message}")
        assert {path: path.read_bytes() for path in Path().iterdir()} == there


class TestSimulate:
    @pytest.mark.parametrize("suffix", ["parquet", "csv", "npz", "arrow"])
    def test_writes_the_rows_of_the_module(self, run: Run, suffix: str) -> None:
        ended = run("simulate", "-o", f"a.{suffix}", "--rows", "2e3", "--shape", "square", "--seed", "4")
        assert ended == (
            0,
            f"a.{suffix}: 2,000 rows, columns label and score, true calibration error 0.166667\n",
            "",
        )
        given = json.loads(run("certify", f"a.{suffix}", "--json").out)
        expected = calcore.certify(*simulate.rows(2000, shape="square", seed=4))
        assert given["upper"] == expected.upper

    def test_beta_scores(self, run: Run) -> None:
        out = run("simulate", "-o", "a.npz", "--rows", "10", "--scores", "beta:2,2", "--shape", "step").out
        assert out.endswith(f"true calibration error {simulate.true_error('step', beta=(2, 2)):.6g}\n")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("--rows 0", "--rows 0: needed is a whole number of rows, such as 1e7"),
            ("--rows 1.5", "--rows 1.5: needed is a whole number of rows, such as 1e7"),
            ("--rows many", "--rows many: needed is a whole number of rows, such as 1e7"),
            ("--scores normal", "--scores normal: needed is 'uniform' or 'beta:A,B' with two numbers"),
            ("--scores beta:0,1", "--scores beta:0,1: beta must be two positive numbers; got (0.0, 1.0)"),
            ("-o a.txt", "a.txt: unknown kind of file; writable are .parquet, "),
        ],
    )
    def test_faults(self, run: Run, words: str, message: str) -> None:
        output = () if words.startswith("-o") else ("-o", "a.npz")
        ended = run("simulate", *output, *words.split())
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"calcore: {message}")
        assert os.listdir() == []


class TestProcess:
    def test_version_and_help_import_nothing_heavy(self) -> None:
        code = (
            "import sys, atexit, calcore.cli; heavy = {'numpy', 'numba', 'pyarrow', 'scipy'};"
            "atexit.register(lambda: print(sorted(heavy & set(sys.modules)))); calcore.cli.main()"
        )
        for word, start in (("--version", f"calcore {calcore.__version__}\n"), ("--help", "Usage: calcore ")):
            done = subprocess.run(
                [sys.executable, "-c", code, word], capture_output=True, text=True, check=True
            )
            assert done.stdout.startswith(start)
            assert done.stdout.endswith("\n[]\n")

    def test_help_lists_commands_in_this_order(self, run: Run) -> None:
        """The order is that of imports, which a tool that sorts them would change."""
        listed = run("--help").out.partition("Commands:\n")[2].partition("\n\n")[0]
        names = [line.split()[0] for line in listed.splitlines() if line[2] != " "]
        assert names == [
            *("certify", "report", "curve", "compare", "plan", "drift"),
            *("monitor", "simulate", "table", "semantic"),
        ]

    @pytest.mark.parametrize(
        "words",
        [
            "certify a.parquet",
            "certify b.parquet --label late --score p --groups g --json",
            "certify a.csv --grid linear",
            "certify b.csv --pos-label yes --label late --score p",
            "certify a.arrow a.npz",
            "table build a.parquet -o a.table",
            "simulate --rows 100 -o new.parquet",
        ],
    )
    def test_pandas_waits_for_those_who_ask_for_it(self, words: str) -> None:
        labels, scores = simulate.rows(50, seed=SEED)
        truth, text = labels == 1, ["yes" if label else "no" for label in labels]
        plain = pa.table({"late": truth, "p": scores})
        parquet.write_table(plain, "a.parquet")
        parquet.write_table(plain.append_column("g", pa.array(np.arange(50) / 8)), "b.parquet")
        arrow_csv.write_csv(plain, "a.csv")
        arrow_csv.write_csv(pa.table({"late": text, "p": scores}), "b.csv")
        feather.write_feather(plain, "a.arrow")
        np.savez("a.npz", late=truth, p=scores)
        code = (
            "import sys, atexit, calcore.cli;"
            "atexit.register(lambda: print('pandas' in sys.modules)); calcore.cli.main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("\nFalse\n")

    def test_missing_packages_are_named(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def without(*missing: str) -> None:
            monkeypatch.setattr(cli, "find_spec", lambda name: None if name in missing else name)

        without("typer", "rich")
        ended = run("--version")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == (
            "calcore: the command needs typer, rich, which are not installed; type\n"
            "  python -m pip install 'calcore-calibration[cli]'\n"
        )
        without("pyarrow")
        assert "the command needs pyarrow, which is not installed" in run("certify", "a.csv").err

    @pytest.mark.parametrize("debug", [False, True])
    def test_our_own_faults_have_code_3(
        self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch, debug: bool
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError("a\nb")

        monkeypatch.setattr(calcore, "certify", fail)
        if debug:
            monkeypatch.setenv("CALCORE_DEBUG", "1")
        ended = run("certify", "a.parquet")
        assert (ended.code, ended.out) == (3, "")
        assert ended.err.endswith(
            "calcore: internal error: ZeroDivisionError: a\n"
            "This is a fault of calcore. Set CALCORE_DEBUG=1 to see the traceback.\n"
        )
        assert ("Traceback" in ended.err) == debug

    def test_too_little_memory(self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise MemoryError

        monkeypatch.setattr(calcore, "certify", fail)
        assert run("certify", "a.parquet") == (3, "", "calcore: not enough memory\n")

    def test_interrupted_while_certifying(self, job: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(calcore, "certify", interrupt)
        assert run("certify", "a.parquet") == (130, "", "calcore: interrupted\n")

    def test_a_script_sees_code_and_streams(self, job: Path) -> None:
        ended = shell("certify", "a.parquet", "b.parquet", "--json", "--max-ce", "0.001")
        assert (ended.code, ended.err) == (1, "")
        assert json.loads(ended.out)["gate"]["passed"] is False

    @pytest.mark.parametrize("output", ["job.parquet", "job.csv.gz", "job.npz"])
    def test_interrupt_leaves_no_file(self, output: str) -> None:
        Path(output).write_text("before")
        with subprocess.Popen(
            [*COMMAND, "simulate", "-o", output, "--rows", "1e10", "--force"],
            stderr=subprocess.PIPE,
            text=True,
            # what a shell starts in the background ignores the signal, and so would its children
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as child:
            deadline = time.monotonic() + 60
            while len(os.listdir()) < 2 and time.monotonic() < deadline:
                time.sleep(0.02)
            assert len(os.listdir()) == 2
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            try:
                _, err = child.communicate(timeout=60)
            except subprocess.TimeoutExpired:  # it would write for hours
                child.kill()
                raise
        assert (child.returncode, err) == (130, "calcore: interrupted\n")
        assert os.listdir() == [output]
        assert Path(output).read_text() == "before"

    def test_a_reader_that_goes_away_changes_nothing(self, job: Path) -> None:
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [*COMMAND, "certify", "a.parquet", "--max-ce", "0.001"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(write)
        assert (done.returncode, done.stderr) == (1, "")

    @pytest.mark.parametrize(
        ("words", "code"), [("--help", 0), ("certify --help", 0), ("--version", 0), ("bogus", 2)]
    )
    def test_only_a_failed_gate_ends_with_1(self, words: str, code: int) -> None:
        read, write = os.pipe()
        os.close(read)
        for stdout, expected, message in (
            (write, code, ""),
            (None, code, ""),
            ("/dev/full", code or 2, "" if code else "calcore: standard output: No space left on device\n"),
        ):
            target = "" if stdout == write else f"exec >{stdout or '&-'};"
            done = subprocess.run(
                ["sh", "-c", f'{target} exec "$@"', "sh", *COMMAND, *words.split()],
                stdout=write,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            assert done.returncode == expected
            assert done.stderr == message or (code == 2 and done.stderr.startswith("Usage: calcore"))
        os.close(write)

    @pytest.mark.parametrize(
        ("redirections", "code", "message"),
        [
            (">&-", 1, ""),
            ("<&- >&- 2>&-", 1, ""),
            ("2>&-", 1, ""),
            (">/dev/full", 2, "calcore: standard output: No space left on device\n"),
            (">/dev/full 2>/dev/full", 2, ""),
        ],
    )
    def test_streams_that_are_closed_or_full(
        self, job: Path, redirections: str, code: int, message: str
    ) -> None:
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, "certify", "a.parquet", "--max-ce=0"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, message)

    @pytest.mark.parametrize(
        ("fault", "code"),
        [
            (ZeroDivisionError("x"), 3),
            (OSError(28, "full"), 2),
            (MemoryError(), 3),
            (KeyboardInterrupt(), 130),
            (EOFError(), 3),
        ],
    )
    def test_faults_outside_of_a_command_have_their_codes_too(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, fault: BaseException, code: int
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise fault

        monkeypatch.setattr("typer.main.get_command", fail)
        assert run("--help").code == code

    def test_names_that_the_encoding_lacks(self) -> None:
        parquet.write_table(pa.table({"y": [0, 1], "väh": [0.5, 0.5]}), "a.parquet")
        ended = shell("certify", "a.parquet", PYTHONIOENCODING="ascii")
        assert (ended.code, ended.err) == (0, "")
        assert "score v\\xe4h" in ended.out
        ended = shell("certify", "a.parquet", "--label", "é", PYTHONIOENCODING="ascii")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == "calcore: a.parquet: no column \\xe9 (--label); it has y, v\\xe4h\n"

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_names_of_files_in_any_locale(self, suffix: str) -> None:
        name = os.fsdecode(f"ü.{suffix}".encode())
        environment = {"LC_ALL": "C", "PYTHONUTF8": "0"}
        assert shell("simulate", "-o", name, "--rows", "100", **environment).code == 0
        assert Path(name).exists()
        ended = shell("certify", name, **environment)
        assert (ended.code, ended.err) == (0, "")
        assert f"Data        '\\udcc3\\udcbc.{suffix}', label" in ended.out
        assert f"Data        ü.{suffix}, label" in shell("certify", name, PYTHONIOENCODING="utf-8").out
        ended = shell("table", "build", name, "-o", os.fsdecode("ü".encode()), **environment)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith("'\\udcc3\\udcbc': 100 rows in ")

    def test_names_of_files_cannot_write_to_the_terminal(self, run: Run) -> None:
        name = "\x1b[31m.csv"
        assert run("simulate", "-o", name, "--rows", "10").out.startswith("'\\x1b[31m.csv': 10 rows, ")
        assert "Data        '\\x1b[31m.csv', label" in run("certify", name).out
        assert run("table", "build", name, "-o", "\x1b").out.startswith("'\\x1b': 10 rows in ")


def in_a_terminal(*words: str, columns: int = 70, **environment: str) -> str:
    """What the command writes to a terminal of its own."""
    primary, secondary = pty.openpty()
    child = subprocess.Popen(
        [*COMMAND, *words],
        stdout=secondary,
        stderr=secondary,
        stdin=secondary,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color", **environment},
    )
    os.close(secondary)
    written = b""
    while True:
        try:
            chunk = os.read(primary, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not chunk:
            break
        written += chunk
    os.close(primary)
    assert child.wait() == 0
    return written.decode()


class TestTerminal:
    def test_emphasis_only_where_it_is_seen_and_wanted(self, job: Path) -> None:
        text = in_a_terminal("certify", "a.parquet", "--max-ce", "0.5")
        assert "\x1b[1mThe calibration error is between 0 and 0.0" in text
        assert "\x1b[1;32mGate passed" in text
        plain = in_a_terminal("certify", "a.parquet", "--max-ce", "0.5", NO_COLOR="1")
        assert "\x1b[1;32m" not in plain
        assert "Gate passed" in plain

    def test_emphasis_of_what_changed(self, job: Path) -> None:
        words = ("monitor", "a.parquet", "--state", "state")
        assert "\x1b[1;32mNo alarm after 1,500 rows." in in_a_terminal(*words)
        assert "\x1b" not in in_a_terminal(*words[:1], *words[2:], NO_COLOR="1", TERM="dumb")
        for name in "ab":
            assert shell("table", "build", f"{name}.parquet", "-o", f"{name}.cells").code == 0
        assert "\x1b[1mHad nothing changed" in in_a_terminal("drift", "a.cells", "b.cells")

    def test_text_is_as_wide_as_the_terminal(self, job: Path) -> None:
        text = in_a_terminal("certify", "a.parquet", columns=50, NO_COLOR="1", TERM="dumb")
        assert max(map(len, text.splitlines())) <= 50

    def test_long_jobs_have_a_progress_bar(self) -> None:
        text = in_a_terminal("simulate", "-o", "a.csv.gz", "--rows", "4e5")
        assert "writing" in text
        assert "\x1b[?25l" in text  # cursor hidden while the bar moves
        assert text.rstrip().endswith("true calibration error 0")


def peak_memory(*words: str) -> float:
    """Largest resident memory of a command, in MiB.

    From the process itself: what wait4 reports starts at the size of the process that forked.
    """
    code = (
        "import atexit, sys; from calcore import cli; from pathlib import Path;"
        "atexit.register(lambda: sys.stderr.write(Path('/proc/self/status').read_text())); cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return next(int(line.split()[1]) / 1024 for line in done.stderr.splitlines() if line.startswith("VmHWM:"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "few", "many"),
    [
        ("parquet", "2e6", "2e7"),
        ("arrow", "2e6", "2e7"),
        ("npz", "2e6", "2e7"),
        ("csv", "1.2e6", "5e6"),
    ],
)
def test_memory_does_not_grow_with_rows(suffix: str, few: str, many: str) -> None:
    peaks = []
    for rows in (few, many):
        assert shell("simulate", "-o", f"a.{suffix}", "--rows", rows).code == 0
        peaks.append(peak_memory("certify", f"a.{suffix}"))
        Path(f"a.{suffix}").unlink()
    assert peaks[1] - peaks[0] <= 64, peaks


def test_exit_codes_are_the_documented_ones() -> None:
    codes = (process.DONE, process.FAILED, process.USAGE, process.INTERNAL, process.INTERRUPTED)
    assert codes == (0, 1, 2, 3, 130)
    assert all(str(code) in (cli.__doc__ or "") for code in codes)


def test_the_readme_begins_with_what_the_command_prints(run: Run) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    block = readme.split("```")[1].strip()
    flights = Path(datasets.__file__).parent / "flights_random.parquet"
    assert "`calcore certify calcore/datasets/flights_random.parquet`" in readme
    printed = run("certify", str(flights)).out
    for part in block.split("\n\n"):
        assert part in printed


class TestEnd:
    """The console script ends the process at once, with its code, whatever threads are still at work."""

    @pytest.mark.parametrize(("words", "code"), [("'--version'", 0), ("'certify', 'missing.csv'", 2)])
    def test_does_not_wait_for_threads_and_does_what_was_registered(self, words: str, code: int) -> None:
        script = (
            "import atexit, sys, threading, time; from calcore.cli import entry\n"
            "threading.Thread(target=time.sleep, args=(60,)).start()\n"
            "atexit.register(print, 'registered')\n"
            f"sys.argv = ['calcore', {words}]; entry()"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False
        )
        assert ended.returncode == code
        assert ended.stdout.endswith("registered\n")
        assert ended.stderr == ("calcore: missing.csv: no such file\n" if code else "")

    def test_columns_that_are_missing_end_with_their_code(self) -> None:
        """A reader of CSV is at work in the background when the process ends."""
        Path("a.csv").write_text("late,p\n" + "0,0.25\n1,0.75\n" * 500)
        codes = {
            subprocess.run([*COMMAND, "curve", "a.csv", "--score", "q"], capture_output=True).returncode
            for _ in range(6)
        }
        assert codes == {2}
