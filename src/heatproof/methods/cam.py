"""Class activation maps: the activations of a late layer, weighted by their effect on the target."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods._support.batched_views import values_of_views
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_count
from heatproof.methods._support.layer_activations import Tap, activations, tap
from heatproof.methods._support.path_gradients import Stretch
from heatproof.methods._support.upsample import upsample
from heatproof.methods.attention_rollout import token_layer
from heatproof.methods.guided_backprop import GuidedBackprop
from heatproof.models._support.cam_layer import find_cam_layer
from heatproof.models._support.last_cut import last_cut
from heatproof.models._support.token_layouts import as_pictures
from heatproof.questions import Unfit
from heatproof.registry import method
from heatproof.traits import Rule
from heatproof.types import Batch, Cost, Images, Maps, Model, Readout

_layers: weakref.WeakKeyDictionary[nn.Module, dict[tuple[int, ...], str]] = weakref.WeakKeyDictionary()


def cam_layer(model: Model, batch: Batch) -> str:
    """The model's declared CAM layer; else its last convolutional layer; else the last layer that all tokens of a
    transformer or mixer pass through.
    """
    if model.cam_layer is not None:
        return model.cam_layer
    known = _layers.setdefault(model.network, {})
    shape = tuple(batch.images.shape[1:])
    if shape not in known:
        found = find_cam_layer(model.network, (shape[1], shape[2]), shape[0])
        found = found or last_cut(model, batch.images, token_layer(model, batch.images))
        if not found:
            raise NotApplicable(
                f"an activation map needs a layer that still has the picture's places, and in model {model.name!r} no "
                "one layer was found through which all of it passes: name one as cam_layer, or in the field layer"
            )
        known[shape] = found
    return known[shape]


class HasLayer(Protocol):
    """A method that reads one layer."""

    @property
    def layer(self) -> str: ...


COARSE = 3  # places on a side of a layer whose maps say little more than a quadrant


def coarse_map(self: HasLayer, model: Model, batch: Batch) -> str:
    """The `caution` of activation maps: few places in the layer, if they are; else empty."""
    layer = self.layer or cam_layer(model, batch)
    rows, columns = as_pictures(activations(model, batch.images[:1], layer), batch.images.shape[2:]).shape[2:]
    if min(rows, columns) > COARSE:
        return ""
    return (
        f"the layer {layer!r} has {rows}×{columns} places, so the map can point at one of {rows * columns} parts of "
        "the picture and no finer: name an earlier layer (layer=…), or a model that takes larger pictures"
    )


def pictured(model: Model, batch: Batch, layer: str, readout: Readout) -> Tap:
    """The layer's activations and gradients as (B, K, h, w) pictures, with tokens laid out on their grid."""
    return as_seen(tap(model, batch, layer or cam_layer(model, batch), readout), batch)


def as_seen(caught: Tap, batch: Batch) -> Tap:
    """A tap as (B, K, h, w) pictures, with tokens laid out on their grid."""
    return Tap(*(as_pictures(part, batch.images.shape[2:]) for part in caught))


def weigh(activations: Tensor, weights: Tensor, relu: bool) -> Tensor:
    """Σ_k weights · activations, (B, h, w); weights are (B, K, 1, 1) or (B, K, h, w)."""
    maps = (weights * activations).sum(1)
    return maps.clamp(min=0) if relu else maps


def plus_plus_weights(caught: Tap) -> Tensor:
    """Grad-CAM++'s weights (B, K, 1, 1): positive gradients, each by its share of its channel.

    The paper's g² / (2 g² + g³ ΣA) is written as 1 / (2 + g ΣA): the same number, without an epsilon that would
    swallow small gradients.
    """
    gradients = caught.gradients
    share = 2 + gradients * caught.activations.sum((2, 3), keepdim=True)
    alpha = torch.where(share.abs() > 1e-6, 1 / share.where(share != 0, 1.0), 0.0)
    return (alpha * gradients.clamp(min=0)).sum((2, 3), keepdim=True)


@method
@dataclass(frozen=True)
class GradCam:
    """The last convolutional maps (a transformer's last layer with all tokens) weighted by their mean gradients.

    `layer` names any layer by its dotted name, or `NAME:input` for what that layer is given (the activations a
    pooling layer pools, where the rectifier before it is not a module), or `NAME:last` for the last output of a layer
    that runs more than once; by default it is the model's own `cam_layer`. An all-negative map becomes zero everywhere;
    maps are not normalised.

    Paper: Selvaraju et al. 2017, "Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
    Localization"
    """

    normalisation: ClassVar[Rule] = "positive"

    layer: str = ""
    relu: bool = True
    readout: Readout = "logit"

    caution = coarse_map

    @property
    def signed(self) -> bool:
        return not self.relu

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        caught = pictured(model, batch, self.layer, self.readout)
        weights = caught.gradients.mean((2, 3), keepdim=True)
        return upsample(weigh(caught.activations, weights, self.relu), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 1)


@method("grad_cam_pp")
@dataclass(frozen=True)
class GradCamPP:
    """Grad-CAM with weights that count every place where a class appears, not only the largest.

    Paper: Chattopadhyay et al. 2018, "Grad-CAM++: Generalized Gradient-based Visual Explanations for Deep
    Convolutional Networks"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"
    layer: str = ""
    readout: Readout = "logit"

    caution = coarse_map

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        caught = pictured(model, batch, self.layer, self.readout)
        return upsample(weigh(caught.activations, plus_plus_weights(caught), relu=True), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 1)


@method
@dataclass(frozen=True)
class LayerCam:
    """Activations weighted place by place by their positive gradients.

    Paper: Jiang et al. 2021, "LayerCAM: Exploring Hierarchical Class Activation Maps for Localization"
    """

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"
    layer: str = ""
    readout: Readout = "logit"

    caution = coarse_map

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        caught = pictured(model, batch, self.layer, self.readout)
        return upsample(weigh(caught.activations, caught.gradients.clamp(min=0), relu=True), batch.images)

    def cost(self) -> Cost:
        return Cost(1, 1)


@method
@dataclass(frozen=True)
class ScoreCam:
    """Activations weighted by the model's answer when each of them masks the picture; without gradients.

    Hidden parts take the model's mean colour. The weights are a softmax over channels, as published. `limit` keeps the
    channels that vary most; without it, the cost is stated for a layer of 512 channels.

    Paper: Wang et al. 2020, "Score-CAM: Score-Weighted Visual Explanations for Convolutional Neural Networks"
    """

    unfit: ClassVar[Unfit] = (
        ("value", "its weights are a softmax over answers, which would depend on the unit of the value"),
    )

    signed: ClassVar[bool] = False
    normalisation: ClassVar[Rule] = "positive"
    layer: str = ""
    limit: int | None = None
    readout: Readout = "logit"

    caution = coarse_map

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_count("limit", self.limit)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        activations = pictured(model, batch, self.layer, self.readout).activations
        if self.limit is not None and self.limit < activations.shape[1]:
            kept = activations.var((2, 3)).topk(self.limit, 1).indices
            activations = activations.take_along_dim(kept[:, :, None, None], 1)
        weights = self._scores(model, batch, activations).softmax(1)[:, :, None, None]
        return upsample(weigh(activations, weights, relu=True), batch.images)

    def _scores(self, model: Model, batch: Batch, activations: Tensor) -> Tensor:
        mean = batch.images.new_tensor(model.mean).view(-1, 1, 1)
        content = batch.images - mean

        def paint(stretch: Stretch, room: Images) -> None:
            image, channels, _ = stretch
            veil = upsample(activations[image, channels.start : channels.stop], room)
            # `aminmax` takes five times as long as both.
            low, high = veil.amin((1, 2), keepdim=True), veil.amax((1, 2), keepdim=True)
            veil = veil.sub_(low).div_((high - low).clamp_(min=1e-8))
            torch.addcmul(mean, content[image], veil[:, None], out=room)

        return values_of_views(model, batch, paint, activations.shape[1], partial(model.read, readout=self.readout))

    def cost(self) -> Cost:
        return Cost(1 + (self.limit or 512), 1)


@method
@dataclass(frozen=True)
class GuidedGradCam(ChannelPooled):
    """Guided backpropagation multiplied by Grad-CAM: fine detail, only where the class is.

    Paper: Selvaraju et al. 2017, "Grad-CAM: Visual Explanations from Deep Networks via Gradient-based
    Localization"
    """

    layer: str = ""
    pooling: Pooling = "sum"
    readout: Readout = "logit"

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        detail = GuidedBackprop(readout=self.readout).channels(model, batch)
        return detail * GradCam(self.layer, readout=self.readout)(model, batch)[:, None]

    def cost(self) -> Cost:
        return Cost(2, 2)
