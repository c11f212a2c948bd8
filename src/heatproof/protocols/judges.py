"""The judges judged: metrics on trial within a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from heatproof.audit.judges.bench import variants
from heatproof.audit.judges.ladders import forms, ladder_of, shown_on
from heatproof.audit.judges.on_trial import OnTrial
from heatproof.audit.judges.panel import METHODS, METRICS
from heatproof.errors import BadInput
from heatproof.protocols._support.blind_controls import have_regions
from heatproof.protocols._support.given import Datasets, Methods, Models
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.registry import protocol
from heatproof.results.protocol_notes import JudgesNotes, TrialNote
from heatproof.spec import recipe
from heatproof.spec.parse import components, parse
from heatproof.spec.study import Study
from heatproof.traits import cost_of, metric_traits
from heatproof.types import AnyMethod, Metric


@protocol
@dataclass(frozen=True)
class Judges:
    """Which metric can be trusted: metrics on trial, on maps of known quality made for the pictures of the run.

    Each metric judges the methods as ever, and beside them the truth, the truth degraded by known doses, noise and
    maps that see no model, under other seeds and settings. The truth are the pictures' regions, or where there are none
    a method's map, occlusion unless `truth` names another. The report ranks the metrics, marks those that fail, and
    says which to use for which question. `heatproof audit` adds disturbed pictures and weights.

    Paper: Hedström et al. 2023, "The Meta-Evaluation Problem in Explainable AI: Identifying Reliable Estimators with
    MetaQuantus"
    """

    metrics: Any = METRICS  # names, or metrics
    truth: Any = ""
    pictures: int = 32

    order: ClassVar[int] = 9
    apart: ClassVar[Literal[True]] = True

    def __post_init__(self) -> None:
        if self.pictures < 4:
            raise BadInput(f"pictures of the protocol judges must be at least 4, got {self.pictures}")

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """One study: the methods with other settings of each, and the truth."""
        check_model_named(models, datasets)
        pictures = list(datasets or ["two_factor"])
        truth = self._truth(have_regions(pictures))
        usual = methods or components("method", METHODS)
        named = [parse("method", one) if isinstance(one, str) else one for one in usual]
        real: list[AnyMethod] = [one for one in named if recipe.label(one) != recipe.label(truth)]
        others = forms({recipe.label(one): one for one in real})
        on_trial = [OnTrial(one, truth) for one in self._metrics()]
        notes = JudgesNotes(
            truth=recipe.label(truth),
            real=tuple(recipe.label(one) for one in real),
            forms={recipe.label(one.method): one.form_of for one in others},
            trials={recipe.label(one): _noted(one.metric) for one in on_trial},
        )
        return [
            Study(
                models=models or ["embedded:object"],
                datasets=pictures,
                methods=[*real, *(one.method for one in others), truth],
                metrics=on_trial,
                protocol="judges",
                limit=self.pictures,
                notes=notes.plain(),
            )
        ]

    def _truth(self, regions: bool) -> AnyMethod:
        if isinstance(self.truth, str):
            named = self.truth or ("oracle" if regions else "occlusion")
            return parse("method", named)  # type: ignore[no-any-return]
        return self.truth  # type: ignore[no-any-return]

    def _metrics(self) -> list[Metric]:
        given = components("metric", self.metrics) if isinstance(self.metrics, str) else self.metrics
        return [parse("metric", one) if isinstance(one, str) else one for one in given]


def _noted(metric: Metric) -> TrialNote:
    traits, cost = metric_traits(metric), cost_of(metric)
    return TrialNote(
        metric=recipe.label(metric),
        measures=traits.measures,
        chance=traits.chance,
        shown=shown_on(ladder_of(traits.measures)),
        settings=tuple(name for name, _ in variants(metric)),
        passes=(cost.forward, cost.shared, cost.explanations) if cost else None,
    )
