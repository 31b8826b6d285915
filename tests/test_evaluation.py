"""The evaluation of one model: each number is that of the function it names, and the words say what is so."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calcore
from calcore import evaluation
from calcore.evaluation import METRICS, RESAMPLED_ROWS, sampled

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
        monkeypatch.setattr(evaluation, "RESAMPLED_ROWS", 400)
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
        monkeypatch.setattr(evaluation, "RESAMPLED_ROWS", 50)
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
