"""Average drop, increase and gain, ADCC and ARCC: masks whose effect is known."""

from __future__ import annotations

import pytest
import torch
from closed_forms import SIDE, Contribution, Ignorant, alone, attributed, drawn, grey, weighted
from networks import batch as colour_batch
from networks import small_cnn

from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.saliency import Saliency
from heatproof.metrics.adcc import ADCC, Coherency, MaskArea, harmonic_mean
from heatproof.metrics.arcc import ARCC
from heatproof.metrics.average_drop import AverageDrop, AverageGain, AverageIncrease
from heatproof.metrics.road import Road
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.types import Attribution

BLACK = Constant()
MODEL = weighted(0.1 * drawn(2, 1, SIDE, SIDE))
CAM_SCORES = (AverageDrop(BLACK), AverageIncrease(BLACK), AverageGain(BLACK))


def _with(maps, model=MODEL):
    return Attribution(model, grey(len(maps)), Ignorant(), maps)


def _name(metric):
    return type(metric).__name__


@pytest.mark.parametrize("metric", CAM_SCORES, ids=_name)
def test_a_map_that_lets_everything_through_changes_nothing(metric):
    found = metric(_with(torch.ones(3, SIDE, SIDE)))
    assert found.values.tolist() == [0, 0, 0]
    assert found.details["mask_area"].tolist() == [1, 1, 1]  # a peer's min-max makes an empty mask of it


def test_drop_and_gain_are_the_probabilities_own():
    from heatproof import engine

    maps = torch.rand(3, SIDE, SIDE)
    shown = grey()
    before = engine.forward(MODEL, shown.images).softmax(1)[:, 0].double()
    masks = maps / maps.flatten(1).amax(1).view(-1, 1, 1)
    after = engine.forward(MODEL, shown.images * masks[:, None]).softmax(1)[:, 0].double()
    torch.testing.assert_close(AverageDrop(BLACK)(_with(maps)).values, (before - after).clamp_min(0) / before)
    torch.testing.assert_close(AverageGain(BLACK)(_with(maps)).values, (after - before).clamp_min(0) / (1 - before))
    assert AverageIncrease(BLACK)(_with(maps)).values.tolist() == (after > before).double().tolist()


def test_negative_evidence_is_no_evidence():
    """A peer hides the sign: what speaks against the class would be shown."""
    maps = -torch.rand(3, SIDE, SIDE)
    maps[:, 0, 0] = 1.0
    found = AverageDrop(BLACK)(_with(maps))
    assert found.details["mask_area"].tolist() == pytest.approx([1 / SIDE**2] * 3)


@pytest.mark.parametrize(
    "metric",
    [*CAM_SCORES, ADCC(BLACK), Coherency(BLACK), MaskArea(), ARCC(Road(shares=(0.5,)), BLACK)],
    ids=_name,
)
def test_scores_do_not_depend_on_batch_mates_nor_on_the_unit(metric):
    model, shown = small_cnn(), colour_batch()
    attribution = Attribution(model, shown, Saliency(), Saliency()(model, shown))
    found = metric(attribution).values
    torch.testing.assert_close(alone(metric, attribution), found, atol=1e-5, rtol=0)
    scales = torch.tensor([1e-3, 1.0, 1e3]).view(3, 1, 1)
    other = Attribution(model, shown, Saliency(), scales * attribution.maps)
    torch.testing.assert_close(metric(other).values, found, atol=1e-4, rtol=0)


def test_the_harmonic_mean_of_parts():
    one, half, none = torch.ones(1), torch.full((1,), 0.5), torch.zeros(1)
    assert float(harmonic_mean(one, one, one)) == 1
    assert float(harmonic_mean(one, half, half)) == pytest.approx(3 / 5)
    assert float(harmonic_mean(one, none, one)) == 0


def test_adcc_is_made_of_its_parts():
    attribution = attributed(small_cnn(), colour_batch(), InputXGradient())
    found = ADCC()(attribution)
    coherent, area, drop = Coherency()(attribution), MaskArea()(attribution), AverageDrop()(attribution)
    torch.testing.assert_close(found.details["coherency"], coherent.values)
    wanted = harmonic_mean(coherent.values, 1 - area.values, 1 - drop.values)
    torch.testing.assert_close(found.values, wanted)


def test_the_whole_picture_is_no_explanation():
    maps = torch.ones(3, SIDE, SIDE)
    maps[:, 0, 0] = 0.999
    for metric in (ADCC(BLACK), ARCC(Road(shares=(0.5,)), BLACK)):
        assert float(metric(_with(maps)).values.max()) < 0.01


def test_a_method_that_ignores_the_picture_is_perfectly_coherent():
    found = Coherency(BLACK)(attributed(MODEL, grey(), Ignorant()))
    assert found.values.tolist() == pytest.approx([1, 1, 1])


def test_arcc_has_no_gain_below_the_inverse():
    class Opposite:
        def __call__(self, model, batch):
            return 1 - Contribution()(model, batch)

    found = ARCC(Road(Occlusion(BLACK, Pixels(), 1), (0.5,)), BLACK)(attributed(MODEL, grey(), Opposite()))
    assert found.details["road"].max() < 0
    assert found.values.tolist() == [0, 0, 0]


def test_a_class_without_probability_has_none_to_lose():
    sure = weighted(1e4 * torch.stack([-torch.ones(1, SIDE, SIDE), torch.ones(1, SIDE, SIDE)]))
    found = AverageDrop(BLACK)(_with(torch.rand(3, SIDE, SIDE), sure))
    assert bool(found.values.isnan().all())
    assert all("probability" in note for note in found.notes)
