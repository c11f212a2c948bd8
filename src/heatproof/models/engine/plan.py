"""How a model's passes are run here: looked up, or found out by a short measurement, and made ready."""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

import torch

from heatproof.models.engine import onnx, vetting
from heatproof.models.engine.choice import REFERENCE, Choice, recall, remember
from heatproof.models.engine.deciding import decide
from heatproof.models.engine.identity import Glance, architecture, pulse, weights
from heatproof.models.engine.low_precision import possible
from heatproof.models.engine.making import checked_runner, same_gradients
from heatproof.models.engine.running import Runner, operations_replaced, untouched
from heatproof.models.engine.setting import Precision, Settings, current
from heatproof.types import Model

Kind: TypeAlias = Literal["forward", "gradient"]
log = logging.getLogger("heatproof")

EDITION = 4  # of what a choice is made among: earlier answers in the cache are to other questions
STATES = 2  # states of a model's weights that are kept ready: methods change them for a moment and back


@dataclass(frozen=True, eq=False)
class Plan:
    """A settled question: the choice, and the thing that runs passes, which may be the network itself."""

    question: str
    choice: Choice
    run: Runner
    itself: bool = False

    def portions(self, rows: int) -> list[int]:
        """The sizes of the micro-batches that take this many rows."""
        return self.choice.portions(rows, self.itself)


@dataclass(eq=False)
class Prepared:
    """What is known of a model, and what was made ready for the recent states of its weights."""

    architecture: str
    vetted: set[tuple[int, ...]] = field(default_factory=set)
    runners: dict[int, dict[tuple[object, ...], Runner | None]] = field(default_factory=dict)
    glance: Glance | None = None  # the network as it was when these were made
    plans: dict[tuple[object, ...], Plan] = field(default_factory=dict)


_prepared: WeakKeyDictionary[Model, Prepared] = WeakKeyDictionary()
_lock = threading.RLock()


def _after_fork() -> None:
    """Nobody who could have held the lock is there in a child process.

    What was made ready stays. Of it a worker uses what was made for one thread, which holds no threads: those would be
    missing.
    """
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def plan(model: Model, shape: Sequence[int], kind: Kind) -> Plan:
    """How passes of this kind of images of this shape (C, H, W) are run through this model."""
    shape = tuple(shape)
    with _lock:
        ready = _prepared.get(model)
        if ready is None:
            ready = _prepared[model] = Prepared(architecture(model.network))
        if operations_replaced():
            return _plan(model, ready, shape, kind)
        if ready.glance is None or not ready.glance.holds():
            ready.plans.clear()
            ready.glance = Glance(model.network)
        key = (shape, kind, torch.get_num_threads(), current())
        known = ready.plans.get(key)
        if known is None or _recalled(known.question, current()) is not known.choice:
            known = _plan(model, ready, shape, kind)
            if ready.glance.holds():  # not with hooks, which are gone by the next time
                ready.plans[key] = known
        return known


def _plan(model: Model, ready: Prepared, shape: tuple[int, ...], kind: Kind) -> Plan:
    device, settings = model.device, possible(current(), model.device)
    if shape not in ready.vetted:
        vetting.vet(model, shape)
        ready.vetted.add(shape)
    question = _question(ready.architecture, shape, model.dtype, device, torch.get_num_threads(), kind, settings)
    choice = _recalled(question, settings)
    if choice is None:
        choice, measured = decide(model, shape, kind, settings)
        choice = remember(question, choice, keep=measured)
        log.info("%s: %s", question, choice)
    run = _runner(model, ready, shape, settings, question, choice, kind)
    return Plan(question, choice, run or untouched(model.network), itself=run is None)


def _recalled(question: str, settings: Settings) -> Choice | None:
    """An earlier answer; the reference engine has one answer to everything, and asks no file."""
    return recall(question, disk=False) or REFERENCE if settings.reference else recall(question)


def halved(model: Model, plan: Plan) -> Plan:
    """The same with half the rows, after memory ran out; for this process only."""
    size = max(1, plan.choice.size // 2)
    least, itself = (least if least <= size else 0 for least in (plan.choice.least, plan.choice.least_itself))
    choice = replace(plan.choice, size=size, least=least, least_itself=itself)
    log.warning("%s: out of memory, micro-batches of %d from now on", model.name, choice.size)
    return replace(plan, choice=remember(plan.question, choice, keep=False))


def _runner(
    model: Model, ready: Prepared, shape: Sequence[int], settings: Settings, question: str, choice: Choice, kind: Kind
) -> Runner | None:
    """The thing that runs, made once per state of the weights; None where hooks must hear the network itself."""
    seen = pulse(model.network) if kind == "forward" or choice.backend != "untouched" else None
    if seen is None or seen.hooked or (kind == "gradient" and operations_replaced()):
        return None
    runners = ready.runners.setdefault(seen.state, {})
    while len(ready.runners) > STATES:
        del ready.runners[next(iter(ready.runners))]
    precision: Precision = settings.precision if kind == "forward" else "full"
    key = (kind, choice.backend, choice.layout, precision, tuple(shape), torch.get_num_threads())
    if key not in runners:
        with torch.inference_mode(False):  # whatever the caller is in; copies may take part in autograd
            backend, run = checked_runner(model, shape, choice, precision)
            if kind == "gradient" and run is not None and not same_gradients(model, shape, run):
                backend, run = "untouched", None
        runners[key] = run
        if backend != choice.backend:  # for the record: these weights are run otherwise than the question says
            told = f"{question} | weights {weights(model.network)}"
            remember(told, replace(choice, backend=backend), keep=False)
    return runners[key]


@functools.lru_cache(256)  # asked before every call, and made of a dozen strings
def _question(
    architecture: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    threads: int,
    kind: Kind,
    settings: Settings,
) -> str:
    """What a choice depends on, readable in a run's record."""
    parts = [
        f"{kind} {EDITION}",
        architecture,
        "x".join(str(n) for n in shape),
        str(dtype).removeprefix("torch."),
        _place(device),
        f"{threads} threads",
        f"torch {torch.__version__}",
    ]
    if settings.reference:
        return " | ".join([*parts, "reference"])
    if kind == "forward":
        parts += [f"onnxruntime {onnx.version()}", settings.backend, settings.precision]
    return " | ".join(parts if settings.measure else [*parts, "unmeasured"])


def foreign(questions: Iterable[str]) -> list[str]:
    """What sets the machine that questions were answered on apart from this one, for each thing that differs.

    A recorded choice answers its question word for word, so of another machine it is not used.
    """
    here = {"place": {_place(torch.device("cpu"))}, "torch": {f"torch {torch.__version__}"}}
    here["place"] |= {_place(torch.device("cuda", number)) for number in range(torch.cuda.device_count())}
    here["onnxruntime"] = {f"onnxruntime {onnx.version()}"}
    there: dict[str, set[str]] = {name: set() for name in here}
    for question in questions:
        parts = question.split(" | ")
        if len(parts) < 7:  # of another edition
            continue
        there["place"].add(parts[4])
        there["torch"] |= {part for part in parts if part.startswith("torch ")}
        there["onnxruntime"] |= {part for part in parts if part.startswith("onnxruntime ")}
    return [
        f"{', '.join(sorted(there[name] - here[name]))} there, {', '.join(sorted(here[name]))} here"
        for name in here
        if there[name] - here[name]
    ]


def _place(device: torch.device) -> str:
    """The machine's part of a question."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "cpu":
        return f"cpu {torch.backends.cpu.get_cpu_capability()} of {os.cpu_count()}"
    return device.type
