"""Float noise in a method's maps: how far they move when the same network sums its numbers in another order.

Two back-ends give the same logits up to the last bits. A method that follows the largest of many near-equal values,
or walks along the signs of small gradients, may return a visibly different map.
"""

from __future__ import annotations

import copy
import dataclasses

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.engine import Choice, Engine
from heatproof.types import AnyMethod, Attribution, Batch, Maps, Model

ULPS = 2.0**-22  # two steps of float32: what a back-end adds in a layer or two
OTHER = Choice("folded", "channels_last", 5)  # the choice furthest from the reference engine


def float_noise(model: Model, batch: Batch, method: AnyMethod) -> float:
    """The largest change of a map under another engine or other last bits of the input.

    Relative to the map's length; the maximum over the pictures.
    """
    with engine.use(Engine(always=engine.REFERENCE)):
        maps, moved = _maps(model, batch, method), _maps(disturbed(model), batch, method)
    with engine.use(Engine(always=OTHER)):
        again = _maps(model, batch, method)
    return max(relative_difference(maps, other) for other in (moved, again))


def in_double(model: Model) -> Model:
    """The same network in double precision: its answers are those that float32 rounds."""
    return dataclasses.replace(model, network=copy.deepcopy(model.network).double())


def rounding(exact: Model, attribution: Attribution, row: int) -> float:
    """How far rounding in the network moves one of the maps: its difference from that in double precision.

    Pictures stay as they are: a method that draws noise of their type has the same draws.
    """
    one = attribution.batch.select([row])
    with engine.use(Engine(always=engine.REFERENCE)):
        again = attribute(exact, one, attribution.method).maps  # type: ignore[arg-type]
    return relative_difference(attribution.maps[[row]], again)


def relative_difference(maps: Maps, other: Maps) -> float:
    """The distance of two maps over the length of the longer; the maximum over the pictures."""
    first, second = maps.flatten(1).double(), other.flatten(1).double()
    length = first.norm(dim=1).maximum(second.norm(dim=1))
    apart = (first - second).norm(dim=1) / length.where(length > 0, 1.0)
    return float(apart.max()) if len(apart) else 0.0


def disturbed(model: Model) -> Model:
    """The same network under preprocessing that differs in the last bits: this also reaches what no engine choice
    changes.
    """
    return dataclasses.replace(
        model, mean=tuple(mean + ULPS / 4 for mean in model.mean), std=tuple(std * (1 + ULPS) for std in model.std)
    )


def _maps(model: Model, batch: Batch, method: AnyMethod) -> Maps:
    fresh = batch.select(range(len(batch)))  # a new object, since answers are cached per batch
    return attribute(model, fresh, method).maps
