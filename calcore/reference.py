"""A second opinion from a general convex solver: total variation denoising by cvxpy and Clarabel.

Needs the extra ``reference``. Nothing else imports this module.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore.table import Table
from calcore.total_variation import Optimality, tv_denoise, tv_gap

__all__ = ["MAX_DIFFERENCE", "MAX_EXCESS", "TOLERANCE", "CrossCheck", "cross_check"]

TOLERANCE = 1e-13
"""Clarabel's three tolerances. Its default, 1e-8, leaves errors of 1e-5 in the solution."""

MAX_EXCESS = 1e-10
"""Both objectives are at most this share above the optimum, by their dual variables, or the check fails."""

MAX_DIFFERENCE = 1e-6
"""Largest difference of the two solutions at any row, as a share of the range of y."""


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """The same problem solved twice.

    Attributes
    ----------
    n : int
        Unknowns.
    weight : float
        Total weight: the rows that they stand for.
    lam : float
        The penalty.
    ours, reference : Optimality
        Each solution, judged by its own dual variable in float64 sums of our own.
    difference : float
        Largest difference of the two solutions at any row, divided by the range of y (undivided if 0).
    solver : str
        Version, and how the solver says it ended. That does not count: with a tolerance of 1e-13 it often
        cannot confirm what it reached.
    """

    n: int
    weight: float
    lam: float
    ours: Optimality
    reference: Optimality
    difference: float
    solver: str

    @property
    def agrees(self) -> bool:
        """Whether both are optimal up to `MAX_EXCESS` and equal up to `MAX_DIFFERENCE`.

        Where the optimum is 0 (lam = 0, or equal values) there is no share of it, and the difference decides.
        """
        excess = max(self.ours.excess, self.reference.excess)
        return self.difference <= MAX_DIFFERENCE and (excess <= MAX_EXCESS or self.ours.objective == 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {**asdict(self), "agrees": self.agrees}

    def __str__(self) -> str:
        verdict = "agrees" if self.agrees else "DOES NOT AGREE"
        return (
            f"{self.solver} {verdict} on {self.n:,} unknowns: excess {self.ours.excess:.1e} (ours) and "
            f"{self.reference.excess:.1e}, largest difference {self.difference:.1e} of the range"
        )


def cross_check(
    y: ArrayLike | Table, lam: float, *, sample_weight: ArrayLike | None = None, **options: Any
) -> CrossCheck:
    """Solve total variation denoising by `tv_denoise` and by cvxpy with Clarabel, and compare.

    Parameters
    ----------
    y : array_like of shape (n,), or ScoreTable, or CellTable
        Values in order. A table stands for the rates of positives of its cells, each weighing its rows.
    lam : float
        Penalty, as in `tv_denoise`, finite.
    sample_weight : array_like of shape (n,), optional
        Weights, as in `tv_denoise`; not with a table.
    **options
        For Clarabel, in place of ours.

    Returns
    -------
    CrossCheck

    Raises
    ------
    ValueError, TypeError
        As `tv_denoise`; weights beside a table.
    RuntimeError
        If the solver ends without a solution.

    Notes
    -----
    The objective is handed over unscaled, ``1/2 sum w (y - v)^2 + lam sum |v_{i+1} - v_i|``, and solved to
    `TOLERANCE`. Divided by the number of rows, or with Clarabel's own tolerances, the solver stops 2e-5 to
    2e-4 away from the solution on 65,536 unknowns, and the check fails. Rows of weight 0 are left out. About
    5 s for 65,536 unknowns.

    Examples
    --------
    >>> cross_check([0.0, 0.0, 1.0, 1.0, 0.0], 0.25).agrees
    True
    """
    if isinstance(y, Table):
        if sample_weight is not None:
            raise ValueError("sample_weight must be None beside a table: cells weigh their rows")
        cells = y.cells()
        y, sample_weight = cells.k / cells.n, cells.n
    ours = tv_denoise(y, lam, sample_weight=sample_weight)
    values = np.asarray(y, np.float64)
    weights = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    ours, values, weights = (column[weights > 0.0] for column in (ours, values, weights))
    judged = tv_gap(values, ours, lam, sample_weight=weights)
    reference, solver = _clarabel(values, weights, lam, options)
    spread = float(np.ptp(values))
    difference = float(np.abs(ours - reference).max())
    return CrossCheck(
        n=len(values),
        weight=float(weights.sum()),
        lam=float(lam),
        ours=judged,
        reference=tv_gap(values, reference, lam, sample_weight=weights),
        difference=difference / spread if spread > 0.0 else difference,
        solver=solver,
    )


def _clarabel(
    values: NDArray[np.float64], weights: NDArray[np.float64], lam: float, options: dict[str, Any]
) -> tuple[NDArray[np.float64], str]:
    """Solution, and how it came about in words."""
    solution = cvxpy.Variable(len(values))
    misfit = 0.5 * cvxpy.sum_squares(cvxpy.multiply(np.sqrt(weights), solution - values))
    steps = cvxpy.norm1(cvxpy.diff(solution)) if len(values) > 1 else 0.0
    problem = cvxpy.Problem(cvxpy.Minimize(misfit + lam * steps))
    tolerances = {"tol_gap_abs": TOLERANCE, "tol_gap_rel": TOLERANCE, "tol_feas": TOLERANCE}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # judged by its dual variable
        problem.solve(solver=cvxpy.CLARABEL, **(tolerances | options))
    if solution.value is None:
        raise RuntimeError(f"Clarabel ended without a solution: {problem.status}")
    found = np.asarray(solution.value, np.float64)
    return found, f"cvxpy {version('cvxpy')}, Clarabel {version('clarabel')} ({problem.status})"
