"""`heatproof.audit`: any metrics on trial, on one model and some pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from heatproof import data, engine, models
from heatproof.audit.judges.evidence import Evidence, bench, evidence
from heatproof.audit.judges.graded_maps import Truth
from heatproof.audit.judges.judge_card import JudgeCard, judge_card, with_families
from heatproof.audit.judges.rules import flagged
from heatproof.errors import BadInput
from heatproof.methods.controls import Oracle
from heatproof.models._support.outputs import recognised
from heatproof.spec import recipe
from heatproof.spec.parse import components, parse
from heatproof.types import AnyMethod, Batch, Dataset, Metric, Model

METHODS = "saliency,input_x_gradient,integrated_gradients(steps=16),grad_cam,lrp"
METRICS = (
    "srg,mif,insertion,deletion,single_deletion,saco,average_drop,auc_iou,pointing_game,relevance_mass,relevance_rank,"
    "sparseness"
)

Watch: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Panel:
    """The cards of an audit, those that hold first, and what they were made on."""

    model: str
    dataset: str
    pictures: int
    truth: str
    methods: tuple[str, ...]
    cards: tuple[JudgeCard, ...]
    seconds: float  # of processor time in all

    def card(self, metric: str) -> JudgeCard:
        """The card of a metric, by its label."""
        found = [card for card in self.cards if card.metric == metric]
        if not found:
            raise BadInput(f"no card for {metric!r}: there are {', '.join(card.metric for card in self.cards)}")
        return found[0]


def audit(
    model: Model | str,
    images: Dataset | Batch | str,
    metrics: Sequence[Metric | str] | str = METRICS,
    *,
    methods: Sequence[AnyMethod | str] | str = METHODS,
    truth: AnyMethod | str = "",
    limit: int = 32,
    disturbances: int = 2,
    seed: int = 0,
    watch: Watch | None = None,
) -> Panel:
    """A judge's card for each metric, on pictures that the model gets right.

    `truth` is the method whose map counts as right, by default the pictures' own regions, or the occlusion method
    where they have none: hiding each place and looking. `disturbances` of pictures and of weights are drawn for
    MetaQuantus's tests; 0 leaves these out.
    """
    judges: list[Metric] = _components("metric", metrics)
    made: list[AnyMethod] = _components("method", methods)
    if not judges or len(made) < 2:
        raise BadInput(f"an audit needs a metric and two methods, got {len(judges)} and {len(made)}")
    who = models.load(model) if isinstance(model, str) else model
    with torch.no_grad():
        who, batch, name = _pictures(who, images, limit, seed)
    reference = parse("method", truth) if isinstance(truth, str) and truth else truth or _truth_of(batch)
    real = {recipe.label(one): one for one in made}
    on = bench(Truth(reference), real, who, batch, disturbances)  # type: ignore[arg-type]
    found = []
    for done, judge in enumerate(judges):
        if watch:
            watch(done, len(judges), recipe.label(judge))
        found.append(evidence(judge, on))
    cards = with_families([flagged(judge_card(one), is_constant(one)) for one in found], found)
    cards.sort(key=_merit)
    return Panel(
        who.name,
        name,
        len(batch),
        recipe.label(reference),
        tuple(real),
        tuple(cards),
        sum(one.seconds for one in found),
    )


def _merit(card: JudgeCard) -> tuple[int, int, float]:
    """Those that hold first, by agreement with the truth; frauds last, descriptions after all."""
    place = {"holds": 0, "flagged": 1, "description": 2}[card.verdict]
    agreement = card.agreement.truth.estimate
    return place, len(card.flags), -agreement if np.isfinite(agreement) else 0.0


def is_constant(found: Evidence) -> bool:
    """Whether no picture's score depends on the map."""
    known = np.where(np.isnan(found.scores), -np.inf, found.scores)
    highest = known.max(0)
    lowest = np.where(np.isnan(found.scores), np.inf, found.scores).min(0)
    return bool((highest <= lowest).all())


def _components(kind: Literal["metric", "method"], given: Sequence[object] | str) -> list[Any]:
    """Components given by name, in one text or one by one, or as they are."""
    listed = components(kind, given) if isinstance(given, str) else given
    return [parse(kind, one) if isinstance(one, str) else one for one in listed]


def _truth_of(batch: Batch) -> AnyMethod:
    return Oracle() if batch.regions is not None else parse("method", "occlusion")  # type: ignore[no-any-return]


def _pictures(model: Model, images: Dataset | Batch | str, limit: int, seed: int) -> tuple[Model, Batch, str]:
    """The first pictures that the model gets right, where it is known what is right."""
    if isinstance(images, Batch):
        return recognised(model, images.images), images, "pictures given"
    dataset = data.seen_by(model, data.load(images) if isinstance(images, str) else images)
    places = range(min(len(dataset), 4 * limit))
    if not places:
        raise BadInput(f"data set {recipe.label(dataset)!r} has no pictures")
    batch = dataset.batch(places)
    model = recognised(model, batch.images)
    answers = engine.forward(model, batch.images).argmax(1)
    labels: Mapping[str, torch.Tensor] = batch.labels
    right = answers == labels[model.task].to(answers.device) if model.task in labels else torch.ones_like(answers) > 0
    rows = right.nonzero().flatten()[:limit]
    if len(rows) < 2:
        raise BadInput(f"an audit needs two pictures that {model.name} gets right, got {len(rows)} of {len(batch)}")
    kept = batch.aimed(answers).select(rows)
    return model, replace(kept, seed=seed), recipe.label(dataset)
