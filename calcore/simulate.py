"""Synthetic predictions whose true calibration error is known: for trying out, testing and timing.

A job is a shape, which turns scores into true probabilities, and a distribution of scores, Beta(a, b) with
uniform as Beta(1, 1). Rows are made in blocks of fixed size, each from its own seed: a job needs the memory
of one block, any block can be made alone, and the first rows of a longer job are those of a shorter one
with the same seed.

Each shape is a function of this module; its docstring gives the true error CE = E|S - eta(S)|.

Examples
--------
>>> labels, scores = rows(3, shape="calibrated", seed=7)
>>> labels.dtype, len(scores)
(dtype('uint8'), 3)
>>> true_error("square"), round(true_error("square", beta=(9, 1)), 6)
(0.16666666666666666, 0.081818)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCK_ROWS",
    "SHAPES",
    "blocks",
    "calibrated",
    "capped",
    "overconfident",
    "rows",
    "shifted",
    "square",
    "step",
    "true_error",
]

Floats = NDArray[np.float64]

BLOCK_ROWS = 1 << 16

# Mixed into every seed, so that a user's own default_rng(seed) never repeats our draws.
_STREAM = 0x51A17A7E


def calibrated(scores: Floats) -> Floats:
    """eta(s) = s. CE = 0.

    >>> calibrated(np.array([0.25]))
    array([0.25])
    """
    return scores


def overconfident(scores: Floats) -> Floats:
    """eta(s) = 1/2 + (s - 1/2)/2: half as far from 1/2 as it claims. CE = E|S - 1/2|/2; uniform scores: 1/8.

    >>> overconfident(np.array([0.0, 0.5, 1.0]))
    array([0.25, 0.5 , 0.75])
    """
    return 0.25 + 0.5 * scores


def square(scores: Floats) -> Floats:
    """eta(s) = s². CE = E[S(1 - S)]; uniform scores: 1/6.

    >>> square(np.array([0.5]))
    array([0.25])
    """
    return scores * scores


def step(scores: Floats) -> Floats:
    """eta(s) = 1 if s > 1/2 else 0: always right, never sure. CE = E min(S, 1 - S); uniform scores: 1/4.

    >>> step(np.array([0.4, 0.5, 0.6]))
    array([0., 0., 1.])
    """
    return (scores > 0.5).astype(np.float64)


def capped(scores: Floats) -> Floats:
    """eta(s) = min(s, 0.8): wrong only at the top. CE = E(S - 0.8)₊; uniform scores: 0.02.

    >>> capped(np.array([0.5, 0.9]))
    array([0.5, 0.8])
    """
    return np.minimum(scores, 0.8)


def shifted(scores: Floats) -> Floats:
    """eta(s) = min(s + 0.05, 1): a little too low. CE = E min(0.05, 1 - S); uniform scores: 0.04875.

    >>> shifted(np.array([0.5, 0.96]))
    array([0.55, 1.  ])
    """
    return np.minimum(scores + 0.05, 1.0)


SHAPES = {shape.__name__: shape for shape in (calibrated, overconfident, square, step, capped, shifted)}


def true_error(shape: str, *, beta: tuple[float, float] = (1.0, 1.0)) -> float:
    """True calibration error of a shape whose scores are Beta(a, b).

    Closed forms in the partial moments E[S; S <= c], regularised incomplete beta functions.

    Raises
    ------
    ValueError
        Unknown shape; a or b not positive.

    Examples
    --------
    >>> [round(true_error(shape), 5) for shape in SHAPES]
    [0.0, 0.125, 0.16667, 0.25, 0.02, 0.04875]
    """
    a, b = _check(shape, beta)
    from scipy.special import betainc

    mean = a / (a + b)

    def below(c: float) -> tuple[float, float]:  # P(S <= c), E[S; S <= c]
        return float(betainc(a, b, c)), mean * float(betainc(a + 1.0, b, c))

    if shape == "calibrated":
        return 0.0
    if shape == "square":
        return mean * b / (a + b + 1.0)
    if shape == "capped":
        mass, part = below(0.8)
        return max(0.0, (mean - part) - 0.8 * (1.0 - mass))  # the difference of two equal tails may be -1e-18
    if shape == "shifted":
        mass, part = below(0.95)
        return 0.05 * mass + (1.0 - mass) - (mean - part)
    mass, part = below(0.5)
    if shape == "step":
        return part + (1.0 - mass) - (mean - part)
    return 0.5 * ((0.5 * mass - part) + (mean - part) - 0.5 * (1.0 - mass))


def blocks(
    n_rows: int, *, shape: str = "calibrated", beta: tuple[float, float] = (1.0, 1.0), seed: int = 0
) -> Iterator[tuple[NDArray[np.uint8], Floats]]:
    """Labels and scores of `n_rows` independent rows, `BLOCK_ROWS` at a time.

    Parameters
    ----------
    n_rows : int
        At least 1.
    shape : str
        A key of `SHAPES`.
    beta : (float, float)
        Scores are Beta(a, b); (1, 1) is uniform. (0.5, 49.5) has mean .01, (0.2, 199.8) mean .001, (9, 1)
        looks like confidences.
    seed : int
        Same seed, same rows.

    Yields
    ------
    labels : ndarray of uint8
    scores : ndarray of float64

    Raises
    ------
    ValueError
        Unknown shape; a, b or n_rows not positive; negative seed.
    """
    a, b = _check(shape, beta)
    if n_rows < 1:
        raise ValueError(f"n_rows must be at least 1; got {n_rows}")
    if seed < 0:
        raise ValueError(f"seed must be at least 0; got {seed}")
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        rng = np.random.default_rng(np.random.SeedSequence([seed, _STREAM, number]))
        scores = rng.random(BLOCK_ROWS) if a == b == 1.0 else rng.beta(a, b, BLOCK_ROWS)
        labels = (rng.random(BLOCK_ROWS) < SHAPES[shape](scores)).astype(np.uint8)
        keep = min(BLOCK_ROWS, n_rows - start)
        yield labels[:keep], scores[:keep]


def rows(
    n_rows: int, *, shape: str = "calibrated", beta: tuple[float, float] = (1.0, 1.0), seed: int = 0
) -> tuple[NDArray[np.uint8], Floats]:
    """All labels and scores of `blocks` at once: ``certify(*rows(100_000))``."""
    parts = list(blocks(n_rows, shape=shape, beta=beta, seed=seed))
    return np.concatenate([y for y, _ in parts]), np.concatenate([s for _, s in parts])


def _check(shape: str, beta: tuple[float, float]) -> tuple[float, float]:
    if shape not in SHAPES:
        raise ValueError(f"shape must be one of {', '.join(SHAPES)}; got {shape!r}")
    a, b = float(beta[0]), float(beta[1])
    if not (0.0 < a < np.inf and 0.0 < b < np.inf):
        raise ValueError(f"beta must be two positive numbers; got ({beta[0]}, {beta[1]})")
    return a, b
