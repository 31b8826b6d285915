"""Where the cells of a table end, and which grid suits given scores."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore.kernels import cells

Grid = Literal["linear", "sqrt", "logit"]

CODES: dict[Grid, int] = {"linear": cells.LINEAR, "sqrt": cells.SQRT, "logit": cells.LOGIT}
"""What the kernels call them."""

_N_CELLS = 100_800
_FINE_ENOUGH = 16_384


@lru_cache(maxsize=4)
def edges(grid: Grid, n_cells: int) -> NDArray[np.float64]:
    """Return the n_cells + 1 edges of a grid, from 0 to 1: a read-only array, kept for the next table.

    Cell j is [edges[j], edges[j + 1]), the last one closed:

    * linear: edge j is j/N.
    * sqrt: (j/N)^2, finer near 0: for rare events.
    * logit: finer near both ends. Each of the 64 octaves 2^-(i+1) .. 2^-i of s below one half and of 1 - s
      above it, i = 1..32, has N/64 equally wide cells; the outermost cells reach to 0 and 1. Equal steps of
      log2(s) and log2(1 - s), with the logarithm replaced by its chords between powers of two.

    Only operations that IEEE 754 rounds correctly are used: the same doubles on every machine, so tables
    from different ones can be merged. (No logit or exponential of a mathematical library has that property.)

    Examples
    --------
    >>> edges("sqrt", 4)
    array([0.    , 0.0625, 0.25  , 0.5625, 1.    ])
    """
    ends = np.arange(n_cells + 1) / n_cells
    if grid == "sqrt":
        ends *= ends
    elif grid == "logit":
        octave = np.abs(2.0 * ends - 1.0) * cells.OCTAVES
        nearer = ((1022.0 - octave) * 2.0**52).astype(np.int64).view(np.float64)  # bit patterns are linear
        ends = np.where(ends < 0.5, nearer, 1.0 - nearer)
        ends[0], ends[-1] = 0.0, 1.0
    ends.flags.writeable = False
    return ends


def grid_for(scores: ArrayLike) -> Grid:
    """Choose a grid for scores like these.

    Parameters
    ----------
    scores : array_like
        Scores in [0, 1]: a sample of some ten thousand is enough.

    Returns
    -------
    {"linear", "sqrt", "logit"}
        Distinct scores are weighed by the root of s (1 - s), as a certificate's noise weighs them. Four
        fifths of that weight lie in some number of cells of a grid, heaviest first. Linear, if that number is
        16,384 or more, or six tenths of the distinct scores; else the grid with the largest number.

    Examples
    --------
    >>> grid_for(np.linspace(0.0, 1.0, 10_000))
    'linear'
    >>> grid_for(np.linspace(0.0, 0.1, 10_000) ** 2)
    'sqrt'
    """
    distinct = np.unique(np.asarray(scores, np.float64))
    spread = {grid: _spread(grid, distinct) for grid in CODES}
    if spread["linear"] >= min(_FINE_ENOUGH, 0.6 * len(distinct)):
        return "linear"
    return max(CODES, key=lambda grid: spread[grid])


def _spread(grid: Grid, scores: NDArray[np.float64]) -> int:
    """Smallest number of cells that hold four fifths of the weight of distinct scores."""
    cell = np.searchsorted(edges(grid, _N_CELLS)[:-1], scores, side="right") - 1
    weight = np.sort(np.bincount(cell, np.sqrt(scores * (1.0 - scores))))[::-1].cumsum()
    return int(np.searchsorted(weight, 0.8 * weight[-1])) + 1 if len(weight) else 0
