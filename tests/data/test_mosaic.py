"""Mosaics: what a plan promises, and that pictures arrive where the plan puts them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import small_cnn, small_vit
from PIL import Image

from heatproof.data import load
from heatproof.data._support.mosaic_plan import Laid, draw, labels_of, layouts, most_per_class
from heatproof.data._support.shared_tiles import by_sources, linked
from heatproof.data.folder import Folder
from heatproof.data.mosaic import Mosaic, target_regions, tiled
from heatproof.data.two_factor import EASY_PAIR, HARD_PAIR, OBJECTS
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.spec import recipe
from heatproof.types import View

PLANS = {"classes": st.integers(2, 7), "per_class": st.integers(1, 9), "grid": st.sampled_from([2, 3])}


def pools(classes: int, pictures: int) -> dict[int, list[str]]:
    return {name: [f"{name}/{i}" for i in range(pictures)] for name in range(classes)}


@given(**PLANS, seed=st.integers(0, 5))
def test_a_plan_keeps_its_promises(classes: int, per_class: int, grid: int, seed: int) -> None:
    distractors = grid**2 - grid**2 // 2
    plan = draw(pools(classes, per_class * distractors), per_class, grid, seed)
    assert Counter(mosaic.target for mosaic in plan) == dict.fromkeys(range(classes), per_class)
    roles: dict[bool, list[str]] = {True: [], False: []}
    for mosaic in plan:
        assert sum(label == mosaic.target for label in mosaic.labels) == grid**2 // 2
        for picture, label in zip(mosaic.pictures, mosaic.labels, strict=True):
            assert picture.startswith(f"{label}/")
            roles[label == mosaic.target].append(picture)
    for role in roles.values():
        assert len(set(role)) == len(role), "a picture is used twice in the same part"


@given(**PLANS, seed=st.integers(0, 5), spare=st.integers(0, 20))
def test_a_plan_kept_apart_shares_pictures_only_where_they_are_too_few(
    classes: int, per_class: int, grid: int, seed: int, spare: int
) -> None:
    distractors = grid**2 - grid**2 // 2
    plan = draw(pools(classes, per_class * distractors + spare), per_class, grid, seed, apart=True)
    roles = [(picture, label == m.target) for m in plan for picture, label in zip(m.pictures, m.labels, strict=True)]
    assert len(set(roles)) == len(roles), "a picture is used twice in the same part"
    short = per_class * grid**2 - (per_class * distractors + spare)  # pictures that a class lacks
    sharing = max(0, -(-short // (grid**2 // 2)))
    assert len(set(linked([m.pictures for m in plan]))) >= per_class * classes - sharing * (classes - 1)
    for turn in range(per_class):
        inside = plan[turn * classes : (turn + 1) * classes]
        outside = {picture for m in plan if m not in inside for picture in m.pictures}
        assert not outside & {picture for m in inside for picture in m.pictures}


def test_mosaics_that_share_photos_are_one_sampled_group() -> None:
    mosaic = Mosaic(TwoFactor(count=100), EASY_PAIR, per_class=5, apart=True)
    assert mosaic.groups()["class"].labels == tuple(OBJECTS[m.target] for m in mosaic.mosaics)
    shared = mosaic.groups()["source photo"]
    assert shared.kind == "sampled"
    assert shared.labels == ("0", "0", "2", "2", "4", "4", "6", "6", "8", "8")
    assert "source photo" not in Mosaic(TwoFactor(count=200), EASY_PAIR, per_class=5, apart=True).groups()


def test_sources_link_mosaics_over_others() -> None:
    assert linked([["a", "b"], ["c"], ["d"], ["b", "d"], ["e", "c"]]) == (0, 1, 0, 0, 1)
    assert by_sources([["a"], ["b"]], {"a": ["a", "patient 1"], "b": ["b", "patient 1"]})["source photo"].labels == (
        "0",
        "0",
    )
    assert by_sources([["a"], ["b"]], {}) == {}


@given(**PLANS)
def test_layouts_occur_equally_often(classes: int, per_class: int, grid: int) -> None:
    plan = draw(pools(classes, 60), per_class, grid)
    shown = Counter(tuple(i for i, c in enumerate(m.labels) if c == m.target) for m in plan)
    counts = [shown.get(places, 0) for places in layouts(grid)]
    assert max(counts) - min(counts) <= 1


def test_all_six_layouts_of_a_large_plan() -> None:
    shown = Counter(identity.rsplit("-", 1)[1] for identity in Mosaic(per_class=6).ids())
    assert shown == dict.fromkeys(("TTDD", "TDTD", "TDDT", "DTTD", "DTDT", "DDTT"), 10)


@given(classes=st.integers(4, 8), per_class=st.integers(1, 6))
def test_distractors_of_a_mosaic_come_from_different_classes(classes: int, per_class: int) -> None:
    for mosaic in draw(pools(classes, 20), per_class):
        others = [label for label in mosaic.labels if label != mosaic.target]
        assert len(set(others)) == len(others)


@given(classes=st.integers(3, 7), per_class=st.integers(1, 9), grid=st.sampled_from([2, 3]))
def test_distractors_are_shared_out_evenly(classes: int, per_class: int, grid: int) -> None:
    distractors = grid**2 - grid**2 // 2
    plan = draw(pools(classes, per_class * distractors), per_class, grid)
    for target in range(classes):
        given = Counter(label for m in plan if m.target == target for label in m.labels if label != target)
        counts = [given.get(name, 0) for name in range(classes) if name != target]
        assert max(counts) - min(counts) <= 1


def test_distractors_stand_in_every_order() -> None:
    """Else a position would tell the class of a distractor, and a map drawn to positions would look right or wrong."""
    for classes in (3, 4):
        plan = draw(pools(classes, 60), 24)
        for target in range(classes):
            orders = Counter(tuple(c for c in m.labels if c != target) for m in plan if m.target == target)
            assert len(orders) == (classes - 1) * (classes - 2)
            assert max(orders.values()) <= 24 - 4


def test_places_are_dealt_for_every_mosaic_by_itself() -> None:
    """Were they dealt once per turn, three classes would always have three different first neighbours."""
    firsts = [[next(c for c in m.labels if c != m.target) for m in draw(pools(3, 2), 1, seed=s)] for s in range(12)]
    assert {len(set(one)) for one in firsts} == {2, 3}


def test_neighbours_in_a_plan_are_not_those_of_the_folders() -> None:
    plan = draw(pools(2, 48), 24)
    dealt = [m.labels.index(m.target) for m in plan if m.target == 0]
    assert dealt != sorted(dealt), "layouts come in turn, not in blocks"
    for role in (True, False):
        order = [
            int(picture.split("/")[1])
            for m in plan
            for picture, label in zip(m.pictures, m.labels, strict=True)
            if label == 0 and (label == m.target) is role
        ]
        assert order not in (sorted(order), sorted(order, reverse=True))
    steps = {(label - m.target) % 6 for m in draw(pools(6, 4), 1) for label in m.labels if label != m.target}
    assert len(steps) > 2, "who gives to whom does not follow the numbers of the classes"


def test_plans_between_two_classes_are_those_of_stored_studies() -> None:
    """A study keeps the seed: the same seed must go on dealing the same mosaics."""
    message = json.dumps([list(m) for m in draw(pools(2, 20), 8, seed=3)])
    assert hashlib.sha256(message.encode()).hexdigest()[:16] == "a7472b6e73c0dac3"


def test_the_seed_decides_and_nothing_else() -> None:
    assert Mosaic(seed=3).mosaics == Mosaic(seed=3).mosaics
    assert Mosaic(seed=3).mosaics != Mosaic(seed=4).mosaics


def test_too_few_pictures_are_an_error_that_says_how_many_do() -> None:
    assert most_per_class(pools(2, 7)) == 3
    with pytest.raises(BadInput, match="from 1 to 10 mosaics with 20 pictures"):
        Mosaic(between=EASY_PAIR, per_class=11).ids()
    with pytest.raises(BadInput, match="42 which none shows"):
        Mosaic(between=(1, 42)).ids()
    with pytest.raises(BadInput, match="at least 2 different classes"):
        Mosaic(between=(1, 1)).ids()
    with pytest.raises(BadInput, match="grid must be one of"):
        Mosaic(grid=7)
    with pytest.raises(BadInput, match="needs 2 pictures of every class, got 1 of class 1: add pictures"):
        draw({0: ["a", "b"], 1: ["c"]}, 1)


@pytest.mark.parametrize("grid", [2, 3])
def test_pictures_stand_where_the_plan_puts_them(grid: int) -> None:
    of = TwoFactor(count=100)
    mosaic = Mosaic(of, per_class=2, grid=grid, between=HARD_PAIR)
    batch = mosaic.batch([1, 3])
    places = {identity: at for at, identity in enumerate(of.ids())}
    assert batch.images.shape == (2, 3, grid * 64, grid * 64)
    assert batch.regions is not None
    for row, index in enumerate([1, 3]):
        laid = mosaic.mosaics[index]
        assert int(batch.targets[row]) == laid.target
        for tile, (picture, label) in enumerate(zip(laid.pictures, laid.labels, strict=True)):
            y, x = (64 * side for side in divmod(tile, grid))
            shown = batch.images[row, :, y : y + 64, x : x + 64]
            assert torch.equal(shown, of.batch([places[picture]]).images[0])
            region = batch.regions[row, y : y + 64, x : x + 64]
            assert bool((region == (label == laid.target)).all())


def test_labels_found_without_pictures_are_those_of_the_pictures() -> None:
    of = TwoFactor(count=30)
    batch = of.batch(range(30))
    for task in ("object", "scene"):
        assert list(labels_of(of, task)[1].values()) == batch.labels[task].tolist()
    name, other = labels_of(of, "object_id")
    assert (name, list(other.values())) == ("object_id", batch.labels["object_id"].tolist())


def test_a_kept_plan_lays_the_same_mosaics(tmp_path: Path) -> None:
    first = Mosaic(TwoFactor(count=400), between=EASY_PAIR, per_class=5, seed=9)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(first.plan()))
    again = Mosaic.from_plan(file, of=TwoFactor(count=400))
    assert again.ids() == first.ids()
    assert torch.equal(again.batch([0, 7]).images, first.batch([0, 7]).images)
    assert again.digest([0, 7]) == first.digest([0, 7])
    with pytest.raises(BadInput, match="does not hold"):
        Mosaic.from_plan(first.plan(), of=TwoFactor(count=3)).batch([0])
    with pytest.raises(BadInput, match="must hold grid and mosaics"):
        Mosaic.from_plan({"grid": 2}, of=first.of)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": "two"}, "number of tiles per side, got 'two'"),
        ({"target": "9"}, "class numbers, got '9' in mosaic 0"),
        ({"labels": [1, 9, "9", 1]}, "class numbers, got '9' in mosaic 0"),
        ({"target": 5}, "among its labels, got 5"),
        ({"labels": [1, 9, 9]}, "must hold 4 pictures"),
    ],
)
def test_a_plan_that_cannot_be_laid_is_refused(change: dict[str, Any], words: str) -> None:
    plan = Mosaic(between=EASY_PAIR, per_class=1).plan()
    (plan if "grid" in change else plan["mosaics"][0]).update(change)
    with pytest.raises(BadInput, match=words):
        Mosaic.from_plan(plan, of=TwoFactor())


def test_recipes_of_mosaics_are_replayed() -> None:
    drawn = Mosaic(TwoFactor(count=400), EASY_PAIR, 5, title="easy")
    kept = Mosaic.from_plan(drawn.plan(), of=drawn.of)
    for mosaic in (drawn, kept, Mosaic(Folder("photos"), view=View(32, 40))):
        assert recipe.build(json.loads(json.dumps(recipe.plain(mosaic)))) == mosaic
    spoken = load("mosaic(of=two_factor(count=400), between=[1, 9], per_class=5)")
    assert spoken == dataclasses.replace(drawn, title="")
    assert spoken.name != Mosaic().name


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes named by index, six pictures each, of different sizes."""
    luck = np.random.default_rng(0)
    for name in ("3_cat", "7_car"):
        (tmp_path / name).mkdir()
        for i in range(6):
            pixels = luck.integers(0, 255, (40 + i, 50, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    return tmp_path


def test_photos_are_cut_as_the_model_wants_them(photos: Path) -> None:
    model = dataclasses.replace(small_cnn(), view=View(32, 36))
    mosaic = Mosaic(Folder(str(photos)), per_class=3).fitted(model)
    batch = mosaic.batch(range(6))
    assert batch.images.shape == (6, 3, 64, 64)
    assert set(batch.targets.tolist()) == {3, 7}
    with pytest.raises(BadInput, match="does not say which input size"):
        Mosaic(Folder(str(photos))).fitted(small_cnn())


def test_a_photo_that_cannot_be_read_costs_its_mosaic_only(photos: Path) -> None:
    (photos / "3_cat" / "2.png").write_bytes(b"not a picture")
    mosaic = Mosaic(Folder(str(photos), View(16)), per_class=3)
    batch = mosaic.batch(range(6))
    assert 4 <= len(batch) < 6
    assert len(batch) + len(batch.missing) == 6
    assert all("3_cat/2.png" in reason for reason in batch.missing.values())


def test_the_digest_changes_with_a_photo(photos: Path) -> None:
    mosaic = Mosaic(Folder(str(photos), View(16)), per_class=3)
    before = mosaic.digest(range(6))
    Image.new("RGB", (20, 20)).save(photos / "7_car" / "4.png")
    assert mosaic.digest(range(6)) != before


def test_the_digest_tells_mosaics_apart_that_are_laid_otherwise() -> None:
    first = Mosaic(between=EASY_PAIR, per_class=1)
    (one, other) = first.mosaics
    turned = [m._replace(labels=tuple(sum(EASY_PAIR) - c for c in m.labels)) for m in first.mosaics]
    aimed = [m._replace(target=sum(EASY_PAIR) - m.target) for m in first.mosaics]
    wider = Mosaic(between=EASY_PAIR, per_class=1, grid=3)
    small = [Laid(m.target, m.pictures[:4], m.labels[:4]) for m in wider.mosaics]
    assert (one, other) == first.mosaics
    digests = [
        first.digest([0]),
        first.digest([1]),
        dataclasses.replace(first, resize=True).digest([0]),
        dataclasses.replace(first, task="object").digest([0]),
        dataclasses.replace(first, laid=tuple(turned)).digest([0]),
        dataclasses.replace(first, laid=tuple(aimed)).digest([0]),
        dataclasses.replace(first, laid=tuple(small)).digest([0]),
        dataclasses.replace(first, laid=tuple(small), grid=3).digest([0]),
    ]
    assert len(set(digests)) == len(digests)


def test_regions_of_mosaics_that_are_not_square() -> None:
    labels, target = torch.tensor([[1, 0, 0, 0]]), torch.tensor([1])
    region = target_regions(labels, target, 4, 6)
    assert region.shape == (1, 4, 6)
    assert region[0].nonzero().amax(0).tolist() == [1, 2]
    assert int(region.sum()) == 6


@pytest.mark.parametrize("name", ["embedded:scene", "efficientnet-lite0"])
def test_a_class_the_model_does_not_have_is_not_explained(name: str) -> None:
    task = "scene" if name == "embedded:scene" else "label"
    model = dataclasses.replace(small_cnn(), task=task, classes=tuple(map(str, range(10))), name=name)
    with pytest.raises(BadInput, match=f"names classes of the task '{task}', and these mosaics are laid by 'object'"):
        Mosaic(between=EASY_PAIR, per_class=1).fitted(model)
    Mosaic(between=EASY_PAIR, per_class=1, task="scene").fitted(dataclasses.replace(model, task="scene"))
    Mosaic(between=EASY_PAIR, per_class=1).fitted(dataclasses.replace(model, classes=OBJECTS))  # the same by name


def test_a_class_beyond_the_model_s_is_refused_before_anything_runs(photos: Path) -> None:
    model = dataclasses.replace(small_cnn(), view=View(32, 36))
    (photos / "7_car").rename(photos / "12_car")
    of = Folder(str(photos))
    with pytest.raises(BadInput, match=r"labels must lie in 0 … 9, the classes of the model, got 12 for '12_car"):
        Mosaic(of, per_class=3).fitted(model)


def test_networks_of_one_size_need_smaller_mosaics() -> None:
    model = dataclasses.replace(small_vit(), view=View(32), task="object")
    with pytest.raises(BadInput, match=r"takes 32×32 pixels only.*resize=True"):
        Mosaic(TwoFactor(size=32)).fitted(model)
    mosaic = Mosaic(TwoFactor(size=32), resize=True).fitted(model)
    batch = mosaic.batch([0, 1])
    assert batch.images.shape == (2, 3, 32, 32)
    assert batch.regions is not None
    assert batch.regions.float().mean().item() == 0.5
    assert model(batch.images).shape == (2, 10)


def test_tiles_run_row_by_row() -> None:
    pictures = torch.arange(4.0).view(1, 4, 1, 1, 1).expand(1, 4, 1, 2, 2) / 4
    wanted = torch.tensor([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]) / 4
    assert torch.equal(tiled(pictures, 2)[0, 0], wanted)
