"""The curves: bands are as wide as they are said to be, axes have names."""

from __future__ import annotations

import numpy as np
import pytest

from heatproof.report.reading import Reading
from heatproof.report.sections.curves import curves, mean_curve
from heatproof.results import Results


def test_the_band_is_the_95_per_cent_interval_it_is_called(small_run: Results) -> None:
    images, points = 100, 20
    noise = np.random.default_rng(0).normal(0, 1, (images, points))
    summary = mean_curve([np.arange(float(points))] * images, list(noise))
    assert summary is not None
    _, mean, low, high = summary
    half = 1.96 * noise.std(axis=0) / np.sqrt(images)
    assert float(np.mean((high - low) / (2 * half))) == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose((low + high) / 2, mean, atol=0.05)
    told = curves(Reading(small_run))
    assert told is not None
    assert "bands are 95&nbsp;% bootstrap intervals" in told


CURVED = ("mif", "lif", "srg", "mrg", "lrg", "insertion", "deletion", "auc_iou", "iou_by_area", "fud", "road")
CURVED += ("sensitivity_n", "r_oms", "nr_oms", "smoothness", "energy", "image_quality")


@pytest.mark.parametrize("metric", CURVED)
def test_both_axes_of_every_curve_have_a_name(small_run: Results, metric: str) -> None:
    info = {**small_run.info, "metrics": {**small_run.info["metrics"], metric: {"name": metric}}}
    told = curves(Reading(Results(small_run.scores, small_run.curves.assign(metric=metric), None, info)))
    assert told is not None
    assert told.count('class="axis-label"') == 2
