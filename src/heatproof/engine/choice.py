"""The choice of how a network is run on this machine: made once, kept in the cache between processes.

Choices differ by float noise in their results. Among processes that start together the first to write wins, and the
others take its choice.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from heatproof.errors import BadInput
from heatproof.storage import cache

log = logging.getLogger("heatproof")

Layout: TypeAlias = Literal["channels_last", "contiguous"]
Backend: TypeAlias = Literal["untouched", "eager", "folded", "onnx"]
MOST = 4096  # rows of a micro-batch: no measurement chooses more, and a forged entry could exhaust the memory


@dataclass(frozen=True)
class Choice:
    """A back-end, a memory layout and a micro-batch size."""

    backend: Backend
    layout: Layout
    size: int

    def __post_init__(self) -> None:
        known = self.backend in get_args(Backend) and self.layout in get_args(Layout)
        if not known or type(self.size) is not int or not 1 <= self.size <= MOST:
            raise BadInput(
                f"a choice must name one of {', '.join(get_args(Backend))}, one of {', '.join(get_args(Layout))} "
                f"and a size from 1 to {MOST}, got {asdict(self)}"
            )

    @classmethod
    def of(cls, fields: Any) -> Choice:
        """A choice from plain data, or `BadInput`: the data may come from a file that anyone can edit."""
        try:
            return cls(**fields)
        except TypeError as error:
            raise BadInput(f"{fields!r:.200} is no recorded choice: pass what Engine.record() gave") from error


REFERENCE = Choice("untouched", "contiguous", 8)  # of the reference engine: never measured, the same everywhere


def read(question: str) -> Choice | None:
    """The cached choice under this key (`question`), if there is a valid one."""
    content = cache.kept(path_of(question))
    try:
        return None if content is None else Choice.of(json.loads(content)["choice"])
    except (ValueError, TypeError, KeyError, RecursionError):  # BadInput is a ValueError
        log.warning("%s: no choice, it is measured again", path_of(question))
        return None


def write(question: str, choice: Choice) -> Choice:
    """Writes a choice to the cache unless another process was first; returns the choice that is valid."""
    content = json.dumps({"question": question, "choice": asdict(choice)}).encode()
    cache.keep(path_of(question), content, first=read(question) is not None or not path_of(question).exists())
    return read(question) or choice


def path_of(question: str) -> Path:
    return cache.cache_directory() / "engine" / f"{hashlib.sha256(question.encode()).hexdigest()[:24]}.choice"
