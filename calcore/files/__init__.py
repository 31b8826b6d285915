"""Files of rows, read front to back in batches of bounded size, and what becomes of them.

    paths -> formats -> columns -> plan -> intake -> ScoreTable or CellTable
                                        -> rows -> arrays of all rows

Parquet, Arrow IPC (file and stream; Feather version 2 is the file), CSV, NPY and NPZ look alike from
`formats` on. Nothing before `plan` knows what a label or a score has to look like: that is for
`calcore._validate`; `words` puts its messages in words of the command.

`arrays` goes between Arrow and NumPy. Needs pyarrow (the extra ``cli``).
"""

from __future__ import annotations

from calcore.files.columns import Batch, choose_columns, choose_label, find_column, read_columns
from calcore.files.formats import Column, Source, open_source
from calcore.files.intake import Intake, Passed, pass_on, take_in
from calcore.files.paths import InputError, expand
from calcore.files.plan import Classes
from calcore.files.rows import (
    Members,
    ProbabilityRows,
    SingleRows,
    take_in_classes,
    take_in_joined,
    take_in_rows,
)
from calcore.files.writing import write_columns

__all__ = [
    "Batch",
    "Classes",
    "Column",
    "InputError",
    "Intake",
    "Members",
    "Passed",
    "ProbabilityRows",
    "SingleRows",
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
    "take_in_joined",
    "take_in_rows",
    "write_columns",
]
