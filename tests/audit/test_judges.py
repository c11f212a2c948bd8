"""Metrics on trial: frauds are found, sound ones hold, and the numbers of a card are what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from fraudulent_metrics import FRAUDS, CentrednessMetric, ConfidenceMetric, ConstantMetric, FlippedMetric, NoiseMetric
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from typer.testing import CliRunner

import heatproof
from heatproof.audit.judges import page
from heatproof.audit.judges.evidence import Trial
from heatproof.audit.judges.graded_maps import Noise, Spoilt, Truth, shuffled
from heatproof.audit.judges.judge_card import mean_of, ranks_alpha, spearman, split_half, wins
from heatproof.audit.judges.metaquantus import _of, p_value, same_ranks
from heatproof.audit.judges.panel import Panel
from heatproof.audit.judges.price import passes_of
from heatproof.cli import app
from heatproof.methods.controls import Edges, Oracle
from heatproof.spec import recipe
from heatproof.spec.parse import components, parse
from heatproof.testing import stage
from heatproof.types import Attribution, Scores

CHEAP = "auc_iou,relevance_mass,relevance_rank,single_deletion,sparseness"
HONEST = "srg,mif,lif,insertion,deletion,auc_iou,pointing_game,relevance_mass,relevance_rank,auroc,single_deletion"


@pytest.fixture(scope="module")
def panel() -> Panel:
    judges = [*FRAUDS, *components("metric", CHEAP)]
    return heatproof.audit("embedded:object", "two_factor", judges, limit=16, disturbances=1)


@pytest.mark.parametrize("fraud", FRAUDS, ids=lambda one: type(one).__name__)
def test_frauds_are_flagged_and_stand_behind_every_sound_metric(panel: Panel, fraud: object) -> None:
    card = panel.card(recipe.label(fraud))
    assert card.verdict == "flagged"
    assert all(flag.reason for flag in card.flags)
    places = [one.metric for one in panel.cards if one.verdict != "description"]
    assert places.index(card.metric) >= len(places) - len(FRAUDS)


@pytest.mark.parametrize(
    ("fraud", "rule"),
    [
        (NoiseMetric(), "order"),
        (ConstantMetric(), "constant"),
        (ConfidenceMetric(), "constant"),
        (CentrednessMetric(), "blind"),
        (FlippedMetric(), "order"),
        (FlippedMetric(), "dose"),
    ],
)
def test_each_fraud_breaks_the_rule_that_was_made_for_it(panel: Panel, fraud: object, rule: str) -> None:
    assert rule in {flag.rule for flag in panel.card(recipe.label(fraud)).flags}


@pytest.mark.parametrize("name", ["auc_iou", "relevance_mass", "relevance_rank", "single_deletion"])
def test_sound_metrics_hold(panel: Panel, name: str) -> None:
    card = panel.card(name)
    assert card.verdict == "holds", card.flags
    assert card.order.truth_over_noise.low > 0.5
    assert card.agreement.truth.low > 0.3
    assert card.span.standard_errors > 2


def test_descriptions_have_a_card_and_no_verdict(panel: Panel) -> None:
    card = panel.card("sparseness")
    assert card.verdict == "description"
    assert not card.flags
    assert card.cost.passes.each == 0


def test_a_flipped_metric_has_the_opposite_agreement(panel: Panel) -> None:
    sound, flipped = panel.card("auc_iou"), panel.card(recipe.label(FlippedMetric()))
    assert flipped.agreement.truth.estimate == pytest.approx(-sound.agreement.truth.estimate)
    assert flipped.agreement.family["auc_iou"] == pytest.approx(-1)


def test_metaquantus_rates_the_confidence_of_the_model_above_a_metric_that_knows_the_truth(panel: Panel) -> None:
    """The published numbers cannot tell a judge that looks at the map from one that does not; ours flags it."""
    confidence, sound = panel.card(recipe.label(ConfidenceMetric())), panel.card("auc_iou")
    assert all(
        one.overall > other.overall for one, other in zip(confidence.metaquantus, sound.metaquantus, strict=True)
    )
    assert (confidence.verdict, sound.verdict) == ("flagged", "holds")


def test_a_constant_earns_what_metaquantus_is_known_to_give_it() -> None:
    flat = np.ones((3, 8))
    trials = [
        Trial("input", "minor", 0, np.zeros(8), flat),
        Trial("input", "disruptive", 0, np.ones(8), flat),
    ]
    found = _of(flat, trials, "input")
    numbers = (found.iac_noise, found.iac_adversary, found.iec_noise, found.iec_adversary, found.overall)
    assert numbers == (1, 0, 1, 0, found.constant)


def test_metaquantus_looks_only_at_pictures_whose_class_fits_the_test() -> None:
    before, after = np.arange(12.0).reshape(2, 6), np.arange(12.0).reshape(2, 6)
    after[:, 3:] -= 10  # where the class changed
    changed = np.array([0.0, 0, 0, 1, 1, 1])
    found = _of(before, [Trial("weights", size, 0, changed, after) for size in ("minor", "disruptive")], "weights")
    assert (found.iac_noise, found.iec_noise, found.iec_adversary) == (1, 1, 1)
    assert found.iac_adversary > 0.8


def test_p_values_and_ranks() -> None:
    dice = np.random.default_rng(0)
    scores = dice.normal(size=30)
    assert p_value(scores, scores) == 1
    assert p_value(scores, scores + 1) < 1e-4
    assert np.isnan(p_value(scores[:0], scores[:0]))
    rows = dice.normal(size=(4, 9))
    assert same_ranks(rows, rows * 2 + 1) == 1
    assert same_ranks(rows, -rows) == 0  # of an even number of methods none keeps its place


@given(arrays(np.float64, (2, 3, 5), elements=st.floats(-5, 5)))
def test_wins_add_up_to_one(scores: np.ndarray) -> None:
    first, second = scores
    np.testing.assert_allclose(wins(first, second) + wins(second, first), 1)
    np.testing.assert_allclose(wins(first, first), 0.5)


def test_a_missing_score_wins_nothing() -> None:
    assert np.isnan(wins(np.array([np.nan]), np.array([1.0]))).all()
    assert wins(np.array([[np.nan], [2.0]]), np.array([1.0])) == 1


def test_reliability_of_agreeing_and_of_unrelated_pictures() -> None:
    order = np.arange(5.0)[:, None] + np.zeros((5, 20))
    assert ranks_alpha(order).estimate == pytest.approx(1)
    assert split_half(order) == pytest.approx(1)
    lots = np.random.default_rng(1).normal(size=(5, 60))
    assert ranks_alpha(lots).low < 0.05
    assert abs(ranks_alpha(lots).estimate) < 0.1


def test_rank_correlation_of_what_does_not_vary_is_zero() -> None:
    assert spearman([1, 2, 3], [5, 5, 5]) == 0
    assert spearman([1, 2, 3], [1, 4, 9]) == pytest.approx(1)
    assert np.isnan(spearman([1, 2], [2, 3]))


def test_an_interval_of_hits_alone_has_a_width() -> None:
    assert mean_of(np.ones(16), share=True).low < 0.9


@given(share=st.floats(0, 1), size=st.integers(8, 21), seed=st.integers(0, 9))
def test_shuffling_blocks_moves_them_and_loses_nothing(share: float, size: int, seed: int) -> None:
    one = torch.arange(float(size * size)).reshape(size, size)
    moved = shuffled(one, share, torch.Generator().manual_seed(seed))
    assert sorted(moved.flatten().tolist()) == one.flatten().tolist()
    assert torch.equal(shuffled(one, 0.0, torch.Generator().manual_seed(seed)), one)


def test_noise_belongs_to_the_picture_and_is_drawn_anew_for_a_changed_one() -> None:
    model, batch = stage(3)
    maps = Noise()(model, batch)
    torch.testing.assert_close(maps[1:2], Noise()(model, batch.select([1])))
    darker = batch.showing(batch.images * 0.9)
    assert not torch.allclose(Noise()(model, darker), maps)


@pytest.mark.parametrize("how", ["mix", "shuffle", "shift", "blur", "inverse"])
def test_a_degraded_truth_does_not_depend_on_batch_mates(how: str) -> None:
    model, batch = stage(3)
    spoilt = Spoilt(Truth(Oracle()), how, 0.5)  # type: ignore[arg-type]
    alone = torch.cat([spoilt(model, batch.select([row])) for row in range(3)])
    torch.testing.assert_close(spoilt(model, batch), alone)


def test_more_of_a_degradation_is_further_from_the_truth() -> None:
    model, batch = stage(4)
    truth = Truth(Oracle())
    first = truth(model, batch)
    for how, doses in (("mix", (0.1, 0.4, 0.8)), ("shuffle", (0.25, 0.5, 1.0)), ("blur", (0.03, 0.1, 0.25))):
        maps = [Spoilt(truth, how, dose)(model, batch) for dose in doses]  # type: ignore[arg-type]
        close = [torch.corrcoef(torch.stack([one.flatten(), first.flatten()]))[0, 1] for one in maps]
        assert close == sorted(close, reverse=True)


class Asking:
    """A metric that lets the network look at each picture so many times, and asks for a map again."""

    higher_is_better = True

    def __call__(self, attribution: Attribution, /) -> Scores:
        for _ in range(3):
            attribution.model.network(attribution.model.normalised(attribution.batch.images))
        return attribution.explainer(attribution.model, attribution.batch).flatten(1).sum(1)


def test_passes_are_counted() -> None:
    model, batch = stage(1)
    found = passes_of(Asking(), model, batch, Oracle(), Edges())
    assert (found.each, found.shared, found.explanations) == (3, 0, 1)
    deletion = parse("metric", "single_deletion")
    shared = passes_of(deletion, model, batch.select([0]), Oracle(), Edges())
    assert shared.each == 0
    assert shared.shared >= 17  # 16 segments and the whole picture


def test_cards_are_plain_numbers(panel: Panel) -> None:
    stored = json.loads(page.as_json(panel))
    assert [one["metric"] for one in stored["cards"]] == [one.metric for one in panel.cards]
    assert stored["cards"][0]["verdict"] == "holds"
    text = page.markdown(panel)
    assert all(f"| {card.metric} |" in text for card in panel.cards)
    assert "Nothing." not in text


def test_the_command_writes_cards(tmp_path: Path) -> None:
    requested = ["audit", "embedded:object", "two_factor", "--metrics", "auc_iou,sparseness", "--limit", "6", "-q"]
    made = CliRunner().invoke(
        app, [*requested, "--disturbances", "0", "--methods", "edges,saliency", "-o", str(tmp_path)]
    )
    assert made.exit_code == 0, made.output
    assert "auc_iou" in made.output
    assert {one.name for one in tmp_path.iterdir()} == {"cards.json", "judges.md"}


def test_a_misspelt_metric_is_named() -> None:
    made = CliRunner().invoke(app, ["audit", "embedded:object", "two_factor", "--metrics", "auc_iuo"])
    assert made.exit_code == 2


@pytest.mark.slow
def test_no_sound_metric_is_flagged_on_64_pictures() -> None:
    found = heatproof.audit("embedded:object", "two_factor", [*FRAUDS, *components("metric", HONEST)], limit=64)
    verdicts = {card.metric: card.verdict for card in found.cards}
    frauds = {recipe.label(one) for one in FRAUDS}
    assert {name for name, verdict in verdicts.items() if verdict == "flagged"} == frauds
