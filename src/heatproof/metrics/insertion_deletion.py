"""Insertion and deletion: pixels are added to a blurred picture, or removed from a whole one, most important first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from torch import Tensor

from heatproof.occlusion.flip_order import FAST, area, lots, pooled, removal_ranks, removals, share_gone
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.imputers.blur import Blur
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.occluded_images import Samples, shown
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.registry import metric
from heatproof.types import REMOVED, Attribution, Curve, Readout, Scored


@dataclass(frozen=True)
class _Steps:
    """The base of both: pixels are switched in equal steps, the most important first."""

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Pixels(), 1))
    readout: Readout = "probability"
    points: int = 33  # of the curve, both ends included

    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    comes: ClassVar[bool] = False

    def fast(self) -> Self:
        """The same metric on fewer points of the curve, where their number was not chosen."""
        return replace(self, points=FAST) if self.points == _Steps.points else self

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        visible, x = self.coalitions(game, attribution, self.points)
        curve = Curve(x, game.value(visible))
        return Scored(area(curve), curve=curve)

    def coalitions(self, game: Game, attribution: Attribution, points: int) -> tuple[Tensor, Tensor]:
        """(B, K, n) visibility at each step, and (B, K) the switched share of the area."""
        ranks = removal_ranks(pooled(game, attribution.maps), lots(game.batch, game.counts, "ties"))
        moved = removals(game.counts, "linear", points)
        places, steps = ranks.int()[:, None, :], moved.int()[:, :, None]  # half the memory to compare
        return (places < steps if self.comes else places >= steps), share_gone(game.sizes, ranks, moved)

    def samples(self, attribution: Attribution, /) -> Samples:
        """The pictures the model sees at nine equal steps between the ends."""
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        visible, x = self.coalitions(game, attribution, 11)
        visible, x = visible[:, 1:-1], x[:, 1:-1]
        flat = game.segments.flatten(1)[:, None].expand(-1, visible.shape[1], -1)
        keep = visible.to(flat.device).gather(2, flat).unflatten(2, tuple(game.segments.shape[1:]))
        return Samples(shown(attribution.batch, keep, self.occlusion), 1 - x if self.comes else x)


@metric
@dataclass(frozen=True)
class Deletion(_Steps):
    """The area under the model's confidence as the most important pixels take the mean colour: lower is
    better.

    Paper: Petsiuk et al. 2018, "RISE: Randomized Input Sampling for Explanation of Black-box Models"
    """

    higher_is_better: ClassVar[bool] = False
    axes: ClassVar[tuple[str, str]] = (REMOVED, "the model's answer")


@metric
@dataclass(frozen=True)
class Insertion(_Steps):
    """The area under the model's confidence as the most important pixels come back to a blurred picture:
    higher is better.

    Paper: Petsiuk et al. 2018, "RISE: Randomized Input Sampling for Explanation of Black-box Models"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Blur(5.0, kernel=11), Pixels(), 1))
    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = ("share of the picture shown", "the model's answer")
    comes: ClassVar[bool] = True
