"""How much of the relevance, or of the hottest pixels, lies inside the region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heatproof.metrics._support.localisation import ByOrder, Localisation
from heatproof.metrics._support.pixel_ranking import (
    relevance_mass,
    relevance_rank,
    signed,
)
from heatproof.metrics._support.regions import regions_of
from heatproof.registry import metric
from heatproof.types import Attribution, Scored


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
