"""Segments: each is certified as if alone, at its share, and all intervals hold together."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

from calcore import CellTable, certify, certify_classwise, certify_groups
from calcore.report.sets import set_text


def drawn(n: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.str_]]:
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return (
        (rng.random(n) < scores).astype(int),
        scores,
        rng.choice(["fr", "pl", "uk"], n, p=[0.7, 0.25, 0.05]),
    )


@pytest.mark.parametrize("side", ["both", "upper", "lower"])
def test_a_segment_is_certified_as_if_alone(side: Any) -> None:
    y, s, country = drawn(3000)
    ours = certify_groups(y, s, by=country, delta=0.1, side=side)
    assert list(ours) == ["fr", "pl", "uk"]
    for name in ours:
        alone = certify(y[country == name], s[country == name], delta=0.8 * 0.1 / 3, side=side)
        assert ours[name].to_dict() == alone.to_dict()
    assert ours.pooled is not None
    assert ours.pooled.to_dict() == certify(y, s, delta=0.2 * 0.1, side=side).to_dict()
    assert ours.delta == 0.1
    assert ours.pooled.delta + sum(c.delta for c in ours.values()) == pytest.approx(0.1, rel=1e-12)


def test_the_share_of_the_pooled_does_not_depend_on_the_number_of_segments() -> None:
    """That number is a part of the sample; a share of the pooled certificate must be fixed before it."""
    y, s, _ = drawn(400)
    pooled = [certify_groups(y, s, by=np.arange(400) % k).pooled for k in (1, 2, 7)]
    assert {c.delta for c in pooled if c is not None} == {0.2 * 0.05}


def test_all_segments_are_covered_together_where_bounds_are_tight() -> None:
    """Random segments, one score: atoms, whose errors sit at the detection limit of a segment's share."""
    k, n, runs, delta = 8, 1600, 250, 0.2
    rng = np.random.default_rng(20250102)
    off = np.where(np.arange(k) % 2 == 0, 0.11, -0.11)
    missed = 0
    for _ in range(runs):
        by = rng.integers(0, k, n)
        y = rng.random(n) < 0.5 + off[by]
        ours = certify_groups(y, np.full(n, 0.5), by=by, delta=delta, variation=math.inf)
        assert ours.pooled is not None
        inside = [c.lower <= 0.11 <= c.upper for c in ours.values()]
        missed += not (all(inside) and ours.pooled.lower == 0.0)
    assert missed <= delta * runs + 4 * math.sqrt(delta * (1 - delta) * runs)


def test_small_segments_work() -> None:
    y, s, _ = drawn(600)
    by = np.minimum(np.arange(600), 20)  # twenty segments of one row
    for method, assumption in (("auto", {}), ("tv", {}), ("buckets", {"lipschitz": 2.0})):
        ours = certify_groups(y, s, by=by, method=method, **assumption)
        assert [c.n for c in ours.values()] == [1] * 20 + [580]
        assert all(0.0 <= c.lower <= c.upper <= 1.0 for c in ours.values())


def test_a_model_right_on_average_and_wrong_in_segments() -> None:
    y = np.concatenate([np.zeros(3000), np.ones(3000), np.zeros(1000), np.ones(3000)])
    ours = certify_groups(y, np.full(10_000, 0.6), by=[0] * 6000 + [1] * 4000)
    assert ours.pooled is not None
    assert ours.pooled.lower == 0.0
    assert 0.07 < ours[0].lower <= 0.1 <= ours[0].upper < 0.13
    assert 0.11 < ours[1].lower <= 0.15 <= ours[1].upper < 0.18


DAY = datetime.date(2024, 5, 1)


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (["b", "a", "b", "c"], ["a", "b", "c"]),
        (np.array(["b", "a", "b", "c"], object), ["a", "b", "c"]),
        ([3, 1, 3, 20], [1, 3, 20]),
        (np.int8([3, 1, 3, 20]), [1, 3, 20]),
        ([0.5, -0.0, 0.5, 0.0], [0.0, 0.5]),
        ([True, False, True, True], [False, True]),
        (pd.Series(["b", "a", "b", "c"], index=[4, 3, 2, 1]), ["a", "b", "c"]),
        (pd.Series(["b", "a", "b", "c"], dtype="category"), ["a", "b", "c"]),
        (pd.Categorical(["b", "a", "b", "c"], categories=["c", "b", "a", "unused"]), ["a", "b", "c"]),
        (pd.array([3, 1, 3, 20], dtype="Int64"), [1, 3, 20]),
        (pl.Series(["b", "a", "b", "c"]), ["a", "b", "c"]),
        (pl.Series(["b", "a", "b", "c"], dtype=pl.Categorical), ["a", "b", "c"]),
        (pa.array(["b", "a", "b", "c"]), ["a", "b", "c"]),
        (np.array([DAY, DAY, DAY, DAY + datetime.timedelta(1)], object), [DAY, DAY + datetime.timedelta(1)]),
        ([("uk", 1), ("fr", 2), ("uk", 1), ("uk", 0)], None),
    ],
)
def test_kinds_of_segments(by: Any, names: list[Any] | None) -> None:
    if names is None:  # a list of tuples is a matrix
        with pytest.raises(ValueError, match="by must be one-dimensional"):
            certify_groups([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], by=by)
        return
    ours = certify_groups([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], by=by)
    assert list(ours) == names
    assert sum(c.n for c in ours.values()) == 4
    assert json.loads(json.dumps(ours.to_dict()))["pooled"]["n"] == 4


def test_objects_that_cannot_be_sorted_keep_their_order() -> None:
    by = np.empty(3, object)
    by[:] = [frozenset("b"), frozenset("a"), frozenset("b")]

    class Blue:
        pass

    sky, sea = Blue(), Blue()
    by[:] = [sky, sea, sky]
    ours = certify_groups([0, 1, 1], [0.1, 0.2, 0.3], by=by)
    assert list(ours) == [sky, sea]
    assert [c.n for c in ours.values()] == [2, 1]


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        (None, TypeError, "by must be a column of values; got None"),
        ("uk", ValueError, "by must be one-dimensional"),
        (["uk"], ValueError, "by and y_true must have the same length; got 1 and 2"),
        (["uk", None], ValueError, "by must not have missing values; got 1 missing, the first at index 1"),
        ([1.0, math.nan], ValueError, "by must not have missing values; got 1 missing, the first at index 1"),
        (pd.Series(["uk", pd.NA], dtype="string"), ValueError, "by must not have missing values"),
        (pd.Categorical(["uk", None]), ValueError, "by must not have missing values"),
        (pa.array(["uk", None]), ValueError, "by must not have missing values"),
        (np.array(["2024-01-01", "NaT"], "M8[D]"), ValueError, "by must not have missing values"),
        (["uk", 1], ValueError, "by must hold values of one kind"),
        (np.array([["uk"], ["fr"]], object), ValueError, "by must be one-dimensional"),
    ],
)
def test_faults_of_segments_are_named(by: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        certify_groups([0, 1], [0.25, 0.75], by=by)


def test_unhashable_segments_are_refused() -> None:
    by = np.empty(2, object)
    by[:] = [["a"], ["b"]]
    with pytest.raises(ValueError, match="by must hold hashable values"):
        certify_groups([0, 1], [0.25, 0.75], by=by)


def test_faults_of_rows_are_named_by_their_place_in_the_whole() -> None:
    with pytest.raises(ValueError, match=r"y_prob must lie in \[0, 1\]; got 1.5 at index 3"):
        certify_groups([0, 1, 0, 1], [0.1, 0.2, 0.3, 1.5], by=[0, 1, 0, 1])
    with pytest.raises(TypeError):
        certify_groups(CellTable().update([0], [0.5]), [0.5], by=[0])  # type: ignore[arg-type]


def test_one_row_of_each_patient_is_kept_before_segments_are_made() -> None:
    y, s, country = drawn(3000)
    patients = np.repeat(np.arange(1000), 3)
    ours = certify_groups(y, s, by=country, groups=patients, rng=3)
    assert ours.pooled is not None
    assert ours.pooled.n == sum(c.n for c in ours.values()) == 1000
    assert sum(c.n_dropped for c in ours.values()) == ours.pooled.n_dropped == 2000
    assert ours.pooled.n_positive == sum(c.n_positive for c in ours.values())
    assert ours.pooled.mean_score == pytest.approx(
        sum(c.mean_score * c.n for c in ours.values()) / 1000, rel=1e-12
    )
    again = certify_groups(y, s, by=country, groups=patients, rng=3)
    assert again.to_dict() == ours.to_dict()
    other = certify_groups(y, s, by=country, groups=patients, rng=4)
    assert other.to_dict() != ours.to_dict()


def test_a_segment_without_kept_rows_is_not_there() -> None:
    by = ["a", "b"] * 5
    ours = certify_groups([0, 1] * 5, [0.5] * 10, by=by, groups=[0] * 10)
    assert len(ours) == 1


def test_labels_of_any_kind() -> None:
    ours = certify_groups(["y", "n", "n"], [0.5, 0.5, 0.25], by=[1, 1, 2], pos_label="y")
    assert [c.n_positive for c in ours.values()] == [1, 0]
    ours = certify_groups([-1, 1, -1], [0.5, 0.5, 0.25], by=[1, 1, 2])
    assert [c.n_positive for c in ours.values()] == [1, 0]


def test_repr() -> None:
    y, s, country = drawn(300)
    text = repr(certify_groups(y, s, by=country))
    assert text.startswith("CertificateSet(3 segments, all at once at 0.95; pooled CE in [")
    assert "'uk': [0, " in text


# --- the command and its text


def written(path: Path, n: int = 900) -> dict[str, Any]:
    y, s, country = drawn(n)
    parquet.write_table(pa.table({"late": y, "p": s, "country": country}), path)
    return {"y": y, "s": s, "country": country}


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "calcore", *words], capture_output=True, text=True, check=False
    )


def test_command_by_a_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    data = written(path)
    ours = certify_groups(data["y"], data["s"], by=data["country"], rng=0)
    words = ("certify", str(path), "--label", "late", "--score", "p", "--by", "country")
    ended = command(*words, "--json")
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)
    assert printed["certificates"] == json.loads(json.dumps(ours.to_dict()))["certificates"]
    assert printed["columns"] == {"label": "late", "score": "p", "by": "country"}
    ended = command(*words, "--max-ce", "0.2")
    assert ended.returncode == 1, "the upper end of the smallest segment is above .2"
    assert "95% confidence for all of these" in " ".join(ended.stdout.split())
    assert [line.split()[0] for line in ended.stdout.splitlines() if line[:2] in ("fr", "pl", "uk")] == [
        "fr",
        "pl",
        "uk",
    ]
    assert "Gate failed" in ended.stdout
    assert command(*words, "--max-ce", "1").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "contry"), "no column contry (--by); did you mean country?"),
        (("--by", "country", "--groups", "country"), "--by takes no --groups"),
        (("--by", "country", "--bins", "5"), "--by takes no --groups"),
    ],
)
def test_command_faults(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    path = tmp_path / "rows.parquet"
    written(path, 50)
    ended = command("certify", str(path), "--label", "late", "--score", "p", *words)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_text_rounds_outwards_and_names_every_assumption() -> None:
    y, s, country = drawn(900)
    s = np.where(country == "uk", 0.5, s)
    ours = certify_groups(y, s, by=country)
    text = set_text(ours, heading="country", population="last year", data="rows.parquet")
    assert text.startswith("Population: last year")
    assert "Assumption: none" in text
    assert "total variation <= 1" in text
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line[:2] in ("fr", "pl", "uk")}
    for name, c in ours.items():
        assert float(lines[name][-1]) >= c.upper
        assert float(lines[name][-2]) <= c.lower
    assert "all rows" in text


def test_text_of_classes_and_odd_names() -> None:
    ours = certify_classwise(
        ["a\nb", "x" * 50, "c"], np.full((3, 3), 1 / 3), labels=["a\nb", "x" * 50, "c"], delta=0.1
    )
    text = set_text(ours)
    assert "every class, with 90% confidence" in text
    assert "a\\nb" in text
    assert "x" * 29 + "..." in text
    assert "\nmean" in text
    assert "Warning" not in text
