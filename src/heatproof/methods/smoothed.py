"""Any method, averaged over noisy copies of the picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from heatproof.methods.gradients import Saliency
from heatproof.methods.paths import check_count
from heatproof.methods.pooling import Pooling, keeps_sign, pool
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Method, Model, keyed_seed

Mode = Literal["mean", "squared", "variance"]
Unit = Literal["range", "pixels", "normalised"]


@runtime_checkable
class ChannelWise(Protocol):
    """A method that can be asked before its channels are pooled."""

    @property
    def pooling(self) -> Pooling: ...

    def channels(self, model: Model, batch: Batch, /) -> Tensor: ...


class Noisy(Batch):
    """Pictures with noise on them: they may leave [0, 1], as in the published method."""

    def __post_init__(self) -> None:
        pass


def noise_scale(model: Model, images: Images, amount: float, unit: Unit) -> Tensor:
    """The noise's standard deviation in pixel units, (B, 1 or C, 1, 1)."""
    if unit == "range":
        low, high = images.flatten(1).aminmax(dim=1)
        return (amount * (high - low)).view(-1, 1, 1, 1)
    if unit == "normalised":
        return amount * images.new_tensor(model.std).view(1, -1, 1, 1)
    return images.new_full((1, 1, 1, 1), amount)


def noisy_copies(batch: Batch, scale: Tensor, draws: int, clamp: bool) -> Iterator[Batch]:
    """The batch again and again with fresh noise, keyed by image; random methods inside draw anew."""
    generators = batch.generators("smoothgrad")
    shape = batch.images.shape[1:]
    for draw in range(draws):
        noise = torch.stack([torch.randn(shape, generator=generator) for generator in generators])
        images = batch.images + scale * noise.to(batch.images)
        values = {spec.name: getattr(batch, spec.name) for spec in fields(Batch)}
        values |= {
            "images": images.clamp(0, 1) if clamp else images,
            "seed": keyed_seed(batch.seed, "draw", draw),
        }
        yield Noisy(**values)


@method("smoothgrad")
@dataclass(frozen=True)
class Smoothed:
    """Any method averaged over noisy copies of the picture; by default the gradient (SmoothGrad).

    The mean of signed gradients is taken channel by channel and pooled by magnitude afterwards, as in the
    paper; `mode="squared"` averages squares (what the BAM release did) and `mode="variance"` is VarGrad. The
    noise is `noise` × the picture's own value range, or in `unit`s of pixels or of the network's normalised
    input.

    Paper: Smilkov et al. 2017, "SmoothGrad: removing noise by adding noise"
    """

    method: Method = field(default_factory=lambda: Saliency(signed=True, pooling="max_abs"))
    draws: int = 25
    noise: float = 0.15
    unit: Unit = "range"
    mode: Mode = "mean"
    clamp: bool = False  # published code lets noisy pixels leave [0, 1]

    def __post_init__(self) -> None:
        check_count("draws", self.draws)

    @property
    def signed(self) -> bool:
        if self.mode != "mean":
            return False
        inner = bool(getattr(self.method, "signed", True))
        return inner and (not isinstance(self.method, ChannelWise) or keeps_sign(self.method.pooling))

    def _ask(self, model: Model, batch: Batch) -> Tensor:
        # Duck-typed on purpose: squares and variances belong before the pooling where there is a before.
        inner = self.method
        answer = (
            inner.channels(model, batch) if isinstance(inner, ChannelWise) else inner(model, batch)[:, None]
        )
        return answer.detach()

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        scale = noise_scale(model, batch.images, self.noise, self.unit)
        mean = spread = torch.zeros(())
        for draw, copy in enumerate(noisy_copies(batch, scale, self.draws, self.clamp), start=1):
            answer = self._ask(model, copy)
            answer = answer.square() if self.mode == "squared" else answer
            step = answer - mean
            mean = mean + step / draw
            spread = spread + step * (answer - mean)  # Welford: no draw is kept
        result = spread / self.draws if self.mode == "variance" else mean
        rule: Pooling = self.method.pooling if isinstance(self.method, ChannelWise) else "sum"
        return pool(result, rule)

    def cost(self) -> Cost:
        known = getattr(self.method, "cost", None)
        once: Cost = known() if known is not None else Cost(1, 1)
        return Cost(self.draws * once.forward, self.draws * once.backward)
