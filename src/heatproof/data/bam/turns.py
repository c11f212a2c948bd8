"""The order of class pairs: the first few pictures already show all objects and all scenes equally often."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from heatproof.data.bam.classes import OBJECTS, SCENES
from heatproof.data.bam.names import Entry


def pair(place: int, objects: int, scenes: int) -> tuple[int, int]:
    """The object and the scene at a place: any stretch shows each object, and each scene, equally often (± 1).

    Both count up together, and the object skips one whenever the same pair would come again: every pair comes
    once in objects · scenes places.
    """
    return (place + place // math.lcm(objects, scenes)) % objects, place % scenes


def in_turns(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The same pictures, class pairs taking turns, and instances too: pictures of one instance are not independent."""
    found: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.file):
        found[entry.object_label, entry.scene_label].append(entry)
    skips = math.lcm(len(OBJECTS), len(SCENES))
    for turn in range(max(map(len, found.values()), default=0)):
        for place in range(len(OBJECTS) * len(SCENES)):
            own = found.get(pair(place, len(OBJECTS), len(SCENES)), [])
            if turn < len(own):
                yield own[(turn + place // skips) % len(own)]
