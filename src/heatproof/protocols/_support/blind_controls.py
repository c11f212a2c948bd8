"""The blind controls that every protocol judges beside its methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from heatproof import data
from heatproof.methods.controls import Centre, Constant, Edges, Random
from heatproof.methods.mean_region import MeanRegion
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.traits import dataset_traits, masked_of
from heatproof.types import AnyMethod, Dataset, View


def blind_controls() -> list[AnyMethod]:
    """Noise, edges, a bump in the centre and a constant map: what a score is worth without looking at the model."""
    return [Random(), Edges(), Centre(), Constant()]


def have_regions(datasets: Sequence[Dataset | str]) -> bool:
    """Whether all of these data sets bring regions."""
    return bool(datasets) and all(_has_regions(data.load(one) if isinstance(one, str) else one) for one in datasets)


def _has_regions(dataset: Dataset) -> bool:
    masked = masked_of(dataset)  # files say so without being read
    if masked is not None:
        return masked
    if dataset_traits(dataset).uncut:
        dataset = dataclasses.replace(dataset, view=View(32))  # type: ignore[type-var]
    return dataset.batch((0,)).regions is not None


def with_controls(
    methods: Sequence[AnyMethod | str], controls: Sequence[AnyMethod] | None = None, *, regions: bool = False
) -> list[AnyMethod | str]:
    """The methods, then every control that is not among them; the blind ones unless others are given.

    A score of 0.3 reads as a success until a constant map reaches 0.4 beside it. Pictures with `regions` have one more,
    their mean region.
    """
    named = {recipe.label(parse("method", one) if isinstance(one, str) else one) for one in methods}
    wanted = [*(blind_controls() if controls is None else controls), *([MeanRegion()] if regions else [])]
    return [*methods, *(one for one in wanted if recipe.label(one) not in named)]
