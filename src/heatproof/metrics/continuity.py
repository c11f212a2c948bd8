"""Continuity: how far a map moves when its picture is shifted by some pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput, NotApplicable
from heatproof.metrics._support.neighbours import length
from heatproof.metrics._support.reattribution import reattribute
from heatproof.metrics._support.undefined import ZERO_MAP, is_zero, scored
from heatproof.registry import metric
from heatproof.types import Attribution, Images, Price, Scored


def shifted(images: Tensor, by: int, border: Literal["reflect", "wrap"]) -> Images:
    """(B, …, H, W) moved to the right by `by` pixels (to the left if negative)."""
    if border == "wrap":
        return images.roll(by, -1)
    width = images.shape[-1]
    source = torch.arange(width, device=images.device) - by
    source = torch.where(source < 0, -source, source)  # mirrored at the first and last pixel, which are not repeated
    source = torch.where(source >= width, 2 * (width - 1) - source, source)
    return images.index_select(-1, source)


@metric
@dataclass(frozen=True)
class Continuity:
    """The largest change of the map per change of the picture, when the picture is shifted sideways.

    The map of the shifted picture is compared with the shifted map, on the columns that both show
    (`compare="shifted"`): a map that follows its object is unchanged. `compare="unshifted"` is the published
    comparison, which penalises it; the other number is a detail. The change of the map is a sum of magnitudes, that of
    the picture a Euclidean length; `scale="unit"` divides maps by the original's sum of magnitudes.

    Paper: Montavon et al. 2018, "Methods for Interpreting and Understanding Deep Neural Networks"
    """

    shifts: int = 8  # pixels to either side
    compare: Literal["shifted", "unshifted"] = "shifted"
    border: Literal["reflect", "wrap"] = "reflect"
    scale: Literal["unit", "none"] = "unit"

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["robustness"]] = "robustness"

    def __post_init__(self) -> None:
        if self.shifts < 1:
            raise BadInput(f"shifts must be at least 1 pixel, got {self.shifts}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        maps, images = attribution.maps.double(), attribution.batch.images
        width = images.shape[-1]
        reach = min(self.shifts, (width - 1) // 2)
        if reach < 1:
            raise NotApplicable(f"continuity shifts pictures sideways, and these are {width} pixels wide")
        size = maps.abs().flatten(1).sum(1) if self.scale == "unit" else maps.new_ones(len(maps))
        columns = torch.arange(width, device=maps.device)
        changes: dict[str, list[Tensor]] = {"shifted": [], "unshifted": []}
        moved = []
        for by in (*range(-reach, 0), *range(1, reach + 1)):
            pictures = shifted(images, by, self.border)
            after = reattribute(attribution, batch=attribution.batch.showing(pictures)).double()
            moved.append(length(pictures - images))
            seen = (columns >= max(0, by)) & (columns < width + min(0, by))
            everywhere = seen | (self.border == "wrap")
            follow = (after - shifted(maps, by, self.border)).abs() * everywhere
            changes["shifted"].append(follow.flatten(1).sum(1) / size)
            changes["unshifted"].append((after - maps).abs().flatten(1).sum(1) / size)
        far = torch.stack(moved, 1)
        steepest = {
            name: torch.where(far > 0, torch.stack(every, 1) / far, 0.0).amax(1) for name, every in changes.items()
        }
        undefined = {
            ZERO_MAP: is_zero(maps) & (self.scale == "unit"),
            "shifting does not change the picture": (far == 0).all(1),
        }
        return scored(steepest[self.compare], undefined, steepest)

    def cost(self) -> Price:
        return Price(explanations=2 * self.shifts)


metric.alias(
    "Continuity",
    Continuity,
    "Quantus. There shifts run over the whole width, so that the last pictures are black, and maps are divided by the "
    "maximum of their batch.",
    shifts=14,
    compare="unshifted",
    scale="none",
)
