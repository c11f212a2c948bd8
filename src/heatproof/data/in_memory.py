"""Pictures that are in memory already, or that a torch data set hands out: arrays, PIL pictures, loaders.

pictures = heatproof.pictures(loader)                       # a DataLoader, a torch Dataset, one of Hugging Face
pictures = heatproof.pictures(images, labels, masks=masks)  # tensors, arrays, PIL pictures
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from heatproof.data._support.files import UNKNOWN, as_levels, as_view
from heatproof.data._support.masks import cut_region
from heatproof.data._support.picture_groups import Grouping, by_class
from heatproof.data._support.pictures import Levels, apply_view, to_rgb, unit_range
from heatproof.data._support.pixels import as_input
from heatproof.errors import BadInput
from heatproof.types import Batch, Model, View

IMAGE_KEYS = ("image", "img", "pixel_values", "images", "jpg", "png")
LABEL_KEYS = ("label", "labels", "target", "cls", "fine_label")
MASK_KEYS = ("mask", "masks", "segmentation", "region")


@runtime_checkable
class Indexed(Protocol):
    """What hands out items by index: a list, a torch Dataset, a Dataset of Hugging Face."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class Item(NamedTuple):
    """A picture in [0, 1] with what is known of it."""

    image: Tensor  # (C, H, W)
    label: int
    region: Tensor | None  # (H, W) bool


def pictures(
    images: Any,
    labels: Any = None,
    *,
    masks: Any = None,
    ids: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str | None]] | None = None,
    view: View | int | None = None,
    levels: Levels | None = None,
    name: str = "pictures",
) -> InMemory:
    """A data set of pictures that are in memory, or of what hands them out one by one.

    `images` are a tensor or array (count, channels, height, width) or (…, height, width, channels), a list of such or
    of PIL pictures, a torch `Dataset` or `DataLoader`, or a `Dataset` of Hugging Face, whose items are a picture, or
    picture and label, or picture, label and mask, or a mapping with such keys. Values are 0 … 255 in bytes, 0 … 65535
    in 16 bits, else in [0, 1], or between the values of black and white, `levels`, in any number of channels.
    Leave `Normalize` out of the transforms and give mean and std to the model. `groups` are sampled groups
    (`{"patient": […]}`); `view` cuts pictures of different sizes to one.
    """
    source = _indexed(images)
    for what, values in (("labels", labels), ("masks", masks), ("ids", ids)):
        if values is not None and len(values) != len(source):
            raise BadInput(f"{what} must be as many as the {len(source)} pictures, got {len(values)}")
    if not len(source):
        raise BadInput("a data set needs pictures, got none")
    known = tuple(ids) if ids is not None else tuple(f"{place:06d}" for place in range(len(source)))
    if len(set(known)) < len(known):
        raise BadInput("ids must be distinct: random draws and stored scores go by them")
    for title, members in (groups or {}).items():
        if len(members) != len(source):
            raise BadInput(f"group {title!r} must name one group per picture ({len(source)}), got {len(members)}")
    chosen = tuple((title, tuple(members)) for title, members in (groups or {}).items())
    return InMemory(source, known, labels, masks, chosen, as_view(view), name, as_levels(levels))


@dataclass(frozen=True, eq=False)
class InMemory:
    """Pictures in memory, made by `heatproof.pictures`. A stored study finds them only through its STUDY.py."""

    source: Indexed
    known_ids: tuple[str, ...]
    labels: Any = None
    masks: Any = None
    sampled: tuple[tuple[str, tuple[str | None, ...]], ...] = ()
    view: View | None = None
    name: str = "pictures"
    levels: Levels | None = None  # values of black and white

    def __post_init__(self) -> None:
        object.__setattr__(self, "_item", lru_cache(maxsize=64)(self._read))

    def __len__(self) -> int:
        return len(self.source)

    def ids(self) -> tuple[str, ...]:
        return self.known_ids

    def class_labels(self) -> tuple[int, ...]:
        """The labels that were given or that a torchvision data set lists; else every picture is opened for its own."""
        listed = self.labels if self.labels is not None else getattr(self.source, "targets", None)
        if isinstance(listed, Sequence | Tensor | np.ndarray) and len(listed) == len(self):
            return tuple(_label(value) for value in listed)
        return tuple(self.item(place).label for place in range(len(self)))

    def fitted(self, model: Model) -> InMemory:
        """As this model looks at it: cut to its size, unless the pictures have that size."""
        if self.view is not None or model.view is None:
            return self
        sides = tuple(self.item(0).image.shape[1:])
        return self if sides == model.view.sides else replace(self, view=model.view)

    def groups(self) -> Mapping[str, Grouping]:
        """Classes, fixed; the groups that were given, sampled."""
        return {**by_class(self.class_labels()), **{title: Grouping("sampled", all_) for title, all_ in self.sampled}}

    def item(self, place: int) -> Item:
        """A picture as it was given, before the view cuts it."""
        found: Item = self._item(place)  # type: ignore[attr-defined]
        return found

    def batch(self, indices: Sequence[int], /) -> Batch:
        items = [self.item(self._checked(index)) for index in indices]
        shown = [self._seen(item) for item in items]
        sizes = {tuple(image.shape) for image, _ in shown}
        if len(sizes) > 1:
            few = " and ".join(f"{size[2]}x{size[1]}" for size in sorted(sizes)[:2])
            raise BadInput(f"pictures must have one size unless a view cuts them, got {few}: give view=224, say")
        labels = torch.tensor([item.label for item in items], dtype=torch.int64)
        regions = [region for _, region in shown if region is not None]
        if regions and len(regions) < len(items):
            raise BadInput("all pictures must have a mask, or none")
        covered = [float(item.region.float().mean()) for item in items if item.region is not None]
        sides = (1, 1) if self.view is None else self.view.sides
        return Batch(
            images=torch.stack([image for image, _ in shown]) if shown else torch.zeros(0, 3, *sides),
            targets=labels.clamp(min=0),
            ids=tuple(self.known_ids[index] for index in indices),
            regions=torch.stack(regions) if regions else None,
            labels={"label": labels, **({"region_share": torch.tensor(covered)} if covered else {})},
        )

    def digest(self, indices: Sequence[int], /) -> str:
        total = hashlib.sha256()
        for index in indices:
            item = self.item(self._checked(index))
            total.update(f"{self.known_ids[index]}\x1f{item.label}\x1f{tuple(item.image.shape)}\x1f".encode())
            total.update(item.image.contiguous().numpy().tobytes())
            total.update(b"" if item.region is None else item.region.contiguous().numpy().tobytes())
        return total.hexdigest()[:32]

    @cached_property
    def _whole(self) -> str:
        return self.digest(range(len(self)))

    def recipe(self) -> dict[str, Any]:
        """What is stored: the pictures' digest. They themselves are not."""
        return {"object": f"{type(self).__module__}:{type(self).__qualname__}", "source": self._whole}

    def _checked(self, index: int) -> int:
        if not 0 <= index < len(self):
            raise BadInput(f"picture indices must lie in 0 … {len(self) - 1}, got {index}")
        return int(index)

    def _read(self, place: int) -> Item:
        identity = self.known_ids[place]
        try:
            image, label, mask = _parts(self.source[place])
        except BadInput as error:
            raise BadInput(f"picture {identity}: {error}") from error
        if self.labels is not None:
            label = self.labels[place]
        if self.masks is not None:
            mask = self.masks[place]
        pixels = as_image(image, f"picture {identity}", self.levels)
        region = None if mask is None else as_region(mask, (pixels.shape[1], pixels.shape[2]), f"mask of {identity}")
        return Item(pixels, UNKNOWN if label is None else _label(label), region)

    def _seen(self, item: Item) -> tuple[Tensor, Tensor | None]:
        if self.view is None:
            return item.image, item.region
        height, width = item.image.shape[1:]
        values = (item.image * 255).round().byte()
        if item.image.shape[0] in (1, 3) and torch.equal(
            values.float() / 255, item.image
        ):  # cut as a file of 8 bits is
            shown = values.permute(1, 2, 0).numpy()
            image = apply_view(Image.fromarray(shown[..., 0] if shown.shape[2] == 1 else shown), self.view)
        else:
            image = as_input(item.image.numpy(), self.view)
        if item.region is None:
            return image, None
        binary = Image.fromarray(item.region.numpy().astype(np.uint8) * 255)
        return image, cut_region(binary, (width, height), self.view)


def _indexed(images: Any) -> Indexed:
    """What hands out single pictures: a loader's data set, or the thing itself."""
    inner = getattr(images, "dataset", None)
    if inner is not None and hasattr(images, "batch_size"):  # a DataLoader
        images = inner
    if isinstance(images, Tensor | np.ndarray) and images.ndim != 4:
        raise BadInput(f"images must have four axes, one of them for the pictures, got shape {tuple(images.shape)}")
    if isinstance(images, Indexed) and not isinstance(images, str | Mapping):
        return images
    if isinstance(images, Iterable) and not isinstance(images, str | bytes | Mapping):
        return list(images)  # an iterable data set is read once
    raise BadInput(
        "images must be a tensor, an array, PIL pictures, a torch Dataset or DataLoader, or a Dataset of Hugging Face, "
        f"got {type(images).__name__}"
    )


def _parts(item: Any) -> tuple[Any, Any, Any]:
    """Picture, label and mask of what a data set hands out."""
    if isinstance(item, Mapping):
        found = [next((item[key] for key in keys if key in item), None) for keys in (IMAGE_KEYS, LABEL_KEYS, MASK_KEYS)]
        if found[0] is None:
            raise BadInput(
                f"an item must have one of the keys {', '.join(IMAGE_KEYS)}, got {', '.join(map(str, item))}"
            )
        return found[0], found[1], found[2]
    if isinstance(item, tuple | list):
        filled = (*item, None, None)
        return filled[0], filled[1], filled[2]
    return item, None, None


def as_image(image: Any, what: str, levels: Levels | None = None) -> Tensor:
    """A picture as (C, H, W) float32 in [0, 1]."""
    if isinstance(image, Image.Image):
        image = np.array(image if image.mode == "L" else to_rgb(image))
    pixels = torch.from_numpy(image.copy()) if isinstance(image, np.ndarray) else torch.as_tensor(image).detach().cpu()
    if pixels.ndim == 2:
        pixels = pixels[None]
    if pixels.ndim != 3:
        raise BadInput(f"{what} must have the axes channels, height, width, got shape {tuple(pixels.shape)}")
    if pixels.shape[2] <= 4 < pixels.shape[0]:
        pixels = pixels.permute(2, 0, 1)
    deep = pixels.dtype == torch.uint16
    if levels is not None or deep:
        try:
            return torch.from_numpy(unit_range(pixels.numpy(), levels, 65535.0)).contiguous()
        except BadInput as error:
            raise BadInput(f"{what}: {error}") from error
    scaled = pixels.float() if pixels.is_floating_point() else pixels.float() / 255
    low, high = float(scaled.min()), float(scaled.max())
    if low < -1e-6 or high > 1 + 1e-6:
        raise BadInput(
            f"{what} must have values in [0, 1], or 0 … 255 in integers, got {low:.3g} to {high:.3g}: leave Normalize "
            "out of the transforms and give mean and std to the model, which normalises (Model(…, mean=…, std=…))"
        )
    return scaled.clamp(0, 1).contiguous()


def as_region(mask: Any, size: tuple[int, int], what: str) -> Tensor:
    """A mask as (H, W) bool; numbers count as inside where they are not zero, in [0, 1] above one half."""
    drawn = np.array(mask.convert("L")) if isinstance(mask, Image.Image) else mask
    values = torch.as_tensor(drawn).detach().cpu().squeeze()
    if tuple(values.shape) != size:
        raise BadInput(f"{what} must be {size[1]}x{size[0]} pixels as its picture is, got shape {tuple(values.shape)}")
    return values > 0.5 if values.is_floating_point() else values != 0


def _label(value: Any) -> int:
    if isinstance(value, Tensor | np.ndarray | np.generic) and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"a label must be a class index, got {value!r:.60}")
    return value
