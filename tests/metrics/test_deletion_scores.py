"""Faithfulness metrics that hide segments, on linear models where the exact map is known."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from closed_forms import SIDE, Contribution, Ignorant, alone, attributed, drawn, grey, weighted
from networks import batch as colour_batch
from networks import small_cnn

from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.controls import Random
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.metrics._support.fine_tuning import FineTuning
from heatproof.metrics._support.segment_effects import single_drops
from heatproof.metrics.f_fidelity import FFidelity, FFidelityMinus
from heatproof.metrics.faithfulness_correlation import FaithfulnessCorrelation
from heatproof.metrics.monotonicity import Monotonicity, MonotonicityCorrelation, ascending, revealed
from heatproof.metrics.saco import SaCo, salience_agreement
from heatproof.metrics.single_deletion import IDSDS, FaithfulnessEstimate, SingleDeletion
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.uniform import Uniform
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.testing import stage
from heatproof.types import Attribution

CELLS = Occlusion(Constant(), Grid(4), 1)
PIXELS = Occlusion(Constant(), Pixels(), 1)
MODEL = weighted(drawn(2, 1, SIDE, SIDE))
NOTHING = weighted(torch.zeros(2, 1, SIDE, SIDE), "nothing")
SIGNED = (
    SingleDeletion(CELLS),
    FaithfulnessEstimate(CELLS),
    FaithfulnessCorrelation(PIXELS, size=0.2),
    SaCo(PIXELS, "logit"),
)


def _name(metric):
    return type(metric).__name__


@pytest.mark.parametrize("metric", SIGNED, ids=_name)
def test_the_exact_map_scores_one_and_its_opposite_minus_one(metric):
    good, bad = (metric(attributed(MODEL, grey(), Contribution(factor))).values for factor in (1.0, -1.0))
    assert good.tolist() == pytest.approx([1, 1, 1], abs=1e-4)
    assert bad.tolist() == pytest.approx([-1, -1, -1], abs=1e-4)


@pytest.mark.parametrize("metric", SIGNED, ids=_name)
def test_noise_scores_about_zero(metric):
    found = metric(attributed(MODEL, grey(60), Random())).values
    assert abs(float(found.mean())) < 0.15


@pytest.mark.parametrize("metric", [*SIGNED, Monotonicity(CELLS)], ids=_name)
def test_a_model_that_does_not_react_agrees_with_no_map(metric):
    """SaCo's published ties would give it 1."""
    found = metric(attributed(NOTHING, grey(), Ignorant()))
    assert bool(found.values.isnan().all())
    assert all("does not change" in note for note in found.notes)


@pytest.mark.parametrize("metric", SIGNED, ids=_name)
def test_a_constant_map_has_no_score(metric):
    found = metric(Attribution(MODEL, grey(), Ignorant(), torch.ones(3, SIDE, SIDE)))
    assert bool(found.values.isnan().all())


@pytest.mark.parametrize(
    "metric",
    [*SIGNED, Monotonicity(CELLS), MonotonicityCorrelation(), FFidelity(PIXELS, surrogate=None, draws=3)],
    ids=_name,
)
def test_scores_do_not_depend_on_batch_mates(metric):
    attribution = attributed(MODEL, grey(), Contribution())
    torch.testing.assert_close(alone(metric, attribution), metric(attribution).values, atol=1e-5, rtol=0)


def test_single_drops_of_a_linear_model_are_its_contributions():
    shown = grey()
    game = game_of(MODEL, shown, PIXELS, "logit")
    wanted = Contribution()(MODEL, shown).flatten(1).double()
    torch.testing.assert_close(single_drops(game), wanted, atol=1e-4, rtol=0)


def test_deletions_are_evaluated_once_for_all_methods():
    shown = grey()
    metric = SingleDeletion(CELLS)
    metric(attributed(MODEL, shown, Contribution()))
    game = game_of(MODEL, shown, CELLS, "logit")
    assert game.evaluated == 3 * metric.cost().shared
    metric(attributed(MODEL, shown, Random()))
    FaithfulnessEstimate(CELLS)(attributed(MODEL, shown, Random()))
    assert game.evaluated == 3 * metric.cost().shared


def test_salience_agreement_by_hand():
    salience, effect = torch.tensor([[3.0, 2.0, 0.0]]), torch.tensor([[1.0, 2.0, 0.0]])
    # Pairs weigh 1 (against), 3 (for) and 2 (for).
    assert float(salience_agreement(salience, effect)) == pytest.approx((-1 + 3 + 2) / 6)
    assert float(salience_agreement(salience, torch.tensor([[2.0, 2.0, 0.0]]))) == pytest.approx(5 / 6)


def test_what_is_revealed_starts_with_nothing_and_the_weakest():
    values = torch.tensor([0.5, -1.0, 0.2, 0.9])
    assert ascending(values, values > 0).tolist() == [1, -1, 0, 2]
    assert revealed(ascending(values, values > 0)).int().tolist() == [
        [0, 0, 0, 0],
        [0, 0, 1, 0],
        [1, 0, 1, 0],
        [1, 0, 1, 1],
    ]
    assert revealed(torch.tensor([-1, -1])).tolist() == [[False, False]]


def test_monotonicity_is_one_for_the_exact_map_none_for_its_opposite_and_a_half_by_chance():
    """A peer shows the same picture at every step and says True of every map."""
    metric = Monotonicity(CELLS)
    good, bad = (metric(attributed(MODEL, grey(), Contribution(factor))) for factor in (1.0, -1.0))
    assert good.values.tolist() == [1, 1, 1]
    assert good.details["monotone"].tolist() == [1, 1, 1]
    assert bad.values.tolist() == [0, 0, 0]
    chance = metric(attributed(MODEL, grey(60), Random())).values
    assert float(chance.mean()) == pytest.approx(Monotonicity.chance, abs=0.06)


def test_monotonicity_correlation_finds_what_moves_the_answer():
    """Of a linear model, |w| √(σ² + (x - μ)²) moves it by: with many draws that order is found."""
    model, shown = weighted(drawn(2, 1, 4, 4)), grey(3, 4)
    metric = MonotonicityCorrelation(Occlusion(Uniform(), Grid(4), 200), "logit")
    weights = model.network.weights[0, 0].detach()
    truth = weights.abs() * (1 / 12 + (shown.images[:, 0] - 0.5).square()).sqrt()
    assert float(metric(Attribution(model, shown, Ignorant(), truth)).values.min()) > 0.97
    assert float(metric(Attribution(model, shown, Ignorant(), -truth)).values.min()) > 0.97  # magnitudes count


def test_infidelity_to_the_hottest_is_their_contributions():
    """Of a linear model, hiding a random half of the top s loses half their sum, in expectation."""
    model = weighted(torch.stack([drawn(1, 8, 8).abs(), -drawn(1, 8, 8).abs()]))
    shown = grey(2, 8)
    contribution = Contribution()(model, shown)
    metric = FFidelity(PIXELS, sizes=(0.25,), part=0.5, most=0.9, draws=400, surrogate=None)
    attribution = attributed(model, shown, Contribution())
    game = metric.game(attribution)
    logit = dataclasses.replace(game, readout="logit")
    ranks = (-contribution.flatten(1)).argsort(1).argsort(1)
    keep = metric.visible(game, ranks, 0.25)
    lost = (logit.value(torch.ones(2, 1, 64, dtype=torch.bool)) - logit.value(keep)).mean(1)
    wanted = contribution.flatten(1).topk(16).values.sum(1).double() / 2
    torch.testing.assert_close(lost, wanted, rtol=0.03, atol=0)
    assert bool((~keep).sum(2).eq(8).all())
    assert not bool((~keep & (ranks[:, None] >= 16)).any())
    outside = FFidelityMinus(PIXELS, sizes=(0.25,), most=0.9, draws=5, surrogate=None).visible(game, ranks, 0.25)
    assert not bool((~outside & (ranks[:, None] < 16)).any())


def test_no_more_is_hidden_than_the_copy_has_seen():
    metric = FFidelity(PIXELS, most=0.1, draws=2, surrogate=None)
    attribution = attributed(MODEL, grey(), Contribution())
    game = metric.game(attribution)
    for size in metric.sizes:
        hidden = (~metric.visible(game, torch.arange(SIDE**2).expand(3, -1), size)).sum(2)
        assert int(hidden.max()) <= 0.1 * SIDE**2


def test_the_copy_learns_to_answer_masked_pictures_and_the_model_is_left_alone():
    model, _ = stage()
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    occlusion = Occlusion(Constant(), Grid(4), 1)
    tuned = FineTuning(count=96, steps=25)(model, occlusion, 0.5, (64, 64))
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())
    assert FineTuning(count=96, steps=25)(model, occlusion, 0.5, (64, 64)) is tuned
    from heatproof import engine
    from heatproof.data.two_factor.dataset import TwoFactor

    test = TwoFactor(count=64).batch(range(64))
    keep = torch.rand(64, 1, 4, 4, generator=torch.Generator().manual_seed(0)) > 0.4
    keep = keep.repeat_interleave(16, 2).repeat_interleave(16, 3)[:, 0]
    masked = occlusion.imputer(test.images, keep)
    wanted = engine.forward(model, test.images).softmax(1)

    def surprise(network):
        return float(-(wanted * engine.forward(network, masked).log_softmax(1)).sum(1).mean())

    assert surprise(tuned) < 0.9 * surprise(model)


def test_a_copy_needs_pictures_like_those_the_model_knows():
    with pytest.raises(NotApplicable, match="name them"):
        IDSDS()(attributed(small_cnn(), colour_batch(), InputXGradient()))
    tuned = IDSDS(surrogate=FineTuning("two_factor(count=16)", count=16, steps=2, rows=4))
    found = tuned(attributed(small_cnn(), colour_batch(), InputXGradient()))
    assert bool(found.values.isfinite().all())
    assert set(found.details["same_class"].tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(
    "make",
    [
        lambda: SaCo(groups=1),
        lambda: FaithfulnessCorrelation(size=1.0),
        lambda: FaithfulnessCorrelation(sets=2),
        lambda: MonotonicityCorrelation(CELLS),
        lambda: FFidelity(sizes=()),
        lambda: FFidelity(part=0.0),
        lambda: FFidelity(draws=0),
        lambda: FineTuning(steps=0),
        lambda: SingleDeletion(correlation="kendall"),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(BadInput):
        make()
