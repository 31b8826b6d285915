"""Pictures drawn by real matplotlib: what is on them, that nothing is cut off, and nothing left behind."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.patches import StepPatch

import calcore
from calcore import figures
from calcore.results import Interval

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    assert not plt.get_fignums()
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


def sample(n: int, shape: Any = None, seed: int = 41) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return rng.random(n) < (s if shape is None else shape(s)), s


def s_shape(s: Any) -> Any:
    return s + 0.12 * np.sin(2 * np.pi * s)


def digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import GaussianNB

    X, y = load_digits(return_X_y=True)
    return y[1::2], GaussianNB().fit(X[::2], y[::2]).predict_proba(X[1::2])


def assert_nothing_is_cut_off(figure: Any) -> None:
    """All titles, labels, ticks and legends lie inside the figure, up to a pixel."""
    figure.draw_without_rendering()
    box = figure.get_tightbbox(figure.canvas.get_renderer())
    slack = 1.0 / figure.dpi
    width, height = figure.get_size_inches()
    assert box.x0 >= -slack
    assert box.y0 >= -slack
    assert box.x1 <= width + slack
    assert box.y1 <= height + slack


def few_points(figure: Any) -> int:
    """Vertices and points of all curves and bins."""
    total = 0
    for ax in figure.axes:
        total += sum(len(line.get_xdata()) for line in ax.lines)
        total += sum(len(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection))
        total += sum(len(c.get_segments()) for c in ax.collections if isinstance(c, LineCollection))
    return total


def rare(n: int = 50_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(42)
    s = rng.gamma(0.5, 0.002, n).clip(0, 1)
    return rng.random(n) < s, s


@functools.cache
def everything() -> dict[str, Any]:
    y, s = sample(20_000)
    ys, ss = sample(20_000, s_shape)
    curve = calcore.ece_curve(y[:2000], s[:2000])
    t, P = digits()
    return {
        "calibrated, certified": lambda: calcore.reliability(y, s, certificate=calcore.certify(y, s)).plot(),
        "S": lambda: calcore.reliability(ys, ss, certificate=calcore.certify(ys, ss)).plot(),
        "isotonic": lambda: calcore.reliability(ys, ss, strategy="isotonic").plot(),
        "300 bins": lambda: calcore.reliability(ys, ss, n_bins=300, strategy="uniform").plot(),
        "rare": lambda: calcore.reliability(*rare()).plot(),
        "three rows": lambda: calcore.reliability([0, 1, 1], [0.2, 0.7, 0.9]).plot(),
        "one row": lambda: calcore.reliability([1], [0.0]).plot(),
        "one class": lambda: calcore.reliability(np.ones(50), np.linspace(0, 1, 50)).plot(),
        "no event, score 0": lambda: calcore.reliability(np.zeros(10**6), np.zeros(10**6)).plot(),
        "constant": lambda: calcore.reliability([0, 1] * 50, [0.3] * 100).plot(),
        "zeros and ones": lambda: calcore.reliability([0, 1, 1, 0], [0.0, 1.0, 0.0, 1.0]).plot(),
        "top label": lambda: calcore.reliability_top_label(t, P).plot(),
        "classes": lambda: calcore.reliability_classwise(t, P).plot(),
        "one panel": lambda: calcore.reliability_classwise(t, P).plot(max_panels=1),
        "table": lambda: calcore.calibration_table(y, s).plot(),
        "table of 5000": lambda: calcore.calibration_table(y, s, n_bins=5000, strategy="quantile").plot(),
        "table, weighted": lambda: calcore.calibration_table(y, s, sample_weight=s).plot(),
        "table, one row": lambda: calcore.calibration_table([0], [0.0]).plot(),
        "table, ones": lambda: calcore.calibration_table([0, 1], [0.0, 1.0], strategy="quantile").plot(),
        "corp": lambda: calcore.corp(ys, ss).plot(),
        "corp, log": lambda: calcore.corp([0, 1, 1], [0.0, 0.0, 1.0], score="log").plot(),
        "corp, one row": lambda: calcore.corp([0], [0.5]).plot(),
        "residuals": lambda: calcore.residual_map(ys, ss).plot(),
        "residuals, one row": lambda: calcore.residual_map([0], [0.5]).plot(),
        "residuals, rare": lambda: calcore.residual_map(*rare()).plot(),
        "curve": lambda: curve.plot(),
        "curve, one K": lambda: calcore.ece_curve(y, s, [15]).plot(label="one"),
        "curve, 1000 K": lambda: calcore.ece_curve(y, s, np.arange(1, 1001)).plot(),
        "risk": lambda: calcore.risk_coverage(t, P).plot(),
        "risk of none": lambda: calcore.risk_coverage([1, 1], confidence=[0.5, 0.6]).plot(label="right"),
        "risk of many": lambda: calcore.risk_coverage(y, confidence=s).plot(),
        "risk, one row": lambda: calcore.risk_coverage([0], confidence=[0.5]).plot(),
    }


@pytest.mark.parametrize("name", everything())
def test_nothing_is_cut_off_and_few_points_are_drawn(name: str) -> None:
    made = everything()[name]()
    figure = made if isinstance(made, matplotlib.figure.Figure) else made.figure
    assert plt.get_fignums() == [figure.number]
    assert_nothing_is_cut_off(figure)
    assert few_points(figure) < 1000
    figure.set_size_inches(figure.get_size_inches() * 1.5)
    assert_nothing_is_cut_off(figure)


@pytest.mark.parametrize("name", everything())
def test_nothing_is_cut_off_with_large_fonts(name: str) -> None:
    with matplotlib.rc_context({"font.size": 18.0}):
        made = everything()[name]()
        assert_nothing_is_cut_off(made if isinstance(made, matplotlib.figure.Figure) else made.figure)


@pytest.mark.parametrize("many", [1, 3, 4, 7, 12, 25])
@pytest.mark.parametrize("own", [True, False])
def test_legends_of_many_models_cover_no_curve(own: bool, many: int) -> None:
    y, s = sample(400)
    curve, risk = calcore.ece_curve(y, s), calcore.risk_coverage(y, confidence=s)
    for result in (curve, risk):
        ax = None if own else plt.subplots()[1]
        for j in range(many):
            ax = result.plot(ax, label=f"model {j}")  # type: ignore[attr-defined]
        assert ax is not None
        assert_nothing_is_cut_off(ax.figure)
        legend = ax.get_legend()
        assert len(legend.get_texts()) == many + (2 if result is curve else 1)
        highest = (curve.ece + curve.std).max() if result is curve else risk.risk[risk.coverage > 0.05].max()
        below = legend.get_window_extent()
        inside = ax.get_window_extent()
        assert ax.transData.transform((0.0, highest))[1] < below.y0
        assert inside.x0 <= below.x0
        assert below.x1 <= inside.x1
        assert below.y1 <= inside.y1
        assert inside.height * 72.0 / ax.figure.dpi > 144.0


# --- content -----------------------------------------------------------------------------------------------


def test_reliability_shows_its_numbers() -> None:
    y, s = sample(5000, s_shape)
    diagram = calcore.reliability(y, s, n_bins=8, delta=0.1, certificate=calcore.certify(y, s))
    ax = diagram.plot()
    (points,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert np.array_equal(
        points.get_offsets(), np.column_stack([diagram.bins.mean_score, diagram.bins.positive_rate])
    )
    each, together = [c for c in ax.collections if isinstance(c, LineCollection)]
    for lines, ends in ((each, diagram.intervals), (together, diagram.simultaneous)):
        assert np.array_equal([line[:, 1] for line in lines.get_segments()], ends)
        assert np.array_equal([line[0, 0] for line in lines.get_segments()], diagram.bins.mean_score)
    assert each.get_linewidth()[0] > together.get_linewidth()[0]
    (bars,) = [p for p in ax.patches if isinstance(p, StepPatch)]
    heights = bars.get_data().values - bars.get_data().baseline
    assert np.argmax(heights) == np.argmax(diagram.score_counts)
    assert heights / heights.max() == pytest.approx(diagram.score_counts / diagram.score_counts.max())
    assert bars.get_data().values.max() < 0.0, "below the diagram"
    title = " ".join(ax.get_title(loc="left").replace("\xa0", " ").split())
    certificate = diagram.certificate
    assert certificate is not None
    ends = re.search(r"Calibration error in \[([\d.]+), ([\d.]+)\] at 95%", title)
    assert ends is not None
    low, high = map(float, ends.groups())
    assert certificate.lower - 1e-3 < low <= certificate.lower
    assert certificate.upper <= high < certificate.upper + 1e-3
    assert "total variation <= 1" in title
    assert f"ECE {diagram.ece:.3g} in 8 quantile bins, n = 5,000" in title
    assert "Errors of both signs cancel: mean gap" in title
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["90% interval, each bin", "90% intervals, all bins together"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Mean score", "Share of positives")


def test_points_grow_with_their_bins() -> None:
    table = calcore.calibration_table([0] * 90 + [1] * 10, [0.2] * 90 + [0.8] * 10, n_bins=2)
    (points,) = [c for c in table.plot().collections if isinstance(c, PathCollection)]
    small, large = sorted(points.get_sizes())
    assert large > 4 * small


def test_rare_events_are_zoomed() -> None:
    ax = calcore.reliability(*rare()).plot()
    assert ax.get_xlim()[1] < 0.02
    assert len([t for t in ax.get_xticks() if 0.0 <= t <= ax.get_xlim()[1]]) >= 3
    assert min(ax.get_yticks()) >= 0.0
    y, s = sample(5000)
    wide = calcore.reliability(y, s).plot()
    assert wide.get_xlim() == pytest.approx((-0.03, 1.03))


def test_limits() -> None:
    assert figures.limits(np.array([0.0, 0.6])) == (0.0, 1.0)
    assert figures.limits(np.array([0.3, np.nan])) == (0.0, 1.0)
    assert figures.limits(np.array([])) == (0.0, 1.0)
    assert figures.limits(np.array([0.001]), np.array([[0.0, 0.01]])) == pytest.approx((0.0, 0.0108))
    assert figures.limits(np.array([0.9, 1.0])) == pytest.approx((0.892, 1.0))


def test_thinned_keeps_both_ends() -> None:
    assert figures.thinned(3).tolist() == [0, 1, 2]
    kept = figures.thinned(10**6, 50)
    assert (len(kept), kept[0], kept[-1]) == (50, 0, 10**6 - 1)
    assert figures.thinned(1).tolist() == [0]


def test_joined_bins_keep_their_sums() -> None:
    y, s = sample(5000)
    table = calcore.calibration_table(y, s, n_bins=1000)
    joined = table._joined(100)
    assert 90 <= len(joined) <= 101
    assert joined.counts.sum() == 5000
    assert joined.share.sum() == pytest.approx(1.0)
    assert (joined.share * joined.gap).sum() == pytest.approx(y.mean() - s.mean(), abs=1e-12)
    index = np.searchsorted(joined.edges[:-1], s, side="right") - 1
    assert np.array_equal(np.bincount(index), joined.counts)
    assert table._joined(1000) is table


def test_top_label_and_classes_have_their_words() -> None:
    t, P = digits()
    ax = calcore.reliability_top_label(t, P).plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Mean confidence", "Accuracy")
    names = [f"number ${j}_ with a rather long name" for j in range(10)]
    found = calcore.reliability_classwise(np.array(names)[t], P, labels=names)
    figure = found.plot(max_panels=3)
    assert len(figure.axes) == 3
    title = figure.get_suptitle()
    assert "largest 3 of 10 classes, 7 left out" in title
    worst = found.worst_first[0]
    assert figure.axes[0].get_title(loc="left") == f"number ${worst.name[8]}_ wi…: ECE {worst.ece:.2g}"
    assert_nothing_is_cut_off(figure)
    assert "left out" not in found.plot().get_suptitle()
    assert len(found.plot().axes) == 10


def test_residuals_mark_what_is_certified() -> None:
    y, s = sample(20_000, s_shape)
    found = calcore.residual_map(y, s)
    ax = found.plot()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"score too high ({found.too_high.sum()})" in texts
    assert f"score too low ({found.too_low.sum()})" in texts
    points = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert sum(len(c.get_offsets()) for c in points) == 15
    signs = {str(c.get_label()).split(" (")[0]: c for c in points}
    assert np.array_equal(signs["score too high"].get_offsets()[:, 1], found.bins.gap[found.too_high])
    shapes = {len(c.get_paths()[0].vertices) for c in points}
    assert len(shapes) == 2, "triangles and discs: not by colour alone"
    assert ax.get_legend().get_title().get_text() == "Certified at 95%, all bins together"


def test_curves_of_several_models() -> None:
    ax = None
    curves = [
        calcore.ece_curve(*sample(2000, shape), np.arange(2, 20)) for shape in (None, s_shape, lambda s: s**2)
    ]
    for name, curve in zip("abc", curves, strict=True):
        ax = curve.plot(ax, label=name)
    assert ax is not None
    assert len(plt.get_fignums()) == 1
    lines = [line for line in ax.lines if line.get_label() in "abc"]
    assert len({line.get_color() for line in lines}) == 3
    assert len({str(dashes) for _, dashes in figures._STYLES}) == len(figures._STYLES), "not by colour alone"
    for line, curve in zip(lines, curves, strict=True):
        assert np.array_equal(line.get_ydata(), curve.ece)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["a", "b", "c", "if calibrated, from noise alone", "suggested bins"]
    assert ax.get_ylim()[1] > max(float((curve.ece + curve.std).max()) for curve in curves)
    assert_nothing_is_cut_off(ax.figure)


def test_curves_differ_up_to_25() -> None:
    y, s = sample(300)
    for result in (calcore.ece_curve(y, s), calcore.risk_coverage(y, confidence=s)):
        ax = None
        for j in range(26):
            ax = result.plot(ax, label=f"model {j}")  # type: ignore[attr-defined]
        assert ax is not None
        lines = [line for line in ax.lines if str(line.get_label()).startswith("model")]
        grey = [(str(line._unscaled_dash_pattern), line.get_marker()) for line in lines]  # type: ignore[attr-defined]
        assert len(set(grey[:25])) == 25, "not by colour alone"
        looks = [(line.get_color(), *look) for line, look in zip(lines, grey, strict=True)]
        assert looks[25] == looks[0]
        handles = ax.get_legend().legend_handles
        shown = {(h.get_color(), str(h._unscaled_dash_pattern), h.get_marker()) for h in handles[:25]}  # type: ignore[union-attr]
        assert len(shown) == 25, "and in the legend"


NAMES = ["a$_{$b", "cost_$5$", "_x", "_child3", "$", "100%", "x^2 & \\alpha #1", "", "two\nlines"]


def test_names_are_shown_as_they_are() -> None:
    y, s = sample(300)
    curve, risk = calcore.ece_curve(y, s), calcore.risk_coverage(y, confidence=s)
    ax = over = None
    for name in NAMES:
        ax, over = curve.plot(ax, label=name), risk.plot(over, label=name)
    assert ax is not None
    assert over is not None
    texts = ax.get_legend().get_texts()
    assert [text.get_text() for text in texts[:-2]] == NAMES
    assert [text.get_text().split(": AURC")[0] for text in over.get_legend().get_texts()[:-1]] == NAMES
    assert not any(text.get_parse_math() for text in texts)
    ax.figure.draw_without_rendering()
    over.figure.draw_without_rendering()
    # an odd dollar would be shown as it is by chance: a name of mathtext is as wide as its signs
    wide = {text.get_text(): text.get_window_extent().width for text in texts}
    assert wide["cost_$5$"] > wide["100%"] * 1.5
    t, P = digits()
    names = np.array([f"${j}_$" for j in range(10)])
    calcore.reliability_classwise(names[t], P, labels=names).plot(max_panels=2).draw_without_rendering()
    with matplotlib.rc_context({"text.usetex": True}):
        assert not any(text.get_usetex() for text in curve.plot(label="_$").get_legend().get_texts())


def test_a_curve_without_a_name_is_not_in_the_legend() -> None:
    y, s = sample(300)
    curve = calcore.ece_curve(y, s)
    ax = curve.plot(curve.plot())
    ax.plot([5, 50], [0.0, 0.1], label="mine")
    curve.plot(ax, label="b")
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["b", "if calibrated, from noise alone", "suggested bins", "mine"]


def test_an_isotonic_curve_of_one_score_is_seen() -> None:
    """One vertex, or several at about one place, make no line."""
    near = np.nextafter(0.3, 1.0)
    for made in (
        calcore.corp([1], [0.5]),
        calcore.corp([0, 0, 1, 1], [0.3, near] * 2),
        calcore.reliability([0, 1, 1, 0], np.full(4, 0.3), strategy="isotonic"),
        calcore.reliability([0], [0.0], strategy="isotonic"),
    ):
        ax = made.plot()  # type: ignore[attr-defined]
        line = next(line for line in ax.lines if line.get_label() == "isotonic regression")
        assert line.get_marker() == "D"
        ax.figure.draw_without_rendering()
        x, y = (float(column[0]) for column in line.get_data())
        assert ax.get_xlim()[0] < x < ax.get_xlim()[1]
        assert ax.get_ylim()[0] < y < ax.get_ylim()[1]
        covered = ax.get_legend().get_window_extent()
        assert not covered.contains(*ax.transData.transform((x, y)))
    line = next(
        line for line in calcore.corp([0, 1], [0.2, 0.8]).plot().lines if line.get_color() == "#D55E00"
    )
    assert line.get_marker() == ""


@pytest.mark.parametrize("numbers", [[15], [1], [14, 15], [3, 5], [2**20]])
def test_ticks_are_whole_numbers_of_bins(numbers: list[int]) -> None:
    y, s = sample(300)
    ax = calcore.ece_curve(y, s, numbers).plot()
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    ticks = [t for t in ax.get_xticks() if low <= t <= high]
    assert ticks
    assert all(t == int(t) for t in ticks)
    assert set(numbers) <= set(ticks)
    assert low < min(numbers)
    assert max(numbers) < high


def test_one_number_of_bins_has_its_band() -> None:
    y, s = sample(300)
    curve = calcore.ece_curve(y, s, [15])
    ax = curve.plot(band=[[0.01, 0.2]])
    (band,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert np.array_equal(band.get_segments(), [[[15.0, 0.01], [15.0, 0.2]]])
    assert any(line.get_marker() == "_" and line.get_ydata()[0] == curve.noise[0] for line in ax.lines)


def test_shared_axes_are_not_zoomed() -> None:
    y, s = sample(2000, s_shape)
    seldom = rare()
    for order in ((0, 1), (1, 0)):
        _, cells = plt.subplots(1, 2, sharex=True, sharey=True)
        for cell, which in zip(cells, order, strict=True):
            calcore.reliability(*((y, s) if which == 0 else seldom)).plot(cell)
        assert cells[0].get_xlim() == pytest.approx((-0.03, 1.03))
        assert cells[0].get_ylim()[1] == pytest.approx(1.03)
        assert len(cells[0].get_xticks()) >= 5
        (bars,) = [p for p in cells[order.index(1)].patches if isinstance(p, StepPatch)]
        assert bars.get_data().edges.max() < 0.02, "its histogram is over what it was counted for"
        _, cells = plt.subplots(1, 2, sharex=True, sharey=True)
        found = [calcore.residual_map(y, s), calcore.residual_map(*seldom)]
        for cell, which in zip(cells, order, strict=True):
            found[which].plot(cell)
        for result in found:
            low, high = cells[0].get_ylim()
            ends = result.gap_intervals
            assert low < ends.min()
            assert ends.max() < high
        assert cells[0].get_xlim() == pytest.approx((-0.03, 1.03))
        _, cells = plt.subplots(1, 2, sharex=True, sharey=True)
        curves = [calcore.ece_curve(y, s), calcore.ece_curve(*seldom, [2, 90])]
        for cell, which in zip(cells, order, strict=True):
            curves[which].plot(cell)
        assert cells[0].get_ylim()[1] > (curves[0].ece + curves[0].std).max()
        low, high = cells[0].get_xlim()
        assert low <= 2.0
        assert high >= 90.0


def test_bands() -> None:
    y, s = sample(1000)
    curve = calcore.ece_curve(y, s, [5, 10])
    given = [[0.0, 0.1], [0.02, 0.2]]
    (band,) = [c for c in curve.plot(band=given).collections if not isinstance(c, PathCollection)]
    corners = {tuple(v) for v in band.get_paths()[0].vertices.round(9).tolist()}
    assert {(5.0, 0.0), (5.0, 0.1), (10.0, 0.02), (10.0, 0.2)} <= corners
    for wrong, message in (
        ([[0.0, 0.1]], r"^band must have two ends for each of 2 numbers of bins; got shape \(1, 2\)$"),
        ([[0.0, 0.1], [0.3, 0.2]], r"^band must have its lower end first; got 0.3 above 0.2 at index 1$"),
        ([[0.0, 0.1], [np.nan, 0.2]], r"^band .*nan"),
        ([[0.0, 0.1], [0.1, np.inf]], r"^band .*inf"),
        ([[-1, 2], [0, 1]], r"^band must lie in \[0, 1\]; got -1.0 at index 0$"),
        ([[0, 1], [0, 2]], r"^band must lie in \[0, 1\]; got 2.0 at index 1$"),
        ([[0.0, 0.1], [0.2]], r"^band must have two ends .*; got rows of several lengths$"),
        (
            [Interval(0.0, 0.1)],
            r"^band must have two ends for each of 2 numbers of bins; got shape \(1, 2\)$",
        ),
        ([Interval(0.0, 0.1), 0.3], r"^band must have two ends .*; got rows of several lengths$"),
        (Interval(0.0, 0.1), r"^band must have two ends .*; got shape \(\)$"),
        ([Interval(0.0, 0.1), Interval(0.3, 0.2)], r"^band must have its lower end first; got 0.3 above 0.2"),
        ([], r"^band must have two ends .*; got shape \(0,\)$"),
    ):
        with pytest.raises(ValueError, match=message):
            curve.plot(band=wrong)
    for kind in ([["a", "b"], ["c", "d"]], [[None, 1], [0, 1]], [[1j, 1], [0, 1]]):
        with pytest.raises((TypeError, ValueError), match=r"^band "):
            curve.plot(band=kind)  # type: ignore[arg-type]
    assert plt.get_fignums() == [1], "nothing is drawn of what is refused"


def test_bands_of_a_comparison() -> None:
    y, s = sample(500)
    curve = calcore.ece_curve(y, s, [5, 10])
    compared = calcore.compare(
        y, {"a": s}, metrics=[f"ece@{k}" for k in curve.n_bins], n_resamples=100, delta=0.1
    )
    ends = [one.interval for one in compared.estimates]
    (band,) = [c for c in curve.plot(band=ends).collections if not isinstance(c, PathCollection)]
    corners = band.get_paths()[0].vertices.tolist()
    for k, end in zip((5.0, 10.0), ends, strict=True):
        assert [k, end.lower] in corners
        assert [k, end.upper] in corners


def test_risk_coverage_is_drawn_as_steps_of_its_area() -> None:
    found = calcore.risk_coverage([1, 0, 1, 0], confidence=[0.9, 0.8, 0.7, 0.6])
    ax = found.plot()
    line = ax.lines[0]
    assert line.get_drawstyle() == "steps-pre"
    x, y = line.get_xdata(), line.get_ydata()
    assert float((np.diff(x) * y[1:]).sum()) == pytest.approx(found.aurc)
    assert "AURC 0.333, error 0.5 at full coverage" in ax.get_title(loc="left").replace("\n", " ")
    calcore.risk_coverage([1, 1, 0, 0], confidence=[0.9, 0.8, 0.7, 0.6]).plot(ax, label="b")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "by confidence",
        "b: AURC 0.208",
        "all errors last",
    ]


@pytest.mark.parametrize("n", [300, 5000])
def test_area_of_the_steps_of_many_rows(n: int) -> None:
    """Exact up to 300 confidences; else off by less than risks fall and rise within steps."""
    y, s = sample(n)
    found = calcore.risk_coverage(y, confidence=s)
    x, risk = (np.asarray(column) for column in found.plot().lines[0].get_data())
    area = float((np.diff(x) * risk[1:]).sum())
    assert len(x) <= 301
    if n == 300:
        assert area == pytest.approx(found.aurc, abs=1e-12)
        return
    order = np.argsort(-s)
    risks = np.cumsum(~y[order]) / np.arange(1, n + 1)
    ends = np.rint(x * n).astype(int)
    steps = [risks[a:b] for a, b in itertools.pairwise(ends)]
    slack = sum(len(step) * max(abs(step - step[-1])) for step in steps) / n
    assert abs(area - found.aurc) <= slack


# --- the user's own figures --------------------------------------------------------------------------------


def test_given_axes_are_used() -> None:
    y, s = sample(3000, s_shape)
    figure, cells = plt.subplots(2, 3, figsize=(13, 9), layout="constrained")
    for cell, result in zip(
        cells.ravel(),
        (
            calcore.reliability(y, s, certificate=calcore.certify(y, s)),
            calcore.residual_map(y, s),
            calcore.ece_curve(y, s),
            calcore.risk_coverage(y, confidence=s),
            calcore.calibration_table(y, s),
            calcore.corp(y, s),
        ),
        strict=True,
    ):
        assert result.plot(cell) is cell
    assert plt.get_fignums() == [figure.number]
    assert_nothing_is_cut_off(figure)
    renderer = figure.canvas.get_renderer()
    for left, right in ((0, 1), (1, 2), (3, 4), (4, 5)):
        a, b = (cells.ravel()[j].get_tightbbox(renderer) for j in (left, right))
        assert a.x1 <= b.x0 + 1.0, "titles do not run into the neighbour"


def test_without_pyplot_state() -> None:
    """On a Figure that pyplot does not know, as servers use."""
    from matplotlib.figure import Figure

    y, s = sample(500)
    figure = Figure()
    calcore.reliability(y, s).plot(figure.subplots())
    t, P = digits()
    classes = Figure(figsize=(9, 8), layout="constrained")
    assert calcore.reliability_classwise(t, P).plot(classes) is classes
    halves = Figure(figsize=(12, 8), layout="constrained").subfigures(1, 2)
    assert calcore.reliability_classwise(t, P).plot(halves[0], max_panels=4) is halves[0]
    assert len(halves[0].axes) == 4
    assert not plt.get_fignums()


@pytest.mark.parametrize("style", ["dark_background", "grayscale", "ggplot"])
def test_styles(style: str) -> None:
    y, s = sample(500)
    with plt.style.context(style):
        ax = calcore.reliability(y, s).plot()
        assert_nothing_is_cut_off(ax.figure)
        frame = ax.get_legend().get_frame().get_facecolor()
        assert frame[:3] == matplotlib.colors.to_rgb(ax.get_facecolor()), "texts are legible on their ground"


def test_refusals() -> None:
    y, s = sample(100)
    t, P = digits()
    found = calcore.reliability_classwise(t, P)
    for call, error, message in (
        (
            lambda: calcore.reliability(y, s).plot("here"),
            TypeError,
            r"^ax must be a matplotlib Axes; got str$",
        ),
        (
            lambda: calcore.residual_map(y, s).plot(plt),
            TypeError,
            r"^ax must be a matplotlib Axes; got module$",
        ),
        (lambda: found.plot(3), TypeError, r"^figure must be a matplotlib Figure; got int$"),
        (lambda: found.plot(max_panels=0), ValueError, r"^max_panels must be a whole number >= 1; got 0$"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert not plt.get_fignums()


def test_matplotlib_is_loaded_when_something_is_drawn_and_named_if_missing() -> None:
    code = (
        "import sys, calcore, calcore.figures, calcore.diagrams\n"
        "diagram = calcore.reliability([0, 1], [0.2, 0.8])\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "try:\n    diagram.plot()\n"
        "except ImportError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == (
        "plot needs matplotlib, which is not installed: pip install 'calcore-calibration[plot]'\n"
    )
