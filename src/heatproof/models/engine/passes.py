"""Any number of rows through the network, one micro-batch after the other."""

from __future__ import annotations

import torch
from torch import Tensor

from heatproof.errors import BadInput, BadModel, BadShape
from heatproof.models.engine import vetting
from heatproof.models.engine.device import out_of_memory
from heatproof.models.engine.plan import Kind, Plan, halved, plan
from heatproof.models.engine.running import input_gradient
from heatproof.types import Images, Logits, Model, Readout, read


def batch_size(model: Model, images: Images, kind: Kind = "forward") -> int:
    """How many rows go through the network at once."""
    _check(images)
    return plan(model, images.shape[1:], kind).choice.size


def forward(model: Model, images: Images) -> Logits:
    """The logits (B, classes) of any number of images in [0, 1], without gradients."""
    _check(images)
    way = plan(model, images.shape[1:], "forward")
    if not len(images):
        return _forward(model, vetting.pictures(images.shape[1:], 1).to(images.device), way)[:0]
    while True:
        try:
            return _forward(model, images, way)
        except Exception as error:
            if not out_of_memory(error) or way.choice.size == 1:
                raise
        way = _smaller(model, way)  # outside the except: the traceback holds the memory


def gradient(model: Model, images: Images, targets: Tensor, readout: Readout = "logit") -> tuple[Tensor, Tensor]:
    """Input gradients (B, C, H, W) of what the model says about each target, and the values (B,) themselves.

    Runs eagerly on `model.network` itself, so hooks on its layers take part; they meet micro-batches of
    `batch_size(model, images, "gradient")` rows, the last filled up with copies of its last row.
    """
    _check(images)
    if targets.shape != (len(images),) or targets.dtype != torch.int64:
        raise BadShape(f"targets must be {len(images)} int64 class indices, got {tuple(targets.shape)} {targets.dtype}")
    way = plan(model, images.shape[1:], "gradient")
    if not len(images):
        return torch.zeros_like(images), torch.zeros(0, dtype=model.dtype, device=images.device)
    while True:
        try:
            with torch.inference_mode(False):  # whatever the caller is in; copies may take part in autograd
                return _gradient(model, images.clone(), targets.clone(), readout, way)
        except Exception as error:
            if not out_of_memory(error) or way.choice.size == 1:
                raise
        way = _smaller(model, way)


def _forward(model: Model, images: Images, way: Plan) -> Logits:
    with torch.inference_mode():
        parts = [
            vetting.answers(model, way.run, _filled(rows, way.choice.size))[: len(rows)]
            for rows in torch.split(images, way.choice.size)
        ]
        logits = torch.cat(parts)
        vetting.check_finite(model, logits, images)
    return logits.to(images.device).clone()  # a copy made out here may take part in autograd


def _gradient(model: Model, images: Images, targets: Tensor, readout: Readout, way: Plan) -> tuple[Tensor, Tensor]:
    size = way.choice.size
    gradients, values = [], []
    for rows, aims in zip(torch.split(images, size), torch.split(targets, size), strict=True):
        aim = _filled(aims, size).to(model.device)

        def value(logits: Logits, aim: Tensor = aim) -> Tensor:
            _check_targets(model, targets, logits)
            return read(logits, aim, readout)

        slope, said = input_gradient(model, _filled(rows, size), value)
        gradients.append(slope[: len(rows)].to(images.device))
        values.append(said[: len(rows)].to(images.device))
    all_values = torch.cat(values)
    vetting.check_finite(model, all_values, images)
    return torch.cat(gradients), all_values


def _check_targets(model: Model, targets: Tensor, logits: Logits) -> None:
    if not logits.requires_grad:
        raise BadModel(
            f"model {model.name!r} must be differentiable in its input, got logits without a gradient: "
            "remove detach() and no_grad from its forward"
        )
    low, high = (int(v) for v in torch.aminmax(targets))
    if low < 0 or high >= logits.shape[1]:
        raise BadInput(f"targets must be classes 0 … {logits.shape[1] - 1} of model {model.name!r}, got {low} … {high}")


def _check(images: Images) -> None:
    """The shape alone: occluded pictures come by the thousand, and their range was checked at the border."""
    if images.ndim != 4 or not images.is_floating_point() or 0 in images.shape[1:]:
        raise BadShape(
            "images must be floating point of shape (batch, channels, height, width), "
            f"got {images.dtype} {tuple(images.shape)}"
        )


def _filled(rows: Tensor, size: int) -> Tensor:
    """Exactly `size` rows: the last one is repeated."""
    if len(rows) == size:
        return rows
    return torch.cat([rows, rows[-1:].expand(size - len(rows), *rows.shape[1:])])


def _smaller(model: Model, way: Plan) -> Plan:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return halved(model, way)
