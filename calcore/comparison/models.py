"""What a user asks to compare, checked: metrics, models, and each model's estimates and bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.kernels import binning, bootstrap
from calcore.scoring import brier_score, log_loss
from calcore.table import ScoreTable, partition
from calcore.table.given import Given
from calcore.table.partition import Scheme, Strategy
from calcore.truthful import binary_lin_ce, rank_bins

__all__ = [
    "BINNED",
    "MEANS",
    "MetricSpec",
    "Model",
    "called",
    "checked_metrics",
    "checked_rows",
    "one_for_all",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MEANS = ("brier", "log_loss")
BINNED = ("ece", "lin_ce")

_N_BINS = 15


class MetricSpec(NamedTuple):
    name: str
    kind: str
    n_bins: int
    function: Callable[..., float] | None = None


def checked_metrics(metrics: Any) -> list[MetricSpec]:
    one_for_all(metrics, "metrics")
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    try:
        given = list(metrics)
    except TypeError:
        raise TypeError(
            f"metrics must be a sequence of names and functions; got {type(metrics).__name__}"
        ) from None
    if not given:
        raise ValueError("metrics must name at least one; got none")
    found = [_metric(value, i) for i, value in enumerate(given)]
    names = [metric.name for metric in found]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"metrics must have different names; got {name!r} again at index {i}")
    return found


def _metric(value: Any, place: int) -> MetricSpec:
    if callable(value):
        name = getattr(value, "__name__", None)
        if not isinstance(name, str) or name == "<lambda>":
            raise ValueError(
                f"metrics must have names: the function at index {place} has none; define it with def"
            )
        return MetricSpec(name, "function", 0, cast(Callable[..., float], value))
    if isinstance(value, str):
        kind, at, bins = value.partition("@")
        if kind in MEANS and not at:
            return MetricSpec(kind, kind, 0)
        if kind in BINNED and (not at or (bins.isascii() and bins.isdecimal() and len(bins) < 20)):
            with _validate.renamed("n_bins", f"metrics[{place}]"):
                scheme = Scheme.checked(int(bins or _N_BINS), "uniform", None)
            return MetricSpec(f"{kind}@{scheme.n_bins}", kind, scheme.n_bins)
    raise ValueError(
        "metrics must be functions or among 'brier', 'log_loss', 'ece@15', 'lin_ce@15' (any number of bins); "
        f"got {value!r:.60} at index {place}"
    )


def one_for_all(value: Any, name: str) -> None:
    if isinstance(value, Mapping):
        raise ValueError(
            f"{name} must be one for all models: errors over different bins cannot be compared; got a mapping"
        )


def checked_rows(y_true: Any, models: Any, pos_label: Any) -> dict[str, _validate.Rows]:
    if not isinstance(models, Mapping):
        raise TypeError(
            "models must be a mapping from names to scores, {'a': p_a, 'b': p_b}; "
            f"got {type(models).__name__}"
        )
    if not models:
        raise ValueError("models must hold at least one model; got none")
    rows = {}
    for name, scores in models.items():
        if not isinstance(name, str):
            raise TypeError(f"models must have names of type str as keys; got {name!r:.60}")
        with _validate.renamed("y_prob", f"models[{name!r}]"):
            rows[name] = _validate.binary(y_true, scores, pos_label=pos_label)
    n = len(next(iter(rows.values())))
    if n > bootstrap.MAX_ROWS:
        raise ValueError(f"y_true must have at most 2^31 rows; got {n}")
    return rows


class Cells(NamedTuple):
    """The coarsest parts of the rows of which all bins of all metrics are unions."""

    n: int
    of_rows: NDArray[np.uint32]
    """Number of the cell of each row."""
    bins: dict[str, Integers]
    """Number of the bin of each cell, by metric."""

    @classmethod
    def one(cls, n_rows: int) -> Cells:
        return cls(1, np.zeros(n_rows, np.uint32), {})

    def refined(self, metric: str, index: Integers) -> Cells:
        """Cells for one metric more, whose bins are those numbers of rows."""
        numbers = self.of_rows.astype(np.int64) * (int(index.max()) + 1) + index
        if int(numbers.max()) > 4 * len(numbers) + 65_536:
            used, of_rows = np.unique(numbers, return_inverse=True)
            n = len(used)
        else:
            present = np.bincount(numbers) > 0
            n = int(np.count_nonzero(present))
            of_rows = (np.cumsum(present) - 1)[numbers]
        row = np.empty(n, np.int64)
        row[of_rows] = np.arange(len(of_rows))  # any row of each cell
        before = self.of_rows[row]
        bins = {name: number[before] for name, number in self.bins.items()}
        return Cells(n, of_rows.astype(np.uint32), bins | {metric: index[row]})


class Model(NamedTuple):
    """A model's estimates on all rows, and the bins that its rows are in."""

    name: str
    labels: NDArray[np.uint8]
    scores: Floats
    estimates: list[float]
    cells: Cells

    @classmethod
    def measured(
        cls, name: str, rows: _validate.Rows, metrics: list[MetricSpec], strategy: Strategy, threads: int
    ) -> Model:
        with _validate.renamed("y_prob", f"models[{name!r}]"):
            labels, scores, _ = rows.block(0, len(rows))
        checked = _validate.binary(labels, scores)
        source: Given = checked
        if strategy != "uniform" and any(metric.kind == "ece" for metric in metrics):
            source = ScoreTable.from_rows(checked)
        estimates, cells = [], Cells.one(len(labels))
        for metric in metrics:
            if metric.kind == "brier":
                value = brier_score(labels, scores)
            elif metric.kind == "log_loss":
                value = log_loss(labels, scores)
            elif metric.kind == "ece":
                scheme = Scheme(metric.n_bins, strategy, None)
                sums = partition.sums_of(source, scheme, None, threads)
                value = min(sums.absolute, 1.0)
                if strategy == "uniform":
                    index = binning.uniform_bins(scores, metric.n_bins)
                else:
                    index = partition.index_of(scores, sums.edges)
                cells = cells.refined(metric.name, index)
            elif metric.kind == "lin_ce":
                value = binary_lin_ce(labels, scores, n_bins=metric.n_bins)
                cells = cells.refined(metric.name, rank_bins(scores, metric.n_bins))
            else:
                value = called(metric, labels, scores, name, "all rows")
            estimates.append(value)
        return cls(name, labels, scores, estimates, cells)


def called(metric: MetricSpec, labels: NDArray[np.uint8], scores: Floats, model: str, where: str) -> float:
    assert metric.function is not None
    returned = metric.function(labels, scores)
    try:
        value = _validate.any_number(returned, metric.name)
    except TypeError:
        raise TypeError(
            f"metrics must return numbers; got {returned!r:.60} from {metric.name} of {model!r} for {where}"
        ) from None
    if not math.isfinite(value):
        raise ValueError(
            f"metrics must return finite numbers; got {value} from {metric.name} of {model!r} for {where}"
        )
    return value
