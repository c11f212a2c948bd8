"""Smoothness: whether confidence falls monotonically as more is removed, and whether that is due to the map."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof import engine
from heatproof.audit.evaluation import Controlled, Evaluation, Removal, follows_map, random_maps
from heatproof.occlusion.occluded_images import Samples
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.stats.falling import tau
from heatproof.types import REMOVED, Attribution, Curve, Scored


def kendall(removed: Tensor, confidence: Tensor) -> Tensor:
    """(B,): tau-b between the kept share and the confidence; 1 if it falls with every step, 0 if it never moves."""
    rows = [tau(x, y) for x, y in zip(removed.numpy(), confidence.numpy(), strict=True)]
    return torch.tensor(rows, dtype=torch.float64)


def confidences(attribution: Attribution, samples: Samples) -> Curve:
    """(B, 1 + K): the target's probability on the picture itself and on every sample."""
    model, batch = attribution.model, attribution.batch
    count, levels = samples.images.shape[:2]
    shown = torch.cat([batch.images[:, None], samples.images.clamp(0, 1)], 1)
    targets = batch.targets.repeat_interleave(1 + levels)
    found = model.read(engine.forward(model, shown.flatten(0, 1)), targets, "probability").double().cpu()
    removed = torch.cat([torch.zeros(count, 1, dtype=torch.float64), samples.removed.double()], 1)
    return Curve(removed, found.view(count, 1 + levels))


def mean_height(curve: Curve) -> Tensor:
    """(B,): the area under each curve over its own range, points in the order of what is removed.

    Curves can be compared where their ranges are the same: those made in a map's order go from nothing to 90 %.
    """
    x, order = curve.x.sort(stable=True, dim=1)
    span = x[:, -1] - x[:, 0]
    area: Tensor = torch.trapezoid(curve.y.gather(1, order), x, dim=1)
    return area / span.clamp_min(1e-12)


def fall(curve: Curve) -> Tensor:
    """(B,): the confidence lost between the whole picture and the sample with most removed, wherever it is in the
    order.
    """
    most = curve.x.argmax(1, keepdim=True)
    return curve.y[:, 0] - curve.y.gather(1, most)[:, 0]


@metric
@dataclass(frozen=True)
class Smoothness:
    """Kendall's tau between the kept share and the confidence: 1 if confidence falls with every removal.

    A smooth curve is no proof of a faithful map. The details give the same tau for the random and the inverted order
    and for the evaluation's own controls, how far the curve falls at all (`fall`), and how much confidence the random
    order leaves (`scope`, R-OMS). If the map has no influence on what is removed, there is no such order.
    """

    unfit: ClassVar[Unfit] = (("value", "it judges by the probability of the class"),)

    of: Evaluation = field(default_factory=Removal)
    controls: bool = True

    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "confidence")
    measures: ClassVar[Literal["pictures"]] = "pictures"

    def __call__(self, attribution: Attribution, /) -> Scored:
        curve = confidences(attribution, self.of.samples(attribution))
        values = kendall(*curve)
        beside = self.beside(attribution) if self.controls else {}
        return Scored(values, curve=curve, details={"fall": fall(curve), **beside})

    def beside(self, attribution: Attribution) -> dict[str, Tensor]:
        """(B,) tau of each control, and the height of the random order's curve."""
        others = {
            "random": replace(attribution, maps=random_maps(attribution.batch)),
            "inverted": replace(attribution, maps=-attribution.maps),
        }
        shown = {name: self.of.samples(other) for name, other in others.items() if follows_map(self.of)}
        if isinstance(self.of, Controlled):
            shown.update(self.of.control_samples(attribution))
        curves = {name: confidences(attribution, samples) for name, samples in shown.items()}
        taus = {name: kendall(*curve) for name, curve in curves.items()}
        return {**taus, "scope": mean_height(curves["random"])} if "random" in curves else taus
