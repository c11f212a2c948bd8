"""`explain`: draws heatmaps without judging them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._completion import names_of
from heatproof.cli._help import examples
from heatproof.cli._terminal import (
    COMPLETE,
    FAILED_ROWS,
    Device,
    Quiet,
    echo,
    line,
    progress_bar,
    readable_errors,
    usage,
)

EXAMPLES = examples(
    "explain --model efficientnet-lite0 dog.jpg cat.jpg",
    "explain --model torchvision:resnet50 photos/ --methods lrp,grad_cam --target tabby --out tabby.pdf",
)


def explain(
    images: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.")],
    model: Annotated[list[str], typer.Option(help="The model to explain; one.")],
    methods: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=names_of("method"),
            help="a,b,c(field=value),file.py:Name, or all (that apply); repeatable [the line-up of `heatproof judge`].",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The grid, .png, .pdf or .svg, with raw maps beside it as .npz; or a folder."),
    ] = Path("maps.png"),
    target: Annotated[
        str, typer.Option(help="What is explained: predicted, or a class, label or value (index, name).")
    ] = "predicted",
    output: Annotated[
        str | None,
        typer.Option(help="What the model's numbers mean: softmax, sigmoid or regression, as it shows if left out."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    value_range: Annotated[
        str | None,
        typer.Option(help="Black and white in pictures of more than 8 bits: 0,4095; in physical units: -160,240."),
    ] = None,
    device: Device = "auto",
    trust_pickle: Annotated[bool, typer.Option(help="Load weights that are arbitrary pickles.")] = False,
    quiet: Quiet = False,
) -> None:
    """Draw a labelled grid of heatmaps: a row per picture, a column per method."""
    from heatproof import applies, contact_sheet, engine, models
    from heatproof.data._support.files import as_levels
    from heatproof.protocols._support.line_up import line_up
    from heatproof.spec.parse import components

    if len(model) > 1:
        usage(
            f"explain takes one --model, got {len(model)}: {', '.join(model)}; run it once for each, with its own --out"
        )
    with readable_errors(), progress_bar(quiet) as watch:
        contact_sheet.places(out)  # before anything is computed
        levels = as_levels(value_range)
        every = methods == ["all"]
        chosen = components("method", ",".join(methods)) if methods and not every else line_up()
        loaded = models.load(model[0], trust_pickle=trust_pickle).to(engine.pick(device))
        if output is not None:
            loaded = dataclasses.replace(loaded, output=output, probabilities=None)
        others: dict[str, str] = {}
        if every:
            chosen, others = applies.contestants_for(loaded)
        sheet = contact_sheet.explain(loaded, images, chosen, target=target, seed=seed, levels=levels, watch=watch)
    for words in sheet.cautions:
        line(f"heatproof: warning: {words}", err=True)
    for name, reason in {**others, **sheet.missing}.items():
        echo(f"{name}: {reason}", err=True)
    if not sheet.maps:
        echo("heatproof: no method gave a map, so there is nothing to draw and nothing was written", err=True)
        raise typer.Exit(FAILED_ROWS)
    with readable_errors():
        written = contact_sheet.write(sheet, out)
    for path in written:
        echo(path)
    # A method of the line-up that does not apply to this network is no failure.
    failed = [name for name in sheet.missing if (methods and not every) or name not in sheet.inapplicable]
    raise typer.Exit(FAILED_ROWS if failed else COMPLETE)
