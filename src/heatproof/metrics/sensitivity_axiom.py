"""The sensitivity axiom: pixels that the model cannot see must get no attribution."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from heatproof.errors import BadInput
from heatproof.metrics._support.reattribution import reattribute
from heatproof.metrics._support.undefined import ZERO_MAP, is_zero, scored
from heatproof.registry import metric
from heatproof.types import Attribution, Keep, Model, Price, Scored, keyed_seed


class Blindfolded(nn.Module):
    """A network whose input is zero, its mean colour, on some fixed pixels, whatever the picture shows there."""

    keep: Tensor

    def __init__(self, network: nn.Module, keep: Keep) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("keep", keep)

    def forward(self, inputs: Tensor) -> Tensor:
        answer: Tensor = self.network(inputs * self.keep.to(inputs.dtype))
        return answer


def squares_by_lot(height: int, width: int, side: int, share: float, seed: int) -> Keep:
    """(H, W) bool, False on a share of the side × side rectangles that is drawn at random; at least one, never all."""
    rows, columns = (min(side, length) for length in (height, width))
    cells = rows * columns
    hidden = max(1, min(cells - 1, round(share * cells)))
    order = torch.randperm(cells, generator=torch.Generator().manual_seed(seed))
    keep = torch.ones(cells, dtype=torch.bool)
    keep[order[:hidden]] = False
    down, along = torch.arange(height) * rows // height, torch.arange(width) * columns // width
    return keep.view(rows, columns)[down][:, along]


@metric
@dataclass(frozen=True)
class SensitivityAxiom:
    """The share of the map's magnitude that lies on pixels which the model cannot see.

    The model is wrapped in a blindfold that shows it one colour on some squares, the same for all pictures and
    methods, and the method explains the blindfolded model. Every output is then independent of these pixels by
    construction. 0 where the axiom holds; noise scores the squares' share of the picture.

    Paper: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks" (there Sensitivity(b))
    """

    side: int = 4  # the squares are cells of a side × side grid
    hidden: float = 0.25  # share of the cells

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["axiom"]] = "axiom"

    def __post_init__(self) -> None:
        if self.side < 2:
            raise BadInput(f"side must be at least 2 cells, got {self.side}")
        if not 0 < self.hidden < 1:
            raise BadInput(f"hidden must lie between 0 and 1, got {self.hidden}")

    @property
    def chance(self) -> float:
        """The hidden cells' share of the picture, which is the score of noise."""
        cells = self.side**2
        return max(1, min(cells - 1, round(self.hidden * cells))) / cells

    def __call__(self, attribution: Attribution, /) -> Scored:
        model, keep = self.blindfolded(attribution)
        maps = reattribute(attribution, model=model).double().abs().flatten(1)
        hidden = ~keep.flatten().to(maps.device)
        on_dummies = (maps * hidden).sum(1) / maps.sum(1)
        area = torch.full_like(on_dummies, float(hidden.double().mean()))
        return scored(on_dummies, {ZERO_MAP: is_zero(maps)}, {"area": area})

    def blindfolded(self, attribution: Attribution) -> tuple[Model, Keep]:
        """The model behind the blindfold, and (H, W) bool: what it sees."""
        model, batch = attribution.model, attribution.batch
        height, width = batch.images.shape[2:]
        kept: dict[object, tuple[Model, Keep]] = vars(model).setdefault("_blindfolded", {})
        key = (model.revision, self.side, self.hidden, batch.seed, height, width, str(model.device))
        if key not in kept:
            seed = keyed_seed(batch.seed, "sensitivity axiom", self.side, self.hidden)
            keep = squares_by_lot(height, width, self.side, self.hidden, seed)
            network = Blindfolded(model.network, keep).to(model.device)
            layer = f"network.{model.cam_layer}" if model.cam_layer else None
            name = f"{model.name} blindfolded"
            kept[key] = dataclasses.replace(model, name=name, network=network, cam_layer=layer), keep
        return kept[key]

    def cost(self) -> Price:
        return Price(explanations=1)
