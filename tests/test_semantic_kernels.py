"""Splits of sampled answers against the documented stream in whole numbers of Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from calcore.kernels import semantic
from calcore.semantic import SemanticSamples, semantic_confidence, semantic_margins

kernels = pytest.mark.kernels

WORD = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15

# ------------------------------------------------------------------------------------------- slow version


def mixed(z: int) -> int:
    """The output of splitmix64 for a state, as published."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def slow_key(seed: int, name: str) -> int:
    digest = blake2b(name.encode(), digest_size=8, key=seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little")


class Stream:
    """Words of one stream of a key, by number."""

    def __init__(self, key: int, number: int) -> None:
        self.key, self.base, self.used = key, number << 32, 0

    def place(self, n: int) -> int:
        """One of n, every one alike."""
        while True:
            self.used += 1
            product = (mixed((self.key + (self.base + self.used) * GAMMA) & WORD) >> 32) * n
            if product % 2**32 >= 2**32 % n:
                return product >> 32


def slow_mode(answers: Sequence[int], ties: str, stream: Stream) -> int:
    counts = Counter(answers)
    best = sorted(c for c in counts if counts[c] == max(counts.values()))
    return best[stream.place(len(best))] if ties == "random" and len(best) > 1 else best[0]


def slow_split(answers: Sequence[int], key: int, r: int, ties: str) -> tuple[int, int]:
    """The class that the selection chooses, and how often it is in the rest."""
    rest, stream, selection = list(answers), Stream(key, r + 1), []
    for i in range(len(rest) // 2):
        j = i + stream.place(len(rest) - i)
        rest[i], rest[j] = rest[j], rest[i]
        selection.append(rest[i])
    chosen = slow_mode(selection, ties, stream)
    return chosen, rest[len(rest) // 2 :].count(chosen)


questions = st.lists(
    st.lists(st.sampled_from([0, 1, 2, 3, 900, 2**62]), min_size=2, max_size=21), min_size=1, max_size=6
)
tie_rules = st.sampled_from(["first", "random"])


def samples_of(answers: Sequence[Sequence[int]], **more: Any) -> SemanticSamples:
    return SemanticSamples.of([f"q{i}" for i in range(len(answers))], answers, **more)


@kernels
@given(answers=questions, seed=st.sampled_from([0, 1, 2**64 - 1]), ties=tie_rules)
def test_sem2_is_the_documented_stream(answers: list[list[int]], seed: int, ties: Any) -> None:
    found = semantic_confidence(samples_of(answers), estimator="sem2", n_splits=3, seed=seed, ties=ties)
    assert found.split_modes is not None
    assert found.split_hits is not None
    for q, own in enumerate(answers):
        key = slow_key(seed, f"q{q}")
        splits = [slow_split(own, key, r, ties) for r in range(3)]
        assert list(zip(found.split_modes[q], found.split_hits[q], strict=True)) == splits
        assert found.hits[q] == sum(hits for _, hits in splits)
        assert found.trials[q] == 3 * (len(own) - len(own) // 2)
        assert found.mode[q] == slow_mode(own, ties, Stream(key, 0))


@kernels
@given(answers=questions, ties=tie_rules)
def test_sem1_and_margins_are_counts(answers: list[list[int]], ties: Any) -> None:
    samples = samples_of(answers)
    found = semantic_confidence(samples, estimator="sem1", ties=ties, seed=5)
    margins = semantic_margins(samples)
    for q, own in enumerate(answers):
        counts = [count for _, count in Counter(own).most_common(2)] + [0]
        assert (found.hits[q], found.trials[q]) == (counts[0], len(own))
        assert found.confidence[q] == counts[0] / len(own)
        assert (margins.first[q], margins.second[q], margins.trials[q]) == (*counts[:2], len(own))
        assert found.mode[q] == slow_mode(own, ties, Stream(slow_key(5, f"q{q}"), 0))
        assert margins.delta[q] == (counts[0] - counts[1]) / len(own)
        assert margins.low[q] == ((counts[0] - counts[1]) ** 2 < len(own))


@kernels
@given(answers=questions)
def test_classes_are_numbered_in_their_order(answers: list[list[int]]) -> None:
    samples = samples_of(answers)
    place = 0
    for q, own in enumerate(answers):
        distinct = sorted(set(own))
        assert samples.n_classes[q] == len(distinct)
        assert samples.classes[place : place + len(distinct)].tolist() == distinct
        place += len(distinct)
        codes = samples.codes[samples.offsets[q] : samples.offsets[q + 1]]
        assert codes.tolist() == [distinct.index(value) for value in own]


@kernels
def test_published_words_of_splitmix64() -> None:
    """The first outputs for seed 1234567, as the reference implementation prints them."""
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mixed((1234567 + (i + 1) * GAMMA) & WORD) for i in range(3)] == wanted
    with np.errstate(over="ignore"):
        state = np.uint64(1234567)
        for word in wanted:
            state = state + np.uint64(GAMMA)
            assert int(semantic._word(state)) == word


@kernels
def test_places_are_rejected_where_they_would_favour_some() -> None:
    """Of a key whose first word has a low part in the rejected range."""
    n = 3_000_000_001  # 2^32 mod n is 1,294,967,295: three words in ten are rejected
    rejections = 0
    with np.errstate(over="ignore"):
        for key in range(40):
            stream = Stream(key, 0)
            place, state = semantic._place(np.int64(n), np.uint64(key))
            assert int(place) == stream.place(n)
            assert int(state) == (key + stream.used * GAMMA) & WORD
            rejections += stream.used - 1
    assert rejections > 5


@kernels
def test_every_selection_is_equally_likely() -> None:
    """All 10 ways to choose 2 of 5 answers, over 20,000 questions; chi-squared, one in 10^6."""
    n = 20_000
    samples = SemanticSamples.of([f"question {i}" for i in range(n)], [[0, 1, 2, 3, 4]] * n)
    found = semantic_confidence(samples, estimator="sem2", n_splits=1)
    assert found.split_modes is not None
    firsts = Counter(found.split_modes[:, 0].tolist())  # the lower of the two that were selected
    pairs = Counter(min(pair) for pair in itertools.combinations(range(5), 2))
    statistic = sum((firsts[k] - n * pairs[k] / 10) ** 2 / (n * pairs[k] / 10) for k in pairs)
    assert set(firsts) == set(pairs)
    assert statistic < chi2.isf(1e-6, len(pairs) - 1)
    assert found.hits.sum() == 0


@kernels
def test_random_ties_are_fair() -> None:
    n = 10_000
    samples = SemanticSamples.of([str(i) for i in range(n)], [[4, 9, 9, 4]] * n)
    found = semantic_confidence(samples, estimator="sem1", ties="random")
    heads = int(np.count_nonzero(found.mode == 4))
    assert binom.ppf(5e-7, n, 0.5) <= heads <= binom.isf(5e-7, n, 0.5)


@kernels
def test_one_specialisation() -> None:
    listed = [[0, 1, 0, 2], [1, 1, 1, 0]]
    given_as: list[Any] = [
        listed,
        np.array(listed),
        np.array(listed, np.uint8),
        np.array(listed, np.int32)[:, ::1],
        np.asfortranarray(listed),
        np.array(listed * 2)[::2],
    ]
    for answers in given_as:
        samples = SemanticSamples.of(["a", "b"], answers)
        for estimator in ("sem1", "sem2"):
            semantic_confidence(samples, estimator=estimator)
    for kernel in (semantic.number, semantic.modes, semantic.splits):
        assert len(getattr(kernel, "signatures", [0])) == 1


@kernels
def test_split_of_known_counts_is_hypergeometric() -> None:
    """Hits of 4 answers of two classes: the mean over 20,000 questions, within five standard errors."""
    n = 20_000
    samples = SemanticSamples.of([f"{i}" for i in range(n)], [[0, 0, 0, 1]] * n)
    found = semantic_confidence(samples, estimator="sem2", n_splits=1)
    # selections {0, 0} (3 of 6 pairs) leave one 0 of 2; {0, 1} choose 0 and leave two
    share: NDArray[np.float64] = found.confidence
    assert set(share.tolist()) == {0.5, 1.0}
    assert abs(float(share.mean()) - 0.75) <= 5 * 0.25 / math.sqrt(n)
