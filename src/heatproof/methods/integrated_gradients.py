"""Integrated gradients, along straight lines from a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from heatproof.methods._support.baselines import Baseline, adds_up, answer_rise, is_random, revision_of, starts
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_not_negative
from heatproof.methods._support.path_gradients import Stretch, sum_gradients
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.smoothgrad import Mode, Smoothed
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout


def gauss_legendre(steps: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights on [0, 1]; weights sum to 1, polynomials up to degree 2·steps - 1 are exact."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2)


def integrate(model: Model, batch: Batch, origin: Images, steps: int, readout: Readout) -> Tensor:
    """(x - x0) · ∫ gradient(x0 + a (x - x0)) da, per channel."""
    nodes, weights = gauss_legendre(steps)
    nodes = nodes.to(batch.images).view(-1, 1, 1, 1)
    way = batch.images - origin

    def paint(stretch: Stretch, room: Images) -> None:
        image, points, _ = stretch
        torch.addcmul(origin[image], nodes[points.start : points.stop], way[image], out=room)

    return way * sum_gradients(model, batch, paint, weights, readout)


@method
@dataclass(frozen=True)
class IntegratedGradients(ChannelPooled):
    """The gradient averaged along the straight path from a baseline to the picture, times the path.

    Adds up to the answer's difference between picture and baseline. The baseline is `black` (the default),
    `mean` (the model's mean colour, zero in its normalised space), `mid_grey`, `blur`, `uniform` or `gaussian`
    noise, or a data set of training images; random baselines are averaged over `draws`. Gauss-Legendre nodes,
    whose weights sum to one.

    Paper: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks"
    """

    steps: int = 50
    baseline: Baseline = "black"
    draws: int = 1
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    revision = revision_of("baseline")

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("draws", self.draws)

    @property
    def random(self) -> bool:
        return is_random(self.baseline)

    @property
    def _draws(self) -> int:
        return self.draws if self.random else 1

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        total = torch.zeros_like(batch.images)
        for origin in starts(self.baseline, model, batch, self._draws):
            total += integrate(model, batch, origin, self.steps, self.readout)
        return total / self._draws

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that maps add up to: the answer's rise over the baseline."""
        adds_up("integrated_gradients", self.pooling)
        return answer_rise(model, batch, self.baseline, self._draws, self.readout)

    def cost(self) -> Cost:
        return Cost(self.steps * self._draws, self.steps * self._draws)


@method("ig_smoothgrad")
@dataclass(frozen=True)
class IGSmoothGrad:
    """Integrated gradients averaged over noisy copies of the picture.

    `mode="squared"` is what the BAM release computed.

    Paper: Smilkov et al. 2017, "SmoothGrad: removing noise by adding noise"
    """

    random: ClassVar[bool] = True

    steps: int = 25
    baseline: Baseline = "black"
    draws: int = 25
    noise: float = 0.15
    mode: Mode = "mean"
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    revision = revision_of("baseline")

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("draws", self.draws)
        check_not_negative("noise", self.noise)

    @property
    def _parts(self) -> Smoothed:
        inner = IntegratedGradients(self.steps, self.baseline, pooling=self.pooling, readout=self.readout)
        return Smoothed(inner, self.draws, self.noise, mode=self.mode)

    @property
    def signed(self) -> bool:
        return self._parts.signed

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return self._parts(model, batch)

    def cost(self) -> Cost:
        return self._parts.cost()


@method("fast_ig")
@dataclass(frozen=True)
class FastIG(InputXGradient):
    """Integrated gradients in one pass, exact for networks that scale with their input (ReLU, no biases).

    There x · gradient equals integrated gradients from zero. Zero is where the network's own input is zero,
    so the input counts from the mean colour (`input="pixels"`: from black, exact only if the model does not
    normalise). On any other network this is input × gradient.

    Paper: Hesse et al. 2021, "Fast Axiomatic Attribution for Neural Networks"
    """
