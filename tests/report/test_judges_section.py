"""Metrics on trial within a run: their cards come from its rows, and the report ranks them."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest
from fraudulent_metrics import FlippedMetric

import heatproof
from heatproof import registry
from heatproof.audit.judges.bench import Bench
from heatproof.audit.judges.graded_maps import Truth
from heatproof.audit.judges.ladders import ladder_of, shown_on
from heatproof.audit.judges.on_trial import OnTrial
from heatproof.methods.controls import Oracle
from heatproof.protocols.judges import Judges
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.judges import cards_of, judges
from heatproof.results import Results
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.stats.judges.evidence import Shown
from heatproof.stats.judges.measured import measured
from heatproof.testing import stage
from heatproof.traits import Measures
from heatproof.types import Attribution

METRICS = [parse("metric", "relevance_rank"), parse("metric", "random_logit"), FlippedMetric()]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    studies = Judges(METRICS, pictures=12).studies(methods=["saliency", "grad_cam", "integrated_gradients(steps=4)"])
    return heatproof.run(studies, tmp_path_factory.mktemp("judges"))


def test_cards_are_those_of_an_audit_of_the_same_pictures(results: Results) -> None:
    found = {card.metric: card for card in cards_of(Reading(results), "two_factor", "embedded:object")}
    assert set(found) == {recipe.label(one) for one in METRICS}
    assert found["relevance_rank"].verdict != "flagged"
    assert found["random_logit"].agreement.truth.low > 0.9
    flipped = found[recipe.label(FlippedMetric())]
    assert {"order", "dose"} <= {flag.rule for flag in flipped.flags}
    (rows,) = results.pictures["right"].value_counts()[[True]]
    assert found["relevance_rank"].pictures == rows  # those that the model gets right
    assert found["relevance_rank"].retest.forms


def test_the_report_says_which_metric_to_use(results: Results) -> None:
    html = judges(Reading(results))
    assert html is not None
    text = re.sub(r"<[^>]+>", "", html)
    assert "Does the map lie on the object?" in text
    assert "relevance_rank" in text
    assert f"Not on such data: {recipe.label(FlippedMetric())}" in text
    assert "What was flagged" in text


def test_a_metric_on_trial_scores_as_it_does_elsewhere() -> None:
    model, batch = stage(3)
    inner = parse("metric", "relevance_rank")
    trial = OnTrial(inner)
    for method in (parse("method", "saliency"), Oracle()):
        attribution = Attribution(model, batch, method, method(model, batch))
        scored = trial(attribution)
        assert scored.values.tolist() == inner(attribution).values.tolist()
    alone = trial(Attribution(model, batch.select([1]), Oracle(), Oracle()(model, batch.select([1]))))
    for name, values in scored.details.items():
        assert values[1].isnan() == alone.details[name][0].isnan()
        assert float(values[1].nan_to_num()) == pytest.approx(float(alone.details[name][0].nan_to_num()), abs=1e-5), (
            name
        )


@pytest.mark.parametrize("measures", ["localisation", "robustness", "randomisation", "axiom"])
def test_the_maps_that_are_announced_are_those_that_are_shown(measures: Measures) -> None:
    model, batch = stage(1)
    rungs = Bench(Truth(Oracle()), {}, model, batch, draws=0, others=False).rungs(ladder_of(measures))
    assert tuple(Shown(one.name, one.kind, one.dose) for one in rungs.sources) == shown_on(ladder_of(measures))


def test_a_run_of_all_protocols_leaves_the_judges_out() -> None:
    names = {name for name, _ in registry.find("protocol", "all").protocols()}
    assert "judges" not in names
    assert "robustness" in names


def test_measured_cards_are_of_metrics_that_exist_and_make_sentences() -> None:
    stored = json.loads((files("heatproof.stats.judges") / "measured.json").read_text())
    assert {line["metric"] for line in stored} == set(measured())
    for label, lines in measured().items():
        assert recipe.label(parse("metric", label)) == label
        assert all(line.sentence.endswith(".") and str(line.pictures) in line.sentence for line in lines)


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_pictures_are_refused(count: int) -> None:
    with pytest.raises(heatproof.HeatproofError, match="at least 4"):
        Judges(pictures=count)
