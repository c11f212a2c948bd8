"""Folding changes no answer, and does not happen where it would."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from heatproof.engine.backends.folded import folded


def settled(network: nn.Module) -> nn.Module:
    """As after training: statistics and scales that do something."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low, high in ((module.running_mean, -1, 1), (module.running_var, 0.2, 3)):
                if tensor is not None:
                    nn.init.uniform_(tensor, low, high)
            if module.affine:
                nn.init.uniform_(module.weight, -2, 2)
                nn.init.uniform_(module.bias, -1, 1)
    return network.eval().double()


def norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@given(
    groups=st.sampled_from([1, 2, 4]),
    stride=st.integers(1, 2),
    padding=st.sampled_from([0, 1, "same"]),
    bias=st.booleans(),
    affine=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_folded_network_is_the_same_function(
    groups: int, stride: int, padding: int | str, bias: bool, affine: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    stride = 1 if padding == "same" else stride
    network = settled(
        nn.Sequential(
            nn.Conv2d(4, 8, 3, stride, padding, groups=groups, bias=bias),
            nn.BatchNorm2d(8, affine=affine),
            nn.ReLU(),
        )
    )
    before = {name: value.clone() for name, value in network.state_dict().items()}
    shorter = folded(network)
    assert shorter is not None
    assert norms(shorter) == 0
    images = torch.rand(2, 4, 9, 9, dtype=torch.float64)
    torch.testing.assert_close(shorter(images), network(images))
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


class Padding(nn.Conv2d):
    """Pads by itself: traced into, and folded there."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(F.pad(x, (0, 1, 0, 1)), self.weight, self.bias, self.stride)


class Standardising(nn.Conv2d):
    """Its weight is computed on the way, so scaling it beforehand would come to nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight / self.weight.norm(), self.bias)


class Listening(nn.Module):
    """Another layer reads what the convolution says."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return self.norm(x) + x


class Branching(nn.Module):
    """Cannot be traced: the way depends on the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)) if x.sum() > 0 else self.conv(x)


class Functional(nn.Module):
    """A batch norm without a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        norm = self.norm
        return F.batch_norm(
            self.conv(x), norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.1, norm.eps
        )


class Shared(nn.Module):
    """One convolution, two norms."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.one, self.other = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.other(self.conv(self.one(self.conv(x))))


@pytest.mark.parametrize(
    ("network", "folds"),
    [
        (nn.Sequential(Padding(4, 8, 3), nn.BatchNorm2d(8)), True),
        (Functional(), True),
        (Shared(), True),
        (nn.Sequential(Standardising(4, 8, 3), nn.BatchNorm2d(8)), False),
        (nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8, track_running_stats=False)), False),
        (nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.BatchNorm2d(8)), False),
        (nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 8, 3)), nn.BatchNorm2d(8)), False),
        (Listening(), False),
        (Branching(), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else str(value),
)
def test_only_what_can_be_proven_is_folded(network: nn.Module, folds: bool) -> None:
    settled(network)
    shorter = folded(network)
    assert (shorter is not None) == folds
    if shorter is not None:
        images = torch.rand(2, 4, 9, 9, dtype=torch.float64)
        torch.testing.assert_close(shorter(images), network(images))
