"""Least-squares polynomials on intervals of cells (THEORY 4.2)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit

Floats = NDArray[np.float64]

_AGAIN = 0.5
"""A vector that loses more than this part of its length is made orthogonal once more (Kahan, Parlett)."""


@jit
def fit(cuts: NDArray[np.int64], degrees: NDArray[np.int64], x: Floats, rows: Floats, y: Floats) -> Floats:
    """Weighted least-squares polynomial of each interval, at its cells.

    Parameters
    ----------
    cuts : (j + 1,) array
        Interval i is the cells ``cuts[i]:cuts[i + 1]``; it may be empty.
    degrees : (j,) array
        Where an interval has no more cells than coefficients, every cell keeps its own value.
    x : (m,) array
        Places, ascending.
    rows : (m,) array
        Weights > 0.
    y : (m,) array
        Values.

    Notes
    -----
    An orthonormal basis of values, made by multiplying by the place and orthogonalising (Arnoldi's process;
    Brubeck, Nakatsukasa & Trefethen 2021): no Gram matrix, and no loss where few cells carry the mass. Takes
    O(m p^2).
    """
    out = y.copy()
    for j in range(degrees.size):
        first, last = cuts[j], cuts[j + 1]
        m, degree = last - first, degrees[j]
        if m <= degree + 1:
            continue
        center = 0.5 * (x[first] + x[last - 1])
        reach = max(x[last - 1] - center, 1e-300)
        place, root = np.empty(m), np.empty(m)
        basis = np.empty((degree + 1, m))
        length = 0.0
        for i in range(m):
            place[i] = (x[first + i] - center) / reach
            root[i] = math.sqrt(rows[first + i])
            length += rows[first + i]
        length = math.sqrt(length)
        for i in range(m):
            basis[0, i] = root[i] / length
        used = 1
        for k in range(1, degree + 1):
            row = basis[k]
            before = 0.0
            for i in range(m):
                row[i] = place[i] * basis[k - 1, i]
                before += row[i] * row[i]
            before = math.sqrt(before)
            after = before
            for _ in range(3):
                for older in range(k - 1, -1, -1):
                    _subtract(basis[older], row)
                start, after = after, 0.0
                for i in range(m):
                    after += row[i] * row[i]
                after = math.sqrt(after)
                if after > _AGAIN * start:
                    break
            if after <= 1e-14 * before:  # the places are exhausted
                break
            for i in range(m):
                row[i] /= after
            used += 1
        fitted = np.zeros(m)
        for k in range(used):
            product = 0.0
            for i in range(m):
                product += basis[k, i] * root[i] * y[first + i]
            for i in range(m):
                fitted[i] += product * basis[k, i]
        for i in range(m):
            out[first + i] = fitted[i] / root[i]
    return out


@jit
def _subtract(unit: Floats, row: Floats) -> None:
    """Take off `row` its part along `unit`."""
    product = 0.0
    for i in range(row.size):
        product += unit[i] * row[i]
    for i in range(row.size):
        row[i] -= product * unit[i]


@jit
def capped_errors(rows: Floats, error: Floats, reach: Floats) -> float:
    """Sum over cells of ``rows * F``, the largest mean of |r| for residuals r of one mean `error` and range.

    F = |e| for |e| >= o and ``o / 2 + e^2 / (2 o)`` otherwise, o the range (`reach`) of the residuals.
    """
    total = 0.0
    for i in range(rows.size):
        size, o = abs(error[i]), reach[i]
        total += rows[i] * (size if size >= o else 0.5 * o + size * size / (2.0 * o))
    return total
