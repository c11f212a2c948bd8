"""The section on mosaics: one axis per ratio, and no dot that passes for certainty."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.mosaic_reliability import alphas
from heatproof.report.sections.mosaics import chance, mosaic_panels, mosaics
from heatproof.results import Results
from heatproof.results.run_info import run_info

RATIO = "mosaic_precision"


def invented(methods: int = 4, images: int = 8, noise: float = 0.1, models: tuple[str, ...] = ("m",)) -> Results:
    dice = np.random.default_rng(0)
    rows = [
        {"dataset": "d", "model": model, "method": f"method{at}", "metric": RATIO, "image": f"{i}"}
        | {"value": 0.3 * where + 0.1 * at + dice.uniform(0, noise), "status": "ok", "note": "", "seconds": 0.1}
        for where, model in enumerate(models)
        for at in range(methods)
        for i in range(images)
    ]
    metrics = {RATIO: {"name": RATIO, "higher_is_better": True}}
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info({"metrics": metrics, "protocols": ["mosaics"]}))


def alphas_of(results: Results) -> str:
    reading = Reading(results)
    return alphas(reading, mosaic_panels(reading))


def test_mosaics_on_which_the_model_is_wrong_are_named_and_scored_apart() -> None:
    run = invented()
    truth = pd.DataFrame({"dataset": "d", "model": "m", "image": [f"{i}" for i in range(8)], "label": "a"})
    truth = truth.assign(predicted="b", right=[True, True, *[False] * 6])
    census = [{"dataset": "d", "model": "m", "pictures": 40, "classes": {"a": 40}, "known": 40, "right": 8}]
    accuracy = {"accuracy": {"share": 0.2, "low": 0.1, "high": 0.35}}
    info = dataclasses.replace(run.info, pictures=run_info({"pictures": [census[0] | accuracy]}).pictures)
    page = mosaics(Reading(dataclasses.replace(run, info=info, truth=truth)))
    assert page is not None
    assert "the model is right on 8 of 40 mosaics (20 %, 10–35 %); on the other 32 its maps explain" in page
    assert page.count("rests on a premise that does not hold") == 1
    apart = page.split("Where the model is right, and where it is wrong")[1].split("</table>")[0]
    means = run.table(RATIO)["method0"].droplevel([0, 1])
    for part in (means[:2], means[2:]):
        assert f"{part.mean():.6g}" in apart
    assert "wrong" not in str(mosaics(Reading(run))).split('class="more"')[0]


def test_models_are_compared_on_one_axis() -> None:
    page = mosaics(Reading(invented(models=("m", "n"))))
    assert page is not None
    drawings = [
        one for one in re.findall(r"<svg.*?</svg>", page.split('class="more"')[1]) if f"{RATIO} over mosaics" in one
    ]
    ticks = [tuple(re.findall(r'class="tick"[^>]*>([^<]+)<', one)) for one in drawings]
    assert len(ticks) == 2
    assert ticks[0] == ticks[1]


def test_the_order_of_two_methods_has_no_alpha() -> None:
    page = alphas_of(invented(methods=2))
    assert "only 2 methods" in page
    assert "<circle" not in page
    assert "only" not in alphas_of(invented(methods=3, noise=0.4))


def test_a_dot_without_a_bar_is_explained_as_no_certainty() -> None:
    alike = alphas_of(invented(noise=0.0))  # every mosaic ranks alike
    assert "A dot without a bar is no certainty" in alike
    assert f"{RATIO} (4 methods, 8 mosaics; m on d)" in alike
    assert "A dot without a bar" in alphas_of(invented(images=2))
    unsure = alphas_of(invented(noise=0.4))
    assert 'class="span"' in unsure
    assert "A dot without a bar" not in unsure


def test_alpha_with_and_without_unsigned_methods_can_be_distinguished() -> None:
    results = invented(noise=0.4)
    signed = {"methods": {f"method{at}": {"signed": at > 0} for at in range(4)}}
    page = alphas_of(Results(results.scores, pd.DataFrame(), None, run_info({**results.info.plain(), **signed})))
    labels = re.findall(r'class="label">([^<]+)<', page)
    assert sorted(labels) == [RATIO, f"{RATIO}, signed methods only"]


def test_undefined_scores_are_counted_and_cost_the_other_methods_nothing() -> None:
    results = invented(models=("m", "n"))
    gone = (results.scores["method"] == "method3") & results.scores["image"].isin(list("012345"))
    results.scores.loc[gone, "value"] = np.nan
    results.scores.loc[gone, "status"], results.scores.loc[gone, "note"] = "undefined", "no positive relevance"
    page = mosaics(Reading(results)) or ""
    carried = page.split("Does the ranking carry over?")[1]
    assert re.search(r"2 models</td><td>d</td><td class=\"num\">4</td><td class=\"num\">12</td>", carried)
    counts = re.search(r"m, mosaics of 8</th>(.*?)</tr>", carried)
    assert counts is not None
    assert re.findall(r">(\d+)<", counts[1]) == ["8", "8", "8", "2"]


@pytest.mark.parametrize(("grid", "precision", "f1"), [(2, 1 / 2, 1 / 2), (3, 4 / 9, 8 / 17), (4, 1 / 2, 1 / 2)])
def test_chance_is_the_share_of_tiles_that_show_the_target(grid: int, precision: float, f1: float) -> None:
    results = invented()
    info = dict(results.info.plain(), studies=[{"protocol": "mosaics", "notes": {"grid": grid}}])
    names = {"mosaic_f1": f1, "mosaic_recall": 0.5, "mosaic_accuracy": 0.5, RATIO: precision}
    info["metrics"] = {name: {"name": name, "higher_is_better": True} for name in names}
    reading = Reading(Results(results.scores, pd.DataFrame(), None, run_info(info)))
    for name, wanted in names.items():
        assert chance(reading, Panel(name, "d", "m")) == pytest.approx(wanted)
    own = dict(info, studies=[{"protocol": "mosaics", "notes": {"grid": 2, "plans": {"d": {"grid": 3}}}}])
    reading = Reading(Results(results.scores, pd.DataFrame(), None, run_info(own)))
    assert chance(reading, Panel(RATIO, "d", "m")) == pytest.approx(4 / 9), "a data set may have a plan of its own"


def test_the_line_in_the_chart_stands_at_chance() -> None:
    results = invented(noise=0.6)  # from 0 to 0.9, so that the line does not widen the axis
    places = []
    for grid in (2, 3):
        info = dict(results.info.plain(), studies=[{"protocol": "mosaics", "notes": {"grid": grid}}])
        page = mosaics(Reading(Results(results.scores, pd.DataFrame(), None, run_info(info)))) or ""
        chart = next(
            one for one in re.findall(r"<svg.*?</svg>", page.split('class="more"')[1]) if f"{RATIO} over mosaics" in one
        )
        line = next(one for one in re.findall(r"<[^>]*>", chart) if "reference" in one)
        places.append(float(re.findall(r"\d+\.?\d*", line)[0]))
    assert places[1] < places[0]


def test_methods_that_fail_together_are_held_against_that_chance() -> None:
    """Precisions of 0.47 are below one half and above 4 of 9 tiles."""
    results = invented(methods=2, noise=0.0)
    results.scores["value"] = 0.46 + 0.001 * results.scores["image"].astype(int)
    for grid, message in ((2, True), (3, False)):
        info = dict(results.info.plain(), studies=[{"protocol": "mosaics", "notes": {"grid": grid}}])
        page = mosaics(Reading(Results(results.scores, pd.DataFrame(), None, run_info(info)))) or ""
        assert ("both score badly" in page) is message
        assert ("worse than chance" in page) is not message


def test_maps_of_one_sign_are_named() -> None:
    results = invented()
    rows = results.scores.assign(detail="one_sign", value=(results.scores["method"] == "method1").astype(float))
    unsigned = {**results.info.plain(), "methods": {"method2": {"signed": False}}}
    page = mosaics(Reading(Results(results.scores, pd.DataFrame(), None, run_info(unsigned), rows))) or ""
    assert "8 mosaics on which method1 has no negative relevance" in page
    assert "on which method0" not in page
    assert "Judged by precision only, their maps being never negative: method2<" in page
