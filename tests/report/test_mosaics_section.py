"""The section on mosaics: one axis per ratio, and no dot that passes for certainty."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from heatproof.report.reading import Reading
from heatproof.report.sections.mosaic_reliability import alphas
from heatproof.report.sections.mosaics import mosaic_panels, mosaics
from heatproof.results import Results

RATIO = "mosaic_precision"


def invented(methods: int = 4, images: int = 8, noise: float = 0.1, models: tuple[str, ...] = ("m",)) -> Results:
    dice = np.random.default_rng(0)
    rows = [
        {"dataset": "d", "model": model, "method": f"method{at}", "metric": RATIO, "image": f"{i}"}
        | {"value": 0.3 * where + 0.1 * at + dice.uniform(0, noise), "status": "ok", "note": "", "seconds": 0.1}
        for where, model in enumerate(models)
        for at in range(methods)
        for i in range(images)
    ]
    metrics = {RATIO: {"name": RATIO, "higher_is_better": True}}
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, {"metrics": metrics, "protocols": ["mosaics"]})


def alphas_of(results: Results) -> str:
    reading = Reading(results)
    return alphas(reading, mosaic_panels(reading))


def test_models_are_compared_on_one_axis() -> None:
    page = mosaics(Reading(invented(models=("m", "n"))))
    assert page is not None
    drawings = [one for one in re.findall(r"<svg.*?</svg>", page) if f"{RATIO} over mosaics" in one]
    ticks = [tuple(re.findall(r'class="tick"[^>]*>([^<]+)<', one)) for one in drawings]
    assert len(ticks) == 2
    assert ticks[0] == ticks[1]


def test_the_order_of_two_methods_has_no_alpha() -> None:
    page = alphas_of(invented(methods=2))
    assert "only 2 methods" in page
    assert "<circle" not in page
    assert "only" not in alphas_of(invented(methods=3, noise=0.4))


def test_a_dot_without_a_bar_is_said_to_be_no_certainty() -> None:
    alike = alphas_of(invented(noise=0.0))  # every mosaic ranks alike
    assert "A dot without a bar is no certainty" in alike
    assert f"{RATIO} (4 methods, 8 mosaics; m on d)" in alike
    assert "A dot without a bar" in alphas_of(invented(images=2))
    unsure = alphas_of(invented(noise=0.4))
    assert 'class="span"' in unsure
    assert "A dot without a bar" not in unsure
