"""Degenerate input: pictures, maps, masks and tables of the kinds that break arithmetic. All drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from heatproof.types import Batch, Model

SIDES = ((1, 1), (1, 7), (5, 1), (2, 2), (8, 8), (16, 16), (12, 20), (16, 16))
CLASSES = 5


class Tiny(nn.Module):
    """Three convolutions that take any picture of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).flatten(1))


def tiny_model() -> Model:
    torch.manual_seed(0)
    return Model("tiny", Tiny(), task="object")


def _generator(dice: Random) -> torch.Generator:
    return torch.Generator().manual_seed(dice.getrandbits(32))


def pictures(dice: Random, count: int, side: tuple[int, int]) -> Tensor:
    """Flat, noisy, striped or equal pictures in [0, 1], some of them views into larger memory."""
    shape = (count, 3, *side)
    noise = torch.rand(shape, generator=_generator(dice))
    kinds: list[Callable[[], Tensor]] = [
        lambda: noise,
        lambda: torch.zeros(shape),
        lambda: torch.ones(shape),
        lambda: torch.full(shape, 0.5),
        lambda: noise.round(),
        lambda: noise * 1e-38,
        lambda: noise[:1].expand(shape).clone() if count else noise,
        lambda: torch.rand((count, *side[::-1], 3), generator=_generator(dice)).permute(0, 3, 2, 1),
        lambda: torch.rand((count, 3, side[0] * 2, side[1] * 3), generator=_generator(dice))[:, :, ::2, ::3],
    ]
    return dice.choice(kinds)()


def heat(dice: Random, shape: tuple[int, ...]) -> Tensor:
    """Maps without contrast, with ties, with one pixel, beyond float32's comfort, or not finite."""
    noise = torch.randn(shape, generator=_generator(dice))
    spike = torch.zeros(shape)
    spike[..., 0, 0] = 1.0
    holes = noise.clone()
    holes.view(-1)[:1] = dice.choice([float("nan"), float("inf"), -float("inf")])
    kinds = [
        noise,
        torch.zeros(shape),
        -torch.zeros(shape),
        torch.ones(shape),
        -torch.ones(shape),
        noise.round(),
        noise.sign(),
        spike,
        -spike,
        -noise.abs(),
        noise * 1e30,
        noise * 3e38,
        noise * 1e-38,
        noise * 1e-44,
        noise + 1e7,
        holes,
        torch.full(shape, float("nan")),
        noise.double(),
        noise.transpose(-1, -2).contiguous().transpose(-1, -2),
        torch.where(noise > 0, 1e30, 1e-30),
    ]
    return dice.choice(kinds)


def mask(dice: Random, shape: tuple[int, ...]) -> Tensor:
    """Everything, nothing, one pixel, all but one, or half."""
    one = torch.zeros(shape, dtype=torch.bool)
    one[..., -1, -1] = True
    half = torch.rand(shape, generator=_generator(dice)) < 0.5
    kinds = [torch.ones(shape, dtype=torch.bool), torch.zeros(shape, dtype=torch.bool), one, ~one, half]
    return dice.choice(kinds)


def batch(dice: Random, sides: Sequence[tuple[int, int]] = SIDES) -> Batch:
    """No, one or a few pictures, with or without regions, twins and labels."""
    count, side = dice.choice([0, 1, 1, 2, 3]), dice.choice(sides)
    images = pictures(dice, count, side)
    targets = torch.randint(0, CLASSES, (count,), generator=_generator(dice))
    same = dice.random() < 0.2
    return Batch(
        images,
        targets,
        tuple("same" if same else f"picture {i}" for i in range(count)),
        regions=mask(dice, (count, *side)) if dice.random() < 0.8 else None,
        twins=dice.choice([None, images, torch.rand(images.shape, generator=_generator(dice))]),
        labels={"object": targets.clone(), "scene": targets.clone()} if dice.random() < 0.7 else {},
        seed=dice.choice([0, 1, -1, 2**62]),
    )


def numbers(dice: Random, shape: tuple[int, ...]) -> np.ndarray:
    """Scores: constant, tied, missing, huge, tiny, infinite, or ordinary."""
    rng = np.random.default_rng(dice.getrandbits(32))
    noise = rng.normal(size=shape)
    holes = np.where(rng.random(shape) < 0.3, np.nan, noise)
    kinds = [
        noise,
        noise,
        np.zeros(shape),
        np.full(shape, 0.1),
        np.full(shape, np.nan),
        np.round(noise),
        (noise > 0).astype(float),
        holes,
        np.round(holes),
        noise * 1e30,
        noise * 1e300,
        noise * 1e-38,
        noise * 1e-310,
        noise + 1e12,
        np.where(rng.random(shape) < 0.1, np.inf, noise),
        np.broadcast_to(noise[..., :1], shape).copy() if noise.size else noise,
        noise.astype(np.float32),
        (noise * 10).astype(int),
    ]
    return dice.choice(kinds)


def length(dice: Random) -> int:
    return dice.choice([0, 1, 2, 3, 4, 5, 6, 9, 20])


def table(dice: Random) -> pd.DataFrame:
    """Images x methods: none, one or several of each; doubled or odd names now and then."""
    rows, columns = length(dice), dice.choice([0, 1, 2, 3, 5])
    frame = pd.DataFrame(numbers(dice, (rows, columns)), columns=[f"method {i}" for i in range(columns)])
    if columns and dice.random() < 0.3:
        frame[f"method {dice.randrange(columns)}"] = dice.choice([np.nan, 0.0, 1.0])
    if dice.random() < 0.05:
        frame.columns = pd.Index(["same"] * columns)
    if dice.random() < 0.05:
        frame.columns = pd.RangeIndex(columns)
    return frame
