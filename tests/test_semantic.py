"""Sem-ECE: samples, confidences, scores and comparisons, against loops over questions."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

import calcore
from calcore.semantic import (
    QuestionPopulation,
    SemanticSamples,
    compare_semantic,
    expected_sem1,
    expected_sem2,
    gap_by_margin,
    score_samples,
    semantic_confidence,
    semantic_margins,
    sweep_answers,
)
from calcore.semantic.scoring import _verbalized_means

Floats = NDArray[np.float64]

# ------------------------------------------------------------------------------------------- slow versions


def slow_ece(y: Sequence[float], c: Sequence[float], n_bins: int = 10) -> float:
    """Equally wide bins, closed on the left."""
    gaps: dict[int, list[float]] = {}
    for label, confidence in zip(y, c, strict=True):
        b = max(j for j in range(n_bins) if j / n_bins <= confidence)
        gaps.setdefault(b, []).append(label - confidence)
    return sum(abs(math.fsum(own)) for own in gaps.values()) / len(y)


def mode_of(answers: Sequence[int]) -> int:
    counts = Counter(answers)
    return min(counts, key=lambda c: (-counts[c], c))


def drawn(n: int = 60, answers: int = 10, seed: int = 0) -> SemanticSamples:
    return QuestionPopulation.by_margin().draw(n, answers, seed=seed)


def ragged(seed: int = 0, n: int = 80) -> tuple[list[str], list[list[int]], list[dict[int, Any]], list[Any]]:
    rng = np.random.default_rng(seed)
    answers = [rng.integers(0, 4, rng.integers(2, 9)).tolist() for _ in range(n)]
    grades = [{k: [1, 0, 0, None][rng.integers(0, 4)] for k in range(4)} for _ in range(n)]
    stated = [[None if rng.random() < 0.2 else float(rng.random()) for _ in own] for own in answers]
    return [f"id-{i}" for i in range(n)], answers, grades, stated


# --- samples -----------------------------------------------------------------------------------------------


def test_grades_in_every_form_are_the_same() -> None:
    ids, answers = ["a", "b", "c"], [[3, 3, 1], [0, 2, 2, 0], [5, 5]]
    by_mode = SemanticSamples.of(ids, answers, grades=[1, 0, None])
    by_class = SemanticSamples.of(ids, answers, class_grades=[{3: 1, 1: 0}, [0, None, 1], None])
    for found in (by_mode, by_class):
        np.testing.assert_array_equal(found.grades, [1.0, 0.0, np.nan])
        assert found.n_graded == 2
    assert by_mode.class_grades is None
    assert by_class.class_grades is not None
    np.testing.assert_array_equal(by_class.class_grades, [0.0, 1.0, 0.0, 1.0, np.nan])
    for missing in (None, -1, math.nan, np.nan, np.float32("nan")):
        assert SemanticSamples.of(["a"], [[0, 0]], grades=[missing]).n_graded == 0
    for known in (1, 1.0, True, np.int8(1), np.bool_(True)):
        assert SemanticSamples.of(["a"], [[0, 0]], grades=[known]).grades[0] == 1.0
    both = SemanticSamples.of(ids, answers, grades=[1, 0, 1], class_grades=[{1: 0}, {2: 1}, None])
    np.testing.assert_array_equal(both.class_grades, [0.0, 1.0, 0.0, 1.0, 1.0])


def test_array_and_lists_are_the_same() -> None:
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 3, (7, 5))
    stated = np.where(rng.random((7, 5)) < 0.3, np.nan, rng.random((7, 5)))
    ids = list("abcdefg")
    one = SemanticSamples.of(ids, answers, verbalized=stated)
    listed = [[None if math.isnan(v) else v for v in row] for row in stated.tolist()]
    two = SemanticSamples.of(tuple(ids), answers.tolist(), verbalized=listed)
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(one.verbalized, two.verbalized)
    assert one.verbalized_means is None
    means = SemanticSamples.of(ids, answers, verbalized=[0.5] * 6 + [None])
    np.testing.assert_array_equal(means.verbalized_means, [0.5] * 6 + [np.nan])
    answers[:] = 0
    assert one.n_classes.max() > 1  # a copy


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"ids": "ab"}, TypeError, "ids must be a sequence of str, one per question; got str"),
        ({"ids": []}, ValueError, "ids must name at least one question"),
        ({"ids": ["a", 7]}, TypeError, "ids must be of type str; got 7 at index 1"),
        ({"ids": ["a", "a"]}, ValueError, "ids must be different; got 'a' at index 0 and 1"),
        ({"ids": ["a"]}, ValueError, "assignments must have one entry per question, 1; got 2"),
        ({"assignments": [[0], [0, 1]]}, ValueError, "at least 2 answers .* got 1 for question 'a'"),
        ({"assignments": [[0, -1], [0, 1]]}, ValueError, "whole numbers >= 0; got -1 for question 'a'"),
        ({"assignments": [[0, 1], [0, 0.5]]}, TypeError, "got 0.5 for answer 1 of question 'b'"),
        ({"assignments": [[0, 1], [0, None]]}, TypeError, "got None for answer 1 of question 'b'"),
        ({"assignments": [[0, 1], [0, "x"]]}, TypeError, "got 'x' for answer 1 of question 'b'"),
        ({"assignments": [[0, 1], [0, True]]}, TypeError, "got True for answer 1 of question 'b'"),
        ({"assignments": [[0, 1], "01"]}, TypeError, "got str for question 'b'"),
        ({"assignments": np.zeros((2, 3))}, TypeError, "assignments must be whole numbers"),
        ({"assignments": [[0, 1], [0, 2**63]]}, TypeError, "whole numbers below 2\\^63"),
        ({"grades": [1, 2]}, ValueError, "grades must be 1, 0 or missing .* got 2 for question 'b'"),
        ({"grades": [1, "x"]}, TypeError, "grades must be 1, 0 or missing .* got 'x' for question 'b'"),
        ({"grades": [1]}, ValueError, "grades must have one entry per question, 2; got 1"),
        ({"class_grades": [{0: 1}, {0: 3}]}, ValueError, "got 3 for class 0 of question 'b'"),
        ({"class_grades": [{"0": 1}, None]}, TypeError, "whole numbers as classes; got '0'"),
        ({"class_grades": [1, 0]}, TypeError, "class_grades must hold a mapping"),
        (
            {"grades": [1, 0], "class_grades": [{0: 0}, None]},
            ValueError,
            "grades must agree with class_grades; got 1 for the mode of question 'a', class 0, .* is 0",
        ),
        ({"verbalized": [[0.5, 0.5], [0.5]]}, ValueError, "one entry per answer, 2; got 1 for question 'b'"),
        ({"verbalized": [0.5, 85]}, ValueError, "got 85 for question 'b': percent must be divided by 100"),
        ({"verbalized": np.array([[0.5, 1.5], [0, 0]])}, ValueError, "got 1.5 for question 'a': percent"),
        ({"verbalized": np.zeros((2, 3))}, ValueError, "verbalized must have the shape of assignments"),
        ({"verbalized": [0.5, [0.5, 0.5]]}, TypeError, "got 0.5 for question 'a'"),
        ({"logit": [0.5, -0.1]}, ValueError, "logit must be numbers in \\[0, 1\\] .* got -0.1 for question"),
    ],
)
def test_samples_refuse(changes: dict[str, Any], kind: type[Exception], message: str) -> None:
    given_: dict[str, Any] = {"ids": ["a", "b"], "assignments": [[0, 0], [1, 0]]} | changes
    with pytest.raises(kind, match=message):
        SemanticSamples.of(given_.pop("ids"), given_.pop("assignments"), **given_)


def test_truncated_grades() -> None:
    """The mode of the first two answers of "a" is another class."""
    ids, answers = ["a", "b", "c"], [[0, 0, 1, 1, 1], [1, 1, 1, 1, 0], [0, 1]]
    table = [{0: 0, 1: 1}, {1: 0}, {0: 1}]
    own = SemanticSamples.of(ids, answers, class_grades=table, verbalized=[[0.5] * 5, [0.25] * 5, [1, 1]])
    cut = own.truncated(3)
    assert cut.ids == ("a", "b")
    assert cut.sizes.tolist() == [3, 3]
    np.testing.assert_array_equal(cut.grades, [0.0, 0.0])
    assert cut.verbalized is not None
    assert len(cut.verbalized) == 6
    kept = SemanticSamples.of(ids, answers, grades=[1, 0, 1]).truncated(3)
    np.testing.assert_array_equal(kept.grades, [1.0, 0.0])  # of the deployed answer
    means = SemanticSamples.of(ids, answers, verbalized=[0.5, 0.5, 0.5])
    assert means.truncated(5).verbalized_means is None
    with pytest.raises(ValueError, match="n must be at most 5, the most answers of any; got 6"):
        own.truncated(6)
    whole = drawn(answers=4)
    assert whole.truncated(4).ids == whole.ids


def test_take() -> None:
    ids, answers, grades, stated = ragged()
    samples = SemanticSamples.of(ids, answers, class_grades=grades, verbalized=stated)
    order = np.random.default_rng(1).permutation(len(ids))
    taken = samples.take(order)
    again = SemanticSamples.of(
        [ids[i] for i in order],
        [answers[i] for i in order],
        class_grades=[grades[i] for i in order],
        verbalized=[stated[i] for i in order],
    )
    for name in ("offsets", "codes", "n_classes", "classes", "class_grades", "grades", "verbalized"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(again, name))
    with pytest.raises(ValueError, match="different positions from 0 to 79"):
        samples.take([0, 0])


def test_records_are_frozen_and_travel() -> None:
    samples = drawn()
    found = semantic_confidence(samples, estimator="sem2", correctness="split")
    for record in (samples, found, found.rows(), semantic_margins(samples)):
        for other in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record)):
            for name in record.__slots__:
                value, same = getattr(record, name), getattr(other, name)
                np.testing.assert_array_equal(value, same)
                assert not isinstance(same, np.ndarray) or not same.flags.writeable
        assert len(repr(record)) < 110


# --- confidences -------------------------------------------------------------------------------------------


def test_order_threads_and_subsets_change_nothing() -> None:
    population = QuestionPopulation.by_margin()
    samples = population.draw(5000, 9)
    order = np.random.default_rng(0).permutation(5000)
    for ties in ("first", "random"):
        whole = semantic_confidence(samples, estimator="sem2", ties=ties, seed=3, n_threads=1)  # type: ignore[arg-type]
        threads = semantic_confidence(samples, estimator="sem2", ties=ties, seed=3, n_threads=4)  # type: ignore[arg-type]
        some = semantic_confidence(samples.take(order[:999]), estimator="sem2", ties=ties, seed=3)  # type: ignore[arg-type]
        assert np.array_equal(whole.split_hits, threads.split_hits)  # type: ignore[arg-type]
        assert np.array_equal(whole.split_modes[order[:999]], some.split_modes)  # type: ignore[index, arg-type]
        assert np.array_equal(whole.mode[order[:999]], some.mode)
    other = semantic_confidence(samples, estimator="sem2", seed=4)
    assert not np.array_equal(whole.hits, other.hits)
    fewer = semantic_confidence(samples, estimator="sem2", n_splits=3, ties="random", seed=3)
    assert np.array_equal(fewer.split_hits, whole.split_hits[:, :3])  # type: ignore[index, arg-type]


def test_atoms_survive() -> None:
    """2 of 4 and 10 of 20 are one number, whatever the number of answers."""
    samples = SemanticSamples.of(["a", "b"], [[0, 0, 1, 2], [0] * 10 + [*range(1, 11)]])
    found = semantic_confidence(samples, estimator="sem1").confidence
    assert found[0] == found[1] == 0.5


@pytest.mark.parametrize("n", [2, 3, 8])
def test_ends(n: int) -> None:
    """One class: 1 in every way. All different: 1 / N, and 0 held out."""
    samples = SemanticSamples.of(["same", "other"], [[4] * n, list(range(n))], grades=[1, 0])
    assert semantic_confidence(samples, estimator="sem1").confidence.tolist() == [1.0, 1.0 / n]
    assert semantic_confidence(samples, estimator="sem2").confidence.tolist() == [1.0, 0.0]


def test_split_grades() -> None:
    """Each split is graded by its own class, and a question only if all of them are."""
    ids, answers, grades, _ = ragged()
    found = semantic_confidence(
        SemanticSamples.of(ids, answers, class_grades=grades), estimator="sem2", correctness="split"
    )
    assert found.split_hits is not None
    assert found.split_modes is not None
    wanted = []
    for q, own in enumerate(answers):
        of_splits = [grades[q][k] for k in found.split_modes[q].tolist()]
        if grades[q][mode_of(own)] is None or None in of_splits:
            assert math.isnan(found.y[q])
            continue
        assert math.isclose(found.y[q], sum(of_splits) / 10)
        m = len(own) - len(own) // 2
        wanted += [(y, h / m, q) for y, h in zip(of_splits, found.split_hits[q].tolist(), strict=True)]
    rows = found.rows()
    assert (
        list(zip(rows.y_true.tolist(), rows.y_prob.tolist(), rows.question.tolist(), strict=True)) == wanted
    )
    assert 0 < len(wanted) < 10 * len(ids)


def test_random_ties_need_class_grades() -> None:
    ids = [f"q{i}" for i in range(40)]
    samples = SemanticSamples.of(ids, [[0, 1]] * 40, grades=[1] * 40)
    found = semantic_confidence(samples, estimator="sem1", ties="random")
    np.testing.assert_array_equal(found.y, np.where(found.mode == 0, 1.0, np.nan))
    assert 0 < np.isnan(found.y).sum() < 40
    table = SemanticSamples.of(ids, [[0, 1]] * 40, class_grades=[[1, 0]] * 40)
    both = semantic_confidence(table, estimator="sem1", ties="random")
    np.testing.assert_array_equal(both.y, 1 - both.mode)


def test_confidence_refuses() -> None:
    samples = SemanticSamples.of(["a"], [[0, 1]], grades=[1])
    with pytest.raises(ValueError, match="correctness must be 'mode' where only modes are graded"):
        semantic_confidence(samples, estimator="sem2", correctness="split")
    with pytest.raises(ValueError, match="estimator must be one of 'sem1', 'sem2'; got 'sem3'"):
        semantic_confidence(samples, estimator="sem3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"samples must be SemanticSamples, from SemanticSamples\.of"):
        semantic_confidence([[0, 1]], estimator="sem1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed must lie between 0"):
        semantic_confidence(samples, estimator="sem2", seed=-1)
    with pytest.raises(TypeError, match="seed must be a whole number; got bool"):
        semantic_confidence(samples, estimator="sem2", seed=True)
    with pytest.raises(ValueError, match="n_splits must be a whole number >= 1"):
        semantic_confidence(samples, estimator="sem2", n_splits=0)


# --- margins -----------------------------------------------------------------------------------------------


def test_margins_by_hand() -> None:
    """9 and 4 of 16: delta 5/16, p 13/16, m = 5 / sqrt(13)."""
    found = semantic_margins(SemanticSamples.of(["a"], [[0] * 9 + [1] * 4 + [2, 3, 4]]))
    assert found.delta[0] == 5 / 16
    assert found.p[0] == 13 / 16
    assert math.isclose(found.m[0], 5 / math.sqrt(13))
    assert math.isclose(found.lam[0], 2.5 / math.sqrt(13))
    assert math.isclose(found.m_two_classes[0], 4 * 5 / 16)
    assert not found.low[0]
    agreed = semantic_margins(SemanticSamples.of(["a"], [[7] * 25]))
    assert (agreed.delta[0], agreed.p[0], agreed.m[0]) == (1.0, 1.0, 5.0)
    edge = semantic_margins(SemanticSamples.of(["a"], [[0] * 6 + [1] * 2 + [*range(2, 10)]]))
    assert not edge.low[0]  # 4 / 16 is 1 / sqrt(16): not below


def test_buckets() -> None:
    samples = drawn(300)
    one, two = (semantic_confidence(samples, estimator=name) for name in ("sem1", "sem2"))  # type: ignore[arg-type]
    found = gap_by_margin(samples, one, two)
    margins = semantic_margins(samples).delta
    gaps = one.confidence - two.confidence
    assert sum(bucket.n for bucket in found.buckets) == 300
    for b, bucket in enumerate(found.buckets):
        own = (margins >= b / 10) & ((margins < (b + 1) / 10) if b < 9 else (margins <= 1))
        assert bucket.n == bucket.n_graded == own.sum()
        if own.sum() > 1:
            assert bucket.gap is not None
            assert math.isclose(bucket.gap, gaps[own].mean())
            assert math.isclose(bucket.standard_error or 0, gaps[own].std(ddof=1) / math.sqrt(own.sum()))
            assert math.isclose(bucket.sem2_excess or 0, (two.confidence - two.y)[own].mean(), abs_tol=1e-12)
    assert math.isclose(found.gap, gaps.mean())
    with pytest.raises(ValueError, match="sem2 must be the confidences of that estimator for these samples"):
        gap_by_margin(samples, one, one)
    ax = found.plot()
    assert ax.get_ylabel() == "Sem1 less Sem2"
    plt.close("all")


# --- scores ------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_parts() -> None:
    ids, answers, grades, stated = ragged(n=200)
    logit = np.where(np.random.default_rng(3).random(200) < 0.3, np.nan, 0.37)
    samples = SemanticSamples.of(ids, answers, class_grades=grades, verbalized=stated, logit=logit)
    found = score_samples(samples, n_resamples=99)
    y = [grades[q][mode_of(answers[q])] for q in range(200)]
    known = [q for q in range(200) if y[q] is not None]
    labels = [y[q] for q in known]
    assert found.n_graded == len(known) < found.n_questions == 200
    assert found.accuracy == sum(labels) / len(known)
    assert found.accuracy_interval.lower < found.accuracy < found.accuracy_interval.upper
    one, two = (semantic_confidence(samples, estimator=name).confidence for name in ("sem1", "sem2"))  # type: ignore[arg-type]
    filled = [[1.0 if v is None else v for v in row] for row in stated]
    ver = [sum(row) / len(row) for row in filled]
    for name, values in (("sem1", one), ("sem2", two), ("ver", np.array(ver))):
        score = found.score(name)
        own = values[known].tolist()
        assert math.isclose(score.ece.estimate, slow_ece(labels, own), abs_tol=1e-12)
        assert math.isclose(
            score.brier.estimate, sum((a - b) ** 2 for a, b in zip(own, labels, strict=True)) / len(own)
        )
        assert math.isclose(score.excess, sum(own) / len(own) - found.accuracy, abs_tol=1e-12)
        assert score.n == score.certificate.n == len(known)
    with_logit = [q for q in known if not math.isnan(logit[q])]
    score = found.score("logit")
    assert score.n == len(with_logit)
    assert math.isclose(score.ece.estimate, abs(0.37 - sum(y[q] for q in with_logit) / len(with_logit)))
    pairs = list(zip(found.differences, found.n_of_differences, strict=True))
    assert {n for d, n in pairs if "logit" in (d.a, d.b)} == {len(with_logit)}
    assert {n for d, n in pairs if "logit" not in (d.a, d.b)} == {len(known)}
    apart = found.difference("sem1", "logit", "ece")
    some = slow_ece([y[q] for q in with_logit], one[with_logit].tolist())
    assert math.isclose(apart.difference, some - score.ece.estimate, abs_tol=1e-12)
    assert any("are not graded" in text for text in found.warnings)
    assert any("logit: " in text for text in found.warnings)
    assert any("stated confidences are missing, counted as 1" in text for text in found.warnings)
    assert any("questions have 2 to 8 answers" in text for text in found.warnings)


def test_missing_stated_confidences() -> None:
    ids = [f"q{i}" for i in range(30)]
    stated = [[0.5, None], [0.25, 0.75], [None, None]] * 10
    samples = SemanticSamples.of(ids, [[0, 0]] * 30, grades=[1, 0, 1] * 10, verbalized=stated)
    as_one = score_samples(samples, n_resamples=99).score("ver")
    assert (as_one.n, as_one.mean_confidence) == (30, 0.75)
    as_zero = score_samples(samples, n_resamples=99, missing_verbalized=0.0).score("ver")
    assert as_zero.mean_confidence == 0.25
    dropped = score_samples(samples, n_resamples=99, missing_verbalized="drop")
    assert (dropped.score("ver").n, dropped.score("ver").mean_confidence) == (20, 0.5)
    assert dropped.n_missing_verbalized == 30
    means = SemanticSamples.of(ids, [[0, 0]] * 30, grades=[1, 0, 1] * 10, verbalized=[0.5, 0.5, None] * 10)
    assert score_samples(means, n_resamples=99, missing_verbalized="drop").score("ver").n == 20
    for wrong in ("keep", 1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match="missing_verbalized must"):
            score_samples(samples, missing_verbalized=wrong)  # type: ignore[arg-type]


def test_scores_in_any_order_and_on_any_threads() -> None:
    samples = drawn(400)
    order = np.random.default_rng(0).permutation(400)
    one = score_samples(samples, n_resamples=99, n_threads=1, correctness="split").to_dict()
    two = score_samples(samples.take(order), n_resamples=99, n_threads=3, correctness="split").to_dict()
    assert json.dumps(one, allow_nan=False) == json.dumps(two, allow_nan=False)


def test_scores_by_split() -> None:
    samples = drawn(200)
    found = score_samples(samples, n_resamples=99, correctness="split", n_splits=4)
    rows = semantic_confidence(samples, estimator="sem2", correctness="split", n_splits=4).rows()
    assert len(rows) == 800
    score = found.score("sem2")
    assert score.n == score.certificate.n == 200  # one row of each question
    assert score.certificate.n_dropped == 600
    assert math.isclose(score.ece.estimate, calcore.ece(rows.y_true, rows.y_prob, n_bins=10))
    whole = score_samples(samples, n_resamples=99)
    assert found.score("sem1").ece.estimate == whole.score("sem1").ece.estimate
    assert found.accuracy == whole.accuracy


def test_splits_of_a_question_are_drawn_together() -> None:
    """Four equal rows to a question: the error of a mean is that of 300 questions, not of 1200 rows."""
    n = 300
    right = [[i % 3 > 0] for i in range(n)]
    samples = SemanticSamples.of([f"q{i}" for i in range(n)], [[0, 0]] * n, class_grades=right)
    found = score_samples(samples, n_resamples=999, correctness="split", n_splits=4)
    for estimator in ("sem1", "sem2"):
        error = found.score(estimator).brier.standard_error
        assert error is not None
        assert abs(error / math.sqrt(2 / 9 / n) - 1) < 5 / math.sqrt(2 * 999)


def test_certificates_assume_nothing() -> None:
    found = score_samples(drawn(300), n_resamples=99)
    for score in found.scores:
        assert score.certificate.assumption == "none"
        assert score.certificate.delta == 0.05


def test_low_margins() -> None:
    samples = QuestionPopulation.by_margin([0.0, 0.8], top_two=1.0, n_others=0).draw(200, 25)
    found = score_samples(samples, n_resamples=99)
    one, two = (semantic_confidence(samples, estimator=name) for name in ("sem1", "sem2"))  # type: ignore[arg-type]
    low = semantic_margins(samples).low
    assert found.n_low_margin == low.sum()
    assert found.low_margin is not None
    assert found.low_margin.n == low.sum()
    assert math.isclose(found.low_margin.sem1.estimate, slow_ece(one.y[low], one.confidence[low]))
    assert math.isclose(found.low_margin.sem2.estimate, slow_ece(two.y[low], two.confidence[low]))
    assert math.isclose(found.low_margin.sem2_excess, (two.confidence - two.y)[low].mean())
    few = np.concatenate([np.flatnonzero(low)[:29], np.flatnonzero(~low)])
    none = score_samples(samples.take(few), n_resamples=99)
    assert none.low_margin is None
    assert none.low_margin_note == "29 graded questions have a low margin; that takes at least 30"
    enough = np.concatenate([np.flatnonzero(low)[:30], np.flatnonzero(~low)])
    assert score_samples(samples.take(enough), n_resamples=99).low_margin is not None


def test_few_of_a_grade_decide_nothing() -> None:
    """All are sure; nine are wrong: no difference counts as shown."""
    n = 60
    answers = [[0, 0, 0, 1]] * n
    right = [0] * 9 + [1] * (n - 9)
    samples = SemanticSamples.of([f"q{i}" for i in range(n)], answers, grades=right, logit=[0.1] * n)
    found = score_samples(samples, n_resamples=199)
    assert not any(each.distinguishable for each in found.differences)
    assert any("fewer than 10 of either grade decide nothing" in text for text in found.warnings)
    more = SemanticSamples.of(
        [f"q{i}" for i in range(n)], answers, grades=[0] * 10 + [1] * (n - 10), logit=[0.1] * n
    )
    assert any(each.distinguishable for each in score_samples(more, n_resamples=199).differences)


def test_one_question() -> None:
    found = score_samples(SemanticSamples.of(["a", "b"], [[0, 0, 1]] * 2, grades=[1, None]), n_resamples=99)
    assert (found.n_graded, found.accuracy, found.score("sem1").ece.estimate) == (1, 1.0, 1 - 2 / 3)
    few = SemanticSamples.of(list("abcd"), [[0, 0]] * 4, grades=[1, 0, 1, 1], logit=[None, 0.5, None, None])
    assert score_samples(few, n_resamples=99).score("logit").n == 1
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.margins.buckets[3].gap is not None


def test_nothing_graded() -> None:
    with pytest.raises(ValueError, match="at least one question that is graded; got none"):
        score_samples(SemanticSamples.of(["a"], [[0, 1]]))
    table = SemanticSamples.of(["a"], [[0, 0, 1]], class_grades=[None])
    with pytest.raises(ValueError, match="by every class that a split chose; got none"):
        score_samples(table, correctness="split")


# --- models ------------------------------------------------------------------------------------------------


def test_models_are_compared_on_common_graded_questions() -> None:
    one, two = drawn(200, 8, seed=1), drawn(300, 12, seed=2)
    shuffled = two.take(np.random.default_rng(0).permutation(300)[:250])
    found = compare_semantic({"a": one, "b": shuffled}, n_resamples=199)
    common = sorted(set(one.ids) & set(shuffled.ids))
    assert found.n == len(common)
    assert found.n_left_out == {"a": 200 - len(common), "b": 250 - len(common)}
    for name, samples in (("a", one), ("b", two)):
        index = [samples.ids.index(question) for question in common]
        for estimator in ("sem1", "sem2"):
            own = semantic_confidence(samples, estimator=estimator)  # type: ignore[arg-type]
            error = slow_ece(own.y[index], own.confidence[index])
            estimate = found.comparisons[estimator].estimate(name, "ece@10").estimate
            assert math.isclose(estimate, error, abs_tol=1e-12)
        assert found.accuracy[name] == own.y[index].mean()
    json.dumps(found.to_dict(), allow_nan=False)
    same = compare_semantic({"x": one, "y": one}, n_resamples=199)
    for compared in same.comparisons.values():
        assert all((each.difference, each.interval.upper) == (0.0, 0.0) for each in compared.differences)
        assert not any(each.distinguishable for each in compared.differences)


def test_difference_of_models_is_paired() -> None:
    """Against resamples of questions by explicit indices: the standard error of a paired Brier difference."""
    one, two = drawn(500, 8, seed=1), drawn(500, 8, seed=2)
    found = compare_semantic({"a": one, "b": two}, estimators=["sem1"], n_resamples=999)
    brier = [
        (semantic_confidence(s, estimator="sem1").confidence - semantic_confidence(s, estimator="sem1").y)
        ** 2
        for s in (one, two)
    ]
    difference = found.comparisons["sem1"].difference("a", "b", "brier")
    assert math.isclose(difference.difference, brier[0].mean() - brier[1].mean(), abs_tol=1e-12)
    exact = (brier[0] - brier[1]).std() / math.sqrt(500)
    assert abs(difference.standard_error / exact - 1) < 5 / math.sqrt(2 * 999)


def test_few_of_a_grade_in_any_model_decide_nothing() -> None:
    ids, half = [f"q{i}" for i in range(100)], [0, 1] * 50
    one = SemanticSamples.of(ids, [[0, 0, 0, 1]] * 100, grades=half)
    for wrong, decides in ((9, False), (10, True)):
        two = SemanticSamples.of(ids, [[0, 0, 0, 0]] * 100, grades=[0] * wrong + [1] * (100 - wrong))
        found = compare_semantic({"a": one, "b": two}, estimators=["sem1"], n_resamples=199)
        assert found.comparisons["sem1"].difference("a", "b", "brier").distinguishable == decides


def test_ungraded_common_questions_are_counted() -> None:
    ids = [f"q{i}" for i in range(40)]
    one = SemanticSamples.of(ids, [[0, 0]] * 40, grades=[1, 0] * 20)
    two = SemanticSamples.of(ids, [[0, 0]] * 40, grades=[None, *[1, 0] * 19, 1])
    found = compare_semantic({"a": one, "b": two}, n_resamples=99)
    assert found.n == 39
    assert found.warnings == ("1 of 40 common questions are not graded in every model",)


def test_comparison_refuses() -> None:
    one = drawn(20)
    with pytest.raises(ValueError, match="at least two models; got 1"):
        compare_semantic({"a": one})
    with pytest.raises(TypeError, match="must be SemanticSamples"):
        compare_semantic({"a": one, "b": [1]})  # type: ignore[dict-item]
    other = SemanticSamples.of(["other"], [[0, 0]], grades=[1])
    with pytest.raises(ValueError, match="no id is in all of them"):
        compare_semantic({"a": one, "b": other})
    ungraded = SemanticSamples.of(one.ids, [[0, 0]] * 20)
    with pytest.raises(ValueError, match="graded questions in common; got none"):
        compare_semantic({"a": one, "b": ungraded})
    with pytest.raises(ValueError, match="estimators must be one of"):
        compare_semantic({"a": one, "b": one}, estimators=["ver"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="estimators must name at least one, each once"):
        compare_semantic({"a": one, "b": one}, estimators=["sem1", "sem1"])


# --- the worked example: known shares ----------------------------------------------------------------------


def test_sem1_is_over_confident_where_the_model_is_not() -> None:
    """Right as often as given: Sem1 exceeds the accuracy by its exact bias, Sem2 by about nothing."""
    for margin in (0.0, 0.1):
        population = QuestionPopulation.by_margin([margin])
        pi = population.shares[0]
        samples = population.draw(6000, 20)
        by_split = semantic_confidence(samples, estimator="sem2", correctness="split")
        one = semantic_confidence(samples, estimator="sem1")
        excess = by_split.confidence - by_split.y
        assert abs(excess.mean()) < 5 * excess.std() / math.sqrt(6000)  # exactly 0 in the mean
        assert expected_sem1(pi, 20) > pi.max() + 0.02
        gap = one.confidence - one.y
        assert gap.mean() - 5 * gap.std() / math.sqrt(6000) > 0.0
        assert expected_sem2(pi, 20) <= pi.max()


@pytest.mark.parametrize(
    ("population", "better"),
    [
        (QuestionPopulation.by_margin([0.0, 0.05, 0.1], known=0.7), "sem2"),
        (QuestionPopulation.by_margin([0.1, 0.2, 0.3], sharpness=4.0), "sem1"),
    ],
    ids=["over-confident, low margins", "under-confident"],
)
def test_which_error_is_smaller_depends_on_the_model(population: QuestionPopulation, better: str) -> None:
    samples = population.draw(3000, 10)
    found = score_samples(samples, n_resamples=99)
    difference = found.difference("sem1", "sem2", "ece")
    assert difference.distinguishable
    assert (difference.difference > 0) == (better == "sem2")
    assert abs(found.score("sem1").ece.estimate - population.ece("sem1", 10)) < 0.05
    # the table of THEORY 12.4
    wanted = {"sem2": (0.1425, 0.2512), "sem1": (0.2865, 0.1194)}[better]
    assert abs(population.ece("star") - wanted[0]) < 5.1e-5
    assert abs(population.ece("sem1", 10) - wanted[1]) < 5.1e-5


def test_errors_approach_that_of_the_true_shares() -> None:
    """One file of 100 answers, cut short: the distance of Sem1-ECE to ECE* falls with N."""
    population = QuestionPopulation.by_margin([0.0, 0.05, 0.1], known=0.7)
    samples = population.draw(4000, 100)
    star = population.ece("star")
    distances = []
    for n in (5, 10, 20, 30, 50, 100):
        cut = samples.truncated(n)
        one = semantic_confidence(cut, estimator="sem1")
        error = calcore.ece(one.y, one.confidence, n_bins=10)
        assert abs(error - population.ece("sem1", n)) < 5 * 0.5 / math.sqrt(4000)
        distances.append(abs(population.ece("sem1", n) - star))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.25 * distances[0]


@pytest.mark.slow
@pytest.mark.parametrize("correctness", ["mode", "split"])
def test_intervals_hold_the_error_of_the_population(correctness: Any) -> None:
    """At the stated rate where the error is well above its noise: misses of 60 samples, one in 10^6.

    Certificates hold the error without bins: of the 11 or fewer values that a confidence takes.
    """
    population = QuestionPopulation.by_margin([0.0, 0.05, 0.1], known=0.5)
    truth = {}
    for n_bins in (10, 1000):
        truth["sem1", n_bins] = population.ece("sem1", 10, n_bins=n_bins)
        if correctness == "split":
            truth["sem2", n_bins] = population.ece("sem2", 10, correctness=correctness, n_bins=n_bins)
        else:  # to about .002, a tenth of the spread of what follows
            many = semantic_confidence(
                population.draw(60_000, 10, seed=1000), estimator="sem2", n_splits=2
            ).rows()
            truth["sem2", n_bins] = calcore.ece(many.y_true, many.y_prob, n_bins=n_bins)
    missed: Counter[str] = Counter()
    for seed in range(60):
        found = score_samples(
            population.draw(600, 10, seed=seed),
            n_resamples=199,
            correctness=correctness,
            n_splits=2,
            delta=0.1,
        )
        for score in found.scores:
            name, ends = score.estimator, score.ece.interval
            missed[name] += not ends.lower <= truth[name, 10] <= ends.upper
            proven = score.certificate
            missed[f"certificate of {name}"] += not proven.lower <= truth[name, 1000] <= proven.upper
            missed[f"warned of {name}"] += score.ece.is_biased
    assert max(missed.values()) <= binom.isf(1e-6, 60, 0.1)


def test_intervals_that_miss_are_warned_of() -> None:
    """Where the error is small beside its noise: calibrated shares, many answers, few questions."""
    population = QuestionPopulation.by_margin([0.4, 0.6, 0.8])
    found = score_samples(population.draw(150, 50), n_resamples=199)
    assert population.ece("sem1", 50) < 0.03
    assert found.score("sem1").ece.is_biased
    assert any("the intervals miss too often" in text for text in found.warnings)


# --- properties --------------------------------------------------------------------------------------------


@given(
    answers=st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=9), min_size=1, max_size=8),
    data=st.data(),
)
@settings(max_examples=40)
def test_names_of_classes_matter_only_by_order(answers: list[list[int]], data: Any) -> None:
    names = sorted(data.draw(st.sets(st.integers(0, 2**62), min_size=6, max_size=6)))
    ids = [f"q{i}" for i in range(len(answers))]
    one = SemanticSamples.of(ids, answers)
    two = SemanticSamples.of(ids, [[names[a] for a in own] for own in answers])
    for estimator in ("sem1", "sem2"):
        first, second = (semantic_confidence(s, estimator=estimator) for s in (one, two))  # type: ignore[arg-type]
        assert first.hits.tolist() == second.hits.tolist()
        assert [names[a] for a in first.mode.tolist()] == second.mode.tolist()


def test_ids_of_any_text() -> None:
    ids = ["", "ä", "\ud800", "a\nb", "💡" * 1000]
    found = semantic_confidence(SemanticSamples.of(ids, [[0, 1, 0]] * 5), estimator="sem2")
    assert len(found) == 5


@pytest.mark.parametrize("missing", [1.0, "drop"])
def test_means_of_stated_decimals_are_decimals(missing: Any) -> None:
    """Ten times 0.3 is 0.3, and in the bin that begins there; a sum of doubles lies below it."""
    for stated in (0.1, 0.3, 0.6, 0.7, 0.8):
        for n in range(2, 60):
            told = SemanticSamples.of(["a"], [[0] * n], grades=[1], verbalized=np.full((1, n), stated))
            means, _ = _verbalized_means(told, missing)
            assert means is not None
            assert means.tolist() == [stated]
    told = SemanticSamples.of(["a"], [[0] * 3], grades=[1], verbalized=[[0.7, 0.8, 0.9]])
    means, _ = _verbalized_means(told, missing)
    assert means is not None
    assert means.tolist() == [0.8]


class TestSweep:
    def test_is_that_of_truncated_samples(self) -> None:
        population = QuestionPopulation.by_margin([0.1, 0.4], top_two=0.9)
        samples = population.draw(60, 20, seed=7)
        swept = sweep_answers(samples, [20, 5], n_resamples=99, seed=3)
        assert swept.n_answers == (5, 20)
        for n, found in zip(swept.n_answers, swept.scores, strict=True):
            expected = score_samples(samples.truncated(n), n_resamples=99, seed=3)
            assert found.to_dict() == expected.to_dict()
        assert json.loads(json.dumps(swept.to_dict(), allow_nan=False))["n_answers"] == [5, 20]
        assert sweep_answers(samples, n_resamples=99).n_answers == (5, 10, 20)

    def test_questions_are_the_same_throughout(self) -> None:
        answers = [[0] * 9, [0, 1] * 3, [1] * 9, [0] * 12]
        samples = SemanticSamples.of(list("abcd"), answers, grades=[1, 0, 1, 0])
        swept = sweep_answers(samples, [9, 4], n_resamples=99)
        assert (swept.n_questions, swept.n_left_out) == (3, 1)
        assert [each.n_questions for each in swept.scores] == [3, 3]

    def test_draws_both_with_intervals(self) -> None:
        samples = QuestionPopulation.by_margin([0.1]).draw(40, 10, seed=7)
        swept = sweep_answers(samples, [5, 10], n_resamples=99)
        ax = swept.plot()
        lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
        assert list(lines["Sem1"]) == [each.score("sem1").ece.estimate for each in swept.scores]
        assert list(lines["Sem2"]) == [each.score("sem2").ece.estimate for each in swept.scores]
        plt.close("all")

    @pytest.mark.parametrize(
        ("numbers", "says"),
        [
            ([], "at least one number; got none"),
            ([5, 5], "n_answers must be different numbers; got 5, 5"),
            ([1], "n_answers must be a whole number >= 2; got 1"),
            ([11], "n_answers must be at most 10, the most answers of any; got 11"),
        ],
    )
    def test_faults(self, numbers: list[int], says: str) -> None:
        samples = SemanticSamples.of(["a"], [[0] * 10], grades=[1])
        with pytest.raises(ValueError, match=re.escape(says)):
            sweep_answers(samples, numbers)
        with pytest.raises(TypeError, match="samples must be SemanticSamples"):
            sweep_answers([[0] * 10])  # type: ignore[arg-type]


class TestGradedModes:
    def test_truncated_answers_keep_the_grade_whatever_ties_do(self) -> None:
        samples = SemanticSamples.of([f"q{i}" for i in range(200)], [[0, 1, 1, 1]] * 200, grades=[1, 0] * 100)
        for ties in ("first", "random"):
            found = semantic_confidence(samples.truncated(2), estimator="sem1", ties=ties)
            assert np.isfinite(found.y).all()
        assert samples.truncated(4).graded is not None
        assert samples.truncated(2).graded is None
        assert samples.take([3, 1]).graded is not None

    def test_tied_questions_that_random_ties_lose_are_counted(self) -> None:
        samples = SemanticSamples.of(
            [f"q{i}" for i in range(100)], [[0, 1]] * 50 + [[0, 0]] * 50, grades=[1, 0] * 50
        )
        found = score_samples(samples, ties="random", n_resamples=99)
        lost = 100 - found.n_graded
        assert 10 <= lost <= 40
        assert found.warnings[0].startswith(f"{lost} tied questions are left out")
        assert score_samples(samples, n_resamples=99).n_graded == 100

    def test_a_published_mode_is_the_one_that_is_graded(self) -> None:
        answers = [[1, 0, 1, 0], [5, 5, 2, 2], [3, 3, 3, 1]]
        samples = SemanticSamples.of(["a", "b", "c"], answers, grades=[1, 0, 1], modes=[1, 2, None])
        found = semantic_confidence(samples, estimator="sem1")
        assert found.mode.tolist() == [1, 2, 3]
        assert found.y.tolist() == [1, 0, 1]
        assert found.confidence.tolist() == [0.5, 0.5, 0.75]
        table = [{0: 0, 1: 1}, {2: 0, 5: 1}, {3: 1}]
        graded = SemanticSamples.of(["a", "b", "c"], answers, class_grades=table, modes=[1, 2, None])
        assert semantic_confidence(graded, estimator="sem1").y.tolist() == [1, 0, 1]

    @pytest.mark.parametrize(
        ("modes", "kind", "says"),
        [
            (
                [2],
                ValueError,
                "modes must be classes that no other is more frequent than; got 2 for question 'a'",
            ),
            ([9], ValueError, "got 9 for question 'a', whose most frequent is 1"),
            (["1"], TypeError, "modes must be class numbers or None; got '1'"),
            ([True], TypeError, "modes must be class numbers or None; got True"),
        ],
    )
    def test_faults(self, modes: list[Any], kind: type[Exception], says: str) -> None:
        with pytest.raises(kind, match=re.escape(says)):
            SemanticSamples.of(["a"], [[1, 1, 2]], grades=[1], modes=modes)


def test_numbers_of_answers_that_differ_between_models_are_said() -> None:
    ids = [f"q{i}" for i in range(40)]
    many = SemanticSamples.of(ids, [[0] * 9 + [1]] * 40, grades=[1, 0] * 20)
    few = SemanticSamples.of(ids[:30], [[0] * 3 + [1]] * 30, grades=[1, 0] * 15)
    found = compare_semantic({"many": many, "few": few}, n_resamples=99)
    assert found.warnings[0] == "10 questions of 'many' are not among those of all models"
    assert found.warnings[1].startswith("answers to each question, on average: 'many' 10, 'few' 4.")
    assert compare_semantic({"a": many, "b": many}, n_resamples=99).warnings == ()


def test_the_order_of_stated_confidences_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    stated = rng.choice([0.3, 0.6, 0.7, 0.8, 0.9], (50, 20))
    ids, answers, grades = [f"q{i}" for i in range(50)], [[0] * 20] * 50, [1, 0] * 25
    found = [
        score_samples(
            SemanticSamples.of(ids, answers, grades=grades, verbalized=rng.permuted(stated, axis=1)),
            n_resamples=99,
        ).score("ver")
        for _ in range(4)
    ]
    assert len({each.ece.estimate for each in found}) == 1
