"""A watch holds for a network that is as it was, and for no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from networks import batch, small_cnn
from torch import Tensor, nn

from heatproof import engine
from heatproof.engine.weight_state import Watch, hooked
from heatproof.engine.weight_state import unheard
from heatproof.methods.gradients import Saliency


def first(network: nn.Module) -> nn.Conv2d:
    return next(module for module in network.modules() if isinstance(module, nn.Conv2d))


def in_place(network: nn.Module) -> None:
    with torch.no_grad():
        first(network).weight.view(-1)[-1] += 1


def through_data(network: nn.Module) -> None:
    first(network).weight.data.mul_(2)


HELD: list[Tensor] = []  # what lay there before still does


def other_memory(network: nn.Module) -> None:
    HELD.append(first(network).weight.data)
    first(network).weight.data = first(network).weight.data.clone()


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


def a_hook(network: nn.Module) -> None:
    first(network).register_forward_hook(lambda *_: None)


def a_hook_in_another_table(network: nn.Module) -> None:
    module = first(network)
    module._forward_hooks = type(module._forward_hooks)()
    module.register_forward_hook(lambda *_: None)


def of_inference(network: nn.Module) -> None:
    with torch.inference_mode():
        first(network).weight = nn.Parameter(torch.zeros_like(first(network).weight), requires_grad=False)


CHANGES = (
    in_place,
    through_data,
    other_memory,
    other_parameter,
    other_layer,
    a_setting,
    one_more,
    training,
    a_buffer,
    a_hook,
    a_hook_in_another_table,
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


def test_of_weights_made_in_inference_mode_nothing_is_said() -> None:
    network = small_cnn().network
    of_inference(network)
    assert not Watch(network).holds()


def test_global_hooks_are_seen() -> None:
    watch = Watch(small_cnn().network)
    hook = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert not watch.holds()
    finally:
        hook.remove()
    assert watch.holds()


def test_passes_nobody_hears_change_nothing() -> None:
    network = small_cnn().network
    watch = Watch(network)
    with unheard(network):
        assert not watch.holds()  # other tables of hooks: somebody may put one there
    assert watch.holds()


def test_after_a_hook_is_gone_the_quick_copy_runs_again() -> None:
    model, pictures = small_cnn(), batch(2)
    question = engine.settled(model, pictures.images, "gradient").question
    engine.use({question: {"backend": "folded", "layout": "contiguous", "size": 4, "least": 0}})
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
    before = engine.settled(model, pictures.images, "forward")
    assert engine.settled(model, pictures.images, "forward") is before
    size = before.choice.size % 8 + 1
    engine.use({before.question: {"backend": "eager", "layout": "contiguous", "size": size, "least": 0}})
    try:
        assert engine.settled(model, pictures.images, "forward").choice.size == size
    finally:
        engine.use({before.question: vars(before.choice)})


def test_a_plan_belongs_to_its_threads_and_settings() -> None:
    model, pictures = small_cnn(), batch(2)
    torch.set_num_threads(1)
    assert "| 1 threads |" in engine.settled(model, pictures.images, "forward").question
    torch.set_num_threads(2)
    assert "| 2 threads |" in engine.settled(model, pictures.images, "forward").question
    assert not engine.settled(model, pictures.images, "forward").question.endswith("unmeasured")
    with engine.settings(measure=False):
        assert engine.settled(model, pictures.images, "forward").question.endswith("unmeasured")
