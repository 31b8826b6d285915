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


def one_seed(rng: Any) -> np.random.SeedSequence:
    """What gives every certificate of a set the same draws, from `rng` as `certify` takes it."""
    drawn = _validate.generator(0 if rng is None else rng).integers(0, 2**32, 4, dtype=np.uint32)
    return np.random.SeedSequence(drawn.tolist())
