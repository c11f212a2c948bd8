"""Monotonicity: whether every segment with positive heat raises the answer, and more heat means more change."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.segment_effects import FLAT_ANSWER, segments_expected, shares, single_drops
from heatproof.metrics._support.similarity import rank_correlation
from heatproof.metrics._support.undefined import CONSTANT_MAP, ZERO_MAP, is_constant, is_zero, scored
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.uniform import Uniform
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.registry import metric
from heatproof.types import Attribution, Batch, Price, Readout, Scored, keyed_seed

STILL = 1e-6  # of the largest step: smaller ones are rounding


def revealed(ranks: Tensor) -> Tensor:
    """(n,) places, -1 for segments never shown -> (m + 1, n) bool: no segment, then one more at a time."""
    many = int(ranks.max()) + 1 if len(ranks) else 0
    return (ranks[None] >= 0) & (ranks[None] < torch.arange(many + 1)[:, None])


def ascending(values: Tensor, chosen: Tensor) -> Tensor:
    """(n,) -> (n,): the place of each chosen value, the smallest first; -1 for the others."""
    places = torch.full(values.shape, -1, dtype=torch.int64)
    rows = chosen.nonzero().flatten()
    order = values[rows].argsort(stable=True)
    places[rows[order]] = torch.arange(len(rows))
    return places


@metric
@dataclass(frozen=True)
class Monotonicity:
    """The share of steps in the direction the map predicts, as segments are added to an empty picture, weakest first.

    Segments with positive heat are added to an empty picture, where each should raise the answer, and those with
    negative heat to another, where each should lower it. Steps without a change are ignored. Weak by design: where all
    parts of a picture speak for the class, any positive map scores 1. The detail `monotone` is whether all steps go the
    right way.

    Paper: Arya et al. 2019, "One Explanation Does Not Fit All: A Toolkit and Taxonomy of AI Explainability Techniques"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Grid(8), 1))
    readout: Readout = "logit"

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    chance: ClassVar[float] = 0.5  # of signed maps

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        owned = shares(game, attribution.maps)
        pairs = [
            (revealed(ascending(row, row > 0)), revealed(ascending(-row, row < 0)))
            for row in (row[:count] for row, count in zip(owned, game.counts, strict=True))
        ]
        answers = game.value_each([torch.cat(pair) for pair in pairs])
        right, steps = torch.zeros(len(pairs)), torch.zeros(len(pairs))
        for at, ((rising, _), values) in enumerate(zip(pairs, answers, strict=True)):
            up, down = values[: len(rising)].diff(), -values[len(rising) :].diff()
            moves = torch.cat([up, down])
            counted = moves.abs() > STILL * (values.abs().max() if len(values) else 0.0)
            right[at], steps[at] = (moves[counted] > 0).sum(), counted.sum()
        undefined = {ZERO_MAP: is_zero(owned.nan_to_num(nan=0.0)), FLAT_ANSWER: steps == 0}
        return scored(right / steps, undefined, {"monotone": (right == steps).double(), "steps": steps})

    def cost(self) -> Price:
        return Price(forward=segments_expected(self.occlusion.segmenter), shared=1)


@metric
@dataclass(frozen=True)
class MonotonicityCorrelation:
    """The rank correlation between a segment's magnitude and how far the answer moves when the segment is resampled.

    The distance is the mean square of the change over several draws. The published division by the squared answer
    changes no rank and is left out.

    Paper: Nguyen & Rodríguez Martínez 2020, "On Quantitative Aspects of Model Interpretability"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Uniform(), Grid(4), 10))  # its draws are the draws
    readout: Readout = "probability"

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    follows_map: ClassVar[bool] = False  # every segment is resampled, whatever the map
    chance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not self.occlusion.random:
            raise BadInput(
                "monotonicity_correlation draws segments anew and needs an imputer that draws, such as uniform, "
                f"train_set or histogram, got {self.occlusion.name}"
            )

    def __call__(self, attribution: Attribution, /) -> Scored:
        once = dataclasses.replace(self.occlusion, draws=1)
        squares = []
        game = game_of(attribution.model, attribution.batch, once, self.readout)
        for draw in range(self.occlusion.draws):
            batch = redrawn(attribution.batch, draw)
            squares.append(single_drops(game_of(attribution.model, batch, once, self.readout)).square())
        moved = torch.stack(squares).mean(0)
        owned = shares(game, attribution.maps.abs())
        undefined = {CONSTANT_MAP: is_constant(owned), FLAT_ANSWER: is_constant(moved)}
        return scored(rank_correlation(owned, moved), undefined)

    def cost(self) -> Price:
        return Price(shared=self.occlusion.draws * (1 + segments_expected(self.occlusion.segmenter)))


def redrawn(batch: Batch, draw: int) -> Batch:
    """The batch with another seed for each draw, cached on it, so that its games are reused."""
    kept: dict[int, Batch] = vars(batch).setdefault("_redrawn", {})
    if draw == 0:
        return batch
    if draw not in kept:
        kept[draw] = dataclasses.replace(batch, seed=keyed_seed(batch.seed, "drawn anew", draw))
    return kept[draw]
