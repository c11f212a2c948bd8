"""Sensitivity-n: the correlation of a random set's summed attribution with the drop without the set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.occluded_images import Samples, shown
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.occlusion.segments import totals
from heatproof.registry import metric
from heatproof.types import REMOVED, Attribution, Curve, Price, Readout, Scored


def pearson(values: Tensor, other: Tensor) -> Tensor:
    """The correlation of the last dimension; 0 where one side is constant."""
    a, b = values - values.mean(-1, keepdim=True), other - other.mean(-1, keepdim=True)
    spread = (a.square().sum(-1) * b.square().sum(-1)).sqrt()
    # Sums of equal numbers in another order differ in the last bits; this is not variation.
    flat = (a.abs().amax(-1) <= 1e-9 * values.abs().amax(-1)) | (b.abs().amax(-1) <= 1e-9 * other.abs().amax(-1))
    return torch.where(flat | (spread == 0), torch.zeros_like(spread), (a * b).sum(-1) / spread)


def smallest(values: Tensor, count: int) -> Tensor:
    """The `count` smallest values per row as bool, the first ones of equal values, without a full sort."""
    chosen = torch.empty(values.shape, dtype=torch.bool)
    for row, drawn in zip(chosen.numpy(), values.numpy(), strict=True):
        last = ranked(drawn, count - 1)
        np.less_equal(drawn, last, out=row)
        beyond = np.count_nonzero(row) - count
        if beyond:
            row[np.flatnonzero(drawn == last)[-beyond:]] = False
    return chosen


def ranked(values: npt.NDArray[np.float32], place: int) -> np.float32:
    """The value at that place in ascending order.

    For uniform draws from [0, 1) it lies near `place / n`, so only the values within six standard deviations of that
    are sorted.
    """
    share = (place + 1) / len(values)
    reach = 6 * np.sqrt(share * (1 - share) / len(values))
    low, high = np.float32(share - reach), np.float32(share + reach)
    near = values.take(np.flatnonzero((values >= low) & (values <= high)))
    inside = place - np.count_nonzero(values < low)
    if 0 <= inside < len(near):
        return np.float32(np.partition(near, inside)[inside])
    return np.float32(np.partition(values, place)[place])


@metric
@dataclass(frozen=True)
class SensitivityN:
    """The correlation, over random sets of n pixels, between their summed attribution and the drop without
    them.

    The mean over a grid of n. 1 for every n exactly where the map explains the answer as a sum.

    Paper: Ancona et al. 2018, "Towards better understanding of gradient-based attribution methods for Deep
    Neural Networks"
    """

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(Mean(), Pixels(), 1))
    readout: Readout = "logit"
    sizes: int = 8  # how many n, evenly spaced on a logarithmic scale
    smallest: float = 0.01  # share of the segments; below, the drop drowns in rounding
    largest: float = 0.8
    sets: int = 50  # random sets for each n, the same for all methods

    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "correlation with the drop")
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"
    follows_map: ClassVar[bool] = False  # sets are drawn by lot

    def __post_init__(self) -> None:
        if not 0 < self.smallest <= self.largest < 1:
            raise BadInput(f"sizes of sensitivity_n must lie within (0, 1), got {self.smallest} to {self.largest}")
        if self.sets < 3 or self.sizes < 1:
            raise BadInput(f"sensitivity_n needs at least 3 sets and 1 size, got {self.sets} and {self.sizes}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        owned = totals(game.segments, attribution.maps.to(game.segments.device), game.sizes.shape[1])
        whole = game.value(torch.ones(len(attribution.batch), 1, owned.shape[1], dtype=torch.bool))
        found = []
        for place in range(self.sizes):
            removed = self.removed(game, place)
            drops = whole - game.value(~removed)
            # Set by set: all sets at once as floats would need too much memory.
            sums = [[row.double().dot(values) for row in sets] for sets, values in zip(removed, owned, strict=True)]
            found.append(pearson(torch.tensor(sums, dtype=torch.float64), drops))
        curve = torch.stack(found, 1)
        return Scored(curve.mean(1), curve=Curve(torch.tensor(self.shares), curve))

    @property
    def shares(self) -> list[float]:
        return [float(share) for share in np.geomspace(self.smallest, self.largest, self.sizes)]

    def removed(self, game: Game, place: int) -> Tensor:
        """(B, sets, segments) bool: random sets of one size, seeded by image."""
        chosen = torch.zeros(len(game.counts), self.sets, game.sizes.shape[1], dtype=torch.bool)
        dices = game.batch.generators(f"sensitivity {place}")
        for row, count, dice in zip(chosen, game.counts, dices, strict=True):
            size = min(count - 1, max(1, round(self.shares[place] * count))) if count > 1 else 1
            row[:, :count] = smallest(torch.rand(self.sets, count, generator=dice), size)
        return chosen

    def cost(self) -> Price:
        draws = self.occlusion.draws if self.occlusion.random else 1
        return Price(shared=1 + draws * self.sizes * self.sets)

    def samples(self, attribution: Attribution, /) -> Samples:
        """The pictures the model sees: one set of each size."""
        game = game_of(attribution.model, attribution.batch, self.occlusion, self.readout)
        visible = torch.stack([~self.removed(game, place)[:, 0] for place in range(self.sizes)], 1)
        flat = game.segments.flatten(1)[:, None].expand(-1, self.sizes, -1)
        keep = visible.to(flat.device).gather(2, flat).unflatten(2, tuple(game.segments.shape[1:]))
        return Samples(shown(attribution.batch, keep, self.occlusion), (~keep).flatten(2).double().mean(2).cpu())
