"""Inpainting: the prior's steps on hidden pixels, the picture itself on kept pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import torch
from torch import Tensor

from heatproof.occlusion.diffusion.denoiser import Denoiser
from heatproof.occlusion.diffusion.guidance import AntiClass
from heatproof.occlusion.diffusion.sampler import Sampler, ddim, ddpm_deviation, ddpm_mean, guess
from heatproof.occlusion.diffusion.schedule import trailing
from heatproof.occlusion.imputers.nearest import Nearest
from heatproof.occlusion.seeded_pictures import drawn
from heatproof.types import Images, Keep, keyed_seed


@dataclass(frozen=True, eq=False)
class Drawing:
    """Rows that are inpainted together: all at the same step, each with its own noise."""

    denoiser: Denoiser
    images: Images
    keep: Keep
    seeds: Sequence[int]  # one per row; rows with the same seed share all noise
    sampler: Sampler

    @cached_property
    def times(self) -> list[int]:
        return trailing(self.sampler.steps, len(self.denoiser.alphas_cumprod))

    @cached_property
    def shares(self) -> list[float]:
        """The picture's share of the power at each visited step, and 1 at the end."""
        return [*(float(self.denoiser.alphas_cumprod[t]) for t in self.times), 1.0]

    @cached_property
    def first(self) -> Tensor:
        """(B,): the step at which each row begins."""
        removed = (~self.keep).flatten(1).double().mean(1).tolist()
        return torch.tensor([self.sampler.first(share) for share in removed])

    @cached_property
    def clean(self) -> Tensor:
        return self.images * 2 - 1

    def noise(self, purpose: str) -> Tensor:
        """Noise keyed by the row's seed and its purpose: the same whatever the batch mates."""
        seeds = [keyed_seed(seed, purpose) for seed in self.seeds]
        shape = self.images.shape[1:]
        return drawn(seeds, self.images, lambda dice: torch.randn(shape, generator=dice))

    def begun(self) -> Tensor:
        """The initial state of every row at its own first step: noise, or for a late start a noised rough fill."""
        noise = self.noise("start")
        late = (self.first > 0) & (self.first < self.sampler.steps)
        share = torch.tensor([self.shares[i] for i in self.first.tolist()]).to(noise)[:, None, None, None]
        if not bool(late.any()):
            return noise
        rows = late.nonzero().flatten().to(self.images.device)
        state = noise.clone()
        rough = Nearest()(self.images[rows], self.keep[rows]) * 2 - 1
        state[rows] = share[rows].sqrt() * rough + (1 - share[rows]).sqrt() * noise[rows]
        return state

    def noised(self, step: int) -> Tensor:
        """The whole picture with the noise of that step."""
        share = self.shares[step]
        return sqrt(share) * self.clean + sqrt(1 - share) * self.noise("start")

    def steps(self, state: Tensor, begin: int, end: int, against: AntiClass | None = None) -> Tensor:
        """The state advanced from step `begin` to step `end`; rows that begin later wait until then."""
        state = state.clone()
        for step in range(begin, end):
            rows = ((self.first <= step) & (self.first < self.sampler.steps)).nonzero().flatten()
            if len(rows):
                rows = rows.to(state.device)
                state[rows] = self._step(state[rows], step, rows, against)[0]
        return state

    def alone(self, begin: int, against: AntiClass | None) -> Tensor:
        """The effect of guidance from step `begin` on, on a picture of which nothing is removed.

        Before every step all pixels are the picture's own with that step's noise, plus the shifts by guidance so far.
        Nothing is drawn, so nothing repairs the shifts on the way: the prior only removes the noise of the last step.
        """
        last = self.sampler.steps - 1
        rows = (self.first <= last).nonzero().flatten().to(self.images.device)
        state = self.noised(last)
        if not len(rows):
            return state
        pushed = torch.zeros_like(state[rows])
        for step in range(begin if against else last, last + 1):
            guided, free = self._step(self.noised(step)[rows] + pushed, step, rows, against)
            pushed = pushed + (guided - free)
        state[rows] = guided
        return state

    def _step(self, x: Tensor, step: int, rows: Tensor, against: AntiClass | None) -> tuple[Tensor, Tensor]:
        """The next state with guidance against the class, and without."""
        share = self.shares[step]
        x = self._held(x, step, rows)
        eps = self.denoiser(x, self.times[step])
        free = self._moved(x, eps, None, step, rows)
        if against is None:
            return free, free
        slopes = against.gradient(x, guess(x, eps, share), share, rows)
        return self._moved(x, eps, slopes, step, rows), free

    def _moved(self, x: Tensor, eps: Tensor, slopes: Tensor | None, step: int, rows: Tensor) -> Tensor:
        share, after = self.shares[step], self.shares[step + 1]
        if self.sampler.kind == "ddim":
            if slopes is not None:
                eps = eps + sqrt(1 - share) * slopes
            return ddim(guess(x, eps, share), eps, after)
        mean = ddpm_mean(x, guess(x, eps, share), share, after)
        if slopes is not None:
            mean = mean - (1 - share / after) * slopes
        deviation = ddpm_deviation(share, after)
        return mean + deviation * self.noise(f"step {self.times[step]}")[rows] if deviation else mean

    def _held(self, x: Tensor, step: int, rows: Tensor) -> Tensor:
        """The state with kept pixels set to the values they have at this step."""
        share = self.shares[step]
        known = self.clean[rows]
        if self.sampler.known == "noised":
            known = sqrt(share) * known + sqrt(1 - share) * self.noise(f"known {self.times[step]}")[rows]
        if self.sampler.mask == "soft":
            lost = 1 - share / self.shares[step + 1]
            known = x + min(1.0, lost / (2 * self.sampler.pull**2)) * (known - x)
        return torch.where(self.keep[rows][:, None], known, x)

    def done(self, state: Tensor) -> Images:
        """The state as a picture in 256 levels; under a hard mask its kept pixels are the image's, bit for bit."""
        painted = ((state.clamp(-1, 1) + 1) * 127.5).round() / 255
        whole = (self.first == self.sampler.steps).to(self.keep.device)[:, None, None]
        kept = self.keep if self.sampler.mask == "hard" else self.keep & whole
        return torch.where(kept[:, None], self.images, painted.to(self.images))
