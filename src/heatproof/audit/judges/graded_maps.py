"""Maps of known quality: the truth, the truth spoilt by known doses, noise, the inverse, and maps that see no model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from scipy import ndimage

from heatproof.attribute import attribute
from heatproof.methods.controls import Centre, sobel
from heatproof.stats.judges.evidence import Kind
from heatproof.types import AnyMethod, Batch, Images, Maps, Method, Model, keyed_seed

Spoiling: TypeAlias = Literal["mix", "shuffle", "shift", "blur"]

MIX = tuple(step / 10 for step in range(1, 11))  # share of noise in the map
SHUFFLED = (0.25, 0.5, 0.75, 1.0)  # share of the blocks that change places
SHIFTED = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of each side, wrapped
BLURRED = (1 / 32, 1 / 16, 1 / 8, 1 / 4)  # standard deviation, of the width
BLOCKS = 8  # along each side
NOISES = 5  # draws


@dataclass(frozen=True)
class Source:
    """Where a map comes from: the method that makes it, what kind of map it is, and how far it was spoilt."""

    name: str
    kind: Kind
    method: Method
    dose: float = 0.0
    form_of: str = ""  # of a variant: the real method whose other setting it is


@dataclass(frozen=True)
class Truth:
    """The reference map between 0 and 1: a method's positive part, divided by its maximum."""

    method: AnyMethod

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        heat = attribute(model, batch, self.method).maps.clamp_min(0)
        return heat / heat.flatten(1).amax(1).clamp_min(torch.finfo(heat.dtype).tiny)[:, None, None]


@dataclass(frozen=True)
class Noise:
    """Independent exponential noise of mean ½, drawn anew for every changed picture.

    Exponential, so that a tenth of it already outshines the truth in a few pixels: uniform noise would leave the order
    of the pixels alone up to a share of one half. The seed is the picture's content: a method that knows nothing
    explains a changed picture by another draw.
    """

    draw: int = 0
    blurred: float = 0.0  # standard deviation, of the width

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        maps = torch.stack([self._of(image, batch.seed) for image in batch.images])
        return maps.to(batch.images.device)

    def _of(self, image: Images, seed: int) -> Maps:
        dice = torch.Generator().manual_seed(keyed_seed(seed, digest(image), "audit noise", self.draw))
        drawn = torch.empty(image.shape[-2:]).exponential_(2.0, generator=dice)
        if self.blurred:
            smooth = torch.from_numpy(ndimage.gaussian_filter(drawn.numpy(), self.blurred * drawn.shape[1]))
            drawn = (smooth - smooth.min()) / (smooth.max() - smooth.min())
        return drawn


def digest(image: Images) -> str:
    """A hash of a picture's content, to an eighth of a grey level: float noise is no other picture."""
    levels = (image.detach().cpu().double() * 2040).round().to(torch.int32).numpy()
    return hashlib.sha256(np.ascontiguousarray(levels).tobytes()).hexdigest()[:16]


@dataclass(frozen=True)
class Spoilt:
    """The truth, spoilt by a dose: mixed with noise, its blocks shuffled, shifted, blurred, or turned round."""

    truth: Truth
    how: Literal[Spoiling, "inverse"]
    dose: float = 1.0

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        maps = self.truth(model, batch)
        if self.how == "inverse":  # ties broken: of two flat areas, average precision sees no worse than chance
            return 1 - maps + 0.01 * Noise()(model, batch)
        if self.how == "mix":
            return (1 - self.dose) * maps + self.dose * Noise()(model, batch)
        if self.how == "shift":
            height, width = maps.shape[1:]
            return maps.roll((round(self.dose * height), round(self.dose * width)), (1, 2))
        if self.how == "blur":
            sigma = self.dose * maps.shape[2]
            return torch.from_numpy(ndimage.gaussian_filter(maps.cpu().numpy(), (0, sigma, sigma))).to(maps.device)
        return torch.stack([shuffled(one, self.dose, dice) for one, dice in _with_dice(maps, batch)])


def _with_dice(maps: Maps, batch: Batch) -> list[tuple[Maps, torch.Generator]]:
    seeds = [keyed_seed(batch.seed, digest(image), "audit shuffle") for image in batch.images]
    return [(one, torch.Generator().manual_seed(seed)) for one, seed in zip(maps, seeds, strict=True)]


def shuffled(one: Maps, share: float, dice: torch.Generator) -> Maps:
    """One (H, W) map with a share of its blocks moved round among each other; borders that fill no block stay."""
    side = (max(1, one.shape[0] // BLOCKS), max(1, one.shape[1] // BLOCKS))
    rows, columns = one.shape[0] // side[0], one.shape[1] // side[1]
    moved = torch.randperm(rows * columns, generator=dice)[: round(share * rows * columns)]
    order = torch.arange(rows * columns)
    order[moved] = moved.roll(1)
    inner = one[: rows * side[0], : columns * side[1]]
    blocks = inner.reshape(rows, side[0], columns, side[1]).permute(0, 2, 1, 3).reshape(-1, *side)
    result = one.clone()
    mixed = blocks[order].reshape(rows, columns, *side).permute(0, 2, 1, 3)
    result[: rows * side[0], : columns * side[1]] = mixed.reshape(inner.shape)
    return result


Look: TypeAlias = Literal["centre", "border", "constant", "edges", "luminance"]


@dataclass(frozen=True, eq=False)
class Blind:
    """A map made without the model: of the picture alone, or of nothing."""

    how: Look

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        if self.how == "edges":
            return sobel(batch.images)
        if self.how == "luminance":
            return batch.images.mean(1)
        centre = Centre()(model, batch)
        if self.how == "centre":
            return centre
        return torch.ones_like(centre) if self.how == "constant" else centre.amax() - centre


@dataclass(frozen=True, eq=False)
class Stored:
    """Maps made from other pictures, by the picture's id: they are the same whatever is done to picture and model."""

    maps: Mapping[str, Maps]

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return torch.stack([self.maps[identity] for identity in batch.ids]).to(batch.images.device)


def of_others(truth: Maps, ids: Sequence[str]) -> dict[str, Stored]:
    """The truth of another picture, and the mean truth of all others: what is right on pictures like these."""
    mean = (truth.sum(0) - truth) / max(1, len(truth) - 1)
    return {
        "another picture's truth": Stored(dict(zip(ids, truth.roll(1, 0), strict=True))),
        "mean truth of the others": Stored(dict(zip(ids, mean, strict=True))),
    }


def place_sources(truth: Truth) -> list[Source]:
    """Maps that lie ever further from the truth: the truth itself first."""
    doses: dict[Spoiling, tuple[float, ...]] = {"mix": MIX, "shuffle": SHUFFLED, "shift": SHIFTED, "blur": BLURRED}
    return [
        Source("truth", "truth", truth),
        *(Source(f"noise {draw}", "noise", Noise(draw)) for draw in range(NOISES)),
        Source("inverse", "inverse", Spoilt(truth, "inverse")),
        *(Source(f"{how} {dose:.3g}", how, Spoilt(truth, how, dose), dose) for how in doses for dose in doses[how]),
    ]


def blind_sources(others: Mapping[str, Method] | None = None) -> list[Source]:
    """Maps that see no model: of nothing, of the picture, or `others`, of what is right on other pictures."""
    blind: dict[str, Method] = {name: Blind(name) for name in get_args(Look)}
    blind |= {"smooth noise": Noise(0, 1 / 16), **(others or {})}
    return [Source(name, "blind", method) for name, method in blind.items()]
