"""Decisions while pictures come in: rarely wrong under the null, right otherwise, blind to the size of shards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.stats.decisions import Comparison

NAMES = ("a", "b", "c", "d")


def fed(table, shard=20, clusters=None, **about):
    """A comparison that has met a table (pictures × methods), shard after shard, until nothing is open."""
    names = NAMES[: table.shape[1]]
    family = len(names) * (len(names) - 1) / 2
    one = Comparison(names, about.pop("level", 0.05 / family), **about)
    for start in range(0, len(table), shard):
        pictures = [f"p{i}" for i in range(start, min(start + shard, len(table)))]
        scores = {
            name: {p: None if np.isnan(v) else float(v) for p, v in zip(pictures, column, strict=True)}
            for name, column in zip(names, table[start : start + shard].T, strict=True)
        }
        groups = None if clusters is None else {p: int(clusters[int(p[1:])]) for p in pictures}
        one.add(pictures, scores, groups)
        if not one.open:
            break
    return one


def wrong(one):
    return any(found.outcome in ("better", "worse") for found in one.decided.values())


@pytest.mark.parametrize("shape", ["normal", "lognormal", "hits"])
def test_identical_methods_are_rarely_told_apart_whenever_one_stops(shape):
    rng = np.random.default_rng(5)
    count, false = 50, 0
    for _ in range(count):
        scores = rng.normal(size=(400, 4)) + rng.normal(size=(400, 1))
        scores = {"normal": scores, "lognormal": np.exp(0.7 * scores), "hits": (scores > 0.5).astype(float)}[shape]
        false += wrong(fed(scores, hits=shape == "hits"))
    assert false / count <= 0.08


def test_a_level_that_is_not_shared_among_looks_and_pairs_is_wrong_more_often():
    """The bound above is one that can be missed."""
    rng = np.random.default_rng(5)
    false = sum(wrong(fed(rng.normal(size=(800, 4)), level=0.6)) for _ in range(60))
    assert false / 60 > 0.2


def test_a_better_method_is_found_in_the_direction_of_the_metric():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(600, 2)) + np.array([1.0, 0.0])
    assert fed(table).decided["a", "b"].outcome == "better"
    assert fed(table, higher_is_better=False).decided["a", "b"].outcome == "worse"
    found = fed(table).decided["a", "b"]
    assert found.low < found.difference < found.high
    assert 0 < found.low <= 1
    assert found.pictures == 20 * found.units < 600
    tie = fed(rng.normal(size=(2000, 2)) * 0.2, margin=0.1)
    assert tie.decided["a", "b"].outcome == "equivalent"
    assert fed(rng.normal(size=(200, 2)) * 0.2, margin=0.0).open == [("a", "b")]


def test_a_race_drops_the_beaten_and_ends_with_the_first_place():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2000, 4)) * 0.5 + [1.0, 0.4, 0.0, 0.0]
    race, full = fed(table, race=True), fed(table)
    assert race.running == ["a"]
    assert set(race.dropped) == {"b", "c", "d"}
    assert race.pictures < full.pictures
    assert ("c", "d") not in race.decided
    for pair, found in race.decided.items():
        assert found.outcome == full.decided[pair].outcome


def test_whole_clusters_make_a_unit():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(30), 30)  # of 30 pictures: no unit holds a part of one
    effects = rng.normal(size=(30, 2))[clusters]
    table = effects + 0.1 * rng.normal(size=(900, 2))
    one = fed(table, clusters=clusters, level=1e-12)
    (found,) = one.standing()
    assert found.units == 29  # the last cluster may go on
    assert found.pictures == 870
    taken = table[:870, 0] - table[:870, 1]
    assert found.difference == pytest.approx(taken.mean())


def test_pictures_for_independent_ones_that_share_clusters_are_decided_wrongly():
    """Why clusters are units: without them identical methods are told apart."""
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(20), 40)
    rates = []
    for units in (None, clusters):
        false = 0
        for _ in range(40):
            table = rng.normal(size=(20, 4))[clusters] + 0.5 * rng.normal(size=(800, 4))
            false += wrong(fed(table, clusters=units))
        rates.append(false / 40)
    assert rates[1] <= 0.1 < rates[0]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([20, 40, 100]), st.booleans(), st.booleans())
def test_units_do_not_depend_on_shards_or_holes_elsewhere(seed, shard, hits, race):
    """A pair's units are of its own pictures in their order, wherever shards begin."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(200, 3))
    table = (table > 0).astype(float) if hits else table
    table[rng.random(table.shape) < 0.1] = np.nan
    about = {"hits": hits, "race": race, "level": 1e-9}  # nothing is decided: all pictures are taken
    for left, right in zip(fed(table, 20, **about).standing(), fed(table, shard, **about).standing(), strict=True):
        assert left == right


def test_methods_without_scores_hold_nothing_up():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 3)) + np.array([2.0, 0.0, 0.0])
    table[:, 2] = np.nan
    one = fed(table)
    assert one.open == []
    assert one.decided.keys() == {("a", "b")}
    assert {found.outcome for found in one.standing()} == {"better", "open"}


def test_units_of_few_pictures_are_refused():
    with pytest.raises(BadInput, match="a unit needs at least 20 pictures, got 10"):
        Comparison(NAMES, 0.05, unit=10)
