"""F-Fidelity: the loss of a network adapted to masked pictures when part of the explanation is hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.fine_tuning import FineTuning
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.occlusion.flip_order import lots, pooled, removal_ranks
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.types import Attribution, Curve, Price, Scored


@dataclass(frozen=True)
class Fidelity:
    """The base of both directions: random parts of the hottest, or of the other, pixels are hidden.

    Of the hottest share `size` of the pixels a random part of `part` is hidden, but never more than `most` of the
    picture, which is what the fine-tuned copy has seen. `surrogate=none` evaluates the network itself (R-Fidelity).
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Pixels(), 1))
    sizes: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    part: float = 0.5
    most: float = 0.1
    draws: int = 10
    score: Literal["probability", "accuracy"] = "probability"
    surrogate: FineTuning | None = field(default_factory=FineTuning)

    axes: ClassVar[tuple[str, str]] = ("share of the picture taken for the explanation", "loss of the answer")
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    inside: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        if not self.sizes or not all(0 < size < 1 for size in self.sizes):
            raise BadInput(f"sizes must be shares of the picture between 0 and 1, got {self.sizes}")
        if not (0 < self.part <= 1 and 0 < self.most < 1):
            raise BadInput(f"part and most must be shares above 0, got {self.part} and {self.most}")
        if self.draws < 1:
            raise BadInput(f"draws must be at least 1, got {self.draws}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = self.game(attribution)
        ranks = removal_ranks(pooled(game, attribution.maps), lots(game.batch, game.counts, "ties"))
        whole = self._read(game, torch.ones(len(ranks), 1, ranks.shape[1], dtype=torch.bool))
        losses = torch.stack(
            [(whole - self._read(game, self.visible(game, ranks, size))).mean(1) for size in self.sizes]
        )
        curve = Curve(torch.tensor(self.sizes, dtype=torch.float64), losses.T)
        return scored(
            losses.mean(0), {CONSTANT_MAP: is_constant(attribution.maps).cpu()}, {"whole": whole[:, 0]}, curve
        )

    def game(self, attribution: Attribution) -> Game:
        model, batch = attribution.model, attribution.batch
        height, width = batch.images.shape[2:]
        if self.surrogate is not None:
            model = self.surrogate(model, self.occlusion, self.most, (height, width))
        return game_of(model, batch, self.occlusion, "probability")

    def visible(self, game: Game, ranks: Tensor, size: float) -> Tensor:
        """(B, draws, n) bool: the pixels that stay visible when random parts are hidden, keyed by image."""
        keep = torch.ones(len(ranks), self.draws, ranks.shape[1], dtype=torch.bool)
        dices = game.batch.generators(f"f_fidelity {size}")
        for row, count, dice in zip(range(len(ranks)), game.counts, dices, strict=True):
            hottest = max(1, round(size * count))
            pool = ranks[row, :count] < hottest
            pool = pool if self.inside else ~pool
            hidden = max(1, int(min(self.part * hottest, self.most * count)))
            luck = torch.rand(self.draws, count, generator=dice).masked_fill(~pool, 2.0)
            chosen = luck.argsort(1)[:, : min(hidden, int(pool.sum()))]
            keep[row, :, :count] = keep[row, :, :count].scatter(1, chosen, False)
        return keep

    @property
    def unfit(self) -> Unfit:
        return () if self.score == "probability" else (("value", "a value keeps no class as pixels are hidden"),)

    def _read(self, game: Game, coalitions: Tensor) -> Tensor:
        answers = game.value(coalitions)
        return answers if self.score == "probability" else (answers >= game.confidence(coalitions)).double()

    def cost(self) -> Price:
        return Price(forward=len(self.sizes) * self.draws, shared=1)


@metric
@dataclass(frozen=True)
class FFidelity(Fidelity):
    """The loss of the answer when random parts of the hottest pixels are hidden from a network adapted to such
    pictures.

    The mean over explanations of several sizes. The network is a copy, fine-tuned on pictures with as much hidden, so
    that a loss is a loss of evidence and not of familiarity; it is made once for all methods.

    Paper: Zheng et al. 2025, "F-Fidelity: A Robust Framework for Faithfulness Evaluation of Explainable AI"
    """

    higher_is_better: ClassVar[bool] = True


@metric
@dataclass(frozen=True)
class FFidelityMinus(Fidelity):
    """The loss of the answer when as many random pixels outside the hottest are hidden: small if these suffice.

    Paper: Zheng et al. 2025, "F-Fidelity: A Robust Framework for Faithfulness Evaluation of Explainable AI"
    """

    higher_is_better: ClassVar[bool] = False
    inside: ClassVar[bool] = False
