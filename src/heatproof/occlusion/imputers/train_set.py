"""The train-set imputer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Generator, Tensor
from torch.nn import functional

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import repainted
from heatproof.occlusion.seeded_pictures import per_row
from heatproof.registry import imputer
from heatproof.traits import dataset_traits
from heatproof.types import Batch, Dataset, Images, Keep, View


class Donor(NamedTuple):
    """A picture to take pixels from, with its id; no picture where its file cannot be read."""

    id: str
    image: Tensor | None


def _loaded(donors: Any) -> Dataset:
    from heatproof import data

    return data.load(donors) if isinstance(donors, str) else cast(Dataset, donors)


@lru_cache(maxsize=8)
def _opened(donors: Any, revision: str, side: int, channels: int) -> Dataset:
    """The donors of this revision, cropped to the side if they are files of any size."""
    from heatproof.data import in_grey

    found = _loaded(donors)
    if channels == 1:
        found = in_grey(found)
    if dataset_traits(found).uncut:
        found = dataclasses.replace(found, view=View(side, side))  # type: ignore[type-var]
    return found


@lru_cache(maxsize=128)
def donor(donors: Any, revision: str, index: int, shape: tuple[int, int, int]) -> Donor:
    """One donor at the size of the picture that it fills."""
    channels, height, width = shape
    found = _opened(donors, revision, max(height, width), channels).batch([index])
    if not len(found):
        return Donor("", None)
    images = found.images
    if images.shape[2:] != (height, width):
        images = functional.interpolate(images, (height, width), mode="bilinear", antialias=True).clamp(0, 1)
    return Donor(found.ids[0], images[0])


def pool(size: int, count: int) -> list[int]:
    """The indices of the pictures that may be donors: all `size`, or `count` drawn among them.

    Folders list one class after the other, so the first `count` would all be of one kind.
    """
    if size <= count:
        return list(range(size))
    return torch.randperm(size, generator=Generator().manual_seed(0))[:count].tolist()


@imputer
@dataclass(frozen=True)
class TrainSet:
    """Hidden pixels take those of a donor, another picture drawn once per image and draw, at the same place.

    Donors should be pictures that are not evaluated: a training split, or a separate folder. Otherwise a picture is
    still never its own donor: donors with its id or equal pixels are skipped.
    """

    donors: Any = "two_factor(split=train, count=1000)"  # a data set or its name
    count: int = 1000  # donors, drawn among all pictures of the data set
    random: ClassVar[bool] = True
    in_words: ClassVar[str] = "pixels of another picture"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise BadInput(f"count must be at least 1 donor, got {self.count}")
        if isinstance(self.donors, str) and Path(self.donors).expanduser().exists():
            # A stored study must find the same donors from any directory.
            object.__setattr__(self, "donors", str(Path(self.donors).expanduser().absolute()))

    @cached_property
    def revision(self) -> str:
        """A hash of the donors' content, computed once, since every label contains it and files are slow to read."""
        found = _loaded(self.donors)
        return found.digest(pool(len(found), self.count))

    def for_batch(self, batch: Batch, /) -> Others:
        """The imputer bound to picture ids, because a picture cropped to another size does not equal itself."""
        return Others(self, batch.ids)

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        return Others(self, ("",) * len(images)).filling(images, keep, seeds)

    def chosen(self, image: Tensor, seed: int, identity: str = "") -> Tensor:
        """A donor drawn uniformly among those that are not the picture itself."""
        channels, height, width = image.shape
        shape = (channels, height, width)
        places = pool(len(_opened(self.donors, self.revision, max(height, width), channels)), self.count)
        for place in torch.randperm(len(places), generator=Generator().manual_seed(seed)).tolist():
            name, found = donor(self.donors, self.revision, places[place], shape)
            if found is None or len(found) != channels or (identity and name == identity):
                continue
            found = found.to(image.device, image.dtype)
            if not torch.equal(found, image):
                return found
        raise BadInput(f"donors must hold another picture with {channels} channels, got none in {self.donors!r}")


@dataclass(frozen=True, eq=False)
class Others:
    """A train set bound to given pictures: none is filled from itself."""

    donors: TrainSet
    ids: Sequence[str]  # one per row; empty where unknown

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        chosen: dict[int, Tensor] = {}
        seeds = per_row(seeds, images, "train_set")
        for image, seed, identity in zip(images, seeds, self.ids, strict=True):
            if seed not in chosen:  # a seed belongs to one image: all its coalitions share the donor
                chosen[seed] = self.donors.chosen(image, seed, identity)
        if len(chosen) == 1:
            return chosen[seeds[0]]
        return torch.stack([chosen[seed] for seed in seeds]) if chosen else images
