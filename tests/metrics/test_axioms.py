"""Completeness and dummy pixels, on linear models where both are known."""

from __future__ import annotations

import pytest
import torch
from closed_forms import SIDE, Contribution, Ignorant, Slope, alone, attributed, drawn, grey, weighted
from networks import batch as colour_batch
from networks import small_cnn

from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.blur_ig import BlurIG
from heatproof.methods.controls import Random
from heatproof.methods.deep_lift import DeepLift
from heatproof.methods.expected_gradients import ExpectedGradients
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.kernel_shap import KernelShap
from heatproof.methods.lrp import LRP
from heatproof.methods.pred_diff import PredDiff
from heatproof.methods.saliency import Saliency
from heatproof.methods.shapley import Shapley
from heatproof.metrics.completeness_error import Complete, CompletenessError
from heatproof.metrics.sensitivity_axiom import SensitivityAxiom, squares_by_lot
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.types import Attribution, Batch

MODEL = weighted(drawn(2, 1, SIDE, SIDE))
BLACK = CompletenessError("black")


def test_weight_times_picture_is_complete_and_twice_as_much_is_off_by_the_whole():
    shown = grey()
    torch.testing.assert_close(
        BLACK(attributed(MODEL, shown, Contribution())).values, torch.zeros(3).double(), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(
        BLACK(attributed(MODEL, shown, Contribution(2.0))).values, torch.ones(3).double(), atol=1e-5, rtol=0
    )
    zero = BLACK(Attribution(MODEL, shown, Ignorant(), torch.zeros(3, SIDE, SIDE)))
    assert zero.values.tolist() == [1, 1, 1]
    assert zero.details["ratio"].tolist() == [0, 0, 0]


def test_the_gradient_is_off_by_what_its_sum_says():
    shown = grey()
    weights = MODEL.network.weights[0, 0].detach().double()
    rise = (weights * shown.images[:, 0]).sum((1, 2))
    wanted = (weights.sum() - rise).abs() / rise.abs()
    torch.testing.assert_close(BLACK(attributed(MODEL, shown, Slope())).values, wanted, rtol=1e-4, atol=0)


def test_integrated_gradients_are_complete_with_every_baseline():
    model, shown = small_cnn(), colour_batch()
    for baseline in ("black", "mean", "blur", "uniform"):
        method = IntegratedGradients(steps=300, baseline=baseline, draws=2)
        found = CompletenessError()(Attribution(model, shown, method, method(model, shown)))
        assert float(found.values.max()) < 0.02, baseline


@pytest.mark.parametrize("readout", ["logit", "probability", "log_odds"])
def test_shapley_values_add_up_segment_by_segment(readout):
    """Every pixel has the worth of its segment: the sum over pixels counts it as often as the segment has pixels."""
    model, shown, occlusion = small_cnn(), colour_batch(), Occlusion(Constant(), Grid(3))
    for method in (
        Shapley(occlusion, readout, permutations=2, exact_up_to=4),
        KernelShap(occlusion, readout, samples=40),
    ):
        found = CompletenessError()(Attribution(model, shown, method, method(model, shown)))
        assert float(found.values.max()) < 1e-4
    with pytest.raises(NotApplicable, match="does not declare"):
        CompletenessError()(attributed(model, shown, PredDiff(occlusion)))


def test_blur_ig_is_complete_up_to_its_steps():
    model, shown = small_cnn(), colour_batch()
    errors = []
    for steps in (40, 400):
        method = BlurIG(max_sigma=4.0, steps=steps, reference_side=None)
        errors.append(CompletenessError()(Attribution(model, shown, method, method(model, shown))).values.max())
    assert float(errors[1]) < 0.02 < float(errors[0])
    with pytest.raises(NotApplicable, match="pooling"):
        BlurIG(pooling="abs_sum").total(model, shown)


def test_a_linear_model_leaves_no_error_at_all():
    method = IntegratedGradients(steps=3)
    found = CompletenessError()(attributed(MODEL, grey(), method))
    assert float(found.values.max()) < 1e-5


def test_methods_are_held_to_their_own_readout_and_baseline():
    model, shown = small_cnn(), colour_batch()
    method = IntegratedGradients(steps=200, baseline="mid_grey", readout="probability")
    attribution = Attribution(model, shown, method, method(model, shown))
    assert float(CompletenessError()(attribution).values.max()) < 0.02
    assert float(BLACK(attribution).values.min()) > 0.02


def test_deep_lift_and_expected_gradients_promise_too():
    model, shown = small_cnn(), colour_batch()
    assert isinstance(DeepLift(), Complete)
    method = DeepLift()
    assert float(CompletenessError()(Attribution(model, shown, method, method(model, shown))).values.max()) < 1e-2
    expected = ExpectedGradients(draws=400)
    rough = CompletenessError()(Attribution(model, shown, expected, expected(model, shown)))
    assert float(rough.values.median()) < 0.5


@pytest.mark.parametrize("method", [Saliency(), LRP(), Random()])
def test_what_promises_nothing_is_not_checked(method):
    with pytest.raises(NotApplicable, match="name a baseline"):
        CompletenessError()(Attribution(MODEL, grey(), method, torch.rand(3, SIDE, SIDE)))


def test_pooled_magnitudes_promise_nothing():
    method = IntegratedGradients(steps=2, pooling="abs_sum")
    with pytest.raises(NotApplicable, match="pooling='sum'"):
        CompletenessError()(attributed(MODEL, grey(), method))


def test_one_picture_of_another_scale_does_not_move_the_others():
    """A peer divides maps by the maximum of the data set before it adds them up."""
    attribution = attributed(MODEL, grey(), Contribution())
    torch.testing.assert_close(alone(BLACK, attribution), BLACK(attribution).values, atol=1e-6, rtol=0)


def test_an_answer_that_does_not_rise_has_no_unit():
    nothing = weighted(torch.zeros(2, 1, SIDE, SIDE))
    found = BLACK(attributed(nothing, grey(), Ignorant()))
    assert bool(found.values.isnan().all())


def test_a_gradient_puts_nothing_on_pixels_the_model_cannot_see():
    metric = SensitivityAxiom()
    for method in (Saliency(), InputXGradient(), IntegratedGradients(steps=4)):
        model, shown = small_cnn(), colour_batch()
        found = metric(Attribution(model, shown, method, method(model, shown)))
        assert found.values.tolist() == [0, 0, 0]


def test_noise_puts_its_share_there():
    shown = grey(40, 48)
    metric = SensitivityAxiom()
    found = metric(attributed(weighted(drawn(2, 1, 48, 48)), shown, Random()))
    assert float(found.values.mean()) == pytest.approx(metric.chance, abs=0.01)
    assert found.details["area"].tolist() == [metric.chance] * 40


def test_a_map_of_the_squares_alone_scores_one():
    metric, shown = SensitivityAxiom(), grey()

    class Wrong:
        def __call__(self, model, batch: Batch):
            seen = getattr(model.network, "keep", torch.zeros(SIDE, SIDE, dtype=torch.bool))
            return (~seen).float().expand(len(batch), -1, -1)

    assert metric(attributed(MODEL, shown, Wrong())).values.tolist() == [1, 1, 1]


def test_the_blindfolded_model_answers_the_same_whatever_is_behind_the_squares():
    metric, shown = SensitivityAxiom(), grey()
    model, keep = metric.blindfolded(attributed(MODEL, shown, Slope()))
    other = torch.where(keep, shown.images, torch.rand_like(shown.images))
    assert torch.equal(model(shown.images), model(other))
    assert not torch.equal(MODEL(shown.images), MODEL(other))


def test_activation_maps_bleed_over_the_squares():
    from heatproof.methods.cam import GradCam
    from heatproof.testing import stage

    model, shown = stage()
    method = GradCam()
    found = SensitivityAxiom()(Attribution(model, shown, method, method(model, shown)))
    assert bool((found.values > 0.02).all())


def test_squares_are_neither_none_nor_all():
    for side, share in ((2, 0.01), (4, 0.25), (3, 0.99)):
        keep = squares_by_lot(12, 20, side, share, 0)
        assert 0 < int(keep.sum()) < keep.numel()
    assert float(squares_by_lot(16, 16, 4, 0.25, 3).double().mean()) == 0.75


@pytest.mark.parametrize(
    "make",
    [lambda: SensitivityAxiom(side=1), lambda: SensitivityAxiom(hidden=1.0), lambda: CompletenessError(floor=-1.0)],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(BadInput):
        make()
