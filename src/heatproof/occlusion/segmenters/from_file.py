"""Segments made elsewhere: label maps on disk, Segment-Anything's among them.

A folder holds one map per picture, `<image id>.npy` or `<image id>.png` (ids with slashes are sub-folders),
or one `.npz` file holds them all, keyed by image id. Maps from Segment-Anything come in like this:

    from heatproof.data import load
    from heatproof.occlusion.segmenters.from_file import save_segments
    from heatproof.occlusion.segmenters.segment_anything import SegmentAnything

    pictures, segmenter = load("photos/"), SegmentAnything(checkpoint="sam_vit_b_01ec64.pth", network="vit_b")
    for index in range(len(pictures)):
        batch = pictures.batch([index])
        save_segments("segments/", batch, segmenter(batch.images))

and then `SRG(Occlusion(segmenter=FromFile("segments/")))`. Masks from any other tool become a label map with
`labels_of(masks, shape)`.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from heatproof.data._support.pictures import check_pixels
from heatproof.errors import BadInput, BadShape, NotApplicable
from heatproof.occlusion.segments import relabelled
from heatproof.registry import segmenter
from heatproof.storage.arrays import of_archive, of_file
from heatproof.types import Batch, Images, Segments

Labels = npt.NDArray[np.integer]
SUFFIXES = (".npy", ".png")  # of one picture's map; the first one found is read


def labels_of(masks: Sequence[npt.NDArray[np.bool_]], shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Overlapping masks as one label map: smaller masks lie on top, the uncovered rest is one segment."""
    labels = np.zeros(shape, np.int64)
    for label, mask in enumerate(sorted(masks, key=lambda one: -int(one.sum())), start=1):
        labels[mask] = label
    return relabelled(labels).numpy()


def save_segments(folder: str | Path, batch: Batch, segments: Segments) -> None:
    """Write one `.npy` label map per picture, where `from_file` finds it."""
    for identity, labels in zip(batch.ids, segments.cpu().numpy(), strict=True):
        path = Path(folder) / f"{identity}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, labels.astype(np.int32))


def content(place: Path) -> str:
    """A hash of the label maps in a file, or of all in a folder with their names."""
    digest = hashlib.sha256()
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    for file in files:
        name = "" if file == place else file.relative_to(place).as_posix()
        digest.update(f"{name}\x1f{hashlib.sha256(file.read_bytes()).hexdigest()}\x1f".encode())
    return digest.hexdigest()[:16]


def _found(place: Path, identity: str) -> Labels | None:
    """An image's label map, or None where there is none."""
    if place.suffix == ".npz" and place.is_file():
        with zipfile.ZipFile(place) as maps:
            return of_archive(maps, identity) if f"{identity}.npy" in maps.namelist() else None
    for path in (place / f"{identity}{suffix}" for suffix in SUFFIXES):
        if path.is_file():
            return of_file(path) if path.suffix == ".npy" else _of_picture(path)
    return None


def _of_picture(path: Path) -> Labels:
    try:
        with Image.open(path) as picture:
            check_pixels(picture)
            return np.asarray(picture)
    except Image.DecompressionBombError as error:  # an image beyond Pillow's own limit
        raise BadInput(f"{path}: {error}") from error


@segmenter
@dataclass(frozen=True)
class FromFile:
    """Label maps read from a folder (`<image id>.npy` or `.png`) or from one `.npz` keyed by image id."""

    path: str = ""
    in_words: ClassVar[str] = "segments from files"

    def __post_init__(self) -> None:
        if self.path:  # a stored study must find the same maps from any directory
            object.__setattr__(self, "path", str(Path(self.path).expanduser().absolute()))

    @cached_property
    def revision(self) -> str:
        """A hash of the maps' content, computed once, since every label contains it and files are slow to read."""
        return content(Path(self.path)) if self.path else ""

    def for_batch(self, batch: Batch, /) -> Segments:
        if not self.path:
            raise NotApplicable("segmenter from_file needs path, a folder or .npz file of label maps, and got none")
        shape = tuple(batch.images.shape[2:])
        rows = []
        for identity in batch.ids:
            labels = self._labels(identity)
            if labels.shape != shape or not np.issubdtype(labels.dtype, np.integer):
                got = f"{labels.shape} {labels.dtype}"
                raise BadShape(f"label map of {identity!r} in {self.path} must be integers of shape {shape}, got {got}")
            rows.append(relabelled(labels))
        return torch.stack(rows)

    def _labels(self, identity: str) -> Labels:
        place = Path(self.path)
        try:
            found = _found(place, identity)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"the label map of image {identity!r} in {place} cannot be read: {error}") from error
        if found is not None:
            return found
        raise BadInput(f"there is no label map of image {identity!r} in {place}: add {identity}.npy, or leave it out")

    def __call__(self, images: Images, /) -> Segments:
        raise NotApplicable("segmenter from_file looks label maps up by image id, which pictures alone do not have")
