"""Drawing: plain numbers in, matplotlib Axes out. Nothing is computed here that a reader would quote.

matplotlib is imported when something is drawn, not before. No global setting is changed, nothing is shown,
and no picture has more than a few hundred points. Colours are those of Okabe and Ito, which differ for the
colour-blind; markers and dashes differ too, for prints in grey.

Figures that are made here grow with the size of the user's fonts, and with their legend. Texts are shown as
they are: a dollar or an underscore in a name means nothing. Axes that share an axis with others are not
zoomed, and their limits only widen.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.figure import SubFigure as SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

__all__ = [
    "MOST_POINTS",
    "Points",
    "bars_of",
    "binned_error",
    "binned_title",
    "error_over",
    "gaps",
    "limits",
    "panels",
    "panels_size",
    "picture",
    "reliability",
    "residuals",
    "selective_risk",
    "shortened",
    "thinned",
    "whole_picture",
]

MOST_POINTS = 300
"""Of one curve or one set of bins."""

BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#CC79A7",
    "#A8D4F0",
)
GREY, PALE = "0.45", "0.78"
_STYLES = (
    (BLUE, "-"),
    (VERMILLION, (0, (5, 2))),
    (GREEN, (0, (5, 2, 1, 2))),
    (PURPLE, (0, (2, 1.5))),
    (ORANGE, (0, (8, 2))),
)
_MARKERS = ("", "s", "^", "D", "v")
"""Along a curve, for one round of colours and dashes after the other."""
_MARGIN = 0.03
_STRIP = 0.18
"""Height of the histogram, in parts of the height of the diagram above it."""

_OURS = "calcore"
_CURVE, _NAMELESS, _KEY = "calcore curve", "calcore curve without a name", "calcore key"
"""What lines are: known again when the next model is drawn on the same axes."""
_FULL = 0.6
"""Part of the height of axes that a legend may take."""
_LEAST = 2.0
"""Inches of our own figures that are left for curves."""
Floats = NDArray[np.float64]


class Points(NamedTuple):
    """The bins of a reliability diagram that hold rows."""

    score: Floats
    rate: Floats
    share: Floats
    each: Floats | None = None
    """Both ends of an interval for each bin, shape (m, 2)."""
    together: Floats | None = None
    """Of intervals that hold together."""


def limits(*columns: Floats) -> tuple[float, float]:
    """Part of [0, 1] to draw: all of it if the numbers span half of it or next to nothing, else that."""
    every = np.concatenate([np.ravel(column) for column in columns])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 0.0)
    span = high - low
    if span >= 0.5 or span <= 1e-9 * high:
        return 0.0, 1.0
    return max(low - 0.08 * span, 0.0), min(high + 0.08 * span, 1.0)


def thinned(size: int, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """All indices, or `most` evenly spaced ones with the first and the last."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))


def shortened(name: object, most: int = 18) -> str:
    """A name that fits over a small picture."""
    text = " ".join(str(name).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def binned_title(error: float, counts: NDArray[np.int64], strategy: str) -> str:
    """Say what was measured, in how many bins of which kind, and of how many rows."""
    used = int(np.count_nonzero(counts))
    kind = {"uniform": "equally wide ", "quantile": "quantile ", "min_count": "min-count "}.get(strategy, "")
    many = f"{used} {kind}bins" if used > 1 else "one bin"
    return f"ECE {error:.3g} in {many}, n = {int(counts.sum()):,}"


def reliability(
    ax: Any,
    points: Points,
    *,
    view: tuple[float, float],
    title: str,
    labels: tuple[str, str],
    level: float = 0.95,
    curve: tuple[Floats, Floats] | None = None,
    bars: tuple[Floats, Floats] | None = None,
    small: bool = False,
) -> Axes:
    """Rates against scores, with intervals; the scores' histogram in a strip below, inside the same axes.

    Parameters
    ----------
    view : (float, float)
        Limits of both axes; of shared axes 0 and 1.
    labels : (str, str)
        Of x and y.
    curve : pair of float64 arrays, optional
        Vertices of a line: an isotonic regression.
    bars : pair of float64 arrays, shapes (m + 1,) and (m,), optional
        Edges and heights of the histogram.
    small : bool
        One of many: no labels of axes, no legend.
    """
    canvas = _axes(ax, 4.8, 5.5)
    seen = view
    if _is_shared(canvas, "x") or _is_shared(canvas, "y"):
        view = 0.0, 1.0
    low, high = view
    span = high - low
    pad = _MARGIN * span
    canvas.plot([low, high], [low, high], color=GREY, linestyle=(0, (4, 3)), linewidth=1.0, zorder=1)
    handles: list[Any] = []
    if curve is not None:
        kept = thinned(len(curve[0]))
        x, y = curve[0][kept], curve[1][kept]
        handles += canvas.plot(
            x,
            y,
            color=VERMILLION,
            linewidth=1.6,
            marker="D" if max(np.ptp(x), np.ptp(y)) < 0.005 * span else "",
            markersize=5.0,
            zorder=4,
            label="isotonic regression",
        )
    crowd = min(1.0, 40.0 / max(len(points.score), 1))
    for ends, width, color, name in (
        (points.each, 3.2, SKY, f"{_percent(level)} interval, each bin"),
        (points.together, 0.9, BLUE, f"{_percent(level)} intervals, all bins together"),
    ):
        if ends is not None:
            handles.append(
                canvas.vlines(
                    points.score,
                    ends[:, 0],
                    ends[:, 1],
                    color=color,
                    linewidth=width * crowd,
                    zorder=2,
                    label=name,
                )
            )
    canvas.scatter(
        points.score,
        points.rate,
        s=crowd * ((14.0 if small else 12.0) + (120.0 if small else 240.0) * points.share),
        color=BLUE,
        edgecolor=canvas.get_facecolor(),
        linewidth=0.6 * crowd,
        zorder=3,
    )
    floor = low - pad
    if bars is not None:
        floor -= _STRIP * span
        _strip(canvas, *bars, view, floor, seen)
    _widen(canvas, "x", low - pad, high + pad)
    _widen(canvas, "y", floor, high + pad)
    canvas.set_aspect("equal", adjustable="box")
    _ticks(canvas, view, 3 if small else 6)
    _title(canvas, title, small)
    if small:
        return canvas
    _labels(canvas, *labels)
    if curve is not None and not points.score.size:
        points = Points(*curve, np.ones(len(curve[0])))  # the legend keeps out of its way
    if handles:
        tall = high + pad - floor
        canvas.apply_aspect()
        _legend(
            canvas,
            handles,
            loc=_corner(points, view),
            bbox_to_anchor=(0.0, (low - pad - floor) / tall, 1.0, (span + 2.0 * pad) / tall),
        )
    return canvas


def _corner(points: Points, view: tuple[float, float]) -> Literal["upper left", "lower right"]:
    """Upper left or lower right, where fewer points (and, of as many, fewer intervals) are covered."""
    low, high = view
    ends = next((e for e in (points.together, points.each) if e is not None), None)
    ends = np.column_stack([points.rate] * 2) if ends is None else ends
    x, y, bottom, top = (
        (column - low) / (high - low) for column in (points.score, points.rate, ends[:, 0], ends[:, 1])
    )
    left, right = x < 0.65, x > 0.35
    above = np.count_nonzero(left & (y > 0.82)), np.count_nonzero(left & (top > 0.82))
    below = np.count_nonzero(right & (y < 0.18)), np.count_nonzero(right & (bottom < 0.18))
    return "upper left" if above <= below else "lower right"


def bars_of(edges: Floats, share: Floats, view: tuple[float, float]) -> tuple[Floats, Floats]:
    """Edges and heights of a histogram whose areas are the shares, as far as they are drawn.

    Bins narrower than 1/500 of the axis count as that wide: one score that many rows have would dwarf
    all others.
    """
    low, high = view
    return edges, share / np.maximum(np.diff(edges.clip(low, high)), 0.002 * (high - low))


def residuals(
    ax: Any,
    edges: Floats,
    score: Floats,
    gap: Floats,
    ends: Floats,
    sign: NDArray[np.int8],
    *,
    title: str,
    labels: tuple[str, str],
    level: float,
) -> Axes:
    """Gaps of bins with intervals that hold together.

    Parameters
    ----------
    edges : float64 array of shape (m, 2)
        Of each bin.
    sign : int8 array of shape (m,)
        -1 where the score is certified to be too high, 1 where too low, else 0.
    """
    canvas = _axes(ax, 5.8, 4.0)
    low, high = (0.0, 1.0) if _is_shared(canvas, "x") else limits(score)
    pad = _MARGIN * (high - low)
    canvas.axhline(0.0, color=GREY, linestyle=(0, (4, 3)), linewidth=1.0, zorder=1)
    for value, color, marker, name in (
        (-1, VERMILLION, "v", "score too high"),
        (0, GREY, "o", "undecided"),
        (1, BLUE, "^", "score too low"),
    ):
        here = sign == value
        count = int(np.count_nonzero(here))
        if not count:
            continue
        canvas.vlines(score[here], ends[here, 0], ends[here, 1], color=color, linewidth=1.2, zorder=2)
        wide = edges[here].clip(low, high)
        canvas.hlines(gap[here], wide[:, 0], wide[:, 1], color=color, linewidth=1.2, alpha=0.55, zorder=2)
        canvas.scatter(
            score[here],
            gap[here],
            s=34.0,
            marker=marker,
            color=color,
            edgecolor=canvas.get_facecolor(),
            linewidth=0.6,
            zorder=3,
            label=f"{name} ({count})",
        )
    _widen(canvas, "x", low - pad, high + pad)
    bottom, top = min(float(ends.min()), 0.0), max(float(ends.max()), 0.0)
    _labels(canvas, *labels)
    _title(canvas, title)
    taken = _legend(
        canvas,
        canvas.get_legend_handles_labels()[0],
        columns=(3, 1),
        handletextpad=0.2,
        columnspacing=1.0,
        title=f"Certified at {_percent(level)}, all bins together",
        alignment="left",
    )
    tall = 1.07 * (top - bottom)
    _widen(canvas, "y", bottom - 0.05 * (top - bottom), bottom + tall / (1.0 - taken))
    return canvas


def binned_error(
    ax: Any,
    counts: NDArray[np.int64],
    error: Floats,
    noise: Floats,
    band: Floats,
    suggested: int,
    *,
    label: str | None,
    title: str,
) -> Axes:
    """A binned error over numbers of bins; again on the same axes for another model."""
    canvas = _axes(ax, 5.8, 4.0)
    style, number = _next_style(canvas)
    color = style["color"]
    order = np.argsort(counts, kind="stable")
    order = order[thinned(len(order))]
    x = counts[order]
    mark = int(np.argmin(np.abs(x - suggested)))
    alone = len(x) == 1
    if alone:
        canvas.vlines(x, band[:, 0], band[:, 1], color=color, alpha=0.35, linewidth=3.2, zorder=1)
    else:
        canvas.fill_between(
            x, band[order, 0], band[order, 1], color=color, alpha=0.18, linewidth=0.0, zorder=1
        )
    (line,) = canvas.plot(x, error[order], **style, linewidth=1.7, zorder=3)
    _name(line, label)
    canvas.plot(x[mark], error[order][mark], color=color, marker="o", markersize=6.0, zorder=3)
    canvas.plot(
        x,
        noise[order],
        color=color,
        linestyle=":",
        linewidth=1.3,
        marker="_" if alone else "",
        markersize=12.0,
        zorder=2,
    )
    if number == 0:
        for marker, dots, name in (("", ":", "if calibrated, from noise alone"), ("o", "", "suggested bins")):
            canvas.plot(
                [],
                [],
                color=GREY,
                linestyle=dots,
                linewidth=1.3,
                marker=marker,
                markersize=6.0,
                label=name,
                gid=_KEY,
            )
        _title(canvas, title)
    _labels(canvas, "Number of bins", "Expected calibration error")
    first, last = (float(end) for end in canvas.dataLim.intervalx)
    if last - first < 2.0:
        _widen(canvas, "x", first - 1.0, last + 1.0)
    else:
        canvas.autoscale(axis="x")
    _whole_ticks(canvas)
    tallest = max(float(band[:, 1].max()), float(error.max()), float(noise.max()))
    _heighten(canvas, max(1.04 * tallest, 1.04 * float(canvas.dataLim.y1)), number)
    return canvas


def gaps(ax: Any, margin: Floats, gap: Floats, error: Floats, *, title: str) -> Axes:
    """How much one confidence is above another, over margins, with bars on either side."""
    canvas = _axes(ax, 5.4, 3.8)
    style, number = _next_style(canvas)
    style |= {"marker": style["marker"] or "o", "markevery": None, "linewidth": 1.7, "zorder": 3}
    (line,) = canvas.plot(margin, gap, **style)
    _name(line, None)
    canvas.vlines(margin, gap - error, gap + error, color=style["color"], linewidth=1.3, zorder=2)
    if number == 0:
        canvas.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
        _title(canvas, title)
    _labels(canvas, "Margin of the most frequent answer", "Sem1 less Sem2")
    _widen(canvas, "x", 0.0, 1.0)
    return canvas


def error_over(
    ax: Any, x: Floats, error: Floats, band: Floats, *, label: str, title: str, about: str
) -> Axes:
    """An error over numbers of something, with intervals; again on the same axes for another."""
    canvas = _axes(ax, 5.6, 4.0)
    style, number = _next_style(canvas)
    color = style["color"]
    canvas.vlines(x, band[:, 0], band[:, 1], color=color, alpha=0.35, linewidth=3.2 - number, zorder=1)
    (line,) = canvas.plot(
        x, error, **(style | {"marker": style["marker"] or "o", "markevery": None}), linewidth=1.7, zorder=3
    )
    _name(line, label)
    if number == 0:
        _title(canvas, title)
    _labels(canvas, about, "Expected calibration error")
    _widen(canvas, "x", 0.0, 1.04 * float(x.max()))
    _whole_ticks(canvas)
    _heighten(canvas, max(1.04 * float(band[:, 1].max()), 1.04 * float(canvas.dataLim.y1)), number)
    return canvas


def selective_risk(
    ax: Any,
    coverage: Floats,
    risk: Floats,
    error: float,
    *,
    label: str | None,
    title: str,
) -> Axes:
    """Risk over coverage, as steps; again on the same axes for another model.

    Each step has the risk at its right end: their area is AURC if no coverage is left out, else about that.
    """
    canvas = _axes(ax, 5.2, 4.0)
    style, number = _next_style(canvas)
    color = style["color"]
    kept = thinned(len(coverage))
    x, y = coverage[kept], risk[kept]
    (line,) = canvas.plot(
        np.concatenate([[0.0], x]),
        np.concatenate([y[:1], y]),
        drawstyle="steps-pre",
        **style,
        linewidth=1.7,
        zorder=3,
    )
    _name(line, label if label is not None or number else "by confidence")
    grid = np.linspace(0.0, 1.0, 101)[1:]
    canvas.plot(
        grid,
        np.maximum(grid - (1.0 - error), 0.0) / grid,
        color=color,
        linestyle=":",
        linewidth=1.1,
        zorder=2,
        label="all errors last" if number == 0 else None,
        gid=_KEY if number == 0 else None,
    )
    canvas.plot([x[-1]], [y[-1]], color=color, marker="o", markersize=5.0, clip_on=False, zorder=4)
    _widen(canvas, "x", 0.0, 1.02)
    _labels(canvas, "Coverage: share of rows that are answered", "Risk: share of errors among them")
    if number == 0:
        _title(canvas, title)
    tallest = 0.0
    for line in _curves(canvas):  # without the first rows, whose risk says little
        x, y = (np.asarray(column, np.float64) for column in line.get_data())
        tallest = max(tallest, float(y[x >= min(0.05, x[-1])].max()))
    _heighten(canvas, 1.04 * tallest, number)
    return canvas


def _grid(number: int) -> tuple[int, int]:
    columns = min(number, 4 if number > 4 else (2 if number == 4 else number))
    return columns, -(-number // columns)


def panels_size(number: int) -> tuple[float, float]:
    """Width and height in inches that suit so many `panels`."""
    columns, rows = _grid(number)
    return max(2.1 * columns, 3.6) + 0.4, 2.75 * rows + 0.7


def panels(
    figure: Any, number: int, title: str, labels: tuple[str, str]
) -> tuple[Figure | SubFigure, list[Axes]]:
    """A figure with axes for `number` small pictures, one title and one label for all of x and of y."""
    columns, rows = _grid(number)
    made: Any = figure
    if figure is None:
        pyplot, scale = _pyplot(), _font_scale()
        width, height = panels_size(number)
        made = pyplot.figure(figsize=(scale * width, scale * height), layout="constrained")
    else:
        from matplotlib.figure import FigureBase

        if not isinstance(figure, FigureBase):
            raise TypeError(f"figure must be a matplotlib Figure; got {type(figure).__name__}")
    grid = made.subplots(rows, columns, squeeze=False)
    cells = list(grid.ravel())
    for spare in cells[number:]:
        spare.remove()
    for text in (
        made.suptitle(title, fontsize="medium", x=0.01, ha="left"),
        made.supxlabel(labels[0], fontsize="medium"),
        made.supylabel(labels[1], fontsize="medium"),
    ):
        _literal(text)
    return made, cells[:number]


# --- what pictures share -----------------------------------------------------------------------------------


def picture(
    draw: Callable[[Axes], object], width: float, height: float, kind: Literal["svg", "png", "pdf"] = "svg"
) -> bytes:
    """A file's content, of one pair of axes; see `whole_picture`."""
    return whole_picture(lambda figure: draw(figure.add_subplot()), width, height, kind)


def whole_picture(
    draw: Callable[[Figure], object], width: float, height: float, kind: Literal["svg", "png", "pdf"] = "svg"
) -> bytes:
    """A file's content; the same for the same picture: no date, no random names.

    It is drawn in a figure of its own, which pyplot does not know: nothing is left behind, threads may draw
    at once, and no display is needed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "pictures need matplotlib, which is not installed: pip install 'calcore-calibration[plot]'"
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    draw(figure)
    undated: dict[str, dict[str, None]] = {"svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None}}
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "calcore", "svg.fonttype": "path"}):
        figure.savefig(content, format=kind, metadata=undated[kind], dpi=150)
    return content.getvalue()


def _percent(level: float) -> str:
    return f"{100.0 * level:.6g}%"


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "plot needs matplotlib, which is not installed: pip install 'calcore-calibration[plot]'"
        ) from None
    return pyplot


def _axes(ax: Any, width: float, height: float) -> Axes:
    """The user's axes, or those of a new figure of a size in inches."""
    if ax is None:
        pyplot, scale = _pyplot(), _font_scale()
        made: Axes
        figure, made = pyplot.subplots(figsize=(scale * width, scale * height), layout="constrained")
        figure.set_gid(_OURS)
        return made
    from matplotlib.axes import Axes as Kind

    if not isinstance(ax, Kind):
        raise TypeError(f"ax must be a matplotlib Axes; got {type(ax).__name__}")
    return ax


def _font_scale() -> float:
    """The largest of the user's fonts for labels, in parts of 10 points; 1 if it is smaller."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    sizes = [
        float(FontProperties(size=size).get_size_in_points())
        for size in (
            rcParams["font.size"],
            rcParams["axes.labelsize"],
            rcParams["xtick.labelsize"],
            rcParams["ytick.labelsize"],
        )
    ]
    return max(*sizes, 10.0) / 10.0


def _siblings(canvas: Axes, axis: Literal["x", "y"]) -> list[Axes]:
    """Other axes that have this axis in common."""
    groups = canvas.get_shared_x_axes() if axis == "x" else canvas.get_shared_y_axes()
    return [other for other in groups.get_siblings(canvas) if other is not canvas]


def _is_shared(canvas: Axes, axis: Literal["x", "y"]) -> bool:
    return bool(_siblings(canvas, axis))


def _widen(canvas: Axes, axis: Literal["x", "y"], low: float, high: float) -> None:
    """Set limits; if other axes that share them show something, only widen."""
    if any(other.has_data() for other in _siblings(canvas, axis)):
        before = canvas.get_xlim() if axis == "x" else canvas.get_ylim()
        low, high = min(low, *before), max(high, *before)
    if axis == "x":
        canvas.set_xlim(low, high)
    else:
        canvas.set_ylim(low, high)


def _strip(
    canvas: Axes,
    edges: Floats,
    heights: Floats,
    view: tuple[float, float],
    floor: float,
    seen: tuple[float, float],
) -> None:
    """Bars over the part `seen` of the scores that they were counted for."""
    low, high = view
    room = 0.92 * _STRIP * (high - low)
    tallest = float(heights.max())
    inside = edges.clip(*seen)
    scaled = floor + room * heights / (tallest if tallest > 0.0 else 1.0)
    canvas.stairs(scaled, inside, baseline=floor, fill=True, color=PALE, zorder=0.5)
    canvas.axhline(floor + _STRIP * (high - low), color=PALE, linewidth=0.7, zorder=0.5)


def _ticks(canvas: Axes, view: tuple[float, float], most: int) -> None:
    from matplotlib.ticker import MaxNLocator

    low, high = view
    near = 1e-6 * (high - low)
    ticks = [t for t in MaxNLocator(most).tick_values(low, high) if low - near <= t <= high + near]
    canvas.set_xticks(ticks)
    canvas.set_yticks(ticks)


def _whole_ticks(canvas: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    canvas.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def _literal(text: Text) -> None:
    """Show a text as it is: neither mathtext nor TeX."""
    text.set_parse_math(False)
    text.set_usetex(False)


def _wrapped(text: str, points: float, size: float, least: int) -> list[str]:
    """Lines that are no longer than so many points, about: they are wrapped before they are laid out."""
    most = max(int(points / (0.51 * size)), least)
    return [part for line in text.split("\n") for part in textwrap.wrap(line, most)]


def _extent(canvas: Axes) -> tuple[float, float]:
    """Width and height of axes in points."""
    box = canvas.get_window_extent()
    points = 72.0 / canvas.figure.dpi
    return max(box.width * points, 1.0), max(box.height * points, 1.0)


def _title(canvas: Axes, text: str, small: bool = False) -> None:
    width, _ = _extent(canvas)
    title = canvas.set_title("", loc="left", fontsize="small" if small or width < 230.0 else "medium")
    _literal(title)
    text = text.replace("n = ", "n\u00a0=\u00a0")
    title.set_text(text if small else "\n".join(_wrapped(text, width, float(title.get_fontsize()), 16)))


def _labels(canvas: Axes, x: str, y: str) -> None:
    for axis, text, length in zip((canvas.xaxis, canvas.yaxis), (x, y), _extent(canvas), strict=True):
        _literal(axis.label)
        axis.set_label_text("\n".join(_wrapped(text, length, float(axis.label.get_fontsize()), 10)))


def _heighten(canvas: Axes, top: float, number: int) -> None:
    """From 0 to the top of all curves and a legend above them; never lower than it was for those before."""
    lines = [
        line
        for line in canvas.lines
        if line.get_gid() in (_CURVE, _KEY)
        or (line.get_gid() != _NAMELESS and not str(line.get_label()).startswith("_"))
    ]
    lines.sort(key=lambda line: line.get_gid() != _CURVE)  # curves, then what dots and dotted lines are
    taken = _legend(canvas, lines, columns=(1,) if len(lines) <= 4 else (2, 1), handlelength=3.0)
    top = max(top / (1.0 - taken), canvas.get_ylim()[1] if number else 0.0)
    _widen(canvas, "y", 0.0, top if top > 0.0 else 1.0)


def _legend(
    canvas: Axes,
    handles: Sequence[Artist],
    *,
    columns: tuple[int, ...] = (1,),
    loc: Literal["upper left", "lower right"] = "upper left",
    **options: Any,
) -> float:
    """Draw a legend of these artists; return the part of the axes' height that it takes, and a bit more.

    It has the first number of `columns` that is not wider than the axes, or the last one. One that is too
    large for the axes makes a figure of ours taller, and else gets a smaller font.
    """
    from matplotlib.font_manager import FontProperties

    names = [str(handle.get_label()) for handle in handles]

    def drawn(count: int, size: float) -> tuple[float, float]:
        """Width and height, in points."""
        legend = canvas.legend(
            handles,
            ["name"] * len(names),  # one that begins with an underscore would be left out
            loc=loc,
            ncols=count,
            fontsize=size,
            title_fontsize=size,
            framealpha=0.85,
            edgecolor="none",
            facecolor=canvas.get_facecolor(),
            **options,
        )
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(name)
            _literal(text)
        _literal(legend.get_title())
        points = 72.0 / canvas.figure.dpi
        box = legend.get_window_extent()
        return box.width * points + size, box.height * points + size

    size = float(FontProperties(size="small").get_size_in_points())
    wide, tall, count = 0.0, 0.0, 1
    room = _extent(canvas)
    for count in columns:
        wide, tall = drawn(count, size)
        if wide <= room[0]:
            break
    missing = 72.0 * _LEAST * _font_scale() - (room[1] - tall)
    figure: Any = canvas.figure
    if figure.get_gid() == _OURS and missing > 0.0:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height * (1.0 + missing / room[1]))
        room = _extent(canvas)
    smaller = min(room[0] / wide, _FULL * room[1] / tall)
    if smaller < 1.0:
        _, tall = drawn(count, max(size * smaller, 1.0))
    return min(tall / room[1], 0.8)


def _name(line: Line2D, label: str | None) -> None:
    """Mark a curve as ours; after it was added, as axes would name one of an empty name themselves."""
    line.set_gid(_NAMELESS if label is None else _CURVE)
    if label is not None:
        line.set_label(label)


def _curves(canvas: Axes) -> list[Line2D]:
    return [line for line in canvas.lines if line.get_gid() in (_CURVE, _NAMELESS)]


def _next_style(canvas: Axes) -> tuple[dict[str, Any], int]:
    """Colour, dashes and markers for the next curve, and how many are there; the 26th is as the first."""
    number = len(_curves(canvas))
    color, dashes = _STYLES[number % len(_STYLES)]
    marker = _MARKERS[number // len(_STYLES) % len(_MARKERS)]
    return {
        "color": color,
        "linestyle": dashes,
        "marker": marker,
        "markersize": 5.0,
        "markevery": 0.12 if marker else None,
    }, number
