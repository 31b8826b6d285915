"""Make calcore/datasets/bin_sweep.parquet: two models on the same rows, ranked by ECE as the bins have it.

    python bench/make_bin_sweep.py            write it and print what it holds
    python bench/make_bin_sweep.py --check    make it again and fail unless it equals the shipped one

No model and no world: true rates are drawn, so that every error is known. The scores of

* `steady` are .03 too high everywhere, and no binning hides that: its calibration error is .03, and so is its
  ECE over any bins, but for the chance of the labels;
* `wavy` are .06 too high in the first half of every tenth of [.1, .9], and .06 too low in the second. Its
  calibration error is .06. Bins that are a tenth wide hold both halves: the expected signed errors cancel and
  10 bins see 0. Of the fifteenths, one in three holds as much of both and two hold three quarters of one:
  15 bins see about .02. 20 bins see all of it, .06.

So `wavy` is the better of the two by ECE over 10 bins and the worse over 20. The expected Brier score is that
of the true rates plus the mean square of the errors: .0009 for `steady`, .0036 for `wavy`.

The true rate as a function of the score of `wavy` goes up and down by .8 + 15 x .12 = 2.6 in all: a
certificate of it assumes too little with the default of 1, and enough with 3.

Size, errors and seed (that of bench/bin_sweep.py) were committed before the first run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from calcore import ece

SEED = 251_006_388
N = 10_000
STEADY, WAVY = 0.03, 0.06
"""Absolute errors of the two."""
BINS = (10, 15, 20)
PATH = Path(__file__).resolve().parents[1] / "calcore" / "datasets" / "bin_sweep.parquet"
ABOUT = {
    "population": "synthetic rows with known rates; see calcore/datasets/README.md",
    "source": "bench/make_bin_sweep.py",
}


def make() -> pa.Table:
    """Labels, and the scores of both models as float32."""
    rng = np.random.default_rng(SEED)
    wavy = 0.1 + 0.8 * rng.random(N)
    too_high = np.floor(20.0 * wavy) % 2 == 0
    rate = wavy - np.where(too_high, WAVY, -WAVY)
    happened = rng.random(N) < rate
    columns = {"happened": happened, "steady": (rate + STEADY).astype(np.float32)}
    return pa.table(columns | {"wavy": wavy.astype(np.float32)}, metadata=ABOUT)


def write(table: pa.Table) -> None:
    pq.write_table(
        table,
        PATH,
        compression="zstd",
        compression_level=19,
        use_dictionary=False,
        column_encoding={"steady": "BYTE_STREAM_SPLIT", "wavy": "BYTE_STREAM_SPLIT"},
        write_statistics=False,
    )


def describe(table: pa.Table) -> None:
    y = table["happened"].to_numpy()
    print(f"{len(y):,} rows, rate {y.mean():.4f}")
    for name in ("steady", "wavy"):
        p = table[name].to_numpy().astype(np.float64)
        errors = ", ".join(f"{k}: {ece(y, p, n_bins=k):.4f}" for k in BINS)
        print(f"{name}: Brier score {np.mean((y - p) ** 2):.4f}; ECE by bins {errors}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Make or check the example of ECE over bin counts.")
    parser.add_argument("--check", action="store_true", help="compare with the shipped file; write nothing")
    check = parser.parse_args().check
    table = make()
    describe(table)
    if not check:
        write(table)
        print(f"written, {PATH.stat().st_size:,} bytes")
        return 0
    if not table.equals(pq.read_table(PATH), check_metadata=True):
        print("NOT the shipped file", file=sys.stderr)
        return 1
    print("equals the shipped file")
    return 0


if __name__ == "__main__":
    sys.exit(main())
