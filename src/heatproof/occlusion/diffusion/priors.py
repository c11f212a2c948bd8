"""Loads priors: the embedded one, one that `heatproof train prior` made, or a diffusers folder or hub id."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_safetensors

from heatproof.errors import BadInput, BadModel, Missing
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.occlusion.diffusion.denoiser import Denoiser, Predicts, Prior
from heatproof.occlusion.diffusion.schedule import alphas_cumprod
from heatproof.occlusion.diffusion.unet import UNet

_PREDICTS: dict[str, Predicts] = {"epsilon": "noise", "v_prediction": "velocity", "sample": "picture"}


def find(prior: Any) -> Denoiser:
    """A denoiser by name (`embedded`, `trained:FOLDER`, `diffusers:FOLDER_OR_HUB_ID`); one is returned as it is."""
    if isinstance(prior, str):
        return _named(prior)
    if isinstance(prior, Denoiser):
        return prior
    raise BadInput(f"a prior must be a name or a Denoiser, got {type(prior).__name__}")


@lru_cache(maxsize=4)
def _named(name: str) -> Denoiser:
    kind, _, place = name.partition(":")
    if name == "embedded":
        return embedded()
    if kind == "diffusers" and place:
        return from_diffusers(place)
    if kind == "trained" and place:
        return trained(Path(place).expanduser())
    raise BadInput(f"a prior must be 'embedded', 'trained:FOLDER' or 'diffusers:FOLDER_OR_HUB_ID', got {name!r}")


def embedded() -> Prior:
    """The prior of the embedded pictures, 64×64."""
    try:
        stored = (files("heatproof.occlusion.diffusion") / "trained" / "prior.safetensors").read_bytes()
    except FileNotFoundError:
        raise BadModel("the embedded prior is not in this installation: `heatproof train prior` makes it") from None
    return _made("embedded", stored, about())


def trained(folder: Path) -> Prior:
    """A prior that `heatproof train prior --images … --out FOLDER` made."""
    try:
        stored, record = (folder / "prior.safetensors").read_bytes(), json.loads((folder / "prior.json").read_text())
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{folder} must hold prior.safetensors and prior.json, as `heatproof train prior --images PICTURES "
            f"--out {folder}` writes them, got: {error}"
        ) from error
    try:
        return _made(f"trained:{folder}", stored, record)
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        first = str(error).splitlines()[0]
        raise BadModel(f"{folder} must hold weights and recipe of one prior, got: {first}") from error


def _made(name: str, stored: bytes, record: dict[str, Any]) -> Prior:
    """A prior of our own network, from its weights and its record."""
    recipe = record["recipe"]
    shape = recipe["network"]
    network = UNet(widths=tuple(shape["widths"]), fold=shape["fold"])
    network.load_state_dict({name: value.float() for name, value in read_safetensors(stored).items()})
    network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    size = int(recipe.get("size", 64))
    return Prior(name, network, channels=3, size=size, multiple=network.multiple, predicts="velocity")


def about() -> dict[str, Any]:
    """The embedded prior's recipe and loss curve."""
    recipe: dict[str, Any] = json.loads((files("heatproof.occlusion.diffusion") / "trained" / "prior.json").read_text())
    return recipe


def from_diffusers(place: str) -> Prior:
    """A `UNet2DModel`, alone or inside a pipeline, from a local folder or the hub, with its own schedule if any."""
    with suppress(Missing):  # diffusers can do without torchvision, but not with a broken one
        import_torchvision("diffusers")
    try:
        from diffusers import DDPMScheduler, UNet2DModel
    except ImportError as error:
        raise Missing.package("diffusers", "diffusion", "a diffusers prior") from error
    local = Path(place).expanduser()
    at = str(local) if local.exists() else place
    failures = []
    for folder in ("unet", None):
        try:
            network = UNet2DModel.from_pretrained(at, **({"subfolder": folder} if folder else {}))
            break
        except Exception as error:
            failures.append(str(error).splitlines()[0][:200])
    else:
        raise BadModel(f"{place!r} must be a folder or hub id of a diffusers UNet2DModel, got: {failures[-1]}")
    shares, predicts = alphas_cumprod("linear"), "epsilon"
    for folder in ("scheduler", None):
        try:
            scheduler = DDPMScheduler.from_pretrained(at, **({"subfolder": folder} if folder else {}))
        except Exception:
            continue
        shares, predicts = scheduler.alphas_cumprod.double(), scheduler.config.prediction_type
        break
    size = network.config.sample_size
    return Prior(
        f"diffusers:{place}",
        network,
        shares,
        channels=network.config.in_channels,
        size=size if isinstance(size, int) else size[0] if size else None,
        multiple=2 ** (len(network.config.block_out_channels) - 1),
        predicts=_PREDICTS[predicts],
    )
