"""Ablation-CAM: activations weighted by the loss when their channel is switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from heatproof import engine
from heatproof.engine.backends.eager import evaluating
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.layer_activations import activations, hook_layer
from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import cam_layer, coarse_map, weigh
from heatproof.models._support.token_layouts import as_pictures, layout
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout


@contextmanager
def switched_off(model: Model, layer: str, batch: Batch) -> Iterator[list[Tensor]]:
    """A context in which each row's output of the layer is zero in the channel that the yielded list's tensor names;
    -1 leaves a row as it is.
    """
    channels: list[Tensor] = []
    shown = batch.images.shape[2:]

    def off(output: Any) -> Tensor:
        (names,) = channels
        axis = 1 if layout(output.shape, shown) == "channels_first" else -1
        kept = torch.arange(output.shape[axis], device=output.device) != names.to(output.device)[:, None]
        shape = [1] * output.ndim
        shape[0], shape[axis] = kept.shape
        return torch.where(kept.view(shape), output, 0)

    handle = hook_layer(model, layer, off)
    try:
        yield channels
    finally:
        handle.remove()


@method("ablation_cam")
@dataclass(frozen=True)
class AblationCam:
    """Activations weighted by the share of the answer that is lost when their channel is switched off.

    Switched off means zero, as in the paper. The loss is divided by the answer's magnitude, so that a negative
    answer does not turn the map. `limit` keeps the channels that vary most; without it, the cost is stated for a layer
    of 512 channels. `layer` as in grad_cam.

    Paper: Desai and Ramaswamy 2020, "Ablation-CAM: Visual Explanations for Deep Convolutional Network via
    Gradient-free Localization"
    """

    normalisation: ClassVar[Rule] = "positive"

    layer: str = ""
    limit: int | None = None
    relu: bool = True
    readout: Readout = "logit"

    caution = coarse_map

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_count("limit", self.limit)

    @property
    def signed(self) -> bool:
        return not self.relu

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        layer = self.layer or cam_layer(model, batch)
        found = as_pictures(activations(model, batch.images, layer), batch.images.shape[2:])
        count = found.shape[1]
        names = torch.arange(count, device=found.device).expand(len(batch), -1)
        if self.limit is not None and self.limit < count:
            names = found.var((2, 3)).topk(self.limit, 1).indices
            found = found.take_along_dim(names[:, :, None, None], 1)
        losses = self._losses(model, batch, layer, names).to(found)
        return upsample(weigh(found, losses[:, :, None, None], self.relu), batch.images)

    def _losses(self, model: Model, batch: Batch, layer: str, names: Tensor) -> Tensor:
        """(B, channels): the share of the answer lost without each channel."""
        size = engine.batch_size(model, batch.images, "forward")
        whole = torch.full_like(names[:, :1], -1)
        rows = torch.cat([whole, names], 1)
        values = []
        with switched_off(model, layer, batch) as channels, torch.no_grad(), evaluating(model.network):
            for image, target, wanted in zip(batch.images, batch.targets, rows, strict=True):
                for some in wanted.split(size):
                    # Whole micro-batches, so that an answer's bits do not depend on how many channels there are.
                    full = torch.cat([some, some[-1:].expand(size - len(some))])
                    channels[:] = [full]
                    logits = model(image.expand(size, -1, -1, -1).to(model.device))
                    aims = target.expand(size).to(logits.device)
                    values.append(model.read(logits, aims, self.readout)[: len(some)])
        answers = torch.cat(values).view(len(batch), -1).double()
        return (answers[:, :1] - answers[:, 1:]) / answers[:, :1].abs().clamp(min=1e-12)

    def cost(self) -> Cost:
        return Cost(2 + (self.limit or 512), 0)
