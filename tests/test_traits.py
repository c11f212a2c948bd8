"""Traits: what components declare is read in one place, checked, and passed on by wrappers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from networks import batch, small_cnn
from torch import Tensor

from heatproof.attribute import attribute
from heatproof.errors import BadInput
from heatproof.methods import GradCam, GradientShap, Inverted, RandomWeights, Saliency, Smoothed
from heatproof.metrics import AUCIoU
from heatproof.metrics._support.normalisation import RULES, rule_of
from heatproof.traits import MethodTraits, cost_of, imputer_traits, method_traits, metric_traits, segmenter_traits
from heatproof.types import Attribution, Batch, Model


@dataclass(frozen=True)
class Declares:
    """A method with a trait of one's choice."""

    normalisation: ClassVar[Any] = "positive"

    def __call__(self, model: Model, batch: Batch, /) -> Tensor:
        return batch.images.mean(1) - 0.5


def plain(model: Model, batch: Batch) -> Tensor:
    return batch.images.mean(1) - 0.5


def test_what_declares_nothing_has_the_defaults() -> None:
    assert method_traits(plain) == MethodTraits()
    assert cost_of(plain) is None


@pytest.mark.parametrize("wrap", [Inverted, RandomWeights, Smoothed])
@pytest.mark.parametrize("rule", RULES)
def test_wrappers_have_the_normalisation_of_what_they_wrap(wrap: Callable[..., Any], rule: str) -> None:
    @dataclass(frozen=True)
    class Ruled(Declares):
        normalisation: ClassVar[Any] = rule

    assert rule_of(wrap(method=Ruled()), "by_method") == rule
    assert rule_of(wrap(method=Ruled()), "rank") == "rank"


@pytest.mark.parametrize(("method", "rule"), [(GradCam(), "positive"), (Saliency(), "abs_p99")])
def test_a_cam_is_read_as_a_cam_however_it_is_wrapped(method: Any, rule: str) -> None:
    for one in (method, Smoothed(method=method), Inverted(method=Smoothed(method=method))):
        assert rule_of(one, "by_method") == rule


def test_the_score_follows_the_declaration() -> None:
    """Half of the map is evidence against: by magnitude it is hot, as declared it is not."""
    pictures = batch(2)
    regions = torch.zeros(2, *pictures.images.shape[2:], dtype=torch.bool)
    regions[:, :, : regions.shape[2] // 2] = True
    maps = torch.where(regions, 1.0, -1.0)
    shown = Batch(pictures.images, pictures.targets, pictures.ids, regions=regions)
    declared, undeclared = (
        AUCIoU()(Attribution(small_cnn(), shown, one, maps)).values
        for one in (Declares(), plain)  # type: ignore[arg-type]
    )
    assert torch.allclose(declared, torch.ones_like(declared), atol=1e-6)
    assert (undeclared < 0.6).all()


@pytest.mark.parametrize(
    ("read", "name", "wrong"),
    [
        (method_traits, "normalisation", "positve"),
        (method_traits, "signed", "yes"),
        (metric_traits, "axes", 3),
        (metric_traits, "measures", "beauty"),
        (imputer_traits, "random", 1),
        (segmenter_traits, "expected", "many"),
    ],
)
def test_a_trait_of_the_wrong_type_is_refused(read: Callable[[object], Any], name: str, wrong: Any) -> None:
    component = type("Ours", (), {name: wrong})()
    with pytest.raises(BadInput, match=rf"{name} of Ours must be .*, got {wrong!r}"):
        read(component)


def test_costs_go_through_wrappers() -> None:
    inner = GradientShap(draws=7)
    assert cost_of(Inverted(method=inner)) == cost_of(inner)
    assert cost_of(Smoothed(method=inner, draws=3)).backward == 21


def test_maps_of_a_declared_method_come_back_as_they_are() -> None:
    pictures = batch(2)
    found = attribute(small_cnn(), pictures, Declares())
    assert torch.equal(found.maps, pictures.images.mean(1) - 0.5)
