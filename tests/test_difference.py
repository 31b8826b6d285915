"""Two models: the differences of calibration error and Brier score, and that they are covered."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calcore import certify, certify_difference


def models(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Labels, a calibrated model and an overconfident one."""
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return (rng.random(n) < s).astype(int), s, np.clip(1.4 * s - 0.2, 0.0, 1.0)


def test_ends_are_those_of_two_certificates_at_half_delta() -> None:
    y, a, b = models(3000)
    found = certify_difference(y, a, b, delta=0.1)
    first, second = certify(y, a, delta=0.05), certify(y, b, delta=0.05)
    assert found.a.to_dict() == first.to_dict()
    assert found.b.to_dict() == second.to_dict()
    assert found.ce_difference.lower == first.lower - second.upper
    assert found.ce_difference.upper == first.upper - second.lower


@pytest.mark.parametrize("n", [2, 7, 300_000])
def test_brier_interval_is_maurer_and_pontils(n: int) -> None:
    y, a, b = models(n)
    d = (a - y) ** 2 - (b - y) ** 2
    found = certify_difference(y, a, b, delta=0.1)
    # Two sides at delta / 2 each, range 2.
    nats = math.log(2 / 0.05)
    reach = math.sqrt(2 * d.var(ddof=1) * nats / n) + 7 * 2 * nats / (3 * (n - 1))
    assert found.mean_brier_difference == pytest.approx(d.mean(), abs=1e-14)
    assert found.brier_difference.lower == pytest.approx(max(-1.0, d.mean() - min(reach, 2.0)), abs=1e-12)
    assert found.brier_difference.upper == pytest.approx(min(1.0, d.mean() + min(reach, 2.0)), abs=1e-12)


def test_brier_interval_covers_where_it_is_tight() -> None:
    """Differences of two values, at sizes where the interval is not trivial; also a rare large difference."""
    rng = np.random.default_rng(20250104)
    n, runs, delta = 400, 300, 0.2
    for rate in (0.5, 0.01):
        missed = 0
        for _ in range(runs):
            y = rng.random(n) < rate
            found = certify_difference(y, np.zeros(n), np.ones(n), delta=delta, variation=math.inf)
            missed += not found.brier_difference.lower <= 2 * rate - 1 <= found.brier_difference.upper
        assert missed <= delta * runs


def test_ce_interval_covers_both_models_at_the_detection_limit() -> None:
    rng = np.random.default_rng(20250105)
    n, runs, delta = 500, 300, 0.2
    missed = 0
    for _ in range(runs):
        y = rng.random(n) < 0.5
        found = certify_difference(y, np.full(n, 0.56), np.full(n, 0.38), delta=delta, variation=math.inf)
        missed += not found.ce_difference.lower <= 0.06 - 0.12 <= found.ce_difference.upper
    assert missed <= delta * runs + 4 * math.sqrt(delta * (1 - delta) * runs)


def test_equal_models_differ_by_nothing() -> None:
    y, a, _ = models(5000)
    found = certify_difference(y, a, a)
    assert found.mean_brier_difference == 0.0
    assert found.brier_difference.upper == -found.brier_difference.lower
    assert found.brier_difference.upper == pytest.approx(14 * math.log(80) / (3 * 4999), rel=1e-12)
    assert found.ce_difference.lower == -found.ce_difference.upper


def test_exchanging_the_models_changes_signs() -> None:
    y, a, b = models(2000)
    one, other = certify_difference(y, a, b), certify_difference(y, b, a)
    assert one.ce_difference.lower == -other.ce_difference.upper
    assert one.brier_difference.lower == pytest.approx(-other.brier_difference.upper, abs=1e-15)


def test_a_better_model_is_found() -> None:
    y, a, b = models(20_000)
    found = certify_difference(y, a, b)
    assert found.brier_difference.upper < 0.0
    assert found.ce_difference.upper < 0.0


def test_one_row_of_each_group_the_same_for_both() -> None:
    y, a, b = models(900)
    found = certify_difference(y, a, b, groups=np.arange(900) // 3, rng=9)
    assert (found.n, found.n_dropped) == (300, 600)
    assert found.a.n == found.b.n == 300
    assert found.a.n_positive == found.b.n_positive
    same = certify_difference(y, a, a, groups=np.arange(900) // 3, rng=9)
    assert same.mean_brier_difference == 0.0
    assert same.a.to_dict() == found.a.to_dict()


def test_one_row() -> None:
    found = certify_difference([1], [0.5], [0.25])
    assert (found.brier_difference.lower, found.brier_difference.upper) == (-1.0, 1.0)


def test_result() -> None:
    y, a, b = models(300)
    found = certify_difference(y, a, b)
    assert "each at 0.95, n=300)" in repr(found)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["ce_difference"]["lower"] == found.ce_difference.lower
    assert plain["a"]["delta"] == 0.025
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0.5, 1.5], [0.5, 0.5]), {}, r"p_a must lie in \[0, 1\]; got 1.5 at index 1"),
        (([0, 1], [0.5, 0.5], [0.5, math.nan]), {}, r"p_b must lie in \[0, 1\]; got nan at index 1"),
        (([0, 1], [0.5, 0.5], [0.5]), {}, "y_true and p_b must have the same length; got 2 and 1"),
        (([0, 2], [0.5, 0.5], [0.5, 0.5]), {}, "y_true must hold labels 0/1"),
        (([0, 1], [0.5, 0.5], [0.5, 0.5]), {"side": "upper"}, "side must be left out"),
        (([0, 1], [0.5, 0.5], [0.5, 0.5]), {"delta": 0}, "delta must lie"),
        (([0, 1], [0.5, 0.5], [0.5, 0.5]), {"groups": [1]}, "groups and y_true must have the same length"),
        (([0, 1], [0.5, 0.5], None), {}, "p_b must be a column"),
    ],
)
def test_faults_are_named(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        certify_difference(*arguments, **options)


def test_pandas_columns_with_other_indexes_bring_a_warning() -> None:
    y = pd.Series([0, 1])
    with pytest.warns(UserWarning, match="different indexes"):
        certify_difference(y, pd.Series([0.1, 0.2], index=[1, 2]), pd.Series([0.1, 0.2]))
