"""Tables of scores: the waist of the library, between checked rows and every statistic.

`ScoreTable` keeps every score, sorted. `CellTable` keeps sums over a fixed grid of cells: one pass, bounded
memory, and tables add, exactly and in any order. Both answer the same questions (`Table`), so a certificate
never asks which of the two it has. `BinCounts` is the small weighted accumulator behind equal-width metrics.
"""

from __future__ import annotations

import numpy as np

from calcore._validate import Rows
from calcore.table.base import Cells, Table
from calcore.table.bin_counts import BinCounts
from calcore.table.cell_table import CellTable
from calcore.table.grids import grid_for
from calcore.table.score_table import ScoreTable

__all__ = ["BinCounts", "CellTable", "Cells", "ScoreTable", "Table", "grid_for", "tabulate"]

_SORTED_ROWS = 1_000_000
_SAMPLE = 65_536


def tabulate(rows: Rows, *, n_threads: int | None = None) -> ScoreTable | CellTable:
    """Sort up to 1,000,000 rows; count more into 100,800 cells of the grid that suits them, if one does.

    Sorting loses nothing, but takes three times as long and 8 bytes per row. It is what remains where any of
    the grids is too coarse, as for scores that are all but equal, or for one that half of the rows have among
    others that are close to it.
    """
    n = len(rows)
    if n <= _SORTED_ROWS:
        return ScoreTable.from_rows(rows)
    sample = np.nan_to_num(np.asarray(rows.scores[:: n // _SAMPLE], np.float64))
    table = CellTable(grid=grid_for(sample.clip(0.0, 1.0))).add_rows(rows, n_threads)
    return ScoreTable.from_rows(rows) if table.is_coarse else table
