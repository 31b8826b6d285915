"""A lower bound for the calibration error; it assumes nothing about the calibration function (THEORY 3)."""

from __future__ import annotations

import math

import numpy as np

from calcore.bounds import excess, minimise
from calcore.certificates.bins import Running
from calcore.kernels.binning import equal_mass_cuts
from calcore.kernels.deviations import binomial_noise

# Up to this many bins the noise of the binned error is paid by a union over its signs, above by its
# expectation. A rule by the number of bins alone: it must not depend on scores or labels.
_UNION_BINS = 64


def binned_lower(running: Running, delta: float, brier: float) -> float:
    """Best over numbers of bins of the binned error less its noise and its deviation.

    The numbers are 1, 2, 4, ... up to n / 4 and 2 sqrt(n), and the smaller of n / 4 and 8 sqrt(n).

    Bins of equal mass carry errors A_B = sum(s - y); ``T = sum |A_B|``, and ``tau = (T - K) / n``. With L
    nats and ``phi = e^t - 1 - t``, outside an event of probability delta,

    * ``CE >= (exp(t tau - t^2 / 8 - L / n) - 1) / (e^t - 1)`` for all t > 0,
    * ``CE >= (exp(t tau - L / n) - 1 - phi c brier) / t`` for all t > 0, with
      ``c = e^(phi / 4) (1 + t / 4)``.

    Up to 64 bins K = 0 and ``L = ln(J / delta) + m ln 2``; above, ``L = ln(J / delta)`` and K is the sum of
    E|Bin(n_B, mean score) - n_B mean score|: no bin's E|A_B| exceeds its true error by more.

    Parameters
    ----------
    running : Running
        Totals over cells of scores; any grouping of rows into cells gives the same guarantee.
    delta : float
        Error probability of this bound.
    brier : float
        Upper bound of the population's E(S - Y)^2, which holds outside another event.

    Returns
    -------
    float
        The lower bound, 0 if nothing can be said.
    """
    passed = running.rows
    n = int(passed[-1])
    last = max(1, min(n // 4, 8 * math.isqrt(n)))
    counts = [2**j for j in range(min(last, 2 * math.isqrt(n)).bit_length())]
    if counts[-1] < last:  # errors that change their sign from score to score
        counts.append(last)
    best = 0.0
    for count in counts:
        cuts = equal_mass_cuts(passed, count, 0, 1)
        if cuts.size - 1 > count:  # heavy cells stand alone; half as many bins never exceed the count
            cuts = equal_mass_cuts(passed, max(1, count // 2), 0, 1)
        rows, score = np.diff(passed[cuts]), np.diff(running.scores[cuts])
        error = float(np.abs(score - np.diff(running.positives[cuts])).sum())
        if error / n <= best:  # the bound will be less than this
            continue
        nats = math.log(len(counts)) - math.log(delta)
        if count <= _UNION_BINS:
            nats += count * math.log(2.0)
        else:
            mean = np.clip(score / rows, 0.0, 1.0)
            error -= binomial_noise(rows.astype(np.float64), mean)
        if error / n > best:  # which is more than the bound will be
            best = max(best, _least_error(error / n, n, nats, brier))
        if cuts.size == passed.size:
            break
    return min(best, 1.0)


def _least_error(tau: float, n: int, nats: float, brier: float) -> float:
    """The larger of the two inequalities of `binned_lower`, each at its best t."""
    if tau <= 0.0:
        return 0.0
    cost = nats / n
    if tau * tau <= min(brier, 0.5) * cost:  # nothing, or next to nothing, is left of either
        return 0.0

    def bounded(log_t: float) -> float:
        t = math.exp(log_t)
        return -math.expm1(t * tau - t * t / 8.0 - cost) / math.expm1(t)

    def bernstein(log_t: float) -> float:
        t = math.exp(log_t)
        phi = excess(t)
        return (phi * math.exp(phi / 4.0) * (1.0 + t / 4.0) * brier - math.expm1(t * tau - cost)) / t

    search = 0.5 * math.log(cost) - 1.0, math.log(5.0)
    return max(-minimise(bounded, *search), -minimise(bernstein, *search))
