"""Grad-CAM on attention: the last layer's attention, each head weighted by its mean gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.attention_flow import Flow, flows
from heatproof.methods._support.transformer_stage import transformer_stage
from heatproof.registry import method
from heatproof.traits import Need, Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout


def cam(flow: Flow) -> Tensor:
    """(B, patches): attention of the last layer times its mean gradient over patches, head by head, then averaged."""
    patches = flow.grid[0] * flow.grid[1]
    attention, slopes = (side[-1][..., -patches:] for side in (flow.layers, flow.slopes))
    heads = (attention * slopes.mean(-1, keepdim=True)).mean(1)  # (B, queries, patches)
    rows = flow.read if heads.shape[1] == flow.read.shape[1] else heads.new_ones(len(heads), 1)
    return (rows[:, None].to(heads) @ heads)[:, 0].clamp(min=0)


@method("attention_gradient_cam")
@dataclass(frozen=True)
class AttentionGradientCam:
    """The last layer's attention to each patch, every head weighted by its mean gradient for the target.

    The baseline of Chefer et al. 2021: where a head's mean gradient is negative, all that it attends to counts against
    the target, and with one head the map is everything or nothing. The rows are those the network's head reads.

    Paper: Chefer et al. 2021, "Transformer Interpretability Beyond Attention Visualization" (its GradCAM baseline)
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"
    needs: ClassVar[tuple[Need, ...]] = ("attention",)

    readout: Readout = "logit"

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        parts = [
            flow.laid_out(cam(flow), images).to(batch.images.device)
            for images, _, flow in flows(model, batch, self.readout, "attention_gradient_cam")
        ]
        return torch.cat(parts) if parts else batch.images.new_zeros(0, *batch.images.shape[2:])

    def cost(self) -> Cost:
        return Cost(1, 1)

    def stage(self) -> tuple[Model, Batch]:
        return transformer_stage()
