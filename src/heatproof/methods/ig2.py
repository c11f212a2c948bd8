"""IG2: gradients along the way from a picture to its counterfactual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.baselines import FIXED, Baseline, background, is_random, revision_of, starts
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count, check_positive
from heatproof.methods._support.representation import latest_representation, representation_layer, representations
from heatproof.methods._support.shared_passes import slopes
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Logits, Model, Readout, keyed_seed

SIDE = 224  # of the pictures for which a path's length is published


def references(source: Baseline, model: Model, batch: Batch, draws: int) -> Iterator[Images]:
    """The pictures that paths lead to, draw by draw: of a data set, those that the model takes for another class."""
    if source in (*FIXED, "uniform", "gaussian"):
        yield from starts(source, model, batch, draws)
        return
    crowd, names = background(source, model, batch.images)
    several = model.question != "value"
    answers = engine.forward(model, crowd).argmax(1).tolist() if several else [-1] * len(crowd)
    seeds = batch.seeds("ig2")
    for draw in range(draws):
        chosen = []
        for identity, target, seed in zip(batch.ids, batch.targets.tolist(), seeds, strict=True):
            others = [at for at, name in enumerate(names) if name != identity and answers[at] != target]
            if not others:
                raise NotApplicable(
                    f"ig2 needs a reference picture of another class for {identity!r}, and the model takes all "
                    f"{len(names)} of the background data set for class {target}: give a larger one"
                )
            chosen.append(others[keyed_seed(seed, draw) % len(others)])
        yield crowd[chosen]


@method("ig2")
@dataclass(frozen=True)
class IG2(ChannelPooled):
    """The answer's gradient along a path from the picture to a counterfactual, which a second gradient leads to.

    Each step of equal length moves the picture towards the representation (what the last linear layer is given) of a
    reference picture, so that only what tells the two apart changes. With `background` a data set of training images
    the references are those that the model takes for another class, as in the paper; the default, the picture's own
    blur, needs no data: what it lacks are the shapes. Random backgrounds are averaged over `draws`. Maps add up to
    about the answer's difference between the picture and the end of the path. `length` is that of the path on a picture
    of 224×224 pixels, in [0, 1] per value; it grows with the side.

    Paper: Zhuo & Ge 2024, "IG²: Integrated Gradient on Iterative Gradient Path for Feature Attribution"
    """

    steps: int = 200
    length: float = 1.0
    background: Baseline = "blur"
    draws: int = 4
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    revision = revision_of("background")

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("draws", self.draws)
        check_positive("length", self.length)

    @property
    def random(self) -> bool:
        return is_random(self.background)

    @property
    def _draws(self) -> int:
        return self.draws if self.random else 1

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        layer = representation_layer(model, batch.images)
        total = torch.zeros_like(batch.images)
        for pictures in references(self.background, model, batch, self._draws):
            total += self._walk(model, batch, representations(model, pictures, layer), layer)
        return total / self._draws

    def _walk(self, model: Model, batch: Batch, goals: Tensor, layer: str | None) -> Tensor:
        """One path per picture, all side by side: the sum of what each step takes from the answer."""
        here, total = batch.images, torch.zeros_like(batch.images)
        height, width = here.shape[2:]
        step = self.length * (height * width) ** 0.5 / SIDE / self.steps
        aims = torch.stack([batch.targets, torch.arange(len(batch), device=here.device)], 1)
        with torch.inference_mode(False):
            goals = goals.to(model.device).clone()
        with latest_representation(model, layer) as latest:

            def questions(logits: Logits, aims: Tensor) -> list[Tensor]:
                reached = latest[-1].float() if latest else logits
                distance = (reached - goals[aims[:, 1]]).square().mean(1)
                return [distance, model.read(logits, aims[:, 0], self.readout)]

            way = engine.settled(model, here, "gradient")
            for _ in range(self.steps):
                (apart, slope), _ = slopes(model, here, aims, questions, way)
                direction = apart / apart.flatten(1).norm(dim=1).clamp(min=1e-30).view(-1, 1, 1, 1)
                there = (here - step * direction).clamp(0, 1)
                total.addcmul_(here - there, slope)
                here = there
        return total

    def cost(self) -> Cost:
        return Cost(self.steps * self._draws + 1, 2 * self.steps * self._draws)
