"""What a person may ask of the engine. Everything else it finds out by measuring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from heatproof.errors import BadInput

Backend: TypeAlias = Literal["auto", "eager", "onnx", "compile"]
Precision: TypeAlias = Literal["full", "bfloat16"]
EngineKind: TypeAlias = Literal["auto", "reference"]


@dataclass(frozen=True)
class Settings:
    """How forward passes are run; gradients are always eager and in full precision."""

    backend: Backend = "auto"  # auto: the fastest by measurement among eager and ONNX Runtime
    precision: Precision = "full"
    measure: bool = True  # False: micro-batches of 8, eager, no measurement
    reference: bool = False  # True: the network itself in micro-batches of `REFERENCE.size`, whatever else is set

    def __post_init__(self) -> None:
        for name, kind in (("backend", Backend), ("precision", Precision)):
            if getattr(self, name) not in get_args(kind):
                raise BadInput(f"{name} must be one of {', '.join(get_args(kind))}, got {getattr(self, name)!r}")


_current = Settings()  # of the process, not of a thread: worker threads must run passes as their run does


def current() -> Settings:
    return _current


def kind() -> EngineKind:
    """Which engine runs passes now; part of the name of whatever is kept of their results."""
    return "reference" if _current.reference else "auto"


def configure(settings: Settings) -> None:
    """Use these settings from now on in this process."""
    global _current
    _current = settings


@contextmanager
def settings(**changes: Any) -> Iterator[Settings]:
    """Other settings for a while: `with settings(backend="eager"): …`."""
    before = current()
    configure(replace(before, **changes))
    try:
        yield current()
    finally:
        configure(before)
