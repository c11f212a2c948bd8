"""`train`: make what is embedded again."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from heatproof.cli.terminal import readable_errors


class Trainable(StrEnum):
    """What can be trained."""

    embedded = "embedded"
    prior = "prior"


def train(
    what: Annotated[
        Trainable,
        typer.Argument(help="embedded: the small models that come with the package; prior: the diffusion model."),
    ],
    only: Annotated[Optional[list[str]], typer.Option(help="Only this model; may be repeated.")] = None,
    out: Annotated[Optional[Path], typer.Option("--out", "-o", help="Default: the installed package.")] = None,
) -> None:
    """Train the embedded models anew: minutes each on one core; the diffusion model takes over an hour."""
    from heatproof.models import training
    from heatproof.occlusion.diffusion import training as drawing

    with readable_errors():
        if what is Trainable.prior:
            drawing.train(folder=out or drawing.TRAINED, say=typer.echo)
        else:
            training.train_all(only or (), out or training.TRAINED, typer.echo)
