"""Gradients in expectation over baselines."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heatproof.methods.baselines import Baseline, noise_from, origins
from heatproof.methods.paths import check_count, sum_contributions
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout, keyed_seed


class Dice:
    """The random part of a draw: where on the path, and the noise on the picture; keyed by image and draw."""

    def __init__(self, batch: Batch, draws: int, stratified: bool, noise: float) -> None:
        self.seeds, self.shape = batch.seeds("expected"), batch.images.shape[1:]
        self.draws, self.stratified, self.noise = draws, stratified, noise

    def __call__(self, image: Tensor, draw: Tensor) -> tuple[Tensor, Tensor | None]:
        """Places (rows,) on the way, and noise (rows, C, H, W) if there is any."""
        keys = zip(image.tolist(), draw.tolist(), strict=True)
        generators = [torch.Generator().manual_seed(keyed_seed(self.seeds[i], k)) for i, k in keys]
        places = torch.stack([torch.rand((), generator=generator) for generator in generators])
        if self.stratified:
            places = (draw.cpu() + places) / self.draws
        return places, noise_from(self.shape, generators) if self.noise else None


def expected(model: Model, batch: Batch, background: Baseline, dice: Dice, readout: Readout) -> Tensor:
    """E (x - x') · gradient(x' + a (x - x')) over backgrounds x' and places a, per channel."""
    begin = origins(background, model, batch)

    def points(image: Tensor, draw: Tensor) -> tuple[Images, Images]:
        places, noise = dice(image, draw)
        finish = batch.images[image]
        if noise is not None:
            finish.add_(noise.to(finish), alpha=dice.noise)
        origin = begin(image, draw)
        way = finish.sub_(origin)
        return torch.addcmul(origin, places.to(way).view(-1, 1, 1, 1), way), way

    return sum_contributions(model, batch, points, dice.draws, readout) / dice.draws


@method
@dataclass(frozen=True)
class ExpectedGradients:
    """Integrated gradients averaged over many baselines, one random point of one path per draw.

    The points are stratified over the path. With `background` a data set of training images (or its
    registered name) this is the paper's method; the default background needs no data: noise with the model's
    mean and spread. An image is never its own background.

    Paper: Erion et al. 2021, "Improving performance of deep learning models with axiomatic attribution priors
    and expected gradients"
    """

    background: Baseline = "gaussian"
    draws: int = 50
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def __post_init__(self) -> None:
        check_count("draws", self.draws)

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        dice = Dice(batch, self.draws, stratified=True, noise=0.0)
        return expected(model, batch, self.background, dice, self.readout)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def cost(self) -> Cost:
        return Cost(self.draws, self.draws)


@method
@dataclass(frozen=True)
class GradientShap:
    """Expected gradients with noise on the picture and unstratified points: an estimate of SHAP values.

    `background` as in expected_gradients; `noise` is the standard deviation in pixel units.

    Paper: Lundberg & Lee 2017, "A Unified Approach to Interpreting Model Predictions"
    """

    background: Baseline = "gaussian"
    draws: int = 50
    noise: float = 0.02
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def __post_init__(self) -> None:
        check_count("draws", self.draws)

    @property
    def signed(self) -> bool:
        return keeps_sign(self.pooling)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        dice = Dice(batch, self.draws, stratified=False, noise=self.noise)
        return expected(model, batch, self.background, dice, self.readout)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def cost(self) -> Cost:
        return Cost(self.draws, self.draws)
