"""The engine of a run: which kind, and what it begins with."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, get_args

import torch

from heatproof import engine
from heatproof.engine import Choice, Engine, EngineKind
from heatproof.engine.backends import onnx
from heatproof.engine.execute import EDITION
from heatproof.engine.machine import place
from heatproof.errors import BadInput
from heatproof.run.shards import Shard
from heatproof.run.store import Store
from heatproof.spec import recipe
from heatproof.storage.cache import empty_cache
from heatproof.traits import cost_of


@contextmanager
def engine_of(kind: EngineKind, choices: Mapping[str, Any] | None = None) -> Iterator[Engine]:
    """Passes by an engine of this kind for a while. The reference engine has no choices, and a cache that is empty."""
    if kind not in get_args(EngineKind):
        raise BadInput(f"engine must be one of {', '.join(get_args(EngineKind))}, got {kind!r}")
    with ExitStack() as stack:
        if kind == "reference":
            stack.enter_context(empty_cache())
            yield stack.enter_context(engine.use(Engine(always=engine.REFERENCE)))
        else:
            owned = stack.enter_context(engine.use(Engine()))
            begin_with(choices, "the stored run")
            yield owned


def begin_with(recorded: Any, where: str) -> None:
    """Use recorded choices; name those that make no sense or are another machine's: they are made anew."""
    found, wrong = readable(recorded)
    if wrong:
        warnings.warn(
            f"{len(wrong)} of the engine choices of {where} make no sense and are measured again: {wrong[0]}",
            stacklevel=2,
        )
    apart = foreign(found)
    if apart:
        warnings.warn(
            f"{where} was computed otherwise than is possible here ({'; '.join(apart)}): what was chosen for that is "
            "chosen anew, and numbers may differ by float noise; --engine reference does without such choices",
            stacklevel=2,
        )
    engine.current().adopt(found)


def readable(recorded: Any) -> tuple[dict[str, Choice], list[str]]:
    """The choices in a record, without those of other editions, and the questions whose answers make no sense."""
    if not isinstance(recorded, Mapping):
        return {}, ["all of it"] if recorded is not None else []
    found: dict[str, Choice] = {}
    wrong = []
    for question, fields in recorded.items():
        if _edition(question) not in (None, EDITION):
            continue
        try:
            found[question] = Choice.of(fields)
        except BadInput:
            wrong.append(question)
    return found, wrong


def _edition(question: str) -> int | None:
    words = question.split(" | ")[0].split()
    return int(words[1]) if len(words) == 2 and words[1].isdigit() else None


def foreign(questions: Iterable[str]) -> list[str]:
    """What sets the machine that questions were answered on apart from this one, for each thing that differs.

    A recorded choice answers its question word for word, so of another machine it is not used.
    """
    here = {"place": {place(torch.device("cpu"))}, "torch": {f"torch {torch.__version__}"}}
    here["place"] |= {place(torch.device("cuda", number)) for number in range(torch.cuda.device_count())}
    here["onnxruntime"] = {f"onnxruntime {onnx.version()}"}
    there: dict[str, set[str]] = {name: set() for name in here}
    for parts in (question.split(" | ") for question in questions):
        if len(parts) >= 7:
            there["place"].add(parts[4])
            there["torch"] |= {part for part in parts if part.startswith("torch ")}
            there["onnxruntime"] |= {part for part in parts if part.startswith("onnxruntime ")}
    return [
        f"{', '.join(sorted(there[name] - here[name]))} there, {', '.join(sorted(here[name]))} here"
        for name in here
        if there[name] - here[name]
    ]


def resume_choices(store: Store) -> None:
    """A resumed run computes with the choices it began with: another micro-batch could move the last bit."""
    if engine.current().kind == "auto":
        begin_with(store.get_json("engine.json"), f"{store.root}/engine.json")


def remember_choices(store: Store) -> None:
    """Store the choices made so far, beside those of earlier runs."""
    made = engine.current().record()
    known = store.get_json("engine.json") or {}
    if engine.current().kind == "auto" and not made.items() <= known.items():
        store.put_json("engine.json", {**known, **made})


def take_over(made: Mapping[str, Any], store: Store) -> None:
    """Use, and store, choices that were made during the work, perhaps by another process."""
    own = engine.current()
    if not made.items() <= own.record().items():
        own.adopt(made)
    remember_choices(store)


def settle(work: Sequence[Shard], count: int) -> None:
    """Choose how the pictures are run through the networks, on the threads that will run them: here and once, as
    processes that each began without choices could choose differently.
    """
    for shard in {(shard.model, recipe.label(shard.dataset)): shard for shard in reversed(work)}.values():
        costs = [cost_of(method) for method in shard.study.methods]
        with suppress(Exception):  # it comes again where it can be put down to a picture or a method
            batch = shard.dataset.batch(shard.indices[:1]).to(shard.model.device)
            if len(batch):
                engine.settled(shard.model, batch.images, "forward")
                if any(cost.backward if cost else count > 1 for cost in costs):
                    engine.settled(shard.model, batch.images, "gradient")
