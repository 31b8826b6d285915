"""`certify`: from scores and labels to a finite-sample interval for the calibration error."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np

from calcore import _validate
from calcore.bounds import kl_upper
from calcore.certificates.bins import Running, Smoothness, Table
from calcore.certificates.bound import Bound
from calcore.certificates.buckets import buckets_upper
from calcore.certificates.inversion import inversion_upper
from calcore.certificates.lower import binned_lower
from calcore.certificates.perturbed import why_not_perturbed
from calcore.certificates.plan import Planner
from calcore.certificates.plugin import NO_ASSUMPTION, SHARES, plug_in_upper
from calcore.certificates.polynomials import polynomials_upper
from calcore.certificates.total_variation import tv_upper
from calcore.certificates.windows import nw_folds_upper, nw_upper
from calcore.results import Certificate
from calcore.table import CellTable, ScoreTable, tabulate
from calcore.table.given import given

__all__ = ["ROW_METHODS", "certify"]

Method = Literal["auto", "plugin", "inversion", "polynomials", "tv", "nw", "nw-folds", "buckets"]
_METHODS = get_args(Method)
_ONE_KIND = {  # of assumption, and those that each can use
    "polynomials": ("perturbed",),
    "tv": ("variation", "lipschitz", "perturbed"),
    "nw": ("lipschitz", "perturbed"),
    "nw-folds": ("lipschitz", "perturbed"),
    "buckets": ("lipschitz", "perturbed"),
}
ROW_METHODS = ("tv", "nw", "nw-folds")
"""Methods that need single rows: a ScoreTable, or arrays, which are sorted at any size."""

_PARTS = {"both": (0.25, 0.75), "upper": (0.0, 1.0), "lower": (1.0, 0.0)}  # of delta, below and above
_BRIER = 0.05  # part of delta that pays for the bound of the Brier score
_ENOUGH_TO_INVERT = 8_000  # rows, for "auto"
_ENOUGH_TO_FIT = 300


def certify(
    y_true: Any,
    y_prob: Any = None,
    *,
    delta: float = 0.05,
    side: Literal["both", "upper", "lower"] = "both",
    method: Method = "auto",
    variation: float | None = None,
    lipschitz: float | None = None,
    perturbed: float | None = None,
    groups: Any = None,
    pos_label: Any = None,
    n_folds: int = 5,
    rng: Any = None,
) -> Certificate:
    """Certify the L1 calibration error of binary probabilities.

    Bounds ``CE = E|S - P(Y = 1 | S)|``, how far the scores S are on average from the frequencies they
    announce, from n independent rows, at every n, whatever the distribution of the scores. Use it when
    somebody will rely on the probabilities; to compare models during development, proper scores (Brier, log
    loss) decide. Rows that depend on each other (of one patient, day or user) need `groups`, or the
    certificate does not hold.

    Parameters
    ----------
    y_true : (n,) array_like, ScoreTable or CellTable
        Labels: 0/1, bool, -1/+1, or two other values with `pos_label`. A table stands for both columns.
    y_prob : (n,) array_like, optional
        Scores in [0, 1] for the positive class, from anything `numpy.asarray` takes or a data frame's column.
        A rounding error outside [0, 1] (1e-9 for float64, 1e-6 for float32, 2e-3 for float16) is clipped and
        counted.
    delta : float, default 0.05
        Probability that the interval misses, in (0, 1).
    side : {"both", "upper", "lower"}
        "both" spends a quarter of `delta` below and three quarters above; the others spend all on one end.
    method : {"auto", "plugin", "inversion", "polynomials", "tv", "nw", "nw-folds", "buckets"}
        "plugin" measures the error in bins of scores (THEORY 1); best where there is much of it. "inversion"
        takes out what the noise of the labels adds to that (THEORY 2): sharper for models that are nearly
        calibrated. "polynomials" fits the rates of perturbed scores, which are smooth (THEORY 4.2): the
        sharpest with `perturbed`, which it needs. "auto" is the best of those that suit n and the assumption,
        at parts of the upper end's `delta` that these two fix: from 8,000 rows on the inversion (.8) and the
        plug-in (.2), with `perturbed` from 300 rows on polynomials (.8) and the plug-in (.2), with
        `variation` too these by halves, and from 8,000 rows all three; else, and with `lipschitz` alone, the
        plug-in. The others are certificates of the literature (THEORY 5): "tv" fits by total variation
        denoising and tests the fit on other rows, over `n_folds`; "nw" averages over windows of scores;
        "nw-folds" does so over folds; "buckets" is the classical binned error with Hoeffding's bound in every
        bin. All but "tv" need `lipschitz` or `perturbed`. An assumption that a method cannot use is an error.
        "tv", "nw" and "nw-folds" need single rows: no CellTable, and arrays of any size are sorted.
    variation : float, optional
        Assume that the calibration function eta(s) = P(Y=1 | S=s) has total variation at most this on [0, 1].
        1 covers every monotone eta. ``math.inf`` assumes nothing: right for scores that take few values by
        design (verbalised confidences, votes, rounded scores). When no assumption is named, 1 is taken, or
        nothing where the scores take so few values that doing without costs at most a factor of two.
    lipschitz : float, optional
        Assume \\|eta(s) - eta(t)\\| <= lipschitz * \\|s - t\\|.
    perturbed : float, optional
        Each score was drawn from the density proportional to sech((t - s) / perturbed) on [0, 1], t the
        classifier's score (drawn from the density restricted to [0, 1], not clipped to it), and will be in
        use. Then eta is 1/(2 perturbed)-Lipschitz whatever the classifier (THEORY 1.5). Scores with more
        ties, or exact zeros and ones, than rounding to float32 explains are refused (THEORY 4.1); float32
        scores that went through decimal text must be made float32 again.
    groups : (n,) array_like, optional
        Keep one random row of each group.
    pos_label : optional
        The label that counts as positive.
    n_folds : int, default 5
        Folds of "tv" and "nw-folds", at least 2; each is fitted and tested at its part of `delta`, and the
        bound is the mean. With fewer rows than folds, every row is a fold.
    rng : None, int or numpy.random.Generator
        Draws the row that is kept of each group, and the folds; nothing else is random. None means 0: the
        same call gives the same interval.

    Returns
    -------
    Certificate
        `lower`, `upper`, the terms of the upper bound, and everything that the numbers depend on.

    Raises
    ------
    ValueError
        If an argument is outside its domain; the message names it, the rule, the value and the position.
    TypeError
        If `y_prob` is missing, or given beside a table.

    Notes
    -----
    Bins of equal mass never split tied scores, and everything about them is chosen from scores alone. Above a
    million rows the scores are held in cells (`CellTable`), which costs at most a cell's width; build a
    `ScoreTable` first to keep them all. Scores that no grid suits are sorted at any size, 8 bytes a row. O(n
    log n) sorted, O(n) in cells.

    The interval's ends come from different arguments. If they cross, the data contradict the assumption at
    this confidence: the upper end is then 1 and `warnings` say so. Bins are planned from scores alone, so a
    stronger assumption gives a smaller bound as a rule, not always.

    References
    ----------
    THEORY.md beside the package's code, sections 1, 2, 3, 5 and 6. Ciosek et al. (2025), arXiv 2512.13872,
    for the published methods. Gupta, Podkopaev & Ramdas (2020) and Lee, Huang, Hassani & Dobriban (2023) show
    why an upper bound needs an assumption when scores are continuous.

    Examples
    --------
    A forecaster who says 50 % a thousand times and is right half of the time. One score value is an atom:
    nothing has to be assumed.

    >>> certificate = certify([0, 1] * 500, [0.5] * 1000)
    >>> certificate.assumption
    'none'
    >>> certificate.lower, certificate.upper < 0.05
    (0.0, True)
    """
    delta = _validate.probability(delta, "delta")
    _validate.choice(side, "side", ("both", "upper", "lower"))
    _validate.choice(method, "method", _METHODS)
    smooth, words = (
        _one_assumption(method, variation, lipschitz, perturbed)
        if method in _ONE_KIND
        else _assumption(variation, lipschitz, perturbed)
    )
    folds = _validate.whole_number(n_folds, "n_folds", low=2)
    generator = _validate.generator(0 if rng is None else rng)
    table, n_dropped = _table(y_true, y_prob, groups, pos_label, generator, method in ROW_METHODS)
    width = None if perturbed is None else float(perturbed)
    if width is not None and (reason := why_not_perturbed(table, width)):
        raise ValueError(
            f"perturbed must be left out: {reason}, so these scores were not drawn with the sech law, "
            "or were rounded since; for a model that cannot perturb its scores, state its variation"
        )

    shares: dict[Method, float] = {method: 1.0}
    if method == "auto":
        shares = _shares_of_auto(table.n, smooth, width is not None)
    if len(shares) == 1:
        (method,) = shares
    # One upper bound of the Brier score serves both ends; its share of delta is paid once.
    brier = kl_upper(table.sum_squared_error / table.n, -math.log(_BRIER * delta) / table.n)
    below, above = ((1.0 - _BRIER) * delta * part for part in _PARTS[side])
    running = Running.of(table.cells())
    lower = binned_lower(running, below, brier) if below > 0.0 else 0.0
    upper, bound, terms, notes = 1.0, Bound({}), {}, []
    if above > 0.0:
        if method in _ONE_KIND:
            assert smooth is not None
            bound = _named(method, table, running, above, brier, smooth, width, folds, generator)
        else:
            bound, words = _ours(shares, table, running, above, brier, smooth, width, words)
        terms = dict(bound.terms)
        upper = min(1.0, bound.value)
        if lower > upper:
            fault = "an event of small probability" if words == "none" else "the assumption is false"
            notes.append(
                f"the lower bound {lower:.4g} exceeds the upper bound {upper:.4g}: {fault}, "
                "or rows depend on each other; the upper end is therefore 1"
            )
            terms["contradiction"] = 1.0 - sum(terms.values())
            upper = 1.0
    return Certificate(
        lower=lower,
        upper=upper,
        delta=delta,
        side=side,
        method=method,
        assumption=words if above > 0.0 else "none",
        n=table.n,
        n_positive=table.n_positive,
        mean_score=min(1.0, table.sum_scores / table.n),
        base_rate=table.n_positive / table.n,
        n_bins=bound.n_bins,
        terms=terms,
        table=table.describe(),
        n_clipped=table.n_clipped,
        n_dropped=n_dropped,
        warnings=tuple(notes + _warnings(table, n_dropped)),
        n_folds=bound.n_folds,
        bandwidth=bound.bandwidth,
        winner=(bound.method or method) if above > 0.0 else "",
    )


def _assumption(
    variation: float | None, lipschitz: float | None, perturbed: float | None
) -> tuple[Smoothness | None, str]:
    """The assumption as numbers and in words; None where `certify` chooses."""
    words = []
    v = slope = math.inf
    if variation is not None:
        v = _validate.nonnegative_number(variation, "variation")
        if v < math.inf:
            words.append(_variation_in_words(v))
    if lipschitz is not None:
        slope = _validate.nonnegative_number(lipschitz, "lipschitz")
        if slope < math.inf:
            words.append(f"eta, the true rate by score, is {_exactly(slope)}-Lipschitz")
    if perturbed is not None:
        h = _validate.positive_number(perturbed, "perturbed")
        slope = min(slope, 0.5 / h)
        words.append(
            f"scores are perturbed with the sech law of width {_exactly(h)}, "
            "and the deployed model must perturb its scores too"
        )
    if variation is None and lipschitz is None and perturbed is None:
        return None, ""
    return Smoothness(v, slope), "; ".join(words) or "none"


def _one_assumption(
    method: str, variation: float | None, lipschitz: float | None, perturbed: float | None
) -> tuple[Smoothness | None, str]:
    """The assumption of a method of `_ONE_KIND`, which uses every one that it is given or refuses it."""
    values = {"variation": variation, "lipschitz": lipschitz, "perturbed": perturbed}
    given = [name for name, value in values.items() if value is not None]
    usable = _ONE_KIND[method]
    for name in given:
        if name not in usable:
            raise ValueError(f"{name} must be left out: method={method!r} uses {' or '.join(usable)}")
    if not given and "variation" not in usable:
        needs = "needs one of them" if len(usable) > 1 else "needs it"
        raise ValueError(f"{' or '.join(usable)} must be given: method={method!r} {needs}")
    if len(given) > 1 and not method.startswith("nw"):
        raise ValueError(
            f"{given[1]} must be left out beside {given[0]}: method={method!r} uses one assumption"
        )
    if not given:
        given, variation = ["variation"], 1.0
    smooth, words = _assumption(variation, lipschitz, perturbed)
    if words == "none":
        raise ValueError(f"{given[0]} must be finite: method={method!r} needs an assumption; got inf")
    return smooth, words


def _table(
    y_true: Any,
    y_prob: Any,
    groups: Any,
    pos_label: Any,
    generator: np.random.Generator,
    every_row: bool,
) -> tuple[Table, int]:
    source = given(y_true, y_prob, groups=groups, pos_label=pos_label)
    if not isinstance(source, _validate.Rows):
        if every_row and isinstance(source, CellTable):
            raise ValueError(
                "y_true must hold single rows for this method, and a CellTable does not keep them: "
                "pass arrays or a ScoreTable, or use method='auto'"
            )
        return source, 0
    made = ScoreTable.from_rows if every_row else tabulate
    if groups is None:
        return made(source), 0
    kept = _validate.group_rows(groups, len(source), generator)
    return made(source.take(kept)), len(source) - kept.size


def _named(
    method: str,
    table: Table,
    running: Running,
    delta: float,
    brier: float,
    smooth: Smoothness,
    width: float | None,
    n_folds: int,
    generator: np.random.Generator,
) -> Bound:
    slope = smooth.lipschitz
    if method == "polynomials":
        assert width is not None
        return polynomials_upper(table, running, width, delta)
    if method == "buckets":
        return buckets_upper(table, slope, delta)
    assert isinstance(table, ScoreTable)
    if method == "tv":
        return tv_upper(table, min(smooth.variation, slope), delta, n_folds, generator)
    curvature = math.inf if width is None else 0.5 / width / width
    if method == "nw":
        return nw_upper(table, slope, curvature, delta, brier)
    return nw_folds_upper(table, slope, curvature, delta, n_folds, generator)


def _shares_of_auto(n: int, smooth: Smoothness | None, perturbed: bool) -> dict[Method, float]:
    """Methods that "auto" chooses from, and their parts of delta: functions of n and the arguments alone."""
    slope_alone = smooth is not None and smooth.variation == math.inf and smooth.lipschitz < math.inf
    invert = n >= _ENOUGH_TO_INVERT and not slope_alone
    if perturbed and n >= _ENOUGH_TO_FIT:
        if invert:
            return {"polynomials": 0.5, "inversion": 0.3, "plugin": 0.2}
        if smooth is not None and smooth.variation < math.inf:
            return {"polynomials": 0.5, "plugin": 0.5}
        return {"polynomials": 0.8, "plugin": 0.2}
    return {"inversion": 0.8, "plugin": 0.2} if invert else {"plugin": 1.0}


def _ours(
    shares: dict[Method, float],
    table: Table,
    running: Running,
    delta: float,
    brier: float,
    smooth: Smoothness | None,
    width: float | None,
    words: str,
) -> tuple[Bound, str]:
    """The smallest of the bounds that have `shares` of `delta`.

    Under the assumption given; if none was, under the mildest that is worth it.
    """
    planner = Planner(table.cells(), running, delta)
    parts = NO_ASSUMPTION if smooth == Smoothness() else SHARES
    plan = planner.best(smooth or Smoothness(variation=1.0))
    if smooth is None:
        smooth, words = Smoothness(variation=1.0), _variation_in_words(1.0)
        atoms = planner.atoms()
        if atoms is not None and 2 * atoms.n_bins <= table.n and atoms.expected <= 2.0 * plan.expected:
            plan, smooth, words = atoms, Smoothness(), "none"
    bounds = []
    for method, share in shares.items():
        part = share * delta
        if method == "polynomials":
            assert width is not None
            bound = polynomials_upper(table, running, width, part)
        elif method == "inversion":
            bound = inversion_upper(table, running, smooth, part, brier)
        else:
            fine = planner.equal_mass(4 * plan.n_bins, smooth)
            upper = plug_in_upper(table, running, plan, fine, smooth, part, brier, parts)
            terms = {
                "plug_in": upper.plug_in,
                "bias": upper.bias,
                "deviation": upper.deviation.sample,
                "transfer": upper.deviation.transfer,
            }
            bound = Bound(terms, upper.n_bins)
        bounds.append(bound._replace(method=method))
    return min(bounds, key=lambda bound: bound.value), words


def _variation_in_words(v: float) -> str:
    monotone = " (any monotone eta)" if v >= 1.0 else ""
    return f"eta, the true rate by score, has total variation <= {_exactly(v)}{monotone}"


def _exactly(x: float) -> str:
    """A number in as few digits as stand for it and no other."""
    return f"{x:g}" if float(f"{x:g}") == x else repr(x)


def _warnings(table: Table, n_dropped: int) -> list[str]:
    notes = []
    if n_dropped:
        notes.append(f"one random row was kept of each group: {table.n} of {table.n + n_dropped} rows")
    if table.n_clipped:
        notes.append(f"{table.n_clipped} scores lay a rounding error outside [0, 1] and were clipped")
    if isinstance(table, CellTable) and (advice := table.advice()):
        notes.append(advice)
    if table.n_positive in (0, table.n):
        notes.append(f"all labels are {int(table.n_positive > 0)}")
    return notes
