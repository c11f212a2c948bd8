"""`explain`: look at heatmaps, without judging them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli.terminal import COMPLETE, FAILED_ROWS, Device, Quiet, progress_bar, readable_errors


def explain(
    images: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.")],
    model: Annotated[str, typer.Option(help="Who is explained.")],
    methods: Annotated[str, typer.Option(help="a,b,c(field=value),file.py:Name")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The grid of overlays, a .png; raw maps go beside it as .npz.")
    ] = Path("maps.png"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    device: Device = "auto",
    trust_pickle: Annotated[bool, typer.Option(help="Load weights that are arbitrary pickles.")] = False,
    quiet: Quiet = False,
) -> None:
    """Draw a labelled grid of heatmaps: a row per picture, a column per method."""
    from heatproof import contact_sheet, models
    from heatproof.models import engine
    from heatproof.parsing import components

    with readable_errors(), progress_bar(quiet) as watch:
        loaded = models.load(model, trust_pickle=trust_pickle).to(engine.pick(device))
        sheet = contact_sheet.explain(loaded, images, components("method", methods), seed=seed, watch=watch)
        written = contact_sheet.write(sheet, out)
    for name, reason in sheet.missing.items():
        typer.echo(f"{name}: {reason}", err=True)
    for path in written:
        typer.echo(path)
    raise typer.Exit(FAILED_ROWS if sheet.missing else COMPLETE)
