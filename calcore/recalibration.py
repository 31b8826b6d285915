"""Temperature scaling: one number that makes a classifier's probabilities less, or more, extreme."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, softmax

from calcore import _validate
from calcore._classes import class_rows, codes_by_name, codes_by_number, matrix_of, row_blocks
from calcore._validate import _column, _label_column
from calcore.scoring.losses import exponent_of, is_matrix, named

__all__ = ["BOUNDS", "TemperatureScaling"]

Floats = NDArray[np.float64]

BOUNDS = (1e-3, 1e3)
"""Between which the temperature is looked for."""

_LARGEST = 1e300
"""Logits beyond it are refused: differences of them could overflow."""

_SUM = {2: 1e-2, 4: 1e-4}
"""How far from 1 a row of probabilities may sum, by bytes per float (others: 1e-6)."""


class TemperatureScaling:
    """Divide logits by one temperature T > 0, the one with the least log loss on held-out rows.

    The new probabilities are softmax(logits / T): T > 1 makes them less extreme, T < 1 more. The order of the
    classes in a row never changes, so accuracy does not either. Fit it on rows that the model was not
    trained on, and measure calibration on others still. It cures over- or underconfidence that is the same
    everywhere, and nothing else.

    Parameters
    ----------
    input : {"logits", "probabilities"}
        What `fit` and the other methods are given. Log-probabilities are logits: softmax gives the
        probabilities back. Probabilities are not, and are refused as such; with "probabilities" their
        logarithms are taken.
    bounds : tuple of two floats, default (1e-3, 1e3)
        Between which T is looked for, 0 < low < high. A fit that ends on one of them warns.

    Attributes
    ----------
    temperature_ : float
        T, in `bounds`.
    nll_, nll_before_ : float
        Mean log loss of the rows of `fit` at T and at T = 1, in nats; `calcore.scoring.log_loss` of the
        probabilities.
    bound_ : {"lower", "upper"} or None
        The bound that T is on.
    classes_ : tuple
        The label of each column; of logits in one column the negative (None if there was none) and the
        positive label.

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names it, the rule, the value and where.

    Notes
    -----
    The log loss is convex in 1/T, so it has one minimum over T. It lies on a bound if the slope there points
    outwards, and both slopes are looked at first: at the lower bound if every label has the largest logit of
    its row (separable rows: the loss falls as T goes to 0), at the upper bound if labels have smaller logits
    than the others on average (no T > 0 is better than equal probabilities). Otherwise log T is found by
    L-BFGS-B between the bounds; at its minimum the loss is flat, so the root of its slope then settles the
    last digits (Brent's method). If all logits of every row are equal, T changes nothing and is 1,
    or the bound that is next to it.

    Logits may be of any float type and up to 1e300 in magnitude: the largest of each row is subtracted first,
    in float64. -inf, the logarithm of a probability 0, is allowed but for the label. Each evaluation is O(n
    k), in blocks of rows; the matrix is not copied.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, ICML 2017 (arXiv 1706.04599), section 4.2.

    Examples
    --------
    Three of four rows are of class 0, so p = 3/4 is right: exp(1/T) = 3.

    >>> scaling = TemperatureScaling().fit([[1.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> round(scaling.temperature_, 6)  # 1 / ln 3
    0.910239
    >>> scaling.predict_proba([[1.0, 0.0]]).round(6)
    array([[0.75, 0.25]])

    Of one column of logits, those of the positive class:

    >>> TemperatureScaling().fit([4.0] * 4, [1, 1, 1, 0]).predict_proba([4.0, -4.0]).round(6)
    array([0.75, 0.25])
    """

    temperature_: float
    nll_: float
    nll_before_: float
    bound_: Literal["lower", "upper"] | None
    classes_: tuple[Any, ...]

    def __init__(
        self,
        *,
        input: Literal["logits", "probabilities"] = "logits",
        bounds: tuple[float, float] = BOUNDS,
    ) -> None:
        self.input = _validate.choice(input, "input", ("logits", "probabilities"))
        self.bounds = _bounds(bounds)

    def __repr__(self) -> str:
        fitted = f"temperature_={self.temperature_:.6g}" if hasattr(self, "temperature_") else "not fitted"
        return f"<TemperatureScaling: {fitted}>"

    def fit(
        self,
        logits: ArrayLike,
        y_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        labels: ArrayLike | None = None,
    ) -> Self:
        """Find the temperature. The order of arguments is that of estimators: what is known, then labels.

        Parameters
        ----------
        logits : array_like of shape (n, k) or (n,)
            Logits or log-probabilities of every class, or logits of the positive class, which are then
            log(p / (1 - p)). With ``input="probabilities"``: probabilities.
        y_true : array_like of shape (n,)
            Of a matrix: columns 0 to k - 1, or any of `labels`. Of one column: bool, 0/1, -1/+1, or any other
            pair with `pos_label`.
        sample_weight : array_like of shape (n,), optional
            Finite weights >= 0.
        pos_label : bool, int, float, str or bytes, optional
            The label that counts as positive. Not with a matrix.
        labels : array_like of shape (k,), optional
            The label of each column of a matrix.

        Returns
        -------
        TemperatureScaling
            This object.

        Raises
        ------
        ValueError
            If logits are NaN, +inf or beyond 1e300; if that of a label, or of a whole row, is -inf (no T
            gives it a probability above 0); if labels or weights break their rules; if a matrix of logits
            holds probabilities: every entry in [0, 1] and every row of sum 1, unless all entries are 0 or 1,
            which T could not change if they were probabilities.
        TypeError
            If an argument is of another kind than it must be.

        Warns
        -----
        UserWarning
            If the temperature ends on a bound, if no temperature changes anything, or if logits of one column
            all lie in [0, 1], as probabilities would.
        """
        data = self._read(logits, y_true, sample_weight, pos_label, labels)
        scale = data.scale
        low, high = self.bounds
        bound: Literal["lower", "upper"] | None = None
        if scale == 0.0:
            temperature = min(max(1.0, low), high)
            _warn("temperature_ has no effect: all logits of every row are equal")
        elif _evaluate(data, low)[1] >= 0.0:
            temperature, bound = low, "lower"
        elif _evaluate(data, high)[1] <= 0.0:
            temperature, bound = high, "upper"
        else:
            temperature = _interior(data, low, high)
        if bound is not None:
            reason = {
                "lower": "the log loss still falls there, as where every label has the largest logit",
                "upper": "the log loss still falls there, as where labels have smaller logits than others",
            }[bound]
            _warn(f"temperature_ is on the {bound} bound, {temperature:g}: {reason}; see bounds")
        self.temperature_, self.bound_, self.classes_ = temperature, bound, data.classes
        self.nll_, self.nll_before_ = _evaluate(data, temperature)[0], _evaluate(data, 1.0)[0]
        return self

    def transform(self, logits: ArrayLike) -> Floats:
        """Logits divided by the temperature, in the shape given.

        With ``input="probabilities"`` their logarithms are divided, or the logits of one column: those of 0
        and 1 are infinite.

        Parameters
        ----------
        logits
            As in `fit`.

        Returns
        -------
        ndarray of float64
            Of the same shape. Log-probabilities come out as logits: their rows are no longer normalised.

        Raises
        ------
        RuntimeError
            Before `fit`.
        ValueError
            If `logits` break their rules.
        """
        temperature = self._fitted("transform")
        matrix, binary = self._checked(logits)
        result = np.empty(matrix.shape)
        for start, block in row_blocks(matrix):
            result[start : start + len(block)] = self._as_logits(block, binary) / temperature
        return result[:, 0] if binary else result

    def predict_proba(self, logits: ArrayLike) -> Floats:
        """Probabilities at the temperature, in the shape given.

        Parameters
        ----------
        logits
            As in `fit`.

        Returns
        -------
        ndarray of float64, shape (n, k) or (n,)
            Of every class; of logits in one column, of the positive class, as metrics take it.

        Raises
        ------
        RuntimeError
            Before `fit`.
        ValueError
            If `logits` break their rules.
        """
        temperature = self._fitted("predict_proba")
        matrix, binary = self._checked(logits)
        result = np.empty(matrix.shape)
        for start, block in row_blocks(matrix):
            values = self._as_logits(block, binary)
            if binary:
                result[start : start + len(block)] = expit(values / temperature)
                continue
            values -= values.max(axis=1, keepdims=True)
            result[start : start + len(block)] = softmax(values / temperature, axis=1)
        return result[:, 0] if binary else result

    # ------------------------------------------------------------------------------------------------- input

    def _fitted(self, method: str) -> float:
        if not hasattr(self, "temperature_"):
            raise RuntimeError(f"{method} needs a temperature; call fit(logits, y_true) first")
        return self.temperature_

    def _as_logits(self, block: NDArray[Any], binary: bool) -> Floats:
        values = block.astype(np.float64)
        if self.input == "logits":
            return values
        values = np.clip(values, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return np.log(values) - np.log1p(-values) if binary else np.log(values)

    def _read(self, logits: Any, y_true: Any, sample_weight: Any, pos_label: Any, labels: Any) -> _Data:
        matrix, binary = self._checked(logits)
        if binary:
            if labels is not None:
                raise TypeError("labels must be left out for one column; the positive label is pos_label")
            with _validate.renamed("y_prob", "logits"):
                rows = _validate.binary(y_true, np.zeros(len(matrix)), pos_label=pos_label)
                codes = rows.block(0, len(rows))[0].astype(np.int64)
            classes: tuple[Any, ...] = (rows.negative, rows.positive)
        else:
            if pos_label is not None:
                raise TypeError("pos_label must be left out for a matrix; name its columns by labels")
            with named("logits"):
                classes, codes = _codes(y_true, labels, matrix)
        mass = None
        if sample_weight is not None:
            mass = _validate.weights(sample_weight, len(matrix))
            mass = np.ldexp(mass, -exponent_of(mass))
        data = _Data(self, matrix, binary, codes, mass, classes)
        if self.input == "logits":
            _refuse_probabilities(matrix, binary)
        return data._replace(scale=data.largest_difference())

    def _checked(self, logits: Any) -> tuple[NDArray[Any], bool]:
        """A matrix of checked logits or probabilities, and whether it is the positive class alone."""
        if is_matrix(logits):
            with named("logits"):
                matrix, binary = matrix_of(logits), False
                if len(matrix) == 0:
                    raise ValueError("logits must have at least one row; got 0")
                if self.input == "probabilities":
                    class_rows(np.zeros(len(matrix), np.int64), matrix)
        else:
            shape = getattr(logits, "shape", None)
            if isinstance(shape, tuple) and len(shape) == 2 and hasattr(logits, "reshape"):
                logits = logits.reshape(-1)
            if self.input == "probabilities":
                with _validate.renamed("y_prob", "logits"):
                    return _validate.scores(logits)[:, None], True
            matrix, binary = _validate.number_column(logits, "logits")[:, None], True
        if self.input == "logits":
            _check_logits(matrix)
        return matrix, binary


class _Data(NamedTuple):
    """Checked rows of a fit."""

    owner: TemperatureScaling
    matrix: NDArray[Any]
    binary: bool
    codes: NDArray[np.int64]
    mass: Floats | None
    classes: tuple[Any, ...]
    scale: float = 0.0
    """Largest finite difference between two logits of a row."""

    def blocks(self) -> Iterator[tuple[Floats, Floats, Floats | None]]:
        """Logits less the largest of their row, that of the label, and weights, a block of rows at a time."""
        for start, block in row_blocks(self.matrix):
            stop = start + len(block)
            values = self.owner._as_logits(block, self.binary)
            if self.binary:
                values = np.column_stack([np.minimum(-values, 0.0), np.minimum(values, 0.0)])
            else:
                values -= values.max(axis=1, keepdims=True)
            here = values[np.arange(len(block)), self.codes[start:stop]]
            yield values, here, None if self.mass is None else self.mass[start:stop]

    def largest_difference(self) -> float:
        largest, start = 0.0, 0
        for values, here, mass in self.blocks():
            lost = (here == -np.inf) if mass is None else (here == -np.inf) & (mass > 0.0)
            if lost.any():
                self._refuse_impossible(start + int(np.argmax(lost)), int(np.count_nonzero(lost)))
            largest = max(largest, -float(values.min(where=values > -np.inf, initial=0.0)))
            start += len(here)
        return largest

    def _refuse_impossible(self, row: int, count: int) -> NoReturn:
        label = self.classes[self.codes[row]]
        more = f" (and {count - 1} more nearby)" if count > 1 else ""
        what = "probability 0" if self.owner.input == "probabilities" else "-inf"
        raise ValueError(
            f"logits must give every label a probability above 0, or no temperature fits; got {what} for "
            f"label {label!r} at row {row}{more}"
        )


def _evaluate(data: _Data, temperature: float) -> tuple[float, float]:
    """Mean log loss, and its derivative by log T divided by `data.scale` / T, which has no units.

    The derivative by log T is (z_label - E z) / T on average, z the logits and E their mean under softmax.
    """
    losses, slopes, totals = [], [], []
    scale, n = data.scale or 1.0, len(data.matrix)
    for values, here, mass in data.blocks():
        weights = np.exp(values / temperature)
        norm = weights.sum(axis=1)
        values /= scale
        np.copyto(values, 0.0, where=weights == 0.0)
        mean = (weights * values).sum(axis=1) / norm
        loss, slope = np.log(norm) - here / temperature, here / scale - mean
        if mass is not None:
            used = mass > 0.0
            loss, slope, mass = loss[used] * mass[used], slope[used] * mass[used], mass[used]
        losses.append(float((loss / n).sum()))  # divided first: no sum overflows
        slopes.append(float((slope / n).sum()))
        totals.append((len(here) if mass is None else float(mass.sum())) / n)
    total = math.fsum(totals)
    return max(math.fsum(losses) / total, 0.0), math.fsum(slopes) / total


def _interior(data: _Data, low: float, high: float) -> float:
    """Temperature at which the slope, negative at `low` and positive at `high` in log T, is 0."""
    ends = math.log(low), math.log(high)

    def loss(t: Floats) -> tuple[float, Floats]:
        temperature = math.exp(t[0])
        value, slope = _evaluate(data, temperature)
        return value, np.array([slope * (data.scale / temperature)])

    def slope(t: float) -> float:
        return _evaluate(data, math.exp(t))[1]

    first = min(max(0.0, ends[0]), ends[1])
    found = float(minimize(loss, [first], jac=True, method="L-BFGS-B", bounds=[ends]).x[0])
    found = min(ends[1], max(ends[0], found))
    step = 1e-6
    while True:  # the slope has its signs at the bounds at the latest
        left, right = max(found - step, ends[0]), min(found + step, ends[1])
        if slope(left) <= 0.0 <= slope(right) or (left, right) == ends:
            break
        step *= 10.0
    root: Any = brentq(slope, left, right, xtol=1e-13)
    return math.exp(root)


# ----------------------------------------------------------------------------------------------------- checks


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=_validate.callers_level())


def _bounds(bounds: Any) -> tuple[float, float]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be two numbers, 0 < low < high; got {bounds!r:.60}") from None
    ends = _validate.positive_number(low, "bounds"), _validate.positive_number(high, "bounds")
    if not (1e-6 <= ends[0] < ends[1] <= 1e6):
        raise ValueError(f"bounds must ascend, within 1e-6 to 1e6; got {ends}")
    return ends


def _codes(y_true: Any, labels: Any, matrix: NDArray[Any]) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    given = _label_column(y_true)
    n, k = matrix.shape
    if len(given) != n:
        raise ValueError(f"y_true and logits must have the same number of rows; got {len(given)} and {n}")
    if labels is None:
        return tuple(range(k)), codes_by_number(given, k)
    return codes_by_name(given, _column(labels, "labels"), k)


def _check_logits(matrix: NDArray[Any]) -> None:
    binary = matrix.shape[1] == 1
    for start, block in row_blocks(matrix):
        values = block.astype(np.float64)
        bad = ~(np.abs(values) <= _LARGEST)
        if not binary:
            bad &= values != -np.inf
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            place = f"index {start + row}" if binary else f"row {start + row}, column {column}"
            value = float(values[row, column])
            raise ValueError(
                "logits must be numbers of magnitude at most 1e300"
                f"{'' if binary else ', or -inf for a probability of 0'}; got {value!r} at {place}"
            )
        if not binary and (values.max(axis=1) == -np.inf).any():
            row = start + int(np.argmax(values.max(axis=1) == -np.inf))
            raise ValueError(
                f"logits must leave every row a class that is possible; got -inf alone at row {row}"
            )


def _refuse_probabilities(matrix: NDArray[Any], binary: bool) -> None:
    """Refuse rows that sum to 1, in [0, 1]: logits of any use do not. One column: warn, as it could be."""
    tolerance = _SUM.get(matrix.dtype.itemsize, 1e-6) if matrix.dtype.kind == "f" else 1e-6
    whole = True
    for _, block in row_blocks(matrix):
        values = block.astype(np.float64)
        if values.min() < 0.0 or values.max() > 1.0:
            return
        if not binary and np.abs(values.sum(axis=1) - 1.0).max() > tolerance:
            return
        whole = whole and bool(np.all((values == 0.0) | (values == 1.0)))
    if whole:
        return
    if binary:
        _warn("logits all lie in [0, 1]; if they are probabilities, pass input='probabilities'")
        return
    raise ValueError(
        "logits must not be probabilities; got rows in [0, 1] that all sum to 1: pass np.log of them, or use "
        "TemperatureScaling(input='probabilities')"
    )
