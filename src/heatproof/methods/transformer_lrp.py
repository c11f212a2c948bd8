"""Transformer attribution: relevance and gradient of attention, rolled out through the layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.methods._support.attention_flow import flows, through
from heatproof.methods._support.attention_layers import Recorder, by_head
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.layer_activations import differentiable, frozen
from heatproof.methods._support.op_override import Intercept
from heatproof.methods._support.relevance_sweep import sweep
from heatproof.methods._support.transformer_stage import transformer_stage
from heatproof.methods.generic_attention import weighted
from heatproof.registry import method
from heatproof.traits import Need, Rule
from heatproof.types import Batch, Cost, Images, Maps, Model


def relevances(model: Model, images: Images, targets: Tensor) -> list[Tensor]:
    """The relevance of every layer's attention, (B, heads, queries, keys) each, from 1 at the target's logit."""
    with frozen(model.network), differentiable(model):
        recorder = Recorder(len(images), images.shape[2:])
        leaf = images.to(model.device).detach().clone().requires_grad_()
        with Intercept(sweep()), recorder:
            logits = model(leaf)
        start = model.read(logits, targets.to(model.device), "logit").sum()
        found = torch.autograd.grad(start, recorder.layers, allow_unused=True)
    return [by_head(relevance, len(images)) for relevance in found if relevance is not None]


@method("transformer_lrp")
@dataclass(frozen=True)
class TransformerLRP:
    """Relevance of attention times its gradient for the target, positive part, averaged over heads and rolled out.

    Relevance starts as one at the target's logit and goes through every layer by the authors' rules. `rollout="code"`
    adds the identity and makes rows sum to one, as their code does; `"paper"` leaves rows as they are. Their
    segmentation experiment leaves out the first layer (`start_layer=1`). In networks that pool tokens otherwise than
    by a class token the map starts from what their head reads, which is an extension.

    Paper: Chefer et al. 2021, "Transformer Interpretability Beyond Attention Visualization"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"
    needs: ClassVar[tuple[Need, ...]] = ("attention",)

    start_layer: int = 0
    rollout: Literal["code", "paper"] = "code"

    def __post_init__(self) -> None:
        check_count("start_layer", self.start_layer, 0)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        parts = []
        for images, targets, flow in flows(model, batch, "logit", "transformer_lrp"):
            steps = [weighted(*pair) for pair in zip(relevances(model, images, targets), flow.slopes, strict=True)]
            weights = through(flow, steps, self.start_layer, even=self.rollout == "code")
            parts.append(flow.laid_out(weights, images).to(batch.images.device))
        return torch.cat(parts) if parts else batch.images.new_zeros(0, *batch.images.shape[2:])

    def cost(self) -> Cost:
        return Cost(2, 2)

    def stage(self) -> tuple[Model, Batch]:
        return transformer_stage()
