"""The demo says what it must, with the numbers of the certificates that it stands for."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

import calcore
from calcore import datasets, demo
from calcore.report import certificate_text, interval_text, score_bins


@pytest.fixture(scope="module")
def output():
    """All that ``python -m calcore.demo`` prints, with a small third part."""
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        demo.main(20_000)
    return stream.getvalue()


def test_first_line_names_the_population(output):
    assert output.splitlines()[0].startswith("Population: flights of 2013 out of New York")


def test_random_half_is_certified_with_its_terms_and_bins(output):
    flights = datasets.flights_random()
    table = calcore.ScoreTable(flights.y_true, flights.y_prob)
    expected = certificate_text(calcore.certify(table), bins=score_bins(table), width=demo.WIDTH)
    part = output[output.index("1. A certificate") : output.index("2. The same model")]
    assert f"\n\n{expected}\n\n" in part
    assert expected == certificate_text(
        calcore.certify(flights.y_true, flights.y_prob), bins=score_bins(table), width=demo.WIDTH
    )


def test_split_by_time_is_marked_as_not_covered(output):
    flights = datasets.flights_by_time()
    part = " ".join(output[output.index("2. The same model") : output.index("3. A big job")].split())
    wrong = calcore.certify(flights.y_true, flights.y_prob)
    assert f"NOT VALID HERE: {interval_text(wrong)} WARNING: the 109,619 rows depend on each other" in part
    assert "133 times that of independent rows (the design effect)" in part
    daily = calcore.certify(flights.y_true, flights.y_prob, groups=flights.day)
    assert daily.n == 122
    assert "drawn at random (rng=0)." in part
    assert f"122 rows: {interval_text(daily)}" in part


def test_big_job_gives_time_rate_and_ratio(output):
    part = output[output.index("3. A big job") :]
    assert "20,000 simulated predictions" in part
    assert "million rows per second" in part
    assert "np.sort" in part
    assert "Whatever else the machine does changes these times." in " ".join(part.split())


def test_output_reads_well_in_a_pipe(output):
    assert output.isascii()
    assert max(map(len, output.splitlines())) <= demo.WIDTH
    assert "\n\n\n" not in output


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        # Every row its own cluster: the two variances are one formula.
        (np.arange(6), 1.0),
        # Pairs that err together: E = (2, -2, 0), e^2 sums to 4: (3/2 * 8) / (6/5 * 4).
        (np.array([0, 0, 1, 1, 2, 2]), 2.5),
        # Pairs that cancel: nothing is left of the clusters' variance.
        (np.array([0, 1, 0, 1, 2, 2]), 0.0),
    ],
)
def test_design_effect_by_hand(cluster, expected):
    residual = np.array([1.0, 1.0, -1.0, -1.0, 0.0, 0.0])
    assert demo.design_effect(residual, cluster) == expected
    assert demo.design_effect(residual + 0.25, cluster) == expected


def test_design_effect_names_do_not_matter():
    flights = datasets.flights_by_time()
    residual = flights.y_true - flights.y_prob
    names = np.datetime_as_string(flights.day)
    assert demo.design_effect(residual, names) == demo.design_effect(residual, flights.day)
