"""Builds BAM again from COCO and MiniPlaces: the same seed gives the same pictures.

Compared with the published build, the category `stop sign` is found, ids are sorted, crowds, crumbs and objects cut off
by the border are left out, resizing does not darken outlines, pictures are PNG (twins agree outside the mask bit for
bit), every picture's mask is kept in its own frame, and a manifest lists all sources. `legacy` brings the defects back,
including the unsorted choice of pictures; only the draw of sizes and places stays seeded, as the published one cannot
be repeated.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heatproof.data._support.coco_json import read_annotations
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.pictures import read_picture
from heatproof.data.bam.classes import FIRST_VALIDATION, OBJECTS, SCENES
from heatproof.data.bam.coco import Cutout, candidates, cut_out
from heatproof.data.bam.masks import write_masks
from heatproof.errors import BadInput

Pixels = NDArray[np.uint8]
GREY = 128
SMALLEST = 8  # pixels of a scene's side: from here on there is a whole number between its third and its half
SMALL_SETS = {"dog_bedroom": ("scene", "dog-bedroom"), "bamboo_forest": ("scene_only", "dog-bamboo_forest")}
PLACES = {"track": "track/outdoor"}  # where MiniPlaces keeps a scene under another name


@dataclass(frozen=True)
class Plan:
    """The settings of a build. Instances from 900 on are for validation, as published."""

    seed: int = 0
    train: int = 900  # instances of each class
    validation: int = 100
    size: int = 128
    format: Literal["png", "jpeg"] = "png"
    legacy: bool = False
    exclude: tuple[str, ...] = ()  # MiniPlaces file names that already show one of the objects

    def __post_init__(self) -> None:
        if not (1 <= self.train <= FIRST_VALIDATION and 1 <= self.validation <= 100):
            raise BadInput(
                f"train must be 1 … {FIRST_VALIDATION} and validation 1 … 100, got {self.train} and {self.validation}"
            )
        if self.seed < 0:
            raise BadInput(f"seed must be at least 0, got {self.seed}")
        if self.size < SMALLEST:
            raise BadInput(f"size must be at least {SMALLEST} pixels: nothing fits on less, got {self.size}")

    def indices(self) -> list[int]:
        return [*range(self.train), *range(FIRST_VALIDATION, FIRST_VALIDATION + self.validation)]


def build(annotations: Path, images: Path, places: Path, out: Path, plan: Plan, say: Callable[[str], None]) -> Path:
    """Writes BAM's folders under `out`/data and returns the manifest's path."""
    instances = read_annotations(annotations)
    needed = plan.train + plan.validation
    objects = {name: cutouts(instances, images, name, needed, plan, say) for name in OBJECTS}
    scenes = {name: scene_files(places, name, needed, plan) for name in SCENES}
    data = out / "data"
    written: list[dict[str, Any]] = []
    boxes: dict[str, str] = {}
    for place, index in enumerate(plan.indices()):
        backgrounds = {name: _square(files[place], plan.size) for name, files in scenes.items()}
        for o, thing in enumerate(OBJECTS):
            for s, scene in enumerate(SCENES):
                dice = np.random.default_rng([plan.seed, o, s, index])
                file = f"{thing}-{scene}-{index:04d}.{'jpg' if plan.format == 'jpeg' or plan.legacy else 'png'}"
                composite, mask, box = paste(objects[thing][place], backgrounds[scene], dice, plan.legacy)
                _write_all(data, file, thing, scene, index, composite, backgrounds[scene], mask, plan)
                boxes[file] = ",".join(str(side) for side in box)
                source = {"coco": objects[thing][place].source, "scene": scenes[scene][place].name, "box": list(box)}
                scale = max(box[2] - box[0], box[3] - box[1]) / plan.size
                written.append({"file": file, **source, "scale": round(scale, 4), "seed": [plan.seed, o, s, index]})
        say(f"instance {place + 1} of {needed}")
    _lists(data, boxes, [objects[name][plan.train :] for name in OBJECTS])
    digests = {str(path.relative_to(data)): _sha256(path) for path in sorted(data.rglob("*")) if path.is_file()}
    manifest = {"seed": plan.seed, "legacy": plan.legacy, "size": plan.size, "pictures": written, "sha256": digests}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return out / "manifest.json"


def cutouts(
    instances: dict[str, Any], images: Path, name: str, needed: int, plan: Plan, say: Callable[[str], None]
) -> list[Cutout]:
    """The needed number of cut-outs of a class, ordered by source; reports what was left out."""
    found: list[Cutout] = []
    left_out: Counter[str] = Counter()
    for image, annotation in candidates(instances, name, plan.legacy):
        made = cut_out(image, annotation, images, plan.legacy)
        if isinstance(made, str):
            left_out[made.split(" (")[0]] += 1
        else:
            found.append(made)
        if len(found) == needed:
            break
    why = "".join(f", {count} left out: {word}" for word, count in left_out.items())
    say(f"{name}: {len(found)} cut-outs{why}")
    if len(found) < needed:
        raise BadInput(f"{needed} cut-outs of {name!r} are needed, the annotations gave {len(found)}{why}")
    return sorted(found, key=lambda cutout: cutout.source)  # paired by name, in whatever order they were found


def scene_files(places: Path, name: str, needed: int, plan: Plan) -> list[Path]:
    """The first pictures of a scene, by name: MiniPlaces' `<letter>/<name>`, or plainly `<name>`."""
    inside = PLACES.get(name, name)
    tried = [
        places / inside[0] / inside,
        places / "images" / "train" / inside[0] / inside,
        places / inside,
        places / name,
    ]
    folder = next((place for place in tried if place.is_dir()), None)
    if folder is None:
        raise BadInput(
            f"{places} must hold MiniPlaces' training pictures; there is no folder {inside[0]}/{inside} or {name}"
        )
    files = [path for path in pictures_under(folder) if plan.legacy or path.name not in plan.exclude]
    if len(files) < needed:
        raise BadInput(f"{needed} pictures of the scene {name!r} are needed, {folder} holds {len(files)}")
    return files[:needed]


def paste(
    cutout: Cutout, scene: Pixels, dice: np.random.Generator, legacy: bool
) -> tuple[Pixels, NDArray[np.bool_], tuple[int, int, int, int]]:
    """The object on the scene, its mask in the scene's frame, and its box (row, column, row, column).

    Its relatively longer side becomes 1/√3 to 1/√2 of the scene's: the square on it fills a third to a half.
    """
    high, wide = scene.shape[:2]
    own_high, own_wide = cutout.mask.shape
    lying = own_wide / wide >= own_high / high
    along = wide if lying else high
    side = int(dice.integers(int(along / 3**0.5), int(along / 2**0.5)))
    width = side if lying else max(1, int(own_wide * side / own_high))
    height = side if not lying else max(1, int(own_high * side / own_wide))
    last = 0 if legacy else 1  # published: never at the lower or right border
    top, left = int(dice.integers(0, high - height + last)), int(dice.integers(0, wide - width + last))
    colour, alpha = _resized(cutout, (width, height), legacy)
    composite = scene.copy()
    spot = composite[top : top + height, left : left + width]
    if legacy:  # straight alpha: the outline takes on the black behind the cut-out
        spot[:] = np.round(spot * (1 - alpha[..., None]) + colour * alpha[..., None]).astype(np.uint8)
    else:
        spot[alpha >= 0.5] = colour[alpha >= 0.5]
    mask = np.zeros((high, wide), dtype=np.bool_)
    mask[top : top + height, left : left + width] = alpha >= 0.5
    return composite, mask, (top, left, top + height, left + width)


def _resized(cutout: Cutout, size: tuple[int, int], legacy: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Colours 0 … 255 and alpha 0 … 1; colours are weighed by alpha first, unless in legacy mode."""

    def shrunk(values: NDArray[Any]) -> NDArray[np.float64]:
        image = Image.fromarray(values.astype(np.float32), mode="F")
        return np.asarray(image.resize(size, Image.Resampling.BILINEAR), dtype=np.float64)

    alpha = shrunk(cutout.mask)
    masked = cutout.pixels * cutout.mask[..., None]
    colour = np.stack([shrunk(masked[..., channel]) for channel in range(3)], -1)
    if not legacy:
        colour = np.round(np.clip(colour / np.maximum(alpha, 1e-6)[..., None], 0, 255)).astype(np.float64)
    return colour, alpha


def _square(path: Path, size: int) -> Pixels:
    picture = read_picture(path)
    if picture.size != (size, size):
        picture = picture.resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(picture).copy()


def _write_all(
    data: Path,
    file: str,
    thing: str,
    scene: str,
    index: int,
    composite: Pixels,
    bare: Pixels,
    mask: NDArray[np.bool_],
    plan: Plan,
) -> None:
    """One picture under its object, under its scene, its twin; in addition to the published build, its mask and the
    object alone.
    """
    pictures = {"obj": (composite, thing), "scene": (composite, scene), "scene_only": (bare, scene)}
    if not plan.legacy:
        grey = np.where(mask[..., None], composite, np.uint8(GREY))
        pictures |= {"obj_grey": (grey, thing), "masks": (mask.astype(np.uint8) * 255, thing)}
    for name, (pixels, owner) in pictures.items():
        folder = data / name / ("val" if index >= FIRST_VALIDATION else f"train/{owner}")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / (file if name != "masks" else f"{Path(file).stem}.png"))
    if not plan.legacy and thing == "dog":  # X^k: in the first k scenes every picture has a dog
        for k in range(1, len(SCENES) + 1):
            folder = data / f"scene_k{k}" / ("val" if index >= FIRST_VALIDATION else "train") / scene
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(composite if SCENES.index(scene) < k else bare).save(folder / file)


def _lists(data: Path, boxes: dict[str, str], held_out: Sequence[Sequence[Cutout]]) -> None:
    """`val.txt`, `val_loc.txt`, `loc.txt` and `val_mask` of the three large sets, and the two small ones of dogs."""
    masks = [cutout.mask for of_class in held_out for cutout in of_class]
    for name in ("obj", "scene", "scene_only"):
        _listed(data / name, boxes, 0 if name == "obj" else 1)
        (data / name / "loc.txt").write_text("\n".join(f"{file} {box}" for file, box in sorted(boxes.items())) + "\n")
        write_masks(data / name / "val_mask", masks)
    for name, (source, begins) in SMALL_SETS.items():
        (data / name / "val").mkdir(parents=True, exist_ok=True)
        for path in (data / source / "val").glob(f"{begins}-*"):
            shutil.copy(path, data / name / "val" / path.name)
        _listed(data / name, boxes, 1)
        write_masks(data / name / "val_mask", [cutout.mask for cutout in held_out[OBJECTS.index("dog")]])


def _listed(folder: Path, boxes: dict[str, str], part: int) -> None:
    """The labels and boxes of a set's validation pictures; the label is what stands at `part` of their names."""
    files = sorted(path.name for path in (folder / "val").iterdir())
    labels = [(OBJECTS, SCENES)[part].index(file.split("-")[part]) for file in files]
    lines = [f"{file} {label}" for file, label in zip(files, labels, strict=True)]
    (folder / "val.txt").write_text("\n".join(lines) + "\n")
    (folder / "val_loc.txt").write_text("\n".join(f"{file} {boxes[file]}" for file in files) + "\n")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
