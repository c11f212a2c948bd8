"""The audit: energy, quality and smoothness say nothing of samples that are the originals, and much of black
ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch
from networks import batch, linear, small_cnn
from PIL import Image
from sklearn.metrics import roc_auc_score
from tiny_prior import tiny

from heatproof import engine, models
from heatproof.audit.energy import Energy, energies, energy
from heatproof.audit.evaluation import LEVELS, Removal, follows_map, random_maps
from heatproof.audit.image_quality import MEASURES, ImageQuality, masked_psnr, quality
from heatproof.audit.other_classes import OtherClasses
from heatproof.audit.smoothness import Smoothness, confidences, fall, kendall, mean_height
from heatproof.data.folder import Folder
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.engine import machine
from heatproof.errors import BadInput, NotApplicable
from heatproof.metrics.fud import Fud
from heatproof.metrics.infidelity import Infidelity
from heatproof.metrics.insertion_deletion import Deletion, Insertion
from heatproof.metrics.sensitivity_n import SensitivityN
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.occluded_images import Samples
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.spec import recipe
from heatproof.stats.falling import mean_curve_tau
from heatproof.stats.out_of_distribution import auroc, fpr95
from heatproof.types import Attribution, Curve


@dataclass(frozen=True)
class Untouched:
    """An evaluation that changes nothing."""

    def samples(self, attribution, /):
        images = attribution.batch.images
        return Samples(images[:, None].expand(-1, 4, -1, -1, -1), torch.linspace(0.1, 0.9, 4).expand(len(images), -1))


def _attribution(count: int = 4) -> Attribution:
    shown = batch(count, size=48)
    return Attribution(small_cnn(), shown, None, torch.rand(count, 48, 48, generator=torch.Generator().manual_seed(0)))


def test_auroc_is_sklearns_and_the_ends_are_what_they_should_be():
    dice = torch.Generator().manual_seed(0)
    low, high = (
        torch.randn(40, generator=dice).round(decimals=1),
        (torch.randn(50, generator=dice) + 1).round(decimals=1),
    )
    wanted = roc_auc_score([0] * 40 + [1] * 50, [*low.tolist(), *high.tolist()])
    assert auroc(low, high) == pytest.approx(wanted)
    assert auroc(low, low) == pytest.approx(0.5)
    assert auroc([0, 1], [2, 3]) == 1
    assert fpr95(list(range(1000)), list(range(1000))) == pytest.approx(0.95, abs=0.002)
    assert fpr95([0, 1], [2, 3]) == 0


def test_energy_is_minus_the_log_of_summed_exponentials():
    logits = torch.randn(3, 5)
    torch.testing.assert_close(energy(logits), -logits.exp().sum(1).log())
    torch.testing.assert_close(energy(logits, 2.0), -2 * (logits / 2).exp().sum(1).log())


def test_untouched_pictures_are_no_stranger_than_themselves():
    message = Energy(Untouched())(_attribution())
    torch.testing.assert_close(message.values, torch.zeros(4).double(), atol=1e-6, rtol=0)
    assert message.curve.y.shape == (4, 5)


def test_a_picture_that_lost_its_evidence_is_stranger():
    model, shown = linear(), batch(4)
    model.network.fc.weight.data.abs_()  # bright is well known, black is not
    message = Energy(Removal(Occlusion(Constant(), Grid(4), 1)))(Attribution(model, shown, None, torch.rand(4, 32, 32)))
    assert bool((message.values > 0).all())
    known = -model(shown.images).exp().sum(1).log().double().detach()
    torch.testing.assert_close(message.curve.y[:, 0], known, atol=1e-5, rtol=0)
    torch.testing.assert_close(message.values, message.curve.y[:, 1:].mean(1) - message.curve.y[:, 0])
    with pytest.raises(BadInput, match="temperature"):
        Energy(temperature=0)


@pytest.mark.parametrize("measure", MEASURES)
def test_quality_is_best_for_the_same_picture_and_falls_as_more_is_blackened(measure):
    attribution = _attribution(2)
    best = ImageQuality(Untouched(), measure)(attribution).values
    metric = ImageQuality(Removal(Occlusion(Constant(), Grid(6), 1), levels=(0.9, 0.3)), measure)
    message = metric(attribution)
    sign = 1 if metric.higher_is_better else -1
    assert bool((sign * (best - message.values) > 0).all())
    assert bool((sign * (message.curve.y[:, 0] - message.curve.y[:, 1]) > 0).all())


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("measure", MEASURES)
def test_quality_of_a_picture_does_not_depend_on_the_others(measure, cores, monkeypatch):
    monkeypatch.setattr(machine, "idle_cores", lambda: cores)
    images = batch(19, size=64).images  # more than one block, the last not full
    changed = images.roll(1, 0) * 0.3 + images * 0.7
    alone = torch.cat([quality(measure, changed[[i]], images[[i]]) for i in range(19)])
    assert alone.unique().numel() > 10
    assert torch.allclose(quality(measure, changed, images), alone, rtol=1e-5, atol=1e-6)


def test_psnr_of_the_removed_pixels_is_theirs_alone():
    images = batch(3, size=32).images
    keep = torch.ones(3, 32, 32, dtype=torch.bool)
    keep[:, :8] = False
    filled = images.where(keep[:, None], 0.5)
    removed = (~keep).flatten(1).double().mean(1)
    alone = quality("psnr", filled[..., :8, :], images[..., :8, :])
    assert torch.allclose(masked_psnr(filled, images, removed), alone, atol=1e-3)
    assert bool((quality("psnr", filled, images) > alone + 5).all())  # a quarter of the error
    assert torch.equal(quality("psnr_masked", filled, images, removed), masked_psnr(filled, images, removed))
    assert masked_psnr(images, images, torch.tensor([0.0, 0.5, 1.0])).tolist() == pytest.approx([80] * 3)


def test_removing_less_does_not_better_the_psnr_of_what_is_removed():
    attribution = _attribution(2)
    evaluation = Removal(Occlusion(Constant(), Grid(6), 1), levels=(0.9, 0.3))
    whole, alone = (ImageQuality(evaluation, measure)(attribution).curve for measure in ("psnr", "psnr_masked"))
    assert torch.allclose(alone.y, whole.y + 10 * torch.log10(whole.x), atol=1e-3)
    assert bool(((alone.y[:, 0] - alone.y[:, 1]).abs() < (whole.y[:, 0] - whole.y[:, 1]) / 3).all())


def test_natural_pictures_of_other_classes_are_drawn_by_image_and_are_of_other_classes():
    model, dataset = models.load("embedded:object"), TwoFactor(count=40)
    shown = dataset.batch(range(6))
    shown = shown.aimed(engine.forward(model, shown.images).argmax(1))
    attribution = Attribution(model, shown, None, shown.images.mean(1))
    reference = OtherClasses(dataset, count=5)
    drawn = reference.samples(attribution)
    assert drawn.images.shape == (6, 5, *shown.images.shape[1:])
    classes = engine.forward(model, drawn.images.flatten(0, 1)).argmax(1).view(6, 5)
    assert bool((classes != shown.targets[:, None]).all())
    every = dataset.batch(range(40)).images
    assert all(bool((every == one).flatten(1).all(1).any()) for one in drawn.images.flatten(0, 1))
    alone = Attribution(model, shown.select([4, 2]), None, attribution.maps[[4, 2]])
    assert torch.equal(reference.samples(alone).images, drawn.images[[4, 2]])
    found = Energy(reference)(attribution)
    torch.testing.assert_close(found.curve.y[:, 1:], energies(model, drawn))


def test_a_reference_from_files_is_cut_the_way_the_model_wants_it(tmp_path):
    model, drawn = models.load("embedded:object"), TwoFactor(count=12).batch(range(12)).images
    for at, image in enumerate(drawn):
        pixels = (image.permute(1, 2, 0) * 255).byte().numpy()
        Image.fromarray(pixels).resize((90, 70)).save(tmp_path / f"{at}.png")
    files = Folder(str(tmp_path))
    shown = replace(files, view=model.view).batch([0, 1])
    found = OtherClasses(files).samples(Attribution(model, shown, None, shown.images.mean(1))).images
    every = replace(files, view=model.view).batch(range(12)).images
    assert all(bool((every == one).flatten(1).all(1).any()) for one in found.flatten(0, 1))


def test_without_pictures_of_other_classes_there_is_no_reference():
    model, dataset = models.load("embedded:object"), TwoFactor(count=1)
    shown = dataset.batch([0])
    with pytest.raises(NotApplicable, match="another class"):
        OtherClasses(dataset).samples(Attribution(model, shown, None, shown.images.mean(1)))
    with pytest.raises(BadInput, match="count"):
        OtherClasses(count=0)


def test_small_pictures_have_multi_scale_ssim_too_and_tiny_ones_say_why_not():
    images = batch(2, size=64).images
    assert float(quality("ms_ssim", images, images).min()) == pytest.approx(1, abs=1e-5)
    with pytest.raises(BadInput, match="11×11"):
        quality("ms_ssim", images[..., :8, :8], images[..., :8, :8])


def test_tau_is_one_if_confidence_falls_with_every_step_and_zero_if_it_never_moves():
    removed = torch.linspace(0, 0.9, 10).double().expand(3, -1)
    curves = torch.stack([1 - removed[0], removed[0], torch.full((10,), 0.5).double()])
    assert kendall(removed, curves).tolist() == pytest.approx([1, -1, 0])


def test_the_mean_curve_falls_in_order_where_single_ones_do_not():
    removed = torch.linspace(0, 0.9, 4).double().expand(2, -1)
    curve = Curve(removed, torch.tensor([[1.0, 0.5, 0.7, 0.1], [1.0, 0.9, 0.3, 0.2]]).double())
    assert float(kendall(*curve).mean()) < 1
    assert mean_curve_tau(curve.x, curve.y) == pytest.approx(1)
    assert math.isnan(mean_curve_tau(removed * torch.tensor([[1.0], [0.5]]), curve.y))
    assert mean_curve_tau(curve.x, torch.ones_like(curve.y)) == 0  # it never moves
    assert math.isnan(mean_curve_tau([[0.0, 0.5], [0.0, 0.5, 1.0]], [[1.0, 0.5], [1.0, 0.5, 0.2]]))
    assert math.isnan(mean_curve_tau([], []))


def test_smoothness_tells_its_controls_and_how_far_the_curve_falls():
    message = Smoothness(Removal(Occlusion(Mean(), Grid(4), 1)))(_attribution())
    assert list(message.details) == ["fall", "random", "inverted", "scope"]


def test_the_controls_of_smoothness_are_the_orders_they_are_named_after():
    attribution, metric = _attribution(), Smoothness(Removal(Occlusion(Mean(), Grid(4), 1)))
    turned = replace(attribution, maps=-attribution.maps)
    chance = replace(attribution, maps=random_maps(attribution.batch))
    beside = metric.beside(attribution)
    torch.testing.assert_close(beside["inverted"], metric(turned).values)
    torch.testing.assert_close(beside["random"], metric(chance).values)
    torch.testing.assert_close(beside["scope"], mean_height(metric(chance).curve))
    heights = [mean_height(confidences(one, metric.of.samples(one))) for one in (attribution, turned, chance)]
    assert len({round(float(height.mean()), 6) for height in heights}) == 3  # else they could be swapped


def test_a_curve_falls_to_where_most_is_removed():
    curve = Curve(torch.tensor([[0.0, 0.9, 0.1]]), torch.tensor([[1.0, 0.2, 0.8]]))
    assert float(fall(curve)) == pytest.approx(0.8)
    shown = Insertion().samples(_attribution())
    assert int(shown.removed[0].argmax()) == 0  # insertion begins with most removed


@pytest.mark.parametrize("drawn_by_lot", [SensitivityN(sizes=3, sets=4), Infidelity(count=9)])
def test_where_the_map_has_no_say_there_is_no_order_to_compare(drawn_by_lot):
    attribution = _attribution()
    turned = replace(attribution, maps=-attribution.maps)
    assert torch.equal(drawn_by_lot.samples(attribution).images, drawn_by_lot.samples(turned).images)
    assert not follows_map(drawn_by_lot)
    assert list(Smoothness(drawn_by_lot)(attribution).details) == ["fall"]


@pytest.mark.parametrize("ordered", [Deletion(), Insertion(), Removal(Occlusion(Mean(), Grid(4), 1))])
def test_where_the_map_has_a_say_the_curve_goes_from_nothing_to_nine_tenths(ordered):
    attribution = _attribution()
    turned = replace(attribution, maps=-attribution.maps)
    assert not torch.equal(ordered.samples(attribution).images, ordered.samples(turned).images)
    assert follows_map(ordered)
    x = confidences(attribution, ordered.samples(attribution)).x
    assert x.amin(1).tolist() == [0] * 4
    assert x.amax(1).tolist() == pytest.approx([0.9] * 4, abs=0.05)


def test_the_mean_height_is_taken_in_the_order_of_what_is_removed():
    curve = Curve(torch.tensor([[0.0, 0.8, 0.4]]), torch.tensor([[1.0, 0.0, 0.5]]))
    assert float(mean_height(curve)) == pytest.approx(0.5)


def test_removal_takes_the_least_important_first_by_default():
    attribution = _attribution()
    occlusion = Occlusion(Constant(), Grid(4), 1)
    least = Removal(occlusion).samples(attribution)
    most = Removal(occlusion, "most").samples(
        Attribution(attribution.model, attribution.batch, None, -attribution.maps)
    )
    assert torch.equal(least.images, most.images)
    assert least.images.shape[1] == len(LEVELS)


def test_fud_brings_its_own_controls_to_the_audit_of_smoothness(tmp_path, monkeypatch):
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    message = Smoothness(Fud(prior=tiny(48), levels=(0.9, 0.5), draws=1, controls=()))(_attribution(2))
    assert all(f"{name} " in note for note in message.notes for name in ("no guidance", "guidance only", "prior only"))


def test_other_pictures_in_the_same_folder_are_another_reference(tmp_path):
    for number in range(4):
        Image.new("RGB", (32, 32), (60 * number, 0, 0)).save(tmp_path / f"{number}.png")
    key = recipe.key(OtherClasses(Folder(str(tmp_path))))
    assert recipe.key(OtherClasses(Folder(str(tmp_path)))) == key
    again = recipe.build(recipe.plain(OtherClasses(Folder(str(tmp_path)), count=5)))
    assert again == OtherClasses(Folder(str(tmp_path)), count=5)
    Image.new("RGB", (32, 32), (1, 2, 3)).save(tmp_path / "3.png")
    assert recipe.key(OtherClasses(Folder(str(tmp_path)))) != key
