"""Which class pair stands where: the first few pictures must already show all objects and all scenes alike."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from heatproof.data.bam.classes import OBJECTS, SCENES
from heatproof.data.bam.names import Entry


def pair(place: int, objects: int, scenes: int) -> tuple[int, int]:
    """The object and the scene at a place: any stretch shows each object, and each scene, equally often (± 1).

    Both count up together, and the object skips one whenever they would begin anew as the same pair: every pair comes
    once in objects · scenes places.
    """
    return (place + place // math.lcm(objects, scenes)) % objects, place % scenes


def in_turns(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The same pictures, class pairs taking turns, and instances too: pictures that share one are not independent."""
    found: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda one: one.file):
        found[entry.object_label, entry.scene_label].append(entry)
    skips = math.lcm(len(OBJECTS), len(SCENES))
    for turn in range(max(map(len, found.values()), default=0)):
        for place in range(len(OBJECTS) * len(SCENES)):
            own = found.get(pair(place, len(OBJECTS), len(SCENES)), [])
            if turn < len(own):
                yield own[(turn + place // skips) % len(own)]
