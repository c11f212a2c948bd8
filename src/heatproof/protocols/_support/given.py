"""What a user's models and pictures bring, and what a protocol misses among it: known before any work starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heatproof import data, models
from heatproof.errors import BadInput
from heatproof.occlusion.diffusion import priors
from heatproof.occlusion.diffusion.denoiser import check
from heatproof.traits import Need, ProtocolTraits
from heatproof.types import Batch, Dataset, Model

_HAS: dict[Need, Callable[[Batch], bool]] = {
    "regions": lambda batch: batch.regions is not None,
    "twins": lambda batch: batch.twins is not None,
    "labels": lambda batch: any(bool((label >= 0).all()) for label in batch.labels.values()),
}
_WANTED: dict[Need, str] = {
    "regions": "a mask of the object in each picture (--masks FOLDER, or a column 'mask' in a table)",
    "twins": "twins: each picture without its object, too (--images 'bam(path=FOLDER)' or cutouts)",
    "labels": "labels that are the model's classes (sub-folders named index_name, or a column 'label' in a table)",
}


def missing(
    traits: ProtocolTraits, chosen: Sequence[Model | str] | None, datasets: Sequence[Dataset | str] | None
) -> str:
    """What a protocol with these traits would need beside these models and pictures; empty if it has all of it.

    Embedded pictures, which stand in where none are given, bring everything.
    """
    lacks = []
    if chosen is not None and len(chosen) < traits.models:
        lacks.append(f"{traits.models} models or more to compare, got {len(chosen)}")
    first = [_first(model, one) for model in chosen or () for one in datasets or ()]
    for need in traits.needs:
        has = _HAS.get(need)
        if has and not all(has(batch) for batch in first if len(batch)):
            lacks.append(_WANTED[need])
    return f"needs {'; and '.join(lacks)}" if lacks else ""


def check_prior(prior: Any, chosen: Sequence[Model | str], datasets: Sequence[Dataset | str]) -> None:
    """Raises `BadInput` if a prior cannot paint the pictures as these models see them."""
    denoiser = priors.find(prior)
    for model in chosen:
        for one in datasets:
            batch = _first(model, one)
            if len(batch):
                try:
                    check(denoiser, batch.images)
                except BadInput as error:
                    raise BadInput(f"{error}: in_distribution(prior=diffusers:FOLDER)") from error


def _first(model: Model | str, dataset: Dataset | str) -> Batch:
    """The first picture as this model sees it."""
    who = models.load(model) if isinstance(model, str) else model
    return data.seen_by(who, data.load(dataset) if isinstance(dataset, str) else dataset).batch((0,))
