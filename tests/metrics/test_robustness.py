"""Robustness metrics on linear models, where each has a closed form."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from closed_forms import (
    SIDE,
    Contribution,
    Ignorant,
    Slope,
    alone,
    attributed,
    drawn,
    grey,
    weighted,
)
from networks import batch as colour_batch
from networks import small_cnn

from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.controls import Random
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.precomputed import Precomputed
from heatproof.methods.saliency import Saliency
from heatproof.metrics._support.neighbours import Neighbourhood
from heatproof.metrics.continuity import Continuity, shifted
from heatproof.metrics.local_lipschitz import LocalLipschitz
from heatproof.metrics.max_sensitivity import AvgSensitivity, MaxSensitivity, relative_changes
from heatproof.metrics.relative_stability import (
    RelativeInputStability,
    RelativeOutputStability,
    RelativeRepresentationStability,
    relative_distance,
)
from heatproof.types import Attribution, Reason

ALL = (
    MaxSensitivity(),
    AvgSensitivity(),
    LocalLipschitz(),
    Continuity(),
    RelativeInputStability(),
    RelativeOutputStability(),
    RelativeRepresentationStability(),
)
EVEN = weighted(torch.full((2, 1, SIDE, SIDE), 1.5) * torch.tensor([1.0, -1.0]).view(2, 1, 1, 1), "even")
ANY = weighted(drawn(2, 1, SIDE, SIDE), "any")


def _noise(metric, shown):
    near = Neighbourhood(metric.radius, metric.draws, metric.law)
    return torch.stack([near.batch(shown, draw).images - shown.images for draw in range(metric.draws)], 1).flatten(2)


@pytest.mark.parametrize("metric", ALL[:6], ids=lambda m: type(m).__name__)
def test_a_map_that_does_not_depend_on_the_picture_does_not_move(metric):
    found = metric(attributed(ANY, grey(), Slope()))
    if isinstance(metric, Continuity):  # the map stays where it was while the picture moves: only this one minds
        assert bool((found.values > 0).all())
        assert found.details["unshifted"].tolist() == [0, 0, 0]
    else:
        assert found.values.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("metric", "pick"), [(MaxSensitivity(), torch.amax), (AvgSensitivity(), torch.mean)])
def test_sensitivity_of_an_even_linear_model_is_the_noise_over_the_picture(metric, pick):
    shown = grey()
    wanted = pick(_noise(metric, shown).double().norm(dim=2) / shown.images.double().flatten(1).norm(dim=1)[:, None], 1)
    torch.testing.assert_close(metric(attributed(EVEN, shown, Contribution())).values, wanted, rtol=1e-5, atol=0)


def test_the_lipschitz_constant_of_an_even_linear_model_is_its_weight():
    found = LocalLipschitz(scale="none")(attributed(EVEN, grey(), Contribution())).values
    torch.testing.assert_close(found, torch.full((3,), 1.5).double(), rtol=1e-4, atol=0)
    largest = float(ANY.network.weights[0].detach().abs().max())
    below = LocalLipschitz(scale="none", draws=30)(attributed(ANY, grey(), Contribution())).values
    assert bool((below <= largest).all())
    assert bool((below > 0.2 * largest).all())


@pytest.mark.parametrize("metric", ALL[:6], ids=lambda m: type(m).__name__)
def test_the_unit_of_a_map_does_not_matter(metric):
    torch.testing.assert_close(
        metric(attributed(ANY, grey(), Contribution(7.0))).values,
        metric(attributed(ANY, grey(), Contribution())).values,
        rtol=1e-5,
        atol=0,
    )


def test_elementwise_input_stability_of_weight_times_picture_is_one():
    metric = RelativeInputStability(relative="elementwise", floor=1e-9, radius=0.05)
    found = metric(attributed(ANY, grey(low=0.3), Contribution())).values
    torch.testing.assert_close(found, torch.ones(3).double(), rtol=1e-3, atol=0)


def test_output_stability_of_an_even_model_is_relative_noise_over_the_change_of_the_logits():
    metric, shown = RelativeOutputStability(), grey()
    noise = _noise(metric, shown).double()
    above = noise.norm(dim=2) / shown.images.double().flatten(1).norm(dim=1)[:, None]
    below = 2**0.5 * 1.5 * noise.sum(2).abs()
    wanted = (above / below).amax(1)
    torch.testing.assert_close(metric(attributed(EVEN, shown, Contribution())).values, wanted, rtol=1e-2, atol=0)


def test_representation_stability_in_the_picture_itself_is_input_stability():
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = torch.nn.Identity()
            self.inner = ANY.network

        @property
        def weights(self):
            return self.inner.weights

        def forward(self, x):
            return self.inner(self.seen(x))

    model = dataclasses.replace(ANY, name="named", network=Named())
    attribution = attributed(model, grey(), Contribution())
    torch.testing.assert_close(
        RelativeRepresentationStability(layer="seen")(attribution).values,
        RelativeInputStability()(attribution).values,
        rtol=1e-5,
        atol=0,
    )


def test_zeros_of_a_rectified_map_do_not_decide_elementwise_stability():
    before = torch.tensor([[1.0, 0.0, 2.0]])
    after = torch.tensor([[1.1, 1e-6, 2.0]])
    assert float(relative_distance(before, after, "elementwise", 1e-3)) == pytest.approx(0.1, rel=1e-3)


def test_an_equivariant_map_is_perfect_when_followed_and_punished_when_not():
    class Blurred(torch.nn.Module):
        """A convolution with a periodic border, and its mean."""

        def forward(self, x):
            padded = torch.nn.functional.pad(x, (1, 1, 1, 1), mode="circular")
            kernel = x.new_tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]).view(1, 1, 3, 3)
            found = torch.nn.functional.conv2d(padded, kernel).relu().mean((1, 2, 3))
            return torch.stack([found, -found], 1)

    from heatproof.types import Model

    attribution_of = InputXGradient(input="pixels")
    model, shown = Model("blurred", Blurred()), grey()
    attribution = Attribution(model, shown, attribution_of, attribution_of(model, shown))
    followed = Continuity(border="wrap")(attribution)
    assert float(followed.values.max()) < 1e-6
    assert bool((Continuity(border="wrap", compare="unshifted")(attribution).values > 1e-2).all())


def test_shifts_mirror_at_the_border():
    row = torch.arange(5.0).view(1, 1, 1, 5)
    assert shifted(row, 2, "reflect").flatten().tolist() == [2, 1, 0, 1, 2]
    assert shifted(row, -2, "reflect").flatten().tolist() == [2, 3, 4, 3, 2]
    assert shifted(row, 1, "wrap").flatten().tolist() == [4, 0, 1, 2, 3]


@pytest.mark.parametrize("metric", ALL, ids=lambda m: type(m).__name__)
def test_scores_do_not_depend_on_batch_mates(metric):
    model, shown = small_cnn(), colour_batch()
    attribution = Attribution(model, shown, Saliency(), Saliency()(model, shown))
    if isinstance(metric, RelativeRepresentationStability):
        metric = dataclasses.replace(metric, layer="features.6")
    torch.testing.assert_close(alone(metric, attribution), metric(attribution).values, rtol=1e-3, atol=1e-6)


def test_redrawn_noise_scores_the_chance_level():
    noise = drawn(200, 2, 400)
    found = relative_changes(noise[:, 0].view(200, 20, 20), noise[:, 1:].view(200, 1, 20, 20)).mean()
    assert float(found) == pytest.approx(MaxSensitivity.chance, rel=0.01)


@pytest.mark.parametrize("metric", ALL, ids=lambda m: type(m).__name__)
def test_a_zero_map_has_no_score_and_says_so(metric):
    model, shown = small_cnn(), colour_batch()
    if isinstance(metric, RelativeRepresentationStability):
        metric = dataclasses.replace(metric, layer="features.6")
    found = metric(Attribution(model, shown, Ignorant(), torch.zeros(3, 32, 32)))
    assert bool(found.values.isnan().all())
    assert set(found.reasons) == {Reason.UNDEFINED}
    assert all("zero" in note for note in found.notes)


def test_a_changed_class_is_counted_and_can_be_left_out():
    weights = torch.zeros(2, 1, SIDE, SIDE)
    weights[0, 0, 0, 0], weights[1, 0, 0, 0] = 1.0, 1.0
    weights[1, 0, 0, 1] = 1e-6
    tied = weighted(weights, "tied")
    shown = grey()
    shown = dataclasses.replace(shown, images=torch.full_like(shown.images, 0.5))
    base = shown.images.clone()
    base[:, 0, 0, 1] = 0.0  # noise from 0 on can only give class 1 more
    shown = dataclasses.replace(shown, images=base)
    found = MaxSensitivity(neighbours="same_class")(attributed(tied, shown, Contribution()))
    assert found.details["changed_class"].max() > 0
    few = RelativeInputStability(draws=10, least=10)(attributed(tied, shown, Contribution()))
    assert bool(few.values.isnan().any())
    assert any("fewer than 10 neighbours" in note for note in few.notes)


def test_max_is_never_below_average_and_both_come_from_the_same_draws():
    attribution = attributed(ANY, grey(), Contribution())
    most, mean = MaxSensitivity()(attribution), AvgSensitivity()(attribution)
    assert bool((most.values > mean.values).all())
    assert torch.equal(most.details["average"], mean.values)


def test_a_random_method_is_run_with_the_same_seed():
    """The change is then the picture's and not a new draw's."""
    assert MaxSensitivity()(attributed(ANY, grey(), Random())).values.tolist() == [0, 0, 0]


def test_stored_maps_do_not_explain_other_pictures(tmp_path):
    shown = grey()
    stored = Precomputed(str(tmp_path))
    with pytest.raises(NotApplicable, match="reads precomputed maps"):
        MaxSensitivity()(Attribution(ANY, shown, stored, torch.rand(3, SIDE, SIDE)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: MaxSensitivity(radius=0),
        lambda: LocalLipschitz(draws=0),
        lambda: RelativeInputStability(draws=5),
        lambda: RelativeInputStability(floor=0.0),
        lambda: Continuity(shifts=0),
        lambda: Continuity(border="zero"),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(BadInput):
        make()


def test_sensitivity_is_captums():
    """Captum's own noise, taken from here: its definition is the same, the class fixed."""
    from captum.metrics import sensitivity_max

    model, shown = small_cnn(), colour_batch()
    shown = dataclasses.replace(shown, images=0.1 + 0.8 * shown.images)
    metric = MaxSensitivity(draws=4)
    method = InputXGradient()
    near = [Neighbourhood(metric.radius, metric.draws, metric.law).batch(shown, draw).images for draw in range(4)]
    calls = iter([torch.stack(near, 1).flatten(0, 1)])

    def explained(images):
        images = images[0] if isinstance(images, tuple) else images
        rows = shown if len(images) == 3 else shown.select([row for row in range(3) for _ in range(4)])
        return (method(model, rows.showing(images))[:, None],)

    theirs = sensitivity_max(
        explained, shown.images, perturb_func=lambda *_: next(calls), n_perturb_samples=4, max_examples_per_batch=12
    )
    ours = metric(Attribution(model, shown, method, method(model, shown))).values
    torch.testing.assert_close(ours, theirs.double(), rtol=1e-4, atol=0)
