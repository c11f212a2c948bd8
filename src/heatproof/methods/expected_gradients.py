"""Expected gradients: integrated gradients in expectation over baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.baselines import Baseline, adds_up, answer_rise, origins, revision_of
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.keyed_noise import fill_with_noise
from heatproof.methods._support.path_gradients import Stretch, sum_contributions
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout, keyed_seed


class Dice:
    """The random part of a draw, keyed by image and draw: the place on the path and the noise on the picture."""

    def __init__(self, batch: Batch, draws: int, stratified: bool, noise: float) -> None:
        self.seeds = batch.seeds("expected")
        self.draws, self.stratified, self.noise = draws, stratified, noise

    def __call__(self, stretch: Stretch, room: Images) -> Tensor:
        """Places (points, 1, 1, 1) on the path; the noise, if any, is written into the room."""
        seed = self.seeds[stretch.image]
        if self.noise:
            fill_with_noise(room, [keyed_seed(seed, "noise", draw) for draw in stretch.points])
        places = torch.tensor([keyed_seed(seed, "place", draw) / 2**63 for draw in stretch.points], dtype=torch.float64)
        if self.stratified:
            places = (torch.tensor(stretch.points) + places) / self.draws
        return places.to(room).view(-1, 1, 1, 1)


def expected(model: Model, batch: Batch, background: Baseline, dice: Dice, readout: Readout) -> Tensor:
    """E (x - x') · gradient(x' + a (x - x')) over backgrounds x' and places a, per channel."""
    begin = origins(background, model, batch)

    def paint(stretch: Stretch, room: Images, way: Images) -> None:
        places, image = dice(stretch, way), batch.images[stretch.image]
        begin(stretch, room)
        if dice.noise:
            torch.add(image, way, alpha=dice.noise, out=way).sub_(room)
        else:
            torch.sub(image, room, out=way)
        room.addcmul_(places, way)

    return sum_contributions(model, batch, paint, dice.draws, readout) / dice.draws


@method
@dataclass(frozen=True)
class ExpectedGradients(ChannelPooled):
    """Integrated gradients averaged over many baselines, one random point of one path per draw.

    The points are stratified over the path. With `background` a data set of training images (or its
    registered name) this is the paper's method; the default background needs no data: noise with the model's
    mean and spread. An image is never its own background.

    Paper: Erion et al. 2021, "Improving performance of deep learning models with axiomatic attribution priors
    and expected gradients"
    """

    random: ClassVar[bool] = True

    background: Baseline = "gaussian"
    draws: int = 50
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    revision = revision_of("background")

    def __post_init__(self) -> None:
        check_count("draws", self.draws)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        dice = Dice(batch, self.draws, stratified=True, noise=0.0)
        return expected(model, batch, self.background, dice, self.readout)

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that maps add up to: the answer's rise over the baseline."""
        adds_up("expected_gradients", self.pooling)
        return answer_rise(model, batch, self.background, self.draws, self.readout)

    def cost(self) -> Cost:
        return Cost(self.draws, self.draws)
