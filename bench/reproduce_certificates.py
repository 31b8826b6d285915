"""Published certificates on populations whose calibration error is known, and on perturbed flights.

    python bench/reproduce_certificates.py [--quick]        the same as: python -m bench reproduce [--quick]

The certificates are those of Ciosek et al. (2025), arXiv 2512.13872, with the constants of THEORY 5. Each
gets the true constants of the population (bench/synthetic.py): `tv` V, `nw` and `nw-folds` L and M,
`buckets` L, and `plugin`, which is ours, V. What is published is compared in three places:

* the slope of ln(mean upper bound - CE) against ln n from 10^4 rows on;
* the loss of AUROC, and the upper bound, against the width h of the perturbation;
* the time of 64 repetitions at 10^7 rows.

The published functions and data are not available. So signs and orders of magnitude can be compared;
nothing is reproduced in the strict sense.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from bench import machine, record
from bench.parallel import PROCESSES, in_parallel
from bench.synthetic import POPULATIONS, Population
from calcore import BinCounts, ScoreTable, _validate, auroc_loss, certify, kl_upper, perturb
from calcore.certificates.windows import nw_folds_upper, nw_upper
from calcore.datasets import flights_random

SEED = 251_213_872
DELTA = 0.05
N_FOLDS = 5
N_BINS = 15
Method = Literal["tv", "nw", "nw-folds", "buckets", "plugin"]
METHODS: tuple[Method, ...] = ("tv", "nw", "nw-folds", "buckets", "plugin")
WIDTHS = (2.0**-6, 2.0**-5, 2.0**-4)
FIRST = 10_000
"""Slopes are fitted from this number of rows on."""
TIMED: tuple[Method, str] = ("tv", "smooth monotone")

PUBLISHED: dict[str, Any] = {
    "slopes": {"nw": (-0.406, -0.213), "tv": (-0.423, -0.164), "buckets": (-0.574, -0.346)},
    "losses": [{"width": 2.0**-6, "below": 0.001}],
    "upper": 0.02,
    "rows": 10_000_000,
    "seconds": 240.0,
}
"""Least and largest slope, loss of AUROC by width, upper bound with perturbation, time of 64 repetitions."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    repetitions: dict[int, int]
    """By number of rows."""
    timed_rows: int
    timed_repetitions: int
    draws: int
    """Of the perturbation, per width."""


FULL = Sizes(
    {
        1_000: 64,
        3_162: 64,
        10_000: 64,
        31_623: 64,
        100_000: 64,
        316_228: 64,
        1_000_000: 64,
        3_162_278: 32,
        10_000_000: 32,
    },
    10_000_000,
    64,
    100,
)
QUICK = Sizes({1_000: 16, 3_162: 16, 10_000: 16, 31_623: 16, 100_000: 16}, 100_000, 8, 10)


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of one population, and the methods it is given to."""

    population: int
    n: int
    repetition: int
    methods: tuple[Method, ...] = METHODS

    def bounds(self) -> dict[str, float]:
        """Upper bound of each method, and the binned error ("ece")."""
        population = POPULATIONS[self.population]
        key = [SEED, self.population, self.n, self.repetition]
        labels, scores = population.rows(self.n, np.random.default_rng(np.random.SeedSequence(key)))
        found = {"ece": BinCounts(N_BINS).update(labels, scores).value()}
        table = ScoreTable(labels, scores)
        del labels, scores
        for method in self.methods:
            found[method] = upper(table, method, population, self.repetition)
        return found


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One draw of the perturbation of the flights' scores."""

    width: float
    draw: int

    def bounds(self) -> dict[str, float]:
        """Upper bound of each method that assumes the perturbation and nothing else."""
        flights = flights_random()
        drawn = perturb(
            flights.y_prob, self.width, rng=np.random.SeedSequence([SEED, round(1 / self.width), self.draw])
        )
        table = ScoreTable(flights.y_true, drawn)
        return {
            method: certify(
                table, side="upper", delta=DELTA, method=method, perturbed=self.width, rng=self.draw
            ).upper
            for method in METHODS
        }


def upper(table: ScoreTable, method: Method, population: Population, seed: int) -> float:
    """One-sided bound with the true constants of the population."""
    if method.startswith("nw"):
        return nw(table, population.lipschitz, population.curvature, seed if method == "nw-folds" else None)
    if method == "buckets":
        return certify(
            table, side="upper", delta=DELTA, method="buckets", lipschitz=population.lipschitz
        ).upper
    return certify(
        table,
        side="upper",
        delta=DELTA,
        method=method,
        variation=population.variation,
        n_folds=N_FOLDS,
        rng=seed,
    ).upper


def nw(table: ScoreTable, slope: float, curvature: float, seed: int | None = None) -> float:
    """``certify(method="nw")``, or "nw-folds" with a seed, for any bound of the second derivative.

    `certify` takes the curvature from `perturbed` alone. The shares of delta are those of `certify`.
    """
    brier = kl_upper(table.sum_squared_error / table.n, -math.log(0.05 * DELTA) / table.n)
    delta = 0.95 * DELTA
    if seed is None:
        bound = nw_upper(table, slope, curvature, delta, brier)
    else:
        bound = nw_folds_upper(table, slope, curvature, delta, N_FOLDS, _validate.generator(seed))
    return min(1.0, bound.value)


def measure(quick: bool) -> dict[str, Any]:
    """Everything; the figure is drawn from the saved file."""
    load = machine.load()
    record.save("reproduce", gather(QUICK if quick else FULL), quick, load)
    content = record.read("reproduce", quick)
    assert content is not None
    draw(content, record.folder(quick) / "reproduce.png")
    return content


def gather(sizes: Sizes) -> dict[str, Any]:
    """Run all samples and draws, the timed ones first."""
    timed = _timed(sizes)
    samples = [
        Sample(i, n, repetition)
        for i in range(len(POPULATIONS))
        for n, repetitions in sizes.repetitions.items()
        for repetition in range(repetitions)
    ]
    found = dict(
        zip(samples, in_parallel("samples", Sample.bounds, samples, lambda sample: sample.n), strict=True)
    )
    table = [
        _entry(i, n, [found[Sample(i, n, repetition)] for repetition in range(repetitions)])
        for i in range(len(POPULATIONS))
        for n, repetitions in sizes.repetitions.items()
    ]
    return {
        "delta": DELTA,
        "n_folds": N_FOLDS,
        "n_bins": N_BINS,
        "seed": SEED,
        "published": PUBLISHED,
        "populations": [
            {
                "name": p.name,
                "formula": p.formula,
                "scores": [p.low, p.high],
                "variation": p.variation,
                "lipschitz": p.lipschitz,
                "curvature": p.curvature,
                "error": p.error,
            }
            for p in POPULATIONS
        ],
        "table": table,
        "slopes": [
            {"population": p.name, "method": method, **slope(*_line(table, p, method))}
            for p in POPULATIONS
            for method in METHODS
        ],
        "flights": _flights(sizes.draws),
        "timed": timed,
        "checks": _checks(table, timed),
    }


def _timed(sizes: Sizes) -> dict[str, Any]:
    """Wall time of repetitions of one published certificate: draw, sort, certify."""
    method, name = TIMED
    population = [p.name for p in POPULATIONS].index(name)
    samples = [
        Sample(population, sizes.timed_rows, repetition, (method,))
        for repetition in range(sizes.timed_repetitions)
    ]
    title = f"{len(samples)} x {method}, {sizes.timed_rows:,} rows"
    began = time.perf_counter()
    in_parallel(title, Sample.bounds, samples, lambda sample: sample.n)
    return {
        "method": method,
        "population": name,
        "n": sizes.timed_rows,
        "repetitions": len(samples),
        "processes": PROCESSES,
        "seconds": time.perf_counter() - began,
    }


def _entry(index: int, n: int, found: list[dict[str, float]]) -> dict[str, Any]:
    """Means over the repetitions with their standard errors, at one number of rows of one population."""
    population = POPULATIONS[index]
    entry: dict[str, Any] = {"population": population.name, "n": n, "repetitions": len(found)}
    for name in ("ece", *METHODS):
        entry[name] = _mean(np.array([bounds[name] for bounds in found]))
    for method in METHODS:
        bounds = [each[method] for each in found]
        entry[method] |= {"most": max(bounds), "missed": sum(bound < population.error for bound in bounds)}
    return entry


def _mean(values: np.ndarray) -> dict[str, float]:
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else 0.0
    return {"mean": float(values.mean()), "standard_error": float(error)}


def _line(table: list[dict[str, Any]], population: Population, method: str) -> tuple[list[int], list[float]]:
    """Numbers of rows from `FIRST` on where no bound is the trivial 1, and mean bound - CE > 0 there."""
    part = [
        entry
        for entry in table
        if entry["population"] == population.name
        and entry["n"] >= FIRST
        and entry[method]["most"] < 1.0
        and entry[method]["mean"] > population.error
    ]
    return [entry["n"] for entry in part], [entry[method]["mean"] - population.error for entry in part]


def slope(n: Sequence[float], excess: Sequence[float]) -> dict[str, Any]:
    """Least squares of ln excess on ln n, with the 95 % t interval of the slope.

    The interval is about how straight the line is: with 64 repetitions chance moves a mean by much less than
    curvature does. None below three points.
    """
    if len(n) < 3:
        return {"slope": None, "low": None, "high": None, "points": len(n)}
    fit = stats.linregress(np.log(n), np.log(excess))
    half = float(stats.t.ppf(0.975, len(n) - 2)) * float(fit.stderr)
    value = float(fit.slope)
    return {"slope": value, "low": value - half, "high": value + half, "points": len(n)}


def _flights(draws: int) -> list[dict[str, Any]]:
    """Loss of AUROC and upper bounds by width, over draws of the perturbation of the same rows."""
    flights = flights_random()
    jobs = [Perturbation(width, draw) for width in WIDTHS for draw in range(draws)]
    found = in_parallel("perturbed flights", Perturbation.bounds, jobs, lambda _: 1.0)
    entries = []
    for i, width in enumerate(WIDTHS):
        part = found[i * draws : (i + 1) * draws]
        loss = auroc_loss(flights.y_true, flights.y_prob, width, n_draws=draws, rng=SEED)
        entry: dict[str, Any] = {
            "width": width,
            "n": loss.n,
            "draws": draws,
            "auroc": loss.auroc,
            "score_deviation": float(flights.y_prob.std()),
            "loss": {"mean": loss.loss, "standard_error": loss.standard_error},
        }
        for method in METHODS:
            entry[method] = _mean(np.array([bounds[method] for bounds in part]))
        entries.append(entry)
    return entries


def _checks(table: list[dict[str, Any]], timed: dict[str, Any]) -> list[dict[str, Any]]:
    bounds = sum(entry["repetitions"] for entry in table) * len(METHODS)
    missed = sum(entry[method]["missed"] for entry in table for method in METHODS)
    checks = [record.check(f"part of the {bounds:,} bounds below the true error", missed / bounds, DELTA)]
    if (timed["n"], timed["repetitions"]) == (FULL.timed_rows, FULL.timed_repetitions):
        name = f"{timed['repetitions']} repetitions of {timed['method']} at {timed['n']:,} rows"
        checks.append(record.check(name, timed["seconds"], PUBLISHED["seconds"], unit="s"))
    return checks


COLOURS = {"tv": "#D55E00", "nw": "#0072B2", "nw-folds": "#56B4E9", "buckets": "#009E73", "plugin": "#CC79A7"}
MARKS = {"tv": "s", "nw": "o", "nw-folds": "D", "buckets": "^", "plugin": "v"}


def draw(content: dict[str, Any], path: Path) -> None:
    """Distance of each bound from the truth against rows, by population; bounds and losses against h."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(13.0, 7.2), layout="constrained")
    for population, axis in zip(content["populations"], axes[:, :2].flat, strict=True):
        part = [entry for entry in content["table"] if entry["population"] == population["name"]]
        n = [entry["n"] for entry in part]
        for method in METHODS:
            away = [entry[method]["mean"] - population["error"] for entry in part]
            axis.plot(n, away, "-", marker=MARKS[method], ms=4.5, color=COLOURS[method], label=method)
        away = [abs(entry["ece"]["mean"] - population["error"]) for entry in part]
        axis.plot(n, away, ":", color="0.35", lw=1.6, label=f"|plain {content['n_bins']}-bin ECE − CE|")
        axis.set(xscale="log", yscale="log", ylim=(1e-4, 1.3))
        axis.set_title(f"{population['name']}, CE = {population['error']:.4f}", fontsize=10)
    for axis in axes[:, 0]:
        axis.set_ylabel("distance from the true error (mean)")
    for axis in axes[1, :2]:
        axis.set_xlabel("rows")

    bounds, losses = axes[:, 2]
    widths = [entry["width"] for entry in content["flights"]]
    for method in METHODS:
        means = [entry[method]["mean"] for entry in content["flights"]]
        bounds.plot(widths, means, "-", marker=MARKS[method], ms=4.5, color=COLOURS[method])
    bounds.set_title(f"perturbed flights, {content['flights'][0]['n']:,} rows", fontsize=10)
    bounds.set_ylabel("upper bound (mean)")
    bounds.set(yscale="log", ylim=(0.01, 1.0))
    bounds.set_yticks((0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (".01", ".02", ".05", ".1", ".2", ".5", "1"))
    losses.errorbar(
        widths,
        [entry["loss"]["mean"] for entry in content["flights"]],
        [2.0 * entry["loss"]["standard_error"] for entry in content["flights"]],
        fmt="k-o",
        ms=4.5,
        capsize=3,
        label="flights (± 2 standard errors)",
    )
    for entry in content["published"]["losses"]:
        losses.plot(entry["width"], entry["below"], "kv", mfc="none", ms=8, label="published: below this")
    losses.set(yscale="log", ylim=(5e-4, 0.1), ylabel="loss of AUROC")
    losses.set_xlabel("width h of the perturbation")
    losses.legend(fontsize=8, frameon=False)
    for axis in (bounds, losses):
        axis.set_xscale("log", base=2)
        axis.minorticks_off()
        axis.set_xticks(widths, [f"2$^{{{math.log2(width):.0f}}}$" for width in widths])
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize=9,
    )
    figure.suptitle(
        f"One-sided {100 * (1 - content['delta']):g} % bounds with the true constants of each population",
        fontsize=11,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    from bench.__main__ import main

    sys.exit(main(["reproduce", *sys.argv[1:]]))
