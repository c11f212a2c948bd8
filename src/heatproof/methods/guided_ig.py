"""Guided integrated gradients: a path that first moves the features with the smallest gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.baselines import Baseline, is_random, revision_of, start
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_not_negative, check_share
from heatproof.methods._support.shared_passes import doubly_softmaxed, slopes
from heatproof.methods._support.smallest_k import by_rank
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model, Readout

SOME = 1e-300  # keeps divisors above zero


class Walk:
    """The positions of features on the path, each from 0 to 1; tables are (rows, features).

    Tables are reused, since allocating new ones would take as long as the arithmetic. Single numbers per row are
    computed by numpy, whose calls cost a tenth of torch's.
    """

    def __init__(self, lengths: Tensor, fraction: float, max_dist: float) -> None:
        self.lengths, self.max_dist = lengths, max_dist
        self.position, self._total = torch.zeros_like(lengths), _numbers(lengths.sum(1))
        self._tables = [torch.empty_like(lengths) for _ in range(4)]
        self._pathless, self._highest = lengths.eq(0).to(lengths), 0.0
        self._top = lengths.new_empty(())
        self._zeros, self._ones, self._uncounted = (np.full(len(lengths), each) for each in (0.0, 1.0, 0))
        self._none = -self._ones
        self._portion, self._rounds = int(fraction * (lengths.shape[1] - 1)) + 1, int(1 / fraction) + 2
        real = np.finfo(np.dtype(str(lengths.dtype).removeprefix("torch.")))
        self._largest = float(real.max)
        self._slack = max(1e-9, 8 * float(real.eps)) * self._total.clip(min=1.0)

    def advance(self, slope: Tensor, goal: float) -> Tensor:
        """The position after the next step. The `fraction` of features with the flattest slope move, then the next
        flattest, until the mean position (weighted by length) is `goal`; none leaves the straight line by more than
        `max_dist`.
        """
        position, (room, chosen, others, steepness) = self.position, self._tables
        low, high = max(goal - self.max_dist, 0.0), min(goal + self.max_dist, 1.0)
        top = self._top.fill_(high)
        torch.sub(top, position.clamp_(min=low), out=room).mul_(self.lengths)
        gap = _numbers(room.sum(1)) - (high - goal) * self._total
        # Floats of one and zero, not booleans: many times faster than `where`. A top higher than any before leaves room
        # for every feature with a path.
        stuck = self._pathless if high > self._highest else torch.le(room, 0, out=others)
        self._highest = high
        torch.abs(slope, out=steepness).add_(stuck, alpha=self._largest)  # stuck features come last
        flattest = by_rank(steepness)
        # Finally the features up to `least` are at the top, and those up to `most` a share of the way there.
        least = most = self._none
        reached, share, count = self._zeros, self._ones, self._uncounted
        for _ in range(self._rounds):  # ties only make the portions larger, so this many are enough
            walking = gap > self._slack
            if not np.count_nonzero(walking):
                break
            bound, number = flattest(np.minimum(count + self._portion, steepness.shape[1]))
            least, most = np.where(walking, most, least), np.where(walking, bound, most)
            count = np.where(walking, number, count)
            torch.le(steepness, self._column(most), out=chosen)
            reach = _numbers(torch.mul(room, chosen, out=others).sum(1))
            more = np.maximum(reach - reached, SOME)
            share = np.where(walking, np.minimum(gap / more, 1), share)  # rows that still walk have a gap
            gap, reached = np.where(walking, gap - share * more, gap), reach
        if most is self._none:
            return position
        torch.le(steepness, self._column(least), out=others)
        others.lerp_(chosen, self._column(share))
        return position.lerp_(top, others)

    def _column(self, numbers: npt.NDArray[np.float64]) -> Tensor:
        return torch.from_numpy(numbers).to(self.position).unsqueeze(1)


def _numbers(values: Tensor) -> npt.NDArray[np.float64]:
    return values.cpu().numpy().astype(np.float64)


@method
@dataclass(frozen=True)
class GuidedIG(ChannelPooled):
    """Integrated gradients along a path that moves the features with the smallest gradients first.

    Paper: Kapishnikov et al. 2021, "Guided Integrated Gradients: An Adaptive Path Method for Removing Noise"

    The variant `lmb` takes the softmax twice, as one published code does, and then ignores `readout`.
    """

    steps: int = 200
    fraction: float = 0.25
    max_dist: float = 0.02
    baseline: Baseline = "black"
    variant: Literal["clean", "lmb"] = "clean"
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    revision = revision_of("baseline")

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_share("fraction", self.fraction, some=True)
        check_not_negative("max_dist", self.max_dist, endless=True)

    @property
    def random(self) -> bool:
        return is_random(self.baseline)

    @property
    def unfit(self) -> Unfit:
        return () if self.variant == "clean" else (("value", "its variant `lmb` takes a softmax"),)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        origin = start(self.baseline, model, batch)
        way = batch.images - origin
        walk = Walk(way.abs().flatten(1), self.fraction, self.max_dist)
        here, there, total = origin.clone(), torch.empty_like(origin), torch.zeros_like(origin)
        passes = engine.settled(model, origin, "gradient")
        for step in range(self.steps):
            slope = self._slope(model, here, batch.targets, passes)
            position = walk.advance(slope.flatten(1), (step + 1) / self.steps)
            torch.addcmul(origin, position.view_as(way), way, out=there)
            total.addcmul_(torch.sub(there, here, out=here), slope)
            here, there = there, here
        return total

    def _slope(self, model: Model, images: Images, targets: Tensor, passes: engine.Plan) -> Tensor:
        if self.variant == "lmb":
            (slope,), logits = slopes(model, images, targets[:, None], doubly_softmaxed, passes)
            inner = logits.softmax(1).softmax(1).gather(1, targets[:, None])
            return slope * inner[:, :, None, None]  # from the log-probability's slope to the probability's
        return engine.gradient(model, images, targets, self.readout, passes)[0]

    def cost(self) -> Cost:
        return Cost(self.steps, self.steps)
