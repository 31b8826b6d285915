"""Resamples against the same algorithm in whole numbers of Python, and `compare` against explicit indices."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2

import calcore
from calcore import _validate, compare
from calcore.comparison import ModelComparison
from calcore.kernels import bootstrap

kernels = pytest.mark.kernels
slow = pytest.mark.slow

# ------------------------------------------------------------------------------------------- slow versions

WORD = 2**64 - 1


class Xoshiro:
    """xoshiro256++ as published."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.s = [int(word) for word in seed]

    def word(self) -> int:
        def rotated(x: int, k: int) -> int:
            return ((x << k) | (x >> (64 - k))) & WORD

        s = self.s
        result = (rotated((s[0] + s[3]) & WORD, 23) + s[0]) & WORD
        shifted = (s[1] << 17) & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)
        return result


def slow_counts(seed: Sequence[int], n: int, most: int = 4096) -> list[int]:
    """Halve n draws over blocks by bits, draw inside blocks, and draw again what met no row."""
    source = Xoshiro(seed)
    blocks = 1
    while -(-n // blocks) > most:
        blocks *= 2
    size = -(-n // blocks)
    shares = {(0, blocks): n}
    while any(stop - start > 1 for start, stop in shares):
        halves = {}
        for (start, stop), draws in shares.items():
            right, left = 0, draws
            while left > 0:
                right += (source.word() & (2 ** min(left, 64) - 1)).bit_count()
                left -= 64
            middle = (start + stop) // 2
            halves[start, middle], halves[middle, stop] = draws - right, right
        shares = halves
    counts = [0] * (blocks * size)
    for (block, _), draws in shares.items():
        while draws > 0:
            word = source.word()
            for half in (word % 2**32, word >> 32):
                if draws > 0 and half * size % 2**32 >= 2**32 % size:
                    counts[block * size + half * size // 2**32] += 1
                    draws -= 1
    again = sum(counts[n:])
    for _ in range(again):
        row = n
        while row >= n:
            row = source.word() >> (64 - max((n - 1).bit_length(), 1))
        counts[row] += 1
    return counts[:n]


def slow_uniform(s: float, k: int) -> int:
    return max(j for j in range(k) if j / k <= s)


def slow_quantile(scores: Sequence[float], k: int) -> list[int]:
    """A bin closes at the first score with j / k of the rows at or below it."""
    n, ordered = len(scores), sorted(scores)
    lasts = sorted({ordered[-(-j * n // k) - 1] for j in range(1, k + 1)})
    return [next(b for b, last in enumerate(lasts) if s <= last) for s in scores]


def slow_ranks(scores: Sequence[float], k: int) -> list[int]:
    """Equal counts; scores without ties."""
    n = len(scores)
    k = min(k, n)
    rank = {s: r for r, s in enumerate(sorted(scores))}
    return [max(j for j in range(k) if j * n // k <= rank[s]) for s in scores]


def by_bin(y: Sequence[int], s: Sequence[float], bins: Sequence[int]) -> list[float]:
    return [math.fsum(y[i] - s[i] for i in range(len(y)) if bins[i] == b) / len(y) for b in sorted(set(bins))]


def slow_metric(name: str, y: Sequence[int], s: Sequence[float], bins: Sequence[int]) -> float:
    if name == "brier":
        return math.fsum((p - t) ** 2 for p, t in zip(s, y, strict=True)) / len(y)
    if name == "log_loss":
        return -math.fsum(math.log(p if t else 1 - p) for p, t in zip(s, y, strict=True)) / len(y)
    if name.startswith("ece"):
        return math.fsum(map(abs, by_bin(y, s, bins)))
    return math.fsum(gap**2 for gap in by_bin(y, s, bins))


def seeds_of(rng: int, n: int) -> NDArray[np.uint64]:
    return _validate.generator(rng).integers(1, 2**64, (n, 4), dtype=np.uint64)


def counts_of(seed: NDArray[np.uint64], n: int) -> NDArray[np.int64]:
    counts = np.zeros(n, np.int64)
    with np.errstate(over="ignore"):
        bootstrap.counts_of(read_only(seed), counts)
    return counts


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array).view()
    array.flags.writeable = False
    return array


def models(n: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Labels, a calibrated model, and one that is off and noisy."""
    rng = np.random.default_rng(seed)
    s = 0.05 + 0.9 * rng.random(n)
    other = np.clip(0.9 * s + 0.02 + 0.05 * rng.standard_normal(n), 0.01, 0.99)
    return (rng.random(n) < s).astype(np.int64), s, other


# --------------------------------------------------------------------------------------- drawing: the counts


@kernels
@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 1000])
def test_counts_are_those_of_the_slow_version(n: int) -> None:
    for seed in seeds_of(n, 5):
        assert counts_of(seed, n).tolist() == slow_counts(seed.tolist(), n)


@pytest.mark.parametrize("n", [4096, 4097, 8193, 12_289, 40_001])
def test_counts_over_blocks(n: int) -> None:
    """12,289 rows are 4 blocks of 3,073 places, three of them without a row."""
    for seed in seeds_of(n, 4):
        counts = counts_of(seed, n)
        assert counts.sum() == n
        assert counts.tolist() == slow_counts(seed.tolist(), n)


def test_draws_that_meet_no_row_are_made_again() -> None:
    """Rows for 65 blocks are in 128 smaller ones, the last of which has fewer: all are drawn alike."""
    n = 4096 * 65
    found = np.sum([counts_of(seed, n) for seed in seeds_of(1, 30)], axis=0)
    assert found.sum() == 30 * n
    for part in (found[: n // 2], found[n // 2 :], found[-5000:], found[::2], found[:4096]):
        assert binomtest(int(part.sum()), 30 * n, len(part) / n).pvalue > 1e-6


def test_vectors_of_counts_follow_the_multinomial_law() -> None:
    n, draws = 3, 20_000
    seen = Counter(tuple(counts_of(seed, n).tolist()) for seed in seeds_of(2, draws))
    statistic = 0.0
    vectors = [v for v in itertools.product(range(n + 1), repeat=n) if sum(v) == n]
    assert set(seen) <= set(vectors)
    for v in vectors:
        expected = draws * math.factorial(n) / math.prod(map(math.factorial, v)) / n**n
        statistic += (seen[v] - expected) ** 2 / expected
    assert chi2.sf(statistic, len(vectors) - 1) > 1e-6


@pytest.mark.parametrize(("n", "draws"), [(10, 4000), (4097, 300), (20_000, 60)])
def test_moments_of_counts(n: int, draws: int) -> None:
    """Sum (c - 1)^2 is Pearson's statistic: mean n - 1 and variance 2 (n - 1)(1 - 1 / n).

    Variances of the counts are so 1 - 1 / n on average over rows; with the sum fixed, covariances are -1 / n.
    """
    counts = np.array([counts_of(seed, n) for seed in seeds_of(3, draws)])
    assert np.all(counts.sum(axis=1) == n)
    pearson = np.square(counts - 1).sum(axis=1)
    error = math.sqrt(2 * (n - 1) * (1 - 1 / n) / draws)
    assert abs(pearson.mean() - (n - 1)) < 5 * error
    for part in (counts[:, 0], counts[:, -1], counts[:, : n // 2], counts[:, 1::3]):
        rows = part.size // draws
        assert binomtest(int(part.sum()), n * draws, rows / n).pvalue > 1e-6
    first, last = counts[:, : n // 2].sum(axis=1), counts[:, n // 2 :].sum(axis=1)
    variance = n * 0.25 * (1 - (n % 2) / n**2)  # of Binomial(n, floor(n / 2) / n)
    for part in (first, last):  # a sample variance of nearly normal values: relative error sqrt(2 / draws)
        assert abs(part.var() / variance - 1) < 5 * math.sqrt(2 / draws)


@kernels
@settings(deadline=None, max_examples=20)
@given(st.data())
def test_sums_are_those_of_the_counts(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    grouped = data.draw(st.booleans())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = rng.integers(1, 4, n) if grouped else np.ones(n, np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]) if grouped else np.empty(0, np.int64)
    check_sums(n, sizes, starts, rng, data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2)), 3)


@pytest.mark.parametrize("n", [4097, 12_289])
def test_sums_over_blocks(n: int) -> None:
    rng = np.random.default_rng(n)
    check_sums(n, np.ones(n, np.int64), np.empty(0, np.int64), rng, 2, 2, 40)
    sizes = rng.integers(1, 5, n)
    check_sums(n, sizes, np.concatenate([[0], np.cumsum(sizes)]), rng, 1, 1, 40)


def check_sums(n: int, sizes: Any, starts: Any, rng: Any, n_plain: int, n_excess: int, draws: int) -> None:
    n_rows, n_cells = int(sizes.sum()), 4
    plain = rng.integers(-(2**40), 2**40, (n_plain, n_rows))
    excess = rng.integers(-(2**40), 2**40, (n_excess, n_rows))
    cells = rng.integers(0, n_cells, (n_excess, n_rows)).astype(np.uint32)
    seeds = seeds_of(n, draws)
    rows, sums = np.zeros(draws, np.int64), np.zeros((draws, n_plain), np.int64)
    binned = np.zeros((draws, n_cells), np.int64)
    with np.errstate(over="ignore"):
        bootstrap.sums_of_resamples(
            read_only(seeds),
            read_only(starts),
            n,
            *map(read_only, (plain, excess, cells)),
            rows,
            sums,
            binned,
        )
    for r, seed in enumerate(seeds):
        counts = np.repeat(counts_of(seed, n), sizes)
        assert rows[r] == counts.sum()
        assert np.array_equal(sums[r], plain @ counts)
        for cell in range(n_cells):
            assert binned[r, cell] == np.sum((excess * counts)[cells == cell])


# ------------------------------------------------------------------------------ compare: explicit resampling

NAMES = ("brier", "log_loss", "ece@4", "ece@6", "lin_ce@5")


def explicit(
    y: NDArray[Any],
    scores: dict[str, NDArray[Any]],
    strategy: str,
    indices: Sequence[NDArray[np.int64]],
) -> dict[tuple[str, str], list[float]]:
    """Metrics of resamples, each a list of rows, by definition."""
    found = {}
    for model, s in scores.items():
        for name in NAMES:
            k = int(name.partition("@")[2] or 1)
            if name.startswith("lin_ce"):
                bins = slow_ranks(s.tolist(), k)
            elif strategy == "quantile":
                bins = slow_quantile(s.tolist(), k)
            else:
                bins = [slow_uniform(x, k) for x in s.tolist()]
            found[model, name] = [
                slow_metric(name, y[index].tolist(), s[index].tolist(), np.array(bins)[index].tolist())
                for index in indices
            ]
    return found


def check_against(found: ModelComparison, drawn: dict[tuple[str, str], list[float]], delta: float) -> None:
    """Intervals, errors and shares from the values of resamples; 1e-12 is far above what rounding can do."""
    close = pytest.approx
    draws = found.n_resamples
    k = int((draws + 1) * delta / 2 + 1e-9)
    for each in found.estimates:
        values = sorted(drawn[each.model, each.metric])
        assert each.interval.lower == close(values[k - 1], abs=1e-12)
        assert each.interval.upper == close(values[-k], abs=1e-12)
        assert each.standard_error == close(np.std(values, ddof=1), abs=1e-12)
        assert each.bias == close(np.mean(values) - each.estimate, abs=1e-12)
    for d in found.differences:
        a, b = np.array(drawn[d.a, d.metric]), np.array(drawn[d.b, d.metric])
        values = sorted(a - b)
        assert d.interval.lower == close(values[k - 1], abs=1e-12)
        assert d.interval.upper == close(values[-k], abs=1e-12)
        assert d.standard_error == close(np.std(values, ddof=1), abs=1e-12)
        assert d.unpaired_standard_error == close(math.sqrt(a.var(ddof=1) + b.var(ddof=1)), abs=1e-12)
        assert d.correlation == close(np.corrcoef(a, b)[0, 1], abs=1e-9)
        smaller, larger = sum(v <= 0 for v in values), sum(v >= 0 for v in values)
        assert d.p_value == close(min(1, 2 * (1 + min(smaller, larger)) / (draws + 1)))
        assert d.distinguishable == (values[k - 1] > 0 or values[-k] < 0) == (d.p_value <= delta)
        assert d.distinguishable_together == (d.p_value <= delta / len(found.differences))
        opposite = sum(v > 0 for v in values) if d.difference < 0 else sum(v < 0 for v in values)
        assert d.reversed_share == close(opposite / draws)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize(("n", "seed"), [(17, 1), (60, 2)])
def test_against_explicit_resampling(strategy: Any, n: int, seed: int) -> None:
    y, a, b = models(n, seed)
    c = np.random.default_rng(seed).random(n)
    scores = {"a": a, "b": b, "c": c}
    found = compare(y, scores, metrics=NAMES, strategy=strategy, n_resamples=99, delta=0.1, rng=seed)
    indices = [np.repeat(np.arange(n), counts_of(s, n)) for s in seeds_of(seed, 99)]
    check_against(found, explicit(y, scores, strategy, indices), 0.1)
    assert found.n_comparisons == 3 * len(NAMES) == len(found.differences)
    assert found.corrected_delta == pytest.approx(0.1 / 15)


def test_groups_against_explicit_resampling() -> None:
    """Whole groups are drawn, numbered by first rows; bins are those of all rows."""
    n = 60
    y, a, b = models(n, 4)
    names = np.array(["z", "y", "x", "w", "v", "u", "t", "s"])[np.random.default_rng(4).integers(0, 8, n)]
    order = list(dict.fromkeys(names.tolist()))
    members = [np.flatnonzero(names == name) for name in order]
    found = compare(y, {"a": a, "b": b}, metrics=NAMES, n_resamples=99, delta=0.1, rng=4, groups=names)
    indices = [
        np.concatenate([np.tile(rows, times) for rows, times in zip(members, counts_of(s, 8), strict=True)])
        for s in seeds_of(4, 99)
    ]
    check_against(found, explicit(y, {"a": a, "b": b}, "uniform", indices), 0.1)
    assert found.n_groups == 8
    assert found.n == n
    renamed = compare(
        y,
        {"a": a, "b": b},
        metrics=NAMES,
        n_resamples=99,
        delta=0.1,
        rng=4,
        groups=[order.index(name) for name in names],
    )
    assert renamed.to_dict() == found.to_dict()


def test_groups_of_one_row_are_rows() -> None:
    y, a, b = models(300, 5)
    plain = compare(y, {"a": a, "b": b}, n_resamples=99).to_dict()
    grouped = compare(y, {"a": a, "b": b}, n_resamples=99, groups=np.arange(300)[::-1]).to_dict()
    assert grouped.pop("n_groups") == 300
    assert plain.pop("n_groups") is None
    assert grouped == plain


def test_repeated_rows_are_no_more_rows_if_grouped() -> None:
    """Each row five times, in groups of five: standard errors of the rows. Without groups they shrink."""
    y, a, b = models(200, 6)
    metrics = ["brier", "log_loss", "ece@10"]
    once = compare(y, {"a": a, "b": b}, metrics=metrics, n_resamples=199)
    five = [np.tile(column, 5) for column in (y, a, b)]
    grouped = compare(
        five[0],
        {"a": five[1], "b": five[2]},
        metrics=metrics,
        n_resamples=199,
        groups=np.tile(np.arange(200), 5),
    )
    for x, z in zip(once.estimates, grouped.estimates, strict=True):
        assert z.interval.lower == pytest.approx(x.interval.lower, abs=1e-13)
        assert z.standard_error == pytest.approx(x.standard_error, rel=1e-9)
    loose = compare(five[0], {"a": five[1], "b": five[2]}, metrics=["brier"], n_resamples=199)
    # sqrt(5) smaller; a ratio of two standard deviations of 199 values is off by 1 / sqrt(199), 5 of these
    ratio = once.estimates[0].standard_error / loose.estimates[0].standard_error  # type: ignore[operator]
    assert abs(ratio / math.sqrt(5) - 1) < 5 / math.sqrt(199)


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "min_count"])
def test_estimates_are_those_of_the_functions(strategy: Any) -> None:
    y, a, _ = models(1501, 7)
    a = a.round(2)
    found = compare(y, {"a": a}, strategy=strategy, n_resamples=39, metrics=["ece", "ece@33", *NAMES])
    expected = {
        "brier": calcore.scoring.brier_score(y, a),
        "log_loss": calcore.scoring.log_loss(y, a),
        "lin_ce@5": calcore.binary_lin_ce(y, a, n_bins=5),
    } | {f"ece@{k}": calcore.ece(y, a, n_bins=k, strategy=strategy) for k in (4, 6, 15, 33)}
    assert {each.metric: each.estimate for each in found.estimates} == expected
    used = np.count_nonzero(calcore.calibration_table(y, a, n_bins=33, strategy=strategy).counts)
    assert found.estimate("a", "ece@33").n_bins == used
    assert found.estimate("a", "brier").n_bins is None
    assert found.differences == ()


def test_by_hand() -> None:
    """Two rows: of four equally likely draws one is (0, 0), one (1, 1), two are the sample itself."""
    found = compare([1, 0], {"a": [0.75, 0.5]}, metrics=["brier"], n_resamples=1999, rng=1)
    each = found.estimate("a", "brier")
    assert each.estimate == 0.15625
    assert (each.interval.lower, each.interval.upper) == (0.0625, 0.25)
    # Variance of the mean of two draws: ((1/4 - 1/16) / 2)^2 / 2; the fourth moment is twice its square.
    variance = (0.1875 / 2) ** 2 / 2
    assert each.standard_error is not None
    assert each.standard_error**2 == pytest.approx(variance, rel=5 * math.sqrt((2 - 1) / 1999) + 1e-3)


# ------------------------------------------------------------------------------------------------ properties


def test_order_and_company_of_models_change_nothing() -> None:
    y, a, b = models(700, 8)
    c = np.sqrt(a)
    one = compare(y, {"a": a, "b": b, "c": c}, n_resamples=199, delta=0.1)
    other = compare(y, {"c": c, "a": a, "b": b}, n_resamples=199, delta=0.1)
    alone = compare(y, {"x": b}, n_resamples=199, delta=0.1, metrics=["ece@20", "brier"])
    for each in one.estimates:
        assert each.to_dict() == other.estimate(each.model, each.metric).to_dict()
    for name in ("ece@20", "brier"):
        assert alone.estimate("x", name).to_dict() | {"model": "b"} == one.estimate("b", name).to_dict()
    for d in one.differences:
        assert d.to_dict() == other.difference(d.a, d.b, d.metric).to_dict()
        turned = one.difference(d.b, d.a, d.metric)
        assert (turned.a, turned.b, turned.difference) == (d.b, d.a, -d.difference)
        assert (turned.interval.lower, turned.interval.upper) == (-d.interval.upper, -d.interval.lower)
        assert turned.mirrored().to_dict() == d.to_dict()
        assert turned.verdict == d.verdict
    with pytest.raises(KeyError):
        one.difference("a", "a", "brier")
    with pytest.raises(KeyError):
        one.estimate("a", "ece@7")


def test_threads_and_runs_change_nothing_seeds_do() -> None:
    y, a, b = models(9000, 9)
    found = [compare(y, {"a": a, "b": b}, n_resamples=99, n_threads=t).to_dict() for t in (1, 2, 4, None)]
    assert all(each == found[0] for each in found)
    assert compare(y, {"a": a, "b": b}, n_resamples=99, rng=1).to_dict() != found[0]
    generator = np.random.default_rng(0)
    first, second = (compare(y, {"a": a}, n_resamples=99, rng=generator) for _ in range(2))
    assert first.seed is None
    assert first.to_dict() != second.to_dict()
    assert found[0]["seed"] == 0


def test_equal_models_are_not_distinguishable() -> None:
    y, a, _ = models(500, 10)
    for d in compare(y, {"a": a, "again": a.copy()}, n_resamples=99).differences:
        assert (d.difference, d.interval.lower, d.interval.upper, d.standard_error) == (0, 0, 0, 0)
        assert (d.p_value, d.overlap, d.reversed_share, d.distinguishable) == (1, 1, 0, False)
        assert d.in_standard_errors is None
        assert d.variance_ratio == 0
        assert d.correlation == pytest.approx(1)


@pytest.mark.parametrize(("score", "label"), [(0.5, 1), (0.3, 0), (0.1, 1), (1 / 3, 1), (1.0, 1), (0.0, 0)])
def test_constant_rows_have_a_point(score: float, label: int) -> None:
    """No NaN, no rounding: [v, v]."""
    for n in (1, 7, 40):
        y, s = [label] * n, np.full(n, score)
        found = compare(y, {"a": s, "b": s / 2 + 0.25}, n_resamples=39)
        for each in found.estimates:
            if each.metric == "lin_ce@15" and n > 1:  # rank bins split the rows
                continue
            assert (each.interval.lower, each.interval.upper) == (each.estimate, each.estimate)
            assert each.standard_error == each.bias == 0
        d = found.difference("a", "b", "brier")
        assert d.interval.lower == d.interval.upper == d.difference
        assert d.correlation is None
        assert not d.distinguishable  # with one label only
        json.dumps(found.to_dict(), allow_nan=False)
        assert any("only" in text for text in found.warnings) == (n < 30)
        assert any("are confidences missing?" in text for text in found.warnings) == (n > 1)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_intervals_stay_in_range(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    score = st.sampled_from([0.0, 2e-318, 0.1, 0.3, 0.5, 0.75, 1.0]) | st.floats(0.0, 1.0)
    y = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    scores = {name: np.array(data.draw(st.lists(score, min_size=n, max_size=n))) for name in ("a", "b")}
    found = compare(y, scores, n_resamples=39)
    for each in found.estimates:
        assert 0.0 <= each.interval.lower <= each.interval.upper
        assert each.metric == "log_loss" or each.interval.upper <= 1.0
    for d in found.differences:
        assert d.interval.lower <= d.interval.upper
        assert 0.0 <= d.overlap <= 1.0
        assert not d.distinguishable  # of 12 rows at most 6 are of the rarer label
    json.dumps(found.to_dict(), allow_nan=False)


def test_pairing_pays_for_models_that_are_alike() -> None:
    y, a, b = models(4000, 11)
    found = compare(y, {"a": a, "b": b, "shuffled": np.random.default_rng(0).permutation(a)}, n_resamples=499)
    alike = found.difference("a", "b", "brier")
    assert alike.standard_error < 0.5 * alike.unpaired_standard_error
    assert alike.correlation is not None
    assert alike.correlation > 0.9
    assert alike.variance_ratio is not None
    assert alike.variance_ratio < 0.25
    assert alike.overlap > 0.0
    assert alike.distinguishable  # although the intervals overlap
    assert found.difference("a", "shuffled", "brier").variance_ratio == pytest.approx(1, abs=0.3)


def test_share_of_overlap() -> None:
    """Shared length by length together, from the intervals."""
    y, a, b = models(400, 12)
    found = compare(y, {"a": a, "b": b, "far": 1 - a}, n_resamples=99)
    for d in found.differences:
        p, q = found.estimate(d.a, d.metric).interval, found.estimate(d.b, d.metric).interval
        shared = max(0.0, min(p.upper, q.upper) - max(p.lower, q.lower))
        assert d.overlap == pytest.approx(shared / (max(p.upper, q.upper) - min(p.lower, q.lower)))
    assert found.difference("a", "far", "brier").overlap == 0


# -------------------------------------------------------------------------------------------------- coverage


def test_intervals_of_smooth_metrics_cover() -> None:
    """Three kinds of rows: expectations are exact. Misses are binomial, and 4 standard errors are allowed.

    With 400 rows the percentile interval of a mean misses by about skewness^2 / n more, below 1 %.
    """
    rng = np.random.default_rng(20250601)
    eta, p_a, p_b = np.array([0.2, 0.5, 0.9]), np.array([0.25, 0.5, 0.8]), np.array([0.3, 0.45, 0.9])
    share = np.array([0.5, 0.3, 0.2])

    def expected(loss: Callable[[Any, float], Any], p: Any) -> float:
        return float(share @ (eta * loss(p, 1) + (1 - eta) * loss(p, 0)))

    losses = {
        "brier": lambda p, y: (p - y) ** 2,
        "log_loss": lambda p, y: -np.log(p if y else 1 - p),
    }
    truth = {(m, k): expected(loss, p) for k, loss in losses.items() for m, p in (("a", p_a), ("b", p_b))}
    runs, delta, n = 300, 0.1, 400
    missed: Counter[str] = Counter()
    for run in range(runs):
        kind = rng.choice(3, n, p=share)
        y = rng.random(n) < eta[kind]
        found = compare(
            y, {"a": p_a[kind], "b": p_b[kind]}, metrics=list(losses), n_resamples=399, delta=delta, rng=run
        )
        for each in found.estimates:
            inside = each.interval.lower <= truth[each.model, each.metric] <= each.interval.upper
            missed[f"{each.model} {each.metric}"] += not inside
        for d in found.differences:
            true = truth["a", d.metric] - truth["b", d.metric]
            missed[f"difference {d.metric}"] += not d.interval.lower <= true <= d.interval.upper
    error = math.sqrt(delta * (1 - delta) * runs)
    for name in ("a brier", "b brier", "a log_loss", "b log_loss", "difference brier", "difference log_loss"):
        assert abs(missed[name] - delta * runs) <= 4 * error + 0.01 * runs, (name, missed[name])


def test_a_fair_tie_is_called_distinguishable_at_the_level() -> None:
    """Two models of equal expected Brier score: false verdicts come with probability delta."""
    rng = np.random.default_rng(20250602)
    runs, delta, n, wrong = 300, 0.1, 300, 0
    for run in range(runs):
        y = rng.random(n) < 0.5
        up = rng.random(n) < 0.5
        a, b = np.where(up, 0.6, 0.4), np.where(up, 0.4, 0.6)
        found = compare(y, {"a": a, "b": b}, metrics=["brier"], n_resamples=399, delta=delta, rng=run)
        wrong += found.differences[0].distinguishable
    assert abs(wrong - delta * runs) <= 4 * math.sqrt(delta * (1 - delta) * runs) + 0.01 * runs


@pytest.mark.parametrize(("n", "rate"), [(1000, 0.001), (5000, 0.0002), (1000, 0.003)])
def test_rare_positives_decide_nothing(n: int, rate: float) -> None:
    """Without a positive, as in e^(-n rate) of samples, the model with the lower scores looks better."""
    for run in range(40):
        rng = np.random.default_rng([8, run])
        s = rate * rng.uniform(0.5, 1.5, n)
        y = rng.random(n) < s
        pair = {"true": s, "half": s / 2}
        found = compare(y, pair, metrics=["brier", "log_loss"], n_resamples=39, rng=run)
        if y.sum() < 10:
            assert not any(d.distinguishable or d.distinguishable_together for d in found.differences)
            assert any("nothing is called distinguishable" in text for text in found.warnings)


def test_few_positives_are_counted_by_groups() -> None:
    """A hundred positives of one group are one."""
    rng = np.random.default_rng(63)
    s = rng.random(4000)
    groups = np.arange(4000) // 100
    y = (groups == 3) & (s > 0.1)
    one = compare(y, {"a": s, "b": s / 2}, metrics=["brier"], n_resamples=39, groups=groups)
    assert not one.differences[0].distinguishable
    assert any(text.startswith("groups of the rarer label: 1;") for text in one.warnings)
    rows = compare(y, {"a": s, "b": s / 2}, metrics=["brier"], n_resamples=39)
    assert rows.differences[0].distinguishable


def test_noise_is_not_called_a_difference() -> None:
    """Two calibrated models, of which one has four scores: the noise of their ECEs differs, they do not.

    The interval leaves 0 out in most samples; a verdict in at most 5 of 40: P(Binomial(40, .05) > 7) < .0005.
    """
    out = called = 0
    for run in range(40):
        rng = np.random.default_rng([9, run])
        eta = rng.random(1000)
        coarse = np.floor(eta * 4) / 4 + 0.125
        y = rng.random(1000) < eta
        d = compare(
            y, {"sharp": eta, "coarse": coarse}, metrics=["ece"], n_resamples=199, rng=run
        ).differences[0]
        out += not d.interval.lower <= 0 <= d.interval.upper
        called += d.distinguishable
        assert d.is_biased
        assert d.allowance > 0
    assert out > 20
    assert called <= 7
    large = compare(y, {"sharp": eta, "off": eta**3}, metrics=["ece"], n_resamples=199).differences[0]
    assert large.distinguishable
    assert large.distinguishable_together


def test_bins_do_not_depend_on_other_metrics() -> None:
    """Cells times bins above 2^32 must not wrap around."""
    rng = np.random.default_rng(3)
    s = rng.random(200_000)
    y = rng.random(200_000) < s
    both = compare(y, {"a": s}, metrics=["ece@790920", "ece@760876"], n_resamples=39)
    for metric in both.metrics:
        alone = compare(y, {"a": s}, metrics=[metric], n_resamples=39)
        assert alone.estimates[0].n_bins == both.estimate("a", metric).n_bins


def test_functions_cannot_spoil_what_others_see() -> None:
    y, a, b = models(200, 5)

    def spoils(labels, scores):
        value = float(np.mean((labels - scores) ** 2))
        for array in (labels, scores):
            assert not array.flags.writeable
        return value * 1e-100

    found = compare(y, {"a": a, "b": b}, metrics=[spoils, "brier"], n_resamples=39)
    tiny, plain = found.difference("a", "b", "spoils"), found.difference("a", "b", "brier")
    assert tiny.correlation == pytest.approx(plain.correlation, rel=1e-9)

    def none(labels, scores):
        return None

    with pytest.raises(
        TypeError, match=r"^metrics must return numbers; got None from none of 'a' for all rows"
    ):
        compare(y, {"a": a}, metrics=[none], n_resamples=39)


def test_where_noise_makes_ece_too_large_a_warning_says_so() -> None:
    """A calibrated model: the interval of the binned error, whose truth is 0, misses, and that is said."""
    y, a, _ = models(2000, 13)
    found = compare(y, {"calibrated": a, "off": a**3}, metrics=["ece@15", "brier"], n_resamples=499)
    calibrated, off = found.estimate("calibrated", "ece@15"), found.estimate("off", "ece@15")
    assert calibrated.interval.lower > 0
    assert calibrated.is_biased
    assert not off.is_biased
    assert not found.estimate("calibrated", "brier").is_biased
    assert found.difference("off", "calibrated", "ece@15").is_biased  # by the noise of one
    assert not found.difference("off", "calibrated", "brier").is_biased
    assert any(text.startswith("differences in ece@15 (1 pair): ") for text in found.warnings)
    texts = [text for text in found.warnings if "moves the mean" in text]
    assert len(texts) == 1
    assert texts[0].startswith("ece@15 of 'calibrated': ")
    assert calibrated.bias is not None
    assert calibrated.standard_error is not None
    assert calibrated.bias > 0.25 * calibrated.standard_error


@slow
def test_where_no_warning_is_given_ece_intervals_cover() -> None:
    """Bins off by .1 and more: the true binned error is known, and misses are binomial."""
    rng = np.random.default_rng(20250603)
    runs, delta, n, missed = 300, 0.1, 4000, 0
    gaps = np.array([0.1, -0.12, 0.15, -0.1, 0.2])
    for run in range(runs):
        s = 0.25 + 0.5 * rng.random(n)
        bins = np.minimum((s * 10).astype(int), 9) - 2
        y = rng.random(n) < s + gaps[bins.clip(0, 4)]
        found = compare(y, {"a": s}, metrics=["ece@10"], n_resamples=399, delta=delta, rng=run)
        each = found.estimates[0]
        assert not each.is_biased
        # of all rows a tenth is in bins .2 to .3 and .7 to .8 each, and a fifth in each between
        truth = 0.1 * 0.1 + 0.2 * 0.12 + 0.2 * 0.15 + 0.2 * 0.1 + 0.3 * 0.2
        missed += not each.interval.lower <= truth <= each.interval.upper
    assert abs(missed - delta * runs) <= 4 * math.sqrt(delta * (1 - delta) * runs) + 0.01 * runs


# ------------------------------------------------------------------------------------------ several questions


def test_level_is_corrected_for_the_number_of_differences() -> None:
    y, a, b = models(1500, 14)
    found = compare(y, {"a": a, "b": b, "c": np.sqrt(a)}, n_resamples=1999)
    assert found.n_comparisons == 18
    assert found.corrected_delta == pytest.approx(0.05 / 18)
    for d in found.differences:
        assert d.distinguishable_together == (d.p_value <= 0.05 / 18)
    assert found.difference("a", "c", "brier").distinguishable_together
    assert not any("n_resamples" in text for text in found.warnings)
    few = compare(y, {"a": a, "b": b, "c": np.sqrt(a)}, n_resamples=700)  # 2 * 18 / .05 - 1 = 719
    assert not any(d.distinguishable_together for d in few.differences)
    assert any("that takes 719" in text for text in few.warnings)


def test_infinite_log_loss_is_not_compared() -> None:
    y, a, b = models(50, 15)
    a = a.copy()
    a[np.argmax(y)] = 0.0
    found = compare(y, {"a": a, "b": b}, metrics=["log_loss", "brier"], n_resamples=39)
    each = found.estimate("a", "log_loss")
    assert each.estimate == each.interval.lower == each.interval.upper == math.inf
    assert each.standard_error is None
    assert each.bias is None
    assert not each.is_biased
    assert [d.metric for d in found.differences] == ["brier"]
    assert found.n_comparisons == 1
    assert any(text.startswith("log_loss of 'a' is infinite") for text in found.warnings)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["estimates"][0]["estimate"] is None
    assert plain["estimates"][0]["interval"] == {"lower": None, "upper": None}
    assert math.isfinite(found.estimate("b", "log_loss").estimate)


# -------------------------------------------------------------------------------------------------- functions


def squared(y_true: NDArray[np.uint8], y_prob: NDArray[np.float64]) -> float:
    return float(np.mean((y_prob - y_true) ** 2))


def test_functions_get_the_same_resamples() -> None:
    y, a, b = models(150, 16)
    seen = []

    def spy(y_true: NDArray[np.uint8], y_prob: NDArray[np.float64]) -> float:
        seen.append((len(y_true), len(y_prob)))
        return calcore.auroc(y_true, y_prob)

    options: Any = {"n_resamples": 99, "rng": 3}
    found = compare(y, {"a": a, "b": b}, metrics=["brier", squared, spy], **options)
    assert found.metrics == ("brier", "squared", "spy")
    assert set(seen) == {(150, 150)}
    for name in ("a", "b"):
        x, z = found.estimate(name, "brier"), found.estimate(name, "squared")
        assert z.estimate == pytest.approx(x.estimate, abs=1e-15)
        assert z.interval.lower == pytest.approx(x.interval.lower, abs=1e-14)
        assert z.standard_error == pytest.approx(x.standard_error, rel=1e-9)
    groups = np.arange(150) % 40
    found = compare(y, {"a": a, "b": b}, metrics=["brier", squared], groups=groups, **options)
    x, z = found.difference("a", "b", "brier"), found.difference("a", "b", "squared")
    assert z.interval.upper == pytest.approx(x.interval.upper, abs=1e-14)
    only = compare(y, {"a": a, "b": b}, metrics=squared, groups=groups, **options)  # type: ignore[arg-type]
    assert only.difference("a", "b", "squared").to_dict() | {"distinguishable_together": 0} == z.to_dict() | {
        "distinguishable_together": 0
    }


# ------------------------------------------------------------------------------------------ input and output


def test_any_column_gives_the_same() -> None:
    y, a, b = models(64, 17)
    a, b = a.astype(np.float32).astype(float), b.astype(np.float32).astype(float)
    expected = compare(y, {"a": a, "b": b}, n_resamples=39).to_dict()
    wide = np.zeros((64, 2))
    wide[:, 0] = a
    frozen = read_only(b.copy())
    assert compare(y, {"a": wide[:, 0], "b": frozen}, n_resamples=39).to_dict() == expected
    assert (
        compare(list(y), {"a": a.astype(np.float32), "b": b.astype(">f8")}, n_resamples=39).to_dict()
        == expected
    )
    assert compare(pd.Series(y), {"a": pd.Series(a), "b": pl.Series(b)}, n_resamples=39).to_dict() == expected
    words = np.where(y == 1, "yes", "no")
    assert compare(words, {"a": a, "b": b}, n_resamples=39, pos_label="yes").to_dict() == expected
    assert compare(2 * y - 1, {"a": a, "b": b}, n_resamples=39).to_dict() == expected


@kernels
def test_one_compiled_loop() -> None:
    y, a, b = models(40, 18)
    compare(list(y), {"a": list(a), "b": a.astype(np.float32)}, n_resamples=39)
    compare(y, {"a": read_only(a)}, n_resamples=39, groups=y, metrics=["ece"])
    compare(
        y, {"a": np.stack([a, b])[0], "b": np.stack([a, b], axis=1)[:, 1]}, n_resamples=39, metrics=["brier"]
    )
    counts_of(seeds_of(0, 1)[0], 40)
    for loop in (bootstrap.sums_of_resamples, bootstrap.counts_of, bootstrap.add):
        assert len(getattr(loop, "signatures", [0])) == 1


def test_result() -> None:
    y, a, b = models(200, 19)
    found = compare(y, {"a": a, "b": b}, n_resamples=99, rng=7)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["models"] == ["a", "b"]
    assert plain["seed"] == 7
    assert plain["strategy"] == "uniform"
    assert plain["n_resamples"] == 99
    assert plain["n_positive"] == int(y.sum())
    assert plain["metrics"] == ["brier", "log_loss", "ece@10", "ece@15", "ece@20", "lin_ce@15"]
    assert plain["differences"][0]["verdict"] in ("distinguishable", "not distinguishable")
    assert plain["differences"][0]["in_standard_errors"] == pytest.approx(
        plain["differences"][0]["difference"] / plain["differences"][0]["standard_error"]
    )
    assert repr(found).startswith("<ModelComparison of ")
    assert repr(found.estimates[0]).startswith("<brier of 'a': 0.")
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()
    with pytest.raises(AttributeError):
        found.delta = 0.1  # type: ignore[misc]


def faults() -> Iterator[tuple[Any, Any, type[Exception], str]]:
    good = {"a": [0.2, 0.8]}
    yield {"models": [0.2, 0.8]}, {}, TypeError, r"^models must be a mapping .*; got list$"
    yield {"models": {}}, {}, ValueError, r"^models must hold at least one model; got none$"
    yield {"models": {1: [0.2, 0.8]}}, {}, TypeError, r"^models must have names of type str as keys; got 1$"
    yield (
        {"models": {"a": [0.2, 1.8]}},
        {},
        ValueError,
        r"^models\['a'\] must lie in \[0, 1\]; got 1.8 at index 1",
    )
    yield {"models": {"a": [0.2, math.nan]}}, {}, ValueError, r"^models\['a'\] must lie .*nan at index 1"
    yield (
        {"models": good | {"b": [0.2]}},
        {},
        ValueError,
        r"^y_true and models\['b'\] must have the same length",
    )
    yield (
        {"models": {"a": []}, "y_true": []},
        {},
        ValueError,
        r"^y_true and models\['a'\] must have at least one",
    )
    yield {"y_true": [0, 2], "models": good}, {}, ValueError, r"^y_true must hold labels 0/1"
    scheme = {"a": "uniform"}
    yield (
        {"models": good},
        {"strategy": scheme},
        ValueError,
        r"^strategy must be one for all models: errors over",
    )
    yield {"models": good}, {"metrics": {"a": ["ece@5"]}}, ValueError, r"^metrics must be one for all models"
    yield {"models": good}, {"strategy": "even"}, ValueError, r"^strategy must be one of"
    yield {"models": good}, {"metrics": []}, ValueError, r"^metrics must name at least one; got none$"
    yield {"models": good}, {"metrics": 3}, TypeError, r"^metrics must be a sequence .*; got int$"
    yield (
        {"models": good},
        {"metrics": ["ece", "auc"]},
        ValueError,
        r"^metrics must be .*; got 'auc' at index 1$",
    )
    yield (
        {"models": good},
        {"metrics": ["brier@3"]},
        ValueError,
        r"^metrics must be .*; got 'brier@3' at index 0$",
    )
    yield (
        {"models": good},
        {"metrics": ["ece@-1"]},
        ValueError,
        r"^metrics must be .*; got 'ece@-1' at index 0$",
    )
    yield {"models": good}, {"metrics": ["ece@0"]}, ValueError, r"^metrics\[0\] must be a whole number >= 1"
    yield (
        {"models": good},
        {"metrics": ["ece", "ece@15"]},
        ValueError,
        r"^metrics must have different names; got",
    )
    yield (
        {"models": good},
        {"metrics": [lambda y, p: 0.0]},
        ValueError,
        r"^metrics must have names: the function",
    )
    yield (
        {"models": good},
        {"metrics": [not_a_number]},
        ValueError,
        r"^metrics must return finite .*; got nan from",
    )
    yield (
        {"models": good},
        {"n_resamples": 38},
        ValueError,
        r"^n_resamples must be at least 39 for delta=0.05; got",
    )
    yield {"models": good}, {"n_resamples": 10**7}, ValueError, r"^n_resamples must be at most 10\^6"
    yield {"models": good}, {"n_resamples": 2.5}, ValueError, r"^n_resamples must be a whole number"
    yield {"models": good}, {"delta": 95}, ValueError, r"^delta must lie strictly between"
    yield {"models": good}, {"rng": -1}, ValueError, r"^rng must be a seed >= 0"
    yield {"models": good}, {"n_threads": 0}, ValueError, r"^n_threads must be a whole number >= 1"
    yield (
        {"models": good},
        {"groups": [1]},
        ValueError,
        r"^groups and y_true must have the same length; got 1 and 2",
    )
    yield {"models": good}, {"groups": [1, None]}, ValueError, r"^groups must not have missing values"


def not_a_number(y_true: Any, y_prob: Any) -> float:
    return math.nan


@pytest.mark.parametrize(("given", "options", "error", "message"), list(faults()))
def test_faults_are_named(given: Any, options: Any, error: type[Exception], message: str) -> None:
    given = {"y_true": [0, 1]} | given
    with pytest.raises(error, match=message):
        compare(given["y_true"], given["models"], **options)


def test_delta_decides_how_many_resamples_it_takes() -> None:
    y, a, _ = models(40, 20)
    for delta in (0.5, 0.1, 0.05, 0.02, 0.01, 0.3, 0.07):
        least = math.ceil(2 / delta - 1 - 1e-9)
        compare(y, {"a": a}, metrics=["brier"], delta=delta, n_resamples=max(least, 1))
        if least > 1:
            with pytest.raises(ValueError, match=f"at least {least} for"):
                compare(y, {"a": a}, metrics=["brier"], delta=delta, n_resamples=least - 1)


@kernels
def test_small_comparison_runs_uncompiled() -> None:
    """The whole way, small enough for loops that are not compiled."""
    y, a, b = models(20, 21)
    found = compare(y, {"a": a, "b": b}, n_resamples=39)
    indices = [np.repeat(np.arange(20), counts_of(s, 20)) for s in seeds_of(0, 39)]
    brier = sorted(float(np.mean((a - y)[index] ** 2)) for index in indices)
    assert found.estimate("a", "brier").interval.lower == pytest.approx(brier[0], abs=1e-14)
