"""Exact total variation denoising on a line, in linear time: the taut string through a tube.

Minimise ``1/2 sum w_i (y_i - v_i)^2 + lam * sum |v_{i+1} - v_i|``. The *path* goes through the points
``(X_i, Y_i)``, the sums of w and of w y over the first i rows. The solution v is the slope of the shortest
line from (0, 0) to (X_n, Y_n) that is at most lam above or below the path at every X_i with 0 < i < n (Davies
and Kovac 2001, Annals of Statistics 29(1); the line less the path is the dual variable).

**Corners.** Where the path bends up (y_i < y_{i+1}) only the upper boundary can touch the line, where it
bends down only the lower one: between two rows there is one corner of one kind, or none. (To treat it as one
of the other kind too does no harm.)

**Funnel.** From the last point of the line that is certain, the *apex*, two chains run along the boundaries,
the upper one convex, the lower one concave (Lee and Preparata 1984: shortest paths in a polygon). A new
corner takes off the end of its own chain what it makes slack. If that is all of the chain, and the corner
lies beyond the first edge of the other chain, this edge is a piece of the line and its end the new apex. The
lower chain is kept upside down, so that both are convex and one piece of code serves both.

**Time: O(n) in the worst case, whatever the data and lam.** Every corner is put on a chain once, the
last one of a block on both. A turn of an inner loop of `_pull` takes a corner off a chain for ever, from the
end of its own or from the front of the other; so all turns together are no more than corners put on, and each
of the two loops adds one failed test per corner. Chains that reach the end of their room are moved to its
beginning, after room for as many corners again was made if less than half is free: amortised O(1). A pass of
`_thin` costs O(1) per corner and is repeated only if it dropped a quarter: at most four times the corners in
all. Every row is summed once and written once. Memory: a constant, and the corners on the chains (a few
hundred on noisy data, at most n).

**Thinning** only saves time. In a stretch of X no longer than ``2 lam / (max y - min y)`` drop the upper
corners on or above the chord of two upper corners that stay, and the lower ones on or below one of two lower
corners that stay. The shortest line for what is left also respects what was dropped, so it is the line of
all. For its slopes are within [min y, max y]: the piece with the largest slope begins at the start or on the
upper boundary and ends at the end or on the lower one, so its slope is at most the mean of y over it. Take
an upper corner that was dropped. If the line touches a lower corner of the stretch, it is lam below the path
there and moves against the path by at most (max y - min y) times the length, 2 lam, so it is at most lam
above the path at ours. If it touches none, it is convex in the stretch, and below both ends of the chord, so
below the chord. A pass without branches drops what is on or above the chord of its two neighbours, which
never is a corner of the convex hull of the stretch; repeated, nine in ten corners of noisy data, in a
fraction of the time that the chains need for them.

**Rounding.** X and Y are double-double sums (exact addition: Knuth, volume 2, 4.2.2), so that differences are
off by 2^-53 of themselves and 2^-103 of the total. Sums of labels are exact, and so is every comparison of
corners on one boundary while n^2 < 2^53; lam comes in only beside the apex. A comparison decided wrongly is a
tie up to rounding: it bends the tube by so much. The value of a piece is the quotient of two such
differences: the mean of its rows plus -2, -1, 0, 1 or 2 times lam over their weight, two roundings away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

Floats = NDArray[np.float64]
Places = NDArray[np.uint32]

BLOCK = 8192
"""Rows whose corners are found, thinned and put on the chains at once: 400 KiB, in the L2 cache."""

X, X_LOW, Y, Y_LOW, ROW, SHIFT, EDGE, RISE = range(8)
"""Fields of a point of a block (the first four), of an origin (five) and of a corner on a chain."""

UPPER, LOWER = range(2)
FRONT, BACK = range(2)


@jit
def _minus(a: float, a_low: float, b: float, b_low: float) -> float:
    return (a - b) + (a_low - b_low)


@jit
def _label_corners(labels: NDArray[np.uint8], last: Any, points: Floats, where: Places) -> Any:
    """Corners of labels 0/1 of weight 1, after a row with label `last`: where the label changes.

    ``points[:, i]`` is the point before row i, from the beginning of the block. X is there already; Y is set
    where it is needed, at corners and at the end. ``where[UPPER]`` and ``where[LOWER]`` become the places of
    corners in order; returned are their numbers and the last label.
    """
    changes = where[UPPER]
    first = last
    found = 0
    for i in range(labels.size):
        label = np.int64(labels[i])
        changes[found] = i
        found += label != last
        last = label
    value: Any = first
    y: Any = 0
    before: Any = 0
    for j in range(found):
        place = np.int64(changes[j])
        y += value * (place - before)
        before, value = place, 1 - value
        points[Y, place] = y
    points[Y, labels.size] = y + value * (labels.size - before)
    for j in range(1 - first, found, 2):  # from 1 to 0
        where[LOWER, j // 2] = changes[j]
    for j in range(first, found, 2):
        changes[j // 2] = changes[j]
    upper = (found + 1 - first) // 2
    return upper, found - upper, last


@jit
def _count_corners(
    counts: NDArray[np.int64], positives: NDArray[np.int64], last: float, points: Floats, where: Places
) -> Any:
    """Corners of groups of labels: where the rate of positives changes. All points are set."""
    upper = 0
    lower = 0
    x = y = 0.0
    for i in range(counts.size):
        rate = positives[i] / counts[i]
        where[UPPER, upper] = i
        where[LOWER, lower] = i
        upper += rate > last
        lower += rate < last
        last = rate
        points[X, i] = x
        points[Y, i] = y
        x += counts[i]
        y += positives[i]
    points[X, counts.size] = x
    points[Y, counts.size] = y
    return upper, lower, last


@jit
def _row_corners(
    values: Floats,
    weights: Floats,
    scale: float,
    middle: float,
    heft: float,
    least: float,
    last: float,
    points: Floats,
    where: Places,
) -> Any:
    """Corners of rows of any values. All points are set; without a last value it is NaN."""
    upper = 0
    lower = 0
    x = x_low = y = y_low = 0.0
    for i in range(values.size):
        mass = weights[i] * heft if weights.size else 1.0
        heavy = mass > least
        value = values[i] * scale - middle if heavy else last
        step = mass * value if heavy else 0.0
        mass = mass if heavy else 0.0
        where[UPPER, upper] = i
        where[LOWER, lower] = i
        upper += value > last
        lower += value < last
        last = value
        points[X, i] = x
        points[X_LOW, i] = x_low
        points[Y, i] = y
        points[Y_LOW, i] = y_low
        total = x + mass
        part = total - x
        x_low += (x - (total - part)) + (mass - part)
        x = total
        total = y + step
        part = total - y
        y_low += (y - (total - part)) + (step - part)
        y = total
    points[X, values.size] = x
    points[X_LOW, values.size] = x_low
    points[Y, values.size] = y
    points[Y_LOW, values.size] = y_low
    return upper, lower, last


@jit
def _thin(points: Floats, places: Places, count: int, sign: float, length: float, chunk: int) -> int:
    """Drop corners on or above (sign -1: below) the chord of their neighbours; return how many are left.

    Only within chunks of so many corners that reach no farther than `length`.
    """
    kept = 0
    for begin in range(0, count - 1, chunk):
        end = min(begin + chunk, count - 1)
        a = places[begin]
        places[kept] = a
        kept += 1
        if points[X, places[end]] - points[X, a] > length:
            for j in range(begin + 1, end):
                places[kept] = places[j]
                kept += 1
            continue
        b = places[begin + 1]
        x, y = points[X, b], points[Y, b]
        edge, rise = x - points[X, a], y - points[Y, a]
        for j in range(begin + 2, end + 1):
            c = places[j]
            next_edge, next_rise = points[X, c] - x, points[Y, c] - y
            places[kept] = b
            kept += sign * (next_rise * edge - rise * next_edge) > 0.0
            b, edge, rise = c, next_edge, next_rise
            x, y = points[X, c], points[Y, c]
    places[kept] = places[count - 1]
    return kept + 1


@jit
def _thinned(points: Floats, places: Places, count: int, sign: float, length: float, span: float) -> int:
    """Thin while half of `length` holds eight corners and a quarter of them goes; `span`: X of the block."""
    while True:
        chunk = count if 0.5 * length >= span else int(0.5 * length / span * count)
        if chunk < 8:
            return count
        kept = _thin(points, places, count, sign, length, chunk)
        if 4 * kept > 3 * count:
            return kept
        count = kept


@jit
def _pull(
    points: Floats,
    where: Places,
    upper: int,
    lower: int,
    end: int,
    origin: Floats,
    lam: float,
    chains: Floats,
    ends: NDArray[np.int64],
    frame: Floats,
    out: Floats,
) -> None:
    """Put the corners of a block on the chains in the order of X; write the pieces of line that are certain.

    ``chains[side, ends[FRONT, side] : ends[BACK, side] + 1]`` is a chain, apex first. Heights are those of
    the path, negative on the lower chain; SHIFT is how much farther out than the chain's boundary the
    point lies: 0; -lam or -2 lam for an apex in the middle or on the other boundary; -lam for the end of the
    path, the upper corner at place `end` (negative if the path goes on). EDGE and RISE lead to a corner from
    the one before.
    """
    base_x, base_x_low, base_y, base_y_low = origin[X], origin[X_LOW], origin[Y], origin[Y_LOW]
    where[UPPER, upper] = BLOCK + 1  # no more
    where[LOWER, lower] = BLOCK + 1
    taken = 0
    for count in range(upper + lower):
        side: Any = np.int64(where[LOWER, count - taken] < where[UPPER, taken])
        place = where[LOWER, count - taken] if side else where[UPPER, taken]
        taken += 1 - side
        other = 1 - side
        sign = 1.0 - 2.0 * side
        shift = -lam if place == end else 0.0

        x = base_x + points[X, place]
        part = x - base_x
        x_low = ((base_x - (x - part)) + (points[X, place] - part)) + (base_x_low + points[X_LOW, place])
        y = base_y + points[Y, place]
        part = y - base_y
        y_low = ((base_y - (y - part)) + (points[Y, place] - part)) + (base_y_low + points[Y_LOW, place])
        y *= sign
        y_low *= sign

        k = ends[BACK, side]
        edge = _minus(x, x_low, chains[side, k, X], chains[side, k, X_LOW])
        rise = _minus(y, y_low, chains[side, k, Y], chains[side, k, Y_LOW]) + (shift - chains[side, k, SHIFT])
        while k > ends[FRONT, side] and chains[side, k, RISE] * edge >= rise * chains[side, k, EDGE]:
            k -= 1
            edge = _minus(x, x_low, chains[side, k, X], chains[side, k, X_LOW])
            rise = _minus(y, y_low, chains[side, k, Y], chains[side, k, Y_LOW]) + (
                shift - chains[side, k, SHIFT]
            )

        if k == ends[FRONT, side]:
            g = ends[FRONT, other]
            while (
                g < ends[BACK, other]
                and chains[other, g + 1, RISE] * edge + rise * chains[other, g + 1, EDGE] <= 0.0
            ):
                slope = -sign * chains[other, g + 1, RISE] / chains[other, g + 1, EDGE]
                value = min(max((frame[0] + slope) * frame[1], frame[2]), frame[3])
                for row in range(int(chains[other, g, ROW]), int(chains[other, g + 1, ROW])):
                    out[row] = value
                g += 1
                edge = _minus(x, x_low, chains[other, g, X], chains[other, g, X_LOW])
                rise = _minus(y, y_low, -chains[other, g, Y], -chains[other, g, Y_LOW]) + (shift + 2.0 * lam)
            if g > ends[FRONT, other]:
                ends[FRONT, other] = g
                chains[side, k, X] = chains[other, g, X]
                chains[side, k, X_LOW] = chains[other, g, X_LOW]
                chains[side, k, Y] = -chains[other, g, Y]
                chains[side, k, Y_LOW] = -chains[other, g, Y_LOW]
                chains[side, k, ROW] = chains[other, g, ROW]
                chains[side, k, SHIFT] = -2.0 * lam

        k += 1
        ends[BACK, side] = k
        chains[side, k, X] = x
        chains[side, k, X_LOW] = x_low
        chains[side, k, Y] = y
        chains[side, k, Y_LOW] = y_low
        chains[side, k, ROW] = origin[ROW] + place
        chains[side, k, SHIFT] = shift
        chains[side, k, EDGE] = edge
        chains[side, k, RISE] = rise
    if end >= 0:
        for k in range(ends[FRONT, UPPER] + 1, ends[BACK, UPPER] + 1):
            slope = chains[UPPER, k, RISE] / chains[UPPER, k, EDGE]
            value = min(max((frame[0] + slope) * frame[1], frame[2]), frame[3])
            for row in range(int(chains[UPPER, k - 1, ROW]), int(chains[UPPER, k, ROW])):
                out[row] = value


@jit
def _room(chains: Floats, ends: NDArray[np.int64], count: int) -> Floats:
    """Return chains that begin at 0 and can take `count` more corners each."""
    needed = count + 1 + max(ends[BACK, 0] - ends[FRONT, 0], ends[BACK, 1] - ends[FRONT, 1])
    moved = chains
    if 2 * needed > chains.shape[1]:
        moved = np.empty((2, 2 * needed, 8))
    for side in range(2):
        first = ends[FRONT, side]
        for k in range(ends[BACK, side] - first + 1):
            for field in range(8):
                moved[side, k, field] = chains[side, first + k, field]
        ends[BACK, side] -= first
        ends[FRONT, side] = 0
    return moved


@jit
def _absorb(
    points: Floats,
    where: Places,
    upper: int,
    lower: int,
    size: int,
    origin: Floats,
    lam: float,
    length: float,
    chains: Floats,
    ends: NDArray[np.int64],
    frame: Floats,
    out: Floats,
) -> Floats:
    """Thin the corners of a block of `size` rows, put them on the chains, move the origin behind them.

    The last corner goes on both chains: it may lie far from the other boundary, but it is a point of it, and
    on long stretches that bend one way it lets the apex move on, which keeps the chains short.
    """
    upper = _thinned(points, where[UPPER], upper, 1.0, length, points[X, size])
    lower = _thinned(points, where[LOWER], lower, -1.0, length, points[X, size])
    if upper > 0 and (lower == 0 or where[LOWER, lower - 1] < where[UPPER, upper - 1]):
        where[LOWER, lower] = where[UPPER, upper - 1]
        lower += 1
    elif lower > 0:
        where[UPPER, upper] = where[LOWER, lower - 1]
        upper += 1
    if max(ends[BACK, UPPER], ends[BACK, LOWER]) + upper + lower + 2 > chains.shape[1]:
        chains = _room(chains, ends, upper + lower + 1)
    end = -1
    if origin[ROW] + size == out.size:
        end = size
        where[UPPER, upper] = end
        upper += 1
    _pull(points, where, upper, lower, end, origin, lam, chains, ends, frame, out)
    for axis in (X, Y):
        total = origin[axis] + points[axis, size]
        part = total - origin[axis]
        low = (origin[axis] - (total - part)) + (points[axis, size] - part)
        origin[axis] = total
        origin[axis + 1] += low + points[axis + 1, size]
    origin[ROW] += size
    return chains


@jit
def _start(lam: float) -> Any:
    """Points and places of a block, an origin, chains that hold the start of the path, and their ends."""
    points = np.zeros((4, BLOCK + 1))
    for i in range(BLOCK + 1):
        points[X, i] = i
    where = np.empty((2, BLOCK + 3), np.uint32)
    chains = np.empty((2, 3 * BLOCK, 8))
    chains[:, 0, :] = 0.0
    chains[:, 0, SHIFT] = -lam
    return points, where, np.zeros(5), chains, np.zeros((2, 2), np.int64)


@jit
def of_labels(labels: NDArray[np.uint8], lam: float, out: Floats) -> None:
    """Solve for labels 0/1 of weight 1; 0 < lam <= number of rows.

    Sums are whole numbers: a value is (positives plus or minus 0, 1 or 2 lam) / rows, up to two roundings.

    Examples
    --------
    >>> out = np.empty(4)
    >>> of_labels(np.array([0, 1, 1, 0], np.uint8), 0.25, out)
    >>> out
    array([0.25, 0.75, 0.75, 0.25])
    """
    points, where, origin, chains, ends = _start(lam)
    frame = np.array((0.0, 1.0, 0.0, 1.0))
    last = np.int64(labels[0])
    for row in range(0, labels.size, BLOCK):
        block = labels[row : row + BLOCK]
        upper, lower, last = _label_corners(block, last, points, where)
        chains = _absorb(
            points, where, upper, lower, block.size, origin, lam, 2.0 * lam, chains, ends, frame, out
        )


@jit
def of_counts(counts: NDArray[np.int64], positives: NDArray[np.int64], lam: float, out: Floats) -> None:
    """Solve for labels 0/1 of weight 1 that come as groups with one value each, e.g. all rows of one score.

    `counts` (at least 1) and `positives` say how many rows and ones there are in each group; `lam` is as for
    single rows, 0 < lam <= number of rows; `out` gets one value per group. Sums are whole numbers here too.

    Examples
    --------
    Scores .1, .5, .5 with labels 0, 1, 1: two groups.

    >>> out = np.empty(2)
    >>> of_counts(np.array([1, 2]), np.array([0, 2]), 0.2, out)
    >>> out
    array([0.2, 0.9])
    """
    points, where, origin, chains, ends = _start(lam)
    frame = np.array((0.0, 1.0, 0.0, 1.0))
    last = np.nan
    for row in range(0, counts.size, BLOCK):
        block = counts[row : row + BLOCK]
        upper, lower, last = _count_corners(block, positives[row : row + BLOCK], last, points, where)
        chains = _absorb(
            points, where, upper, lower, block.size, origin, lam, 2.0 * lam, chains, ends, frame, out
        )


@jit
def of_rows(
    values: Floats,
    weights: Floats,
    least: float,
    lam: float,
    low: float,
    high: float,
    scale: float,
    heft: float,
    out: Floats,
) -> None:
    """Solve for any values and weights; an empty `weights` stands for weight 1.

    Rows of weight up to `least` get the value of the row before them, or behind them at the beginning. `low`
    and `high`, low < high, are the extremes of the others. Values times `scale` are at most 2, weights times
    `heft` at most 1; both factors are powers of two. `least` and `lam` are in these units; lam is at least
    2^-1000, and at most the total weight times the range.

    Examples
    --------
    >>> out = np.empty(2)
    >>> of_rows(np.array([0.0, 1.0]), np.array([1.0, 3.0]), 0.0, 0.3, 0.0, 1.0, 1.0, 1.0, out)
    >>> out.round(12)
    array([0.3, 0.9])
    """
    points, where, origin, chains, ends = _start(lam)
    middle = 0.5 * (low * scale + high * scale)
    length = 2.0 * lam / (high * scale - low * scale)
    frame = np.array((middle, 1.0 / scale, low, high))
    last = np.nan
    for row in range(0, values.size, BLOCK):
        block = values[row : row + BLOCK]
        upper, lower, last = _row_corners(
            block, weights[row : row + BLOCK], scale, middle, heft, least, last, points, where
        )
        chains = _absorb(
            points, where, upper, lower, block.size, origin, lam, length, chains, ends, frame, out
        )


@jit
def optimality(values: Floats, weights: Floats, solution: Floats, lam: float) -> Any:
    """Objective of a solution, its duality gap, how far its dual variable is outside the tube, range of all.

    The dual variable u_i is the sum of w (v - y) over the first i rows. The gap is the sum of ``lam |d_i| -
    u_i d_i``, d_i = v_{i+1} - v_i: no cancellation. u must be within [-lam, lam], and 0 at the end.
    """
    objective = gap = outside = 0.0
    total = low = 0.0
    least, greatest = np.inf, -np.inf
    for i in range(values.size):
        value = solution[i]
        if i > 0:
            step = value - solution[i - 1]
            dual = total + low
            objective += lam * abs(step)
            gap += lam * abs(step) - dual * step
            outside = max(outside, abs(dual) - lam)
        misfit = value - values[i]
        pull = misfit * weights[i] if weights.size else misfit
        objective += 0.5 * pull * misfit
        more = total + pull
        part = more - total
        low += (total - (more - part)) + (pull - part)
        total = more
        least = min(least, value, values[i])
        greatest = max(greatest, value, values[i])
    return objective, gap, max(outside, abs(total + low)), greatest - least
