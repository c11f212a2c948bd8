"""LIMA: regions in the order in which they explain most with least, by greedy submodular search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from heatproof.methods._support.field_checks import check_not_negative
from heatproof.methods._support.representation import representation_layer, representations
from heatproof.occlusion.game import Game, game_of
from heatproof.occlusion.occlusion import Occlusion, bound, impute
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.occlusion.segments import segments_of
from heatproof.registry import method
from heatproof.traits import Rule, segmenter_traits
from heatproof.types import Batch, Cost, Maps, Model, Readout


def diversity(angles: Tensor, chosen: Tensor) -> Tensor:
    """(M,): for coalitions (M, n), the sum over their segments of the angle to the nearest other one, in [0, 1]."""
    far = angles.masked_fill(torch.eye(len(angles), dtype=torch.bool), torch.inf)
    nearest = torch.where(chosen[:, None, :], far, torch.inf).amin(2)  # (M, n), of every segment to those chosen
    return torch.where(chosen & nearest.isfinite(), nearest, 0.0).sum(1)


class Search:
    """The search of one picture: the best candidate of a round goes to the front, the worst to the back."""

    def __init__(self, angles: Tensor) -> None:
        self.angles = angles  # (n, n) between the segments' representations, as shares of a half turn
        self.front: list[int] = []
        self.back: list[int] = []
        self.waiting = list(range(len(angles)))

    def asks(self) -> Tensor:
        """Coalitions: the front with each candidate, then what is left of the picture without them."""
        with_each = torch.zeros(len(self.waiting), len(self.angles), dtype=torch.bool)
        with_each[:, self.front] = True
        with_each[torch.arange(len(self.waiting)), self.waiting] = True
        return torch.cat([with_each, ~with_each])

    def learns(self, coalitions: Tensor, values: Tensor, weights: tuple[float, float, float]) -> None:
        """Takes the candidate with the largest value, and puts the one with the smallest last; ties go by number."""
        if not self.waiting:
            return
        alone, rest = values.chunk(2)
        weighed = zip(weights, (diversity(self.angles, coalitions[: len(alone)]), alone, -rest), strict=True)
        worth = sum((weight * part for weight, part in weighed), torch.zeros_like(alone))
        best, worst = int(worth.argmax()), int(worth.argmin())
        self.front.append(self.waiting[best])
        if worst != best:
            self.back.append(self.waiting[worst])
        self.waiting = [one for at, one in enumerate(self.waiting) if at not in (best, worst)]

    @property
    def order(self) -> list[int]:
        return [*self.front, *reversed(self.back)]


@method("lima")
@dataclass(frozen=True)
class LIMA:
    """Superpixels in the order of a greedy search: which give the answer when alone, and take it away when gone.

    Each round adds the superpixel with the largest gain in `consistency` · the answer to those chosen, minus
    `collaboration` · the answer to all others, plus `effectiveness` · how different those chosen look to the network,
    and puts the one with the smallest last. Maps are ranks, from 1 for the first superpixel down.

    It searches for what insertion and deletion of its own superpixels measure; such scores say that the search worked.
    Judge it by others too: by localisation, by other segments and other fillings. The published code paints what is
    hidden black; its term for the model's confidence has the weight 0 by default and is left out.

    Paper: Chen et al. 2024, "Less is More: Fewer Interpretable Region via Submodular Subset Selection"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "min_max"

    occlusion: Occlusion = field(default_factory=lambda: Occlusion(segmenter=Slic(50)))
    effectiveness: float = 0.05
    consistency: float = 1.0
    collaboration: float = 1.0
    readout: Readout = "probability"

    def __post_init__(self) -> None:
        check_not_negative("effectiveness", self.effectiveness)
        check_not_negative("consistency", self.consistency)
        check_not_negative("collaboration", self.collaboration)

    def caution(self, model: Model, batch: Batch) -> str:
        """What to be careful with, wherever it is judged."""
        return (
            "it searches for the order of superpixels that insertion and deletion reward, so these and pixel flipping "
            "say how well it searched: read localisation and scores with other segments and fillings, too"
        )

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        segments = segments_of(batch, self.occlusion.segmenter)
        game = game_of(model, batch, self.occlusion, self.readout)
        searches = [Search(angles) for angles in self._angles(game)]
        weights = (self.effectiveness, self.consistency, self.collaboration)
        while any(search.waiting for search in searches):
            coalitions_of = [search.asks() for search in searches]
            for search, coalitions, values in zip(searches, coalitions_of, game.value_each(coalitions_of), strict=True):
                search.learns(coalitions, values, weights)
        maps = []
        for search, labels in zip(searches, segments, strict=True):
            worth = torch.empty(len(search.order))
            worth[search.order] = torch.linspace(1, 0, len(search.order) + 1)[:-1]
            maps.append(worth.to(labels.device)[labels])
        return torch.stack(maps).to(batch.images)

    def _angles(self, game: Game) -> list[Tensor]:
        """For each picture, the angles between the representations of its segments, each shown alone."""
        if not self.effectiveness:
            return [torch.zeros(count, count, dtype=torch.float64) for count in game.counts]
        model, batch = game.model, game.batch
        layer = representation_layer(model, batch.images)
        found = []
        for image, count in enumerate(game.counts):
            keep = game.segments[image] == torch.arange(count, device=batch.images.device).view(-1, 1, 1)
            painter = bound(self.occlusion.imputer, batch, [image] * count)
            seeds = [batch.seeds("lima")[image]] * count
            shown = impute(painter, batch.images[image].expand(count, -1, -1, -1), keep, seeds)
            seen = representations(model, shown, layer).double().cpu()
            unit = seen / seen.norm(dim=1, keepdim=True).clamp(min=1e-12)
            found.append((unit @ unit.T).clamp(-1, 1).arccos() / torch.pi)
        return found

    def cost(self) -> Cost:
        n = segmenter_traits(self.occlusion.segmenter).expected or 25
        draws = self.occlusion.draws if self.occlusion.random else 1
        return Cost(n + 2 * draws * sum(range(n, 0, -2)), 0)
