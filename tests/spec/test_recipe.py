"""Component ⇄ plain data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import pytest
from PIL import Image

from heatproof import registry
from heatproof.data.folder import Folder
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, HeatproofError, UnknownName
from heatproof.field_types import hints_of
from heatproof.methods.expected_gradients import ExpectedGradients
from heatproof.spec import former_names, recipe
from heatproof.spec.parse import parse
from heatproof.types import View

NEEDED: dict[str, dict[str, Any]] = {  # fields without a default
    "view": {"size": 32},
    "laid": {"target": 1, "pictures": ("a", "b"), "labels": (1, 0)},
}


@pytest.mark.parametrize("former", former_names.FORMER)
def test_parts_that_older_studies_name_by_their_class_are_found(former: str) -> None:
    name = former_names.FORMER[former]
    stored = json.loads(json.dumps(NEEDED.get(name, {})))
    made = recipe.build({"class": former, "fields": stored})
    assert made == registry.find("part", name, **NEEDED.get(name, {}))
    assert recipe.plain(made)["part"] == name


@pytest.mark.parametrize("kind", registry.KINDS)
def test_everything_registered_can_be_built_and_stored_and_built_again(kind: registry.Kind) -> None:
    for name in registry.names(kind):
        if kind == "model":
            continue  # models are named by their spec, see study.py
        component = registry.find(kind, name, **NEEDED.get(name, {}))
        stored = json.loads(json.dumps(recipe.plain(component)))
        again = recipe.build(stored)
        assert recipe.key(again) == recipe.key(component), name
        assert '"class"' not in json.dumps(stored), f"{name} is stored under a place in the code, which may move"
        assert recipe.label(again) == recipe.label(component), name


def test_a_label_says_only_what_is_not_default() -> None:
    plain = registry.find("method", "integrated_gradients")
    assert recipe.label(plain) == "integrated_gradients"
    assert recipe.label(registry.find("method", "integrated_gradients", steps=7)) == "integrated_gradients(steps=7)"
    assert recipe.key(plain) != recipe.key(registry.find("method", "integrated_gradients", steps=7))


def test_the_command_line_says_the_same_as_python() -> None:
    spoken = parse("method", "integrated_gradients(steps=7)")
    assert spoken == registry.find("method", "integrated_gradients", steps=7)


def test_parts_of_a_component_can_be_named() -> None:
    spoken = parse("metric", "srg(occlusion=occlusion(imputer=telea))")
    assert "telea" in recipe.label(spoken)


@pytest.mark.parametrize("text", ["saliency(", "saliency(3)", "1 + 1", "saliency(signed=f(x))"])
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises((BadInput, UnknownName)):
        parse("method", text)


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'integrated_gradients'"):
        registry.find("method", "integrated_gradient")
    with pytest.raises(UnknownName, match="Did you mean 'steps'"):
        registry.find("method", "integrated_gradients", step=7)


def test_functions_are_distinguished_by_their_source() -> None:
    def one(model: object, batch: object) -> int:
        return 1

    def other(model: object, batch: object) -> int:
        return 2

    assert recipe.key(one) != recipe.key(other)
    assert recipe.label(one) == "one"


def test_an_edited_function_is_not_taken_for_the_old_one() -> None:
    stored = recipe.plain(recipe.label)
    assert recipe.build(stored, trust_code=True) is recipe.label
    with pytest.raises(BadInput, match="was edited"):
        recipe.build({**stored, "source": "0" * 16}, trust_code=True)


def test_named_tuples_survive() -> None:
    view = View(224, 256)
    assert recipe.build(json.loads(json.dumps(recipe.plain(view)))) == view


def test_two_components_of_one_name_are_refused() -> None:
    @dataclass(frozen=True)
    class Saliency:
        pass

    with pytest.raises(BadInput, match="two methods are called 'saliency'"):
        registry.register("method", Saliency)


def test_a_word_that_is_no_choice_is_refused() -> None:
    with pytest.raises(BadInput, match="pooling of method 'saliency' must be one of"):
        parse("method", "saliency(pooling=median)")


def test_a_heir_and_a_class_whose_types_cannot_be_looked_up_take_their_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    with pytest.raises(BadInput, match="pooling of method 'fast_ig' must be one of"):  # its fields are its parent's
        parse("method", "fast_ig(pooling=median)")

    @registry.method
    @dataclass(frozen=True)
    class Private:
        width: OnlyForTheTypeChecker = 3  # type: ignore[name-defined]  # noqa: F821

    assert registry.find("method", "private", width=5) == Private(5)


def _spoken(hint: Any) -> list[Any]:
    """Values of a plain type that a person may give."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words = ["features.0", "layer4.2.conv", "blocks.3:tokens", "0", "maps/o 1.npz", "it's", "x=y, z", ""]
    known: dict[Any, list[Any]] = {
        int: [3, 7],
        float: [0.5, 1.0, 1 / 3, 1e-7],
        bool: [True, False],
        str: words,
        type(None): [None],
        tuple[str, ...]: [("a.0", "b")],
        tuple[float, ...]: [(0.25, 1 / 3), (0.5,)],
    }
    choices = [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]
    return choices + [value for part in parts for value in known.get(part, [])]


@pytest.mark.parametrize("name", registry.names("method"))
def test_a_label_can_be_read_again(name: str) -> None:
    found = registry.entry("method", name)
    hints = hints_of(found.make)
    for field in set(found.fields()) - {"title"}:  # a name for tables, which spells nothing
        for value in _spoken(hints[field]):
            try:
                method = registry.find("method", name, **{field: value})
            except BadInput:  # the method itself refuses this value
                continue
            assert parse("method", recipe.label(method)) == method, (field, value)


def test_a_word_among_the_choices_is_that_word() -> None:
    assert parse("method", "lrp(canonizer=none)").canonizer == "none"
    assert parse("method", "blur_ig(reference_side=none)").reference_side is None


def test_layers_and_paths_need_no_quotes() -> None:
    assert parse("method", "grad_cam(layer=features.0)").layer == "features.0"
    assert parse("method", "grad_cam(layer=3)").layer == "3"
    assert parse("method", "grad_cam(layer='a=b.0, c')").layer == "a=b.0, c"


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("method", "integrated_gradients(steps=abc)", "steps of method 'integrated_gradients' must be a whole number"),
        ("method", "smoothgrad(draws=2.5)", "draws of method 'smoothgrad' must be a whole number, got 2.5"),
        ("method", "smoothgrad(draws=true)", "must be a whole number"),
        ("method", "integrated_gradients(steps=none)", "must be a whole number"),
        ("method", "saliency(signed=1)", "signed of method 'saliency' must be true or false, got 1"),
        ("method", "blur_ig(reference_side=x)", "must be a whole number or none"),
        ("method", "xrai(scales=[a,b])", "must be a list, each a number"),
        ("method", "shapley(readout=odds)", "must be one of 'probability', .* 'log_odds'"),
        ("method", "saliency(signed=true, signed=false)", "says signed twice"),
        ("metric", "srg(occlusion=occlusion(draws=x))", "draws of occlusion must be a whole number"),
        ("metric", "srg(occlusion=occlusion(imputr=telea))", "Did you mean 'imputer'"),
        ("metric", "srg(occlusion=mean/gird)", "Did you mean 'grid'"),
        ("metric", "srg(occlusion=tela/grid)", "Did you mean 'telea'"),
        ("metric", "srg(mean/grid(side=3)-4)", "says it twice: leave -4 out"),
        ("metric", "srg(mean/pixels-4)", "'pixels' has no number"),
        ("metric", "srg(mean)", "must name its fields.*imputer/segmenter"),
        ("metric", "sparseness(mean/grid)", "must name its fields"),
        ("metric", "srg(mean/grid, telea/grid)", "must name its fields"),
        ("metric", "srg(mean/grid, occlusion=telea/grid)", "says occlusion twice"),
        ("metric", "srg(points=-1)", "points must be at least 2, got -1"),
        ("metric", "mrg(orders=0)", "orders must be at least 1, got 0"),
        ("method", "lime(samples=1)", "samples must be at least 2, got 1"),
        ("method", "rise(masks=0)", "masks must be at least 1, got 0"),
        ("method", "rise(cells=0)", "cells must be at least 1, got 0"),
        ("method", "smoothgrad(noise=-1)", "noise must be at least 0, got -1"),
        ("method", "smoothgrad(noise=nan)", "noise"),
    ],
)
def test_a_value_that_does_not_fit_its_field_is_refused_by_name(kind: registry.Kind, text: str, says: str) -> None:
    with pytest.raises(HeatproofError, match=says):
        parse(kind, text)


def test_what_fits_is_taken() -> None:
    assert parse("method", "xrai(scales=3)").scales == (3,)  # one is a list of one
    assert registry.find("method", "smoothgrad", noise=1, draws=np.int64(3)).draws == 3


def test_a_function_of_model_and_batch_is_no_component_and_a_broken_one_spoils_no_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    with pytest.raises(BadInput, match="is given to a study as it is"):

        @registry.method
        def darkness(model: object, batch: object) -> None: ...

    @registry.method
    @dataclass(frozen=True)
    class Needs:
        width: int

    assert recipe.listed(registry.entry("method", "needs"))["cost"] is None


@dataclass(frozen=True)
class Reads:
    """A user's component that has a revision, of whatever kind."""

    message: Any = ""

    @property
    def revision(self) -> Any:
        if self.message == "broken":
            return self.no_such_thing  # type: ignore[attr-defined]
        return len if self.message == "a function" else self.message


def test_what_a_component_reads_is_part_of_its_recipe() -> None:
    assert recipe.plain(Reads("abc"))["revision"] == "abc"
    assert recipe.key(Reads("abc")) != recipe.key(Reads("abd"))
    assert "revision" not in recipe.plain(Reads())
    assert "revision" not in recipe.plain(Reads("a function"))
    with pytest.raises(AttributeError, match="no_such_thing"):  # a fault in the asking is no empty answer
        recipe.plain(Reads("broken"))


def test_a_recipe_of_something_that_read_nothing_is_built_whoever_wrote_it() -> None:
    stored = recipe.plain(registry.find("segmenter", "from_file"))
    assert recipe.build({**stored, "revision": ""}) == recipe.build(stored)
    with pytest.raises(BadInput, match="holds something else now"):
        recipe.build({**stored, "revision": "abc"})


def test_data_sets_in_a_label_are_distinguished_and_can_be_read_again(tmp_path: Path) -> None:
    methods = []
    for place in ("one", "other"):
        (tmp_path / place / "train").mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / place / "train" / "picture.png")
        methods.append(ExpectedGradients(Folder(str(tmp_path / place / "train")), draws=3))
    one, other = map(recipe.label, methods)
    assert one != other
    assert recipe.key(parse("method", one)) == recipe.key(methods[0])
    embedded = ExpectedGradients(TwoFactor("train"))
    assert recipe.label(embedded) == "expected_gradients(background=two_factor(split=train))"
    assert parse("method", recipe.label(embedded)) == embedded
