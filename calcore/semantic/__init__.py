"""Sem-ECE: are language models right as often as their own samples agree?

Each question has N sampled answers, clustered by meaning. The share of the most frequent class is taken as
the model's confidence that this answer is right, in one of two ways, and held against its grade.

* `SemanticSamples.of` checks and holds clustered and graded answers; ``truncated`` shows fewer of them.
* `semantic_confidence`: "sem1", on the same answers, or "sem2", on held-out ones.
* `score_samples`: calibration errors with intervals and certificates, accuracy, gaps by margin.
  `compare_semantic`: two or more models on common questions. `sweep_answers`: what fewer answers give.
* `semantic_margins`, `gap_by_margin`: how hard the questions are.
* From questions to samples: `read_questions` and `writing_questions`, files; `sample_answers` asks a model
  through a `ChatClient`; `cluster_answers` and `grade_answers` by a `Judge` (`Exact`, `Embeddings`, `Asked`);
  `gather_samples`; `judge_agreement`. ``calcore semantic`` does it from the command line.
* `expected_sem1`, `expected_sem2`, `asymptotic_gap`, `mode_law`: what theory says (THEORY 12).
* `QuestionPopulation`: questions with known shares, for trying out and testing.

Names are loaded on first use: asking a model does not wait for what scores it.

Source: Wang et al. (2026), arXiv 2605.08432.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcore.semantic.agreement import JudgeAgreement as JudgeAgreement
    from calcore.semantic.agreement import adjusted_rand as adjusted_rand
    from calcore.semantic.agreement import judge_agreement as judge_agreement
    from calcore.semantic.agreement import rand as rand
    from calcore.semantic.agreement import same_mode as same_mode
    from calcore.semantic.cache import Reply as Reply
    from calcore.semantic.cache import ReplyCache as ReplyCache
    from calcore.semantic.client import CallError as CallError
    from calcore.semantic.client import ChatClient as ChatClient
    from calcore.semantic.client import EndpointError as EndpointError
    from calcore.semantic.estimators import GradedRows as GradedRows
    from calcore.semantic.estimators import SemanticConfidences as SemanticConfidences
    from calcore.semantic.estimators import semantic_confidence as semantic_confidence
    from calcore.semantic.expected import asymptotic_bias as asymptotic_bias
    from calcore.semantic.expected import asymptotic_gap as asymptotic_gap
    from calcore.semantic.expected import expected_sem1 as expected_sem1
    from calcore.semantic.expected import expected_sem2 as expected_sem2
    from calcore.semantic.expected import mode_law as mode_law
    from calcore.semantic.files import read_questions as read_questions
    from calcore.semantic.files import writing_questions as writing_questions
    from calcore.semantic.gathering import GatheredSamples as GatheredSamples
    from calcore.semantic.gathering import agreement_of as agreement_of
    from calcore.semantic.gathering import gather_samples as gather_samples
    from calcore.semantic.judges import Asked as Asked
    from calcore.semantic.judges import Embeddings as Embeddings
    from calcore.semantic.judges import Exact as Exact
    from calcore.semantic.judges import Judge as Judge
    from calcore.semantic.judges import JudgeError as JudgeError
    from calcore.semantic.judges import normal_form as normal_form
    from calcore.semantic.judging import cluster_answers as cluster_answers
    from calcore.semantic.judging import grade_answers as grade_answers
    from calcore.semantic.judging import plan_clusters as plan_clusters
    from calcore.semantic.judging import plan_grades as plan_grades
    from calcore.semantic.margins import GapByMargin as GapByMargin
    from calcore.semantic.margins import MarginBucket as MarginBucket
    from calcore.semantic.margins import SemanticMargins as SemanticMargins
    from calcore.semantic.margins import gap_by_margin as gap_by_margin
    from calcore.semantic.margins import semantic_margins as semantic_margins
    from calcore.semantic.records import Misfit as Misfit
    from calcore.semantic.records import Question as Question
    from calcore.semantic.records import question_of as question_of
    from calcore.semantic.sampler import PlannedCalls as PlannedCalls
    from calcore.semantic.sampler import plan_samples as plan_samples
    from calcore.semantic.sampler import sample_answers as sample_answers
    from calcore.semantic.samples import SemanticSamples as SemanticSamples
    from calcore.semantic.scoring import EstimatorScore as EstimatorScore
    from calcore.semantic.scoring import LowMargin as LowMargin
    from calcore.semantic.scoring import SemanticComparison as SemanticComparison
    from calcore.semantic.scoring import SemanticScores as SemanticScores
    from calcore.semantic.scoring import compare_semantic as compare_semantic
    from calcore.semantic.scoring import score_samples as score_samples
    from calcore.semantic.simulate import QuestionPopulation as QuestionPopulation
    from calcore.semantic.sweep import AnswerSweep as AnswerSweep
    from calcore.semantic.sweep import sweep_answers as sweep_answers

_HOME = {
    "AnswerSweep": "sweep",
    "Asked": "judges",
    "CallError": "client",
    "ChatClient": "client",
    "Embeddings": "judges",
    "EndpointError": "client",
    "EstimatorScore": "scoring",
    "Exact": "judges",
    "GapByMargin": "margins",
    "GatheredSamples": "gathering",
    "GradedRows": "estimators",
    "Judge": "judges",
    "JudgeAgreement": "agreement",
    "JudgeError": "judges",
    "LowMargin": "scoring",
    "MarginBucket": "margins",
    "Misfit": "records",
    "PlannedCalls": "sampler",
    "Question": "records",
    "QuestionPopulation": "simulate",
    "Reply": "cache",
    "ReplyCache": "cache",
    "SemanticComparison": "scoring",
    "SemanticConfidences": "estimators",
    "SemanticMargins": "margins",
    "SemanticSamples": "samples",
    "SemanticScores": "scoring",
    "adjusted_rand": "agreement",
    "agreement_of": "gathering",
    "asymptotic_bias": "expected",
    "asymptotic_gap": "expected",
    "cluster_answers": "judging",
    "compare_semantic": "scoring",
    "expected_sem1": "expected",
    "expected_sem2": "expected",
    "gap_by_margin": "margins",
    "gather_samples": "gathering",
    "grade_answers": "judging",
    "judge_agreement": "agreement",
    "mode_law": "expected",
    "normal_form": "judges",
    "plan_clusters": "judging",
    "plan_grades": "judging",
    "plan_samples": "sampler",
    "question_of": "records",
    "rand": "agreement",
    "read_questions": "files",
    "same_mode": "agreement",
    "sample_answers": "sampler",
    "score_samples": "scoring",
    "semantic_confidence": "estimators",
    "semantic_margins": "margins",
    "sweep_answers": "sweep",
    "writing_questions": "files",
}

__all__ = [
    "AnswerSweep",
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
    "sweep_answers",
    "writing_questions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'calcore.semantic' has no attribute {name!r}")
    value = getattr(import_module(f"calcore.semantic.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
