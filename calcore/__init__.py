"""calcore: certified and truthful measurement of probability calibration.

Start with `certify`: labels and scores in, an interval for the calibration error out.

>>> import calcore
>>> certificate = calcore.certify([0, 1] * 500, [0.5] * 1000)
>>> certificate.lower, certificate.upper < 0.05, certificate.assumption
(0.0, True, 'none')

`calcore.report.certificate_text` says the same as the command does, in a few paragraphs. Rows that come in
parts go into a `CellTable` (fixed memory; tables add up) or a `ScoreTable` (every score is kept), which
`certify` takes in place of both columns.

* Several classes: `certify_top_label`, `certify_classwise`. Segments: `certify_groups`. Two models:
  `compare`.
* Errors over bins: `ece`, `mce`, `debiased_ece`, `debiased_squared_ece`, `ece_curve`, `calibration_table`; of
  several classes `confidence_ece`, `classwise_ece`, `full_ece`.
* How many rows, and what the assumption does: `rows_needed`, `sensitivity`.
* In use: `CalibrationMonitor`, `drift_test`.
* Bounds of means: `hoeffding`, `bernstein`, `empirical_bernstein`, `dkw`, `kl_upper`, `kl_lower`. Bins:
  `uniform_bins`, `quantile_bins`, `BinCounts`.
* Smoothing: `tv_denoise`, `tv_gap`, `nadaraya_watson`, `kernel_ce_curve`. Randomised scores: `perturb`,
  `auroc`, `auroc_loss`.
* What comes out: `Certificate`, `CertificateSet`, `Comparison`, `Optimality`, `AurocLoss`, `BinTable`,
  `EceCurve`.

The proofs that the docstrings cite are in `THEORY.md` beside this file. The flow, each step importing only
the ones before it::

    your arrays -> _validate -> table -> kernels -> statistic -> result -> report
                   (checked)   (ScoreTable,          (certify)  (Certificate)
                                CellTable)

Names are loaded on first use, so that ``import calcore`` and ``calcore --version`` cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcore.binned import BinTable as BinTable
    from calcore.binned import EceCurve as EceCurve
    from calcore.binned import calibration_table as calibration_table
    from calcore.binned import classwise_ece as classwise_ece
    from calcore.binned import confidence_ece as confidence_ece
    from calcore.binned import debiased_ece as debiased_ece
    from calcore.binned import debiased_squared_ece as debiased_squared_ece
    from calcore.binned import ece as ece
    from calcore.binned import ece_curve as ece_curve
    from calcore.binned import full_ece as full_ece
    from calcore.binned import mce as mce
    from calcore.binning import quantile_bins as quantile_bins
    from calcore.binning import uniform_bins as uniform_bins
    from calcore.bounds import bernstein as bernstein
    from calcore.bounds import dkw as dkw
    from calcore.bounds import empirical_bernstein as empirical_bernstein
    from calcore.bounds import hoeffding as hoeffding
    from calcore.bounds import kl_lower as kl_lower
    from calcore.bounds import kl_upper as kl_upper
    from calcore.certificates import certify as certify
    from calcore.certificates.comparison import compare as compare
    from calcore.certificates.groups import certify_groups as certify_groups
    from calcore.certificates.multiclass import certify_classwise as certify_classwise
    from calcore.certificates.multiclass import certify_top_label as certify_top_label
    from calcore.drift import drift_test as drift_test
    from calcore.monitor import CalibrationMonitor as CalibrationMonitor
    from calcore.perturbation import AurocLoss as AurocLoss
    from calcore.perturbation import auroc as auroc
    from calcore.perturbation import auroc_loss as auroc_loss
    from calcore.perturbation import perturb as perturb
    from calcore.planning import rows_needed as rows_needed
    from calcore.planning import sensitivity as sensitivity
    from calcore.results import Certificate as Certificate
    from calcore.results import CertificateSet as CertificateSet
    from calcore.results import Comparison as Comparison
    from calcore.smoothing import kernel_ce_curve as kernel_ce_curve
    from calcore.smoothing import nadaraya_watson as nadaraya_watson
    from calcore.table import BinCounts as BinCounts
    from calcore.table import CellTable as CellTable
    from calcore.table import ScoreTable as ScoreTable
    from calcore.total_variation import Optimality as Optimality
    from calcore.total_variation import tv_denoise as tv_denoise
    from calcore.total_variation import tv_gap as tv_gap

__version__ = "0.1.0"

_HOME = {
    "AurocLoss": "calcore.perturbation",
    "BinCounts": "calcore.table",
    "BinTable": "calcore.binned",
    "CalibrationMonitor": "calcore.monitor",
    "CellTable": "calcore.table",
    "Certificate": "calcore.results",
    "CertificateSet": "calcore.results",
    "Comparison": "calcore.results",
    "EceCurve": "calcore.binned",
    "Optimality": "calcore.total_variation",
    "ScoreTable": "calcore.table",
    "auroc": "calcore.perturbation",
    "auroc_loss": "calcore.perturbation",
    "bernstein": "calcore.bounds",
    "calibration_table": "calcore.binned",
    "certify": "calcore.certificates",
    "certify_classwise": "calcore.certificates.multiclass",
    "certify_groups": "calcore.certificates.groups",
    "certify_top_label": "calcore.certificates.multiclass",
    "classwise_ece": "calcore.binned",
    "compare": "calcore.certificates.comparison",
    "confidence_ece": "calcore.binned",
    "debiased_ece": "calcore.binned",
    "debiased_squared_ece": "calcore.binned",
    "dkw": "calcore.bounds",
    "drift_test": "calcore.drift",
    "ece": "calcore.binned",
    "ece_curve": "calcore.binned",
    "empirical_bernstein": "calcore.bounds",
    "full_ece": "calcore.binned",
    "hoeffding": "calcore.bounds",
    "kernel_ce_curve": "calcore.smoothing",
    "kl_lower": "calcore.bounds",
    "kl_upper": "calcore.bounds",
    "mce": "calcore.binned",
    "nadaraya_watson": "calcore.smoothing",
    "perturb": "calcore.perturbation",
    "quantile_bins": "calcore.binning",
    "rows_needed": "calcore.planning",
    "sensitivity": "calcore.planning",
    "tv_denoise": "calcore.total_variation",
    "tv_gap": "calcore.total_variation",
    "uniform_bins": "calcore.binning",
}

__all__ = [
    "AurocLoss",
    "BinCounts",
    "BinTable",
    "CalibrationMonitor",
    "CellTable",
    "Certificate",
    "CertificateSet",
    "Comparison",
    "EceCurve",
    "Optimality",
    "ScoreTable",
    "__version__",
    "auroc",
    "auroc_loss",
    "bernstein",
    "calibration_table",
    "certify",
    "certify_classwise",
    "certify_groups",
    "certify_top_label",
    "classwise_ece",
    "compare",
    "confidence_ece",
    "debiased_ece",
    "debiased_squared_ece",
    "dkw",
    "drift_test",
    "ece",
    "ece_curve",
    "empirical_bernstein",
    "full_ece",
    "hoeffding",
    "kernel_ce_curve",
    "kl_lower",
    "kl_upper",
    "mce",
    "nadaraya_watson",
    "perturb",
    "quantile_bins",
    "rows_needed",
    "sensitivity",
    "tv_denoise",
    "tv_gap",
    "uniform_bins",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'calcore' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
