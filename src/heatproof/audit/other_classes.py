"""Natural pictures of other classes: a reference for the energy score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from heatproof import engine
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.baselines import background, revision_of
from heatproof.occlusion.occluded_images import Samples
from heatproof.registry import part
from heatproof.types import Attribution, Dataset


@part
@dataclass(frozen=True)
class OtherClasses:
    """A reference, not an evaluation: with each picture, whole ones that the model assigns to another class.

    Nothing is removed from these, and still their energy differs. They are drawn by image from up to a hundred
    pictures spread over the data set, independently of the batch.
    """

    pictures: Dataset = field(default_factory=TwoFactor)
    count: int = 9  # as many as an evaluation has levels

    follows_map: ClassVar[bool] = False
    changes_pictures: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise BadInput(f"count of other_classes must be at least 1, got {self.count}")

    revision = revision_of("pictures")

    def samples(self, attribution: Attribution, /) -> Samples:
        """Other pictures; all of the original counts as removed."""
        model, batch = attribution.model, attribution.batch
        every, names = background(self.pictures, model, batch.images)
        classes = engine.forward(model, every).argmax(1).tolist()
        rows = []
        for name, target, dice in zip(batch.ids, batch.targets.tolist(), batch.generators("other class"), strict=True):
            others = [at for at, met in enumerate(classes) if met != target and names[at] != name]
            if not others:
                raise NotApplicable(
                    f"no picture of the data set is of another class than {target} to {model.name}: "
                    "there is nothing to compare energies with"
                )
            rows.append([others[at] for at in torch.randint(len(others), (self.count,), generator=dice).tolist()])
        chosen = torch.tensor(rows, dtype=torch.int64, device=every.device).view(-1, self.count)
        return Samples(every[chosen], torch.ones(chosen.shape, dtype=torch.float64))
