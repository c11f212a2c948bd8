"""What a user's models and pictures bring, and what a protocol misses among it: known before any work starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from heatproof import data, models, needs
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.models._support.outputs import SIDES
from heatproof.occlusion.diffusion import priors
from heatproof.occlusion.diffusion.denoiser import check
from heatproof.questions import IN_WORDS
from heatproof.traits import ProtocolTraits
from heatproof.types import AnyMethod, Batch, Dataset, Model

Models: TypeAlias = Sequence[Model | str] | None  # what a user names; None: the protocol's own
Datasets: TypeAlias = Sequence[Dataset | str] | None
Methods: TypeAlias = Sequence[AnyMethod | str] | None


def missing(traits: ProtocolTraits, chosen: Models, datasets: Datasets) -> str:
    """What a protocol with these traits would need beside these models and pictures; empty if it has all of it.

    Embedded pictures, which stand in where none are given, bring everything.
    """
    for model in (models.load(one) if isinstance(one, str) else one for one in chosen or ()):
        if reason := dict(traits.unfit).get(model.question):
            return f"does not apply to {IN_WORDS[model.question]}: {reason}"
        if not traits.labels and model.kind == "sigmoid" and len(model.classes) > len(SIDES):
            return f"asks about one of several classes, and model {model.name!r} answers with independent labels"
    lacks = []
    if chosen is not None and len(chosen) < traits.models:
        lacks.append(f"{traits.models} models or more to compare, got {len(chosen)}")
    first = [_first(model, one) for model in chosen or () for one in datasets or ()]
    lost = {need for batch in first if len(batch) for need in needs.unmet(traits.needs, batch)}
    if traits.prior == "embedded" and not all(_drawn_by_embedded(one) for one in datasets or ()):
        lost.add("prior")
    lacks += [needs.WANTED[need] for need in traits.needs if need in lost]
    return f"needs {'; and '.join(lacks)}" if lacks else ""


def _drawn_by_embedded(dataset: Dataset | str) -> bool:
    """Whether the embedded prior has learnt such pictures; it draws others only where it is named."""
    return isinstance(data.load(dataset) if isinstance(dataset, str) else dataset, TwoFactor)


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
                    raise BadInput(f"{error}: in_distribution(prior=trained:FOLDER)") from error


def _first(model: Model | str, dataset: Dataset | str) -> Batch:
    """The first picture as this model sees it."""
    who = models.load(model) if isinstance(model, str) else model
    return data.seen_by(who, data.load(dataset) if isinstance(dataset, str) else dataset).batch((0,))
