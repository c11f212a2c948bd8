"""Any number of rows through the network, one micro-batch after the other."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from heatproof.errors import BadShape
from heatproof.models.engine import vetting
from heatproof.models.engine.device import out_of_memory
from heatproof.models.engine.plan import Kind, Plan, halved, plan
from heatproof.models.engine.running import input_gradient
from heatproof.types import Images, Logits, Model, Readout, read

PICTURES_BYTES = 8 * 2**20  # larger blocks of pictures gain nothing


def batch_size(model: Model, images: Images, kind: Kind = "forward") -> int:
    """How many rows go through the network at once."""
    _check(images)
    return plan(model, images.shape[1:], kind).choice.size


def settled(model: Model, images: Images, kind: Kind) -> Plan:
    """How such images are run, to be handed to many calls in a row between which nobody touches the network:
    they need not look again whether somebody did.
    """
    _check(images)
    return plan(model, images.shape[1:], kind)


def at_once(images: Images, micro: int) -> int:
    """How many such pictures to make at once for passes: whole micro-batches of that size, of some megabytes."""
    fit = PICTURES_BYTES // max(1, images[0].numel() * images.element_size()) if len(images) else 1
    return max(1, fit // micro) * micro


def forward(model: Model, images: Images, way: Plan | None = None) -> Logits:
    """The logits (B, classes) of any number of images in [0, 1], without gradients."""
    _check(images)
    way = way or plan(model, images.shape[1:], "forward")
    if not len(images):
        return _forward(model, vetting.pictures(images.shape[1:], 1).to(images.device), way)[:0]
    while True:
        try:
            return _forward(model, images, way)
        except Exception as error:
            if not out_of_memory(error) or way.choice.size == 1:
                raise
        way = _smaller(model, way)  # outside the except: the traceback holds the memory


def gradient(
    model: Model, images: Images, targets: Tensor, readout: Readout = "logit", way: Plan | None = None
) -> tuple[Tensor, Tensor]:
    """Input gradients (B, C, H, W) of what the model says about each target, and the values (B,) themselves.

    Where hooks listen or operations are replaced, runs eagerly on `model.network` itself, so that they take part;
    they meet micro-batches of at most `batch_size(model, images, "gradient")` rows, the last filled up with copies
    of its last row. Elsewhere a copy with folded batch norms may run, if that is quicker.
    """
    _check(images)
    if targets.shape != (len(images),) or targets.dtype != torch.int64:
        raise BadShape(f"targets must be {len(images)} int64 class indices, got {tuple(targets.shape)} {targets.dtype}")
    way = way or plan(model, images.shape[1:], "gradient")
    if not len(images):
        return torch.zeros_like(images), torch.zeros(0, dtype=model.dtype, device=images.device)
    while True:
        try:
            with torch.inference_mode(False):  # whatever the caller is in; copies may take part in autograd
                return _gradient(model, _ordinary(images), _ordinary(targets), readout, way)
        except Exception as error:
            if not out_of_memory(error) or way.choice.size == 1:
                raise
        way = _smaller(model, way)


def micro_batches(way: Plan, *tensors: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
    """How many rows of each micro-batch count, and the tensors' rows in it: the last is filled up by repeating.

    Rows may share the tensors' memory, are detached, and may take part in autograd whatever mode the caller is in.
    """
    length = len(tensors[0])
    with torch.inference_mode(False):
        whole = [_ordinary(tensor).detach() for tensor in tensors]
    for first, size in _portions(way, length):
        if size == length:
            yield length, whole
            continue
        with torch.inference_mode(False):
            parts = [_taken(tensor, first, size).detach() for tensor in whole]
        yield min(size, length - first), parts


def _portions(way: Plan, rows: int) -> Iterator[tuple[int, int]]:
    first = 0
    for size in way.portions(rows):
        yield first, size
        first += size


def _forward(model: Model, images: Images, way: Plan) -> Logits:
    with torch.inference_mode():
        parts = [
            vetting.answers(model, way.run, _taken(images, first, size))[: len(images) - first]
            for first, size in _portions(way, len(images))
        ]
        logits = torch.cat(parts)
        vetting.check_finite(model, logits, images)
    return logits.to(images.device).clone()  # a copy made out here may take part in autograd


def _gradient(model: Model, images: Images, targets: Tensor, readout: Readout, way: Plan) -> tuple[Tensor, Tensor]:
    gradients, values = [], []
    for first, size in _portions(way, len(images)):
        aim = _taken(targets, first, size).to(model.device)

        def value(logits: Logits, aim: Tensor = aim) -> Tensor:
            _check_targets(model, aim, logits)
            return read(logits, aim, readout)

        count = len(images) - first
        slope, said = input_gradient(model, _taken(images, first, size), value, way.run)
        gradients.append(slope[:count].to(images.device))
        values.append(said[:count].to(images.device))
    slopes, all_values = joined(gradients), joined(values)
    vetting.check_finite(model, all_values, images)
    return slopes, all_values


def joined(parts: list[Tensor]) -> Tensor:
    """Rows of several micro-batches, copied only if there are several."""
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _taken(tensor: Tensor, first: int, size: int) -> Tensor:
    """Exactly `size` rows, from that one on: the last one is repeated."""
    if size == len(tensor):
        return tensor
    rows = tensor[first : first + size]
    missing = size - len(rows)
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows


def _ordinary(tensor: Tensor) -> Tensor:
    """Numbers that may take part in autograd."""
    return tensor.clone() if tensor.is_inference() else tensor


def _check_targets(model: Model, targets: Tensor, logits: Logits) -> None:
    if not logits.requires_grad:
        raise vetting.no_slopes(model)
    vetting.check_targets(model, targets, logits.shape[1])


def _check(images: Images) -> None:
    """The shape alone: occluded pictures come by the thousand, and their range was checked at the border."""
    if images.ndim != 4 or not images.is_floating_point() or 0 in images.shape[1:]:
        raise BadShape(
            "images must be floating point of shape (batch, channels, height, width), "
            f"got {images.dtype} {tuple(images.shape)}"
        )


def _smaller(model: Model, way: Plan) -> Plan:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return halved(model, way)
