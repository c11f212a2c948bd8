"""What AUROC and FPR95 say of samples that cannot be distinguished from the originals."""

import numpy as np
import pytest

from heatproof.errors import BadInput
from heatproof.stats.out_of_distribution import alike, auroc, fpr95


@pytest.mark.parametrize("n", [1, 2, 4, 6, 16, 21, 64])
def test_the_reference_is_what_such_samples_give(n):
    dice = np.random.default_rng(n)
    drawn = dice.normal(size=(4000, 2, n))
    passing = np.array([fpr95(*pair) for pair in drawn])
    areas = np.array([auroc(*pair) for pair in drawn])
    found = alike(n)
    assert passing.mean() == pytest.approx(found.fpr95, abs=0.02)
    low, high = found.fpr95_range
    assert ((low <= passing) & (passing <= high)).mean() >= 0.94
    low, high = found.auroc_range
    assert ((low <= areas) & (areas <= high)).mean() >= 0.93


def test_it_is_95_per_cent_on_very_many_pictures_only():
    assert alike(4).fpr95 == pytest.approx(0.775, abs=0.01)
    assert alike(16).fpr95 == pytest.approx(0.903, abs=0.005)
    assert alike(100_000).fpr95 == pytest.approx(0.95, abs=1e-4)


def test_it_is_the_same_every_time_and_asks_for_pictures():
    assert alike(9) == alike.__wrapped__(9)
    with pytest.raises(BadInput, match="at least one picture"):
        alike(0)
