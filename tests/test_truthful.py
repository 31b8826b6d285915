"""Truthful errors against enumeration: every label vector of small samples, in exact fractions."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calcore import truthful as T
from calcore.kernels import truthful as kernels

F = Fraction
U = 2.0**-53

# ------------------------------------------------------------------------------------------- slow versions


def groups(bins: Sequence[int]) -> list[list[int]]:
    return [[i for i, b in enumerate(bins) if b == name] for name in sorted(set(bins))]


def slow_lin_ce(phi: Sequence[Sequence[F]], u: Sequence[Sequence[F]], bins: Sequence[int]) -> F:
    n, total = len(u), F(0)
    for rows in groups(bins):
        for r in range(len(u[0])):
            total += sum((u[i][r] - phi[i][r] for i in rows), F(0)) ** 2
    return total / n**2


def slow_lin_ece(phi: Sequence[Sequence[F]], u: Sequence[Sequence[F]], bins: Sequence[int]) -> float:
    n, total = len(u), 0.0
    for rows in groups(bins):
        sums = [sum((u[i][r] - phi[i][r] for i in rows), F(0)) for r in range(len(u[0]))]
        total += math.sqrt(sum(s * s for s in sums))
    return total / n


def slow_bins(
    scores: Sequence[float], m: int, strategy: str, order: Sequence[int] | None = None
) -> list[int]:
    """`order`: place of each row among rows with equal scores."""
    n = len(scores)
    if strategy == "uniform":
        edges = [j / m for j in range(1, m)]
        return [sum(edge <= s for edge in edges) for s in scores]
    places = order if order is not None else range(n)
    ranked = sorted(range(n), key=lambda i: (scores[i], places[i]))
    m = min(m, n)
    cuts = [j * n // m for j in range(1, m)]
    index = [0] * n
    for rank, i in enumerate(ranked):
        index[i] = sum(cut <= rank for cut in cuts)
    return index


def one_hot(y: Sequence[int], k: int) -> list[list[F]]:
    return [[F(int(label == r)) for r in range(k)] for label in y]


def exact(P: Any) -> list[list[F]]:
    return [[F(float(p)) for p in row] for row in P]


def chosen(P: Sequence[Sequence[F]]) -> list[int]:
    return [max(range(len(row)), key=lambda r: (row[r], -r)) for row in P]


def slow_conf(y: Sequence[int], P: Sequence[Sequence[F]], bins: Sequence[int], correct: bool = True) -> F:
    r = chosen(P)
    z = [F(int(label == choice)) for label, choice in zip(y, r, strict=True)]
    n = len(y)
    plain = slow_lin_ce([[x] for x in z], [[row[c]] for row, c in zip(P, r, strict=True)], bins)
    return plain + ((1 - sum(z) / n) / n if correct else 0)


def laws(Q: Sequence[Sequence[F]]) -> Iterator[tuple[F, tuple[int, ...]]]:
    """Every vector of labels and its probability, if row i has the law Q[i]."""
    k = len(Q[0])
    for y in itertools.product(range(k), repeat=len(Q)):
        yield math.prod((Q[i][label] for i, label in enumerate(y)), start=F(1)), y


def mean(error: Callable[[tuple[int, ...]], Any], Q: Sequence[Sequence[F]]) -> Any:
    return sum(p * error(y) for p, y in laws(Q) if p)


def both(p: Sequence[F]) -> list[list[F]]:
    return [[1 - x, x] for x in p]


def ece_two(q: Sequence[F], u: Sequence[F], bins: Sequence[int]) -> float:
    """Exact expectation of LinECE for two classes."""
    return float(mean(lambda y: slow_lin_ece([[F(v)] for v in y], [[x] for x in u], bins), both(q)))


def close(found: float, expected: Any, n: int = 64) -> bool:
    """Sums of n terms <= 1, each rounded a few times on the way."""
    return abs(F(found) - F(expected)) <= 8 * n * F(U) * max(F(1, n), F(expected))


# --------------------------------------------------------------------------------------------- rows at random


@st.composite
def samples(draw: st.DrawFn, most: int = 24) -> tuple[list[int], np.ndarray[Any, Any]]:
    n, k = draw(st.integers(1, most)), draw(st.integers(2, 5))
    unit = draw(st.sampled_from([4, 64, 997]))
    rows = draw(st.lists(st.lists(st.integers(0, unit), min_size=k, max_size=k), min_size=n, max_size=n))
    P = np.array(rows, float)
    P[:, 0] += P.sum(1) == 0
    P /= P.sum(1, keepdims=True)
    return draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)), P


def place_of(n: int, rng: int) -> list[int]:
    """Where each row stands in the order that decides ties, found out from a constant score."""
    return T.rank_bins(np.full(n, 0.5), n, rng=rng).tolist()


@settings(max_examples=60)
@given(samples(), st.integers(1, 30), st.sampled_from(["quantile", "uniform"]), st.integers(0, 3))
def test_equal_the_slow_versions(sample: Any, m: int, strategy: Any, rng: int) -> None:
    y, P = sample
    n, k = P.shape
    exactly, hot, order = exact(P), one_hot(y, k), place_of(n, rng)
    options: dict[str, Any] = {"n_bins": m, "strategy": strategy, "rng": rng}

    columns = [slow_bins(P[:, r].tolist(), m, strategy, order) for r in range(k)]
    parts = [([[row[r]] for row in hot], [[row[r]] for row in exactly], columns[r]) for r in range(k)]
    assert close(T.classwise_lin_ce(y, P, **options), sum(slow_lin_ce(*p) for p in parts) / k, n)
    assert close(T.classwise_lin_ece(y, P, **options), sum(slow_lin_ece(*p) for p in parts) / k, n)

    top, choice = P.max(1).tolist(), chosen(exactly)
    bins = slow_bins(top, m, strategy, order)
    z = [[F(int(a == b))] for a, b in zip(y, choice, strict=True)]
    assert close(T.conf_ce(y, P, **options), slow_conf(y, exactly, bins), n)
    assert close(T.uncorrected_conf_ce(y, P, **options), slow_conf(y, exactly, bins, correct=False), n)
    assert close(T.conf_ece(y, P, **options), slow_lin_ece(z, [[F(c)] for c in top], bins), n)

    joint = [c * (m + 1) + b for c, b in zip(choice, bins, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert close(T.multiclass_lin_ce(y, P, **options), slow_lin_ce(hot, exactly, joint), n)
        assert close(T.multiclass_lin_ce(y, P, bins=joint), slow_lin_ce(hot, exactly, joint), n)

    second = [int(label == 1) for label in y]
    assert close(T.binary_lin_ce(second, P[:, 1], **options), slow_lin_ce(*parts[1]), n)
    assert close(T.binary_lin_ece(second, P[:, 1], **options), slow_lin_ece(*parts[1]), n)
    assert close(
        T.classwise_brier(y, P),
        sum((a - b) ** 2 for u, v in zip(exactly, hot, strict=True) for a, b in zip(u, v, strict=True))
        / (n * k),
        n * k,
    )
    assert close(
        T.confidence_loss(y, P),
        sum(1 - a[0] + (F(c) - a[0]) ** 2 for a, c in zip(z, top, strict=True)) / n,
        n,
    )


@settings(max_examples=60)
@given(st.data())
def test_given_bins_equal_the_slow_versions(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 12))
    number = st.floats(-2.0, 2.0).map(lambda x: round(x, 6))
    draw = st.lists(st.lists(number, min_size=d, max_size=d), min_size=n, max_size=n)
    phi, u = np.array(data.draw(draw)), np.array(data.draw(draw))
    bins = data.draw(st.lists(st.sampled_from([-(2**62), -1, 0, 1, 2, 7, 2**62]), min_size=n, max_size=n))
    expected, absolute = slow_lin_ce(exact(phi), exact(u), bins), slow_lin_ece(exact(phi), exact(u), bins)
    room = 64 * n * d * U  # terms up to 4, squared
    for order in ("C", "F"):
        a, b = np.array(phi, order=order), np.array(u, order=order)
        assert abs(T.lin_ce(a, b, bins) - expected) <= room
        assert abs(T.lin_ece(a, b, bins) - absolute) <= room
    if d == 1:
        assert T.lin_ce(phi[:, 0], u[:, 0], bins) == T.lin_ce(phi, u, bins)
    moved = T.recalibrated(phi, u, bins)
    assert T.lin_ce(phi, moved, bins) <= room
    for rows in groups(bins):  # a shift of the whole bin
        assert np.ptp(moved[rows] - u[rows], axis=0).max() <= 16 * U
    assert np.sum((moved - phi) ** 2) <= np.sum((u - phi) ** 2) + room


# ------------------------------------------------------------------------------------------------------- bins


@settings(max_examples=100)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 50), st.integers(0, 5))
def test_rank_bins(values: list[int], m: int, rng: int) -> None:
    s = np.array(values) / 5
    n, bins = len(s), T.rank_bins(s, m, rng=rng)
    m = min(m, n)
    assert np.array_equal(np.bincount(bins, minlength=m), np.diff(np.arange(m + 1) * n // m))
    assert all(s[bins == b].max() <= s[bins == b + 1].min() for b in range(m - 1))
    assert bins.tolist() == slow_bins(s.tolist(), m, "quantile", place_of(n, rng))
    assert np.array_equal(bins, T.rank_bins(list(s), m, rng=rng))


def test_many_cuts() -> None:
    rng = np.random.default_rng(1)
    narrow = np.r_[5e-324, 0.5 + 1e-13 * rng.integers(0, 900, 2999)]
    for s in (rng.random(3000), rng.integers(0, 700, 3000) / 700, rng.random(3000) ** 50, narrow):
        order = place_of(3000, 2)
        for m in (2, 256, 257, 2000):
            places = np.lexsort((order, s))
            expected = np.empty(3000, int)
            expected[places] = np.searchsorted(np.arange(1, m) * 3000 // m, np.arange(3000), side="right")
            assert np.array_equal(T.rank_bins(s, m, rng=2), expected)


def test_ties_never_look_at_labels() -> None:
    """The errors of all label vectors, for one constant score: as if bins were drawn without labels.

    With zeros first within ties, all orders of [0, 0, 1, 1] would have one error.
    """
    q = [F(1, 2)] * 4
    bins = T.rank_bins([0.5] * 4, 2).tolist()
    values = {y: T.binary_lin_ce(y, [0.5] * 4, n_bins=2) for _, y in laws(both(q))}
    for y, value in values.items():
        assert value == slow_lin_ce([[F(v)] for v in y], [[F(1, 2)]] * 4, bins)
    # the mean over all labels is the variance over n^2; if zeros came first it would be 3/32
    assert sum(values.values()) / 16 == 1 / 16


def test_seeds() -> None:
    s, y = [0.5] * 40, [0, 1] * 20
    assert T.binary_lin_ce(y, s, n_bins=7) == T.binary_lin_ce(y, s, n_bins=7, rng=0)
    values = {T.binary_lin_ce(y, s, n_bins=7, rng=seed) for seed in range(20)}
    assert len(values) > 1
    stream = np.random.default_rng(3)
    assert not np.array_equal(T.rank_bins(s, 7, rng=stream), T.rank_bins(s, 7, rng=stream))


def test_more_bins_than_rows() -> None:
    """Each row has its own: n times the error is the proper loss."""
    y, P = [0, 2, 1], np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]])
    for m in (3, 4, 2000, 2**20):
        assert 3 * T.classwise_lin_ce(y, P, n_bins=m) == pytest.approx(T.classwise_brier(y, P), rel=8 * U)
        assert 3 * T.conf_ce(y, P, n_bins=m) == pytest.approx(T.confidence_loss(y, P), rel=8 * U)
    # bins of equal width without end: equal scores share one
    assert T.binary_lin_ce([0, 1, 1], [0.5, 0.5, 0.25], n_bins=2**20, strategy="uniform") == 0.5625 / 9


@pytest.mark.parametrize("edge", [0.3, 0.6, 0.29, 1.0, 0.0])
def test_edges_of_uniform_bins(edge: float) -> None:
    m = 100 if edge == 0.29 else 10
    y, s = [1, 0], [edge, min(edge + 0.4 / m, 1.0)]
    below = np.nextafter(edge, -1.0)
    assert T.binary_lin_ce(y, s, n_bins=m, strategy="uniform") == pytest.approx(
        (sum(s) - 1) ** 2 / 4, abs=4 * U
    )
    if 0 < edge < 1:
        apart = ((below - 1) ** 2 + s[1] ** 2) / 4
        assert T.binary_lin_ce(y, [below, s[1]], n_bins=m, strategy="uniform") == pytest.approx(apart)


# ------------------------------------------------------------------------------ identities, by enumeration


PARTITIONS = [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 1, 1], [1, 0, 0, 2], [0, 1, 1, 1]]


@settings(max_examples=25)
@given(st.data())
def test_bias_and_variance(data: st.DataObject) -> None:
    """(L1) and (L2), for any truth, report and partition: all 3^4 label vectors."""
    part = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any)

    def matrix() -> list[list[F]]:
        return [[F(x, sum(row)) for x in row] for row in (data.draw(part) for _ in range(4))]

    Q, P, bins = matrix(), matrix(), data.draw(st.sampled_from(PARTITIONS))
    variance = sum(q * (1 - q) for row in Q for q in row)
    bias = slow_lin_ce(Q, P, bins)
    assert mean(lambda y: slow_lin_ce(one_hot(y, 3), P, bins), Q) == bias + variance / 16
    r = chosen(P)
    a = [row[c] for row, c in zip(Q, r, strict=True)]
    bias = slow_lin_ce([[x] for x in a], [[row[c]] for row, c in zip(P, r, strict=True)], bins)
    assert mean(lambda y: slow_conf(y, P, bins, False), Q) == bias + sum(x * (1 - x) for x in a) / 16
    assert mean(lambda y: slow_conf(y, P, bins), Q) == bias + sum(1 - x * x for x in a) / 16


def expectation(error: Callable[..., float], Q: Sequence[Sequence[F]], P: Any, **options: Any) -> float:
    """Of a function of the library, over all label vectors."""
    P = np.array(P, float)
    return math.fsum(float(p) * error(np.array(y), P, **options) for p, y in laws(Q) if p)


TRUTHS = [
    [[F(1, 2), F(1, 3), F(1, 6)], [F(1, 5), F(1, 5), F(3, 5)], [F(1, 3), F(1, 3), F(1, 3)]],
    [[F(1, 2), F(1, 4), F(1, 4)]] * 3,
]
REPORTS = [row for row in itertools.product(range(4), repeat=3) if sum(row) == 3]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("truth", [0, 1])
def test_no_report_beats_the_truth(truth: int, strategy: Any) -> None:
    """Reports for three rows, in thirds, by the library's own functions and over all label vectors."""
    Q = TRUTHS[truth]
    outcomes = list(laws(Q))
    for error in (T.classwise_lin_ce, T.conf_ce):
        honest = expectation(error, Q, Q, n_bins=2, strategy=strategy)
        for rows in (
            itertools.combinations_with_replacement(REPORTS, 3)
            if truth
            else itertools.product(REPORTS[::2], repeat=3)
        ):
            P = np.array(rows, float) / 3
            distorted = math.fsum(float(p) * error(y, P, n_bins=2, strategy=strategy) for p, y in outcomes)
            assert distorted >= honest - 64 * U


def test_truthful_on_a_fine_grid_of_distortions() -> None:
    """Two rows of one class, all reports in 20ths, for one bin and two: exact."""
    q = [F(2, 5), F(7, 10)]
    grid = [F(j, 20) for j in range(21)]
    for m in (1, 2):
        honest = mean(lambda y, m=m: slow_lin_ce([[F(v)] for v in y], [[x] for x in q], [0, m - 1]), both(q))
        for u in itertools.product(grid, repeat=2):
            bins = slow_bins([float(x) for x in u], m, "quantile")
            value = mean(
                lambda y, u=u, b=bins: slow_lin_ce([[F(v)] for v in y], [[x] for x in u], b), both(q)
            )
            assert value >= honest
            assert (value == honest) == (slow_lin_ce([[x] for x in q], [[x] for x in u], bins) == 0)


def test_published_example() -> None:
    """p* = (1/2, 1/3, 1/6), one row: arXiv 2510.06388."""
    Q = [[F(1, 2), F(1, 3), F(1, 6)]]
    eps = F(1, 1000)
    P = [[F(1, 3) - eps, F(1, 3) + 2 * eps, F(1, 3) - eps]]
    assert chosen(P) == [1]
    assert expectation(T.uncorrected_conf_ce, Q, Q) == pytest.approx(0.25, abs=8 * U)
    assert expectation(T.uncorrected_conf_ce, Q, P) == pytest.approx(2 / 9 + 4 * float(eps) ** 2, abs=8 * U)
    assert expectation(T.conf_ce, Q, Q) == pytest.approx(0.75, abs=8 * U)
    assert expectation(T.conf_ce, Q, P) == pytest.approx(8 / 9 + 4 * float(eps) ** 2, abs=8 * U)
    assert expectation(T.confidence_loss, Q, Q) == pytest.approx(0.75, abs=8 * U)


# -------------------------------------------------------------------------- the table of THEORY, cell by cell


def test_absolute_errors_are_not_truthful() -> None:
    """Two rows of truth .4 in one bin: .288 for the truth, .26 for .5."""
    q, lie = [F(2, 5)] * 2, [F(1, 2)] * 2
    assert ece_two(q, q, [0, 0]) == pytest.approx(0.288, abs=8 * U)
    assert ece_two(q, lie, [0, 0]) == pytest.approx(0.26, abs=8 * U)
    honest, distorted = np.array(both(q), float), np.array(both(lie), float)
    for error in (T.classwise_lin_ece, T.binary_lin_ece):
        two = error is T.binary_lin_ece
        values = [expectation(error, both(q), P[:, 1] if two else P, n_bins=1) for P in (honest, distorted)]
        assert values == pytest.approx([0.288, 0.26], abs=8 * U)
    # the confidence: truth (.6, .4) twice, reported (.5, .5), whose first class is the choice
    assert expectation(T.conf_ece, both(q), honest, n_bins=1) == pytest.approx(0.288, abs=8 * U)
    assert expectation(T.conf_ece, both(q), distorted, n_bins=1) == pytest.approx(0.26, abs=8 * U)


def test_divisors_need_equal_counts() -> None:
    """The squared error with a divisor per bin: one bin for both rows is better than the truth in two."""

    def usual(phi: Any, u: Any, bins: Any) -> F:
        rows = groups(bins)
        return sum((sum((u[i] - phi[i] for i in b), F(0)) ** 2 / len(b) for b in rows), F(0)) / len(u)

    q = [F(2, 5), F(3, 5)]
    honest = mean(lambda y: usual(y, q, [0, 1]), both(q))
    merged = mean(lambda y: usual(y, [F(1, 2)] * 2, [0, 0]), both(q))
    assert (honest, merged) == (F(6, 25), F(3, 25))
    # equal counts: the number of bins times LinCE
    bins = [0, 0, 1, 1]
    y, u = [0, 1, 1, 0], [F(1, 8), F(2, 8), F(7, 8), F(3, 8)]
    assert usual(y, u, bins) == 2 * F(T.lin_ce(y, [float(x) for x in u], bins))


def test_dominance() -> None:
    """Of two calibrated models, the one that knows more has no larger truthful error; others fail."""
    # one binary row pair: knows .4 or .6, or nothing; one bin of two rows
    signals = [F(2, 5), F(3, 5)]
    half = [F(1, 2)] * 2

    def known(error: Any) -> Any:
        return sum(error(pair) for pair in itertools.product(signals, repeat=2)) / 4

    def squared(q: Any, u: Any) -> F:
        return mean(lambda y: slow_lin_ce([[F(v)] for v in y], [[x] for x in u], [0, 0]), both(q))

    assert known(lambda q: squared(q, q)) == F(6, 25) / 2 < squared(half, half) == F(1, 8)
    assert known(lambda q: ece_two(q, q, [0, 0])) > ece_two(half, half, [0, 0]) + 0.01
    # three classes: which class is impossible, or nothing; the choice is right with 1/2, or 1/3
    law = [[F(1, 2), F(1, 2), F(0)], [F(1, 2), F(0), F(1, 2)], [F(0), F(1, 2), F(1, 2)]]
    nothing = [[F(1, 3)] * 3]
    for error, holds in (
        (T.conf_ce, True),
        (T.confidence_loss, True),
        (T.classwise_lin_ce, True),
        (T.classwise_brier, True),
        (T.uncorrected_conf_ce, False),
        (T.conf_ece, False),
    ):
        more = sum(expectation(error, [row], [row]) for row in law) / 3
        less = expectation(error, nothing, nothing)
        assert (more < less) == holds, error.__name__


@settings(max_examples=20)
@given(st.lists(st.integers(1, 8), min_size=4, max_size=4), st.sampled_from([1, 2]))
def test_dominance_for_any_garbling(weights: list[int], m: int) -> None:
    """A model with four signals against the one that only knows which pair the signal is in."""
    p = [F(w, 9) for w in weights]
    coarse = [(p[0] + p[1]) / 2] * 2 + [(p[2] + p[3]) / 2] * 2

    def error(model: Sequence[F]) -> F:
        """Two rows with signals drawn at random; bins by rank."""
        total = F(0)
        for signals in itertools.product(range(4), repeat=2):
            u = [model[s] for s in signals]
            bins = slow_bins([float(x) for x in u], m, "quantile")
            q = [p[s] for s in signals]
            total += mean(
                lambda y, u=u, b=bins: slow_lin_ce([[F(v)] for v in y], [[x] for x in u], b), both(q)
            )
        return total / 16

    fine, less = error(p), error(coarse)
    assert fine <= less
    for model, value in ((p, fine), (coarse, less)):  # n E = proper loss of a calibrated model
        assert 2 * value == sum(x * (1 - x) for x in model) / 4


ERRORS: dict[str, Callable[..., float]] = {
    "classwise_lin_ce": T.classwise_lin_ce,
    "multiclass_lin_ce": T.multiclass_lin_ce,
    "conf_ce": T.conf_ce,
    "uncorrected_conf_ce": T.uncorrected_conf_ce,
    "classwise_lin_ece": T.classwise_lin_ece,
    "conf_ece": T.conf_ece,
}


def drawn(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng([20251006, seed])
    P = rng.dirichlet([1.0, 1.0, 1.0], n)
    y = (P.cumsum(1) < rng.random((n, 1))).sum(1)
    return np.minimum(y, 2), P


def test_complete() -> None:
    """Calibrated: E LinCE <= 1/n, E ConfCE <= 1/n, E LinECE <= sqrt(m/n)/2; Markov at .01: 100 times that."""
    n, m = 40_000, 4
    y, P = drawn(n, 0)
    for name, error in ERRORS.items():
        bound = math.sqrt(m / n) / 2 if name.endswith("ece") else 1.0 / n
        assert error(y, P, n_bins=m) < 100 * bound, name
        assert 100 * bound < 1, name
    assert T.classwise_brier(y, P) > 0.1  # not complete
    assert T.confidence_loss(y, P) > 0.4


def test_sound() -> None:
    """Reports raised to the power 3: errors stay as n grows, and are of one size for two n."""
    for n in (2_000, 40_000):
        y, P = drawn(n, 1)
        P = P**3 / (P**3).sum(1, keepdims=True)
        for name, error in ERRORS.items():
            floor = 0.05 if name.endswith("ece") else 0.05**2 / 4
            assert error(y, P, n_bins=4) > floor, (name, n)


def test_soundness_needs_bins() -> None:
    """A bin for each row: n times the error is a proper loss, for the worst report too."""
    y, P = drawn(5_000, 2)
    worst = np.roll(np.eye(3)[y], 1, axis=1)  # sure of a wrong class
    for error in (T.classwise_lin_ce, T.conf_ce, T.uncorrected_conf_ce):
        assert error(y, worst, n_bins=5_000) <= 2 / 5_000 < error(y, worst, n_bins=5) / 100
    for error in (
        T.classwise_lin_ece,
        T.conf_ece,
    ):  # errors of order 1 in the truth
        assert error(y, P, n_bins=5_000) > 0.2


def test_why_bins_and_truth_collide() -> None:
    """Exact conditioning: O(1) for the truth, O(1/sqrt n) for a constant report, O(sqrt(m/n)) with m bins."""
    m = 5
    for n in (500, 50_000):
        rng = np.random.default_rng([20251006, n])
        p = (np.arange(n) + 0.5) / n
        y = (rng.random(n) < p).astype(int)
        # E = mean of 2 p (1 - p) = 1/3; Hoeffding at 1e-9
        room = math.sqrt(math.log(2e9) / (2 * n))
        assert abs(T.binary_lin_ece(y, p, n_bins=n) - 1 / 3) < room + 1 / n
        assert T.binary_lin_ece(y, np.full(n, 0.5), n_bins=1) < room
        # sqrt(m/n)/2 bounds the mean; one label moves the value by 1/n at most: McDiarmid
        assert T.binary_lin_ece(y, p, n_bins=m) < math.sqrt(m / n) / 2 + room
    assert room < 0.02


# ----------------------------------------------------------------------- recalibrated loss, rho, and verdicts


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_rho_of_fixed_bins(n: int) -> None:
    """(L3) by enumeration: rows from four atoms, two sets of reports."""
    atoms = [(F(1, 8), F(1, 2), 0), (F(3, 8), F(1, 4), 0), (F(5, 8), F(3, 4), 1), (F(7, 8), F(3, 8), 1)]
    weight = [F(1, 2), F(1, 4), F(1, 8), F(1, 8)]  # report, truth, bin; and how often
    left = F(0)
    for rows in itertools.product(range(4), repeat=n):
        q, u, bins = ([atoms[a][j] for a in rows] for j in (1, 0, 2))
        chance = math.prod((weight[a] for a in rows), start=F(1))
        left += chance * mean(
            lambda y, u=u, b=bins: slow_lin_ce([[F(v)] for v in y], [[x] for x in u], b), both(q)
        )
    loss = rho = F(0)
    for b in (0, 1):
        inside = [a for a in range(4) if atoms[a][2] == b]
        P_b = sum(weight[a] for a in inside)
        shift = sum(weight[a] * (atoms[a][0] - atoms[a][1]) for a in inside) / P_b
        loss += sum(
            weight[a] * ((atoms[a][0] - shift - atoms[a][1]) ** 2 + atoms[a][1] * (1 - atoms[a][1]))
            for a in inside
        )
        rho += P_b * (1 + (n - 1) * P_b) * shift**2
    assert rho > 0
    assert n * left == loss + rho


@pytest.mark.parametrize(
    ("slope", "level"), [(F(1, 2), F(-1, 4)), (F(1, 3), F(0)), (F(0), F(1, 5)), (F(-1), F(2, 3))]
)
def test_rho_of_rank_bins(slope: F, level: F) -> None:
    """(L3) for ranks, exactly: four uniform reports with bias level + slope u, in two blocks.

    Means and products of uniform order statistics: i / (n + 1) and i (j + 1) / ((n + 1) (n + 2)), i <= j.
    Given the third, the first two are uniform below it; given the second, the last two are uniform above.
    """
    n = 4
    moment = {(i, j): F(i * (j + 1), (n + 1) * (n + 2)) for i in range(1, n + 1) for j in range(i, n + 1)}

    def product(a: Sequence[F], b: Sequence[F]) -> F:
        """E a b for linear forms: constant, then a coefficient for each order statistic."""
        total = a[0] * b[0]
        for i in range(1, n + 1):
            total += (a[0] * b[i] + a[i] * b[0]) * F(i, n + 1)
            total += sum(a[i] * b[j] * moment[min(i, j), max(i, j)] for j in range(1, n + 1))
        return total

    def form(constant: F, **parts: F) -> list[F]:
        return [constant, *(parts.get(f"u{i}", F(0)) for i in range(1, n + 1))]

    for ranks, shift in (
        ((1, 2), form(level, u3=slope / 2)),
        ((3, 4), form(level + slope / 2, u2=slope / 2)),
    ):
        bias = [form(level, **{f"u{i}": slope}) for i in ranks]
        whole = [x + y for x, y in zip(*bias, strict=True)]
        left = [[x - y for x, y in zip(e, shift, strict=True)] for e in bias]
        # n E LinCE, loss and rho of the block times n; the variances of labels are on both sides
        assert product(whole, whole) == sum(product(e, e) for e in left) + 4 * product(shift, shift)


@settings(max_examples=20)
@given(st.integers(2, 5), st.data())
def test_estimates_are_unbiased(n: int, data: st.DataObject) -> None:
    """Rows of one law in one bin: the estimated loss has the expectation of the recalibrated loss."""
    atoms = [(F(1, 4), F(data.draw(st.integers(0, 4)), 4)), (F(3, 4), F(data.draw(st.integers(0, 4)), 4))]
    # one row: its report, its label, and how likely they are
    row = [(u, v, (q if v else 1 - q) / 2) for u, q in atoms for v in (0, 1)]
    found = 0.0
    for rows in itertools.product(row, repeat=n):
        chance = math.prod((r[2] for r in rows), start=F(1))
        if chance:
            P = np.array(both([r[0] for r in rows]), float)
            verdict = T.ranking_verdict([r[1] for r in rows], P, P, n_bins=1)
            assert verdict.loss_a + verdict.rho_a == pytest.approx(n * verdict.error_a, abs=64 * U)
            found += float(chance) * verdict.loss_a
    bias = sum(c * (u - v) for u, v, c in row)
    assert found == pytest.approx(float(sum(c * (u - v - bias) ** 2 for u, v, c in row)), abs=4**n * 16 * U)


def test_recalibrated_loss_of_the_sample() -> None:
    """The estimate, from `recalibrated`: squared errors of the moved reports, times n_B / (n_B - 1)."""
    y, P = drawn(600, 3)
    P = np.round(P * 16) / 16  # ties, split in the same way by all functions
    P[:, 0] = np.clip(1 - P[:, 1] - P[:, 2], 0, 1)
    P /= P.sum(1, keepdims=True)
    verdict = T.ranking_verdict(y, P, P, n_bins=20)
    hot = np.eye(3)[y]
    classes = []
    for r in range(3):
        bins = T.rank_bins(P[:, r], 20)
        off = T.recalibrated(hot[:, r], P[:, r], bins) - hot[:, r]
        classes.append(np.sum(off**2) * (30 / 29) / 600)
    assert verdict.loss_a == pytest.approx(np.mean(classes), rel=600 * U)
    assert verdict.error_a == pytest.approx(T.classwise_lin_ce(y, P, n_bins=20), rel=64 * U)
    other = T.ranking_verdict(y, P, P, n_bins=20, measure="confidence")
    assert other.error_a == pytest.approx(T.conf_ce(y, P, n_bins=20), rel=64 * U)
    single = T.ranking_verdict(y, P, P, n_bins=600, measure="confidence")
    assert single.loss_a == pytest.approx(
        np.mean(y != P.argmax(1))
    )  # rows alone: all else may be miscalibration


def test_verdicts() -> None:
    y, P = drawn(20_000, 4)
    # knows nothing but the base rates, calibrated
    base = np.full_like(P, 1 / 3)
    for measure in ("classwise", "confidence"):
        sure = T.ranking_verdict(y, P, base, n_bins=1000, measure=measure)
        assert (sure.better, sure.certain) == ("a", True)
        assert sure.gap > sure.rho + sure.margin
        swapped = T.ranking_verdict(y, base, P, n_bins=1000, measure=measure)
        assert (swapped.better, swapped.certain) == ("b", True)
        assert (swapped.loss_b, swapped.rho_a) == (sure.loss_a, sure.rho_b)
        assert swapped.margin == sure.margin
        # the sharper model, badly calibrated: it has the smaller loss once recalibrated, but a large rho
        sharp = P**4 / (P**4).sum(1, keepdims=True)
        vague = T.ranking_verdict(y, sharp, base, n_bins=10, measure=measure)
        assert (vague.better, vague.certain) == ("b", False)
        assert "not the smaller loss" in vague.reason
        assert vague.loss_a < vague.loss_b
        assert vague.rho_a > vague.gap
        # the better one by both, but so badly calibrated that another rho could turn it
        wrong = np.full_like(P, 0.05)
        wrong[:, 0] = 0.9
        within = T.ranking_verdict(y, sharp, wrong, n_bins=10, measure=measure)
        assert (within.better, within.certain) == ("a", False)
        assert "but miscalibration adds" in within.reason
        assert 0 < within.gap <= within.rho
        few = T.ranking_verdict(y, P, base, n_bins=2, measure=measure)
        assert not few.certain  # noise of two sums
    equal = T.ranking_verdict(y, P, P)
    assert (equal.better, equal.certain, equal.gap) == (None, False, 0.0)


def test_verdict_is_rarely_wrong() -> None:
    """Equal expectations: "certain" at .05 in at most 5 percent of 400 samples, plus 4 standard errors."""
    certain = 0
    for seed in range(400):
        rng = np.random.default_rng([20251006, 5, seed])
        y = (rng.random(400) < 0.5).astype(int)
        a, b = np.where(rng.random((2, 400)) < 0.5, 0.45, 0.55)  # both off by .05
        verdict = T.ranking_verdict(y, np.c_[1 - a, a], np.c_[1 - b, b], n_bins=50)
        certain += verdict.certain
    assert certain <= 400 * 0.05 + 4 * math.sqrt(400 * 0.05 * 0.95)


def test_verdict_for_json() -> None:
    y, P = drawn(50, 6)
    verdict = T.ranking_verdict(y, P, P[:, ::-1])
    found = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert found["reason"] == verdict.reason
    assert found["n_classes"] == 3
    assert repr(verdict) == f"<RankingVerdict: {verdict.reason}>"
    with pytest.raises(AttributeError):
        verdict.n = 3


# -------------------------------------------------------------------------------------------- metamorphic


@settings(max_examples=40)
@given(samples(), st.integers(1, 8), st.randoms(use_true_random=False))
def test_order_of_rows_and_columns(sample: Any, m: int, random: Any) -> None:
    y, P = np.array(sample[0]), sample[1]
    n, k = P.shape
    rows, columns = random.sample(range(n), n), random.sample(range(k), k)
    options: dict[str, Any] = {"n_bins": m, "strategy": "uniform"}
    for error in (T.classwise_lin_ce, T.classwise_lin_ece, T.conf_ce, T.conf_ece):
        assert error(y[rows], P[rows], **options) == pytest.approx(error(y, P, **options), abs=64 * U)
    moved = P[:, columns]
    back = np.argsort(columns)
    assert T.classwise_lin_ce(back[y], moved, **options) == pytest.approx(
        T.classwise_lin_ce(y, P, **options), abs=64 * U
    )
    # a sample twice over, in bins of equal width: sums and n double
    for error in (T.classwise_lin_ce, T.uncorrected_conf_ce):
        twice = error(np.r_[y, y], np.r_[P, P], **options)
        assert twice == pytest.approx(error(y, P, **options), abs=64 * U)


def test_two_classes() -> None:
    y, P = drawn(300, 7)
    s = P[:, 0]
    hits, two = (y == 0).astype(int), np.c_[1 - s, s]
    binary = T.binary_lin_ce(hits, s)
    assert T.classwise_lin_ce(hits, two) == pytest.approx(binary, abs=64 * U)
    assert T.multiclass_lin_ce(hits, two, bins=T.rank_bins(s)) == pytest.approx(2 * binary, abs=64 * U)
    assert T.lin_ce(hits, s, T.rank_bins(s)) == pytest.approx(binary, abs=64 * U)
    assert T.binary_lin_ce(np.where(hits, "b", "a"), s, pos_label="b") == binary
    names = np.array(["x", "y"])[hits]
    assert T.classwise_lin_ce(names, two, labels=["x", "y"]) == T.classwise_lin_ce(hits, two)


def test_many_halves_are_exact() -> None:
    n = 1_000_000
    y = np.arange(n) % 2
    assert T.binary_lin_ce(y, np.full(n, 0.5, np.float32), n_bins=1) == 0.0
    s = np.full(n, 0.1)
    assert T.binary_lin_ece(np.zeros(n, int), s, n_bins=1) == 0.1  # compensated
    assert T.lin_ece(np.zeros(n), s, np.zeros(n, int)) == 0.1


# ------------------------------------------------------------------------------------------------ input


def test_input_of_any_kind() -> None:
    y, P = drawn(64, 8)
    P = np.round(P * 64) / 64
    P[:, 0] = 1 - P[:, 1] - P[:, 2]
    frozen = P.copy()
    frozen.flags.writeable = False
    forms = [
        P.tolist(),
        frozen,
        np.asfortranarray(P),
        P.astype(np.float32),
        P.astype(np.float16),
        P.astype(">f8"),
        np.repeat(P, 2, axis=0)[::2],
        np.repeat(P, 2, axis=1)[:, ::2],
        pd.DataFrame(P),
        pl.DataFrame(P, schema=["a", "b", "c"]),
    ]
    for error in (*ERRORS.values(), T.classwise_brier, T.confidence_loss):
        options: dict[str, Any] = {"n_bins": 3} if "n_bins" in (error.__kwdefaults__ or {}) else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected = error(y, P, **options)
            for form in forms:
                assert error(y, form, **options) == expected, error.__name__
            for labels in (y.tolist(), y.astype(np.uint8), pd.Series(y), pl.Series(y), y.astype(">i4")):
                assert error(labels, P, **options) == expected
    hot, bins = np.eye(3)[y], np.arange(64) % 4
    expected = T.lin_ce(hot, P, bins)
    for form in forms:
        assert T.lin_ce(hot, form, bins) == expected
    for numbers in (
        bins.tolist(),
        bins.astype(np.uint8),
        bins.astype(np.uint64) + 2**63,
        bins * 1.0,
        -bins,
        pd.Series(bins),
        pl.Series(bins),
    ):
        assert T.lin_ce(hot, P, numbers) == expected
    assert T.lin_ce(hot == 1, P, bins) == expected
    assert np.array_equal(frozen, P)


@pytest.mark.kernels
@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=30)
)
def test_kernels(rows: list[tuple[float, int, int]]) -> None:
    s, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows], np.uint8)
    index = np.array([r[2] for r in rows], np.int64)
    for array in (s, y):
        array.flags.writeable = False
    firsts = np.sort(s)[::3].copy()
    assert kernels.bins_below(s, firsts).tolist() == [sum(f <= x for f in firsts) for x in s.tolist()]
    sums, counts = kernels.label_errors(s, y, index, 4)
    assert counts.tolist() == [sum(r[2] == b for r in rows) for b in range(4)]
    outcomes = y.astype(float)
    outcomes.flags.writeable = False
    others = kernels.number_errors(s, outcomes, index, 4)
    means = sums / np.maximum(counts, 1)
    seconds, fourths = kernels.scatter(s, y, index, means)
    for b in range(4):
        errors = [F(r[0]) - r[1] for r in rows if r[2] == b]
        assert abs(F(float(sums[b])) - sum(errors)) <= 4 * F(U)
        assert abs(F(float(others[b])) - sum(errors)) <= 4 * F(U)
        off = [e - F(float(means[b])) for e in errors]
        assert abs(F(float(seconds[b])) - sum(e**2 for e in off)) <= 8 * len(rows) * F(U)
        assert abs(F(float(fourths[b])) - sum(e**4 for e in off)) <= 16 * len(rows) * F(U)


@pytest.mark.kernels
def test_split_ties() -> None:
    s = np.array([0.5, 0.1, 0.5, 0.9, 0.5, 0.5, 0.9])
    s.flags.writeable = False
    index = np.full(7, -1)
    order = np.array([5, 6, 4, 3, 2, 1, 0])
    kernels.split_ties(
        s, order, np.array([0.5, 0.9]), np.array([1, 5]), np.array([0, 2, 3, 6, 7]), index
    )  # ranks 1..4 for .5 in the order 5 4 2 0, ranks 5, 6 for .9 in the order 6 3
    assert index.tolist() == [2, -1, 2, 3, 1, 0, 2]


def test_one_compiled_loop_each() -> None:
    y, P = drawn(64, 9)
    for form in (P, P.tolist(), np.asfortranarray(P), P.astype(np.float32), np.eye(3, dtype=int)[y]):
        for strategy in ("quantile", "uniform"):
            T.classwise_lin_ce(y, form, strategy=strategy, n_bins=5)
            T.conf_ce(y, form, strategy=strategy, n_bins=5)
            T.ranking_verdict(y, form, form, strategy=strategy, n_bins=5)
        for bins in (list(y), y.astype(np.uint8), -y, y * 1.0):
            T.multiclass_lin_ce(y, form, bins=bins)
            T.lin_ce(np.eye(3)[y], form, bins)
            T.lin_ce(y, np.asarray(form)[:, 0], bins)
    for name in ("bins_below", "split_ties", "label_errors", "number_errors", "scatter"):
        assert len(getattr(getattr(kernels, name), "signatures", [0])) <= 1, name


def test_nearly_empty_bins() -> None:
    y, P = drawn(20, 10)
    with pytest.warns(UserWarning, match=r"^bins are nearly empty: 20 rows in \d+ bins") as caught:
        value = T.multiclass_lin_ce(y, P, n_bins=20)
    assert caught[0].filename == __file__
    assert 20 * value == pytest.approx(3 * T.classwise_brier(y, P), rel=64 * U)
    with pytest.warns(UserWarning, match="nearly empty"):
        T.multiclass_lin_ce(y, P, bins=range(20))
    T.multiclass_lin_ce(y, P, bins=[0, 1, 2, 3] * 5)  # five in each: no warning
    y, P = drawn(600, 10)
    T.multiclass_lin_ce(y, P, n_bins=2)


GOOD = [[0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: T.classwise_lin_ce([0], GOOD),
            r"^y_true and P must have the same number of rows; got 1 and 2$",
        ),
        (
            lambda: T.classwise_lin_ce([], np.empty((0, 2))),
            r"^y_true and P must have at least one row; got 0$",
        ),
        (
            lambda: T.classwise_lin_ce([0, 1], [[0.5, 0.5], [1.2, -0.2]]),
            r"^P must lie in \[0, 1\]; got 1.2 at row 1, col",
        ),
        (
            lambda: T.conf_ce([0, 1], [[0.5, 0.5], [math.nan, 1]]),
            r"^P must lie in \[0, 1\]; got nan at row 1, column 0",
        ),
        (
            lambda: T.conf_ce([0, 2], GOOD),
            r"^y_true must hold labels from 0 to 1, the columns of P; got 2 at index 1",
        ),
        (lambda: T.conf_ce([0, 1], GOOD, n_bins=0), r"^n_bins must be a whole number >= 1; got 0$"),
        (
            lambda: T.conf_ece([0, 1], GOOD, strategy="mass"),
            r"^strategy must be one of 'quantile', 'uniform'; got 'mass'",
        ),
        (lambda: T.classwise_lin_ece([0, 1], GOOD, rng=-1), r"^rng must be a seed >= 0; got -1$"),
        (lambda: T.binary_lin_ce([0, 1], [0.2, 1.5]), r"^y_prob must lie in \[0, 1\]; got 1.5 at index 1"),
        (lambda: T.binary_lin_ce([1, 2], [0.2, 0.5]), r"^y_true "),
        (lambda: T.rank_bins([]), r"^y_prob must have at least one row; got 0$"),
        (
            lambda: T.lin_ce([0, 1], [0.5], [0, 0]),
            r"^outcomes and reports must have the same shape; got \(2,\) and \(1,\)$",
        ),
        (lambda: T.lin_ce([0, 1], [0.5, math.inf], [0, 0]), r"^reports must be finite; got inf at index 1$"),
        (
            lambda: T.lin_ce(GOOD, [[1, 0], [0, math.nan]], [0, 0]),
            r"^reports\[:, 1\] must be finite; got nan at index 1$",
        ),
        (lambda: T.lin_ce([0, 1], [0.5, 0.5], [0]), r"^bins must have one number per row; got 1 for 2 rows$"),
        (lambda: T.lin_ce([0, 1], [0.5, 0.5], [0, 0.5]), r"^bins must be whole numbers; got 0.5 at index 1$"),
        (
            lambda: T.lin_ce([0, 1], [0.5, 0.5], [0, math.nan]),
            r"^bins must be whole numbers; got nan at index 1$",
        ),
        (lambda: T.lin_ce([], [], []), r"^outcomes must have at least one value; got 0$"),
        (
            lambda: T.lin_ce([0, 1], [1e300, 0.5], [0, 0]),
            r"^reports and outcomes must differ by less than 1e150",
        ),
        (lambda: T.lin_ce([0, 1], [[[0.5]]], [0]), r"^reports must "),
        (
            lambda: T.multiclass_lin_ce([0, 1], GOOD, bins=[0]),
            r"^bins must have one number per row; got 1 for 2 rows$",
        ),
        (
            lambda: T.ranking_verdict([0, 1], GOOD, [[2, -1], [0, 1]]),
            r"^P_b must lie in \[0, 1\]; got 2 at row 0",
        ),
        (
            lambda: T.ranking_verdict([0, 1], [[2, -1], [0, 1]], GOOD),
            r"^P_a must lie in \[0, 1\]; got 2 at row 0",
        ),
        (
            lambda: T.ranking_verdict([0, 1], GOOD, [[1, 0, 0], [0, 1, 0]]),
            r"^P_a and P_b must have the same number of col",
        ),
        (
            lambda: T.ranking_verdict([0, 1], GOOD, GOOD[:1]),
            r"^y_true and P_b must have the same number of rows; got 2 and 1",
        ),
        (lambda: T.ranking_verdict([0, 1], GOOD, GOOD, measure="full"), r"^measure must be one of"),
        (lambda: T.ranking_verdict([0, 1], GOOD, GOOD, delta=0), r"^delta must "),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: T.lin_ce(["a", "b"], [0.5, 0.5], [0, 0]), r"^outcomes must hold numbers"),
        (lambda: T.lin_ce([0, 1], [0.5, 0.5], ["a", "b"]), r"^bins must hold numbers"),
        (lambda: T.lin_ce([["a"], ["b"]], GOOD, [0, 0]), r"^outcomes must hold numbers"),
        (lambda: T.conf_ce([0, 1], None), r"^P must be a matrix"),
        (lambda: T.rank_bins([0.5], rng="a"), r"^rng must be"),
    ],
)
def test_refused_kinds(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(("n", "m", "rate"), [(200, 50, 0.01), (1000, 50, 0.002)])
def test_a_rare_class_is_not_certain_for_want_of_positives(n, m, rate) -> None:
    """B is calibrated and knows more than A, which says 0: "certain: a" in at most 5 % of samples.

    Of 600 samples at most 51: P(Binomial(600, .05) > 51) < 1e-4.
    """
    rng = np.random.default_rng(91)
    knows = rate * rng.uniform(0.5, 1.5, n)
    a, b = (np.column_stack([1 - s, s]) for s in (np.zeros(n), knows))
    wrong = 0
    for _ in range(600):
        verdict = T.ranking_verdict((rng.random(n) < knows).astype(int), a, b, n_bins=m)
        wrong += verdict.certain and verdict.better == "a"
    assert wrong <= 51


def test_refusals_name_the_argument() -> None:
    for call, message in (
        (lambda: T.lin_ce([[1, 0], [0]], [0, 0], [0, 0]), "outcomes must be a column or a matrix"),
        (lambda: T.lin_ce([1e308, 1e308], [-1e308, 0], [0, 0]), "reports and outcomes must .* overflow"),
        (lambda: T.rank_bins([0.5], 2**60), "n_bins must be at most 1048576"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            call()
