"""The constant imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import coloured, repainted
from heatproof.registry import imputer
from heatproof.types import Images, Keep


@imputer
@dataclass(frozen=True)
class Constant:
    """Hidden pixels take one given colour, black by default; one number stands for all channels."""

    colour: tuple[float, ...] = (0.0,)

    @property
    def in_words(self) -> str:
        return "black" if not any(self.colour) else "one colour"

    def __post_init__(self) -> None:
        if isinstance(self.colour, int | float):  # the short form, as on a command line
            object.__setattr__(self, "colour", (float(self.colour),))
        if not self.colour or not all(0 <= value <= 1 for value in self.colour):
            raise BadInput(f"colour must hold numbers in [0, 1], got {self.colour}")

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return repainted(images, keep, self.filling(images, keep, seeds))

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor:
        return coloured(self.colour, images)
