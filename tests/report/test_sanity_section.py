"""The sections of the sanity and robustness protocols, and of descriptions."""

from __future__ import annotations

import pandas as pd

from heatproof.report.page import page
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.descriptions import descriptions
from heatproof.report.sections.robustness import robustness
from heatproof.report.sections.sanity import sanity
from heatproof.results import Results
from heatproof.results.run_info import run_info

MEANS = {
    "mprt": {"saliency": 0.3, "guided": 0.6, "edges": 1.0},
    "random_logit": {"saliency": 0.4, "guided": 0.95, "edges": 1.0},
    "avg_sensitivity": {"saliency": 0.2, "guided": 0.1, "edges": 0.0},
    "single_deletion": {"saliency": 0.7, "guided": 0.4, "edges": 0.3},
    "sparseness": {"saliency": 0.5, "guided": 0.6, "edges": 0.4},
}
MEASURES = {"sparseness": "description", "single_deletion": "faithfulness"}


def reading(metrics=tuple(MEANS)):
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": metric, "image": str(i)}
        | {"value": mean + 0.01 * (i - 3), "status": "ok", "note": "", "seconds": 0.1}
        for metric in metrics
        for method, mean in MEANS[metric].items()
        for i in range(7)
    ]
    info = {
        "metrics": {
            name: {
                "name": name,
                "higher_is_better": name in ("single_deletion", "sparseness"),
                "measures": MEASURES.get(name, "other"),
            }
            for name in metrics
        },
        "methods": {"saliency": {}, "guided": {}, "edges": {"control": True, "blind": True}},
        "protocols": ["sanity", "robustness"],
    }
    return Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info)))


def test_each_check_names_the_method_nearest_to_blind_and_what_blind_maps_score():
    html = sanity(reading())
    assert "<strong>guided</strong> changes least when the model forgets" in html
    assert "<strong>guided</strong> changes least when another class is explained" in html
    assert "blind maps 1.00" in html
    assert "single_deletion</button>" in html
    assert "mprt ↓</button>" in html


def test_robustness_stands_beside_faithfulness():
    html = robustness(reading())
    assert "avg_sensitivity (lower moves less)" in html
    assert html.count("<circle") == 3
    assert robustness(reading(("mprt",))) is None


def test_descriptions_have_a_table_and_no_ranking():
    html = descriptions(reading())
    assert "sparseness</button>" in html
    assert descriptions(reading(("mprt",))) is None
    whole = page(reading())
    assert 'id="descriptions"' in whole
    ranking = whole[whole.index('<section id="ranking"') : whole.index('<section id="descriptions"')]
    assert "sparseness" not in ranking
