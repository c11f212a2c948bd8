"""The loop: for each shard × model, explain with each method, score with each metric, put rows in the store.

Workers do the explaining and scoring and write nothing; the process that runs the loop, the driver, alone writes.

Finished units are found again by their keys: an interrupted run goes on where it stopped, and a run with one more
method pays only for that method. With a rule to stop by, shards are added in rounds until the rule is met.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from heatproof import engine
from heatproof.data._support.manifest import manifests
from heatproof.engine import EngineKind
from heatproof.errors import BadInput
from heatproof.executors import Executor, Workers, executor
from heatproof.results import Results
from heatproof.results.run_state import Record
from heatproof.run.commit import commit
from heatproof.run.display import Display, Watch
from heatproof.run.engine_choices import engine_of, remember_choices, resume_choices, settle, take_over
from heatproof.run.findings import Choices, Finding, Rows
from heatproof.run.pace import Pace
from heatproof.run.premises import check, warn_of_lost
from heatproof.run.recording import recording
from heatproof.run.rounds import course_of, rounds
from heatproof.run.shards import Shard, shards
from heatproof.run.share import Share
from heatproof.run.store import Store
from heatproof.run.task import finished, perform, sound, tasks
from heatproof.run.until import Solid, prepared
from heatproof.spec.study import Study
from heatproof.storage.any_path import folder


def run(
    studies: Study | Sequence[Study],
    out: str | Path,
    *,
    device: str = "auto",
    workers: Workers = 1,
    watch: Watch | None = None,
    engine: EngineKind = "auto",
    choices: Mapping[str, Any] | None = None,
    on: str | Executor = "local",
    until: Solid | None = None,
    share: Share | None = None,
    pace: Pace | None = None,
) -> Results:
    """Judge the methods, write `out`, return the results. The same call again goes on where the last one stopped.

    `workers` processes do a shard each, on one thread each, with the same numbers up to rounding; `auto` takes as many
    as pay. `until` is the rule by which the run stops before all pictures are judged; a `share` is the part of the
    work that this run does (`gather` puts parts together). A `pace` measures one picture first and knows how much time
    is left.

    `engine="reference"` runs every network as it is, in micro-batches of 8 on one thread, and reads nothing from the
    cache: slower, and the same numbers whatever was measured before. `choices` are those of an earlier run (its
    `engine.json`), to begin with. `on` is the executor or its name: `local`, `ray` (a cluster), or that of a plug-in.
    """
    with engine_of(engine, choices), closing(executor(on) if isinstance(on, str) else on) as crew:
        return _run(studies, out, device, workers, Display(watch, pace), crew, until, share)


def _run(
    studies: Study | Sequence[Study],
    out: str | Path,
    device: str,
    workers: Workers,
    display: Display,
    crew: Executor,
    until: Solid | None,
    share: Share | None,
) -> Results:
    if share is not None and until is not None:
        raise BadInput(f"a rule to stop by looks at all pictures, and part {share} has some: leave one of them out")
    listed = [studies] if isinstance(studies, Study) else list(studies)
    if not listed:
        raise BadInput("run needs at least one study, got none")
    display.phase("reading pictures", 0, len(listed))
    if until is not None:
        listed = prepared(listed, until)
    store = Store(folder(out))
    resume_choices(store)
    place = engine.pick(device)
    count = crew.how_many(workers, place)
    for one in listed:
        crew.check(one)
    work: list[Shard] = []
    for at, one in enumerate(listed, start=1):
        work += shards(one, place)
        display.phase("reading pictures", at, len(listed))
    manifests().keep()
    own, again = ([shard for shard in work if bool(shard.repeat) == later] for later in (False, True))
    if share is not None:
        own, again = share.of_work(own), share.among(again)
    work = [*own, *again]
    course = None if until is None else course_of(own, until)
    check(work, partial(finished, store=store), partial(display.phase, "checking"))
    warn_of_lost(listed)
    with recording(listed, work, store, until or share, course) as record:
        before = 0
        for part in [work] if course is None else chain(rounds(course, store, count), [again]):
            shown = display if course is None else display.of_round(before, units_of(work), course.progress)
            _work(part, store, crew.spread, count, record, shown)
            before += units_of(part)
        return commit(listed, work, store, record, "complete", course=course, share=share)


def units_of(work: Sequence[Shard]) -> int:
    """Units of all these shards."""
    return sum(len(shard.units) for shard in work)


def _work(
    work: Sequence[Shard],
    store: Store,
    spread: Callable[..., Generator[Finding]],
    count: int,
    record: Record,
    display: Display,
) -> None:
    """Do what is not done, spread over the workers. What proves to be damaged when it is read is done again."""
    _do(work, store, spread, count, record, display)
    if not sound(store, work):
        _do(work, store, spread, count, record, display)


def _do(
    work: Sequence[Shard],
    store: Store,
    spread: Callable[..., Generator[Finding]],
    count: int,
    record: Record,
    display: Display,
) -> None:
    """Do what is not done, and put what the workers find in the store."""
    todo = tasks(work, store)
    left = {key for task in todo for key in task.units.values()}
    total = units_of(work)
    one = count > 1 or engine.current().kind == "reference"  # several threads add up in another order
    with engine.threads_for((shard.model for shard in work), one=one):
        settle([task.shard for task in todo], count)
        remember_choices(store)
        if display.pace:
            units = {task.shard: task.units for task in todo}
            display.pace.begin(list(units), units.__getitem__, count)
        with store.writing(), closing(spread(perform, todo, count)) as findings:
            for found in findings:
                if isinstance(found, Choices):
                    take_over(found.made, store)
                elif not isinstance(found, Rows):
                    found.put(store)
                elif found.key in left:  # a task whose worker was lost is done again, and its rows come twice
                    found.put(store)
                    left.remove(found.key)
                    record.tick()
                    display.unit(total - len(left), total, found.label)
