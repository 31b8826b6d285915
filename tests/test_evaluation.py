"""The evaluation of one model: each number is that of the function it names, and the words say what is so."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calcore
from calcore import _validate
from calcore.evaluation import METRICS, RESAMPLED_ROWS, sampled
from calcore.evaluation.classes import _losses as evaluation_losses
from calcore.evaluation.classes import _normal as normal_interval
from calcore.perturbation import delong_interval
from calcore.table import ScoreTable

SEED = 20240614
B = 99


def rows(n: int, power: float = 1.0, seed: int = SEED) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scores s, and labels with the true rate s^power."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return (rng.random(n) < scores**power).astype(np.int64), scores


class TestNumbers:
    def test_are_those_of_the_functions(self) -> None:
        y, s = rows(2000, 2.0)
        found = calcore.evaluate(y, s, name="m", n_resamples=B, delta=0.1, rng=5)
        same = [
            (found.certificate, calcore.certify(y, s, delta=0.1, rng=5)),
            (
                found.comparison,
                calcore.compare(y, {"m": s}, metrics=METRICS, n_resamples=B, delta=0.1, rng=5),
            ),
            (found.brier_parts, calcore.brier_decomposition(y, s)),
            (found.corp, calcore.corp(y, s)),
            (found.curve, calcore.ece_curve(y, s)),
            (found.diagram, calcore.reliability(y, s, delta=0.1, certificate=found.certificate)),
            (found.residuals, calcore.residual_map(y, s, delta=0.1)),
            (found.clinical, calcore.clinical_calibration(y, s, delta=0.1)),
            (found.sensitivity, calcore.sensitivity(y, s, variations=[0.5, 1, 2], delta=0.1, rng=5)),
        ]
        for given, expected in same:
            assert given is not None
            assert given.to_dict() == expected.to_dict(), type(expected)  # type: ignore[attr-defined]
        assert found.auroc == calcore.auroc(y, s)
        assert found.segments is None
        assert (found.delta, found.seed, found.n_resampled) == (0.1, 5, 2000)

    def test_data_by_hand(self) -> None:
        data = calcore.evaluate([0, 1, 1, 0], [0.0, 0.5, 0.5, 1.0], n_resamples=B).data
        assert data.to_dict() == {
            "n": 4,
            "n_positive": 2,
            "base_rate": 0.5,
            "mean_score": 0.5,
            "lowest": 0.0,
            "highest": 1.0,
            "n_distinct": 3,
            "largest_tie": 2,
            "n_zero": 1,
            "n_one": 1,
            "n_clipped": 0,
            "one_class": False,
        }

    def test_clipped_scores_are_counted(self) -> None:
        found = calcore.evaluate([0, 1], [0.5, np.nextafter(1.0, 2.0)], n_resamples=B)
        assert (found.data.n_clipped, found.data.highest) == (1, 1.0)

    def test_segments_hold_together(self) -> None:
        y, s = rows(600)
        by = pd.Series(["north", "south"] * 300, name="region")
        found = calcore.evaluate(y, s, by=by, n_resamples=B)
        assert found.segments is not None
        assert found.segments.to_dict() == calcore.certify_groups(y, s, by=by, rng=0).to_dict()
        assert found.segments_by == "region"

    def test_variation_reaches_the_certificate(self) -> None:
        y, s = rows(500)
        found = calcore.evaluate(y, s, variation=3, n_resamples=B)
        assert found.certificate.to_dict() == calcore.certify(y, s, variation=3, rng=0).to_dict()
        assert "variation <= 3" in found.verdict
        assert "variation <= 3" in found.methods
        assert "variation=3" in found.command

    def test_order_of_rows_changes_no_certified_number(self) -> None:
        y, s = rows(700, 2.0)
        order = np.random.default_rng(1).permutation(700)
        a = calcore.evaluate(y, s, n_resamples=B)
        b = calcore.evaluate(y[order], s[order], n_resamples=B)
        for name in ("data", "certificate", "curve", "diagram", "residuals", "corp", "verdict", "methods"):
            left, right = getattr(a, name), getattr(b, name)
            assert (left if isinstance(left, str) else left.to_dict()) == (
                right if isinstance(right, str) else right.to_dict()
            ), name

    def test_same_seed_same_numbers(self) -> None:
        y, s = rows(300)
        a, b = (calcore.evaluate(y, s, n_resamples=B, rng=3).to_dict() for _ in range(2))
        assert a == b
        fresh = calcore.evaluate(y, s, n_resamples=B, rng=None)
        assert fresh.seed is None
        assert "fresh random numbers" in fresh.methods
        drawn = calcore.evaluate(y, s, n_resamples=B, rng=np.random.default_rng(3))
        assert drawn.certificate.n == 300

    @pytest.mark.parametrize("make", [list, np.float32, pd.Series, lambda s: np.repeat(s, 2)[::2]])
    def test_takes_any_column_and_leaves_it(self, make: Any) -> None:
        y, s = rows(200)
        s = np.round(s, 3).astype(np.float32).astype(np.float64)
        given = make(s)
        kept = copy.deepcopy(given)
        found = calcore.evaluate(np.where(y == 1, "yes", "no"), given, pos_label="yes", n_resamples=B)
        assert found.certificate.to_dict() == calcore.certify(y, s, rng=0).to_dict()
        assert np.array_equal(np.asarray(given), np.asarray(kept))


class TestManyRows:
    def test_a_sample_of_them_is_resampled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("calcore.evaluation.one.RESAMPLED_ROWS", 400)
        y, s = rows(1000)
        found = calcore.evaluate(y, s, n_resamples=B)
        assert (found.n_resampled, found.comparison.n, found.corp.n) == (400, 400, 400)
        assert found.clinical is not None
        assert found.clinical.n == 400
        assert (found.data.n, found.certificate.n, found.curve.n, found.diagram.n) == (1000,) * 4
        assert any("a random 400 of 1,000 rows" in text for text in found.warnings)
        assert "a random 400 of the rows" in found.methods

    def test_sample_is_without_replacement_and_in_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert sampled(RESAMPLED_ROWS, 0) == slice(None)
        monkeypatch.setattr("calcore.evaluation.one.RESAMPLED_ROWS", 50)
        chosen = sampled(60, 0)
        assert isinstance(chosen, np.ndarray)
        assert len(chosen) == 50
        assert np.all(np.diff(chosen) > 0)
        assert chosen[0] >= 0
        assert chosen[-1] < 60
        assert not np.array_equal(chosen, sampled(60, 1))


class TestVerdict:
    def test_miscalibrated(self) -> None:
        found = calcore.evaluate(*rows(4000, 3.0), n_resamples=B)
        assert found.outcome == "miscalibrated"
        assert found.certificate.lower > 0.0
        assert found.verdict.startswith("Miscalibrated: the calibration error is between 0.")
        assert "with 95% confidence, if rows are independent and eta" in found.verdict

    def test_miscalibrated_in_a_few_bins(self) -> None:
        """The bins see what is too little for the lower end of the certificate."""
        rng = np.random.default_rng(71)
        scores = rng.random(20_000)
        labels = rng.random(20_000) < np.where(scores < 0.05, 0.2 * scores, scores)
        found = calcore.evaluate(labels, scores, n_resamples=B)
        assert found.certificate.lower == 0.0
        assert found.outcome == "miscalibrated"
        assert found.verdict.startswith(
            "Miscalibrated in part: in one bin scores are certified to be off, at 95%"
        )

    def test_calibrated(self) -> None:
        found = calcore.evaluate(*rows(4000), n_resamples=B)
        assert found.outcome == "not shown to be miscalibrated"
        assert found.certificate.upper < np.mean(np.abs(np.subtract(*rows(4000))))
        assert found.verdict.endswith("That is no proof of calibration.")

    def test_three_rows(self) -> None:
        found = calcore.evaluate([0, 1, 1], [0.25, 0.5, 0.75], n_resamples=B)
        assert found.outcome == "too few rows"
        assert (
            "not below the mean absolute error of single rows, 0.333" in found.verdict
        )  # (1/4 + 1/2 + 1/4)/3

    @pytest.mark.parametrize(("label", "kind"), [(0, "positive"), (1, "negative")])
    def test_one_class(self, label: int, kind: str) -> None:
        found = calcore.evaluate([label] * 40, [0.5 + 0.4 * (label - 0.5)] * 40, n_resamples=B)
        assert (found.outcome, found.auroc, found.clinical) == ("too few rows", None, None)
        assert f"no row has a {kind} label" in found.verdict
        assert found.clinical_note
        assert ("Even so" in found.verdict) == (found.certificate.lower > 0.0)
        assert json.dumps(found.to_dict(), allow_nan=False)

    def test_one_row(self) -> None:
        assert calcore.evaluate([1], [0.5], n_resamples=B).outcome == "too few rows"

    def test_ends_are_rounded_outwards(self) -> None:
        found = calcore.evaluate(*rows(4000, 3.0), n_resamples=B)
        words = found.verdict.split()
        low, high = float(words[words.index("between") + 1]), float(words[words.index("and") + 1])
        assert low <= found.certificate.lower
        assert found.certificate.upper <= high
        assert high - low < found.certificate.upper - found.certificate.lower + 2e-3

    def test_nothing_is_assumed_of_one_score(self) -> None:
        found = calcore.evaluate([0, 1] * 400, [0.5] * 800, n_resamples=B)
        assert "assuming nothing but independent rows" in found.verdict
        assert "without an assumption" in found.methods
        assert any("are confidences missing?" in text for text in found.warnings)


def test_rare_events_hide_in_wide_bins() -> None:
    y, s = rows(3000, 1.0)
    assert not any("equally wide" in text for text in calcore.evaluate(y, s, n_resamples=B).warnings)
    rare = calcore.evaluate(y, s / 50, n_resamples=B)
    assert any(text.startswith("only 1 of 20 equally wide bins") for text in rare.warnings)


class TestRecord:
    def test_is_ready_for_json(self) -> None:
        y, s = rows(200)
        s[0], y[0] = 0.0, 1  # an infinite log loss
        found = calcore.evaluate(y, s, by=["a", "b"] * 100, n_resamples=B)
        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert set(plain) == set(found.__slots__)
        assert plain["comparison"]["estimates"][1]["estimate"] is None
        assert plain["clinical"] is None
        assert "exactly 0 or 1" in plain["clinical_note"]
        assert set(plain["versions"]) == {"calcore", "Python", "numpy", "scipy", "numba"}

    def test_is_frozen_and_pickles(self) -> None:
        found = calcore.evaluate(*rows(100), n_resamples=B)
        with pytest.raises(AttributeError):
            found.name = "other"  # type: ignore[misc]
        with pytest.raises(TypeError):
            found.versions["calcore"] = "0"  # type: ignore[index]
        assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()
        assert copy.deepcopy(found).to_dict() == found.to_dict()
        assert repr(found).startswith("<Evaluation of 'model': ")

    def test_methods_say_what_was_done(self) -> None:
        found = calcore.evaluate([0, 1, 0, 1], [0.05, 0.15, 0.95, 0.951], n_resamples=B, rng=8)
        assert "n = 4 rows" in found.methods
        assert "K ∈ {10, 15, 20}" in found.methods
        assert "7, 12 and 17 were empty" in found.methods  # .05, .15 and both of .95 have bins of their own
        assert "99 bootstrap resamples of the rows (seed 8)" in found.methods

    def test_command_reproduces_it(self) -> None:
        y, s = rows(150)
        found = calcore.evaluate(y, s, name="a 'b'", delta=0.1, n_resamples=B, event="top label", rng=4)
        again = eval(found.command, {"calcore": calcore, "y_true": y, "y_prob": s})
        assert again.to_dict() == found.to_dict()
        assert "the first choice is right" in again.methods


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([], []), {}, ValueError, "y_true"),
        (([0, 1], [0.5]), {}, ValueError, "y_true"),
        (([0, 1], [0.5, np.nan]), {}, ValueError, "y_prob"),
        (([0, 1], [0.5, 1.2]), {}, ValueError, "y_prob must lie in"),
        (([0, 2], [0.5, 0.5]), {}, ValueError, "y_true"),
        (([0, 1], [0.5, 0.5]), {"delta": 2}, ValueError, "delta"),
        (([0, 1], [0.5, 0.5]), {"n_resamples": 3}, ValueError, "n_resamples"),
        (([0, 1], [0.5, 0.5]), {"event": "class"}, ValueError, "event"),
        (([0, 1], [0.5, 0.5]), {"name": 3}, TypeError, "name must be a str; got int"),
        (([0, 1], [0.5, 0.5]), {"population": None}, TypeError, "population"),
        (([0, 1], [0.5, 0.5]), {"rng": -1}, ValueError, "rng"),
        (([0, 1], [0.5, 0.5]), {"by": ["a"]}, ValueError, "by"),
        (([0, 1], [0.5, 0.5]), {"variation": -1}, ValueError, "variation"),
    ],
)
def test_errors_name_the_argument(arguments: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        calcore.evaluate(*arguments, **({"n_resamples": B} | options))


def class_columns(n: int = 3000, k: int = 3) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Labels drawn from probabilities, which are reported sharper than they are."""
    rng = np.random.default_rng(SEED)
    P = rng.dirichlet(np.full(k, 0.7), n)
    codes = (rng.random(n)[:, None] > P.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    sharp = P**2
    return codes, sharp / sharp.sum(axis=1, keepdims=True)


class TestClasses:
    def test_are_those_of_the_functions(self) -> None:
        y, P = class_columns()
        found = calcore.evaluate(y, P, n_resamples=B, delta=0.1, rng=3)
        first = P.argmax(axis=1)
        alone = calcore.evaluate(
            first == y, P.max(axis=1), event="top label", n_resamples=B, delta=0.1, rng=3
        ).to_dict()
        whole = found.to_dict()
        for name in alone.keys() - {"classes", "verdict", "command", "methods"}:
            assert whole[name] == alone[name], name
        c = found.classes
        assert c is not None
        assert found.verdict == f"{alone['verdict']} {c.verdict}"
        assert found.methods == f"{alone['methods']} {c.methods}"
        assert (c.names, c.n, c.accuracy) == ((0, 1, 2), 3000, float(np.mean(first == y)))
        assert c.brier == pytest.approx(calcore.brier_score(y, P), rel=1e-12)
        assert c.log_loss == pytest.approx(calcore.log_loss(y, P), rel=1e-12)
        assert c.conf_ce == calcore.conf_ce(y, P)
        assert c.uncorrected_conf_ce == calcore.uncorrected_conf_ce(y, P)
        assert c.classwise_ece == calcore.classwise_ece(y, P)
        assert c.classwise_ece == pytest.approx(float(c.ece.mean()), rel=1e-12)
        assert c.classwise_lin_ce == calcore.classwise_lin_ce(y, P)
        assert c.certificates.to_dict() == calcore.certify_classwise(y, P, delta=0.1, rng=3).to_dict()
        assert c.diagrams.to_dict() == calcore.reliability_classwise(y, P, delta=0.1).to_dict()
        for j in range(3):
            assert c.auroc[j] == calcore.auroc(y == j, P[:, j])
            assert c.ece[j] == calcore.ece(y == j, P[:, j])
            assert c.lin_ce[j] == calcore.binary_lin_ce(y == j, P[:, j])
            assert c.mean_probs[j] == pytest.approx(P[:, j].mean(), rel=1e-12)
        assert c.rates.tolist() == (np.bincount(y) / 3000).tolist()

    def test_intervals_of_losses_by_hand(self) -> None:
        y, P = [0, 1, 1, 1], [[0.5, 0.5]] * 4
        c = calcore.evaluate(y, P, n_resamples=B).classes
        assert c is not None
        assert (c.brier, c.brier_interval.lower, c.brier_interval.upper) == (0.5, 0.5, 0.5)
        P[0] = [1.0, 0.0]  # squares 0, 1/2, 1/2, 1/2: mean 3/8, standard deviation 1/4
        c = calcore.evaluate(y, P, n_resamples=B).classes
        assert c is not None
        assert c.brier_interval.upper == pytest.approx(0.375 + 1.959963984540054 * 0.125, rel=1e-12)
        assert c.brier_interval.lower == pytest.approx(0.375 - 1.959963984540054 * 0.125, rel=1e-12)

    def test_intervals_of_losses_cover(self) -> None:
        """Of 400 samples of 500 rows, at 80 %: misses are binomial, 80 expected, standard deviation 8."""
        rng = np.random.default_rng(SEED)
        misses = 0
        for _ in range(400):
            P = rng.dirichlet([1.0, 1.0, 1.0], 500)
            y = (rng.random(500)[:, None] > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
            squares, _ = evaluation_losses(y, P)
            interval = normal_interval(squares, 0.2, 2.0)
            misses += not interval.lower <= 0.5 <= interval.upper  # 1 - E sum p^2 = 1 - 3 * 1/6
        assert 48 <= misses <= 112  # 4 standard deviations

    def test_what_is_not_defined(self) -> None:
        y = np.array([0, 0, 1, 1] * 25)
        P = np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0], [0.25, 0.5, 0.25]] * 25)
        c = calcore.evaluate(y, P, n_resamples=B).classes
        assert c is not None
        assert np.isnan(c.auroc[2])
        assert c.to_dict()["auroc"][2] is None
        assert (c.log_loss, c.log_loss_interval.upper) == (np.inf, np.inf)
        assert c.to_dict()["log_loss"] is None
        assert (c.n_vectors, c.full_ece) == (4, calcore.full_ece(y, P))
        few = calcore.evaluate(y[:36], P[:36], n_resamples=B).classes
        assert few is not None
        assert (few.n_vectors, few.full_ece) == (4, None)

    def test_names_and_copies(self) -> None:
        y, P = class_columns(300)
        names = np.array(["cat", "dog", "eel"])
        found = calcore.evaluate(names[y], P, labels=names, n_resamples=B)
        assert found.classes is not None
        assert list(found.classes.certificates) == ["cat", "dog", "eel"]
        assert [d.name for d in found.classes.diagrams.diagrams] == ["cat", "dog", "eel"]
        text = json.dumps(found.to_dict(), allow_nan=False)
        for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
            assert json.dumps(other.to_dict()) == text
            assert not other.classes.ece.flags.writeable
        order = found.classes.worst_first
        lower = [c.lower for c in found.classes.certificates.values()]
        assert sorted(order.tolist()) == [0, 1, 2]
        assert all(lower[a] >= lower[b] for a, b in itertools.pairwise(order))

    def test_faults(self) -> None:
        with pytest.raises(ValueError, match=r"^y_prob must have rows that sum to 1"):
            calcore.evaluate([0, 1], [[0.5, 0.6], [0.5, 0.5]])
        with pytest.raises(ValueError, match=r"^labels name the columns of a matrix"):
            calcore.evaluate([0, 1], [0.5, 0.5], labels=[0, 1])
        with pytest.raises(ValueError, match=r"^pos_label must be left out beside a matrix"):
            calcore.evaluate([0, 1], [[0.5, 0.5]] * 2, pos_label=1)


class TestGroups:
    def test_one_row_of_each_is_kept(self) -> None:
        y, s = rows(1000, 2.0)
        groups = [f"user {i % 300}" for i in range(1000)]
        by = np.array(["north", "south"])[np.arange(1000) % 2]
        found = calcore.evaluate(y, s, groups=groups, by=by, n_resamples=B, rng=5)
        kept = _validate.group_rows(groups, 1000, _validate.generator(5))
        alone = calcore.evaluate(y[kept], s[kept], by=by[kept], n_resamples=B, rng=5).to_dict()
        whole = found.to_dict()
        for name in alone.keys() - {"n_dropped", "n_groups", "certificate", "segments", "methods", "command"}:
            assert whole[name] == alone[name], name
        assert (found.n_dropped, found.data.n) == (700, 300)
        certificate = calcore.certify(y, s, groups=groups, rng=5).to_dict()
        assert found.certificate.to_dict() | {"warnings": certificate["warnings"]} == certificate
        assert "n = 300 rows, one drawn at random from each group of 1,000, for" in found.methods

    def test_with_several_classes(self) -> None:
        y, P = class_columns(600)
        groups = np.arange(600) // 2
        kept = _validate.group_rows(groups, 600, _validate.generator(0))
        found = calcore.evaluate(y, P, groups=groups, n_resamples=B).classes
        alone = calcore.evaluate(y[kept], P[kept], n_resamples=B).classes
        assert found is not None
        assert alone is not None
        assert [c.n_dropped for c in found.certificates.values()] == [300] * 3
        assert found.with_dropped(0).to_dict() == alone.to_dict()


@pytest.mark.parametrize("event", ["positive", "top label"])
def test_errors_over_coverage(event: Any) -> None:
    y, s = rows(500)
    s = np.round(s, 1)
    found = calcore.evaluate(y, s, event=event, n_resamples=B).risk
    if event == "positive":
        choice = s >= 0.5
        expected = calcore.risk_coverage(y == choice, confidence=np.where(choice, s, 1.0 - s))
    else:
        expected = calcore.risk_coverage(y, confidence=s)
    assert found.to_dict() == expected.to_dict()


def test_interval_of_auroc_by_hand() -> None:
    """Three positives and two negatives: shares of negatives below, and of positives above, ties half."""
    y, s = [1, 1, 1, 0, 0], [0.9, 0.5, 0.3, 0.5, 0.1]
    found = calcore.evaluate(y, s, n_resamples=B, delta=0.1)
    below, above = np.array([1.0, 0.75, 0.5]), np.array([0.5, 1.0])
    assert found.auroc == 0.75
    half = 1.6448536269514722 * np.sqrt(below.var(ddof=1) / 3 + above.var(ddof=1) / 2)
    assert found.auroc_interval is not None
    assert found.auroc_interval.lower == pytest.approx(0.75 - half, rel=1e-12)
    assert found.auroc_interval.upper == min(0.75 + half, 1.0)


def test_intervals_of_auroc_cover() -> None:
    """Positives are N(1, 1), negatives N(0, 1): the area is Phi(1/sqrt(2)); 80 of 400 misses, deviation 8."""
    rng = np.random.default_rng(SEED)
    misses = 0
    for _ in range(400):
        y = np.repeat([0, 1], [60, 40])
        s = 1.0 / (1.0 + np.exp(-rng.normal(y, 1.0)))
        interval = delong_interval(ScoreTable(y, s), 0.2)
        misses += not interval.lower <= 0.7602499389065233 <= interval.upper
    assert 48 <= misses <= 112


class TestModels:
    def test_are_those_of_the_functions(self) -> None:
        y, s = rows(2000)
        models = {"a": s, "b": s**1.5, "c": np.full(2000, 0.5)}
        found = calcore.evaluate_models(y, models, n_resamples=B, rng=2)
        assert found.names == ("a", "b", "c")
        for name, one in zip(models, found.models, strict=True):
            alone = calcore.evaluate(y, models[name], name=name, n_resamples=B, rng=2).to_dict()
            whole = one.to_dict()
            for key in alone.keys() - {"command"}:
                assert whole[key] == alone[key], key
        metrics = found.comparison.metrics
        assert metrics == (
            "brier",
            "log_loss",
            *(f"ece@{k}" for k in (5, 10, 15, 20, 30, 50)),
            "lin_ce@15",
        )
        draws = found.comparison.n_resamples
        assert draws == 1080  # 2 * 3 pairs * 9 metrics / .05: enough to tell apart together
        expected = calcore.compare(y, models, metrics=metrics, n_resamples=draws, rng=2)
        assert found.comparison.to_dict() == expected.to_dict()
        assert [pair for pair, _ in found.certified] == [("a", "b"), ("a", "c"), ("b", "c")]
        for (a, b), difference in found.certified:
            alone = calcore.certify_difference(y, models[a], models[b], delta=0.05 / 6, rng=2).to_dict()
            assert difference.to_dict() == alone
        json.dumps(found.to_dict(), allow_nan=False)
        assert found.smallest("brier") == "a"
        assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()

    def test_words_where_the_brier_score_decides(self) -> None:
        y = [0, 1] * 500
        models = {"sure": [0.25, 0.75] * 500, "vague": [0.375, 0.625] * 500}
        assert calcore.evaluate_models(y, models, n_resamples=B).verdict == (
            "By the Brier score sure is better than vague: distinguishable (all pairs at 95 %). With 5, 10, "
            "15, 20, 30 and 50 bins: sure has a smaller ECE than vague, distinguishable with each."
        )

    def test_words_where_ece_turns(self) -> None:
        """Errors of both signs, which meet in 5 bins and in 15, not in 10, against a small constant error."""
        rng = np.random.default_rng(SEED)
        s = rng.integers(0, 10, 20_000) / 10 + 0.05
        y = rng.random(20_000) < s
        saw = s + np.where((s * 10).astype(int) % 2 == 0, 0.04, -0.04)
        flat = s + 0.02
        found = calcore.evaluate_models(y, {"saw": saw, "flat": flat}, n_resamples=B)
        assert found.smallest("ece@5") == "saw"
        assert found.smallest("ece@10") == "flat"
        words = "depends on the bins (saw with 5 and 15, flat with 10, 20, 30 and 50), so ECE does not rank"
        assert words in found.verdict
        assert found.verdict.startswith("By the Brier score flat is better than saw: distinguishable")

    def test_words_where_nothing_is_shown(self) -> None:
        y, s = rows(40)
        same = calcore.evaluate_models(y, {"a": s, "b": s}, n_resamples=B)
        assert same.verdict.startswith("By the Brier score a and b are equal (all pairs")
        assert "a and b have the same ECE" in same.verdict
        shifted = s + np.where(np.arange(40) % 2 == 0, 0.02, -0.02)
        close = calcore.evaluate_models(y, {"a": s, "b": shifted.clip(0.0, 1.0)}, n_resamples=B)
        assert "no model is shown to be better; " in close.verdict

    def test_groups_and_segments(self) -> None:
        y, s = rows(400)
        groups, by = np.arange(400) // 4, np.array(["x", "y"])[np.arange(400) // 200]
        found = calcore.evaluate_models(y, {"a": s, "b": s**2}, groups=groups, by=by, n_resamples=B)
        kept = _validate.group_rows(groups, 400, _validate.generator(0))
        alone = calcore.evaluate_models(
            y[kept], {"a": s[kept], "b": s[kept] ** 2}, by=by[kept], n_resamples=B
        )
        assert found.comparison.to_dict() == alone.comparison.to_dict()
        assert [m.n_dropped for m in found.models] == [300, 300]
        assert found.models[1].segments is not None
        assert list(found.models[1].segments) == ["x", "y"]

    def test_faults(self) -> None:
        with pytest.raises(ValueError, match=r"^models must be at least two; got one"):
            calcore.evaluate_models([0, 1], {"a": [0.5, 0.5]})
        with pytest.raises(TypeError, match=r"^models must be a mapping"):
            calcore.evaluate_models([0, 1], [[0.5, 0.5]] * 2)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"models\['b'\] must lie in \[0, 1\]"):
            calcore.evaluate_models([0, 1], {"a": [0.5, 0.5], "b": [0.5, 1.5]})
