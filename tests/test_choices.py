"""A misspelt choice is refused where a component is made, by whatever way, with one sentence."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, get_origin

import pytest

from heatproof import registry
from heatproof.errors import BadInput
from heatproof.field_types import checked, hints_of
from heatproof.methods.agi import AGI
from heatproof.methods.mfaba import MFABA
from heatproof.metrics.fud import Fud
from heatproof.occlusion.diffusion.guidance import Guidance
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.protocols.in_distribution import InDistribution
from heatproof.spec import source_hash
from heatproof.spec.parse import parse

KINDS: tuple[registry.Kind, ...] = ("method", "metric", "imputer", "segmenter", "dataset", "protocol")


def _choices() -> list[tuple[registry.Kind, str, str]]:
    found = []
    for kind in KINDS:
        for name in registry.names(kind):
            made = registry.entry(kind, name)
            hints = hints_of(made.make) if isinstance(made.make, type) else {}
            literal = [one for one in made.fields() if get_origin(hints.get(one)) is Literal]
            found += [(kind, name, one) for one in literal]
    return found


@pytest.mark.parametrize(("kind", "name", "choice"), _choices(), ids=str)
def test_every_choice_of_every_registered_component_is_checked(kind, name, choice):
    output = f"{choice} of {kind} {name!r} must be one of .*, got 'misspelt'"
    with pytest.raises(BadInput, match=output):
        registry.entry(kind, name).make(**{choice: "misspelt"})


@pytest.mark.parametrize(
    "make",
    [
        lambda: AGI(20, 20, 0.05, "foo"),
        lambda: MFABA(walk="foo"),
        lambda: replace(Fud(), score="gian"),
        lambda: Fud(controls=("random", "chance")),
        lambda: InDistribution(quality=("lpips",)),
        lambda: Sampler(known="x"),
        lambda: Guidance(window="early"),
    ],
)
def test_by_place_by_name_in_lists_and_without_a_registered_name(make):
    with pytest.raises(BadInput, match=r" of .* must be "):
        make()


def test_the_sentence_is_that_of_the_command_line():
    output = []
    for make in (lambda: Fud(window="early"), lambda: parse("metric", "fud(window=early)")):
        with pytest.raises(BadInput) as caught:
            make()
        output.append(str(caught.value))
    assert output[0] == output[1]


@checked
@dataclass(frozen=True)
class Odd:
    """What dataclasses allow: fields by name only, a default that is no choice, a list of choices."""

    side: Literal["left", "right"] = None  # type: ignore[assignment]
    several: tuple[Literal["a", "b"], ...] = ("a",)
    _: KW_ONLY
    either: Literal["one"] | int = 3
    rest: Any = field(default_factory=list)


def test_what_a_dataclass_can_do_it_still_can():
    odd = Odd("left", ("b", "a"), either="one")
    assert replace(Odd(), either=4) == Odd(either=4)  # its odd default passes
    assert pickle.loads(pickle.dumps(odd)) == odd
    assert list(inspect.signature(Odd).parameters) == ["side", "several", "either", "rest"]
    assert hash(AGI(path="cumulative")) == hash(AGI(path="cumulative"))
    for make in (lambda: Odd("up"), lambda: Odd(several=("c",)), lambda: Odd(either="two")):
        with pytest.raises(BadInput):
            make()
    with pytest.raises(TypeError, match="unexpected keyword"):
        Odd(nothing=1)
    with pytest.raises(TypeError, match="positional"):
        Odd("left", ("a",), 3)


def test_an_init_of_ones_own_is_left_alone():
    class Own:
        def __init__(self, side: Literal["left"]) -> None:
            self.side = side

    before = Own.__init__
    assert checked(Own).__init__ is before
    assert checked(dataclass(init=False)(Own)).__init__ is before


def test_checking_is_no_part_of_what_user_code_does():
    def made():
        @dataclass(frozen=True)
        class Own:
            side: Literal["left", "right"] = "left"

            def __call__(self, value: int) -> int:
                return value + 1

        return Own

    one, other = checked(made()), checked(made())
    assert source_hash.digest(one) == source_hash.digest(other)
    assert one.__init__.__module__ == "heatproof.field_types"
