"""Maps that know nothing of the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from networks import batch, small_cnn

from heatproof.errors import NotApplicable
from heatproof.methods.controls import Centre, Constant, Edges, Inverted, Oracle, Random, sobel
from heatproof.methods.input_x_gradient import InputXGradient


def test_controls_say_that_they_are() -> None:
    for control in (Random(), Edges(), Centre(), Constant(), Inverted(), Oracle()):
        assert control.control
    assert Random().cost() == Edges().cost() == Oracle().cost() == (0, 0)
    assert Inverted(InputXGradient()).cost() == (1, 1)


def test_random_is_keyed_by_image_and_seed() -> None:
    model, pictures = small_cnn(), batch(3)
    maps = Random()(model, pictures)
    assert torch.equal(Random()(model, pictures.select([1])), maps[1:2])
    assert not torch.equal(Random()(model, replace(pictures, seed=1)), maps)
    assert abs(float(maps.mean())) < 0.1
    assert float(maps.std()) == pytest.approx(1, abs=0.1)
    uniform = Random("uniform")(model, pictures)
    assert float(uniform.min()) >= 0
    assert float(uniform.mean()) == pytest.approx(0.5, abs=0.05)


def test_edges_are_where_brightness_changes() -> None:
    step = torch.zeros(1, 3, 8, 8)
    step[..., 4:] = 1
    assert sobel(step)[0, 3].tolist() == [0, 0, 0, 0.5, 0.5, 0, 0, 0]
    assert float(sobel(torch.full((1, 3, 8, 8), 0.7)).abs().max()) < 1e-6
    assert torch.allclose(sobel(step.mT), sobel(step).mT)


def test_the_centre_is_the_peak_and_symmetric() -> None:
    (bump,) = Centre()(small_cnn(), batch(1))
    assert torch.allclose(bump, bump.flip(0))
    assert torch.allclose(bump, bump.T)
    assert int(bump.argmax()) in (15 * 32 + 15, 15 * 32 + 16, 16 * 32 + 15, 16 * 32 + 16)


def test_inverted_and_constant_and_oracle_are_what_they_say() -> None:
    model, pictures = small_cnn(), batch(2)
    assert torch.equal(Inverted(InputXGradient())(model, pictures), -InputXGradient()(model, pictures))
    assert Constant(0.25)(model, pictures).unique().tolist() == [0.25]
    assert torch.equal(Oracle()(model, pictures).bool(), pictures.regions)  # type: ignore[arg-type]
    with pytest.raises(NotApplicable, match=r"no regions: give masks, as `heatproof run --masks FOLDER`"):
        Oracle()(model, replace(pictures, regions=None))
