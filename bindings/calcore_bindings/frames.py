"""Cell tables of data frames, made by the engine that holds them.

>>> import pandas
>>> from calcore_bindings.frames import cell_table
>>> frame = pandas.DataFrame({"late": [0, 1, 1], "p": [0.25, 0.5, 0.75]})
>>> cell_table(frame, score="p", label="late")
<CellTable: 3 rows in 100,800 linear cells>

One group-by counts the rows of each cell: no row reaches Python, only groups do. All arithmetic before the
sums is done in doubles by ``+ - * /`` and square roots, which IEEE 754 rounds correctly. Rounding to whole
numbers is an addition too (`_nearest`), because engines differ in how `round`, `floor` and casts treat
halves, fractions and negative numbers. What is cast to integers is a whole number already, and integers add
up exactly in any order. So the table is the one that `calcore.CellTable.update` makes, bit for bit, on each
engine and for any partition of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

import calcore

try:
    import narwhals as nw
except ImportError as error:
    raise ImportError(
        "calcore_bindings.frames needs narwhals: pip install 'calcore-calibration[frames]'"
    ) from error

__all__ = ["cell_table"]

Grid = Literal["linear", "sqrt", "logit"]

_UNIT = 2.0**30
"""Offsets of scores are whole numbers of the cell's width by this."""

_TO_WHOLE = 1.5 * 2.0**52
"""Doubles of this size are whole numbers: adding it to one below 2^51 rounds, ties to even."""

_ROUNDING_ERROR = 1e-9
_ROUNDING_ERRORS = {"Float32": float(np.float32(1e-6)), "Float16": float(np.float16(2e-3))}
"""How far outside [0, 1] scores may lie, and be moved to 0 or 1."""

_OCTAVES = 32
"""The logit grid halves the distance to 0, and to 1, this many times."""

# What is wrong with a row: of its label plus of its score.
_GOOD, _LABEL_MISSING, _LABEL_NAN, _LABEL_OTHER = 0, 8, 16, 24
_MISSING, _NAN, _BELOW, _ABOVE = 1, 2, 3, 4
_FLOATS = (nw.Float64, nw.Float32)
_TEXT = (nw.String, nw.Categorical, nw.Enum)

# Engines spend most of the time on random access to the sums of groups. So the kind of a row goes into the
# key of its group, _KINDS * cell + kind, instead of a sum for each kind, and one over positives.
_KINDS = 8
_POSITIVE, _MINUS, _CLIPPED = 1, 2, 4
_SUMS = ("n", "offset", "square")

_BLOCK = 2_000_000
"""Rows of an eager frame that are worked on at once: some 300 MB of columns between."""

_SIZE = nw.col("size")
"""The number of cells, as a column: Polars multiplies by the reciprocal of a constant divisor."""

Frame = Any
"""A narwhals frame, eager or lazy: both have the methods used here."""

Work = Callable[[Frame], Frame]

Stage = dict[str, "nw.Expr"]
"""Columns that are made at once, from those of the stages before."""


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """A column of labels: which is positive, and which negative, if a caller says so."""

    name: str
    dtype: Any
    positive: Any
    negative: Any = None
    given: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The columns asked for, of a frame that stays where it is.

    `names` has the frame's names by ours, which are the same for every frame: "label", "by", "score 0" ...
    """

    frame: Any
    names: dict[str, str]
    types: dict[str, Any]

    @classmethod
    def of(cls, frame: Any, scores: list[str], label: str, by: str | None) -> _Rows:
        schema = _known(frame._meta if _is_dask(frame) else frame).collect_schema()
        names = {f"score {i}": name for i, name in enumerate(scores)} | {"label": label}
        if by is not None:
            names["by"] = by
        for ours, name in names.items():
            if name not in schema:
                known = ", ".join(map(repr, list(schema)[:5])) + (", ..." if len(schema) > 5 else "")
                raise ValueError(f"{ours.split()[0]} must be a column of the frame ({known}); got {name!r}")
        return cls(frame, names, {ours: schema[name] for ours, name in names.items()})

    def reduced(self, work: Work, again: Work) -> Frame:
        """An eager frame: `work` of all rows, or `again` of the works of parts, one below the other.

        Lazy frames are one part, and Polars runs it in batches, so that columns between need not fit into
        memory; other eager frames are worked on in blocks, and Dask's in its partitions, as a tree.
        """
        if _is_dask(self.frame):
            native = self.frame.reduction(
                partial(_of_part, names=self.names, work=work),
                aggregate=partial(_of_part, names=None, work=again),
                meta=_of_part(self.frame._meta, self.names, work),
            )
            return nw.from_native(native.compute(), eager_only=True)
        rows = _renamed(_known(self.frame), self.names)
        if isinstance(rows, nw.LazyFrame) or rows.implementation.is_polars():
            whole = work(rows.lazy())
            if rows.implementation.is_polars():
                engine = signature(nw.to_native(whole).collect).parameters.get("engine")
                if engine is not None and engine.default == "auto":  # older ones cannot stream such a plan
                    return whole.collect(engine="streaming")
            return whole.collect()
        starts = range(0, max(len(rows), 1), _BLOCK)
        parts = [work(rows[start : start + _BLOCK]) for start in starts]
        return parts[0] if len(parts) == 1 else again(nw.concat(parts))


def _is_dask(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(frame, "_meta")


def _known(frame: Any) -> Frame:
    try:
        return nw.from_native(frame)
    except TypeError:
        raise TypeError(
            f"frame must be a data frame of pandas, Polars, PyArrow, DuckDB, Dask or PySpark; got "
            f"{type(frame).__module__}.{type(frame).__qualname__}"
        ) from None


def _renamed(rows: Frame, names: dict[str, str]) -> Frame:
    if rows.implementation.is_spark_like():  # to Spark "p.1" is a field of a struct: name columns by position
        numbers = {name: f"c{i}" for i, name in enumerate(rows.collect_schema().names())}
        rows = nw.from_native(nw.to_native(rows).toDF(*numbers.values()))
        names = {ours: numbers[name] for ours, name in names.items()}
    return rows.select(*(nw.col(name).alias(ours) for ours, name in names.items()))


def _of_part(native: Any, names: dict[str, str] | None, work: Work) -> Any:
    """`work` of one partition, a pandas frame, or of such results."""
    rows = nw.from_native(native, eager_only=True)
    return nw.to_native(work(rows if names is None else _renamed(rows, names)))


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """What the group-by found; rows at fault have negative keys. Every row is in one group of each score."""

    score: NDArray[np.int64]
    segment: list[Any]
    key: NDArray[np.int64]
    sums: dict[str, NDArray[np.int64]]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, found: Frame) -> _Groups:
        score = np.zeros(len(found), np.int64)
        if "score" in found.columns:
            score[:] = [int(name.removeprefix("score ")) for name in found["score"].to_list()]
        return cls(
            score,
            found["by"].to_list() if "by" in found.columns else [],
            found["key"].to_numpy().astype(np.int64),
            {name: found[name].to_numpy().astype(np.int64) for name in _SUMS},
            found["low"].to_numpy().astype(np.float64),
            found["high"].to_numpy().astype(np.float64),
        )

    def rows(self, where: NDArray[np.bool_]) -> int:
        return int(self.sums["n"][where].sum())

    def table(self, where: NDArray[np.int64], grid: Grid, n_cells: int) -> calcore.CellTable:
        """The table of some of the groups, at least one, none of them at fault."""
        order = where[np.argsort(self.key[where])]
        index, kind = np.divmod(self.key[order], _KINDS)
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        n, offset, square = (self.sums[name][order] for name in _SUMS)
        positive = kind & _POSITIVE
        return calcore.CellTable.from_cells(
            index[starts],
            n=np.add.reduceat(n, starts),
            n_positive=np.add.reduceat(n * positive, starts),
            offsets=np.add.reduceat(offset, starts),
            hits=np.add.reduceat(offset * positive, starts),
            squares=np.add.reduceat(square, starts),
            low=np.minimum.reduceat(self.low[order], starts),
            high=np.maximum.reduceat(self.high[order], starts),
            n_clipped=int(n[(kind & _CLIPPED) > 0].sum()),
            n_cells=n_cells,
            grid=grid,
        )


@overload
def cell_table(
    frame: Any,
    *,
    score: str,
    label: str,
    by: None = None,
    grid: Grid = "linear",
    n_cells: int = 100_800,
    pos_label: Any = None,
) -> calcore.CellTable: ...


@overload
def cell_table(
    frame: Any,
    *,
    score: list[str] | tuple[str, ...],
    label: str,
    by: None = None,
    grid: Grid = "linear",
    n_cells: int = 100_800,
    pos_label: Any = None,
) -> dict[str, calcore.CellTable]: ...


@overload
def cell_table(
    frame: Any,
    *,
    score: str,
    label: str,
    by: str,
    grid: Grid = "linear",
    n_cells: int = 100_800,
    pos_label: Any = None,
) -> dict[Any, calcore.CellTable]: ...


@overload
def cell_table(
    frame: Any,
    *,
    score: list[str] | tuple[str, ...],
    label: str,
    by: str,
    grid: Grid = "linear",
    n_cells: int = 100_800,
    pos_label: Any = None,
) -> dict[str, dict[Any, calcore.CellTable]]: ...


def cell_table(
    frame: Any,
    *,
    score: str | list[str] | tuple[str, ...],
    label: str,
    by: str | None = None,
    grid: Grid = "linear",
    n_cells: int = 100_800,
    pos_label: Any = None,
) -> Any:
    """Count the rows of a frame into a `calcore.CellTable`, in one group-by of the frame's own engine.

    Use it where the rows are, when they are many or on other machines. For columns in this process's memory
    `calcore.CellTable().update` is faster.

    Parameters
    ----------
    frame : data frame
        What narwhals knows: pandas, Polars (eager or lazy), PyArrow, DuckDB (a relation, also of SQL), Dask,
        PySpark.
    score : str, or list or tuple of str
        Column of probabilities in [0, 1] of the positive class: floats, whole numbers, decimals or bools.
        Numbers outside by at most 1e-9 (float32: 1e-6) are rounding errors: they are clipped and counted.
        Several columns are read in one pass.
    label : str
        Column of labels: bool, or numbers 0/1 or -1/+1. Any other pair, numbers or text, with `pos_label`.
    by : str, optional
        Column of segments: one table for each. A table takes 6.2 MiB (default size).
    grid, n_cells
        As in `calcore.CellTable`.
    pos_label : bool, int, float or str, optional
        The label that counts as positive. The engine then looks for another label first, and stops at the
        first that it finds.

    Returns
    -------
    CellTable
        With several scores a dict of tables by column name; with `by` a dict of tables by segment, sorted;
        with both, by column name and then by segment.

    Raises
    ------
    ValueError
        If there is no row or no such column, if values are missing, scores not in [0, 1], or labels not of
        two kinds. All rows are counted, but which row it is an engine does not know.
    TypeError
        If `frame` is no frame, or columns are of kinds that cannot be scores or labels.
    OverflowError
        If a cell would hold more than 2^31 - 1 rows. (From 2^33 on, it can be an error of the engine's.)

    Notes
    -----
    Equal, bit for bit, to ``calcore.CellTable(n_cells, grid).update(labels, scores)`` on each engine, for
    rows in any order and any number of partitions, some of them empty. Decimals of at most 15 places are
    read as the nearest double, as Python reads them.

    To certify segments at one confidence, certify each table at a part of delta, as ``delta / len(tables)``.

    Time O(n), memory O(cells) for each segment. Polars runs in batches, lazy or not; pandas and PyArrow
    in blocks of 2,000,000 rows.

    Examples
    --------
    >>> import calcore, pandas
    >>> frame = pandas.DataFrame(
    ...     {"late": [0, 1, 1, 0], "a": [0.25, 0.5, 0.75, 0.5], "b": [0.25, 0.75, 0.75, 0.5]}
    ... )
    >>> table = cell_table(frame, score="a", label="late")
    >>> table.n, table.n_positive, table.sum_scores
    (4, 2, 2.0)
    >>> tables = cell_table(frame, score=["a", "b"], label="late", by="b")
    >>> {segment: table.n for segment, table in tables["a"].items()}
    {0.25: 1, 0.5: 1, 0.75: 2}
    """
    empty = calcore.CellTable(n_cells, grid)
    scores = _names(score)
    rows = _Rows.of(frame, scores, label, by)
    kinds = [_score_kind(name, rows.types[f"score {i}"]) for i, name in enumerate(scores)]
    labels = _labels(rows, label, pos_label)
    work = partial(_grouped, labels=labels, kinds=kinds, by=by, grid=empty.grid, size=float(empty.n_cells))
    groups = _Groups.of(rows.reduced(work, _aggregated))
    _check(groups, rows, labels, scores, by)

    def table(where: NDArray[np.int64]) -> calcore.CellTable:
        return groups.table(where, grid, empty.n_cells)

    tables: dict[str, Any] = {}
    for i, name in enumerate(scores):
        mine = np.flatnonzero(groups.score == i)
        tables[name] = table(mine) if by is None else _by_segment(groups.segment, mine, table)
    return tables[score] if isinstance(score, str) else tables


def _by_segment(
    segments: list[Any], mine: NDArray[np.int64], table: Callable[[NDArray[np.int64]], calcore.CellTable]
) -> dict[Any, calcore.CellTable]:
    """A table for each segment, sorted by name."""
    groups: dict[Any, list[int]] = {}
    for i in mine.tolist():
        groups.setdefault(segments[i], []).append(i)
    return {name: table(np.array(groups[name])) for name in sorted(groups)}


# --------------------------------------------------------------------------- columns, before any row is read


def _names(score: Any) -> list[str]:
    names = [score] if isinstance(score, str) else list(score)
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"score must be the name of a column, or several; got {score!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"score must name each column once; got {score!r}")
    return names


def _score_kind(name: str, dtype: Any) -> Any:
    if dtype.is_numeric() or dtype == nw.Boolean:
        return dtype
    raise TypeError(f"score must hold numbers; got {dtype} in column {name!r}: cast it to doubles")


def _labels(rows: _Rows, name: str, pos_label: Any) -> _Labels:
    dtype = rows.types["label"]
    text = dtype in _TEXT
    if not (text or dtype.is_numeric() or dtype == nw.Boolean):
        raise TypeError(f"label must hold numbers, bools or text; got {dtype} in column {name!r}: convert it")
    if pos_label is None:
        if text:
            raise ValueError(f"pos_label must be given if label holds text; got None for column {name!r}")
        return _Labels(name, dtype, True if dtype == nw.Boolean else 1)
    positive = _of_type(pos_label, dtype)
    if positive is None:
        where = f"column {name!r} of {dtype}"
        raise ValueError(f"pos_label must be a label that {where} can hold; got {pos_label!r}")
    if dtype == nw.Boolean:
        return _Labels(name, dtype, positive, not positive, given=True)
    first = partial(_first_other, dtype=dtype, positive=positive)
    others = rows.reduced(first, partial(_head, n=1))["label"].to_list()
    return _Labels(name, dtype, positive, others[0] if others else positive, given=True)


def _first_other(rows: Frame, dtype: Any, positive: Any) -> Frame:
    """One label that is not `positive`, not missing, and not NaN."""
    label = nw.col("label")
    other = label != positive
    if dtype in _FLOATS:
        other = other & ~label.is_nan()
    return _as_labels(rows, dtype).select("label").filter(other).head(1)


def _some_labels(rows: Frame, dtype: Any) -> Frame:
    """A few distinct labels."""
    label = nw.col("label")
    return _as_labels(rows, dtype).select("label").filter(~label.is_null()).unique().head(4)


def _head(rows: Frame, n: int) -> Frame:
    return rows.unique().head(n)


def _of_type(pos_label: Any, dtype: Any) -> Any:
    """`pos_label` as the column would hold it, or None."""
    if isinstance(pos_label, np.generic):
        pos_label = pos_label.item()
    if dtype in _TEXT:
        return pos_label if isinstance(pos_label, str) else None
    if not isinstance(pos_label, bool | int | float) or pos_label != pos_label:
        return None
    if dtype == nw.Boolean:
        return bool(pos_label) if pos_label in (0, 1) else None
    if dtype.is_integer():
        return int(pos_label) if pos_label % 1 == 0 and abs(pos_label) < 2**63 else None
    return float(pos_label)


def _as_labels(rows: Frame, dtype: Any) -> Frame:
    """Labels in a type that every engine compares with a Python value."""
    if dtype in _TEXT and dtype != nw.String:
        return rows.with_columns(label=nw.col("label").cast(nw.String))
    if dtype.is_decimal():
        return rows.with_columns(label=nw.col("label").cast(nw.Float64))
    return rows


# ---------------------------------------------------------------------------------------------- the group-by


def _grouped(
    rows: Frame, labels: _Labels, kinds: list[Any], by: str | None, grid: Grid, size: float
) -> Frame:
    """Counts, sums and extremes for each score, segment and key."""
    rows = _as_labels(rows, labels.dtype).with_columns(**_label_stage(labels)).drop("label")
    several = len(kinds) > 1
    keys = ["score"] * several + ["by"] * (by is not None)
    beside = [*keys[several:], "kind", "fault"]
    rows = rows.select(*beside, *(_as_double(f"score {i}", dtype) for i, dtype in enumerate(kinds)))
    if several:
        rows = rows.unpivot(
            [f"score {i}" for i in range(len(kinds))], index=beside, variable_name="score", value_name="raw"
        )
    else:
        rows = rows.rename({"score 0": "raw"})
    sized: Stage = {"size": 0.0 * nw.col("s") + size}
    for stage in (*_score_stages(kinds), sized, *_LOCATE[grid](size), *_sum_stages()):
        rows = rows.with_columns(**stage)
    return _aggregated(rows.select(*keys, "key", *_SUMS[1:], "low", "high"))


def _aggregated(rows: Frame) -> Frame:
    """Rows, sums of 64-bit integers, smallest and largest score of groups; the same of groups of parts."""
    names = rows.collect_schema().names()
    n = nw.col("n").sum() if "n" in names else nw.len().alias("n")
    sums = (nw.col(name).sum() for name in _SUMS[1:])
    grouped = rows.group_by(*(name for name in names if name in ("score", "by", "key")))
    found = grouped.agg(n, *sums, nw.col("low").min(), nw.col("high").max())
    return found.with_columns(*(nw.col(name).cast(nw.Int64) for name in _SUMS))


def _if(condition: Any, then: Any, otherwise: Any) -> Any:
    return nw.when(condition).then(_value(then)).otherwise(_value(otherwise))


def _value(value: Any) -> Any:
    return nw.lit(value) if isinstance(value, int | float) else value


def _nearest(number: Any) -> Any:
    """The whole number nearest to one of magnitude below 2^51, ties to even."""
    return (number + _TO_WHOLE) - _TO_WHOLE


def _label_stage(labels: _Labels) -> Stage:
    """Which of the two labels it is, with 0 and -1 told apart, and what is wrong with it."""
    value, dtype = nw.col("label"), labels.dtype
    positive = value == labels.positive
    kind, fault = _if(positive, _POSITIVE, 0), nw.lit(_GOOD)
    if labels.given:
        fault = _if(positive | (value == labels.negative), _GOOD, _LABEL_OTHER)
    elif dtype.is_unsigned_integer():
        fault = _if(positive | (value == 0), _GOOD, _LABEL_OTHER)
    elif dtype != nw.Boolean:
        minus = value == -1
        kind = _if(positive, _POSITIVE, _if(minus, _MINUS, 0))
        fault = _if(positive | minus | (value == 0), _GOOD, _LABEL_OTHER)
    fault = _if(value.is_null(), _LABEL_MISSING, fault)
    if dtype in _FLOATS:  # pandas calls NaN missing too
        fault = _if(value.is_nan().fill_null(False), _LABEL_NAN, fault)
    return {"kind": kind.cast(nw.Int64), "fault": fault.cast(nw.Int64)}


def _as_double(name: str, dtype: Any) -> Any:
    value = nw.col(name)
    if dtype.is_integer():  # beyond 2^53 doubles are no whole numbers, and PyArrow refuses the cast
        value = _if(value > 2**53, 2**53, value)
        if not dtype.is_unsigned_integer():
            value = _if(nw.col(name) < -(2**53), -(2**53), value)
    value = value.cast(nw.Float64)
    if dtype.is_decimal():  # PyArrow's cast can be off by the last bit
        scale = 10.0 ** getattr(dtype, "scale", 0)
        if 1.0 < scale <= 1e15:
            value = _nearest(value * scale) / (0.0 * value + scale)
    return value.alias(name)


def _score_stages(kinds: list[Any]) -> Iterator[Stage]:
    """Scores moved into [0, 1], where they may be, and what is wrong with them."""
    raw, slack = nw.col("raw"), nw.col("slack")
    wide = [_ROUNDING_ERRORS.get(str(dtype), _ROUNDING_ERROR) for dtype in kinds]
    error: Any = nw.lit(wide[0])
    for i, other in enumerate(wide[1:], start=1):
        if other != wide[0]:
            error = _if(nw.col("score") == f"score {i}", other, error)
    yield {"slack": error.cast(nw.Float64)}
    wrong = _if(raw < 0.0 - slack, _BELOW, _if(raw > 1.0 + slack, _ABOVE, _GOOD))
    wrong = _if(
        raw.is_nan().fill_null(False), _NAN, _if(raw.is_null(), _MISSING, wrong)
    )  # of engines that call NaN large
    yield {"fault": nw.col("fault") + wrong.cast(nw.Int64)}
    good = nw.col("fault") == 0
    inside = _if(raw <= 0.0, 0.0, _if(raw >= 1.0, 1.0, raw))  # not -0.0
    yield {
        "s": _if(good, inside, 0.0),
        "low": _if(good, inside, raw),
        "high": _if(good, inside, raw),
        "kind": nw.col("kind") + _if((raw < 0.0) | (raw > 1.0), _CLIPPED, 0).cast(nw.Int64),
    }


# Each yields stages that make `j`, the cell of the score `s`, and `o`, its offset in 2^-30 of the cell: by
# the operations of calcore's own loops, in their order, so that the doubles are the same.


def _linear(size: float) -> Iterator[Stage]:
    """Cell j is [j/N, (j+1)/N): the whole number nearest to s N is j or j + 1."""
    s, place, near, j = (nw.col(name) for name in ("s", "place", "near", "j"))
    yield {"place": s * size}
    yield {"near": _nearest(place)}
    yield {"j": _if(s >= 1.0, size - 1.0, _if(s < near / _SIZE, near - 1.0, near))}
    yield {"o": _nearest((place - j) * _UNIT)}


def _sqrt(size: float) -> Iterator[Stage]:
    """Cell j is [(j/N)^2, ((j+1)/N)^2)."""
    s, near, root, j = (nw.col(name) for name in ("s", "near", "root", "j"))
    yield {"near": _nearest(s.sqrt() * size)}
    yield {"root": near / _SIZE}
    yield {"j": _if(s >= 1.0, size - 1.0, _if(s < root * root, near - 1.0, near))}
    yield {"root": j / _SIZE}
    scale = size * size * _UNIT
    yield {"o": _nearest((s - root * root) * (nw.lit(scale) / (2.0 * j + 1.0)))}


def _logit(size: float) -> Iterator[Stage]:
    """Cells equally wide in each octave of s below 1/2, and of 1 - s above."""
    s, m, octave, near, other, j = (nw.col(name) for name in ("s", "m", "octave", "near", "other", "j"))
    a, b, step = (nw.col(name) for name in ("a", "b", "step"))
    half = 0.5 * size
    yield {"m": _if(s < 0.5, s, 1.0 - s), "octave": 0.0 * s}
    for power in (16, 8, 4, 2, 1, 1):  # to m in [1/2, 1), by exact doublings, or below 1/2 after all 32
        small = m * 2.0**power < 1.0
        yield {"octave": _if(small, octave + float(power), octave), "m": _if(small, m * 2.0**power, m)}
    yield {"step": _if(m < 0.5, float(_OCTAVES), octave + (1.0 - 2.0 * m)) * (half / _OCTAVES)}
    yield {"near": _nearest(_if(s < 0.5, half - step, half + step))}
    yield from _logit_edge(near, "a", size)
    yield {"j": _if(s >= 1.0, size - 1.0, _if(s < a, near - 1.0, near))}
    yield {"other": _if(j < near, near - 1.0, near + 1.0)}
    yield from _logit_edge(other, "b", size)
    yield {"o": _nearest((s - _if(j < near, b, a)) / ((b - a).abs()) * _UNIT)}


def _logit_edge(k: Any, name: str, size: float) -> Iterator[Stage]:
    """Edge k of the grid: a double whose exponent and fraction, as one number, are linear in k."""
    pattern, whole, power, left = (nw.col(column) for column in ("pattern", "whole", "power", "left"))
    yield {"pattern": 1022.0 - (2.0 * (k / _SIZE) - 1.0).abs() * float(_OCTAVES)}
    yield {"whole": _nearest(pattern)}
    yield {"whole": _if(whole > pattern, whole - 1.0, whole)}
    yield {"left": 1022.0 - whole, "power": 0.0 * whole + 0.5}
    for bit in (32, 16, 8, 4, 2, 1):
        large = left >= float(bit)
        yield {"power": _if(large, power * 2.0**-bit, power), "left": _if(large, left - float(bit), left)}
    yield {name: power * (1.0 + (pattern - whole))}
    yield {name: _if(k / _SIZE < 0.5, nw.col(name), 1.0 - nw.col(name))}
    yield {name: _if(k <= 0.0, 0.0, _if(k >= size, 1.0, nw.col(name)))}


_LOCATE: dict[str, Callable[[float], Iterator[Stage]]] = {"linear": _linear, "sqrt": _sqrt, "logit": _logit}


def _sum_stages() -> Iterator[Stage]:
    """The key, and the integers to add up: o^2 / 2^30 rounded, from two halves of o of 15 bits.

    It never ends in one half: o^2 holds the factor two an even number of times, 2^29 an odd one.
    """
    o, upper, lower, fault = (nw.col(name) for name in ("o", "upper", "lower", "fault"))
    yield {"upper": _nearest(o * 2.0**-15 - (0.5 - 2.0**-16))}
    yield {"lower": o - upper * 2.0**15}
    rest = (upper * lower * 2.0**16 + lower * lower) * 2.0**-30
    yield {
        "offset": o.cast(nw.Int64),
        "square": (upper * upper + _nearest(rest)).cast(nw.Int64),
        "key": _if(fault == 0, _KINDS * nw.col("j").cast(nw.Int64) + nw.col("kind"), 0 - fault),
    }


# -------------------------------------------------------------------------------------------- what groups say


def _check(groups: _Groups, rows: _Rows, labels: _Labels, scores: list[str], by: str | None) -> None:
    """Refuse what the core refuses, in its order."""
    first = groups.score == 0
    if groups.rows(first) == 0:
        raise ValueError("score and label must have at least one row; got 0")
    fault = np.maximum(-groups.key, 0)
    of_label, of_score = fault & ~7, fault & 7

    def refuse_missing(argument: str, name: str, where: NDArray[np.bool_]) -> None:
        if where.any():
            got = f"{groups.rows(where)} missing in column {name!r}"
            raise ValueError(f"{argument} must not have missing values; got {got}: drop or fill these rows")

    refuse_missing("label", labels.name, first & (of_label == _LABEL_MISSING))
    for i, name in enumerate(scores):
        refuse_missing("score", name, (groups.score == i) & (of_score == _MISSING))
    if by is not None:
        refuse_missing("by", by, first & np.array([_is_missing(name) for name in groups.segment], np.bool_))
    _check_labels(groups, first, of_label, rows, labels)
    for i, name in enumerate(scores):
        _check_scores(groups, groups.score == i, of_score, name)


def _is_missing(segment: Any) -> bool:
    """None, pandas' NA and NaT, or NaN."""
    return segment is None or type(segment).__name__ in ("NAType", "NaTType") or bool(segment != segment)


def _check_labels(
    groups: _Groups, first: NDArray[np.bool_], fault: NDArray[np.int64], rows: _Rows, labels: _Labels
) -> None:
    where = f"in column {labels.name!r}"
    unknown, others = (groups.rows(first & (fault == what)) for what in (_LABEL_NAN, _LABEL_OTHER))
    if unknown:
        raise ValueError(
            f"label must hold one label per row; got nan {where}{_more(unknown)}: "
            "drop or fill the rows without a label"
        )
    kinds = groups.key[first & (groups.key >= 0)] & (_POSITIVE | _MINUS)
    if not others:
        if _MINUS in kinds and 0 in kinds:
            raise ValueError(
                f"label must hold labels 0/1 or -1/+1; got both 0 and -1 {where}: "
                "-1 and 0 cannot both mean negative"
            )
        return
    found = rows.reduced(partial(_some_labels, dtype=labels.dtype), partial(_head, n=4))
    distinct = sorted(found["label"].to_list())
    known = (labels.positive, labels.negative) if labels.given else (0, 1, -1)
    got = f"got {next(value for value in distinct if value not in known)!r} {where}{_more(others)}"
    several = ": with several classes, take one at a time, label == c with the scores of class c"
    if not labels.given:
        remedy = several if len(distinct) > 2 else ""
        if len(distinct) == 2:
            remedy = f": pass pos_label={distinct[1]!r} if {distinct[1]!r} is the positive class"
        raise ValueError(f"label must hold labels 0/1 or -1/+1; {got}{remedy}")
    if _POSITIVE not in kinds:
        listed = ", ".join(map(repr, distinct[:3]))
        raise ValueError(f"pos_label must be one of the labels {where} ({listed}); got {labels.positive!r}")
    pair = f"{labels.positive!r} and {labels.negative!r}"
    raise ValueError(f"label must hold two different labels; {got} beside {pair}{several}")


def _check_scores(groups: _Groups, mine: NDArray[np.bool_], fault: NDArray[np.int64], name: str) -> None:
    count = groups.rows(mine & (fault > _MISSING))
    if not count:
        return
    where = f"in column {name!r}{_more(count)}"
    above, below = (groups.rows(mine & (fault == what)) for what in (_ABOVE, _BELOW))
    if not (above or below):
        raise ValueError(f"score must lie in [0, 1]; got nan {where}: drop or fill the rows without a score")
    known = mine & (fault != _NAN)
    least, most = float(groups.low[known].min()), float(groups.high[known].max())
    if above and below:
        remedy = ": these look like logits; pass the sigmoid of them, 1 / (1 + exp(-score))"
    elif below and most <= 0.0:
        remedy = ": these look like log-probabilities; pass exp(score)"
    elif least >= 0.0 and 2.0 <= most <= 100.0 and 2 * above > groups.rows(mine):
        remedy = ": these look like percent; pass score / 100"
    else:
        remedy = ""
    raise ValueError(f"score must lie in [0, 1]; got {most if above else least!r} {where}{remedy}")


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
