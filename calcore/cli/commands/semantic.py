"""`calcore semantic`: answers of a language model, sampled, sorted by meaning, graded, and scored."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcore.cli.commands.options import Force, Json, Output, Seed, Threads
from calcore.cli.commands.root import Commands, app
from calcore.cli.commands.shared import describe_files, progress_bar, text_width, write_json, write_text
from calcore.cli.process import DONE, FAILED, USAGE, complain, exit_codes

if TYPE_CHECKING:
    from calcore.semantic import ChatClient, GatheredSamples, Judge, Misfit, PlannedCalls, Question

semantic_app = Commands(
    rich_markup_mode=None,
    help="Answers of a language model: sample, cluster by meaning, grade, score.",
    epilog="Each step reads and writes files of questions, JSON lines or Parquet, and runs alone. Keys for "
    "endpoints come from the environment variable OPENAI_API_KEY.",
    no_args_is_help=True,
)
app.add_typer(semantic_app, name="semantic")

_SHOWN = 5
"""Questions that did not fit that are named on standard error; --json has all."""


class Kind(StrEnum):
    EXACT = "exact"
    EMBEDDINGS = "embeddings"
    LLM = "llm"


class Linkage(StrEnum):
    AVERAGE = "average"
    COMPLETE = "complete"
    SINGLE = "single"


class Ties(StrEnum):
    FIRST = "first"
    RANDOM = "random"


class Correctness(StrEnum):
    MODE = "mode"
    SPLIT = "split"


class Classes(StrEnum):
    MODE = "mode"
    ALL = "all"


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Questions, one a row: .jsonl, .ndjson, .parquet, .pq; globs, directories. Each id once.",
        show_default=False,
    ),
]
JudgeKind = Annotated[
    Kind,
    typer.Option(
        "--judge",
        help="exact: equal after normalisation; embeddings: close by a sentence-transformers model; llm: a "
        "language model is asked.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="For llm, its name at the endpoint; for embeddings, name or directory of the model.",
        show_default=False,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible endpoint; default: $OPENAI_BASE_URL, or OpenAI's.",
        show_default=False,
    ),
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", help="Longest reply.", min=1, show_default=False)
]
Concurrency = Annotated[int, typer.Option("--concurrency", help="Calls under way at a time.", min=1, max=256)]
Timeout = Annotated[
    float, typer.Option("--timeout", help="Seconds of silence after which a try has failed.", min=0.1)
]
Retries = Annotated[
    int, typer.Option("--retries", help="Further tries of a call that failed by chance.", min=0, max=20)
]
Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="FILE",
        help="Where replies are kept as they arrive. Default: the output with .cache behind it.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how many calls and tokens it would take, and call nothing.")
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a file with rows that do not fit; without it they are left out, counted and named.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        help="For embeddings: cosine similarity from which on answers are the same, default 0.8.",
        show_default=False,
    ),
]
Linked = Annotated[
    Linkage | None,
    typer.Option(
        "--linkage",
        help="For embeddings: similarity of two classes, default average.",
        show_default=False,
    ),
]
Repairs = Annotated[
    int,
    typer.Option("--repairs", help="For llm: replies that are sent back, for each question.", min=0, max=10),
]


@semantic_app.command()
@exit_codes
def sample(
    files: Files,
    output: Output,
    model: Annotated[str, typer.Option("--model", help="Its name at the endpoint.", show_default=False)],
    n_samples: Annotated[int, typer.Option("--samples", "-n", help="Answers to each question.", min=1)] = 10,
    base_url: BaseUrl = None,
    temperature: Annotated[float, typer.Option("--temperature", help="Of sampling.", min=0.0)] = 1.0,
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Of sampling.", min=0.0, max=1.0, show_default=False)
    ] = None,
    max_tokens: MaxTokens = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="Send a seed of its own with each call, made from this; endpoints may ignore it.",
            min=0,
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            metavar="FILE",
            help="Text of the instruction before each question, in place of the one that ships.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Ask for a confidence with each answer, as JSON.")
    ] = False,
    concurrency: Concurrency = 8,
    timeout: Timeout = 60.0,
    retries: Retries = 6,
    cache: Cache = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Ask a language model every question several times.

    Each answer is a call, and is kept as it arrives: the same command goes on where it was interrupted. A
    question with a failed call is left out and named, and the exit code is 1; with --force the same command
    tries these again.
    """
    from calcore.semantic import plan_samples, sample_answers

    job = _Job(
        "sampling",
        files,
        output,
        cache=cache,
        prompt=prompt,
        with_confidence=confidence,
        force=force,
        strict=strict,
        as_json=as_json,
    )
    options: dict[str, Any] = {"n_samples": n_samples, "with_confidence": confidence}
    options["system"] = None if prompt is None else _text_of(prompt)
    with ExitStack() as stack:
        client = _client(
            stack,
            model,
            base_url,
            dry_run,
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            seed=seed,
            timeout=timeout,
            max_retries=retries,
        )
        job.open_cache(stack, client, dry_run)
        if dry_run:
            return job.plan(lambda rows: plan_samples(rows, client, **options), client, max_tokens)
        return job.run(lambda rows: sample_answers(rows, client, n_threads=concurrency, **options), client)


@semantic_app.command()
@exit_codes
def cluster(
    files: Files,
    output: Output,
    judge: JudgeKind = Kind.EXACT,
    model: Model = None,
    threshold: Threshold = None,
    linkage: Linked = None,
    base_url: BaseUrl = None,
    max_tokens: MaxTokens = None,
    repairs: Repairs = 2,
    concurrency: Concurrency = 8,
    timeout: Timeout = 60.0,
    retries: Retries = 6,
    cache: Cache = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Sort the answers to each question into classes of one meaning.

    Classes that a file has already are replaced, and their grades dropped. A question whose answers a judge
    could not sort is left out and named, and the exit code is 1; with --force the same command asks again.
    """
    from calcore.semantic import Asked, cluster_answers, plan_clusters

    job = _Job("sorting", files, output, cache=cache, force=force, strict=strict, as_json=as_json)
    with ExitStack() as stack:
        client = None
        if judge is Kind.LLM:
            client = _client(
                stack,
                model,
                base_url,
                dry_run,
                temperature=0.0,
                max_tokens=max_tokens,
                timeout=timeout,
                max_retries=retries,
            )
        by = _judge(judge, client, model, threshold, linkage, repairs, dry_run=dry_run)
        job.open_cache(stack, client, dry_run)
        if isinstance(by, Asked) and dry_run:
            return job.plan(lambda rows: plan_clusters(rows, by), by.client, max_tokens)
        threads = concurrency if judge is Kind.LLM else 1
        return job.run(lambda rows: cluster_answers(rows, by, n_threads=threads), client, by)


@semantic_app.command()
@exit_codes
def grade(
    files: Files,
    output: Output,
    judge: JudgeKind = Kind.EXACT,
    classes: Annotated[
        Classes, typer.Option("--classes", help="Grade the most frequent class alone, or all of them.")
    ] = Classes.MODE,
    model: Model = None,
    threshold: Threshold = None,
    base_url: BaseUrl = None,
    max_tokens: MaxTokens = None,
    repairs: Repairs = 2,
    concurrency: Concurrency = 8,
    timeout: Timeout = 60.0,
    retries: Retries = 6,
    cache: Cache = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
    force: Force = False,
) -> int:
    """Grade classes of answers by the reference answer of each question (gold_answer).

    Where a judge cannot say, the grade is missing and counted; with --force the same command asks again.
    Grades that a file has already are replaced.
    """
    from calcore.semantic import Asked, grade_answers, plan_grades

    job = _Job("grading", files, output, cache=cache, force=force, strict=strict, as_json=as_json)
    with ExitStack() as stack:
        client = None
        if judge is Kind.LLM:
            client = _client(
                stack,
                model,
                base_url,
                dry_run,
                temperature=0.0,
                max_tokens=max_tokens,
                timeout=timeout,
                max_retries=retries,
            )
        by = _judge(judge, client, model, threshold, None, repairs, dry_run=dry_run)
        job.open_cache(stack, client, dry_run)
        if isinstance(by, Asked) and dry_run:
            return job.plan(lambda rows: plan_grades(rows, by, classes=classes.value), by.client, max_tokens)
        threads = concurrency if judge is Kind.LLM else 1
        return job.run(
            lambda rows: grade_answers(rows, by, classes=classes.value, n_threads=threads), client, by
        )


@semantic_app.command()
@exit_codes
def score(
    files: Files,
    versus: Annotated[
        str | None,
        typer.Option(
            "--versus",
            metavar="FILE",
            help="Compare with another model's answers to the same questions, or with what another judge "
            "made of the same answers.",
            show_default=False,
        ),
    ] = None,
    bins: Annotated[int, typer.Option("--bins", help="Bins of equal width.", min=1)] = 10,
    splits: Annotated[int, typer.Option("--splits", help="Random splits for Sem2.", min=1)] = 10,
    ties: Annotated[
        Ties,
        typer.Option(
            "--ties",
            help="Which of equally frequent classes is chosen. first: the published mode, or the lowest "
            "number; random: any of them, by the seed.",
        ),
    ] = Ties.FIRST,
    correctness: Annotated[
        Correctness,
        typer.Option(
            "--correctness",
            help="Grade of the most frequent class; or of the one that each split chose, for which all "
            "classes have to be graded.",
        ),
    ] = Correctness.MODE,
    missing: Annotated[
        str,
        typer.Option(
            "--missing-verbalized",
            metavar="NUMBER|drop",
            help="What an answer without a stated confidence counts as in the mean.",
        ),
    ] = "1.0",
    answers: Annotated[
        str | None,
        typer.Option(
            "--answers",
            metavar="N,N,...",
            help="Score the first so many answers of each question too, to see what fewer give.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[int, typer.Option("--resamples", help="Bootstrap resamples of questions.")] = 2000,
    delta: Annotated[
        float, typer.Option("--delta", help="Probability that an interval misses, each for itself.")
    ] = 0.05,
    strict: Strict = False,
    as_json: Json = False,
    threads: Threads = None,
    seed: Seed = 0,
) -> int:
    """Score how well confidence in free-form answers is calibrated.

    Prints Sem1-, Sem2- and, where confidences were stated, Ver-ECE with intervals and certificates, and how
    both differ by margin.
    """
    from calcore.files.paths import InputError, shown
    from calcore.semantic import agreement_of, compare_semantic, score_samples, sweep_answers

    try:
        kept: Any = "drop" if missing == "drop" else float(missing)
    except ValueError:
        raise InputError(f"--missing-verbalized must be a number or drop; got {shown(missing)}") from None
    try:
        numbers = [] if answers is None else [int(part) for part in answers.split(",")]
    except ValueError:
        raise InputError(
            f"--answers must be whole numbers with commas between; got {shown(answers or '')}"
        ) from None
    options: dict[str, Any] = {
        "n_bins": bins,
        "n_splits": splits,
        "seed": seed,
        "ties": ties.value,
        "correctness": correctness.value,
        "n_resamples": resamples,
        "delta": delta,
        "n_threads": threads,
    }
    of_each = [_questions_in(files)] + ([] if versus is None else [_questions_in([versus])])
    names = [describe_files(paths) for paths in of_each]
    given = [_gathered(paths, strict=strict) for paths in of_each]
    for name, each in zip(names, given, strict=True):
        if correctness is Correctness.SPLIT and each.samples.class_grades is None:
            raise InputError(
                f"{name}: --correctness split needs grades of all classes, which 'calcore semantic "
                "grade --classes all' makes"
            )
    with _in_words():
        found = [score_samples(each.samples, missing_verbalized=kept, **options) for each in given]
        swept = sweep_answers(given[0].samples, numbers, **options) if answers is not None else None
        compared = agreed = None
        if versus is not None:
            models = dict(
                zip(
                    _titles(files[0] if len(files) == 1 else names[0], versus),
                    (each.samples for each in given),
                    strict=True,
                )
            )
            compared = compare_semantic(models, **options)
            agreed = agreement_of(given[0], given[1])
    if as_json:
        payload = [
            each.to_dict() | {"files": paths} | _of_misfits(list(some.misfits))
            for paths, each, some in zip(of_each, found, given, strict=True)
        ]
        more: dict[str, Any] = {}
        if compared is not None:
            more["versus"] = payload[1]
            more["comparison"] = compared.to_dict()
            more["agreement"] = None if agreed is None else agreed.to_dict()
        if swept is not None:
            more["sweep"] = swept.to_dict()
        write_json(payload[0] | more)
        return DONE
    from calcore.report.semantic import (
        agreement_text,
        semantic_comparison_text,
        semantic_text,
        sweep_text,
    )

    width = text_width()
    parts = [
        semantic_text(each, data=name, explained=i + 1 == len(names), width=width)
        for i, (name, each) in enumerate(zip(names, found, strict=True))
    ]
    if swept is not None:
        parts.append(sweep_text(swept, width=width))
    if compared is not None:
        parts.append(semantic_comparison_text(compared, width=width))
    if agreed is not None:
        parts.append(agreement_text(agreed, width=width))
    write_text("\n\n".join(parts))
    return DONE


def _questions_in(patterns: list[str]) -> list[str]:
    """Files of questions that names, globs and directories stand for; of directories those alone."""
    from calcore.files.paths import InputError, expand, shown
    from calcore.semantic.files import SUFFIXES, is_parquet

    paths: list[str] = []
    for pattern in patterns:
        found = expand([pattern])
        if os.path.isdir(pattern):
            found = [path for path in found if path.lower().endswith(SUFFIXES)]
            if not found:
                raise InputError(f"{shown(pattern)}: no file in this directory ends in {', '.join(SUFFIXES)}")
        paths += found
    with _in_words():
        for path in paths:
            is_parquet(path)
    return expand(paths)


def _read(paths: list[str], progress: Any = None) -> Iterator[Question | Misfit]:
    """Rows of files; whatever is wrong with these is the user's fault, and the message names the file."""
    from calcore.semantic import read_questions

    with _in_words():
        yield from read_questions(paths, progress=progress)


def _gathered(paths: list[str], *, strict: bool) -> GatheredSamples:
    """What is to be scored of files; what does not fit is named on standard error."""
    from calcore.files.paths import InputError
    from calcore.semantic import gather_samples

    name = describe_files(paths)
    with progress_bar() as progress:
        try:
            given = gather_samples(_read(paths, progress))
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{name}: {error}") from None
    if given.misfits and strict:
        raise InputError(f"{name}: {_listed(list(given.misfits))}")
    if given.misfits:
        complain(f"warning: {name}: {_listed(list(given.misfits))}\nThey are left out.")
    if not given.samples.n_graded:
        raise InputError(f"{name}: no question is graded; 'calcore semantic grade' makes grades")
    return given


def _titles(file: str, versus: str) -> tuple[str, str]:
    """What to call two files: their names without what they have in common.

    >>> _titles("out/a.jsonl", "out/b.jsonl"), _titles("a/q.jsonl", "b/q.jsonl")
    (('a', 'b'), ('a/q.jsonl', 'b/q.jsonl'))
    """
    stems = [os.path.splitext(os.path.basename(path))[0] for path in (file, versus)]
    if stems[0] != stems[1]:
        return stems[0], stems[1]
    return (file, versus) if file != versus else (file, f"{versus} again")


class _NothingDone(Exception):
    """There is nothing to write."""


class _Job:
    """Rows of files through one step into another file, and what is said of it."""

    def __init__(
        self,
        verb: str,
        files: list[str],
        output: str,
        *,
        cache: str | None,
        prompt: str | None = None,
        with_confidence: bool = False,
        force: bool,
        strict: bool,
        as_json: bool,
    ) -> None:
        """Check all names against each other, before anything is opened."""
        from calcore.files.paths import spare
        from calcore.semantic.files import is_parquet

        self.verb, self.output, self.as_json = verb, output, as_json
        self.files = _questions_in(files)
        self.cache = f"{output}.cache" if cache is None else cache
        self.with_confidence, self.has_prompt = with_confidence, prompt is not None
        with _in_words():
            is_parquet(output)
        inputs = self.files if prompt is None else [*self.files, prompt]
        spare(output, inputs=inputs, force=force)
        _refuse_shared(self.cache, output, inputs)
        self.misfits: list[Misfit] = []
        self.counts = dict.fromkeys(_OF_ROWS, 0)
        self.first_empty = ""
        if strict or len(self.files) > 1:  # an id that is in two of them should not come to light when paid
            self.check(strict)

    def open_cache(self, stack: ExitStack, client: ChatClient | None, dry_run: bool) -> None:
        """Give a client its cache, last of all; for a dry run to look into, if it is there."""
        from calcore.semantic import ReplyCache

        is_there = os.path.exists(self.cache) and os.path.getsize(self.cache) > 0
        if client is None or (dry_run and not is_there):
            return
        with _in_words():
            client.cache = stack.enter_context(ReplyCache(self.cache, read_only=dry_run))

    def check(self, strict: bool) -> None:
        """Read all rows once; end here if one does not fit."""
        from calcore.files.paths import InputError
        from calcore.semantic import Misfit

        found = [row for row in _read(self.files) if isinstance(row, Misfit)]
        if found and strict:
            raise InputError(f"{describe_files(self.files)}: {_listed(found)}")

    def plan(
        self,
        step: Callable[[Iterable[Question | Misfit]], PlannedCalls],
        client: ChatClient,
        max_tokens: int | None,
    ) -> int:
        """Say what a step would cost."""
        with _in_words():
            planned = step(_read(self.files))
        self.misfits = planned.misfits
        self._complain()
        left = planned.calls - planned.cached
        if self.as_json:
            payload: dict[str, Any] = planned.to_dict() | {"calls_left": left, "model": client.model}
            payload["completion_tokens_at_most"] = None if max_tokens is None else left * max_tokens
            write_json(payload | {"files": self.files} | _of_misfits(self.misfits))
        else:
            replies = (
                f"replies of at most {left * max_tokens:,} tokens"
                if max_tokens is not None
                else "replies of any length (--max-tokens bounds them)"
            )
            write_text(
                f"{planned.questions:,} questions: {planned.calls:,} calls, of which {planned.cached:,} are "
                f"in the cache and {left:,} would be made,\nwith about {planned.prompt_tokens:,} tokens (one "
                f"for four bytes of text) and {replies}."
            )
        return DONE

    def run(
        self,
        step: Callable[[Iterator[Question | Misfit]], Iterator[Question | Misfit]],
        client: ChatClient | None,
        judge: Judge | None = None,
    ) -> int:
        """Write what a step makes of the rows, and say how much there is."""
        from calcore.files.paths import InputError, reason, shown
        from calcore.semantic import EndpointError, writing_questions
        from calcore.semantic.cache import CacheError

        is_written = True
        try:
            with (
                progress_bar(self.verb) as progress,
                _in_words(but=CacheError),
                writing_questions(self.output) as write,
                closing(self._kept(step(_read(self.files, progress)))) as made,
            ):
                for each in made:
                    write(each)
                    self._tally(each)
                if not self.counts["graded" if self.verb == "grading" else "questions"]:
                    raise _NothingDone
        except _NothingDone:
            is_written = False
        except (EndpointError, CacheError, OSError) as error:
            filename = getattr(error, "filename", None)
            where = f"{shown(filename)}: " if filename else ""
            kept = _what_is_kept(client, judge)
            self._warn(client)
            raise InputError("\n".join([f"{where}{reason(error)}", *kept])) from error
        except KeyboardInterrupt:
            for line in _what_is_kept(client, judge):
                complain(line)
            raise
        self._complain()
        self._warn(client)
        called = _called(client, judge)
        if self.as_json:
            output = self.output if is_written else None
            counts = dict.fromkeys((*_CALLS, *_OF_JUDGE), 0) | called
            write_json(
                {"output": output, "files": self.files, **self.counts, "counts": counts}
                | _of_misfits(self.misfits)
            )
        else:
            n = self.counts
            what = shown(self.output) if is_written else "not written"
            line = f"{what}: {n['questions']:,} questions, {n['answers']:,} answers"
            if self.verb == "grading":
                line += f"; {n['graded']:,} modes graded, {n['correct']:,} of them correct"
            write_text("\n".join([line, *_said_of_calls(called)]))
        has_failed = any(each.stage != "file" for each in self.misfits)
        if is_written:
            return FAILED if has_failed else DONE
        done = {"sampling": "sampled", "sorting": "sorted", "grading": "graded"}[self.verb]
        none = f"{describe_files(self.files)} holds no questions"
        why = f"no question was {done}" if self.misfits or self.counts["questions"] else none
        complain(f"{shown(self.output)} is not written: {why}")
        return FAILED if has_failed or self.counts["questions"] else USAGE

    def _tally(self, each: Question) -> None:
        counts = self.counts
        empty = sum(not answer.strip() for answer in each.answers or ())
        if empty and not counts["empty_answers"]:
            self.first_empty = each.id
        counts["questions"] += 1
        counts["answers"] += len(each.answers or ())
        counts["empty_answers"] += empty
        counts["graded"] += each.grade is not None
        counts["correct"] += each.grade == 1
        if self.with_confidence and isinstance(each.verbalized, tuple):
            counts["unread_confidences"] += each.verbalized.count(None)

    def _warn(self, client: ChatClient | None) -> None:
        """Name what was done, but may not be what was wanted."""
        from calcore.files.paths import shown

        called = {} if client is None else client.counts
        n = {name: f"{count:,}" for name, count in (called | self.counts).items()}
        warnings = []
        if called.get("cut_off"):
            bound = None if client is None else client.decoding.get("max_tokens")
            where = "by the endpoint" if bound is None else f"at --max-tokens {bound:,}"
            warnings.append(f"replies cut off {where}: {n['cut_off']}")
        if called.get("filtered"):
            warnings.append(
                f"replies filtered by the endpoint, parts or all of them left out: {n['filtered']}"
            )
        if called.get("without_text"):
            warnings.append(f"replies that were paid but hold no text: {n['without_text']}")
        if self.counts["empty_answers"]:
            warnings.append(
                f"{n['empty_answers']} of {n['answers']} answers are empty, the first of id "
                f"{shown(self.first_empty)}; they make a class like other answers"
            )
        unread = self.counts["unread_confidences"]
        if unread:
            remedy = ""
            if self.has_prompt and unread == self.counts["answers"]:
                remedy = '; the text of --prompt has to ask for {"answer": "...", "confidence": 0} alone'
            warnings.append(
                f"{n['unread_confidences']} of {n['answers']} stated confidences cannot be read and are "
                f"missing{remedy}"
            )
        for each in warnings:
            complain(f"warning: {each}")

    def _kept(self, rows: Iterator[Question | Misfit]) -> Generator[Question, None, None]:
        """Questions; what did not fit is put aside."""
        from calcore.semantic import Misfit

        for each in rows:
            if isinstance(each, Misfit):
                self.misfits.append(each)
            else:
                yield each

    def _complain(self) -> None:
        if self.misfits:
            complain(f"warning: {_listed(self.misfits)}\nThey are left out.")


def _refuse_shared(cache: str, output: str, inputs: list[str]) -> None:
    """Refuse a cache, or what SQLite keeps beside it, that is also the output or an input."""
    from calcore.files.paths import InputError, shown

    taken = dict.fromkeys(map(_identity, inputs), "an input") | {_identity(output): "the output"}
    for name in (cache, f"{cache}-wal", f"{cache}-shm"):
        if _identity(name) in taken:
            raise InputError(f"--cache {shown(cache)}: is also {taken[_identity(name)]}; name another file")


def _identity(path: str) -> object:
    """What two names of one file have in common, whether there is a file or not."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _of_misfits(misfits: list[Misfit]) -> dict[str, Any]:
    return {"n_misfits": len(misfits), "misfits": [each.to_dict() for each in misfits]}


def _listed(misfits: list[Misfit]) -> str:
    n = len(misfits)
    lines = [f"{n:,} {'question does' if n == 1 else 'questions do'} not fit:"]
    lines += [f"  {each}" for each in misfits[:_SHOWN]]
    return "\n".join(lines + ([f"  and {n - _SHOWN:,} more (--json names all)"] if n > _SHOWN else []))


def _said_of_calls(counts: dict[str, int]) -> list[str]:
    """What calls and repairs there were, as lines."""
    lines = []
    n = {name: f"{counts.get(name, 0):,}" for name in (*_CALLS, *_OF_JUDGE)}
    if "calls" in counts:
        lines.append(
            f"{n['calls']} calls and {n['cached']} replies from the cache, {n['retries']} retries, "
            f"{n['failed']} failed; {n['prompt_tokens']} tokens sent, {n['completion_tokens']} received"
        )
    if any(counts.get(name) for name in _OF_JUDGE):
        lines.append(
            f"Replies of the judge: {n['repairs']} sent back, {n['unfenced']} taken out of a code fence, "
            f"{n['unusable']} unusable to the last"
        )
    return lines


_OF_ROWS = ("questions", "answers", "empty_answers", "unread_confidences", "graded", "correct")
_CALLS = (
    "calls",
    "cached",
    "retries",
    "failed",
    "cut_off",
    "filtered",
    "without_text",
    "prompt_tokens",
    "completion_tokens",
)
_OF_JUDGE = ("repairs", "unfenced", "unusable")


def _called(client: ChatClient | None, judge: Judge | None) -> dict[str, int]:
    return ({} if client is None else dict(client.counts)) | dict(getattr(judge, "counts", {}))


def _what_is_kept(client: ChatClient | None, judge: Judge | None) -> list[str]:
    """Of a run that ended early: what was called, and what is kept of it."""
    from calcore.files.paths import shown
    from calcore.semantic.cache import CacheError

    lines = _said_of_calls(_called(client, judge))
    if client is not None and client.cache is not None:
        with suppress(CacheError):
            if kept := len(client.cache):
                replies = "1 reply is" if kept == 1 else f"{kept:,} replies are"
                lines.append(f"{replies} kept in {shown(client.cache.path)}; the same command goes on")
    return lines


def _client(
    stack: ExitStack, model: str | None, base_url: str | None, dry_run: bool, **options: Any
) -> ChatClient:
    """A client, ready for calls; for a dry run without."""
    from calcore.files.paths import InputError
    from calcore.semantic import ChatClient

    if model is None:
        raise InputError("--model is missing: the name of the model at the endpoint")
    with _in_words():
        client = ChatClient(model, base_url=base_url, say=complain, **options)
        return client if dry_run else stack.enter_context(client.open())


def _judge(
    kind: Kind,
    client: ChatClient | None,
    model: str | None,
    threshold: float | None,
    linkage: Linkage | None,
    repairs: int,
    *,
    dry_run: bool,
) -> Judge:
    from calcore.files.paths import InputError
    from calcore.semantic import Asked, Embeddings, Exact

    if kind is not Kind.EMBEDDINGS and (threshold is not None or linkage is not None):
        raise InputError("--threshold and --linkage are for --judge embeddings: leave them out")
    if client is not None:
        return Asked(client, max_repairs=repairs)
    if dry_run:
        raise InputError(f"--dry-run is for --judge llm: {kind.value} makes no calls")
    if kind is Kind.EXACT:
        if model is not None:
            raise InputError("--model is for --judge embeddings and llm: exact needs none")
        return Exact()
    if model is None:
        raise InputError("--model is missing: name or directory of a sentence-transformers model")
    options: dict[str, Any] = {} if threshold is None else {"threshold": threshold}
    if linkage is not None:
        options["linkage"] = linkage.value
    with _in_words():
        return Embeddings(model, **options)


_OPTIONS = {
    "base_url": "--base-url",
    "threshold(?= must)": "--threshold",
    "n_resamples": "--resamples",
    "delta(?= must)": "--delta",
    "n_bins": "--bins",
    "n_splits": "--splits",
    "n_answers(?= must)": "--answers",
    "missing_verbalized": "--missing-verbalized",
    "n_threads": "--threads",
    "seed(?= must)": "--seed",
    "models(?= must have questions in common)": "the files",
}
"""What the library calls options."""


@contextmanager
def _in_words(but: type[ValueError] | None = None) -> Iterator[None]:
    """Faults of what was given, in words of the command; those `but` as they are."""
    from calcore.files.paths import InputError

    try:
        yield
    except ValueError as error:
        if isinstance(error, InputError) or (but is not None and isinstance(error, but)):
            raise
        words = str(error)
        for name, option in _OPTIONS.items():
            words = re.sub(rf"\b{name}\b", option, words)
        raise InputError(words) from None


def _text_of(path: str) -> str:
    from calcore.files.paths import InputError, reason, shown

    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--prompt {shown(path)}: {reason(error)}") from error
