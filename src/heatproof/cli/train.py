"""`train`: trains the embedded models again, or a diffusion model of a user's own pictures."""

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
    images: Annotated[Path | None, typer.Option(help="prior: a folder of pictures to learn from.")] = None,
    size: Annotated[int, typer.Option(help="prior, with --images: side of the pictures it draws.")] = 64,
    minutes: Annotated[float, typer.Option(help="prior, with --images: of CPU time, after which it ends.")] = 80,
    device: Annotated[str, typer.Option(help="prior, with --images: auto, cpu, cuda or mps.")] = "auto",
    data: Annotated[Path | None, typer.Option(help="bam: a folder of pictures by class, e.g. data/obj/train.")] = None,
    epochs: Annotated[int, typer.Option(help="bam: passes over the pictures.")] = 5,
    weights: Annotated[str, typer.Option(help="bam: what to start from, a file, a name, or random.")] = "DEFAULT",
    steps: Annotated[int | None, typer.Option(help="bam, prior: stop after this many steps.")] = None,
) -> None:
    """Train the embedded models again: minutes each on one core; the diffusion model takes over an hour.

    prior --images FOLDER --out FOLDER learns the pictures of a folder instead, for in_distribution(prior=trained:OUT)
    on pictures of any size; the same command goes on where it was stopped.

    bam fine-tunes a ResNet-50. Its cost is an estimate, passes times the measured time of a pass: 90 000 pictures and
    5 epochs are 450 000 passes; at 0.29 s each, measured on one CPU thread, 36 hours. The first steps are timed and the
    estimate for this machine is printed.
    """
    with readable_errors():
        if what is Trainable.bam:
            from heatproof.errors import BadInput
            from heatproof.models import bam_training

            if data is None or out is None:
                raise BadInput("train bam needs --data, a folder of pictures by class, and --out, a .safetensors file")
            recipe = bam_training.Recipe(epochs=epochs, steps=steps)
            echo(bam_training.train(data, out, recipe, weights, say=echo))
        elif what is Trainable.prior and images is not None:
            _own_prior(images, out, size, minutes, steps, device)
        elif what is Trainable.prior:
            from heatproof.occlusion.diffusion import training as drawing

            drawing.train(folder=out or drawing.TRAINED, say=echo)
        else:
            from heatproof.models import embedded_training

            embedded_training.train_all(only or (), out or embedded_training.TRAINED, echo)


def _own_prior(images: Path, out: Path | None, size: int, minutes: float, steps: int | None, device: str) -> None:
    """Weights, recipe, and a page with the loss curve and samples."""
    from heatproof.errors import BadInput
    from heatproof.occlusion.diffusion import own_prior
    from heatproof.occlusion.diffusion.training import Plan
    from heatproof.report.prior_page import prior_page

    if out is None:
        raise BadInput("train prior --images FOLDER needs --out, a folder for the prior")
    plan = Plan(size=size, minutes=minutes, steps=steps or Plan.steps)
    record = own_prior.train_on(images, out, plan, device, echo)
    losses = [(int(step), float(loss)) for step, loss in record["loss_curve"]]
    samples = own_prior.png(own_prior.rows(out))
    page = prior_page(images.name, record["steps_done"], record["minutes"], losses, samples)
    (out / "prior.html").write_text(page, encoding="utf-8")
    echo(f"{out / 'prior.html'}\nUse it with in_distribution(prior=trained:{out})")
