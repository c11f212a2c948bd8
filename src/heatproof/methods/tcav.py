"""TCAV: how often moving towards a concept raises the answer, in the layers where that is more than chance."""

from __future__ import annotations

import dataclasses
import hashlib
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heatproof import engine
from heatproof.data import seen_by
from heatproof.data.two_factor.k_dataset import TwoFactorK
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.concept_vectors import (
    REDRAWN,
    Against,
    Fitted,
    Floats,
    LayerScore,
    directions,
    layer_score,
)
from heatproof.methods._support.field_checks import check_count, check_positive
from heatproof.methods._support.layer_activations import activations, tap, taps
from heatproof.methods._support.upsample import upsample
from heatproof.methods.cam import cam_layer
from heatproof.models._support.token_layouts import as_pictures
from heatproof.registry import method
from heatproof.spec import recipe
from heatproof.types import Batch, Cost, Dataset, Images, Maps, Model, Readout, Scores

_vectors: OrderedDict[tuple[str, ...], Fitted] = OrderedDict()
_tests: weakref.WeakKeyDictionary[nn.Module, dict[tuple[str, ...], Tested]] = weakref.WeakKeyDictionary()
_KEPT = 128  # sets of vectors in memory


class Tested(NamedTuple):
    """All layers that were tested, and those in which the concept differs from chance."""

    layers: tuple[LayerScore, ...]
    kept: tuple[LayerScore, ...]

    @property
    def score(self) -> float:
        """The mean over the kept layers; NaN if there is none."""
        return sum(one.score for one in self.kept) / len(self.kept) if self.kept else float("nan")


def _pool() -> TwoFactorK:
    return TwoFactorK(10, "held_out", 240, shows="scene")


@method("tcav")
@dataclass(frozen=True)
class TCAV:
    """Testing with concept activation vectors: does moving towards the concept in a layer raise the answer?

    The map shows where in the deepest kept layer the directional derivative comes from; relative importance uses
    `importance` instead, one number per picture, whose mean is the TCAV score. A layer is kept if the concept differs
    from chance by the published test, Welch's over the scores of `runs`; where no layer passes, the method does not
    apply. Sets without any concept pass that test more often than its level says, since all runs share the concept's
    pictures. The test against `sets` of random pictures in the concept's place keeps its level, and fewer concepts
    pass.

    Paper: Kim et al. 2018, "Interpretability Beyond Feature Attribution: Quantitative Testing with Concept Activation
    Vectors (TCAV)"
    """

    concept: Dataset = field(default_factory=lambda: TwoFactorK(10, "held_out", 60))
    without: Dataset = field(default_factory=_pool)
    layers: tuple[str, ...] = ()  # empty: up to four stages, the last is the CAM layer
    runs: int = 20  # random counterparts: in late layers their scores are 0 or 1, so ten decide little
    size: int = 60  # pictures per set
    alpha: float = 0.1  # regularisation of the linear classifier
    level: float = 0.01
    against: Against = "runs"
    shown_by: tuple[str, int] | None = ("object", 0)  # the label that says a picture shows the concept; None: all do
    readout: Readout = "logit"
    seed: int = 0

    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "shown_by", None if self.shown_by is None else tuple(self.shown_by))
        if not self.runs >= 10:
            raise BadInput(f"runs must be at least 10: fewer random counterparts test nothing, got {self.runs}")
        if not self.size >= 2:
            raise BadInput(f"size must be at least 2 pictures per set: one shows no direction, got {self.size}")
        check_positive("alpha", self.alpha)
        check_positive("level", self.level, endless=True)
        check_count("seed", self.seed, least=0)

    @cached_property
    def revision(self) -> str:
        """A hash of the pictures with and without the concept, computed once: the directions depend on them."""
        sets = (self.concept, range(min(self.size, len(self.concept)))), (self.without, range(len(self.without)))
        return hashlib.sha256("\x1f".join(one.digest(rows) for one, rows in sets).encode()).hexdigest()[:16]

    def test(self, model: Model, batch: Batch) -> Tested:
        """The scores of every layer on these pictures and their targets."""
        names = self.layers or stages(model, batch)
        pool = read_for(model, self.without, range(len(self.without))).images
        scores = [
            layer_score(
                layer, caught.gradients, self._directions(model, layer), _features(model, pool, layer), self.against
            )
            for layer, caught in zip(names, taps(model, batch, names, self.readout), strict=True)
        ]
        return Tested(tuple(scores), tuple(one for one in scores if one.p_value < self.level))

    def importance(self, model: Model, batch: Batch) -> Scores:
        """For each picture, the share of kept layers and runs in which the concept raises the answer.

        The kept layers are decided on the concept's own pictures, not on these, so that a picture's number does not
        depend on its batch mates. Pictures that do not show the concept are NaN.
        """
        names = self.kept_layers(model)
        parts = []
        for layer, caught in zip(names, taps(model, batch, names, self.readout), strict=True):
            own = torch.from_numpy(self._directions(model, layer).own)
            parts.append((own @ caught.gradients.flatten(1).float().cpu().T > 0).double().mean(0))
        values = torch.stack(parts).mean(0).to(batch.images.device)
        if self.shown_by is None:
            return values
        labels = batch.labels.get(self.shown_by[0])
        if labels is None:
            raise NotApplicable(
                f"tcav needs labels {self.shown_by[0]!r}, which mark pictures with the concept, and there are none"
            )
        return values.masked_fill(labels.to(values.device) != self.shown_by[1], torch.nan)

    def kept_layers(self, model: Model) -> tuple[str, ...]:
        """The layers in which the concept differs from chance, or `NotApplicable` if there is none."""
        return tuple(one.layer for one in self._kept(model))

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        layer = self._kept(model)[-1].layer
        own = self._directions(model, layer).own
        slopes = tap(model, batch, layer, self.readout).gradients
        if own.shape[1] != slopes[0].numel():
            raise NotApplicable(
                f"layer {layer!r} gives {slopes[0].numel()} numbers for these pictures and {own.shape[1]} for the "
                "concept's: explain pictures of the concept's size"
            )
        share = slopes * torch.from_numpy(own.mean(0)).to(slopes).view(1, *slopes.shape[1:])
        if share.ndim not in (3, 4):
            raise NotApplicable(f"layer {layer!r} has no places to draw a map of; `importance` still applies")
        return upsample(as_pictures(share, batch.images.shape[2:]).sum(1), batch.images)

    def cost(self) -> Cost:
        return Cost(4, 4)

    def _kept(self, model: Model) -> tuple[LayerScore, ...]:
        """The kept layers, decided once per model."""
        known = _tests.setdefault(model.network, {})
        key = (model.revision, engine.current().kind, recipe.key(self))
        if key not in known:
            shown = read_for(model, self.concept, range(min(self.size, len(self.concept))))
            known[key] = self.test(model, shown.aimed(_predicted(model, shown)))
        tested = known[key]
        if not tested.kept:
            p_values = ", ".join(f"{one.layer} p = {one.p_value:.2g}" for one in tested.layers)
            raise NotApplicable(
                f"in no layer of {model.name} does the concept differ from chance (p < {self.level:g}): {p_values}"
            )
        return tested.kept

    def _directions(self, model: Model, layer: str) -> Fitted:
        redrawn = REDRAWN if self.against == "sets" else 1
        drawn = [self.runs, self.size, self.alpha, self.seed, redrawn]
        content = recipe.key([self.concept, self.without, self.revision, *drawn])
        key = (model.revision, engine.current().kind, layer, content)
        if key not in _vectors:
            sets = (
                read_for(model, self.concept, range(min(self.size, len(self.concept)))),
                read_for(model, self.without, range(len(self.without))),
            )
            concept, pool = (_features(model, one.images, layer) for one in sets)
            _vectors[key] = directions(concept, pool, self.runs, self.size, self.alpha, self.seed, redrawn)
            while len(_vectors) > _KEPT:
                _vectors.popitem(last=False)
        return _vectors[key]


def stages(model: Model, batch: Batch, most: int = 4) -> list[str]:
    """Up to four layers on the way to the CAM layer: top-level parts, or the rectifiers of one long part."""
    last = cam_layer(model, batch)
    top = [name for name, _ in model.network.named_children()]
    head = last.split(".")[0]
    before = top[: top.index(head)] if head in top else []
    if not before:
        whole = dict(model.network.named_modules()).get(last)
        if isinstance(whole, nn.Sequential):
            inner = [f"{last}.{name}" for name, part in whole.named_children() if isinstance(part, nn.ReLU)]
            return (inner or [last])[-most:]
    return [*before, last][-most:]


def read_for(model: Model, dataset: Dataset, places: Sequence[int]) -> Batch:
    """The pictures at these places of a data set, as the model wants to see them."""
    found = seen_by(model, dataset).batch(places).to(model.device)
    if model.view is None or tuple(found.images.shape[2:]) == model.view.sides:
        return found
    whole = dataclasses.replace(found, regions=None, twins=None)  # of the old size, and not needed
    shown = F.interpolate(found.images, model.view.sides, mode="bilinear", antialias=True)
    return whole.showing(shown.clamp(0, 1))


def _features(model: Model, images: Images, layer: str) -> Floats:
    return np.asarray(activations(model, images, layer).flatten(1).cpu().numpy(), dtype=np.float32)


def _predicted(model: Model, batch: Batch) -> Tensor:
    return engine.forward(model, batch.images).argmax(1)
