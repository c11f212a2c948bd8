"""Shapley values and their relatives: axioms, enumeration, and models that can be solved by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import factorial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import batch, linear, small_cnn
from torch import Tensor

from heatproof.attribute import attribute
from heatproof.errors import BadInput
from heatproof.methods._support.coalitions import (
    Estimate,
    Plan,
    exact_shapley,
    first_gains,
    last_gains,
    regressed_shapley,
    sampled_shapley,
)
from heatproof.methods.arch_attribute import ArchAttribute
from heatproof.methods.kernel_shap import KernelShap
from heatproof.methods.pred_diff import PredDiff
from heatproof.methods.shapley import Shapley
from heatproof.metrics.pixel_flipping import SRG
from heatproof.occlusion.game import Occlusion, game_of
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.segmenters.felzenszwalb import Felzenszwalb
from heatproof.occlusion.segmenters.grid import Grid

BLACK = Occlusion(Constant(), Grid(3))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def values_of(plan: Plan, worth: Tensor) -> Tensor:
    """The plan carried out on a game given as a table of all 2^n coalitions."""
    codes = (plan.coalitions.long() << torch.arange(plan.coalitions.shape[1])).sum(1)
    return plan.conclude(worth[codes]).values


def any_game(n: int, seed: int) -> Tensor:
    return torch.randn(2**n, dtype=torch.float64, generator=generator(seed))


def by_orders(n: int, worth: Tensor) -> Tensor:
    """Shapley's definition: the mean marginal contribution over all n! orders."""
    found = torch.zeros(n, dtype=torch.float64)
    for order in permutations(range(n)):
        code = 0
        for player in order:
            found[player] += worth[code | (1 << player)] - worth[code]
            code |= 1 << player
    return found / factorial(n)


@given(st.integers(1, 5), st.integers(0, 1000))
def test_enumeration_is_the_mean_over_all_orders(n: int, seed: int) -> None:
    worth = any_game(n, seed)
    torch.testing.assert_close(values_of(exact_shapley(n), worth), by_orders(n, worth))


@given(st.integers(2, 7), st.integers(0, 1000))
def test_efficiency(n: int, seed: int) -> None:
    worth = any_game(n, seed)
    for plan in (
        exact_shapley(n),
        sampled_shapley(n, 4, generator(seed)),
        regressed_shapley(n, 30, generator(seed)),
    ):
        torch.testing.assert_close(values_of(plan, worth).sum(), worth[-1] - worth[0])


@given(st.integers(3, 6), st.integers(0, 1000))
def test_symmetry_and_dummy(n: int, seed: int) -> None:
    """Players 0 and 1 are interchangeable, player 2 only ever adds 0.7."""
    random = any_game(n, seed)
    codes = torch.arange(2**n)
    pair = (codes & 1) + (codes >> 1 & 1)
    worth = random[(codes & ~0b111) | pair] + 0.7 * (codes >> 2 & 1)
    for plan in (exact_shapley(n), regressed_shapley(n, 2**n, generator(seed))):
        found = values_of(plan, worth)
        torch.testing.assert_close(found[0], found[1])
        assert float(found[2]) == pytest.approx(0.7)
    assert float(values_of(sampled_shapley(n, 6, generator(seed)), worth)[2]) == pytest.approx(0.7)


@given(st.integers(2, 7), st.integers(0, 1000))
def test_kernel_shap_over_all_coalitions_is_shapley(n: int, seed: int) -> None:
    worth = any_game(n, seed)
    found = values_of(regressed_shapley(n, 2**n, generator()), worth)
    torch.testing.assert_close(found, values_of(exact_shapley(n), worth), atol=1e-9, rtol=1e-7)


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_samples_come_nearer_the_truth(seed: int) -> None:
    games = [any_game(8, seed + i) for i in range(6)]

    def miss(make: Callable[[int, int, torch.Generator], Plan], count: int) -> float:
        missed = [
            values_of(make(8, count, generator(seed)), worth) - values_of(exact_shapley(8), worth) for worth in games
        ]
        return float(torch.stack(missed).abs().mean())

    for make, few, many in ((sampled_shapley, 20, 500), (regressed_shapley, 30, 200)):
        assert miss(make, many) < 0.6 * miss(make, few)


def estimated(plan: Plan, worth: Tensor) -> Estimate:
    return plan.conclude(worth[(plan.coalitions.long() << torch.arange(plan.coalitions.shape[1])).sum(1)])


def test_standard_errors_are_honest() -> None:
    worth = any_game(6, 1)
    truth = values_of(exact_shapley(6), worth)
    inside = []
    for seed in range(200):
        found = estimated(sampled_shapley(6, 20, generator(seed)), worth)
        inside.append(((found.values - truth).abs() <= 2.26 * found.errors).double())  # t, 9 degrees of freedom
    assert float(torch.stack(inside).mean()) == pytest.approx(0.94, abs=0.04)


def test_standard_errors_of_a_regression_are_honest_too() -> None:
    worth = any_game(8, 1)
    truth = values_of(exact_shapley(8), worth)
    inside = []
    for seed in range(200):
        found = estimated(regressed_shapley(8, 100, generator(seed)), worth)
        inside.append(((found.values - truth).abs() <= 2.02 * found.errors).double())  # t, 43 degrees of freedom
    assert float(torch.stack(inside).mean()) == pytest.approx(0.95, abs=0.03)
    assert float(estimated(regressed_shapley(8, 254, generator()), worth).errors.abs().max()) == 0.0  # all of them


def test_errors_are_not_claimed_where_nothing_is_left_to_judge_by() -> None:
    worth = any_game(8, 1)
    assert bool(estimated(regressed_shapley(8, 14, generator()), worth).errors.isnan().all())


def test_kernel_shap_refuses_more_segments_than_its_samples_can_tell_apart() -> None:
    with pytest.raises(BadInput, match="at least 58 for a picture of 30 segments, got 57"):
        regressed_shapley(30, 57, generator())
    regressed_shapley(30, 58, generator())


def test_an_unlucky_sample_favours_no_segment_by_its_place() -> None:
    """All segments are worth the same, so they must come out the same, distinguished or not."""
    n = 8
    worth = torch.arange(2**n).apply_(lambda code: int(code).bit_count()).double()
    for seed in range(40):
        found = values_of(regressed_shapley(n, 14, generator(seed)), worth)
        torch.testing.assert_close(found, torch.ones(n, dtype=torch.float64))


def test_kernel_shap_asks_for_complements_and_for_sizes_by_their_weight() -> None:
    n, samples = 10, 1000
    inner = regressed_shapley(n, samples, generator()).coalitions[2:]
    assert torch.equal(inner[samples // 2 :], ~inner[: samples // 2])
    sizes = torch.bincount(inner.sum(1), minlength=n)[1:].double() / samples
    wanted = torch.tensor([1 / (size * (n - size)) for size in range(1, n)], dtype=torch.float64)
    torch.testing.assert_close(sizes, wanted / wanted.sum(), atol=0.04, rtol=0)


def test_defaults_sample_enough() -> None:
    assert (Shapley().permutations, KernelShap().samples) == (20, 400)
    assert Shapley().evaluations(25) == 20 * 24 + 2


@given(st.integers(1, 6), st.integers(0, 1000))
def test_pred_diff_is_the_last_and_arch_attribute_the_first_contribution(n: int, seed: int) -> None:
    worth = any_game(n, seed)
    whole = 2**n - 1
    last = torch.stack([worth[whole] - worth[whole ^ (1 << i)] for i in range(n)])
    first = torch.stack([worth[1 << i] - worth[0] for i in range(n)])
    assert torch.equal(values_of(last_gains(n), worth), last)
    assert torch.equal(values_of(first_gains(n), worth), first)


def test_on_a_linear_model_they_all_find_the_contributions() -> None:
    shown, model = batch(2), linear()
    weights = model.network.fc.weight[shown.targets].view_as(shown.images)
    true = (weights * shown.images).sum(1).detach()
    segments = Grid(3)(shown.images)
    for method in (
        Shapley(BLACK, "logit"),
        Shapley(BLACK, "logit", permutations=2, exact_up_to=0),
        KernelShap(BLACK, "logit", samples=60),
        PredDiff(BLACK, "logit"),
        ArchAttribute(BLACK, "logit"),
    ):
        maps = attribute(model, shown, method).maps
        for i in range(2):
            for label in range(9):
                inside = segments[i] == label
                assert float(maps[i][inside][0]) == pytest.approx(float(true[i][inside].sum()), abs=1e-4)
                assert float(maps[i][inside].std()) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "method",
    [
        Shapley(Occlusion(segmenter=Felzenszwalb(scale=5.0, min_size=5)), permutations=4, exact_up_to=5),
        KernelShap(Occlusion(segmenter=Felzenszwalb(scale=5.0, min_size=5)), samples=200),
        PredDiff(),
        ArchAttribute(),
    ],
    ids=lambda method: type(method).__name__,
)
def test_a_map_does_not_depend_on_batch_mates(method: Shapley) -> None:
    model, shown = small_cnn(), batch(3)
    together = method(model, shown)
    for i in range(3):
        assert torch.equal(method(model, shown.select([i]))[0], together[i])


def test_log_odds_is_the_papers_value_function() -> None:
    model, shown = small_cnn(), batch(2)
    found = PredDiff(BLACK, "log_odds").estimates(model, shown)
    game = game_of(model, shown, BLACK)
    p = game.value(last_gains(9).coalitions.expand(2, -1, -1))
    worth = ((10_000 * p + 1) / (10_000 + 1_000)).log2()
    for i in range(2):
        torch.testing.assert_close(found[i].values, worth[i, 0] - worth[i, 1:])


def test_what_was_paid_for_once_is_free_for_the_next() -> None:
    model, shown = small_cnn(), batch(2)
    exact = Shapley(BLACK)
    maps = attribute(model, shown, exact)
    game = game_of(model, shown, BLACK)
    assert game.evaluated == 2 * 2**9
    for method in (KernelShap(BLACK), PredDiff(BLACK, "logit"), ArchAttribute(BLACK)):
        method(model, shown)
    SRG(BLACK)(maps)
    assert game.evaluated == 2 * 2**9


@pytest.mark.parametrize("method", [Shapley(), Shapley(BLACK), KernelShap(BLACK), PredDiff(), ArchAttribute()], ids=str)
def test_the_cost_is_the_passes_at_most(method: Shapley) -> None:
    model, shown = small_cnn(), batch(1)
    method(model, shown)
    assert 0 < game_of(model, shown, method.occlusion).evaluated <= method.cost().forward


def test_shapley_is_the_most_faithful_order() -> None:
    model, shown = small_cnn(), batch(6)
    predicted = shown.aimed(model(shown.images).argmax(1))
    shapley = SRG(BLACK)(attribute(model, predicted, Shapley(BLACK, "probability"))).values
    inverted = SRG(BLACK)(attribute(model, predicted, lambda m, b: -Shapley(BLACK, "probability")(m, b))).values
    assert bool((shapley > 0).all())
    assert torch.equal(shapley, -inverted)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadInput, match="even"):
        Shapley(permutations=3)
    with pytest.raises(BadInput, match="exact_up_to"):
        Shapley(exact_up_to=30)
    with pytest.raises(BadInput, match="samples"):
        KernelShap(samples=1)
