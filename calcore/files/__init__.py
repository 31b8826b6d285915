"""Files of rows, read front to back in batches of bounded size, and what becomes of them.

    paths -> formats -> columns -> intake -> ScoreTable or CellTable

Parquet, Arrow IPC (file and stream; Feather version 2 is the file), CSV, NPY and NPZ look alike from
`formats` on. Nothing before `intake` knows what a label or a score has to look like: that is for
`calcore._validate`.

`arrays` goes between Arrow and NumPy. Needs pyarrow (the extra ``cli``).
"""

from __future__ import annotations

from calcore.files.columns import Batch, choose_columns, find_column, read_columns
from calcore.files.formats import Column, Source, open_source
from calcore.files.intake import GroupedRows, Intake, take_in, take_in_groups
from calcore.files.paths import InputError, expand
from calcore.files.writing import write_columns

__all__ = [
    "Batch",
    "Column",
    "GroupedRows",
    "InputError",
    "Intake",
    "Source",
    "choose_columns",
    "expand",
    "find_column",
    "open_source",
    "read_columns",
    "take_in",
    "take_in_groups",
    "write_columns",
]
