"""Consistency of setups: checked by hand, by brute force and by planting what must be found."""

import json
import math
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heatproof.errors import BadInput
from heatproof.stats.consistency import consistency, mean_tau, reference_ranking
from heatproof.stats.ndcg import best_ordering, correlation, ndcg

METHODS = ["lrp", "saliency", "ig", "random"]


def scores(setups=12, seed=0, methods=METHODS):
    """Setups on a grid of models, imputers and numbers of segments, with random AUCs."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(setups):
        r_oms = rng.uniform(0.1, 0.5)
        for method in methods:
            mif = r_oms if method == "random" else r_oms - rng.uniform(0, 0.1)
            rows.append(
                {
                    "model": f"net{i % 2}",
                    "imputer": "abc"[i % 3],
                    "n_segments": 25 * 2 ** (i // 3),
                    "method": method,
                    "mif": mif,
                    "lif": r_oms + rng.uniform(0, 0.1),
                    "r_oms": r_oms,
                }
            )
    return pd.DataFrame(rows)


def test_keys_are_exactly_those_promised_and_json_able():
    found = json.loads(json.dumps(consistency(scores()).as_dict(), allow_nan=False))
    assert set(found) == {
        "n_setups",
        "distinct_rankings",
        "reference_ranking",
        "variance",
        "separation_vs_r_oms",
        "ndcg_vs",
        "rankings",
        "order_dependent_pairs",
    }
    assert found["n_setups"] == 12
    assert set(found["distinct_rankings"]) == set(found["separation_vs_r_oms"]) == {"mif", "lif", "srg"}
    assert sorted(found["reference_ranking"]) == sorted(METHODS)
    assert set(found["variance"]) == set(METHODS)
    assert set(found["variance"]["ig"]) == {"mrg", "lrg", "srg"}
    assert set(found["ndcg_vs"]) == {"r_oms", "model", "imputer", "n_segments"}
    assert {k: v["optimistic"] for k, v in found["ndcg_vs"].items()} == {
        "r_oms": False,
        "model": True,
        "imputer": True,
        "n_segments": False,
    }


@given(st.integers(0, 10**6), st.integers(2, 12))
@settings(max_examples=25, deadline=None)
def test_against_plain_pandas(seed, setups):
    table = scores(setups, seed)
    found = consistency(table)
    table["srg"] = table["lif"] - table["mif"]
    table["mrg"], table["lrg"] = table["r_oms"] - table["mif"], table["lif"] - table["r_oms"]
    keys = ["model", "imputer", "n_segments"]
    for measure, ascending in (("mif", True), ("lif", False), ("srg", False)):
        orders = [
            tuple(g.sort_values(measure, ascending=ascending)["method"]) for _, g in table.groupby(keys, sort=False)
        ]
        assert list(found.rankings[measure].by_setup) == orders
        assert found.rankings[measure].distinct == len(set(orders))
        assert found.rankings[measure].reference_count == max(orders.count(o) for o in orders)
        spread = [np.mean(pdist(g.loc[g["method"] != "random", measure])) for _, g in table.groupby(keys, sort=False)]
        np.testing.assert_allclose(found.separation[measure], spread)
        if setups > 2:
            r_oms = table.groupby(keys, sort=False)["r_oms"].first()
            assert found.separation_vs_r_oms[measure] == pytest.approx(np.corrcoef(spread, r_oms)[0, 1])
    for method, group in table.groupby("method"):
        for gain in ("mrg", "lrg", "srg"):
            assert found.variance[method][gain] == pytest.approx(group[gain].var())


def pdist(values):
    values = list(values)
    return [abs(a - b) for i, a in enumerate(values) for b in values[:i]]


def test_setups_that_agree_have_one_ranking_and_no_dependent_pairs():
    table = scores()
    table["mif"] = table["r_oms"] - table["method"].map({"lrp": 0.09, "saliency": 0.06, "ig": 0.03, "random": 0})
    table["lif"] = table["r_oms"] + table["method"].map({"lrp": 0.09, "saliency": 0.06, "ig": 0.03, "random": 0})
    found = consistency(table)
    assert found.as_dict()["distinct_rankings"] == {"mif": 1, "lif": 1, "srg": 1}
    assert found.as_dict()["reference_ranking"] == METHODS
    assert found.order_dependent == ()
    assert set(found.rankings["srg"].ndcg) == {1.0}
    assert found.as_dict()["ndcg_vs"]["r_oms"]["srg"] is None  # nothing varies, nothing correlates
    assert found.variance["lrp"]["srg"] == pytest.approx(0)
    assert all(set(row) == {0} for row in found.rankings["mif"].deviation)


def test_order_dependent_pairs_and_deviation_are_found():
    table = pd.DataFrame(
        [
            {"setup": s, "method": m, "mif": mif, "lif": 0.5, "r_oms": 0.4}
            for s, order in (("x", "abc"), ("y", "abc"), ("z", "acb"))
            for m, mif in zip(order, (0.1, 0.2, 0.3), strict=True)
        ]
    )
    found = consistency(table)
    assert found.rankings["mif"].reference == ("a", "b", "c")
    assert found.rankings["mif"].deviation == ((0, 0, 0), (0, 0, 0), (0, 1, 1))
    pair = next(p for p in found.order_dependent if p.measure == "mif")
    assert (pair.first, pair.second, pair.first_ahead, pair.second_ahead, pair.tied) == ("b", "c", 2, 1, 0)
    assert not [p for p in found.order_dependent if p.measure == "lif"]  # all tied there
    assert found.rankings["lif"].tied_setups == 3


def test_rounding_noise_is_no_ranking():
    # LIF - MIF of a and b is 0.3 in every setup, but for how the two were rounded.
    mif, lif = (0.1, 0.7, 0.3), (0.4, 1.0, 0.6)
    rows = [
        {"setup": s, "method": m, "mif": mif[(s + shift) % 3], "lif": lif[(s + shift) % 3], "r_oms": 0.5}
        for s in range(3)
        for m, shift in (("a", 0), ("b", 1))
    ]
    assert len({row["lif"] - row["mif"] for row in rows}) > 1
    found = consistency(
        pd.DataFrame([*rows, *({**r, "method": "c", "lif": r["mif"]} for r in rows if r["method"] == "a")])
    )
    assert found.rankings["srg"].by_setup == (("a", "b", "c"),) * 3
    assert found.rankings["srg"].tied_setups == 3
    assert found.rankings["srg"].agreement == pytest.approx(1)
    assert not [pair for pair in found.order_dependent if pair.measure == "srg"]


def test_r_oms_follows_from_the_random_method_or_its_column():
    table = scores()
    derived = consistency(table.drop(columns="r_oms"))
    assert derived.r_oms == consistency(table).r_oms
    assert derived.as_dict() == consistency(table).as_dict()


def test_row_order_and_derived_columns_change_nothing():
    table = scores()
    shuffled = table.sample(frac=1, random_state=0).assign(srg=table["lif"] - table["mif"])
    first, second = consistency(table).as_dict(), consistency(shuffled).as_dict()
    assert first["distinct_rankings"] == second["distinct_rankings"]
    assert first["reference_ranking"] == second["reference_ranking"]
    for name, values in first["ndcg_vs"].items():
        for measure in ("mif", "lif", "srg"):
            assert second["ndcg_vs"][name][measure] == pytest.approx(values[measure])


def test_one_setup_is_described_without_correlations():
    found = consistency(scores(1)).as_dict()
    assert found["n_setups"] == 1
    assert found["variance"]["lrp"]["srg"] is None
    assert found["separation_vs_r_oms"]["mif"] is None


def test_paper_lists_touch_lif_and_srg_only():
    table = scores(12, seed=5)
    best, paper = consistency(table), consistency(table, lists="paper")
    assert best.rankings["mif"].ndcg == paper.rankings["mif"].ndcg
    for measure in ("lif", "srg"):
        reference = best.rankings[measure].reference[::-1]
        expected = [ndcg(r[::-1], reference) for r in best.rankings[measure].by_setup]
        assert list(paper.rankings[measure].ndcg) == pytest.approx(expected)
        assert best.rankings[measure].ndcg != paper.rankings[measure].ndcg


def test_ndcg_by_hand():
    # Three methods, the first two swapped: gains 2, 3, 1 on discounts 1, 1/log2(3), 1/2.
    d = 1 / math.log2(3)
    assert ndcg("bac", "abc") == pytest.approx((2 + 3 * d + 0.5) / (3 + 2 * d + 0.5))


@given(st.permutations("abcdef"))
def test_ndcg_is_one_only_for_the_reference(order):
    value = ndcg(order, "abcdef")
    assert ndcg("fedcba", "abcdef") - 1e-12 <= value <= 1 + 1e-12
    assert (value > 1 - 1e-9) == (list(order) == list("abcdef"))


@given(st.lists(st.tuples(st.sampled_from("wxyz"), st.integers(0, 5)), min_size=3, max_size=15))
@settings(deadline=None)
def test_best_ordering_equals_brute_force(cells):
    labels, values = [c for c, _ in cells], np.array([v for _, v in cells], dtype=float)
    found = best_ordering(labels, values)
    rhos = [
        correlation(np.array([order.index(x) for x in labels], dtype=float), values, "spearman")
        for order in permutations(sorted(set(labels)))
    ]
    if np.isnan(rhos[0]):
        assert np.isnan(found.rho)
    else:
        assert found.rho == pytest.approx(max(rhos))
        assert found.rho >= 0


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=15))
@settings(deadline=None)
def test_correlation_equals_scipy(cells):
    x, y = np.array(cells, dtype=float).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(correlation(x, y, "spearman"))
    else:
        assert correlation(x, y, "spearman") == pytest.approx(stats.spearmanr(x, y)[0])
        assert correlation(x, y, "pearson") == pytest.approx(stats.pearsonr(x, y)[0])


def test_most_frequent_ranking_wins_and_draws_go_to_the_middle():
    assert reference_ranking([("a", "b"), ("b", "a"), ("b", "a")]) == (("b", "a"), 2)
    drawn = [("a", "b", "c"), ("b", "a", "c"), ("b", "c", "a")]
    assert reference_ranking(drawn) == (("b", "a", "c"), 1)
    assert reference_ranking(drawn[::-1]) == (("b", "a", "c"), 1)


def broken(change):
    table = scores(4)
    return change(table)


@pytest.mark.parametrize(
    ("change", "output"),
    [
        (lambda t: t.drop(columns="lif"), "lacks lif"),
        (lambda t: t.drop(index=1), r"\(model=net0, imputer=a, n_segments=25\) lacks saliency"),
        (lambda t: pd.concat([t, t.iloc[[2]]]), r"several exist for ig in \(model=net0"),
        (lambda t: t.assign(mif=t["mif"].where(t.index != 5)), r"mif .* saliency in \(model=net1, imputer=b"),
        (lambda t: t.assign(lif=t["lif"].astype(object).where(t.index != 5, "n/a")), r"lif .* saliency in"),
        (lambda t: t.assign(mif=t["mif"].where(t.index != 5, np.inf)), "saliency in"),
        (lambda t: t.assign(model=t["model"].where(t.index != 5)), "model is empty in row 6"),
        (lambda t: t.assign(r_oms=t["r_oms"].where(t.index != 5, 0.9)), r"differs in \(model=net1"),
        (lambda t: t.assign(line=range(len(t))), "Column line differs in every row"),
        (lambda t: t[["method", "mif", "lif"]], "names the setup"),
        (lambda t: t.iloc[:0], "one row per setup and method, got none"),
        (lambda t: t[t["method"] != "random"].drop(columns="r_oms"), "R-OMS is unknown"),
    ],
)
def test_holes_doubles_and_uneven_setups_are_named(change, output):
    with pytest.raises(BadInput, match=output):
        consistency(broken(change))


def test_ndcg_refuses_other_methods():
    with pytest.raises(BadInput):
        ndcg("ab", "ac")


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 7), st.integers(2, 30))
def test_agreement_is_the_mean_tau_of_two_setups(seed, setups, methods, levels):
    values = np.random.default_rng(seed).integers(0, levels, (setups, methods)).astype(float)  # few levels: ties
    taus = [stats.kendalltau(one, other).statistic for one, other in combinations(values, 2)]
    known = [tau for tau in taus if not math.isnan(tau)]
    wanted = np.mean(known) if known else math.nan
    assert mean_tau(values) == pytest.approx(wanted, nan_ok=True, abs=1e-12)


def test_one_setup_agrees_with_no_other():
    assert math.isnan(mean_tau(np.array([[1.0, 2.0, 3.0]])))
