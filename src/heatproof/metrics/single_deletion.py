"""Single deletion: whether segments that the map calls important lower the answer when hidden alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.metrics._support.fine_tuning import FineTuning
from heatproof.metrics._support.segment_effects import FLAT_ANSWER, segments_expected, shares, single_drops
from heatproof.metrics._support.shared_answers import classes
from heatproof.metrics._support.similarity import correlation, rank_correlation
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Readout, Scored


@dataclass(frozen=True)
class Deletions:
    """The base of single deletions: the game, and the comparison of sums over segments with drops."""

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Grid(4), 1))
    readout: Readout = "logit"
    correlation: Literal["spearman", "pearson"] = "spearman"

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    follows_map: ClassVar[bool] = False  # every segment is hidden, whatever the map
    chance: ClassVar[float] = 0.0

    def game(self, attribution: Attribution) -> Game:
        return game_of(attribution.model, attribution.batch, self.occlusion, self.readout)

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = self.game(attribution)
        owned, drops = shares(game, attribution.maps), single_drops(game)
        compare = rank_correlation if self.correlation == "spearman" else correlation
        undefined = {
            "the picture has one segment": torch.tensor([count < 2 for count in game.counts], dtype=torch.bool),
            CONSTANT_MAP: is_constant(owned),
            FLAT_ANSWER: is_constant(drops),
        }
        return scored(compare(owned, drops), undefined, self.details(attribution, game))

    def details(self, attribution: Attribution, game: Game) -> dict[str, Tensor]:
        """Details of the score, (B,) each."""
        return {}

    def cost(self) -> Price:
        draws = self.occlusion.draws if self.occlusion.random else 1
        return Price(shared=1 + draws * segments_expected(self.occlusion.segmenter))


@metric
@dataclass(frozen=True)
class SingleDeletion(Deletions):
    """The rank correlation between the map's sum over each segment and the answer's drop without that segment.

    1 where the map orders the segments as the answer does, 0 by chance, with a deviation of 1/√(n - 1) for n segments
    (0.26 for the 16 cells of the default): average over a hundred pictures. The network itself is evaluated; `idsds`
    evaluates a copy that is fine-tuned on such pictures.

    Paper: Hesse et al. 2024, "Benchmarking the Attribution Quality of Vision Models" (there of a fine-tuned model)
    """


@metric("idsds")
@dataclass(frozen=True)
class IDSDS(Deletions):
    """In-domain single deletion: the same correlation, with drops of a copy of the network that is adapted to such
    pictures.

    The copy is fine-tuned to give pictures with hidden cells the output that the network gives whole ones, once for all
    methods. The detail `same_class` says whether it classifies the whole picture as the network does.

    Paper: Hesse et al. 2024, "Benchmarking the Attribution Quality of Vision Models"
    """

    surrogate: FineTuning = field(default_factory=FineTuning)

    def game(self, attribution: Attribution) -> Game:
        batch = attribution.batch
        height, width = batch.images.shape[2:]
        share = 1 / segments_expected(self.occlusion.segmenter)
        tuned = self.surrogate(attribution.model, self.occlusion, share, (height, width))
        return game_of(tuned, batch, self.occlusion, self.readout)

    def details(self, attribution: Attribution, game: Game) -> dict[str, Tensor]:
        """Whether the copy and the network predict the same class for each whole picture."""
        batch = attribution.batch
        return {"same_class": (classes(game.model, batch) == classes(attribution.model, batch)).double()}


@metric
@dataclass(frozen=True)
class FaithfulnessEstimate(Deletions):
    """The linear correlation between the map's sum over each segment and the answer's drop without that segment.

    Paper: Alvarez-Melis & Jaakkola 2018, "Towards Robust Interpretability with Self-Explaining Neural Networks"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Grid(8), 1))
    correlation: Literal["spearman", "pearson"] = "pearson"


metric.alias(
    "SingleDeletionScore",
    SingleDeletion,
    "IDSDS's authors. There one constant map makes the mean of the data set NaN; the fine-tuned form is idsds.",
)
