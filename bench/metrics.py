"""Metrics beside ``np.sort`` of 10^7 uniform scores in the same run, and beside other libraries on the same
rows.

Values that a peer's definition shares must agree before it is timed. torchmetrics, netcal and calibre take
part if they are installed (the dependency group `hosts`).
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve

import calcore
from bench import machine, record
from bench.clock import Task, in_turns
from calcore.simulate import rows

SORT = "np.sort of 10^7 uniform scores"
LIMITS = {
    "ece, 15 bins, 1 thread": 0.6,
    "ece, 15 bins, 2 threads": 0.4,
    "ece, 15 quantile bins": 1.8,
    "ece_curve, 46 bin counts": 2.2,
    "classwise_lin_ce, 10^5 x 100": 2.0,
}
FASTER = 5.0
SECONDS = {
    "ece of 1000 resamples of 10^5 rows": 0.3,
    "two models, default metrics, 2000 resamples of 10^6 rows": 20.0,
    "calibration_test, 999 resamples of 10^6 rows": 60.0,
}
N_CLASSES = 100


def binary_peers() -> dict[str, dict[str, Callable[[NDArray[Any], NDArray[Any]], float]]]:
    """By what they compute: functions of (labels, scores), over 15 bins."""
    found: dict[str, dict[str, Callable[..., float]]] = {
        "ece, 15 bins, 1 thread": {},
        "ece, 15 quantile bins": {},
    }

    def of_curve(y: NDArray[Any], s: NDArray[Any], strategy: str) -> float:
        observed, predicted = calibration_curve(y, s, n_bins=15, strategy=strategy)
        edges = np.linspace(0, 1, 16) if strategy == "uniform" else np.percentile(s, np.linspace(0, 100, 16))
        counts = np.histogram(s, edges)[0]
        return float(np.abs(observed - predicted) @ counts[counts > 0] / len(s))

    found["ece, 15 bins, 1 thread"]["scikit-learn"] = partial(of_curve, strategy="uniform")
    found["ece, 15 quantile bins"]["scikit-learn"] = partial(of_curve, strategy="quantile")
    torchmetrics = _module("torchmetrics.functional.classification")
    if torchmetrics:
        torch = importlib.import_module("torch")
        found["ece, 15 bins, 1 thread"]["torchmetrics"] = lambda y, s: torchmetrics.binary_calibration_error(
            torch.from_numpy(s), torch.from_numpy(y), n_bins=15
        ).item()
    netcal = _module("netcal.metrics")
    if netcal:
        found["ece, 15 bins, 1 thread"]["netcal"] = lambda y, s: float(netcal.ECE(15).measure(s, y))
        found["ece, 15 quantile bins"]["netcal"] = lambda y, s: float(
            netcal.ECE(15, equal_intervals=False).measure(s, y)
        )
    calibre = _module("calibre.metrics")
    if calibre:
        found["ece, 15 bins, 1 thread"]["calibre"] = partial(calibre.expected_calibration_error, n_bins=15)

        def quantile(y: NDArray[Any], s: NDArray[Any]) -> float:
            observed, predicted, counts = calibre.calibration_curve(y, s, n_bins=15, strategy="quantile")
            return float(np.abs(observed - predicted) @ counts / len(s))

        found["ece, 15 quantile bins"]["calibre"] = quantile
    return found


def class_peers() -> dict[str, Callable[[NDArray[Any], NDArray[Any]], float]]:
    """Top-label errors over 15 bins, of (labels, P)."""
    found: dict[str, Callable[..., float]] = {}
    torchmetrics = _module("torchmetrics.functional.classification")
    if torchmetrics:
        torch = importlib.import_module("torch")
        found["torchmetrics"] = lambda y, P: torchmetrics.multiclass_calibration_error(
            torch.from_numpy(P), torch.from_numpy(y), P.shape[1], n_bins=15
        ).item()
    netcal = _module("netcal.metrics")
    if netcal:
        found["netcal"] = lambda y, P: float(netcal.ECE(15).measure(P, y))
    return found


def _module(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None


def measure(quick: bool) -> dict[str, Any]:
    """Ratios at 10^7 rows, and 10^5 rows of 100 classes (quick: peers at 10^6)."""
    load = machine.load()
    content: dict[str, Any] = {"n": 10_000_000, "own": _own(3 if quick else 9)}
    content["resampling"] = _resampling(2 if quick else 5)
    content["peers"] = _peers(1_000_000 if quick else 10_000_000, 2 if quick else 3)
    by_task = {row["task"]: row["ratio"][SORT] for row in content["own"]}
    content["checks"] = [
        record.check(f"{task}, by np.sort", by_task[task], limit) for task, limit in LIMITS.items()
    ] + [
        record.check(f"{row['task']}: {row['peer']} by calcore", row["ratio"], FASTER, at_least=True)
        for row in content["peers"]
    ]
    content["checks"] += [
        record.check(row["task"], row["seconds"], SECONDS[row["task"]], unit="s")
        for row in content["resampling"]
    ]
    record.save("metrics", content, quick, load)
    return content


def _own(rounds: int) -> list[dict[str, Any]]:
    y, s = rows(10_000_000, seed=0)
    y = y.astype(np.int8)
    weights = np.random.default_rng(0).random(len(s))
    table, cells = calcore.ScoreTable(y, s), calcore.CellTable().update(y, s)
    labels, P = _classes(100_000)
    tasks = {
        SORT: Task(partial(np.sort, s)),
        "ece, 15 bins, 1 thread": Task(partial(calcore.ece, y, s, n_threads=1)),
        "ece, 15 bins, 2 threads": Task(partial(calcore.ece, y, s, n_threads=2)),
        "ece, 1000 bins, 1 thread": Task(partial(calcore.ece, y, s, n_bins=1000, n_threads=1)),
        "ece, 15 quantile bins": Task(partial(calcore.ece, y, s, strategy="quantile")),
        "ece, weights": Task(partial(calcore.ece, y, s, sample_weight=weights)),
        "ece_curve, 46 bin counts": Task(partial(calcore.ece_curve, y, s)),
        "ece_curve, 46 bin counts, quantile": Task(partial(calcore.ece_curve, y, s, strategy="quantile")),
        "ece_curve of a ScoreTable": Task(partial(calcore.ece_curve, table)),
        "ece of a filled CellTable": Task(partial(calcore.ece, cells)),
        "smooth_ece": Task(partial(calcore.smooth_ece, y, s)),
        "ecce": Task(partial(calcore.ecce, y, s)),
        "brier_score": Task(partial(calcore.brier_score, y, s)),
        "log_loss": Task(partial(calcore.log_loss, y, s)),
        "corp": Task(partial(calcore.corp, y, s)),
        "confidence_ece, 10^5 x 100": Task(partial(calcore.confidence_ece, labels, P)),
        "classwise_ece, 10^5 x 100": Task(partial(calcore.classwise_ece, labels, P)),
        "full_ece, 10^5 x 100": Task(partial(calcore.full_ece, labels, P)),
        "classwise_lin_ce, 10^5 x 100": Task(partial(calcore.classwise_lin_ce, labels, P)),
        "conf_ce, 10^5 x 100": Task(partial(calcore.conf_ce, labels, P)),
        "multiclass_lin_ce, 10^5 x 100": Task(partial(calcore.multiclass_lin_ce, labels, P)),
    }
    times = in_turns(tasks, rounds)
    found = [times.row(task, (SORT,)) for task in tasks]
    for row in found:
        print(f"{row['task']:40} {row['seconds'] * 1e3:9.1f} ms  {row['ratio'][SORT]:6.3f} x", flush=True)
    return found


def _resampling(rounds: int) -> list[dict[str, Any]]:
    y, s = rows(100_000, seed=0)
    labels, scores = rows(1_000_000, seed=0)
    models = {"a": scores, "b": 0.9 * scores + 0.05}
    few = {"metrics": ["ece@15"], "n_resamples": 1000}
    tasks = {
        "ece of 1000 resamples of 10^5 rows": Task(lambda: calcore.compare(y, {"a": s}, **few)),
        "two models, default metrics, 2000 resamples of 10^6 rows": Task(
            partial(calcore.compare, labels, models)
        ),
        "calibration_test, 999 resamples of 10^6 rows": Task(
            partial(calcore.calibration_test, labels, scores)
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = in_turns(tasks, rounds)
    found = [times.row(task) for task in tasks]
    for row in found:
        print(f"{row['task']:60} {row['seconds']:8.2f} s", flush=True)
    return found


def _classes(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels drawn from the given probabilities of 100 classes."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(N_CLASSES, 0.1), n)
    return (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, N_CLASSES - 1), P


def _peers(n: int, rounds: int) -> list[dict[str, Any]]:
    y, s = rows(n, seed=0)
    y = y.astype(np.int64)
    labels, P = _classes(100_000)
    kinds: dict[str, tuple[Callable[..., float], tuple[Any, Any], dict[str, Any], float]] = {
        "ece, 15 bins, 1 thread": (
            partial(calcore.ece, n_threads=1),
            (y, s),
            binary_peers()["ece, 15 bins, 1 thread"],
            1e-9,
        ),
        "ece, 15 quantile bins": (  # edges are interpolated there: a few rows are in other bins
            partial(calcore.ece, strategy="quantile"),
            (y, s),
            binary_peers()["ece, 15 quantile bins"],
            1e-5,
        ),
        "confidence_ece, 10^5 x 100": (calcore.confidence_ece, (labels, P), class_peers(), 1e-6),
    }
    found = []
    for task, (own, data, peers, tolerance) in kinds.items():
        value = own(*data)
        for peer, theirs in peers.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_allclose(theirs(*data), value, rtol=0, atol=tolerance)
                times = in_turns(
                    {"calcore": Task(partial(own, *data)), peer: Task(partial(theirs, *data))}, rounds
                )
            row = {"task": task, "peer": peer, "n": len(data[0]), "ratio": times.ratio(peer, "calcore")}
            row |= {"seconds": times.row(peer)["seconds"], "calcore": times.row("calcore")["seconds"]}
            found.append(row)
            print(f"{task}: {peer} takes {row['ratio']:.1f} times as long", flush=True)
    return found
