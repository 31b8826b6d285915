"""The published certificates: every step against a slow version, and coverage where they are tight."""

from __future__ import annotations

import itertools
import math

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from calcore import CellTable, ScoreTable, certificates, certify
from calcore.certificates import folds as folds_of
from calcore.certificates import total_variation as tv
from calcore.kernels import folds as split

Floats = NDArray[np.float64]
ROUNDING = 1e-12


def label_vectors(n: int) -> Floats:
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def law_of_labels(labels: Floats, eta: Floats) -> Floats:
    return np.where(labels == 1.0, eta, 1.0 - eta).prod(axis=1)


def monotone_or_wild(rng: np.random.Generator, n: int) -> Floats:
    """Values in [0, 1] in the order of the scores."""
    kind = rng.integers(4)
    if kind == 0:
        return np.sort(rng.random(n))
    if kind == 1:
        return (np.arange(n) >= rng.integers(0, n + 1)).astype(float)
    if kind == 2:
        return rng.choice([0.2, 0.5, 0.9], n)[np.arange(n) // max(1, n // 4)]
    return np.full(n, rng.random())


def allowed_misses(runs: int, delta: float) -> int:
    """More misses than this happen with probability below 1e-6 if each has probability at most delta."""
    return int(stats.binom.isf(1e-6, runs, delta))


# --- folds


def test_folds_are_even_and_leave_none_out() -> None:
    for n, k in ((2, 5), (7, 3), (100, 4), (10, 10)):
        folds = folds_of.draw_folds(n, k, np.random.default_rng(3))
        sizes = np.bincount(folds)
        assert sizes.size == min(n, k)
        assert sizes.max() - sizes.min() <= 1


def test_folds_do_not_know_the_rows() -> None:
    """Every row is equally likely in every fold, and so is every pair: chi-squared at 1e-6."""
    n, k, draws = 6, 3, 6000
    generator = np.random.default_rng(4)
    seen = np.array([folds_of.draw_folds(n, k, generator) for _ in range(draws)])
    counts = np.array([(seen == fold).sum(axis=0) for fold in range(k)])
    assert stats.chisquare(counts.ravel()).pvalue > 1e-6
    together = [int((seen[:, i] == seen[:, j]).sum()) for i, j in itertools.combinations(range(n), 2)]
    assert np.all(np.abs(np.array(together) - draws / 5) < 6 * math.sqrt(draws * 0.2 * 0.8))


@pytest.mark.kernels
def test_tied_scores_get_one_value_whatever_their_labels() -> None:
    """Splitting by hand: groups of the training rows, and the step function at the rows of the fold."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = int(rng.integers(2, 40))
        s = np.sort(rng.integers(0, rng.choice([2, 6, 30]), n) / 30)
        y = rng.integers(0, 2, n)
        table = ScoreTable(y, s)
        assert not table.keys.flags.writeable
        ordered = (table.keys >> 1).view(np.float64)
        labels = table.keys & 1
        folds = folds_of.draw_folds(n, 3, rng)
        counts, positives = np.empty((2, n), np.int64)
        m = split.training_groups(table.keys, folds, 1, counts, positives)
        if not np.any(folds != 1):
            continue
        places, where = np.unique(ordered[folds != 1], return_inverse=True)
        assert m == places.size
        assert counts[:m].tolist() == np.bincount(where).tolist()
        assert positives[:m].tolist() == np.bincount(where, labels[folds != 1]).tolist()
        fitted = rng.random(m)
        tested = ordered[folds == 1]
        if tested.size == 0:
            continue
        at = np.maximum(np.searchsorted(places, tested, "right") - 1, 0)
        errors = np.abs(fitted[at] - tested)
        rows, mean, squares = split.validation_error(table.keys, folds, 1, fitted)
        assert rows == tested.size
        assert mean == pytest.approx(errors.mean(), abs=1e-15)
        assert squares == pytest.approx(((errors - errors.mean()) ** 2).sum(), abs=1e-13)


# --- tv: THEORY 5.1, term by term


def denoised(y: Floats, weights: Floats, lam: float) -> Floats:
    return np.array(oracles.tv_by_messages(y.tolist(), weights.tolist(), lam)) if lam > 0 else y


def test_fit_error_on_random_instances() -> None:
    """Where lam drowns the noise, mean (fit - eta)^2 <= 2 lam V + (mean noise)^2: no chance is left in it."""
    rng = np.random.default_rng(6)
    tightest = 0.0
    for _ in range(400):
        m = int(rng.integers(1, 30))
        weights = rng.integers(1, 5, m).astype(float)
        eta = monotone_or_wild(rng, m)
        k = rng.binomial(weights.astype(int), eta).astype(float)
        noise = k - weights * eta
        n = weights.sum()
        steps = n * np.arange(1, m) * 0 + np.cumsum(weights)[:-1]
        bridge = np.cumsum(noise)[:-1] - steps / n * noise.sum()
        lam = np.abs(bridge).max(initial=0.0) / n
        fit = denoised(k / weights, weights, n * lam + 1e-12)
        error = float((weights * (fit - eta) ** 2).sum() / n)
        variation = float(np.abs(np.diff(eta)).sum())
        bound = 2.0 * lam * variation + (noise.sum() / n) ** 2
        assert error <= bound + 1e-10
        tightest = max(tightest, error / bound if bound > 1e-6 else 0.0)
    assert tightest > 0.9


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.02])
def test_penalty_drowns_the_noise(delta: float) -> None:
    """Exact probability, over all labels, that a centred step or the mean sees more than it is given."""
    rng = np.random.default_rng(7)
    labels = label_vectors(10)
    tightest = 0.0
    for _ in range(30):
        eta = rng.choice([np.full(10, 0.5), rng.random(10)])
        sizes = rng.multinomial(6, np.full(4, 0.25)) + 1 if rng.random() < 0.5 else np.ones(10, int)
        cuts = np.cumsum(sizes)[:-1]
        noise = labels - eta
        bridge = np.cumsum(noise, axis=1)[:, cuts - 1] - cuts / 10 * noise.sum(axis=1, keepdims=True)
        lam = tv.penalty(10, sizes.size, delta)
        seen = np.abs(bridge).max(axis=1) > 10 * lam
        assert law_of_labels(labels, eta) @ seen <= delta / 2
        mean = np.abs(noise.mean(axis=1)) > math.sqrt(math.log(4 / delta) / 20)
        assert law_of_labels(labels, eta) @ mean <= delta / 2
        tightest = max(tightest, float(law_of_labels(labels, eta) @ (np.abs(bridge).max(axis=1) > 5 * lam)))
    assert tightest > delta / 2  # half the penalty would not do


@pytest.mark.parametrize(
    ("n", "delta", "variation", "lam", "error"),
    [
        (1000, 0.025, 1.0, 0.0387006598682, 0.282734693032),
        (100000, 0.01, 1.0, 0.00467765700058, 0.0968776100236),
        (10000000, 0.01, 0.5, 0.000525708570622, 0.022934867426),
    ],
)
def test_fit_error_of_an_independent_implementation(
    n: int, delta: float, variation: float, lam: float, error: float
) -> None:
    assert tv.penalty(n, n, delta) == pytest.approx(lam, rel=1e-11)
    assert tv.fit_error(n, n, variation, delta) == pytest.approx(error, rel=1e-11)


def test_variation_carries_a_mean_over() -> None:
    """|E g(S) - mean of g at n draws| <= variation of g times sup |F - F_n|; steps attain it."""
    rng = np.random.default_rng(8)
    tightest = 0.0
    for _ in range(300):
        places = int(rng.integers(2, 20))
        mass = rng.dirichlet(np.ones(places))
        drawn = rng.multinomial(int(rng.integers(1, 30)), mass)
        fit, eta = monotone_or_wild(rng, places), monotone_or_wild(rng, places)
        g = np.abs(fit - eta)
        wiggle = np.abs(np.diff(fit)).sum() + np.abs(np.diff(eta)).sum()
        distance = np.abs(np.cumsum(mass) - np.cumsum(drawn) / drawn.sum()).max()
        gap = abs(mass @ g - drawn @ g / drawn.sum())
        assert gap <= wiggle * distance + ROUNDING
        tightest = max(tightest, gap / (wiggle * distance) if wiggle * distance > 1e-9 else 0.0)
    assert tightest > 0.999


def slow_tv(y: Floats, s: Floats, folds: NDArray[np.uint32], delta: float, variation: float) -> Floats:
    """Plug-in, denoising, deviation and transfer from their definitions; rows by ascending score."""
    k = int(folds.max()) + 1
    terms = []
    for fold in range(k):
        part = delta / k
        inside = folds == fold
        places, where = np.unique(s[~inside], return_inverse=True)
        weights = np.bincount(where).astype(float)
        rates = np.bincount(where, y[~inside]) / weights
        n, m = int(weights.sum()), places.size
        lam = math.sqrt(math.log(4 * (m - 1) / (0.5 * part)) / (8 * n)) if m > 1 else 0.0
        fit = denoised(rates, weights, n * lam)
        at = np.maximum(np.searchsorted(places, s[inside], "right") - 1, 0)
        errors = np.abs(fit[at] - s[inside])
        rows = errors.size
        nats = math.log(2 / (0.125 * part))
        spread = errors.var(ddof=1) if rows > 1 else 0.0
        test = (
            1.0 if rows == 1 else min(1.0, math.sqrt(2 * spread * nats / rows) + 7 * nats / (3 * (rows - 1)))
        )
        terms.append(
            [
                errors.mean(),
                math.sqrt(2 * lam * variation + math.log(4 / (0.5 * part)) / (2 * n)),
                test,
                (variation + np.abs(np.diff(fit)).sum())
                * min(1.0, math.sqrt(math.log(2 / (0.375 * part)) / (2 * n))),
            ]
        )
    return np.mean(terms, axis=0)


@pytest.mark.parametrize(
    ("n", "n_folds", "ties"), [(60, 5, False), (61, 3, True), (9, 20, True), (400, 2, True)]
)
@pytest.mark.parametrize("variation", [0.3, 1.0, 4.0])
def test_tv_is_what_its_definition_says(
    monkeypatch, n: int, n_folds: int, ties: bool, variation: float
) -> None:
    rng = np.random.default_rng([9, n])
    s = np.sort(rng.integers(0, 9, n) / 8 if ties else rng.random(n))
    y = (rng.random(n) < s).astype(float)
    order = np.lexsort((y, s))
    folds = folds_of.draw_folds(n, n_folds, rng)
    monkeypatch.setattr(folds_of, "draw_folds", lambda *_: folds)
    c = certify(y, s, side="upper", method="tv", variation=variation, n_folds=n_folds, delta=0.1)
    assert list(c.terms) == ["plug_in", "denoising", "deviation", "transfer"]
    expected = slow_tv(y[order], s[order], folds, 0.95 * 0.1, variation)
    assert list(c.terms.values()) == pytest.approx(expected.tolist(), abs=1e-9)
    assert c.upper == min(1.0, sum(c.terms.values()))
    assert (c.method, c.n_folds, c.n_bins, c.bandwidth) == ("tv", min(n, n_folds), 0, None)
    assert f"total variation <= {variation:g}" in c.assumption


# --- coverage


def jump(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = rng.random(n)
    return (rng.random(n) < (s > 0.5)).astype(float), s, 0.25


def upside_down(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = rng.random(n)
    return (rng.random(n) < 1.0 - s).astype(float), s, 0.5


def two_atoms(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = rng.choice([0.4, 0.6], n)
    return (rng.random(n) < np.where(s == 0.4, 0.6, 0.4)).astype(float), s, 0.2


def never(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, float]:
    s = 0.8 + 0.2 * rng.random(n)
    return np.zeros(n), s, 0.9


@pytest.mark.parametrize("world", [jump, upside_down, two_atoms, never], ids=lambda w: w.__name__)
def test_tv_covers(world) -> None:
    """Bounds of a few thousand rows, so that they are below 1: the deepest penalty is not on trial here."""
    rng = np.random.default_rng(10)
    runs, delta, misses = 60, 0.3, 0
    for _ in range(runs):
        y, s, error = world(rng, 600)
        misses += certify(y, s, delta=delta, side="upper", method="tv").upper < error
    assert misses <= allowed_misses(runs, delta)


# --- what may be given, and what is printed


def test_what_tv_assumes() -> None:
    rng = np.random.default_rng(11)
    s = rng.random(500)
    y = rng.random(500) < s
    default = certify(y, s, method="tv")
    assert default.assumption.startswith("eta, the true rate by score, has total variation <= 1")
    assert default.to_dict() == certify(y, s, method="tv", variation=1).to_dict()
    steep = certify(y, s, method="tv", lipschitz=2)
    assert steep.assumption == "eta, the true rate by score, is 2-Lipschitz"
    assert steep.terms == certify(y, s, method="tv", variation=2).terms
    soft = certify(y, s, method="tv", perturbed=0.25)
    assert "must perturb its scores too" in soft.assumption
    assert soft.terms == steep.terms
    with pytest.raises(ValueError, match=r"^lipschitz must be left out beside variation"):
        certify(y, s, method="tv", variation=1, lipschitz=1)
    with pytest.raises(ValueError, match=r"^variation must be finite"):
        certify(y, s, method="tv", variation=math.inf)


@pytest.mark.parametrize("method", ["tv"])
def test_a_cell_table_has_no_rows_to_split(method: str) -> None:
    table = CellTable().update([0, 1], [0.2, 0.7])
    with pytest.raises(
        ValueError, match=r"^y_true must hold single rows .*ScoreTable, or use method='auto'$"
    ):
        certify(table, method=method, lipschitz=1)


def test_more_than_a_million_rows_are_kept() -> None:
    n = 1_000_001
    s = (np.arange(n) + 0.5) / n
    assert certify(np.arange(n) % 2, s, method="tv", n_folds=2).table == "sorted scores"


@pytest.mark.parametrize("method", ["tv"])
def test_ends_share_delta(method: str) -> None:
    rng = np.random.default_rng(12)
    s = rng.random(3000)
    y = rng.random(3000) < s**3
    both = certify(y, s, method=method, delta=0.1)
    assert both.lower == certify(y, s, delta=0.1).lower > 0.0
    upper = certify(y, s, method=method, side="upper", delta=0.075)
    assert upper.terms == pytest.approx(both.terms, rel=1e-12)
    assert certify(y, s, method=method, side="lower").terms == {}


SEEDED = {
    "tv": {"method": "tv", "n_folds": 2},
    "groups": {"groups": np.repeat(np.arange(500), 2)},
}


@pytest.mark.parametrize("options", SEEDED.values(), ids=SEEDED.keys())
def test_draws_are_not_those_of_the_user(monkeypatch, options) -> None:
    """Scores from default_rng(0) and rng=0: the fold, or the row kept, says nothing about the score.

    With equal streams rows of low scores would be in one fold. Ranks are compared at 1e-6.
    """
    n = 1000
    s = np.random.default_rng(0).random(n)
    y = np.random.default_rng(0).random(n) < s
    drawn: list[NDArray] = []
    for module, name in ((folds_of, "draw_folds"), (certificates._validate, "group_rows")):
        original = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, original=original: drawn.append(original(*given)) or drawn[-1]
        )
    certify(y, s, rng=0, **options)
    (draw,) = drawn
    chosen = np.isin(np.arange(n), draw) if "groups" in options else draw == 0
    values = s if "groups" in options else np.sort(s)
    assert stats.mannwhitneyu(values[chosen], values[~chosen]).pvalue > 1e-6
    assert 0.45 < values[chosen].mean() < 0.55


def test_the_same_call_gives_the_same_interval() -> None:
    rng = np.random.default_rng(13)
    s = rng.random(300)
    y = rng.random(300) < s
    base = certify(y, s, method="tv")
    assert certify(y, s, method="tv", rng=0).to_dict() == base.to_dict()
    assert certify(y, s, method="tv", rng=1).to_dict() != base.to_dict()
    order = rng.permutation(300)
    assert certify(y[order], s[order], method="tv").to_dict() == base.to_dict()


SCORES = st.one_of(
    st.lists(st.floats(0, 1), min_size=1, max_size=60),
    st.lists(
        st.sampled_from([0.0, 5e-324, 1e-300, 0.1, 0.1 + 2**-56, 0.5, 1 - 2**-53, 1.0]),
        min_size=1,
        max_size=60,
    ),
)


@settings(max_examples=60)
@given(
    scores=SCORES,
    labels=st.randoms(use_true_random=False),
    delta=st.sampled_from([1e-300, 0.05, 1 - 2**-53]),
    how=st.sampled_from(
        [
            {"method": "tv"},
            {"method": "tv", "variation": 0.0, "n_folds": 2},
            {"method": "tv", "variation": 1e300, "n_folds": 2**50},
        ]
    ),
)
def test_every_input_has_a_sound_certificate(scores, labels, delta, how) -> None:
    y = [labels.randrange(2) for _ in scores]
    for side in ("both", "upper", "lower"):
        c = certify(y, scores, side=side, delta=delta, **how)
        assert 0.0 <= c.lower <= c.upper <= 1.0
        assert all(math.isfinite(value) for value in c.terms.values())
        if c.terms:
            assert min(1.0, sum(c.terms.values())) == pytest.approx(c.upper, abs=1e-12)
