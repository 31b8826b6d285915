"""Files of questions: what loads, what does not fit and is said so, and what comes back."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from calcore.semantic import (
    Misfit,
    Question,
    agreement_of,
    gather_samples,
    question_of,
    read_questions,
    writing_questions,
)

NASTY = 'é "quoted"\n\ttab \u2028 \x00 \x1b[31m 日本 {"id": 1}'


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class TestRows:
    def test_names_of_this_library(self) -> None:
        row = {
            "id": "a",
            "question": "?",
            "gold_answer": "Paris",
            "answers": ["Paris", "Lyon", "paris"],
            "assignments": [0, 1, 0],
            "verbalized": [0.5, None, 1],
            "logit": 0.25,
            "class_grades": {"0": 1, "1": "INCORRECT"},
            "mine": [1, {"x": None}],
        }
        made = question_of(row)
        assert made == Question(
            "a",
            "?",
            "Paris",
            ("Paris", "Lyon", "paris"),
            (0, 1, 0),
            (0.5, None, 1.0),
            {0: 1, 1: 0},
            1,
            0.25,
            {"mine": [1, {"x": None}]},
        )
        assert question_of(made.to_dict()) == made

    @pytest.mark.parametrize(
        ("word", "grade"), [("CORRECT", 1), ("INCORRECT", 0), ("NOT_ATTEMPTED", 0), ("PARSE_ERROR", None)]
    )
    def test_published_names(self, word: str, grade: int | None) -> None:
        row = {
            "id": 17,
            "cluster_assignments": [2, 0, 2, 1],
            "confidence_verbalized": [0.9, 0.8, float("nan"), 1.0],
            "modal_cluster": 2,
            "grade": word,
        }
        made = question_of(row)
        assert (made.id, made.assignments, made.modes, made.grade) == ("17", (2, 0, 2, 1), (2,), grade)
        assert made.verbalized == (0.9, 0.8, None, 1.0)

    @pytest.mark.parametrize(
        ("given", "grade"), [(1, 1), (0, 0), (True, 1), (False, 0), (1.0, 1), (None, None), (math.nan, None)]
    )
    def test_grades(self, given: Any, grade: int | None) -> None:
        assert question_of({"id": "a", "assignments": [0, 0], "Y": given}).grade == grade

    @pytest.mark.parametrize("grades", [{"0": 0, "3": 1}, {0: 0, 3: 1}, [0, None, None, 1], [(0, 0), (3, 1)]])
    def test_grades_of_classes_in_any_form(self, grades: Any) -> None:
        made = question_of({"id": "a", "assignments": [3, 0, 3, 1, 2], "class_grades": grades})
        assert {number: grade for number, grade in made.class_grades.items() if grade is not None} == {
            0: 0,
            3: 1,
        }
        assert made.grade == 1

    def test_modes(self) -> None:
        assert question_of({"id": "a", "assignments": [4, 2, 4, 2, 9]}).modes == (2, 4)
        assert question_of({"id": "a"}).modes == ()

    def test_a_published_mode_of_several_is_kept(self) -> None:
        row = {"id": "a", "cluster_assignments": [1, 0, 1, 0, 2], "modal_cluster": 1, "grade": "CORRECT"}
        made = question_of(row)
        assert (made.modes, made.grade, made.modal_cluster) == ((1, 0), 1, 1)
        assert question_of(made.to_dict()) == made
        graded = question_of(row | {"grade": None, "class_grades": {"0": 0, "1": 1}})
        assert graded.grade == 1

    def test_one_stated_confidence(self) -> None:
        assert question_of({"id": "a", "assignments": [0, 0], "verbalized": 0.7}).verbalized == 0.7

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ({}, "id must be text or a whole number; got None"),
            ({"id": ""}, "id must be"),
            ({"id": True}, "id must be"),
            ({"id": 1.5}, "id must be"),
            ({"id": "\ud800"}, "id holds half of a surrogate pair, at character 0"),
            ([1], "a row must be an object with named fields"),
            ({"question": ["?"]}, "question must be text"),
            ({"answers": "Paris"}, "answers must be a list with a value for each answer; got 'Paris'"),
            ({"answers": []}, "answers must be a list"),
            ({"answers": ["a", None]}, "answers must be text; got None at index 1"),
            ({"answers": ["a", "\udfff"]}, "answers[1] holds half of a surrogate pair"),
            (
                {"assignments": [0, -1]},
                "assignments must be classes, whole numbers from 0; got -1 at index 1",
            ),
            ({"assignments": [0.5, 1]}, "got 0.5 at index 0"),
            ({"assignments": [True, 1]}, "got True at index 0"),
            ({"assignments": ["0", "1"]}, "got '0' at index 0"),
            ({"assignments": [2**31, 1]}, "got 2147483648 at index 0"),
            ({"assignments": [math.inf, 1]}, "got inf at index 0"),
            ({"cluster_assignments": [-1]}, "cluster_assignments must be classes"),
            ({"assignments": [0], "cluster_assignments": [0]}, "are the same field; leave one out"),
            (
                {"answers": ["a"], "assignments": [0, 1]},
                "answers and assignments must have the same length; got 1, 2",
            ),
            (
                {"assignments": [0, 1], "verbalized": [1]},
                "assignments and verbalized must have the same length",
            ),
            ({"verbalized": [0.5, 95]}, "got 95 at index 1; divide percentages by 100"),
            ({"verbalized": -0.1}, "verbalized must lie in [0, 1] or be null; got -0.1"),
            ({"verbalized": ["90%"]}, "got '90%' at index 0"),
            ({"verbalized": math.inf}, "got inf"),
            ({"logit": 2}, "logit must lie in [0, 1]"),
            ({"Y": 2}, "Y must be 1, 0, true, false, null or one of CORRECT"),
            ({"grade": "correct"}, "grade must be 1, 0, true"),
            ({"Y": 1, "grade": "CORRECT"}, "Y and grade are the same field"),
            ({"class_grades": 1}, "class_grades must be an object or list"),
            ({"class_grades": {"x": 1}}, "class_grades must be classes, whole numbers from 0; got 'x'"),
            ({"class_grades": {"1" * 5000: 1}}, "class_grades must be classes"),
            ({"class_grades": {"0": 1, "00": 0}}, "class_grades grades class 0 twice"),
            ({"assignments": [0, 0], "class_grades": {"1": 1}}, "class 1, which no answer is assigned to"),
            (
                {"assignments": [0, 1], "class_grades": {"0": 1}, "Y": 0},
                "Y is 0, but class_grades says 1 of class 0",
            ),
            (
                {"assignments": [0, 0, 1], "modal_cluster": 1},
                "modal_cluster is 1, but the most frequent class of assignments is 0: the grade would be "
                "that of another class; leave modal_cluster and the grade out, and grade again",
            ),
            ({"assignments": [0, 0], "modal_cluster": "0"}, "modal_cluster must be classes, whole numbers"),
            ({"assignments": [0, 0], "modal_cluster": 0.5}, "got 0.5"),
        ],
    )
    def test_what_does_not_fit(self, row: Any, reason: str) -> None:
        given = {"id": "a", **row} if isinstance(row, dict) and "id" not in row and row else row
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - every message is checked
            question_of(given)
        assert reason in str(caught.value)
        assert len(str(caught.value)) < 300


class TestReading:
    def test_every_row_is_accounted_for(self, tmp_path: Path) -> None:
        path = tmp_path / "q.jsonl"
        path.write_bytes(
            b'\xef\xbb\xbf{"id": "a"}\r\n'
            b"\n"
            b"{bad\n"
            b'{"id": "a", "question": "again"}\n'
            b'{"id": "b", "answers": 1}\n'
            b'\xff{"id": "c"}\n'
            b"[1]\n"
            b'{"id": "d\xe2\x80\xa8e"}\n' + b"[" * 100_000 + b"\n"
            b'{"id": ' + b"9" * 5000 + b"}\n"
            b'{"id": 3}'
        )
        found = list(read_questions(path))
        assert [each.id for each in found if isinstance(each, Question)] == ["a", "d\u2028e", "3"]
        misfits = [(each.id, each.row, each.reason) for each in found if isinstance(each, Misfit)]
        assert [(identity, row) for identity, row, _ in misfits] == [
            (None, 2),
            ("a", 3),
            ("b", 4),
            (None, 5),
            (None, 6),
            (None, 8),
            (None, 9),
        ]
        reasons = [reason for *_, reason in misfits]
        for reason, said in zip(
            reasons,
            (
                "not JSON",
                "also that of row 1",
                "answers must be a list",
                "not UTF-8",
                "named fields",
                "deeply",
                "a number of 5,000 digits",
            ),
            strict=True,
        ):
            assert said in reason

    def test_progress(self, tmp_path: Path) -> None:
        path = written(tmp_path / "q.jsonl", *({"id": i} for i in range(5)))
        seen: list[tuple[float, int]] = []
        list(read_questions(path, progress=lambda fraction, rows: seen.append((fraction, rows))))
        assert [rows for _, rows in seen] == [1, 2, 3, 4, 5]
        assert seen[-1][0] == 1.0

    def test_several_files_are_read_one_after_the_other(self, tmp_path: Path) -> None:
        one = written(tmp_path / "one.jsonl", {"id": "a"}, {"id": "b"})
        two = tmp_path / "two.parquet"
        parquet.write_table(pa.table({"id": ["c", "c"]}), two)
        seen: list[tuple[float, int]] = []
        *fit, misfit = read_questions([one, two], progress=lambda part, rows: seen.append((part, rows)))
        assert [each.id for each in fit] == ["a", "b", "c"]
        assert misfit == Misfit("c", 2, "the id is also that of row 1", file=str(two))
        assert [rows for _, rows in seen] == [1, 2, 3, 4]
        assert [part for part, _ in seen] == sorted(part for part, _ in seen)
        assert seen[-1][0] == 1.0

    def test_an_id_is_in_one_file(self, tmp_path: Path) -> None:
        one = written(tmp_path / "one.jsonl", {"id": "a"}, {"id": "b"})
        two = written(tmp_path / "two.jsonl", {"id": "c"}, {"id": "b"})
        with pytest.raises(
            ValueError, match=r"two.jsonl': id 'b' is also in '.*one.jsonl'; files that are read"
        ):
            list(read_questions([one, two]))

    @pytest.mark.parametrize("text", ['[{"id": 1},\n{"id": 2}]', '[\n{"id": 1}\n]', '{\n "id": 1\n}'])
    def test_json_over_several_lines(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "q.jsonl"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(
            ValueError, match=r"q.jsonl' holds JSON over several lines; write one object a line"
        ):
            list(read_questions(path))

    def test_a_name_twice_in_a_row(self, tmp_path: Path) -> None:
        path = tmp_path / "q.jsonl"
        path.write_text('{"id": "a", "Y": 1, "Y": 0}\n', encoding="utf-8")
        assert list(read_questions(path)) == [Misfit(None, 1, "the name 'Y' is there twice in an object")]
        table = pa.table([["a"], [1], [0]], names=["id", "Y", "Y"])
        parquet.write_table(table, tmp_path / "q.parquet")
        with pytest.raises(ValueError, match="cannot be read as Parquet: there are two columns 'Y'"):
            list(read_questions(tmp_path / "q.parquet"))

    def test_rows_are_read_one_by_one(self, tmp_path: Path) -> None:
        path = written(tmp_path / "q.jsonl", *({"id": i, "question": "x" * 1000} for i in range(1000)))
        seen: list[float] = []
        rows = read_questions(path, progress=lambda fraction, rows: seen.append(fraction))
        next(rows)
        next(rows)
        assert seen == [pytest.approx(0.001, rel=0.1)]
        del rows

    def test_faults_of_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            list(read_questions(tmp_path / "none.jsonl"))
        with pytest.raises(ValueError, match=r"must end in one of \.jsonl, \.ndjson, \.parquet, \.pq"):
            list(read_questions(tmp_path / "q.csv"))
        (tmp_path / "q.parquet").write_bytes(b"no")
        with pytest.raises(ValueError, match="cannot be read as Parquet"):
            list(read_questions(tmp_path / "q.parquet"))
        assert list(read_questions(written(tmp_path / "empty.jsonl"))) == []

    def test_parquet_of_others(self, tmp_path: Path) -> None:
        table = pa.table(
            {
                "id": [1, 2, 2],
                "cluster_assignments": [[0, 1, 0], [5, 5, 5], [0]],
                "grade": ["CORRECT", "PARSE_ERROR", "CORRECT"],
                "confidence_verbalized": [[0.5, None, 1.0], None, [1.0]],
                "note": ["x", None, "y"],
            }
        )
        parquet.write_table(table, tmp_path / "q.parquet")
        a, b, c = read_questions(tmp_path / "q.parquet")
        assert a == Question(
            "1", assignments=(0, 1, 0), verbalized=(0.5, None, 1.0), grade=1, others={"note": "x"}
        )
        assert b == Question("2", assignments=(5, 5, 5))
        assert isinstance(c, Misfit)


class TestParquet:
    @pytest.mark.parametrize(
        "others", [[7, 7], [[1], [1]], ["[1]", "[1]"], ["{", "{"], [b"{}", b"{}"], ['{"x": 1, "x": 2}'] * 2]
    )
    def test_other_fields_that_are_no_object(self, others: list[Any], tmp_path: Path) -> None:
        parquet.write_table(pa.table({"id": ["a", "b"], "other_fields": others}), tmp_path / "q.parquet")
        found = list(read_questions(tmp_path / "q.parquet"))
        assert [each.id for each in found] == ["a", "b"]
        for each in found:
            assert isinstance(each, Misfit)
            assert each.reason.startswith("other_fields must hold a JSON object as text; got ")

    def test_columns_come_before_other_fields(self, tmp_path: Path) -> None:
        others = '{"id": "x", "question": "y", "note": 1, "verbalized": 0.25}'
        columns = {"id": ["a"], "question": pa.array([None], pa.string()), "verbalized_mean": [0.5]}
        parquet.write_table(pa.table(columns | {"other_fields": [others]}), tmp_path / "q.parquet")
        (found,) = read_questions(tmp_path / "q.parquet")
        assert found == Question("a", "y", verbalized=0.5, others={"note": 1})

    def test_what_python_has_no_time_for(self, tmp_path: Path) -> None:
        """Times after the year 9999, alone and in lists; the other values of the column are themselves."""
        far = pa.array([10**18, None, 0], pa.timestamp("ms"))
        many = pa.array([[10**18], [], None], pa.list_(pa.timestamp("ms")))
        parquet.write_table(pa.table({"id": [1, 2, 3], "t": far, "u": many}), tmp_path / "q.parquet")
        a, b, c = read_questions(tmp_path / "q.parquet")
        assert isinstance(a, Question)
        assert isinstance(b, Question)
        assert isinstance(c, Question)
        assert "10000000000000" in a.others["t"]
        assert set(a.others) == {"t", "u"}
        assert b.others == {"u": []}
        assert c.others["t"].year == 1970
        with writing_questions(tmp_path / "r.jsonl") as write:
            write(a)
            write(c)
        assert [each.id for each in read_questions(tmp_path / "r.jsonl")] == ["1", "3"]

    def test_damaged_pages_name_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "q.parquet"
        parquet.write_table(pa.table({"id": [f"{i:05}" for i in range(5000)]}), path, use_dictionary=False)
        whole = bytearray(path.read_bytes())
        whole[200:1200] = b"\xff" * 1000
        path.write_bytes(whole)
        with pytest.raises(ValueError, match=r"q.parquet' cannot be read as Parquet: ") as caught:
            list(read_questions(path))
        assert str(caught.value).count("q.parquet") == 1


FULL = [
    Question(
        "a",
        NASTY,
        "g" * 10_000,
        (NASTY, ""),
        (3, 0),
        (0.1, None),
        {0: None, 3: 1},
        None,
        0.125,
        {"x": {"y": [1, None]}},
    ),
    Question("b", assignments=(1, 1, 0), verbalized=0.7, grade=0),
    Question("c"),
    Question("日本", answers=("x",), others={"when": "now", "half": "\ud800"}),
]


class TestWriting:
    @pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".parquet", ".pq"])
    def test_comes_back_the_same(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"q{suffix}"
        with writing_questions(path) as write:
            for each in FULL:
                write(each)
        found = list(read_questions(path))
        assert [each.to_dict() for each in found] == [each.to_dict() for each in FULL]

    @pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
    def test_many_and_none(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"q{suffix}"
        for n in (0, 700):
            with writing_questions(path) as write:
                for i in range(n):
                    write(Question(str(i), answers=(str(i),) * 2))
            assert [each.id for each in read_questions(path)] == [str(i) for i in range(n)]

    @pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
    def test_completely_or_not_at_all(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"q{suffix}"
        path.write_bytes(b"mine")
        with pytest.raises(KeyboardInterrupt), writing_questions(path) as write:  # noqa: PT012
            write(Question("a"))
            raise KeyboardInterrupt
        assert path.read_bytes() == b"mine"
        assert list(tmp_path.iterdir()) == [path]

    @given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=4))
    def test_any_text_comes_back(self, tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
        folder = tmp_path_factory.mktemp("any")
        for name in ("q.jsonl", "q.parquet"):
            with writing_questions(folder / name) as write:
                write(Question("a", texts[0], answers=tuple(texts)))
            (found,) = read_questions(folder / name)
            assert isinstance(found, Question)
            assert (found.question, found.answers) == (texts[0], tuple(texts))


class TestOtherFields:
    @pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
    def test_are_written_as_json(self, suffix: str, tmp_path: Path) -> None:
        others = {"nan": math.nan, "deep": [{"inf": -math.inf}], "bytes": b"a\xff", "when": date(2026, 5, 1)}
        path = tmp_path / f"q{suffix}"
        with writing_questions(path) as write:
            write(Question("a", others=others))
        (found,) = read_questions(path)
        assert isinstance(found, Question)
        plain = {"deep": [{"inf": None}], "bytes": "a\\xff", "when": "2026-05-01"}
        assert found.others == plain
        assert b"NaN" not in path.read_bytes()


class TestMisfit:
    def test_is_fit_for_a_terminal(self) -> None:
        for misfit in (Misfit("\x1b[2J" + "x" * 1000, 1, "r"), Misfit(None, 1234, "r"), Misfit(None, 0, "r")):
            assert str(misfit).isprintable()
            assert len(str(misfit)) < 100
        assert str(Misfit(None, 1234, "r")) == "row 1,234: r"
        assert json.loads(json.dumps(Misfit("a", 1, "r", "call").to_dict())) == {
            "id": "a",
            "file": None,
            "row": 1,
            "reason": "r",
            "stage": "call",
        }
        assert str(Misfit("a", 1, "r", file="b\x1b.jsonl")) == "'b\\x1b.jsonl', id 'a': r"


class TestGathering:
    def test_samples(self) -> None:
        given: list[Question | Misfit] = [
            Question("a", assignments=(7, 7, 3), verbalized=(1.0, None, 0.5), grade=1, logit=0.25),
            Misfit("m", 2, "bad"),
            Question("b", answers=("x", "y")),
            Question("c", assignments=(0,)),
            Question("d", assignments=(0, 1)),
        ]
        found = gather_samples(given)
        s = found.samples
        assert s.ids == ("a", "d")
        assert s.sizes.tolist() == [3, 2]
        np.testing.assert_array_equal(s.grades, [1.0, np.nan])
        assert s.verbalized is not None
        np.testing.assert_array_equal(s.verbalized, [1.0, np.nan, 0.5, np.nan, np.nan])
        assert s.logit is not None
        np.testing.assert_array_equal(s.logit, [0.25, np.nan])
        assert s.class_grades is None
        assert [(each.id, each.reason) for each in found.misfits] == [
            ("m", "bad"),
            ("b", "assignments is missing; 'calcore semantic cluster' makes them"),
            ("c", "1 answer; a confidence takes at least 2"),
        ]

    def test_a_published_mode_is_the_mode(self) -> None:
        """It is the answer that is deployed and graded; classes keep their numbers."""
        given = Question(
            "a",
            assignments=(4, 2, 4, 2, 9),
            class_grades={2: 0, 4: 1, 9: 0},
            grade=1,
            modal_cluster=4,
        )
        s = gather_samples([given, Question("b", assignments=(1, 0), grade=0)]).samples
        assert s.class_grades is not None
        assert s.codes.tolist() == [1, 0, 1, 0, 2, 1, 0]
        assert s.graded is not None
        assert s.graded.tolist() == [1, 0]
        np.testing.assert_array_equal(s.class_grades, [0.0, 1.0, 0.0, 0.0, np.nan])
        np.testing.assert_array_equal(s.grades, [1.0, 0.0])

    def test_confidences_that_are_all_missing_are_none(self) -> None:
        missing = [Question(name, assignments=(0, 0), verbalized=(None, None)) for name in "ab"]
        s = gather_samples(missing).samples
        assert s.verbalized is None
        assert s.verbalized_means is None
        one = Question("c", assignments=(0, 0), verbalized=(None, 0.5))
        assert gather_samples([*missing, one]).samples.verbalized is not None

    def test_means_stay_means_unless_mixed(self) -> None:
        means = [Question("a", assignments=(0, 0), verbalized=0.7), Question("b", assignments=(0, 1))]
        s = gather_samples(means).samples
        assert s.verbalized is None
        assert s.verbalized_means is not None
        np.testing.assert_array_equal(s.verbalized_means, [0.7, np.nan])
        mixed = [*means, Question("c", assignments=(0, 1), verbalized=(0.1, 0.2))]
        s = gather_samples(mixed).samples
        assert s.verbalized is not None
        np.testing.assert_array_equal(s.verbalized, [0.7, 0.7, np.nan, np.nan, 0.1, 0.2])

    def test_grades_of_classes(self) -> None:
        rows = [
            Question("a", assignments=(5, 2, 5), class_grades={2: 0}, grade=1),
            Question("b", assignments=(0, 1, 1), grade=0),
        ]
        s = gather_samples(rows).samples
        assert s.class_grades is not None
        assert s.classes.tolist() == [2, 5, 0, 1]
        np.testing.assert_array_equal(s.class_grades, [0.0, 1.0, np.nan, 0.0])

    def test_nothing_to_score(self) -> None:
        with pytest.raises(
            ValueError, match="no question to score; the first: id 'a': assignments is missing"
        ):
            gather_samples([Question("a")])
        with pytest.raises(ValueError, match=r"no question to score$"):
            gather_samples([])

    def test_agreement_is_of_the_same_answers(self) -> None:
        a = gather_samples(
            [
                Question("a", answers=("x", "y", "z"), assignments=(0, 0, 1)),
                Question("b", answers=("x", "y"), assignments=(0, 0)),
                Question("c", answers=("xy", ""), assignments=(0, 1)),
                Question("d", assignments=(0, 1)),
            ]
        )
        b = gather_samples(
            [
                Question("d", assignments=(0, 1)),  # without texts: nobody knows
                Question("c", answers=("x", "y"), assignments=(0, 1)),  # of another model
                Question("a", answers=("x", "y", "z"), assignments=(9, 4, 4)),
            ]
        )
        found = agreement_of(a, b)
        assert found is not None
        assert (found.n, found.rand) == (1, pytest.approx(1 / 3))
        assert agreement_of(a, gather_samples([Question("z", assignments=(0, 1))])) is None
