"""Runs a method on a batch and checks the maps: shape, type, finiteness. Errors name the method or target at fault."""

from __future__ import annotations

import torch
from torch import Tensor

from heatproof.by_label import is_several, parts
from heatproof.engine.backends.eager import evaluating
from heatproof.engine.checks import check_targets, no_slopes
from heatproof.errors import BadInput, BadModel, BadShape, HeatproofError, NotApplicable
from heatproof.spec import recipe
from heatproof.traits import misfit
from heatproof.types import AnyMethod, Attribution, Batch, Images, Logits, Model, check_maps


def attribute(model: Model, batch: Batch, method: AnyMethod) -> Attribution:
    """The method's maps of a batch, checked; of a model with several labels or values, label by label."""
    if is_several(model, batch):
        maps = batch.images.new_zeros(len(batch), *batch.images.shape[2:], dtype=torch.float32)
        for rows, one, few in parts(model, batch):
            maps[rows] = attribute(one, few, method).maps
        return Attribution(model, batch, method, maps)  # type: ignore[arg-type]
    if reason := misfit(method, model.question):
        raise NotApplicable(reason)
    wanted = (len(batch), *batch.images.shape[2:])
    try:
        maps = method(model, batch) if len(batch) else batch.images.new_zeros(wanted)  # an empty batch needs no call
    except BadModel as error:
        raise BadModel(f"{recipe.label(method)}: {error}{_breaks_on(model, batch)}") from error
    except NotApplicable:  # another target would not change it
        raise
    except Exception as error:
        _check_targets(model, batch, error)
        if not isinstance(error, HeatproofError):
            _check_slopes(model, batch, error)
        raise
    if not isinstance(maps, Tensor):
        raise BadShape(f"method {recipe.label(method)} must return a tensor of maps, got {type(maps).__name__}")
    maps = maps.detach().to(batch.images.device, torch.float32)
    check_maps(maps, batch, recipe.label(method))
    return Attribution(model, batch, method, maps)  # type: ignore[arg-type]


def _check_targets(model: Model, batch: Batch, error: Exception) -> None:
    """Raise `BadInput` if a target is no class of the model. Runs only after a method failed."""
    try:
        check_targets(model, batch.targets, _answer(model, batch.images[:1]).shape[1])
    except BadInput as bad_target:
        raise bad_target from error
    except Exception:  # the network takes no pictures at all: `error` already shows it
        return


def _check_slopes(model: Model, batch: Batch, error: Exception) -> None:
    """Raise if the network has no gradients. Runs only after a method failed."""
    try:
        with torch.inference_mode(False), torch.enable_grad(), evaluating(model.network):
            inputs = batch.images[:1].clone().to(model.device).requires_grad_()
            total = model(inputs).sum()
            cut = not total.requires_grad or torch.autograd.grad(total, inputs, allow_unused=True)[0] is None
    except Exception:  # the network takes no pictures at all: `error` already shows it
        return
    if cut:
        raise no_slopes(model) from error


def _breaks_on(model: Model, batch: Batch) -> str:
    """Which images the network itself has no finite answer to, as text; empty if there are none."""
    try:
        fine = [bool((_answer(model, image) < float("inf")).all()) for image in batch.images.split(1)]
    except Exception:  # the network takes no pictures at all: the caller's error shows it
        return ""
    broken = [identity for identity, well in zip(batch.ids, fine, strict=True) if not well]
    if not broken:
        return ""
    return f"; this happens on {len(broken)} of these {len(batch)} images unchanged, first on {broken[0]!r}"


def _answer(model: Model, images: Images) -> Logits:
    """The plain network's output, without the engine's caches and timing."""
    with torch.inference_mode(), evaluating(model.network):
        return model(images.to(model.device))
