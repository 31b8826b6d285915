"""Planning: what is planned is what `certify` gives, by simulation; and sensitivity to the assumption."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

from calcore import CellTable, ScoreTable, certify, perturb, planning, rows_needed, sensitivity

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
LAWS: dict[str, Draw] = {
    "uniform": lambda rng, n: rng.random(n),
    "confidences": lambda rng, n: rng.beta(9.0, 1.0, n),
    "rare": lambda rng, n: rng.beta(0.5, 49.5, n),
    "eleven values": lambda rng, n: np.round(rng.random(n), 1),
    "near .1": lambda rng, n: 0.1 + 0.005 * (2.0 * rng.random(n) - 1.0),
}


def typical(n: int, draw: Draw, eta: Callable[[Any], Any], side: Any) -> float:
    """Median upper end of simulated certificates."""
    runs = 31 if n < 100_000 else 7
    rng = np.random.default_rng(20250103)
    uppers = []
    for _ in range(runs):
        s = draw(rng, n)
        uppers.append(certify(rng.random(n) < eta(s), s, side=side, variation=1.0).upper)
    return float(np.median(uppers))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("target", "side"), [(0.06, "upper"), (0.03, "both"), (0.02, "upper")])
def test_a_calibrated_model_gets_what_was_planned(law: str, target: float, side: Any) -> None:
    plan = rows_needed(target, scores=LAWS[law](np.random.default_rng(1), 20_000), side=side)
    # Rounding n up to two digits takes up to 4% off; the mean size of noise stands for noise, which at a few
    # hundred rows is right to about a tenth. Bounds by inversion vary by 12 % from sample to sample, the
    # median of 31 of them by 3 %.
    assert 0.85 * target < typical(plan.n, LAWS[law], lambda s: s, side) < 1.1 * target


@pytest.mark.parametrize(
    ("eta", "ce"),
    [
        (lambda s: np.minimum(1.0, s + 0.05), 0.04875),
        (lambda s: np.minimum(s, 0.8), 0.02),
        (lambda s: s * s, 1 / 6),
    ],
)
def test_an_error_of_any_shape_gets_at_most_what_was_planned(eta: Callable[[Any], Any], ce: float) -> None:
    plan = rows_needed(ce + 0.03, scores=np.linspace(0.0, 1.0, 5000), ce=ce)
    assert ce < typical(plan.n, LAWS["uniform"], eta, "upper") < ce + 0.03


@pytest.mark.parametrize(
    ("eta", "ce", "target"),
    [
        (lambda t: t, 0.000457, 0.04),
        (lambda t: t, 0.000457, 0.015),
        (lambda t: np.floor(16 * t) % 2, 0.277, 0.30),
    ],
)
def test_perturbed_scores_are_planned_by_polynomials(
    eta: Callable[[Any], Any], ce: float, target: float
) -> None:
    h = 2.0**-6
    given = perturb(np.random.default_rng(2).random(20_000), h, rng=2)
    plan = rows_needed(target, scores=given, ce=ce, perturbed=h)
    assert plan.variation is None
    assert plan.perturbed == h
    uppers = []
    for seed in range(15):
        t = np.random.default_rng([3, seed]).random(plan.n)
        y = np.random.default_rng([4, seed]).random(plan.n) < eta(t)
        uppers.append(certify(y, perturb(t, h, rng=seed), perturbed=h, side="upper").upper)
    assert (0.9 if ce < 0.01 else 0.2) * (target - ce) < np.median(uppers) - ce < 1.1 * (target - ce)
    both = rows_needed(target, scores=given, ce=ce, perturbed=h, variation=1.0)
    assert both.variation == 1.0
    assert both.n < 1.2 * plan.n


def test_a_base_rate_alone_is_planned_for_the_worst_scores_of_that_mean() -> None:
    alone = rows_needed(0.03, base_rate=0.5).n
    for scores in (np.linspace(0.0, 1.0, 5000), np.linspace(0.3, 0.7, 5000), np.repeat([0.25, 0.75], 500)):
        assert rows_needed(0.03, scores=scores).n <= alone
    assert rows_needed(0.03, base_rate=0.5).base_rate == pytest.approx(0.5, abs=1e-12)


def test_only_values_that_repeat_are_planned_as_atoms() -> None:
    """Between distinct quantiles of a law a jump can hide; in a value that many of them have it cannot."""
    spread = np.linspace(0.1, 0.9, 50)
    cells = planning._cells(np.sort(np.concatenate([spread, np.full(20, 0.5)])), 7000)
    atom = cells.lo == 0.5
    assert (cells.hi[atom] == 0.5).all()
    assert cells.n[atom].sum() == 2000
    assert (cells.hi[~atom] > cells.lo[~atom]).all()
    votes = rows_needed(0.02, scores=np.repeat(spread, 400))
    assert rows_needed(0.02, scores=np.linspace(0.1, 0.9, 20_000)).n > 1.5 * votes.n


def test_more_is_asked_for_more() -> None:
    n = rows_needed(0.03, base_rate=0.3).n
    assert rows_needed(0.02, base_rate=0.3).n > n
    assert rows_needed(0.03, base_rate=0.3, delta=1e-4).n > n
    assert rows_needed(0.03, base_rate=0.3, variation=3.0).n > n
    both, upper = (dict(rows_needed(0.03, base_rate=0.3, side=side).curve) for side in ("both", "upper"))
    assert all(both[rows] > upper[rows] for rows in both.keys() & upper.keys())
    assert both.keys() & upper.keys()
    assert rows_needed(0.03, base_rate=0.3, ce=0.01).n > n
    assert rows_needed(0.03, base_rate=0.01).n < n


def test_a_larger_target_never_needs_more_rows() -> None:
    planned = [
        rows_needed(target, base_rate=0.2).n for target in (0.02, 0.0201, 0.021, 0.05, 0.06, 0.0601, 0.9)
    ]
    assert planned == sorted(planned, reverse=True)
    many = np.random.default_rng(3).random(200_000)
    assert rows_needed(0.03, scores=many).n == pytest.approx(
        rows_needed(0.03, scores=many[:20_000]).n, rel=0.1
    )


def test_the_curve_falls_through_the_target() -> None:
    plan = rows_needed(0.03, base_rate=0.3)
    rows, uppers = zip(*plan.curve, strict=True)
    assert list(rows) == sorted(rows)
    assert list(uppers) == sorted(uppers, reverse=True)
    assert dict(plan.curve)[plan.n] <= 0.03
    assert any(upper > 0.03 for upper in uppers)
    plain = json.loads(json.dumps(plan.to_dict()))
    assert plain["n"] == plan.n
    assert plain["curve"][0] == {"n": rows[0], "upper": uppers[0]}
    assert f"RowsNeeded({plan.n:,} rows for an upper bound of 0.03 at 0.95" in repr(plan)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, TypeError, "base_rate or scores must be given"),
        ({"base_rate": 0.5, "scores": [0.5]}, TypeError, "base_rate or scores must be given"),
        ({"base_rate": 0.0}, ValueError, "base_rate must lie strictly between 0 and 1"),
        ({"scores": [1.5]}, ValueError, r"scores must lie in \[0, 1\]; got 1.5 at index 0"),
        ({"scores": []}, ValueError, "scores must have at least one row"),
        ({"base_rate": 0.5, "ce": 0.1}, ValueError, "target must be above ce; got 0.05 and 0.1"),
        ({"base_rate": 0.5, "ce": 0.04999999999}, ValueError, "target must be larger: 1e.12 rows"),
        ({"base_rate": 0.5, "variation": math.inf}, ValueError, "variation must be finite"),
        ({"scores": [0.5, 0.6], "perturbed": 0.0}, ValueError, "perturbed must be"),
        ({"base_rate": 0.5, "perturbed": 0.1}, TypeError, "scores must be given with perturbed"),
        ({"base_rate": 0.5, "side": "lower"}, ValueError, "side must be one of"),
        ({"base_rate": 0.5, "delta": 5}, ValueError, "delta must lie strictly"),
    ],
)
def test_faults_of_a_plan_are_named(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rows_needed(0.05, **options)


# --- sensitivity


def rows(n: int = 4000) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    rng = np.random.default_rng(5)
    s = rng.random(n)
    return rng.random(n) < s, s


def test_sensitivity_is_certify_at_each_variation() -> None:
    y, s = rows()
    for given in ((y, s), (ScoreTable(y, s), None), (CellTable().update(y, s), None)):
        found = sensitivity(*given, [2, 0.5, 1], delta=0.1)
        assert list(found) == [0.5, 1.0, 2.0]
        for v, certificate in found.items():
            assert certificate.to_dict() == certify(*given, variation=v, delta=0.1).to_dict()
        assert found[0.5].upper < found[1.0].upper < found[2.0].upper
    tv = sensitivity(y, s, [1.0], method="tv", side="upper")
    assert tv[1.0].method == "tv"


def test_sensitivity_says_that_each_is_alone() -> None:
    y, s = rows(500)
    found = sensitivity(y, s, [1.0, math.inf])
    assert "each alone at 0.95" in repr(found)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["valid"] == "each alone"
    assert [c["variation"] for c in plain["certificates"]] == [1.0, "inf"]
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()
    assert len(found) == 2
    assert found[math.inf].assumption == "none"


def test_sensitivity_keeps_the_same_rows_of_groups() -> None:
    y, s = rows(900)
    found = sensitivity(y, s, groups=np.arange(900) // 3, rng=4)
    assert {(c.n, c.n_dropped, c.n_positive) for c in found.values()} == {(300, 600, found[1.0].n_positive)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0.1, 0.9], []), "variations must have at least one value"),
        (([0, 1], [0.1, 0.9], [-1]), "variations must be a number >= 0"),
        (([0, 1], None), "y_prob is missing"),
    ],
)
def test_faults_of_sensitivity_are_named(arguments: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        sensitivity(*arguments)


# --- the command


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "calcore", *words], capture_output=True, text=True, check=False
    )


def test_command(tmp_path: Path) -> None:
    ended = command("plan", "--target", "0.03", "--base-rate", "0.3", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == json.loads(json.dumps(rows_needed(0.03, base_rate=0.3).to_dict()))
    scores = np.random.default_rng(0).random(3000)
    parquet.write_table(pa.table({"p": scores}), tmp_path / "scores.parquet")
    ended = command("plan", str(tmp_path / "scores.parquet"), "--score", "p", "--target", "0.03")
    assert f"About {rows_needed(0.03, scores=scores).n:,} rows for an upper bound of 0.03" in ended.stdout
    words = ("--score", "p", "--target", "0.03", "--perturbed", "0.01")
    ended = command("plan", str(tmp_path / "scores.parquet"), *words)
    assert "scores perturbed with width 0.01, upper end only" in " ".join(ended.stdout.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "0.03"), "--base-rate, or FILE and --score, must be given"),
        (("--target", "0.03", "--base-rate", "3"), "--base-rate must lie strictly between 0 and 1"),
        (("--target", "0.03", "--base-rate", ".3", "--ce", ".1"), "--target must be above ce"),
        (("--target", "0.03", "nofile.csv", "--score", "p"), "nofile.csv"),
        (
            ("--target", "0.03", "--base-rate", ".3", "--perturbed", ".1"),
            "--perturbed needs FILE and --score",
        ),
        (("--target", "0.03", "nofile.csv"), "name the column of scores with --score"),
    ],
)
def test_command_faults(words: tuple[str, ...], message: str) -> None:
    ended = command("plan", *words)
    assert ended.returncode == 2
    assert message in ended.stderr
