"""timm classifiers: `timm:NAME`, `timm:NAME@weights`."""

from __future__ import annotations

import importlib
import math
from typing import Any

from heatproof.errors import BadModel, Missing, UnknownName
from heatproof.models._support.cam_layer import find_cam_layer, takes_one_size
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.models._support.weights import class_count, put_weights, read_weights, weights_only
from heatproof.registry import model
from heatproof.types import Model, View


@model("timm")
def load_timm(name: str = "resnet18", weights: str = "", trust_pickle: bool = False) -> Model:
    """A classifier of timm, as `timm:NAME` or `timm:NAME@WEIGHTS`.

    `weights` is a file, `random`, or empty for timm's own, which timm downloads. Size, crop and normalisation are those
    that timm declares for the name (`resnet50` or, with a training recipe, `resnet50.a1_in1k`).
    """
    spec = f"timm:{name}" + (f"@{weights}" if weights else "")
    timm = _timm(spec)
    if name.partition(".")[0] not in timm.list_models():
        raise UnknownName.among("timm classifier", name, timm.list_models())
    network = _network(timm, name, weights, spec, trust_pickle)
    declared = timm.data.resolve_model_data_config(network)
    channels, size, width = declared["input_size"]
    if size != width:
        raise BadModel(f"{spec} takes inputs of {size}x{width}; heatproof offers square ones only")
    return Model(
        name=spec,
        network=network,
        mean=tuple(float(v) for v in declared["mean"]),
        std=tuple(float(v) for v in declared["std"]),
        cam_layer=find_cam_layer(network, size, channels),
        view=_view(declared, size, spec),
        classes=_classes(timm, network.num_classes),
        fixed_size=takes_one_size(network, size, channels),
    )


def is_known(name: str) -> bool:
    """Whether timm has a network of this name, with or without a training recipe after a dot."""
    try:
        return name.partition(".")[0] in _timm("a suggestion").list_models()
    except Missing:
        return False


def _timm(spec: str) -> Any:
    import_torchvision(f"the model {spec!r}")  # timm imports it
    try:
        return importlib.import_module("timm")
    except ImportError as error:
        raise Missing.package("timm", "vision", f"the model {spec!r}") from error


def _network(timm: Any, name: str, weights: str, spec: str, trust_pickle: bool) -> Any:
    if not weights:
        try:
            with weights_only():  # the source may be any repository, and older versions of timm read any pickle
                return timm.create_model(name, pretrained=True)
        except Exception as error:
            raise BadModel(
                f"the weights of {spec!r} could not be downloaded ({error}): fetch them elsewhere and pass "
                f"the file as "
                f"timm:{name}@path/to/weights.safetensors, or timm:{name}@random for random weights"
            ) from error
    try:
        network = timm.create_model(name, pretrained=False)
    except (RuntimeError, ValueError) as error:  # a tag timm does not know
        raise BadModel(f"timm cannot make {name!r}: {error}") from error
    if weights != "random":
        state = read_weights(weights, trust_pickle)
        count = class_count(network, state)
        if count is not None:  # trained for other classes
            network = timm.create_model(name, pretrained=False, num_classes=count)
        put_weights(network, state, weights)
    return network


def _view(declared: dict[str, Any], size: int, spec: str) -> View:
    interpolation = declared["interpolation"]
    if interpolation not in ("bilinear", "bicubic"):
        raise BadModel(f"{spec} asks for {interpolation} interpolation; heatproof offers bilinear and bicubic")
    if declared.get("crop_mode") == "squash":
        return View(size, None, interpolation)
    return View(size, math.floor(size / declared["crop_pct"]), interpolation)


def _classes(timm: Any, count: int) -> tuple[str, ...]:
    """ImageNet's names for a thousand classes; timm has no names for other data sets."""
    if count != 1000:
        return ()
    return tuple(timm.data.ImageNetInfo("imagenet-1k").label_descriptions())
