"""Another method applied to a network with shuffled weights: the part of its map that is not about the model."""

from __future__ import annotations

import copy
import dataclasses
import weakref
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn

from heatproof.methods.saliency import Saliency
from heatproof.registry import method
from heatproof.traits import Rule, cost_of, method_traits
from heatproof.types import Batch, Cost, Maps, Method, Model, keyed_seed

_shuffled: weakref.WeakKeyDictionary[nn.Module, dict[tuple[str, int], Model]] = weakref.WeakKeyDictionary()


def shuffled(model: Model, seed: int = 0) -> Model:
    """The model with the entries of each weight tensor in random order: same shapes and scales, nothing learnt."""
    kept = _shuffled.setdefault(model.network, {})
    key = (model.revision, seed)
    if key not in kept:
        with torch.inference_mode(False), torch.no_grad():
            network = copy.deepcopy(model.network)
            for name, weights in network.named_parameters():
                dice = torch.Generator().manual_seed(keyed_seed(seed, name))
                order = torch.randperm(weights.numel(), generator=dice).to(weights.device)
                weights.copy_(weights.flatten()[order].view_as(weights))
        kept[key] = dataclasses.replace(model, name=f"{model.name} with shuffled weights", network=network)
    return kept[key]


@method("random_weights")
@dataclass(frozen=True)
class RandomWeights:
    """Another method applied to the same network with its weights shuffled: blind to what was learnt.

    Paper: Adebayo et al. 2018, "Sanity Checks for Saliency Maps" (the idea)
    """

    method: Method = field(default_factory=Saliency)
    seed: int = 0

    control: ClassVar[bool] = True
    blind: ClassVar[bool] = True

    @property
    def signed(self) -> bool:
        return method_traits(self.method).signed

    @property
    def normalisation(self) -> Rule:
        return method_traits(self.method).normalisation

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return self.method(shuffled(model, self.seed), batch)

    def cost(self) -> Cost:
        once: Cost = cost_of(self.method) or Cost(1, 1)
        return once
