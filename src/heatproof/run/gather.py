"""Gathers the parts of a study, each run in a directory of its own, into one run. Nothing is computed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatproof import engine
from heatproof.errors import BadInput
from heatproof.results import Results
from heatproof.results.gallery import GalleryFolder
from heatproof.run.commit import commit
from heatproof.run.engine_choices import engine_of, resume_choices, take_over
from heatproof.run.findings import Counted, Maps, Pictures, Rows
from heatproof.run.gallery import book_file, is_kept, shown_files
from heatproof.run.recording import recording
from heatproof.run.shards import shards
from heatproof.run.share import Share
from heatproof.run.store import Store
from heatproof.run.stored_engine import StoredEngine
from heatproof.run.task import Task, sound, tasks
from heatproof.spec import study_file
from heatproof.spec.study import load
from heatproof.storage.any_path import folder as folder_of
from heatproof.storage.sealed_json import typed

FILE = "study.json"


def gather(
    directories: Sequence[str | Path],
    out: str | Path,
    *,
    models: Sequence[str] = (),
    images: Sequence[str] = (),
    trust_pickle: bool = False,
    trust_code: bool = False,
) -> Results:
    """The results of the parts of one study as results of that study, written to `out`.

    The models and pictures must be here, as for a replay: rows count only for the very pictures and weights that they
    were computed on. `models` and `images` say where they are now. Refuses parts of different studies, and parts that
    are not all there.
    """
    places = [folder_of(one) for one in directories]
    first = _same_study(places)
    before = StoredEngine.beside(places[0] / FILE)
    with engine_of(before.kind, before.choices):
        studies = load(places[0] / FILE, trust_pickle, models, images, trust_code)
        store, sources = Store(folder_of(out)), [Store(place) for place in places]
        resume_choices(store)
        work = [shard for one in studies for shard in shards(one, engine.pick("cpu"))]
        with recording(studies, work, store, None, None) as record:
            todo = tasks(work, store)
            _complete(todo, sources, first)
            for source in sources:
                take_over(source.get_json("engine.json") or {}, store)
            for task in todo:
                for found in _found(task, sources):
                    found.put(store)
            store.flush()
            return commit(studies, work, store, record, "complete")


def _same_study(places: Sequence[Path]) -> list[Share]:
    """Which parts these are; refuses those of different studies."""
    if not places:
        raise BadInput("gather needs the directories of the parts, got none")
    kept: list[dict[str, Any]] = []
    shares = []
    for place in places:
        study_file.read(place / FILE)
        held = json.loads((place / FILE).read_bytes())
        share = Share.load(place / FILE)
        if share is None:
            raise BadInput(f"{place} holds all of its study, not a part of one (heatproof run … --part 1/16)")
        shares.append(share)
        kept.append({"studies": [{**one, "folder": ""} for one in held["studies"]], "of": share.of})
    for place, one in zip(places, kept, strict=True):
        if one != kept[0]:
            raise BadInput(
                f"{place} is a part of another study than {places[0]}: they differ in {_apart(one, kept[0])}"
            )
    return shares


def _apart(one: dict[str, Any], other: dict[str, Any]) -> str:
    if one["of"] != other["of"]:
        return f"the number of parts ({one['of']} and {other['of']})"
    if len(one["studies"]) != len(other["studies"]):
        return f"the number of studies ({len(one['studies'])} and {len(other['studies'])})"
    names = [
        name for a, b in zip(one["studies"], other["studies"], strict=True) for name in a if a[name] != b.get(name)
    ]
    return ", ".join(dict.fromkeys(names))


def _complete(todo: Sequence[Task], sources: Sequence[Store], shares: Sequence[Share]) -> None:
    """Every unit must be in one of the parts; else says which parts to run."""
    for source in sources:
        sound(source, [task.shard for task in todo])
    lost = [
        (names, task.shard)
        for task in todo
        for names, key in task.units.items()
        if all(source.failed(key, task.shard.ids) is None for source in sources)
    ]
    if not lost:
        return
    missing = sorted(set(range(1, shares[0].of + 1)) - {share.number for share in shares})
    parts = (
        f"part {', '.join(map(str, missing))} of {shares[0].of} was not given" if missing else "a part is not finished"
    )
    (method, metric), shard = lost[0]
    raise BadInput(
        f"{len(lost)} units of work are in none of these directories ({parts}); first: {method} · {metric} on "
        f"{shard.place['dataset']} from picture {shard.ids[0]} on. Run what is missing with the same command, then "
        "gather again"
    )


def _found(task: Task, sources: Sequence[Store]) -> Iterator[Counted | Rows | Pictures | Maps]:
    """What the parts hold of a task, as if it were computed."""
    shard = task.shard
    for source in sources:
        if (record := source.record(shard.key)) is not None:
            yield Counted(record)
            break
    for names, key in task.units.items():
        unit = next(unit for source in sources if (unit := source.get(key, shard.ids)) is not None)
        yield Rows(*names, key, unit)
    for method, file in task.maps.items():
        for source in [source for source in sources if is_kept(source, file)][:1]:
            folder = file.rpartition("/")[0]
            about = typed(GalleryFolder, source.get_json(f"{folder}/about.json"), f"{folder}/about.json")
            yield Pictures(folder, about, _arrays(source, f"{folder}/pictures.npz"))
            metrics = [metric for title, metric in shard.units if title == method]
            shown = shown_files(source, {file: metrics})  # of the flip-books only those that are sound
            for name in (file, *(book for one in metrics if (book := book_file(file, one)) in shown)):
                yield Maps(name, _arrays(source, name))


def _arrays(source: Store, name: str) -> dict[str, np.ndarray[Any, Any]]:
    with (source.root / name).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)
