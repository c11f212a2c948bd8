"""Temperature scaling: the temperature that was put in comes out again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, NotApplicable
from heatproof.models import embedded
from heatproof.models._support.temperature import calibrate, fit_temperature
from heatproof.models.embedded_networks import PlainNet
from heatproof.types import Batch, Model


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


class Sorted:
    """Pictures that carry their class as brightness, one class after the other; every fifth is not labelled."""

    name = "sorted"

    def __init__(self, shift: int = 0, unknown: bool = False) -> None:
        self.shift, self.unknown = shift, unknown

    def __len__(self) -> int:
        return 200

    def ids(self) -> tuple[str, ...]:
        return tuple(map(str, range(200)))

    def digest(self, indices: Sequence[int], /) -> str:
        return ""

    def batch(self, indices: Sequence[int], /) -> Batch:
        classes = torch.tensor([i // 50 for i in indices])
        labels = (classes + self.shift) % 4
        labels[torch.tensor([self.unknown or i % 5 == 0 for i in indices])] = -1
        images = (classes / 4 + 0.125).view(-1, 1, 1, 1).expand(-1, 3, 4, 4)
        return Batch(images, classes, tuple(map(str, indices)), labels={"label": labels})


class Reader(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -8 * (x.mean((1, 2, 3))[:, None] - torch.arange(4) / 4 - 0.125).abs()


READER = Model("reader", Reader())


def test_pictures_are_drawn_from_all_classes_of_a_sorted_folder():
    requested: list[int] = []

    class Watched(Sorted):
        def batch(self, indices: Sequence[int], /) -> Batch:
            requested.extend(indices)
            return super().batch(indices)

    fitted = calibrate(READER, Watched(), limit=40)
    assert len(set(requested)) == 40
    assert {i // 50 for i in requested} == {0, 1, 2, 3}
    assert calibrate(READER, Sorted(), limit=40) == fitted
    assert calibrate(READER, Sorted(), limit=40, seed=1).unlabelled != fitted.unlabelled


def test_pictures_without_a_class_are_left_out_and_counted():
    fitted = calibrate(READER, Sorted())
    assert (fitted.pictures, fitted.unlabelled) == (160, 40)
    with pytest.raises(NotApplicable, match="none of 200 drawn from 'sorted' is labelled so"):
        calibrate(READER, Sorted(unknown=True))


def test_a_fit_to_wrong_labels_is_doubted_aloud():
    with pytest.warns(UserWarning, match="'reader' may mean nothing: the model is right on 0 of 160"):
        fitted = calibrate(READER, Sorted(shift=1))
    assert "cannot be distinguished from guessing among 4 classes" in fitted.doubt
    assert "T = 100 is the end of the range" in fitted.doubt
    logits, labels = drawn(1.7)
    assert fit_temperature(logits, labels).doubt == ""
    blind = fit_temperature(logits, labels.roll(1))
    assert "guessing" in blind.doubt
