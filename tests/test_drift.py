"""Two tables: exact level under each hypothesis, power where something changed."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from calcore import CellTable, ScoreTable, drift_test


def table(rng: np.random.Generator, n: int, scores: Any = None, eta: Any = lambda s: s) -> CellTable:
    s: NDArray[np.float64] = rng.random(n) if scores is None else scores(rng, n)
    return CellTable(1000).update(rng.random(n) < eta(s), s)


def test_one_bin_against_the_exact_hypergeometric_tail() -> None:
    """Few rows: one bin, and a p-value that can be summed up."""
    before = CellTable().update([1, 0], [0.5, 0.5])
    after = CellTable().update([1] * 14 + [0] * 2, [0.5] * 16)
    found = drift_test(before, after, n_draws=99_999, rng=1)
    assert found.n_bins == 1
    law = stats.hypergeom(18, 15, 2)
    k = np.arange(3)
    far = np.abs(k - law.mean()) >= abs(1 - law.mean()) - 1e-12
    exact = law.pmf(k[far]).sum()
    assert found.p_labels == pytest.approx(exact, abs=4 * math.sqrt(exact / 1e5))
    assert found.p_scores == 1.0


def test_scores_against_the_exact_tail_of_two_bins() -> None:
    before = CellTable().update([0] * 9, [0.1] * 8 + [0.9])
    after = CellTable().update([0] * 9, [0.1] * 2 + [0.9] * 7)
    found = drift_test(before, after, n_draws=99_999)
    assert found.n_bins == 2
    law = stats.hypergeom(18, 10, 9)
    exact = law.pmf([0, 1, 2, 8, 9]).sum()
    assert found.p_scores == pytest.approx(exact, abs=4 * math.sqrt(exact / 1e5))
    assert found.p_labels == 1.0
    assert found.p_value == 2.0 * found.p_scores


@pytest.mark.parametrize("n", [(40, 60), (400, 900)])
def test_level_when_nothing_changed(n: tuple[int, int]) -> None:
    """A miscalibrated model, the same in both: p <= a has probability at most a, for all three."""
    rng = np.random.default_rng(20250108)
    runs = 500
    ps = []
    for i in range(runs):
        one, two = (table(rng, m, eta=lambda s: s * s) for m in n)
        found = drift_test(one, two, n_draws=199, rng=i)
        ps.append((found.p_value, found.p_labels, found.p_scores))
    for a in (0.05, 0.2, 0.5):
        most = a * runs + 3.5 * math.sqrt(a * (1 - a) * runs)
        assert (np.array(ps) <= a).sum(axis=0).max() <= most


def test_level_for_labels_when_only_the_mix_of_scores_changed() -> None:
    """Scores with few values: bins hold one each, and rates by score are the same."""
    rng = np.random.default_rng(20250109)
    runs, refuted, moved = 300, 0, 0
    for i in range(runs):
        one = table(rng, 300, lambda g, n: g.choice([0.1, 0.4, 0.8], n, p=[0.6, 0.2, 0.2]))
        two = table(rng, 300, lambda g, n: g.choice([0.1, 0.4, 0.8], n, p=[0.2, 0.2, 0.6]))
        found = drift_test(one, two, n_draws=199, rng=i)
        refuted += found.p_labels <= 0.1
        moved += found.p_scores <= 0.1
    assert refuted <= 0.1 * runs + 3.5 * math.sqrt(0.09 * runs)
    assert moved == runs


def test_power() -> None:
    rng = np.random.default_rng(4)
    usual = table(rng, 20_000)
    drifted = drift_test(usual, table(rng, 5000, eta=lambda s: s**1.3))
    assert drifted.p_labels == 1e-4
    assert drifted.p_value == 2e-4
    assert drifted.p_scores > 0.01
    assert drift_test(usual, table(rng, 5000, lambda g, n: g.beta(1.2, 1.0, n))).p_scores == 1e-4


def test_result_and_reproducibility() -> None:
    rng = np.random.default_rng(5)
    one, two = table(rng, 700), table(rng, 300)
    found = drift_test(one, two, rng=3)
    assert (found.n_before, found.n_after, found.n_draws) == (700, 300, 9999)
    assert json.loads(json.dumps(found.to_dict())) == drift_test(one, two, rng=3).to_dict()
    assert one.n == 700
    assert drift_test(one, two, rng=4).to_dict() != found.to_dict()


def test_bins_do_not_depend_on_labels_or_on_which_table_is_first() -> None:
    rng = np.random.default_rng(6)
    s, u = rng.random(1000), rng.random(1000)
    one = CellTable().update(u < 0.5, s)
    two = CellTable().update(u < 0.1, 1 - s)
    assert drift_test(one, two).n_bins == drift_test(two, one).n_bins == 10


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (lambda t: (t, ScoreTable([0], [0.5])), {}, "after must be a CellTable; got ScoreTable"),
        (lambda t: (CellTable(1000), t), {}, "before must hold at least one row"),
        (lambda t: (t, CellTable(500).update([0], [0.5])), {}, "after must have the same grid as before"),
        (lambda t: (t, t), {"n_draws": 10**8}, "n_draws must be at most 10"),
        (lambda t: (t, t), {"n_draws": 0}, "n_draws must be a whole number >= 1"),
    ],
)
def test_faults_are_named(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        drift_test(*arguments(CellTable(1000).update([0, 1], [0.1, 0.2])), **options)
