"""The rule by which a run stops: when every pair of methods is decided."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from heatproof.errors import BadInput
from heatproof.run.share import Share
from heatproof.spec import recipe
from heatproof.storage.any_path import folder
from heatproof.traits import fast_of

if TYPE_CHECKING:
    from heatproof.spec.study import Study

NAME = "solid"
Steps: TypeAlias = Literal["fast", "full"]
SHARD = 20  # pictures of a look, at least: those of `stats.looks`, which `--help` need not wait for


@dataclass(frozen=True)
class Solid:
    """Pictures are added until every pair of methods is better, worse, or equivalent within the margin.

    `margin` is in the units of the score. `max_images` bounds the pictures of each data set (all, if left out). In a
    `race` methods that are beaten are dropped, and the run ends when the first place is decided. `metric` names the
    only metric whose pairs are followed; otherwise all metrics that compare methods are. The chance of any wrong
    decision of the run is at most `alpha`, over all pairs, metrics, models and data sets. `steps="fast"` takes metrics
    that draw curves on fewer points, where no grid was chosen.
    """

    margin: float = 0.05
    max_images: int | None = None
    race: bool = False
    metric: str | None = None
    alpha: float = 0.05
    steps: Steps = "fast"

    def __post_init__(self) -> None:
        if not _number(self.margin) or not 0 <= self.margin < math.inf:
            raise BadInput(f"margin must be a number from 0 on, in the units of the score, got {self.margin!r}")
        if not _number(self.alpha) or not 0 < self.alpha < 1:
            raise BadInput(f"alpha must lie between 0 and 1, got {self.alpha!r}")
        most = self.max_images
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < SHARD):
            raise BadInput(f"max_images must be at least {SHARD} pictures, one look, got {most!r}")
        if not isinstance(self.race, bool):
            raise BadInput(f"race must be true or false, got {self.race!r}")
        if self.steps not in get_args(Steps):
            raise BadInput(f"steps must be 'fast' or 'full', got {self.steps!r}")
        if self.metric is not None and not isinstance(self.metric, str):
            raise BadInput(f"metric must be the name of a metric, got {self.metric!r}")

    def plain(self) -> dict[str, Any]:
        """As it is stored in study.json."""
        return {"rule": NAME, **dataclasses.asdict(self)}

    @classmethod
    def from_plain(cls, stored: Any) -> Solid:
        if not isinstance(stored, Mapping) or stored.get("rule") != NAME:
            raise BadInput(f"'until' of a study.json must be the rule {NAME!r} as a run writes it, got {stored!r:.80}")
        fields = {"steps": "full"} | {name: value for name, value in stored.items() if name != "rule"}
        try:
            return cls(**fields)
        except TypeError:
            raise BadInput(
                f"'until' of a study.json has fields of another version: {', '.join(map(str, fields))}"
            ) from None

    @classmethod
    def load(cls, path: str | Path) -> Solid | None:
        """The rule that a run stored in its study.json; None if it judged a fixed number of pictures."""
        from heatproof.spec import study_file

        path = folder(path)
        if path.suffix == ".py":
            return None
        study_file.read(path)  # refuses what no run wrote
        stored = json.loads(path.read_bytes()).get("until")
        return None if stored is None else cls.from_plain(stored)


def prepared(studies: Sequence[Study], rule: Solid) -> list[Study]:
    """The studies as the rule needs them: pictures in a seeded random order, in shards of at least one unit.

    Every unit then has the same expectation. All studies have shards of one size, so that their pictures go together.
    Metrics are fast ones if the rule says so.
    """
    shard = max(SHARD, *(one.shard for one in studies))
    return [
        dataclasses.replace(
            _on_fewer_points(one) if rule.steps == "fast" else one,
            shard=shard,
            sample="random",
            limit=_least(one.limit, rule.max_images),
        )
        for one in studies
    ]


def _on_fewer_points(study: Study) -> Study:
    """The study with fast metrics, under their new labels also in the notes of its protocol."""
    fast = [fast_of(metric) for metric in study.metrics]
    names = {recipe.label(was): recipe.label(now) for was, now in zip(study.metrics, fast, strict=True)}
    return dataclasses.replace(study, metrics=fast, notes=_renamed(study.notes, names))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Plain data in which texts that are labels, also as keys, are the new labels."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {names.get(name, name): _renamed(item, names) for name, item in value.items()}
    return [_renamed(item, names) for item in value] if isinstance(value, list | tuple) else value


def dump(studies: Sequence[Study], extent: Solid | Share | None) -> dict[str, Any]:
    """What study.json holds: the studies, and the rule by which the run stops or the part that it does, if any."""
    from heatproof.spec import study

    kind = "until" if isinstance(extent, Solid) else "part"
    return {**study.dump(studies), **({} if extent is None else {kind: extent.plain()})}


def _least(limit: int | None, most: int | None) -> int | None:
    given = [value for value in (limit, most) if value is not None]
    return min(given) if given else None


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
