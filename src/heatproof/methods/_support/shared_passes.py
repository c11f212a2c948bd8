"""Passes that give more than one number: the logits besides the slopes, or the slopes of several questions at once.

`heatproof.engine.gradient` answers one question per pass. Walks toward another class need two slopes
of one forward, and walks that stop at the decision boundary read the prediction off the same forward instead
of paying twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heatproof import engine
from heatproof.engine.backends.eager import answered
from heatproof.engine.checks import check_finite
from heatproof.errors import NotApplicable
from heatproof.types import Images, Logits, Model, Readout, read

Questions = Callable[[Logits, Tensor], Sequence[Tensor]]  # logits, aims (rows, k) -> numbers per row to differentiate


def slopes(
    model: Model, images: Images, aims: Tensor, questions: Questions, way: engine.Plan | None = None
) -> tuple[list[Tensor], Logits]:
    """Input gradients of every question, each (B, C, H, W), and the logits (B, classes), from one forward per
    row.

    `aims` (B, k) are the class indices the questions are about. Micro-batches are the engine's: walks follow the
    sign of a gradient, which must not turn with the number of batch mates.
    """
    way, device = way or engine.settled(model, images, "gradient"), model.device
    found: list[list[Tensor]] = []
    logits: list[Tensor] = []
    for count, (inputs, about) in engine.micro_batches(way, images, aims):
        with torch.inference_mode(False), torch.enable_grad():
            inputs = inputs.to(device).requires_grad_()
            answer = answered(model, inputs, way.run)
            values = questions(answer, about.to(device))
            last = len(values) - 1
            parts = [torch.autograd.grad(q.sum(), inputs, retain_graph=i < last)[0] for i, q in enumerate(values)]
        found.append([slope[:count].to(images.device).contiguous() for slope in parts])
        logits.append(answer.detach()[:count].to(images.device))
    all_logits = torch.cat(logits)
    check_finite(model, all_logits, images)
    return [torch.cat(column) for column in zip(*found, strict=True)], all_logits


def reading(model: Model, readout: Readout) -> Questions:
    """Questions that read the model's answer for each of the aims."""

    def questions(logits: Logits, aims: Tensor) -> list[Tensor]:
        return [model.read(logits, aim, readout) for aim in aims.unbind(1)]

    return questions


def doubly_softmaxed(logits: Logits, aims: Tensor) -> list[Tensor]:
    """The log-probability of a softmax of a softmax, as published code for several methods computes it."""
    return [read(logits.softmax(-1), aim, "log_probability") for aim in aims.unbind(1)]


def class_count(model: Model, images: Images) -> int:
    """The number of the model's classes; at least two, or there is no other class to walk to."""
    count = engine.forward(model, images[:1]).shape[1]
    if count < 2:
        raise NotApplicable(f"model {model.name!r} has one class only: there is no other class to walk towards")
    return count


def other_classes(generators: Sequence[torch.Generator], targets: Tensor, classes: int, count: int) -> Tensor:
    """For each image, up to `count` different classes other than its target, drawn from its own generator:
    (B, k).
    """
    drawn = [torch.randperm(classes - 1, generator=generator)[:count] for generator in generators]
    others = torch.stack(drawn).to(targets.device)
    return others + (others >= targets[:, None]).long()  # leave a gap at the target
