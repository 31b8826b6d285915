"""Instructions to models, one a file; each says what the reply has to look like."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["prompt"]


@cache
def prompt(name: str) -> str:
    """The instruction in ``NAME.txt``.

    >>> prompt("answer").splitlines()[0]
    'Answer the question that follows.'
    """
    return files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()
