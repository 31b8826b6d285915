"""Certificates for several classes: the top label, and each class against the rest (THEORY 7.1)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from calcore import _validate
from calcore._classes import class_rows
from calcore.certificates import certify
from calcore.certificates.options import Options, known, one_seed
from calcore.results import Certificate, CertificateSet, Interval

__all__ = ["certify_classwise", "certify_top_label"]


def certify_top_label(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    delta: float = 0.05,
    groups: Any = None,
    rng: Any = None,
    **options: Unpack[Options],
) -> Certificate:
    """Certify the confidence of a classifier's first choice: how far it is from the share of right choices.

    Bounds ``E|C - P(right | C)|``, C the largest probability of a row. Of classes with the same largest
    probability the first column is the choice. It says nothing about the other probabilities: see
    `certify_classwise`.

    Parameters
    ----------
    y_true : (n,) array_like
        Labels: columns of P, 0 to k - 1; or, with `labels`, any of these.
    P : (n, k) array_like
        Class probabilities in [0, 1]. Rows must sum to 1 up to 1e-6 (float32: 1e-4, float16: 1e-2); values
        are used as they are.
    labels : (k,) array_like, optional
        The label of each column; needed for text.
    delta, groups, rng, **options
        As in `certify`: `side`, `method`, `variation`, `lipschitz`, `perturbed`, `n_folds`. An
        assumption is one about the share of right choices as a function of the confidence.

    Returns
    -------
    Certificate
        Its "positives" are the rows whose choice was right: `base_rate` is the accuracy, `mean_score` the
        mean confidence.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Notes
    -----
    Rows of (confidence, right or not) are independent if rows of (y_true, P) are: this is `certify` for them.
    O(n k + n log n) time, 9 to 17 bytes a row beside what `certify` uses.

    Examples
    --------
    >>> certificate = certify_top_label([0, 1] * 500, [[0.5, 0.5]] * 1000)  # the choice is always column 0
    >>> certificate.base_rate, certificate.lower, certificate.upper < 0.05
    (0.5, 0.0, True)
    """
    known(options, "certify_top_label")
    confidence, correct = class_rows(y_true, P, labels).top()
    return certify(correct, confidence, delta=delta, groups=groups, rng=rng, **options)


def certify_classwise(
    y_true: ArrayLike,
    P: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    delta: float = 0.05,
    groups: Any = None,
    rng: Any = None,
    **options: Unpack[Options],
) -> CertificateSet:
    """Certify the probabilities of every class at once, and their mean calibration error.

    For class c, ``CE_c = E|P_c - P(Y = c | P_c)|``. With probability at least 1 - delta all k intervals hold
    together, and with them the mean of their ends bounds the classwise calibration error, the mean of CE_c.

    Parameters
    ----------
    y_true, P, labels
        As in `certify_top_label`.
    delta : float, default 0.05
        Probability that any interval misses; each class is certified at delta / k.
    groups, rng, **options
        As in `certify_top_label`. An assumption is one about every class.

    Returns
    -------
    CertificateSet
        One certificate per column of P, by its label; `mean` is the interval of the mean.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Notes
    -----
    Classes are the columns of P, whether they occur in `y_true` or not. P is not copied: 8 columns are, at a
    time. O(k n log n). With `groups`, the same rows are kept for all classes.

    Examples
    --------
    >>> certificates = certify_classwise([0, 1] * 500, [[0.5, 0.5]] * 1000)
    >>> certificates.mean.upper == certificates[0].upper == certificates[1].upper < 0.06
    True
    """
    known(options, "certify_classwise")
    rows = class_rows(y_true, P, labels)
    delta = _validate.probability(delta, "delta")
    seed = one_seed(rng)
    k = len(rows.names)
    certificates = {
        name: certify(rows.codes == j, column, delta=delta / k, groups=groups, rng=seed, **options)
        for j, (name, column) in enumerate(zip(rows.names, rows.columns(), strict=True))
    }
    ends = ((c.lower, c.upper) for c in certificates.values())
    lower, upper = (float(np.mean(end)) for end in zip(*ends, strict=True))
    return CertificateSet("class", certificates, delta, mean=Interval(lower, upper))
