"""torchvision classifiers: `torchvision:NAME`, `torchvision:NAME@weights`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from heatproof.errors import BadModel, UnknownName
from heatproof.models._support.cam_layer import find_cam_layer, takes_one_size
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.models._support.weights import class_count, put_weights, read_weights
from heatproof.registry import model
from heatproof.types import Model, View

# With published weights these networks convert inputs from one normalisation to another themselves.
_SHIFTING = ("googlenet", "inception_v3")


@model("torchvision")
def load_torchvision(name: str = "resnet18", weights: str = "", trust_pickle: bool = False) -> Model:
    """A classifier of torchvision, as `torchvision:NAME` or `torchvision:NAME@WEIGHTS`.

    `weights` is a file, the name of one of torchvision's own (`IMAGENET1K_V1`), `random`, or empty for
    torchvision's default ones, which it downloads. Size, crop and normalisation are those torchvision
    declares for the weights; for a file, those of the published weights of the same file name, else of the
    default ones.
    """
    spec = f"torchvision:{name}" + (f"@{weights}" if weights else "")
    models = import_torchvision(f"the model {spec!r}").models
    known = models.list_models(module=models)
    if name not in known:
        raise UnknownName.among("torchvision classifier", name, known)
    published = _published(models, name, weights)
    network, classes = _network(models, name, weights, published, spec, trust_pickle)
    preset = published.transforms()
    size = int(preset.crop_size[0])
    return Model(
        name=spec,
        network=network,
        mean=tuple(float(v) for v in preset.mean),
        std=tuple(float(v) for v in preset.std),
        cam_layer=find_cam_layer(network, size),
        view=View(size, int(preset.resize_size[0]), _interpolation(preset.interpolation.value)),
        classes=classes,
        fixed_size=takes_one_size(network, size),
    )


def _published(models: Any, name: str, weights: str) -> Any:
    """torchvision's weights entry whose preprocessing belongs to these weights."""
    choices = models.get_model_weights(name)
    if weights in choices.__members__:
        return choices[weights]
    file = Path(weights).name
    return next((entry for entry in choices if Path(urlparse(entry.url).path).name == file), choices.DEFAULT)


def _network(
    models: Any, name: str, weights: str, published: Any, spec: str, trust_pickle: bool
) -> tuple[Any, tuple[str, ...]]:
    names = tuple(published.meta["categories"])
    if not weights or weights in type(published).__members__:
        return _downloaded(models, name, published, spec), names
    settings = {"transform_input": True, "init_weights": False} if name in _SHIFTING else {}
    network = models.get_model(name, weights=None, **settings)
    if weights == "random":
        return network, names
    state = read_weights(weights, trust_pickle)
    count = class_count(network, state)
    if count is not None:  # trained for other classes, whose names are not in the file
        network, names = models.get_model(name, weights=None, num_classes=count, **settings), ()
    put_weights(network, state, weights)
    return network, names


def _downloaded(models: Any, name: str, published: Any, spec: str) -> Any:
    try:
        return models.get_model(name, weights=published)
    except Exception as error:
        raise BadModel(
            f"the weights of {spec!r} could not be downloaded from {published.url} ({error}): fetch them "
            f"elsewhere and "
            f"pass the file as torchvision:{name}@path/to/weights.pth, or torchvision:{name}@random for "
            f"random weights"
        ) from error


def _interpolation(value: str) -> Any:
    if value not in ("bilinear", "bicubic"):
        raise BadModel(f"the source asks for {value} interpolation; heatproof offers bilinear and bicubic")
    return value
