"""calcore: certified and truthful measurement of probability calibration.

Start with `certify`: labels and scores in, an interval for the calibration error out.

>>> import calcore
>>> certificate = calcore.certify([0, 1] * 500, [0.5] * 1000)
>>> certificate.lower, certificate.upper < 0.05, certificate.assumption
(0.0, True, 'none')

`calcore.report.certificate_text` says the same as the command does, in a few paragraphs. Rows that come in
parts go into a `CellTable` (fixed memory; tables add up) or a `ScoreTable` (every score is kept), which
`certify` takes in place of both columns.

* All of it at once, for a report: `evaluate`, `evaluate_models`, and `calcore.report.html` for a page.
* Several classes: `certify_top_label`, `certify_classwise`. Segments: `certify_groups`. Two models:
  `certify_difference`.
* Two or more models, by resampling: `compare`, which says what can be told apart.
* Proper scores: `brier_score`, `log_loss`; what they are made of: `brier_decomposition`, `corp`. Numbers of
  clinical papers: `clinical_calibration`. Repair: `TemperatureScaling`.
* Errors over bins: `ece`, `mce`, `debiased_ece`, `debiased_squared_ece`, `ece_curve`, `calibration_table`; of
  several classes `confidence_ece`, `classwise_ece`, `full_ece`.
* Truthful errors, which no distortion of the truth makes smaller: `binary_lin_ce`, `classwise_lin_ce`,
  `multiclass_lin_ce`, `conf_ce`, their losses `classwise_brier` and `confidence_loss`, `ranking_verdict`; of
  any reported means `lin_ce`; bins of equal counts, `rank_bins`. Not truthful, to compare with:
  `binary_lin_ece`, `classwise_lin_ece`, `conf_ece`, `uncorrected_conf_ce`, `lin_ece`.
* Errors without bins: `smooth_ece`, `kernel_ce`, `ecce`. A test of perfect calibration: `calibration_test`.
* Pictures, by the `plot` of what these return: `reliability`, `reliability_top_label`,
  `reliability_classwise`, `residual_map`, `risk_coverage`; and of tables, curves and `corp`.
* Orders of predictors, and how well a metric keeps them: `blackwell_compare`, `dominance_chain`,
  `ranking_agreement`.
* Answers of language models: `calcore.semantic`.
* How many rows, and what the assumption does: `rows_needed`, `sensitivity`.
* In use: `CalibrationMonitor`, `drift_test`.
* Bounds of means: `hoeffding`, `bernstein`, `empirical_bernstein`, `dkw`, `kl_upper`, `kl_lower`. Bins:
  `uniform_bins`, `quantile_bins`, `BinCounts`.
* Smoothing: `tv_denoise`, `tv_gap`, `nadaraya_watson`, `kernel_ce_curve`. Randomised scores: `perturb`,
  `auroc`, `auroc_loss`.
* What comes out: `Certificate`, `CertificateSet`, `CertifiedDifference`, `Optimality`, `AurocLoss`,
  `BinTable`, `EceCurve`, `ModelComparison`, `RankingVerdict`, `Ecce`, `CalibrationTest`,
  `BlackwellComparison`, `DominanceChain`, `RankingAgreement`, `BrierDecomposition`, `CorpDecomposition`,
  `ClinicalCalibration`, `ReliabilityDiagram`, `ClasswiseReliability`, `ResidualMap`, `RiskCoverage`,
  `Evaluation`, `ClassesEvaluation`, `ModelsEvaluation`.

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
    from calcore import report as report
    from calcore import semantic as semantic
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
    from calcore.certificates.difference import certify_difference as certify_difference
    from calcore.certificates.groups import certify_groups as certify_groups
    from calcore.certificates.multiclass import certify_classwise as certify_classwise
    from calcore.certificates.multiclass import certify_top_label as certify_top_label
    from calcore.comparison import ModelComparison as ModelComparison
    from calcore.comparison import compare as compare
    from calcore.diagrams import ClasswiseReliability as ClasswiseReliability
    from calcore.diagrams import ReliabilityDiagram as ReliabilityDiagram
    from calcore.diagrams import ResidualMap as ResidualMap
    from calcore.diagrams import RiskCoverage as RiskCoverage
    from calcore.diagrams import reliability as reliability
    from calcore.diagrams import reliability_classwise as reliability_classwise
    from calcore.diagrams import reliability_top_label as reliability_top_label
    from calcore.diagrams import residual_map as residual_map
    from calcore.diagrams import risk_coverage as risk_coverage
    from calcore.dominance import BlackwellComparison as BlackwellComparison
    from calcore.dominance import DominanceChain as DominanceChain
    from calcore.dominance import RankingAgreement as RankingAgreement
    from calcore.dominance import blackwell_compare as blackwell_compare
    from calcore.dominance import dominance_chain as dominance_chain
    from calcore.dominance import ranking_agreement as ranking_agreement
    from calcore.drift import drift_test as drift_test
    from calcore.evaluation import ClassesEvaluation as ClassesEvaluation
    from calcore.evaluation import Evaluation as Evaluation
    from calcore.evaluation import ModelsEvaluation as ModelsEvaluation
    from calcore.evaluation import evaluate as evaluate
    from calcore.evaluation import evaluate_models as evaluate_models
    from calcore.monitor import CalibrationMonitor as CalibrationMonitor
    from calcore.perturbation import AurocLoss as AurocLoss
    from calcore.perturbation import auroc as auroc
    from calcore.perturbation import auroc_loss as auroc_loss
    from calcore.perturbation import perturb as perturb
    from calcore.planning import rows_needed as rows_needed
    from calcore.planning import sensitivity as sensitivity
    from calcore.recalibration import TemperatureScaling as TemperatureScaling
    from calcore.results import Certificate as Certificate
    from calcore.results import CertificateSet as CertificateSet
    from calcore.results import CertifiedDifference as CertifiedDifference
    from calcore.scoring import BrierDecomposition as BrierDecomposition
    from calcore.scoring import ClinicalCalibration as ClinicalCalibration
    from calcore.scoring import CorpDecomposition as CorpDecomposition
    from calcore.scoring import brier_decomposition as brier_decomposition
    from calcore.scoring import brier_score as brier_score
    from calcore.scoring import clinical_calibration as clinical_calibration
    from calcore.scoring import corp as corp
    from calcore.scoring import log_loss as log_loss
    from calcore.smoothing import kernel_ce_curve as kernel_ce_curve
    from calcore.smoothing import nadaraya_watson as nadaraya_watson
    from calcore.table import BinCounts as BinCounts
    from calcore.table import CellTable as CellTable
    from calcore.table import ScoreTable as ScoreTable
    from calcore.total_variation import Optimality as Optimality
    from calcore.total_variation import tv_denoise as tv_denoise
    from calcore.total_variation import tv_gap as tv_gap
    from calcore.truthful import RankingVerdict as RankingVerdict
    from calcore.truthful import binary_lin_ce as binary_lin_ce
    from calcore.truthful import binary_lin_ece as binary_lin_ece
    from calcore.truthful import classwise_brier as classwise_brier
    from calcore.truthful import classwise_lin_ce as classwise_lin_ce
    from calcore.truthful import classwise_lin_ece as classwise_lin_ece
    from calcore.truthful import conf_ce as conf_ce
    from calcore.truthful import conf_ece as conf_ece
    from calcore.truthful import confidence_loss as confidence_loss
    from calcore.truthful import lin_ce as lin_ce
    from calcore.truthful import lin_ece as lin_ece
    from calcore.truthful import multiclass_lin_ce as multiclass_lin_ce
    from calcore.truthful import rank_bins as rank_bins
    from calcore.truthful import ranking_verdict as ranking_verdict
    from calcore.truthful import uncorrected_conf_ce as uncorrected_conf_ce
    from calcore.unbinned import CalibrationTest as CalibrationTest
    from calcore.unbinned import Ecce as Ecce
    from calcore.unbinned import calibration_test as calibration_test
    from calcore.unbinned import ecce as ecce
    from calcore.unbinned import kernel_ce as kernel_ce
    from calcore.unbinned import smooth_ece as smooth_ece

__version__ = "0.1.0"

_HOME = {
    "AurocLoss": "calcore.perturbation",
    "BinCounts": "calcore.table",
    "BinTable": "calcore.binned",
    "BlackwellComparison": "calcore.dominance",
    "BrierDecomposition": "calcore.scoring",
    "CalibrationMonitor": "calcore.monitor",
    "CalibrationTest": "calcore.unbinned",
    "CellTable": "calcore.table",
    "Certificate": "calcore.results",
    "CertificateSet": "calcore.results",
    "CertifiedDifference": "calcore.results",
    "ClasswiseReliability": "calcore.diagrams",
    "ClinicalCalibration": "calcore.scoring",
    "CorpDecomposition": "calcore.scoring",
    "DominanceChain": "calcore.dominance",
    "Ecce": "calcore.unbinned",
    "EceCurve": "calcore.binned",
    "ClassesEvaluation": "calcore.evaluation",
    "Evaluation": "calcore.evaluation",
    "ModelsEvaluation": "calcore.evaluation",
    "ModelComparison": "calcore.comparison",
    "Optimality": "calcore.total_variation",
    "RankingAgreement": "calcore.dominance",
    "RankingVerdict": "calcore.truthful",
    "ReliabilityDiagram": "calcore.diagrams",
    "ResidualMap": "calcore.diagrams",
    "RiskCoverage": "calcore.diagrams",
    "ScoreTable": "calcore.table",
    "TemperatureScaling": "calcore.recalibration",
    "auroc": "calcore.perturbation",
    "auroc_loss": "calcore.perturbation",
    "bernstein": "calcore.bounds",
    "binary_lin_ce": "calcore.truthful",
    "binary_lin_ece": "calcore.truthful",
    "blackwell_compare": "calcore.dominance",
    "brier_decomposition": "calcore.scoring",
    "brier_score": "calcore.scoring",
    "calibration_table": "calcore.binned",
    "calibration_test": "calcore.unbinned",
    "certify": "calcore.certificates",
    "certify_classwise": "calcore.certificates.multiclass",
    "certify_difference": "calcore.certificates.difference",
    "certify_groups": "calcore.certificates.groups",
    "certify_top_label": "calcore.certificates.multiclass",
    "classwise_brier": "calcore.truthful",
    "classwise_ece": "calcore.binned",
    "classwise_lin_ce": "calcore.truthful",
    "classwise_lin_ece": "calcore.truthful",
    "clinical_calibration": "calcore.scoring",
    "compare": "calcore.comparison",
    "conf_ce": "calcore.truthful",
    "conf_ece": "calcore.truthful",
    "confidence_ece": "calcore.binned",
    "confidence_loss": "calcore.truthful",
    "corp": "calcore.scoring",
    "debiased_ece": "calcore.binned",
    "debiased_squared_ece": "calcore.binned",
    "dkw": "calcore.bounds",
    "dominance_chain": "calcore.dominance",
    "drift_test": "calcore.drift",
    "ecce": "calcore.unbinned",
    "ece": "calcore.binned",
    "ece_curve": "calcore.binned",
    "empirical_bernstein": "calcore.bounds",
    "evaluate": "calcore.evaluation",
    "evaluate_models": "calcore.evaluation",
    "full_ece": "calcore.binned",
    "hoeffding": "calcore.bounds",
    "kernel_ce": "calcore.unbinned",
    "kernel_ce_curve": "calcore.smoothing",
    "kl_lower": "calcore.bounds",
    "kl_upper": "calcore.bounds",
    "lin_ce": "calcore.truthful",
    "lin_ece": "calcore.truthful",
    "log_loss": "calcore.scoring",
    "mce": "calcore.binned",
    "multiclass_lin_ce": "calcore.truthful",
    "nadaraya_watson": "calcore.smoothing",
    "perturb": "calcore.perturbation",
    "quantile_bins": "calcore.binning",
    "rank_bins": "calcore.truthful",
    "ranking_agreement": "calcore.dominance",
    "ranking_verdict": "calcore.truthful",
    "reliability": "calcore.diagrams",
    "reliability_classwise": "calcore.diagrams",
    "reliability_top_label": "calcore.diagrams",
    "residual_map": "calcore.diagrams",
    "risk_coverage": "calcore.diagrams",
    "rows_needed": "calcore.planning",
    "sensitivity": "calcore.planning",
    "smooth_ece": "calcore.unbinned",
    "tv_denoise": "calcore.total_variation",
    "tv_gap": "calcore.total_variation",
    "uncorrected_conf_ce": "calcore.truthful",
    "uniform_bins": "calcore.binning",
}

__all__ = [
    "AurocLoss",
    "BinCounts",
    "BinTable",
    "BlackwellComparison",
    "BrierDecomposition",
    "CalibrationMonitor",
    "CalibrationTest",
    "CellTable",
    "Certificate",
    "CertificateSet",
    "CertifiedDifference",
    "ClassesEvaluation",
    "ClasswiseReliability",
    "ClinicalCalibration",
    "CorpDecomposition",
    "DominanceChain",
    "Ecce",
    "EceCurve",
    "Evaluation",
    "ModelComparison",
    "ModelsEvaluation",
    "Optimality",
    "RankingAgreement",
    "RankingVerdict",
    "ReliabilityDiagram",
    "ResidualMap",
    "RiskCoverage",
    "ScoreTable",
    "TemperatureScaling",
    "__version__",
    "auroc",
    "auroc_loss",
    "bernstein",
    "binary_lin_ce",
    "binary_lin_ece",
    "blackwell_compare",
    "brier_decomposition",
    "brier_score",
    "calibration_table",
    "calibration_test",
    "certify",
    "certify_classwise",
    "certify_difference",
    "certify_groups",
    "certify_top_label",
    "classwise_brier",
    "classwise_ece",
    "classwise_lin_ce",
    "classwise_lin_ece",
    "clinical_calibration",
    "compare",
    "conf_ce",
    "conf_ece",
    "confidence_ece",
    "confidence_loss",
    "corp",
    "debiased_ece",
    "debiased_squared_ece",
    "dkw",
    "dominance_chain",
    "drift_test",
    "ecce",
    "ece",
    "ece_curve",
    "empirical_bernstein",
    "evaluate",
    "evaluate_models",
    "full_ece",
    "hoeffding",
    "kernel_ce",
    "kernel_ce_curve",
    "kl_lower",
    "kl_upper",
    "lin_ce",
    "lin_ece",
    "log_loss",
    "mce",
    "multiclass_lin_ce",
    "nadaraya_watson",
    "perturb",
    "quantile_bins",
    "rank_bins",
    "ranking_agreement",
    "ranking_verdict",
    "reliability",
    "reliability_classwise",
    "reliability_top_label",
    "residual_map",
    "risk_coverage",
    "rows_needed",
    "sensitivity",
    "smooth_ece",
    "tv_denoise",
    "tv_gap",
    "uncorrected_conf_ce",
    "uniform_bins",
]


_MODULES = ("report", "semantic")
"""Modules that are part of the interface."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"calcore.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'calcore' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
