"""Probability that was given to what happened, for the log loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calcore.kernels._jit import jit


@jit
def likelihoods(
    labels: NDArray[np.uint8],
    scores: NDArray[np.float64],
    given: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> None:
    """Write s where the label is 1, else 1 - s rounded; and what ln(1 - s) is above the logarithm of that.

    With t the rounded 1 - s, r = (1 - t) - s is exact, and ln(1 - s) = ln t + r / t up to (r / t)^2 < 2^-106.
    The logarithm is left to NumPy, whose loop takes several numbers at once.
    """
    for i in range(scores.size):
        s = scores[i]
        t = 1.0 - s
        r = (1.0 - t) - s
        positive = labels[i] != 0
        given[i] = s if positive else t
        rest[i] = 0.0 if positive or r == 0.0 else r / t
