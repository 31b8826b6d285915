"""The one decorator of every compiled loop, and what happens where no cache can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile `function` on first call; keep the machine code on disk where a folder can be written.

    No fast-math: it would remove NaN checks and break compensated sums. ``error_model="numpy"`` lets
    division by zero give inf or nan as in NumPy, without a branch per division.

    Notes
    -----
    numba raises RuntimeError at decoration when neither the package's folder nor the user's cache folder
    can be written (read-only installation, no home). The loop is then compiled once per process.
    """
    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))
