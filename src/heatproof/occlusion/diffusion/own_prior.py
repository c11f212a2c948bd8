"""Trains a prior on a folder of a user's own pictures."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from heatproof import engine
from heatproof.data.folder import Folder
from heatproof.errors import BadInput
from heatproof.occlusion.diffusion import priors
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.occlusion.diffusion.training import Plan, Say, Source, train
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.types import Images, View, keyed_seed

FEWEST = 32  # pictures: fewer are learnt by heart
SHOWN = 8  # pictures that are kept aside, and shown with holes that the prior fills
_AT_ONCE = 64


def train_on(folder: Path, out: Path, plan: Plan, device: str = "auto", say: Say = print) -> dict[str, Any]:
    """Learns from every picture of a folder but eight, and writes weights, recipe and loss curve to `out`.

    The same call goes on where it was stopped. `prior="trained:OUT"` names what it made.
    """
    _check(plan)
    source, aside = read(folder, plan.size, say)
    place = engine.pick(device).type
    plan = replace(plan, pictures=len(source.images))
    record = train(plan, out, out, say, source, place)
    (out / "progress.pt").unlink(missing_ok=True)
    torch.save(aside, out / "aside.pt")
    return record


def read(folder: Path, size: int, say: Say = print) -> tuple[Source, Tensor]:
    """Pictures cut to squares of one size: those to learn from, and eight that are kept aside."""
    data = Folder(str(folder), View(size))
    found = []
    for start in range(0, len(data), _AT_ONCE):
        batch = data.batch(range(start, min(start + _AT_ONCE, len(data))))
        for name, why in batch.missing.items():
            say(f"left out: {name}: {why}")
        found.append((batch.images * 255).round().byte())
    images = torch.cat(found)
    if len(images) < FEWEST + SHOWN:
        raise BadInput(f"a prior needs at least {FEWEST + SHOWN} pictures to learn from, {folder} has {len(images)}")
    name = f"{len(images)} pictures, {keyed_seed(*data.ids(), size, int(images.long().sum())):x}"
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    return Source(images[order[SHOWN:]], name), images[order[:SHOWN]]


def rows(folder: Path) -> Images:
    """(4, 8, 3, S, S): pictures kept aside, with half of their blocks removed, these drawn again, and samples."""
    prior = priors.trained(folder)
    images = torch.load(folder / "aside.pt", weights_only=True).float() / 255
    count, side = len(images), images.shape[-1]
    dice = torch.Generator().manual_seed(0)
    blocks = torch.rand(count, 8, 8, generator=dice) < 0.5
    keep = blocks.repeat_interleave(side // 8, 1).repeat_interleave(side // 8, 2)
    painter, seeds = Diffusion(prior, Sampler(steps=50, late_start=False)), list(range(count))
    return torch.stack(
        [
            images,
            images.where(keep[:, None], torch.tensor(0.5)),
            painter(images, keep, seeds=seeds),
            painter(images, torch.zeros_like(keep), seeds=seeds),
        ]
    )


def png(pictures: Tensor) -> bytes:
    """(rows, columns, 3, S, S) as one PNG."""
    grid = torch.cat([torch.cat(list(row), 2) for row in pictures], 1)
    buffer = io.BytesIO()
    Image.fromarray((grid.permute(1, 2, 0) * 255).round().byte().numpy()).save(buffer, "png")
    return buffer.getvalue()


def _check(plan: Plan) -> None:
    multiple = plan.fold * 2 ** (len(plan.widths) - 1)
    if plan.size < multiple or plan.size % multiple:
        raise BadInput(f"size must be a multiple of {multiple}, since the network halves its pictures, got {plan.size}")
    if plan.steps < 1 or not plan.minutes > 0:
        raise BadInput(f"steps and minutes must be positive, got {plan.steps} steps and {plan.minutes} minutes")
