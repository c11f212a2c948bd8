"""`figure`: a figure of a run for a paper."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._help import examples
from heatproof.cli._terminal import echo, readable_errors, usage, warn_of_state

EXAMPLES = examples(
    "figure runs/latest ranking --out ranking.pdf",
    "figure runs/latest curves --metric srg --methods lrp,grad_cam,random --out srg.svg",
)


class Kind(StrEnum):
    """What a figure shows."""

    ranking = "ranking"
    curves = "curves"
    matrix = "matrix"
    heatmaps = "heatmaps"


def figure(
    directory: Annotated[Path, typer.Argument(help="A directory that a run wrote.")],
    kind: Annotated[
        Kind,
        typer.Argument(
            help="ranking: means with intervals; curves: as pixels go; matrix: methods × metrics; heatmaps: pictures "
            "× methods."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .pdf, .svg, .png or .eps [KIND.pdf].", show_default=False)
    ] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Only this metric; may be repeated [the main ones].")] = None,
    methods: Annotated[str, typer.Option(help="Only these, in this order: a,b,c [all].")] = "",
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    pictures: Annotated[int, typer.Option(help="Of heatmaps: rows.", min=1)] = 4,
    correct_only: Annotated[
        bool, typer.Option("--correct-only", help="Only pictures that the model classifies correctly.")
    ] = False,
) -> None:
    """Draw a figure for a paper: as wide as a column or a page, as vectors, in colours that every eye tells apart."""
    from heatproof.results import Results
    from heatproof.results.plots import FORMATS, written
    from heatproof.spec.parse import words
    from heatproof.storage.atomic_file import write_atomically

    place = out or Path(f"{kind.value}.pdf")
    if (form := place.suffix.lower().removeprefix(".")) not in FORMATS:
        usage(f"a figure is written as .{', .'.join(FORMATS)}, got --out {place.name!r}: take {place.stem}.pdf")
    if kind is Kind.heatmaps and metric:
        usage("heatmaps belong to no metric: leave --metric out")
    with readable_errors():
        results = Results.load(directory)
        warn_of_state(results)
        results = results.correct_only() if correct_only else results
        where = {"methods": words(methods), "model": model, "dataset": dataset}
        if kind is Kind.heatmaps:
            drawn = results.plot.heatmaps(pictures=pictures, **where)  # type: ignore[arg-type]
        else:
            drawn = getattr(results.plot, kind.value)(*(metric or ()), **where)
        write_atomically(place, written(drawn, form))
    echo(place)
