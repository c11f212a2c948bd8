"""Pictures × methods as one labelled picture, and the raw maps: for looking, not for judging."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from heatproof import engine
from heatproof.data._support.files import PictureFile, identity, read_batch
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.pictures import Levels, takes_grey
from heatproof.data._support.pixels import Reading
from heatproof.data._support.value_range import warn_of_narrow
from heatproof.errors import BadInput, NotApplicable
from heatproof.models._support.outputs import recognised
from heatproof.models._support.targets import needs_choice, target_index
from heatproof.models._support.undecided import undecided
from heatproof.report.heat import legend, overlay, shown
from heatproof.results import plots
from heatproof.results.flip_book import coloured
from heatproof.results.gallery import Picture
from heatproof.run.premises import cautions
from heatproof.run.store import write_atomically
from heatproof.run.unit import message, watched
from heatproof.spec import recipe
from heatproof.spec.study import distinct
from heatproof.types import AnyMethod, Batch, Logits, Model, read

SIDE, GAP, HEAD, LINE, LEGEND, BAR = 180, 6, 22, 16, 28, 120  # pixels
DRAWN = (".png", ".pdf", ".svg")
EMPTY = "all zero"
Watch = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Sheet:
    """What was explained: pictures, the explained class, and the maps by method."""

    ids: tuple[str, ...]
    pictures: NDArray[np.uint8]  # (B, H, W, 3)
    targets: tuple[str, ...]
    maps: dict[str, NDArray[np.float32]]  # (B, H, W) each
    missing: dict[str, str]  # pictures and methods that gave nothing, with the reason
    readouts: tuple[str, ...] = ()  # the model's probability of the explained class, or its value, in words
    inapplicable: frozenset[str] = frozenset()  # those of the missing methods that do not apply to the network
    cautions: tuple[str, ...] = ()  # what to be careful with, in words

    @property
    def answers(self) -> list[str]:
        """The explained class of every picture, with what the model says of it where that is known."""
        readouts = self.readouts or ("",) * len(self.targets)
        return [f"{target} {words}".strip() for target, words in zip(self.targets, readouts, strict=True)]


def explain(
    model: Model,
    images: Sequence[Path],
    methods: Sequence[AnyMethod],
    *,
    target: str = "predicted",
    seed: int = 0,
    levels: Levels | None = None,
    watch: Watch | None = None,
) -> Sheet:
    """Maps of pictures for the predicted class or a given one; a method that fails is listed in `missing`."""
    if not methods:
        raise BadInput("name at least one method, e.g. --methods saliency,lrp")
    distinct("methods", [recipe.label(method) for method in methods])
    missing: dict[str, str] = {}
    inapplicable: set[str] = set()
    batch, files = _read(model, images, seed, levels, missing)
    warn_of_narrow(batch)
    model = recognised(model, batch.images)
    maps: dict[str, NDArray[np.float32]] = {}
    with engine.threads_for([model]):
        logits = engine.forward(model, batch.images)
        batch = batch.aimed(_targets(model, logits, target))
        careful = [f"{model.name}: {words}" for words in [undecided(model, logits)] if words]
        readouts = tuple(_in_words(model, logits, batch.targets))
        for done, method in enumerate(methods):
            title = recipe.label(method)
            if watch:
                watch(done, len(methods), title)
            try:
                maps[title] = watched(model, batch, method).maps.cpu().numpy()
                careful += [f"{title}: {words}" for words in [cautions(method, model, batch)] if words]
            except NotApplicable as error:
                missing[title] = message(error)
                inapplicable.add(title)
            except (Exception, SystemExit) as error:  # of any kind: the other methods' maps are still useful
                missing[title] = message(error)
    classes = [model.classes[t] if t < len(model.classes) else str(t) for t in batch.targets.tolist()]
    pixels = coloured((batch.images.cpu() * 255).round().byte().numpy())
    return Sheet(files, pixels, tuple(classes), maps, missing, readouts, frozenset(inapplicable), tuple(careful))


def _targets(model: Model, logits: Logits, target: str) -> Tensor:
    """The class to explain in each picture: the prediction (of several labels the likeliest), or this one for all."""
    if target == "predicted":
        if model.question == "value" and model.several:
            raise BadInput(needs_choice(model))
        return logits.argmax(1)
    return torch.full((len(logits),), target_index(model, logits.shape[1], target), device=logits.device)


def _in_words(model: Model, logits: Logits, targets: Tensor) -> list[str]:
    """The probability of each target, or its value where the model answers with values."""
    answers = logits.gather(1, targets[:, None])[:, 0]
    if model.question == "value":
        return [f"{value:.3g}" for value in answers.tolist()]
    labels = model.question == "yes_no" and model.several
    shares = answers.sigmoid() if labels else read(logits, targets, "probability")
    return [f"{100 * share:.0f} %" for share in shares.tolist()]


def unique_ids(images: Sequence[Path]) -> dict[Path, str]:
    """The pictures with the ids a data set would give them, lengthened by parent folders where two are equal."""
    names: dict[Path, str] = {}
    for path in images:
        names |= {file: identity(file, path) for file in pictures_under(path)} if path.is_dir() else {path: path.name}
    for depth in range(2, 1 + max((len(file.parts) for file in names), default=0)):
        times = Counter(names.values())
        names |= {file: "/".join(file.parts[-depth:]) for file, name in names.items() if times[name] > 1}
    return names


def _read(
    model: Model, images: Sequence[Path], seed: int, levels: Levels | None, missing: dict[str, str]
) -> tuple[Batch, tuple[str, ...]]:
    """The readable pictures as a batch, and their paths."""
    named = {name: file for file, name in unique_ids(images).items()}
    files = [PictureFile(name, file) for name, file in named.items()]
    batch = read_batch(files, model.view, reading=Reading(takes_grey(model), levels))
    missing |= {str(named[name]): reason for name, reason in batch.missing.items()}
    if not len(batch):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise BadInput(f"none of the pictures could be read: {reasons or 'no pictures there'}")
    return replace(batch, seed=seed).to(model.device), tuple(str(named[name]) for name in batch.ids)


def places(out: Path) -> tuple[Path, Path]:
    """Paths of the grid (.png, .pdf, .svg) and the maps (.npz): inside `out` if it is a folder, else side by side."""
    if out.is_dir():
        return out / "maps.png", out / "maps.npz"
    if out.suffix.lower() in DRAWN:
        return out, out.with_suffix(".npz")
    if out.suffix.lower() == ".npz":
        return out.with_suffix(".png"), out
    if out.suffix and not out.suffix[1:].isdigit():  # the ".2" of a name like v1.2 is no file type
        raise BadInput(
            "the grid is written as .png, .pdf or .svg and the maps beside it as .npz, so --out must end in one of "
            f"them or in nothing, or be a folder, got {out.name!r}: take {out.with_suffix('.png').name!r}"
        )
    return out.with_name(f"{out.name}.png"), out.with_name(f"{out.name}.npz")


def write(sheet: Sheet, out: Path) -> tuple[Path, Path]:
    """Writes the grid and the raw maps to the paths of `places`, and returns them."""
    grid, beside = places(out)
    write_atomically(grid, drawn(sheet, grid.suffix.lower()))
    arrays: dict[str, Any] = dict(sheet.maps)
    raw = io.BytesIO()
    np.savez_compressed(raw, ids=np.array(sheet.ids), targets=np.array(sheet.targets), **arrays)
    write_atomically(beside, raw.getvalue())
    return grid, beside


def drawn(sheet: Sheet, ending: str) -> bytes:
    """The grid as a file's content; PDF and SVG have their words as text, and need matplotlib."""
    if ending != ".png":
        rows = [
            Picture("", "", name, pixels, None, answer, {title: maps[at] for title, maps in sheet.maps.items()})
            for at, (name, pixels, answer) in enumerate(zip(sheet.ids, sheet.pictures, sheet.answers, strict=True))
        ]
        return plots.written(plots.grid(rows, list(sheet.maps)), ending.removeprefix("."))
    picture = io.BytesIO()
    draw(sheet).save(picture, "PNG")
    return picture.getvalue()


def draw(sheet: Sheet) -> Image.Image:
    """A row per picture, a column per method; warm is evidence for the class, cold against it, zero is clear."""
    font = ImageFont.load_default(size=13)
    step = SIDE + GAP
    titles = [wrapped(title, font.getlength) for title in ["picture", *sheet.maps]]
    head = HEAD + LINE * (max(len(lines) for lines in titles) - 1)
    labels = [f"{Path(name).name}: {answer}" for name, answer in zip(sheet.ids, sheet.answers, strict=True)]
    width = max(step * (1 + len(sheet.maps)), *(ceil(font.getlength(label)) + GAP for label in labels))
    bottom = head + (step + HEAD) * len(labels)
    canvas = Image.new("RGB", (GAP + width, bottom + LEGEND), "white")
    pen = ImageDraw.Draw(canvas)
    for column, lines in enumerate(titles):
        pen.text((GAP + step * column, 4), "\n".join(lines), "black", font, spacing=LINE - 13)
    for row, label in enumerate(labels):
        top = head + (step + HEAD) * row
        canvas.paste(shown(sheet.pictures[row], None, SIDE), (GAP, top))
        for column, values in enumerate(sheet.maps.values(), start=1):
            canvas.paste(overlay(sheet.pictures[row], values[row], None, SIDE), (GAP + step * column, top))
            if not np.any(values[row]):
                pen.text((GAP + step * column + 6, top + SIDE - LINE - 4), EMPTY, "black", font)
        pen.text((GAP, top + SIDE + 2), label, "dimgray", font)
    _draw_legend(canvas, pen, font, bottom)
    return canvas


def _draw_legend(canvas: Image.Image, pen: ImageDraw.ImageDraw, font: Any, top: int) -> None:
    """The colours, from evidence against the class to evidence for it; each map is scaled by itself."""
    before, after = "against the class", "for the class"
    left = GAP + ceil(font.getlength(before)) + GAP
    canvas.paste(legend(BAR, 10), (left, top + 8))
    pen.text((GAP, top + 4), before, "dimgray", font)
    pen.text((left + BAR + GAP, top + 4), after, "dimgray", font)


def wrapped(title: str, length: Callable[[str], float]) -> list[str]:
    """A title in lines that fit a column, broken after a comma, a bracket or a slash where there is one."""
    lines = [""]
    for piece in re.findall(r"[^,(/]*[,(/]? ?", title):
        for part in [piece] if length(piece) <= SIDE else piece:
            if length(lines[-1] + part) > SIDE:
                lines.append("")
            lines[-1] += part
    return lines
