"""Calibration error without bins: by kernels, by smoothing, by cumulative differences; and an exact test.

`kernel_ce` and `smooth_ece` measure, `ecce` measures and tests, `calibration_test` tests. All of them
describe a sample: no confidence interval is attached (`certify` has that).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, optimize

from calcore import _validate
from calcore.kernels import binning, resampling, residuals, sorting
from calcore.smoothing import PARTS, WINDOWS, Window, mean_error, nadaraya_watson, sorted_rows
from calcore.table import CellTable, ScoreTable, tabulate
from calcore.table.given import given

__all__ = ["CalibrationTest", "Ecce", "calibration_test", "ecce", "kernel_ce", "smooth_ece"]

Rng = int | np.random.Generator | np.random.SeedSequence | None
Statistic = Literal["kuiper", "ks", "ece"]
Doubles: TypeAlias = NDArray[np.float64]

_dct: Any = fft.dct  # what SciPy's annotations say of these three is too wide to be used
_dst: Any = fft.dst
_brentq: Any = optimize.brentq

_LEAST_BANDWIDTH = 2.0**-30
"""Scores much nearer to each other are as good as equal: 1e-9 is a rounding error of scores."""

_FINE, _COARSE = 128, 16
"""Cells per bandwidth of a smoothed residual."""

_MOST_CELLS = 2**22
"""32 MiB for each of half a dozen arrays."""

_COARSEST = 4
"""Cells per bandwidth below which nothing is computed."""

_SPAN = 64.0
"""Largest bandwidth over smallest that one set of cells serves."""

_REACH = 9.0
"""Bandwidths from its centre at which a Gaussian has ended: 2 Q(9) = 2e-19 of it lies further out."""

_GRID_ERROR = 0.01
"""Bound of the error from cells, relative to the value, above which rows are sorted instead."""

_MOST_RESAMPLES = 10**6
_CHUNKS = 32
"""Groups of resamples that threads share out. Each resample has a seed of its own: the number of groups does
not matter to the result."""


def kernel_ce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    bandwidth: float | None = None,
    window: Window = "gaussian",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    n_threads: int | None = None,
) -> float:
    """Kernel calibration error: how far local averages of the labels are from the scores.

    ``sum_i w_i abs(m(s_i) - s_i) / sum_i w_i`` with m the Nadaraya–Watson estimate of the labels, as
    `nadaraya_watson` computes it. Use it to describe one sample; its value depends on the bandwidth
    (`kernel_ce_curve` shows how much), and noise makes it positive for a calibrated model too.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    bandwidth : float, optional
        b > 0, in units of the score. Default: Silverman's rule of thumb, which looks at scores only,
        ``0.9 min(sd, iqr / 1.349) n^(-1/5)``, of the n rows with weight > 0, whatever their weight; with sd
        (divisor n) alone if the quartiles, the ceil(n/4)-th and ceil(3n/4)-th smallest scores, are equal;
        and at least 2^-30.
    window : {"gaussian", "epanechnikov", "box"}, default "gaussian"
    sample_weight : array_like of shape (n,), optional
        Finite weights w >= 0, not all 0; default 1 each. With a given bandwidth, integer weights are repeated
        rows.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels, scores, weights or the bandwidth break their rules; the message names argument, rule, value
        and index.

    Notes
    -----
    Equal scores have one estimate, so ties need no rule. Windows are closed. Errors are those of
    `nadaraya_watson`. One sort, then about O(n); a Gaussian much narrower than most gaps between scores is
    summed row by row, which takes longer where some scores crowd.

    References
    ----------
    Silverman, Density Estimation for Statistics and Data Analysis (1986), section 3.4.2: the rule of thumb.
    It was made for densities; it is used here because it does not look at labels.

    Examples
    --------
    >>> kernel_ce([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], bandwidth=0.01)  # means .5 and .5
    0.25
    >>> kernel_ce([1, 0, 1, 0, 0], [0.4] * 5)
    0.0
    """
    rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
    b = None if bandwidth is None else _validate.positive_number(bandwidth, "bandwidth")
    _validate.choice(window, "window", WINDOWS)
    threads = _validate.threads(n_threads, PARTS)
    if sample_weight is None:
        s, y = sorted_rows(rows)
        return mean_error(s, y, _rule_of_thumb(s) if b is None else b, window, threads)
    masses = _validate.weights(sample_weight, len(rows))
    kept = masses > 0.0
    if not kept.any():
        raise ValueError("sample_weight must not be all zero")
    labels, scores, _ = rows.block(0, len(rows))
    labels, scores, masses = labels[kept], scores[kept], masses[kept]
    masses = masses / masses.max()
    if b is None:
        b = _rule_of_thumb(np.sort(scores))
    smooth = nadaraya_watson(scores, labels, b, window=window, sample_weight=masses, n_threads=n_threads)
    return min(1.0, float(np.abs(smooth - scores) @ masses / masses.sum()))


def _rule_of_thumb(s: Doubles) -> float:
    """Bandwidth for ascending scores."""
    n = len(s)
    middle = float(s[-(-3 * n // 4) - 1] - s[-(-n // 4) - 1])
    spread = float(np.std(s - s[0]))
    if middle > 0.0:
        spread = min(spread, middle / 1.34)
    return max(0.9 * spread / math.pow(n, 0.2), _LEAST_BANDWIDTH)


# --- smooth calibration error ------------------------------------------------------------------------------


class _Residuals(NamedTuple):
    """Sums of y - s at ascending places, of n rows in all."""

    n: int
    places: Doubles
    sums: Doubles
    firsts: Doubles
    """Sum of (y - s) (s - place) at each place; empty if rows stand exactly where they are."""
    gross: float
    """No smoothed residual is larger."""
    spread: float
    """Sum of at most abs(y - s) (s - place)^2."""


def smooth_ece(
    y_true: ArrayLike | ScoreTable | CellTable, y_prob: ArrayLike | None = None, *, pos_label: Any = None
) -> float:
    """Smooth calibration error, smECE: residuals y - s, smoothed with a bandwidth that they choose.

    With the Gaussian of standard deviation sigma that is reflected at 0 and 1 as kernel K,

        smECE_sigma = integral over t in [0, 1] of abs((1/n) sum_i K(t, s_i) (y_i - s_i)),

    and smECE is the sigma for which ``smECE_sigma = sigma``: value and bandwidth are one number. Use it as a
    single measure without bins or settings, which changes little if scores change little. It is at least half
    the distance to the nearest calibrated predictor and at most twice the root of that distance.

    Parameters
    ----------
    y_true : array_like of shape (n,), ScoreTable or CellTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. Or one table, alone.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    float
        In [abs(mean(y) - mean(s)), mean(abs(y - s))], so in [0, 1].

    Raises
    ------
    ValueError
        If labels or scores break their rules, or a table is empty.
    TypeError
        If an argument is given beside a table.

    Notes
    -----
    The solution is unique, as smECE_sigma does not increase with sigma. The order of rows does not matter, to
    the last bit; ties need no rule.

    The kernel is diagonal in cosines: ``K(t, s) = 1 + 2 sum_k exp(-(pi k sigma)^2 / 2) cos(pi k t) cos(pi k
    s)``. Mean cosines of the residuals come from the first four moments of cells of width h <= sigma / 128 by
    fast transforms, and the integral from the values and integrals of the smoothed residual at their ends, as
    parabolas that are integrated between their roots. With M = mean(abs(y - s)) the error is at most

        M ((h / (2 sigma))^4 / sqrt(24) + (h / sigma)^3 sqrt(6) / 96) <= 1.3e-8 M

    (Taylor's remainder; the Peano kernel of cubic Hermite interpolation; E abs(He_k(Z)) <= sqrt(k!)), besides
    rounding; usually some 1e-11. Gaps between scores of more than 18 bandwidths are cut. Results so small
    that more than 2^22 cells would be needed have an error up to M (h / sigma)^3 / 32, and below 2^-20 one up
    to their size.

    Rows in a CellTable, which more than a million rows are put in (see `certify`), add ``.484 sum_i abs(y_i -
    s_i) (s_i - c_i)^2 / (n sigma^2)`` at most, c_i the mean score of a cell. That is for the worst signs; for
    10^7 calibrated rows with uniform scores it is .1 % of the result, and the error was 1e-6 of it. Where the
    bound exceeds 1 %, rows are sorted; a CellTable of your own is taken as it is.

    O(n), for sorting O(n log n), and ten to twenty transforms of 2^13 to 2^22 numbers.

    References
    ----------
    Błasiok, Nakkiran, Smooth ECE: principled reliability diagrams via kernel smoothing, ICLR 2024 (arXiv
    2309.12236), sections 3 and 4. Their package, relplot 1.0.3, rounds scores to a grid, cuts the kernel at a
    distance of 1/2 and looks for sigma in steps of 2^-10: values differed by up to .001, and by .005 for a
    sigma of .24.

    Examples
    --------
    >>> smooth_ece([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])  # one score: abs(.75 - .5)
    0.25
    >>> smooth_ece([0, 1], [0.5, 0.5])
    0.0
    """
    source = given(y_true, y_prob, pos_label=pos_label)
    if not isinstance(source, _validate.Rows):
        return _fixed_point(_residuals(source))[0]
    value, error = _fixed_point(_residuals(tabulate(source)))
    if error > _GRID_ERROR * value:
        value, _ = _fixed_point(_residuals(ScoreTable.from_rows(source)))
    return value


def _residuals(table: ScoreTable | CellTable) -> _Residuals:
    none = np.empty(0)
    if isinstance(table, ScoreTable):
        distinct = int(sorting.count_distinct(table.keys))
        places, sums = np.empty(distinct), np.empty(distinct)
        residuals.pool_residuals(table.keys, places, sums)
        return _Residuals(table.n, places, sums, none, float(np.abs(sums).sum()), 0.0)
    n, k, s, lo, hi = table.cells()
    hits, squares = table.second_moments()
    places = np.clip(s / n, lo, hi)
    several = lo < hi
    sums = np.where(several, k - s, k - n * lo)
    firsts = np.where(several, hits - squares - places * sums, 0.0)
    most = np.where(several, np.maximum(s - 2.0 * hits + k, 0.0), np.abs(sums))
    width = hi - lo
    spread = np.minimum(most * width * width, np.maximum(squares - places * s, 0.0))
    return _Residuals(table.n, places, sums, firsts, float(most.sum()), float(spread[several].sum()))


def _fixed_point(given: _Residuals) -> tuple[float, float]:
    """The bandwidth that is the integral under it, and how much the places of rows in cells may change it.

    The integral does not grow with the bandwidth b, so the solution lies between b and the integral under b.
    Coarse cells find it up to a factor of two, fine ones to the last digits. `turned` is an end that was
    passed: if other cells say that the solution is on its other side, it is the solution, up to their error.
    """
    least = min(1.0, abs(float(given.sums.sum())) / given.n)
    most = min(1.0, given.gross / given.n)
    low, high = least, most
    finer = True
    while high > 2.0 * low and finer:
        smoothed = _Smoothed(given, max(low, high / _SPAN), high, _COARSE)
        floor, finer = smoothed.least, smoothed.finer
        while high > 2.0 * max(low, floor):
            b = math.sqrt(max(low, floor) * high)
            norm = smoothed.norm(b)
            low, high = (max(low, b), min(high, norm)) if norm > b else (max(low, norm), b)
    low, turned = max(low, 0.5 * high), -1.0
    while high > low:
        smoothed = _Smoothed(given, low, high, _FINE)
        low = smoothed.least
        if smoothed.norm(low) <= low:
            if low in (least, turned):
                high = low
            elif smoothed.finer:  # coarse cells were wrong
                turned, low, high = low, max(least, 0.5 * low), low
            else:
                high = low
        elif smoothed.norm(high) >= high:
            if high in (most, turned):
                low = high
            else:
                turned, low, high = high, high, min(most, 2.0 * high)
        else:
            high = float(_brentq(smoothed.excess, low, high, xtol=1e-18, rtol=1e-14))
            break
    return high, 0.484 * (given.spread / high) / high / given.n if given.spread > 0.0 else 0.0


class _Smoothed:
    """Smoothed residuals for bandwidths from `least` to `most`."""

    __slots__ = ("_m", "_means", "_waves", "finer", "least")

    def __init__(self, given: _Residuals, least: float, most: float, fineness: int) -> None:
        reach = _REACH * most
        length = float(residuals.shortened(given.places, reach))
        self._m = m = min(_MOST_CELLS, 1 << math.ceil(math.log2(max(fineness * length / least, 16.0))))
        self.least = min(most, max(least, _COARSEST * length / m))
        self.finer = self.least == least
        """Whether bandwidths below `least` can be asked for, with other cells."""
        sums = np.zeros((residuals.DEGREES, m))
        residuals.moments(given.places, given.sums, given.firsts, reach, length, sums)
        used = min(m - 1, math.ceil(_REACH * length / (math.pi * self.least)))
        self._waves = np.arange(used + 1) * math.pi
        turn = self._waves / m
        even = [_dct(row, type=2)[: used + 1] for row in sums[::2]]
        odd = [np.concatenate([[0.0], _dst(row, type=2)[:used]]) for row in sums[1::2]]
        means = even[0] - turn * odd[0] - turn**2 / 2.0 * even[1] + turn**3 / 6.0 * odd[1]
        self._means = means / (2.0 * given.n)
        self._waves /= length

    def norm(self, bandwidth: float) -> float:
        """Integral of the absolute smoothed residual."""
        m, used = self._m, len(self._means)
        damped = self._means * np.exp(-0.5 * (self._waves * bandwidth) ** 2)
        waves = np.zeros(m + 1)
        waves[:used] = damped
        values = _dct(waves, type=1)
        slopes = np.zeros(m - 1)
        slopes[: used - 1] = damped[1:] / (np.arange(1, used) * (math.pi / m))
        means = np.diff(_dst(slopes, type=1), prepend=0.0, append=0.0) + damped[0]
        areas = np.empty(m)
        residuals.absolute_areas(values, means, areas)
        return float(areas.mean())

    def excess(self, bandwidth: float) -> float:
        return self.norm(bandwidth) - bandwidth


# --- cumulative differences --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Ecce:
    """Cumulative calibration errors and their p-values; from `ecce`.

    Attributes
    ----------
    ks : float
        Largest absolute cumulative difference, in units of the score (Kolmogorov–Smirnov; ECCE-MAD).
    kuiper : float
        Largest less smallest cumulative difference (Kuiper; ECCE-R); from `ks` to twice that.
    ks_p_value, kuiper_p_value : float
        Of the hypothesis that the scores are the probabilities of the labels. Asymptotic.
    scale : float
        Standard deviation of the last cumulative difference under this hypothesis.
    n : int
        Rows.
    """

    ks: float
    kuiper: float
    ks_p_value: float
    kuiper_p_value: float
    scale: float
    n: int

    def to_dict(self) -> dict[str, float | int]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"Ecce(ks={self.ks:.4g} (p={self.ks_p_value:.2g}), "
            f"kuiper={self.kuiper:.4g} (p={self.kuiper_p_value:.2g}), n={self.n})"
        )


def ecce(
    y_true: ArrayLike | ScoreTable | CellTable, y_prob: ArrayLike | None = None, *, pos_label: Any = None
) -> Ecce:
    """Empirical cumulative calibration errors: differences of labels and scores, summed by ascending score.

    ``C_j = (1/n) sum_{i <= j} (y_i - s_i)`` with rows by ascending score, and C_0 = 0. The slope of C over an
    interval of scores is the miscalibration there, so no bins are needed. Use them to see whether there is
    miscalibration at all; `calibration_test` has p-values that are exact for small samples too.

    Parameters
    ----------
    y_true : array_like of shape (n,), ScoreTable or CellTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. Or one table, alone.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    Ecce
        ``ks = max_j abs(C_j)``, ``kuiper = max_j C_j - min_j C_j``, with j = 0 included, and p-values.

    Raises
    ------
    ValueError
        If labels or scores break their rules, or a table is empty.
    TypeError
        If an argument is given beside a table.

    Notes
    -----
    Ties: C is looked at only after all rows of a score, so the order of rows does not matter. (In a CellTable
    only after all rows of a cell, which may miss what C does inside it.)

    ``scale = sqrt(sum_i s_i (1 - s_i)) / n``. If the scores are the probabilities of independent labels, C /
    scale goes to Brownian motion on [0, 1] as n grows, in that time scale. So with x = ks / scale, r = kuiper
    / scale and Q(x) = P(Z > x), p-values are

        P(max abs(B) >= x) = 4 sum_{k>=0} (-1)^k Q((2k + 1) x)
            = 1 - (4/pi) sum_{k>=0} (-1)^k / (2k + 1) exp(-(2k + 1)^2 pi^2 / (8 x^2)),
        P(max B - min B >= r) = 8 sum_{k>=1} (-1)^(k-1) k Q(k r)
            = 1 - 8 sum_{k>=0} (1/r^2 + 1/((2k + 1)^2 pi^2)) exp(-(2k + 1)^2 pi^2 / (2 r^2)),

    the first of each for large x and r, the second for small ones: relative errors below 1e-13, down to
    1e-300. They are approximations for many rows of middling scores. Where sum_i s_i (1 - s_i) is small, as
    for a few rows or rare events, sums have longer tails than the normal law and p-values may be far too
    small: one row of score .01 and label 1 has a p-value of 5e-23. `calibration_test` is exact. If all scores
    are 0 or 1, scale is 0, and p-values are 1 if every label equals its score, else 0.

    Sums are compensated; labels are counted. O(n log n); O(cells) for a CellTable.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, Metrics of calibration for probabilistic predictions, JMLR 23
    (2022; arXiv 2205.09680), sections 2 and 3, for scores that are distinct. Feller, The asymptotic
    distribution of the range of sums of independent random variables, Ann. Math. Stat. 22 (1951).

    Examples
    --------
    >>> result = ecce([1, 0, 0, 1], [0.25, 0.25, 0.5, 0.75])  # C = 0, .125, 0, .0625
    >>> result.ks, result.kuiper
    (0.125, 0.125)
    >>> round(result.scale * 4, 6)  # sqrt(3 * 3/16 + 1/4)
    0.901388
    """
    source = given(y_true, y_prob, pos_label=pos_label)
    table = ScoreTable.from_rows(source) if isinstance(source, _validate.Rows) else source
    n = table.n
    if isinstance(table, ScoreTable):
        low, high, variance = map(float, residuals.cumulative_extremes(table.keys))
    else:
        cells = table.cells()
        _, squares = table.second_moments()
        sums = residuals.running_sums(
            np.where(cells.lo < cells.hi, cells.k - cells.s, cells.k - cells.n * cells.lo)
        )
        low, high = min(0.0, float(sums.min())), max(0.0, float(sums.max()))
        inside = np.where(cells.lo < cells.hi, cells.s - squares, cells.n * (cells.lo * (1.0 - cells.lo)))
        variance = float(np.maximum(inside, 0.0).sum())
    ks, kuiper, scale = max(high, -low), high - low, math.sqrt(variance)
    return Ecce(
        ks=ks / n,
        kuiper=kuiper / n,
        ks_p_value=_p_value(ks, scale, _largest_exceeds),
        kuiper_p_value=_p_value(kuiper, scale, _range_exceeds),
        scale=scale / n,
        n=n,
    )


def _p_value(value: float, scale: float, exceeds: Callable[[float], float]) -> float:
    if scale == 0.0:
        return 1.0 if value == 0.0 else 0.0
    return exceeds(value / scale)


def _normal_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _largest_exceeds(x: float) -> float:
    """P(max abs(B) >= x) of Brownian motion on [0, 1]."""
    if x >= 1.0:
        return 4.0 * sum((-1.0) ** k * _normal_tail((2 * k + 1) * x) for k in range(6))
    if x < 0.1:
        return 1.0
    return 1.0 - 4.0 / math.pi * sum(
        (-1.0) ** k / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8.0) for k in range(4)
    )


def _range_exceeds(r: float) -> float:
    """P(max B - min B >= r) of Brownian motion on [0, 1]."""
    if r >= 2.0:
        return 8.0 * sum((-1.0) ** (k - 1) * k * _normal_tail(k * r) for k in range(1, 8))
    if r < 0.1:
        return 1.0
    odd = [((2 * k + 1) * math.pi) ** 2 for k in range(5)]
    return 1.0 - 8.0 * sum((1.0 / (r * r) + 1.0 / q) * math.exp(-q / (2.0 * r * r)) for q in odd)


# --- test by simulation ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationTest:
    """A test of perfect calibration; from `calibration_test`.

    Attributes
    ----------
    p_value : float
        Of the hypothesis that labels are independent, each positive with its score as probability. Valid for
        every sample size.
    value : float
        The statistic of the labels given, in units of the score.
    statistic : str
        Its name.
    n_resamples : int
        Simulated sets of labels that it was compared with.
    n : int
        Rows.
    n_bins : int or None
        Bins of "ece".
    """

    p_value: float
    value: float
    statistic: str
    n_resamples: int
    n: int
    n_bins: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"CalibrationTest(p={self.p_value:.4g}, {self.statistic}={self.value:.4g}, n={self.n})"


def calibration_test(
    y_true: ArrayLike | ScoreTable,
    y_prob: ArrayLike | None = None,
    *,
    statistic: Statistic = "kuiper",
    n_resamples: int = 999,
    n_bins: int = 15,
    rng: Rng = 0,
    pos_label: Any = None,
    n_threads: int | None = None,
) -> CalibrationTest:
    """Test whether the scores can be the probabilities of the labels, by drawing labels from the scores.

    Use it to decide whether a model is perfectly calibrated. Of large samples even useful models fail: how
    *far* they are from it is for `certify`.

    Parameters
    ----------
    y_true : array_like of shape (n,) or ScoreTable
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`. Or one table, without `y_prob`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    statistic : {"kuiper", "ks", "ece"}, default "kuiper"
        Of `ecce`, or the expected calibration error in `n_bins` bins [j / n_bins, (j + 1) / n_bins).
    n_resamples : int, default 999
        B sets of labels, at most 10^6. The smallest possible p-value is 1 / (B + 1).
    n_bins : int, default 15
        For "ece" only.
    rng : int, Generator, SeedSequence or None, default 0
        A seed gives the same draws at every call; None fresh ones; a Generator is advanced.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    CalibrationTest

    Raises
    ------
    ValueError
        If labels, scores or an option break their rules, or a table is empty.
    TypeError
        If an argument is of the wrong kind, or given beside a table.

    Notes
    -----
    ``p_value = (1 + #{T* >= T}) / (B + 1)``, where T* are the statistics of B sets of labels drawn from the
    scores. Under the hypothesis the T* and T are exchangeable, so P(p_value <= a) <= a for every a, and = a
    if ties of the statistic have probability 0 and a (B + 1) is whole. T and T* come from one loop over
    integer counts, so that labels equal to those given have an equal statistic, to the last bit.

    A label is drawn with 64 random bits: its probability is below the score by less than 2^-64. Each
    resample has a generator of its own (xoshiro256++), seeded from `rng`. Rows of one score are drawn
    together, 64 at a time, if there are 12 or more.

    Ties: running sums are looked at after all rows of a score. O(B n) time for distinct scores, about 5 ns
    for each of these on one thread; 8 bytes per distinct score and thread.

    References
    ----------
    Phipson, Smyth, Permutation p-values should never be zero, Stat. Appl. Genet. Mol. Biol. 9 (2010).
    Consistency resampling: Bröcker, Smith, Increasing the reliability of reliability diagrams, Weather and
    Forecasting 22 (2007). Blackman, Vigna, Scrambled linear pseudorandom number generators, ACM TOMS 47
    (2021).

    Examples
    --------
    >>> calibration_test([0, 1] * 50, [0.5] * 100).p_value
    1.0
    >>> calibration_test([1] * 100, [0.5] * 100).p_value
    0.001
    """
    _validate.choice(statistic, "statistic", ("kuiper", "ks", "ece"))
    draws = _validate.whole_number(n_resamples, "n_resamples", low=1)
    if draws > _MOST_RESAMPLES:
        raise ValueError(f"n_resamples must be at most 10^6; got {draws}")
    bins = _validate.bin_count(n_bins)
    generator = _validate.generator(rng)
    threads = _validate.threads(n_threads)
    source = given(y_true, y_prob, pos_label=pos_label)
    if isinstance(source, CellTable):
        raise TypeError("y_true must hold single rows, which a CellTable does not keep: pass a ScoreTable")
    table = ScoreTable.from_rows(source) if isinstance(source, _validate.Rows) else source

    scores, counts, positives = table.scores, table.counts, table.positives
    kind = {"ks": resampling.KS, "kuiper": resampling.KUIPER, "ece": resampling.ECE}[statistic]
    expected = residuals.running_sums(_validate.read_only(counts * scores))
    ends = np.empty(0, np.int64)
    if statistic == "ece":
        index = binning.uniform_bins(scores, bins)
        ends = np.append(np.flatnonzero(np.diff(index)) + 1, len(scores))
    ends, expected = _validate.read_only(ends), _validate.read_only(expected)
    thresholds = _validate.read_only(_thresholds(scores))
    seeds = generator.integers(1, 2**64, (draws, 4), dtype=np.uint64)

    def reached(part: NDArray[np.uint64]) -> tuple[int, float]:
        with np.errstate(over="ignore"):  # sums of words wrap around, which matters to uncompiled code only
            count, distance = resampling.count_reached(
                thresholds, counts, positives, expected, ends, kind, _validate.read_only(part)
            )
        return int(count), float(distance)

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(reached, np.array_split(seeds, min(_CHUNKS, draws))))
    total, observed = sum(count for count, _ in found), found[0][1]
    return CalibrationTest(
        p_value=(1 + total) / (1 + draws),
        value=observed / table.n,
        statistic=statistic,
        n_resamples=draws,
        n=table.n,
        n_bins=bins if statistic == "ece" else None,
    )


def _thresholds(scores: Doubles) -> NDArray[np.uint64]:
    """Scores times 2^64, in whole numbers."""
    thresholds = np.full(len(scores), resampling.ALWAYS)
    inner = scores < 1.0
    thresholds[inner] = np.ldexp(scores[inner], 64).astype(np.uint64)
    return thresholds


# --- what they share ---------------------------------------------------------------------------------------
