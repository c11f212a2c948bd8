"""The cards of the metrics of this package as measured for docs/judges.md, a line each: for verdicts elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from heatproof.storage.sealed_json import typed

VERDICTS = {
    "holds": "holds",
    "caution": "to be read with caution",
    "flagged": "flagged",
    "description": "a description, which ranks nothing",
}


@dataclass(frozen=True)
class CardLine:
    """A judge's card in a line."""

    metric: str  # label
    model: str
    dataset: str
    pictures: int
    verdict: str
    rules: tuple[str, ...]
    agreement: float | None
    blind: str
    blind_skill: float | None
    detects: float | None

    @property
    def sentence(self) -> str:
        """The card in words."""
        why = f" ({', '.join(self.rules)})" if self.rules else ""
        parts = [f"{VERDICTS[self.verdict]}{why}"]
        if self.verdict != "description" and self.agreement is not None:
            parts.append(f"agreement with the known truth {self.agreement:.2f}")
        if self.verdict != "description" and self.blind and self.blind_skill is not None:
            parts.append(
                f"the best map without a model ({self.blind}) reaches {self.blind_skill:.2f} where the truth is 1"
            )
        return f"On {self.pictures} pictures of {self.dataset}: {'; '.join(parts)}."


@cache
def measured() -> Mapping[str, tuple[CardLine, ...]]:
    """The lines by the label of the metric, one for each data set."""
    file = files("heatproof.stats.judges") / "measured.json"
    found: dict[str, tuple[CardLine, ...]] = {}
    for line in typed(tuple[CardLine, ...], json.loads(file.read_text(encoding="utf-8")), "measured.json"):
        found[line.metric] = (*found.get(line.metric, ()), line)
    return found
