"""How a run that stops when it is solid has ended, in words, from its `Until`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from heatproof.results.run_info import Dropped, Stop, Until

NAMED = 6  # open pairs and dropped methods that are named; the others are counted


def stopped_in_words(until: Until | None) -> list[str]:
    """When and why the run stopped, what is decided, what is open, and which methods were dropped."""
    if not until:
        return []
    return [
        *(_stop(one, until.race) for one in until.stops),
        _decided(until),
        *_open(until),
        *_dropped(until.dropped),
    ]


def _stop(one: Stop, race: bool) -> str:
    where = f"{one.model} on {one.dataset}"
    seen = f"{one.pictures} of {one.available} pictures ({_counted(one.shards, 'shard')})"
    if one.reason == "decided":
        what = "the first place is decided" if race else "every pair of methods is decided"
        return f"{where}: stopped after {seen}, because {what}."
    if one.reason == "max_images":
        what = "the first place is" if race else "some pairs of methods are"
        return f"{where}: stopped after {seen}, because there are no more; {what} still open."
    return f"{where}: interrupted after {seen}."


def _decided(until: Until) -> str:
    found = Counter(pair.outcome for pair in until.pairs)
    solid = found["better"] + found["worse"]
    return (
        f"Of {_counted(until.family, 'pair')}, {solid} {'differs' if solid == 1 else 'differ'}, "
        f"{found['equivalent']} {'is' if found['equivalent'] == 1 else 'are'} equivalent within "
        f"±{until.margin:g}, and {found['open']} {'is' if found['open'] == 1 else 'are'} open. The chance of any "
        f"wrong decision is held at {until.alpha:.0%} whenever the run stops."
    )


def _open(until: Until) -> list[str]:
    if until.race:  # pairs that are not about the first place stay open on purpose
        return []
    pairs = [pair for pair in until.pairs if pair.outcome == "open"]
    names = [f"{pair.method_a} and {pair.method_b} ({pair.metric})" for pair in pairs]
    return [f"Open: {_some(names)}."] if names else []


def _dropped(dropped: Sequence[Dropped]) -> list[str]:
    names = [f"{one.method} ({one.metric}) after {_counted(one.pictures, 'picture')}" for one in dropped]
    return [f"Dropped from the race, since another method beats them: {_some(names)}."] if names else []


def _some(names: Sequence[str]) -> str:
    rest = len(names) - NAMED
    return "; ".join([*names[:NAMED], *([f"and {rest} more"] if rest > 0 else [])])


def _counted(value: int, noun: str) -> str:
    return f"{value} {noun}{'' if value == 1 else 's'}"
