"""Other libraries' binned errors: equal where definitions agree, and what they say where they do not.

Versions are pinned: what stands here of other libraries is in the table of METRICS.md.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torchmetrics.functional.classification as torchmetrics
from calibre import metrics as calibre
from netcal.metrics import ACE, ECE, MCE
from sklearn.calibration import calibration_curve

import calcore

pytestmark = pytest.mark.filterwarnings("ignore")


def of_torchmetrics(y, p, bins=15, norm="l1"):
    scores = p if isinstance(p, torch.Tensor) else torch.tensor(np.asarray(p), dtype=torch.float64)
    return torchmetrics.binary_calibration_error(
        scores, torch.tensor(np.asarray(y)), n_bins=bins, norm=norm
    ).item()


def of_netcal(y, p, bins=15, kind=ECE, **options):
    return float(kind(bins, **options).measure(np.asarray(p, float), np.asarray(y)))


def of_calibre(y, p, bins=15):
    return float(calibre.expected_calibration_error(np.array(y), np.array(p), n_bins=bins))


def calibre_quantile(y, p, bins=15):
    observed, predicted, counts = calibre.calibration_curve(
        np.array(y), np.array(p), bins, strategy="quantile"
    )
    return float(np.abs(observed - predicted) @ counts / len(p))


@pytest.fixture(scope="module", params=[0, 1, 2])
def data(request):
    rng = np.random.default_rng(request.param)
    p = rng.beta(*[(1, 1), (0.5, 2), (5, 1)][request.param], 5000)
    return (rng.random(5000) < p**1.5).astype(np.int64), p


# --- where definitions agree


@pytest.mark.parametrize("bins", [1, 7, 15, 50])
def test_equal_width(data, bins):
    value = calcore.ece(*data, n_bins=bins)
    assert of_torchmetrics(*data, bins) == pytest.approx(value, abs=1e-12)
    assert of_calibre(*data, bins) == pytest.approx(value, abs=1e-12)
    assert of_netcal(*data, bins) == pytest.approx(value, abs=1e-12)


def test_norms(data):
    assert of_torchmetrics(*data, norm="l2") == pytest.approx(calcore.ece(*data, norm="l2"), abs=1e-12)
    assert of_torchmetrics(*data, norm="max") == pytest.approx(calcore.mce(*data), abs=1e-12)
    assert of_netcal(*data, kind=MCE) == pytest.approx(calcore.mce(*data), abs=1e-12)
    assert of_netcal(*data, kind=ACE) == pytest.approx(calcore.ece(*data, norm="avg"), abs=1e-12)


def test_table(data):
    observed, predicted = calibration_curve(*data, n_bins=15)
    table = calcore.calibration_table(*data, n_bins=15)
    used = table.counts > 0
    assert observed == pytest.approx(table.positive_rate[used], abs=1e-14)
    assert predicted == pytest.approx(table.mean_score[used], abs=1e-14)


def test_top_label():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.full(6, 0.5), 4000)
    y = (P.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    value = calcore.confidence_ece(y, P)
    theirs = torchmetrics.multiclass_calibration_error(torch.tensor(P), torch.tensor(y), 6).item()
    assert theirs == pytest.approx(value, abs=1e-6), "float32 inside"
    assert float(ECE(15).measure(P, y)) == pytest.approx(value, abs=1e-12)


def test_quantile_bins_without_ties(data):
    """Edges are interpolated there: the row at each of 14 edges may lie in the bin beside."""
    value = calcore.ece(*data, strategy="quantile")
    for theirs in (of_netcal(*data, equal_intervals=False), calibre_quantile(*data)):
        assert theirs == pytest.approx(value, abs=2 * 14 / 5000)


def test_quantile_bins_of_a_multiple_of_rows():
    """If the bins divide the rows and there are no ties, interpolated edges lie between the same scores."""
    rng = np.random.default_rng(4)
    p = rng.random(4500)
    y = (rng.random(4500) < p).astype(np.int64)
    value = calcore.ece(y, p, strategy="quantile")
    assert calibre_quantile(y, p) == pytest.approx(value, abs=1e-12)
    assert of_netcal(y, p, equal_intervals=False) == pytest.approx(value, abs=1e-12)


# --- where they do not

EDGES = {  # (score on an edge, another in the bin above, bins): are they in one bin, in each library?
    (0.5, 0.75, 2): {
        "calcore": True,
        "sklearn": False,
        "torchmetrics": True,
        "netcal": True,
        "calibre": True,
    },
    (0.3, 0.35, 10): {
        "calcore": True,
        "sklearn": False,
        "torchmetrics": False,
        "netcal": False,
        "calibre": False,
    },
    (0.6, 0.65, 10): {
        "calcore": True,
        "sklearn": False,
        "torchmetrics": True,
        "netcal": False,
        "calibre": False,
    },
    (0.7, 0.75, 10): {
        "calcore": True,
        "sklearn": False,
        "torchmetrics": True,
        "netcal": False,
        "calibre": False,
    },
}


@pytest.mark.parametrize(("edge", "together"), EDGES.items(), ids=[str(edge[0]) for edge in EDGES])
def test_edges(edge, together):
    """Labels 0 and 1: in one bin the error is abs(.5 - mean score), in two the mean of p and 1 - p."""
    low, high, bins = edge
    y, p = [0, 1], [low, high]
    one, two = abs(0.5 - (low + high) / 2), (low + 1 - high) / 2
    found = {
        "calcore": calcore.ece(y, p, n_bins=bins),
        "sklearn": one if len(calibration_curve(y, p, n_bins=bins)[0]) == 1 else two,
        "torchmetrics": of_torchmetrics(y, p, bins),
        "netcal": of_netcal(y, p, bins),
        "calibre": of_calibre(y, p, bins),
    }
    assert found == pytest.approx({name: one if same else two for name, same in together.items()}, abs=1e-12)


def test_scores_of_exactly_one():
    y, p = [1, 0, 1], [0.92, 1.0, 1.0]
    assert calcore.ece(y, p, n_bins=10) == pytest.approx(0.92 / 3)
    assert of_netcal(y, p, 10) == pytest.approx(0.92 / 3)
    assert of_calibre(y, p, 10) == pytest.approx(0.92 / 3)
    assert of_torchmetrics(y, p, 10) == pytest.approx(0.36), "a bin of its own"


def test_ties_at_quantiles():
    y, p = [0, 1, 0, 1, 1, 0], [0.1, 0.2, 0.2, 0.2, 0.7, 0.9]
    assert calcore.ece(y, p, n_bins=3, strategy="quantile") == pytest.approx(1.9 / 6)
    assert of_netcal(y, p, 3, equal_intervals=False) == pytest.approx(0.35)
    assert calibre_quantile(y, p, 3) == pytest.approx(0.35)


def test_a_rounding_error_above_one():
    """torchmetrics takes such scores for logits, all of them."""
    y, p = [1, 0, 1], np.float32([1.0000002, 0.2, 0.9])
    assert calcore.ece(y, p, n_bins=2) == pytest.approx(0.1, abs=1e-6)
    assert of_torchmetrics(y, torch.tensor(p), 2) < 0.01
    with pytest.raises(ValueError, match="outside"):
        calibration_curve(y, p, n_bins=2)


def test_more_than_two_to_the_24_rows_of_float32():
    """Counts in float32 stop at 2^24 there, so that more rows no longer count."""
    n = 2**24 + 2**20
    y = torch.arange(n) % 2
    y[: 2**24] = 1
    assert of_torchmetrics(y.numpy(), torch.full((n,), 0.5), 1) > 0.4999
    exact = abs(int(y.sum()) / n - 0.5)
    assert calcore.ece(y.numpy(), np.full(n, 0.5, np.float32), n_bins=1) == pytest.approx(exact, abs=1e-15)
    assert exact < 0.48
