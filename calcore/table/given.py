"""What a caller gave: labels and scores, or a table in place of both."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.table.cell_table import CellTable
from calcore.table.score_table import ScoreTable

Given = _validate.Rows | ScoreTable | CellTable


def given(y_true: Any, y_prob: Any, *, pos_label: Any = None, **beside: Any) -> Given:
    """Check labels and scores, or a table.

    Parameters
    ----------
    y_true, y_prob, pos_label
        Two columns, as for `calcore._validate.binary`; or a table and None twice.
    **beside
        Further arguments by name: those that are not None are refused beside a table.

    Raises
    ------
    ValueError
        If columns break their rules, or the table is empty.
    TypeError
        If `y_prob` is missing, or something is given beside a table.

    Examples
    --------
    >>> given(ScoreTable([0, 1], [0.2, 0.7]), None)
    <ScoreTable: 2 rows>
    """
    if not isinstance(y_true, ScoreTable | CellTable):
        if y_prob is None:
            raise TypeError("y_prob is missing: pass labels and scores, or one table")
        return _validate.binary(y_true, y_prob, pos_label=pos_label)
    for name, value in ({"y_prob": y_prob} | beside | {"pos_label": pos_label}).items():
        if value is not None:
            raise TypeError(f"{name} must not be given beside a table, which holds scores and labels already")
    if y_true.n == 0:
        raise ValueError("y_true must hold at least one row; got an empty table")
    return y_true


def weighted(
    y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Any
) -> tuple[Given, NDArray[np.float64] | None]:
    """`given`, and checked weights, if there are any."""
    source = given(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    if sample_weight is None:
        return source, None
    assert isinstance(source, _validate.Rows)
    return source, _validate.weights(sample_weight, len(source))
