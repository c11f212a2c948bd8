"""The pictures of a limited study: a seeded sample, as balanced over classes as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heatproof.data._support.picture_groups import groups_of
from heatproof.traits import dataset_traits
from heatproof.types import keyed_seed


def sample(dataset: Any, limit: int | None, seed: int) -> tuple[int, ...]:
    """The indices of `limit` pictures, or of all in their order if there are no more.

    Classes take turns, each with its pictures in an order drawn from the seed and the pictures' ids: the order of
    files on disk does not matter, and a smaller sample is the beginning of a larger one. A data set without labels is
    sampled as a whole. One whose classes take turns already (`takes_turns`: the embedded and composed ones) is cut
    after its first pictures.
    """
    count = len(dataset)
    if limit is None or limit >= count:
        return tuple(range(count))
    traits = dataset_traits(dataset)
    if traits.takes_turns:
        return tuple(range(limit))
    labels = (0,) * count if traits.class_labels is None else traits.class_labels()
    return balanced(dataset.ids(), labels, seed)[:limit]


def balanced(ids: Sequence[str], labels: Sequence[int], seed: int) -> tuple[int, ...]:
    """All indices, the classes taking turns; the order within a class is drawn from the seed."""
    drawn = sorted(range(len(ids)), key=lambda place: (keyed_seed(seed, ids[place], "sample"), ids[place]))
    turns: dict[int, int] = {}  # pictures so far, by class
    first: dict[int, int] = {}  # first occurrence of each class: its place in every turn
    order: list[tuple[int, int, int]] = []
    for rank, place in enumerate(drawn):
        label = labels[place]
        turns[label] = turns.get(label, -1) + 1
        order.append((turns[label], first.setdefault(label, rank), place))
    return tuple(place for _, _, place in sorted(order))


def shuffled(dataset: Any, limit: int | None, seed: int) -> tuple[int, ...]:
    """The first `limit` places of all pictures in a random order drawn from the seed and the pictures' ids.

    Pictures of one sampled group (the outermost, where groups are nested) stand together, the groups in a random order:
    a group that has been left behind does not come back. A smaller sample is the beginning of a larger one.
    """
    ids = dataset.ids()
    kinds = [one.labels for one in groups_of(dataset).values() if one.kind == "sampled"]
    labels = min(kinds, key=lambda found: len(set(found)) + found.count(None), default=(None,) * len(ids))
    drawn = sorted(range(len(ids)), key=lambda place: (keyed_seed(seed, ids[place], "sample"), ids[place]))
    groups: dict[object, list[int]] = {}
    for place in drawn:
        groups.setdefault(place if labels[place] is None else (labels[place],), []).append(place)
    return tuple(place for places in groups.values() for place in places)[:limit]
