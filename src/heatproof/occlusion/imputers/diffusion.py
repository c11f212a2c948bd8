"""The diffusion imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from heatproof.occlusion.diffusion import priors
from heatproof.occlusion.diffusion.denoiser import check
from heatproof.occlusion.diffusion.reconstruct import reconstruct
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.occlusion.seeded_pictures import per_row
from heatproof.registry import imputer
from heatproof.types import Batch, Images, Keep, Model


@imputer
@dataclass(frozen=True)
class Diffusion:
    """Hidden pixels are drawn again by an unconditional diffusion model that sees what is kept.

    Paper: Lugmayr et al. 2022, "RePaint: Inpainting using Denoising Diffusion Probabilistic Models"
    """

    prior: Any = "embedded"  # or `trained:FOLDER`, `diffusers:FOLDER_OR_HUB_ID`, a Denoiser
    sampler: Sampler = field(default_factory=Sampler)
    random: ClassVar[bool] = True
    in_words: ClassVar[str] = "what a diffusion model draws"

    def premise(self, model: Model, batch: Batch, /) -> None:
        """Raises if the prior cannot paint such pictures."""
        check(priors.find(self.prior), batch.images)

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        rows = per_row(seeds, images, "diffusion")
        painted = reconstruct(priors.find(self.prior), images, keep, rows, self.sampler)
        return images.where(keep[:, None], painted)
