"""Trains a prior: the embedded one, in about eighty minutes on one CPU core, or one of a user's pictures."""

from __future__ import annotations

import copy
import io
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn
from torch.nn import functional

from heatproof.data.two_factor import VERSION
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.occlusion.diffusion.schedule import alphas_cumprod
from heatproof.occlusion.diffusion.unet import UNet
from heatproof.storage.atomic_file import write_atomically

TRAINED = Path(__file__).parent / "trained"
WRITE_EVERY = 120.0  # seconds
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The recipe: all that decides the weights."""

    pictures: int = 10_000  # composites, and as many scenes without their object
    steps: int = 20_000
    minutes: float = 80.0  # of CPU time, after which training ends even if steps are left
    batch: int = 16
    learning_rate: float = 1e-3
    warm_up: int = 200
    average: float = 0.999  # decay of the moving average whose weights are shipped
    shown: float = 0.8  # share of rows in which some pixels are shown clean, as during inpainting
    seed: int = 0
    size: int = 64
    widths: tuple[int, ...] = (32, 64, 96, 128)
    fold: int = 2


PLAN = Plan()


@dataclass(frozen=True, eq=False)
class Source:
    """The pictures that a prior learns from."""

    images: Tensor  # (n, 3, S, S) uint8
    name: str | int  # identifies them: training goes on with no others


def train(
    plan: Plan = PLAN,
    folder: Path = TRAINED,
    progress: Path | None = None,
    say: Say = print,
    source: Source | None = None,
    device: str = "cpu",
) -> dict[str, Any]:
    """Trains a prior, the embedded one unless a source is given, and writes weights and recipe.

    With a `progress` folder, an interrupted run resumes.
    """
    source = source or Source(pictures(plan), VERSION)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        network = UNet(widths=plan.widths, fold=plan.fold)
    network = network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    averaged = copy.deepcopy(network).requires_grad_(False)
    optimiser = torch.optim.AdamW(network.parameters(), plan.learning_rate, weight_decay=1e-4)
    kept = progress / "progress.pt" if progress else None
    state: dict[str, Any] = {"step": 0, "seconds": 0.0, "curve": []}
    if kept and kept.is_file():
        stored = torch.load(kept, map_location=device, weights_only=True)
        _check_same(stored.get("of", {}), _of(plan, source), kept)
        network.load_state_dict(stored["network"])
        averaged.load_state_dict(stored["averaged"])
        optimiser.load_state_dict(stored["optimiser"])
        state = {name: stored[name] for name in state}
    levels = alphas_cumprod("linear").float()
    # CPU time, not wall time: a busy or paused machine does not shorten the training. A GPU has no such clock.
    clock = time.process_time if device == "cpu" else time.monotonic
    began = written = clock()
    before, losses = state["seconds"], []
    for step in range(state["step"], plan.steps):
        state["seconds"] = before + clock() - began
        done = max(step / plan.steps, state["seconds"] / (60 * plan.minutes))
        if done >= 1:
            break
        rate = (
            plan.learning_rate * min(1, (step + 1) / plan.warm_up) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
        )
        for group in optimiser.param_groups:
            group["lr"] = rate
        losses.append(learn(network, optimiser, source.images, levels, plan, step))
        follow(averaged, network, min(plan.average, (step + 1) / (step + 10)))
        state["step"] = step + 1
        if len(losses) == 100:
            state["curve"].append([step + 1, round(sum(losses) / 100, 5)])
            say(f"step {step + 1}: loss {state['curve'][-1][1]:.4f}, {state['seconds'] / 60:.1f} minutes")
            losses = []
        if kept and clock() - written > WRITE_EVERY:
            written = clock()
            write_progress(kept, network, averaged, optimiser, state | {"of": _of(plan, source)})
    if kept:
        write_progress(kept, network, averaged, optimiser, state | {"of": _of(plan, source)})
    return ship(averaged.cpu(), plan, state, folder, source.name)


def _of(plan: Plan, source: Source) -> dict[str, Any]:
    """What must be the same for training to go on; steps and minutes may be raised."""
    fixed = {name: value for name, value in asdict(plan).items() if name not in ("steps", "minutes")}
    return fixed | {"widths": list(plan.widths), "data": source.name}


def _check_same(stored: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    """Raises `BadInput` if progress belongs to another training; that of earlier versions does not say."""
    unlike = [name for name, value in wanted.items() if stored and stored.get(name) != value]
    if unlike:
        raise BadInput(
            f"{path} must be progress of this training, got one of other settings ({', '.join(unlike)}): use the same "
            "settings to go on, or remove the file to start anew"
        )


def pictures(plan: Plan) -> Tensor:
    """Composites, then their scenes alone: (2n, 3, H, W) uint8."""
    arrays = TwoFactor("train", plan.pictures).arrays(range(plan.pictures))
    both = np.concatenate([arrays["image"], arrays["twin"]])
    return torch.from_numpy(both).permute(0, 3, 1, 2)


def learn(
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    images: Tensor,
    levels: Tensor,
    plan: Plan,
    step: int,
) -> float:
    """One training step: predict the velocity of noisy pictures, some of whose pixels may be shown clean."""
    dice = torch.Generator().manual_seed(plan.seed * 1_000_003 + step)
    rows = torch.randint(len(images), (plan.batch,), generator=dice)
    x = images[rows].float() / 127.5 - 1
    mirrored = torch.rand(plan.batch, generator=dice) < 0.5
    x = torch.where(mirrored[:, None, None, None], x.flip(-1), x)
    # Stratified times: every batch sees the whole range, which steadies the gradient.
    place = (torch.arange(plan.batch) + torch.rand(plan.batch, generator=dice)) / plan.batch
    t = (place * len(levels)).long()
    share = levels[t][:, None, None, None]
    at = next(network.parameters()).device  # draws are made on the CPU, the same whatever the device
    noise = torch.randn(x.shape, generator=dice)
    noisy = share.sqrt() * x + (1 - share).sqrt() * noise
    velocity = share.sqrt() * noise - (1 - share).sqrt() * x
    some = torch.rand(plan.batch, generator=dice) < plan.shown
    keep = patches(plan.batch, x.shape[-1], dice) & some[:, None, None]
    noisy = torch.where(keep[:, None], x, noisy)
    noisy, t, velocity, keep = (one.to(at) for one in (noisy, t, velocity, keep))
    error = (network(noisy.contiguous(memory_format=torch.channels_last), t) - velocity).square().mean(1)
    loss: Tensor = (error * ~keep).sum() / (~keep).sum()
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
    return float(loss.detach())


def patches(count: int, size: int, dice: torch.Generator) -> Tensor:
    """Random keep-masks of every coarseness, from single pixels to quarters of the picture, and of every area."""
    kept = []
    for _ in range(count):
        cells = 2 ** int(torch.randint(1, int(math.log2(size)) + 1, (1,), generator=dice))
        field = functional.interpolate(
            torch.rand(1, 1, cells, cells, generator=dice), size=(size, size), mode="bilinear"
        )
        share = 0.02 + 0.96 * torch.rand(1, generator=dice)
        kept.append(field[0, 0] > torch.quantile(field, share))
    return torch.stack(kept)


@torch.no_grad()
def follow(averaged: nn.Module, network: nn.Module, keep: float) -> None:
    """Updates the moving average by the current weights."""
    for slow, fast in zip(averaged.parameters(), network.parameters(), strict=True):
        slow.lerp_(fast, 1 - keep)


def write_progress(
    path: Path,
    network: nn.Module,
    averaged: nn.Module,
    optimiser: torch.optim.Optimizer,
    state: dict[str, Any],
) -> None:
    """Writes everything an interrupted run needs to resume, wholly there or not there."""
    buffer = io.BytesIO()
    weights = {"network": network.state_dict(), "averaged": averaged.state_dict()}
    torch.save({**weights, "optimiser": optimiser.state_dict(), **state}, buffer)
    write_atomically(path, buffer.getvalue())


def ship(averaged: UNet, plan: Plan, state: dict[str, Any], folder: Path, data: str | int) -> dict[str, Any]:
    """Writes half-precision weights, and their recipe with the loss curve."""
    half = {name: value.half().contiguous() for name, value in averaged.state_dict().items()}
    record = {
        "recipe": {
            **asdict(plan),
            "network": {"widths": averaged.widths, "fold": averaged.fold},
            "schedule": "linear",
            "predicts": "velocity",
            "data": data,
        },
        "parameters": sum(p.numel() for p in averaged.parameters()),
        "steps_done": state["step"],
        "minutes": round(state["seconds"] / 60, 1),
        "loss_curve": state["curve"],
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "prior.safetensors", safetensors_bytes(half))
    write_atomically(folder / "prior.json", (json.dumps(record) + "\n").encode())
    return record
