"""Exact means against enumeration of all samples, their limits, and the splits against both."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from calcore.semantic import (
    QuestionPopulation,
    SemanticSamples,
    asymptotic_bias,
    asymptotic_gap,
    expected_sem1,
    expected_sem2,
    mode_law,
    semantic_confidence,
)

Floats = NDArray[np.float64]
ROUNDING = 1e-12


def compositions(n: int, k: int) -> list[tuple[int, ...]]:
    if k == 1:
        return [(n,)]
    return [(first, *rest) for first in range(n + 1) for rest in compositions(n - first, k - 1)]


def slow_law(pi: list[float], n: int, ties: str) -> Floats:
    """All counts of n answers, with their multinomial probabilities."""
    law = np.zeros((len(pi), n + 1))
    for counts in compositions(n, len(pi)):
        probability = float(math.factorial(n))
        for share, count in zip(pi, counts, strict=True):
            probability *= share**count / math.factorial(count)
        best = [k for k in range(len(pi)) if counts[k] == max(counts)]
        for k in best if ties == "random" else best[:1]:
            law[k, counts[k]] += probability / (len(best) if ties == "random" else 1)
    return law


weights = st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any)
tie_rules: Any = st.sampled_from(["first", "random"])


@given(parts=weights, n=st.integers(1, 7), ties=tie_rules)
@settings(max_examples=60)
def test_mode_law_is_that_of_all_samples(parts: list[int], n: int, ties: Any) -> None:
    pi = [part / sum(parts) for part in parts]
    np.testing.assert_allclose(mode_law(pi, n, ties=ties), slow_law(pi, n, ties), rtol=0, atol=ROUNDING)


def test_two_classes_are_binomial() -> None:
    n, share = 31, 0.55
    law = mode_law([share, 1 - share], n)
    counts = np.arange(n + 1)
    np.testing.assert_allclose(
        law[0], np.where(2 * counts > n, binom.pmf(counts, n, share), 0.0), rtol=0, atol=ROUNDING
    )


@given(parts=weights, n=st.integers(2, 12), ties=tie_rules)
@settings(max_examples=60)
def test_one_is_too_high_and_the_other_too_low(parts: list[int], n: int, ties: Any) -> None:
    pi = [part / sum(parts) for part in parts]
    assert expected_sem1(pi, n) >= max(pi) - ROUNDING  # Jensen
    for s in (1, n // 2, n - 1):
        assert expected_sem2(pi, n, s, ties=ties) <= max(pi)
        mean = sum(p * chosen for p, chosen in zip(pi, slow_law(pi, s, ties).sum(axis=1), strict=True))
        assert abs(expected_sem2(pi, n, s, ties=ties) - mean) <= ROUNDING
    by_hand = slow_law(pi, n, "first") @ np.arange(n + 1) / n
    assert abs(expected_sem1(pi, n) - by_hand.sum()) <= ROUNDING


def test_sem2_is_the_mean_over_answers_and_splits() -> None:
    """All samples of 5 answers and all selections of 2 of them: not by way of the formula."""
    pi, n, s = [0.5, 0.3, 0.2], 5, 2
    total = 0.0
    for answers in itertools.product(range(3), repeat=n):
        probability = math.prod(pi[a] for a in answers)
        for chosen in itertools.combinations(range(n), s):
            counts = [sum(answers[i] == k for i in chosen) for k in range(3)]
            rest = [answers[i] for i in range(n) if i not in chosen]
            total += probability * rest.count(counts.index(max(counts))) / (n - s) / math.comb(n, s)
    assert abs(expected_sem2(pi, n, s) - total) <= ROUNDING
    assert expected_sem2(pi, n) == expected_sem2(pi, n, 2)


@pytest.mark.parametrize("m", [0.0, 0.3, 1.0, 2.0])
def test_limits_of_two_classes(m: float) -> None:
    """sqrt(n) times the mean is off by O(1 / n): in a selection of odd size there are no ties."""
    errors = []
    for n, s in ((50, 25), (200, 99)):
        margin = m / math.sqrt(n)
        pi = [0.5 * (1 + margin), 0.5 * (1 - margin)]
        one = math.sqrt(n) * (expected_sem1(pi, n) - pi[0] - asymptotic_bias(m, n, estimator="sem1"))
        two = expected_sem2(pi, n, s) - pi[0] - asymptotic_bias(m, n, estimator="sem2", s=s)
        errors.append([abs(one), abs(math.sqrt(n) * two)])
    assert max(errors[0]) < 0.04
    for first, second in zip(*errors, strict=True):
        assert second <= first / 3 + ROUNDING


def test_limits_with_other_classes() -> None:
    """p = .8, the rest in four small classes: standardised by sqrt(p / n)."""
    n, m, p = 100, 0.5, 0.8
    margin = m * math.sqrt(p / n)
    pi = [0.5 * (p + margin), 0.5 * (p - margin), *[0.05] * 4]
    one = expected_sem1(pi, n) - pi[0]
    assert abs(one - asymptotic_bias(m, n, estimator="sem1", p=p)) < 0.03 / math.sqrt(n)
    assert abs(one - asymptotic_bias(m, n, estimator="sem1")) > 0.015 / math.sqrt(n)  # p = 1 is off
    two = expected_sem2(pi, n, 49) - pi[0]
    assert abs(two - asymptotic_bias(m, n, estimator="sem2", s=49, p=p)) < 0.03 / math.sqrt(n)


def test_closed_forms() -> None:
    assert round(asymptotic_gap(0.0, 50), 4) == 0.0564
    for m, n, s, p in [(0.4, 50.0, 25.0, 1.0), (1.3, 20.0, 7.0, 0.6)]:
        one = math.sqrt(p / n) * (norm.pdf(m) - m * norm.cdf(-m))
        two = -math.sqrt(p / n) * m * norm.cdf(-m * math.sqrt(s / n))
        assert math.isclose(asymptotic_bias(m, n, estimator="sem1", p=p), one, rel_tol=1e-13)
        assert math.isclose(asymptotic_bias(m, n, estimator="sem2", s=s, p=p), two, rel_tol=1e-13)
        assert math.isclose(asymptotic_gap(m, n, s, p=p), one - two, rel_tol=1e-13)
    assert asymptotic_gap(math.inf, 50) == 0.0
    assert asymptotic_bias(40.0, 50, estimator="sem1") >= 0.0


@pytest.mark.parametrize(("s", "crossing"), [(0.5, 0.532), (1.0, 0.612)])
def test_biases_of_one_size(s: float, crossing: float) -> None:
    """THEORY 12.3; .612 is twice the published .306."""

    def sum_of_both(m: float) -> float:
        return asymptotic_bias(m, 1, estimator="sem1") + asymptotic_bias(m, 1, estimator="sem2", s=s)

    assert round(brentq(sum_of_both, 0.1, 3.0), 3) == crossing


@pytest.mark.parametrize("ties", ["first", "random"])
@pytest.mark.parametrize("n", [2, 7, 20])
def test_estimates_have_the_exact_means(n: int, ties: Any) -> None:
    """Simulation within five standard errors, estimated from the same draws."""
    pi = np.array([0.4, 0.35, 0.25])
    questions = 20_000
    answers = np.random.default_rng(12).choice(3, (questions, n), p=pi)
    samples = SemanticSamples.of([f"q{i}" for i in range(questions)], answers)
    for estimator, mean in (
        ("sem1", expected_sem1(pi, n)),
        ("sem2", expected_sem2(pi, n, ties=ties)),
    ):
        found = semantic_confidence(samples, estimator=estimator, ties=ties, n_splits=3).confidence  # type: ignore[arg-type]
        error = float(found.std()) / math.sqrt(questions)
        assert abs(float(found.mean()) - mean) < 5 * error


def test_observed_ties_pull_sem2_down() -> None:
    """THEORY 12.5: at an observed tie of two classes Sem2 is phi(0) / sqrt(n) below the shares, about."""
    n, questions = 48, 4000
    samples = SemanticSamples.of([f"q{i}" for i in range(questions)], [[0, 1] * (n // 2)] * questions)
    found = semantic_confidence(samples, estimator="sem2", n_splits=1).confidence
    exact = 0.5 - sum(
        math.comb(24, h) * math.comb(24, 24 - h) / math.comb(48, 24) * abs(h - 12) / 24 for h in range(25)
    )
    assert abs(float(found.mean()) - exact) < 5 * float(found.std()) / math.sqrt(questions)
    assert abs(exact - (0.5 - norm.pdf(0) / math.sqrt(n))) < 0.002


@pytest.mark.parametrize("ties", ["first", "random"])
def test_sem2_is_below_sem1_given_the_counts(ties: str) -> None:
    """(S4), by all selections of answers that are known: it depends on no shares and no grades."""
    for n in range(2, 8):
        for counts in compositions(n, 3):
            answers = [k for k, many in enumerate(counts) for _ in range(many)]
            for s in {1, n // 2, n - 1} - {0, n}:
                m, gap, largest, chosen, total = n - s, 0.0, 0.0, 0.0, 0
                for places in itertools.combinations(range(n), s):
                    inside = [sum(answers[i] == k for i in places) for k in range(3)]
                    best = [k for k in range(3) if inside[k] == max(inside)]
                    best = best[:1] if ties == "first" else best
                    total += 1
                    largest += max(inside)
                    chosen += sum(counts[k] for k in best) / len(best)
                    outside = sum(counts[k] - inside[k] for k in best) / len(best)
                    gap += max(counts) / n - outside / m
                formula = (largest / total - s * max(counts) / n + max(counts) - chosen / total) / m
                assert math.isclose(gap / total, formula, abs_tol=1e-12)
                assert formula >= -1e-12


def test_more_answers_choose_no_worse_if_ties_are_random() -> None:
    """THEORY 12.2: the share of the mode of n answers is not below that of s of them."""
    for pi in ([0.55, 0.45], [0.45, 0.55], [0.4, 0.35, 0.25], [0.34, 0.33, 0.33], [0.7, 0.2, 0.1]):
        shares = np.array(pi)
        for n in range(2, 12):
            of_all = shares @ mode_law(pi, n, ties="random").sum(axis=1)
            assert expected_sem2(pi, n, ties="random") <= of_all + ROUNDING
    # with ties to the lowest number that depends on which of s and n are even
    for n, wanted in ((5, 0.1 * (0.7975 - 0.593126875)), (10, -0.0145)):
        law = mode_law([0.55, 0.45], n, ties="first").sum(axis=1)
        difference = expected_sem2([0.55, 0.45], n, ties="first") - float(np.array([0.55, 0.45]) @ law)
        assert math.isclose(difference, wanted, abs_tol=5e-5 if n == 10 else 1e-9)


# --- populations -------------------------------------------------------------------------------------------


def test_errors_of_a_population_by_hand() -> None:
    """One kind of question, two answers: Sem1 is 1 or 1/2."""
    population = QuestionPopulation.of([1.0], [[0.75, 0.25]], [[0.5, 0.25]])
    assert population.ece("star") == 0.25
    # (both 0: 9/16, wrong half; both 1: 1/16, right 1/4) at 1, and 6/16 at 1/2 with class 0, right half
    assert math.isclose(population.ece("sem1", 2), 9 / 16 * 0.5 + 1 / 16 * 0.75)
    # one answer chooses, one is counted: (0, 0) 9/16, (1, 1) 1/16 at 1; (0, 1), (1, 0) 3/16 each at 0
    wanted = abs(9 / 16 * 0.5 + 1 / 16 * 0.75) + abs(-3 / 16 * 0.5 - 3 / 16 * 0.25)
    assert math.isclose(population.ece("sem2", 2, correctness="split"), wanted)


def test_draws_have_the_law_that_they_should() -> None:
    population = QuestionPopulation.by_margin([0.2], top_two=0.8, n_others=2, known=0.5)
    samples = population.draw(5000, 4, seed=3)
    assert samples.classes.max() == 3
    first = np.cumsum(samples.n_classes) - samples.n_classes
    counts = np.bincount(samples.classes[samples.codes + np.repeat(first, 4)])
    for count, share in zip(counts, population.shares[0], strict=True):
        assert binom.ppf(1e-7, 20_000, share) <= count <= binom.isf(1e-7, 20_000, share)
    assert samples.class_grades is not None
    tops = samples.class_grades[samples.classes == 0]
    assert binom.ppf(1e-7, tops.size, 0.25) <= tops.sum() <= binom.isf(1e-7, tops.size, 0.25)
    again = population.draw(5000, 6, seed=3).truncated(4)
    assert np.array_equal(again.codes, samples.codes)
    assert np.array_equal(again.grades, samples.grades)
    assert not np.array_equal(population.draw(5000, 4, seed=4).codes, samples.codes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [[1.0]], [[1.0]]), "weights must sum to 1"),
        (([1.0], [[0.5, 0.4]], [[0.1, 0.1]]), "shares must sum to 1"),
        (([1.0], [[0.5, 0.5]], [[0.9, 0.2]]), "right must have rows that sum to at most 1"),
        (([1.0], [[0.5, 0.5]], [[0.9]]), "must have the shapes"),
        (([1.0], [[1.5, -0.5]], [[0.0, 0.0]]), r"shares must lie in \[0, 1\]"),
    ],
)
def test_populations_refuse(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuestionPopulation.of(*arguments)


def test_expectations_refuse() -> None:
    with pytest.raises(ValueError, match=r"pi must sum to 1; got the sum 0\.9"):
        expected_sem1([0.5, 0.4], 3)
    with pytest.raises(ValueError, match=r"pi must be >= 0; got -0\.5 at index 1"):
        mode_law([1.5, -0.5], 3)
    with pytest.raises(ValueError, match="s must be at most 2"):
        expected_sem2([1.0], 3, 3)
    with pytest.raises(ValueError, match="p must be at most 1"):
        asymptotic_gap(0.0, 50, p=1.5)
    with pytest.raises(ValueError, match="s must be at most n, 50; got 60"):
        asymptotic_bias(0.0, 50, estimator="sem2", s=60)
    with pytest.raises(ValueError, match="correctness must be 'split' for 'sem2'"):
        QuestionPopulation.by_margin().ece("sem2", 10)
    with pytest.raises(ValueError, match="known must lie"):
        QuestionPopulation.by_margin(known=1.5)
    with pytest.raises(ValueError, match="margins must lie"):
        QuestionPopulation.by_margin([0.95])
    with pytest.raises(ValueError, match="top_two must be at most 1, and 1 without other classes"):
        QuestionPopulation.by_margin([0.1], n_others=0)
