"""Relative importance: what is exactly known of maps that are exactly known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heatproof import models
from heatproof.border import attribute
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, BadShape, NotApplicable
from heatproof.methods.cam import GradCam
from heatproof.methods.controls import Constant, Edges, Random
from heatproof.methods.gradients import Saliency
from heatproof.metrics.asking_again import classes
from heatproof.metrics.input_independence import IIR, IIRChange
from heatproof.metrics.insignificant_patch import PatchSolver
from heatproof.metrics.region_heat import overlaps, positive_p99, region_heat, region_of
from heatproof.metrics.relative_importance import IDR, MCS
from heatproof.models import engine
from heatproof.types import Attribution, Batch, Maps, Model

COUNT = 6


@dataclass(frozen=True)
class Contrasting:
    """The region for models of objects, everything but the region for models of scenes."""

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        assert batch.regions is not None
        return (batch.regions if model.task == "object" else ~batch.regions).float()


def asked(spec: str, method: object, **fields: object) -> Attribution:
    model = models.load(spec)
    batch = TwoFactor(count=COUNT, **fields).batch(range(COUNT))  # type: ignore[arg-type]
    return attribute(model, batch.aimed(engine.forward(model, batch.images).argmax(1)), method)  # type: ignore[arg-type]


def test_oracle_and_its_complement_contrast_perfectly() -> None:
    assert MCS()(asked("embedded:object", Contrasting())).values.tolist() == [1.0] * COUNT


def test_model_contrast_is_antisymmetric() -> None:
    one = MCS("embedded:scene")(asked("embedded:object", Saliency())).values
    other = MCS("embedded:object")(asked("embedded:scene", Saliency())).values
    assert torch.equal(one, -other)


@pytest.mark.parametrize("rule", ["paper", "rank", "mass"])
def test_edges_do_not_tell_models_apart(rule: str) -> None:
    assert MCS(rule=rule)(asked("embedded:object", Edges())).values.tolist() == [0.0] * COUNT  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [Constant(), Random()])
def test_a_map_equal_on_both_pictures_ties(method: object) -> None:
    scored = IDR()(asked("embedded:scene", method))
    assert scored.values.tolist() == [0.5] * COUNT
    assert scored.notes == ("tie",) * COUNT


def test_a_constant_map_is_perfectly_independent_and_marked_as_flat_and_blind() -> None:
    attribution = asked("embedded:scene_only", Constant(), scale=(0.35, 0.45))
    scored = IIR()(attribution)
    judged = ~scored.values.isnan()
    assert bool(judged.any())
    assert scored.values[judged].tolist() == [1.0] * int(judged.sum())
    assert {note for note, ok in zip(scored.notes, judged.tolist(), strict=True) if ok} == {"the map is flat"}
    assert Constant.control
    assert IIRChange()(attribution).values[judged].tolist() == [0.0] * int(judged.sum())


def test_misclassified_pictures_are_left_out_with_the_reason() -> None:
    attribution = asked("embedded:object", Contrasting())
    wrong = {**attribution.batch.labels, "scene": (attribution.batch.labels["scene"] + 1) % 10}
    scored = MCS()(replace(attribution, batch=replace(attribution.batch, labels=wrong)))
    assert bool(scored.values.isnan().all())
    assert set(scored.notes) == {"misclassified by embedded:scene"}


def test_scores_do_not_depend_on_batch_mates() -> None:
    attribution = asked("embedded:object", GradCam())
    whole = MCS(region="moved")(attribution).values
    for row in range(COUNT):
        alone = replace(attribution, batch=attribution.batch.select([row]), maps=attribution.maps[[row]])
        assert float(MCS(region="moved")(alone).values[0]) == pytest.approx(float(whole[row]), abs=1e-6)


def test_without_regions_or_twins_the_question_does_not_arise() -> None:
    attribution = asked("embedded:scene", Constant())
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


def test_a_permuted_region_needs_another_picture_that_has_one() -> None:
    batch = TwoFactor(count=3).batch(range(3))
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
    assert "the patch changes the logits" in one.notes[3]


def test_a_patch_of_noise_needs_no_twins() -> None:
    model = models.load("embedded:scene_only")
    batch = TwoFactor(count=3, shows="scene", scale=(0.35, 0.45)).batch(range(3))
    attribution = attribute(model, replace(batch, twins=None), Saliency())
    scored = IIR(start="noise")(attribution)
    assert bool((~scored.values.isnan()).any())
    with pytest.raises(NotApplicable, match="twins"):
        IIR()(attribution)
    with pytest.raises(BadInput, match="start must be one of"):
        IIR(start="dog")(attribution)  # type: ignore[arg-type]


def test_answers_are_asked_for_once_and_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.load("embedded:object")
    batch = TwoFactor(count=3, seed=77).batch(range(3))
    asked_for = []
    forward = engine.forward
    monkeypatch.setattr(engine, "forward", lambda *given: asked_for.append(1) or forward(*given))
    first = classes(model, batch)
    assert torch.equal(classes(model, batch.showing(batch.images.clone())), first)
    assert len(asked_for) == 1
    classes(model, batch.showing(1 - batch.images))
    classes(models.load("embedded:scene"), batch)
    assert len(asked_for) == 3


def test_a_patch_needs_regions_of_its_pictures() -> None:
    with pytest.raises(BadShape, match="bool regions"):
        PatchSolver()(
            models.load("embedded:scene_only"),
            torch.zeros(2, 3, 64, 64),
            torch.zeros(2, 3, 64, 64),
            torch.ones(2, 8, 8),
        )


def test_grad_cam_contrasts_models_better_than_chance() -> None:
    attribution = asked("embedded:object", GradCam())
    own, chance = MCS()(attribution).values, MCS(region="moved")(attribution).values
    assert float(own.nanmean()) > 0.1
    assert float(own.nanmean()) > float(chance.nanmean())
