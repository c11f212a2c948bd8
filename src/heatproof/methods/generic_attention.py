"""Generic attention explainability: attention times its gradient, multiplied up through the layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.attention_flow import flows, through
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.transformer_stage import transformer_stage
from heatproof.registry import method
from heatproof.traits import Need, Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout


def weighted(attention: Tensor, slopes: Tensor) -> Tensor:
    """(B, queries, keys): the positive part of attention times gradient, averaged over heads (B, heads, …)."""
    return (attention * slopes).clamp(min=0).mean(1)


@method("generic_attention")
@dataclass(frozen=True)
class GenericAttention:
    """Attention times its gradient for the target, kept where positive, averaged over heads and followed through
    all layers.

    The map starts from what the network's head reads: the class token, both tokens of a distilled network, the patches
    that are averaged, or the row of an attention pooling. The readout's scale matters, since products of several
    layers mix its powers: the logit by default, as published. `start_layer` leaves out layers before it.

    Paper: Chefer et al. 2021, "Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder
    Transformers"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"
    needs: ClassVar[tuple[Need, ...]] = ("attention",)

    start_layer: int = 0
    readout: Readout = "logit"

    def __post_init__(self) -> None:
        check_count("start_layer", self.start_layer, 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        parts = []
        for images, _, flow in flows(model, batch, self.readout, "generic_attention"):
            steps = [weighted(*pair) for pair in zip(flow.layers, flow.slopes, strict=True)]
            parts.append(flow.laid_out(through(flow, steps, self.start_layer), images).to(batch.images.device))
        return torch.cat(parts) if parts else batch.images.new_zeros(0, *batch.images.shape[2:])

    def cost(self) -> Cost:
        return Cost(1, 1)

    def stage(self) -> tuple[Model, Batch]:
        return transformer_stage()
