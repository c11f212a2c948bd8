"""LIME: a linear model that predicts the answer from which superpixels are visible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.batched_views import values_of_views
from heatproof.methods._support.field_checks import check_count, check_not_negative, check_positive
from heatproof.methods._support.path_gradients import Stretch
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.occlusion import bound, impute
from heatproof.occlusion.segmenters.quickshift import Quickshift
from heatproof.occlusion.segments import pixels_of, segments_of
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Images, Imputer, Logits, Maps, Model, Readout, Segmenter, Segments


def proximity(coalitions: Tensor, kernel_width: float) -> Tensor:
    """The weight of each sample (M, n): an exponential kernel of its cosine distance from the whole picture."""
    distance = 1 - coalitions.double().mean(1).sqrt()
    return torch.exp(-((distance / kernel_width) ** 2) / 2)


def ridge(coalitions: Tensor, values: Tensor, weights: Tensor, alpha: float) -> Tensor:
    """The slopes (n,) of a weighted ridge regression with an intercept that is not shrunk."""
    design, values = coalitions.double(), values.double()
    share = weights / weights.sum()
    centred = design - share @ design
    weighted = centred * weights[:, None]
    normal = weighted.T @ centred + alpha * torch.eye(design.shape[1], dtype=torch.float64)
    slopes: Tensor = torch.linalg.solve(normal, weighted.T @ (values - share @ values))
    return slopes


@method
@dataclass(frozen=True)
class LIME:
    """The weights of a linear model that predicts the answer from which superpixels are visible.

    Paper: Ribeiro et al. 2016, "“Why Should I Trust You?”: Explaining the Predictions of Any Classifier"

    `top=5` gives the map that papers often judge instead: 1 on the five superpixels with the largest positive
    weights, and hides segments in black, `imputer=constant`. `temperature` divides the logits before they are read.
    """

    random: ClassVar[bool] = True

    normalisation: ClassVar[Rule] = "positive"

    samples: int = 1000  # the first is the picture itself
    kernel_width: float = 0.25
    alpha: float = 1.0
    top: int | None = None
    temperature: float = 1.0
    segmenter: Segmenter = field(default_factory=Quickshift)
    imputer: Imputer = field(default_factory=Mean)
    readout: Readout = "logit"

    def __post_init__(self) -> None:
        check_count("samples", self.samples, least=2)
        check_positive("kernel_width", self.kernel_width, endless=True)
        check_not_negative("alpha", self.alpha)
        if self.top is not None:
            check_count("top", self.top)
        check_positive("temperature", self.temperature)

    @property
    def signed(self) -> bool:
        return self.top is None

    def cost(self) -> Cost:
        return Cost(self.samples, 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        segments = segments_of(batch, self.segmenter)
        counts = (segments.flatten(1).amax(1) + 1).tolist()
        coalitions = [self._sample(n, g) for n, g in zip(counts, batch.generators("lime"), strict=True)]
        values = self._values(model, batch, segments, coalitions)
        maps = []
        for labels, chosen, value in zip(segments, coalitions, values, strict=True):
            weights = ridge(chosen, value, proximity(chosen, self.kernel_width), self.alpha)
            maps.append(self._kept(weights).to(labels.device)[labels])
        return torch.stack(maps).to(batch.images)

    def _sample(self, count: int, generator: torch.Generator) -> Tensor:
        """(samples, count) bool, True = visible."""
        coalitions = torch.randint(2, (self.samples, count), generator=generator).bool()
        coalitions[0] = True
        return coalitions

    def _values(self, model: Model, batch: Batch, segments: Segments, coalitions: list[Tensor]) -> Tensor:
        """(B, samples): the model's answers for the target, on the CPU."""
        seeds, labels = batch.seeds("lime"), segments.flatten(1).cpu().numpy()

        def paint(stretch: Stretch, room: Images) -> None:
            image, samples, _ = stretch
            visible = pixels_of(coalitions[image][samples.start : samples.stop].numpy(), labels[image])
            keep = torch.from_numpy(visible).to(room.device).view(-1, *room.shape[2:])
            shown = batch.images[image].expand_as(room)
            painter = bound(self.imputer, batch, [image] * len(samples))
            impute(painter, shown, keep, [seeds[image]] * len(samples), room)

        def reading(logits: Logits, targets: Tensor) -> Tensor:
            return model.read(logits.double() / self.temperature, targets, self.readout).cpu()

        return values_of_views(model, batch, paint, self.samples, reading)

    def _kept(self, weights: Tensor) -> Tensor:
        """The weights themselves, or 1 for the `top` largest positive ones."""
        if self.top is None:
            return weights
        rank = weights.argsort(descending=True).argsort()
        return ((rank < self.top) & (weights > 0)).double()
