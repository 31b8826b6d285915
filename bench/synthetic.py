"""Calibration functions whose variation, slope, curvature and calibration error are known exactly.

Scores are uniform on an interval. Each function of this module makes one population; its docstring derives
the constants, and a test checks them by quadrature and on a fine grid. The errors of perturbed classifiers
have no closed form: they come from quadrature, and the test repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calcore import perturb, simulate

Floats = NDArray[np.float64]

BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Population:
    """Scores uniform on [low, high], and eta there."""

    name: str
    formula: str
    low: float
    high: float
    eta: Callable[[Floats], Floats]
    variation: float
    """V, the total variation of eta."""
    lipschitz: float
    """L, the largest |eta'|."""
    curvature: float
    """M, the largest |eta''|."""
    error: float
    """CE = E|S - eta(S)|."""

    def rows(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], Floats]:
        """Labels and scores of `n` independent rows, drawn a block at a time."""
        labels, scores = np.empty(n, np.uint8), np.empty(n)
        for start in range(0, n, BLOCK):
            s, y = scores[start : start + BLOCK], labels[start : start + BLOCK]
            s[:] = self.low + (self.high - self.low) * rng.random(s.size)
            y[:] = rng.random(s.size) < self.eta(s)
        return labels, scores


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A classifier whose scores t are uniform on [0, 1] and right at the rate eta_0(t); then perturbed."""

    name: str
    formula: str
    eta_0: Callable[[Floats], Floats]
    width: float
    """h of the sech law."""
    error: float
    """CE of the perturbed score, by quadrature."""

    def rows(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], Floats]:
        """Labels and perturbed scores of `n` independent rows."""
        classifier = Population("", "", 0.0, 1.0, self.eta_0, math.inf, math.inf, math.inf, math.nan)
        labels, t = classifier.rows(n, rng)
        return labels, perturb(t, self.width, rng=rng)


def square() -> Population:
    """eta(s) = s^2 on [0, 1]: V = 1, L = 2, M = 2, CE = E[S - S^2] = 1/6."""
    return Population("smooth monotone", "s²", 0.0, 1.0, simulate.square, 1.0, 2.0, 2.0, 1.0 / 6.0)


def logistic(steepness: float) -> Population:
    """eta(s) = 1/2 + tanh(k (s - 1/2) / 2) / (2 T), T = tanh(k / 4): the logistic curve, stretched to [0, 1].

    V = 1. eta' is largest at 1/2: L = k / (4 T). |eta''| is largest where cosh(k (s - 1/2)) = 2, which is
    inside for k >= 2 ln(2 + sqrt 3): M = k^2 / (6 sqrt(3) T). s - eta(s) is 0 at 0, 1/2 and 1 alone and of
    opposite sign on the two sides of 1/2, so CE = 2 int_0^{1/2} (s - eta) = 2 ln cosh(k / 4) / (k T) - 1/4.
    """
    k, top = steepness, math.tanh(steepness / 4.0)

    def eta(s: Floats) -> Floats:
        return np.asarray(0.5 + np.tanh(0.5 * k * (s - 0.5)) / (2.0 * top))

    return Population(
        "steep logistic",
        f"½ + tanh({k / 2:g}(s − ½)) / (2 tanh {k / 4:g})",
        0.0,
        1.0,
        eta,
        1.0,
        k / (4.0 * top),
        k * k / (6.0 * math.sqrt(3.0) * top),
        2.0 * math.log(math.cosh(k / 4.0)) / (k * top) - 0.25,
    )


def wave(name: str, inverse: int, periods: int) -> Population:
    """eta(s) = s + a sin(w (s - a)), a = 1 / inverse, on [a, 1 - a], w = 2 pi periods / (1 - 2 a).

    L = 1 + a w, M = a w^2, CE = a E|sin| = 2 a / pi. With B = a w > 1, eta' = 1 + B cos is negative on
    an arc of half width A = arccos(1 / B) in each period, so V = (periods / w) int_0^{2 pi} |1 + B cos| =
    (periods / w) (2 pi + 4 (sqrt(B^2 - 1) - A)). In every bin of whole periods E(S - eta(S)) = 0.
    """
    a = 1.0 / inverse
    w = 2.0 * math.pi * periods / (1.0 - 2.0 * a)
    b = a * w

    def eta(s: Floats) -> Floats:
        return np.asarray(s + a * np.sin(w * (s - a)))

    return Population(
        name,
        f"s + sin({w / math.pi:g}π(s − 1/{inverse}))/{inverse}",
        a,
        1.0 - a,
        eta,
        periods / w * (2.0 * math.pi + 4.0 * (math.sqrt(b * b - 1.0) - math.acos(1.0 / b))),
        1.0 + b,
        b * w,
        2.0 * a / math.pi,
    )


POPULATIONS = (
    square(),
    logistic(32.0),
    wave("oscillating", 4, 2),
    wave("hidden from 15 bins", 3, 5),  # one period in each bin of width 1/15: the binned error tends to 0
)

PERTURBED = (
    Perturbed("calibrated, perturbed", "t", lambda t: t, 2.0**-6, 0.000456606),
    Perturbed(
        "square wave, perturbed", "⌊16t⌋ mod 2", lambda t: np.floor(16.0 * t) % 2.0, 2.0**-6, 0.2769997
    ),
)
