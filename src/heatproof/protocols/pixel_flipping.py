"""Pixel flipping: which order of importance the model confirms, and whether that depends on the imputer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeGuard

from heatproof import data
from heatproof.audit.model_scope import NROMS, ROMS, RandomOrders
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.methods._support.coalitions import Scale
from heatproof.methods.arch_attribute import ArchAttribute
from heatproof.methods.cam import GradCam
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.lrp import LRP
from heatproof.methods.pred_diff import PredDiff
from heatproof.methods.saliency import Saliency
from heatproof.methods.shapley import Shapley
from heatproof.methods.smoothgrad import Smoothed
from heatproof.metrics.pixel_flipping import LIF, LRG, MIF, MRG, SRG
from heatproof.occlusion.flip_order import Steps
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.occlusion.imputers.histogram import Histogram
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.imputers.train_set import TrainSet
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.protocols._support.blind_controls import have_regions, with_controls
from heatproof.protocols._support.given import Datasets, Methods, Models
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.registry import protocol
from heatproof.results.protocol_notes import PixelFlippingNotes
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.spec.study import Study, distinct
from heatproof.stats.strategies import Strategy
from heatproof.traits import Pairs
from heatproof.types import AnyMethod, Dataset, Imputer, Metric

Preset = Literal["quick", "paper"]

NUMBERS = (25, 100, 500, 5000)  # of segments
TASKS = ("object", "scene")  # that the embedded pictures have true classes of
IMPUTERS: tuple[Imputer, ...] = (Mean(), TrainSet(), Histogram(), Telea(), Diffusion())


def pixel_wise(preset: Preset = "paper") -> list[AnyMethod]:
    """The paper's six pixel-wise methods at its settings.

    `quick` takes LRP as it is best known: batch norms merged, and maps upright where the logit is negative.
    """
    noisy = {"draws": 5, "noise": 1.0, "unit": "normalised"}
    path = IntegratedGradients(steps=50, baseline="mean")
    return [
        LRP(canonizer="none", upright=False) if preset == "paper" else LRP(),
        Smoothed(Saliency(), **noisy),  # type: ignore[arg-type]
        Saliency(),
        path,
        Smoothed(path, **noisy),  # type: ignore[arg-type]
        InputXGradient(),
    ]


def absolute(preset: Preset = "paper") -> list[AnyMethod]:
    """The paper's abs variants: magnitudes of the signed pixel-wise methods, taken channel by channel."""
    lrp, _, _, path, noisy, product = pixel_wise(preset)
    own = [dataclasses.replace(one, pooling="abs_sum") for one in (lrp, path, product)]  # type: ignore[type-var, call-arg]
    return [*own, dataclasses.replace(noisy, method=own[1])]  # type: ignore[type-var, call-arg]


def occlusion_based(preset: Preset = "paper") -> list[AnyMethod]:
    """The paper's three, on 25 superpixels of their own, hidden parts in the mean colour, on its scale.

    The paper draws 1000 coalitions for each superpixel, 50 000 passes per picture. Here every superpixel has 200
    contributions, from 200 orders that share their coalitions, 4802 passes; `quick` has 20, which take 482.
    """
    own: tuple[Occlusion, Scale] = Occlusion(Mean(), Slic(25), draws=1), "log_odds"
    return [Shapley(*own, permutations=200 if preset == "paper" else 20), PredDiff(*own), ArchAttribute(*own)]


@protocol
@dataclass(frozen=True)
class PixelFlipping:
    """Segments removed in the order of their attribution, under one occlusion strategy or all of the paper's.

    `quick` asks under one strategy (inpainting on 25 superpixels). `paper` crosses 4 numbers of superpixels
    with 5 imputers and 2 models, 40 strategies, on the paper's grid of steps, and asks how many rankings come
    of it.

    `paper` differs from the paper where it must: segments are of pixels, not of single channels; curves end when
    everything is gone, also of 5000 superpixels; R-OMS is the mean of 5 random orders; Shapley values have fewer
    samples; a diffusion model draws once. It asks about the true class, as the paper does, on the embedded
    pictures, and about the predicted one on user pictures, whose folders need not be the model's classes
    (`--target label` if they are). The imputer `train_set` takes its donors, unless named, from the training
    split of the embedded pictures, and on other data from the other pictures of the same data set, as in the paper.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    preset: Preset = "quick"
    numbers: tuple[int, ...] = ()  # of segments, or one number; empty takes the preset's
    imputers: tuple[Imputer, ...] = ()  # or their names; empty takes the preset's
    draws: int = 5  # imputations per picture, for imputers that draw
    abs_variants: bool = False  # judge also the magnitudes of the signed pixel-wise methods
    matching: bool = False  # judge also Shapley values that hide with each imputer of the strategies
    diffusion_draws: int = 1  # a diffusion model takes seconds where the others take milliseconds
    steps: Literal["full", "fast"] = "full"  # of `quick`: `fast` draws 9 points of each curve

    order: ClassVar[int] = 1
    brief: ClassVar[Pairs] = (("steps", "fast"),)
    paper: ClassVar[Pairs] = (("preset", "paper"),)

    def __post_init__(self) -> None:
        if self.steps == "fast" and self.preset == "paper":
            raise BadInput("steps='fast' is of preset='quick': the paper has a grid of its own; leave steps out")
        numbers = tuple(self.numbers) if isinstance(self.numbers, list | tuple) else (self.numbers,)
        if not all(isinstance(n, int) and n > 0 for n in numbers):
            raise BadInput(f"numbers must be whole numbers of segments from 1, such as [25,100], got {self.numbers!r}")
        object.__setattr__(self, "numbers", numbers)
        named = (self.imputers,) if isinstance(self.imputers, str) else self.imputers
        made = tuple(parse("imputer", one) if isinstance(one, str) else one for one in named)
        object.__setattr__(self, "imputers", made)

    def occlusions(self, donors: TrainSet | None = None) -> list[Occlusion]:
        """Every imputer on every number of segments; a train set that names no donors takes these."""
        quick = self.preset == "quick"
        numbers = self.numbers or ((25,) if quick else NUMBERS)
        imputers = self.imputers or ((Telea(),) if quick else IMPUTERS)
        imputers = tuple(_donated(one, donors) for one in imputers)
        return [Occlusion(i, Slic(n), self._draws(i)) for i in imputers for n in numbers]

    def _draws(self, imputer: Imputer) -> int:
        return self.diffusion_draws if isinstance(imputer, Diffusion) else self.draws

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        check_model_named(models, datasets)
        found = [data.load(one) if isinstance(one, str) else one for one in datasets or ["two_factor"]]
        distinct("datasets", [recipe.label(one) for one in found])  # some have a study of their own
        own = [one for one in found if not isinstance(one, TwoFactor)]
        if not any(_nameless(one.imputer) for one in self.occlusions()):
            own = []
        rest = [one for one in found if one not in own]
        studies = ([self._study(models, rest, methods, TrainSet())] if rest else []) + [
            self._study(models, [one], methods, TrainSet(donors=one)) for one in own
        ]
        return [dataclasses.replace(study, target="label") if self._by_label(study) else study for study in studies]

    def _study(
        self,
        models: Models,
        datasets: Sequence[Dataset],
        methods: Methods,
        donors: TrainSet,
    ) -> Study:
        quick = self.preset == "quick"
        setups = [self._setup(occlusion) for occlusion in self.occlusions(donors)]
        return Study(
            models=models or (["embedded:object"] if quick else ["embedded:object", "embedded:object_plain"]),
            datasets=datasets,
            methods=with_controls(methods or self._methods(donors), regions=have_regions(datasets)),
            metrics=[metric for setup in setups for metric in setup.values()],
            protocol="pixel_flipping",
            limit=32 if quick else 100,
            notes=PixelFlippingNotes(
                main=tuple(recipe.label(setup["srg"]) for setup in setups),
                preset=self.preset,
                setups=tuple(_strategy(setup) for setup in setups),
                matching={recipe.label(one): name for one, name in self._matched(donors).items()}
                if self.matching
                else {},
                donors="" if donors == TrainSet() else recipe.label(donors),  # if they are judged themselves
            ).plain(),
        )

    def _by_label(self, study: Study) -> bool:
        """Whether the true class is explained, as in the paper: where it is known to be one of the model's."""
        known = all(isinstance(one, TwoFactor) for one in study.datasets)
        return self.preset == "paper" and known and all(model.task in TASKS for model in study.models)  # type: ignore[union-attr]

    def _methods(self, donors: TrainSet) -> list[AnyMethod]:
        more: list[AnyMethod] = [GradCam()] if self.preset == "quick" else []
        if self.abs_variants:
            more += absolute(self.preset)
        if self.matching:
            more += [method for method in self._matched(donors) if method not in occlusion_based(self.preset)]
        return [*pixel_wise(self.preset), *more, *occlusion_based(self.preset)]

    def _matched(self, donors: TrainSet) -> dict[AnyMethod, str]:
        """Shapley values that hide with each imputer of the strategies, and which it is."""
        imputers = dict.fromkeys(occlusion.imputer for occlusion in self.occlusions(donors))
        often = 200 if self.preset == "paper" else 20
        made = {one: Shapley(Occlusion(one, Slic(25), draws=1), "log_odds", permutations=often) for one in imputers}
        return {method: recipe.label(one) for one, method in made.items()}

    def _setup(self, occlusion: Occlusion) -> dict[str, Metric]:
        """All metrics of one strategy; they share one game, so the last ones cost nothing."""
        if self.preset == "quick":
            kinds: dict[str, Any] = {"mif": MIF, "lif": LIF, "srg": SRG, "mrg": MRG, "lrg": LRG}
            steps: Steps = "fast" if self.steps == "fast" else "linear"
            orders = RandomOrders(steps=steps)
            chosen: dict[str, Metric] = {name: kind(occlusion, steps=steps) for name, kind in kinds.items()}
            return chosen | {"r_oms": ROMS(occlusion, orders), "nr_oms": NROMS(occlusion, orders)}
        chosen = {"mif": MIF(occlusion, steps="paper"), "lif": LIF(occlusion, steps="paper")}
        chosen["srg"] = SRG(occlusion, steps="paper")
        orders = RandomOrders(steps="paper")
        return chosen | {"r_oms": ROMS(occlusion, orders), "nr_oms": NROMS(occlusion, orders)}


def _nameless(imputer: Imputer) -> TypeGuard[TrainSet]:
    """Whether it takes donors and names none."""
    return isinstance(imputer, TrainSet) and imputer.donors == TrainSet.donors


def _donated(imputer: Imputer, donors: TrainSet | None) -> Imputer:
    return dataclasses.replace(imputer, donors=donors.donors) if donors and _nameless(imputer) else imputer


def _strategy(setup: dict[str, Metric]) -> Strategy:
    """The strategy and under which label each of its metrics is stored, for the consistency of rankings."""
    mif: MIF = setup["mif"]  # type: ignore[assignment]
    occlusion = mif.occlusion
    labels = {name: recipe.label(setup[name]) for name in ("mif", "lif", "srg", "r_oms", "nr_oms") if name in setup}
    return Strategy(
        recipe.label(occlusion.imputer),
        occlusion.segmenter.n,  # type: ignore[attr-defined]
        _variant(mif),
        **labels,
    )


def _variant(metric: MIF) -> str:
    """What else distinguishes this strategy from another with the same imputer on as many segments; usually nothing."""
    draws = metric.occlusion.draws
    often = metric.occlusion.random and draws != Occlusion.draws
    parts = [f"{draws} draw{'s' if draws > 1 else ''}"] if often else []
    return ", ".join(parts + (["the paper’s steps"] if metric.steps == "paper" else []))
