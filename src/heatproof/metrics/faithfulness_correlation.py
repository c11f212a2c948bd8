"""Faithfulness correlation: between the map's sum over random sets of segments and the drop without them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from heatproof.errors import BadInput
from heatproof.metrics._support.segment_effects import FLAT_ANSWER, shares
from heatproof.metrics._support.similarity import correlation, rank_correlation
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.metrics.sensitivity_n import SensitivityN
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Readout, Scored


@metric
@dataclass(frozen=True)
class FaithfulnessCorrelation:
    """The correlation, over random sets of one size, between the map's sum over a set and the drop without it.

    Sensitivity-n at one n. The sets are drawn by image and are the same for all methods. 1 where the map explains the
    answer as a sum, 0 by chance with a deviation of 1/√(sets - 1).

    Paper: Bhatt et al. 2020, "Evaluating and Aggregating Feature-based Model Explanations"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Pixels(), 1))
    readout: Readout = "logit"
    size: float = 0.1  # of a set, as a share of the segments
    sets: int = 100
    correlation: Literal["pearson", "spearman"] = "pearson"

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    follows_map: ClassVar[bool] = False  # sets are drawn by lot
    chance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.size < 1:
            raise BadInput(f"size of a set must be a share of the segments, between 0 and 1, got {self.size}")
        if self.sets < 3:
            raise BadInput(f"sets must be at least 3, got {self.sets}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        draws = SensitivityN(self.occlusion, self.readout, 1, self.size, self.size, self.sets)
        removed = draws.removed(game, 0)
        owned = shares(game, attribution.maps).nan_to_num(nan=0.0)
        sums = (removed * owned[:, None]).sum(2)
        whole = game.value(torch.ones(len(owned), 1, owned.shape[1], dtype=torch.bool))
        drops = whole - game.value(~removed)
        compare = rank_correlation if self.correlation == "spearman" else correlation
        undefined = {CONSTANT_MAP: is_constant(attribution.maps).cpu(), FLAT_ANSWER: is_constant(drops)}
        found = compare(sums, drops)
        undefined["all sets have the same sum"] = found.isnan()
        return scored(found, undefined)

    def cost(self) -> Price:
        return Price(shared=self.sets + 1)


metric.alias(
    "MuFidelity",
    FaithfulnessCorrelation,
    "xplique. There each of 9 × 9 cells is dropped by lot, so that sets differ in size, and NaN counts as 0.",
    occlusion=Occlusion(Constant(), Grid(9), 1),
    size=0.2,
    sets=200,
    correlation="spearman",
)
