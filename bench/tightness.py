"""How far the certified ends are from the true calibration error, for known populations.

One-sided bounds at delta = .05, default assumption (variation 1), medians over 20 samples with the seeds 0
to 19: named, not searched for. Every sample is certified three ways: from sorted scores, from 100,800 cells
(square-root grid for the rare events), and as ``certify(y_true, y_prob)`` does by itself. All by the plug-in;
`bench.auto` measures the default method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench import machine, record
from calcore import CellTable, ScoreTable, certify
from calcore.simulate import rows, true_error

DELTA = 0.05
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
SEEDS = tuple(range(20))
THROUGH_CELLS = 1.02
"""Cells may cost this much on the upper bound, against sorted scores."""


@dataclass(frozen=True, slots=True)
class Case:
    """A population, and what its bounds should reach.

    `reference`: medians of two independent implementations of the plug-in bound, for 1e3 .. 1e7 rows; they
    are given with so many decimals, and are reached if we are not above when rounded alike.
    `upper`, `lower`: targets by number of rows; `auto`, `auto_lower`: those of ``method="auto"``.
    """

    title: str
    shape: str
    beta: tuple[float, float]
    grid: str
    reference: tuple[str, ...]
    upper: dict[int, float]
    lower: dict[int, float]
    auto: dict[int, float]
    auto_lower: dict[int, float]

    @property
    def true(self) -> float:
        return true_error(self.shape, beta=self.beta)


UNIFORM = (1.0, 1.0)
CASES = (
    Case(
        "η = s; uniform scores",
        "calibrated",
        UNIFORM,
        "linear",
        (".110", ".0445", ".0190", ".0080", ".0036"),
        {1_000: 0.112, 10_000: 0.0455, 100_000: 0.0195, 1_000_000: 0.0082, 10_000_000: 0.0037},
        {},
        {10_000: 0.035, 100_000: 0.0140, 1_000_000: 0.0055, 10_000_000: 0.0022},
        {},
    ),
    Case(
        "η = s²; uniform scores",
        "square",
        UNIFORM,
        "linear",
        (".230", ".184", ".1723", ".1686", ".1673"),
        {100_000: 0.173, 10_000_000: 0.1675},
        {100_000: 0.160},
        {100_000: 0.1728, 10_000_000: 1.0 / 6.0 + 0.0009},
        {10_000_000: 1.0 / 6.0 - 0.0012},
    ),
    Case(
        "η = 1(s > ½); uniform scores",
        "step",
        UNIFORM,
        "linear",
        (".287", ".259", ".2533", ".2510", ".2503"),
        {},
        {},
        {10_000_000: 0.2509},
        {10_000_000: 0.2488},
    ),
    Case(
        "η = min(s, .8); uniform scores",
        "capped",
        UNIFORM,
        "linear",
        (".125", ".061", ".0375", ".0275", ".0233"),
        {},
        {},
        {10_000_000: 0.0240},
        {},
    ),
    Case(
        "η = s + .05; uniform scores",
        "shifted",
        UNIFORM,
        "linear",
        (".124", ".070", ".0555", ".0507", ".0494"),
        {},
        {},
        {10_000_000: 0.04965},
        {10_000_000: 0.04755},
    ),
    Case(
        "η = s; Beta(.5, 49.5) scores, base rate .01",
        "calibrated",
        (0.5, 49.5),
        "sqrt",
        (".035", ".0140", ".0058", ".0027", ".0012"),
        {100_000: 0.0060},
        {},
        {},
        {},
    ),
    Case(
        "η = s; Beta(.2, 199.8) scores, base rate .001",
        "calibrated",
        (0.2, 199.8),
        "sqrt",
        (".013", ".0038", ".0021", ".0010", ".0005"),
        {100_000: 0.0022},
        {},
        {},
        {},
    ),
    Case(
        "η = s; Beta(9, 1) confidences",
        "calibrated",
        (9.0, 1.0),
        "linear",
        (".083", ".032", ".0140", ".0060", ".0028"),
        {},
        {},
        {100_000: 0.0112},
        {},
    ),
)
VERDICT = {(True, True): "reached", (False, True): "within chance", (False, False): "missed"}
LOWER_REFERENCE = (".101", ".153", ".162", ".165", ".1656")
"""Of the lower bound for η = s²: the better of two methods at each size."""


def measure(quick: bool, method: str = "plugin", name: str = "tightness") -> dict[str, Any]:
    """The whole table: one entry per population and number of rows."""
    sizes = SIZES[:3] if quick else SIZES
    seeds = SEEDS[:5] if quick else SEEDS
    load = machine.load()
    table = []
    for case in CASES:
        for n in sizes:
            table.append(_entry(case, n, seeds, method))
            print(_line(table[-1]), flush=True)
    content = {
        "delta": DELTA,
        "seeds": list(seeds),
        "table": table,
        "checks": _checks(table),
        "misses": [entry["case"] for entry in table if entry["n_missed"]],
    }
    record.save(name, content, quick, load)
    draw(content, record.folder(quick) / f"{name}.png")
    return content


def _entry(case: Case, n: int, seeds: tuple[int, ...], method: str) -> dict[str, Any]:
    true = case.true
    samples: dict[str, list[float]] = {
        f"{side}_{way}": [] for side in ("upper", "lower") for way in ("sorted", "cells", "default")
    }
    bins, tables = [], set()
    for seed in seeds:
        y, s = rows(n, shape=case.shape, beta=case.beta, seed=seed)
        sorted_scores = ScoreTable(y, s)
        cells = CellTable(grid=case.grid).update(y, s)
        for way, given in (("sorted", (sorted_scores,)), ("cells", (cells,)), ("default", (y, s))):
            if way == "default" and n <= 1_000_000:  # sorted too
                for side in ("upper", "lower"):
                    samples[f"{side}_default"].append(samples[f"{side}_sorted"][-1])
                tables.add("sorted scores")
                continue
            above = certify(*given, side="upper", delta=DELTA, method=method)
            samples[f"upper_{way}"].append(above.upper)
            samples[f"lower_{way}"].append(certify(*given, side="lower", delta=DELTA).lower)
            if way == "sorted":
                bins.append(above.n_bins)
            if way == "default":
                tables.add(above.table)
    values = {name: np.array(part) for name, part in samples.items()}
    entry: dict[str, Any] = {"case": case.title, "n": n, "true": true}
    entry |= {name: float(np.median(part)) for name, part in values.items()}
    entry |= {
        "upper_range": [float(values["upper_sorted"].min()), float(values["upper_sorted"].max())],
        "cells_cost": _cost(values, "cells"),
        "default_cost": _cost(values, "default"),
        "default_table": sorted(tables),
        "n_bins": int(np.median(bins)),
        "n_missed": int(
            sum(np.sum(part < true) for name, part in values.items() if name.startswith("upper"))
            + sum(np.sum(part > true) for name, part in values.items() if name.startswith("lower"))
        ),
    }
    at = SIZES.index(n)
    entry["upper_reference"] = _reference(case.reference[at], values["upper_sorted"])
    entry["lower_reference"] = None
    if case.shape == "square":
        entry["lower_reference"] = _reference(LOWER_REFERENCE[at], values["lower_sorted"], at_least=True)
    automatic = method == "auto"
    entry["upper_target"] = (case.auto if automatic else case.upper).get(n)
    entry["lower_target"] = (case.auto_lower if automatic else case.lower).get(n)
    return entry


def _cost(values: dict[str, np.ndarray], way: str) -> dict[str, float]:
    """Ratio of the upper bounds to those from sorted scores: of the medians, and in the worst sample."""
    given, best = values[f"upper_{way}"], values["upper_sorted"]
    return {"median": float(np.median(given) / np.median(best)), "worst": float(np.max(given / best))}


def _reference(figure: str, values: np.ndarray, *, at_least: bool = False) -> dict[str, Any]:
    """Compare a median with a rounded figure, which is a median of some samples itself.

    Reached: it rounds to the figure or is better. Within chance: worse by at most two standard errors of the
    difference of two such medians (1.25 times those of means).
    """
    half = 0.5 * 10.0 ** -len(figure.partition(".")[2])
    worse = float(np.median(values)) - float(figure)
    if at_least:
        worse = -worse
    error = 1.2533 * float(values.std(ddof=1)) * math.sqrt(2.0 / values.size)
    return {
        "value": float(figure),
        "reached": worse <= half,
        "within_chance": worse <= half + 2.0 * error,
    }


def _checks(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    checks = []
    for entry in table:
        name = _name(entry)
        if entry["upper_target"] is not None:
            checks.append(record.check(f"upper: {name}", entry["upper_sorted"], entry["upper_target"]))
        if entry["lower_target"] is not None:
            checks.append(
                record.check(f"lower: {name}", entry["lower_sorted"], entry["lower_target"], at_least=True)
            )
    for way, name in (("cells", "cells"), ("default", "certify(y_true, y_prob)")):
        worst = max(table, key=lambda entry: entry[f"{way}_cost"]["median"])
        checks.append(
            record.check(
                f"upper: {name} / sorted, largest ratio of medians ({_name(worst)})",
                worst[f"{way}_cost"]["median"],
                THROUGH_CELLS,
            )
        )
    return checks


def _name(entry: dict[str, Any]) -> str:
    return f"{entry['case']}, n = {entry['n']:.0e}".replace("e+0", "e")


def _line(entry: dict[str, Any]) -> str:
    reference, cells, default = entry["upper_reference"], entry["cells_cost"], entry["default_cost"]
    return (
        f"{entry['case']:46} {entry['n']:>10,}  true {entry['true']:.4f}  "
        f"[{entry['lower_sorted']:.5f}, {entry['upper_sorted']:.5f}]  "
        f"reference {reference['value']:.4f} {VERDICT[reference['reached'], reference['within_chance']]}  "
        f"cells x{cells['median']:.4f}  default x{default['median']:.4f} {entry['default_table']}"
    )


def draw(content: dict[str, Any], path: Any) -> None:
    """Distance of each end from the truth against the number of rows, one panel per population."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    blue, orange, green = "#0072B2", "#E69F00", "#009E73"  # Okabe & Ito
    figure, axes = plt.subplots(2, 4, figsize=(12.0, 6.4), sharex=True, sharey=True, layout="constrained")
    for case, axis in zip(CASES, axes.flat, strict=True):
        part = [entry for entry in content["table"] if entry["case"] == case.title]
        n = np.array([entry["n"] for entry in part], float)

        def away(name: str, sign: int, entries: list[dict[str, Any]] = part) -> np.ndarray:
            gap = np.array([sign * (entry[name] - entry["true"]) for entry in entries])
            return np.where(gap > 0.0, gap, math.nan)

        guide = np.array([1e3, 1e7])
        axis.plot(guide, 0.08 * (guide / 1e3) ** (-1 / 3), color="0.75", lw=1, zorder=0)
        axis.plot(guide, 0.08 * (guide / 1e3) ** (-1 / 2), color="0.75", lw=1, ls=":", zorder=0)
        axis.plot(
            n, away("upper_sorted", 1), "-o", color=blue, ms=5, label="upper end − truth, sorted scores"
        )
        axis.plot(
            n, away("upper_cells", 1), "x", color=orange, ms=9, mew=1.6, label="upper end − truth, cells"
        )
        if case.true > 0.0:
            axis.plot(
                n,
                away("lower_sorted", -1),
                "--s",
                color=green,
                ms=5,
                mfc="white",
                label="truth − lower end, sorted scores",
            )
        for entry in part:
            if entry["upper_target"] is not None:
                axis.plot(
                    entry["n"],
                    entry["upper_target"] - case.true,
                    "v",
                    color="black",
                    mfc="none",
                    ms=9,
                    label="target, upper",
                )
            if entry["lower_target"] is not None:
                axis.plot(
                    entry["n"],
                    case.true - entry["lower_target"],
                    "^",
                    color="black",
                    mfc="none",
                    ms=9,
                    label="target, lower",
                )
        title, _, rest = case.title.partition("; ")
        axis.set_title(f"{title}\n{rest}", fontsize=9.5)
        axis.text(
            0.97, 0.95, f"CE = {case.true:.4g}", transform=axis.transAxes, ha="right", va="top", fontsize=9
        )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(6e2, 1.7e7)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].text(1.6e4, 0.0415, "n$^{-1/3}$", color="0.5", fontsize=8)
    axes[0, 0].text(1.1e4, 0.0105, "n$^{-1/2}$", color="0.5", fontsize=8)
    for axis in axes[1]:
        axis.set_xlabel("rows")
    for axis in axes[:, 0]:
        axis.set_ylabel("distance from the truth")
    handles = {
        label: handle
        for axis in axes.flat
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    seeds = content["seeds"]
    figure.suptitle(
        f"One-sided 95 % bounds for the calibration error, variation 1: medians of {len(seeds)} samples",
        fontsize=11,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
