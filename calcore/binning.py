"""Which bin each score is in: bins of equal width, and bins of about equally many rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import binning


def uniform_bins(y_prob: ArrayLike, n_bins: int = 15) -> NDArray[np.int64]:
    """Bins of equal width: bin j is [j / n_bins, (j + 1) / n_bins), the last one closed.

    Parameters
    ----------
    y_prob : array_like of shape (n,)
        Scores in [0, 1].
    n_bins : int, default 15
        At least 1.

    Returns
    -------
    ndarray of int64, shape (n,)
        The bin of each score, 0, ..., n_bins - 1.

    Raises
    ------
    ValueError
        If scores break their rule or `n_bins` is no whole number >= 1.

    Notes
    -----
    Edges are the doubles nearest to j / n_bins, and scores are compared with them: .3 is in bin 3 of 10, and
    .29 in bin 29 of 100, although ``int(.29 * 100)`` is 28.

    Examples
    --------
    >>> uniform_bins([0.0, 0.29, 0.3, 1.0], 10)
    array([0, 2, 3, 9])
    """
    count = _validate.bin_count(n_bins)
    return binning.uniform_bins(_validate.scores(y_prob), count)


def quantile_bins(y_prob: ArrayLike, n_bins: int = 15) -> NDArray[np.int64]:
    """Bins of about n / n_bins rows each; equal scores are always in one bin.

    Bin after bin closes at the first score with j / n_bins of the rows at or below it, as in `calcore.ece`
    with ``strategy="quantile"``. So a score held by many rows makes its bin larger and others vanish, and the
    bins depend on nothing but scores.

    Parameters
    ----------
    y_prob : array_like of shape (n,)
        Scores in [0, 1].
    n_bins : int, default 15
        At least 1.

    Returns
    -------
    ndarray of int64, shape (n,)
        The bin of each score. Bins are numbered 0, 1, ..., by ascending score; none is empty, and there are
        at most `n_bins`: exactly min(n, n_bins) if scores are distinct.

    Raises
    ------
    ValueError
        If scores break their rule or `n_bins` is no whole number >= 1.

    Notes
    -----
    O(n log n). Certificates cut cells of scores by a rule of their own, which lets heavy scores stand alone.

    Examples
    --------
    >>> quantile_bins([0.1, 0.2, 0.2, 0.2, 0.7, 0.9], 3)
    array([0, 0, 0, 0, 1, 1])
    """
    count = _validate.bin_count(n_bins)
    scores = _validate.scores(y_prob)
    ordered = np.sort(scores)
    n = len(ordered)
    marks = np.unique(-(-np.arange(1, count + 1) * n // count))
    lasts = ordered[marks - 1]  # the score at which bin j closes, or a tie of it
    return np.searchsorted(np.unique(lasts), scores)
