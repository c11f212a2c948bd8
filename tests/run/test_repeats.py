"""Repeats of random methods under other seeds: cheap, resumed, the same whatever the workers, and beside the scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import heatproof
from heatproof import registry
from heatproof.attribute import attribute
from heatproof.cli import app
from heatproof.errors import BadInput, HeatproofError
from heatproof.methods import LIME, Edges, GuidedIG, IntegratedGradients, Inverted, PredDiff, RandomWeights, Saliency
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.histogram import Histogram
from heatproof.run.repeats import other_dice, repeated_pictures
from heatproof.spec.study import Study
from heatproof.testing import stage
from heatproof.traits import is_random, method_traits

LUCKY = LIME(samples=20)


def study(**changes):
    about = {"limit": 24, "methods": [LUCKY, Saliency(), "random"], "metrics": ["sparseness", "pointing_game"]}
    return Study(models=["embedded:object"], datasets=["two_factor"], **{**about, **changes})


def rows(results):
    return results.repeats.sort_values(list(results.repeats.columns)).reset_index(drop=True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("repeats") / "run"
    return heatproof.run(study(), root), root


def test_only_random_methods_are_repeated_and_on_few_pictures(finished):
    results, _ = finished
    met = results.repeats
    assert set(met["method"]) == {"lime(samples=20)"}
    assert set(met["repeat"]) == {1, 2}
    assert met["image"].nunique() == repeated_pictures(24) == 3
    assert len(met) == 2 * 3 * 2  # metrics, pictures, seeds
    assert set(met["image"]) <= set(results.scores["image"])
    assert len(results.scores) == 24 * 3 * 2  # the scores are those of the study alone


def test_luck_is_the_difference_between_seeds(finished):
    results, _ = finished
    (found,) = results.luck("sparseness")
    own = results.table("sparseness").droplevel(["dataset", "model"])["lime(samples=20)"]
    again = results.repeats[results.repeats["metric"] == "sparseness"].pivot_table("value", "image", "repeat")
    by_picture = np.column_stack([own[again.index], again])
    assert found.luck == pytest.approx(np.sqrt(by_picture.var(axis=1, ddof=1).mean()))
    assert found.luck > 0
    assert found.spread == pytest.approx(own.std())


def test_a_resumed_run_repeats_nothing_and_has_the_same_numbers(finished, tmp_path):
    results, root = finished
    units = sorted(path.stat().st_mtime_ns for path in (root / "parts").iterdir())
    resumed = heatproof.run(study(), root)
    assert sorted(path.stat().st_mtime_ns for path in (root / "parts").iterdir()) == units
    pd.testing.assert_frame_equal(rows(resumed), rows(results))
    again = heatproof.run(study(), tmp_path / "workers", workers=2)
    pd.testing.assert_frame_equal(rows(again), rows(results), rtol=1e-5)


def test_more_pictures_and_other_methods_leave_the_repeats_of_a_method_alone(finished, tmp_path):
    results, _ = finished
    other = heatproof.run(study(methods=[LUCKY]), tmp_path)
    pd.testing.assert_frame_equal(rows(other), rows(results), rtol=1e-5)


def test_none_are_made_where_none_are_wanted_or_pictures_are_few(tmp_path):
    assert heatproof.run(study(repeats=0, limit=8), tmp_path / "none").repeats.empty
    assert heatproof.run(study(limit=4), tmp_path / "few").repeats.empty
    assert not (tmp_path / "few" / "repeats.parquet").exists()
    with pytest.raises(BadInput, match="repeats must be from 0"):
        study(repeats=-1)


def test_the_report_and_the_table_show_luck(finished):
    results, root = finished
    page = heatproof.report(results, root / "page.html").read_text()
    section = page.split('<section id="luck"')[1].split("</section>")[0]
    assert "How much is luck" in section
    assert "lime" in section
    assert "saliency" not in section
    shown = CliRunner().invoke(app, ["table", str(root), "--luck", "--format", "csv"])
    assert shown.exit_code == 0, shown.output
    assert "mean_moves" in shown.output.splitlines()[0]
    assert len(shown.output.strip().splitlines()) == 3
    assert CliRunner().invoke(app, ["table", str(root), "--luck", "--pairs"]).exit_code == 2


def test_a_run_without_random_methods_has_no_such_section(tmp_path):
    results = heatproof.run(study(methods=["saliency", "edges"], limit=8, metrics=["sparseness"]), tmp_path)
    assert '<section id="luck"' not in heatproof.report(results, tmp_path / "page.html").read_text()
    shown = CliRunner().invoke(app, ["table", str(tmp_path), "--luck"])
    assert shown.exit_code != 0
    assert "no random method was repeated" in shown.output


def test_methods_are_random_by_what_they_hold():
    assert is_random(Inverted(LUCKY))
    assert is_random(RandomWeights(LUCKY))
    assert is_random(PredDiff(Occlusion(Histogram())))
    assert is_random(IntegratedGradients(baseline="uniform"))
    assert is_random(GuidedIG(baseline="gaussian"))
    for one in (Edges(), Saliency(), PredDiff(), IntegratedGradients(), GuidedIG(), Inverted(Saliency())):
        assert not is_random(one), one


CHEAPER = {
    "attexplore": {"steps": 2, "draws": 2},
    "isa": {"rounds": 3, "steps": 2},
    "agi": {"classes": 2, "steps": 3},
    "lime": {"samples": 20},
    "rise": {"masks": 10},
    "kernel_shap": {"samples": 30},
    "shapley": {"permutations": 2},
    "ig_smoothgrad": {"steps": 2, "draws": 2},
    "guided_ig": {"steps": 5},
    "blur_ig": {"steps": 3},
    "boundary_ig": {"steps": 3, "attack_steps": 5},
    "mfaba": {},
    "extremal_perturbation": {"steps": 4, "cells": 6},
    "xrai": {"steps": 2},
    "local_attribution": {},
}


@pytest.mark.parametrize("name", sorted(registry.names("method")))
def test_what_methods_declare_is_what_another_seed_does(name):
    made = registry.find("method", name)
    known = {field: value for field, value in CHEAPER.get(name, {}).items() if hasattr(made, field)}
    if known:
        made = type(made)(**known)
    model, batch = made.stage() if hasattr(made, "stage") else stage()
    batch = batch.select([0, 1])
    try:
        first = attribute(model, batch, made).maps
        second = attribute(model, other_dice(batch, 1), made).maps
    except HeatproofError:
        return  # it does not apply here; its kin that do are asked
    assert bool((first != second).any()) == is_random(made)
    if method_traits(made).control and name != "random":
        assert not method_traits(made).random
