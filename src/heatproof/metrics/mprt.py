"""Model parameter randomisation: a map that explains the model must change when its parameters are randomised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.methods.smoothgrad import Smoothed
from heatproof.metrics._support.pixel_ranking import Sign, signed
from heatproof.metrics._support.randomised import Draw, Order, layers_in_order, randomised, stages
from heatproof.metrics._support.reattribution import reattribute
from heatproof.metrics._support.similarity import Similarity, similar
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.metrics.complexity import entropy
from heatproof.registry import metric
from heatproof.types import Attribution, Curve, Price, Scored


@dataclass(frozen=True)
class Randomised:
    """The base of MPRT: how the model is randomised, and how maps are compared."""

    order: Order = "top_down"
    similarity: Similarity = "spearman"
    sign: Sign = "absolute"  # maps as they are, their positive parts, or their magnitudes
    stages: int = 5  # number of randomised models at most, evenly spaced over the layers; in the last all are
    draw: Draw = "permuted"  # each parameter's own entries in another order, or Gaussian noise of their size

    higher_is_better: ClassVar[bool] = False
    axes: ClassVar[tuple[str, str]] = ("share of the layers reached", "similarity to the map of the model")
    measures: ClassVar[str] = "randomisation"
    chance: ClassVar[float] = 0.0  # of independent pixels; smooth maps are alike by chance

    def __post_init__(self) -> None:
        if self.stages < 1:
            raise BadInput(f"stages must be at least 1, got {self.stages}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        model, batch = attribution.model, attribution.batch
        reached = self._stages(attribution)
        before = signed(attribution.maps, self.sign)
        steps = []
        for names in reached:
            other = randomised(model, names, self.draw, batch.seed)
            steps.append(similar(before, signed(reattribute(attribution, model=other), self.sign), self.similarity))
        curve = torch.stack(steps, 1) if steps else torch.zeros(len(batch), 0, dtype=torch.float64)
        # A map that is constant after randomisation has no similarity left.
        flat = is_constant(before).cpu()
        curve = curve.nan_to_num(nan=0.0)
        x = torch.arange(1, len(reached) + 1, dtype=torch.float64) / max(1, len(reached))
        details = {"last": curve[:, -1], "first": curve[:, 0]} if steps else {}
        return scored(curve.mean(1), {CONSTANT_MAP: flat}, details, Curve(x, curve))

    def _stages(self, attribution: Attribution) -> list[tuple[str, ...]]:
        if not len(attribution.batch):
            return []
        found = layers_in_order(attribution.model, attribution.batch.images)
        return stages(found, self.order, self.stages)

    def cost(self) -> Price:
        return Price(explanations=self.stages)


@metric("mprt")
@dataclass(frozen=True)
class MPRT(Randomised):
    """The similarity of the map to itself as the model's layers are randomised one after the other.

    The mean over the stages of the similarity to the map of the intact model, which is itself not part of the mean.
    Layers are randomised from the output down, from the input up, or each part by itself. A map that ignores the model
    scores 1. A faithful map need not reach 0: maps that are multiplied by the picture stay similar through the picture,
    and from the output down blurry maps change first.

    Paper: Adebayo et al. 2018, "Sanity Checks for Saliency Maps"
    """


@metric("smooth_mprt")
@dataclass(frozen=True)
class SmoothMPRT(Randomised):
    """The parameter randomisation test on maps that are averaged over noisy copies of the picture.

    The intact model and all randomised ones get the same noise, so that only the model differs.

    Paper: Hedström et al. 2023, "Sanity Checks Revisited: An Exploration to Repair the Model Parameter Randomisation
    Test"
    """

    order: Order = "bottom_up"
    draws: int = 50
    noise: float = 0.1  # its deviation, as a share of the picture's range

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < 1:
            raise BadInput(f"draws must be at least 1, got {self.draws}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        smooth = replace(attribution, method=Smoothed(attribution.explainer, self.draws, self.noise))
        return super().__call__(replace(smooth, maps=reattribute(smooth)))

    def cost(self) -> Price:
        return Price(explanations=self.draws * (self.stages + 1))


def histogram_entropy(values: Tensor, bins: int, reach: float) -> Tensor:
    """(B, n) -> (B,): the entropy of the values' histogram from -reach to reach; the end bins include values beyond."""
    places = ((values.double().clamp(-reach, reach) + reach) / (2 * reach) * bins).long().clamp(max=bins - 1)
    counts = torch.zeros(len(values), bins, dtype=torch.float64)
    counts.scatter_add_(1, places, torch.ones_like(places, dtype=torch.float64))
    return entropy(counts)


@metric("efficient_mprt")
@dataclass(frozen=True)
class EfficientMPRT:
    """The relative rise of the map's entropy when all layers of the model are randomised.

    The entropy is that of a histogram of the map's values, after the map is divided by the root of its mean square; the
    bins are the same for both maps. A noisy map cannot become more disordered and scores about 0 whether it is faithful
    or not.

    Paper: Hedström et al. 2023, "Sanity Checks Revisited: An Exploration to Repair the Model Parameter Randomisation
    Test"
    """

    bins: int = 100
    reach: float = 5.0  # of the histogram, in roots of the mean square
    draw: Draw = "permuted"

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[str] = "randomisation"
    chance: ClassVar[float] = 0.0  # a map with other values in the same histogram

    def __post_init__(self) -> None:
        if self.bins < 2:
            raise BadInput(f"bins must be at least 2, got {self.bins}")
        if self.reach <= 0:
            raise BadInput(f"reach must be positive, got {self.reach}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        model, batch = attribution.model, attribution.batch
        before = self._entropy(attribution.maps)
        after = before
        if len(batch):
            everything = tuple(name for name, _ in model.network.named_parameters())
            other = randomised(model, everything, self.draw, batch.seed)
            after = self._entropy(reattribute(attribution, model=other))
        details = {"entropy": before, "entropy_randomised": after}
        return scored((after - before) / before, {CONSTANT_MAP: before == 0}, details)

    def _entropy(self, maps: Tensor) -> Tensor:
        flat = maps.flatten(1).double().cpu()
        size = flat.square().mean(1, keepdim=True).sqrt()
        return histogram_entropy(flat / torch.where(size > 0, size, 1.0), self.bins, self.reach)

    def cost(self) -> Price:
        return Price(explanations=1)


metric.alias(
    "ModelParameterRandomisation",
    MPRT,
    "Quantus. There the intact model's similarity of 1 is averaged in, batch norms get weight 1 instead of a draw, and "
    "bare parameters stay.",
    stages=1000,
)
metric.alias(
    "ModelRandomization",
    MPRT,
    "xplique. There weights are drawn from [0, 1) in the upper quarter of the layers, and there is one score.",
    order="independent",
    stages=4,
)
