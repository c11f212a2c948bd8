"""SaCo: whether groups of pixels differ in their effect as they differ in the map."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.segment_effects import FLAT_ANSWER
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.occlusion.flip_order import lots, pooled, removal_ranks
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Readout, Scored


def salience_agreement(salience: Tensor, effect: Tensor) -> Tensor:
    """(B, K) twice -> (B,): over all pairs of groups, the difference in salience, counted for where the effects order
    the pair alike, against where they do not, and not at all where they tie; over the sum of all differences.
    """
    gap = salience[:, :, None] - salience[:, None]
    order = (effect[:, :, None] - effect[:, None]).sign()
    return (gap * order).sum((1, 2)) / gap.abs().sum((1, 2))


@metric("saco")
@dataclass(frozen=True)
class SaCo:
    """Salience-guided faithfulness: whether hotter groups of pixels have larger effects.

    Pairs of groups weigh as much as their heat differs. 1 if every hotter group has the larger effect, -1 if none has,
    0 by chance. Equal effects count for neither side: a model that does not react gives no score.

    Paper: Wu et al. 2024, "On the Faithfulness of Vision Transformer Explanations"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Pixels(), 1))
    readout: Readout = "probability"
    groups: int = 10

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    chance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.groups < 2:
            raise BadInput(f"groups must be at least 2, got {self.groups}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        means = pooled(game, attribution.maps)
        ranks = removal_ranks(means, lots(game.batch, game.counts, "ties"))
        counts = torch.tensor(game.counts, dtype=torch.int64)[:, None]
        groups = (ranks * self.groups) // counts.clamp_min(1)
        belongs = groups[:, None] == torch.arange(self.groups)[None, :, None]
        owned = (means * game.sizes).nan_to_num(nan=0.0)
        salience = (belongs * owned[:, None]).sum(2)
        visible = torch.cat([torch.ones_like(belongs[:, :1]), ~belongs], 1)
        values = game.value(visible)
        effect = values[:, :1] - values[:, 1:]
        undefined = {CONSTANT_MAP: is_constant(attribution.maps).cpu(), FLAT_ANSWER: is_constant(effect)}
        unit = salience.abs().amax(1, keepdim=True).clamp_min(1e-300)
        return scored(salience_agreement(salience / unit, effect), undefined)

    def cost(self) -> Price:
        return Price(forward=self.groups, shared=1)
