"""Sem-ECE: speed, distance to the error of the true shares by number of answers, coverage of intervals.

Populations are synthetic, with known shares and known truth; nothing is downloaded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import calcore
from bench import machine, record
from bench.clock import Task, in_turns
from calcore.semantic import (
    QuestionPopulation,
    SemanticSamples,
    compare_semantic,
    score_samples,
    semantic_confidence,
)

ANSWERS = (5, 10, 20, 30, 50, 100)
SECONDS = {
    "sem1 and sem2, 2 threads": 2.0,
}
POPULATIONS = {
    "over-confident, low margins": QuestionPopulation.by_margin([0.0, 0.05, 0.1], known=0.7),
    "right as often as given, low margins": QuestionPopulation.by_margin([0.0, 0.05, 0.1]),
    "right as often as given, all margins": QuestionPopulation.by_margin(),
    "over-confident, all margins": QuestionPopulation.by_margin(known=0.7),
    "under-confident": QuestionPopulation.by_margin([0.1, 0.2, 0.3], sharpness=4.0),
}


def measure(quick: bool) -> dict[str, Any]:
    """10^5 questions of 50 answers; a file of 100 answers cut short; samples of 200 and 1,000 questions."""
    load = machine.load()
    content: dict[str, Any] = {"own": _own(2 if quick else 7)}
    content["sweep"] = _sweep(5_000 if quick else 100_000)
    content["coverage"] = _coverage(20 if quick else 200)
    seconds = {row["task"]: row["seconds"] for row in content["own"]}
    content["checks"] = [
        record.check(f"{task}, 10^5 x 50 answers", seconds[task], limit, unit="s")
        for task, limit in SECONDS.items()
    ]
    record.save("semantic", content, quick, load)
    return content


def _both(samples: SemanticSamples, threads: int) -> None:
    semantic_confidence(samples, estimator="sem1", n_threads=threads)
    semantic_confidence(samples, estimator="sem2", n_splits=10, n_threads=threads)


def _own(rounds: int) -> list[dict[str, Any]]:
    population = POPULATIONS["right as often as given, all margins"]
    samples, other = (population.draw(100_000, 50, seed=seed) for seed in (0, 1))
    assignments = samples.classes[
        samples.codes + np.repeat(np.cumsum(samples.n_classes) - samples.n_classes, 50)
    ].reshape(-1, 50)
    tasks = {
        "sem1 and sem2, 1 thread": Task(partial(_both, samples, 1)),
        "sem1 and sem2, 2 threads": Task(partial(_both, samples, 2)),
        "SemanticSamples.of an array": Task(partial(SemanticSamples.of, samples.ids, assignments)),
        "SemanticSamples.of lists": Task(partial(SemanticSamples.of, samples.ids, assignments.tolist())),
        "truncated(20)": Task(partial(samples.truncated, 20)),
        "score_samples": Task(partial(score_samples, samples)),
        "compare_semantic of two": Task(partial(compare_semantic, {"a": samples, "b": other})),
    }
    found = in_turns(tasks, rounds)
    rows = [found.row(task) for task in tasks]
    for row in rows:
        print(f"{row['task']:40} {row['seconds']:8.3f} s", flush=True)
    return rows


def _sweep(n: int) -> list[dict[str, Any]]:
    """Errors over ten bins of the same questions, by how many of their answers are used."""
    found = []
    for name, population in POPULATIONS.items():
        samples, star = population.draw(n, max(ANSWERS)), population.ece("star")
        for answers in ANSWERS:
            cut = samples.truncated(answers)
            row: dict[str, Any] = {"population": name, "answers": answers, "n": n, "star": star}
            row["sem1_exact"] = population.ece("sem1", answers)
            row["sem2_split_exact"] = population.ece("sem2", answers, correctness="split")
            for estimator in ("sem1", "sem2"):
                own = semantic_confidence(cut, estimator=estimator)  # type: ignore[arg-type]
                row[estimator] = calcore.ece(own.y, own.confidence, n_bins=10)
                row[f"{estimator}_excess"] = float((own.confidence - own.y).mean())
            found.append(row)
            print(
                f"{name:40} N={answers:<4} ECE* {star:.4f}  Sem1 {row['sem1']:.4f}  Sem2 {row['sem2']:.4f}",
                flush=True,
            )
    return found


def _coverage(rounds: int) -> list[dict[str, Any]]:
    """How often 95 % intervals hold the error of the population, and how often a warning is given."""
    found = []
    for name, population in POPULATIONS.items():
        for answers in (10, 50):
            truth = {"sem1": population.ece("sem1", answers)}
            many = semantic_confidence(population.draw(200_000, answers, seed=10**6), estimator="sem2")
            truth["sem2"] = calcore.ece(many.y, many.confidence, n_bins=10)
            for n in (200, 1000):
                row: dict[str, Any] = {"population": name, "answers": answers, "n": n, "rounds": rounds}
                held, warned = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
                for seed in range(rounds):
                    scores = score_samples(population.draw(n, answers, seed=seed), n_resamples=399)
                    for estimator, error in truth.items():
                        own = scores.score(estimator).ece
                        held[estimator] += own.interval.lower <= error <= own.interval.upper
                        warned[estimator] += own.is_biased
                for estimator, error in truth.items():
                    row[estimator] = {
                        "truth": error,
                        "held": held[estimator] / rounds,
                        "warned": warned[estimator] / rounds,
                    }
                found.append(row)
                shares = " ".join(f"{row[estimator]['held']:.3f}" for estimator in truth)
                print(f"{name:40} N={answers:<3} n={n:<5} held {shares}", flush=True)
    return found
