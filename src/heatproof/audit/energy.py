"""The energy score: how far out of distribution an evaluation's samples are, compared with the originals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof import engine
from heatproof.audit.evaluation import Evaluation, Removal
from heatproof.errors import BadInput
from heatproof.occlusion.occluded_images import Samples
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.types import REMOVED, Attribution, Curve, Logits, Model, Scored


def energy(logits: Logits, temperature: float = 1.0) -> Tensor:
    """-T logsumexp(logits / T): low on in-distribution pictures."""
    return -temperature * torch.logsumexp(logits / temperature, -1)


def energies(model: Model, samples: Samples, temperature: float = 1.0) -> Tensor:
    """(B, K) float64 on the CPU: the energy of every sample."""
    logits = engine.forward(model, samples.images.flatten(0, 1).clamp(0, 1))
    return energy(logits.double(), temperature).view(samples.images.shape[:2]).cpu()


@metric
@dataclass(frozen=True)
class Energy:
    """How much further out of distribution an evaluation's samples are than the original pictures, by energy score.

    The curve begins at the original: AUROC and FPR95 are computed from it over all images. Legitimately removed
    evidence raises the energy too, so 0 is not to be expected.

    Paper: Liu et al. 2020, "Energy-based Out-of-distribution Detection"
    """

    unfit: ClassVar[Unfit] = (
        ("yes_no", "the energy of a single logit says which side it is on, not how strange a picture is"),
        ("value", "an energy is made of the logits of classes"),
    )

    of: Evaluation = field(default_factory=Removal)
    temperature: float = 1.0

    higher_is_better: ClassVar[bool] = False
    axes: ClassVar[tuple[str, str]] = (REMOVED, "energy")
    measures: ClassVar[Literal["pictures"]] = "pictures"

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise BadInput(f"temperature of energy must be positive, got {self.temperature}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        samples = self.of.samples(attribution)
        images = attribution.batch.images
        nothing = torch.zeros(len(images), 1, dtype=torch.float64)
        whole = energies(attribution.model, Samples(images[:, None], nothing), self.temperature)
        strange = energies(attribution.model, samples, self.temperature)
        curve = Curve(torch.cat([nothing, samples.removed], 1), torch.cat([whole, strange], 1))
        return Scored((strange - whole).mean(1), curve=curve)
