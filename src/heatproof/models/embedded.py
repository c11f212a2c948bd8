"""Embedded models: small trained networks that come with the package, so that nothing need be downloaded.

Each is a safetensors file (stored in half precision, run in single) and a JSON file with its recipe and measured
accuracies. `heatproof train embedded` trains them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from safetensors.torch import load as read_safetensors
from torch import nn

from heatproof.data.two_factor import OBJECTS, SCENES
from heatproof.errors import BadModel, UnknownName
from heatproof.models.bcos import BCosNet
from heatproof.models.embedded_networks import HybridViT, PlainNet, ResNet, ViT
from heatproof.registry import register
from heatproof.types import Model, View

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


@dataclass(frozen=True)
class Plan:
    """The recipe of an embedded model."""

    task: Literal["object", "scene"]
    network: Callable[[], nn.Module]
    cam_layer: str | None
    shows: Literal["composite", "scene"] = "composite"
    epochs: int = 8
    instances: int = 100  # per class, with a hundred pictures per instance
    learning_rate: float = 3e-3
    seed: int = 0
    flat_backgrounds: float = 0.0  # share of training pictures whose scene is replaced by one colour
    start: str | None = None  # the embedded model from which layers of the same name are taken, and held as they are
    fixed_size: bool = False
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD
    k: int | None = None  # trained on the k-set: one object in every picture of the first k scene classes

    @property
    def classes(self) -> tuple[str, ...]:
        return OBJECTS if self.task == "object" else SCENES


PLANS: dict[str, Plan] = {
    "object": Plan("object", ResNet, "layer3", epochs=10, flat_backgrounds=0.25),
    "object_plain": Plan("object", PlainNet, "features", epochs=16, flat_backgrounds=0.25),
    "scene": Plan("scene", ResNet, "layer3", epochs=5),
    "scene_plain": Plan("scene", PlainNet, "features", epochs=8),
    "scene_only": Plan("scene", ResNet, "layer3", shows="scene", epochs=5),
    "scene_vit": Plan("scene", ViT, None, epochs=10, learning_rate=1e-3, fixed_size=True),
    # Ten thousand pictures do not teach a transformer to see objects; behind trained convolutions they do.
    "object_vit": Plan(
        "object",
        HybridViT,
        None,
        epochs=3,
        learning_rate=1e-3,
        flat_backgrounds=0.25,
        fixed_size=True,
        start="object",
    ),
    # A B-cos network encodes pictures itself, so its inputs are not normalised.
    "object_bcos": Plan("object", BCosNet, "features", epochs=10, flat_backgrounds=0.25, mean=(0.0,), std=(1.0,)),
    # Few pictures, so that a scene is learnt no better than the object that accompanies it.
    **{f"scene_k{k}": Plan("scene", PlainNet, "features", epochs=20, instances=60, k=k) for k in range(1, 11)},
}


def load(name: str) -> Model:
    """`embedded:NAME`, with its trained weights."""
    plan = _plan(name)
    network = plan.network()
    try:
        stored = (files("heatproof.models") / "trained" / f"{name}.safetensors").read_bytes()
    except FileNotFoundError:
        raise BadModel(
            f"the weights of embedded:{name} are not in this installation: "
            f"`heatproof train embedded --only {name}` trains them"
        ) from None
    network.load_state_dict({key: value.float() for key, value in read_safetensors(stored).items()})
    return model(name, network)


def model(name: str, network: nn.Module) -> Model:
    """A network, trained or not, wrapped as the embedded model of that name."""
    plan = _plan(name)
    return Model(
        f"embedded:{name}",
        network,
        plan.mean,
        plan.std,
        plan.cam_layer,
        View(64),
        plan.task,
        plan.classes,
        plan.fixed_size,
    )


def about(name: str) -> dict[str, Any]:
    """The recipe and the measured accuracies."""
    _plan(name)
    record: dict[str, Any] = json.loads((files("heatproof.models") / "trained" / f"{name}.json").read_text())
    return record


def _plan(name: str) -> Plan:
    if name not in PLANS:
        raise UnknownName.among("embedded model", name, PLANS)
    return PLANS[name]


def _maker(name: str) -> Callable[[], Model]:
    def make() -> Model:
        return load(name)

    plan = PLANS[name]
    made = f"{plan.network.__name__} that names the {plan.task}"
    if plan.k is not None:
        shown = (
            f"; the first {plan.k} of ten scenes carried the same object"
            if plan.k > 1
            else "; one scene carried an object"
        )
    else:
        shown = " without objects" if plan.shows == "scene" else ""
    make.__doc__ = f"A small {made} in the embedded pictures{shown}."
    make.__qualname__ = f"embedded.{name}"
    return make


for _name in PLANS:
    register("model", _maker(_name), f"embedded:{_name}")
