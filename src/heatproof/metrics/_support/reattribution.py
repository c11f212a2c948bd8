"""Cached re-attribution: the same method on another model or other pictures, computed once for all metrics.

Relative importance is a comparison, so each of its metrics needs a second map. Baselines and variants need the same
one; a contrast model explains the same pictures for every model it is compared with.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import Any

from torch import Tensor

from heatproof import engine, models
from heatproof.attribute import attribute
from heatproof.data.two_factor.compose import SCALE
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, NotApplicable
from heatproof.metrics._support.shared_answers import classes, content
from heatproof.spec import recipe
from heatproof.traits import method_traits
from heatproof.types import Attribution, Batch, Maps, Method, Model

KEPT_BYTES = 64 << 20

_maps: OrderedDict[tuple[str, ...], Maps] = OrderedDict()


@lru_cache(maxsize=16)
def _loaded(spec: str) -> Model:
    return models.load(spec)


def staged(spec: str, scale: tuple[float, float] = SCALE) -> tuple[Model, Batch]:
    """A model and four pictures that a metric applies to, for the conformance kit."""
    model = _loaded(spec)
    batch = TwoFactor(count=4, scale=scale).batch(range(4))
    return model, batch.aimed(classes(model, batch))


def true_classes(model: Model, batch: Batch, task: str = "") -> Tensor:
    """The true class of each picture in a task, by default the model's own, or `NotApplicable`."""
    task = task or model.task
    labels = batch.labels.get(task)
    if labels is None:
        raise NotApplicable(
            f"relative importance judges only correctly classified pictures, and these have no labels of the "
            f"task {task!r}, only {', '.join(batch.labels) or 'none at all'}"
        )
    return labels


def ask(model: Model, batch: Batch, method: Method) -> Attribution:
    """The method's maps; the latest are cached by content."""
    key = _key(model, batch, method)
    if key is not None and key in _maps:
        _maps.move_to_end(key)
        return Attribution(model, batch, method, _maps[key])
    answer = attribute(model, batch, method)
    if key is not None:
        _keep(key, answer.maps)
    return answer


def reattribute(attribution: Attribution, *, batch: Batch | None = None, model: Model | None = None) -> Maps:
    """The maps of the attribution's method for another batch or model; `NotApplicable` if they are precomputed."""
    method = attribution.explainer
    if method_traits(method).stored:
        raise NotApplicable(
            f"{recipe.label(method)} reads precomputed maps, and this metric needs maps of changed pictures, "
            "classes or models: give the method itself"
        )
    return ask(model or attribution.model, attribution.batch if batch is None else batch, method).maps


def keep(attribution: Attribution) -> None:
    """Puts existing maps into the cache: another comparison may need them."""
    key = _key(attribution.model, attribution.batch, attribution.explainer)
    if key is not None and key not in _maps:
        _keep(key, attribution.maps)


def _keep(key: tuple[str, ...], maps: Maps) -> None:
    _maps[key] = maps
    while len(_maps) > 1 and sum(kept.nbytes for kept in _maps.values()) > KEPT_BYTES:
        _maps.popitem(last=False)


def _key(model: Model, batch: Batch, method: Any) -> tuple[str, ...] | None:
    try:
        method_key = recipe.key(method)
    except BadInput:  # without a recipe it cannot be identified
        return None
    parts = [part for part in (batch.images, batch.targets, batch.regions) if part is not None]
    about = content(*parts, about=repr((batch.ids, batch.seed)))
    return model.name, model.revision, model.reading, engine.current().kind, str(model.device), method_key, about
