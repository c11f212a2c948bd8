"""Descriptions of maps: sparseness, complexity, effective complexity. They rank no method."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from closed_forms import SIDE, Ignorant, alone, attributed, drawn, grey, weighted
from hypothesis import given
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.metrics.complexity import Complexity, entropy
from heatproof.metrics.effective_complexity import EffectiveComplexity, smallest_sufficient
from heatproof.metrics.sparseness import Sparseness, gini
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.report.run_numbers import Reading
from heatproof.results import Results
from heatproof.results.run_info import run_info
from heatproof.types import Attribution

MODEL = weighted(drawn(2, 1, SIDE, SIDE))


def _of(maps):
    shown = grey(len(maps))
    return Attribution(MODEL, shown, Ignorant(), maps)


def test_gini_of_one_pixel_of_all_alike_and_of_known_distributions():
    one = torch.zeros(100)
    one[3] = 5.0
    assert float(gini(one)) == pytest.approx(1 - 1 / 100)
    assert float(gini(torch.ones(100))) == pytest.approx(0, abs=1e-12)
    assert float(gini(torch.rand(200_000))) == pytest.approx(1 / 3, abs=2e-3)
    assert float(gini(torch.randn(200_000).abs())) == pytest.approx(Sparseness.chance, abs=2e-3)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30).filter(any))
def test_gini_is_half_the_mean_difference_over_the_mean(numbers):
    values = np.array(numbers, dtype=float)
    differences = np.abs(values[:, None] - values[None]).mean()
    assert float(gini(torch.tensor(values))) == pytest.approx(differences / (2 * values.mean()), abs=1e-9)


def test_entropy_of_one_pixel_of_all_alike_and_scipys():
    from scipy.stats import entropy as theirs

    one = torch.zeros(64)
    one[3] = 5.0
    assert float(entropy(one)) == 0
    assert float(entropy(torch.ones(64))) == pytest.approx(math.log(64))
    values = torch.rand(4, 64).double()
    assert entropy(values).tolist() == pytest.approx(theirs(values.numpy(), axis=1).tolist())


@pytest.mark.parametrize("metric", [Sparseness(), Complexity(), Sparseness("positive"), Complexity("positive")])
def test_neither_place_nor_unit_matters_and_each_map_is_described_alone(metric):
    maps = drawn(3, SIDE, SIDE)
    order = torch.randperm(SIDE * SIDE)
    moved = maps.flatten(1)[:, order].view_as(maps)
    found = metric(_of(maps)).values
    torch.testing.assert_close(metric(_of(7 * moved)).values, found)
    scales = torch.tensor([1e-6, 1.0, 1e6]).view(3, 1, 1)  # a peer divides by the maximum of the whole batch
    torch.testing.assert_close(metric(_of(scales * maps)).values, found, rtol=1e-5, atol=0)
    torch.testing.assert_close(alone(metric, _of(maps)), found)


def test_complexity_says_how_many_pixels_that_is():
    found = Complexity()(_of(torch.ones(2, SIDE, SIDE)))
    assert found.details["pixels"].tolist() == pytest.approx([1, 1])


def test_the_smallest_number_counts_only_if_all_larger_ones_are_as_good():
    values = torch.tensor([[0.0, 0.95, 0.5, 0.95, 1.0], [0.0, 0.2, 0.4, 0.6, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0]])
    assert smallest_sufficient(values, 0.1).tolist() == [3, 4, 1]


def test_effective_complexity_of_a_linear_model_is_where_the_tail_is_small_enough():
    weights = torch.zeros(2, 1, 4, 4)
    contributions = torch.tensor([8.0, 4, 2, 1, 0.5, 0.25, 0.125, 0.0625] + [0.0] * 8)
    weights[0, 0] = contributions.view(4, 4)
    model = weighted(weights)
    shown = grey(2, 4)
    shown = shown.showing(torch.ones_like(shown.images))
    metric = EffectiveComplexity(Occlusion(Constant(), Grid(4), 1), "logit", 0.1)
    best = Attribution(model, shown, Ignorant(), contributions.view(1, 4, 4).expand(2, 4, 4))
    # Tails after k = 3 and 4 segments: 1.9375 and 0.9375 of 15.9375, of which 10 % are 1.59.
    assert metric(best).values.tolist() == [4 / 16, 4 / 16]
    worst = Attribution(model, shown, Ignorant(), -best.maps)
    assert metric(worst).values.tolist() == [1, 1]


def test_an_answer_that_never_changes_needs_nothing_and_says_so():
    model = weighted(torch.zeros(2, 1, SIDE, SIDE))
    found = EffectiveComplexity(Occlusion(Constant(), Grid(4), 1))(attributed(model, grey(), Ignorant()))
    assert bool(found.values.isnan().all())
    assert all("same" in note for note in found.notes)


def test_a_zero_map_is_neither_sparse_nor_complex():
    for metric in (Sparseness(), Complexity()):
        found = metric(_of(torch.zeros(2, SIDE, SIDE)))
        assert all("zero" in note for note in found.notes)


@pytest.mark.parametrize("tolerance", [-0.1, 1.0])
def test_a_tolerance_that_cannot_be_is_refused(tolerance):
    with pytest.raises(BadInput):
        EffectiveComplexity(tolerance=tolerance)


def _run():
    rows = [
        {
            "dataset": "d",
            "model": "m",
            "method": method,
            "metric": metric,
            "image": str(i),
            "value": i + at,
            "status": "ok",
        }
        for metric in ("sparseness", "srg")
        for at, method in enumerate(("a", "b"))
        for i in range(8)
    ]
    info = {
        "metrics": {
            "sparseness": {"higher_is_better": True, "measures": "description"},
            "srg": {"higher_is_better": True, "measures": "faithfulness"},
        },
        "methods": {"a": {}, "b": {}},
    }
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info))


def test_descriptions_rank_no_method():
    results = _run()
    with pytest.raises(BadInput, match="describes maps"):
        results.ranking("sparseness")
    with pytest.raises(BadInput, match="describes maps"):
        results.pairs("sparseness")
    assert list(results.ranking("srg")) == ["b", "a"]
    assert Reading(results).metrics == ["srg"]
