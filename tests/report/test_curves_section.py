"""The curves: bands are as wide as declared, axes have names."""

from __future__ import annotations

import numpy as np
import pytest

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.curves import curves, mean_curve
from heatproof.results import Results
from heatproof.results.run_info import run_info


def test_the_band_is_the_95_per_cent_interval_it_is_called(small_run: Results) -> None:
    images, points = 100, 20
    noise = np.random.default_rng(0).normal(0, 1, (images, points))
    summary = mean_curve([np.arange(float(points))] * images, list(noise))
    assert summary is not None
    _, mean, low, high = summary
    half = 1.96 * noise.std(axis=0) / np.sqrt(images)
    assert float(np.mean((high - low) / (2 * half))) == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose((low + high) / 2, mean, atol=0.05)
    message = curves(Reading(small_run))
    assert message is not None
    assert "bands are 95&nbsp;% bootstrap intervals" in message


def test_a_chart_has_the_axes_that_its_metric_declares(small_run: Results) -> None:
    about = {"name": "mine", "higher_is_better": True, "axes": ["<share>", "answer"]}
    info = {**small_run.info.plain(), "metrics": {**small_run.info.plain()["metrics"], "mine": about}}
    message = curves(Reading(Results(small_run.scores, small_run.curves.assign(metric="mine"), None, run_info(info))))
    assert message is not None
    assert message.count('class="axis-label"') == 2 * 2  # the section's picture, and the chart among all
    assert ">&lt;share&gt;</text>" in message
    assert ">answer</text>" in message
