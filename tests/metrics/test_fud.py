"""FUD: orders, guidance and controls behave, noise is shared, and passes are as few as promised."""

from __future__ import annotations

import pytest
import torch
from networks import batch, small_cnn
from tiny_prior import Counting, tiny

from heatproof import recipe
from heatproof.errors import BadInput
from heatproof.metrics.fud import CONTROLS, Fud
from heatproof.models import engine
from heatproof.occlusion.diffusion.denoiser import check
from heatproof.occlusion.keeping import kept_most
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.types import Attribution, read


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "cache"))


def _attribution(seed: int = 0) -> Attribution:
    maps = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(seed))
    return Attribution(small_cnn(), batch(), None, maps)


def _few(**fields) -> Fud:
    return Fud(**{"prior": tiny(), "levels": (0.9, 0.5, 0.1), "draws": 1, "controls": (), **fields})


def test_the_curve_begins_at_the_whole_picture_and_the_area_is_its_mean_height():
    attribution = _attribution()
    told = _few()(attribution)
    whole = read(engine.forward(attribution.model, attribution.batch.images), attribution.batch.targets, "probability")
    torch.testing.assert_close(told.curve.y[:, 0].float(), whole)
    x, y = told.curve
    assert x.tolist() == pytest.approx([0, 0.1, 0.5, 0.9])
    wanted = (0.1 * (y[:, 0] + y[:, 1]) + 0.4 * (y[:, 1] + y[:, 2]) + 0.4 * (y[:, 2] + y[:, 3])) / 2 / 0.9
    torch.testing.assert_close(told.values, wanted)


def test_what_is_kept_is_what_the_map_calls_important():
    attribution = _attribution()
    keep = kept_most(attribution.maps, attribution.batch, Pixels(), (0.75, 0.25))
    assert keep.flatten(2).sum(2).tolist() == [[768, 256]] * 3
    for row in range(3):
        kept, gone = attribution.maps[row][keep[row, 1]], attribution.maps[row][~keep[row, 1]]
        assert float(kept.min()) >= float(gone.max())
    assert bool((keep[:, 0] | ~keep[:, 1]).all())  # nested


def test_kept_pixels_are_the_pictures_own_at_every_level():
    attribution = _attribution()
    samples = _few(segmenter=Grid(4)).samples(attribution)
    keep = kept_most(attribution.maps, attribution.batch, Grid(4), (0.9, 0.5, 0.1))
    originals = attribution.batch.images[:, None].expand_as(samples.images)
    shown = keep[:, :, None].expand_as(samples.images)
    assert torch.equal(samples.images[shown], originals[shown])


def test_controls_are_told_beside_the_score_and_gain_is_the_area_less_that_of_chance():
    attribution = _attribution()
    told = _few(controls=CONTROLS)(attribution)
    for note in told.notes:
        assert [part.rsplit(" ", 1)[0] for part in note.split(", ")] == [c.replace("_", " ") for c in CONTROLS]
    beside = _few(controls=("random",)).beside(attribution)
    torch.testing.assert_close(_few(score="gain")(attribution).values, told.values - beside["random"])


def test_an_inverted_map_scores_what_the_inverted_control_says():
    attribution = _attribution()
    beside = _few(controls=("inverted",)).beside(attribution)["inverted"]
    turned = Attribution(attribution.model, attribution.batch, None, -attribution.maps)
    torch.testing.assert_close(_few()(turned).values, beside)


def test_passes_are_as_many_as_steps_levels_and_draws_and_controls_cost_little():
    prior, attribution = Counting(), _attribution()
    check(prior, attribution.batch.images)
    prior.asked.clear()
    metric = _few(prior=prior, levels=(0.0,), draws=2)  # all removed: no late start
    metric(attribution)
    assert prior.rows == 3 * 2 * 20
    prior.asked.clear()
    metric.curve(attribution, attribution.maps, scale=0.0)
    metric.curve(attribution, attribution.maps, begin="original")
    assert prior.rows == 2 * 3 * 2  # one step after the switch, for each control, image and draw
    prior.asked.clear()
    metric(attribution)
    assert prior.rows == 0


def test_one_more_method_pays_only_for_itself():
    prior = Counting()
    metric = _few(prior=prior, controls=("random",))
    metric(_attribution())
    prior.asked.clear()
    metric(_attribution(seed=1))
    alone = Counting()
    check(alone, _attribution().batch.images)
    alone.asked.clear()
    _few(prior=alone)(_attribution(seed=2))
    assert prior.rows == alone.rows


def test_scores_do_not_depend_on_order_or_batch_mates():
    attribution, metric = _attribution(), _few()
    together = metric(attribution).values
    order = [2, 0, 1]
    turned = Attribution(attribution.model, attribution.batch.select(order), None, attribution.maps[order])
    torch.testing.assert_close(metric(turned).values, together[order])


def test_profiles_differ_and_the_paper_has_its_steps():
    assert (Fud(profile="paper").sampler.kind, Fud(profile="paper").sampler.steps) == ("ddpm", 250)
    assert (Fud().sampler.kind, Fud().sampler.steps) == ("ddim", 20)


def test_its_recipe_can_be_read_back():
    metric = Fud(profile="paper", levels=(0.5, 0.9), controls=("random",))
    assert recipe.build(recipe.plain(metric)) == metric
    assert metric.levels == (0.9, 0.5)


@pytest.mark.parametrize(
    "fields",
    [{"levels": ()}, {"levels": (1.0,)}, {"draws": 0}, {"profile": "quick"}, {"controls": ("chance",)}],
)
def test_what_cannot_be_is_refused(fields):
    with pytest.raises(BadInput):
        Fud(**fields)
