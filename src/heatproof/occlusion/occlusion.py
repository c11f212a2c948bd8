"""An occlusion strategy: the segments that come and go together, and the imputer that fills them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import Mean, repainted
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.registry import name_of, part
from heatproof.spec import recipe
from heatproof.traits import imputer_traits, revision_of, segmenter_traits
from heatproof.types import Batch, Images, Imputer, Keep, Logits, Model, Segmenter


@runtime_checkable
class Answerer(Protocol):
    """An imputer that hides evidence inside the network instead of painting a picture."""

    def answer(self, model: Model, images: Images, keep: Keep, /) -> Logits: ...


@runtime_checkable
class Filling(Protocol):
    """An imputer that gives the filling, finite colours or pictures; the game combines it with the images."""

    def filling(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Tensor: ...


@runtime_checkable
class BatchImputer(Protocol):
    """An imputer that needs more of the pictures than their pixels, such as their twins."""

    def for_batch(self, batch: Batch, /) -> Imputer: ...


@part
@dataclass(frozen=True)
class Occlusion:
    """A way of taking evidence away: segments that come and go together, and an imputer that replaces them."""

    imputer: Imputer = field(default_factory=Mean)
    segmenter: Segmenter = field(default_factory=Grid)
    draws: int = 5  # imputations averaged per coalition; an imputer without randomness runs once

    short: ClassVar[tuple[str, ...]] = ("imputer", "segmenter", "draws")

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise BadInput(f"draws must be at least 1, got {self.draws}")

    @property
    def name(self) -> str:
        """`mean/grid`, `train_set/slic(n=100) x3`."""
        parts = f"{recipe.label(self.imputer)}/{recipe.label(self.segmenter)}"
        changed = self.random and self.draws != Occlusion.draws
        return f"{parts} x{self.draws}" if changed else parts

    @property
    def in_words(self) -> str:
        """`25 rectangles, filled with ImageNet's mean colour`."""
        segments = segmenter_traits(self.segmenter).in_words or recipe.label(self.segmenter)
        filling = imputer_traits(self.imputer).in_words or recipe.label(self.imputer)
        return f"{segments}, filled with {filling}"

    @property
    def random(self) -> bool:
        return imputer_traits(self.imputer).random


def impute(
    imputer: Imputer, images: Images, keep: Keep, seeds: Sequence[int] | None = None, room: Images | None = None
) -> Images:
    """The images with what is not kept replaced; kept pixels are bit-identical whatever the imputer does.

    They are written into `room` if it is given: memory that was used before costs no page faults.
    """
    if isinstance(imputer, Filling):
        return repainted(images, keep, imputer.filling(images, keep, seeds=seeds), room)
    # A copy, since many rows may share one picture in memory, and a user-defined imputer may write in place.
    painted = imputer(images.clone(), keep, seeds=seeds).to(images)
    return torch.where(keep[:, None], images, painted, out=room)


def bound(imputer: Imputer, batch: Batch, rows: Sequence[int]) -> Imputer:
    """The imputer bound to these pictures of the batch, since some imputers need their ids or twins."""
    return imputer.for_batch(batch.select(rows)) if isinstance(imputer, BatchImputer) else imputer


def named(imputer: Imputer) -> str:
    """The key of an imputer's draws: its label; for one that reads files, their content instead of their path."""
    label, known, revision = recipe.label(imputer), name_of(imputer), revision_of(imputer)
    return f"{known[1]} {revision}" if known and revision and label != known[1] else label
