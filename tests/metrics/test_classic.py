"""Insertion, deletion, sensitivity-n, infidelity and ROAD on a linear model, where the truth is known."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from networks import batch, linear, small_cnn
from torch import Tensor

from heatproof import engine
from heatproof.errors import BadInput
from heatproof.metrics.infidelity import Infidelity, infidelity, squares
from heatproof.metrics.insertion_deletion import Deletion, Insertion
from heatproof.metrics.road import Road
from heatproof.metrics.sensitivity_n import SensitivityN, pearson
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.blur import Blur
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, Mean
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.types import Attribution, Batch, Model, read

COARSE = Occlusion(Mean(), Grid(4), 1)


def _exact(model: Model, shown: Batch) -> Tensor:
    """What each pixel of a linear model adds to the target's logit over the mean colour."""
    weights = model.network.fc.weight[shown.targets].view(-1, 3, 32, 32)
    colour = torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1)
    return (weights * (shown.images - colour)).sum(1).detach()


def _attribution(maps: Tensor | None = None) -> Attribution:
    model, shown = linear(), batch()
    return Attribution(model, shown, None, _exact(model, shown) if maps is None else maps)


def test_sensitivity_n_of_exact_attributions_is_one_for_every_n():
    message = SensitivityN(sizes=6, sets=20)(_attribution())
    torch.testing.assert_close(message.curve.y, torch.ones(3, 6, dtype=torch.float64), atol=1e-4, rtol=0)


def test_sensitivity_n_of_the_opposite_is_minus_one_and_of_nothing_is_zero():
    exact = _attribution().maps
    torch.testing.assert_close(
        SensitivityN(sizes=3, sets=20)(_attribution(-exact)).values,
        -torch.ones(3).double(),
        atol=1e-4,
        rtol=0,
    )
    assert SensitivityN(sizes=3, sets=20)(_attribution(torch.ones(3, 32, 32))).values.tolist() == [0, 0, 0]


def test_pearson_is_numpys():
    a, b = torch.randn(4, 30).double(), torch.randn(4, 30).double()
    wanted = [torch.corrcoef(torch.stack([x, y]))[0, 1] for x, y in zip(a, b, strict=True)]
    torch.testing.assert_close(pearson(a, b), torch.stack(wanted))


def test_sensitivity_n_asks_the_same_sets_of_every_method():
    metric = SensitivityN(sizes=2, sets=5)
    from heatproof.occlusion.game import game_of

    attribution = _attribution()
    game = game_of(attribution.model, attribution.batch, metric.occlusion, metric.readout)
    metric(attribution)
    paid = game.evaluated
    metric(Attribution(attribution.model, attribution.batch, None, torch.rand(3, 32, 32)))
    assert game.evaluated == paid
    assert paid == 3 * (1 + 2 * 5)


def test_infidelity_of_exact_attributions_is_zero_at_the_best_scale():
    for factor in (1, 7.5):
        values = Infidelity(count=40)(_attribution(factor * _attribution().maps)).values
        assert float(values.max()) < 1e-9
    assert float(Infidelity(count=40)(_attribution(torch.randn(3, 32, 32))).values.min()) > 1e-6


def test_gaussian_infidelity_of_the_gradient_of_a_linear_model_is_zero():
    model, shown = linear(), batch()
    shown = shown.showing(shown.images.mean(1, keepdim=True).expand(-1, 3, -1, -1))  # grey: one change per pixel
    slopes = model.network.fc.weight[shown.targets].view(-1, 3, 32, 32).sum(1).detach()
    values = Infidelity("gaussian", count=40)(Attribution(model, shown, None, slopes)).values
    assert float(values.max()) < 1e-9


def test_gaussian_infidelity_shows_a_noisy_black_picture():
    moved, taken = Infidelity("gaussian", count=200, deviation=0.2).disturbed(_attribution(), 0, 200)
    assert float((moved == 0).double().mean()) == pytest.approx(0.5, abs=0.01)
    assert float(moved.square().mean().sqrt()) == pytest.approx(0.2 / 2**0.5, rel=0.02)
    torch.testing.assert_close(taken, (_attribution().batch.images[0] - moved).mean(1))


@pytest.mark.parametrize("disturbance", ["square", "gaussian"])
def test_infidelity_is_captums(disturbance):
    from captum.metrics import infidelity as theirs

    model, shown = small_cnn(), batch()
    maps = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(5))
    attribution = Attribution(model, shown, None, maps)
    metric = Infidelity(disturbance, count=20)
    both = [metric.disturbed(attribution, row, 20) for row in range(3)]
    moved, weights = torch.cat([m for m, _ in both]), torch.cat([w for _, w in both])

    def perturb(images: Tensor) -> tuple[Tensor, Tensor]:
        return weights[:, None].expand(-1, 3, -1, -1) / 3, moved

    wanted = theirs(
        model,
        perturb,
        shown.images,
        maps[:, None].expand(-1, 3, -1, -1).contiguous(),
        target=shown.targets,
        n_perturb_samples=20,
        max_examples_per_batch=60,
        normalize=True,
    )
    torch.testing.assert_close(metric(attribution).values.float(), wanted.detach().float(), atol=1e-6, rtol=1e-3)


def test_a_map_of_zeros_explains_nothing_of_the_change():
    changed = torch.tensor([[1.0, -2.0, 3.0]]).double()
    torch.testing.assert_close(infidelity(torch.zeros(1, 3).double(), changed), changed.square().mean(1))


def test_squares_lie_inside_and_have_every_side():
    found = squares(500, 20, 30, 0.36, torch.Generator().manual_seed(0))
    areas = found.flatten(1).sum(1)
    assert set(areas.tolist()) == {side**2 for side in range(1, 8)}


def test_deletion_and_insertion_prefer_the_exact_map_to_its_opposite():
    exact = _attribution().maps
    for metric in (
        Deletion(COARSE, "logit"),
        Insertion(readout="logit", points=9),
        Road(COARSE, readout="logit"),
    ):
        good, bad = metric(_attribution()).values, metric(_attribution(-exact)).values
        sign = 1 if metric.higher_is_better else -1
        assert bool((sign * (good - bad) > 0).all())


def test_deletion_starts_at_the_picture_and_insertion_ends_there():
    attribution = _attribution()
    whole = read(engine.forward(attribution.model, attribution.batch.images), attribution.batch.targets, "probability")
    torch.testing.assert_close(Deletion(COARSE)(attribution).curve.y[:, 0].float(), whole)
    torch.testing.assert_close(Insertion()(attribution).curve.y[:, -1].float(), whole)


def test_insertion_begins_at_the_picture_under_rises_kernel():
    attribution = _attribution()
    shown, targets = attribution.batch.images, attribution.batch.targets
    flat = [
        cv2.GaussianBlur(one.permute(1, 2, 0).numpy(), (11, 11), 5, borderType=cv2.BORDER_REPLICATE) for one in shown
    ]
    soft = torch.from_numpy(np.stack(flat)).permute(0, 3, 1, 2)
    nothing = torch.zeros(3, 32, 32, dtype=torch.bool)
    torch.testing.assert_close(Insertion().occlusion.imputer(shown, nothing), soft, atol=1e-5, rtol=0)
    start = read(engine.forward(attribution.model, soft), targets, "logit").double()
    curve = Insertion(readout="logit")(attribution).curve
    torch.testing.assert_close(curve.y[:, 0], start, atol=1e-4, rtol=0)


def test_insertion_and_deletion_through_the_same_occlusion_are_mirror_images():
    attribution = _attribution()
    comes = Insertion(COARSE, points=17)(attribution).curve.y
    goes = Deletion(COARSE, points=17)(Attribution(attribution.model, attribution.batch, None, -attribution.maps))
    torch.testing.assert_close(comes, goes.curve.y.flip(1))


def test_road_of_a_constant_map_is_exactly_zero():
    assert Road(COARSE)(_attribution(torch.ones(3, 32, 32))).values.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "metric",
    [Deletion(COARSE), Insertion(), SensitivityN(sizes=3, sets=5), Infidelity(count=20), Road(COARSE)],
)
def test_scores_do_not_depend_on_batch_mates(metric):
    attribution = _attribution()
    alone = [
        metric(Attribution(attribution.model, attribution.batch.select([row]), None, attribution.maps[[row]])).values
        for row in range(3)
    ]
    torch.testing.assert_close(torch.cat(alone), metric(attribution).values, atol=1e-6, rtol=1e-5)


def test_samples_are_the_pictures_with_what_stays_untouched():
    attribution = _attribution()
    samples = Deletion(Occlusion(Constant(), Pixels(), 1)).samples(attribution)
    assert samples.images.shape == (3, 9, 3, 32, 32)
    torch.testing.assert_close(samples.removed, torch.linspace(0.1, 0.9, 9).double().expand(3, -1), atol=1e-3, rtol=0)
    same = (samples.images == attribution.batch.images[:, None]).all(2).flatten(2).double().mean(2)
    assert bool((same >= 1 - samples.removed - 1e-9).all())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Road(shares=(0.5, 1.5)),
        lambda: SensitivityN(largest=1.0),
        lambda: Infidelity("square", count=1),
        lambda: Infidelity("squares"),
        lambda: Infidelity(largest=2.0),
        lambda: Infidelity(largest=0.0),
        lambda: Infidelity(deviation=0.0),
        lambda: Blur(kernel=10),
        lambda: Blur(sigma=0.0),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(BadInput):
        make()
