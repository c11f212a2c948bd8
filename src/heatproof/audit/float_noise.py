"""Float noise in a method's maps, measured: how far they move when the same network adds its numbers up otherwise.

Two back-ends give the same logits but for the last bits. A method that follows the largest of many near-equal values,
or walks along the signs of small gradients, may answer with another map for that.
"""

from __future__ import annotations

import dataclasses

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.engine import Choice, Engine
from heatproof.types import AnyMethod, Batch, Maps, Model

ULPS = 2.0**-22  # two steps of float32: what a back-end adds in a layer or two
OTHER = Choice("folded", "channels_last", 5)  # as unlike the reference engine as a machine may choose


def float_noise(model: Model, batch: Batch, method: AnyMethod) -> float:
    """How far another engine or other last bits of the input move a map from the reference engine's, at most.

    Relative to the map's length, of the picture where it is largest.
    """
    with engine.use(Engine(always=engine.REFERENCE)):
        maps, moved = _maps(model, batch, method), _maps(disturbed(model), batch, method)
    with engine.use(Engine(always=OTHER)):
        again = _maps(model, batch, method)
    return max(relative_difference(maps, other) for other in (moved, again))


def relative_difference(one: Maps, other: Maps) -> float:
    """The distance of two maps over the length of the longer, of the picture where it is largest."""
    first, second = one.flatten(1).double(), other.flatten(1).double()
    length = first.norm(dim=1).maximum(second.norm(dim=1))
    apart = (first - second).norm(dim=1) / length.where(length > 0, 1.0)
    return float(apart.max()) if len(apart) else 0.0


def disturbed(model: Model) -> Model:
    """The same network under preprocessing that differs in the last bits: what no engine choice reaches, moves too."""
    return dataclasses.replace(
        model, mean=tuple(mean + ULPS / 4 for mean in model.mean), std=tuple(std * (1 + ULPS) for std in model.std)
    )


def _maps(model: Model, batch: Batch, method: AnyMethod) -> Maps:
    fresh = batch.select(range(len(batch)))  # answers are remembered by batch, and must not be found again
    return attribute(model, fresh, method).maps
