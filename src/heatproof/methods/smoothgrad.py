"""SmoothGrad and its relatives: any method, averaged over noisy copies of the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Literal, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.channel_pooling import Pooling, keeps_sign, pool
from heatproof.methods._support.field_checks import check_count, check_not_negative
from heatproof.methods._support.keyed_noise import fill_with_noise
from heatproof.methods._support.path_gradients import Painter, Stretch, stretches, sum_gradients
from heatproof.methods.saliency import Saliency
from heatproof.registry import method
from heatproof.traits import Rule, cost_of, method_traits
from heatproof.types import Batch, Cost, Images, Maps, Method, Model, keyed_seed

Mode = Literal["mean", "squared", "variance"]
Unit = Literal["range", "pixels", "normalised"]


@runtime_checkable
class ChannelWise(Protocol):
    """A method that also gives its attributions before channels are pooled."""

    @property
    def pooling(self) -> Pooling: ...

    def channels(self, model: Model, batch: Batch, /) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Noisy(Batch):
    """A batch of noisy copies: values may leave [0, 1], as in the published method, and each copy has a draw number.

    The draw is part of the seeds, so a random method draws anew for every copy.
    """

    draws: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        pass

    def seeds(self, component: str) -> list[int]:
        return [keyed_seed(*pair) for pair in zip(super().seeds(component), self.draws, strict=True)]

    def select(self, rows: Sequence[int] | Tensor, images: Images | None = None) -> Noisy:
        chosen = super().select(rows, images)
        kept = tuple(self.draws[i] for i in torch.as_tensor(rows).tolist())
        return replace(cast(Noisy, chosen), draws=kept)


def noise_scale(model: Model, images: Images, amount: float, unit: Unit) -> Tensor:
    """The noise's standard deviation in pixel units, (B, 1 or C, 1, 1)."""
    if unit == "range":
        low, high = images.flatten(1).aminmax(dim=1)
        return (amount * (high - low)).view(-1, 1, 1, 1)
    if unit == "normalised":
        return amount * images.new_tensor(model.std).view(1, -1, 1, 1)
    return images.new_full((1, 1, 1, 1), amount)


def noise_on(batch: Batch, scale: Tensor, clamp: bool) -> Painter:
    """Paints noisy copies, the noise keyed by image and draw."""
    seeds = batch.seeds("smoothgrad")
    scale = scale.expand(len(batch), -1, -1, -1)

    def paint(stretch: Stretch, room: Images) -> None:
        image = stretch.image
        fill_with_noise(room, [keyed_seed(seeds[image], draw) for draw in stretch.points])
        torch.addcmul(batch.images[image], room, scale[image], out=room)
        if clamp:
            room.clamp_(0, 1)

    return paint


def noisy_copies(batch: Batch, scale: Tensor, draws: int, clamp: bool, rows: int) -> Iterator[tuple[list[int], Noisy]]:
    """Yields every image's `draws` copies, `rows` at a time, with the indices of their images."""
    paint = noise_on(batch, scale, clamp)
    values = {spec.name: getattr(batch, spec.name) for spec in fields(Batch)}
    whole = Noisy(**values, draws=(0,) * len(batch))
    for part in stretches(len(batch), draws, rows):
        images = batch.images.new_empty(part[-1].rows.stop, *batch.images.shape[1:])
        for stretch in part:
            paint(stretch, images[stretch.rows])
        owners = [stretch.image for stretch in part for _ in stretch.points]
        numbers = tuple(draw for stretch in part for draw in stretch.points)
        yield owners, replace(whole.select(owners, images), draws=numbers)


def spread_so_far(mean: Tensor, spread: Tensor, value: Tensor, seen: int) -> None:
    """Updates a mean and a sum of squared deviations of `seen` values by one more value (Welford's algorithm)."""
    step = value - mean
    mean += step / (seen + 1)
    spread += step * (value - mean)


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

    random: ClassVar[bool] = True

    method: Method = field(default_factory=lambda: Saliency(signed=True, pooling="max_abs"))
    draws: int = 25
    noise: float = 0.15
    unit: Unit = "range"
    mode: Mode = "mean"
    clamp: bool = False  # published code lets noisy pixels leave [0, 1]

    def __post_init__(self) -> None:
        check_count("draws", self.draws)
        check_not_negative("noise", self.noise)

    @property
    def signed(self) -> bool:
        if self.mode != "mean":
            return False
        inner = method_traits(self.method).signed
        return inner and (not isinstance(self.method, ChannelWise) or keeps_sign(self.method.pooling))

    @property
    def normalisation(self) -> Rule:
        return method_traits(self.method).normalisation

    def _attributed(self, model: Model, batch: Batch) -> Tensor:
        # Squares and variances belong before the pooling, where the method has channels.
        inner = self.method
        answer = inner.channels(model, batch) if isinstance(inner, ChannelWise) else inner(model, batch)[:, None]
        return answer.detach()

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        rule: Pooling = self.method.pooling if isinstance(self.method, ChannelWise) else "sum"
        scale = noise_scale(model, batch.images, self.noise, self.unit)
        if self.mode == "mean" and type(self.method) is Saliency and self.method.signed:  # gradients alone
            weights = torch.full((self.draws,), 1 / self.draws, dtype=torch.float64)
            return pool(
                sum_gradients(model, batch, noise_on(batch, scale, self.clamp), weights, self.method.readout), rule
            )
        return pool(self._gathered(model, batch, scale), rule)

    def _gathered(self, model: Model, batch: Batch, scale: Tensor) -> Tensor:
        """The method's attributions of the copies, aggregated channel by channel."""
        rows = engine.batch_size(model, batch.images, "gradient")
        total = spread = torch.zeros(())
        for owners, copies in noisy_copies(batch, scale, self.draws, self.clamp, rows):
            answers = self._attributed(model, copies)
            answers = answers.square() if self.mode == "squared" else answers
            if not total.ndim:
                total, spread = (answers.new_zeros(len(batch), *answers.shape[1:]) for _ in range(2))
            if self.mode != "variance":
                total.index_add_(0, torch.tensor(owners, device=answers.device), answers)
                continue
            for owner, draw, answer in zip(owners, copies.draws, answers, strict=True):  # no copy is stored
                spread_so_far(total[owner], spread[owner], answer, draw)
        return (spread if self.mode == "variance" else total) / self.draws

    def cost(self) -> Cost:
        once: Cost = cost_of(self.method) or Cost(1, 1)
        return Cost(self.draws * once.forward, self.draws * once.backward)
