"""`train`: trains the embedded models again."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._terminal import echo, readable_errors


class Trainable(StrEnum):
    """The trainable models."""

    embedded = "embedded"
    prior = "prior"
    bam = "bam"


def train(
    what: Annotated[
        Trainable,
        typer.Argument(help="embedded: the small models of the package; prior: the diffusion model; bam: a ResNet-50."),
    ],
    only: Annotated[list[str] | None, typer.Option(help="Only this model; may be repeated.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: the installed package.")] = None,
    data: Annotated[Path | None, typer.Option(help="bam: a folder of pictures by class, e.g. data/obj/train.")] = None,
    epochs: Annotated[int, typer.Option(help="bam: passes over the pictures.")] = 5,
    weights: Annotated[str, typer.Option(help="bam: what to start from, a file, a name, or random.")] = "DEFAULT",
    steps: Annotated[int | None, typer.Option(help="bam: stop after this many steps.")] = None,
) -> None:
    """Train the embedded models again: minutes each on one core; the diffusion model takes over an hour.

    bam fine-tunes a ResNet-50. Its cost is an estimate, passes times the measured time of a pass: 90 000 pictures and
    5 epochs are 450 000 passes; at 0.29 s each, measured on one CPU thread, 36 hours. The first steps are timed and the
    estimate for this machine is printed.
    """
    from heatproof.models import embedded_training
    from heatproof.occlusion.diffusion import training as drawing

    with readable_errors():
        if what is Trainable.bam:
            from heatproof.errors import BadInput
            from heatproof.models import bam_training

            if data is None or out is None:
                raise BadInput("train bam needs --data, a folder of pictures by class, and --out, a .safetensors file")
            recipe = bam_training.Recipe(epochs=epochs, steps=steps)
            echo(bam_training.train(data, out, recipe, weights, say=echo))
        elif what is Trainable.prior:
            drawing.train(folder=out or drawing.TRAINED, say=echo)
        else:
            embedded_training.train_all(only or (), out or embedded_training.TRAINED, echo)
