"""`judge`: one model, some pictures, every protocol that applies.

results = heatproof.judge(network, "photos/", masks="masks/")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from heatproof import data
from heatproof.errors import BadInput
from heatproof.on_tensors import AnyModel
from heatproof.protocols.all import All, Preset
from heatproof.report import report
from heatproof.results import Results
from heatproof.run.display import Watch
from heatproof.run.loop import run
from heatproof.spec.study import Study
from heatproof.types import AnyMethod, Dataset, Model


def judge(
    model: AnyModel | Sequence[AnyModel],
    images: Dataset | str | Path,
    *,
    masks: str | Path = "",
    methods: Sequence[AnyMethod | str] | None = None,
    preset: Preset = "common",
    pictures: int | None = None,
    out: str | Path = "runs/latest",
    device: str = "auto",
    watch: Watch | None = None,
) -> Results:
    """Judge methods under every protocol that applies, and draw `report.html` in `out`.

    `model` is a name, a `Model` or a network that takes images in [0, 1]; `images` is a folder, a table or a data set,
    `masks` a folder of masks. The protocols that do not apply, with what they would need, are in
    `results.info.left_out`.
    """
    results = run(studies(model, images, masks, methods, preset, pictures), out, device=device, watch=watch)
    report(results, Path(out) / "report.html")
    return results


def studies(
    model: AnyModel | Sequence[AnyModel],
    images: Dataset | str | Path,
    masks: str | Path = "",
    methods: Sequence[AnyMethod | str] | None = None,
    preset: Preset = "common",
    pictures: int | None = None,
) -> list[Study]:
    """The studies that `judge` runs."""
    several = model if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    shown = data.load(str(images), str(masks)) if isinstance(images, str | Path) else images
    if masks and shown is images:
        raise BadInput("masks belong to a folder of pictures: give the data set its own, or name the folder")
    every = All(preset) if pictures is None else All(preset, pictures)
    return every.studies([_named(one) for one in several], [shown], methods)


def _named(model: AnyModel) -> Model | str:
    if isinstance(model, nn.Module):
        return Model(type(model).__name__, model)
    return model
