"""calcore: certified and truthful measurement of probability calibration.

The flow, each step importing only the ones before it::

    your arrays -> _validate -> table -> kernels -> statistic -> result -> report
                   (checked)   (ScoreTable,          (certify)  (Certificate)
                                CellTable)

Names are loaded on first use, so that ``import calcore`` and ``calcore --version`` cost
nothing; `THEORY.md` beside this file holds the proofs that the docstrings cite.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcore.certificates import certify as certify
    from calcore.results import Certificate as Certificate
    from calcore.table import BinCounts as BinCounts
    from calcore.table import CellTable as CellTable
    from calcore.table import ScoreTable as ScoreTable

__version__ = "0.1.0"

_HOME = {
    "BinCounts": "calcore.table",
    "CellTable": "calcore.table",
    "Certificate": "calcore.results",
    "ScoreTable": "calcore.table",
    "certify": "calcore.certificates",
}

__all__ = ["BinCounts", "CellTable", "Certificate", "ScoreTable", "__version__", "certify"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'calcore' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
