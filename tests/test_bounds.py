"""Public concentration bounds against exact tails, and public bins against their rules."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import kl_end
from scipy.stats import binom, ksone, kstwo

from calcore import bounds
from calcore.binning import quantile_bins, uniform_bins

NS = (1, 2, 5, 20, 100, 1000)
DELTAS = (0.4, 0.05, 1e-3)
PS = np.concatenate([np.linspace(0.0, 1.0, 201), np.geomspace(1e-6, 0.01, 40)])
ROUND = 1.0 + 1e-9  # of the exact tails, whose sums have up to 1000 terms


def miss_below(n: int, p: Any, distance: Any) -> Any:
    """P(K/n + distance < p) for K ~ Binomial(n, p): the distance may depend on K. Exact."""
    k = np.arange(n + 1)
    law = binom.pmf(k[:, None], n, p[None, :])
    fails = k[:, None] / n + distance[:, None] < p[None, :] * (1 - 1e-12)
    return (law * fails).sum(axis=0)


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("delta", DELTAS)
def test_hoeffding_holds_for_every_coin(n: int, delta: float) -> None:
    distance = bounds.hoeffding(n, delta)
    assert miss_below(n, PS, np.full(n + 1, distance)).max() <= delta * ROUND


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("delta", DELTAS)
def test_bernstein_holds_for_every_coin(n: int, delta: float) -> None:
    for p in PS:
        distance = np.full(n + 1, bounds.bernstein(p * (1 - p), n, delta))
        assert miss_below(n, np.array([p]), distance)[0] <= delta * ROUND


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("delta", DELTAS)
def test_empirical_bernstein_holds_for_every_coin(n: int, delta: float) -> None:
    k = np.arange(n + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = k * (n - k) / (n * (n - 1.0)) if n > 1 else np.full(2, np.nan)
    distance = bounds.empirical_bernstein(variance, n, delta)
    assert miss_below(n, PS, np.asarray(distance)).max() <= delta * ROUND


@pytest.mark.parametrize("n", NS)
@pytest.mark.parametrize("delta", DELTAS)
def test_kl_holds_for_every_coin(n: int, delta: float) -> None:
    k = np.arange(n + 1)
    upper = np.asarray(bounds.kl_upper(k / n, -math.log(delta) / n))
    lower = np.asarray(bounds.kl_lower(k / n, -math.log(delta) / n))
    assert miss_below(n, PS, upper - k / n).max() <= delta * ROUND
    assert np.allclose(1.0 - lower[::-1], upper, rtol=0, atol=1e-12)
    # never looser than Hoeffding's, and exact where no row or every row is positive: p^n = delta
    assert np.all(upper <= k / n + np.asarray(bounds.hoeffding(n, delta)) + 1e-12)
    assert upper[0] == pytest.approx(1.0 - delta ** (1 / n), rel=1e-9)


@pytest.mark.parametrize("n", NS[1:])
@pytest.mark.parametrize("delta", DELTAS)
def test_dkw_against_the_exact_kolmogorov_law(n: int, delta: float) -> None:
    assert kstwo.sf(bounds.dkw(n, delta), n) <= delta * ROUND
    if delta <= 0.25:
        assert ksone.sf(bounds.dkw(n, 2 * delta), n) <= delta * ROUND
    if n == 1000 and delta < 0.1:  # and it is nearly attained: no room for another constant
        assert kstwo.sf(0.97 * bounds.dkw(n, delta), n) > delta


def test_tightness_where_it_is_known() -> None:
    """With these constants halved or the logarithms' arguments changed, an exact tail is above delta."""
    n, delta = 1000, 0.05
    half = np.full(n + 1, 0.5 * bounds.hoeffding(n, delta))
    assert miss_below(n, np.array([0.5]), half)[0] > delta
    p = 0.02
    half = np.full(n + 1, 0.5 * bounds.bernstein(p * (1 - p), n, delta))
    assert miss_below(n, np.array([p]), half)[0] > delta
    k = np.arange(n + 1)
    upper = np.asarray(bounds.kl_upper(k / n, -0.3 * math.log(delta) / n))
    assert miss_below(n, PS, upper - k / n).max() > delta


def test_zero_observed_variance_still_has_a_width() -> None:
    """Public case A61, the variant of Maurer and Pontil: ln(2/delta) and 7 / (3 (n - 1))."""
    values = [0] * 10
    width = bounds.empirical_bernstein(np.var(values, ddof=1), len(values), 0.05)
    assert width == pytest.approx(7 * math.log(40) / 27, rel=1e-14)
    assert width == pytest.approx(0.956376155, abs=1e-9)
    assert bounds.empirical_bernstein(math.nan, 1, 0.05, span=2.0) == 2.0


def test_reference_values() -> None:
    upper, lower = json.loads(
        """[[[0.0, 0.003, 0.00299550449663], [0.01, 0.001, 0.0151230456043], [0.1, 0.0005, 0.109752901157],
        [0.5, 0.01, 0.570358593457], [0.99, 0.001, 0.993819969113]],
        [[0.01, 0.001, 0.00618003088718], [0.1, 0.0005, 0.0907802300807], [0.5, 0.01, 0.429641406543],
        [0.99, 0.001, 0.984876954396]]]"""
    )
    for rows, function in ((upper, bounds.kl_upper), (lower, bounds.kl_lower)):
        q, nats, expected = np.array(rows).T
        assert function(q, nats) == pytest.approx(expected, rel=1e-10)
        for row in rows:
            assert function(row[0], row[1]) == pytest.approx(row[2], rel=1e-10)


@given(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.05, 0.95)), st.floats(1e-6, 1.0))
def test_kl_numbers_and_arrays_agree_with_a_root_finder(q: float, nats: float) -> None:
    for function, upper in ((bounds.kl_upper, True), (bounds.kl_lower, False)):
        number, array = function(q, nats), function([q], nats)
        assert isinstance(number, float)
        assert isinstance(array, np.ndarray)
        # an ulp of kl at its root, where kl' >= sqrt(2 kl) (Pinsker: kl >= 2 (p - q)^2)
        assert array[0] == pytest.approx(number, rel=1e-9, abs=1e-12)
        assert number == pytest.approx(kl_end(q, nats, upper=upper), rel=1e-9, abs=1e-12)


def exact_kl(q: float, p: float) -> Decimal:
    with localcontext() as context:
        context.prec = 400  # 1 - 1e-300 and its logarithm, exactly enough
        a, b = Decimal(q), Decimal(p)
        total = Decimal(0)
        if q > 0.0:
            total += a * (a / b).ln()
        if q < 1.0:
            total += (1 - a) * ((1 - a) / (1 - b)).ln()
        return total


@pytest.mark.parametrize("q", [0.0, 1e-300, 1e-9, 0.02, 0.1, 0.5, 0.7, 1.0 - 1e-9, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("nats", [0.0, 1e-17, 1e-9, 1e-8, 1e-6, 0.01, 0.3, 5.0])
def test_kl_ends_are_never_inside_and_hardly_outside(q: float, nats: float) -> None:
    up, down = bounds.kl_upper(q, nats), bounds.kl_lower(q, nats)
    for end, far in ((up, 1.0), (down, 0.0)):
        if end != far:
            assert exact_kl(q, end) >= Decimal(nats)
        inwards = end
        for _ in range(4):
            inwards = math.nextafter(inwards, q)
        inwards += (q - inwards) * 1e-14
        if (inwards - q) * (far - q) > 0.0:  # else q is so near that nothing lies between
            assert exact_kl(q, inwards) <= Decimal(nats) + Decimal("1e-300")  # what doubles cannot hold


def test_kl_end_that_no_number_of_nats_reaches() -> None:
    assert bounds.kl_lower(0.1, 1e308) == 0.0
    assert bounds.kl_upper(0.1, math.inf) == 1.0


def test_kl_at_the_ends() -> None:
    assert bounds.kl_upper(1.0, 0.1) == 1.0
    assert bounds.kl_lower(0.0, 0.1) == 0.0
    assert bounds.kl_upper([1.0, 0.5], math.inf)[0] == 1.0  # type: ignore[index]
    assert bounds.kl_upper(0.5, math.inf) == 1.0
    assert list(np.asarray(bounds.kl_lower([[0.0], [1.0]], [0.1, 0.2]))[0]) == [0.0, 0.0]
    assert bounds.kl_lower([[0.0], [1.0]], [0.1, 0.2])[1] == pytest.approx(np.exp([-0.1, -0.2]))  # type: ignore[index]


FORMULAS: list[tuple[Any, tuple[Any, ...]]] = [
    (bounds.hoeffding, (np.array([1, 10, 100]), 0.05)),
    (bounds.bernstein, (0.01, np.array([1, 10, 100]), 0.05)),
    (bounds.empirical_bernstein, (0.01, np.array([1, 10, 100]), 0.05)),
    (bounds.dkw, (np.array([1, 10, 100]), 0.05)),
]


@pytest.mark.parametrize(("function", "arguments"), FORMULAS)
def test_numbers_arrays_and_units(function: Any, arguments: Any) -> None:
    array = function(*arguments)
    for i in range(3):
        one = function(*(a[i] if isinstance(a, np.ndarray) else a for a in arguments))
        assert isinstance(one, float)
        assert one == array[i]
    assert np.all(np.diff(array) <= 0)
    assert array[2] < array[0]
    assert array.shape == (3,)
    if function is not bounds.dkw:  # in units of the span; a variance in units of its square
        scaled = [9.0 * a if i == 0 and len(arguments) == 3 else a for i, a in enumerate(arguments)]
        assert function(*scaled, span=3.0) == pytest.approx(3.0 * array, rel=1e-15)
        assert np.all(function(*arguments, span=3.0) <= 3.0)


def test_never_more_than_trivial() -> None:
    assert bounds.hoeffding(1, 1e-9) == 1.0
    assert bounds.bernstein(0.25, 1, 1e-9) == 1.0
    assert bounds.empirical_bernstein(0.25, 2, 1e-9) == 1.0
    assert bounds.dkw(1, 1e-9) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.hoeffding(0, 0.05), r"^n must be a finite number >= 1; got 0.0$"),
        (lambda: bounds.hoeffding([3, math.nan], 0.05), r"^n must be a finite number >= 1; got nan$"),
        (lambda: bounds.hoeffding(10, 0.0), r"^delta must lie strictly between 0 and 1; got 0.0$"),
        (lambda: bounds.dkw(10, [0.1, 95]), r"^delta must lie strictly between 0 and 1; got 95.0$"),
        (lambda: bounds.hoeffding(10, 0.1, span=0), r"^span must be a finite number > 0; got 0.0$"),
        (lambda: bounds.bernstein(-1, 10, 0.1), r"^variance must be a finite number >= 0; got -1.0$"),
        (
            lambda: bounds.empirical_bernstein(math.nan, 2, 0.1),
            r"^variance must be a finite number >= 0; got nan$",
        ),
        (lambda: bounds.kl_upper(1.5, 0.1), r"^q must lie in \[0, 1\]; got 1.5$"),
        (lambda: bounds.kl_upper([0.5, 1.5], 0.1), r"^q must lie in \[0, 1\]; got 1.5$"),
        (lambda: bounds.kl_lower(0.5, -0.1), r"^nats must be >= 0; got -0.1$"),
        (lambda: bounds.kl_lower(0.5, math.nan), r"^nats must be >= 0; got nan$"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_text_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^n must be a number or an array of numbers"):
        bounds.hoeffding("ten", 0.05)  # type: ignore[call-overload]


# --- binning ----------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([i / 20 for i in range(21)]), min_size=1, max_size=60), st.integers(1, 12))
def test_quantile_bins(scores: list[float], n_bins: int) -> None:
    bins = quantile_bins(scores, n_bins)
    n, order = len(scores), np.argsort(scores, kind="stable")
    assert sorted(set(bins)) == list(range(bins.max() + 1))
    assert bins.max() < min(n_bins, n)
    assert np.all(np.diff(bins[order]) >= 0)
    for a in range(n):
        for b in range(n):
            assert scores[a] != scores[b] or bins[a] == bins[b]
    # bin j closes at the first score that has j / n_bins of the rows at or below it
    cuts = {sorted(scores)[math.ceil(j * n / n_bins) - 1] for j in range(1, n_bins + 1)}
    assert cuts == {max(s for s, c in zip(scores, bins, strict=True) if c == k) for k in set(bins)}


def test_quantile_bins_of_distinct_scores() -> None:
    for n, n_bins in ((60, 4), (7, 2), (7, 10), (10, 3), (1000, 15)):
        counts = np.bincount(quantile_bins(np.random.default_rng(n).permutation(n) / n, n_bins))
        cuts = -(-np.arange(min(n, n_bins) + 1) * n // min(n, n_bins))
        assert list(counts) == list(np.diff(cuts))


def test_quantile_bins_of_public_cases() -> None:
    """A06: ties together. A07: one value, one bin. A08: fewer rows than bins."""
    assert list(quantile_bins([0.5] * 6, 2)) == [0] * 6
    assert list(quantile_bins([0.2] * 4, 10)) == [0] * 4
    assert list(quantile_bins([0.75, 0.25], 15)) == [1, 0]


def test_uniform_bins_of_public_cases() -> None:
    """A01 to A04 and A50: 1 and 0, interior edges, single precision, one bin."""
    assert list(uniform_bins([0.92, 1.0, 1.0], 10)) == [9, 9, 9]
    assert list(uniform_bins([0.0, 0.0, 0.3, 1.0], 2)) == [0, 0, 0, 1]
    assert list(uniform_bins([0.3, 0.35], 10)) == [3, 3]
    assert list(uniform_bins([0.29, 0.295], 100)) == [29, 29]
    assert list(uniform_bins(np.float32([0.7, 0.75]), 10)) == [6, 7]
    assert list(uniform_bins([0.8], 1)) == [0]


@pytest.mark.parametrize("function", [uniform_bins, quantile_bins])
def test_binning_refusals(function: Any) -> None:
    with pytest.raises(ValueError, match=r"^n_bins must be a whole number >= 1; got 0$"):
        function([0.5], 0)
    with pytest.raises(ValueError, match=r"^y_prob must lie in \[0, 1\]; got 2.0 at index 0"):
        function([2.0], 3)
