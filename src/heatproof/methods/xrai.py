"""XRAI: regions ranked by the integrated gradients inside them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.methods._support.field_checks import check_count, check_not_negative, check_positive
from heatproof.methods._support.region_ranking import Picture, dilated_regions, felzenszwalb_labels, rank_regions
from heatproof.methods.integrated_gradients import integrate
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout


@method
@dataclass(frozen=True)
class XRAI:
    """Regions of the picture ranked by their density of integrated gradients.

    Paper: Kapishnikov et al. 2019, "XRAI: Better Attributions Through Regions"

    Integrated gradients from the picture's own darkest and brightest value are averaged. Sizes are meant for
    pictures of side `reference_side` and shrink with smaller ones.
    """

    steps: int = 100  # from each of the two baselines
    scales: tuple[float, ...] = (50, 100, 150, 250, 500, 1200)
    sigma: float = 0.8
    min_size: int = 150
    dilation: int = 5
    min_pixels: int = 50  # regions that add fewer are left out
    reference_side: int = 224
    channel_pooling: Literal["max", "sum"] = "max"
    readout: Readout = "logit"
    signed: ClassVar[bool] = True
    normalisation: ClassVar[Rule] = "min_max"

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        if not self.scales:
            raise BadInput(f"scales must name at least one scale of segmentation, got {self.scales}")
        for scale in self.scales:
            check_positive("scales", scale)
        check_not_negative("sigma", self.sigma)
        check_count("min_size", self.min_size, least=0)
        check_count("dilation", self.dilation, least=0)
        check_count("min_pixels", self.min_pixels, least=0)
        check_count("reference_side", self.reference_side)

    def cost(self) -> Cost:
        return Cost(2 * self.steps, 2 * self.steps)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        # Regions need no model: they are cut in threads while the network works.
        with ThreadPoolExecutor(1) as background:
            pictures = batch.images.permute(0, 2, 3, 1).cpu().numpy()
            regions = background.map(self._regions, pictures)
            values = self._attribution(model, batch).double().cpu().numpy()
        ratio = min(1.0, min(batch.images.shape[2:]) / self.reference_side)
        least = round(self.min_pixels * ratio**2)
        maps = [rank_regions(v, r, least) for v, r in zip(values, regions, strict=True)]
        return torch.from_numpy(np.stack(maps)).to(batch.images)

    def _attribution(self, model: Model, batch: Batch) -> Tensor:
        """Integrated gradients averaged over both baselines, one number per pixel."""
        ends = (batch.images.amin((1, 2, 3), keepdim=True), batch.images.amax((1, 2, 3), keepdim=True))
        parts = [integrate(model, batch, end.expand_as(batch.images), self.steps, self.readout) for end in ends]
        mean = (parts[0] + parts[1]) / 2
        return mean.amax(1) if self.channel_pooling == "max" else mean.sum(1)

    def _regions(self, picture: Picture) -> list[np.ndarray]:
        ratio = min(1.0, min(picture.shape[:2]) / self.reference_side)
        cuts = felzenszwalb_labels(picture, self.scales, self.sigma, self.min_size, self.reference_side)
        return [region for cut in cuts for region in dilated_regions(cut, round(self.dilation * ratio))]
