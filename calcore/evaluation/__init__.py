"""The whole evaluation of models: what is proved, what is estimated, and the words to report it with.

Three layers, in this order: proper scores decide which model is better, errors over bins and diagrams show
where a model is off, resampling and certificates say what the rows can show.

    rows -> one (of several classes: and classes) -> Evaluation
    rows -> models: one for each, and compare     -> ModelsEvaluation

`calcore.report.html` makes a page of either, and ``calcore report`` a file.
"""

from __future__ import annotations

from calcore.evaluation.classes import ClassesEvaluation
from calcore.evaluation.data import DataSummary
from calcore.evaluation.models import ModelsEvaluation, evaluate_models
from calcore.evaluation.one import METRICS, RESAMPLED_ROWS, Evaluation, evaluate, sampled
from calcore.evaluation.words import EVENTS, N_BINS

__all__ = [
    "EVENTS",
    "METRICS",
    "N_BINS",
    "RESAMPLED_ROWS",
    "ClassesEvaluation",
    "DataSummary",
    "Evaluation",
    "ModelsEvaluation",
    "evaluate",
    "evaluate_models",
    "sampled",
]
