"""Average precision and AUROC: the pixel order against the region."""

from __future__ import annotations

from dataclasses import dataclass

from heatproof.metrics._support.localisation import ByOrder
from heatproof.metrics._support.pixel_ranking import (
    auroc,
    average_precision,
)
from heatproof.registry import metric
from heatproof.types import Attribution, Scored


@metric
@dataclass(frozen=True)
class AveragePrecision(ByOrder):
    """The area under precision over recall when pixels are taken hottest first."""

    def __call__(self, attribution: Attribution, /) -> Scored:
        return self.judge(attribution, average_precision)


@metric("auroc")
@dataclass(frozen=True)
class AUROC(ByOrder):
    """The chance that a pixel inside the region is hotter than one outside: 0.5 is chance."""

    def __call__(self, attribution: Attribution, /) -> Scored:
        return self.judge(attribution, auroc)


metric.alias("AUC", AUROC, "Quantus. Equal up to ties.")
