"""User-defined networks: `path/to/file.py:factory`.

    def factory():
        network = MyNetwork()
        network.load_state_dict(torch.load("weights.pth", weights_only=True))
        return network

    factory.mean, factory.std = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)   # if it wants normalised inputs
    factory.size = 128                                              # and any other attribute below

Instead of a network the factory may return a `heatproof.types.Model`, which has all these fields.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from torch import nn

from heatproof.errors import BadModel, HeatproofError, UnknownName
from heatproof.models._support.cam_layer import find_cam_layer, takes_one_size
from heatproof.registry import model
from heatproof.spec.user_files import from_file
from heatproof.storage import any_path
from heatproof.types import Model, View, check_network

_USUAL_SIZE = 224  # side of the picture by which the CAM layer is found if the factory declares no size


@model("file")
def load_from_file(path: str = "", factory: str = "factory") -> Model:
    """A network made by a function in a Python file, as `path/to/file.py:factory`.

    The function takes no arguments. It may carry the attributes `mean`, `std`, `size`, `resize`,
    `interpolation`, `classes`, `cam_layer` and `output` ("softmax", "sigmoid" or "regression"; with ":probabilities"
    after it if the network has its own softmax or sigmoid at the end). The defaults are: inputs in [0, 1] without
    normalisation, pictures squeezed to `size`, no class names, the last layer that is still a picture, and the kind of
    output that the answers show.
    """
    if not path:
        raise BadModel("a model from a file must be named path/to/file.py:factory, got no path")
    make, answer = _call(any_path.expanded(path), factory)
    spec = f"{path}:{factory}"
    if isinstance(answer, Model):
        return dataclasses.replace(answer, name=spec)
    if not isinstance(answer, nn.Module):
        raise BadModel(f"{spec} must return a torch.nn.Module or a heatproof Model, got {type(answer).__name__}")
    return _wrap(spec, answer, make)


def _call(path: Path, factory: str) -> tuple[Any, Any]:
    if not any_path.is_file(path):
        raise BadModel(f"there is no file {path}: a model from a file is named path/to/file.py:factory")
    try:
        module = from_file(path)
    except HeatproofError:
        raise
    except (Exception, SystemExit) as error:
        raise BadModel(f"{path} cannot be run ({type(error).__name__}: {error}): does python {path} work?") from error
    make = getattr(module, factory, None)
    if not callable(make):
        functions = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise UnknownName.among(f"function in {path}", factory, functions)
    try:
        return make, make()
    except HeatproofError:
        raise
    except (Exception, SystemExit) as error:
        raise BadModel(
            f"{path}:{factory} must return a network when called without arguments, got {type(error).__name__}: {error}"
        ) from error


def _wrap(spec: str, network: nn.Module, make: Any) -> Model:
    check_network(network, spec)
    mean = _numbers(getattr(make, "mean", (0.0,)), f"{spec}: mean")
    std = _numbers(getattr(make, "std", (1.0,)), f"{spec}: std")
    if any(value <= 0 for value in std):
        raise BadModel(f"{spec}: std must be positive, got {std}")
    size = _size(getattr(make, "size", None), spec)
    channels = channels_of(network)
    cam_layer = getattr(make, "cam_layer", None)
    fixed = False
    try:
        cam_layer = cam_layer or find_cam_layer(network, size or _USUAL_SIZE, channels)
        fixed = takes_one_size(network, size or _USUAL_SIZE, channels)
    except BadModel:
        if size is not None:  # a declared size should work; without one the network may need another size
            raise
    if cam_layer is not None and cam_layer.partition(":")[0] not in dict(network.named_modules()):
        layers = [name for name, _ in network.named_modules() if name]
        raise UnknownName.among(f"layer of {spec}", cam_layer, layers, most=12)
    view = None
    if size is not None:
        view = View(size, getattr(make, "resize", None), getattr(make, "interpolation", "bilinear"))
    classes = tuple(str(name) for name in getattr(make, "classes", ()))
    output = getattr(make, "output", None)
    return Model(spec, network, mean, std, cam_layer, view, classes=classes, fixed_size=fixed, output=output)


def _size(value: Any, spec: str) -> int | tuple[int, int] | None:
    """The side of a square, height and width, or None: pictures keep their own size."""
    sides = value if isinstance(value, tuple | list) else () if value is None else (value,)
    if any(not isinstance(side, int) or side < 1 for side in sides) or len(sides) > 2 or value in ((), []):
        raise BadModel(f"{spec}: size must be a number of pixels, or height and width, got {value!r}")
    return None if value is None else sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _numbers(value: Any, what: str) -> tuple[float, ...]:
    try:
        return tuple(float(v) for v in value) if hasattr(value, "__iter__") else (float(value),)
    except (TypeError, ValueError) as error:
        raise BadModel(f"{what} must be a number or one number per channel, got {value!r}") from error


def channels_of(network: nn.Module) -> int:
    """The number of input channels of the first convolution; three if there is none."""
    first = next((module for module in network.modules() if isinstance(module, nn.Conv2d)), None)
    return 3 if first is None else first.in_channels
