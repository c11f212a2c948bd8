"""Pascal VOC's annotation files, in which ImageNet's boxes are written, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from heatproof.data._support.regions import Corners, Size
from heatproof.errors import BadInput

MOST_BYTES = 2**21  # of one picture's annotation; real ones have some kilobytes


@dataclass(frozen=True)
class Annotated:
    """The size of an annotated picture, and its objects: class, box, and whether it counts as difficult."""

    size: Size | None
    objects: tuple[tuple[str, Corners, bool], ...]


def read_annotation(path: Path) -> Annotated:
    """One annotation file, or `BadInput`. Corners are counted from 1 and belong to the box; here from 0, the far ones
    outside."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{path} must be an annotation in XML of up to {MOST_BYTES >> 20} MB")
        text = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    if b"<!DOCTYPE" in text.upper() or b"<!ENTITY" in text.upper():
        raise BadInput(f"{path} declares entities, which annotations do not need and which can fill the memory")
    try:
        root = ElementTree.fromstring(text)
        return Annotated(_size(root), tuple(_objects(root)))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise BadInput(f"{path} must be an annotation in Pascal VOC's XML: {error}") from error


def _size(root: ElementTree.Element) -> Size | None:
    width, height = (int(float(root.findtext(f"size/{side}", "0"))) for side in ("width", "height"))
    return (width, height) if width > 0 and height > 0 else None


def _objects(root: ElementTree.Element) -> Iterator[tuple[str, Corners, bool]]:
    for found in root.iter("object"):
        name = (found.findtext("name") or "").strip()
        sides = [found.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
        if not name or any(side is None for side in sides):
            raise ValueError("an object must have a name and a bndbox of xmin, ymin, xmax, ymax")
        left, top, right, bottom = (float(side or 0) for side in sides)
        yield name, (left - 1, top - 1, right, bottom), (found.findtext("difficult") or "0").strip() == "1"
