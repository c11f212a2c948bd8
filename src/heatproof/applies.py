"""Which methods apply to a network, and why the others do not: each is tried for a few passes on noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from heatproof import engine, needs, registry
from heatproof.attribute import attribute
from heatproof.by_label import is_several
from heatproof.engine.backends.eager import evaluating
from heatproof.errors import HeatproofError
from heatproof.models.from_file import channels_of
from heatproof.traits import method_traits, misfit, needs_of, parts_of, premise_of
from heatproof.types import Batch, ConceptMethod, Method, Model

PASSES = 24  # of a picture: what refuses a network does so before
SIDE = 224  # of networks that do not declare the size of their pictures


class _Enough(BaseException):
    """The method has been at work for long enough. No `Exception`: methods that handle those must not see it."""


def methods_for(model: Model) -> Iterator[tuple[str, str]]:
    """Every registered method by name, with the reason why it does not apply to this model; empty if it does."""
    with engine.use(engine.Engine(always=engine.REFERENCE)):
        model, batch = _posed(model)
        for name in registry.names("method"):
            yield name, reason_against(model, batch, name)


def contestants_for(model: Model) -> tuple[list[Method], dict[str, str]]:
    """Every method that applies to this model with its defaults, without controls and concepts; and why others do
    not.
    """
    found = dict(methods_for(model))
    fit = [registry.find("method", name) for name, reason in found.items() if not reason]
    chosen = [one for one in fit if not method_traits(one).control and not isinstance(one, ConceptMethod)]
    return chosen, {name: reason for name, reason in found.items() if reason}


def reason_against(model: Model, batch: Batch, name: str) -> str:
    """Why a method, with its defaults, does not apply; empty if it does."""
    try:
        method = registry.find("method", name)
        if reason := misfit(method, model.question):
            return reason
        for part in parts_of(method):
            if lost := needs.unmet(needs_of(part), batch):
                return f"it needs {needs.WANTED[lost[0]]}"
            if (premise := premise_of(part)) is not None:
                premise(model, batch)
        with _a_few_passes(model):
            attribute(model, batch, method)
    except _Enough:
        return ""
    except HeatproofError as error:
        return str(error)
    except Exception as error:
        return f"it fails on this network: {type(error).__name__}: {error}"
    return ""


@contextmanager
def _a_few_passes(model: Model) -> Iterator[None]:
    seen = 0

    def count(network: Any, inputs: tuple[Any, ...]) -> None:
        nonlocal seen
        seen += len(inputs[0]) if inputs else 1
        if seen > PASSES:
            raise _Enough

    handle = model.network.register_forward_pre_hook(count)
    try:
        yield
    finally:
        handle.remove()


def _posed(model: Model) -> tuple[Model, Batch]:
    """A picture of noise with a region, aimed at the predicted class; of several labels or values, the first."""
    height, width = model.view.sides if model.view is not None else (SIDE, SIDE)
    # The first convolution of a network's listing need not be the first that pictures meet.
    channels = len(model.mean) if len(model.mean) > 1 else channels_of(model.network)
    noise = torch.rand(1, channels, height, width, generator=torch.Generator().manual_seed(0))
    region = torch.zeros(1, height, width, dtype=torch.bool)
    region[:, height // 4 : height // 2, width // 4 : width // 2] = True
    batch = Batch(noise, torch.zeros(1, dtype=torch.int64), ("noise",), regions=region).to(model.device)
    if is_several(model, batch):
        model = model.of(0)
    with torch.no_grad(), evaluating(model.network):
        target = model(batch.images).argmax(1)
    return model, batch.aimed(target)
