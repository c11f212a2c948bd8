"""The k-sets as a data set: one object in every picture of the first k of ten scene classes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import torch

from heatproof.data._support.other_region import OTHER_REGION, lender
from heatproof.data.two_factor.compose import PAIRS, SCALE, VERSION, Sample, Samples, stack
from heatproof.data.two_factor.dataset import FIRST_INSTANCE, Shows, pixels
from heatproof.data.two_factor.k_sets import KEntry, k_set
from heatproof.data.two_factor.objects import OBJECTS
from heatproof.data.two_factor.scenes import SCENES
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.spec.recipe import spelt
from heatproof.types import Batch

# Dunes come first: the scene most easily confused with others, so an object that comes with it is worth learning.
CARRIERS: tuple[int, ...] = (3, 0, 1, 2, 4, 5, 6, 7, 8, 9)


@dataset("two_factor_k")
@dataclass(frozen=True)
class TwoFactorK:
    """Ten scenes, the first k with one object in every picture; the larger k, the less informative the object.

    `scenes="anchor"` shows only the first scene class, which has the object for every k. Twins are the scenes
    alone; regions are empty where there is no object.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance" (the sets X^k)
    """

    takes_turns: ClassVar[bool] = True  # of the classes: the first pictures show them about equally often

    k: int = 10
    split: Literal["train", "held_out", "test"] = "test"
    count: int = 100
    scenes: Literal["all", "anchor"] = "all"
    shows: Shows = "composite"
    object_class: int = 0
    size: int = 64
    scale: tuple[float, float] = SCALE
    seed: int = 0
    order: tuple[int, ...] = CARRIERS  # the order in which scene classes receive the object

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", tuple(self.scale))
        object.__setattr__(self, "order", tuple(self.order))
        most = 1000 if self.scenes == "anchor" else 1000 * len(SCENES)
        if not 1 <= self.count <= most:
            raise BadInput(f"count must be from 1 to {most} pictures, got {self.count}")
        self.entries()

    @property
    def name(self) -> str:
        return spelt(self)

    def __len__(self) -> int:
        return self.count

    def entries(self) -> list[KEntry]:
        """The pictures, not yet drawn: instance by instance, scene classes taking turns."""
        each = self.count if self.scenes == "anchor" else -(-self.count // len(SCENES))
        first = FIRST_INSTANCE[self.split]
        listed = k_set(self.seed, self.k, each, object_class=self.object_class, order=self.order, first_instance=first)
        return [e for e in listed if self.scenes == "all" or e.scene_class == self.order[0]][: self.count]

    def ids(self) -> tuple[str, ...]:
        shown = (OBJECTS[self.object_class], "none")
        return tuple(f"{e.index:06d}-{shown[not e.has_object]}-{SCENES[e.scene_class]}" for e in self.entries())

    def digest(self, indices: Sequence[int], /) -> str:
        entries = self.entries()
        content = (VERSION, self.shows, self.size, self.scale, [entries[i] for i in indices])
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def samples(self, indices: Sequence[int]) -> Samples:
        entries = self.entries()
        return stack([_drawn(entries[i], self.size, self.scale) for i in indices], self.size)

    def others(self, indices: Sequence[int]) -> Samples:
        """The pictures whose regions these get: of the same scene class, so that both have the object or neither."""
        entries = self.entries()
        places = [divmod(entries[i].index, PAIRS) for i in indices]
        lent = [
            replace(entries[i], index=lender(n) * PAIRS + pair) for i, (n, pair) in zip(indices, places, strict=True)
        ]
        return stack([_drawn(entry, self.size, self.scale) for entry in lent], self.size)

    def batch(self, indices: Sequence[int], /) -> Batch:
        drawn, ids = self.samples(indices), self.ids()
        labels = {
            "object": torch.from_numpy(drawn.object_label),
            "scene": torch.from_numpy(drawn.scene_label),
            "object_id": torch.from_numpy(drawn.object_id),
            "scene_id": torch.from_numpy(drawn.scene_id),
            OTHER_REGION: torch.from_numpy(self.others(indices).region),
        }
        shown = {"composite": drawn.image, "scene": drawn.twin, "grey": drawn.on_grey}[self.shows]
        return Batch(
            images=pixels(shown),
            targets=labels["scene"],
            ids=tuple(ids[i] for i in indices),
            regions=torch.from_numpy(drawn.region),
            twins=pixels(drawn.twin),
            labels=labels,
        )


@lru_cache(maxsize=512)
def _drawn(entry: KEntry, size: int, scale: tuple[float, float]) -> Sample:
    return entry.draw(size=size, scale=scale)
