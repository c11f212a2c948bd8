"""What metrics declare: a price, a chance level where one is known, and what they measure."""

from __future__ import annotations

import pytest

from heatproof import registry
from heatproof.spec import recipe
from heatproof.types import Price

PRICED = [name for name in registry.names("metric") if hasattr(registry.find("metric", name), "cost")]
NEW = """
adcc arcc average_drop average_gain average_increase avg_sensitivity coherency completeness_error complexity continuity
effective_complexity efficient_mprt f_fidelity f_fidelity_minus faithfulness_correlation faithfulness_estimate
grid_pointing idsds local_lipschitz mask_area max_box_accuracy max_sensitivity monotonicity monotonicity_correlation
mprt pointing_game random_logit relative_input_stability relative_output_stability relative_representation_stability
saco sensitivity_axiom single_deletion smooth_mprt sparseness top_k_intersection
"""


def test_every_metric_of_these_families_has_a_price_a_paper_and_a_measure():
    assert set(NEW.split()) <= set(PRICED)
    for name in NEW.split():
        row = recipe.listed(registry.entry("metric", name))
        assert row["paper"], name
        assert row["measures"] != "other", name
        assert isinstance(row["higher_is_better"], bool), name


@pytest.mark.parametrize("name", PRICED)
def test_prices_are_numbers_of_passes(name):
    metric = registry.find("metric", name)
    price = metric.cost()
    assert isinstance(price, Price)
    assert min(price) >= 0
    chance = getattr(metric, "chance", None)
    assert chance is None or isinstance(chance, float)


def test_these_describe_maps_and_rank_no_method():
    described = {name for name in PRICED if registry.find("metric", name).measures == "description"}
    assert described == {"sparseness", "complexity", "effective_complexity", "mask_area"}
