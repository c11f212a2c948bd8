"""Component ⇄ plain data."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from heatproof import recipe, registry
from heatproof.errors import BadInput, UnknownName
from heatproof.types import View


@pytest.mark.parametrize("kind", registry.KINDS)
def test_everything_registered_can_be_built_and_stored_and_built_again(kind: registry.Kind) -> None:
    for name in registry.names(kind):
        if kind == "model":
            continue  # models are named by their spec, see study.py
        component = registry.find(kind, name)
        stored = json.loads(json.dumps(recipe.plain(component)))
        again = recipe.build(stored)
        assert recipe.key(again) == recipe.key(component), name
        assert recipe.label(again) == recipe.label(component), name


def test_a_label_says_only_what_is_not_default() -> None:
    plain = registry.find("method", "integrated_gradients")
    assert recipe.label(plain) == "integrated_gradients"
    assert recipe.label(registry.find("method", "integrated_gradients", steps=7)) == "integrated_gradients(steps=7)"
    assert recipe.key(plain) != recipe.key(registry.find("method", "integrated_gradients", steps=7))


def test_the_command_line_says_the_same_as_python() -> None:
    spoken = recipe.parse("method", "integrated_gradients(steps=7)")
    assert spoken == registry.find("method", "integrated_gradients", steps=7)


def test_parts_of_a_component_can_be_named() -> None:
    spoken = recipe.parse("metric", "srg(occlusion=occlusion(imputer=telea))")
    assert "telea" in recipe.label(spoken)


@pytest.mark.parametrize("text", ["saliency(", "saliency(3)", "1 + 1", "saliency(signed=f(x))"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises((BadInput, UnknownName)):
        recipe.parse("method", text)


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'integrated_gradients'"):
        registry.find("method", "integrated_gradient")
    with pytest.raises(UnknownName, match="Did you mean 'steps'"):
        registry.find("method", "integrated_gradients", step=7)


def test_functions_are_told_apart_by_their_source() -> None:
    def one(model: object, batch: object) -> int:
        return 1

    def other(model: object, batch: object) -> int:
        return 2

    assert recipe.key(one) != recipe.key(other)
    assert recipe.label(one) == "one"


def test_an_edited_function_is_not_taken_for_the_old_one() -> None:
    stored = recipe.plain(recipe.label)
    assert recipe.build(stored) is recipe.label
    with pytest.raises(BadInput, match="was edited"):
        recipe.build({**stored, "source": "0" * 16})


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
        recipe.parse("method", "saliency(pooling=median)")


def test_a_heir_and_a_class_whose_types_nobody_can_look_up_take_their_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    with pytest.raises(BadInput, match="pooling of method 'fast_ig' must be one of"):  # its fields are its parent's
        recipe.parse("method", "fast_ig(pooling=median)")

    @registry.method
    @dataclass(frozen=True)
    class Private:
        width: OnlyForTheTypeChecker = 3  # type: ignore[name-defined]  # noqa: F821

    assert registry.find("method", "private", width=5) == Private(5)
