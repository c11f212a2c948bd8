"""Checks of a network and of its runners: finite logits, independent rows, agreement, targets."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from heatproof.data._support.made_up import pictures, unforeseen
from heatproof.engine.backends.eager import Runner, answered, input_gradient, untouched
from heatproof.engine.machine import out_of_memory
from heatproof.engine.weight_state import without_hooks
from heatproof.errors import BadInput, BadModel, BadShape, HeatproofError
from heatproof.types import Images, Logits, Model

TOLERANCE = 1e-4  # relative to the largest logit
DRAWN_TOLERANCE = 10 * TOLERANCE  # on pictures drawn anew each time, so that float noise does not decide
SLOPE_TOLERANCE = 1e-2  # share of a gradient's norm: one rectifier in a million flipped by rounding moves it by 1e-3


@torch.inference_mode()
def answers(model: Model, run: Runner, images: Images) -> Logits:
    """A runner's logits for images in [0, 1], checked in shape; without gradients."""
    return answered(model, images.to(model.device), run)


def vet(model: Model, shape: Sequence[int]) -> None:
    """Raise `BadModel` unless the network gives finite logits that depend on their own row alone."""
    first, own = pictures(shape, 2), untouched(model.network)
    second = torch.stack([1 - first[0], first[0]])  # the same picture in another row, with another batch mate
    try:
        with without_hooks(model.network):
            one, other = (answers(model, own, images) for images in (first, second))
    except Exception as error:
        if isinstance(error, HeatproofError) or out_of_memory(error):
            raise
        raise BadModel(
            f"model {model.name!r} could not take a batch of images of shape {tuple(shape)} ({brief(error)}): "
            f"{_about_channels(model, shape[0])}check the image size and the number of channels it was made for"
        ) from error
    check_finite(model, one, first)
    if not close(one[:1], other[1:], floor=floor(model, one)):
        raise BadModel(
            f"model {model.name!r} must answer the same for the same picture whatever the batch mates, "
            "got other logits the second time: turn off dropout, noise and batch statistics in its forward"
        )


def _about_channels(model: Model, channels: int) -> str:
    """What is wrong with the number of channels, if that is what is wrong; else nothing."""
    first = next((module for module in model.network.modules() if isinstance(module, nn.Conv2d)), None)
    if first is not None and first.groups == 1 and first.in_channels != channels:
        return (
            f"its first convolution takes {first.in_channels} channels, and these pictures have {channels}: give it "
            "pictures of its own kind, or a network made for these; "
        )
    for name, values in (("mean", model.mean), ("std", model.std)):
        if len(values) not in (1, channels):
            return f"its {name} has {len(values)} numbers for pictures of {channels} channels: give one for each; "
    return ""


def floor(model: Model, logits: Logits) -> float:
    """The scale below which differences do not count: one number alone may lie near 0 with large ones behind it."""
    if model.kind == "softmax":
        return 0.0
    return 1.0 if model.kind == "sigmoid" else float(logits.abs().amax())  # log-odds have a scale, values do not


def close(one: Logits, other: Logits, tolerance: float = TOLERANCE, floor: float = 0.0) -> bool:
    """Whether logits are equal up to float noise, row by row."""
    scale = torch.maximum(one.abs(), other.abs()).amax(1, keepdim=True).clamp_min(floor)
    same = (one == other) | ((one - other).abs() <= tolerance * scale)  # equal infinities are equal
    return one.shape == other.shape and bool(same.all())


def disagreement(model: Model, run: Runner, shape: Sequence[int], exported: bool, slopes: bool) -> str:
    """The reason why a runner must not stand in for the network; empty if it may.

    An export may come from a cache that other programs write to, so it is also compared on pictures that cannot be
    foreseen. `slopes` compares input gradients, with a tolerance for rectifiers that float noise flips.
    """
    own = untouched(model.network)
    with without_hooks(model.network):
        rows = pictures(shape, 3)
        wanted = answers(model, own, rows)
        if not close(answers(model, run, rows), wanted, floor=floor(model, wanted)):
            return "its logits differ from the network's"
        if exported:
            rows = unforeseen(shape, 4)
            wanted = answers(model, own, rows)
            if not close(answers(model, run, rows), wanted, DRAWN_TOLERANCE, floor(model, wanted)):
                return "the exported network in the cache differs from this one on pictures drawn just now"
        if slopes:
            rows = pictures(shape, 2)
            found, right = (input_gradient(model, rows, largest, way)[0].flatten(1) for way in (run, own))
            if bool(((found - right).norm(dim=1) > SLOPE_TOLERANCE * right.norm(dim=1)).any()):
                return "its gradients differ from the network's"
    return ""


def largest(logits: Logits) -> Tensor:
    """The largest logit per row: what is differentiated to compare and to time gradients."""
    return logits.amax(1)


def check_targets(model: Model, targets: Tensor, classes: int) -> None:
    """Raise `BadInput` unless every target is one of the model's classes."""
    numbers = targets.tolist()  # of one micro-batch: few
    low, high = min(numbers), max(numbers)
    if low < 0 or high >= classes:
        raise BadInput(f"targets must be classes 0 … {classes - 1} of model {model.name!r}, got {low} … {high}")


def no_slopes(model: Model) -> BadModel:
    return BadModel(
        f"model {model.name!r} must be differentiable in its input, got logits without a gradient: "
        "remove detach() and no_grad from its forward"
    )


def check_finite(model: Model, logits: Logits, images: Images) -> None:
    """Raise `BadModel` on NaN or +infinity, or `BadShape` where the images are the cause."""
    if not logits.numel() or float(logits.max()) < float("inf"):  # NaN propagates through the maximum
        return
    if not bool(images.isfinite().all()):
        raise BadShape("images must lie in [0, 1], got NaN or infinity: mend the step that made them")
    rows = int((~(logits < float("inf"))).view(len(logits), -1).any(1).sum())
    raise BadModel(
        f"model {model.name!r} must answer with finite logits, got NaN or infinity on {rows} of "
        f"{len(images)} pictures it was shown: check its weights, its mean and std, and its precision"
    )


def brief(error: BaseException) -> str:
    """An error as one line: its type and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
