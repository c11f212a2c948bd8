"""Pictures and how they are cut, and maps of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from heatproof.errors import BadShape
from heatproof.types.tensors import Images, Keep


class View(NamedTuple):
    """How a picture of any size becomes the model's input: shorter side to `resize`, then the central part of `size`.

    `size` is the side of a square, or height and width. `resize=None` squeezes the picture to it without keeping its
    aspect ratio.
    """

    size: int | tuple[int, int]
    resize: int | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width."""
        return (self.size, self.size) if isinstance(self.size, int) else (self.size[0], self.size[1])


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures with their targets, ids, regions, twins and labels."""

    images: Images
    targets: Tensor  # (B,) int64: the class to be explained
    ids: tuple[str, ...]
    regions: Keep | None = None  # where the answer is
    twins: Images | None = None  # the same pictures without the content of the region
    labels: Mapping[str, Tensor] = field(default_factory=dict)  # true classes by task, and cluster ids
    missing: Mapping[str, str] = field(default_factory=dict)  # requested pictures that cannot be read: id -> reason
    seed: int = 0  # the study's; randomness is keyed by (seed, image id, component)

    def __post_init__(self) -> None:
        check_images(self.images)
        object.__setattr__(self, "images", self.images.detach())  # methods that need gradients work on a copy
        count = len(self.images)
        if self.targets.shape != (count,) or self.targets.dtype != torch.int64:
            raise BadShape(
                f"targets must be {count} int64 class indices, got {tuple(self.targets.shape)} {self.targets.dtype}"
            )
        if len(self.ids) != count:
            raise BadShape(f"ids must name each of the {count} images, got {len(self.ids)}")
        if self.regions is not None:
            shape = (count, *self.images.shape[2:])
            if self.regions.shape != shape or self.regions.dtype != torch.bool:
                raise BadShape(
                    f"regions must have shape {shape} and dtype bool, "
                    f"got {tuple(self.regions.shape)} {self.regions.dtype}"
                )
        if self.twins is not None and self.twins.shape != self.images.shape:
            raise BadShape(f"twins must have shape {tuple(self.images.shape)}, got {tuple(self.twins.shape)}")

    def __len__(self) -> int:
        return len(self.ids)

    def showing(self, images: Images) -> Batch:
        """The same targets and ids with other pictures (occluded, perturbed, without the object)."""
        return replace(self, images=images)

    def aimed(self, targets: Tensor) -> Batch:
        """The same pictures, another class to be explained."""
        return replace(self, targets=targets.to(self.images.device, torch.int64))

    def select(self, rows: Sequence[int] | Tensor, images: Images | None = None) -> Batch:
        """A smaller batch of the given rows, in their order; with `images` in place of its own pictures, if given."""
        index = torch.as_tensor(rows, dtype=torch.int64, device=self.images.device)
        return replace(
            self,
            images=self.images[index] if images is None else images,
            targets=self.targets[index],
            ids=tuple(self.ids[i] for i in index.tolist()),
            regions=None if self.regions is None else self.regions[index],
            twins=None if self.twins is None else self.twins[index],
            labels={name: values[index] for name, values in self.labels.items()},
        )

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            images=self.images.to(device),
            targets=self.targets.to(device),
            regions=None if self.regions is None else self.regions.to(device),
            twins=None if self.twins is None else self.twins.to(device),
            labels={name: values.to(device) for name, values in self.labels.items()},
        )

    def seeds(self, component: str) -> list[int]:
        """One seed per image for a random component: independent of batch, order and device."""
        return [keyed_seed(self.seed, identity, component) for identity in self.ids]

    def generators(self, component: str) -> list[torch.Generator]:
        """One CPU generator per image. Draw on the CPU, then move: the numbers are then equal on every device."""
        return [torch.Generator().manual_seed(seed) for seed in self.seeds(component)]


def keyed_seed(*parts: object) -> int:
    """A 63-bit seed from the work itself, never from the clock or the order."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def check_images(images: Tensor) -> None:
    """Raise `BadShape` unless these are (B, C, H, W) float pictures in [0, 1]."""
    if images.ndim != 4:
        raise BadShape(f"images must have shape (batch, channels, height, width), got {tuple(images.shape)}")
    if not images.is_floating_point():
        raise BadShape(f"images must be floating point in [0, 1], got {images.dtype}: divide by 255")
    if images.numel():
        low, high = (float(v) for v in torch.aminmax(images.detach()))
        if not (low >= 0.0 and high <= 1.0):  # also catches NaN
            raise BadShape(
                f"images must lie in [0, 1], got [{low:g}, {high:g}]: pass pictures as they are, "
                "the model normalises (Model.mean, Model.std)"
            )


def check_maps(maps: Any, batch: Batch, whose: str = "") -> None:
    """Raise `BadShape` unless these are finite (B, H, W) maps of the batch: a NaN would get an arbitrary rank."""
    wanted = (len(batch), *batch.images.shape[2:])
    what = f"maps of {whose}" if whose else "maps"
    if not isinstance(maps, Tensor) or not maps.is_floating_point():
        got = maps.dtype if isinstance(maps, Tensor) else type(maps).__name__
        raise BadShape(f"{what} must be a tensor of floating-point numbers, got {got}")
    if maps.shape != wanted:
        hint = ": sum or pool the channels" if maps.ndim == 4 else ""
        raise BadShape(f"{what} must have shape {wanted}, got {tuple(maps.shape)}{hint}")
    # A cheap check first; the sum of large finite numbers may overflow, so a failure is checked in full.
    if not math.isfinite(float(maps.sum())) and not bool((finite := maps.flatten(1).isfinite().all(1)).all()):
        first = batch.ids[int((~finite).nonzero()[0])]
        raise BadShape(
            f"{what} must be finite, got NaN or infinity on {int((~finite).sum())} of {len(batch)} images, "
            f"first on {first!r}"
        )
