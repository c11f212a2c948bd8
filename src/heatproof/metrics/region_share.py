"""The region's share of the picture; results are split by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from heatproof.errors import BadInput
from heatproof.metrics._support.regions import regions_of
from heatproof.registry import metric
from heatproof.traits import Need
from heatproof.types import Attribution, Batch, Dataset, Keep, Scores

LABEL = "region_share"  # the key in Batch.labels of the share in the original picture


@metric
@dataclass(frozen=True)
class RegionShare:
    """The share of the picture that the region covers, at original resolution where the data set knows it.

    It describes the picture and not the map: the same for every method, not a ranking.
    """

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["pictures"]] = "pictures"
    needs: ClassVar[tuple[Need, ...]] = ("regions",)

    def __call__(self, attribution: Attribution, /) -> Scores:
        return _shares(attribution.batch, regions_of(attribution))


def shares(dataset: Dataset) -> list[float]:
    """The region shares of a whole data set, leaving out pictures that cannot be read."""
    batches = (dataset.batch([i]) for i in range(len(dataset)))  # singly: their sizes may differ
    found = [_shares(batch, batch.regions) for batch in batches if len(batch) and batch.regions is not None]
    if not found:
        raise BadInput(f"data set {dataset.name!r} has no regions to measure: give masks")
    return [float(share) for part in found for share in part]


def _shares(batch: Batch, regions: Keep) -> Scores:
    known = batch.labels.get(LABEL)
    return known if known is not None else regions.float().mean((1, 2))
