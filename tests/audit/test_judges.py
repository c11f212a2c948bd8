"""Metrics on trial: frauds are found, sound ones hold, and the numbers of a card are what they say."""

from __future__ import annotations

import json
from dataclasses import replace
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
from heatproof.audit.judges.graded_maps import Noise, Spoilt, Truth, shuffled
from heatproof.audit.judges.ladders import Dependent, Summing, other_form
from heatproof.audit.judges.price import passes_of
from heatproof.cli import app
from heatproof.methods.controls import Edges, Oracle
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.spec import recipe
from heatproof.spec.parse import components, parse
from heatproof.stats.judges import page
from heatproof.stats.judges.blind_maps import fitted_elsewhere
from heatproof.stats.judges.evidence import Evidence, Passes, Shown, Trial, of_plain, plain
from heatproof.stats.judges.metaquantus import _of, p_value, same_ranks
from heatproof.stats.judges.order_and_dose import wins
from heatproof.stats.judges.panel import Panel
from heatproof.stats.judges.retest import ranks_alpha, settings_variance, split_half
from heatproof.stats.judges.rules import cards
from heatproof.stats.judges.sums import mean_of, spearman
from heatproof.testing import stage
from heatproof.types import Attribution, Scores

CHEAP = "auc_iou,relevance_mass,relevance_rank,single_deletion,sparseness"
OTHERS = ("random_logit", "avg_sensitivity(draws=2)")  # with truths of their own
METHODS = "saliency,input_x_gradient,grad_cam"
HONEST = "srg,mif,lif,insertion,deletion,auc_iou,pointing_game,relevance_mass,relevance_rank,auroc,single_deletion"


@pytest.fixture(scope="module")
def panel() -> Panel:
    judges = [*FRAUDS, *components("metric", CHEAP), *components("metric", ",".join(OTHERS))]
    return heatproof.audit("embedded:object", "two_factor", judges, methods=METHODS, limit=16, disturbances=1)


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


@pytest.mark.parametrize("name", OTHERS)
def test_metrics_of_other_questions_hold_against_truths_of_their_own(panel: Panel, name: str) -> None:
    card = panel.card(name)
    assert card.verdict == "holds", card.flags
    assert card.order.truth_over_noise.low > 0.5
    assert [dose.how for dose in card.doses] == ["mix"]
    assert card.doses[0].fall.low > 0.9
    assert np.isnan(card.order.noise_over_inverse.estimate)


def test_a_map_that_ignores_the_picture_is_robust_and_no_flag_says_otherwise(panel: Panel) -> None:
    card = panel.card("avg_sensitivity(draws=2)")
    assert card.blind.fitted == pytest.approx(1)
    assert "blind" not in {flag.rule for flag in card.flags}


def test_shares_of_variance_add_up_to_one(panel: Panel) -> None:
    shares = panel.card("auc_iou").retest.shares
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["method"] > shares["luck"]
    assert all(share >= 0 for share in shares.values())


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
    for name in ("average_drop", "average_gain"):  # which share the masked picture's answer, and are counted alone
        found = passes_of(parse("metric", name), model, batch, Oracle(), Edges())
        assert (found.each, found.shared) == (1, 1)


def test_a_dependent_map_is_another_one_for_another_class_or_model_and_a_blind_one_is_not() -> None:
    model, batch = stage(3)
    truth = Truth(Oracle())
    own = tuple(zip(batch.ids, batch.targets.tolist(), strict=True))
    dependent, blind = (Dependent(truth, model.revision, own, dose) for dose in (0.0, 1.0))
    expected = truth(model, batch)
    other = batch.aimed((batch.targets + 1) % 3)
    for method in (dependent, blind):
        torch.testing.assert_close(method(model, batch), expected)
    torch.testing.assert_close(blind(model, other), expected)
    assert not torch.allclose(dependent(model, other), expected)
    torch.testing.assert_close(dependent(model, other.select([1])), dependent(model, other)[1:2])


def test_noise_takes_a_sum_away_from_what_it_is_declared_to_be() -> None:
    model, batch = stage(2)
    exact = Summing(IntegratedGradients(steps=32))
    gaps = []
    for dose in (0.0, 0.2, 1.0):
        maps = replace(exact, dose=dose)(model, batch)
        gaps.append(float((maps.double().flatten(1).sum(1) - exact.total(model, batch)).abs().mean()))
    assert gaps == sorted(gaps)
    assert gaps[1] > 2 * gaps[0]


@pytest.mark.parametrize(
    ("method", "form"),
    [
        ("integrated_gradients(steps=16)", "integrated_gradients(steps=8)"),
        ("lime", "lime(top=5)"),
        ("saliency", "saliency(pooling=abs_sum)"),
    ],
)
def test_methods_have_other_settings(method: str, form: str) -> None:
    assert recipe.label(other_form(parse("method", method))) == form


def test_what_has_no_fields_has_no_other_setting() -> None:
    assert other_form(lambda model, batch: batch.images.mean(1)) is None


def case(truth: np.ndarray, blind: np.ndarray) -> Evidence:
    """Twelve pictures, one blind map, two methods that all pictures put in one order."""
    n = len(truth)
    dice = np.random.default_rng(0)
    noise, rungs = dice.normal(0, 0.01, n), [1 - 0.2 * step + dice.normal(0, 0.01, n) for step in range(1, 5)]
    real = [np.full(n, 0.4), np.full(n, 0.6)]
    shown = [Shown("truth", "truth"), Shown("noise", "noise")]
    shown += [Shown(f"mix {step}", "mix", 0.2 * step) for step in range(1, 5)]
    shown += [Shown("centre", "blind"), Shown("first", "real"), Shown("second", "real")]
    scores = np.stack([truth, noise, *rungs, blind, *real])
    retest = np.stack([np.stack([noise, *real])] * 2)
    passes = Passes(2.0, 0.0, float("nan"))
    close = np.zeros_like(scores)
    return Evidence("m", "faithfulness", None, True, tuple(shown), scores, close, retest, {}, (), passes, 1.0)


@pytest.mark.parametrize(("blind", "verdict"), [(0.2, "holds"), (1.0, "caution"), (1.5, "flagged")])
def test_a_blind_map_that_is_level_is_a_caution_and_one_that_is_ahead_a_flag(blind: float, verdict: str) -> None:
    dice = np.random.default_rng(1)
    card = cards([case(1 + dice.normal(0, 0.1, 12), blind + dice.normal(0, 0.1, 12))])[0]
    assert card.verdict == verdict, card.flags
    assert {flag.rule for flag in card.flags} == (set() if verdict == "holds" else {"blind"})


def test_the_blind_map_is_chosen_without_the_picture_that_it_is_judged_on() -> None:
    assert fitted_elsewhere(np.array([[9.0, 0.0], [1.0, 1.0]])).tolist() == [1, 0]
    lots = np.random.default_rng(2).normal(size=(40, 200))
    assert abs(fitted_elsewhere(lots).mean()) < 0.1 < lots.mean(1).max()
    assert np.isnan(fitted_elsewhere(np.full((2, 4), np.nan))).all()


def test_settings_that_order_methods_alike_add_no_variance() -> None:
    here = np.random.default_rng(3).normal(size=(4, 9)) + np.arange(4)[:, None]
    assert settings_variance(here, [3 * here + 1]) == pytest.approx(0)
    assert settings_variance(here, [-here]) > 0.1
    assert np.isnan(settings_variance(here, []))


def test_evidence_is_stored_and_read_back() -> None:
    found = case(np.ones(12), np.full(12, np.nan))
    again = of_plain(json.loads(json.dumps(plain(found))), "here")
    np.testing.assert_array_equal(again.scores, found.scores)
    assert (again.shown, again.passes.each) == (found.shown, found.passes.each)
    assert np.isnan(again.passes.explanations)


def test_an_audit_goes_on_from_what_is_stored(tmp_path: Path) -> None:
    about = {"methods": "edges,saliency", "limit": 4, "disturbances": 0, "store": tmp_path}
    first = heatproof.audit("embedded:object", "two_factor", "auc_iou", **about)  # type: ignore[arg-type]
    both = "auc_iou,pointing_game"
    stored = heatproof.audit("embedded:object", "two_factor", both, stored_only=True, **about)  # type: ignore[arg-type]
    assert [card.metric for card in stored.cards] == ["auc_iou"]
    assert page.markdown(stored) == page.markdown(first)
    file = next(tmp_path.iterdir())
    file.write_text(file.read_text().replace("auc_iou", "pointing_game"))
    again = heatproof.audit("embedded:object", "two_factor", "auc_iou", **about)  # type: ignore[arg-type]
    assert again.cards[0].metric == "auc_iou"


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
    assert {one.name for one in tmp_path.iterdir()} == {"cards.json", "judges.md", "evidence"}
    assert len(list((tmp_path / "evidence").iterdir())) == 2


def test_a_misspelt_metric_is_named() -> None:
    made = CliRunner().invoke(app, ["audit", "embedded:object", "two_factor", "--metrics", "auc_iuo"])
    assert made.exit_code == 2


@pytest.mark.slow
def test_no_sound_metric_is_flagged_on_64_pictures() -> None:
    found = heatproof.audit("embedded:object", "two_factor", [*FRAUDS, *components("metric", HONEST)], limit=64)
    verdicts = {card.metric: card.verdict for card in found.cards}
    frauds = {recipe.label(one) for one in FRAUDS}
    assert {name for name, verdict in verdicts.items() if verdict == "flagged"} == frauds
