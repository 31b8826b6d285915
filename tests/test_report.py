"""Text of certificates: what is printed must hold whenever what was computed does."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calcore
from calcore.report import (
    certificate_text,
    gate_text,
    interval_text,
    score_bins,
    summary_text,
    table_text,
)
from calcore.report.changes import monitor_text
from calcore.report.pairs import comparison_text
from calcore.results import Certificate, CertifiedDifference, Interval

SEED = 20240613


def certificate(**changes: object) -> Certificate:
    values: dict[str, object] = {
        "lower": 0.0112345,
        "upper": 0.0345612,
        "delta": 0.05,
        "side": "both",
        "method": "plugin",
        "assumption": "eta, the true rate by score, has total variation <= 1 (any monotone eta)",
        "n": 163_673,
        "n_positive": 38_897,
        "mean_score": 0.2368123,
        "base_rate": 0.2376507,
        "n_bins": 128,
        "terms": {"plug_in": 0.02, "bias": 0.004, "deviation": 0.0105612},
    }
    return Certificate(**(values | changes))  # type: ignore[arg-type]


def test_the_whole_text() -> None:
    text = certificate_text(
        certificate(warnings=("all labels are 1",)),
        population="visitors of May",
        data="a.csv, label y, score p",
    )
    assert text == (
        "Population: visitors of May\n"
        "\n"
        "The calibration error is between 0.0112 and 0.0346, with 95% confidence.\n"
        "\n"
        "Assumption  eta, the true rate by score, has total variation <= 1 (any monotone eta)\n"
        "Confidence  95% (both ends together), for every sample size\n"
        "Rows        163,673, of which 38,897 positive\n"
        "Base rate   0.2377; mean score 0.2368\n"
        "Method      plugin; 128 bins, sorted scores\n"
        "Data        a.csv, label y, score p\n"
        "\n"
        "The upper end is the sum of\n"
        "  plug_in       0.02000  error seen in bins of scores\n"
        "  bias          0.00400  what a bin can hide, given the assumption\n"
        "  deviation     0.01056  chance in the labels\n"
        "  upper bound   0.03457  rounded up to 0.0346 above\n"
        "\n"
        "Warning: all labels are 1\n"
        "\n"
        "How to read it: averaged over new rows from the same source, a score is off from the\n"
        "true rate of rows with that score by between 1.12 and 3.46 percentage points; it holds\n"
        "if rows are independent of each other."
    )


def numbers(text: str) -> list[Decimal]:
    return [Decimal(word.strip(",.%")) for word in text.split() if word[0].isdigit() and "%" not in word]


@given(low=st.floats(0.0, 1.0), high=st.floats(0.0, 1.0))
def test_the_interval_is_rounded_outwards_to_three_digits(low: float, high: float) -> None:
    low, high = sorted((low, high))
    printed_low, printed_high = numbers(interval_text(certificate(lower=low, upper=high)))
    # repr is the shortest decimal that stands for the double
    assert printed_low <= Decimal(repr(low))
    assert printed_high >= Decimal(repr(high))
    assert printed_high - Decimal(repr(high)) <= max(Decimal(repr(high)) / 100, Decimal("1e-12"))
    assert 0 <= printed_low <= printed_high <= 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lower": 0.0}, "The calibration error is between 0 and 0.0346, with 95% confidence."),
        ({"side": "upper", "lower": 0.0}, "The calibration error is at most 0.0346, with 95% confidence."),
        ({"side": "lower", "upper": 1.0}, "The calibration error is at least 0.0112, with 95% confidence."),
        ({"delta": 0.001}, "The calibration error is between 0.0112 and 0.0346, with 99.9% confidence."),
        (
            {"lower": 0.0, "upper": 0.000712345},
            "The calibration error is between 0 and 0.000713, with 95% confidence.",
        ),
        ({"lower": 0.0, "upper": 1.0}, "The calibration error is between 0 and 1.0000, with 95% confidence."),
        (
            {"lower": 0.02, "upper": 0.02},
            "The calibration error is between 0.0200 and 0.0200, with 95% confidence.",
        ),
    ],
)
def test_the_sentence(changes: dict[str, object], sentence: str) -> None:
    assert interval_text(certificate(**changes)) == sentence
    assert sentence in certificate_text(certificate(**changes), width=200)


def test_sides_leave_out_what_they_do_not_bound() -> None:
    lower = certificate_text(certificate(side="lower", upper=1.0, terms={}, n_bins=0))
    assert "upper" not in lower
    assert "lower end only" in lower
    assert "by at least 1.12 percentage points" in lower.replace("\n", " ")
    assert "by at most 3.46 percentage points" in certificate_text(
        certificate(side="upper", lower=0.0)
    ).replace("\n", " ")


def test_a_bound_above_one_says_so() -> None:
    text = certificate_text(certificate(upper=1.0, terms={"plug_in": 0.5, "bias": 1.0}))
    assert "upper bound   1.50000  (no calibration error exceeds 1)" in text
    assert "and 1.0000, with" in text


@pytest.mark.parametrize(
    ("upper", "line"),
    [
        (0.08142, "upper bound   0.08142  rounded up to 0.0815 above"),
        (0.0814, "upper bound   0.08140\n"),
        (0.999999, "upper bound   1.00000\n"),
        (0.000123456, "upper bound   0.0001235  rounded up to 0.000124 above"),
    ],
)
def test_the_sum_says_how_the_first_line_rounds_it(upper: float, line: str) -> None:
    text = certificate_text(certificate(lower=0.0, upper=upper, terms={"plug_in": upper}))
    assert line in text
    first = text.splitlines()[0]
    assert "rounded" not in line or line.split()[6] in first
    assert interval_text(certificate(lower=0.0, upper=upper)) == first


def test_a_draw_that_was_asked_for_is_no_warning() -> None:
    drawn = calcore.certify([0, 1] * 600, [0.5] * 1200, groups=np.arange(1200) // 3)
    assert len(drawn.warnings) == 1
    text = certificate_text(drawn)
    assert "Groups      one random row of each: 400 of 1,200 rows\n" in text
    assert "Warning" not in text


def test_every_row_for_itself() -> None:
    assert "plugin; every row for itself, sorted scores" in certificate_text(certificate(n_bins=163_673))


@pytest.mark.parametrize("width", [1, 40, 60, 88, 100])
def test_lines_keep_to_the_width(width: int) -> None:
    text = certificate_text(
        certificate(warnings=("w " * 100,)), population="people " * 50, data="file " * 50, width=width
    )
    assert max(map(len, text.split("\n"))) <= max(width, 40)
    assert text.isascii()


@pytest.mark.parametrize(
    ("limit", "upper", "text"),
    [
        (0.02, 0.02, "Gate passed: the upper bound 0.0200 is not above 0.02"),
        (0.02, 0.0200001, "Gate failed: the upper bound 0.0201 is above 0.02"),
        (0.0, 0.0, "Gate passed: the upper bound 0 is not above 0"),
    ],
)
def test_the_gate(limit: float, upper: float, text: str) -> None:
    said = gate_text(limit, upper, 0.05, width=200)
    assert said == f"{text} (one-sided, with 95% confidence for this end alone)."


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=60),
    n_bins=st.integers(1, 12),
    cells=st.booleans(),
)
def test_score_bins_partition_the_rows_and_keep_ties(
    rows: list[tuple[int, bool]], n_bins: int, cells: bool
) -> None:
    scores = np.array([k / 12 for k, _ in rows])
    labels = np.array([y for _, y in rows])
    table = calcore.CellTable().update(labels, scores) if cells else calcore.ScoreTable(labels, scores)
    bins = score_bins(table, n_bins)
    assert sum(part.rows for part in bins) == len(rows)
    for part in bins:
        inside = (scores >= part.low) & (scores <= part.high)
        assert part.rows == inside.sum()
        assert part.observed == pytest.approx(labels[inside].mean(), abs=1e-15)
        # A cell's mean is off by at most 2^-31 of its width, plus rounding.
        assert part.predicted == pytest.approx(scores[inside].mean(), abs=1e-13 + 2.0**-31 / 100_800)


def test_score_bins_have_about_equal_rows() -> None:
    scores = np.random.default_rng(SEED).random(10_000)
    bins = score_bins(calcore.ScoreTable(scores > 0.5, scores), 10)
    assert len(bins) == 10
    assert all(abs(part.rows - 1000) <= 1 for part in bins)


def test_the_table_of_bins_shows_rare_rates() -> None:
    scores = np.linspace(0.0001, 0.002, 100)
    text = table_text(score_bins(calcore.ScoreTable(np.arange(100) == 99, scores), 2))
    assert text == (
        "      scores               rows  predicted  observed   difference\n"
        "0.000100 - 0.001040          50   0.000570  0.000000    -0.000570\n"
        "0.001060 - 0.002000          50   0.001530  0.020000    +0.018470"
    )


def test_the_summary_of_a_table() -> None:
    table = calcore.CellTable().update([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0 + 1e-12])
    assert summary_text(table) == (
        "Cells       100,800 linear cells, 3 of them occupied\n"
        "Rows        4, of which 3 positive\n"
        "Base rate   0.7500; mean score 0.5625\n"
        "Clipped     1 score a rounding error outside [0, 1]"
    )
    assert summary_text(calcore.CellTable()) == (
        "Cells       100,800 linear cells, 0 of them occupied\nRows        0, of which 0 positive"
    )
    rare = np.random.default_rng(SEED).beta(0.2, 199.8, 100_000)
    assert "Warning     cells are too wide for these scores" in summary_text(
        calcore.CellTable(100).update(rare > 0.01, rare)
    )


differences = st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)).map(sorted)


@given(brier=differences, error=differences)
def test_differences_are_rounded_outwards_and_keep_their_sign(brier: list[float], error: list[float]) -> None:
    first, second = Interval(*brier), Interval(*error)
    each = certificate(delta=0.025)
    text = comparison_text(CertifiedDifference(second, first, 0.0, 0.05, 900, 0, each, each), width=200)
    verdicts = text.splitlines()[:2]
    for name, interval, verdict, shown in (
        ("Brier score", first, verdicts[0], "better"),
        ("calibration error", second, verdicts[1], "smaller"),
    ):
        (line,) = [line for line in text.splitlines() if line.startswith(f"  {name} ")]
        low, high = (Decimal(word) for word in line.removeprefix(f"  {name}").split()[:2])
        assert low <= Decimal(repr(interval.lower))
        assert high >= Decimal(repr(interval.upper))
        assert high - low <= Decimal(repr(interval.upper)) - Decimal(repr(interval.lower)) + Decimal("0.0002")
        model = "a" if interval.upper < 0.0 else "b" if interval.lower > 0.0 else None
        assert (f", {model} " in verdict and shown in verdict) if model else ", no " in verdict
        if interval.upper <= -1e-9:
            assert high < 0
        if interval.lower >= 1e-9:
            assert low > 0


def test_what_is_said_of_two_models() -> None:
    a = certificate(delta=0.025, warnings=("all labels are 1",))
    b = certificate(delta=0.025, lower=0.1, upper=0.2, assumption="none")
    found = CertifiedDifference(
        Interval(-0.189, -0.066), Interval(-0.001, 0.003), 0.00123, 0.05, 900, 100, a, b
    )
    text = comparison_text(found, names=("new", "old"), population="visitors of May", data="a.csv")
    assert text == (
        "Population: visitors of May\n"
        "\n"
        "By the Brier score, no model is shown to be better, with 95% confidence.\n"
        "By the calibration error, new has the smaller one, with 95% confidence.\n"
        "\n"
        "new minus old            lower     upper\n"
        "  Brier score         -0.00100   0.00300  0.00123 in these rows\n"
        "  calibration error   -0.18900  -0.06600\n"
        "calibration error of     lower     upper\n"
        "  new                  0.01123   0.03457\n"
        "  old                  0.10000   0.20000\n"
        "\n"
        "Assumption  eta, the true rate by score, has total variation <= 1 (any monotone eta)\n"
        "Assumption  none\n"
        "Confidence  95% for each difference, 90% for both together; 97.5% for each model's\n"
        "            calibration error\n"
        "Rows        900, of which 38,897 positive\n"
        "Groups      one random row of each: 900 of 1,000 rows\n"
        "Data        a.csv\n"
        "\n"
        "Warning: new: all labels are 1\n"
        "\n"
        "How to read it: a difference below 0 is in favour of new. The Brier score counts\n"
        "calibration and sharpness together, and its difference needs no assumption. Both hold if\n"
        "rows are independent of each other."
    )


def test_what_a_monitor_says() -> None:
    quiet = monitor_text(calcore.CalibrationMonitor(0.02, delta=0.1).update([0], [0.5]), n_new=1, width=200)
    assert quiet.splitlines()[0] == "No alarm after 1 row."
    assert "the calibration error for the next one is at most 0.02\n" in quiet
    assert "alarm at 10\n" in quiet
    loud = calcore.CalibrationMonitor(0.02).update([1] * 2000, [0.5] * 2000)
    text = monitor_text(loud, width=200)
    assert text.startswith(
        f"Alarm: after {loud.alarm_at} rows the evidence reached what a model with a calibration error of at "
        "most 0.02 ever reaches with probability at most 0.05."
    )
    (line,) = [line for line in text.splitlines() if line.startswith("Lower bound ")]
    assert Decimal(line.split()[2]) <= Decimal(repr(loud.lower))
