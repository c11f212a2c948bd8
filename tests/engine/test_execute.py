"""The engine gives what the network gives, whatever the batch mates, and leaves the network as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from heatproof import engine
from heatproof.engine import autotune
from heatproof.errors import BadInput, BadModel, BadShape
from heatproof.types import Model, read


def convolutional(seed: int = 0, classes: int = 7) -> nn.Sequential:
    """Strided, grouped and normalised convolutions: every kernel has a chance to look at its neighbours."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(3, 12, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=1, groups=12),
        nn.BatchNorm2d(12),
        nn.GELU(),
        nn.Conv2d(12, 20, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(180, classes),
    )
    for module in network:
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 2)
    return network


class Attending(nn.Module):
    """Patches that look at each other."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(self.patches(x).flatten(2).mT).mean(1))


def model(network: nn.Module | None = None, **fields: object) -> Model:
    fields = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3), **fields}
    return Model("small", network if network is not None else convolutional(), **fields)  # type: ignore[arg-type]


def close(one: Tensor, other: Tensor) -> None:
    """Equal to 1e-5 of the largest number."""
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * float(other.abs().max()) if other.numel() else 0)


def pictures(count: int, size: int = 18, seed: int = 0) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=["default", "measured"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """With the default choice of tiny networks, and with one that was measured."""
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    if request.param == "measured":
        monkeypatch.setattr(autotune, "TINY", 0)
    with engine.use(engine.Engine()):
        yield


NETWORKS = {"convolutional": convolutional, "attending": Attending}


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("kind", NETWORKS)
def test_forward_is_the_network_and_rows_stand_alone(kind: str) -> None:
    subject, images = model(NETWORKS[kind]()), pictures(21, 20)
    logits = engine.forward(subject, images)
    with torch.no_grad():
        torch.testing.assert_close(logits, subject(images), rtol=1e-4, atol=1e-5)
    order = torch.randperm(21, generator=torch.Generator().manual_seed(3))
    close(engine.forward(subject, images[order]), logits[order])
    close(torch.cat([engine.forward(subject, images[i : i + 1]) for i in range(21)]), logits)


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("kind", NETWORKS)
def test_gradient_is_autograd_and_rows_stand_alone(kind: str) -> None:
    subject, images = model(NETWORKS[kind]()), pictures(13, 20)
    targets = torch.arange(13) % 5
    gradients, values = engine.gradient(subject, images, targets, "log_probability")
    inputs = images.clone().requires_grad_()
    wanted = read(subject(inputs), targets, "log_probability")
    (slopes,) = torch.autograd.grad(wanted.sum(), inputs)
    torch.testing.assert_close(values, wanted.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients, slopes, rtol=1e-3, atol=1e-5)
    assert not values.requires_grad
    assert not gradients.requires_grad
    some = torch.tensor([12, 3, 7])
    alone, message = engine.gradient(subject, images[some], targets[some], "log_probability")
    close(alone, gradients[some])
    close(message, values[some])


@given(rows=st.lists(st.integers(0, 16), max_size=20))
def test_any_rows_in_any_order_give_the_same_numbers_and_filled_up_the_same_bits(rows: list[int]) -> None:
    images = pictures(17)
    close(engine.forward(SHARED, images[rows]), engine.forward(SHARED, images)[rows])
    filled = replace(engine.settled(SHARED, images, "forward"), fill=True)
    assert torch.equal(engine.forward(SHARED, images[rows], filled), engine.forward(SHARED, images, filled)[rows])


SHARED = model()


def test_no_rows_give_no_rows() -> None:
    subject = model()
    assert engine.forward(subject, pictures(0)).shape == (0, 7)
    gradients, values = engine.gradient(subject, pictures(0), torch.zeros(0, dtype=torch.int64))
    assert gradients.shape == (0, 3, 18, 18)
    assert values.shape == (0,)


def test_logits_may_take_part_in_autograd() -> None:
    scale = torch.ones(1, requires_grad=True)
    (engine.forward(model(), pictures(2)) * scale).sum().backward()
    assert scale.grad is not None


def test_a_gradient_can_be_had_from_pictures_made_in_inference_mode() -> None:
    subject, targets = model(), torch.tensor([1, 2])
    with torch.inference_mode():
        inside, _ = engine.gradient(subject, pictures(2).clone(), targets)
    assert torch.equal(inside, engine.gradient(subject, pictures(2), targets)[0])


def test_double_precision_networks_answer_in_double_precision() -> None:
    subject = model(convolutional().double())
    images = pictures(3)
    logits = engine.forward(subject, images)
    assert logits.dtype == torch.float64
    with torch.no_grad():
        torch.testing.assert_close(logits, subject(images), rtol=1e-10, atol=1e-10)
    gradients, values = engine.gradient(subject, images, torch.zeros(3, dtype=torch.int64))
    assert (gradients.dtype, values.dtype) == (torch.float32, torch.float64)


def test_the_network_is_left_as_it_was() -> None:
    subject = model()
    network = subject.network
    network[0].weight.requires_grad_(False)  # type: ignore[index,union-attr]
    network[1].train()  # type: ignore[index]

    def state() -> list[object]:
        flags = [p.requires_grad for p in network.parameters()] + [m.training for m in network.modules()]
        return [*flags, *[p.grad for p in network.parameters()], *[p._version for p in network.parameters()]]

    before = state()
    statistics = network[1].running_mean.clone()  # type: ignore[index,union-attr]
    engine.forward(subject, pictures(3))
    engine.gradient(subject, pictures(3), torch.zeros(3, dtype=torch.int64))
    assert state() == before
    assert torch.equal(network[1].running_mean, statistics)  # type: ignore[index,union-attr]

    def trouble(*_: object) -> None:
        raise RuntimeError("trouble")

    network[3].register_forward_hook(trouble)  # type: ignore[index]
    with pytest.raises(RuntimeError, match="trouble"):
        engine.gradient(subject, pictures(3), torch.zeros(3, dtype=torch.int64))
    assert state() == before


def test_hooks_take_part_and_hear_the_work_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    monkeypatch.setattr(autotune, "TINY", 0)
    subject, images, targets = model(), pictures(5), torch.arange(5)
    heard: list[int] = []

    def double(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        heard.append(len(output))
        return output * 2

    plain, _ = engine.gradient(model(), images, targets)
    handle = subject.network[-1].register_forward_hook(double)  # type: ignore[index]
    gradients, values = engine.gradient(subject, images, targets)
    assert heard == [size for _, size in engine.settled(subject, images, "gradient").portions(5)]  # and no trial
    torch.testing.assert_close(gradients, 2 * plain)
    heard.clear()
    logits = engine.forward(subject, images)
    assert heard
    torch.testing.assert_close(read(logits, targets, "logit"), values, rtol=1e-4, atol=1e-5)
    handle.remove()
    torch.testing.assert_close(engine.forward(subject, images) * 2, logits, rtol=1e-4, atol=1e-5)


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = 0.0

    def forward(self, x: Tensor) -> Tensor:
        return x + self.shift


CHANGES = ["in_place", "through_data", "one_through_data", "swapped_through_data", "state", "layer", "number"]


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("how", CHANGES)
def test_changed_weights_are_seen(how: str) -> None:
    subject, images = model(nn.Sequential(*convolutional(), Shifted())), pictures(4)
    before = engine.forward(subject, images)
    last = subject.network[-2]  # type: ignore[index]
    wanted = before + 1
    if how == "number":
        subject.network[-1].shift = 1.0  # type: ignore[index]
    elif how == "in_place":
        with torch.no_grad():
            last.bias.add_(1)
    elif how == "through_data":
        last.bias.data.add_(1)
    elif how == "one_through_data":
        subject.network[0].weight.data[3, 1, 2, 0] += 1  # type: ignore[index]
    elif how == "swapped_through_data":
        last.weight.data[[2, 5]] = last.weight.data[[5, 2]]
    elif how == "state":
        state = last.state_dict()
        last.load_state_dict({**state, "bias": state["bias"] + 1})
    else:
        fresh = nn.Linear(180, 7)
        fresh.load_state_dict({"weight": last.weight, "bias": last.bias + 1})
        subject.network[-2] = fresh  # type: ignore[index]
    with torch.no_grad():
        wanted = subject(images) if "one" in how or "swapped" in how else wanted
    after = engine.forward(subject, images)
    torch.testing.assert_close(after, wanted, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(after, before, atol=1e-3)


class Answering(nn.Module):
    """A network made of one function."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> object:
        return self.function(self.scale * x.mean((2, 3)))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x, x), "wrap it in a module"),
        (lambda x: x[:, :, None], "logits of shape"),
        (lambda x: x[:1], "logits of shape"),
        (lambda x: x * float("nan"), "finite logits"),
        (lambda x: F.dropout(x.repeat(1, 30), training=True), "dropout"),
        (lambda x: x + torch.rand_like(x), "dropout"),
        (lambda x: x - x.mean(0), "batch mates"),
        (lambda x: x @ torch.ones(4, 2), "number of channels"),
    ],
)
def test_a_network_that_is_no_classifier_is_named(function: object, message: str) -> None:
    subject = model(Answering(function))
    with pytest.raises(BadModel, match=message) as caught:
        engine.forward(subject, pictures(2))
    assert "'small'" in str(caught.value)
    with pytest.raises(BadModel, match=message):
        engine.gradient(subject, pictures(2), torch.zeros(2, dtype=torch.int64))


def test_a_network_that_breaks_on_some_picture_is_named() -> None:
    subject = model(Answering(lambda x: torch.where(x > 2.9, float("nan"), x)), mean=(0.0,), std=(0.3,))
    images = pictures(3)
    engine.forward(subject, images)
    images[1] = 1
    with pytest.raises(BadModel, match="NaN or infinity on 1 of 3"):
        engine.forward(subject, images)
    with pytest.raises(BadModel, match="NaN or infinity on 1 of 3"):
        engine.gradient(subject, images, torch.zeros(3, dtype=torch.int64))


def test_a_network_without_gradient_is_named() -> None:
    with pytest.raises(BadModel, match="differentiable"):
        engine.gradient(model(Answering(Tensor.detach)), pictures(1), torch.zeros(1, dtype=torch.int64))


def test_bad_arguments_are_refused() -> None:
    subject = model()
    with pytest.raises(BadShape, match="images must"):
        engine.forward(subject, pictures(2)[0])
    with pytest.raises(BadShape, match="NaN"):
        engine.forward(subject, pictures(2) * float("nan"))
    with pytest.raises(BadInput, match=r"classes 0 … 6 .* 0 … 7"):
        engine.gradient(subject, pictures(2), torch.tensor([0, 7]))
    with pytest.raises(BadShape, match="2 int64"):
        engine.gradient(subject, pictures(2), torch.tensor([0]))


class Greedy(nn.Module):
    """Wants more memory than there is for more than three rows."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = convolutional()
        self.most = 3

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return self.inner(x)


def test_out_of_memory_halves_the_batch_and_goes_on() -> None:
    with engine.use(engine.Engine(measure=False)):
        subject, images = model(Greedy()), pictures(9)
        logits = engine.forward(subject, images)
        torch.testing.assert_close(logits, engine.forward(model(), images), rtol=1e-4, atol=1e-5)
        assert engine.batch_size(subject, images) == 2
        gradients, _ = engine.gradient(subject, images, torch.zeros(9, dtype=torch.int64))
        assert gradients.shape == images.shape
        assert engine.batch_size(subject, images, "gradient") == 2
        subject.network.most = 0  # type: ignore[assignment]
        with pytest.raises(torch.OutOfMemoryError):
            engine.forward(subject, images)
