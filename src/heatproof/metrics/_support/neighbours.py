"""Neighbours of a picture: the same picture with a little noise, and the maps of it.

The noise is keyed by image and draw, so that all methods and all metrics of one setting use the same neighbours.
The explained class stays that of the original picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.reattribution import reattribute
from heatproof.metrics._support.shared_answers import classes
from heatproof.types import Attribution, Batch, Maps, Price

Law: TypeAlias = Literal["uniform", "gaussian", "brighter"]


class Neighbour(NamedTuple):
    """A noisy copy of each picture of a batch."""

    batch: Batch
    maps: Maps
    same_class: Tensor  # (B,) bool: the prediction is the same as without noise


@dataclass(frozen=True)
class Neighbourhood:
    """The distribution of neighbours.

    `uniform` noise lies in [-radius, radius], `gaussian` has the radius as its deviation, `brighter` lies in
    [0, radius]. The radius is in units of the pixel range, and noisy pictures are clipped to it.
    """

    radius: float = 0.02
    draws: int = 10
    law: Law = "uniform"

    def __post_init__(self) -> None:
        if not 0 < self.radius <= 1:
            raise BadInput(f"radius must be a share of the pixel range, above 0 and at most 1, got {self.radius}")
        if self.draws < 1:
            raise BadInput(f"draws must be at least 1, got {self.draws}")

    def batch(self, batch: Batch, draw: int) -> Batch:
        """One noisy copy of each picture."""
        shape = batch.images.shape[1:]
        made = [self._noise(shape, dice) for dice in batch.generators(f"neighbour {self.law} {draw}")]
        noise = torch.stack(made).to(batch.images) if made else torch.zeros_like(batch.images)
        return batch.showing((batch.images + self.radius * noise).clamp(0, 1))

    def _noise(self, shape: torch.Size, dice: torch.Generator) -> Tensor:
        if self.law == "gaussian":
            return torch.randn(shape, generator=dice)
        drawn = torch.rand(shape, generator=dice)
        return drawn if self.law == "brighter" else 2 * drawn - 1

    def of(self, attribution: Attribution) -> list[Neighbour]:
        """Every neighbour with its map, and whether the prediction is unchanged."""
        model, batch = attribution.model, attribution.batch
        named = classes(model, batch)
        found = []
        for draw in range(self.draws):
            near = self.batch(batch, draw)
            maps = reattribute(attribution, batch=near)
            found.append(Neighbour(near, maps, classes(model, near) == named))
        return found

    def cost(self) -> Price:
        """The predictions on the neighbours are shared by all methods."""
        return Price(shared=self.draws + 1, explanations=self.draws)


def length(values: Tensor) -> Tensor:
    """(B,) float64: the Euclidean length of each row, whatever its shape."""
    found: Tensor = torch.linalg.vector_norm(values.flatten(1).double(), dim=1)
    return found
