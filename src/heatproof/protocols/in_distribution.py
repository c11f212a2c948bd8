"""In-distribution faithfulness: FUD beside the classic evaluations, and an audit of how far each leaves the
data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from heatproof import data
from heatproof.audit.energy import Energy
from heatproof.audit.evaluation import Evaluation, Removal
from heatproof.audit.image_quality import MEASURES, ImageQuality, Measure
from heatproof.audit.other_classes import OtherClasses
from heatproof.audit.smoothness import Smoothness
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.methods._support.baselines import Baseline
from heatproof.methods.agi import AGI
from heatproof.methods.attexplore import AttEXplore
from heatproof.methods.boundary_ig import BoundaryIG
from heatproof.methods.controls import Inverted, Oracle, Random
from heatproof.methods.expected_gradients import ExpectedGradients
from heatproof.methods.guided_ig import GuidedIG
from heatproof.methods.integrated_gradients import FastIG, IntegratedGradients
from heatproof.methods.isa import ISA
from heatproof.methods.local_attribution import LocalAttribution
from heatproof.methods.mfaba import MFABA
from heatproof.methods.saliency import Saliency
from heatproof.metrics.fud import Fud
from heatproof.metrics.infidelity import Infidelity
from heatproof.metrics.insertion_deletion import Deletion, Insertion
from heatproof.metrics.road import Road
from heatproof.metrics.sensitivity_n import SensitivityN
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.road import NoisyLinear
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.imputers.twin import Twin
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.protocols._support.blind_controls import have_regions, with_controls
from heatproof.protocols._support.given import Datasets, Methods, Models, check_prior
from heatproof.protocols._support.own_pictures import check_model_named
from heatproof.questions import Unfit
from heatproof.registry import protocol
from heatproof.results.protocol_notes import AuditPart, InDistributionNotes
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.spec.study import Study
from heatproof.traits import Need, Pairs, method_traits
from heatproof.types import AnyMethod, Dataset, Imputer, Metric

Profile = Literal["fast", "paper"]
NATURAL = "natural pictures of other classes"
AUDITED = 2  # of the methods that are given: the audit asks for every picture of every evaluation


def contestants(profile: Profile, background: Baseline = "gaussian") -> list[AnyMethod]:
    """The paper's eleven methods; `fast` has fewer steps, draws and classes: seconds per picture on a CPU.

    `background` is where the paths of expected gradients begin: training pictures, or noise where there are none.
    """
    if profile == "paper":
        return [
            IntegratedGradients(),
            GuidedIG(steps=15),
            BoundaryIG(),
            Saliency(),
            AGI(),
            MFABA(),
            AttEXplore(),
            ISA(),
            ExpectedGradients(background),
            FastIG(),
            LocalAttribution(),
        ]
    return [
        IntegratedGradients(steps=16),
        GuidedIG(steps=15),
        BoundaryIG(steps=16, attack_steps=20),
        Saliency(),
        AGI(classes=5, steps=10),
        MFABA(steps=20, step_size=0.0025),
        AttEXplore(steps=5, draws=8),
        ISA(rounds=10, steps=4),
        ExpectedGradients(background, draws=25),
        FastIG(),
        LocalAttribution(classes=5, steps=10),
    ]


@protocol
@dataclass(frozen=True)
class InDistribution:
    """FUD with its controls, the classic evaluations, and one table of how far each of them leaves the data.

    `profile="paper"` draws with 250 ancestral steps and explains with the published settings. Any model and
    folder of pictures will do, given a diffusion prior of such pictures.

    Paper: FUD, ICLR 2026, in-distribution faithfulness by diffusion
    """

    profile: Profile = "fast"
    prior: Any = "embedded"  # or `trained:FOLDER`, `diffusers:FOLDER_OR_HUB_ID`
    scale: float = 4.0
    window: Literal["late", "wide"] = "late"
    draws: int = 2
    pictures: int = 16
    audit: bool = True
    quality: tuple[Measure, ...] = MEASURES

    order: ClassVar[int] = 7
    needs: ClassVar[tuple[Need, ...]] = ("prior",)
    unfit: ClassVar[Unfit] = (("value", "its samples keep a class, and a value has none"),)
    paper: ClassVar[Pairs] = (("profile", "paper"),)
    brief: ClassVar[Pairs] = (("audit", False), ("draws", 1))

    def __post_init__(self) -> None:
        named = (self.quality,) if isinstance(self.quality, str) else self.quality
        object.__setattr__(self, "quality", tuple(named))

    def studies(self, models: Models = None, datasets: Datasets = None, methods: Methods = None) -> list[Study]:
        """One study of the methods, one of the evaluations."""
        check_model_named(models, datasets)
        shown = list(models or ["embedded:object"])
        pictures = list(datasets or [TwoFactor()])
        if models is not None and datasets is not None:
            check_prior(self.prior, models, datasets)
        given = [parse("method", one) if isinstance(one, str) else one for one in methods or ()]
        background = _background(pictures)
        usual = contestants(self.profile, background)
        oracle = [Oracle()] if datasets is None and not given else []
        with_blind = with_controls(given or usual, regions=have_regions(pictures))
        judged = Study(
            models=shown,
            datasets=pictures,
            methods=[*with_blind, *_inverted(given or usual), *oracle],
            metrics=self.metrics(),
            protocol="in_distribution",
            limit=self.pictures,
            notes=InDistributionNotes(
                main=(recipe.label(self.gain),),
                profile=self.profile,
                prior=recipe.plain(self.prior),
                scale=self.scale,
                background=None if given else _named(background),
            ).plain(),
        )
        if not self.audit:
            return [judged]
        measured, evaluations = self.audited(twins=datasets is None, natural=_natural(pictures))
        examined = Study(
            models=shown,
            datasets=pictures,
            methods=given[:AUDITED] or [IntegratedGradients(steps=16), Random()],
            metrics=measured,
            protocol="in_distribution",
            limit=self.pictures,
            notes=InDistributionNotes(main=(), audit=evaluations, audited=_left_out(given)).plain(),
        )
        return [judged, examined]

    @property
    def fud(self) -> Fud:
        """Inverted orders are a method of their own here, so that each is drawn once."""
        return Fud(
            self.prior,
            self.profile,
            self.scale,
            self.window,
            draws=self.draws,
            controls=("random", "no_guidance", "guidance_only", "prior_only"),
        )

    @property
    def gain(self) -> Fud:
        """FUD over a random order's: the part of it that the map earned."""
        return dataclasses.replace(self.fud, score="gain", controls=("random",))

    def metrics(self) -> list[Metric]:
        """FUD, its gain over a random order, and what it is compared with."""
        return [self.fud, self.gain, Insertion(), Deletion(), SensitivityN(), Infidelity(), Road()]

    def evaluations(self, twins: bool = True) -> Mapping[str, Evaluation]:
        """Everything that shows a model changed pictures, by the name it has in the table."""
        sampler = Sampler("ddpm", 250, late_start=False) if self.profile == "paper" else Sampler()
        imputers: dict[str, Imputer] = {
            "flipping, zero": Constant(),
            "flipping, mean": Mean(),
            "flipping, telea": Telea(),
            "flipping, road": NoisyLinear(),
            "flipping, diffusion": Diffusion(self.prior, sampler),
            **({"flipping, twin": Twin()} if twins else {}),
        }
        soft = Fud(self.prior, self.profile, self.scale, self.window, mask="soft", controls=())
        plain = Fud(self.prior, self.profile, 0.0, self.window, controls=())
        return {
            **{name: Removal(Occlusion(imputer, Pixels(), 1)) for name, imputer in imputers.items()},
            "insertion": Insertion(),
            "deletion": Deletion(),
            "sensitivity-n": SensitivityN(),
            "infidelity": Infidelity(),
            "fud": Fud(self.prior, self.profile, self.scale, self.window, controls=()),
            "fud without guidance": plain,
            "fud, soft mask": soft,
        }

    def audited(self, twins: bool = True, natural: Dataset | None = None) -> tuple[list[Metric], dict[str, AuditPart]]:
        """The audit's measurements, and for each label which evaluation and statistic it is.

        `natural` are pictures that nothing was removed from: those of other classes are a reference for the energy.
        """
        measured: list[Metric] = [] if natural is None else [Energy(OtherClasses(natural))]
        reference = AuditPart(NATURAL, "energy", reference="yes")
        evaluations = {recipe.label(one): reference for one in measured}
        for name, evaluation in self.evaluations(twins).items():
            parts: dict[str, Metric] = {"energy": Energy(evaluation), "tau": Smoothness(evaluation)}
            parts.update({measure: ImageQuality(evaluation, measure) for measure in self.quality})
            for statistic, one in parts.items():
                measured.append(one)
                evaluations[recipe.label(one)] = AuditPart(name, statistic)
        return measured, evaluations


def _background(datasets: Sequence[Dataset | str]) -> Baseline:
    """Training pictures are known for the embedded data only."""
    found = [data.load(one) if isinstance(one, str) else one for one in datasets]
    embedded = all(isinstance(one, TwoFactor) for one in found)
    return TwoFactor("train") if embedded else "gaussian"


def _natural(datasets: Sequence[Dataset | str]) -> Dataset | None:
    """Where there is one data set whose recipe can stand in a metric's: natural pictures like those that are judged."""
    found = [data.load(one) if isinstance(one, str) else one for one in datasets]
    return found[0] if len(found) == 1 and dataclasses.is_dataclass(found[0]) else None


def _named(background: Baseline) -> str:
    return background if isinstance(background, str) else recipe.label(background)


def _inverted(methods: Sequence[AnyMethod]) -> list[AnyMethod]:
    """The inverted order of the first method, unless some inverted one is there: no table of FUD can be read without.

    Controls have no inverted order.
    """
    if any(isinstance(one, Inverted) for one in methods):
        return []
    first = next((one for one in methods if not method_traits(one).control), None)
    return [Inverted(first)] if first is not None else []


def _left_out(given: Sequence[AnyMethod]) -> str | None:
    """What the notes say where not all of the methods were audited."""
    count = len(given)
    return f"the first {AUDITED} of {count} methods" if count > AUDITED else None
