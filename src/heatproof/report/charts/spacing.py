"""Labels beside a chart, moved apart just enough not to overlap."""

from __future__ import annotations

from collections.abc import Sequence

GAP = 13.5  # the least distance between two lines of words


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart, in the order of `wanted`, as near to it as that allows (least squares).

    Neighbours that collide are merged into blocks centred on their mean wanted position; the whole is then moved inside
    [low, high] where it fits. The input order decides among equal positions.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[tuple[float, list[int]]] = []  # (centre, members in order)
    for index in order:
        blocks.append((wanted[index], [index]))
        while len(blocks) > 1:
            (upper, above), (lower, below) = blocks[-2], blocks[-1]
            if lower - upper >= gap * (len(above) + len(below)) / 2 - 1e-9:
                break
            members = above + below
            # The centre that suits a member: its wanted position less its offset inside the block.
            offsets = [(place - (len(members) - 1) / 2) * gap for place in range(len(members))]
            centre = sum(wanted[member] - offset for member, offset in zip(members, offsets, strict=True))
            blocks[-2:] = [(centre / len(members), members)]
    places = [0.0] * len(wanted)
    for centre, members in blocks:
        for place, member in enumerate(members):
            places[member] = centre + (place - (len(members) - 1) / 2) * gap
    return _inside(places, order, gap, low, high)


def _inside(places: list[float], order: list[int], gap: float, low: float, high: float) -> list[float]:
    floor = low
    for index in order:
        places[index] = max(places[index], floor)
        floor = places[index] + gap
    ceiling = high
    for index in reversed(order):
        places[index] = min(places[index], ceiling)
        ceiling = places[index] - gap
    return places
