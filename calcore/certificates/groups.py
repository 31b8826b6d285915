"""Certificates of segments (country, model version, age band) that hold together (THEORY 7.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from calcore import _validate
from calcore.certificates import ROW_METHODS, certify
from calcore.certificates.options import Options, known, one_seed
from calcore.results import CertificateSet
from calcore.table import ScoreTable, tabulate

__all__ = ["certify_groups"]

_POOLED = 0.2
"""Part of delta for all rows taken together. A constant: the number of segments is part of the sample, and
given the segments of its rows the pooled sample is none of the population any more."""


def certify_groups(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    by: Any,
    delta: float = 0.05,
    pos_label: Any = None,
    groups: Any = None,
    rng: Any = None,
    **options: Unpack[Options],
) -> CertificateSet:
    """Certify every segment of the rows, and all rows together, at one confidence.

    Use it to find out for whom the probabilities can be trusted. A model can be calibrated over all rows and
    wrong in every segment. Segments must be named before looking at labels: splitting until something shows
    is not covered.

    Parameters
    ----------
    y_true, y_prob : (n,) array_like
        Labels and scores, as in `certify`. Tables do not know the segments of their rows.
    by : (n,) array_like
        Segment of each row: text, categories, numbers, bools or dates; missing values are an error.
    delta : float, default 0.05
        Probability that any interval misses: a fifth for the pooled one, the rest in equal shares for the
        segments.
    pos_label, rng, **options
        As in `certify`: `side`, `method`, `variation`, `lipschitz`, `perturbed`, `n_folds`. An assumption is
        one about every segment, and the pooled rows.
    groups : (n,) array_like, optional
        What rows depend within (patient, day, user): one random row of each is kept, before anything else.

    Returns
    -------
    CertificateSet
        By segment, sorted; of pandas categories those that occur. `pooled` is the certificate of all rows.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its domain; the message names it, the rule, the value and the position.

    Notes
    -----
    Segments may have any size; a few rows say little. Their number costs a logarithm: each interval is about
    as wide as at delta / number of segments. O(n log n), and about 10 ms a segment.

    Examples
    --------
    Right on average, wrong in both segments:

    >>> late = [0] * 300 + [1] * 300 + [0] * 100 + [1] * 300
    >>> by = ["weekday"] * 600 + ["weekend"] * 400
    >>> certificates = certify_groups(late, [0.6] * 1000, by=by)
    >>> certificates.pooled.lower, certificates["weekend"].lower > 0.02
    (0.0, True)
    """
    known(options, "certify_groups")
    delta = _validate.probability(delta, "delta")
    rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
    names, codes = _validate.segments(by, len(rows))
    seed = one_seed(rng)
    pooled = certify(
        rows.labels,
        rows.scores,
        delta=_POOLED * delta,
        pos_label=pos_label,
        groups=groups,
        rng=seed,
        **options,
    )  # it has read, and so checked, every row
    kept = np.arange(len(rows))
    if groups is not None:  # the draws that `certify` made
        kept = _validate.group_rows(groups, len(rows), _validate.generator(seed))
    order = kept[np.argsort(codes[kept], kind="stable")]
    present, starts = np.unique(codes[order], return_index=True)
    dropped = np.bincount(codes, minlength=len(names))[present] - np.diff(starts, append=len(order))
    made = ScoreTable.from_rows if options.get("method") in ROW_METHODS else tabulate
    certificates = {}
    for code, index, lost in zip(present, np.split(order, starts[1:]), dropped, strict=True):
        part = _validate.Rows(
            rows.labels[index], rows.scores[index], rows.positive, rows.negative, rows.pos_label
        )
        share = (1.0 - _POOLED) * delta / len(present)
        certificate = certify(made(part), delta=share, rng=seed, **options)
        certificates[names[code]] = replace(certificate, n_dropped=int(lost))
    return CertificateSet("segment", certificates, delta, pooled=pooled)
