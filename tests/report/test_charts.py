"""Every chart is well-formed, accessible and harmless, and shows the numbers it was given."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.report.charts import (
    Bar,
    Estimate,
    Line,
    Point,
    Ranks,
    Spread,
    bars,
    bumps,
    critical_difference,
    curves,
    heatmap,
    interval_ranking,
    ranks_over,
    scatter,
    strips,
)
from heatproof.report.charts.axis import Axis, spanning, tick_labels
from heatproof.report.charts.critical_difference import cliques
from heatproof.report.charts.curves import DASHES
from heatproof.report.charts.heatmap import shade, short
from heatproof.report.charts.spacing import spread
from heatproof.report.charts.svg import CHARACTER

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('1')</script> & \"quotes\" \x00"


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def words(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in parsed(svg).iter(f"{SVG}text")]


CHARTS = {
    "interval_ranking": lambda name: interval_ranking([Estimate(name, 0.5, 0.4, 0.6)], title=name),
    "curves": lambda name: curves([Line(name, [0, 1], [0, 1])], title=name, x_label=name, y_label=name),
    "heatmap": lambda name: heatmap(np.eye(2), [name, "b"], ["c", name], title=name),
    "strips": lambda name: strips([Spread(name, [0.1, 0.2, math.nan])], title=name),
    "scatter": lambda name: scatter([Point(name, 1, 2)], title=name, x_label=name, y_label=name),
    "critical_difference": lambda name: critical_difference({name: 1.2, "b": 1.8}, 0.3, title=name),
    "bars": lambda name: bars([Bar(name, 0.5, baseline=0.2)], title=name, baseline_label=name),
    "bumps": lambda name: bumps([Ranks(name, [1, 2]), Ranks("b", [2, 1])], [name, "m"], title=name),
}


@pytest.mark.parametrize("name", CHARTS)
def test_hostile_names_stay_text_in_an_accessible_drawing(name: str) -> None:
    svg = CHARTS[name](EVIL)
    root = parsed(svg)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title") is not None
    assert "script" in (root.get("aria-label") or "")
    assert not list(root.iter(f"{SVG}script"))
    assert root.get("viewBox")


@given(st.text(max_size=40))
def test_any_name_gives_well_formed_drawings(name: str) -> None:
    for draw in CHARTS.values():
        assert parsed(draw(name)).tag == f"{SVG}svg"


def test_ranking_is_sorted_best_first_in_either_direction_and_keeps_holes_last() -> None:
    rows = [
        Estimate("low", 0.111, 0.1, 0.2),
        Estimate("gone", math.nan, math.nan, math.nan, note="not applicable"),
        Estimate("high", 0.987, 0.9, 1.0, rank="1–2"),
    ]
    up = [word for word in words(interval_ranking(rows, title="t")) if word in ("low", "high", "gone")]
    down = [
        word
        for word in words(interval_ranking(rows, title="t", higher_is_better=False))
        if word in ("low", "high", "gone")
    ]
    assert up == ["high", "low", "gone"]
    assert down == ["low", "high", "gone"]
    shown = words(interval_ranking(rows, title="t"))
    assert {"0.987", "0.111", "1–2", "not applicable"} <= set(shown)


def test_controls_are_set_apart() -> None:
    svg = interval_ranking([Estimate("random", 0.0, -0.1, 0.1, control=True)], title="t")
    assert 'class="label control"' in svg
    assert "random (control): 0" in svg


def test_curves_name_every_loud_line_once_and_no_quiet_one() -> None:
    lines = [Line(f"loud{i}", [0, 0.5, 1], [1, i / 9, 0.1], [1, 0, 0.1], [1, 1, 0.1], i) for i in range(5)]
    lines += [Line("silent", [0, 1], [0, 1], quiet=True)]
    svg = curves(lines, title="t")
    shown = [node.text for node in parsed(svg).iter(f"{SVG}text") if node.get("class") == "name"]
    assert sorted(filter(None, shown)) == [f"loud{i}" for i in range(5)]
    assert svg.count('class="band"') == 5


def test_labels_of_curves_that_end_together_do_not_overlap() -> None:
    lines = [Line(f"m{i}", [0, 0.5, 1], [1, i / 20, 0.1]) for i in range(12)]
    nodes = [node for node in parsed(curves(lines, title="t")).iter(f"{SVG}text") if node.get("class") == "name"]
    heights = sorted(float(node.get("y", "nan")) for node in nodes)
    assert len(heights) == 12
    assert np.diff(heights).min() >= 13


@given(
    st.lists(st.floats(0, 300), min_size=1, max_size=18),
    st.floats(1, 14),
)
def test_spread_keeps_the_gap_the_order_and_the_borders(wanted: list[float], gap: float) -> None:
    places = spread(wanted, gap, 0.0, 300.0)
    order = np.argsort(wanted, kind="stable")
    settled = np.asarray(places)[order]
    assert (np.diff(settled) >= gap - 1e-6).all()
    assert settled[0] >= -1e-6
    assert settled[-1] <= 300 + 1e-6


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8, unique=True))
def test_spread_moves_nothing_that_already_fits(wanted: list[float]) -> None:
    gap = min(np.diff(sorted(wanted)), default=1.0) / 2
    assert spread(wanted, gap, 0.0, 300.0) == pytest.approx(wanted)


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e4))
def test_ticks_lie_inside_and_read_differently(low: float, width: float) -> None:
    ticks = Axis(low, low + width, 0, 100).ticks(5)
    assert all(low - width * 1e-6 <= tick <= low + width * (1 + 1e-6) for tick in ticks)
    labels = tick_labels(ticks)
    assert len(set(labels)) == len(ticks) >= 2


def test_axis_of_one_value_has_width() -> None:
    for values in ([0.0], [5.0, 5.0], [], [math.nan]):
        axis = spanning(values, 0, 10)
        assert axis.high > axis.low


def test_shades_diverge_around_zero() -> None:
    assert [shade(v, "diverging", 1.0) for v in (-1, -0.02, 0, 0.5, 2, math.nan)] == [
        "n5",
        "z",
        "z",
        "p3",
        "p5",
        "x",
    ]
    assert shade(-1, "sequential", 1.0) == "p5"
    assert [shade(v, "diverging", 1.0, least=1) for v in (-0.02, 0, 0.001, 0.5)] == ["n1", "z", "p1", "p3"]


def test_short_numbers_fit_a_cell() -> None:
    numbers = (0.94, -0.5, 0.6, 1.0, -1.0, 0.996, -0.9999, 0.0, -0.001)
    assert [short(v) for v in numbers] == [".94", "−.50", ".60", "1.0", "−1.0", ".99", "−.99", "0", "−.00"]
    assert short(1 - 1e-15) == "1.0"  # the rounding of a sum


def test_small_matrices_show_numbers_and_large_ones_stay_light() -> None:
    values = np.array([[np.nan, 0.62], [-0.62, np.nan]])
    assert {".62", "−.62"} <= set(words(heatmap(values, ["a", "b"], ["a", "b"], title="t")))
    names = [f"method_{i}" for i in range(40)]
    rng = np.random.default_rng(0)
    large = heatmap(rng.uniform(-1, 1, (40, 40)), names, names, title="t")
    assert len(large) < 50_000
    assert len(list(parsed(large).iter(f"{SVG}path"))) <= 12


def test_cliques_are_the_longest_runs_within_the_difference() -> None:
    assert cliques([1.0, 1.5, 1.9, 4.0], 1.0) == [(0, 2)]
    assert cliques([1.0, 1.8, 2.6], 1.0) == [(0, 1), (1, 2)]
    assert cliques([1.0, 3.0], 1.0) == []


def test_violins_do_not_grow_with_the_number_of_scores() -> None:
    rng = np.random.default_rng(0)
    few = strips([Spread("m", rng.normal(size=100).tolist())], title="t")
    many = strips([Spread("m", rng.normal(size=20_000).tolist())], title="t")
    assert len(many) < 1.2 * len(few)


def test_violins_say_what_is_missing() -> None:
    svg = strips([Spread("m", [0.25, 0.5, 0.75, math.nan]), Spread("none", [math.nan])], title="t")
    assert "median 0.500" in svg
    assert "1 missing" in svg
    assert "no score" in words(svg)


def test_bars_mark_their_baselines() -> None:
    svg = bars([Bar("m", 0.75, 0.7, 0.8, 0.5), Bar("n", -0.25)], title="t", baseline_label="moved region")
    assert "baseline 0.500" in svg
    assert {"0.750", "−0.250", "moved region"} <= set(words(svg))


def test_scatter_leaves_out_what_has_no_place() -> None:
    svg = scatter([Point("here", 1, 2), Point("nowhere", math.nan, 2)], title="t", x_label="x", y_label="y")
    assert "here" in words(svg)
    assert "nowhere" not in svg


def test_bumps_pass_over_missing_ranks() -> None:
    svg = bumps([Ranks("a", [1, math.nan, 2]), Ranks("b", [2, 1, 1])], ["x", "y", "z"], title="t")
    assert "a: 1 under x and 2 under z" in svg


def test_ranks_over_setups_stand_in_the_order_of_their_number():
    methods = [Ranks("steady", [1, 1, 1]), Ranks("slipping", [2, 3, 2]), Ranks("gone", [math.nan] * 3)]
    chart = ranks_over([0.9, 0.1, 0.5], methods, title="t", x_label="scope")
    assert re.findall(r'class="tick"[^>]*>([\d.]+)<', chart)[:3] == ["0.10", "0.50", "0.90"]
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', chart.split("slipping: rank 2")[1])[:3]]
    assert heights[0] > heights[1] == heights[2]  # rank 3 at the lowest number, which comes first
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', chart)[:3]]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    assert places[1] - places[0] > 20
    assert "gone: rank" not in chart


def ticks_of(svg: str) -> list[tuple[str | None, str]]:
    return [
        (node.get("x"), "".join(node.itertext()))
        for node in parsed(svg).iter(f"{SVG}text")
        if node.get("class") == "tick"
    ]


def test_charts_given_each_others_numbers_have_one_axis() -> None:
    low, high = [0.1, 0.2, 0.3], [5.0, 6.0, 9.0]
    violins = [strips([Spread("m", values)], title="t", within=[*low, *high]) for values in (low, high)]
    assert ticks_of(violins[0]) == ticks_of(violins[1])
    dots = [interval_ranking([Estimate("m", *values)], title="t", within=[*low, *high]) for values in (low, high)]
    assert ticks_of(dots[0]) == ticks_of(dots[1])
    assert ticks_of(strips([Spread("m", low)], title="t")) != ticks_of(violins[0])
    assert ticks_of(interval_ranking([Estimate("m", *low)], title="t")) != ticks_of(dots[0])


def test_several_controls_differ_by_their_dashes_also_at_their_names() -> None:
    lines = [Line(name, [0, 1], [0, 1], control=True) for name in ("random", "edges", "oracle")]
    groups = list(parsed(curves([*lines, Line("m", [0, 1], [1, 0], colour=0)], title="t")).iter(f"{SVG}g"))
    drawn, named = (
        [
            node.get("class")
            for node in groups
            if any(path.get("class") == part for path in node.iter(f"{SVG}path")) and "cq" in str(node.get("class"))
        ]
        for part in ("line", "lead")
    )
    assert sorted(map(str, drawn)) == ["cq control d0", "cq control d1", "cq control d2"]
    assert sorted(map(str, named)) == sorted(map(str, drawn))
    style = (files("heatproof.report") / "style.css").read_text(encoding="utf-8")
    dashes = [re.search(rf"\.d{at} {{ --dash: ([^;]+);", style) for at in range(DASHES)]
    assert len({found[1] for found in dashes if found}) == DASHES


def names_of(svg: str) -> dict[tuple[str, str | None], tuple[float, float]]:
    """(words, anchor) -> where each name stands."""
    return {
        (str(node.text), node.get("text-anchor")): (float(node.get("x", "nan")), float(node.get("y", "nan")))
        for node in parsed(svg).iter(f"{SVG}text")
        if node.get("class") == "name"
    }


TIED = [Ranks(f"m{at}", [rank, rank], at) for at, rank in enumerate([2, 2, 2, 4.5, 4.5, 6])]
ALL_FIRST = [Ranks(f"m{at}", [1, 1], at) for at in range(6)]


@pytest.mark.parametrize("methods", [TIED, ALL_FIRST], ids=["some", "all"])
def test_names_of_tied_methods_do_not_overprint_each_other(methods: list[Ranks]) -> None:
    both = names_of(bumps(methods, ["x", "y"], title="t"))
    last = names_of(ranks_over([0.1, 0.2], methods, title="t", x_label="x"))
    for names, anchor in ((both, "end"), (both, None), (last, None)):
        heights = {name: y for (name, side), (_, y) in names.items() if side == anchor}
        assert sorted(heights) == [f"m{at}" for at in range(6)]
        assert np.diff(sorted(heights.values())).min() >= 13
        assert sorted(heights, key=heights.__getitem__) == sorted(heights)  # still in the order of the ranks


def test_names_that_had_to_move_are_joined_to_their_line() -> None:
    assert bumps(TIED, ["x", "y"], title="t").count('class="lead"') >= 6
    apart = [Ranks(f"m{at}", [at + 1, at + 1]) for at in range(4)]
    assert 'class="lead"' not in bumps(apart, ["x", "y"], title="t")


def test_mean_ranks_of_two_digits_leave_the_names_alone() -> None:
    names = {f"method_with_a_name_{at:02d}": float(at) for at in range(1, 15)}
    nodes = list(parsed(critical_difference(names, 2.0, title="t")).iter(f"{SVG}text"))
    label = max(len(str(node.text)) for node in nodes if node.get("class") == "label")
    starts = [
        float(node.get("x", "nan")) - CHARACTER * len(str(node.text)) for node in nodes if node.get("class") == "value"
    ]
    assert len(starts) == 14
    assert min(starts) >= 2 + CHARACTER * label


LONG = "mosaic_precision, signed methods only"
BY_LABEL = {
    "interval_ranking": lambda name: interval_ranking([Estimate(name, 0.5, 0.4, 0.6)], title="t"),
    "curves": lambda name: curves([Line(name, [0, 1], [0, 1])], title="t"),
    "strips": lambda name: strips([Spread(name, [0.1, 0.2])], title="t"),
    "bars": lambda name: bars([Bar(name, 0.5)], title="t"),
    "bumps": lambda name: bumps([Ranks(name, [1, 2]), Ranks("b", [2, 1])], ["x", "y"], title="t"),
    "critical_difference": lambda name: critical_difference({name: 1.2, "b": 1.8}, 0.3, title="t"),
    "ranks_over": lambda name: ranks_over([0, 1], [Ranks(name, [1, 1])], title="t", x_label="x"),
}


def width(svg: str) -> float:
    return float((parsed(svg).get("viewBox") or "").split()[2])


@pytest.mark.parametrize("chart", BY_LABEL)
def test_long_labels_get_the_room_they_need(chart: str) -> None:
    drawn = BY_LABEL[chart](LONG)
    assert LONG in {str(node.text) for node in parsed(drawn).iter(f"{SVG}text")}
    grown = width(drawn) - width(BY_LABEL[chart]("m" * 22))
    assert grown >= (len(LONG) - 22) * CHARACTER - 0.2  # the numbers' part does not pay for it
    endless = BY_LABEL[chart]("m" * 300)
    assert width(endless) < 1000
    assert "m…" in endless


def test_what_half_a_page_cannot_hold_gets_the_whole_row() -> None:
    assert 'class="chart broad"' in BY_LABEL["curves"](LONG)
    assert "broad" not in BY_LABEL["curves"]("integrated_gradients")


def test_labels_of_a_matrix_are_cut_where_they_stay_apart() -> None:
    names = [f"insertion(occlusion=telea/superpixels, window={window})" for window in ("late", "wide")]
    nodes = list(parsed(heatmap(np.eye(2), names, names, title="t")).iter(f"{SVG}text"))
    assert len({node.text for node in nodes if node.get("class") == "label"}) == 2
    cut = heatmap(np.eye(2), ["a" * 40, "b" * 40], ["a" * 40, "b" * 40], title="t")
    assert f"{'a' * 19}…" in cut
