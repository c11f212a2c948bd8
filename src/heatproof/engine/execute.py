"""Passes of any number of images, in micro-batches: forwards and input gradients, by the engine in use."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from heatproof import network_state
from heatproof.data._support.made_up import pictures
from heatproof.engine import autotune, backends, checks, choice
from heatproof.engine.autotune import Kind
from heatproof.engine.backends import onnx
from heatproof.engine.backends.eager import Runner, input_gradient, operations_replaced, untouched
from heatproof.engine.choice import REFERENCE, Choice
from heatproof.engine.machine import out_of_memory, place
from heatproof.engine.weight_state import Watch
from heatproof.errors import BadInput, BadShape, Missing
from heatproof.types import Images, Logits, Model, Readout

log = logging.getLogger("heatproof")
T = TypeVar("T")

Backend: TypeAlias = Literal["auto", "eager", "onnx"]
EngineKind: TypeAlias = Literal["auto", "reference"]

EDITION = 5  # of the set of candidates, part of the cache key: choices of earlier editions are not reused
STATES = 2  # states of a model's weights whose runners are kept, since methods change weights briefly and restore them
PICTURES_BYTES = 8 * 2**20  # larger blocks of pictures gain nothing


@dataclass(frozen=True, eq=False)
class Plan:
    """A choice and its runner. With `fill` the last micro-batch is padded with copies of its last row, so that the bits
    of a row do not depend on how many rows come with it.
    """

    question: str
    choice: Choice
    run: Runner
    fill: bool = False

    def portions(self, rows: int) -> Iterator[tuple[int, int]]:
        """The first row and the size of each micro-batch."""
        size = self.choice.size
        for first in range(0, rows, size):
            yield first, size if self.fill else min(size, rows - first)


@dataclass(eq=False)
class Ready:
    """The plans of a model, and the runners made for the recent states of its weights."""

    architecture: str
    vetted: set[tuple[int, ...]] = field(default_factory=set)
    runners: dict[object, dict[tuple[object, ...], Runner]] = field(default_factory=dict)  # by state of the weights
    watch: Watch | None = None  # the network as it was when the plans were made
    state: object = None
    plans: dict[tuple[object, ...], Plan] = field(default_factory=dict)


class Engine:
    """The owner of all that is learnt about running models here: choices, copies and exports.

    `backend` restricts the candidates, `measure=False` runs every network itself in micro-batches of 8, and `always` is
    one fixed choice for all networks; the reference engine's is `REFERENCE`.
    """

    def __init__(self, backend: Backend = "auto", measure: bool = True, always: Choice | None = None) -> None:
        if backend not in get_args(Backend):
            raise BadInput(f"backend must be one of {', '.join(get_args(Backend))}, got {backend!r}")
        if backend == "onnx" and not onnx.installed():
            raise Missing.package("onnxruntime", "onnx", "The ONNX back-end")
        self.backend, self.measure, self.always = backend, measure, always
        self.choices: dict[str, Choice] = {}  # by question
        self.ready: WeakKeyDictionary[Model, Ready] = WeakKeyDictionary()
        self.lock = threading.RLock()

    @property
    def kind(self) -> EngineKind:
        """The kind of engine, part of every key under which its results are stored."""
        return "reference" if self.always == REFERENCE else "auto"

    def record(self) -> dict[str, dict[str, Any]]:
        """Every choice made or adopted, as plain data."""
        return {question: asdict(chosen) for question, chosen in sorted(self.choices.items())}

    def adopt(self, recorded: Mapping[str, Mapping[str, Any] | Choice]) -> None:
        """Takes over recorded choices, which then win over the cache."""
        self.choices |= {q: found if isinstance(found, Choice) else Choice.of(found) for q, found in recorded.items()}
        for ready in self.ready.values():
            ready.plans.clear()

    def plan(self, model: Model, shape: Sequence[int], kind: Kind) -> Plan:
        """The plan for passes of this kind of images of this shape (C, H, W) through this model."""
        with self.lock:
            model = model.whole  # labels of one network share its runners
            ready = self.ready.get(model)
            if ready is None:
                ready = self.ready[model] = Ready(network_state.architecture(model.network))
            if ready.watch is None or not ready.watch.holds():
                ready.plans.clear()
                ready.watch = Watch(model.network)
                ready.state = network_state.token(model.network, every=True)
            itself = ready.watch.hooked() or (kind == "gradient" and operations_replaced())
            key = (tuple(shape), kind, torch.get_num_threads(), itself)
            if key not in ready.plans:
                ready.plans[key] = self._plan(model, ready, tuple(shape), kind, itself)
            return ready.plans[key]

    def halved(self, model: Model, plan: Plan) -> Plan:
        """The plan with half the rows, which holds from now on, after memory ran out."""
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        smaller = replace(plan.choice, size=plan.choice.size // 2)
        log.warning("%s: out of memory, micro-batches of %d from now on", model.name, smaller.size)
        self.adopt({plan.question: smaller})
        return replace(plan, choice=smaller)

    def _plan(self, model: Model, ready: Ready, shape: tuple[int, ...], kind: Kind, itself: bool) -> Plan:
        if shape not in ready.vetted:
            checks.vet(model, shape)
            ready.vetted.add(shape)
        question, made = self._question(ready.architecture, shape, model, kind), None
        if question not in self.choices:
            self.choices[question], made = self._chosen(question, model, shape, kind)
        chosen, run = self.choices[question], untouched(model.network)
        if not itself and chosen.backend != "untouched":
            runners = ready.runners.setdefault(ready.state, {})
            while len(ready.runners) > STATES:
                del ready.runners[next(iter(ready.runners))]
            key = (kind, chosen.backend, chosen.layout, shape, torch.get_num_threads())
            if key not in runners:
                backend, runners[key] = _agreeing(model, shape, kind, chosen, made)
                if backend != chosen.backend:  # recorded, because these weights do not run by the chosen back-end
                    weights = network_state.weights(model.network)
                    self.choices[f"{question} | weights {weights}"] = replace(chosen, backend=backend)
            run = runners[key]
        return Plan(question, chosen, run, fill=self.kind == "reference")

    def _chosen(self, question: str, model: Model, shape: tuple[int, ...], kind: Kind) -> tuple[Choice, Runner | None]:
        """The choice, and a runner if one was made: fixed, from the cache, or measured."""
        if self.always is not None:
            return self.always, None
        if not self.measure or autotune.is_tiny(model, shape):
            backend: choice.Backend = "onnx" if self.backend == "onnx" and kind == "forward" else "untouched"
            return Choice(backend, "contiguous", autotune.DEFAULT_SIZE), None
        known = choice.read(question)
        if known is not None:
            return known, None
        timed = autotune.choose(model, shape, kind, self.backend)
        known = choice.write(question, timed.choice)
        log.info("%s: %s", question, known)
        return known, timed.run if known == timed.choice else None

    def _question(self, architecture: str, shape: tuple[int, ...], model: Model, kind: Kind) -> str:
        """The key of a choice: all that it depends on, readable in a run's record."""
        sides, dtype = "x".join(str(n) for n in shape), str(model.dtype).removeprefix("torch.")
        parts = [f"{kind} {EDITION}", architecture, sides, dtype, place(model.device)]
        parts += [f"{torch.get_num_threads()} threads", f"torch {torch.__version__}"]
        if self.always is not None:
            return " | ".join([*parts, "reference" if self.kind == "reference" else f"always {self.always}"])
        if kind == "forward":
            parts += [f"onnxruntime {onnx.version()}", self.backend]
        return " | ".join(parts if self.measure else [*parts, "unmeasured"])


def _agreeing(
    model: Model, shape: tuple[int, ...], kind: Kind, chosen: Choice, made: Runner | None
) -> tuple[choice.Backend, Runner]:
    """A runner of the chosen back-end, or of the next simpler one that agrees with the network, with a warning."""
    attempts: list[tuple[choice.Backend, bool]] = [(chosen.backend, False)]
    if chosen.backend == "onnx":  # an export in the cache that disagrees is made anew, once
        attempts.append(("onnx", True))
    attempts += [(simpler, False) for simpler in ("folded", "eager") if chosen.backend not in (simpler, "eager")]
    for backend, fresh in attempts:
        way = replace(chosen, backend=backend)
        try:
            with torch.inference_mode(False):  # whatever the caller's mode: copies may take part in autograd
                run = made or backends.runner(model, way, pictures(shape, 2), fresh)
                reason = checks.disagreement(model, run, shape, backend == "onnx", slopes=kind == "gradient")
        except Exception as error:  # copying and exporting run foreign code, which may raise anything
            reason = checks.brief(error)
        if not reason:
            return backend, run
        made = None
        log.warning("%s: %s is not used: %s", model.name, backend, reason)
    return "untouched", untouched(model.network)


_in_context: ContextVar[Engine | None] = ContextVar("engine", default=None)
_in_use = [Engine()]  # the last one serves threads that a run starts, which begin without a context


def current() -> Engine:
    """The engine in use; outside of `use`, the engine of the process."""
    return _in_context.get() or _in_use[-1]


@contextmanager
def use(engine: Engine) -> Iterator[Engine]:
    """A context in which passes run by this engine, also in threads started meanwhile; forks inherit it."""
    before = _in_context.set(engine)
    _in_use.append(engine)
    try:
        yield engine
    finally:
        _in_use.reverse()
        _in_use.remove(engine)
        _in_use.reverse()
        _in_context.reset(before)


def _after_fork() -> None:
    """Renews locks in a child process, where the threads that held them do not exist; runners stay."""
    for engine in {*_in_use, current()}:
        engine.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def settled(model: Model, images: Images, kind: Kind) -> Plan:
    """The plan for such images, to be passed to many calls in a row between which the network does not change: they
    then skip the check for changes.
    """
    if images.ndim != 4 or not images.is_floating_point() or 0 in images.shape[1:]:
        raise BadShape(
            "images must be floating point of shape (batch, channels, height, width), "
            f"got {images.dtype} {tuple(images.shape)}"
        )
    return current().plan(model, images.shape[1:], kind)


def batch_size(model: Model, images: Images, kind: Kind = "forward") -> int:
    """The number of rows that go through the network at once."""
    return settled(model, images, kind).choice.size


def at_once(images: Images, micro: int) -> int:
    """The number of such pictures to prepare at once for passes: whole micro-batches, a few megabytes in all."""
    fit = PICTURES_BYTES // max(1, images[0].numel() * images.element_size()) if len(images) else 1
    return max(1, fit // micro) * micro


def forward(model: Model, images: Images, plan: Plan | None = None) -> Logits:
    """The logits (B, classes) of any number of images in [0, 1], without gradients."""
    plan = plan or settled(model, images, "forward")
    if not len(images):
        return checks.answers(model, plan.run, pictures(images.shape[1:], 1)).to(images.device)[:0].clone()
    return _within_memory(model, plan, lambda plan: _forward(model, images, plan))


def gradient(
    model: Model, images: Images, targets: Tensor, readout: Readout = "logit", plan: Plan | None = None
) -> tuple[Tensor, Tensor]:
    """Input gradients (B, C, H, W) of the readout of each target, and the readouts (B,) themselves.

    Where hooks are set or operations are intercepted, it runs `model.network` itself, so that they take part;
    otherwise a copy may run if that is quicker.
    """
    if targets.shape != (len(images),) or targets.dtype != torch.int64:
        raise BadShape(f"targets must be {len(images)} int64 class indices, got {tuple(targets.shape)} {targets.dtype}")
    plan = plan or settled(model, images, "gradient")
    if not len(images):
        return torch.zeros_like(images), torch.zeros(0, dtype=model.dtype, device=images.device)
    return _within_memory(model, plan, lambda plan: _gradient(model, images, targets, readout, plan))


def _within_memory(model: Model, plan: Plan, passes: Callable[[Plan], T]) -> T:
    """The passes of this plan, with half the rows for as long as memory runs out."""
    while True:
        try:
            return passes(plan)
        except Exception as error:
            if not out_of_memory(error) or plan.choice.size == 1:
                raise
        plan = current().halved(model, plan)  # outside of the except block, whose traceback keeps the memory alive


def micro_batches(plan: Plan, *tensors: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
    """Yields the number of rows of each micro-batch that count (without padding), and the tensors' rows in it.

    Rows may share the tensors' memory, are detached, and may take part in autograd whatever the caller's mode.
    """
    length = len(tensors[0])
    with torch.inference_mode(False):
        whole = [(tensor.clone() if tensor.is_inference() else tensor).detach() for tensor in tensors]
    for first, size in plan.portions(length):
        with torch.inference_mode(False):
            parts = [_taken(tensor, first, size) for tensor in whole]
        yield min(size, length - first), parts


def _forward(model: Model, images: Images, plan: Plan) -> Logits:
    with torch.inference_mode():
        parts = [
            checks.answers(model, plan.run, _taken(images, first, size))[: len(images) - first]
            for first, size in plan.portions(len(images))
        ]
        logits = torch.cat(parts)
        checks.check_finite(model, logits, images)
    return logits.to(images.device).clone()  # a copy made outside of inference mode may take part in autograd


def _gradient(model: Model, images: Images, targets: Tensor, readout: Readout, plan: Plan) -> tuple[Tensor, Tensor]:
    gradients, values = [], []
    for count, (rows, aims) in micro_batches(plan, images, targets):
        aims = aims.to(model.device)

        def value(logits: Logits, aims: Tensor = aims) -> Tensor:
            if not logits.requires_grad:
                raise checks.no_slopes(model)
            checks.check_targets(model, aims, logits.shape[1])
            return model.read(logits, aims, readout)

        slopes, found = input_gradient(model, rows, value, plan.run)
        gradients.append(slopes[:count].to(images.device))
        values.append(found[:count].to(images.device))
    answers = torch.cat(values)
    checks.check_finite(model, answers, images)
    return torch.cat(gradients) if len(gradients) > 1 else gradients[0], answers


def _taken(tensor: Tensor, first: int, size: int) -> Tensor:
    """Exactly `size` rows, beginning at `first`; the last row is repeated where there are fewer."""
    if size == len(tensor):
        return tensor
    rows = tensor[first : first + size]
    missing = size - len(rows)
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows
