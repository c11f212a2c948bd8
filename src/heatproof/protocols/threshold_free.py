"""Threshold-free localisation: where do heatmaps look, without choosing a threshold first?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from heatproof import data, models
from heatproof.data.ham10000 import HAM10000
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.blur_ig import BlurIG
from heatproof.methods.cam import GradCam
from heatproof.methods.controls import Oracle
from heatproof.methods.guided_ig import GuidedIG
from heatproof.methods.integrated_gradients import IGSmoothGrad, IntegratedGradients
from heatproof.methods.lime import LIME
from heatproof.methods.xrai import XRAI
from heatproof.metrics._support.changed_masks import Change
from heatproof.metrics._support.normalisation import RULES, Choice, rule_of
from heatproof.metrics.auc_iou import AUCIoU, ExactAUCIoU, IoUByArea
from heatproof.metrics.average_precision import AveragePrecision
from heatproof.metrics.changed_mask import AUCIoUChangedMask
from heatproof.metrics.pointing_game import PointingGame
from heatproof.metrics.region_share import RegionShare, shares
from heatproof.metrics.relevance_mass import RelevanceMass
from heatproof.models._support.temperature import calibrate
from heatproof.occlusion.imputers.constant import Constant
from heatproof.protocols._support.blind_controls import with_controls
from heatproof.protocols._support.given import Datasets, Methods, Models
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.registry import protocol
from heatproof.results.protocol_notes import FittedTemperature, SizeStrata, ThresholdFreeNotes
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import Need, Pairs
from heatproof.types import AnyMethod, Dataset, Metric, Model

Preset = Literal["default", "paper"]

SUBSET = (167, 333)  # melanomas and other lesions of the paper; which ones it does not say
SCALE = (0.4, 0.85)  # 4 % to 50 % of the picture; beyond, the embedded models no longer know the object


def contestants(preset: Preset, temperature: float, cam_layer: str = "") -> list[AnyMethod]:
    """The paper's seven methods; `default` has fewer steps and noisy copies: minutes on a CPU.

    Gradients are pooled by magnitude over the colour channels, as the library behind the paper draws them.
    """
    full = preset == "paper"
    return [
        XRAI(steps=100 if full else 20),
        LIME(1000 if full else 250, 1.0, 10.0, 5, temperature, imputer=Constant(), readout="probability"),
        GradCam(layer=cam_layer),
        IntegratedGradients(steps=25, baseline="mean", pooling="abs_sum"),
        BlurIG(steps=100 if full else 25, pooling="abs_sum"),
        IGSmoothGrad(steps=25 if full else 10, baseline="mean", draws=25 if full else 8, mode="squared"),
        GuidedIG(steps=25, fraction=0.5, max_dist=1.0, baseline="mean", pooling="abs_sum"),
    ]


@protocol
@dataclass(frozen=True)
class ThresholdFree:
    """IoU with the true region over all thresholds, by object size, with the tests that say what is solid.

    Runs on the embedded data, a folder of pictures with a folder of masks, or HAM10000. `preset="paper"` has the
    published settings, and takes 167 melanomas and 333 others of HAM10000. LIME reads probabilities, so its logits
    are divided by a temperature: given, or fitted on `held_out` (a user data set; for embedded models the
    embedded one), else 1. Strata of region size are cut at percentiles of the pictures judged, or of the data set
    `pool`, or at fixed shares (`cutoffs`).

    Paper: Aksoy 2025, "Systematic Evaluation of Attribution Methods: Eliminating Threshold Bias and Revealing
    Method-Dependent Performance Patterns" (arXiv 2509.03176)
    """

    preset: Preset = "default"
    rule: Choice = "by_method"
    thresholds: int = 19
    area: Literal["mean_height", "paper"] = "mean_height"
    cam_layer: str = ""
    temperature: float | None = None
    held_out: Dataset | str | None = None
    percentiles: tuple[float, ...] = (33.0, 67.0)
    pool: Dataset | str | None = None
    cutoffs: tuple[float, ...] | None = None
    mask_quality: bool = False  # judge again with masks that are eroded, dilated, shifted and coarse

    order: ClassVar[int] = 2
    needs: ClassVar[tuple[Need, ...]] = ("regions",)
    paper: ClassVar[Pairs] = (("preset", "paper"),)

    def __post_init__(self) -> None:
        if self.cutoffs is not None and self.pool is not None:
            raise BadInput("strata are cut at percentiles of a pool or at fixed cutoffs: give one of the two")
        if self.temperature is not None and not 0 < self.temperature < math.inf:
            raise BadInput(f"temperature must be a positive number, got {self.temperature}: logits are divided by it")
        self.metrics()  # says how many thresholds there must be
        _ascending("percentiles", self.percentiles, 100.0)
        _ascending("cutoffs", self.cutoffs or (), 1.0)

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """One study per model, because each has its own temperature."""
        check_model_named(models, datasets)
        chosen = [_model(one) for one in models or ["embedded:object"]]
        pictures = [_dataset(one) for one in datasets or [TwoFactor(scale=SCALE)]]
        return [self._study(model, pictures, methods) for model in chosen]

    def metrics(self) -> list[Metric]:
        """AUC-IoU under the chosen normalising rule and under every other, and what needs no rule at all."""
        main = AUCIoU(self.rule, self.thresholds, self.area)
        others: list[Metric] = [AUCIoU(rule, self.thresholds, self.area) for rule in RULES if rule != self.rule]
        free: list[Metric] = [
            ExactAUCIoU(self.rule, area=self.area),
            IoUByArea(),
            AveragePrecision(),
            RelevanceMass(),
        ]
        worse: list[Metric] = [
            AUCIoUChangedMask(change, rule=self.rule, thresholds=self.thresholds, area=self.area)
            for change in (get_args(Change) if self.mask_quality else ())
        ]
        return [main, *free, PointingGame(), *others, *worse, RegionShare()]

    def _study(self, model: Model, datasets: list[Dataset], methods: Methods) -> Study:
        temperature, source = self._temperature(model) if methods is None else (1.0, "methods were given")
        usual = [*with_controls(contestants(self.preset, temperature, self.cam_layer), regions=True), Oracle()]
        study = Study(
            models=[model],
            datasets=[_seen_as(model, one, paper=self.preset == "paper") for one in datasets],
            methods=with_controls(methods, regions=True) if methods else usual,
            metrics=self.metrics(),
            protocol="threshold_free",
            limit=500 if self.preset == "paper" else 96,
        )
        notes = ThresholdFreeNotes(
            main=(recipe.label(self.metrics()[0]),),
            preset=self.preset,
            rule=self.rule,
            area=self.area,
            temperature=source,
            strata=self._strata(),
            rules={recipe.label(one): rule_of(one, self.rule) for one in study.methods},
        )
        return replace(study, notes=notes.plain())

    def _temperature(self, model: Model) -> tuple[float, FittedTemperature | str]:
        """T and how it came about; rounded, so that the last bits of a fit do not change LIME's recipe."""
        if self.temperature is not None:
            return self.temperature, "given"
        held_out = self.held_out
        if held_out is None and model.name.startswith("embedded:"):
            held_out = TwoFactor("held_out", 300, scale=SCALE)
        if held_out is None:
            return 1.0, "not fitted: no held-out pictures were given"
        try:
            fitted = calibrate(model, _seen_by(model, _dataset(held_out)))
        except NotApplicable as error:
            return 1.0, f"not fitted: {error}"
        return round(fitted.value, 3), FittedTemperature(**fitted._asdict())

    def _strata(self) -> SizeStrata:
        if self.cutoffs is not None:
            return SizeStrata("fixed", cutoffs=tuple(self.cutoffs))
        if self.pool is None:
            return SizeStrata("percentile of the evaluated set", tuple(self.percentiles))
        sizes = shares(_dataset(self.pool))
        cutoffs = tuple(np.percentile(sizes, self.percentiles).tolist())
        return SizeStrata("percentile of a pool", tuple(self.percentiles), cutoffs, len(sizes))


def _model(given: Model | str) -> Model:
    return models.load(given) if isinstance(given, str) else given


def _dataset(given: Dataset | str) -> Dataset:
    return data.load(given) if isinstance(given, str) else given


def _seen_by(model: Model, dataset: Dataset) -> Dataset:
    """Pictures from disk cut and numbered the way the model wants them."""
    return data.named_by(model, data.seen_by(model, _seen_as(model, dataset)))


def _seen_as(model: Model, dataset: Dataset, paper: bool = False) -> Dataset:
    """HAM10000 as the model's question wants it: melanoma or not if it has two classes; for the paper its subset."""
    if not isinstance(dataset, HAM10000):
        return dataset
    if dataset.task == "diagnosis" and (len(model.classes) == 2 or (paper and not model.classes)):
        dataset = replace(dataset, task="melanoma")
    return replace(dataset, subset=SUBSET) if paper and dataset.subset is None else dataset


def _ascending(name: str, values: Sequence[float], end: float) -> None:
    if not all(0 < value < end for value in values) or list(values) != sorted(set(values)):
        raise BadInput(f"{name} must ascend between 0 and {end:g}, got {', '.join(f'{v:g}' for v in values)}")
