"""Randomisation metrics on linear models, where the similarity of two maps is known."""

from __future__ import annotations

import math

import pytest
import torch
from closed_forms import SIDE, Ignorant, Slope, alone, attributed, drawn, grey, weighted
from networks import batch as colour_batch
from networks import small_cnn, small_vit

from heatproof.errors import BadInput
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.saliency import Saliency
from heatproof.metrics._support.randomised import layers_in_order, randomised, redrawn, stages
from heatproof.metrics._support.similarity import correlation, rank_correlation, similar, ssim
from heatproof.metrics.mprt import MPRT, EfficientMPRT, SmoothMPRT, histogram_entropy
from heatproof.metrics.random_logit import RandomLogit
from heatproof.types import Attribution, Model

ONE = weighted(drawn(2, 1, 48, 48), "one layer")


def test_similarities_are_scipys_and_skimages():
    from scipy.stats import spearmanr
    from skimage.metrics import structural_similarity

    one, other = drawn(3, 20, 24), drawn(3, 20, 24, seed=1)
    other = 0.5 * one + other.round()
    flat = one.flatten(1), other.flatten(1)
    for row in range(3):
        a, b = one[row].double().numpy(), other[row].double().numpy()
        assert float(rank_correlation(*flat)[row]) == pytest.approx(spearmanr(a.ravel(), b.ravel()).statistic)
        reach = max(a.max(), b.max()) - min(a.min(), b.min())
        assert float(ssim(one, other)[row]) == pytest.approx(structural_similarity(a, b, data_range=reach), abs=1e-9)
    torch.testing.assert_close(
        correlation(*flat)[0], torch.corrcoef(torch.stack([flat[0][0], flat[1][0]]).double())[0, 1]
    )


@pytest.mark.parametrize("measure", ["spearman", "pearson", "ssim"])
def test_a_map_is_like_itself_and_constant_maps_like_nothing(measure):
    maps = drawn(2, 16, 16)
    assert similar(maps, maps, measure).tolist() == pytest.approx([1, 1])
    assert similar(maps, 1e-20 * maps, measure).tolist() == pytest.approx([1, 1])
    flat = torch.ones(2, 16, 16)
    assert bool(similar(flat, flat, measure).isnan().all())


def test_layers_come_in_the_order_they_run_and_nothing_is_left_out():
    class Backwards(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.nn.Linear(4, 2)
            self.first = torch.nn.Linear(SIDE * SIDE, 4)
            self.token = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return self.last(self.first(x.flatten(1)) + self.token)

    model, shown = Model("backwards", Backwards()), grey()
    assert layers_in_order(model, shown.images) == [
        ("token",),
        ("first.weight", "first.bias"),
        ("last.weight", "last.bias"),
    ]
    for network in (small_cnn(), small_vit()):
        found = [key for layer in layers_in_order(network, colour_batch().images) for key in layer]
        assert sorted(found) == sorted(name for name, _ in network.network.named_parameters())


def test_stages_end_with_everything_and_independent_ones_share_nothing():
    layers = [("a",), ("b", "c"), ("d",), ("e",)]
    assert stages(layers, "top_down", 9) == [("e",), ("e", "d"), ("e", "d", "b", "c"), ("e", "d", "b", "c", "a")]
    assert stages(layers, "bottom_up", 2) == [("a", "b", "c"), ("a", "b", "c", "d", "e")]
    assert stages(layers, "independent", 2) == [("e", "d"), ("b", "c", "a")]


def test_equal_shapes_get_different_draws_and_the_model_itself_is_left_alone():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 16), torch.nn.Linear(16, 16))
    with torch.no_grad():
        network[2].weight.copy_(network[1].weight)
    model = Model("twice", network)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    other = randomised(model, [name for name, _ in network.named_parameters()]).network
    assert not torch.equal(other[1].weight, other[2].weight)
    assert sorted(other[1].weight.flatten().tolist()) == sorted(before["1.weight"].flatten().tolist())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    noise = redrawn(torch.full((100, 100), 3.0) + drawn(100, 100), "gaussian", torch.Generator().manual_seed(0))
    assert float(noise.mean()) == pytest.approx(3, abs=0.1)
    assert float(noise.std()) == pytest.approx(1, abs=0.05)


def test_a_gradient_of_one_linear_layer_keeps_nothing():
    for similarity in ("spearman", "pearson"):
        found = MPRT(similarity=similarity, sign="signed")(attributed(ONE, grey(2, 48), Slope()))
        assert float(found.values.abs().max()) < 4 / 48
        assert found.curve.y.shape == (2, 1)


def test_a_perfectly_faithful_map_does_not_reach_zero_where_the_picture_multiplies():
    """|w x| and |w' x| of independent normal w, w' and x correlate by (2/π)(1 - 2/π)/(1 - 4/π²)."""
    wanted = (2 / math.pi) * (1 - 2 / math.pi) / (1 - 4 / math.pi**2)
    images = 0.5 + 0.1 * drawn(4, 1, 96, 96, seed=5)
    shown = grey(4, 96).showing(images.clamp(0, 1))

    class Centred:
        def __call__(self, model, batch):
            return (model.network.weights[batch.targets] * (batch.images - 0.5)).sum(1).detach()

    model = weighted(drawn(2, 1, 96, 96, seed=6))
    found = MPRT(similarity="pearson", draw="gaussian")(attributed(model, shown, Centred()))
    assert float(found.values.mean()) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("metric", [MPRT(), MPRT("bottom_up"), MPRT("independent"), MPRT(similarity="ssim")])
def test_a_method_that_ignores_the_model_scores_one(metric):
    model, shown = small_cnn(), colour_batch()
    found = metric(attributed(model, shown, Ignorant()))
    assert found.values.tolist() == pytest.approx([1, 1, 1])


def test_the_intact_model_is_no_part_of_the_mean():
    """A peer averages the similarity of the map with itself in."""
    found = MPRT()(attributed(small_cnn(), colour_batch(), Saliency()))
    torch.testing.assert_close(found.values, found.curve.y.mean(1))
    assert float(found.curve.y.max()) < 0.999


def test_smooth_mprt_of_one_noiseless_draw_is_mprt():
    attribution = attributed(small_cnn(), colour_batch(), InputXGradient())
    torch.testing.assert_close(
        SmoothMPRT(draws=1, noise=0.0)(attribution).values, MPRT("bottom_up")(attribution).values, atol=1e-4, rtol=0
    )


def test_the_entropy_of_the_same_values_elsewhere_is_the_same():
    found = EfficientMPRT()(attributed(ONE, grey(2, 48), Slope()))  # permuted weights: permuted gradients
    assert float(found.values.abs().max()) < 0.02
    values = drawn(1, 1000)
    assert float(histogram_entropy(values, 100, 5.0)) > 3
    assert float(histogram_entropy(torch.ones(1, 1000), 100, 5.0)) == 0


def test_a_model_that_forgets_disorders_a_map_that_had_order():
    weights = torch.zeros(2, 1, SIDE, SIDE)
    weights[0, 0, :2] = 1.0
    weights[1] = drawn(1, SIDE, SIDE)
    attribution = attributed(weighted(weights), grey(), Slope())
    assert bool((EfficientMPRT()(attribution).values > 0).all())


def test_constant_maps_have_no_score():
    model, shown = small_cnn(), colour_batch()
    for metric in (MPRT(), RandomLogit(), RandomLogit(similarity="spearman")):
        found = metric(Attribution(model, shown, Saliency(), torch.ones(3, 32, 32)))
        assert bool(found.values.isnan().all())
        assert all("same everywhere" in note for note in found.notes)
    assert bool(EfficientMPRT()(Attribution(model, shown, Saliency(), torch.ones(3, 32, 32))).values.isnan().all())


def test_random_logit_of_equal_orthogonal_and_opposite_classes():
    one = drawn(1, SIDE, SIDE)
    shown = grey()
    cases = {"equal": (one, 1.0), "opposite": (-one, -1.0)}
    for name, (second, wanted) in cases.items():
        model = weighted(torch.stack([one, second]), name)
        for similarity in ("pearson", "spearman"):
            found = RandomLogit(similarity=similarity)(attributed(model, shown, Slope())).values
            assert found.tolist() == pytest.approx([wanted] * 3), (name, similarity)
        magnitudes = RandomLogit(similarity="pearson", sign="absolute")(attributed(model, shown, Slope())).values
        assert magnitudes.tolist() == pytest.approx([1.0] * 3)
    other = drawn(1, SIDE, SIDE, seed=9)
    centred, other = one - one.mean(), other - other.mean()
    other = other - (other * centred).sum() / centred.square().sum() * centred
    model = weighted(torch.stack([one, other]), "orthogonal")
    found = RandomLogit(similarity="pearson")(attributed(model, shown, Slope())).values
    assert found.tolist() == pytest.approx([0.0] * 3, abs=1e-6)


def test_the_other_class_is_one_of_the_models_and_never_the_same():
    metric = RandomLogit(draws=50)
    attribution = attributed(small_cnn(), colour_batch(), Saliency())
    drawn_classes = torch.stack(metric._others(attribution))
    assert not bool((drawn_classes == attribution.batch.targets).any())
    assert set(drawn_classes.flatten().tolist()) == set(range(10))


@pytest.mark.parametrize("metric", [MPRT(stages=2), EfficientMPRT(), RandomLogit(), RandomLogit("second")])
def test_scores_do_not_depend_on_batch_mates(metric):
    attribution = attributed(small_cnn(), colour_batch(), Saliency())
    torch.testing.assert_close(alone(metric, attribution), metric(attribution).values, atol=1e-4, rtol=0)


def test_grad_of_the_contribution_is_less_alike_the_more_is_forgotten():
    found = MPRT("top_down", stages=4)(attributed(small_cnn(), colour_batch(8), InputXGradient()))
    assert float(found.curve.y[:, -1].mean()) < 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: MPRT(stages=0),
        lambda: MPRT("sideways"),
        lambda: SmoothMPRT(draws=0),
        lambda: EfficientMPRT(bins=1),
        lambda: RandomLogit(draws=0),
        lambda: RandomLogit(similarity="cosine"),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(BadInput):
        make()
