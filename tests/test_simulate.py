"""Synthetic jobs: the stated errors are true, and the rows are what the docstrings say."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution

from calcore import simulate

BETAS = [(1.0, 1.0), (0.5, 49.5), (9.0, 1.0), (2.0, 2.0), (0.2, 199.8)]
SEED = 20240611


def error_by_quadrature(shape: str, a: float, b: float) -> float:
    """E|S - eta(S)| with the substitution u = F(s), which takes the poles of the density away."""
    law = beta_distribution(a, b)
    edges = sorted({0.0, 1.0, *(float(law.cdf(kink)) for kink in (0.5, 0.8, 0.95))})

    def gap(u: float) -> float:
        score = np.atleast_1d(law.ppf(u))
        return float(np.abs(score - simulate.SHAPES[shape](score))[0])

    return sum(quad(gap, *piece, limit=200, epsabs=1e-10)[0] for piece in pairwise(edges))


@pytest.mark.parametrize("ab", BETAS)
@pytest.mark.parametrize("shape", simulate.SHAPES)
def test_true_error_is_that_of_the_integral(shape: str, ab: tuple[float, float]) -> None:
    assert 0.0 <= simulate.true_error(shape, beta=ab) <= 1.0
    assert simulate.true_error(shape, beta=ab) == pytest.approx(error_by_quadrature(shape, *ab), abs=1e-7)


@pytest.mark.parametrize("shape", simulate.SHAPES)
def test_docstrings_state_the_error_for_uniform_scores(shape: str) -> None:
    stated = (simulate.SHAPES[shape].__doc__ or "").split("\n")[0].rstrip(".").split("uniform scores: ")[-1]
    value = stated.split("CE = ")[-1]
    top, _, bottom = value.partition("/")
    assert simulate.true_error(shape) == pytest.approx(float(top) / float(bottom or 1), abs=1e-12)


@pytest.mark.parametrize("ab", BETAS)
@pytest.mark.parametrize("shape", simulate.SHAPES)
def test_labels_follow_the_shape_and_scores_the_law(shape: str, ab: tuple[float, float]) -> None:
    labels, scores = simulate.rows(200_000, shape=shape, beta=ab, seed=SEED)
    assert labels.dtype == np.uint8
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0
    # Sums of independent terms of variance at most sigma^2: six standard deviations.
    mean, variance = ab[0] / sum(ab), beta_distribution(*ab).var()
    assert abs(scores.mean() - mean) <= 6.0 * sqrt(variance / len(scores))
    rates = simulate.SHAPES[shape](scores)
    for part in (scores <= mean, scores > mean):
        noise = sqrt((rates * (1.0 - rates))[part].sum()) + 1e-9
        assert abs((labels[part] - rates[part]).sum()) <= 6.0 * noise


@settings(max_examples=20, deadline=None)
@given(
    short=st.integers(1, 3 * simulate.BLOCK_ROWS),
    more=st.integers(0, simulate.BLOCK_ROWS),
    seed=st.integers(0, 2**70),
)
def test_a_longer_job_begins_with_the_shorter_one(short: int, more: int, seed: int) -> None:
    labels, scores = simulate.rows(short, seed=seed)
    longer_labels, longer_scores = simulate.rows(short + more, seed=seed)
    assert len(labels) == len(scores) == short
    assert np.array_equal(labels, longer_labels[:short])
    assert np.array_equal(scores, longer_scores[:short])


def test_blocks_are_of_bounded_size_and_differ() -> None:
    sizes = [len(scores) for _, scores in simulate.blocks(2 * simulate.BLOCK_ROWS + 5)]
    assert sizes == [simulate.BLOCK_ROWS, simulate.BLOCK_ROWS, 5]
    _, scores = simulate.rows(3 * simulate.BLOCK_ROWS)
    assert len(np.unique(scores)) == len(scores)


def test_seeds_differ_from_each_other_and_from_the_users_own() -> None:
    first, second = (simulate.rows(1000, seed=seed)[1] for seed in (0, 1))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, np.random.default_rng(0).random(1000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": "wavy"}, "shape must be one of calibrated, .*; got 'wavy'"),
        ({"beta": (0.0, 1.0)}, r"beta must be two positive numbers; got \(0.0, 1.0\)"),
        ({"beta": (1.0, float("nan"))}, "beta must be two positive numbers"),
        ({"n_rows": 0}, "n_rows must be at least 1; got 0"),
        ({"seed": -1}, "seed must be at least 0; got -1"),
    ],
)
def test_senseless_jobs_are_refused(arguments: dict[str, object], message: str) -> None:
    call: dict[str, object] = {"n_rows": 10} | arguments
    with pytest.raises(ValueError, match=message):
        list(simulate.blocks(**call))  # type: ignore[arg-type]
