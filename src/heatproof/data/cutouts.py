"""Objects on scenes from two user folders: cut-outs with transparency by class, photographs by class."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from PIL import Image

from heatproof.data._support.files import absolute, root
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.other_region import OTHER_REGION, lender
from heatproof.data._support.picture_groups import Grouping
from heatproof.data._support.pictures import open_picture, read_picture
from heatproof.data.bam.build import SMALLEST, paste
from heatproof.data.bam.coco import Cutout
from heatproof.data.bam.turns import pair
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.types import Batch, keyed_seed


def by_class(folder: Path, what: str) -> dict[str, list[Path]]:
    """The pictures of each class: one sub-folder per class, at least two."""
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    found = {name: pictures_under(folder / name) for name in names}
    empty = [name for name, files in found.items() if not files]
    if len(names) < 2 or empty:
        got = f"{', '.join(empty)} without pictures" if empty else f"{len(names)} sub-folders"
        raise BadInput(f"{folder} must hold at least two classes of {what}, one sub-folder of pictures each, got {got}")
    return found


def _cutout(path: Path) -> Cutout:
    picture = open_picture(path)
    if not picture.has_transparency_data:
        raise BadInput(
            f"{path.name} has no transparency: a cut-out needs an alpha channel that says where the object is"
        )
    pixels = np.asarray(picture.convert("RGBA"))
    mask = pixels[..., 3] >= 128
    if not mask.any():
        raise BadInput(f"{path.name} is transparent everywhere")
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return Cutout(path.name, pixels[box][..., :3].copy(), mask[box].copy())


def _scene(path: Path, size: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """A random square of the photograph, half to all of its shorter side, sometimes mirrored."""
    picture = read_picture(path)
    dice = np.random.default_rng(seed)
    side = int(min(picture.size) * dice.uniform(0.5, 1.0))
    left, top = (int(dice.integers(0, most - side + 1)) for most in picture.size)
    view = picture.resize((size, size), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
    pixels = np.asarray(view)
    return pixels[:, ::-1].copy() if dice.random() < 0.5 else pixels.copy()


@dataset
@dataclass(frozen=True)
class Cutouts:
    """Your cut-outs pasted on your scenes, with exact regions and twins.

    `objects` and `scenes` are folders with one sub-folder per class. Class pairs take turns, so that any first few
    pictures show all classes equally; cut-out, part of the photograph, size and place are drawn per picture from the
    seed. Alpha is cut at one half, so regions are exact and twins agree outside them bit for bit. `share` sets aside
    files: 0.8 takes the first 80 % of each class's files (to train on), -0.2 the rest.
    """

    takes_turns: ClassVar[bool] = True  # of the classes: the first pictures show them about equally often

    objects: str = ""
    scenes: str = ""
    count: int = 200
    size: int = 128
    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "objects", absolute(self.objects))
        object.__setattr__(self, "scenes", absolute(self.scenes))
        if not (0 < abs(self.share) <= 1) or self.count < 1:
            raise BadInput(
                f"share must be in (0, 1] or [-1, 0) and count at least 1, got {self.share} and {self.count}"
            )
        if self.size < SMALLEST:
            raise BadInput(f"size must be at least {SMALLEST} pixels: nothing fits on less, got {self.size}")

    @property
    def path(self) -> str:
        return self.objects

    @property
    def name(self) -> str:
        return f"cutouts of {Path(self.objects).name} on {Path(self.scenes).name}"

    @cached_property
    def _files(self) -> tuple[dict[str, list[Path]], dict[str, list[Path]]]:
        things = by_class(root(self.objects, "cutouts"), "cut-outs")
        places = by_class(root(self.scenes, "cutouts"), "scenes")
        return self._part(things), self._part(places)

    def _part(self, files: dict[str, list[Path]]) -> dict[str, list[Path]]:
        def some(paths: list[Path]) -> list[Path]:
            first = self.share if self.share > 0 else 1 + self.share
            cut = math.floor(round(first * len(paths), 6) + 0.5)  # 0.7 and -0.3 must meet, whatever floats make of it
            return paths[:cut] if self.share > 0 else paths[cut:]

        part = {name: some(paths) for name, paths in files.items()}
        few = next((name for name, paths in part.items() if not paths), None)
        if few is not None:
            raise BadInput(
                f"share={self.share:g} of class {few!r} must be at least one file, and it has {len(files[few])}: "
                "give more files or another share"
            )
        return part

    def __len__(self) -> int:
        return self.count

    def sample(self, position: int) -> int:
        """The number of the picture at this position, which determines its draw and its class pair."""
        things, places = self._files
        block, place = divmod(position, len(things) * len(places))
        o, s = pair(place, len(things), len(places))
        return (block * len(things) + o) * len(places) + s

    def _pair(self, sample: int) -> tuple[int, int]:
        things, places = self._files
        return sample // len(places) % len(things), sample % len(places)

    def ids(self) -> tuple[str, ...]:
        things, places = (list(part) for part in self._files)
        samples = [self.sample(position) for position in range(self.count)]
        pairs = [self._pair(sample) for sample in samples]
        return tuple(f"{n:06d}-{things[o]}-{places[s]}" for n, (o, s) in zip(samples, pairs, strict=True))

    def groups(self) -> Mapping[str, Grouping]:
        """Objects and scenes, fixed; the files that a cut-out and a scene come from, sampled."""
        chosen = [self._chosen(self.sample(position)) for position in range(self.count)]
        things, places = (list(part) for part in self._files)
        return {
            "object": Grouping("fixed", tuple(things[o] for o, *_ in chosen)),
            "scene": Grouping("fixed", tuple(places[s] for _, s, *_ in chosen)),
            "cut-out": Grouping("sampled", tuple(str(thing) for _, _, thing, _, _ in chosen)),
            "source photo": Grouping("sampled", tuple(str(place) for *_, place, _ in chosen)),
        }

    def _chosen(self, sample: int) -> tuple[int, int, Path, Path, np.random.Generator]:
        o, s = self._pair(sample)
        dice = np.random.default_rng(keyed_seed(self.seed, sample))
        things, places = (list(part.values()) for part in self._files)
        return o, s, things[o][int(dice.integers(len(things[o])))], places[s][int(dice.integers(len(places[s])))], dice

    def batch(self, indices: Sequence[int], /) -> Batch:
        images, twins, regions, lent, kept = [], [], [], [], []
        labels: dict[str, list[int]] = {"object": [], "scene": [], "object_id": [], "scene_id": []}
        missing: dict[str, str] = {}
        ids = self.ids()
        for index in indices:
            sample = self.sample(index)
            o, s, thing, place, dice = self._chosen(sample)
            try:
                bare = _scene(place, self.size, keyed_seed(self.seed, "scene", sample))
                composite, mask, _ = paste(_cutout(thing), bare, dice, legacy=False)
            except BadInput as error:
                missing[ids[index]] = str(error)
                continue
            images.append(torch.from_numpy(composite))
            twins.append(torch.from_numpy(bare))
            regions.append(torch.from_numpy(mask))
            lent.append(torch.from_numpy(self._region(lender(index))))
            kept.append(ids[index])
            known = (o, s, keyed_seed(str(thing)) >> 8, keyed_seed(str(place)) >> 8)
            for values, value in zip(labels.values(), known, strict=True):
                values.append(value)
        tensors = {name: torch.tensor(values, dtype=torch.int64) for name, values in labels.items()}
        none = torch.zeros(0, self.size, self.size, dtype=torch.bool)
        tensors[OTHER_REGION] = torch.stack(lent) if lent else none
        return Batch(
            images=_pixels(images, self.size),
            targets=tensors["object"],
            ids=tuple(kept),
            regions=torch.stack(regions) if regions else none,
            twins=_pixels(twins, self.size),
            labels=tensors,
            missing=missing,
        )

    def _region(self, position: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """The object's region; empty if the object cannot be read."""
        _, _, thing, _, dice = self._chosen(self.sample(position))
        blank = np.zeros((self.size, self.size, 3), np.uint8)
        try:
            return paste(_cutout(thing), blank, dice, legacy=False)[1]
        except BadInput:
            return blank[..., 0] > 0

    def digest(self, indices: Sequence[int], /) -> str:
        samples = [self.sample(index) for index in indices]
        total = hashlib.sha256(repr((self.size, self.seed, samples)).encode())
        for index, sample in zip(indices, samples, strict=True):
            _, _, thing, place, _ = self._chosen(sample)
            other = self._chosen(self.sample(lender(index)))[2]
            total.update(thing.read_bytes() + place.read_bytes() + other.read_bytes())
        return total.hexdigest()[:32]


def _pixels(pictures: list[torch.Tensor], size: int) -> torch.Tensor:
    if not pictures:
        return torch.zeros(0, 3, size, size)
    return torch.stack(pictures).permute(0, 3, 1, 2).contiguous().float() / 255
