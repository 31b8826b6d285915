"""Published certificates on populations whose calibration error is known, and on perturbed flights.

    python bench/reproduce_certificates.py [--quick]        the same as: python -m bench reproduce [--quick]

The certificates are those of Ciosek et al. (2025), arXiv 2512.13872, with the constants of THEORY 5. Each
gets the true constants of the population (bench/synthetic.py): `tv` V, `nw` and `nw-folds` L and M,
`buckets` L. Beside them stand ours: `plugin`, `inversion` and `auto` with V, and, as "auto, L" beside
"nw, L", with what `buckets` knows. What is published is compared in four places:

* the slope of ln(mean upper bound - CE) against ln n from 10^4 rows on;
* the upper bound at 10^7 rows of perturbed scores (two classifiers, uniform scores), and the number of rows
  at which each method first certifies as much;
* the loss of AUROC, and the upper bound, against the width h of the perturbation, on flights;
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
from bench.synthetic import PERTURBED, POPULATIONS, Perturbed, Population
from calcore import BinCounts, ScoreTable, _validate, auroc_loss, certify, kl_upper, perturb
from calcore.certificates.windows import nw_folds_upper, nw_upper
from calcore.datasets import flights_random

SEED = 251_213_872
DELTA = 0.05
N_FOLDS = 5
N_BINS = 15
Method = Literal[
    "tv", "nw", "nw-folds", "buckets", "plugin", "inversion", "auto", "nw, L", "auto, L", "polynomials"
]
METHODS: tuple[Method, ...] = (
    "tv", "nw", "nw-folds", "buckets", "plugin", "inversion", "auto", "nw, L", "auto, L",
)  # fmt: skip
PERTURBED_METHODS: tuple[Method, ...] = ("tv", "nw", "nw-folds", "buckets", "plugin", "polynomials", "auto")
SHARPEST = {"auto": ("tv",), "auto, L": ("buckets", "nw, L")}
"""What is to be at or below what, under one assumption."""
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
    perturbed: dict[int, int]
    """Repetitions of perturbed classifiers, by number of rows."""


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
    {
        1_000: 16,
        3_162: 16,
        10_000: 16,
        31_623: 16,
        100_000: 16,
        316_228: 16,
        1_000_000: 16,
        3_162_278: 16,
        10_000_000: 16,
    },
)
QUICK = Sizes(
    {1_000: 16, 3_162: 16, 10_000: 16, 31_623: 16, 100_000: 16},
    100_000,
    8,
    10,
    {1_000: 8, 10_000: 8, 100_000: 8},
)


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
class PerturbedSample:
    """One sample of one perturbed classifier."""

    classifier: int
    n: int
    repetition: int

    def bounds(self) -> dict[str, float]:
        """Upper bound of each method that assumes the perturbation and nothing else, and the binned error."""
        classifier = PERTURBED[self.classifier]
        key = [SEED, len(POPULATIONS) + self.classifier, self.n, self.repetition]
        labels, scores = classifier.rows(self.n, np.random.default_rng(np.random.SeedSequence(key)))
        found = {"ece": BinCounts(N_BINS).update(labels, scores).value()}
        table = ScoreTable(labels, scores)
        del labels, scores
        return found | perturbed_uppers(table, classifier.width, self.repetition)


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
        return perturbed_uppers(ScoreTable(flights.y_true, drawn), self.width, self.draw)


def perturbed_uppers(table: ScoreTable, width: float, seed: int) -> dict[str, float]:
    """One-sided bounds that assume the perturbation and nothing else."""
    return {
        method: certify(table, side="upper", delta=DELTA, method=method, perturbed=width, rng=seed).upper
        for method in PERTURBED_METHODS
    }


def upper(table: ScoreTable, method: Method, population: Population, seed: int) -> float:
    """One-sided bound with the true constants of the population."""
    if method in ("nw", "nw-folds"):
        return nw(table, population.lipschitz, population.curvature, seed if method == "nw-folds" else None)
    constants = {"variation": population.variation}
    if method == "buckets" or method.endswith(", L"):
        constants = {"lipschitz": population.lipschitz}
    options: dict[str, Any] = {"method": method.removesuffix(", L"), "n_folds": N_FOLDS, "rng": seed}
    return certify(table, side="upper", delta=DELTA, **options, **constants).upper


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
        _entry(p, n, METHODS, [found[Sample(i, n, repetition)] for repetition in range(repetitions)])
        for i, p in enumerate(POPULATIONS)
        for n, repetitions in sizes.repetitions.items()
    ]
    perturbed = _perturbed(sizes.perturbed)
    flights = _flights(sizes.draws)
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
        "classifiers": [
            {"name": p.name, "formula": p.formula, "width": p.width, "error": p.error} for p in PERTURBED
        ],
        "perturbed": perturbed,
        "flights": flights,
        "timed": timed,
        "checks": _checks(table, perturbed, flights, timed),
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


def _perturbed(repetitions: dict[int, int]) -> list[dict[str, Any]]:
    jobs = [
        PerturbedSample(i, n, repetition)
        for i in range(len(PERTURBED))
        for n, times in repetitions.items()
        for repetition in range(times)
    ]
    rows = in_parallel("perturbed samples", PerturbedSample.bounds, jobs, lambda job: job.n)
    found = dict(zip(jobs, rows, strict=True))
    return [
        _entry(p, n, PERTURBED_METHODS, [found[PerturbedSample(i, n, j)] for j in range(times)])
        for i, p in enumerate(PERTURBED)
        for n, times in repetitions.items()
    ]


def _entry(
    population: Population | Perturbed, n: int, methods: tuple[Method, ...], found: list[dict[str, float]]
) -> dict[str, Any]:
    """Means over the repetitions with their standard errors, at one number of rows of one population."""
    entry: dict[str, Any] = {"population": population.name, "n": n, "repetitions": len(found)}
    for name in ("ece", *methods):
        entry[name] = _mean(np.array([bounds[name] for bounds in found]))
    for method in methods:
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
        for method in PERTURBED_METHODS:
            entry[method] = _mean(np.array([bounds[method] for bounds in part]))
        entries.append(entry)
    return entries


def _checks(
    table: list[dict[str, Any]],
    perturbed: list[dict[str, Any]],
    flights: list[dict[str, Any]],
    timed: dict[str, Any],
) -> list[dict[str, Any]]:
    both = [(table, METHODS), (perturbed, PERTURBED_METHODS)]
    bounds = sum(entry["repetitions"] * len(methods) for entries, methods in both for entry in entries)
    missed = sum(
        entry[method]["missed"] for entries, methods in both for entry in entries for method in methods
    )
    checks = [record.check(f"part of the {bounds:,} bounds below the true error", missed / bounds, DELTA)]
    for ours, others in SHARPEST.items():
        for other in others:
            worst = max(entry[ours]["mean"] / entry[other]["mean"] for entry in table)
            checks.append(record.check(f"`{ours}` beside `{other}`, mean bounds, at worst", worst, 1.0))
    for other in ("tv", "nw", "nw-folds", "buckets"):
        worst = max(entry["auto"]["mean"] / entry[other]["mean"] for entry in perturbed + flights)
        checks.append(record.check(f"perturbed: `auto` beside `{other}`, at worst", worst, 1.0))
    limits = {100_000: 0.021, 1_000_000: 0.0071, 10_000_000: 0.0026}
    for i, limit in ((entry, limits.get(entry["n"])) for entry in perturbed):
        if limit is not None and i["population"] == PERTURBED[0].name:
            checks.append(
                record.check(f"{PERTURBED[0].name}, `auto` at {i['n']:,} rows", i["auto"]["mean"], limit)
            )
        if i["n"] == 10_000_000 and i["population"] == PERTURBED[1].name:
            excess = i["auto"]["mean"] - PERTURBED[1].error
            checks.append(
                record.check(f"{PERTURBED[1].name}, `auto` - CE at {i['n']:,} rows", excess, 0.0015)
            )
    if (timed["n"], timed["repetitions"]) == (FULL.timed_rows, FULL.timed_repetitions):
        name = f"{timed['repetitions']} repetitions of {timed['method']} at {timed['n']:,} rows"
        checks.append(record.check(name, timed["seconds"], PUBLISHED["seconds"], unit="s"))
    return checks


COLOURS = {
    "tv": "#D55E00",
    "nw": "#0072B2",
    "nw-folds": "#56B4E9",
    "buckets": "#009E73",
    "plugin": "#CC79A7",
    "inversion": "#E69F00",
    "polynomials": "#8B5A2B",
    "auto": "black",
}
MARKS = {
    "tv": "s",
    "nw": "o",
    "nw-folds": "D",
    "buckets": "^",
    "plugin": "v",
    "inversion": "<",
    "polynomials": ">",
    "auto": "*",
}


def draw(content: dict[str, Any], path: Path) -> None:
    """Distance of each bound from the truth against rows, by population; bounds and losses against h."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(17.0, 7.4), layout="constrained")
    panels = [(p, content["table"], METHODS) for p in content["populations"]]
    panels += [(p, content["perturbed"], PERTURBED_METHODS) for p in content["classifiers"]]
    for (population, table, methods), axis in zip(panels, axes[:, :3].T.flat, strict=True):
        part = [entry for entry in table if entry["population"] == population["name"]]
        n = [entry["n"] for entry in part]
        for method in (method for method in methods if method in COLOURS):
            away = [entry[method]["mean"] - population["error"] for entry in part]
            axis.plot(n, away, "-", marker=MARKS[method], ms=4.5, color=COLOURS[method], label=method)
        away = [abs(entry["ece"]["mean"] - population["error"]) for entry in part]
        axis.plot(n, away, ":", color="0.35", lw=1.6, label=f"|plain {content['n_bins']}-bin ECE − CE|")
        axis.set(xscale="log", yscale="log", ylim=(1e-4, 1.3))
        digits = 4 if population["error"] > 0.01 else 5
        axis.set_title(f"{population['name']}, CE = {population['error']:.{digits}f}", fontsize=10)
    for axis in axes[:, 0]:
        axis.set_ylabel("distance from the true error (mean)")
    for axis in axes[1, :3]:
        axis.set_xlabel("rows")

    bounds, losses = axes[:, 3]
    widths = [entry["width"] for entry in content["flights"]]
    for method in PERTURBED_METHODS:
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
    lines = {}
    for axis in axes[0, :3]:
        lines |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(
        lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines), frameon=False, fontsize=9
    )
    figure.suptitle(
        f"One-sided {100 * (1 - content['delta']):g} % bounds with the true constants of each population, "
        "or the perturbation alone",
        fontsize=11,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    from bench.__main__ import main

    sys.exit(main(["reproduce", *sys.argv[1:]]))
