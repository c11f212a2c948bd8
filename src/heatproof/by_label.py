"""A network with several labels or values, one at a time: each is a model of its own with the same network.

Its softmax would couple labels that have nothing to do with each other. Batches of such a model name the label of
each row as its target; methods and metrics see the part of each label, whose target is `yes`, or the value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from heatproof.engine.backends.eager import evaluating
from heatproof.engine.checks import check_targets
from heatproof.types import Attribution, Batch, Model

Part = tuple[list[int], Model, Batch]  # rows of the whole batch, the model of their label, and the batch of them


def is_several(model: Model, batch: Batch) -> bool:
    """Whether the model answers several questions at once; it is run on one picture if that is not known yet."""
    if model.kind != "softmax" and model.label is None and model.width is None and len(batch):
        with torch.inference_mode(), evaluating(model.network):
            model(batch.images[:1].to(model.device))
    return model.several


def parts(model: Model, batch: Batch) -> list[Part]:
    """The rows of each label. Kept with the batch, so that what is known of it is shared by all methods."""
    kept: dict[Model, list[Part]] = vars(batch).setdefault("_by_label", {})
    if model not in kept:
        check_targets(model, batch.targets, model.width or 1)
        rows: dict[int, list[int]] = {}
        for row, label in enumerate(batch.targets.tolist()):
            rows.setdefault(label, []).append(row)
        kept[model] = [
            (some, model.of(label), _aimed(model.of(label), batch.select(some))) for label, some in rows.items()
        ]
    return kept[model]


def split(attribution: Attribution) -> Iterator[tuple[list[int], Attribution]]:
    """The attribution by label, with the rows of each; itself where its model answers one question."""
    batch = attribution.batch
    if not is_several(attribution.model, batch):
        yield list(range(len(batch))), attribution
        return
    for rows, model, part in parts(attribution.model, batch):
        yield rows, dataclasses.replace(attribution, model=model, batch=part, maps=attribution.maps[rows])


def _aimed(model: Model, batch: Batch) -> Batch:
    """The batch aimed at `yes`, or at the value."""
    side = 1 if model.question == "yes_no" else 0
    return batch.aimed(batch.targets.new_full((len(batch),), side))
