"""Which of two calibrated predictors says more, whatever the decision; and whether a metric ranks them so.

A calibrated predictor of binary labels is an experiment in Blackwell's sense. It is at least as good as
another one, for every decision problem and every proper score, exactly if its scores are a mean-preserving
spread of the other's: equal means, and E (t - A)_+ >= E (t - B)_+ for every t. That order is partial. It is
about calibrated predictors: of others, recalibrate first (isotonic regression of labels on scores, say) and
pass the fitted values; fits of one sample carry its noise, and differences of its size mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calcore import _validate
from calcore.kernels import residuals

__all__ = [
    "BlackwellComparison",
    "DominanceChain",
    "MisorderedPair",
    "RankingAgreement",
    "blackwell_compare",
    "dominance_chain",
    "ranking_agreement",
]

Doubles = NDArray[np.float64]
Relation = Literal["a", "b", "equal", "incomparable"]

_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class BlackwellComparison:
    """Two calibrated predictors in Blackwell's order; from `blackwell_compare`.

    Attributes
    ----------
    relation : {"a", "b", "equal", "incomparable"}
        Which one dominates.
    against_a : float
        Largest violation of "a dominates b", in units of the score: the most by which E (t - B)_+ exceeds
        E (t - A)_+, or E (A - t)_+ the other one; 0 if there is none.
    against_b : float
        The same of "b dominates a".
    mean_a, mean_b : float
        Mean scores. They are equal, up to `tolerance`, if one predictor dominates.
    tolerance : float
        Up to which a violation counts as none.
    """

    relation: Relation
    against_a: float
    against_b: float
    mean_a: float
    mean_b: float
    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"BlackwellComparison({self.relation!r}, against_a={self.against_a:.4g}, "
            f"against_b={self.against_b:.4g})"
        )


def blackwell_compare(
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    *,
    weights_a: ArrayLike | None = None,
    weights_b: ArrayLike | None = None,
    tolerance: float = _TOLERANCE,
) -> BlackwellComparison:
    """Compare two calibrated predictors by the spread of their scores.

    Parameters
    ----------
    scores_a : array_like of shape (n,)
        Scores of predictor a, in [0, 1]: only their distribution counts.
    scores_b : array_like of shape (m,)
        Scores of predictor b on the same population; there may be another number of them.
    weights_a, weights_b : array_like, optional
        Finite weights >= 0, not all 0, one per score; default 1 each. They are divided by their sum.
    tolerance : float, default 1e-12
        Up to which a violation counts as none, in units of the score. The default covers rounding; for
        distributions estimated from n rows, something like n^(-1/2) is needed, and "equal" is then all that
        is known of predictors that are close.

    Returns
    -------
    BlackwellComparison
        ``relation`` is "a" if ``against_a <= tolerance < against_b``, "b" if it is the other way round,
        "equal" if neither is above `tolerance`, and "incomparable" if both are.

    Raises
    ------
    ValueError
        If scores, weights or the tolerance break their rules; the message names argument, rule, value and
        index.
    TypeError
        If a column does not hold numbers.

    Notes
    -----
    With D(t) = E (t - A)_+ - E (t - B)_+, the integral of the difference of distribution functions over
    [0, t], predictor a dominates if D >= 0 on [0, 1] and D(1) = mean(B) - mean(A) is 0. As E (A - t)_+ -
    E (B - t)_+ = D(t) - D(1),

        against_a = max(0, max_t (-D(t)), max_t (D(1) - D(t))),
        against_b = max(0, max_t D(t), max_t (D(t) - D(1))).

    So a difference of the means counts against both: calibrated predictors of one population have none, and
    "incomparable" then says that one is not calibrated, or the tolerance too small for a sample. D is
    piecewise linear, so scores are all the t that have to be looked at. Equal scores are one; order does not
    matter. Rounding is some 1e-15 whatever n. O(n log n).

    References
    ----------
    Blackwell, Equivalent comparisons of experiments, Ann. Math. Stat. 24 (1953). Rothschild, Stiglitz,
    Increasing risk I, J. Econ. Theory 2 (1970): the integral condition.

    Examples
    --------
    >>> sharp = blackwell_compare([0.0, 1.0], [0.25, 0.75])
    >>> sharp.relation, sharp.against_a, sharp.against_b  # at t = .25 .. .75: t/2 against (t - .25)/2
    ('a', 0.0, 0.125)
    >>> blackwell_compare([0.25, 0.25, 1.0], [0.0, 0.75, 0.75]).relation
    'incomparable'
    """
    bound = _validate.nonnegative_number(tolerance, "tolerance")
    a = _law(scores_a, weights_a, "scores_a", "weights_a")
    b = _law(scores_b, weights_b, "scores_b", "weights_b")
    return _compared(a, b, bound)


class _Law(NamedTuple):
    """A distribution on finitely many places."""

    places: Doubles
    passed: Doubles
    """Probability of everything up to each place; the last is 1."""
    mean: float


def _law(scores: ArrayLike, weights: ArrayLike | None, name: str, weight_name: str) -> _Law:
    with _validate.renamed("y_prob", name):
        places = _validate.scores(scores)
    if weights is None:
        distinct, counts = np.unique(places, return_counts=True)
        masses = counts.astype(np.float64)
    else:
        with _validate.renamed("sample_weight", weight_name):
            given = _validate.weights(weights, len(places), name)
        if not given.any():
            raise ValueError(f"{weight_name} must not be all zero")
        distinct, where = np.unique(places[given > 0.0], return_inverse=True)
        masses = np.bincount(where, given[given > 0.0] / given.max()).astype(np.float64)
    passed = residuals.running_sums(_validate.read_only(masses))
    total = passed[-1]
    return _Law(
        distinct,
        passed / total,
        float(residuals.running_sums(_validate.read_only(masses * distinct))[-1] / total),
    )


def _compared(a: _Law, b: _Law, tolerance: float) -> BlackwellComparison:
    places = np.union1d(a.places, b.places)
    gaps = np.diff(places)
    excess = (_at(a, places) - _at(b, places))[:-1]
    difference = np.concatenate([[0.0], residuals.running_sums(_validate.read_only(excess * gaps))])
    last = float(difference[-1])
    low, high = float(difference.min()), float(difference.max())
    against_a, against_b = max(0.0, -low, last - low), max(high, high - last)
    relation: Relation = "incomparable"
    if max(against_a, against_b) <= tolerance:
        relation = "equal"
    elif against_a <= tolerance:
        relation = "a"
    elif against_b <= tolerance:
        relation = "b"
    return BlackwellComparison(relation, against_a, against_b, a.mean, b.mean, tolerance)


def _at(law: _Law, places: Doubles) -> Doubles:
    """Distribution function."""
    index = np.searchsorted(law.places, places, side="right")
    return np.concatenate([[0.0], law.passed])[index]


# --- several predictors ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DominanceChain:
    """A largest set of predictors of which each dominates the next; from `dominance_chain`.

    Attributes
    ----------
    chain : tuple
        Names, from the most informative predictor down.
    pairs : tuple of tuple
        All pairs (dominating, dominated) of predictors, in or out of the chain.
    equal : tuple of tuple
        All pairs of equal predictors.
    names : tuple
        Of all predictors, in the order given.
    tolerance : float
        Up to which a violation counted as none.
    """

    chain: tuple[Any, ...]
    pairs: tuple[tuple[Any, Any], ...]
    equal: tuple[tuple[Any, Any], ...]
    names: tuple[Any, ...]
    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON; names that are no numbers or text as text."""
        return {
            "chain": [_plain(name) for name in self.chain],
            "pairs": [[_plain(name) for name in pair] for pair in self.pairs],
            "equal": [[_plain(name) for name in pair] for pair in self.equal],
            "names": [_plain(name) for name in self.names],
            "tolerance": self.tolerance,
        }

    def __repr__(self) -> str:
        return f"DominanceChain({' > '.join(map(str, self.chain))}; {len(self.names)} predictors)"


def dominance_chain(
    predictors: Mapping[Any, ArrayLike],
    *,
    sample_weight: ArrayLike | None = None,
    tolerance: float = _TOLERANCE,
) -> DominanceChain:
    """Find a maximum dominance set: the longest chain of calibrated predictors in Blackwell's order.

    Parameters
    ----------
    predictors : mapping of name to array_like
        Scores in [0, 1] of each predictor, at least one.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows, the same for all predictors.
    tolerance : float, default 1e-12
        As in `blackwell_compare`.

    Returns
    -------
    DominanceChain

    Raises
    ------
    ValueError
        If there is no predictor, or scores, weights or the tolerance break their rules.
    TypeError
        If `predictors` is no mapping.

    Notes
    -----
    The order is strict: of equal predictors one can be in the chain. Of several longest chains the one is
    taken whose most informative predictor comes first in `predictors`, then the next, and so on.
    With a tolerance the order is transitive up to tolerances only: the i-th predictor of a chain dominates
    the j-th up to (j - i) times it. Predictors are never related against the order of their E S^2, so that
    there are no cycles.

    O(k^2 n) for k predictors and their n distinct scores, after k sorts.

    Examples
    --------
    >>> found = dominance_chain({"coarse": [0.5, 0.5], "perfect": [0, 1], "good": [0.25, 0.75]})
    >>> found.chain
    ('perfect', 'good', 'coarse')
    """
    if not isinstance(predictors, Mapping):
        raise TypeError(f"predictors must map names to scores; got {type(predictors).__name__}")
    if not predictors:
        raise ValueError("predictors must have at least one entry; got 0")
    bound = _validate.nonnegative_number(tolerance, "tolerance")
    names = tuple(predictors)
    laws = [
        _law(scores, sample_weight, f"predictors[{name!r}]", "sample_weight")
        for name, scores in predictors.items()
    ]
    spread = [_second_moment(law) for law in laws]
    k = len(names)
    below: list[list[int]] = [[] for _ in range(k)]
    equal = []
    for i in range(k):
        for j in range(i + 1, k):
            relation = _compared(laws[i], laws[j], bound).relation
            if relation == "a" and spread[i] > spread[j]:
                below[i].append(j)
            elif relation == "b" and spread[j] > spread[i]:
                below[j].append(i)
            elif relation == "equal":
                equal.append((names[i], names[j]))
    length, following = [1] * k, [-1] * k
    for i in sorted(range(k), key=lambda i: spread[i]):
        for j in sorted(below[i]):
            if length[j] + 1 > length[i]:
                length[i], following[i] = length[j] + 1, j
    here = max(range(k), key=lambda i: length[i])
    chain = []
    while here >= 0:
        chain.append(names[here])
        here = following[here]
    pairs = tuple((names[i], names[j]) for i in range(k) for j in sorted(below[i]))
    return DominanceChain(tuple(chain), pairs, tuple(equal), names, bound)


def _plain(name: Any) -> Any:
    """A name as JSON takes it."""
    if isinstance(name, np.generic):
        name = name.item()
    return name if isinstance(name, bool | int | float | str) else str(name)


def _second_moment(law: _Law) -> float:
    return float((np.diff(law.passed, prepend=0.0) * law.places**2).sum())


# --- does a metric rank them so? ---------------------------------------------------------------------------


class MisorderedPair(NamedTuple):
    """A pair that a metric ranks against the order."""

    better: Any
    """The dominating predictor."""
    worse: Any
    difference: float
    """By how much the metric prefers `worse`, > 0."""
    standard_error: float | None
    """Of the difference, from resamples; None without them."""
    p_value: float | None
    """P(abs(Z) >= difference / standard_error), Z standard normal."""
    explained: bool | None
    """Whether sampling noise explains it: ``p_value > level``."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingAgreement:
    """How a metric's ranking agrees with a known order; from `ranking_agreement`.

    Attributes
    ----------
    n_pairs : int
        Ordered pairs.
    n_correct : int
        Pairs whose better predictor the metric prefers.
    n_tied : int
        Pairs with equal values.
    misordered : tuple of MisorderedPair
        The others, in the order of the pairs.
    n_explained : int or None
        Misordered pairs that sampling noise explains; None without resamples.
    level : float
        Of the test of each pair, alone.
    """

    n_pairs: int
    n_correct: int
    n_tied: int
    misordered: tuple[MisorderedPair, ...]
    n_explained: int | None
    level: float

    @property
    def agreement(self) -> float:
        """Share of pairs ranked correctly; ties count half."""
        return (self.n_correct + 0.5 * self.n_tied) / self.n_pairs

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and `agreement`, ready for JSON if the names are."""
        return {
            "n_pairs": self.n_pairs,
            "n_correct": self.n_correct,
            "n_tied": self.n_tied,
            "misordered": [pair._asdict() for pair in self.misordered],
            "n_explained": self.n_explained,
            "level": self.level,
            "agreement": self.agreement,
        }

    def __repr__(self) -> str:
        noise = "" if self.n_explained is None else f", {self.n_explained} of the misordered within noise"
        return f"RankingAgreement({self.n_correct} of {self.n_pairs} pairs{noise})"


def ranking_agreement(
    values: Mapping[Any, float],
    order: DominanceChain | Sequence[Any],
    *,
    resamples: ArrayLike | None = None,
    lower_is_better: bool = True,
    level: float = 0.05,
) -> RankingAgreement:
    """Count how many ordered pairs of predictors a metric ranks correctly, and whether noise explains others.

    Parameters
    ----------
    values : mapping of name to float
        The metric of each predictor; finite.
    order : DominanceChain or sequence of names
        A chain, of which all `DominanceChain.pairs` are compared; or names from the best predictor down, of
        which all pairs are. Names without a value are an error.
    resamples : array_like of shape (B, k), optional
        The metric recomputed on B >= 2 resamples of the rows, one column per entry of `values`, in its order;
        every row from *one* resample for all predictors, so that differences are paired.
    lower_is_better : bool, default True
        As for errors and losses.
    level : float, default .05
        A misordered pair counts as explained if its p-value is above. This is per pair: with k pairs and no
        effect at all, about `level` k of them would look significant.

    Returns
    -------
    RankingAgreement

    Raises
    ------
    ValueError
        If a value is missing or not finite, the order has no pair or a name twice, or `resamples` has another
        shape.
    TypeError
        If `values` is no mapping, or not of numbers.

    Notes
    -----
    The standard error of a difference is the standard deviation (divisor B - 1) of the differences in the
    resamples, and the p-value that of a two-sided z test, without a correction for several pairs. If the
    differences of all resamples are equal, it is 0. O(pairs B).

    Examples
    --------
    >>> found = ranking_agreement({"x": 0.1, "y": 0.3, "z": 0.2}, ["x", "y", "z"])
    >>> found.n_correct, found.n_pairs, [pair[:2] for pair in found.misordered]
    (2, 3, [('y', 'z')])
    >>> noisy = [[0.1, 0.2, 0.3], [0.1, 0.4, 0.1], [0.1, 0.3, 0.2]]
    >>> ranking_agreement({"x": 0.1, "y": 0.3, "z": 0.2}, ["x", "y", "z"], resamples=noisy).n_explained
    1
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"values must map names to numbers; got {type(values).__name__}")
    alpha = _validate.probability(level, "level")
    pairs = _pairs(order)
    columns = {name: i for i, name in enumerate(values)}
    for pair in pairs:
        for name in pair:
            if name not in columns:
                raise ValueError(f"values must have a number for every name of order; got none for {name!r}")
    numbers = {}
    for name, value in values.items():
        numbers[name] = _validate.finite_number(value, f"values[{name!r}]")
    drawn = None if resamples is None else _resamples(resamples, len(columns))
    if not isinstance(lower_is_better, bool | np.bool_):
        raise TypeError(f"lower_is_better must be True or False; got {lower_is_better!r:.40}")
    sign = 1.0 if lower_is_better else -1.0
    correct = tied = 0
    misordered = []
    for better, worse in pairs:
        difference = sign * (numbers[better] - numbers[worse])
        if difference < 0.0:
            correct += 1
        elif difference == 0.0:
            tied += 1
        elif drawn is None:
            misordered.append(MisorderedPair(better, worse, difference, None, None, None))
        else:
            spread = drawn[:, columns[better]] - drawn[:, columns[worse]]
            error = float((spread - spread[0]).std(ddof=1))
            p = math.erfc(difference / error / math.sqrt(2.0)) if error > 0.0 else 0.0
            misordered.append(MisorderedPair(better, worse, difference, error, p, p > alpha))
    explained = None if drawn is None else sum(bool(pair.explained) for pair in misordered)
    return RankingAgreement(len(pairs), correct, tied, tuple(misordered), explained, alpha)


def _pairs(order: Any) -> tuple[tuple[Any, Any], ...]:
    if isinstance(order, np.ndarray):
        order = order.tolist()
    if isinstance(order, DominanceChain):
        pairs = order.pairs
    elif isinstance(order, Sequence) and not isinstance(order, str | bytes):
        try:
            different = len(set(order))
        except TypeError as error:
            raise TypeError(f"order must hold names; {error}") from error
        if different < len(order):
            twice = next(name for i, name in enumerate(order) if name in order[:i])
            raise ValueError(f"order must name every predictor once; got {twice!r} more than once")
        pairs = tuple((better, order[j]) for i, better in enumerate(order) for j in range(i + 1, len(order)))
    else:
        raise TypeError(f"order must be a DominanceChain or a sequence of names; got {type(order).__name__}")
    if not pairs:
        raise ValueError("order must have at least one pair; got none")
    return pairs


def _resamples(resamples: ArrayLike, k: int) -> Doubles:
    try:
        drawn = np.asarray(resamples)
    except ValueError as error:
        raise ValueError(f"resamples must be a matrix; {error}") from error
    if drawn.ndim != 2 or drawn.shape[1] != k or len(drawn) < 2:
        raise ValueError(
            f"resamples must have at least two rows, and one column for each of the {k} values; "
            f"got shape {drawn.shape}"
        )
    if drawn.dtype.kind not in "buif":
        raise TypeError(f"resamples must hold numbers; got dtype {drawn.dtype}")
    drawn = drawn.astype(np.float64)
    if not np.isfinite(drawn).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(drawn))[0])
        raise ValueError(f"resamples must be finite; got {drawn[row, column]} at row {row}, column {column}")
    return drawn
