"""Binned errors without their noise: Laplace transforms of |c - K| for a binomial K (THEORY 2.2 to 2.4)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

Floats = NDArray[np.float64]

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_NEGLIGIBLE = 1e-13
"""Part of a sum below which a term ends it."""

_ROUNDING = 1e-12
"""Relative error of a psi, with room to spare."""

ATOM = 0.468824
"""No value of a sum of independent 0/1 variables of variance v has more than ATOM / sqrt(v) of its mass."""

FIRST = 0.04
"""Oscillation up to which the loss is bounded by its slope."""


@jit
def _stirling(n: float) -> float:
    """``ln n! - ((n + 1/2) ln n - n + ln(2 pi) / 2)``: what Stirling's formula leaves out."""
    if n < 16.0:
        return math.lgamma(n + 1.0) - ((n + 0.5) * math.log(n) - n + _HALF_LOG_2PI)
    m = 1.0 / (n * n)
    return (1.0 / 12.0 - m * (1.0 / 360.0 - m * (1.0 / 1260.0 - m * (1.0 / 1680.0 - m / 1188.0)))) / n


@jit
def _deviance(k: float, mean: float) -> float:
    """``k ln(k / mean) + mean - k``, without cancellation where k is near the mean."""
    if abs(k - mean) < 0.1 * (k + mean):
        v = (k - mean) / (k + mean)
        total = (k - mean) * v
        term = 2.0 * k * v
        for j in range(1, 40):
            term *= v * v
            before = total
            total += term / (2.0 * j + 1.0)
            if total == before:
                break
        return total
    return k * math.log(k / mean) + mean - k


@jit
def log_binomial(n: float, k: float, p: float) -> float:
    """``ln P(K = k)`` for K binomial, 0 < p < 1, in Loader's form: no difference of large numbers."""
    if k == 0.0:
        return n * math.log1p(-p)
    if k == n:
        return n * math.log(p)
    log = _stirling(n) - _stirling(k) - _stirling(n - k)
    log -= _deviance(k, n * p) + _deviance(n - k, n * (1.0 - p))
    return log + 0.5 * (math.log(n / k) - math.log(n - k)) - _HALF_LOG_2PI


@jit
def psi(n: float, c: float, lam: float, p: float) -> tuple[float, float]:
    """``-ln E exp(-lam |c - K|) / lam`` for K ~ Bin(n, p), 0 < p < 1, and its derivative in p.

    The terms of the sum are log-concave in k. From one near the largest, whose logarithm is known, the ratios
    of neighbours lead outwards until the rest, a geometric series at most, does not count; it is added, so
    that rounding apart psi is not above the truth. The derivative is ``-E[h (K - n p)] / (p q lam E h)``.
    """
    q = 1.0 - p
    up, down = math.exp(lam), math.exp(-lam)
    mode = float(math.floor((n + 1.0) * (p * up / (q + p * up))))
    if mode > c:
        mode = float(max(math.floor((n + 1.0) * (p / (p + q * up))), math.floor(c)))
    mode = min(max(mode, 0.0), n)
    total, moment = _side(n, c, lam, p / q, up, down, mode)
    # counted from the other end, the terms below the mode are those above it
    below, away = _side(n, n - c, lam, q / p, up, down, n - mode)
    total += 1.0 + below
    log = log_binomial(n, mode, p) - lam * abs(c - mode) + math.log(total)
    return -log / lam, -((mode - n * p) + (moment - away) / total) / (p * q * lam)


@jit
def _side(
    n: float, c: float, lam: float, odds: float, up: float, down: float, mode: float
) -> tuple[float, float]:
    """Sum of the terms above `mode`, that of it being 1, and of each times its distance from `mode`."""
    total, moment, term, k = 0.0, 0.0, 1.0, mode
    for part in range(3):
        if part == 0:  # up to the last whole number <= c the exponential grows
            end, factor = min(math.floor(c), n), odds * up
        elif part == 1:  # the step across c
            end, factor = (
                min(math.floor(c) + 1.0, n),
                odds * math.exp(-lam * (2.0 * (math.floor(c) - c) + 1.0)),
            )
        else:
            end, factor = n, odds * down
        while k < end:
            ratio = (n - k) / (k + 1.0) * factor
            term *= ratio
            k += 1.0
            total += term
            moment += term * (k - mode)
            if term < _NEGLIGIBLE * (1.0 + total) and ratio < 0.999999:
                return total + term * ratio / (1.0 - ratio), moment
    return total, moment


@jit
def _line(
    n: float, c: float, lam: float, kappa: float, p: float, slope: float, at: float
) -> tuple[float, float]:
    """``kappa psi(p) + slope (p - at)`` and its derivative; at 0 and 1, where K is a constant, too."""
    if p <= 0.0:
        value, rise = c, -(n / lam) * (math.exp(lam * (min(c, 1.0) - max(1.0 - c, 0.0))) - 1.0)
    elif p >= 1.0:
        value, rise = n - c, (n / lam) * (math.exp(lam * (min(n - c, 1.0) - max(1.0 - n + c, 0.0))) - 1.0)
    else:
        value, rise = psi(n, c, lam, p)
    return kappa * value + slope * (p - at), kappa * rise + slope


@jit
def least_on(
    n: float,
    c: float,
    lam: float,
    kappa: float,
    low: float,
    high: float,
    slope: float,
    at: float,
    guess: float,
    tolerance: float,
) -> float:
    """Lower bound of the least ``kappa psi(p) + slope (p - at)`` on [low, high], to `tolerance`.

    psi is convex in p: two tangents, of which one falls and one rises, meet below the function.
    """
    p = min(max(guess, low), high)
    value, rise = _line(n, c, lam, kappa, p, slope, at)
    best = value
    left, at_left, fall = low, 0.0, 1.0  # no falling tangent yet
    right, at_right, climb = high, 0.0, -1.0
    step = max(abs(p - at), 0.5 / n) * 0.25
    for _ in range(200):
        if rise == 0.0 or (p == low and rise > 0.0) or (p == high and rise < 0.0):
            return value
        if rise < 0.0:
            left, at_left, fall = p, value, rise
        else:
            right, at_right, climb = p, value, rise
        if fall <= 0.0 and climb >= 0.0:
            meet = left + (at_right - at_left - climb * (right - left)) / (fall - climb)
            under = at_left + fall * (meet - left)
            if best - under <= tolerance:
                return under
            p = left + (right - left) * (fall / (fall - climb))
            if not left < p < right:
                p = 0.5 * (left + right)
                if not left < p < right:
                    return under
        elif fall <= 0.0:
            p = min(right, p + step)
            step *= 4.0
        else:
            p = max(left, p - step)
            step *= 4.0
        value, rise = _line(n, c, lam, kappa, p, slope, at)
        best = min(best, value)
    # Not met in practice; the tangents are valid wherever they were drawn.
    under = best
    if fall <= 0.0:
        under = at_left + fall * (right - left)
    if climb >= 0.0:
        under = min(under, at_right - climb * (right - left))
    return under


@jit
def zetas(
    n: Floats,
    c: Floats,
    spread: Floats,
    lo: Floats,
    hi: Floats,
    lam: float,
    kappa: float,
    a: float,
    guess: Floats,
    precision: float,
) -> Floats:
    """Lower bounds of ``inf_p kappa psi(p) + (a/2) n p (1 - p) - D(p)``, one for each bin.

    Parameters
    ----------
    n, c : (b,) arrays
        Rows, and sum of their scores.
    spread : (b,) array
        At least the sum of |s - mean score|.
    lo, hi : (b,) arrays
        Smallest and largest score.
    guess : (b,) array
        Where the infimum may be, as a distance from the mean score.
    precision : float
        Tolerated gap, in standard deviations of the number of positives.

    Notes
    -----
    ``D(p) = n |mean - p| + spread (1 - |mean - p| / w)_+`` is at least the sum of |s - p|, w the distance
    from the mean to the end of the scores on p's side. p (1 - p) is replaced by its chord on either side of
    the mean. Both are linear on four pieces.
    """
    out = np.empty(n.size)
    for j in range(n.size):
        rows, total = n[j], c[j]
        mean = min(max(total / rows, lo[j]), hi[j])
        tolerance = precision * math.sqrt(rows * mean * (1.0 - mean)) + 1e-9
        best = math.inf
        for side in range(2):
            # side 0: p above the mean; side 1: below, seen from the other end
            m = mean if side == 0 else 1.0 - mean
            k = total if side == 0 else rows - total
            wide = min(hi[j] if side == 0 else 1.0 - lo[j], 1.0)
            if m >= 1.0:
                continue
            # (a/2) n p (1-p) >= (a/2) n m (1 - p) for p >= m
            level = 0.5 * a * rows * m * (1.0 - m)
            slope = -0.5 * a * rows * m - rows
            inner = max(wide, m)
            if inner > m:
                # on [m, wide]: - spread (1 - (p - m) / w)
                pull = spread[j] / (inner - m)
                value, rise = _line(rows, k, lam, kappa, inner, slope + pull, m)
                low = value
                if rise > 0.0:
                    low = least_on(
                        rows, k, lam, kappa, m, inner, slope + pull, m, 0.5 * (m + inner), tolerance
                    )
                best = min(best, low + level - spread[j])
            value = least_on(rows, k, lam, kappa, inner, 1.0, slope, m, m + guess[j], tolerance)
            best = min(best, value + level)
        if hi[j] > lo[j] and (mean <= lo[j] or mean >= hi[j]):  # by rounding
            best -= spread[j]
        out[j] = best - _ROUNDING * (kappa * rows + abs(best)) - 1e-15 * kappa / lam
    return out


@jit
def atom_mass(v: float) -> float:
    """Integral from 0 to v of min(1, ATOM / sqrt((t - 1/2)_+)) dt: the largest atoms on the way, at most."""
    corner = 0.5 + ATOM * ATOM
    if v <= corner:
        return v
    return corner + 2.0 * ATOM * (math.sqrt(v - 0.5) - ATOM)


@jit
def _below(n: float, mean: float, lam: float, kappa: float, p: float) -> float:
    return (kappa - 1.0) * n * (mean - p) - kappa * n / lam * (math.log1p(p * math.expm1(lam)) - lam * p)


@jit
def _above(n: float, mean: float, lam: float, kappa: float, p: float) -> float:
    return (kappa - 1.0) * n * (p - mean) - kappa * n / lam * (math.log1p(p * math.expm1(-lam)) + lam * p)


@jit
def any_law(n: float, mean: float, lam: float, kappa: float, level: float) -> tuple[float, float, float]:
    """Lower bound of ``kappa psi - n |mean - p|`` for all sums of n independent 0/1 variables of mean n p.

    First its least value over p, then the ends of an interval of p outside which it is at least `level` >= 0.
    It comes from ``E exp(-lam |A|) <= min(E exp(-lam A), E exp(lam A))``, convex on either side of the mean.
    """
    bottom = min(max(kappa / lam - 1.0 / math.expm1(lam), 0.0), mean)
    least = min(_below(n, mean, lam, kappa, bottom), 0.0)
    low, inside = 0.0, bottom
    if _below(n, mean, lam, kappa, 0.0) > level:
        for _ in range(40):
            p = 0.5 * (low + inside)
            if _below(n, mean, lam, kappa, p) > level:
                low = p
            else:
                inside = p
    top = max(min(-1.0 / math.expm1(-lam) - kappa / lam, 1.0), mean)
    least = min(least, _above(n, mean, lam, kappa, top))
    high, inside = 1.0, top
    if _above(n, mean, lam, kappa, 1.0) > level:
        for _ in range(40):
            p = 0.5 * (high + inside)
            if _above(n, mean, lam, kappa, p) > level:
                high = p
            else:
                inside = p
    return least, low, high


@jit
def losses(
    n: Floats,
    mean: Floats,
    spread: Floats,
    zeta: Floats,
    ends: Floats,
    lam: float,
    kappa: float,
    a: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], Floats]:
    """What oscillation inside a bin can take off zeta, besides the spread of eta itself (THEORY 2.4).

    Returns
    -------
    one : (b, g) array
        Where the spread is charged as n o / 2: loss for an oscillation up to ``ends[g]``.
    two : (b, g) array
        Where it is charged as ``n g(o)``, the form for small probabilities.
    slope : (b,) array
        For oscillations o up to ``ends[0]`` the first is at most ``slope o^2``, too.
    """
    one, two, slope = np.empty((n.size, ends.size)), np.empty((n.size, ends.size)), np.empty(n.size)
    u = -math.expm1(-lam)
    for j in range(n.size):
        rows, s = n[j], mean[j]
        over = max(zeta[j] + spread[j], 0.0)
        floor, low, high = any_law(rows, s, lam, kappa, over)  # any law is good enough beyond low and high
        reach = rows * max(s - low, high - s)
        most = rows * (0.25 if low < 0.5 < high else max(low * (1.0 - low), high * (1.0 - high)))
        least = rows * min(low * (1.0 - low), high * (1.0 - high))
        log_tail = -lam * math.sqrt(reach * reach + most)  # of E h
        cap = zeta[j] - floor + spread[j]
        for g in range(ends.size):
            lost = min(0.25 * rows * ends[g] * ends[g], most)  # of the variance
            v = max(least, lost)
            mass = atom_mass(v) - atom_mass(v - lost)
            loss = kappa / lam * math.log1p(u * mass * math.exp(-log_tail)) + 0.5 * a * lost
            if g == 0:
                steep = min(1.0, ATOM / math.sqrt(max(v - lost - 0.5, 1e-300)))
                slope[j] = 0.25 * rows * (kappa * u / lam * steep * math.exp(-log_tail) + 0.5 * a)
            one[j, g] = min(loss, cap)
            two[j, g] = min(spread[j] + loss, cap)
    return one, two, slope


@jit
def priced(
    n: Floats,
    mean: Floats,
    one: NDArray[np.float64],
    two: NDArray[np.float64],
    slope: Floats,
    ends: Floats,
    reach: Floats,
    multiplier: float,
    joint: bool,
) -> float:
    """Bound of the sum over bins of ``sup over 0 <= o <= reach of (H(o) - multiplier o)_+``.

    H is the loss `one` alone or, `joint`, the smaller of ``n o / 2 + one`` and ``n g(o) + two``. Losses
    increase with o: between two `ends` the one at the right end stands for all.
    """
    total = 0.0
    for j in range(n.size):
        half = 0.5 * n[j] if joint else 0.0
        c = min(mean[j], 1.0 - mean[j])
        best, left = 0.0, 0.0
        for g in range(ends.size):
            if left >= reach[j]:
                break
            right = min(ends[g], reach[j])
            at = right if half > multiplier else left
            gain = (half - multiplier) * at + one[j, g]
            if g == 0:
                gain = min(gain, right * max(half - multiplier + slope[j] * right, 0.0))
            if joint:
                at = left  # where the concave n g(o) - multiplier o is largest
                if multiplier < half:
                    at = right
                    if multiplier > 0.0:
                        at = min(max(c * math.sqrt(2.0 * n[j] / multiplier), left), right)
                share = 0.5 * at if at <= 2.0 * c else 2.0 * c * (1.0 - c / at)
                gain = min(gain, n[j] * share - multiplier * at + two[j, g])
            best = max(best, gain)
            left = right
        total += best
    return total


@jit
def tail_log(x: float) -> float:
    """``ln P(Z > x)`` of a standard normal Z."""
    if x < 30.0:
        return math.log(0.5 * math.erfc(x / math.sqrt(2.0)))
    return -0.5 * x * x - math.log(x) - _HALF_LOG_2PI


@jit
def _log_ratio(scale: float, x: float) -> float:
    """Logarithm of the ratio of the parts of ``E exp(-scale |x + Z|)`` with Z above and below -x."""
    return tail_log(scale - x) - tail_log(scale + x) - 2.0 * scale * x


@jit
def gaussian_zeta(scale: float, kappa: float) -> tuple[float, float]:
    """``inf_x -kappa ln E exp(-scale |x + Z|) / scale - |x|`` for a standard normal Z, and that x.

    For planning. The two parts of ``E exp(-scale |x + Z|)`` have the ratio (kappa + 1) / (kappa - 1) there.
    """
    goal = math.log((kappa + 1.0) / (kappa - 1.0))
    low, high = 0.0, 1.0
    while _log_ratio(scale, high) < goal:
        low, high = high, 2.0 * high
    while high - low > 2e-3 * high:
        x = 0.5 * (low + high)
        if _log_ratio(scale, x) < goal:
            low = x
        else:
            high = x
    plus = 0.5 * scale * scale - scale * high + tail_log(scale - high)
    minus = 0.5 * scale * scale + scale * high + tail_log(scale + high)
    return -kappa / scale * (plus + math.log1p(math.exp(minus - plus))) - high, high


@jit
def calibrated_zetas(
    deviation: Floats, kappa: Floats, a: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """About zeta of an atom whose positives have that standard deviation, less (a/2) times their variance.

    By kappa and deviation, with the distance of the infimum from the mean, in rows. Below 16 expected
    positives the law is that of rare events, else normal: for planning, where precision does not matter.
    """
    values, places = np.empty((kappa.size, deviation.size)), np.empty((kappa.size, deviation.size))
    for i in range(kappa.size):
        for j in range(deviation.size):
            lam = kappa[i] * a
            value, x = gaussian_zeta(lam * deviation[j], kappa[i])
            values[i, j], places[i, j] = value * deviation[j], x * deviation[j]
            mean = deviation[j] * deviation[j]
            if mean < 16.0:
                n = 1e4
                p = mean / n
                above = least_on(n, mean, lam, kappa[i], p, 1.0, -n, p, p + places[i, j] / n, 1e-2)
                below = least_on(
                    n, n - mean, lam, kappa[i], 1.0 - p, 1.0, -n, 1.0 - p, 1.0 - p + places[i, j] / n, 1e-2
                )
                values[i, j] = min(above, below)
    return values, places
