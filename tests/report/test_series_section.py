"""The k-series: a fall that comes in one step is marked, a gradual one is not."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.series import series
from heatproof.results import Results
from heatproof.results.protocol_notes import RelativeImportanceNotes
from heatproof.results.run_info import StudyInfo, run_info

LABELS = {"mcs": "object", "mcs(region=moved)": "moved"}


def page_of(drops: list[float]) -> str:
    specs = [f"embedded:k{k}" for k in range(1, len(drops) + 1)]
    rows = [
        {"dataset": "d", "model": spec, "method": method, "metric": label, "image": f"{i}"}
        | {"value": drop * share + 0.01 * i, "status": "ok", "note": "", "seconds": 0.1}
        for spec, drop in zip(specs[:-1], drops, strict=False)
        for method, share in (("lrp", 0.5), ("saliency", 0.2))
        for label in LABELS
        for i in range(3)
    ]
    accuracies = {
        spec: {"k": k, "with_object": 0.9, "without_object": 0.9 - drop}
        for k, (spec, drop) in enumerate(zip(specs, drops, strict=True), start=1)
    }
    metrics = {label: {"fields": {"region": region}, "metric": "mcs"} for label, region in LABELS.items()}
    noted = StudyInfo(notes={"part": "series", "series": accuracies, "metrics": metrics}).noted(RelativeImportanceNotes)
    run = Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info({"metrics": {label: {} for label in LABELS}}))
    return series(Reading(run), [noted])


def test_one_step_that_makes_up_the_fall_is_warned_of() -> None:
    page = page_of([0.6, 0.6, 0.58, 0.02, 0.0])
    assert "The fall is not gradual here." in page
    assert "From k = 3 to 4 the drop goes from 0.580 to 0.020, 93% of its whole range" in page


@pytest.mark.parametrize("drops", [[0.8, 0.6, 0.4, 0.2, 0.0], [0.3] * 5])
def test_a_gradual_fall_and_none_at_all_are_not(drops: list[float]) -> None:
    page = page_of(drops)
    assert "The k-series" in page
    assert "not gradual" not in page


def cells(page: str, method: str) -> list[str]:
    row = re.search(rf'<th scope="row">{method}</th>(.*?)</tr>', page)
    assert row is not None
    return re.findall(r"<td[^>]*>([^<]*)</td>", row[1])


def test_methods_stand_with_how_closely_and_how_far_they_follow_the_drop() -> None:
    page = page_of([0.4, 0.2, 0.0])
    for method, share in (("lrp", 0.5), ("saliency", 0.2)):
        r, _, points, _, span = cells(page, method)
        assert float(r) > 0.99
        assert points == "3"
        assert float(span) == pytest.approx(0.4 * share + 0.01, abs=1e-3)  # the last model is its own contrast
