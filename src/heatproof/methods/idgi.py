"""IDGI: integrated gradients along the important direction only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heatproof.methods._support.baselines import (
    Baseline,
    adds_up,
    answer_rise,
    is_random,
    revision_of,
    start,
)
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.path_gradients import Stretch, gradients_on_path
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout


class Steps:
    """What one picture's path has given so far: each rise of the answer, shared out by the squared gradient before it.

    Where the gradient is zero, the rise goes to the last direction there was; rises before any wait for the first.
    """

    def __init__(self, total: Tensor) -> None:
        self.total = total  # (C, H, W), added to in place
        self.direction: Tensor | None = None
        self.last = self.waiting = 0.0

    def add(self, slope: Tensor, value: float, first: bool) -> None:
        """The next point of the path: the gradient there, and the answer."""
        if not first:
            self.waiting += value - self.last
            if self.direction is not None:
                self.total.add_(self.direction, alpha=self.waiting)
                self.waiting = 0.0
        self.last = value
        scaled = slope.double()
        scaled = (scaled / scaled.abs().amax().clamp(min=1e-300)).square()  # a square may underflow
        if float(length := scaled.sum()) > 0:
            self.direction = (scaled / length).to(slope)


@method("idgi")
@dataclass(frozen=True)
class IDGI(ChannelPooled):
    """Every rise of the answer along the straight path from a baseline, shared out by the squared gradient.

    Integrated gradients without what the path does at a right angle to the gradient, which adds up to nothing and is
    the noise in its maps. Adds up to the answer's difference between picture and baseline exactly, for any number of
    steps. The sign is that of a step and not of a pixel: where the answer falls along the path, the pixels with
    the largest gradients lose.

    Paper: Yang et al. 2023, "IDGI: A Framework to Eliminate Explanation Noise from Integrated Gradients"
    """

    steps: int = 50
    baseline: Baseline = "black"
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    revision = revision_of("baseline")

    def __post_init__(self) -> None:
        check_count("steps", self.steps)

    @property
    def random(self) -> bool:
        return is_random(self.baseline)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        origin = start(self.baseline, model, batch)
        way = batch.images - origin
        places = torch.linspace(0, 1, self.steps + 1).to(batch.images).view(-1, 1, 1, 1)

        def paint(stretch: Stretch, room: Images) -> None:
            image, points, _ = stretch
            torch.addcmul(origin[image], places[points.start : points.stop], way[image], out=room)

        total = torch.zeros_like(batch.images)
        steps = [Steps(one) for one in total]
        for part, slopes, values in gradients_on_path(model, batch, paint, self.steps + 1, self.readout):
            answers = values.double().tolist()
            for image, points, rows in part:
                for point, slope, answer in zip(points, slopes[rows], answers[rows], strict=True):
                    steps[image].add(slope, answer, first=point == 0)
        return total

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that maps add up to: the answer's rise over the baseline."""
        adds_up("idgi", self.pooling)
        return answer_rise(model, batch, self.baseline, 1, self.readout)

    def cost(self) -> Cost:
        return Cost(self.steps + 1, self.steps + 1)
