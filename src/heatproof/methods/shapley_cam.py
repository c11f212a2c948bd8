"""Shapley-CAM: gradients corrected by the curvature of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.layer_activations import Tap, caught_at, differentiable, frozen
from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import as_seen, cam_layer, coarse_map, weigh
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Logits, Maps, Model, Readout

Answer: TypeAlias = Readout | Literal["rest"]  # "rest": the logit plus the log-probability (ReST in the paper)


def answer(model: Model, logits: Logits, targets: Tensor, readout: Answer) -> Tensor:
    """The readout, or the sum of logit and log-probability."""
    if readout == "rest":
        return model.read(logits, targets, "logit") + model.read(logits, targets, "log_probability")
    return model.read(logits, targets, readout)


def corrected(model: Model, batch: Batch, layer: str, readout: Answer) -> Tap:
    """The layer's activations a, and gradient minus half of Hessian · a, in the layer's own shape."""
    way = engine.settled(model, batch.images, "gradient")  # before hooks are set
    parts: list[Tap] = []
    # Fused attention has no second derivative; PyTorch's plain one does.
    with sdpa_kernel(SDPBackend.MATH), frozen(model.network), differentiable(model), caught_at(model, [layer]) as taps:
        for count, (images, targets) in engine.micro_batches(way, batch.images, batch.targets):
            taps[0].clear()
            value = answer(model, model(images.to(model.device)), targets.to(model.device), readout).sum()
            if not taps[0]:
                raise NotApplicable(f"layer {layer!r} does not take part in the answer: name another layer")
            seen = taps[0][-1]
            (slope,) = torch.autograd.grad(value, seen, create_graph=True)
            curved = None
            if slope.requires_grad:
                (curved,) = torch.autograd.grad(slope, seen, seen.detach(), allow_unused=True)
            total = slope.detach() if curved is None else slope.detach() - curved / 2
            parts.append(Tap(seen.detach()[:count].clone(), total[:count].clone()))
    found = (torch.cat(side).to(batch.images.device).float() for side in zip(*parts, strict=True))
    return Tap(*found)


@method("shapley_cam")
@dataclass(frozen=True)
class ShapleyCam:
    """Grad-CAM with each gradient corrected by half the curvature: second-order Shapley values of activations.

    With `readout="logit"` and a piecewise linear head there is no curvature, and the map is Grad-CAM's. The default
    `rest` is the paper's sum of logit and log-probability. `layer` as in grad_cam.

    Paper: Cai 2025, "CAMs as Shapley Value-based Explainers"
    """

    normalisation: ClassVar[Rule] = "positive"

    layer: str = ""
    relu: bool = True
    readout: Answer = "rest"

    caution = coarse_map

    @property
    def signed(self) -> bool:
        return not self.relu

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        caught = as_seen(corrected(model, batch, self.layer or cam_layer(model, batch), self.readout), batch)
        weights = caught.gradients.mean((2, 3), keepdim=True)
        return upsample(weigh(caught.activations, weights, self.relu), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 3)
