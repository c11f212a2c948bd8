"""What a run will cost and what it can show, from a pilot on a few pictures. Nothing of it is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from heatproof import engine
from heatproof.duration import duration
from heatproof.errors import BadInput
from heatproof.executors import Executor, Workers, executor
from heatproof.results import Results
from heatproof.run.engine_choices import engine_of, settle
from heatproof.run.loop import run
from heatproof.run.pace import Pace, Progress, Show
from heatproof.run.plan import Setting
from heatproof.run.plan import in_words as plan_in_words
from heatproof.run.plan import settings as settings_of
from heatproof.run.premises import check
from heatproof.run.shards import shards
from heatproof.run.until import Solid, prepared
from heatproof.spec.study import Study
from heatproof.stats.power import Plan, plan

PILOT = 20  # pictures of each data set
LONGEST = 120.0  # seconds that a pilot may take


@dataclass(frozen=True)
class Comparison:
    """What the planned pictures can show under one metric, data set and model."""

    metric: str
    dataset: str
    model: str
    pictures: int
    plans: Sequence[Plan]
    reason: str = ""  # why there are none


@dataclass(frozen=True)
class Forecast:
    """What will be run, how long it takes, and which differences it can show."""

    studies: Sequence[Study]
    settings: Sequence[Setting]
    pilot: int  # pictures of each data set that were judged to know what they show; 0: it would take too long
    seconds: float  # of the whole run, from one picture
    workers: int
    comparisons: Sequence[Comparison]
    until: Solid | None = None


def forecast(
    studies: Sequence[Study],
    *,
    device: str = "auto",
    workers: Workers = 1,
    on: str | Executor = "local",
    until: Solid | None = None,
    show: Show = lambda progress: None,
) -> Forecast:
    """Measure every unit on one picture and, where that is affordable, judge a few pictures of each data set.

    Nothing of it is kept. `show` is called with what is being measured, which takes as long as one picture of the run.
    """
    studies = list(studies) if until is None else prepared(studies, until)
    place = engine.pick(device)
    with closing(executor(on) if isinstance(on, str) else on) as crew:
        count = crew.how_many(workers, place)
    settings = [setting for study in studies for setting in settings_of(study)]
    with engine_of("auto"):
        seconds = _seconds(studies, place, count, show)
    pictures = min((min(PILOT, one.pictures) for one in settings), default=0)
    share = max((min(PILOT, one.pictures) / one.pictures for one in settings if one.pictures), default=1.0)
    if share * seconds * count > LONGEST:
        return Forecast(studies, settings, 0, seconds, count, (), until)
    few = [dataclasses.replace(one, limit=min(PILOT, one.limit or PILOT), shard=PILOT) for one in studies]
    with TemporaryDirectory() as folder:
        pilot = run(few, Path(folder), device=device, pace=Pace(show))
    return Forecast(studies, settings, pictures, seconds, count, list(_comparisons(pilot, settings, until)), until)


def _seconds(studies: Sequence[Study], place: torch.device, count: int, show: Show) -> float:
    """How long the whole run takes, from one picture of every data set under every method and metric."""
    work = [shard for one in studies for shard in shards(one, place)]
    check(work, lambda shard: False, lambda done, total: show(Progress("checking", done, total)))
    pace = Pace(show, fewest=1)
    with engine.threads_for((shard.model for shard in work), one=count > 1):
        settle(work, count)
        pace.begin(work, lambda shard: shard.units, count)
    return pace.expected or 0.0


def _comparisons(pilot: Results, settings: Sequence[Setting], until: Solid | None) -> Iterator[Comparison]:
    cards = []
    for metric in pilot.metrics:
        if not pilot.info.metric(metric).ranks:
            continue
        for dataset, model in pilot.settings:
            with suppress(BadInput):  # a metric of another study
                wide = pilot.table(metric, dataset=dataset, model=model)
                wide = wide[[name for name in wide.columns if not pilot.is_control(name)]]
                if wide.shape[1] > 1:
                    cards.append((metric, dataset, model, wide))
    for metric, dataset, model, wide in cards:
        pictures = max(one.pictures for one in settings if (one.dataset, one.model) == (dataset, model))
        alpha = 0.05 if until is None else until.alpha
        try:
            yield Comparison(
                metric, dataset, model, pictures, plan(wide, max(2, pictures), alpha=alpha, cards=len(cards))
            )
        except BadInput as error:
            yield Comparison(metric, dataset, model, pictures, (), str(error))


def in_words(found: Forecast) -> Iterator[str]:
    """The forecast as lines for the terminal."""
    yield from plan_in_words(found.studies)
    yield from expected_in_words(found)


def expected_in_words(found: Forecast) -> Iterator[str]:
    """How long it takes and what it can show, without what will be run."""
    at_most = "at most " if found.until else ""
    yield (
        f"Expected time: {at_most}{duration(found.seconds)} with {found.workers} "
        f"worker{_s(found.workers)}, as measured on one picture."
    )
    if not found.pilot:
        yield f"What these pictures can show is not reckoned: judging {PILOT} of them first would take too long."
    for card in found.comparisons:
        yield f"{card.metric}, {card.model} on {card.dataset}: {_shown(card, found.pilot)}"
    if found.comparisons and found.until:
        yield (
            "These numbers are those of a fixed number of pictures. A run that stops when it is solid looks more often "
            "and needs more pictures for close pairs, and fewer for clear ones."
        )


def _shown(card: Comparison, pilot: int) -> str:
    if not card.plans:
        return card.reason
    smallest, largest = (f(one.detectable for one in card.plans) for f in (min, max))
    needs = sorted(one.pictures for one in card.plans if one.pictures is not None)
    enough = sum(number <= card.pictures for number in needs)
    span = f"{smallest:.3g}" if len(card.plans) == 1 else f"{smallest:.3g} to {largest:.3g}, depending on the pair"
    text = f"{card.pictures} pictures show a mean difference (with a chance of 80 %) from this size on: {span}."
    if needs:
        least = f"{needs[0]:,}" if len(needs) == 1 else f"{needs[0]:,} to {needs[-1]:,}"
        text += (
            f" If the differences of the pilot ({pilot} pictures) are true, {enough} of {len(card.plans)} pairs are "
            f"decided; it takes {least} pictures to decide {'it' if len(card.plans) == 1 else 'them'}."
        )
    return text


def _s(count: int) -> str:
    """The ending of a plural."""
    return "" if count == 1 else "s"
