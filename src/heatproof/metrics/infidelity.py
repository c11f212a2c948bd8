"""Infidelity: the error of the map in predicting how the model's output changes under disturbances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor

from heatproof import engine
from heatproof.errors import BadInput
from heatproof.metrics._support.shared_answers import answered
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, coloured
from heatproof.occlusion.occluded_images import Samples
from heatproof.registry import metric
from heatproof.spec import recipe
from heatproof.types import Attribution, Price, Readout, Scored


def infidelity(predicted: Tensor, changed: Tensor) -> Tensor:
    """(B, M) predicted and actual changes -> (B,) mean squared error at the best scale."""
    power = predicted.square().sum(-1)
    scale = torch.where(power > 0, (predicted * changed).sum(-1) / power.clamp_min(1e-300), torch.zeros_like(power))
    return (scale[:, None] * predicted - changed).square().mean(-1)


@metric
@dataclass(frozen=True)
class Infidelity:
    """The squared error of the map in predicting the answer's changes under random disturbances, at the best scale.

    `square` hides squares: the map's sum over the square should equal the drop. `gaussian` shows a noisy black
    picture instead, with the same noise in all channels: the sum of the map times what is removed from each pixel
    should equal the drop, which suits gradient-like maps.

    Paper: Yeh et al. 2019, "On the (In)fidelity and Sensitivity of Explanations"
    """

    disturbance: Literal["square", "gaussian"] = "square"
    count: int = 100  # disturbances, the same for all methods
    largest: float = 0.36  # side of the largest square as a share of the picture's
    deviation: float = 0.2  # of the noise on black
    colour: tuple[float, ...] = IMAGENET_MEAN  # of hidden squares
    readout: Readout = "logit"

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    follows_map: ClassVar[bool] = False  # disturbances are drawn by lot

    def __post_init__(self) -> None:
        object.__setattr__(self, "colour", tuple(self.colour))
        if self.count < 2:
            raise BadInput(f"infidelity needs at least 2 disturbances, got {self.count}")
        if not 0 < self.largest <= 1:
            raise BadInput(f"largest of infidelity must be a share of the side, from 0 to 1, got {self.largest}")
        if self.deviation <= 0:
            raise BadInput(f"deviation of infidelity must be positive, got {self.deviation}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        model, batch = attribution.model, attribution.batch
        predicted = torch.zeros(len(batch), self.count, dtype=torch.float64, device=batch.images.device)
        for row in range(len(batch)):
            _, weights = self.disturbed(attribution, row, self.count)
            predicted[row] = (weights.double() * attribution.maps[row].double()).flatten(1).sum(1)
        changed = answered(recipe.key(self), model, batch, lambda: self._changes(attribution))
        return Scored(infidelity(predicted, changed).cpu())

    def _changes(self, attribution: Attribution) -> Tensor:
        """(B, M) float64: how far the answer drops under each disturbance, which no map has a part in."""
        model, batch = attribution.model, attribution.batch
        changed = torch.zeros(len(batch), self.count, dtype=torch.float64, device=batch.images.device)
        plan = engine.settled(model, batch.images, "forward")
        whole = model.read(engine.forward(model, batch.images, plan), batch.targets, self.readout).double()
        for row in range(len(batch)):
            moved, _ = self.disturbed(attribution, row, self.count)
            targets = batch.targets[row].expand(self.count)
            changed[row] = whole[row] - model.read(engine.forward(model, moved, plan), targets, self.readout).double()
        return changed

    def disturbed(self, attribution: Attribution, row: int, count: int) -> tuple[Tensor, Tensor]:
        """(M, C, H, W) disturbed pictures, and (M, H, W) the factors of the map: hidden or not, or how much
        darker."""
        batch = attribution.batch
        picture = batch.images[row]
        dice = batch.generators(f"infidelity {self.disturbance}")[row]
        if self.disturbance == "square":
            hidden = squares(count, picture.shape[1], picture.shape[2], self.largest, dice).to(picture.device)
            moved = torch.where(hidden[:, None], coloured(self.colour, picture[None]), picture)
            return moved, hidden.to(picture.dtype)
        noise = self.deviation * torch.randn(count, 1, *picture.shape[1:], generator=dice).to(picture)
        moved = noise.clamp(0, 1).expand(-1, len(picture), -1, -1)
        return moved, (picture - moved).mean(1)

    def cost(self) -> Price:
        return Price(shared=self.count + 1)

    def samples(self, attribution: Attribution, /) -> Samples:
        """The pictures the model sees: nine disturbances of each."""
        both = [self.disturbed(attribution, row, 9) for row in range(len(attribution.batch))]
        changed = torch.stack([(weights != 0).flatten(1).double().mean(1) for _, weights in both])
        return Samples(torch.stack([moved for moved, _ in both]), changed.cpu())


def squares(count: int, height: int, width: int, largest: float, dice: Generator) -> Tensor:
    """(count, H, W) bool: squares of every size up to the largest, wholly inside, anywhere."""
    most = max(1, int(largest * min(height, width)))
    sides = torch.randint(1, most + 1, (count,), generator=dice)
    top = (torch.rand(count, generator=dice) * (height - sides + 1)).long()
    left = (torch.rand(count, generator=dice) * (width - sides + 1)).long()
    down, along = torch.arange(height), torch.arange(width)
    tall = (down >= top[:, None]) & (down < (top + sides)[:, None])
    wide = (along >= left[:, None]) & (along < (left + sides)[:, None])
    return tall[:, :, None] & wide[:, None, :]
