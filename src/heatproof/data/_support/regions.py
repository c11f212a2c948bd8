"""Where the answer lies on a picture, in the forms in which data sets publish it: outlines, boxes, masks of indices."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from heatproof.data._support.masks import check_same_picture
from heatproof.data._support.pictures import open_picture
from heatproof.errors import BadInput

Size = tuple[int, int]  # width, height
Corners = tuple[float, float, float, float]  # left, top, right, bottom in pixels; right and bottom lie outside


class Region(Protocol):
    """A region that a data set describes other than by a mask file of black and white."""

    @property
    def name(self) -> str:
        """What an error calls it."""

    def drawn(self, size: Size, /) -> Image.Image:
        """255 inside and 0 outside, for a picture of this (width, height), or `BadInput` with the reason."""

    def content(self) -> bytes:
        """What its digest is made of."""


@dataclass(frozen=True)
class Boxes:
    """The union of boxes, in pixels of a picture of the size `frame` (of the picture itself if None)."""

    boxes: tuple[Corners, ...]
    frame: Size | None = None

    @property
    def name(self) -> str:
        return "box"

    def drawn(self, size: Size, /) -> Image.Image:
        frame = self.frame or size
        check_same_picture(frame, size)
        inside = np.zeros((frame[1], frame[0]), dtype=np.uint8)
        for left, top, right, bottom in self.boxes:
            if right <= left or bottom <= top:
                raise BadInput(f"a box must be left, top, right, bottom, got {left:g}, {top:g}, {right:g}, {bottom:g}")
            inside[max(round(top), 0) : max(round(bottom), 0), max(round(left), 0) : max(round(right), 0)] = 255
        if not inside.any():
            raise BadInput(f"no box lies on the picture of {frame[0]}x{frame[1]} pixels: {self.boxes[:1]}")
        return Image.fromarray(inside)

    def content(self) -> bytes:
        return repr((self.boxes, self.frame)).encode()


@dataclass(frozen=True)
class Outlines:
    """The union of objects in COCO's forms: polygons, run lengths, or run lengths packed as text."""

    segmentations: tuple[Any, ...]
    frame: Size  # of the picture that was annotated

    @property
    def name(self) -> str:
        return "outline"

    def drawn(self, size: Size, /) -> Image.Image:
        check_same_picture(self.frame, size)
        inside = np.zeros((self.frame[1], self.frame[0]), dtype=np.bool_)
        for segmentation in self.segmentations:
            inside |= rasterise(segmentation, *self.frame)
        return Image.fromarray(np.where(inside, np.uint8(255), np.uint8(0)))

    def content(self) -> bytes:
        return hashlib.sha256(repr((self.segmentations, self.frame)).encode()).digest()


@dataclass(frozen=True)
class IndexMask:
    """A picture whose pixels hold numbers: the region is where they are one of `inside`.

    A colour is read as red + 256 · green (ImageNet-S numbers its classes so), a palette by its indices.
    """

    path: Path
    inside: frozenset[int]

    @property
    def name(self) -> str:
        return f"mask {self.path.name}"

    def drawn(self, size: Size, /) -> Image.Image:
        stored = open_picture(self.path)
        check_same_picture(stored.size, size)
        found = np.isin(_numbers(stored), list(self.inside))
        if not found.any():
            wanted = ", ".join(map(str, sorted(self.inside)))
            raise BadInput(f"no pixel has the number {wanted}")
        return Image.fromarray(np.where(found, np.uint8(255), np.uint8(0)))

    def content(self) -> bytes:
        try:
            stored = self.path.read_bytes() if self.path.is_file() else b"unreadable"
        except OSError:  # a missing file is part of the content
            stored = b"unreadable"
        return hashlib.sha256(stored + repr(sorted(self.inside)).encode()).digest()


def _numbers(stored: Image.Image) -> NDArray[np.int64]:
    if stored.mode in ("RGB", "RGBA"):
        colours = np.asarray(stored, dtype=np.int64)
        return colours[..., 0] + 256 * colours[..., 1]
    if stored.mode in ("P", "L", "1") or stored.mode.startswith("I"):
        return np.asarray(stored).astype(np.int64)
    raise BadInput(f"its pixels must hold numbers (grey, palette or colour), got mode {stored.mode}")


def rasterise(segmentation: Any, width: int, height: int) -> NDArray[np.bool_]:
    """Polygons (lists of x, y) or run lengths (by columns, background first; plain or packed) as a mask."""
    if isinstance(segmentation, Mapping):
        counts = segmentation.get("counts")
        if isinstance(counts, str | bytes):
            counts = unpacked(counts)
        if not isinstance(counts, list) or not all(isinstance(n, int) and n >= 0 for n in counts):
            raise BadInput("run lengths must be a list of counts, or such a list packed as COCO does")
        if sum(counts) != width * height:
            raise BadInput(
                f"run lengths must add up to the {width * height} pixels of a picture of {width}x{height}, "
                f"got {sum(counts)}"
            )
        flat = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
        return np.asarray(flat.reshape(width, height).T, dtype=np.bool_)
    if not isinstance(segmentation, Sequence) or isinstance(segmentation, str | bytes):
        raise BadInput(f"a segmentation must be polygons or run lengths, got {type(segmentation).__name__}")
    canvas = Image.new("1", (width, height))
    pen = ImageDraw.Draw(canvas)
    for polygon in segmentation:
        if len(polygon) >= 6:
            pen.polygon([float(value) for value in polygon], fill=1)
    return np.array(canvas, dtype=np.bool_)


def unpacked(text: str | bytes) -> list[int]:
    """The counts in COCO's packed run lengths.

    A number is written in groups of five bits, lowest first, as characters from '0' on; the sixth bit of a character
    says that more follow, the fifth of the last one is the sign. From the fourth on, a number is the difference from
    the one two places before it.
    """
    counts: list[int] = []
    value = shift = 0
    for character in text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text:
        bits = character - 48
        if not 0 <= bits < 64:
            raise BadInput(f"packed run lengths hold a character that is none of theirs: {chr(character)!r}")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + counts[-2] if len(counts) > 2 else value)
        value = shift = 0
    if shift:
        raise BadInput("packed run lengths end in the middle of a number")
    return counts
