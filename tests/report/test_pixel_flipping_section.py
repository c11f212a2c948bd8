"""The section on pixel flipping: gains, and what strategies agree on, from invented numbers."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from invented_run import with_info

from heatproof.report.page import page
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.pixel_flipping import pixel_flipping
from heatproof.report.typeset import MISSING, number
from heatproof.results import Results
from heatproof.results.protocol_notes import strategies_of
from heatproof.results.run_info import run_info
from heatproof.stats.bootstrap import interval
from heatproof.stats.strategies import gains, random_among, setups_table, without_holes

ANSWERS = {  # strategy -> method -> (mif, lif); SRG agrees in both, MIF does not
    "mean": {"good<b>": (0.20, 0.80), "fair": (0.30, 0.60), "random": (0.45, 0.45)},
    "telea": {"good<b>": (0.40, 0.95), "fair": (0.35, 0.75), "random": (0.60, 0.60)},
}


def invented(strategies: tuple[str, ...] = ("mean", "telea"), images: int = 6) -> Results:
    rows, setups, metrics = [], [], {}
    for strategy in strategies:
        labels = {name: f"{name}({strategy})" for name in ("mif", "lif", "srg", "r_oms")}
        setups.append({"imputer": strategy, "n_superpixels": 25, **labels})
        for name, label in labels.items():
            kind = "pictures" if name == "r_oms" else "faithfulness"
            metrics[label] = {"name": name, "higher_is_better": name != "mif", "measures": kind}
        for method, (mif, lif) in ANSWERS[strategy].items():
            values = {"mif": mif, "lif": lif, "srg": lif - mif, "r_oms": ANSWERS[strategy]["random"][0]}
            for i in range(images):
                place = {"dataset": "d", "model": "m", "method": method, "image": f"{i}", "status": "ok", "note": ""}
                wave = 0.01 * (i - (images - 1) / 2)
                rows += [{**place, "metric": labels[name], "value": v + wave} for name, v in values.items()]
    info = {
        "protocols": ["pixel_flipping"],
        "metrics": metrics,
        "methods": {"good<b>": {}, "fair": {}, "random": {"control": True}},
        "studies": [{"protocol": "pixel_flipping", "models": [{"spec": "m"}], "notes": {"setups": setups}}],
    }
    return Results(pd.DataFrame(rows), pd.DataFrame(columns=["metric", "dataset", "model"]), info=run_info(info))


def cells_of(html: str, method: str) -> list[str]:
    """What the first table says in the row of a method."""
    row = re.search(rf"{method}</th>.*?</tr>", html)
    return re.findall(r'<td class="num"[^>]*>([^<]*)</td>', row[0])


def test_a_run_becomes_a_table_of_setups():
    run = invented()
    table = setups_table(run.scores, strategies_of(run.info))
    row = table.query("imputer == 'telea' and method == 'good<b>'").iloc[0]
    assert (row["mif"], row["lif"], row["r_oms"]) == pytest.approx((0.40, 0.95, 0.60))
    assert len(table) == 6


def test_only_pictures_that_all_methods_were_scored_on_count():
    run = invented()
    last = (run.scores["image"] == "5") & (run.scores["metric"] == "mif(mean)") & (run.scores["method"] == "fair")
    run.scores.loc[last, ["status", "value"]] = ["failed", float("nan")]
    table = setups_table(run.scores, strategies_of(run.info))
    row = table.query("imputer == 'mean' and method == 'good<b>'").iloc[0]
    assert row["mif"] == pytest.approx(0.20 - 0.005)  # without the last picture, whose wave is +0.025


def test_a_method_some_strategy_has_no_score_of_is_left_out_and_named():
    run = invented()
    gone = (run.scores["metric"] == "lif(mean)") & (run.scores["method"] == "fair")
    run.scores.loc[gone, ["status", "value"]] = ["failed", float("nan")]
    whole = without_holes(setups_table(run.scores, strategies_of(run.info)))
    assert (whole.setups, whole.methods) == ([], ["fair"])
    assert set(whole.table["method"]) == {"good<b>", "random"}
    assert "Methods left out, because some setup has no score of theirs: fair." in pixel_flipping(Reading(run))


@pytest.mark.parametrize("measure", ["mif", "lif", "r_oms"])
def test_a_strategy_without_any_complete_method_is_left_out_and_named(measure: str):
    run = invented()
    run.scores.loc[run.scores["metric"] == f"{measure}(mean)", ["status", "value"]] = ["failed", float("nan")]
    whole = without_holes(setups_table(run.scores, strategies_of(run.info)))
    assert (whole.setups, whole.methods) == (["mean on 25 superpixels (m on d)"], [])
    assert set(whole.table["imputer"]) == {"telea"}
    html = pixel_flipping(Reading(run))
    assert "no method has all scores under them: mean on 25 superpixels (m on d)." in html
    assert "Only one occlusion strategy was run" not in html


@pytest.mark.parametrize("measure", ["mif", "lif", "r_oms"])
def test_gains_are_shown_under_a_strategy_that_has_scores(measure: str):
    run = invented()  # telea has the higher R-OMS, and now no scores of one kind
    run.scores.loc[run.scores["metric"] == f"{measure}(telea)", ["status", "value"]] = ["failed", float("nan")]
    html = pixel_flipping(Reading(run))
    assert "mean on 25 superpixels, R-OMS 0.450, the highest of 2 strategies" in html
    assert cells_of(html, "good&lt;b&gt;")[0] == "0.600"


def test_setups_that_distinguish_no_method_agree_on_nothing():
    run = invented()
    flat = run.scores["metric"].isin(["mif(mean)", "lif(mean)", "mif(telea)", "lif(telea)"])
    run.scores.loc[flat, "value"] = 0.5
    html = pixel_flipping(Reading(run))
    assert "The mean Kendall τ of two setups is – under MIF, – under LIF and – under SRG. The most" in html
    assert "SRG agrees with itself" not in html


def test_the_gain_is_the_difference_of_the_scores_beside_it_when_some_are_missing():
    run = invented()
    where = (run.scores["image"] == "5") & (run.scores["method"] == "fair")
    run.scores.loc[where & (run.scores["metric"] == "lif(telea)"), ["status", "value"]] = ["failed", float("nan")]
    good = (run.scores["method"] == "good<b>") & (run.scores["image"] == "5")
    run.scores.loc[good & (run.scores["metric"] == "lif(telea)"), "value"] = 5.0
    html = pixel_flipping(Reading(run))
    srg, _, mrg, _, lrg, _, mif, lif = cells_of(html, "good&lt;b&gt;")
    assert float(srg) == pytest.approx(float(lif) - float(mif), abs=1e-3) == pytest.approx(0.55, abs=1e-3)
    assert float(mrg) + float(lrg) == pytest.approx(float(srg), abs=2e-3)
    assert "5 pictures that every method was scored on" in html


def test_exact_ties_are_reported():
    run = invented()
    for name in ("mif", "lif"):
        tied = run.scores["metric"] == f"{name}(mean)"
        run.scores.loc[tied & (run.scores["method"] == "fair"), "value"] = run.scores.loc[
            tied & (run.scores["method"] == "good<b>"), "value"
        ].to_numpy()
    html = pixel_flipping(Reading(run))
    assert "in the order of their names: MIF in 1 setup, LIF in 1 setup and SRG in 1 setup." in html
    assert "order of their names" not in pixel_flipping(Reading(invented()))


def test_the_random_control_is_known_whatever_its_settings():
    assert random_among(["fair", "random(kind=uniform)"]) == "random(kind=uniform)"
    assert random_among(["fair", "randomly"]) == "random"


def test_it_shows_the_gains_under_the_strategy_that_confuses_least():
    html = pixel_flipping(Reading(invented()))
    assert "telea on 25 superpixels, R-OMS 0.600, the highest of 2 strategies; 6 pictures that every method" in html
    assert cells_of(html, "good&lt;b&gt;")[0::2][:2] == ["0.550", "0.200"]  # SRG, MRG
    assert "<b>" not in html


def test_all_three_gains_have_intervals_over_pictures():
    assert cells_of(pixel_flipping(Reading(invented(images=4))), "good&lt;b&gt;")[1] == MISSING  # too few for one
    run = invented(images=6)
    chance = (run.scores["metric"] == "r_oms(telea)") & (run.scores["image"] == "0")
    run.scores.loc[chance, "value"] += 0.1  # so that gains over R-OMS vary, and SRG does not
    cells = cells_of(pixel_flipping(Reading(run)), "good&lt;b&gt;")
    assert cells[1] == "[0.550, 0.550]"
    table = gains(run.scores, strategies_of(run.info)[1], "d", "m")
    for at, name in ((2, "mrg"), (4, "lrg")):
        found = interval(table[name]["good<b>"].to_numpy(), kind="expanded")
        assert found.low < found.high
        assert cells[at : at + 2] == [number(found.estimate), f"[{number(found.low)}, {number(found.high)}]"]


def twice(variants: tuple[str, str]) -> Results:
    """One imputer on as many segments under two ways of asking, whose scores differ."""
    run = invented()
    scores = run.scores.replace(
        {"metric": {f"{n}(telea)": f"{n}(mean, twice)" for n in ("mif", "lif", "srg", "r_oms")}}
    )
    setups = run.info.studies[0].notes["setups"]
    setups[1] = {"imputer": "mean", "n_superpixels": 25, **{n: f"{n}(mean, twice)" for n in ("mif", "lif", "r_oms")}}
    for setup, words in zip(setups, variants, strict=True):
        setup |= {"variant": words} if words else {}
    return Results(scores, run.curves, info=run.info)


@pytest.mark.parametrize(
    ("variants", "named"),
    [
        (("", "2 draws"), "mean on 25 superpixels, 2 draws, R-OMS 0.600, the highest of 2 strategies"),
        (("", ""), "mean on 25 superpixels, mif(mean, twice), R-OMS 0.600, the highest of 2 strategies"),
    ],
)
def test_strategies_with_one_imputer_and_number_are_distinguished(variants: tuple[str, str], named: str):
    run = twice(variants)
    table = setups_table(run.scores, strategies_of(run.info))
    assert len(table[["imputer", "n_superpixels", "variant"]].drop_duplicates()) == 2
    html = pixel_flipping(Reading(run))
    assert named in html
    assert "2 setups put 3 methods in 2 different orders under MIF" in html
    assert cells_of(html, "good&lt;b&gt;")[0] == "0.550"


def test_it_counts_the_rankings():
    html = pixel_flipping(Reading(invented()))
    assert "2 different orders under MIF, 1 under LIF and 1 under SRG" in html
    assert "0.33 under MIF, 1.0 under LIF and 1.0 under SRG" in html
    assert "SRG agrees with itself about as much as the better of the others" in html
    assert html.count("Rank of each method under") >= 3
    assert "Pairs whose order depends on the setup: 1" in html


def test_one_strategy_says_what_it_cannot_know():
    html = pixel_flipping(Reading(invented(("mean",))))
    assert "Only one occlusion strategy was run" in html
    assert "Does it depend on the paint?" not in html


def test_the_page_has_the_section_and_does_not_rank_methods_by_r_oms():
    html = page(Reading(invented()))
    assert 'id="pixel_flipping"' in html
    assert "Ranking by r_oms" not in html


def test_donors_that_are_judged_themselves_are_named():
    run = invented()
    assert "hidden parts from the other pictures" not in pixel_flipping(Reading(run))
    notes = {**run.info.studies[0].notes, "donors": "train_set(donors=<b>)"}
    run = with_info(run, studies=[{"protocol": "pixel_flipping", "notes": notes}])
    assert "train_set(donors=&lt;b&gt;) takes hidden parts from the other pictures" in pixel_flipping(Reading(run))


def test_without_setups_there_is_no_section():
    assert pixel_flipping(Reading(with_info(invented(), studies=[]))) is None


def test_choices_correlations_and_spreads_are_shown():
    names = ("mean", "telea", "other")
    answers = ANSWERS | {"other": {"good<b>": (0.3, 0.5), "fair": (0.2, 0.7), "random": (0.5, 0.5)}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(ANSWERS, "other", answers["other"])
        run = invented(names)
    html = pixel_flipping(Reading(run))
    assert "What moves R-OMS most: imputer" in html
    assert re.search(rf">{re.escape(number(0.15))}<", html)  # telea's 0.60 minus mean's 0.45
    assert "gives 0 ± 0.71" in html  # 1 / √2
    assert "imputer, best order" in html
    assert "model, best order" not in html  # there is one
    assert "SRG of each method over strategies" in html
    assert "good&lt;b&gt;" in html
    assert "good<b>" not in html
