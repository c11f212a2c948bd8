"""B-cos networks: weights align with their input, so for that input the network is linear, exactly.

A B-cos layer computes ŵ·x · |cos(x, ŵ)|^(B-1), with unit weights ŵ and no bias. For one input the second factor is
a number, so the whole network is a matrix times its (encoded) picture, and that matrix is the explanation. Inside
`explanation_mode()` the factors count as constants: input × gradient sums to the logit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Encoding(nn.Module):
    """[r, g, b, 1 - r, 1 - g, 1 - b]: dark pixels are evidence too, and colours keep their direction."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.cat([images, 1 - images], 1)


class BCosConv2d(nn.Module):
    """A convolution with unit weights whose output shrinks as the input turns away from them."""

    def __init__(
        self,
        before: int,
        after: int,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        b: float = 2.0,
        max_out: int = 1,
    ) -> None:
        super().__init__()
        self.linear = nn.Conv2d(before, after * max_out, kernel, stride, padding, bias=False)
        self.b = b
        self.max_out = max_out  # units that compete for each output; the winner is linear like the others
        self.explaining = False

    def extra_repr(self) -> str:
        return f"b={self.b:g}, max_out={self.max_out}"

    def forward(self, maps: Tensor) -> Tensor:
        layer = self.linear
        weight = layer.weight / layer.weight.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        linear = F.conv2d(maps, weight, None, layer.stride, layer.padding)
        if self.max_out > 1:
            linear = linear.unflatten(1, (-1, self.max_out)).amax(2)
        if self.b == 1:
            return linear
        # Mean times count gives the sum of squares over each patch, zero padding included.
        count = layer.kernel_size[0] * layer.kernel_size[1]
        squares = maps.square().sum(1, keepdim=True)
        norms = F.avg_pool2d(squares, layer.kernel_size, layer.stride, layer.padding) * count  # type: ignore[arg-type]
        alignment = linear.abs() / (norms + 1e-6).sqrt()
        scale = alignment if self.b == 2 else (alignment + 1e-6) ** (self.b - 1)
        return linear * (scale.detach() if self.explaining else scale)


class UncentredNorm2d(nn.Module):
    """Batch norm without mean and shift: one factor per channel, which leaves a linear explanation exact."""

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.running_var: Tensor
        self.eps, self.momentum = eps, momentum

    def forward(self, maps: Tensor) -> Tensor:
        variance = self.running_var
        if self.training:
            variance = maps.var((0, 2, 3), correction=0)
            self.running_var.lerp_(variance.detach(), self.momentum)
        return maps * (self.weight * (variance + self.eps).rsqrt()).view(1, -1, 1, 1)


class SelfExplainingNetwork(nn.Module):
    """A network of B-cos layers, with `explanation_mode`."""

    @contextmanager
    def explanation_mode(self) -> Iterator[None]:
        """A context in which gradients treat the input-dependent factors of all layers as constants."""
        layers = [part for part in self.modules() if hasattr(part, "explaining")]
        before = [bool(layer.explaining) for layer in layers]
        try:
            for layer in layers:
                layer.explaining = True  # type: ignore[assignment]
            yield
        finally:
            for layer, was in zip(layers, before, strict=True):
                layer.explaining = was  # type: ignore[assignment]


class BCosNet(SelfExplainingNetwork):
    """Four B-cos convolutions and a B-cos classifier at every place of an 8×8 map, averaged.

    It takes pictures in [0, 1] and encodes them itself. It has neither biases nor rectifiers: the alignment is the
    non-linearity.
    """

    def __init__(self, classes: int = 10, width: int = 16, temperature: float = 0.1) -> None:
        super().__init__()
        self.encoding = Encoding()
        steps: list[nn.Module] = []
        for before, after, kernel, stride in (
            (6, width, 5, 2),
            (width, 2 * width, 3, 2),
            (2 * width, 4 * width, 3, 2),
            (4 * width, 4 * width, 3, 1),
        ):
            steps += [BCosConv2d(before, after, kernel, stride, kernel // 2, max_out=2)]
            steps += [UncentredNorm2d(after)]
        self.features = nn.Sequential(*steps)
        self.classifier = BCosConv2d(4 * width, classes, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.temperature = temperature

    def extra_repr(self) -> str:
        return f"temperature={self.temperature:g}"

    def forward(self, images: Tensor) -> Tensor:
        places = self.classifier(self.features(self.encoding(images)))
        return self.pool(places).flatten(1) / self.temperature  # type: ignore[no-any-return]
