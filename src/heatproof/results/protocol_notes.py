"""What the built-in protocols note of their studies for their sections of the report, as stored in `study.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from heatproof.results.run_info import Count, Real, RunInfo, Share
from heatproof.stats.judges.evidence import Shown
from heatproof.stats.strata import Rule as StrataRule
from heatproof.stats.strategies import Strategy, distinguished
from heatproof.traits import Measures


@dataclass(frozen=True)
class ProtocolNotes:
    """What every protocol can note."""

    main: tuple[str, ...] | None = None  # labels of the metrics that are its answer; None: all
    preset: str = ""

    def plain(self) -> dict[str, Any]:
        """As `Study.notes` holds it: JSON-ready, without what was not noted."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class PixelFlippingNotes(ProtocolNotes):
    """The occlusion strategies, and what takes hidden parts from pictures that are judged themselves."""

    setups: tuple[Strategy, ...] = ()
    donors: str = ""
    matching: Mapping[str, str] = field(default_factory=dict)  # Shapley values -> the imputer they hide with


def strategies_of(info: RunInfo) -> list[Strategy]:
    """The occlusion strategies of a run's pixel-flipping studies."""
    noted = (study.noted(PixelFlippingNotes) for study in info.of_protocol("pixel_flipping"))
    return distinguished(strategy for notes in noted for strategy in notes.setups)


@dataclass(frozen=True)
class FittedTemperature:
    """A temperature for methods that read probabilities, and its effect on held-out pictures."""

    value: Real
    pictures: Count
    confidence_before: Share
    confidence_after: Share
    accuracy: Share
    nll_before: float | None = None
    nll_after: float | None = None
    unlabelled: Count = 0
    doubt: str = ""


@dataclass(frozen=True)
class SizeStrata:
    """How pictures are split by the size of their region."""

    rule: StrataRule = "percentile of the evaluated set"
    percentiles: tuple[Real, ...] = (33.0, 67.0)
    cutoffs: tuple[Real, ...] | None = None
    pool_size: Count = 0


@dataclass(frozen=True)
class ThresholdFreeNotes(ProtocolNotes):
    """The settings of AUC-IoU for one model."""

    rule: str = ""
    area: str = ""
    temperature: FittedTemperature | str = ""  # or why there is none
    strata: SizeStrata = SizeStrata()
    rules: Mapping[str, str] = field(default_factory=dict)  # method -> normalising rule


@dataclass(frozen=True)
class MosaicsNotes(ProtocolNotes):
    """The mosaics: tiles per side, and the plan of each data set."""

    grid: Annotated[int, msgspec.Meta(ge=1)] = 2
    target: str = "given"
    plans: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # as `Mosaic.from_plan` reads them

    def grid_of(self, dataset: str) -> int:
        """Tiles per side: of a data set with a plan of its own, else of the protocol."""
        planned = self.plans.get(dataset, {}).get("grid", self.grid)
        return planned if isinstance(planned, int) else self.grid


@dataclass(frozen=True)
class AuditPart:
    """What one metric of an audit measures, and on which evaluation."""

    evaluation: str
    statistic: str
    reference: str = ""


@dataclass(frozen=True)
class InDistributionNotes(ProtocolNotes):
    """The prior, and the metrics of the audit by label."""

    profile: str | None = None
    prior: Any = None
    scale: float | None = None
    background: str | None = None
    audit: Mapping[str, AuditPart] = field(default_factory=dict)
    audited: str | None = None  # which methods, if not all


@dataclass(frozen=True)
class TrialNote:
    """A metric on trial: which maps of known quality it was shown, and under which other settings it was asked."""

    metric: str = ""
    measures: Measures = "other"
    chance: float | None = None
    shown: tuple[Shown, ...] = ()
    settings: tuple[str, ...] = ()
    passes: tuple[float, float, float] | None = None  # declared: for each map, shared, and maps computed again


@dataclass(frozen=True)
class JudgesNotes(ProtocolNotes):
    """What a run of the judges put on trial, and by which maps."""

    truth: str = ""  # the method whose map counts as right
    real: tuple[str, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)  # method under another setting -> the method
    trials: Mapping[str, TrialNote] = field(default_factory=dict)  # by label of the metric on trial


@dataclass(frozen=True)
class Variant:
    """One form of a metric."""

    metric: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def region(self) -> str:
        return str(self.fields.get("region") or "")

    @property
    def rule(self) -> str:
        return str(self.fields.get("rule") or "")

    @property
    def is_change(self) -> bool:
        """Whether it is the mean change, and not the published share."""
        return self.metric.endswith("_change")


@dataclass(frozen=True)
class SeriesPoint:
    """One model of the k-series."""

    k: int  # scenes that carry the object
    with_object: float | None  # None, and NaN before it is stored, where it could not be measured
    without_object: float | None

    @property
    def drop(self) -> float:
        """How much of the accuracy goes with the object; NaN where that is not known."""
        if self.with_object is None or self.without_object is None:
            return math.nan
        return self.with_object - self.without_object


@dataclass(frozen=True)
class RelativeImportanceNotes(ProtocolNotes):
    """One part of the protocol: what its design presumes, measured, and which pictures share scenes and objects."""

    part: str = ""
    accuracy: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)  # role -> pictures -> accuracy
    rises: Mapping[str, float | None] = field(
        default_factory=dict
    )  # role -> share whose confidence rises without object
    roles: Mapping[str, str] = field(default_factory=dict)  # role -> model
    classes: Count = 0
    pictures: Count = 0
    twins: str = ""
    clusters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # image -> scene, object
    datasets: tuple[str, ...] = ()
    metrics: Mapping[str, Variant] = field(default_factory=dict)
    series: Mapping[str, SeriesPoint] = field(default_factory=dict)  # model -> accuracies
