"""Pictures × methods as one labelled PNG, and the raw maps: for looking, not for judging."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from heatproof import engine
from heatproof.data._support.files import identity
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.pictures import apply_view, read_picture, takes_grey
from heatproof.data._support.value_range import warn_of_narrow
from heatproof.errors import BadInput, HeatproofError
from heatproof.models._support.outputs import recognised
from heatproof.models._support.targets import needs_choice, target_index
from heatproof.report.heat import overlay, shown
from heatproof.run.store import write_atomically
from heatproof.run.unit import message, watched
from heatproof.spec import recipe
from heatproof.spec.study import distinct
from heatproof.types import AnyMethod, Batch, Logits, Model

SIDE, GAP, HEAD, LINE = 180, 6, 22, 16
Watch = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Sheet:
    """What was explained: pictures, the explained class, and the maps by method."""

    ids: tuple[str, ...]
    pictures: NDArray[np.uint8]  # (B, H, W, 3)
    targets: tuple[str, ...]
    maps: dict[str, NDArray[np.float32]]  # (B, H, W) each
    missing: dict[str, str]  # pictures and methods that gave nothing, with the reason


def explain(
    model: Model,
    images: Sequence[Path],
    methods: Sequence[AnyMethod],
    *,
    target: str = "predicted",
    seed: int = 0,
    watch: Watch | None = None,
) -> Sheet:
    """Maps of pictures for the predicted class or a given one; a method that fails is listed in `missing`."""
    if not methods:
        raise BadInput("name at least one method, e.g. --methods saliency,lrp")
    distinct("methods", [recipe.label(method) for method in methods])
    missing: dict[str, str] = {}
    batch, files = _read(model, images, seed, missing)
    warn_of_narrow(batch)
    model = recognised(model, batch.images)
    maps: dict[str, NDArray[np.float32]] = {}
    with engine.threads_for([model]):
        batch = batch.aimed(_targets(model, engine.forward(model, batch.images), target))
        for done, method in enumerate(methods):
            title = recipe.label(method)
            if watch:
                watch(done, len(methods), title)
            try:
                maps[title] = watched(model, batch, method).maps.cpu().numpy()
            except (Exception, SystemExit) as error:  # of any kind: the other methods' maps are still useful
                missing[title] = message(error)
    classes = [model.classes[t] if t < len(model.classes) else str(t) for t in batch.targets.tolist()]
    shown_as = batch.images.cpu().expand(-1, 3, -1, -1)  # grey pictures are drawn in three equal channels
    pixels = (shown_as * 255).round().byte().permute(0, 2, 3, 1).numpy()
    return Sheet(files, pixels, tuple(classes), maps, missing)


def _targets(model: Model, logits: Logits, target: str) -> Tensor:
    """The class to explain in each picture: the prediction (of several labels the likeliest), or this one for all."""
    if target == "predicted":
        if model.question == "value" and model.several:
            raise BadInput(needs_choice(model))
        return logits.argmax(1)
    return torch.full((len(logits),), target_index(model, logits.shape[1], target), device=logits.device)


def unique_ids(images: Sequence[Path]) -> dict[Path, str]:
    """The pictures with the ids a data set would give them, lengthened by parent folders where two are equal."""
    names: dict[Path, str] = {}
    for path in images:
        names |= {file: identity(file, path) for file in pictures_under(path)} if path.is_dir() else {path: path.name}
    for depth in range(2, 1 + max((len(file.parts) for file in names), default=0)):
        times = Counter(names.values())
        names |= {file: "/".join(file.parts[-depth:]) for file, name in names.items() if times[name] > 1}
    return names


def _read(model: Model, images: Sequence[Path], seed: int, missing: dict[str, str]) -> tuple[Batch, tuple[str, ...]]:
    """The readable pictures as a batch, and their paths."""
    tensors, ids, files = [], [], []
    for file, name in unique_ids(images).items():
        try:
            tensors.append(apply_view(read_picture(file, takes_grey(model)), model.view))
            ids.append(name)
            files.append(str(file))
        except (HeatproofError, OSError) as error:
            missing[str(file)] = str(error)
    if not tensors:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise BadInput(f"none of the pictures could be read: {reasons or 'no pictures there'}")
    if len({tensor.shape for tensor in tensors}) > 1:
        raise BadInput(f"model {model.name!r} declares no input size, so the pictures must all be of one size")
    targets = torch.zeros(len(tensors), dtype=torch.int64)
    return Batch(torch.stack(tensors), targets, tuple(ids), seed=seed).to(model.device), tuple(files)


def places(out: Path) -> tuple[Path, Path]:
    """Paths of the grid (.png) and the raw maps (.npz): inside `out` if it is a folder, else side by side."""
    if out.is_dir():
        return out / "maps.png", out / "maps.npz"
    if out.suffix.lower() in (".png", ".npz"):
        return out.with_suffix(".png"), out.with_suffix(".npz")
    if out.suffix and not out.suffix[1:].isdigit():  # the ".2" of a name like v1.2 is no file type
        raise BadInput(
            "the grid is written as .png and the maps beside it as .npz, so --out must end in one of them or in "
            f"nothing, or be a folder, got {out.name!r}: take {out.with_suffix('.png').name!r}"
        )
    return out.with_name(f"{out.name}.png"), out.with_name(f"{out.name}.npz")


def write(sheet: Sheet, out: Path) -> tuple[Path, Path]:
    """Writes the grid and the raw maps to the paths of `places`, and returns them."""
    grid, beside = places(out)
    picture = io.BytesIO()
    draw(sheet).save(picture, "PNG")
    write_atomically(grid, picture.getvalue())
    arrays: dict[str, Any] = dict(sheet.maps)
    raw = io.BytesIO()
    np.savez_compressed(raw, ids=np.array(sheet.ids), targets=np.array(sheet.targets), **arrays)
    write_atomically(beside, raw.getvalue())
    return grid, beside


def draw(sheet: Sheet) -> Image.Image:
    """A row per picture, a column per method; warm is evidence for the class, cold against it, zero is clear."""
    font = ImageFont.load_default(size=13)
    step = SIDE + GAP
    titles = [wrapped(title, font.getlength) for title in ["picture", *sheet.maps]]
    head = HEAD + LINE * (max(len(lines) for lines in titles) - 1)
    labels = [f"{Path(name).name}: {target}" for name, target in zip(sheet.ids, sheet.targets, strict=True)]
    width = max(step * (1 + len(sheet.maps)), *(ceil(font.getlength(label)) + GAP for label in labels))
    canvas = Image.new("RGB", (GAP + width, head + (step + HEAD) * len(labels)), "white")
    pen = ImageDraw.Draw(canvas)
    for column, lines in enumerate(titles):
        pen.text((GAP + step * column, 4), "\n".join(lines), "black", font, spacing=LINE - 13)
    for row, label in enumerate(labels):
        top = head + (step + HEAD) * row
        canvas.paste(shown(sheet.pictures[row], None, SIDE), (GAP, top))
        for column, values in enumerate(sheet.maps.values(), start=1):
            canvas.paste(overlay(sheet.pictures[row], values[row], None, SIDE), (GAP + step * column, top))
        pen.text((GAP, top + SIDE + 2), label, "dimgray", font)
    return canvas


def wrapped(title: str, length: Callable[[str], float]) -> list[str]:
    """A title in lines that fit a column, broken after a comma, a bracket or a slash where there is one."""
    lines = [""]
    for piece in re.findall(r"[^,(/]*[,(/]? ?", title):
        for part in [piece] if length(piece) <= SIDE else piece:
            if length(lines[-1] + part) > SIDE:
                lines.append("")
            lines[-1] += part
    return lines
