"""FUD: orders, guidance and controls behave, noise is shared, and passes are as few as promised."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from networks import batch, linear, small_cnn
from tiny_prior import Counting, tiny

from heatproof import engine
from heatproof.errors import BadInput
from heatproof.metrics.fud import CONTROLS, Fud
from heatproof.occlusion.diffusion.denoiser import check
from heatproof.occlusion.diffusion.guidance import Guidance
from heatproof.occlusion.diffusion.reconstruct import reconstruct
from heatproof.occlusion.kept_share import kept_most
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.spec import recipe
from heatproof.types import Attribution, keyed_seed, read


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
    message = _few()(attribution)
    whole = read(engine.forward(attribution.model, attribution.batch.images), attribution.batch.targets, "probability")
    torch.testing.assert_close(message.curve.y[:, 0].float(), whole)
    x, y = message.curve
    assert x.tolist() == pytest.approx([0, 0.1, 0.5, 0.9])
    wanted = (0.1 * (y[:, 0] + y[:, 1]) + 0.4 * (y[:, 1] + y[:, 2]) + 0.4 * (y[:, 2] + y[:, 3])) / 2 / 0.9
    torch.testing.assert_close(message.values, wanted)


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


def test_controls_are_reported_beside_the_score_and_gain_is_the_area_less_that_of_chance():
    attribution = _attribution()
    message = _few(controls=CONTROLS)(attribution)
    assert list(message.details) == ["clean", *CONTROLS]
    assert torch.equal(message.details["clean"], message.curve.y[:, 0])
    beside = _few(controls=("random",)).beside(attribution)
    assert torch.equal(message.details["random"], beside["random"])
    torch.testing.assert_close(_few(score="gain")(attribution).values, message.values - beside["random"])


def test_a_relative_score_is_a_share_of_the_clean_confidence():
    attribution = _attribution()
    plain, relative = (_few(score=score, controls=("random",)) for score in ("area", "relative"))
    clean = plain(attribution).curve.y[:, 0]
    torch.testing.assert_close(relative(attribution).values, plain(attribution).values / clean)
    torch.testing.assert_close(relative(attribution).curve.y, plain(attribution).curve.y)
    chance = [metric.beside(attribution)["random"] for metric in (plain, relative)]
    torch.testing.assert_close(chance[1], chance[0] / clean)


def test_retention_counts_the_pictures_that_are_still_answered_so():
    attribution = _attribution()
    answers = engine.forward(attribution.model, attribution.batch.images).argmax(1)
    targets = torch.where(torch.tensor([True, False, True]), answers, (answers + 1) % 10)
    aimed = replace(attribution, batch=replace(attribution.batch, targets=targets))
    curve = _few(score="retention", levels=(0.5, 0.0))(aimed).curve.y
    assert curve[:, 0].tolist() == [1, 0, 1]
    shown = _few(levels=(0.5, 0.0)).samples(aimed).images
    still = engine.forward(attribution.model, shown.flatten(0, 1)).argmax(1).view(3, 2) == targets[:, None]
    torch.testing.assert_close(curve[:, 1:], still.double())


def test_an_inverted_map_scores_what_the_inverted_control_says():
    attribution = _attribution()
    beside = _few(controls=("inverted",)).beside(attribution)["inverted"]
    turned = Attribution(attribution.model, attribution.batch, None, -attribution.maps)
    torch.testing.assert_close(_few()(turned).values, beside)


def _pictures(attribution: Attribution, guidance: Guidance, begin: str) -> torch.Tensor:
    """What the first draw should show, half of each picture removed."""
    shown = attribution.batch
    keep = kept_most(attribution.maps, shown, Pixels(), (0.5,))[:, 0]
    seeds = [keyed_seed(shown.seed, identity, "fud", 0) for identity in shown.ids]
    against = (guidance, attribution.model, shown.targets)
    return reconstruct(tiny(), shown.images, keep, seeds, Fud().sampler, against, begin)


def test_each_control_reads_the_pictures_it_is_named_after():
    shown, strong = batch(), 4000.0  # an untrained model has gentle slopes
    aimed = replace(shown, targets=torch.tensor([4, 7, 1]))
    attribution = Attribution(linear(), aimed, None, _attribution().maps)
    metric = _few(levels=(0.5,), scale=strong, controls=CONTROLS)
    beside, message = metric.beside(attribution), {"itself": metric(attribution).values}
    wanted = {
        "itself": (Guidance(strong), "noise"),
        "no_guidance": (Guidance(0.0), "noise"),
        "guidance_only": (Guidance(strong), "original"),
        "prior_only": (Guidance(0.0), "original"),
    }
    found = {}
    for name, (guidance, begin) in wanted.items():
        pictures = torch.stack([aimed.images, _pictures(attribution, guidance, begin)])
        p, q = (read(attribution.model(one), aimed.targets, "probability").double().detach() for one in pictures)
        found[name] = (p + q) / 2  # two points of a curve
        torch.testing.assert_close({**beside, **message}[name], found[name], atol=1e-6, rtol=1e-5)
    assert len({round(float(areas.mean()), 4) for areas in found.values()}) == 4  # else they could be swapped


def test_draws_differ_in_their_noise_and_methods_do_not():
    attribution, metric = _attribution(), _few(levels=(0.0,))  # all removed: the map has no say
    first, second = (metric.drawn(attribution, attribution.maps, draw) for draw in (0, 1))
    assert not torch.equal(first, second)
    assert torch.equal(first, metric.drawn(attribution, -attribution.maps, 0))


def test_a_wide_window_asks_about_the_guess_and_skips_nothing():
    wide, late = Fud(window="wide"), Fud()
    assert (wide.guidance().at, wide.sampler.late_start) == ("guess", False)
    assert (late.guidance().at, late.sampler.late_start) == ("noisy", True)
    assert (Fud(window="wide", at="noisy").guidance().at, Fud(at="guess").guidance(0.0)) == (
        "noisy",
        Guidance(0.0, at="guess"),
    )
    assert Fud(known="noised").sampler.known == "noised"
    prior, attribution = Counting(), _attribution()
    check(prior, attribution.batch.images)
    prior.calls.clear()
    _few(prior=prior, window="wide", levels=(0.9,))(attribution)
    assert prior.rows == 3 * 20


def test_passes_are_as_many_as_steps_levels_and_draws_and_controls_cost_little():
    prior, attribution = Counting(), _attribution()
    check(prior, attribution.batch.images)
    prior.calls.clear()
    metric = _few(prior=prior, levels=(0.0,), draws=2)  # all removed: no late start
    metric(attribution)
    assert prior.rows == 3 * 2 * 20
    prior.calls.clear()
    metric.curve(attribution, attribution.maps, scale=0.0)
    metric.curve(attribution, attribution.maps, begin="original")
    assert prior.rows == 2 * 3 * 2  # one step after the switch, for each control, image and draw
    prior.calls.clear()
    metric(attribution)
    assert prior.rows == 0


def test_one_more_method_pays_only_for_itself():
    prior = Counting()
    metric = _few(prior=prior, controls=("random",))
    metric(_attribution())
    prior.calls.clear()
    metric(_attribution(seed=1))
    alone = Counting()
    check(alone, _attribution().batch.images)
    alone.calls.clear()
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
    [
        {"levels": ()},
        {"levels": (1.0,)},
        {"draws": 0},
        {"profile": "quick"},
        {"controls": ("chance",)},
        {"window": "early"},
        {"score": "gian"},
        {"mask": "hrad"},
        {"at": "start"},
    ],
)
def test_what_cannot_be_is_refused(fields):
    with pytest.raises(BadInput):
        Fud(**fields)
