"""Proper scores and what they are made of: losses that reward calibration and discrimination together.

* `brier_score`, `log_loss`: to choose between models. A lower expected score cannot be had by reporting
  anything but the true probabilities.
* `brier_decomposition`: reliability, resolution and uncertainty over bins, with what bins leave out.
* `corp`: miscalibration, discrimination and uncertainty, without bins.
* `clinical_calibration`: calibration intercept and slope, observed/expected, ICI, E50, E90.

None of them says what a sample proves about the calibration error: that is `calcore.certify`.
"""

from __future__ import annotations

from calcore.scoring.clinical import ClinicalCalibration, clinical_calibration
from calcore.scoring.decomposition import BrierDecomposition, CorpDecomposition, brier_decomposition, corp
from calcore.scoring.losses import brier_score, log_loss

__all__ = [
    "BrierDecomposition",
    "ClinicalCalibration",
    "CorpDecomposition",
    "brier_decomposition",
    "brier_score",
    "clinical_calibration",
    "corp",
    "log_loss",
]
