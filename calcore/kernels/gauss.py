"""Weighted means with Gaussian weights of sorted rows: row by row, or by a fast Gauss transform.

Row by row, weights are taken relative to the nearest row's, exp((d0^2 - d^2) / (2 b^2)), so that they never
all underflow; the sum stops where all rows further away together weigh less than 2^-53 of it.

The fast transform (Greengard and Strain 1991) puts rows and points into cells of width h, the power of two
in (b/4, b/2]: a cell's centre and the distance of a row from it are then exact. Take a point at c + b v and a
row at c' + b u, where c and c' are the centres of their cells, Z = (c - c') / b, r = h / b, and abs(u),
abs(v) <= r/2. With h_n(Z) = He_n(Z) exp(-Z^2/2),

    exp(-(Z + v - u)^2 / 2) = sum over j, k >= 0 of (-1)^j h_{j+k}(Z) v^j / j! u^k / k!.

A cell of rows is known by its sums of u^k / k!, a cell of points by its polynomial in v, and pairs of cells
meet in a table of h_n. Terms with j + k >= `DEGREES` are left out.

For a pair of cells the terms left out are at most 1.09 e^(-Z^2/4) sum_{n >= DEGREES} r^n / sqrt(n!) (Cramer's
inequality, abs(h_n) <= 1.09 sqrt(n!) e^(-Z^2/4)). Rounding is at most 2^-45 of the sum of absolute terms,
which is at most exp(-Z^2/2 + abs(Z) r + r^2/2), because the coefficients of He_n with all signs made + have
that generating function. Both bounds are added up per cell of points, and a point where their sum exceeds
2^-38 of its total weight is computed row by row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit
from calcore.kernels.windows import first_from, two_sum

DEGREES = 24
"""Terms of total degree 0, ..., 23: the rest is below 2^-63 e^(-Z^2/4)."""

REACH = 13.5
"""Rows further away than this many bandwidths are left out of the cells; their weights are below 1e-37."""

_LIMIT = 2.0**-38
_ROUNDING = 2.0**-45
_RUN = 128
"""Rows added up before their sum is added to the cell's, and what that rounds away to another sum: rounding
does not grow with the number of rows."""


@jit
def _mean_by_rows(
    x: NDArray[np.float64],
    masses: NDArray[np.float64],
    moments: NDArray[np.float64],
    mass_in_all: float,
    t: Any,
    bandwidth: float,
) -> Any:
    """Weighted mean at one point, rows added from the nearest outwards.

    d^2 - d0^2 = (x - x0) (x + x0 - 2 t), where the second factor is summed with its rounding errors.
    """
    nearest = first_from(x, t)
    if nearest == x.size:
        nearest -= 1
    elif nearest > 0:
        left, left_error = two_sum(x[nearest - 1], -t)
        right, right_error = two_sum(x[nearest], -t)
        total, error = two_sum(left, right)
        if total + (error + left_error + right_error) > 0.0:
            nearest -= 1
    origin, origin_error = two_sum(x[nearest], -t)
    mass, moment = masses[nearest], moments[nearest]
    mass_error = moment_error = 0.0
    furthest = 53.0 * math.log(2.0) + math.log(mass_in_all / mass)
    for step in (-1, 1):
        i = nearest + step
        while 0 <= i < x.size:
            here, here_error = two_sum(x[i], -t)
            both, error = two_sum(here, origin)
            both += error + here_error + origin_error
            exponent = ((x[i] - x[nearest]) / bandwidth) * (both / bandwidth) * 0.5
            if both == 0.0:
                exponent = 0.0
            if not exponent <= furthest:
                break
            weight = math.exp(-exponent)
            mass, error = two_sum(mass, weight * masses[i])
            mass_error += error
            moment, error = two_sum(moment, weight * moments[i])
            moment_error += error
            i += step
    return (moment + moment_error) / (mass + mass_error)


@jit
def means_by_rows(
    x: NDArray[np.float64],
    masses: NDArray[np.float64],
    moments: NDArray[np.float64],
    mass_in_all: float,
    at: NDArray[np.float64],
    bandwidth: float,
    out: NDArray[np.float64],
) -> None:
    """Weighted mean at each point; `x` ascends strictly, `moments` are masses times values.

    The error is at most 2^-43 of the largest absolute value: exponents up to about 60 have relative errors
    of 6 units of 2^-53. A mean of the nearest rows alone is what is left when b is tiny.
    """
    for j in range(at.size):
        out[j] = _mean_by_rows(x, masses, moments, mass_in_all, at[j], bandwidth)


@jit
def collect(
    x: NDArray[np.float64],
    masses: NDArray[np.float64],
    moments: NDArray[np.float64],
    starts: NDArray[np.int64],
    width: float,
    bandwidth: float,
    sums: NDArray[np.float64],
) -> None:
    """Sums of masses and moments times u^k / k! per cell; cell c is the rows ``starts[c]:starts[c+1]``."""
    part, rounding = np.empty((2, DEGREES)), np.empty((2, DEGREES))
    for c in range(starts.size - 1):
        centre = (math.floor(x[starts[c]] / width) + 0.5) * width
        sums[c] = 0.0
        rounding[:] = 0.0
        for begin in range(starts[c], starts[c + 1], _RUN):
            part[:] = 0.0
            for i in range(begin, min(begin + _RUN, starts[c + 1])):
                u = (x[i] - centre) / bandwidth
                mass, moment = masses[i], moments[i]
                for k in range(DEGREES):
                    part[0, k] += mass
                    part[1, k] += moment
                    scale = u / (k + 1)
                    mass *= scale
                    moment *= scale
            for column in range(2):
                for k in range(DEGREES):
                    sums[c, column, k], error = two_sum(sums[c, column, k], part[column, k])
                    rounding[column, k] += error
        sums[c] += rounding


@jit
def tables(ratio: float, hermite: NDArray[np.float64], errors: NDArray[np.float64]) -> None:
    """h_n(Z), and the error bound of a pair of cells per unit of mass, for Z = -reach r, ..., reach r."""
    rest = term = 1.0
    for n in range(1, 2 * DEGREES):
        term *= ratio / math.sqrt(n)
        rest = rest + term if n > DEGREES else term
    reach = errors.size // 2
    for q in range(errors.size):
        z = (q - reach) * ratio
        hermite[q, 0] = math.exp(-0.5 * z * z)
        hermite[q, 1] = z * hermite[q, 0]
        for n in range(1, DEGREES - 1):
            hermite[q, n + 1] = z * hermite[q, n] - n * hermite[q, n - 1]
        errors[q] = 1.09 * rest * math.exp(-0.25 * z * z)
        errors[q] += _ROUNDING * math.exp(-0.5 * z * z + abs(z) * ratio + 0.5 * ratio * ratio)


@jit
def means_by_cells(
    x: NDArray[np.float64],
    masses: NDArray[np.float64],
    moments: NDArray[np.float64],
    mass_in_all: float,
    cells: NDArray[np.int64],
    sums: NDArray[np.float64],
    hermite: NDArray[np.float64],
    errors: NDArray[np.float64],
    at: NDArray[np.float64],
    width: float,
    bandwidth: float,
    out: NDArray[np.float64],
) -> None:
    """Weighted mean at each of the ascending points, from cells of rows.

    `cells` are the ascending numbers floor(x / width) of the non-empty cells, `sums` their `collect`.
    The error is at most 2^-36 of the largest absolute value, by the bounds of this module.
    """
    local = np.empty((2, DEGREES))
    reach = errors.size // 2
    outside = mass_in_all * math.exp(-0.5 * (reach * width / bandwidth) ** 2)
    low = high = j = 0
    while j < at.size:
        cell = math.floor(at[j] / width)
        while low < cells.size and cells[low] < cell - reach:
            low += 1
        while high < cells.size and cells[high] <= cell + reach:
            high += 1
        local[:] = 0.0
        bound = outside
        for c in range(low, high):
            q = np.int64(cell - cells[c] + reach)
            bound += sums[c, 0, 0] * errors[q]
            for column in range(2):
                for k in range(DEGREES):
                    factor = sums[c, column, k]
                    for d in range(DEGREES - k):
                        local[column, d] += hermite[q, d + k] * factor
        scale = 1.0
        for d in range(DEGREES):
            local[0, d] *= scale
            local[1, d] *= scale
            scale /= -(d + 1.0)
        centre = (cell + 0.5) * width
        while j < at.size and math.floor(at[j] / width) == cell:
            v = (at[j] - centre) / bandwidth
            mass = moment = 0.0
            for d in range(DEGREES - 1, -1, -1):
                mass = mass * v + local[0, d]
                moment = moment * v + local[1, d]
            if bound <= _LIMIT * mass:
                out[j] = moment / mass
            else:
                out[j] = _mean_by_rows(x, masses, moments, mass_in_all, at[j], bandwidth)
            j += 1
