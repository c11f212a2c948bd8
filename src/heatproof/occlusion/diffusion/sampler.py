"""Samplers: one step from noise towards a picture, and the choice of steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from torch import Tensor

from heatproof.errors import BadInput
from heatproof.registry import part


@part
@dataclass(frozen=True)
class Sampler:
    """The settings by which removed pixels are drawn."""

    kind: Literal["ddim", "ddpm"] = "ddim"
    steps: int = 20
    known: Literal["clean", "noised"] = "clean"  # the form in which the prior sees kept pixels on the way
    mask: Literal["hard", "soft"] = "hard"  # kept pixels are set, or only pulled towards their values
    pull: float = 0.2  # of the soft mask: the standard deviation allowed to kept pixels
    late_start: bool = True  # if little is removed, begin from a rough fill, with less noise and fewer steps

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= 1000:
            raise BadInput(f"a sampler's steps must be from 1 to 1000, got {self.steps}")
        if self.pull <= 0:
            raise BadInput(f"a sampler's pull must be positive, got {self.pull}")

    def first(self, removed: float) -> int:
        """The first step for a removed share: 0 is pure noise, `steps` leaves nothing to do."""
        if removed == 0:
            return self.steps
        if not self.late_start:
            return 0
        # Half of the picture fixes colours and large shapes: only with less of it is more noise needed.
        noise = min(1.0, 0.3 + 0.7 * max(0.0, removed - 0.5) / 0.5)
        return min(self.steps - 1, int((1 - noise) * self.steps + 1e-9))


def guess(x: Tensor, eps: Tensor, share: float) -> Tensor:
    """The clean picture that this noise implies, kept within [-1, 1]."""
    return ((x - sqrt(1 - share) * eps) / sqrt(share)).clamp(-1, 1)


def ddim(clean: Tensor, eps: Tensor, after: float) -> Tensor:
    """The deterministic step: the clean guess with the same noise, less of it."""
    return sqrt(after) * clean + sqrt(1 - after) * eps


def ddpm_mean(x: Tensor, clean: Tensor, share: float, after: float) -> Tensor:
    """The mean of the ancestral step."""
    step = share / after
    return (sqrt(after) * (1 - step) * clean + sqrt(step) * (1 - after) * x) / (1 - share)


def ddpm_deviation(share: float, after: float) -> float:
    """The standard deviation of the ancestral step: 0 at the last."""
    return sqrt((1 - after) / (1 - share) * (1 - share / after))
