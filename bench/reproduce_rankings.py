"""Does the ranking of models by calibration error depend on the number of bins?

    python bench/reproduce_rankings.py [--quick]        the same as: python -m bench rankings [--quick]

The study of Lu, Wu, Hartline & Hu (2025), arXiv 2510.06388, with other models and data: theirs are networks
on CIFAR-100, which are not available. Ours are those of bench/trajectories.py: ten models, three tasks, a
temperature fitted on validation rows at every step of training. Of each, on the test rows:

* the classification error;
* truthful calibration errors in m rank bins: classwise LinCE, ConfCE;
* others: ConfCE without its correction, classwise LinECE and ConfECE in rank bins, classwise and confidence
  ECE in m bins of equal width;
* the proper losses of the truthful ones: Brier/k, and the confidence loss.

In the task with known posteriors, besides: the true calibration errors, and the expectations of the truthful
errors over the labels.

Then Spearman correlations: of metric and classification error, of metric and true calibration error, of a
metric with m and with m' bins. Each in three ways:

* `within`: over the steps of one model, then the mean over models;
* `final`: over the models at their last step;
* `pooled`: over all steps of all models.

Intervals are percentiles of a bootstrap over models, and within models over steps for `within`. The test
rows are the same throughout: intervals say nothing about other test rows.

The simulations over 5 to 50 bins are in bench/bin_sweep.py.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench import bin_sweep, machine, record, trajectories
from bench.parallel import in_parallel
from bench.trajectories import MODELS, TASKS, Sizes
from calcore import classwise_ece, confidence_ece
from calcore.truthful import (
    classwise_brier,
    classwise_lin_ce,
    classwise_lin_ece,
    conf_ce,
    conf_ece,
    confidence_loss,
    lin_ce,
    lin_ece,
    rank_bins,
    uncorrected_conf_ce,
)

Floats = NDArray[np.float64]

SEED = 251_006_388
DRAWS = 2_000
"""Of the bootstrap."""
LEVEL = 0.95
BINS = (2_000, 20, 5)
PAIRS = ((2_000, 20), (2_000, 5), (20, 5))
WAYS = ("within", "final", "pooled")
TRUTH_BINS = 50
"""Of the true calibration errors."""

METRICS: dict[str, Callable[..., float]] = {
    "classwise LinCE": classwise_lin_ce,
    "ConfCE": conf_ce,
    "uncorrected ConfCE": uncorrected_conf_ce,
    "classwise LinECE": classwise_lin_ece,
    "ConfECE": conf_ece,
    "classwise ECE": classwise_ece,
    "confidence ECE": confidence_ece,
}
"""With bins: rank bins, or of equal width for the last two. The first two are truthful."""

LOSSES: dict[str, Callable[..., float]] = {"Brier/k": classwise_brier, "confidence loss": confidence_loss}

RIVALS = (
    ("classwise LinCE", "classwise LinECE"),
    ("classwise LinCE", "classwise ECE"),
    ("ConfCE", "ConfECE"),
    ("ConfCE", "confidence ECE"),
)
"""Truthful, and the non-truthful one that it replaces."""

PUBLISHED: dict[str, Any] = {
    "source": "arXiv 2510.06388 (v1: Making and Evaluating Calibrated Forecasts; later: Truthful Calibration "
    "Errors for Multi-Class Prediction), the abstracts; text, tables and figures were not at hand",
    "spearman": "not found",
    "flips": "not found",
    "claims": {
        "truthful": "more stable rankings across binning choices",
        "not truthful": "confidence-based errors can reverse rankings when the number of bins changes",
    },
}


@dataclass(frozen=True, slots=True)
class Training:
    """One model on one task."""

    task: str
    model: int
    sizes: Sizes

    @property
    def cost(self) -> float:
        """Of the same order as its time."""
        model = MODELS[self.model]
        classes = 16 if self.task == "carrier" else 100
        if model.kind == "boosting":
            return 1.0 + classes * model.size[0] / 40.0
        return 2.0 + classes * (1.0 + sum(model.size)) / 4_000.0

    def checkpoints(self) -> list[dict[str, Any]]:
        """Temperature, errors and metrics at every step; one thread."""
        from threadpoolctl import threadpool_limits

        rows, model = trajectories.task(self.task, self.sizes), MODELS[self.model]
        seed = SEED % 2**31 + self.model
        found = []
        with threadpool_limits(1):
            for step, (valid, *others) in trajectories.probabilities(model, rows, self.sizes.steps, seed):
                t, scaled = trajectories.recalibrated(rows.valid.y, valid, others)
                entry = {"task": self.task, "model": model.name, "step": step, "temperature": t}
                entry |= measured(rows.test.y, scaled[0])
                if rows.truth is not None:
                    assert rows.truth.posterior is not None
                    entry["true"] = true_errors(rows.truth.posterior, scaled[1])
                    assert rows.test.posterior is not None
                    entry["expected"] = expected_errors(rows.test.posterior, scaled[0])
                found.append(entry)
        return found


def measured(y: NDArray[np.int64], p: Floats) -> dict[str, Any]:
    """Classification error, every metric at every number of bins, and the losses."""
    with warnings.catch_warnings():
        # after few steps, a model may give all rows one confidence
        warnings.filterwarnings("ignore", message=".*confidence", category=UserWarning)
        metrics = {name: [f(y, p, n_bins=m) for m in BINS] for name, f in METRICS.items()}
    return {
        "error": float(np.mean(np.argmax(p, axis=1) != y)),
        "metrics": metrics,
        "losses": {name: f(y, p) for name, f in LOSSES.items()},
    }


def true_errors(posterior: Floats, p: Floats) -> dict[str, float]:
    """Calibration errors (1/n) sum_B |sum_B (p - posterior)| in rank bins: no label is drawn.

    "classwise" is the mean over classes; "confidence" is of the most probable class. What is left of chance,
    since posteriors of equally scored rows vary, adds at most (sum_B sqrt(n_B) sd_B) / n on average.
    """

    def error(truth: Floats, score: Floats) -> float:
        return lin_ece(truth, score, rank_bins(score, TRUTH_BINS))

    top = np.argmax(p, axis=1)[:, None]
    confidence, true = (np.take_along_axis(q, top, axis=1)[:, 0] for q in (p, posterior))
    columns = range(p.shape[1])
    return {
        "classwise": float(np.mean([error(posterior[:, r], p[:, r]) for r in columns])),
        "confidence": error(true, confidence),
    }


def expected_errors(posterior: Floats, p: Floats) -> dict[str, list[float]]:
    """Expectations of the truthful errors over labels drawn from the posteriors, rows being given.

    E (sum_B (u - y))^2 = (sum_B (u - E y))^2 + sum_B Var y. They are classwise LinCE and ConfCE without the
    chance of the labels.
    """
    n, k = p.shape
    top = np.argmax(p, axis=1)[:, None]
    confidence, true = (np.take_along_axis(q, top, axis=1)[:, 0] for q in (p, posterior))

    def expected(truth: Floats, score: Floats, m: int) -> float:
        return lin_ce(truth, score, rank_bins(score, m)) + float(np.sum(truth * (1.0 - truth))) / n**2

    wrong = (1.0 - float(np.mean(true))) / n
    return {
        "classwise LinCE, expected": [
            float(np.mean([expected(posterior[:, r], p[:, r], m) for r in range(k)])) for m in BINS
        ],
        "ConfCE, expected": [expected(true, confidence, m) + wrong for m in BINS],
    }


# --- correlations


def spearman(x: Floats, y: Floats) -> Floats:
    """Spearman's rank correlation along the last axis, ties by average ranks; NaN if either is constant."""
    a, b = (stats.rankdata(values, axis=-1) for values in (x, y))
    a, b = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (a, b))
    with np.errstate(invalid="ignore"):
        rho: Floats = (a * b).sum(axis=-1) / np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    return rho


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Rows of the bootstrap: which models, and which steps of each of them. The first row is the sample."""

    models: NDArray[np.int64]
    steps: NDArray[np.int64]

    @classmethod
    def drawn(cls, n_models: int, n_steps: int, draws: int) -> Draws:
        """The same for all metrics of a task, so that differences can be taken draw by draw."""
        rng = np.random.default_rng(SEED)
        models = rng.integers(n_models, size=(draws + 1, n_models))
        steps = rng.integers(n_steps, size=(draws + 1, n_models, n_steps))
        models[0], steps[0] = np.arange(n_models), np.arange(n_steps)
        return cls(models, steps)

    def correlations(self, x: Floats, y: Floats, way: str) -> Floats:
        """Of two quantities by model and step, in every draw."""
        if way == "final":
            return spearman(x[self.models, -1], y[self.models, -1])
        if way == "pooled":
            flat = (len(self.models), -1)
            return spearman(x[self.models].reshape(flat), y[self.models].reshape(flat))
        models = self.models[:, :, None]
        each = spearman(x[models, self.steps], y[models, self.steps])
        known = np.isfinite(each)
        with np.errstate(invalid="ignore"):
            mean: Floats = np.where(known, each, 0.0).sum(axis=1) / known.sum(axis=1)
        return mean


def interval(values: Floats) -> dict[str, Any]:
    """Value of the sample, and the percentile interval of the draws in which it is defined."""
    value, known = float(values[0]), values[1:][np.isfinite(values[1:])]
    if not np.isfinite(value) or not len(known):
        return {"value": None, "low": None, "high": None, "undefined": len(values) - 1 - len(known)}
    low, high = np.quantile(known, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    undefined = len(values) - 1 - len(known)
    return {"value": value, "low": float(low), "high": float(high), "undefined": undefined}


def correlations(entries: list[dict[str, Any]], draws: int) -> dict[str, Any]:
    """All correlations of one task."""
    n_steps = len({entry["step"] for entry in entries})
    n_models = len(entries) // n_steps

    def table(pick: Callable[[dict[str, Any]], float]) -> Floats:
        return np.array([pick(entry) for entry in entries]).reshape(n_models, n_steps)

    drawn = Draws.drawn(n_models, n_steps, draws)
    names = {name: kind for kind in ("metrics", "expected") for name in entries[0].get(kind, ())}
    columns: dict[tuple[str, int | None], Floats] = {
        (name, m): table(lambda entry, name=name, kind=kind, j=j: entry[kind][name][j])
        for name, kind in names.items()
        for j, m in enumerate(BINS)
    }
    columns |= {(name, None): table(lambda entry, name=name: entry["losses"][name]) for name in LOSSES}
    against = {"error": table(lambda entry: entry["error"])}
    for name in entries[0].get("true", ()):
        against[f"true {name} error"] = table(lambda entry, name=name: entry["true"][name])
    found: dict[str, Any] = {
        "against": [
            {"metric": name, "bins": m, "with": other}
            | {way: interval(drawn.correlations(values, reference, way)) for way in WAYS}
            for other, reference in against.items()
            for (name, m), values in columns.items()
        ]
    }
    between = {
        (name, m, other, way): drawn.correlations(columns[name, m], columns[name, other], way)
        for name in names
        for m, other in PAIRS
        for way in WAYS
    }
    found["between"] = [
        {"metric": name, "bins": [m, other]} | {way: interval(between[name, m, other, way]) for way in WAYS}
        for name in names
        for m, other in PAIRS
    ]
    found["gains"] = [
        {"truthful": ours, "other": theirs, "bins": [m, other]}
        | {way: interval(between[ours, m, other, way] - between[theirs, m, other, way]) for way in WAYS}
        for ours, theirs in RIVALS
        for m, other in PAIRS
    ]
    return found


# --- the run


def measure(quick: bool) -> dict[str, Any]:
    """Everything; the figure is drawn from the saved file."""
    load = machine.load()
    sizes = trajectories.QUICK if quick else trajectories.FULL
    resamples = 20 if quick else bin_sweep.RESAMPLES
    record.save("rankings", gather(sizes, TASKS, range(len(MODELS)), resamples), quick, load)
    content = record.read("rankings", quick)
    assert content is not None
    draw(content, record.folder(quick) / "rankings.png")
    return content


def gather(sizes: Sizes, tasks: tuple[str, ...], models: range, resamples: int) -> dict[str, Any]:
    """Train, measure, correlate; then the simulations."""
    began = time.perf_counter()
    jobs = [Training(name, model, sizes) for name in tasks for model in models]
    found = in_parallel("trainings", Training.checkpoints, jobs, lambda job: job.cost)
    seconds = time.perf_counter() - began
    entries = [entry for checkpoints in found for entry in checkpoints]
    by_task = {name: [entry for entry in entries if entry["task"] == name] for name in tasks}
    resampled = in_parallel(
        "resamples",
        bin_sweep.Resample.errors,
        [bin_sweep.Resample(i) for i in range(resamples)],
        lambda _: 1.0,
    )
    content: dict[str, Any] = {
        "seed": SEED,
        "draws": DRAWS,
        "level": LEVEL,
        "bins": list(BINS),
        "sizes": {name: getattr(sizes, name) for name in ("train", "valid", "test", "truth")},
        "steps": list(sizes.steps),
        "models": [MODELS[i].name for i in models],
        "published": PUBLISHED,
        "training_seconds": seconds,
        "tasks": {name: trajectories.about(name, sizes) for name in tasks},
        "checkpoints": entries,
        "correlations": {name: correlations(by_task[name], DRAWS) for name in tasks},
        "sweep": bin_sweep.sweep(resampled),
        "mechanism": bin_sweep.mechanism(resamples),
    }
    return content | {"checks": _checks(content)}


def _checks(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The mechanism. What was published about real models is no target of ours: the report has its signs."""
    by_hand = content["mechanism"]["by_hand"]
    checks = []
    for bins, (more, less) in {"10": "AB", "20": "BA"}.items():
        name = f"mechanism by hand, {bins} bins: ECE of {more} less that of {less}"
        checks.append(record.check(name, by_hand[more][bins] - by_hand[less][bins], 0.005, at_least=True))
    return checks


COLOURS = {2_000: "#D55E00", 20: "#0072B2", 5: "#009E73"}


def draw(content: dict[str, Any], path: Path) -> None:
    """Metrics against classification error, by task and number of bins; the simulation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = ("classwise LinCE", "classwise ECE", "ConfCE", "confidence ECE")
    tasks = list(content["correlations"])
    figure, axes = plt.subplots(
        len(tasks), 5, figsize=(17.0, 3.3 * len(tasks)), layout="constrained", squeeze=False
    )
    for row, task in zip(axes, tasks, strict=True):
        part = [entry for entry in content["checkpoints"] if entry["task"] == task]
        error = [entry["error"] for entry in part]
        for axis, name in zip(row, shown, strict=False):
            for j, m in enumerate(content["bins"]):
                values = np.array([entry["metrics"][name][j] for entry in part])
                axis.plot(
                    error, values / values.max(), ".", ms=5, alpha=0.6, color=COLOURS[m], label=f"{m} bins"
                )
            axis.set(ylim=(0.0, 1.05))
            axis.set_title(f"{task}: {name}", fontsize=10)
        row[0].set_ylabel("metric over its largest value")
    for axis in axes[-1, :4]:
        axis.set_xlabel("classification error")
    axes[0, 0].legend(fontsize=8, frameon=False)
    sweep = content["sweep"]
    counts, metrics = sweep["bin_counts"], sweep["metrics"]
    for axis in axes[:, 4]:
        axis.set_xlabel("bins")
    for i, model in enumerate(sweep["models"]):
        label = f"{model['name']}: Beta({model['a']:g}, {model['b']:g}), T = {model['temperature']:g}"
        axes[0, 4].plot(counts, metrics["ece"]["means"][i], color=f"C{i}", label=label)
        axes[0, 4].axhline(model["error"], color=f"C{i}", ls=":")
    axes[0, 4].set_title("mean ECE (true errors dotted)", fontsize=10)
    axes[0, 4].legend(fontsize=8, frameon=False)
    for axis, metric in zip(axes[1:, 4], metrics, strict=False):
        for i, pair in enumerate(metrics[metric]["pairs"]):
            axis.plot(counts, pair["first_larger"], color=f"C{3 + i}", label=" above ".join(pair["pair"]))
        axis.set(ylim=(0.0, 1.0))
        axis.set_title(f"part of the resamples, {'LinCE' if metric == 'lin_ce' else 'ECE'}", fontsize=10)
        axis.legend(fontsize=8, frameon=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    from bench.__main__ import main

    sys.exit(main(["rankings", *sys.argv[1:]]))
