"""RISE: for each pixel, the answer averaged over the random soft masks that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.baselines import Baseline, revision_of, start
from heatproof.methods._support.field_checks import check_count, check_share
from heatproof.methods._support.upsample import interpolation
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout


def stretched(cells: int, side: int) -> Tensor:
    """Bilinear interpolation of `cells` values to a side's places and one cell more: (places, cells)."""
    return interpolation(cells, (cells + 1) * -(-side // cells))


class Masks(NamedTuple):
    """Coarse grids of visible cells and their shifts; small enough to draw all masks of an image at once."""

    cells: Tensor  # (masks, cells, cells) of zeros and ones
    top: Tensor  # (masks,)
    left: Tensor  # (masks,)

    @staticmethod
    def draw(count: int, cells: int, share: float, size: Sequence[int], generator: torch.Generator) -> Masks:
        visible = (torch.rand(count, cells, cells, generator=generator) < share).float()
        spare = [(cells + 1) * -(-side // cells) - side + 1 for side in size]
        top, left = (torch.randint(room, (count,), generator=generator) for room in spare)
        return Masks(visible, top, left)


def visibility(size: Sequence[int], masks: Masks) -> Tensor:
    """The masks at full size, (masks, H, W) in [0, 1]: each grid enlarged and shifted."""
    (down, first), (across, left) = (
        (stretched(masks.cells.shape[-1], side), shift)
        for side, shift in zip(size, (masks.top, masks.left), strict=True)
    )
    rows = down[first[:, None] + torch.arange(size[0])]  # (masks, H, cells)
    columns = across[left[:, None] + torch.arange(size[1])]
    return rows @ masks.cells @ columns.mT


@method
@dataclass(frozen=True)
class RISE:
    """The answer to randomly masked pictures, averaged for each pixel over the masks that show it.

    Paper: Petsiuk et al. 2018, "RISE: Randomized Input Sampling for Explanation of Black-box Models"

    The paper takes 4000 to 8000 masks and divides by the expected number that show a pixel. Here the divisor is the
    actual number: the same in the limit, but what all answers have in common then adds no noise, which otherwise makes
    up most of the map. Hidden places fade to the `baseline` picture. The map is a pixel's mean minus the mean over all
    masks, which keeps the order of pixels and makes zero neutral.
    """

    random: ClassVar[bool] = True

    normalisation: ClassVar[Rule] = "positive"

    masks: int = 1000
    cells: int = 7  # per side
    share: float = 0.5  # of cells that are visible
    baseline: Baseline = "mean"
    readout: Readout = "logit"

    revision = revision_of("baseline")

    def __post_init__(self) -> None:
        check_count("masks", self.masks)
        check_count("cells", self.cells)
        check_share("share", self.share, some=True)

    @property
    def signed(self) -> bool:
        return True

    def cost(self) -> Cost:
        return Cost(self.masks, 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        images, size = batch.images, batch.images.shape[2:]
        background = start(self.baseline, model, batch)
        way = images - background
        passes = engine.settled(model, images, "forward")
        together = min(engine.at_once(images, passes.choice.size), self.masks)
        room = images.new_empty(together, *images.shape[1:])  # the same memory for every block
        total, times = torch.zeros_like(images[:, 0]), torch.zeros_like(images[:, 0])  # sums of answers, of visibility
        usual = images.new_zeros(len(batch), 1, 1)
        first = images.new_zeros(())
        for number, generator in enumerate(batch.generators("rise")):
            masks = Masks.draw(self.masks, self.cells, self.share, size, generator)
            for rows in torch.arange(self.masks).split(together):
                visible = visibility(size, Masks(*(part[rows] for part in masks))).to(images)
                shown = room[: len(rows)]
                torch.addcmul(background[number], way[number], visible[:, None], out=shown)
                target = batch.targets[number].expand(len(rows))
                values = model.read(engine.forward(model, shown, passes), target, self.readout).to(visible.dtype)
                first = values[0] if rows[0] == 0 else first  # subtracted, to avoid rounding of the common part
                total[number] += torch.tensordot(values - first, visible, 1)
                times[number] += visible.sum(0)
                usual[number] += (values - first).sum() / self.masks
        return torch.where(times > 0, total / times - usual, 0)
