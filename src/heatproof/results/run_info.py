"""What was run, as typed data: the content of `info.json`, written by the run and read by everything right of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

import msgspec

from heatproof.questions import Question
from heatproof.storage.sealed_json import typed
from heatproof.traits import MethodTraits, MetricTraits

LARGEST = 1e300  # no number of a run is larger; not a number and infinity are none
Real = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]

# Metrics that describe the pictures (how large a region is) or the maps (how sparse they are), or that give the score
# of chance, compare no methods.
APART = ("pictures", "description", "chance")
BLIND = ("random", "edges", "centre", "constant", "random_weights")  # by registered name, in runs without the trait

T = TypeVar("T")


@dataclass(frozen=True)
class ComponentInfo:
    """What a component is called, in words and by its fields."""

    name: str = ""  # as registered
    summary: str = ""
    paper: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    hides: str = ""  # what it hides, and with what, in words: "25 rectangles, filled with ImageNet's mean colour"
    label: str = ""  # the whole label, where a shorter one is shown instead


@dataclass(frozen=True)
class MethodInfo(MethodTraits, ComponentInfo):
    """A method that was judged. `unstable` is as declared, or as measured; `random`, as of its parts."""

    float_noise: Positive | None = None  # how far rounding moved its maps of a sample, relative to their length


@dataclass(frozen=True)
class MetricInfo(MetricTraits, ComponentInfo):
    """A metric that judged."""

    higher_is_better: bool | None = None  # None: not stored, and then nothing is ranked
    main: bool = True  # an answer of its protocol, not a variant or by-product
    cost: Mapping[str, Any] | None = None

    @property
    def ranks(self) -> bool:
        """Whether it compares methods."""
        return self.measures not in APART

    @property
    def drawn_axes(self) -> tuple[str, str]:
        """Labels of x and of y of its curves."""
        x, y = (*self.axes, "", "")[:2]
        return x, y


@dataclass(frozen=True)
class StudyInfo:
    """One study as stored: what it judges, and the notes of its protocol for that protocol's section."""

    models: tuple[Mapping[str, str | None], ...] = ()
    datasets: tuple[Mapping[str, Any], ...] = ()
    methods: tuple[Any, ...] = ()
    metrics: tuple[Any, ...] = ()
    pictures: tuple[Any, ...] = ()
    protocol: str = ""
    seed: int = 0
    limit: int | None = None
    sample: str = "first"
    shard: int | None = None
    repeats: int = 0
    target: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    folder: str = ""

    @property
    def model_names(self) -> list[str]:
        return [name for one in self.models if (name := one.get("spec"))]

    @property
    def dataset_names(self) -> list[str]:
        """Registered names of the data sets; `another` for those that have none."""
        return [str(one.get("dataset", "another")) for one in self.datasets]

    def noted(self, notes: type[T]) -> T:
        """The notes of the protocol as its own dataclass."""
        return typed(notes, self.notes, f"the notes of {self.protocol or 'a study'} in info.json")


@dataclass(frozen=True)
class Accuracy:
    """The share of pictures that the model classifies correctly, with its interval."""

    share: Share
    low: Share
    high: Share


@dataclass(frozen=True)
class Census:
    """The pictures of one data set as one model meets them."""

    dataset: str
    model: str
    pictures: Count
    classes: Mapping[str, Count]  # pictures of each, the most frequent first
    known: Count = 0  # pictures of which it is known whether the model is right
    right: Count = 0
    narrow: Mapping[str, tuple[Real, Real]] = field(default_factory=dict)  # some pictures of little value range
    narrow_count: Count = 0
    accuracy: Accuracy | None = None
    question: Question = "classes"  # what the model is asked
    per_label: bool = False  # it answers with several labels or values: an entry is one of them on one picture
    distinct: Count = 0  # pictures of these entries


@dataclass(frozen=True)
class Stop:
    """Where one data set under one model stopped."""

    dataset: str
    model: str
    shards: Count
    pictures: Count
    available: Count
    looks: tuple[Count, ...]  # pictures at each look of the run
    reason: str  # decided, max_images or interrupted


@dataclass(frozen=True)
class Decision:
    """What was decided on a pair of methods, and when."""

    dataset: str
    model: str
    metric: str
    method_a: str
    method_b: str
    outcome: str  # better, worse, equivalent or open
    pictures: Count = 0
    difference: Real | None = None
    low: Real | None = None
    high: Real | None = None
    look: int | None = None


@dataclass(frozen=True)
class Dropped:
    """A method that left the race."""

    dataset: str
    model: str
    metric: str
    method: str
    pictures: Count


@dataclass(frozen=True)
class Until:
    """The rule by which a run stopped, and how it ended."""

    margin: Positive
    alpha: Share
    rule: str = "solid"
    max_images: int | None = None
    race: bool = False
    metric: str | None = None
    steps: str = "full"  # of curves: "fast" ones have fewer points
    family: Count = 0  # pairs that are judged together
    levels: tuple[Share, ...] = ()  # the share of the error rate of each look
    finished: bool = True
    stops: tuple[Stop, ...] = ()
    pairs: tuple[Decision, ...] = ()
    undecided: Count = 0
    dropped: tuple[Dropped, ...] = ()

    def __post_init__(self) -> None:
        if any(len(stop.looks) < len(self.levels) for stop in self.stops):
            raise ValueError("every stop must count its pictures at each of the looks")


@dataclass(frozen=True)
class Machine:
    """Where a run ran."""

    system: str = ""
    processor: str = ""
    threads: int = 0


@dataclass(frozen=True)
class RunInfo:
    """What was run: enough to run it again, and for the report to speak of each component."""

    edition: int | None = None
    studies: tuple[StudyInfo, ...] = ()
    protocols: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # protocols that do not apply -> why
    methods: Mapping[str, MethodInfo] = field(default_factory=dict)  # by label
    metrics: Mapping[str, MetricInfo] = field(default_factory=dict)  # by label
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Machine = Machine()
    started: str = ""
    seconds: Positive | None = None
    engine_kind: str = ""
    engine: Any = None  # how each network was run
    damaged: tuple[str, ...] = ()
    pictures: tuple[Census, ...] = ()
    stopped: str = ""  # of which part the results are, if the run was stopped
    until: Until | None = None

    def method(self, label: str) -> MethodInfo:
        """The method of this label; one without any traits if it is not known."""
        return self.methods.get(label, MethodInfo())

    def metric(self, label: str) -> MetricInfo:
        """The metric of this label; one without direction if it is not known."""
        return self.metrics.get(label, MetricInfo())

    def of_protocol(self, name: str) -> list[StudyInfo]:
        return [study for study in self.studies if study.protocol == name]

    def called(self, names: Mapping[str, str]) -> RunInfo:
        """The same with other labels for its methods; each keeps its whole label."""
        methods = {names.get(label, label): replace(one, label=label) for label, one in self.methods.items()}
        return replace(self, methods=methods)

    def plain(self) -> dict[str, Any]:
        """JSON-ready data; `run_info` is the inverse."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def run_info(stored: Any, where: object = "info.json") -> RunInfo:
    """Run information from stored data, checked to the last field; `Damaged` says what is wrong where."""
    info = typed(RunInfo, stored, where)
    return replace(
        info, methods={label: _known_blind(one, stored["methods"][label]) for label, one in info.methods.items()}
    )


def _known_blind(method: MethodInfo, stored: Mapping[str, Any]) -> MethodInfo:
    """Runs from before the trait know blind controls by their names."""
    return method if "blind" in stored else replace(method, blind=method.control and method.name in BLIND)


def unsigned(info: RunInfo, methods: Sequence[str]) -> list[str]:
    """Those of the methods whose maps have no evidence against the target."""
    return [label for label in methods if not info.method(label).signed]
