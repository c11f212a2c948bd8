"""Random pictures from seeds: one seed, one picture, whatever the row, batch mates or device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from heatproof.errors import BadInput
from heatproof.types import Images


def per_row(seeds: Sequence[int] | None, images: Images, name: str) -> Sequence[int]:
    """The seeds, one per image; `BadInput` if they are missing or of another number."""
    if seeds is None or len(seeds) != len(images):
        got = "none" if seeds is None else str(len(seeds))
        raise BadInput(f"{name} draws at random and needs one seed per image ({len(images)}), got {got}")
    return seeds


def drawn(seeds: Sequence[int], images: Images, draw: Callable[[Generator], Tensor]) -> Tensor:
    """One draw per row, made on the CPU once per distinct seed: an image's coalitions share theirs."""
    distinct = {seed: place for place, seed in enumerate(dict.fromkeys(seeds or [0]))}
    made = torch.stack([draw(Generator().manual_seed(seed)) for seed in distinct]).to(images.device, images.dtype)
    if len(distinct) == 1:
        return made.expand(len(seeds), *made.shape[1:])
    return made[torch.tensor([distinct[seed] for seed in seeds], dtype=torch.int64, device=images.device)]
