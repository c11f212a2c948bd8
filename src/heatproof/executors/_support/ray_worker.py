"""A worker on a Ray cluster: an actor that keeps what it has unpacked, and one thread or GPU to itself."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any

import ray

from heatproof import engine
from heatproof._version import __version__
from heatproof.engine import Engine, EngineKind
from heatproof.errors import BadInput, Missing
from heatproof.executors._support.parcels import Unpacker
from heatproof.executors._support.portable import portable
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.storage.cache import empty_cache


class RayWorker:
    """Does parts, one at a time. Everything it yields is a kind of message and its content."""

    def __init__(self, device: str, threads: int, kind: EngineKind, version: str) -> None:
        engine.be_worker(threads)
        self._device = engine.pick(device)
        self._version = version
        self._unpacker = Unpacker(self._device)
        self._open = ExitStack()  # until the process ends
        self._open.enter_context(engine.kept_memory())
        self._open.enter_context(engine.use(Engine(always=engine.REFERENCE if kind == "reference" else None)))
        if kind == "reference":
            self._open.enter_context(empty_cache())
        with suppress(Missing):  # repaired, before a network that needs it is unpacked; else no network here needs it
            import_torchvision("a network")

    def greeting(self) -> str:
        """The kind of machine this is."""
        return engine.place(self._device)

    def work(
        self, packed: bytes, parcels: Mapping[str, Any], choices: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, Any]]:
        """What the work finds in its part."""
        heard: list[Warning | str] = []
        warnings.showwarning = lambda message, *_, **__: heard.append(message)
        try:
            if self._version != __version__:
                raise BadInput(
                    f"heatproof {__version__} is installed on {ray.util.get_node_ip_address()}, and {self._version} "
                    "where the run was started: install the same version everywhere"
                )
            self._adopt(choices)
            work, part = self._unpacker.unpack(packed, lambda key: bytes(ray.get(parcels[key])))
            for found in work(part):
                yield from _warned(heard)
                yield "found", found
            yield from _warned(heard)
        except Exception as error:
            yield from _warned(heard)
            yield "failed", (portable(error, RuntimeError), traceback.format_exc())

    def _adopt(self, choices: Mapping[str, Mapping[str, Any]]) -> None:
        known = engine.current().record()
        if new := {question: made for question, made in choices.items() if known.get(question) != made}:
            engine.current().adopt(new)


def _warned(heard: list[Warning | str]) -> Iterator[tuple[str, Any]]:
    while heard:
        yield "warned", portable(heard.pop(0), UserWarning)
