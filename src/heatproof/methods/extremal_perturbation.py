"""Extremal perturbation: the smooth mask of a given area that changes the answer most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof import engine
from heatproof.errors import BadInput
from heatproof.methods._support.baselines import blurred
from heatproof.methods._support.field_checks import check_count
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout

Mode: TypeAlias = Literal["preserve", "delete", "both"]

LEVELS = 8  # of blur, from none to the strongest
STRONGEST = 20 / 224  # standard deviation of the strongest blur, as a share of the shorter side
SMOOTHING = 3  # cells: the width of the smooth disk that each cell of a mask draws
FINE = 4  # points per cell and side at which the smooth maximum is taken
COLDNESS = 20.0  # of the smooth maximum over disks: the larger, the nearer to the maximum
RATE, INERTIA = 120 / 1024, 0.9  # the rate is for one step and one cell
AREA_WEIGHT, AREA_GROWTH = 20.0, 16.4  # of the penalty, and by how much it grows until the last step
FIRST = 0.01  # how far the first masks are from even


@cache
def disks(step: int) -> Tensor:
    """(neighbours, step²): what a cell adds to each pixel of a neighbouring cell, from 1 at its own centre to 0."""
    reach = torch.arange(-SMOOTHING, SMOOTHING + 1, dtype=torch.float32)
    within = (torch.arange(step, dtype=torch.float32) + 0.5) / step - 0.5
    along = reach[:, None] - within  # cells from a pixel to each neighbour's centre
    distance = (along[:, None, :, None].square() + along[None, :, None, :].square()).sqrt()
    falling = torch.exp(-8 * (distance / SMOOTHING - 0.25).clamp(min=0).square())
    return (falling * (distance <= SMOOTHING)).flatten(2).flatten(0, 1)


def smooth_masks(cells: Tensor, step: int, size: tuple[int, int]) -> Tensor:
    """Masks (B, H, W) in [0, 1] from the values of cells (B, h, w): a smooth maximum of the disks that cells draw.

    Nothing lies beyond the edges, and the area of a mask is counted where it is seen.
    """
    height, width = cells.shape[1:]
    fine = min(step, FINE)
    around = F.unfold(cells[:, None], 2 * SMOOTHING + 1, padding=SMOOTHING)  # (B, neighbours, cells)
    drawn = around[:, :, None] * disks(fine).to(cells)[:, :, None]  # (B, neighbours, points of a cell, cells)
    found = (drawn * (COLDNESS * drawn).softmax(1)).sum(1)
    masks = F.fold(found, (height * fine, width * fine), fine, stride=fine)
    if fine < step:  # interpolated between: 0.02 off at most on the rim of a block, in a tenth of the time
        masks = F.interpolate(masks, (height * step, width * step), mode="bilinear", align_corners=False)
    return masks[:, 0, : size[0], : size[1]]


def area_penalty(masks: Tensor, area: float) -> Tensor:
    """(B,): how far the sorted mask is from one that is 1 on a share `area` of the pixels and 0 elsewhere."""
    ordered = masks.flatten(1).sort(1).values
    zeros = round((1 - area) * ordered.shape[1])
    template = (torch.arange(ordered.shape[1], device=masks.device) >= zeros).to(masks)
    return (ordered - template).square().mean(1)


def pyramid(images: Images) -> Tensor:
    """(B, levels, C, H, W): the pictures blurred more and more."""
    shares = torch.linspace(0, STRONGEST, LEVELS)[1:].tolist()
    return torch.stack([images, *(blurred(images, share) for share in shares)], 1)


def shown_through(masks: Tensor, levels: Tensor) -> Images:
    """Pictures that are sharp where the mask is 1 and blurred where it is 0, differentiable in the mask."""
    place = (1 - masks) * (levels.shape[1] - 1)
    steps = torch.arange(levels.shape[1], device=masks.device).view(1, -1, 1, 1)
    weights = (1 - (place[:, None] - steps).abs()).clamp(min=0)
    return (weights[:, :, None] * levels).sum(1)


@method
@dataclass(frozen=True)
class ExtremalPerturbation:
    """The smooth mask of a given area that changes the answer most, found by gradient ascent.

    `preserve` looks for the area that keeps the answer highest when all else is blurred, `delete` for the one whose
    blur lowers it most, `both` for one that does both. A mask is nearly 0 or 1: it names a region and does not order
    the pixels within. The answer counts in units of what the strongest blur of the whole picture changes, and the
    first mask leans to where the answer rises: an even one would grow wherever pixels come first. Nothing is drawn at
    random; what is shown is mirrored in every second step.

    Paper: Fong et al. 2019, "Understanding Deep Networks via Extremal Perturbations and Smooth Masks"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"

    area: float = 0.1  # share of the picture
    steps: int = 800
    cells: int = 32  # of the mask, along the shorter side
    mode: Mode = "preserve"
    readout: Readout = "logit"

    def __post_init__(self) -> None:
        if not 0 < self.area < 1:
            raise BadInput(f"area must lie between 0 and 1, got {self.area}")
        check_count("steps", self.steps)
        check_count("cells", self.cells)

    def cost(self) -> Cost:
        often = self.steps * len(self.signs)
        return Cost(often + 2 * len(self.signs) + 2, often + 2 * len(self.signs))

    @property
    def signs(self) -> tuple[int, ...]:
        """+1 where the mask is what is shown, -1 where it is what is hidden."""
        return {"preserve": (1,), "delete": (-1,), "both": (1, -1)}[self.mode]

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        size = engine.batch_size(model, batch.images, "gradient")
        rows = torch.arange(len(batch)).split(size)
        return torch.cat([self._found(model, batch.select(few)) for few in rows])

    def _found(self, model: Model, batch: Batch) -> Maps:
        """The masks of a few pictures, side by side."""
        with torch.inference_mode(False), torch.enable_grad():
            ascent = Ascent(model, batch, self)
            even = batch.images.new_full((len(batch), *ascent.grid), 0.5)
            lean = ascent.slope(even, 0) + ascent.slope(even, 1)
            cells = even - FIRST * lean / lean.abs().amax((1, 2), keepdim=True).clamp(min=1e-30)
            speed, rate = torch.zeros_like(cells), RATE * cells[0].numel() / self.steps
            for turn in range(self.steps):
                slope = ascent.slope(cells, turn, AREA_WEIGHT * AREA_GROWTH ** (turn / self.steps))
                speed = INERTIA * speed + (1 - INERTIA) * slope
                cells = (cells - rate * speed).clamp(0, 1)
            return smooth_masks(cells, ascent.step, ascent.sides)


class Ascent:
    """The slope of the area's penalty minus the answer, in units of what the strongest blur of the picture changes."""

    def __init__(self, model: Model, batch: Batch, method: ExtremalPerturbation) -> None:
        self.model, self.batch, self.method = model, batch, method
        self.sides = (batch.images.shape[2], batch.images.shape[3])
        self.step = max(1, min(self.sides) // method.cells)
        self.grid = tuple(-(-side // self.step) for side in self.sides)
        self.levels = pyramid(batch.images).clone()
        ends = [
            model.read(engine.forward(model, images), batch.targets, method.readout)
            for images in (self.levels[:, 0], self.levels[:, -1])
        ]
        self.unit = (ends[0] - ends[1]).abs().clamp(min=1e-6).view(-1, 1, 1).to(batch.images).clone()
        self.way = engine.settled(model, batch.images, "gradient")

    def slope(self, cells: Tensor, turn: int, weight: float = 0.0) -> Tensor:
        """The gradient with respect to the cells, with this weight of the area's penalty."""
        leaf = cells.clone().requires_grad_()
        masks = smooth_masks(leaf, self.step, self.sides)
        pull = torch.zeros_like(masks)
        for sign in self.method.signs:
            pull = pull - self._gain(masks if sign > 0 else 1 - masks, turn) / self.unit
        if weight:
            penalty = weight * area_penalty(masks, self.method.area).sum()
            pull = pull + torch.autograd.grad(penalty, masks, retain_graph=True)[0]
        return torch.autograd.grad(masks, leaf, pull)[0]

    def _gain(self, masks: Tensor, turn: int) -> Tensor:
        """The answer's gradient with respect to a mask; what it shows is mirrored in every second step."""
        leaf = masks.detach().requires_grad_()
        shown = shown_through(leaf, self.levels)
        mirrored = turn % 2 == 1
        seen = shown.detach().flip(3) if mirrored else shown.detach()
        slopes, _ = engine.gradient(self.model, seen.clamp(0, 1), self.batch.targets, self.method.readout, self.way)
        return torch.autograd.grad(shown, leaf, slopes.flip(3) if mirrored else slopes)[0]
