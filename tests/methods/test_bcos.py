"""Contributions of a network that declares itself B-cos."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from networks import batch, small_vit
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.methods.bcos import BCos
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.types import Model


class Encoding(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, 1 - x], 1)


class TinyBCos(nn.Module):
    """One linear map scaled by its alignment with the input: out = |cos| · Wx."""

    def __init__(self) -> None:
        super().__init__()
        self.encoding = Encoding()
        self.weight = nn.Parameter(torch.randn(10, 6 * 32 * 32, generator=torch.Generator().manual_seed(0)))
        self.explaining = False

    @contextmanager
    def explanation_mode(self) -> Iterator[None]:
        self.explaining = True
        try:
            yield
        finally:
            self.explaining = False

    def forward(self, x: Tensor) -> Tensor:
        flat = self.encoding(x).flatten(1)
        rows = nn.functional.normalize(self.weight)
        scale = (flat @ rows.T).abs() / flat.norm(dim=1, keepdim=True)
        return (scale.detach() if self.explaining else scale) * (flat @ rows.T)


def test_contributions_add_up_to_the_logit_and_the_mode_ends() -> None:
    model, pictures = Model("bcos", TinyBCos()), batch(3)
    maps = BCos()(model, pictures)
    with torch.no_grad():
        logits = model(pictures.images).gather(1, pictures.targets[:, None])[:, 0]
    assert torch.allclose(maps.sum((1, 2)), logits, rtol=1e-3, atol=1e-5)
    assert model.network.explaining is False


def test_the_mode_ends_on_error_too() -> None:
    model = Model("bcos", TinyBCos())

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    BCos()(model, batch(1))
    model.network.encoding.register_forward_pre_hook(fail)  # type: ignore[union-attr]
    with pytest.raises(ZeroDivisionError):
        BCos()(model, batch(1))
    assert model.network.explaining is False


def test_another_network_is_refused_with_what_every_network_can_do() -> None:
    with pytest.raises(NotApplicable, match="take integrated_gradients or input_x_gradient"):
        BCos()(small_vit(), batch(1))
    for method in (IntegratedGradients(steps=2), InputXGradient()):
        assert float(method(small_vit(), batch(1)).abs().max()) > 0
