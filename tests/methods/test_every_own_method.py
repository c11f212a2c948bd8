"""What holds for every gradient, path, activation, propagation, attention and control method alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from networks import batch, linear, small_cnn, small_resnet, small_vit
from torch import nn

from heatproof import engine
from heatproof.attribute import attribute
from heatproof.errors import NotApplicable
from heatproof.methods.ablation_cam import AblationCam
from heatproof.methods.attention_rollout import AttentionRollout
from heatproof.methods.bcos import BCos
from heatproof.methods.cam import GradCam, GradCamPP, GuidedGradCam, LayerCam, ScoreCam
from heatproof.methods.controls import Centre, Constant, Edges, Inverted, Oracle, Random
from heatproof.methods.deep_lift import DeepLift
from heatproof.methods.eigen_cam import EigenCam
from heatproof.methods.expected_gradients import ExpectedGradients
from heatproof.methods.finer_cam import FinerCam
from heatproof.methods.full_grad import FullGrad
from heatproof.methods.gradient_shap import GradientShap
from heatproof.methods.guided_backprop import DeconvNet, GuidedBackprop
from heatproof.methods.hires_cam import HiResCam
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import FastIG, IGSmoothGrad, IntegratedGradients
from heatproof.methods.lrp import LRP
from heatproof.methods.saliency import Saliency
from heatproof.methods.shapley_cam import ShapleyCam
from heatproof.methods.smoothgrad import Smoothed
from heatproof.methods.xgrad_cam import XGradCam
from heatproof.types import Model

GRADIENTS = [
    Saliency(),
    Saliency(signed=True, readout="log_probability"),
    InputXGradient(),
    Smoothed(draws=3),
    Smoothed(InputXGradient(), draws=3, mode="variance"),
    IntegratedGradients(steps=5),
    IntegratedGradients(steps=3, baseline="blur"),
    IntegratedGradients(steps=3, baseline="uniform", draws=2),
    IGSmoothGrad(steps=3, draws=2),
    FastIG(),
    ExpectedGradients(draws=4),
    GradientShap(draws=4),
]
CAMS = [
    *(GradCam(), GradCam(relu=False), GradCamPP(), LayerCam(), ScoreCam(), ScoreCam(limit=4)),
    *(HiResCam(), XGradCam(), EigenCam(), FinerCam(), ShapleyCam(), AblationCam(limit=4), FullGrad()),
]
RULES = [GuidedBackprop(), DeconvNet(), GuidedGradCam(), DeepLift(), LRP(), LRP(canonizer="none")]
CONTROLS = [Random(), Random("uniform"), Edges(), Centre(), Constant(), Inverted(), Oracle()]
ALL = [*GRADIENTS, *CAMS, *RULES, AttentionRollout(), BCos(), *CONTROLS]

NETWORKS: dict[str, tuple[Callable[[], Model], list[Any]]] = {
    "cnn": (small_cnn, [*GRADIENTS, *CAMS, *RULES, *CONTROLS]),
    "in_place_cnn": (lambda: small_cnn(inplace=True), [*CAMS, *RULES]),
    "resnet": (small_resnet, [*GRADIENTS, *CAMS, *RULES, *CONTROLS]),
    "vit": (small_vit, [*GRADIENTS, *CAMS, AttentionRollout()]),
}
PICTURES = batch(3)
CASES = [(name, method) for name, (_, methods) in NETWORKS.items() for method in methods]


@pytest.fixture(autouse=True)
def _unmeasured() -> Iterator[None]:
    """The same bits whatever the batch mates, so that what amplifies float noise can be tested too."""
    with engine.use(engine.Engine(always=engine.REFERENCE)):
        yield


@cache
def explained(name: str, method: Any) -> tuple[Model, torch.Tensor]:
    model = NETWORKS[name][0]()
    return model, attribute(model, PICTURES, method).maps


def micro_batches_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = engine.Engine.plan

    def other(*question: Any) -> Any:
        found = plan(*question)
        return replace(found, choice=replace(found.choice, size=size))

    monkeypatch.setattr(engine.Engine, "plan", other)


def state(network: nn.Module) -> list[Any]:
    """Everything a method must leave as it was."""
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    return [
        {name: tensor.detach().clone() for name, tensor in tensors.items()},
        {name: id(tensor) for name, tensor in tensors.items()},
        {name: (p.requires_grad, p.grad) for name, p in network.named_parameters()},
        {name: (m.training, sorted(vars(m))) for name, m in network.named_modules()},
        {name: len(m._forward_hooks) + len(m._forward_pre_hooks) for name, m in network.named_modules()},
        {name: len(m._backward_hooks) + len(m._backward_pre_hooks) for name, m in network.named_modules()},
    ]


def same(before: list[Any], after: list[Any]) -> bool:
    tensors = before[0].keys() == after[0].keys() and all(
        torch.equal(before[0][name], after[0][name]) for name in before[0]
    )
    return tensors and before[1:] == after[1:]


@pytest.mark.parametrize(("name", "method"), CASES, ids=str)
def test_batch_mates_never_matter(name: str, method: Any) -> None:
    model, together = explained(name, method)
    turned = attribute(model, PICTURES.select([2, 0, 1]), method).maps
    assert float((turned - together[[2, 0, 1]]).abs().max()) <= 1e-5 * float(together.abs().max())
    alone = attribute(model, PICTURES.select([1]), method).maps
    assert float((alone[0] - together[1]).abs().max()) <= 1e-5 * float(together[1].abs().max())


@pytest.mark.parametrize(("name", "method"), CASES, ids=str)
def test_micro_batches_never_matter(name: str, method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, together = explained(name, method)
    micro_batches_of(2, monkeypatch)
    chunked = attribute(model, PICTURES, method).maps
    assert float((chunked - together).abs().max()) <= 2e-5 * float(together.abs().max())


@pytest.mark.parametrize(("name", "method"), CASES, ids=str)
def test_the_declared_sign_holds_and_the_model_is_left_alone(name: str, method: Any) -> None:
    model, pictures = NETWORKS[name][0](), batch(1)
    model.network.requires_grad_(True)
    next(model.network.parameters()).requires_grad_(False)
    last = list(model.network.parameters())[-1]
    last.grad = torch.ones_like(last)
    for module in list(model.network.modules())[1::2]:  # one by one, as an earlier call may have left them
        module.training = True
    before = state(model.network)
    maps = attribute(model, pictures, method).maps
    assert same(before, state(model.network))
    assert method.signed or float(maps.min()) >= 0
    assert torch.equal(maps, attribute(model, pictures, method).maps)


@pytest.mark.parametrize(("name", "method"), CASES, ids=str)
def test_a_network_in_double_precision_is_explained_too(name: str, method: Any) -> None:
    _, single = explained(name, method)
    model = NETWORKS[name][0]()
    model.network.double()
    maps = attribute(model, PICTURES, method).maps
    assert maps.dtype == torch.float32
    for found, wanted in zip(maps, single, strict=True):
        flat = torch.stack([found.flatten(), wanted.flatten()])
        assert torch.equal(found, wanted) or float(torch.corrcoef(flat)[0, 1]) > 0.9


class Interrupted(Exception):
    pass


# Eigen-CAM's pass ends at its layer.
PASSING = [*GRADIENTS, *(m for m in CAMS if not isinstance(m, EigenCam)), *RULES, AttentionRollout()]


@pytest.mark.parametrize("method", PASSING, ids=str)
def test_the_model_is_left_alone_when_its_pass_fails(method: Any) -> None:
    model, pictures = (small_vit if isinstance(method, AttentionRollout) else small_resnet)(), batch(2)
    attribute(model, pictures, method)  # looking at a network for the first time is another pass
    module = next(m for n, m in model.network.named_modules() if n in ("fc", "head"))

    def fail(*_: Any) -> None:
        raise Interrupted

    handle = module.register_forward_pre_hook(fail)
    before = state(model.network)
    with pytest.raises(Interrupted):
        method(model, pictures)
    assert same(before, state(model.network))
    handle.remove()
    assert not torch.overrides._get_current_function_mode_stack()
    again = attribute(model, pictures, method).maps
    assert torch.equal(again, attribute(small_vit() if model.fixed_size else small_resnet(), pictures, method).maps)


def test_what_cannot_be_explained_says_so() -> None:
    refusals: list[tuple[Callable[[], Model], Any, str]] = [
        *((linear, method, "cam_layer") for method in CAMS if not isinstance(method, FullGrad)),
        (linear, GuidedBackprop(), "ReLU.*saliency"),
        (linear, DeconvNet(), "ReLU"),
        (small_vit, GuidedBackprop(), "ReLU"),
        (small_vit, LRP(), "attention"),
        (small_vit, DeepLift(), "attention.*integrated_gradients"),
        (small_cnn, AttentionRollout(), "transformer"),
        (small_cnn, BCos(), "B-cos.*explanation_mode"),
    ]
    for make, method, reason in refusals:
        with pytest.raises(NotApplicable, match=reason):
            method(make(), batch(1))


def test_the_stated_cost_is_the_paid_one(monkeypatch: pytest.MonkeyPatch) -> None:
    micro_batches_of(1, monkeypatch)  # no padding to count
    model, pictures = small_cnn(), batch(1)
    counts = {"forward": 0, "backward": 0}
    head: nn.Module = model.network.head  # type: ignore[assignment]

    def forward(_: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        counts["forward"] += len(output)
        if output.requires_grad:
            output.register_hook(lambda slope: counts.update(backward=counts["backward"] + len(slope)))

    for method in [
        *GRADIENTS,
        GradCam(),
        GradCamPP(),
        LayerCam(),
        GuidedGradCam(),
        GuidedBackprop(),
        DeepLift(),
        LRP(),
    ]:
        attribute(model, pictures, method)
        counts.update(forward=0, backward=0)
        handle = head.register_forward_hook(forward)
        attribute(model, pictures, method)
        handle.remove()
        assert (counts["forward"], counts["backward"]) == method.cost(), method


def test_memory_does_not_grow_with_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pictures = small_cnn(), batch(2)
    micro_batches_of(4, monkeypatch)
    rows: list[int] = []
    plain = engine.gradient

    def watched(model: Model, images: torch.Tensor, *rest: Any) -> Any:
        rows.append(len(images))
        return plain(model, images, *rest)

    monkeypatch.setattr(engine, "gradient", watched)
    for method in (IntegratedGradients(steps=60), ExpectedGradients(draws=60), Smoothed(draws=30)):
        rows.clear()
        attribute(model, pictures, method)
        assert max(rows) <= 4
