"""`heatproof.audit`: any metrics on trial, on one model and some pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

from heatproof import data, engine, models
from heatproof.audit.judges.bench import Bench, evidence
from heatproof.audit.judges.graded_maps import Truth, digest
from heatproof.errors import BadInput
from heatproof.methods.controls import Oracle
from heatproof.models._support.outputs import recognised
from heatproof.spec import recipe
from heatproof.spec.parse import components, parse
from heatproof.stats.judges.evidence import Evidence, of_plain, plain
from heatproof.stats.judges.panel import Panel
from heatproof.stats.judges.rules import cards
from heatproof.storage import sealed_json
from heatproof.storage.atomic_file import write_atomically
from heatproof.types import AnyMethod, Batch, Dataset, Metric, Model

METHODS = "saliency,input_x_gradient,integrated_gradients(steps=16),grad_cam,lrp"
METRICS = (
    "srg,mif,insertion,deletion,single_deletion,saco,average_drop,auc_iou,pointing_game,relevance_mass,relevance_rank,"
    "sparseness"
)

EDITION = 1  # of what is asked of every metric: evidence of another one is not comparable

Watch: TypeAlias = Callable[[int, int, str], None]


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
    store: Path | None = None,
    stored_only: bool = False,
    watch: Watch | None = None,
) -> Panel:
    """A judge's card for each metric, on pictures that the model gets right.

    `truth` is the method whose map counts as right, by default the pictures' own regions, or the occlusion method
    where they have none: hiding each place and looking. `disturbances` of pictures and of weights are drawn for
    MetaQuantus's tests; 0 leaves these out. In the folder `store` what is known of each metric is kept: the same
    audit again, with more metrics or after a stop, goes on from there; `stored_only` leaves out what is not there yet.
    """
    judges: list[Metric] = _components("metric", metrics)
    made: list[AnyMethod] = _components("method", methods)
    if not judges or len(made) < 2:
        raise BadInput(f"an audit needs a metric and two methods, got {len(judges)} and {len(made)}")
    on, dataset = _bench(model, images, made, truth, limit, disturbances, seed)
    found = []
    for done, judge in enumerate(judges):
        if watch:
            watch(done, len(judges), recipe.label(judge))
        one = _stored(judge, on, store) if store else None
        if one is None and not stored_only:
            one = evidence(judge, on)
            if store:
                store.mkdir(parents=True, exist_ok=True)
                write_atomically(_file(judge, on, store), sealed_json.written(plain(one)))
        found += [one] if one else []
    return Panel(
        on.model.name,
        dataset,
        len(on.batch),
        recipe.label(on.truth.method),
        tuple(on.real),
        cards(found),
        sum(one.seconds for one in found),
    )


def _bench(
    model: Model | str,
    images: Dataset | Batch | str,
    methods: Sequence[AnyMethod],
    truth: AnyMethod | str,
    limit: int,
    disturbances: int,
    seed: int,
) -> tuple[Bench, str]:
    """The bench, and the name of its pictures."""
    who = models.load(model) if isinstance(model, str) else model
    with torch.no_grad():
        who, batch, name = _pictures(who, images, limit, seed)
    reference = parse("method", truth) if isinstance(truth, str) and truth else truth or _truth_of(batch)
    real: Mapping[str, Any] = {recipe.label(one): one for one in methods}
    return Bench(Truth(reference), real, who, batch, disturbances), name


def _file(judge: Metric, on: Bench, store: Path) -> Path:
    """Where the evidence on a metric is stored: named by all that it depends on."""
    about = [
        EDITION,
        recipe.plain(judge),
        on.model.revision,
        [digest(image) for image in on.batch.images],
        [] if on.batch.regions is None else [digest(one.float()[None]) for one in on.batch.regions],
        [list(on.batch.ids), on.batch.targets.tolist(), on.batch.seed],
        recipe.plain(on.truth),
        [recipe.plain(one) for one in on.real.values()],
        on.draws,
    ]
    return store / f"{recipe.key(about)}.json"


def _stored(judge: Metric, on: Bench, store: Path) -> Evidence | None:
    """The evidence of an earlier audit of the same, if it is there and sound."""
    file = _file(judge, on, store)
    try:
        return of_plain(sealed_json.read(file.read_bytes(), file), file)
    except (FileNotFoundError, sealed_json.Damaged):
        return None


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
