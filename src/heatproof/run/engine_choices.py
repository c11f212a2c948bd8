"""The engine of a run: which kind, and what it begins with."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, get_args

from heatproof.errors import BadInput
from heatproof.models import engine
from heatproof.models.engine import EngineKind
from heatproof.run.store import Store
from heatproof.storage.cache import empty_cache


@contextmanager
def engine_of(kind: EngineKind, choices: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Passes by this engine for a while. The reference engine has no choices, and a cache that is empty."""
    if kind not in get_args(EngineKind):
        raise BadInput(f"engine must be one of {', '.join(get_args(EngineKind))}, got {kind!r}")
    with ExitStack() as stack:
        stack.enter_context(engine.settings(reference=kind == "reference"))
        if kind == "reference":
            stack.enter_context(empty_cache())
        else:
            begin_with(choices, "the stored run")
        yield


def begin_with(recorded: Any, where: str) -> None:
    """Use recorded choices; name those that make no sense or are another machine's: they are made anew."""
    found, wrong = engine.readable(recorded)
    if wrong:
        warnings.warn(
            f"{len(wrong)} of the engine choices of {where} make no sense and are measured again: {wrong[0]}",
            stacklevel=2,
        )
    apart = engine.foreign(found)
    if apart:
        warnings.warn(
            f"{where} was computed otherwise than is possible here ({'; '.join(apart)}): what was chosen for that is "
            "chosen anew, and numbers may differ by float noise; --engine reference does without such choices",
            stacklevel=2,
        )
    engine.use({question: dataclasses.asdict(choice) for question, choice in found.items()})


def resume_choices(store: Store) -> None:
    """A resumed run computes with the choices it began with: another micro-batch could move the last bit."""
    if engine.kind() == "auto":
        begin_with(store.get_json("engine.json"), f"{store.root}/engine.json")


def remember_choices(store: Store) -> None:
    """Write down the choices made so far, beside those of other workers."""
    made = engine.choices()
    if engine.kind() == "reference" or made.items() <= _written_choices(store).items():
        return
    with store.alone("engine"):
        store.put_json("engine.json", {**_written_choices(store), **made})


def _written_choices(store: Store) -> dict[str, Any]:
    known = store.get_json("engine.json")
    return known if isinstance(known, dict) else {}
