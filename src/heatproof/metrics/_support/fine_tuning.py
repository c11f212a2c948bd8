"""Fine-tunes a copy of the network on masked pictures, so that masking no longer takes it out of distribution.

The copy learns to give a picture with some hidden segments the output that the network gives the whole picture.
No labels are needed. Normalisation layers keep their statistics.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from heatproof import engine, registry
from heatproof.data import seen_by
from heatproof.engine.backends.eager import evaluating
from heatproof.errors import BadInput, NotApplicable
from heatproof.occlusion.occlusion import Answerer, Occlusion, impute
from heatproof.questions import Unfit
from heatproof.spec import recipe
from heatproof.types import Dataset, Images, Model, keyed_seed

EMBEDDED = "embedded:"


@registry.part
@dataclass(frozen=True)
class FineTuning:
    """The recipe of the copy: training pictures, number of steps, learning rate.

    Without `pictures` the embedded models learn from the training split of the embedded pictures; any other model needs
    `pictures`, a data set.
    """

    unfit: ClassVar[Unfit] = (("value", "the copy learns the probabilities of classes on masked pictures"),)

    pictures: str | Dataset = ""
    count: int = 256  # of the pictures, evenly spread over the data set
    steps: int = 60
    rows: int = 16  # pictures per step
    learning_rate: float = 3e-4
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.count, self.steps, self.rows) < 1 or not self.learning_rate > 0:
            raise BadInput("count, steps, rows and learning_rate of fine_tuning must be positive")

    def __call__(self, model: Model, occlusion: Occlusion, share: float, size: tuple[int, int]) -> Model:
        """The fine-tuned copy for up to this share of hidden segments, made once and cached with the model."""
        kept: dict[object, Model] = vars(model).setdefault("_fine_tuned", {})
        key = (model.revision, recipe.key(self), recipe.key(occlusion), share, size)
        if key not in kept:
            kept[key] = self._made(model, occlusion, share, size)
        return kept[key]

    def _made(self, model: Model, occlusion: Occlusion, share: float, size: tuple[int, int]) -> Model:
        if isinstance(occlusion.imputer, Answerer):
            raise NotApplicable(
                f"{recipe.label(occlusion.imputer)} hides evidence inside the network: there are no masked pictures "
                "to fine-tune on"
            )
        images = self._images(model, size)
        wanted = engine.forward(model, images).softmax(1)
        with torch.inference_mode(False), torch.enable_grad():
            network = copy.deepcopy(model.network)
            tuned = dataclasses.replace(model, name=f"{model.name} fine-tuned on masked pictures", network=network)
            self._fit(tuned, network, images, wanted.clone(), occlusion, share)
        return tuned

    def _fit(
        self, tuned: Model, network: nn.Module, images: Images, wanted: Tensor, occlusion: Occlusion, share: float
    ) -> None:
        for parameter in network.parameters():
            parameter.requires_grad_(True)
        optimiser = torch.optim.AdamW(network.parameters(), self.learning_rate, weight_decay=0.0)
        with evaluating(network):
            for rows, masked in self._masked(images, occlusion, share):
                answers = tuned(masked.to(tuned.device)).log_softmax(1)
                loss = nn.functional.kl_div(answers, wanted[rows].to(answers), reduction="batchmean")
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
        for parameter in network.parameters():
            parameter.requires_grad_(False)
            parameter.grad = None

    def _masked(self, images: Images, occlusion: Occlusion, share: float) -> Iterator[tuple[Tensor, Images]]:
        """For each step: picture indices, and these pictures with up to `share` of their segments hidden."""
        segments = occlusion.segmenter(images)
        dice = torch.Generator().manual_seed(keyed_seed(self.seed, "fine-tuning"))
        for step in range(self.steps):
            rows = torch.randint(len(images), (self.rows,), generator=dice)
            chosen = segments[rows.to(segments.device)].flatten(1).cpu()
            count = int(chosen.max()) + 1
            largest = max(1, round(share * count))
            hidden = torch.randint(0, largest + 1, (self.rows, 1), generator=dice)
            order = torch.rand(self.rows, count, generator=dice).argsort(1).argsort(1)
            keep = (order >= hidden).gather(1, chosen).view(self.rows, *images.shape[2:]).to(images.device)
            seeds = [keyed_seed(self.seed, "fine-tuning", step, row) for row in range(self.rows)]
            shown = images[rows.to(images.device)]
            yield rows, impute(occlusion.imputer, shown, keep, seeds if occlusion.random else None)

    def _images(self, model: Model, size: tuple[int, int]) -> Images:
        found = self.pictures
        if found == "":
            if not model.name.startswith(EMBEDDED):
                raise NotApplicable(
                    f"a copy of model {model.name!r} must learn from pictures like those it was trained on: name them, "
                    "as surrogate=fine_tuning(pictures=folder(path=train/)), or take surrogate=none for the model as "
                    "it is"
                )
            found = registry.find("dataset", "two_factor", split="train", count=min(1000, 4 * self.count), size=size[0])
        if isinstance(found, str):
            from heatproof.spec.parse import parse

            found = parse("dataset", found)
        pictures = seen_by(model, cast(Dataset, found))
        places = torch.linspace(0, len(pictures) - 1, min(self.count, len(pictures))).round().long().tolist()
        images = pictures.batch(places).images.to(model.device)
        if images.shape[2:] != size:
            images = nn.functional.interpolate(images, size, mode="bilinear", antialias=True).clamp(0, 1)
        return images
