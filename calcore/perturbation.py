"""Randomly perturbed scores: a smooth calibration function for any classifier, at a small loss of ranking.

A certificate with ``perturbed=h`` is about the perturbed score. The deployed model must perturb too.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calcore import _validate
from calcore.kernels import ranks, sorting
from calcore.results import Interval
from calcore.table import CellTable, ScoreTable
from calcore.table.given import given

Rng = int | np.random.Generator | np.random.SeedSequence | None

_BLOCK = 65_536


def perturb(y_prob: ArrayLike, width: float, *, rng: Rng = None) -> NDArray[np.float64]:
    """Draw for each score t a new one with density proportional to sech((t - s) / width) on [0, 1].

    Then the calibration function of the new score has ``|eta'| <= 1 / (2 width)`` and ``|eta''| <= 1 / (2
    width^2)``, whatever the classifier (THEORY 4).

    Parameters
    ----------
    y_prob : array_like of shape (n,)
        Scores in [0, 1].
    width : float
        h > 0, in units of the score: usually 2^-12 to 2^-2. The standard deviation of s - t is pi h / 2 away
        from 0 and 1.
    rng : int, Generator, SeedSequence or None
        A seed gives the same draws at every call; a Generator is advanced. The draws are never those of
        ``np.random.default_rng(seed)`` itself.

    Returns
    -------
    ndarray of float64, shape (n,)
        In [0, 1].

    Raises
    ------
    ValueError
        If scores break their rule, or `width` is not a finite number > 0.

    Notes
    -----
    Exact inversion: with the Gudermannian gd(u) = 2 arctan(tanh(u / 2)), a = gd(-t / h), b = gd((1 - t) / h),
    U uniform, and theta = a + (b - a) U,

        s = t + h gd^{-1}(theta),   gd^{-1}(theta) = 2 artanh(tan(theta / 2)) = ln tan((theta + pi/2) / 2).

    Near -pi/2 and pi/2, where theta has lost its digits, the distance to these ends is computed instead. The
    result is off by less than 10 units of 2^-53 in absolute terms.

    Examples
    --------
    >>> s = perturb(np.full(100_000, 0.5), 2**-6, rng=1)
    >>> bool(abs(s.mean() - 0.5) < 0.001), round(float(s.std()) * 2**6, 1)  # pi / 2
    (True, 1.6)
    """
    scores = _validate.scores(y_prob)
    h = _validate.positive_number(width, "width")
    return _draw(scores, h, _validate.generator(rng))


@dataclass(frozen=True, slots=True, eq=False)
class AurocLoss:
    """What perturbing costs in ranking; from `auroc_loss`.

    Attributes
    ----------
    loss : float
        Expected loss of AUROC: `auroc` less the mean of the draws. Negative if perturbing helps.
    standard_error : float
        Of `loss`, from the spread of the draws; the rows are taken as given.
    auroc : float
        Of the scores as they are.
    width : float
        Of the sech law, in units of the score.
    n, n_positive : int
        Rows, and rows with a positive label.
    n_draws : int
        Times that all scores were perturbed.
    """

    loss: float
    standard_error: float
    auroc: float
    width: float
    n: int
    n_positive: int
    n_draws: int

    def to_dict(self) -> dict[str, float | int]:
        """Return the fields, ready for JSON."""
        return asdict(self)


def auroc_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    width: float,
    *,
    n_draws: int = 100,
    rng: Rng = None,
    pos_label: Any = None,
) -> AurocLoss:
    """Estimate how much AUROC is lost by `perturb`, on average over its draws.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    y_prob : array_like of shape (n,)
        Probability of the positive class, in [0, 1].
    width, rng
        As in `perturb`.
    n_draws : int, default 100
        At least 2, for a standard error.
    pos_label : bool, int, float, str or bytes, optional
        The label that counts as positive.

    Returns
    -------
    AurocLoss

    Raises
    ------
    ValueError
        If labels or scores break their rules, or only one class is there.

    Notes
    -----
    One sort per draw: O(n_draws n log n).

    Examples
    --------
    >>> result = auroc_loss([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], 2**-8, n_draws=10, rng=0)
    >>> result.auroc, result.loss
    (1.0, 0.0)
    """
    rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
    h = _validate.positive_number(width, "width")
    draws = _validate.whole_number(n_draws, "n_draws", low=2)
    generator = _validate.generator(rng)
    labels, scores, _ = rows.block(0, len(rows))
    auroc, positives = _auroc(labels, scores)
    losses = np.array([auroc - _auroc(labels, _draw(scores, h, generator))[0] for _ in range(draws)])
    error = float(losses.std(ddof=1)) / math.sqrt(draws)
    return AurocLoss(float(losses.mean()), error, auroc, h, len(rows), positives, draws)


def auroc(y_true: ArrayLike | ScoreTable, y_prob: ArrayLike | None = None, *, pos_label: Any = None) -> float:
    """Probability that a random positive has a larger score than a random negative, ties counting half.

    Parameters
    ----------
    y_true, y_prob, pos_label
        As in `auroc_loss`; or a ScoreTable in place of both columns. A CellTable does not tell ties from
        scores that are close.

    Returns
    -------
    float
        The rank statistic (Mann–Whitney), correctly rounded: pairs are counted exactly. O(n log n).

    Raises
    ------
    ValueError
        If labels or scores break their rules, or only one class is there.

    Examples
    --------
    >>> auroc([0, 1, 1], [0.3, 0.3, 0.8])  # one tie, one pair in order
    0.75
    """
    source = given(y_true, y_prob, pos_label=pos_label)
    if isinstance(source, CellTable):
        raise TypeError("y_true must keep every score, which a CellTable does not; pass a ScoreTable")
    if isinstance(source, ScoreTable):
        return _of_keys(source.keys)[0]
    labels, scores, _ = source.block(0, len(source))
    return _auroc(labels, scores)[0]


def delong_interval(table: ScoreTable, delta: float) -> Interval:
    """Interval of the area under the ROC curve by DeLong's variance and the normal law, in [0, 1].

    The area is a mean over positives of the share of negatives below them, and over negatives of the share of
    positives above them, ties half; its variance is the sum of both variances of such means. Approximate; of
    perfect separation it has the width 0.

    References
    ----------
    DeLong, DeLong & Clarke-Pearson, Biometrics 44 (1988).
    """
    k = table.positives.astype(np.float64)
    m = table.counts - k
    below = (np.cumsum(m) - 0.5 * m) / m.sum()
    above = 1.0 - (np.cumsum(k) - 0.5 * k) / k.sum()
    area = float((k * below).sum() / k.sum())
    variance = 0.0
    for count, share in ((k, below), (m, above)):
        n = float(count.sum())
        if n > 1.0:
            variance += float((count * (share - area) ** 2).sum()) / (n - 1.0) / n
        else:
            variance = math.inf
    half = -float(ndtri(0.5 * delta)) * math.sqrt(variance)
    return Interval(max(area - half, 0.0), min(area + half, 1.0))


def _auroc(labels: NDArray[np.uint8], scores: NDArray[np.float64]) -> tuple[float, int]:
    keys = np.empty(len(scores), np.int64)
    scores = scores.view()
    scores.flags.writeable = False  # as everywhere else: one compiled loop
    sorting.pack(labels, scores, keys)
    keys.sort()
    keys.flags.writeable = False
    return _of_keys(keys)


def _of_keys(keys: NDArray[np.int64]) -> tuple[float, int]:
    doubled, positives = ranks.doubled_wins(keys)
    pairs = int(positives) * (len(keys) - int(positives))
    if not pairs:
        raise ValueError("y_true must have rows of both classes; got one")
    return int(doubled) / (2 * pairs), int(positives)


def _draw(scores: NDArray[np.float64], width: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Perturb, a block that stays in the cache at a time."""
    drawn = np.empty(len(scores))
    for start in range(0, len(scores), _BLOCK):
        block = scores[start : start + _BLOCK]
        drawn[start : start + _BLOCK] = _inverse(block, width, generator.random(len(block)))
    return drawn


def _inverse(t: NDArray[np.float64], width: float, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """The s below which the perturbed score of t lies with probability `uniform`."""
    with np.errstate(divide="ignore", over="ignore"):
        below, above = t / width, (1.0 - t) / width
        left, right = _gudermannian(below), _gudermannian(above)
        theta = (left + right) * uniform - left
        from_left = 2.0 * np.arctan(np.exp(-below)) + (left + right) * uniform
        from_right = 2.0 * np.arctan(np.exp(-above)) + (left + right) * (1.0 - uniform)
        middle = 2.0 * np.arctanh(np.tan(0.5 * np.clip(theta, -0.8, 0.8)))
        outer = np.where(theta < 0.0, np.log(np.tan(0.5 * from_left)), -np.log(np.tan(0.5 * from_right)))
    return np.clip(t + width * np.where(np.abs(theta) <= 0.8, middle, outer), 0.0, 1.0)


def _gudermannian(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return 2.0 * np.arctan(np.tanh(0.5 * u))
