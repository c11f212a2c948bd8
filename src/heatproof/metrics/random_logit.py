"""The random-logit test: maps of two classes of one picture must differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.pixel_ranking import Sign, signed
from heatproof.metrics._support.reattribution import reattribute
from heatproof.metrics._support.shared_answers import logits
from heatproof.metrics._support.similarity import Similarity, similar
from heatproof.metrics._support.undefined import CONSTANT_MAP, is_constant, scored
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.types import Attribution, Price, Scored


@metric
@dataclass(frozen=True)
class RandomLogit:
    """The similarity of the maps of the explained class and of another class.

    The other class is drawn at random for each image (the mean over `draws`), or is the likeliest other one. A map that
    does not depend on the class scores 1. With two classes, signed maps of a gradient are opposites (-1) and their
    magnitudes equal (1): the sign rule reverses the result.

    Paper: Sixt et al. 2020, "When Explanations Lie: Why Many Modified BP Attributions Fail"
    """

    unfit: ClassVar[Unfit] = (("value", "there is no other class whose map could be compared"),)

    other: Literal["random", "second"] = "random"
    similarity: Similarity = "ssim"
    sign: Sign = "signed"  # maps as they are, their positive parts, or their magnitudes
    draws: int = 1

    higher_is_better: ClassVar[bool] = False
    measures: ClassVar[Literal["randomisation"]] = "randomisation"
    chance: ClassVar[float] = 0.0  # of independent pixels; smooth maps are alike by chance

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise BadInput(f"draws must be at least 1, got {self.draws}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        batch = attribution.batch
        before = signed(attribution.maps, self.sign)
        found = []
        for targets in self._others(attribution):
            other = signed(reattribute(attribution, batch=batch.aimed(targets)), self.sign)
            # A constant map of the other class has no similarity to a map with contrast.
            found.append(similar(before, other, self.similarity).nan_to_num(nan=0.0))
        return scored(torch.stack(found).mean(0), {CONSTANT_MAP: is_constant(before).cpu()})

    def _others(self, attribution: Attribution) -> list[Tensor]:
        batch = attribution.batch
        answers = logits(attribution.model, batch.images).cpu()
        targets, count = batch.targets.cpu(), answers.shape[1]
        if self.other == "second":
            without = answers.scatter(1, targets[:, None], -torch.inf)
            return [without.argmax(1)] if len(batch) else [targets]
        drawn = []
        for draw in range(self.draws):
            # An offset of 1 … count - 1, modulo count: never the explained class itself.
            steps = [
                int(torch.randint(1, count, (1,), generator=dice)) for dice in batch.generators(f"random logit {draw}")
            ]
            drawn.append((targets + torch.tensor(steps, dtype=torch.int64)) % count)
        return drawn

    def cost(self) -> Price:
        return Price(shared=1, explanations=self.draws if self.other == "random" else 1)


metric.alias(
    "RandomLogit",
    RandomLogit,
    "Quantus. There SSIM is taken along the flattened map, and the class depends on the place in the batch.",
    sign="absolute",
)
