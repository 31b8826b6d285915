"""Two models on the same rows: how much their calibration and their Brier scores differ (THEORY 7.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from calcore import _validate
from calcore.bounds import empirical_bernstein
from calcore.certificates import ROW_METHODS, certify
from calcore.certificates.options import Options, known, one_seed
from calcore.results import Certificate, CertifiedDifference, Interval
from calcore.table import ScoreTable, tabulate

__all__ = ["certify_difference"]

_BLOCK = 131_072


def certify_difference(
    y_true: ArrayLike,
    p_a: ArrayLike,
    p_b: ArrayLike,
    *,
    delta: float = 0.05,
    pos_label: Any = None,
    groups: Any = None,
    rng: Any = None,
    **options: Unpack[Options],
) -> CertifiedDifference:
    """Bound the difference of two models' calibration errors, and of their Brier scores.

    Use it to decide between models on rows that neither was fitted to. The Brier score counts calibration
    and sharpness together and decides which model is better; its difference is measured far more precisely.
    The difference of calibration errors is only as sharp as the two certificates.

    Parameters
    ----------
    y_true : (n,) array_like
        Labels, as in `certify`.
    p_a, p_b : (n,) array_like
        Scores of the models, row by row the same cases.
    delta : float, default 0.05
        Probability that an interval misses; each of the two intervals has it for itself. Both hold together
        with probability at least 1 - 2 delta.
    pos_label, groups, rng, **options
        As in `certify`: `method`, `variation`, `lipschitz`, `perturbed`, `n_folds`. An assumption is one
        about both models. One random row is kept of each group, the same for both.

    Returns
    -------
    CertifiedDifference
        `ce_difference` for CE(a) - CE(b), `brier_difference` for E(p_a - y)^2 - E(p_b - y)^2, and the
        certificates `a` and `b` at delta / 2 each.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Notes
    -----
    The ends of the first are lower(a) - upper(b) and upper(a) - lower(b). The second is the mean of n
    differences in [-1, 1] with the empirical Bernstein bound, delta / 2 on each side: it needs no assumption,
    and is the sharper the more alike the models are.

    References
    ----------
    Maurer, Pontil, Empirical Bernstein bounds and sample variance penalization, COLT (2009), theorem 4.

    Examples
    --------
    >>> y = [0, 1] * 1000
    >>> found = certify_difference(y, [0.5] * 2000, [0.9] * 2000)
    >>> found.ce_difference.upper < 0 and found.brier_difference.upper < 0  # a is better in both
    True
    >>> round(found.mean_brier_difference, 12)  # .25 - (.81 + .01) / 2
    -0.16
    """
    known(options, "certify_difference")
    delta = _validate.probability(delta, "delta")
    if options.get("side", "both") != "both":
        raise ValueError(f"side must be left out: a difference needs both ends; got {options.get('side')!r}")
    with _validate.renamed("y_prob", "p_a"):
        a = _validate.binary(y_true, p_a, pos_label=pos_label)
    with _validate.renamed("y_prob", "p_b"):
        b = _validate.binary(y_true, p_b, pos_label=pos_label)
    seed, n_dropped = one_seed(rng), 0
    index = None
    if groups is not None:
        index = _validate.group_rows(groups, len(a), _validate.generator(seed))
        n_dropped = len(a) - len(index)
    made = ScoreTable.from_rows if options.get("method") in ROW_METHODS else tabulate
    certificates = []
    for name, rows in (("p_a", a), ("p_b", b)):
        with _validate.renamed("y_prob", name):
            table = made(rows if index is None else rows.take(index))
        certificates.append(certify(table, delta=delta / 2.0, rng=seed, **options))
    first, second = certificates
    if index is not None:
        a, b = a.take(index), b.take(index)
    return replace(difference_of(a, b, first, second, delta), n_dropped=n_dropped)


def difference_of(
    a: _validate.Rows, b: _validate.Rows, first: Certificate, second: Certificate, delta: float
) -> CertifiedDifference:
    """The difference of two models from their rows, and from certificates of these at half of `delta`."""
    mean, variance = _differences(a, b)
    reach = empirical_bernstein(variance, float(len(a)), delta / 2.0, span=2.0)
    return CertifiedDifference(
        ce_difference=Interval(first.lower - second.upper, first.upper - second.lower),
        brier_difference=Interval(max(-1.0, mean - reach), min(1.0, mean + reach)),
        mean_brier_difference=mean,
        delta=delta,
        n=len(a),
        n_dropped=0,
        a=first,
        b=second,
    )


def _differences(a: _validate.Rows, b: _validate.Rows) -> tuple[float, float]:
    """Mean and unbiased variance of (p_a - y)^2 - (p_b - y)^2, in two passes over blocks."""

    def blocks() -> Any:
        for start in range(0, len(a), _BLOCK):
            labels, p, _ = a.block(start, start + _BLOCK)
            q = b.block(start, start + _BLOCK)[1]
            yield (p - q) * (p + q - 2.0 * labels)

    n = len(a)
    mean = sum(float(block.sum()) for block in blocks()) / n
    squares = sum(float(np.square(block - mean).sum()) for block in blocks())
    return mean, squares / max(1, n - 1)
