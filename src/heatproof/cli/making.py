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


def train(
    what: Annotated[Trainable, typer.Argument(help="embedded: the small models that come with the package.")],
    only: Annotated[Optional[list[str]], typer.Option(help="Only this model; may be repeated.")] = None,
    out: Annotated[Optional[Path], typer.Option("--out", "-o", help="Default: the installed package.")] = None,
) -> None:
    """Train the embedded models anew: minutes each on one core."""
    from heatproof.models import training

    with readable_errors():
        training.train_all(only or (), out or training.TRAINED, typer.echo)
