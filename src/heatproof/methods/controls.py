"""Control methods: maps that know nothing of the model, which every method must beat, and the oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F

from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.field_checks import check_not_negative, check_positive
from heatproof.methods.saliency import Saliency
from heatproof.registry import method
from heatproof.traits import Need, Rule, cost_of, method_traits
from heatproof.types import Batch, Cost, Images, Maps, Method, Model


@method
@dataclass(frozen=True)
class Random:
    """Independent noise on every pixel, keyed by image: the same whatever the batch mates."""

    random: ClassVar[bool] = True

    control: ClassVar[bool] = True
    blind: ClassVar[bool] = True
    distribution: Literal["gaussian", "uniform"] = "gaussian"

    @property
    def signed(self) -> bool:
        return self.distribution == "gaussian"

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        draw = torch.randn if self.distribution == "gaussian" else torch.rand
        size = batch.images.shape[2:]
        maps = [draw(size, generator=generator) for generator in batch.generators("random")]
        return torch.stack(maps).to(batch.images.device)

    def cost(self) -> Cost:
        return Cost(0, 0)


def sobel(images: Images) -> Maps:
    """The gradient magnitude of the brightness, by Sobel's kernels; borders repeat."""
    kernel = images.new_tensor([[1.0, 2.0, 1.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -1.0]]) / 8
    grey = F.pad(images.mean(1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    slopes = F.conv2d(grey, torch.stack([kernel, kernel.T])[:, None])
    return slopes.square().sum(1).sqrt()


@method
@dataclass(frozen=True)
class Edges:
    """A Sobel edge detector: good-looking, and blind to the model."""

    control: ClassVar[bool] = True
    blind: ClassVar[bool] = True
    signed: ClassVar[bool] = False

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return sobel(batch.images)

    def cost(self) -> Cost:
        return Cost(0, 0)


@method
@dataclass(frozen=True)
class Centre:
    """A Gaussian bump in the middle, where photographers put their subjects."""

    control: ClassVar[bool] = True
    blind: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    width: float = 0.25  # standard deviation as a share of each side

    def __post_init__(self) -> None:
        check_positive("width", self.width)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        height, width = batch.images.shape[2:]
        rows = torch.linspace(-0.5, 0.5, height, device=batch.images.device)[:, None]
        columns = torch.linspace(-0.5, 0.5, width, device=batch.images.device)[None]
        bump = torch.exp(-(rows.square() + columns.square()) / (2 * self.width**2))
        return bump.expand(len(batch), height, width).clone()

    def cost(self) -> Cost:
        return Cost(0, 0)


@method
@dataclass(frozen=True)
class Constant:
    """The same value everywhere: the score that ties alone get."""

    control: ClassVar[bool] = True
    blind: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    value: float = 1.0

    def __post_init__(self) -> None:
        check_not_negative("value", self.value)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return batch.images.new_full((len(batch), *batch.images.shape[2:]), self.value)

    def cost(self) -> Cost:
        return Cost(0, 0)


@method
@dataclass(frozen=True)
class Inverted:
    """Another method's map with its sign reversed: it must lose wherever that method wins."""

    control: ClassVar[bool] = True
    signed: ClassVar[bool] = True
    method: Method = field(default_factory=Saliency)

    @property
    def normalisation(self) -> Rule:
        return method_traits(self.method).normalisation

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return -self.method(model, batch)

    def cost(self) -> Cost:
        once: Cost = cost_of(self.method) or Cost(1, 1)
        return once


@method
@dataclass(frozen=True)
class Oracle:
    """The data set's own region, where it has one: 1 inside and `outside` (0) elsewhere."""

    control: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = ("regions",)
    outside: float = 0.0  # -1 for metrics that also expect evidence against the target

    def __post_init__(self) -> None:
        if not -math.inf < self.outside < 1:
            raise BadInput(f"outside must be finite and below 1, which is what the region has, got {self.outside}")

    @property
    def signed(self) -> bool:
        return self.outside < 0

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        if batch.regions is None:
            raise NotApplicable(
                "oracle shows where the answer is, and these pictures have no regions: give masks, as "
                "`heatproof run --masks FOLDER` or in the column mask of a CSV"
            )
        return torch.where(batch.regions, 1.0, self.outside).to(batch.images.dtype)

    def cost(self) -> Cost:
        return Cost(0, 0)
