"""Recognises a network's outputs: logits, the probabilities of a softmax, or something heatproof cannot read yet."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from typing import Any, Literal

import torch
from torch import Tensor

from heatproof.data._support import made_up
from heatproof.engine.backends.eager import evaluating
from heatproof.engine.weight_state import without_hooks
from heatproof.errors import BadModel
from heatproof.types import Images, Model

log = logging.getLogger("heatproof")

SHOWN = 8  # pictures from the user's data: logits may by chance lie in [0, 1] on one or two
MADE_UP = 4  # synthetic pictures besides, so that a data set of one picture does not decide alone
TOLERANCE = 1e-3  # for a sum of probabilities
DEPTH = 8  # autograd nodes inspected, from the answer backwards

Kind = Literal["logits", "probabilities", "bounded"]

# Operations whose outputs lie in [0, 1], those that only pass numbers on, and those that bound nothing.
_BOUNDING = ("Sigmoid", "Hardsigmoid", "Softmax", "Reciprocal", "Clamp", "Hardtanh", "Tanh")
_PASSING = (
    *("View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Select", "Slice", "Transpose", "Permute", "T"),
    *("Clone", "Copy", "ToCopy", "Cat", "Stack", "Expand", "Index", "Split", "Unbind"),
    *("Mul", "Div", "Add", "Sub", "Rsub"),
)
_UNBOUNDED = ("Addmm", "Mm", "Linear", "Bmm", "Baddbmm", "Convolution", "LogSoftmax")


def kind_of(outputs: Tensor) -> Kind:
    """The kind of outputs (pictures, classes): rows that add up to 1, all in [0, 1], or any other numbers."""
    values = outputs.double()
    tolerance = TOLERANCE if outputs.dtype in (torch.float32, torch.float64) else 20 * TOLERANCE
    if not bool(((values >= -1e-6) & (values <= 1 + tolerance)).all()):
        return "logits"
    return "probabilities" if bool(((values.sum(1) - 1).abs() <= tolerance).all()) else "bounded"


def recognised(model: Model, images: Images) -> Model:
    """The model with the kind of output that its answers to several pictures show; a declared `output` is trusted.

    Probabilities from a softmax are read as such: their logarithms take the place of logits. Independent probabilities
    are refused.
    """
    if model.output is not None or not len(images):
        return model
    shown = torch.cat([images[:SHOWN].to(model.device), made_up.pictures(images.shape[1:], MADE_UP).to(images)])
    answer = _answer(model, shown)
    if answer is None:  # the error is reported where the model is really run
        return model
    kind = kind_of(answer)
    if kind == "probabilities":
        warnings.warn(
            f"model {model.name!r} answers with probabilities (each row adds up to 1), so it is read as such: their "
            "logarithms stand for logits; return the layer before the softmax to have its logits, or declare "
            "output='logits' if these are logits",
            stacklevel=2,
        )
        return dataclasses.replace(model, output="probabilities")
    if kind == "bounded" and not _ends_in(answer, _UNBOUNDED):
        sentence = (
            f"model {model.name!r} answers with {answer.shape[1]} numbers from 0 to 1 that do not add up to 1 "
            f"(on {len(answer)} pictures)"
        )
        if _ends_in(answer, _BOUNDING):
            raise BadModel(
                f"{sentence}, as independent labels after a sigmoid do; heatproof explains one of several classes so "
                "far, and would read them through a softmax: return [0, z] for the label k to be explained, "
                "torch.stack([torch.zeros_like(z[:, k]), z[:, k]], 1) with z the layer before the sigmoid, or declare "
                "output='logits' (factory.output = 'logits') if these are logits"
            )
        warnings.warn(
            f"{sentence}; they are read as logits: if they are probabilities, return the layer before; if they are "
            "logits, declare output='logits' (factory.output = 'logits')",
            stacklevel=2,
        )
    return model


def _answer(model: Model, images: Images) -> Tensor | None:
    """The network's answer with its autograd graph, or None where the network cannot be run."""
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            without_hooks(model.network),
            evaluating(model.network),
        ):
            return model(images.clone().requires_grad_())
    except BadModel:
        raise
    except Exception as error:  # out of memory, wrong size: the engine reports each in its own words
        log.info("%s: its outputs were not looked at (%s)", model.name, error)
        return None


def _ends_in(answer: Tensor, operations: tuple[str, ...]) -> bool:
    """Whether the numbers come from one of these operations, apart from operations that only pass them on."""
    waiting: list[tuple[Any, int]] = [(answer.grad_fn, 0)]
    while waiting:
        node, depth = waiting.pop()
        if node is None or depth > DEPTH:
            continue
        name = node.name().removeprefix("torch::autograd::").partition("Backward")[0]
        if name in operations:
            return True
        if name in _PASSING:
            waiting += [(below, depth + 1) for below, _ in node.next_functions]
    return False
