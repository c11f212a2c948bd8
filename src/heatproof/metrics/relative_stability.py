"""Relative stability: the change of a map relative to the change of its picture, of the output, or of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.methods._support.layer_activations import activations
from heatproof.methods.cam import cam_layer
from heatproof.metrics._support.neighbours import Law, Neighbour, Neighbourhood, length
from heatproof.metrics._support.shared_answers import answered, logits
from heatproof.metrics._support.undefined import ZERO_MAP, is_zero, scored
from heatproof.registry import metric
from heatproof.types import Attribution, Batch, Price, Scored

Relative = Literal["norm", "elementwise"]
SMALLEST = 1e-6  # lower bound of denominators


def relative_distance(before: Tensor, after: Tensor, relative: Relative, floor: float) -> Tensor:
    """(B,) the relative change of each row.

    `norm` is |a - a'| / |a|; `elementwise` the length of (a - a') / a, with magnitudes of a below `floor` times the
    largest taken for that.
    """
    first, second = before.double().flatten(1), after.double().flatten(1)
    if relative == "norm":
        return length(first - second) / length(first)
    least = floor * first.abs().amax(1, keepdim=True)
    return length((first - second) / first.abs().clamp_min(least))


@dataclass(frozen=True)
class RelativeStability:
    """The base of the three: the largest quotient over neighbours that keep their class."""

    radius: float = 0.02  # of the noise, in units of the pixel range
    draws: int = 16
    law: Law = "uniform"
    relative: Relative = "norm"  # `elementwise` is the published one, which a few pixels near zero decide
    floor: float = 1e-3  # of elementwise divisors, as a share of the largest
    least: int = 10  # neighbours of the same class, for there to be a score

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["robustness"]] = "robustness"

    def __post_init__(self) -> None:
        self._neighbourhood  # noqa: B018  refuses fields that make none
        if not 1 <= self.least <= self.draws:
            raise BadInput(f"least must be from 1 to draws ({self.draws}), got {self.least}")
        if not 0 < self.floor <= 1:
            raise BadInput(f"floor must be a share of the largest magnitude, above 0 and at most 1, got {self.floor}")

    @property
    def _neighbourhood(self) -> Neighbourhood:
        return Neighbourhood(self.radius, self.draws, self.law)

    def moved(self, attribution: Attribution, near: Sequence[Neighbour]) -> list[Tensor]:
        """For each neighbour (B,): the change of the quantity in the denominator."""
        raise TypeError("a relative stability must say what it is relative to")

    def __call__(self, attribution: Attribution, /) -> Scored:
        maps = attribution.maps
        found = self._neighbourhood.of(attribution)
        kept = torch.stack([neighbour.same_class for neighbour in found], 1).cpu()
        below = torch.stack(self.moved(attribution, found), 1).cpu()
        above = torch.stack(
            [relative_distance(maps, neighbour.maps, self.relative, self.floor) for neighbour in found], 1
        ).cpu()
        quotients = (above / below.clamp_min(SMALLEST)).where(kept, 0.0)
        few = f"fewer than {self.least} neighbours keep their class"
        still = f"nothing moves that {self.what} is measured by"
        undefined = {
            ZERO_MAP: is_zero(maps),
            few: kept.sum(1) < self.least,
            still: (below.where(kept, 0.0) == 0).all(1),
        }
        return scored(quotients.amax(1), undefined, {"same_class": kept.double().mean(1)})

    what: ClassVar[str] = "stability"

    def cost(self) -> Price:
        return self._neighbourhood.cost()


@metric
@dataclass(frozen=True)
class RelativeInputStability(RelativeStability):
    """The largest relative change of the map per relative change of the picture, among noisy copies of one class.

    A map that ignores the picture scores a perfect 0, so read it beside the blind controls.

    Paper: Agarwal et al. 2022, "Rethinking Stability for Attribution-based Explanations"
    """

    what: ClassVar[str] = "input stability"

    def moved(self, attribution: Attribution, near: Sequence[Neighbour]) -> list[Tensor]:
        images = attribution.batch.images
        return [relative_distance(images, other.batch.images, self.relative, self.floor) for other in near]


@metric
@dataclass(frozen=True)
class RelativeOutputStability(RelativeStability):
    """The largest relative change of the map per change of the logits, among noisy copies of one class.

    A map that ignores the picture scores a perfect 0, so read it beside the blind controls.

    Paper: Agarwal et al. 2022, "Rethinking Stability for Attribution-based Explanations"
    """

    what: ClassVar[str] = "output stability"

    def moved(self, attribution: Attribution, near: Sequence[Neighbour]) -> list[Tensor]:
        model = attribution.model
        before = logits(model, attribution.batch.images).double()
        return [length(logits(model, other.batch.images).double() - before) for other in near]

    def cost(self) -> Price:
        again = self._neighbourhood.cost()
        return again._replace(shared=again.shared + self.draws + 1)


@metric
@dataclass(frozen=True)
class RelativeRepresentationStability(RelativeStability):
    """The largest relative change of the map per relative change of one layer, among noisy copies of one class.

    The layer is by default the one that CAM methods read. A map that ignores the picture scores a
    perfect 0, so read it beside the blind controls.

    Paper: Agarwal et al. 2022, "Rethinking Stability for Attribution-based Explanations"
    """

    layer: str = ""  # dotted name; empty for the model's CAM layer

    what: ClassVar[str] = "representation stability"

    def moved(self, attribution: Attribution, near: Sequence[Neighbour]) -> list[Tensor]:
        before = self._representation(attribution, attribution.batch)
        return [
            relative_distance(before, self._representation(attribution, other.batch), self.relative, self.floor)
            for other in near
        ]

    def _representation(self, attribution: Attribution, batch: Batch) -> Tensor:
        if not len(batch):
            return batch.images
        layer = self.layer or cam_layer(attribution.model, batch)
        model = attribution.model
        return answered(f"activations of {layer}", model, batch, lambda: activations(model, batch.images, layer))

    def cost(self) -> Price:
        again = self._neighbourhood.cost()
        return again._replace(shared=again.shared + self.draws + 1)


for _kind in (RelativeInputStability, RelativeOutputStability, RelativeRepresentationStability):
    metric.alias(
        _kind.__name__,
        _kind,
        "Quantus. There noise only brightens, from 0.02 to 0.2, zeros of a map are divided by 1e-6, and one neighbour "
        "of another class makes the score NaN.",
        radius=0.2,
        draws=200,
        law="brighter",
        relative="elementwise",
        floor=1e-6,
    )
