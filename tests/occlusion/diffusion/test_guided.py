"""Guided drawing is what the paper's formulas say, step by step, and guidance alone removes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import pytest
import torch
from networks import batch, linear, pictures
from torch import Tensor, nn

from heatproof.occlusion.diffusion.denoiser import Prior
from heatproof.occlusion.diffusion.guidance import Guidance
from heatproof.occlusion.diffusion.inpaint import Drawing
from heatproof.occlusion.diffusion.reconstruct import Begin, reconstruct
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.types import Batch, Model

SEEDS = [11, 12, 13]
STEPS = 40
STRONG = 1000.0  # a scale at which the untrained classifier's slopes can be seen in a picture of 256 steps
FREE = Guidance(0.0)
LATE, AT_GUESS = Guidance(STRONG), Guidance(STRONG, at="guess")
WIDE = Guidance(STRONG / 100, "wide", at="guess")


class Smears(nn.Module):
    """A network that cannot paint, but whose answer depends on the neighbours, and takes no time."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.conv(x)


def smearing() -> Prior:
    return Prior("smearing", Smears(), predicts="velocity")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "cache"))


def _keep(share: float = 0.5) -> Tensor:
    return torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(3)) < share


def _drawn(
    shown: Batch, keep: Tensor, sampler: Sampler, guidance: Guidance, model: Model, begin: Begin = "noise"
) -> Tensor:
    return reconstruct(smearing(), shown.images, keep, SEEDS, sampler, (guidance, model, shown.targets), begin)


@dataclass
class Book:
    """The algorithm written out once more, plainly, on pictures in [-1, 1]."""

    shown: Batch
    keep: Tensor
    sampler: Sampler
    guidance: Guidance
    model: Model
    prior: Prior

    def __post_init__(self) -> None:
        self.noise = Drawing(self.prior, self.shown.images, self.keep, SEEDS, self.sampler).noise
        self.times = [round(1000 - i * 1000 / STEPS) - 1 for i in range(STEPS)]
        self.shares = [float(self.prior.alphas_cumprod[t]) for t in self.times] + [1.0]
        late = [place for place, t in enumerate(self.times) if t < 50]
        wide = [place for place, t in enumerate(self.times) if t < 950]
        self.begun = (late if self.guidance.window == "late" else wide)[0] if self.guidance.scale else STEPS
        self.x0 = 2 * self.shown.images - 1

    def slope(self, z: Tensor, clean: Tensor, share: float) -> Tensor:
        """d log p(target | u) / du by autograd alone."""
        u = (z if self.guidance.at == "noisy" else clean).clamp(-1, 1).requires_grad_()
        message = self.model((u + 1) / 2).log_softmax(1).gather(1, self.shown.targets[:, None]).sum()
        through = 1 if self.guidance.at == "noisy" else 1 / sqrt(share)
        return self.guidance.scale * through * torch.autograd.grad(message, u)[0]

    def step(self, z: Tensor, place: int) -> tuple[Tensor, Tensor]:
        """Where a step leads, and where it would lead unguided."""
        t, a, b = self.times[place], self.shares[place], self.shares[place + 1]
        known = self.x0
        if self.sampler.known == "noised":
            known = sqrt(a) * known + sqrt(1 - a) * self.noise(f"known {t}")
        z = torch.where(self.keep[:, None], known, z)
        eps = self.prior(z, t)
        clean = ((z - sqrt(1 - a) * eps) / sqrt(a)).clamp(-1, 1)
        slope = self.slope(z, clean, a) if place >= self.begun else torch.zeros_like(z)
        if self.sampler.kind == "ddim":
            both = []
            for e in (eps + sqrt(1 - a) * slope, eps):
                both.append(sqrt(b) * ((z - sqrt(1 - a) * e) / sqrt(a)).clamp(-1, 1) + sqrt(1 - b) * e)
            return both[0], both[1]
        beta = 1 - a / b
        mean = sqrt(b) * beta / (1 - a) * clean + sqrt(a / b) * (1 - b) / (1 - a) * z
        free = mean + sqrt((1 - b) / (1 - a) * beta) * self.noise(f"step {t}")
        return free - beta * slope, free

    def picture(self, z: Tensor) -> Tensor:
        return torch.where(self.keep[:, None], self.shown.images, (z.clamp(-1, 1) + 1) / 2)

    def drawn(self) -> Tensor:
        z = self.noise("start")
        for place in range(STEPS):
            z, _ = self.step(z, place)
        return self.picture(z)

    def alone(self) -> Tensor:
        """Nothing is removed: the picture with each step's noise, and what the term has pushed it by."""
        pushed = torch.zeros_like(self.x0)
        for place in range(min(self.begun, STEPS - 1), STEPS):
            share = self.shares[place]
            z, free = self.step(sqrt(share) * self.x0 + sqrt(1 - share) * self.noise("start") + pushed, place)
            pushed = pushed + z - free
        return self.picture(z)


@pytest.mark.parametrize("kind", ["ddim", "ddpm"])
@pytest.mark.parametrize("known", ["clean", "noised"])
@pytest.mark.parametrize("guidance", [LATE, AT_GUESS, WIDE])
def test_a_guided_drawing_is_the_papers_loop(kind, known, guidance):
    sampler = Sampler(kind, STEPS, known=known, late_start=False)
    book = Book(batch(), _keep(), sampler, guidance, linear(), smearing())
    wanted = book.drawn()
    assert float((wanted - replace(book, guidance=FREE).drawn()).abs().mean()) > 4 / 255  # else it would show nothing
    got = _drawn(batch(), _keep(), sampler, guidance, linear())
    assert float((got - wanted).abs().max()) <= 1 / 255


@pytest.mark.parametrize("kind", ["ddim", "ddpm"])
@pytest.mark.parametrize("guidance", [LATE, WIDE])
def test_guidance_alone_pushes_the_picture_itself(kind, guidance):
    sampler = Sampler(kind, STEPS, late_start=False)
    book = Book(batch(), _keep(), sampler, guidance, linear(), smearing())
    wanted = book.alone()
    got = _drawn(batch(), _keep(), sampler, guidance, linear(), "original")
    assert float((got - wanted).abs().max()) <= 1 / 255
    assert float((wanted - replace(book, guidance=FREE).alone()).abs().mean()) > 4 / 255


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("kind", ["ddim", "ddpm"])
def test_without_guidance_either_the_prior_alone_leaves_the_picture_but_for_the_last_noise(kind, share):
    shown, keep = batch(), _keep(share)
    drawn = {
        (window, late): _drawn(
            shown, keep, Sampler(kind, STEPS, late_start=late), Guidance(0.0, window), linear(), "original"
        )
        for window in ("late", "wide")
        for late in (True, False)
    }
    first = drawn["late", True]
    assert all(torch.equal(first, other) for other in drawn.values())  # nothing to begin late, and no window
    again = _drawn(shown, keep, Sampler(kind, STEPS, late_start=False), FREE, linear())
    kept, redrawn = (float((one - shown.images).abs().mean()) for one in (first, again))
    assert kept < redrawn / 3


def test_a_late_start_does_not_shorten_guidance_alone():
    early, late = (
        _drawn(batch(), _keep(0.9), Sampler("ddim", STEPS, late_start=start), WIDE, linear(), "original")
        for start in (False, True)
    )
    assert torch.equal(early, late)


def test_the_noised_picture_has_its_share_of_noise():
    drawing = Drawing(smearing(), pictures(), _keep(), SEEDS, Sampler("ddim", STEPS))
    for step in (0, 20, STEPS - 1):
        share = float(smearing().alphas_cumprod[drawing.times[step]])
        noise = (drawing.noised(step) - sqrt(share) * (2 * pictures() - 1)) / sqrt(1 - share)
        assert float(noise.mean()) == pytest.approx(0, abs=0.05)
        assert float(noise.std()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("sampler", [Sampler(), Sampler("ddpm", 10, late_start=False), Sampler(known="noised")])
def test_what_is_hidden_does_not_reach_what_is_drawn(sampler):
    images, keep = pictures(), _keep()
    others = torch.where(keep[:, None], images, pictures(seed=9))
    hidden = ~keep[:, None].expand_as(images)
    one, other = (reconstruct(smearing(), shown, keep, SEEDS, sampler) for shown in (images, others))
    assert torch.equal(one[hidden], other[hidden])


def _steeper() -> Model:
    model = linear()
    model.network.fc.weight.data.mul_(-3)
    return model


@pytest.mark.parametrize("begin", ["noise", "original"])
def test_what_is_kept_of_one_model_or_target_is_not_taken_for_anothers(begin, tmp_path, monkeypatch):
    sampler, shown = Sampler("ddim", 5, late_start=False), batch()
    requested = [(linear(), shown), (_steeper(), shown), (linear(), replace(shown, targets=shown.targets.flip(0)))]
    assert len({model.revision for model, _ in requested}) == 2
    one_cache = [_drawn(aimed, _keep(), sampler, LATE, model, begin) for model, aimed in requested]
    for place, (model, aimed) in enumerate(requested):
        monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / str(place)))
        assert torch.equal(_drawn(aimed, _keep(), sampler, LATE, model, begin), one_cache[place])
    first, *others = one_cache
    assert all(float((other - first).abs().max()) > 4 / 255 for other in others)
