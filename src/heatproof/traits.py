"""Traits: what components declare of themselves. The one place that reads them, with the defaults.

A component declares a trait as a class attribute, a field or a property of that name; what it leaves out has the
default. Plain functions have the defaults, too, or attributes set on them.

    class Ours:
        signed: ClassVar[bool] = False                  # its maps have no evidence against the target
        normalisation: ClassVar[Rule] = "positive"      # and become heat by dropping what is below zero
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar

from heatproof.errors import BadInput
from heatproof.registry import fits, hints_of

Rule: TypeAlias = Literal["abs_p99", "abs_min_max", "positive", "positive_p99", "min_max", "rank"]
Measures: TypeAlias = Literal[
    "faithfulness",
    "localisation",
    "robustness",
    "randomisation",
    "axiom",
    "pictures",
    "chance",
    "description",
    "other",
]
Need: TypeAlias = Literal["regions", "twins", "gradients", "attention", "prior"]


@dataclass(frozen=True)
class MethodTraits:
    """What the rest of the program knows of a method."""

    signed: bool = True  # values below zero mean evidence against the target
    control: bool = False  # a yardstick, no contestant
    blind: bool = False  # a control that knows neither model nor answer
    normalisation: Rule = "abs_p99"  # how its maps become heat: a pixel-wise gradient map, unless declared
    unstable: bool | None = None  # whether it amplifies float noise; None: as measured, if it is built in
    stored: bool = False  # its maps were made before: it cannot explain other pictures, classes or models
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class MetricTraits:
    """What the rest of the program knows of a metric, beside its direction."""

    measures: Measures = "other"  # pictures, chance and description compare no methods
    share: bool = False  # it counts hits: every score is 0 or 1
    axes: tuple[str, ...] = ("", "")  # labels of its curves
    chance: float | None = None  # what knows nothing scores, where that is known
    target: str = ""  # "label" where it asks about the picture's own class
    needs: tuple[Need, ...] = ()
    follows_map: bool = True  # for the audit: the pictures it shows depend on the map
    changes_pictures: bool = True  # for the audit: it shows the model changed pictures


@dataclass(frozen=True)
class ImputerTraits:
    """What the rest of the program knows of an imputer."""

    random: bool = False  # it draws: several imputations are averaged
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True)
class SegmenterTraits:
    """What the rest of the program knows of a segmenter."""

    expected: int = 0  # how many segments a picture has, about; 0: unknown


T = TypeVar("T")


def method_traits(method: object) -> MethodTraits:
    return _declared(MethodTraits, method)


def metric_traits(metric: object) -> MetricTraits:
    return _declared(MetricTraits, metric)


def imputer_traits(imputer: object) -> ImputerTraits:
    return _declared(ImputerTraits, imputer)


def segmenter_traits(segmenter: object) -> SegmenterTraits:
    return _declared(SegmenterTraits, segmenter)


def _declared(traits: Callable[..., T], component: object) -> T:
    """The declared traits, each checked: one of the wrong type would be taken for something else later."""
    found = {}
    for name, default, hint in _known(traits):
        value = getattr(component, name, default)
        if not fits(value, hint):
            who = type(component).__name__
            raise BadInput(f"{name} of {who} must be {_WORDS.get(name, hint)}, got {value!r}")
        found[name] = tuple(value) if isinstance(value, list) else value
    return traits(**found)


_WORDS: dict[str, str] = {"axes": "two labels, of x and of y"}


@cache
def _known(traits: Any) -> tuple[tuple[str, Any, Any], ...]:
    hints = hints_of(traits)
    return tuple((field.name, field.default, hints[field.name]) for field in fields(traits))


def cost_of(method: object) -> Any:
    """Passes per image as the method declares them (`Cost`), or None."""
    declared: Callable[[], Any] | None = getattr(method, "cost", None)
    return declared() if declared is not None else None
