"""Precomputed maps: made elsewhere, judged like those of any other method."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heatproof.errors import BadInput, BadShape, NotApplicable
from heatproof.registry import is_known, method
from heatproof.spec.recipe import spelt
from heatproof.storage.arrays import of_archive, of_file
from heatproof.storage.atomic_file import write_atomically
from heatproof.types import Batch, Cost, Maps, Model


@method
@dataclass(frozen=True)
class Precomputed:
    """Maps from files: an `.npz` with one map per image id, or a folder of `<image id>.npy`.

    Slashes in an image id are folders there; the id's own file ending may be left out. Maps are (H, W), or
    (channels, H, W), whose channels are added up. They must have the pictures' size: nothing is resized
    silently. In an `.npz` written by `heatproof explain` all maps of a method are one array, beside the `ids`;
    `name` selects the method, and a map of another class than the one judged is refused. `signed=False` declares that
    the method gives no negative relevance. `title` is its name in tables.
    """

    stored: ClassVar[bool] = True  # gives the same maps for changed pictures, classes or models

    path: str = ""
    name: str = ""
    signed: bool = True
    title: str = ""

    def __post_init__(self) -> None:
        if self.path:  # a stored study must find the same maps from any directory
            object.__setattr__(self, "path", str(Path(self.path).expanduser().absolute()))
        if self.title and is_known("method", self.title):
            raise BadInput(
                f"title must not be the name of a method, which may be judged beside it, got {self.title!r}: name the "
                f"maps otherwise, 'my_{self.title}'"
            )

    @property
    def label(self) -> str:
        """The title, or the file and the method whose maps are read; that method itself may be judged beside them."""
        return self.title or spelt(self)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        if not self.path:
            raise NotApplicable("precomputed needs path, the file or folder of its maps: precomputed(path='maps.npz')")
        size = tuple(batch.images.shape[2:])
        maps = torch.stack([self._map(identity, size) for identity in batch.ids])
        for identity, target in zip(batch.ids, batch.targets.tolist(), strict=True):
            self._check_class(identity, [*model.classes[target : target + 1], str(target)])
        return maps.to(batch.images.device)

    def _check_class(self, identity: str, names: Sequence[str]) -> None:
        """Raise `BadInput` if the file declares another class for this map than the one that is explained."""
        if not Path(self.path).is_file():
            return
        stored = _archive(self.path, Path(self.path).stat().st_mtime_ns, os.getpid())
        ids = _ids(stored)
        if ids is None or "targets" not in _names_in(stored):
            return
        given = str(of_archive(stored, "targets")[ids.index(_place(ids, identity))])
        if given not in names:
            raise BadInput(
                f"the map of {identity!r} in {self.path} explains {given!r}, but {names[0]!r} is needed: make maps "
                "of that class, or judge with the same target as they were made for"
            )

    def _map(self, identity: str, size: tuple[int, ...]) -> Tensor:
        values = self._read(identity)
        if values.ndim == 3:
            values = values.sum(0)
        if values.shape != size:
            raise BadShape(f"the map of {identity!r} in {self.path} must have shape {size}, got {values.shape}")
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))

    def _read(self, identity: str) -> NDArray[np.generic]:
        where = Path(self.path)
        try:
            if where.is_dir():
                return of_file(_file(where, identity))
            if where.is_file():
                stored = _archive(str(where), where.stat().st_mtime_ns, os.getpid())
                ids = _ids(stored)
                if ids is not None:
                    return of_archive(stored, self._named(stored), ids.index(_place(ids, identity)))
                return of_archive(stored, _place(_names_in(stored), identity))
            raise BadInput(f"there is no file or folder {self.path} with precomputed maps")
        except LookupError:
            pass
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"the map of {identity!r} in {self.path} cannot be read: {error}") from error
        raise BadInput(f"{self.path} holds no map for image {identity!r}: one per image id is needed")

    def _named(self, stored: zipfile.ZipFile) -> str:
        """The name of the array to read in an `.npz` written by `heatproof explain`."""
        there = [name for name in _names_in(stored) if name not in ("ids", "targets")]
        if self.name in there or (not self.name and len(there) == 1):
            return self.name or there[0]
        raise BadInput(
            f"{self.path} holds maps of {', '.join(there)}: name one of them, "
            f"precomputed(path={self.path!r}, name={there[0]!r})"
        )

    @property
    def revision(self) -> str:
        """A hash of the maps' current content."""
        return content(Path(self.path)) if self.path else ""

    def cost(self) -> Cost:
        return Cost(0, 0)


def kept(maps: Mapping[str, Tensor | NDArray[np.generic]], ids: Sequence[str], path: Path) -> list[Precomputed]:
    """Maps (B, H, W) of these images, by the method's name, written into one file, as methods that read them again."""
    arrays = {name: np.asarray(torch.as_tensor(each).detach().cpu(), dtype=np.float32) for name, each in maps.items()}
    for name, each in arrays.items():
        if name in ("ids", "targets") or "/" in name:
            raise BadInput(f"maps need a name that is not 'ids' or 'targets' and has no slash, got {name!r}")
        if each.ndim != 3 or len(each) != len(ids):
            raise BadShape(f"maps of {name!r} must have shape ({len(ids)}, height, width), got {each.shape}")
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    np.savez_compressed(content, ids=np.asarray(ids), **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue())
    return [Precomputed(str(path), name, title=name) for name in arrays]


def _names(identity: str) -> tuple[str, str]:
    return identity, str(Path(identity).with_suffix(""))


def _file(where: Path, identity: str) -> Path:
    """The file of an image's map in a folder; paths that leave the folder are refused."""
    for name in _names(identity):
        file = where / f"{name}.npy"
        if file.is_file() and file.resolve().is_relative_to(where.resolve()):
            return file
    there = {
        file.relative_to(where).with_suffix("").as_posix(): file for file in where.rglob("*.npy") if file.is_file()
    }
    return there[_place(list(there), identity)]


def _place(there: Sequence[str], identity: str) -> str:
    """The name of an image's map: its id, or the one longer path that ends in it, with or without its suffix."""
    exact = [name for name in _names(identity) if name in there]
    longer = [name for name in there if name.endswith(tuple(f"/{own}" for own in _names(identity)))]
    if not exact and len(longer) > 1:
        raise BadInput(f"{identity!r} may be {longer[0]!r} or {longer[1]!r}: name the maps as the pictures are named")
    return (exact + longer)[0]


def content(where: Path) -> str:
    """A hash of a file's bytes, or of the names and bytes of all of a folder's maps."""
    if where.is_file():
        return _file_hash(where)[:16]
    digest = hashlib.sha256()
    if where.is_dir():
        for file in sorted(where.rglob("*.npy")):
            if file.is_file():
                digest.update(f"{file.relative_to(where).as_posix()}\x1f{_file_hash(file)}\x1e".encode())
    return digest.hexdigest()[:16]


def _file_hash(file: Path) -> str:
    state = file.stat()
    return _hashed(str(file), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


@lru_cache(maxsize=2**17)
def _hashed(path: str, *_state: int) -> str:
    """The hash of a file, computed once per process and state (size, times, inode), which is part of the cache key."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _archive(path: str, modified: int, process: int) -> zipfile.ZipFile:
    """An opened .npz; reopened when the file changes, and in a fork, which would share its parent's file position."""
    if not zipfile.is_zipfile(path):
        raise BadInput(
            f"{path} cannot be read: it must be an .npz with one map per image id, or a folder of .npy files"
        )
    return zipfile.ZipFile(path)


def _names_in(stored: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in stored.namelist()]


def _ids(stored: zipfile.ZipFile) -> list[str] | None:
    """The image ids of an archive with all maps of a method in one array; None where each map has its own name."""
    ids = of_archive(stored, "ids") if "ids" in _names_in(stored) else None
    return None if ids is None or ids.ndim != 1 else ids.tolist()
