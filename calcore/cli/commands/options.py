"""Options that several commands have: their types with names and help, and what the library calls them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class Side(StrEnum):
    BOTH = "both"
    UPPER = "upper"
    LOWER = "lower"


class Grid(StrEnum):
    AUTO = "auto"
    LINEAR = "linear"
    SQRT = "sqrt"
    LOGIT = "logit"


_FOLDED = ("tv", "nw-folds")

_MAX_CELLS = 1 << 24
"""A cell takes 64 bytes for each thread: more would be 1 GiB for one."""

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Parquet, Arrow/Feather, CSV (.gz), NPY, NPZ, tables of 'calcore table'; globs, directories.",
        show_default=False,
    ),
]
Rows = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Parquet, Arrow/Feather, CSV (.gz), NPY, NPZ; globs, directories.",
        show_default=False,
    ),
]
Tables = Annotated[
    list[str], typer.Argument(metavar="TABLE", help="Made by 'calcore table build'.", show_default=False)
]
Label = Annotated[str | None, typer.Option("--label", help="Column of the labels.", show_default=False)]
Score = Annotated[str | None, typer.Option("--score", help="Column of the scores.", show_default=False)]
PosLabel = Annotated[
    str | None,
    typer.Option(
        "--pos-label",
        help="Label that counts as positive, if labels are not 0/1, -1/+1 or bool.",
        show_default=False,
    ),
]
Cells = Annotated[
    int | None,
    typer.Option(
        "--cells", help="Number of cells, default 100800.", min=1, max=_MAX_CELLS, show_default=False
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads to use.", min=1, show_default=False)]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="Name of the bound: auto, plugin, inversion, polynomials, tv, nw, nw-folds or buckets. auto "
        "is the best of the first three that suit. tv, nw and nw-folds hold all rows in memory; nw, "
        "nw-folds and buckets need --lipschitz or --perturbed, polynomials --perturbed.",
    ),
]
Variation = Annotated[
    float | None,
    typer.Option(
        "--variation",
        help="Assume that the true rate, as a function of the score, has at most this total variation. "
        "1 covers every monotone one, and is assumed if nothing else is.",
        show_default=False,
    ),
]
Lipschitz = Annotated[
    float | None,
    typer.Option(
        "--lipschitz", help="Assume that the true rate has this Lipschitz constant.", show_default=False
    ),
]
Perturbed = Annotated[
    float | None,
    typer.Option(
        "--perturbed",
        help="The scores were perturbed with the sech law of this width, and will be in use too.",
        show_default=False,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="Column of what rows belong to (patient, day, user): one random row of each is kept. "
        "Holds all rows in memory.",
        show_default=False,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--n-folds", help="Folds of the methods tv and nw-folds, default 5.", min=2, show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of random splits and draws.", min=0)]
Bins = Annotated[
    int,
    typer.Option(
        "--bins", help="Say what was predicted and observed in so many bins of rows, also in JSON.", min=0
    ),
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there already.")]
Grids = Annotated[
    Grid,
    typer.Option(
        "--grid",
        help="Cells of scores: sqrt for rare events, logit for scores near 0 and 1. "
        "auto: up to a million rows are sorted; more go through the cells that suit the first million.",
    ),
]


def certify_options(
    delta: float,
    method: str,
    variation: float | None,
    lipschitz: float | None,
    perturbed: float | None,
    n_folds: int | None,
    seed: int,
) -> dict[str, Any]:
    """Arguments of `certify`, and of what hands them on to it."""
    from calcore.files.paths import InputError

    options: dict[str, Any] = {"delta": delta, "method": method, "variation": variation}
    options |= {"lipschitz": lipschitz, "perturbed": perturbed, "rng": seed}
    if n_folds is not None:
        if method not in _FOLDED:
            raise InputError(f"--n-folds is for --method {' and '.join(_FOLDED)}: leave it out")
        options["n_folds"] = n_folds
    return options


def grid_name(grid: Grid) -> str | None:
    """The grid as the library names it; None to let it choose."""
    return None if grid is Grid.AUTO else str(grid.value)
