"""Findings: what the work on a shard hands back, plain values that travel between machines.

Work runs anywhere and writes nothing; the process that called it, the driver, alone puts findings in the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from heatproof.results.gallery import GalleryFolder
from heatproof.run.census import ShardRecord
from heatproof.run.columns import Unit
from heatproof.run.store import Store

Arrays: TypeAlias = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Rows:
    """The rows of a unit of work."""

    method: str
    metric: str
    key: str
    unit: Unit

    @property
    def label(self) -> str:
        return f"{self.method} · {self.metric}"

    def put(self, store: Store) -> None:
        store.put(self.key, self.unit)


@dataclass(frozen=True)
class Counted:
    """What the pictures of a shard are to its model."""

    record: ShardRecord

    def put(self, store: Store) -> None:
        store.put_record(self.record)


@dataclass(frozen=True)
class Pictures:
    """The first pictures of a data set, for the gallery."""

    folder: str
    about: GalleryFolder
    arrays: Arrays

    def put(self, store: Store) -> None:
        store.put_arrays(f"{self.folder}/pictures.npz", self.arrays)
        store.put_json(f"{self.folder}/about.json", asdict(self.about))


@dataclass(frozen=True)
class Maps:
    """A method's maps of these pictures."""

    file: str
    arrays: Arrays

    def put(self, store: Store) -> None:
        store.put_arrays(self.file, self.arrays)


@dataclass(frozen=True)
class Choices:
    """Engine choices that were made, or made anew, during the work."""

    made: Mapping[str, Mapping[str, Any]]  # by question


Finding: TypeAlias = Rows | Counted | Pictures | Maps | Choices
