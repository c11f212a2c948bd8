"""Where maps come back from a method: shape, type and finiteness are checked here, once, and blame is put by name."""

from __future__ import annotations

import torch
from torch import Tensor

from heatproof import recipe
from heatproof.errors import BadModel, BadShape
from heatproof.models.engine.running import evaluating
from heatproof.types import AnyMethod, Attribution, Batch, Model


def attribute(model: Model, batch: Batch, method: AnyMethod) -> Attribution:
    """Explain a batch, and see that what comes back are maps of it."""
    try:
        maps = method(model, batch)
    except BadModel as error:
        raise BadModel(f"{recipe.label(method)}: {error}{_breaks_on(model, batch)}") from error
    if not isinstance(maps, Tensor):
        raise BadShape(f"method {recipe.label(method)} must return a tensor of maps, got {type(maps).__name__}")
    wanted = (len(batch), *batch.images.shape[2:])
    if maps.shape != wanted:
        hint = ": sum or pool the channels" if maps.ndim == 4 else ""
        raise BadShape(f"maps of {recipe.label(method)} must have shape {wanted}, got {tuple(maps.shape)}{hint}")
    maps = maps.detach().to(batch.images.device, torch.float32)
    finite = torch.ones(()) if bool(maps.sum().isfinite()) else maps.flatten(1).isfinite().all(1)  # a quick look first
    if not bool(finite.all()):
        first = batch.ids[int((~finite).nonzero()[0])]
        raise BadShape(
            f"maps of {recipe.label(method)} must be finite, got NaN or infinity on {int((~finite).sum())} of "
            f"{len(batch)} images, first on {first!r}"
        )
    return Attribution(model, batch, method, maps)  # type: ignore[arg-type]


def _breaks_on(model: Model, batch: Batch) -> str:
    """Which images the network has no finite answer to as they are, in words; empty if there are none."""
    try:
        with torch.inference_mode(), evaluating(model.network):
            fine = [bool((model(image.to(model.device)) < float("inf")).all()) for image in batch.images.split(1)]
    except Exception:  # it takes no pictures at all, which whoever asks knows by now
        return ""
    broken = [identity for identity, well in zip(batch.ids, fine, strict=True) if not well]
    if not broken:
        return ""
    return f"; it does so on {len(broken)} of these {len(batch)} images as they are, first on {broken[0]!r}"
