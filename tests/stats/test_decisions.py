"""Decisions while pictures come in: rarely wrong under the null, right otherwise, and they stay."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heatproof.errors import BadInput
from heatproof.stats.decisions import decided, look, outcomes
from heatproof.stats.groups import Groups
from heatproof.stats.looks import look_steps, share
from heatproof.stats.page import Card, page_tests

NAMES = ["a", "b", "c", "d"]
ALPHA = 0.05


def cards(table, seen, **about):
    frame = pd.DataFrame(
        table[:seen], columns=NAMES[: table.shape[1]], index=[f"p{i}" for i in range(min(seen, len(table)))]
    )
    return {0: Card(frame, **about)}


def pages(table, shard=20, groups=None, **about):
    """The looks at a table (pictures × methods) that comes in by shards."""
    ends = [shard * step for step in look_steps(len(table) // shard)]
    known = None if groups is None else {"": groups}
    return [look(cards(table, end, **about), known, number, alpha=ALPHA) for number, end in enumerate(ends, 1)]


def found(table, margin=0.0, **about):
    page = decided(pages(table, **about), alpha=ALPHA, margin=margin)
    return page.tests[0].frame.set_index(["method_a", "method_b"])


def wrong(table, **about):
    return bool(found(table, **about)["significant"].any())


@pytest.mark.parametrize("shape", ["normal", "lognormal", "hits"])
def test_identical_methods_are_rarely_distinguished_whenever_one_stops(shape):
    rng = np.random.default_rng(5)
    count, false = 25, 0
    for _ in range(count):
        scores = rng.normal(size=(240, 3)) + rng.normal(size=(240, 1))
        false += wrong({"normal": scores, "lognormal": np.exp(0.7 * scores), "hits": scores > 0.5}[shape].astype(float))
    assert false / count <= 0.16


def test_looks_at_the_whole_of_alpha_each_are_wrong_more_often():
    """The bound above is one that can be missed."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(30):
        table = rng.normal(size=(400, 4))
        peeks = [page_tests(cards(table, end), alpha=0.3, resamples=299) for end in (20, 40, 60, 100, 160, 240, 400)]
        false += any(page.tests[0].frame["significant"].any() for page in peeks)
    assert false / 30 > 0.4


def test_a_better_method_is_found_in_the_direction_of_the_metric():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 2)) + np.array([1.0, 0.0])
    up, down = found(table).loc["a", "b"], found(table, higher_is_better=False).loc["a", "b"]
    assert (up["outcome"], down["outcome"]) == ("better", "worse")
    assert 0 < up["low"] < up["mean_difference"] < up["high"]
    tie = rng.normal(size=(400, 2)) * 0.2
    assert found(tie, margin=0.1).loc["a", "b"]["outcome"] == "equivalent"
    assert found(tie).loc["a", "b"]["outcome"] == "open"
    same = np.repeat(rng.normal(size=(100, 1)), 2, axis=1)
    assert found(same, margin=0.1).loc["a", "b"]["outcome"] == "equivalent"
    assert found(same[:40], margin=0.1).loc["a", "b"]["outcome"] == "open"  # too few pictures to say that


def test_a_decision_stays_and_its_p_allows_for_the_looks():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 2))
    table[:100, 0] += 2.0
    table[100:, 0] -= 1.0  # what came first does not go on
    looks = pages(table)
    first = next(at for at, page in enumerate(looks) if page.tests[0].frame["significant"].any())
    row = decided(looks, alpha=ALPHA).tests[0].frame.iloc[0]
    assert (row["outcome"], row["look"]) == ("better", first + 1)
    assert row["p_adjusted"] <= ALPHA
    assert row["p_adjusted"] == pytest.approx(looks[first].tests[0].frame["p_adjusted"].iloc[0] / share(first + 1))
    assert outcomes(looks[-1].tests[0])[0] == "worse"
    page = decided(looks, alpha=ALPHA)
    assert (page.looks, page.level) == (len(looks), ALPHA * share(len(looks)))
    assert "whenever the run stops" in page.sentence


def test_methods_that_left_keep_their_decisions():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(240, 3)) + np.array([1.5, 0.0, 0.0])
    before = found(table[:60])
    assert before.loc["a", "c"]["outcome"] == "better"
    table[60:, 2] = np.nan
    after = found(table)
    assert after.loc["a", "c"]["outcome"] == "better"
    assert after.loc["a", "c"]["n"] <= 60
    assert after.loc["b", "c"]["n"] == 60


def test_pictures_taken_for_independent_ones_that_share_clusters_are_decided_wrongly():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 10)
    known = Groups(pd.DataFrame({"patient": groups}, index=[f"p{i}" for i in range(200)]), {"patient": "sampled"})
    rates = []
    for respected in (None, known):
        false = [
            wrong(rng.normal(size=(20, 3))[groups] + 0.5 * rng.normal(size=(200, 3)), groups=respected)
            for _ in range(12)
        ]
        rates.append(np.mean(false))
    assert rates[1] <= 0.17 < rates[0]


def test_decisions_need_a_look():
    with pytest.raises(BadInput, match="at least one look"):
        decided([], alpha=ALPHA)
