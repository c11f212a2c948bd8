"""ROAD: flipping with an imputer that leaves no visible edges around removed pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.flip_order import lots, pooled, removal_ranks
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.road import NoisyLinear
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.registry import metric
from heatproof.types import REMOVED, Attribution, Curve, Readout, Scored


@metric
@dataclass(frozen=True)
class Road:
    """Half the confidence difference between removing the least and the most important pixels, imputed smoothly.

    The mean over the removed shares; random is 0.

    Paper: Rong et al. 2022, "A Consistent and Efficient Evaluation Strategy for Attribution Methods"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(NoisyLinear(), Pixels(), 1))
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)  # removed
    readout: Readout = "probability"

    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "half of least − most first")
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", tuple(self.shares))
        if not self.shares or not all(0 < share < 1 for share in self.shares):
            raise BadInput(f"shares of road must lie between 0 and 1, got {self.shares}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        values = pooled(game, attribution.maps)
        luck = lots(game.batch, game.counts, "ties")
        most, least = (game.value(self._visible(removal_ranks(v, luck), game.counts)) for v in (values, -values))
        gaps = (least - most) / 2
        return Scored(gaps.mean(1), curve=Curve(torch.tensor(self.shares, dtype=torch.float64), gaps))

    def _visible(self, ranks: Tensor, counts: tuple[int, ...]) -> Tensor:
        gone = (torch.tensor(self.shares)[None] * torch.tensor(counts)[:, None]).round()
        return ranks[:, None, :] >= gone[:, :, None]
