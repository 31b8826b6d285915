"""Several models on the same rows: each evaluated, and what the rows say of their differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from calcore import _validate
from calcore.certificates.difference import certify_difference
from calcore.comparison import ModelComparison, checked_resamples, compare
from calcore.comparison.models import checked_rows
from calcore.comparison.results import plain
from calcore.evaluation.one import Evaluation, Rng, drawn_rows, evaluate_rows, numbered, sampled
from calcore.results import CertifiedDifference

__all__ = ["CURVE_BINS", "ModelsEvaluation", "evaluate_models"]

CURVE_BINS = (5, 10, 15, 20, 30, 50)
"""Numbers of equally wide bins over which models are ranked by their ECE."""

_MOST_DRAWS = 20_000

_METRICS = ("brier", "log_loss", *(f"ece@{k}" for k in CURVE_BINS), "lin_ce@15")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelsEvaluation:
    """Evaluations of several models on the same rows, and their differences; from `evaluate_models`.

    Attributes
    ----------
    models : tuple of Evaluation
        In the order given.
    comparison : ModelComparison
        Brier score, log loss, ECE with 5 to 50 equally wide bins and LinCE, by paired resampling.
    certified : tuple of ((str, str), CertifiedDifference)
        For every pair, first less second; all hold together at `delta`.
    verdict : str
        Which model is better by the Brier score, and whether ECE ranks them the same way, in words.
    delta : float
    """

    models: tuple[Evaluation, ...]
    comparison: ModelComparison
    certified: tuple[tuple[tuple[str, str], CertifiedDifference], ...]
    verdict: str
    delta: float

    @property
    def names(self) -> tuple[str, ...]:
        """Of the models."""
        return self.comparison.models

    def smallest(self, metric: str) -> str:
        """The model with the smallest estimate of a metric of `comparison`; of equal ones the first."""
        return min(self.names, key=lambda name: self.comparison.estimate(name, metric).estimate)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain numbers, strings, lists and dicts, ready for JSON; NaN and inf are None."""
        found = plain(self)
        found["certified"] = [
            {"models": list(pair)} | difference.to_dict() for pair, difference in self.certified
        ]
        return found

    def __repr__(self) -> str:
        return f"<ModelsEvaluation of {', '.join(self.names)}, n={self.models[0].data.n}: {self.verdict}>"


def evaluate_models(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike],
    *,
    by: Any = None,
    groups: Any = None,
    delta: float = 0.05,
    variation: float | None = None,
    n_resamples: int = 1000,
    population: str = "",
    command: str = "",
    pos_label: Any = None,
    rng: Rng = 0,
    n_threads: int | None = None,
) -> ModelsEvaluation:
    """Evaluate several models on the same rows, and say which differences the rows can show.

    Parameters
    ----------
    y_true : array_like of shape (n,)
        Labels: bool, 0/1 or -1/+1; any other pair with `pos_label`.
    models : mapping of str to array_like of shape (n,)
        Each model's probability of the positive class, in [0, 1]; at least two models.
    by, groups, delta, variation, n_resamples, population, command, pos_label, rng, n_threads
        As in `calcore.evaluate`. `delta` is that of each interval by itself; the certified differences of all
        pairs hold together.

    Returns
    -------
    ModelsEvaluation

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names it, the rule, the value and where.
    TypeError
        If an argument is of the wrong kind.

    Notes
    -----
    Several classes are not compared here: "the first choice is right" is another event for each model. See
    `calcore.ranking_verdict` and `calcore.trajectory_dominance`.

    *Resamples* of the comparison are `n_resamples`, or as many more, up to 20,000, as it takes for
    differences to be distinguishable together.

    *Verdict.* The Brier score is proper: no distortion of the truth lowers it on average. So it decides. Of
    ECE it is said whether one model has the smallest at every number of bins, and whether that difference is
    distinguishable.

    *Cost.* That of `calcore.evaluate` for each model, of `calcore.compare` for all, and of
    `calcore.certify_difference` for each pair.

    Examples
    --------
    >>> y = [0, 1] * 500
    >>> models = {"sure": [0.25, 0.75] * 500, "vague": [0.375, 0.625] * 500}
    >>> found = evaluate_models(y, models, n_resamples=99)
    >>> found.smallest("brier"), found.comparison.difference("sure", "vague", "brier").verdict
    ('sure', 'distinguishable')
    """
    if isinstance(models, Mapping) and len(models) == 1:
        raise ValueError("models must be at least two; got one: pass its scores to evaluate")
    delta = _validate.probability(delta, "delta")
    draws = checked_resamples(n_resamples, delta)
    number, seed = numbered(rng)
    given = checked_rows(y_true, models, pos_label)
    sample = drawn_rows(next(iter(given.values())), by, groups, seed)
    rows = {name: sample.of(each) for name, each in given.items()}
    command = command or _call(delta, variation, draws, number, by is not None, groups is not None)
    found = []
    for name, each in rows.items():
        with _validate.renamed("y_prob", f"models[{name!r}]"):
            one = evaluate_rows(
                each,
                sample,
                name=name,
                delta=delta,
                variation=variation,
                draws=draws,
                event="positive",
                population=population,
                command=command,
                seed=seed,
                number=number,
                n_threads=n_threads,
            )
        found.append(one)
    n = found[0].data.n
    labels, some = next(iter(rows.values())).block(0, n)[0], sampled(n, seed)
    pairs = list(itertools.combinations(rows, 2))
    together = math.ceil(2.0 * len(pairs) * len(_METRICS) / delta)
    comparison = compare(
        labels[some],
        {name: each.block(0, n)[1][some] for name, each in rows.items()},
        metrics=_METRICS,
        n_resamples=min(max(draws, together), _MOST_DRAWS),
        delta=delta,
        rng=seed,
        n_threads=n_threads,
    )
    certified = tuple(
        (
            (a, b),
            certify_difference(
                labels,
                rows[a].block(0, n)[1],
                rows[b].block(0, n)[1],
                delta=delta / len(pairs),
                variation=variation,
                rng=seed,
            ),
        )
        for a, b in pairs
    )
    return ModelsEvaluation(tuple(found), comparison, certified, _verdict(comparison), delta)


def _verdict(found: ModelComparison) -> str:
    """What the proper score decides, and whether errors over bins rank the models at all."""

    def smallest(metric: str) -> str:
        return min(found.models, key=lambda name: found.estimate(name, metric).estimate)

    best = smallest("brier")
    others = [name for name in found.models if name != best]
    beaten = [name for name in others if found.difference(best, name, "brier").distinguishable]
    level = 100.0 * (1.0 - found.delta)
    if not beaten:
        text = f"By the Brier score no model is shown to be better; {best} has the smallest"
    else:
        text = f"By the Brier score {best} is better than {_listed(beaten)}: distinguishable"
        left = [name for name in others if name not in beaten]
        text += f"; not distinguishable from {_listed(left)}" if left else ""
    text += f" (each difference at {level:.6g} %). "
    first: dict[str, list[int]] = {}
    for k in CURVE_BINS:
        first.setdefault(smallest(f"ece@{k}"), []).append(k)
    if len(first) > 1:
        places = "; ".join(f"{name} with {_listed(map(str, bins))}" for name, bins in first.items())
        text += f"Which ECE is smallest depends on the number of bins: {places}. So ECE ranks nothing here."
        return text
    (least,) = first
    shown = [
        name
        for name in found.models
        if name != least
        and all(found.difference(least, name, f"ece@{k}").distinguishable for k in CURVE_BINS)
    ]
    text += f"{least} has the smallest ECE with each of {_listed(map(str, CURVE_BINS))} bins; "
    text += (
        f"distinguishable with all of them from {_listed(shown)}"
        if shown
        else ("with some of them not distinguishable from any other")
    )
    return text + "."


def _listed(words: Iterable[str]) -> str:
    """Words with commas between.

    >>> _listed("a"), _listed("ab"), _listed("abc")
    ('a', 'a and b', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _call(
    delta: float, variation: float | None, draws: int, number: int | None, by: bool, groups: bool
) -> str:
    options = ["by=by"] * by + ["groups=groups"] * groups + [f"delta={delta:g}", f"n_resamples={draws}"]
    options += [] if variation is None else [f"variation={variation:g}"]
    options.append(f"rng={number}" if number is not None else "rng=rng")
    return f"calcore.evaluate_models(y_true, models, {', '.join(options)})"
