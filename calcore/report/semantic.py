"""Calibration of a language model's answers as plain text; ends of intervals are rounded outwards."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR

from calcore.comparison import MetricDifference
from calcore.report.sets import _name
from calcore.report.text import _fact, _percent, _rounded
from calcore.results import Certificate, Interval
from calcore.semantic import (
    AnswerSweep,
    EstimatorScore,
    GapByMargin,
    JudgeAgreement,
    SemanticComparison,
    SemanticScores,
)

__all__ = ["agreement_text", "semantic_comparison_text", "semantic_text", "sweep_text"]

_NAMES = {"sem1": "Sem1", "sem2": "Sem2", "ver": "Ver", "logit": "Logit"}
_DIGITS = 4
_HOW_TO_READ = (
    "How to read it: a confidence is held against the grade of {answer}. Sem1 takes its "
    "share among all answers, which choosing the most frequent inflates; Sem2 its share among answers that "
    "did not choose it. Excess above 0 is over-confidence. Intervals are approximate; a certified range "
    "holds at every number of questions, if these are independent of each other."
)


def semantic_text(scores: SemanticScores, *, data: str = "", explained: bool = True, width: int = 88) -> str:
    """Scores of one model as text: errors, what differs, margins, and what they rest on.

    Parameters
    ----------
    scores : SemanticScores
    data : str, optional
        Where the questions are.
    explained : bool
        Say at the end how to read it.
    width : int
        Characters per line of prose; tables keep their own.

    Returns
    -------
    str
        Paragraphs, without a newline at the end.

    Examples
    --------
    >>> from calcore.semantic import SemanticSamples, score_samples
    >>> ids = [f"q{i}" for i in range(40)]
    >>> samples = SemanticSamples.of(ids, [[0, 0, 0, 1]] * 40, grades=[1, 0] * 20)
    >>> semantic_text(score_samples(samples, n_resamples=99)).startswith("Sem1-ECE is 0.2500, between ")
    True
    """
    width = max(width, 40)
    s = scores
    first = s.scores[0]
    sure = _percent(s.delta)
    heading = (
        f"{_NAMES[first.estimator]}-ECE is {first.ece.estimate:.{_DIGITS}f}, between "
        f"{_ends(first.ece.interval)} with {sure} confidence (by resampling), on {s.n_graded:,} graded "
        f"questions; the most frequent answer is right in {s.accuracy:.{_DIGITS}f} of them."
    )
    parts = [textwrap.fill(heading, width), _scores_table(s.scores, sure)]
    if s.differences:
        parts.append(_differences_table(s.differences, s.n_of_differences))
    parts += [_margins_table(s.margins), textwrap.fill(_low_margin(s), width)]
    parts.append("\n".join(_fact(name, text, width) for name, text in _facts(s, sure, data)))
    low = s.low_margin.warnings if s.low_margin else ()
    certified = [(each.estimator, text) for each in s.scores for text in each.certificate.warnings]
    parts += _warned(
        [
            *s.warnings,
            *(f"low margins: {text}" for text in low),
            *(f"certified error of {_NAMES[name]}: {text}" for name, text in certified),
        ],
        width,
    )
    if explained:
        answer = "the most frequent answer"
        if s.correctness == "split":
            answer += ", of Sem2 against that of the class which each split chose"
        parts.append(textwrap.fill(_HOW_TO_READ.format(answer=answer), width))
    return "\n\n".join(parts)


def semantic_comparison_text(comparison: SemanticComparison, *, width: int = 88) -> str:
    """Two files of answers to the same questions as text: accuracies, and differences of errors.

    Parameters
    ----------
    comparison : SemanticComparison
    width : int
        Characters per line of prose; tables keep their own.
    """
    c = comparison
    width = max(width, 40)
    names = [_name(model) for model in c.models]
    right = ", ".join(
        f"{name} {c.accuracy[model]:.{_DIGITS}f}" for name, model in zip(names, c.models, strict=True)
    )
    parts = [textwrap.fill(f"On {c.n:,} common graded questions, share of right answers: {right}.", width)]
    rows = [
        (_NAMES[estimator], each) for estimator, found in c.comparisons.items() for each in found.differences
    ]
    lines = [f"{f'{names[0]} minus {names[1]}':<24}  {'difference':>10}  {'lower':>8}  {'upper':>8}"]
    lines += [f"  {f'{name}: {_metric(each.metric)}':<22}  {_difference(each)}" for name, each in rows]
    parts.append("\n".join(lines))
    notes = [*c.warnings, *(text for found in c.comparisons.values() for text in found.warnings)]
    return "\n\n".join(parts + _warned(notes, width))


def agreement_text(agreement: JudgeAgreement, *, width: int = 88) -> str:
    """How two judges agree, in a few lines.

    >>> print(agreement_text(JudgeAgreement(20, 0.9, 0.75, 0.85, 0.9, 0.5)))
    Two judges of the same answers to 20 questions: Rand index 0.9000, adjusted 0.7500; the
    most frequent class is the same in 0.8500 of the questions and equally large in 0.9000;
    all classes are the same in 0.5000.
    """
    a = agreement
    return textwrap.fill(
        f"Two judges of the same answers to {a.n:,} questions: Rand index {a.rand:.{_DIGITS}f}, adjusted "
        f"{a.adjusted_rand:.{_DIGITS}f}; the most frequent class is the same in {a.same_mode:.{_DIGITS}f} of "
        f"the questions and equally large in {a.same_size:.{_DIGITS}f}; all classes are the same in "
        f"{a.identical:.{_DIGITS}f}.",
        width,
    )


def sweep_text(sweep: AnswerSweep, *, width: int = 88) -> str:
    """Errors of Sem1 and Sem2 by number of answers, as a table with a heading.

    Parameters
    ----------
    sweep : AnswerSweep
    width : int
        Characters per line of prose; the table keeps its own.

    Returns
    -------
    str
    """
    sure = _percent(sweep.scores[0].delta)
    left = f" ({sweep.n_left_out:,} with fewer answers are left out)" if sweep.n_left_out else ""
    heading = (
        f"The same {sweep.n_questions:,} questions{left}, by number of answers, with {sure} intervals of ECE:"
    )
    named = (("answers", 7), ("Sem1-ECE", 8), ("interval", 17), ("Sem2-ECE", 8), ("interval", 17))
    lines = ["  ".join(f"{name:>{size}}" for name, size in (*named, ("accuracy", 8)))]
    for n, each in zip(sweep.n_answers, sweep.scores, strict=True):
        one, two = each.score("sem1").ece, each.score("sem2").ece
        lines.append(
            f"{n:>7,}  {one.estimate:>8.4f}  {_span(one.interval):>17}  {two.estimate:>8.4f}  "
            f"{_span(two.interval):>17}  {each.accuracy:>8.4f}"
        )
    return "\n\n".join([textwrap.fill(heading, width), "\n".join(lines)])


def _scores_table(scores: Sequence[EstimatorScore], sure: str) -> str:
    lines = [
        f"{'confidence':<10}  {'questions':>9}  {'ECE':>6}  {f'{sure} interval':>17}  {'certified error':>17}"
        f"  {'mean':>6}  {'excess':>7}"
    ]
    lines += [
        f"{_NAMES[each.estimator]:<10}  {each.n:>9,}  {each.ece.estimate:>6.4f}"
        f"  {_span(each.ece.interval):>17}  {_span(each.certificate):>17}  {each.mean_confidence:>6.4f}"
        f"  {each.excess:>+7.4f}"
        for each in scores
    ]
    return "\n".join(lines)


def _differences_table(differences: Sequence[MetricDifference], questions: Sequence[int]) -> str:
    lines = [f"{'difference of':<22}  {'difference':>10}  {'lower':>8}  {'upper':>8}"]
    most = max(questions)
    for each, n in zip(differences, questions, strict=True):
        name = f"{_metric(each.metric)}: {_NAMES[each.a]} - {_NAMES[each.b]}"
        lines.append(f"{name:<22}  {_difference(each)}" + (f" ({n:,} questions)" if n < most else ""))
    return "\n".join(lines)


def _difference(each: MetricDifference) -> str:
    low = _rounded(each.interval.lower, _DIGITS, ROUND_FLOOR)
    high = _rounded(each.interval.upper, _DIGITS, ROUND_CEILING)
    biased = " (biased)" if each.is_biased else ""
    return f"{each.difference:>+10.4f}  {low:>8}  {high:>8}  {each.verdict}{biased}"


def _metric(name: str) -> str:
    return "ECE" if name.startswith("ece") else "Brier"


def _margins_table(margins: GapByMargin) -> str:
    """Buckets that hold questions."""
    lines = [
        f"{'margin':<11}  {'questions':>9}  {'graded':>7}  {'Sem1 - Sem2':>11}  {'Sem1 excess':>11}  "
        f"{'Sem2 excess':>11}"
    ]
    for b in margins.buckets:
        if b.n:
            gap, one, two = (
                "" if value is None else f"{round(value, _DIGITS) + 0.0:+.{_DIGITS}f}"
                for value in (b.gap, b.sem1_excess, b.sem2_excess)
            )
            line = f"{b.low:.2f} - {b.high:.2f}  {b.n:>9,}  {b.n_graded:>7,}  {gap:>11}  {one:>11}  {two:>11}"
            lines.append(line.rstrip())
    return "\n".join(lines)


def _low_margin(s: SemanticScores) -> str:
    low = s.low_margin
    which = f"Low margins (below 1 / sqrt(answers), {s.n_low_margin:,} questions)"
    if low is None:
        return f"{which}: {s.low_margin_note}."
    return (
        f"{which}: on {low.n:,} graded ones Sem1-ECE is {low.sem1.estimate:.{_DIGITS}f} (excess "
        f"{low.sem1_excess:+.{_DIGITS}f}), Sem2-ECE {low.sem2.estimate:.{_DIGITS}f} (excess "
        f"{low.sem2_excess:+.{_DIGITS}f}); their difference is {low.difference.verdict}"
        f"{' (biased)' if low.difference.is_biased else ''}."
    )


def _facts(s: SemanticScores, sure: str, data: str) -> list[tuple[str, str]]:
    fewest, most = s.n_answers
    answers = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    graded = {"mode": "of the most frequent class", "split": "of the class that each split chose"}[
        s.correctness
    ]
    ties = {"first": "to the lowest class number", "random": "at random"}[s.ties]
    facts = [
        ("Questions", f"{s.n_questions:,}, of which {s.n_graded:,} graded; {answers} answers to each"),
        (
            "Accuracy",
            f"{s.accuracy:.{_DIGITS}f}, between {_ends(s.accuracy_interval)} with {sure} confidence, at "
            "every number of questions",
        ),
        ("ECE", f"{s.n_bins} equally wide bins; {s.n_resamples:,} resamples of questions"),
        ("Sem2", f"{s.n_splits} random splits, seed {s.seed}; ties go {ties}; grade {graded}"),
    ]
    assumptions = dict.fromkeys(
        (_NAMES[each.estimator], each.certificate.assumption)
        for each in s.scores
        if each.certificate.assumption != "none"
    )
    facts += [("Assumption", f"of the certified error of {name}: {text}") for name, text in assumptions]
    if any(each.estimator == "ver" for each in s.scores):
        kept = s.missing_verbalized
        policy = "left out" if isinstance(kept, str) else f"counted as {kept:g}"
        facts.append(("Ver", f"mean stated confidence; {s.n_missing_verbalized:,} missing ones are {policy}"))
    return facts + ([("Data", data)] if data else [])


def _warned(texts: Sequence[str], width: int) -> list[str]:
    return [textwrap.fill(f"Warning: {text}", width, subsequent_indent="  ") for text in dict.fromkeys(texts)]


def _rounded_out(interval: Interval | Certificate) -> tuple[str, str]:
    return (
        _rounded(interval.lower, _DIGITS, ROUND_FLOOR),
        _rounded(interval.upper, _DIGITS, ROUND_CEILING),
    )


def _ends(interval: Interval) -> str:
    return " and ".join(_rounded_out(interval))


def _span(interval: Interval | Certificate) -> str:
    return " - ".join(_rounded_out(interval))
