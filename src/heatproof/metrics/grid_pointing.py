"""The grid pointing game: the share of positive heat in the mosaic cells of the explained class."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.layer_activations import layer_of
from heatproof.methods.cam import cam_layer
from heatproof.metrics._support.pixel_ranking import relevance_mass
from heatproof.metrics._support.reattribution import reattribute
from heatproof.metrics._support.regions import regions_of
from heatproof.metrics._support.undefined import scored
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.types import Attribution, Batch, Keep, Model, Price, Scored

Setting = Literal["grid", "disconnected", "partly_disconnected"]
NO_HEAT = "the map has no positive heat"


class Disconnected(nn.Module):
    """Runs the network on each cell of a mosaic alone; the outputs of the cells are concatenated."""

    def __init__(self, network: nn.Module, grid: int) -> None:
        super().__init__()
        self.network = network
        self.grid = grid

    def forward(self, mosaics: Tensor) -> Tensor:
        return torch.cat([self.network(cell) for cell in cells(mosaics, self.grid)], 1)


class PartlyDisconnected(nn.Module):
    """Runs the lower layers on the whole mosaic, and the layers after a given one on each cell alone."""

    def __init__(self, network: nn.Module, grid: int, layer: str) -> None:
        super().__init__()
        self.network = network
        self.grid = grid
        self.layer = layer

    def forward(self, mosaics: Tensor) -> Tensor:
        layer = self.network.get_submodule(self.layer)
        answers = []
        for place in range(self.grid**2):
            handle = layer.register_forward_hook(lambda _, __, output, at=place: cells(output, self.grid)[at])
            try:
                answers.append(self.network(mosaics))
            finally:
                handle.remove()
        return torch.cat(answers, 1)


def cells(values: Tensor, grid: int) -> list[Tensor]:
    """(B, C, H, W) -> grid² parts of it, row by row; `NotApplicable` if it cannot be divided evenly."""
    if values.ndim != 4 or values.shape[2] % grid or values.shape[3] % grid:
        raise NotApplicable(
            f"a mosaic of {grid} × {grid} cells needs pictures, and layers, of sides that {grid} divides, got "
            f"{tuple(values.shape)}"
        )
    return [part for row in values.chunk(grid, 2) for part in row.chunk(grid, 3)]


def shown_cells(regions: Keep, grid: int) -> Tensor:
    """(B, grid²) bool: which cells are regions; `NotApplicable` unless every cell is one as a whole or not at all."""
    share = torch.stack([cell.flatten(1).double().mean(1) for cell in cells(regions[:, None], grid)], 1)
    if not bool(((share == 0) | (share == 1)).all()):
        raise NotApplicable(
            f"grid_pointing judges mosaics, whose regions are whole cells of a {grid} × {grid} grid: give it mosaics, "
            "as --images mosaic(grid=2), and the same grid"
        )
    return share == 1


@metric
@dataclass(frozen=True)
class GridPointing:
    """The share of positive heat in the cells of the explained class, on mosaics of pictures of several classes.

    `grid` evaluates the model on the whole mosaic (GridPG), where it may legitimately use other cells. `disconnected`
    shows the model one cell at a time and explains the answer to the first cell of the class (DiFull): heat elsewhere
    cannot be justified, and a faithful map scores 1. `partly_disconnected` lets the layers up to the one that CAM
    methods read see the whole mosaic (DiPart). The detail `chance` is the cells' share of the mosaic.

    Paper: Böhle et al. 2021, "Convolutional Dynamic Alignment Networks for Interpretable Classifications"; Rao et al.
    2022, "Towards Better Understanding Attribution Methods"
    """

    unfit: ClassVar[Unfit] = (("value", "a mosaic asks where a class is"),)

    grid: int = 2
    setting: Setting = "grid"
    layer: str = ""  # of `partly_disconnected`; empty for the model's CAM layer

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"

    def __post_init__(self) -> None:
        if self.grid < 2:
            raise BadInput(f"grid must be at least 2 cells per side, got {self.grid}")

    def stage(self) -> tuple[Model, Batch]:
        """Mosaics of the embedded pictures, for the conformance kit."""
        from heatproof import models
        from heatproof.data.mosaic import Mosaic
        from heatproof.data.two_factor import EASY_PAIR

        return models.load("embedded:object"), Mosaic(between=EASY_PAIR, per_class=2).batch(range(4))

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions = regions_of(attribution)
        shown = shown_cells(regions, self.grid)
        maps = attribution.maps
        if self.setting != "grid" and len(maps):
            first = shown.long().argmax(1)
            maps = reattribute(attribution, model=self.model(attribution), batch=self.aimed(attribution, first))
            regions = self.region(attribution, first)
        heat = maps.clamp(min=0).double()
        empty = (heat.flatten(1) == 0).all(1)
        unit = heat.flatten(1).amax(1).clamp_min(1e-300).view(-1, 1, 1)
        values = relevance_mass(heat / unit, regions)
        chance = regions.flatten(1).double().mean(1)
        return scored(
            values, {"the mosaic has no cell of the class": ~shown.any(1), NO_HEAT: empty}, {"chance": chance}
        )

    def model(self, attribution: Attribution) -> Model:
        """The model behind the wrapper, whose outputs are those of all cells, concatenated."""
        model = attribution.model
        layer = ""
        if self.setting == "partly_disconnected":
            layer = self.layer or cam_layer(model, attribution.batch)
            layer_of(model, layer)
        kept: dict[object, Model] = vars(model).setdefault("_disconnected", {})
        key = (model.revision, self.grid, layer)
        if key not in kept:
            network = model.network
            wrapped = PartlyDisconnected(network, self.grid, layer) if layer else Disconnected(network, self.grid)
            name = f"{model.name}, {self.setting.replace('_', ' ')}"
            kept[key] = dataclasses.replace(model, name=name, network=wrapped, cam_layer=None, classes=())
        return kept[key]

    def aimed(self, attribution: Attribution, first: Tensor) -> Batch:
        """The batch, aimed at its class in the first cell that shows it."""
        batch, model = attribution.batch, attribution.model
        height, width = (side // self.grid for side in batch.images.shape[2:])
        classes = engine.forward(model, batch.images[:1, :, :height, :width]).shape[1]
        return batch.aimed(batch.targets + classes * first.to(batch.targets.device))

    def region(self, attribution: Attribution, first: Tensor) -> Keep:
        """(B, H, W) bool: the first cell alone."""
        height, width = attribution.batch.images.shape[2:]
        rows = torch.arange(height, device=first.device) * self.grid // height
        columns = torch.arange(width, device=first.device) * self.grid // width
        return (rows[:, None] * self.grid + columns)[None] == first[:, None, None]

    def cost(self) -> Price:
        return Price(explanations=0 if self.setting == "grid" else 1)


metric.alias("GridPG", GridPointing, "Its authors' name. Equal on mosaics that show the class once.", grid=3)
metric.alias("DiFull", GridPointing, "Its authors' name.", setting="disconnected")
metric.alias("DiPart", GridPointing, "Its authors' name.", setting="partly_disconnected")
