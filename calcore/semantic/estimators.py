"""Semantic confidence of the answer that most samples agree on: on the same samples, or on held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calcore import _validate
from calcore.kernels import semantic
from calcore.results import freeze, rebuilt
from calcore.semantic.samples import SemanticSamples

__all__ = [
    "CORRECTNESS",
    "Correctness",
    "GradedRows",
    "SemanticConfidences",
    "Ties",
    "semantic_confidence",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Estimator = Literal["sem1", "sem2"]
Ties = Literal["first", "random"]
Correctness = Literal["mode", "split"]

CORRECTNESS = get_args(Correctness)
_TIES = get_args(Ties)

_MOST_SPLITS = 10_000
_BLOCK = 2048
"""Questions that one thread takes at once."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GradedRows:
    """Pairs of a label and a confidence, ready for `calcore.ece`, `calcore.certify` or `calcore.compare`.

    Attributes
    ----------
    y_true : read-only uint8 array of shape (n,)
    y_prob : read-only float64 array of shape (n,)
    question : read-only int64 array of shape (n,)
        Position of each row's question in the samples. Rows of one question depend on each other: pass them
        as `groups` where there are several.
    """

    y_true: NDArray[np.uint8]
    y_prob: Floats
    question: Integers

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def __len__(self) -> int:
        return len(self.y_true)

    def __repr__(self) -> str:
        return f"<GradedRows: {len(self)} rows of {len(np.unique(self.question))} questions>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SemanticConfidences:
    """Confidence of each question's answer, as a fraction of whole numbers; from `semantic_confidence`.

    Attributes
    ----------
    ids : tuple of str
    hits, trials : read-only int64 arrays of shape (Q,)
        Of "sem1": answers in the mode's class, and answers. Of "sem2": answers of the evaluation blocks in
        the classes that were selected, and answers of these blocks, over all splits.
    mode : read-only int64 array of shape (Q,)
        Most frequent class of all answers, as the samples number it.
    y : read-only float64 array of shape (Q,)
        Whether the answer is right, by `correctness`: 1, 0, or NaN where that is not known. Of "split" the
        share of splits whose class is right, which may lie between.
    split_hits, split_modes : read-only int64 arrays of shape (Q, R), or None
        Of "sem2": hits of each split, and the class that it selected.
    split_y : read-only float64 array of shape (Q, R), or None
        Of "split": grade of the class that each split selected, NaN if missing.
    estimator : {"sem1", "sem2"}
    ties : {"first", "random"}
    correctness : {"mode", "split"}
    n_splits : int
        R; 0 for "sem1".
    seed : int
    """

    ids: tuple[str, ...]
    hits: Integers
    trials: Integers
    mode: Integers
    y: Floats
    split_hits: Integers | None
    split_modes: Integers | None
    split_y: Floats | None
    estimator: str
    ties: str
    correctness: str
    n_splits: int
    seed: int

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @property
    def confidence(self) -> Floats:
        """``hits / trials``, correctly rounded: equal fractions are equal numbers."""
        shares: Floats = self.hits / self.trials
        return shares

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        n_graded = int(np.count_nonzero(np.isfinite(self.y)))
        many = f"{len(self)} question{'s' if len(self) > 1 else ''}"
        return (
            f"<SemanticConfidences of {self.estimator!r}: {many}, {n_graded} graded, mean "
            f"{float(self.confidence.mean()):.4g}>"
        )

    def rows(self) -> GradedRows:
        """Return the graded pairs: one per question, or of "split" one per split.

        A question counts as graded if everything is known that `y` depends on.

        Examples
        --------
        >>> samples = SemanticSamples.of(["a", "b"], [[0, 0, 1, 0], [0, 1, 1, 1]], grades=[1, None])
        >>> rows = semantic_confidence(samples, estimator="sem1").rows()
        >>> rows.y_true, rows.y_prob, rows.question
        (array([1], dtype=uint8), array([0.75]), array([0]))
        """
        graded = np.flatnonzero(np.isfinite(self.y))
        if self.split_y is None or self.split_hits is None:
            return GradedRows(self.y[graded].astype(np.uint8), self.confidence[graded], graded)
        m = self.trials[graded] // self.n_splits
        return GradedRows(
            self.split_y[graded].astype(np.uint8).ravel(),
            (self.split_hits[graded] / m[:, None]).ravel(),
            np.repeat(graded, self.n_splits),
        )


def semantic_confidence(
    samples: SemanticSamples,
    *,
    estimator: Estimator,
    n_splits: int = 10,
    seed: int = 0,
    ties: Ties = "first",
    correctness: Correctness = "mode",
    n_threads: int | None = None,
) -> SemanticConfidences:
    """Estimate how sure a model is of its most frequent answer, from samples of it.

    "sem1" is the share of the most frequent class among all N answers: on average too high, as the class was
    chosen because its share is high. "sem2" chooses the class on one part of the answers and counts it in the
    other: the share is then unbiased for the class that was chosen, which is seldom a worse one. Which of the
    two has the smaller calibration error depends on the model: of one that is well over-confident where its
    answers disagree, "sem2", with many splits (THEORY 12.4).

    Parameters
    ----------
    samples : SemanticSamples
    estimator : {"sem1", "sem2"}
    n_splits : int, default 10
        R, splits of "sem2"; the published number. At most 10,000.
    seed : int, default 0
        Of the splits, and of random ties; from 0 to 2^64 - 1.
    ties : {"first", "random"}
        Of several most frequent classes: the one with the lowest number, as published, or a random one.
    correctness : {"mode", "split"}
        Whose grade counts as being right: that of the mode of all answers for every estimator, as published;
        or, of "sem2", that of the class that the split chose, which needs `class_grades`. The latter pairs a
        confidence with the answer that it is about, and gives R rows to a question.
    n_threads : int, optional
        Default: one per core, at most 4. The result does not depend on it.

    Returns
    -------
    SemanticConfidences

    Raises
    ------
    ValueError
        If an argument breaks its rule; if "split" is asked for without class grades.
    TypeError
        If `samples` is no SemanticSamples.

    Notes
    -----
    *Sem1.* ``max_k N_k / N``.

    *Sem2.* In each of R splits the first floor(N / 2) answers of a random permutation select a class, and the
    other m = N - floor(N / 2) are evaluated: ``sum_r hits_r / (R m)``, one number for each question. (Other
    orders of averaging are other estimators: a calibration error of single splits is what "split" gives.)

    *Random numbers.* The key of a question is the first 8 bytes, little end first, of BLAKE2b of its id in
    UTF-8, keyed with the seed as 8 bytes; split r reads stream r + 1 of splitmix64 from there on, see
    `calcore.kernels.semantic`. So a question's numbers depend on the seed, its id and its answers in their
    order, and neither on other questions nor on threads.

    *Unknown grades.* Where only modes were graded and a random tie fell on another class than the first,
    `y` is missing.

    *Cost.* O(R N) for a question, about 5 ns for each draw; 8 R bytes.

    References
    ----------
    Wang et al. (2026), arXiv 2605.08432: both estimators, there with one seed for all questions. Wang et al.,
    ICLR 2023 (arXiv 2203.11171): agreement of samples.

    Examples
    --------
    >>> samples = SemanticSamples.of(["a", "b"], [[0, 0, 1, 0], [5, 5, 5, 5]], grades=[1, 0])
    >>> semantic_confidence(samples, estimator="sem1").confidence
    array([0.75, 1.  ])
    >>> found = semantic_confidence(samples, estimator="sem2")
    >>> found.hits[1], found.trials[1]  # one class only: 10 splits, 2 of 2 answers in each
    (np.int64(20), np.int64(20))
    """
    if not isinstance(samples, SemanticSamples):
        raise TypeError(
            f"samples must be SemanticSamples, from SemanticSamples.of; got {type(samples).__name__}"
        )
    _validate.choice(estimator, "estimator", get_args(Estimator))
    _validate.choice(ties, "ties", _TIES)
    _validate.choice(correctness, "correctness", CORRECTNESS)
    splits = _validate.whole_number(n_splits, "n_splits", low=1, high=_MOST_SPLITS)
    number = checked_seed(seed)
    threads = _validate.threads(n_threads)
    if correctness == "split" and samples.class_grades is None:
        raise ValueError(
            "correctness must be 'mode' where only modes are graded; for 'split' give class_grades to "
            "SemanticSamples.of"
        )
    random_ties = ties == "random"
    needs_keys = estimator == "sem2" or random_ties
    keys = keys_of(samples.ids, number) if needs_keys else np.zeros(len(samples), np.uint64)
    starts = np.cumsum(samples.n_classes) - samples.n_classes
    mode, first, _ = counted(samples, keys, random_ties, threads)
    if not random_ties and samples.graded is not None:
        mode = samples.graded
    y = _grades_of_modes(samples, starts, mode)
    if estimator == "sem1":
        return SemanticConfidences(
            ids=samples.ids,
            hits=first.astype(np.int64),
            trials=samples.sizes,
            mode=samples.classes[starts + mode],
            y=y,
            split_hits=None,
            split_modes=None,
            split_y=None,
            estimator=estimator,
            ties=ties,
            correctness="mode",
            n_splits=0,
            seed=number,
        )
    chosen, hits = (np.empty((len(samples), splits), np.int32) for _ in range(2))
    columns = (samples.codes, samples.offsets, samples.n_classes, _validate.read_only(keys))

    def part(low: int, high: int) -> None:
        codes, offsets, n_classes, own = columns
        with np.errstate(over="ignore"):  # words wrap around, which matters to uncompiled code only
            semantic.splits(
                codes, offsets[low : high + 1], n_classes[low:high], own[low:high], random_ties,
                chosen[low:high], hits[low:high],
            )  # fmt: skip

    _in_blocks(part, len(samples), threads)
    places = starts[:, None] + chosen
    split_y = None
    if correctness == "split":
        assert samples.class_grades is not None
        split_y = samples.class_grades[places]
        y = np.where(np.isnan(y), np.nan, split_y.mean(axis=1))  # the same questions as the other estimators
    return SemanticConfidences(
        ids=samples.ids,
        hits=hits.sum(axis=1, dtype=np.int64),
        trials=splits * (samples.sizes - samples.sizes // 2),
        mode=samples.classes[starts + mode],
        y=y,
        split_hits=hits.astype(np.int64),
        split_modes=samples.classes[places],
        split_y=split_y,
        estimator=estimator,
        ties=ties,
        correctness=correctness,
        n_splits=splits,
        seed=number,
    )


def checked_seed(seed: Any) -> int:
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"seed must be a whole number; got {type(seed).__name__}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must lie between 0 and 2^64 - 1; got {seed}")
    return int(seed)


def keys_of(ids: tuple[str, ...], seed: int) -> NDArray[np.uint64]:
    """The first word of each question's stream, from the seed and its name."""
    secret = seed.to_bytes(8, "little")
    digests = b"".join(
        blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=secret).digest() for name in ids
    )
    return np.frombuffer(digests, np.dtype("<u8")).astype(np.uint64)


def counted(
    samples: SemanticSamples, keys: NDArray[np.uint64], random_ties: bool, threads: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Code of each question's mode, and its two largest counts."""
    mode, first, second = (np.empty(len(samples), np.int32) for _ in range(3))
    columns = (samples.codes, samples.offsets, samples.n_classes, _validate.read_only(keys))

    def part(low: int, high: int) -> None:
        codes, offsets, n_classes, own = columns
        with np.errstate(over="ignore"):
            semantic.modes(
                codes, offsets[low : high + 1], n_classes[low:high], own[low:high], random_ties,
                mode[low:high], first[low:high], second[low:high],
            )  # fmt: skip

    _in_blocks(part, len(samples), threads)
    return mode, first, second


def _in_blocks(part: Callable[[int, int], None], n: int, threads: int) -> None:
    lows = range(0, n, _BLOCK)
    if threads == 1 or len(lows) == 1:
        for low in lows:
            part(low, min(low + _BLOCK, n))
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda low: part(low, min(low + _BLOCK, n)), lows))


def _grades_of_modes(samples: SemanticSamples, starts: Integers, mode: NDArray[np.int32]) -> Floats:
    if samples.class_grades is not None:
        of_classes: Floats = samples.class_grades[starts + mode]
        return of_classes
    if samples.graded is None:  # of the mode of more answers, which is deployed whatever these say
        return samples.grades
    return np.where(mode == samples.graded, samples.grades, np.nan)
