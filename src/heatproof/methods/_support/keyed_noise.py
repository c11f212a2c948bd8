"""Noise for whole pictures, keyed per picture."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from heatproof.types import Images, keyed_seed

TABLE = 2**22  # numbers, 16 MB of them
SMALL = TABLE // 256  # of a picture


def fill_with_noise(room: Images, keys: Sequence[int], uniform: bool = False) -> None:
    """Fills the pictures with standard normal numbers, or uniform ones in [0, 1), the same on every device.

    A small picture reads its numbers from one long table, from an offset set by its key (as Salimans et al. 2017,
    "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"): drawing them would take a tenth of a
    small network's pass. Larger pictures are drawn anew, since their passes are so long that drawing does not matter.
    """
    # The memory layout must not decide which pixel gets which number.
    usual = room.device.type == "cpu" and room.dtype == torch.float32 and room.is_contiguous()
    drawn = room if usual else torch.empty(room.shape)
    for row, key in zip(drawn, keys, strict=True):
        count = row.numel()
        if count <= SMALL:
            first = key % (TABLE - count + 1)
            row.view(-1).copy_(_table(uniform)[first : first + count])
        else:
            generator = torch.Generator().manual_seed(keyed_seed(key, "uniform") if uniform else key)
            row.uniform_(generator=generator) if uniform else row.normal_(generator=generator)
    if drawn is not room:
        room.copy_(drawn)


@functools.cache
def _table(uniform: bool) -> Tensor:
    with torch.inference_mode(False):
        generator = torch.Generator().manual_seed(int(uniform))
        return torch.rand(TABLE, generator=generator) if uniform else torch.randn(TABLE, generator=generator)
