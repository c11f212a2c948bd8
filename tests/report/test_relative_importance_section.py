"""The section on relative importance: columns that are explained, counts, and shares that are not certain."""

from __future__ import annotations

import dataclasses
import re

import pandas as pd
import pytest

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.relative_importance import premises, relative_importance
from heatproof.results import Results
from heatproof.results.protocol_notes import RelativeImportanceNotes
from heatproof.results.run_info import run_info
from heatproof.stats.bootstrap import wilson

HITS = {"lrp": [1.0] * 8, "saliency": [1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 1.0, 0.0], "random": [0.0] * 8}
LABELS = {
    "idr": {"region": "object", "rule": "paper"},
    "idr(region=moved)": {"region": "moved", "rule": "paper"},
    "idr(rule=rank)": {"region": "object", "rule": "rank"},
}


def invented() -> Results:
    rows = [
        {"dataset": dataset, "model": "scene", "method": method, "metric": label, "image": f"{i}"}
        | {"value": hit, "status": "ok", "note": "tie" if hit == 0.5 else "", "seconds": 0.1}
        for dataset, images in (("usual", 8), ("small", 5))
        for method, hits in HITS.items()
        for label in LABELS
        for i, hit in enumerate(hits[:images])
    ]
    stored = {label: {"metric": "idr", "fields": fields} for label, fields in LABELS.items()}
    clusters = {f"{i}": [i % 4, i] for i in range(8)}
    studies = [
        {"protocol": "relative_importance", "models": [{"spec": "scene"}]}
        | {"notes": {"part": part, "metrics": stored, "datasets": [dataset], "clusters": clusters}}
        for part, dataset in (("idr", "usual"), ("robustness", "small"))
    ]
    measured = {label: "chance" if "moved" in label else "other" for label in LABELS}
    info = {
        "studies": studies,
        "protocols": ["relative_importance"],
        "methods": {method: {"control": method == "random"} for method in HITS},
        "metrics": {label: {"name": "idr", "higher_is_better": True, "measures": measured[label]} for label in LABELS},
    }
    scores = pd.DataFrame(rows)
    details = scores.assign(detail="tie", value=(scores["value"] == 0.5).astype(float))
    return Results(scores, pd.DataFrame(), None, run_info(info), details)


@pytest.fixture(scope="module")
def page() -> str:
    message = relative_importance(Reading(invented()))
    assert message is not None
    return message


def test_the_columns_that_are_there_are_explained_once(page: str) -> None:
    assert page.count("“moved region” scores the object’s shape at another place") == 1
    assert page.count("“by rank” puts the rank of each pixel in place of its heat") == 1
    assert "permuted" not in page
    assert page.index("“moved region”") < page.index("Input dependence (IDR)")


def test_other_sizes_and_places_say_how_many_pictures_there_were(page: str) -> None:
    changed = page.split("With objects of another size and place")[1]
    head = re.findall(r"<button>([^<]+)</button>", changed.split("</thead>")[0])
    assert head[-1] == "pictures"
    (row,) = re.findall(r"<tr>(?:(?!</tr>).)*lrp(?:(?!</tr>).)*</tr>", changed)
    assert row.endswith('<td class="num">5</td></tr>')


def test_a_share_of_all_pictures_is_as_sure_as_the_scenes_are_many(page: str) -> None:
    low, _ = wilson(1.0, 4)
    assert f"1.00 [{low:.3f}, 1.00]" in page
    assert "1.00 [1.00, 1.00]" not in page
    assert "0 [0, 0]" not in page


def test_the_ranking_does_not_claim_certainty_either() -> None:
    table = invented().ranking("idr", model="scene", dataset="usual").table.set_index("method")
    assert (table.loc["lrp", "low"], table.loc["lrp", "high"]) == pytest.approx(wilson(1.0, 8))
    assert (table.loc["random", "low"], table.loc["random", "high"]) == pytest.approx(wilson(0.0, 8))


def message(**changed: float | None) -> str:
    """What the section says of premises, with some accuracies of the object model changed."""
    measured = {
        "object": {"composite": 1.0, "without": 0.1, "grey": 1.0, **changed},
        "scene": {"composite": 1.0, "without": 1.0, "grey": 0.1},
    }
    roles = {"object": "mine", "scene": "yours"}
    return premises([RelativeImportanceNotes(accuracy=measured, roles=roles, classes=10, pictures=64)])


def test_premises_hold_fail_or_are_not_known() -> None:
    assert "They hold" in message()
    for nothing in (float("nan"), None):
        page = message(without=nothing)
        assert "Whether the premises hold is not known." in page
        assert "the object model with scenes alone" in page
        assert "They hold" not in page
    both = message(without=None, grey=0.1)
    assert "do not hold here" in both
    assert "is not known" in both


def test_twins_that_differ_outside_the_mask_are_reported_beside_the_premises() -> None:
    accuracy = {"object": {"composite": 0.9, "without": 0.1, "grey": 0.9}}
    notes = RelativeImportanceNotes(accuracy=accuracy, roles={"object": "o"}, classes=10, pictures=64)
    assert "by up to 9" not in premises([notes])
    twins = dataclasses.replace(notes, twins="3 differ, by up to 9 of 255 levels")
    assert "by up to 9 of 255 levels" in premises([twins])
