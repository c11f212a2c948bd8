"""The loop: for each shard × model, explain with each method, score with each metric, put rows in the store.

Everything that was finished is found again by its key, so an interrupted run goes on where it stopped, and one with
one more method pays only for that method.
"""

from __future__ import annotations

import dataclasses
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heatproof import engine, recipe, run_lock, study
from heatproof.atomic_file import sha256_of
from heatproof.census import census, recorded
from heatproof.data import seen_by
from heatproof.data.class_order import alphabetical
from heatproof.data.value_range import warn_of_narrow
from heatproof.engine import EngineKind
from heatproof.errors import BadInput, NotApplicable
from heatproof.executors import local
from heatproof.executors.local import Workers
from heatproof.gallery import is_kept, keep_pictures, shown_files
from heatproof.models.outputs import SHOWN, recognised
from heatproof.provenance import describe
from heatproof.results import Results
from heatproof.run_engine import begin_with, engine_of
from heatproof.run_state import Record, State
from heatproof.store import Store, Unit
from heatproof.study import Study
from heatproof.types import Attribution, Batch, Dataset, Model
from heatproof.unit import explain, judge

EDITION = 7  # of what components mean: numbers of another one answer other questions and are computed anew
Watch = Callable[[int, int, str], None]  # (units done, units in all, what was done)


def run(
    studies: Study | Sequence[Study],
    out: str | Path,
    *,
    device: str = "auto",
    workers: Workers = 1,
    watch: Watch | None = None,
    engine: EngineKind = "auto",
    choices: Mapping[str, Any] | None = None,
) -> Results:
    """Judge; write `out`; give the results. The same call again goes on where the last one stopped.

    `workers` processes do a shard each, on one thread each, with the same numbers in the end (up to rounding, if it
    were more threads otherwise); `auto` takes as many as pay.

    `engine="reference"` runs every network as it is, in micro-batches of 8 on one thread, and reads nothing from the
    cache: slower, and the same numbers whatever was measured before. `choices` are those of an earlier run (its
    `engine.json`), to begin with.
    """
    with engine_of(engine, choices):
        return _run(studies, out, device, workers, watch)


def _run(
    studies: Study | Sequence[Study], out: str | Path, device: str, workers: Workers, watch: Watch | None
) -> Results:
    asked = [studies] if isinstance(studies, Study) else list(studies)
    if not asked:
        raise BadInput("run needs at least one study, got none")
    store = Store(Path(out))
    _resume_engine(store)
    place = engine.pick(device)
    work = [shard for one in asked for shard in shards(one, place)]
    _check_regions(work)
    _warn_of_lost(asked)
    with run_lock.held(store.root), _sigterm_as_ctrl_c():
        store.clear_leftovers()
        resumed = any(store.get(key, shard.ids) for shard in work for key in shard.units.values())
        record = Record(store.root, resumed)
        if not record.state.results:  # else it belongs to those results until there are others
            store.put_json("study.json", study.dump(asked))
        try:
            _work(work, store, local.how_many(workers, place), record, watch)
            return _commit(asked, work, store, record, "complete")
        except KeyboardInterrupt:
            _commit_finished(asked, work, store, record)
            raise
        except BaseException as error:
            with suppress(Exception):  # the disk may be what failed
                record.write("failed", reason=str(error)[:500])
            raise


def _work(work: Sequence[Shard], store: Store, count: int, record: Record, watch: Watch | None) -> None:
    """Do what is not done, on so many processes."""
    total = sum(len(shard.units) for shard in work)
    waiting = [shard for shard in work if not finished(shard, store)]
    done = total - sum(len(shard.units) for shard in waiting)
    one = count > 1 or engine.current().kind == "reference"  # several threads add up in another order
    with engine.threads_for((shard.model for shard in work), one=one):
        _settle(waiting, count)
        _remember_engine(store)
        with closing(local.spread(partial(finish, store=store), waiting, count)) as labels:
            for label in labels:
                done += 1
                record.tick()
                if watch:
                    watch(done, total, label)
    _resume_engine(store)  # what workers chose is part of the record


def _settle(work: Sequence[Shard], count: int) -> None:
    """Choose how the pictures are run through the networks, on the threads that will run them: here and once, as
    processes that each began without choices could choose differently.
    """
    for shard in {(shard.model, recipe.label(shard.dataset)): shard for shard in reversed(work)}.values():
        costs = [getattr(method, "cost", None) for method in shard.study.methods]
        with suppress(Exception):  # it comes again where it can be put down to a picture or a method
            batch = shard.dataset.batch(shard.indices[:1]).to(shard.model.device)
            if len(batch):
                engine.settled(shard.model, batch.images, "forward")
                if any(cost().backward if cost else count > 1 for cost in costs):
                    engine.settled(shard.model, batch.images, "gradient")


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """A run that is terminated keeps what it has, like one that is stopped by hand."""
    if threading.current_thread() is not threading.main_thread():  # only that one may listen
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _commit(
    asked: Sequence[Study], work: Sequence[Shard], store: Store, record: Record, state: State, part: str = ""
) -> Results:
    """Write the results from the units in the store. `run.json` comes last: only then do they count."""
    files = store.write_tables(_places(work, store))
    store.put_json("gallery.json", {"files": shown_files(store.root, _shown(work))})
    stopped = {"stopped": part} if part else {}
    pictures = census((shard.place, found) for shard in work if (found := _counted(shard, store)))
    about = {**describe(asked, record.at(state), store.damaged), "pictures": pictures, **stopped}
    store.put_json("info.json", about)
    store.put_json("study.json", study.dump(asked))
    files |= {name: sha256_of(store.root / name) for name in ("gallery.json", "info.json", "study.json")}
    record.write(state, reason=part, results=files, partial=part)
    return Results.load(store.root)


def _commit_finished(asked: Sequence[Study], work: Sequence[Shard], store: Store, record: Record) -> None:
    """Of a run that was stopped, the pictures on which everybody was judged: a report can be drawn of them.

    The results of an earlier run stay: they are whole, and this one goes on.
    """
    finished = [shard for shard in work if all(store.get(key, shard.ids) for key in shard.units.values())]
    counts = (sum(len(shard.indices) for shard in some) for some in (finished, work))
    part = "after {} of {} pictures".format(*counts)
    if finished and (record.state.partial or not record.state.results):
        _commit(asked, finished, store, record, "stopped", part)
    else:
        record.write("stopped", reason=part)


def _check_regions(work: Sequence[Shard]) -> None:
    """Refuse a study that only asks where heat lies if nobody says where it should: at once, not after hours."""
    for one in dict.fromkeys(shard.study for shard in work):
        asked = [metric for metric in one.metrics if getattr(metric, "measures", "other") != "pictures"]
        if not asked or any(getattr(metric, "measures", "other") != "localisation" for metric in asked):
            continue
        first = {recipe.label(shard.dataset): shard for shard in reversed(work) if shard.study is one}
        reasons = [_no_regions(shard, asked[0]) for shard in first.values()]
        if reasons and all(reasons):
            raise BadInput(f"{reasons[0]} (--masks FOLDER, or a column 'mask' in a table)")


def _no_regions(shard: Shard, metric: Any) -> str:
    """What a metric says of a picture without a region; nothing where there is one."""
    batch = shard.dataset.batch(shard.indices[:1])
    if batch.regions is not None or not len(batch):
        return ""
    try:
        metric(Attribution(shard.model, batch, None, torch.zeros_like(batch.images[:, 0])))  # type: ignore[arg-type]
    except NotApplicable as reason:
        return str(reason)
    except Exception:  # it will be said of every picture
        return ""
    return ""


def _warn_of_lost(studies: Sequence[Study]) -> None:
    """A study file makes its own parts again; of others a replay finds only what has a name."""
    parts = [part for one in studies if not one.file for part in (*one.methods, *one.metrics, *one.datasets)]
    names = dict.fromkeys(recipe.label(part) for part in parts if any(True for _ in recipe.lost(part)))
    if names:
        warnings.warn(
            f"study.json will not find {', '.join(names)} again (a lambda, a function made by another one, or an "
            "object made in Python): to replay it run this script again, or write it as a frozen dataclass or as a "
            "function at the top of a file",
            stacklevel=3,
        )


@dataclass(frozen=True, eq=False)
class Shard:
    """Some pictures of one data set under one model, and the units of work on them by (method, metric)."""

    study: Study
    model: Model
    dataset: Dataset
    indices: tuple[int, ...]
    ids: tuple[str, ...]
    gallery: Mapping[str, str]  # method label -> where its maps are kept for looking at, if they are
    units: Mapping[tuple[str, str], str]  # (method label, metric label) -> key
    key: str  # of the shard itself: what its pictures are to the model is kept under it
    guessed: tuple[str, ...]  # class names that were numbered in alphabetical order

    @property
    def place(self) -> dict[str, str]:
        return {"dataset": recipe.label(self.dataset), "model": self.model.name}

    @property
    def file(self) -> str:
        return f"shards/{self.key[:2]}/{self.key}.json"


def shards(study: Study, device: torch.device) -> Iterator[Shard]:
    """Cut each data set into shards and key their units: images, weights, recipes, seed; never the machine."""
    # Once: recipes of one's own code are read from all that it reaches, and an object may change while it works.
    methods = {recipe.label(method): recipe.plain(method) for method in study.methods}
    metrics = {recipe.label(metric): recipe.plain(metric) for metric in study.metrics}
    models: dict[Model, Model] = {}  # as given -> as its answers show it to be
    for given in study.datasets:
        for named in study.models:
            assert isinstance(named, Model)
            named.to(device)
            dataset = fitted(given, named, study)  # type: ignore[arg-type]
            ids = dataset.ids()
            if not ids:
                raise BadInput(f"data set {recipe.label(dataset)!r} has no pictures")
            places = study.places(dataset)
            if named not in models:
                first = dataset.batch(places[:SHOWN])
                warn_of_narrow(first)
                models[named] = recognised(named, first.images)
            model = models[named]
            guessed = alphabetical(dataset)
            for start in range(0, len(places), study.shard):
                indices = places[start : start + study.shard]
                common = [
                    EDITION,
                    dataset.digest(indices),
                    model.revision,
                    model.task,
                    study.seed,
                    getattr(dataset, "target", study.target),
                    recipe.plain(getattr(dataset, "view", None)),
                    *(["probabilities"] if model.output == "probabilities" else []),
                    *(["reference"] if engine.current().kind == "reference" else []),
                ]
                units = {
                    (method, metric): recipe.key([*common, methods[method], metrics[metric]])
                    for method in methods
                    for metric in metrics
                }
                names = tuple(ids[i] for i in indices)
                place = [recipe.label(dataset), model.name]
                key = recipe.key([*place, *common])
                folder = f"gallery/{key}"
                files = {name: f"{folder}/{recipe.key(plain)}.npz" for name, plain in methods.items()}
                yield Shard(study, model, dataset, indices, names, files if start == 0 else {}, units, key, guessed)


def fitted(dataset: Dataset, model: Model, study: Study) -> Dataset:
    """The data set as this model wants to see it, with the model's classes where the study asks about labels."""
    whole = hasattr(dataset, "fitted")  # one made of other data sets knows all of that itself
    dataset = seen_by(model, dataset)
    if whole:
        return dataset
    if getattr(dataset, "view", ...) is None:
        raise BadInput(
            f"model {model.name!r} does not say which input size it wants and data set {recipe.label(dataset)!r} "
            "has none: give the data set a view, e.g. view=heatproof.View(size=224, resize=256)"
        )
    if _by_label(study) and model.classes and getattr(dataset, "classes", ...) == ():
        # Folders named by class must mean the model's classes, not the k-th folder.
        dataset = dataclasses.replace(dataset, classes=model.classes)  # type: ignore[type-var]
    return dataset


def _by_label(study: Study) -> bool:
    return study.target == "label" or any(getattr(metric, "target", "") == "label" for metric in study.metrics)


def _check_order(shard: Shard, count: int) -> None:
    """Folders named by class mean the model's classes; where it names none, the alphabet's order is but a guess."""
    names = shard.guessed if _by_label(shard.study) else ()
    if not names:
        return
    few = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    said = (
        f"data set {recipe.label(shard.dataset)!r} names {len(names)} classes ({few}), and model {shard.model.name!r} "
        f"has {count} and does not say what they are called"
    )
    mend = "give the model its classes (factory.classes = […]), or name the sub-folders index_name"
    if len(names) != count:
        raise BadInput(f"{said}: {mend}")
    warnings.warn(f"{said}: they were numbered in alphabetical order; if that is wrong, {mend}", stacklevel=2)


def finished(shard: Shard, store: Store) -> bool:
    """Whether every unit of a shard has its rows, every map its picture, and the pictures are counted."""
    units = [store.get(key, shard.ids) for key in shard.units.values()]  # all of them: damaged ones are set aside
    kept = [is_kept(store, file) for file in shard.gallery.values()]
    counted = _counted(shard, store) is not None
    return counted and all(kept) and all(unit is not None and not unit.failed for unit in units)


def finish(shard: Shard, store: Store) -> Iterator[str]:
    """Do what is not done of a shard; yield a word for every unit, old or new."""
    known = {names: store.get(key, shard.ids) for names, key in shard.units.items()}
    todo = {names for names, unit in known.items() if unit is None or unit.failed}
    unseen = {method for method, file in shard.gallery.items() if not is_kept(store, file)}
    batch = None
    if todo or unseen or _counted(shard, store) is None:
        batch, answers = aimed(shard)
        found = recorded(shard.model, batch, answers, shard.guessed, _by_label(shard.study))
        store.put_json(shard.file, {"key": shard.key, **found})
    for method in shard.study.methods:
        title = recipe.label(method)
        metrics = [metric for metric in shard.study.metrics if (title, recipe.label(metric)) in todo]
        for metric in shard.study.metrics:
            if metric not in metrics:
                yield f"{title} · {recipe.label(metric)}"
        if batch is None or not (metrics or title in unseen):
            continue
        explained = explain(shard.model, batch, method)  # type: ignore[arg-type]
        if shard.gallery:
            about = {**shard.place, "classes": list(shard.model.classes)}
            keep_pictures(store, shard.gallery[title], about, batch, title, explained.attribution)
        for metric in metrics:
            unit = judge(explained, batch, shard.ids, metric)  # type: ignore[arg-type]
            _remember_engine(store)
            store.put(shard.units[title, recipe.label(metric)], unit)
            yield f"{title} · {recipe.label(metric)}"


def _counted(shard: Shard, store: Store) -> dict[str, Any] | None:
    """What the shard's pictures are to its model, if that is known and this shard's."""
    found = store.get_json(shard.file)
    return found if found and found.get("key") == shard.key else None


def aimed(shard: Shard) -> tuple[Batch, Tensor | None]:
    """The shard's pictures with the class to be explained set and the study's seed, and the model's answers."""
    batch = dataclasses.replace(shard.dataset.batch(shard.indices), seed=shard.study.seed).to(shard.model.device)
    target = getattr(shard.dataset, "target", shard.study.target)  # mosaics know their own
    if target == "given" or not len(batch):
        return batch, None
    classes = engine.forward(shard.model, batch.images)
    _check_order(shard, classes.shape[1])
    answers = classes.argmax(1)
    if target == "predicted":
        return batch.aimed(answers), answers
    labels = batch.labels.get(shard.model.task)
    count = classes.shape[1]
    if labels is None or bool(((labels < 0) | (labels >= count)).any()):
        raise BadInput(
            f"target='label' needs a label from 0 to {count - 1} ({shard.model.task}) for every picture of "
            f"{recipe.label(shard.dataset)!r}: use target='predicted', or name the sub-folders index_name"
        )
    return batch.aimed(labels), answers


def _shown(work: Sequence[Shard]) -> list[str]:
    """The maps kept for looking at that were asked for, in order."""
    return list(dict.fromkeys(file for shard in work for file in shard.gallery.values()))


def _places(work: Sequence[Shard], store: Store) -> Iterator[tuple[dict[str, str], Unit]]:
    def order(item: tuple[Shard, tuple[str, str], str]) -> tuple[str, str, str, str, int]:
        shard, (method, metric), _ = item
        return (shard.place["dataset"], shard.place["model"], method, metric, shard.indices[0])

    seen: set[tuple[str, ...]] = set()
    every = ((shard, names, key) for shard in work for names, key in shard.units.items())
    for shard, (method, metric), key in sorted(every, key=order):
        unit, asked = store.get(key, shard.ids), (*shard.place.values(), method, metric, key)
        if unit is not None and asked not in seen:  # two studies may ask for the same unit
            yield {**shard.place, "method": method, "metric": metric}, unit
        seen.add(asked)


def _resume_engine(store: Store) -> None:
    """A resumed run computes with the choices it began with: another micro-batch could move the last bit."""
    if engine.current().kind == "auto":
        begin_with(store.get_json("engine.json"), f"{store.root}/engine.json")


def _remember_engine(store: Store) -> None:
    """Write down the choices made so far, beside those of other workers."""
    made = engine.current().record()
    if engine.current().kind == "reference" or made.items() <= _written_choices(store).items():
        return
    with store.alone("engine"):
        store.put_json("engine.json", {**_written_choices(store), **made})


def _written_choices(store: Store) -> dict[str, Any]:
    known = store.get_json("engine.json")
    return known if isinstance(known, dict) else {}
