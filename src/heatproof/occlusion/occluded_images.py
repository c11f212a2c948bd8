"""Occluded pictures as tensors, for audits and displays of what the model sees."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.occlusion.occlusion import Answerer, BatchImputer, Occlusion, impute, named
from heatproof.spec import recipe
from heatproof.types import Batch, Images, keyed_seed


def shown(batch: Batch, keep: Tensor, occlusion: Occlusion, draw: int = 0) -> Images:
    """(B, K, H, W) bool keep-masks -> (B, K, C, H, W): the pictures that a game shows the model in one draw."""
    imputer = occlusion.imputer
    if isinstance(imputer, Answerer):
        raise NotApplicable(
            f"{recipe.label(imputer)} hides evidence inside the network: there are no pictures to look at"
        )
    count, levels = keep.shape[:2]
    rows = [row for row in range(count) for _ in range(levels)]
    many = batch.select(rows)
    if isinstance(imputer, BatchImputer):
        imputer = imputer.for_batch(many)
    name = named(occlusion.imputer)
    seeds = [keyed_seed(batch.seed, identity, name, draw) for identity in many.ids]
    filled = impute(imputer, many.images, keep.flatten(0, 1), seeds if occlusion.random else None)
    pictures: Tensor = filled.unflatten(0, (count, levels))
    return pictures


class Samples(NamedTuple):
    """The pictures an evaluation shows the model on the way to its score."""

    images: Tensor  # (B, K, C, H, W)
    removed: Tensor  # (B, K): the changed share of the picture
