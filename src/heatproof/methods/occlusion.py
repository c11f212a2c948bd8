"""Sliding-window occlusion: the drop of the answer shows what the window hid."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.methods._support.batched_views import values_of_views
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.path_gradients import Stretch
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.occlusion import bound, impute
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Images, Imputer, Keep, Maps, Model, Readout


def windows(side: int, share: float, positions: int) -> Tensor:
    """The places along one axis that each window hides: (positions, side) bool, from edge to edge."""
    width = max(1, round(share * side))
    starts = torch.linspace(0, side - width, positions).round().long()
    place = torch.arange(side)
    return (place >= starts[:, None]) & (place < starts[:, None] + width)


@method("occlusion")
@dataclass(frozen=True)
class SlidingOcclusion:
    """The drop of the answer when a sliding window hides each place; each pixel has the mean of its windows.

    Paper: Zeiler and Fergus 2014, "Visualizing and Understanding Convolutional Networks"
    """

    normalisation: ClassVar[Rule] = "positive"

    positions: int = 13  # per side
    window: float = 0.15  # share of the side
    imputer: Imputer = field(default_factory=Mean)
    readout: Readout = "logit"

    @property
    def signed(self) -> bool:
        return True

    def __post_init__(self) -> None:
        check_count("positions", self.positions)
        if not (self.window * self.positions >= 1 and self.window <= 1):
            raise BadInput(
                f"{self.positions} windows must cover the side: window must be a share between "
                f"{1 / self.positions:.2g} and 1, got {self.window:g}"
            )

    def cost(self) -> Cost:
        return Cost(self.positions**2 + 1, 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        images, side = batch.images, self.positions
        down = windows(images.shape[2], self.window, side).to(images.device)
        across = windows(images.shape[3], self.window, side).to(images.device)
        nowhere = torch.zeros(1, *images.shape[2:], dtype=torch.bool, device=images.device)
        hidden = torch.cat([nowhere, (down[:, None, :, None] & across[None, :, None, :]).flatten(0, 1)])
        values = self._values(model, batch, ~hidden)
        losses = (values[:, :1] - values[:, 1:]).view(-1, side, side).to(images)
        covered = down.to(images).sum(0)[:, None] * across.to(images).sum(0)
        return down.to(images).T @ losses @ across.to(images) / covered

    def _values(self, model: Model, batch: Batch, keep: Keep) -> Tensor:
        """(B, views): the answer to every view of every image."""
        seeds = batch.seeds("occlusion")

        def paint(stretch: Stretch, room: Images) -> None:
            image, views, _ = stretch
            shown = batch.images[image].expand_as(room)
            painter = bound(self.imputer, batch, [image] * len(views))
            impute(painter, shown, keep[views.start : views.stop], [seeds[image]] * len(views), room)

        return values_of_views(model, batch, paint, len(keep), partial(model.read, readout=self.readout))
