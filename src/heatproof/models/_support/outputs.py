"""Recognises a network's outputs: a softmax, a yes or no, or several labels; as logits or as probabilities.

What is declared is believed. What the numbers do not show (a value, several labels as logits) must be declared.
"""

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
from heatproof.types import Images, Model, check_answer

log = logging.getLogger("heatproof")

SHOWN = 8  # pictures from the user's data: logits may by chance lie in [0, 1] on one or two
MADE_UP = 4  # synthetic pictures besides, so that a data set of one picture does not decide alone
TOLERANCE = 1e-3  # for a sum of probabilities
DEPTH = 8  # autograd nodes inspected, from the answer backwards
SIDES = ("no", "yes")

Shape = Literal["logits", "probabilities", "bounded"]

# Operations whose outputs lie in [0, 1], those that only pass numbers on, and those that bound nothing.
_BOUNDING = ("Sigmoid", "Hardsigmoid", "Softmax", "Reciprocal", "Clamp", "Hardtanh", "Tanh")
_PASSING = (
    *("View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Select", "Slice", "Transpose", "Permute", "T"),
    *("Clone", "Copy", "ToCopy", "Cat", "Stack", "Expand", "Index", "Split", "Unbind"),
    *("Mul", "Div", "Add", "Sub", "Rsub"),
)
_UNBOUNDED = ("Addmm", "Mm", "Linear", "Bmm", "Baddbmm", "Convolution", "LogSoftmax")


def kind_of(outputs: Tensor) -> Shape:
    """What outputs (pictures, numbers) look like: rows that add up to 1, all in [0, 1], or any other numbers."""
    values = outputs.double()
    tolerance = TOLERANCE if outputs.dtype in (torch.float32, torch.float64) else 20 * TOLERANCE
    if not bool(((values >= -1e-6) & (values <= 1 + tolerance)).all()):
        return "logits"
    return "probabilities" if bool(((values.sum(1) - 1).abs() <= tolerance).all()) else "bounded"


def recognised(model: Model, images: Images) -> Model:
    """The model with the kind of output that its answers to several pictures show; what is declared is believed.

    Says aloud what was recognised, and how to declare another kind.
    """
    if not len(images) or model.label is not None:
        return model
    shown = torch.cat([images[:SHOWN].to(model.device), made_up.pictures(images.shape[1:], MADE_UP).to(images)])
    answer = _answer(model, shown)
    if answer is None:  # the error is reported where the model is really run
        return model
    found = _declared(model, answer) if model.output is not None else _shown(model, answer)
    if found.kind == "sigmoid" and answer.shape[1] == 1 and not found.classes:
        found = dataclasses.replace(found, classes=SIDES)
    found.logits(answer, len(answer))  # it knows now how many numbers there are
    return found


def _declared(model: Model, answer: Tensor) -> Model:
    """A declared kind, with whether the network answers with logits or probabilities, where that was left open."""
    if model.kind == "regression" or model.probabilities is not None:
        return model
    sure = "probabilities" if model.kind == "softmax" else "bounded"
    looks = kind_of(answer)
    bounded = looks == sure or (model.kind == "sigmoid" and looks != "logits")
    if not bounded or not _ends_in(answer, _BOUNDING):
        return model
    end = "softmax" if model.kind == "softmax" else "sigmoid"
    warnings.warn(
        f"model {model.name!r} answers with probabilities, as after a {end}, so they are read as such; its logits "
        f"have finer gradients: return the layer before the {end}, or declare output='{model.kind}:logits'",
        stacklevel=3,
    )
    return dataclasses.replace(model, probabilities=True)


def _shown(model: Model, answer: Tensor) -> Model:
    if answer.shape[1] == 1:
        return _one(model, answer)
    looks = kind_of(answer)
    if looks == "probabilities":
        warnings.warn(
            f"model {model.name!r} answers with probabilities (each row adds up to 1), so it is read as such: their "
            "logarithms stand for logits; return the layer before the softmax to have its logits, or declare "
            "output='softmax:logits' if these are logits",
            stacklevel=3,
        )
        return dataclasses.replace(model, output="softmax:probabilities")
    if looks == "bounded" and not _ends_in(answer, _UNBOUNDED):
        sentence = (
            f"model {model.name!r} answers with {answer.shape[1]} numbers from 0 to 1 that do not add up to 1 "
            f"(on {len(answer)} pictures)"
        )
        if _ends_in(answer, _BOUNDING):
            warnings.warn(
                f"{sentence}, as independent labels after a sigmoid do, so each is read as the probability of a label "
                "of its own; its logits have finer gradients: return the layer before the sigmoid and declare "
                "output='sigmoid'. If these are the logits of a softmax, declare output='softmax:logits'",
                stacklevel=3,
            )
            return dataclasses.replace(model, output="sigmoid:probabilities")
        warnings.warn(
            f"{sentence}; they are read as logits of a softmax: declare output='sigmoid:probabilities' if they are "
            "probabilities of labels, output='regression' if they are values, or output='softmax:logits' "
            "(factory.output = …, --output …)",
            stacklevel=3,
        )
    return model


def _one(model: Model, answer: Tensor) -> Model:
    """A network with one number per picture: yes or no, unless declared otherwise."""
    bounded = kind_of(answer) != "logits"
    what, kind = "the logit of yes", "sigmoid:logits"
    if bounded and _ends_in(answer, _BOUNDING):
        what, kind = "the probability of yes", "sigmoid:probabilities"
    elif bounded and not _ends_in(answer, _UNBOUNDED):
        raise BadModel(
            f"model {model.name!r} answers with one number from 0 to 1 per picture, and nothing shows whether it is a "
            "probability: declare output='sigmoid:probabilities' for the probability of yes, 'sigmoid:logits' for its "
            "logit, 'regression' for a value (factory.output = …, Model(output=…), --output …)"
        )
    warnings.warn(
        f"model {model.name!r} answers with one number per picture, which is read as {what}: yes or no. Declare "
        "output='regression' if it is a value (factory.output = 'regression', --output regression), or "
        f"output='sigmoid' if this is right",
        stacklevel=4,
    )
    return dataclasses.replace(model, output=kind)


def _answer(model: Model, images: Images) -> Tensor | None:
    """The network's numbers with their autograd graph, or None where the network cannot be run."""
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            without_hooks(model.network),
            evaluating(model.network),
        ):
            inputs = model.normalised(images.clone().requires_grad_()).to(model.dtype)
            return check_answer(model.network(inputs), len(images), model.name)
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
