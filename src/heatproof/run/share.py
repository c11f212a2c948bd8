"""Shares: one of several runs that do a study together, in directories of their own (job arrays)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatproof.errors import BadInput

if TYPE_CHECKING:
    from heatproof.run.shards import Shard


@dataclass(frozen=True)
class Share:
    """Part `number` of `of`: every `of`-th shard, so that all parts have alike pictures of all settings."""

    number: int
    of: int

    def __post_init__(self) -> None:
        whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (self.number, self.of))
        if not whole or not 1 <= self.number <= self.of:
            raise BadInput(f"a part must be like 3/16, from 1/16 to 16/16, got {self}")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Share:
        """`3/16`"""
        found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
        if found is None:
            raise BadInput(f"a part must be like 3/16, from 1/16 to 16/16, got {text!r}")
        return cls(int(found[1]), int(found[2]))

    def plain(self) -> dict[str, int]:
        """As it is stored in study.json."""
        return {"number": self.number, "of": self.of}

    @classmethod
    def from_plain(cls, stored: Any) -> Share:
        if not isinstance(stored, Mapping) or stored.keys() != {"number", "of"}:
            raise BadInput(f"'part' of a study.json must have a number and of how many, got {stored!r:.80}")
        return cls(**stored)

    @classmethod
    def load(cls, study: Path) -> Share | None:
        """The part that a run stored in its study.json; None if it did all of the study."""
        from heatproof.spec import study_file

        if study.suffix == ".py":
            return None
        study_file.read(study)  # refuses what no run wrote
        stored = json.loads(study.read_bytes()).get("part")
        return None if stored is None else cls.from_plain(stored)

    def among(self, work: Sequence[Shard]) -> list[Shard]:
        """Every `of`-th shard."""
        return list(work[self.number - 1 :: self.of])

    def of_work(self, work: Sequence[Shard]) -> list[Shard]:
        """The shards of this part; `BadInput` if there are none."""
        mine = self.among(work)
        if not mine:
            raise BadInput(
                f"part {self} has nothing to do: the study has {len(work)} shards of pictures; take at most that many "
                "parts, or smaller shards (Study(shard=…))"
            )
        return mine
