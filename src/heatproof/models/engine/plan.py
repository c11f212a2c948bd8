"""How a model's passes are run here: looked up, or found out by a short measurement, and made ready."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

import torch

from heatproof.models.engine import onnx, vetting
from heatproof.models.engine.choice import Choice, recall, remember
from heatproof.models.engine.deciding import decide
from heatproof.models.engine.identity import architecture, pulse, weights
from heatproof.models.engine.low_precision import possible
from heatproof.models.engine.making import checked_runner
from heatproof.models.engine.running import Runner, untouched
from heatproof.models.engine.setting import Settings, current
from heatproof.types import Model

Kind: TypeAlias = Literal["forward", "gradient"]
log = logging.getLogger("heatproof")

STATES = 2  # states of a model's weights that are kept ready: methods change them for a moment and back


@dataclass(frozen=True, eq=False)
class Plan:
    """A settled question: the choice, and the thing that runs forward passes."""

    question: str
    choice: Choice
    run: Runner


@dataclass(eq=False)
class Prepared:
    """What is known of a model, and what was made ready for the recent states of its weights."""

    architecture: str
    vetted: set[tuple[int, ...]] = field(default_factory=set)
    runners: dict[int, dict[tuple[object, ...], Runner]] = field(default_factory=dict)


_prepared: WeakKeyDictionary[Model, Prepared] = WeakKeyDictionary()
_lock = threading.RLock()


def plan(model: Model, shape: Sequence[int], kind: Kind) -> Plan:
    """How passes of this kind of images of this shape (C, H, W) are run through this model."""
    settings = possible(current(), model.device)
    with _lock:
        ready = _prepared.get(model)
        if ready is None:
            ready = _prepared[model] = Prepared(architecture(model.network))
        if tuple(shape) not in ready.vetted:
            vetting.vet(model, shape)
            ready.vetted.add(tuple(shape))
        question = _question(model, ready, shape, kind, settings)
        choice = recall(question)
        if choice is None:
            choice, measured = decide(model, shape, kind, settings)
            choice = remember(question, choice, keep=measured)
            log.info("%s: %s", question, choice)
        run = untouched(model.network)
        if kind == "forward":
            run = _forward_runner(model, ready, shape, settings, question, choice) or run
        return Plan(question, choice, run)


def halved(model: Model, plan: Plan) -> Plan:
    """The same with half the rows, after memory ran out; for this process only."""
    choice = replace(plan.choice, size=max(1, plan.choice.size // 2))
    log.warning("%s: out of memory, micro-batches of %d from now on", model.name, choice.size)
    return replace(plan, choice=remember(plan.question, choice, keep=False))


def _forward_runner(
    model: Model, ready: Prepared, shape: Sequence[int], settings: Settings, question: str, choice: Choice
) -> Runner | None:
    """The thing that runs, made once per state of the weights; None where hooks must hear the network."""
    seen = pulse(model.network)
    if seen.hooked:
        return None
    runners = ready.runners.setdefault(seen.state, {})
    while len(ready.runners) > STATES:
        del ready.runners[next(iter(ready.runners))]
    key = (choice.backend, choice.layout, settings.precision, tuple(shape), torch.get_num_threads())
    if key not in runners:
        backend, runners[key] = checked_runner(model, shape, choice, settings.precision)
        if backend != choice.backend:  # for the record: these weights are run otherwise than the question says
            told = f"{question} | weights {weights(model.network)}"
            remember(told, replace(choice, backend=backend), keep=False)
    return runners[key]


def _question(model: Model, ready: Prepared, shape: Sequence[int], kind: Kind, settings: Settings) -> str:
    """What a choice depends on, readable in a run's record."""
    device = model.device
    place = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    if device.type == "cpu":
        place = f"cpu {torch.backends.cpu.get_cpu_capability()} of {os.cpu_count()}"
    parts = [
        kind,
        ready.architecture,
        "x".join(str(n) for n in shape),
        str(model.dtype).removeprefix("torch."),
        place,
        f"{torch.get_num_threads()} threads",
        f"torch {torch.__version__}",
    ]
    if kind == "forward":
        parts += [f"onnxruntime {onnx.version()}", settings.backend, settings.precision]
    return " | ".join(parts if settings.measure else [*parts, "unmeasured"])
