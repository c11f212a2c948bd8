"""The tests of a page: what is decided, for whom, and what a reader must learn where nothing can be."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.stats.groups import Groups
from heatproof.stats.mean_interval import mean_intervals
from heatproof.stats.page import Card, compare_means, page_tests


def table(n=40, seed=0, **centres):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.normal(centre, 1, n) for name, centre in centres.items()})


def groups(kind, **columns):
    return Groups(pd.DataFrame(columns), dict.fromkeys(columns, kind))


def test_who_beats_whom():
    tests = compare_means(table(a=2, b=0, c=0.05))
    assert tests.beats() == {("a", "b"), ("a", "c")}
    assert compare_means(table(a=2, b=0, c=0.05), higher_is_better=False).beats() == {("b", "a"), ("c", "a")}
    row = tests.frame.iloc[0]
    assert row["effect"] == pytest.approx(row["mean_difference"] / row["sd"])
    assert row["n_effective"] == pytest.approx(40)


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=25, deadline=None)
def test_decisions_and_simultaneous_intervals_are_one_truth(seed, grouped):
    scores = table(30, seed, a=0.9, b=0.3, c=0)
    where = groups("fixed", scene=np.arange(30) % 4) if grouped else None
    frame = compare_means(scores, groups=where, resamples=199, seed=seed).frame
    assert (frame["significant"] == ((frame["low"] > 0) | (frame["high"] < 0))).all()
    assert (frame["low"] <= frame["pair_low"]).all()


def test_more_cards_make_every_decision_harder_and_copies_do_not():
    first = table(a=0.6, b=0, c=0)
    alone = compare_means(first).frame["p_adjusted"]
    others = {f"m{i}": Card(table(seed=i + 1, a=0, b=0, c=0)) for i in range(8)}
    page = page_tests({"first": Card(first), **others})
    assert (page.tests["first"].frame["p_adjusted"] >= alone).all()
    assert page.pairs == (27, 0)
    assert "27 pairs of 9 comparisons" in page.sentence
    copies = page_tests({i: Card(first) for i in range(9)})
    np.testing.assert_allclose(copies.tests[0].frame["p_adjusted"], alone)


def test_yardsticks_cost_the_methods_nothing():
    scores = table(a=0.7, b=0, random=0, edges=0)
    beside = compare_means(scores, controls=["random", "edges"]).frame
    alone = compare_means(scores[["a", "b"]]).frame
    assert beside["p_adjusted"][0] == alone["p_adjusted"][0]
    assert beside["controls"].tolist() == [0, 1, 1, 1, 1, 2]


def test_the_order_of_methods_only_turns_signs():
    scores = table(a=1, b=0.3, c=0)
    one, other = compare_means(scores), compare_means(scores[["c", "b", "a"]])
    assert one.beats() == other.beats()
    assert sorted(one.frame["p_adjusted"]) == sorted(other.frame["p_adjusted"])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros(20), "identical"),
        (np.r_[np.ones(5), np.zeros(15)], "too few pictures"),
        (np.full(20, 0.25), "no variance"),
        (np.r_[1.0, 2, 1, 2, 1], "too few pictures"),
    ],
)
def test_why_there_is_no_test(values, reason):
    other = np.arange(len(values)) / 7
    frame = compare_means(pd.DataFrame({"a": other + values, "b": other})).frame
    assert frame["reason"][0] == reason
    assert frame["p"][0] == frame["p_adjusted"][0] == 1
    assert not frame["significant"][0]


def test_fixed_groups_make_the_verdict_sharper_and_unseen_groups_doubtful():
    rng = np.random.default_rng(5)
    scene = np.arange(120) % 10
    shift = rng.normal(0, 1, 10)
    shift -= shift.mean()
    scores = pd.DataFrame({"a": rng.normal(0.3, 0.3, 120) + shift[scene], "b": rng.normal(0, 0.3, 120)})
    message = compare_means(scores, groups=groups("fixed", scene=scene)).frame.iloc[0]
    assert message["significant"]
    assert message["beyond"] == "not shown"
    assert not compare_means(scores, groups=groups("sampled", scene=scene)).frame["significant"][0]
    assert message["p"] < compare_means(scores).frame["p"][0]
    clear = pd.DataFrame({"a": rng.normal(3, 1, 120), "b": rng.normal(0, 1, 120)})
    assert compare_means(clear, groups=groups("fixed", scene=scene)).frame["beyond"][0] == "holds"


def test_with_few_groups_nothing_is_claimed_beyond_them():
    scores = table(60, a=3, b=0)
    fixed = compare_means(scores, groups=groups("fixed", scene=np.arange(60) % 5)).frame.iloc[0]
    assert fixed["significant"]
    assert fixed["beyond"] == "too few groups"
    sampled = compare_means(scores, groups=groups("sampled", site=np.arange(60) % 5)).frame.iloc[0]
    assert sampled["reason"] == "too few groups"
    assert not sampled["significant"]
    assert sampled["pair_low"] < sampled["mean_difference"] < sampled["pair_high"]


def test_three_crossed_kinds_of_groups_are_not_tested():
    rng = np.random.default_rng(0)
    crossed = {name: rng.integers(0, 8, 80) for name in ("site", "reader", "device")}
    frame = compare_means(table(80, a=3, b=0), groups=groups("sampled", **crossed)).frame
    assert frame["reason"][0] == "three kinds of groups"
    assert not frame["significant"][0]
    assert compare_means(table(80, a=3, b=0), groups=groups("fixed", **crossed)).frame["significant"][0]


@pytest.mark.parametrize("count", [10, 40])
def test_copies_of_pictures_add_no_certainty(count):
    rng = np.random.default_rng(0)
    base = pd.DataFrame({"a": rng.normal(0.6, 1, count), "b": rng.normal(0, 1, count)})
    copied = pd.concat([base] * 10, ignore_index=True)
    where = groups("sampled", photo=np.tile(np.arange(count), 10))
    assert compare_means(copied).frame["n_effective"][0] == pytest.approx(10 * count)
    found = compare_means(copied, groups=where).frame.iloc[0]
    assert found["p"] == pytest.approx(compare_means(base).frame["p"][0], abs=0.05)
    assert found["n_effective"] == pytest.approx(count, rel=0.15)
    spans = mean_intervals(copied, where).iloc[0]
    alone = mean_intervals(base).iloc[0]
    assert spans["high"] - spans["low"] == pytest.approx(alone["high"] - alone["low"], rel=0.25)


def test_populations_are_distinguished_and_share_a_family():
    cards = {"one": Card(table(a=1, b=0), population="x"), "two": Card(table(30, 1, a=0, b=0), population="y")}
    page = page_tests(cards, {"y": groups("sampled", site=np.arange(30) % 8)})
    assert page.tests["two"].basis.sampled == ("site",)
    assert page.tests["one"].basis.words() == "new pictures like these"
    assert page.tests["one"].beats() == {("a", "b")}


def test_holes_are_left_out_pair_by_pair():
    scores = table(a=1, b=0.4, c=0)
    scores.loc[3, "a"] = np.nan
    frame = compare_means(scores).frame
    assert frame["n"].tolist() == [39, 39, 40]
    assert frame["n_missing"].tolist() == [1, 1, 0]


def test_an_interval_of_a_mean_is_that_of_the_tests():
    scores = table(25, a=1)
    span = mean_intervals(scores).iloc[0]
    against_nothing = compare_means(scores.assign(zero=0.0)).frame.iloc[0]
    assert (span["low"], span["high"]) == pytest.approx((against_nothing["pair_low"], against_nothing["pair_high"]))


def test_shares_stay_between_0_and_1():
    hits = pd.DataFrame({"a": [1.0] * 11 + [0.0], "b": [1.0] * 12})
    spans = mean_intervals(hits, share=True)
    assert (spans["high"] <= 1).all()
    assert spans["low"][1] < 0.8  # Wilson's, though no resample differs


def test_skewed_scores_are_flagged():
    rng = np.random.default_rng(0)
    assert mean_intervals(pd.DataFrame({"a": np.exp(2 * rng.normal(size=50))}))["skewed"][0]
    assert not mean_intervals(pd.DataFrame({"a": rng.normal(size=50)}))["skewed"][0]


def test_refuses_one_method():
    with pytest.raises(BadInput, match="two methods"):
        compare_means(table(a=1))
