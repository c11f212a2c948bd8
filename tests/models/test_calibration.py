"""Temperature scaling: the temperature that was put in comes out again."""

from __future__ import annotations

import pytest
import torch

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.models import embedded
from heatproof.models.calibration import calibrate, fit_temperature
from heatproof.models.networks import PlainNet


def drawn(temperature: float, count: int = 4000, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels drawn from calibrated logits, and those logits made too confident by `temperature`."""
    dice = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, 5, generator=dice)
    labels = torch.multinomial(logits.softmax(1), 1, generator=dice)[:, 0]
    return logits * temperature, labels


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.28])
def test_the_temperature_is_found_again(temperature):
    fitted = fit_temperature(*drawn(temperature))
    assert fitted.value == pytest.approx(temperature, rel=0.08)
    assert fitted.nll_after <= fitted.nll_before + 1e-12
    assert fitted.pictures == 4000
    assert fitted.confidence_after == pytest.approx(fitted.accuracy, abs=0.03)


def test_no_other_temperature_is_more_likely():
    logits, labels = drawn(1.7, 500)
    best = fit_temperature(logits, labels)
    for other in (0.9, 0.99, 1.01, 1.1):
        loss = torch.nn.functional.cross_entropy(logits.double() / (best.value * other), labels)
        assert float(loss) >= best.nll_after


def test_pictures_that_are_all_right_or_all_wrong_stay_within_the_range():
    logits = torch.eye(4) * 3
    assert 0.01 <= fit_temperature(logits, torch.arange(4)).value < 1
    assert fit_temperature(logits, (torch.arange(4) + 1) % 4).value == pytest.approx(100)


def test_mistakes_are_named():
    with pytest.raises(BadInput, match="label for each"):
        fit_temperature(torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(BadInput, match="labels must lie in"):
        fit_temperature(torch.zeros(1, 2), torch.tensor([2]))


def test_a_model_is_calibrated_on_a_data_set():
    torch.manual_seed(0)
    fitted = calibrate(embedded.model("object_plain", PlainNet()), TwoFactor("held_out", 12), limit=8)
    assert fitted.pictures == 8
    assert fitted.nll_after <= fitted.nll_before
