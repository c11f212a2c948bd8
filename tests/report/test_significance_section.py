"""Who beats whom: the direction of matrix, diagram and table, and what no difference may be taken for."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.significance import matrix, pair_table, significance
from heatproof.results import Results
from heatproof.results.run_info import run_info
from heatproof.stats.groups import Groups

LEVELS = {"low": 0.1, "middle": 0.4, "high": 0.9}
PANEL = Panel("m", "d", "net")


def run_of(
    scores: dict[str, np.ndarray],
    higher: bool = True,
    controls: tuple[str, ...] = (),
    groups: Groups | None = None,
) -> Reading:
    rows = [
        {"dataset": "d", "model": "net", "method": method, "metric": "m", "image": f"{at}", "value": float(value)}
        | {"status": "ok", "note": "", "seconds": 0.1}
        for method, values in scores.items()
        for at, value in enumerate(values)
    ]
    methods = {name: {"control": name in controls} for name in scores}
    info = {"metrics": {"m": {"name": "m", "higher_is_better": higher}}, "methods": methods}
    known = {} if groups is None else {"d": groups}
    return Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info), groups=known))


def apart(higher: bool, controls: tuple[str, ...] = ()) -> Reading:
    dice = np.random.default_rng(0)
    return run_of({name: level + dice.normal(0, 0.02, 20) for name, level in LEVELS.items()}, higher, controls)


def shades(reading: Reading) -> dict[tuple[str, str], str]:
    """(row, column) -> shade, read off the tooltips of the drawn matrix."""
    tests = reading.pairs(PANEL)
    assert tests is not None
    drawn = matrix(reading, PANEL, tests)
    cells = re.findall(r'<g class="h(\w+)"><title>(\w+) − (\w+): mean', drawn)
    return {(first, second): shade for shade, first, second in cells}


@pytest.mark.parametrize(("higher", "better", "worse"), [(True, "high", "low"), (False, "low", "high")])
def test_a_row_is_warm_where_its_method_is_the_better_one(higher: bool, better: str, worse: str) -> None:
    seen = shades(apart(higher))
    assert seen[better, worse] == "p5"
    assert seen[worse, better] == "n5"


@pytest.mark.parametrize(("higher", "order"), [(True, ["high", "middle", "low"]), (False, ["low", "middle", "high"])])
def test_the_diagram_of_ranks_begins_with_the_better_one(higher: bool, order: list[str]) -> None:
    page = significance(apart(higher))
    assert page is not None
    diagram = page.split('aria-label="Mean ranks by m"')[1]
    assert re.findall(r"<title>(\w+): mean rank ([\d.]+)</title>", diagram) == [
        (name, f"{rank}.00") for rank, name in enumerate(order, 1)
    ]


def test_a_weak_effect_that_is_significant_does_not_look_like_none() -> None:
    dice = np.random.default_rng(1)
    base = dice.normal(0, 1, 3000)
    reading = run_of({"a": base + dice.normal(0.08, 1, 3000), "b": base})
    tests = reading.pairs(PANEL)
    assert tests is not None
    row = tests.frame.iloc[0]
    assert row["significant"]
    assert 0 < row["effect"] < 0.1
    assert shades(reading) == {("a", "b"): "p1", ("b", "a"): "n1"}


def test_a_difference_that_is_not_significant_is_neutral() -> None:
    dice = np.random.default_rng(0)
    assert set(shades(run_of({name: dice.normal(size=12) for name in "ab"})).values()) == {"z"}


def cells(table: str) -> list[list[str]]:
    return [
        [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table)
    ]


@pytest.mark.parametrize("higher", [True, False])
def test_every_pair_is_written_out_with_its_numbers(higher: bool) -> None:
    reading = apart(higher)
    page = significance(reading)
    assert page is not None
    table = pair_table(reading, PANEL)
    assert table in page
    assert table.startswith('<details class="pairs"><summary>3 pairs in numbers</summary>')
    head, *rows = cells(table)
    assert head == ["method", "against", "mean difference", "effect", "adjusted p ↓", "images"]
    assert len(rows) == 3
    first = rows[1]  # best against worst
    assert first[:2] == (["high", "low"] if higher else ["low", "high"])
    assert first[2].startswith("0.8" if higher else "−0.8")  # the method less the other, whatever is better
    assert float(first[3]) > 10  # above 0: the method is the better one
    tests = reading.pairs(PANEL)
    assert tests is not None
    wanted = tests.frame.set_index(["method_a", "method_b"])["p_adjusted"]["low", "high"]
    assert float(first[4].replace("−", "-")) == pytest.approx(wanted, rel=0.06)
    assert first[5] == "20"


def test_pairs_with_a_control_come_last() -> None:
    _, *rows = cells(pair_table(apart(True, controls=("high",)), PANEL))
    assert [("high" in row[:2]) for row in rows] == [False, True, True]


def test_a_p_too_small_for_the_machine_is_not_called_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = apart(True)
    tests = reading.pairs(PANEL)
    assert tests is not None
    tests.frame["p_adjusted"] = 0.0
    assert matrix(reading, PANEL, tests).count("adjusted p &lt; 1e−300,") == 6
    assert pair_table(reading, PANEL).count('data-v="0">&lt; 1e−300</td>') == 3


def test_what_friedman_does_not_reject_is_not_called_absent() -> None:
    dice = np.random.default_rng(0)
    page = significance(run_of({name: dice.normal(size=12) for name in "abc"}))
    assert page is not None
    assert "these images cannot show that any two differ (Friedman&#x27;s test)" in page
    assert "no difference" not in page
    assert "cannot show" not in str(significance(apart(True)))


def test_ranks_of_pictures_that_share_patients_are_those_of_patients() -> None:
    dice = np.random.default_rng(0)
    of = np.repeat(np.arange(12), 5)
    scores = {name: dice.normal(size=12)[of] + dice.normal(0, 0.1, 60) for name in ("a", "b", "c")}
    labels = pd.DataFrame({"patient": [f"P{one}" for one in of], "site": of // 2}, index=[f"{at}" for at in range(60)])
    alone = significance(run_of(scores))
    nested = significance(run_of(scores, groups=Groups(labels, {"patient": "sampled", "site": "sampled"})))
    patients = significance(run_of(scores, groups=Groups(labels[["patient"]], {"patient": "sampled"})))
    assert alone is not None
    assert patients is not None
    assert nested is not None
    assert "mean rank per image" in alone
    assert "mean rank per patient" in patients
    assert "mean rank per site" in nested  # six sites, which the patients lie in
    gaps = [float(re.findall(r"critical difference ([\d.]+)", page)[0]) for page in (alone, patients, nested)]
    assert gaps[1] == pytest.approx(gaps[0] * np.sqrt(5), rel=0.02)
    assert gaps[2] == pytest.approx(gaps[0] * np.sqrt(10), rel=0.02)
