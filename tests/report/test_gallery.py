"""What stands around the heatmaps: whose numbers, in which order, and what a colour means."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heatproof.report.gallery import gallery
from heatproof.report.run_numbers import Reading
from heatproof.results.results import Picture, Results
from heatproof.results.run_info import run_info

METHODS = {"lrp": {"signed": True}, "saliency": {"signed": False}, "random": {"control": True}}
FIRST = {"tiny": "mif", "photos": "srg"}  # data set -> the metric judged there


def invented(methods: dict = METHODS) -> Results:
    rows = [
        {"dataset": dataset, "model": "m", "method": method, "metric": metric, "image": "cats/0001.jpg"}
        | {"value": 0.125 + 0.25 * at, "status": "ok", "note": "", "seconds": 0.1}
        for dataset, metric in FIRST.items()
        for at, method in enumerate(methods)
    ]
    metrics = {"mif": {"higher_is_better": False}, "srg": {"higher_is_better": True}}
    results = Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info({"methods": methods, "metrics": metrics}))
    maps = {method: np.eye(16) for method in methods}
    picture = np.full((16, 16, 3), 90, dtype=np.uint8)
    # Kept in another order than the run's, as files on a disk are.
    results.__dict__["gallery"] = [
        Picture(dataset, "m", "cats/0001.jpg", picture, None, "cat", maps) for dataset in ("photos", "tiny")
    ]
    return results


def test_numbers_are_named_for_each_setting_with_their_direction() -> None:
    page = gallery(Reading(invented()))
    assert page is not None
    first, second = page.split("<h3>")[1:]
    assert first.startswith("m on tiny")
    assert "Numbers are each map’s mif; lower is better." in first
    assert second.startswith("m on photos")
    assert "Numbers are each map’s srg; higher is better." in second
    assert "<span>0.375</span>" in first


def test_a_picture_is_called_by_its_file_and_keeps_its_folder_in_the_tooltip() -> None:
    page = gallery(Reading(invented()))
    assert page is not None
    assert '<span title="cats/0001.jpg">0001.jpg</span>' in page


def test_methods_without_sign_are_named() -> None:
    page = gallery(Reading(invented()))
    assert page is not None
    assert "saliency gives no sign: its warm colours are magnitudes." in page
    many = {f"m{at}": {"signed": False} for at in range(8)}
    page = gallery(Reading(invented(many)))
    assert page is not None
    assert "m4 and 3 others give no sign: their warm colours" in page
    page = gallery(Reading(invented({"lrp": {"signed": True}})))
    assert page is not None
    assert "magnitudes." not in page.split("not how deep they are.")[1]
