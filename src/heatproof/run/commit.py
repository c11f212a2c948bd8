"""The one commit of a run: tables, run information and gallery list from the units in the store, `run.json` last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from heatproof.results import Results
from heatproof.results.run_state import Record, State
from heatproof.run.census import census
from heatproof.run.columns import Unit
from heatproof.run.gallery import shown_files
from heatproof.run.groups import write_groups
from heatproof.run.info import describe
from heatproof.run.pictures import write_pictures
from heatproof.run.repeats import write_repeats
from heatproof.run.rounding import measured
from heatproof.run.rounds import Course, described
from heatproof.run.shards import Shard
from heatproof.run.share import Share
from heatproof.run.stopped import judged_part
from heatproof.run.store import Store
from heatproof.run.tables import write_tables
from heatproof.run.until import dump
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.storage.atomic_file import sha256_of


def kept(course: Course) -> list[Shard]:
    """The shards whose scores decided. Others that a round computed beside them are not in the results."""
    return [shard for one in course.series for shard in one.kept]


def commit(
    studies: Sequence[Study],
    work: Sequence[Shard],
    store: Store,
    record: Record,
    state: State,
    part: str = "",
    course: Course | None = None,
    share: Share | None = None,
) -> Results:
    """Write the results from the units in the store. `run.json` comes last: only then do they count."""
    again = [shard for shard in work if shard.repeat]
    work = [shard for shard in work if not shard.repeat] if course is None else kept(course)
    store.flush()
    files = write_tables(store, _places(work))
    files |= write_groups(store.root, [(shard.place["dataset"], shard.dataset, shard.ids) for shard in work])
    files |= write_pictures(store.root, ((shard.place, store.record(shard.key)) for shard in work))
    files |= write_repeats(store.root, _repeated(again, store))
    store.put_json("gallery.json", {"files": shown_files(store, _shown(work))})
    info = replace(
        describe(studies, record.at(state), store.damaged, measured(_sampled(work, store))),
        pictures=census((shard.place, found) for shard in work if (found := store.record(shard.key))),
        stopped=part,
        until=None if course is None else described(course, finished=not part),
    )
    store.put_json("info.json", info.plain())
    store.put_json("study.json", dump(studies, share if course is None else course.rule))
    files |= {name: sha256_of(store.root / name) for name in ("gallery.json", "info.json", "study.json")}
    record.write(state, reason=part, results=files, partial=part)
    return Results.load(store.root)


def commit_finished(
    studies: Sequence[Study],
    work: Sequence[Shard],
    store: Store,
    record: Record,
    course: Course | None = None,
    share: Share | None = None,
) -> None:
    """Of a run that was stopped, the part that a report can be drawn of.

    The results of an earlier run stay: they are whole, and this one goes on.
    """
    store.flush()
    own = [shard for shard in work if not shard.repeat] if course is None else kept(course)
    judged, part = judged_part(own, store)
    if judged and (record.state.partial or not record.state.results):
        commit(studies, judged, store, record, "stopped", part, course, share)
    else:
        record.write("stopped", reason=part)


def _sampled(work: Sequence[Shard], store: Store) -> Iterator[tuple[dict[str, str], Unit]]:
    """The units of the shards with a picture that was explained again."""
    for place, key, ids in _places([shard for shard in work if shard.sampled]):
        if (unit := store.get(key, ids)) is not None:
            yield place, unit


def _shown(work: Sequence[Shard]) -> dict[str, list[str]]:
    """The maps kept for the gallery of these shards, in order, each with the metrics that judged them."""
    found: dict[str, list[str]] = {}
    for shard in work:
        metrics = [recipe.label(metric) for metric in shard.study.metrics]
        for file in shard.gallery.values():
            found[file] = list(dict.fromkeys([*found.get(file, []), *metrics]))
    return found


def _repeated(work: Sequence[Shard], store: Store) -> Iterator[tuple[dict[str, str], int, Unit]]:
    """The units of repeats, each with its place and the number of its repeat."""
    seen: set[tuple[str, ...]] = set()
    for shard in work:
        for (method, metric), key in shard.units.items():
            place = {**shard.place, "method": method, "metric": metric}
            unit = store.get(key, shard.ids)
            if unit is not None and (*place.values(), key) not in seen:  # two studies may share a unit
                seen.add((*place.values(), key))
                yield place, shard.repeat, unit


def _places(work: Sequence[Shard]) -> Iterator[tuple[dict[str, str], str, tuple[str, ...]]]:
    """Place, key and pictures of every unit, shard by shard as they were computed, so that each part is read once."""

    def order(item: tuple[Shard, tuple[str, str], str]) -> tuple[str, str, int, str, str]:
        shard, (method, metric), _ = item
        return (shard.place["dataset"], shard.place["model"], shard.indices[0], method, metric)

    seen: set[tuple[str, ...]] = set()
    every = ((shard, names, key) for shard in work for names, key in shard.units.items())
    for shard, (method, metric), key in sorted(every, key=order):
        place = (*shard.place.values(), method, metric, key)
        if place not in seen:  # two studies may share a unit
            yield {**shard.place, "method": method, "metric": metric}, key, shard.ids
        seen.add(place)
