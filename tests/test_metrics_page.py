"""The page of metrics says of each function what its signature says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import calcore

PAGE = (Path(calcore.__file__).parent / "METRICS.md").read_text()
ROWS = [
    (name, *(cell.strip() for cell in line.strip("|").split("|")[1:]))
    for line in PAGE.partition("## What takes what")[2].partition("## Conventions")[0].splitlines()
    if line.startswith("| `")
    for name in re.findall(r"`(\w+)`", line.split("|")[1])
]


@pytest.mark.parametrize(("name", "rows", "strategies", "tables", "weights"), ROWS)
def test_what_takes_what(name, rows, strategies, tables, weights):
    parameters = inspect.signature(getattr(calcore, name)).parameters
    assert ("sample_weight" in parameters) == (weights == "yes")
    assert [p for p in parameters if p in ("y_prob", "P")] == ["P" if rows == "`y_true, P`" else "y_prob"]
    assert ("strategy" in parameters) == ("uniform" in strategies and name != "calibration_test")
    annotation = str(parameters["y_true"].annotation)
    for table in ("ScoreTable", "CellTable"):
        assert (table in annotation) == (table in tables)


def test_every_name_on_the_page_exists():
    named = set(re.findall(r"`([a-z_]+)`", PAGE.partition("## Other libraries")[0]))
    options = {"f", "sample_weight", "pos_label", "classwise_", "uniform", "quantile"}
    unknown = {name for name in named - options if not hasattr(calcore, name)}
    assert not unknown
