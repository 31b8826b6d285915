"""``python -m calcore.demo``: a certificate of real predictions, a case it does not cover, a big job.

Prints plain text, the same in a terminal, a pipe and a log. Needs the extra ``cli`` (pyarrow reads the data).
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import calcore
from calcore import datasets, simulate
from calcore.report import certificate_text, interval_text, score_bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 92
SEED = 20130901


def design_effect(residual: NDArray[np.float64], cluster: NDArray[Any]) -> float:
    """Variance of the mean residual with clusters as the units, over its variance with rows as the units.

    With e = residual - mean, E_c the sum of e in cluster c, n rows and C clusters:
    (C/(C-1) sum_c E_c^2) / (n/(n-1) sum_i e_i^2). It is about 1 for independent rows and the size of a
    cluster where all rows of one err together; n / design effect is the number of independent rows that
    would fix the mean equally well.

    Parameters
    ----------
    residual : ndarray of float, shape (n,)
        Outcome minus score; not all equal.
    cluster : ndarray, shape (n,)
        What the row belongs to (day, patient, user); at least two different values.

    Examples
    --------
    Two days, each with two rows that err together: (2/1 * (2^2 + 2^2)) / (4/3 * 4) = 3.

    >>> design_effect(np.array([1.0, 1.0, -1.0, -1.0]), np.array([1, 1, 2, 2]))
    3.0
    """
    e = residual - residual.mean()
    _, code = np.unique(cluster, return_inverse=True)
    sums = np.bincount(code, weights=e)
    n, c = len(e), len(sums)
    return float(c / (c - 1) * (sums @ sums) / (n / (n - 1) * (e @ e)))


def main(n: int = 10_000_000) -> None:
    """Print the three parts; `n` is the number of rows of the simulated job."""
    random = datasets.flights_random()
    say(f"Population: {random.population}.")
    certified(random)
    not_covered(datasets.flights_by_time())
    big_job(n)


def certified(flights: datasets.Predictions) -> None:
    heading("1. A certificate")
    say(
        """A model says how likely each flight is to arrive more than 15 minutes late, from the timetable
        alone. Where it says 30%, are 30% late? The calibration error is the average gap between what the
        model says and how often flights with that score really are late. The interval below is valid at this
        number of flights, not only in the limit, and counts what grouping the scores can hide."""
    )
    table = calcore.ScoreTable(flights.y_true, flights.y_prob)
    print(certificate_text(calcore.certify(table), bins=score_bins(table), width=WIDTH) + "\n")
    say(
        """The assumption is about eta(s), the share of late flights among those with score s. The population
        is flights under the conditions of 2013: this certificate says nothing about another year."""
    )


def not_covered(flights: datasets.DatedPredictions) -> None:
    heading("2. The same model split by time: what a certificate does not cover")
    say(f"Population: {flights.population}.")
    n, days = len(flights.y_true), len(np.unique(flights.day))
    effect = design_effect(flights.y_true - flights.y_prob, flights.day)
    say("NOT VALID HERE: " + interval_text(calcore.certify(flights.y_true, flights.y_prob)))
    say(
        f"""WARNING: the {n:,} rows depend on each other. In bad weather most flights of a day are late
        together, and there are only {days} days. Counted by day, the variance of the model's mean error is
        {effect:.0f} times that of independent rows (the design effect): these rows say about as much as
        {n / effect:,.0f} independent ones. A certificate takes every row for new evidence, so this interval
        is far too sure of itself."""
    )
    say("What to do: certify(..., groups=day) keeps one flight of each day, drawn at random (rng=0).")
    daily = calcore.certify(flights.y_true, flights.y_prob, groups=flights.day, rng=0)
    say(f"{daily.n} rows: {interval_text(daily)}")
    say(
        f"""Wide, because {daily.n} days are little evidence (and every day now counts the same). Even this is
        hopeful: a storm may last two days, and the days of one season resemble each other. More seasons help;
        more flights of the same days do not."""
    )


def big_job(n: int) -> None:
    heading(f"3. A big job: {n:,} simulated predictions")
    say("Scores uniform on [0, 1], outcomes drawn with just these probabilities: the true error is 0.")
    y_true, y_prob = simulate.rows(n, shape="calibrated", seed=SEED)
    first, certificate = clock(lambda: calcore.certify(y_true, y_prob))
    again = min(clock(lambda: calcore.certify(y_true, y_prob))[0] for _ in range(3))
    sort = min(clock(lambda: np.sort(y_prob))[0] for _ in range(3))
    say(interval_text(certificate))
    say(
        f"""Time: {again:.2f} s, {n / again / 1e6:.0f} million rows per second, {again / sort:.2f} times what
        np.sort needs for the scores alone ({sort:.2f} s). The first call took {first:.1f} s: it loads the
        compiled code, or compiles it once per installation. Whatever else the machine does changes these
        times. Held as {certificate.table}."""
    )


def clock(job: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = job()
    return time.perf_counter() - start, value


def heading(text: str) -> None:
    print(f"{text}\n{'-' * len(text)}")


def say(text: str) -> None:
    """Print a paragraph; line breaks inside it are the source's, not the reader's."""
    print(textwrap.fill(" ".join(text.split()), WIDTH) + "\n")


if __name__ == "__main__":
    main()
