"""Three Beta-distributed models over 5 to 50 bins, and two models whose ranking turns from 10 bins to 20.

The models' parameters, sizes and the seed were committed before the first run and have not been changed
since: the first version of this file has them, and no results. They are round numbers: scores that are mostly
large, somewhat large, and symmetric; over-confidence that is moderate, slight, and none.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special

from calcore import ece, ece_curve
from calcore.truthful import binary_lin_ce

Floats = NDArray[np.float64]

SEED = 251_006_388
N = 5_000
RESAMPLES = 200
BIN_COUNTS = tuple(range(5, 51))


@dataclass(frozen=True, slots=True)
class BetaModel:
    """Scores S ~ Beta(a, b); labels are 1 with probability eta(S), logit eta(s) = logit(s) / T."""

    name: str
    a: float
    b: float
    temperature: float
    """T; above 1 the model is over-confident."""

    def eta(self, s: Floats) -> Floats:
        rate: Floats = special.expit(special.logit(s) / self.temperature)
        return rate

    @property
    def error(self) -> float:
        """E|S - eta(S)| by quadrature; the sign changes at 1/2 alone."""
        mass = special.beta(self.a, self.b)

        def part(low: float, high: float) -> float:
            def excess(s: float) -> float:
                density = s ** (self.a - 1.0) * (1.0 - s) ** (self.b - 1.0) / mass
                return float(abs(s - self.eta(np.array(s))) * density)

            return float(integrate.quad(excess, low, high, epsabs=1e-12)[0])

        return part(0.0, 0.5) + part(0.5, 1.0)

    def rows(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], Floats]:
        """Labels and scores of `n` independent rows."""
        s = rng.beta(self.a, self.b, n)
        return (rng.random(n) < self.eta(s)).astype(np.uint8), s


MODELS = (
    BetaModel("A", 8.0, 2.0, 1.15),
    BetaModel("B", 3.0, 2.0, 1.05),
    BetaModel("C", 2.0, 2.0, 1.0),
)


@dataclass(frozen=True, slots=True)
class Resample:
    """One sample of every model."""

    number: int
    n: int = N

    def errors(self) -> dict[str, list[list[float]]]:
        """By metric and model, the error at each number of bins."""
        found: dict[str, list[list[float]]] = {"ece": [], "lin_ce": []}
        for i, model in enumerate(MODELS):
            rng = np.random.default_rng(np.random.SeedSequence([SEED, self.number, i]))
            labels, scores = model.rows(self.n, rng)
            found["ece"].append(ece_curve(labels, scores, BIN_COUNTS).ece.tolist())
            found["lin_ce"].append([binary_lin_ce(labels, scores, n_bins=count) for count in BIN_COUNTS])
        return found


def flips(first: Floats, second: Floats) -> Floats:
    """How often the ranking of two models at one number of bins is not that at another.

    `first` and `second` hold the models' errors by resample and number of bins. Entry (j, k) is the part of
    the resamples where their difference has opposite signs at the j-th and the k-th number of bins. A tie at
    either is no flip.
    """
    sign = np.sign(first - second)
    opposite = sign[:, :, None] * sign[:, None, :] < 0.0
    frequency: Floats = opposite.mean(axis=0)
    return frequency


def sweep(found: list[dict[str, list[list[float]]]]) -> dict[str, Any]:
    """Means by model and number of bins, and flips of every pair of models."""
    content: dict[str, Any] = {
        "n": N,
        "resamples": len(found),
        "seed": SEED,
        "bin_counts": list(BIN_COUNTS),
        "models": [
            {"name": m.name, "a": m.a, "b": m.b, "temperature": m.temperature, "error": m.error}
            for m in MODELS
        ],
        "metrics": {},
    }
    for metric in ("ece", "lin_ce"):
        errors = np.array([each[metric] for each in found])
        pairs = []
        for i, j in itertools.combinations(range(len(MODELS)), 2):
            frequency = flips(errors[:, i], errors[:, j])
            upper = np.triu_indices(len(BIN_COUNTS), 1)
            worst = int(np.argmax(frequency[upper]))
            sign = np.sign(errors[:, i] - errors[:, j])
            pairs.append(
                {
                    "pair": MODELS[i].name + MODELS[j].name,
                    "first_larger": (sign > 0).mean(axis=0).tolist(),
                    "flips": float(frequency[upper].mean()),
                    "worst": float(frequency[upper][worst]),
                    "worst_at": [BIN_COUNTS[int(axis[worst])] for axis in upper],
                    "any": float((sign != sign[:, :1]).any(axis=1).mean()),
                }
            )
        content["metrics"][metric] = {"means": errors.mean(axis=0).tolist(), "pairs": pairs}
    return content


# --- the mechanism


@dataclass(frozen=True, slots=True)
class Strip:
    """Scores uniform on [low, high); labels are 1 with probability s + excess."""

    low: float
    high: float
    share: float
    excess: float


A = (Strip(0.85, 0.95, 1.0, -0.03),)
"""Its bins are [.85, .9) and [.9, .95) at 10 bins and at 20: errors of .03 everywhere, both times."""

B = (
    Strip(0.55, 0.60, 0.25, 0.0),
    Strip(0.60, 0.65, 0.25, 0.08),
    Strip(0.65, 0.70, 0.25, -0.08),
    Strip(0.70, 0.75, 0.25, 0.0),
)
"""The bin [.6, .7) hides two errors of .08 that cancel; 20 bins cut it where they change their sign."""


def strip_rows(
    strips: tuple[Strip, ...], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], Floats]:
    """Labels and scores of `n` independent rows."""
    which = rng.choice(len(strips), n, p=[strip.share for strip in strips])
    low, high, excess = (
        np.array([getattr(strip, name) for strip in strips])[which] for name in ("low", "high", "excess")
    )
    s = low + (high - low) * rng.random(n)
    return (rng.random(n) < s + excess).astype(np.uint8), s


def by_hand() -> dict[str, tuple[NDArray[np.uint8], Floats]]:
    """The same with 400 rows each, whose errors can be added up by hand.

    A: 168 of 200 at .87 and 178 of 200 at .92: ECE .03 at 10 bins and at 20. B: 58 of 100 at .58, 70 at .62,
    60 at .68, 72 at .72: ECE 0 at 10 bins, where the 130 of 200 in [.6, .7) are as many as promised, and
    (8 + 8) / 400 = .04 at 20.
    """
    positive = {"A": {0.87: 168, 0.92: 178}, "B": {0.58: 58, 0.62: 70, 0.68: 60, 0.72: 72}}
    rows = {}
    for name, rates in positive.items():
        each = 400 // len(rates)
        labels = [np.arange(each) < count for count in rates.values()]
        rows[name] = np.concatenate(labels).astype(np.uint8), np.repeat(np.array(list(rates)), each)
    return rows


def mechanism(resamples: int, n: int = N) -> dict[str, Any]:
    """ECE of A and B at 10 and 20 bins: by hand, and in random samples."""
    exact = {
        name: {str(count): ece(labels, scores, n_bins=count) for count in (10, 20)}
        for name, (labels, scores) in by_hand().items()
    }
    values = np.empty((resamples, 2, 2))
    truthful = np.empty_like(values)
    for number in range(resamples):
        for i, strips in enumerate((A, B)):
            rng = np.random.default_rng(np.random.SeedSequence([SEED, 10**6 + number, i]))
            labels, scores = strip_rows(strips, n, rng)
            for j, count in enumerate((10, 20)):
                values[number, i, j] = ece(labels, scores, n_bins=count)
                truthful[number, i, j] = binary_lin_ce(labels, scores, n_bins=count)
    return {
        "by_hand": exact,
        "n": n,
        "resamples": resamples,
        "ece": values.mean(axis=0).tolist(),
        "lin_ce": truthful.mean(axis=0).tolist(),
        "flips": float(flips(values[:, 0], values[:, 1])[0, 1]),
        "lin_ce_flips": float(flips(truthful[:, 0], truthful[:, 1])[0, 1]),
    }
