"""A transformer and its pictures, on which the conformance kit tests methods that need attention."""

from __future__ import annotations

from heatproof.types import Batch, Model


def transformer_stage() -> tuple[Model, Batch]:
    """The embedded vision transformer and four pictures with their scenes."""
    from heatproof import models
    from heatproof.data.two_factor.dataset import TwoFactor

    model = models.load("embedded:scene_vit")
    batch = TwoFactor(count=4).batch(range(4))
    return model, batch.aimed(batch.labels[model.task])
