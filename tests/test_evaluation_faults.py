"""Faults that were found in reports of several models, of classes and of groups, and stay mended."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import calcore
from calcore.evaluation.one import _risk
from calcore.files.plan import Classes
from calcore.files.rows import take_in_classes
from calcore.table import ScoreTable

B = 99


def rows(n: int = 400) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(5)
    scores = rng.random(n)
    return (rng.random(n) < scores).astype(np.int64), scores


def test_certified_differences_hold_together_at_delta() -> None:
    y, s = rows()
    found = calcore.evaluate_models(y, {"a": s, "b": s**2, "c": s**1.5}, n_resamples=B, delta=0.05)
    spent = sum(2.0 * d.delta for _, d in found.certified)  # one for the CE, one for the Brier score
    assert spent <= 0.05 * (1 + 1e-12)


def test_verdict_names_no_better_model_among_equals() -> None:
    """Ten exchangeable models: at 95 % a verdict may name a better one in about 1 of 20 samples."""
    wrong = 0
    for sample in range(20):
        rng = np.random.default_rng([10, sample])
        z = rng.choice([-1, 1], size=(300, 10))
        y = (rng.random(300) < 0.5 + 0.04 * z.sum(1)).astype(int)
        models = {f"m{i}": 0.5 + 0.04 * z[:, i] for i in range(10)}
        verdict = calcore.evaluate_models(y, models, n_resamples=B, rng=sample).verdict
        wrong += "no model is shown to be better" not in verdict
    assert wrong <= 6  # P(Binomial(20, 0.05) > 6) < 1e-4


def test_no_model_better_is_said_of_all_pairs() -> None:
    rng = np.random.default_rng(1)
    eta = rng.random(400)
    y = (rng.random(400) < eta).astype(int)
    noise = np.random.default_rng(5)
    a = np.clip(eta + 0.25 * noise.standard_normal(400), 0, 1)
    b = np.clip(eta + 0.25 * noise.standard_normal(400), 0, 1)
    c = np.where(y == 1, b - 0.01, b + 0.01).clip(0, 1)
    found = calcore.evaluate_models(y, {"a": a, "b": b, "c": c}, n_resamples=999)
    assert found.comparison.difference("b", "c", "brier").distinguishable_together
    assert "no model is shown to be better" not in found.verdict


def test_asked_resamples_are_made() -> None:
    y, s = rows()
    found = calcore.evaluate_models(y, {"a": s, "b": s**2}, n_resamples=50_000)
    assert found.comparison.n_resamples >= 50_000
    calcore.evaluate_models(y, {"a": s, "b": s**2}, n_resamples=40_000, delta=5e-5)


@pytest.mark.parametrize("pattern", ["p_*", "p_?", "p_[0-2]", "*_*"])
def test_number_in_a_column_name_is_its_class(tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "p.parquet"
    first = {"y": [2, 0, 1, 2], "p_2": [0.8, 0.1, 0.1, 0.8], "p_0": [0.1, 0.8, 0.1, 0.1]}
    parquet.write_table(pa.table(first | {"p_1": [0.1, 0.1, 0.8, 0.1]}), path)
    try:
        given = take_in_classes([str(path)], Classes.of(pattern), label="y")
    except ValueError:
        return  # to refuse is right too
    assert np.array_equal(given.matrix.argmax(1), given.codes)


def test_truth_value_in_a_column_name_is_its_class(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    parquet.write_table(pa.table({"y": [True, False], "p_true": [0.9, 0.2], "p_false": [0.1, 0.8]}), path)
    try:
        given = take_in_classes([str(path)], Classes.of("p_*"), label="y")
    except ValueError:
        return
    assert np.array_equal(given.matrix.argmax(1), given.codes)


def test_fault_beside_groups_names_the_model() -> None:
    y, s = rows()
    bad = s.copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match=r"models\['b'\]"):
        calcore.evaluate_models(y, {"a": s, "b": bad}, groups=np.arange(400) // 2, n_resamples=B)


def test_dropped_rows_are_counted_everywhere() -> None:
    y, s = rows()
    groups = np.arange(400) // 2
    found = calcore.evaluate_models(y, {"a": s, "b": s**2}, groups=groups, n_resamples=B)
    assert [d.n_dropped for _, d in found.certified] == [200]


def test_call_reproduces() -> None:
    y, s = rows()
    found = calcore.evaluate(
        np.where(y == 1, "ja", "no"), s, pos_label="ja", delta=0.123456789, n_resamples=B
    )
    assert "pos_label" in found.command
    assert "0.123456789" in found.command


def test_equal_confidences_are_tied() -> None:
    s = np.arange(101) / 100.0
    found = _risk(ScoreTable(np.arange(101) % 2, s), "positive")
    assert len(found.coverage) == 51  # 0.5, 0.51, ..., 1


def test_sampled_values_are_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calcore.evaluation.one.RESAMPLED_ROWS", 100)
    y, s = rows()
    found = calcore.evaluate(y, s, n_resamples=B)
    assert found.comparison.estimate("model", "brier").estimate != calcore.brier_score(y, s)
    assert found.warnings[0].startswith(
        "the scores and errors that have an interval by resampling, the isotonic"
    )


def test_tied_models_have_no_smallest() -> None:
    y, s = rows()
    verdict = calcore.evaluate_models(y, {"a": s, "b": s.copy()}, n_resamples=B).verdict
    assert "a has the smallest" not in verdict


@pytest.mark.parametrize("words", ["--by lists", "--groups lists"])
def test_lists_are_no_segments(tmp_path: Path, words: str) -> None:
    y, s = rows(60)
    parquet.write_table(pa.table({"y": y, "s": s, "lists": [[1]] * 60}), tmp_path / "p.parquet")
    typed = f"report p.parquet --label y --score s --resamples 99 {words}"
    ended = subprocess.run([sys.executable, "-m", "calcore", *shlex.split(typed)], cwd=tmp_path, check=False)
    assert ended.returncode == 2


def test_labels_that_begin_alike_are_what_the_star_stands_for(tmp_path: Path) -> None:
    P = np.random.default_rng(3).dirichlet([1.0, 1.0], 60)
    rows = {"y": ["cat", "cow"] * 30, "p_cat": P[:, 0], "p_cow": P[:, 1]}
    parquet.write_table(pa.table(rows), tmp_path / "p.parquet")
    given = take_in_classes([str(tmp_path / "p.parquet")], Classes.of("p_*"), label="y")
    assert given.names == ("cat", "cow")
    assert given.codes.tolist() == [0, 1] * 30
