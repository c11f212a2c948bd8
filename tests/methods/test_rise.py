"""RISE: its masks, and its mean."""

from __future__ import annotations

import networks
import pytest
import torch
from torch import nn

from heatproof import engine
from heatproof.methods.rise import RISE, Masks, visibility
from heatproof.types import Model


def test_masks_are_smooth_shares_in_the_right_number() -> None:
    masks = Masks.draw(400, 7, 0.3, (30, 41), torch.Generator().manual_seed(0))
    found = visibility((30, 41), masks)
    assert found.shape == (400, 30, 41)
    assert found.min() >= 0
    assert found.max() <= 1 + 1e-6
    assert abs(float(found.mean()) - 0.3) < 0.02
    assert (found[:, 1:] - found[:, :-1]).abs().max() < 0.5


def test_a_mask_is_a_bilinear_enlargement_shifted() -> None:
    masks = Masks.draw(5, 4, 0.5, (22, 30), torch.Generator().manual_seed(1))
    for found, cells, top, left in zip(visibility((22, 30), masks), *masks, strict=True):
        whole = nn.functional.interpolate(cells[None, None], (30, 40), mode="bilinear", align_corners=False)[0, 0]
        assert torch.allclose(found, whole[top : top + 22, left : left + 30], atol=1e-6)
    assert len(masks.top.unique()) > 1


class Constant(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.sum((1, 2, 3))[:, None] * 0 + 2.0, x.sum((1, 2, 3))[:, None] * 0], 1)


@pytest.mark.parametrize("masks", [1, 2, 300])  # of one or two masks some pixels are never shown
def test_of_a_model_that_looks_at_nothing_it_is_flat(masks: int) -> None:
    batch = networks.batch(2).aimed(torch.zeros(2, dtype=torch.int64))
    for readout in ("logit", "probability"):
        assert not RISE(masks, readout=readout)(Model("constant", Constant()), batch).any()  # type: ignore[arg-type]


def test_it_is_how_far_masks_that_show_a_pixel_lie_above_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the definition, one mask after the other."""
    model, batch = networks.small_cnn(), networks.batch(1)
    monkeypatch.setattr(engine, "at_once", lambda *_: 16)  # in several blocks
    found = [RISE(40, readout=readout)(model, batch) for readout in ("probability", "logit")]  # type: ignore[arg-type]
    (generator,) = batch.generators("rise")
    visible = visibility(batch.images.shape[2:], Masks.draw(40, 7, 0.5, batch.images.shape[2:], generator)).double()
    mean = torch.tensor(model.mean).view(1, 3, 1, 1)
    seen = mean + visible.float()[:, None] * (batch.images - mean)
    logits = model(seen).detach()
    probabilities, values = (output[:, batch.targets[0]].double() for output in (logits.softmax(1), logits))
    for maps, answers in zip(found, (probabilities, values), strict=True):
        wanted = (answers[:, None, None] * visible).sum(0) / visible.sum(0) - answers.mean()
        assert torch.allclose(maps[0].double(), wanted, atol=1e-4 * float(wanted.abs().max()))
        assert maps.min() < 0 < maps.max()


class Corner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = x[:, :, :8, :8].mean((1, 2, 3))
        return torch.stack([20 * seen, 10 * torch.ones_like(seen)], 1)


def test_what_the_model_looks_at_ranks_first() -> None:
    batch = networks.batch(1).aimed(torch.zeros(1, dtype=torch.int64))
    images = torch.ones_like(batch.images)
    maps = RISE(masks=300, baseline="black")(Model("corner", Corner()), batch.showing(images))[0]
    assert maps[:8, :8].mean() > maps[16:, 16:].max()
