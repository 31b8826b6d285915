"""The certificate by total variation denoising: fit on some folds, test on the other (THEORY 5.1)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore.bounds import dkw, empirical_bernstein
from calcore.certificates.bound import Bound
from calcore.certificates.folds import Folds, mean_over_folds
from calcore.kernels import folds as split
from calcore.kernels import taut_string
from calcore.table import ScoreTable


class Shares(NamedTuple):
    """Parts of a fold's delta; fixed in advance."""

    fit: float
    transfer: float
    test: float


SHARES = Shares(0.5, 0.375, 0.125)

_AS_GOOD_AS_NONE = 1e15
"""Of larger variations the bound is far above 1 too, and what adds up to it stays finite."""


def penalty(n: int, n_distinct: int, delta: float) -> float:
    """The lam of ``1/(2 n) sum (y - v)^2 + lam sum |v_{i+1} - v_i|`` that drowns the noise.

    ``sqrt(ln(4 (m - 1) / delta) / (8 n))`` for m distinct scores among n rows; 0 for one.
    """
    if n_distinct < 2:
        return 0.0
    return math.sqrt((math.log(4.0 * (n_distinct - 1)) - math.log(delta)) / (8.0 * n))


def fit_error(n: int, n_distinct: int, variation: float, delta: float) -> float:
    """Bound of the mean over the n training rows of |fit - eta|, with probability 1 - delta.

    ``sqrt(2 lam V + ln(4 / delta) / (2 n))``, a bound of the root of the mean square.
    """
    mean = (math.log(4.0) - math.log(delta)) / (2.0 * n)
    return math.sqrt(2.0 * penalty(n, n_distinct, delta) * variation + mean)


def tv_upper(
    table: ScoreTable, variation: float, delta: float, n_folds: int, generator: np.random.Generator
) -> Bound:
    """Upper bound of the calibration error of a calibration function of total variation <= `variation`.

    For each fold: the labels of the other rows, by score, are denoised, and the fit f is compared with the
    scores of the fold. ``CE <= E|f(S) - S| + E|f(S) - eta(S)|``; the first mean is bounded by its value on
    the fold (``plug_in``) and an empirical Bernstein bound (``deviation``), the second by its value at the
    training scores (``denoising``) and the step from them to the population (``transfer``).

    Parameters
    ----------
    delta : float
        Error probability of all folds together.

    Notes
    -----
    O(n) per fold. 28 bytes a row beside the table.
    """
    variation = min(variation, _AS_GOOD_AS_NONE)
    keys = table.keys
    counts, positives = np.empty((2, len(keys)), np.int64)
    room = np.empty(len(keys))

    def of_fold(folds: Folds, fold: int, delta: float) -> Bound:
        m = int(split.training_groups(keys, folds, fold, counts, positives))
        n = int(counts[:m].sum())
        fitted = room[:m]
        lam = n * penalty(n, m, SHARES.fit * delta)
        if lam > 0.0:
            taut_string.of_counts(_lent(counts[:m]), _lent(positives[:m]), min(lam, float(n)), fitted)
        else:
            fitted[:] = positives[0] / n
        rows, mean, squares = split.validation_error(keys, folds, fold, fitted)
        spread = float(squares) / max(int(rows) - 1, 1)
        wiggle = variation + float(split.variation(fitted))
        return Bound(
            {
                "plug_in": mean,
                "denoising": fit_error(n, m, variation, SHARES.fit * delta),
                "deviation": empirical_bernstein(spread, float(rows), SHARES.test * delta),
                "transfer": wiggle * dkw(float(n), SHARES.transfer * delta),
            }
        )

    return mean_over_folds(len(keys), n_folds, generator, delta, of_fold)


def _lent(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """A read-only view, of which compiled loops see one type."""
    view = array.view()
    view.flags.writeable = False
    return view
