"""Localisation metrics: IoU over thresholds, and scores of the pixel order without thresholds.

Every metric here needs regions. A degenerate picture (constant map, empty or full region) carries a note;
where the score would be meaningless it is left undefined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from heatproof.errors import BadInput
from heatproof.metrics._support.iou import HIGH, LOW, area, exact_auc_iou, iou_curve, threshold_grid
from heatproof.metrics._support.localisation import ByOrder, Localisation, at_least_two, heat_of
from heatproof.metrics._support.normalisation import Choice
from heatproof.metrics._support.pixel_ranking import (
    best_iou,
    iou_by_area,
    signed,
)
from heatproof.metrics._support.regions import regions_of
from heatproof.registry import metric
from heatproof.types import Attribution, Curve, Scored

Area = Literal["mean_height", "paper"]


@metric("auc_iou")
@dataclass(frozen=True)
class AUCIoU(Localisation):
    """IoU with the region, averaged over thresholds instead of taken at one.

    `area="mean_height"` divides the area by the range of thresholds, so that a perfect map scores 1 and the
    number compares with an IoU; `area="paper"` is the published area, at most 0.9. Normalising the map to
    [0, 1] stays a choice: `rule="by_method"` takes the usual one of each method (magnitudes clipped at the
    99th percentile for gradients, the positive part for CAMs and superpixels, min-max for XRAI).

    Paper: Aksoy 2025, "Systematic Evaluation of Attribution Methods: Eliminating Threshold Bias and Revealing
    Method-Dependent Performance Patterns" (arXiv 2509.03176)
    """

    axes: ClassVar[tuple[str, str]] = ("threshold", "IoU")

    rule: Choice = "by_method"
    thresholds: int = 19
    area: Area = "mean_height"

    def __post_init__(self) -> None:
        at_least_two("thresholds", self.thresholds)

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions, heat = regions_of(attribution), heat_of(attribution, self.rule)
        grid = threshold_grid(self.thresholds)
        heights = iou_curve(heat, regions, self.thresholds)
        values = area(grid, heights, normalised=self.area == "mean_height")
        return self.scored(attribution, heat, values, Curve(grid, heights))


@metric("exact_auc_iou")
@dataclass(frozen=True)
class ExactAUCIoU(Localisation):
    """IoU with the region averaged over every threshold from `low` to `high`, without a grid.

    Paper: Aksoy 2025, "Systematic Evaluation of Attribution Methods: Eliminating Threshold Bias and Revealing
    Method-Dependent Performance Patterns" (arXiv 2509.03176), whose grid this makes infinitely fine
    """

    rule: Choice = "by_method"
    low: float = LOW
    high: float = HIGH
    area: Area = "mean_height"

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise BadInput(f"thresholds must satisfy 0 <= low < high <= 1, got low {self.low} and high {self.high}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions, heat = regions_of(attribution), heat_of(attribution, self.rule)
        height = self.area == "mean_height"
        return self.scored(attribution, heat, exact_auc_iou(heat, regions, self.low, self.high, height))


@metric("iou_at")
@dataclass(frozen=True)
class IoUAt(Localisation):
    """IoU of the pixels at or above one threshold with the region: what AUC-IoU replaces."""

    threshold: float = 0.5
    rule: Choice = "by_method"

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise BadInput(f"threshold must lie in [0, 1], as normalised maps do, got {self.threshold}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions, heat = regions_of(attribution), heat_of(attribution, self.rule)
        return self.scored(attribution, heat, iou_curve(heat, regions, [self.threshold])[:, 0])


@metric("best_iou")
@dataclass(frozen=True)
class BestIoU(ByOrder):
    """IoU at each image's own best threshold, chosen with knowledge of the region: an upper bound."""

    def __call__(self, attribution: Attribution, /) -> Scored:
        return self.judge(attribution, best_iou)


@metric("iou_by_area")
@dataclass(frozen=True)
class IoUByArea(ByOrder):
    """IoU when the hottest 5 %, 10 %, … 95 % of the pixels are taken, averaged: needs no normalising."""

    axes: ClassVar[tuple[str, str]] = ("share of the picture taken", "IoU")

    areas: int = 19

    def __post_init__(self) -> None:
        at_least_two("areas", self.areas)

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions, maps = regions_of(attribution), signed(attribution.maps, self.sign)
        grid = threshold_grid(self.areas)
        heights = iou_by_area(maps, regions, grid)
        return self.scored(attribution, maps, area(grid, heights, normalised=True), Curve(grid, heights))
