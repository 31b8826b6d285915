"""`calcore curve`: the binned error over numbers of bins, as a table or a picture."""

from __future__ import annotations

import textwrap
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated, Any, Literal, cast

import typer

from calcore.cli.commands.options import Files, Force, Json, Label, PosLabel, Score, Threads
from calcore.cli.commands.root import app
from calcore.cli.commands.shared import describe_data, progress_bar, text_width, write_json, write_text
from calcore.cli.process import DONE, exit_codes


class Bins(StrEnum):
    UNIFORM = "uniform"
    QUANTILE = "quantile"


_PICTURES = (".svg", ".png", ".pdf")


@app.command()
@exit_codes
def curve(
    files: Files,
    label: Label = None,
    score: Score = None,
    strategy: Annotated[
        Bins, typer.Option("--strategy", help="Bins of equal width, or of about equally many rows.")
    ] = Bins.UNIFORM,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help=f"Picture to write: {', '.join(_PICTURES)}.",
            show_default=False,
        ),
    ] = None,
    pos_label: PosLabel = None,
    as_json: Json = False,
    force: Force = False,
    threads: Threads = None,
) -> int:
    """Print the expected calibration error over the number of bins.

    One number of bins says more about where their edges lie than about the model. Up to a million rows are
    sorted; more go through cells, and equally wide bins are then those that the cells allow.
    """
    from calcore import ece_curve
    from calcore.files.intake import take_in
    from calcore.files.paths import InputError, expand, open_native, replacing, shown, spare, suffix_of
    from calcore.report.curves import curve_text

    kind = None
    if plot is not None:
        suffix = suffix_of(plot, _PICTURES)
        if suffix is None:
            raise InputError(f"{shown(plot)}: unknown kind of picture; --plot writes {', '.join(_PICTURES)}")
        kind = cast(Literal["svg", "png", "pdf"], suffix[1:])
        if find_spec("matplotlib") is None:
            raise InputError("--plot needs matplotlib: pip install 'calcore-calibration[plot]'")
        spare(plot, inputs=expand(files), force=force)
    with progress_bar() as progress:
        given = take_in(
            files,
            label=label,
            score=score,
            pos_label=pos_label,
            n_threads=threads,
            command="calcore curve",
            progress=progress,
        )
    try:
        found = ece_curve(given.table, strategy=cast(Any, strategy.value))
    except ValueError as error:
        raise InputError(f"{error}; --strategy quantile takes any number of bins") from error
    if plot is not None and kind is not None:
        from calcore import figures

        content = figures.picture(lambda ax: found.plot(ax, label=given.score), 5.8, 4.0, kind)
        with replacing(plot) as part, open_native(part, "wb") as file:
            file.write(content)
    if as_json:
        about = {"label": given.label, "score": given.score}
        write_json(
            found.to_dict()
            | {"files": list(given.files), "columns": about, "population": given.population, "plot": plot}
        )
        return DONE
    width = text_width()
    paragraphs = [curve_text(found, data=describe_data(given, None), width=width)]
    if plot is not None:
        paragraphs.append(textwrap.fill(f"Picture: {shown(plot)}", width))
    write_text("\n\n".join(paragraphs))
    return DONE
