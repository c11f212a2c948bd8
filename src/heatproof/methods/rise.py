"""RISE: the answer averaged over random soft masks, for each pixel over those that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.methods.baselines import Baseline, start
from heatproof.models import engine
from heatproof.registry import method
from heatproof.types import Batch, Cost, Maps, Model, Readout, read


def stretched(cells: int, side: int) -> Tensor:
    """Bilinear interpolation of `cells` values to one cell more than a side's worth of places: (places,
    cells).
    """
    cell = -(-side // cells)
    identity = torch.eye(cells)[None]
    return F.interpolate(identity, (cells + 1) * cell, mode="linear", align_corners=False)[0].T


def visibility(size: Sequence[int], cells: int, share: float, generators: Sequence[torch.Generator]) -> Tensor:
    """One soft mask per generator, (rows, H, W) in [0, 1]: a coarse grid, enlarged and shifted."""
    height, width = size
    down, across = stretched(cells, height), stretched(cells, width)
    found = []
    for generator in generators:
        grid = (torch.rand(cells, cells, generator=generator) < share).float()
        top = int(torch.randint(len(down) - height + 1, (1,), generator=generator))
        left = int(torch.randint(len(across) - width + 1, (1,), generator=generator))
        found.append(down[top : top + height] @ grid @ across[left : left + width].T)
    return torch.stack(found)


@method
@dataclass(frozen=True)
class RISE:
    """The answer to randomly masked pictures, averaged for each pixel over the masks that show it.

    Paper: Petsiuk et al. 2018, "RISE: Randomized Input Sampling for Explanation of Black-box Models"

    The paper takes 4000 to 8000 masks. What is hidden fades to the `baseline` picture.
    """

    masks: int = 1000
    cells: int = 7  # per side
    share: float = 0.5  # of cells that are visible
    baseline: Baseline = "mean"
    readout: Readout = "probability"

    @property
    def signed(self) -> bool:
        return self.readout != "probability"

    def cost(self) -> Cost:
        return Cost(self.masks, 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        images = batch.images
        background = start(self.baseline, model, batch)
        generators = batch.generators("rise")
        total = torch.zeros_like(images[:, 0])
        chunk = 4 * engine.batch_size(model, images, "forward")
        for rows in torch.arange(len(batch) * self.masks).split(chunk):
            which = rows // self.masks
            owner = which.to(images.device)
            drawn = visibility(images.shape[2:], self.cells, self.share, [generators[i] for i in which.tolist()])
            visible = drawn.to(images)
            shown = torch.lerp(background[owner], images[owner], visible[:, None])
            values = read(engine.forward(model, shown), batch.targets[owner], self.readout)
            total.index_add_(0, owner, visible * values.to(visible.dtype)[:, None, None])
        return total / (self.masks * self.share)
