"""Small folders in exactly the layouts in which data sets are published."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from heatproof.data.chexlocalize import CheXlocalize
from heatproof.data.coco_instances import CocoInstances
from heatproof.data.cub200 import CUB200
from heatproof.data.imagenet_boxes import ImageNetBoxes
from heatproof.data.imagenet_s import ImageNetS
from heatproof.data.oxford_pets import OxfordPets
from heatproof.data.pascal_voc import PascalVOC
from heatproof.data.waterbirds import Waterbirds
from heatproof.types import View

VIEW = View(16)  # the whole picture, 30x24, in 16x16
SIZE = (30, 24)
SYNSETS = [f"n{number:08d}" for number in range(1000)]


def photo(path: Path, seed: int = 0, size: tuple[int, int] = SIZE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(values).save(path)


def numbers(path: Path, values: np.ndarray[Any, Any], mode: str = "L") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(values.astype(np.uint8))
    if mode == "P":
        picture = picture.convert("L")
        picture.putpalette([channel for index in range(256) for channel in (index, 255 - index, index // 2)])
    picture.save(path)


def square(top: int, bottom: int, left: int, right: int, value: int = 1) -> np.ndarray[Any, Any]:
    values = np.zeros((SIZE[1], SIZE[0]), dtype=np.int64)
    values[top:bottom, left:right] = value
    return values


def xml(path: Path, objects: list[tuple[str, tuple[int, int, int, int], bool]]) -> None:
    """Corners as VOC counts them: from 1, both inside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(
        f"<object><name>{name}</name><pose>Left</pose><difficult>{int(difficult)}</difficult><bndbox>"
        f"<xmin>{box[0]}</xmin><ymin>{box[1]}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox></object>"
        for name, box, difficult in objects
    )
    size = f"<size><width>{SIZE[0]}</width><height>{SIZE[1]}</height><depth>3</depth></size>"
    path.write_text(f"<annotation><filename>{path.stem}.jpg</filename>{size}{rows}</annotation>")


def instances() -> dict[str, Any]:
    """A dog (polygon) and two cats (run lengths, packed and plain) on one picture, a crowd and a dog on another."""
    from pycocotools import mask as packed

    cat = np.asfortranarray(square(0, 6, 0, 10).astype(np.uint8))
    run = packed.encode(cat)
    plain = {"size": [24, 30], "counts": [10 * 24, 6, 20 * 24 - 6]}  # column 10, rows 0 … 5
    common = {"area": 60.0, "bbox": [0, 0, 10, 6]}
    return {
        "images": [
            {"id": 139, "file_name": "000000000139.jpg", "width": 30, "height": 24},
            {"id": 42, "file_name": "000000000042.jpg", "width": 30, "height": 24},
        ],
        "categories": [{"id": 18, "name": "dog"}, {"id": 17, "name": "cat"}, {"id": 1, "name": "person"}],
        "annotations": [
            {
                "id": 1,
                "image_id": 139,
                "category_id": 18,
                "iscrowd": 0,
                "area": 100.0,
                "bbox": [15, 12, 14, 11],
                "segmentation": [[15, 12, 29, 12, 29, 23, 15, 23]],
            },
            {"id": 2, "image_id": 139, "category_id": 17, "iscrowd": 0, **common}
            | {"segmentation": {"size": [24, 30], "counts": run["counts"].decode()}},
            {"id": 3, "image_id": 139, "category_id": 17, "iscrowd": 0, **common} | {"segmentation": plain},
            {"id": 4, "image_id": 42, "category_id": 1, "iscrowd": 1, **common} | {"segmentation": plain},
            {"id": 5, "image_id": 42, "category_id": 18, "iscrowd": 0, **common}
            | {"segmentation": [[0, 0, 29, 0, 29, 11, 0, 11]]},
        ],
    }


def a_coco(root: Path) -> CocoInstances:
    for seed, name in enumerate(("000000000139", "000000000042")):
        photo(root / "val2017" / f"{name}.jpg", seed)
    (root / "annotations").mkdir(exist_ok=True)
    (root / "annotations/instances_val2017.json").write_text(json.dumps(instances()))
    return CocoInstances(str(root / "val2017"), VIEW, annotations=str(root / "annotations/instances_val2017.json"))


def a_voc(root: Path) -> PascalVOC:
    home = root / "VOCdevkit" / "VOC2012"
    for seed, name in enumerate(("2007_000033", "2007_000042")):
        photo(home / "JPEGImages" / f"{name}.jpg", seed)
    numbers(home / "SegmentationClass/2007_000033.png", square(0, 12, 0, 30, 12) + square(12, 24, 0, 5, 255), "P")
    numbers(home / "SegmentationClass/2007_000042.png", square(0, 24, 15, 30, 15) + square(0, 24, 0, 5, 12), "P")
    xml(home / "Annotations/2007_000033.xml", [("dog", (1, 1, 30, 12), False)])
    boxes = [("person", (16, 1, 30, 24), False), ("dog", (1, 1, 5, 24), True)]
    xml(home / "Annotations/2007_000042.xml", boxes)
    for part in ("Segmentation", "Main"):
        (home / "ImageSets" / part).mkdir(parents=True, exist_ok=True)
        (home / "ImageSets" / part / "val.txt").write_text("2007_000033\n2007_000042\n")
    return PascalVOC(str(home), VIEW)


def a_synset_list(root: Path) -> Path:
    path = root / "LOC_synset_mapping.txt"
    path.write_text("".join(f"{name} thing {place}, other name\n" for place, name in enumerate(SYNSETS)))
    return path


def an_imagenet_s(root: Path) -> ImageNetS:
    home = root / "ImageNetS50"
    for place, (synset, name) in enumerate(
        (("n00000003", "ILSVRC2012_val_00000236"), ("n00000700", "ILSVRC2012_val_2"))
    ):
        photo(home / "validation" / synset / f"{name}.JPEG", place)
        upper = square(0, 12, 0, 30, place + 1) + square(12, 18, 0, 30, 1000)
        colours = np.stack([upper % 256, upper // 256, 0 * upper], -1)
        numbers(home / "validation-segmentation" / synset / f"{name}.png", colours)
    return ImageNetS(str(home), VIEW, synsets=str(a_synset_list(root)))


def imagenet_boxes(root: Path) -> ImageNetBoxes:
    home = root / "ILSVRC"
    a_synset_list(root)
    for seed in (1, 2, 3):
        photo(home / "Data/CLS-LOC/val" / f"ILSVRC2012_val_0000000{seed}.JPEG", seed)
    notes = home / "Annotations/CLS-LOC/val"
    xml(
        notes / "ILSVRC2012_val_00000001.xml",
        [("n00000065", (1, 1, 30, 12), False), ("n00000065", (1, 13, 3, 24), False)],
    )
    xml(notes / "ILSVRC2012_val_00000002.xml", [("n00000970", (16, 1, 30, 24), False)])
    return ImageNetBoxes(str(home), VIEW)


def a_cub(root: Path) -> CUB200:
    home = root / "CUB_200_2011"
    names = ["001.Black_footed_Albatross/a.jpg", "002.Laysan_Albatross/b.jpg", "002.Laysan_Albatross/c.jpg"]
    for seed, name in enumerate(names):
        photo(home / "images" / name, seed)
        votes = square(0, 12, 0, 30, 204) + square(12, 24, 0, 30, 102)  # four of five annotators, two of five
        numbers((root / "segmentations" / name).with_suffix(".png"), votes)
    (home / "images.txt").write_text("".join(f"{place} {name}\n" for place, name in enumerate(names, 1)))
    (home / "classes.txt").write_text("1 001.Black_footed_Albatross\n2 002.Laysan_Albatross\n")
    (home / "image_class_labels.txt").write_text("1 1\n2 2\n3 2\n")
    (home / "train_test_split.txt").write_text("1 0\n2 0\n3 1\n")
    (home / "bounding_boxes.txt").write_text("1 0.0 0.0 15.0 24.0\n2 0.0 12.0 30.0 12.0\n3 1.0 1.0 2.0 2.0\n")
    return CUB200(str(home), VIEW)


def a_waterbirds(root: Path) -> Waterbirds:
    home = root / "waterbird_complete95_forest2water2"
    rows = [("001.A/a.jpg", 0, 2, 0), ("002.B/b.jpg", 1, 2, 0), ("002.B/c.jpg", 1, 0, 1)]
    for seed, (name, *_) in enumerate(rows):
        photo(home / name, seed)
        numbers((root / "segmentations" / name).with_suffix(".png"), square(0, 12, 0, 30, 255))
    with (home / "metadata.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["img_id", "img_filename", "y", "split", "place", "place_filename"])
        for place, (name, bird, split, where) in enumerate(rows, 1):
            table.writerow([place, name, bird, split, where, "/o/ocean/00000001.jpg"])
    return Waterbirds(str(home), VIEW, segmentations=str(root / "segmentations"))


def oxford_pets(root: Path) -> OxfordPets:
    rows = [("Abyssinian_201", 1, 1), ("american_bulldog_7", 2, 2), ("american_bulldog_9", 2, 2)]
    for seed, (name, *_) in enumerate(rows):
        photo(root / "images" / f"{name}.jpg", seed)
        trimap = np.full((SIZE[1], SIZE[0]), 2)
        trimap[:12], trimap[12:15] = 1, 3
        numbers(root / "annotations/trimaps" / f"{name}.png", trimap)
    lines = [f"{name} {breed} {species} 1\n" for name, breed, species in rows]
    (root / "annotations/test.txt").write_text("".join(lines))
    return OxfordPets(str(root), VIEW)


def a_chexlocalize(root: Path) -> CheXlocalize:
    from pycocotools import mask as packed

    def outline(values: np.ndarray[Any, Any]) -> dict[str, Any]:
        run = packed.encode(np.asfortranarray(values.astype(np.uint8)))
        return {"size": run["size"], "counts": run["counts"].decode()}

    views = [("patient64541", "study1", "view1_frontal"), ("patient64541", "study1", "view2_lateral")]
    for seed, view in enumerate([*views, ("patient64622", "study1", "view1_frontal")]):
        photo((root / "CheXpert" / "val").joinpath(*view).with_suffix(".jpg"), seed)
    upper, nothing = outline(square(0, 12, 0, 30)), outline(square(0, 0, 0, 0))
    content = {
        "patient64541_study1_view1_frontal": {"Airspace Opacity": upper, "Edema": nothing, "Cardiomegaly": upper},
        "patient64541_study1_view2_lateral": {"Edema": upper},
        "patient64622_study1_view1_frontal": {"Edema": nothing, "Support Devices": upper},
    }
    (root / "gt_segmentations_val.json").write_text(json.dumps(content))
    return CheXlocalize(str(root / "CheXpert/val"), VIEW, annotations=str(root / "gt_segmentations_val.json"))


PUBLISHED = [a_coco, a_voc, an_imagenet_s, imagenet_boxes, a_cub, a_waterbirds, oxford_pets, a_chexlocalize]
