"""Sobol indices: how much of the answer's variance is lost when a cell no longer varies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from heatproof.errors import BadInput
from heatproof.methods._support.baselines import Baseline, revision_of, start
from heatproof.methods._support.batched_views import values_of_views
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.path_gradients import Stretch
from heatproof.methods._support.upsample import upsample
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Images, Logits, Maps, Model, Readout

MOST_CELLS = 10_000  # of the sequence's 21,201 dimensions, two per cell


def designs(count: int, cells: int, seed: int) -> Tensor:
    """Visibilities in [0, 1], (count · (cells + 1), cells): a sample A, then A with each column in turn taken from a
    second sample B. A and B are halves of one scrambled Sobol sequence.
    """
    points = SobolEngine(2 * cells, scramble=True, seed=seed % 2**32).draw(count)
    first, second = points.split(cells, 1)
    swapped = first.repeat(cells, 1, 1)
    which = torch.arange(cells)
    swapped[which, :, which] = second.T
    return torch.cat([first, swapped.flatten(0, 1)])


ROUNDING = 1e-6  # of the answer: a standard deviation below it is float noise


def total_indices(values: Tensor, count: int, rounding: Tensor | float = 0.0) -> Tensor:
    """Jansen's estimate of the total Sobol index of every cell: (…, count · (cells + 1)) -> (…, cells).

    Half the mean squared change when a cell alone is drawn again, as a share of the variance; 0 where nothing varies
    by more than `rounding`.
    """
    values = values.double().unflatten(-1, (-1, count))
    first, swapped = values[..., :1, :], values[..., 1:, :]
    variance = first.var(-1)
    change = (first - swapped).square().mean(-1) / 2
    return torch.where(
        variance > torch.as_tensor(rounding, dtype=torch.float64) ** 2, change / variance.clamp(min=1e-300), 0.0
    )


@method
@dataclass(frozen=True)
class Sobol:
    """How much of the answer's variance under random masks involves a cell: its total Sobol index.

    Every cell of a grid fades to the `baseline` picture by a random amount (`masks="soft"`), or is wholly there or not
    there (`"binary"`). The index counts all that a cell does, alone and together with others, whichever way it moves
    the answer: maps are magnitudes, and indices of cells that act together sum to more than 1. `samples` is a power of
    2.

    Paper: Fel et al. 2021, "Look at the Variance! Efficient Black-box Explanations with Sobol-based Sensitivity
    Analysis"
    """

    random: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"

    samples: int = 32
    cells: int = 8  # per side
    masks: Literal["soft", "binary"] = "soft"
    baseline: Baseline = "black"
    readout: Readout = "logit"

    revision = revision_of("baseline")

    def __post_init__(self) -> None:
        check_count("samples", self.samples, least=2)
        if self.samples & (self.samples - 1):
            raise BadInput(f"samples must be a power of 2, of which Sobol sequences are made, got {self.samples}")
        check_count("cells", self.cells)
        if self.cells**2 > MOST_CELLS:
            raise BadInput(f"cells must be at most {int(MOST_CELLS**0.5)} per side, got {self.cells}")

    def cost(self) -> Cost:
        return Cost(self.samples * (self.cells**2 + 1), 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        labels = Grid(self.cells)(batch.images[:1])[0]
        background = start(self.baseline, model, batch)
        way = batch.images - background
        drawn = [designs(self.samples, self.cells**2, seed) for seed in batch.seeds("sobol")]
        if self.masks == "binary":
            drawn = [design.round() for design in drawn]

        def paint(stretch: Stretch, room: Images) -> None:
            image, points, _ = stretch
            visible = drawn[image][points.start : points.stop].to(room)[:, labels]
            torch.addcmul(background[image], way[image], visible[:, None], out=room)

        def reading(logits: Logits, targets: Tensor) -> Tensor:
            return model.read(logits.double(), targets, self.readout)

        values = values_of_views(model, batch, paint, len(drawn[0]), reading)
        rounding = ROUNDING * values.abs().amax(-1, keepdim=True)
        indices = total_indices(values - values[:, :1], self.samples, rounding)
        return upsample(indices.view(-1, self.cells, self.cells).to(batch.images), batch.images)
