"""Strata: every image in exactly one, borders as stated, n and cut-offs always there."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.stats.strata import by_cutoffs, by_percentile, by_stratum, gain

sizes = st.lists(st.floats(0, 1), min_size=1, max_size=50)


@given(sizes)
def test_percentile_strata_partition_the_images(values):
    found = by_percentile(values)
    low, high = np.percentile(values, [33, 67])
    assert found.cutoffs == (low, high)
    assert sum(found.n) == len(values) == len(found.members)
    expected = ["small" if v <= low else "medium" if v <= high else "large" for v in values]
    assert found.labels() == expected
    assert (found.rule, found.pool_size) == ("percentile of the evaluated set", len(values))


@given(sizes, sizes)
def test_a_pool_moves_the_cutoffs(values, pool):
    found = by_percentile(values, pool=pool)
    assert found.cutoffs == tuple(np.percentile(pool, [33, 67]))
    assert found.pool_size == len(pool)


def test_fixed_cutoffs_include_their_border_below():
    found = by_cutoffs([0.069, 0.07, 0.144, 0.9], [0.069, 0.144])
    assert found.labels() == ["small", "medium", "medium", "large"]
    assert found.n == (1, 2, 1)
    assert str(found) == "small n = 1, medium n = 2, large n = 1; cut-offs 0.069, 0.144: fixed"


def test_text_names_percentiles():
    assert str(by_percentile([1, 2, 3, 4])).endswith("cut-offs 1.99, 3.01: percentile of the evaluated set (33, 67)")


def test_means_by_stratum_with_gain():
    table = pd.DataFrame({"m": [0.1, 0.1, 0.2, np.nan, 0.4, 0.4]})
    strata = by_cutoffs([1, 1, 2, 2, 3, 3], [1, 2])
    found = by_stratum(table, strata, resamples=50)
    assert list(found["n"]) == [2, 1, 2]
    assert list(found["missing"]) == [0, 1, 0]
    np.testing.assert_allclose(found["mean"], [0.1, 0.2, 0.4])
    assert gain(found)["m"] == pytest.approx(3)
    weighted = (found["mean"] * found["n"]).sum() / found["n"].sum()
    assert weighted == pytest.approx(table["m"].mean())


def test_an_empty_stratum_keeps_its_row():
    found = by_stratum(pd.DataFrame({"m": [1.0, 2.0]}), by_cutoffs([5, 6], [1, 2]), resamples=10)
    assert list(found["n"]) == [0, 0, 2]
    assert np.isnan(found["mean"][0])


def test_published_gains():
    rows = [("Grad-CAM", 0.046, 0.171), ("XRAI", 0.106, 0.254), ("Blur IG", 0.096, 0.096)]
    frame = pd.DataFrame(
        [(m, s, v) for m, small, large in rows for s, v in (("small", small), ("large", large))],
        columns=["method", "stratum", "mean"],
    )
    found = gain(frame)
    assert found["Grad-CAM"] == pytest.approx(2.69, abs=0.05)
    assert found["XRAI"] == pytest.approx(1.39, abs=0.03)
    assert found["Blur IG"] == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: by_percentile([1.0, np.nan]),
        lambda: by_percentile([]),
        lambda: by_percentile([1.0], percentiles=(0, 50)),
        lambda: by_percentile([1.0], percentiles=(50,)),
        lambda: by_cutoffs([1.0], [2.0, 1.0]),
        lambda: by_stratum(pd.DataFrame({"m": [1.0]}), by_cutoffs([1, 2], [1, 2])),
        lambda: gain(by_stratum(pd.DataFrame({"m": [1.0]}), by_cutoffs([1], [1, 2])), "tiny"),
    ],
)
def test_refuses(call):
    with pytest.raises(BadInput):
        call()


def test_the_spread_is_that_of_a_sample():
    found = by_stratum(pd.DataFrame({"m": [1.0, 2.0, 4.0]}), by_cutoffs([5, 6, 7], [1, 2]), resamples=10)
    assert found["sd"][2] == pytest.approx(np.std([1.0, 2.0, 4.0], ddof=1))
