"""Max-box accuracy: the overlap of boxes around the heat with boxes around the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.normalisation import normalise
from heatproof.metrics._support.regions import EMPTY, regions_of
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.registry import metric
from heatproof.traits import Rule
from heatproof.types import Attribution, Curve, Price, Scored

Boxes = NDArray[np.float64]  # (n, 4): top, left, bottom, right, the last two exclusive

_EIGHT = np.ones((3, 3), dtype=bool)  # pixels that touch at a corner belong together


def boxes_of(mask: NDArray[np.bool_]) -> Boxes:
    """One box around each connected part of a mask."""
    labels, _ = ndimage.label(mask, structure=_EIGHT)
    found = [(down.start, along.start, down.stop, along.stop) for down, along in ndimage.find_objects(labels)]
    return np.array(found, dtype=np.float64).reshape(-1, 4)


def best_overlap(found: Boxes, wanted: Boxes) -> float:
    """The largest IoU of a box of the first list with a box of the second; 0 if a list is empty."""
    if not len(found) or not len(wanted):
        return 0.0
    low = np.maximum(found[:, None, :2], wanted[None, :, :2])
    high = np.minimum(found[:, None, 2:], wanted[None, :, 2:])
    shared = (high - low).clip(min=0).prod(2)
    sizes = [(boxes[:, 2:] - boxes[:, :2]).prod(1) for boxes in (found, wanted)]
    return float((shared / (sizes[0][:, None] + sizes[1][None] - shared)).max())


def overlaps(heat: NDArray[np.float32], region: NDArray[np.bool_], thresholds: NDArray[Any]) -> list[float]:
    """The best IoU between boxes around heat at or above each threshold and boxes around the region's parts."""
    true = boxes_of(region)
    return [best_overlap(boxes_of(heat >= threshold), true) for threshold in thresholds]


def centred_box(height: int, width: int, area: float = 0.5) -> Boxes:
    """A box of the picture's shape in its middle, with this share of its area."""
    side = area**0.5
    top, left = height * (1 - side) / 2, width * (1 - side) / 2
    return np.array([[top, left, height - top, width - left]])


def max_box_accuracy(curves: Tensor, folds: int = 2) -> float:
    """The accuracy of a data set: (N, K) hits at each threshold -> the mean hit of each part of the pictures at the
    threshold that is best on the others. The published number takes the threshold that is best on the same pictures:
    `curves.mean(0).max()`.
    """
    if len(curves) < folds or folds < 2:
        raise BadInput(
            f"a threshold that is chosen on other pictures needs at least {folds} of them, got {len(curves)}"
        )
    part = torch.arange(len(curves)) % folds
    hits = [curves[part == fold][:, int(curves[part != fold].mean(0).argmax())] for fold in range(folds)]
    return float(torch.cat(hits).double().mean())


@metric
@dataclass(frozen=True)
class MaxBoxAccuracy:
    """Whether a box around the heat overlaps a box around the object: the mean over several required overlaps.

    Heat is a map in [0, 1]; each connected part at or above the threshold gets a box, and the best box counts. The
    published accuracy chooses the threshold that is best for the data set; a score of one picture needs one that does
    not depend on the others, and the curve holds all of them (`max_box_accuracy` chooses on other pictures). The detail
    `centred_box` is the score of a box in the middle, without any evidence: a strong baseline.

    Paper: Choe et al. 2020, "Evaluating Weakly Supervised Object Localization Methods Right"
    """

    threshold: float = 0.5  # of the score, in units of the largest heat
    overlaps: tuple[float, ...] = (0.3, 0.5, 0.7)
    rule: Rule = "positive"
    thresholds: int = 20  # of the curve

    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = ("threshold of the heat", "share of the overlaps that are reached")
    measures: ClassVar[Literal["localisation"]] = "localisation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "overlaps", tuple(self.overlaps))
        if not 0 < self.threshold <= 1 or self.thresholds < 2:
            raise BadInput(
                f"threshold must be above 0 and at most 1, and thresholds at least 2, got {self.threshold} and "
                f"{self.thresholds}"
            )
        if not self.overlaps or not all(0 < overlap <= 1 for overlap in self.overlaps):
            raise BadInput(f"overlaps must be above 0 and at most 1, got {self.overlaps}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions = regions_of(attribution).cpu()
        maps = normalise(attribution.maps, self.rule).cpu()
        grid = np.linspace(0, 1, self.thresholds, endpoint=False)
        levels = np.append(grid, self.threshold).astype(np.float32)
        found = np.array(
            [overlaps(heat, region, levels) for heat, region in zip(maps.numpy(), regions.numpy(), strict=True)]
        ).reshape(len(maps), len(levels))
        hits = torch.from_numpy(self._hits(found))
        middle = [best_overlap(centred_box(*region.shape), boxes_of(region.numpy())) for region in regions]
        details = {
            "iou": torch.from_numpy(found[:, -1]),
            "centred_box": torch.from_numpy(self._hits(np.array(middle, dtype=np.float64))),
        }
        undefined = {EMPTY: ~regions.flatten(1).any(1), CONSTANT_MAP: is_constant(maps)}
        return scored(hits[:, -1], undefined, details, Curve(torch.from_numpy(grid), hits[:, :-1]))

    def _hits(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.mean([found >= least for least in self.overlaps], axis=0), np.float64).reshape(found.shape)

    def cost(self) -> Price:
        return Price()


metric.alias(
    "MaxBoxAccV2",
    MaxBoxAccuracy,
    "Its authors' name. There the threshold is the one that suits the data set best; see the curve.",
    rule="min_max",
)
