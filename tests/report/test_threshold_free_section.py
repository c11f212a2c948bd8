"""The section on threshold-free localisation: strata, thresholds and rules, from invented numbers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from heatproof.report.reading import Reading
from heatproof.report.sections.normalising_rules import rule_name
from heatproof.report.sections.size_strata import strata_of
from heatproof.report.sections.threshold_choice import stacked
from heatproof.report.sections.threshold_free import threshold_free
from heatproof.results import Results

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
    told = {"name": "auc_iou", "higher_is_better": True, "measures": "localisation"}
    notes = {"area": area, "strata": strata or {}, "temperature": "given"}
    info = {
        "protocols": ["threshold_free"],
        "metrics": {
            "auc_iou": told,
            "auc_iou(rule=rank)": told,
            "region_share": {"name": "region_share", "measures": "pictures"},
        },
        "studies": [{"protocol": "threshold_free", "models": [{"spec": "m"}], "notes": notes}],
    }
    return Results(pd.DataFrame(scores), pd.DataFrame(lines), info=info)


def test_it_says_who_wins_where():
    html = threshold_free(Reading(invented()))
    assert "Without a threshold <strong>steady</strong> is first." in html
    assert "At 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4 it would have been" in html
    assert "1 pair of 1 change order at some threshold" in html
    assert "small · 4 images · up to" in html
    assert "Who is first depends on the rule" in html
    assert "<b>" not in html.replace("&lt;b&gt;", "")


def test_it_says_which_area_it_shows():
    assert "mean height of the curve" in threshold_free(Reading(invented()))
    assert "published area, at most 0.9" in threshold_free(Reading(invented("paper")))


def test_an_area_is_divided_by_the_range_before_it_meets_heights():
    """A method whose IoU is the same at all thresholds then differs from it by nothing, not by ten per cent."""
    rows = [threshold_free(Reading(invented(area))).split("steady</th>")[2] for area in ("mean_height", "paper")]
    for row in rows:
        cells = row.split("</tr>")[0].split("<td")[4:6]  # the two relative differences
        for cell in cells:
            assert abs(float(cell.split('data-v="')[1].split('"')[0])) < 1e-9


def test_strata_are_cut_as_the_protocol_asked():
    sizes = pd.Series(np.arange(1, 13) / 20)
    assert strata_of(sizes, {}).rule == "percentile of the evaluated set"
    fixed = strata_of(sizes, {"rule": "fixed", "cutoffs": [0.1, 0.3]})
    assert (fixed.n, fixed.rule) == ((2, 4, 6), "fixed")
    pool = {"rule": "percentile of a pool", "cutoffs": [0.1, 0.3], "percentiles": [33, 67], "pool_size": 99}
    assert strata_of(sizes, pool).pool_size == 99
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
    assert rule_name("auc_iou") == "by method"
    assert rule_name("auc_iou(rule=rank)") == "rank"
    assert rule_name("auc_iou(rule=abs_p99, area=paper)") == "abs_p99"


def ranges(html: str) -> list[tuple[str, ...]]:
    """The ticks of each chart of the strata."""
    charts = re.findall(r"<svg.*?</svg>", html.split("By size of the region")[1].split("<table")[0])
    return [tuple(re.findall(r'class="tick"[^>]*>([^<]+)<', chart)) for chart in charts]


def test_strata_share_one_axis():
    html = threshold_free(Reading(invented()))
    assert len(ranges(html)) == 3
    assert len(set(ranges(html))) == 1


@pytest.mark.parametrize(("cutoffs", "bars"), [([0.1, 0.3], 2), ([0.2, 0.4], 0)])
def test_too_few_images_get_no_interval_and_this_is_said(cutoffs, bars):
    html = threshold_free(Reading(invented(strata={"rule": "fixed", "cutoffs": cutoffs})))
    strata = html.split("By size of the region")[1].split("<table")[0]
    assert strata.count('class="span"') == bars  # of 2, 4 and 6 images, and of 4, 4 and 4, by two methods
    assert "Fewer than 5 images are too few for an interval." in strata


def test_enough_images_get_one_without_a_word():
    html = threshold_free(Reading(invented(strata={"rule": "fixed", "cutoffs": [0.3]})))
    assert html.count('class="span"') == 4
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
