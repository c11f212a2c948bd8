"""FullGrad: the input's and every bias's share in the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.methods._support.layer_activations import caught_at, differentiable, frozen
from heatproof.methods._support.upsample import upsample
from heatproof.methods.input_x_gradient import offset
from heatproof.models._support.token_layouts import as_pictures, layout
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Maps, Model, Readout


class Shares(NamedTuple):
    """Input times gradient (B, C, H, W), and bias times gradient of every layer that has biases, in its own shape."""

    pixels: Tensor
    biases: list[Tensor]


def bias_of(layer: nn.Module) -> Tensor | None:
    """What the layer adds, whatever its input, per channel: a batch norm's includes its mean."""
    bias = getattr(layer, "bias", None)
    if isinstance(layer, nn.BatchNorm2d) and layer.running_mean is not None and layer.running_var is not None:
        spread = (layer.running_var + layer.eps).rsqrt() * (1 if layer.weight is None else layer.weight.detach())
        shift = -layer.running_mean * spread
        return shift if bias is None else shift + bias.detach()
    if isinstance(layer, nn.Conv2d | nn.Linear | nn.LayerNorm) and isinstance(bias, Tensor):
        return bias.detach()
    return None


def shares(model: Model, batch: Batch, readout: Readout) -> Shares:
    """What the pixels and every bias add to the answer; in piecewise linear networks all of it adds up to the logit."""
    way = engine.settled(model, batch.images, "gradient")  # before hooks are set
    biases = {name: bias for name, layer in model.network.named_modules() if (bias := bias_of(layer)) is not None}
    parts: list[list[Tensor]] = []
    with frozen(model.network), differentiable(model), caught_at(model, list(biases)) as caught:
        for count, (images, targets) in engine.micro_batches(way, batch.images, batch.targets):
            for outputs in caught:
                outputs.clear()
            if len(images) == 1:  # two rows tell a layer of pictures from one of, say, relative positions
                images, targets = images.repeat(2, 1, 1, 1), targets.repeat(2)
            leaf = images.to(model.device).detach().clone().requires_grad_()
            values = model.read(model(leaf), targets.to(model.device), readout)
            owners = [bias for bias, outputs in zip(biases.values(), caught, strict=True) for _ in outputs]
            outputs = [leaf, *(output for layer in caught for output in layer)]
            slopes = torch.autograd.grad(values.sum(), outputs, allow_unused=True, materialize_grads=True)
            found = [slopes[0]]
            for bias, slope in zip(owners, slopes[1:], strict=True):
                if len(slope) != len(images):  # windows, in another order of places; or no pictures at all
                    continue
                # A convolution's channels come second, those of linear layers and layer norms last.
                first = slope.ndim == 4 and slope.shape[1] == len(bias)
                found.append(slope * (bias.view(1, -1, 1, 1) if first else bias))
            parts.append([part.detach()[:count].to(batch.images.device).float() for part in found])
    pixels, *rest = (torch.cat(side) for side in zip(*parts, strict=True))
    return Shares(pixels * offset(model, batch.images, "normalised"), rest)


def rescaled(parts: Tensor) -> Tensor:
    """Each channel's magnitudes, stretched from 0 to 1 over the picture's places."""
    size = parts.abs()
    low, high = size.amin((2, 3), keepdim=True), size.amax((2, 3), keepdim=True)
    return (size - low) / (high - low).clamp(min=1e-12)


@method("full_grad")
@dataclass(frozen=True)
class FullGrad:
    """The magnitudes of input times gradient and of bias times gradient, of every layer that has places, added up.

    `rescale` stretches every channel of every layer from 0 to 1 before they are added, as published; without it the
    magnitudes add up as they are. The biases are those of convolutions, batch norms, linear layers and layer norms;
    what a transformer adds elsewhere (position embeddings, functional biases) or within windows is not counted.

    Paper: Srinivas and Fleuret 2019, "Full-Gradient Representation for Neural Network Visualization"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"

    rescale: bool = True
    readout: Readout = "logit"

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        found, shown = shares(model, batch, self.readout), batch.images.shape[2:]
        laid_out = [as_pictures(part, shown) for part in found.biases if layout(part.shape, shown) is not None]
        total = torch.zeros_like(batch.images[:, 0])
        for part in (found.pixels, *laid_out):
            magnitudes = rescaled(part) if self.rescale else part.abs()
            total += upsample(magnitudes.sum(1).to(total), batch.images)
        return total

    def cost(self) -> Cost:
        return Cost(1, 1)
