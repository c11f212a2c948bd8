"""The greedy ranking of regions: a plain, slow version of it, and PAIR's own code."""

from __future__ import annotations

import networks
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from skimage import morphology

from heatproof.methods._support.region_ranking import dilated_regions, disk, felzenszwalb_labels, rank_regions


def slowly(attribution: np.ndarray, regions: list[np.ndarray], least: int) -> np.ndarray:
    """The same ranking as its definition reads."""
    values, covered, left = attribution.ravel(), np.zeros(attribution.size, bool), list(regions)
    result = np.zeros(attribution.size)
    while True:
        added = [region[~covered[region]] for region in left]
        left = [r for r, new in zip(left, added, strict=True) if len(new) >= max(1, least)]
        added = [new for new in added if len(new) >= max(1, least)]
        if not left:
            break
        best = int(np.argmax([values[new].mean() for new in added]))
        result[added[best]] = values[added[best]].mean()
        covered[added[best]] = True
        left.pop(best)
    if not covered.all():
        result[~covered] = values[~covered].mean()
    return result.reshape(attribution.shape)


@given(seed=st.integers(0, 10_000), count=st.integers(0, 25), least=st.integers(0, 9))
def test_ranking_is_what_its_definition_says(seed: int, count: int, least: int) -> None:
    rng = np.random.default_rng(seed)
    attribution = rng.normal(size=(9, 11))
    regions = [rng.choice(99, rng.integers(1, 50), replace=False) for _ in range(count)]
    assert np.allclose(rank_regions(attribution, regions, least), slowly(attribution, regions, least), atol=1e-12)


@pytest.mark.parametrize("radius", [0, 1, 5])
def test_dilation_is_skimages(radius: int) -> None:
    labels = felzenszwalb_labels(networks.pictures(1)[0].permute(1, 2, 0).numpy(), [50], 0.8, 150, 224)[0]
    assert np.array_equal(disk(radius), morphology.disk(radius))
    found = dilated_regions(labels, radius)
    assert len(found) == labels.max() + 1
    for label, pixels in enumerate(found):
        grown = morphology.dilation(labels == label, morphology.disk(radius))
        assert np.array_equal(np.sort(pixels), np.flatnonzero(grown))


def test_small_pictures_are_cut_about_as_finely_as_large_ones() -> None:
    rng = np.random.default_rng(0)
    large = ndimage.zoom(rng.random((7, 7, 3)), (32, 32, 1), order=0) + 0.05 * rng.random((224, 224, 3))
    small = large.reshape(56, 4, 56, 4, 3).mean((1, 3))
    cuts = [felzenszwalb_labels(p.astype(np.float32), [50, 150, 500], 0.8, 150, 224) for p in (large, small)]
    for one, other in zip(*cuts, strict=True):
        assert 0.4 < (other.max() + 1) / (one.max() + 1) < 2.5


def test_pictures_larger_than_the_reference_are_cut_at_its_size() -> None:
    picture = networks.pictures(1, size=64)[0].permute(1, 2, 0).numpy()
    (labels,) = felzenszwalb_labels(picture, [100], 0.8, 150, 32)
    assert labels.shape == (64, 64)
    assert (labels[::2, ::2] == labels[1::2, 1::2]).all()
