"""The blind controls that every protocol judges beside its methods."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.methods.controls import Centre, Constant, Edges, Random
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.types import AnyMethod


def blind_controls() -> list[AnyMethod]:
    """Noise, edges, a bump in the centre and a constant map: what a score is worth without looking at the model."""
    return [Random(), Edges(), Centre(), Constant()]


def with_controls(
    methods: Sequence[AnyMethod | str], controls: Sequence[AnyMethod] | None = None
) -> list[AnyMethod | str]:
    """The methods, then every control that is not among them; the blind ones unless others are given.

    A score of 0.3 reads as a success until a constant map reaches 0.4 beside it.
    """
    named = {recipe.label(parse("method", one) if isinstance(one, str) else one) for one in methods}
    wanted = blind_controls() if controls is None else controls
    return [*methods, *(one for one in wanted if recipe.label(one) not in named)]
