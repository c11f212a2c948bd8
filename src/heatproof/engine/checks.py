"""Checks of a network and of what runs in its place: finite logits, rows that stand alone, agreement, targets."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.engine.backends.eager import Runner, answered, input_gradient, untouched
from heatproof.engine.machine import out_of_memory
from heatproof.engine.weight_state import unheard
from heatproof.errors import BadInput, BadModel, BadShape, HeatproofError
from heatproof.types import Images, Logits, Model

TOLERANCE = 1e-4  # relative to the largest logit
DRAWN_TOLERANCE = 10 * TOLERANCE  # on pictures drawn anew each time, where float noise must not decide
SLOPE_TOLERANCE = 1e-2  # of a gradient's length: one rectifier in a million turned by rounding moves it by 1e-3


def pictures(shape: Sequence[int], count: int) -> Images:
    """`count` pictures of shape (C, H, W), from smooth to rough; the same on every machine."""
    channels, height, width = shape
    generator = torch.Generator().manual_seed(0)
    rows = []
    for number in range(count):
        grain = (1, 4, 16)[number % 3]
        coarse = torch.rand(1, channels, -(-height // grain), -(-width // grain), generator=generator)
        rows.append(F.interpolate(coarse, size=(height, width), mode="bilinear"))
    return torch.cat(rows).clamp_(0, 1)


def unforeseen(shape: Sequence[int], count: int) -> Images:
    """Pictures that no file in a cache can have been made to answer: drawn anew in every process.

    Their spectrum falls with frequency as a photo's does; from flat to harsh, from dark to bright.
    """
    channels, height, width = shape
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(8), "big") >> 1)
    frequency = (
        torch.fft.fftfreq(height)[:, None].hypot(torch.fft.rfftfreq(width)[None]).clamp_min(1 / max(height, width))
    )
    white = torch.randn(count, channels, height, width, generator=generator)
    steepness = 1.5 * torch.rand(count, 1, 1, 1, generator=generator)
    rows = torch.fft.irfft2(torch.fft.rfft2(white) / frequency**steepness, s=(height, width))
    rows = (rows - rows.mean((1, 2, 3), keepdim=True)) / rows.std((1, 2, 3), keepdim=True).clamp_min(1e-6)
    contrast, brightness = torch.rand(2, count, 1, 1, 1, generator=generator)
    drawn: Images = (brightness + 0.5 * contrast * rows).nan_to_num(0.5).clamp_(0, 1)
    return drawn


def close(one: Logits, other: Logits, tolerance: float = TOLERANCE) -> bool:
    """Equal but for float noise, row by row."""
    scale = torch.maximum(one.abs(), other.abs()).amax(1, keepdim=True)
    same = (one == other) | ((one - other).abs() <= tolerance * scale)  # equal infinities are equal
    return one.shape == other.shape and bool(same.all())


@torch.inference_mode()
def answers(model: Model, run: Runner, images: Images) -> Logits:
    """What a runner answers to images in [0, 1], checked to be logits; without gradients."""
    return answered(model, images.to(model.device), run)


def vet(model: Model, shape: Sequence[int]) -> None:
    """Raise `BadModel` unless the network gives finite logits that depend on the row alone."""
    first, own = pictures(shape, 2), untouched(model.network)
    second = torch.stack([1 - first[0], first[0]])  # another place, another neighbour
    try:
        with unheard(model.network):
            one, other = (answers(model, own, images) for images in (first, second))
    except Exception as error:
        if isinstance(error, HeatproofError) or out_of_memory(error):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadModel(
            f"model {model.name!r} could not take a batch of images of shape {tuple(shape)} ({reason}): "
            f"check the image size and the number of channels it was made for"
        ) from error
    check_finite(model, one, first)
    if not close(one[:1], other[1:]):
        raise BadModel(
            f"model {model.name!r} must answer the same for the same picture whatever the batch mates, "
            "got other logits the second time: turn off dropout, noise and batch statistics in its forward"
        )


def agrees(model: Model, run: Runner, shape: Sequence[int], drawn: bool, slopes: bool) -> str:
    """Why a runner must not stand in for the network; empty where it may.

    `drawn` for exports from a cache that others may write to: they are compared on unforeseen pictures, too.
    `slopes` compares input gradients, but for rectifiers that float noise turns.
    """
    own = untouched(model.network)
    with unheard(model.network):
        rows = pictures(shape, 3)
        if not close(answers(model, run, rows), answers(model, own, rows)):
            return "its logits differ from the network's"
        rows = unforeseen(shape, 8) if drawn else rows[:0]
        if len(rows) and not close(answers(model, run, rows), answers(model, own, rows), DRAWN_TOLERANCE):
            return "the exported network in the cache differs from this one on pictures drawn just now"
        if slopes:
            rows = pictures(shape, 2)
            found, wanted = (input_gradient(model, rows, _largest, way)[0].flatten(1) for way in (run, own))
            if bool(((found - wanted).norm(dim=1) > SLOPE_TOLERANCE * wanted.norm(dim=1)).any()):
                return "its gradients differ from the network's"
    return ""


def _largest(logits: Logits) -> Tensor:
    return logits.amax(1)


def check_targets(model: Model, targets: Tensor, classes: int) -> None:
    """Raise `BadInput` unless every target is one of the model's classes."""
    numbers = targets.tolist()  # few, of a micro-batch
    low, high = min(numbers), max(numbers)
    if low < 0 or high >= classes:
        raise BadInput(f"targets must be classes 0 … {classes - 1} of model {model.name!r}, got {low} … {high}")


def no_slopes(model: Model) -> BadModel:
    return BadModel(
        f"model {model.name!r} must be differentiable in its input, got logits without a gradient: "
        "remove detach() and no_grad from its forward"
    )


def check_finite(model: Model, logits: Logits, images: Images) -> None:
    """Raise `BadModel` on NaN or +infinity, or `BadInput`'s kin where the images were to blame."""
    if not logits.numel() or float(logits.max()) < float("inf"):  # a maximum with NaN among it is NaN
        return
    fine = logits < float("inf")
    rows = int((~fine).any(-1).sum()) if fine.ndim > 1 else int((~fine).sum())
    if not bool(images.isfinite().all()):
        raise BadShape("images must lie in [0, 1], got NaN or infinity: mend the step that made them")
    raise BadModel(
        f"model {model.name!r} must answer with finite logits, got NaN or infinity on {rows} of "
        f"{len(images)} pictures it was shown: check its weights, its mean and std, and its precision"
    )
