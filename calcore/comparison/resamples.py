"""Metrics of resamples: rows as integers, added up by compiled loops, and sums as metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.comparison.models import BINNED, MEANS, MetricSpec, Model, called
from calcore.kernels import bootstrap

__all__ = ["Units", "checked_units", "resampled"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_CHUNK = 32
"""Resamples that visit a block of rows together, and go to one thread."""

_FRACTION_BITS = 52

_OFTEN = 64
"""Draws of one group that are reckoned with: more have a probability below n / 65!, or 10^-80."""


class Units(NamedTuple):
    """What is drawn: rows, or groups of rows, which are then brought together."""

    n: int
    starts: Integers
    """First row of each group, and the number of rows; empty if rows are drawn."""
    order: Integers | None
    most_rows: int
    """That a resample can have."""

    def brought_together(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Columns with the rows of a group beside each other; contiguous and read-only."""
        return _validate.read_only(columns if self.order is None else columns[..., self.order])


def checked_units(groups: Any, n: int) -> Units:
    if groups is None:
        return Units(n, _validate.read_only(np.empty(0, np.int64)), None, n)
    with _validate.renamed("by ", "groups "):
        _, codes = _validate.segments(groups, n)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))  # by first rows: names do not matter
    codes = number[codes]
    sizes = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    return Units(
        len(first), _validate.read_only(starts), order, min(len(first) * int(sizes.max()), _OFTEN * n)
    )


class _Mean(NamedTuple):
    """A metric that is a mean over rows."""

    column: int
    bits: int

    def values(self, rows: Integers, sums: Integers, binned: Integers) -> Floats:
        return _means(sums[:, self.column], rows, self.bits)


class _Binned(NamedTuple):
    """A metric that is a function of sums over bins, each of them a union of cells."""

    squared: bool
    cells: Integers
    """Of the model, those of a bin beside each other."""
    starts: Integers
    bits: int

    def values(self, rows: Integers, sums: Integers, binned: Integers) -> Floats:
        own = np.add.reduceat(binned[:, self.cells], self.starts, axis=1)
        if not self.squared:
            return _means(np.abs(own).sum(axis=1), rows, self.bits)
        means = np.stack([_means(column, rows, self.bits) for column in own.T], axis=1)
        total: Floats = np.square(means).sum(axis=1)
        return total


class _Columns(NamedTuple):
    """Rows as integers, ready to be added up."""

    plain: Integers
    excess: Integers
    cells: NDArray[np.uint32]
    n_cells: int
    finishers: list[tuple[int, int, _Mean | _Binned]]
    """Number of a model, number of a metric, and how sums become that metric of that model."""


def _columns(models: list[Model], metrics: list[MetricSpec], units: Units) -> _Columns:
    n = len(models[0].labels)
    means = [
        (i, j, metric.kind)
        for i, model in enumerate(models)
        for j, metric in enumerate(metrics)
        if metric.kind in MEANS and math.isfinite(model.estimates[j])
    ]
    finishers: list[tuple[int, int, _Mean | _Binned]] = []
    plain = np.empty((len(means), n), np.int64)
    for column, (i, j, kind) in enumerate(means):
        plain[column], bits = _fixed(_losses(models[i], kind), units.most_rows)
        finishers.append((i, j, _Mean(column, bits)))
    with_bins = models if any(metric.kind in BINNED for metric in metrics) else []
    excess, cells = np.empty((len(with_bins), n), np.int64), np.empty((len(with_bins), n), np.uint32)
    n_cells = 0
    for i, model in enumerate(with_bins):
        cells[i] = model.cells.of_rows + np.uint32(n_cells)
        excess[i], bits = _fixed(model.labels - model.scores, units.most_rows)
        for j, metric in enumerate(metrics):
            if metric.kind in BINNED:
                bin_of = model.cells.bins[metric.name]
                order = np.argsort(bin_of, kind="stable")
                starts = np.flatnonzero(np.diff(bin_of[order], prepend=-1))
                finishers.append((i, j, _Binned(metric.kind == "lin_ce", n_cells + order, starts, bits)))
        n_cells += model.cells.n
    together = units.brought_together
    return _Columns(together(plain), together(excess), together(cells), n_cells, finishers)


def _losses(model: Model, kind: str) -> Floats:
    if kind == "brier":
        return np.square(model.scores - model.labels)
    given = np.where(model.labels == 1, model.scores, 1.0)
    losses: Floats = -np.log(given)
    losses -= np.log1p(np.where(model.labels == 1, 0.0, -model.scores))
    return losses


def _fixed(values: Floats, most_rows: int) -> tuple[Integers, int]:
    """Values as whole numbers of 2^-bits, the sum of any `most_rows` of them being below 2^62."""
    largest = max(math.ceil(float(np.abs(values).max())), 1)
    bits = min(62 - (most_rows * largest).bit_length(), _FRACTION_BITS)
    return np.rint(np.ldexp(values, bits)).astype(np.int64), bits


def _means(sums: Integers, rows: Integers, bits: int) -> Floats:
    """Sums by rows, correctly rounded."""
    unit = 1 << bits
    return np.array(
        [total / (count * unit) for total, count in zip(sums.tolist(), rows.tolist(), strict=True)]
    )


def resampled(
    models: list[Model], metrics: list[MetricSpec], units: Units, seeds: NDArray[np.uint64], threads: int
) -> Floats:
    """Metrics of resamples, (resamples, models, metrics); infinite where the estimate is."""
    columns = _columns(models, metrics, units)
    n = len(models[0].labels)
    estimates = np.array([model.estimates for model in models])
    values = np.broadcast_to(estimates, (len(seeds), *estimates.shape)).copy()
    sums, binned = np.zeros(len(columns.plain), np.int64), np.zeros(columns.n_cells, np.int64)
    bootstrap.add(np.ones(n, np.uint32), 0, columns.plain, columns.excess, columns.cells, sums, binned)
    of_all_rows = [
        finish.values(np.array([n]), sums[None, :], binned[None, :]) for _, _, finish in columns.finishers
    ]

    def part(start: int) -> None:
        some = _validate.read_only(seeds[start : start + _CHUNK])
        rows = np.zeros(len(some), np.int64)
        found = np.zeros((len(some), len(sums)), np.int64)
        per_cell = np.zeros((len(some), len(binned)), np.int64)
        with np.errstate(over="ignore"):  # sums of words wrap around, which matters to uncompiled code only
            bootstrap.sums_of_resamples(
                some,
                units.starts,
                units.n,
                columns.plain,
                columns.excess,
                columns.cells,
                rows,
                found,
                per_cell,
            )
        for (i, j, finish), before in zip(columns.finishers, of_all_rows, strict=True):
            change = finish.values(rows, found, per_cell) - before
            top = math.inf if metrics[j].kind == "log_loss" else 1.0
            values[start : start + len(some), i, j] = np.clip(estimates[i, j] + change, 0.0, top)

    starts = range(0, len(seeds), _CHUNK)
    if columns.finishers:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, starts))
    _call_functions(models, metrics, units, seeds, values)
    return values


def _call_functions(
    models: list[Model], metrics: list[MetricSpec], units: Units, seeds: NDArray[np.uint64], values: Floats
) -> None:
    """Fill in metrics that are functions."""
    functions = [(j, metric) for j, metric in enumerate(metrics) if metric.function is not None]
    if not functions:
        return
    labels = units.brought_together(models[0].labels)
    scores = [units.brought_together(model.scores) for model in models]
    for r, counts in enumerate(_counts(seeds, units)):
        index = np.repeat(np.arange(len(labels)), counts)
        drawn = _validate.read_only(labels[index])
        for i, model in enumerate(models):
            own = _validate.read_only(scores[i][index])
            for j, metric in functions:
                values[r, i, j] = called(metric, drawn, own, model.name, f"resample {r}")


def _counts(seeds: NDArray[np.uint64], units: Units) -> Iterator[Integers]:
    """How often each row is drawn, resample by resample; rows as `Units.brought_together` has them."""
    for seed in seeds:
        counts = np.zeros(units.n, np.int64)
        with np.errstate(over="ignore"):
            bootstrap.counts_of(_validate.read_only(seed), counts)
        yield counts if units.order is None else np.repeat(counts, np.diff(units.starts))
