"""`explain` and `score`: heatmaps and scores of plain tensors or arrays, without a study.

maps = heatproof.explain(network, images, "integrated_gradients")
scores = heatproof.score("srg", network, images, maps)
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heatproof import engine, models
from heatproof.attribute import attribute
from heatproof.by_label import split
from heatproof.errors import BadInput, BadShape, NotApplicable
from heatproof.models._support.outputs import recognised
from heatproof.models._support.targets import needs_choice, target_index
from heatproof.run.unit import scored_of
from heatproof.spec.parse import parse
from heatproof.traits import misfit
from heatproof.types import AnyMethod, Attribution, Batch, Maps, Metric, Model, Scores

Array: TypeAlias = Tensor | NDArray[Any]
AnyModel: TypeAlias = Model | nn.Module | str


def explain(
    model: AnyModel,
    images: Array,
    method: AnyMethod | str,
    targets: Array | int | str | None = None,
    *,
    seed: int = 0,
    output: str | None = None,
) -> Maps:
    """The maps (B, H, W) of a method for images (B, C, H, W) in [0, 1].

    `model` is a `Model`, a network that takes images in [0, 1], or a model name (`embedded:object`). `targets` are
    class indices, one for all images or one each, or a class's name; the default is the predicted class, of several
    labels the likeliest. `output` declares what the network's numbers mean: `softmax`, `sigmoid` or `regression`.
    """
    who, batch = _question(model, images, targets, seed, output)
    return attribute(who, batch, parse("method", method) if isinstance(method, str) else method).maps


def score(
    metric: Metric | str,
    model: AnyModel,
    images: Array,
    maps: Array,
    targets: Array | int | str | None = None,
    *,
    regions: Array | None = None,
    seed: int = 0,
    output: str | None = None,
) -> Scores:
    """The scores (B,) of maps (B, H, W) from any source; NaN where a metric is undefined.

    `regions` (B, H, W) mark where the answer is, for localisation metrics. A metric that must explain again (other
    pictures, another model) needs the method and not only its maps, and raises an error that says so.
    """
    who, batch = _question(model, images, targets, seed, output, regions)
    judge = parse("metric", metric) if isinstance(metric, str) else metric
    heat = torch.as_tensor(maps).detach().to(batch.images.device, torch.float32)
    if reason := misfit(judge, who.question):
        raise NotApplicable(reason)
    scores: list[Scores] = []
    rows: list[int] = []
    for some, part in split(Attribution(who, batch, None, heat)):
        scores.append(scored_of(judge(part), len(some)).values)
        rows += some
    return scores[0] if len(scores) == 1 else torch.cat(scores)[torch.tensor(rows, dtype=torch.int64).argsort()]


def _question(
    model: AnyModel,
    images: Array,
    targets: Array | int | str | None,
    seed: int,
    output: str | None,
    regions: Array | None = None,
) -> tuple[Model, Batch]:
    """The model and a batch with its targets, in the form that all components take."""
    who = _model(model, output)
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


def _model(model: AnyModel, output: str | None) -> Model:
    if isinstance(model, nn.Module):
        return Model(type(model).__name__, model, output=output)
    if isinstance(model, str | Model):
        found = models.load(model) if isinstance(model, str) else model
        return found if output is None else dataclasses.replace(found, output=output, probabilities=None)
    raise BadInput(f"model must be a heatproof.Model, a torch.nn.Module or the name of a model, got {model!r:.100}")


def _identity(image: Tensor) -> str:
    """An id from the content: random draws then depend on the picture, not on its batch."""
    return hashlib.sha256(np.ascontiguousarray(image.detach().cpu().numpy()).tobytes()).hexdigest()[:16]


def _targets(model: Model, batch: Batch, targets: Array | int | str | None) -> Tensor:
    answers = engine.forward(model, batch.images)
    if targets is None or (isinstance(targets, str) and targets == "predicted"):
        if model.question == "value" and model.several:
            raise BadInput(needs_choice(model))
        return answers.argmax(1)
    if isinstance(targets, str):
        return torch.full((len(batch),), target_index(model, answers.shape[1], targets))
    given = torch.as_tensor(targets)
    if given.is_floating_point() or given.dtype == torch.bool or given.shape not in ((), (len(batch),)):
        raise BadShape(
            f"targets must be one class index, or one for each of the {len(batch)} images, "
            f"got {given.dtype} of shape {tuple(given.shape)}"
        )
    return given.to(torch.int64).expand(len(batch)).clone()
