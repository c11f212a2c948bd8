"""Mosaics: is positive relevance on pictures of the class, negative on the others, and do judges agree?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from heatproof import data, models
from heatproof.data._support.mosaic_plan import labels_of, layouts, most_per_class, pools_of
from heatproof.data.mosaic import Mosaic
from heatproof.data.two_factor import EASY_PAIR, HARD_PAIR, OBJECTS
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.methods.bcos import BCos
from heatproof.methods.cam import GradCam, GradCamPP
from heatproof.methods.controls import Oracle
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.kernel_shap import KernelShap
from heatproof.methods.lime import LIME
from heatproof.methods.lrp import LRP
from heatproof.methods.smoothgrad import Smoothed
from heatproof.metrics.mosaic import (
    MosaicAccuracy,
    MosaicF1,
    MosaicPrecision,
    MosaicRecall,
    MosaicSpecificity,
)
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.protocols._support.blind_controls import with_controls
from heatproof.protocols._support.given import Datasets, Methods, Models
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.questions import Unfit
from heatproof.registry import protocol
from heatproof.results.protocol_notes import MosaicsNotes
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import Need, Pairs
from heatproof.types import AnyMethod, Dataset, Metric, Model

Preset = Literal["default", "paper"]

MODELS = ("embedded:object", "embedded:object_plain", "embedded:object_bcos")
MID_GREY = Constant((0.5,))


def contestants(preset: Preset = "paper", grid: int = 2) -> list[AnyMethod]:
    """The paper's eight methods at its settings; `default` gives LIME fewer samples.

    Where the published code errs the setting is mended: LRP's map stays upright where the logit is negative,
    and no map is shifted by its minimum, which would change its precision.
    """
    blocks = Occlusion(imputer=MID_GREY, segmenter=Grid(2 * grid))
    return [
        LIME(samples=1000 if preset == "paper" else 300, top=5, imputer=Constant(), readout="probability"),
        LRP(composite="epsilon_plus_box", start="logit", biases=False),
        IntegratedGradients(steps=30, baseline="mid_grey"),
        GradCam(),
        GradCamPP(),
        Smoothed(draws=10, noise=0.2),
        KernelShap(blocks, "logit", samples=100),
        BCos(),
    ]


@protocol
@dataclass(frozen=True)
class Mosaics:
    """Heatmaps of mosaics judged as classifiers, and the judgments tested for reliability.

    By default two pairs of embedded classes, one easily distinguished and one easily confused, on two
    architectures and a B-cos network. User-defined pictures need labels that are the model's classes: folders
    named `index_name` or by class name. `preset="paper"` has 100 mosaics per class and 1000 LIME samples.

    Paper: Fresz et al. 2024, "Classification Metrics for Image Explanations: Towards Building Reliable
    XAI-Evaluations"
    """

    preset: Preset = "default"
    per_class: int | None = None  # mosaics per class; the preset's, or as many as the pictures suffice for
    grid: int = 2
    resize: bool = False  # shrink mosaics to the size of one picture, for networks that take one size only
    seed: int = 0  # of the plan

    order: ClassVar[int] = 3
    needs: ClassVar[tuple[Need, ...]] = ("labels",)
    unfit: ClassVar[Unfit] = (("value", "a mosaic asks where a class is"),)
    labels: ClassVar[bool] = False
    paper: ClassVar[Pairs] = (("preset", "paper"),)

    def __post_init__(self) -> None:
        if self.per_class is not None and self.per_class < 1:
            raise BadInput(f"per_class must be at least 1 mosaic, or None for the preset's, got {self.per_class}")
        layouts(self.grid)

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """One study: all models see the same mosaics."""
        check_model_named(models, datasets)
        chosen = [_model(one) for one in models or MODELS]
        mosaics = [self._mosaics(_dataset(one), chosen[0]) for one in datasets] if datasets else self._embedded()
        usual = [*with_controls(contestants(self.preset, self.grid)), Oracle(outside=-1.0)]
        return [
            Study(
                models=chosen,
                datasets=mosaics,
                methods=with_controls(methods) if methods else usual,
                metrics=self.metrics(),
                protocol="mosaics",
                target="label",  # a mosaic's class is its label; it explains no other, whatever a study says
                notes=MosaicsNotes(
                    main=(recipe.label(MosaicPrecision()),),  # the one ratio that unsigned maps have, too
                    preset=self.preset,
                    grid=self.grid,
                    plans={one.name: one.fitted(chosen[0]).plan() for one in mosaics},
                ).plain(),
            )
        ]

    def metrics(self) -> list[Metric]:
        """The five ratios that say something of their own: FNR and FPR are 1 - recall and 1 - specificity."""
        return [MosaicPrecision(), MosaicRecall(), MosaicSpecificity(), MosaicAccuracy(), MosaicF1()]

    @property
    def _wanted(self) -> int:
        return self.per_class or (100 if self.preset == "paper" else 20)

    def _embedded(self) -> list[Mosaic]:
        """Both pairs, from as many pictures as no one need be used twice."""
        pictures = TwoFactor(count=100 * -(-self._wanted * self.grid**2 // 10))  # ten of each class in a hundred
        return [
            Mosaic(
                pictures,
                pair,
                self._wanted,
                self.grid,
                self.seed,
                resize=self.resize,
                apart=True,
                title=f"{kind} pair ({OBJECTS[pair[0]]}, {OBJECTS[pair[1]]})",
            )
            for kind, pair in (("easy", EASY_PAIR), ("hard", HARD_PAIR))
        ]

    def _mosaics(self, pictures: Dataset, model: Model) -> Mosaic:
        if isinstance(pictures, Mosaic):
            return pictures
        wrapped = Mosaic(
            pictures,
            grid=self.grid,
            seed=self.seed,
            resize=self.resize,
            title=f"mosaics of {pictures.name}",
            apart=True,
        )
        if self.per_class is not None:
            return dataclasses.replace(wrapped, per_class=self.per_class)
        known = wrapped.cut_for(model).pictures
        most = most_per_class(pools_of(labels_of(known, None)[1], ()), self.grid)
        return dataclasses.replace(wrapped, per_class=max(1, min(self._wanted, most)))


def _model(given: Model | str) -> Model:
    return models.load(given) if isinstance(given, str) else given


def _dataset(given: Dataset | str) -> Dataset:
    return data.load(given) if isinstance(given, str) else given
