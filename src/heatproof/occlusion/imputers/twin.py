"""The twin imputer: removal as it truly is, where the data set has each picture without its object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from heatproof.errors import NotApplicable
from heatproof.registry import imputer
from heatproof.traits import Need
from heatproof.types import Batch, Images, Imputer, Keep


@imputer
@dataclass(frozen=True)
class Twin:
    """Hidden pixels take those of the same picture without its object, where the data set has that picture.

    A reference that photographs lack: nothing else is changed, and nothing is guessed.
    """

    needs: ClassVar[tuple[Need, ...]] = ("twins",)
    in_words: ClassVar[str] = "the same picture without its object"

    def for_batch(self, batch: Batch, /) -> Imputer:
        """The imputer bound to the twins of these pictures; the game calls it before it hides parts of them."""
        if batch.twins is None:
            raise NotApplicable("twin needs each picture without its object, and this data set has no twins")
        return Bound(batch.twins)

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        raise NotApplicable("twin needs to know the data set's pictures without their object: use it inside a game")


@dataclass(frozen=True, eq=False)
class Bound:
    """A twin imputer bound to given rows."""

    twins: Images

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        return images.where(keep[:, None], self.twins)
