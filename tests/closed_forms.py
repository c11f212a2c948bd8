"""Linear models whose answers, and whose maps' scores, follow by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heatproof.types import Attribution, Batch, Maps, Model

SIDE = 12


class Weighted(nn.Module):
    """f_k = Σ W_k · x, with given weights (classes, channels, H, W)."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(weights)

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("bchw,kchw->bk", x, self.weights)


def weighted(weights: Tensor, name: str = "weighted") -> Model:
    return Model(name, Weighted(weights))


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def grey(count: int = 3, side: int = SIDE, seed: int = 1, low: float = 0.2, high: float = 0.8) -> Batch:
    """One-channel noise whose pixels stay away from 0 and 1, so that small noise is not clipped."""
    images = torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(seed))
    ids = tuple(f"grey {seed} {row}" for row in range(count))
    return Batch(low + (high - low) * images, torch.zeros(count, dtype=torch.int64), ids)


@dataclass(frozen=True)
class Slope:
    """The exact gradient of a `Weighted` model, which does not depend on the picture."""

    factor: float = 1.0

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return self.factor * model.network.weights[batch.targets].sum(1).detach().expand(len(batch), -1, -1)


@dataclass(frozen=True)
class Contribution:
    """Weight times picture: what each pixel of a `Weighted` model adds over black."""

    factor: float = 1.0

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return self.factor * (model.network.weights[batch.targets] * batch.images).sum(1).detach()


@dataclass(frozen=True)
class Ignorant:
    """The same map of every model and picture."""

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return drawn(*batch.images.shape[2:], seed=3).expand(len(batch), -1, -1)


def attributed(model: Model, batch: Batch, method: Callable[[Model, Batch], Maps]) -> Attribution:
    return Attribution(model, batch, method, method(model, batch))


def values(answer: Any) -> Tensor:
    return answer.values


def alone(metric: Any, attribution: Attribution) -> Tensor:
    """The scores of each picture given by itself, in reverse order, put back."""
    found = []
    for row in reversed(range(len(attribution.batch))):
        batch = attribution.batch.select([row])
        found.append(values(metric(Attribution(attribution.model, batch, attribution.method, attribution.maps[[row]]))))
    return torch.cat(found[::-1])
