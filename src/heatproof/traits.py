"""Traits: what components declare about themselves, read in this one place, with defaults.

A component declares a trait as a class attribute, a field or a property of that name; missing traits have the
default. Plain functions have the defaults, or attributes set on them.

    class Ours:
        signed: ClassVar[bool] = False                  # its maps have no evidence against the target
        normalisation: ClassVar[Rule] = "positive"      # and values below zero are dropped for heat
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar

from heatproof.errors import BadInput
from heatproof.field_types import fits, hints_of
from heatproof.questions import IN_WORDS, NO_PROBABILITY, Question, Unfit
from heatproof.registry import name_of

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
Need: TypeAlias = Literal["regions", "twins", "labels", "gradients", "attention", "prior"]

Pairs: TypeAlias = tuple[tuple[str, Any], ...]  # fields of a component and their values


@dataclass(frozen=True)
class MethodTraits:
    """The traits of a method."""

    signed: bool = True  # values below zero mean evidence against the target
    control: bool = False  # a yardstick, not a contestant
    blind: bool = False  # a control that uses neither model nor answer
    normalisation: Rule = "abs_p99"  # how its maps become heat; the default suits pixel-wise gradients
    unstable: bool | None = None  # whether it amplifies float noise; None: as measured, for built-in methods
    random: bool = False  # it samples: another seed gives another map
    stored: bool = False  # its maps are precomputed: it cannot explain other pictures, classes or models
    needs: tuple[Need, ...] = ()
    unfit: Unfit = ()  # the questions of a model that it has no answer to, each with the reason


@dataclass(frozen=True)
class MetricTraits:
    """The traits of a metric, beside its direction."""

    measures: Measures = "other"  # "pictures", "chance" and "description" do not rank methods
    question: str = (
        ""  # the column it answers in the report's first table, such as "Signed rightly?"; "": by `measures`
    )
    share: bool = False  # it counts hits: each score is 0 or 1
    axes: tuple[str, ...] = ("", "")  # labels of its curves
    chance: float | None = None  # the score of maps without information, where known
    target: str = ""  # "label" if it evaluates the picture's true class
    needs: tuple[Need, ...] = ()
    unfit: Unfit = ()  # as of methods
    follows_map: bool = True  # for the audit: the pictures it shows depend on the map
    changes_pictures: bool = True  # for the audit: it shows the model changed pictures


@dataclass(frozen=True)
class ImputerTraits:
    """The traits of an imputer."""

    random: bool = False  # it samples: several imputations are averaged
    concurrent: bool = False  # several threads may call it at once, a row each, while the network works
    needs: tuple[Need, ...] = ()
    in_words: str = ""  # what hidden pixels are filled with, for captions: "uniform noise"


@dataclass(frozen=True)
class SegmenterTraits:
    """The traits of a segmenter."""

    expected: int = 0  # approximate number of segments per picture; 0: unknown
    in_words: str = ""  # its segments, for captions: "25 rectangles"


@dataclass(frozen=True)
class PartTraits:
    """The traits of a part of other components."""

    short: tuple[str, ...] = ()  # the fields of its short form, `first/second x3`, by which it is typed and printed
    in_words: str = ""  # what it does, for captions and the report


@dataclass(frozen=True)
class DatasetTraits:
    """The traits of a data set, beside what every one has (`types.Dataset`)."""

    view: Any = ...  # how pictures are cut: a `View`; None: as each model wants them; left out: they have one size
    classes: Any = None  # names of the labels; (): those of the model; None: no names
    target: str = ""  # "given" if each picture comes with the class that is explained
    several: bool = False  # pictures may carry several labels
    levels: Any = ...  # values of black and white in deep pictures; left out: no choice
    grey: bool | None = None  # whether pictures are read in one channel; None: no choice
    takes_turns: bool = False  # in its order classes take turns, so that its first pictures are a fair sample
    exact_twins: bool = False  # twins that differ outside the region are left out
    path: Any = ""  # of its files
    of: Any = None  # the data set it is made of
    fitted: Any = None  # `fitted(model)`: the data set as the model needs it, if it knows that itself
    class_labels: Any = None  # `class_labels()`: the label of every picture without reading any

    @property
    def uncut(self) -> bool:
        """Whether each model cuts the pictures as it wants them."""
        return self.view is None

    @property
    def unnamed(self) -> bool:
        """Whether labels are to be named and numbered as the model does."""
        return isinstance(self.classes, tuple) and not self.classes


@dataclass(frozen=True)
class ProtocolTraits:
    """The traits of a protocol."""

    order: int = 100  # among the protocols of a run of all of them, small first
    needs: tuple[Need, ...] = ()  # what pictures must bring
    models: int = 1  # the fewest models it compares
    unfit: Unfit = ()  # the questions of models that it has no answer to, each with the reason
    apart: bool = False  # it judges something else than methods: a run of all protocols leaves it out
    labels: bool = True  # it judges networks of several independent labels or values, one by one
    paper: Pairs = ()  # fields of the published settings
    brief: Pairs = ()  # fields that make it affordable beside all the others
    prior: Any = None  # the diffusion prior it draws with; "embedded" knows pictures like the embedded ones only


T = TypeVar("T")


def method_traits(method: object) -> MethodTraits:
    return _declared(MethodTraits, method)


def metric_traits(metric: object) -> MetricTraits:
    return _declared(MetricTraits, metric)


def imputer_traits(imputer: object) -> ImputerTraits:
    return _declared(ImputerTraits, imputer)


def segmenter_traits(segmenter: object) -> SegmenterTraits:
    return _declared(SegmenterTraits, segmenter)


def part_traits(part: object) -> PartTraits:
    return _declared(PartTraits, part)


def dataset_traits(dataset: object) -> DatasetTraits:
    return _declared(DatasetTraits, dataset)


def protocol_traits(protocol: object) -> ProtocolTraits:
    return _declared(ProtocolTraits, protocol)


READERS: dict[str, Callable[[object], object]] = {
    "method": method_traits,
    "metric": metric_traits,
    "imputer": imputer_traits,
    "segmenter": segmenter_traits,
    "dataset": dataset_traits,
    "protocol": protocol_traits,
    "part": part_traits,
}


def _declared(traits: Callable[..., T], component: object) -> T:
    """The declared traits, type-checked here: a wrong type would be misread later."""
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


def is_random(method: object) -> bool:
    """Whether a method samples, by itself or by a component in its fields: a wrapped method, an imputer that draws."""
    return any(getattr(part, "random", False) is True for part in parts_of(method))


def cost_of(method: object) -> Any:
    """Passes per image that the method declares (`Cost`), or None."""
    declared: Callable[[], Any] | None = getattr(method, "cost", None)
    return declared() if declared is not None else None


def premise_of(component: object) -> Callable[[Any, Any], None] | None:
    """The check that a component declares as `premise(model, batch)`, or None.

    It raises for what the first picture shows before any work is done: a prior for pictures of other channels.
    """
    declared: Callable[[Any, Any], None] | None = getattr(component, "premise", None)
    return declared


def bound_to(method: T, dataset: object) -> T:
    """The method as it is on this data set, if it declares that this matters (`for_dataset(dataset)`), else itself."""
    declared: Callable[[object], T] | None = getattr(method, "for_dataset", None)
    return method if declared is None else declared(dataset)


def fast_of(metric: T) -> T:
    """The metric on fewer points of its curve, if it declares such a form (`fast()`), else itself."""
    declared: Callable[[], T] | None = getattr(metric, "fast", None)
    return metric if declared is None else declared()


def flip_book_of(metric: object) -> Callable[[Any], Any] | None:
    """What a metric declares as `flip_book(attribution)`, or None: what the model sees along its curve."""
    declared: Callable[[Any], Any] | None = getattr(metric, "flip_book", None)
    return declared


def caution_of(component: object) -> Callable[[Any, Any], str] | None:
    """What a component declares as `caution(model, batch)`, or None: words on what to be careful with, or none.

    Unlike a premise it hinders nothing: an activation map of 2×2 places gives scores, which say little.
    """
    declared: Callable[[Any, Any], str] | None = getattr(component, "caution", None)
    return declared


def revision_of(component: object) -> str:
    """A hash of the files that a component reads, if it declares one, else empty."""
    return str(getattr(component, "revision", ""))


def has_revision(component: object) -> bool:
    """Whether its class declares one: looked up on the class, so that an error in a property comes out."""
    return hasattr(type(component), "revision")


def path_of(dataset: object) -> str | None:
    """The path that a data set was given, empty if it needs one and has none; None if it reads no files."""
    declared: str | None = getattr(dataset, "path", None)
    return declared


def stage_of(component: object) -> Any:
    """The model and pictures that a component declares as `stage()`, for the conformance kit; None if it needs none."""
    declared: Callable[[], Any] | None = getattr(component, "stage", None)
    return declared() if declared is not None else None


def masked_of(dataset: object) -> bool | None:
    """Whether the pictures of a data set have regions; None if it does not say so without reading them."""
    declared: bool | None = getattr(dataset, "masked", None)
    return declared


def present_of(dataset: object) -> Callable[[], Any] | None:
    """What a data set declares as `present()`, or None: the labels that each of its pictures carries."""
    declared: Callable[[], Any] | None = getattr(dataset, "present", None)
    return declared


def needs_of(component: object) -> tuple[Need, ...]:
    """What a component of any kind needs."""
    return tuple(getattr(component, "needs", ()))


def misfit(component: object, question: Question) -> str:
    """Why a component, or one inside it, has no answer to such a question, as a sentence; empty if it has."""
    found = unfit_part(component, question)
    return f"{found[0]} does not apply to {IN_WORDS[question]}: {found[1]}" if found else ""


def unfit_part(component: object, question: Question) -> tuple[str, str] | None:
    """The name of the first part without an answer to such a question, and why.

    A method that reads a probability has none to a value; metrics scale values as they need.
    """
    for one in parts_of(component):
        if reason := dict(getattr(one, "unfit", ())).get(question):
            return title_of(one), reason
        name = name_of(one)
        reads = getattr(one, "readout", "logit") != "logit" and name is not None and name[0] == "method"
        if question == "value" and reads:
            return title_of(one), NO_PROBABILITY
    return None


def title_of(component: object) -> str:
    """The registered name of a component, or that of its class."""
    known = name_of(component)
    return known[1] if known else str(getattr(component, "__name__", type(component).__name__))


def parts_of(component: object) -> Iterator[Any]:
    """A component, then the components in its fields, nested ones too."""
    yield component
    if is_dataclass(component) and not isinstance(component, type):
        for field in fields(component):
            value = getattr(component, field.name, None)
            for item in value if isinstance(value, tuple | list) else (value,):
                if is_dataclass(item):
                    yield from parts_of(item)
