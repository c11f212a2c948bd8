"""`judge`: one model, some pictures, every protocol that applies.

results = heatproof.judge(network, "photos/", masks="masks/")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from torch import nn

from heatproof import data
from heatproof.data import in_memory
from heatproof.errors import BadInput
from heatproof.methods.precomputed import kept
from heatproof.on_tensors import AnyModel, Array
from heatproof.protocols.all import All, Preset
from heatproof.report import report
from heatproof.results import Results
from heatproof.run.display import Watch
from heatproof.run.loop import run
from heatproof.spec.parse import parse
from heatproof.spec.study import Study
from heatproof.types import AnyMethod, Dataset, Model

Protocols: TypeAlias = str | Sequence[str]  # "all", a name, or several


def judge(
    model: AnyModel | Sequence[AnyModel],
    images: Dataset | str | Path | Any,
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    masks: str | Path = "",
    methods: Sequence[AnyMethod | str] | None = None,
    maps: Mapping[str, Array] | None = None,
    protocols: Protocols = "all",
    preset: Preset = "common",
    pictures: int | None = None,
    out: str | Path = "runs/latest",
    device: str = "auto",
    watch: Watch | None = None,
) -> Results:
    """Judge methods under every protocol that applies, and draw `report.html` in `out`.

    `model` is a name, a `Model` or a network, with the `mean` and `std` by which its inputs are normalised (without
    them it takes images in [0, 1]); `images` is a folder, a table, a data set, or anything that `heatproof.pictures`
    takes, such as a `DataLoader`; `masks` is a folder of masks. The protocols that do not apply, with what they would
    need, are in `results.info.left_out`; `protocols` names some instead of all.

    `maps` are heatmaps that exist already, by name: (B, H, W) each, in the order of the images and of the predicted
    class. They are kept in `out` and judged beside `methods`; with neither, the usual line-up is judged.
    """
    several = model if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    named = [_named(one, mean, std) for one in several]
    shown = _shown(images, masks)
    if maps:
        methods = [*(methods or ()), *kept(maps, shown.ids(), Path(out) / "maps.npz")]
    results = run(studies(named, shown, "", methods, preset, pictures, protocols), out, device=device, watch=watch)
    report(results, Path(out) / "report.html")
    return results


def studies(
    model: AnyModel | Sequence[AnyModel],
    images: Dataset | str | Path | Any,
    masks: str | Path = "",
    methods: Sequence[AnyMethod | str] | None = None,
    preset: Preset = "common",
    pictures: int | None = None,
    protocols: Protocols = "all",
) -> list[Study]:
    """The studies that `judge` runs."""
    several = model if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    named, shown = [_named(one) for one in several], [_shown(images, masks)]
    if protocols == "all":
        every = All(preset) if pictures is None else All(preset, pictures)
        return every.studies(named, shown, methods)
    some = [protocols] if isinstance(protocols, str) else protocols
    found = [study for one in some for study in parse("protocol", one).studies(named, shown, methods)]
    return found if pictures is None else [replace(study, limit=pictures) for study in found]


def _shown(images: Dataset | str | Path | Any, masks: str | Path) -> Dataset:
    """The pictures as a data set."""
    if isinstance(images, str | Path):
        return data.load(str(images), str(masks))
    if masks:
        raise BadInput("masks belong to a folder of pictures: give the data set its own, or name the folder")
    return images if isinstance(images, Dataset) else in_memory.pictures(images)


def _named(model: AnyModel, mean: Sequence[float] | None = None, std: Sequence[float] | None = None) -> Model | str:
    if isinstance(model, nn.Module):
        bare = Model(type(model).__name__, model)
        return replace(bare, mean=tuple(mean or bare.mean), std=tuple(std or bare.std))
    if mean is not None or std is not None:
        raise BadInput("mean and std belong to a bare network: a Model or a model's name brings its own")
    return model
