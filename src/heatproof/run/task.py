"""Tasks: what is still to be done of a shard, and the work itself, which writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from heatproof import engine
from heatproof.results.gallery import GalleryFolder
from heatproof.run.census import recorded
from heatproof.run.findings import Choices, Counted, Finding, Rows
from heatproof.run.gallery import book_of, is_kept, maps_of, pictures_of
from heatproof.run.repeats import judged_alike, other_dice
from heatproof.run.rounding import Sample, beside
from heatproof.run.shards import Shard, aimed, by_label
from heatproof.run.store import Store
from heatproof.run.unit import explain, judge
from heatproof.spec import recipe
from heatproof.traits import flip_book_of


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be done of a shard: all of it on one worker, since methods and metrics share the model's answers."""

    shard: Shard
    units: Mapping[tuple[str, str], str]  # (method label, metric label) -> key
    maps: Mapping[str, str]  # method label -> file of the gallery


def finished(shard: Shard, store: Store) -> bool:
    """Whether every unit of a shard has its rows, every map its picture, and the pictures are counted."""
    return not (unfinished(shard, store) or unseen(shard, store)) and store.has_record(shard.key)


def unfinished(shard: Shard, store: Store) -> dict[tuple[str, str], str]:
    """The units of a shard that are still to be done, or done again."""
    return {names: key for names, key in shard.units.items() if store.failed(key, shard.ids) is not False}


def unseen(shard: Shard, store: Store) -> dict[str, str]:
    """The methods whose maps are still to be kept for looking at."""
    return {method: file for method, file in shard.gallery.items() if not is_kept(store, file)}


def tasks(work: Sequence[Shard], store: Store) -> list[Task]:
    """One for each shard that is not finished. What two shards share is done by the first."""
    found: list[Task] = []
    taken: set[str] = set()  # keys of units and shards, files of maps
    for shard in work:
        units = {names: key for names, key in unfinished(shard, store).items() if key not in taken}
        maps = {method: file for method, file in unseen(shard, store).items() if file not in taken}
        if units or maps or not (shard.key in taken or store.has_record(shard.key)):
            found.append(Task(shard, units, maps))
            taken |= {shard.key, *units.values(), *maps.values()}
    return found


def sound(store: Store, work: Sequence[Shard]) -> bool:
    """Whether what is stored of these shards is sound; what is not is set aside."""
    units = ((key, shard.ids) for shard in work for key in shard.units.values())
    return store.check(units, (shard.key for shard in work))


def perform(task: Task) -> Iterator[Finding]:
    """Do a task; yield what is found as it comes."""
    shard, known = task.shard, engine.current().record()
    batch, answers = aimed(shard)
    found = recorded(shard.key, shard.model, batch, answers, shard.guessed, by_label(shard.study))
    yield Counted(found)
    if task.maps:
        about = GalleryFolder(**shard.place, ids=(), classes=tuple(shard.model.classes))
        yield pictures_of(next(iter(task.maps.values())), about, batch)
    sample = Sample(shard.model, shard.sampled)
    for method in shard.methods:
        title = recipe.label(method)
        metrics = [metric for metric in shard.study.metrics if (title, recipe.label(metric)) in task.units]
        if not (metrics or title in task.maps):
            continue
        explained = judged_alike(explain(shard.model, other_dice(batch, shard.repeat), method), batch)
        if title in task.maps:
            yield maps_of(task.maps[title], batch, title, explained.attribution)
        noise = sample.of(method, explained) if metrics else {}
        for metric in metrics:
            name = recipe.label(metric)
            unit = beside(judge(explained, batch, shard.ids, metric), noise)  # type: ignore[arg-type]
            if (made := engine.current().record()) != known:
                yield Choices(made)
                known = made
            show = flip_book_of(metric) if title in shard.gallery else None
            if show is not None and explained.attribution is not None:
                book = book_of(shard.gallery[title], name, explained.attribution, show)
                if book is not None:
                    yield book
            yield Rows(title, name, task.units[title, name], unit)
