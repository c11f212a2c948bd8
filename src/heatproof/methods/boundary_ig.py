"""Boundary-based integrated gradients: the baseline is the nearest picture found that the model classifies
differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_positive
from heatproof.methods._support.shared_passes import doubly_softmaxed, slopes
from heatproof.methods.integrated_gradients import integrate
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Logits, Model, Readout


def margin(logits: Logits, aims: Tensor) -> list[Tensor]:
    """The margin by which the aimed class leads all others; negative once another leads."""
    others = logits.scatter(1, aims, -torch.inf).amax(1)
    return [logits.gather(1, aims).squeeze(1) - others]


def bisect(model: Model, inside: Images, outside: Images, own: Tensor, turns: int) -> Images:
    """Bisection of the segment from `inside` to `outside` at the boundary of class `own`: the point just beyond it."""
    way = engine.settled(model, inside, "forward")
    for _ in range(turns):
        middle = (inside + outside) / 2
        beyond = (engine.forward(model, middle, way).argmax(1) != own)[:, None, None, None]
        inside, outside = torch.where(beyond, inside, middle), torch.where(beyond, middle, outside)
    return outside


@method
@dataclass(frozen=True)
class BoundaryIG(ChannelPooled):
    """Integrated gradients from a nearby picture on the other side of the decision boundary.

    Paper: Wang et al. 2022, "Robust Models Are More Interpretable Because Attributions Look Normal"

    The boundary is that of the class the model answers with. The walk follows the sign of the margin's
    gradient until the answer changes; where it never does, its last point is the baseline. The variant `lmb`
    walks all its steps with gradients that add up, takes the softmax twice and does not look for the
    boundary, as published code does (with `step_size=0.001`).
    """

    unfit: ClassVar[Unfit] = (("value", "a value has no decision boundary to start from"),)

    steps: int = 50
    attack_steps: int = 50  # at most
    step_size: float = 1 / 255
    bisections: int = 10
    variant: Literal["clean", "lmb"] = "clean"
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("attack_steps", self.attack_steps)
        check_positive("step_size", self.step_size)
        check_count("bisections", self.bisections, least=0)

    def cost(self) -> Cost:
        clean = (1 + self.bisections) * (self.variant == "clean")
        return Cost(self.attack_steps + clean + self.steps, self.attack_steps + self.steps)  # at most

    def boundary(self, model: Model, batch: Batch) -> Images:
        """Where each image's path starts: (B, C, H, W)."""
        if self.variant == "lmb":
            return self._blind_walk(model, batch)
        own = engine.forward(model, batch.images).argmax(1)
        reached = batch.images.clone()
        rows = torch.arange(len(batch), device=own.device)  # of images that are still walking
        way = engine.settled(model, batch.images, "gradient")
        for _ in range(self.attack_steps):
            (slope,), logits = slopes(model, reached[rows], own[rows, None], margin, way)
            walking = logits.argmax(1) == own[rows]
            rows, slope = rows[walking], slope[walking]
            if not len(rows):
                break
            reached[rows] = (reached[rows] - self.step_size * slope.sign()).clamp(0, 1)
        return bisect(model, batch.images, reached, own, self.bisections)

    def _blind_walk(self, model: Model, batch: Batch) -> Images:
        here, gathered = batch.images, torch.zeros_like(batch.images)
        for _ in range(self.attack_steps):
            (slope,), _ = slopes(model, here, batch.targets[:, None], doubly_softmaxed)
            gathered += slope
            here = (here - self.step_size * gathered.sign()).clamp(0, 1)
        return here

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        return integrate(model, batch, self.boundary(model, batch), self.steps, self.readout)
