"""`data build`: builds data sets from downloaded parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._terminal import echo, readable_errors

data = typer.Typer(help="Make data sets.", no_args_is_help=True, rich_markup_mode=None)
build = typer.Typer(help="Build a data set from downloaded parts.", no_args_is_help=True, rich_markup_mode=None)
data.add_typer(build, name="build")


@build.callback()
def _several() -> None:
    """Build a data set from downloaded parts."""


@build.command("bam")
def bam(
    coco: Annotated[tuple[Path, Path], typer.Option(help="instances_train2017.json and the folder train2017.")],
    miniplaces: Annotated[Path, typer.Option(help="MiniPlaces' images/train, or a folder per scene.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where data/obj, data/scene, … are written.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same pictures.")] = 0,
    legacy: Annotated[bool, typer.Option("--legacy", help="With the published build's defects.")] = False,
    picture_format: Annotated[str, typer.Option("--format", help="png or jpeg.")] = "png",
    size: Annotated[int, typer.Option(help="Pixels on a side.")] = 128,
    train: Annotated[int, typer.Option(help="Instances of each class to train on (up to 900).")] = 900,
    validation: Annotated[int, typer.Option(help="Instances of each class held out (up to 100).")] = 100,
    exclude: Annotated[str, typer.Option(help="File that lists scene pictures which already show an object.")] = "",
) -> None:
    """BAM from COCO annotations and MiniPlaces: objects on scenes, twins, masks, the k-sets and a manifest."""
    from heatproof.data.bam.build import Plan
    from heatproof.data.bam.build import build as make
    from heatproof.errors import BadInput

    with readable_errors():
        if picture_format not in ("png", "jpeg"):
            raise BadInput(f"--format must be png or jpeg, got {picture_format!r}")
        names = tuple(Path(exclude).read_text().split()) if exclude else ()
        plan = Plan(seed, train, validation, size, picture_format, legacy, names)  # type: ignore[arg-type]
        echo(make(*coco, miniplaces, out, plan, echo))
