"""A watch holds for a network that is as it was, and for no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from networks import batch, small_cnn
from torch import nn
from torch.overrides import TorchFunctionMode

from heatproof import engine
from heatproof.engine.weight_state import Watch, without_hooks
from heatproof.methods.saliency import Saliency
from heatproof.network_state import checksum


def first(network: nn.Module) -> nn.Conv2d:
    return next(module for module in network.modules() if isinstance(module, nn.Conv2d))


def in_place(network: nn.Module) -> None:
    with torch.no_grad():
        first(network).weight.view(-1)[-1] += 1


def through_data(network: nn.Module) -> None:
    first(network).weight.data.mul_(2)


def other_parameter(network: nn.Module) -> None:
    first(network).weight = nn.Parameter(first(network).weight.detach().clone())


def other_layer(network: nn.Module) -> None:
    name = next(name for name, part in network.named_children() if not list(part.children()))
    setattr(network, name, nn.Identity())


def a_setting(network: nn.Module) -> None:
    first(network).padding = (0, 0)


def one_more(network: nn.Module) -> None:
    network.extra = 1  # type: ignore[assignment]


def training(network: nn.Module) -> None:
    network.train()


def a_buffer(network: nn.Module) -> None:
    list(network.modules())[-1].register_buffer("scale", torch.ones(1))


def one_through_data(network: nn.Module) -> None:
    first(network).weight.data[1, 0, 1, 1] *= 1.001


def swapped_through_data(network: nn.Module) -> None:
    first(network).weight.data[[0, 1]] = first(network).weight.data[[1, 0]]


def by_numpy(network: nn.Module) -> None:
    first(network).weight.detach().numpy()[1] = 0


def of_inference(network: nn.Module) -> None:
    with torch.inference_mode():
        first(network).weight = nn.Parameter(torch.zeros_like(first(network).weight), requires_grad=False)


CHANGES = (
    in_place,
    through_data,
    one_through_data,
    swapped_through_data,
    by_numpy,
    other_parameter,
    other_layer,
    a_setting,
    one_more,
    training,
    a_buffer,
    of_inference,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_watch_sees_every_change(change: Callable[[nn.Module], None]) -> None:
    network = small_cnn().network
    watch = Watch(network)
    assert watch.holds()
    assert watch.holds()
    change(network)
    assert not watch.holds()


def test_the_same_numbers_in_other_memory_are_the_same_weights() -> None:
    network = small_cnn().network
    watch = Watch(network)
    first(network).weight.data = first(network).weight.data.clone()
    assert watch.holds()


def test_weights_made_in_inference_mode_are_watched_like_others() -> None:
    network = small_cnn().network
    of_inference(network)
    watch = Watch(network)
    assert watch.holds()
    with torch.inference_mode():
        first(network).weight[0, 0] = 1
    assert not watch.holds()


@pytest.mark.parametrize(
    "change", [in_place, through_data, one_through_data, swapped_through_data, by_numpy, a_setting]
)
def test_the_revision_sees_what_a_watch_sees(change: Callable[[nn.Module], None]) -> None:
    model = small_cnn()
    before = model.revision
    assert model.revision == before
    change(model.network)
    assert model.revision != before


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int64, torch.bool]
)
def test_a_checksum_is_of_any_numbers(dtype: torch.dtype) -> None:
    values = (torch.arange(60) % 7).view(3, 4, 5).to(dtype)
    before = checksum([values, values[0]])
    assert torch.equal(checksum([values, values[0]]), before)
    values[1, 2, 3] = 0 if bool(values[1, 2, 3]) else 1
    assert not torch.equal(checksum([values, values[0]]), before)


def test_hooks_are_seen_on_layers_and_on_all() -> None:
    network = small_cnn().network
    assert not Watch(network).hooked()
    for register in (first(network).register_forward_hook, nn.modules.module.register_module_forward_hook):
        watch = Watch(network)
        hook = register(lambda *_: None)
        assert watch.hooked()
        assert watch.holds()
        hook.remove()
        assert not watch.hooked()
        assert not Watch(network).hooked()
    first(network).register_full_backward_hook(lambda *_: None)
    assert Watch(network).hooked()
    with without_hooks(network):
        assert not Watch(network).hooked()
    assert Watch(network).hooked()


def test_a_checksum_is_not_seen_by_those_who_watch_operations() -> None:
    met: list[object] = []

    class Seen(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            met.append(func)
            return func(*args, **(kwargs or {}))

    held = list(small_cnn().network.parameters())
    with Seen():
        checksum(held)
    assert not met


def test_weights_that_come_back_find_their_copy_again() -> None:
    model, pictures = small_cnn(), batch(2)
    with engine.use(engine.Engine(always=engine.Choice("eager", "contiguous", 4))):
        before = engine.settled(model, pictures.images, "forward")
        weight = first(model.network).weight
        kept = weight.detach().clone()
        weight.data.mul_(2)
        assert engine.settled(model, pictures.images, "forward").run is not before.run
        weight.data.copy_(kept)
        assert engine.settled(model, pictures.images, "forward").run is before.run


def test_after_a_hook_is_gone_the_quick_copy_runs_again() -> None:
    model, pictures = small_cnn(), batch(2)
    with engine.use(engine.Engine(always=engine.Choice("eager", "contiguous", 4))):
        heard: list[int] = []
        hook = first(model.network).register_forward_hook(lambda *_: heard.append(1))
        Saliency()(model, pictures)
        assert heard
        hook.remove()
        heard.clear()
        again = engine.settled(model, pictures.images, "gradient")
        first(model.network).register_forward_hook(lambda *_: heard.append(1))
        again.run(pictures.images)
        assert not heard  # a copy answered


def test_a_plan_is_made_once_and_again_when_the_choice_is_another() -> None:
    model, pictures = small_cnn(), batch(2)
    with engine.use(engine.Engine()) as owner:
        before = engine.settled(model, pictures.images, "forward")
        assert engine.settled(model, pictures.images, "forward") is before
        size = before.choice.size % 8 + 1
        owner.adopt({before.question: {"backend": "untouched", "layout": "contiguous", "size": size}})
        assert engine.settled(model, pictures.images, "forward").choice.size == size


def test_a_plan_belongs_to_its_threads_and_engine() -> None:
    model, pictures = small_cnn(), batch(2)
    torch.set_num_threads(1)
    assert "| 1 threads |" in engine.settled(model, pictures.images, "forward").question
    torch.set_num_threads(2)
    assert "| 2 threads |" in engine.settled(model, pictures.images, "forward").question
    assert not engine.settled(model, pictures.images, "forward").question.endswith("unmeasured")
    with engine.use(engine.Engine(measure=False)):
        assert engine.settled(model, pictures.images, "forward").question.endswith("unmeasured")
