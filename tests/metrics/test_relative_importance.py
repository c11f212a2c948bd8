"""Relative importance: what is exactly known of maps that are exactly known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from heatproof import engine, models
from heatproof.attribute import attribute
from heatproof.data._support.other_region import OTHER_REGION
from heatproof.data.bam.layout import NATIVE
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, BadShape, NotApplicable
from heatproof.methods.cam import GradCam
from heatproof.methods.controls import Constant, Edges, Random
from heatproof.methods.occlusion import SlidingOcclusion
from heatproof.methods.saliency import Saliency
from heatproof.metrics._support.insignificant_patch import PatchSolver
from heatproof.metrics._support.region_heat import Law, overlaps, positive_p99, ranked, region_heat, region_of
from heatproof.metrics._support.shared_answers import classes
from heatproof.metrics.input_independence import IIR, IIRChange, Start, patched
from heatproof.metrics.relative_importance import IDR, MCS
from heatproof.spec import recipe
from heatproof.types import Attribution, Batch, Maps, Model

COUNT = 6


@dataclass(frozen=True)
class Contrasting:
    """The region for models of objects, everything but the region for models of scenes."""

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        assert batch.regions is not None
        return (batch.regions if model.task == "object" else ~batch.regions).float()


def requested(spec: str, method: object, **fields: object) -> Attribution:
    model = models.load(spec)
    batch = TwoFactor(count=COUNT, **fields).batch(range(COUNT))  # type: ignore[arg-type]
    return attribute(model, batch.aimed(engine.forward(model, batch.images).argmax(1)), method)  # type: ignore[arg-type]


def test_oracle_and_its_complement_contrast_perfectly() -> None:
    assert MCS()(requested("embedded:object", Contrasting())).values.tolist() == [1.0] * COUNT


class EndsInSoftmax(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images).softmax(1)  # type: ignore[no-any-return]


def test_a_contrast_model_that_ends_in_softmax_is_read_as_such() -> None:
    """A second softmax over its probabilities would make another map."""
    scene = models.load("embedded:scene")
    softmax = replace(scene, name="softmax", network=EndsInSoftmax(scene.network))
    attribution = requested("embedded:object", SlidingOcclusion(positions=7, readout="probability"))
    with pytest.warns(UserWarning, match="answers with probabilities"):
        read = MCS(softmax)(attribution).values
    assert torch.allclose(read, MCS(scene)(attribution).values, atol=1e-4)
    twice = MCS(replace(softmax, network=EndsInSoftmax(scene.network), output="logits"))(attribution).values
    assert not torch.allclose(read, twice, atol=1e-3)


def test_model_contrast_is_antisymmetric() -> None:
    one = MCS("embedded:scene")(requested("embedded:object", Saliency())).values
    other = MCS("embedded:object")(requested("embedded:scene", Saliency())).values
    assert torch.equal(one, -other)


@pytest.mark.parametrize("rule", ["paper", "rank", "mass"])
def test_edges_do_not_tell_models_apart(rule: str) -> None:
    assert MCS(rule=rule)(requested("embedded:object", Edges())).values.tolist() == [0.0] * COUNT  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [Constant(), Random()])
def test_a_map_equal_on_both_pictures_ties(method: object) -> None:
    scored = IDR()(requested("embedded:scene", method))
    assert scored.values.tolist() == [0.5] * COUNT
    assert scored.notes == ("tie",) * COUNT
    assert scored.details["tie"].tolist() == [1.0] * COUNT


def test_a_constant_map_is_perfectly_independent_and_marked_as_flat_and_blind() -> None:
    attribution = requested("embedded:scene_only", Constant(), scale=(0.35, 0.45))
    scored = IIR()(attribution)
    judged = ~scored.values.isnan()
    assert bool(judged.any())
    assert scored.values[judged].tolist() == [1.0] * int(judged.sum())
    assert {note for note, ok in zip(scored.notes, judged.tolist(), strict=True) if ok} == {"the map is flat"}
    assert Constant.control
    assert IIRChange()(attribution).values[judged].tolist() == [0.0] * int(judged.sum())


def test_misclassified_pictures_are_left_out_with_the_reason() -> None:
    attribution = requested("embedded:object", Contrasting())
    wrong = {**attribution.batch.labels, "scene": (attribution.batch.labels["scene"] + 1) % 10}
    scored = MCS()(replace(attribution, batch=replace(attribution.batch, labels=wrong)))
    assert bool(scored.values.isnan().all())
    assert set(scored.notes) == {"misclassified by embedded:scene"}


def test_scores_do_not_depend_on_batch_mates() -> None:
    attribution = requested("embedded:object", GradCam())
    whole = MCS(region="moved")(attribution).values
    for row in range(COUNT):
        alone = replace(attribution, batch=attribution.batch.select([row]), maps=attribution.maps[[row]])
        assert float(MCS(region="moved")(alone).values[0]) == pytest.approx(float(whole[row]), abs=1e-6)


def test_without_regions_or_twins_the_question_does_not_arise() -> None:
    attribution = requested("embedded:scene", Constant())
    with pytest.raises(NotApplicable, match="regions"):
        IDR()(replace(attribution, batch=replace(attribution.batch, regions=None)))
    with pytest.raises(NotApplicable, match="twins"):
        IDR()(replace(attribution, batch=replace(attribution.batch, twins=None)))
    with pytest.raises(NotApplicable, match="task 'scene'"):
        IDR()(replace(attribution, batch=replace(attribution.batch, labels={})))


@given(st.integers(0, 2**31), st.integers(3, 20), st.integers(3, 20))
def test_the_papers_heat_is_its_numpy_formula(seed: int, high: int, wide: int) -> None:
    maps = np.random.default_rng(seed).normal(size=(2, high, wide))
    heat = positive_p99(torch.from_numpy(maps).float())
    for own, given_map in zip(heat.numpy(), maps.astype(np.float32).astype(np.float64), strict=True):
        positive = np.clip(given_map, 0, None)
        low, top = positive.min(), np.percentile(positive, 99)
        assert own == pytest.approx(np.clip((positive - low) / (top - low), 0, 1), abs=1e-6)


@given(st.integers(0, 2**31), st.sampled_from(["rank", "mass"]), st.floats(0.1, 1e3))
def test_scale_free_rules_ignore_the_scale(seed: int, rule: str, factor: float) -> None:
    dice = torch.Generator().manual_seed(seed)
    maps = torch.rand(3, 9, 9, generator=dice)
    regions = torch.rand(3, 9, 9, generator=dice) < 0.3
    regions[:, 0, 0] = True
    one, other = (region_heat(values, regions, rule) for values in (maps, maps * factor))  # type: ignore[arg-type]
    assert torch.allclose(one, other, rtol=1e-4)


def test_random_regions_keep_their_law() -> None:
    batch = TwoFactor(count=COUNT).batch(range(COUNT))
    assert batch.regions is not None
    size = batch.regions.flatten(1).sum(1)
    moved, pixels, permuted = (region_of(batch, law) for law in ("moved", "pixels", "permuted"))  # type: ignore[arg-type]
    assert not bool((moved & batch.regions).any())
    assert bool((moved.flatten(1).sum(1) >= 0.6 * size).all())
    assert torch.equal(pixels.flatten(1).sum(1), size)
    assert torch.equal(region_of(batch.select([3]), "moved")[0], moved[3])
    givers = [[i for i in range(COUNT) if torch.equal(batch.regions[i], one)] for one in permuted]
    assert sorted(givers) == [[i] for i in range(COUNT)]  # every region is given away once
    assert all(giver != [row] for row, giver in enumerate(givers))  # and never kept
    backwards = list(reversed(range(COUNT)))
    assert torch.equal(region_of(batch.select(backwards), "permuted"), permuted[backwards])  # the order is no matter


@pytest.mark.parametrize("region", ["permuted", "moved", "pixels"])
def test_a_random_region_is_the_same_in_every_shard_and_under_every_limit(region: Law) -> None:
    whole = region_of(TwoFactor(count=COUNT).batch(range(COUNT)), region)
    for shard in ([0], [3, 1], [5, 2, 4]):
        assert torch.equal(region_of(TwoFactor(count=COUNT).batch(shard), region), whole[shard])
    assert torch.equal(region_of(TwoFactor(count=3).batch(range(3)), region), whole[:3])
    attribution = requested("embedded:scene", Saliency())
    alone = replace(attribution, batch=attribution.batch.select([4]), maps=attribution.maps[[4]])
    both = [IDR(region, rule="rank")(one).values for one in (attribution, alone)]
    assert torch.equal(both[0][[4]], both[1])


def test_of_data_that_names_no_other_region_the_order_in_the_batch_is_no_matter() -> None:
    batch = replace(TwoFactor(count=COUNT).batch(range(COUNT)), labels={})
    assert batch.regions is not None
    given_away = region_of(batch, "permuted")
    assert torch.equal(given_away.unique(dim=0), batch.regions.unique(dim=0))
    assert not any(torch.equal(*pair) for pair in zip(given_away, batch.regions, strict=True))
    backwards = list(reversed(range(COUNT)))
    assert torch.equal(region_of(batch.select(backwards), "permuted"), given_away[backwards])


def test_a_permuted_region_needs_another_picture_that_has_one() -> None:
    batch = replace(TwoFactor(count=3).batch(range(3)), labels={})
    assert batch.regions is not None
    with pytest.raises(NotApplicable, match="no other picture"):
        region_of(batch.select([0]), "permuted")
    one_hidden = replace(batch, regions=batch.regions & torch.tensor([True, False, True])[:, None, None])
    given_away = region_of(one_hidden, "permuted")
    assert torch.equal(given_away[0], batch.regions[2])
    assert torch.equal(given_away[2], batch.regions[0])
    assert not bool(given_away[1].any())


def test_a_small_object_is_moved_in_one_piece() -> None:
    region = torch.zeros(1, 20, 24, dtype=torch.bool)
    region[0, 2:7, 3:9] = True
    region[0, 2, 3] = False  # not just any box
    for seed in range(20):
        batch = Batch(torch.zeros(1, 3, 20, 24), torch.zeros(1, dtype=torch.int64), ("a",), region, seed=seed)
        moved = region_of(batch, "moved")[0]
        rows, columns = (moved.any(axis).nonzero().flatten() for axis in (1, 0))
        shape = moved[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert torch.equal(shape, region[0, 2:7, 3:9])
        assert not bool((moved & region[0]).any())


def test_overlaps_count_shared_pixels() -> None:
    region = torch.zeros(5, 6, dtype=torch.bool)
    region[1:3, 2:5] = True
    counts = overlaps(region)
    for down in range(5):
        for right in range(6):
            assert int(counts[down, right]) == int((region & region.roll((down, right), (0, 1))).sum())


def test_patches_change_nothing_outside_and_hardly_anything_at_all() -> None:
    model = models.load("embedded:scene_only")
    batch = TwoFactor(count=4, scale=(0.35, 0.45)).batch(range(4))
    assert batch.twins is not None
    assert batch.regions is not None
    result = PatchSolver()(model, batch.twins, batch.images, batch.regions)
    outside = ~batch.regions[:, None].expand_as(batch.images)
    assert torch.equal(result.images[outside], batch.twins[outside])
    assert torch.equal((result.images * 255).round() / 255, result.images)
    assert bool(result.verified.all())
    before, after = engine.forward(model, batch.twins), engine.forward(model, result.images)
    assert bool(((after - before).norm(dim=1) <= 0.02 * before.norm(dim=1)).all())
    moved = (result.images - batch.twins).flatten(1).norm(dim=1)
    assert bool(
        (moved > 0.5 * (batch.images - batch.twins).flatten(1).norm(dim=1)).all()
    )  # still an object, not a void


def test_an_unchanged_object_is_not_passed_off_as_insignificant() -> None:
    model = models.load("embedded:object")
    batch = TwoFactor(count=3).batch(range(3))
    assert batch.twins is not None
    assert batch.regions is not None
    result = PatchSolver(steps=1, relaxation=0.0)(model, batch.twins, batch.images, batch.regions)
    assert not bool(result.verified.any())


def test_the_papers_solver_runs_and_is_judged_alike() -> None:
    model = models.load("embedded:scene_only")
    batch = TwoFactor(count=2, scale=(0.35, 0.45)).batch(range(2))
    assert batch.twins is not None
    assert batch.regions is not None
    result = PatchSolver(solver="paper", steps=5)(model, batch.twins, batch.images, batch.regions)
    assert torch.equal(result.verified, result.verified & (result.change <= 0.02))
    assert float(result.images.min()) >= 0
    assert float(result.images.max()) <= 1


def test_a_reward_keeps_the_papers_patches_large() -> None:
    model = models.load("embedded:scene_only")
    batch = TwoFactor(count=2, scale=(0.35, 0.45)).batch(range(2))
    assert batch.twins is not None
    assert batch.regions is not None
    sizes = []
    for reward in (0.0, 0.5):
        solver = PatchSolver(solver="paper", steps=5, reward=reward)
        found = solver(model, batch.twins, batch.images, batch.regions).images
        sizes.append((found - batch.twins).flatten(1).norm(dim=1))
    assert bool((sizes[1] > sizes[0]).all())
    with pytest.raises(BadInput, match="penalty"):
        PatchSolver(penalty=-1)


def test_a_given_patch_is_verified_and_not_solved() -> None:
    model = models.load("embedded:scene_only")
    batch = TwoFactor(count=4, scale=(0.35, 0.45)).batch(range(4))
    assert batch.twins is not None
    assert batch.regions is not None
    solved = PatchSolver()(model, batch.twins, batch.images, batch.regions).images
    given_patches = batch.showing(torch.cat([solved[:3], batch.images[3:]]))  # the last is the object as it was
    aimed = given_patches.aimed(engine.forward(model, given_patches.images).argmax(1))
    one = IIR(start="given")(attribute(model, aimed, Saliency()))
    other = IIR()(attribute(model, batch, Saliency()))
    assert torch.equal(one.values[:3], other.values[:3])
    assert not bool(one.values[:3].isnan().any())
    assert bool(one.values[3].isnan())
    assert one.notes[3] == "the patch changes the logits or the class"
    assert one.details["verified"].tolist() == [1, 1, 1, 0]
    assert float(one.details["logit_change"][3]) > float(one.details["logit_change"][:3].max())


def test_a_patch_of_noise_needs_no_twins() -> None:
    model = models.load("embedded:scene_only")
    batch = TwoFactor(count=3, shows="scene", scale=(0.35, 0.45)).batch(range(3))
    attribution = attribute(model, replace(batch, twins=None), Saliency())
    scored = IIR(start="noise")(attribution)
    assert bool((~scored.values.isnan()).any())
    with pytest.raises(NotApplicable, match="twins"):
        IIR()(attribution)
    with pytest.raises(BadInput, match="must be one of"):
        IIR(start="dog")(attribution)  # type: ignore[arg-type]


def test_answers_are_computed_once_and_keyed_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.load("embedded:object")
    batch = TwoFactor(count=3, seed=77).batch(range(3))
    requested = []
    forward = engine.forward
    monkeypatch.setattr(engine, "forward", lambda *given: requested.append(1) or forward(*given))
    first = classes(model, batch)
    assert torch.equal(classes(model, batch.showing(batch.images.clone())), first)
    assert len(requested) == 1
    classes(model, batch.showing(1 - batch.images))
    classes(models.load("embedded:scene"), batch)
    assert len(requested) == 3


def test_a_patch_needs_regions_of_its_pictures() -> None:
    with pytest.raises(BadShape, match="bool regions"):
        PatchSolver()(
            models.load("embedded:scene_only"),
            torch.zeros(2, 3, 64, 64),
            torch.zeros(2, 3, 64, 64),
            torch.ones(2, 8, 8),
        )


@dataclass(frozen=True)
class Tinted:
    """A map of the picture alone, at the size the model sees it."""

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return batch.images.mean(1) * (1.0 if model.task == "object" else 0.5) + batch.images[:, 0] ** 2


@pytest.mark.parametrize("law", ["object", "moved", "pixels", "permuted"])
def test_heat_is_read_in_the_pictures_own_frame_where_the_data_set_tells_it(law: str) -> None:
    seen = requested("embedded:scene", Tinted())
    own = torch.zeros(COUNT, 16, 16, dtype=torch.bool)
    own[:, 3:9, 5:8] = True  # nothing like the region at the model's input
    batch = replace(seen.batch, labels={**seen.batch.labels, NATIVE: own})
    small = torch.nn.functional.avg_pool2d(seen.batch.images, 4)
    lent = {OTHER_REGION: seen.batch.labels[OTHER_REGION][:, ::4, ::4]}
    regions = region_of(replace(seen.batch, images=small, twins=None, regions=own, labels=lent), law)  # type: ignore[arg-type]

    def heat(method: Tinted, spec: str, images: Tensor) -> Tensor:
        model = models.load(spec)
        return region_heat(torch.nn.functional.avg_pool2d(method(model, batch.showing(images)), 4), regions)

    message = replace(seen, batch=batch)
    here = heat(Tinted(), "embedded:scene", batch.images)
    contrast = MCS("embedded:object", region=law)(message).values  # type: ignore[arg-type]
    judged = ~contrast.isnan()
    assert bool(judged.any())
    wanted = here - heat(Tinted(), "embedded:object", batch.images)
    assert torch.allclose(contrast[judged], wanted[judged], atol=1e-6)
    assert batch.twins is not None
    there = heat(Tinted(), "embedded:scene", batch.twins)
    colder = IDR(law)(message).values  # type: ignore[arg-type]
    assert torch.equal(colder[~colder.isnan()], (here < there).double()[~colder.isnan()])


def test_a_null_patch_lies_where_the_model_sees_the_object_and_is_read_in_the_pictures_own_frame() -> None:
    seen = requested("embedded:scene_only", Tinted(), scale=(0.35, 0.45))
    own = torch.zeros(COUNT, 16, 16, dtype=torch.bool)
    own[:, 3:9, 5:8] = True
    batch = replace(seen.batch, labels={**seen.batch.labels, NATIVE: own})
    change = IIRChange(rule="mass")(replace(seen, batch=batch)).values
    bare, result = patched(seen.model, seen.batch, "object", PatchSolver())
    before, after = (
        region_heat(torch.nn.functional.avg_pool2d(Tinted()(seen.model, batch.showing(images)), 4), own, "mass")
        for images in (bare, result.images)
    )
    judged = ~change.isnan()
    assert bool(judged.any())
    assert torch.allclose(change[judged], ((after - before).abs() / before)[judged], rtol=1e-3)


def test_grad_cam_contrasts_models_better_than_chance() -> None:
    attribution = requested("embedded:object", GradCam())
    own, chance = MCS()(attribution).values, MCS(region="moved")(attribution).values
    assert float(own.nanmean()) > 0.1
    assert float(own.nanmean()) > float(chance.nanmean())


class Answering(nn.Module):
    """Logits that a function of the pictures gives, and nothing to learn."""

    def __init__(self, answer: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.answer = answer

    def extra_repr(self) -> str:
        return self.answer.__qualname__  # models are distinguished by what they say of themselves

    def forward(self, images: Tensor) -> Tensor:
        return self.answer(images)


@dataclass(frozen=True)
class Brightness:
    """The picture itself as its map."""

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return batch.images.mean(1)


def first_class(images: Tensor) -> Tensor:
    return torch.tensor([[2.0, 1.0]]).repeat(len(images), 1) + 0 * images.mean((1, 2, 3))[:, None]


def painted(inside: float) -> Tensor:
    """A picture whose heat, as it is, is 0 and 1 outside a square and `inside` in it."""
    picture = torch.zeros(1, 3, 10, 10)
    picture[..., 5:] = 1.0
    picture[:, :, 2:5, 2:5] = inside
    return picture


def message(shown: float, bare: float, answer: Callable[[Tensor], Tensor] = first_class) -> Attribution:
    """Brightness as the map of a model of scenes, on one picture and its twin."""
    region = torch.zeros(1, 10, 10, dtype=torch.bool)
    region[:, 2:5, 2:5] = True
    zero = torch.zeros(1, dtype=torch.int64)
    batch = Batch(painted(shown), zero, ("a",), region, painted(bare), {"scene": zero})
    return attribute(Model("answering", Answering(answer), task="scene"), batch, Brightness())


@pytest.mark.parametrize(("shown", "bare", "share"), [(0.2, 0.8, 1.0), (0.8, 0.2, 0.0), (0.4, 0.4, 0.5)])
def test_input_dependence_wants_the_object_colder_than_what_it_covers(shown: float, bare: float, share: float) -> None:
    assert IDR()(message(shown, bare)).values.tolist() == [share]


def test_a_picture_misnamed_without_its_object_is_left_out() -> None:
    def by_brightness(images: Tensor) -> Tensor:
        bright = images[:, 0, 3, 3] - 0.5
        return torch.stack([-bright, bright], 1)

    scored = IDR()(message(0.2, 0.8, by_brightness))
    assert bool(scored.values.isnan().all())
    assert scored.notes == ("misclassified by answering without the object",)


@pytest.mark.parametrize(
    ("after", "kept", "change"),
    [(0.54, 1.0, 0.08), (0.46, 1.0, 0.08), (0.552, 0.0, 0.104), (0.448, 0.0, 0.104), (0.7, 0.0, 0.4)],
)
def test_a_tenth_of_the_heat_before_the_patch_is_what_it_may_change(after: float, kept: float, change: float) -> None:
    attribution = message(after, 0.5)
    assert IIR(start="given")(attribution).values.tolist() == [kept]
    assert IIRChange(start="given")(attribution).values.tolist() == pytest.approx([change], abs=1e-5)


@pytest.mark.parametrize("start", ["object", "given"])
def test_a_picture_that_is_its_own_twin_has_no_object_to_start_from(start: Start) -> None:
    attribution = requested("embedded:scene_only", Saliency(), shows="scene", scale=(0.35, 0.45))
    for metric in (IIR(start=start), IIRChange(start=start)):
        scored = metric(attribution)
        assert bool(scored.values.isnan().all())
        assert all("no object to start from" in note for note in scored.notes)


def test_a_patch_may_start_from_the_object_a_data_set_shows_beside() -> None:
    model = models.load("embedded:scene_only")
    usual = TwoFactor(count=3, scale=(0.35, 0.45)).batch(range(3))
    assert usual.twins is not None
    beside = replace(usual, images=usual.twins, labels={**usual.labels, "with_object": usual.images})
    one, other = (IIRChange()(attribute(model, batch, Saliency())) for batch in (usual, beside))
    assert not bool(one.values.isnan().any())
    assert one.values.tolist() == pytest.approx(other.values.tolist())


def test_the_papers_heat_counts_from_the_coldest_pixel() -> None:
    maps = torch.linspace(1, 2, 100).view(1, 10, 10)
    heat = positive_p99(maps)
    assert float(heat.min()) == 0
    assert float(heat.flatten()[49]) == pytest.approx(0.5, abs=0.01)


def test_mass_is_the_share_of_relevance_over_the_share_of_the_area() -> None:
    regions = torch.zeros(1, 4, 4, dtype=torch.bool)
    regions[:, :2, :2] = True  # a quarter
    even, half = torch.ones(1, 4, 4), torch.full((1, 4, 4), 1 / 12)
    half[regions] = 1 / 4  # half of the relevance
    assert region_heat(even, regions, "mass").tolist() == [1.0]
    assert region_heat(half, regions, "mass").tolist() == pytest.approx([2.0])


@given(st.integers(0, 2**31), st.floats(0, 1))
def test_ranks_are_one_half_on_average_whatever_is_tied(seed: int, tied: float) -> None:
    maps = torch.rand(2, 7, 9, generator=torch.Generator().manual_seed(seed))
    maps = torch.where(maps < tied, 0.0, maps)
    assert ranked(maps).mean((1, 2)).tolist() == pytest.approx([0.5, 0.5])
    assert region_heat(maps, torch.ones(2, 7, 9, dtype=torch.bool), "rank").tolist() == pytest.approx([0.5, 0.5])


def test_ranks_are_how_many_pixels_are_colder() -> None:
    assert ranked(torch.tensor([[[0.0, 0.0, 3.0, 9.0, 5.0]]])).tolist() == [[[0.125, 0.125, 0.5, 1.0, 0.75]]]
    assert ranked(torch.zeros(1, 1, 1)).tolist() == [[[0.5]]]
    with pytest.raises(BadInput, match="finite"):
        ranked(torch.tensor([[[0.0, torch.nan]]]))


def leaning(images: Tensor) -> Tensor:
    """A linear answer: 0.51 per unit of the first row's brightness, so that the paper's step is a whole pixel unit."""
    return torch.stack([0.51 * images[:, :, 0].sum((1, 2)), torch.ones(len(images))], 1)


def test_one_step_of_the_papers_solver_is_the_papers_step() -> None:
    model = Model("leaning", Answering(leaning))
    bare = torch.full((1, 3, 4, 4), 254 / 255)
    bare[..., 0] = 100 / 255
    inside = torch.zeros(1, 1, 4, 4, dtype=torch.bool)
    inside[..., :2] = True
    patch = torch.zeros(1, 3, 4, 4)
    patch[:, :, 0, 0], patch[:, :, 1, 0] = 60.0, -30.0  # well within the range
    patch[:, :, 0, 1] = 5.0  # beyond it: 259 of 255
    solver = PatchSolver(solver="paper", steps=1)
    found = 255 * solver._paper(model, bare, bare + patch / 255, inside, model(bare))
    size = float(patch.norm())
    # Brighter than the bare picture, so the answer asks for one unit less of the first row; 500 · 0.01 = 5 units is the
    # reward along the patch, and 5 units the penalty beyond the range.
    assert found[0, :, 0, 0].tolist() == pytest.approx([160 - 1 + 5 * 60 / size] * 3, abs=1e-3)
    assert found[0, :, 1, 0].tolist() == pytest.approx([70 - 5 * 30 / size] * 3, abs=1e-3)
    assert found[0, :, 0, 1].tolist() == pytest.approx([259 - 1 + 5 * 5 / size - 5] * 3, abs=1e-3)
    assert torch.equal(found[..., 2:], 255 * bare[..., 2:])


def test_the_best_patch_met_is_kept_not_the_last() -> None:
    model = Model("leaning", Answering(leaning))
    bare = torch.full((1, 3, 4, 4), 102 / 255)
    start = torch.full((1, 3, 4, 4), 108 / 255)
    region = torch.ones(1, 4, 4, dtype=torch.bool)
    # A step of 2.5 times the way overshoots to one and a half times the distance on the other side, and so on.
    found = PatchSolver(steps=3, relaxation=2.5)(model, bare, start, region)
    assert torch.allclose(found.images, start)


def test_a_patch_that_turns_the_class_is_not_verified_however_little_it_changes() -> None:
    def close(images: Tensor) -> Tensor:
        bright = 0.01 * images.mean((1, 2, 3))
        return torch.stack([1.005 - bright, 0.995 + bright], 1)

    bare, other = torch.zeros(2, 3, 4, 4), torch.zeros(2, 3, 4, 4)
    other[0], other[1] = 1.0, 0.2
    found = PatchSolver().verify(Model("close", Answering(close)), bare, other)
    assert bool((found.change <= 0.02).all())
    assert found.verified.tolist() == [False, True]


def test_every_solver_has_its_own_number_of_steps() -> None:
    assert PatchSolver().rounds == 150
    assert PatchSolver(solver="paper").rounds == 300
    assert PatchSolver(solver="paper", steps=7).rounds == 7
    requested: list[int] = []

    def counting(images: Tensor) -> Tensor:
        requested.append(1)
        return leaning(images)

    pictures = torch.full((1, 3, 4, 4), 0.5)
    model, region = Model("counting", Answering(counting)), torch.ones(1, 4, 4, dtype=torch.bool)
    PatchSolver(solver="paper")._solve(model, pictures, pictures + 0.1, region)
    assert len(requested) == 301  # the bare pictures once


NAMES_SCENES = """
from heatproof import models

def make():
    return models.load("embedded:scene").network

make.mean, make.std, make.size = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), 64
"""


def test_another_contrast_model_under_the_same_name_asks_another_question(tmp_path: Path) -> None:
    file = tmp_path / "contrast.py"
    file.write_text(NAMES_SCENES)
    attribution = requested("embedded:object", Saliency())
    first = MCS(f"{file}:make", contrast_task="scene")
    assert recipe.key(first) == recipe.key(MCS(f"{file}:make", contrast_task="scene"))
    assert recipe.build(recipe.plain(first)) == first
    before = first(attribution).values
    assert torch.equal(before, MCS()(attribution).values)
    file.write_text(NAMES_SCENES.replace("embedded:scene", "embedded:scene_only"))
    second = MCS(f"{file}:make", contrast_task="scene")
    assert recipe.key(second) != recipe.key(first)
    assert not torch.equal(second(attribution).values, before)
    with pytest.raises(BadInput, match="something else now"):
        recipe.build(recipe.plain(first))


def test_a_contrast_model_of_ones_own_needs_no_name_to_be_loaded_by() -> None:
    scene = models.load("embedded:scene")
    mine = Model("my scene model", scene.network, scene.mean, scene.std)
    attribution = requested("embedded:object", Saliency())
    own = MCS(mine, contrast_task="scene")
    assert torch.equal(own(attribution).values, MCS()(attribution).values)
    assert recipe.label(own) == "mcs(contrast=my scene model, contrast_task=scene)"
    named = recipe.plain(MCS(scene))
    assert named == recipe.plain(MCS("embedded:scene"))  # it does not matter how it was handed over
