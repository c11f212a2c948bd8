"""`explain` and `score`: heatmaps and scores of plain tensors or arrays, without a study.

maps = heatproof.explain(network, images, "integrated_gradients")
scores = heatproof.score("srg", network, images, maps)
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heatproof import engine, models
from heatproof.attribute import attribute
from heatproof.errors import BadInput, BadShape
from heatproof.models._support.outputs import recognised
from heatproof.run.unit import scored_of
from heatproof.spec.parse import parse
from heatproof.types import AnyMethod, Attribution, Batch, Maps, Metric, Model, Scores

Array: TypeAlias = Tensor | NDArray[Any]
AnyModel: TypeAlias = Model | nn.Module | str


def explain(
    model: AnyModel, images: Array, method: AnyMethod | str, targets: Array | int | None = None, *, seed: int = 0
) -> Maps:
    """The maps (B, H, W) of a method for images (B, C, H, W) in [0, 1].

    `model` is a `Model`, a network that takes images in [0, 1], or a model name (`embedded:object`). `targets` are
    class indices, one for all images or one each; the default is the predicted class.
    """
    who, batch = _question(model, images, targets, seed)
    return attribute(who, batch, parse("method", method) if isinstance(method, str) else method).maps


def score(
    metric: Metric | str,
    model: AnyModel,
    images: Array,
    maps: Array,
    targets: Array | int | None = None,
    *,
    regions: Array | None = None,
    seed: int = 0,
) -> Scores:
    """The scores (B,) of maps (B, H, W) from any source; NaN where a metric is undefined.

    `regions` (B, H, W) mark where the answer is, for localisation metrics. A metric that must explain again (other
    pictures, another model) needs the method and not only its maps, and raises an error that says so.
    """
    who, batch = _question(model, images, targets, seed, regions)
    judge = parse("metric", metric) if isinstance(metric, str) else metric
    heat = torch.as_tensor(maps).detach().to(batch.images.device, torch.float32)
    values: Scores = scored_of(judge(Attribution(who, batch, None, heat)), len(batch)).values
    return values


def _question(
    model: AnyModel, images: Array, targets: Array | int | None, seed: int, regions: Array | None = None
) -> tuple[Model, Batch]:
    """The model and a batch with its targets, in the form that all components take."""
    who = _model(model)
    pictures = torch.as_tensor(images).to(who.device)
    if pictures.ndim == 4 and pictures.dtype == torch.float64:
        pictures = pictures.float()
    if pictures.ndim != 4:
        raise BadShape(f"images must have shape (batch, channels, height, width), got {tuple(pictures.shape)}")
    where = None if regions is None else torch.as_tensor(regions).to(pictures.device, torch.bool)
    aimless = torch.zeros(len(pictures), dtype=torch.int64, device=pictures.device)
    batch = Batch(pictures, aimless, tuple(_identity(one) for one in pictures), regions=where, seed=seed)
    who = recognised(who, pictures)
    return who, batch.aimed(_targets(who, batch, targets))


def _model(model: AnyModel) -> Model:
    if isinstance(model, str):
        return models.load(model)
    if isinstance(model, Model):
        return model
    if isinstance(model, nn.Module):
        return Model(type(model).__name__, model)
    raise BadInput(f"model must be a heatproof.Model, a torch.nn.Module or the name of a model, got {model!r:.100}")


def _identity(image: Tensor) -> str:
    """An id from the content: random draws then depend on the picture, not on its batch."""
    return hashlib.sha256(np.ascontiguousarray(image.detach().cpu().numpy()).tobytes()).hexdigest()[:16]


def _targets(model: Model, batch: Batch, targets: Array | int | None) -> Tensor:
    if targets is None:
        return engine.forward(model, batch.images).argmax(1)
    given = torch.as_tensor(targets)
    if given.is_floating_point() or given.dtype == torch.bool or given.shape not in ((), (len(batch),)):
        raise BadShape(
            f"targets must be one class index, or one for each of the {len(batch)} images, "
            f"got {given.dtype} of shape {tuple(given.shape)}"
        )
    return given.to(torch.int64).expand(len(batch)).clone()
