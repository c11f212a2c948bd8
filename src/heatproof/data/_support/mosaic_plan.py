"""The plan of mosaics: which picture stands where, drawn once from a seed, then plain data that can be stored."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from heatproof.errors import BadInput
from heatproof.registry import part
from heatproof.types import Dataset, keyed_seed

GRIDS = (2, 3, 4)  # a 5×5 grid has five million layouts, too many to deal evenly


@part
class Laid(NamedTuple):
    """One mosaic: the target class, and the pictures with their classes, row by row."""

    target: int
    pictures: tuple[str, ...]
    labels: tuple[int, ...]


def layouts(grid: int) -> list[tuple[int, ...]]:
    """Every way to place the target pictures: half of the tiles, rounded down. Six for 2×2."""
    if grid not in GRIDS:
        raise BadInput(f"grid must be one of {', '.join(map(str, GRIDS))}, got {grid}")
    return list(combinations(range(grid**2), grid**2 // 2))


def most_per_class(pools: Mapping[int, Sequence[str]], grid: int = 2) -> int:
    """The largest number of mosaics per class without using a picture twice in the same role."""
    distractors = grid**2 - grid**2 // 2
    return min((len(pictures) for pictures in pools.values()), default=0) // distractors


def pools_of(labels: Mapping[str, int], classes: Sequence[int]) -> dict[int, list[str]]:
    """The ids of each class; all classes, or those given."""
    there = sorted({label for label in labels.values() if label >= 0})
    absent = [str(name) for name in classes if name not in there]
    if absent:
        raise BadInput(f"classes must be those of the pictures, got {', '.join(absent)} which none shows")
    chosen = list(classes) or there
    if len(set(chosen)) < 2 or len(set(chosen)) < len(chosen):
        raise BadInput(f"mosaics need at least 2 different classes, got {chosen}: label the pictures")
    return {name: [picture for picture, label in labels.items() if label == name] for name in chosen}


def draw(
    pools: Mapping[int, Sequence[str]], per_class: int, grid: int = 2, seed: int = 0, apart: bool = False
) -> tuple[Laid, ...]:
    """A plan: every class is the target `per_class` times, the classes taking turns.

    All layouts occur equally often (up to one). No picture is a target twice, and none a distractor twice, in
    the whole plan; distractors are shared out evenly among the other classes. With `apart` no picture stands in two
    mosaics; where there are too few, those of some turns share pictures among themselves.
    """
    most = most_per_class(pools, grid)
    small, few = min(((len(pictures), name) for name, pictures in pools.items()), default=(0, -1))
    if not most:
        raise BadInput(
            f"a {grid}×{grid} mosaic needs {grid**2 - grid**2 // 2} pictures of every class, got {small} of class "
            f"{few}: add pictures, or leave the class out"
        )
    if not 1 <= per_class <= most:
        raise BadInput(
            f"per_class must be from 1 to {most} mosaics with {small} pictures of class {few}, got "
            f"{per_class}: no picture is used twice in the same part"
        )
    luck = random.Random(keyed_seed("mosaic", seed, grid))
    places = layouts(grid)
    dealt = _dealt_layouts(places, list(pools), per_class, luck)
    wanted, other = len(places[0]), grid**2 - len(places[0])
    targets = {name: luck.sample(list(pictures), per_class * wanted) for name, pictures in pools.items()}
    supply = {name: luck.sample(list(pictures), len(pictures)) for name, pictures in pools.items()}
    if apart:
        supply = {name: _kept_apart(supply[name], targets[name], wanted, other, luck) for name in pools}
    givers = _givers(list(pools), per_class, other, luck)
    distractors: dict[int, list[tuple[str, int]]] = {name: [] for name in pools}
    # Apart, every class gives `other` pictures a turn; the plans of stored studies go through the classes one by one.
    for begin, end in [(turn * other, (turn + 1) * other) for turn in range(per_class)] if apart else [(0, None)]:
        for name, every in givers.items():
            distractors[name] += [(supply[giver].pop(), giver) for giver in every[begin:end]]
    plan = []
    for turn in range(per_class):
        for name in pools:
            mine = iter([(picture, name) for picture in targets[name][turn * wanted : (turn + 1) * wanted]])
            theirs = iter(distractors[name][turn * other : (turn + 1) * other])
            tiles = [next(mine if tile in dealt[name][turn] else theirs) for tile in range(grid**2)]
            plan.append(Laid(name, tuple(p for p, _ in tiles), tuple(label for _, label in tiles)))
    return tuple(plan)


def _kept_apart(
    pictures: Sequence[str], targets: Sequence[str], wanted: int, other: int, luck: random.Random
) -> list[str]:
    """The distractors that a class gives, the last turn's first: pictures that are no targets as far as they suffice.

    The first turns take as distractors their own targets, so that pictures are shared within a turn only.
    """
    turns, taken = len(targets) // wanted, set(targets)
    fresh = [picture for picture in pictures if picture not in taken]
    sharing = max(0, -(-(turns * other - len(fresh)) // wanted))
    supply: list[str] = []
    for turn in range(turns):
        shared = list(targets[turn * wanted : (turn + 1) * wanted]) if turn < sharing else []
        mine = [*shared, *(fresh.pop() for _ in range(other - len(shared)))]
        supply += luck.sample(mine, len(mine))
    return supply[::-1]


def _dealt_layouts(
    places: list[tuple[int, ...]], classes: list[int], per_class: int, luck: random.Random
) -> dict[int, list[tuple[int, ...]]]:
    """Whole rounds of layouts for every class; the rest is dealt from one deck, so the plan stays even."""
    whole, rest = divmod(per_class, len(places))
    deck: list[tuple[int, ...]] = []
    dealt = {}
    for name in classes:
        mine = places * whole
        for _ in range(rest):
            deck = deck or luck.sample(places, len(places))
            mine.append(deck.pop())
        luck.shuffle(mine)
        dealt[name] = mine
    return dealt


def _givers(classes: list[int], per_class: int, tiles: int, luck: random.Random) -> dict[int, list[int]]:
    """For each target class, the class of each distractor, `tiles` per mosaic.

    The classes form a ring and every target takes distractors at the same distances ahead, so each class is used
    exactly as often as it is a target. Where a distractor stands in a mosaic is drawn for every mosaic separately.
    """
    ring = luck.sample(classes, len(classes))
    ahead = _distances(len(ring), per_class, tiles, luck)
    givers: dict[int, list[int]] = {}
    for at, name in enumerate(ring):
        givers[name] = []
        for turn in range(per_class):
            mine = [ring[(at + step) % len(ring)] for step in ahead[turn * tiles : (turn + 1) * tiles]]
            luck.shuffle(mine)
            givers[name] += mine
    return givers


def _distances(classes: int, per_class: int, tiles: int, luck: random.Random) -> list[int]:
    """Rounds of all other classes, each in a random order; a mosaic repeats a class only after it has all others."""
    dealt: list[int] = []
    while len(dealt) < per_class * tiles:
        begun = dealt[len(dealt) - len(dealt) % tiles :]  # a mosaic that the last round left unfinished
        dealt += sorted(luck.sample(range(1, classes), classes - 1), key=lambda step: step in begun)
    return dealt


def labels_of(pictures: Dataset, task: str | None) -> tuple[str, dict[str, int]]:
    """The label's name and every picture's class by id, without reading pictures where that can be had."""
    from heatproof.data.two_factor import PAIRS
    from heatproof.data.two_factor.dataset import TwoFactor

    ids = pictures.ids()
    if isinstance(pictures, TwoFactor) and task in (None, "object", "scene"):
        samples = [pictures.sample(i) % PAIRS for i in range(len(pictures))]
        classes = [s % 10 if task == "scene" else s // 10 for s in samples]
        return task or "object", dict(zip(ids, classes, strict=True))
    files: Any = getattr(pictures, "files", None)
    if files is not None and task in (None, "label"):
        return "label", {file.id: int(file.label) for file in files}
    found: dict[str, int] = {}
    name = task
    for start in range(0, len(ids), 64):
        batch = pictures.batch(range(start, min(start + 64, len(ids))))
        name = name or ("label" if "label" in batch.labels else next(iter(batch.labels), "label"))
        if name not in batch.labels:
            raise BadInput(
                f"mosaics need a label for every picture: {pictures.name!r} has no label {name!r}, "
                f"it has {', '.join(batch.labels) or 'none'}"
            )
        found |= dict(zip(batch.ids, batch.labels[name].tolist(), strict=True))
    return name or "label", found
