"""The embedded data set: drawn on first use, then read from the cache directory."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from heatproof.data._support.other_region import OTHER_REGION, lender
from heatproof.data._support.picture_groups import Grouping
from heatproof.data.two_factor.compose import PAIRS, SCALE, VERSION, draw_many
from heatproof.data.two_factor.objects import OBJECTS
from heatproof.data.two_factor.scenes import SCENES
from heatproof.errors import BadInput
from heatproof.registry import dataset
from heatproof.spec.recipe import spelt
from heatproof.storage.atomic_file import NotWritable, StoreFull, write_atomically
from heatproof.storage.cache import cache_directory, sealed, unsealed
from heatproof.types import Batch

Shows = Literal["composite", "scene", "grey"]
Block = dict[str, NDArray[Any]]

FIRST_INSTANCE = {"train": 0, "held_out": 1000, "test": 2000}  # no object or scene instance is in two splits
_STRIDE = 37  # coprime with the 100 class pairs: a few pictures already show many objects and scenes


@dataset
@dataclass(frozen=True)
class TwoFactor:
    """Ten objects on ten scenes, drawn by code, with exact regions and twins; needs no download.

    Paper: Yang & Kim 2019, "Benchmarking Attribution Methods with Relative Feature Importance" (the design)
    """

    takes_turns: ClassVar[bool] = True  # of the classes: the first pictures show them about equally often

    split: Literal["train", "held_out", "test"] = "test"
    count: int = 200
    shows: Shows = "composite"  # the object on its scene, the scene alone, or the object alone on grey
    size: int = 64
    scale: tuple[float, float] = SCALE  # the object's longer side as a share of the picture's
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", tuple(self.scale))
        if not 1 <= self.count <= 1000 * PAIRS:
            raise BadInput(f"count must be from 1 to {1000 * PAIRS} pictures, got {self.count}")

    @property
    def name(self) -> str:
        return spelt(self)

    def __len__(self) -> int:
        return self.count

    def sample(self, position: int) -> int:
        """The sample index at this position: the class pairs take turns, well mixed."""
        block, place = divmod(position, PAIRS)
        return (FIRST_INSTANCE[self.split] + block) * PAIRS + place * _STRIDE % PAIRS

    def ids(self) -> tuple[str, ...]:
        samples = [self.sample(i) for i in range(self.count)]
        return tuple(f"{s:06d}-{OBJECTS[s % PAIRS // 10]}-{SCENES[s % 10]}" for s in samples)

    def groups(self) -> Mapping[str, Grouping]:
        """Objects and scenes, fixed: there are ten of each."""
        samples = [self.sample(i) for i in range(self.count)]
        return {
            "object": Grouping("fixed", tuple(OBJECTS[s % PAIRS // 10] for s in samples)),
            "scene": Grouping("fixed", tuple(SCENES[s % 10] for s in samples)),
        }

    def digest(self, indices: Sequence[int], /) -> str:
        content = (VERSION, self.shows, self.size, self.scale, self.seed, [self.sample(i) for i in indices])
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def batch(self, indices: Sequence[int], /) -> Batch:
        arrays = self.arrays(indices)
        shown = {"composite": "image", "scene": "twin", "grey": "on_grey"}[self.shows]
        ids = self.ids()
        columns = {"object": "object_label", "scene": "scene_label", "object_id": "object_id", "scene_id": "scene_id"}
        labels = {name: torch.from_numpy(arrays[column]) for name, column in columns.items()}
        labels[OTHER_REGION] = torch.from_numpy(self.arrays([lender(i) for i in indices])["region"])
        return Batch(
            images=pixels(arrays[shown]),
            targets=labels["object"],
            ids=tuple(ids[i] for i in indices),
            regions=torch.from_numpy(arrays["region"]),
            twins=pixels(arrays["twin"]),
            labels=labels,
        )

    def arrays(self, indices: Sequence[int]) -> Block:
        """The drawn samples as arrays, whole blocks of a hundred drawn or read at a time."""
        blocks = {i // PAIRS for i in indices}
        drawn = {b: _block(self.seed, FIRST_INSTANCE[self.split] + b, self.size, self.scale) for b in sorted(blocks)}
        rows = [(drawn[i // PAIRS], self.sample(i) % PAIRS) for i in indices]
        if not rows:
            return {name: values[:0] for name, values in _block(self.seed, 0, self.size, self.scale).items()}
        return {name: np.stack([block[name][row] for block, row in rows]) for name in rows[0][0]}


def pixels(pictures: NDArray[np.uint8]) -> torch.Tensor:
    """8-bit (B, H, W, 3) as images in [0, 1]."""
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous().float() / 255


@lru_cache(maxsize=4)  # 4 MB each; more would be memory that grows with the run
def _block(seed: int, instance: int, size: int, scale: tuple[float, float]) -> Block:
    """The hundred class pairs of one instance: from the cache directory, else drawn and put there."""
    name = f"{seed}-{instance}-{size}-{scale[0]!r}-{scale[1]!r}.npz.sealed"
    path = cache_directory() / f"two_factor-{VERSION}" / name
    block = _kept(path)
    if block is None:
        samples = draw_many(seed, range(instance * PAIRS, (instance + 1) * PAIRS), size=size, scale=scale)
        block = dict(vars(samples))
        _try_to_keep(path, block)
    return block


def _kept(path: Path) -> Block | None:
    """The cached block of this name, or None if there is no sound one."""
    try:
        content = unsealed(path.name.encode(), path.read_bytes())
        if content is None:
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return dict(stored)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def _try_to_keep(path: Path, block: Block) -> None:
    """Caches a block; a cache that cannot be written only costs time."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **block)  # type: ignore[arg-type]
    with suppress(NotWritable, StoreFull):
        write_atomically(path, sealed(path.name.encode(), buffer.getvalue()))
