"""Mosaic metrics: a heatmap as a classifier whose positive relevance means "target here", negative "not here".

Relevance is added up, not counted: TP and FN are the positive and negative relevance on tiles that show the
target, FP and TN the same on the others. A ratio without a denominator is undefined: NaN with a note, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from heatproof import registry
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.precomputed import Precomputed
from heatproof.metrics._support.regions import check_pair, finite_rows, regions_of
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.traits import Need, method_traits
from heatproof.types import AnyMethod, Attribution, Batch, Keep, Maps, Model, Scored

Ratio = Literal["precision", "recall", "specificity", "accuracy", "f1", "fnr", "fpr"]

# Why each ratio may be undefined.
LACKING: dict[Ratio, str] = {
    "precision": "the map has no positive relevance",
    "recall": "the map is zero on the target tiles",
    "fnr": "the map is zero on the target tiles",
    "specificity": "the map is zero on the other tiles",
    "fpr": "the map is zero on the other tiles",
    "accuracy": "the map is zero everywhere",
    "f1": "the map has no positive relevance, or is zero on the target tiles",
}


ONE_SIGN = "the map has no negative relevance"


class Confusion(NamedTuple):
    """Sums of relevance, (B,) float64 each."""

    tp: Tensor
    fp: Tensor
    fn: Tensor
    tn: Tensor


def confusion(maps: Maps, target_region: Keep) -> Confusion:
    """The four sums: positive and negative relevance, on the target tiles and off them."""
    check_pair(maps, target_region)
    finite = finite_rows(maps)
    if not bool(finite.all()):
        raise BadInput(f"maps must be finite, got NaN or infinity in {int((~finite).sum())} of {len(maps)}")
    values, inside = maps.flatten(1).double(), target_region.flatten(1)
    positive, negative = values.clamp(min=0), (-values).clamp(min=0)
    return Confusion(
        tp=positive.where(inside, 0.0).sum(1),
        fp=positive.where(~inside, 0.0).sum(1),
        fn=negative.where(inside, 0.0).sum(1),
        tn=negative.where(~inside, 0.0).sum(1),
    )


def mosaic_scores(maps: Maps, target_region: Keep) -> dict[Ratio, Tensor]:
    """All seven ratios, (B,) float64 each; NaN where one is undefined. Precision is also called Focus."""
    tp, fp, fn, tn = confusion(maps, target_region)
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    specificity = tn / (fp + tn)
    # 2PR / (P + R) without its own 0/0: 0 where P and R are both 0, undefined where either of them is.
    f1 = torch.where((tp + fp > 0) & (tp + fn > 0), 2 * tp / (2 * tp + fp + fn), torch.nan)
    return {
        "precision": precision,
        "recall": recall,
        "specificity": specificity,
        "accuracy": (tp + tn) / (tp + fp + fn + tn),
        "f1": f1,
        "fnr": fn / (tp + fn),
        "fpr": fp / (fp + tn),
    }


def _is_known_signed(method: AnyMethod | None) -> bool:
    """Whether a method is known to give both signs, so that maps of one sign are valid; others are checked by map."""
    return registry.name_of(method) is not None and not isinstance(method, Precomputed)


@dataclass(frozen=True)
class MosaicRatio:
    """The base of the seven ratios; most of them need relevance of both signs.

    Paper: Fresz et al. 2024, "Classification Metrics for Image Explanations: Towards Building Reliable
    XAI-Evaluations"
    """

    unfit: ClassVar[Unfit] = (("value", "a mosaic asks where a class is"),)

    ratio: ClassVar[Ratio]
    higher_is_better: ClassVar[bool] = True
    measures: ClassVar[Literal["localisation"]] = "localisation"
    question: ClassVar[str] = "Signed rightly?"
    needs: ClassVar[tuple[Need, ...]] = ("regions",)

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions = regions_of(attribution)
        one_sign = [False] * len(attribution.maps) if self.ratio == "precision" else self._one_sign(attribution)
        values = mosaic_scores(attribution.maps, regions)[self.ratio]
        if not _is_known_signed(attribution.method):  # a map that is never negative would win without being better
            values = values.masked_fill(torch.tensor(one_sign, device=values.device), torch.nan)
        notes = tuple(
            ONE_SIGN if single else LACKING[self.ratio] if missing else ""
            for missing, single in zip(values.isnan().tolist(), one_sign, strict=True)
        )
        return Scored(values, notes, details={"one_sign": torch.tensor(one_sign, dtype=torch.float64)})

    def _one_sign(self, attribution: Attribution) -> list[bool]:
        """Which maps have no negative relevance; `NotApplicable` if the method is unsigned.

        Maps that are never negative have recall 1 whatever they show.
        """
        if not method_traits(attribution.method).signed:
            raise NotApplicable(f"{self.ratio} needs negative relevance too, and this method has none: take precision")
        maps = attribution.maps.flatten(1)
        return ((maps >= 0).all(1) & (maps > 0).any(1)).tolist()

    def stage(self) -> tuple[Model, Batch]:
        """Mosaics of the embedded pictures, for the conformance kit."""
        from heatproof import models
        from heatproof.data.mosaic import Mosaic
        from heatproof.data.two_factor import EASY_PAIR

        return models.load("embedded:object"), Mosaic(between=EASY_PAIR, per_class=2).batch(range(4))


@metric
@dataclass(frozen=True)
class MosaicPrecision(MosaicRatio):
    """The share of positive relevance that lies on the tiles of the target class; also called Focus.

    Paper: Arias-Duart et al. 2022, "Focus! Rating XAI Methods and Finding Biases"
    """

    ratio: ClassVar[Ratio] = "precision"
    question: ClassVar[str] = ""  # it sees one sign only


@metric
@dataclass(frozen=True)
class MosaicRecall(MosaicRatio):
    """The share of the relevance on the target tiles that is positive."""

    ratio: ClassVar[Ratio] = "recall"


@metric
@dataclass(frozen=True)
class MosaicSpecificity(MosaicRatio):
    """The share of the relevance on the other tiles that is negative."""

    ratio: ClassVar[Ratio] = "specificity"


@metric
@dataclass(frozen=True)
class MosaicAccuracy(MosaicRatio):
    """The share of all relevance that has the right sign for its tile."""

    ratio: ClassVar[Ratio] = "accuracy"


@metric("mosaic_f1")
@dataclass(frozen=True)
class MosaicF1(MosaicRatio):
    """The harmonic mean of precision and recall of the relevance."""

    ratio: ClassVar[Ratio] = "f1"


@metric("mosaic_fnr")
@dataclass(frozen=True)
class MosaicFNR(MosaicRatio):
    """The share of the relevance on the target tiles that is negative: 1 - recall, lower is better."""

    ratio: ClassVar[Ratio] = "fnr"
    higher_is_better: ClassVar[bool] = False


@metric("mosaic_fpr")
@dataclass(frozen=True)
class MosaicFPR(MosaicRatio):
    """The share of the relevance on the other tiles that is positive: 1 - specificity, lower is better."""

    ratio: ClassVar[Ratio] = "fpr"
    higher_is_better: ClassVar[bool] = False


metric.alias("Focus", MosaicPrecision, "Quantus. Equal.")
