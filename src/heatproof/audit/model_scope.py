"""R-OMS and NR-OMS: whether an occlusion strategy keeps the model in distribution as segments go in random order.

R-OMS is the area under the target's probability when segments go in random order, NR-OMS the same for the
likeliest class at each step. Under a strategy with a low R-OMS the model fails as soon as anything is hidden, and
flipping curves say more about the imputer than about the maps.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.flip_order import Steps, area, on_grid, random_curves, removals
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.questions import Unfit
from heatproof.registry import metric, part
from heatproof.types import REMOVED, Attribution, Batch, Curve, Model, Scored

Answer = Literal["target", "any"]
_DRAWN = torch.linspace(0, 1, 41, dtype=torch.float64)


@part
@dataclass(frozen=True)
class RandomOrders:
    """The number of random orders, and the grid of removed shares."""

    orders: int = 5
    steps: Steps = "linear"
    points: int = 21

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise BadInput(f"orders must be at least 1, got {self.orders}")


def scope(
    model: Model,
    batch: Batch,
    occlusion: Occlusion,
    answer: Answer = "target",
    how: RandomOrders | None = None,
) -> tuple[Tensor, Curve]:
    """(B,) R-OMS (answer='target') or NR-OMS (answer='any') per image, and the mean curve behind it."""
    how = how or RandomOrders()
    game = game_of(model, batch, occlusion)
    ask = game.confidence if answer == "any" else game.value
    curves = random_curves(game, removals(game.counts, how.steps, how.points), how.orders, ask)
    drawn = torch.stack([on_grid(curve, _DRAWN) for curve in curves]).mean(0)
    return torch.stack([area(curve) for curve in curves]).mean(0), Curve(_DRAWN, drawn)


@dataclass(frozen=True)
class Scope:
    """The base of R-OMS and NR-OMS, which judge the occlusion strategy, not the method."""

    occlusion: Occlusion = field(default_factory=Occlusion)
    how: RandomOrders = field(default_factory=RandomOrders)
    answer: ClassVar[Answer]
    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "confidence")
    measures: ClassVar[Literal["pictures"]] = "pictures"

    def fast(self) -> Self:
        """The same measure on fewer points of the curve, where no grid was chosen."""
        chosen = self.how.steps != "linear" or self.how.points != RandomOrders.points
        return self if chosen else dataclasses.replace(self, how=dataclasses.replace(self.how, steps="fast"))

    def __call__(self, attribution: Attribution, /) -> Scored:
        values, curve = scope(attribution.model, attribution.batch, self.occlusion, self.answer, self.how)
        return Scored(values, curve=curve)


@metric("r_oms")
@dataclass(frozen=True)
class ROMS(Scope):
    """R-OMS: the area under the target's probability as segments go in random order, whatever the method.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    answer: ClassVar[Answer] = "target"


@metric("nr_oms")
@dataclass(frozen=True)
class NROMS(Scope):
    """NR-OMS: the area under the probability of the then likeliest class as segments go in random order.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    unfit: ClassVar[Unfit] = (("value", "it follows the probability of the likeliest class"),)

    answer: ClassVar[Answer] = "any"
