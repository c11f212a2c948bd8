"""attn_lrp beside lxt, the package of its authors, on small random networks of torchvision and transformers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
import torch
from networks import MEAN, STD, batch
from torch import Tensor, nn

from heatproof.methods.attn_lrp import AttnLRP
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.models.huggingface import LogitsOnly
from heatproof.types import Batch, Model, read

CLOSE = 1e-5  # of a map's largest value


@pytest.fixture
def lxt() -> Iterator[Any]:
    """Its rules alone: `lxt.efficient` also imports a BERT that transformers 5 has no room for."""
    found = find_spec("lxt")
    assert found is not None
    package = ModuleType("lxt.efficient")
    package.__path__ = [f"{place}/efficient" for place in found.submodule_search_locations or ()]
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "lxt"}
    sys.modules["lxt.efficient"] = package
    yield import_module("lxt.efficient.patches")
    for name in [name for name in sys.modules if name.split(".")[0] == "lxt" and name not in before]:
        del sys.modules[name]


def patched(monkeypatch: pytest.MonkeyPatch, layer: type[nn.Module], forward: Any) -> None:
    monkeypatch.setattr(layer, "original_forward", layer.forward, raising=False)
    monkeypatch.setattr(layer, "forward", forward)


def by_gradient(model: Model, pictures: Batch) -> Tensor:
    """Input times gradient of the logit, at the normalised input, as lxt reads relevance."""
    inputs = model.normalised(pictures.images).requires_grad_()
    (slope,) = torch.autograd.grad(read(model.network(inputs), pictures.targets, "logit").sum(), inputs)
    return (inputs * slope).sum(1).detach()


def moved(network: nn.Module) -> nn.Module:
    """Off the symmetric points at which weights begin."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return network.eval()


def test_cp_lrp_of_torchvisions_transformer_is_lxts(lxt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    models = import_torchvision("this test").models
    torch.manual_seed(0)
    model = Model("vit", moved(models.VisionTransformer(32, 8, 2, 3, 24, 48, num_classes=10)), MEAN, STD)
    pictures = batch(3)
    ours, plain = AttnLRP("cp_lrp", gamma_conv=0.0, gamma_linear=0.0)(model, pictures), by_gradient(model, pictures)
    patched(monkeypatch, nn.MultiheadAttention, lxt.cp_multi_head_attention_forward)
    patched(monkeypatch, nn.GELU, lxt.non_linear_forward)
    patched(monkeypatch, nn.LayerNorm, lxt.layer_norm_forward)
    theirs = by_gradient(model, pictures)
    assert float((ours - theirs).abs().max()) < CLOSE * float(theirs.abs().max())
    assert float((ours - plain).abs().max()) > 0.1 * float(theirs.abs().max())


def test_attn_lrp_of_transformers_vit_is_lxts(lxt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import_torchvision("this test")
    import transformers
    from transformers.activations import GELUActivation
    from transformers.models.vit import modeling_vit

    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8, attn_implementation="eager", num_labels=10)
    torch.manual_seed(0)
    model = Model("vit", LogitsOnly(moved(transformers.ViTForImageClassification(config))), MEAN, STD)
    pictures = batch(3)
    ours, plain = AttnLRP(gamma_conv=0.0, gamma_linear=0.0)(model, pictures), by_gradient(model, pictures)
    attention = lxt.wrap_attention_forward(modeling_vit.eager_attention_forward)
    monkeypatch.setattr(modeling_vit, "eager_attention_forward", attention)
    patched(monkeypatch, GELUActivation, lxt.non_linear_forward)
    patched(monkeypatch, nn.LayerNorm, lxt.layer_norm_forward)
    theirs = by_gradient(model, pictures)
    assert float((ours - theirs).abs().max()) < CLOSE * float(theirs.abs().max())
    assert float((ours - plain).abs().max()) > 0.1 * float(theirs.abs().max())
