"""Occlusions in their short form: what a label prints can be typed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof import registry
from heatproof.errors import BadInput, HeatproofError
from heatproof.occlusion.game import Occlusion
from heatproof.protocols.all import All
from heatproof.spec import recipe
from heatproof.spec.parse import expression, parse
from heatproof.traits import parts_of

IMPUTERS = ("mean", "telea", "uniform", "road", "train_set", "constant(colour=[0.5])", "blur(sigma=3)")
SEGMENTERS = ("grid", "grid(side=7)", "slic", "slic(n=100)", "slic(n=30, space=lab)", "pixels", "squares", "patches")


def _as_drawn(component: Any) -> Any:
    """The recipe, where the number of draws of an imputer without randomness, which has no effect, is left out."""
    once = any(isinstance(part, Occlusion) and not part.random for part in parts_of(component))
    found = recipe.plain(component)
    return _without_draws(found) if once else found


def _without_draws(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _without_draws(item) for name, item in found.items() if name != "draws"}
    return [_without_draws(item) for item in found] if isinstance(found, list) else found


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("srg(occlusion=telea/grid)", "srg(occlusion=occlusion(imputer=telea))"),
        ("srg(telea/slic-30)", "srg(occlusion=occlusion(imputer=telea,segmenter=slic(n=30)))"),
        (
            "srg(telea/slic-30, steps=paper)",
            "srg(steps=paper, occlusion=occlusion(imputer=telea,segmenter=slic(n=30)))",
        ),
        ("mif(uniform/grid-7 x2)", "mif(occlusion=occlusion(imputer=uniform,segmenter=grid(side=7),draws=2))"),
        (
            "srg(occlusion=constant(colour=[0.5])/slic(n=9, space=lab) x3)",
            "srg(occlusion=occlusion(imputer=constant(colour=[0.5]),segmenter=slic(n=9,space=lab),draws=3))",
        ),
        (
            "sensitivity_n(occlusion=road/patches-8)",
            "sensitivity_n(occlusion=occlusion(imputer=road,segmenter=patches(size=8),draws=5))",
        ),
    ],
)
def test_the_short_form_is_the_long_one(short: str, long: str) -> None:
    assert recipe.plain(parse("metric", short)) == recipe.plain(parse("metric", long))


def test_it_is_read_inside_other_components() -> None:
    inner = parse("method", "smoothgrad(method=shapley(telea/slic-30, permutations=4), draws=2)").method
    assert inner.occlusion.name == "telea/slic(n=30)"
    assert inner.permutations == 4


@given(imputer=st.sampled_from(IMPUTERS), segmenter=st.sampled_from(SEGMENTERS), draws=st.integers(1, 40))
def test_a_printed_occlusion_can_be_typed(imputer: str, segmenter: str, draws: int) -> None:
    made = Occlusion(parse("imputer", imputer), parse("segmenter", segmenter), draws)
    wanted = made if made.random else dataclasses.replace(made, draws=Occlusion.draws)
    metric = dataclasses.replace(registry.find("metric", "srg"), occlusion=wanted)
    assert parse("metric", recipe.label(metric)) == metric


@pytest.mark.parametrize("preset", ["common", pytest.param("paper", marks=pytest.mark.slow)])
def test_every_name_that_the_protocols_print_is_accepted(preset: Any) -> None:
    met: dict[tuple[registry.Kind, str], Any] = {}
    for _, protocol in All(preset).protocols():
        for study in protocol.studies(models=None, datasets=None, methods=None):
            met |= {("method", recipe.label(one)): one for one in study.methods}
            met |= {("metric", recipe.label(one)): one for one in study.metrics}
    assert len(met) > 50
    for (kind, name), component in met.items():
        again = parse(kind, name)
        assert recipe.label(again) == name
        assert _as_drawn(again) == _as_drawn(component), name


def test_an_occlusion_has_words_for_captions() -> None:
    assert registry.find("metric", "srg").occlusion.in_words == "25 rectangles, filled with ImageNet's mean colour"
    for kind in ("imputer", "segmenter"):
        for name in registry.names(kind):  # type: ignore[arg-type]
            assert registry.find(kind, name).in_words


def test_a_path_is_not_taken_for_an_occlusion() -> None:
    assert parse("dataset", "folder(path=photos/dogs)").path.endswith("photos/dogs")
    assert parse("method", "grad_cam(layer=features/0)").layer == "features/0"


@given(st.text(alphabet="telamncgrids/-x3(=[]) '@,", max_size=40))
def test_any_text_is_a_component_or_a_sentence(text: str) -> None:
    try:
        made = parse("metric", f"srg({text})")
    except HeatproofError:
        return
    assert made.occlusion.name


def test_the_number_of_draws_stands_alone() -> None:
    for text in ("srg(mean/grid x0)", "srg(mean/grid xx)", "srg(mean/grid x2 x3)"):
        with pytest.raises(BadInput):
            parse("metric", text)
    assert expression("f(a='b x3')").keywords[0].value.value == "b x3"  # type: ignore[attr-defined]
