"""What localisation metrics share: normalised maps, the region, and remarks on degenerate pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from heatproof.errors import BadInput
from heatproof.metrics._support.normalisation import Choice, normalise, rule_of
from heatproof.metrics._support.pixel_ranking import (
    Sign,
    signed,
)
from heatproof.metrics._support.regions import finite_rows, regions_of, remarks
from heatproof.traits import Need
from heatproof.types import Attribution, Curve, Keep, Maps, Scored, Scores


def heat_of(attribution: Attribution, rule: Choice) -> Maps:
    """The maps normalised as chosen; one that is not finite becomes 0 and gets no score."""
    finite = finite_rows(attribution.maps)[:, None, None]
    return normalise(attribution.maps.where(finite, 0.0), rule_of(attribution.method, rule))


def at_least_two(name: str, count: int) -> None:
    if count < 2:
        raise BadInput(f"{name} must be at least 2, for an area has a width, got {count}")


@dataclass(frozen=True)
class Localisation:
    """The base of localisation metrics."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"
    needs: ClassVar[tuple[Need, ...]] = ("regions",)

    def scored(self, attribution: Attribution, judged: Maps, values: Scores, curve: Curve | None = None) -> Scored:
        """Scores of the maps as judged, with a note where degenerate; none where a map is not finite."""
        finite = finite_rows(attribution.maps)
        notes = remarks(judged.where(finite[:, None, None], torch.nan), regions_of(attribution))
        return Scored(values.masked_fill(~finite.cpu(), torch.nan), notes, curve)


@dataclass(frozen=True)
class ByOrder(Localisation):
    """The base of metrics of the pixel order. `sign` sets what is hot: evidence for the target, or any evidence."""

    sign: Sign = "signed"

    def judge(self, attribution: Attribution, score: Callable[[Maps, Keep], Scores]) -> Scored:
        regions, maps = regions_of(attribution), signed(attribution.maps, self.sign)
        return self.scored(attribution, maps, score(maps, regions))
