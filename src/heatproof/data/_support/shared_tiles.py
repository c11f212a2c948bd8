"""Which mosaics share source photos: mosaics linked by any are one sampled group."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from heatproof.data._support.picture_groups import Grouping, groups_of
from heatproof.types import Dataset

NAME = "source photo"


def sources_of(pictures: Dataset) -> dict[str, list[Hashable]]:
    """What each picture is a view of: itself, and the sampled groups it falls into (a patient, a burst)."""
    found: dict[str, list[Hashable]] = {picture: [picture] for picture in pictures.ids()}
    for name, one in groups_of(pictures).items():
        if one.kind == "sampled":
            for picture, label in zip(pictures.ids(), one.labels, strict=True):
                found[picture] += [] if label is None else [(name, label)]
    return found


def linked(mosaics: Sequence[Sequence[Hashable]]) -> tuple[int, ...]:
    """The group of each mosaic, by its first one: mosaics that have a source in common are in one group."""
    parent = list(range(len(mosaics)))

    def root(at: int) -> int:
        while parent[at] != at:
            at = parent[at] = parent[parent[at]]
        return at

    first: dict[Hashable, int] = {}
    for at, sources in enumerate(mosaics):
        for source in sources:
            low, high = sorted((root(first.setdefault(source, at)), root(at)))
            parent[high] = low
    return tuple(map(root, range(len(mosaics))))


def by_sources(tiles: Sequence[Sequence[str]], sources: Mapping[str, Sequence[Hashable]]) -> dict[str, Grouping]:
    """The sampled groups of mosaics with these tiles; none where no two share a source."""
    groups = linked([[source for tile in one for source in sources.get(tile, [tile])] for one in tiles])
    if len(set(groups)) == len(groups):
        return {}
    return {NAME: Grouping("sampled", tuple(map(str, groups)))}
