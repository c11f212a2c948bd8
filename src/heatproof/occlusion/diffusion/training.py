"""Trains the embedded prior, in about eighty minutes on one CPU core."""

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
from heatproof.occlusion.diffusion.schedule import alphas_cumprod
from heatproof.occlusion.diffusion.unet import UNet
from heatproof.storage.atomic_file import write_atomically

TRAINED = Path(__file__).parent / "trained"
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


PLAN = Plan()


def train(plan: Plan = PLAN, folder: Path = TRAINED, progress: Path | None = None, say: Say = print) -> dict[str, Any]:
    """Trains the embedded prior and writes weights and recipe; with a `progress` folder, an interrupted run resumes."""
    torch.manual_seed(plan.seed)
    network = UNet().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    averaged = copy.deepcopy(network).requires_grad_(False)
    optimiser = torch.optim.AdamW(network.parameters(), plan.learning_rate, weight_decay=1e-4)
    kept = progress / "progress.pt" if progress else None
    state: dict[str, Any] = {"step": 0, "seconds": 0.0, "curve": []}
    if kept and kept.is_file():
        stored = torch.load(kept, weights_only=True)
        network.load_state_dict(stored["network"])
        averaged.load_state_dict(stored["averaged"])
        optimiser.load_state_dict(stored["optimiser"])
        state = {name: stored[name] for name in state}
    images = pictures(plan)
    levels = alphas_cumprod("linear").float()
    # CPU time, not wall time: a busy or paused machine does not shorten the training.
    began = written = time.process_time()
    before, losses = state["seconds"], []
    for step in range(state["step"], plan.steps):
        state["seconds"] = before + time.process_time() - began
        done = max(step / plan.steps, state["seconds"] / (60 * plan.minutes))
        if done >= 1:
            break
        rate = (
            plan.learning_rate * min(1, (step + 1) / plan.warm_up) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
        )
        for group in optimiser.param_groups:
            group["lr"] = rate
        losses.append(learn(network, optimiser, images, levels, plan, step))
        follow(averaged, network, min(plan.average, (step + 1) / (step + 10)))
        state["step"] = step + 1
        if len(losses) == 100:
            state["curve"].append([step + 1, round(sum(losses) / 100, 5)])
            say(f"step {step + 1}: loss {state['curve'][-1][1]:.4f}, {state['seconds'] / 60:.1f} minutes")
            losses = []
        if kept and time.process_time() - written > 120:
            written = time.process_time()
            write_progress(kept, network, averaged, optimiser, state)
    if kept:
        write_progress(kept, network, averaged, optimiser, state)
    return ship(averaged, plan, state, folder)


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
    noise = torch.randn(x.shape, generator=dice)
    noisy = share.sqrt() * x + (1 - share).sqrt() * noise
    velocity = share.sqrt() * noise - (1 - share).sqrt() * x
    some = torch.rand(plan.batch, generator=dice) < plan.shown
    keep = patches(plan.batch, x.shape[-1], dice) & some[:, None, None]
    noisy = torch.where(keep[:, None], x, noisy)
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


def ship(averaged: UNet, plan: Plan, state: dict[str, Any], folder: Path = TRAINED) -> dict[str, Any]:
    """Writes half-precision weights, and their recipe with the loss curve."""
    half = {name: value.half().contiguous() for name, value in averaged.state_dict().items()}
    record = {
        "recipe": {
            **asdict(plan),
            "network": {"widths": averaged.widths, "fold": averaged.fold},
            "schedule": "linear",
            "predicts": "velocity",
            "data": VERSION,
        },
        "parameters": sum(p.numel() for p in averaged.parameters()),
        "steps_done": state["step"],
        "minutes": round(state["seconds"] / 60, 1),
        "loss_curve": state["curve"],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prior.safetensors").write_bytes(safetensors_bytes(half))
    (folder / "prior.json").write_text(json.dumps(record) + "\n")
    return record
