"""Per segment: the map's sum, and the model's drop without the segment."""

from __future__ import annotations

import torch
from torch import Tensor

from heatproof.occlusion.game import Game
from heatproof.occlusion.segments import totals
from heatproof.traits import segmenter_traits
from heatproof.types import Maps

FLAT_ANSWER = "the model's answer does not change, whatever is hidden"


def shares(game: Game, maps: Maps) -> Tensor:
    """(B, n) float64: the map's sum over each segment; NaN where an image has fewer than n segments."""
    found = totals(game.segments, maps.to(game.segments.device), game.sizes.shape[1])
    return found.masked_fill(game.sizes == 0, torch.nan)


def single_drops(game: Game) -> Tensor:
    """(B, n) float64: how much the readout falls when one segment alone is hidden; NaN where there is none."""
    count = game.sizes.shape[1]
    coalitions = torch.cat([torch.ones(1, count, dtype=torch.bool), ~torch.eye(count, dtype=torch.bool)])
    values = game.value(coalitions.expand(len(game.sizes), -1, -1))
    return (values[:, :1] - values[:, 1:]).masked_fill(game.sizes == 0, torch.nan)


def segments_expected(segmenter: object, otherwise: int = 25) -> int:
    """How many segments a segmenter is set to make, for a metric's price."""
    return segmenter_traits(segmenter).expected or otherwise
