"""The drawn pictures: pure functions of (seed, index), exact twins, colours that give nothing away."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.data import two_factor as tf
from heatproof.data.two_factor.dice import Dice
from heatproof.data.two_factor.outlines import star
from heatproof.data.two_factor.raster import box, fill, fit
from heatproof.data.two_factor.scenes import scene
from heatproof.errors import BadInput

FIELDS = ("image", "twin", "region", "on_grey", "object_label", "scene_label", "object_id", "scene_id")


@pytest.fixture(scope="module")
def some() -> tf.Samples:
    return tf.draw_many(7, range(400))


def longer_side(region: np.ndarray) -> int:
    top, bottom, left, right = box(region)
    return max(bottom - top, right - left)


def test_there_are_ten_classes_of_each() -> None:
    assert tf.SCENES == (
        "clouds", "water", "grass", "dunes", "bricks", "pebbles", "tiles", "trunks", "ridges", "city",
    )  # fmt: skip
    assert tf.OBJECTS == (
        "star", "ring", "cross", "crescent", "heart", "arrow", "gear", "flower", "mug", "bolt",
    )  # fmt: skip
    assert {tf.OBJECTS[o] for o in tf.HARD_PAIR} == {"gear", "flower"}
    assert not set(tf.HARD_PAIR) & set(tf.EASY_PAIR)


def test_alone_equals_batch_in_any_order() -> None:
    indices = [905, 3, 47, 3, 12_345, 0]
    batch = tf.draw_many(1, indices)
    scene.cache_clear()
    for place, index in reversed(list(enumerate(indices))):
        alone = tf.draw(1, index)
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(alone, field), getattr(batch, field)[place])
        scene.cache_clear()


def test_a_sample_cannot_be_changed() -> None:
    first = tf.draw(1, 5)
    want = first.image.copy(), first.twin.copy()
    first.image[:] = 0
    first.twin[:] = 0
    again = tf.draw(1, 5)
    np.testing.assert_array_equal(again.image, want[0])
    np.testing.assert_array_equal(again.twin, want[1])


def test_another_seed_or_index_is_another_picture() -> None:
    assert not np.array_equal(tf.draw(1, 5).image, tf.draw(2, 5).image)
    assert not np.array_equal(tf.draw(1, 5).twin, tf.draw(1, 105).twin)


def test_twins_are_identical_outside_the_region_and_grey_holds_only_the_object(some: tf.Samples) -> None:
    outside = ~some.region
    np.testing.assert_array_equal(some.image[outside], some.twin[outside])
    np.testing.assert_array_equal(some.image[some.region], some.on_grey[some.region])
    assert (some.on_grey[outside] == tf.GREY).all()
    # the object is really there: hardly a pixel of it repeats the scene or the grey behind it
    assert (some.image[some.region] != some.twin[some.region]).any(-1).mean() > 0.99
    assert (some.on_grey[some.region] != tf.GREY).any(-1).mean() > 0.99


def test_no_object_vanishes(some: tf.Samples) -> None:
    for image, twin, region in zip(some.image, some.twin, some.region, strict=True):
        difference = np.abs(image[region].astype(float) - twin[region]).mean()
        assert difference > 20


@pytest.mark.parametrize(("size", "scale"), [(64, (0.57, 0.70)), (64, (0.15, 0.9)), (96, (0.3, 1.0))])
def test_longer_side_is_within_the_range(size: int, scale: tuple[float, float]) -> None:
    drawn = tf.draw_many(3, range(1000, 1200), size=size, scale=scale)
    sides = np.array([longer_side(region) for region in drawn.region])
    assert (sides >= scale[0] * size).all()
    assert (sides <= scale[1] * size).all()
    assert np.ptp(sides) > 0.8 * (scale[1] - scale[0]) * size - 2


def test_a_fixed_scale_gives_that_side_whatever_the_shape() -> None:
    for index in range(0, 100, 5):
        for side in (5, 8, 20, 64):
            assert longer_side(tf.draw(0, index, scale=(side / 64, side / 64)).region) == side


def test_labels_and_ids_follow_the_pairing(some: tf.Samples) -> None:
    index = np.arange(400)
    np.testing.assert_array_equal(some.object_label, index % 100 // 10)
    np.testing.assert_array_equal(some.scene_label, index % 10)
    for ids, labels in ((some.object_id, some.object_label), (some.scene_id, some.scene_label)):
        values, counts = np.unique(ids, return_counts=True)
        assert len(values) == 40
        assert (counts == 10).all()
        assert all(len(set(labels[ids == value])) == 1 for value in values)
    for value in np.unique(some.scene_id):  # one scene instance is one picture
        assert len(np.unique(some.twin[some.scene_id == value], axis=0)) == 1
    assert tf.draw(7, tf.sample_index(4, 6, 3)).object_label == 4
    assert tf.draw(7, tf.sample_index(4, 6, 3)).scene_label == 6


def test_given_classes_replace_the_indexs_own() -> None:
    swapped = tf.draw(1, 5, object_class=8, scene_class=2)
    assert (swapped.object_label, swapped.scene_label) == (8, 2)
    np.testing.assert_array_equal(swapped.twin, tf.draw(1, tf.sample_index(0, 2, 0)).twin)
    np.testing.assert_array_equal(tf.draw(1, 5, object_class=0, scene_class=5).image, tf.draw(1, 5).image)


def test_without_object_the_picture_is_the_twin() -> None:
    empty, full = tf.draw(1, 5, has_object=False), tf.draw(1, 5)
    np.testing.assert_array_equal(empty.image, full.twin)
    np.testing.assert_array_equal(empty.twin, full.twin)
    assert not empty.region.any()
    assert (empty.on_grey == tf.GREY).all()
    assert (empty.object_label, empty.object_id) == (tf.NONE, tf.NONE)
    assert (empty.scene_label, empty.scene_id) == (full.scene_label, full.scene_id)


def nearest_mean_accuracy(features: np.ndarray, labels: np.ndarray) -> float:
    """Class means from every other instance, accuracy on the rest; ten features per instance."""
    train = np.arange(len(labels)) // 10 % 2 == 0
    means = np.stack([features[train & (labels == c)].mean(0) for c in range(10)])
    distance = ((features[~train, None] - means) ** 2).sum(-1)
    return float((distance.argmin(1) == labels[~train]).mean())


def test_mean_colour_does_not_tell_the_scene() -> None:
    labels = np.tile(np.arange(10), 40)
    colours = np.array([scene(11, s, i // 10, 64).picture.mean((0, 1)) for i, s in enumerate(labels)])
    assert nearest_mean_accuracy(colours, labels) < 0.20
    assert nearest_mean_accuracy(colours.mean(1, keepdims=True), labels) < 0.20
    # the same test does see a class with a palette of its own
    own_palette = colours + 30 * np.random.default_rng(0).standard_normal((10, 3))[labels]
    assert nearest_mean_accuracy(own_palette, labels) > 0.25


def test_mean_colour_does_not_tell_the_object() -> None:
    labels = np.tile(np.arange(10), 40)
    drawn = [tf.draw(11, tf.sample_index(o, i % 7, i // 10)) for i, o in enumerate(labels)]
    colours = np.array([s.image[s.region].mean(0) for s in drawn])
    assert nearest_mean_accuracy(colours, labels) < 0.20
    assert nearest_mean_accuracy(colours.mean(1, keepdims=True), labels) < 0.20


def test_k_sets_are_nested_around_the_anchor() -> None:
    order = (3, 7, 0, 1, 2, 4, 5, 6, 8, 9)
    before: set[int] = set()
    for k in range(1, 11):
        entries = tf.k_set(5, k, 4, object_class=6, order=order)
        assert len(entries) == 40
        carriers = {e.scene_class for e in entries if e.has_object}
        assert carriers == {e.scene_class for e in entries} - {e.scene_class for e in entries if not e.has_object}
        assert carriers == before | {order[k - 1]}
        assert order[0] in carriers
        before = carriers
    assert {e.index for e in tf.k_set(5, 1, 4)} == {e.index for e in tf.k_set(5, 9, 4)}
    assert not {e.index for e in tf.k_set(5, 1, 4)} & {e.index for e in tf.k_set(5, 1, 4, first_instance=4)}


def test_k_set_entries_draw_what_they_say() -> None:
    for entry in tf.k_set(5, 3, 1, object_class=6):
        sample = entry.draw()
        assert sample.scene_label == entry.scene_class
        assert sample.object_label == (6 if entry.has_object else tf.NONE)
        assert sample.region.any() == entry.has_object
        np.testing.assert_array_equal(sample.twin, tf.draw(5, entry.index).twin)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": -1}, {"index": -1}, {"size": 8}, {"scale": (0.7, 0.5)}, {"scale": (0.0, 0.5)},
        {"scale": (0.5, 1.5)}, {"object_class": 10}, {"scene_class": -1},
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        tf.draw(**({"seed": 0, "index": 0} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": 11},
        {"n_per_class": 0},
        {"order": (1, 2)},
        {"object_class": 10},
        {"first_instance": -1},
    ],
)
def test_what_is_no_k_set_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        tf.k_set(**({"seed": 0, "k": 1, "n_per_class": 1} | wrong))  # type: ignore[arg-type]


def test_nothing_requested_is_nothing_drawn() -> None:
    nothing = tf.draw_many(0, [], size=32)
    assert len(nothing) == 0
    assert nothing.image.shape == (0, 32, 32, 3)
    assert nothing.region.shape == (0, 32, 32)


def test_fill_counts_pixel_centres_and_leaves_holes() -> None:
    outer = np.array([(1.0, 1.0), (7.0, 1.0), (7.0, 7.0), (1.0, 7.0)])
    inner = np.array([(3.0, 3.0), (5.0, 3.0), (5.0, 5.0), (3.0, 5.0)])
    filled = fill([outer, inner], 8, 8)
    assert filled.sum() == 36 - 4
    assert not filled[3:5, 3:5].any()


@settings(max_examples=40, deadline=None)
@given(side=st.integers(4, 80), turn=st.floats(-0.44, 0.44), key=st.integers(0, 2**32))
def test_fit_gives_the_wanted_side(side: int, turn: float, key: int) -> None:
    spin = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    contours, _ = star(Dice(key))
    region, _ = fit([c @ spin for c in contours], [], side)
    assert max(region.shape) == side
    assert region.any(axis=0)[[0, -1]].all()
    assert region.any(axis=1)[[0, -1]].all()


def test_dice_are_even_and_private() -> None:
    first, second = Dice(1, 2), Dice(1, 2)
    table = first.table(100, 100)
    np.testing.assert_array_equal(table.ravel()[:5], [second.uniform() for _ in range(5)])
    assert abs(table.mean() - 0.5) < 0.02
    assert table.min() >= 0
    assert table.max() < 1
    assert {Dice(k).integer(2, 4) for k in range(50)} == {2, 3, 4}
    assert {Dice(k).pick("ab") for k in range(20)} == {"a", "b"}


# If this fails, pixels have changed: raise VERSION, so that nothing cached from the old ones is mixed in.
PINNED = {1: "6ede7da693361ff92e8df4168729dcf2ae164d61df8a6d87d72c2c004aec670c"}


def test_pixels_belong_to_the_version() -> None:
    digest = hashlib.sha256()
    for index in (*range(0, 100, 11), 90_042):
        sample = tf.draw(0, index)
        for part in (sample.image, sample.twin, sample.region, sample.on_grey):
            digest.update(part.tobytes())
    digest.update(tf.draw(5, 17, size=96, scale=(0.15, 0.9)).image.tobytes())
    assert {tf.VERSION: digest.hexdigest()} == PINNED
