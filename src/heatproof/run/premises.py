"""Checks before the work starts: studies that cannot succeed, methods and metrics that will have no score, and parts
that a replay cannot find again.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from heatproof import engine, needs
from heatproof.by_label import parts
from heatproof.engine import Engine
from heatproof.errors import BadInput, BadModel, HeatproofError, NotApplicable
from heatproof.models._support.undecided import PICTURES, undecided
from heatproof.run.shards import Shard, aimed, by_label
from heatproof.run.unit import watched
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import (
    caution_of,
    cost_of,
    dataset_traits,
    method_traits,
    metric_traits,
    misfit,
    needs_of,
    parts_of,
    premise_of,
)
from heatproof.types import AnyMethod, Batch, Cost, Model

CHEAP = 8  # passes: methods of no more are tried on one picture


Tried: TypeAlias = dict[tuple[Model, str, str, AnyMethod], tuple[str, str]]  # why a method fails, and its cautions


@dataclass(frozen=True)
class Hindrance:
    """A method or metric that will have no score in one place, and why."""

    kind: Literal["method", "metric", "model"]
    name: str
    place: str
    reason: str
    hinders: bool = True  # else it only calls for caution


def check(
    work: Sequence[Shard],
    finished: Callable[[Shard], bool],
    show: Callable[[int, int], None] = lambda done, total: None,
) -> list[Hindrance]:
    """What will have no score, from the first picture of every place that is not finished; warns of it.

    `show` is called with how many places are done.

    Refuses a study in which no method or no metric can have any: at once, not after hours.
    """
    first: dict[tuple[Study, Model, str], Shard] = {}
    for shard in work:
        first.setdefault((shard.study, shard.model, recipe.label(shard.dataset)), shard)
    with engine.use(Engine(always=engine.REFERENCE)):  # what it measures on one picture is nothing to go by later
        found: dict[tuple[Study, Model, str], list[Hindrance]] = {}
        tried: Tried = {}
        for place, shard in first.items():
            show(len(found), len(first))
            found[place] = [] if finished(shard) else list(_hindered(shard, tried))
    for study in dict.fromkeys(study for study, _, _ in found):
        _refuse(study, [some for (of, _, _), some in found.items() if of is study])
    every = list(dict.fromkeys(one for some in found.values() for one in some))
    # A network that is sure of ordinary pictures is trained, however even its answers to mosaics of them are.
    trained = {model.name for (_, model, _), some in found.items() if all(one.kind != "model" for one in some)}
    every = [one for one in every if not (one.kind == "model" and one.name in trained)]
    for reason, some in _by_reason([one for one in every if one.hinders]).items():
        names = list(dict.fromkeys(one.name for one in some))
        warnings.warn(f"{', '.join(names)} will have no score ({some[0].place}): {reason}", stacklevel=3)
    for reason, some in _by_reason([one for one in every if not one.hinders]).items():
        named = (one.place if one.kind == "model" else one.name for one in some)
        warnings.warn(f"{', '.join(dict.fromkeys(named))}: {reason}", stacklevel=3)
    return [one for one in every if one.hinders]


def _hindered(shard: Shard, tried: Tried) -> Iterator[Hindrance]:
    batch, _ = aimed(dataclasses.replace(shard, indices=shard.indices[:1], ids=shard.ids[:1]))
    if not len(batch):  # the first picture cannot be read: others may be
        return
    _check_classes(shard, engine.forward(shard.model, batch.images).shape[1])
    place = f"{shard.model.name} on {recipe.label(shard.dataset)}"
    here = (shard.model, recipe.label(shard.dataset), str(shard.study.target))
    for method in shard.methods:
        if (*here, method) not in tried:  # studies of one run share their methods
            tried[*here, method] = (
                _unmet(method, shard.model, batch) or _refused(method, shard.model, batch),
                cautions(method, shard.model, batch),
            )
        if reason := tried[*here, method][0]:
            yield Hindrance("method", recipe.label(method), place, reason)
    for metric in shard.study.metrics:
        if reason := _unmet(metric, shard.model, batch):
            yield Hindrance("metric", recipe.label(metric), place, reason)
    several, _ = aimed(dataclasses.replace(shard, indices=shard.indices[:PICTURES], ids=shard.ids[:PICTURES]))
    if words := undecided(shard.model, engine.forward(shard.model, several.images)):
        yield Hindrance("model", shard.model.name, place, words, hinders=False)
    for method in shard.methods:
        if words := tried[*here, method][1]:
            yield Hindrance("method", recipe.label(method), place, words, hinders=False)


def cautions(method: Any, model: Model, batch: Batch) -> str:
    """What to be careful with in a method's maps of this network; empty where there is nothing."""
    found = []
    for part in parts_of(method):
        if (caution := caution_of(part)) is not None:
            with suppress(Exception):  # what keeps the method from working at all is reported elsewhere
                found.append(caution(model, batch))
    return "; ".join(filter(None, found))


def _check_classes(shard: Shard, outputs: int) -> None:
    """Class names and labels must be those of the model's outputs."""
    model = shard.model
    if model.classes and len(model.classes) != outputs:
        raise BadModel(
            f"model {model.name!r} names {len(model.classes)} classes and answers with {outputs} outputs: give it one "
            "name for each output (factory.classes), or none"
        )
    if model.question == "value":  # labels are no values
        return
    labelled = dataset_traits(shard.dataset).class_labels
    labels = labelled() if labelled is not None and not shard.guessed else ()
    chosen = [labels[place] for place in shard.indices if place < len(labels)]
    if (most := max(chosen, default=-1)) < outputs:
        return
    message = (
        f"data set {recipe.label(shard.dataset)!r} has labels up to {most}, and model {model.name!r} answers with "
        f"{outputs} outputs, 0 … {outputs - 1}"
    )
    if by_label(shard.study):
        raise BadInput(f"{message}: number the classes as the model does, or name the sub-folders index_name")
    warnings.warn(f"{message}: how often the model is right cannot be read from them", stacklevel=4)


def _unmet(component: Any, model: Model, batch: Batch) -> str:
    """The first need of a component, or of one inside it, that this model and picture do not meet."""
    if reason := misfit(component, model.question):
        return reason
    if model.several:
        _, model, batch = parts(model, batch)[0]
    for part in parts_of(component):
        if lost := needs.unmet(needs_of(part), batch):
            return f"this data set has no {lost[0]}: give {needs.WANTED[lost[0]]}"
        if (premise := premise_of(part)) is not None:
            try:
                premise(model, batch)
            except HeatproofError as error:
                return str(error)
    return ""


def _refused(method: Any, model: Model, batch: Batch) -> str:
    """Why a method does not apply to a network, by trying it: those that look inside it are cheap."""
    tried = (part for part in parts_of(method) if isinstance(cost := cost_of(part), Cost) and sum(cost) <= CHEAP)
    with suppress(Exception):  # it becomes the reason of the rows of this picture; the next may be another matter
        try:
            watched(model, batch, next(tried))
        except NotApplicable as error:
            return str(error)
    return ""


def _refuse(study: Study, places: Sequence[Sequence[Hindrance]]) -> None:
    """Raise if no contestant, or no metric that judges one, can have a score at any place of a study."""
    contestants = [recipe.label(one) for one in study.methods if not method_traits(one).control]
    judges = [recipe.label(one) for one in study.metrics if metric_traits(one).measures != "pictures"]
    kinds: tuple[tuple[str, list[str]], ...] = (("method", contestants), ("metric", judges))
    for kind, names in kinds:
        lost = [{one.name: one.reason for one in some if one.kind == kind and one.hinders} for some in places]
        if names and lost and all(name in one for one in lost for name in names):
            which = f"protocol {study.protocol}" if study.protocol else "this study"
            raise BadInput(f"no {kind} of {which} can have a score; {names[0]}: {lost[0][names[0]]}")


def _by_reason(hindrances: Iterable[Hindrance]) -> dict[str, list[Hindrance]]:
    grouped: dict[str, list[Hindrance]] = {}
    for one in hindrances:
        grouped.setdefault(one.reason, []).append(one)
    return grouped


def warn_of_lost(studies: Sequence[Study]) -> None:
    """Warn of parts that a replay cannot find again: those without a name, unless a study file makes them."""
    parts = [part for one in studies if not one.file for part in (*one.methods, *one.metrics, *one.datasets)]
    names = dict.fromkeys(recipe.label(part) for part in parts if any(True for _ in recipe.lost(part)))
    if names:
        warnings.warn(
            f"study.json will not find {', '.join(names)} again (a lambda, a function made by another one, or an "
            "object made in Python): to replay it run this script again, or write it as a frozen dataclass or as a "
            "function at the top of a file",
            stacklevel=3,
        )
