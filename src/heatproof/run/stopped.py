"""What a stopped run has: the pictures on which all methods were judged or, before there are any, the units done."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from heatproof.run.shards import Shard
from heatproof.run.store import Store


def judged_part(work: Sequence[Shard], store: Store) -> tuple[list[Shard], str]:
    """The shards that a report of a stopped run can be drawn of, and how far it came, in words."""
    done = {
        id(shard): {names for names, key in shard.units.items() if store.failed(key, shard.ids) is not None}
        for shard in work
    }
    whole = [shard for shard in work if len(done[id(shard)]) == len(shard.units)]
    if whole:
        return whole, f"after {_pictures(whole, work)}"
    some = [
        dataclasses.replace(
            shard, units={names: shard.units[names] for names in shard.units if names in done[id(shard)]}
        )
        for shard in work
        if done[id(shard)]
    ]
    units = [sum(len(shard.units) for shard in part) for part in (some, work)]
    # With several workers no shard may be complete when the first ones are under way.
    return some, f"after {units[0]} of {units[1]} units of work, before all methods were judged on any picture"


def _pictures(whole: Sequence[Shard], work: Sequence[Shard]) -> str:
    """`16 of 20 pictures`; by protocol where there are several: `pixel_flipping (24 of 24 pictures), sanity (…)`."""
    protocols = dict.fromkeys(shard.study.protocol for shard in work)
    if len(protocols) < 2:
        return f"{_count(whole)} of {_count(work)} pictures"
    return ", ".join(_by_protocol(protocols, whole, work))


def _by_protocol(protocols: Iterable[str], whole: Sequence[Shard], work: Sequence[Shard]) -> Iterator[str]:
    for name in protocols:
        did, every = (_count([shard for shard in part if shard.study.protocol == name]) for part in (whole, work))
        yield f"{name or 'the rest'} ({did} of {every} pictures)"


def _count(shards: Sequence[Shard]) -> int:
    return sum(len(shard.indices) for shard in shards)
