"""The conformance kit on every registered method and three kinds of network; who is refused, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import cheaper
import networks
import pytest
import torch

from heatproof import engine, registry, testing
from heatproof.attribute import attribute
from heatproof.errors import NotApplicable
from heatproof.spec.parse import parse
from heatproof.types import Model, View

NETWORKS: dict[str, Callable[[], Model]] = {
    "cnn": networks.small_cnn,
    "resnet": networks.small_resnet,
    "vit": networks.small_vit,
}
# What each refusal must tell; whoever is not here must explain the network.
REFUSALS: dict[tuple[str, str], str] = {
    **{("bcos", name): "B-cos" for name in NETWORKS},
    **{("precomputed", name): "path" for name in NETWORKS},
    **{("mean_region", name): "data set" for name in NETWORKS},
    **{(method, name): "transformer" for method in networks.TOKENS for name in ("cnn", "resnet")},
    **{(name, "vit"): "ReLU" for name in ("guided_backprop", "deconvnet", "guided_grad_cam")},
    **{(name, "vit"): "attention" for name in ("deep_lift", "deep_lift_shap", "lrp")},
}
CASES = [(method, network) for method in registry.names("method") for network in NETWORKS]


@pytest.fixture(autouse=True)
def _unmeasured() -> Iterator[None]:
    """The same bits whatever the batch mates, so that what amplifies float noise can be tested too."""
    with engine.use(engine.Engine(always=engine.REFERENCE)):
        yield


@pytest.mark.parametrize(("name", "network"), CASES, ids=["-".join(case) for case in CASES])
def test_every_method_on_every_kind_of_network(name: str, network: str) -> None:
    method = registry.find("method", name, **cheaper.METHODS.get(name, {}))
    model, batch = replace(NETWORKS[network](), view=View(networks.SIZE)), networks.batch(2)
    verdicts = list(testing.check_method(method, model, batch))
    assert not [str(verdict) for verdict in verdicts if not verdict.holds]
    message = REFUSALS.get((name, network))
    if message is None:
        assert len(verdicts) > 5  # it was put through the whole kit
        assert verdicts[0].claim == "gives finite maps of the right shape"
    else:
        with pytest.raises(NotApplicable, match=message):
            attribute(model, batch, method)


EXPLAINED = [case for case in CASES if case not in REFUSALS]
VARIANTS = [
    ("lrp(composite=epsilon_gamma_box)", "cnn"),
    ("lrp(composite=epsilon_plus_box)", "resnet"),
    ("deep_lift(baseline=blur)", "cnn"),
]


@pytest.mark.parametrize(("name", "network"), EXPLAINED + VARIANTS, ids=["-".join(c) for c in EXPLAINED + VARIANTS])
def test_inference_mode_changes_nothing(name: str, network: str) -> None:
    fields = cheaper.METHODS.get(name, {})
    method = registry.find("method", name, **fields) if fields else parse("method", name)
    fresh, model = (replace(NETWORKS[network](), view=View(networks.SIZE)) for _ in range(2))
    wanted = attribute(fresh, networks.batch(2), method).maps
    with torch.inference_mode():
        maps = attribute(model, networks.batch(2), method).maps
    after = attribute(model, networks.batch(2), method).maps  # nothing made inside is kept
    assert torch.equal(maps, wanted)
    assert torch.equal(after, wanted)
