"""The second opinion: it agrees on hundreds of problems, and would not if either solver were less exact."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from calcore import CellTable, ScoreTable
from calcore.reference import MAX_DIFFERENCE, MAX_EXCESS, TOLERANCE, CrossCheck, cross_check
from calcore.total_variation import Optimality

LOOSE = {"tol_gap_abs": 1e-8, "tol_gap_rel": 1e-8, "tol_feas": 1e-8}  # Clarabel's own


def certificate_penalty(n, delta=0.01):
    """lam of the published certificate in rows: sqrt(ln(4 (n - 1) / delta) / (8 n)) n."""
    return math.sqrt(math.log(4 * (n - 1) / delta) * n / 8)


def random_problem(rng):
    n = int(rng.integers(1, rng.choice([5, 50, 300, 2001])))
    kind = rng.integers(4)
    if kind == 0:  # labels pooled by score
        w = rng.integers(1, rng.choice([3, 50]), n)
        y = rng.binomial(w, np.linspace(0, 1, n) ** rng.choice([0.5, 1, 3])) / w
        return y, w, certificate_penalty(w.sum() + 1) * rng.choice([0.3, 1.0, 3.0])
    w = rng.random(n) + 0.1
    y = {
        1: rng.normal(size=n),
        2: np.cumsum(rng.normal(size=n)),
        3: np.sin(np.arange(n) / 9) + rng.random(n),
    }[kind]
    return y, w, float(10 ** rng.uniform(-2, 1.5))


def test_random_weighted_problems():
    rng = np.random.default_rng(36)
    unlike = []
    for _ in range(250):
        y, w, lam = random_problem(rng)
        found = cross_check(y, lam, sample_weight=w)
        if not found.agrees:
            unlike.append((found, lam))
    assert not unlike, unlike


def grid_job(cells=4096, rows=10_000_000):
    """What scores on a grid make of many rows: weights and rates."""
    rng = np.random.default_rng(65536)
    w = np.full(cells, rows // cells)
    s = (np.arange(cells) + 0.5) / cells
    return rng.binomial(w, s + 0.1 * np.sin(6 * s)) / w, w, certificate_penalty(rows)


def test_a_grid_of_many_rows():
    y, w, lam = grid_job()
    found = cross_check(y, lam, sample_weight=w)
    assert found.agrees, found
    assert found.weight == w.sum()
    assert found.n == len(y)


def test_loose_tolerances_would_be_noticed():
    y, w, lam = grid_job()
    found = cross_check(y, lam, sample_weight=w, **LOOSE)
    assert found.reference.excess > MAX_EXCESS
    assert found.difference > MAX_DIFFERENCE
    assert not found.agrees


def test_an_objective_per_row_would_be_noticed():
    """The same problem divided by the number of rows, which is how the estimate is usually written."""
    y, w, lam = grid_job()
    scaled = cross_check(y, lam / w.sum(), sample_weight=w / w.sum(), **LOOSE)
    assert not scaled.agrees
    assert scaled.difference > 10 * MAX_DIFFERENCE
    assert scaled.ours.excess <= 1e-12  # ours does not mind


def test_a_wrong_answer_of_ours_would_be_noticed(monkeypatch):
    y, w, lam = grid_job(256)
    import calcore.reference as reference

    exact = reference.tv_denoise
    monkeypatch.setattr(reference, "tv_denoise", lambda *args, **kwargs: exact(*args, **kwargs) + 1e-7)
    found = cross_check(y, lam, sample_weight=w)
    assert found.ours.excess > MAX_EXCESS
    assert not found.agrees
    assert "DOES NOT AGREE" in str(found)


@pytest.mark.parametrize("table", [ScoreTable, CellTable])
def test_a_table_is_its_cells(table):
    rng = np.random.default_rng(3)
    s = np.round(rng.random(5000), 2)
    t = (rng.random(5000) < s).astype(int)
    made = ScoreTable(t, s) if table is ScoreTable else CellTable(1000).update(t, s)
    found = cross_check(made, certificate_penalty(5000))
    scores, inverse = np.unique(s, return_inverse=True)
    n, k = np.bincount(inverse), np.bincount(inverse, t)
    plain = cross_check(k / n, certificate_penalty(5000), sample_weight=n)
    assert found == plain
    assert found.agrees
    assert found.n == len(scores)
    assert found.weight == 5000
    with pytest.raises(ValueError, match=r"^sample_weight must be None beside a table"):
        cross_check(made, 1.0, sample_weight=n)


@pytest.mark.parametrize(
    ("y", "lam", "w"),
    [
        ([0.5], 1.0, None),
        ([0.0, 1.0], 0.0, None),
        ([2.0, 2.0], 1.0, None),
        ([0.0, 9.0, 1.0], 0.25, [1, 0, 1]),
        ([1.0, 0.0, 1.0], 100.0, [1, 2, 3]),
        ([True, False], 0.25, None),
    ],
)
def test_small_problems(y, lam, w):
    found = cross_check(y, lam, sample_weight=w)
    assert found.agrees, found
    assert found.n == len(y) - (w is not None and 0 in w)


def test_report():
    found = cross_check([0.0, 0.0, 1.0, 1.0, 0.0], 0.25)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["agrees"] is True
    assert plain["ours"]["objective"] == found.ours.objective
    assert str(found).startswith("cvxpy ")
    assert "agrees on 5 unknowns" in str(found)
    assert TOLERANCE == 1e-13
    fine = Optimality(1.0, 0.0, 0.0, 0.0)
    assert CrossCheck(1, 1.0, 1.0, fine, fine, 2e-6, "x").agrees is False
    assert CrossCheck(1, 1.0, 1.0, fine, Optimality(1.0, 2e-10, 0.0, 2e-10), 0.0, "x").agrees is False


def test_refusals():
    with pytest.raises(ValueError, match=r"^y must be finite"):
        cross_check([0.0, np.nan], 1.0)
    with pytest.raises(ValueError, match=r"^lam must be finite"):
        cross_check([0.0, 1.0], math.inf)
