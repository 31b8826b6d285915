"""Sem-ECE: are language models right as often as their own samples agree?

Each question has N sampled answers, clustered by meaning. The share of the most frequent class is taken as
the model's confidence that this answer is right, in one of two ways, and held against its grade.

* `SemanticSamples.of` checks and holds clustered and graded answers; ``truncated`` shows fewer of them.
* `semantic_confidence`: "sem1", on the same answers, or "sem2", on held-out ones.
* `score_samples`: calibration errors with intervals and certificates, accuracy, gaps by margin.
  `compare_semantic`: two or more models on common questions.
* `semantic_margins`, `gap_by_margin`: how hard the questions are.
* From questions to samples: `read_questions` and `writing_questions`, files; `sample_answers` asks a model
  through a `ChatClient`; `cluster_answers` and `grade_answers` by a `Judge` (`Exact`, `Embeddings`, `Asked`);
  `gather_samples`; `judge_agreement`. ``calcore semantic`` does it from the command line.
* `expected_sem1`, `expected_sem2`, `asymptotic_gap`, `mode_law`: what theory says (THEORY 12).
* `QuestionPopulation`: questions with known shares, for trying out and testing.

Source: Wang et al. (2026), arXiv 2605.08432.
"""

from __future__ import annotations

from calcore.semantic.agreement import JudgeAgreement, adjusted_rand, judge_agreement, rand, same_mode
from calcore.semantic.cache import Reply, ReplyCache
from calcore.semantic.client import CallError, ChatClient, EndpointError
from calcore.semantic.estimators import GradedRows, SemanticConfidences, semantic_confidence
from calcore.semantic.expected import (
    asymptotic_bias,
    asymptotic_gap,
    expected_sem1,
    expected_sem2,
    mode_law,
)
from calcore.semantic.files import read_questions, writing_questions
from calcore.semantic.gathering import GatheredSamples, agreement_of, gather_samples
from calcore.semantic.judges import Asked, Embeddings, Exact, Judge, JudgeError, normal_form
from calcore.semantic.judging import cluster_answers, grade_answers, plan_clusters, plan_grades
from calcore.semantic.margins import (
    GapByMargin,
    MarginBucket,
    SemanticMargins,
    gap_by_margin,
    semantic_margins,
)
from calcore.semantic.records import Misfit, Question, question_of
from calcore.semantic.sampler import PlannedCalls, plan_samples, sample_answers
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
    "Asked",
    "CallError",
    "ChatClient",
    "Embeddings",
    "EndpointError",
    "EstimatorScore",
    "Exact",
    "GapByMargin",
    "GatheredSamples",
    "GradedRows",
    "Judge",
    "JudgeAgreement",
    "JudgeError",
    "LowMargin",
    "MarginBucket",
    "Misfit",
    "PlannedCalls",
    "Question",
    "QuestionPopulation",
    "Reply",
    "ReplyCache",
    "SemanticComparison",
    "SemanticConfidences",
    "SemanticMargins",
    "SemanticSamples",
    "SemanticScores",
    "adjusted_rand",
    "agreement_of",
    "asymptotic_bias",
    "asymptotic_gap",
    "cluster_answers",
    "compare_semantic",
    "expected_sem1",
    "expected_sem2",
    "gap_by_margin",
    "gather_samples",
    "grade_answers",
    "judge_agreement",
    "mode_law",
    "normal_form",
    "plan_clusters",
    "plan_grades",
    "plan_samples",
    "question_of",
    "rand",
    "read_questions",
    "same_mode",
    "sample_answers",
    "score_samples",
    "semantic_confidence",
    "semantic_margins",
    "writing_questions",
]
