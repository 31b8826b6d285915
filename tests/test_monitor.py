"""The alarm: supermartingales by exact enumeration, false alarms under optional stopping, exact states."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from calcore import CalibrationMonitor
from calcore.kernels.betting import bet, part_of

pytestmark = pytest.mark.kernels
PLAYERS = [(parts, keep) for keep in (1.0, 1.0 - 2.0**-12) for parts in (1, 8, 64)]


def wealth_row_by_row(y: Any, s: Any, c: float) -> list[list[float]]:
    """Wealth of each player after each row: everything summed anew from the rows before."""
    found = []
    for parts, keep in PLAYERS:
        gains: list[float] = []
        path = [1.0]
        for t in range(len(s)):
            b = part_of(float(s[t]), parts)
            mine = [i for i in range(t) if part_of(float(s[i]), parts) == b]
            kept = [keep ** (len(mine) - 1 - i) for i in range(len(mine))]
            r = sum(w * (s[i] - y[i]) for w, i in zip(kept, mine, strict=True))
            v = sum(w * s[i] * (1 - s[i]) for w, i in zip(kept, mine, strict=True))
            f = max(-1.0, min(1.0, r / math.sqrt(v + 1.0)))
            x = f * (s[t] - y[t])
            w = [keep ** (t - 1 - i) for i in range(t)]
            up = sum(a * (g - c) for a, g in zip(w, gains, strict=True))
            spread = sum(a * (g - c) ** 2 for a, g in zip(w, gains, strict=True))
            stake = max(0.0, min(0.5 / (1.0 + c), up / (spread + 1.0)))
            path.append(path[-1] * (1.0 + stake * (x - c)))
            gains.append(x)
        found.append(path)
    return found


def state(monitor: CalibrationMonitor) -> dict[str, Any]:
    return {name: part.tolist() for name, part in monitor._state.items()}


def test_parts_of_scores() -> None:
    """Ends at 2 (j/n)^2 and mirrored; every score is in one of them."""
    for n in (8, 64):
        ends = [2.0 * (j / n) ** 2 for j in range(n // 2)]
        assert [part_of(end, n) for end in ends] == list(range(n // 2))
        assert [part_of(1.0 - end, n) for end in ends if end < 0.49] == [n - 1 - j for j in range(n // 2)]
        assert part_of(0.5, n) == n // 2
        assert part_of(np.nextafter(0.5, 0), n) == n // 2 - 1
        assert part_of(1.0, n) == n - 1
    assert part_of(0.3, 1) == 0


def test_wealth_is_that_of_the_slow_version() -> None:
    rng = np.random.default_rng(3)
    s = rng.random(60)
    y = (rng.random(60) < s**3).astype(int)
    for c in (0.0, 0.04, 0.25):
        slow = np.array(wealth_row_by_row(y, s, c))
        monitor = CalibrationMonitor(c, delta=0.5)
        for t in range(60):
            monitor.update(y[t : t + 1], s[t : t + 1])
            assert monitor.e_value == pytest.approx(slow[:, t + 1].mean(), rel=1e-12)
            highest = slow[:, : t + 2].mean(axis=0).max()
            assert monitor.max_e_value == pytest.approx(highest, rel=1e-12)
            j = int(np.argmin(np.abs(monitor._nulls[1:] - c)))
            assert monitor._state["highest"][1 + j] == pytest.approx(highest, rel=1e-12)
        assert slow.max() > 1.2


def played(
    s: Any, nulls: Any, residual: float = 0.0, gains: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All label vectors, and the wealth (player, null) after each."""
    n = len(s)
    vectors = np.array(list(itertools.product((0, 1), repeat=n)), np.uint8)
    nulls = np.array(nulls, float)
    found = []
    for y in vectors:
        wealth = np.ones((6, len(nulls)))
        known = np.full((6, 64), residual), np.zeros((6, 64)), np.tile(gains, (6, 1))
        arrays = *known, wealth, np.ones(len(nulls))
        keep = np.array([k for _, k in PLAYERS])
        bet(y, s, nulls, np.array([p for p, _ in PLAYERS]), keep, *arrays, np.array([-1]), 0, 1e300)
        found.append(wealth)
    return vectors, np.array(found)


@pytest.mark.parametrize(
    "s", [[0.5] * 9, [0.1, 0.9, 0.1, 0.1, 0.9, 0.1, 0.9, 0.1, 0.1], [0.31, 0.3, 0.69, 0.7] * 2]
)
def test_wealth_against_calibration_is_a_martingale_exactly(s: list[float]) -> None:
    """Over all label vectors of a calibrated model it is 1 on average, for each player."""
    scores = np.array(s)
    vectors, wealth = played(scores, [0.0])
    law = np.where(vectors == 1, scores, 1.0 - scores).prod(axis=1)
    assert np.ptp(wealth) > 0.5
    assert law @ wealth[:, :, 0] == pytest.approx(np.ones(6), abs=1e-12)


@pytest.mark.parametrize("c", [0.01, 0.09, 0.25])
def test_wealth_against_an_error_of_c_is_a_supermartingale(c: float) -> None:
    """With |s - eta| = c on every row, whatever the sign of the error, it is at most 1 on average."""
    scores = np.array([0.5] * 4 + [0.4, 0.6] * 2 + [0.5])
    vectors, wealth = played(scores, [c, c + 0.1])
    for signs in itertools.product((-1, 1), repeat=3):
        eta = scores + c * np.resize(signs, scores.size)
        law = np.where(vectors == 1, eta, 1.0 - eta).prod(axis=1)
        mean = np.tensordot(law, wealth, axes=1)
        assert (mean <= 1.0 + 1e-12).all()
    above = scores - (c + 0.2)
    law = np.where(vectors == 1, above, 1.0 - above).prod(axis=1)
    assert np.tensordot(law, wealth, axes=1)[:, 0].max() > 1.02


@pytest.mark.parametrize("c", [0.01, 0.09, 0.25])
def test_the_boundary_of_the_hypothesis_is_a_martingale_exactly(c: float) -> None:
    """Players who know the direction, and bet: their mean wealth is exactly 1 if the error is exactly c."""
    scores = np.array([0.5] * 4 + [0.4, 0.6] * 2)
    vectors, wealth = played(scores, [c, c + 0.01], residual=1e9, gains=(30.0, 40.0, 60.0))
    eta = scores - c
    law = np.where(vectors == 1, eta, 1.0 - eta).prod(axis=1)
    mean = np.tensordot(law, wealth, axes=1)
    assert np.ptp(wealth) > 1.0
    assert mean[:, 0] == pytest.approx(np.ones(6), abs=1e-12)
    assert (mean[:, 1] < 0.9999).all()


@pytest.mark.slow
def test_stakes_leave_wealth_positive() -> None:
    y, s = np.tile([0, 1], 1000), np.tile([1.0, 0.0], 1000)
    monitor = CalibrationMonitor().update(y, s)
    assert 1e199 < monitor.e_value <= 1e200  # capped, not inf
    monitor.update(1 - y, s)
    assert (monitor._state["wealth"] >= 0.0).all()
    assert math.isfinite(monitor.e_value)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "rare", "one value", "dependent"])
def test_false_alarms_under_optional_stopping(law: str) -> None:
    """Looking after every row and stopping at the first alarm: at most delta of calibrated streams, ever."""
    rng = np.random.default_rng(20250106)
    runs, n, delta = 600, 600, 0.2
    alarms = above = 0
    for _ in range(runs):
        s = {"uniform": rng.random(n), "rare": rng.beta(0.5, 9.5, n), "one value": np.full(n, 0.3)}.get(law)
        if s is None:  # the score follows the labels before
            u, values, y = rng.random(n), [0.5], []
            for t in range(n):
                y.append(int(u[t] < values[-1]))
                values.append(0.8 if sum(y[-3:]) < 2 else 0.3)
            monitor = CalibrationMonitor(delta=delta).update(y, values[:n])
        else:
            monitor = CalibrationMonitor(delta=delta).update(rng.random(n) < s, s)
        alarms += monitor.alarm
        above += monitor.lower > 0.0
    assert alarms <= delta * runs + 3.0 * math.sqrt(delta * (1.0 - delta) * runs)
    assert above <= alarms
    assert alarms > 0


@pytest.mark.slow
def test_lower_bounds_hold_at_all_times_and_reach_the_truth() -> None:
    rng = np.random.default_rng(20250107)
    runs, n, delta = 200, 1000, 0.2
    for c in (0.04, 0.16):  # on the grid, where the bound is tightest
        missed = 0
        for _ in range(runs):
            missed += (
                CalibrationMonitor(delta=delta).update(rng.random(n) < 0.5 + c, np.full(n, 0.5)).lower > c
            )
        assert missed <= delta * runs + 3.0 * math.sqrt(delta * (1.0 - delta) * runs)
    s = rng.random(50_000)
    assert 0.15 < CalibrationMonitor().update(rng.random(50_000) < s * s, s).lower <= 1 / 6


@pytest.mark.slow
def test_the_alarm_is_heard_after_a_long_silence() -> None:
    """Short memory: a change is noticed soon, however long the model was calibrated before."""
    rng = np.random.default_rng(1)
    s = rng.random(60_000)
    monitor = CalibrationMonitor().update(rng.random(60_000) < s, s)
    assert not monitor.alarm
    s = rng.random(10_000)
    monitor.update(rng.random(10_000) < s**1.3, s)
    assert monitor.alarm_at is not None
    assert 60_000 < monitor.alarm_at < 66_000


@pytest.mark.slow
def test_a_tolerated_error_raises_no_alarm_and_a_larger_one_does() -> None:
    rng = np.random.default_rng(2)
    s = 0.1 + 0.8 * rng.random(20_000)
    y = rng.random(20_000) < s - 0.05
    assert not CalibrationMonitor(0.05).update(y, s).alarm
    assert CalibrationMonitor(0.02).update(y, s).alarm
    assert 0.02 < CalibrationMonitor(0.02).update(y, s).lower <= 0.05


def test_lower_bound_stops_at_the_first_level_that_stands() -> None:
    """Levels above one that is not refuted do not count: each is a hypothesis of its own."""
    monitor = CalibrationMonitor()
    monitor._state["highest"][1:6] = [20.0, 21.0, 19.9, 30.0, 30.0]
    assert monitor.lower == 0.01**2
    monitor._state["highest"][1] = 19.0
    assert monitor.lower == 0.0


# --- state


def stream(n: int = 3000) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    rng = np.random.default_rng(8)
    s = rng.random(n)
    return rng.random(n) < np.minimum(1.0, s + 0.03), s


@pytest.mark.slow
def test_batches_do_not_show_and_files_resume_bit_for_bit(tmp_path: Path) -> None:
    y, s = stream()
    whole = CalibrationMonitor(0.001, delta=0.01).update(y, s)
    parts = CalibrationMonitor(0.001, delta=0.01)
    cuts = [0, 1, 2, 700, 701, 2500, 3000]
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        parts.update(y[start:stop].astype(float), s[start:stop].tolist())
        if i % 2:
            parts.save(tmp_path / "state.json")
            parts = CalibrationMonitor.load(tmp_path / "state.json")
        else:
            parts = pickle.loads(pickle.dumps(parts))
    assert state(parts) == state(whole)
    assert parts.to_dict() == whole.to_dict()
    parts.save(tmp_path / "a")
    whole.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_damaged_or_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    CalibrationMonitor().update(*stream(50)).save(path)
    good = json.loads(path.read_text())
    for change, message in (
        ({"n": 51}, "damaged"),
        ({"wealth": good["wealth"][1:]}, "damaged"),
        ({"version": 2}, "version 2"),
        ({"format": "calcore cell table"}, "is not a calcore monitor file"),
        ({"sha256": "0"}, "damaged"),
    ):
        path.write_text(json.dumps(good | change))
        with pytest.raises(ValueError, match=message):
            CalibrationMonitor.load(path)
    for text in ("", "[]", "no json", "1"):
        path.write_text(text)
        with pytest.raises(ValueError, match="is not a calcore monitor file"):
            CalibrationMonitor.load(path)
    with pytest.raises(FileNotFoundError):
        CalibrationMonitor.load(tmp_path / "none")


def test_nothing_is_added_if_a_row_is_refused() -> None:
    y, s = stream(100)
    monitor = CalibrationMonitor().update(y, s)
    before = state(monitor)
    with pytest.raises(ValueError, match=r"got 2\.0 at index 99"):
        monitor.update(y, np.append(s[:99], 2.0))
    assert state(monitor) == before
    assert monitor.n == 100


def test_what_it_says() -> None:
    monitor = CalibrationMonitor()
    assert (monitor.n, monitor.e_value, monitor.p_value, monitor.lower, monitor.alarm_at) == (
        0,
        1.0,
        1.0,
        0.0,
        None,
    )
    assert "no alarm; 0 rows" in repr(monitor)
    monitor.update([0] * 200, [0.9] * 200)
    assert monitor.alarm
    assert f"alarm after {monitor.alarm_at} rows" in repr(monitor)
    assert json.loads(json.dumps(monitor.to_dict()))["alarm"] is True
    assert monitor.p_value == 1.0 / monitor.max_e_value
    step = CalibrationMonitor().update([0] * (monitor.alarm_at or 0), [0.9] * (monitor.alarm_at or 0))
    assert step.alarm_at == monitor.alarm_at
    assert not CalibrationMonitor().update([0] * (step.n - 1), [0.9] * (step.n - 1)).alarm


@pytest.mark.parametrize("options", [{"max_ce": 1.0}, {"max_ce": -0.1}, {"delta": 0.0}, {"delta": 1e-200}])
def test_options_are_checked(options: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        CalibrationMonitor(**options)


def test_one_compilation() -> None:
    CalibrationMonitor().update(np.float32([0.0, 1.0]), np.float32([0.25, 0.5])).update([True], [1])
    if hasattr(bet, "signatures"):
        assert len(bet.signatures) <= 2  # that of this file's direct calls has other arrays
