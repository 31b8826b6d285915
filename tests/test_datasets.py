"""The shipped predictions: what they hold, what they promise about dependence, and how they fail."""

from __future__ import annotations

import builtins
import dataclasses
from importlib.resources import files

import numpy as np
import pytest

from calcore import datasets


def design_effect(residual, cluster):
    """Slow twin of the one in bench/make_flights.py: the same formula, cluster by cluster."""
    e = residual - residual.mean()
    sums = [e[cluster == c].sum() for c in np.unique(cluster)]
    n, c = len(e), len(sums)
    return (c / (c - 1) * sum(s * s for s in sums)) / (n / (n - 1) * sum(v * v for v in e)), c


def test_random_half_holds_what_its_docstring_says():
    flights = datasets.flights_random()
    assert flights.y_true.shape == flights.y_prob.shape == (163_673,)
    assert round(float(flights.y_true.mean()), 4) == 0.2377
    assert len(np.unique(flights.y_prob)) == 86_849
    assert "flights of 2013" in flights.population
    assert "CC0" in flights.source


def test_split_by_time_has_every_day_of_four_months_in_order():
    flights = datasets.flights_by_time()
    assert flights.y_true.shape == flights.y_prob.shape == flights.day.shape == (109_619,)
    assert round(float(flights.y_true.mean()), 4) == 0.1995
    assert np.all(np.diff(flights.day) >= np.timedelta64(0, "D"))
    days = np.arange(np.datetime64("2013-09-01"), np.datetime64("2014-01-01"))
    assert np.array_equal(np.unique(flights.day), days)
    assert len(days) == 122


def test_rows_of_a_day_depend_on_each_other():
    flights = datasets.flights_by_time()
    effect, days = design_effect(flights.y_true - flights.y_prob, flights.day)
    assert days == 122
    assert round(effect) == 133


def test_the_random_half_is_in_random_order():
    # A stretch of a random order is a sample without replacement: each tenth within 5 standard errors of the
    # whole. In order of time June and July alone would be off by 20 (31 % late).
    y = datasets.flights_random().y_true
    for tenth in np.array_split(y, 10):
        assert abs(tenth.mean() - y.mean()) < 5 * y.std() / np.sqrt(len(tenth))


@pytest.mark.parametrize("load", [datasets.flights_random, datasets.flights_by_time])
def test_columns_are_checked_probabilities_and_cannot_be_written(load):
    flights = load()
    assert flights.y_true.dtype == np.uint8
    assert set(np.unique(flights.y_true)) == {0, 1}
    assert flights.y_prob.dtype == np.float64
    assert 0 < flights.y_prob.min() < flights.y_prob.max() < 1
    assert np.array_equal(flights.y_prob, flights.y_prob.astype(np.float32))
    for field in dataclasses.fields(flights):
        value = getattr(flights, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[0] = value[1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        flights.population = "all flights"
    assert repr(flights).startswith(f"{type(flights).__name__}({len(flights.y_true)} rows: flights of ")


def test_files_are_small():
    sizes = [f.stat().st_size for f in files("calcore.datasets").iterdir() if f.name.endswith(".parquet")]
    assert len(sizes) == 3
    assert sum(sizes) < 2_000_000


def test_without_pyarrow_the_error_names_the_extra(monkeypatch):
    honest = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return honest(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'calcore-calibration\[cli\]'"):
        datasets.flights_random()
