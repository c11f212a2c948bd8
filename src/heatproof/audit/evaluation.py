"""The subject of an audit: any evaluation that shows a model changed pictures on the way to a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import torch

from heatproof.errors import BadInput
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.kept_share import kept_most
from heatproof.occlusion.occluded_images import Samples, shown
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.registry import part
from heatproof.traits import metric_traits
from heatproof.types import Attribution, Batch, Maps

LEVELS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)  # kept shares


@runtime_checkable
class Evaluation(Protocol):
    """An evaluation that can show its samples."""

    def samples(self, attribution: Attribution, /) -> Samples: ...


@runtime_checkable
class Controlled(Protocol):
    """An evaluation with additional controls."""

    def control_samples(self, attribution: Attribution, /) -> Mapping[str, Samples]: ...


def follows_map(evaluation: Evaluation) -> bool:
    """Whether its samples follow the map's order; evaluations with randomly drawn sets or squares declare that they do
    not.
    """
    return metric_traits(evaluation).follows_map


def changes_pictures(evaluation: Evaluation) -> bool:
    """Whether its samples are changed versions of the pictures; a mere reference declares that they are not."""
    return metric_traits(evaluation).changes_pictures


@part
@dataclass(frozen=True)
class Removal:
    """Standard flipping: segments are removed in the map's order and an imputer fills the gaps."""

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Constant(), Pixels(), 1))
    first: Literal["most", "least"] = "least"
    levels: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels or not all(0 <= level < 1 for level in self.levels):
            raise BadInput(f"levels must be kept shares from 0 up to but not including 1, got {self.levels}")

    def samples(self, attribution: Attribution, /) -> Samples:
        """The pictures at every level, first draw."""
        batch = attribution.batch
        maps = attribution.maps if self.first == "least" else -attribution.maps
        keep = kept_most(maps, batch, self.occlusion.segmenter, self.levels)
        removed = (~keep).flatten(2).double().mean(2).cpu()
        return Samples(shown(batch, keep, self.occlusion), removed)


def random_maps(batch: Batch) -> Maps:
    """Random maps, seeded by image."""
    size = batch.images.shape[2:]
    maps = [torch.rand(size, generator=dice) for dice in batch.generators("audit random")]
    return torch.stack(maps).to(batch.images.device) if maps else batch.images.new_zeros(0, *size)


def named(evaluation: Any) -> str:
    """A short name for display."""
    from heatproof.spec import recipe

    return recipe.label(evaluation)
