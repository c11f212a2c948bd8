"""What the section on re-drawn pictures says of its prior, its controls and its references."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.in_distribution import _unfamiliar_pictures, in_distribution
from heatproof.report.sections.ranking import scoreboard
from heatproof.results import Results
from heatproof.results.run_info import run_info
from heatproof.stats.out_of_distribution import alike


@pytest.mark.parametrize(
    ("prior", "datasets", "warned"),
    [
        ("embedded", [{"dataset": "two_factor", "fields": {}}], False),
        ("embedded", [{"dataset": "folder", "fields": {}}], True),
        ("embedded", [{"class": "mine:Pictures", "fields": {}}], True),
        ("diffusers:lesions", [{"dataset": "folder", "fields": {}}], False),
    ],
)
def test_a_prior_that_never_saw_such_pictures_warns(prior: str, datasets: list[Any], warned: bool) -> None:
    study = {"protocol": "in_distribution", "notes": {"prior": prior}, "datasets": datasets}
    reading: Any = SimpleNamespace(info=run_info({"studies": [study]}))
    assert ("never seen such pictures" in _unfamiliar_pictures(reading)) == warned


FUD, GAIN, ENERGY = "fud(controls=[random])", "fud(score=gain, controls=[random])", "energy(of=x)"
PLACE = {"dataset": "d", "model": "m"}


def invented(pictures: tuple[int, ...] = (4,), gain: bool = True) -> Results:
    """Two methods under FUD; one evaluation per number of pictures in the audit."""
    scores, curves, details, message = [], [], [], {}
    controls = {"clean": 0.91, "random": 0.7064, "no_guidance": 0.915, "guidance_only": 0.916, "prior_only": 0.918}
    for method, area in (("lrp", 0.8723), ("saliency", 0.7518)):
        for image in range(3):
            row = {**PLACE, "method": method, "image": f"{image}", "status": "ok", "seconds": 0.1}
            scores.append({**row, "metric": FUD, "value": area, "note": ""})
            details += [{**row, "metric": FUD, "detail": name, "value": value} for name, value in controls.items()]
            if gain:
                scores.append({**row, "metric": GAIN, "value": area - 0.7064, "note": ""})
            start = {"x": [0.0, 0.5], "y": [0.9 + image / 100, 0.5]}
            curves.append({**PLACE, "method": method, "image": f"{image}", "metric": FUD, **start})
    dice = np.random.default_rng(0)
    for at, count in enumerate(pictures):
        label = f"{ENERGY}{at}"
        message[label] = {"evaluation": f"flipping {at}", "statistic": "energy"}
        for image in range(count):
            line = {"x": [0.0, 0.5], "y": dice.normal(size=2).tolist()}
            curves.append({**PLACE, "method": "lrp", "image": f"{image}", "metric": label, **line})
    named = {"name": "fud", "higher_is_better": True}
    metrics = {FUD: named, **({GAIN: {**named, "fields": {"score": "gain"}}} if gain else {})}
    studies = [{"protocol": "in_distribution", "notes": {"audit": message}}]
    info = {"metrics": metrics, "studies": studies, "protocols": ["in_distribution"]}
    return Results(pd.DataFrame(scores), pd.DataFrame(curves), None, run_info(info), pd.DataFrame(details))


def page_of(**how: Any) -> str:
    page = in_distribution(Reading(invented(**how)))
    assert page is not None
    return page


def row_of(page: str, name: str) -> list[str]:
    found = re.search(rf'<th scope="row">{name}</th>(.*?)</tr>', page)
    assert found is not None
    return re.findall(r"<td[^>]*>([^<]*)</td>", found[1])


def test_the_text_compares_with_what_stands_in_the_table() -> None:
    page = page_of()
    assert "untouched picture" in page
    heads = re.findall(r"<button>([^<]+)</button>", page)[:8]
    assert heads[5:] == ["guidance alone", "prior alone", "untouched"]
    assert "“Guidance alone” and “prior alone” remove nothing" in page
    assert row_of(page, "lrp") == ["0.872", "0.706", "0.166", "0.915", "0.916", "0.918", "0.910"]
    assert "clean confidence" not in page


def test_the_gain_is_the_one_that_the_ranking_shows() -> None:
    """Less a control rounded to 0.706 the area would give 0.046."""
    for method in ("lrp", "saliency"):
        board = row_of(scoreboard(Reading(invented()), "d", "m"), method)
        assert row_of(page_of(), method)[2] == board[1]
    assert row_of(page_of(), "saliency")[2] == "0.045"
    assert row_of(page_of(gain=False), "saliency")[2] == "0.045"


def test_the_area_is_never_the_gain() -> None:
    results = invented()
    turned = {**results.info.plain(), "metrics": dict(reversed(results.info.plain()["metrics"].items()))}
    page = in_distribution(Reading(Results(results.scores, results.curves, None, run_info(turned), results.details)))
    assert row_of(str(page), "lrp")[0] == "0.872"


@pytest.mark.parametrize("count", [4, 16])
def test_the_reference_of_fpr95_is_the_one_for_so_many_pictures(count: int) -> None:
    page = page_of(pictures=(count,))
    assert f"<button>FPR95 ({alike(count).fpr95:.2f})</button>" in page
    assert "0.95)" not in page
    assert f"on {count} pictures, an FPR95 of {alike(count).fpr95:.2f} on average" in page
    low, high = alike(count).fpr95_range
    assert f"its FPR95 from {low:.2f} to {high:.2f}, 95 times in 100" in page
    assert all(re.fullmatch(r"\d\.\d\d|0|–", cell) for cell in row_of(page, "flipping 0")[:2])


def test_uneven_numbers_of_pictures_are_reported_row_by_row() -> None:
    page = page_of(pictures=(4, 16))
    assert "<button>FPR95</button>" in page
    for at, count in enumerate((4, 16)):
        assert row_of(page, f"flipping {at}")[2:4] == [f"{alike(count).fpr95:.2f}", str(count)]
    assert "on 4 pictures" in page


@pytest.mark.parametrize(("levels", "shown"), [((0.0, 0.4, 0.8), "1"), ((0.0, 0.2, 0.4), "–")])
def test_the_tau_of_the_mean_curve_stands_beside_that_of_pictures(levels: tuple[float, ...], shown: str) -> None:
    results = invented()
    message = {**results.info.studies[0].notes["audit"], "tau": {"evaluation": "flipping 0", "statistic": "tau"}}
    lines = (((0.0, 0.4, 0.8), (0.9, 0.2, 0.4)), (levels, (0.9, 0.8, 0.1)))
    curves = [
        {**PLACE, "method": "lrp", "image": f"{i}", "metric": "tau", "x": x, "y": y} for i, (x, y) in enumerate(lines)
    ]
    info = {**results.info.plain(), "studies": [{"protocol": "in_distribution", "notes": {"audit": message}}]}
    both = pd.concat([results.curves, pd.DataFrame(curves)])
    page = str(in_distribution(Reading(Results(results.scores, both, None, run_info(info)))))
    heads = re.findall(r"<button>([^<]+)</button>", page[page.index("How far each evaluation") :])
    assert row_of(page, "flipping 0")[heads.index("τ of the mean curve") - 1] in (shown, f"{shown}.00")


def test_the_row_that_serves_as_reference_is_explained_and_counted_like_any_other() -> None:
    results = invented(pictures=(4, 16))
    message = results.info.studies[0].notes["audit"]
    message[f"{ENERGY}1"] = {"evaluation": "whole <b>", "statistic": "energy", "reference": "yes"}
    page = str(in_distribution(Reading(results)))
    assert "“Whole &lt;b&gt;” are intact and as natural as the originals" in page
    assert row_of(page, "whole &lt;b&gt;")[2:4] == [f"{alike(16).fpr95:.2f}", "16"]
    assert "as natural as the originals" not in page_of(pictures=(4, 16))


def test_models_are_audited_apart() -> None:
    one = invented(pictures=(8,))
    curves = one.curves[one.curves["metric"] != FUD]
    flat = [[y[0], y[0]] for y in curves["y"]]  # the other model cannot tell samples from originals
    both = pd.concat([one.curves, curves.assign(model="other", y=flat)])
    page = str(in_distribution(Reading(Results(one.scores, both, None, one.info))))
    audit = page[page.index("How far each evaluation") :]
    assert re.findall("<h4>(.*?)</h4>", audit) == ["m on d", "other on d"]
    rows = [row_of(part, "flipping 0") for part in audit.split("<h4>")[1:]]
    assert rows[0][:2] == row_of(page_of(pictures=(8,)), "flipping 0")[:2]
    assert rows[1][0] == "0.50"
