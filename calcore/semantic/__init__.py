"""Sem-ECE: are language models right as often as their own samples agree?

Each question has N sampled answers, clustered by meaning. The share of the most frequent class is taken as
the model's confidence that this answer is right, in one of two ways, and held against its grade.

* `SemanticSamples.of` checks and holds clustered and graded answers; ``truncated`` shows fewer of them.
* `semantic_confidence`: "sem1", on the same answers, or "sem2", on held-out ones.
* `score_samples`: calibration errors with intervals and certificates, accuracy, gaps by margin.
  `compare_semantic`: two or more models on common questions.
* `semantic_margins`, `gap_by_margin`: how hard the questions are.
* `expected_sem1`, `expected_sem2`, `asymptotic_gap`, `mode_law`: what theory says (THEORY 12).
* `QuestionPopulation`: questions with known shares, for trying out and testing.

Source: Wang et al. (2026), arXiv 2605.08432.
"""

from __future__ import annotations

from calcore.semantic.estimators import GradedRows, SemanticConfidences, semantic_confidence
from calcore.semantic.expected import (
    asymptotic_bias,
    asymptotic_gap,
    expected_sem1,
    expected_sem2,
    mode_law,
)
from calcore.semantic.margins import (
    GapByMargin,
    MarginBucket,
    SemanticMargins,
    gap_by_margin,
    semantic_margins,
)
from calcore.semantic.samples import SemanticSamples
from calcore.semantic.scoring import (
    EstimatorScore,
    LowMargin,
    SemanticComparison,
    SemanticScores,
    compare_semantic,
    score_samples,
)
from calcore.semantic.simulate import QuestionPopulation

__all__ = [
    "EstimatorScore",
    "GapByMargin",
    "GradedRows",
    "LowMargin",
    "MarginBucket",
    "QuestionPopulation",
    "SemanticComparison",
    "SemanticConfidences",
    "SemanticMargins",
    "SemanticSamples",
    "SemanticScores",
    "asymptotic_bias",
    "asymptotic_gap",
    "compare_semantic",
    "expected_sem1",
    "expected_sem2",
    "gap_by_margin",
    "mode_law",
    "score_samples",
    "semantic_confidence",
    "semantic_margins",
]
