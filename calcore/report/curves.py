"""Binned errors over numbers of bins, as plain text."""

from __future__ import annotations

import textwrap

from calcore.binned import EceCurve

__all__ = ["curve_text"]

_STEP = 5


def curve_text(curve: EceCurve, *, data: str = "", width: int = 88) -> str:
    """A table of a curve, of multiples of five bins and the suggested number, and how to read it.

    Parameters
    ----------
    curve : EceCurve
    data : str, optional
        Where the rows are: file and columns.
    width : int
        Characters per line of prose; the table keeps its own.

    Returns
    -------
    str
        Paragraphs of lines, without a newline at the end.

    Examples
    --------
    >>> from calcore import ece_curve
    >>> "ECE over equally wide bins of 2 rows: from 0.2500" in curve_text(
    ...     ece_curve([0, 1], [0.25, 0.75], [5])
    ... )
    True
    """
    shown = {"uniform": "equally wide", "quantile": "quantile", "min_count": "min-count"}[curve.strategy]
    lines = [f"{'bins':>6}  {'ECE':>8}  {'std':>8}  {'noise':>11}  {'empty bins':>10}"]
    for k, ece, std, noise, used in zip(
        *(column.tolist() for column in (curve.n_bins, curve.ece, curve.std, curve.noise, curve.n_used)),
        strict=True,
    ):
        if k % _STEP == 0 or k == curve.suggested or len(curve.n_bins) <= 10:
            mark = "  suggested" if k == curve.suggested else ""
            lines.append(f"{k:>6}  {ece:>8.4f}  {std:>8.4f}  {noise:>11.4f}  {k - used:>10,}{mark}")
    low, high = float(curve.ece.min()), float(curve.ece.max())
    spread = (
        f"ECE over {shown} bins of {curve.n:,} rows: from {low:.4f} to {high:.4f}, by the number of bins "
        "alone."
    )
    explained = (
        "How to read it: std is the standard deviation over samples; noise is what a calibrated model with "
        "these scores would get on average. Do not rank models whose curves cross or lie within a standard "
        "deviation: calcore compare says what can be told apart."
    )
    parts = [textwrap.fill(spread, width), "\n".join(lines)]
    if data:
        parts.append(textwrap.fill(f"Data: {data}", width))
    parts.append(textwrap.fill(explained, width))
    return "\n\n".join(parts)
