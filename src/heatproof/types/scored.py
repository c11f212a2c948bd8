"""What comes out: maps with what they are an answer to, and scores with what stands behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.types.batch import Batch, check_maps
from heatproof.types.components import Method
from heatproof.types.model import Model
from heatproof.types.tensors import Maps, Scores

REMOVED = "share of the picture removed"  # the usual x axis of a curve


class Curve(NamedTuple):
    """The curve a score summarises, for the report: (B, K) each, or (K,) if all images share it."""

    x: Tensor
    y: Tensor


class Reason(StrEnum):
    """Why there is no score."""

    NOT_APPLICABLE = "not_applicable"  # the method or metric does not fit this model or these pictures
    UNDEFINED = "undefined"  # the metric has no value for this picture
    FAILED = "failed"  # an error; the next run tries again
    UNREADABLE = "unreadable"  # the picture could not be read


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores with details, notes and the curve behind them.

    `details` are further numbers per image by name: controls, the share of ties, whether a patch was verified. They
    go into the run's tables. `notes` are remarks for people, one per image, never parsed: a caveat, or why there is no
    score. A NaN with a note is undefined, one without is a defect of the metric, unless `reasons` says otherwise.
    `curve` is the curve that a score summarises.
    """

    values: Scores
    notes: tuple[str, ...] = ()
    curve: Curve | None = None
    details: Mapping[str, Tensor] = field(default_factory=dict)  # each (B,); NaN where there is none
    reasons: tuple[Reason | None, ...] = ()  # per image: why it has no score; None if it has one

    def reason(self, row: int) -> Reason | None:
        """Why an image has no score; None if it has one."""
        given = self.reasons[row] if self.reasons else None
        if given is not None or math.isfinite(float(self.values[row])):
            return given
        return Reason.UNDEFINED if self.notes and self.notes[row] else Reason.FAILED


@dataclass(frozen=True, eq=False)
class Attribution:
    """Maps with the model, batch and method they come from. Maps made elsewhere have no method."""

    model: Model
    batch: Batch
    method: Method | None
    maps: Maps

    def __post_init__(self) -> None:
        check_maps(self.maps, self.batch)

    @property
    def explainer(self) -> Method:
        """The method, for metrics that explain again: other pictures, another model. Raises if there are only maps."""
        if self.method is None:
            raise NotApplicable(
                "this metric explains again, on other pictures or another model, and needs the method that made the "
                "maps: got maps alone; judge the method itself (a study, or heatproof.run)"
            )
        return self.method
