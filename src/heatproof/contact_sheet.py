"""Pictures × methods as one labelled PNG, and the raw maps: for looking, not for judging."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from heatproof import recipe
from heatproof.data.files import pictures_under
from heatproof.data.pictures import apply_view, read_picture
from heatproof.errors import BadInput, HeatproofError
from heatproof.models import engine
from heatproof.report.heat import overlay, shown
from heatproof.store import write_atomically
from heatproof.types import AnyMethod, Batch, Model, attribute

SIDE, GAP, HEAD = 180, 6, 22
Watch = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Sheet:
    """What was explained: pictures, the class asked about, and the maps by method."""

    ids: tuple[str, ...]
    pictures: NDArray[np.uint8]  # (B, H, W, 3)
    targets: tuple[str, ...]
    maps: dict[str, NDArray[np.float32]]  # (B, H, W) each
    missing: dict[str, str]  # pictures and methods that gave nothing, with the reason


def explain(
    model: Model, images: Sequence[Path], methods: Sequence[AnyMethod], *, seed: int = 0, watch: Watch | None = None
) -> Sheet:
    """Maps of these pictures for the class the model names; a method that does not apply is left out and said."""
    if not methods:
        raise BadInput("name at least one method, e.g. --methods saliency,lrp")
    missing: dict[str, str] = {}
    batch = _read(model, images, seed, missing)
    batch = batch.aimed(engine.forward(model, batch.images).argmax(1))
    maps: dict[str, NDArray[np.float32]] = {}
    for done, method in enumerate(methods):
        title = recipe.label(method)
        if watch:
            watch(done, len(methods), title)
        try:
            maps[title] = attribute(model, batch, method).maps.cpu().numpy()
        except HeatproofError as error:
            missing[title] = str(error)
    classes = [model.classes[t] if t < len(model.classes) else str(t) for t in batch.targets.tolist()]
    pixels = (batch.images.cpu() * 255).round().byte().permute(0, 2, 3, 1).numpy()
    return Sheet(batch.ids, pixels, tuple(classes), maps, missing)


def _read(model: Model, images: Sequence[Path], seed: int, missing: dict[str, str]) -> Batch:
    files = [file for path in images for file in (pictures_under(path) if path.is_dir() else [path])]
    tensors, ids = [], []
    for file in files:
        try:
            tensors.append(apply_view(read_picture(file), model.view))
            ids.append(str(file))
        except (HeatproofError, OSError) as error:
            missing[str(file)] = str(error)
    if not tensors:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise BadInput(f"none of the pictures could be read: {reasons or 'no pictures there'}")
    if len({tensor.shape for tensor in tensors}) > 1:
        raise BadInput(f"model {model.name!r} declares no input size, so the pictures must all be of one size")
    targets = torch.zeros(len(tensors), dtype=torch.int64)
    return Batch(torch.stack(tensors), targets, tuple(ids), seed=seed).to(model.device)


def write(sheet: Sheet, out: Path) -> Path:
    """The grid at `out`, the raw maps beside it; gives the second path."""
    picture = io.BytesIO()
    draw(sheet).save(picture, "PNG")
    write_atomically(out, picture.getvalue())
    arrays: dict[str, Any] = dict(sheet.maps)
    raw = io.BytesIO()
    np.savez_compressed(raw, ids=np.array(sheet.ids), targets=np.array(sheet.targets), **arrays)
    beside = out.with_suffix(".npz")
    write_atomically(beside, raw.getvalue())
    return beside


def draw(sheet: Sheet) -> Image.Image:
    """A row per picture, a column per method; warm speaks for the class, cold against it, zero shows the picture."""
    font = ImageFont.load_default(size=13)
    step = SIDE + GAP
    canvas = Image.new("RGB", (GAP + step * (1 + len(sheet.maps)), HEAD + (step + HEAD) * len(sheet.ids)), "white")
    pen = ImageDraw.Draw(canvas)
    for column, title in enumerate(["picture", *sheet.maps]):
        pen.text((GAP + step * column, 4), _fitted(title, font), "black", font)
    for row, name in enumerate(sheet.ids):
        top = HEAD + (step + HEAD) * row
        canvas.paste(shown(sheet.pictures[row], None, SIDE), (GAP, top))
        for column, values in enumerate(sheet.maps.values(), start=1):
            canvas.paste(overlay(sheet.pictures[row], values[row], None, SIDE), (GAP + step * column, top))
        label = f"{Path(name).name}: {sheet.targets[row]}"
        pen.text((GAP, top + SIDE + 2), label, "dimgray", font)
    return canvas


def _fitted(text: str, font: Any) -> str:
    while font.getlength(text) > SIDE and len(text) > 4:
        text = text[:-2] + "…"
    return text
