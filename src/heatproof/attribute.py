"""Where maps come back from a method: shape, type and finiteness are checked here, once, and blame is put by name."""

from __future__ import annotations

import torch
from torch import Tensor

from heatproof.engine.backends.eager import evaluating
from heatproof.engine.checks import check_targets, no_slopes
from heatproof.errors import BadInput, BadModel, BadShape, HeatproofError, NotApplicable
from heatproof.spec import recipe
from heatproof.types import AnyMethod, Attribution, Batch, Images, Logits, Model, check_maps


def attribute(model: Model, batch: Batch, method: AnyMethod) -> Attribution:
    """Explain a batch, and see that what comes back are maps of it."""
    wanted = (len(batch), *batch.images.shape[2:])
    try:
        maps = method(model, batch) if len(batch) else batch.images.new_zeros(wanted)  # of no pictures nobody is asked
    except BadModel as error:
        raise BadModel(f"{recipe.label(method)}: {error}{_breaks_on(model, batch)}") from error
    except NotApplicable:  # which no other target would change
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
    """Put the error down to a target that is no class of the model, if there is one: asked only of what has failed."""
    try:
        check_targets(model, batch.targets, _answer(model, batch.images[:1]).shape[1])
    except BadInput as told:
        raise told from error
    except Exception:  # it takes no pictures at all, which the error tells
        return


def _check_slopes(model: Model, batch: Batch, error: Exception) -> None:
    """Put the error down to a network that has no slopes, if it has none: asked only of what has failed."""
    try:
        with torch.inference_mode(False), torch.enable_grad(), evaluating(model.network):
            inputs = batch.images[:1].clone().to(model.device).requires_grad_()
            said = model(inputs).sum()
            cut = not said.requires_grad or torch.autograd.grad(said, inputs, allow_unused=True)[0] is None
    except Exception:  # it takes no pictures at all, which the error tells
        return
    if cut:
        raise no_slopes(model) from error


def _breaks_on(model: Model, batch: Batch) -> str:
    """Which images the network has no finite answer to as they are, in words; empty if there are none."""
    try:
        fine = [bool((_answer(model, image) < float("inf")).all()) for image in batch.images.split(1)]
    except Exception:  # it takes no pictures at all, which whoever asks knows by now
        return ""
    broken = [identity for identity, well in zip(batch.ids, fine, strict=True) if not well]
    if not broken:
        return ""
    return f"; it does so on {len(broken)} of these {len(batch)} images as they are, first on {broken[0]!r}"


def _answer(model: Model, images: Images) -> Logits:
    """What the network as it is says, beside all that is kept and measured."""
    with torch.inference_mode(), evaluating(model.network):
        return model(images.to(model.device))
