"""Files of rows, read front to back in batches of bounded size, and what becomes of them.

    paths -> formats -> columns -> intake -> ScoreTable or CellTable, or rows

Parquet, Arrow IPC (file and stream; Feather version 2 is the file), CSV, NPY and NPZ look alike from
`formats` on. Nothing before `intake` knows what a label or a score has to look like: that is for
`calcore._validate`.

`arrays` goes between Arrow and NumPy. Needs pyarrow (the extra ``cli``).
"""

from __future__ import annotations

from calcore.files.columns import Batch, choose_columns, choose_label, find_column, read_columns
from calcore.files.formats import Column, Source, open_source
from calcore.files.intake import (
    AllRows,
    Classes,
    GroupedRows,
    Intake,
    PairedRows,
    Passed,
    ProbabilityRows,
    pass_on,
    take_in,
    take_in_classes,
    take_in_groups,
    take_in_joined,
    take_in_pair,
    take_in_rows,
)
from calcore.files.paths import InputError, expand
from calcore.files.writing import write_columns

__all__ = [
    "AllRows",
    "Batch",
    "Classes",
    "Column",
    "GroupedRows",
    "InputError",
    "Intake",
    "PairedRows",
    "Passed",
    "ProbabilityRows",
    "Source",
    "choose_columns",
    "choose_label",
    "expand",
    "find_column",
    "open_source",
    "pass_on",
    "read_columns",
    "take_in",
    "take_in_classes",
    "take_in_groups",
    "take_in_joined",
    "take_in_pair",
    "take_in_rows",
    "write_columns",
]
