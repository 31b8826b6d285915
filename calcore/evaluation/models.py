"""Several models on the same rows: each evaluated, and what the rows say of their differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from calcore import _validate
from calcore.certificates import certify
from calcore.certificates.difference import difference_of
from calcore.comparison import ModelComparison, checked_resamples, compare
from calcore.comparison.models import checked_rows
from calcore.comparison.results import plain
from calcore.evaluation.one import Evaluation, Rng, drawn_rows, evaluate_rows, numbered, sampled
from calcore.results import CertifiedDifference
from calcore.table import tabulate

__all__ = ["CURVE_BINS", "ModelsEvaluation", "evaluate_models"]

CURVE_BINS = (5, 10, 15, 20, 30, 50)
"""Numbers of equally wide bins over which models are ranked by their ECE."""

_MOST_DRAWS = 20_000

_MOST_PAIRS = 6
"""Pairs of models that the verdict names one by one."""

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
        For every pair, first less second; both intervals of all pairs hold together at `delta`.
    verdict : str
        Which models are better by the Brier score, all pairs together, and which pairs ECE ranks, in words.
    methods : str
        Sentences for the methods section of a paper, about the comparison.
    delta : float
    """

    models: tuple[Evaluation, ...]
    comparison: ModelComparison
    certified: tuple[tuple[tuple[str, str], CertifiedDifference], ...]
    verdict: str
    methods: str
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

    *Verdict.* The Brier score is proper: no distortion of the truth lowers it on average. So it decides, for
    all pairs together (Bonferroni: the best is known only after looking). Of the ECE of two models it is said
    whether one is smaller at every number of bins, and with how many of them the difference is
    distinguishable.

    *Cost.* That of `calcore.evaluate` for each model and of `calcore.compare` for all, one certificate more
    for each model, and a pass over the rows for each pair.

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
    rows = {}
    for name, each in given.items():
        with _validate.renamed("y_prob", f"models[{name!r}]"):
            rows[name] = sample.of(each)
    command = command or _call(delta, variation, pos_label, draws, number, by is not None, groups is not None)
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
        n_resamples=max(draws, min(together, _MOST_DRAWS)),
        delta=delta,
        rng=seed,
        n_threads=n_threads,
    )
    share = delta / (2 * len(pairs))  # of both differences of each pair
    alone = {
        name: certify(tabulate(each), delta=share / 2.0, variation=variation, rng=seed)
        for name, each in rows.items()
    }
    certified = []
    for a, b in pairs:
        found_ab = difference_of(rows[a], rows[b], alone[a], alone[b], share)
        certified.append(((a, b), replace(found_ab, n_dropped=sample.n_dropped)))
    return ModelsEvaluation(
        tuple(found), comparison, tuple(certified), _verdict(comparison), _methods(comparison), delta
    )


def _verdict(found: ModelComparison) -> str:
    """What the proper score decides, and whether errors over bins rank the models at all."""
    size = {name: found.estimate(name, "brier").estimate for name in found.models}
    pairs = list(itertools.combinations(found.models, 2))
    better: dict[str, list[str]] = {}
    for a, b in pairs:
        d = found.difference(a, b, "brier")
        if d.distinguishable and d.p_value <= found.delta / len(pairs):
            winner, loser = (a, b) if d.difference < 0.0 else (b, a)
            better.setdefault(winner, []).append(loser)
    best = [name for name in found.models if size[name] == min(size.values())]
    if len(set(size.values())) == 1:
        text = f"By the Brier score {_listed(best)} are equal"
    elif not better:
        has = "has" if len(best) == 1 else "have"
        text = f"By the Brier score no model is shown to be better; {_listed(best)} {has} the smallest"
    elif len(pairs) > _MOST_PAIRS:
        told = sum(map(len, better.values()))
        text = (
            f"By the Brier score {told} of {len(pairs)} pairs of models can be told apart; {_listed(best)} "
            f"{'has' if len(best) == 1 else 'have'} the smallest"
        )
    else:
        winners = sorted(better, key=size.__getitem__)
        text = "; ".join(f"{name} is better than {_listed(better[name])}" for name in winners)
        text = f"By the Brier score {text}: distinguishable"
        told_apart = {(a, b) for a, losers in better.items() for b in losers}
        left = [f"{a} from {b}" for a, b in pairs if not {(a, b), (b, a)} & told_apart]
        text += f"; not distinguishable {_listed(left)}" if left else ""
    text += f" (all pairs at {100.0 * (1.0 - found.delta):.6g} %)."
    ranked = [_by_bins(found, a, b) for a, b in pairs]
    if len(pairs) > _MOST_PAIRS:
        turning = sum(turns for turns, _ in ranked)
        return (
            f"{text} Of {len(pairs)} pairs of models ECE puts {len(pairs) - turning} in the same order with "
            f"each of {_listed(map(str, CURVE_BINS))} bins; {turning} it does not rank."
        )
    bins = f"With {_listed(map(str, CURVE_BINS))} bins"
    return f"{text} {bins}: {'; '.join(words for _, words in ranked)}."


def _methods(found: ModelComparison) -> str:
    level = f"{100.0 * (1.0 - found.delta):.6g} %"
    return (
        f"Models were compared on the same {found.n:,} rows by a paired bootstrap of {found.n_resamples:,} "
        f"resamples, the same for all models, with percentile intervals at {level}, each for itself; a "
        "difference is called distinguishable if its interval leaves out 0, and where noise of the bins "
        f"moves it, by more than both models' biases. {found.n_comparisons} differences were looked at; they "
        f"are distinguishable together at {found.corrected_delta:.3g} each (Bonferroni). Certified "
        f"differences of all pairs hold together at {level}."
    )


def _by_bins(found: ModelComparison, a: str, b: str) -> tuple[bool, str]:
    """Whether the order of two models by their ECE turns over numbers of bins, and what there is to say."""
    each = [(k, found.difference(a, b, f"ece@{k}")) for k in CURVE_BINS]
    below = [k for k, d in each if d.difference < 0.0]
    above = [k for k, d in each if d.difference > 0.0]
    if below and above:
        places = f"{a} with {_listed(map(str, below))}, {b} with {_listed(map(str, above))}"
        words = f"which of {a} and {b} has the smaller ECE depends on the bins ({places})"
        return True, f"{words}, so ECE does not rank them"
    if not below and not above:
        return False, f"{a} and {b} have the same ECE"
    shown = sum(d.distinguishable for _, d in each)
    told = {0: "with none of them distinguishable", len(each): "distinguishable with each"}
    of = told.get(shown, f"distinguishable with {shown} of the {len(each)}")
    small, large = (a, b) if below else (b, a)
    return False, f"{small} has a smaller ECE than {large}, {of}"


def _listed(words: Iterable[str]) -> str:
    """Words with commas between.

    >>> _listed("a"), _listed("ab"), _listed("abc")
    ('a', 'a and b', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _call(
    delta: float,
    variation: float | None,
    pos_label: Any,
    draws: int,
    number: int | None,
    by: bool,
    groups: bool,
) -> str:
    options = ["by=by"] * by + ["groups=groups"] * groups + [f"delta={delta!r}", f"n_resamples={draws}"]
    options += [] if variation is None else [f"variation={float(variation)!r}"]
    options += [] if pos_label is None else [f"pos_label={pos_label!r}"]
    options.append(f"rng={number}" if number is not None else "rng=rng")
    return f"calcore.evaluate_models(y_true, models, {', '.join(options)})"
