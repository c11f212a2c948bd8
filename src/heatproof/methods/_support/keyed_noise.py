"""Random numbers for whole pictures, each picture's by its own key."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from heatproof.types import Images, keyed_seed

TABLE = 2**22  # numbers, 16 MB of them
SMALL = TABLE // 256  # of a picture


def fill_with_noise(room: Images, keys: Sequence[int], uniform: bool = False) -> None:
    """Standard normal numbers, or uniform ones in [0, 1), the same on every device.

    A small picture takes its own from one long table, beginning at a place that its key decides (as Salimans et al.
    2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"): to draw them would take as long
    as a tenth of a small network's pass. Where pictures are larger passes are so long that drawing does not show.
    """
    # Where the numbers lie must not decide which is which.
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
