"""Samples of a model's answers to questions: a call for each, kept as it arrives, resumed where it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from calcore.semantic.client import CallError, ChatClient, Messages, tokens_of
from calcore.semantic.pool import in_order
from calcore.semantic.prompts import prompt
from calcore.semantic.records import Misfit, Question

__all__ = ["PlannedCalls", "plan_samples", "sample_answers"]


@dataclass(slots=True)
class PlannedCalls:
    """What a run would cost.

    Attributes
    ----------
    questions, calls, cached : int
        Questions that fit; different calls in all; those whose replies are in the cache.
    prompt_tokens : int
        About how many tokens the calls would send that are not cached: see `tokens_of`.
    misfits : list of Misfit
        What does not fit.
    """

    questions: int = 0
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    misfits: list[Misfit] = field(default_factory=list)
    _known: set[bytes] = field(default_factory=set)

    def questions_of(self, rows: Iterable[Question | Misfit]) -> Iterator[Question]:
        """The questions among these, counted; misfits are put aside."""
        for each in rows:
            if isinstance(each, Misfit):
                self.misfits.append(each)
            else:
                self.questions += 1
                yield each

    def add(self, client: ChatClient, messages: Messages, *, subject: str, index: int = 0) -> None:
        """Count one call, unless it is the same as one before: that will be in the cache."""
        key = client.key(messages, subject=subject, index=index)
        if key in self._known:
            return
        self._known.add(key)
        self.calls += 1
        if client.cache is not None and key in client.cache:
            self.cached += 1
        else:
            self.prompt_tokens += tokens_of(messages)

    def to_dict(self) -> dict[str, int]:
        """All numbers, ready for ``json.dumps``."""
        return {name: getattr(self, name) for name in ("questions", "calls", "cached", "prompt_tokens")}


def sample_answers(
    questions: Iterable[Question | Misfit],
    client: ChatClient,
    *,
    n_samples: int = 10,
    system: str | None = None,
    with_confidence: bool = False,
    n_threads: int = 8,
) -> Iterator[Question | Misfit]:
    """Ask a model every question `n_samples` times.

    Parameters
    ----------
    questions : iterable of Question or Misfit
        Misfits are handed on.
    client : ChatClient
        With a cache, a run that was interrupted goes on where it ended when it is run again.
    n_samples : int
        Answers to each question, each from a call of its own.
    system : str, optional
        The instruction before the question; default: the one in ``prompts/answer.txt``, or with
        `with_confidence` in ``prompts/answer_confidence.txt``.
    with_confidence : bool
        Ask for a confidence too, as JSON. It is missing where the reply is not as asked; the reply as a
        whole is then the answer. Nothing is asked twice: that would not be a sample of the model.
    n_threads : int
        Calls under way at a time.

    Yields
    ------
    Question or Misfit
        In the order of `questions`; a `Misfit` where a call failed or there is nothing to ask.

    Raises
    ------
    EndpointError
        No call can succeed.
    """
    instruction = (
        system if system is not None else prompt("answer_confidence" if with_confidence else "answer")
    )

    def calls() -> Iterator[tuple[Question | Misfit, int]]:
        for each in questions:
            asked = _askable(each)
            for j in range(n_samples if isinstance(asked, Question) else 1):
                yield asked, j

    def call(task: tuple[Question | Misfit, int]) -> tuple[Question | Misfit, int, str | CallError]:
        asked, j = task
        if isinstance(asked, Misfit):
            return asked, j, ""
        try:
            reply = client.complete(_messages(instruction, asked), subject=asked.id, index=j)
        except CallError as error:
            return asked, j, error
        return asked, j, reply.text

    answers: list[str | CallError] = []
    for asked, j, answer in in_order(call, calls(), n_threads=n_threads):
        if isinstance(asked, Misfit):
            yield asked
            continue
        answers.append(answer)
        if j == n_samples - 1:
            yield _answered(asked, answers, with_confidence)
            answers = []


def plan_samples(
    questions: Iterable[Question | Misfit],
    client: ChatClient,
    *,
    n_samples: int = 10,
    system: str | None = None,
    with_confidence: bool = False,
) -> PlannedCalls:
    """What `sample_answers` would cost, without a call."""
    instruction = (
        system if system is not None else prompt("answer_confidence" if with_confidence else "answer")
    )
    planned = PlannedCalls()
    for asked in planned.questions_of(map(_askable, questions)):
        for j in range(n_samples):
            planned.add(client, _messages(instruction, asked), subject=asked.id, index=j)
    return planned


def _askable(each: Question | Misfit) -> Question | Misfit:
    if isinstance(each, Misfit):
        return each
    if not each.question:
        return Misfit(each.id, 0, "question is missing: there is nothing to ask")
    if each.answers is not None or each.assignments is not None:
        return Misfit(each.id, 0, "it has answers or assignments already, which samples would replace")
    return each


def _messages(instruction: str, asked: Question) -> Messages:
    question = {"role": "user", "content": asked.question or ""}
    return [{"role": "system", "content": instruction}, question] if instruction else [question]


def _answered(asked: Question, answers: list[str | CallError], with_confidence: bool) -> Question | Misfit:
    failed = [answer for answer in answers if isinstance(answer, CallError)]
    if failed:
        return Misfit(asked.id, 0, f"{len(failed)} of {len(answers)} samples: {failed[0]}", "call")
    texts = [answer for answer in answers if isinstance(answer, str)]
    if not with_confidence:
        return replace(asked, answers=tuple(texts))
    both = [_parted(text) for text in texts]
    return replace(asked, answers=tuple(a for a, _ in both), verbalized=tuple(c for _, c in both))


def _parted(text: str) -> tuple[str, float | None]:
    """Answer and confidence of a reply in JSON; all of it and None if it is not as asked.

    >>> _parted('{"answer": "Paris", "confidence": 90}'), _parted("Paris, 90%")
    (('Paris', 0.9), ('Paris, 90%', None))
    """
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    if not isinstance(found, dict) or not isinstance(found.get("answer"), str):
        return text, None
    answer = found["answer"].encode("utf-8", "replace").decode()
    percent = found.get("confidence")
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        return answer, None
    return answer, percent / 100
