"""A tiny untrained prior for 32×32 pictures, and one that counts what it is given."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from heatproof.occlusion.diffusion.denoiser import Prior
from heatproof.occlusion.diffusion.unet import UNet


class Shaken(UNet):
    """A UNet whose last layer is not zero: an untrained one would answer 0 to everything."""

    def __init__(self) -> None:
        super().__init__(widths=(8, 16), fold=4)
        for part in (self.out, self.middle1.conv2, self.up[0].conv2):
            nn.init.normal_(part.weight, 0, 0.05)


def tiny(size: int = 32) -> Prior:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = Shaken()
    return Prior("tiny", network, channels=3, size=size, multiple=network.multiple, predicts="velocity")


@dataclass(eq=False)
class Counting:
    """A denoiser that notes how many rows it was given, at which step."""

    inner: Prior = field(default_factory=tiny)
    calls: list[tuple[int, int]] = field(default_factory=list)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def __call__(self, x: Tensor, t: int, /) -> Tensor:
        self.calls.append((t, len(x)))
        return self.inner(x, t)

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.calls)
