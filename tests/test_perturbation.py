"""The law of perturbed scores against quadrature, and AUROC against counting pairs."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from calcore import CellTable, ScoreTable
from calcore.kernels import ranks
from calcore.perturbation import _inverse, auroc, auroc_loss, perturb

WIDTHS = [2.0**-k for k in range(2, 13)]
U = 2.0**-53


def inverse(t: float, h: float, uniform: Any) -> Any:
    uniform = np.atleast_1d(np.asarray(uniform, float))
    return _inverse(np.full(uniform.shape, t), h, uniform)


def mass(t: float, h: float, low: float, high: float) -> float:
    """Integral of sech((t - s) / h) over s in [low, high], cut where the integrand peaks or has vanished."""
    cuts = sorted({low, high, *(c for c in (t - 40 * h, t - h, t, t + h, t + 40 * h) if low < c < high)})
    return math.fsum(
        quad(
            lambda s: 1.0 / math.cosh(min(abs(t - s) / h, 700.0)), a, b, epsabs=0.0, epsrel=1e-13, limit=200
        )[0]
        for a, b in itertools.pairwise(cuts)
    )


@pytest.mark.parametrize("h", WIDTHS)
@pytest.mark.parametrize("t", [0.0, 1.0, 0.5, 2.0**-10, 1.0 - 2.0**-7, 0.3])
def test_law(t: float, h: float) -> None:
    """The share of the mass below the inverse of U is U, in the middle and in both tails."""
    whole = mass(t, h, 0.0, 1.0)
    for uniform in (1e-9, 1e-3, 0.1, 0.35, 0.5, 0.8, 0.999):
        s = float(inverse(t, h, uniform)[0])
        density = 1.0 / math.cosh(min(abs(t - s) / h, 700.0)) / whole
        # 1e-11 for the quadrature, and what an error of 10 U in s amounts to
        assert mass(t, h, 0.0, s) / whole == pytest.approx(uniform, rel=1e-11, abs=10 * U * density)
        s = float(inverse(t, h, 1.0 - uniform)[0])
        complement = 1.0 - (1.0 - uniform)
        density = 1.0 / math.cosh(min(abs(t - s) / h, 700.0)) / whole
        assert mass(t, h, s, 1.0) / whole == pytest.approx(complement, rel=1e-11, abs=10 * U * density)


def test_reference_values() -> None:
    """Numbers of an independent implementation: t, h, U and s."""
    for t, h, uniform, s in json.loads(
        """[[0.5, 0.015625, 0.5, 0.5], [0.5, 0.015625, 0.9, 0.528792656792],
        [0.0, 0.015625, 0.5, 0.0137714622972], [1.0, 0.0625, 0.25, 0.899069345308],
        [0.01, 0.015625, 0.1, 0.00386033126917], [0.3, 0.25, 0.75, 0.540419441019]]"""
    ):
        assert inverse(t, h, uniform)[0] == pytest.approx(s, rel=1e-11)


@given(st.floats(0.0, 1.0), st.sampled_from([*WIDTHS, 1e-300, 1e-9, 1.0, 1e9]), st.data())
def test_stays_inside_and_ascends(t: float, h: float, data: st.DataObject) -> None:
    uniform = np.sort(data.draw(st.lists(st.integers(0, 2**53 - 1), min_size=2, max_size=20))) * U
    s = inverse(t, h, uniform)
    assert np.all((s >= 0.0) & (s <= 1.0))
    assert np.all(np.diff(s) >= -20 * U)
    mirrored = inverse(1.0 - t, h, 1.0 - uniform)
    exact = 1.0 - (1.0 - t) == t
    assert not exact or np.allclose(1.0 - mirrored, s, rtol=0, atol=20 * U)


@pytest.mark.parametrize("t", [0.0, 0.4, 1.0])
def test_ends_of_the_uniform(t: float) -> None:
    for h in WIDTHS:
        assert inverse(t, h, 0.0)[0] == pytest.approx(0.0, abs=10 * U)
        assert inverse(t, h, 1.0 - U)[0] >= t - 10 * U


def test_width_beyond_all_scores_is_uniform() -> None:
    uniform = np.linspace(0.0, 0.9, 10)
    assert np.allclose(inverse(0.3, 1e12, uniform), uniform, rtol=0, atol=1e-15)


def test_draws_follow_the_law() -> None:
    """All of 100,000 draws: by Massart's inequality a larger gap has probability 1e-9."""
    n, t, h = 100_000, 0.02, 2.0**-6
    s = np.sort(perturb(np.full(n, t), h, rng=np.random.SeedSequence(11)))
    whole = mass(t, h, 0.0, 1.0)
    for i in range(0, n, 4999):
        below = mass(t, h, 0.0, float(s[i])) / whole
        assert abs(below - (i + 0.5) / n) < math.sqrt(math.log(2e9) / (2 * n)) + 1 / n
    assert len(np.unique(s)) > n - 5
    assert s[0] > 0.0
    assert s[-1] < 1.0


def test_seeds() -> None:
    scores = np.random.default_rng(0).random(200_000)
    assert np.array_equal(perturb(scores, 0.1, rng=0), perturb(scores, 0.1, rng=0))
    assert not np.array_equal(perturb(scores, 0.1, rng=0), perturb(scores, 0.1, rng=1))
    stream = np.random.default_rng(5)
    assert not np.array_equal(perturb(scores, 0.1, rng=stream), perturb(scores, 0.1, rng=stream))
    # data simulated with default_rng(0) and a perturbation seeded 0 are not related
    shift = perturb(scores, 2.0**-9, rng=0) - scores
    assert abs(np.corrcoef(scores, shift)[0, 1]) < 5 / math.sqrt(len(scores))


def test_calibration_of_perturbed_scores_is_smooth() -> None:
    """A jump of the classifier's calibration function becomes a slope of at most 1 / (2 h)."""
    h, n = 2.0**-4, 400_000
    rng = np.random.default_rng(12)
    t = np.where(rng.random(n) < 0.5, 0.49, 0.51)
    s = perturb(t, h, rng=12)
    y = t > 0.5
    grid = np.linspace(0.3, 0.7, 17)
    rate = np.array([y[(s >= a) & (s < b)].mean() for a, b in itertools.pairwise(grid)])
    noise = 6 * math.sqrt(0.25 / 2_000)
    assert np.all(np.abs(np.diff(rate)) <= np.diff(grid)[0] / (2 * h) + noise)


# --- AUROC -------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=40))
def test_auroc_counts_pairs(rows: list[tuple[int, int]]) -> None:
    y, s = [r[0] for r in rows], [r[1] / 6 for r in rows]
    if len(set(y)) < 2:
        with pytest.raises(ValueError, match=r"^y_true must have rows of both classes"):
            auroc(y, s)
        return
    pairs = [(p, q) for p, a in zip(s, y, strict=True) if a for q, b in zip(s, y, strict=True) if not b]
    doubled = sum(2 * (p > q) + (p == q) for p, q in pairs)
    assert auroc(y, s) == doubled / (2 * len(pairs))


@pytest.mark.kernels
def test_doubled_wins() -> None:
    keys = np.array([0, 0, 1, 5, 6, 6, 7], np.int64)  # scores 0 0 0 2 3 3 3, labels 0 0 1 1 0 0 1
    keys.flags.writeable = False
    assert tuple(map(int, ranks.doubled_wins(keys))) == (2 + 4 + 6, 3)
    assert tuple(map(int, ranks.doubled_wins(keys[:0]))) == (0, 0)


def test_auroc_loss_averages_draws() -> None:
    rng = np.random.default_rng(13)
    s = rng.random(2000)
    y = rng.random(2000) < s
    result = auroc_loss(y, s, 2.0**-2, n_draws=50, rng=13)
    assert result.auroc == auroc(y, s)
    assert (result.n, result.n_positive, result.n_draws) == (2000, int(y.sum()), 50)
    assert 0.0 < result.standard_error < result.loss < 0.2
    # against the expectation itself: P(s_i < s_j) for each pair, by quadrature over the uniforms
    grid = (np.arange(400) + 0.5) / 400
    few = slice(0, 60)
    draws = np.stack([inverse(t, 2.0**-2, grid) for t in s[few]])
    wins = [
        (np.searchsorted(np.sort(draws[j]), draws[i], side="left").mean()) / 400
        for i in np.flatnonzero(y[few])
        for j in np.flatnonzero(~y[few])
    ]
    small = auroc_loss(y[few], s[few], 2.0**-2, n_draws=3000, rng=14)
    expected = small.auroc - float(np.mean(wins))
    assert abs(small.loss - expected) < 4 * small.standard_error + 1 / 400
    assert small.to_dict()["loss"] == small.loss
    assert json.loads(json.dumps(small.to_dict()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: perturb([0.2, 1.2], 0.1), r"^y_prob must lie in \[0, 1\]; got 1.2 at index 1"),
        (lambda: perturb([0.2, math.nan], 0.1), r"y_prob .*nan at index 1"),
        (lambda: perturb([], 0.1), r"^y_prob must have at least one row; got 0$"),
        (lambda: perturb([0.2], 0.0), r"^width must be a finite number > 0; got 0.0$"),
        (lambda: perturb([0.2], 0.1, rng=-1), r"^rng must be a seed >= 0; got -1$"),
        (
            lambda: auroc_loss([0, 1], [0.2, 0.3], 0.1, n_draws=1),
            r"^n_draws must be a whole number >= 2; got 1$",
        ),
        (lambda: auroc([1, 1], [0.2, 0.3]), r"^y_true must have rows of both classes; got one$"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_input_of_any_kind() -> None:
    scores = np.array([0.25, 0.5, 1.0])
    frozen = scores.copy()
    frozen.flags.writeable = False
    expected = perturb(scores, 0.1, rng=3)
    for given_ in (list(scores), frozen, scores.astype(np.float32), np.repeat(scores, 2)[::2]):
        assert np.array_equal(perturb(given_, 0.1, rng=3), expected)
    assert expected.flags.writeable
    auroc_loss([0, 1, 1], frozen, 0.1, n_draws=2)
    assert len(getattr(ranks.doubled_wins, "signatures", [0])) <= 1


def test_auroc_of_a_table() -> None:
    rng = np.random.default_rng(61)
    scores = np.round(rng.random(500), 2)
    labels = rng.random(500) < scores
    assert auroc(ScoreTable(labels, scores)) == auroc(labels, scores)
    with pytest.raises(TypeError, match=r"^y_true must keep every score"):
        auroc(CellTable().update(labels, scores))
    with pytest.raises(TypeError, match=r"^y_prob is missing"):
        auroc(labels)
