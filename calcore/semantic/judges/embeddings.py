"""Answers that are close to each other by the embedding of a sentence model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcore.semantic.judges.judge import JudgeError, numbered

__all__ = ["LINKAGES", "Embeddings"]

LINKAGES = ("average", "complete", "single")


class Embeddings:
    """A judge by cosine similarity of embeddings, with agglomerative clustering.

    Clusters of answers are merged, the closest two first, as long as their similarity is at least
    `threshold`. The similarity of two clusters is the mean over pairs of answers (``"average"``), that of the
    least (``"complete"``: all answers of a class are then that similar) or of the most similar pair
    (``"single"``: chains grow). Equal answers count once. An answer is right if its similarity to the
    reference is at least `threshold`.

    Embeddings see topics rather than claims: "in 1912" and "in 1913", or a sentence and its negation, are
    close. Look at classes of your data before trusting a threshold, and compare with another judge
    (`judge_agreement`).

    Parameters
    ----------
    model : path-like or object
        Name or directory of a model for the package sentence-transformers, which is yours to install; a name
        is downloaded by that package. Or any object with ``encode(list of str)`` that returns a matrix.
    threshold : float
        Cosine similarity in [-1, 1].
    linkage : {"average", "complete", "single"}
    """

    def __init__(self, model: Any, *, threshold: float = 0.8, linkage: str = "average") -> None:
        if not -1.0 <= threshold <= 1.0:
            raise ValueError(f"threshold must lie in [-1, 1]; got {threshold}")
        if linkage not in LINKAGES:
            raise ValueError(f"linkage must be one of {', '.join(LINKAGES)}; got {linkage!r}")
        self.model = _loaded(os.fspath(model)) if isinstance(model, str | os.PathLike) else model
        self.threshold = float(threshold)
        self.linkage = linkage

    def partition(self, question: str, answers: Sequence[str]) -> list[int]:
        """Classes of answers, numbered in order of first appearance; the question is not used."""
        from scipy.cluster.hierarchy import fcluster, linkage

        distinct = list(dict.fromkeys(answers))
        if len(distinct) < 2:
            return [0] * len(answers)
        unit = self._encode(distinct)
        above = np.triu_indices(len(distinct), 1)
        distances = np.maximum(1.0 - (unit @ unit.T)[above], 0.0)
        # The slack lets a similarity of exactly `threshold` merge: it is off by a few roundings.
        merged = fcluster(linkage(distances, self.linkage), 1.0 - self.threshold + 1e-9, "distance")
        cluster = dict(zip(distinct, merged.tolist(), strict=True))
        return numbered(cluster[answer] for answer in answers)

    def grade(self, question: str, answer: str, gold: str) -> int | None:
        """1 if answer and reference are similar enough, else 0."""
        unit = self._encode([answer, gold])
        return int(float(unit[0] @ unit[1]) >= self.threshold - 1e-9)

    def _encode(self, texts: list[str]) -> NDArray[np.float64]:
        """Rows of length 1; a row of zeros stays, and is similar to nothing."""
        rows = np.asarray(self.model.encode(texts), dtype=np.float64)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise JudgeError(f"the embedding of {len(texts)} texts has the shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise JudgeError("an embedding is not finite")
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0.0, lengths, 1.0)

    def __repr__(self) -> str:
        return f"Embeddings(threshold={self.threshold:g}, linkage={self.linkage!r})"


def _loaded(name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ValueError(
            "a model by name needs the package sentence-transformers: pip install sentence-transformers"
        ) from error
    return SentenceTransformer(name)
