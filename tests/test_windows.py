"""Nadaraya–Watson estimates against exact rational arithmetic, and what must not change them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calcore import smoothing
from calcore.kernels import gauss, windows
from calcore.smoothing import kernel_ce_curve, nadaraya_watson

U = 2.0**-53
KERNELS = ("box", "epanechnikov", "gaussian")

# --- the estimate by its definition, in rational numbers ---------------------------------------------------


def exact_mean(
    x: Sequence[float], y: Sequence[float], w: Sequence[float], t: float, b: float, *, curved: bool
) -> tuple[Fraction, Fraction] | None:
    """Estimate and mean kernel weight of the rows in the closed window; None without weight."""
    total = moment = inside = Fraction(0)
    for place, value, weight in zip(x, y, w, strict=True):
        distance = abs(Fraction(place) - Fraction(t))
        if distance <= Fraction(b):
            kernel = 1 - (distance / Fraction(b)) ** 2 if curved else Fraction(1)
            inside += Fraction(weight)
            total += Fraction(weight) * kernel
            moment += Fraction(weight) * kernel * Fraction(value)
    return (moment / total, total / inside) if total else None


def exact_gaussian(x: Sequence[float], y: Sequence[float], w: Sequence[float], t: float, b: float) -> float:
    """Weights relative to the nearest row's, exponents rational; off by less than 1e-13 max(abs(y)).

    exp(-e) of a rounded e is off by e 2^-53 relative, and e exp(-e) < 1/e.
    """
    squares = [(Fraction(place) - Fraction(t)) ** 2 for place in x]
    least = min(s for s, weight in zip(squares, w, strict=True) if weight)
    scale = 2 * Fraction(b) ** 2
    weights = [
        weight * math.exp(-min(float(Fraction(s - least) / scale), 1e4))
        if (s - least) < scale * 10_000
        else 0.0
        for s, weight in zip(squares, w, strict=True)
    ]
    moment = math.fsum(k * value for k, value in zip(weights, y, strict=True))
    return moment / math.fsum(weights)


# Places that hit each other's window edges exactly, one unit in the last place off, and not at all.
numbers = st.one_of(
    st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 1.0, -1.0, 1e-300, 5e-324, 1e17, 0.1 + 2**-55]),
    st.floats(-1.0, 1.0),
    st.integers(0, 20).map(lambda i: i / 20),
)
values = st.one_of(
    st.sampled_from([0.0, 0.1, -1.0, 1e17, 1e-9]), st.floats(-1.0, 1.0).map(lambda v: v + 1e-3)
)
widths = st.one_of(st.sampled_from([0.1, 0.2, 0.5, 1.0, 1e-320, 1e-9, 3.0]), st.floats(1e-3, 2.0))


@st.composite
def samples(draw: st.DrawFn, of: st.SearchStrategy[Any]) -> tuple[list[float], list[Any], list[float]]:
    n = draw(st.integers(1, 30))
    return (
        draw(st.lists(numbers, min_size=n, max_size=n)),
        draw(st.lists(of, min_size=n, max_size=n)),
        draw(st.lists(numbers, min_size=1, max_size=8)),
    )


# --- windows -----------------------------------------------------------------------------------------------


@pytest.mark.kernels
@given(samples(st.integers(0, 1)), widths)
def test_box_of_labels_is_correctly_rounded(sample: Any, b: float) -> None:
    x, y, at = sample
    for t, found in zip(at, nadaraya_watson(x, y, b, at=at), strict=True):
        exact = exact_mean(x, y, [1.0] * len(x), t, b, curved=False)
        assert found == float(exact[0]) if exact else math.isnan(found)


@pytest.mark.kernels
@given(samples(values), widths, st.data())
def test_box_of_numbers(sample: Any, b: float, data: st.DataObject) -> None:
    """Within the stated 5 u M, M the largest value *in the window*: what has left leaves nothing behind."""
    x, y, at = sample
    w = data.draw(st.lists(st.sampled_from([1.0, 0.5, 3.0, 1e-9, 1e17]), min_size=len(x), max_size=len(x)))
    for t, found in zip(at, nadaraya_watson(x, y, b, at=at, sample_weight=w), strict=True):
        exact = exact_mean(x, y, w, t, b, curved=False)
        if exact is None:
            assert math.isnan(found)
            continue
        largest = max(abs(v) for v, p in zip(y, x, strict=True) if abs(Fraction(p) - Fraction(t)) <= b)
        assert abs(Fraction(found) - exact[0]) <= 5 * U * Fraction(largest)


@pytest.mark.kernels
@given(samples(values), widths, st.data())
def test_epanechnikov(sample: Any, b: float, data: st.DataObject) -> None:
    x, y, at = sample
    w = data.draw(st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=len(x), max_size=len(x)))
    found = nadaraya_watson(x, y, b, at=at, sample_weight=w, window="epanechnikov")
    for t, value in zip(at, found, strict=True):
        exact = exact_mean(x, y, w, t, b, curved=True)
        if exact is None:
            assert math.isnan(value)
            continue
        largest = max(abs(v) for v, p in zip(y, x, strict=True) if abs(Fraction(p) - Fraction(t)) <= b)
        bound = max(2.0**-45 / max(float(exact[1]), 2.0**-21), 20 * U)
        assert abs(Fraction(value) - exact[0]) <= Fraction(bound) * Fraction(largest)


@pytest.mark.kernels
def test_epanechnikov_rows_at_the_edge() -> None:
    """All weight within 2^-40 of the edge: moments have lost it, row by row it is still exact."""
    b, x = 0.5, [0.0, 0.25, 1.0 - 2.0**-41]
    y = [3.0, 100.0, 5.0]
    t = 0.5 - 2.0**-42
    x[1] = -7.0
    exact = exact_mean(x, y, [1.0] * 3, t, b, curved=True)
    assert exact is not None
    assert exact[1] < 2.0**-38
    found = nadaraya_watson(x, y, b, at=[t], window="epanechnikov")[0]
    assert abs(Fraction(found) - exact[0]) <= 20 * U * 5
    at_edge = nadaraya_watson([0.0, 1.0], [0, 1], 0.5, at=[0.5], window="epanechnikov")
    assert np.isnan(at_edge).all()


@given(numbers, st.one_of(widths, st.floats(5e-324, 1e308)))
@pytest.mark.kernels
def test_first_inside_is_the_first_double_in_the_window(t: float, b: float) -> None:
    end = float(windows.first_inside(t, b))
    edge = Fraction(t) - Fraction(b)
    assert Fraction(end) >= edge
    assert Fraction(float(np.nextafter(end, -np.inf))) < edge


@pytest.mark.kernels
def test_windows_are_closed_at_both_ends() -> None:
    y = [1, 0, 1]
    assert list(nadaraya_watson([0.25, 0.5, 0.75], y, 0.25, at=[0.5])) == [2 / 3]
    below, above = np.nextafter(0.25, 0), np.nextafter(0.75, 1)
    assert list(nadaraya_watson([below, 0.5, 0.75], y, 0.25, at=[0.5])) == [0.5]
    assert list(nadaraya_watson([0.25, 0.5, above], y, 0.25, at=[0.5])) == [0.5]
    neighbour, b = np.nextafter(1.0, 0), 0.75 * U  # 1 - b rounds to the neighbour, which is U away: outside
    assert 1.0 - b == neighbour
    assert list(nadaraya_watson([neighbour, 1.0], [1, 0], b, at=[1.0])) == [0.0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_few_rows_many_points_and_the_reverse(kernel: Any) -> None:
    rng = np.random.default_rng(1)
    x, y, at = rng.random(2000), rng.random(2000), np.linspace(-0.2, 1.2, 57)
    for places, values, points in ((x, y, at), (at, rng.random(57), x)):
        found = nadaraya_watson(places, values, 0.03, at=points, window=kernel)
        for t, value in list(zip(points, found, strict=True))[::50]:
            if kernel == "gaussian":
                assert value == pytest.approx(exact_gaussian(places, values, np.ones(len(places)), t, 0.03))
                continue
            exact = exact_mean(places, values, np.ones(len(places)), t, 0.03, curved=kernel != "box")
            assert value == pytest.approx(float(exact[0]), abs=1e-13) if exact else math.isnan(value)


@pytest.mark.parametrize("b", [2**-9, 0.013, 0.2, 3.0])
@pytest.mark.parametrize("curved", [False, True])
def test_anchors_and_chunks(b: float, curved: bool) -> None:
    """Windows of 1 to 3,000 rows: many chunks of 128, many anchors, gaps that windows jump over."""
    rng = np.random.default_rng(2)
    x = np.sort(np.concatenate([rng.random(2000), 5 + 0.1 * rng.random(1000)]))
    y, w = rng.normal(size=3000), rng.random(3000) + 0.1
    kernel: Any = "epanechnikov" if curved else "box"
    found = nadaraya_watson(x, y, b, sample_weight=w, window=kernel)
    for i in range(0, 3000, 3):
        near = np.abs(x - x[i]) <= b
        weight = w[near] * (1 - ((x[near] - x[i]) / b) ** 2 if curved else 1.0)
        exact = math.fsum(weight * y[near]) / math.fsum(weight)
        assert abs(found[i] - exact) < 2.0**-45 * 4.0 / 0.5  # means of weights are at least a half here


# --- the Gaussian ------------------------------------------------------------------------------------------


@given(samples(values), widths)
def test_gaussian_row_by_row(sample: Any, b: float) -> None:
    x, y, at = sample
    found = nadaraya_watson(x, y, b, at=at, window="gaussian")
    largest = max(map(abs, y))
    for t, value in zip(at, found, strict=True):
        exact = exact_gaussian(x, y, [1.0] * len(x), t, b)
        assert abs(value - exact) <= (2.0**-43 + 1e-13) * largest


LAYOUTS = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(0.5, 49.5, n),
    "two lumps": lambda rng, n: np.concatenate([0.01 * rng.random(n // 2), 0.99 + 0.01 * rng.random(n // 2)]),
    "one far row": lambda rng, n: np.append(0.1 * rng.random(n - 1), 0.9),
    "negative and large": lambda rng, n: 1e6 * rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(0, 2000, n) / 2000,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("relative", [0.003, 0.04, 0.25])
def test_gaussian_by_cells(layout: str, relative: float) -> None:
    """The fast transform, at rows and between them, within its stated 2^-36."""
    rng = np.random.default_rng(3)
    x = LAYOUTS[layout](rng, 20_000)
    y, w = (rng.random(20_000) < 0.3).astype(float), rng.random(20_000)
    b = relative * np.ptp(x)
    at = np.sort(np.concatenate([x[:400], rng.uniform(x.min() - 2 * b, x.max() + 2 * b, 100)]))
    width = math.ldexp(1.0, math.frexp(b)[1] - 2)
    out = np.empty(500)
    cell_means(x, y, w, at, b, width, out)
    for t, value in zip(at[::7], out[::7], strict=True):
        square = (x.astype(np.longdouble) - t) ** 2
        weight = w * np.exp(-(square - square.min()) / (2 * np.longdouble(b) ** 2))
        assert abs(value - float((weight * y).sum() / weight.sum())) < 2.0**-36
    public = nadaraya_watson(x, y, b, at=at, sample_weight=w, window="gaussian")
    assert np.abs(public - out).max() < 2.0**-35


def cell_means(x: Any, y: Any, w: Any, at: Any, b: float, width: float, out: Any) -> Any:
    """What `nadaraya_watson` does for many rows, whatever the number."""
    places, inverse = np.unique(x, return_inverse=True)
    mass = np.bincount(inverse, w)
    moment = np.bincount(inverse, w * y)
    numbered = np.floor(places / width).astype(np.int64)
    cells, begins = np.unique(numbered, return_index=True)
    sums = np.empty((len(cells), 2, gauss.DEGREES))
    gauss.collect(places, mass, moment, np.append(begins, len(places)), width, b, sums)
    size = 2 * math.ceil(gauss.REACH * b / width) + 1
    hermite, errors = np.empty((size, gauss.DEGREES)), np.empty(size)
    gauss.tables(width / b, hermite, errors)
    gauss.means_by_cells(places, mass, moment, mass.sum(), cells, sums, hermite, errors, at, width, b, out)
    return errors


@pytest.mark.parametrize("ratio", [0.25 + 2**-50, 0.35, 0.5])
@pytest.mark.kernels
def test_error_of_a_pair_of_cells(ratio: float) -> None:
    """The series against the kernel itself, for all offsets and all over both cells."""
    size = 2 * math.ceil(gauss.REACH / ratio) + 1
    hermite, errors = np.empty((size, gauss.DEGREES)), np.empty(size)
    gauss.tables(ratio, hermite, errors)
    corners = np.linspace(-ratio / 2, ratio / 2, 9)
    for q in range(size):
        z = (q - size // 2) * ratio
        for u in corners:
            for v in corners:
                series = math.fsum(
                    (-1) ** j * hermite[q, j + k] * v**j / math.factorial(j) * u**k / math.factorial(k)
                    for j in range(gauss.DEGREES)
                    for k in range(gauss.DEGREES - j)
                )
                assert abs(series - math.exp(-((z + v - u) ** 2) / 2)) <= errors[q]


def test_nearest_row_when_all_weights_vanish() -> None:
    """Public case A56."""
    found = nadaraya_watson(
        [0.0, 0.5, 1.0], [0, 1, 0], 1e-4, at=[0.0, 0.5, 1.0, 0.3, 0.25], window="gaussian"
    )
    assert list(found) == [0.0, 1.0, 0.0, 1.0, 0.5]
    for b in (1e-160, 1e-300, 5e-324):
        found = nadaraya_watson([0.0, 0.5, 1.0], [0, 1, 0], b, at=[0.3, 0.25, 1e300], window="gaussian")
        assert list(found) == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_scores_equal(kernel: Any) -> None:
    """Public case A57."""
    assert nadaraya_watson([0.4] * 5, [1, 0, 1, 0, 0], 0.01, at=[0.4], window=kernel) == pytest.approx([0.4])


# --- what must not change the result -----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_order_of_rows_and_points(kernel: Any) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 500, 3000) / 500, rng.integers(0, 2, 3000)
    at = rng.random(200)
    shuffle, mix = rng.permutation(3000), rng.permutation(200)
    here = nadaraya_watson(x, y, 0.01, window=kernel)
    there = nadaraya_watson(x[shuffle], y[shuffle], 0.01, window=kernel)
    assert np.allclose(here[shuffle], there, rtol=0, atol=1e-14)
    here = nadaraya_watson(x, y, 0.01, at=at, window=kernel)
    there = nadaraya_watson(x[shuffle], y[shuffle], 0.01, at=at[mix], window=kernel)
    assert np.allclose(here[mix], there, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_are_repeated_rows(kernel: Any) -> None:
    rng = np.random.default_rng(5)
    x, y, w = rng.random(300), rng.random(300), rng.integers(0, 4, 300)
    at = rng.random(100)
    weighted = nadaraya_watson(x, y, 0.02, at=at, window=kernel, sample_weight=w)
    repeated = nadaraya_watson(np.repeat(x, w), np.repeat(y, w), 0.02, at=at, window=kernel)
    assert np.allclose(weighted, repeated, rtol=0, atol=1e-13, equal_nan=True)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("labels", [True, False])
def test_threads(kernel: Any, labels: bool) -> None:
    rng = np.random.default_rng(6)
    x = rng.random(70_000)
    y = rng.integers(0, 2, 70_000) if labels else rng.random(70_000)
    one, four = (nadaraya_watson(x, y, 0.001, window=kernel, n_threads=k) for k in (1, 4))
    assert np.array_equal(one, four)


@pytest.mark.parametrize("kernel", KERNELS)
def test_input_of_any_kind_compiles_once(kernel: Any) -> None:
    x, y = np.array([0.0, 0.25, 1.0]), np.array([0, 1, 1])
    frozen = x.copy()
    frozen.flags.writeable = False
    strided = np.repeat(x, 2)[::2]
    expected = nadaraya_watson(x, y, 0.5, window=kernel)
    for places in (list(x), frozen, strided, x.astype(np.float32), x.astype(">f8")):
        for values in (list(y), y.astype(bool), y.astype(np.int8), y.astype(np.float32), y[::-1][::-1]):
            assert np.array_equal(nadaraya_watson(places, values, 0.5, window=kernel), expected)
    kernels = (windows.box_of_labels, windows.means, windows.running_count, gauss.means_by_rows)
    assert all(len(getattr(f, "signatures", [0])) <= 1 for f in kernels)
    assert x.flags.writeable


def test_input_is_not_changed() -> None:
    x, y, at, w = np.array([0.9, 0.1]), np.array([1.0, 0.5]), np.array([0.5, 0.2]), np.array([0.0, 1.0])
    copies = [a.copy() for a in (x, y, at, w)]
    nadaraya_watson(x, y, 0.5, at=at, sample_weight=w)
    assert all(np.array_equal(a, b) for a, b in zip((x, y, at, w), copies, strict=True))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0.1, math.nan], [0, 1], 0.1), {}, r"^x must be finite; got nan at index 1$"),
        (([0.1, 0.2], [0, math.inf], 0.1), {}, r"^y must be finite; got inf at index 1$"),
        (([0.1, 0.2], [0, 1, 1], 0.1), {}, r"^x and y must have the same length; got 2 and 3$"),
        (([], [], 0.1), {}, r"^x must have at least one value; got 0$"),
        (([0.1], [1], 0.0), {}, r"^bandwidth must be a finite number > 0; got 0.0$"),
        (([0.1], [1], math.inf), {}, r"^bandwidth must be a finite number > 0; got inf$"),
        (
            ([0.1], [1], 0.1),
            {"window": "tricube"},
            r"^window must be one of 'box', 'epanechnikov', 'gaussian'",
        ),
        (([0.1], [1], 0.1), {"at": [math.nan]}, r"^at must be finite; got nan at index 0$"),
        (([0.1], [1], 0.1), {"sample_weight": [0]}, r"^sample_weight must not be all zero$"),
        (([0.1], [1], 0.1), {"sample_weight": [1, 1]}, r"^sample_weight and x must have the same length"),
        (([0.1], [1], 0.1), {"sample_weight": [-1]}, r"^sample_weight must be finite and >= 0; got -1"),
        (([0.1], [1], 0.1), {"n_threads": 0}, r"^n_threads must be a whole number >= 1; got 0$"),
    ],
)
def test_refusals(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nadaraya_watson(*arguments, **options)


def test_text_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^y must hold numbers; got text such as 'a'"):
        nadaraya_watson([0.1], ["a"], 0.1)


# --- calibration error over bandwidths ---------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_curve(kernel: Any) -> None:
    rng = np.random.default_rng(7)
    s = rng.random(500)
    y = rng.random(500) < s**2
    bands = [0.3, 0.01, 0.1]
    expected = [np.abs(nadaraya_watson(s, y, b, window=kernel) - s).mean() for b in bands]
    assert kernel_ce_curve(y, s, bands, window=kernel) == pytest.approx(expected, rel=1e-12)
    named = np.where(y, "yes", "no")
    assert kernel_ce_curve(named, s, bands, window=kernel, pos_label="yes") == pytest.approx(expected)


def test_curve_at_the_ends() -> None:
    """Bandwidth towards 0: mean abs(y - s). Towards infinity: mean abs(mean(y) - s)."""
    y, s = [1, 0, 1], [0.2, 0.4, 0.9]
    assert kernel_ce_curve(y, s, [1e-9, 9.0]) == pytest.approx(
        [(0.8 + 0.4 + 0.1) / 3, (1.4 / 3 + 0.8 / 3 + 0.7 / 3) / 3]
    )
    with pytest.raises(ValueError, match=r"^bandwidths\[1\] must be a finite number > 0; got 0.0"):
        kernel_ce_curve(y, s, [0.1, 0.0])


# --- no drift ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_drift_over_ten_million_rows() -> None:
    """One row of 1e17 passes through the windows; afterwards sums of .1 are still exact to 5 u."""
    n = 10_000_000
    x = np.arange(n) / n
    y = np.full(n, 0.1)
    y[n // 3] = 1e17
    found = nadaraya_watson(x, y, 1e-4)
    far = np.abs(np.arange(n) - n // 3) > 1001
    assert np.abs(found[far] - 0.1).max() <= 5 * U * 0.1
    rng = np.random.default_rng(8)
    y = rng.random(n)
    places = rng.integers(0, n, 20)
    for kernel in ("box", "epanechnikov"):
        found = nadaraya_watson(x, y, 1e-4, window=kernel)  # type: ignore[arg-type]
        for i in places:
            near = slice(*np.searchsorted(x, [x[i] - 1.1e-4, x[i] + 1.1e-4]))
            exact = exact_mean(
                list(x[near]), list(y[near]), [1.0] * len(x[near]), x[i], 1e-4, curved=kernel != "box"
            )
            assert exact is not None
            bound = 5 * U if kernel == "box" else 2.0**-45 / 0.6
            assert abs(Fraction(found[i]) - exact[0]) <= bound


@pytest.mark.parametrize("window", ["box", "epanechnikov", "gaussian"])
def test_numbers_near_the_largest_do_not_overflow(window: Any) -> None:
    huge = [1.7e308, 1.7e308, 1.7e308]
    for weights in (None, [1.7e308, 1.7e308, 1e-100]):
        found = nadaraya_watson([0.0, 0.5, 9.0], huge, 2.0, window=window, sample_weight=weights)
        assert found == pytest.approx(huge, rel=1e-10)
        small = nadaraya_watson([0.0, 0.5, 9.0], [1, 0, 1], 2.0, window=window, sample_weight=weights)
        assert np.isfinite(small).all()


@pytest.mark.slow
def test_labels_over_ten_million_rows() -> None:
    rng = np.random.default_rng(9)
    n = 10_000_000
    x, y = np.sort(rng.random(n)), rng.integers(0, 2, n, dtype=np.uint8)
    found = nadaraya_watson(x, y, 1e-3)
    passed = np.concatenate([[0], np.cumsum(y, dtype=np.int64)])
    places = rng.integers(0, n, 10_000)
    low = np.searchsorted(x, x[places] - 1e-3, side="left")
    high = np.searchsorted(x, x[places] + 1e-3, side="right")
    assert np.array_equal(found[places], (passed[high] - passed[low]) / (high - low))


@pytest.mark.kernels
@pytest.mark.parametrize("n", [1, 2, 3, 1000, 4097])
def test_order_of_any_numbers(n: int) -> None:
    """Ascending, and the rows of a stable sort: also of ties, heaps finer than the grid, and huge ranges."""
    rng = np.random.default_rng(n)
    for x in (
        rng.random(n),
        rng.integers(0, 5, n) / 4,
        rng.beta(0.05, 20.0, n),
        np.r_[1.0, 0.5 + 1e-15 * rng.integers(0, 9, n - 1)],
        -(10.0 ** rng.uniform(-300, 308, n)),
        rng.choice([-1.7e308, 1.7e308, 0.0, 5e-324], n),
        np.arange(n)[::-1] * 1e-30,
    ):
        with np.errstate(over="ignore", invalid="ignore"):  # as compiled loops have it
            ascending, rows = smoothing._ordered(x)
        expected = np.argsort(x, kind="stable")
        assert np.array_equal(ascending, x[expected])
        if rows is None:
            assert np.array_equal(x, ascending)
        else:
            assert np.array_equal(rows, expected)
