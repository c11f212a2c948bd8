"""Localisation metrics: IoU over thresholds, and what the order of the pixels says without any.

Every metric here needs regions. A degenerate picture (constant map, empty or full region) carries a note;
where the score would be meaningless it is left undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from heatproof.errors import BadInput
from heatproof.metrics.localisation import HIGH, LOW, area, exact_auc_iou, iou_curve, threshold_grid
from heatproof.metrics.normalising import Choice, normalise, rule_of
from heatproof.metrics.pixel_ranking import (
    Sign,
    auroc,
    average_precision,
    best_iou,
    iou_by_area,
    relevance_mass,
    relevance_rank,
    signed,
)
from heatproof.metrics.regions import finite_rows, regions_of, remarks
from heatproof.registry import metric
from heatproof.types import Attribution, Curve, Keep, Maps, Scored, Scores

Area = Literal["mean_height", "paper"]


def heat_of(attribution: Attribution, rule: Choice) -> Maps:
    """The maps normalised as chosen; one that is not finite becomes 0 and gets no score."""
    finite = finite_rows(attribution.maps)[:, None, None]
    return normalise(attribution.maps.where(finite, 0.0), rule_of(attribution.method, rule))


def _at_least_two(name: str, count: int) -> None:
    if count < 2:
        raise BadInput(f"{name} must be at least 2, for an area has a width, got {count}")


@dataclass(frozen=True)
class Localisation:
    """What all localisation metrics share."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"

    def scored(self, attribution: Attribution, judged: Maps, values: Scores, curve: Curve | None = None) -> Scored:
        """Scores of the maps as judged, with a note where degenerate; none where a map is not finite."""
        finite = finite_rows(attribution.maps)
        notes = remarks(judged.where(finite[:, None, None], torch.nan), regions_of(attribution))
        return Scored(values.masked_fill(~finite.cpu(), torch.nan), notes, curve)


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
        _at_least_two("thresholds", self.thresholds)

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


@dataclass(frozen=True)
class ByOrder(Localisation):
    """Metrics of the order of pixels. `sign` says what is hot: evidence for the target, or any evidence."""

    sign: Sign = "signed"

    def judge(self, attribution: Attribution, score: Callable[[Maps, Keep], Scores]) -> Scored:
        regions, maps = regions_of(attribution), signed(attribution.maps, self.sign)
        return self.scored(attribution, maps, score(maps, regions))


@metric("best_iou")
@dataclass(frozen=True)
class BestIoU(ByOrder):
    """IoU at each image's own best threshold, which only who knows the region can choose: an upper bound."""

    def __call__(self, attribution: Attribution, /) -> Scored:
        return self.judge(attribution, best_iou)


@metric
@dataclass(frozen=True)
class AveragePrecision(ByOrder):
    """The area under precision over recall when pixels are found hottest first."""

    def __call__(self, attribution: Attribution, /) -> Scored:
        return self.judge(attribution, average_precision)


@metric("auroc")
@dataclass(frozen=True)
class AUROC(ByOrder):
    """The chance that a pixel inside the region is hotter than one outside: 0.5 is chance."""

    def __call__(self, attribution: Attribution, /) -> Scored:
        return self.judge(attribution, auroc)


@metric
@dataclass(frozen=True)
class RelevanceRank(ByOrder):
    """The share of the hottest pixels, as many as the region has, that lie inside it.

    Paper: Arras et al. 2022, "CLEVR-XAI: A benchmark dataset for the ground truth evaluation of neural
    network explanations"
    """

    def __call__(self, attribution: Attribution, /) -> Scored:
        return self.judge(attribution, relevance_rank)


@metric
@dataclass(frozen=True)
class RelevanceMass(Localisation):
    """The share of the evidence for the target that lies inside the region; undefined where there is none.

    Paper: Arras et al. 2022, "CLEVR-XAI: A benchmark dataset for the ground truth evaluation of neural
    network explanations"
    """

    sign: Literal["positive", "absolute"] = "positive"

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions, heat = regions_of(attribution), signed(attribution.maps, self.sign)
        return self.scored(attribution, heat, relevance_mass(heat, regions))


@metric("iou_by_area")
@dataclass(frozen=True)
class IoUByArea(ByOrder):
    """IoU when the hottest 5 %, 10 %, … 95 % of the pixels are taken, averaged: needs no normalising."""

    axes: ClassVar[tuple[str, str]] = ("share of the picture taken", "IoU")

    areas: int = 19

    def __post_init__(self) -> None:
        _at_least_two("areas", self.areas)

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions, maps = regions_of(attribution), signed(attribution.maps, self.sign)
        grid = threshold_grid(self.areas)
        heights = iou_by_area(maps, regions, grid)
        return self.scored(attribution, maps, area(grid, heights, normalised=True), Curve(grid, heights))


metric.alias(
    "AttributionLocalisation",
    RelevanceMass,
    "Quantus. There the weighted form takes the image's size from the batch's, and fails below three images.",
    sign="absolute",
)
metric.alias(
    "RelevanceMassAccuracy",
    RelevanceMass,
    "Quantus. There sums are signed and can leave [0, 1] unless the map is made positive before.",
)
metric.alias("RelevanceRankAccuracy", RelevanceRank, "Quantus. There ties fall as the sort leaves them.")
metric.alias("AUC", AUROC, "Quantus. Equal up to ties.")
