"""FUD: keeps what the map calls important, lets a diffusion model redraw the rest, and checks if the class survives.

The removed pixels are drawn by a prior that has no information on the class; near the end a term against the class
keeps the prior from painting it back. The confidence that remains was carried by the kept pixels. The term also
attacks the model, so a score always comes with controls: the random and the inverted order, no guidance, and, on a
picture from which nothing was removed, guidance alone and the prior alone. The difference between the last two is
the attack.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.metrics._support.shared_answers import logits
from heatproof.occlusion.diffusion import priors
from heatproof.occlusion.diffusion.denoiser import check, drawn_at
from heatproof.occlusion.diffusion.guidance import Guidance
from heatproof.occlusion.diffusion.reconstruct import Begin, reconstruct
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.occlusion.kept_share import kept_most
from heatproof.occlusion.occluded_images import Samples
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.questions import Unfit
from heatproof.registry import metric
from heatproof.types import Attribution, Batch, Curve, Maps, Model, Scored, Segmenter, keyed_seed

Control = Literal["random", "inverted", "no_guidance", "guidance_only", "prior_only"]
CONTROLS: tuple[Control, ...] = get_args(Control)
PROFILES = {
    "fast": Sampler("ddim", 20, late_start=True),
    "paper": Sampler("ddpm", 250, late_start=False),
}


@metric
@dataclass(frozen=True)
class Fud:
    """FUD: the area under the model's confidence as a diffusion model redraws the least important pixels.

    Notes give the confidence in the clean picture, and the same score for the controls. `score="gain"` is the
    area less that of a random order, `relative` the area as a share of the clean confidence, `retention` the area
    under how often the class is still the answer.

    Paper: FUD, ICLR 2026, in-distribution faithfulness by diffusion
    """

    unfit: ClassVar[Unfit] = (("value", "it judges by the probability of the class"),)

    prior: Any = "embedded"  # or `trained:FOLDER`, `diffusers:FOLDER_OR_HUB_ID`, a Denoiser
    profile: Literal["fast", "paper"] = "fast"  # DDIM-20 with late start, or 250 ancestral steps
    scale: float = 4.0  # of the term against the class
    window: Literal["late", "wide"] = "late"  # it acts in the last 5 % of the noise schedule, or in all but the first
    levels: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)  # kept shares
    draws: int = 2
    segmenter: Segmenter = field(default_factory=Pixels)  # what is kept or removed together
    mask: Literal["hard", "soft"] = "hard"
    score: Literal["area", "gain", "relative", "retention"] = "area"
    controls: tuple[Control, ...] = CONTROLS
    at: Literal["noisy", "guess"] | None = None  # the model's input; none: the guess if the window is wide
    known: Literal["clean", "noised"] = "clean"  # how the prior sees kept pixels at intermediate steps

    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = ("share of the picture re-drawn", "confidence")
    measures: ClassVar[Literal["faithfulness"]] = "faithfulness"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(sorted(self.levels, reverse=True)))
        controls = (self.controls,) if isinstance(self.controls, str) else tuple(self.controls)
        object.__setattr__(self, "controls", controls)
        if not self.levels or not all(0 <= level < 1 for level in self.levels):
            raise BadInput(f"levels of fud must be kept shares from 0 up to but not including 1, got {self.levels}")
        if self.draws < 1:
            raise BadInput(f"draws of fud must be at least 1, got {self.draws}")

    @property
    def sampler(self) -> Sampler:
        """The profile's sampler, without skipping steps that a wide window would guide."""
        chosen = PROFILES[self.profile]
        late = chosen.late_start and self.window == "late"
        return replace(chosen, mask=self.mask, known=self.known, late_start=late)

    def guidance(self, scale: float | None = None) -> Guidance:
        """The guidance. Under noise the model's output means nothing, so a wide window evaluates it on the guess."""
        usual: Literal["noisy", "guess"] = "guess" if self.window == "wide" else "noisy"
        return Guidance(self.scale if scale is None else scale, self.window, at=self.at or usual)

    @property
    def removed(self) -> Tensor:
        return torch.tensor([0.0, *(1 - level for level in self.levels)], dtype=torch.float64)

    def premise(self, model: Model, batch: Batch, /) -> None:
        """Raises if the prior cannot paint such pictures."""
        check(priors.find(self.prior), batch.images)

    def __call__(self, attribution: Attribution, /) -> Scored:
        curve = self.curve(attribution, attribution.maps)
        values = self.area(curve)
        beside = self.beside(attribution)
        if self.score == "gain":
            chance = beside.get("random", None)
            chance = self.area(self.curve(attribution, _random(attribution.batch))) if chance is None else chance
            values = values - chance
        details = {"clean": curve[:, 0], **beside, **self._other_size(attribution.batch)}
        return Scored(values, curve=Curve(self.removed, curve), details=details)

    def _other_size(self, batch: Batch) -> dict[str, Tensor]:
        """The side at which pictures were drawn, where it is not their own."""
        side = drawn_at(priors.find(self.prior), batch.images)
        same = side == tuple(batch.images.shape[2:])
        return {} if same else {"drawn_at": torch.full((len(batch),), float(side[0]), dtype=torch.float64)}

    def beside(self, attribution: Attribution) -> dict[str, Tensor]:
        """The areas of the selected controls, each per image."""
        curves = {
            "random": lambda: self.curve(attribution, _random(attribution.batch)),
            "inverted": lambda: self.curve(attribution, -attribution.maps),
            "no_guidance": lambda: self.curve(attribution, attribution.maps, scale=0.0),
            "guidance_only": lambda: self.curve(attribution, attribution.maps, begin="original"),
            "prior_only": lambda: self.curve(attribution, attribution.maps, scale=0.0, begin="original"),
        }
        return {name: self.area(curves[name]()) for name in self.controls}

    def area(self, curve: Tensor) -> Tensor:
        """(B,): the mean height of the curve over the removed share, in units of its beginning if relative."""
        height = torch.trapezoid(curve, self.removed, dim=1) / (self.removed[-1] - self.removed[0])
        return height / curve[:, 0].clamp_min(1e-12) if self.score == "relative" else height

    def curve(self, attribution: Attribution, maps: Maps, scale: float | None = None, begin: Begin = "noise") -> Tensor:
        """(B, 1 + levels) float64: confidence in the target (or whether it is the answer) on the whole picture and
        at every level, mean over draws."""
        batch = attribution.batch
        shares = []
        for draw in range(self.draws):
            pictures = self.drawn(attribution, maps, draw, scale, begin)
            shares.append(self._read(attribution, pictures.flatten(0, 1)).view(pictures.shape[:2]))
        whole = self._read(attribution, batch.images)
        return torch.cat([whole[:, None], torch.stack(shares).mean(0)], 1)

    def _read(self, attribution: Attribution, pictures: Tensor) -> Tensor:
        """The readout of each picture's target; several consecutive pictures may belong to one image."""
        targets = attribution.batch.targets
        rows = targets.repeat_interleave(len(pictures) // max(1, len(targets)))
        answers = logits(attribution.model, pictures)
        found = (
            answers.argmax(1) == rows
            if self.score == "retention"
            else attribution.model.read(answers, rows, "probability")
        )
        return found.double().cpu()

    def drawn(
        self,
        attribution: Attribution,
        maps: Maps,
        draw: int,
        scale: float | None = None,
        begin: Begin = "noise",
    ) -> Tensor:
        """(B, K, C, H, W): the reconstructions at every level, in one flat batch; noise is shared by all
        methods."""
        batch = attribution.batch
        keep = kept_most(maps, batch, self.segmenter, self.levels)
        rows = torch.arange(len(batch)).repeat_interleave(len(self.levels)).to(batch.images.device)
        seeds = [keyed_seed(batch.seed, identity, "fud", draw) for identity in batch.ids for _ in self.levels]
        pictures = reconstruct(
            priors.find(self.prior),
            batch.images[rows],
            keep.flatten(0, 1),
            seeds,
            self.sampler,
            (self.guidance(scale), attribution.model, batch.targets[rows]),
            begin,
        )
        levels: Tensor = pictures.unflatten(0, (len(batch), len(self.levels)))
        return levels

    def samples(self, attribution: Attribution, /) -> Samples:
        """The pictures the model sees, first draw."""
        pictures = self.drawn(attribution, attribution.maps, 0)
        return Samples(pictures, self.removed[1:].expand(len(pictures), -1))

    def control_samples(self, attribution: Attribution, /) -> dict[str, Samples]:
        """The pictures the model sees without guidance, and of the whole picture with guidance or the prior alone."""
        maps, count = attribution.maps, len(attribution.batch)
        removed = self.removed[1:].expand(count, -1)
        return {
            "no guidance": Samples(self.drawn(attribution, maps, 0, scale=0.0), removed),
            "guidance only": Samples(self.drawn(attribution, maps, 0, begin="original"), removed),
            "prior only": Samples(self.drawn(attribution, maps, 0, scale=0.0, begin="original"), removed),
        }


def _random(batch: Batch) -> Maps:
    size = batch.images.shape[2:]
    maps = [torch.rand(size, generator=dice) for dice in batch.generators("fud random")]
    return torch.stack(maps).to(batch.images.device) if maps else batch.images.new_zeros(0, *size)
