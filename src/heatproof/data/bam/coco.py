"""Object cut-outs from COCO annotations: plain JSON and Pillow, polygons and run lengths drawn here."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatproof.data._support.pictures import open_picture, read_picture
from heatproof.data._support.regions import rasterise
from heatproof.errors import BadInput

SMALLEST_SIDE = 32  # pixels of a mask's longer side, outside legacy mode


class Cutout(NamedTuple):
    """An object cut out of a picture: RGB and mask of its box."""

    source: str  # COCO's image id, twelve digits
    pixels: NDArray[np.uint8]  # (h, w, 3)
    mask: NDArray[np.bool_]  # (h, w)


def candidates(content: dict[str, Any], category: str, legacy: bool) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(image, annotation) of the largest object of a category in every picture that has one, in order of image id.

    Legacy mode repeats the published code: crowds count; pictures come in the order a set of their ids happens to
    have; and a category COCO spells otherwise (`stop_sign`) finds no id and so stands for every category, in the
    file's own order of pictures.
    """
    spelt = category if legacy else category.replace("_", " ")
    wanted = {kind["id"] for kind in content["categories"] if kind["name"] == spelt}
    if not wanted and not legacy:
        raise BadInput(f"the annotations have no category {spelt!r}")
    by_image: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for annotation in content["annotations"]:
        if (not wanted or annotation["category_id"] in wanted) and (legacy or not annotation.get("iscrowd")):
            by_image[annotation["image_id"]].append(annotation)
    images = {image["id"]: image for image in content["images"]}
    # This order decides which thousand pictures are taken; a set of ints has the same order in every CPython.
    order = sorted(by_image) if not legacy else list(set(by_image)) if wanted else list(images)
    for identity in order:
        if identity in images and identity in by_image:
            yield images[identity], max(by_image[identity], key=lambda found: float(found["area"]))


def cut_out(image: dict[str, Any], annotation: dict[str, Any], folder: Path, legacy: bool) -> Cutout | str:
    """The cut-out object, or the reason it is left out."""
    try:
        path = folder / str(image["file_name"])
        if legacy and open_picture(path).mode != "RGB":
            return "grey"  # the published code fails on these and continues
        picture = read_picture(path)
        mask = rasterise(annotation["segmentation"], picture.width, picture.height)
    except BadInput as error:
        return f"unreadable ({error})"
    left, top, width, height = (float(value) for value in annotation["bbox"])
    whole = math.floor if legacy else math.ceil  # published: the far corner, too, is rounded down
    box = np.s_[max(int(top), 0) : whole(top + height), max(int(left), 0) : whole(left + width)]
    pixels, inside = np.asarray(picture)[box], mask[box]
    if legacy:  # black object pixels are lost with the background
        inside = inside & (pixels.sum(-1) > 0)
    if not inside.size or not inside.any():
        return "empty"
    if not legacy:
        if max(np.ptp(axis) + 1 for axis in np.nonzero(mask)) < SMALLEST_SIDE:
            return f"smaller than {SMALLEST_SIDE} pixels"
        if mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any():
            return "cut off by the picture's border"
    return Cutout(f"{int(image['id']):012d}", pixels.copy(), inside.copy())
