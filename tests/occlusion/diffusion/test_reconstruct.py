"""Reconstructions: kept pixels are untouched, rows are independent, the class is held down, and nothing is
paid twice."""

from __future__ import annotations

import pytest
import torch
from networks import batch, pictures, small_cnn
from tiny_prior import Counting, tiny
from torch import nn

from heatproof import engine
from heatproof.errors import BadInput, BadModel
from heatproof.occlusion.diffusion import priors, reconstruction_cache
from heatproof.occlusion.diffusion.denoiser import Prior, check
from heatproof.occlusion.diffusion.guidance import Guidance
from heatproof.occlusion.diffusion.inpaint import Drawing
from heatproof.occlusion.diffusion.reconstruct import reconstruct
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.occlusion.diffusion.schedule import trailing
from heatproof.occlusion.diffusion.training import Plan, patches, train
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.types import read

SEEDS = [11, 12, 13]
FEW = Sampler("ddim", 5, late_start=False)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "cache"))


def _keep(count: int = 3, share: float = 0.5) -> torch.Tensor:
    return torch.rand(count, 32, 32, generator=torch.Generator().manual_seed(3)) < share


@pytest.mark.parametrize(
    "sampler", [FEW, Sampler("ddpm", 5), Sampler(known="noised"), Sampler("ddpm", 10, mask="hard")]
)
def test_kept_pixels_are_bit_identical(sampler):
    images, keep = pictures(), _keep()
    drawn = reconstruct(tiny(), images, keep, SEEDS, sampler)
    assert torch.equal(drawn.where(keep[:, None], torch.zeros(())), images.where(keep[:, None], torch.zeros(())))
    assert not torch.equal(drawn, images)
    assert float(drawn.min()) >= 0
    assert float(drawn.max()) <= 1


def test_keeping_everything_gives_the_image_and_asks_the_prior_nothing():
    prior, images = Counting(), pictures()
    check(prior, images)
    prior.calls.clear()
    everything = torch.ones(3, 32, 32, dtype=torch.bool)
    for sampler in (FEW, Sampler(mask="soft")):
        assert torch.equal(reconstruct(prior, images, everything, SEEDS, sampler), images)
    assert prior.rows == 0


def test_keeping_nothing_without_guidance_is_unconditional_sampling():
    images, nothing = pictures(), torch.zeros(3, 32, 32, dtype=torch.bool)
    drawn = reconstruct(tiny(), images, nothing, SEEDS, FEW)
    assert torch.equal(drawn, reconstruct(tiny(), pictures(seed=9), nothing, SEEDS, FEW))
    model, aims = small_cnn(), torch.tensor([0, 1, 2])
    unguided = reconstruct(tiny(), images, nothing, SEEDS, FEW, (Guidance(0.0), model, aims))
    assert float((unguided - drawn).abs().max()) <= 2 / 255  # the state at the switch is kept in half precision


@pytest.mark.parametrize("sampler", [FEW, Sampler("ddpm", 10, late_start=False)])
@pytest.mark.parametrize("window", ["late", "wide"])
def test_guidance_lowers_the_probability_of_the_class(sampler, window):
    model, shown = small_cnn(), batch()
    keep = _keep(share=0.2)
    message = []
    for scale in (0.0, 40.0):
        against = (Guidance(scale, window), model, shown.targets)
        drawn = reconstruct(tiny(), shown.images, keep, SEEDS, sampler, against)
        message.append(read(engine.forward(model, drawn), shown.targets, "log_probability"))
    assert float((message[1] - message[0]).mean()) < 0


@pytest.mark.parametrize("sampler", [Sampler("ddim", 8), Sampler("ddpm", 8)])
def test_rows_do_not_depend_on_their_order_or_company(sampler):
    images, keep, prior = pictures(), _keep(), tiny()

    def drawn(rows):
        drawing = Drawing(prior, images[rows], keep[rows], [SEEDS[r] for r in rows], sampler)
        return drawing.steps(drawing.begun(), 0, sampler.steps)

    together = drawn([0, 1, 2])
    assert torch.equal(drawn([2, 0, 1]), together[[2, 0, 1]])
    for row in range(3):
        assert torch.equal(drawn([row])[0], together[row])


def test_the_prior_is_run_once_per_step_and_row_and_never_twice_for_the_same():
    prior, images, keep = Counting(), pictures(), _keep()
    check(prior, images)
    prior.calls.clear()
    first = reconstruct(prior, images, keep, SEEDS, FEW)
    assert [t for t, _ in prior.calls] == trailing(5)
    assert prior.rows == 5 * 3
    prior.calls.clear()
    again = reconstruct(prior, images, keep, SEEDS, FEW)
    assert prior.rows == 0
    assert torch.equal(again, first)


def test_another_scale_pays_only_for_the_steps_after_the_switch():
    prior, shown, keep, model = Counting(), batch(), _keep(), small_cnn()
    sampler = Sampler("ddpm", 40, late_start=False)
    guidance = Guidance(4.0)
    switch = guidance.switch(trailing(40), 1000)
    assert switch == 38  # of 40 steps, t = 49 and t = 24 lie in the last 5 %
    reconstruct(prior, shown.images, keep, SEEDS, sampler, (guidance, model, shown.targets))
    prior.calls.clear()
    reconstruct(prior, shown.images, keep, SEEDS, sampler, (Guidance(0.0), model, shown.targets))
    assert prior.rows == 2 * 3
    prior.calls.clear()
    reconstruct(prior, shown.images, keep, SEEDS, sampler, (guidance, model, shown.targets), "original")
    assert prior.rows == 2 * 3


def test_a_late_start_asks_less_when_little_is_removed():
    calls = []
    for share in (0.9, 0.1):
        prior = Counting()
        check(prior, pictures())
        prior.calls.clear()
        reconstruct(prior, pictures(), _keep(share=share), SEEDS, Sampler())
        calls.append(prior.rows)
    assert calls[0] < calls[1] / 2
    assert calls[1] <= 20 * 3


def test_a_cache_that_cannot_be_written_costs_time_not_the_result(tmp_path, monkeypatch):
    expected = reconstruct(tiny(), pictures(), _keep(), SEEDS, FEW)
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("HEATPROOF_CACHE", str(blocked))
    assert torch.equal(reconstruct(tiny(), pictures(), _keep(), SEEDS, FEW), expected)


def test_a_damaged_cache_is_passed_over(monkeypatch):
    expected = reconstruct(tiny(), pictures(), _keep(), SEEDS, FEW)
    for file in reconstruction_cache.path().parent.iterdir():
        file.write_bytes(b"not a database" * 100)
    assert torch.equal(reconstruct(tiny(), pictures(), _keep(), SEEDS, FEW), expected)


def test_the_oldest_leave_a_full_cache(monkeypatch):
    monkeypatch.setattr(reconstruction_cache, "LARGEST", 200_000)
    names = [bytes([i]) * 32 for i in range(100)]
    for name in names:
        reconstruction_cache.keep({name: bytes(10_000)})
    found = reconstruction_cache.find(names)
    assert names[-1] in found
    assert names[0] not in found
    assert len(found) < 40


def test_the_soft_mask_moves_kept_pixels_and_the_hard_one_does_not():
    images, keep = pictures(), _keep()
    soft = reconstruct(tiny(), images, keep, SEEDS, Sampler("ddpm", 20, mask="soft", late_start=False))
    gap = (soft - images).abs().where(keep[:, None], torch.zeros(()))
    assert float(gap.max()) > 0


def test_the_imputer_needs_a_seed_per_row():
    with pytest.raises(BadInput, match="one seed per image"):
        Diffusion(tiny(), FEW)(pictures(), _keep())


@pytest.mark.parametrize(
    ("size", "channels", "output"),
    [(64, 1, "3 channels"), (32, 1, "3 channels"), (32, 4, "3 channels")],
)
def test_a_prior_for_other_pictures_is_refused_before_any_work(size, channels, output):
    prior = Counting()
    with pytest.raises(BadInput, match=output):
        reconstruct(prior, torch.rand(1, channels, size, size), torch.ones(1, size, size, dtype=torch.bool), [0], FEW)
    assert prior.rows == 0


def test_a_size_that_cannot_be_halved_is_refused_before_any_work():
    inner = tiny()
    prior = Counting(Prior("any size", inner.network, size=None, multiple=inner.multiple, predicts="velocity"))
    with pytest.raises(BadInput, match="divisible by 8"):
        reconstruct(prior, torch.rand(1, 3, 36, 36), torch.ones(1, 36, 36, dtype=torch.bool), [0], FEW)
    assert prior.rows == 0


def test_a_prior_that_gives_nan_is_refused():
    prior = tiny()
    nn.init.constant_(prior.network.out.weight, float("nan"))
    with pytest.raises(BadModel, match="NaN"):
        reconstruct(prior, pictures(1), _keep(1), [0], FEW)


class Wide(nn.Module):
    """Answers with as many channels as one likes: noise first, then what stands for a learned variance."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, padding=1)

    def forward(self, x, t):
        return self.conv(x)


def test_learned_variances_are_left_aside_and_odd_answers_refused():
    network = Wide(6)
    x = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(Prior("learned", network)(x, 10), network.conv(x)[:, :3])
    with pytest.raises(BadModel, match="as many channels"):
        Prior("odd", Wide(5))(x, 10)


@pytest.mark.parametrize("predicts", ["noise", "velocity", "picture"])
def test_whatever_a_prior_predicts_becomes_noise(predicts):
    dice = torch.Generator().manual_seed(0)
    picture, noise = torch.rand(2, 3, 8, 8, generator=dice) * 2 - 1, torch.randn(2, 3, 8, 8, generator=dice)
    prior = Prior("known", Wide(3), predicts=predicts)
    share = float(prior.alphas_cumprod[400])
    message = {
        "noise": noise,
        "picture": picture,
        "velocity": share**0.5 * noise - (1 - share) ** 0.5 * picture,
    }[predicts]
    prior.network.forward = lambda x, t: message[[0] + [1] * (len(x) - 1)]  # rows are filled up with the last
    noisy = share**0.5 * picture + (1 - share) ** 0.5 * noise
    torch.testing.assert_close(prior(noisy, 400), noise, atol=1e-5, rtol=1e-5)


def test_a_diffusers_folder_becomes_a_denoiser(tmp_path):
    from heatproof.models._support.torchvision_repair import import_torchvision

    import_torchvision("diffusers")
    from diffusers import DDPMScheduler, UNet2DModel

    network = UNet2DModel(
        sample_size=32,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
    )
    network.save_pretrained(tmp_path / "whole" / "unet")
    DDPMScheduler(beta_schedule="squaredcos_cap_v2").save_pretrained(tmp_path / "whole" / "scheduler")
    prior = priors.find(f"diffusers:{tmp_path / 'whole'}")
    assert (prior.size, prior.channels, prior.multiple) == (32, 3, 2)
    torch.testing.assert_close(
        prior.alphas_cumprod.float(), DDPMScheduler(beta_schedule="squaredcos_cap_v2").alphas_cumprod
    )
    x = pictures(2)
    torch.testing.assert_close(prior(x, 10), network.eval()(x, 10).sample)
    network.save_pretrained(tmp_path / "alone")
    torch.testing.assert_close(priors.find(f"diffusers:{tmp_path / 'alone'}")(x, 10), prior(x, 10))
    with pytest.raises(BadModel, match="UNet2DModel"):
        priors.find(f"diffusers:{tmp_path / 'nowhere'}")
    with pytest.raises(BadInput, match="diffusers:"):
        priors.find("stable")


def test_training_goes_on_where_it_was_broken_off_and_ships_what_it_made(tmp_path):
    plan = Plan(pictures=100, steps=4, batch=4)
    half = Plan(pictures=100, steps=2, batch=4)
    train(half, tmp_path / "out", tmp_path / "progress", lambda output: None)
    message = train(plan, tmp_path / "out", tmp_path / "progress", lambda output: None)
    assert message["steps_done"] == 4
    assert (tmp_path / "out" / "prior.safetensors").stat().st_size < 8 * 2**20


def test_training_masks_show_every_share():
    kept_share = patches(200, 32, torch.Generator().manual_seed(0)).flatten(1).float().mean(1)
    assert float(kept_share.min()) < 0.1
    assert float(kept_share.max()) > 0.9
