"""Other packages' names: each resolves to a component here, with settings that fields can replace."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from heatproof import registry
from heatproof.errors import BadInput, UnknownName
from heatproof.metrics.max_sensitivity import MaxSensitivity
from heatproof.metrics.mosaic import MosaicPrecision
from heatproof.metrics.pixel_flipping import MIF, SRG
from heatproof.metrics.sparseness import Sparseness
from heatproof.spec import recipe
from heatproof.spec.parse import parse

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "coming-from-quantus.md").read_text()
ALIASES = registry.aliases("metric")

QUANTUS = [
    "MaxSensitivity",
    "AvgSensitivity",
    "LocalLipschitzEstimate",
    "Continuity",
    "RelativeInputStability",
    "RelativeOutputStability",
    "RelativeRepresentationStability",
    "ModelParameterRandomisation",
    "MPRT",
    "SmoothMPRT",
    "EfficientMPRT",
    "RandomLogit",
    "Sparseness",
    "Complexity",
    "EffectiveComplexity",
    "Completeness",
    "FaithfulnessCorrelation",
    "FaithfulnessEstimate",
    "SensitivityN",
    "Infidelity",
    "Monotonicity",
    "MonotonicityCorrelation",
    "PixelFlipping",
    "RegionPerturbation",
    "Selectivity",
    "IROF",
    "ROAD",
    "PointingGame",
    "TopKIntersection",
    "RelevanceRankAccuracy",
    "RelevanceMassAccuracy",
    "AttributionLocalisation",
    "AUC",
    "Focus",
]


@pytest.mark.parametrize("name", [*ALIASES, *QUANTUS, "sensitivity_max", "infidelity", "Insertion", "Deletion", "AbPC"])
def test_the_name_makes_a_component_whose_recipe_is_its_own(name):
    component = parse("metric", name)
    kind, registered = registry.name_of(component)
    assert kind == "metric"
    assert registered in registry.names("metric")
    stored = recipe.plain(component)
    assert stored["metric"] == registered  # never the alias
    assert recipe.plain(recipe.build(stored)) == stored


def test_an_alias_is_no_metric_of_its_own():
    assert not set(ALIASES) & set(registry.names("metric"))
    assert all(len(one.about) > 10 for one in ALIASES.values())
    assert "AbPC" in registry.aliases("metric", "srg")
    assert "AbPC" not in registry.aliases("metric", "mif")


def test_settings_match_and_fields_replace_them():
    assert parse("metric", "MaxSensitivity") == MaxSensitivity(radius=0.2, draws=200)
    assert parse("metric", "MaxSensitivity(draws=3)") == MaxSensitivity(radius=0.2, draws=3)
    assert parse("metric", "sensitivity_max") == MaxSensitivity(radius=0.02, draws=10)
    assert parse("metric", "Sparseness") == Sparseness()
    assert parse("metric", "Focus") == MosaicPrecision()
    assert parse("metric", "AbPC") == SRG()
    flipping = parse("metric", "PixelFlipping(points=5)")
    assert isinstance(flipping, MIF)
    assert flipping.points == 5
    assert flipping.occlusion.name == "constant/pixels"
    with pytest.raises(UnknownName, match="field of metric"):
        parse("metric", "PixelFlipping(steps_at_once=5)")


def test_an_unknown_name_is_refused_with_the_nearest_alias():
    with pytest.raises(UnknownName, match="PixelFlipping"):
        registry.entry("metric", "PixelFliping")


def test_an_alias_takes_no_name_that_is_taken_and_says_what_it_is(monkeypatch):
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    with pytest.raises(BadInput, match="two metrics"):
        registry.metric.alias("srg", MIF, "Somebody's. Equal.")
    with pytest.raises(BadInput, match="must say"):
        registry.metric.alias("Other", MIF, "  ")
    with pytest.raises(UnknownName):
        registry.metric.alias("Other", MIF, "Somebody's. Equal.", sides=3)


def test_the_list_says_which_names_a_metric_has():
    row = recipe.listed(registry.entry("metric", "mif"))
    assert {"PixelFlipping", "IROF", "Selectivity", "RegionPerturbation"} <= set(row["aliases"])
    described = recipe.listed(registry.entry("metric", "sparseness"))
    assert described["measures"] == "description"
    assert described["cost"] == {"forward": 0, "shared": 0, "explanations": 0}
    assert json.dumps([recipe.listed(registry.entry("metric", name)) for name in registry.names("metric")])


def _bench():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import quantus_numbers
    finally:
        sys.path.pop(0)
    return quantus_numbers


def test_the_page_holds_what_was_measured_and_every_name():
    bench = _bench()
    stored = json.loads(bench.STORED.read_text())
    assert bench.filled(bench.filled(PAGE, "numbers", bench.table(stored)), "names", bench.names()) == PAGE
    assert {name for name, row in stored.items() if "here" in row} == set(bench.PAIRS)


@pytest.mark.parametrize("name", list(_bench().PAIRS))
def test_heatproof_still_says_what_the_page_says(name):
    bench = _bench()
    row = json.loads(bench.STORED.read_text())[name]
    assert bench.ours(bench.PAIRS[name][1]) == pytest.approx(row["heatproof"], abs=2e-4)


def _peers():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import peer_numbers
    finally:
        sys.path.pop(0)
    return peer_numbers


def test_pytorch_grad_cam_and_captum_say_what_the_page_says():
    bench = _peers()
    stored = json.loads(bench.STORED.read_text())
    assert bench.filled(PAGE, "peers", bench.table(stored)) == PAGE
    now = bench.measured()
    assert set(now) == set(stored)
    for name, row in now.items():
        assert row["heatproof"] == pytest.approx(stored[name]["heatproof"], abs=2e-4), name
        assert row["theirs"] == pytest.approx(stored[name]["theirs"], abs=2e-3), name
    assert now["average increase"]["theirs"] == now["average increase"]["heatproof"]
    assert set(now["average increase"]["theirs"]) == {0.0, 1.0}
    for name, tolerance in (("ROAD", 0.01), ("max sensitivity", 0.1), ("infidelity", 0.02)):
        assert now[name]["theirs"] == pytest.approx(now[name]["heatproof"], abs=tolerance), name


def test_the_drop_there_is_the_drop_here_times_the_confidence():
    bench = _peers()
    pair = bench.pairs()["average drop"]
    found = bench.judged(pair)
    drop = (found.values * found.details["before"]).tolist()
    assert drop == pytest.approx(list(pair.compute()), abs=1e-5)
    assert max(drop) > 0.5


SAME = ("sparseness", "complexity", "pointing game", "relevance rank", "relevance mass", "AUC", "top-k")


def test_both_agree_where_the_page_says_so():
    stored = json.loads(_bench().STORED.read_text())
    for name in SAME:
        assert stored[name]["heatproof"] == pytest.approx(stored[name]["quantus"], abs=2e-4), name
    for name in ("max sensitivity", "average sensitivity", "local Lipschitz", "faithfulness correlation"):
        assert sum(stored[name]["heatproof"]) == pytest.approx(sum(stored[name]["quantus"]), rel=0.03), name
    with_itself = [(1 + 2 * own) / 3 for own in stored["MPRT"]["heatproof"]]  # of two layers
    assert sum(with_itself) == pytest.approx(sum(stored["MPRT"]["quantus"]), rel=0.05)


def test_the_script_of_the_page_works(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "coming-from-quantus.md", "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out
    assert len([line for line in printed.splitlines() if "saliency" in line]) == 5
