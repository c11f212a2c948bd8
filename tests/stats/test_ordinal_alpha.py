"""Ordinal alpha: the number of the package krippendorff, worked examples, and refusals where it is 0 / 0."""

import krippendorff
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatproof.errors import BadInput
from heatproof.stats.ordinal_alpha import ordinal_alpha

NAN = np.nan
cells = st.one_of(st.integers(-2, 5).map(float), st.sampled_from([0.5, 1e-30, -1e30, NAN, NAN]))
ratings = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 8)), elements=cells)


@given(ratings)
@example(np.array([[1.0, 2.0, 3.0]]))
@example(np.full((3, 4), 2.0))
@example(np.full((3, 4), NAN))
@example(np.array([[1.0, NAN], [NAN, 2.0]]))
@settings(deadline=None, max_examples=300)
def test_equals_the_package_or_is_refused_where_it_is_undefined(values):
    """A rating that has no pair is no part of alpha: the package is given the pairable units."""
    pairable = values[:, (~np.isnan(values)).sum(axis=0) >= 2]
    domain = np.unique(pairable[~np.isnan(pairable)])
    if len(domain) < 2:
        with pytest.raises(BadInput, match="undefined"):
            ordinal_alpha(values)
        return
    theirs = krippendorff.alpha(pairable, value_domain=domain, level_of_measurement="ordinal")
    assert ordinal_alpha(values) == pytest.approx(theirs, abs=1e-12)


def test_by_hand():
    # Two raters, three units, in opposite order: observed disagreement 4 * 16 of 12, expected by the margins 2, 2, 2.
    assert ordinal_alpha([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]) == pytest.approx(-2 / 3)
    assert ordinal_alpha([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]) == pytest.approx(1)


@given(ratings, st.permutations(range(12)))
@settings(deadline=None)
def test_only_the_order_of_ratings_counts(values, shuffled):
    try:
        alpha = ordinal_alpha(values)
    except BadInput:
        return
    monotone = np.arctan(np.where(np.isnan(values), NAN, np.searchsorted(np.unique(values), values)))
    assert ordinal_alpha(monotone) == pytest.approx(alpha, abs=1e-12)
    assert ordinal_alpha(values[[i for i in shuffled if i < len(values)]]) == pytest.approx(alpha, abs=1e-12)


@pytest.mark.parametrize("wrong", [[], [1.0, 2.0], [[np.inf, 1.0], [1.0, 2.0]], np.empty((0, 3)), np.empty((3, 0))])
def test_refuses_what_is_no_table_of_ratings(wrong):
    with pytest.raises(BadInput):
        ordinal_alpha(wrong)
