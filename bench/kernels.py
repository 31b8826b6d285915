"""The public kernels beside np.sort and beside C and C++: total variation denoising, sliding windows.

Peers are measured where they can be installed (`pip install condat-tv prox_tv`; the second needs a LAPACKE
header): condat-tv, and every exact method of prox-tv. Before anything is timed, each solution's objective
must be within 1e-9 of ours and its dual variable feasible to 1e-6 of lam, by `tv_gap`; what is not is left
out and named. Numbers of segments are not compared: equal optima may differ in them.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import machine, record
from bench.clock import Task, in_turns
from calcore import nadaraya_watson, tv_denoise, tv_gap
from calcore.simulate import rows

Floats = NDArray[np.float64]
Denoise = Callable[[Floats, float], Floats]

SORT = "np.sort of as many scores"
PROX = (
    "classictautstring",
    "linearizedtautstring",
    "hybridtautstring",
    "condattautstring",
    "dp",
    "kolmogorov",
)
LIMITS = {
    "labels by score, certificate's lam": 0.8,
    "labels by score, random weights": 2.0,
    "box windows, sorted scores, 1 thread": 1.9,
    "box windows, sorted scores, 2 threads": 1.0,
}


def peers() -> dict[str, Denoise]:
    """Every exact solver that is installed."""
    found: dict[str, Denoise] = {}
    try:
        condat = importlib.import_module("condat_tv")
        found["condat-tv"] = lambda y, lam: np.asarray(condat.tv_denoise(y, lam))
    except ImportError:
        pass
    try:
        prox = importlib.import_module("prox_tv")
        for method in PROX:
            found[f"prox-tv {method}"] = partial(
                lambda y, lam, name: prox.tv1_1d(y, lam, method=name), name=method
            )
    except ImportError:
        pass
    return found


def signals(n: int) -> dict[str, tuple[Floats, float]]:
    """Sequences of n numbers, and lam for each."""
    rng = np.random.default_rng(0)
    y, s = rows(n, seed=0)
    i = np.arange(n + 1)
    lam = n * math.sqrt(math.log(4.0 * (n - 1) / 0.0025) / (8.0 * n))
    return {
        "labels by score, certificate's lam": (y[np.argsort(s)].astype(np.float64), lam),
        "labels by error diffusion, small lam": (np.diff(i * i // (2 * n)).astype(np.float64), 2.0),
        "alternating": (np.arange(n) % 2 * 1.0, 0.3),
        "ramp and noise": (np.linspace(0.0, 1.0, n) + 0.1 * rng.standard_normal(n), 10.0),
        "random walk, small lam": (rng.standard_normal(n).cumsum(), 1.0),
    }


def agreed(y: Floats, lam: float, solvers: dict[str, Denoise]) -> dict[str, str]:
    """Peers left out of a signal, and why; the others have our objective and a feasible dual variable."""
    ours = tv_gap(y, tv_denoise(y, lam), lam)
    assert ours.excess <= 1e-8, ours  # sums along a walk of thousands, divided by a lam of 1
    left = {}
    for name, solve in solvers.items():
        theirs = tv_gap(y, solve(y.copy(), lam), lam)
        if abs(theirs.objective / ours.objective - 1.0) > 1e-9 or theirs.violation > 1e-6:
            left[name] = (
                f"objective {theirs.objective / ours.objective - 1.0:.1e}, dual {theirs.violation:.1e}"
            )
    return left


def measure(quick: bool) -> dict[str, Any]:
    """Times at 10^7 numbers (quick: 10^6), as ratios to sorting as many scores in the same round."""
    n = 1_000_000 if quick else 10_000_000
    rounds = 3 if quick else 7
    load = machine.load()
    y, s = rows(n, seed=0)
    sort = Task(partial(np.sort, s))
    solvers, content = peers(), {"n": n, "peers": [], "signals": [], "checks": []}
    content["peers"] = list(solvers)
    for name, (signal, lam) in signals(n).items():
        left = agreed(signal, lam, solvers)
        tasks = {SORT: sort, name: Task(partial(tv_denoise, signal, lam))}
        tasks |= {
            peer: Task(lambda solve=solve, signal=signal, lam=lam: solve(signal, lam))
            for peer, solve in solvers.items()
            if peer not in left
        }
        times = in_turns(tasks, rounds)
        found = [times.row(task, (SORT,)) for task in tasks]
        content["signals"].append({"signal": name, "lam": lam, "left_out": left, "rows": found})
        show(found)
        ratios = {row["task"]: row["ratio"][SORT] for row in found}
        if name in LIMITS:
            content["checks"].append(record.check(name, ratios[name], LIMITS[name], unit="× np.sort"))
            others = [ratio for task, ratio in ratios.items() if task not in (SORT, name)]
            if others:
                content["checks"].append(
                    record.check(f"{name}: beside the fastest peer", ratios[name] / min(others), 1.0)
                )
    content["own"] = own(y, s, sort, rounds)
    show(content["own"])
    for row in content["own"]:
        if row["task"] in LIMITS:
            limit = LIMITS[row["task"]]
            content["checks"].append(record.check(row["task"], row["ratio"][SORT], limit, unit="× np.sort"))
    record.save("kernels", content, quick, load)
    return content


def own(y: Any, s: Floats, sort: Task, rounds: int) -> list[dict[str, Any]]:
    """What no peer does: weights, and windows over scores."""
    n = s.size
    order = np.argsort(s)
    labels, scores = y[order].astype(np.float64), s[order]
    weight = np.random.default_rng(1).random(n) + 0.5
    lam = n * math.sqrt(math.log(4.0 * (n - 1) / 0.0025) / (8.0 * n))
    tasks = {
        SORT: sort,
        "labels by score, random weights": Task(partial(tv_denoise, labels, lam, sample_weight=weight)),
    }
    for threads in (1, 2):
        many = "s" if threads > 1 else ""
        tasks[f"box windows, scores in any order, {threads} thread{many}"] = Task(
            partial(nadaraya_watson, s, y, 0.01, n_threads=threads)
        )
        tasks[f"box windows, sorted scores, {threads} thread{many}"] = Task(
            partial(nadaraya_watson, scores, labels, 0.01, n_threads=threads)
        )
    times = in_turns(tasks, rounds)
    return [times.row(task, (SORT,)) for task in tasks]


def show(found: list[dict[str, Any]]) -> None:
    for row in found:
        print(f"{row['task']:44} {row['seconds'] * 1e3:9.1f} ms  {row['ratio'][SORT]:7.3f} x", flush=True)
