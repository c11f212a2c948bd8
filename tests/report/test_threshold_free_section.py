"""The section on threshold-free localisation: strata, thresholds and rules, from invented numbers."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from invented_run import with_info

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.normalising_rules import rule_name
from heatproof.report.sections.size_strata import strata_of
from heatproof.report.sections.threshold_choice import stacked, stretches
from heatproof.report.sections.threshold_free import threshold_free
from heatproof.results import Results
from heatproof.results.protocol_notes import SizeStrata, ThresholdFreeNotes
from heatproof.results.run_info import MetricInfo, StudyInfo, run_info

GRID = [k / 20 for k in range(1, 20)]
METHODS = ("steady", "steep<b>")
IMAGES = 12


def invented(area: str = "mean_height", strata: dict | None = None) -> Results:
    """`steady` has IoU 0.4 at every threshold; `steep` falls from 0.7 to 0 and wins at low ones only."""
    place = {"dataset": "d", "model": "m"}
    curves = {"steady": np.full(19, 0.4), "steep<b>": np.linspace(0.7, 0.0, 19)}
    scores, lines = [], []
    for i in range(IMAGES):
        lift = i / 100  # larger regions score higher
        for method in METHODS:
            row = {**place, "method": method, "image": f"{i}", "status": "ok", "note": ""}
            heights = curves[method] + lift
            free = float(np.trapezoid(heights, GRID)) / (1.0 if area == "paper" else 0.9)
            scores.append({**row, "metric": "auc_iou", "value": free})
            scores.append({**row, "metric": "auc_iou(rule=rank)", "value": 1 - free})
            scores.append({**row, "metric": "region_share", "value": (i + 1) / 20})
            lines.append({**place, "method": method, "image": f"{i}", "metric": "auc_iou", "x": GRID, "y": heights})
    message = {"name": "auc_iou", "higher_is_better": True, "measures": "localisation"}
    notes = {"area": area, "strata": strata or {}, "temperature": "given"}
    info = {
        "protocols": ["threshold_free"],
        "metrics": {
            "auc_iou": message,
            "auc_iou(rule=rank)": {**message, "fields": {"rule": "rank"}},
            "region_share": {"name": "region_share", "measures": "pictures"},
        },
        "studies": [{"protocol": "threshold_free", "models": [{"spec": "m"}], "notes": notes}],
    }
    return Results(pd.DataFrame(scores), pd.DataFrame(lines), info=run_info(info))


def test_it_says_who_wins_where():
    html = threshold_free(Reading(invented()))
    assert "Without a threshold <strong>steady</strong> is first." in html
    assert "With a single one it would have been <strong>steep&lt;b&gt;</strong> from 0.05 to 0.4." in html
    assert "is ahead of <strong>steep&lt;b&gt;</strong>, but behind from 0.05 to 0.4" in html
    assert "1 pair of 1 change order at some threshold" in html
    assert "small · 4 images · up to" in html
    assert "Who is first depends on the rule" in html
    assert "<b>" not in html.replace("&lt;b&gt;", "")


def test_misclassified_pictures_are_scored_apart():
    run = invented()
    right = [i > 3 for i in range(IMAGES)]
    truth = pd.DataFrame({"dataset": "d", "model": "m", "image": [f"{i}" for i in range(IMAGES)], "right": right})
    html = threshold_free(Reading(dataclasses.replace(run, truth=truth)))
    apart = html.split("Where the model is right, and where it is wrong")[1].split("</table>")[0]
    heights = run.table("auc_iou")["steady"].droplevel([0, 1])
    assert f"{heights[4:].mean():.6g}" in apart
    assert f"{heights[:4].mean():.6g}" in apart
    assert "where it is wrong" not in threshold_free(Reading(run))


def test_it_says_which_area_it_shows():
    assert "mean height of the curve" in threshold_free(Reading(invented()))
    assert "published area, at most 0.9" in threshold_free(Reading(invented("paper")))


def test_an_area_is_divided_by_the_range_before_it_meets_heights():
    """A method whose IoU is the same at all thresholds then differs from it by nothing, not by ten per cent."""
    rows = [threshold_free(Reading(invented(area))).split("steady</th>")[2] for area in ("mean_height", "paper")]
    for row in rows:
        cells = row.split("</tr>")[0].split("<td")[5:8]  # the three relative differences
        for cell in cells:
            assert abs(float(cell.split('data-v="')[1].split('"')[0])) < 1e-9


def test_three_thresholds_stand_beside_the_threshold_free_height():
    html = threshold_free(Reading(invented()))
    heads = re.findall(r"<button>((?:IoU|difference) at [^<]+)</button>", html)
    assert heads == [f"IoU at {t}" for t in (0.3, 0.5, 0.7)] + [f"difference at {t}, %" for t in (0.3, 0.5, 0.7)]


@pytest.mark.parametrize("area", ["mean_height", "paper"])
def test_each_method_is_tested_against_itself_at_every_threshold(area):
    """`steady` has one IoU at all thresholds and so differs from none; `steep` crosses its mean in the middle."""
    html = threshold_free(Reading(invented(area)))
    assert "At 18 of 38 methods × thresholds the IoU differs" in html
    assert "<strong>steady</strong> differs at none" in html
    assert "<strong>steep&lt;b&gt;</strong> differs but not at 0.5" in html
    assert "Holm-adjusted over all 38" in html
    assert "too few to show any difference" not in html


def test_too_few_images_to_show_that_a_threshold_matters_are_reported():
    results = invented()
    few = results.scores["image"].isin(list("012345"))
    html = threshold_free(Reading(Results(results.scores[few], results.curves, info=results.info)))
    assert "At 0 of 38" in html
    assert "6 images are too few to show any difference." in html


def test_it_says_which_rule_was_applied_to_whom():
    results = invented()
    results.info.studies[0].notes["rules"] = {"steady": "positive", "steep<b>": "abs_p99"}
    results = with_info(results, methods={"steady": {"signed": False}, "steep<b>": {"signed": True}})
    html = threshold_free(Reading(results))
    assert "the positive part over its maximum (<code>positive</code>) for steady" in html
    assert "99th percentile (<code>abs_p99</code>) for steep&lt;b&gt;" in html
    assert "A user-defined method is treated like a gradient map" in html
    assert "the six rules come down to about three" in html
    assert "This holds here for steady." in html
    assert "come down to about three" not in threshold_free(Reading(invented()))


def test_a_doubtful_temperature_is_marked_as_doubtful():
    results = invented()
    message = {"value": 100.0, "pictures": 12, "confidence_before": 0.9, "confidence_after": 0.1, "accuracy": 0.0}
    results.info.studies[0].notes["temperature"] = message
    assert "may mean nothing" not in threshold_free(Reading(results))  # stored before doubts were
    results.info.studies[0].notes["temperature"] = {**message, "unlabelled": 3, "doubt": "T is at its end"}
    html = threshold_free(Reading(results))
    assert "Left out: 3 pictures without a class of the model." in html
    assert "This temperature may mean nothing: T is at its end." in html


def test_strata_are_cut_as_the_protocol_specifies():
    sizes = pd.Series(np.arange(1, 13) / 20)
    assert strata_of(sizes, SizeStrata()).rule == "percentile of the evaluated set"
    fixed = strata_of(sizes, SizeStrata("fixed", cutoffs=(0.1, 0.3)))
    assert (fixed.n, fixed.rule) == ((2, 4, 6), "fixed")
    pool = {"rule": "percentile of a pool", "cutoffs": [0.1, 0.3], "percentiles": [33, 67], "pool_size": 99}
    assert strata_of(sizes, StudyInfo(notes={"strata": pool}).noted(ThresholdFreeNotes).strata).pool_size == 99
    html = threshold_free(Reading(invented(strata=pool)))
    assert "cut at 10.0 %, 30.0 % (percentile of a pool of 99 pictures)" in html


def test_curves_are_stacked_by_image_and_method():
    reading = Reading(invented())
    (panel,) = [one for one in reading.panels if one.metric == "auc_iou"]
    methods, grid, iou, free = stacked(reading, panel)
    assert (methods, grid.tolist()) == (list(METHODS), GRID)
    assert iou.shape == (IMAGES, 2, 19)
    assert iou[:, 0].mean(-1) == pytest.approx(free[:, 0])


def test_without_auc_iou_there_is_no_section():
    results = invented()
    scores = results.scores[results.scores["metric"] == "region_share"]
    assert threshold_free(Reading(Results(scores, pd.DataFrame(), info=results.info))) is None


def test_rules_are_read_off_the_labels():
    assert rule_name(MetricInfo()) == "by method"
    assert rule_name(MetricInfo(fields={"rule": "by_method"})) == "by method"
    assert rule_name(MetricInfo(fields={"rule": "abs_p99", "area": "paper"})) == "abs_p99"


def ranges(html: str) -> list[tuple[str, ...]]:
    """The ticks of each chart of the strata."""
    charts = re.findall(r"<svg.*?</svg>", html.split("By size of the region")[1].split("<table")[0])
    return [tuple(re.findall(r'class="tick"[^>]*>([^<]+)<', chart)) for chart in charts]


def test_strata_share_one_axis():
    html = threshold_free(Reading(invented()))
    assert len(ranges(html)) == 3
    assert len(set(ranges(html))) == 1


@pytest.mark.parametrize(("cutoffs", "bars"), [([0.1, 0.3], 2), ([0.2, 0.4], 0)])
def test_too_few_images_get_no_interval_and_this_is_reported(cutoffs, bars):
    html = threshold_free(Reading(invented(strata={"rule": "fixed", "cutoffs": cutoffs})))
    strata = html.split("By size of the region")[1].split("<table")[0]
    assert strata.count('class="span"') == bars  # of 2, 4 and 6 images, and of 4, 4 and 4, by two methods
    assert "Fewer than 5 images are too few for an interval." in strata


def test_enough_images_get_one_without_a_word():
    html = threshold_free(Reading(invented(strata={"rule": "fixed", "cutoffs": [0.3]})))
    assert html.split("By size of the region")[1].split("<table")[0].count('class="span"') == 4
    assert "too few for an interval" not in html


def test_no_gain_is_zero_without_a_sign():
    results = invented()
    steady = (results.scores["metric"] == "auc_iou") & (results.scores["method"] == "steady")
    results.scores.loc[steady, "value"] = 0.4
    late = steady & results.scores["image"].isin(["10", "11"])
    results.scores.loc[late, "value"] = 0.3999
    row = re.search(r"steady</th>(.*?)</tr>", threshold_free(Reading(results)).split("By size of the region")[1])
    assert row is not None
    assert row[1].endswith(">0 %</td>")


def test_thresholds_are_drawn_together_where_they_are_neighbours():
    assert stretches([0.05, 0.1, 0.15, 0.5, 0.9, 0.95], GRID) == "from 0.05 to 0.15, at 0.5 and from 0.9 to 0.95"
    assert stretches([0.05], GRID) == "at 0.05"


def test_several_winners_each_have_their_thresholds():
    results = invented()
    third = np.where(np.array(GRID) > 0.8, 0.9, 0.0)
    of = results.scores["method"] == "steady"
    scores = pd.concat([results.scores, results.scores[of].assign(method="late", value=0.1)])
    of = results.curves["method"] == "steady"
    late = results.curves[of].assign(method="late", y=[third] * IMAGES)
    html = threshold_free(Reading(Results(scores, pd.concat([results.curves, late]), info=results.info)))
    message = "<strong>steep&lt;b&gt;</strong> from 0.05 to 0.4 and <strong>late</strong> from 0.85 to 0.95."
    assert f"it would have been {message}" in html


def test_no_difference_is_no_power_of_ten():
    table = threshold_free(Reading(invented("paper"))).split("How far a single threshold misleads")[1]
    shown = re.findall(r"<td[^>]*>([^<]*)</td>", table.split("</table>")[0])
    assert not [cell for cell in shown if "e" in cell]
    steady = re.findall(r"<td[^>]*>([^<]*)</td>", re.search(r"steady</th>(.*?)</tr>", table)[1])
    assert steady[4:] == ["0", "0", "0", "0", "1.00"]  # of height and IoU, the swing, and how many times


def test_means_and_deviations_have_the_same_decimals():
    results = invented()
    steady = (results.scores["metric"] == "auc_iou") & (results.scores["method"] == "steady")
    results.scores.loc[steady, "value"] = 0.463 + 4e-4 * (np.arange(IMAGES) % 2)
    row = re.search(r"steady</th>(.*?)</tr>", threshold_free(Reading(results)).split("By size of the region")[1])
    assert row is not None
    assert row[1].count(">0.463 ± &lt; 0.001<") == 3


def test_where_two_lead_together_none_is_named_the_winner():
    results = invented()
    scores, curves = (
        pd.concat([each, each[each["method"] == "steep<b>"].assign(method="twin")])
        for each in (results.scores, results.curves)
    )
    html = threshold_free(Reading(Results(scores, curves, info=results.info)))
    assert "is first. From 0.05 to 0.4 others are ahead of it, level with each other." in html
    assert "it would have been" not in html
    assert "<strong></strong>" not in html


def test_a_ranking_with_worse_masks_is_held_against_the_main_one():
    run = invented()
    label = "auc_iou_changed_mask(change=dilated)"
    rows = run.scores[run.scores["metric"] == "auc_iou"].assign(metric=label)
    rows["value"] = 1 - rows["value"]
    about = {"name": "auc_iou_changed_mask", "higher_is_better": True, "measures": "localisation"}
    metrics = {**run.info.metrics, label: dataclasses.replace(MetricInfo(**about), fields={"change": "dilated"})}
    worse = dataclasses.replace(
        run, scores=pd.concat([run.scores, rows]), info=dataclasses.replace(run.info, metrics=metrics)
    )
    html = threshold_free(Reading(worse))
    assert "With worse masks" in html
    assert "stays first under 0 of 1" in html
    assert "larger" in html
    assert "With worse masks" not in threshold_free(Reading(run))
