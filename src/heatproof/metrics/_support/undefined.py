"""Scores with a note for every image that has none."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from heatproof.types import Curve, Reason, Scored, Scores

NOT_FINITE = "the maps, or the model's answers, are too large for a finite score"
ZERO_MAP = "the map is zero everywhere"
CONSTANT_MAP = "the map is the same everywhere"


def scored(
    values: Scores,
    undefined: Mapping[str, Tensor],
    details: Mapping[str, Tensor] | None = None,
    curve: Curve | None = None,
) -> Scored:
    """The scores, NaN where one of the `undefined` conditions (B,) bool holds; the first that does is the note."""
    values = values.detach().double().cpu().clone()
    notes = [""] * len(values)
    conditions = {**undefined, NOT_FINITE: ~values.isfinite()}
    for reason, holds in reversed(conditions.items()):
        for row in holds.cpu().nonzero().flatten().tolist():
            notes[row] = reason
    missing = torch.tensor([bool(note) for note in notes], dtype=torch.bool)
    values = values.masked_fill(missing, torch.nan)
    reasons = tuple(Reason.UNDEFINED if note else None for note in notes)
    beside = {name: numbers.detach().double().cpu() for name, numbers in (details or {}).items()}
    return Scored(values, tuple(notes), curve, beside, reasons)


def is_zero(maps: Tensor) -> Tensor:
    """(B,) bool: maps without any value other than 0."""
    return (maps.flatten(1) == 0).all(1)


def is_constant(values: Tensor) -> Tensor:
    """(B,) bool: rows whose numbers are all equal; NaN counts as absent."""
    flat = values.flatten(1)
    if not flat.numel():
        return torch.ones(len(values), dtype=torch.bool, device=values.device)
    low = flat.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf).amin(1)
    high = flat.nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).amax(1)
    return low >= high
