"""A unit of work: explain some pictures, judge the maps. What goes wrong becomes a row with a reason."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heatproof.attribute import attribute
from heatproof.by_label import is_several, split
from heatproof.engine import place
from heatproof.engine.machine import out_of_memory
from heatproof.errors import BadInput, HeatproofError, NotApplicable, OutOfMemory
from heatproof.occlusion.game import NOTHING_CHANGES, flat_rows
from heatproof.run.columns import Unit
from heatproof.spec import recipe
from heatproof.traits import misfit
from heatproof.types import AnyMethod, Attribution, Batch, Metric, Model, Reason, Scored

OK = "ok"  # the status of a row with a score; that of others is the reason why there is none


@dataclass(frozen=True, eq=False)
class Explained:
    """Maps of the pictures that could be explained, and why the others could not."""

    attribution: Attribution | None
    rows: tuple[int, ...]
    reasons: Mapping[int, tuple[str, str]]  # row -> (status, note)
    seconds: float  # per picture


def explain(model: Model, batch: Batch, method: AnyMethod) -> Explained:
    """Explain a batch; if that fails, picture by picture, so that one bad picture costs one row."""
    began = time.perf_counter()
    every = tuple(range(len(batch)))
    reasons: dict[int, tuple[str, str]] = {}
    attribution = None
    rows = every
    if every:
        try:
            attribution = watched(model, batch, method)
        except NotApplicable as error:
            rows, reasons = (), dict.fromkeys(every, (Reason.NOT_APPLICABLE, str(error)))
        except Exception:
            maps = []
            for row in every:
                try:
                    maps.append(watched(model, batch.select([row]), method).maps)
                except Exception as error:
                    reasons[row] = (Reason.FAILED, message(error))
            rows = tuple(row for row in every if row not in reasons)
            if rows:
                attribution = Attribution(model, batch.select(rows), method, torch.cat(maps))  # type: ignore[arg-type]
    return Explained(attribution, rows, reasons, (time.perf_counter() - began) / max(1, len(batch)))


def watched(model: Model, batch: Batch, method: AnyMethod) -> Attribution:
    """The maps of a method. User code must leave model and pictures as they were.

    If it did not they are restored: the next method would otherwise be judged on something else.
    """
    if not _holds_user_code(method):
        return attribute(model, batch, method)
    images = batch.images.clone()
    weights = {name: value.clone() for name, value in model.network.state_dict().items() if isinstance(value, Tensor)}
    try:
        attribution = attribute(model, batch, method)
    finally:
        changed = []
        if not torch.equal(batch.images, images):
            batch.images.copy_(images)
            changed.append("the pictures")
        state = model.network.state_dict()
        moved = [name for name, value in weights.items() if not torch.equal(state[name], value)]
        with torch.no_grad():
            for name in moved:
                state[name].copy_(weights[name])
        changed += ["the model's weights"] if moved else []
        changed += ["its training mode"] if model.network.training else []
        model.network.eval()
    if changed:
        raise BadInput(f"a method must leave everything as it was, and this one changed {' and '.join(changed)}")
    return attribution


def _holds_user_code(method: AnyMethod) -> bool:
    try:
        return '"source"' in json.dumps(recipe.plain(method))
    except BadInput:
        return True


def judge(explained: Explained, batch: Batch, ids: Sequence[str], metric: Metric) -> Unit:
    """The rows of one metric for every picture of the shard, readable or not."""
    began = time.perf_counter()
    found: dict[str, tuple[float | None, str, str]] = {}
    curves: dict[str, tuple[list[float], list[float]]] = {}
    beside: dict[str, dict[str, float]] = {}
    attribution = explained.attribution
    if attribution is not None:
        for part, scored in _scored(attribution, metric):
            for i, identity in enumerate(part):
                if isinstance(scored, tuple):
                    found[identity] = (None, *scored)
                    continue
                note = scored.notes[i] if scored.notes else ""
                value = float(scored.values[i])
                reason = scored.reason(i)
                if reason is None:
                    found[identity] = (value, OK, note)
                else:
                    found[identity] = (None, reason, note or f"the score is {value}")
                beside[identity] = {name: float(numbers[i]) for name, numbers in scored.details.items()}
                if scored.curve is not None and reason is None:  # no curve without a score
                    x, y = (side if side.ndim == 1 else side[i] for side in scored.curve)
                    curves[identity] = (x.double().tolist(), y.double().tolist())
    for row, (status, note) in explained.reasons.items():
        found[batch.ids[row]] = (None, status, note)
    for identity, why in batch.missing.items():
        found[identity] = (None, Reason.UNREADABLE, why)
    rows = [found[identity] for identity in ids]
    lines = [curves.get(identity, ([], [])) for identity in ids]
    names = dict.fromkeys(name for numbers in beside.values() for name in numbers)
    return Unit(
        images=list(ids),
        values=[value for value, _, _ in rows],
        statuses=[status for _, status, _ in rows],
        notes=[note for _, _, note in rows],
        seconds=explained.seconds + (time.perf_counter() - began) / max(1, len(ids)),
        x=[x for x, _ in lines] if curves else None,
        y=[y for _, y in lines] if curves else None,
        details={name: [_finite(beside.get(one, {}).get(name)) for one in ids] for name in names},
        machine=place(batch.images.device),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _scored(attribution: Attribution, metric: Metric) -> Iterator[tuple[tuple[str, ...], Scored | tuple[str, str]]]:
    """Scores of all pictures at once, or one by one where that fails, or the reason why there are none.

    Of a model with several labels or values the rows of each are judged by themselves.
    """
    if is_several(attribution.model, attribution.batch):
        for _, part in split(attribution):
            yield from _scored(part, metric)
        return
    batch = attribution.batch
    if reason := misfit(metric, attribution.model.question):
        yield batch.ids, (Reason.NOT_APPLICABLE, reason)
        return
    try:
        yield batch.ids, _where_defined(scored_of(metric(attribution), len(batch)), attribution, metric)
    except NotApplicable as error:
        yield batch.ids, (Reason.NOT_APPLICABLE, str(error))
    except Exception as error:
        if len(batch) == 1:
            yield batch.ids, (Reason.FAILED, message(error))
            return
        for row in range(len(batch)):
            alone = dataclasses.replace(attribution, batch=batch.select([row]), maps=attribution.maps[[row]])
            yield from _scored(alone, metric)


def _where_defined(scored: Scored, attribution: Attribution, metric: Metric) -> Scored:
    """The scores without those of values that do not change at all, and so have no unit."""
    model, batch = attribution.model, attribution.batch
    flat = flat_rows(model, batch, metric) if model.question == "value" else torch.zeros(len(batch), dtype=torch.bool)
    if not bool(flat.any()):
        return scored
    rows = range(len(batch))
    notes = tuple(NOTHING_CHANGES if flat[row] else (scored.notes[row] if scored.notes else "") for row in rows)
    reasons = tuple(Reason.UNDEFINED if flat[row] else scored.reason(row) for row in rows)
    values = scored.values.masked_fill(flat.to(scored.values.device), torch.nan)
    return dataclasses.replace(scored, values=values, notes=notes, reasons=reasons)


def scored_of(answer: Any, count: int) -> Scored:
    scored = answer if isinstance(answer, Scored) else Scored(answer)
    if not isinstance(scored.values, torch.Tensor) or scored.values.shape != (count,):
        shape = tuple(getattr(scored.values, "shape", ()))
        raise BadInput(f"a metric must return one score per picture, shape ({count},), got {shape}")
    for name, numbers in scored.details.items():
        if not isinstance(numbers, torch.Tensor) or numbers.shape != (count,):
            shape = tuple(getattr(numbers, "shape", ()))
            raise BadInput(f"detail {name!r} of a metric must be one number per picture, shape ({count},), got {shape}")
    return scored


def message(error: BaseException) -> str:
    """What went wrong, for people: heatproof's errors are sentences, of others the kind is named too."""
    if out_of_memory(error):
        return str(OutOfMemory.during(f"({type(error).__name__})"))
    return str(error) if isinstance(error, HeatproofError) else f"{type(error).__name__}: {error}"
