"""What a network answers with is recognised aloud, or declared; never softmaxed twice in silence."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from heatproof import Model, Study, engine, run
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadModel
from heatproof.models import embedded
from heatproof.models._support.outputs import kind_of, recognised
from heatproof.models.from_file import load_from_file
from heatproof.types import read


class Ending(nn.Module):
    """A network and what comes after its logits."""

    def __init__(self, network: nn.Module, end: nn.Module) -> None:
        super().__init__()
        self.network, self.end = network, end

    def forward(self, images: Tensor) -> Tensor:
        return self.end(self.network(images))  # type: ignore[no-any-return]


class Spelt(nn.Module):
    """A sigmoid in other words."""

    def forward(self, logits: Tensor) -> Tensor:
        return 1 / (1 + torch.exp(-logits))


class Shifted(nn.Module):
    """Logits that lie in [0, 1], by chance of the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        nn.init.constant_(self.linear.weight, 0.05)
        nn.init.constant_(self.linear.bias, 0.3)

    def forward(self, images: Tensor) -> Tensor:
        return self.linear(images.mean((2, 3)))  # type: ignore[no-any-return]


def ending(end: nn.Module) -> Model:
    plain = embedded.load("object")
    return dataclasses.replace(plain, name=f"ends in {type(end).__name__}", network=Ending(plain.network, end))


IMAGES = TwoFactor().batch(range(8)).images


def test_softmax_of_what_is_read_is_what_the_network_says() -> None:
    plain = embedded.load("object")
    with pytest.warns(UserWarning, match="answers with probabilities"):
        model = recognised(ending(nn.Softmax(1)), IMAGES)
    assert (model.output, model.probabilities) == ("softmax", True)
    want = engine.forward(plain, IMAGES).softmax(1)
    torch.testing.assert_close(engine.forward(model, IMAGES).softmax(1), want, rtol=1e-4, atol=1e-6)
    targets = want.argmax(1)
    slopes, values = engine.gradient(model, IMAGES, targets, "probability")
    wanted, message = engine.gradient(plain, IMAGES, targets, "probability")
    torch.testing.assert_close(values, message, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(slopes, wanted, rtol=1e-3, atol=1e-5)


def test_a_probability_of_nothing_has_finite_slopes() -> None:
    model = Model("sure", nn.Softmax(1), output="probabilities")
    logits = torch.tensor([[0.0, 200.0]], requires_grad=True)
    found = model.logits(logits.softmax(1), 1)
    read(found, torch.tensor([0]), "logit").sum().backward()
    assert bool(found.isfinite().all())
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


def test_a_run_of_a_network_that_ends_in_softmax_has_the_numbers_of_its_logits(tmp_path: Path) -> None:
    def judged(model: Model, out: str) -> list[float]:
        study = Study([model], [TwoFactor(count=6)], ["occlusion(readout=probability)", "random"], ["srg(points=6)"])
        return run(study, tmp_path / out).scores["value"].tolist()

    logits = judged(embedded.load("object"), "logits")
    with pytest.warns(UserWarning, match="answers with probabilities"):
        softmax = judged(ending(nn.Softmax(1)), "softmax")
    twice = judged(dataclasses.replace(ending(nn.Softmax(1)), output="logits"), "softmax")
    assert softmax == pytest.approx(logits, abs=1e-4)
    assert twice != pytest.approx(logits, abs=0.02)  # in the same directory, and not taken for the same question


@pytest.mark.parametrize("end", [nn.Sigmoid(), Spelt()])
def test_independent_labels_after_a_sigmoid_are_read_label_by_label(end: nn.Module) -> None:
    with pytest.warns(UserWarning, match=r"10 numbers from 0 to 1 that do not add up to 1 .* a label of its own"):
        model = recognised(ending(end), IMAGES)
    assert (model.output, model.probabilities, model.several) == ("sigmoid", True, True)
    want = engine.forward(embedded.load("object"), IMAGES).sigmoid()
    for label in (0, 7):
        found = engine.forward(model.of(label), IMAGES).softmax(1)
        torch.testing.assert_close(found, torch.stack([1 - want[:, label], want[:, label]], 1), rtol=1e-3, atol=1e-5)
    assert recognised(dataclasses.replace(ending(end), output="logits"), IMAGES).reading == "softmax"


def test_one_number_is_yes_or_no_and_that_is_said() -> None:
    logit = Model("one", nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 1)))
    with pytest.warns(UserWarning, match="read as the logit of yes.* output='regression' if it is a value"):
        model = recognised(logit, IMAGES)
    assert (model.question, model.several, model.classes) == ("yes_no", False, ("no", "yes"))
    sure = Model("sure", nn.Sequential(*logit.network, nn.Sigmoid()))  # type: ignore[misc]
    with pytest.warns(UserWarning, match="read as the probability of yes"):
        ended = recognised(sure, IMAGES)
    torch.testing.assert_close(engine.forward(ended, IMAGES), engine.forward(model, IMAGES), rtol=1e-4, atol=1e-4)
    unclear = Model("unclear", nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten()))
    with pytest.raises(BadModel, match="nothing shows whether it is a probability: declare output="):
        recognised(unclear, IMAGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = recognised(dataclasses.replace(unclear, output="regression"), IMAGES)
    assert value.question == "value"


def test_a_softmax_of_one_number_is_refused() -> None:
    model = Model("one", nn.Flatten(), output="softmax")
    with pytest.raises(BadModel, match="whose softmax is always 1: declare output='sigmoid'"):
        model(torch.rand(2, 1, 1, 1))


def test_logits_are_left_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (embedded.load("object"), Model("shifted", Shifted()), ending(nn.LogSoftmax(1))):
            assert recognised(model, IMAGES) is model
        # A picture on which logits happen to lie in [0, 1], or to add up to 1, is one of several.
    assert kind_of(torch.tensor([[0.2, 0.8], [0.1, 2.0]])) == "logits"
    assert kind_of(torch.tensor([[0.2, 0.8], [0.1, 0.2]])) == "bounded"


def test_what_is_declared_is_believed_or_refused(tmp_path: Path) -> None:
    network = "torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))"
    text = f"import torch\ndef f():\n    return {network}\nf.size = 8\n"
    for number, (declared, means) in enumerate(
        {
            "logits": "softmax",
            "probabilities": "softmax:probabilities",
            "sigmoid": "sigmoid",
            "sigmoid:probabilities": "sigmoid:probabilities",
            "regression": "regression",
        }.items()
    ):
        file = tmp_path / f"mine{number}.py"
        file.write_text(f"{text}f.output = {declared!r}\n")
        assert load_from_file(str(file), "f").reading == means
    (tmp_path / "many.py").write_text(text + "f.output = 'sigmoids'\n")
    with pytest.raises(BadModel, match="declares the output 'sigmoids', and an output is softmax, sigmoid"):
        load_from_file(str(tmp_path / "many.py"), "f")
