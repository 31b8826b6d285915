"""Run beside an installed wheel, away from the checkout: the first things a user does."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import calcore

assert "site-packages" in calcore.__file__, calcore.__file__
assert version("calcore-calibration") == calcore.__version__
assert (Path(calcore.__file__).parent / "THEORY.md").exists()
assert (Path(calcore.__file__).parent / "py.typed").exists()

rng = np.random.default_rng(7)
scores = rng.random(20_000)
certificate = calcore.certify(rng.random(20_000) < scores**2, scores)
print(certificate)
assert certificate.lower < 1 / 6 < certificate.upper


def run(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "calcore", *words], check=True, capture_output=True, text=True
    ).stdout


assert run("--version").split()[-1] == calcore.__version__
run("simulate", "--rows", "30000", "-o", "job.parquet")
print(run("certify", "job.parquet"))
assert 0.0 <= json.loads(run("certify", "job.parquet", "--json"))["upper"] <= 1.0

from calcore import datasets  # noqa: E402

flights = datasets.flights_random()
print(calcore.certify(flights.y_true, flights.y_prob))
print("1 passed, 0 failed")
