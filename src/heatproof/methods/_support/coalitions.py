"""Attributions from the occlusion game: what a segment is worth to the model, alone, last, or on average.

They share the game with the pixel-flipping metrics: a coalition that one of them has evaluated is free for the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Generator, Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.game import Game, Occlusion, game_of
from heatproof.occlusion.segments import segments_of
from heatproof.traits import Rule, segmenter_traits
from heatproof.types import Batch, Cost, Maps, Model, Readout

# log_odds is the value function of the pixel-flipping paper, log2 of the probability smoothed by pseudo-counts.
Scale: TypeAlias = Readout | Literal["log_odds"]
_COUNTS = 10_000.0
MOST_ENUMERATED = 16


class Estimate(NamedTuple):
    """For one image, (n,) float64 each: what every segment is worth, and the standard error of that estimate."""

    values: Tensor
    errors: Tensor


class Plan(NamedTuple):
    """The coalitions (M, n) to evaluate for one image, and how to conclude from their values (M,)."""

    coalitions: Tensor
    conclude: Callable[[Tensor], Estimate]


def exact_shapley(n: int) -> Plan:
    """All 2^n coalitions, each marginal contribution at its Shapley weight."""
    coalitions = _all_coalitions(n)
    weights = torch.tensor([1 / (n * comb(n - 1, size)) for size in range(n)], dtype=torch.float64)
    codes, sizes = torch.arange(2**n), coalitions.sum(1)

    def conclude(values: Tensor) -> Estimate:
        found = []
        for player in range(n):
            without = codes[~coalitions[:, player]]
            gains = values[without | (1 << player)] - values[without]
            found.append((weights[sizes[without]] * gains).sum())
        return _certain(torch.stack(found))

    return Plan(coalitions, conclude)


def sampled_shapley(n: int, permutations: int, generator: Generator) -> Plan:
    """Marginal contributions along random orders and their reverses; every coalition serves all segments."""
    halves = torch.stack([torch.randperm(n, generator=generator) for _ in range(permutations // 2)])
    orders = torch.stack([halves, n - 1 - halves], 1).flatten(0, 1)  # place of each player; pairs side by side
    coalitions = orders[:, None, :] < torch.arange(n + 1)[None, :, None]

    def conclude(values: Tensor) -> Estimate:
        gains = values.view(len(orders), n + 1).diff(dim=1).gather(1, orders)
        pairs = gains.view(-1, 2, n).mean(1)  # the two orders of a pair depend on each other, pairs do not
        spread = pairs.std(0) if len(pairs) > 1 else torch.full((n,), torch.nan, dtype=torch.float64)
        return Estimate(pairs.mean(0), spread / len(pairs) ** 0.5)

    return Plan(coalitions.flatten(0, 1), conclude)


def regressed_shapley(n: int, samples: int, generator: Generator) -> Plan:
    """KernelSHAP: weighted least squares on coalitions and their complements; exact where all of them fit."""
    ends = torch.tensor([[False] * n, [True] * n])
    if n < 2:
        return Plan(ends, lambda values: _certain(values.diff()))
    exact = n <= MOST_ENUMERATED and 2**n - 2 <= samples
    if exact:
        inner = _all_coalitions(n)[1:-1]
        kernel = [(n - 1) / (comb(n, size) * size * (n - size)) for size in inner.sum(1).tolist()]
        weights = torch.tensor(kernel, dtype=torch.float64)
    else:
        needed = 2 * (n - 1)  # n - 1 pairs: a complement repeats the equation of its coalition
        if samples < needed:
            raise BadInput(f"samples must be at least {needed} for a picture of {n} segments, got {samples}")
        sizes = torch.arange(1, n, dtype=torch.float64)
        drawn = torch.multinomial(1 / (sizes * (n - sizes)), samples // 2, True, generator=generator) + 1
        places = torch.rand(len(drawn), n, generator=generator).argsort(1).argsort(1)
        half = places < drawn[:, None]
        inner = torch.cat([half, ~half])
        weights = torch.ones(len(inner), dtype=torch.float64)

    def conclude(values: Tensor) -> Estimate:
        share = (values[1] - values[0]) / n
        known = inner.double()
        size = known.sum(1)
        # Solve for the worth beyond an equal share, which sums to zero: so efficiency holds, and segments that an
        # unlucky sample cannot separate get the same value.
        x = known - size[:, None] / n
        y = values[2:] - values[0] - size * share
        root = weights.sqrt()[:, None]
        solved = torch.linalg.lstsq(x * root, y[:, None] * root, driver="gelsd").solution[:, 0]
        worth = solved + share
        return _certain(worth) if exact else Estimate(worth, _regression_errors(x, y - x @ solved))

    return Plan(torch.cat([ends, inner]), conclude)


def _regression_errors(x: Tensor, left: Tensor) -> Tensor:
    """(n,) standard errors of a regression on coalitions followed by their complements, from its residuals `left`.

    The jackknife over pairs, which were drawn independently: how far the estimate moves when one is left out. NaN
    where the pairs, or all but one of them, do not separate all segments.
    """
    pairs = len(x) // 2
    pull = torch.linalg.pinv(x)
    weight = (x.T * pull).sum(0)[:pairs] * 2  # of a pair in its own fit; the two rows of a pair are opposite
    moved = (pull * left)[:, :pairs] + (pull * left)[:, pairs:]
    separated = weight.sum() > x.shape[1] - 1.5  # the weights add up to the rank
    free = torch.where((weight < 1 - 1e-9) & separated, 1 - weight, torch.nan)
    errors: Tensor = (moved / free).square().sum(1).sqrt()
    return errors


def last_gains(n: int) -> Plan:
    """The drop of the answer when one segment leaves the whole picture."""
    coalitions = torch.cat([torch.ones(1, n, dtype=torch.bool), ~torch.eye(n, dtype=torch.bool)])
    return Plan(coalitions, lambda values: _certain(values[0] - values[1:]))


def first_gains(n: int) -> Plan:
    """The rise of the answer when one segment alone is shown."""
    coalitions = torch.cat([torch.zeros(1, n, dtype=torch.bool), torch.eye(n, dtype=torch.bool)])
    return Plan(coalitions, lambda values: _certain(values[1:] - values[0]))


def _certain(values: Tensor) -> Estimate:
    return Estimate(values, torch.zeros_like(values))


def _all_coalitions(n: int) -> Tensor:
    """(2^n, n): row r shows the segments whose bits are set in r."""
    codes = np.arange(2**n, dtype=np.int64)
    return torch.from_numpy(((codes[:, None] >> np.arange(n)) & 1).astype(bool))


def estimates(game: Game, plans: Sequence[Plan], scale: Scale) -> list[Estimate]:
    """Evaluate the plans of all images in one call to the game, and conclude for each image."""
    values = values_of(game, [plan.coalitions for plan in plans], scale)
    return [plan.conclude(value) for plan, value in zip(plans, values, strict=True)]


def values_of(game: Game, coalitions: Sequence[Tensor], scale: Scale) -> list[Tensor]:
    """The values of each image's coalitions on this scale; log odds up to a constant, which cancels in differences."""
    values = game.value_each(coalitions)
    return [(_COUNTS * value + 1).log2() for value in values] if scale == "log_odds" else list(values)


@dataclass(frozen=True)
class Coalitional(ABC):
    """A method that evaluates coalitions: how evidence is taken away, and on which scale the answer is read."""

    occlusion: Occlusion = field(default_factory=Occlusion)
    readout: Scale = "logit"
    signed: ClassVar[bool] = True
    normalisation: ClassVar[Rule] = "positive"

    @abstractmethod
    def plan(self, n: int, generator: Generator) -> Plan:
        """The coalitions of n segments to evaluate."""

    @abstractmethod
    def evaluations(self, n: int) -> int:
        """The largest number of coalitions of n segments that are evaluated."""

    def estimates(self, model: Model, batch: Batch, /) -> list[Estimate]:
        """The worth of every segment with its standard error, image by image."""
        game = self.game(model, batch)
        luck = batch.generators("coalitions")
        plans = [self.plan(n, generator) for n, generator in zip(game.counts, luck, strict=True)]
        return estimates(game, plans, self.readout)

    def game(self, model: Model, batch: Batch) -> Game:
        """The game on these pictures, in which log odds are read from probabilities."""
        read: Readout = "probability" if self.readout == "log_odds" else self.readout
        return game_of(model, batch, self.occlusion, read)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        found = self.estimates(model, batch)
        segments = segments_of(batch, self.occlusion.segmenter)
        maps = [e.values.float().to(s.device)[s] for e, s in zip(found, segments, strict=True)]
        return torch.stack(maps) if maps else batch.images.new_zeros(0, *batch.images.shape[2:])

    def cost(self) -> Cost:
        n = segmenter_traits(self.occlusion.segmenter).expected or 25
        draws = self.occlusion.draws if self.occlusion.random else 1
        return Cost(draws * self.evaluations(n), 0)


@dataclass(frozen=True)
class Efficient(Coalitional):
    """One whose segments' worths add up to the value of the whole picture over that of the empty one."""

    def total(self, model: Model, batch: Batch, /) -> Tensor:
        """The sum that the worths add up to: the answer's rise over the picture with all segments hidden."""
        game = self.game(model, batch)
        ends = [torch.tensor([[True] * n, [False] * n]) for n in game.counts]
        rises = [value[0] - value[1] for value in values_of(game, ends, self.readout)]
        return torch.stack(rises) if rises else torch.zeros(0, dtype=torch.float64)

    def added(self, batch: Batch, maps: Maps, /) -> Tensor:
        """The sum of the worths in a map, where every pixel has the worth of its whole segment."""
        sums = []
        for one, segments in zip(maps.double().cpu(), segments_of(batch, self.occlusion.segmenter), strict=True):
            place = segments.cpu().flatten()
            count = place.bincount()
            sums.append((place.bincount(one.flatten(), len(count)) / count.clamp_min(1)).sum())
        return torch.stack(sums) if sums else torch.zeros(0, dtype=torch.float64)
