"""Steps equal those of diffusers; schedules, spacing and the unconditional sampler are what they should
be."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_prior import tiny

from heatproof.errors import BadInput
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.occlusion.diffusion.inpaint import Drawing
from heatproof.occlusion.diffusion.sampler import Sampler, ddim, ddpm_deviation, ddpm_mean, guess
from heatproof.occlusion.diffusion.schedule import alphas_cumprod, trailing

STEPS = 20


def _schedulers():
    import_torchvision("diffusers")
    import diffusers

    return diffusers


@pytest.mark.parametrize(("kind", "theirs"), [("linear", "linear"), ("cosine", "squaredcos_cap_v2")])
def test_schedules_are_those_of_diffusers(kind, theirs):
    scheduler = _schedulers().DDPMScheduler(beta_schedule=theirs)
    torch.testing.assert_close(alphas_cumprod(kind).float(), scheduler.alphas_cumprod, atol=2e-6, rtol=2e-4)


@pytest.mark.parametrize("steps", [1, 5, 20, 50, 250, 1000])
def test_trailing_spacing_is_that_of_diffusers(steps):
    scheduler = _schedulers().DDIMScheduler(timestep_spacing="trailing")
    scheduler.set_timesteps(steps)
    assert trailing(steps) == scheduler.timesteps.tolist()


@given(st.integers(1, 1000))
def test_trailing_spacing_starts_at_pure_noise_and_falls(steps):
    times = trailing(steps)
    assert len(times) == steps
    assert times[0] == 999
    assert all(a > b >= 0 for a, b in pairwise(times))


def test_every_ddim_step_is_that_of_diffusers():
    scheduler = _schedulers().DDIMScheduler(timestep_spacing="trailing", clip_sample=True, set_alpha_to_one=True)
    scheduler.set_timesteps(STEPS)
    shares = [*(float(scheduler.alphas_cumprod[t]) for t in scheduler.timesteps), 1.0]
    dice = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 8, 8, generator=dice)
    for place, t in enumerate(scheduler.timesteps.tolist()):
        eps = torch.randn(x.shape, generator=dice)
        theirs = scheduler.step(eps, t, x).prev_sample
        ours = ddim(guess(x, eps, shares[place]), eps, shares[place + 1])
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
        x = theirs


def test_every_ancestral_step_is_that_of_diffusers():
    scheduler = _schedulers().DDPMScheduler(timestep_spacing="trailing", clip_sample=True, variance_type="fixed_small")
    scheduler.set_timesteps(STEPS)
    shares = [*(float(scheduler.alphas_cumprod[t]) for t in scheduler.timesteps), 1.0]
    dice = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 8, 8, generator=dice)
    for place, t in enumerate(scheduler.timesteps.tolist()):
        eps = torch.randn(x.shape, generator=dice)
        theirs = scheduler.step(eps, t, x, generator=torch.Generator().manual_seed(t)).prev_sample
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(t))
        share, after = shares[place], shares[place + 1]
        ours = ddpm_mean(x, guess(x, eps, share), share, after) + ddpm_deviation(share, after) * noise
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
        x = theirs


def test_the_sampler_with_nothing_kept_is_diffusers_unconditional_loop():
    prior = tiny()
    scheduler = _schedulers().DDIMScheduler(timestep_spacing="trailing", clip_sample=True, set_alpha_to_one=True)
    scheduler.set_timesteps(STEPS)
    images = torch.full((2, 3, 32, 32), 0.5)
    drawing = Drawing(prior, images, torch.zeros(2, 32, 32, dtype=torch.bool), [1, 2], Sampler("ddim", STEPS))
    x = drawing.begun()
    state = drawing.steps(x, 0, STEPS)
    for t in scheduler.timesteps.tolist():
        x = scheduler.step(prior(x, t), t, x).prev_sample
    torch.testing.assert_close(state, x, atol=1e-4, rtol=1e-4)


@given(st.floats(0.001, 1))
def test_the_less_is_removed_the_later_a_late_start_begins(removed):
    sampler = Sampler()
    assert 0 <= sampler.first(removed) < sampler.steps
    assert sampler.first(removed) >= sampler.first(min(1, removed + 0.1))
    assert sampler.first(1.0) == 0
    assert sampler.first(0.0) == sampler.steps


@pytest.mark.parametrize(
    "fields", [{"steps": 0}, {"kind": "euler"}, {"steps": 1001}, {"known": "x"}, {"mask": "hrad"}, {"pull": 0.0}]
)
def test_a_sampler_that_cannot_be_is_refused(fields):
    with pytest.raises(BadInput):
        Sampler(**fields)
