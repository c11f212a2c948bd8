"""Pixel flipping: removes segments in the order of their attribution and records the model's answer.

MIF removes the most important first (a good map makes the answer fall at once), LIF the least important first
(a good map keeps it up). The choice between the two, and the imputer, change the winner; their difference, SRG,
depends on neither much.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from heatproof.errors import BadInput, NotApplicable
from heatproof.occlusion.flip_book import FlipBook, flip_book
from heatproof.occlusion.flip_order import (
    Steps,
    area,
    lots,
    on_grid,
    pooled,
    random_curves,
    removal_curve,
    removal_ranks,
    removals,
    tied,
)
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.segmenters.patches import Patches
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.registry import metric
from heatproof.types import REMOVED, Attribution, Batch, Curve, Model, Readout, Scored

Target = Literal["explained", "label"]
_DRAWN = torch.linspace(0, 1, 41, dtype=torch.float64)  # where differences of curves are drawn


TIED = "all segments tie: their order is drawn by lot"
UNLABELLED = "target='label' judges the true class, and this picture has no label"


def aimed(model: Model, batch: Batch, target: Target) -> Batch:
    """The batch aimed at the explained class, or at the data set's label.

    A picture without a label (-1) is aimed at class 0, to keep its row; `unlabelled` lists these.
    """
    if target == "explained":
        return batch
    if model.task not in batch.labels:
        raise NotApplicable(f"target='label' needs labels of the task {model.task!r}; these images have none")
    return _labelled(model.task, batch)


def _labelled(task: str, batch: Batch) -> Batch:
    """One aimed batch per batch and task, cached on it, so that its games are reused."""
    kept: dict[str, Batch] = vars(batch).setdefault("_labelled", {})
    if task not in kept:
        kept[task] = batch.aimed(batch.labels[task].clamp(min=0))
    return kept[task]


def unlabelled(model: Model, batch: Batch, target: Target) -> list[bool]:
    """Per image: whether its true class is needed and unknown."""
    return [False] * len(batch) if target == "explained" else (batch.labels[model.task] < 0).tolist()


@dataclass(frozen=True)
class Flipping:
    """The base of flipping metrics: how segments are removed, and which readout is recorded.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    occlusion: Occlusion = field(default_factory=Occlusion)
    readout: Readout = "probability"
    target: Target = "explained"
    steps: Steps = "linear"  # `paper`: a logarithmic grid of about 15 points; `fast`: 9 equal steps at most
    points: int = 21  # of the linear grid; fewer where an image has fewer segments

    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __post_init__(self) -> None:
        for name, least in (("points", 2), ("orders", 1)):
            if getattr(self, name, least) < least:
                raise BadInput(f"{name} must be at least {least}, got {getattr(self, name)}")

    def fast(self) -> Self:
        """The same metric on fewer points of the curve, where no grid was chosen."""
        chosen = self.steps != "linear" or self.points != Flipping.points
        return self if chosen else replace(self, steps="fast")

    def game(self, attribution: Attribution) -> Game:
        batch = aimed(attribution.model, attribution.batch, self.target)
        return game_of(attribution.model, batch, self.occlusion, self.readout)

    def removed(self, game: Game) -> Tensor:
        return removals(game.counts, self.steps, self.points)

    def curve(self, attribution: Attribution, first: Literal["most", "least"]) -> Curve:
        """The model's answer as segments are removed, most or least important first.

        One random order per image breaks ties in both directions, so a constant map scores exactly 0; it does not
        depend on the method, so all methods have the same luck.
        """
        game = self.game(attribution)
        values = pooled(game, attribution.maps) * (1 if first == "most" else -1)
        ranks = removal_ranks(values, lots(game.batch, game.counts, "ties"))
        return removal_curve(game, ranks, self.removed(game))

    def book(self, attribution: Attribution, first: Literal["most", "least"]) -> FlipBook:
        """What the model sees along the curve of the same order."""
        game = self.game(attribution)
        values = pooled(game, attribution.maps) * (1 if first == "most" else -1)
        return flip_book(game, removal_ranks(values, lots(game.batch, game.counts, "ties")), self.removed(game))

    def details(self, attribution: Attribution) -> dict[str, Tensor]:
        """Per image: the number of segments, and the share of them that tie."""
        game = self.game(attribution)
        return {"segments": torch.tensor(game.counts).double(), "tied": tied(pooled(game, attribution.maps))}

    def scored(self, attribution: Attribution, values: Tensor, curve: Curve) -> Scored:
        """The scores with their details; an undefined score is NaN with a note."""
        details = self.details(attribution)
        notes = [TIED if share == 1 else "" for share in details["tied"].tolist()]
        values = values.clone()
        for row, unknown in enumerate(unlabelled(attribution.model, attribution.batch, self.target)):
            if unknown:
                values[row], notes[row] = torch.nan, UNLABELLED
            elif not bool(values[row].isfinite()):
                notes[row] = "the model's answer on the way is not finite"
        return Scored(values, tuple(notes), curve, details)

    def baseline(self, attribution: Attribution, orders: int) -> tuple[Tensor, Tensor]:
        """R-OMS per image, and its curve on the common grid."""
        game = self.game(attribution)
        curves = random_curves(game, self.removed(game), orders)
        return _mean([area(curve) for curve in curves]), _mean([on_grid(curve, _DRAWN) for curve in curves])


def _mean(parts: list[Tensor]) -> Tensor:
    # Rounded like an area, so that differences from it are exact.
    return (torch.stack(parts).mean(0) * 2.0**40).round() / 2.0**40


@dataclass(frozen=True)
class OneOrder(Flipping):
    """The area under the model's answer when segments go in one order."""

    first: ClassVar[Literal["most", "least"]]
    axes: ClassVar[tuple[str, str]] = (REMOVED, "the model's answer")

    def __call__(self, attribution: Attribution, /) -> Scored:
        curve = self.curve(attribution, self.first)
        return self.scored(attribution, area(curve), curve)

    def flip_book(self, attribution: Attribution, /) -> FlipBook:
        return self.book(attribution, self.first)


@metric
@dataclass(frozen=True)
class MIF(OneOrder):
    """The area under the model's answer when the most important segments go first: lower is better."""

    higher_is_better: ClassVar[bool] = False
    first: ClassVar[Literal["most", "least"]] = "most"


@metric
@dataclass(frozen=True)
class LIF(OneOrder):
    """The area under the model's answer when the least important segments go first: higher is better."""

    higher_is_better: ClassVar[bool] = True
    first: ClassVar[Literal["most", "least"]] = "least"


@metric
@dataclass(frozen=True)
class SRG(Flipping):
    """Symmetric relevance gain, LIF - MIF: how much the order matters, whatever the occlusion; random is 0."""

    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "least first − most first")

    def __call__(self, attribution: Attribution, /) -> Scored:
        most, least = self.curve(attribution, "most"), self.curve(attribution, "least")
        drawn = Curve(_DRAWN, on_grid(least, _DRAWN) - on_grid(most, _DRAWN))
        return self.scored(attribution, area(least) - area(most), drawn)


@metric
@dataclass(frozen=True)
class MRG(Flipping):
    """Most relevance gain, R-OMS - MIF: how much faster than by chance the answer falls; random is 0."""

    orders: int = 5  # random orders behind the baseline
    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "random order − most first")

    def __call__(self, attribution: Attribution, /) -> Scored:
        most = self.curve(attribution, "most")
        chance, random = self.baseline(attribution, self.orders)
        drawn = Curve(_DRAWN, random - on_grid(most, _DRAWN))
        return self.scored(attribution, chance - area(most), drawn)


@metric
@dataclass(frozen=True)
class LRG(Flipping):
    """Least relevance gain, LIF - R-OMS: how much longer than by chance the answer stays up; random is 0."""

    orders: int = 5  # random orders behind the baseline
    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "least first − random order")

    def __call__(self, attribution: Attribution, /) -> Scored:
        least = self.curve(attribution, "least")
        chance, random = self.baseline(attribution, self.orders)
        drawn = Curve(_DRAWN, on_grid(least, _DRAWN) - random)
        return self.scored(attribution, area(least) - chance, drawn)


metric.alias(
    "PixelFlipping",
    MIF,
    "Quantus. There black is the image's own darkest value, and the area is not divided by the number of steps.",
    occlusion=Occlusion(Constant(), Pixels(), 1),
)
metric.alias(
    "RegionPerturbation",
    MIF,
    "Quantus. There the score is the curve of what is lost, over the first 100 patches only.",
    occlusion=Occlusion(Constant(), Patches(8), 1),
)
metric.alias(
    "Selectivity",
    MIF,
    "Quantus. There the curve lacks its beginning, and padding takes part in the patches.",
    occlusion=Occlusion(Constant(), Patches(8), 1),
)
metric.alias(
    "IROF",
    MIF,
    "Quantus. There higher is better: 1 less the area, in units of the whole picture's answer, and an image's score "
    "depends on its batch mates.",
    occlusion=Occlusion(Mean(), Slic(64), 1),
)
metric.alias("AbPC", SRG, "Its authors' name. Equal: the area of least first less that of most first.")
