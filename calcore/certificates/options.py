"""What functions that certify several things hand on to `certify`."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import numpy as np

from calcore import _validate


class Options(TypedDict, total=False):
    """Keyword arguments of `certify`, beside `delta`, `rng`, `groups` and `pos_label`; see there."""

    side: Literal["both", "upper", "lower"]
    method: Any
    variation: float | None
    lipschitz: float | None
    perturbed: float | None
    n_folds: int


def known(options: Options, function: str) -> None:
    """Refuse what `Options` does not have, such as a `pos_label` that would be passed on to other labels."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def one_seed(rng: Any) -> int | np.random.SeedSequence:
    """What gives every certificate of a set the same draws, those of `certify` with `rng`.

    A number is its own seed. A Generator is advanced once, and its next numbers are the seed.
    """
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**32, 4, dtype=np.uint32).tolist())
    _validate.generator(rng)  # refuses what is no seed
    return 0 if rng is None else rng
