"""An alarm for calibration that may be looked at after every row (THEORY 8)."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from calcore import _validate
from calcore.kernels.betting import bet
from calcore.table.storage import replacing

__all__ = ["CalibrationMonitor"]

_FORMAT = "calcore monitor"
_VERSION = 1
_BLOCK = 65_536

_PLAYERS = [(parts, keep) for keep in (1.0, 1.0 - 2.0**-12) for parts in (1, 8, 64)]
"""Parts of the scores, and memory: of all rows, or of about the last 4,096. Their mean wealth counts."""

_LEVELS = 100
"""Lower bounds are squares of hundredths: .0001, .0004, ..., .9801."""

_ARRAYS = ("residual", "variance", "gains", "wealth", "highest")


class CalibrationMonitor:
    """Watch a model in use, batch by batch, and raise an alarm that may be heeded at any time.

    Somebody bets against the model, row by row, on what was seen before. If the model is calibrated, what is
    staked *ever* grows by a factor of 1/delta with probability at most delta: looking after each batch, and
    stopping when something shows, is allowed. (An interval of `certify` is for a number of rows fixed in
    advance.)

    Parameters
    ----------
    max_ce : float, default 0
        The calibration error that is tolerated. The alarm is against the hypothesis that, given all rows
        before, the next row comes from a population whose calibration error is at most this. 0: perfect
        calibration, P(Y = 1 | S, rows before) = S.
    delta : float, default 0.05
        Probability of a false alarm, ever, and of a lower bound above the truth, ever; each for itself.

    Attributes
    ----------
    n : int
        Rows seen.
    e_value, max_e_value : float
        Evidence against the hypothesis now, and the most there has been. At most 1 on average if it is true.
    p_value : float
        1 / max_e_value: valid at any time.
    alarm : bool
        Whether max_e_value has reached 1/delta.
    alarm_at : int or None
        Rows after which it did.
    lower : float
        Lower bound of the calibration error, at confidence 1 - delta for all times together; it never
        falls. Where rows come from changing populations it is one of the largest of their errors.

    Notes
    -----
    Rows need not be independent: the hypothesis speaks of each row given those before. They may be fed in any
    order that was fixed without their labels. Six players bet on 1, 8 or 64 parts of the scores, with long
    and short memory. Nothing is assumed of eta. A few microseconds a row; 20 KiB.

    The same rows give the same state, bit for bit, in any batches, and with `save` and `load` between.

    References
    ----------
    Ville (1939). Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting, JRSS B
    (2024).

    Examples
    --------
    >>> monitor = CalibrationMonitor()
    >>> monitor.update([0, 1] * 100, [0.5] * 200).alarm
    False
    >>> monitor.update([1, 1] * 100, [0.5] * 200).alarm
    True
    >>> 0.05 < monitor.lower < 0.25
    True
    """

    def __init__(self, max_ce: float = 0.0, *, delta: float = 0.05) -> None:
        self.max_ce = _validate.nonnegative_number(max_ce, "max_ce")
        if self.max_ce >= 1.0:
            raise ValueError(f"max_ce must be below 1; got {max_ce}")
        self.delta = _validate.probability(delta, "delta")
        if self.delta < 1e-100:
            raise ValueError(f"delta must be at least 1e-100; got {delta}")
        levels = (np.arange(_LEVELS) / _LEVELS) ** 2
        self._nulls = np.concatenate([[self.max_ce], levels])
        self._parts = np.array([parts for parts, _ in _PLAYERS])
        self._keep = np.array([keep for _, keep in _PLAYERS])
        k, j = len(_PLAYERS), self._nulls.size
        self._state = {
            "residual": np.zeros((k, int(self._parts.max()))),
            "variance": np.zeros((k, int(self._parts.max()))),
            "gains": np.zeros((k, 3)),
            "wealth": np.ones((k, j)),
            "highest": np.ones(j),
        }
        self._first = np.array([-1])
        self._n = 0

    @property
    def n(self) -> int:
        return self._n

    @property
    def e_value(self) -> float:
        return float(self._state["wealth"][:, 0].mean())

    @property
    def max_e_value(self) -> float:
        return float(self._state["highest"][0])

    @property
    def p_value(self) -> float:
        return 1.0 / self.max_e_value

    @property
    def alarm(self) -> bool:
        return self.alarm_at is not None

    @property
    def alarm_at(self) -> int | None:
        return int(self._first[0]) if self._first[0] >= 0 else None

    @property
    def lower(self) -> float:
        refuted = self._state["highest"][1:] >= 1.0 / self.delta
        n_refuted = int(np.argmin(np.append(refuted, False)))  # from 0 upwards, without a gap
        return float(self._nulls[n_refuted]) if n_refuted else 0.0

    def update(self, y_true: ArrayLike, y_prob: ArrayLike, *, pos_label: Any = None) -> Self:
        """Add rows, in the order in which they came; nothing is added if any row is refused.

        Parameters
        ----------
        y_true, y_prob, pos_label
            As in `certify`.

        Returns
        -------
        CalibrationMonitor
            This monitor.

        Raises
        ------
        ValueError, TypeError
            If labels or scores break their rules.
        """
        rows = _validate.binary(y_true, y_prob, pos_label=pos_label)
        for start in range(0, len(rows), _BLOCK):
            rows.block(start, start + _BLOCK)
        residual, variance, gains, wealth, highest = arrays = [self._state[name].copy() for name in _ARRAYS]
        first = self._first.copy()
        for start in range(0, len(rows), _BLOCK):
            labels, scores, _ = rows.block(start, start + _BLOCK)
            before = self._n + start
            bet(
                labels,
                scores,
                self._nulls,
                self._parts,
                self._keep,
                residual,
                variance,
                gains,
                wealth,
                highest,
                first,
                before,
                1.0 / self.delta,
            )
        self._state = dict(zip(_ARRAYS, arrays, strict=True))
        self._first = first
        self._n += len(rows)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one file of JSON, completely or not at all; numbers are hexadecimal, so exact.

        Raises
        ------
        ValueError
            If `path` names no file, or something else than a regular file.
        """
        about = self._about()
        with replacing(path) as part, open(part, "x", encoding="ascii") as file:
            json.dump({**about, "sha256": _checksum(about)}, file)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a monitor written by `save`.

        Raises
        ------
        ValueError
            If the file is no monitor, of an unknown version, or damaged.
        """
        name = os.fsdecode(path)
        try:
            about = json.loads(Path(name).read_bytes())
        except (ValueError, RecursionError):
            about = None
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise ValueError(f"{name} is not a {_FORMAT} file")
        if about.get("version") != _VERSION:
            version = about.get("version")
            raise ValueError(f"{name} has version {version!r} of the {_FORMAT} format; known: {_VERSION}")
        if about.pop("sha256", None) != _checksum(about):
            raise ValueError(f"{name} is damaged: the checksum does not match")
        monitor = cls(float.fromhex(about["max_ce"]), delta=float.fromhex(about["delta"]))
        for key in _ARRAYS:
            shape = monitor._state[key].shape
            monitor._state[key] = np.array([float.fromhex(v) for v in about[key]]).reshape(shape)
        monitor._first[0], monitor._n = about["first"], about["n"]
        return monitor

    def _about(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "max_ce": self.max_ce.hex(),
            "delta": self.delta.hex(),
            "n": self._n,
            "first": int(self._first[0]),
            **{key: [float(v).hex() for v in self._state[key].ravel()] for key in _ARRAYS},
        }

    def to_dict(self) -> dict[str, Any]:
        """What the monitor says, as plain numbers; for its state see `save`."""
        names = ("n", "max_ce", "delta", "e_value", "max_e_value", "p_value", "alarm", "alarm_at", "lower")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        heard = f"alarm after {self.alarm_at} rows" if self.alarm else "no alarm"
        size = f"1e{math.floor(math.log10(self.e_value))}" if self.e_value >= 1e6 else f"{self.e_value:.3g}"
        return (
            f"<CalibrationMonitor: {heard}; {self.n} rows, e-value {size} against CE <= {self.max_ce:g}, "
            f"CE >= {self.lower:.4g} at {1.0 - self.delta:.6g}>"
        )


def _checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
