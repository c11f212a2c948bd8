"""Metrics that judge nothing, for the audit to find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from heatproof import engine
from heatproof.methods.controls import Centre
from heatproof.metrics import AUCIoU
from heatproof.types import Attribution, Metric, Scored, Scores, keyed_seed


@dataclass(frozen=True)
class NoiseMetric:
    """A number drawn by lot for every map, the same when called again."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __call__(self, attribution: Attribution, /) -> Scores:
        batch = attribution.batch
        content = [float(one.double().abs().sum()) for one in attribution.maps]
        seeds = [keyed_seed(seed, total) for seed, total in zip(batch.seeds("fraud"), content, strict=True)]
        return torch.tensor([float(torch.rand((), generator=torch.Generator().manual_seed(seed))) for seed in seeds])


@dataclass(frozen=True)
class ConstantMetric:
    """One for every map."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __call__(self, attribution: Attribution, /) -> Scores:
        return torch.ones(len(attribution.batch))


@dataclass(frozen=True)
class ConfidenceMetric:
    """What the model says of the picture, whatever the map."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __call__(self, attribution: Attribution, /) -> Scores:
        answers = engine.forward(attribution.model, attribution.batch.images)
        return answers.softmax(1).amax(1)


@dataclass(frozen=True)
class CentrednessMetric:
    """How much a map looks like a bump in the middle."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"

    def __call__(self, attribution: Attribution, /) -> Scores:
        bump = Centre()(attribution.model, attribution.batch).flatten(1)
        maps = attribution.maps.flatten(1)
        one, other = maps - maps.mean(1, keepdim=True), bump - bump.mean(1, keepdim=True)
        return (one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1)).clamp_min(1e-9)


@dataclass(frozen=True)
class FlippedMetric:
    """A sound metric with its sign turned round."""

    metric: Metric = field(default_factory=AUCIoU)
    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"

    def __call__(self, attribution: Attribution, /) -> Scores:
        answer = self.metric(attribution)
        return -(answer.values if isinstance(answer, Scored) else answer)


@dataclass(frozen=True)
class SmoothnessMetric:
    """How little neighbouring pixels differ."""

    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __call__(self, attribution: Attribution, /) -> Scores:
        maps = attribution.maps / attribution.maps.flatten(1).std(1).clamp_min(1e-9)[:, None, None]
        return -maps.diff(dim=2).abs().flatten(1).mean(1)


FRAUDS = (NoiseMetric(), ConstantMetric(), ConfidenceMetric(), CentrednessMetric(), FlippedMetric(), SmoothnessMetric())
