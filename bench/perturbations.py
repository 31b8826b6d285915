"""The sech law of `perturb` beside a Gaussian truncated to [0, 1]: what each promises, and what it costs.

A perturbation with density proportional to k(s | t) makes eta(s) a mean of the classifier's own eta_0(t) with
weights k(s | t) / Z(t). With a = k'/k and b = k''/k (derivatives in s),

    eta' = Cov(a, eta_0),    eta'' = Cov(b - 2 E(a) a, eta_0),

and Cov(X, eta_0) over all 0 <= eta_0 <= 1 is at most E|X - E X| / 2. Its largest value over s is computed
by quadrature for classifiers with uniform scores and with those of the flights.

What holds for any classifier is known in closed form: for the sech law 1 / (2 h) and 1 / (2 h^2); for the
Gaussian, where a has a range of R = 1 / sigma^2, R / 4 and R^2 / (6 sqrt 3), which scores of 0 and 1 attain.
(For x in [0, 1] with mean m, E|(x - m)^2 - E(x - m)^2| / 2 is largest, 1 / (6 sqrt 3), if x is 0 or 1 with
chances (1 -+ 1 / sqrt 3) / 2.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bench import machine, record
from bench.parallel import in_parallel
from bench.reproduce_certificates import SEED, WIDTHS, nw
from calcore import ScoreTable, auroc, perturb
from calcore.datasets import flights_random

Floats = NDArray[np.float64]

POINTS = 1_001
"""Places s where derivatives are computed, spread evenly over [0, 1]."""
NODES = 4_000
"""Scores of the classifier in the quadrature: midpoints for uniform ones, quantiles for the flights."""


@dataclass(frozen=True, slots=True)
class Law:
    """A perturbation: sech((t - s) / scale) or exp(-(t - s)^2 / (2 scale^2)), on [0, 1]."""

    kind: Literal["sech", "Gaussian"]
    scale: float

    @property
    def deviation(self) -> float:
        """Standard deviation away from 0 and 1."""
        return 0.5 * math.pi * self.scale if self.kind == "sech" else self.scale

    @property
    def for_any(self) -> tuple[float, float]:
        """Bounds of |eta'| and |eta''| for every classifier, in closed form."""
        if self.kind == "sech":
            return 0.5 / self.scale, 0.5 / self.scale**2
        return 0.25 / self.scale**2, 1.0 / (6.0 * math.sqrt(3.0) * self.scale**4)

    def draw(self, t: Floats, rng: np.random.Generator) -> Floats:
        """Perturbed scores."""
        if self.kind == "sech":
            return perturb(t, self.scale, rng=rng)
        low, high = ndtr(-t / self.scale), ndtr((1.0 - t) / self.scale)
        drawn = t + self.scale * ndtri(low + (high - low) * rng.random(t.size))
        return np.asarray(np.clip(drawn, 0.0, 1.0))

    def derivatives(self, s: float, t: Floats) -> tuple[float, float]:
        """Largest |eta'(s)| and |eta''(s)| over all eta_0, for a classifier whose scores are `t`."""
        u = (t - s) / self.scale
        if self.kind == "sech":
            k = 1.0 / np.cosh(np.clip(u, -700.0, 700.0))
            mass = np.arctan(np.tanh(0.5 * t / self.scale)) + np.arctan(np.tanh(0.5 * (1.0 - t) / self.scale))
            a = np.tanh(u) / self.scale
            b = 2.0 * a * a
        else:
            k = np.exp(0.5 * (np.min(u * u) - u * u))
            mass = ndtr((1.0 - t) / self.scale) - ndtr(-t / self.scale)
            a = u / self.scale
            b = a * a
        weight = k / mass
        weight /= weight.sum()
        first = _half_deviation(a, weight)
        return first, _half_deviation(b - 2.0 * float(weight @ a) * a, weight)


def _half_deviation(x: Floats, weight: Floats) -> float:
    return 0.5 * float(weight @ np.abs(x - weight @ x))


def steepest(law: Law, t: Floats) -> tuple[float, float]:
    """Largest |eta'| and |eta''| over s and eta_0, for a classifier with these scores."""
    found = np.array([law.derivatives(float(s), t) for s in np.linspace(0.0, 1.0, POINTS)])
    return float(found[:, 0].max()), float(found[:, 1].max())


def laws(width: float) -> dict[str, Law]:
    """The sech law of this width, and Gaussians that match it in one respect."""
    return {
        "sech": Law("sech", width),
        "Gaussian, same standard deviation": Law("Gaussian", 0.5 * math.pi * width),
        "Gaussian, same bound of the slope": Law("Gaussian", math.sqrt(0.5 * width)),
    }


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    width: float
    name: str
    draws: int

    def entry(self) -> dict[str, Any]:
        law = laws(self.width)[self.name]
        flights = flights_random()
        y, t = flights.y_true, flights.y_prob
        middles = (np.arange(NODES) + 0.5) / NODES
        before, losses, bounds = auroc(y, t), [], []
        for draw in range(self.draws):
            key = [SEED, round(1.0 / self.width), draw]
            s = law.draw(t, np.random.default_rng(np.random.SeedSequence(key)))
            losses.append(before - auroc(y, s))
            bounds.append(nw(ScoreTable(y, s), *law.for_any))
        return {
            "width": self.width,
            "law": self.name,
            "deviation": law.deviation,
            "any": law.for_any,
            "uniform": steepest(law, middles),
            "flights": steepest(law, np.quantile(t, middles)),
            "draws": self.draws,
            "loss": float(np.mean(losses)),
            "loss_error": float(np.std(losses, ddof=1)) / math.sqrt(self.draws),
            "upper": float(np.mean(bounds)),
            "upper_error": float(np.std(bounds, ddof=1)) / math.sqrt(self.draws),
        }


def measure(quick: bool) -> dict[str, Any]:
    """Constants, loss of AUROC on the flights and the certificate `nw` there, by width and law."""
    load = machine.load()
    rows = [Row(width, name, 10 if quick else 100) for width in WIDTHS for name in laws(width)]
    content = {
        "rows": in_parallel("laws", Row.entry, rows, lambda _: 1.0),
        "n": len(flights_random().y_true),
        "checks": [],
    }
    record.save("perturbations", content, quick, load)
    return content
