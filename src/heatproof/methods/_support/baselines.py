"""Baselines: the pictures that stand for "nothing to see", from which paths start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof import engine, registry
from heatproof.data import seen_by
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.channel_pooling import Pooling
from heatproof.methods._support.keyed_noise import fill_with_noise
from heatproof.methods._support.path_gradients import Painter, Stretch
from heatproof.traits import dataset_traits
from heatproof.types import Batch, Dataset, Images, Model, Readout, View, keyed_seed

Plain: TypeAlias = Literal["black", "mean", "mid_grey", "blur", "uniform", "gaussian"]
# A named picture, the name of a registered data set, or a data set: its (training) images.
Baseline: TypeAlias = str | Dataset

FIXED = ("black", "mean", "mid_grey", "blur")
MID_GREY = 0.5  # the middle of what a pixel can be, whatever the model subtracts

CROWD = 100  # background images read from a data set: enough for a stable mean, few enough to hold


def is_random(baseline: Baseline) -> bool:
    """Whether two draws differ, so that averaging over several makes sense."""
    return baseline not in FIXED


def is_one_colour(baseline: Baseline) -> bool:
    """Whether all pictures start from the same one."""
    return baseline in ("black", "mean", "mid_grey")


def origins(baseline: Baseline, model: Model, batch: Batch) -> Painter:
    """A painter of the pictures where paths start, one per draw; random starts are keyed by image and draw."""
    images = batch.images
    if baseline in FIXED:
        fixed = _fixed(cast(Plain, baseline), model, images)

        def copied(stretch: Stretch, room: Images) -> None:
            room.copy_(fixed[stretch.image])

        return copied
    seeds = batch.seeds("baseline")
    if baseline in ("uniform", "gaussian"):
        centre, spread = _mean_colour(model, images[:1]), images.new_tensor(model.std).view(1, -1, 1, 1)

        def noise(stretch: Stretch, room: Images) -> None:
            fill_with_noise(room, _keys(seeds, stretch), uniform=baseline == "uniform")
            if baseline == "gaussian":
                torch.addcmul(centre, room, spread, out=room).clamp_(0, 1)

        return noise
    crowd, names = background(baseline, model, images)

    def picked(stretch: Stretch, room: Images) -> None:
        others = [place for place, name in enumerate(names) if name != batch.ids[stretch.image]]
        if not others:  # its path would have no length
            raise NotApplicable(
                f"the background data set holds no image other than {batch.ids[stretch.image]!r}: give a larger one"
            )
        for row, generator in zip(room, _generators(seeds, stretch), strict=True):
            row.copy_(crowd[others[int(torch.randint(len(others), (1,), generator=generator))]])

    return picked


def starts(baseline: Baseline, model: Model, batch: Batch, draws: int) -> Iterator[Images]:
    """The pictures that the images' paths start from, draw by draw; a data set is read once for all draws."""
    paint = origins(baseline, model, batch)
    for draw in range(draws):
        pictures = torch.empty_like(batch.images)
        for image in range(len(batch)):
            paint(Stretch(image, range(draw, draw + 1), slice(image, image + 1)), pictures[image : image + 1])
        yield pictures


def start(baseline: Baseline, model: Model, batch: Batch) -> Images:
    """The picture that each image's path starts from, for a baseline with a single draw."""
    return next(starts(baseline, model, batch, 1))


def answer_rise(model: Model, batch: Batch, baseline: Baseline, draws: int, readout: Readout) -> Tensor:
    """(B,) float64: the model's answer to each picture minus its answer to the baseline, averaged over the draws."""
    whole = model.read(engine.forward(model, batch.images), batch.targets, readout).double()
    often = draws if is_random(baseline) else 1
    before = [
        model.read(engine.forward(model, one), batch.targets, readout) for one in starts(baseline, model, batch, often)
    ]
    return whole - torch.stack(before).double().mean(0)


def adds_up(method: str, pooling: Pooling) -> None:
    """Raise `NotApplicable` unless channels are summed: other pooled maps do not add up to the answer's rise."""
    if pooling != "sum":
        raise NotApplicable(f"maps of {method} add up to the answer's rise with pooling='sum' only, got {pooling!r}")


def _keys(seeds: Sequence[int], stretch: Stretch) -> list[int]:
    return [keyed_seed(seeds[stretch.image], draw) for draw in stretch.points]


def _generators(seeds: Sequence[int], stretch: Stretch) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(key) for key in _keys(seeds, stretch)]


def _fixed(baseline: Plain, model: Model, images: Images) -> Images:
    if baseline == "mean":
        return _mean_colour(model, images)
    if baseline == "mid_grey":
        return torch.full_like(images, MID_GREY)
    return blurred(images) if baseline == "blur" else torch.zeros_like(images)


def _mean_colour(model: Model, images: Images) -> Images:
    return images.new_tensor(model.mean).view(1, -1, 1, 1).expand_as(images).clamp(0, 1)


def blurred(images: Images, share: float = 0.1) -> Images:
    """A Gaussian blur with a standard deviation of `share` of the shorter side: colours stay, shapes go."""
    sigma = share * min(images.shape[2:])
    rows = [
        cv2.GaussianBlur(row.permute(1, 2, 0).cpu().numpy(), (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101)
        for row in images
    ]
    stacked = np.stack([row.reshape(*images.shape[2:], images.shape[1]) for row in rows])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2).to(images).clamp(0, 1)


def crowd(length: int) -> list[int]:
    """The indices of the pictures that are read as background from a data set of this length."""
    return torch.linspace(0, length - 1, min(length, CROWD)).round().long().tolist()


def revision_of(field: str) -> cached_property[str]:
    """A property for components with this field: a hash of the data set in it, computed once; else an empty text."""

    def revision(component: Any) -> str:
        source = getattr(component, field)
        return "" if source is None or isinstance(source, str) else str(source.digest(crowd(len(source))))

    return cached_property(revision)


def background(baseline: Baseline, model: Model, images: Images) -> tuple[Images, tuple[str, ...]]:
    """Up to `CROWD` pictures spread evenly over a data set, as the model sees them, at the images' size, with their
    ids.
    """
    source = baseline
    if isinstance(source, str):
        if source not in registry.names("dataset"):
            raise BadInput(
                f"a baseline must be one of {', '.join(get_args(Plain))}, "
                f"a data set or a data set's name, got {source!r}: for a folder of pictures write folder(path=…)"
            )
        source = cast(Dataset, registry.find("dataset", source))
    if dataset_traits(source).fitted is None:  # mosaics are fitted to a model's classes, which play no role here
        source = seen_by(model, source)
        if dataset_traits(source).uncut:  # the model does not declare how to crop them
            source = replace(source, view=View(max(images.shape[2:])))  # type: ignore[type-var]
    chosen = source.batch(crowd(len(source)))
    pictures = chosen.images.to(images)
    if pictures.shape[2:] != images.shape[2:]:
        pictures = F.interpolate(pictures, images.shape[2:], mode="bilinear", antialias=True).clamp(0, 1)
    return pictures, chosen.ids
