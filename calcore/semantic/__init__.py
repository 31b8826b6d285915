"""Calibration of free-form language-model answers."""

from __future__ import annotations

from calcore.semantic.agreement import JudgeAgreement, adjusted_rand, judge_agreement, rand, same_mode
from calcore.semantic.cache import Reply, ReplyCache
from calcore.semantic.client import CallError, ChatClient, EndpointError
from calcore.semantic.files import read_questions, writing_questions
from calcore.semantic.judges import Asked, Embeddings, Exact, Judge, JudgeError, normal_form
from calcore.semantic.judging import cluster_answers, grade_answers, plan_clusters, plan_grades
from calcore.semantic.records import Misfit, Question, question_of
from calcore.semantic.sampler import PlannedCalls, plan_samples, sample_answers

__all__ = [
    "Asked",
    "CallError",
    "ChatClient",
    "Embeddings",
    "EndpointError",
    "Exact",
    "Judge",
    "JudgeAgreement",
    "JudgeError",
    "Misfit",
    "PlannedCalls",
    "Question",
    "Reply",
    "ReplyCache",
    "adjusted_rand",
    "cluster_answers",
    "grade_answers",
    "judge_agreement",
    "normal_form",
    "plan_clusters",
    "plan_grades",
    "plan_samples",
    "question_of",
    "rand",
    "read_questions",
    "same_mode",
    "sample_answers",
    "writing_questions",
]
