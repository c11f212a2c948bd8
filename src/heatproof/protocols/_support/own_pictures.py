"""Pictures of the user's own, which the embedded models say nothing about."""

from __future__ import annotations

from heatproof.errors import BadInput


def check_model_named(models: object, datasets: object) -> None:
    """Raises `BadInput` if pictures are given without a model."""
    if models is None and datasets is not None:
        raise BadInput("pictures of your own need a model: name one, e.g. --model efficientnet-lite0")
