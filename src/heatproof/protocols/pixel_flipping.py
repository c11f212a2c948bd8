"""Pixel flipping: whose order of importance does the model confirm, and does that depend on the paint?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from heatproof import recipe
from heatproof.audit.model_scope import NROMS, ROMS, RandomOrders
from heatproof.errors import BadInput
from heatproof.methods.cam import GradCam
from heatproof.methods.coalitions import ArchAttribute, PredDiff, Shapley
from heatproof.methods.controls import Random
from heatproof.methods.gradients import InputXGradient, Saliency
from heatproof.methods.integrated import IntegratedGradients
from heatproof.methods.lrp import LRP
from heatproof.methods.smoothed import Smoothed
from heatproof.metrics.flipping import LIF, LRG, MIF, MRG, SRG
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.occlusion.imputers.histogram import Histogram
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.imputers.train_set import TrainSet
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.registry import protocol
from heatproof.study import Study
from heatproof.types import AnyMethod, Dataset, Imputer, Metric, Model

Preset = Literal["quick", "paper"]

NUMBERS = (25, 100, 500, 5000)  # of segments
IMPUTERS: tuple[Imputer, ...] = (Mean(), TrainSet(), Histogram(), Telea(), Diffusion())


def pixel_wise() -> list[AnyMethod]:
    """The paper's six pixel-wise methods at its settings."""
    noisy = {"draws": 5, "noise": 1.0, "unit": "normalised"}
    path = IntegratedGradients(steps=50, baseline="mean")
    return [
        LRP(),
        Smoothed(Saliency(), **noisy),  # type: ignore[arg-type]
        Saliency(),
        path,
        Smoothed(path, **noisy),  # type: ignore[arg-type]
        InputXGradient(),
    ]


def occlusion_based() -> list[AnyMethod]:
    """The paper's three, on 25 superpixels of their own, hidden parts in the mean colour."""
    own = Occlusion(Mean(), Slic(25), draws=1)
    return [Shapley(own), PredDiff(own), ArchAttribute(own)]


@protocol
@dataclass(frozen=True)
class PixelFlipping:
    """Removes segments in the order of their attribution, under one occlusion strategy or all of the paper's.

    `quick` asks under one strategy (inpainting on 25 superpixels). `paper` crosses 4 numbers of superpixels
    with 5 imputers and 2 models, 40 strategies, on the paper's grid of steps, and asks how many rankings come
    of it.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    preset: Preset = "quick"
    numbers: tuple[int, ...] = ()  # of segments, or one number; empty takes the preset's
    imputers: tuple[Imputer, ...] = ()  # or their names; empty takes the preset's
    draws: int = 5  # imputations per picture, for imputers that draw
    diffusion_draws: int = 1  # a diffusion model takes seconds where the others take milliseconds

    def __post_init__(self) -> None:
        if self.preset not in ("quick", "paper"):
            raise BadInput(f"preset must be 'quick' or 'paper', got {self.preset!r}")
        numbers = tuple(self.numbers) if isinstance(self.numbers, list | tuple) else (self.numbers,)
        if not all(isinstance(n, int) and n > 0 for n in numbers):
            raise BadInput(f"numbers must be whole numbers of segments from 1, such as [25,100], got {self.numbers!r}")
        object.__setattr__(self, "numbers", numbers)
        named = (self.imputers,) if isinstance(self.imputers, str) else self.imputers
        made = tuple(recipe.parse("imputer", one) if isinstance(one, str) else one for one in named)
        object.__setattr__(self, "imputers", made)

    def occlusions(self) -> list[Occlusion]:
        quick = self.preset == "quick"
        numbers = self.numbers or ((25,) if quick else NUMBERS)
        imputers = self.imputers or ((Telea(),) if quick else IMPUTERS)
        return [Occlusion(i, Slic(n), self._draws(i)) for i in imputers for n in numbers]

    def _draws(self, imputer: Imputer) -> int:
        return self.diffusion_draws if isinstance(imputer, Diffusion) else self.draws

    def studies(
        self,
        models: Sequence[Model | str] | None = None,
        datasets: Sequence[Dataset | str] | None = None,
        methods: Sequence[AnyMethod | str] | None = None,
    ) -> list[Study]:
        if models is None and datasets is not None:
            raise BadInput("pictures of one's own need a model: name one, e.g. --model efficientnet-lite0")
        quick = self.preset == "quick"
        setups = [self._setup(occlusion) for occlusion in self.occlusions()]
        return [
            Study(
                models=models or (["embedded:object"] if quick else ["embedded:object", "embedded:object_plain"]),
                datasets=datasets or ["two_factor"],
                methods=methods or self._methods(),
                metrics=[metric for setup in setups for metric in setup.values()],
                protocol="pixel_flipping",
                limit=32 if quick else 100,
                notes={"preset": self.preset, "setups": [_told(setup) for setup in setups]},
            )
        ]

    def _methods(self) -> list[AnyMethod]:
        more: list[AnyMethod] = [GradCam()] if self.preset == "quick" else []
        return [*pixel_wise(), *more, *occlusion_based(), Random()]

    def _setup(self, occlusion: Occlusion) -> dict[str, Metric]:
        """All metrics of one strategy; they share one game, so the last ones cost nothing."""
        if self.preset == "quick":
            kinds: dict[str, Any] = {"mif": MIF, "lif": LIF, "srg": SRG, "mrg": MRG, "lrg": LRG}
            asked: dict[str, Metric] = {name: kind(occlusion) for name, kind in kinds.items()}
            return asked | {"r_oms": ROMS(occlusion), "nr_oms": NROMS(occlusion)}
        asked = {"mif": MIF(occlusion, steps="paper"), "lif": LIF(occlusion, steps="paper")}
        asked["srg"] = SRG(occlusion, steps="paper")
        return asked | {"r_oms": ROMS(occlusion, RandomOrders(steps="paper"))}


def _told(setup: dict[str, Metric]) -> dict[str, Any]:
    """The strategy and under which label each of its metrics is stored, for the consistency of rankings."""
    occlusion = setup["mif"].occlusion  # type: ignore[attr-defined]
    return {
        "imputer": recipe.label(occlusion.imputer),
        "n_superpixels": occlusion.segmenter.n,
        **{name: recipe.label(metric) for name, metric in setup.items()},
    }
