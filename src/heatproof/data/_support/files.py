"""Picture files to batches: shared by every data set on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heatproof.data._support.manifest import manifests
from heatproof.data._support.masks import cut_region, read_mask, share
from heatproof.data._support.pictures import Levels, is_deep
from heatproof.data._support.pixels import Reading, as_input, read_pixels, size_of
from heatproof.data._support.regions import Region
from heatproof.errors import BadInput
from heatproof.types import Batch, View

PLAIN = Reading()
UNKNOWN = -1  # the label of a picture whose class is not known


class PictureFile(NamedTuple):
    """A picture file with its mask, label and cluster."""

    id: str
    path: Path
    label: int = UNKNOWN
    mask: Path | Region | None = None
    cluster: int = UNKNOWN  # pictures of the same thing (patient, lesion, video) share a number


def as_view(view: Any) -> View | None:
    """A view, also from the plain list a recipe holds, or from the size of its square alone."""
    if view is None or isinstance(view, View):
        return view
    parts = view if isinstance(view, tuple | list) else (view,)
    first = parts[0] if parts else 0
    sides = first if isinstance(first, tuple | list) and len(first) == 2 else (first,)
    size = tuple(int(str(side)) if str(side).isdecimal() else 0 for side in sides)  # on the command line it is text
    if min(size) < 1 or len(parts) > 3:
        raise BadInput(
            "view must be a size in pixels, as in view=224, or heatproof.View(size, resize, interpolation), "
            f"got {view!r}"
        )
    return View(size[0] if len(size) == 1 else (size[0], size[1]), *parts[1:])


def as_levels(levels: Any) -> Levels | None:
    """The values of black and white, also from the highest alone (`4095`), a recipe's list or text (`0,4095`)."""
    if levels is None:
        return None
    given = levels.split(",") if isinstance(levels, str) else levels
    parts = given if isinstance(given, tuple | list) else [given]
    parts = (0, *parts) if len(parts) == 1 else parts
    try:
        low, high = (float(part) for part in parts)
    except (TypeError, ValueError):
        low = high = 0.0
    if not -1e9 < low < high < 1e9:
        raise BadInput(f"levels must be the grey values of black and white, as in levels=[0, 4095], got {levels!r}")
    return low, high


def absolute(path: str) -> str:
    """The whole path, so that a stored study finds the same pictures from any directory."""
    return str(Path(path).expanduser().absolute()) if path else ""


def root(path: str, kind: str) -> Path:
    """The folder of a data set; raises `BadInput` if it is missing."""
    if not path:
        raise BadInput(f"the data set {kind!r} needs a path: {kind}(path='…')")
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}")
    return folder


def identity(path: Path, folder: Path) -> str:
    """A picture's id: its path below the folder, '/'-separated; bytes that are not text are escaped."""
    text = path.relative_to(folder).as_posix()
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_batch(
    files: Sequence[PictureFile],
    view: View | None,
    masked: bool = False,
    reading: Reading = PLAIN,
) -> Batch:
    """The readable pictures as a batch; the others are named in `missing` with the reason."""
    images: list[Tensor] = []
    regions: list[Tensor] = []
    shares: list[float] = []
    kept: list[PictureFile] = []
    missing: dict[str, str] = {}
    for file in files:
        try:
            picture = read_pixels(file.path, reading)
            image = as_input(picture, view)
            if masked:
                region, covered = _region(file, size_of(picture), view)
                regions.append(region)
                shares.append(covered)
        except BadInput as error:
            missing[file.id] = str(error)
            continue
        images.append(image)
        kept.append(file)
    _check_sizes(images, kept)
    sides = (1, 1) if view is None else view.sides
    labels = torch.tensor([file.label for file in kept], dtype=torch.int64)
    known = {"label": labels}
    if masked:
        known["region_share"] = torch.tensor(shares, dtype=torch.float32)  # before the view cuts anything
    if any(file.cluster != UNKNOWN for file in files):
        known["cluster"] = torch.tensor([file.cluster for file in kept], dtype=torch.int64)
    return Batch(
        images=torch.stack(images) if images else torch.zeros(0, 1 if reading.grey else 3, *sides),
        targets=labels.clamp(min=0),
        ids=tuple(file.id for file in kept),
        regions=_stacked(regions, sides) if masked else None,
        labels=known,
        missing=missing,
    )


def _region(file: PictureFile, size: tuple[int, int], view: View | None) -> tuple[Tensor, float]:
    """The region as the view shows it, and the share of the whole picture that it covers."""
    if file.mask is None:
        raise BadInput("there is no mask for this picture")
    try:
        binary = read_mask(file.mask, size) if isinstance(file.mask, Path) else file.mask.drawn(size)
        return cut_region(binary, size, view), share(binary)
    except BadInput as error:
        what = "mask " if isinstance(file.mask, Path) else ""
        raise BadInput(f"{what}{file.mask.name}: {error}") from error


def _stacked(regions: list[Tensor], sides: tuple[int, int]) -> Tensor:
    return torch.stack(regions) if regions else torch.zeros(0, *sides, dtype=torch.bool)


def _check_sizes(images: list[Tensor], files: list[PictureFile]) -> None:
    """Checks that all pictures have as many channels, and without a view one size."""
    for image, file in zip(images, files, strict=True):
        if len(image) != len(images[0]):
            raise BadInput(
                f"pictures must have the same channels: {files[0].id} has {len(images[0])}, {file.id} has "
                f"{len(image)}; make a data set of each kind"
            )
        if image.shape != images[0].shape:
            first, other = (f"{i.shape[2]}x{i.shape[1]}" for i in (images[0], image))
            raise BadInput(
                f"pictures must have one size unless a view cuts them: {files[0].id} is {first}, {file.id} "
                f"is {other}; "
                "set the data set's view (a model usually brings one)"
            )


def digest(files: Sequence[PictureFile], reading: Reading = PLAIN) -> str:
    """A hash of names, labels and the bytes of pictures and masks, and of how they are read."""
    total = hashlib.sha256(b"grey" if reading.grey else b"")
    total.update(repr(reading.levels).encode() if reading.levels else b"")
    total.update(reading.key.encode())
    for file in files:
        total.update(f"{file.id}\x1f{file.label}\x1f{file.cluster}\x1f".encode())
        total.update(_bytes_digest(file.path))
        total.update(b"every bit" if is_deep(file.path) else b"")  # such pictures used to be rounded to 8 bits
        if file.mask is None or isinstance(file.mask, Path):
            total.update(_bytes_digest(file.mask))
        else:
            total.update(file.mask.content())
    return total.hexdigest()[:32]


def _bytes_digest(path: Path | None) -> bytes:
    if path is None:
        return b"no file"
    try:
        if not path.is_file():  # also for a pipe or a device, whose reading would never end
            return b"unreadable"
        return manifests().hash_of(path)
    except (OSError, ValueError):  # a missing file is part of the content
        return b"unreadable"


def numbered(names: Sequence[str]) -> dict[str, int]:
    """Names in alphabetical order -> 0 … k-1."""
    return {name: index for index, name in enumerate(sorted(set(names)))}


def pick(files: Sequence[PictureFile], indices: Sequence[int]) -> list[PictureFile]:
    """The files at these indices; raises `BadInput` for an index out of range."""
    for index in indices:
        if not 0 <= index < len(files):
            raise BadInput(f"picture indices must lie in 0 … {len(files) - 1}, got {index}")
    return [files[index] for index in indices]
