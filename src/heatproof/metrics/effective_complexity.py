"""Effective complexity: how many segments, in the map's order, the model needs for its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.undefined import scored
from heatproof.occlusion.flip_order import lots, pooled, removal_ranks
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.registry import metric
from heatproof.traits import segmenter_traits
from heatproof.types import Attribution, Curve, Price, Readout, Scored


def smallest_sufficient(values: Tensor, tolerance: float) -> Tensor:
    """(B, n + 1) answers with 0 … n segments shown, the last with all -> (B,) the smallest number from which on every
    answer stays within `tolerance` times the whole rise of the last one.
    """
    whole, nothing = values[:, -1:], values[:, :1]
    within = (values - whole).abs() <= tolerance * (whole - nothing).abs()
    from_here_on = within.flip(1).long().cumprod(1).flip(1)
    return values.shape[1] - from_here_on.sum(1)


@metric
@dataclass(frozen=True)
class EffectiveComplexity:
    """The smallest share of segments, most important first, with which the answer is as good as on the whole picture.

    As good means within `tolerance` of the answer's rise from the empty to the whole picture, with this many
    segments and with every larger number. It describes map and model together and does not rank methods: an answer that
    rests on the whole picture needs all of it, whatever the map.

    Paper: Nguyen & Rodríguez Martínez 2020, "On Quantitative Aspects of Model Interpretability"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Grid(8), 1))
    readout: Readout = "probability"
    tolerance: float = 0.1

    higher_is_better: ClassVar[bool] = False
    axes: ClassVar[tuple[str, str]] = ("share of the segments shown", "the model's answer")
    measures: ClassVar[Literal["description"]] = "description"

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise BadInput(f"tolerance must be a share of the answer's rise, from 0 to below 1, got {self.tolerance}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        ranks = removal_ranks(pooled(game, attribution.maps), lots(game.batch, game.counts, "ties"))
        counts = torch.tensor(game.counts, dtype=torch.int64)
        # An image with fewer segments repeats its whole picture, which is as good as whole.
        shown = torch.arange(ranks.shape[1] + 1)
        values = game.value(ranks[:, None, :] < shown[None, :, None])
        needed = torch.minimum(smallest_sufficient(values, self.tolerance), counts)
        flat = values[:, -1:] == values[:, :1] if len(values) else torch.zeros(0, 1, dtype=torch.bool)
        x = shown[None] / counts[:, None].clamp_min(1)
        return scored(
            needed / counts,
            {"the answer is the same to the whole and to the empty picture": flat.flatten()},
            curve=Curve(x.clamp(max=1).double(), values),
        )

    def cost(self) -> Price:
        return Price(forward=(segmenter_traits(self.occlusion.segmenter).expected or 64) - 1.0, shared=2)
