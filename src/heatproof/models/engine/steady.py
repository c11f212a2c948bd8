"""Products with a matrix that give a row the same bits however few rows come with it.

The libraries behind torch take other code for fewer than four rows. Few rows are common: a walk's last pictures, the
rest of a call, a single photo. They would have to be filled up before the first layer, at the price of whole passes;
here they are filled up where it costs nothing.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 4


class Steady(nn.Linear):
    """A linear layer that never multiplies fewer rows."""

    def forward(self, input: Tensor) -> Tensor:  # the name that others may call it by
        missing = ROWS - len(input)
        if input.ndim != 2 or missing <= 0:
            return super().forward(input)
        answer = super().forward(F.pad(input, (0, 0, 0, missing)))
        return answer[: len(input)].clone()  # not a view, into which others might write


def steadied(network: nn.Module) -> nn.Module:
    """The very network, a copy of our own, with its linear layers exchanged."""
    for module in network.modules():
        if type(module) is nn.Linear:
            module.__class__ = Steady
    return network
